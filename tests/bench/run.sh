#!/bin/sh
# Every number of the library, each beside its floor and its rivals in the same run:
#   [CXX=g++] sh tests/bench/run.sh [option...] [name...]      e.g.  run.sh --quick process json
#   --quick    fewer rounds, without plots, and without `cost` and `sections`, whose gates are among
#              the tests, `building` and `rivals`
#   --docker   with an engine of its own for the numbers of containers (helpers/engine.sh, as root),
#              which it ends; otherwise they need CODEEXEC_TEST_DOCKER=1 and DOCKER_HOST
#   --check    fails when README.md or docs/numbers.md names a number that this run has not
#              printed (report.py)
#   --readme   the same, and writes the tables and drawings of these pages anew; not with --quick
# Names: building cost docker jobs json mcp place process regex rivals sections shell, or all of
# them. `rivals`, other libraries and languages, installs what it lacks by rivals.sh --install.
# Nothing else should be running. It ends with one table of all rows, which is also $OUT/results.md;
# $OUT/results.json has the same with the machine, $OUT/*.svg draw the ratios (OUT: build/bench).
# What comes from npm and PyPI goes into $OUT, too; of the system it wants python3, and for rivals
# nodejs, npm, python3-venv, bubblewrap, openssh-server and the headers of nlohmann-json3-dev,
# libsimdjson-dev and libre2-dev: a number that something is missing for is a row that says SKIPPED.
# The exit status tells whether all of them ran and met the limits that they state.
set -eu
ROOT=$(cd "$(dirname "$0")/../.." && pwd)
here=$ROOT/tests/bench
build=${CODEEXEC_BUILD_DIR:-$ROOT/build}
OUT=${OUT:-$build/bench}
CXX=${CXX:-c++}
mkdir -p "$OUT"
OUT=$(cd "$OUT" && pwd)
export ROOT OUT CXX

quick= docker=no readme= names=
is_script() { [ -f "$here/$1.sh" ] && [ "$1" != run ] && [ "$1" != rows ]; }
for argument; do
  case $argument in
    --quick) quick=--quick ;;
    --docker) docker=yes ;;
    --check | --readme) readme=$argument ;;
    -h | --help) sed -n '2,/^set -eu/{ /^set -eu/!s/^# \{0,1\}//p; }' "$0" && exit 0 ;;
    -*) echo "tests/bench/run.sh: unknown option $argument (try --help)" >&2 && exit 2 ;;
    *)
      is_script "$argument" || [ -f "$here/$argument.cpp" ] || {
        echo "tests/bench/run.sh: there is no benchmark $argument" >&2
        exit 2
      }
      names="$names $argument"
      ;;
  esac
done
if [ -n "$quick" ] && [ "$readme" = --readme ]; then
  echo "tests/bench/run.sh: numbers of --quick are not for the pages" >&2
  exit 2
fi
if [ -z "$names" ]; then
  [ -n "$quick" ] || names="cost sections building rivals"
  for file in "$here"/*.cpp; do names="$names $(basename "$file" .cpp)"; done
fi
wanted() { case " $names " in *" $1 "*) return 0 ;; *) return 1 ;; esac; }
has() { command -v "$1" > "$OUT/probe.log" 2>&1; }
status=0
failed() { echo "FAILED: $*" && status=1; }

# An engine with the one image that is needed, which is made while the compiler runs.
engine=$OUT/engine
[ ${#engine} -le 64 ] || engine=/tmp/codeexec-engine-$(echo "$OUT" | cksum | cut -d ' ' -f 1)
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }
in_engine() { as_root sh "$ROOT/tests/helpers/engine.sh" "$1" "$engine" >> "$OUT/engine.log" 2>&1; }
start_engine() {
  : > "$OUT/engine.log"
  # An interrupted run may have left one.
  in_engine stop && in_engine start && in_engine make_base && in_engine make_debian
}
stop_engine() {
  [ $docker = yes ] || return 0
  docker=no
  in_engine stop || failed "the engine does not stop: $OUT/engine.log"
}
starting=
if [ $docker = yes ] && wanted docker; then
  trap stop_engine EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  echo "== starting an engine, and making its image in the background"
  start_engine &
  starting=$!
  DOCKER_HOST=unix://$engine/docker.sock
  CODEEXEC_TEST_DOCKER=1
  export DOCKER_HOST CODEEXEC_TEST_DOCKER
else
  docker=no
fi

# building ----------------------------------------------------------------------------------------

# The implementation is compiled once, and again when the header or the compiler has changed. A
# quick run takes the one of the tests, where there is one.
flags=-O2
object=$OUT/implementation.o
tested=$build/libcodeexec_impl.a
if [ -n "$quick" ]; then
  flags=-O1
  object=$OUT/implementation-quick.o
  [ ! -f "$tested" ] || [ "$ROOT/codeexec.hpp" -nt "$tested" ] || object=$tested
fi
compile() { "$CXX" -std=c++17 $flags -I"$ROOT" "$@" -pthread; }
if [ "$object" != "$tested" ]; then
  # What it was made of.
  { "$CXX" --version && echo "$flags" && cksum < "$ROOT/codeexec.hpp"; } > "$OUT/made-of"
  if [ ! -f "$object" ] || ! cmp -s "$OUT/made-of" "$object.made-of"; then
    echo "== compiling codeexec.hpp with $flags"
    compile -c "$ROOT/tests/helpers/impl.cpp" -o "$object" || {
      echo "FAILED: codeexec.hpp does not compile"
      exit 1
    }
    cp "$OUT/made-of" "$object.made-of"
  fi
fi
has_header() { echo "#include <$1>" | "$CXX" -x c++ -E - > "$OUT/probe.log" 2>&1; }
libraries() {
  case $1 in
    json) if has_header simdjson.h; then echo -lsimdjson; fi ;;
    regex) if has_header re2/re2.h; then echo -lre2; fi ;;
  esac
}
# Two at a time, before any of them runs.
build_one() {
  compile "$here/$1.cpp" "$object" $(libraries "$1") -o "$OUT/bench-$1" || rm -f "$OUT/bench-$1"
}
builds=
for name in $names; do
  ! is_script "$name" || continue
  rm -f "$OUT/bench-$name"
  build_one "$name" &
  case $builds in
    "") builds=$! ;;
    *) wait "$builds" $! && builds= ;;
  esac
done
[ -z "$builds" ] || wait "$builds"

# What runs in containers, whatever their C library is.
if wanted docker || wanted place; then
  CODEEXEC_PLACE_AGENT=$OUT/agent
  export CODEEXEC_PLACE_AGENT
  rm -f "$OUT/agent"
  cat > "$OUT/agent.cpp" << 'END'
#include "codeexec.hpp"
int main(int argc, char** argv) { return codeexec::server_main(argc, argv); }
END
  compile -static -s "$OUT/agent.cpp" "$object" -o "$OUT/agent" 2> "$OUT/agent.log" ||
    unset CODEEXEC_PLACE_AGENT
fi

# rivals ------------------------------------------------------------------------------------------

# installed NAME REQUIREMENTS COMMAND...: runs it once, and again when the requirements change.
installed() {
  stamp=$OUT/$1.installed
  [ "$(cat "$stamp" 2> "$OUT/probe.log")" != "$2" ] || return 0
  rm -f "$stamp"
  requirements=$2
  log=$OUT/$1.log
  shift 2
  echo "== installing $requirements"
  "$@" > "$log" 2>&1 || return 1
  echo "$requirements" > "$stamp"
}
venv() {
  rm -rf "$OUT/venv" "$OUT/fastmcp.installed" "$OUT/plots.installed"
  python3 -m venv "$OUT/venv"
}
pip() { "$OUT/venv/bin/python" -m pip --disable-pip-version-check "$@"; }
has_venv() {
  [ -x "$OUT/venv/bin/python" ] || rm -f "$OUT/venv.installed"
  has python3 && installed venv venv venv
}

typescript="@modelcontextprotocol/sdk@1.32.2 zod@3.25.76"
typescript_server() {
  mkdir -p "$OUT/node"
  npm install --prefix "$OUT/node" --no-package-lock --ignore-scripts --no-audit --no-fund \
    $typescript && cp "$here/ts_echo_server.mjs" "$OUT/node/"
}
fastmcp="fastmcp==2.14.7 loguru==0.7.3"
fastmcp_server() { pip install --quiet $fastmcp; }
# MassGen's package wants some gigabytes of others (model clients, datasets, OpenCV). Its server is
# one module, which needs FastMCP and, of MassGen itself, the logger; so it gets these and nothing
# more, and starts faster than it does with MassGen around it.
massgen="massgen==0.1.97"
massgen_server() {
  rm -rf "$OUT/massgen"
  mkdir -p "$OUT/massgen"
  pip download --quiet --no-deps --dest "$OUT/massgen" "$massgen" &&
    "$OUT/venv/bin/python" -c '
import glob, sys, zipfile
folder = sys.argv[1]
module = "massgen/filesystem_manager/_code_execution_server.py"
zipfile.ZipFile(glob.glob(folder + "/*.whl")[0]).extract(module, folder)
for name in "massgen", "massgen/filesystem_manager":
    open(folder + "/" + name + "/__init__.py", "w").close()
with open(folder + "/massgen/logger_config.py", "w") as file:
    file.write("from loguru import logger\n")
' "$OUT/massgen"
}

if wanted mcp; then
  if ! has npm || ! has node; then
    BENCH_TS_LACKS="nodejs or npm is not installed"
  elif ! installed node "$typescript" typescript_server; then
    BENCH_TS_LACKS="npm could not install $typescript: $OUT/node.log"
  else
    BENCH_TS_SERVER="node $OUT/node/ts_echo_server.mjs"
  fi
  python_lacks=
  if ! has_venv; then
    python_lacks="there is no python3 with venv: $OUT/venv.log"
  elif ! installed fastmcp "$fastmcp" fastmcp_server; then
    python_lacks="pip could not install $fastmcp: $OUT/fastmcp.log"
  fi
  BENCH_FASTMCP_LACKS=$python_lacks
  BENCH_MASSGEN_LACKS=$python_lacks
  if [ -z "$python_lacks" ]; then
    BENCH_FASTMCP_SERVER="$OUT/venv/bin/python $here/fastmcp_echo_server.py"
    if installed massgen "$massgen" massgen_server; then
      module=$OUT/massgen/massgen/filesystem_manager/_code_execution_server.py
      # As MassGen starts it, in the workspace.
      BENCH_MASSGEN_SERVER="env -C /tmp PYTHONPATH=$OUT/massgen FASTMCP_SHOW_CLI_BANNER=false \
$OUT/venv/bin/fastmcp run $module:create_server -- --allowed-paths /tmp"
    else
      BENCH_MASSGEN_LACKS="pip could not download $massgen: $OUT/massgen.log"
    fi
  fi
  BENCH_LOG=$OUT/servers.log
  export BENCH_LOG BENCH_TS_SERVER BENCH_FASTMCP_SERVER BENCH_MASSGEN_SERVER
  export BENCH_TS_LACKS BENCH_FASTMCP_LACKS BENCH_MASSGEN_LACKS
fi

if [ -n "$starting" ]; then
  wait "$starting" || {
    tail -n 20 "$OUT/engine.log"
    failed "the engine does not start, or its image cannot be made: $OUT/engine.log"
    unset CODEEXEC_TEST_DOCKER
  }
fi

# running -----------------------------------------------------------------------------------------

BENCH_ROWS=$OUT/rows.jsonl
export BENCH_ROWS
: > "$BENCH_ROWS"
for name in $names; do
  printf '\n== %s\n' "$name"
  printf '{"group":"%s"}\n' "$name" >> "$BENCH_ROWS"
  if is_script "$name"; then
    OUT=$OUT/$name sh "$here/$name.sh" ${quick:+--gates} || failed "$name ended with status $?"
    continue
  fi
  if [ ! -x "$OUT/bench-$name" ]; then
    failed "$name does not build"
    continue
  fi
  code=0
  "$OUT/bench-$name" $quick || code=$?
  [ $code -eq 0 ] || failed "$name ended with status $code"
done
stop_engine

# reporting ---------------------------------------------------------------------------------------

if ! has python3; then
  echo "SKIPPED: the table: there is no python3; the rows are in $BENCH_ROWS"
  [ -z "$readme" ] || failed "the pages were not looked at"
  exit $status
fi
compiler=$("$CXX" --version | head -n 1)
version() { if has "$1"; then "$1" --version | head -n 1; else echo none; fi; }
python3 -B "$here/report.py" "$OUT" "compiler=$compiler" "flags=$flags" "node=$(version node)" \
  "docker=$(version docker)" "bubblewrap=$(version bwrap)" \
  "rivals=$typescript $fastmcp $massgen" $readme || status=1
if [ -n "$quick" ]; then
  :
elif has_venv && installed plots matplotlib==3.10.7 pip install --quiet matplotlib==3.10.7; then
  pages=
  [ "$readme" != --readme ] || pages=$ROOT/docs
  "$OUT/venv/bin/python" "$here/plots.py" "$OUT" $pages || failed "the plots could not be drawn"
else
  echo "SKIPPED: plots: matplotlib could not be installed: $OUT/plots.log"
fi
echo "results: $OUT/results.md, $OUT/results.json"
exit $status
