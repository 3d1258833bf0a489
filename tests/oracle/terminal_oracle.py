#!/usr/bin/env python3
"""Compares the screens of TerminalEmulator with those of tmux, which has an emulator of its own.

terminal_oracle.py --program codeexec-terminal [--count N] [--seed N] [FILE...]

On random streams, and on files of recorded output for 24 rows and 80 columns. Exit status 77 when
there is no tmux. No random stream has what the two do differently on purpose, where xterm is
followed here: what comes after a character in the last column, and the halves of wide characters.
"""
import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

# Prints the files that it is told of on its terminal, which is tmux's. It says that one is on the
# screen when the terminal has answered a question that comes after it.
PRINTER = """
import os, sys, tty
tty.setraw(0)
orders, told = open(sys.argv[1], "rb"), open(sys.argv[2], "wb", buffering=0)
for line in orders:
    os.write(1, b"\\x18\\x1bc\\x1b[?1049l\\x1b[?6l\\x1b[r\\x1b[2J\\x1b[H")
    os.write(1, b"\\x1b[4l\\x1b[?7h\\x1b(B\\x0f")
    with open(line.strip(), "rb") as file:
        rest = file.read()
    while rest:
        rest = rest[os.write(1, rest):]
    os.write(1, b"\\x18\\x1b[5n")
    answer = b""
    while not answer.endswith(b"\\x1b[0n"):
        answer += os.read(0, 100)
    told.write(b"\\n")
"""


class Tmux:
    """A server of its own with one window of a size."""

    def __init__(self, folder, rows, cols):
        self.folder = folder
        self.socket = os.path.join(folder, "socket")
        self.fifos = [os.path.join(folder, name) for name in ("orders", "told")]
        for fifo in self.fifos:
            os.mkfifo(fifo)
        with open(os.path.join(folder, "printer.py"), "w") as file:
            file.write(PRINTER)
        self.call("-f", "/dev/null", "new-session", "-d", "-x", str(cols), "-y", str(rows + 1),
                  "-e", "LC_ALL=C.UTF-8", sys.executable, file.name, *self.fifos)
        self.call("set", "-g", "status", "off")
        self.call("resize-window", "-x", str(cols), "-y", str(rows))
        self.orders = open(self.fifos[0], "wb", buffering=0)
        self.told = open(self.fifos[1], "rb", buffering=0)

    def call(self, *words):
        environment = {**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}
        return subprocess.run(["tmux", "-u", "-S", self.socket, *words], env=environment,
                              check=True, stdout=subprocess.PIPE).stdout.decode()

    def screen(self, stream):
        path = os.path.join(self.folder, "stream")
        with open(path, "wb") as file:
            file.write(stream)
        self.orders.write(path.encode() + b"\n")
        self.told.read(1)
        answer = self.call("display-message", "-p", "#{cursor_y} #{cursor_x}", ";",
                           "capture-pane", "-p")
        cursor, _, text = answer.partition("\n")
        row, col = map(int, cursor.split())
        lines = [line.rstrip(" ") for line in text.split("\n")]
        return "\n".join(lines).rstrip("\n"), row + 1, col + 1

    def end(self):
        self.call("kill-server")


def number(rng, most):
    return rng.choice(["", "0", "1", str(rng.randint(1, most)), "999"])


def word(rng, rows, cols):
    """Characters in a part of a row where no half of a wide character is cut."""
    letters = rng.choice(["abc ", "XYZ", "\u00e9\u4e2d", ["e\u0301", "o"], "\u2500\u2502"])
    text = "".join(rng.choice(letters) for _ in range(rng.randint(1, 6)))
    col = rng.randrange(0, cols - 16, 14) + 1
    return f"\x1b[{rng.randint(1, rows)};{col}H\x1b[14X{text}"


def plain(rng, cols):
    return f"\x1b[{rng.randint(1, cols // 2)}G" + "w" * rng.randint(1, cols // 2 - 1)


def piece(rng, rows, cols, ascii_only):
    pick = rng.random()
    if pick < 0.3:
        return plain(rng, cols) if ascii_only else word(rng, rows, cols)
    if pick < 0.4:
        return rng.choice(["\r", "\r\n", "\n", "\b", "\t", "\x1bM", "\x1bD", "\x1bE", "\x0b"])
    if pick < 0.6:
        return f"\x1b[{number(rng, max(rows, cols))}{rng.choice('ABCDEFGd`')}"
    if pick < 0.65:
        return f"\x1b[{rng.randint(1, rows)};{rng.randint(1, cols)}{rng.choice('Hf')}"
    if pick < 0.75:
        # tmux inserts and deletes lines outside of the margins, too, and stays in its column.
        place = f"\x1b[?6l\x1b[r\x1b[{rng.randint(1, rows)}H"
        lines = f"{place}\x1b[{number(rng, 5)}{rng.choice('LM')}\r"
        return rng.choice([lines, f"\x1b[{number(rng, 5)}{rng.choice('ST')}"])
    if pick < 0.8 and ascii_only:
        # tmux does not blank all of what more of them insert.
        blanks = f"\x1b[{rng.randint(1, cols // 2)}G\x1b[{rng.randint(0, 9)}@"
        return rng.choice([blanks, f"\x1b[{number(rng, cols)}{rng.choice('PX')}"])
    if pick < 0.82 and ascii_only:
        return f"\x1b[{rng.randint(0, 2)}{rng.choice('JK')}"
    if pick < 0.85:
        return rng.choice(["\x1b[2K", "\x1b[?6h", "\x1b[?6l", "\x1b[?6l\x1b[r"])
    if pick < 0.89:
        top = rng.randint(1, rows - 1)
        return f"\x1b[?6l\x1b[{top};{rng.randint(top + 1, rows)}r"
    if pick < 0.92:
        return rng.choice(["\x1bH", "\x1b[3g", "\x1b[g", "\x1b[2Z"])
    if pick < 0.94:
        # A cursor is restored where one was saved.
        return "\x1b7" + plain(rng, cols) + "\x1b8" if ascii_only else "\x1b7\x1b[5B\x1b8"
    if pick < 0.96 and ascii_only:
        return f"\x1b[4h{plain(rng, cols)}\x1b[4l"
    if pick < 0.97:
        return f"\x1b[?1049h\x1b[3;3Hthere\x1b[?1049l"
    return rng.choice(["\x1b[1;31m", "\x1b]0;title\x07", "\x1b[?25l", "\x1b[38;5;196m",
                       "\x1bP+q544e\x1b\\", "\x1b[>c"]) if ascii_only else "\x1b[0m"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("file", nargs="*")
    options = parser.parse_args()
    if not shutil.which("tmux"):
        print("SKIPPED: no tmux to compare terminals with (tmux)")
        return 77
    program = subprocess.Popen([options.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    wrong = count = 0
    for rows, cols in ((24, 80), (5, 40), (50, 132)):
        streams = []
        for seed in range(options.seed, options.seed + options.count // 3):
            rng = random.Random(f"{seed} {rows}")
            pieces = [piece(rng, rows, cols, seed % 2 == 0) for _ in range(rng.randint(1, 80))]
            streams.append((f"seed {seed}", "".join(pieces).encode()))
        for name in options.file if rows == 24 else []:
            with open(name, "rb") as file:
                streams.append((name, file.read()))
        with tempfile.TemporaryDirectory() as folder:
            tmux = Tmux(folder, rows, cols)
            try:
                for name, stream in streams:
                    program.stdin.write(f"{rows} {cols} {len(stream)}\n".encode() + stream)
                    program.stdin.flush()
                    got = json.loads(program.stdout.readline())
                    text, row, col = tmux.screen(stream)
                    count += 1
                    if (got["text"], got["row"], got["col"]) == (text, row, min(col, cols)):
                        continue
                    wrong += 1
                    if wrong > 5:
                        continue
                    print(f"FAILED: {name} ({rows} rows, {cols} columns): {stream!r}")
                    print(f"--- tmux, cursor at {row}:{col}\n{text}")
                    print(f"--- here, cursor at {got['row']}:{got['col']}\n{got['text']}")
            finally:
                tmux.end()
    print(f"{count - wrong} of {count} streams show the same here and in tmux")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
