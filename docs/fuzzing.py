#!/usr/bin/env python3
"""Makes docs/fuzzing.md: the fuzzers of tests/fuzz, and how long they ran.

python3 docs/fuzzing.py DIRECTORY   adds the last run of each fuzzer, whose logs tests/fuzz/run.sh
                                    has left in DIRECTORY (build/fuzz), unless the page has it
python3 docs/fuzzing.py             with the numbers that the page has
python3 docs/fuzzing.py --check     fails unless the page lists the fuzzers of the tests, in their
                                    words, with numbers for each"""
import datetime
import os
import pathlib
import re
import sys

DOCS = pathlib.Path(__file__).resolve().parent
PAGE, FUZZ = DOCS / "fuzzing.md", DOCS.parent / "tests" / "fuzz"
NUMBER = r" ([\d,]+) \|"
ROW = re.compile(rf"^\| `(\w+)` \|(?:[^|]|\\\|)*\|{NUMBER * 6}$", re.M)
SINCE = re.compile(r"^Counted since (\S+)\. The last run", re.M)

INTRODUCTION = """\
# Fuzzing

See which parsers are fuzzed, with what, and for how long; and run it for longer.

Each target of [tests/fuzz](../tests/fuzz/run.sh) gives bytes that libFuzzer has made to readers of
hostile input, under AddressSanitizer and UndefinedBehaviorSanitizer, and checks what must hold of
the answer. An input may take neither more than 20 seconds nor 2 GiB. CI runs each target for 5
seconds with every change, which finds what breaks at once and little else.
"""
USE = """
*In all* is only what was recorded here. *Edges* and *features* are libFuzzer's counters of the last
run, its corpus included: the first are edges of the program's control flow that the target reached,
the second count how often it did. The program has {edges} edges, of all targets and of the parts of
the library that no target calls.

## Run it for longer

An hour for each target, two at a time, then the numbers into this page:

```
sh tests/fuzz/run.sh 3600
python3 docs/fuzzing.py build/fuzz
```

What a run has learnt stays in `build/fuzz`, where the next one goes on. An input that breaks
something lies there, too, as `NAME-crash-...`: `build/fuzz/fuzz-NAME FILE` runs it again, and it
becomes a case in `tests/unit` and a file in `tests/fuzz/corpus`.
"""


def fail(message):
    sys.exit(f"docs/fuzzing.py: {message}")


def read_targets():
    """(name, what it tries) of each target."""
    script = (FUZZ / "run.sh").read_text(encoding="ascii")
    targets = []
    for name in re.search(r'^targets="([^"]*)"', script, re.M)[1].split():
        lines = []
        for line in (FUZZ / f"{name}.cpp").read_text(encoding="ascii").splitlines():
            if not line.startswith("// "):
                break
            text, ended, _ = line[3:].partition("sh tests/fuzz/run.sh")
            lines.append(text.strip())
            if ended:
                break
        targets.append((name, " ".join(filter(None, lines))))
    return targets


class Run:
    """What one fuzzer did: seconds and inputs in all and in its last run, edges, features."""

    def __init__(self, numbers=(0,) * 6):
        self.all_seconds, self.all_inputs = numbers[:2]
        self.seconds, self.inputs, self.edges, self.features = numbers[2:]

    def add(self, log):
        text = log.read_text(encoding="utf-8", errors="replace")
        done = re.search(r"^Done (\d+) runs in (\d+) second", text, re.M)
        counters = re.findall(r" cov: (\d+) ft: (\d+) ", text)
        loaded = re.search(r"Loaded 1 modules +\((\d+) inline", text)
        if not done or not counters or not loaded:
            fail(f"{log} is not the log of a run that ended")
        self.all_edges = int(loaded[1])  # of the program
        last = (int(done[2]), int(done[1]), *map(int, counters[-1]))
        if last == (self.seconds, self.inputs, self.edges, self.features):
            return  # the page has it
        self.seconds, self.inputs, self.edges, self.features = last
        self.all_inputs += self.inputs
        self.all_seconds += self.seconds

    def row(self):
        numbers = (self.all_seconds, self.all_inputs, self.seconds, self.inputs, self.edges,
                   self.features)
        return " | ".join(f"{number:,}" for number in numbers)


def made(targets, runs, last_run, edges):
    page = [INTRODUCTION, last_run, "",
            "| target | what it tries | in all: seconds | inputs | last run: seconds | inputs"
            " | edges | features |", "|---|---|---:|---:|---:|---:|---:|---:|"]
    for name, what in targets:
        if name not in runs:
            fail(f"{name} has no run in docs/fuzzing.md: sh tests/fuzz/run.sh 60 {name}, and give"
                 " the directory of its log to docs/fuzzing.py")
        page.append(f"| `{name}` | {what} | {runs[name].row()} |")
    total = sum(runs[name].all_seconds for name, _ in targets)
    page.append(f"\nIn all {total:,} seconds, {total / 3600:.1f} hours.")
    return "\n".join(page) + "\n" + USE.format(edges=edges)


def main(arguments):
    targets = read_targets()
    old = PAGE.read_text(encoding="ascii") if PAGE.exists() else ""
    runs = {row[0]: Run([int(number.replace(",", "")) for number in row[1:]])
            for row in ROW.findall(old)}
    last_run = next((line for line in old.splitlines() if SINCE.match(line)), "")
    edges = next(iter(re.findall(r"The program has ([\d,]+)\s", old)), "")
    if len(arguments) == 1 and not arguments[0].startswith("-"):
        logs = pathlib.Path(arguments[0])
        for name, _ in targets:
            if (logs / f"{name}.log").exists():
                runs.setdefault(name, Run()).add(logs / f"{name}.log")
                edges = f"{runs[name].all_edges:,}"
        today = datetime.date.today()
        since = SINCE.match(last_run)[1] if last_run else today
        last_run = (f"Counted since {since}. The last run was on {today}, two targets at a time on"
                    f" {os.cpu_count()} processors.")
    elif arguments not in ([], ["--check"]):
        fail(f"{' '.join(arguments)!r} is no call of it\n{__doc__}")
    page = made(targets, runs, last_run, edges)
    if arguments != ["--check"]:
        PAGE.write_text(page, encoding="ascii")
    elif old != page:
        fail("docs/fuzzing.md is not what tests/fuzz have: run python3 docs/fuzzing.py")


main(sys.argv[1:])
