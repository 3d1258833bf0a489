"""Every tool that the server can list, against the rules of those who read its schemas.

Providers of models refuse a whole request for one schema that they do not know. Their own packages
know some of the rules, the rest stand here: what their API answers with status 400.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import warnings

import jsonschema
from agents.strict_schema import ensure_strict_json_schema
from anthropic.types import ToolParam
from google.genai.types import FunctionDeclaration
from pydantic import TypeAdapter

SERVER = os.environ["CODEEXEC_MCP"]
REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
# What changes tools, their parameters or their words. These start nothing before a command comes.
USER = ["--profile", "user-container", "--user-id", "someone"]
SETTINGS = (
    [],
    ["--workspace", "."],
    ["--allowed-paths", "."],
    ["--allowed-paths", ".", "--terminals", "--delete-guard"],
    ["--execution-mode", "docker"],
    ["--execution-mode", "slurm"],
    USER,
    ["--full-results", "--shell", "/bin/cat"],
    ["--timeout", "0.5", "--max-timeout", "2.5", "--max-output-size", "1k"],
    ["--run-in-background-after", "3", "--idle-timeout", "9"],
    ["--disable-tool", "start_background_shell", "read_file"],
    ["--calls-per-minute", "9", "--running-time", "99", "--ask-commands", "git push.*"],
)
# What a command can end like, with what the result must have of it.
RESULTS = (
    ({"command": "echo x"}, "exit_code"),
    ({"command": "exit 3"}, "exit_code"),
    ({"command": "kill -9 $$"}, "signal"),
    ({"command": "sudo id"}, "rule"),
    ({"command": ""}, "rule"),
    ({"command": "sleep 9", "timeout": 0.05}, "timed_out"),
    ({"command": "sleep 9", "run_in_background_after": 0.05}, "shell_id"),
    ({"command": "seq 99999"}, "stdout_file"),
    ({"command": "seq 99999", "max_output": 9}, "stdout_truncated"),
    ({"command": "seq 9", "encoding": "base64"}, "encoding"),
    ({"command": "sleep 9 &"}, "notes"),
    ({"command": "pwd", "session_id": "a"}, "session_work_dir"),
    # As models send them.
    ({"command": "pwd", "timeout": None, "work_dir": None, "encoding": None}, "exit_code"),
    ({"command": "pwd", "timeout": "2.5", "max_output": "99"}, "exit_code"),
)
PLAIN = {"type", "description", "properties", "required", "items", "enum", "minimum", "maximum"}


def session(options, revision, requests):
    """The results of requests, in their order, of a server of its own."""
    client = {
        "protocolVersion": revision,
        "capabilities": {},
        "clientInfo": {"name": "providers", "version": "1"},
    }
    with subprocess.Popen(
        [SERVER, *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:

        def ask(method, params):
            message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            server.stdin.write(json.dumps(message) + "\n")
            server.stdin.flush()
            while line := server.stdout.readline():
                reply = json.loads(line)
                if reply.get("id") == 1:
                    return reply["result"]
            raise AssertionError(f"{options}: {server.stderr.read()}")

        answers = [ask("initialize", client)]
        server.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        answers += [ask(method, params) for method, params in requests]
        server.stdin.close()
        return answers[1:]


# rules -------------------------------------------------------------------------------------------
# Each yields what is refused.


def places(schema, place="schema"):
    """Every schema in a schema, with its place."""
    yield schema, place
    for name, inner in schema.get("properties", {}).items():
        yield from places(inner, f"{place}.{name}")
    if isinstance(schema.get("items"), dict):
        yield from places(schema["items"], f"{place}[]")


def plain(schema):
    """The subset that every provider takes."""
    for part, place in places(schema):
        if unknown := set(part) - PLAIN:
            yield f"{place} has {sorted(unknown)}"
        if not isinstance(part.get("type"), str):
            yield f"{place} has no single type: {part.get('type')}"
        if part.get("type") == "object" and not isinstance(part.get("properties"), dict):
            yield f"{place} is an object without properties"
        if part.get("type") == "array" and not part.get("items"):
            yield f"{place} is an array without items"
        if not all(isinstance(choice, str) for choice in part.get("enum", [])):
            yield f"{place} has an enum of {part['enum']}"
        if missing := set(part.get("required", [])) - set(part.get("properties", {})):
            yield f"{place} requires {sorted(missing)}, which it does not have"


def json_schema(tool):
    for key in ("inputSchema", "outputSchema"):
        try:
            jsonschema.Draft202012Validator.check_schema(tool.get(key, {}))
        except jsonschema.SchemaError as error:
            yield f"{key}: {error.message}"


def openai(tool):
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool["name"]):
        yield "the name"
    if len(tool["description"]) > 1024:
        yield "a description of more than 1024 characters"
    try:
        strict = ensure_strict_json_schema(json.loads(json.dumps(tool["inputSchema"])))
    except Exception as error:  # the package has several kinds
        yield f"strict: {error}"
        return
    for part, place in places(strict):
        if part.get("type") != "object":
            continue
        if part["additionalProperties"] is not False:
            yield f"strict: {place} takes others"
        if set(part.get("required", [])) != set(part.get("properties", {})):
            yield f"strict: {place} has properties that are not required"


def gemini(tool):
    try:
        declaration = FunctionDeclaration.model_validate(
            {
                "name": tool["name"],
                "description": tool["description"],
                "parameters": tool["inputSchema"],
            }
        )
    except (ValueError, AttributeError) as error:  # the latter of a list of types
        yield f"parameters: {error}"
        return
    # What the package has for the sake of another API of Google.
    for key in ("additional_properties", "defs", "ref"):
        if getattr(declaration.parameters, key) is not None:
            yield f"parameters have {key}"


def anthropic(tool):
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool["name"]):
        yield "the name"
    try:
        TypeAdapter(ToolParam).validate_python(
            {
                "name": tool["name"],
                "description": tool["description"],
                "input_schema": tool["inputSchema"],
            }
        )
    except ValueError as error:
        yield f"input_schema: {error}"
    for name in tool["inputSchema"].get("properties", {}):
        if not re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name):
            yield f"the name of the property {name!r}"


def refusals(tool):
    for rules in (json_schema, openai, gemini, anthropic):
        for problem in rules(tool):
            yield f"{rules.__name__}: {problem}"
    for key in ("inputSchema", "outputSchema"):
        for problem in plain(tool.get(key, {"type": "object", "properties": {}})):
            yield f"plain {key}: {problem}"


# steps -------------------------------------------------------------------------------------------


def check_rules():
    """The rules refuse what they are there for."""
    good = {
        "name": "t",
        "description": "d",
        "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}},
    }
    assert not list(refusals(good)), list(refusals(good))
    warnings.filterwarnings("ignore", "text is not a valid Type")
    for schema in (
        {"type": "object"},
        {"type": "object", "properties": {"a": {"type": ["string", "null"]}}},
        {"type": "object", "properties": {"a": {"type": "number", "exclusiveMinimum": 0}}},
        {"type": "object", "properties": {"a": {"type": "string", "enum": ["a", None]}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}},
        {"type": "object", "properties": {"a": {"type": "object"}}},
        {"type": "object", "properties": {"a": {"type": "array"}}},
        {"type": "object", "properties": {"a b": {"type": "string"}}},
        {"type": "object", "properties": {"a": {"type": "text"}}},
        {"type": "object", "properties": {}, "additionalProperties": False},
    ):
        assert list(refusals({**good, "inputSchema": schema})), schema


def check_tools():
    """No place of any tool is refused."""
    count = 0
    for options in SETTINGS:
        for revision in REVISIONS:
            (listing,) = session(options, revision, [("tools/list", {})])
            assert listing["tools"], options
            for tool in listing["tools"]:
                problems = list(refusals(tool))
                assert not problems, f"{options} {revision} {tool['name']}: {problems}"
                count += 1
    return f"{count} listings of tools"


def check_results():
    """A result is as the schema of its tool says, and all that can come is described."""
    listing, *answers = session(
        ["--workspace", "."],
        "2025-06-18",
        [("tools/list", {})]
        + [("tools/call", {"name": "execute_command", "arguments": row[0]}) for row in RESULTS],
    )
    schema = listing["tools"][0]["outputSchema"]
    for (arguments, key), answer in zip(RESULTS, answers):
        jsonschema.validate(answer["structuredContent"], schema)
        assert key in answer["structuredContent"], f"{arguments}: {answer}"
    return f"{len(answers)} results"


def main():
    status = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for step in (check_rules, check_tools, check_results):
            try:
                told = step()
                print(f"ok: providers: {step.__doc__}" + (f" ({told})" if told else ""))
            except Exception as error:  # a step that fails does not hide the others
                print(f"FAILED: providers: {step.__doc__} {error}")
                status = 1
        os.chdir("/")
    return status


sys.exit(main())
