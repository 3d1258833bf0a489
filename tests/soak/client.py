"""One server process and its one client, who counts what was asked and what came back."""

import json
import os
import signal
import subprocess
import threading
import time

# The longest that anything here may take; nothing is a failure because it was slow.
PATIENCE = int(os.environ.get("PATIENCE", "300"))


class Gone(Exception):
    """The server ended, as it was told to, before it could reply."""


class Failures:
    """What went wrong; each is printed at once, and the first hundred of them in full."""

    def __init__(self):
        self.count = 0
        self.lock = threading.Lock()

    def add(self, text):
        with self.lock:
            self.count += 1
            if self.count <= 100:
                print(f"FAILED: soak {text[:1500]}", flush=True)


class Request:
    def __init__(self, progress):
        self.done = threading.Event()
        self.reply = None
        self.gone = False
        self.progress = progress
        self.last_progress = -1.0


class Server:
    """The same place under a series of processes, of which one runs at a time."""

    def __init__(self, run, name, options, environment=None):
        self.run, self.name, self.options = run, name, options
        self.environment = environment or {}
        self.directory = os.path.join(run.directory, name)
        self.workspace = os.path.join(self.directory, "workspace")
        self.temporary = os.path.join(self.directory, "tmp")
        os.makedirs(self.workspace)
        os.makedirs(self.temporary)
        self.lock = threading.Lock()  # of all that follows
        self.writing = threading.Lock()
        self.malforming = threading.Lock()  # held while malformed lines are sent
        self.generation = 0
        self.up = threading.Event()
        self.pending, self.cancelled, self.next_id = {}, set(), 0
        self.requests = self.replies = self.cancels = self.late = self.died_with = 0
        self.malformed = self.told_malformed = self.progress = self.kills = self.closed = 0
        self.peak = self.lost = self.hurried = self.containers_lost = 0
        self.cpu_of_ended = 0.0

    # its process ----------------------------------------------------------------------------------

    def mark(self):
        return f"{self.run.mark}-{self.name}-{self.generation}."

    def start(self):
        self.generation += 1
        self.hold_until = 0.0
        self.state = {}  # of the actions: what this process should remember
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", "/"),
            "TMPDIR": self.temporary,
            "CODEEXEC_SOAK": self.mark(),
            **self.environment,
        }
        words = [self.run.program, "--workspace", self.workspace, *self.options]
        words += ["--set-env", f"CODEEXEC_SOAK={self.mark()}"]
        with open(os.path.join(self.directory, "stderr"), "ab") as errors:
            self.process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                env=environment, cwd=self.workspace,
            )  # fmt: skip
        # Until here whoever writes finds the one that has ended.
        self.ending = False
        told = (self.process, self.generation)
        self.reader = threading.Thread(target=self.read, args=told, daemon=True)
        self.reader.start()
        told = {"name": "soak", "version": "1"}
        parameters = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": told}
        self.ask("initialize", parameters)
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.up.set()

    def end(self, kill, busy):
        """Ends the process; the caller may start() another one afterwards."""
        self.up.clear()
        self.ending = True
        self.hold_until = 0.0
        self.peak = max(self.peak, self.run.watch.peak(self.process.pid))
        self.cpu_of_ended += self.run.watch.cpu(self.process.pid)
        if kill:
            self.kills += 1
            self.process.send_signal(signal.SIGKILL)
        else:
            self.closed += 1
        with self.writing:
            try:
                self.process.stdin.close()
            except OSError:
                pass  # what was not yet written went with the process
        self.reader.join(PATIENCE)
        if self.reader.is_alive():
            self.run.failures.add(f"{self.name}: its output is still open after its end")
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.run.failures.add(f"{self.name}: still runs, {PATIENCE} s after its input ended")
            self.process.kill()
            code = self.process.wait()
        # What was under way has little time to end then; more of it is told with status 1.
        self.hurried += code == 1 and busy
        if code != (-signal.SIGKILL if kill else 0) and not (code == 1 and busy):
            self.run.failures.add(f"{self.name}: ended with status {code}")
        self.process.stdout.close()

    # what it says ---------------------------------------------------------------------------------

    def read(self, process, generation):
        for line in process.stdout:
            try:
                self.take(json.loads(line))
            except ValueError:
                if not self.ending:
                    self.run.failures.add(f"{self.name}: not a message: {line[:200]!r}")
            wait = self.hold_until - time.monotonic()
            if wait > 0:
                time.sleep(wait)
        if not self.ending:
            status = process.poll()
            self.run.failures.add(f"{self.name}: generation {generation} ended by itself: {status}")
            self.up.clear()
        with self.lock:
            for request in self.pending.values():
                self.died_with += 1
                request.gone = True
                request.done.set()
            self.pending.clear()
            self.cancelled.clear()

    def take(self, message):
        with self.lock:
            if message.get("method") == "notifications/progress":
                return self.take_progress(message["params"])
            identity = message.get("id")
            if identity is None:
                if message.get("error", {}).get("code") == -32700:
                    self.told_malformed += 1
                    return None
            elif identity in self.pending and self.ending:
                # What has to end with the server says so, or still ends as it should.
                self.died_with += 1
                request = self.pending.pop(identity)
                request.gone = True
                return request.done.set()
            elif identity in self.pending:
                self.replies += 1
                request = self.pending.pop(identity)
                request.reply = message
                return request.done.set()
            elif identity in self.cancelled:
                self.cancelled.discard(identity)
                self.late += 1
                return None
        return self.run.failures.add(f"{self.name}: nobody asked for {json.dumps(message)[:300]}")

    def take_progress(self, parameters):
        self.progress += 1
        token = parameters["progressToken"]
        request = self.pending.get(token)
        if request is None or not request.progress:
            if token not in self.cancelled:
                self.run.failures.add(f"{self.name}: progress of {token}, which does not run")
        elif parameters["progress"] <= request.last_progress:
            self.run.failures.add(f"{self.name}: progress went back: {parameters}")
        else:
            request.last_progress = parameters["progress"]

    # what it is asked -----------------------------------------------------------------------------

    def write(self, message):
        data = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
        with self.writing:
            try:
                self.process.stdin.write(data)
                self.process.stdin.flush()
            except (OSError, ValueError):
                if not self.ending:
                    self.run.failures.add(f"{self.name}: does not read any more")
                raise Gone() from None

    def send(self, method, parameters=None, progress=False):
        """Asks, and returns the id and the request to wait for."""
        request = Request(progress)
        with self.lock:
            self.next_id += 1
            # Both kinds that the protocol knows.
            identity = self.next_id if self.next_id % 5 else f"id-{self.next_id}"
            self.pending[identity] = request
            self.requests += 1
        message = {"jsonrpc": "2.0", "id": identity, "method": method}
        if parameters is not None:
            message["params"] = dict(parameters)
            if progress:
                message["params"]["_meta"] = {"progressToken": identity}
        try:
            self.write(message)
        except Gone:
            # It may have come too late for read() to see that it ends with the server.
            with self.lock:
                if self.pending.pop(identity, None):
                    self.died_with += 1
            raise
        return identity, request

    def receive(self, identity, request):
        if not request.done.wait(PATIENCE):
            with self.lock:
                lost = self.pending.pop(identity, None)
            if lost:
                with self.lock:
                    self.lost += 1
                self.run.failures.add(f"{self.name}: no reply to request {identity}")
                raise Gone()
        if request.gone:
            raise Gone()
        return request.reply

    def ask(self, method, parameters=None):
        return self.receive(*self.send(method, parameters))

    def cancel(self, identity):
        """After this there may be a reply, if it was on its way already, or none."""
        with self.lock:
            request = self.pending.pop(identity, None)
            if request is not None:
                self.cancels += 1
                self.cancelled.add(identity)
        self.write(
            {
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": identity, "reason": "soak"},
            }
        )
        return request is not None

    def call(self, tool, progress=False, **arguments):
        """The structured content of a tool's answer; of one that has none, the whole result."""
        told = {"name": tool, "arguments": arguments}
        reply = self.receive(*self.send("tools/call", told, progress))
        result = reply.get("result")
        if result is None:
            return reply
        return result.get("structuredContent", result)
