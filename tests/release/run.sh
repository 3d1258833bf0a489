#!/bin/sh
# What .release/build.sh makes, built, installed each in its way, and used by official MCP clients:
#   [OUT=build/release] [INTEROP=build/interop] sh tests/release/run.sh
# Nothing is published, and nothing is installed outside OUT: wheels go into a venv of their own,
# npm packages into an empty project, Debian packages into a folder, and, where
# CODEEXEC_TEST_DOCKER=1 says that $DOCKER_HOST is an engine of the tests, into a container.
# INTEROP is where the clients are, or are put; the scenario of tests/interop runs, too. It needs
# the network (PyPI and npm) and is for x86_64. RELEASE_BUILT=1 takes what OUT has from last time.
# Prints "ok: ...", "FAILED: ..." or "SKIPPED: ..." lines.
OUT=${OUT:-${CODEEXEC_BUILD_DIR:-$(dirname "$0")/../../build}/release}
. "$(dirname "$0")/../hygiene/lib.sh"
name=release
OUT=$(cd "$OUT" && pwd)
INTEROP=${INTEROP:-${OUT%/*}/interop}
VERSION=$(version_of MAJOR).$(version_of MINOR).$(version_of PATCH)
export VERSION
for program in python3 npm dpkg-deb git; do
  command -v $program > "$OUT/which" || {
    skip "$program is not installed"
    exit 0
  }
done
[ "$(uname -sm)" = "Linux x86_64" ] || {
  skip "it is for Linux on x86_64"
  exit 0
}
dist=$OUT/first/dist
workspace=$OUT/workspace
rm -rf "$workspace"
mkdir -p "$workspace"

# has WHAT FILE LINE...: the file has each of these lines.
has() {
  what=$1 file=$2
  shift 2
  for line; do
    grep -qxF -- "$line" "$file" || {
      fail "$what: there is no line $line"
      return 0
    }
  done
  ok "$what"
}
# same WHAT FILE FILE
same() {
  if cmp "$2" "$3" > "$OUT/cmp.log" 2>&1; then ok "$1"; else fail "$1: $(cat "$OUT/cmp.log")"; fi
}
# counted COMMAND...: what it prints are lines like ours.
counted() {
  code=0
  "$@" > "$OUT/counted.log" 2>&1 || code=$?
  cat "$OUT/counted.log"
  found=$(grep -c '^FAILED:' "$OUT/counted.log" || true)
  failures=$((failures + found))
  [ "$code" -eq 0 ] || [ "$found" -gt 0 ] || fail "$* ended with status $code"
}
# talk NAME COMMAND...: a client that hangs is a failure.
talk() { counted timeout -k 10 300 "$INTEROP/python_v1/bin/python" -B "$here/client.py" "$@"; }
talk_ts() { counted timeout -k 10 300 node "$INTEROP/node/client.mjs" "$@"; }

# build --------------------------------------------------------------------------------------------

SOURCE_DATE_EPOCH=$(git -C "$ROOT" log -1 --format=%ct)
export SOURCE_DATE_EPOCH
if [ -z "${RELEASE_BUILT:-}" ] || [ ! -f "$dist/SHA256SUMS" ]; then
  rm -rf "$OUT/first"
  expect "everything is built for two processors" \
    sh "$ROOT/.release/build.sh" --out "$OUT/first"
fi
[ -f "$dist/SHA256SUMS" ] || finish

# Once more, in another folder, with another cache, umask and time zone, and with the same compiler
# and its libraries, as these take longer to compile than all else. It goes on beside the other
# tests.
second="$OUT/another place"
begin_second_build() {
  rm -rf "$second"
  mkdir -p "$second/examples" "$second/docs" "$second/out"
  ln -s "$OUT/first/tools" "$second/out/tools"
  for part in codeexec.hpp LICENSE examples/mcp_server.cpp docs/codeexec-mcp.1 docs/completions \
    .release; do
    cp -R "$ROOT/$part" "$second/$part"
  done
  # As a group of processes, which can be ended.
  (umask 077 && exec setsid env TZ=Pacific/Auckland \
    ZIG_GLOBAL_CACHE_DIR="$OUT/first/zig-cache" sh "$second/.release/build.sh" \
    --out "$second/out" x86_64) > "$OUT/second.log" 2>&1 &
  second_build=$!
}
end_second_build() {
  status=0
  wait "$second_build" || status=$?
  second_build=
  [ $status -eq 0 ] || {
    fail "it is built in another place; the end of $OUT/second.log:"
    tail -n 20 "$OUT/second.log"
    return 0
  }
  for file in "$second/out/dist"/*; do
    case $file in */SHA256SUMS) continue ;; esac
    same "the same bytes from another place: ${file##*/}" "$file" "$dist/${file##*/}"
  done
}
begin_second_build
trap '[ -z "$second_build" ] || kill -TERM "-$second_build"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# sums, archives, bills of materials ---------------------------------------------------------------

expect "the sums are right" sh -c "cd '$dist' && sha256sum --strict -c SHA256SUMS"
(cd "$dist" && ls | grep -vx SHA256SUMS) > "$OUT/files"
sed 's/^[0-9a-f]*  //' "$dist/SHA256SUMS" | sort > "$OUT/summed"
same "each file has its sum" "$OUT/files" "$OUT/summed"
same "the header is among them" "$dist/codeexec.hpp" "$ROOT/codeexec.hpp"

cat > "$OUT/bill.py" << 'PYTHON'
# Is it valid, does it name what it must, and is it that of these files?
import hashlib, json, re, sys
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
import ziglang

bill, binary, header, version = sys.argv[1:]
text = Path(bill).read_text()
wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
assert not wrong, wrong
bill = json.loads(text)
sha = lambda path: hashlib.sha256(Path(path).read_bytes()).hexdigest()
program = bill["metadata"]["component"]
assert (program["name"], program["version"]) == ("codeexec-mcp", version), program
assert program["hashes"] == [{"alg": "SHA-256", "content": sha(binary)}], program
parts = {part["name"]: part for part in bill["components"]}
assert parts["codeexec.hpp"]["hashes"][0]["content"] == sha(header), parts
assert parts["codeexec.hpp"]["version"] == version, parts
# The numbers as the sources of these libraries have them.
library = Path(ziglang.__file__).parent / "lib"
config = (library / "libcxx/include/__config").read_text()
number = int(re.search(r"_LIBCPP_VERSION (\d+)", config)[1])
llvm = f"{number // 10000}.{number // 100 % 100}.{number % 100}"
for name in ("libc++", "libc++abi", "libunwind"):
    assert parts[name]["version"] == llvm, (parts[name], llvm)
assert f'"{parts["musl"]["version"]}"' in (library / "libc/musl/src/internal/version.h").read_text()
assert "zig-libc-and-compiler-rt" in parts and all(part["licenses"] for part in parts.values())
assert set(bill["dependencies"][0]["dependsOn"]) == {part["bom-ref"] for part in parts.values()}
PYTHON

qemu=
for arch in x86_64 aarch64; do
  plain=codeexec-mcp-$VERSION-linux-$arch
  rm -rf "$OUT/$arch"
  mkdir -p "$OUT/$arch"
  tar -C "$OUT/$arch" -xzf "$dist/$plain.tar.gz"
  tar -tzf "$dist/$plain.tar.gz" > "$OUT/listed"
  has "$arch: the archive has the program, its licences and its pages" "$OUT/listed" \
    "$plain/codeexec-mcp" "$plain/LICENSE" "$plain/THIRD-PARTY" "$plain/README.md" \
    "$plain/codeexec-mcp.1" "$plain/completions/codeexec-mcp.bash"
  binary=$OUT/$arch/$plain/codeexec-mcp
  expect "$arch: the bill of materials is valid and names all parts" "$OUT/first/tools/bin/python" \
    -B "$OUT/bill.py" "$dist/$plain.cdx.json" "$binary" "$ROOT/codeexec.hpp" "$VERSION"
  expect "$arch: the program is static and stripped" sh -c "! LC_ALL=C readelf -lS '$binary' |
    grep -E 'INTERP|\\.dynamic|\\.symtab|\\.debug_'"
  if grep -aqF "$ROOT" "$binary"; then
    fail "$arch: the program names $ROOT"
  else
    ok "$arch: the program does not name the folder in which it was built"
  fi
  if [ $arch = aarch64 ]; then
    command -v qemu-aarch64-static > "$OUT/which" || {
      skip "not run: no qemu-aarch64-static (qemu-user-static)"
      continue
    }
    qemu=qemu-aarch64-static
  fi
  $qemu "$binary" --version > "$OUT/version" 2>&1 || true
  has "$arch: --version" "$OUT/version" "codeexec-mcp $VERSION"
  # An emulator has no sandbox to offer, and the program would say so.
  $qemu "$binary" --sandbox off --workspace "$workspace" --run 'echo hello' > "$OUT/run" 2>&1 ||
    true
  expect "$arch: --run 'echo hello'" grep -F '"exit_code":0,"stdout":"hello\n"' "$OUT/run"
done

# the clients --------------------------------------------------------------------------------------

# The whole scenario of both clients with the static program, as it is run with the ordinary one.
# That also makes the folders of the clients, which the rest needs.
binary=$OUT/x86_64/codeexec-mcp-$VERSION-linux-x86_64/codeexec-mcp
counted env CODEEXEC_MCP="$binary" OUT="$INTEROP" sh "$ROOT/tests/interop/run.sh" python_v1 ts_v1
cp "$here/client.mjs" "$INTEROP/node/"
if [ -n "${CODEEXEC_MCP:-}" ]; then
  report() { "$1" --allowed-paths "$workspace" --sandbox-report > "$OUT/report.$2" 2>&1 || true; }
  report "$binary" static
  report "$CODEEXEC_MCP" ordinary
  expect "the static program reports its sandbox" grep '"enforced":' "$OUT/report.static"
  same "it is that of the ordinary one" "$OUT/report.static" "$OUT/report.ordinary"
else
  skip "the sandbox is compared with none (CODEEXEC_MCP is not set)"
fi
[ -z "$qemu" ] || talk "aarch64 under qemu" $qemu \
  "$OUT/aarch64/codeexec-mcp-$VERSION-linux-aarch64/codeexec-mcp" --workspace "$workspace"

# wheels -------------------------------------------------------------------------------------------

wheel_for() { ls "$dist"/codeexec_mcp-"$VERSION"-py3-none-manylinux*"$1".whl; }
rm -rf "$OUT/venv"
python3 -m venv "$OUT/venv"
pip() { "$OUT/venv/bin/python" -m pip --disable-pip-version-check "$@"; }
expect "wheel: pip installs it" pip install --no-index "$(wheel_for x86_64)"
talk "wheel, by pip" "$OUT/venv/bin/codeexec-mcp" --workspace "$workspace"
expect "wheel: pip removes it" pip uninstall -y codeexec-mcp
expect "wheel: and leaves nothing" test ! -e "$OUT/venv/bin/codeexec-mcp"
# What pip would choose on other systems: with musl, and with another processor.
for platform in musllinux_1_1_x86_64 manylinux_2_17_aarch64 musllinux_1_1_aarch64; do
  rm -rf "$OUT/elsewhere"
  case $platform in *_x86_64) arch=x86_64 ;; *) arch=aarch64 ;; esac
  expect "wheel: pip finds one for $platform" pip install --no-index --find-links "$dist" \
    --no-deps --only-binary :all: --platform "$platform" --target "$OUT/elsewhere" codeexec-mcp
  same "wheel: the program for $platform" "$OUT/elsewhere/bin/codeexec-mcp" \
    "$OUT/$arch/codeexec-mcp-$VERSION-linux-$arch/codeexec-mcp"
done
if [ -x "$OUT/uv/bin/uvx" ] ||
  { python3 -m venv "$OUT/uv" && "$OUT/uv/bin/pip" install -q --disable-pip-version-check \
    uv==0.13.9; } > "$OUT/uv.log" 2>&1; then
  talk uvx env UV_CACHE_DIR="$OUT/uv-cache" "$OUT/uv/bin/uvx" --offline --no-config \
    --from "$(wheel_for x86_64)" codeexec-mcp --workspace "$workspace"
else
  skip "uv cannot be installed from PyPI: $OUT/uv.log"
fi

# npm ----------------------------------------------------------------------------------------------

# Off line, so that only the files can be what is installed.
npm_config_cache=$OUT/npm-cache npm_config_offline=true npm_config_update_notifier=false
export npm_config_cache npm_config_offline npm_config_update_notifier
rm -rf "$OUT/project" "$OUT/alone" "$OUT/arm64"
mkdir -p "$OUT/project" "$OUT/alone" "$OUT/arm64"
echo '{"name": "empty", "private": true}' > "$OUT/project/package.json"
in_project() { (cd "$OUT/project" && "$@"); }
expect "npm: installs into an empty project" in_project npm install --no-audit --no-fund \
  "$dist/codeexec-mcp-$VERSION.tgz" "$dist/codeexec-mcp-linux-x64-$VERSION.tgz"
talk_ts "npx" sh -c "cd '$OUT/project' && exec npx codeexec-mcp --workspace '$workspace'"
launcher=$OUT/project/node_modules/.bin/codeexec-mcp
talk "npm's program" "$launcher" --workspace "$workspace"
status=0
"$launcher" --no-such-option > "$OUT/status" 2>&1 || status=$?
expect "npm: the exit status is that of the program" test $status = 2
# The signal is sent when the server has answered, as both programs run by then.
cat > "$OUT/stop.py" << 'PYTHON'
import json, signal, subprocess, sys

server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode() + b"\n")
server.stdin.flush()
assert json.loads(server.stdout.readline())["id"] == 1
server.send_signal(signal.SIGTERM)
# Its output ends when the program has ended, too, and not only the launcher.
assert server.stdout.read() == b""
sys.exit(f"status {server.wait()}" if server.wait() not in (0, -signal.SIGTERM, 143) else 0)
PYTHON
expect "npm: a signal ends the launcher and the program" timeout 60 python3 "$OUT/stop.py" \
  "$launcher" --workspace "$workspace"
tar -C "$OUT/alone" -xzf "$dist/codeexec-mcp-$VERSION.tgz"
node "$OUT/alone/package/launcher.js" > "$OUT/status" 2>&1 || true
expect "npm: without a program it says which package is missing" \
  grep "no package codeexec-mcp-linux-x64 beside" "$OUT/status"
tar -C "$OUT/arm64" -xzf "$dist/codeexec-mcp-linux-arm64-$VERSION.tgz"
same "npm: the program for arm64" "$OUT/arm64/package/codeexec-mcp" \
  "$OUT/aarch64/codeexec-mcp-$VERSION-linux-aarch64/codeexec-mcp"
expect "npm: which only such a machine installs" node -e "
  const { cpu, os } = require('$OUT/arm64/package/package.json');
  process.exit(cpu.join() === 'arm64' && os.join() === 'linux' ? 0 : 1)"

# Debian -------------------------------------------------------------------------------------------

for pair in x86_64:amd64 aarch64:arm64; do
  arch=${pair%:*} deb=$dist/codeexec-mcp_${VERSION}_${pair#*:}.deb
  rm -rf "$OUT/tree"
  expect "Debian: $arch unpacks" dpkg-deb -x "$deb" "$OUT/tree"
  same "Debian: the program for $arch" "$OUT/tree/usr/bin/codeexec-mcp" \
    "$OUT/$arch/codeexec-mcp-$VERSION-linux-$arch/codeexec-mcp"
  dpkg-deb -f "$deb" Package Version Architecture > "$OUT/fields"
  has "Debian: the fields of $arch" "$OUT/fields" "Package: codeexec-mcp" "Version: $VERSION" \
    "Architecture: ${pair#*:}"
  for page in man/man1/codeexec-mcp.1.gz bash-completion/completions/codeexec-mcp \
    zsh/vendor-completions/_codeexec-mcp fish/vendor_completions.d/codeexec-mcp.fish; do
    expect "Debian: $arch has $page" test -s "$OUT/tree/usr/share/$page"
  done
  dpkg-deb -c "$deb" > "$OUT/listed"
  expect "Debian: the files of $arch belong to root" sh -c "! grep -v ' root/root ' '$OUT/listed'"
done

# containers ---------------------------------------------------------------------------------------

if [ -z "${CODEEXEC_TEST_DOCKER:-}" ] || [ -z "${DOCKER_HOST:-}" ]; then
  skip "no container engine for tests (CODEEXEC_TEST_DOCKER is not set)"
else
  unpacked=$OUT/x86_64/codeexec-mcp-$VERSION-linux-x86_64
  image=codeexec-test/server:latest
  expect "image: it is built" docker build --build-arg BASE=codeexec-test/base:latest -t $image \
    -f "$ROOT/docker/Dockerfile.server" "$unpacked"
  # The user of the image is another one than the owner of this folder.
  chmod 777 "$workspace"
  talk "image" env DOCKER_HOST="$DOCKER_HOST" docker run -i --rm -v "$workspace:/workspace" $image
  expect "image: commands have the workspace and are not root" sh -c "docker run --rm \
    -v '$workspace:/workspace' $image --run 'touch made; id -u' | grep -F '\"stdout\":\"1000'"
  expect "image: what they make is here" test -f "$workspace/made"
  expect "Debian: dpkg installs and removes it" docker run --rm -v "$dist:/dist:ro" \
    codeexec-test/base:latest sh -c "dpkg -i /dist/codeexec-mcp_${VERSION}_amd64.deb &&
      codeexec-mcp --version && dpkg -r codeexec-mcp && test ! -e /usr/bin/codeexec-mcp"
  has "Debian: the installed program" "$OUT/expect.log" "codeexec-mcp $VERSION"
fi

end_second_build
finish
