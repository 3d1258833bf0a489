#!/bin/sh
# Builds what a release consists of, and publishes nothing:
#
#   sh .release/build.sh [--out DIR] [--binary] [ARCH...]
#
#   ARCH         x86_64, aarch64 or both (default)
#   --out DIR    where everything goes; default: build/release ($CODEEXEC_BUILD_DIR/release)
#   --binary     only DIR/bin/ARCH/codeexec-mcp, the static server
#
# DIR/dist then has, for each ARCH: an archive, a bill of materials, a Python wheel, an npm package
# and a Debian package; and once: the npm package that chooses among those, codeexec.hpp, and
# SHA256SUMS of all of them. The same commit gives the same bytes, wherever it lies: the date in
# them is $SOURCE_DATE_EPOCH, by default that of the last commit.
#
# It needs Linux, python3 with venv, GNU tar, gzip, npm and dpkg-deb; with --binary only python3.
# The compiler and the other tools come from PyPI in the versions of requirements.txt, into
# DIR/tools. docs/releasing.md has the rest of a release.
set -eu
LC_ALL=C
export LC_ALL
umask 022

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/.." && pwd)
out=${CODEEXEC_BUILD_DIR:-$root/build}/release
only_binary=no arches=

usage() { sed -n '2,/^set -eu/{ /^set -eu/!s/^# \{0,1\}//p; }' "$0"; }
usage_error() {
  echo ".release/build.sh: $1 (try --help)" >&2
  exit 2
}
fail() {
  echo ".release/build.sh: $1" >&2
  exit 1
}
while [ $# -gt 0 ]; do
  case $1 in
    --out)
      [ -n "${2:-}" ] || usage_error "--out needs a folder"
      out=$2
      shift
      ;;
    --binary) only_binary=yes ;;
    x86_64 | aarch64) arches="$arches $1" ;;
    -h | --help) usage && exit 0 ;;
    *) usage_error "unknown option or processor $1" ;;
  esac
  shift
done
arches=${arches:-x86_64 aarch64}
needs=python3
[ $only_binary = yes ] || needs="python3 tar gzip npm dpkg-deb sha256sum"
mkdir -p "$out"
out=$(cd "$out" && pwd)
for program in $needs; do
  command -v "$program" > "$out/probe.log" || fail "there is no program $program"
done

# The version lives in one place: the header.
version=$(sed -n 's/^#define CODEEXEC_VERSION_STRING "\(.*\)"$/\1/p' "$root/codeexec.hpp")
[ -n "$version" ] || fail "codeexec.hpp says no version"
if [ $only_binary = no ]; then
  SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct)} ||
    fail "this is no git clone: set SOURCE_DATE_EPOCH to the date of the release"
  export SOURCE_DATE_EPOCH
fi

# quietly LOG COMMAND...: what it printed is shown when it fails. In a process of its own: where the
# shell looks at the status of a function, it goes on after each command in there that fails.
quietly() {
  log=$out/$1.log
  shift
  "$@" > "$log" 2>&1 &
  wait $! || {
    tail -n 40 "$log" >&2
    fail "failed: $*"
  }
}

# tools --------------------------------------------------------------------------------------------

tools=$out/tools
install_tools() {
  rm -rf "$tools"
  python3 -m venv "$tools"
  "$tools/bin/pip" install -q --disable-pip-version-check -r "$here/requirements.txt"
  cp "$here/requirements.txt" "$tools/"
}
if ! cmp -s "$here/requirements.txt" "$tools/requirements.txt"; then
  echo "== installing the compiler and the other tools from PyPI"
  quietly tools install_tools
fi
# Zig's own libraries, which it compiles first, and what is compiled here.
ZIG_GLOBAL_CACHE_DIR=${ZIG_GLOBAL_CACHE_DIR:-$out/zig-cache} ZIG_LOCAL_CACHE_DIR=$out/zig-cache
export ZIG_GLOBAL_CACHE_DIR ZIG_LOCAL_CACHE_DIR

# the binaries -------------------------------------------------------------------------------------

# Paths are relative to the root, so that none of this machine gets into the file. -target without
# a CPU means the oldest one of that kind. The -f options save 13 KB of 2 MB. A warning is an error:
# no other test compiles everything for musl.
warnings="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wold-style-cast -Werror"
compile() {
  mkdir -p "$out/bin/$1"
  (cd "$root" && "$tools/bin/python" -m ziglang c++ -target "$1-linux-musl" -std=c++17 \
    $warnings -Os -static -s -fomit-frame-pointer -ffunction-sections -fdata-sections \
    -I. examples/mcp_server.cpp -o "$out/bin/$1/codeexec-mcp")
  chmod 755 "$out/bin/$1/codeexec-mcp"
}
# Side by side, as each takes one processor for a minute or two.
compilers=
for arch in $arches; do
  echo "== compiling codeexec-mcp for $arch"
  # For the count of tests/run.sh, which sees no compiler of zig.
  [ -z "${WHOLE:-}" ] || echo "zig c++: $arch" >> "$WHOLE"
  compile "$arch" > "$out/compile-$arch.log" 2>&1 &
  compilers="$compilers $arch=$!"
done
for compiler in $compilers; do
  wait "${compiler#*=}" || {
    tail -n 40 "$out/compile-${compiler%=*}.log" >&2
    fail "the compiler failed for ${compiler%=*}"
  }
done
[ $only_binary = no ] || exit 0

# what the packages have in common -----------------------------------------------------------------

dist=$out/dist stage=$out/stage
rm -rf "$dist" "$stage"
mkdir -p "$dist" "$stage"
summary="An MCP server that runs shell commands and code for AI agents, guarded and confined"

# The licences of what is linked in, as zig packs it.
zig=$("$tools/bin/python" -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__))')
third_party() {
  echo "codeexec-mcp is made of codeexec.hpp, whose licence is in the file LICENSE, and of these"
  echo "libraries, whose licences follow."
  for part in "musl, the C library:lib/libc/musl/COPYRIGHT" \
    "libc++, the C++ library:lib/libcxx/LICENSE.TXT" "libc++abi:lib/libcxxabi/LICENSE.TXT" \
    "libunwind:lib/libunwind/LICENSE.TXT" \
    "Zig's parts of the C library and of the compiler's run time:LICENSE"; do
    printf '\n==== %s\n\n' "${part%%:*}"
    cat "$zig/${part##*:}"
  done
}
third_party > "$stage/THIRD-PARTY"

# put FOLDER FILE...: into a folder that is made for it
put() {
  mkdir -p "$1"
  folder=$1
  shift
  cp "$@" "$folder/"
}

man=$root/docs/codeexec-mcp.1
completions=$root/docs/completions

# one function per kind of package -----------------------------------------------------------------

archive() { # ARCH
  name=codeexec-mcp-$version-linux-$1
  put "$stage/$name" "$root/LICENSE" "$stage/THIRD-PARTY" "$out/bin/$1/codeexec-mcp"
  cp "$here/package.md" "$stage/$name/README.md"
  cp "$man" "$stage/$name/"
  put "$stage/$name/completions" "$completions"/*
  chmod -R u+w,go+rX,go-w "$stage/$name"
  tar -C "$stage" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
    --format=ustar -cf "$stage/$name.tar" "$name"
  gzip -9 -n -c "$stage/$name.tar" > "$dist/$name.tar.gz"
}

bill_of_materials() { # ARCH
  "$tools/bin/python" "$here/sbom.py" "$1" "$version" "$out/bin/$1/codeexec-mcp" \
    "$root/codeexec.hpp" > "$dist/codeexec-mcp-$version-linux-$1.cdx.json"
}

# A static program runs with every libc, and in every distribution that pip knows.
wheel() { # ARCH
  put "$stage/wheel-$1" "$here"/wheel/* "$root/LICENSE" "$stage/THIRD-PARTY" \
    "$out/bin/$1/codeexec-mcp"
  cp "$here/package.md" "$stage/wheel-$1/README.md"
  cp "$dist/codeexec-mcp-$version-linux-$1.cdx.json" "$stage/wheel-$1/codeexec-mcp.cdx.json"
  (cd "$stage/wheel-$1" && CODEEXEC_VERSION=$version \
    CODEEXEC_PLATFORM=manylinux_2_17_$1.manylinux2014_$1.musllinux_1_1_$1 \
    "$tools/bin/python" -m hatchling build -t wheel -d "$dist")
}

npm_package() { # FOLDER [CPU]
  put "$1" "$root/LICENSE"
  cp "$here/package.md" "$1/README.md"
  node "$here/npm/packages.mjs" "$version" "$summary" ${2:+"$2"} > "$1/package.json"
  (cd "$1" && npm pack --pack-destination "$dist")
}
npm_program() { # ARCH
  put "$stage/npm-$1" "$stage/THIRD-PARTY" "$out/bin/$1/codeexec-mcp"
  case $1 in
    x86_64) npm_package "$stage/npm-$1" x64 ;;
    aarch64) npm_package "$stage/npm-$1" arm64 ;;
  esac
}
npm_launcher() {
  put "$stage/npm" "$here/npm/launcher.js"
  npm_package "$stage/npm"
}

debian() { # ARCH
  case $1 in
    x86_64) debian_arch=amd64 ;;
    aarch64) debian_arch=arm64 ;;
  esac
  tree=$stage/debian-$1
  put "$tree/usr/bin" "$out/bin/$1/codeexec-mcp"
  share=$tree/usr/share
  mkdir -p "$share/doc/codeexec-mcp" "$share/man/man1" "$share/bash-completion/completions" \
    "$tree/DEBIAN"
  cat "$root/LICENSE" "$stage/THIRD-PARTY" > "$share/doc/codeexec-mcp/copyright"
  gzip -9 -n -c "$man" > "$share/man/man1/codeexec-mcp.1.gz"
  cp "$completions/codeexec-mcp.bash" "$share/bash-completion/completions/codeexec-mcp"
  put "$share/zsh/vendor-completions" "$completions/_codeexec-mcp"
  put "$share/fish/vendor_completions.d" "$completions/codeexec-mcp.fish"
  chmod -R u+w,go+rX,go-w "$tree"
  cat > "$tree/DEBIAN/control" << CONTROL
Package: codeexec-mcp
Version: $version
Architecture: $debian_arch
Maintainer: codeexec.hpp contributors
Section: utils
Priority: optional
Installed-Size: $(($(wc -c < "$out/bin/$1/codeexec-mcp") / 1024))
Description: $summary
 It is one static program and needs nothing beside it. Commands are bounded in time, memory
 and output, judged by a policy that understands the shell, and confined by the kernel.
CONTROL
  # The dates of the files are those of now, which dpkg-deb sets back to $SOURCE_DATE_EPOCH.
  dpkg-deb --root-owner-group -Zgzip --build "$tree" \
    "$dist/codeexec-mcp_${version}_$debian_arch.deb"
}

for arch in $arches; do
  echo "== packing codeexec-mcp for $arch"
  quietly archive archive "$arch"
  quietly sbom bill_of_materials "$arch"
  quietly wheel wheel "$arch"
  quietly npm npm_program "$arch"
  quietly debian debian "$arch"
done
quietly npm npm_launcher
cp "$root/codeexec.hpp" "$dist/"
(cd "$dist" && sha256sum -- * > "$stage/SHA256SUMS")
mv "$stage/SHA256SUMS" "$dist/"
rm -rf "$stage"
echo "== $dist:"
cat "$dist/SHA256SUMS"
