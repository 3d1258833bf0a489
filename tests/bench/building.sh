#!/bin/sh
# What the rooms of src/ save those who change the library: the same library and the same tests,
# built from the sections and from codeexec.hpp, by the clock, two compilers at a time.
#   [CXX=g++] sh tests/bench/building.sh [--rounds N] [SECTION]     (2 rounds; the section regex)
#   --gates   without what depends on time: nothing
. "$(dirname "$0")/rows.sh"
if [ "${1:-}" = --gates ]; then
  echo "SKIPPED: building: it has nothing but times"
  exit 0
fi
rounds=2
if [ "${1:-}" = --rounds ]; then
  rounds=$2
  shift 2
fi
section=${1:-regex}
part=$(sed -n "s|^#include \"\\($section/[a-z0-9_]*\\.cpp\\)\"\$|\\1|p" "$ROOT/src/frame.hpp" |
  head -n 1)
[ -n "$part" ] || {
  echo "tests/bench/building.sh: there is no section $section" >&2
  exit 2
}

# Copies, so that what is touched is nobody else's.
copy=$OUT/copy
rm -rf "$copy"
mkdir -p "$copy"
(cd "$ROOT" && git ls-files -z | xargs -0 tar cf - 2> "$OUT/tar.log") | tar xf - -C "$copy"
quietly() { "$@" > "$OUT/log" 2>&1 || { cat "$OUT/log" && exit 1; }; }
configure() { # DIRECTORY CMAKE_ARGUMENT...
  directory=$1
  shift
  quietly cmake -S "$copy" -B "$OUT/$directory" -DCMAKE_CXX_COMPILER="$CXX" \
    -DCMAKE_BUILD_TYPE=None -DCODEEXEC_BUILD_EXAMPLES=OFF "$@"
}
# least FILE: the least of its numbers
least() { sort -n "$1" | head -n 1; }
# clock NAME COMMAND...: adds its milliseconds to the list of that name
clock() {
  list=$OUT/$1.ms
  shift
  start=$(date +%s%N)
  "$@"
  echo $((($(date +%s%N) - start) / 1000000)) >> "$list"
}
build() { quietly cmake --build "$OUT/$1" -j 2 --target "$2"; }
library() {
  rm -f "$OUT/$1"/*.a
  find "$OUT/$1" -name '*.o' -exec rm {} +
  build "$1" codeexec_impl
}
changed() { # DIRECTORY FILE TARGET
  touch "$copy/$2"
  build "$1" "$3"
  (cd "$OUT/$1" && quietly ctest -j 3 -L "^$section\$")
}

rm -f "$OUT"/*.ms
configure library-sections -DCODEEXEC_BUILD_TESTS=OFF -DCMAKE_CXX_FLAGS=-O2
configure library-joined -DCODEEXEC_BUILD_TESTS=OFF -DCMAKE_CXX_FLAGS=-O2 -DCODEEXEC_JOINED=ON
configure tests-sections -DCODEEXEC_BUILD_TESTS=ON -DCMAKE_CXX_FLAGS=-O0
configure tests-joined -DCODEEXEC_BUILD_TESTS=ON -DCMAKE_CXX_FLAGS=-O0 -DCODEEXEC_JOINED=ON
build tests-sections "codeexec-test-$section"
build tests-joined codeexec-tests
round=0
while [ $round -lt "$rounds" ]; do
  round=$((round + 1))
  clock library-sections library library-sections
  clock library-joined library library-joined
  clock tests-sections changed tests-sections "src/$part" "codeexec-test-$section"
  # Every test includes the header.
  clock tests-joined changed tests-joined codeexec.hpp codeexec-tests
done
# beside WHAT NAME PERCENT: a row with the gate of so many percent
beside() {
  ours=$(least "$OUT/$2-sections.ms")
  theirs=$(least "$OUT/$2-joined.ms")
  row "$1" "$ours" ms "from codeexec.hpp" "$theirs"
  limit=$3
  row "$1, of that" $((100 * ours / theirs)) percent
}
beside "the library at -O2, from nothing" library 65
beside "one part of $section changed: build, and its tests" tests 20
[ "$failures" -eq 0 ]
