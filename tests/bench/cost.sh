#!/bin/sh
# What the header costs those who include it and those who ship it. The gates do not depend on how
# busy the machine is; times and the size of the code are reported.
#   [CXX=g++] sh tests/bench/cost.sh [--gates]      --gates: without what is only reported
. "$(dirname "$0")/rows.sh"

printf '#include "codeexec.hpp"\n' > "$OUT/declarations.cpp"
printf '#define CODEEXEC_IMPLEMENTATION\n#include "codeexec.hpp"\n' > "$OUT/definitions.cpp"
sed '/^#endif  *\/\/ CODEEXEC_HPP$/,$d' "$ROOT/codeexec.hpp" | grep -E '^ *# *include' \
  > "$OUT/std_only.cpp"
compile() { "$CXX" -std=c++17 -I"$ROOT" "$@"; }

std="the standard headers that it includes"
preprocessed() { compile -E -P "$OUT/$1.cpp" | wc -c; }
std_bytes=$(preprocessed std_only)
all_bytes=$(preprocessed declarations)
limit=60
row "including the header: preprocessed text of its own" \
  $(((all_bytes - std_bytes + 1023) / 1024)) KiB "$std" $((std_bytes / 1024))

# At -O0 libstdc++'s <memory> leaves a few constants of its own in every file that includes it.
symbols() {
  compile -O0 -c "$OUT/$1.cpp" -o "$OUT/$1.o"
  nm --defined-only "$OUT/$1.o" 2> "$OUT/nm.log" | wc -l
}
std_symbols=$(symbols std_only)
limit=0
row "including the header: symbols that it defines, at -O0" \
  $(($(symbols declarations) - std_symbols)) symbols "$std" "$std_symbols"

# The server needs neither exceptions nor type information, which make a quarter of it.
small="-Os -s -pthread -ffunction-sections -fdata-sections -Wl,--gc-sections"
other=
if [ "${1:-}" != --gates ]; then
  compile $small "$ROOT/examples/mcp_server.cpp" -o "$OUT/codeexec-mcp" &
  other=$!
fi
compile $small -fno-exceptions -fno-rtti "$ROOT/examples/mcp_server.cpp" \
  -o "$OUT/codeexec-mcp-small"
[ -z "$other" ] || wait "$other"
limit=1048575
row "codeexec-mcp, stripped, -Os -fno-exceptions -fno-rtti" \
  "$(wc -c < "$OUT/codeexec-mcp-small")" bytes \
  ${other:+"-Os alone" "$(wc -c < "$OUT/codeexec-mcp")"}

# In milliseconds: the best of so many, the least disturbed one.
best_time() { # TIMES COMPILER_ARGUMENT...
  best=
  times=$1
  shift
  while [ "$times" -gt 0 ]; do
    times=$((times - 1))
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
    std_ms=$(best_time 3 $level -c "$OUT/std_only.cpp" -o "$OUT/timed.o")
    row "compile the declaration half at $level" \
      "$(best_time 3 $level -c "$OUT/declarations.cpp" -o "$OUT/timed.o")" ms "$std" "$std_ms"
    # Once, as it takes a minute with optimisation.
    row "compile the definition half at $level" \
      "$(best_time 1 $level -c "$OUT/definitions.cpp" -o "$OUT/definitions$level.o")" ms
    row "code of the definition half at $level" \
      $(($(size "$OUT/definitions$level.o" | awk 'NR == 2 { print $1 }') / 1024)) KiB
  done
fi
[ "$failures" -eq 0 ]
