"""Runs attacks and their controls, and counts what became of them."""

import errno
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from cases import Attack, Case, LACKING, OTHER_UID, REFUSED, SYSTEM_PATH
from judges import let_go, survived


class Suite:
    def __init__(self, options):
        self.mode = options.sandbox
        self.verbose = options.verbose
        self.counts = dict.fromkeys(("blocked", "allowed by design", "gaps",
                                     "gaps closed by an option", "controls not applicable",
                                     "failed", "skipped"), 0)
        self.lock = threading.Lock()
        self.uid = 0 if options.who == "root" else OTHER_UID if os.getuid() == 0 else os.getuid()
        self.gid = os.getgid() if self.uid == os.getuid() else OTHER_UID
        # Not in /tmp, of which commands have one of their own.
        self.base = tempfile.mkdtemp(prefix="cx-", dir="/var/tmp")
        os.chmod(self.base, 0o755)
        self.tools = os.path.join(self.base, "tools")
        os.mkdir(self.tools)
        self.mcp = shutil.copy(options.mcp, os.path.join(self.tools, "codeexec-mcp"))
        self.attack_program = shutil.copy(options.attack, os.path.join(self.tools, "attack"))
        help_text = subprocess.run([self.mcp, "--help"], stdout=subprocess.PIPE, check=True).stdout
        self.has_sandbox = b"--sandbox " in help_text
        self.limited = confined()

    def identity(self):
        if self.uid == os.getuid():
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def say(self, kind, text):
        with self.lock:
            if kind == "FAILED":
                self.counts["failed"] += 1
            elif kind == "SKIPPED":
                self.counts["skipped"] += 1
            print(f"{kind}: {text}", flush=True)

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def report(self, *options):
        """Whether the sandbox can be had with these, and what it says."""
        command = [self.mcp, "--allowed-paths", self.tools, "--sandbox", "strict", *options]
        run = subprocess.run(command + ["--sandbox-report"], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, cwd=self.tools, env={"PATH": SYSTEM_PATH,
                             "HOME": "/", "TMPDIR": "/tmp"}, check=False, **self.identity())
        return run.returncode == 0, run.stdout.decode("utf-8", "replace").strip()[:300]

    def why_no_control(self, one):
        root = self.uid == 0
        return one.no_control or (one.no_control_root if root else one.no_control_user)

    def one(self, one):
        start = time.monotonic()
        try:
            self.try_one(one)
            if self.verbose:
                print(f"time: {time.monotonic() - start:.2f} s for {one.name}")
        except Exception as error:  # one attack that breaks must not hide the others
            self.say("FAILED", f"{one.name} {one.title}: {type(error).__name__}: {error}")

    def attempt(self, one, label, sandboxed):
        case = Case(self, one, label, sandboxed)
        try:
            run = case.run()
            why = one.judge(case, run)
            if survived(case, run, 0):
                let_go(case)
            return run, why
        finally:
            case.close()

    def try_one(self, one):
        if one.only and one.only != ("root" if self.uid == 0 else "user"):
            return
        note = self.why_no_control(one)
        if not note:
            run, why = self.attempt(one, "control", False)
            if not why:
                note = self.excuse(run)
                if not note:
                    self.say("FAILED", f"{one.name} {one.title}: its control did not succeed:"
                             f" {run.told()}")
                    return
        if self.mode == "none":
            return
        takes_mounts = {"--pid-namespace", "--protected-paths", "--hidden-paths"}
        if takes_mounts & {*one.options} and not self.pid_namespace[0]:
            self.say("SKIPPED", f"{one.name} {one.title}: {self.pid_namespace[1]}")
            return
        if one.network == "loopback" and not self.loopback[0]:
            self.say("SKIPPED", f"{one.name} {one.title}: {self.loopback[1]}")
            return
        run, why = self.attempt(one, "held", True)
        text = f"{one.name} {one.title}"
        if note:
            self.count("controls not applicable")
        remark = f" (control '-': {note})" if note else ""
        if run.status == 2 and run.result is None and one.may_refuse and not why:
            self.count("blocked")
            self.say("ok", f"{text}: the server does not start: {run.err.strip()[:200]}{remark}")
        elif not run.began() and not why:
            self.say("FAILED", f"{text}: it did not run: {run.told()}")
        elif one.gap and one.gap_only in (None, "root" if self.uid == 0 else "user"):
            self.gap(one, text, why, run)
        elif one.allowed and why:
            self.count("allowed by design")
            self.say("ok", f"{text}: allowed{remark}")
        elif one.allowed:
            self.say("FAILED", f"{text}: it must work: {run.told()}")
        elif why:
            self.say("FAILED", f"{text}: got through: {why}"
                     + (f"; {run.told()}" if self.verbose else ""))
        else:
            self.count("blocked")
            self.say("ok", f"{text}: blocked{remark}")

    def gap(self, one, text, why, run):
        if not why and one.gap_varies:
            self.count("blocked")
            self.say("ok", f"{text}: blocked on this machine")
            return
        if not why:
            self.say("FAILED", f"gap {text}: it is closed now, so the list of gaps is wrong:"
                     f" {run.told()}")
            return
        self.count("gaps")
        self.say("ok", f"gap {text}: {one.gap}")
        if not one.closed_by:
            return
        if not self.pid_namespace[0]:
            self.say("SKIPPED", f"{text} with {one.closed_by[0]}: {self.pid_namespace[1]}")
            return
        closed = Attack(one.name, one.title, one.judge, one.script, network=one.network,
                        options=one.options + one.closed_by, setup=one.setup, run=one.run)
        run, why = self.attempt(closed, "closed", True)
        if why or not run.began():
            self.say("FAILED", f"{text}: not closed by {' '.join(one.closed_by)}:"
                     f" {why or 'it did not run'}; {run.told()}")
        else:
            self.count("gaps closed by an option")
            self.say("ok", f"{text}: closed by {' '.join(one.closed_by)}")

    def excuse(self, run):
        """Why a control that did not succeed says nothing about the attack."""
        found = re.search(r"unavailable: (.*)", run.out)
        if found:
            return "not on this machine: " + found.group(1)
        errors = {error for _, error in run.probes()} - {0}
        if errors and errors <= LACKING:
            return "not in this kernel: " + ", ".join(errno.errorcode[error] for error in errors)
        if errors and errors <= REFUSED | LACKING and self.limited:
            return "refused here anyway: " + self.limited
        return None

    def run(self, attacks, jobs):
        if self.mode == "strict":
            there, why = self.report("--network", "none")
            if not there:
                print(f"SKIPPED: no sandbox to attack: {why}")
                return 77
        self.loopback = self.report("--network", "loopback")
        self.pid_namespace = self.report("--pid-namespace")
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(self.one, attacks))
        counts = ", ".join(f"{number} {name}" for name, number in self.counts.items())
        who = "root" if self.uid == 0 else f"user {self.uid}"
        print(f"attacks as {who}: {counts}")
        return 1 if self.counts["failed"] else 0

    def close(self):
        subprocess.run(["chmod", "-R", "u+rwX", self.base], stderr=subprocess.DEVNULL, check=False)
        subprocess.run(["rm", "-rf", self.base], check=False)


def confined():
    """Whether something outside of us holds this program already, like a container."""
    with open("/proc/self/status", encoding="ascii") as file:
        status = dict(line.split(":\t", 1) for line in file if ":\t" in line)
    if status.get("Seccomp", "0").strip() != "0":
        return "a system call filter is in force"
    if os.getuid() == 0 and not int(status["CapEff"], 16) >> 21 & 1:
        return "no CAP_SYS_ADMIN"
    if os.getuid() != 0:
        return "the rights of this user differ from machine to machine"
    return None
