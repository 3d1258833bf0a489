#!/usr/bin/env python3
"""Attacks on the sandbox of codeexec-mcp: what a hostile command would try, run for real.

    run.py --mcp codeexec-mcp --attack codeexec-test-attack --as root|user

Every attack runs twice: as its own control without a sandbox, where it has to succeed (otherwise it
would prove nothing), and with `--sandbox strict`, where it must not. Who got through is judged from
outside, by what became of files, victims and listeners that this program made; nothing else is ever
a target. Known gaps are attacks, too: they are expected to succeed, and an option that closes one
is shown to close it. `--as user` gives up root's rights; `--sandbox off` shows that this can fail.

The attacks stand in a file for each theme (writes.py, reads.py ...); cases.py has what they run in.

Prints `ok:`, `FAILED:` and `SKIPPED:` lines; the exit status is 1 when one failed, 77 when nothing
could be run.
"""

import argparse
import importlib
import os
import re
import signal
import sys

sys.dont_write_bytecode = True
from cases import ATTACKS
from suite import Suite

for theme in ("writes", "reads", "environment", "processes", "privilege", "network", "limits",
              "survival", "gaps", "allowed"):
    importlib.import_module(theme)  # adds to ATTACKS


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mcp", required=True, help="the server")
    parser.add_argument("--attack", required=True, help="the helper program")
    parser.add_argument("--as", dest="who", choices=("root", "user"), default="user")
    parser.add_argument("--sandbox", default="strict",
                        help="strict, best-effort or off; none: only the controls")
    parser.add_argument("--only", default="", help="attacks whose name matches this pattern")
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    if not sys.platform.startswith("linux"):
        print("SKIPPED: the sandbox is for Linux")
        return 77
    if options.who == "root" and os.getuid() != 0:
        print("SKIPPED: not started as root")
        return 77
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    suite = Suite(options)
    try:
        return suite.run([one for one in ATTACKS if re.match(options.only, one.name)],
                         options.jobs)
    finally:
        suite.close()


if __name__ == "__main__":
    sys.exit(main())
