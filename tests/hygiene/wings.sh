# The wings of the header: each compiles in a file of its own and needs no other one than
# CMakeLists.txt says; programs link with those that they use; and what can go wrong with them works
# or is one clear error.
. "$(dirname "$0")/lib.sh"

command -v nm > "$OUT/which" || {
  skip "nm is not installed (binutils)"
  exit 77
}
wings=$(sed -n 's|^//   CODEEXEC_IMPLEMENT_\([A-Z]*\) .*|\1|p' "$HEADER")
# definitions WING...: a source that implements these.
definitions() {
  for wing in "$@"; do echo "#define CODEEXEC_IMPLEMENT_$wing"; done
  echo '#include "codeexec.hpp"'
}
compile() { "$CXX" -std=c++17 -O0 -fPIC -pthread $INCLUDE "$@"; }
# needs WING: those that it needs by CMakeLists.txt, and itself.
needs() {
  list=$(echo "$1" | tr 'A-Z' 'a-z')
  seen=
  while [ -n "$list" ]; do
    rest=
    for one in $list; do
      case " $seen " in *" $one "*) continue ;; esac
      seen="$seen $one"
      rest="$rest $(sed -n "s/^set(needs_of_$one *\\(.*\\))\$/\\1/p" "$ROOT/CMakeLists.txt")"
    done
    list=$(echo $rest)
  done
  echo $seen | tr 'a-z' 'A-Z'
}

# each by itself ----------------------------------------------------------------------------------

for wing in $wings; do
  definitions "$wing" > "$OUT/$wing.cpp"
  expect "$wing: compiles without warnings" "$CXX" -std=c++17 -O0 -fPIC $WARNINGS $INCLUDE \
    -c "$OUT/$wing.cpp" -o "$OUT/$wing.o"
  nm --defined-only "$OUT/$wing.o" | sed 's/^[^ ]* . //' | sort -u > "$OUT/$wing.defined"
  nm --undefined-only "$OUT/$wing.o" | sed 's/^ *U //' | grep -F 8codeexec | sort -u \
    > "$OUT/$wing.undefined"
done
for wing in $wings; do
  for one in $(needs "$wing"); do cat "$OUT/$one.defined"; done | sort -u > "$OUT/known"
  comm -23 "$OUT/$wing.undefined" "$OUT/known" > "$OUT/found"
  expect_empty "$wing: needs no wing but $(needs "$wing" | sed 's/^[A-Z]* *//')" "$OUT/found"
done

# programs ----------------------------------------------------------------------------------------

# objects WING...
objects() { for wing in "$@"; do echo "$OUT/$wing.o"; done; }
core_only=$ROOT/examples/core_only.cpp
tiny=$ROOT/examples/tiny_server.cpp
whole=$ROOT/examples/mcp_server.cpp
expect "a program of the core links with its wing alone" compile -DCODEEXEC_IMPLEMENTED \
  "$core_only" $(objects CORE) -o "$OUT/core_only"
expect "and runs commands" sh -c "'$OUT/core_only' 'echo made' | grep -qx made"
expect "the smallest server links with four wings, each of a file of its own" compile \
  -DCODEEXEC_IMPLEMENTED "$tiny" $(objects CORE POLICY MCP TOOLS) -o "$OUT/tiny"
expect "and runs commands" sh -c "'$OUT/tiny' --run 'echo made' | grep -q '\"success\":true'"
expect "the whole server links with all of them" compile -DCODEEXEC_IMPLEMENTED "$whole" \
  $(objects $wings) -o "$OUT/whole"
expect "and has all options" sh -c "'$OUT/whole' --help-all | grep -q -e --client-config"
for option in --execution-mode --allowed-domains --report; do
  code=0
  "$OUT/tiny" "$option" docker --run true > "$OUT/printed" 2>&1 || code=$?
  if [ $code = 2 ] && [ "$(wc -l < "$OUT/printed")" -le 2 ]; then
    ok "the smallest server ignores no $option: $(head -n 1 "$OUT/printed")"
  else
    fail "the smallest server takes $option: $code $(cat "$OUT/printed")"
  fi
done

# what can go wrong -------------------------------------------------------------------------------

# unlinked WHAT SYMBOL COMMAND...: does not link, and the linker names the symbol.
unlinked() {
  what=$1
  symbol=$2
  shift 2
  if "$@" > "$OUT/link.log" 2>&1; then
    fail "$what: it links"
  elif grep -qF -e "$symbol" "$OUT/link.log"; then
    ok "$what: the linker names $symbol"
  else
    fail "$what: the linker does not name $symbol"
    head -n 20 "$OUT/link.log"
  fi
}
unlinked "a wing that an option needs is left out" "create_guard" compile \
  -DCODEEXEC_IMPLEMENTED "$ROOT/examples/hello.cpp" $(objects CORE) -o "$OUT/failed"
sed 's/server_main(argc, argv, {})/server_main(argc, argv, {\&codeexec::features::containers})/' \
  "$tiny" > "$OUT/with_containers.cpp"
unlinked "a feature whose wing is left out" "features::containers" compile \
  -DCODEEXEC_IMPLEMENTED "$OUT/with_containers.cpp" $(objects CORE POLICY MCP TOOLS) \
  -o "$OUT/failed"
expect "with its wings it links" compile -DCODEEXEC_IMPLEMENTED "$OUT/with_containers.cpp" \
  $(objects CORE POLICY MCP AGENT TOOLS CONTAINERS) -o "$OUT/with_containers"
unlinked "the same wing in two files" "multiple definition" compile "$core_only" \
  $(objects CORE) -o "$OUT/failed"
mkdir -p "$OUT/next"
sed 's/v0_1/v0_2/g' "$HEADER" > "$OUT/next/codeexec.hpp"
unlinked "wings of two versions" "v0_2" "$CXX" -std=c++17 -O0 -pthread -I"$OUT/next" \
  -DCODEEXEC_IMPLEMENTED "$core_only" $(objects CORE) -o "$OUT/failed"

# A file that includes the header in between, and one file made of several.
cat > "$OUT/unity.cpp" << CPP
#include "codeexec.hpp"
$(definitions POLICY)
$(definitions CORE)
$(definitions POLICY)
$(cat "$core_only")
CPP
expect "a unity build, POLICY before CORE and twice" compile "$OUT/unity.cpp" -o "$OUT/unity"
expect "and it runs" sh -c "'$OUT/unity' 'echo made' | grep -qx made"
{
  echo '#define codeexec acme_codeexec'
  cat "$core_only"
} > "$OUT/renamed.cpp"
expect "a renamed namespace, beside one of the usual name" compile "$OUT/renamed.cpp" \
  $(objects CORE) -o "$OUT/renamed"
expect "link time optimisation, hidden symbols" compile -flto -fvisibility=hidden "$core_only" \
  -o "$OUT/optimised"
expect "and it runs" sh -c "'$OUT/optimised' 'echo made' | grep -qx made"
for library in one two; do
  cat > "$OUT/$library.cpp" << CPP
#define CODEEXEC_IMPLEMENT_CORE
#include "codeexec.hpp"
extern "C" __attribute__((visibility("default"))) int run_$library() {
  const auto executor = codeexec::LocalExecutor::create({}, {});
  return executor && executor->run("exit 3").exit_code == 3 ? 0 : 1;
}
CPP
  expect "a shared library with a core of its own: $library" compile -fvisibility=hidden -shared \
    "$OUT/$library.cpp" -o "$OUT/lib$library.so"
done
echo 'extern "C" int run_one(); extern "C" int run_two();
int main() { return run_one() + run_two(); }' > "$OUT/shared.cpp"
expect "two of them in a program" compile "$OUT/shared.cpp" "$OUT/libone.so" "$OUT/libtwo.so" \
  -Wl,-rpath,"$OUT" -o "$OUT/shared"
expect "and both work" "$OUT/shared"

mkdir -p "$OUT/pch"
cp "$HEADER" "$OUT/pch/codeexec.hpp"
expect "the declarations, precompiled" "$CXX" -std=c++17 -O0 -pthread -x c++-header \
  "$OUT/pch/codeexec.hpp" -o "$OUT/pch/codeexec.hpp.gch"
expect "a file that implements, beside them" "$CXX" -std=c++17 -O0 -pthread -I"$OUT/pch" \
  "$core_only" -o "$OUT/precompiled"
expect "and it runs" sh -c "'$OUT/precompiled' 'echo made' | grep -qx made"

# what the core is --------------------------------------------------------------------------------

# The groups of the definitions that the core compiles.
definition_half | awk '
  /^#if !defined\(CODEEXEC_GROUP_/ { reading = 1; condition = "" }
  reading { condition = condition $0; if ($0 !~ /\\$/) { reading = 0
    taken = condition !~ /CODEEXEC_IMPLEMENT_/ || condition ~ /IMPLEMENT_CORE/ } next }
  /^#endif  \/\/ CODEEXEC_GROUP_/ { taken = 0 }
  taken { print }' > "$OUT/core"
lines=$(wc -l < "$OUT/core")
longest_core=19900
if [ "$lines" -gt 10000 ] && [ "$lines" -le $longest_core ]; then
  ok "the core has $lines lines of definitions (limit $longest_core)"
else
  fail "the core has $lines lines of definitions (limit $longest_core)"
fi
sed -n 's|^// \([a-z]*\)/[a-z0-9_]*\.[ch]pp --*$|\1|p' "$OUT/core" | sort -u > "$OUT/held"
printf '%s\n' base environment executor paths process sandbox terminal > "$OUT/wanted"
expect "the core has its sections, and no line of others" diff "$OUT/wanted" "$OUT/held"
finish
