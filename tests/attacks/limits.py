"""D: limits."""

import os
import time

from cases import attack
from judges import outside_changed, shown, succeeded
from processes import server_lost
from reads import reads

MANY = 250


def limited(name, title, judge, script, options, **more):
    attack(name, title, judge, script, options=options, may_refuse=True, **more)


limited("D01", "many processes", shown(f"^processes {MANY}$"), f'"$A" processes {MANY}',
        ["--limit-processes", "150"])
limited("D02", "much memory", shown("^filled$"), '"$A" memory 200',
        ["--limit-memory", str(100 << 20)])
limited("D25", "the memory of many processes", shown("^filled 8$"), '"$A" memory-of-many 8 30',
        ["--limit-memory", str(100 << 20)])
limited("D26", "the memory of shared files", shown("^filled$"), '"$A" memory-file 200',
        ["--limit-memory", str(100 << 20)])
attack("D27", "a big file at once", lambda case, run: grown(case, 40 << 20),
       'fallocate -l 48M big || head -c 48M /dev/zero > big',
       options=["--limit-disk", str(8 << 20)])
attack("D28", "a full disk sooner than anybody looks",
       lambda case, run: None if "disk" in (run.result or {}).get("limits_reached", [])
       or run.result is None else "it is not told",
       'for i in 1 2 3; do head -c 7000000 /dev/zero > f$i; done',
       options=["--limit-disk", str(8 << 20)])
limited("D03", "a big file", shown("^written$"), '"$A" big-file 8',
        ["--limit-file-size", str(4 << 20)])
limited("D04", "many descriptors", shown("^descriptors 100$"), '"$A" descriptors 100',
        ["--limit-open-files", "50"])
limited("D05", "much processor time", shown("^spun$"), '"$A" spin 1300', ["--limit-cpu", "1"])
limited("D06", "much address space", succeeded, '"$A" reserve 4096',
        ["--limit-address-space", str(1 << 30)])
limited("D07", "a full disk", shown("^written$"), '"$A" many-files 48 1500',
        ["--limit-disk", str(8 << 20)], no_control="it would take as long")
limited("D08", "raise the limit of descriptors", succeeded, '"$A" raise-limit 7',
        ["--limit-open-files", "50"], no_control="it depends on the machine")
attack("D09", "a core dump", shown(r"^limit [^0]"), '"$A" raise-limit 4',
       no_control="no command may dump, with or without a sandbox")
attack("D10", "endless output", lambda case, run: big_output(case, run),
       "head -c 30000000 /dev/zero", no_control="what is kept is bounded without a sandbox, too")
attack("D11", "a command that does not end", lambda case, run: not_ended(case, run),
       "trap '' TERM HUP INT; while :; do sleep 1; done", timeout=1,
       no_control="a timeout ends it without a sandbox, too")


def grown(case, size):
    big = case.path("ws/big")
    there = os.path.exists(big) and os.stat(big).st_blocks * 512
    return f"it has {there} bytes" if there > size else None


def big_output(case, run):
    return "too much was kept" if len(run.raw) > 8 << 20 or run.result is None else None


def not_ended(case, run):
    ended = run.result is not None and run.result.get("timed_out")
    return None if ended else f"it was not ended: {run.told()}"


def left_behind(case, run):
    left = os.listdir(case.path("tmp"))
    if server_lost(case, run):
        return server_lost(case, run)
    return f"left in the server's TMPDIR: {left}" if left else None


OWN = "without a sandbox there is no private home"
attack("D12", "a private home that is hard to remove: deep and closed", left_behind,
       '"$A" deep-tree "$HOME"; echo', no_control=OWN)
attack("D13", "a private home with closed directories and odd names", left_behind,
       'cd "$HOME"; mkdir -p a/b c; touch a/b/f "x y" -- -rf; ln -s / root; ln -s loop loop;'
       ' mkfifo fifo; chmod 0 a/b a c', no_control=OWN)
attack("D14", "a private home that leads outside when it is removed", outside_changed,
       'cd "$HOME"; ln -s "$OUT" link; mkdir d; ln -s "$OUT/dir" d/link; ln -s "$REAL_HOME" h',
       no_control=OWN)
attack("D15", "a private home that is exchanged for a link", outside_changed,
       'cd /; rm -rf "$HOME"; ln -s "$OUT" "$HOME"; mv "$TMPDIR" "$TMPDIR.2";'
       ' ln -s "$OUT" "$TMPDIR"; ls -la "$HOME"; exit 0', no_control=OWN,
       options=["--private-home", "command"])
attack("D16", "a private home that is exchanged for a link, kept for the server",
       outside_changed,
       'cd /; rm -rf "$HOME"; ln -s "$OUT" "$HOME"; mv "$TMPDIR" "$TMPDIR.2";'
       ' ln -s "$OUT" "$TMPDIR"; exit 0', no_control=OWN, options=["--private-home", "executor"])
attack("D17", "a private home that is made wide open", left_behind,
       'chmod 0 "$HOME"; chmod 0 "$TMPDIR"; exit 0', no_control=OWN,
       options=["--private-home", "command"])

HANG = "nothing looks at these files without a sandbox"


def slow(case, run):
    if server_lost(case, run):
        return server_lost(case, run)
    own = case.took - run.result["execution_time"]  # of the server, besides the command
    return f"it took the server {own:.1f} s" if own > 4 else None


def timed(case):
    start = time.monotonic()
    run = case.finish(case.start(), b"")
    case.took = time.monotonic() - start
    return run


attack("D18", "a fifo where the server looks for changes", slow,
       "mkdir -p .git/hooks .vscode; mkfifo .git/hooks/pre-commit .envrc .git/config"
       " .vscode/tasks.json", run=timed, no_control=HANG)
attack("D19", "a fifo there before the command", slow, "echo", run=timed, no_control=HANG,
       setup=lambda case: (case.directory("ws/.git"), case.directory("ws/.git/hooks"),
                           os.mkfifo(case.path("ws/.envrc")),
                           os.mkfifo(case.path("ws/.git/hooks/x"))))
attack("D20", "/dev/zero where the server looks for changes", slow,
       "mkdir -p .git/hooks; ln -s /dev/zero .envrc; ln -s /dev/zero .git/hooks/x", run=timed,
       no_control=HANG)
attack("D21", "a huge sparse file where the server looks for changes", slow,
       "mkdir -p .git/hooks; truncate -s 1T .git/hooks/x; truncate -s 100G .envrc", run=timed,
       no_control=HANG)
attack("D22", "links in circles where the server looks for changes", slow,
       "ln -s .git .git; ln -s . .vscode; mkdir x; ln -s ../x x/x", run=timed, no_control=HANG)
attack("D23", "very many hooks", slow,
       "mkdir -p .git/hooks; cd .git/hooks; seq 5000 | xargs touch", run=timed, no_control=HANG)
reads("D24", "the secret by what is reported of changes",
      'mkdir -p .git; ln -s "$OUT" .git/hooks; ln -s "$OUT/secret" .envrc', no_control=HANG)
