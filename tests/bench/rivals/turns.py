"""Has the rivals take turns, and prints a row for each beside codeexec; rivals.sh calls it.

    turns.py FILE ROUNDS

A line of FILE is NAME <tab> COMMAND, or NAME <tab> - <tab> why it is not there; the first line is
ours. Rows go into the file that $BENCH_ROWS names, too, as report.hpp has them.
"""

import json
import os
import subprocess
import sys

WORDS = {
    "run": ("run /bin/true and wait for it", 20),
    "capture": ("capture what /bin/echo prints", 20),
    "many": ("200 times /bin/true at once", 1),
}
HOLD = 4096  # MiB


class Rival:
    """A program that does a task when it is asked; on one processor, if that is said."""

    def __init__(self, name, command, pinned):
        before = os.sched_getaffinity(0)
        if pinned:
            os.sched_setaffinity(0, {min(before)})
        self.name = name
        self.process = subprocess.Popen(command.split(" "), text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        os.sched_setaffinity(0, before)

    def ask(self, task, count):
        self.process.stdin.write(f"{task} {count}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"FAILED: {self.name}: it ended at {task} {count}")
        return float(answer)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def figure(samples):
    samples = sorted(samples)
    at = lambda share: samples[round(share * (len(samples) - 1))]
    return {"value": at(0.5), "low": at(0.1), "high": at(0.9), "p95": at(0.95)}


def write(row):
    if os.environ.get("BENCH_ROWS"):
        with open(os.environ["BENCH_ROWS"], "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def report(what, samples):
    """The first one of `samples` is ours."""
    (_, ours), *others = samples.items()
    ours = figure(ours)
    for name, theirs in others:
        theirs = figure(theirs)
        ratio = ours["value"] / theirs["value"]
        print(f"{what}: {ours['value']:.0f} us; {name}: {theirs['value']:.0f} us "
              f"[{theirs['low']:.0f} .. {theirs['high']:.0f}]; ratio {ratio:.3f}", flush=True)
        write({"what": what, "unit": "us", "ours": ours, "rival": name, "theirs": theirs,
               "ratio": ratio})


def in_turn(found, task, rounds, pinned):
    what, count = WORDS[task]
    rivals = [Rival(name, command, pinned) for name, command in found]
    samples = {rival.name: [] for rival in rivals}
    for number in range(rounds + 1):
        for rival in rivals:
            time = rival.ask(task, count)
            if number > 0:  # the first time it loads what it needs
                samples[rival.name].append(time)
    for rival in rivals:
        rival.end()
    report(f"libraries: {what}, {'on one processor' if pinned else 'placed freely'}", samples)


def in_big_hosts(found, rounds):
    """One at a time, as not many have memory for all."""
    samples = {name: [] for name, _ in found}
    for _ in range(rounds):
        for name, command in found:
            rival = Rival(name, command, False)
            rival.ask("hold", HOLD)
            rival.ask("run", 5)
            samples[name] += [rival.ask("run", 10) for _ in range(5)]
            rival.end()
    report(f"libraries: {WORDS['run'][0]}, from a host with 4 GiB in use", samples)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file]
    rounds = int(sys.argv[2])
    found = [(line[0], line[1]) for line in lines if line[1] != "-"]
    for name, _, why in (line for line in lines if line[1] == "-"):
        print(f"SKIPPED: libraries / {name}: {why}")
        write({"what": "libraries", "rival": name, "skipped": why})
    for task in WORDS:
        for pinned in (False, True):
            in_turn(found, task, rounds if task != "many" else max(rounds // 4, 3), pinned)
    with open("/proc/meminfo", encoding="ascii") as file:
        free = int(file.read().split("MemAvailable:")[1].split()[0]) >> 10
    if free < HOLD * 5 // 4:
        print(f"SKIPPED: libraries from a host with 4 GiB in use: {free} MiB are free")
        write({"what": "libraries: from a host with 4 GiB in use", "rival": "",
               "skipped": f"{free} MiB are free"})
    else:
        in_big_hosts(found, max(rounds // 10, 1))


main()
