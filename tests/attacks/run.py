#!/usr/bin/env python3
"""Attacks on the sandbox of codeexec-mcp: what a hostile command would try, run for real.

    run.py --mcp codeexec-mcp --attack codeexec-test-attack --as root|user

Every attack runs twice: as its own control without a sandbox, where it has to succeed (otherwise it
would prove nothing), and with `--sandbox strict`, where it must not. Who got through is judged from
outside, by what became of files, victims and listeners that this program made; nothing else is ever
a target. Known gaps are attacks, too: they are expected to succeed, and an option that closes one
is shown to close it. `--as user` gives up root's rights; `--sandbox off` shows that this can fail.

Prints `ok:`, `FAILED:` and `SKIPPED:` lines; the exit status is 1 when one failed, 77 when nothing
could be run.
"""

import argparse
import errno
import fcntl
import json
import os
import re
import secrets
import select
import shlex
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

OTHER_UID = 12345
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
REFUSED = {errno.EPERM, errno.EACCES, errno.ENOSYS}
LACKING = {
    errno.ENOSYS,
    errno.EAFNOSUPPORT,
    errno.EPROTONOSUPPORT,
    errno.ESOCKTNOSUPPORT,
    errno.EOPNOTSUPP,
    errno.ENOPROTOOPT,
}
GRACE = 2.0  # for what the kernel still has to do when a command has ended
LOST_SERVER = 10.0  # for what must follow a server that was killed

ATTACKS = []


class Attack:
    def __init__(self, name, title, judge, script, **options):
        self.name = name
        self.title = title
        self.judge = judge
        self.script = script
        self.options = options.pop("options", [])  # of the sandboxed run
        self.control_options = options.pop("control_options", [])
        self.network = options.pop("network", "none")
        # Why there is no control: for everybody, for root, for an ordinary user.
        self.no_control = options.pop("no_control", None)
        self.no_control_root = options.pop("no_control_root", None)
        self.no_control_user = options.pop("no_control_user", None)
        self.plain_control = options.pop("plain_control", False)  # a bare shell, no server
        self.only = options.pop("only", None)  # "root" or "user", and why the other is left out
        self.allowed = options.pop("allowed", False)  # succeeds by design
        self.gap = options.pop("gap", None)  # succeeds today; the answer to it
        self.gap_varies = options.pop("gap_varies", False)  # some machines have an answer
        self.gap_only = options.pop("gap_only", None)  # for "root" or "user"; held for the other
        self.closed_by = options.pop("closed_by", [])
        self.may_refuse = options.pop("may_refuse", False)  # not starting is an answer, too
        self.run = options.pop("run", None)  # instead of one run of the script
        self.setup = options.pop("setup", None)
        self.timeout = options.pop("timeout", 20)
        self.patience = options.pop("patience", 40)  # with the server, in seconds
        assert not options, options


def attack(name, title, judge=None, script="", **options):
    ATTACKS.append(Attack(name, title, judge, script, **options))


# what an attack runs in ---------------------------------------------------------------------------


class Case:
    """The directories, victims and listeners of one run of one attack."""

    def __init__(self, suite, one, label, sandboxed):
        self.suite = suite
        self.attack = one
        self.sandboxed = sandboxed
        self.token = "token-" + secrets.token_hex(12)
        self.base = os.path.join(suite.base, f"{one.name}-{label}")
        self.closers = []
        self.victim = None
        self.listeners = []
        self.pass_fds = []
        self.environment = {
            "PATH": SYSTEM_PATH,
            "HOME": self.path("home"),
            "TMPDIR": self.path("tmp"),
            "LANG": "C.UTF-8",
            "OPENAI_API_KEY": self.token,
            "ATTACK_SECRET": self.token,
        }
        self.variables = {
            "A": suite.attack_program,
            "OUT": self.path("out"),
            "RO": self.path("ro"),
            "REAL_HOME": self.path("home"),
            "WS": self.path("ws"),
            "RUNNER": str(os.getpid()),
            "HOLD": self.path("ws/hold"),
            "UNIQUE": f"codeexec-attack-{os.getpid()}-{one.name}-{label}",
        }
        self.make_tree()
        if one.setup:
            one.setup(self)
        used = one.script
        if "VICTIM" in used or "$ADDRESS" in used:
            self.start_victim()
        if re.search(r"\$(TCP|UDP|SOCKET|DATAGRAM|ABSTRACT)", used):
            self.listen()
        self.snapshot = self.outside()

    def path(self, name):
        return os.path.join(self.base, name)

    def owned(self, path):
        if self.suite.uid != os.getuid():
            os.chown(path, self.suite.uid, self.suite.gid, follow_symlinks=False)

    def directory(self, name, mode=0o755):
        os.makedirs(self.path(name), exist_ok=True)
        os.chmod(self.path(name), mode)
        self.owned(self.path(name))

    def file(self, name, text, mode=0o644):
        with open(self.path(name), "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(self.path(name), mode)
        self.owned(self.path(name))

    def make_tree(self):
        self.directory("")
        for name in ("ws", "out", "out/dir", "out/empty", "ro", "tmp", "home", "home/.ssh"):
            self.directory(name)
        self.directory("home/.aws", 0o700)
        for name in ("out/canary", "out/dir/canary", "ro/canary", "home/.bashrc"):
            self.file(name, "canary\n")
        self.file("out/tool.sh", f"#!/bin/sh\necho {self.token}\n", 0o755)
        secret = self.token + "\n"
        for name in ("out/secret", "home/.ssh/id_rsa", "home/.aws/credentials", "home/.netrc"):
            self.file(name, secret, 0o600)
        self.file("out/" + self.token, "")

    def outside(self):
        """What is outside of the workspace: names, types, contents."""
        found = {}
        for top in ("out", "ro", "home", "tmp"):
            for directory, names, files in os.walk(self.path(top)):
                for name in names + files:
                    path = os.path.join(directory, name)
                    if directory == self.path("tmp"):
                        continue  # the private home; judged by what is left of it
                    status = os.lstat(path)
                    content = None
                    if stat.S_ISREG(status.st_mode):
                        with open(path, "rb") as file:
                            content = file.read(65536)
                    elif stat.S_ISLNK(status.st_mode):
                        content = os.readlink(path)
                    found[path] = (stat.S_IFMT(status.st_mode), status.st_size * 0, content)
        return found

    def start_victim(self):
        secret = os.open(self.path("out/secret"), os.O_RDWR)
        environment = {"PATH": SYSTEM_PATH, "VICTIM_SECRET": self.token}
        self.victim = subprocess.Popen(
            ["cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=self.path("out"),
            env=environment,
            pass_fds=[secret],
            start_new_session=True,
            **self.suite.identity(),
        )
        os.close(secret)
        os.fchown(self.victim.stdin.fileno(), self.suite.uid, -1)
        self.closers.append(self.end_victim)
        pid = self.victim.pid
        # Its variables are in their place a moment after the program has begun.
        offset = -1
        while offset < 0:
            with open(f"/proc/{pid}/environ", "rb") as file:
                offset = file.read().find(b"VICTIM_SECRET=")
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            start = int(file.read().rpartition(")")[2].split()[47])
        self.variables["VICTIM"] = str(pid)
        self.variables["VICTIM_FD"] = str(secret)
        self.variables["ADDRESS"] = str(start + offset)
        self.limits = self.victim_limits()

    def end_victim(self):
        self.victim.kill()
        self.victim.communicate()

    def victim_limits(self):
        pid = self.victim.pid
        with open(f"/proc/{pid}/limits", encoding="ascii") as file:
            limits = file.read()
        with open(f"/proc/{pid}/oom_score_adj", encoding="ascii") as file:
            score = file.read()
        return (limits, score, os.sched_getaffinity(pid), os.getpriority(os.PRIO_PROCESS, pid))

    def listen(self):
        inet = [(socket.AF_INET, "127.0.0.1", ""), (socket.AF_INET6, "::1", "6")]
        for family, host, suffix in inet:
            for kind, name in ((socket.SOCK_STREAM, "TCP"), (socket.SOCK_DGRAM, "UDP")):
                try:
                    one = socket.socket(family, kind)
                    one.bind((host, 0))
                except OSError:  # no IPv6 here
                    self.variables[name + suffix] = "9"
                    continue
                self.add_listener(one)
                self.variables[name + suffix] = str(one.getsockname()[1])
        unix = [
            ("SOCKET", socket.SOCK_STREAM, self.path("out/docker.sock")),
            ("DATAGRAM", socket.SOCK_DGRAM, self.path("out/log.sock")),
            ("ABSTRACT", socket.SOCK_STREAM, "\0" + self.variables["UNIQUE"]),
            ("ABSTRACT_DATAGRAM", socket.SOCK_DGRAM, "\0d" + self.variables["UNIQUE"]),
        ]
        for name, kind, address in unix:
            one = socket.socket(socket.AF_UNIX, kind)
            one.bind(address)
            if address[0] != "\0":
                os.chmod(address, 0o777)
            self.add_listener(one)
            self.variables[name] = address.lstrip("\0")

    def add_listener(self, one):
        if one.type == socket.SOCK_STREAM:
            one.listen(8)
        one.setblocking(False)
        self.listeners.append(one)
        self.closers.append(one.close)

    def close(self):
        for closer in reversed(self.closers):
            closer()

    # running ----------------------------------------------------------------------------------

    def script(self):
        lines = [f"{name}={shlex.quote(value)}" for name, value in self.variables.items()]
        # The helper must work, or every attack would be held off by its absence.
        lines.append('"$A" ancestors 0 > /dev/null || exit 99')
        lines.append("echo attack-begins")
        return "\n".join(lines + [self.attack.script, ""])

    def command(self, more=()):
        suite = self.suite
        timeout = str(self.attack.timeout)
        command = [suite.mcp, "--policy", "compat", "--workspace", self.path("ws")]
        command += ["--allowed-paths", self.path("ws"), "--timeout", timeout]
        command += ["--read-only", self.path("ro"), suite.tools]
        if self.sandboxed and suite.mode != "off":
            command += ["--sandbox", suite.mode]
            command += ["--network", self.attack.network, *self.attack.options]
        else:
            command += ["--sandbox", "off", "--no-supervisor"] if suite.has_sandbox else []
            command += self.attack.control_options
        return command + list(more)

    def prepare(self):
        self.file("ws/attack.sh", self.script())

    def popen(self, command, **options):
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.path("ws"),
            env=self.environment,
            pass_fds=self.pass_fds,
            **self.suite.identity(),
            **options,
        )

    def start(self, more=()):
        self.prepare()
        if self.attack.plain_control and not self.sandboxed:
            return self.popen(["setsid", "sh", "attack.sh"])
        return self.popen(self.command([*more, "--run", "sh ./attack.sh"]))

    def finish(self, process, text=None):
        if self.is_plain():
            # A survivor holds the pipes of a bare shell, so their end is not waited for.
            wait_for_hold(self, process)
            process.wait(10)
            return finish_lost(self, process)
        try:
            out, err = process.communicate(text, timeout=self.attack.patience)
        except subprocess.TimeoutExpired as expired:
            process.kill()
            out, err = expired.stdout or b"", expired.stderr or b""
        return Run(self, process.returncode, out, err)

    def is_plain(self):
        return self.attack.plain_control and not self.sandboxed

    def run(self):
        if self.attack.run:
            return self.attack.run(self)
        # The standard input stays open, and is worth reading.
        process = self.start()
        try:
            process.stdin.write(f"{self.token}\n".encode())
            process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended already
        return self.finish(process)


class Run:
    """What one run of the server showed."""

    def __init__(self, case, status, out, err):
        self.case = case
        self.status = status
        self.raw = out.decode("utf-8", "replace")
        self.err = err.decode("utf-8", "replace")
        self.result = None
        self.before = ""  # what else came out of the server
        start = self.raw.find('{"success"')
        if start >= 0:
            self.before = self.raw[:start]
            try:
                self.result, end = json.JSONDecoder().raw_decode(self.raw[start:])
                self.before += self.raw[start + end :].strip()
            except ValueError:
                self.before = self.raw
        streams = self.result or {}
        self.out = streams.get("stdout", "") + streams.get("stderr", "")

    def began(self):
        return "attack-begins" in self.out

    def probes(self):
        """The (name, errno) of each answer of the kernel; 0 for a success."""
        lines = re.findall(r"^probe (\S+) (-?\d+) (\d+)$", self.out, re.MULTILINE)
        return [(name, int(error)) for name, _, error in lines]

    def told(self):
        return f"status {self.status}, {self.raw[-700:]!r} {self.err[-300:]!r}"


# judges: why it is a success, or None -------------------------------------------------------------


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


# W: writes ----------------------------------------------------------------------------------------

IDLE = "no command gets such a descriptor, with or without a sandbox"
NOT_ROOT = "the kernel refuses an ordinary user"


def writes(name, title, script, **options):
    attack(name, title, outside_changed, script, **options)


writes("W01", "write to a file outside", 'echo x > "$OUT/canary"')
writes("W02", "append to a file outside", 'echo x >> "$OUT/canary"')
writes("W03", "make a file outside", 'echo x > "$OUT/new"')
writes("W04", "write through a symbolic link", 'ln -s "$OUT/canary" l; echo x > l')
writes("W05", "write through a link to a directory", 'ln -s "$OUT" d; echo x > d/dir/canary')
writes("W06", "write through ..", "echo x > ../out/canary")
writes("W07", "write through /proc/self/root", 'echo x > "/proc/self/root$OUT/canary"')
writes("W08", "write through /proc/thread-self/root",
       'echo x > "/proc/thread-self/root$OUT/canary"')
writes("W09", "write through /proc/self/cwd", "echo x > /proc/self/cwd/../out/canary")
writes("W10", "write through /proc/1/root", 'echo x > "/proc/1/root$OUT/canary"',
       no_control="it may be closed to root, too")
writes("W11", "write through the root of another process",
       'echo x > "/proc/$VICTIM/root$OUT/canary"')
writes("W12", "write through the directory of another process",
       'echo x > "/proc/$VICTIM/cwd/canary"')
writes("W13", "write through the descriptor of another process",
       'echo x > "/proc/$VICTIM/fd/$VICTIM_FD"')
writes("W14", "re-open for writing what was opened for reading",
       'exec 3< "$RO/canary"; echo x > /proc/self/fd/3')
writes("W15", "re-open for writing what was opened as a path", '"$A" reopen "$OUT/canary"')
writes("W16", "write below a directory opened as a path", '"$A" open-below "$OUT" canary')
writes("W17", "openat2", '"$A" openat2-write "$OUT/canary"')
writes("W18", "empty a file by opening it for reading", '"$A" open-truncate "$OUT/canary"')
writes("W19", "truncate(2)", '"$A" truncate "$OUT/canary"')
writes("W20", "delete a file outside", 'rm -f "$OUT/canary"')
writes("W21", "delete a directory outside", 'rmdir "$OUT/empty"')
writes("W22", "make a directory outside", 'mkdir "$OUT/new"')
writes("W23", "make a fifo outside", 'mkfifo "$OUT/new"')
writes("W24", "make a symbolic link outside", 'ln -s x "$OUT/new"')
writes("W25", "make a socket outside", '"$A" unix-bind "$OUT/s"', options=["--unix-sockets"])
writes("W26", "link a file outside into the workspace and write to it",
       'ln "$OUT/canary" h && echo x > h')
writes("W27", "link a file of the workspace outside", 'echo x > f; ln f "$OUT/new"')
writes("W28", "move a file outside", 'echo x > f; mv f "$OUT/new"')
writes("W29", "rename(2) a file outside", 'echo x > f; "$A" rename f "$OUT/new" 0')
writes("W30", "move a file from outside here", 'mv "$OUT/canary" f')
writes("W31", "exchange a file with one outside", 'echo x > f; "$A" rename f "$OUT/canary" 2')
writes("W32", "exchange a directory with one outside", 'mkdir d; "$A" rename d "$OUT/dir" 2')
writes("W33", "rename a file outside", '"$A" rename "$OUT/canary" "$OUT/new" 1')
writes("W34", "write to a file outside in memory", '"$A" map-write "$OUT/canary"')
writes("W35", "name a nameless file outside", '"$A" link-nameless . "$OUT/new"')
writes("W36", "write to a file that may be read", 'echo x > "$RO/canary"')
writes("W37", "write in memory to a file that may be read", '"$A" map-write "$RO/canary"')
writes("W38", "make a file where may be read", 'echo x > "$RO/new"')
writes("W39", "delete what may be read", 'rm -f "$RO/canary"')
writes("W40", "move what may be read here", 'mv "$RO/canary" f')
writes("W41", "link what may be read here and write to it", 'ln "$RO/canary" h && echo x > h')
writes("W42", "write to ~/.bashrc", 'echo x >> "$REAL_HOME/.bashrc"')
writes("W43", "write to ~/.ssh/authorized_keys", 'echo x > "$REAL_HOME/.ssh/authorized_keys"')
writes("W44", "a link that turns while it is written through",
       'echo x > f; "$A" race "$WS/f" "$OUT/canary"')
writes("W45", "io_uring", '"$A" ring-write "$OUT/canary"')
writes("W46", "a second Landlock ruleset that grants everything",
       '"$A" grant-again "$OUT/canary"')
writes("W47", "a program in memory", '"$A" memory-program reopen "$OUT/canary"')
writes("W48", "copy a tree over one outside",
       'mkdir -p t/dir; echo x > t/dir/canary; cp -r t/. "$OUT"')
writes("W49", "unpack an archive with .. in its names",
       'tar -cPf t.tar --transform "s,^,../out/," attack.sh; tar -xPf t.tar')


def inherit(case):
    directory = os.open(case.path("out"), os.O_RDONLY | os.O_DIRECTORY)
    file = os.open(case.path("out/canary"), os.O_RDWR)
    for fd in (directory, file):
        os.set_inheritable(fd, True)
        case.closers.append(lambda fd=fd: os.close(fd))
    case.pass_fds += [directory, file]


writes("W50", "write through descriptors that the server was started with", '"$A" inherited',
       setup=inherit, no_control=IDLE)
attack("W51", "make a character device", lambda case, run: made_device(case),
       "mknod null c 1 3", no_control_user=NOT_ROOT)
attack("W52", "make a block device", lambda case, run: made_device(case),
       "mknod disk b 7 250", no_control_user=NOT_ROOT)


def made_device(case):
    for name in ("null", "disk"):
        if os.path.lexists(case.path("ws/" + name)):
            return "the device is there"
    return None


def shared_place(name, title, directory, **options):
    def judge(case, run):
        path = os.path.join(directory, case.variables["UNIQUE"])
        if not os.path.lexists(path):
            return None
        os.unlink(path)
        return f"{path} was made"
    attack(name, title, judge, f'echo x > "{directory}/$UNIQUE"', **options)


shared_place("W53", "make a file in /tmp", "/tmp")
shared_place("W54", "make a file in /var/tmp", "/var/tmp")
shared_place("W55", "make a file in /dev/shm", "/dev/shm")


def nameless(name, directory, **options):
    """A file that has no name, and is gone at once: harmless where it succeeds."""
    if not os.path.isdir(directory):
        return
    attack(name, f"a nameless file in {directory}", succeeded, f'"$A" nameless {directory}',
           no_control_user=NOT_ROOT, **options)


attack("W75", "flags of a file outside by its path", succeeded,
       '"$A" set-file-flags "$OUT/canary"')
nameless("W56", "/etc")
nameless("W57", "/usr/bin")
nameless("W58", "/usr/local/bin")
nameless("W59", "/var/spool/cron")
nameless("W60", "/etc/cron.d")
nameless("W61", "/root")
nameless("W62", "/var/lib")


def system_file(name, path, mode="write", **options):
    """Opens, and does nothing with it."""
    if not os.path.exists(path):
        return
    attack(name, f"open {path} to {mode}", succeeded, f'"$A" open-{mode} {path}', **options)


system_file("W63", "/etc/passwd", no_control_user=NOT_ROOT)
system_file("W64", "/etc/ld.so.cache", no_control_user=NOT_ROOT)
system_file("W65", "/proc/sys/kernel/core_pattern", no_control_user=NOT_ROOT)
system_file("W66", "/proc/sysrq-trigger", no_control_user=NOT_ROOT)
system_file("W67", "/dev/kmsg", no_control_user=NOT_ROOT)
system_file("W68", "/sys/fs/cgroup/cgroup.procs", no_control_user=NOT_ROOT)
system_file("W69", "/sys/kernel/mm/transparent_hugepage/enabled", no_control_user=NOT_ROOT)


def swap_grant(case):
    """The first command turns a granted directory into a link; the second is granted it."""
    case.directory("ws/granted")
    case.attack.script = ""
    first = Case.command(case)
    case.file("ws/first.sh", f"rmdir granted; ln -s {case.path('out')} granted\n")
    case.finish(case.popen(first + ["--run", "sh ./first.sh"]))
    case.file("ws/attack.sh", "echo attack-begins; echo x > canary; echo x > granted/canary\n")
    second = [word for word in first]
    second[second.index("--allowed-paths") + 1 : second.index("--timeout")] = [
        case.path("ws"), case.path("ws/granted")]
    run = case.finish(case.popen(second + ["--run", "sh ./attack.sh"]))
    return run


attack("W70", "turn a granted directory into a link between two runs", outside_changed, "",
       run=swap_grant, may_refuse=True)

# R: reads -----------------------------------------------------------------------------------------


def reads(name, title, script, **options):
    attack(name, title, leaked, script, **options)


HIDDEN = "the server's own secrets are closed to its user (PR_SET_DUMPABLE)"

reads("R01", "read a file outside", 'cat "$OUT/secret"')
reads("R02", "read ~/.ssh/id_rsa", 'cat "$REAL_HOME/.ssh/id_rsa"')
reads("R03", "read ~/.aws/credentials by ~", "cat ~/.aws/credentials")
reads("R04", "read ~/.netrc by $HOME", 'cat "$HOME/.netrc"')
reads("R05", "read through a symbolic link", 'ln -s "$OUT/secret" l; cat l')
reads("R06", "read through ..", "cat ../out/secret")
reads("R07", "read through /proc/self/root", 'cat "/proc/self/root$OUT/secret"')
reads("R08", "read through the root of another process", 'cat "/proc/$VICTIM/root$OUT/secret"')
reads("R09", "read through the directory of another process", 'cat "/proc/$VICTIM/cwd/secret"')
reads("R10", "read the descriptor of another process", 'cat "/proc/$VICTIM/fd/$VICTIM_FD"')
reads("R11", "read the variables of another process",
      'tr "\\0" "\\n" < "/proc/$VICTIM/environ"')
reads("R12", "link a file outside here and read it", 'ln "$OUT/secret" h && cat h')
reads("R13", "move a file outside here and read it", 'mv "$OUT/secret" h && cat h')
reads("R14", "rename a directory outside here and read in it",
      'mv "$OUT" d && cat d/secret')
reads("R15", "re-open for reading what was opened as a path", '"$A" reopen-read "$OUT/secret"')
reads("R16", "read a file outside in memory", '"$A" map-read "$OUT/secret"')
reads("R17", "run a program outside", '"$OUT/tool.sh"')
reads("R18", "run a script outside", 'sh "$OUT/tool.sh"; . "$OUT/tool.sh"')
reads("R19", "list a directory outside", 'ls -a "$OUT"; find "$OUT"; echo "$OUT"/*')
reads("R20", "copy a tree from outside", 'cp -r "$OUT" t; cat t/secret')
reads("R21", "archive a tree from outside", 'tar -cf - "$OUT" | tr -c "[:print:]" "\\n"')
reads("R22", "io_uring", '"$A" ring-read "$OUT/secret"')
reads("R23", "open by handle", '"$A" by-handle "$OUT/secret"', no_control_user=NOT_ROOT)
reads("R24", "memory of the victim, by file", '"$A" memory-file-read "$VICTIM" "$ADDRESS"')
reads("R25", "memory of the victim, by system call", '"$A" memory-read "$VICTIM" "$ADDRESS"')
reads("R26", "take a descriptor of the victim", '"$A" take-descriptor "$VICTIM" "$VICTIM_FD"')
reads("R27", "a program in memory", '"$A" memory-program reopen-read "$OUT/secret"')
reads("R28", "descriptors that the server was started with", '"$A" inherited',
      setup=inherit, no_control=IDLE)
reads("R29", "a file of the workspace that only its owner may read",
      'cat locked', setup=lambda case: lock_file(case), no_control_user=NOT_ROOT)
system_file("R30", "/etc/shadow", "read", no_control_user=NOT_ROOT)
system_file("R31", "/etc/gshadow", "read", no_control_user=NOT_ROOT)
system_file("R32", "/etc/sudoers", "read", no_control_user=NOT_ROOT)
system_file("R33", "/etc/ssl/private/ssl-cert-snakeoil.key", "read", no_control_user=NOT_ROOT)
system_file("R34", "/etc/ssh/ssh_host_ed25519_key", "read", no_control_user=NOT_ROOT)
system_file("R35", "/dev/mem", "read", no_control="most kernels refuse root as well")
system_file("R36", "/root", "read", no_control_user=NOT_ROOT)
system_file("R37", "/proc/kcore", "read", no_control_user=NOT_ROOT)
system_file("R38", "/proc/kmsg", "read", no_control="it may be in use")
system_file("R39", "/sys/kernel/debug", "read", no_control_user=NOT_ROOT)
system_file("R40", "/dev", "read", no_control=None)
system_file("R41", "/home", "read")
system_file("R42", "/var/log", "read")
system_file("R43", "/", "read")


reads("R45", "read relative to a directory outside", 'cd "$OUT" && cat secret')
reads("R46", "~/.ssh/id_rsa, without a private home", "cat ~/.ssh/id_rsa ~/.netrc",
      options=["--private-home", "off"])


def search_path(make):
    """A PATH of the server that has a directory more, in front."""
    def setup(case):
        directory = make(case)
        case.environment["PATH"] = directory + ":" + SYSTEM_PATH
    return setup


def path_in_home(name):
    def make(case):
        case.directory("home/" + name)
        return case.path("home/" + name)
    return search_path(make)


def path_in_workspace(case):
    case.directory("ws/bin")
    os.symlink(case.path("out/secret"), case.path("ws/bin/tool"))
    os.symlink(case.path("out"), case.path("ws/bin/dir"))
    return case.path("ws/bin")


def path_through_link(case):
    case.directory("out/bin")
    os.symlink(case.path("out"), case.path("ws/tools"))
    return case.path("ws/tools/bin")


def linked_venv(case):
    case.directory("out/bin")
    os.symlink(case.path("out"), case.path("ws/.venv"))


reads("R47", "the home directory, by ~/bin in the server's PATH",
      'cat "$REAL_HOME/.ssh/id_rsa" "$REAL_HOME/.netrc"', setup=path_in_home("bin"))
reads("R48", "the home directory, by ~/.local/bin in the server's PATH",
      'cat "$REAL_HOME/.ssh/id_rsa" "$REAL_HOME/.netrc"', setup=path_in_home(".local/bin"))
reads("R49", "the home directory, by itself in the server's PATH",
      'cat "$REAL_HOME/.ssh/id_rsa" "$REAL_HOME/.netrc"', setup=path_in_home("."))
reads("R50", "what links of the workspace lead to, by its bin in the server's PATH",
      'cat bin/tool bin/dir/secret "$OUT/secret"', setup=search_path(path_in_workspace))
reads("R51", "what a link of the workspace leads to, by a PATH through it",
      'cat tools/secret "$OUT/secret"', setup=search_path(path_through_link))
reads("R52", "what .venv leads to", 'cat .venv/secret "$OUT/secret"', setup=linked_venv)
reads("R53", "what a relative directory of the server's PATH leads to",
      'cat "$OUT/secret"', setup=lambda case: case.environment.update(
          PATH="../out:.:" + SYSTEM_PATH))


def two_runs(first_script, second_script, prepare=None, more=()):
    """The first command plants something; the second comes with a new start of the server."""
    def run(case):
        if prepare:
            prepare(case)
        names = {"OUT": case.path("out"), "REAL_HOME": case.path("home"), "WS": case.path("ws")}
        lines = "".join(f"{name}={shlex.quote(value)}\n" for name, value in names.items())
        first = Case.command(case)
        case.file("ws/first.sh", lines + first_script + "\n")
        case.finish(case.popen(first + ["--run", "sh ./first.sh"]))
        case.file("ws/attack.sh", lines + "echo attack-begins\n" + second_script + "\n")
        options = [word.replace("$WS", case.path("ws")) for word in more]
        return case.finish(case.popen(Case.command(case, [*options, "--run", "sh ./attack.sh"])))
    return run


def plants(name, title, first_script, second_script, prepare=None, more=()):
    reads(name, title, "", run=two_runs(first_script, second_script, prepare, more),
          may_refuse=True)


def linked_tool(case):
    case.directory("home/tools")
    case.directory("ws/bin")
    case.file("ws/bin/mytool", "#!/bin/sh\n", 0o755)
    os.symlink(case.path("ws/bin/mytool"), case.path("home/tools/mytool"))
    case.environment["PATH"] = case.path("home/tools") + ":" + SYSTEM_PATH


def venv_in_home(case):
    case.directory("ws/.venv")
    case.directory("ws/.venv/bin")
    os.symlink(case.path("ws/.venv"), case.path("home/venv"))
    case.environment["PATH"] = case.path("home/venv/bin") + ":" + SYSTEM_PATH


def home_with_bin(case):
    case.directory("home/bin")


AWS = 'cat "$REAL_HOME/.aws/credentials"'
plants("R70", "what a program of PATH that lies here is a link to",
       'chmod u+x "$REAL_HOME/.aws/credentials"; '
       'ln -sfn "$REAL_HOME/.aws/credentials" bin/mytool', AWS, linked_tool)
plants("R71", "what a directory of PATH that lies here is a link to",
       'mv .venv/bin .venv/old; ln -sfn "$REAL_HOME/.aws" .venv/bin',
       AWS, venv_in_home)
for number, target in ((72, "$REAL_HOME"), (73, "$OUT")):
    plants(f"R{number}", f"what a venv here is a link to, with --venv-path ({target[1:]})",
           f'mkdir -p fake/bin; ln -sfn "{target}" .venv', AWS + ' "$OUT/secret"',
           home_with_bin if number == 72 else lambda case: case.directory("out/bin"),
           ["--venv-path", "$WS/.venv"])
plants("R74", "what a link here leads to, with --read-only",
       'ln -sfn "$REAL_HOME/.aws" granted', AWS, None, ["--read-only", "$WS/granted"])
plants("R75", "what a link here leads to, with --local-skills-directory",
       'ln -sfn "$REAL_HOME/.aws" skills', AWS, None,
       ["--local-skills-directory", "$WS/skills"])


def secrets_of_prefix(case):
    for name in ("", "/bin", "/a", "/.git"):
        case.directory("out/pfx" + name)
    secret = case.token + "\n"
    for name in (".pgpass", "id_ecdsa", ".env.local"):
        case.file("out/pfx/" + name, secret)
    for name in ("a/deep", ".git/config", "settings"):
        case.file("out/pfx/" + name, secret, 0o600)
    os.chmod(case.path("out/pfx"), 0o700)
    return case.path("out/pfx/bin")


def common_directory(case):
    os.chmod(case.path("out"), 0o1777)
    return case.path("out")


reads("R76", "what looks like a secret in the prefix of a directory of PATH",
      'cd "$OUT/pfx"; cat .pgpass id_ecdsa .env.local a/deep .git/config settings',
      setup=search_path(secrets_of_prefix))
reads("R77", "a directory of everybody's, by itself in the server's PATH",
      'cat "$OUT/secret"; ls "$OUT"', setup=search_path(common_directory))
for number, more, network in ((54, ["--pid-namespace"], "none"), (56, [], "loopback")):
    how = " ".join(more) or "--network loopback"
    reads(f"R{number}", f"read a file outside, with {how}",
          'cat "$OUT/secret" "/proc/1/root$OUT/secret" "/proc/$PPID/root$OUT/secret"',
          options=more, network=network)
    writes(f"W{number + 17}", f"write to a file outside, with {how}",
           'echo x > "$OUT/canary"; echo x > "/proc/1/root$OUT/canary"',
           options=more, network=network)


def lock_file(case):
    case.file("ws/locked", case.token + "\n", 0)
    os.chown(case.path("ws/locked"), OTHER_UID + 1 if os.getuid() == 0 else -1, -1)


def disk_device():
    try:
        for name in sorted(os.listdir("/dev")):
            path = "/dev/" + name
            if stat.S_ISBLK(os.stat(path).st_mode):
                return path
    except OSError:
        pass
    return None


if disk_device():
    attack("R44", "open a disk to read", succeeded, f'"$A" open-read {disk_device()}',
           no_control_user=NOT_ROOT)

# E: the environment -------------------------------------------------------------------------------

reads("E01", "a variable of the server", "env; export -p; set",
      control_options=["--keep-env", "OPENAI_API_KEY"])
reads("E02", "/proc/self/environ", 'tr "\\0" "\\n" < /proc/self/environ',
      control_options=["--keep-env", "OPENAI_API_KEY"])
WIPED = "the server takes them out of its own memory; R11 and R24 show that it can be read"
reads("E04", "variables of all that stands above",
      'for p in $("$A" ancestors "$RUNNER"); do tr "\\0" "\\n" < /proc/$p/environ; done',
      no_control=WIPED)
reads("E05", "memory of all that stands above",
      'for p in $("$A" ancestors "$RUNNER"); do "$A" memory-dump $p; done',
      no_control=WIPED)
reads("E06", "the server's standard input",
      'for p in $("$A" ancestors "$RUNNER"); do timeout 1 head -n 1 /proc/$p/fd/0; done',
      no_control_user=HIDDEN)
reads("E07", "one's own standard input", "timeout 1 cat; timeout 1 head -n 1 < /dev/stdin",
      no_control="no command gets the server's standard input, with or without a sandbox")
reads("E08", "a secret variable in the output", 'echo "$ATTACK_SECRET"; env',
      options=["--secret-env", "ATTACK_SECRET"], control_options=["--keep-env", "ATTACK_SECRET"])
reads("E09", "a secret variable in two pieces",
      'printf %s "${ATTACK_SECRET%????????}"; sleep 0.1; printf %s "${ATTACK_SECRET#"${'
      'ATTACK_SECRET%????????}"}"',
      options=["--secret-env", "ATTACK_SECRET"], control_options=["--keep-env", "ATTACK_SECRET"])
reads("E10", "a secret variable in the error output", 'echo "x${ATTACK_SECRET}x" >&2',
      options=["--secret-env", "ATTACK_SECRET"], control_options=["--keep-env", "ATTACK_SECRET"])


def forged(case, run):
    return "the server's output was forged" if "forged" in run.before else None


attack("E11", "write to the server's standard output", forged,
       'for p in $("$A" ancestors "$RUNNER"); do echo forged > /proc/$p/fd/1; done',
       no_control_user=HIDDEN)
attack("E12", "write to the server's error output",
       lambda case, run: "it was forged" if "forged" in run.err else None,
       'for p in $("$A" ancestors "$RUNNER"); do echo forged > /proc/$p/fd/2; done',
       no_control_user=HIDDEN)
reads("E14", "take the server's standard input",
      'for p in $("$A" ancestors "$RUNNER"); do timeout 1 "$A" take-descriptor $p 0; done',
      no_control_user=HIDDEN)

attack("E15", "the socket of an ssh-agent", shown("^SSH_AUTH_SOCK=."), "env",
       setup=lambda case: case.environment.update(SSH_AUTH_SOCK=case.path("out/agent")),
       control_options=["--keep-env", "SSH_AUTH_SOCK"])
for number, more, network in ((16, ["--pid-namespace"], "none"), (18, [], "loopback")):
    how = " ".join(more) or "--network loopback"
    reads(f"E{number}", f"variables of all that stands above, with {how}",
          'for p in 1 $PPID $("$A" ancestors "$RUNNER"); do tr "\\0" "\\n" < /proc/$p/environ;'
          ' done', options=more, network=network, no_control="as E04")
    reads(f"E{number + 1}", f"memory of all that stands above, with {how}",
          'for p in 1 $("$A" ancestors "$RUNNER"); do "$A" memory-dump $p;'
          ' timeout 1 head -n 1 /proc/$p/fd/0; done', options=more, network=network,
          no_control="as E05")

# P: other processes -------------------------------------------------------------------------------

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


# V: privilege -------------------------------------------------------------------------------------


def set_user_id(case):
    path = case.path("ro/root-attack")
    shutil.copy(case.suite.attack_program, path)
    os.chown(path, 0, 0)
    os.chmod(path, 0o4755)


def give_capabilities(case):
    path = case.path("ro/capable-attack")
    shutil.copy(case.suite.attack_program, path)
    os.chmod(path, 0o755)
    # Version 2, effective; CAP_DAC_OVERRIDE, CAP_NET_RAW.
    bits = 1 << 1 | 1 << 13
    os.setxattr(path, "security.capability", struct.pack("<5I", 0x02000001, bits, 0, 0, 0))


CAPABLE = shown(r"^Cap(Eff|Prm|Amb):\s*0*[1-9a-f]")
ROOT_MADE = "only root can make such a file"
if os.getuid() == 0:
    attack("V01", "a program of root with the set-user-ID bit", shown(r"^euid 0$"),
           '"$RO/root-attack" identity', setup=set_user_id, only="user")
    attack("V02", "a program with capabilities", CAPABLE, '"$RO/capable-attack" identity',
           setup=give_capabilities)
attack("V03", "capabilities", CAPABLE, '"$A" identity', no_control_user=NOT_ROOT)
attack("V04", "raise capabilities", succeeded, '"$A" raise-capabilities', no_control_user=NOT_ROOT)
attack("V05", "gain privileges by programs at all", shown(r"^NoNewPrivs:\s*0$"), '"$A" identity')
if shutil.which("sudo"):
    attack("V06", "sudo", shown("^0$"), "sudo -n id -u", no_control="it depends on the machine")


def probes(name, call, ordinary=False, **options):
    if not ordinary:
        options.setdefault("no_control_user", NOT_ROOT)
    attack(name, call.replace("-", " "), reached, f'"$A" probe {call}', **options)


PROBES = """
unshare-user* unshare-user-high* unshare-mount unshare-net unshare-pid unshare-ipc unshare-uts
unshare-cgroup unshare-time clone-user* clone-user-net* clone-pid clone3-user* clone3-net chroot
pivot_root mount umount2 fsopen open_tree move_mount mount_setattr swapon swapoff reboot kexec_load
init_module finit_module delete_module settimeofday* clock_settime* sethostname setdomainname syslog
acct quotactl* quotactl_fd* add_key* request_key* keyctl* io_uring_setup* bpf userfaultfd*
fanotify_init* process_mrelease* setuid setgid setgroups chown nice realtime securebits
""".split()
if os.uname().machine == "x86_64":
    PROBES += ["ioperm", "iopl", "modify_ldt*"]
for number, call in enumerate(PROBES, 10):
    probes(f"V{number:02}", call.rstrip("*"), call.endswith("*"))

attack("V70", "push characters into a terminal (TIOCSTI)", reached, '"$A" push 0x5412',
       options=["--terminals"])
attack("V71", "TIOCSTI with bits that the kernel drops", reached, '"$A" push 0x700005412',
       options=["--terminals"])
attack("V72", "TIOCLINUX", reached, '"$A" push 0x541c',
       options=["--terminals"])
attack("V73", "a second filter that allows everything", reached,
       '"$A" filter-again keyctl')
attack("V74", "system calls of i386", received, '"$A" i386 "$TCP"; exit 0')
attack("V75", "system calls of x32", succeeded, '"$A" x32',
       no_control="most kernels do not have them")
attack("V76", "enter the network of another process", succeeded, '"$A" enter "$VICTIM" net',
       no_control_user=NOT_ROOT)
attack("V77", "enter a namespace by a pidfd", succeeded, '"$A" enter-pidfd "$VICTIM"',
       no_control_user=NOT_ROOT)
attack("V78", "enter the files of the server", succeeded,
       'for p in $("$A" ancestors "$RUNNER"); do "$A" enter $p mnt; done',
       no_control_user=NOT_ROOT)
attack("V79", "unshare(1) a user namespace", shown("^inside 0$"),
       'unshare -r sh -c "echo inside \\$(id -u)"')
attack("V80", "bubblewrap", shown("^inside$"), "bwrap --bind / / echo inside",
       no_control="it may not be installed")
attack("V81", "mount in a namespace of one's own", shown("^mounted$"),
       "unshare -rm sh -c 'mount -t tmpfs none . && echo mounted'")

for number, more, network in ((82, ["--pid-namespace"], "none"), (86, [], "loopback")):
    how = " ".join(more) or "--network loopback"
    attack(f"V{number}", f"capabilities, with {how}", CAPABLE, '"$A" identity',
           options=more, network=network, no_control="as V03")
    attack(f"V{number + 1}", f"raise capabilities, with {how}", succeeded,
           '"$A" raise-capabilities', options=more, network=network, no_control="as V04")
    attack(f"V{number + 2}", f"mounts and namespaces, with {how}", reached,
           'for p in mount umount2 fsopen unshare-user unshare-mount chroot sethostname; do'
           ' "$A" probe $p; done', options=more, network=network, no_control="as above")
    attack(f"V{number + 3}", f"another user, with {how}", succeeded,
           'for p in setuid setgid setgroups chown; do "$A" probe $p; done',
           options=more, network=network, no_control="as above")

# N: the network -----------------------------------------------------------------------------------


def sends(name, title, script, **options):
    attack(name, title, received, script, **options)


sends("N01", "TCP", '"$A" tcp "$TCP"')
sends("N02", "TCP over IPv6", '"$A" tcp6 "$TCP6"')
sends("N03", "UDP", '"$A" udp "$UDP"')
sends("N04", "UDP over IPv6", '"$A" udp6 "$UDP6"')
sends("N05", "MPTCP", '"$A" mptcp "$TCP"')
sends("N06", "TCP fast open", '"$A" fast-open "$TCP"')
sends("N07", "DNS by hand", '"$A" dns "$UDP"')
sends("N08", "/dev/tcp of bash", 'bash -c "echo x > /dev/tcp/127.0.0.1/$TCP"')
sends("N09", "/dev/udp of bash", 'bash -c "echo x > /dev/udp/127.0.0.1/$UDP"')
sends("N10", "io_uring", '"$A" ring-tcp "$TCP"')
if shutil.which("curl", path=SYSTEM_PATH):
    sends("N11", "curl", 'curl -s -m 2 "http://127.0.0.1:$TCP/" & sleep 0.3; exit 0')
if os.uname().machine == "x86_64":
    sends("N12", "socketcall of i386", '"$A" i386 "$TCP"; exit 0')
sends("N13", "a socket with a path, like docker.sock", '"$A" unix-stream "$SOCKET"')
sends("N14", "a datagram socket with a path, like /dev/log", '"$A" unix-datagram "$DATAGRAM"')
sends("N15", "an abstract socket", '"$A" abstract-stream "$ABSTRACT"')
sends("N16", "an abstract datagram socket", '"$A" abstract-datagram "$ABSTRACT_DATAGRAM"')
sends("N17", "half of a datagram pair", f'"$A" pair-send "$DATAGRAM" {int(socket.SOCK_DGRAM)}')
sends("N18", "half of a stream pair", f'"$A" pair-send "$SOCKET" {int(socket.SOCK_STREAM)}',
      no_control="the kernel does not do it")
sends("N19", "half of a packet pair", f'"$A" pair-send "$SOCKET" {int(socket.SOCK_SEQPACKET)}',
      no_control="the kernel does not do it")
sends("N20", "half of a raw pair", f'"$A" pair-send "$DATAGRAM" {int(socket.SOCK_RAW)}')
sends("N21", "python", 'python3 -c "import socket; socket.create_connection((\'127.0.0.1\','
      '$TCP))"', no_control="there may be none")


def inherit_socket(case):
    case.listen()
    one = socket.create_connection(case.listeners[0].getsockname())
    peer = case.listeners[0].accept()[0]
    os.set_inheritable(one.fileno(), True)
    case.pass_fds.append(one.fileno())
    case.listeners = [peer]
    case.closers += [one.close, peer.close]


def received_bytes(case, run):
    ready, _, _ = select.select(case.listeners, [], [], 0.02)
    return "bytes came" if ready else None


attack("N22", "a connection that the server was started with", received_bytes, '"$A" inherited',
       setup=inherit_socket, no_control=IDLE)
attack("N23", "listen", succeeded, '"$A" listen')
attack("N24", "any socket at all", shown(r"^sockets [1-9]"), '"$A" all-sockets')
for name, title, family, kind, protocol, ordinary in (
    ("N25", "a raw socket", socket.AF_INET, socket.SOCK_RAW, 1, False),
    ("N26", "a ping socket", socket.AF_INET, socket.SOCK_DGRAM, 1, False),
    ("N27", "a packet socket", 17, socket.SOCK_RAW, 0, False),
    ("N28", "netlink, routes", 16, socket.SOCK_RAW, 0, True),
    ("N29", "netlink, events of devices", 16, socket.SOCK_RAW, 15, True),
    ("N30", "netlink, sockets", 16, socket.SOCK_RAW, 4, True),
    ("N31", "vsock", 40, socket.SOCK_STREAM, 0, True),
    ("N32", "the kernel's cryptography (AF_ALG)", 38, socket.SOCK_SEQPACKET, 0, True),
    ("N33", "SCTP", socket.AF_INET, socket.SOCK_STREAM, 132, True),
    ("N34", "UDP-Lite", socket.AF_INET, socket.SOCK_DGRAM, 136, True),
    ("N35", "XDP", 44, socket.SOCK_RAW, 0, False),
    ("N36", "bluetooth", 31, socket.SOCK_RAW, 1, True),
    ("N37", "CAN", 29, socket.SOCK_RAW, 1, True),
    ("N38", "TIPC", 30, socket.SOCK_RDM, 0, True),
    ("N39", "RDS", 21, socket.SOCK_SEQPACKET, 0, True),
    ("N40", "SMC", 43, socket.SOCK_STREAM, 0, True),
):
    attack(name, title, reached, f'"$A" socket {int(family)} {int(kind)} {protocol}',
           no_control_user=None if ordinary else NOT_ROOT,
           no_control_root="it depends on the machine" if name == "N26" else None)
for name, title, family, kind in (
    ("N41", "vsock, with the host's network", 40, socket.SOCK_STREAM),
    ("N42", "a packet socket, with the host's network", 17, socket.SOCK_RAW),
    ("N43", "AF_ALG, with the host's network", 38, socket.SOCK_SEQPACKET),
):
    attack(name, title, reached, f'"$A" socket {family} {int(kind)} 0', network="host",
           no_control_user=NOT_ROOT if family == 17 else None)
sends("N44", "an abstract socket, with the host's network", '"$A" abstract-stream "$ABSTRACT"',
      network="host")
sends("N45", "the host's 127.0.0.1 from a loopback of one's own", '"$A" tcp "$TCP"',
      network="loopback")
sends("N46", "the host's UDP from a loopback of one's own", '"$A" udp "$UDP"',
      network="loopback")
sends("N47", "an abstract socket from a loopback of one's own",
      '"$A" abstract-stream "$ABSTRACT"', network="loopback")
sends("N48", "a socket with a path from a loopback of one's own",
      '"$A" unix-stream "$SOCKET"', network="loopback")
sends("N49", "an abstract socket, with sockets with a path",
      '"$A" abstract-stream "$ABSTRACT"', options=["--unix-sockets"])

# D: limits ----------------------------------------------------------------------------------------

MANY = 250


def limited(name, title, judge, script, options, **more):
    attack(name, title, judge, script, options=options, may_refuse=True, **more)


limited("D01", "many processes", shown(f"^processes {MANY}$"), f'"$A" processes {MANY}',
        ["--limit-processes", "150"])
limited("D02", "much memory", shown("^filled$"), '"$A" memory 200',
        ["--limit-memory", str(100 << 20)])
limited("D03", "a big file", shown("^written$"), '"$A" big-file 8',
        ["--limit-file-size", str(4 << 20)])
limited("D04", "many descriptors", shown("^descriptors 100$"), '"$A" descriptors 100',
        ["--limit-open-files", "50"])
limited("D05", "much processor time", shown("^spun$"), '"$A" spin 1300', ["--limit-cpu", "1"])
limited("D06", "much address space", succeeded, '"$A" reserve 4096',
        ["--limit-address-space", str(1 << 30)])
limited("D07", "a full disk", shown("^written$"), '"$A" many-files 48 1500',
        ["--limit-disk", str(8 << 20)], no_control="it would take as long")
limited("D08", "raise the limit of descriptors", succeeded, '"$A" raise-limit 7',
        ["--limit-open-files", "50"], no_control="it depends on the machine")
attack("D09", "a core dump", shown(r"^limit [^0]"), '"$A" raise-limit 4',
       no_control="no command may dump, with or without a sandbox")
attack("D10", "endless output", lambda case, run: big_output(case, run),
       "head -c 30000000 /dev/zero", no_control="what is kept is bounded without a sandbox, too")
attack("D11", "a command that does not end", lambda case, run: not_ended(case, run),
       "trap '' TERM HUP INT; while :; do sleep 1; done", timeout=1,
       no_control="a timeout ends it without a sandbox, too")


def big_output(case, run):
    return "too much was kept" if len(run.raw) > 8 << 20 or run.result is None else None


def not_ended(case, run):
    ended = run.result is not None and run.result.get("timed_out")
    return None if ended else f"it was not ended: {run.told()}"


def left_behind(case, run):
    left = os.listdir(case.path("tmp"))
    if server_lost(case, run):
        return server_lost(case, run)
    return f"left in the server's TMPDIR: {left}" if left else None


OWN = "without a sandbox there is no private home"
attack("D12", "a private home that is hard to remove: deep and closed", left_behind,
       '"$A" deep-tree "$HOME"; echo', no_control=OWN)
attack("D13", "a private home with closed directories and odd names", left_behind,
       'cd "$HOME"; mkdir -p a/b c; touch a/b/f "x y" -- -rf; ln -s / root; ln -s loop loop;'
       ' mkfifo fifo; chmod 0 a/b a c', no_control=OWN)
attack("D14", "a private home that leads outside when it is removed", outside_changed,
       'cd "$HOME"; ln -s "$OUT" link; mkdir d; ln -s "$OUT/dir" d/link; ln -s "$REAL_HOME" h',
       no_control=OWN)
attack("D15", "a private home that is exchanged for a link", outside_changed,
       'cd /; rm -rf "$HOME"; ln -s "$OUT" "$HOME"; mv "$TMPDIR" "$TMPDIR.2";'
       ' ln -s "$OUT" "$TMPDIR"; ls -la "$HOME"; exit 0', no_control=OWN,
       options=["--private-home", "command"])
attack("D16", "a private home that is exchanged for a link, kept for the server",
       outside_changed,
       'cd /; rm -rf "$HOME"; ln -s "$OUT" "$HOME"; mv "$TMPDIR" "$TMPDIR.2";'
       ' ln -s "$OUT" "$TMPDIR"; exit 0', no_control=OWN, options=["--private-home", "executor"])
attack("D17", "a private home that is made wide open", left_behind,
       'chmod 0 "$HOME"; chmod 0 "$TMPDIR"; exit 0', no_control=OWN,
       options=["--private-home", "command"])

HANG = "nothing looks at these files without a sandbox"


def slow(case, run):
    if server_lost(case, run):
        return server_lost(case, run)
    own = case.took - run.result["execution_time"]  # of the server, besides the command
    return f"it took the server {own:.1f} s" if own > 4 else None


def timed(case):
    start = time.monotonic()
    run = case.finish(case.start(), b"")
    case.took = time.monotonic() - start
    return run


attack("D18", "a fifo where the server looks for changes", slow,
       "mkdir -p .git/hooks .vscode; mkfifo .git/hooks/pre-commit .envrc .git/config"
       " .vscode/tasks.json", run=timed, no_control=HANG)
attack("D19", "a fifo there before the command", slow, "echo", run=timed, no_control=HANG,
       setup=lambda case: (case.directory("ws/.git"), case.directory("ws/.git/hooks"),
                           os.mkfifo(case.path("ws/.envrc")),
                           os.mkfifo(case.path("ws/.git/hooks/x"))))
attack("D20", "/dev/zero where the server looks for changes", slow,
       "mkdir -p .git/hooks; ln -s /dev/zero .envrc; ln -s /dev/zero .git/hooks/x", run=timed,
       no_control=HANG)
attack("D21", "a huge sparse file where the server looks for changes", slow,
       "mkdir -p .git/hooks; truncate -s 1T .git/hooks/x; truncate -s 100G .envrc", run=timed,
       no_control=HANG)
attack("D22", "links in circles where the server looks for changes", slow,
       "ln -s .git .git; ln -s . .vscode; mkdir x; ln -s ../x x/x", run=timed, no_control=HANG)
attack("D23", "very many hooks", slow,
       "mkdir -p .git/hooks; cd .git/hooks; seq 5000 | xargs touch", run=timed, no_control=HANG)
reads("D24", "the secret by what is reported of changes",
      'mkdir -p .git; ln -s "$OUT" .git/hooks; ln -s "$OUT/secret" .envrc', no_control=HANG)

# L: survival --------------------------------------------------------------------------------------


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


def wait_for_hold(case, process):
    end = time.monotonic() + 10
    file = case.path("ws/hold")
    while not os.path.exists(file) or not os.path.getsize(file):
        if time.monotonic() > end or process.poll() is not None:
            break
        time.sleep(0.005)


def kill_server(number):
    """Ends the server in the middle of a command."""
    def run(case):
        process = case.start()
        wait_for_hold(case, process)
        process.send_signal(number)
        return finish_lost(case, process)
    return run


def finish_lost(case, process):
    """A server that was killed told nothing; that the attack began is known by its file."""
    try:
        process.wait(LOST_SERVER)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        try:
            stream.close()
        except BrokenPipeError:
            pass  # it has ended before it read its input
    began = os.path.exists(case.path("ws/hold"))
    run = Run(case, process.returncode, b"", b"")
    run.out = "attack-begins" if began else ""
    return run


def lost(case, run):
    return survived(case, run, LOST_SERVER if case.sandboxed else 0.3)


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


# The protocol: a server that goes on while commands end.


class Client:
    """Speaks the Model Context Protocol to one server."""

    def __init__(self, case):
        case.prepare()
        self.process = case.popen(case.command())
        case.closers.append(self.end)
        self.lines = []
        self.id = 0
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.call("initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                                 "clientInfo": {"name": "attacks", "version": "1"}})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.decode("utf-8", "replace"))

    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def call(self, method, parameters, wait=True):
        self.id += 1
        self.send({"jsonrpc": "2.0", "id": self.id, "method": method, "params": parameters})
        return self.answer(self.id) if wait else self.id

    def answer(self, number):
        end = time.monotonic() + 30
        seen = 0
        while time.monotonic() < end:
            for line in self.lines[seen:]:
                seen += 1
                try:
                    message = json.loads(line)
                except ValueError:
                    continue
                if isinstance(message, dict) and message.get("id") == number:
                    return message
            if self.process.poll() is not None and not self.reader.is_alive():
                break
            time.sleep(0.003)
        return {}

    def tool(self, name, **arguments):
        answer = self.call("tools/call", {"name": name, "arguments": arguments})
        return json.dumps(answer.get("result", answer))

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reader.join(5)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()


def run_of(case, client, text):
    run = Run(case, 0, "".join(client.lines).encode(), b"")
    run.out = text
    run.before = "".join(line for line in client.lines if "forged" in line and "result" not in line)
    return run


def serve(case):
    """One command of a server; another one after it must be answered."""
    client = Client(case)
    text = client.tool("execute_command", command="sh ./attack.sh")
    again = client.tool("execute_command", command="echo still here")
    if "still here" not in again:
        text += " forged: no answer " + again
    return run_of(case, client, text)


def in_flight(how):
    """A server that is asked to end, or to cancel, while a command runs."""
    def run(case):
        client = Client(case)
        number = client.call("tools/call", {"name": "execute_command", "arguments": {
            "command": "sh ./attack.sh"}}, wait=False)
        wait_for_hold(case, client.process)
        if how == "cancel":
            client.send({"jsonrpc": "2.0", "method": "notifications/cancelled",
                         "params": {"requestId": number}})
            client.tool("execute_command", command="echo after")
        elif how == "end":
            client.process.stdin.close()
        else:
            client.process.send_signal(how)
        if how != "cancel":
            client.process.wait(20)
        began = os.path.exists(case.path("ws/hold"))
        return run_of(case, client, "attack-begins" if began else "")
    return run


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


def kill_supervisor(case):
    """From outside: the process between the server and the command is gone."""
    process = case.start()
    wait_for_hold(case, process)
    with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
        children = [int(pid) for pid in file.read().split()]
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    return finish_lost(case, process) if not case.sandboxed else settle(case, process)


def settle(case, process):
    run = case.finish(process, b"")
    run.out += "attack-begins" if os.path.exists(case.path("ws/hold")) else ""
    return run


attack("M01", "chmod outside", lambda case, run: metadata_changed(case),
       'chmod 600 "$OUT/canary"', gap="Landlock has no right for it; another user, or Docker")
attack("M02", "times of a file outside", lambda case, run: metadata_changed(case),
       'touch -d 2001-01-01 "$OUT/canary"',
       gap="Landlock has no right for it; another user, or Docker")
attack("M03", "attributes of a file outside", lambda case, run: metadata_changed(case),
       '"$A" set-attribute "$OUT/canary"',
       gap="Landlock has no right for it; another user, or Docker")
attack("M05", "stat outside", shown(r"^7 canary"), 'stat -c "%s canary" "$OUT/canary"',
       gap="Landlock does not hide that files exist; Docker")
attack("M06", "go to a directory outside", shown("^gone$"), 'cd "$OUT" && echo gone',
       gap="it reads nothing; Docker")
attack("M07", "watch a directory outside", succeeded, '"$A" watch "$OUT"',
       gap="Landlock has no right for it; Docker")
reads("M08", "where links lead outside", 'readlink "$OUT/dir/link"',
      setup=lambda case: os.symlink(case.token, case.path("out/dir/link")),
      gap="Landlock has no right for it; Docker")
attack("M09", "arguments of another process", shown("^cat$"),
       'tr "\\0" "\\n" < "/proc/$VICTIM/cmdline"',
       gap="no secrets in arguments; --pid-namespace", closed_by=["--pid-namespace"])
attack("M11", "priority of another process", victim_limited, '"$A" set-priority "$VICTIM"',
       gap="any process of the same user may do it; --pid-namespace", gap_only="user",
       closed_by=["--pid-namespace"])
if len(os.sched_getaffinity(0)) > 1:
    attack("M12", "processors of another process", victim_limited, '"$A" set-affinity "$VICTIM"',
           gap="any process of the same user may do it; --pid-namespace", gap_only="user",
           closed_by=["--pid-namespace"])
attack("M13", "read limits of another process", succeeded, '"$A" get-limit "$VICTIM"',
       gap="it tells little; --pid-namespace", closed_by=["--pid-namespace"])


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


def terminal(case):
    leader, follower = os.openpty()
    case.closers.append(lambda: (os.close(leader), os.close(follower)))
    os.chown(os.ttyname(follower), case.suite.uid, -1)
    os.write(leader, (case.token + "\n").encode())
    case.terminal = leader
    os.read(leader, 4096)  # the echo of what was typed
    case.variables["TERMINAL"] = os.ttyname(follower)


def terminal_written(case, run):
    ready, _, _ = select.select([case.terminal], [], [], 0)
    return "the user's terminal shows it" if ready else None


reads("R60", "keys typed in the user's terminal", 'timeout 5 head -n 1 < "$TERMINAL"',
      setup=terminal)
attack("W80", "write to the user's terminal", terminal_written, 'echo x > "$TERMINAL"',
       setup=terminal)
reads("M25", "keys typed in the user's terminal, with --terminals",
      'timeout 5 head -n 1 < "$TERMINAL"', setup=terminal, options=["--terminals"],
      gap="a pseudo-terminal is opened by a path beside the user's; leave --terminals off")
reads("P35", "System V shared memory", '"$A" shared-read "$SEGMENT"', setup=share)
reads("P33", "a POSIX message queue", '"$A" queue-read "$QUEUE"', setup=post)
attack("M16", "hooks in the workspace for whoever works there later",
       lambda case, run: "made" if os.path.exists(case.path("ws/.git/hooks/x")) else None,
       "mkdir -p .git/hooks; echo evil > .git/hooks/x; echo evil > .envrc",
       gap="the workspace is the command's; it is told in changed_files")
sends("M17", "docker.sock, with the host's network", '"$A" unix-stream "$SOCKET"',
      network="host", gap="Landlock has no right for it before ABI 9; --network none")
sends("M18", "docker.sock, with --unix-sockets", '"$A" unix-stream "$SOCKET"',
      options=["--unix-sockets"], gap="it is what the option asks for; leave it out")
attack("M19", "a secret in another notation",
       lambda case, run: leaked_encoded(case, run), 'printf %s "$ATTACK_SECRET" | base64 -w 0',
       options=["--secret-env", "ATTACK_SECRET"], control_options=["--keep-env", "ATTACK_SECRET"],
       gap="only the value itself is masked; do not give secrets to commands")
attack("M20", "a program with the set-user-ID bit in the workspace",
       lambda case, run: "made" if os.path.exists(case.path("ws/tool")) and
       os.stat(case.path("ws/tool")).st_mode & stat.S_ISUID else None,
       'cp "$A" tool; chmod u+s tool',
       gap="the workspace is the command's; do not run the server as root")
attack("M21", "many files", shown("^1000$"), "seq 1000 | xargs touch; ls | grep -c '^[0-9]'",
       gap="--limit-disk counts bytes; a file system of its own")
limited("M24", "the memory of many processes", shown("^filled 8$"), '"$A" memory-of-many 8 30',
        ["--limit-memory", str(100 << 20)], gap_varies=True,
        gap="without a cgroup the limit holds for each process; --limit-processes, too")
attack("M22", "the supervisor is killed from outside: daemons live on",
       lambda case, run: survived(case, run, 1.0), '"$A" bare-daemon "$HOLD"; sleep 100',
       run=kill_supervisor, no_control="without a sandbox there is none",
       gap="nobody inside can do it; --pid-namespace", closed_by=["--pid-namespace"])
attack("M23", "the host's connections are listed", shown(r"local_address"),
       "cat /proc/net/tcp", gap="it shows addresses; --network loopback")


def metadata_changed(case):
    status = os.stat(case.path("out/canary"))
    attributes = os.listxattr(case.path("out/canary"))
    if status.st_mode & 0o777 != 0o644 or status.st_mtime < 1e9 or "user.attack" in attributes:
        return "mode, times or attributes changed"
    return None


def leaked_encoded(case, run):
    import base64
    return "it is there in base64" if base64.b64encode(case.token.encode()).decode() in run.out \
        else None


# A: what must work: a sandbox that refuses everything would pass all of the above -----------------

attack("A01", "write in the workspace", shown("^hello$"), "echo hello > f; cat f", allowed=True)
attack("A02", "read where may be read", shown("^canary$"), 'cat "$RO/canary"', allowed=True)
attack("A03", "read the system", shown("^root:"), "cat /etc/passwd; ls /usr/bin > /dev/null",
       allowed=True)
attack("A04", "a private home and TMPDIR", shown("^private$"),
       'echo private > "$HOME/f" && cat "$HOME/f" && t=$(mktemp) && echo x > "$t"', allowed=True)
attack("A05", "pairs of sockets", succeeded, '"$A" pair', allowed=True)
attack("A06", "pipes, processes and signals of one's own", shown("^143$"),
       'echo x | cat | cat > /dev/null; sleep 50 & kill $!; wait $!; echo $?', allowed=True)
attack("A07", "move between directories of the workspace", shown("^x$"),
       "mkdir a b; echo x > a/f; mv a/f b/g; ln b/g a/h; cat a/h", allowed=True)
attack("A08", "run a program in memory", shown("^canary$"),
       '"$A" memory-program reopen-read "$RO/canary"', allowed=True)
attack("A09", "run a program of the workspace", shown("^canary$"),
       'cp "$A" tool; ./tool reopen-read "$RO/canary"', allowed=True)
sends("A10", "the network of the host when it is asked for", '"$A" tcp "$TCP"', network="host",
      allowed=True)
attack("A11", "a loopback of one's own", succeeded, '"$A" own-loopback', network="loopback",
       allowed=True)
attack("A12", "setsid and timeout", shown("^in time$"), "timeout 5 setsid -w echo in time",
       allowed=True)
attack("A13", "chmod, times and attributes in the workspace", shown("^600 978307200$"),
       'echo x > f; chmod 600 f; TZ=UTC touch -d 2001-01-01 f; stat -c "%a %Y" f', allowed=True)
attack("A14", "a terminal", shown("^tty$"),
       "script -qec 'test -t 0 && echo tty' /dev/null < /dev/null | tr -d '\\r'",
       options=["--terminals"], allowed=True, no_control="there may be no script(1)")

# the suite ----------------------------------------------------------------------------------------


class Suite:
    def __init__(self, options):
        self.mode = options.sandbox
        self.verbose = options.verbose
        self.counts = dict.fromkeys(("blocked", "allowed by design", "gaps",
                                     "gaps closed by an option", "controls not applicable",
                                     "failed", "skipped"), 0)
        self.lock = threading.Lock()
        self.uid = 0 if options.who == "root" else OTHER_UID if os.getuid() == 0 else os.getuid()
        self.gid = os.getgid() if self.uid == os.getuid() else OTHER_UID
        self.base = tempfile.mkdtemp(prefix="cx-", dir="/tmp")
        os.chmod(self.base, 0o755)
        self.tools = os.path.join(self.base, "tools")
        os.mkdir(self.tools)
        self.mcp = shutil.copy(options.mcp, os.path.join(self.tools, "codeexec-mcp"))
        self.attack_program = shutil.copy(options.attack, os.path.join(self.tools, "attack"))
        help_text = subprocess.run([self.mcp, "--help"], stdout=subprocess.PIPE, check=True).stdout
        self.has_sandbox = b"--sandbox " in help_text
        self.limited = confined()

    def identity(self):
        if self.uid == os.getuid():
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def say(self, kind, text):
        with self.lock:
            if kind == "FAILED":
                self.counts["failed"] += 1
            elif kind == "SKIPPED":
                self.counts["skipped"] += 1
            print(f"{kind}: {text}", flush=True)

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def report(self, *options):
        """Whether the sandbox can be had with these, and what it says."""
        command = [self.mcp, "--allowed-paths", self.tools, "--sandbox", "strict", *options]
        run = subprocess.run(command + ["--sandbox-report"], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, cwd=self.tools, env={"PATH": SYSTEM_PATH,
                             "HOME": "/", "TMPDIR": "/tmp"}, check=False, **self.identity())
        return run.returncode == 0, run.stdout.decode("utf-8", "replace").strip()[:300]

    def why_no_control(self, one):
        root = self.uid == 0
        return one.no_control or (one.no_control_root if root else one.no_control_user)

    def one(self, one):
        start = time.monotonic()
        try:
            self.try_one(one)
            if self.verbose:
                print(f"time: {time.monotonic() - start:.2f} s for {one.name}")
        except Exception as error:  # one attack that breaks must not hide the others
            self.say("FAILED", f"{one.name} {one.title}: {type(error).__name__}: {error}")

    def attempt(self, one, label, sandboxed):
        case = Case(self, one, label, sandboxed)
        try:
            run = case.run()
            why = one.judge(case, run)
            if survived(case, run, 0):
                let_go(case)
            return run, why
        finally:
            case.close()

    def try_one(self, one):
        if one.only and one.only != ("root" if self.uid == 0 else "user"):
            return
        note = self.why_no_control(one)
        if not note:
            run, why = self.attempt(one, "control", False)
            if not why:
                note = self.excuse(run)
                if not note:
                    self.say("FAILED", f"{one.name} {one.title}: its control did not succeed:"
                             f" {run.told()}")
                    return
        if self.mode == "none":
            return
        if "--pid-namespace" in one.options and not self.pid_namespace[0]:
            self.say("SKIPPED", f"{one.name} {one.title}: {self.pid_namespace[1]}")
            return
        if one.network == "loopback" and not self.loopback[0]:
            self.say("SKIPPED", f"{one.name} {one.title}: {self.loopback[1]}")
            return
        run, why = self.attempt(one, "held", True)
        text = f"{one.name} {one.title}"
        if note:
            self.count("controls not applicable")
        remark = f" (control '-': {note})" if note else ""
        if run.status == 2 and run.result is None and one.may_refuse and not why:
            self.count("blocked")
            self.say("ok", f"{text}: the server does not start: {run.err.strip()[:200]}{remark}")
        elif not run.began() and not why:
            self.say("FAILED", f"{text}: it did not run: {run.told()}")
        elif one.gap and one.gap_only in (None, "root" if self.uid == 0 else "user"):
            self.gap(one, text, why, run)
        elif one.allowed and why:
            self.count("allowed by design")
            self.say("ok", f"{text}: allowed{remark}")
        elif one.allowed:
            self.say("FAILED", f"{text}: it must work: {run.told()}")
        elif why:
            self.say("FAILED", f"{text}: got through: {why}"
                     + (f"; {run.told()}" if self.verbose else ""))
        else:
            self.count("blocked")
            self.say("ok", f"{text}: blocked{remark}")

    def gap(self, one, text, why, run):
        if not why and one.gap_varies:
            self.count("blocked")
            self.say("ok", f"{text}: blocked on this machine")
            return
        if not why:
            self.say("FAILED", f"gap {text}: it is closed now, so the list of gaps is wrong:"
                     f" {run.told()}")
            return
        self.count("gaps")
        self.say("ok", f"gap {text}: {one.gap}")
        if not one.closed_by:
            return
        if not self.pid_namespace[0]:
            self.say("SKIPPED", f"{text} with {one.closed_by[0]}: {self.pid_namespace[1]}")
            return
        closed = Attack(one.name, one.title, one.judge, one.script, network=one.network,
                        options=one.options + one.closed_by, setup=one.setup, run=one.run)
        run, why = self.attempt(closed, "closed", True)
        if why or not run.began():
            self.say("FAILED", f"{text}: not closed by {' '.join(one.closed_by)}:"
                     f" {why or 'it did not run'}; {run.told()}")
        else:
            self.count("gaps closed by an option")
            self.say("ok", f"{text}: closed by {' '.join(one.closed_by)}")

    def excuse(self, run):
        """Why a control that did not succeed says nothing about the attack."""
        found = re.search(r"unavailable: (.*)", run.out)
        if found:
            return "not on this machine: " + found.group(1)
        errors = {error for _, error in run.probes()} - {0}
        if errors and errors <= LACKING:
            return "not in this kernel: " + ", ".join(errno.errorcode[error] for error in errors)
        if errors and errors <= REFUSED | LACKING and self.limited:
            return "refused here anyway: " + self.limited
        return None

    def run(self, attacks, jobs):
        if self.mode == "strict":
            there, why = self.report("--network", "none")
            if not there:
                print(f"SKIPPED: no sandbox to attack: {why}")
                return 77
        self.loopback = self.report("--network", "loopback")
        self.pid_namespace = self.report("--pid-namespace")
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(self.one, attacks))
        counts = ", ".join(f"{number} {name}" for name, number in self.counts.items())
        who = "root" if self.uid == 0 else f"user {self.uid}"
        print(f"attacks as {who}: {counts}")
        return 1 if self.counts["failed"] else 0

    def close(self):
        subprocess.run(["chmod", "-R", "u+rwX", self.base], stderr=subprocess.DEVNULL, check=False)
        subprocess.run(["rm", "-rf", self.base], check=False)


def confined():
    """Whether something outside of us holds this program already, like a container."""
    with open("/proc/self/status", encoding="ascii") as file:
        status = dict(line.split(":\t", 1) for line in file if ":\t" in line)
    if status.get("Seccomp", "0").strip() != "0":
        return "a system call filter is in force"
    if os.getuid() == 0 and not int(status["CapEff"], 16) >> 21 & 1:
        return "no CAP_SYS_ADMIN"
    if os.getuid() != 0:
        return "the rights of this user differ from machine to machine"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mcp", required=True, help="the server")
    parser.add_argument("--attack", required=True, help="the helper program")
    parser.add_argument("--as", dest="who", choices=("root", "user"), default="user")
    parser.add_argument("--sandbox", default="strict",
                        help="strict, best-effort or off; none: only the controls")
    parser.add_argument("--only", default="", help="attacks whose name matches this pattern")
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    if not sys.platform.startswith("linux"):
        print("SKIPPED: the sandbox is for Linux")
        return 77
    if options.who == "root" and os.getuid() != 0:
        print("SKIPPED: not started as root")
        return 77
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    suite = Suite(options)
    try:
        return suite.run([one for one in ATTACKS if re.match(options.only, one.name)],
                         options.jobs)
    finally:
        suite.close()


if __name__ == "__main__":
    sys.exit(main())
