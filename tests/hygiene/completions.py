"""Completes words of a command line of codeexec-mcp in a real shell:
    python3 tests/hygiene/completions.py bash|zsh|fish FOLDER-OF-THE-COMPLETIONS"""

import os
import pathlib
import pty
import select
import subprocess
import sys
import tempfile
import time

PATIENCE = 60  # seconds; only a hang comes near

# What stands on the line, and what its last word becomes, alone.
LINES = [
    ("--delete-g", "--delete-guard"),
    ("--allowed-paths /usr --sandbox-r", "--sandbox-report"),
    ("--sandbox stri", "strict"),
    ("--timeout 5 --network loop", "loopback"),
    ("--disable-rule fork", "fork-bomb"),
    ("--client-config claude-c", "claude-code"),
    ("--workspace fold", "folder/"),
    ("--allowed-paths /usr fold", "folder/"),
    ("--config fil", "file.json"),
]


def run(words, folder):
    done = subprocess.run(words, cwd=folder, check=True, stdin=subprocess.DEVNULL, timeout=PATIENCE,
                          stdout=subprocess.PIPE, encoding="utf-8")
    return done.stdout.splitlines()


def bash(line, folder, completions):
    script = (
        'source "$0/codeexec-mcp.bash" && read -ra COMP_WORDS <<< "codeexec-mcp $1" &&'
        " COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) && _codeexec_mcp && printf '%s\\n'"
        ' "${COMPREPLY[@]}"'
    )
    words = run(["bash", "--norc", "-c", script, str(completions), line], folder)
    # `compopt -o filenames` makes bash add the slash, on a command line alone.
    return [word + "/" if (folder / word).is_dir() else word for word in words]


def fish(line, folder, completions):
    script = "source $argv[1]/codeexec-mcp.fish; complete -C \"codeexec-mcp $argv[2]\""
    words = run(["fish", "--no-config", "-c", script, str(completions), line], folder)
    return [word.split("\t")[0] for word in words]


class Zsh:
    """zsh completes on a terminal only."""

    def __init__(self, folder, completions):
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            os.chdir(folder)
            environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "TERM": "dumb"}
            os.execvpe("zsh", ["zsh", "-f", "-i"], environment)
        # The quotes keep what is typed from looking like what is printed.
        self.type(f"fpath=({completions} $fpath); autoload -U compinit; compinit -u -D;"
                  " PS1=; echo rea''dy\n")
        self.wait_for("ready")

    def type(self, text):
        os.write(self.terminal, text.encode())

    def wait_for(self, text):
        seen, end = "", time.monotonic() + PATIENCE
        while text not in seen:
            if not select.select([self.terminal], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError(f"zsh does not print {text!r}, but {seen!r}")
            seen += os.read(self.terminal, 4096).decode("utf-8", "replace")

    def complete(self, line, expected):
        self.type(f"codeexec-mcp {line}\t")
        self.wait_for(expected)
        self.type("\x15")  # the line is taken back

    def close(self):
        os.close(self.terminal)
        os.waitpid(self.child, 0)


def main(shell, completions):
    failures = 0
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        (folder / "folder").mkdir()
        (folder / "file.json").touch()
        zsh = Zsh(folder, completions) if shell == "zsh" else None
        for line, expected in LINES:
            try:
                if zsh:
                    zsh.complete(line, expected)
                    continue
                found = {"bash": bash, "fish": fish}[shell](line, folder, completions)
            except (TimeoutError, subprocess.SubprocessError) as problem:
                found = problem
            if found != [expected]:
                failures += 1
                print(f"FAILED: {shell}: {line!r} becomes {found}, not {expected!r}")
        if zsh:
            zsh.close()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2]).resolve()))
