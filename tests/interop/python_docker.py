"""Commands in containers: the conversation of python_client.py there, and containers of users.

What else containers have: docker.mjs. $DOCKER_HOST is an engine on this machine with the images of
tests/helpers/engine.sh.
"""

import base64
import contextlib
import os
import shutil
import subprocess
import tempfile

import anyio
import mcp
from python_client import Here, connect, scenario
from python_support import (
    SERVER,
    alive,
    ask,
    check,
    finish,
    refusal,
    servers,
    steps,
    unique,
    until,
)

MODE = "auto"
VERSION = "2026-07-28"
IN_CONTAINER = ["--execution-mode", "docker"]
ENGINE = {"DOCKER_HOST": os.environ["DOCKER_HOST"]}


async def output_of(*words):
    return (await anyio.run_process(words)).stdout.decode()


async def removed(container, seconds=20):
    """Waits until the engine has removed it, or had done so before."""
    filters = ["--filter", "event=destroy", "--filter", f"container={container}"]
    words = ["docker", "events", "--since", "10m", *filters]
    async with await anyio.open_process(words, stderr=subprocess.DEVNULL) as events:
        with anyio.move_on_after(seconds) as limit:
            await events.stdout.receive()
        events.kill()
    check(not limit.cancelled_caught, f"{container} is gone after {seconds} s")
    left = await output_of("docker", "ps", "-a", "--format", "{{.Names}}")
    check(container not in left.split("\n"), "the container is gone", left)


class InContainer(Here):
    wheels = os.environ["INTEROP_WHEELS"]
    options = [*IN_CONTAINER, "--read-only", wheels]
    variables = ENGINE
    container = ""

    async def installs(self, run, project):
        """There is no network: what pip installs lies in a directory."""
        installed = await run(
            "pip --python .venv/bin/python install --quiet --no-compile --no-index "
            f"--find-links '{self.wheels}' -r '{self.wheels}/requirements.txt'"
        )
        check(installed["success"], "pip", installed)
        check(os.listdir(project) == [".venv"], "on this side, too", project)
        self.container = installed["container"]

    async def closed(self):
        await removed(self.container)


# containers of users ------------------------------------------------------------------------------

MODULE = '''"""Numbers."""


def add(a, b):
    """Adds two numbers."""
    return a + b
'''
USER_TOOLS = [
    "execute_bash",
    "read_file",
    "write_file",
    "read_docstring",
    "list_artifacts",
    "get_artifact",
]


class User:
    """A server with the container of one user."""

    def __init__(self, client):
        self.client = client

    async def ask(self, tool, **arguments):
        return await ask(self.client, tool, **arguments)

    async def bash(self, command, **more):
        return await self.ask("execute_bash", command=command, **more)


async def users(name):
    directory = os.path.realpath(tempfile.mkdtemp(prefix="codeexec-interop-"))
    for place, text in {
        "tools/numbers_of/sums.py": MODULE,
        "skills/adding/SKILL.md": "Adds.\n",
        "secret": "of this machine\n",
    }.items():
        os.makedirs(os.path.dirname(f"{directory}/{place}"), exist_ok=True)
        with open(f"{directory}/{place}", "w", encoding="utf-8") as file:
            file.write(text)

    def parameters(user):
        options = ["--profile", "user-container", "--user-id", user]
        return mcp.StdioServerParameters(
            command=SERVER, args=[*IN_CONTAINER, *options], env=ENGINE, cwd=directory
        )

    step = steps(name)
    containers = []

    async def has_tools():
        for user in (alice, bob):
            tools = [tool.name for tool in await user.client.tools()]
            check(tools == USER_TOOLS, "names", tools)
        begun = await alice.bash("pwd; id -u; [ $BASH_VERSION ]; echo $?; cat /skills/*/SKILL.md")
        check(begun["stdout"] == "/workspace\n1000\n0\nAdds.\n", "where it is", begun)
        used = await alice.bash("python3 -c 'from numbers_of import sums; print(sums.add(2, 3))'")
        check(used["stdout"] == "5\n" and used["exit_code"] == 0, "a tool of the user", used)
        source = {"file_path": "numbers_of.sums", "function_name": "add"}
        told = await alice.ask("read_docstring", **source)
        check(told["docstring"] == "Adds two numbers.", "docstring", told)
        for place in ("/tools/new", "/skills/new", "/etc/new"):
            kept = await alice.bash(f"touch {place}")
            check(kept["exit_code"] != 0 and "Read-only" in kept["stderr"], place, kept)

    async def ends_in_time():
        first, second = unique(), unique()
        ended = await alice.bash(f"setsid sleep {first} & sleep {second}", timeout=1)
        check(ended["timed_out"] and ended["exit_code"] == -1, "timeout", ended)
        await until("nothing of it runs", lambda: not alive(first) and not alive(second), 3)

    async def shares_nothing():
        for user, text in ((alice, "of alice\nand more\n"), (bob, "of bob\n")):
            written = await user.ask("write_file", file_path="mine.txt", content=text)
            check(written["bytes"] == len(text), "written", written)
            seen = await user.bash("cat mine.txt; cp mine.txt /tmp")
            check(seen["stdout"] == text, "by a command", seen)
        own = await alice.ask("read_file", file_path="/workspace/mine.txt")
        check(own["content"] == "of alice\nand more\n", "the own", own)
        line = await alice.ask("read_file", file_path="mine.txt", offset=1, line_count=1)
        check(line["content"] == "and more\n", "a line", line)
        await alice.bash("echo one > only_here; echo one > /tmp/only_here")
        for place in ("only_here", "/tmp/only_here", f"{directory}/secret"):
            looked = await bob.bash(f"cat {place}")
            check(looked["exit_code"] != 0 and looked["stdout"] == "", place, looked)
            error = await refusal(bob.client, "read_file", file_path=place)
            check(os.path.basename(place) in error, "which file", error)

    async def hands_over():
        check((await alice.ask("list_artifacts"))["artifacts"] == [], "none")
        content = bytes(range(256)) * 4
        code = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 4)"
        await alice.bash(f"python3 -c '{code}' > /artifacts/plot.bin; echo > /artifacts/b")
        listed = (await alice.ask("list_artifacts"))["artifacts"]
        names = [(each["name"], each["size"]) for each in listed]
        check(names == [("b", 1), ("plot.bin", 1024)], "listed", listed)
        got = await alice.ask("get_artifact", name="plot.bin")
        check(base64.b64decode(got["content"]) == content and got["size"] == 1024, "got", got)
        check((await bob.ask("list_artifacts"))["artifacts"] == [], "none of the other's")
        for artifact in ("plot.bin", "../workspace/mine.txt"):
            error = await refusal(bob.client, "get_artifact", name=artifact)
            check(artifact in error, "which one", error)

    async def in_their_own():
        for user in (alice, bob):
            containers.append((await user.bash("true"))["container"])
        check(len(set(containers)) == 2, "two containers", containers)

    async with contextlib.AsyncExitStack() as stack:
        alice, bob = [
            User(await stack.enter_async_context(connect(parameters(user), MODE)))
            for user in ("alice", "bob")
        ]
        await step("user containers: bash, tools and skills", has_tools)
        await step("user containers: a command that takes too long", ends_in_time)
        await step("user containers: two users share nothing", shares_nothing)
        await step("user containers: artifacts are handed over", hands_over)
        await step("user containers: one for each", in_their_own)

    async def closed():
        await until("the servers are gone", lambda: servers() == 0)
        for container in containers:
            await removed(container)

    await step("user containers: they go with their servers", closed)
    shutil.rmtree(directory)


async def main():
    name = "Python SDK 2, docker"
    await scenario(name, MODE, VERSION, InContainer())
    await users(name)


anyio.run(main)
finish()
