"""P: other processes."""

import subprocess

from cases import NOT_ROOT, attack
from judges import shown, succeeded, victim_gone, victim_limited, victim_told, victim_written
from reads import reads

for number, how in enumerate(("kill", "group", "tkill", "tgkill", "queue", "tgqueue", "pidfd"), 1):
    attack(f"P{number:02}", f"a signal to another process ({how})", victim_gone,
           f'"$A" signal {how} "$VICTIM" 15')
attack("P08", "SIGKILL to another process", victim_gone, 'kill -9 "$VICTIM"')
attack("P09", "SIGSTOP to another process", victim_gone, 'kill -STOP "$VICTIM"')
attack("P10", "a signal by the owner of a pipe", victim_gone, '"$A" owner pipe "$VICTIM"')
attack("P11", "a signal by the owner of a socket", victim_gone, '"$A" owner socket "$VICTIM"')
attack("P12", "a signal by a lease", victim_gone, '"$A" lease "$VICTIM"')
attack("P13", "PTRACE_ATTACH", victim_written, '"$A" trace "$VICTIM" "$ADDRESS" attach')
attack("P14", "PTRACE_SEIZE", victim_written, '"$A" trace "$VICTIM" "$ADDRESS" seize')
attack("P15", "process_vm_writev", victim_written, '"$A" memory-write "$VICTIM" "$ADDRESS"')
attack("P16", "write to /proc/PID/mem", victim_written,
       '"$A" memory-file-write "$VICTIM" "$ADDRESS"')
attack("P17", "kcmp", succeeded, '"$A" compare "$VICTIM"')
attack("P18", "process_madvise", succeeded, '"$A" advise "$VICTIM" "$ADDRESS"',
       no_control_user=NOT_ROOT)
attack("P19", "perf_event_open of another process", succeeded, '"$A" perf "$VICTIM"')
attack("P20", "write to the input of another process", victim_told,
       'echo x > "/proc/$VICTIM/fd/0"')
attack("P21", "choose who is killed when memory is short", victim_limited,
       'echo 500 > "/proc/$VICTIM/oom_score_adj"')


def server_lost(case, run):
    if run.result is None or run.result.get("exit_code") != 0:
        return f"the server was kept from its work: {run.told()}"
    return None


KILL_ABOVE = 'for p in $("$A" ancestors "$RUNNER"); do {} ; done; sleep 0.1; exit 0'
attack("P22", "SIGKILL to the supervisor and the server", server_lost,
       KILL_ABOVE.format('"$A" signal kill $p 9'))
attack("P23", "SIGKILL to them by pidfd", server_lost,
       KILL_ABOVE.format('"$A" signal pidfd $p 9'))
attack("P24", "SIGKILL to a thread of them", server_lost,
       KILL_ABOVE.format('"$A" signal tgkill $p 9'))
attack("P25", "SIGTERM to them by the owner of a pipe", server_lost,
       KILL_ABOVE.format('"$A" owner pipe $p'))
attack("P26", "SIGTERM to their groups", server_lost,
       KILL_ABOVE.format('kill -TERM -$p; kill -TERM $p'), setup=lambda case: own_session(case))
attack("P30", "SIGSTOP to them", server_lost, KILL_ABOVE.format('"$A" signal kill $p 19'),
       patience=3)
for number, more, network in ((31, ["--pid-namespace"], "none"), (32, [], "loopback")):
    how = " ".join(more) or "--network loopback"
    attack(f"P{number}", f"SIGKILL to all above, with {how}", server_lost,
           'case $(cat /proc/1/comm) in codeexec*) "$A" signal kill 1 9 ;; esac\n'
           + KILL_ABOVE.format('"$A" signal kill $p 9'),
           options=more, network=network, no_control="as P22")
attack("P27", "limit the server and the supervisor", shown(r"^probe prlimit 0 0$"),
       'for p in $("$A" ancestors "$RUNNER"); do "$A" set-limit $p; done')
attack("P34", "limit another process", victim_limited, '"$A" set-limit "$VICTIM"')
attack("P28", "trace the server and the supervisor", succeeded,
       'for p in $("$A" ancestors "$RUNNER"); do "$A" trace $p 0 seize; done',
       no_control="it would stop the server")
attack("P29", "take their descriptors", succeeded,
       'for p in $("$A" ancestors "$RUNNER"); do for fd in 3 4 5 6 7 8; do'
       ' "$A" take-descriptor $p $fd < /dev/null > f & sleep 0.02; kill $!; cat f; done; done',
       no_control="what they hold is not known")


def own_session(case):
    """Their group is not ours: a signal to it must not come back here."""
    start = case.popen
    case.popen = lambda command, **options: start(command, start_new_session=True, **options)


def share(case):
    run = subprocess.run([case.suite.attack_program, "make-shared", case.token],
                         stdout=subprocess.PIPE, **case.suite.identity(), check=False)
    segment = run.stdout.decode().strip()
    case.variables["SEGMENT"] = segment
    case.closers.append(lambda: subprocess.run(
        [case.suite.attack_program, "remove-shared", segment],
        **case.suite.identity(), check=False))


def post(case):
    queue = "/" + case.variables["UNIQUE"]
    subprocess.run([case.suite.attack_program, "make-queue", queue, case.token],
                   **case.suite.identity(), check=False)
    case.variables["QUEUE"] = queue
    case.closers.append(lambda: subprocess.run(
        [case.suite.attack_program, "remove-queue", queue], **case.suite.identity(), check=False))


reads("P35", "System V shared memory", '"$A" shared-read "$SEGMENT"', setup=share)
reads("P33", "a POSIX message queue", '"$A" queue-read "$QUEUE"', setup=post)
