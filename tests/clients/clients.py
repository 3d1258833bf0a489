"""The clients that tests/clients drives, one row each."""

import glob
import json
import os
import sys
from dataclasses import dataclass, field
from typing import Callable

HERE = os.path.dirname(os.path.abspath(__file__))
PROMPT = "Run the tests."


@dataclass
class Run:
    """What a row may use to make a command of."""

    packages: str  # where they are installed
    home: str
    project: str
    rigging: str  # a folder for what points the client at the model
    url: str  # of the model
    program: str  # of the server

    def npm(self, name):
        return os.path.join(self.packages, "node/node_modules/.bin", name)

    def python(self, environment):
        return os.path.join(self.packages, environment, "bin/python")

    def file(self, name, text):
        path = os.path.join(self.rigging, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path


@dataclass
class Client:
    name: str
    shown: str
    package: str  # of npm or PyPI, for its version
    command: Callable  # (Run) -> argv, environment
    environment: str = "node"  # the folder with its packages
    # Options of its own in place of a person who approves our tools, where no file can hold them:
    # --client-config has named them.
    approval: tuple = ()
    # Its own command tool, as the model sees it, and what shows that without a person, too.
    own_shell: tuple = ()
    own_shell_option: tuple = ()
    # Tools of ours that it does not show to its model.
    hidden: set = field(default_factory=set)
    section: str = ""  # of docs/clients.md, for those that a program configures

    def has_file(self):
        return not self.section


def claude_code(run):
    return [run.npm("claude"), "-p", PROMPT], {
        "ANTHROPIC_BASE_URL": run.url, "ANTHROPIC_API_KEY": "sk-none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}


def codex(run):
    provider = (f'model_providers.mock={{name="mock",base_url="{run.url}/v1",env_key="MOCK_KEY",'
                'wire_api="responses",supports_websockets=false}')
    return [run.npm("codex"), "exec", "-c", "model_provider=mock", "-c", "model=gpt-5",
            "-c", provider, "-c", "check_for_update_on_startup=false",
            "-c", "analytics.enabled=false", PROMPT], {"MOCK_KEY": "none"}


def gemini(run):
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}},
                "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
                "telemetry": {"enabled": False}, "privacy": {"usageStatisticsEnabled": False}}
    return [run.npm("gemini"), "-m", "gemini-2.5-pro", "-p", PROMPT], {
        "GOOGLE_GEMINI_BASE_URL": run.url, "GEMINI_API_KEY": "none",
        "GEMINI_CLI_SYSTEM_SETTINGS_PATH": run.file("gemini.json", json.dumps(settings)),
        "GEMINI_CLI_NO_RELAUNCH": "true"}


def qwen(run):
    settings = {"privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False},
                "general": {"enableAutoUpdate": False, "disableAutoUpdate": True},
                "memory": {"enableManagedAutoMemory": False}}
    return [run.npm("qwen"), "-p", PROMPT], {
        "OPENAI_BASE_URL": run.url + "/v1", "OPENAI_API_KEY": "none", "OPENAI_MODEL": "gpt-5",
        "QWEN_CODE_SYSTEM_SETTINGS_PATH": run.file("qwen.json", json.dumps(settings)),
        "QWEN_CODE_NO_RELAUNCH": "true"}


def opencode(run):
    provider = {"npm": "@ai-sdk/openai-compatible", "models": {"gpt-5": {}},
                "options": {"baseURL": run.url + "/v1", "apiKey": "none"}}
    return [run.npm("opencode"), "run", "-m", "mock/gpt-5", PROMPT], {
        "OPENCODE_CONFIG_CONTENT": json.dumps({"provider": {"mock": provider}}),
        "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_SHARE": "1"}


def page_snippet(section):
    """The Python of one section of docs/clients.md."""
    page = os.path.join(HERE, "../../docs/clients.md")
    with open(page, encoding="utf-8") as file:
        text = file.read()
    after = text.split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
    return after.split("```python\n", 1)[1].split("\n```", 1)[0] + "\n"


def python_program(client, run, text):
    """Run where the server is found by its name, as the page has it."""
    program = run.file("agent.py", text)
    return [run.python(client.environment), program], {
        "OPENAI_BASE_URL": run.url + "/v1", "OPENAI_API_KEY": "none",
        "OPENAI_AGENTS_DISABLE_TRACING": "1", "PYTHONDONTWRITEBYTECODE": "1",
        "HF_HUB_OFFLINE": "1",
        "PATH": os.pathsep.join([os.path.dirname(run.program), os.environ["PATH"]])}


def from_page(name, section, package, environment):
    client = Client(name, section, package, None, environment, section=section)
    client.command = lambda run: python_program(client, run, page_snippet(section))
    return client


def agentless(client, run, page):
    """A library without an agent: ask_model.py is one, with the client that the page makes."""
    argv, environment = python_program(client, run, page)
    return [argv[0], os.path.join(HERE, "ask_model.py"), client.name, argv[1], run.program], \
        environment


def fastmcp():
    client = Client("fastmcp", "FastMCP", "fastmcp", None, "v2", section="FastMCP")
    client.command = lambda run: agentless(client, run, page_snippet(client.section))
    return client


def massgen():
    client = Client("massgen", "MassGen", "massgen", None, "massgen", section="MassGen")
    client.command = lambda run: agentless(client, run, "")
    return client


ALL = [
    Client("claude-code", "Claude Code", "@anthropic-ai/claude-code", claude_code,
           approval=("--allowedTools", "mcp__codeexec__*"), own_shell=("Bash",)),
    Client("codex", "Codex", "@openai/codex", codex,
           own_shell=("exec_command", "write_stdin", "shell", "shell_command", "local_shell")),
    Client("gemini", "Gemini CLI", "@google/gemini-cli", gemini, approval=("--skip-trust",),
           own_shell=("run_shell_command",), own_shell_option=("--yolo",),
           # It takes this one for its own of that name, which needs a person.
           hidden={"write_file"}),
    Client("qwen", "Qwen Code", "@qwen-code/qwen-code", qwen,
           own_shell=("run_shell_command",), own_shell_option=("--yolo",)),
    Client("opencode", "opencode", "opencode-ai", opencode, own_shell=("bash",)),
    from_page("openai-agents", "OpenAI Agents SDK", "openai-agents", "v2"),
    from_page("pydantic-ai", "Pydantic AI", "pydantic-ai-slim", "v2"),
    from_page("langchain", "LangChain", "langchain-mcp-adapters", "v1"),
    from_page("smolagents", "smolagents", "smolagents", "v1"),
    fastmcp(),
    massgen(),
]


def named(name):
    for client in ALL:
        if client.name == name:
            return client
    sys.exit(f"FAILED: there is no client {name}: {' '.join(client.name for client in ALL)}")
