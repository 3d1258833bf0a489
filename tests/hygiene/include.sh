# However the header is included, the program compiles, links and runs: twice, with the macro late
# or twice, from two files, beside a renamed copy, and under the linker's one-definition check.
. "$(dirname "$0")/lib.sh"

compile() { # OUTPUT SOURCE FLAG...
  output=$1
  source=$2
  shift 2
  expect "$(basename "$source") compiles${1:+ ($*)}" "$CXX" -std=c++17 -O0 $WARNINGS $INCLUDE "$@" \
    -c "$source" -o "$output"
}
link() { # WHAT OUTPUT ARGUMENT...
  what=$1
  program=$2
  shift 2
  expect "$what: links" "$CXX" "$@" -pthread -o "$program"
  expect "$what: runs" "$program"
}

compile "$OUT/twice.o" "$here/twice.cpp"
link "included seven times, the macro late and twice" "$OUT/twice" "$OUT/twice.o"

compile "$OUT/one.o" "$here/one.cpp"
compile "$OUT/other.o" "$here/other.cpp"
compile "$OUT/renamed.o" "$here/renamed.cpp"
link "two files and a renamed copy" "$OUT/three" "$OUT/one.o" "$OUT/other.o" "$OUT/renamed.o"

printf 'int main() { return 0; }\n' > "$OUT/empty.cpp"
if "$CXX" -flto -Wodr -Werror "$OUT/empty.cpp" -o "$OUT/empty" > "$OUT/odr.log" 2>&1; then
  for file in one other renamed; do
    compile "$OUT/$file.lto.o" "$here/$file.cpp" -flto -Wodr
  done
  link "the same, compared by the linker (-flto -Wodr -Werror)" "$OUT/lto" -flto -Wodr -Werror \
    "$OUT/one.lto.o" "$OUT/other.lto.o" "$OUT/renamed.lto.o"
else
  skip "$CXX cannot check for different definitions with -flto -Wodr"
fi
finish
