# Daemons of the tests, one for each name, for scripts that source this; $dir is their folder.

# start_daemon NAME COMMAND...
start_daemon() {
  name=$1
  shift
  setsid "$@" > "$dir/$name.log" 2>&1 < /dev/null &
  echo $! > "$dir/$name.pid"
}

# wait_until SECONDS COMMAND...
wait_until() {
  left=$(($1 * 20))
  shift
  until "$@" > "$dir/probe.log" 2>&1; do
    left=$((left - 1))
    [ $left -gt 0 ] || return 1
    sleep 0.05
  done
}
has_ended() { ! kill -0 "$1"; }

# end_daemon NAME
end_daemon() {
  [ -s "$dir/$1.pid" ] || return 0
  pid=$(cat "$dir/$1.pid")
  rm -f "$dir/$1.pid"
  kill "$pid" 2> "$dir/probe.log" || return 0
  wait_until 10 has_ended "$pid" || kill -KILL "$pid"
}
