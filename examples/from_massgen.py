#!/usr/bin/env python3
"""Converts a MassGen configuration to one of codeexec-mcp:

    python3 examples/from_massgen.py agents.yaml > codeexec.json
    python3 examples/from_massgen.py agents.yaml --agent coder > coder.json
    codeexec-mcp --config codeexec.json --check true

For commands by this program without a change of the configuration, see docs/from-massgen.md; a
converted file is for those who want options that MassGen does not have.

Prints the configuration as JSON to standard output. Prints each key that it leaves out to standard
error, with the reason. Makes the folder cwd, as MassGen does. Relative paths become absolute ones,
from the current folder. Reads YAML with PyYAML and, without it, JSON. The exit status is 0; 1 if
the file cannot be converted; 2 if the command line is wrong or PyYAML is missing.
"""
import argparse
import json
import os
import re
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

# Keys of permissions: that are not about what a command may do.
PERMISSIONS_LEFT_OUT = {
    "automation_default": "a person is asked, and without an answer in ask_timeout it is no",
    "audit": "audit_file writes a line for every command",
    "max_consecutive_auto": "calls_per_minute bounds the calls",
    "persist_approvals": "an approval is for one command",
    "settings_path": "an approval is for one command"}
RULE = re.compile(r"\s*([A-Za-z_*][\w*]*)\s*(?:\((.*)\)\s*)?", re.DOTALL)
RULE_ACTIONS = ("command", "read_file", "write_file", "read_url", "mcp", "*")
# Roles that deny every command.
READ_ONLY_ROLES = ("read-only", "researcher")


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


def named(value, prefix=""):
    """The names of an object's keys, and of those of objects in it, safe to be shown."""
    names = []
    for key, member in value.items():
        names.append(prefix + (key if key.isidentifier() else shown(key)))
        if isinstance(member, dict):
            names += [f"{names[-1]}.{name if name.isidentifier() else shown(name)}"
                      for name in member]
    return names


def leave_to_massgen(names):
    for begin in range(0, len(names), 50):
        say(f"left out: {', '.join(names[begin:begin + 50])}: not about commands, these stay with "
            "MassGen")


def regex_of(glob):
    """A pattern of MassGen's rules, where * is any text and ? any character, as one of ours."""
    result, at = "", 0
    while at < len(glob):
        sign = glob[at]
        end = glob.find("]", at + 2) if sign == "[" else -1
        if sign in "*?":
            result += ".*" if sign == "*" else "."
        elif end > 0:
            inner = glob[at + 1:end].replace("\\", "\\\\")
            if inner[0] == "!":
                inner = "^" + inner[1:]
            elif inner[0] == "^":
                inner = "\\" + inner
            result += f"[{inner}]"
            at = end
        else:
            result += "\\" + sign if sign in "\\^$.|+()[]{}" else sign
        at += 1
    return result


def command_pattern(rule, where):
    """The pattern of a rule about commands; None for one about something else."""
    match = RULE.fullmatch(rule)
    if not match or (match[1] not in RULE_ACTIONS):
        raise Unusable(f"{where}: {shown(rule)} is not of the form action(target), with an action "
                       f"of {', '.join(RULE_ACTIONS)}")
    if match[1] not in ("command", "*"):
        return None
    return regex_of("*" if match[2] is None else match[2])


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
            self.make_folder(os.path.expanduser(absolute(cwd)))
            say("note: cwd: MassGen adds 8 digits to it at each start; for commands in the folder "
                "of its own files see codeexec-mcp --massgen-path")
        for source in (orchestrator, backend):
            paths = source.get("context_paths") or []
            for item in paths if isinstance(paths, list) else [paths]:
                entry = {"path": item} if isinstance(item, str) else item
                if not isinstance(entry, dict) or not isinstance(entry.get("path"), str):
                    raise Unusable(f"context_paths: {shown(item)} names no path")
                is_writable = entry.get("permission", "read") == "write"
                path = absolute(entry["path"])
                others = {key: value for key, value in entry.items()
                          if key not in ("path", "permission", "protected_paths")}
                leave_to_massgen(named(others, "context_paths."))
                if not os.path.isdir(os.path.expanduser(path)):
                    self.leave_out("context_paths", f"{shown(entry['path'])} is no folder that is "
                                   "there: name the folder of a file, and make what is missing")
                    continue
                (writable if is_writable else readable).append(path)
                self.add_protected(entry, path, is_writable, backend)
        allowed = backend.get("command_line_srt_allow_read") or []
        self.wanted("command_line_srt_allow_read", allowed, "list")
        readable += [absolute(path) for path in allowed]
        is_read_only = self.role_of(backend) in READ_ONLY_ROLES
        if is_read_only or backend.get("command_line_srt_read_only") is True:
            readable, writable = writable + readable, []
        # A path may not be in both lists. If MassGen names it in both, it is read-only here.
        writable = [path for path in dict.fromkeys(writable) if path not in readable]
        for key, paths in (("allowed_paths", writable), ("read_only", dict.fromkeys(readable))):
            if paths:
                self.out[key] = list(paths)

    def make_folder(self, path):
        if os.path.isdir(path):
            return
        try:
            os.makedirs(path)
        except OSError as error:
            raise Unusable(f"cwd: {shown(path)}: {error.strerror}") from error
        say(f"made: {shown(path)}, as MassGen does")

    def role_of(self, backend):
        permissions = backend.get("permissions")
        role = permissions.get("role") if isinstance(permissions, dict) else None
        return str(role or "").strip().lower()

    def add_protected(self, entry, path, is_writable, backend):
        """What may not be changed in a path that may be written to."""
        names = entry.get("protected_paths") or []
        self.wanted("protected_paths", names, "list")
        if not names or not is_writable:
            return
        if self.out["execution_mode"] != "local":
            raise Unusable(f"protected_paths of {shown(entry['path'])}: a container cannot hold "
                           "them; make that path read-only")
        for name in names:
            inside = os.path.relpath(os.path.join(path, name), path)
            if inside == "." or inside.startswith(".."):
                raise Unusable(f"protected_paths: {shown(name)} lies not in {shown(entry['path'])}")
            self.out.setdefault("protected_paths", []).append(inside)

    def add_rules(self, backend):
        """permissions.rules: deny, ask and allow of commands."""
        permissions = backend.get("permissions")
        if permissions is None:
            return
        if isinstance(permissions, bool):
            return say("left out: permissions: without rules or a role it says nothing here")
        if not isinstance(permissions, dict):
            raise Unusable(f"permissions: {shown(permissions)} is not an object")
        leave_to_massgen(named({key: value for key, value in permissions.items() if key not in
                                ("enabled", "role", "rules", *PERMISSIONS_LEFT_OUT)},
                               "permissions."))
        for key, reason in PERMISSIONS_LEFT_OUT.items():
            if key in permissions:
                say(f"left out: permissions.{key}: {reason}")
        rules = permissions.get("rules")
        if permissions.get("enabled", True) is False:
            return say("left out: permissions.rules, permissions.role: permissions.enabled is "
                       "false")
        patterns = {"deny": [], "ask": [], "allow": []}
        role = self.role_of(backend)
        if role in READ_ONLY_ROLES:
            patterns["deny"].append(".*")
            say(f"note: permissions.role: {role} refuses every command, there and here")
        elif role not in ("", "read-write", "implementer"):
            raise Unusable(f"permissions.role: {shown(role)} is none of MassGen's")
        if rules is not None:
            self.read_rules(rules, patterns)
        self.use_rules(patterns)

    def read_rules(self, rules, patterns):
        if not isinstance(rules, dict):
            raise Unusable(f"permissions.rules: {shown(rules)} is not an object")
        for word, items in rules.items():
            where = f"permissions.rules.{word if word.isidentifier() else shown(word)}"
            if word not in patterns:
                raise Unusable(f"{where}: there are deny, ask and allow")
            self.wanted(where, items or [], "list")
            for rule in items or []:
                pattern = command_pattern(rule, where)
                if pattern is None:
                    say(f"left out: {where}: {shown(rule)}: not about commands, which a sandbox "
                        "holds to allowed_paths and the network")
                else:
                    patterns[word].append(pattern)

    def use_rules(self, patterns):
        if patterns["deny"]:
            self.out["blocked_commands"] = patterns["deny"] + self.out.get("blocked_commands", [])
        if patterns["ask"]:
            self.out["ask_commands"] = patterns["ask"]
        if not patterns["allow"] or ".*" in patterns["allow"]:
            return
        if "allowed_commands" in self.out:
            return say("left out: permissions.rules.allow: what command_line_allowed_commands does "
                       "not name is refused anyway")
        # What is asked about must be allowed to be asked about.
        self.out["allowed_commands"] = patterns["allow"] + patterns["ask"]
        say("note: permissions.rules.allow: here every other command is refused, which MassGen "
            "asks about or judges by its risk; take allowed_commands out to have all others run")

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
        others = {}
        for key, value in backend.items():
            name = key[len("command_line_"):] if key.startswith("command_line_") else key
            if key in handled or value is None:
                continue
            if name in SAME or name in RENAMED:
                self.add_option(key, name, value, mode)
            elif name == "srt_read_mode":
                self.leave_out(key, "only what is allowed, and what programs need, can be read")
            elif name in LEFT_OUT:
                self.leave_out(key, LEFT_OUT[name])
            elif key.startswith(("command_line_", "command_execution_", "docker_")):
                self.leave_out(key, "it is no option of MassGen that is known here")
            else:
                others[key] = value
        leave_to_massgen(named(others))


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
    conversion.add_rules(agent["backend"])
    for key in ("agent_temporary_workspace", "snapshot_storage"):
        if key in orchestrator:
            conversion.leave_out(key, LEFT_OUT.get(key, "snapshots stay with MassGen"))
    for prefix, section, handled in (
            ("", config, ("agent", "agents", "orchestrator")), ("", agent, ("backend", "id")),
            ("orchestrator.", orchestrator,
             ("agent_temporary_workspace", "snapshot_storage", "context_paths"))):
        rest = {str(key): value for key, value in section.items() if key not in handled}
        check(rest, prefix + "the rest", count)
        leave_to_massgen(named(rest, prefix))
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
