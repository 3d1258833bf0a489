# The layers of the header are honest: each section compiles with nothing but the sections it says
# it needs, and everything compiles without any section that nobody needs. In a file of two halves
# an ordinary compile proves neither, because all declarations stand before all definitions.
. "$(dirname "$0")/lib.sh"

awk -f "$here/sections.awk" "$HEADER" > "$OUT/banners"
list() { awk -v kind="$1" '$1 == kind { print $2 }' "$OUT/banners"; }
with_needs() { sed -n "s/^$1 //p" "$OUT/banners" | tr -s ' ' | sed 's/ *$//'; }

list decl > "$OUT/declared"
[ -s "$OUT/declared" ] || fail "no section banner was found in $HEADER"
list def > "$OUT/defined"
expect "definitions stand in the order of the declarations" diff "$OUT/declared" "$OUT/defined"
with_needs table > "$OUT/table"
with_needs decl > "$OUT/declared_needs"
expect "the table of the manual says what the banners say" diff "$OUT/table" "$OUT/declared_needs"

awk '$1 == "decl" {
  for (i = 3; i <= NF; ++i)
    if (!($i in above)) print $2 " needs " $i ", which is not declared above it"
  above[$2] = 1
}' "$OUT/banners" > "$OUT/downward"
expect_empty "needs only point up" "$OUT/downward"

awk '$1 == "test" { print $2, $3 }' "$OUT/banners" > "$OUT/tests"
while read -r section; do
  file=$(awk -v section="$section" '$1 == section { print $2 }' "$OUT/tests")
  if [ "$file" != "tests/$section.cpp" ] || [ ! -f "$ROOT/$file" ]; then
    fail "$section: its banner must name its test file, [tests/$section.cpp]"
  fi
done < "$OUT/declared"

# ",a,b,": the section and all that it needs, directly or not. Needs point up, so one pass from the
# section upwards finds them all.
closure() {
  awk '$1 == "decl"' "$OUT/banners" | sort_upwards | awk -v section="$1" '
    BEGIN { keep[section] = 1; list = "," }
    $2 in keep { list = list $2 ","; for (i = 3; i <= NF; ++i) keep[$i] = 1 }
    END { print list }'
}
sort_upwards() { awk '{ line[NR] = $0 } END { for (i = NR; i > 0; --i) print line[i] }'; }
all_but() {
  awk -v out="$1" 'BEGIN { list = "," } $1 != out { list = list $1 "," } END { print list }' \
    "$OUT/declared"
}

try() {
  awk -v keep="$2" -f "$here/keep_sections.awk" "$HEADER" > "$OUT/$1.hpp"
  printf '#define CODEEXEC_IMPLEMENTATION\n#include "%s.hpp"\n' "$1" > "$OUT/$1.cpp"
  expect "$1 compiles (kept: $2)" "$CXX" -std=c++17 -fsyntax-only "$OUT/$1.cpp"
}
while read -r section; do
  try "only_$section" "$(closure "$section")"
done < "$OUT/declared"
while read -r section; do
  awk -v section="$section" '{ for (i = 2; i <= NF; ++i) if ($i == section) found = 1 }
    END { exit found }' "$OUT/declared_needs" || continue
  try "without_$section" "$(all_but "$section")"
done < "$OUT/declared"
finish
