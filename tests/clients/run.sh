#!/bin/sh
# Real client programs against the built server, with a model that is none (mock_model.py):
#   [CODEEXEC_MCP=build/codeexec-mcp] [OUT=build/clients] sh tests/clients/run.sh \
#     [--quick] [--newest] [client...]
# Clients: claude-code codex gemini qwen opencode openai-agents pydantic-ai langchain smolagents
# fastmcp massgen, or all, or with --quick those that take few packages and little time. Their
# packages come from npm and PyPI and go into OUT, in the versions written here, or with --newest in
# those that are newest today.
# Each step prints "ok: ...", "FAILED: ..." or, when a client cannot be had here, "SKIPPED: ...".
set -eu
here=$(cd "$(dirname "$0")" && pwd)
ROOT=$(cd "$here/../.." && pwd)
OUT=${OUT:-${CODEEXEC_BUILD_DIR:-$ROOT/build}/clients}
CODEEXEC_MCP=${CODEEXEC_MCP:-${CODEEXEC_BUILD_DIR:-$ROOT/build}/codeexec-mcp}
newest=no clients= quick=no
for word; do
  case $word in
    --newest) newest=yes ;;
    --quick) quick=yes ;;
    -*) echo "FAILED: tests/clients/run.sh has no option $word" && exit 2 ;;
    *) clients="$clients $word" ;;
  esac
done
if [ $quick = yes ]; then
  clients="$clients claude-code codex gemini qwen opencode openai-agents fastmcp"
fi
clients=${clients:-claude-code codex gemini qwen opencode openai-agents pydantic-ai langchain
  smolagents fastmcp massgen}
[ $newest = no ] || OUT=$OUT-newest
mkdir -p "$OUT"
OUT=$(cd "$OUT" && pwd)
. "$here/../helpers/packages.sh"
status=0

skip() { echo "SKIPPED: clients $1: $2"; }
[ -x "$CODEEXEC_MCP" ] || { echo "FAILED: there is no server at $CODEEXEC_MCP" && exit 1; }
[ -d /proc/self ] || { skip all "there is no /proc to see processes in" && exit 0; }
for program in python3 git; do
  command -v $program > "$OUT/probe.log" || { skip all "$program is not installed" && exit 0; }
done
python3 -c 'import os; os.pidfd_open(os.getpid())' 2> "$OUT/probe.log" ||
  { skip all "needs Python 3.9 or newer, and a kernel with pidfd_open" && exit 0; }
# As the server writes it down.
CODEEXEC_MCP=$(python3 -c 'import os, sys; print(os.path.realpath(sys.argv[1]))' "$CODEEXEC_MCP")
export CODEEXEC_MCP

# What is installed: the files here, or the same without their versions.
mkdir -p "$OUT/wanted"
for file in package.json requirements-v1.txt requirements-v2.txt requirements-massgen.txt; do
  if [ $newest = yes ]; then
    { sed -E 's/"[0-9]+\.[0-9.]+"/"latest"/; s/==[0-9.]+$//' "$here/$file" && date +"# %F"; } |
      if [ $file = package.json ]; then grep -v '^#'; else cat; fi > "$OUT/wanted/$file"
  else
    cp "$here/$file" "$OUT/wanted/$file"
  fi
done

# Without the scripts of packages, but for the two that put their program into its place.
node_packages() {
  [ $newest = no ] || rm -f "$OUT/node/installed.json"
  cmp -s "$OUT/wanted/package.json" "$OUT/node/installed.json" && return 0
  rm -rf "$OUT/node"
  mkdir -p "$OUT/node"
  cp "$OUT/wanted/package.json" "$OUT/node/"
  (cd "$OUT/node" && npm install --no-package-lock --ignore-scripts --no-audit --no-fund &&
    node node_modules/@anthropic-ai/claude-code/install.cjs &&
    cd node_modules/opencode-ai && node postinstall.mjs) > "$OUT/node.log" 2>&1 || return 1
  cp "$OUT/wanted/package.json" "$OUT/node/installed.json"
}
node_lacks=
node_was_asked=
node_is_ready() {
  if [ -z "$node_was_asked" ]; then
    node_was_asked=yes
    if ! command -v npm > "$OUT/probe.log"; then
      node_lacks="npm is not installed"
    elif [ "$(node_major)" -lt 22 ] && ! newer_node 22; then
      node_lacks="Node.js is older than 22, and npm could not get a newer one: $OUT/newer-node.log"
    elif ! node_packages; then
      node_lacks="npm could not install the clients: $OUT/node.log"
    fi
  fi
  [ -z "$node_lacks" ]
}

python_is_ready() { python_environment "$1" "$OUT/wanted/requirements-$1.txt"; }
# MassGen itself comes without what it depends on: see requirements-massgen.txt.
massgen_is_ready() {
  python_is_ready massgen &&
    "$OUT/massgen/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
      "$(sed -n 's/^# with //p' "$OUT/wanted/requirements-massgen.txt")" >> "$OUT/massgen.log" 2>&1
}

ready=
for client in $clients; do
  case $client in
    claude-code | codex | gemini | qwen | opencode)
      node_is_ready || { skip "$client" "$node_lacks" && continue; }
      ;;
    openai-agents | pydantic-ai | fastmcp)
      python_is_ready v2 || { skip "$client" "pip could not install it: $OUT/v2.log" && continue; }
      ;;
    langchain | smolagents)
      python_is_ready v1 || { skip "$client" "pip could not install it: $OUT/v1.log" && continue; }
      ;;
    massgen)
      massgen_is_ready ||
        { skip "$client" "pip could not install it: $OUT/massgen.log" && continue; }
      ;;
    *) echo "FAILED: there is no client $client" && status=1 && continue ;;
  esac
  ready="$ready $client"
done

drive() {
  PYTHONDONTWRITEBYTECODE=1 python3 "$here/drive.py" --packages "$OUT" --work "$OUT/work" "$@" ||
    status=1
}
[ -z "$ready" ] || drive $ready
# That the steps can fail is seen with one of them.
case " $ready " in
  *" claude-code "*) drive --broken claude-code ;;
esac
exit $status
