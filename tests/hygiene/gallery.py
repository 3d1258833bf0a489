"""docs/gallery.md shows what the examples print now.

    ROOT=. python3 tests/hygiene/gallery.py [LOG]

Runs the commands of its console blocks in the current folder, where the programs are built, and
compares their output: "..." stands for anything, alone on a line for any lines, and a time for any
other. The command that builds a program must be the one in its first comment, and is not run again.
LOG has the output of examples/quickstart.sh. $CONTAINERS and $EVENT_LOOP, where set, name files
with what the text blocks show: ./containers with an engine, and the end of ./event_loop with Asio;
so does $COROUTINES for ./coroutines, where the compiler has C++20.
"""

import os
import re
import subprocess
import sys

from checks import ROOT, as_pattern, check, failures

TEXT = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")


def compare(what, shown, printed):
    good = re.fullmatch(as_pattern(shown), printed)
    check(what, [] if good else ["it prints:", *printed.splitlines()])


def printed_by(command):
    """The output of a command, with a line more if it fails."""
    if command == "sh examples/quickstart.sh":
        with open(sys.argv[1], encoding="utf-8") as log:
            return log.read()
    build = re.match(r"c\+\+ .* (examples/\w+\.cpp) .*?-pthread(?: && )?", command)
    if build:
        with open(build[1], encoding="utf-8") as example:
            words = build[0].replace(" && ", "")
            check(f"{build[1]} says how to build it as docs/gallery.md does",
                  [] if f"//   {words}\n" in example.read() else [words])
        command = command[build.end():]
    done = subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120, check=False)
    failed = f"gallery: it failed with status {done.returncode}\n" if done.returncode else ""
    return done.stdout.decode("utf-8", "replace") + failed


def main():
    for block in re.findall(r"^```console\n(.*?)^```", TEXT, re.M | re.S):
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M):
            compare(f"docs/gallery.md: {command}", shown, printed_by(command))
    texts = re.findall(r"^```text\n(.*?)^```", TEXT, re.M | re.S)
    for shown in texts:
        begins = {"asio:": "EVENT_LOOP", "first": "COROUTINES"}
        name = begins.get(shown.split("\n")[0], "CONTAINERS")
        if os.environ.get(name):
            with open(os.environ[name], encoding="utf-8") as log:
                compare(f"docs/gallery.md: the text of {name}", shown, log.read())
    names = {path.name for path in (ROOT / "examples").iterdir() if path.is_file()}
    check("docs/gallery.md has a section for each example",
          names - set(re.findall(r"^## (\S+)$", TEXT, re.M)))


main()
sys.exit(1 if failures else 0)
