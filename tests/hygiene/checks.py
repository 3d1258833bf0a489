"""Checks of the source: where it stands, and what they print."""

import os
import pathlib
import re

ROOT = pathlib.Path(os.environ.get("ROOT", pathlib.Path(__file__).resolve().parents[2]))
failures = []  # what has failed


def check(what, problems):
    problems = list(problems)
    if problems:
        failures.append(what)
    print(f"{'FAILED' if problems else 'ok'}: {what}", *problems[:20], sep="\n  ")


def as_pattern(shown):
    """The regular expression of an output as a page shows it: "..." stands for anything, alone on a
    line for any lines, and a time for any other."""
    pattern = ""
    for line in shown.splitlines():
        if line == "...":
            pattern += r"(?:.*\n)*"
            continue
        line = re.escape(line).replace(re.escape("..."), ".*")
        pattern += re.sub(r"\d+\\\.\d{3}(?=\\ s)", r"[0-9.]+", line) + r"\n"
    return pattern
