# Shared by the scripts of this folder, which ctest runs and which also run by hand:
#   [HEADER=codeexec.hpp] [OUT=build/hygiene] [CXX=g++] sh tests/hygiene/text.sh
# Each prints what it checked, one line each: "ok: ..." or "FAILED: ..." or "SKIPPED: ...".
set -eu
LC_ALL=C
export LC_ALL
here=$(cd "$(dirname "$0")" && pwd)
name=$(basename "$0" .sh)
ROOT=${ROOT:-$(cd "$here/../.." && pwd)}
HEADER=${HEADER:-$ROOT/codeexec.hpp}
OUT=${OUT:-${CODEEXEC_BUILD_DIR:-$ROOT/build}/hygiene/$name}
CXX=${CXX:-c++}
# Where the compiler of the build is one that counts (helpers/counted.sh), the others are, too.
case $CXX in
  */compilers/*) PATH=${CXX%/*}:$PATH ;;
esac
WARNINGS="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wold-style-cast -Werror"
INCLUDE="-I$(dirname "$HEADER")"
mkdir -p "$OUT"
failures=0

ok() { printf 'ok: %s\n' "$*"; }
skip() { printf 'SKIPPED: hygiene.%s: %s\n' "$name" "$*"; }
fail() {
  printf 'FAILED: %s\n' "$*"
  failures=$((failures + 1))
}

# expect WHAT COMMAND...: the command must succeed; what it printed is shown when it does not.
expect() {
  what=$1
  shift
  if "$@" > "$OUT/expect.log" 2>&1; then
    ok "$what"
  else
    fail "$what: $*"
    head -n 40 "$OUT/expect.log"
  fi
}

# expect_empty WHAT FILE: the file lists what is wrong.
expect_empty() {
  if [ -s "$2" ]; then
    fail "$1:"
    head -n 20 "$2"
  else
    ok "$1"
  fi
}

# The compilers to try: the one of the build, and every other one that is here.
compilers() {
  echo "$CXX"
  for other in g++ clang++; do
    command -v "$other" > "$OUT/which" || continue
    is_same_compiler "$other" || echo "$other"
  done
}
# "g++ (Debian 12) 12.2.0" and "c++ (Debian 12) 12.2.0" are one compiler.
version_line() { "$1" --version | sed -n '1s/^[^ ]* //p'; }
is_same_compiler() { [ "$(version_line "$1")" = "$(version_line "$CXX")" ]; }

# The two halves of the header: up to the end of the include guard, and the rest.
declaration_half() { sed '/^#endif  *\/\/ CODEEXEC_HPP$/,$d' "$HEADER"; }
definition_half() { sed '1,/^#endif  *\/\/ CODEEXEC_HPP$/d' "$HEADER"; }
# The manual: the comment at the top.
manual() { awk '!/^\/\// { exit } { print }' "$HEADER"; }
version_of() { sed -n "s/^#define CODEEXEC_VERSION_$1 \\([0-9]*\\)\$/\\1/p" "$HEADER"; }

# small_header SECTION: a header of that section and of what it needs, as $OUT/small/codeexec.hpp.
# It has the frame of the whole one, and compiles in a small part of the time. Sets $INCLUDE.
small_header() {
  command -v python3 > "$OUT/which" || {
    skip "python3 is not installed"
    exit 77
  }
  mkdir -p "$OUT/small"
  expect "src/join.py makes a header of $1" \
    sh -c "python3 '$ROOT/src/join.py' --only $1 > '$OUT/small/codeexec.hpp'"
  INCLUDE=-I$OUT/small
}

finish() {
  [ "$failures" -eq 0 ] || printf '%s: %d failed\n' "$name" "$failures"
  [ "$failures" -eq 0 ]
}
