"""Which commands bash and dash really run, and whether a policy was shown all of them.

usage: shell_commands.py --words PROGRAM --stub PROGRAM [--lines FILE] [--count N] [--seed N]
                         [--shell bash|dash] [--show N] [--jobs N]

Snippets come from a file of odd lines and from a seeded grammar, shell_grammar.py. Their commands
are builtins and the stubs w1, w2 ..., which log their words. Each snippet runs in a subshell, in a
folder that is thrown away, with a PATH that leads to the stubs alone, without a network address in
it, and bounded in time, memory and file size.

A command that ran must be among those that a policy is shown when it reads the snippet (an unknown
word may be anything), unless the policy refuses the snippet for what cannot be known before it
runs. A snippet of the grammar stands in at most a few hundred bytes; a fault is printed in its
shortest form, with the seed that makes it. `--count 20000 --seed 7` makes others.
"""

import argparse
import json
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys

import shell_differential as differential
from shell_grammar import STUBS, Grammar

# The rules by which a policy refuses what it cannot know.
UNKNOWABLE = ("opaque-shell-input", "syntax", "command-too-complex")
BATCH = 200


# Running ------------------------------------------------------------------------------------------


class Folder(differential.Scratch):
    """The stubs in bin/, and nothing else there; here/ is emptied after each batch."""

    def __init__(self, stub):
        super().__init__(stub)
        shutil.rmtree(self.root + "/bin")
        os.mkdir(self.root + "/bin")
        for name in STUBS:
            os.symlink(os.path.realpath(stub), f"{self.root}/bin/{name}")
        self.clear()

    def clear(self):
        shutil.rmtree(self.here, ignore_errors=True)
        os.makedirs(self.here + "/d")

    def environment(self):
        return {"PATH": self.root + "/bin", "HOME": self.home, "LC_ALL": "C", "SCRIPT": "",
                "HISTFILE": "/dev/null"}


def bounds():
    resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run_all(folder, shell, snippets, patience):
    """What each snippet ran; one that takes part of the others with it runs alone."""
    try:
        ran = differential.run_batch(folder, shell, snippets, patience, bounds)
    except RuntimeError:
        if len(snippets) == 1:
            return [[]]
        half = len(snippets) // 2
        return (run_all(folder, shell, snippets[:half], max(patience / 2, 3))
                + run_all(folder, shell, snippets[half:], max(patience / 2, 3)))
    finally:
        folder.clear()
    return ran


def judged(words, snippets, blocked=None):
    questions = "".join(json.dumps({"script": one, "judged": True, "blocked": block}) + "\n"
                        for one, block in zip(snippets, blocked or [""] * len(snippets)))
    result = subprocess.run([words], input=questions, capture_output=True, encoding="utf-8")
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    if result.returncode != 0 or len(answers) != len(snippets):
        raise RuntimeError(f"{words} ended with status {result.returncode}: {result.stderr}")
    return answers


def is_shown(answer, ran):
    for words in answer["commands"]:
        own = differential.own_words({"words": words})
        while own and (own[0][0] in ("jobs", "-x", "--")):
            own = own[1:]
        if not own:
            continue
        # It may be called by its path.
        name = own[0][0].split("/")[-1]
        if name == ran.words[0].split("/")[-1] and differential.same_words(own[1:], ran.words[1:]):
            return True
    return False


def faults(program, snippets, answers, ran):
    """For each snippet the commands that ran and were not shown, each as its words.

    What is not shown by its name may be in a command whose name is not known: then a policy that
    blocks it must refuse the snippet."""
    unseen = []
    for answer, calls in zip(answers, ran):
        words = [call.words for call in calls if not is_shown(answer, call)]
        unseen.append([] if answer["refused"] in UNKNOWABLE else
                      [one for i, one in enumerate(words) if one not in words[:i]])
    questions = [(i, words) for i, of_one in enumerate(unseen) for words in of_one]
    found = [[] for _ in snippets]
    blocked = judged(program, [snippets[i] for i, _ in questions],
                     [words[0].split("/")[-1] for _, words in questions])
    for (i, words), answer in zip(questions, blocked):
        if not answer["refused"]:
            found[i].append(words)
    return found


# The run ------------------------------------------------------------------------------------------


class Run:
    """The snippets of one shell, on behalf of a process of its own."""

    def __init__(self, options, shell):
        self.options, self.shell = options, shell
        self.folder = Folder(options.stub)

    def fails(self, text, wanted):
        try:
            ran = run_all(self.folder, self.shell, [text], 3)[0]
        except (RuntimeError, ValueError):
            return False
        answers = judged(self.options.words, [text])
        found = faults(self.options.words, [text], answers, [ran])[0]
        return any(words[0] == wanted[0] for words in found)

    def check(self, labels, snippets):
        ran = run_all(self.folder, self.shell, snippets, 60)
        answers = judged(self.options.words, snippets)
        counts = {"calls": 0, "refused": 0, "ran": 0, "exact": 0}
        found = []
        unseen = faults(self.options.words, snippets, answers, ran)
        for label, text, calls, answer, wrong in zip(labels, snippets, ran, answers, unseen):
            counts["calls"] += len(calls)
            counts["ran"] += bool(calls)
            counts["refused"] += bool(calls) and answer["refused"] in UNKNOWABLE
            if wrong:
                found.append((label, text, wrong))
        return counts, found

    def minimized(self, text, wrong):
        return differential.minimized(text, lambda shorter: self.fails(shorter, wrong[0]))


def work(task):
    options, shell, numbers = task
    run = Run(options, shell)
    try:
        snippets = [Grammar(f"{options.seed} {i}").snippet() for i in numbers]
        return run.check(list(numbers), snippets)
    finally:
        run.folder.remove()


def report(options, shell, found):
    run = Run(options, shell)
    try:
        for label, text, wrong in found[: options.show]:
            short = run.minimized(text, wrong) if options.minimize else text
            print(f"FAULT {shell} {label} (seed {options.seed}): {short!r}")
            for words in wrong[:3]:
                print(f"    ran unseen: {differential.shown(words)}")
    finally:
        run.folder.remove()


def read_lines(path):
    """One odd line behind each line of '%%'."""
    with open(path, encoding="utf-8", newline="\n") as file:
        parts = file.read().rstrip("\n").split("\n%%")[1:]
        return [part[part.index("\n") + 1 :] for part in parts]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--words", required=True)
    parser.add_argument("--stub", required=True)
    parser.add_argument("--lines")
    parser.add_argument("--count", type=int, default=20000, help="made snippets for each shell")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shell", choices=list(differential.DIALECTS))
    parser.add_argument("--show", type=int, default=10, help="faults to print for each shell")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--no-minimize", dest="minimize", action="store_false")
    options = parser.parse_args()

    differential.reserve_log()
    shells = [options.shell] if options.shell else list(differential.DIALECTS)
    missing = [shell for shell in shells if shutil.which(shell) is None]
    for shell in missing:
        print(f"SKIPPED: no {shell} to compare with")
    if missing == shells:
        return 77
    failed = False
    for shell in (shell for shell in shells if shell not in missing):
        found, total = [], {}
        lines = read_lines(options.lines) if options.lines else []
        if lines:
            run = Run(options, shell)
            counts, found = run.check([f"line {i + 1}" for i in range(len(lines))], lines)
            run.folder.remove()
            total = counts
        tasks = [(options, shell, range(at, min(at + BATCH, options.count)))
                 for at in range(0, options.count, BATCH)]
        with multiprocessing.Pool(options.jobs) as pool:
            for counts, more in pool.imap(work, tasks):
                found += more
                for name, number in counts.items():
                    total[name] = total.get(name, 0) + number
        report(options, shell, found)
        print(f"shell_commands: {shell}: {len(lines)} written and {options.count} made snippets,"
              f" {total.get('ran', 0)} of them ran {total.get('calls', 0)} commands,"
              f" {total.get('refused', 0)} of these are refused as not knowable;"
              f" {len(found)} faults")
        # A run in which little ran, or all was refused, would have compared nothing.
        if options.count and (total["ran"] * 4 < options.count
                              or total["refused"] * 2 > total["ran"]):
            print(f"FAILED: {shell}: too little ran, or too much was refused")
            failed = True
        failed = failed or bool(found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
