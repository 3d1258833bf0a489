#!/bin/sh
# Runs the everyday tasks with all that they can use:   sh tests/everyday/run.sh [--install] [...]
#
# --install installs the programs that tests/run.sh leaves out, for minutes; the other options are
# those of run.py. $CODEEXEC_BUILD_DIR is a build with the programs codeexec-mcp and
# codeexec-test-deny.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${CODEEXEC_BUILD_DIR:-$root/build}
heavy=
[ "${1:-}" != --install ] || {
  heavy=--heavy
  shift
}
sh "$root/tests/everyday/install.sh" "$build/everyday" $heavy
exec python3 "$root/tests/everyday/run.py" --program "$build/codeexec-mcp" \
  --deny "$build/tests/codeexec-test-deny" --tools "$build/everyday" $heavy "$@"
