"""What an everyday task is, and what it may need beyond the sandbox as it is.

A task is one command, or several of one server. Outside of the sandbox it must pass, or it says
nothing. In `--sandbox strict` it must pass, too; or it wants something that is closed there on
purpose: then a note of the result has to name the option that opens it, and with that option it
must pass. Both hold where namespaces can be made ("namespaces") and where not ("bare").
"""

from dataclasses import dataclass

MODES = ("namespaces", "bare")


@dataclass(frozen=True)
class Want:
    """Something that the sandbox may keep from a command."""

    says: str  # stands in a note, or in what the server says when it does not start
    options: tuple  # what to set, as that says
    closed: tuple = MODES  # where it is closed
    for_good: tuple = ()  # where no option can open it
    opens: tuple = ()  # what else these options open


BARE = ("bare",)
# Where namespaces can be made, commands have a /tmp, a /dev/shm, terminals, System V IPC and a
# loopback of their own.
WANTS = {
    "shared memory": Want("option shared_memory", ("--shared-memory",), closed=BARE),
    "terminals": Want("option terminals", ("--terminals",), closed=BARE),
    "unix sockets": Want("option unix_sockets", ("--unix-sockets",)),
    "/tmp": Want("options allowed_paths", ("--allowed-paths", "/tmp"), closed=BARE),
    "loopback": Want("loopback cannot be had", ("--network", "host"), closed=BARE,
                     opens=("unix sockets",)),
    "counters": Want("option sandbox", ("--sandbox", "off", "--network", "host")),
    "System V memory": Want("option pid_namespace", ("--pid-namespace",), closed=BARE,
                            for_good=BARE),
}


# What a task of several commands does, one after another.
@dataclass(frozen=True)
class Serve:
    """A background shell that runs on, and the line after which the next command may come."""

    script: str
    ready: str


@dataclass(frozen=True)
class Dialogue:
    """A program in the terminal of a background shell: what is typed, and what it then shows."""

    script: str
    lines: tuple  # of pairs: input, pattern


@dataclass(frozen=True)
class Task:
    name: str
    script: object  # a command, or a tuple of commands, Serve and Dialogue
    expect: str  # stands in what the last one prints
    needs: tuple  # names of programs, or shell commands that succeed where it can run
    wants: tuple = ()
    network: str = "none"
    options: tuple = ()
    heavy: bool = False  # for `run.sh --install` alone: it is slow, or its programs are big
    only: str = ""  # "root" or "user": who else cannot do it outside of the sandbox
    fails: str = ""  # must fail, with this in a note: what it asks for is away on purpose


TASKS = []


def task(name, script, expect="", needs=(), **more):
    needs = (needs,) if isinstance(needs, str) else tuple(needs)
    wants = more.pop("wants", ())
    wants = (wants,) if isinstance(wants, str) else tuple(wants)
    if isinstance(script, str):
        script = script.strip("\n")
    unknown = [want for want in wants if want not in WANTS]
    assert not unknown, f"{name}: {unknown}"
    assert name not in [one.name for one in TASKS], name
    TASKS.append(Task(name, script, expect, needs, wants, **more))
