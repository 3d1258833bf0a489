#!/bin/sh
# Runs the fuzzers for a while, side by side, with clang++ and its libFuzzer:
#   sh tests/fuzz/run.sh [SECONDS] [name...]          e.g.  run.sh 600 policy     (60 seconds, all)
# They start from tests/fuzz/corpus, from the scripts of the differential test and from the corpus
# of commands, and keep what they find in $OUT (build/fuzz), where the next run goes on. Prints one
# line for each, "ok: ..." or "FAILED: ..." with the input; such an input becomes a test.
set -eu
LC_ALL=C
export LC_ALL
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
OUT=${OUT:-${CODEEXEC_BUILD_DIR:-$ROOT/build}/fuzz}
CLANGXX=${CLANGXX:-clang++}
seconds=60
case ${1:-} in
  [0-9]*) seconds=$1 && shift ;;
esac
[ $# -gt 0 ] || set -- shell policy
mkdir -p "$OUT"
OUT=$(cd "$OUT" && pwd)
export ROOT OUT

probe='extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }'
if ! echo "$probe" |
  "$CLANGXX" -fsanitize=fuzzer -x c++ - -o "$OUT/probe" > "$OUT/probe.log" 2>&1; then
  echo "SKIPPED: fuzz: no clang++ with libFuzzer (clang, libclang-rt-dev)"
  exit 0
fi

mkdir -p "$OUT/seeds"
python3 - << 'PYTHON'
import hashlib, json, os, sys
root, seeds = os.environ["ROOT"], os.environ["OUT"] + "/seeds/"
sys.path.insert(0, root + "/tests")
sys.dont_write_bytecode = True
import shell_differential
scripts = [e.text for e in shell_differential.read_entries(root + "/tests/shell_scripts.txt")]
commands = root + "/tests/corpus/commands.jsonl"
if os.path.exists(commands):
    with open(commands, encoding="utf-8") as file:
        for row in map(json.loads, filter(str.strip, file)):
            scripts += [value for value in row.values() if isinstance(value, str)]
for text in scripts:
    data = text.encode("utf-8", "surrogateescape")
    with open(seeds + hashlib.sha1(data).hexdigest()[:16], "wb") as file:
        file.write(data)
PYTHON

fuzz() { # NAME
  name=$1
  # What one input may take is far above what the limits of the header leave it.
  "$CLANGXX" -std=c++17 -O1 -g1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
    -I"$ROOT" "$ROOT/tests/fuzz/$name.cpp" -pthread -o "$OUT/fuzz-$name" || {
    echo "FAILED: fuzz.$name: does not build"
    return 1
  }
  mkdir -p "$OUT/$name"
  code=0
  "$OUT/fuzz-$name" "$OUT/$name" "$ROOT/tests/fuzz/corpus/shell" "$OUT/seeds" \
    -max_total_time="$seconds" -max_len=2000 -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
    -dict="$ROOT/tests/fuzz/shell.dict" -artifact_prefix="$OUT/$name-" > "$OUT/$name.log" 2>&1 ||
    code=$?
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$OUT/$name.log")
  if [ $code -eq 0 ] && [ "${runs:-0}" -gt 1000 ]; then
    echo "ok: fuzz.$name: $runs inputs in $seconds seconds"
    return 0
  fi
  echo "FAILED: fuzz.$name: ended with status $code after ${runs:-0} inputs"
  tail -n 40 "$OUT/$name.log"
  return 1
}

fuzzers=
for name; do
  fuzz "$name" > "$OUT/$name.told" 2>&1 &
  fuzzers="$fuzzers $!:$name"
done
status=0
for fuzzer in $fuzzers; do
  wait "${fuzzer%%:*}" || status=1
  cat "$OUT/${fuzzer#*:}.told"
done
exit $status
