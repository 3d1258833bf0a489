#!/usr/bin/env python3
"""Converts a MassGen configuration to one of codeexec-mcp:

    python3 examples/from_massgen.py agents.yaml > codeexec.json
    python3 examples/from_massgen.py agents.yaml --agent coder > coder.json
    codeexec-mcp --config codeexec.json --check true

Prints the configuration as JSON to standard output. Prints each key that it leaves out to standard
error, with the reason. Relative paths become absolute ones, from the current folder. Reads YAML
with PyYAML and, without it, JSON. The exit status is 0; 1 if the file cannot be converted; 2 if the
command line is wrong or PyYAML is missing.
"""
import argparse
import json
import os
import sys

LONGEST_FILE = 1 << 20  # bytes
MOST_VALUES = 10000  # after aliases of YAML, which can stand for many values, are expanded
DEEPEST = 20

# Keys of an agent's backend that mean the same here, after an optional command_line_.
SAME = {
    "allowed_commands": "list", "blocked_commands": "list", "docker_image": "text",
    "docker_memory_limit": "text or number", "docker_cpu_limit": "number",
    "docker_network_mode": "text", "docker_credentials": "object", "docker_packages": "object",
    "docker_enable_sudo": "flag", "instance_id": "text", "command_execution_prefix": "text",
    "command_execution_venv_path": "text"}
RENAMED = {"whitelist_patterns": "allowed_commands", "blacklist_patterns": "blocked_commands"}
TYPES = {"list": list, "text": str, "number": (int, float), "text or number": (int, float, str),
         "object": dict, "flag": bool}

LEFT_OUT = {
    "enable_mcp_command_line": "set it to false, and name this server in mcp_servers: see "
                               "codeexec-mcp --client-config massgen --config FILE",
    "docker_run_mcp_inside": "the server always runs outside, where no command reaches it",
    "srt_network_allowed_domains": "the network is off; to allow these hosts, set network to allow "
                                   "and name them in allow_domains",
    "srt_deny_read": "only what is allowed, and what programs need of the system, can be read",
    "srt_allow_unix_sockets": "unix_sockets allows all of them or none; set it if you need it",
    "agent_temporary_workspace": "name the folder in read_only if commands shall read it",
    "context_write_access_enabled": "a path's permission counts from the start"}


class Unusable(Exception):
    """The file cannot be converted; the text says why."""


def shown(value):
    """The text in quotes, escaped and cut, so that it is safe on a terminal."""
    return json.dumps(str(value)[:80])


def say(text):
    print(text, file=sys.stderr)


def load(path):
    with open(path, "rb") as file:
        data = file.read(LONGEST_FILE + 1)
    if len(data) > LONGEST_FILE:
        raise Unusable(f"longer than {LONGEST_FILE} bytes")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unusable(f"not UTF-8 at byte {error.start}") from error
    try:
        import yaml
    except ImportError:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            say("from_massgen: PyYAML is missing, and the file is not JSON: pip install pyyaml")
            sys.exit(2)

    class Loader(yaml.SafeLoader):
        """Makes plain values only. Refuses duplicate keys, and merge keys with too many values."""
        pairs = 0

        def construct_mapping(self, node, deep=False):
            names = [key.value for key, _ in node.value if isinstance(key.value, str)]
            if len(set(names)) < len(names):
                twice = next(name for name in names if names.count(name) > 1)
                raise Unusable(f"the key {shown(twice)} occurs twice")
            return super().construct_mapping(node, deep)

        def flatten_mapping(self, node):
            super().flatten_mapping(node)
            self.pairs += len(node.value)
            if self.pairs > MOST_VALUES:
                raise Unusable(f"more than {MOST_VALUES} values")

    try:
        return yaml.load(text, Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise Unusable("not YAML" + (f" at line {mark.line + 1}" if mark else "")) from error
    except (RecursionError, ValueError, TypeError) as error:
        raise Unusable("YAML that is nested too deep, or a value of it that none can be") from error


def agents_of(config):
    """Returns the agents, after a check that each has a dict as its backend."""
    if not isinstance(config, dict):
        raise Unusable("not an object at the top")
    agents = config.get("agents", config.get("agent"))
    if isinstance(agents, dict):
        agents = [agents]
    if not isinstance(agents, list) or not agents:
        raise Unusable("there is no agent: or agents: in it")
    for agent in agents:
        if not isinstance(agent, dict) or not isinstance(agent.get("backend"), dict):
            raise Unusable("an agent has no backend:")
    return agents


def check(value, where, count, depth=0):
    """Refuses values that JSON does not have, and too many of them."""
    count[0] += 1
    if depth > DEEPEST or count[0] > MOST_VALUES:
        raise Unusable(f"{where}: nested too deep, or more than {MOST_VALUES} values")
    if isinstance(value, dict):
        for name, member in value.items():
            check(name, where, count, depth + 1)
            check(member, where, count, depth + 1)
            if not isinstance(name, str):
                raise Unusable(f"{where}: the key {shown(name)} is no string")
    elif isinstance(value, list):
        for item in value:
            check(item, where, count, depth + 1)
    elif isinstance(value, str):
        if "\0" in value or any("\ud800" <= c <= "\udfff" for c in value):
            raise Unusable(f"{where}: a text with NUL, or that is not Unicode")
    elif isinstance(value, float) and value - value != 0:
        raise Unusable(f"{where}: not a number that JSON has")
    elif value is not None and not isinstance(value, (bool, int, float)):
        raise Unusable(f"{where}: {shown(value)} is not text, number, list or object")


def absolute(path):
    return path if path.startswith("~") else os.path.abspath(path)


class Conversion:
    """Converts one agent's backend to options of codeexec-mcp, in `out`."""

    def __init__(self):
        self.out = {}

    def leave_out(self, key, reason):
        say(f"left out: {key if key.isidentifier() else shown(key)}: {reason}")

    def wanted(self, key, value, kind):
        is_right = isinstance(value, TYPES[kind])
        if isinstance(value, bool) and kind != "flag":
            is_right = False
        if is_right and kind == "list":
            is_right = all(isinstance(item, str) for item in value)
        if not is_right:
            what = {"list": "a list of texts", "object": "an object"}.get(kind, f"a {kind}")
            raise Unusable(f"{key}: {shown(value)} is not {what}")

    def add_mode(self, backend):
        mode = backend.get("command_line_execution_mode")
        if mode is None:
            mode = "docker" if backend.get("enable_docker_isolation") is True else "local"
        if mode not in ("local", "docker", "srt"):
            raise Unusable(f"command_line_execution_mode: {shown(mode)} is none of MassGen's")
        self.out["execution_mode"] = "docker" if mode == "docker" else "local"
        if mode == "srt":  # MassGen's other sandbox
            self.out["sandbox"] = "strict"
            self.out["network"] = "none"
        return mode

    def add_paths(self, backend, orchestrator):
        writable, readable = [], []
        cwd = backend.get("cwd")
        if cwd is not None:
            self.wanted("cwd", cwd, "text")
            self.out["workspace"] = absolute(cwd)
            writable.append(absolute(cwd))
        for source in (orchestrator, backend):
            paths = source.get("context_paths") or []
            for item in paths if isinstance(paths, list) else [paths]:
                entry = {"path": item} if isinstance(item, str) else item
                if not isinstance(entry, dict) or not isinstance(entry.get("path"), str):
                    raise Unusable(f"context_paths: {shown(item)} names no path")
                is_writable = entry.get("permission", "read") == "write"
                (writable if is_writable else readable).append(absolute(entry["path"]))
                if entry.get("protected_paths"):
                    self.leave_out("protected_paths", f"of {shown(entry['path'])}: here a path is "
                                   "writable with all below it, or not")
        allowed = backend.get("command_line_srt_allow_read") or []
        self.wanted("command_line_srt_allow_read", allowed, "list")
        readable += [absolute(path) for path in allowed]
        role = backend.get("permissions")
        role = str(role.get("role", "")).lower() if isinstance(role, dict) else ""
        if role in ("read-only", "researcher") or backend.get("command_line_srt_read_only") is True:
            readable, writable = writable + readable, []
        # A path may not be in both lists. If MassGen names it in both, it is read-only here.
        writable = [path for path in dict.fromkeys(writable) if path not in readable]
        for key, paths in (("allowed_paths", writable), ("read_only", dict.fromkeys(readable))):
            if paths:
                self.out[key] = list(paths)

    def add_option(self, key, name, value, mode):
        name = RENAMED.get(name, name)
        self.wanted(key, value, SAME[name])
        if name in self.out:
            raise Unusable(f"{key}: another key says the same")
        if name.startswith("docker_") and mode != "docker":
            return self.leave_out(key, "there is no container in this mode")
        if name in ("allowed_commands", "blocked_commands"):
            if not value:
                return self.leave_out(key, "an empty list is an error here; it allowed all there")
            # In MassGen a pattern needs to match the start of a command only, here all of it.
            if name == "blocked_commands":
                value = [p if p.endswith(".*") and "|" not in p else f"(?:{p}).*" for p in value]
            elif not all(p.endswith(".*") for p in value):
                say(f"note: {key}: here a pattern must match a whole command, and each of a script")
        if name == "docker_enable_sudo":
            name = "enable_sudo"
        if name == "command_execution_venv_path":
            value = absolute(value)
        if name == "docker_packages":
            for other in [k for k in value if k != "preinstall"]:
                self.leave_out(other, "what a workspace names is not installed unasked")
            value = {k: v for k, v in value.items() if k == "preinstall"}
        if name == "docker_credentials" and isinstance(value.get("env_file"), str):
            value = dict(value, env_file=absolute(value["env_file"]))
        if value != {}:
            self.out[name] = value

    def add_backend(self, backend, mode):
        handled = {"command_line_execution_mode", "enable_docker_isolation", "cwd",
                   "context_paths", "command_line_srt_allow_read", "command_line_srt_read_only",
                   "permissions"}
        others = []
        for key, value in backend.items():
            name = key[len("command_line_"):] if key.startswith("command_line_") else key
            if key in handled or value is None:
                continue
            if name in SAME or name in RENAMED:
                self.add_option(key, name, value, mode)
            elif name == "srt_read_mode":
                if value == "open":
                    self.leave_out(key, "only what is allowed, and what programs need, can be read")
            elif name in LEFT_OUT:
                self.leave_out(key, LEFT_OUT[name])
            elif key.startswith(("command_line_", "command_execution_", "docker_")):
                self.leave_out(key, "it is no option of MassGen that is known here")
            else:
                others.append(key if key.isidentifier() else shown(key))
        if others:
            say(f"left out: {', '.join(others[:50])}: not about commands, these stay with MassGen")


def converted(config, name):
    agents = agents_of(config)
    if name is not None:
        agents = [agent for agent in agents if str(agent.get("id")) == name]
    if len(agents) != 1:
        names = ", ".join(shown(agent.get("id")) for agent in agents_of(config)[:20])
        raise Unusable(f"{len(agents)} agents of this name; choose one with --agent: {names}"
                       if name is not None else f"several agents; choose with --agent: {names}")
    agent = agents[0]
    orchestrator = config.get("orchestrator")
    orchestrator = orchestrator if isinstance(orchestrator, dict) else {}
    count = [0]
    check(agent["backend"], "backend", count)
    check(orchestrator.get("context_paths"), "context_paths", count)
    conversion = Conversion()
    mode = conversion.add_mode(agent["backend"])
    conversion.add_paths(agent["backend"], orchestrator)
    conversion.add_backend(agent["backend"], mode)
    for key in ("agent_temporary_workspace", "snapshot_storage"):
        if key in orchestrator:
            conversion.leave_out(key, LEFT_OUT.get(key, "snapshots stay with MassGen"))
    if isinstance(agent.get("id"), str) and agent["id"]:
        check(agent["id"], "id", count)
        conversion.out["agent_id"] = agent["id"]
    if mode == "docker" and not {"docker_memory_limit", "docker_cpu_limit"} <= set(conversion.out):
        say("note: without limits a container has 2 GiB and 2 processors here")
    return conversion.out


def main():
    parser = argparse.ArgumentParser(description="MassGen's YAML becomes JSON for --config")
    parser.add_argument("file")
    parser.add_argument("--agent", help="the id of one agent, where there are several")
    arguments = parser.parse_args()
    try:
        out = converted(load(arguments.file), arguments.agent)
    except (Unusable, OSError) as error:
        say(f"from_massgen: {shown(arguments.file)}: {error}")
        return 1
    print(json.dumps(out, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
