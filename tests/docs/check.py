#!/usr/bin/env python3
"""What README.md shows and promises, tried:

    CODEEXEC_MCP=build/codeexec-mcp [IMPLEMENTATION=impl.o] [CXX=c++] [OUT=build/docs] \
        python3 tests/docs/check.py

Each C++ snippet is compiled and run, each command run where that can be done here, each
configuration read by the server, and what they print compared with what is shown. Links lead
somewhere, names exist, each error at the start is told in the troubleshooting, and each name of the
reference systems (reference_names.txt) in the table that leads here from there.

In README.md: a ```cpp block with a main() is a program, another one stands in the main() of one,
where `here` is an executor; a ```text block after it is what it prints. In a ```console block the
lines after "$ command" are what it prints. "..." stands for anything, alone on a line for any
lines.
"""
import ast
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
OUT = os.path.abspath(os.environ.get("OUT", os.path.join(ROOT, "build", "docs")))
CXX = os.environ.get("CXX", "c++")
MCP = os.path.abspath(os.environ.get("CODEEXEC_MCP", os.path.join(ROOT, "build", "codeexec-mcp")))
IMPLEMENTATION = os.environ.get("IMPLEMENTATION", "")
failures = 0


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def report(what, problem=""):
    global failures
    if problem:
        failures += 1
        print(f"FAILED: {what}: {problem}")
    else:
        print(f"ok: {what}")


def run(words, **more):
    """(exit status, output of both kinds); None for a status when it did not end."""
    more.setdefault("cwd", WORK)
    more.setdefault("env", ENVIRONMENT)
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=300, check=False, **more)
    except subprocess.TimeoutExpired:
        return None, "it did not end"
    return done.returncode, done.stdout.decode("utf-8", "replace")


def as_pattern(shown):
    """The regular expression of an output as README shows it."""
    pattern = ""
    for line in shown.splitlines():
        if line == "...":
            pattern += r"(?:.*\n)*"
            continue
        line = re.escape(line).replace(re.escape("..."), ".*")
        pattern += re.sub(r"\d+\\\.\d{3} s|\d+\\\.\d{3}\\ s", r"[0-9.]+ s", line) + r"\n"
    return pattern


# the parts of README -----------------------------------------------------------------------------

README = read("README.md")
HEADER = read("codeexec.hpp")
VERSION = ".".join(re.search(rf"^#define CODEEXEC_VERSION_{part} (\d+)$", HEADER, re.M).group(1)
                   for part in ("MAJOR", "MINOR", "PATCH"))
DECLARATIONS = HEADER[: HEADER.index("#endif  // CODEEXEC_HPP")]


class Block:
    def __init__(self, kind, line, text):
        self.kind, self.line, self.text = kind, line, text
        self.where = f"README.md:{line}"


def blocks_of(text):
    found, inside = [], None
    for number, line in enumerate(text.splitlines(), 1):
        if inside is None and line.startswith("```"):
            inside = Block(line[3:].strip(), number + 1, "")
        elif inside is not None and line.startswith("```"):
            found.append(inside)
            inside = None
        elif inside is not None:
            inside.text += line + "\n"
    return found


def section(title):
    return re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", README, re.M | re.S).group(1)


BLOCKS = blocks_of(README)

# where things are tried --------------------------------------------------------------------------

WORK = os.path.join(OUT, "work")
PROJECT = os.path.join(OUT, "project")
BIN = os.path.join(OUT, "bin")
HOME = os.path.join(OUT, "home")
PLACES = {"/path/to/project": PROJECT, "/path/to/workspace": PROJECT,
          "${workspaceFolder}": PROJECT, "/usr/local/bin/codeexec-mcp": MCP}
ENVIRONMENT = {"PATH": BIN + ":" + os.environ["PATH"], "HOME": HOME, "LC_ALL": "C.UTF-8",
               "DOCKER_HOST": "unix:///nonexistent/docker.sock"}


def script(name, text):
    path = os.path.join(BIN, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)


def prepare():
    global IMPLEMENTATION
    for path in (WORK, PROJECT, BIN, HOME):
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
    os.mkdir(os.path.join(HOME, "certs"))
    os.mkdir(os.path.join(HOME, ".ssh"))
    os.mkdir(os.path.join(HOME, "bin"))
    os.mkdir(os.path.join(PROJECT, "part"))
    for name in ("codeexec.hpp", "src", "examples", "docker", "tests"):
        os.symlink(os.path.join(ROOT, name), os.path.join(WORK, name))
    for name, text in ((".env", "GITHUB_TOKEN=put-yours-here\n"), ("mine.json", "{}\n"),
                       ("commands.jsonl", '"ls"\n'),
                       ("my_program.cpp", "#include <codeexec.hpp>\nint main() {}\n")):
        with open(os.path.join(WORK, name), "w", encoding="utf-8") as file:
            file.write(text)
    if not IMPLEMENTATION:
        IMPLEMENTATION = os.path.join(OUT, "implementation.o")
        run([CXX, "-std=c++17", "-O0", "-I" + ROOT, "-o", IMPLEMENTATION,
             "-c", os.path.join(ROOT, "tests/helpers/impl.cpp")])
    # The commands of README with the compiler of the build, and an implementation that is there.
    script("c++", f'exec "{CXX}" "$@" -O0 -DCODEEXEC_IMPLEMENTED "{IMPLEMENTATION}"\n')
    script("codeexec-mcp", f'exec "{MCP}" "$@"\n')
    script("pkg-config", f'echo "-I{ROOT} -pthread"\n')
    script("claude", 'while [ "$1" != -- ]; do shift; done; shift; exec "$@" --check true\n')


# C++ ---------------------------------------------------------------------------------------------

BEGIN = ("int snippet_{0}() {{\n"
         "auto here = codeexec::LocalExecutor::create({{}});\n"
         "if (!here) return 2;\n"
         "#line {0} \"README.md\"\n")
PICK = "int main(int, char** argv) {\n  switch (std::atoi(argv[1])) {\n"


def check_cpp():
    shown = {b.line: BLOCKS[i + 1].text if BLOCKS[i + 1].kind == "text" else ""
             for i, b in enumerate(BLOCKS) if b.kind == "cpp"}
    code = [b for b in BLOCKS if b.kind == "cpp"]
    pieces = [b for b in code if "int main" not in b.text]
    text = '#include "codeexec.hpp"\n#include <cstdio>\n#include <cstdlib>\n'
    for piece in pieces:
        text += BEGIN.format(piece.line) + piece.text + "return 0;\n}\n"
    text += PICK + "".join(f"case {p.line}: return snippet_{p.line}();\n" for p in pieces)
    text += "}\nreturn 3;\n}\n"
    programs = {"pieces": text}
    for block in code:
        if block not in pieces:
            programs[f"program_{block.line}"] = f'#line {block.line} "README.md"\n' + block.text
    built = {}
    for name, source in programs.items():
        path = os.path.join(OUT, name)
        with open(path + ".cpp", "w", encoding="utf-8") as file:
            file.write(source)
        built[name], told = run([CXX, "-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror",
                                 "-DCODEEXEC_IMPLEMENTED", "-I" + ROOT, path + ".cpp",
                                 IMPLEMENTATION, "-o", path, "-pthread"])
        report(f"C++ of README.md compiles ({name})", told[:3000] if built[name] else "")
    for block in code:
        name = "pieces" if block in pieces else f"program_{block.line}"
        if built[name]:
            continue
        # Without a home directory: /tmp, which the snippets share with a container, may hold ours.
        done = subprocess.run([os.path.join(OUT, name), str(block.line)], cwd=WORK, timeout=60,
                              env=dict(ENVIRONMENT, HOME="/nonexistent"), check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        printed = done.stdout.decode()
        expected = shown[block.line]
        problem = ""
        if done.returncode:
            problem = f"exit status {done.returncode}: {done.stderr.decode()}"
        elif expected and not re.fullmatch(as_pattern(expected), printed):
            problem = "it prints\n" + printed
        elif name == "pieces" and not expected and printed:
            problem = "README does not show what it prints:\n" + printed
        report(f"{block.where}: the C++ works" + (" as shown" if expected else ""), problem)


# commands ----------------------------------------------------------------------------------------

# Those that are not run here, and what has tried them. None stands for: the file is there.
ELSEWHERE = {
    "cmake -S . -B build -DCODEEXEC_BUILD_TESTS=OFF": "tests/hygiene/consumer.sh",
    "cmake --build build --target codeexec-mcp": "tests/hygiene/consumer.sh",
    "cmake --install build --prefix /usr/local --strip": "tests/hygiene/consumer.sh",
    "conan create tests/packaging/conan": "tests/packaging/run.sh",
    "vcpkg install codeexec --overlay-ports=tests/packaging/vcpkg": "tests/packaging/run.sh",
    "sh examples/quickstart.sh": "tests/hygiene/examples.sh",
    "docker ps -a --filter label=codeexec.managed=1": "tests/unit/docker/containers.cpp",
    "docker rm -f $(docker ps -aq --filter label=codeexec.kind=persistent)":
        "tests/unit/docker/containers.cpp",
    "docker volume rm $(docker volume ls -q --filter label=codeexec.managed=1)":
        "tests/unit/docker/surroundings.cpp",
}


def commands_of(block):
    """Pairs of a command and its output."""
    found = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append([line[2:], ""])
        else:
            found[-1][1] += line + "\n"
    return found


def with_places(text):
    for place, real in PLACES.items():
        text = text.replace(place, real)
    return text


def check_command(where, command, shown):
    bare = re.sub(r" +#.*", "", command)
    what = f"{where}: {bare}"
    if bare in ELSEWHERE:
        paths = re.findall(r"(?:tests|examples)/[\w./]+", bare + " " + ELSEWHERE[bare])
        missing = [path for path in paths if not os.path.exists(os.path.join(ROOT, path))]
        return report(f"{what} (tried by {ELSEWHERE[bare]})", f"no {missing}" if missing else "")
    build = re.match(r"(?:sh |sudo sh )?((?:docker|tests)/[\w/]+\.sh)(.*)", bare)
    if build:
        path = os.path.join(ROOT, build.group(1))
        if not os.path.exists(path):
            return report(what, "there is no such file")
        text = read(build.group(1))
        missing = [o for o in re.findall(r"--[a-z-]+", build.group(2)) if o not in text]
        return report(f"{what} (is there, with these options)", f"no {missing}" if missing else "")
    status, printed = run(["sh", "-c", with_places(bare)])
    allowed = {0, 1} if re.search("--(doctor|sandbox-report|run|check|verify-audit)", bare) else {0}
    problem = ""
    if status not in allowed:
        problem = f"exit status {status}: {printed[:1000]}"
    elif shown and not re.fullmatch(as_pattern(shown), printed):
        problem = "it prints\n" + printed[:1000]
    return report(what, problem)


def check_commands():
    for block in BLOCKS:
        if block.kind == "console":
            for command, shown in commands_of(block):
                check_command(block.where, command, shown)
    indented = re.findall(r"^    \$ .*", README, re.M)
    report("commands stand in console blocks", "; ".join(indented))
    known = {"cpp", "text", "console", "json", "toml", "yaml", "python", "cmake"}
    odd = [f"{b.where} {b.kind}" for b in BLOCKS if b.kind not in known]
    report("each block is of a kind that is tried", "; ".join(odd))


# configurations ----------------------------------------------------------------------------------


def accepts(where, words):
    status, printed = run(words + ["--check", "true"])
    report(f"{where}: the server takes it", printed if status else "")


def check_configurations():
    for block in BLOCKS:
        text = with_places(block.text)
        if block.kind == "json":
            value = json.loads(text)
            servers = value.get("mcpServers") or value.get("servers")
            if servers:
                for server in servers.values():
                    accepts(block.where, [server["command"]] + server["args"])
                continue
            path = os.path.join(WORK, "config.json")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            accepts(block.where, [MCP, "--config", path])
        elif block.kind in ("toml", "yaml"):
            try:
                import tomllib
                if block.kind == "toml":
                    tomllib.loads(block.text)
            except ImportError:
                pass
            command = re.search(r"command\s*[:=]\s*\"?([^\s\"]+)", text).group(1)
            args = json.loads(re.search(r"args\s*[:=]\s*(\[.*?\])", text, re.S).group(1))
            accepts(block.where, [command] + args)
        elif block.kind == "python":
            calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)
                     and {"command", "args"} <= {k.arg for k in node.keywords}]
            for call in calls:
                value = {k.arg: ast.literal_eval(k.value) for k in call.keywords}
                accepts(block.where, [value["command"]] + value["args"])
            report(f"{block.where}: the Python starts a server", "" if calls else "no call")
        elif block.kind == "cmake":
            versions = re.findall(r"(?:codeexec |GIT_TAG v)(\d+[\d.]*)", block.text)
            wrong = [v for v in versions if not (VERSION + ".").startswith(v + ".")]
            targets = set(re.findall(r"codeexec::\w+", block.text)) - {"codeexec::impl"}
            report(f"{block.where}: the CMake names version {VERSION}",
                   f"{wrong} {targets}" if wrong or targets else "")


# names and links ---------------------------------------------------------------------------------


def anchor(title):
    return re.sub(r"[^a-z0-9_ -]", "", title.lower()).replace(" ", "-")


def check_links():
    outside = re.sub(r"^```.*?^```", "", README, flags=re.M | re.S)
    titles = re.findall(r"^#{2,3} (.*)", outside, re.M)
    anchors = {anchor(title) for title in titles} | {"platforms"}
    wrong = []
    for link in re.findall(r"\]\(([^)]+)\)", outside):
        if link.startswith("#"):
            if link[1:] not in anchors:
                wrong.append(link)
        elif not os.path.exists(os.path.join(ROOT, link)):
            wrong.append(link)
    report("links lead to what is there", ", ".join(wrong))
    contents = README[: README.index("\n## ")]
    sections = re.findall(r"^## (.*)", outside, re.M)
    missing = [title for title in sections if f"(#{anchor(title)})" not in contents]
    report("the contents have each section", ", ".join(missing))
    double = sorted({t for t in titles if titles.count(t) > 1})
    report("no two sections have one title", ", ".join(double))


def members(name):
    """The text of a class in the declarations, with that of its base."""
    text = ""
    for kind, base, body in re.findall(
            rf"^(struct|class|enum class)(?: \[\[nodiscard\]\])? {name}\b([^;{{]*)\{{(.*?)\}};$",
            DECLARATIONS, re.M | re.S):
        # A class ends with a brace at the start of a line; enumerations may stand in one.
        if kind != "enum class":
            start = DECLARATIONS.index(body)
            body = DECLARATIONS[start : DECLARATIONS.index("\n};", start)]
        text += body
        for other in re.findall(r": (?:public )?(\w+)", base):
            text += members(other)
    return text


def check_names():
    wrong = []
    for name, member in sorted(set(re.findall(r"\b([A-Z]\w+)::(\w+)", README))):
        if not re.search(rf"\b{member}\b", members(name)):
            wrong.append(f"{name}::{member}")
    report("each Class::member is in the header", ", ".join(wrong))
    status, told = run([MCP, "--help-all"])
    options = set(re.findall(r"--[a-z][a-z-]+", told))
    migration = section("From MassGen, DockerExecutionClient and AG2")
    here = "\n".join(line.rsplit(" | ", 1)[-1] for line in migration.splitlines())
    here += section("When it does not start")
    wrong = sorted(set(re.findall(r"`(--[a-z][a-z-]+)", here)) - options
                   - {"--sudo", "--tag", "--name"})
    report("each option in the tables for newcomers is one", ", ".join(wrong) or
           (told if status else ""))
    # In the first column, or, where there is none here, named beside the reason.
    names = [line for line in read("tests/docs/reference_names.txt").splitlines()
             if line and not line.startswith("#")]
    there = "\n".join(line.rsplit(" | ", 1)[0] for line in migration.splitlines()
                      if line.startswith("| "))
    missing = [n for n in names if not re.search(rf"(?<![\w-]){re.escape(n)}(?![\w-])", there)]
    report(f"each of {len(names)} names of the reference systems is told", ", ".join(missing))
    empty = [line for line in migration.splitlines()
             if line.startswith("| `") and len(line.rsplit(" | ", 1)[-1].strip(" |")) < 3]
    report("each has an answer", "; ".join(empty))


# errors at the start -----------------------------------------------------------------------------

# Command lines that are wrong, one for each kind of error. CONFIG(...) is a configuration file.
WRONG = [
    ["--bogus"], ["x"], ["--timeout"], ["--timeout", "0"], ["--max-concurrent", "0"],
    ["--allowed-paths"], ["--allowed-paths", ""], ["--timeout", "5", "--timeout", "6"],
    ["--policy", "soft"], ["--ask-rule", "sodu", "--check", "x"],
    ["--ask-rule", "dd", "--disable-rule", "dd", "--check", "x"],
    ["--ask-rule", "mkfs", "--policy", "compat", "--check", "x"], ["--sandbox", "x"],
    ["--run", "ls", "--check", "ls"],
    ["--timeout", "5000"], ["--max-output-size", "10"], ["--disable-rule", "nope"],
    ["--disable-tool", "nope"], ["--config", "nope.json"], ["CONFIG", "{"], ["CONFIG", "[]"],
    ["CONFIG", '{"x": 1}'], ["CONFIG", '{"timeout": "a"}'], ["CONFIG", '{"delete_guard": "a"}'],
    ["CONFIG", '{"allowed_paths": "a"}'], ["CONFIG", '{"allowed_paths": [1]}'],
    ["CONFIG", '{"docker_packages": 1}'],
    ["--docker-image", "x"], ["--execution-mode", "docker", "--sandbox", "strict"],
    ["--blocked-commands", "(a"], ["--allowed-commands", r"\1"], ["--workspace", "/nope"],
    ["--allow-usual", "--policy", "compat"],
    ["--workspace", "/dev/null"], ["--allowed-paths", "/nope"], ["--spill-dir", "/nope"],
    ["--local-skills-directory", "/nope"], ["--audit-file", "/nope/x"],
    ["--allowed-paths", "/tmp", "--read-only", "/tmp"], ["--venv-path", "/nope"],
    ["--allowed-paths", PROJECT, "--workspace", HOME, "--check", "ls"],
    ["--allowed-paths", PROJECT, "--spill-dir", PROJECT],
    ["--allowed-paths", PROJECT, "--audit-file", PROJECT + "/log"],
    ["--shell", "nope"], ["--set-env", "x"],
    ["--keep-env", "A*B"], ["--secret-env", "NOPE"],
    ["--set-env", "KEY=abc", "--secret-env", "KEY"], ["--network", "none"],
    ["--allowed-paths", "/", "--sandbox", "best-effort"],
    ["--allowed-paths", "/etc", "--sandbox", "best-effort"], ["--execution-mode", "srt"],
    ["--execution-mode", "docker", "--docker-network-mode", "x"],
    ["--execution-mode", "docker", "--docker-memory-limit", "1m"],
    ["--execution-mode", "docker", "--docker-mount", "/nope"],
    ["--execution-mode", "docker", "--docker-mount", "/proc"],
    ["--execution-mode", "docker", "--docker-user", "a b"],
    ["--execution-mode", "docker", "--docker-packages", '{"preinstall": {"python": ["x"]}}'],
    ["--execution-mode", "docker", "--docker-network-mode", "bridge", "--docker-packages",
     '{"preinstall": {"system": ["x"]}}'],
    ["--execution-mode", "docker", "--docker-packages", '{"x": 1}'],
    ["--execution-mode", "docker", "--docker-credentials", '{"mount": ["x"]}'],
    ["--execution-mode", "docker", "--docker-credentials", '{"env_file": "nope"}'],
    ["--execution-mode", "docker", "--docker-context", "a", "--docker-host", "b"],
    ["--execution-mode", "docker", "--docker-credentials",
     '{"env_file": ".env", "env_vars_from_file": ["NOPE"]}'],
    ["--execution-mode", "docker", "--docker-credentials", '{"env_vars": ["A=b"]}'],
    ["--execution-mode", "docker", "--docker-cpu-limit", "0.001"],
    ["--execution-mode", "docker", "--docker-tmp-size", "x"],
    ["--execution-mode", "docker", "--docker-image", "A B"],
    ["--execution-mode", "docker", "--docker-mount", PROJECT + ":/proc"],
    ["--execution-mode", "docker", "--docker-log-file", "log", "--workspace", "."],
    ["--execution-mode", "docker", "--docker-network-mode", "bridge", "--docker-read-only-root",
     "true", "--docker-packages", '{"preinstall": {"python": ["x"]}}'],
    ["--profile", "user-container"], ["--profile", "x"], ["--secret-env", "A*"],
    ["--keep-env", "A=B"], ["--command-prefix", " "], ["--command-prefix", "a\nb"],
    ["--venv-path", "/a:b"], ["--audit-file", "/"], ["--audit-file", "/tmp"], ["--pid-namespace"],
    ["--allowed-paths", PROJECT, "--venv-path", HOME, "--sandbox", "best-effort"],
    ["--allowed-paths", PROJECT, "--workspace", PROJECT, "--read-only", PROJECT + "/part",
     "--sandbox", "strict"],
    ["--sandbox", "best-effort", "--limit-open-files", "3"],
    ["--execution-mode", "ssh"], ["--execution-mode", "ssh", "--place-host", "-x"],
    ["--execution-mode", "slurm", "--slurm-option", "Mem=4G"],
    ["--execution-mode", "slurm", "--place-pool", "1001"], ["--places"], ["--json"],
    ["--execution-mode", "kubernetes", "--kubernetes-image", "x", "--kubernetes-option", "-n"],
    ["--execution-mode", "kubernetes", "--kubernetes-image", "x", "--kubernetes-limit", "cpu"],
    ["--execution-mode", "kubernetes", "--kubernetes-image", "x", "--kubernetes-option",
     "context=nosuch"],
    ["--execution-mode", "kubernetes"],
    ["--execution-mode", "kubernetes", "--kubernetes-warm-pool", "x", "--kubernetes-claim", "y"],
    ["--execution-mode", "command", "--place-command", "a | b"],
    ["--execution-mode", "command", "--place-command", "false"],
    ["--execution-mode", "command", "--place-command", "false", "--place-keep-alive", "0.5"],
    ["--execution-mode", "command", "--place-command", "sh -c 'echo place_agent: x >&2'",
     "--place-agent", "/bin/true"],
    ["--execution-mode", "command", "--place-command", "x --place", "--place-agent", "/bin/true"],
    ["--execution-mode", "ssh", "--place-host", "x", "--place-agent-path", "y", "--place-agent",
     "/bin/true"],
    ["--place", "--run", "ls"],
]
# Told only where something is missing, of a race, or not by way of the command line.
NOT_HERE = {
    "the agent in ... speaks protocol ...", "the agent in ... said: ...",
    "workspace: ... is not the same folder in ...", "Kubernetes pod ... does not start: ...",
    "sandbox: ...", "... has a value with a NUL byte in it",
    "... leads through the symbolic link ...; name the real directory",
    "allowed_paths: ... must be a directory to be kept away",
    "docker_credentials: ... has too long a value",
}
# Errors of these that are told by no start: of a command, or of the library alone.
OF_COMMANDS = {" leads elsewhere by now", "is not an absolute path"}
OF_THE_LIBRARY = {"must be more than zero", "timeouts of a container", " cannot be a variable",
                  "has a NUL byte or is longer than 4096 bytes", "is not the name of a variable",
                  " is empty, begins with - or has bytes that "}


def check_errors():
    rows = [line.split(" | ")[0] for line in section("When it does not start")
            .split("What is wrong with the engine")[0].splitlines() if line.startswith("| ")]
    patterns = {p: re.compile(".*".join(re.escape(part) for part in p.split("...")))
                for row in rows for p in re.findall(r"`([^`]+)`", row)
                if p != "--sandbox strict"}
    seen = set()
    untold = []
    not_here = set(NOT_HERE)
    if run([MCP, "--sandbox", "strict", "--check", "true"])[0]:  # no sandbox, which is told instead
        not_here.add("read_only: sandbox strict: ...; move it out, or set sandbox to best_effort")
    for words in WRONG:
        if words[0] == "CONFIG":
            path = os.path.join(WORK, "wrong.json")
            with open(path, "w", encoding="utf-8") as file:
                file.write(words[1])
            words = ["--config", path]
        status, printed = run([MCP] + words)
        hits = {p for p, pattern in patterns.items() if pattern.search(printed)}
        seen |= hits
        if status == 0 or not hits:
            untold.append(f"{words}: {printed.strip()[:200]}")
    # As the header has them, by the functions that make errors of options alone.
    definitions = HEADER[len(DECLARATIONS):]
    texts = section("When it does not start")
    absent = []
    for call in re.findall(r"(?:bad_option|environment_error|credential_error)\((.*?)\);",
                           definitions, re.S):
        literals = re.findall(r'"((?:[^"\\]|\\.)*)"', re.sub(r'"\s+"', "", call))
        longest = max((part for text in literals for part in text.split("%")), key=len, default="")
        known = OF_COMMANDS | OF_THE_LIBRARY | {"environment", "credentials: "}
        if longest.strip(" ,") not in texts and longest not in known:
            absent.append(longest)
    report("each error of an option that the header can make is told", "; ".join(absent))
    report(f"each of {len(WRONG)} errors at the start is told", "\n".join(untold))
    report(f"each of {len(patterns)} messages that are told is one",
           ", ".join(sorted(set(patterns) - seen - not_here)))


if not os.path.exists(MCP):
    print(f"FAILED: there is no {MCP}: set CODEEXEC_MCP")
    sys.exit(1)
prepare()
for check in (check_cpp, check_commands, check_configurations, check_links, check_names,
              check_errors):
    check()
if failures:
    print(f"docs: {failures} failed")
sys.exit(1 if failures else 0)
