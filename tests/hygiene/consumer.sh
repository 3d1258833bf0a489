# A program of somebody else can use the header in each of the documented ways: add_subdirectory,
# FetchContent, an installed package that was moved afterwards, pkg-config, and a bare copy. Each is
# built and run for real. The implementation is compiled once from its sections and once joined, and
# shared where it is the same text with the same options (packaging/share.sh). The joined one is
# compiled as gnu++17 and with all warnings, which standards.sh relies on. BUILD: a build folder to
# install from; without it one is made.
. "$(dirname "$0")/lib.sh"

consumer=$here/../consumer
CMAKE=${CMAKE:-cmake}
for tool in "$CMAKE" git; do
  command -v "$tool" > "$OUT/which" || {
    skip "$tool is not installed"
    exit 77
  }
done
rm -rf "$OUT/add_subdirectory" "$OUT/fetch_content" "$OUT/find_package" "$OUT/package" \
  "$OUT/stage" "$OUT/moved" "$OUT/repository" "$OUT/shared" "$OUT/prefix"
version=$(version_of MAJOR).$(version_of MINOR).$(version_of PATCH)
SHARED=$OUT/shared
export SHARED

build() { # WAY CMAKE_ARGUMENT...
  way=$1
  shift
  expect "$way: configures" "$CMAKE" -S "$consumer" -B "$OUT/$way" -DWAY="$way" \
    -DVERSION="$version" -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_CXX_FLAGS=-O0 -DCMAKE_BUILD_TYPE= \
    -DCMAKE_CXX_COMPILER_LAUNCHER="sh;$here/../packaging/share.sh" "$@"
  expect "$way: builds" "$CMAKE" --build "$OUT/$way"
  for program in with_impl with_macro with_plugin; do
    expect "$way: $program runs" "$OUT/$way/$program"
  done
}

build add_subdirectory -DSOURCE="$ROOT"
expect "add_subdirectory: the project installs" \
  "$CMAKE" --install "$OUT/add_subdirectory" --prefix "$OUT/prefix"
mkdir -p "$OUT/prefix"
find "$OUT/prefix" -type f ! -path '*/bin/with_impl' > "$OUT/found"
expect_empty "add_subdirectory: nothing of codeexec is installed with it" "$OUT/found"

# A repository of what a release has, for FetchContent: what is in the tree now.
mkdir "$OUT/repository"
cp -R "$HEADER" "$ROOT/src" "$ROOT/CMakeLists.txt" "$ROOT/LICENSE" "$OUT/repository/"
(
  cd "$OUT/repository"
  export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
  git init -q . && git add . &&
    git -c user.name=x -c user.email=x@x commit -q -m x && git tag "v$version"
) > "$OUT/git.log" 2>&1 || fail "git: $(cat "$OUT/git.log")"
build fetch_content -DSOURCE="file://$OUT/repository"

# Installed to one place and moved to another: nothing may remember where it was made.
if [ -z "${BUILD:-}" ]; then
  BUILD=$OUT/package
  expect "package: configures" "$CMAKE" -S "$ROOT" -B "$BUILD" -DCODEEXEC_BUILD_TESTS=OFF \
    -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS=-O0 -DCMAKE_CXX_COMPILER="$CXX"
  expect "package: builds" "$CMAKE" --build "$BUILD" --target codeexec-mcp
fi
expect "package: installs" "$CMAKE" --install "$BUILD" --prefix "$OUT/stage" --strip
mv "$OUT/stage" "$OUT/moved"
(cd "$OUT/moved" && find . -type f | LC_ALL=C sort) > "$OUT/installed"
cat > "$OUT/wanted" << 'FILES'
./bin/codeexec-mcp
./include/codeexec.hpp
./share/bash-completion/completions/codeexec-mcp
./share/cmake/codeexec/codeexec-config-version.cmake
./share/cmake/codeexec/codeexec-config.cmake
./share/cmake/codeexec/codeexec-targets.cmake
./share/fish/vendor_completions.d/codeexec-mcp.fish
./share/licenses/codeexec/LICENSE
./share/man/man1/codeexec-mcp.1
./share/pkgconfig/codeexec.pc
./share/zsh/site-functions/_codeexec-mcp
FILES
expect "package: these files are installed, and no others" diff "$OUT/wanted" "$OUT/installed"
expect "package: the header is the header" cmp "$HEADER" "$OUT/moved/include/codeexec.hpp"
grep -rlF -e "$OUT" -e "$BUILD" -e "$ROOT" "$OUT/moved/include" "$OUT/moved/share" \
  > "$OUT/found" || true
expect_empty "package: no installed file names a folder of the build" "$OUT/found"
server=$OUT/moved/bin/codeexec-mcp
expect "package: the server works" \
  sh -c "'$server' --run 'echo hello' | grep -q '\"success\":true'"
expect "package: the server has version $version" sh -c "'$server' --version | grep -qwF $version"
if command -v nm > "$OUT/which"; then
  nm "$server" > "$OUT/found" 2> "$OUT/nm.log" || true
  bytes=$(wc -c < "$server")
  expect_empty "package: the server is stripped ($bytes bytes, as it was built here)" "$OUT/found"
else
  skip "nm is not installed (binutils)"
fi
build find_package -DCMAKE_PREFIX_PATH="$OUT/moved"
sections=$(ls "$OUT/add_subdirectory/codeexec/sections" | wc -l)
wings=$(grep -c '^//   CODEEXEC_IMPLEMENT_' "$HEADER")
expect "each of $((sections)) sections and $wings wings, and the whole, were compiled once" \
  sh -c "[ $((sections)) -gt 1 ] && [ \$(ls '$SHARED'/*.o | wc -l) = $((sections + wings + 1)) ]"
# What follows finds the header in its own way, and need not compile the implementation once more.
implementation=$OUT/find_package/libcodeexec_impl.a

if command -v pkg-config > "$OUT/which"; then
  PKG_CONFIG_PATH=$OUT/moved/share/pkgconfig
  export PKG_CONFIG_PATH
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
