"""What an attack is, and what a run of it has: directories, victims, listeners, the server."""

import errno
import json
import os
import re
import secrets
import shlex
import socket
import stat
import subprocess
import time

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
CLOCK_OF_FILES = 5  # CLOCK_REALTIME_COARSE, for which Python has no name
LOST_SERVER = 10.0  # for what must follow a server that was killed

# Why there is no control.
IDLE = "no command gets such a descriptor, with or without a sandbox"
NOT_ROOT = "the kernel refuses an ordinary user"
HIDDEN = "the server's own secrets are closed to its user (PR_SET_DUMPABLE)"

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

    def script_file(self, text):
        """What the attack runs. The server has to take it for a person's, so it is of the past."""
        self.file("ws/attack.sh", text)
        changed = os.stat(self.path("ws/attack.sh")).st_ctime_ns
        while time.clock_gettime_ns(CLOCK_OF_FILES) <= changed:
            pass

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
        self.script_file(self.script())

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


def wait_for_hold(case, process):
    end = time.monotonic() + 10
    file = case.path("ws/hold")
    while not os.path.exists(file) or not os.path.getsize(file):
        if time.monotonic() > end or process.poll() is not None:
            break
        time.sleep(0.005)


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
