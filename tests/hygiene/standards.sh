# Both halves compile without a warning in every standard, with every compiler that is here. The
# GNU dialects matter too: in them `linux` and `unix` are macros. The definitions take a while, so
# each compile of them shows several things, and some are done elsewhere with the same warnings:
#   c++17     examples.sh with the compiler of the build; no_exceptions.sh with another one
#   gnu++17   consumer.sh with the compiler of the build; the leg asan+ubsan with clang++
#   c++20     here
#   c++23     here, and with clang++ on libc++ where there is one
# --quick: both halves in C++17 with the compiler of the build, for a run without those others.
. "$(dirname "$0")/lib.sh"

printf '#include "codeexec.hpp"\n' > "$OUT/declarations.cpp"
# What a program may have included before: functions of std that a call with a text would find, too.
{
  printf '#include <%s>\n' algorithm filesystem iomanip iostream iterator numeric regex valarray
  printf '#define CODEEXEC_IMPLEMENTATION\n#include "codeexec.hpp"\n'
} > "$OUT/definitions.cpp"
printf '#include <string>\n' > "$OUT/empty.cpp"
accepts() { "$@" -fsyntax-only "$OUT/empty.cpp" > "$OUT/accepts.log" 2>&1; }

check() { # HALF COMPILER FLAG...
  half=$1
  shift
  expect "$*: $half" "$@" $WARNINGS $INCLUDE -fsyntax-only "$OUT/$half.cpp"
}
if [ "${1:-}" = --quick ]; then
  for half in declarations definitions; do check $half "$CXX" -std=c++17; done
  finish
  exit
fi
libcxx=
if ! command -v clang++ > "$OUT/which"; then
  skip "clang++ is not installed"
elif accepts clang++ -std=c++17 -stdlib=libc++; then
  libcxx=-stdlib=libc++
  check declarations clang++ -std=c++17 $libcxx
else
  skip "libc++ is not installed"
fi
for cxx in $(compilers); do
  for std in c++17 gnu++17 c++20 c++23; do
    known=$std
    [ $std != c++23 ] || accepts "$cxx" -std=c++23 || known=c++2b
    accepts "$cxx" -std=$known || {
      skip "$cxx does not know -std=$std"
      continue
    }
    check declarations "$cxx" -std=$known
    case $std:$cxx in
      c++17:* | gnu++17:*) ;;
      c++23:*clang++) check definitions "$cxx" -std=$known $libcxx ;;
      *) check definitions "$cxx" -std=$known ;;
    esac
  done
done
# As on an older system: without what newer ones can. Tests run so with the sections (run.sh).
lacks=$(grep -oE 'CODEEXEC_HAS_[A-Z_]+' "$HEADER" | sort -u | sed 's/.*/-D&=0/')
check definitions "$CXX" -std=c++17 $lacks
finish
