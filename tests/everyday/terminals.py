"""Terminals and what runs in them."""

from task import Dialogue, task

task("script: a terminal for one command", "script -qec 'test -t 0 && tty' /dev/null < /dev/null",
     "/dev/pts/", "script", wants="terminals")
task("tmux: a session, keys, its screen", r'''
export TMUX_TMPDIR=$TMPDIR SHELL=/bin/sh; tmux new -d -x 80 -y 24 &&
tmux send-keys 'echo $((6 * 7)) > answer' Enter || exit 1
until [ -s answer ]; do sleep 0.01; done; tmux capture-pane -p | grep -c echo
cat answer; tmux kill-server
''', "42\n", "tmux", wants=("unix sockets", "terminals"))
task("expect: a dialogue", r'''
cat > dialogue <<'EOF'
spawn sh -c {printf name?; read x; echo hello $x}
expect name?
send "world\r"
expect "hello world" {puts met}
expect eof
EOF
expect -f dialogue
''', "met\n", "expect", wants="terminals")
task("an editor in the background's terminal", (
    Dialogue("vi -u NONE -n f", (("", "~"), ("ihello from vi\x1b:wq", "\\?1049l|written"))),
    "cat f"), "hello from vi", "vi")
task("vim: an edit by a script", "echo abc > f; vi -es -c 's/b/B/' -c wq f; cat f", "aBc\n",
     "vi --version | grep -i vim", heavy=True)
task("less in the background's terminal", (
    "seq 1000 > f", Dialogue("less f", (("", "f"), ("G", "1000"))),), "", "less")
task("tput, stty and colours in a terminal", (
    Dialogue("stty size; tput colors; tty; ls --color=auto -d /; printf 'done\\n'; read x",
             (("", "done"),)),), "24 80", ("stty", "tput"))
task("screen: a detached session", r'''
export SCREENDIR=$HOME/s; mkdir -m 700 $SCREENDIR; screen -dm sh -c 'echo ran > f'
until [ -s f ]; do sleep 0.01; done; cat f
''', "ran\n", "screen", wants=("unix sockets", "terminals"), heavy=True)
