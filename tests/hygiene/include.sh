# However the header is included, the program compiles, links and runs: twice, with the macro late
# or twice, from two files, beside a renamed copy, and under the linker's one-definition check. The
# frame of the header decides that, so a header of one section and of what it needs has it. What the
# other sections could do to a copy beside them shows in the symbols of the build's $IMPLEMENTATION:
# all of them lie in the namespace.
. "$(dirname "$0")/lib.sh"
small_header process

compile() { # OUTPUT SOURCE FLAG...
  output=$1
  source=$2
  shift 2
  expect "$(basename "$source") compiles${1:+ ($*)}" "$CXX" -std=c++17 -O0 $WARNINGS $INCLUDE "$@" \
    -c "$source" -o "$output"
}
link() { # WHAT OUTPUT ARGUMENT...
  title=$1
  program=$2
  shift 2
  expect "$title: links" "$CXX" "$@" -pthread -o "$program"
  expect "$title: runs" "$program"
}

compile "$OUT/twice.o" "$here/twice.cpp"
link "included seven times, the macro late and twice" "$OUT/twice" "$OUT/twice.o"

flags= together="two files and a renamed copy"
printf 'int main() { return 0; }\n' > "$OUT/empty.cpp"
if "$CXX" -flto -Wodr -Werror "$OUT/empty.cpp" -o "$OUT/empty" > "$OUT/odr.log" 2>&1; then
  flags="-flto -Wodr" together="$together, compared by the linker (-flto -Wodr -Werror)"
else
  skip "$CXX cannot check for different definitions with -flto -Wodr"
fi
for file in one other renamed; do
  compile "$OUT/$file.o" "$here/$file.cpp" $flags
done
link "$together" "$OUT/three" $flags -Werror "$OUT/one.o" "$OUT/other.o" "$OUT/renamed.o"

# Macros of X11's headers, which have no prefix: the declarations come after them in many programs.
cat > "$OUT/macros.cpp" << 'PROGRAM'
#define Always 2
#define Bool int
#define CursorShape 0
#define False 0
#define KeyPress 2
#define None 0L
#define Status int
#define Success 0
#define True 1
#define Unsorted 0
#include "codeexec.hpp"
int main() { return 0; }
PROGRAM
expect "the declarations compile after the macros of X11" "$CXX" -std=c++17 $WARNINGS \
  -I"$ROOT" -fsyntax-only "$OUT/macros.cpp"

# Templates and inline functions of the standard library are weak, and the same everywhere.
if [ -z "${IMPLEMENTATION:-}" ]; then
  skip "there is no IMPLEMENTATION whose symbols could be looked at"
elif ! command -v nm > "$OUT/which"; then
  skip "nm is not installed (binutils)"
else
  nm --defined-only --extern-only --demangle "$IMPLEMENTATION" > "$OUT/symbols"
  expect "the implementation has symbols" grep -q ' T codeexec::.*::server_main(' "$OUT/symbols"
  grep -E '^[0-9a-f]+ [A-TX-Z] ' "$OUT/symbols" | grep -vE '\<codeexec::' > "$OUT/found" || true
  expect_empty "every symbol that is not weak lies in namespace codeexec" "$OUT/found"
fi
finish
