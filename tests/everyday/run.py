"""Everyday tasks of developers and their agents, in `codeexec-mcp --sandbox strict`.

usage: run.py --program CODEEXEC_MCP --deny CODEEXEC_TEST_DENY [--as root|user] [--tools DIR]
              [--mode namespaces|bare] [--heavy] [--jobs N] [--show] [name...]

task.py says what a task is and when it passes; names are beginnings of names of tasks. Without
namespaces ("bare") it runs under codeexec-test-deny, which refuses to make any. --tools is the
folder of install.sh, whose programs are found after those of the machine. --heavy is for what
takes long or big programs. --jobs is how many run at a time.

One line per task and mode: "ok: ...", "FAILED: ..." or "SKIPPED: ...", and the exit status is 1
after a failure. What this user cannot have is "left out: ...".
"""

import importlib
import os
import shutil
import sys

sys.dont_write_bytecode = True
from suite import Suite, support
from task import MODES, TASKS

for theme in ("scripting", "languages", "repositories", "services", "terminals", "tracing",
              "documents"):
    importlib.import_module(theme)  # adds to TASKS


def work(runner):
    options = runner.options
    modes = [options.mode] if options.mode else MODES
    tools = os.path.abspath(options.tools) if options.tools else ""
    if os.path.isdir(tools) and not runner.can_enter(tools):
        # The build folder is one that this user cannot enter.
        tools = shutil.copytree(tools, runner.base + "/tools", symlinks=True)
    for folder in ("python/bin", "node/node_modules/.bin"):
        place = os.path.join(tools, folder)
        if tools and os.path.isdir(place):
            runner.environment["PATH"] += ":" + place
    chosen = [one for one in TASKS if not options.names
              or any(one.name.startswith(name) for name in options.names)]
    Suite(runner).run(chosen, modes, options.jobs)


if __name__ == "__main__":
    # Not in /tmp, which a task may take to be a place of its own.
    sys.exit(support.main("everyday.", sys.argv[1:], work, place="/var/tmp",
                          user=support.NOBODY,
                          more=(("--tools", ""), ("--mode", ""), ("--jobs", 2),
                                ("--heavy", False))))
