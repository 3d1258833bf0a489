"""Commands over ssh: the conversation of python_client.py there.

$INTEROP_SSH is the folder of a server of ssh that runs (tests/helpers/sshd.sh), with an agent.
"""

import os

import anyio
from python_client import Here, scenario
from python_support import check, finish, processes, until

AGENT = f"{os.environ['INTEROP_SSH']}/agent"


def agents():
    return sum(words[:2] == [AGENT, "--place"] for _, words in processes())


class OverSsh(Here):
    options = ["--execution-mode", "ssh", "--place-host", "box", "--place-agent-path", AGENT]
    variables = {"PATH": f"{os.environ['INTEROP_SSH']}/bin:{os.environ['PATH']}"}

    async def installs(self, run, project):
        there = await run('echo "$SSH_CONNECTION"')
        check(there["stdout"].startswith("127.0.0.1 "), "over ssh", there)
        check(agents() == 1, "one agent", agents())
        await super().installs(run, project)

    async def closed(self):
        await until("the agent is gone", lambda: agents() == 0)


class OnlyThere(OverSsh):
    options = [*OverSsh.options, "--place-workspace", "remote"]


async def main():
    await scenario("Python SDK 2, ssh", "auto", "2026-07-28", OverSsh())
    await scenario("Python SDK 2, workspace only there", "auto", "2026-07-28", OnlyThere())


anyio.run(main)
finish()
