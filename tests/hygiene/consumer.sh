# A program of somebody else can use the header in each of the documented ways: add_subdirectory,
# FetchContent, an installed package that was moved afterwards, pkg-config, and a bare copy.
. "$(dirname "$0")/lib.sh"

consumer=$here/../consumer
CMAKE=${CMAKE:-cmake}
command -v "$CMAKE" > "$OUT/which" || {
  skip "cmake is not installed"
  exit 77
}
rm -rf "$OUT/add_subdirectory" "$OUT/fetch_content" "$OUT/find_package" "$OUT/package" \
  "$OUT/stage" "$OUT/moved"

build() { # WAY TARGET CMAKE_ARGUMENT...
  way=$1
  target=$2
  shift 2
  expect "$way: configures" "$CMAKE" -S "$consumer" -B "$OUT/$way" -DWAY="$way" -DROOT="$ROOT" \
    -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_CXX_FLAGS=-O0 "$@"
  expect "$way: $target builds" "$CMAKE" --build "$OUT/$way" --target "$target"
  expect "$way: $target runs" "$OUT/$way/$target"
}
build add_subdirectory with_impl
build fetch_content with_macro

# Installed to one place and moved to another: nothing may remember where it was made.
expect "package: configures" "$CMAKE" -S "$ROOT" -B "$OUT/package" -DCODEEXEC_BUILD_TESTS=OFF \
  -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS=-O0 -DCMAKE_CXX_COMPILER="$CXX" \
  -DCMAKE_INSTALL_PREFIX="$OUT/stage"
expect "package: builds" "$CMAKE" --build "$OUT/package" --target codeexec-mcp
expect "package: installs" "$CMAKE" -P "$OUT/package/cmake_install.cmake"
mv "$OUT/stage" "$OUT/moved"
for file in include/codeexec.hpp share/licenses/codeexec/LICENSE; do
  expect "package: installs $file" test -f "$OUT/moved/$file"
done
grep -rlF "$OUT" "$OUT/moved/include" "$OUT/moved/share" > "$OUT/found" || true
expect_empty "package: no installed file names the build folder" "$OUT/found"
expect "package: the server works" \
  sh -c "'$OUT/moved/bin/codeexec-mcp' --run 'echo hello' | grep -q '\"success\":true'"
build find_package with_impl -DCMAKE_PREFIX_PATH="$OUT/moved"
# What follows finds the header in its own way, and need not compile the implementation once more.
implementation=$OUT/find_package/libcodeexec_impl.a

if command -v pkg-config > "$OUT/which"; then
  PKG_CONFIG_PATH=$OUT/moved/share/pkgconfig
  export PKG_CONFIG_PATH
  version=$(version_of MAJOR).$(version_of MINOR).$(version_of PATCH)
  expect "pkg-config: knows version $version" pkg-config --exact-version "$version" codeexec
  expect "pkg-config: names the moved folder" \
    test -f "$(pkg-config --variable=includedir codeexec)/codeexec.hpp"
  expect "pkg-config: builds" "$CXX" -std=c++17 $(pkg-config --cflags codeexec) \
    "$consumer/main.cpp" "$implementation" $(pkg-config --libs codeexec) -o "$OUT/with_pkg_config"
  expect "pkg-config: runs" "$OUT/with_pkg_config"
else
  skip "pkg-config is not installed"
fi

mkdir -p "$OUT/copy"
cp "$HEADER" "$OUT/copy/codeexec.hpp"
expect "a bare copy: builds" "$CXX" -std=c++17 -pthread -I"$OUT/copy" "$consumer/main.cpp" \
  "$implementation" -o "$OUT/with_copy"
expect "a bare copy: runs" "$OUT/with_copy"
finish
