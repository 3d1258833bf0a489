# What the examples and the README promise a newcomer: each example is built by the one command in
# its first comment, in a copy of the repository, and works; examples/quickstart.sh works there. The
# first example compiles the implementation as it says, with all warnings; the others take it from
# the build ($IMPLEMENTATION), as they all compile the same text. Without that each compiles it.
. "$(dirname "$0")/lib.sh"

rm -rf "$OUT/copy"
mkdir -p "$OUT/copy"
cp -R "$HEADER" "$ROOT/examples" "$OUT/copy/"
# The commands say c++; here that is the compiler of the build. It does not optimise, whatever they
# ask for: that they work, and without warnings, is all that is looked at here. $KNOWN: an object or
# a library with the implementation, which then is left out of what is compiled.
mkdir -p "$OUT/bin"
CXX=$(command -v "$CXX")
cat > "$OUT/bin/c++" << SCRIPT
#!/bin/sh
[ -z "\${KNOWN:-}" ] || set -- "\$@" -DCODEEXEC_IMPLEMENTED "\$KNOWN"
exec "$CXX" "\$@" -O0 $WARNINGS
SCRIPT
chmod +x "$OUT/bin/c++"
PATH=$OUT/bin:$PATH
cd "$OUT/copy"

# build EXAMPLE: as its first comment says.
build() {
  command=$(awk '!/^\/\// { exit } sub(/^\/\/ +/, "") && /^c\+\+ /' "$1")
  case $command in
    *"$1"*) expect "$1: builds as it says" sh -c "$command" ;;
    *) fail "$1: its first comment must hold one line: c++ ... $1 ..." ;;
  esac
}
KNOWN=
export KNOWN
build examples/hello.cpp
expect "examples/hello.cpp: works" \
  sh -c "./hello | grep -qE '^exited with status 3 in .* 6 bytes on stdout, 5 on stderr$'"

KNOWN=${IMPLEMENTATION:-}
for example in examples/*.cpp; do
  # Without it the command would not link, which $KNOWN would hide.
  expect "$example: has the implementation in it" \
    grep -qx '#define CODEEXEC_IMPLEMENTATION' "$example"
  [ "$example" = examples/hello.cpp ] || build "$example"
done
expect "examples/in_process.cpp: works" \
  sh -c "./in_process | grep -qx 'epoch 3'"
expect "examples/mcp_server.cpp: works" \
  sh -c "./codeexec-mcp --run 'echo hello' | grep -q '\"success\":true'"
request='{"jsonrpc":"2.0","id":1,"method":"tools/call",'
request=$request'"params":{"name":"count_words","arguments":{"text":"one two"}}}'
expect "examples/custom_tool.cpp: works" sh -c "{
  echo '{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\
\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"x\",\"version\":\"1\"}}}'
  echo '$request'; } | ./custom_tool | grep -q '\"words\":2'"
if [ -f examples/quickstart.sh ]; then
  expect "examples/quickstart.sh works" env CXX=c++ sh examples/quickstart.sh
else
  fail "there is no examples/quickstart.sh"
fi
finish
