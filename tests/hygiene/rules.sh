# The test of the rooms sees each rule that is broken, and says so in one line: rules are broken in
# a copy of src/, one at a time.
. "$(dirname "$0")/lib.sh"

if ! command -v python3 > "$OUT/which"; then
  skip "python3 is not installed"
  exit 77
fi
copy=$OUT/copy
afresh() {
  rm -rf "$copy"
  mkdir -p "$copy/tests/oracle" "$copy/tests/fuzz"
  cp -R "$ROOT/src" "$ROOT/codeexec.hpp" "$ROOT/CMakeLists.txt" "$copy/"
  cp "$ROOT"/tests/oracle/*.cpp "$copy/tests/oracle/"
  cp "$ROOT"/tests/fuzz/*.cpp "$copy/tests/fuzz/"
}
rules() { ROOT=$copy python3 "$here/rooms.py" > "$OUT/rules.log" 2>&1; }
rejoin() { python3 "$copy/src/join.py" > "$OUT/join.log" 2>&1 || true; }
# broken WHAT LINE: the rules do not hold in the copy, and one line has these words in it.
broken() {
  if rules; then
    fail "$1: was not seen"
  elif [ "$(grep -c -- "$2" "$OUT/rules.log")" != 1 ]; then
    fail "$1: no line says: $2"
    grep -A 3 FAILED "$OUT/rules.log" || true
  else
    ok "$1: $(grep -- "$2" "$OUT/rules.log" | sed 's/^ *//')"
  fi
  afresh
}
# add FILE LINE NEW: a line behind the first one that has LINE in it
add() {
  awk -v at="$2" -v new="$3" '{ print } !done && index($0, at) { print new; done = 1 }' \
    "$copy/src/$1" > "$OUT/added"
  mv "$OUT/added" "$copy/src/$1"
}

afresh
expect "a copy of src/ keeps the rules" rules
add json/value.cpp '#include' '#include "policy/policy.hpp"'
broken "a forbidden include" 'json does not need policy: move the line to another room'
add json/value.cpp '#include' '#include "json/parse.cpp"'
broken "a part that includes a part" 'declare what it uses in an internal header'
add json/value.cpp '#include' '#include <map>'
broken "a system header in a part" 'src/json/value.cpp: move its .#include <...>. to'
add json/value.cpp 'inline namespace v0_1 {' '// concat("% of %", {"one"})'
add json/value.cpp 'inline namespace v0_1 {' \
  'std::string told() { return concat("% of %", {"one"}); }'
rejoin
broken "a text with more marks than values" 'src/json/value.cpp: "% of %": count them'
add json/json_internal.hpp '#include' '#include "json/other_internal.hpp"'
printf '#pragma once\n#include "json/json_internal.hpp"\n' > "$copy/src/json/other_internal.hpp"
rejoin
broken "headers in a circle" 'json/json_internal.hpp -> json/other_internal.hpp'
add json/write.cpp 'inline namespace v0_1 {' 'namespace {
int append_twice(int value) { return value; }
}  // namespace'
add json/parse.cpp 'inline namespace v0_1 {' 'namespace {
long append_twice(long value) { return value; }
}  // namespace'
rejoin
broken "a name in two parts" 'append_twice: rename it in one of json/parse.cpp json/write.cpp'
add json/write.cpp 'inline namespace v0_1 {' 'namespace {
void set_member() {}
}  // namespace'
rejoin
broken "a name that hides an exported one" 'set_member: in src/json/write.cpp, and exported by'
add executor/gate.cpp '#include' '#include "files/files_internal.hpp"'
broken "definitions where declarations are needed" 'executor needs only the declarations of files'
sed 's/^\(.*docker  *needs: base\)/\1 place/' "$copy/src/frame.hpp" > "$OUT/frame"
mv "$OUT/frame" "$copy/src/frame.hpp"
add docker/create.cpp '#include' '#include "place/place_internal.hpp"'
rejoin
broken "a wing in another one" 'place/place_internal.hpp, whose wing places may be missing'
add json/json_internal.hpp 'inline namespace inner {' 'int wanted_by_nobody(int value);'
rejoin
broken "an export that nobody uses" 'wanted_by_nobody: nobody uses it but'
printf '// Nothing.\n' > "$copy/src/json/forgotten.cpp"
broken "a part that no list names" 'src/frame.hpp does not include src/json/forgotten.cpp: add'
echo '// edited' >> "$copy/codeexec.hpp"
broken "a header that was edited" 'codeexec.hpp is not what src/ makes: change src/, not that file'
sed 's/^\(.*json  *needs: base\)   /\1 tools/' "$copy/src/frame.hpp" > "$OUT/frame"
mv "$OUT/frame" "$copy/src/frame.hpp"
rejoin
broken "an arrow up" 'json needs tools, which stands below it'
sed 's/^\(.*regex  *needs: base\)     /\1 json/' "$copy/src/frame.hpp" > "$OUT/frame"
mv "$OUT/frame" "$copy/src/frame.hpp"
rejoin
broken "a need that is none" 'regex includes nothing of json: take it out of the table'
awk '{ print } END { for (i = 0; i < 700; ++i) print "// more" }' "$copy/src/json/write.cpp" \
  > "$OUT/long" && mv "$OUT/long" "$copy/src/json/write.cpp"
rejoin
broken "a part that is too long" 'src/json/write.cpp has [0-9]*: cut it by theme'
finish
