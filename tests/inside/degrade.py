"""The sandbox on a kernel that refuses some of what it needs.

usage: degrade.py --program CODEEXEC_MCP --deny CODEEXEC_TEST_DENY [--as root|user] [check...]

codeexec-test-deny makes system calls fail. Then `strict` must refuse before anything runs, and
`best_effort` must run and tell what is missing. What a report calls enforced is tried: an attempt
that succeeds all the same is a failure here. That the attempts can succeed is shown without a
sandbox, first.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys

sys.dont_write_bytecode = True
from support import Client, NAMESPACES, PATIENCE, main, wait_until

ERRORS = ("ENOSYS", "EPERM", "EOPNOTSUPP")
NO_NAMESPACES = "namespaces=EPERM"
# As AppArmor does on Ubuntu: a namespace is made, and nothing can be set up in it.
CRIPPLED = "mount=EACCES,ioctl=EPERM"
NO_USER_NAMESPACE = "unshare&0x10000000=EPERM,clone3=ENOSYS,clone&0x10000000=EPERM"

# What is denied, the options, and the features that must be missing then. None: whether it can do
# without is its own affair; what it says must be true. A limit that cannot be had is refused in
# both modes.
DENIALS = [
    *[(f"{call}={error}", (), {"filesystem"})
      for call in ("landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self")
      for error in ERRORS],
    ("landlock_abi=1", (), {"rename", "signals"}),
    ("landlock_abi=2", (), {"signals"}),
    ("landlock_abi=5", (), {"signals"}),
    ("landlock_abi=6", (), set()),
    ("seccomp=EPERM,prctl:22=EPERM", (), {"system_calls", "network"}),
    ("seccomp=ENOSYS,prctl:22=EINVAL", (), {"system_calls", "network"}),
    ("seccomp=EPERM", (), None),
    ("prctl:38=EPERM", (), {"privileges"}),
    ("landlock_create_ruleset=ENOSYS,seccomp=EPERM,prctl:22=EPERM", (),
     {"filesystem", "system_calls", "network"}),
    ("clone3=ENOSYS", (), set()),
    ("close_range=ENOSYS", (), set()),
    ("openat2=ENOSYS", (), None),
    ("pidfd_open=ENOSYS", (), None),
    ("capset=EPERM", (), None),
    ("setsid=EPERM", (), None),
    ("prlimit64=EPERM,setrlimit=EPERM", ("--limit-open-files", "50"), "refused"),
    ("prlimit64=EPERM,setrlimit=EPERM", (), None),
    (NO_NAMESPACES, (), set()),
    (NO_NAMESPACES, ("--pid-namespace",), {"pid_namespace"}),
    (NO_NAMESPACES, ("--network", "loopback"), {"network"}),
    ("mount=EPERM", ("--pid-namespace",), None),
    (NO_NAMESPACES, ("--network", "host"), set()),
    ("namespaces=ENOSPC", (), set()),
    ("namespaces=ENOSPC", ("--pid-namespace",), {"pid_namespace"}),
    (CRIPPLED, (), set()),
    (CRIPPLED, ("--pid-namespace",), {"pid_namespace"}),
    (CRIPPLED, ("--network", "loopback"), {"network"}),
    (NO_USER_NAMESPACE, ("--pid-namespace",), "user: pid_namespace"),
    (NO_USER_NAMESPACE, ("--network", "loopback"), "user: network"),
]

# Tries what each feature forbids, and prints {feature: "held" or what went through}.
ATTEMPTS = r'''
python3 - <<'EOF'
import ctypes, errno, json, os, signal, socket
outside, victim, name, port, queues = PLACES
libc = ctypes.CDLL(None, use_errno=True)
held = {}
def attempt(feature, what, action):
    held.setdefault(feature, "held")
    try:
        action()
    except OSError:
        return
    held[feature] = what
def must_fail(status):
    if status < 0:
        raise OSError(ctypes.get_errno(), "refused")
def connect(family, address):
    with socket.socket(family) as one:
        one.settimeout(5)
        one.connect(address)
attempt("filesystem", "wrote outside", lambda: open(outside + "/written", "a").close())
attempt("filesystem", "read outside", lambda: open(outside + "/secret").read())
attempt("filesystem", "removed outside", lambda: os.unlink(outside + "/removed"))
attempt("filesystem", "made a directory outside", lambda: os.mkdir(outside + "/made"))
attempt("truncate", "truncate", lambda: os.truncate(outside + "/emptied", 1))
attempt("truncate", "O_TRUNC", lambda: os.open(outside + "/emptied", os.O_RDONLY | os.O_TRUNC))
attempt("signals", "signalled", lambda: os.kill(victim, signal.SIGTERM))
attempt("abstract_sockets", "connected", lambda: connect(socket.AF_UNIX, "\0" + name))
attempt("system_calls", "process_vm_readv",
        lambda: must_fail(libc.process_vm_readv(os.getpid(), None, 0, None, 0, 0)))
if os.readlink("/proc/self/ns/ipc") == queues:  # else it has its own queues
    def make_queue():
        queue = libc.msgget(0, 0o600)
        must_fail(queue)
        libc.msgctl(queue, 0, None)
    attempt("system_calls", "msgget", make_queue)
attempt("network", "a TCP socket", lambda: connect(socket.AF_INET, ("127.0.0.1", port)))
status = dict(line.split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)
held["privileges"] = "held"
if int(status["CapEff"], 16) | int(status["CapPrm"], 16) | int(status["CapInh"], 16):
    held["privileges"] = "has capabilities"
elif status["NoNewPrivs"].strip() != "1":
    held["privileges"] = "may get new privileges"
attempt("devices", "made a device", lambda: os.mknod("device", 0o20600, os.makedev(1, 3)))
held["pid_namespace"] = "sees others" if os.path.exists(f"/proc/{victim}") else "held"
open_files = []
def open_many():
    for _ in range(100):
        open_files.append(os.dup(0))
attempt("open_files", "opened 100 files", open_many)
for one in open_files:
    os.close(one)
held["descriptors"] = "held" if not os.path.exists("/proc/self/fd/77") else "inherited 77"
os.mkdir("one"), os.mkdir("two"), open("one/f", "w").close()
try:
    os.rename("one/f", "two/f")
    held["rename"] = "held"
except OSError as error:
    held["rename"] = str(error)
print(json.dumps(held))
EOF
'''


class Outside:
    """What commands must not reach: files, a process, an abstract and a TCP socket of the host."""

    def __init__(self, runner):
        self.place = runner.directory(f"outside{runner.count}")
        runner.count += 1
        for name in ("secret", "removed", "emptied"):
            path = f"{self.place}/{name}"
            with open(path, "w", encoding="ascii") as file:
                file.write("as it was\n")
            if runner.as_user:
                os.chown(path, os.stat(self.place).st_uid, -1)
        self.victim = subprocess.Popen(
            runner.become(["sleep", "600"]), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        self.name = os.path.basename(self.place) + f".{os.getpid()}"
        self.abstract = socket.socket(socket.AF_UNIX)
        self.abstract.bind("\0" + self.name)
        self.abstract.listen()
        self.server = socket.create_server(("127.0.0.1", 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.victim.kill()
        self.victim.wait()
        self.abstract.close()
        self.server.close()
        shutil.rmtree(self.place)

    def attempts(self):
        places = (self.place, self.victim.pid, self.name, self.server.getsockname()[1],
                  os.readlink("/proc/self/ns/ipc"))
        return ATTEMPTS.replace("PLACES", repr(places))

    def changed(self):
        """What of the files is not as it was."""
        for name in ("secret", "removed", "emptied"):
            try:
                with open(f"{self.place}/{name}", encoding="ascii") as file:
                    if file.read() != "as it was\n":
                        return name + " was changed"
            except FileNotFoundError:
                return name + " was removed"
        return next((name + " was made" for name in ("written", "made")
                     if os.path.exists(f"{self.place}/{name}")), None)


def call(runner, denial, words, workspace):
    """Runs the program under codeexec-test-deny, with a descriptor that is not to be inherited."""
    command = [runner.program, "--timeout", str(PATIENCE)]
    if "--allowed-paths" not in words:
        command += ["--allowed-paths", workspace]
    if "--workspace" not in words:
        command += ["--workspace", workspace]
    if "--network" not in words and "off" not in words:
        command += ["--network", "none"]
    command += words
    if denial:
        command = [runner.deny, denial, "--"] + command
    # Open in the program, so that a command could inherit it.
    reader = os.open("/dev/null", os.O_RDONLY)
    leaked = 77
    os.dup2(reader, leaked)
    os.close(reader)
    try:
        return subprocess.run(
            runner.become(command), check=False, env=runner.environment, cwd="/",
            pass_fds=(leaked,), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, errors="replace", timeout=PATIENCE + 60)
    finally:
        os.close(leaked)


def tell(runner, name, problem, answer):
    runner.report(name, problem, answer and {
        "outcome": f"status {answer.returncode}", "stdout": answer.stdout,
        "stderr": answer.stderr})


def parsed(text):
    try:
        value = json.loads(text)
        return value if isinstance(value, dict) else {}
    except ValueError:
        return {}


def names(entries):
    return {entry.partition(":")[0] for entry in entries}


def refusal_problem(answer, marker, expected):
    """What is wrong with a start that strict mode should have refused."""
    if os.path.exists(marker):
        return "the command ran"
    if answer.returncode != 2:
        return f"the exit status is {answer.returncode}, not 2"
    if answer.stdout or answer.stderr.count("\n") != 1:
        return "it should say why in one line on stderr"
    silent = [name for name in expected if name not in answer.stderr]
    return f"the line does not name {silent[0]}" if silent else None


def check_strict(runner, name, denial, options, expected):
    workspace = runner.workspace()
    marker = workspace + "/marker"
    words = ["--sandbox", "strict", *options, "--run", "echo x > marker"]
    answer = call(runner, denial, words, workspace)
    if expected:
        problem = refusal_problem(answer, marker, expected)
    elif expected is None and answer.returncode == 2:
        problem = refusal_problem(answer, marker, ())
    else:
        problem = None if os.path.exists(marker) else "it can do without, and should run"
    tell(runner, f"{name}: strict", problem, answer)
    if not problem and os.path.exists(marker):
        check_attempts(runner, f"{name}: strict holds", denial,
                       ["--sandbox", "strict", *options], set())
    shutil.rmtree(workspace)


def check_attempts(runner, name, denial, words, expected):
    """The report must have `expected` missing, and what it calls enforced must hold."""
    workspace = runner.workspace()
    answer = call(runner, denial, [*words, "--sandbox-report"], workspace)
    report = parsed(answer.stdout)
    enforced, missing = report.get("enforced", []), report.get("missing", [])
    problem = None
    if answer.returncode != (1 if missing else 0) or not enforced:
        problem = "no report, or its exit status is wrong"
    elif names(enforced) & names(missing):
        problem = f"both enforced and missing: {names(enforced) & names(missing)}"
    elif expected is not None and not expected <= names(missing):
        problem = f"it should have missing {expected - names(missing)}"
    elif expected == set() and missing:
        problem = f"nothing should be missing, but {missing}"
    elif any(not entry.partition(": ")[2] for entry in missing):
        problem = "a missing one without a reason"
    tell(runner, name + ": report", problem, answer)
    if problem:
        return
    with Outside(runner) as outside:
        answer = call(runner, denial, [*words, "--run", outside.attempts()], workspace)
        result = parsed(answer.stdout)
        held = parsed(result.get("stdout", ""))
        changed = outside.changed()
    said = result.get("sandbox", {})
    broken = {feature: held[feature] for feature in enforced
              if held.get(feature, "held") != "held"
              and not (feature == "network" and said.get("network") == "host")}
    if not held or not result.get("success"):
        problem = "the attempts did not run"
    elif sorted(said.get("missing", [])) != sorted(missing):
        problem = f"the result says that {said.get('missing')} is missing"
    elif broken:
        problem = f"enforced, but: {broken}"
    elif "filesystem" in enforced and "truncate" in enforced and changed:
        problem = changed
    elif held.get("descriptors") != "held":
        problem = held["descriptors"]
    elif said.get("network") != "host" and held.get("network") != "held":
        problem = f"network {said.get('network')}, but {held['network']}"
    tell(runner, name, problem, answer)
    shutil.rmtree(workspace)


def check_refusals(runner, name, denial, options):
    for mode in ("strict", "best-effort"):
        workspace = runner.workspace()
        words = ["--sandbox", mode, *options, "--run", "echo x > marker"]
        answer = call(runner, denial, words, workspace)
        problem = refusal_problem(answer, workspace + "/marker", ("limit",))
        tell(runner, f"{name}: {mode}", problem, answer)
        shutil.rmtree(workspace)


def cannot_try(runner, name, denial, options):
    """Says so when the options need namespaces and this user cannot make any."""
    wanted = "--pid-namespace" in options or "loopback" in options
    if not wanted or denial == NO_NAMESPACES or not runner.missing([NAMESPACES]):
        return False
    runner.skip(name, "this user cannot make namespaces")
    return True


def check_denials(runner):
    for denial, options, expected in DENIALS:
        name = " ".join((denial, *options))
        if cannot_try(runner, name, denial, options):
            continue
        if expected == "refused":
            check_refusals(runner, name, denial, options)
            continue
        if isinstance(expected, str):
            who, _, feature = expected.partition(": ")
            uid = 1 if runner.as_user else os.getuid()
            expected = {feature} if who == "user" and uid != 0 else set()
        check_strict(runner, name, denial, options, expected)
        words = ["--sandbox", "best-effort", *options]
        check_attempts(runner, name + ": best effort", denial, words, expected)


def check_controls(runner):
    """Without a sandbox the attempts go through, so that "held" means something."""
    workspace = runner.workspace()
    with Outside(runner) as outside:
        answer = call(runner, "", ["--sandbox", "off", "--run", outside.attempts()], workspace)
    held = parsed(parsed(answer.stdout).get("stdout", ""))
    wanted = {"filesystem", "truncate", "signals", "abstract_sockets", "system_calls", "network",
              "privileges", "pid_namespace", "open_files"}
    if not runner.as_user and os.getuid() == 0:
        wanted.add("devices")
    silent = [feature for feature in sorted(wanted) if held.get(feature, "held") == "held"]
    tell(runner, "without a sandbox the attempts succeed",
                f"these do not: {silent}" if silent else None, answer)
    shutil.rmtree(workspace)


def check_nothing_denied(runner):
    for options in ((), ("--network", "host"), ("--pid-namespace",), ("--network", "loopback"),
                    ("--limit-open-files", "50")):
        name = " ".join(("nothing denied", *options))
        if cannot_try(runner, name, "", options):
            continue
        check_strict(runner, name, "", options, set())
        check_attempts(runner, name + ": best effort", "",
                       ["--sandbox", "best-effort", *options], set())


def check_notes(runner):
    """A result names what was asked for and is missing, and nothing else."""
    no_filter = "seccomp=EPERM,prctl:22=EPERM"
    for denial, options, expected in (
            ("", (), None),
            ("landlock_abi=2", (), None),
            (no_filter, (), "network none (it is host)"),
            (NO_NAMESPACES, ("--pid-namespace",), "a process table of its own"),
            (NO_NAMESPACES, ("--protected-paths", ".git/hooks"), "protected paths"),
            (NO_NAMESPACES, ("--network", "loopback"), "network loopback (it is none)")):
        workspace = runner.workspace()
        words = ["--sandbox", "best-effort", *options, "--run", "true"]
        answer = call(runner, denial, words, workspace)
        notes = parsed(answer.stdout).get("notes", [])
        wanted = [f"the operator asked for what is not in force here: {expected}"]
        problem = None if notes == (wanted if expected else []) else f"the notes are {notes}"
        tell(runner, " ".join(filter(None, ("notes", denial, *options))), problem, answer)
        shutil.rmtree(workspace)


def check_named_switches(runner):
    """The reason names the setting of the kernel that keeps namespaces from commands."""
    if runner.missing(["unshare -Urm true"]):
        runner.skip("named switches", "this user cannot make namespaces")
        return
    for file, value, wanted in (
            ("user/max_user_namespaces", "0", "user.max_user_namespaces is 0"),
            ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone is 0"),
            ("kernel/apparmor_restrict_unprivileged_userns", "1", "AppArmor keeps them from")):
        workspace = runner.workspace()
        setting = "/proc/sys/" + file
        folder = os.path.dirname(setting)
        script = (f"mount -t tmpfs none {folder} && echo {value} > {setting} && "
                  'exec unshare -U --map-user=1000 "$@"')
        program = [runner.deny, "mount=EACCES,namespaces=EACCES", "--", runner.program,
                   "--allowed-paths", workspace, "--workspace", workspace, "--pid-namespace",
                   "--doctor"]
        answer = subprocess.run(
            runner.become(["unshare", "-Urm", "sh", "-c", script, "sh", *program]), check=False,
            env=runner.environment, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        lines = [line for line in answer.stdout.splitlines()
                 if line.startswith("warn namespaces: ")]
        good = len(lines) == 1 and wanted in lines[0] and "holds without" in lines[0]
        tell(runner, "named switch: " + file, None if good else "it is not named", answer)
        shutil.rmtree(workspace)


def check_default(runner):
    """With allowed paths and no --sandbox: best effort, which a poor kernel does not stop."""
    workspace = runner.workspace()
    answer = call(runner, "landlock_create_ruleset=ENOSYS", ["--run", "echo ran"], workspace)
    result = parsed(answer.stdout)
    told = result.get("sandbox", {})
    good = (result.get("stdout") == "ran\n" and told.get("mode") == "best_effort"
            and "filesystem" in names(told.get("missing", []))
            and any("not in force here: allowed paths" in note for note in result.get("notes", [])))
    tell(runner, "the default is best effort", None if good else "it is not", answer)


# Containment --------------------------------------------------------------------------------------


def alive(mark):
    """The processes whose words have the mark."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if mark.encode() in file.read().split(b"\0"):
                    found.append(int(pid))
    return found


def check_killed_host(runner):
    """What a command started in the background dies with the program, even by SIGKILL."""
    for denial in ("", "pidfd_open=ENOSYS", "landlock_create_ruleset=ENOSYS"):
        for options in ((), ("--pid-namespace",)):
            name = " ".join(filter(None, ("SIGKILL of the program", denial, *options)))
            if cannot_try(runner, name, denial, options):
                continue
            mark = f"600.1{os.getpid()}{runner.count:03}"
            workspace = runner.workspace()
            script = f"(setsid sleep {mark} > /dev/null 2>&1 < /dev/null &); sleep {mark}"
            command = [runner.program, "--allowed-paths", workspace, "--workspace", workspace,
                       "--sandbox", "best-effort", *options, "--run", script]
            if denial:
                command = [runner.deny, denial, "--"] + command
            process = subprocess.Popen(
                runner.become(command), env=runner.environment, cwd="/",
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            started = wait_until(lambda: len(alive(mark)) == 2 or process.poll() is not None)
            process.kill()
            process.wait()
            gone = wait_until(lambda: not alive(mark))
            for pid in alive(mark):
                os.kill(pid, signal.SIGKILL)
            problem = None
            if not started or process.returncode != -signal.SIGKILL:
                problem = "the command did not start"
            elif not gone:
                problem = "it lives on"
            runner.report(name, problem)
            shutil.rmtree(workspace)


# Grants -------------------------------------------------------------------------------------------


def check_bad_grants(runner):
    """Grants that cannot be given, or must not be."""
    workspace = runner.workspace()
    marker = workspace + "/marker"
    missing = runner.base + "/not-there"
    for name, words, why in (
            ("a path that is not there", ["--read-only", missing], missing),
            ("the whole system", ["--allowed-paths", "/"], "/"),
            ("the whole system, spelled otherwise", ["--allowed-paths", "/usr/.."], "/")):
        words = ["--sandbox", "strict", *words, "--run", "echo x > marker"]
        answer = call(runner, "", words, workspace)
        problem = refusal_problem(answer, marker, (why,))
        tell(runner, f"grant: {name}: strict", problem, answer)
    answer = call(runner, "", ["--sandbox", "best-effort", "--allowed-paths", "/", "--run",
                              "echo x > marker"], workspace)
    tell(runner, "grant: the whole system: best effort", refusal_problem(answer, marker, ("/",)),
                answer)
    shutil.rmtree(workspace)


def check_swapped_between_runs(runner):
    """A run makes a link of what the next one is granted."""
    for mode in ("strict", "best-effort"):
        workspace = runner.workspace()
        granted = workspace + "/granted"
        with Outside(runner) as outside:
            words = ["--sandbox", mode]
            swap = f"mkdir away && ln -s {outside.place} granted && echo swapped"
            first = call(runner, "", [*words, "--run", swap], workspace)
            harm = f"echo x >> {outside.place}/secret; rm {outside.place}/removed; ls {granted}"
            words = [*words, "--allowed-paths", granted, "--workspace", granted, "--run", harm]
            second = call(runner, "", words, workspace)
            problem = outside.changed()
        if "swapped" not in first.stdout:
            problem = "it could not be swapped"
        elif not problem and "secret" in parsed(second.stdout).get("stdout", ""):
            problem = "it could be listed"
        elif not problem and mode == "strict" and second.returncode != 2:
            problem = "strict should refuse a grant that became a link"
        tell(runner, f"grant: swapped between two runs: {mode}", problem, second)
        shutil.rmtree(workspace)


def check_swapped_between_commands(runner):
    """A command of a server makes a link of what the server was granted at its start."""
    workspace = runner.workspace()
    granted = workspace + "/granted"
    os.mkdir(granted)
    if runner.as_user:
        os.chown(granted, os.stat(workspace).st_uid, -1)
    with Outside(runner) as outside:
        options = ["--allowed-paths", workspace, granted, "--workspace", workspace,
                   "--sandbox", "strict", "--network", "none"]
        with Client(runner, options) as client:
            first = client.run(command=f"mv granted away && ln -s {outside.place} granted")
            harm = "echo x >> secret; rm -f removed; : > emptied; cat secret"
            results = [client.run(command=f"cd {granted}; {harm}"),
                       client.run(command=harm, work_dir="granted"),
                       client.run(command=harm, work_dir=granted)]
        problem = outside.changed()
    if not first.get("success"):
        problem = "it could not be swapped"
    for result in results:
        if not problem and "as it was" in result.get("stdout", ""):
            problem = "it could be read"
    runner.report("grant: swapped between two commands of a server", problem,
                  {"stdout": repr([first, *results])})
    shutil.rmtree(workspace)


CHECKS = (check_controls, check_nothing_denied, check_denials, check_notes,
          check_named_switches, check_default, check_killed_host,
          check_bad_grants, check_swapped_between_runs, check_swapped_between_commands)


def work(runner):
    for check in CHECKS:
        if not runner.options.names or check.__name__ in runner.options.names:
            check(runner)


if __name__ == "__main__":
    # What lies below /tmp and is not granted does not exist for commands that have a /tmp of their
    # own, and what is granted there cannot be moved away.
    sys.exit(main("inside.degrade-", sys.argv[1:], work, place="/var/tmp"))
