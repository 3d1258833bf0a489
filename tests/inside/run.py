"""Runs the commands of cases.py through codeexec-mcp --run, inside the sandbox.

usage: run.py --program CODEEXEC_MCP [--as root|user] [--sandbox strict|best-effort|off] [--quick]
              [--show] [name...]

Judged are the fields of the printed result. A script must succeed and print what its case expects.
One that needs the network must fail, and a note must say that there is none. Names are beginnings
of names of cases. As root, `--as user` is the user 12345. --sandbox off shows whether a script
itself is right, --quick leaves out other shells and process tables, --show prints each result.

One line per case: "ok: ...", "FAILED: ..." or "SKIPPED: ...", and the exit status is 1 after a
failure. What only few machines have is "left out: ...".
"""

import os
import shutil
import socket
import subprocess
import sys

sys.dont_write_bytecode = True
import cases
import support


def problem_of(case, result):
    """What is wrong with the result; None when nothing is."""
    if case.fails:
        if result["success"] or result["outcome"] != "exited":
            return "it should have failed by itself"
        if not any("network" in note for note in result.get("notes", [])):
            return "no note says that there is no network"
        return None
    if not result["success"]:
        return "it failed"
    return None if case.expect in result["stdout"] else f"it should have printed {case.expect!r}"


def variants(case, quick):
    shells = case.shells[:1] if quick else case.shells
    for shell in shells:
        yield shell, False
    if case.pid and not quick:
        yield shells[0], True


def no_namespaces(runner, name):
    """Says so when this user cannot make namespaces."""
    if not runner.missing([support.NAMESPACES]):
        return False
    runner.skip(name, "this user cannot make namespaces")
    return True


def run_case(runner, case):
    lacking = runner.missing(case.needs)
    if lacking:
        runner.skip(case.name, "no " + lacking, case.extra)
        return
    off = runner.options.sandbox == "off"
    for shell, pid in variants(case, runner.options.quick):
        name = case.name + (" (bash)" if shell == "/bin/bash" else "")
        if runner.missing([shell]):
            runner.skip(name, "no " + shell)
            continue
        if off and (pid or case.fails):
            continue
        name += " (pid namespace)" if pid else ""
        if not off and (pid or case.network == "loopback") and no_namespaces(runner, name):
            continue
        options = ["--shell", shell]
        if not off:
            options += case.options + (("--pid-namespace",) if pid else ())
            options += case.closed if runner.missing([support.NAMESPACES]) else ()
        workspace = runner.workspace()
        result = runner.run(workspace, case.script, network=case.network, options=options)
        runner.report(name, problem_of(case, result), result)
        shutil.rmtree(workspace, ignore_errors=True)


# What takes more than one command ----------------------------------------------------------------

CONNECT = r'''
python3 - <<'EOF'
import socket
try:
    socket.create_connection(("HOST", PORT), 5)
    print("reached")
except OSError as error:
    print("refused")
EOF
'''


def other_loopbacks(runner):
    """Neither a server of the host nor one of another command can be reached over loopback."""
    name = "loopback: commands and the host do not see each other"
    if no_namespaces(runner, name):
        return
    if runner.missing(["python3"]):
        runner.skip(name, "no python3")
        return
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = CONNECT.replace("HOST", "127.0.0.1").replace("PORT", str(port))
        reached = runner.run(runner.workspace(), script, network="host")
        apart = runner.run(runner.workspace(), script, network="loopback")
    runner.report(name + ": the host, with network host",
                  None if reached["stdout"] == "reached\n" else "it should have been reached",
                  reached)
    runner.report(name + ": the host",
                  None if apart["stdout"] == "refused\n" else "it should be out of reach", apart)
    world = runner.run(runner.workspace(), network="loopback",
                       script=CONNECT.replace("HOST", "192.0.2.1").replace("PORT", "80"))
    runner.report("loopback: the world is away",
                  None if world["stdout"] == "refused\n" else "it should be out of reach", world)
    # The first command serves on a port, and tells by a file; the second one tries it. The first
    # reaches itself all the time, or the second would prove nothing.
    serving = runner.workspace()
    process = runner.start(serving, CONNECT_SERVER.replace("PORT", str(port)), network="loopback")
    while not os.path.exists(serving + "/ready") and process.poll() is None:
        try:
            process.wait(0.05)
        except subprocess.TimeoutExpired:
            pass
    other = runner.run(runner.workspace(), script, network="loopback")
    open(serving + "/enough", "w", encoding="ascii").close()
    result = runner.finish(process)
    good = result["stdout"] == "reached itself\n" and other["stdout"] == "refused\n"
    runner.report(name, None if good else "the second command: " + other["stdout"].strip(), result)


CONNECT_SERVER = r'''
python3 - <<'EOF'
import os, socket, time
server = socket.create_server(("127.0.0.1", PORT))
open("ready", "w").close()
while not os.path.exists("enough"):
    time.sleep(0.02)
socket.create_connection(("127.0.0.1", PORT), 5)
print("reached itself")
EOF
'''


def runs_sleep(pid):
    with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
        return file.read() == "sleep\n"


def own_processes(runner):
    """With a process table of its own a command sees no process of the host."""
    name = "ps shows only the command's own"
    if no_namespaces(runner, name):
        return
    if runner.missing(["ps"]):
        runner.skip(name, "no ps")
        return
    # A process of the same user, known by its number of seconds.
    mark = f"600.0{os.getpid()}"
    outside = subprocess.Popen(runner.become(["sleep", mark]), stdin=subprocess.DEVNULL)
    try:
        support.wait_until(lambda: runs_sleep(outside.pid))
        # The first list is short on every host: of long output the middle is left out.
        script = "ps -C sleep -o args; ps -eo args; ls -d /proc/[0-9]* | wc -l"
        seen = runner.run(runner.workspace(), script)
        own = runner.run(runner.workspace(), script, options=["--pid-namespace"])
    finally:
        outside.kill()
        outside.wait()
    runner.report(name + ": without pid_namespace all",
                  None if "sleep " + mark in seen["stdout"] else "it should see the other")
    shown = own["stdout"].split("\n")
    problem = None
    if not own["success"] or "ps -eo args" not in shown:
        problem = "ps does not work"
    elif "sleep " + mark in shown:
        problem = "it shows others"
    elif int(shown[-2]) > 8:
        problem = f"it shows {shown[-2]} processes"
    runner.report(name, problem)


def homes(runner):
    """HOME and TMPDIR are the command's own, fresh for each with `command`, and removed."""
    name = "private home"
    script = "stat -c '%a %u' $HOME; ls -A $HOME | wc -l; echo x > $HOME/f; echo $HOME $TMPDIR"
    places = []
    for kind in ("executor", "command"):
        result = runner.run(runner.workspace(), script, options=["--private-home", kind])
        lines = result["stdout"].split("\n")
        uid = support.USER if runner.as_user else os.getuid()
        problem = None
        if len(lines) != 4 or lines[0] != f"700 {uid}":
            problem = "HOME should be a directory of mode 0700 of the user"
        elif runner.environment["HOME"] in lines[2].split():
            problem = "HOME is that of the host"
        elif any(os.path.exists(place) for place in lines[2].split()):
            problem = "it should have been removed"
        places.append(lines[2:3])
        runner.report(f"{name}: {kind}", problem, result)
    runner.report(name + ": another each time",
                  None if places[0] != places[1] else "the same twice")


def settings_stay(runner):
    """The private home of a server is one for all of its commands."""
    workspace = runner.workspace()
    with support.Client(runner, ["--allowed-paths", workspace, "--workspace", workspace,
                                 "--sandbox", "strict", "--network", "none"]) as client:
        client.run(command="echo kept > ~/setting; echo shared > file")
        result = client.run(command="cat ~/setting file; echo $HOME")
        home = result.get("stdout", "\n").split("\n")[-2]
        there = os.path.isdir(home)
    problem = None
    if not result.get("stdout", "").startswith("kept\nshared\n"):
        problem = "it should have kept both files"
    elif not there or os.path.exists(home):
        problem = "the home should be there as long as the server is"
    runner.report("private home: the commands of a server share one", problem, result)


CHECKS = (other_loopbacks, own_processes, homes, settings_stay)


def work(runner):
    chosen = runner.options.names
    for case in cases.CASES:
        if not chosen or any(case.name.startswith(name) for name in chosen):
            run_case(runner, case)
    for check in CHECKS:
        if runner.options.sandbox != "off" and (not chosen or check.__name__ in chosen):
            check(runner)


if __name__ == "__main__":
    sys.exit(support.main("inside.", sys.argv[1:], work))
