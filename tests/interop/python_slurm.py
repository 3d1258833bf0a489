"""Commands in a job of Slurm: the conversation of python_client.py there.

$SLURM_CONF is that of a Slurm for tests, of one node (tests/helpers/slurm.sh).
"""

import os
import subprocess

import anyio
from python_client import Here, scenario
from python_support import check, finish, until


def jobs():
    words = ["squeue", "-h", "-o", "%A", "--name", "codeexec-interop"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()


class InJob(Here):
    options = ["--execution-mode", "slurm", "--agent-id", "interop",
               "--place-agent-path", os.environ["CODEEXEC_MCP"]]
    variables = {"SLURM_CONF": os.environ["SLURM_CONF"]}

    async def installs(self, run, project):
        there = await run('echo "$SLURM_JOB_ID"')
        check([there["stdout"].strip()] == jobs(), "in the one job", (there, jobs()))
        await super().installs(run, project)

    async def closed(self):
        await until("the job is gone", lambda: not jobs())


async def main():
    await scenario("Python SDK 2, Slurm", "auto", "2026-07-28", InJob())


anyio.run(main)
finish()
