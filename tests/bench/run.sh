#!/bin/sh
# Builds the benchmarks with -O2 and runs them one after another:
#   [CXX=g++] sh tests/bench/run.sh [--quick] [name...]         e.g.  run.sh --quick process json
# Each runs the thing beside its floor or its rival, taking turns, and prints the ratio. Nothing
# else should be running. --quick takes fewer rounds and leaves out `cost`, whose gates are among
# the tests. The exit status tells whether all of them ran and met the limits that they state.
set -eu
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
OUT=${OUT:-${CODEEXEC_BUILD_DIR:-$ROOT/build}/bench}
CXX=${CXX:-c++}
mkdir -p "$OUT"
OUT=$(cd "$OUT" && pwd)

quick= names=
for argument; do
  case $argument in
    --quick) quick=--quick ;;
    -*) echo "tests/bench/run.sh: unknown option $argument" >&2 && exit 2 ;;
    *) names="$names $argument" ;;
  esac
done
if [ -z "$names" ]; then
  [ -n "$quick" ] || names=cost
  for file in "$ROOT"/tests/bench/*.cpp; do names="$names $(basename "$file" .cpp)"; done
fi

# The rival of the mcp benchmark comes from npm, where the interoperability tests have put it.
npm=${CODEEXEC_BUILD_DIR:-$ROOT/build}/interop/node
if [ -d "$npm/node_modules/@modelcontextprotocol/sdk" ]; then
  cp "$ROOT/tests/bench/ts_echo_server.mjs" "$npm/"
  BENCH_TS_SERVER=$npm/ts_echo_server.mjs
  export BENCH_TS_SERVER
fi

# Two at a time are built, before any of them runs.
echo $names | tr ' ' '\n' | grep -vx cost |
  xargs -P 2 -I '{}' sh -c '"$0" -std=c++17 -O2 -I"$1" "$1/tests/bench/{}.cpp" -pthread \
    -o "$2/bench-{}" || rm -f "$2/bench-{}"' "$CXX" "$ROOT" "$OUT" || true

status=0
for name in $names; do
  printf '\n== %s\n' "$name"
  if [ "$name" = cost ]; then
    OUT=$OUT/cost sh "$ROOT/tests/bench/cost.sh" ${quick:+--gates} || status=1
    continue
  fi
  [ -x "$OUT/bench-$name" ] || {
    echo "FAILED: $name does not build"
    status=1
    continue
  }
  code=0
  "$OUT/bench-$name" $quick || code=$?
  [ $code -eq 0 ] || echo "FAILED: $name ended with status $code"
  [ $code -eq 0 ] || status=1
done
exit $status
