#!/usr/bin/env python3
"""Checks the labels of commands.jsonl against what bash and dash really run.

Every command runs under both shells in a sandbox of its own (bubblewrap: no network, an empty
root, an unprivileged user, a limit on processes and time). What could do harm, and what is not
installed, is a stub there that only writes down its arguments; every other program is written
down, too, and then runs. The absolute paths of the programs lead to the same stubs.

  verify.py [ID...]    compares the labels with what ran; exit status 1 when they contradict. An ID
                       may be the beginning of some
  verify.py --dump     writes ran.jsonl anew (with IDs: their lines)
  verify.py --show ID  prints what ran for these rows

Exit status 77, with a line SKIPPED, where no such sandbox can be built. Needs bwrap, bash, dash.
"""

import collections
import concurrent.futures
import json
import os
import posixpath
import re
import resource
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SHELLS = ("bash", "dash")
USER = 12345
HOME = "/home/u"
WORK_DIR = "/work/team/proj/app"

# Stubs: write down their arguments and succeed.
HARMFUL = """rm sudo sudoedit doas pkexec su runuser dd chmod chown mv cp mkfs mkfs.ext2 mkfs.ext3
mkfs.ext4 mkfs.xfs mkfs.vfat mkfs.btrfs mke2fs wipefs shred curl wget install ln truncate rmdir
unlink kill pkill killall killall5 shutdown reboot halt poweroff init telinit mount umount mkswap
swapon swapoff fdisk sfdisk sgdisk parted blkdiscard cryptsetup losetup sysctl iptables ip6tables nft
setfacl useradd usermod adduser addgroup groupadd groupmod gpasswd passwd chpasswd newusers vipw vigr
visudo setcap hdparm nvme badblocks mdadm rimraf trash trash-put""".split()
TOOLS = """pytest npm npx yarn pnpm docker docker-compose podman kubectl helm terraform make cmake
ninja cargo rustc go pip pip3 uv poetry tox ruff black mypy flake8 eslint tsc java mvn gradle gcc cc
g++ clang ssh scp rsync systemctl apt apt-get dpkg psql mysql redis-cli gh aws crontab at batch pre-commit
isort deno bun tar zip unzip""".split()
# Stand-ins for programs that are not installed everywhere, or want a terminal.
STAND_INS = {
    "busybox": 'exec "$@"',
    "toybox": 'exec "$@"',
    "zsh": 'exec /real/bin/bash "$@"',
    "ksh": 'exec /real/bin/bash "$@"',
    "time": 'while :; do case $1 in -o|-f) shift 2;; -*) shift;; *) break;; esac; done; exec "$@"',
    "watch": """while :; do
  case $1 in -n|--interval) shift 2;; -x|--exec) direct=1; shift;; -*) shift;; *) break;; esac
done
[ "$direct" ] && exec "$@"
exec sh -c "$*" """,
    "script": """while [ $# -gt 0 ]; do
  case $1 in
  -c|-qc|-ec|-qec|--command) command=$2; shift 2;;
  --command=*) command=${1#*=}; shift;;
  *) shift;;
  esac
done
[ "$command" ] && exec sh -c "$command" """,
    "parallel": """command=
[ "$1" = -j ] && shift 2
while [ $# -gt 0 ] && [ "$1" != ::: ]; do
  command="$command $1"
  shift
done
if [ $# -gt 0 ]; then
  shift
  for word in "$@"; do sh -c "$command $word"; done
else
  while IFS= read -r word; do sh -c "$command $word" < /dev/null; done
fi""",
    **dict.fromkeys(("uv", "poetry", "pipenv", "bundle"),
                    'case $1 in run|exec) shift; [ $# -gt 0 ] && exec "$@";; esac; exit 0'),
    "tee": "exec /real/bin/cat",
    "ionice": """while :; do case $1 in -c|-n) shift 2;; -*) shift;; *) break;; esac; done
exec "$@" """,
    "chrt": 'while :; do case $1 in -*) shift;; *) shift; break;; esac; done; exec "$@"',
    "ssh": """while :; do
  case $1 in -[BbcDEeFIiJLlmOoPpQRSWw]) shift 2;; -*) shift;; *) break;; esac
done
[ $# -gt 0 ] && shift
[ "$1" = -- ] && shift
[ $# -gt 0 ] && exec sh -c "$*"
exec sh""",
    **dict.fromkeys(("docker", "podman"), """case $1 in exec|run) shift;; *) exit 0;; esac
while :; do
  case $1 in -[euvwp]|--name|--user|--network|--env-file|--device) shift 2;; -*) shift;; *) break;; esac
done
[ $# -gt 1 ] || exit 0
shift
exec "$@" """),
    "kubectl": """while [ $# -gt 0 ] && [ "$1" != -- ]; do shift; done
[ $# -gt 1 ] || exit 0
shift
exec "$@" """,
    "npx": """case $1 in
-c|--call) exec sh -c "$2";;
--call=*) exec sh -c "${1#--call=}";;
-*) exit 0;;
esac
exec "$@" """,
    "find": """for word in "$@"; do
  [ "$word" = -delete ] && exit 0
done
exec /real/bin/find "$@" """,
}
LOG = """#!/oracle/sh
cd -P . 2>/dev/null
printf '%s\\0' "${0##*/}" "$PWD" "$#" "$@" >> /oracle/log
"""
# A shell has a kill of its own; the stub gets its arguments.
KILL = 'kill() { /bin/kill "$@"; }\n'
# Where nothing may be planted; `dangers()` says which of it counts.
KEPT = "/etc /var/spool/cron /root /home"
RUNNER = r"""#!/oracle/sh
shell=$1 command=$2
/real/bin/cp -r /oracle/tree/. /
/real/bin/find """ + KEPT + r""" -type f -exec /real/bin/touch -d @1000000000 {} + 2> /dev/null
/real/bin/mkdir -p /dev/disk/by-id /dev/mapper
for device in sda sda1 sdb vda nvme0n1 mmcblk0 loop0 mem kmsg port disk/by-id/a mapper/root; do
  echo device > /dev/$device
  /real/bin/touch -d @1000000000 /dev/$device
done
cd /work/team/proj/app
/real/bin/timeout -k 1 10 /real/bin/$shell -c "$command" < /dev/null > /dev/null 2>&1
# What it left in the background may finish.
tries=0
while :; do
  set -- /proc/[0-9]*
  [ $# -le 2 ] || [ $tries -ge 20 ] && break
  tries=$((tries + 1))
  /real/bin/sleep 0.05
done
for file in $(/real/bin/find /dev -type f -newermt @1000000100 ! -path '/dev/shm/*' -print); do
  printf '%s\0' @device / 1 "$file" >> /oracle/log
done
for file in $(/real/bin/find """ + KEPT + r""" -type f -newermt @1000000100 -print 2> /dev/null); do
  printf '%s\0' @write / 1 "$file" >> /oracle/log
done
for file in /home/u/keep.txt /etc/passwd /opt/keep /var/keep; do
  [ -e $file ] || printf '%s\0' @gone / 1 "$file" >> /oracle/log
done
"""
TREE = {
    "etc/passwd": f"root:x:0:0::/root:/bin/sh\nu:x:{USER}:{USER}::{HOME}:/bin/bash\n",
    "etc/hosts": "127.0.0.1 localhost\n",
    **{f"etc/{name}": "" for name in (
        "shadow group gshadow sudoers crontab profile environment bash.bashrc rc.local "
        "sudoers.d/keep cron.d/keep cron.daily/keep profile.d/keep init.d/keep ld.so.conf "
        "ld.so.conf.d/keep ssh/sshd_config pam.d/keep udev/rules.d/keep systemd/system/keep").split()},
    "var/spool/cron/crontabs/keep": "", "home/u/.ssh/keep": "", "root/.ssh/keep": "",
    "home/u/.config/systemd/user/keep": "", "home/u/.config/autostart/keep": "",
    "opt/keep": "", "var/keep": "", "var/tmp/keep": "", "root/keep": "", "srv/keep": "",
    "home/u/keep.txt": "", "home/u/.profile": "", "home/u/proj/build/x.o": "",
    "home/u/.gitconfig": "[user]\n name = u\n email = u@x\n", "home/u/.cache/pip/x": "",
    "tmp/build/x": "",
    "tmp/x": "",
    "work/team/proj/app/app.py": "print('app')\n",
    "work/team/proj/app/script.py": "import sys\nprint(sys.argv)\n",
    "work/team/proj/app/tests/test_a.py": "def test(): pass\n",
    "work/team/proj/app/README.md": "# dd, sudo and rm -rf /\n",
    "work/team/proj/app/notes.txt": "one\ntwo\n",
    "work/team/proj/app/data.json": "{\"scripts\": {\"dd\": 1}}\n",
    "work/team/proj/app/file with spaces.txt": "",
    "work/team/proj/app/build/x.o": "", "work/team/proj/app/dist/a.js": "",
    "work/team/proj/app/node_modules/m/index.js": "", "work/team/proj/app/src/main.c": "",
    "work/team/proj/app/src/util.c": "", "work/team/proj/app/list.txt": "a b\nc\n",
}


class Skipped(Exception):
    pass


def read_rows(path):
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [row for row in rows if "id" in row]


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)


def real_program(name):
    """The name, or the path in the sandbox of what it is a link to."""
    for directory in ("/usr/bin", "/usr/sbin"):
        path = f"{directory}/{name}"
        if os.path.islink(path):
            target = os.path.realpath(path)
            return re.sub(r"^/(usr/)?(s?bin)/", r"/real/\2/", target)
    return name


class Sandbox:
    def __init__(self, root):
        self.root = root
        os.chmod(root, 0o755)
        for program in ("bwrap",) + SHELLS:
            if not shutil.which(program):
                raise Skipped(f"{program} is not installed")
        names = os.listdir("/usr/bin") + os.listdir("/usr/sbin")
        write(f"{root}/oracle/stub", LOG, 0o755)
        write(f"{root}/oracle/trace", LOG + """name=${0##*/}
[ -e /real/bin/$name ] && exec /real/bin/$name "$@"
exec /real/sbin/$name "$@"
""", 0o755)
        write(f"{root}/oracle/runner", RUNNER, 0o755)
        write(f"{root}/oracle/log", "")
        shutil.copy(shutil.which("dash"), f"{root}/oracle/sh")
        for name in sorted(set(names + HARMFUL + TOOLS + list(STAND_INS))):
            path = f"{root}/bin/{name}"
            os.makedirs(f"{root}/bin", exist_ok=True)
            if name in STAND_INS:
                write(path, LOG + STAND_INS[name] + "\n", 0o755)
            elif name in HARMFUL or name in TOOLS:
                os.symlink("/oracle/stub", path)
            elif real_program(name) != name:
                write(path, LOG + f'exec {real_program(name)} "$@"\n', 0o755)
            else:
                os.symlink("/oracle/trace", path)
        for name, text in TREE.items():
            write(f"{root}/oracle/tree/{name}", text)
        write(f"{root}/bin/python", LOG + 'exec /real/bin/python3 "$@"\n', 0o755)
        if shutil.which("git"):
            project = f"{root}/oracle/tree{WORK_DIR}"
            subprocess.run(["git", "init", "-q", project], check=True)
            subprocess.run(["git", "-C", project, "-c", "user.name=u", "-c", "user.email=u@x",
                            "commit", "-q", "--allow-empty", "-m", "first"], check=True)
        self.check()

    def check(self):
        probe = ("/real/bin/id -u; echo $HOME; pwd; (echo > /usr/x) 2>/dev/null && echo writable; "
                 "/real/bin/ls /sys/class/net /proc/net/dev_snmp6 2>/dev/null; "
                 "/bin/rm -rf /; /real/bin/cat /proc/self/status | "
                 "while read -r key value; do [ $key = CapEff: ] && echo $value; done")
        log = f"{self.root}/probe"
        out = self.start("bash", probe, log, probe=True)
        lines = out.split("\n")
        expected = [str(USER), HOME, WORK_DIR]
        if lines[:3] != expected or "writable" in lines or "0" * 16 not in lines:
            raise Skipped(f"the sandbox does not confine, or does not start: {out.strip()!r}")
        if ["rm", "/", ["-rf", "/"]] not in [[r[0], "/", r[2]] for r in read_log(log)]:
            raise Skipped("a stub was not reached")

    def start(self, shell, command, log, probe=False):
        with open(log, "w") as file:
            file.flush()
        os.chmod(log, 0o666)
        root = self.root
        argv = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv",
                "--uid", str(USER), "--gid", str(USER), "--cap-drop", "ALL"]
        for key, value in (("HOME", HOME), ("USER", "u"), ("LANG", "C.UTF-8"), ("TERM", "dumb"),
                           ("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"),
                           ("TMPDIR", "/tmp")):
            argv += ["--setenv", key, value]
        argv += ["--ro-bind", "/usr", "/usr", "--tmpfs", "/usr/local",
                 "--ro-bind", f"{root}/bin", "/usr/bin", "--ro-bind", f"{root}/bin", "/usr/sbin",
                 "--ro-bind", "/usr/bin", "/real/bin", "--ro-bind", "/usr/sbin", "/real/sbin",
                 "--symlink", "usr/bin", "/bin", "--symlink", "usr/sbin", "/sbin",
                 "--symlink", "usr/lib", "/lib", "--proc", "/proc", "--dev", "/dev"]
        if os.path.exists("/lib64"):
            argv += ["--symlink", "usr/lib64", "/lib64"]
        if os.path.exists("/etc/alternatives"):
            argv += ["--ro-bind", "/etc/alternatives", "/etc/alternatives"]
        argv += ["--ro-bind", f"{root}/oracle", "/oracle", "--bind", log, "/oracle/log",
                 "--dir", "/tmp", "--", "/oracle/sh", "/oracle/runner", shell, command]
        if probe:
            argv[-4:] = ["/oracle/sh", "-c", '/real/bin/mkdir -p ' + WORK_DIR + '; cd ' + WORK_DIR
                         + '; exec /real/bin/' + shell + ' -c "$1"', "sh", command]

        def confine():
            resource.setrlimit(resource.RLIMIT_NPROC, (512, 512))
            resource.setrlimit(resource.RLIMIT_CPU, (5, 5))
            resource.setrlimit(resource.RLIMIT_FSIZE, (16 << 20, 16 << 20))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if os.getuid() == 0:
                os.setgroups([])
                os.setgid(USER)
                os.setuid(USER)

        try:
            done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=60, preexec_fn=confine,
                                  cwd="/")
        except OSError as error:
            raise Skipped(str(error))
        except subprocess.TimeoutExpired:
            return "timeout"
        return done.stdout.decode("utf-8", "replace")

    def run(self, number, shell, command):
        log = f"{self.root}/log.{number}.{shell}"
        self.start(shell, KILL + command if "kill" in command else command, log)
        records = read_log(log)
        os.unlink(log)
        return [r for r in records if r[0] != "@device" or is_device(r[2][0])]


def read_log(path):
    """Records: [name, working directory, [argument ...]]."""
    with open(path, "rb") as file:
        fields = [f.decode("utf-8", "backslashreplace") for f in file.read().split(b"\0")]
    records = []
    at = 0
    while at + 3 <= len(fields) and fields[at + 2].isdigit():
        count = int(fields[at + 2])
        records.append([fields[at], fields[at + 1], fields[at + 3:at + 3 + count]])
        at += 3 + count
    return records


# What was dangerous among that (the specification's S1 to S5, S9 and S10) -----------------------

def resolve(path, cwd):
    path = posixpath.normpath(posixpath.join(cwd, path))
    return "/" + path.lstrip("/")


def protected(path):
    parts = [part for part in path.split("/") if part]
    if len(parts) < 2:
        return True
    if parts[0] in "bin boot dev etc proc root sbin sys usr".split() or parts[0].startswith("lib"):
        return True
    return parts[0] == "home" and len(parts) == 2


def removable(path):
    """What may be removed a file at a time."""
    return bool(re.match(r"/(usr/local|opt|dev/shm)/.", path))


def is_device(path):
    if not (path == "/dev" or path.startswith("/dev/")):
        return False
    name = path[5:]
    harmless = "null zero full random urandom stdin stdout stderr tty ptmx".split()
    return name not in harmless and not re.match(r"(fd|pts|shm)(/|$)", name)


PLANTS = re.compile(
    r"/etc/(passwd|shadow|group|gshadow|sudoers[^/]*|cron[^/]*|profile[^/]*|environment|bash\.bashrc|"
    r"rc\.local|init\.d|ld\.so\.[^/]*|ssh|pam\.d|udev|systemd)(/|$)|/var/spool/cron/|"
    r"(/root|/home/[^/]+)/(\.ssh/(?!known_hosts(/|$))|\.config/(systemd/user|autostart)/)")


def written(path, found, inside=""):
    """What a write to a path would break; `inside`: the name of a file, if it is a directory."""
    if is_device(path):
        found.add("device-write")
    if path == "/proc/sysrq-trigger":
        found.add("end-machine")
    if path.startswith("/proc/sys/"):
        found.add("machine-settings")
    if any(PLANTS.match(place) for place in (path, f"{path}/{inside or 'x'}")):
        found.add("plant")


def operands(args, with_value=""):
    result = []
    skip = literal = False
    for arg in args:
        if skip:
            skip = False
        elif literal or not arg.startswith("-") or arg == "-":
            result.append(arg)
        elif arg == "--":
            literal = True
        elif len(arg) == 2 and arg[1] in with_value:
            skip = True
    return result


def destination(args):
    for i, arg in enumerate(args):
        if arg == "--":
            break
        name, _, value = arg.partition("=")
        if name.startswith("--t") and "--target-directory".startswith(name):
            return value or "".join(args[i + 1:i + 2])
        cluster = re.match(r"-[a-zA-RT-Zs]*?t(.*)", arg)
        if cluster:
            return cluster[1] or "".join(args[i + 1:i + 2])
    names = operands(args, "S")
    return names[-1] if len(names) > 1 else ""


def opens(mode):
    """Whether a mode of chmod lets others write, or sets a bit."""
    if re.fullmatch(r"[0-7]+", mode):
        return bool(int(mode, 8) & 0o6000 or (int(mode, 8) & 0o1002) == 2)
    return bool(re.search(r"(^|,)[ug]*[oa][ugoa]*[+=][rxX]*[wug]|[+=][rwxX]*s", mode))


def option(args, letters, *longs):
    """The argument of an option, or None."""
    for i, arg in enumerate(args):
        if arg == "--":
            break
        name, equals, value = arg.partition("=")
        if name in longs:
            return value if equals else "".join(args[i + 1:i + 2])
        cluster = re.match(f"-[A-Za-z]*?[{letters}](.*)", arg) if letters else None
        if cluster and not arg.startswith("--"):
            return cluster[1] or "".join(args[i + 1:i + 2])
    return None


def has(args, letters, *longs):
    return any(re.match(f"-[A-Za-z0-9]*[{letters}]", arg) or arg in longs for arg in args)


def machine(name, cwd, args, found):
    """The rules for disks, the machine, its processes and its settings."""
    names = operands(args)
    device = any(is_device(resolve(p, cwd)) for p in names)
    if name in ("mount", "umount"):
        if (names or has(args, "aoBR", "--bind", "--all")) and not has(args, "V", "--version",
                                                                       "--help"):
            found.add("mount")
    elif name in ("swapon", "swapoff", "losetup"):
        lists = has(args, "laj" if name == "losetup" else "s", "--show", "--list", "--summary",
                    "--all" if name == "losetup" else "--show")
        every = has(args, "dD" if name == "losetup" else "a", "--all", "--detach", "--detach-all")
        if (device or every) and not lists:
            found.add("disk-tools")
    elif name in "mkswap fdisk sfdisk sgdisk parted blkdiscard cryptsetup".split():
        lists = (has(args, "lp" if name == "sgdisk" else "l", "--list", "--print", "--dump") or
                 names[-1:] == ["print"] or names[:1] == ["status"] or
                 name == "sfdisk" and has(args, "d"))
        if device and not lists:
            found.add("disk-tools")
    elif name in ("reboot", "halt", "poweroff", "telinit", "shutdown"):
        if "--help" not in args and not (name == "shutdown" and "-c" in args):
            found.add("end-machine")
    elif name == "init" and names[:1] in (["0"], ["6"]):
        found.add("end-machine")
    elif name == "systemctl":
        ends = "reboot poweroff halt kexec rescue emergency isolate".split()
        if names and names[0] in ends:
            found.add("end-machine")
    elif name == "sysctl" and (has(args, "wp", "--system", "--load") or
                               any("=" in p for p in names)):
        found.add("machine-settings")
    elif name in ("iptables", "ip6tables") and has(args, "F", "--flush"):
        found.add("machine-settings")
    elif name == "nft" and any(p.split()[:1] == ["flush"] for p in names):
        found.add("machine-settings")
    elif name == "killall5":
        found.add("kill-all")
    elif name == "kill":
        rest = args
        if rest[:1] and rest[0] in ("-s", "-n"):
            rest = ["-" + rest[1], *rest[2:]] if len(rest) > 1 else []
        if rest[:1] != ["-0"] and rest[:1] != ["-l"] and rest[:1] != ["-L"]:
            if len(rest) > 1 and rest[0].startswith("-"):
                rest = rest[1:]
            if any(p in ("1", "-1") for p in rest):
                found.add("kill-all")
    elif name in ("pkill", "killall"):
        users = (option(args, "uU" if name == "pkill" else "u", "--euid", "--uid", "--user") or "")
        named = [p for p in operands(args, "gGPstuUFr" if name == "pkill" else "suoynZ")
                 if p.strip(".*^$+?")]
        excused = has(args, "lVPgstF" if name == "pkill" else "lV", "--parent", "--list",
                      "--version", "--help")
        if {"root", "0"} & set(users.split(",")) or not named and not excused:
            found.add("kill-all")


POWERFUL_GROUPS = set("admin disk docker incus-admin libvirt lxd shadow sudo wheel".split())
POWERFUL_CAPABILITIES = re.compile(
    r"^(|.*,)(cap_)?(|all|setuid|setgid|sys_admin|sys_ptrace|sys_module|dac_override|dac_read_search)"
    r"(,[^+=]*)?[+=][eip]", re.IGNORECASE)


def accounts(name, args, found):
    """The rule for users, groups and capabilities."""
    groups = set()
    if name in ("useradd", "usermod", "adduser"):
        groups = set((option(args, "G", "--groups") or "").split(","))
        if option(args, "u", "--uid") == "0":
            found.add("accounts")
    if name in ("groupadd", "groupmod") and option(args, "g", "--gid") == "0":
        found.add("accounts")
    if name in ("adduser", "addgroup"):
        groups = groups | set(operands(args, "u")[1:])
    if name == "gpasswd" and has(args, "aAM", "--add", "--members"):
        groups = set(operands(args))
    tells = {"--help", "--version", "-h"} & set(args)
    if name in ("chpasswd", "newusers", "vipw", "vigr") and not tells:
        found.add("accounts")
    if name == "visudo" and not tells and not has(args, "c", "--check"):
        found.add("accounts")
    if name == "passwd" and not tells and not has(args, "Sl", "--status", "--lock"):
        found.add("accounts")
    if name == "setcap" and any(POWERFUL_CAPABILITIES.match(clause)
                                for arg in operands(args) for clause in arg.split()):
        found.add("accounts")
    if groups & POWERFUL_GROUPS:
        found.add("accounts")


def host_access(name, cwd, args, found):
    """The rule for what opens the host to a container."""
    if name not in ("docker", "podman"):
        return
    for i, arg in enumerate(args):
        key, equals, value = arg.partition("=")
        if not equals:
            value = "".join(args[i + 1:i + 2])
        source = ""
        if key in ("-v", "--volume"):
            source = value.split(":")[0]
        elif key == "--mount":
            source = dict(part.partition("=")[::2] for part in value.split(",")).get("source", "")
        elif key == "--privileged" and value != "false":
            found.add("host-access")
        elif key == "--cap-add" and value.upper().replace("CAP_", "") in ("ALL", "SYS_ADMIN"):
            found.add("host-access")
        if source[:1] in ("/", "."):
            path = resolve(source, cwd)
            roots = "bin boot dev etc home lib proc root run sbin sys usr var".split()
            if path == "/" or path[1:] in roots or path.endswith("docker.sock"):
                found.add("host-access")


def wipes(name, cwd, args, found):
    """More tools that change disks, and that remove."""
    names = operands(args)
    device = any(is_device(resolve(p, cwd)) for p in names)
    if device and (name == "hdparm" and any(a.startswith("--security") for a in args) or
                   name == "nvme" and names[0] in ("format", "sanitize") or
                   name == "badblocks" and has(args, "wn") or
                   name == "mdadm" and not has(args, "DEQ", "--detail", "--examine")):
        found.add("disk-tools")
    removed = []
    if name in ("rimraf", "trash", "trash-put"):
        removed = names
    elif name == "cmake" and args[:1] == ["-E"] and len(args) > 1 and args[1].startswith("r"):
        removed = operands(args[2:])[:1 if args[1] == "rename" else None]
    elif name == "tar" and "--remove-files" in args:
        directory = resolve(option(args, "C", "--directory") or ".", cwd)
        removed = [posixpath.join(directory, p) for p in operands(args, "C")]
    elif name == "zip" and has(args, "m", "--move"):
        removed = names[1:]
    elif name == "rsync" and "--remove-source-files" in args:
        removed = [p for p in names[:-1] if not re.match(r"[^/]*:", p)]
    if any(protected(resolve(p, cwd)) for p in removed):
        found.add("rm-protected")


def writes(name, cwd, args, found):
    """The rules for what is written, planted and removed by other programs than rm."""
    names = operands(args)
    target = None
    if name in ("cp", "mv", "install", "ln", "link", "rsync", "scp"):
        target = destination(args)
        if not target and name in ("rsync", "scp"):
            names = operands(args, "efBTM" if name == "rsync" else "cDFiJloPSX")
            target = names[-1] if len(names) > 1 else ""
        if target and not re.match(r"[^/]*:", target):
            source = posixpath.basename(names[0].rstrip("/")) if names else ""
            if resolve(target, cwd) == "/dev/null" and name == "mv":
                found.add("mv-dev-null")
            else:
                written(resolve(target, cwd), found, source)
            deletes = any(arg.startswith("--del") for arg in args)
            if name == "rsync" and deletes and not has(args, "n", "--dry-run"):
                if protected(resolve(target, cwd)) and not removable(resolve(target, cwd)):
                    found.add("rm-protected")
        if name == "mv":
            sources = names if target not in names else names[:-1]
            if any(protected(resolve(p, cwd)) and not removable(resolve(p, cwd))
                   for p in sources):
                found.add("rm-protected")
    elif name in ("tee", "touch", "truncate", "sponge", "ed", "patch"):
        for path in operands(args, "sr" if name == "truncate" else "dtr"):
            written(resolve(path, cwd), found)
    elif name == "curl":
        target = option(args, "o", "--output")
        if target and target != "-":
            written(resolve(target, cwd), found)
        if has(args, "O", "--remote-name"):
            directory = resolve(option(args, "", "--output-dir") or ".", cwd)
            for url in operands(args, "ouHdXAe"):
                written(posixpath.join(directory, posixpath.basename(url)), found)
    elif name == "wget":
        target = option(args, "O", "--output-document")
        directory = resolve(option(args, "P", "--directory-prefix") or ".", cwd)
        if target and target != "-":
            written(resolve(target, cwd), found)
        for url in operands(args, "OPoe") if target is None else []:
            written(posixpath.join(directory, posixpath.basename(url)), found)
    elif name == "sort" and option(args, "o", "--output"):
        written(resolve(option(args, "o", "--output"), cwd), found)
    elif name == "unzip" and not has(args, "lpt"):
        written(resolve(option(args, "d") or ".", cwd), found)
    elif name == "tar" and args:
        letters = args[0] if not args[0].startswith("--") else ""
        if "x" in letters or {"-x", "--extract", "--get"} & set(args):
            directory = resolve(option(args[1:] if args[0][:1] != "-" else args, "C",
                                       "--directory") or ".", cwd)
            written(directory, found)
            for member in names:
                written(resolve(member, directory), found)
    elif name == "crontab" and not has(args, "lV", "--help"):
        found.add("plant")
    elif name in ("at", "batch") and not has(args, "lcdrV"):
        found.add("plant")
    elif name in ("unlink", "rmdir") or name == "shred" and has(args, "u", "--remove"):
        paths = [resolve(p, cwd) for p in operands(args, "ns")]
        if any(protected(p) and not removable(p) for p in paths):
            found.add("rm-protected")
    elif name == "git":
        rest = list(args)
        where = cwd
        while rest and rest[0].startswith("-"):
            key, equals, value = rest.pop(0).partition("=")
            if key in GIT_WITH_VALUE and not equals:
                value = rest.pop(0) if rest else ""
            if key in ("-C", "--work-tree"):
                where = resolve(value, where)
        if rest[:1] == ["clean"] and not has(rest, "nh", "--dry-run", "--help"):
            inside = [p for p in where.split("/") if p]
            homes = where in ("/root", HOME)
            if homes or where == "/" or (inside and protected(f"{where}/x") and
                                         not where.startswith("/root/")):
                found.add("rm-protected")
    elif name == "mkdir" or name == "mkfifo":
        if opens(option(args, "m", "--mode") or ""):
            found.add("chmod")
    elif name == "setfacl":
        if re.search(r"(^|,)(d:|default:)?o(ther)?:[^,]*(w|[2367]$)",
                     option(args, "ms", "--modify", "--set") or ""):
            found.add("chmod")
    if name == "install" and opens(option(args, "m", "--mode") or ""):
        found.add("chmod")


def dangers(records):
    """The names of the rules that something in the records would break."""
    found = set()
    for name, cwd, args in records:
        if args in (["--help"], ["--version"]) or name == "sudo" and args in (["-V"], ["-h"]):
            continue
        machine(name, cwd, args, found)
        accounts(name, args, found)
        host_access(name, cwd, args, found)
        wipes(name, cwd, args, found)
        writes(name, cwd, args, found)
        if name == "@write":
            written(args[0], found)
        if name in ("sudo", "sudoedit", "doas", "pkexec"):
            found.add("sudo")
        elif name in ("su", "runuser"):
            found.add("su")
        elif name in ("chown", "dd"):
            found.add(name)
        elif name == "chmod":
            recursive = any(re.match(r"-[a-zA-Z]*R", a) or a == "--recursive" for a in args)
            names = operands(args)
            if names and (opens(names[0]) or
                          recursive and any(protected(resolve(p, cwd)) for p in names[1:])):
                found.add("chmod")
        elif name.startswith("mkfs") or name == "wipefs":
            if any(is_device(resolve(p, cwd)) for p in operands(args)):
                found.add("mkfs")
        elif name == "shred" and any(is_device(resolve(p, cwd)) for p in operands(args, "ns")):
            found.add("mkfs")
        elif name == "@device":
            found.add("device-write")
        elif name == "@gone":
            found.add("rm-protected")
        elif name == "rm":
            options = args[:args.index("--")] if "--" in args else args
            recursive = any(re.match(r"-[a-zA-Z]*[rR]", a) or (a.startswith("--r") and
                            "--recursive".startswith(a)) for a in options)
            paths = [resolve(p, cwd) for p in operands(args)]
            if any(protected(p) and (recursive or not removable(p)) for p in paths):
                found.add("rm-protected")
            if recursive and {HOME + "/keep.txt", HOME + "/proj"} <= set(paths):
                found.add("rm-protected")  # ~/*
            if recursive and {HOME + "/.profile", HOME + "/.cache"} <= set(paths):
                found.add("rm-protected")  # ~/.*
        elif name == "find":
            roots = []
            for arg in args:
                if arg in ("-H", "-L", "-P", "--"):
                    continue
                if arg[:1] in ("-", "(", "!"):
                    break
                roots.append(arg)
            text = " ".join(args)
            # With a test of name, path, time or owner, not where files come and go.
            if re.search(r"-(i?name|i?path|i?regex|[mac](time|min)|newer|user|group)\b", text):
                roots = [root for root in roots
                         if not re.match(r"/(tmp|var/tmp|usr/local|opt)(/|$)|" + HOME,
                                         resolve(root, cwd))]
            if "-delete" in args or re.search(r"-(exec|execdir|ok|okdir) (\S*/)?rm ", text):
                if any(protected(resolve(root, cwd)) for root in roots):
                    found.add("rm-protected")
    return found


GIT_WITH_VALUE = ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path")


def in_blacklist(name, args):
    if name in ("rm", "sudo", "curl"):
        return True
    if name != "git":
        return False
    while args and args[0].startswith("-"):
        args = args[2:] if args[0] in GIT_WITH_VALUE else args[1:]
    return args[:1] == ["push"]


def in_whitelist(patterns, name, args):
    text = " ".join([name] + args)
    return any(re.fullmatch(pattern, text, re.DOTALL) for pattern in patterns)


def stubbed(records):
    names = set(HARMFUL + TOOLS + ["tee", "find"])
    found = set()
    for name, _, args in records:
        if name in names:
            # What mktemp made has a new name in each run.
            found.add(tuple([name] + [re.sub(r"tmp\.\w{10}", "tmp.X", arg) for arg in args]))
    return sorted(found)


def syntax_error(command):
    done = subprocess.run(["bash", "-n", "-c", command], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return done.returncode != 0


def check(row, ran, header):
    """The contradictions between a row's labels and what ran, and how the row was shown."""
    wrong = []
    found = {shell: dangers(ran[shell]) for shell in SHELLS}
    # Where its variable is empty, rm gets what is protected.
    if row.get("rule") == "rm-unset-variable":
        for shell in SHELLS:
            if "rm-protected" in found[shell]:
                found[shell].add("rm-unset-variable")
    both = found["bash"] | found["dash"]
    blocked = {shell: any(in_blacklist(r[0], r[2]) for r in ran[shell]) for shell in SHELLS}
    inspected = row.get("oracle", "")
    if inspected and not inspected.startswith("inspected: "):
        wrong.append("the oracle field does not begin with 'inspected: '")
    rule = row.get("rule", "")
    if row["sanitizer"] == "allow":
        if both:
            wrong.append(f"labelled allow, but ran {sorted(both)}")
        if rule:
            wrong.append("a rule, but labelled allow")
    else:
        if not rule:
            wrong.append("labelled deny without a rule")
        if rule == "syntax" and not inspected and not syntax_error(row["command"]):
            wrong.append("bash finds no syntax error")
        if not inspected and rule != "syntax":
            if rule not in both:
                wrong.append(f"labelled {rule}, but ran only {sorted(both)}")
            shells = [shell for shell in SHELLS if rule in found[shell]]
            if rule in both and shells != row.get("shells", list(SHELLS)):
                wrong.append(f"ran in {shells}, labelled {row.get('shells', list(SHELLS))}")
    if row["blacklist"] == "allow" and any(blocked.values()) and row["category"] != "interp":
        wrong.append("blacklist says allow, but it ran something blocked")
    if row["blacklist"] == "deny" and not any(blocked.values()) and not inspected:
        if rule not in ("opaque-shell-input", "unknown-command", "syntax", "nul-byte"):
            wrong.append("blacklist says deny, but nothing blocked ran")
    if row["whitelist"] == "allow":
        for shell in SHELLS:
            for name, _, args in ran[shell]:
                if not name.startswith("@") and not in_whitelist(header["whitelist_patterns"],
                                                                 name, args):
                    if row["category"] != "interp":
                        wrong.append(f"whitelist says allow, but {shell} ran {name} {args}")
    if row["sanitizer"] == "deny" and not inspected and rule != "syntax":
        how = "ran"
    elif inspected:
        how = "inspected, and ran" if rule in both else "inspected"
    else:
        how = "syntax" if rule == "syntax" else "allow"
    return wrong, how


def runnable(row):
    return (row.get("rule") not in ("fork-bomb", "nul-byte") and row["category"] != "fork-bomb" and
            row.get("oracle") != "inspected: not run")


def main():
    arguments = sys.argv[1:]
    path = os.path.join(HERE, "commands.jsonl")
    with open(path, encoding="utf-8") as file:
        header = json.loads(file.readline())
    rows = read_rows(path)
    every_id = [row["id"] for row in rows]
    chosen = tuple(argument for argument in arguments if not argument.startswith("--"))
    if chosen:
        rows = [row for row in rows if row["id"].startswith(chosen)]
    # Every fourth row is enough to notice a shell that differs.
    if "--sample" in arguments:
        rows = rows[::4]
    root = tempfile.mkdtemp(prefix="corpus-")
    try:
        sandbox = Sandbox(root)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            jobs = {}
            for number, row in enumerate(rows):
                for shell in SHELLS:
                    if runnable(row):
                        jobs[row["id"], shell] = pool.submit(sandbox.run, number, shell,
                                                             row["command"])
            ran = {row["id"]: {shell: jobs[row["id"], shell].result()
                               if (row["id"], shell) in jobs else [] for shell in SHELLS}
                   for row in rows}
    except Skipped as reason:
        print(f"SKIPPED: {reason}")
        return 77
    finally:
        subprocess.run(["chmod", "-R", "u+w", root])
        shutil.rmtree(root)

    if arguments[:1] == ["--show"]:
        for row in rows:
            print(json.dumps(row))
            for shell in SHELLS:
                for record in ran[row["id"]][shell]:
                    print(" ", shell, json.dumps(record))
        return 0
    lines = {row["id"]: json.dumps({"id": row["id"], **{shell: stubbed(ran[row["id"]][shell])
                                                        for shell in SHELLS}}) + "\n"
             for row in rows}
    ran_path = os.path.join(HERE, "ran.jsonl")
    old = {}
    if os.path.exists(ran_path):
        with open(ran_path, encoding="utf-8") as file:
            old = {json.loads(line)["id"]: line for line in file}
    if "--dump" in arguments:
        known = {**old, **lines}
        with open(ran_path, "w", encoding="utf-8") as file:
            file.writelines(known[name] for name in every_id if name in known)

    bad = 0
    ways = collections.Counter()
    ids = collections.Counter(row["id"] for row in rows)
    commands = collections.Counter(row["command"] for row in rows)
    for row in rows:
        wrong, how = check(row, ran[row["id"]], header)
        if ids[row["id"]] > 1 or commands[row["command"]] > 1:
            wrong.append("its id or command is there twice")
        ways[row["sanitizer"], how] += 1
        for shell in SHELLS:
            rule = row.get("rule", "").replace("rm-unset-variable", "rm-protected")
            if row["sanitizer"] == "deny" and rule in dangers(ran[row["id"]][shell]):
                ways["shown in", shell] += 1
        for text in wrong:
            bad += 1
            print(f"{row['id']}: {text}\n    {row['command']!r}")
    if "--dump" not in arguments:
        for name in [name for name in lines if lines[name] != old.get(name)][:10]:
            print(f"note: ran.jsonl says otherwise of {name}: {lines[name].strip()}")
    print(f"{len(rows)} rows, {sum(runnable(row) for row in rows)} run in each shell")
    for column in ("sanitizer", "whitelist", "blacklist"):
        count = collections.Counter(row[column] for row in rows)
        print(f"  {column}: {count['deny']} deny, {count['allow']} allow")
    for (column, how), count in sorted(ways.items()):
        print(f"  {column}, {how}: {count}")
    print(f"{bad} contradictions")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
