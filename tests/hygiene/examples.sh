# What the examples and the README promise a newcomer: each example is built by the one command in
# its first comment, in a copy of the repository, and works; examples/quickstart.sh works there. The
# first example compiles the implementation as it says, with all warnings; the others take it from
# the build ($IMPLEMENTATION), as they all compile the same text. Without that each compiles it.
. "$(dirname "$0")/lib.sh"

rm -rf "$OUT/copy"
mkdir -p "$OUT/copy"
cp -R "$HEADER" "$ROOT/examples" "$ROOT/src" "$OUT/copy/"
# The commands say c++; here that is the compiler of the build. It does not optimise, whatever they
# ask for: that they work, and without warnings, is all that is looked at here. $KNOWN: an object or
# a library with the implementation, which then is left out of what is compiled.
mkdir -p "$OUT/bin"
compiler=$(command -v "$CXX")
cat > "$OUT/bin/c++" << SCRIPT
#!/bin/sh
if [ -n "\${KNOWN:-}" ]; then
  case " \$* " in
    *" -c "*) set -- "\$@" -DCODEEXEC_IMPLEMENTED ;;
    *) set -- "\$@" -DCODEEXEC_IMPLEMENTED "\$KNOWN" ;;
  esac
fi
exec "$compiler" "\$@" -O0 $WARNINGS
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
expect "examples/places.cpp: works" \
  sh -c "test \"\$(./places ./codeexec-mcp --place | grep -c '^exited with status 3')\" = 2"
expect "examples/fleet.cpp: works" \
  sh -c "test \"\$(./fleet --agents 32 command ./codeexec-mcp --place |
    grep -cE '^agent-[0-9]+ .* 3 +3 +[0-9.]+$')\" = 32"
expect "examples/mcp_server.cpp: works" \
  sh -c "./codeexec-mcp --run 'echo hello' | grep -q '\"success\":true'"
expect "examples/slurm/server.json: is a configuration" \
  sh -c "./codeexec-mcp --config examples/slurm/server.json --check true | grep -q true"
request='{"jsonrpc":"2.0","id":1,"method":"tools/call",'
request=$request'"params":{"name":"count_words","arguments":{"text":"one two"}}}'
expect "examples/custom_tool.cpp: works" sh -c "{
  echo '{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\
\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"x\",\"version\":\"1\"}}}'
  echo '$request'; } | ./custom_tool | grep -q '\"words\":2'"

# examples/quickstart.sh --------------------------------------------------------------------------

# quickstart WHAT: it works, and its log is $OUT/quickstart.log.
quickstart() {
  expect "examples/quickstart.sh: $1" sh -c \
    'sh examples/quickstart.sh > "$1" 2>&1 || { cat "$1" && exit 1; }' sh "$OUT/quickstart.log"
}
# says WHAT PATTERN COUNT: so many lines of the log match.
says() {
  expect "examples/quickstart.sh: $1" \
    test "$(grep -cE "$2" "$OUT/quickstart.log")" = "$3"
}
CXX=c++
CODEEXEC_BUILD_DIR=build
export CXX CODEEXEC_BUILD_DIR
# The known implementation belongs to the one piece.
mv src away
quickstart "works without src/"
says "says that it compiles the header" '^== .* codeexec\.hpp in one piece' 1
mv away src
KNOWN=
quickstart "works"
sections=$(sed -n 's|^#include "\([a-z]*\)/[a-z0-9_]*\.cpp"$|\1|p' src/frame.hpp | uniq | wc -l)
says "has compiled $sections sections and the program" '^   compiled ' $((sections + 1))
quickstart "works again"
says "compiles nothing the second time" '^   compiled ' 0
touch src/base/glob.cpp
quickstart "works after a change"
says "compiles one section after it" '^   compiled ' 1
says "compiles the section that has changed" '^   compiled 1 of 1: base$' 1

# ends WHAT: it ends in vain, and leaves nothing half-made.
ends() {
  expect "examples/quickstart.sh: $1, it fails" test $code -ne 0
  expect "examples/quickstart.sh: $1, it leaves nothing half-made" \
    test -z "$(find build/quickstart -name 'making.*')"
}
echo '#error this does not compile' >> src/base/base.hpp
code=0
sh examples/quickstart.sh > "$OUT/quickstart.log" 2>&1 || code=$?
ends "when something does not compile"
says "an error names the section" '^quickstart: [a-z]+ does not compile:$' 1
says "an error is shown once" 'error: .*this does not compile' 1
sed -i.old '$d' src/base/base.hpp

# Compilers that take their time, with a child of their own, which tells who it is.
cat > "$OUT/bin/slow" << 'SCRIPT'
#!/bin/sh
[ "$1" != --version ] || { echo slow && exit 0; }
sh -c 'echo $$ >> "$SLOW"; exec sleep 60' &
wait
SCRIPT
chmod +x "$OUT/bin/slow"
left() {
  for child in $(cat "$SLOW"); do
    ! kill -0 "$child" 2> "$OUT/kill.log" || echo "$child"
  done
}
signals="INT TERM"
command -v python3 > "$OUT/which" || {
  skip "python3 is not installed"
  signals=
}
for signal in $signals; do
  SLOW=$OUT/slow.$signal
  export SLOW
  : > "$SLOW"
  # A job in the background ignores an interrupt, which a program between may undo.
  python3 -B -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])' env CXX=slow sh examples/quickstart.sh \
    > "$OUT/quickstart.log" 2>&1 &
  pid=$!
  tries=0
  while [ ! -s "$SLOW" ] && [ $tries -lt 300 ]; do
    sleep 0.1
    tries=$((tries + 1))
  done
  expect "examples/quickstart.sh: SIG$signal comes while it compiles" \
    sh -c 'test -s "$1" && kill -s "$2" "$3"' sh "$SLOW" $signal $pid
  code=0
  wait $pid || code=$?
  ends "ended by SIG$signal"
  # Whoever inherits them may take a moment to notice their end.
  tries=0
  while [ -n "$(left)" ] && [ $tries -lt 100 ]; do
    sleep 0.1
    tries=$((tries + 1))
  done
  expect "examples/quickstart.sh: ended by SIG$signal, it ends its compilers" test -z "$(left)"
done
expect "examples/quickstart.sh: the server is still there" test -x build/quickstart/codeexec-mcp
finish
