#!/usr/bin/env python3
"""Makes docs/attacks.md: the attacks of tests/attacks and what became of them.

python3 docs/attacks.py ROOT.log USER.log   with the results of these runs, which are what
                                            tests/attacks/run.py prints with --as root and --as user
python3 docs/attacks.py                     with the results that the page has
python3 docs/attacks.py --check             fails unless the page lists the attacks of the tests, in
                                            their words, with a result for each"""
import datetime
import importlib
import os
import pathlib
import re
import stat
import sys
from unittest import mock

DOCS = pathlib.Path(__file__).resolve().parent
PAGE, SUITE = DOCS / "attacks.md", DOCS.parent / "tests" / "attacks"
LINE = re.compile(r"(ok|FAILED|SKIPPED): (?:gap )?([A-Z]\d+) (.*)")
ROW = re.compile(r"^\| ([A-Z]\d+) \|(?:(?:[^|\\]|\\.)*\|){2} ([^|]*) \| ([^|]*) \|", re.M)
SUMMARY = re.compile(r"^attacks as \w+.*: (.*)$", re.M)
HERE = "Run on "  # begins the paragraph about the machine

INTRODUCTION = """\
# Attacks tried

See which attacks the sandbox was tried with, and which of them it does not stop. The list is that
of [tests/attacks](../tests/attacks/run.py), which runs with every change: a real command attacks
files, processes and listeners of the test's own, and the test judges from outside of the sandbox
whether it got through. To run it, in a build of the tests:

```
ctest -L attacks --output-on-failure
```

Each attack runs twice. First without a sandbox, as its own control: there it must succeed, or it
would prove nothing. Then with `--sandbox strict`: there it must fail. It does so as root and as an
ordinary user, with `--network none` unless its title says otherwise.

| result | meaning |
|---|---|
| blocked | the control succeeded, and in the sandbox the attack failed |
| blocked (*n*) | it failed in the sandbox; there was no control, see the reason with this number \
[below](#no-control) |
| gap | it succeeds in the sandbox, as is known; the last column has the answer |
| allowed | it must succeed, and does: commands need it |
| refused | the server does not start with what the attack has prepared |
| - | not tried: there is no such file or program here, or it is no attack for this user |
"""
OTHER = """
## Other tests of what an attacker would try

* What the policy says of dangerous and harmless commands, beside real shells:
  [tests/oracle/corpus](../tests/oracle/corpus/verify.py).
* Hostile bytes in every parser: [fuzzing](fuzzing.md).
* What becomes of the sandbox on kernels that refuse parts of it:
  [tests/inside](../tests/inside/degrade.py).
* System calls that fail: [tests/faults](../tests/faults/faults.cpp).
"""


def fail(message):
    sys.exit(f"docs/attacks.py: {message}")


def read_suite():
    """(theme, its attacks) as on a machine that has everything that an attack looks for."""
    sys.path.insert(0, str(SUITE))
    sys.dont_write_bytecode = True
    cases = importlib.import_module("cases")
    order = re.search(r"for theme in \(([^)]*)\)", (SUITE / "run.py").read_text(encoding="ascii"))
    machine = os.uname_result(("Linux", "", "", "", "x86_64"))
    everything = mock.patch.multiple(
        os, getuid=lambda: 0, uname=lambda: machine, sched_getaffinity=lambda pid: {0, 1},
        listdir=lambda path: ["sda"], stat=lambda path: mock.Mock(st_mode=stat.S_IFBLK))
    themes = []
    with everything, mock.patch("shutil.which", lambda name, **more: name), \
            mock.patch("os.path.exists", lambda path: True), \
            mock.patch("os.path.isdir", lambda path: True):
        for name in re.findall(r'"(\w+)"', order[1]):
            first = len(cases.ATTACKS)
            theme = importlib.import_module(name)
            themes.append((theme.__doc__.splitlines()[0], name, cases.ATTACKS[first:]))
    return themes


class Results:
    """What became of each attack, for root and for an ordinary user."""

    def __init__(self):
        self.cells = {}  # by name: a list of two
        self.reasons = []
        self.run = ""

    def read_page(self, text):
        for name, root, user in ROW.findall(text):
            self.cells[name] = [root.strip(), user.strip()]
        self.reasons = re.findall(r"^\d+\. (.*)$", text.partition("## No control")[2], re.M)
        self.run = next((part for part in text.split("\n\n") if part.startswith(HERE)), "")

    def read_logs(self, logs):
        counts = []
        for place, log in enumerate(logs):
            text = pathlib.Path(log).read_text(encoding="utf-8")
            for kind, name, rest in filter(None, map(self.parts, text.splitlines())):
                cells = self.cells.setdefault(name, ["-", "-"])
                cell = self.cell(kind, rest)
                if cells[place] == "-":  # a second line is about the option that closes a gap
                    cells[place] = cell
            counts.append(SUMMARY.search(text)[1])
        kernel = re.match(r"[\d.]+", os.uname().release)[0].rstrip(".")
        self.run = (f"{HERE}{datetime.date.today()}, Linux {kernel}, {os.uname().machine}. As root:"
                    f" {counts[0]}. As an ordinary user: {counts[1]}.")

    @staticmethod
    def parts(line):
        found = LINE.match(line)
        return found and found.groups()

    def cell(self, kind, rest):
        if kind == "FAILED":
            fail(f"the run has failed: {rest}")
        if kind == "SKIPPED":
            return "-"
        without = re.search(r"\(control '-': (.*)\)$", rest)
        mark = ""
        if without:
            reason = re.sub(r" here anyway: .*", " here anyway", without[1])
            if reason not in self.reasons:
                self.reasons.append(reason)
            mark = f" ({self.reasons.index(reason) + 1})"
        for words, cell in ((": the server does not start: ", "refused"), (": allowed", "allowed"),
                            (": blocked", "blocked")):
            if words in rest:
                return cell + mark
        return "gap"


def code(script):
    """The command in a cell of a table."""
    text = re.sub(r"(?<![;&])\n", "; ", re.sub(r" *\\?\n", "\n", script.strip()))
    text = " ".join(text.split()).replace("|", "\\|")
    fence = "``" if "`" in text else "`"
    return f"{fence} {text} {fence}" if text else "several, see its case"


def text_of(words):
    words = re.sub(r"(--[a-z-]+(?: none| loopback)?)", r"`\1`", words)
    return words.replace("|", "\\|").replace("~", "\\~")


def answer_of(one):
    return text_of(one.gap or "") + (" (shown to close it)" if one.closed_by else "")


def made(themes, results):
    page = [INTRODUCTION, results.run]
    for title, name, attacks in themes:
        letter, _, words = title.partition(": ")
        heading = words.partition(",")[0].partition(":")[0].rstrip(".")
        gaps = any(one.gap for one in attacks)
        page.append(f"\n## {heading.capitalize()}\n\n{letter}: {words.rstrip('.')}."
                    f" The cases stand in [{name}.py](../tests/attacks/{name}.py).\n")
        page.append("| | attack | command | root | user |" + (" answer |" if gaps else ""))
        page.append("|---|---|---|---|---|" + ("---|" if gaps else ""))
        for one in attacks:
            if one.name not in results.cells:
                fail(f"{one.name}, {one.title!r}, has no result in docs/attacks.md: run the tests"
                     " and give their output to docs/attacks.py")
            root, user = results.cells[one.name]
            row = f"| {one.name} | {text_of(one.title)} | {code(one.script)} | {root} | {user} |"
            page.append(row + (f" {answer_of(one)} |" if gaps else ""))
    page.append("\n## No control\n")
    page += [f"{at}. {reason}" for at, reason in enumerate(results.reasons, 1)]
    return "\n".join(page) + "\n" + OTHER


def main(arguments):
    themes, results = read_suite(), Results()
    if len(arguments) == 2:
        results.read_logs(arguments)
        for _, _, attacks in themes:
            for one in attacks:
                results.cells.setdefault(one.name, ["-", "-"])
    elif arguments in ([], ["--check"]):
        results.read_page(PAGE.read_text(encoding="ascii"))
    else:
        fail(f"{' '.join(arguments)!r} is no call of it\n{__doc__}")
    page = made(themes, results)
    if arguments != ["--check"]:
        PAGE.write_text(page, encoding="ascii")
    elif PAGE.read_text(encoding="ascii") != page:
        fail("docs/attacks.md is not what tests/attacks have: run python3 docs/attacks.py")


main(sys.argv[1:])
