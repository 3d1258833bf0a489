#!/bin/sh
# Builds the MCP server with the system's compiler and holds a short conversation with it, as a
# client would: one JSON message per line, to its standard input and from its standard output.
#
#   sh examples/quickstart.sh [where to put codeexec-mcp]
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

work=$(mktemp -d)
server=${1:-$work/codeexec-mcp}
case $server in
  /*) ;;
  *) server=$PWD/$server ;;
esac
pid=
finish() {
  [ -z "$pid" ] || kill "$pid" 2> /dev/null || true
  rm -rf "$work"
}
trap finish EXIT

echo "== building the server: one file, about ten seconds"
set -- "$compiler" -std=c++17 -O2 -I. examples/mcp_server.cpp -o "$server" -pthread
echo "$*"
"$@"

echo
echo "== starting it; commands may work below $work/project only"
mkdir "$work/project"
mkfifo "$work/to_server" "$work/from_server"
(cd "$work/project" && exec "$server" --allowed-paths "$work/project") \
  < "$work/to_server" > "$work/from_server" &
pid=$!
exec 3> "$work/to_server" 4< "$work/from_server"

# ask REQUEST: sends it and shows it with the reply, which stays in $reply.
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
# expect WORDS MEANING: the reply has these words in it.
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
echo "== it works. A client starts it with this command line:"
echo "   codeexec-mcp --allowed-paths /path/to/your/project"
[ "$server" = "$work/codeexec-mcp" ] || echo "   The program is $server."
