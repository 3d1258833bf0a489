"""Judges of the attacks: why a run was a success, or None."""

import errno
import fcntl
import os
import re
import select
import signal
import socket
import time

from cases import GRACE, LACKING, REFUSED


def leaked(case, run):
    return "the secret is in the output" if case.token in run.out else None


def outside_changed(case, run):
    now = case.outside()
    changed = [path for path in now.keys() | case.snapshot.keys()
               if now.get(path) != case.snapshot.get(path)]
    return f"changed outside: {sorted(changed)}" if changed else None


def victim_gone(case, run):
    try:
        case.victim.stdin.write(b"ping\n")
        case.victim.stdin.flush()
        ready, _, _ = select.select([case.victim.stdout], [], [], GRACE)
        if ready and os.read(case.victim.stdout.fileno(), 100):
            return None
    except OSError:
        pass
    return "the victim does not answer"


def victim_written(case, run):
    with open(f"/proc/{case.victim.pid}/environ", "rb") as file:
        return "the victim's memory was changed" if b"ATTACK" in file.read() else None


def victim_told(case, run):
    ready, _, _ = select.select([case.victim.stdout], [], [], 0 if case.sandboxed else GRACE)
    return "the victim read what was not for it" if ready else None


def victim_limited(case, run):
    return "the victim's limits changed" if case.victim_limits() != case.limits else None


def received(case, run):
    ready, _, _ = select.select(case.listeners, [], [], 0.02 if case.sandboxed else GRACE)
    for one in ready:
        try:
            if one.type == socket.SOCK_STREAM:
                one.accept()[0].close()
            else:
                one.recv(4096)
        except OSError:
            continue
        return f"something came in at {one.getsockname()}"
    return None


def reached(case, run):
    """The kernel went past the question of permission."""
    through = [f"{name}: {errno.errorcode.get(error, 'succeeded')}"
               for name, error in run.probes() if error not in REFUSED and error not in LACKING]
    return ", ".join(through) or None


def succeeded(case, run):
    """The kernel did it. Its refusals here have many names."""
    done = [name for name, error in run.probes() if error == 0]
    return ", ".join(done) + " succeeded" if done else None


def shown(pattern):
    def judge(case, run):
        found = re.search(pattern, run.out, re.MULTILINE)
        return f"it said {found.group(0)!r}" if found else None
    return judge


def survived(case, run, within=None):
    """Somebody still has a hold file locked."""
    files = [case.path("ws/" + name) for name in os.listdir(case.path("ws"))
             if name.startswith("hold")]
    if not files:
        return None
    if within is None:
        within = GRACE if case.sandboxed else 0.2
    end = time.monotonic() + within
    while held(files):
        if time.monotonic() > end:
            return "it is still alive"
        time.sleep(0.005)
    return None


def held(files):
    for file in files:
        fd = os.open(file, os.O_RDWR)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(fd)
    return False


def let_go(case):
    """Ends the survivors of a run, of which the hold files tell."""
    case.file("ws/end", "")
    files = [case.path("ws/" + name) for name in os.listdir(case.path("ws"))
             if name.startswith("hold")]
    end = time.monotonic() + GRACE
    while files and held(files):
        if time.monotonic() > end:
            for file in files:
                with open(file, encoding="ascii") as text:
                    pids = [int(line) for line in text.read().split()]
                for pid in pids:
                    end_survivor(case, pid)
            return
        time.sleep(0.01)


def end_survivor(case, pid):
    """Kills it if it is one: it runs our helper, which nobody else has."""
    try:
        if os.readlink(f"/proc/{pid}/exe") == case.suite.attack_program:
            os.kill(pid, signal.SIGKILL)
    except OSError:
        pass
