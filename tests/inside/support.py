"""What run.py, degrade.py and ../everyday share: who runs the program, where, and its results."""

import argparse
import contextlib
import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

USER = 12345
NOBODY = 65534  # a user that the system knows
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Longer than any script takes on a busy machine: only what hangs comes up against it.
PATIENCE = 120


# Whether namespaces can be had is asked of another program: ours is what is tested.
NAMESPACES = "unshare -pnf true || unshare -Urpnf true"


def wait_until(condition):
    deadline = time.monotonic() + 30
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def landlock_abi():
    create_ruleset, version = 444, 1
    return max(0, ctypes.CDLL(None).syscall(create_ruleset, None, 0, version))


class Runner:
    """The identity that commands run with, its directories, and what it can call."""

    def __init__(self, name, options, place="/tmp", user=USER):
        self.name = name
        self.options = options
        self.user = user
        self.lock = threading.Lock()
        self.base = os.path.realpath(tempfile.mkdtemp(prefix="codeexec-inside-", dir=place))
        os.chmod(self.base, 0o755)
        self.as_user = os.getuid() == 0 and options.identity == "user"
        self.home = self.directory("home")
        # The build folder may be one that the user cannot enter.
        self.program = self.base + "/codeexec-mcp"
        shutil.copy(options.program, self.program)
        self.deny = self.base + "/codeexec-test-deny"
        if options.deny:
            shutil.copy(options.deny, self.deny)
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
        self.own(place)
        return place

    def workspace(self):
        with self.lock:
            self.count += 1
            name = f"ws{self.count}"
        return self.directory(name)

    def own(self, path):
        if self.as_user:
            os.chown(path, self.user, self.user)

    def become(self, words):
        if not self.as_user:
            return words
        return ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups"] + words

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
        with self.lock:
            self.tell(name, problem, result)

    def tell(self, name, problem, result):
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
        with self.lock:
            if extra:
                print(f"left out: {name}: {why}")
            else:
                self.skipped += 1
                print(f"SKIPPED: {self.name}: {name}: {why}")


class Client:
    """A server, and as much of an MCP client as tool calls one after another take."""

    def __init__(self, runner, options, program=None):
        self.count = 0
        self.complaints = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            runner.become([*(program or [runner.program]), *options]), env=runner.environment,
            cwd="/", text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.complaints)

    def __enter__(self):
        self.began = bool(self.call("initialize", {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "inside", "version": "1"}}))
        self.send({"method": "notifications/initialized"})
        return self

    def __exit__(self, *_):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()
        self.complaints.close()

    def errors(self):
        """What the server has said on its standard error."""
        self.complaints.seek(0)
        return self.complaints.read()

    def send(self, message):
        with contextlib.suppress(BrokenPipeError):  # of one that has ended: it gives no answer
            self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            self.process.stdin.flush()

    def call(self, method, parameters):
        self.count += 1
        self.send({"id": self.count, "method": method, "params": parameters})
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == self.count:
                return message.get("result", {})
        return {}

    def tool(self, name, **arguments):
        answer = self.call("tools/call", {"name": name, "arguments": arguments})
        return answer.get("structuredContent", answer)

    def run(self, **arguments):
        return self.tool("execute_command", **arguments)


def main(name, arguments, work, place="/tmp", user=USER, more=()):
    """Calls work(runner) as who the command line says; returns the exit status.

    `more` are options besides: pairs of a name and a default.
    """
    parser = argparse.ArgumentParser()
    for option, default in more:
        if default is False:
            parser.add_argument(option, action="store_true")
        else:
            parser.add_argument(option, default=default, type=type(default))
    parser.add_argument("--program", required=True)
    parser.add_argument("--deny")
    parser.add_argument("--as", dest="identity", choices=["root", "user"],
                        default="root" if os.getuid() == 0 else "user")
    parser.add_argument("--sandbox", choices=["strict", "best-effort", "off"], default="strict")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args(arguments)
    name += options.identity
    if options.identity == "root" and os.getuid() != 0:
        print(f"SKIPPED: {name}: not root")
        return 77
    if os.getuid() == 0 and options.identity == "user" and not shutil.which("setpriv"):
        print(f"SKIPPED: {name}: no setpriv to become another user")
        return 77
    # From this one on strict mode has nothing to miss.
    if landlock_abi() < 6:
        print(f"SKIPPED: {name}: needs Landlock ABI 6 (Linux 6.12), here is {landlock_abi()}")
        return 77
    runner = Runner(name, options, place, user)
    try:
        work(runner)
    finally:
        runner.remove()
    print(f"{name}: {runner.passed} passed, {runner.failures} failed, {runner.skipped} skipped")
    return 1 if runner.failures or not runner.passed else 0
