"""M: known gaps, which succeed today, and what closes them."""

import os
import stat

from cases import NOT_ROOT, attack
from judges import shown, succeeded, survived, victim_limited
from network import sends
from reads import reads
from servers import kill_supervisor
from setups import terminal

attack("M01", "chmod outside", lambda case, run: metadata_changed(case),
       'chmod 600 "$OUT/canary"')
attack("M02", "times of a file outside", lambda case, run: metadata_changed(case),
       'touch -d 2001-01-01 "$OUT/canary"')
attack("M03", "attributes of a file outside", lambda case, run: metadata_changed(case),
       '"$A" set-attribute "$OUT/canary"')
attack("M04", "metadata outside by the root of another process, with --protected-paths",
       lambda case, run: metadata_changed(case),
       'chmod 600 "/proc/$VICTIM/root$OUT/canary"; touch -d 2001-01-01 "/proc/$VICTIM/cwd/canary"',
       options=["--protected-paths", "x"])
attack("M05", "stat outside", shown(r"^7 canary"), 'stat -c "%s canary" "$OUT/canary"',
       gap="Landlock does not hide that files exist; Docker")
attack("M06", "go to a directory outside", shown("^gone$"), 'cd "$OUT" && echo gone',
       gap="it reads nothing; Docker")
attack("M07", "watch a directory outside", succeeded, '"$A" watch "$OUT"',
       gap="Landlock has no right for it; Docker")
reads("M08", "where links lead outside", 'readlink "$OUT/dir/link"',
      setup=lambda case: os.symlink(case.token, case.path("out/dir/link")),
      gap="Landlock has no right for it; Docker")
attack("M09", "arguments of another process", shown("^cat$"),
       'tr "\\0" "\\n" < "/proc/$VICTIM/cmdline"',
       gap="no secrets in arguments; --pid-namespace", closed_by=["--pid-namespace"])
attack("M11", "priority of another process", victim_limited, '"$A" set-priority "$VICTIM"',
       gap="any process of the same user may do it; --pid-namespace", gap_only="user",
       closed_by=["--pid-namespace"])
if len(os.sched_getaffinity(0)) > 1:
    attack("M12", "processors of another process", victim_limited, '"$A" set-affinity "$VICTIM"',
           gap="any process of the same user may do it; --pid-namespace", gap_only="user",
           closed_by=["--pid-namespace"])
attack("M13", "read limits of another process", succeeded, '"$A" get-limit "$VICTIM"',
       gap="they say little; --pid-namespace", closed_by=["--pid-namespace"])

attack("M26", "the user's inotify instances, of which there are 128", shown("^watchers 20$"),
       '"$A" watchers 20', gap="the kernel counts them for the user; another user, or Docker")
attack("M27", "what root owns in /proc about the kernel", shown("^slabinfo "),
       "head -n 1 /proc/slabinfo", no_control_user=NOT_ROOT, gap_only="root",
       gap="Landlock grants all of /proc or nothing; --pid-namespace",
       closed_by=["--pid-namespace"])
reads("M25", "keys typed in the user's terminal, with --terminals",
      '( timeout 5 head -n 1 < "$TERMINAL" ); :', setup=terminal, options=["--terminals"],
      gap="a pseudo-terminal is opened by a path beside the user's; leave --terminals off")

sends("M17", "docker.sock, with the host's network", '"$A" unix-stream "$SOCKET"',
      network="host", gap="Landlock has no right for it before ABI 9; --network none")
sends("M18", "docker.sock, with --unix-sockets", '"$A" unix-stream "$SOCKET"',
      options=["--unix-sockets"], gap="it is what the option asks for; leave it out")
attack("M19", "a secret in another notation",
       lambda case, run: leaked_encoded(case, run), 'printf %s "$ATTACK_SECRET" | base64 -w 0',
       options=["--secret-env", "ATTACK_SECRET"], control_options=["--keep-env", "ATTACK_SECRET"],
       gap="only the value itself is masked; do not give secrets to commands")
attack("M20", "a program with the set-user-ID bit in the workspace",
       lambda case, run: "made" if os.path.exists(case.path("ws/tool")) and
       os.stat(case.path("ws/tool")).st_mode & stat.S_ISUID else None,
       'cp "$A" tool; chmod u+s tool',
       gap="the workspace is the command's; do not run the server as root")
attack("M21", "many files", shown("^1000$"), "seq 1000 | xargs touch; ls | grep -c '^[0-9]'",
       gap="--limit-disk counts bytes; a file system of its own")
attack("M22", "the supervisor is killed from outside: daemons live on",
       lambda case, run: survived(case, run, 1.0), '"$A" bare-daemon "$HOLD"; sleep 100',
       run=kill_supervisor, no_control="without a sandbox there is none",
       gap="no process inside can do it; --pid-namespace", closed_by=["--pid-namespace"])
attack("M23", "the host's connections are listed", shown(r"local_address"),
       "cat /proc/net/tcp", gap="it shows addresses; --network loopback")


def metadata_changed(case):
    status = os.stat(case.path("out/canary"))
    attributes = os.listxattr(case.path("out/canary"))
    if status.st_mode & 0o777 != 0o644 or status.st_mtime < 1e9 or "user.attack" in attributes:
        return "mode, times or attributes changed"
    return None


def leaked_encoded(case, run):
    import base64
    return "it is there in base64" if base64.b64encode(case.token.encode()).decode() in run.out \
        else None
