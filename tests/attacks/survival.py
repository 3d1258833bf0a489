"""L: survival."""

import signal

from cases import HIDDEN, attack
from environment import forged
from judges import survived
from servers import in_flight, kill_server, lost, serve


def lives(name, title, script, **options):
    attack(name, title, survived, script, plain_control=True, **options)


STARTED = "\nwhile [ ! -s \"$HOLD\" ]; do sleep 0.01; done"
QUIET = "< /dev/null > /dev/null 2>&1"

lives("L01", "in the background", '"$A" hold "$HOLD" &' + STARTED)
lives("L02", "in the background without the pipes", f'"$A" hold "$HOLD" {QUIET} &' + STARTED)
lives("L03", "nohup", f'nohup "$A" hold "$HOLD" {QUIET} &' + STARTED)
lives("L04", "setsid", f'setsid "$A" hold "$HOLD" {QUIET} &' + STARTED)
lives("L05", "setsid -f", f'setsid -f "$A" hold "$HOLD" {QUIET}' + STARTED)
lives("L06", "a daemon of two forks", '"$A" daemon "$HOLD"' + STARTED)
lives("L07", "without variables, in a session", f'env -i setsid "$A" hold "$HOLD" {QUIET} &'
      + STARTED)
lives("L08", "a daemon without any mark of the run", '"$A" bare-daemon "$HOLD"' + STARTED)
lives("L09", "one that is stopped", f'setsid "$A" hold "$HOLD" stop {QUIET} &' + STARTED)
lives("L10", "one that ignores signals", f'setsid "$A" hold "$HOLD" ignore {QUIET} &' + STARTED)
lives("L11", "in a group of its own", '"$A" hold "$HOLD" group quiet &' + STARTED)
lives("L12", "a chain of processes", '"$A" chain "$HOLD"' + STARTED)
lives("L13", "several chains at once", '"$A" many-chains "$HOLD"' + STARTED)
lives("L14", "in the same memory", '"$A" same-memory "$HOLD"')
lives("L15", "a sibling instead of a child", '"$A" sibling "$HOLD" || exit 0' + STARTED)
lives("L16", "one that adopts orphans", '"$A" adopter "$HOLD"' + STARTED)
lives("L17", "one without its first thread", '"$A" without-leader "$HOLD"' + STARTED)
lives("L18", "one that sheds its death signal", '"$A" without-death-signal "$HOLD"' + STARTED)
lives("L19", "a shell trap at the end",
      f"trap 'setsid \"$A\" hold \"$HOLD\" {QUIET} & {STARTED}' EXIT; exit 0")
lives("L20", "python", "python3 -c \"import os, subprocess, sys; subprocess.Popen([sys.argv[1],"
      ' \'hold\', sys.argv[2], \'quiet\'], start_new_session=True)" "$A" "$HOLD"' + STARTED,
      no_control="there may be none")


def at_timeout(name, title, script):
    attack(name, title + ", at a timeout", survived, script + "\nsleep 100",
           timeout=1, no_control="it is shown to survive above, or the timeout"
           " ends it without a sandbox, too")


at_timeout("L21", "in the foreground, deaf to signals", 'trap "" TERM; "$A" hold "$HOLD" ignore')
at_timeout("L22", "a session deaf to signals",
           f'setsid "$A" hold "$HOLD" ignore {QUIET} &' + STARTED)
at_timeout("L23", "a daemon without any mark", '"$A" bare-daemon "$HOLD"' + STARTED)
at_timeout("L24", "one that makes an heir at SIGTERM", '"$A" heir "$HOLD"')
at_timeout("L25", "several chains", '"$A" many-chains "$HOLD"' + STARTED)
at_timeout("L26", "stopped ones", 'for i in 1 2 3; do setsid "$A" hold "$HOLD" stop & done'
           + STARTED)

for number, (title, script) in enumerate((
    ("in the foreground", '"$A" hold "$HOLD"'),
    ("in the background", f'"$A" hold "$HOLD" {QUIET} &' + STARTED + "\nsleep 100"),
    ("a session", f'env -i setsid "$A" hold "$HOLD" ignore {QUIET} &' + STARTED + "\nsleep 100"),
    ("a daemon without any mark", '"$A" bare-daemon "$HOLD"' + STARTED + "\nsleep 100"),
    ("one that is stopped", f'setsid "$A" hold "$HOLD" stop {QUIET} &' + STARTED + "\nsleep 100"),
    ("several chains", '"$A" many-chains "$HOLD"' + STARTED + "\nsleep 100"),
    ("one that sheds its death signal", '"$A" without-death-signal "$HOLD"; sleep 100'),
), 27):
    attack(f"L{number}", f"SIGKILL of the server: {title}", lost, script,
           run=kill_server(signal.SIGKILL))
attack("L34", "SIGTERM of the server: a daemon without any mark", lost,
       '"$A" bare-daemon "$HOLD"' + STARTED + "\nsleep 100", run=kill_server(signal.SIGTERM))

for number, more, network in ((42, ["--pid-namespace"], "none"), (45, [], "loopback")):
    how = " ".join(more) or "--network loopback"
    lives(f"L{number}", f"a daemon without any mark, with {how}",
          '"$A" bare-daemon "$HOLD"' + STARTED, options=more, network=network)
    attack(f"L{number + 1}", f"SIGKILL of the server: a daemon, with {how}", lost,
           '"$A" bare-daemon "$HOLD"' + STARTED + "\nsleep 100",
           run=kill_server(signal.SIGKILL), options=more, network=network)
    attack(f"L{number + 2}", f"several chains at a timeout, with {how}", survived,
           '"$A" many-chains "$HOLD"' + STARTED + "\nsleep 100", network=network,
           options=more, timeout=1, no_control="as L25")

attack("L35", "write to every pipe of the server while it serves", forged,
       'for p in $("$A" ancestors "$RUNNER"); do for f in /proc/$p/fd/*; do'
       ' [ ! -p $f ] || timeout 1 sh -c "echo forged > $f"; done; done',
       run=serve, no_control_user=HIDDEN)
attack("L36", "read the server's requests while it serves",
       lambda case, run: "a request was lost" if "forged" in run.out else None,
       'cat; for p in $("$A" ancestors "$RUNNER"); do timeout 1 head -c 40 /proc/$p/fd/0; done',
       run=serve, no_control="root's control would wait for a request")
attack("L37", "a daemon that an earlier command left", survived,
       '"$A" bare-daemon "$HOLD"' + STARTED, run=serve)
FLIGHT = '"$A" bare-daemon "$HOLD"; sleep 100'
attack("L38", "a daemon, when its command is cancelled", lost, FLIGHT, run=in_flight("cancel"))
attack("L39", "a daemon, when the server's input ends", lost, FLIGHT, run=in_flight("end"),
       timeout=3)
attack("L40", "a daemon, at SIGKILL of the server", lost, FLIGHT, run=in_flight(signal.SIGKILL))
attack("L41", "a daemon, at SIGTERM of the server", lost, FLIGHT, run=in_flight(signal.SIGTERM))
