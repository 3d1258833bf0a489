"""W: writes."""

import os
import select

from cases import Case, IDLE, NOT_ROOT, attack
from judges import outside_changed, succeeded
from setups import inherit, terminal


def writes(name, title, script, **options):
    attack(name, title, outside_changed, script, **options)


writes("W01", "write to a file outside", 'echo x > "$OUT/canary"')
writes("W02", "append to a file outside", 'echo x >> "$OUT/canary"')
writes("W03", "make a file outside", 'echo x > "$OUT/new"')
writes("W04", "write through a symbolic link", 'ln -s "$OUT/canary" l; echo x > l')
writes("W05", "write through a link to a directory", 'ln -s "$OUT" d; echo x > d/dir/canary')
writes("W06", "write through ..", "echo x > ../out/canary")
writes("W07", "write through /proc/self/root", 'echo x > "/proc/self/root$OUT/canary"')
writes("W08", "write through /proc/thread-self/root",
       'echo x > "/proc/thread-self/root$OUT/canary"')
writes("W09", "write through /proc/self/cwd", "echo x > /proc/self/cwd/../out/canary")
writes("W10", "write through /proc/1/root", 'echo x > "/proc/1/root$OUT/canary"',
       no_control="it may be closed to root, too")
writes("W11", "write through the root of another process",
       'echo x > "/proc/$VICTIM/root$OUT/canary"')
writes("W12", "write through the directory of another process",
       'echo x > "/proc/$VICTIM/cwd/canary"')
writes("W13", "write through the descriptor of another process",
       'echo x > "/proc/$VICTIM/fd/$VICTIM_FD"')
writes("W14", "re-open for writing what was opened for reading",
       'exec 3< "$RO/canary"; echo x > /proc/self/fd/3')
writes("W15", "re-open for writing what was opened as a path", '"$A" reopen "$OUT/canary"')
writes("W16", "write below a directory opened as a path", '"$A" open-below "$OUT" canary')
writes("W17", "openat2", '"$A" openat2-write "$OUT/canary"')
writes("W18", "empty a file by opening it for reading", '"$A" open-truncate "$OUT/canary"')
writes("W19", "truncate(2)", '"$A" truncate "$OUT/canary"')
writes("W20", "delete a file outside", 'rm -f "$OUT/canary"')
writes("W21", "delete a directory outside", 'rmdir "$OUT/empty"')
writes("W22", "make a directory outside", 'mkdir "$OUT/new"')
writes("W23", "make a fifo outside", 'mkfifo "$OUT/new"')
writes("W24", "make a symbolic link outside", 'ln -s x "$OUT/new"')
writes("W25", "make a socket outside", '"$A" unix-bind "$OUT/s"', options=["--unix-sockets"])
writes("W26", "link a file outside into the workspace and write to it",
       'ln "$OUT/canary" h && echo x > h')
writes("W27", "link a file of the workspace outside", 'echo x > f; ln f "$OUT/new"')
writes("W28", "move a file outside", 'echo x > f; mv f "$OUT/new"')
writes("W29", "rename(2) a file outside", 'echo x > f; "$A" rename f "$OUT/new" 0')
writes("W30", "move a file from outside here", 'mv "$OUT/canary" f')
writes("W31", "exchange a file with one outside", 'echo x > f; "$A" rename f "$OUT/canary" 2')
writes("W32", "exchange a directory with one outside", 'mkdir d; "$A" rename d "$OUT/dir" 2')
writes("W33", "rename a file outside", '"$A" rename "$OUT/canary" "$OUT/new" 1')
writes("W34", "write to a file outside in memory", '"$A" map-write "$OUT/canary"')
writes("W35", "name a nameless file outside", '"$A" link-nameless . "$OUT/new"')
writes("W36", "write to a file that may be read", 'echo x > "$RO/canary"')
writes("W37", "write in memory to a file that may be read", '"$A" map-write "$RO/canary"')
writes("W38", "make a file where may be read", 'echo x > "$RO/new"')
writes("W39", "delete what may be read", 'rm -f "$RO/canary"')
writes("W40", "move what may be read here", 'mv "$RO/canary" f')
writes("W41", "link what may be read here and write to it", 'ln "$RO/canary" h && echo x > h')
writes("W42", "write to ~/.bashrc", 'echo x >> "$REAL_HOME/.bashrc"')
writes("W43", "write to ~/.ssh/authorized_keys", 'echo x > "$REAL_HOME/.ssh/authorized_keys"')
writes("W44", "a link that turns while it is written through",
       'echo x > f; "$A" race "$WS/f" "$OUT/canary"')
writes("W45", "io_uring", '"$A" ring-write "$OUT/canary"')
writes("W46", "a second Landlock ruleset that grants everything",
       '"$A" grant-again "$OUT/canary"')
writes("W47", "a program in memory", '"$A" memory-program reopen "$OUT/canary"')
writes("W48", "copy a tree over one outside",
       'mkdir -p t/dir; echo x > t/dir/canary; cp -r t/. "$OUT"')
writes("W49", "unpack an archive with .. in its names",
       'tar -cPf t.tar --transform "s,^,../out/," attack.sh; tar -xPf t.tar')

attack("W90", "let everybody wait who opens a file (a lease)", succeeded,
       '"$A" hold-lease "$RO/canary"')
writes("W50", "write through descriptors that the server was started with", '"$A" inherited',
       setup=inherit, no_control=IDLE)
attack("W51", "make a character device", lambda case, run: made_device(case),
       "mknod null c 1 3", no_control_user=NOT_ROOT)
attack("W52", "make a block device", lambda case, run: made_device(case),
       "mknod disk b 7 250", no_control_user=NOT_ROOT)


def made_device(case):
    for name in ("null", "disk"):
        if os.path.lexists(case.path("ws/" + name)):
            return "the device is there"
    return None


def repository(case):
    for name in ("ws/.git", "ws/.git/hooks"):
        case.directory(name)
    case.file("ws/.git/config", "kept")
    case.file("ws/.git/hooks/pre-push", "kept", 0o755)


def planted(case, run):
    """Whoever works there later would run it, or obey it."""
    hooks = os.listdir(case.path("ws/.git/hooks"))
    with open(case.path("ws/.git/config"), encoding="ascii") as file:
        config = file.read()
    if hooks != ["pre-push"] or config != "kept" or not os.path.isdir(case.path("ws/.git")):
        return f"planted: {hooks} {config!r}"
    with open(case.path("ws/.git/hooks/pre-push"), encoding="ascii") as file:
        return None if file.read() == "kept" else "the hook is another"


# What is protected stays while a command runs; the rest is put back when it has ended.
PROTECTED = ["--protected-paths", ".git/hooks", ".git/config", "--allow-later", "."]
PLANTS = (
    ("a new hook", "echo x > .git/hooks/post-commit"),
    ("a hook that is there", "echo x > .git/hooks/pre-push"),
    ("settings", "echo x > .git/config"),
    ("settings by a file that takes their place", "echo x > .git/c; mv .git/c .git/config"),
    ("hooks by a folder that takes its place",
     "cp -r .git/hooks h; echo x > h/new; rm -rf .git/hooks; mv h .git/hooks"),
    ("a repository by another", "cp -r .git g; echo x > g/config; mv .git old; mv g .git"),
    ("a repository by exchange", 'cp -r .git g; echo x > g/config; "$A" rename .git g 2'),
    ("settings by a link", "ln .git/config hard && echo x > hard"),
    ("settings by the way of the process itself", "echo x > /proc/self/cwd/.git/config"),
    ("settings by the way of another process", 'echo x > "/proc/$VICTIM/root$WS/.git/config"'),
    ("settings by the way of the supervisor",
     'for p in $("$A" ancestors "$RUNNER"); do echo x > "/proc/$p/root$WS/.git/config"; done'),
)
for number, (title, script) in enumerate(PLANTS):
    only_root = NOT_ROOT if "supervisor" in title else None
    attack(f"W{91 + number}", f"plant {title}, with --protected-paths", planted, script,
           options=PROTECTED, setup=repository, no_control_user=only_root)
    attack(f"W{121 + number}", f"plant {title}", planted, script, setup=repository,
           no_control_user=only_root)
attack("W132", "plant a hook by a process that stays",
       planted, "(setsid sh -c 'while :; do echo x > .git/hooks/post-commit; done' &) ; "
       "until [ -e .git/hooks/post-commit ]; do :; done", setup=repository)


def shared_place(name, title, directory, **options):
    def judge(case, run):
        path = os.path.join(directory, case.variables["UNIQUE"])
        if not os.path.lexists(path):
            return None
        os.unlink(path)
        return f"{path} was made"
    attack(name, title, judge, f'echo x > "{directory}/$UNIQUE"', **options)


shared_place("W53", "make a file in /tmp", "/tmp")
shared_place("W54", "make a file in /var/tmp", "/var/tmp")
shared_place("W55", "make a file in /dev/shm", "/dev/shm")


def nameless(name, directory, **options):
    """A file that has no name, and is gone at once: harmless where it succeeds."""
    if not os.path.isdir(directory):
        return
    attack(name, f"a nameless file in {directory}", succeeded, f'"$A" nameless {directory}',
           no_control_user=NOT_ROOT, **options)


attack("W75", "flags of a file outside by its path", succeeded,
       '"$A" set-file-flags "$OUT/canary"')
nameless("W56", "/etc")
nameless("W57", "/usr/bin")
nameless("W58", "/usr/local/bin")
nameless("W59", "/var/spool/cron")
nameless("W60", "/etc/cron.d")
nameless("W61", "/root")
nameless("W62", "/var/lib")


def system_file(name, path, mode="write", **options):
    """Opens, and does nothing with it."""
    if not os.path.exists(path):
        return
    attack(name, f"open {path} to {mode}", succeeded, f'"$A" open-{mode} {path}', **options)


system_file("W63", "/etc/passwd", no_control_user=NOT_ROOT)
system_file("W64", "/etc/ld.so.cache", no_control_user=NOT_ROOT)
system_file("W65", "/proc/sys/kernel/core_pattern", no_control_user=NOT_ROOT)
system_file("W66", "/proc/sysrq-trigger", no_control_user=NOT_ROOT)
system_file("W67", "/dev/kmsg", no_control_user=NOT_ROOT)
system_file("W68", "/sys/fs/cgroup/cgroup.procs", no_control_user=NOT_ROOT)
system_file("W69", "/sys/kernel/mm/transparent_hugepage/enabled", no_control_user=NOT_ROOT)


def swap_grant(case):
    """The first command turns a granted directory into a link; the second is granted it."""
    case.directory("ws/granted")
    case.attack.script = ""
    first = Case.command(case)
    case.file("ws/first.sh", f"rmdir granted; ln -s {case.path('out')} granted\n")
    case.finish(case.popen(first + ["--run", "sh ./first.sh"]))
    case.script_file("echo attack-begins; echo x > canary; echo x > granted/canary\n")
    second = [word for word in first]
    second[second.index("--allowed-paths") + 1 : second.index("--timeout")] = [
        case.path("ws"), case.path("ws/granted")]
    run = case.finish(case.popen(second + ["--run", "sh ./attack.sh"]))
    return run


attack("W70", "turn a granted directory into a link between two runs", outside_changed, "",
       run=swap_grant, may_refuse=True)

for number, more, network in ((71, ["--pid-namespace"], "none"), (73, [], "loopback")):
    how = " ".join(more) or "--network loopback"
    writes(f"W{number}", f"write to a file outside, with {how}",
           'echo x > "$OUT/canary"; echo x > "/proc/1/root$OUT/canary"',
           options=more, network=network)


def terminal_written(case, run):
    ready, _, _ = select.select([case.terminal], [], [], 0)
    return "the user's terminal shows it" if ready else None


attack("W80", "write to the user's terminal", terminal_written, 'echo x > "$TERMINAL"',
       setup=terminal)
