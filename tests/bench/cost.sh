#!/bin/sh
# What the header costs those who include it and those who ship it. The gates do not depend on how
# busy the machine is; times and the size of the code are reported.
#   [CXX=g++] sh tests/bench/cost.sh [--gates]      --gates: without what is only reported
set -eu
LC_ALL=C
export LC_ALL
ROOT=${ROOT:-$(cd "$(dirname "$0")/../.." && pwd)}
OUT=${OUT:-${CODEEXEC_BUILD_DIR:-$ROOT/build}/bench/cost}
CXX=${CXX:-c++}
mkdir -p "$OUT"
failures=0
failed() { printf 'FAILED: %s\n' "$*" && failures=$((failures + 1)); }
# gate WHAT VALUE LIMIT
gate() {
  printf '%-58s %10s   (gate: %s)\n' "$1" "$2" "$3"
  [ "$2" -le "$3" ] || failed "$1: $2 is more than $3"
}
report() { printf '%-58s %10s\n' "$1" "$2"; }

printf '#include "codeexec.hpp"\n' > "$OUT/declarations.cpp"
printf '#define CODEEXEC_IMPLEMENTATION\n#include "codeexec.hpp"\n' > "$OUT/definitions.cpp"
sed '/^#endif  *\/\/ CODEEXEC_HPP$/,$d' "$ROOT/codeexec.hpp" | grep -E '^ *# *include' \
  > "$OUT/std_only.cpp"
compile() { "$CXX" -std=c++17 -I"$ROOT" "$@"; }

preprocessed() { compile -E -P "$OUT/$1.cpp" | wc -c; }
std_bytes=$(preprocessed std_only)
all_bytes=$(preprocessed declarations)
report "standard headers of the declaration half, KiB preprocessed" $((std_bytes / 1024))
gate "declaration half beyond them, KiB preprocessed" $(((all_bytes - std_bytes + 1023) / 1024)) 60

# At -O0 libstdc++'s <memory> leaves a few constants of its own in every file that includes it.
symbols() {
  compile -O0 -c "$OUT/$1.cpp" -o "$OUT/$1.o"
  nm --defined-only "$OUT/$1.o" 2> "$OUT/nm.log" | wc -l
}
std_symbols=$(symbols std_only)
report "symbols defined by the standard headers alone, at -O0" "$std_symbols"
gate "symbols that including the header defines, at -O0" \
  $(($(symbols declarations) - std_symbols)) 0

# The server needs neither exceptions nor type information, which make a quarter of it.
small="-Os -s -pthread -ffunction-sections -fdata-sections -Wl,--gc-sections"
compile $small "$ROOT/examples/mcp_server.cpp" -o "$OUT/codeexec-mcp"
report "codeexec-mcp, -Os and stripped, bytes" "$(wc -c < "$OUT/codeexec-mcp")"
compile $small -fno-exceptions -fno-rtti "$ROOT/examples/mcp_server.cpp" -o "$OUT/codeexec-mcp"
gate "the same with -fno-exceptions -fno-rtti" "$(wc -c < "$OUT/codeexec-mcp")" 1048575

# Best of three, in milliseconds: the least disturbed one.
best_time() {
  best=
  for _ in 1 2 3; do
    start=$(date +%s%N)
    compile "$@"
    end=$(date +%s%N)
    ms=$(((end - start) / 1000000))
    [ -n "$best" ] && [ "$best" -le "$ms" ] || best=$ms
  done
  echo "$best"
}
if [ "${1:-}" != --gates ]; then
  for level in -O0 -O2; do
    compile $level -c "$OUT/definitions.cpp" -o "$OUT/definitions$level.o"
    report "definition half at $level, KiB of code" \
      $(($(size "$OUT/definitions$level.o" | awk 'NR == 2 { print $1 }') / 1024))
    std_ms=$(best_time $level -c "$OUT/std_only.cpp" -o "$OUT/timed.o")
    for half in declarations definitions; do
      ms=$(best_time $level -c "$OUT/$half.cpp" -o "$OUT/timed.o")
      report "$half at $level, ms to compile" "$ms"
    done
    report "standard headers of the declaration half at $level, ms" "$std_ms"
  done
fi
[ "$failures" -eq 0 ]
