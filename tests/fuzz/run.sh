#!/bin/sh
# Builds the fuzzers with clang++ and its libFuzzer and runs them for a while, two at a time:
#   sh tests/fuzz/run.sh [SECONDS] [name...]          e.g.  run.sh 600 policy     (60 seconds, all)
# With 0 seconds it only builds them.
# They are one program, made of the parts in src/; a target is a file of its name here.
# They start from tests/fuzz/corpus, those that read scripts from the scripts of the differential
# test and the corpus of commands, too. What they find they keep in $OUT (build/fuzz), where the
# next run goes on. No input may take longer than 20 seconds or 2 GiB. Prints one line for each,
# "ok: ..." or "FAILED: ..." with the input; such an input becomes a test.
#   fuzz-NAME FILE   (in $OUT) runs one input again.
set -eu
LC_ALL=C
export LC_ALL
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
HERE=$ROOT/tests/fuzz
OUT=${OUT:-${CODEEXEC_BUILD_DIR:-$ROOT/build}/fuzz}
CLANGXX=${CLANGXX:-clang++}
targets="code config docker json mcp output place policy proxy regex session shell terminal text"
seconds=60
case ${1:-} in
  [0-9]*) seconds=$1 && shift ;;
esac
[ $# -gt 0 ] || set -- $targets
for name; do
  case " $targets " in
    *" $name "*) ;;
    *) echo "FAILED: fuzz.$name: there is no such target" && exit 1 ;;
  esac
done
mkdir -p "$OUT"
OUT=$(cd "$OUT" && pwd)
export ROOT OUT

probe='extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }'
if ! echo "$probe" |
  "$CLANGXX" -fsanitize=fuzzer -x c++ - -o "$OUT/probe" > "$OUT/probe.log" 2>&1; then
  echo "SKIPPED: fuzz: no clang++ with libFuzzer (clang, libclang-rt-dev)"
  exit 0
fi

flags="-std=c++17 -O1 -g1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all"
# Without the checks of scopes the implementation costs half as much.
flags="$flags -fno-sanitize-address-use-after-scope"

# Stale is what is older than a part in src/, a header, its own file or this script with its flags.
compile() { # NAME
  object=$OUT/$1.o
  [ -n "$(find "$object" -newer "$HERE/fuzz.hpp" -newer "$ROOT/tests/oracle/regex_patterns.hpp" \
    -newer "$HERE/$1.cpp" -newer "$HERE/run.sh" 2> /dev/null)" ] &&
    [ -z "$(find "$ROOT/src" -newer "$object")" ] && return
  rm -f "$object"
  "$CLANGXX" $flags -I"$OUT/parts" -I"$ROOT/src" -I"$ROOT" -c "$HERE/$1.cpp" -o "$object"
}

build() {
  # The targets include the public headers of the sections, in place of the joined header.
  mkdir -p "$OUT/parts"
  grep '^#include "[a-z]*/[a-z]*\.hpp"$' "$ROOT/src/frame.hpp" > "$OUT/parts/codeexec.hpp"
  sh "$ROOT/tests/helpers/sections.sh" "$OUT/sections" "$CLANGXX" $flags \
    > "$OUT/sections.log" 2>&1 &
  sections=$!
  objects=
  compiled=yes
  for part in main inside $targets; do
    compile "$part" || compiled=no
    objects="$objects $OUT/$part.o"
  done
  wait $sections || { cat "$OUT/sections.log" && return 1; }
  [ $compiled = yes ] || return
  libraries=
  if echo '#include <re2/re2.h>' | "$CLANGXX" -x c++ -fsyntax-only - 2> "$OUT/probe.log"; then
    libraries=-lre2
  else
    echo "SKIPPED: fuzz.regex: nothing to compare with (libre2-dev)"
  fi
  "$CLANGXX" -fsanitize=fuzzer,address,undefined $objects "$OUT/sections"/*.o $libraries -pthread \
    -o "$OUT/fuzz" || return
  for part in $targets; do ln -f "$OUT/fuzz" "$OUT/fuzz-$part"; done
}

# The scripts of other tests, for those who read scripts. All of them are read before the time that
# a fuzzer has begins to count: in a short run it is every sixteenth.
write_scripts() {
  scripts=$OUT/scripts
  [ "$seconds" -ge 60 ] || scripts=$OUT/few-scripts
  mkdir -p "$scripts"
  python3 - "$scripts/" << 'PYTHON'
import hashlib, json, os, sys
root, seeds = os.environ["ROOT"], sys.argv[1]
few = seeds.endswith("/few-scripts/")
sys.path.insert(0, root + "/tests/oracle")
sys.dont_write_bytecode = True
import shell_differential
oracle = root + "/tests/oracle"
scripts = [e.text for e in shell_differential.read_entries(oracle + "/shell_scripts.txt")]
commands = oracle + "/corpus/commands.jsonl"
if os.path.exists(commands):
    with open(commands, encoding="utf-8") as file:
        for row in map(json.loads, filter(str.strip, file)):
            scripts += [value for value in row.values() if isinstance(value, str)]
for text in scripts:
    data = text.encode("utf-8", "surrogateescape")
    name = hashlib.sha1(data).hexdigest()[:16]
    if not few or name.startswith("0"):
        with open(seeds + name, "wb") as file:
            file.write(data)
PYTHON
}

fuzz() { # NAME
  name=$1
  seeds=$HERE/corpus/$name
  length=2000
  words=text
  case $name in
    policy | shell) seeds="$HERE/corpus/shell $scripts" words=shell ;;
    config | docker) words=config ;;
    json | mcp) words=$name length=6000 ;;
    regex) words=regex length=600 ;;
  esac
  mkdir -p "$OUT/$name"
  code=0
  # Blanks in $OUT or $ROOT are not foreseen.
  "$OUT/fuzz-$name" "$OUT/$name" $seeds -max_total_time="$seconds" -max_len=$length -timeout=20 \
    -rss_limit_mb=2048 -print_final_stats=1 -print_funcs=0 -dict="$HERE/$words.dict" \
    -artifact_prefix="$OUT/$name-" > "$OUT/$name.log" 2>&1 || code=$?
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$OUT/$name.log")
  edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$OUT/$name.log" | tail -n 1)
  if [ $code -eq 0 ] && [ "${runs:-0}" -gt 20 ]; then
    echo "ok: fuzz.$name: $runs inputs in $seconds seconds, ${edges:-0} edges of the code"
    return 0
  fi
  echo "FAILED: fuzz.$name: ended with status $code after ${runs:-0} inputs"
  tail -n 60 "$OUT/$name.log"
  return 1
}

# Every second one of the names, from the first or the second on.
fuzz_half() { # 1 or 2, name...
  half=$1 && shift
  failed=0
  while [ $# -gt 0 ]; do
    if [ $half -eq 1 ]; then
      half=2
      fuzz "$1" || failed=1
    else
      half=1
    fi
    shift
  done
  return $failed
}

if ! build > "$OUT/build.log" 2>&1; then
  echo "FAILED: fuzz: does not build"
  tail -n 40 "$OUT/build.log"
  exit 1
fi
cat "$OUT/build.log"
[ "$seconds" -gt 0 ] || exit 0
write_scripts
status=0
fuzz_half 2 "$@" > "$OUT/half.told" 2>&1 &
other=$!
fuzz_half 1 "$@" || status=1
wait $other || status=1
cat "$OUT/half.told"
exit $status
