#!/bin/sh
# Servers and an embedding program under a mixed load, with an account of every reply, and a look at
# what it leaves behind:
#   [CODEEXEC_MCP=build/codeexec-mcp] [CODEEXEC_SOAK_HOST=build/tests/codeexec-soak-host]
#   [OUT=build/soak] [SEED=N] [SHARE=0.5] [PATIENCE=300] sh tests/soak/run.sh [SECONDS]
# SECONDS: 3600, or as many; then what has begun ends. SHARE: of one processor, which the run uses
# at most: it slows down. No criterion depends on speed; what has not come after PATIENCE seconds is
# lost. With the SEED that a run has printed, each client does the same again, though not at the
# same moments.
#
#   strict    a server with a sandbox in strict mode
#   plain     one without
#   mortal    one that is killed with SIGKILL or closed in the middle of its work, again and again
#   place, mortal-place      the same with commands in a place, by an agent on this machine
#   docker, mortal-docker    the same with commands in containers, when CODEEXEC_TEST_DOCKER=1 says
#             that $DOCKER_HOST is an engine for that, and it has the image codeexec-test/debian
#   host      a program that embeds the library: host.cpp
#
# The load: actions.py. Now and then all of it pauses, and what is left is looked at. Failures are:
# a request without exactly one reply (none or one when it was cancelled), another result than the
# command must have, a descriptor, thread or process more at the end than after the warm-up, memory
# that grows (soak.py tells the limits), and whatever outlives a server.
#
# Left in OUT: samples.csv, actions.json, and curve.svg, when matplotlib is there or, for a run of
# 600 s and more, can be had from PyPI. Each step prints "ok: ...", "FAILED: ..." or "SKIPPED: ...".
# Needs Python 3.9 and /proc.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
ROOT=$(cd "$here/../.." && pwd)
build=${CODEEXEC_BUILD_DIR:-$ROOT/build}
OUT=${OUT:-$build/soak}
CODEEXEC_MCP=${CODEEXEC_MCP:-$build/codeexec-mcp}
CODEEXEC_SOAK_HOST=${CODEEXEC_SOAK_HOST:-$build/tests/codeexec-soak-host}
seconds=${1:-3600}
case $seconds in '' | *[!0-9]*)
  sed -n '2,/^set -eu/{ /^set -eu/!s/^# \{0,1\}//p; }' "$0" >&2
  exit 2
  ;;
esac
mkdir -p "$OUT"
OUT=$(cd "$OUT" && pwd)

skip() { echo "SKIPPED: soak $1: $2"; }
[ -d /proc/self/fd ] || { skip all "there is no /proc to see processes in" && exit 0; }
command -v python3 > "$OUT/probe.log" || { skip all "python3 is not installed" && exit 0; }
for program in "$CODEEXEC_MCP" "$CODEEXEC_SOAK_HOST"; do
  [ -x "$program" ] || { echo "FAILED: there is no program $program" && exit 1; }
done

image=
if [ "${CODEEXEC_TEST_DOCKER:-}" != 1 ] || [ -z "${DOCKER_HOST:-}" ]; then
  skip docker "CODEEXEC_TEST_DOCKER=1 and DOCKER_HOST do not say which engine to use"
elif ! docker image inspect codeexec-test/debian:latest > "$OUT/probe.log" 2>&1; then
  skip docker "the engine has no image codeexec-test/debian: sh tests/helpers/engine.sh images DIR"
else
  image=codeexec-test/debian:latest
fi

sandbox=strict
"$CODEEXEC_MCP" --sandbox strict --workspace "$OUT" --allowed-paths "$OUT" --run true \
  > "$OUT/probe.log" 2>&1 || {
  sandbox=best-effort
  skip strict "there is no whole sandbox here, the server has what there is: $OUT/probe.log"
}

status=0
PYTHONDONTWRITEBYTECODE=1 python3 "$here/soak.py" --program "$CODEEXEC_MCP" \
  --host "$CODEEXEC_SOAK_HOST" --out "$OUT" --seconds "$seconds" --share "${SHARE:-0.5}" \
  --image "$image" --sandbox "$sandbox" ${SEED:+--seed "$SEED"} || status=1

# The curve is for people: without it, nothing is less certain, and for a short run it is not worth
# the time that it takes to fetch what draws it.
python=python3
for candidate in python3 "$OUT/venv/bin/python"; do
  ! "$candidate" -c 'import matplotlib' > "$OUT/probe.log" 2>&1 || python=$candidate
done
if [ "$seconds" -ge 600 ] && ! "$python" -c 'import matplotlib' > "$OUT/probe.log" 2>&1; then
  python3 -m venv "$OUT/venv" > "$OUT/venv.log" 2>&1 &&
    "$OUT/venv/bin/python" -m pip install --quiet --disable-pip-version-check 'matplotlib<4' \
      >> "$OUT/venv.log" 2>&1 && python=$OUT/venv/bin/python
fi
if "$python" "$here/plot.py" "$OUT/samples.csv" "$OUT/curve.svg" > "$OUT/plot.log" 2>&1; then
  echo "ok: soak: the curve is in $OUT/curve.svg"
else
  echo "soak: no curve, for want of matplotlib, which is fetched for a run of 600 s and more"
fi
exit $status
