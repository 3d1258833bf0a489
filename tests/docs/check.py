#!/usr/bin/env python3
"""What README.md and the pages in docs/ show and promise, tried:

    CODEEXEC_MCP=build/codeexec-mcp [IMPLEMENTATION=impl.o] [CXX=c++] [OUT=build/docs] \
        python3 tests/docs/check.py

Each C++ snippet is compiled and run, each command run where that can be done here, each
configuration read by the server, and what they print compared with what is shown. Links and their
anchors lead somewhere, names exist, the picture is what its script draws, each error at the start
is in the troubleshooting, and each name of the reference systems (reference_names.txt) in the
tables of docs/from-massgen.md.

In a page: a ```cpp block with a main() is a program, another one stands in the main() of one, where
`here` is an executor; a ```text block after it is what it prints. In a ```console block the lines
after "$ command" are what it prints; a command goes on after a backslash. A ```json block is a
configuration, or calls of tools with a line each, which are made, and the block after it is the
last answer. "..." stands for anything, alone on a line for any lines.
"""
import ast
import glob
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "hygiene"))
from checks import as_pattern  # noqa: E402
OUT = os.path.abspath(os.environ.get("OUT", os.path.join(ROOT, "build", "docs")))
CXX = shutil.which(os.environ.get("CXX", "c++"))  # by its path: BIN has another c++
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


# pages -------------------------------------------------------------------------------------------

HEADER = read("codeexec.hpp")
VERSION = ".".join(re.search(rf"^#define CODEEXEC_VERSION_{part} (\d+)$", HEADER, re.M).group(1)
                   for part in ("MAJOR", "MINOR", "PATCH"))
DECLARATIONS = HEADER[: HEADER.index("#endif  // CODEEXEC_HPP")]
# Pages that a program makes and checks, or that show nothing to try: their links are followed.
WITHOUT_EXAMPLES = {"docs/" + name + ".md" for name in (
    "CHANGELOG", "README", "api", "attacks", "fuzzing", "gallery", "options", "releasing")}
TRIED = {"cpp", "console", "json", "toml", "yaml", "python", "cmake"}


class Block:
    def __init__(self, page, kind, line):
        self.page, self.kind, self.line, self.text = page, kind, line, ""
        self.where = f"{page}:{line}"
        self.after = ""  # the text of the block after it, where that is what this one prints


class Page:
    """Of a page of Markdown its blocks, and its lines outside of them by number."""

    def __init__(self, path):
        self.path, self.text = path, read(path)
        self.blocks, self.lines, inside = [], [], None
        for number, line in enumerate(self.text.splitlines(), 1):
            if inside is None and line.startswith("```"):
                inside = Block(path, line[3:].strip(), number + 1)
            elif inside is not None and line.startswith("```"):
                self.blocks.append(inside)
                inside = None
            elif inside is not None:
                inside.text += line + "\n"
            else:
                self.lines.append((number, line))
        for block, after in zip(self.blocks, self.blocks[1:]):
            if (block.kind, after.kind) in {("cpp", "text"), ("json", "json")}:
                block.after = after.text
        titles = [re.sub(r"[^a-z0-9_ -]", "", title.lower()).replace(" ", "-")
                  for title in re.findall(r"^#+ (.*)", "\n".join(l for _, l in self.lines), re.M)]
        self.anchors = {title + (f"-{titles[:at].count(title)}" if title in titles[:at] else "")
                        for at, title in enumerate(titles)}


def pages_in(*patterns):
    found = {os.path.relpath(path, ROOT) for pattern in patterns
             for path in glob.glob(os.path.join(ROOT, pattern), recursive=True)}
    return {path: Page(path) for path in sorted(found)}


PAGES = pages_in("README.md", "docs/*.md")
SHOWN = [page for path, page in PAGES.items() if path not in WITHOUT_EXAMPLES]
TROUBLESHOOTING = "docs/troubleshooting.md"
MIGRATION = "docs/from-massgen.md"


def check_pages():
    lines = len(PAGES["README.md"].text.splitlines())
    report(f"README.md has {lines} lines", "" if lines <= 300 else "more than 300")
    for page in SHOWN:
        opening = page.text.split("\n## ")[0]
        kinds = set(re.findall(r"^```(\w+)", opening, re.M))
        problem = ""
        if page.path != "README.md" and "\n\nAfter this page you " not in opening:
            problem = "does not begin with what the reader can do after it: After this page you ..."
        elif page.path != "README.md" and not kinds & TRIED:
            problem = "has no example before its first section"
        report(f"{page.path}:1: the page opens with what it is for, and an example", problem)
        odd = [f"{b.where} {b.kind}" for b in page.blocks if b.kind not in TRIED | {"text"}]
        odd += [f"{page.path}:{number} {line}" for number, line in page.lines
                if line.startswith("    $ ")]
        report(f"{page.path}: each block is of a kind that is tried", "; ".join(odd))
    missing = [path for path in PAGES if path.startswith("docs/") and path != "docs/README.md"
               and f"]({path[5:]})" not in PAGES["docs/README.md"].text]
    report("docs/README.md leads to each page", ", ".join(missing))


def check_picture():
    drawn = subprocess.run([sys.executable, os.path.join(HERE, "drawing.py")], check=True,
                           stdout=subprocess.PIPE).stdout.decode()
    report("docs/command.svg is what tests/docs/drawing.py draws",
           "" if drawn == read("docs/command.svg") else "draw it again")


# where things are tried --------------------------------------------------------------------------

HOME = os.path.join(OUT, "home")
WORK = os.path.join(HOME, "project")
PROJECT = os.path.join(OUT, "project")
BIN = os.path.join(OUT, "bin")
PLACES = {"/path/to/project": PROJECT, "/path/to/workspace": PROJECT, "/home/me": HOME,
          "${workspaceFolder}": PROJECT, "/usr/local/bin/codeexec-mcp": MCP}
ENVIRONMENT = {"PATH": BIN + ":" + os.environ["PATH"], "HOME": HOME, "LC_ALL": "C.UTF-8",
               "DOCKER_HOST": "unix:///nonexistent/docker.sock"}
# What lies in the folder where commands run, or, by ~, in the home.
FILES = {
    ".env": "GITHUB_TOKEN=put-yours-here\n", "mine.json": "{}\n", "commands.jsonl": '"ls"\n',
    "my_program.cpp": "#include <codeexec.hpp>\nint main() {}\n",
    "agents.yaml": json.dumps({"agents": [{"id": "coder", "backend": {
        "type": "openai", "model": "x", "cwd": ".", "enable_mcp_command_line": True,
        "command_line_blocked_commands": ["git push"]}}]}),
    "~/.cursor/mcp.json": """{
  "mcpServers": {
    "github": {
      "command": "npx",
      "args": ["-y", "github-mcp"]
    }
  }
}
""",
}


def script(name, text):
    path = os.path.join(BIN, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)


def fresh():
    """A home and a folder in it as they are before the first command of a page."""
    for path in (HOME, PROJECT):
        shutil.rmtree(path, ignore_errors=True)
    for path in ("certs", ".ssh", "bin", ".cursor", "project/build/quickstart"):
        os.makedirs(os.path.join(HOME, path))
    os.makedirs(os.path.join(PROJECT, "part"))
    for name in ("codeexec.hpp", "src", "examples", "docker", "tests"):
        os.symlink(os.path.join(ROOT, name), os.path.join(WORK, name))
    os.symlink(MCP, os.path.join(WORK, "build/quickstart/codeexec-mcp"))
    for name, text in FILES.items():
        with open(os.path.join(WORK, name.replace("~", HOME)), "w", encoding="utf-8") as file:
            file.write(text)


def prepare():
    global IMPLEMENTATION
    os.makedirs(BIN, exist_ok=True)
    fresh()
    if not IMPLEMENTATION:
        IMPLEMENTATION = os.path.join(OUT, "implementation.o")
        run([CXX, "-std=c++17", "-O0", "-I" + ROOT, "-o", IMPLEMENTATION,
             "-c", os.path.join(ROOT, "tests/helpers/impl.cpp")])
    # The commands of pages with the compiler of the build, and an implementation that is there.
    script("c++", f'exec "{CXX}" "$@" -O0 -DCODEEXEC_IMPLEMENTED "{IMPLEMENTATION}"\n')
    script("codeexec-mcp", f'exec "{MCP}" "$@"\n')
    script("pkg-config", f'echo "-I{ROOT} -pthread"\n')
    # Starts the one server that it finds by the name, as MassGen does; that ends with its input.
    script("massgen", "exec fastmcp run /m/_code_execution_server.py:create_server -- "
           "--allowed-paths . < /dev/null 2> massgen.log\n")
    script("claude", 'while [ "$1" != -- ]; do shift; done; shift; exec "$@" --check true\n')


# C++ ---------------------------------------------------------------------------------------------

PIECE = ("int snippet_{number}() {{\n"
         "auto here = codeexec::LocalExecutor::create({{}});\n"
         "if (!here) return 2;\n"
         "{{\n"
         "#line {line} \"{page}\"\n"
         "{text}}}\nreturn 0;\n}}\n")


def compiled(name, source, where):
    """The program, or None."""
    path = os.path.join(OUT, name)
    with open(path + ".cpp", "w", encoding="utf-8") as file:
        file.write(source)
    status, told = run([CXX, "-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror",
                        "-DCODEEXEC_IMPLEMENTED", "-I" + ROOT, path + ".cpp",
                        IMPLEMENTATION, "-o", path, "-pthread"])
    report(f"{where}: the C++ compiles", told[:3000] if status else "")
    return None if status else path


def check_cpp():
    code = [block for page in SHOWN for block in page.blocks if block.kind == "cpp"]
    pieces = [block for block in code if "int main" not in block.text]
    source = '#include "codeexec.hpp"\n#include <cstdio>\n#include <cstdlib>\n'
    for number, piece in enumerate(pieces):
        source += PIECE.format(number=number, line=piece.line, page=piece.page, text=piece.text)
    source += "int main(int, char** argv) {\n  switch (std::atoi(argv[1])) {\n"
    source += "".join(f"case {n}: return snippet_{n}();\n" for n in range(len(pieces)))
    source += "}\nreturn 3;\n}\n"
    program = compiled("pieces", source, "all pages, what stands in a main()")
    programs = {}  # by their text: a page may show the program of another one
    for number, block in enumerate(code):
        if block in pieces:
            words = [program, str(pieces.index(block))]
        else:
            if block.text not in programs:
                source = f'#line {block.line} "{block.page}"\n' + block.text
                programs[block.text] = compiled(f"program_{number}", source, block.where)
            words = [programs[block.text]]
        if not words[0]:
            continue
        # Without a home directory: /tmp, which the snippets share with a container, may hold ours.
        done = subprocess.run(words, cwd=WORK, timeout=60, check=False,
                              env=dict(ENVIRONMENT, HOME="/nonexistent"), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        printed = done.stdout.decode()
        problem = ""
        if done.returncode:
            problem = f"exit status {done.returncode}: {done.stderr.decode()}"
        elif block.after and not re.fullmatch(as_pattern(block.after), printed):
            problem = "it prints\n" + printed
        elif block in pieces and not block.after and printed:
            problem = "the page does not show what it prints:\n" + printed
        shown = " as shown" if block.after else ""
        report(f"{block.where}: the C++ works{shown}", problem)


# commands ----------------------------------------------------------------------------------------

# Those that are not run here, and what has tried them.
ELSEWHERE = {
    "cmake -S . -B build -DCODEEXEC_BUILD_TESTS=OFF": "tests/hygiene/consumer.sh",
    "cmake --build build --target codeexec-mcp": "tests/hygiene/consumer.sh",
    "cmake --install build --prefix /usr/local --strip": "tests/hygiene/consumer.sh",
    "conan create tests/packaging/conan": "tests/packaging/run.sh",
    "vcpkg install codeexec --overlay-ports=tests/packaging/vcpkg": "tests/packaging/run.sh",
    "cmake --build build --target codeexec-place-static": "tests/hygiene/static.sh",
    "sh examples/quickstart.sh": "tests/hygiene/examples.sh",
    "./fleet slurm mem=1G": "tests/hygiene/examples.sh",
    "kubectl apply -f examples/kubernetes/namespace.yaml -f examples/kubernetes/rbac.yaml":
        "tests/unit/cluster/kubernetes.cpp",
    "codeexec-mcp --allowed-paths \"$PWD\" --network allow --allow-domains python example.org "
    "--run 'pip download six'": "tests/unit/proxy/clients.cpp",
    "docker ps -a --filter label=codeexec.managed=1": "tests/unit/docker/containers.cpp",
    "docker rm -f $(docker ps -aq --filter label=codeexec.kind=persistent)":
        "tests/unit/docker/containers.cpp",
    "docker volume rm $(docker volume ls -q --filter label=codeexec.managed=1)":
        "tests/unit/docker/surroundings.cpp",
}


# Of commands in places that are not here, the options alone are tried.
ELSEWHERE_MODE = re.compile(r"--execution-mode (ssh|slurm|kubernetes|command)\b")
ACTIONS = re.compile(r" --(run ('[^']*'|\S+)|places-remove|places|doctor|json)(?= |$)")


def commands_of(block):
    """Triples of a line, a command and its output."""
    found, goes_on = [], False
    for number, line in enumerate(block.text.splitlines(), block.line):
        if goes_on:
            found[-1][1] += line.strip()
        elif line.startswith("$ "):
            found.append([f"{block.page}:{number}", line[2:], ""])
        elif not found:
            return [[block.where, "false", "a console block begins with $"]]
        else:
            found[-1][2] += line + "\n"
            continue
        goes_on = found[-1][1].endswith("\\")
        found[-1][1] = found[-1][1].rstrip("\\")
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
    if ELSEWHERE_MODE.search(bare):
        status, printed = run(["sh", "-c", with_places(ACTIONS.sub("", bare)) +
                               " --client-config vscode"])
        return report(f"{what} (has these options)", printed if status else "")
    status, printed = run(["sh", "-c", with_places(bare)])
    judges = re.search("--(doctor|sandbox-report|run|check|verify-audit|replay)", bare)
    allowed = {0, 1, 125} if judges else {0}
    if "--ask-commands" in bare:
        allowed.add(3)
    problem = ""
    if status not in allowed:
        problem = f"exit status {status}: {printed[:1000]}"
    elif shown and not re.fullmatch(as_pattern(with_places(shown)), printed):
        problem = "it prints\n" + printed[:1000]
    return report(what, problem)


def check_commands():
    for page in SHOWN:
        fresh()
        for block in page.blocks:
            if block.kind == "console":
                for where, command, shown in commands_of(block):
                    check_command(where, command, shown)


# configurations ----------------------------------------------------------------------------------


def accepts(where, words):
    elsewhere = ELSEWHERE_MODE.search(" ".join(words))
    status, printed = run(words + (["--client-config", "vscode"] if elsewhere
                                   else ["--check", "true"]))
    report(f"{where}: the server takes it", printed if status else "")


def answers(calls):
    """The answer to the last of these calls of tools, as JSON."""
    server = subprocess.Popen([MCP, "--workspace", WORK], cwd=WORK, env=ENVIRONMENT,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(method, parameters):
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
        server.stdin.write(json.dumps(message).encode() + b"\n")
        server.stdin.flush()
        return json.loads(server.stdout.readline())["result"]

    try:
        ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
                           "clientInfo": {"name": "check", "version": "1"}})
        shell = ""
        for call in calls:
            if "shell_id" in call["arguments"]:
                call["arguments"]["shell_id"] = shell
            answer = ask("tools/call", call)["structuredContent"]
            shell = answer.get("shell_id", shell)
        return json.dumps(answer, separators=(",", ":"), ensure_ascii=False)
    finally:
        server.stdin.close()
        server.wait(60)


def packed(text):
    """JSON without the blanks that only people want."""
    return re.sub(r'(?<=[:,{]) (?=["{\[\d.tfn])', "", text)


def check_json(block):
    try:
        values = [json.loads(with_places(block.text))]
    except ValueError:
        values = [json.loads(line) for line in with_places(block.text).splitlines()]
    if all({"name", "arguments"} <= set(value) for value in values):
        missing = [value["arguments"]["command"].split()[0] for value in values
                   if "command" in value["arguments"]
                   and not shutil.which(value["arguments"]["command"].split()[0])]
        if missing:
            print(f"SKIPPED: {block.where}: there is no {missing[0]}")
            return
        printed = packed(answers(values))
        good = re.fullmatch(as_pattern(packed(block.after)), printed + "\n")
        report(f"{block.where}: the last call has the answer that is shown",
               "" if good else printed)
        return
    for value in values:
        servers = value.get("mcpServers") or value.get("servers")
        if servers:
            for server in servers.values():
                words = [server["command"].replace("codeexec-mcp", MCP, 1)
                         if server["command"] == "codeexec-mcp" else server["command"]]
                accepts(block.where, words + server["args"])
        elif "verdict" in value:
            report(f"{block.where}: is a record")
        else:
            path = os.path.join(WORK, "config.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(value, file)
            accepts(block.where, [MCP, "--config", path])


def check_manifest(block):
    """A resource of Kubernetes, of which an example has each line."""
    lines = {line.strip() for path in glob.glob(os.path.join(ROOT, "examples/kubernetes/*.yaml"))
             for line in read(path).splitlines()}
    odd = [line for line in block.text.splitlines() if line.strip() not in lines]
    report(f"{block.where}: examples/kubernetes has each line", "; ".join(odd))


def check_configuration(block):
    text = with_places(block.text)
    if block.kind == "json":
        check_json(block)
    elif block.kind == "yaml" and "apiVersion:" in text:
        check_manifest(block)
    elif block.kind in ("toml", "yaml"):
        if block.kind == "toml" and sys.version_info >= (3, 11):
            import tomllib
            tomllib.loads(block.text)
        command = re.search(r"command\s*[:=]\s*\"?([^\s\"]+)", text).group(1)
        args = json.loads(re.search(r"args\s*[:=]\s*(\[.*?\])", text, re.S).group(1))
        accepts(block.where, [command] + args)
    elif block.kind == "python":
        calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)
                 and {"command", "args"} <= {k.arg for k in node.keywords}]
        values = [{k.arg: ast.literal_eval(k.value) for k in call.keywords} for call in calls]
        # Or it gives both in a dictionary.
        values += [ast.literal_eval(node) for node in ast.walk(ast.parse(text))
                   if isinstance(node, ast.Dict) and {"command", "args"} <=
                   {k.value for k in node.keys if isinstance(k, ast.Constant)}]
        for value in values:
            accepts(block.where, [value["command"]] + value["args"])
        report(f"{block.where}: the Python starts a server", "" if values else "no call")
    elif block.kind == "cmake":
        versions = re.findall(r"(?:codeexec |GIT_TAG v)(\d+[\d.]*)", block.text)
        wrong = [v for v in versions if not (VERSION + ".").startswith(v + ".")]
        targets = set(re.findall(r"codeexec::\w+", block.text)) - {"codeexec::impl"}
        report(f"{block.where}: the CMake names version {VERSION}",
               f"{wrong} {targets}" if wrong or targets else "")


def check_configurations():
    for page in SHOWN:
        fresh()
        answer = ""
        for block in page.blocks:
            if block.text != answer:
                try:
                    check_configuration(block)
                except (AttributeError, KeyError, ValueError) as error:
                    report(f"{block.where}: the {block.kind} can be read", repr(error))
            answer = block.after if '"arguments":' in block.text else ""


# names and links ---------------------------------------------------------------------------------


def check_links():
    every = dict(PAGES)
    every.update(pages_in("src/**/*.md", "tests/*.md", "examples/**/*.md", ".github/**/*.md"))
    wrong, count = [], 0
    for page in every.values():
        for number, line in page.lines:
            for link in re.findall(r"\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"",
                                   re.sub(r"`[^`]*`", "", line)):
                link = link[0] or link[1]
                count += 1
                if re.match(r"https?://", link):
                    continue
                path, _, anchor = link.partition("#")
                target = os.path.normpath(os.path.join(os.path.dirname(page.path), path)
                                          if path else page.path)
                if not os.path.exists(os.path.join(ROOT, target)):
                    wrong.append(f"{page.path}:{number}: {link}: there is no {target}")
                elif anchor and (target not in every or anchor not in every[target].anchors):
                    wrong.append(f"{page.path}:{number}: {link}: no title there has this anchor")
    report(f"{count} links lead to what is there", "\n".join(wrong))


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


# Options of other programs that pages name: of docker, Gemini CLI, podman, ssh, kubectl, salloc,
# our scripts.
FOREIGN = {"--userns", "--all", "--overlap", "--docker", "--sudo", "--tag", "--name",
           "--skip-trust"}


def check_names():
    named = SHOWN + [PAGES["docs/CHANGELOG.md"], PAGES["docs/options.md"]]
    wrong = []
    for page in named:
        for number, line in enumerate(page.text.splitlines(), 1):
            for name, member in re.findall(r"\b([A-Z]\w+)::(\w+)", line):
                if not re.search(rf"\b{member}\b", members(name)):
                    wrong.append(f"{page.path}:{number}: {name}::{member}")
    report("each Class::member is in the header", "\n".join(wrong))
    status, told = run([MCP, "--help-all"])
    options = set(re.findall(r"--[a-z][a-z-]+", told)) | FOREIGN
    # The first column of the tables of docs/from-massgen.md has the names of others.
    wrong = []
    for page in named:
        for number, line in page.lines:
            if page.path == MIGRATION:
                line = line.rsplit(" | ", 1)[-1]
            wrong += [f"{page.path}:{number}: {option}"
                      for option in re.findall(r"`(--[a-z][a-z-]+)", line) if option not in options]
    report("each option is one", "\n".join(wrong) or (told if status else ""))
    # In the first column, or, where there is none here, named beside the reason.
    names = [line for line in read("tests/docs/reference_names.txt").splitlines()
             if line and not line.startswith("#")]
    rows = [line for _, line in PAGES[MIGRATION].lines if line.startswith("| ")]
    there = "\n".join(row.rsplit(" | ", 1)[0] for row in rows)
    missing = [n for n in names if not re.search(rf"(?<![\w-]){re.escape(n)}(?![\w-])", there)]
    report(f"{MIGRATION} has each of {len(names)} names of the reference systems",
           ", ".join(missing))
    empty = [row for row in rows
             if row.startswith("| `") and len(row.rsplit(" | ", 1)[-1].strip(" |")) < 3]
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
    ["--set-env", "KEY=abc", "--secret-env", "KEY"], ["--network", "none", "--sandbox", "off"],
    ["--hidden-paths", "x", "--sandbox", "off"],
    ["--allowed-paths", PROJECT, "--hidden-paths", PROJECT, "--sandbox", "best-effort"],
    ["--allowed-paths", PROJECT, "--hidden-paths", *map(str, range(65))],
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
    ["--venv-path", "/a:b"], ["--audit-file", "/"], ["--audit-file", "/tmp"],
    ["--pid-namespace", "--sandbox", "off"],
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
# Only where something is missing, in a race, or not by way of the command line.
NOT_HERE = {
    "the agent in ... speaks protocol ...", "the agent in ... said: ...",
    "workspace: ... is not the same folder in ...", "Kubernetes pod ... does not start: ...",
    "sandbox: ...", "... has a value with a NUL byte in it",
    "... leads through the symbolic link ...; name the real directory",
    "allowed_paths: ... must be a directory to be kept away",
    "docker_credentials: ... has too long a value",
    # What git says in a linked worktree, and a system without namespaces.
    "fatal: not a git repository", ".../.git leads to ..., which ...",
    "could not lock config file ...", "could not create directory of '.../worktrees/...'",
    "Unable to create '.../packed-refs.lock': Permission denied",
    "no namespaces can be made here: ...",
}
# Errors of these that are told by no start: of a command, or of the library alone.
OF_COMMANDS = {" leads elsewhere by now", "is not an absolute path"}
OF_THE_LIBRARY = {"must be more than zero", "timeouts of a container", " cannot be a variable",
                  "has a NUL byte or is longer than 4096 bytes", "is not the name of a variable",
                  " is empty, begins with - or has bytes that "}


def check_errors():
    texts = PAGES[TROUBLESHOOTING].text
    rows = [line.split(" | ")[0] for line in texts.split("\n## The engine")[0].splitlines()
            if line.startswith("| ")]
    patterns = {p: re.compile(".*".join(re.escape(part) for part in p.split("...")))
                for row in rows for p in re.findall(r"`([^`]+)`", row)
                if p not in ("--sandbox strict", "--check 'COMMAND'")}
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
for check in (check_pages, check_picture, check_links, check_names, check_errors,
              check_configurations, check_commands, check_cpp):
    check()
if failures:
    print(f"docs: {failures} failed")
sys.exit(1 if failures else 0)
