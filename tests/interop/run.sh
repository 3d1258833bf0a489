#!/bin/sh
# The official MCP clients against the built server, with a real Python project and real work for
# each tool, and the official conformance suite against the fixture server:
#   [CODEEXEC_MCP=build/codeexec-mcp] [OUT=build/interop] sh tests/interop/run.sh [client...]
# Clients: ts_v1 ts_v2 python_v1 python_v2 asked docker ssh slurm kubernetes conformance providers
# tokens, or all.
# Their packages come from npm and PyPI in the versions written here, and go into OUT. `asked` is
# Python's two, asked by the fixture server, which $CODEEXEC_MCP_FIXTURE names. `docker` is the
# newest two with commands in containers, when CODEEXEC_TEST_DOCKER=1 says that $DOCKER_HOST is an
# engine for that, `ssh` the same two with commands over ssh, on a server of their own
# (helpers/sshd.sh), `slurm` the last with commands in a job, when CODEEXEC_TEST_SLURM=1 says that
# $SLURM_CONF is that of a Slurm for tests, and `kubernetes` in a pod, when
# CODEEXEC_TEST_KUBERNETES=1 and $KUBECONFIG say so of a Kubernetes. `providers` holds the schemas
# of all tools against the rules of those who read them, and `tokens` counts what they cost a model.
# Each step prints "ok: ...", "FAILED: ..." or, when a client cannot run on this machine,
# "SKIPPED: ...".
set -eu
here=$(cd "$(dirname "$0")" && pwd)
ROOT=$(cd "$here/../.." && pwd)
OUT=${OUT:-${CODEEXEC_BUILD_DIR:-$ROOT/build}/interop}
CODEEXEC_MCP=${CODEEXEC_MCP:-${CODEEXEC_BUILD_DIR:-$ROOT/build}/codeexec-mcp}
export CODEEXEC_MCP
mkdir -p "$OUT"
OUT=$(cd "$OUT" && pwd)
all="ts_v1 ts_v2 python_v1 python_v2 asked docker ssh slurm kubernetes conformance providers tokens"
clients=${*:-$all}
status=0

skip() { echo "SKIPPED: interop $1: $2"; }
[ -x "$CODEEXEC_MCP" ] || { echo "FAILED: there is no server at $CODEEXEC_MCP" && exit 1; }
[ -d /proc/self ] || { skip all "there is no /proc to see processes in" && exit 0; }

# in_time COMMAND...: a client that hangs is a failure, not a stuck machine.
in_time() {
  if command -v timeout > "$OUT/probe.log"; then timeout -k 10 300 "$@"; else "$@"; fi
}
finished() {
  [ "$2" -eq 0 ] || status=1
  [ "$2" -le 1 ] || echo "FAILED: $1 ended with status $2"
}

. "$here/../helpers/packages.sh"
node_packages() {
  cmp -s "$here/package.json" "$OUT/node/installed.json" || {
    rm -rf "$OUT/node"
    mkdir -p "$OUT/node"
    cp "$here/package.json" "$OUT/node/"
    (cd "$OUT/node" && npm install --no-package-lock --ignore-scripts --no-audit --no-fund) \
      > "$OUT/node.log" 2>&1 || return 1
    cp "$here/package.json" "$OUT/node/installed.json"
  }
  # Beside node_modules, where Node looks from.
  cp "$here"/*.mjs "$OUT/node/"
}

# What is missing for the project that every client makes, or for one kind of clients.
project_lacks=
command -v python3 > "$OUT/probe.log" || project_lacks="python3 is not installed"
command -v curl > "$OUT/probe.log" || project_lacks="curl is not installed"
# A pip that can install into another environment (--python) came with pip 22.3.
echo 'pip>=22.3' > "$OUT/pip.txt"
[ -n "$project_lacks" ] || python_environment pip "$OUT/pip.txt" ||
  project_lacks="no pip from python3 -m venv and PyPI: $OUT/pip.log"
INTEROP_PIP="$OUT/pip/bin/python -m pip --disable-pip-version-check"
INTEROP_PROJECT_REQUIREMENTS=$here/requirements-project.txt
export INTEROP_PIP INTEROP_PROJECT_REQUIREMENTS

# The same for the Python of the container, which has no network.
INTEROP_WHEELS=$OUT/wheels
export INTEROP_WHEELS
wheels() {
  cmp -s "$INTEROP_PROJECT_REQUIREMENTS" "$INTEROP_WHEELS/requirements.txt" && return 0
  rm -rf "$INTEROP_WHEELS"
  $INTEROP_PIP download --quiet --only-binary=:all: --python-version 3.11 \
    --dest "$INTEROP_WHEELS" -r "$INTEROP_PROJECT_REQUIREMENTS" > "$OUT/wheels.log" 2>&1 || return 1
  cp "$INTEROP_PROJECT_REQUIREMENTS" "$INTEROP_WHEELS/requirements.txt"
}

# A server of ssh with keys of its own, until end_sshd.
sshd=
end_sshd() {
  [ -z "$sshd" ] || kill "$sshd" || true
  sshd=
}
trap end_sshd EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
start_sshd() {
  INTEROP_SSH=$OUT/sshd
  export INTEROP_SSH
  rm -rf "$INTEROP_SSH"
  mkdir -p "$INTEROP_SSH"
  # By this name its agents are told from those of others on this machine.
  ln -s "$CODEEXEC_MCP" "$INTEROP_SSH/agent"
  port=$(python3 -c 'import socket
with socket.socket() as any:
    any.bind(("127.0.0.1", 0))
    print(any.getsockname()[1])') 2> "$OUT/sshd.log" || return 1
  sh "$here/../helpers/sshd.sh" "$INTEROP_SSH" 127.0.0.1 "$port" > "$OUT/sshd.log" 2>&1 &
  sshd=$!
  until grep -q '^Server listening' "$OUT/sshd.log"; do
    kill -0 "$sshd" 2> "$OUT/probe.log" || return 1
    sleep 0.05
  done
}

node_lacks=$project_lacks
case $clients in
  *ts_* | *docker* | *ssh* | *tokens*)
    if [ -n "$node_lacks" ]; then
      :
    elif ! command -v npm > "$OUT/probe.log"; then
      node_lacks="npm is not installed"
    elif [ "$(node_major)" -lt 20 ] && ! newer_node 20; then
      node_lacks="Node.js is older than 20, and npm could not get a newer one: $OUT/newer-node.log"
    elif ! node_packages; then
      node_lacks="npm could not install the clients: $OUT/node.log"
    fi
    ;;
esac

ts_client() { # NAME PROGRAM [ARGUMENT]
  name=$1
  program=$2
  shift 2
  if [ -n "$node_lacks" ]; then
    skip "$name" "$node_lacks"
    return 0
  fi
  code=0
  in_time node "$OUT/node/$program.mjs" "$@" || code=$?
  finished "$name" "$code"
}
python_client() { # NAME ENVIRONMENT PROGRAM
  if [ -n "$project_lacks" ]; then
    skip "$1" "$project_lacks"
  elif python_environment "$2" "$here/requirements-${2#python_}.txt"; then
    code=0
    PYTHONDONTWRITEBYTECODE=1 in_time "$OUT/$2/bin/python" "$here/$3.py" || code=$?
    finished "$1" "$code"
  else
    skip "$1" "pip could not install the client: $OUT/$2.log"
  fi
}

for client in $clients; do
  case $client in
    ts_* | tokens) ts_client "$client" "$client" ;;
    python_*) python_client "$client" "$client" python_client ;;
    providers) python_client providers python_providers providers ;;
    asked)
      # Questions to the person at the client, of the fixture of the build.
      if [ -n "${CODEEXEC_MCP_FIXTURE:-}" ]; then
        python_client "asked, Python 1" python_v1 python_asked
        python_client "asked, Python 2" python_v2 python_asked
      else
        skip asked "there is no fixture (CODEEXEC_MCP_FIXTURE is not set)"
      fi
      ;;
    docker)
      if [ -z "${CODEEXEC_TEST_DOCKER:-}" ] || [ -z "${DOCKER_HOST:-}" ]; then
        skip docker "no container engine for tests (CODEEXEC_TEST_DOCKER is not set)"
      elif [ -z "$project_lacks" ] && ! wheels; then
        skip docker "pip could not download pytest: $OUT/wheels.log"
      else
        ts_client "docker, TypeScript" ts_v2 docker
        python_client "docker, Python" python_v2 python_docker
      fi
      ;;
    ssh)
      if start_sshd; then
        ts_client "ssh, TypeScript" ts_v2 ssh
        python_client "ssh, Python" python_v2 python_ssh
        end_sshd
      else
        skip ssh "no server of ssh here (openssh-server, openssh-client, python3): $OUT/sshd.log"
      fi
      ;;
    slurm)
      if [ -n "${CODEEXEC_TEST_SLURM:-}" ] && [ -n "${SLURM_CONF:-}" ]; then
        python_client "Slurm, Python" python_v2 python_slurm
      else
        skip slurm "needs CODEEXEC_TEST_SLURM=1 and \$SLURM_CONF of a Slurm of the tests"
      fi
      ;;
    kubernetes)
      if [ -n "${CODEEXEC_TEST_KUBERNETES:-}" ] && [ -n "${KUBECONFIG:-}" ]; then
        python_client "Kubernetes, Python" python_v2 python_kubernetes
      else
        skip kubernetes "needs CODEEXEC_TEST_KUBERNETES=1 and \$KUBECONFIG of one of the tests"
      fi
      ;;
    conformance)
      code=0
      # The fixture of the build, or one that the script builds.
      CONFORMANCE_DIR=$OUT/conformance in_time sh "$here/conformance/run.sh" \
        ${CODEEXEC_MCP_FIXTURE:+"$CODEEXEC_MCP_FIXTURE"} || code=$?
      case $code in
        0) echo "ok: conformance suite" ;;
        77) ;;
        *) echo "FAILED: conformance suite: status $code" && status=1 ;;
      esac
      ;;
    *) echo "FAILED: there is no client $client" && status=1 ;;
  esac
done
exit $status
