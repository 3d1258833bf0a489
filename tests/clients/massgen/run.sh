#!/bin/sh
# MassGen's own package against the built server: all agents of the configurations that it ships for
# the execution of commands, of its two files of permissions, and of that of the sandbox-runtime:
#   [CODEEXEC_MCP=build/codeexec-mcp] [OUT=build/massgen] sh tests/clients/massgen/run.sh [NAME...]
# NAME begins the name of a file of MassGen's. The package comes from PyPI in the version written in
# requirements.txt, or the newest with CODEEXEC_NEWEST=1, and goes into OUT. Agents in containers
# need CODEEXEC_TEST_DOCKER=1, which says that $DOCKER_HOST is an engine for that, with
# codeexec-test/busybox (tests/helpers/engine.sh), and a server that is static: CODEEXEC_MCP_STATIC,
# or CODEEXEC_MCP if it is.
# Each step prints "ok: ...", "FAILED: ..." or "SKIPPED: ...".
set -eu
here=$(cd "$(dirname "$0")" && pwd)
ROOT=$(cd "$here/../../.." && pwd)
build=${CODEEXEC_BUILD_DIR:-$ROOT/build}
OUT=${OUT:-$build/massgen}
CODEEXEC_MCP=${CODEEXEC_MCP_STATIC:-${CODEEXEC_MCP:-$build/codeexec-mcp}}
export CODEEXEC_MCP
mkdir -p "$OUT"
OUT=$(cd "$OUT" && pwd)

skip() {
  echo "SKIPPED: massgen: $1"
  exit 0
}
[ -x "$CODEEXEC_MCP" ] || { echo "FAILED: there is no server at $CODEEXEC_MCP" && exit 1; }
[ "$(uname -s)" = Linux ] || skip "it is tested on Linux"
command -v python3 > "$OUT/probe.log" || skip "python3 is not installed"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || skip "it needs Python 3.11"

wanted=$OUT/wanted.txt
cat "$here/requirements.txt" "$here/requirements-after.txt" > "$wanted"
package=$(cat "$here/requirements.txt")
[ -z "${CODEEXEC_NEWEST:-}" ] || { package=massgen && date > "$wanted"; }
if ! cmp -s "$wanted" "$OUT/venv/requirements.txt"; then
  rm -rf "${OUT:?}/venv"
  pip="$OUT/venv/bin/python -m pip install --quiet --disable-pip-version-check"
  { python3 -m venv "$OUT/venv" && $pip "$package" && $pip -r "$here/requirements-after.txt"
  } > "$OUT/pip.log" 2>&1 || skip "the package cannot be installed: $OUT/pip.log"
  cp "$wanted" "$OUT/venv/requirements.txt"
fi
PATH=$OUT/venv/bin:$PATH
export PATH

status=0
if [ -z "${CODEEXEC_NEWEST:-}" ]; then
  python "$here/keys.py" > "$OUT/keys.json" 2> "$OUT/keys.log" ||
    { echo "FAILED: massgen keys: $OUT/keys.log" && status=1; }
  if diff -u "$here/keys.json" "$OUT/keys.json" > "$OUT/keys.diff"; then
    echo "ok: massgen keys"
  else
    echo "FAILED: massgen keys: keys.json is not what the package has: $OUT/keys.diff"
    status=1
  fi
fi
rm -rf "${OUT:?}/run"
mkdir "$OUT/run"
timeout -k 10 900 python -W ignore "$here/check.py" "$OUT/run" "$@" 2> "$OUT/run.log" || status=1
exit $status
