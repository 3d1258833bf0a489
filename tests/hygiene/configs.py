"""The local configurations of examples/configs do what their README says.

    CODEEXEC_MCP=build/codeexec-mcp OUT=build/configs python3 tests/hygiene/configs.py

Starts the server with each configuration, in a project of its own, and calls execute_command for
each row of its table. A command that fails is run without a sandbox, too, where it must not fail.
"""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys

from checks import ROOT, check, failures

CONFIGS = ROOT / "examples" / "configs"
OUT = pathlib.Path(os.environ["OUT"]) / "projects"
MCP = os.path.abspath(os.environ["CODEEXEC_MCP"])
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": str(OUT / "home"), "CI_TOKEN": "visible"}
# Not tried without a sandbox: the machine of the tests may have no network.
NO_CONTROL = "example.com"


def project(name):
    """A folder for the commands, with a secret beside it."""
    folder = OUT / name / "project"
    (folder / ".github").mkdir(parents=True)
    (folder / "notes").mkdir()
    (folder / "data.txt").write_text("the answer is 42\n")
    (OUT / name / "secret.txt").write_text("secret\n")
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.com"]
    for words in (["init", "-q"], ["config", "user.name", "Test"],
                  ["config", "user.email", "test@example.com"], ["add", "."],
                  [*identity, "commit", "-q", "-m", "Begin"]):
        subprocess.run(["git", *words], cwd=folder, env=ENVIRONMENT, check=True)
    return folder


class Server:
    def __init__(self, words, folder):
        self.process = subprocess.Popen([MCP, *words], cwd=folder, env=ENVIRONMENT, text=True,
                                        encoding="utf-8", stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.number = 0
        client = {"name": "configs", "version": "1"}
        self.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)

    def ask(self, method, **params):
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        print(json.dumps(message), file=self.process.stdin, flush=True)
        for line in self.process.stdout:
            if json.loads(line).get("id") == self.number:
                return json.loads(line)["result"]
        raise SystemExit("the server has ended")

    def run(self, command):
        return self.ask("tools/call", name="execute_command",
                        arguments={"command": command})["structuredContent"]

    def end(self):
        self.process.stdin.close()
        return self.process.wait()


def problem_of(happens, result):
    """What is wrong with a result, or nothing."""
    names = re.findall(r"`([^`]+)`", happens)
    if happens.startswith("runs"):
        good = result["success"]
    elif happens.startswith("is refused"):
        good = result.get("rule") == names[0]
    else:
        text = json.dumps(result)
        good = (happens.startswith("fails") and result.get("outcome", "exited") == "exited" and
                result["exit_code"] > 0 and all(name in text for name in names))
    return "" if good else f"should be: {happens}; was: {result}"


def enforced(words, folder):
    done = subprocess.run([MCP, *words, "--sandbox-report"], cwd=folder, env=ENVIRONMENT,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    return (json.loads(done.stdout)["enforced"] if done.stdout else None), done.stderr


def try_configuration(name, rows, port):
    folder = project(name)
    words = ["--config", str(CONFIGS / name)]
    here, error = enforced(words, folder)
    if here is None:
        print(f"SKIPPED: hygiene.examples: {name}: it does not start here: {error.strip()}")
        return
    server = Server(words, folder)
    control = Server(["--sandbox", "off"], project(name + ".control"))
    for command, happens, by in rows:
        what = f"{name}: {command}: {happens}"
        command = command.replace("8000", str(port))
        if by not in ("", "policy") and by not in here:
            print(f"SKIPPED: hygiene.examples: {what}: this kernel does not enforce {by}")
            continue
        check(what, filter(None, [problem_of(happens, server.run(command))]))
        if happens.startswith("fails") and NO_CONTROL not in command:
            check(f"{name}: {command}: works without it",
                  filter(None, [problem_of("runs", control.run(command))]))
    check(f"{name}: the server ends well", [s for s in (server.end(), control.end()) if s != 0])
    check(f"{name}: nothing was made outside",
          [str(p) for p in folder.parent.iterdir() if p.name not in ("project", "secret.txt")])


def main():
    missing = [program for program in ("git", "python3") if not shutil.which(program)]
    if missing:
        print(f"SKIPPED: hygiene.examples: the configurations: not installed: {missing}")
        return
    shutil.rmtree(OUT, ignore_errors=True)
    (OUT / "home").mkdir(parents=True)
    listener = socket.create_server(("127.0.0.1", 0))
    text = (CONFIGS / "README.md").read_text(encoding="utf-8")
    parts = re.split(r"^### `([a-z_]+\.json)`\n", text, flags=re.M)[1:]
    local = {path.name for path in CONFIGS.glob("*.json")
             if json.loads(path.read_text()).get("execution_mode", "local") == "local"}
    check("the README has each local configuration", local ^ set(parts[::2]))
    for name, part in zip(parts[::2], parts[1::2]):
        part = part.split("\n## ")[0]
        rows = [(command.replace("\\|", "|"), happens, by) for command, happens, by in
                re.findall(r"^\| `(.+?)` \| ((?:runs|is refused|fails)[^|]*) \| (\w*) ?\|$", part,
                           re.M)]
        check(f"{name}: each row of the table can be tried",
              [] if len(rows) == len(re.findall(r"^\| `", part, re.M)) else ["odd rows"])
        try_configuration(name, rows, listener.getsockname()[1])


main()
sys.exit(1 if failures else 0)
