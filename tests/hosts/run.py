"""Host programs and surroundings of the worst kind.

usage: run.py --host PROGRAM --plugin LIBRARY --deny PROGRAM [--as root|user] [--show] [name...]

Each situation below is a host (with settings of settings.cpp) in surroundings that a script makes,
which run in namespaces of their own. There it uses the library in every way (WAYS), and it serves
MCP over its standard streams. Seen to: outcome and output of each way, or a refusal that says why,
where the situation says so; the end in time; nothing of a command is alive afterwards; the host's
descriptors, signals, directory, variables and so on are as before; no file is left in TMPDIR.
Prints a line for each situation; with --show all that was seen. Exit status 77 where namespaces
cannot be made.
"""

import argparse
import json
import os
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

USER = 12345
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Longer than anything takes on a busy machine: only what hangs comes up against it.
PATIENCE = 150

WAYS = ("run timeout cancel supervised supervised-timeout script sandbox shell session code files "
        "serve").split()
ANY = r"(ok|refused: .+|told: .+)$"
OK = r"ok$"
REFUSED = r"refused: .+"


class Situation:
    """settings: of the host. script: makes the surroundings, then has "$@" run. expect: what ways
    may tell (a pattern; "" is for all that are not named). namespaces: options of unshare; only
    root can have them. ways: more than WAYS, or fewer. survivors: what escapes cannot be found."""

    def __init__(self, name, settings="none", script='exec "$@"', namespaces="", expect=None,
                 ways=WAYS, only=None, needs="true", survivors=False):
        self.name, self.settings, self.script = name, settings, script
        self.namespaces, self.expect, self.ways = namespaces, expect or {}, ways
        self.only, self.needs, self.survivors = only, needs, survivors

    def expected(self, way):
        return self.expect.get(way, OK if way == "host" else self.expect.get("", OK))


S = Situation
PRIVATE = "-m --propagation private"
# A root directory with the system's programs and nothing else.
BARE_ROOT = '''
mkdir -p $B/root && mount -t tmpfs none $B/root && cd $B/root
for d in usr etc lib lib32 lib64 bin sbin; do
  [ -e /$d ] || continue
  if [ -L /$d ]; then cp -P /$d $d; else mkdir $d && mount --bind /$d $d; fi
done
mkdir -m 1777 tmp && mkdir -p ".$B" && mount --bind $B ".$B"
'''
NO_SANDBOX = {"sandbox": REFUSED}
SUPERVISED = ["supervised", "supervised-timeout", "script", "sandbox", "shell", "session", "code",
              "files", "serve"]
# Without input: /dev/null.
NO_DEV = {"": "refused: .*/dev/null", "run": OK}
MAY_RUN = r"(ok|told: some of its processes may still be running)"
NO_PROC = {"": MAY_RUN, "run": OK, "timeout": MAY_RUN.replace("ok|", ""), "serve": ANY,
           "sandbox": "refused: .*without /proc"}
ADOPTS = {"host": r"(ok|WRONG: a child is left: \d+; )$"}
# A run whose status the host takes away: Linux tells it nevertheless, from 6.15 on.
STATUS_STOLEN = r"(ok|unknown: .+)$"


def kernel():
    numbers = re.findall(r"\d+", os.uname().release)
    return int(numbers[0]), int(numbers[1])


def stolen():
    return {"": OK if kernel() >= (6, 15) else STATUS_STOLEN}


SITUATIONS = [
    S("plain", ways=WAYS + [
        "too-long", "small-stacks", "fork", "fork-after-start", "fork-during-run",
        "few-descriptors"]),
    S("plugin", ways=["plugin"]),
    S("SIGCHLD ignored", "sigchld-ignored", expect=stolen()),
    S("SIGCHLD handler that reaps everything", "sigchld-reaped", expect=stolen()),
    S("the same with SA_RESTART", "sigchld-reaped-restart", expect=stolen()),
    S("SA_NOCLDWAIT", "sigchld-nocldwait", expect=stolen()),
    S("SA_NOCLDSTOP", "sigchld-nocldstop"),
    S("a thread in waitpid(-1)", "waitpid-thief", expect=stolen()),
    S("a thread in waitid(P_ALL)", "waitid-thief", expect=stolen()),
    S("all signals blocked", "signals-blocked"),
    S("all signals ignored", "all-ignored", expect=stolen()),
    S("all signals handled", "all-handled"),
    S("SIGPIPE default", "sigpipe-default"),
    S("SIGPIPE ignored", "sigpipe-ignored"),
    S("SIGPIPE handled", "sigpipe-handled", expect={"serve": ANY}),
    *[S("descriptors " + which + " closed", "closed-" + which, ways=WAYS[:-1])
      for which in ("0", "1", "2", "01", "02", "12", "012")],
    S("alternative signal stack", "alternative-stack"),
    S("SIGALRM storm", "alarm-storm"),
    S("another thread forks and executes", "forker", ways=WAYS + ["forker", "many"]),
    S("another thread forks and keeps", "kept-forks",
      ways=["many", "timeout", "supervised", "script", "shell", "forks"]),
    S("a crowd of idle threads", "idle-crowd", ways=["run", "timeout", "shell"]),
    # What a run without a supervisor leaves becomes the subreaper's, who must mind it.
    S("subreaper", "subreaper", ways=SUPERVISED),
    S("subreaper, no supervisor", "subreaper", ways=["run", "timeout", "cancel"], expect=ADOPTS),
    S("not dumpable", "traced-off"),
    S("no_new_privs", "no-new-privs"),
    S("umask 077", "umask-077"),
    S("umask 0777", "umask-777", expect={
        "files": ANY, "code": r"(ok|WRONG: exited 2 .*Permission)", "sandbox": ANY}),
    S("directory deleted", "directory-deleted"),
    S("directory deleted, no workspace", "directory-deleted", expect={"": ANY}),
    S("directory unreadable", "directory-closed"),
    S("locale with decimal comma", "locale-de_DE.utf8", needs="locale -a | grep -q de_DE.utf8"),
    S("locale ISO-8859-1", "locale-de_DE", needs="locale -a | grep -qx de_DE"),
    S("locale of Turkey", "locale-tr_TR.utf8", needs="locale -a | grep -q tr_TR.utf8"),
    S("no environment", "environment-none"),
    S("no environ", "environment-null"),
    S("environment that is none", "environment-broken"),
    S("100,000 variables", "environment-huge", ways=WAYS + ["keep-all", "cost"],
      expect={"keep-all": "refused: .*Argument list too long"}),
    S("PATH unset", script='unset PATH; exec "$@"'),
    S("PATH empty", script='PATH= exec "$@"'),
    S("PATH with relative members", script='PATH=:.:bin:../x:/usr/bin exec "$@"'),
    S("HOME unset", script='unset HOME; exec "$@"'),
    S("HOME and TMPDIR are nowhere", script='HOME=/nowhere TMPDIR=/nowhere exec "$@"',
      expect={"sandbox": ANY, "serve": ANY}),
    S("argv and environment as large as they can be",
      script='X=$(head -c 131000 /dev/zero | tr "\\0" x); export X; exec "$@"'),
    *[S(f"ulimit -n {n}", script=f'ulimit -n {n}; exec "$@"', expect={"": ANY})
      for n in (10, 16, 32)],
    S("ulimit -n 1048576", script='ulimit -n 1048576; exec "$@"', ways=WAYS + ["cost"],
      only="root"),
    S("RLIMIT_NPROC", script='ulimit -u 1; exec "$@"', only="user", expect={"": ANY}),
    S("RLIMIT_AS 200 MB", script='ulimit -v 200000; exec "$@"', expect={"": ANY}),
    S("RLIMIT_FSIZE", script='ulimit -f 8; exec "$@"', expect={"files": "told: .+"}),
    S("RLIMIT_FSIZE 0", script='ulimit -f 0; exec "$@"', expect={
        "files": "(told|refused): .+", "code": REFUSED, "sandbox": ANY}),
    S("RLIMIT_CORE and DATA", script='ulimit -c 0; ulimit -d 100000; exec "$@"',
      expect={"": ANY}),
    S("RLIMIT_STACK unlimited", script='ulimit -s unlimited; exec "$@"'),
    S("RLIMIT_STACK small", script='ulimit -s 128; exec "$@"'),
    S("RLIMIT_CPU of a minute", script='ulimit -t 60; exec "$@"'),
    S("disk full", namespaces=PRIVATE, script='''
mount -t tmpfs -o size=32k,mode=1777 none $B/ws && mount -t tmpfs -o size=16k,mode=1777 none $B/tmp
for d in ws tmp; do head -c 100000 /dev/zero > $B/$d/full 2>/dev/null; done
exec "$@"''', expect={"files": "told: .+", "code": ANY, "sandbox": ANY, "serve": ANY}),
    S("no inode left", namespaces=PRIVATE, script='''
mount -t tmpfs -o nr_inodes=1,mode=1777 none $B/ws && mount -t tmpfs -o nr_inodes=1,mode=1777 none \
$B/tmp && exec "$@"''', expect={"files": ANY, "code": ANY, "sandbox": ANY, "serve": ANY}),
    S("workspace read-only", namespaces=PRIVATE, script='''
mount --bind $B/ws $B/ws && mount -o remount,bind,ro $B/ws && exec "$@"''',
      expect={"files": ANY, "code": REFUSED, "sandbox": ANY}),
    S("everything read-only", namespaces=PRIVATE, script='''
for d in / /tmp /dev/shm $B; do mount --bind $d $d; mount -o remount,bind,ro $d; done
cd $B/ws && exec "$@"''',
      expect={"files": ANY, "code": ANY, "sandbox": ANY, "serve": ANY}),
    S("no /proc", namespaces=PRIVATE, script='mount -t tmpfs none /proc && exec "$@"',
      expect=NO_PROC, survivors=True),
    S("/proc with hidepid=2", namespaces="-m -p -f --propagation private",
      script='mount -t proc -o hidepid=2 proc /proc && sh -c \'"$@"; exit $?\' sh "$@"'),
    S("no /sys", namespaces=PRIVATE, script='mount -t tmpfs none /sys && exec "$@"'),
    S("no /dev", namespaces=PRIVATE, script='mount -t tmpfs none /dev && exec "$@"',
      expect=NO_DEV),
    S("no /dev but null", namespaces=PRIVATE, script='''
touch $B/null && mount --bind /dev/null $B/null && mount -t tmpfs -o mode=755 none /dev &&
touch /dev/null && mount --bind $B/null /dev/null && exec "$@"'''),
    S("chroot with nothing but programs", namespaces=PRIVATE,
      script=BARE_ROOT + 'exec chroot $B/root "$@"', expect={**NO_DEV, "sandbox": REFUSED},
      survivors=True),
    S("chroot with /proc and /dev", namespaces=PRIVATE, script=BARE_ROOT + '''
mkdir proc dev && mount --bind /proc proc && mount --bind /dev dev && exec chroot $B/root "$@"'''),
    S("process 1 of a namespace", namespaces="-m -p -f --mount-proc", script='exec "$@"',
      ways=SUPERVISED),
    S("process 1, no supervisor", namespaces="-m -p -f --mount-proc", script='exec "$@"',
      ways=["run", "timeout", "cancel"], expect=ADOPTS),
    S("process 1 without /proc", namespaces="-m -p -f --propagation private",
      script='mount -t tmpfs none /proc && exec "$@"', expect={**NO_PROC, **ADOPTS},
      survivors=True),
    S("no network", namespaces="-n", script='exec "$@"'),
    S("a filter that refuses namespaces", script='exec $DENY namespaces=EPERM -- "$@"'),
    S("a filter that refuses seccomp and Landlock", script='''exec $DENY \
landlock_create_ruleset=ENOSYS,seccomp=EPERM,prctl:22=EPERM -- "$@"''', expect=NO_SANDBOX),
    S("a filter without clone3, pidfd_open, close_range",
      script='exec $DENY clone3=ENOSYS,pidfd_open=ENOSYS,close_range=ENOSYS -- "$@"',
      expect={"": ANY}),
    S("a debugger", script='exec strace -f -qq -o $B/tmp/.trace "$@"', needs="command -v strace",
      expect={"": ANY}),
]

# How a host can end while all sorts of commands run; what its status then is.
ENDS = {"segv": -signal.SIGSEGV, "abort": -signal.SIGABRT, "kill": -signal.SIGKILL,
        "term": -signal.SIGTERM, "_exit": 0, "exit": 0, "destroy": 0, "exec": None,
        "thread-exit": None}


class Place:
    """Where the hosts run, and who they are."""

    def __init__(self, options):
        self.options = options
        self.base = os.path.realpath(tempfile.mkdtemp(prefix="codeexec-hosts-", dir="/tmp"))
        os.chmod(self.base, 0o755)
        self.is_root = os.getuid() == 0
        self.user = self.is_root and options.identity == "user"
        self.host = shutil.copy(options.host, self.base + "/host")
        self.plugin = shutil.copy(options.plugin, self.base + "/plugin.so")
        self.deny = shutil.copy(options.deny, self.base + "/deny")
        self.count = 0

    def fresh(self):
        """Empty directories, and numbers of seconds that nobody else sleeps."""
        self.count += 1
        for name in ("ws", "tmp", "home"):
            path = f"{self.base}/{name}"
            for entry in os.scandir(path) if os.path.isdir(path) else ():
                if entry.is_dir(follow_symlinks=False):
                    os.chmod(entry.path, 0o700)  # one that is closed cannot be removed
            shutil.rmtree(path, ignore_errors=True)
            os.mkdir(path, 0o700)
            if self.user:
                os.chown(path, USER, USER)
        return f"7{os.getpid()}{self.count:04}"

    def words(self, situation, words):
        """A command line that makes the surroundings and becomes the host in them."""
        if self.user:
            # The last step, when nothing of root's is needed any more.
            words = ["/usr/bin/setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups",
                     "--"] + words
            if not situation.namespaces:
                # What an ordinary user can do is done by one.
                return words[:5] + ["/bin/sh", "-c", situation.script, "sh"] + words[5:]
        words = ["/bin/sh", "-c", situation.script, "sh"] + words
        if situation.namespaces:
            words = ["/usr/bin/unshare", *situation.namespaces.split(), "--"] + words
        return words

    def environment(self, situation):
        base = self.base
        result = {"PATH": SYSTEM_PATH, "HOME": base + "/home", "TMPDIR": base + "/tmp",
                  "LANG": "C.UTF-8", "B": base, "DENY": self.deny, "HOST": self.host}
        return result


def survivors(mark):
    """Processes with the mark in their arguments: what sleeps, and supervisors of the host's."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = file.read()
            if mark.encode() not in words:
                continue
            with open(f"/proc/{name}/stat", "rb") as file:
                state = file.read().rsplit(b")", 1)[1].split()[0]
        except OSError:
            continue
        if state not in (b"Z", b"X"):
            found.append((int(name), words.replace(b"\0", b" ").decode(errors="replace").strip()))
    return found


def all_dead(mark, patience=20):
    """What is still alive after a while. It is killed."""
    limit = time.monotonic() + patience
    while time.monotonic() < limit:
        if not survivors(mark):
            return []
        time.sleep(0.02)
    left = survivors(mark)
    for pid, _ in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return [words for _, words in left]


class Hung(Exception):
    pass


def run_host(place, situation, mark, ways, end=None):
    """The verdicts of a host, its exit status and what it wrote to its standard error."""
    read_end, write_end = os.pipe()
    workspace = "-" if "no workspace" in situation.name else place.base + "/ws"
    words = [place.host, str(write_end), situation.settings, mark, workspace, *ways]
    process = subprocess.Popen(
        place.words(situation, words), env=place.environment(situation), cwd=place.base + "/ws",
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        pass_fds=[write_end], start_new_session=True)
    os.close(write_end)
    text = b""
    errors = b""
    limit = time.monotonic() + PATIENCE
    open_ends = {read_end, process.stderr.fileno()}
    try:
        while open_ends:
            ready, _, _ = select.select(list(open_ends), [], [], limit - time.monotonic())
            if not ready:
                raise Hung("hangs after: " + text.decode(errors="replace"))
            for descriptor in ready:
                data = os.read(descriptor, 65536)
                if not data:
                    open_ends.discard(descriptor)
                elif descriptor == read_end:
                    text += data
                else:
                    errors += data
            if end and b"started" in text:
                break
        if end not in ("exec", "thread-exit"):
            process.wait(timeout=max(1, limit - time.monotonic()))
    except (subprocess.TimeoutExpired, ValueError) as error:
        end = None
        raise Hung(str(error)) from error
    finally:
        if end not in ("exec", "thread-exit"):
            process.kill()
            process.wait()
        os.close(read_end)
        process.stderr.close()
    verdicts = dict(line.split(": ", 1) for line in text.decode(errors="replace").splitlines()
                    if ": " in line)
    return verdicts, process, errors.decode(errors="replace")


class Conversation:
    """As much of an MCP client as this takes."""

    def __init__(self, process):
        self.process = process
        self.count = 0
        self.buffer = b""

    def call(self, method, parameters):
        self.count += 1
        message = {"jsonrpc": "2.0", "id": self.count, "method": method, "params": parameters}
        os.write(self.process.stdin.fileno(), json.dumps(message).encode() + b"\n")
        limit = time.monotonic() + PATIENCE
        while True:
            while b"\n" not in self.buffer:
                ready, _, _ = select.select([self.process.stdout], [], [],
                                            max(0, limit - time.monotonic()))
                if not ready:
                    raise Hung("the server does not answer " + method)
                data = os.read(self.process.stdout.fileno(), 65536)
                if not data:
                    raise EOFError
                self.buffer += data
            line, self.buffer = self.buffer.split(b"\n", 1)
            answer = json.loads(line)
            if answer.get("id") == self.count:
                return answer.get("result", {})

    def tool(self, name, **arguments):
        answer = self.call("tools/call", {"name": name, "arguments": arguments})
        return answer.get("structuredContent", answer)


def serve(place, situation, mark):
    """The verdict on a host that serves: a command, one that takes too long, one in the
    background; then its input ends."""
    words = [place.host, "2", situation.settings, mark, place.base + "/ws", "serve",
             "--timeout", "100"]
    if "no workspace" not in situation.name:
        words += ["--workspace", place.base + "/ws"]
    process = subprocess.Popen(
        place.words(situation, words), env=place.environment(situation), cwd=place.base + "/ws",
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
        start_new_session=True)
    client = Conversation(process)
    problem = ""
    refusal = ""
    try:
        client.call("initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                                   "clientInfo": {"name": "hosts", "version": "1"}})
        r = client.tool("execute_command", command="echo out; echo err >&2; exit 7")
        if r.get("outcome") in ("not_started", "unknown") and r.get("stderr"):
            refusal = r["stderr"]
        elif (r.get("exit_code"), r.get("stdout"), r.get("stderr")) != (7, "out\n", "err\n"):
            problem = "a command: " + json.dumps(r)
        r = client.tool("execute_command", command=f"sleep {mark}", timeout=0.2)
        if not r.get("timed_out") and not refusal:
            problem = problem or "a timeout: " + json.dumps(r)
        r = client.tool("start_background_shell", command=f"setsid sleep {mark} & sleep {mark}")
        if not r.get("shell_id") and not (refusal or r.get("error")):
            problem = problem or "a background shell: " + json.dumps(r)
        process.stdin.close()
        process.wait(timeout=PATIENCE)
        if process.returncode != 0:
            problem = problem or f"status {process.returncode}"
    except (EOFError, BrokenPipeError):
        try:
            process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            pass
        said = process.stderr.read().decode(errors="replace").strip()
        if process.returncode in (1, 2) and said:
            return "refused: " + said.replace("\n", "|")
        return f"WRONG: the server ended with {process.returncode}: {said}"
    except (Hung, subprocess.TimeoutExpired, ValueError) as error:
        return "WRONG: " + str(error)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stdout.close()
        process.stderr.close()
    if problem:
        return "WRONG: " + problem
    return "refused: " + refusal.replace("\n", "|") if refusal else "ok"


def try_situation(place, situation):
    """[(way, verdict, problem)] of one situation."""
    mark = place.fresh()
    ways = [way for way in situation.ways if way not in ("serve", "forker", "forks")]
    seen = []
    verdicts = {}
    if ways == ["plugin"]:
        words = ["plugin", place.plugin]
    else:
        words = ways
    try:
        verdicts, process, errors = run_host(place, situation, mark, words)
        if process.returncode != 0:
            seen.append(("host", f"status {process.returncode}", f"status {process.returncode}: "
                         f"{errors.strip()[:300]}"))
    except Hung as hung:
        seen.append(("host", "hung", str(hung)))
    verdicts.setdefault("host", "WRONG: it does not tell")
    if "serve" in situation.ways:
        verdicts["serve"] = serve(place, situation, mark)
    for way in [*situation.ways, "host"]:
        verdict = verdicts.get(way, "WRONG: it does not tell")
        good = re.match(situation.expected(way), verdict)
        seen.append((way, verdict, "" if good else verdict))
    left = all_dead(mark, 1 if situation.survivors else 20)
    if left and not situation.survivors:
        seen.append(("survivors", "", f"alive: {left}"))
    files = [name for name in os.listdir(place.base + "/tmp") if name.startswith("codeexec-")]
    if files:
        seen.append(("files", "", f"left in TMPDIR: {files}"))
    return seen


def try_end(place, end):
    situation = Situation(end)
    mark = place.fresh()
    seen = []
    try:
        verdicts, process, _ = run_host(place, situation, mark, ["end", end], end)
    except Hung as hung:
        return [(end, "hung", str(hung))]
    verdict = verdicts.get("started", "WRONG: it does not tell")
    seen.append((end, verdict, "" if verdict == "ok" else verdict))
    if end == "exec":
        # The program that the host became has other arguments.
        left = all_dead(mark)
        if process.poll() is not None:
            seen.append((end, "", "the host that executes another program ended"))
        process.kill()
        process.wait()
    elif end == "thread-exit":
        # The host goes on, and with it all that it has started.
        if not survivors(mark):
            seen.append((end, "", "commands ended with the first thread of the host"))
        process.kill()
        process.wait()
        left = all_dead(mark)
    else:
        left = all_dead(mark)
        if process.returncode != ENDS[end]:
            seen.append((end, "", f"status {process.returncode}"))
    if left:
        seen.append((end, "", f"alive: {left}"))
    return seen


def try_nested(place):
    """A host in the sandbox of another one: nothing that it does gets out of that."""
    mark = place.fresh()
    ways = [way for way in WAYS if way != "serve"]
    inner = " ".join([place.host, "1", "none", mark, place.base + "/ws", *ways])
    inner += f"; {place.host} 1 none {mark} {place.base}/ws serve --run 'echo out; exit 7'"
    situation = Situation("nested")
    words = [place.host, "2", "none", mark, place.base + "/ws", "serve", "--workspace",
             place.base + "/ws", "--allowed-paths", place.base, "--sandbox", "strict",
             "--timeout", "140", "--run", inner]
    try:
        done = subprocess.run(place.words(situation, words), env=place.environment(situation),
                              cwd=place.base + "/ws", stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=PATIENCE, check=False)
        outer = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError) as error:
        return [("nested", "", str(error))]
    seen = []
    lines = outer.get("stdout", "").splitlines()
    verdicts = dict(line.split(": ", 1) for line in lines if re.match(r"[a-z-]+: ", line))
    for way in [*ways, "host"]:
        verdict = verdicts.get(way, "WRONG: it does not tell: " + json.dumps(outer)[:500])
        seen.append((way, verdict, "" if re.match(ANY, verdict) else verdict))
    try:
        served = json.loads(lines[-1])
    except (ValueError, IndexError):
        served = {}
    good = served.get("exit_code") == 7 and served.get("stdout") == "out\n"
    seen.append(("serve", "ok" if good else "", "" if good else json.dumps(outer)[:500]))
    left = all_dead(mark)
    if left:
        seen.append(("survivors", "", f"alive: {left}"))
    return seen


def try_statics(place):
    mark = place.fresh()
    try:
        verdicts, process, errors = run_host(place, Situation("statics"), mark, ["statics"])
    except Hung as hung:
        return [("statics", "hung", str(hung))]
    seen = [(way, verdict, "" if verdict == "ok" else verdict) for way, verdict in verdicts.items()]
    if "at-exit" not in verdicts or process.returncode != 0:
        seen.append(("statics", "", f"status {process.returncode}: {errors} {verdicts}"))
    left = all_dead(mark)
    if left:
        seen.append(("statics", "", f"alive: {left}"))
    return seen


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--plugin", required=True)
    parser.add_argument("--deny", required=True)
    parser.add_argument("--as", dest="identity", choices=("root", "user"), default="root")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.identity == "user" and os.getuid() != 0:
        options.identity = "root"  # what this user is; namespaces are left out
    probe = subprocess.run(["unshare", "-mpf", "true"], check=False, capture_output=True)
    namespaces = probe.returncode == 0
    place = Place(options)
    failures = 0
    work = [(s.name, s, lambda s=s: try_situation(place, s)) for s in SITUATIONS]
    work += [("end: " + end, None, lambda end=end: try_end(place, end)) for end in ENDS]
    work += [("in our own sandbox", None, lambda: try_nested(place))]
    work += [("static objects", None, lambda: try_statics(place))]
    try:
        for name, situation, action in work:
            if options.names and not any(part in name for part in options.names):
                continue
            if situation:
                if situation.only and situation.only != options.identity:
                    continue
                if situation.namespaces and not namespaces:
                    print(f"SKIPPED: {name}: no namespaces can be made")
                    continue
                if subprocess.run(["/bin/sh", "-c", situation.needs], check=False,
                                  capture_output=True).returncode != 0:
                    print(f"SKIPPED: {name}: needs {situation.needs}")
                    continue
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            seen = action()
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            problems = [f"{way}: {problem}" for way, _, problem in seen if problem]
            failures += bool(problems)
            if problems:
                print(f"FAILED: {name}: " + "; ".join(problems))
            else:
                told = sorted({verdict.split(":")[0] for _, verdict, _ in seen})
                cost = f" ({used:.2f} s of CPU)" if options.show else ""
                print(f"ok: {name}: {', '.join(told)}{cost}")
            if options.show:
                for way, verdict, _ in seen:
                    print(f"    {way}: {verdict}")
            sys.stdout.flush()
    finally:
        shutil.rmtree(place.base, ignore_errors=True)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
