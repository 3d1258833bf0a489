#!/usr/bin/env python3
"""An MCP client without packages: starts the server, introduces itself, runs a command.

    python3 examples/python_client.py codeexec-mcp --allowed-paths "$PWD"

The words are the server and its options. One JSON message per line goes to its standard input, and
one comes back from its standard output.
"""
import json
import subprocess
import sys

server = subprocess.Popen(sys.argv[1:] or ["codeexec-mcp"], text=True, encoding="utf-8",
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def send(**message):
    print(json.dumps(dict(message, jsonrpc="2.0")), file=server.stdin, flush=True)


def ask(number, method, **params):
    send(id=number, method=method, params=params)
    for line in server.stdout:  # what comes without this id is news from the server
        if json.loads(line).get("id") == number:
            return json.loads(line)["result"]
    sys.exit("the server has ended; its standard error says why")


client = {"name": "python_client", "version": "1"}
hello = ask(1, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)
send(method="notifications/initialized")
print(f"{hello['serverInfo']['name']} speaks {hello['protocolVersion']}")
for number, command in enumerate(["echo $((6 * 7)); echo oops >&2; exit 3", "sudo ls"], 2):
    result = ask(number, "tools/call", name="execute_command", arguments={"command": command})
    print(f"> {command}\n{result['content'][0]['text'].rstrip()}")
server.stdin.close()  # which ends the server
sys.exit(server.wait())
