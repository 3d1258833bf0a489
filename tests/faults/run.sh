#!/bin/sh
# Every system call of the library made to fail, one at a time; what must hold then is written in
# faults.cpp:
#   [OUT=build/faults] sh tests/faults/run.sh [--all [--every N]] [--told] [--jobs N]
#                                             [SCENARIO[:WHO:CALL...]...]
# Without --all the first and the last call of each kind, in a minute of one processor; with it all
# calls and all errnos, 76000 faults, which takes more than an hour. CODEEXEC_FAULTS is a built
# codeexec-test-faults; without it the program is built here. Prints "ok: ...", "FAILED: ..." and,
# where processes cannot be traced, "SKIPPED: ...".
set -eu
here=$(cd "$(dirname "$0")" && pwd)
ROOT=$(cd "$here/../.." && pwd)
OUT=${OUT:-${CODEEXEC_BUILD_DIR:-$ROOT/build}/faults}
program=${CODEEXEC_FAULTS:-}
if [ -z "$program" ]; then
  mkdir -p "$OUT"
  program=$OUT/codeexec-test-faults
  implementation=$OUT/implementation.o
  flags="-std=c++17 -O0 -I$ROOT"
  # The implementation takes half a minute, and only when it has changed.
  if ! [ "$implementation" -nt "$ROOT/codeexec.hpp" ]; then
    ${CXX:-c++} $flags -c "$ROOT/tests/helpers/impl.cpp" -o "$implementation"
  fi
  ${CXX:-c++} $flags "$here"/faults.cpp "$here"/*_scenarios.cpp "$implementation" -pthread \
    -o "$program"
fi
status=0
"$program" "$@" || status=$?
[ "$status" -eq 77 ] && status=0
exit "$status"
