"""What the system knows of processes: their memory, descriptors, threads and children."""

import os

TICKS = os.sysconf("SC_CLK_TCK")


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""  # it ended while we looked


class Watch:
    def status(self, pid):
        fields = {}
        for line in read(f"/proc/{pid}/status").decode(errors="replace").split("\n"):
            name, _, value = line.partition(":")
            fields[name] = value.strip()
        return fields

    def kib(self, pid, name):
        return int(self.status(pid).get(name, "0 kB").split()[0]) * 1024

    def peak(self, pid):
        return self.kib(pid, "VmHWM")

    def cpu(self, pid):
        """Of the process, and of what it has waited for."""
        fields = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        return sum(map(int, fields[11:15])) / TICKS if fields else 0.0

    def descriptors(self, pid):
        try:
            return sorted(os.listdir(f"/proc/{pid}/fd"), key=int)
        except OSError:
            return []

    def parents(self):
        """Of every process: its parent and its state."""
        found = {}
        for name in os.listdir("/proc"):
            if name.isdigit():
                fields = read(f"/proc/{name}/stat").rpartition(b")")[2].split()
                if fields:
                    found[int(name)] = (int(fields[1]), fields[0].decode())
        return found

    def waiting(self, parents):
        """Supervisors that wait for a command: without a child."""
        busy = {parent for parent, _ in parents.values()}
        return {
            pid
            for pid, (_, state) in parents.items()
            if pid not in busy and state != "Z" and self.status(pid).get("Name") == "codeexec"
        }

    def descendants(self, pid, parents):
        """But those that wait for a command."""
        children = {}
        for child, (parent, _) in parents.items():
            children.setdefault(parent, []).append(child)
        found, todo = [], [pid]
        while todo:
            below = children.get(todo.pop(), [])
            found += below
            todo += below
        idle = self.waiting(parents) if found else set()
        return [each for each in found if each not in idle]

    def describe(self, pids):
        told = []
        for pid in pids[:20]:
            words = read(f"/proc/{pid}/cmdline").replace(b"\0", b" ").decode(errors="replace")
            told.append(f"{pid} {words.strip()[:100] or self.status(pid).get('Name', '(gone)')}")
        return "; ".join(told)

    def marked(self, mark, directory):
        """Processes that have the mark in their environment or words, or work in the directory."""
        found = []
        own = os.getpid()
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) == own:
                continue
            try:
                place = os.readlink(f"/proc/{name}/cwd")
            except OSError:
                place = ""
            text = read(f"/proc/{name}/environ") + read(f"/proc/{name}/cmdline")
            if mark.encode() in text or (place + "/").startswith(directory + "/"):
                found.append(int(name))
        return found

    def files(self, directory):
        return sorted(
            os.path.relpath(os.path.join(place, name), directory)
            for place, folders, names in os.walk(directory)
            for name in folders + names
        )

    def groups(self, pids):
        """Control groups that these processes have made."""
        own = tuple(f"codeexec-{pid}-" for pid in pids)
        return [
            os.path.join(place, folder)
            for place, folders, _ in os.walk("/sys/fs/cgroup")
            for folder in folders
            if folder.startswith(own)
        ]

    def sample(self, pid, parents):
        fields = self.status(pid)
        if "VmRSS" not in fields:
            return None
        below = self.descendants(pid, parents)
        zombies = sum(parents[each][1] == "Z" for each in below)
        # Each of its supervisors that wait has a socket and a pidfd here.
        kept = 2 * sum(parents[each][0] == pid for each in self.waiting(parents))
        return {
            "pid": pid,
            "rss": int(fields["VmRSS"].split()[0]) * 1024,
            "private": int(fields["RssAnon"].split()[0]) * 1024,
            "descriptors": len(self.descriptors(pid)) - kept,
            "threads": int(fields["Threads"]),
            "processes": len(below) - zombies,
            "zombies": zombies,
        }
