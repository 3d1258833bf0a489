# The header, and the rest of the sources, as text.
. "$(dirname "$0")/lib.sh"

# every source file -------------------------------------------------------------------------------

cd "$ROOT"
find . \( -name .git -o -name build -o -name 'build-*' -o -name node_modules -o -name .venv \
  -o -name corpus -o -name __pycache__ \) -prune -o -type f \( -name '*.hpp' -o -name '*.cpp' \
  -o -name '*.sh' -o -name '*.awk' -o -name '*.py' -o -name '*.mjs' -o -name '*.js' \
  -o -name '*.css' -o -name '*.html' -o -name CMakeLists.txt \
  -o -name 'Dockerfile*' -o -path './.ci/run' \) -print | sort > "$OUT/sources"
[ "$HEADER" = "$ROOT/codeexec.hpp" ] || echo "$HEADER" >> "$OUT/sources"
[ "$(wc -l < "$OUT/sources")" -gt 10 ] || fail "the sources were not found below $ROOT"

# everywhere WHAT PATTERN: no line of a source file matches.
everywhere() {
  xargs grep -nE "$2" < "$OUT/sources" > "$OUT/found" || true
  expect_empty "$1" "$OUT/found"
}
everywhere "no line is longer than 100 columns" '^.{101,}'
everywhere "no tabs" "$(printf '\t')"
everywhere "no blanks at the end of a line" '[[:blank:]]$'
everywhere "no carriage returns" "$(printf '\r')"
# The brackets keep this line from finding itself.
later='(TO[D]O|FIX[M]E|XX[X]|HAC[K])([^A-Za-z_]|$)'
everywhere "nothing is left for later" "(//|#)(.*[^A-Za-z_])?$later"
xargs grep -n "[^ -~$(printf '\t')]" < "$OUT/sources" > "$OUT/found" || true
expect_empty "only ASCII" "$OUT/found"

# plain words -------------------------------------------------------------------------------------

# Comments and documents say who does what, in the words of the field. What stands between `` is the
# name of something, as is a word with blanks behind it, in a table; the licence is not our text.
find src examples docker docs .github README.md -type f \( -name '*.[ch]pp' -o -name '*.md' \
  -o -name '*.js' -o -name '*.py' -o -name '*.sh' -o -name '*.yaml' -o -name 'Dockerfile*' \) \
  | sort > "$OUT/prose"
cat > "$OUT/idioms" << 'END'
told|report, record, show or answer; "known" where something cannot be told
tell|report, say, show; distinguish; know
tells|reports, says, shows
whoever|name it: any process, anyone who
whomever|name it: by any process
nobody|no caller, no process, no other user; or turn the sentence: nothing does
shall|must, should or will
for want of|because there is no
of which it|a sentence of its own
that of which|a sentence of its own
none of its business|say why: it may hold secrets
hence why|so
what is what|name the two things
END
xargs awk '
  NR == FNR { split($0, pair, "|"); idiom[++idioms] = pair[1]; advice[pair[1]] = pair[2]; next }
  FNR == 1 { sign = FILENAME ~ /\.md$/ ? "" : FILENAME ~ /\.([ch]pp|js)$/ ? "//" : "#" }
  /above copyright notice|IN NO EVENT SHALL/ { next }
  {
    at = index($0, sign)
    if (sign != "" && at == 0) next
    text = sign == "" ? $0 : substr($0, at)
    gsub(/`[^`]*`/, "", text)
    gsub(/[A-Za-z_]+   +/, "", text)
    text = tolower(text)
    gsub(/[^a-z]+/, " ", text)
    for (i = 1; i <= idioms; ++i)
      if (index(" " text " ", " " idiom[i] " "))
        printf "%s:%d: %s: write %s\n", FILENAME, FNR, idiom[i], advice[idiom[i]]
  }' "$OUT/idioms" < "$OUT/prose" > "$OUT/found"
[ "$(wc -l < "$OUT/prose")" -gt 100 ] || fail "the comments and documents were not found"
expect_empty "comments and documents are in plain words" "$OUT/found"

# the page of --report ----------------------------------------------------------------------------

if command -v node > "$OUT/which"; then
  expect "the script of the page is JavaScript" node --check src/report/page.js
else
  skip "there is no node to read src/report/page.js"
fi

# the header --------------------------------------------------------------------------------------

grep -nE "(^|[^A-Za-z_])$later" "$HEADER" > "$OUT/found" || true
expect_empty "nothing is left for later in the header, in code either" "$OUT/found"

lines=$(manual | wc -l)
if [ "$lines" -le 160 ]; then
  ok "the manual has $lines lines (limit 160)"
else
  fail "the manual has $lines lines (limit 160)"
fi

declaration_half > "$OUT/declarations"
definition_half > "$OUT/definitions"
[ -s "$OUT/declarations" ] && [ -s "$OUT/definitions" ] ||
  fail "the halves are not divided by a line '#endif  // CODEEXEC_HPP'"

heavy='regex|iostream|istream|ostream|sstream|fstream|filesystem|random|future|locale'
grep -nE "^ *# *include *<($heavy)>" "$HEADER" > "$OUT/found" || true
expect_empty "neither half includes <regex>, streams, <filesystem>, <random>, <future>, <locale>" \
  "$OUT/found"
grep -nE '^ *# *include' "$OUT/declarations" | grep -vE '<[a-z_]+>' > "$OUT/found" || true
expect_empty "the declaration half includes only standard C++ headers" "$OUT/found"
grep -nE '^ *# *include *<(functional|thread|mutex|condition_variable|map|unordered_map|set)>' \
  "$OUT/declarations" > "$OUT/found" || true
expect_empty "the declaration half includes no heavy standard header" "$OUT/found"
grep -n '__has_include' "$OUT/declarations" > "$OUT/found" || true
expect_empty "the declaration half does not look for headers" "$OUT/found"
grep -nE '^ *# *define' "$HEADER" | grep -vE '# *define +CODEEXEC_' > "$OUT/found" || true
expect_empty "every macro is named CODEEXEC_*" "$OUT/found"
grep -nE '^ *namespace *\{' "$OUT/declarations" > "$OUT/found" || true
expect_empty "no anonymous namespace in the declaration half" "$OUT/found"

# versions ----------------------------------------------------------------------------------------

major=$(version_of MAJOR)
minor=$(version_of MINOR)
patch=$(version_of PATCH)
expect "the first line says v$major.$minor.$patch" \
  sh -c "head -n 1 '$HEADER' | grep -qE '[^0-9.]v$major\\.$minor\\.$patch([^0-9.]|\$)'"
expect "CODEEXEC_VERSION follows from its parts" \
  grep -qx "#define CODEEXEC_VERSION $((major * 10000 + minor * 100 + patch))" "$HEADER"
expect "the inline namespace is v${major}_$minor" \
  grep -qx "inline namespace v${major}_$minor {" "$HEADER"
grep '^inline namespace v' "$HEADER" | grep -vx "inline namespace v${major}_$minor {" \
  > "$OUT/found" || true
expect_empty "the inline namespace is the same in all of it" "$OUT/found"

# the example -------------------------------------------------------------------------------------

# The manual shows a whole program under a heading that names its file, "(examples/NAME.cpp)": it is
# that file without the comment at its top. A blank line and other text may follow it.
without_blanks_around() {
  awk 'NF { started = 1 } started { text = text $0 "\n" } NF { kept = text }
    END { printf "%s", kept }' "$1"
}
example=$(manual | grep -oE '\(examples/[a-z_]+\.cpp\)$' | head -n 1 | tr -d '()')
if [ -n "$example" ] && [ -f "$ROOT/$example" ]; then
  awk '!body && /^\/\// { next } { body = 1; print }' "$ROOT/$example" > "$OUT/example_code"
  without_blanks_around "$OUT/example_code" > "$OUT/example"
  manual | sed "1,/($(echo "$example" | tr / .))\$/d; s|^// \{0,3\}||" > "$OUT/shown_code"
  without_blanks_around "$OUT/shown_code" > "$OUT/shown_and_more"
  lines=$(wc -l < "$OUT/example")
  head -n $((lines + 1)) "$OUT/shown_and_more" > "$OUT/shown"
  echo >> "$OUT/example"
  expect "the program in the manual is $example" diff "$OUT/shown" "$OUT/example"
else
  fail "the manual does not name the file of its program, (examples/NAME.cpp)"
fi

expect "the licence is MIT" grep -q '^MIT License$' "$ROOT/LICENSE"
finish
