"""MassGen's own package against this program, called as fastmcp:

    python check.py FOLDER [NAME...]
                                  FOLDER is empty, NAME begins the name of a file of MassGen's; with
                                  CODEEXEC_MCP, and CODEEXEC_TEST_DOCKER=1 with
                                  DOCKER_HOST for the agents that run in containers

Each agent of the files that MassGen ships is made by its own create_agents_from_config, and its
MCPClient calls the tool. Prints a line for each: ok:, FAILED: or SKIPPED:.
"""
import asyncio
import contextlib
import copy
import io
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import traceback
import uuid

import yaml

PROGRAM = os.environ["CODEEXEC_MCP"]
HAS_ENGINE = os.environ.get("CODEEXEC_TEST_DOCKER") == "1"
TOOL = "mcp__command_line__execute_command"
failed = False


def report(what, name, text=""):
    global failed
    failed = failed or what == "FAILED"
    print(f"{what}: massgen {name}" + (f": {text}" if text else ""), flush=True)


def call_of(client, command):
    result = asyncio.get_event_loop().run_until_complete(
        client.call_tool(TOOL, {"command": command}))
    return json.loads(result.content[0].text)


class Wrong(Exception):
    """A check that does not hold; the text says which."""


def expect(condition, text):
    if not condition:
        raise Wrong(text)


def configurations():
    """The files: the folder of command execution, the two of permissions, and that of srt."""
    import massgen

    configs = pathlib.Path(massgen.__file__).parent / "configs"
    files = sorted((configs / "tools/code-execution").glob("*.yaml"))
    expect(len(files) == 12, f"{len(files)} files instead of 12")
    return files + [configs / "tools/permissions/permission_engine.yaml",
                    configs / "tools/filesystem/fs_permissions_test.yaml",
                    configs / "tools/filesystem/sandbox/srt_sandbox.yaml"]


def agents_of(config):
    return config["agents"] if "agents" in config else [config["agent"]]


def make_agent(config, agent):
    """The agent as MassGen makes it; of a kind that needs a program of its own, one of OpenAI's."""
    from massgen.cli.backends import create_agents_from_config

    agent = copy.deepcopy(agent)
    # As MassGen's program does for all agents of a file.
    agent["backend"]["instance_id"] = uuid.uuid4().hex[:8]
    cpus = agent["backend"].get("command_line_docker_cpu_limit")
    if cpus:  # an engine refuses more than its machine has
        agent["backend"]["command_line_docker_cpu_limit"] = min(cpus, os.cpu_count())
    if agent["backend"]["type"] not in ("openai", "gemini"):
        agent["backend"].update(type="openai", model="gpt-5-mini")
    orchestrator = config.get("orchestrator", {})
    made = create_agents_from_config({**config, "agents": [agent]} if "agents" in config else
                                     {**config, "agent": agent}, orchestrator)
    backend = made[agent["id"]].backend
    manager = backend.filesystem_manager
    manager.setup_orchestration_paths(
        agent_id=agent["id"], snapshot_storage=orchestrator.get("snapshot_storage"),
        agent_temporary_workspace=orchestrator.get("agent_temporary_workspace"))
    return backend


def entry_of(backend):
    """What MassGen hands to its client; agents without commands have none, and get it here."""
    manager = backend.filesystem_manager
    manager.update_backend_mcp_config(backend.config)
    servers = backend.config.get("mcp_servers", [])
    for server in servers if isinstance(servers, list) else []:
        if server.get("name") == "command_line":
            return server
    return manager.get_command_line_mcp_config()


def stderr_of_server():
    from massgen.logger_config import get_log_session_dir

    return (get_log_session_dir() / "mcp_command_line_stderr.log").read_text()


def words_for(backend, command):
    """The command, in words that a list of allowed commands lets pass."""
    allowed = backend.filesystem_manager.command_line_allowed_commands
    if not allowed:
        return command
    return f"python3 -c 'import os; os.system({json.dumps(command)})'"


def check_denied(client, backend):
    """What the file denies is denied, in each form that the lists name and in some more."""
    manager = backend.filesystem_manager
    for pattern in manager.command_line_blocked_commands or []:
        # Harmless where they are not refused: there is no repository, and no file of that name.
        for command in (pattern, f"{pattern} nothing-there", f"true && {pattern} nothing-there"):
            result = call_of(client, command)
            expect(not result["success"] and result["exit_code"] == -1,
                   f"{command!r} was not refused: {result}")
    if manager.command_line_allowed_commands:
        for command in ("ls", "true; python3 --version", "env python3 --version", "cat x.txt"):
            result = call_of(client, command)
            expect("not in allowed list" in result["stderr"], f"{command!r}: {result}")


def check_agent(config, agent):
    """Makes the agent, and lets MassGen's client run commands. Returns a text for the report."""
    from massgen.mcp_tools.client import MCPClient

    backend = make_agent(config, agent)
    manager = backend.filesystem_manager
    wanted = agent["backend"].get("command_line_execution_mode", "local")
    mode = manager.command_line_execution_mode
    expect(mode == wanted, f"MassGen took {mode} for {wanted}")
    client = MCPClient([entry_of(backend)], timeout_seconds=60)
    loop = asyncio.get_event_loop()
    try:
        try:
            loop.run_until_complete(client.connect())
        except Exception as error:
            raise Wrong(f"{error}: {stderr_of_server()}") from error
        expect(client.is_connected(), "not connected")
        expect(client.get_available_tools() == [TOOL], client.get_available_tools())
        expect("in place of MassGen's code execution server" in stderr_of_server(),
               f"another server answered: {stderr_of_server()}")
        result = call_of(client, words_for(backend, "pwd; echo made > x.txt; cat x.txt; hostname"))
        expect(result["success"], result)
        folder, made, host = result["stdout"].split()
        expect(folder == str(manager.cwd), f"ran in {folder}, and the files are in {manager.cwd}")
        expect(made == "made" and (manager.cwd / "x.txt").read_text() == "made\n", "no x.txt there")
        if manager.docker_manager:
            container = manager.docker_manager.get_container(agent["id"])
            expect(container.short_id.startswith(host), f"ran on {host}, not in the container")
            # MassGen makes containers anew while it runs, under the same name.
            container.restart(timeout=0)
            result = call_of(client, "cat x.txt")
            if not result["success"]:  # the one that finds the connection lost may say so
                result = call_of(client, "cat x.txt")
            expect(result["stdout"] == "made\n", f"after a restart: {result}")
        else:
            expect(host == socket.gethostname(), f"ran on {host}")
        check_denied(client, backend)
        if mode == "srt":
            check_srt(client, manager)
        return f"{mode}, {folder}"
    finally:
        loop.run_until_complete(client.disconnect())
        if manager.docker_manager:
            manager.docker_manager.cleanup(agent["id"])


def check_srt(client, manager):
    """What srt's settings deny: the rest of the home, files elsewhere, the network."""
    secret = pathlib.Path.home() / "secret.txt"
    secret.write_text("nobody's business")
    result = call_of(client, f"cat {secret}; cat /etc/shadow")
    expect("business" not in result["stdout"] and not result["success"], result)
    outside = manager.cwd.parent / "outside.txt"
    result = call_of(client, f"echo no > {outside}")
    expect(not result["success"] and not outside.exists(), result)
    result = call_of(client, "python3 -c 'import socket; socket.socket()'")
    expect(not result["success"], result)


def check_permissions(config, agent):
    """The rules of permission_engine.yaml are held by MassGen's own hook, before the call."""
    from massgen.permissions.hooks import PermissionEngineHook
    from massgen.permissions.rules import PermissionRuleSet

    rules = PermissionRuleSet.from_config(agent["backend"]["permissions"]["rules"])
    hook = PermissionEngineHook(rules=rules)

    def decision(command):
        result = asyncio.get_event_loop().run_until_complete(
            hook.execute(TOOL, json.dumps({"command": command})))
        return result.decision

    wanted = {"git push --force origin main": "deny", "npm publish x": "ask",
              "git status": "allow", "git diff HEAD": "allow"}
    for command, word in wanted.items():
        expect(decision(command) == word, f"{command}: {decision(command)}")


def check_entry():
    """What --client-config massgen prints is accepted at all of the client's levels."""
    from massgen.mcp_tools.client import MCPClient

    folder = pathlib.Path.cwd() / "entry"
    folder.mkdir()
    printed = subprocess.run([PROGRAM, "--client-config", "massgen", "--allowed-paths", folder],
                             capture_output=True, text=True, check=True).stdout
    entry = yaml.safe_load(printed)["mcp_servers"][0]
    loop = asyncio.get_event_loop()
    for level in ("strict", "moderate", "permissive"):
        wanted = copy.deepcopy(entry)
        wanted.setdefault("security", {})["level"] = level
        client = MCPClient([wanted], timeout_seconds=60)
        try:
            loop.run_until_complete(client.connect())
            result = call_of(client, f"cd {folder} && pwd")
            expect(result["stdout"] == f"{folder}\n", result)
        finally:
            loop.run_until_complete(client.disconnect())


def check_conversion(path, config, agent):
    """The file as examples/from_massgen.py converts it starts, and denies what it denies."""
    root = pathlib.Path(__file__).resolve().parents[3]
    run = subprocess.run([sys.executable, root / "examples/from_massgen.py", path, "--agent",
                          agent["id"]], capture_output=True, text=True)
    expect(run.returncode == 0, run.stderr)
    converted = pathlib.Path(f"{agent['id']}.json").resolve()
    converted.write_text(run.stdout)
    command = agent["backend"].get("command_line_blocked_commands", ["true"])[0]
    checked = subprocess.run([PROGRAM, "--config", converted, "--check", command],
                             capture_output=True, text=True)
    expect(checked.returncode in (0, 1), checked.stderr)
    expect((checked.returncode == 1) == (command != "true" or "allowed_commands" in run.stdout),
           f"{command}: {checked.stdout}")


def attempt(name, check, *arguments):
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            text = check(*arguments)
        report("ok", name, text or "")
    except Wrong as error:
        report("FAILED", name, str(error)[:600])
    except Exception:
        report("FAILED", name, traceback.format_exc()[-1200:].replace("\n", " | "))


IMAGES = ("ghcr.io/massgen/mcp-runtime:latest", "ghcr.io/massgen/mcp-runtime-sudo:latest",
          "massgen/mcp-runtime:latest", "massgen/mcp-runtime-sudo:latest",
          "massgen-custom-test:v1")


def look_outside():
    """MassGen takes the mode docker for local in a container; here is an engine all the same."""
    exists = os.path.exists
    os.path.exists = lambda path: path != "/.dockerenv" and exists(path)


def tag_images():
    for image in IMAGES:
        subprocess.run(["docker", "tag", "codeexec-test/busybox:latest", image], check=True)


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    os.chdir(folder)
    # What the client gives to servers: a HOME and a PATH, and nothing else of this.
    home = folder / "home"
    home.mkdir()
    os.environ["HOME"] = str(home)
    for key in ("OPENAI", "GEMINI", "GOOGLE", "ANTHROPIC", "XAI"):
        os.environ[f"{key}_API_KEY"] = "x"
    path = subprocess.run([PROGRAM, "--massgen-path"], capture_output=True, text=True, check=True)
    os.environ["PATH"] = path.stdout.strip() + ":" + os.environ["PATH"]
    os.environ["GITHUB_TOKEN"] = "x"
    (folder / ".env").write_text("GITHUB_TOKEN=x\n")
    for missing in ("massgen/configs/resources/v0.0.21-example", "massgen/docker"):
        (folder / missing).mkdir(parents=True)
    asyncio.set_event_loop(asyncio.new_event_loop())
    if HAS_ENGINE:
        look_outside()
        tag_images()
    agents = 0
    names = tuple(sys.argv[2:]) or ("",)
    for file in configurations():
        if not file.stem.startswith(names):
            continue
        config = yaml.safe_load(file.read_text())
        for agent in agents_of(config):
            name = f"{file.stem} {agent['id']}"
            agents += 1
            attempt(f"{name}, converted", check_conversion, file, config, agent)
            if agent["backend"].get("command_line_execution_mode") == "docker" and not HAS_ENGINE:
                report("SKIPPED", name, "no container engine; set CODEEXEC_TEST_DOCKER=1")
                continue
            attempt(name, check_agent, config, agent)
            if "permissions" in agent["backend"]:
                attempt(f"{name}, its rules", check_permissions, config, agent)
    attempt("--client-config massgen", check_entry)
    if not sys.argv[2:]:
        expect(agents == 22, f"{agents} agents instead of 22")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
