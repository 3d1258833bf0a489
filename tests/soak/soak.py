"""Servers and an embedding program under a mixed load; what run.sh starts. See there."""

import argparse
import csv
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time

from actions import MOST_OUTPUT, PLAN, Workers
from client import PATIENCE, Failures, Gone, Server
from watch import Watch

KIB, MIB = 1 << 10, 1 << 20
# A process that does not leak keeps these at every pause.
EXACT = ["descriptors", "threads", "processes", "zombies"]
# An allocator that gives back what is freed as soon as it can, so that what a process has of the
# system is close to what it uses; and one more, which counts as used what no thread keeps back.
TIGHT = "glibc.malloc.arena_max=1:glibc.malloc.mmap_threshold=65536"
TIGHT += ":glibc.malloc.trim_threshold=65536:glibc.malloc.tcache_count=0"
# How much more private memory a process may have at the end than after its warm-up. That of the
# server with the usual allocator is scattered over its arenas, as it comes.
GROWTH = {"strict": MIB, "plain": 16 * MIB, "place": 2 * MIB, "docker": 2 * MIB, "host": 256 * KIB}
# How much more, after so many commands that are refused and so many that run, one after another:
# less than 1 KiB for each command, however slow the machine is.
COUNTED = {"sudo ls": 1500, "true": 400}
COUNTED_GROWTH = 200 * KIB
# And how much more of its heap may be in use in the embedding program.
HEAP_GROWTH = 16 * KIB


class Host:
    """The embedding program: soak/host.cpp."""

    def __init__(self, run, seed):
        self.run, self.name, self.generation = run, "host", 1
        self.directory = os.path.join(run.directory, self.name)
        self.temporary = os.path.join(self.directory, "tmp")
        os.makedirs(self.temporary)
        os.makedirs(os.path.join(self.directory, "workspace"))
        environment = dict(os.environ, TMPDIR=self.temporary, CODEEXEC_SOAK=self.mark())
        environment["GLIBC_TUNABLES"] = TIGHT
        words = [run.host_program, os.path.join(self.directory, "workspace"), str(seed), "4"]
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
        )
        self.peak = 0
        self.figures = {}
        self.answers = []
        self.answered = threading.Condition()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def mark(self):
        return f"{self.run.mark}-host-1."

    def read(self):
        for line in self.process.stdout:
            if line.startswith("FAILED: soak "):
                self.run.failures.add(line[len("FAILED: soak ") :].strip())
                continue
            with self.answered:
                self.answers.append(line.split())
                self.answered.notify_all()
        with self.answered:
            self.answers.append(["ended"])
            self.answered.notify_all()

    def order(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def answer(self):
        with self.answered:
            if not self.answered.wait_for(lambda: self.answers, PATIENCE):
                self.run.failures.add("host: does not answer")
                return ["none"]
            answer = self.answers.pop(0)
        if answer[0] in ("paused", "stopped"):
            names = ["actions", "cancels", "failures", "heap"]
            self.figures = dict(zip(names, map(int, answer[1:])))
        elif answer[0] == "ended":
            self.run.failures.add("host: ended by itself")
        return answer

    def go(self):
        self.order(f"go {max(1, int(self.run.pace * 1000))}")
        self.answer()

    def end(self):
        self.peak = self.run.watch.peak(self.process.pid)
        self.order("stop")
        self.answer()
        self.process.stdin.close()
        if self.process.wait(PATIENCE) != 0 and not self.figures.get("failures"):
            self.run.failures.add(f"host: ended with status {self.process.returncode}")
        self.reader.join()
        self.process.stdout.close()


class Run:
    def __init__(self, options):
        self.seconds, self.seed, self.share = options.seconds, options.seed, options.share
        self.program, self.host_program = map(os.path.abspath, (options.program, options.host))
        self.out, self.image = os.path.abspath(options.out), options.image
        self.mark = f"soak-{os.getpid()}-{self.seed}"
        self.sandbox = options.sandbox
        self.directory = os.path.join(self.out, "run")
        shutil.rmtree(self.directory, ignore_errors=True)
        os.makedirs(self.directory)
        self.failures, self.watch = Failures(), Watch()
        self.actions = {}
        self.pace = 0.2  # seconds between two actions of a worker, on average
        self.begun = time.monotonic()
        self.rows, self.quiet = [], {}
        self.servers, self.workers, self.hosts = [], {}, []
        self.random = random.Random(f"{self.seed} run")

    def log(self, text):
        print(f"[{time.monotonic() - self.begun:7.1f}] {text}", flush=True)

    # what there is --------------------------------------------------------------------------------

    def add(self, name, options, workers, plan=PLAN, environment=None):
        server = Server(self, name, options, environment)
        self.servers.append(server)
        server.start()
        if name in GROWTH:
            self.fill(server)
        self.workers[name] = Workers(self, server, workers, plan)

    def fill(self, server):
        """Gives it all threads, and as many ended shells and sessions as a server remembers."""
        sleep = {"name": "execute_command", "arguments": {"command": "sleep 600"}}
        for identity in [server.send("tools/call", sleep)[0] for _ in range(20)]:
            server.ask("ping")
            server.cancel(identity)
        # Those in containers need more time than memory.
        for number in range(5 if server.name == "docker" else 100):
            told = server.call("start_background_shell", command=f"seq {number}")
            asked = {"shell_id": told["shell_id"], "wait_for": "exit"}
            server.call("get_background_shell_output", **asked)
            session = {"command": "export A=b", "session_id": f"first-{number}"}
            server.call("execute_command", **session)

    def set_up(self):
        common = ["--full-results", "--max-output-size", str(MOST_OUTPUT)]
        common += ["--max-concurrent", "4"]
        place = os.path.join(self.directory, "strict", "workspace")
        strict = ["--sandbox", self.sandbox, "--allowed-paths", place]
        plain = ["--sandbox", "off"]
        self.add("strict", [*common, *strict], 5, environment={"GLIBC_TUNABLES": TIGHT})
        self.add("plain", [*common, *plain], 5)
        self.add("mortal", [*common, *plain], 4)
        # The agent is a process that stays.
        there = ["--execution-mode", "command", "--place-command", f"'{self.program}' --place"]
        there += plain
        self.add("place", [*common, *there], 3, environment={"GLIBC_TUNABLES": TIGHT})
        self.add("mortal-place", [*common, *there], 2)
        if self.image:
            variables = {
                name: os.environ[name]
                for name in ("DOCKER_HOST", "DOCKER_CONFIG")
                if name in os.environ
            }
            docker = ["--execution-mode", "docker", "--docker-image", self.image]
            for what in ("call", "run", "start"):
                docker += [f"--docker-{what}-timeout", str(PATIENCE)]
            tight = dict(variables, GLIBC_TUNABLES=TIGHT)
            self.add("docker", [*common, *docker], 3, environment=tight)
            second = ["--agent-id", "mortal"]
            self.add("mortal-docker", [*common, *docker, *second], 2, environment=variables)
        self.hosts.append(Host(self, self.seed))

    def lasting(self):
        """The processes that are the same from the beginning to the end."""
        return [each for each in [*self.servers, *self.hosts] if each.name in GROWTH]

    def containers(self):
        if not self.image:
            return []
        words = ["docker", "ps", "-a", "--no-trunc", "--format", "{{.Names}} {{.Mounts}}"]
        words += ["--filter", "label=codeexec.managed=1"]
        told = subprocess.run(words, capture_output=True, text=True, check=False)
        return [line.split()[0] for line in told.stdout.split("\n") if self.directory in line]

    # samples --------------------------------------------------------------------------------------

    def cpu(self):
        ended = sum(server.cpu_of_ended for server in self.servers)
        living = [each.process.pid for each in [*self.servers, *self.hosts]]
        return time.process_time() + ended + sum(map(self.watch.cpu, living))

    def adapt(self):
        """Slower when the run has used more than its share of a processor, and faster else."""
        over = self.cpu() > self.share * (time.monotonic() - self.begun)
        self.pace = min(20.0, self.pace * 1.2) if over else max(0.005, self.pace / 1.2)

    def sample(self, phase):
        parents = self.watch.parents()
        taken = {}
        for each in [*self.servers, *self.hosts]:
            sample = self.watch.sample(each.process.pid, parents)
            if sample is None:
                continue
            sample.update(seconds=round(time.monotonic() - self.begun, 1), phase=phase)
            sample.update(name=each.name, generation=each.generation)
            sample["files"] = len(self.watch.files(each.temporary))
            taken[each.name] = sample
        self.rows += taken.values()
        return taken

    # pauses ---------------------------------------------------------------------------------------

    def pause(self):
        """Lets everything end, and looks at what is left."""
        for host in self.hosts:
            host.order("pause")
        for workers in self.workers.values():
            workers.pause(PATIENCE)
        for server in self.servers:
            server.hold_until = 0.0
            server.state.pop("forgotten", None)
            told = server.call("list_background_shells")
            for shell in told.get("shells", []):
                if shell["status"] == "running":
                    server.call("kill_background_shell", shell_id=shell["shell_id"])
            # The engine's programs that have ended are waited for when the next one is started.
            for _ in range(2 if "docker" in server.name else 0):
                time.sleep(0.5)
                server.call("execute_command", command="true")
            if server.pending:
                self.failures.add(f"{server.name}: no reply to {list(server.pending)[:20]}")
        for host in self.hosts:
            host.answer()
        self.await_rest()

    def await_rest(self):
        """Until what was cancelled has ended, too, and nothing changes any more."""
        before, same = None, 0
        limit = time.monotonic() + PATIENCE
        while same < 3:
            now = self.sample("pause")
            counts = [[each[name] for name in EXACT] for each in now.values()]
            same = same + 1 if counts == before else 0
            left = {
                name: each["processes"] + each["zombies"]
                for name, each in now.items()
                if "docker" not in name
                and "place" not in name
                and each["processes"] + each["zombies"]
            }
            if left:
                same = 0
            before = counts
            if time.monotonic() > limit:
                self.tell_rest(left)
                break
            time.sleep(0.3)
        for host in self.hosts:
            now["host"]["heap"] = host.figures.get("heap", 0)
        for name, each in now.items():
            self.quiet.setdefault(name, []).append(dict(each, phase="quiet"))
        self.rows += [dict(each, phase="quiet") for each in now.values()]

    def tell_rest(self, left):
        parents = self.watch.parents()
        for each in [*self.servers, *self.hosts]:
            if each.name in left:
                pids = self.watch.descendants(each.process.pid, parents)
                self.failures.add(f"{each.name}: still there: {self.watch.describe(pids)}")

    def go(self):
        for workers in self.workers.values():
            workers.go()
        for host in self.hosts:
            host.go()

    def nothing_left(self, who, mark):
        """Nothing with that mark lives on, though its end may take a while."""
        limit = time.monotonic() + PATIENCE
        while True:
            left = self.watch.marked(mark, os.path.join(self.directory, "(none)"))
            if not left:
                return
            if time.monotonic() > limit:
                return self.failures.add(f"{who}: survives its end: {self.watch.describe(left)}")
            time.sleep(0.2)

    def restart(self, server):
        mark, kill = server.mark(), self.random.random() < 0.6
        server.end(kill, busy=True)
        self.nothing_left(server.name, mark)
        server.start()

    # the run --------------------------------------------------------------------------------------

    def load(self, seconds):
        end = time.monotonic() + seconds
        self.go()
        while time.monotonic() < end:
            time.sleep(min(1.0, max(0.01, end - time.monotonic())))
            self.adapt()
            if len(self.rows) == 0 or time.monotonic() - self.last_sample > self.every:
                self.last_sample = time.monotonic()
                self.sample("load")
            for server in self.servers:
                if server.name not in GROWTH and time.monotonic() > server.next_death:
                    self.restart(server)
                    self.plan_death(server)
        self.pause()

    def plan_death(self, server):
        longest = 60 if "docker" in server.name else 20
        server.next_death = time.monotonic() + self.random.uniform(3, longest)

    def go_through(self):
        self.every = 1.0 if self.seconds <= 600 else 2.0
        self.last_sample = 0.0
        self.log(f"seed {self.seed}, {self.seconds} s, {self.share} of a processor")
        self.set_up()
        self.log(f"{len(self.servers)} servers and {len(self.hosts)} embedding program")
        rounds = max(8, min(40, self.seconds // 60))
        for server in self.servers:
            self.plan_death(server)
        for number in range(rounds):
            left = self.seconds - (time.monotonic() - self.begun)
            self.load(max(2.0, left / (rounds - number)))
            told = [f"{name} {brief(each[-1])}" for name, each in self.quiet.items()]
            total = sum(server.requests for server in self.servers)
            told += [f"requests {total}", f"host {self.hosts[0].figures}", f"pace {self.pace:.3f}"]
            self.log(f"round {number + 1}: " + ", ".join(told))
            self.save()
        self.count()
        self.end()

    def count(self):
        """Memory before and after a number of calls."""
        server = self.servers[0]
        sizes = []
        for _ in range(2):
            for command, times in COUNTED.items():
                for _ in range(times):
                    server.call("execute_command", command=command)
            self.await_rest()
            sizes.append(self.quiet[server.name][-1]["private"])
        told = f"{sizes[1] - sizes[0]} bytes more of memory after {sum(COUNTED.values())} calls"
        if sizes[1] - sizes[0] > COUNTED_GROWTH:
            self.failures.add(f"{server.name}: {told}")
        else:
            print(f"ok: soak {server.name}: {told}", flush=True)

    def end(self):
        for workers in self.workers.values():
            workers.stop()
        self.cpu_used, self.ended = self.cpu(), time.monotonic() - self.begun
        for each in [*self.servers, *self.hosts]:
            pids = [each.process.pid]
            if isinstance(each, Server):
                each.end(kill=False, busy=False)
            else:
                each.end()
            if self.watch.groups(pids):
                self.failures.add(f"{each.name}: control groups: {self.watch.groups(pids)}")
            left = self.watch.files(each.temporary)
            if left:
                self.failures.add(f"{each.name}: files are left: {left[:20]}")
        self.nothing_left("the run", self.mark)
        limit = time.monotonic() + 60
        while self.containers() and time.monotonic() < limit:
            time.sleep(1)
        if self.containers():
            self.failures.add(f"containers are left: {self.containers()}")

    def save(self):
        names = ["seconds", "phase", "name", "generation", "pid", "rss", "private", "descriptors"]
        names += ["threads", "processes", "zombies", "files", "heap"]
        with open(os.path.join(self.out, "samples.csv"), "w", encoding="ascii", newline="") as file:
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows(self.rows)

    # verdict --------------------------------------------------------------------------------------

    def judge(self):
        for server in self.servers:
            self.judge_replies(server)
        for each in self.lasting():
            self.judge_flatness(each)
        used = f"{self.cpu_used:.0f} s of a processor in {self.ended:.0f} s, seed {self.seed}"
        if self.failures.count == 0:
            print(f"ok: soak: {sum(self.actions.values())} actions on servers, {used}", flush=True)
        else:
            print(f"FAILED: soak: {self.failures.count} failures, {used}", flush=True)

    def judge_replies(self, server):
        if server.replies == 0:
            self.failures.add(f"{server.name}: no reply at all")
        answered = server.replies + server.cancels + server.died_with + server.lost
        if answered != server.requests:
            told = f"{server.requests} requests, {answered} accounted for"
            self.failures.add(f"{server.name}: {told}")
        if server.kills == 0 and server.closed == 1 and server.malformed != server.told_malformed:
            told = f"{server.malformed} malformed lines, {server.told_malformed} told so"
            self.failures.add(f"{server.name}: {told}")
        told = f"{server.requests} requests, {server.replies} replies, {server.cancels} cancelled "
        told += f"({server.late} of them answered), {server.malformed} malformed lines, "
        told += f"{server.progress} progress, {server.kills} times killed, {server.closed} closed "
        told += f"({server.died_with} requests ended with it, {server.hurried} times some not in "
        told += f"time), peak {server.peak // MIB} MiB"
        if server.containers_lost:
            told += f", {server.containers_lost} results lost with a container"
        print(f"ok: soak {server.name}: {told}", flush=True)

    def judge_flatness(self, each):
        before = self.failures.count
        series = self.quiet[each.name]
        # The first quarter is warm-up.
        warm = len(series) // 4
        base, last = series[warm], series[-1]
        for name in EXACT:
            room = 3 if (each.name, name) == ("docker", "zombies") else 0
            if last[name] > base[name] + room:
                self.failures.add(f"{each.name}: {name} from {base[name]} to {last[name]}")
        # The least of three pauses: what is only scattered comes and goes.
        growth = least(series[-3:], "private") - least(series[warm : warm + 3], "private")
        if growth > GROWTH[each.name]:
            self.failures.add(f"{each.name}: {growth} bytes more of memory")
        told = f"{last['descriptors']} descriptors, {last['threads']} threads, "
        told += f"{last['processes']} processes at the end, after the warm-up "
        told += f"{base['descriptors']}, {base['threads']}, {base['processes']}; "
        told += f"{growth / KIB:+.0f} KiB of memory"
        if self.seconds >= 1800:
            later = slope(series[len(series) // 2 :]) / KIB
            told += f" ({later:+.0f} KiB per hour in the second half)"
        if last.get("heap"):
            heap = least(series[-3:], "heap") - least(series[warm : warm + 3], "heap")
            told += f", {heap:+d} bytes of the heap in use"
            if heap > HEAP_GROWTH:
                self.failures.add(f"{each.name}: {heap} bytes more of the heap in use")
        verdict = "ok" if self.failures.count == before else "not flat"
        print(f"{verdict}: soak {each.name}: {told}", flush=True)


def brief(sample):
    told = f"{sample['private'] // KIB} K, {sample['descriptors']} descriptors, "
    return told + f"{sample['threads']} threads, {sample['processes']} processes"


def least(samples, name):
    return min(sample[name] for sample in samples)


def slope(samples):
    """Of the line through the private memory, by least squares, in bytes per hour."""
    hours = [sample["seconds"] / 3600 for sample in samples]
    sizes = [sample["private"] for sample in samples]
    middle, mean = sum(hours) / len(hours), sum(sizes) / len(sizes)
    spread = sum((hour - middle) ** 2 for hour in hours)
    return sum((h - middle) * (size - mean) for h, size in zip(hours, sizes)) / spread


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--host", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--share", type=float, default=0.5)
    parser.add_argument("--image", default="")
    parser.add_argument("--sandbox", default="strict")
    run = Run(parser.parse_args())
    try:
        run.go_through()
        run.judge()
    except Gone:
        run.failures.add("the run is given up: a server does not reply")
    finally:
        for each in [*run.servers, *run.hosts]:
            each.ending = True
            each.process.kill()  # does nothing to one that has ended as it should
        run.save()
        with open(os.path.join(run.out, "actions.json"), "w", encoding="ascii") as file:
            json.dump(run.actions, file, indent=2)
    return 1 if run.failures.count else 0


sys.exit(main())
