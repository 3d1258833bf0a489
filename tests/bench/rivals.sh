# What starting a program costs beside other libraries and languages, which do the same in turn:
#   sh tests/bench/rivals.sh [--install] [--gates]
# --install: first apt-get installs what Debian has of them, as root. --gates: few rounds.
# Debian does not have two of them: $REPROC is a folder with the sources of reproc 14, and
# $SUBPROCESS_H one with subprocess.h. What is not there is a row that says SKIPPED. The table is of
# any use only if nothing else runs.
. "$(dirname "$0")/rows.sh"
here=$ROOT/tests/bench/rivals
rounds=40
for argument; do
  case $argument in
    --gates) rounds=4 ;;
    --install)
      apt-get install -q -y --no-install-recommends libboost1.81-dev qtbase5-dev rustc golang-go \
        nodejs python3 > "$OUT/install.log" 2>&1 || echo "FAILED: apt-get: $OUT/install.log"
      ;;
    *) echo "tests/bench/rivals.sh: unknown option $argument" >&2 && exit 2 ;;
  esac
done
command -v python3 > "$OUT/probe.log" || {
  echo "SKIPPED: rivals: there is no python3, which has them take turns"
  exit 0
}
tab=$(printf '\t')
list=$OUT/rivals
: > "$list"
is_there() { echo "$1$tab$2" >> "$list"; }
lacks() { echo "$1$tab-$tab$2" >> "$list"; }
# build NAME PROGRAM COMMAND...: makes $OUT/PROGRAM by it.
build() {
  name=$1
  program=$OUT/$2
  shift 2
  rm -f "$program"
  if "$@" > "$program.log" 2>&1; then
    is_there "$name" "$program"
  else
    lacks "$name" "it does not build: $program.log"
  fi
}
cxx() { "$CXX" -std=c++17 -O2 "$@" -pthread; }
has_header() { echo "#include <$1>" | "$CXX" -x c++ -E - > "$OUT/probe.log" 2>&1; }
has() { command -v "$1" > "$OUT/probe.log" 2>&1; }

# run.sh has compiled it already.
implementation=${OUT%/*}/implementation.o
[ -f "$implementation" ] && [ "$implementation" -nt "$ROOT/codeexec.hpp" ] || {
  implementation=$OUT/implementation.o
  cxx -I"$ROOT" -c "$ROOT/tests/helpers/impl.cpp" -o "$implementation"
}
cxx -I"$ROOT" "$here/codeexec.cpp" "$implementation" -o "$OUT/codeexec"
is_there codeexec "$OUT/codeexec"
build posix_spawn posix_spawn cxx "$here/posix_spawn.cpp" -o "$OUT/posix_spawn"

if [ -f "${SUBPROCESS_H:-}/subprocess.h" ]; then
  build subprocess.h subprocess_h cxx -I"$SUBPROCESS_H" "$here/subprocess_h.cpp" \
    -o "$OUT/subprocess_h"
else
  lacks subprocess.h "SUBPROCESS_H does not name a folder that has it"
fi
if [ -f "${REPROC:-}/reproc/include/reproc/reproc.h" ]; then
  make_reproc() {
    for source in "$REPROC"/reproc/src/*.c; do
      case $source in
        *.windows.c) ;;
        *)
          "${CC:-cc}" -O2 -D_GNU_SOURCE -I"$REPROC/reproc/include" -c "$source" \
            -o "$OUT/reproc-$(basename "$source").o" || return 1
          ;;
      esac
    done
    cxx -I"$REPROC/reproc/include" "$here/reproc.cpp" "$OUT"/reproc-*.o -o "$OUT/reproc"
  }
  build reproc reproc make_reproc
else
  lacks reproc "REPROC does not name a folder with its sources"
fi
if has_header boost/process/v2.hpp; then
  build "Boost.Process v2" boost cxx -DBOOST_PROCESS_USE_STD_FS "$here/boost.cpp" -o "$OUT/boost"
else
  lacks "Boost.Process v2" "its headers are not installed (Boost 1.80 or later)"
fi
if has pkg-config && pkg-config --exists Qt5Core; then
  build "Qt QProcess" qt cxx -fPIC $(pkg-config --cflags Qt5Core) "$here/qt.cpp" -o "$OUT/qt" \
    $(pkg-config --libs Qt5Core)
else
  lacks "Qt QProcess" "pkg-config does not know Qt5Core (qtbase5-dev)"
fi
if has rustc; then
  build "Rust std::process" rust rustc -O "$here/rust.rs" -o "$OUT/rust"
else
  lacks "Rust std::process" "rustc is not installed"
fi
if has go; then
  build "Go os/exec" go env GOCACHE="$OUT/go-cache" GOTOOLCHAIN=local GO111MODULE=off \
    go build -o "$OUT/go" "$here/go.go"
else
  lacks "Go os/exec" "golang-go is not installed"
fi
if has node; then
  is_there "Node child_process" "node $here/node.mjs"
else
  lacks "Node child_process" "nodejs is not installed"
fi
is_there "Python subprocess" "python3 $here/python.py"

python3 -B "$here/turns.py" "$list" $rounds || failed "the rivals did not take their turns"
[ $failures -eq 0 ]
