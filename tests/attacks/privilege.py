"""V: privilege."""

import os
import shutil
import struct

from cases import NOT_ROOT, attack
from judges import reached, received, shown, succeeded


def set_user_id(case):
    path = case.path("ro/root-attack")
    shutil.copy(case.suite.attack_program, path)
    os.chown(path, 0, 0)
    os.chmod(path, 0o4755)


def give_capabilities(case):
    path = case.path("ro/capable-attack")
    shutil.copy(case.suite.attack_program, path)
    os.chmod(path, 0o755)
    # Version 2, effective; CAP_DAC_OVERRIDE, CAP_NET_RAW.
    bits = 1 << 1 | 1 << 13
    os.setxattr(path, "security.capability", struct.pack("<5I", 0x02000001, bits, 0, 0, 0))


CAPABLE = shown(r"^Cap(Eff|Prm|Amb):\s*0*[1-9a-f]")
ROOT_MADE = "only root can make such a file"
if os.getuid() == 0:
    attack("V01", "a program of root with the set-user-ID bit", shown(r"^euid 0$"),
           '"$RO/root-attack" identity', setup=set_user_id, only="user")
    attack("V02", "a program with capabilities", CAPABLE, '"$RO/capable-attack" identity',
           setup=give_capabilities)
attack("V03", "capabilities", CAPABLE, '"$A" identity', no_control_user=NOT_ROOT)
attack("V04", "raise capabilities", succeeded, '"$A" raise-capabilities', no_control_user=NOT_ROOT)
attack("V05", "gain privileges by programs at all", shown(r"^NoNewPrivs:\s*0$"), '"$A" identity')
if shutil.which("sudo"):
    attack("V06", "sudo", shown("^0$"), "sudo -n id -u", no_control="it depends on the machine")


def probes(name, call, ordinary=False, **options):
    if not ordinary:
        options.setdefault("no_control_user", NOT_ROOT)
    # Of numbers that a user namespace lacks the kernel says EINVAL before it asks for permission.
    judge = succeeded if call in ("setuid", "setgid", "setgroups", "chown") else reached
    attack(name, call.replace("-", " "), judge, f'"$A" probe {call}', **options)


PROBES = """
unshare-user* unshare-user-high* unshare-mount unshare-net unshare-pid unshare-ipc unshare-uts
unshare-cgroup unshare-time clone-user* clone-user-net* clone-pid clone3-user* clone3-net chroot
pivot_root mount umount2 fsopen open_tree move_mount mount_setattr swapon swapoff reboot kexec_load
init_module finit_module delete_module settimeofday* clock_settime* sethostname setdomainname syslog
acct quotactl* quotactl_fd* add_key* request_key* keyctl* io_uring_setup* bpf userfaultfd*
fanotify_init* process_mrelease* setuid setgid setgroups chown nice realtime securebits
""".split()
if os.uname().machine == "x86_64":
    PROBES += ["ioperm", "iopl", "modify_ldt*"]
for number, call in enumerate(PROBES, 10):
    probes(f"V{number:02}", call.rstrip("*"), call.endswith("*"))

attack("V70", "push characters into a terminal (TIOCSTI)", reached, '"$A" push 0x5412',
       options=["--terminals"])
attack("V71", "TIOCSTI with bits that the kernel drops", reached, '"$A" push 0x700005412',
       options=["--terminals"])
attack("V72", "TIOCLINUX", reached, '"$A" push 0x541c',
       options=["--terminals"])
attack("V73", "a second filter that allows everything", reached,
       '"$A" filter-again keyctl')
attack("V74", "system calls of i386", received, '"$A" i386 "$TCP"; exit 0')
attack("V75", "system calls of x32", succeeded, '"$A" x32',
       no_control="most kernels do not have them")
attack("V76", "enter the network of another process", succeeded, '"$A" enter "$VICTIM" net',
       no_control_user=NOT_ROOT)
attack("V77", "enter a namespace by a pidfd", succeeded, '"$A" enter-pidfd "$VICTIM"',
       no_control_user=NOT_ROOT)
attack("V78", "enter the files of the server", succeeded,
       'for p in $("$A" ancestors "$RUNNER"); do "$A" enter $p mnt; done',
       no_control_user=NOT_ROOT)
attack("V79", "unshare(1) a user namespace", shown("^inside 0$"),
       'unshare -r sh -c "echo inside \\$(id -u)"')
attack("V80", "bubblewrap", shown("^inside$"), "bwrap --bind / / echo inside",
       no_control="it may not be installed")
attack("V81", "mount in a namespace of one's own", shown("^mounted$"),
       "unshare -rm sh -c 'mount -t tmpfs none . && echo mounted'")

for number, more, network in ((82, ["--pid-namespace"], "none"), (86, [], "loopback")):
    how = " ".join(more) or "--network loopback"
    attack(f"V{number}", f"capabilities, with {how}", CAPABLE, '"$A" identity',
           options=more, network=network, no_control="as V03")
    attack(f"V{number + 1}", f"raise capabilities, with {how}", succeeded,
           '"$A" raise-capabilities', options=more, network=network, no_control="as V04")
    attack(f"V{number + 2}", f"mounts and namespaces, with {how}", reached,
           'for p in mount umount2 fsopen unshare-user unshare-mount chroot sethostname; do'
           ' "$A" probe $p; done', options=more, network=network, no_control="as above")
    attack(f"V{number + 3}", f"another user, with {how}", succeeded,
           'for p in setuid setgid setgroups chown; do "$A" probe $p; done',
           options=more, network=network, no_control="as above")
