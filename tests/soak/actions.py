"""What clients do with a server. Each action knows what must come of it, and tells what did not."""

import hashlib
import random
import threading
import time
import traceback

from client import Gone

FLOOD = 10 << 20
MOST_OUTPUT = 400000
LINE = "0123456789abcde\n"


class Actions:
    """The actions of one worker on a server, drawn by a generator of its own."""

    def __init__(self, run, server, number, plan):
        self.run, self.server, self.number = run, server, number
        self.random = random.Random(f"{run.seed} {server.name} {number}")
        self.kinds = list(plan)
        self.weights = [plan[kind] for kind in self.kinds]
        self.state = None  # of the process that the action began with

    def act(self):
        self.state = self.server.state
        kind = self.random.choices(self.kinds, self.weights)[0]
        getattr(self, kind)()
        with self.server.lock:
            done = self.run.actions
            done[kind] = done.get(kind, 0) + 1

    def check(self, right, what, told):
        if not right and "its container " in str(told):
            # An engine that did not answer in time: the executor had to give up the container, with
            # all that ran in it, and says so.
            with self.server.lock:
                self.server.containers_lost += 1
        # A process that has come meanwhile knows nothing of the shells and sessions of another.
        elif not right and (self.state is None or self.state is self.server.state):
            self.run.failures.add(f"{self.server.name}: {what}: {told}")

    def execute(self, command, **more):
        return self.server.call("execute_command", command=command, **more)

    def ended(self, what, told, code, out="", err=""):
        expected = {"outcome": "exited", "exit_code": code, "stdout": out, "stderr": err}
        got = {name: told.get(name) for name in expected}
        self.check(got == expected, what, told if len(str(told)) < 2000 else str(told)[:2000])

    # commands -------------------------------------------------------------------------------------

    def short(self):
        number, code = self.random.randrange(10**9), self.random.randrange(200)
        told = self.execute(f"echo out{number}; echo err{number} >&2; exit {code}")
        self.ended("a short command", told, code, f"out{number}\n", f"err{number}\n")

    def both_streams(self):
        count = self.random.randrange(1, 400)
        script = "i=0; while [ $i -lt %d ]; do echo out$i; echo err$i >&2; i=$((i+1)); done" % count
        lines = [f"{i}\n" for i in range(count)]
        out = "".join("out" + line for line in lines)
        self.ended("both streams", self.execute(script), 0, out, out.replace("out", "err"))

    def flood(self):
        told = self.execute(f"yes 0123456789abcde | head -c {FLOOD}")
        out = told.get("stdout", "")
        whole = told.get("stdout_bytes") == FLOOD and told.get("stdout_truncated") is True
        ends = out.startswith(LINE * 100) and out.endswith(LINE * 100)
        right = whole and ends and told.get("exit_code") == 0 and len(out) <= MOST_OUTPUT
        self.check(right, "a flood", str(told)[:300] + str(told)[-500:])

    def huge_result(self):
        count = self.random.randrange(5000, 30000)
        told = self.execute(f"seq {count}")
        expected = "".join(f"{i}\n" for i in range(1, count + 1))
        digest = hashlib.sha256(expected.encode()).hexdigest()
        got = hashlib.sha256(told.get("stdout", "").encode()).hexdigest()
        self.check(got == digest and told.get("exit_code") == 0, "a huge result", str(told)[:500])

    def timeout(self):
        script = self.random.choice(
            [
                "sleep 600",
                "trap '' TERM; sleep 600; sleep 600",
                "trap '' TERM HUP INT; setsid sleep 600 & while :; do sleep 1; done",
                "sleep 600 & sleep 600 & wait",
            ]
        )
        seconds = self.random.choice([0.1, 0.3, 0.7, 1])
        told = self.execute(script, timeout=seconds)
        right = told.get("outcome") == "timed_out" and told.get("timed_out") is True
        self.check(right and told.get("exit_code") == -1, "a timeout", told)

    def daemon(self):
        streams = self.random.choice(["", " >/dev/null 2>&1"])
        told = self.execute(f"setsid sleep 600{streams} & echo left")
        self.ended("a daemon", told, 0, "left\n")

    def signals(self):
        told = self.execute("kill -9 $$")
        ended = (told.get("outcome"), told.get("exit_code"))
        self.check(ended == ("signaled", -9), "a signal", told)

    def progress(self):
        told = self.server.call("execute_command", progress=True, command="sleep 0.3; echo done")
        self.ended("with progress", told, 0, "done\n")

    def cancel(self):
        """Of one that runs, mostly, and of one that may have ended."""
        script = self.random.choice(["sleep 600", "trap '' TERM; sleep 600; sleep 600", "echo x"])
        told = {"name": "execute_command", "arguments": {"command": script}}
        identity, request = self.server.send("tools/call", told, self.random.random() < 0.3)
        request.done.wait(self.random.random() * self.random.choice([0, 0.1, 1]))
        self.server.cancel(identity)

    def cancel_queued(self):
        """More at a time than may run; those that wait are cancelled, too."""
        asked = []
        for _ in range(self.random.randrange(6, 14)):
            told = {"name": "execute_command", "arguments": {"command": "sleep 600"}}
            asked.append(self.server.send("tools/call", told)[0])
        self.random.shuffle(asked)
        for identity in asked:
            self.server.cancel(identity)

    def cancel_unknown(self):
        self.server.cancel(f"never asked {self.random.randrange(1000)}")

    # background shells ----------------------------------------------------------------------------

    def start_shell(self, command, **more):
        told = self.server.call("start_background_shell", command=command, **more)
        if "shell_id" in told:
            return told["shell_id"]
        self.check("running" in str(told) or "at most" in str(told), "no new shell", told)
        return None

    def wait_for(self, shell, pattern, **more):
        """Waits for what a shell prints, as soon as there is room for one more who waits."""
        asked = {"shell_id": shell, "wait_for": pattern, "timeout": 200, **more}
        while True:
            told = self.server.call("get_background_shell_output", **asked)
            if "calls are waiting" not in str(told.get("error")):
                return told
            time.sleep(0.1)

    def shell(self):
        shell = self.start_shell("echo ready; read x; echo got $x; exec sleep 600")
        if shell is None:
            return
        number = self.random.randrange(10**6)
        call = self.server.call
        first = self.wait_for(shell, "ready")
        self.check(first.get("stdout") == "ready\n", "first output of a shell", first)
        call("write_background_shell", shell_id=shell, input=f"{number}\n")
        second = self.wait_for(shell, "^got ", since=first.get("next"))
        right = second.get("wait") == "matched" and f"got {number}\n" in second.get("stdout", "")
        self.check(right, "what a shell answers", second)
        if self.random.random() < 0.3:
            return self.server.state.setdefault("forgotten", []).append(shell)
        told = call("kill_background_shell", shell_id=shell)
        self.check(told.get("status") == "killed", "a killed shell", told)
        told = call("get_background_shell_status", shell_id=shell)
        self.check(told.get("status") == "killed", "the status of a killed shell", told)

    def shell_that_ends(self):
        shell = self.start_shell("seq 200; exit 4")
        if shell is None:
            return
        told = self.wait_for(shell, "exit")
        out = "".join(f"{i}\n" for i in range(1, 201))
        right = told.get("status") == "failed" and told.get("exit_code") == 4
        self.check(right and told.get("stdout") == out, "a shell that ends", told)

    def to_the_background(self):
        told = self.execute("echo begun; sleep 0.3; echo done", run_in_background_after=0.1)
        shell = told.get("shell_id")
        if shell is None:
            # It ended in time, or there is no room for another shell.
            return self.ended("in the foreground after all", told, 0, "begun\ndone\n")
        told = self.wait_for(shell, "exit")
        right = told.get("exit_code") == 0 and told.get("stdout") == "begun\ndone\n"
        self.check(right, "went to the background", told)

    def end_shells(self):
        """Those that somebody has forgotten; all are still known as running."""
        forgotten = self.server.state.pop("forgotten", [])
        told = self.server.call("list_background_shells")
        running = [each["shell_id"] for each in told["shells"] if each["status"] == "running"]
        self.check(set(forgotten) <= set(running), "forgotten shells", [forgotten, running])
        for shell in forgotten:
            told = self.server.call("kill_background_shell", shell_id=shell)
            self.check(told.get("status") == "killed", "a killed shell", told)

    def unknown_shell(self):
        told = self.server.call("get_background_shell_output", shell_id="shell_0000000000000000")
        self.check(told.get("success") is False, "an unknown shell", told)

    # sessions, code, files ------------------------------------------------------------------------

    def session(self):
        state, name = self.server.state, f"s{self.number}-{self.server.generation}"
        count = state.get(name, 0) + 1
        told = self.execute("export N=$((${N:-0} + 1)); echo $N", session_id=name)
        if state is self.server.state:  # no other process has come meanwhile
            self.ended("a session", told, 0, f"{count}\n")
            if told.get("outcome") == "exited":
                state[name] = count

    def new_session(self):
        name = f"new-{self.number}-{self.random.randrange(10**9)}"
        self.ended("a new session", self.execute("export A=b", session_id=name), 0)
        self.ended("its variable", self.execute("echo $A", session_id=name), 0, "b\n")

    def code(self):
        number = self.random.randrange(6)
        language, code = self.random.choice(
            [("python", f"print({number} * 2)"), ("sh", f"echo $(({number} * 2))")]
        )
        told = self.server.call("execute_code", language=language, code=code)
        self.ended("code", told, 0, f"{number * 2}\n")

    def files(self):
        name = f"file-{self.number}.txt"
        content = "".join(f"{self.random.randrange(10**9)}\n" for _ in range(200))
        told = self.server.call("write_file", file_path=name, content=content)
        self.check(told.get("bytes") == len(content), "a written file", told)
        told = self.server.call("read_file", file_path=name)
        self.check(told.get("content") == content, "a read file", told)
        told = self.server.call("list_files")
        names = [entry["path"] for entry in told.get("entries", [])]
        self.check(name in names, "a listed file", told)
        told = self.server.call("read_file", file_path="there is no such file")
        self.check("content" not in told or "isError" in told, "a missing file", told)

    # what is wrong or cheap -----------------------------------------------------------------------

    def refused(self):
        for _ in range(self.random.randrange(1, 20)):
            script, rule = self.random.choice(
                [("sudo ls", "sudo"), ("rm -rf /", "rm-protected"), ("echo a; su root", "su")]
            )
            told = self.execute(script)
            right = told.get("outcome") == "refused" and told.get("rule") == rule
            self.check(right and told.get("exit_code") == -1, "a refusal", told)

    def ping(self):
        for _ in range(self.random.randrange(1, 40)):
            reply = self.server.ask("ping")
            self.check(reply.get("result") == {}, "a ping", reply)

    def wrong(self):
        """Each is an error of its own kind, and the next request is answered as ever."""
        reply = self.server.ask("no/such/method", {})
        self.check(reply.get("error", {}).get("code") == -32601, "an unknown method", reply)
        told = self.server.call("no_such_tool")
        self.check(told.get("error", {}).get("code") == -32602, "an unknown tool", told)
        told = self.execute(5)
        self.check(told.get("isError") is True, "a wrong argument", told)
        told = self.server.call("execute_command", nonsense=1)
        self.check(told.get("isError") is True, "an unknown argument", told)
        self.server.write({"jsonrpc": "2.0", "method": "notifications/unknown"})

    def malformed(self):
        # Of many in a row, as several workers could send them, the server answers only the first.
        with self.server.malforming:
            for _ in range(self.random.randrange(1, 5)):
                line = self.random.choice([b"{bad", b"[1, 2", b"\xff\xfe", b'"open', b"{]" * 5000])
                # Counted first: the answer may be there before write() returns.
                with self.server.lock:
                    self.server.malformed += 1
                self.server.write(line + b"\n")
            self.server.ask("ping")

    def tools(self):
        names = [tool["name"] for tool in self.server.ask("tools/list")["result"]["tools"]]
        self.check("execute_command" in names, "tools", names)

    def stop_reading(self):
        self.server.hold_until = time.monotonic() + self.random.choice([0.2, 1, 3])
        self.huge_result()


PLAN = {
    "short": 30,
    "both_streams": 6,
    "flood": 2,
    "huge_result": 4,
    "timeout": 6,
    "daemon": 6,
    "signals": 3,
    "progress": 3,
    "cancel": 10,
    "cancel_queued": 2,
    "cancel_unknown": 1,
    "shell": 7,
    "shell_that_ends": 4,
    "end_shells": 3,
    "to_the_background": 3,
    "unknown_shell": 1,
    "session": 6,
    "new_session": 3,
    "code": 4,
    "files": 5,
    "refused": 6,
    "ping": 6,
    "wrong": 3,
    "malformed": 3,
    "tools": 1,
    "stop_reading": 1,
}


class Workers:
    """Threads that draw actions on a server, which can be told to pause."""

    def __init__(self, run, server, count, plan):
        self.run, self.server = run, server
        self.changed = threading.Condition()
        self.going = self.stopping = False
        self.busy = 0
        self.threads = [
            threading.Thread(
                target=self.work, args=(Actions(run, server, number, plan),), daemon=True
            )
            for number in range(count)
        ]
        for thread in self.threads:
            thread.start()

    def work(self, actions):
        pause = random.Random()
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.going or self.stopping)
                if self.stopping:
                    return
                self.busy += 1
            self.one(actions)
            with self.changed:
                self.busy -= 1
                self.changed.notify_all()
                self.changed.wait_for(
                    lambda: not self.going or self.stopping,
                    pause.expovariate(1) * self.run.pace,
                )

    def one(self, actions):
        if not self.server.up.wait(1):
            return
        try:
            actions.act()
        except Gone:
            pass  # a server that was killed or closed on purpose; anything else is told already
        except Exception:  # noqa: BLE001: the worker goes on, whatever came back
            self.run.failures.add(f"{self.server.name}: {traceback.format_exc()}")

    def go(self):
        with self.changed:
            self.going = True
            self.changed.notify_all()

    def pause(self, patience):
        """Returns when no action is under way any more."""
        with self.changed:
            self.going = False
            self.changed.notify_all()
            if not self.changed.wait_for(lambda: self.busy == 0, patience):
                self.run.failures.add(f"{self.server.name}: {self.busy} actions do not end")

    def stop(self):
        with self.changed:
            self.stopping = True
            self.changed.notify_all()
        for thread in self.threads:
            thread.join()
