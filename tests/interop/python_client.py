"""The official Python SDK, version 1 or 2 (whichever is installed); the same steps as scenario.mjs.

Version 2 connects in each of its ways: asking first, pinned to the modern revision, and with the
old handshake.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
from datetime import timedelta
from importlib import metadata

import anyio
import mcp
from mcp.client.stdio import stdio_client
from python_support import (
    SERVER,
    alive,
    check,
    finish,
    member,
    servers,
    steps,
    structured,
    unique,
    until,
)
from python_tools import NAMES, Tools

KEYS = ["success", "exit_code", "stdout", "stderr", "execution_time", "command", "work_dir"]
MAJOR = int(metadata.version("mcp").split(".")[0])

# clients ------------------------------------------------------------------------------------------


class ClientV1:
    """The session of version 1, with what it lacks: it sends nothing when a call is cancelled."""

    def __init__(self, session, initialized):
        self.session = session
        self.version = initialized.protocolVersion
        self.info = initialized.serverInfo

    async def tools(self):
        return (await self.session.list_tools()).tools

    async def call(self, tool, arguments, progress=None):
        request_id = self.session._request_id  # the one that the next request gets
        try:
            return await self.session.call_tool(
                tool,
                arguments,
                read_timeout_seconds=timedelta(seconds=120),
                progress_callback=progress,
            )
        except anyio.get_cancelled_exc_class():
            params = mcp.types.CancelledNotificationParams(requestId=request_id)
            notification = mcp.types.CancelledNotification(
                method="notifications/cancelled", params=params
            )
            with anyio.CancelScope(shield=True):
                await self.session.send_notification(mcp.types.ClientNotification(notification))
            raise


class ClientV2:
    def __init__(self, client):
        self.client = client
        self.version = client.protocol_version
        self.info = client.server_info

    async def tools(self):
        return (await self.client.list_tools()).tools

    async def call(self, tool, arguments, progress=None):
        return await self.client.call_tool(
            tool, arguments, read_timeout_seconds=120, progress_callback=progress
        )


@contextlib.asynccontextmanager
async def connect(parameters, mode):
    if MAJOR == 1:
        async with stdio_client(parameters) as streams, mcp.ClientSession(*streams) as session:
            initialized = await session.initialize()
            await session.send_ping()
            yield ClientV1(session, initialized)
    else:
        async with mcp.Client(parameters, mode=mode) as client:
            yield ClientV2(client)


# the scenario -------------------------------------------------------------------------------------


def dictionary(result):
    """The result of execute_command: the known keys first, in their order."""
    answer = structured(result)
    check(list(answer)[:7] == KEYS, "keys", answer)
    return answer


class Here:
    """Where the commands run, here on this machine."""

    options = []  # of the server
    variables = {}  # of the server

    async def installs(self, run, project):
        """Brings pytest into the .venv of the project."""
        python = os.path.join(project, ".venv/bin/python")
        requirements = os.environ["INTEROP_PROJECT_REQUIREMENTS"]
        pip = [*os.environ["INTEROP_PIP"].split(), "--python", python]
        subprocess.run([*pip, "install", "--quiet", "-r", requirements], check=True)

    async def closed(self):
        """Checks what must hold when the server is gone."""


async def scenario(name, mode, version, place=Here()):
    workspace = os.path.realpath(tempfile.mkdtemp(prefix="codeexec-interop-"))
    project = os.path.join(workspace, "project")
    parameters = mcp.StdioServerParameters(
        command=SERVER,
        args=["--allowed-paths", workspace, "--timeout", "60", *place.options],
        env=place.variables,
        cwd=workspace,
    )

    step = steps(name)

    async def run(command, progress=None, **more):
        arguments = {"command": command, "work_dir": project, **more}
        return dictionary(await client.call("execute_command", arguments, progress))

    async def connects():
        check(client.version == version, "version", client.version)
        if mode in ("auto", "legacy"):  # a pinned client asks for nothing
            check(client.info.name and client.info.version, "server info", client.info)
        check(servers() == 1, "one server process", servers())

    async def lists_the_tools():
        tools = await client.tools()
        check([tool.name for tool in tools] == NAMES, "names", tools)
        for tool in tools:
            check(tool.annotations.title and tool.description, "told", tool)
            check(member(tool, "inputSchema", "input_schema")["type"] == "object", "told", tool)
            reads = tool.name.startswith(("get_", "list_", "read_", "search_"))
            hint = member(tool.annotations, "readOnlyHint", "read_only_hint")
            check(bool(hint) == reads, "whether it only reads", tool)
        schema = member(tools[0], "inputSchema", "input_schema")
        check(schema["required"] == ["command"], "schema", schema)
        for argument in ("command", "timeout", "work_dir"):
            check(argument in schema["properties"], argument, schema)

    async def makes_a_project():
        os.mkdir(project)
        venv = await run("python3 -m venv --without-pip .venv")
        check(venv["success"], "venv", venv)
        await place.installs(run, project)
        files = await run(
            "printf 'def add(a, b):\\n    return a - b  # wrong\\n' > adder.py\n"
            "printf 'from adder import add\\n\\n\\ndef test_add():\\n    assert add(2, 3) == 5\\n'"
            " > test_adder.py"
        )
        check(files["success"], "files", files)

    async def one_fails():
        result = await run("pytest -q")
        check(not result["success"] and result["exit_code"] == 1, "exit code", result)
        check("1 failed" in result["stdout"], "report", result)
        python = await run("python -c 'import sys; print(sys.prefix)'")
        check(python["stdout"] == f"{project}/.venv\n", "the venv of the project", python)
        check(result["command"] == "pytest -q" and result["work_dir"] == project, "echo", result)

    async def told_what_it_does_not_know():
        """The seven keys and where it ran, when nothing happened; a note when something did."""
        result = await run("true " + "x" * 300)
        others = [key for key in result if key not in ("container", "place")]
        check(others == KEYS, "no other keys", result)
        check(result["command"] == "true " + "x" * 195 + "... (305 bytes)", "its beginning", result)
        left = await run("sleep 300 & echo up")
        check(left["success"] and left["stdout"] == "up\n", "a success", left)
        note = "1 process that the command left behind was ended; use start_background_shell"
        check(left["notes"] == [note], "a note", left)

    async def all_pass():
        check((await run("sed -i 's/a - b.*/a + b/' adder.py"))["success"], "sed")
        result = await run("pytest -q")
        check(result["success"] and result["exit_code"] == 0, "exit code", result)
        check("1 passed" in result["stdout"], "report", result)

    async def refusal():
        result = await run("sudo true")
        check(not result["success"] and result["exit_code"] == -1, "exit code", result)
        check("Use of 'sudo' is not allowed" in result["stderr"], "message", result)

    async def progress():
        seen, duration = [], unique()
        with anyio.CancelScope() as scope:

            async def on_progress(value, total, message):
                seen.append(value)
                if len(seen) == 2:
                    scope.cancel()

            await run(f"sleep {duration}", progress=on_progress)
        check(scope.cancelled_caught, "the call was going on")
        check(len(seen) >= 2 and seen[1] > seen[0], "progress grows", seen)
        await until("the command is gone", lambda: not alive(duration))

    async def cancels():
        duration, escaped = unique(), unique()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, f"setsid sleep {escaped} & sleep {duration}; true")
            await until("the command runs", lambda: alive(duration) and alive(escaped))
            check((await run("echo meanwhile"))["stdout"] == "meanwhile\n", "a call beside it")
            tasks.cancel_scope.cancel()
        await until("the command is gone", lambda: not alive(duration) and not alive(escaped))
        check((await run("echo still here"))["stdout"] == "still here\n", "a call afterwards")

    async def times_out():
        first, second, third = unique(), unique(), unique()
        result = await run(
            f"echo begun; sleep {first} & setsid sleep {second} & "
            f"(trap '' TERM; sleep {third}) & wait",
            timeout=1,
        )
        check(not result["success"] and result["exit_code"] == -1, "exit code", result)
        check("Command timed out after 1 second" in result["stderr"], "message", result)
        check("begun" in result["stdout"], "what it had printed", result)
        for duration in (first, second, third):
            await until(f"sleep {duration} is gone", lambda: not alive(duration), 3)

    async with connect(parameters, mode) as client:
        await step(f"connects with protocol {version}", connects)
        await step("lists the tools", lists_the_tools)
        await step("makes a Python project with a .venv and pytest", makes_a_project)
        await step("runs its tests: one fails", one_fails)
        await step("is told what it does not know", told_what_it_does_not_know)
        await step("repairs it and runs its tests: all pass", all_pass)
        await step("gets a refusal as a result", refusal)
        await step("sees progress while a command runs", progress)
        await step("cancels a long call: its processes are gone, the server answers", cancels)
        await step("times out a call that leaves grandchildren: none is alive", times_out)
        await Tools(client, workspace, project).use(step)
        background = unique()
        await client.call("start_background_shell", {"command": f"sleep {background}"})
        await until("it runs", lambda: alive(background))

    async def closed():
        await until("the server is gone", lambda: servers() == 0)
        await until("what it ran is gone", lambda: not alive(background))
        await place.closed()

    await step("closes: the server and what it ran are gone", closed)
    shutil.rmtree(workspace)


async def main():
    modern, legacy = "2026-07-28", "2025-11-25"
    if MAJOR == 1:
        await scenario("Python SDK 1", "legacy", legacy)
    else:
        await scenario("Python SDK 2, auto", "auto", modern)
        await scenario("Python SDK 2, pinned", modern, modern)
        await scenario("Python SDK 2, legacy", "legacy", legacy)


if __name__ == "__main__":
    anyio.run(main)
    finish()
