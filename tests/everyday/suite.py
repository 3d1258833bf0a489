"""Runs tasks outside of the sandbox and in it, with namespaces and without."""

import os
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "inside"))
import support
from support import PATIENCE
from task import Serve, WANTS

NO_NAMESPACES = "namespaces=EPERM"
NO_START = "the server does not start"


class Failed(Exception):
    """A command of a task did not do its part; the argument is its result."""


class Suite:
    def __init__(self, runner):
        self.runner = runner
        self.passed = {}

    # One run of a task -----------------------------------------------------------------------

    def words(self, one, mode, workspace, options):
        """The program and its options, and what it is started by."""
        prefix, words = [], ["--workspace", workspace, "--timeout", str(PATIENCE)]
        allowed = [workspace]
        options = list(options)
        while "--allowed-paths" in options:
            at = options.index("--allowed-paths")
            allowed.append(options[at + 1])
            del options[at:at + 2]
        words += ["--allowed-paths", *allowed]
        if mode == "control":
            home = workspace + "/../home"
            os.mkdir(home)
            self.runner.own(home)
            words += ["--sandbox", "off", "--set-env", "HOME=" + os.path.realpath(home)]
            for name, value in self.toolchains().items():
                words += ["--set-env", f"{name}={value}"]
        else:
            if "--sandbox" not in options:
                words += ["--sandbox", "strict"]
            if "--network" not in options:
                words += ["--network", one.network]
            words += options
        if mode == "bare":
            prefix = [self.runner.deny, NO_NAMESPACES, "--"]
        return prefix + [self.runner.program] + words

    def toolchains(self):
        """What rustup would not find in another home."""
        place = os.path.expanduser("~/.rustup")
        return {"RUSTUP_HOME": place} if os.path.isdir(place) and not self.runner.as_user else {}

    def attempt(self, one, mode, options):
        """The result of the task; the first one that failed, or the last one."""
        base = self.runner.workspace()
        workspace = base + "/project"
        os.mkdir(workspace)
        self.runner.own(workspace)
        words = self.words(one, mode, workspace, options)
        try:
            if isinstance(one.script, str):
                return self.once(words + ["--run", one.script])
            return self.steps(words, one.script)
        except Failed as failed:
            return failed.args[0]
        finally:
            subprocess.run(["chmod", "-R", "u+rwX", base], check=False, stderr=subprocess.DEVNULL)
            shutil.rmtree(base, ignore_errors=True)

    def once(self, words):
        process = subprocess.Popen(
            self.runner.become(words), env=self.runner.environment, cwd="/",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            errors="replace")
        result = self.runner.finish(process)
        if process.returncode == 2:
            result["outcome"] = NO_START
        return result

    def steps(self, words, steps):
        result = {}
        client = support.Client(self.runner, [], words)
        guard = threading.Timer(PATIENCE * len(steps) + 60, client.process.kill)
        guard.start()
        try:
            with client:
                if not client.began:
                    return {"success": False, "outcome": NO_START, "stderr": client.errors()}
                for step in steps:
                    result = self.step(client, step)
                    if not result.get("success"):
                        return result
        finally:
            guard.cancel()
        return result

    def step(self, client, step):
        if isinstance(step, str):
            return client.tool("execute_command", command=step.strip("\n"))
        if isinstance(step, Serve):
            shell = self.background(client, step.script)
            return self.until(client, shell, step.ready, "")
        shell = self.background(client, step.script, terminal=True)
        since, result = "", {}
        for text, pattern in step.lines:
            if text:
                client.tool("write_background_shell", shell_id=shell, input=text, keys=["enter"])
            result = self.until(client, shell, pattern, since)
            since = result.get("next", "")
        return result

    @staticmethod
    def background(client, script, **more):
        answer = client.tool("start_background_shell", command=script.strip("\n"), **more)
        if "shell_id" not in answer:
            raise Failed(answer)
        return answer["shell_id"]

    @staticmethod
    def until(client, shell, pattern, since):
        """Waits for a line; one that ended before it printed that has failed."""
        more = {"since": since} if since else {}
        result = client.tool("get_background_shell_output", shell_id=shell, wait_for=pattern,
                             timeout=PATIENCE, **more)
        if result.get("wait") != "matched":
            status = client.tool("get_background_shell_status", shell_id=shell)
            raise Failed({**status, **result, "success": False,
                          "notes": status.get("notes", []) + result.get("notes", [])})
        return {**result, "success": True}

    # What is made of it ----------------------------------------------------------------------

    @staticmethod
    def notes(result):
        """What the result says besides output, or the server when it did not start."""
        if result.get("outcome") == NO_START:
            return result["stderr"]
        return "\n".join(result.get("notes", []))

    @staticmethod
    def problem(one, result):
        if not result.get("success"):
            return "it failed"
        return None if one.expect in result["stdout"] else f"it should have printed {one.expect!r}"

    def held(self, one, mode):
        """Why a task fails in the sandbox; its refusals are followed to what they say to set."""
        options = list(one.options)
        closed = [want for want in one.wants if mode in WANTS[want].closed]
        while True:
            result = self.attempt(one, mode, options)
            problem = self.problem(one, result)
            if not problem:
                if closed:
                    return f"it passes without what {closed[0]!r} says to set", result
                return None, result
            notes = self.notes(result)
            told = [want for want in closed if WANTS[want].says in notes]
            if not told:
                missing = f", and no note says {WANTS[closed[0]].says!r}" if closed else ""
                return problem + missing, result
            want = WANTS[told[0]]
            if mode in want.for_good:
                return None, result
            closed = [other for other in closed if other not in (told[0], *want.opens)]
            options += want.options

    def refused(self, one, mode):
        result = self.attempt(one, mode, one.options)
        if result.get("success"):
            return "it should have failed", result
        if one.fails not in self.notes(result):
            return f"no note says {one.fails!r}", result
        return None, result

    def count(self, what):
        with self.runner.lock:
            self.passed[what] = self.passed.get(what, 0) + 1

    def run_task(self, one, modes):
        begin = time.monotonic()
        try:
            self.try_task(one, modes)
        except Exception as error:  # one that breaks must not hide the others
            self.runner.report(one.name, f"{type(error).__name__}: {error}")
        if self.runner.options.show:
            print(f"time: {time.monotonic() - begin:.1f} s: {one.name}")

    def try_task(self, one, modes):
        runner = self.runner
        me = "user" if runner.as_user or os.getuid() != 0 else "root"
        if one.only and one.only != me:
            print(f"left out: {one.name}: for {one.only} alone")
            return
        lacking = runner.missing(one.needs)
        if lacking:
            self.lacking(one, lacking)
            return
        if not one.fails:
            result = self.attempt(one, "control", ())
            problem = self.problem(one, result)
            if problem:
                runner.report(f"{one.name}: outside of the sandbox", problem, result)
                return
        for mode in modes:
            judge = self.refused if one.fails else self.held
            problem, result = judge(one, mode)
            closed = [want for want in one.wants if mode in WANTS[want].closed]
            remark = f" (with what the note says for {', '.join(closed)})" if closed else ""
            runner.report(f"{one.name}: {mode}{remark}", problem, result)
            if not problem:
                self.count("refused" if closed or one.fails else "passed")

    def lacking(self, one, need):
        if self.runner.as_user and subprocess.run(
                ["/bin/sh", "-c", need if " " in need else "command -v " + need], check=False,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL).returncode == 0:
            print(f"left out: {one.name}: {need}: root alone has it")
            return
        self.runner.skip(one.name, "no " + need, extra=one.heavy)

    def run(self, tasks, modes, jobs):
        if not self.runner.options.heavy:
            heavy = [one.name for one in tasks if one.heavy]
            tasks = [one for one in tasks if not one.heavy]
            if heavy:
                self.runner.skip(f"{len(heavy)} of {len(heavy) + len(tasks)} tasks",
                                 "they are for sh tests/everyday/run.sh --install")
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(lambda one: self.run_task(one, modes), tasks))
        print("in the sandbox: " + ", ".join(f"{n} {what}" for what, n in self.passed.items()))
