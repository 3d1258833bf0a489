"""Drives real client programs against the built server, with a model that is none (mock_model.py).

    CODEEXEC_MCP=... python3 drive.py --packages DIR --work DIR [--broken] NAME...

Each client gets a home of its own with nothing in it but what `codeexec-mcp --client-config NAME
--write` puts there, or runs the program that docs/clients.md shows. Prints "ok: ..." or
"FAILED: ..." for each step. With --broken, the entry leads to a program that is not there: then the
steps of the first project must fail, which is one "ok".
"""

import argparse
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys

import clients
from mock_model import FINISHED, Call, MockModel

SERVER = os.environ["CODEEXEC_MCP"]
# A guard against a client that hangs; nothing is measured by it.
BOUND = 180
FIRST = [
    Call("execute_command", command='echo "sum $((40 + 2))"; pwd'),
    Call("execute_command", command="seq 1 300000"),
    Call("execute_command", command="seq 1 300000; seq 300001 600000 >&2"),
    # As much as a test program prints that fails 2,000 times.
    Call("execute_command", command="seq 1 2000 | sed 's/.*/tests\\/test_all.py::test_& FAILED/'; "
                                    "echo '== 2000 failed in 9.87s =='; exit 1"),
    # What would run if it were not refused is harmless.
    Call("execute_command", command="sudo true"),
    Call("execute_command", command="echo before; sleep 600", timeout=1),
    Call("list_background_shells"),
    Call("execute_command", command="echo words >&2; exit 3"),
]
SLEEPER = "exec 9> started; echo started >&9; sleep 600"
SECOND = [Call("execute_command", command="pwd"), Call("execute_command", command=SLEEPER)]


class Failure(Exception):
    pass


def expect(condition, problem):
    if not condition:
        raise Failure(problem)


def own_tools():
    """What the server lists."""
    lines = [{"jsonrpc": "2.0", "id": 1, "method": "initialize",
              "params": {"protocolVersion": "2025-11-25", "capabilities": {},
                         "clientInfo": {"name": "drive", "version": "1"}}},
             {"jsonrpc": "2.0", "method": "notifications/initialized"},
             {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}]
    done = subprocess.run([SERVER], input="".join(json.dumps(line) + "\n" for line in lines),
                          stdout=subprocess.PIPE, text=True, check=True, timeout=BOUND)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    listed = next(answer for answer in answers if answer.get("id") == 2)
    return {tool["name"] for tool in listed["result"]["tools"]}


class Place:
    """The folders of one client: its home, and its projects."""

    def __init__(self, work, client):
        self.client = client
        self.folder = os.path.join(work, client.name)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.home = os.path.join(self.folder, "home")
        self.rigging = os.path.join(self.folder, "rigging")
        for folder in (self.home, self.rigging):
            os.makedirs(folder)
        self.environment = {"HOME": self.home, "PATH": os.environ["PATH"], "LANG": "C.UTF-8",
                            "TERM": "xterm-256color"}

    def project(self, name):
        path = os.path.join(self.folder, name)
        os.makedirs(path)
        subprocess.run(["git", "init", "-q", path], check=True, env=self.environment,
                       stdout=subprocess.DEVNULL)
        return os.path.realpath(path)

    def configure(self, *options):
        """Lets the server write itself into the client's file, from a folder that is no project."""
        done = subprocess.run([SERVER, "--client-config", self.client.name, "--write", *options],
                              env=self.environment, cwd=self.home, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        expect(done.returncode == 0, f"--client-config: {done.stdout.strip()}")

    def edit(self, change):
        """Changes each file of the home that names the server; returns how many there were."""
        edited = 0
        for folder, _, names in os.walk(self.home):
            for name in names:
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8", errors="replace") as file:
                    text = file.read()
                if SERVER in text:
                    with open(path, "w", encoding="utf-8") as file:
                        file.write(change(text))
                    edited += 1
        return edited


class Session:
    """A client that works for a prompt in one project."""

    def __init__(self, packages, place, project, model, options=()):
        self.client = place.client
        self.log = os.path.join(place.folder, os.path.basename(project) + ".log")
        run = clients.Run(packages, place.home, project, place.rigging, model.url, SERVER)
        argv, environment = place.client.command(run)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [*argv, *place.client.approval, *options], cwd=project, stdin=subprocess.DEVNULL,
                stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                env=dict(place.environment, **environment))

    def end(self):
        """Waits for it; whatever is left is killed, then."""
        try:
            return self.process.wait(BOUND)
        except subprocess.TimeoutExpired:
            return None
        finally:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()

    def told(self):
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return re.sub(r"\s+", " ", log.read())[-600:]


def last_request(model, session):
    """The request with most results: that of the end, or of the cancelled call."""
    expect(model.requests, f"it asked its model nothing: {session.told()}")
    return max(model.requests, key=lambda request: len(request.results))


def results_of(model, session, count):
    expect(not model.problems, "; ".join(model.problems))
    results = last_request(model, session).results
    expect(len(results) >= count, f"{len(results)} results of {count}: {results[-1:]} "
                                  f"{session.told()}")
    return results


class Steps:
    def __init__(self, client):
        self.client = client
        self.failed = 0

    def __call__(self, name, check):
        try:
            more = check()
        except (Failure, OSError, subprocess.SubprocessError) as error:
            self.failed += 1
            print(f"FAILED: {self.client.shown}: {name}: {error}", flush=True)
            return False
        print(f"ok: {self.client.shown}: {name}{': ' + more if more else ''}", flush=True)
        return True


def same_tools(client, seen, own):
    missing = {tool for tool in own if not any(name.endswith(tool) for name in seen)}
    expect(missing == client.hidden, f"not shown to the model: {sorted(missing)}, "
                                     f"expected {sorted(client.hidden)}")
    return f"{len(own - missing)} of {len(own)}"


def long_result(text, *parts):
    """How much of megabytes arrives: how it ended, these parts, and the file with all of it."""
    has_words(text, r"exit code \d", "codeexec-output", *parts)
    return f"{len(text)} characters"


def as_lines(text):
    """The first result, as it was printed: no model pays for escapes."""
    expect("exit code 0\n" in text and "\nstdout:\nsum 42\n" in text, text[:400])


def has_words(text, *words):
    missing = [word for word in words if not re.search(word, text)]
    expect(not missing, f"no {missing} in {text[:400]} ... {text[-200:]}")


def own_shell_among(client, request):
    return [tool for tool in client.own_shell if tool in request.tools]


def first_project(packages, place, step):
    client, project = place.client, place.project("first")
    with MockModel(FIRST) as model:
        session = Session(packages, place, project, model)
        status = session.end()
        step("starts", lambda: expect(status == 0, f"status {status}: {session.told()}"))
        if not step("gets an answer to each call",
                    lambda: results_of(model, session, len(FIRST)) and None):
            return
        request = last_request(model, session)
        run, long, both, tests, refused, late, listed, failing = request.results[:len(FIRST)]
        step("its model sees the tools", lambda: same_tools(client, request.names, OWN))
        step("runs a command in its project",
             lambda: has_words(run, r"sum 42\b", re.escape(project)))
        step("its model reads lines", lambda: as_lines(run))
        step("both ends of a long result arrive", lambda: long_result(
            long, r"stdout:\n1\n2\n3\n", r"\n299999\n300000\b"))
        step("both ends of both streams arrive", lambda: long_result(
            both, r"stdout:\n1\n2\n3\n", r"\n299999\n300000\n", r"stderr:\n300001\n300002\n",
            r"\n599999\n600000\b"))
        step("both ends of 2,000 failures arrive", lambda: long_result(
            tests, r"exit code 1\b", "test_1 FAILED", "test_2 FAILED", "test_2000 FAILED",
            "== 2000 failed"))
        step("a refusal arrives", lambda: has_words(refused, "sudo", "not allowed"))
        step("a timeout arrives, with the output before it",
             lambda: has_words(late, r"\bbefore\b", "timed out after 1 second"))
        step("a tool without arguments", lambda: has_words(listed, "shells"))
        step("a failure arrives", lambda: has_words(failing, r"\bwords\b", r"exit code 3\b"))
        step("finishes", lambda: expect(FINISHED in session.told(), session.told()))


def opened_fifo(project):
    path = os.path.join(project, "started")
    os.mkfifo(path)
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK)


def wait_for_beginning(fifo, session):
    """Until the command has begun, or its client has ended."""
    poll = select.poll()
    poll.register(fifo, select.POLLIN)
    client = os.pidfd_open(session.process.pid)
    try:
        poll.register(client, select.POLLIN)
        ready = [descriptor for descriptor, _ in poll.poll(BOUND * 1000)]
        expect(fifo in ready, f"it did not begin: {session.told()}")
        expect(os.read(fifo, 100) == b"started\n", "it did not say that it began")
    finally:
        os.close(client)


def wait_for_end(fifo):
    """Until no process of the command is left to hold the other end."""
    poll = select.poll()
    poll.register(fifo, select.POLLIN)
    expect(poll.poll(BOUND * 1000), "the command still runs")
    expect(os.read(fifo, 100) == b"", "it wrote something")


def second_project(packages, place, step):
    """A second project with the same entry: its commands run there, and a cancelled one ends."""
    project = place.project("second")
    fifo = opened_fifo(project)
    try:
        with MockModel(SECOND) as model:
            session = Session(packages, place, project, model)
            if step("starts a command in a second project",
                    lambda: wait_for_beginning(fifo, session)):
                session.process.send_signal(signal.SIGINT)
                step("interrupted, it leaves nothing of the command", lambda: wait_for_end(fifo))
            session.end()
            step("runs in that project", lambda: has_words(
                results_of(model, session, 1)[0], re.escape(project)))
    finally:
        os.close(fifo)


def two_projects_at_once(packages, place, step):
    """Two sessions of one entry: each has commands in its own project, and reaches no other."""
    projects = [place.project(name) for name in ("left", "right")]
    script = ("pwd; echo mine > made; "
              "for i in ../left ../right; do echo x > $i/by-$(basename $PWD); done")

    def check():
        with MockModel([Call("execute_command", command=script)]) as left, \
                MockModel([Call("execute_command", command=script)]) as right:
            models = [left, right]
            sessions = [Session(packages, place, project, model)
                        for project, model in zip(projects, models)]
            for session in sessions:
                session.end()
            for project, model, session in zip(projects, models, sessions):
                has_words(results_of(model, session, 1)[0], re.escape(project))
                made = sorted(set(os.listdir(project)) - {".git", ".massgen"})
                own = "by-" + os.path.basename(project)
                expect(made == sorted(["made", own]), f"in {project} there is {made}")

    step("two sessions at once each have their own project", check)


def tools_shown(packages, place, name):
    project = place.project(name)
    with MockModel() as model:
        session = Session(packages, place, project, model, place.client.own_shell_option)
        session.end()
        return last_request(model, session)


def without_own_shell(packages, place, step):
    client = place.client

    def check():
        # With it on, so that this can fail.
        expect(own_shell_among(client, tools_shown(packages, place, "own-shell-on")),
               "its model has no command tool of its own, whatever the settings are")
        place.configure("--only-shell")
        request = tools_shown(packages, place, "own-shell-off")
        left = own_shell_among(client, request)
        expect(not left, f"its model still sees {left}")
        expect(FIRST[0].name_among(request.names), "nor ours")

    step("with --only-shell its model has no other command tool", check)


def drive(packages, work, client, broken):
    place = Place(work, client)
    step = Steps(client)
    if client.has_file() and not step("is configured", place.configure):
        return step.failed
    first_project(packages, place, step)
    second_project(packages, place, step)
    two_projects_at_once(packages, place, step)
    if client.own_shell:
        without_own_shell(packages, place, step)
    return step.failed


def drive_broken(packages, work, client):
    """Whether the steps see an entry that does not work."""
    place = Place(os.path.join(work, "broken"), client)
    place.configure()
    expect(place.edit(lambda text: text.replace(SERVER, SERVER + ".missing")) == 1, "no entry")
    with MockModel(FIRST) as model:
        session = Session(packages, place, place.project("first"), model)
        session.end()
        results = last_request(model, session).results if model.requests else []
    expect(not any("sum 42" in result for result in results), f"it ran without a server: {results}")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--packages", required=True)
    options.add_argument("--work", required=True)
    options.add_argument("--broken", action="store_true")
    options.add_argument("names", nargs="+")
    asked = options.parse_args()
    failed = 0
    for name in asked.names:
        client = clients.named(name)
        if asked.broken:
            failed += not Steps(client)("nothing works without its entry",
                                        lambda: drive_broken(asked.packages, asked.work, client))
        else:
            failed += drive(asked.packages, asked.work, client, asked.broken)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    OWN = own_tools()
    main()
