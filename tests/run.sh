#!/bin/sh
# Builds and runs the tests, and installs what they need first:   sh tests/run.sh [option...]
#
#   (no option)    what takes some minutes: the tests of the sections, the oracles, the sandbox from
#                  inside, the hygiene tests that are quick, and the official MCP clients when
#                  Node.js and Python are here
#   --only NAME    the unit tests of one section alone (tests/unit/NAME), or of one of its files
#                  (--only tools/fair_use), or of several: --only process,jobs. It installs what
#                  builds them and uses the build of the other runs; with --docker, the tests of
#                  containers, too
#   --quick        without the MCP clients
#   --interop      the MCP clients for sure: installs Node.js when it is missing
#   --hygiene      all tests of hygiene: those that compile all of the header many times, too
#   --clients      real client programs (Claude Code, Codex ...) with a model that is none, all of
#                  them, in the versions of tests/clients, and MassGen with the configurations that
#                  it ships: two gigabytes of packages. --all has the half that is quick
#   --docker       the tests of containers for sure, and in CI: installs Docker, starts an engine of
#                  its own for them (tests/helpers/engine.sh), and ends it. Without it they run when
#                  you set CODEEXEC_TEST_DOCKER=1 and $DOCKER_HOST is an engine with their images
#   --clusters     the tests of clusters for sure, and in CI: installs Slurm, starts one of its own
#                  for them (tests/helpers/slurm.sh), and ends it. Without it they run when you set
#                  CODEEXEC_TEST_SLURM=1 and $SLURM_CONF is that of a Slurm with one node
#                  A Kubernetes (tests/helpers/kubernetes.sh), too, where its programs have been
#                  built; without it, CODEEXEC_TEST_KUBERNETES=1 and $KUBECONFIG lead to one
#   --kubernetes   builds those programs first, for about eight minutes, with Go; they are kept in
#                  $CODEEXEC_KUBERNETES_BIN
#   --sanitizers   once more under AddressSanitizer + UBSan, with clang++ when it is here, and under
#                  ThreadSanitizer what has threads
#   --compilers    once more with clang++, unless --sanitizers does that, and, of the sections that
#                  this concerns, without exceptions, type information and the capabilities of newer
#                  systems, as on older or other ones; then clang-tidy, and the schemas of the files
#                  that GitHub reads
#   --fuzz [N]     the fuzzers of tests/fuzz, each for N seconds (60, with --all 5); needs clang++
#   --soak [N]     servers under a mixed load for N seconds (3600, with --all 120): tests/soak
#   --portability  other systems, processors and libraries as far as they can be had here:
#                  tests/portability
#   --release      static programs and packages of a release, built with the compiler of ziglang and
#                  installed each in its way, for about three minutes: tests/release
#   --all          all of these; what CI runs, and what CI=true in the environment means. It also
#                  counts how often the whole implementation is compiled, which has a limit
#   --no-install   installs no packages of the system
#
# It installs Debian packages when there is apt-get and the right to use it, and otherwise says what
# is missing. Everything else stays in ./build ($CODEEXEC_BUILD_DIR), npm and PyPI packages
# included. Compilers: $CXX, otherwise c++. The last line is "tests: N passed, N failed, N skipped",
# after the reason of every skipped one; the exit status is 0 when none failed, 2 when they could
# not be run.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=${CODEEXEC_BUILD_DIR:-$root/build}
CXX=${CXX:-c++}
export CXX
jobs=$(getconf _NPROCESSORS_ONLN 2> /dev/null || echo 2)
interop=maybe docker=no clusters=no kubernetes=no sanitizers=no compilers=no fuzz=no
portability=no soak=no release=no clients=no hygiene=no
install=yes
counted=no
address_sanitizer="-fsanitize=address,undefined -fno-sanitize-recover=all"

usage() { sed -n '2,/^set -eu/{ /^set -eu/!s/^# \{0,1\}//p; }' "$0"; }
usage_error() {
  echo "tests/run.sh: unknown option $1 (try --help)" >&2
  exit 2
}
everything() {
  interop=yes docker=yes clusters=yes sanitizers=yes compilers=yes portability=yes counted=yes
  release=yes hygiene=yes
  [ $clients != no ] || clients=quick
  [ $fuzz != no ] || fuzz=5
  [ $soak != no ] || soak=120
}
sections=$(cd "$root/tests/unit" && echo *)
only= chosen=
# add_sections NAME[,NAME...]
add_sections() {
  for name in $(echo "$1" | tr ',' ' '); do
    section=${name%%/*}
    case " $sections " in
      *" $section "*) only="$only $section" ;;
      *) no_section "there is no section $section" ;;
    esac
    case $name in
      */*)
        [ -f "$root/tests/unit/$name.cpp" ] || no_section "there is no file tests/unit/$name.cpp"
        chosen="$chosen|unit\\.$section\\.${name#*/}(-|\$)"
        ;;
      *) chosen="$chosen|unit\\.$section\\." ;;
    esac
  done
  [ -n "$only" ] || no_section "--only needs the name of a section"
}
no_section() {
  echo "tests/run.sh: $1 (one of: $sections)" >&2
  exit 2
}
case " $*" in
  *" --only"*) ;;
  *) [ "${CI:-}" != true ] || everything ;;
esac
previous=
for option; do
  if [ "$previous" = --only ]; then
    add_sections "$option"
    previous=
    continue
  fi
  case $option in
    --only) ;;
    --only=*) add_sections "${option#--only=}" ;;
    [1-9]*)
      case $previous in
        --fuzz) fuzz=$option ;;
        --soak) soak=$option ;;
        *) usage_error "$option" ;;
      esac
      ;;
    --fuzz) fuzz=60 ;;
    --soak) soak=3600 ;;
    --portability) portability=yes ;;
    --release) release=yes ;;
    --quick) interop=no ;;
    --interop) interop=yes ;;
    --hygiene) hygiene=yes ;;
    --clients) clients=all ;;
    --docker) docker=yes ;;
    --clusters) clusters=yes ;;
    --kubernetes) clusters=yes kubernetes=yes ;;
    --sanitizers) sanitizers=yes ;;
    --compilers) compilers=yes ;;
    --all) everything ;;
    --no-install) install=no ;;
    -h | --help) usage && exit 0 ;;
    *) usage_error "$option" ;;
  esac
  previous=$option
done
[ "$previous" != --only ] || add_sections ""
if [ -n "$only" ]; then
  interop=no sanitizers=no compilers=no fuzz=no portability=no soak=no release=no
  clients=no hygiene=no
fi
mkdir -p "$build"
build=$(cd "$build" && pwd)

# what the tests need -----------------------------------------------------------------------------

has() { command -v "$1" > "$build/probe.log" 2>&1; }
has_for_root() { PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin command -v "$1" > "$build/probe.log"; }
has_static_busybox() { has busybox && ! ldd "$(command -v busybox)" > "$build/probe.log" 2>&1; }
has_header() { echo "#include <$1>" | "$CXX" -x c++ -E - > "$build/probe.log" 2>&1; }
# Of the Python on the PATH, and of the system's, which is the one that every user has.
has_python_venv() {
  python3 -c 'import ensurepip, venv' > "$build/probe.log" 2>&1 && has_python_module ensurepip
}
has_python_module() {
  [ ! -x /usr/bin/python3 ] || /usr/bin/python3 -c "import $1" > "$build/probe.log" 2>&1
}
has_libcxx() {
  echo '#include <string>' | clang++ -stdlib=libc++ -x c++ -E - > "$build/probe.log" 2>&1
}
has_fuzzer() {
  echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
    clang++ -fsanitize=fuzzer -x c++ -o "$build/probe" - > "$build/probe.log" 2>&1
}
# A clang++ whose sanitizers work here.
has_clang_sanitizers() {
  echo 'int main() { return 0; }' | clang++ $address_sanitizer -x c++ -o "$build/probe" - \
    > "$build/probe.log" 2>&1 && "$build/probe" >> "$build/probe.log" 2>&1
}
has_chromium() { has chromium || has chromium-browser || has google-chrome; }
# Without any, a page has no text to measure.
has_fonts() { ls /usr/share/fonts/*/* > "$build/probe.log" 2>&1; }
# A locale with a decimal comma, or what one can be made from.
has_german() { locale -a 2> "$build/probe.log" | grep -qiE '^de_DE\.utf-?8$'; }
can_have_german() { has_german || [ -f /usr/share/i18n/locales/de_DE ]; }
# Of the tests of hostile hosts.
has_locales() {
  for locale in de_DE de_DE.utf8 tr_TR.utf8; do
    locale -a 2> "$build/probe.log" | grep -qx "$locale" || return 1
  done
}

# want PACKAGE PROBE...: one line per need, with the Debian package that brings it.
want() {
  package=$1
  shift
  "$@" || missing="$missing $package"
}
find_missing() {
  missing=
  want g++ has "$CXX"
  want cmake has cmake
  want make has make
  want doctest-dev has_header doctest/doctest.h
  if [ $docker = yes ]; then
    want docker.io has_for_root dockerd
    want docker-cli has docker  # newer Debians have it apart from docker.io
    want debootstrap has_for_root debootstrap
    want podman has podman
    want catatonit has catatonit
  fi
  if [ $clusters = yes ]; then
    want slurm-wlm has_for_root slurmctld
    want munge has_for_root munged
  fi
  if [ $kubernetes = yes ]; then
    want etcd-server has_for_root etcd
    want containerd has_for_root containerd
    want runc has_for_root runc
    want containernetworking-plugins test -x /usr/lib/cni/ptp
    want busybox-static has_static_busybox
    want openssl has openssl
    want kubernetes-client has kubectl
  fi
  [ -z "$only" ] || return 0
  want chromium has_chromium
  want fonts-dejavu-core has_fonts
  want binutils has nm
  want libre2-dev has_header re2/re2.h
  want pkg-config has pkg-config
  want locales can_have_german
  want locales-all has_locales
  want strace has strace
  want python3 has python3
  want bubblewrap has bwrap
  want python3-venv has_python_venv
  want python3-pip has_python_module pip
  want python3-pytest has_python_module pytest
  want procps has ps
  want git has git
  want curl has curl
  want xz-utils has xz
  want bash has bash
  want zsh has zsh
  want fish has fish
  want mandoc has mandoc
  want groff-base has groff
  want vim-tiny has vi
  want less has less
  want gdb has gdb
  want tmux has tmux
  want dash has dash
  # What the everyday tasks use, as far as it is small.
  want python3-pytest-xdist has_python_module xdist
  want python3-pexpect has_python_module pexpect
  want python3-setuptools has_python_module setuptools
  want python3-wheel has_python_module wheel
  want ninja-build has ninja
  want ccache has ccache
  want linux-perf has perf
  want sqlite3 has sqlite3
  want redis-server has redis-server
  want expect has expect
  want socat has socat
  want rsync has rsync
  want gnupg has gpg
  want libasio-dev has_header asio.hpp  # for examples/event_loop.cpp
  want busybox-static has_static_busybox
  want openssh-client has ssh-keygen
  want openssh-server has_for_root sshd
  if [ $fuzz != no ]; then
    want clang has clang++
    want libclang-rt-dev has_fuzzer
  fi
  if [ $compilers = yes ]; then
    want clang has clang++
    want libc++-dev has_libcxx
    want libc++abi-dev has_libcxx
    want clang-tidy has clang-tidy
    want nlohmann-json3-dev has_header nlohmann/json.hpp  # a rival of the benchmarks
  fi
  if [ $portability = yes ]; then
    want g++-i686-linux-gnu has i686-linux-gnu-g++
    want g++-aarch64-linux-gnu has aarch64-linux-gnu-g++
    want qemu-user-static has qemu-aarch64-static
  fi
  if [ $release = yes ]; then
    want qemu-user-static has qemu-aarch64-static
    want nodejs has node
    want npm has npm
  fi
  if [ $clients != no ]; then
    want nodejs has node
    want npm has npm
  fi
  if [ $interop = yes ]; then
    want nodejs has node
    want npm has npm
  fi
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  else
    sudo -n "$@"
  fi
}
may_install() { [ $install = yes ] && has apt-get && as_root true > "$build/probe.log" 2>&1; }

find_missing
if [ -n "$missing" ] && may_install; then
  echo "== installing Debian packages:$missing"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q > "$build/apt.log" 2>&1 || true
  # Each on its own: one that this release does not have must not keep out the others.
  for package in $missing; do
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
      "$package" >> "$build/apt.log" 2>&1 || echo "   could not install $package: $build/apt.log"
  done
  find_missing
fi
if [ -n "$missing" ]; then
  echo "== missing:$missing"
  echo "   Debian, Ubuntu:  sudo apt-get install$missing"
  echo "   elsewhere:       what your system calls these (doctest, re2, clang, nodejs ...)"
  case " $missing " in
    *" g++ "* | *" cmake "* | *" make "* | *" doctest-dev "*)
      echo "tests: not run: they need a C++17 compiler, cmake, make and doctest"
      exit 2
      ;;
  esac
fi

if ! has_german && can_have_german && has localedef; then
  mkdir -p "$build/locale"
  localedef -i de_DE -f UTF-8 "$build/locale/de_DE.UTF-8" > "$build/probe.log" 2>&1 || true
  LOCPATH=$build/locale
  export LOCPATH
fi

# What the everyday tasks use and Debian does not have, while the compiler runs.
everyday_tools=
if [ -z "$only" ] && [ $install = yes ]; then
  sh "$root/tests/everyday/install.sh" "$build/everyday" > "$build/everyday.log" 2>&1 &
  everyday_tools=$!
fi

# The whole implementation, joined in one file, takes a compiler half a minute, so most of what is
# built here is made of its sections. These compilers write down what is not: helpers/counted.sh.
most_wholes=15
compiler_path=$PATH
if [ $counted = yes ]; then
  WHOLE=$build/whole.txt
  export WHOLE
  : > "$WHOLE"
  rm -rf "$build/compilers"
  sh "$root/tests/helpers/counted.sh" install "$build/compilers" "$WHOLE" \
    c++ g++ clang++ i686-linux-gnu-g++ aarch64-linux-gnu-g++ "$CXX"
  CXX=$build/compilers/${CXX##*/}
  compiler_path=$build/compilers:$PATH
fi

# running and counting ----------------------------------------------------------------------------

passed=0 failed=0 skipped=0
: > "$build/failures.txt"
: > "$build/skipped.txt"

# add LEG PASSED FAILED: to the totals; what was skipped stands in $build/leg-skipped.txt.
add() {
  leg_skipped=$(wc -l < "$build/leg-skipped.txt")
  sed "s/^SKIPPED: */SKIPPED: [$1] /" "$build/leg-skipped.txt" >> "$build/skipped.txt"
  passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + leg_skipped))
  echo "== $1: $2 passed, $3 failed, $((leg_skipped)) skipped"
}
not_built() {
  echo "== $1: does not $2; the end of $3:"
  tail -n 60 "$3"
  echo "$1: does not $2" >> "$build/failures.txt"
  failed=$((failed + 1))
}

# Counts from the log of ctest. An entry unit.* is a program of doctest cases that says at its end
# how many there were; every other entry counts as one, unless all that it did was to skip.
cat > "$build/count.awk" << 'AWK'
/^[0-9]+\/[0-9]+ Testing: / { name = $3; good = told = bad = skips = oks = 0; entry = 1 }
/^codeexec-tests: [0-9]+ passed, / { told = 1; passed += $2; failed += $4; bad = $4 }
/^SKIPPED:/ { print > skipped_file; ++skips }
/^FAILED:/ { print name ": " $0 > failures_file }
/^ok:/ { ++oks }
/^Test Passed\.$/ { good = 1 }
/^".*" end time: / && entry {
  if (name ~ /^unit\./ && !told) good = 0
  if (!good && !bad) ++failed
  if (!good) print name > failures_file
  if (good && !told && (oks || !skips)) ++passed
  entry = 0
}
END { print passed + 0, failed + 0 }
AWK

# An engine for the tests of containers. Its images are made while the compiler runs.
engine=$build/engine
[ ${#engine} -le 64 ] || engine=/tmp/codeexec-engine-$(echo "$build" | cksum | cut -d ' ' -f 1)
in_engine() { as_root sh "$root/tests/helpers/engine.sh" "$1" "$engine"; }
stop_engine() {
  [ $docker = yes ] || return 0
  docker=no
  in_engine stop || true
}
# count_ctest NAME DIRECTORY STATUS: adds what a ctest has done there, which ended with this status.
count_ctest() {
  : > "$build/leg-skipped.txt"
  : > "$build/leg-failures.txt"
  [ -f "$2/Testing/Temporary/LastTest.log" ] || {
    mkdir -p "$2/Testing/Temporary"
    : > "$2/Testing/Temporary/LastTest.log"
  }
  counts=$(awk -v skipped_file="$build/leg-skipped.txt" -v failures_file="$build/leg-failures.txt" \
    -f "$build/count.awk" "$2/Testing/Temporary/LastTest.log")
  sed "s/^/$1: /" "$build/leg-failures.txt" >> "$build/failures.txt"
  add "$1" $counts
  case "$3:$counts" in
    *:"0 0" | [1-9]*:*" 0") not_built "$1" "run its tests" "$2/Testing/Temporary/LastTest.log" ;;
  esac
}

# not_there SUBJECT WHAT LOG: says that it is missing, which is a failure.
not_there() {
  echo "== $1: $2; the end of $3:"
  tail -n 40 "$3"
  echo "$1: $2" >> "$build/failures.txt"
  failed=$((failed + 1))
}
no_engine() {
  not_there docker "$@"
  engine_legs=
}
start_engine() {
  engine_log=$build/engine.log
  # An interrupted run may have left one.
  if in_engine stop > "$engine_log" 2>&1 && in_engine start >> "$engine_log" 2>&1; then
    DOCKER_HOST=unix://$engine/docker.sock
    export DOCKER_HOST
    echo "== docker: an engine runs; its images are made in the background"
    in_engine images > "$engine_log" 2>&1 &
    images=$!
  else
    no_engine "the engine does not start" "$engine_log"
  fi
}
wait_for_images() {
  [ -n "$images" ] || return 0
  wait "$images" || no_engine "the images could not be made" "$engine_log"
  images=
}
# A Slurm for the tests of clusters.
in_slurm() { as_root sh "$root/tests/helpers/slurm.sh" "$1" "$engine-slurm"; }
stop_slurm() {
  [ $clusters = yes ] || return 0
  clusters=no
  in_slurm stop > "$build/slurm.log" 2>&1 || true
}
start_slurm() {
  # An interrupted run may have left one.
  if in_slurm stop > "$build/slurm.log" 2>&1 &&
    SLURM_CONF=$(in_slurm start 2>> "$build/slurm.log"); then
    export SLURM_CONF
    slurm_legs=$all_legs
    echo "== clusters: a Slurm runs"
  else
    not_there clusters "Slurm does not start" "$build/slurm.log"
  fi
}
# A Kubernetes for them.
in_kubernetes() {
  as_root env CODEEXEC_KUBERNETES_BIN="${CODEEXEC_KUBERNETES_BIN:-}" HOME="$HOME" \
    sh "$root/tests/helpers/kubernetes.sh" "$@"
}
stop_kubernetes() {
  [ "$kubernetes" = running ] || return 0
  kubernetes=no
  in_kubernetes stop "$engine-kubernetes" > "$build/kubernetes.log" 2>&1 || true
}
start_kubernetes() {
  [ $kubernetes = no ] || in_kubernetes build > "$build/kubernetes.log" 2>&1 || true
  if [ $kubernetes = no ] && ! in_kubernetes has; then
    echo "== clusters: no Kubernetes: its programs are built by --kubernetes"
    return 0
  fi
  kubernetes=running
  if in_kubernetes stop "$engine-kubernetes" > "$build/kubernetes.log" 2>&1 &&
    rm -rf "$engine-kubernetes" &&
    KUBECONFIG=$(in_kubernetes start "$engine-kubernetes" 2>> "$build/kubernetes.log"); then
    export KUBECONFIG
    kubernetes_legs=$all_legs
    echo "== clusters: a Kubernetes runs"
  else
    not_there clusters "Kubernetes does not start" "$build/kubernetes.log"
  fi
}
# give_engine LEG
give_engine() {
  wait_for_images
  case $engine_legs in
    *" $1 "*) export CODEEXEC_TEST_DOCKER=1 ;;
    *) unset CODEEXEC_TEST_DOCKER ;;
  esac
  case $slurm_legs in
    *" $1 "*) export CODEEXEC_TEST_SLURM=1 ;;
    *) unset CODEEXEC_TEST_SLURM ;;
  esac
  case $kubernetes_legs in
    *" $1 "*) export CODEEXEC_TEST_KUBERNETES=1 ;;
    *) unset CODEEXEC_TEST_KUBERNETES ;;
  esac
}
# Those that have one, when there is one.
all_legs=" tests interop soak release massgen "
engine_legs=$all_legs slurm_legs= kubernetes_legs=
[ -z "${CODEEXEC_TEST_SLURM:-}" ] || slurm_legs=$all_legs
[ -z "${CODEEXEC_TEST_KUBERNETES:-}" ] || kubernetes_legs=$all_legs
images=
[ -n "${CODEEXEC_TEST_DOCKER:-}" ] || [ $docker = yes ] || engine_legs=

# configure DIRECTORY CMAKE_ARGUMENT...
configure() {
  mkdir -p "$1"
  directory=$1
  shift
  set -- -S "$root" -B "$directory" -DCMAKE_CXX_COMPILER="$CXX" -DCODEEXEC_BUILD_TESTS=ON \
    -DCODEEXEC_WERROR=ON "$@"
  configured=0
  PATH=$compiler_path cmake "$@" > "$directory/configure.log" 2>&1 || configured=$?
  # With another compiler than last time CMake forgets all else that it was told.
  if grep -q 'require your cache to be deleted' "$directory/configure.log"; then
    configured=0
    PATH=$compiler_path cmake "$@" > "$directory/configure.log" 2>&1 || configured=$?
  fi
  return $configured
}

# later NAME DIRECTORY LABELS CMAKE_ARGUMENT...: a leg whose tests are built ahead, in $build/...
later() {
  later_name=$1 directory=$2
  shift 3
  ! configure "$directory" "$@" || ahead="$ahead ${directory#"$build/"}=$(targets_of "$later_name")"
}
# The tests of one leg leave the processors idle for half of their time. What needs nothing but time
# of the processors is done then (helpers/ahead.sh), as a group of processes that can be ended.
ahead=
builder=
rm -rf "$build/ahead"
mkdir -p "$build/ahead"
begin_ahead() {
  if [ -n "$ahead" ] && has setsid; then
    CODEEXEC_COMPILERS=$compiler_path setsid nice -n 19 sh "$root/tests/helpers/ahead.sh" \
      "$build" "$jobs" $ahead > "$build/ahead.log" 2>&1 &
    builder=$!
  fi
}
# ready FILE [TEXT]: what waits for it may begin, and then does what the text says.
ready() {
  [ ! -f "$build/ahead/$1" ] || return 0
  echo "${2:-}" > "$build/ahead/$1.new"
  mv "$build/ahead/$1.new" "$build/ahead/$1"
}
# finish_ahead NAME: waits until this is done, if it is a part of that. What was not begun is done
# now.
finish_ahead() {
  for item in $ahead; do
    [ "${item%%=*}" = "$1" ] || continue
    while [ -n "$builder" ] && [ ! -f "$build/ahead/$1.status" ]; do
      sleep 0.2
      kill -0 "$builder" 2> "$build/probe.log" || builder=
    done
    [ -f "$build/ahead/$1.status" ] || CODEEXEC_COMPILERS=$compiler_path \
      sh "$root/tests/helpers/ahead.sh" "$build" "$jobs" "$item"
  done
}
# ahead_script NAME: counts what a script has printed that was run ahead.
ahead_script() {
  finish_ahead "$1"
  told "$1" "$(cat "$build/ahead/$1.status")"
}
# However this ends: neither the engine nor a compiler outlives it.
clean_up() {
  [ -z "$builder" ] || kill -TERM "-$builder" 2> "$build/probe.log" || true
  [ -z "$soaker" ] || kill -TERM "$soaker" || true
  [ -z "$client_driver" ] || kill -TERM "$client_driver" || true
  stop_engine
  stop_slurm
  stop_kubernetes
}

# leg NAME DIRECTORY LABELS CMAKE_ARGUMENT...
leg() {
  leg_name=$1
  directory=$2
  labels=$3
  shift 3
  finish_ahead "${directory#"$build/"}"
  echo "== $leg_name: building in $directory"
  configure "$directory" "$@" || {
    not_built "$leg_name" configure "$directory/configure.log"
    return
  }
  # The programs of the sections bring all that they run; the others are for the other labels.
  targets=all
  [ "$labels" != unit ] || targets=$(targets_of "$leg_name" | tr ',' ' ')
  [ -z "$only" ] || targets=$(printf 'codeexec-test-%s ' $only)
  : > "$directory/build.log"
  for target in $targets; do
    cmake --build "$directory" -j "$jobs" --target "$target" >> "$directory/build.log" 2>&1 || {
      not_built "$leg_name" build "$directory/build.log"
      return
    }
  done
  [ "$leg_name" != tests ] || begin_ahead
  [ -z "$everyday_tools" ] || wait "$everyday_tools" || cat "$build/everyday.log"
  everyday_tools=
  give_engine "$leg_name"
  [ "$leg_name" != tests ] ||
    ready engine "${CODEEXEC_TEST_DOCKER:+export CODEEXEC_TEST_DOCKER=$CODEEXEC_TEST_DOCKER}"
  echo "== $leg_name: running"
  # Two more at a time than there are processors: many of them wait most of the time.
  rm -f "$directory/Testing/Temporary/LastTest.log"
  status=0
  (cd "$directory" && ctest -L "$labels" -LE '^whole$' ${exclude:+-E "$exclude"} \
    ${chosen:+-R "^(${chosen#|})"} $(tests_of "$leg_name") -j $((jobs + 2)) \
    --output-on-failure) || status=$?
  count_ctest "$leg_name" "$directory" $status
}

# told NAME STATUS: counts what a script has printed to its log, lines ok:, FAILED: and SKIPPED:.
told() {
  log=$build/$1.log
  if [ "$2" -ne 0 ] && ! grep -q '^FAILED:' "$log"; then
    echo "FAILED: it ended with status $2" >> "$log"
  fi
  cat "$log"
  grep '^SKIPPED:' "$log" > "$build/leg-skipped.txt" || true
  sed -n "s/^FAILED:/$1:/p" "$log" >> "$build/failures.txt"
  add "$1" "$(grep -c '^ok:' "$log")" "$(grep -c '^FAILED:' "$log")"
}
# script NAME COMMAND...: runs it, and counts
script() {
  part=$1
  shift
  status=0
  OUT=$build/$part "$@" > "$build/$part.log" 2>&1 || status=$?
  told "$part" $status
}

run_interop() {
  give_engine interop
  echo "== interop: official MCP clients against $build/codeexec-mcp"
  script interop env CODEEXEC_MCP="$build/codeexec-mcp" \
    CODEEXEC_MCP_FIXTURE="$build/tests/codeexec-mcp-fixture" sh "$root/tests/interop/run.sh"
}

run_massgen() {
  give_engine massgen
  echo "== massgen: its own package, with its own configurations, against $build/codeexec-mcp"
  script massgen env CODEEXEC_MCP="$build/codeexec-mcp" \
    CODEEXEC_MCP_STATIC="$build/codeexec-mcp-static" sh "$root/tests/clients/massgen/run.sh"
}

run_report() {
  echo "== report: the page of --report in Chromium"
  script report env CODEEXEC_MCP="$build/codeexec-mcp" sh "$root/tests/report/run.sh"
}

run_checkers() {
  echo "== checkers: clang-tidy, and the schemas of the files for GitHub"
  script workflows sh "$root/tests/hygiene/workflows.sh"
  ahead_script tidy
}

run_hygiene() {
  echo "== hygiene: what compiles all of the header many times"
  finish_ahead hygiene
  cat "$build/hygiene.log"
  count_ctest hygiene "$build/tests/hygiene" "$(cat "$build/ahead/hygiene.status")"
}

run_fuzz() {
  echo "== fuzz: $fuzz seconds for each target"
  finish_ahead fuzzers
  script fuzz env PATH="$compiler_path" sh "$root/tests/fuzz/run.sh" "$fuzz"
}

run_portability() {
  echo "== portability: other systems, processors and libraries"
  ahead_script portability
}

tell_wholes() {
  wholes=$(wc -l < "$WHOLE")
  verdict=ok
  [ "$wholes" -le $most_wholes ] || verdict=FAILED
  {
    echo "$verdict: compiles of the whole implementation: $((wholes)) (limit $most_wholes)"
    sed 's/^/  /' "$WHOLE"
  } > "$build/whole.log"
  told whole 0
}

run_release() {
  echo "== release: its programs and packages are built, installed and used"
  ahead_script release
}

# The soak uses half a processor and depends on no time, so it runs beside others.
soaker=
start_soak() {
  give_engine soak
  echo "== soak: $soak seconds of mixed load, in the background"
  CODEEXEC_MCP=$build/codeexec-mcp OUT=$build/soak sh "$root/tests/soak/run.sh" "$soak" \
    > "$build/soak.log" 2>&1 &
  soaker=$!
}
finish_soak() {
  status=0
  wait "$soaker" || status=$?
  soaker=
  told soak $status
}

# Clients wait for their packages, their own start and each other, so they run beside others, too.
client_driver=
start_clients() {
  echo "== clients: real client programs, in the background"
  chosen_clients=
  [ $clients = all ] || chosen_clients=--quick
  CODEEXEC_MCP=$build/codeexec-mcp OUT=$build/clients sh "$root/tests/clients/run.sh" \
    $chosen_clients > "$build/clients.log" 2>&1 &
  client_driver=$!
}
finish_clients() {
  status=0
  wait "$client_driver" || status=$?
  client_driver=
  told clients $status
}

# Half of what a test file costs are the headers that all of them include.
batches="-DCODEEXEC_BUILD_EXAMPLES=OFF -DCODEEXEC_TEST_BATCH=8"

# targets_of LEG, tests_of LEG: what is built for it, with commas, and the option of ctest that
# selects what is run there. ThreadSanitizer sees nothing in a test without a thread: it gets the
# sections that start threads or use processes, whose readers are threads, and each other file that
# has one. `least` changes nothing in a section that asks for no capability and catches nothing.
threads='std::(thread|async)|pthread_create'
needs_of() { # SECTION: its row in the table of src/frame.hpp, which may go on in the next lines
  awk -v section="$1" '/^\/\/   [a-zA-Z]/ { on = $2 == section && $3 == "needs:" } on' \
    "$root/src/frame.hpp"
}
chosen_tests() { # LEG: prints SECTION, or SECTION/FILE
  for section in $sections; do
    if [ "$1" = least ]; then
      ! grep -qE 'CODEEXEC_HAS_|catch \(' "$root/src/$section"/* || echo "$section"
    elif grep -qE "$threads" "$root/src/$section"/* || needs_of "$section" | grep -qw process; then
      echo "$section"
    else
      for file in "$root/tests/unit/$section"/*.cpp; do
        ! grep -qE "$threads" "$file" || echo "$section/$(basename "$file" .cpp)"
      done
    fi
  done
}
targets_of() {
  case $1 in
    tsan | least) chosen_tests "$1" | sed 's|/.*||; s|^|codeexec-test-|' | uniq | paste -sd , - ;;
    *) echo codeexec-tests ;;
  esac
}
# Without groups, of which ctest takes only a few.
tests_of() {
  case $1 in
    tsan | least) chosen_tests "$1" |
      awk -F/ '{ name = "unit\\." $1 "\\." $2 }
        NF == 1 { print name }
        NF == 2 { print name "-"; print name "$" }' | paste -sd '|' - | sed 's/^/-R /' ;;
  esac
}

# The implementation is built with -O1, and all the rest without optimisation, as that takes the
# time. The examples are built as they say by one of the tests. This leg has the joined header, and
# all others have its sections.
asan_leg() {
  "$1" asan+ubsan "$build/asan" unit -DCODEEXEC_JOINED=ON $batches \
    -DCMAKE_CXX_COMPILER="$address_sanitizer_cxx" -DCMAKE_BUILD_TYPE=None \
    -DCMAKE_CXX_FLAGS="-O0 -g1 $address_sanitizer"
}
tsan_leg() {
  "$1" tsan "$build/tsan" unit $batches -DCMAKE_BUILD_TYPE=None \
    -DCMAKE_CXX_FLAGS="-O1 -g1 -fsanitize=thread"
}
clang_leg() {
  "$1" clang++ "$build/clang" unit -DCMAKE_CXX_COMPILER=clang++ $batches \
    -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS=-O0
}
# Every capability macro of the header set to 0, and neither exceptions nor type information.
capabilities=$(grep -oE 'CODEEXEC_HAS_[A-Z_]+' "$root/codeexec.hpp" | sort -u | sed 's/.*/-D&=0/')
least_leg() {
  "$1" least "$build/least" unit $batches -DCMAKE_BUILD_TYPE=None \
    -DCMAKE_CXX_FLAGS="$(echo -O0 -fno-exceptions -fno-rtti $capabilities) \
-DDOCTEST_CONFIG_NO_EXCEPTIONS_BUT_WITH_ALL_ASSERTS"
}
# AddressSanitizer with the other compiler, which then has run every other test.
address_sanitizer_cxx=$CXX
clang_with=
if [ $sanitizers = yes ] && has_clang_sanitizers; then
  address_sanitizer_cxx=clang++
  clang_with=asan+ubsan
fi

exclude=
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
[ $docker = no ] || start_engine
[ $clusters = no ] || start_slurm
[ $clusters = no ] || start_kubernetes
if [ $sanitizers = yes ]; then
  asan_leg later
  tsan_leg later
fi
if [ $compilers = yes ]; then
  [ -n "$clang_with" ] || ! has clang++ || clang_leg later
  least_leg later
fi
# What keeps both processors busy comes last.
[ $release = no ] || ahead="$ahead release"
[ $portability = no ] || ahead="$ahead portability"
[ $compilers = no ] || ahead="$ahead tidy"
[ $fuzz = no ] || ahead="$ahead fuzzers"
[ $hygiene = no ] || ahead="$ahead hygiene"
labels='unit|oracle|inside|attacks|everyday|faults|hosts|hygiene'
[ -z "$only" ] || labels="^($(echo $only | tr ' ' '|'))\$"
# One of those that compile the whole header often shows what this one does.
[ $hygiene = no ] || exclude='hygiene\.header'
leg tests "$build" "$labels" $batches -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS=-O0
ready engine
[ $soak = no ] || start_soak
[ $clients = no ] || start_clients
[ $interop = no ] || run_interop
ready clients
[ $clients != all ] || run_massgen
[ -n "$only" ] || run_report
if [ $sanitizers = yes ]; then
  # Options rather than defaults: a report must end the program, or nobody sees it.
  ASAN_OPTIONS=halt_on_error=1:detect_stack_use_after_return=1
  UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
  TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
  export ASAN_OPTIONS UBSAN_OPTIONS TSAN_OPTIONS
  # What the images have in them does not depend on the compiler.
  exclude='unit\.docker\.images'
  asan_leg leg
  # Thousands of scripts of this system are judged in one thread, for minutes under this sanitizer.
  exclude="$exclude|unit\\.policy\\.scripts"
  tsan_leg leg
fi
if [ $compilers = yes ]; then
  # Nothing in them depends on the compiler, and one of these has neither sandbox nor supervisor.
  exclude='unit\.process\..*-|unit\.docker\.images'
  if [ -n "$clang_with" ]; then
    echo "== clang++: has run the tests with $clang_with"
  elif has clang++; then
    clang_leg leg
  else
    echo "SKIPPED: clang++ is not installed" > "$build/leg-skipped.txt"
    add clang++ 0 0
  fi
  least_leg leg
fi
[ $fuzz = no ] || run_fuzz
[ $hygiene = no ] || run_hygiene
[ $portability = no ] || run_portability
[ $compilers = no ] || run_checkers
[ $release = no ] || run_release
[ $soak = no ] || finish_soak
[ $clients = no ] || finish_clients
[ $counted = no ] || tell_wholes

echo
# The tests of one section build from src/ and do not look at the header.
[ -z "$only" ] || ! has python3 || python3 -B "$root/src/join.py" --check 2>&1 |
  sed 's/^/note: /'
cat "$build/skipped.txt"
[ ! -s "$build/failures.txt" ] || sed 's/^/FAILED: /' "$build/failures.txt"
echo "tests: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ ! -s "$build/failures.txt" ]
