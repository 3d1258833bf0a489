"""What the steps of the Python clients are made of: checks, waiting, and looking at processes."""

import os
import sys

import anyio

SERVER = os.environ["CODEEXEC_MCP"]

# processes ----------------------------------------------------------------------------------------


def processes():
    """Yields (parent, words of the command line) of every process that is not a zombie.

    Nor a supervisor that waits for a command, which has the command line of its program.
    """
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="latin1") as file:
                name, _, status = file.read().rpartition(")")
            state, parent = status.split()[:2]
            with open(f"/proc/{pid}/cmdline", encoding="latin1") as file:
                words = file.read().split("\0")
        except OSError:
            continue  # it ended while we looked
        if state != "Z" and not name.endswith("(codeexec"):
            yield int(parent), words


def alive(word):
    return any(word in words for _, words in processes())


def servers():
    return sum(parent == os.getpid() and SERVER in words for parent, words in processes())


durations = 0


def unique():
    """A time to sleep that no other process on this machine uses, to be found again by."""
    global durations
    durations += 1
    return f"{400 + durations}.{os.getpid():07}"


async def until(what, condition, seconds=10):
    """Waits for something that must happen soon; the limit is only against hanging."""
    with anyio.move_on_after(seconds):
        while not condition():
            await anyio.sleep(0.02)
        return
    raise AssertionError(f"waited {seconds} s in vain: {what}")


# checks -------------------------------------------------------------------------------------------


def check(good, what, value=None):
    if not good:
        raise AssertionError(f"{what}: {value!r}")


def member(result, camel, snake):
    """A member of the SDK's objects: versions 1 and 2 spell them differently."""
    return getattr(result, camel if hasattr(result, camel) else snake)


def is_error(result):
    return member(result, "isError", "is_error")


def structured(result):
    """What a tool has answered: an object, and lines for a model."""
    answer = member(result, "structuredContent", "structured_content")
    check(answer is not None, "structured content", result)
    text = result.content[0].text
    check(text and not text.startswith("{"), "text as lines", result)
    return answer


async def ask(client, tool, progress=None, **arguments):
    result = await client.call(tool, arguments, progress)
    check(not is_error(result), f"{tool} succeeds", result)
    return structured(result)


async def refusal(client, tool, **arguments):
    """The message of a call that must fail."""
    result = await client.call(tool, arguments)
    check(is_error(result), f"{tool} fails", result)
    answer = structured(result)
    check(answer["success"] is False and isinstance(answer["error"], str), "an error", answer)
    return answer["error"]


# steps --------------------------------------------------------------------------------------------

failures = 0


def steps(name):
    """Runs the steps of one client, and goes on after one that failed."""

    async def step(what, action):
        global failures
        try:
            await action()
            print(f"ok: {name}: {what}", flush=True)
        except Exception as error:
            failures += 1
            print(f"FAILED: {name}: {what}: {type(error).__name__}: {error}", flush=True)

    return step


def finish():
    sys.exit(failures != 0)
