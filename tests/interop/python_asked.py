"""The person at the client is asked: the fixture server and the official Python SDK, version 1 or 2
(whichever is installed), which calls back with each question. The one answers requests of the
server's, the other also asks again with the answer, as 2026-07-28 has it.
"""

import os
from importlib import metadata

import anyio
import mcp
from mcp.client.stdio import StdioServerParameters, stdio_client
from python_support import check

MAJOR = int(metadata.version("mcp").split(".")[0])
FIXTURE = os.environ["CODEEXEC_MCP_FIXTURE"]
asked = []


async def answer(context, params):
    asked.append(params.message)
    check("email" in str(params), "schema", params)
    if params.message == "no":
        return mcp.types.ElicitResult(action="decline")
    content = {"username": "ada", "email": "ada@example.org"}
    return mcp.types.ElicitResult(action="accept", content=content)


async def scenario(name, call):
    asked.clear()
    for message, wanted in (("yes", "action=accept"), ("no", "action=decline")):
        result = await call("test_elicitation", {"message": message})
        text = result.content[0].text
        check(wanted in text, "text", text)
        check(message == "no" or "ada@example.org" in text, "text", text)
    check(asked == ["yes", "no"], "asked", asked)
    print(f"ok: {name} answers for the person")


async def refusal(name, call):
    result = await call("test_elicitation", {"message": "yes"})
    text = result.content[0].text
    check("does not offer" in text, "text", text)
    print(f"ok: {name} without a callback is not asked")


async def main():
    parameters = StdioServerParameters(command=FIXTURE)
    for callback, steps in ((answer, scenario), (None, refusal)):
        if MAJOR == 1:
            async with (
                stdio_client(parameters) as streams,
                mcp.ClientSession(*streams, elicitation_callback=callback) as session,
            ):
                await session.initialize()
                await steps("python_v1", session.call_tool)
        else:
            for mode in ("auto", "2026-07-28", "legacy"):
                async with mcp.Client(
                    parameters, mode=mode, elicitation_callback=callback
                ) as client:
                    name = f"python_v2, {mode} ({client.protocol_version})"
                    await steps(name, client.call_tool)


anyio.run(main)
