"""Runs the commands of cases.py through codeexec-mcp --run, inside the sandbox.

usage: run.py --program CODEEXEC_MCP [--as root|user] [--sandbox strict|best-effort|off] [--quick]
              [--show] [name...]

Judged are the fields of the printed result. A script must succeed and print what its case expects.
One that needs the network must fail, and a note must say that there is none. Names are beginnings
of names of cases. As root, `--as user` is the user 12345. --sandbox off shows whether a script
itself is right, --quick leaves out other shells and process tables, --show prints each result.

One line per case: "ok: ...", "FAILED: ..." or "SKIPPED: ...", and the exit status is 1 after a
failure. What only few machines have is "left out: ...".
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import cases

USER = 12345
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Longer than any script takes on a busy machine: only what hangs comes up against it.
PATIENCE = 240


class Runner:
    """The identity that commands run with, its directories, and what it can call."""

    def __init__(self, options):
        self.options = options
        self.base = os.path.realpath(tempfile.mkdtemp(prefix="codeexec-inside-", dir="/tmp"))
        os.chmod(self.base, 0o755)
        self.as_user = os.getuid() == 0 and options.identity == "user"
        self.home = self.directory("home")
        # The build folder may be one that the user cannot enter.
        self.program = self.base + "/codeexec-mcp"
        shutil.copy(options.program, self.program)
        path = os.environ.get("PATH", SYSTEM_PATH)
        if self.as_user:
            path = ":".join(place for place in (path + ":" + SYSTEM_PATH).split(":")
                            if self.can_enter(place))
        self.environment = {
            "PATH": path,
            "HOME": self.home if self.as_user else os.environ.get("HOME", self.home),
            "LANG": "C.UTF-8",
            "TMPDIR": self.directory("tmp"),
        }
        self.probes = {}
        self.count = 0
        self.failures = 0
        self.skipped = 0
        self.passed = 0

    def remove(self):
        shutil.rmtree(self.base, ignore_errors=True)

    def directory(self, name):
        place = f"{self.base}/{name}"
        os.mkdir(place, 0o700)
        if self.as_user:
            os.chown(place, USER, USER)
        return place

    def workspace(self):
        self.count += 1
        return self.directory(f"ws{self.count}")

    def become(self, words):
        if not self.as_user:
            return words
        return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"] + words

    def can_enter(self, place):
        command = self.become(["/usr/bin/test", "-x", place])
        return subprocess.run(command, check=False).returncode == 0

    def missing(self, needs):
        """The first of the needs that this identity does not have outside of the sandbox."""
        for need in needs:
            if need not in self.probes:
                script = need if " " in need else "command -v " + need
                answer = subprocess.run(
                    self.become(["/bin/sh", "-c", script]), check=False, env=self.environment,
                    cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL)
                self.probes[need] = answer.returncode == 0
            if not self.probes[need]:
                return need
        return None

    def start(self, workspace, script, network="none", options=()):
        words = [self.program, "--allowed-paths", workspace, "--workspace", workspace]
        words += ["--timeout", str(PATIENCE), "--sandbox", self.options.sandbox]
        if self.options.sandbox != "off":
            words += ["--network", network]
        words += list(options) + ["--run", script]
        return subprocess.Popen(
            self.become(words), env=self.environment, cwd="/", stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")

    @staticmethod
    def finish(process):
        """The result object; one of our own when the program printed none."""
        out, err = process.communicate(timeout=PATIENCE + 60)
        try:
            return json.loads(out)
        except ValueError:
            return {"success": False, "outcome": f"the program ended with {process.returncode}",
                    "stdout": out, "stderr": err}

    def run(self, *words, **more):
        return self.finish(self.start(*words, **more))

    def report(self, name, problem, result=None):
        if problem:
            self.failures += 1
            print(f"FAILED: {name}: {problem}")
        else:
            self.passed += 1
            print(f"ok: {name}")
        if result is not None and (problem or self.options.show):
            for key in ("outcome", "exit_code", "rule", "stdout", "stderr", "notes"):
                if result.get(key) not in (None, "", []):
                    text = result[key] if isinstance(result[key], str) else repr(result[key])
                    if len(text) > 3000:
                        text = text[:1500] + "\n...\n" + text[-1500:]
                    print(f"    {key}: " + text.rstrip().replace("\n", "\n        "))
        sys.stdout.flush()

    def skip(self, name, why, extra=False):
        if extra:
            print(f"left out: {name}: {why}")
        else:
            self.skipped += 1
            print(f"SKIPPED: inside.{self.options.identity}: {name}: {why}")


def problem_of(case, result):
    """What is wrong with the result; None when nothing is."""
    if case.fails:
        if result["success"] or result["outcome"] != "exited":
            return "it should have failed by itself"
        if not any("network" in note for note in result.get("notes", [])):
            return "no note says that there is no network"
        return None
    if not result["success"]:
        return "it failed"
    return None if case.expect in result["stdout"] else f"it should have printed {case.expect!r}"


def variants(case, quick):
    shells = case.shells[:1] if quick else case.shells
    for shell in shells:
        yield shell, False
    if case.pid and not quick:
        yield shells[0], True


def run_case(runner, case):
    lacking = runner.missing(case.needs)
    if lacking:
        runner.skip(case.name, "no " + lacking, case.extra)
        return
    off = runner.options.sandbox == "off"
    for shell, pid in variants(case, runner.options.quick):
        name = case.name + (" (bash)" if shell == "/bin/bash" else "")
        if runner.missing([shell]):
            runner.skip(name, "no " + shell)
            continue
        if off and (pid or case.fails):
            continue
        options = ["--shell", shell]
        if not off:
            options += case.options + (("--pid-namespace",) if pid else ())
        workspace = runner.workspace()
        result = runner.run(workspace, case.script, network=case.network, options=options)
        runner.report(name + (" (pid namespace)" if pid else ""), problem_of(case, result), result)
        shutil.rmtree(workspace, ignore_errors=True)


# What takes more than one command ----------------------------------------------------------------

CONNECT = r'''
python3 - <<'EOF'
import socket
try:
    socket.create_connection(("HOST", PORT), 5)
    print("reached")
except OSError as error:
    print("refused")
EOF
'''


def other_loopbacks(runner):
    """Neither a server of the host nor one of another command can be reached over loopback."""
    name = "loopback: commands and the host do not see each other"
    if runner.missing(["python3"]):
        runner.skip(name, "no python3")
        return
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = CONNECT.replace("HOST", "127.0.0.1").replace("PORT", str(port))
        reached = runner.run(runner.workspace(), script, network="host")
        apart = runner.run(runner.workspace(), script, network="loopback")
    runner.report(name + ": the host, with network host",
                  None if reached["stdout"] == "reached\n" else "it should have been reached",
                  reached)
    runner.report(name + ": the host",
                  None if apart["stdout"] == "refused\n" else "it should be out of reach", apart)
    world = runner.run(runner.workspace(), network="loopback",
                       script=CONNECT.replace("HOST", "192.0.2.1").replace("PORT", "80"))
    runner.report("loopback: the world is away",
                  None if world["stdout"] == "refused\n" else "it should be out of reach", world)
    # The first command serves on a port, and tells by a file; the second one tries it. The first
    # reaches itself all the time, or the second would prove nothing.
    serving = runner.workspace()
    process = runner.start(serving, CONNECT_SERVER.replace("PORT", str(port)), network="loopback")
    while not os.path.exists(serving + "/ready") and process.poll() is None:
        try:
            process.wait(0.05)
        except subprocess.TimeoutExpired:
            pass
    other = runner.run(runner.workspace(), script, network="loopback")
    open(serving + "/enough", "w", encoding="ascii").close()
    result = runner.finish(process)
    good = result["stdout"] == "reached itself\n" and other["stdout"] == "refused\n"
    runner.report(name, None if good else "the second command: " + other["stdout"].strip(), result)


CONNECT_SERVER = r'''
python3 - <<'EOF'
import os, socket, time
server = socket.create_server(("127.0.0.1", PORT))
open("ready", "w").close()
while not os.path.exists("enough"):
    time.sleep(0.02)
socket.create_connection(("127.0.0.1", PORT), 5)
print("reached itself")
EOF
'''


def own_processes(runner):
    """With a process table of its own a command sees no process of the host."""
    name = "ps shows only the command's own"
    if runner.missing(["ps"]):
        runner.skip(name, "no ps")
        return
    # A process of the same user, known by its number of seconds.
    mark = f"600.0{os.getpid()}"
    outside = subprocess.Popen(runner.become(["sleep", mark]), stdin=subprocess.DEVNULL)
    try:
        script = "ps -eo args; ls -d /proc/[0-9]* | wc -l"
        seen = runner.run(runner.workspace(), script)
        own = runner.run(runner.workspace(), script, options=["--pid-namespace"])
    finally:
        outside.kill()
        outside.wait()
    runner.report(name + ": without pid_namespace all",
                  None if "sleep " + mark in seen["stdout"] else "it should see the other")
    shown = own["stdout"].split("\n")
    problem = None
    if not own["success"] or "ps -eo args" not in shown:
        problem = "ps does not work"
    elif "sleep " + mark in shown:
        problem = "it shows others"
    elif int(shown[-2]) > 8:
        problem = f"it shows {shown[-2]} processes"
    runner.report(name, problem)


def homes(runner):
    """HOME and TMPDIR are the command's own, fresh for each with `command`, and removed."""
    name = "private home"
    script = "stat -c '%a %u' $HOME; ls -A $HOME | wc -l; echo x > $HOME/f; echo $HOME $TMPDIR"
    places = []
    for kind in ("executor", "command"):
        result = runner.run(runner.workspace(), script, options=["--private-home", kind])
        lines = result["stdout"].split("\n")
        uid = USER if runner.as_user else os.getuid()
        problem = None
        if len(lines) != 4 or lines[0] != f"700 {uid}":
            problem = "HOME should be a directory of mode 0700 of the user"
        elif runner.environment["HOME"] in lines[2].split():
            problem = "HOME is that of the host"
        elif any(os.path.exists(place) for place in lines[2].split()):
            problem = "it should have been removed"
        places.append(lines[2:3])
        runner.report(f"{name}: {kind}", problem, result)
    runner.report(name + ": another each time",
                  None if places[0] != places[1] else "the same twice")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--as", dest="identity", choices=["root", "user"],
                        default="root" if os.getuid() == 0 else "user")
    parser.add_argument("--sandbox", default="strict")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.identity == "root" and os.getuid() != 0:
        print("SKIPPED: inside.root: not root")
        return 77
    if os.getuid() == 0 and options.identity == "user" and not shutil.which("setpriv"):
        print("SKIPPED: inside.user: no setpriv to become another user")
        return 77
    runner = Runner(options)
    try:
        for case in cases.CASES:
            if not options.names or any(case.name.startswith(name) for name in options.names):
                run_case(runner, case)
        if options.sandbox != "off":
            for check in (other_loopbacks, own_processes, homes):
                if not options.names or check.__name__ in options.names:
                    check(runner)
    finally:
        runner.remove()
    print(f"inside.{options.identity}: {runner.passed} passed, {runner.failures} failed,"
          f" {runner.skipped} skipped")
    return 1 if runner.failures or not runner.passed else 0


if __name__ == "__main__":
    sys.exit(main())
