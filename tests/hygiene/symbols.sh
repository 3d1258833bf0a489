# A file that only includes the header pays nothing for it: it defines no symbol and gets no macro
# but CODEEXEC_*. Both are measured against a file with the header's standard headers alone: at -O0
# libstdc++'s <memory> leaves a few constants of its own in every file.
. "$(dirname "$0")/lib.sh"

printf '#include "codeexec.hpp"\n' > "$OUT/include_only.cpp"
declaration_half | grep -E '^ *# *include' > "$OUT/std_only.cpp"
: > "$OUT/empty.cpp"

for cxx in $(compilers); do
  for level in -O0 -O2; do
    for file in std_only include_only; do
      "$cxx" -std=c++17 $level $INCLUDE -c "$OUT/$file.cpp" -o "$OUT/$file.o"
      nm --defined-only "$OUT/$file.o" 2> "$OUT/nm.log" | awk '{ print $3 }' | sort \
        > "$OUT/$file.sym"
    done
    comm -13 "$OUT/std_only.sym" "$OUT/include_only.sym" > "$OUT/found"
    expect_empty "$cxx $level: including the header defines no symbol" "$OUT/found"
  done
  "$cxx" -std=c++17 -dM -E "$OUT/std_only.cpp" | sort > "$OUT/macros_before"
  "$cxx" -std=c++17 $INCLUDE -dM -E "$OUT/include_only.cpp" | sort > "$OUT/macros_after"
  comm -13 "$OUT/macros_before" "$OUT/macros_after" > "$OUT/macros_added"
  grep -q '^#define CODEEXEC_VERSION ' "$OUT/macros_added" || fail "$cxx: no macros were compared"
  grep -v '^#define CODEEXEC_' "$OUT/macros_added" > "$OUT/found" || true
  expect_empty "$cxx: the header adds no macro but CODEEXEC_*" "$OUT/found"
done
# Nor does any macro change what it declares: a type that differs between two files of a program is
# a crash that no compiler sees.
{ declaration_half | grep -vE '^ *# *include' && echo '#endif'; } > "$OUT/declarations.hpp"
overrides=$(grep -oE 'CODEEXEC_[A-Z_]+' "$HEADER" | grep -vE '_(HPP|VERSION.*)$' | sort -u |
  sed 's/.*/-D&=0/')
declared() { "$CXX" -x c++ -E -P "$@" "$OUT/declarations.hpp"; }
declared -std=c++17 > "$OUT/declared"
declared -std=gnu++20 $overrides -DNDEBUG -D_GNU_SOURCE -fno-exceptions -fno-rtti > "$OUT/changed"
expect "no macro and no dialect changes a declaration" diff "$OUT/declared" "$OUT/changed"
command -v clang++ > "$OUT/which" || skip "clang++ is not installed"
finish
