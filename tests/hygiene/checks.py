"""Checks of the source: where it stands, and what they print."""

import os
import pathlib

ROOT = pathlib.Path(os.environ.get("ROOT", pathlib.Path(__file__).resolve().parents[2]))
failures = []  # what has failed


def check(what, problems):
    problems = list(problems)
    if problems:
        failures.append(what)
    print(f"{'FAILED' if problems else 'ok'}: {what}", *problems[:20], sep="\n  ")
