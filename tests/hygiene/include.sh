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

# Macros without a prefix, of headers that many programs include before this one: of X11, of
# sys/sysmacros.h, of Apple's AssertMacros.h, of Qt. What stands here for their values would stand
# in the text of the header wherever it uses such a name.
for macro in Always Bool CursorShape False KeyPress None Status Success True Unsorted \
  signals slots emit foreach forever; do
  echo "#define $macro foreign_$macro"
done > "$OUT/macros.cpp"
for macro in 'major(x)' 'minor(x)' 'makedev(x, y)' 'check(x)' 'check_noerr(x)' 'require(x, y)' \
  'require_noerr(x, y)' 'verify(x)' 'verify_noerr(x)'; do
  echo "#define $macro foreign_${macro%(*}"
done >> "$OUT/macros.cpp"
cat >> "$OUT/macros.cpp" << 'PROGRAM'
#include "codeexec.hpp"
#define CODEEXEC_IMPLEMENTATION
#include "codeexec.hpp"
afterwards: check(1) signals slots None
PROGRAM
expect "the header can be read after macros of other headers" "$CXX" -std=c++17 -I"$ROOT" -E -P \
  "$OUT/macros.cpp" -o "$OUT/macros.ii"
grep -v '^afterwards: ' "$OUT/macros.ii" | grep 'foreign_' > "$OUT/found" || true
expect_empty "it is the same as without them" "$OUT/found"
expect "they are there again after it" grep -q \
  '^afterwards: foreign_check foreign_signals foreign_slots foreign_None$' "$OUT/macros.ii"

# As these headers define them.
cat > "$OUT/macros.cpp" << 'PROGRAM'
#define Bool int
#define None 0L
#define Status int
#define Success 0
#define True 1
#define check(x) x
#define major(x) gnu_dev_major(x)
#define signals public
#define slots
#include "codeexec.hpp"
codeexec::Result judge(const codeexec::Executor& executor, const codeexec::Command& command) {
  return check((executor.check)(command));
}
PROGRAM
expect "the declarations compile after macros of other headers" "$CXX" -std=c++17 $WARNINGS \
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
