#!/bin/sh
# The recipes for package managers, and whether all places know the version of the header:
#   sh tests/packaging/run.sh [--conan]
# vcpkg is not installed by these tests, so its port is checked here without it: the fields of
# vcpkg.json by what their documentation says, and the portfile by stand-ins for vcpkg's functions
# (vcpkg/stubs.cmake); a program then finds the package that it leaves. --conan: `conan create` by
# Conan itself, installed from PyPI into $OUT unless $CONAN names it; it takes half a minute.
# Prints "ok: ...", "FAILED: ..." or "SKIPPED: ..." lines.
OUT=${OUT:-${CODEEXEC_BUILD_DIR:-$(dirname "$0")/../../build}/packaging}
. "$(dirname "$0")/../hygiene/lib.sh"
name=packaging
OUT=$(cd "$OUT" && pwd)
CMAKE=${CMAKE:-cmake}
version=$(version_of MAJOR).$(version_of MINOR).$(version_of PATCH)

expect "the changelog says what is new in $version" \
  grep -qE "^#+ \[?$version(\]|,| )" "$ROOT/docs/CHANGELOG.md"
for file in "$here/conan/conanfile.py" "$here/conan/test_package/conanfile.py"; do
  expect "${file#"$ROOT"/} is Python" \
    python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$file"
done

cat > "$OUT/manifest.py" << 'PYTHON'
# The fields, as https://learn.microsoft.com/vcpkg/reference/vcpkg-json has them.
import json, re, sys
port = json.load(open(sys.argv[1]))
known = {"name", "version", "port-version", "description", "homepage", "documentation", "license",
         "supports", "dependencies", "features", "default-features", "maintainers", "summary"}
assert set(port) <= known, f"unknown fields: {set(port) - known}"
identifier = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
assert identifier.fullmatch(port["name"]) and sys.argv[1].endswith(f"/{port['name']}/vcpkg.json")
assert port["version"] == sys.argv[2], f"version {port['version']} is not {sys.argv[2]}"
assert port["license"] == "MIT" and port["description"]
for dependency in port["dependencies"]:
    assert set(dependency) <= {"name", "host"} and identifier.fullmatch(dependency["name"])
for feature, what in port["features"].items():
    assert identifier.fullmatch(feature) and set(what) == {"description"}
print(";".join(d["name"] for d in port["dependencies"] if d["host"]))
PYTHON
port=$here/vcpkg/codeexec
expect "vcpkg.json has documented fields and version $version" \
  python3 "$OUT/manifest.py" "$port/vcpkg.json" "$version"
helpers=$(tail -n 1 "$OUT/expect.log")
rm -rf "$OUT/vcpkg" "$OUT/consumer"
expect "the portfile installs a package, by stand-ins for vcpkg" "$CMAKE" -DPORT_DIR="$port" \
  -DWORK="$OUT/vcpkg" -DCXX="$CXX" -DHELPERS="$helpers" -P "$here/vcpkg/stubs.cmake"
expect "find_package finds what the port leaves" "$CMAKE" -S "$here/../consumer" \
  -B "$OUT/consumer" -DWAY=find_package -DVERSION="$version" -DCMAKE_CXX_COMPILER="$CXX" \
  -DCMAKE_PREFIX_PATH="$OUT/vcpkg/packages"

if [ "${1:-}" = --conan ]; then
  if [ -z "${CONAN:-}" ]; then
    CONAN=$OUT/conan/bin/conan
    [ -x "$CONAN" ] || expect "Conan installs from PyPI" \
      sh -c "python3 -m venv '$OUT/conan' && '$OUT/conan/bin/pip' -q install 'conan>=2,<3'"
  fi
  export CONAN_HOME="$OUT/conan-home" CXX
  expect "conan profile detect" "$CONAN" profile detect --force
  expect "conan create: builds the package, and the program of test_package with it" \
    "$CONAN" create "$here/conan" --version "$version" \
    -c "tools.cmake.cmake_layout:test_folder=$OUT/test_package" \
    -c "tools.cmake.cmaketoolchain:user_presets=" \
    -c "tools.cmake.cmaketoolchain:extra_variables={'CMAKE_CXX_FLAGS_RELEASE': '-O0'}"
  cp "$OUT/expect.log" "$OUT/conan.log"
  expect "conan: the program has run" grep -qx "codeexec $version: hello" "$OUT/conan.log"
fi
finish
