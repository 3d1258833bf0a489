"""R: reads."""

import os
import shlex
import stat

from cases import Case, IDLE, NOT_ROOT, OTHER_UID, SYSTEM_PATH, attack
from judges import leaked, succeeded
from setups import inherit, terminal
from writes import system_file


def reads(name, title, script, **options):
    attack(name, title, leaked, script, **options)


reads("R01", "read a file outside", 'cat "$OUT/secret"')
reads("R02", "read ~/.ssh/id_rsa", 'cat "$REAL_HOME/.ssh/id_rsa"')
reads("R03", "read ~/.aws/credentials by ~", "cat ~/.aws/credentials")
reads("R04", "read ~/.netrc by $HOME", 'cat "$HOME/.netrc"')
reads("R05", "read through a symbolic link", 'ln -s "$OUT/secret" l; cat l')
reads("R06", "read through ..", "cat ../out/secret")
reads("R07", "read through /proc/self/root", 'cat "/proc/self/root$OUT/secret"')
reads("R08", "read through the root of another process", 'cat "/proc/$VICTIM/root$OUT/secret"')
reads("R09", "read through the directory of another process", 'cat "/proc/$VICTIM/cwd/secret"')
reads("R10", "read the descriptor of another process", 'cat "/proc/$VICTIM/fd/$VICTIM_FD"')
reads("R11", "read the variables of another process",
      'tr "\\0" "\\n" < "/proc/$VICTIM/environ"')
reads("R12", "link a file outside here and read it", 'ln "$OUT/secret" h && cat h')
reads("R13", "move a file outside here and read it", 'mv "$OUT/secret" h && cat h')
reads("R14", "rename a directory outside here and read in it",
      'mv "$OUT" d && cat d/secret')
reads("R15", "re-open for reading what was opened as a path", '"$A" reopen-read "$OUT/secret"')
reads("R16", "read a file outside in memory", '"$A" map-read "$OUT/secret"')
reads("R17", "run a program outside", '"$OUT/tool.sh"')
reads("R18", "run a script outside", 'sh "$OUT/tool.sh"; . "$OUT/tool.sh"')
reads("R19", "list a directory outside", 'ls -a "$OUT"; find "$OUT"; echo "$OUT"/*')
reads("R20", "copy a tree from outside", 'cp -r "$OUT" t; cat t/secret')
reads("R21", "archive a tree from outside", 'tar -cf - "$OUT" | tr -c "[:print:]" "\\n"')
reads("R22", "io_uring", '"$A" ring-read "$OUT/secret"')
reads("R23", "open by handle", '"$A" by-handle "$OUT/secret"', no_control_user=NOT_ROOT)
reads("R24", "memory of the victim, by file", '"$A" memory-file-read "$VICTIM" "$ADDRESS"')
reads("R25", "memory of the victim, by system call", '"$A" memory-read "$VICTIM" "$ADDRESS"')
reads("R26", "take a descriptor of the victim", '"$A" take-descriptor "$VICTIM" "$VICTIM_FD"')
reads("R27", "a program in memory", '"$A" memory-program reopen-read "$OUT/secret"')
reads("R28", "descriptors that the server was started with", '"$A" inherited',
      setup=inherit, no_control=IDLE)
reads("R29", "a file of the workspace that only its owner may read",
      'cat locked', setup=lambda case: lock_file(case), no_control_user=NOT_ROOT)
system_file("R30", "/etc/shadow", "read", no_control_user=NOT_ROOT)
system_file("R31", "/etc/gshadow", "read", no_control_user=NOT_ROOT)
system_file("R32", "/etc/sudoers", "read", no_control_user=NOT_ROOT)
system_file("R33", "/etc/ssl/private/ssl-cert-snakeoil.key", "read", no_control_user=NOT_ROOT)
system_file("R34", "/etc/ssh/ssh_host_ed25519_key", "read", no_control_user=NOT_ROOT)
system_file("R35", "/dev/mem", "read", no_control="most kernels refuse root as well")
system_file("R36", "/root", "read", no_control_user=NOT_ROOT)
system_file("R37", "/proc/kcore", "read", no_control_user=NOT_ROOT)
system_file("R38", "/proc/kmsg", "read", no_control="it may be in use")
system_file("R39", "/sys/kernel/debug", "read", no_control_user=NOT_ROOT)
system_file("R40", "/dev", "read", no_control=None)
system_file("R41", "/home", "read")
system_file("R42", "/var/log", "read")
system_file("R43", "/", "read")

reads("R45", "read relative to a directory outside", 'cd "$OUT" && cat secret')
reads("R46", "~/.ssh/id_rsa, without a private home", "cat ~/.ssh/id_rsa ~/.netrc",
      options=["--private-home", "off"])


def search_path(make):
    """A PATH of the server that has a directory more, in front."""
    def setup(case):
        directory = make(case)
        case.environment["PATH"] = directory + ":" + SYSTEM_PATH
    return setup


def path_in_home(name):
    def make(case):
        case.directory("home/" + name)
        return case.path("home/" + name)
    return search_path(make)


def path_in_workspace(case):
    case.directory("ws/bin")
    os.symlink(case.path("out/secret"), case.path("ws/bin/tool"))
    os.symlink(case.path("out"), case.path("ws/bin/dir"))
    return case.path("ws/bin")


def path_through_link(case):
    case.directory("out/bin")
    os.symlink(case.path("out"), case.path("ws/tools"))
    return case.path("ws/tools/bin")


def linked_venv(case):
    case.directory("out/bin")
    os.symlink(case.path("out"), case.path("ws/.venv"))


reads("R47", "the home directory, by ~/bin in the server's PATH",
      'cat "$REAL_HOME/.ssh/id_rsa" "$REAL_HOME/.netrc"', setup=path_in_home("bin"))
reads("R48", "the home directory, by ~/.local/bin in the server's PATH",
      'cat "$REAL_HOME/.ssh/id_rsa" "$REAL_HOME/.netrc"', setup=path_in_home(".local/bin"))
reads("R49", "the home directory, by itself in the server's PATH",
      'cat "$REAL_HOME/.ssh/id_rsa" "$REAL_HOME/.netrc"', setup=path_in_home("."))
reads("R50", "what links of the workspace lead to, by its bin in the server's PATH",
      'cat bin/tool bin/dir/secret "$OUT/secret"', setup=search_path(path_in_workspace))
reads("R51", "what a link of the workspace leads to, by a PATH through it",
      'cat tools/secret "$OUT/secret"', setup=search_path(path_through_link))
reads("R52", "what .venv leads to", 'cat .venv/secret "$OUT/secret"', setup=linked_venv)
reads("R53", "what a relative directory of the server's PATH leads to",
      'cat "$OUT/secret"', setup=lambda case: case.environment.update(
          PATH="../out:.:" + SYSTEM_PATH))


def two_runs(first_script, second_script, prepare=None, more=()):
    """The first command plants something; the second comes with a new start of the server."""
    def run(case):
        if prepare:
            prepare(case)
        names = {"OUT": case.path("out"), "REAL_HOME": case.path("home"), "WS": case.path("ws")}
        lines = "".join(f"{name}={shlex.quote(value)}\n" for name, value in names.items())
        first = Case.command(case)
        case.file("ws/first.sh", lines + first_script + "\n")
        case.finish(case.popen(first + ["--run", "sh ./first.sh"]))
        case.script_file(lines + "echo attack-begins\n" + second_script + "\n")
        options = [word.replace("$WS", case.path("ws")) for word in more]
        return case.finish(case.popen(Case.command(case, [*options, "--run", "sh ./attack.sh"])))
    return run


def plants(name, title, first_script, second_script, prepare=None, more=()):
    reads(name, title, "", run=two_runs(first_script, second_script, prepare, more),
          may_refuse=True)


def linked_tool(case):
    case.directory("home/tools")
    case.directory("ws/bin")
    case.file("ws/bin/mytool", "#!/bin/sh\n", 0o755)
    os.symlink(case.path("ws/bin/mytool"), case.path("home/tools/mytool"))
    case.environment["PATH"] = case.path("home/tools") + ":" + SYSTEM_PATH


def venv_in_home(case):
    case.directory("ws/.venv")
    case.directory("ws/.venv/bin")
    os.symlink(case.path("ws/.venv"), case.path("home/venv"))
    case.environment["PATH"] = case.path("home/venv/bin") + ":" + SYSTEM_PATH


def home_with_bin(case):
    case.directory("home/bin")


AWS = 'cat "$REAL_HOME/.aws/credentials"'
plants("R70", "what a program of PATH that lies here is a link to",
       'chmod u+x "$REAL_HOME/.aws/credentials"; '
       'ln -sfn "$REAL_HOME/.aws/credentials" bin/mytool', AWS, linked_tool)
plants("R71", "what a directory of PATH that lies here is a link to",
       'mv .venv/bin .venv/old; ln -sfn "$REAL_HOME/.aws" .venv/bin',
       AWS, venv_in_home)
for number, target in ((72, "$REAL_HOME"), (73, "$OUT")):
    plants(f"R{number}", f"what a venv here is a link to, with --venv-path ({target[1:]})",
           f'mkdir -p fake/bin; ln -sfn "{target}" .venv', AWS + ' "$OUT/secret"',
           home_with_bin if number == 72 else lambda case: case.directory("out/bin"),
           ["--venv-path", "$WS/.venv"])
plants("R74", "what a link here leads to, with --read-only",
       'ln -sfn "$REAL_HOME/.aws" granted', AWS, None, ["--read-only", "$WS/granted"])
plants("R75", "what a link here leads to, with --local-skills-directory",
       'ln -sfn "$REAL_HOME/.aws" skills', AWS, None,
       ["--local-skills-directory", "$WS/skills"])


def secrets_of_prefix(case):
    for name in ("", "/bin", "/a", "/.git"):
        case.directory("out/pfx" + name)
    secret = case.token + "\n"
    for name in (".pgpass", "id_ecdsa", ".env.local"):
        case.file("out/pfx/" + name, secret)
    for name in ("a/deep", ".git/config", "settings"):
        case.file("out/pfx/" + name, secret, 0o600)
    os.chmod(case.path("out/pfx"), 0o700)
    return case.path("out/pfx/bin")


def common_directory(case):
    os.chmod(case.path("out"), 0o1777)
    return case.path("out")


reads("R76", "what looks like a secret in the prefix of a directory of PATH",
      'cd "$OUT/pfx"; cat .pgpass id_ecdsa .env.local a/deep .git/config settings',
      setup=search_path(secrets_of_prefix))
reads("R77", "a directory of everybody's, by itself in the server's PATH",
      'cat "$OUT/secret"; ls "$OUT"', setup=search_path(common_directory))


def left_in(directory):
    def setup(case):
        path = os.path.join(directory, case.variables["UNIQUE"])
        with open(path, "w", encoding="utf-8") as file:
            file.write(case.token + "\n")
        os.chmod(path, 0o644)
        case.closers.append(lambda: os.unlink(path))
    return setup


for number, place in ((78, "/tmp"), (79, "/dev/shm")):
    reads(f"R{number}", f"read what others have left in {place}",
          f'cat "{place}/$UNIQUE"; cat "/proc/self/root{place}/$UNIQUE"', setup=left_in(place))
for number, more, network in ((54, ["--pid-namespace"], "none"), (56, [], "loopback")):
    how = " ".join(more) or "--network loopback"
    reads(f"R{number}", f"read a file outside, with {how}",
          'cat "$OUT/secret" "/proc/1/root$OUT/secret" "/proc/$PPID/root$OUT/secret"',
          options=more, network=network)


def lock_file(case):
    case.file("ws/locked", case.token + "\n", 0)
    os.chown(case.path("ws/locked"), OTHER_UID + 1 if os.getuid() == 0 else -1, -1)


def disk_device():
    try:
        for name in sorted(os.listdir("/dev")):
            path = "/dev/" + name
            if stat.S_ISBLK(os.stat(path).st_mode):
                return path
    except OSError:
        pass
    return None


if disk_device():
    attack("R44", "open a disk to read", succeeded, f'"$A" open-read {disk_device()}',
           no_control_user=NOT_ROOT)

reads("R60", "keys typed in the user's terminal", '( timeout 5 head -n 1 < "$TERMINAL" ); :',
      setup=terminal)


def hidden(case):
    case.directory("ws/conf/deep")
    case.file("ws/conf/deep/secret", case.token)
    case.file("ws/.env", case.token)


HIDDEN = ["--hidden-paths", ".env", "conf/deep"]
for number, title, script in [
        (80, "read what --hidden-paths hides", "cat .env conf/deep/secret; grep -r . conf"),
        (81, "read it by other paths, with --hidden-paths",
         'cat "/proc/self/cwd/.env" "/proc/$VICTIM/root$WS/.env"; ln -s .env l; cat l'),
        (82, "read it after what lies around it was moved, with --hidden-paths",
         'mv conf c; cat c/deep/secret; "$A" rename conf d 0; cat d/deep/secret'),
        (83, "read another name of it, with --hidden-paths",
         'ln .env hard; cat hard; mv .env m; cat m; cp -r conf e; cat e/deep/secret'),
        (84, "read it after it was uncovered, with --hidden-paths",
         "umount .env conf/deep; umount -l .env; chmod 755 conf/deep; cat .env conf/deep/secret")]:
    reads(f"R{number}", title, script, setup=hidden, options=HIDDEN)
