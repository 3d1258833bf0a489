#!/bin/sh
# Compiles the header for many systems and compilers, and runs what can run here:
#   sh tests/portability/run.sh [--quick | --all | leg...]      (--quick without arguments)
#
#   --quick   macos, freebsd (compiled without code, by zig's clang++), i386 and aarch64
#             (compiled and run): what CI runs, in less than 95 CPU-seconds
#   --all     every leg: besides those
#     musl               compiled without code; tests/release builds and runs programs with it
#     newest             the newest clang++ that is here
#     compilers          both halves with every g++ and clang++ that is here, in C++17, 20 and 23
#     rtti, exceptions   without type information, without exceptions
#     fortify, lto       with the warnings that only an optimiser gives; debug: a checked libstdc++
#     static, musl-run   a static program of glibc's, and one of musl's by zig
#     s390x              a big-endian system, under qemu
#     openbsd, netbsd    compiled without code
#
# What runs is the smoke test (smoke.cpp); for i386 and aarch64 it is made of the parts in src/. All
# that is made stays in $OUT (build/portability). Debian packages: g++-i686-linux-gnu
# g++-aarch64-linux-gnu g++-s390x-linux-gnu qemu-user-static python3-venv and any g++-N and clang-N;
# from PyPI ziglang, into a venv in $OUT. Prints lines "ok: ...", "FAILED: ..." or "SKIPPED: ..."
# and, at the end, a table; the exit status is 1 when something failed.
set -eu
LC_ALL=C
export LC_ALL
here=$(cd "$(dirname "$0")" && pwd)
ROOT=$(cd "$here/../.." && pwd)
OUT=${OUT:-${CODEEXEC_BUILD_DIR:-$ROOT/build}/portability}
WARNINGS="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wold-style-cast -Werror"
quick="macos freebsd i386 aarch64"
all="$quick musl newest compilers rtti exceptions fortify lto debug static musl-run s390x"
all="$all openbsd netbsd"
mkdir -p "$OUT"
OUT=$(cd "$OUT" && pwd)
ZIG_GLOBAL_CACHE_DIR=$OUT/zig-cache ZIG_LOCAL_CACHE_DIR=$OUT/zig-cache
export ZIG_GLOBAL_CACHE_DIR ZIG_LOCAL_CACHE_DIR
failures=0
: > "$OUT/table.txt"

has() { command -v "$1" > "$OUT/probe.log" 2>&1; }
row() { printf '%-12s %-52s %s\n' "$1" "$2" "$3" >> "$OUT/table.txt"; }
ok() { # LEG WHAT
  echo "ok: $1: $2"
  row "$1" "$2" ok
}
fail() { # LEG WHAT LOG
  echo "FAILED: $1: $2"
  head -n 40 "$3"
  row "$1" "$2" FAILED
  failures=$((failures + 1))
}
skip() { # LEG REASON
  echo "SKIPPED: portability.$1: $2"
  row "$1" "$2" skipped
}

printf '#include "codeexec.hpp"\n' > "$OUT/declarations.cpp"
printf '#define CODEEXEC_IMPLEMENTATION\n#include "codeexec.hpp"\n' > "$OUT/definitions.cpp"
printf '#include <string>\n' > "$OUT/empty.cpp"

# accepts COMPILER FLAG...
accepts() { "$@" -fsyntax-only "$OUT/empty.cpp" > "$OUT/probe.log" 2>&1; }

# syntax LEG WHAT HALF COMPILER FLAG...
syntax() {
  leg=$1 what=$2 half=$3
  shift 3
  if "$@" $WARNINGS -I"$ROOT" -fsyntax-only "$OUT/$half.cpp" > "$OUT/$leg.log" 2>&1; then
    ok "$leg" "$what"
  else
    fail "$leg" "$what" "$OUT/$leg.log"
  fi
}

# smoke LEG WHAT RUNNER COMPILER FLAG...: builds the smoke test, and runs it with RUNNER when it is
# not "no". With $parts=yes the implementation is compiled from the parts in src/.
parts=no
build_smoke() {
  if [ $parts = no ]; then
    "$@" -std=c++17 $WARNINGS -I"$ROOT" "$here/smoke.cpp" -pthread -o "$OUT/smoke-$leg"
  else
    sh "$ROOT/tests/helpers/sections.sh" "$OUT/sections-$leg" "$@" -std=c++17 $WARNINGS &&
      "$@" -std=c++17 $WARNINGS -I"$ROOT" -DCODEEXEC_IMPLEMENTED "$here/smoke.cpp" \
        "$OUT/sections-$leg"/*.o -pthread -o "$OUT/smoke-$leg"
  fi
}
smoke() {
  leg=$1 what=$2 runner=$3
  shift 3
  if ! build_smoke "$@" > "$OUT/$leg.log" 2>&1; then
    fail "$leg" "$what: does not build" "$OUT/$leg.log"
    return
  fi
  ok "$leg" "$what: builds"
  [ "$runner" != no ] || return 0
  if timeout 300 $runner "$OUT/smoke-$leg" > "$OUT/$leg.out" 2>&1; then
    ok "$leg" "$what: $(grep -c '^ok:' "$OUT/$leg.out") checks pass"
  else
    fail "$leg" "$what: checks" "$OUT/$leg.out"
  fi
  row "$leg" "has:$(sed -n 's/^has: / /p' "$OUT/$leg.out" | tr -d '\n')" ""
  row "$leg" "lacks:$(sed -n 's/^lacks: \([a-z_]*\).*/ \1/p' "$OUT/$leg.out" | tr -d '\n')" ""
}

# foreign LEG WHAT MACHINE COMPILER FLAG...: the smoke test for another machine, under qemu.
foreign() {
  leg=$1 what=$2 runner=qemu-$3-static
  shift 3
  if ! has "$1"; then
    skip "$leg" "no $1 (g++-${1%-g++})"
  elif has "$runner"; then
    smoke "$leg" "$what" "$runner" "$@" -O0 -static
  else
    smoke "$leg" "$what" no "$@" -O0 -static
    skip "$leg" "not run: no $runner (qemu-user-static)"
  fi
}

# zig: a compiler with the headers of many systems. Sets $ZIG.
ZIG=
find_zig() {
  [ -z "$ZIG" ] || return 0
  if [ ! -x "$OUT/venv/bin/python" ]; then
    python3 -m venv "$OUT/venv" > "$OUT/venv.log" 2>&1 || return 1
  fi
  if ! "$OUT/venv/bin/python" -c 'import ziglang' > "$OUT/venv.log" 2>&1; then
    "$OUT/venv/bin/pip" install -q ziglang > "$OUT/venv.log" 2>&1 || return 1
  fi
  find_it='import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), "zig"))'
  ZIG=$("$OUT/venv/bin/python" -c "$find_it")
}

# What `zig c++` tells its compiler of a system. Asked with a file that it has not seen, as it says
# nothing of what it finds in its cache, and from $OUT, below which paths are relative. `zig c++
# -fsyntax-only` would first build a whole libc++.
zig_flags() { # TARGET
  date "+int at_%s_%N_$$;" > "$OUT/ask.cpp"
  (cd "$OUT" && ZIG_VERBOSE_CC=1 "$ZIG" c++ -target "$1" -c ask.cpp -o ask.o 2>&1) |
    grep -m 1 "ask\.cpp" | tr ' ' '\n' | awk -v out="$OUT/" '
      /^-target$/ { print; getline; print; next }
      /^-isystem$/ { print; getline; print (/^\// ? "" : out) $0; next }
      /^-(D|nostdinc|mmacos)/ { print }' | tr '\n' ' '
}

# zig_syntax LEG WHAT TARGET
zig_syntax() {
  if ! find_zig; then
    skip "$1" "no zig: ziglang of PyPI cannot be installed ($OUT/venv.log)"
    return
  fi
  flags=$(zig_flags "$3")
  case $flags in
    *-isystem*) (cd "$OUT" && "$ZIG" clang $flags -fsyntax-only empty.cpp) > "$OUT/$1.log" 2>&1 ||
      { skip "$1" "zig has no headers for $3" && return; } ;;
    *) skip "$1" "zig does not know $3" && return ;;
  esac
  # For the count of tests/run.sh, which sees no compiler of zig.
  [ -z "${WHOLE:-}" ] || echo "zig clang: $1" >> "$WHOLE"
  syntax "$1" "$2" definitions "$ZIG" clang -std=c++17 $flags
}

newest_clang() {
  for number in 30 29 28 27 26 25 24 23 22 21 20 19 18 17 16 15 14 13; do
    has "clang++-$number" && echo "clang++-$number" && return
  done
  ! has clang++ || echo clang++
}
every_compiler() {
  for number in 11 12 13 14 15 16; do
    ! has "g++-$number" || echo "g++-$number"
  done
  for number in 13 14 15 16 17 18 19 20 21 22 23 24; do
    ! has "clang++-$number" || echo "clang++-$number"
  done
}
# The newest -std=c++23 by the name that the compiler has for it.
standards() { # COMPILER
  for std in c++17 c++20 c++23; do
    if accepts "$1" -std=$std; then echo $std; elif [ $std = c++23 ]; then echo c++2b; fi
  done
}

run_leg() {
  case $1 in
    newest)
      compiler=$(newest_clang)
      if [ -z "$compiler" ]; then
        skip newest "no clang++"
      else
        syntax newest "$compiler, C++20" definitions "$compiler" -std=c++20
      fi
      ;;
    compilers)
      for compiler in $(every_compiler); do
        for std in $(standards "$compiler"); do
          for half in declarations definitions; do
            syntax compilers "$compiler -std=$std, $half" $half "$compiler" -std=$std
          done
        done
        case $compiler in
          clang*)
            if accepts "$compiler" -stdlib=libc++; then
              syntax compilers "$compiler, libc++" definitions "$compiler" -std=c++17 -stdlib=libc++
            else
              skip compilers "$compiler: no libc++ for it"
            fi
            ;;
        esac
      done
      ;;
    rtti) smoke rtti "without type information" "" ${CXX:-c++} -O0 -fno-rtti ;;
    exceptions) smoke exceptions "without exceptions" "" ${CXX:-c++} -O0 -fno-exceptions ;;
    fortify)
      smoke fortify "-O2, fortified" "" ${CXX:-c++} -O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3
      ;;
    lto) smoke lto "-O3, optimised by the linker" "" ${CXX:-c++} -O3 -flto ;;
    debug)
      smoke debug "a checked libstdc++" "" ${CXX:-c++} -O0 -D_GLIBCXX_ASSERTIONS -D_GLIBCXX_DEBUG \
        -D_GLIBCXX_DEBUG_PEDANTIC
      ;;
    static) smoke static "glibc, static" "" ${CXX:-c++} -O0 -static ;;
    musl) zig_syntax musl "x86_64 Linux with musl and libc++" x86_64-linux-musl ;;
    musl-run)
      if find_zig; then
        smoke musl-run "x86_64 Linux with musl, static" "" "$ZIG" c++ -target x86_64-linux-musl \
          -static -O1
      else
        skip musl-run "no zig: ziglang of PyPI cannot be installed ($OUT/venv.log)"
      fi
      ;;
    macos) zig_syntax macos "macOS on arm64" aarch64-macos ;;
    freebsd) zig_syntax freebsd "FreeBSD 14 on x86_64" x86_64-freebsd ;;
    openbsd) zig_syntax openbsd "OpenBSD on x86_64" x86_64-openbsd ;;
    netbsd) skip netbsd "not supported: it has no uselocale()" ;;
    i386)
      parts=yes
      compiler="i686-linux-gnu-g++ -D_FILE_OFFSET_BITS=64 -D_TIME_BITS=64"
      if ! has i686-linux-gnu-g++; then
        skip i386 "no i686-linux-gnu-g++ (g++-i686-linux-gnu)"
      elif [ "$(uname -m)" = x86_64 ]; then
        smoke i386 "i386 Linux" "" $compiler -O0 -static
      else
        foreign i386 "i386 Linux" i386 $compiler
      fi
      parts=no
      ;;
    aarch64)
      parts=yes
      foreign aarch64 "aarch64 Linux under qemu" aarch64 aarch64-linux-gnu-g++
      parts=no
      ;;
    s390x) foreign s390x "s390x Linux (big-endian) under qemu" s390x s390x-linux-gnu-g++ ;;
    *)
      echo "tests/portability/run.sh: unknown leg $1 (one of: $all)" >&2
      exit 2
      ;;
  esac
}

case ${1:---quick} in
  --quick) set -- $quick ;;
  --all) set -- $all ;;
  -h | --help) sed -n '2,/^set -eu/{ /^set -eu/!s/^# \{0,1\}//p; }' "$0" && exit 0 ;;
esac
for leg_wanted; do run_leg "$leg_wanted"; done
echo
cat "$OUT/table.txt"
[ "$failures" -eq 0 ]
