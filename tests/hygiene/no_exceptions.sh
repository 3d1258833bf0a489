# Everything compiles, and works, under -fno-exceptions -fno-rtti. Compiling alone proves little:
# code that throws in a file without exceptions shows only when it runs.
. "$(dirname "$0")/lib.sh"

for cxx in $(compilers); do
  expect "$cxx: compiles and links" "$cxx" -std=c++17 -O0 $WARNINGS $INCLUDE -fno-exceptions \
    -fno-rtti "$here/no_exceptions.cpp" -pthread -o "$OUT/no_exceptions"
  expect "$cxx: runs" "$OUT/no_exceptions"
done
finish
