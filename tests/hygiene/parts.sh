# Each part of src/ compiles by itself: it includes what it uses. A section compiles its parts in
# one file, so that a missing include would show only when parts change places. The headers of
# `base`, which take most of the time, are compiled once for all.
. "$(dirname "$0")/lib.sh"

rm -rf "$OUT/base"
mkdir -p "$OUT/base"
common=$OUT/base/common.hpp
echo '#include "base/base_internal.hpp"' > "$common"
expect "the headers of base are compiled" "$CXX" -std=c++17 -O0 -I"$ROOT/src" -x c++-header \
  "$common" -o "$common.gch"
cd "$ROOT/src"
export CXX
jobs=$(getconf _NPROCESSORS_ONLN 2> "$OUT/jobs.log" || echo 2)
rm -f "$OUT"/part-*
# A header is included by a file of nothing else.
ls ./*/*.[ch]pp | sed 's|^\./||' | xargs -P "$jobs" -I '{}' sh -c '
  log=$1/part-$(echo "$2" | tr / -).log
  echo "#include \"$2\"" | "$CXX" -std=c++17 -O0 -include "$1/base/common.hpp" -I. \
    -fsyntax-only -x c++ - > "$log" 2>&1 || mv "$log" "$log.failed"' sh "$OUT" '{}'
for log in "$OUT"/part-*.failed; do
  [ -f "$log" ] || continue
  fail "$(basename "$log" .log.failed | sed 's/^part-//; s|-|/|') does not compile by itself"
  head -n 10 "$log"
  rm -f "$log"
done
compiled=$(ls "$OUT"/part-*.log | wc -l)
expect "$((compiled)) parts compile by themselves" test "$compiled" -gt 100
finish
