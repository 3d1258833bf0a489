"""A short talk of the official Python SDK (version 1) with an installed server:

client.py NAME COMMAND [ARGUMENT...]      with $VERSION, that of the server

It prints "ok: NAME: ..." or "FAILED: NAME: ..." for each step. What all tools do is the business of
tests/interop; this is about whether the server has been installed whole.
"""

import os
import sys

import anyio
import mcp
from mcp.client.stdio import stdio_client

# Of the helpers there, none of those used here needs to know the server.
os.environ.setdefault("CODEEXEC_MCP", "")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../interop"))
from python_support import check, finish, steps, structured  # noqa: E402
from python_tools import NAMES  # noqa: E402


async def main(name, command, arguments):
    step = steps(name)
    parameters = mcp.StdioServerParameters(command=command, args=arguments)
    with anyio.fail_after(100):
        async with stdio_client(parameters) as streams, mcp.ClientSession(*streams) as session:

            async def ask(tool, **given):
                return structured(await session.call_tool(tool, given))

            async def initializes():
                answer = await session.initialize()
                check(answer.serverInfo.version == os.environ["VERSION"], "version", answer)

            async def lists_tools():
                tools = (await session.list_tools()).tools
                check([tool.name for tool in tools] == NAMES, "tools", tools)

            async def runs_commands():
                done = await ask("execute_command", command="echo hello; echo oops >&2; exit 3")
                got = (done["stdout"], done["stderr"], done["exit_code"])
                check(got == ("hello\n", "oops\n", 3), "the result", done)
                refused = await ask("execute_command", command="sudo true")
                check("'sudo' is not allowed" in refused["stderr"], "a refusal", refused)

            async def keeps_a_session():
                goes = "mkdir -p kept && cd kept && export KEPT=it"
                await ask("execute_command", command=goes, session_id="one")
                there = await ask("execute_command", command="pwd; echo $KEPT", session_id="one")
                check(there["stdout"].endswith("/kept\nit\n"), "where it was", there)

            async def has_background_shells():
                started = await ask("start_background_shell", command="read x; echo got $x")
                which = {"shell_id": started["shell_id"]}
                await ask("write_background_shell", input="it\n", **which)
                output = await ask("get_background_shell_output", wait_for="exit", **which)
                check(output["stdout"] == "got it\n", "its output", output)

            await step("is initialized", initializes)
            await step("lists its tools", lists_tools)
            await step("runs commands", runs_commands)
            await step("keeps a session", keeps_a_session)
            await step("runs a background shell", has_background_shells)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2], sys.argv[3:])
    finish()
