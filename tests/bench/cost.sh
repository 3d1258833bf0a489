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

# The server needs neither exceptions nor type information, nor the tables by which a stack is
# unwound: they make a third of it.
small="-Os -s -pthread -ffunction-sections -fdata-sections -Wl,--gc-sections"
other=
if [ "${1:-}" != --gates ]; then
  compile $small "$ROOT/examples/mcp_server.cpp" -o "$OUT/codeexec-mcp" &
  other=$!
fi
compile $small -fno-exceptions -fno-rtti -fno-asynchronous-unwind-tables \
  "$ROOT/examples/mcp_server.cpp" -o "$OUT/codeexec-mcp-small"
[ -z "$other" ] || wait "$other"
limit=1600000
row "codeexec-mcp, stripped, built for size" \
  "$(wc -c < "$OUT/codeexec-mcp-small")" bytes \
  ${other:+"-Os alone" "$(wc -c < "$OUT/codeexec-mcp")"}

# In milliseconds of the processor: the best of so many, the least disturbed one.
best_time() { # TIMES COMMAND...
  best=
  times=$1
  shift
  while [ "$times" -gt 0 ]; do
    times=$((times - 1))
    look_at_clock
    ms=$spent
    "$@"
    look_at_clock
    ms=$((spent - ms))
    [ -n "$best" ] && [ "$best" -le "$ms" ] || best=$ms
  done
  echo "$best"
}
# Rivals to compile: SQLite's amalgamation from npm, and the header as it was before it had rooms,
# places and clusters.
sqlite=$OUT/package/deps/sqlite3/sqlite3.c
get_rivals() {
  (cd "$OUT" && [ -f "$sqlite" ] || { npm pack --silent better-sqlite3@12.11.1 &&
    tar xzf better-sqlite3-12.11.1.tgz; }) > "$OUT/npm.log" 2>&1 ||
    echo "SKIPPED: cost: no sqlite3.c from npm: $OUT/npm.log"
  mkdir -p "$OUT/before"
  printf '#define CODEEXEC_IMPLEMENTATION\n#include "before/codeexec.hpp"\n' > "$OUT/before.cpp"
  git -C "$ROOT" show 27ee220:codeexec.hpp > "$OUT/before/codeexec.hpp" 2> "$OUT/git.log" ||
    echo "SKIPPED: cost: no header of 27ee220: $OUT/git.log"
}
if [ "${1:-}" != --gates ]; then
  get_rivals
  for level in -O0 -O2; do
    std_ms=$(best_time 3 compile $level -c "$OUT/std_only.cpp" -o "$OUT/timed.o")
    ms=$(best_time 3 compile $level -c "$OUT/declarations.cpp" -o "$OUT/timed.o")
    row "compile the declaration half at $level" "$ms" ms "$std" "$std_ms"
    # Once, as it takes a minute with optimisation.
    ms=$(best_time 1 compile $level -c "$OUT/definitions.cpp" -o "$OUT/definitions$level.o")
    sqlite_ms=0
    [ ! -f "$sqlite" ] || sqlite_ms=$(best_time 1 "$CXX" $level -x c -c "$sqlite" \
      -o "$OUT/timed.o")
    row "compile the definition half at $level" "$ms" ms "sqlite3.c" "$sqlite_ms"
    row "code of the definition half at $level" \
      $(($(size "$OUT/definitions$level.o" | awk 'NR == 2 { print $1 }') / 1024)) KiB
  done
  before_ms=0
  [ ! -s "$OUT/before/codeexec.hpp" ] ||
    before_ms=$(best_time 3 compile -fsyntax-only "$OUT/before.cpp")
  ms=$(best_time 3 compile -fsyntax-only "$OUT/definitions.cpp")
  row "read the definition half (-fsyntax-only)" "$ms" ms "the header of 27ee220" "$before_ms"
fi
[ "$failures" -eq 0 ]
