"""An agent with the tools of a client library that has none: it asks the model of $OPENAI_BASE_URL
what to call, and gives it what a library's result shows first, its `content`.

    python3 ask_model.py fastmcp|massgen PROGRAM.py SERVER

PROGRAM.py is the part of docs/clients.md; for massgen, SERVER prints its entry.
"""

import asyncio
import importlib.util
import json
import os
import subprocess
import sys
import types
import urllib.request

NAME, PROGRAM, SERVER = sys.argv[1:4]


def ask(messages, tools):
    body = {"model": "gpt-5", "messages": messages, "tools": tools}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(),
        {"content-type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["choices"][0]["message"]


async def converse(tools, call):
    offered = [{"type": "function", "function": {"name": name, "parameters": schema}}
               for name, schema in tools.items()]
    messages = [{"role": "user", "content": "Run the tests."}]
    while wanted := (message := await asyncio.to_thread(ask, messages, offered)).get("tool_calls"):
        messages.append(message)
        for each in wanted:
            function = each["function"]
            result = await call(function["name"], json.loads(function["arguments"]))
            text = "\n".join(part.text for part in result.content if part.type == "text")
            messages.append({"role": "tool", "tool_call_id": each["id"], "content": text})
    print(message["content"])


async def with_fastmcp(client):
    async with client:
        tools = {tool.name: getattr(tool, "input_schema", None) or tool.inputSchema
                 for tool in await client.list_tools()}
        await converse(tools, lambda name, words:
                       client.call_tool(name, words, raise_on_error=False))


async def with_massgen(entries):
    from massgen.mcp_tools.client import MCPClient

    client = MCPClient(entries)
    await client.connect()
    try:
        tools = {name: tool.inputSchema for name, tool in client.tools.items()}
        await converse(tools, client.call_tool)
    finally:
        await client.disconnect()


def load_page():
    names = {}
    with open(PROGRAM, encoding="utf-8") as file:
        exec(compile(file.read(), PROGRAM, "exec"), names)
    return names


def massgen_entries():
    """What the server prints for MassGen. Of MassGen's package the client alone is loaded, and not
    what the packages around it import for all its models."""
    package = os.path.dirname(importlib.util.find_spec("massgen").origin)
    for name in ("", ".utils", ".mcp_tools"):
        module = types.ModuleType("massgen" + name)
        module.__path__ = [os.path.join(package, name[1:])]
        sys.modules[module.__name__] = module
    import yaml

    printed = subprocess.run([SERVER, "--client-config", "massgen"], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
    return yaml.safe_load(printed)["mcp_servers"]


if NAME == "fastmcp":
    asyncio.run(with_fastmcp(load_page()["client"]))
else:
    asyncio.run(with_massgen(massgen_entries()))
