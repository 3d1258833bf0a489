# Everything compiles, and works, under -fno-exceptions -fno-rtti. Compiling alone proves little:
# code that throws in a file without exceptions shows only when it runs. The compiler of the build
# does that with every test (the leg `least` of run.sh); here it is another one that is here.
. "$(dirname "$0")/lib.sh"

cxx=$(compilers | tail -n 1)
expect "$cxx: compiles and links" "$cxx" -std=c++17 -O0 $WARNINGS $INCLUDE -fno-exceptions \
  -fno-rtti "$here/no_exceptions.cpp" -pthread -o "$OUT/no_exceptions"
expect "$cxx: runs" "$OUT/no_exceptions"
finish
