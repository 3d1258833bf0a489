# What the examples and the README promise a newcomer: each example is built by the one command in
# its first comment, in a copy of the repository, works, and prints what docs/gallery.md shows; the
# local configurations do what their README says; examples/quickstart.sh works there. The
# first example compiles the implementation as it says, with all warnings; the others take it from
# the build ($IMPLEMENTATION), as they all compile the same text. Without that each compiles it.
#   CODEEXEC_TEST_DOCKER=1: $DOCKER_HOST is an engine with the images of helpers/engine.sh.
#   CODEEXEC_STATIC: a static codeexec-mcp for its containers.
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
# A compiler that is ccache looks for the real one in PATH, and must not find this script.
PATH=\${PATH#"$OUT/bin:"}
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
printf '#include <coroutine>\nstd::coroutine_handle<> waiting;\n' > "$OUT/coroutine.cpp"
has_coroutines=no
if "$compiler" -std=c++20 -fsyntax-only "$OUT/coroutine.cpp" > "$OUT/probe.log" 2>&1; then
  has_coroutines=yes
else
  skip "$CXX has no coroutines of C++20"
fi
for example in examples/*.cpp; do
  # Without it the command would not link, which $KNOWN would hide.
  expect "$example: has the implementation in it" \
    grep -qxE '#define CODEEXEC_IMPLEMENT(ATION|_CORE)' "$example"
  case $example in
    examples/hello.cpp) ;;
    examples/coroutines.cpp) [ $has_coroutines = no ] || build "$example" ;;
    *) build "$example" ;;
  esac
done
expect "examples/core_only.cpp: works" sh -c "./core_only 'echo made' | grep -qx made"
expect "examples/tiny_server.cpp: works" \
  sh -c "./tiny-server --run 'echo hello' | grep -q '\"success\":true'"
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
expect "examples/sessions.cpp: works" sh -c "./sessions | grep -qx 'test in /usr/bin'"
expect "examples/judge_only.cpp: works" sh -c "echo sudo ls | ./judge_only | grep -q '^  sudo, '"
expect "examples/event_loop.cpp: works" \
  sh -c "test \"\$(./event_loop | sed -n 2,3p | tr '\n' .)\" = '  first.  then first.'"
expect "examples/when_all.cpp: works" \
  sh -c "test \"\$(./when_all | tr '\n' ,)\" = 'cancelled: some,failed: one,succeeded: some,'"
COROUTINES=
if [ $has_coroutines = yes ]; then
  COROUTINES=$OUT/coroutines.log
  expect "examples/coroutines.cpp: works" sh -c './coroutines > "$1"' sh "$COROUTINES"
fi
expect "examples/containers.cpp: says that there is no engine" sh -c \
  "! DOCKER_HOST=unix:///nowhere/docker.sock ./containers 2>&1 | grep -v '^no container: '"

# Outputs that not every machine can have, for docs/gallery.md.
EVENT_LOOP=$OUT/event_loop.log
./event_loop | sed -n '/^asio/,$p' > "$EVENT_LOOP"
grep -qx asio: "$EVENT_LOOP" || {
  skip "the headers of Asio are not installed"
  EVENT_LOOP=
}
CONTAINERS=
if [ -n "${CODEEXEC_TEST_DOCKER:-}" ] && [ -n "${CODEEXEC_STATIC:-}" ]; then
  CONTAINERS=$OUT/containers.log
  expect "examples/containers.cpp: works" sh -c \
    './containers codeexec-test/busybox:latest "$1" > "$2"' sh "$CODEEXEC_STATIC" "$CONTAINERS"
else
  skip "no container engine for tests, or no static server"
fi
export EVENT_LOOP CONTAINERS COROUTINES
if command -v python3 > "$OUT/which"; then
  # Prints its own results.
  OUT=$OUT CODEEXEC_MCP=$PWD/codeexec-mcp python3 -B "$here/configs.py" ||
    failures=$((failures + 1))
else
  skip "python3 is not installed: the local configurations"
fi

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
if command -v python3 > "$OUT/which"; then
  ln -sf "$PWD/codeexec-mcp" "$OUT/bin/codeexec-mcp"
  python3 -B "$here/gallery.py" "$OUT/quickstart.log" || failures=$((failures + 1))
else
  skip "python3 is not installed: docs/gallery.md"
fi
# The last thing it says is what to type next.
command=$(sed -n 's/^   \(.* --client-config .*\)$/\1/p' "$OUT/quickstart.log")
mkdir -p "$OUT/home"
expect "examples/quickstart.sh: the command that it ends with works" \
  sh -c 'HOME=$1 sh -c "$2" && grep -q quickstart/codeexec-mcp "$1/.claude.json"' \
  sh "$OUT/home" "$command"
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
