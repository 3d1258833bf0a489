"""Real work with each of the server's tools; the same steps as in tools.mjs."""

import base64
import os
import re
import socket

import anyio
from python_support import alive, ask, check, is_error, member, refusal, structured

NAMES = [
    "execute_command",
    "execute_code",
    "start_background_shell",
    "get_background_shell_output",
    "get_background_shell_status",
    "write_background_shell",
    "kill_background_shell",
    "list_background_shells",
    "read_file",
    "write_file",
    "edit_file",
    "list_files",
    "search_files",
    "read_docstring",
]

# One pixel.
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
    "AAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
EVERY_BYTE = base64.b64encode(bytes(range(256))).decode()

MODULE = '''"""Sums,
and nothing else."""
open("imported", "w").close()


def add(a, b):
    """Adds two numbers.

    Of any type.
    """
    return a + b


class Sum:
    def of(self, numbers):
        "Adds many numbers."
        return sum(numbers)
'''

# Each experiment goes on when all three have begun, and ends when it may.
EXPERIMENT = """import pathlib, sys, time
name, code = sys.argv[1], int(sys.argv[2])
pathlib.Path(name + ".begun").touch()
while len(list(pathlib.Path().glob("*.begun"))) < 3:
    time.sleep(0.02)
print(name, "has company", flush=True)
while not pathlib.Path("go").exists():
    time.sleep(0.02)
pathlib.Path(name + ".result").write_text(str(sum(range(100 * (code + 1)))))
print(name, "is done")
sys.exit(code)
"""

# Waits for a line after each epoch; at last it prints a log as fast as it can. A line and its end
# are written at once, also where PYTHONUNBUFFERED is set.
TRAINING = """import sys
for epoch in range(1, 6):
    print(f"epoch {epoch} loss {1 / epoch:.3f}\\n", end="", flush=True)
    sys.stdin.readline()
for line in range(3000):
    print(f"saved layer {line} \\u00e4\\u20ac\\U0001f600")
"""
LOG = [f"saved layer {line} \u00e4\u20ac\U0001f600\n" for line in range(3000)]


def accepts_connections(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Tools:
    """The steps, for one connected client."""

    def __init__(self, client, workspace, project):
        self.client = client
        self.workspace = workspace
        self.project = project

    async def use(self, step):
        await step("writes files, and reads parts of them", self.files)
        await step("gets bytes and images as they are", self.binary)
        await step("reads docstrings and imports nothing", self.docstrings)
        await step("runs code", self.code)
        await step("runs Markdown block by block until one fails", self.markdown)
        await step("serves a web page in the background until it is killed", self.web_server)
        await step("runs three experiments side by side", self.experiments)
        await step("watches a training: no line is lost or told twice", self.training)
        await step("types into programs", self.interactive)
        await step("leaves to the background what takes long", self.takes_long)
        await step("keeps the directory and the variables of a session", self.sessions)
        await step("sees what is printed while it runs", self.live)
        await step("is told what to do when a call makes no sense", self.mistakes)

    # calls ----------------------------------------------------------------------------------------

    async def ask(self, tool, progress=None, **arguments):
        return await ask(self.client, tool, progress, **arguments)

    async def refusal(self, tool, **arguments):
        return await refusal(self.client, tool, **arguments)

    async def execute(self, command, **more):
        return await self.ask("execute_command", command=command, work_dir=self.project, **more)

    async def start(self, command, **more):
        arguments = {"command": command, "work_dir": self.project, **more}
        shell = await self.ask("start_background_shell", **arguments)
        check(shell["status"] == "running" and shell["pid"] > 0, "it runs", shell)
        return shell["shell_id"]

    async def output(self, shell_id, **more):
        return await self.ask("get_background_shell_output", shell_id=shell_id, **more)

    async def write(self, shell_id, text, **more):
        return await self.ask("write_background_shell", shell_id=shell_id, input=text, **more)

    async def listed(self):
        return (await self.ask("list_background_shells"))["shells"]

    # steps ----------------------------------------------------------------------------------------

    async def files(self):
        file_path, whole = "notes/deep/poem.txt", "one\ntwo\nthree\nfour \u00e4\n"
        written = await self.ask("write_file", file_path=file_path, content=whole)
        place = os.path.join(self.workspace, file_path)
        check(written == {"success": True, "file_path": place, "bytes": 22}, "told", written)
        with open(place, encoding="utf-8") as file:
            check(file.read() == whole, "written", place)
        everything = await self.ask("read_file", file_path=file_path)
        check(everything["content"] == whole and everything["size"] == 22, "read", everything)
        check(everything["encoding"] == "utf-8", "encoding", everything)
        check(everything["lines"] == everything["next"] == 4, "lines", everything)
        check(everything["more"] is False, "to its end", everything)
        lines = await self.ask("read_file", file_path=file_path, offset=1, count=2)
        check(lines["content"] == "two\nthree\n" and lines["more"], "lines", lines)
        rest = await self.ask("read_file", file_path=file_path, offset=lines["next"])
        check(rest["content"] == "four \u00e4\n" and not rest["more"], "the rest", rest)
        part = await self.ask("read_file", file_path=file_path, unit="bytes", offset=4, count=3)
        check(part["content"] == "two" and part["next"] == 7 and part["more"], "bytes", part)
        listing = await self.ask("list_files", path="notes", depth=2)
        check(listing["path"] == f"{self.workspace}/notes" and not listing["more"], "list", listing)
        entries = [(entry["path"], entry["type"]) for entry in listing["entries"]]
        check(entries == [("deep", "directory"), ("deep/poem.txt", "file")], "entries", listing)
        check(listing["entries"][1]["size"] == 22, "size", listing)
        edits = [{"old_text": "two\n", "new_text": "second\n"}]
        edited = await self.ask("edit_file", file_path=file_path, edits=edits)
        check("-two\n+second\n" in edited["diff"], "difference", edited)
        found = await self.ask("search_files", pattern="^sec.nd$", glob="*.txt")
        check(found["text"].endswith("poem.txt\n2:second\n"), "found", found)
        outside = await self.refusal("read_file", file_path="/etc/shadow")
        check("/etc/shadow" in outside, "which file", outside)

    async def binary(self):
        encoded = {"encoding": "base64"}
        await self.ask("write_file", file_path="every.bin", content=EVERY_BYTE, **encoded)
        told = await self.refusal("read_file", file_path="every.bin")
        check("base64" in told, "what to do", told)
        whole = await self.ask("read_file", file_path="every.bin", **encoded)
        check(whole["content"] == EVERY_BYTE and whole["encoding"] == "base64", "file", whole)
        printed = await self.execute("cat ../every.bin; cat ../every.bin >&2", **encoded)
        check(printed["stdout"] == printed["stderr"] == EVERY_BYTE, "output", printed)
        check(printed["encoding"] == "base64" and printed["stdout_bytes"] == 256, "told", printed)
        await self.ask("write_file", file_path="pixel.png", content=PNG, **encoded)
        image = await self.client.call("read_file", {"file_path": "pixel.png"})
        (content,) = image.content
        mime_type = member(content, "mimeType", "mime_type")
        check(content.type == "image" and mime_type == "image/png", "image", image)
        check(content.data == PNG, "data", image)

    async def docstrings(self):
        source = {"file_path": "project/sums.py"}
        await self.ask("write_file", content=MODULE, **source)
        whole = await self.ask("read_docstring", **source)
        check(whole["docstring"] == "Sums,\nand nothing else.", "module", whole)
        add = await self.ask("read_docstring", function_name="add", **source)
        check(add["docstring"] == "Adds two numbers.\n\nOf any type.", "function", add)
        of = await self.ask("read_docstring", function_name="Sum.of", **source)
        check(of["docstring"] == "Adds many numbers.", "method", of)
        missing = await self.refusal("read_docstring", function_name="Sum.by", **source)
        check("Sum.by" in missing, "what is missing", missing)
        for place in (self.workspace, self.project):
            check(not os.path.exists(os.path.join(place, "imported")), "imported", place)

    async def run_code(self, code, **more):
        return await self.ask("execute_code", code=code, work_dir=self.project, **more)

    async def code(self):
        code = "import sys\nprint(f\"{sys.prefix}\" + '$HOME \"`')\n"
        python = await self.run_code(code, language="python")
        check(python["stdout"] == f'{self.project}/.venv$HOME "`\n', "python", python)
        check(python["success"] and python["exit_code"] == 0, "python", python)
        check("blocks" not in python, "one block", python)
        check("code_file" not in python, "its file is gone", python)
        left = [name for name in os.listdir(self.project) if name.startswith("tmp_code")]
        check(left == [], "its file is gone", left)
        bash = await self.run_code('words=(a "b c")\necho "${#words[@]}"', language="bash")
        check(bash["success"] and bash["stdout"] == "2\n", "bash", bash)
        page = await self.run_code("<p>a page</p>\n", language="html")
        check(page["success"] and page["blocks"] == 0, "what is only saved", page)
        check(os.path.dirname(page["code_file"]) == self.project, "its file", page)
        refused = await self.run_code("sudo true", language="bash")
        check(not refused["success"] and refused["outcome"] == "refused", "sudo", refused)
        check(refused["rule"], "its rule", refused)

    async def markdown(self):
        both = await self.run_code(
            'First:\n```python\n# filename: tools/make.py\nopen("made", "w").write("by python")\n'
            "```\nthen\n```bash\ncat made; echo\n```\n"
        )
        check(both["success"] and both["blocks"] == 2, "both", both)
        check(both["stdout"] == "by python\n", "both", both)
        check(both["code_file"] == f"{self.project}/tools/make.py", "its file", both)
        check(both["files"][0] == both["code_file"], "its file", both)
        first = await self.run_code("```bash\necho one; exit 3\n```\n```bash\ntouch second\n```\n")
        check(not first["success"] and first["exit_code"] == 3, "the first", first)
        check("blocks" not in first and first["stdout"] == "one\n", "what it printed", first)
        second = os.path.join(self.project, "second")
        check(not os.path.exists(second), "the second is not run", first)

    async def web_server(self):
        await self.ask("write_file", file_path="project/site/page.txt", content="a page\n")
        directory = os.path.join(self.project, "site")
        shell = await self.start(
            f"python3 -u -m http.server 0 --bind 127.0.0.1 --directory {directory}"
        )
        ready = await self.output(shell, wait_for="Serving HTTP on .* port [0-9]+ ")
        check(ready["wait"] == "matched" and ready["status"] == "running", "ready", ready)
        check(ready["exit_code"] is None, "no exit code", ready)
        port = int(re.search(r" port (\d+) ", ready["stdout"])[1])
        page = await self.execute(f"curl -sS --noproxy '*' http://127.0.0.1:{port}/page.txt")
        check(page["success"] and page["stdout"] == "a page\n", "the page", page)
        request = '"GET /page.txt .* 200'
        logged = await self.output(shell, since=ready["next"], wait_for=request)
        # The end of the line that told the port may have come later than its start.
        check(logged["wait"] == "matched" and not logged["stdout"].strip(), "its log", logged)
        going = await self.ask("get_background_shell_status", shell_id=shell)
        check(going["status"] == "running" and going["stdout_bytes"] > 0, "status", going)
        check(alive(directory), "the process", directory)
        killed = await self.ask("kill_background_shell", shell_id=shell)
        check(killed["status"] == "killed" and killed["signal"] == "SIGTERM", "killed", killed)
        check(not alive(directory), "nothing of it runs", directory)
        check(not accepts_connections(port), "the port is closed", port)
        again = await self.ask("kill_background_shell", shell_id=shell)
        check(again["status"] == "killed" and again["signal"] is None, "again", again)
        check(again["message"], "again", again)
        status = await self.ask("get_background_shell_status", shell_id=shell)
        check(status["status"] == "killed" and status["cwd"] == self.project, "status", status)
        rest = await self.output(shell, since=logged["next"], wait_for="exit")
        check(rest["status"] == "killed" and rest["wait"] == "ended", "it has ended", rest)

    async def experiments(self):
        work_dir = os.path.join(self.project, "experiments")
        await self.ask("write_file", file_path=f"{work_dir}/run.py", content=EXPERIMENT)
        before = len(await self.listed())
        shells = {}

        async def start(name, code):
            shells[name] = await self.start(f"python3 run.py {name} {code}", work_dir=work_dir)

        async def begins(name):
            going = await self.output(shells[name], wait_for="has company")
            check(going["wait"] == "matched" and going["status"] == "running", "going on", going)

        async def ends(name, code):
            end = await self.output(shells[name], wait_for="exit")
            check(end["wait"] == "ended" and end["exit_code"] == code, "exit", end)
            check(end["status"] == ("failed" if code else "stopped"), "status", end)
            check(end["stdout"] == f"{name} has company\n{name} is done\n", "output", end)
            result = await self.ask("read_file", file_path=f"{work_dir}/{name}.result")
            check(result["content"] == ["4950", "19900", "44850"][code], "result", result)

        names = ["a", "b", "c"]
        async with anyio.create_task_group() as tasks:
            for code, name in enumerate(names):
                tasks.start_soon(start, name, code)
        async with anyio.create_task_group() as tasks:
            for name in names:
                tasks.start_soon(begins, name)
        running = {s["shell_id"] for s in await self.listed() if s["status"] == "running"}
        check(set(shells.values()) <= running, "three run", running)
        await self.ask("write_file", file_path=f"{work_dir}/go", content="")
        async with anyio.create_task_group() as tasks:
            for code, name in enumerate(names):
                tasks.start_soon(ends, name, code)
        everything = await self.listed()
        check(len(everything) == before + 3, "three more", everything)
        for code, name in enumerate(names):
            (shell,) = [each for each in everything if each["shell_id"] == shells[name]]
            check(shell["exit_code"] == code and shell["cwd"] == work_dir, "listed", shell)
            check(shell["command"] == f"python3 run.py {name} {code}", "command", shell)

    async def training(self):
        await self.ask("write_file", file_path="project/train.py", content=TRAINING)
        shell = await self.start("python3 train.py")
        since = ""
        for epoch in range(1, 6):
            pattern = r"^epoch \d loss \d\.\d{3}$"
            news = await self.output(shell, since=since, wait_for=pattern)
            line = f"epoch {epoch} loss {1 / epoch:.3f}\n"
            check(news["wait"] == "matched" and news["stdout"] == line, line, news)
            since = news["next"]
            nothing = await self.output(shell, since=since)
            check(nothing["stdout"] == "" and nothing["next"] == since, "nothing new", nothing)
            early = await self.output(shell, since=since, wait_for="epoch", timeout=0.01)
            check(early["wait"] == "timed_out" and early["stdout"] == "", "too early", early)
            written = await self.write(shell, "\n")
            check(written["written"] == 1 and written["status"] == "running", "written", written)
        pieces, news = [], {"wait": "matched"}
        while news["wait"] == "matched":
            news = await self.output(shell, since=since, wait_for=".")
            pieces.append(news["stdout"])
            since = news["next"]
            check("stdout_missed_bytes" not in news, "nothing is missed", since)
        check("".join(pieces) == "".join(LOG), "the log", [len(piece) for piece in pieces])
        last = await self.output(shell, tail=2)
        check(last["stdout"] == "".join(LOG[-2:]), "tail", last)
        check(last["stdout_missed_bytes"] > 0, "tail", last)
        check(last["status"] == "stopped" and last["exit_code"] == 0, "its end", last)

    async def interactive(self):
        python = await self.start("python3 -i -q")
        await self.write(python, "x = 6\n")
        await self.write(python, 'print(f"x is {x * 7}\\n", end="")\n')
        answer = await self.output(python, wait_for=r"^x is \d+$")
        check(answer["wait"] == "matched", "its answer", answer)
        check(answer["stdout"] == "x is 42\n", "its answer", answer)
        await self.write(python, "import sys; sys.exit(x)\n")
        left = await self.output(python, wait_for="exit", since=answer["next"])
        check(left["wait"] == "ended" and left["exit_code"] == 6, "exit", left)
        check(left["stdout"] == "", "exit", left)
        late = await self.refusal("write_background_shell", shell_id=python, input="late\n")
        check("ended" in late, "too late", late)
        cat = await self.start("cat; echo and out")
        await self.write(cat, "\u00e4 line\n")
        line = await self.output(cat, wait_for="line$")
        check(line["stdout"] == "\u00e4 line\n", "line", line)
        await self.write(cat, "the last", close_input=True)
        end = await self.output(cat, since=line["next"], wait_for="exit")
        check(end["stdout"] == "the lastand out\n", "end of input", end)
        check(end["status"] == "stopped", "end of input", end)

    async def takes_long(self):
        command = "echo first; until [ -e over ]; do sleep 0.05; done; echo second"
        # On a busy machine it may need longer to print its first line.
        for seconds in (0.3, 1, 3, 10):
            answer = await self.execute(command, run_in_background_after=seconds)
            check(answer["outcome"] == "running" and answer["success"], "running", answer)
            check("exit_code" not in answer, "no exit code", answer)
            check(len(answer["notes"]) == 1, "one note", answer)
            shell = answer["shell_id"]
            if answer["stdout"]:
                break
            await self.ask("kill_background_shell", shell_id=shell)
        check(answer["stdout"] == "first\n", "so far", answer)
        check((await self.output(shell))["status"] == "running", "it goes on", answer)
        await self.ask("write_file", file_path="project/over", content="")
        end = await self.output(shell, wait_for="exit")
        check(end["stdout"] == "first\nsecond\n" and end["status"] == "stopped", "its end", end)
        before = len(await self.listed())
        quick = await self.execute("echo quick", run_in_background_after=30)
        check(quick["success"] and quick["stdout"] == "quick\n", "quick", quick)
        check("shell_id" not in quick, "quick", quick)
        check(len(await self.listed()) == before, "not known as a shell", quick)

    async def in_session(self, name, command, **more):
        return await self.ask("execute_command", command=command, session_id=name, **more)

    async def sessions(self):
        begun = await self.in_session(
            "first.1", 'mkdir -p d/e && cd d/e && export WORDS="a  b"', work_dir=self.project
        )
        check(begun["success"] and begun["session_id"] == "first.1", "begun", begun)
        check(begun["session_work_dir"] == f"{self.project}/d/e", "its directory", begun)
        after = await self.in_session("first.1", 'pwd; echo "$WORDS"; cd ../..')
        check(after["stdout"] == f"{self.project}/d/e\na  b\n", "both are kept", after)
        check(after["session_work_dir"] == self.project, "its directory now", after)
        other = await self.in_session("second", 'pwd; echo "$WORDS"')
        check(other["stdout"] == f"{self.workspace}\n\n", "another session", other)

    async def live(self):
        for tool, argument in (("execute_command", "command"), ("execute_code", "code")):
            heard = os.path.join(self.project, f"heard.{tool}")
            script = (
                f"echo hello '\u20ac'; until [ -e '{heard}' ]; do sleep 0.05; done; echo bye"
            )
            messages = []

            async def on_progress(value, total, message, messages=messages, heard=heard):
                messages.append(message)
                if "hello \u20ac\n" in "".join(messages):
                    with open(heard, "w", encoding="utf-8"):
                        pass

            arguments = {argument: script, "work_dir": self.project, "timeout": 20}
            result = await self.ask(tool, progress=on_progress, **arguments)
            check(result["success"], tool, result)
            check(result["stdout"] == "hello \u20ac\nbye\n", tool, result)
            check("".join(messages).count("hello \u20ac\n") == 1, "told once", messages)

    async def mistakes(self):
        unknown = "shell_0123456789abcdef"
        for tool in NAMES:
            if tool == "start_background_shell" or not re.search("_background_shell(?!s)", tool):
                continue
            more = {"input": ""} if tool.startswith("write") else {}
            error = await self.refusal(tool, shell_id=unknown, **more)
            check(unknown in error and "list" in error, tool, error)
        sudo = await self.client.call("start_background_shell", {"command": "sudo true"})
        check(is_error(sudo) and structured(sudo)["rule"], "sudo", sudo)
        check("Use of 'sudo' is not allowed" in structured(sudo)["error"], "sudo", sudo)
        shell = await self.start("cat")
        error = await self.refusal("get_background_shell_output", shell_id=shell, since="x")
        check("next" in error, "since", error)
        error = await self.refusal("get_background_shell_output", shell_id=shell, wait_for="(")
        check("wait_for" in error, "wait_for", error)

        # Who gives up waiting ends nothing.
        async def waits():
            end = await self.output(shell, wait_for="exit")
            check(end["wait"] == "ended", "the other one goes on waiting", end)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(waits)
            with anyio.move_on_after(0.05) as gives_up:
                await self.output(shell, wait_for="never")
            check(gives_up.cancelled_caught, "cancelled")
            check((await self.output(shell))["status"] == "running", "it goes on")
            await self.write(shell, "", close_input=True)
