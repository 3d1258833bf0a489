# Both halves compile without a warning in every standard, with every compiler that is here. The
# GNU dialects matter too: in them `linux` and `unix` are macros.
. "$(dirname "$0")/lib.sh"

printf '#include "codeexec.hpp"\n' > "$OUT/declarations.cpp"
printf '#define CODEEXEC_IMPLEMENTATION\n#include "codeexec.hpp"\n' > "$OUT/definitions.cpp"
printf '#include <string>\n' > "$OUT/empty.cpp"
accepts() { "$@" -fsyntax-only "$OUT/empty.cpp" > "$OUT/accepts.log" 2>&1; }

check() { # COMPILER FLAG...
  for half in declarations definitions; do
    expect "$*: $half" "$@" $WARNINGS $INCLUDE -fsyntax-only "$OUT/$half.cpp"
  done
}
for cxx in $(compilers); do
  for std in c++17 gnu++17 c++20 c++23; do
    if accepts "$cxx" -std=$std; then
      check "$cxx" -std=$std
    elif [ $std = c++23 ] && accepts "$cxx" -std=c++2b; then
      check "$cxx" -std=c++2b
    else
      skip "$cxx does not know -std=$std"
    fi
  done
done
if ! command -v clang++ > "$OUT/which"; then
  skip "clang++ is not installed"
elif accepts clang++ -std=c++17 -stdlib=libc++; then
  check clang++ -std=c++17 -stdlib=libc++
else
  skip "libc++ is not installed"
fi
finish
