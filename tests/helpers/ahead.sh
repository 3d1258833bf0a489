#!/bin/sh
# Does what needs nothing but time of the processors, one after the other, beside tests that wait
# most of the time; run.sh starts it with the lowest priority:
#   [CODEEXEC_COMPILERS=DIR:PATH] sh tests/helpers/ahead.sh BUILD JOBS WORK...
# WORK is one of these. Each leaves BUILD/ahead/NAME.status with its exit status, and a log.
#   LEG=TARGET[,TARGET...]   builds these targets in BUILD/LEG; the name is LEG
#   fuzzers                  builds the fuzzers
#   hygiene                  the tests that compile all of the header many times
#   portability, tidy, release   these scripts
# CODEEXEC_COMPILERS: the PATH of what is to count its compiles. BUILD/ahead/engine appears when the
# images of the engine are made, or when there is none, and sets what tests of containers look at;
# BUILD/ahead/clients appears when no other test installs the official clients.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$1 jobs=$2
shift 2
compilers=${CODEEXEC_COMPILERS:-$PATH}

# until_ready FILE: waits for it, and does what it says.
until_ready() {
  while [ ! -f "$build/ahead/$1" ]; do sleep 1; done
  . "$build/ahead/$1"
}
# script NAME COMMAND...
script() {
  name=$1
  shift
  OUT=$build/$name "$@" > "$build/$name.log" 2>&1
}
work() {
  case $1 in
    *=*)
      PATH=$compilers cmake --build "$build/${1%%=*}" -j "$jobs" \
        --target $(echo "${1#*=}" | tr ',' ' ') > "$build/${1%%=*}/ahead.log" 2>&1
      ;;
    fuzzers) OUT=$build/fuzz PATH=$compilers sh "$root/tests/fuzz/run.sh" 0 \
      > "$build/fuzzers.log" 2>&1 ;;
    hygiene)
      until_ready engine
      : > "$build/hygiene.log"
      cd "$build/tests/hygiene" || return
      rm -f Testing/Temporary/LastTest.log
      ctest -L '^whole$' -j "$jobs" --output-on-failure > "$build/hygiene.log" 2>&1
      ;;
    portability) script portability env PATH="$compilers" \
      sh "$root/tests/portability/run.sh" --quick ;;
    tidy) script tidy sh "$root/tests/hygiene/tidy.sh" ;;
    release)
      until_ready engine
      until_ready clients
      script release env INTEROP="$build/interop" CODEEXEC_MCP="$build/codeexec-mcp" \
        sh "$root/tests/release/run.sh"
      ;;
    *)
      echo "tests/helpers/ahead.sh: unknown work $1" >&2
      return 2
      ;;
  esac
}
for item; do
  status=0
  (work "$item") || status=$?
  echo $status > "$build/ahead/${item%%=*}.status.new"
  mv "$build/ahead/${item%%=*}.status.new" "$build/ahead/${item%%=*}.status"
done
