# Who forgets the implementation macro, or sets it twice, reads a message of the linker. The manual
# explains it in the same words, which are checked here against the linker itself.
. "$(dirname "$0")/lib.sh"

namespace=codeexec::v$(version_of MAJOR)_$(version_of MINOR)
undefined="undefined reference to \`$namespace::"
multiple="multiple definition of"

expect_words() { # WHAT WORDS
  what=$1
  words=$2
  grep -qF "$words" "$OUT/link.log" || {
    fail "$what: the linker does not say: $words"
    head -n 5 "$OUT/link.log"
    return
  }
  ok "$what: the linker says: $words"
  manual > "$OUT/manual"
  expect "$what: the manual says so, too" grep -qF "$words" "$OUT/manual"
}

cat > "$OUT/forgotten.cpp" << 'CPP'
#include "codeexec.hpp"
int main() { return codeexec::is_utf8("") ? 0 : 1; }
CPP
# One section is enough to define something twice.
cat > "$OUT/doubled.cpp" << 'CPP'
#define CODEEXEC_IMPLEMENTATION
#include "codeexec.hpp"
CPP
"$CXX" -std=c++17 -O0 $INCLUDE -c "$OUT/forgotten.cpp" -o "$OUT/forgotten.o"
small_header base
"$CXX" -std=c++17 -O0 $INCLUDE -c "$OUT/doubled.cpp" -o "$OUT/doubled.o"
if "$CXX" "$OUT/forgotten.o" -pthread -o "$OUT/program" > "$OUT/link.log" 2>&1; then
  fail "a program without the macro links"
fi
expect_words "macro forgotten" "$undefined"
if "$CXX" "$OUT/forgotten.o" "$OUT/doubled.o" "$OUT/doubled.o" -pthread -o "$OUT/program" \
  > "$OUT/link.log" 2>&1; then
  fail "a program with the macro in two files links"
fi
expect_words "macro in two files" "$multiple"
finish
