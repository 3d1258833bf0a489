"""Size and memory of servers, side by side:   memory.py SERVER...

Each server gets 64 commands at once that print 1 MB each. Printed, in KB: the size of the file,
and the resident memory (VmRSS) before the commands, after them, and at most (VmHWM).
"""

import json
import os
import subprocess
import sys

COMMANDS = 64
PRINTS = "head -c 1000000 /dev/zero | tr '\\0' x"


def memory(pid, which):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(which + ":"))


def measure(path):
    server = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(count, method, **params):
        for number in range(count):
            request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            server.stdin.write(json.dumps(request).encode() + b"\n")
        server.stdin.flush()
        answers = [json.loads(server.stdout.readline()) for _ in range(count)]
        assert all("result" in answer for answer in answers), answers[0]
        return [answer["result"] for answer in answers]

    ask(1, "initialize", protocolVersion="2025-11-25", capabilities={},
        clientInfo={"name": "memory", "version": "1"})
    before = memory(server.pid, "VmRSS")
    burst = ask(COMMANDS, "tools/call", name="execute_command", arguments={"command": PRINTS})
    for result in burst:
        answer = result["structuredContent"]
        assert answer["stdout_bytes"] == 1000000, answer["notes"]
    after, most = memory(server.pid, "VmRSS"), memory(server.pid, "VmHWM")
    server.stdin.close()
    server.wait()
    return os.path.getsize(path) // 1000, before, after, most


print(f"{'size':>6} {'before':>7} {'after':>7} {'most':>7}   KB")
for server_path in sys.argv[1:]:
    size, before, after, most = measure(server_path)
    print(f"{size:>6} {before:>7} {after:>7} {most:>7}   {server_path}")
