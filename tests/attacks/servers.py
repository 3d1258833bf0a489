"""Runs that need more of a server than one command: its end, its supervisor, its protocol."""

import json
import os
import signal
import threading
import time

from cases import LOST_SERVER, Run, finish_lost, wait_for_hold
from judges import survived


def kill_server(number):
    """Ends the server in the middle of a command."""
    def run(case):
        process = case.start()
        wait_for_hold(case, process)
        process.send_signal(number)
        return finish_lost(case, process)
    return run


def lost(case, run):
    return survived(case, run, LOST_SERVER if case.sandboxed else 0.3)




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
