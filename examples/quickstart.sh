#!/bin/sh
# Builds the MCP server with the system's compiler and holds a short conversation with it, as a
# client would: one JSON message per line, to its standard input and from its standard output.
#
#   sh examples/quickstart.sh [where to put codeexec-mcp]
#
# Compiles the sections in src/ side by side, one for each processor. Keeps the objects in
# build/quickstart/, so that the next run compiles only what has changed.
set -eu
cd "$(dirname "$0")/.."

compiler=${CXX:-c++}
if ! command -v "$compiler" > /dev/null; then
  echo "quickstart: there is no C++ compiler ($compiler)." >&2
  echo "  Debian, Ubuntu:  sudo apt-get install g++" >&2
  echo "  Fedora:          sudo dnf install gcc-c++" >&2
  echo "  macOS:           xcode-select --install" >&2
  exit 1
fi

out=${CODEEXEC_BUILD_DIR:-build}/quickstart
mkdir -p "$out"
out=$(cd "$out" && pwd)
making=$(mktemp -d "$out/making.XXXXXX") # files move from here to $out when they are complete
work=$(mktemp -d)
builder=
pid=
# Lists the processes that $1 has started, their children, and so on.
descendants() {
  ps -A -o pid= -o ppid= | awk -v top="$1" '
    { parent[$1] = $2 }
    END {
      for (pid in parent) {
        for (up = parent[pid]; up != top && up in parent; up = parent[up]) continue
        if (up == top) print pid
      }
    }'
}
finish() {
  trap '' HUP INT TERM
  [ -z "$pid" ] || kill "$pid" 2> /dev/null || true
  [ -z "$builder" ] || kill "$builder" $(descendants "$builder") 2> /dev/null || true
  # A compiler that is just ending may add a file while rm runs.
  rm -rf "$work" "$making" 2> /dev/null || rm -rf "$making"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# building ----------------------------------------------------------------------------------------

flags="-std=c++17 -O2"
version=$("$compiler" --version)
jobs=$(getconf _NPROCESSORS_ONLN 2> /dev/null || echo 2)

# The pieces are compiled separately: each section that src/frame.hpp lists, and main().
if [ -f src/frame.hpp ]; then
  parts=$(grep '^#include "[a-z]*/[a-z0-9_]*\.cpp"$' src/frame.hpp)
  pieces="$(echo "$parts" | sed 's|^#include "||; s|/.*||' | uniq) main"
else
  pieces=whole
fi
# The longest come first, so that no processor is idle at the end.
by_size() {
  for piece in $1; do
    [ ! -d "src/$piece" ] || echo "$(cat "src/$piece"/*.cpp | wc -c) $piece"
    [ -d "src/$piece" ] || echo "0 $piece"
  done | sort -rn | sed 's/.* //'
}
text_of() {
  case $1 in
    whole) echo '#include "examples/mcp_server.cpp"' ;;
    main) printf '#define CODEEXEC_IMPLEMENTED\n#include "examples/mcp_server.cpp"\n' ;;
    *) echo "$parts" | grep "\"$1/" ;;
  esac
}
made_of() { printf '%s\n' "$version" "$compiler $flags" && text_of "$1"; }
# True if the object of the piece exists and is newer than all files that it was made of.
is_current() {
  [ -f "$out/$1.o" ] && made_of "$1" | cmp -s - "$out/$1.made-of" || return 1
  files=$(tr -s ' \\' '\n\n' < "$out/$1.d" |
    grep -E '^(\./)?(src/|examples/|codeexec\.hpp)') || return 1
  newer=$(find $files -newer "$out/$1.o" 2> /dev/null) && [ -z "$newer" ]
}
# The object gets the time at which its compilation began, so that a file that changes meanwhile is
# newer.
compile() {
  made_of "$1" > "$making/$1.made-of"
  text_of "$1" | "$compiler" $flags -I. -Isrc -MMD -MF "$making/$1.d" -x c++ -c - \
    -o "$making/$1.o" > "$making/$1.log" 2>&1 || return 1
  touch -r "$making/$1.made-of" "$making/$1.o"
  rm -f "$out/$1.o"
  mv "$making/$1.d" "$making/$1.made-of" "$out/"
  mv "$making/$1.o" "$out/"
}
# Compiles the pieces that no other worker has taken, and reports how that ended.
worker() {
  for piece in $stale; do
    mkdir "$making/$piece.taken" 2> /dev/null || continue
    if compile "$piece"; then echo "compiled $piece"; else echo "failed $piece"; fi
  done
}
# Prints a line for each piece that is done, and one every 10 seconds.
build() {
  (while sleep 10; do echo "seconds 10"; done) &
  ticker=$!
  workers=
  while [ "$jobs" -gt 0 ]; do
    worker &
    workers="$workers $!"
    jobs=$((jobs - 1))
  done
  wait $workers
  kill "$ticker"
}

stale=
for piece in $(by_size "$pieces"); do is_current "$piece" || stale="$stale $piece"; done
count=$(echo $stale | wc -w)
count=$((count))
all=$(echo $pieces | wc -w)
all=$((all))
if [ "$count" = 0 ]; then
  echo "== the server is there: nothing has changed since it was built"
elif [ "$pieces" = whole ]; then
  echo "== building the server from codeexec.hpp in one piece, as there is no src/ beside it"
  echo "   That takes more than a minute."
elif [ "$count" = "$all" ]; then
  echo "== building the server from src/: $all pieces, $jobs at a time"
  echo "   That is 60 to 90 seconds of processor time: under a minute on two free processors, and"
  echo "   longer where they are slow or busy. The next time only what has changed is built."
else
  echo "== building the server again: $count of $all pieces have changed"
fi
if [ "$count" != 0 ]; then
  start=$(date +%s)
  done=0
  waited=0
  mkfifo "$making/news"
  build > "$making/news" &
  builder=$!
  while read -r event what; do
    case $event in
      compiled)
        done=$((done + 1))
        echo "   compiled $done of $count: $what"
        ;;
      failed)
        echo "quickstart: $what does not compile:" >&2
        cat "$making/$what.log" >&2
        exit 1
        ;;
      seconds)
        waited=$((waited + what))
        echo "   $waited seconds so far"
        ;;
    esac
  done < "$making/news"
  wait "$builder" || true
  builder=
  [ "$done" = "$count" ] || { echo "quickstart: the build was broken off" >&2 && exit 1; }
  echo "   built in $(($(date +%s) - start)) seconds"
fi

server=$out/codeexec-mcp
echo "$version $pieces" > "$making/codeexec-mcp.made-of"
if [ "$count" != 0 ] || [ ! -f "$server" ] ||
  ! cmp -s "$making/codeexec-mcp.made-of" "$server.made-of"; then
  rm -f "$server.made-of"
  echo "== linking it"
  (cd "$out" && "$compiler" $flags $(printf '%s.o ' $pieces) -o "$making/codeexec-mcp" -pthread)
  mv "$making/codeexec-mcp" "$server"
  mv "$making/codeexec-mcp.made-of" "$server.made-of"
fi
if [ $# -gt 0 ]; then
  server=$1
  case $server in
    /*) ;;
    *) server=$PWD/$server ;;
  esac
  cp "$out/codeexec-mcp" "$making/copy"
  mv "$making/copy" "$server"
fi

# talking -----------------------------------------------------------------------------------------

echo
echo "== starting it; commands may work below $work/project only"
mkdir "$work/project"
mkfifo "$work/to_server" "$work/from_server"
(cd "$work/project" && exec "$server" --allowed-paths "$work/project") \
  < "$work/to_server" > "$work/from_server" &
pid=$!
exec 3> "$work/to_server" 4< "$work/from_server"

# ask REQUEST: sends it, prints it and the reply, and sets $reply.
ask() {
  printf 'client: %s\n' "$1"
  printf '%s\n' "$1" >&3
  IFS= read -r reply <&4
  printf 'server: %s\n\n' "$reply"
}
call() {
  arguments="{\"command\":\"$2\",\"timeout\":10}"
  params="{\"name\":\"execute_command\",\"arguments\":$arguments}"
  ask "{\"jsonrpc\":\"2.0\",\"id\":$1,\"method\":\"tools/call\",\"params\":$params}"
}
# expect WORDS MEANING: ends this script unless the reply has these words in it.
expect() {
  case $reply in
    *"$1"*) ;;
    *) echo "quickstart: the reply should show $2 ($1)" >&2 && exit 1 ;;
  esac
}

client='{"name":"quickstart","version":"1"}'
params="{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":$client}"
ask "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":$params}"
expect '"serverInfo"' "who the server is"
printf '%s\n' '{"jsonrpc":"2.0","method":"notifications/initialized"}' >&3
call 2 'echo The answer is $((6 * 7)) | tee answer.txt; ls'
expect 'The answer is 42\nanswer.txt' "what the command printed"
call 3 'sudo ls'
expect '"rule":"sudo"' "the rule that refused the command"

exec 3>&- # end of input: the server ends
status=0
wait "$pid" || status=$?
pid=
[ "$status" = 0 ] || { echo "quickstart: the server ended with status $status" >&2 && exit 1; }

# Quotes for the shell, if the path needs them.
case $server in
  *[!A-Za-z0-9/._-]*) server="'$(printf '%s' "$server" | sed "s/'/'\\\\''/g")'" ;;
esac
echo "== it works. To add it to a client, for all projects:"
printf '   %s --client-config claude-code --write --only-shell\n' "$server"
echo "   Commands can then write only in the project that the client opens, and the client's own"
echo "   command tool is off. --remove in place of --write takes both back; without either, it"
echo "   prints what to paste. Other clients: cursor, vscode, codex, gemini, qwen, opencode, ...,"
echo "   see docs/moving-in.md."
