"""What shell::walk says a script would run, beside what bash and dash do run.

usage: shell_differential.py --words PROGRAM --stub PROGRAM [--scripts FILE] [--count N] [--seed N]
                             [--syntax N] [--shell bash|dash] [--show N]

Scripts come from a file of nasty ones and from a seeded generator. They call nothing but builtins,
`cat` and `w`, a stub that logs its words, its directory, its variable E1 and (called as `wi`) what
it reads. Each script runs in bash and is parsed with Dialect::bash, or in dash and Dialect::posix:

  - what ran must be among the parsed commands, with the same words, directory, E1 and input, where
    an unknown part of a parsed word may be anything, and one that splits any number of words;
  - in a straight script (no branches) every parsed call of the stub whose words are known must run;
  - a script of random tokens that `bash -n` or `dash -n` accepts must be read to its end.

One line sums up each shell; disagreements come before it, the first ones in their shortest form.
"""

import argparse
import fcntl
import json
import os
import random
import re
import selectors
import shutil
import subprocess
import sys
import tempfile
import time

DIALECTS = {"bash": False, "dash": True}
BATCH = 150
LOG = 8
# One run of a shell over a batch may take this long; one that does not end is a defect of the test.
PATIENCE = 60


# Running ------------------------------------------------------------------------------------------


class Scratch:
    """A directory: the stub in bin/, the scripts in scripts/, and here/, where they start."""

    def __init__(self, stub):
        self.root = os.path.realpath(tempfile.mkdtemp(prefix="shell-differential-", dir="/tmp"))
        self.here = self.root + "/here"
        self.home = self.root + "/home"
        for name in ("bin", "home", "scripts", "here/d1/d2", "here/d3"):
            os.makedirs(f"{self.root}/{name}")
        for name in ("w", "wi"):
            os.symlink(os.path.realpath(stub), f"{self.root}/bin/{name}")
        for name in ("cat", "true", "false", "env", "sleep"):
            found = shutil.which(name)
            if found:
                os.symlink(found, f"{self.root}/bin/{name}")

    def environment(self):
        return {
            "PATH": self.root + "/bin",
            "HOME": self.home,
            "LC_ALL": "C",
            "SCRIPT": "",
            "UNKNOWN": "from the environment",
        }

    def remove(self):
        shutil.rmtree(self.root, ignore_errors=True)


class Ran:
    """One call of the stub."""

    def __init__(self, fields):
        self.script, self.work_dir = fields[0], fields[1]
        self.e1 = fields[2][1:] if fields[2].startswith("+") else None
        self.input = fields[3][1:] if fields[3].startswith("+") else None
        self.words = fields[4:]


def read_log(data):
    calls, at = [], 0
    while at < len(data):
        length = int(data[at : at + 8], 16)
        record = data[at + 8 : at + 8 + length]
        at += 8 + length
        calls.append(Ran(record.decode("latin-1").split("\0")[:-1]))
    return calls


def log_pipe():
    """A pipe whose ends are out of the way of the descriptor that the shells get."""
    ends = os.pipe()
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, LOG + 1) for end in ends]
    for end in ends:
        os.close(end)
    return moved


def reserve_log():
    """Nothing else of this process may get the number of the descriptor that the shells log to."""
    end = os.open(os.devnull, os.O_RDONLY)
    if end != LOG:
        os.dup2(end, LOG, inheritable=False)
        os.close(end)


def run_shell(scratch, arguments, patience=PATIENCE, bounds=None):
    """Runs a shell to the end of everything it started: until nobody holds the log any more."""
    read_end, write_end = log_pipe()
    os.dup2(write_end, LOG, inheritable=True)
    try:
        process = subprocess.Popen(
            [shutil.which(arguments[0]), *arguments[1:]],
            cwd=scratch.here,
            env=scratch.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(LOG,),
            start_new_session=True,
            preexec_fn=bounds,
        )
    finally:
        os.close(write_end)
        reserve_log()
    chunks, deadline = [], time.monotonic() + patience
    with selectors.DefaultSelector() as selector:
        selector.register(read_end, selectors.EVENT_READ)
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not selector.select(left):
                os.killpg(process.pid, 9)
                process.wait()
                os.close(read_end)
                raise RuntimeError("a shell did not end: " + " ".join(arguments)[:2000])
            chunk = os.read(read_end, 65536)
            if not chunk:
                break
            chunks.append(chunk)
    os.close(read_end)
    process.wait()
    return b"".join(chunks)


def write_bytes(path, text):
    with open(path, "wb") as file:
        file.write(text.encode("latin-1"))


def run_batch(scratch, shell, scripts, patience=PATIENCE, bounds=None):
    """What each script ran, in order. Every script has a subshell of its own."""
    lines = []
    for i, script in enumerate(scripts):
        path = f"{scratch.root}/scripts/{i}.sh"
        write_bytes(path, script)
        lines.append(f"( SCRIPT={i}; export SCRIPT; . {path} )\n")
    runner = f"{scratch.root}/scripts/runner"
    write_bytes(runner, "".join(lines))
    ran = [[] for _ in scripts]
    for call in read_log(run_shell(scratch, [shell, runner], patience, bounds)):
        ran[int(call.script)].append(call)
    return ran


def run_one(scratch, shell, script):
    """As an executor would run it."""
    return read_log(run_shell(scratch, [shell, "-c", script.encode("latin-1")]))


def accepted(scratch, shell, scripts):
    """Which of the scripts `shell -n` takes for well-formed."""
    lines = []
    for i, script in enumerate(scripts):
        path = f"{scratch.root}/scripts/{i}.sh"
        write_bytes(path, script)
        lines.append(f"{shutil.which(shell)} -n {path} && SCRIPT={i} w\n")
    runner = f"{scratch.root}/scripts/runner"
    write_bytes(runner, "".join(lines))
    return {int(call.script) for call in read_log(run_shell(scratch, [shell, runner]))}


def parse(words, shell, scripts, work_dir):
    questions = [
        json.dumps({"script": script, "posix": DIALECTS[shell], "work_dir": work_dir})
        for script in scripts
    ]
    result = subprocess.run(
        [words], input="\n".join(questions) + "\n", capture_output=True, encoding="utf-8"
    )
    if result.returncode != 0:
        raise RuntimeError(f"{words} ended with status {result.returncode}: {result.stderr}")
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    if len(answers) != len(scripts):
        raise RuntimeError(f"{words} answered {len(answers)} of {len(scripts)} scripts")
    return answers


# Comparing ----------------------------------------------------------------------------------------


def pattern(text, home=False):
    """A regular expression for a text with unknown parts; one that is nothing leaves no blanks."""
    text = re.sub(" ?\0 ?", "\0", text)
    parts = [re.escape(part) for part in text.split("\0")]
    if home and text.startswith("~"):
        user = re.match(r"~[^/\0]*", text).group()
        rest = [re.escape(part) for part in text[len(user) :].split("\0")]
        # That of a user who may not exist stays as it is.
        home_directory = "/[^/]*/shell-differential-[^/]*/home"
        start = home_directory if user == "~" else f"(?:/.*|{re.escape(user)})"
        whole = start + "(?s:.*)".join(rest)
        # "$HOME"x looks like the home of x.
        return f"(?:{whole}|{home_directory}{pattern(text[1:])})"
    return "(?s:.*)".join(parts)


def is_known(word):
    text, marks = word
    return "\0" not in text and "g" not in marks and "p" not in marks


def same_words(told, ran):
    """Whether the words told can be the words that ran."""
    # reach: how many of the words that ran the words told so far can stand for.
    reach = {0}
    for text, marks in told:
        following = set()
        expression = re.compile(pattern(text, "h" in marks))
        loose = "s" in marks or "g" in marks
        first, last = text.split("\0")[0], text.split("\0")[-1]
        for at in reach:
            if at < len(ran) and expression.fullmatch(ran[at]):
                following.add(at + 1)
            if "p" in marks and at < len(ran):
                following.add(at + 1)
            if not loose:
                continue
            if text.strip("\0") == "":
                following.add(at)
            for end in range(at + 1, len(ran) + 1):
                if "g" in marks or (
                    ran[at].startswith(first) and ran[end - 1].endswith(last)
                ):
                    following.add(end)
        reach = following
        if not reach:
            return False
    return len(ran) in reach


def own_words(command):
    """The words from the stub's name on; None when the command cannot be a call of the stub."""
    words = command["words"]
    while words and words[0][0] in ("command", "exec", "builtin", "env"):
        words = words[1:]
        while words and (words[0][0].startswith("-") or re.match(r"\w+=", words[0][0])):
            words = words[1:]
    return words


def could_be_stub(words):
    return bool(words) and (not is_known(words[0]) or words[0][0].split("/")[-1] in ("w", "wi"))


def same_call(command, ran):
    """None when this command can have been this call, or what is different."""
    words = own_words(command)
    if not could_be_stub(words) or not same_words(words, ran.words):
        return "words"
    directory, marks = command["work_dir"]
    # Nothing stands for a directory that is not known. A cd is taken to succeed.
    home = "h" in marks
    known = home or os.path.isdir(directory)
    if known and not re.fullmatch(pattern(directory, home), ran.work_dir):
        return f"work_dir is told as {directory!r} and was {ran.work_dir!r}"
    if ran.input is not None:
        told = command["input"]
        expected = "" if told == "inherited" else command["input_text"]
        # bash adds the newline that the end of the script has cut off a here-document.
        expression = pattern(expected) + ("" if expected.endswith("\n") else "\n?")
        # Patterns and homes that were printed stand as they were written.
        if command["input_home"]:
            expression = expression.replace(re.escape("~"), "(?s:.*)")
        unknown = told == "unknown" or "\0" in expected or command["input_glob"]
        if not unknown and not re.fullmatch(expression, ran.input):
            return f"input is told as {told} {expected!r} and was {ran.input!r}"
    if ran.e1 is not None:
        values = [value for name, value in command["assignments"] if name == "E1"]
        if values and not re.fullmatch(pattern(values[-1][0], "h" in values[-1][1]), ran.e1):
            return f"E1 is told as {values[-1][0]!r} and was {ran.e1!r}"
    return None


def is_exact(command, ran):
    words = own_words(command)
    return all(is_known(word) for word in words) and len(words) == len(ran.words)


def shown(words):
    return " ".join(repr(word) for word in words)


def compare(answer, ran, straight):
    """The disagreements of one script, and how many calls were told exactly."""
    problems, exact = [], 0
    if not answer["complete"] and ran:
        problems.append(f"not read to its end: {answer['error']}")
    used = set()
    for call in ran:
        reasons, found, best = set(), False, None
        for i, command in enumerate(answer["commands"]):
            reason = same_call(command, call)
            if reason is None:
                found = True
                used.add(i)
                if is_exact(command, call):
                    best = i
                continue
            if reason != "words":
                reasons.add(reason)
        exact += best is not None
        if not found:
            why = "; ".join(sorted(reasons)) or "not told"
            problems.append(f"ran: {shown(call.words)}: {why}")
    if straight:
        for i, command in enumerate(answer["commands"]):
            words = own_words(command)
            if i in used or command["defined"] or not could_be_stub(words):
                continue
            values = words + [value for _, value in command["assignments"]]
            if all(is_known(word) and not set("as") & set(word[1]) for word in values):
                problems.append("told, and did not run: " + shown(word[0] for word in words))
    return problems, exact


# Generating ---------------------------------------------------------------------------------------

PLAIN = ["a", "b1", "x-y", "k=v", "p%q", "a,b", "c:d", "e@f", "m+n", "g#h", "i!j", "o.p", "q_r",
         "^s"]
PLAIN += ["t]u", "7", "--x=y", "=", "]", "a}b", "{", "}", "u{v", "fi", "done", "in"]
QUOTABLE = ["a", "b", " ", "  ", "$", "`", '"', "\\", "*", ";", "&", "|", "#", "\n", "(", ")", "<",
            "~"]
QUOTABLE += ["{x,y}", "$X", "${Y}", "$(w no)", "`w no`", "!", "'", "\\n", "\\\\", "=", "EOF", "[z]"]
NAMES = ["X", "Y", "Z1", "_v"]


class Generator:
    """Random scripts whose words follow from the script alone, nearly always."""

    def __init__(self, seed, bash):
        self.random = random.Random(seed)
        self.bash = bash
        self.straight = True
        self.bodies = []  # of here-documents that wait for the end of the line
        self.functions = 0
        self.in_function = False
        self.quoted = False

    def one_in(self, n):
        return self.random.randrange(n) == 0

    def pick(self, choices):
        return self.random.choice(choices)

    # words

    def single_quoted(self):
        text = "".join(self.pick(QUOTABLE) for _ in range(self.random.randrange(4)))
        return "'" + text.replace("'", "") + "'"

    def double_quoted(self, depth):
        out = []
        for _ in range(self.random.randrange(5)):
            kind = self.random.randrange(9)
            if kind == 0 and depth > 0:
                out.append(self.substitution(depth - 1, True))
            elif kind in (1, 2):
                out.append(self.parameter(depth, True))
            elif kind == 3 and not (out and out[-1].startswith("$")):
                out.append("\\" + self.pick(["$", "`", '"', "\\", "n", "a", "\n", "*", "'"]))
            else:
                text = self.pick(QUOTABLE)
                out.append(re.sub(r'([$`"\\])', r"\\\1", text).replace("!", ""))
        return '"' + "".join(out) + '"'

    def ansi_quoted(self):
        escapes = ["\\n", "\\t", "\\x41", "\\101", "\\'", '\\"', "\\\\", "\\a", "\\e", "\\u0041",
                   "z"]
        escapes += ["\\cA", "\\q", "\\x4", "\\1012", " ", "$X", "\\?", "*", "\\E", "\\0101"]
        return "$'" + "".join(self.pick(escapes) for _ in range(self.random.randrange(4))) + "'"

    def parameter(self, depth, quoted):
        name = self.pick(NAMES)
        kind = self.random.randrange(13)
        if kind < 4:
            return "${" + name + "}"
        if kind < 6:
            follow = self.pick(["", "", ".", "-", "/"])
            return "$" + name + follow
        if kind == 6:
            return self.pick(["$1", "${2}", "$#", "$*", "$@", "${1}x"])
        inner = self.pick(["d", "e f", "", "$X", "${Y}"])
        if not quoted and self.one_in(3):
            inner = self.pick(["'q r'", '"s  t"', "\\ u", "v"])
        if depth > 0 and self.one_in(4):
            inner = self.parameter(depth - 1, quoted)
        if kind < 10:
            operator = self.pick([":-", "-", ":+", "+"])
            return "${" + name + operator + inner + "}"
        if kind == 10:
            return "${NEW" + self.pick([":=", "=", ":-"]) + inner + "}"
        if self.bash and kind == 11:
            return "${" + name + self.pick(["/a/b", "^^", ":1:2", "//x", ",,", "@Q", "/#a/"]) + "}"
        return "${" + self.pick([f"#{name}", f"{name}%b", f"{name}##*a", f"{name}%%-*"]) + "}"

    def printing(self, depth):
        """A command that writes text that can be known."""
        kind = self.random.randrange(6)
        if kind < 3:
            words = " ".join(self.word(depth, safe=True) for _ in range(1
                                                                        + self.random.randrange(2)))
            return "echo " + words
        if kind == 3:
            return "printf %s " + self.word(depth, safe=True)
        if kind == 4:
            return "printf '%s-%s\\n' " + self.word(depth, safe=True) + " z"
        return "echo " + self.pick(["a b", "c", "'d  e'", '"f  g"'])

    def substitution(self, depth, quoted):
        inner = self.printing(depth)
        if self.one_in(3) and "`" not in inner and "\\" not in inner and "'" not in inner:
            if not (quoted and '"' in inner):
                return "`" + inner + "`"
        if self.one_in(5):
            inner = self.pick(["echo x; echo y", "echo ')'", "echo a # )\n", "echo a\n\n",
                               " echo b "])
        return "$(" + inner + ")"

    def part(self, depth):
        kind = self.random.randrange(20 if self.bash else 16)
        if kind < 5:
            return self.pick(PLAIN)
        if kind < 7:
            return self.single_quoted()
        if kind < 10:
            return self.double_quoted(depth)
        if kind == 10:
            return "\\" + self.pick([" ", "$", "`", '"', "'", "\\", ";", "&", "a", "#", "*", "\n",
                                     "~"])
        if kind < 14:
            return self.parameter(depth, False)
        if kind == 14 and depth > 0:
            return self.substitution(depth - 1, False)
        if kind == 15:
            return self.pick(["~", "~/x", "a~b", "$((1+2))", "z*", "?", "[qr]", "\\z*"])
        if kind == 16:
            return self.ansi_quoted()
        if kind == 17:
            return '$"' + self.pick(["loc", "a b", "$X"]) + '"'
        if kind == 18:
            return self.pick(["{a,b}", "{1..3}", "{a,{b,c}}", "x{,y}z", "{a,'b c'}", "{c..a}",
                              "{a}"])
        return self.pick(["{${X},b}", "{01..03}", "{1..5..2}", "'{a,b}'"])

    def word(self, depth, safe=False):
        while True:
            parts = [self.part(depth) for _ in range(1 + self.random.randrange(3))]
            text = "".join(parts)
            # A comment, a here-document of chance, or what echo reads in two ways.
            # Braces are expanded before $name is read: $X{,y} is $X and $Xy. The others are lines
            # joined in the middle of $name, and in front of a ~.
            if re.search(r"\$\w+([{,}]|\\\n)|^\\\n~", text):
                continue
            if text.startswith("#") or (safe and (text.startswith("-") or "\\" in text)):
                continue
            return text

    def words(self, depth, most=3):
        return [self.word(depth) for _ in range(self.random.randrange(most + 1))]

    # commands

    def here_document(self, depth):
        self.quoted = self.one_in(3)
        dash = self.one_in(4)
        tag = self.pick(["EOF", "E1F", "_"])
        written = self.pick([f"'{tag}'", f"\\{tag}", f'"{tag}"']) if self.quoted else tag
        lines = []
        for _ in range(self.random.randrange(4)):
            line = self.pick(["text", "a  b", "'q'", '"d"', "# no comment", "", "EO", " EOF",
                              "\\\\x", "~"])
            if not self.quoted:
                line += self.pick(["", " $X", "${Y}", " $(echo s)", " `echo t`", "\\$X",
                                   "${NO-u v}"])
            else:
                line += self.pick(["", " $X", "$(w no)", "`w no`", "\\", '"'])
            lines.append(("\t" if dash and self.one_in(2) else "") + line)
        end = ("\t" if dash and self.one_in(2) else "") + tag
        self.bodies.append("".join(line + "\n" for line in lines) + end)
        return ("<<-" if dash else "<<") + self.pick(["", " "]) + written

    def redirection(self):
        return self.pick([">/dev/null", "2>&1", "2> /dev/null", "</dev/null", "3>&1",
                          ">>/dev/null", "1>&2"])

    def call(self, depth):
        kind = self.random.randrange(22)
        words = self.words(depth)
        if kind < 9:
            text = " ".join([self.pick(["w", "w", "w", "w", '"w"', "\\w", "'w'", "w''"])] + words)
            if self.one_in(5):
                text += " " + self.redirection()
            if self.one_in(8):
                text = self.redirection() + " " + text
            return text
        if kind == 9:
            return f"E1={self.assigned(depth)} w " + " ".join(words)
        if kind == 10:
            return "wi " + " ".join(words) + " " + self.here_document(depth)
        if kind == 11:
            return self.printing(depth) + " | wi " + " ".join(words)
        if kind == 12:
            return "cat " + self.here_document(depth) + " | wi " + " ".join(words)
        if kind == 13 and self.bash:
            return f"wi {' '.join(words)} <<< {self.word(depth).lstrip('~')}x"
        if kind == 14:
            return "eval " + self.pick(["'w \"$X\" a'", '"w b"', "w c '$X'", "w '\"d e\"'",
                                        "'X=q; w $X'"])
        if kind == 15:
            return "command w " + " ".join(words)
        if kind == 16:
            return self.pick(["$X", '"$Y"', "${NO:-w}", "$(echo w)",
                              "`echo w`"]) + " " + " ".join(words)
        if kind == 17:
            return "cd " + self.pick(["d1", "d1/d2", "../d3", ".", "/", "", "..",
                                      "-"])
        if kind == 18:
            return "wi " + " ".join(words)
        return f"w {' '.join(words)}"

    def assigned(self, depth):
        if self.one_in(3):
            return self.pick(["w", "a b", "", "c", "x  y "]).join(["'", "'"])
        return self.word(depth)

    def simple(self, depth):
        kind = self.random.randrange(16)
        if kind < 4:
            return f"{self.pick(NAMES)}={self.assigned(depth)}"
        if kind == 4:
            return "set -- " + " ".join(self.word(depth) for _ in range(self.random.randrange(4)))
        if kind == 5:
            value = self.pick(["a", self.single_quoted(), self.double_quoted(0)])
            return f"export {self.pick(NAMES)}={value.replace('~', '')}"
        if kind == 6:
            return "unset " + self.pick(NAMES)
        if kind == 7:
            return self.pick([": ${X:=set}", "true", ":", "X=1 Y=2", "Y=$X", "X=$X$Y",
                              "IFS=,", "IFS=:"])
        if kind == 8 and self.bash:
            return self.pick(["X+=more", "arr=(a 'b c' $X)", 'w "${arr[@]}"', "w ${arr[1]}",
                              "printf -v X %s q",
                              "read X <<< 'one two'", "declare Y=dd", "X=(1 2); w $X"])
        return self.call(depth)

    def pipeline(self, depth):
        text = self.simple(depth)
        if self.one_in(8):
            joint = self.pick([" | ", "|", " |& ", " |\n"] if self.bash else [" | ", "|", " |\n"])
            if self.bodies:
                joint = " | "
            text += joint + self.call(0)
        if text.startswith("w") and self.one_in(8):
            text = "! " + text
        return text

    def line(self, depth):
        """Something with the here-documents that it needs, and a newline at its end."""
        text = self.compound(depth) if depth > 0 and self.one_in(3) else self.pipeline(depth)
        while self.one_in(4):
            joint = self.pick(["; ", " ;", " && ", " || ", "&&\n", " & "])
            if "&&" in joint or "||" in joint:
                self.straight = False
            if joint.endswith("\n") and self.bodies:
                joint = " && "
            text += joint + self.pipeline(0)
        if self.one_in(12):
            text += self.pick([" # comment ' \" $(w no)", " #", "; # a `"])
        if self.one_in(20):
            text += " &"
        return self.finished(text)

    def finished(self, text):
        bodies, self.bodies = self.bodies, []
        return text + "\n" + "".join(body + "\n" for body in bodies)

    def body(self, depth):
        return "".join(self.line(depth) for _ in range(1 + self.random.randrange(2)))

    def compound(self, depth):
        kind = self.random.randrange(13)
        inner = depth - 1
        outer, self.bodies = self.bodies, []
        text = self.compound_of(kind, inner)
        # Groups and subshells are as straight as what is in them; a loop is gone through more than
        # once, with what its commands leave behind.
        if kind > 2:
            self.straight = False
        self.bodies = outer + self.bodies
        return text

    def compound_of(self, kind, inner):
        if kind == 0:
            return "{\n" + self.body(inner) + "}"
        if kind in (1, 2):
            return "(" + self.pick([" ", "\n"]) + self.body(inner) + ")"
        if kind == 3:
            name = self.pick(NAMES)
            values = " ".join(self.word(0) for _ in range(self.random.randrange(4)))
            return f"for {name} in {values}\ndo\n" + self.body(inner) + "done"
        if kind == 4:
            test = self.pick(["true", "w t", "false", "! true", "[ 1 = 1 ]"])
            return f"if {test}; then\n" + self.body(inner) + "else\n" + self.body(inner) + "fi"
        if kind == 5:
            first, second = self.body(inner), self.body(inner)
            return f"if w c; then\n{first}elif w e; then\n{second}fi"
        if kind == 6:
            return "while w l; do\n" + self.body(inner) + "break\ndone"
        if kind == 7:
            return "until w u; do\n" + self.body(inner) + "break\ndone"
        if kind == 8:
            subject = self.pick(["a", "$X", '"$Y"', "'a b'", "$(echo c)"])
            first = self.pick(["a", "a|b", "(a", "*", "'a b'", "[ab]*", '"$X"'])
            return (
                f"case {subject} in\n{first}) " + self.body(inner) + self.pick([";;", ";;\n"])
                + "\n*)\n" + self.body(inner) + self.pick(["", ";;\n"]) + "esac"
            )
        if kind in (9, 10) and not self.in_function:
            self.functions += 1
            name = f"f{self.functions}"
            self.in_function = True
            body = self.body(inner)
            self.in_function = False
            head = self.pick([f"{name}() {{", f"{name} ()\n{{"]
                             + ([f"function {name} {{"] * self.bash))
            call = self.pick([f"{name} 1 'a b'", f'{name} "$X"', f"{name}", f"{name}; {name} z"])
            return f"{head}\n{body}}}\n{call}"
        if kind == 11 and self.bash:
            return self.pick(["[[ $X == a* ]]", "[[ -n $X && ( a < b ) ]]", "((1 + 2))",
                              "[[ $X =~ ^(a|b)$ ]]"])
        return "for N in 1 2; do " + self.pick(['w $N "$X"', "X=$X$N", "w $N; break"]) + "; done"

    def script(self):
        text = "".join(f"{name}={self.assigned(0)}\n" for name in NAMES)
        text += "".join(self.line(2) for _ in range(1 + self.random.randrange(5)))
        # Only the last line shows what all before it have left behind.
        text += 'w end "$X" $Y "$@"\n'
        return text[:-1] if self.one_in(3) else text


TOKENS = ["w", "a", "if", "then", "else", "elif", "fi", "for", "in", "do", "done", "while",
          "until", "case"]
TOKENS += ["esac", "{", "}", "(", ")", "!", ";", "\n", "&", "|", "&&", "||", ";;", ">", "<", ">>",
           "<<E", "2>"]
TOKENS += ["'q'", '"d"', "X=1", "x", "f()", "$X", "$(", "`", '"', "'", "\\", "#", "<<-E", "\nE\n",
           "{a,b}"]
TOKENS += ["w;", "w\n", "w\n", "if w; then w; fi", "( w )", "{ w; }", "${X:-", "}", "$((", "))",
           ">&", "<>", ">|"]
BASH_TOKENS = ["[[", "]]", "((", "))", "function", "time", "coproc", "select", "&>", "|&", "<<<",
               "<(", ";&"]
BASH_TOKENS += ["$'a\\'b'", "&>>", "a=(", ";;&", "{fd}>", "=~", "-f"]
BLOCKS = ["if w; then {}; fi", "while w; do {}; done", "( {} )", "{{ {}; }}",
          "case a in a) {};; esac", "f() {{ {}; }}",
          "$({})", "\"$({})\"", "`{}`", "for x in a b; do {}; done", "{} | w", "{} && w", "{} &",
          "! {}", "w <<E\n{}\nE\n",
          "until w; do {}; done", "if w; then w; else {}; fi", "case {} in esac", "${{X:-{}}}",
          "f() ( {} )"]


def token_soup(seed, bash):
    """A script that is well-formed now and then."""
    chance = random.Random(seed)
    tokens = TOKENS + (BASH_TOKENS if bash else [])
    text = " ".join(chance.choice(tokens) for _ in range(1 + chance.randrange(5)))
    if chance.randrange(3) == 0:
        text = chance.choice(["w", "w a", "X=1", "w 'a'", "w >f", "w;w", "w &", "# c\nw"])
    for _ in range(chance.randrange(4)):
        text = chance.choice(BLOCKS).format(text)
    if chance.randrange(3) == 0:
        at = chance.randrange(len(text) + 1)
        text = text[:at] + chance.choice(tokens + [" ", ""]) + text[at + chance.randrange(3) :]
    return text + chance.choice(["", "\n"])


# The run ------------------------------------------------------------------------------------------


# A redirection stays with its target: a shorter script must not write anywhere else.
TOKEN = re.compile(
    r"[0-9]*>[>|&]? *(?:/dev/null|[0-9]|-)|cd [^ ;&|\n]*|\$\{[#!]?\w+|\w+|(?s:.)"
)


def minimized(text, fails):
    """A shorter script that still fails: without chunks of lines first, then of tokens."""
    tries = 0
    for split in (lambda t: t.splitlines(True), TOKEN.findall):
        size = max(1, len(split(text)) // 2)
        while size > 0:
            at = 0
            while at < len(split(text)):
                pieces = split(text)
                shorter = "".join(pieces[:at] + pieces[at + size :])
                tries += 1
                if tries > 400:
                    return text
                if shorter and fails(shorter):
                    text = shorter
                else:
                    at += size
            size //= 2
    return text


class Entry:
    def __init__(self, text, shells, marks):
        self.text, self.shells, self.straight = text, shells, "straight" in marks
        self.differs = "differs" in marks


def read_entries(path):
    """Scripts behind lines of '%%' and words: straight, bash, dash, unended, differs."""
    entries, marks, lines = [], None, []

    def finish():
        if marks is not None:
            shells = [name for name in DIALECTS if name in marks] or list(DIALECTS)
            text = "".join(lines)
            text = text[:-1] if "unended" in marks or len(lines) == 1 else text
            entries.append(Entry(text, shells, marks))

    with open(path, encoding="latin-1", newline="\n") as file:
        for line in file:
            if line.startswith("%%"):
                finish()
                marks, lines = line[2:].split(), []
            elif marks is not None:
                lines.append(line)
    finish()
    return entries


class Run:
    def __init__(self, options, shell, scratch):
        self.options, self.shell, self.scratch = options, shell, scratch
        self.calls = self.exact = self.disagreements = self.shown = 0
        self.refused = 0

    def parse(self, scripts):
        return parse(self.options.words, self.shell, scripts, self.scratch.here)

    def check(self, label, text, answer, ran, straight, again):
        problems, exact = compare(answer, ran, straight)
        self.calls += len(ran)
        self.exact += exact
        if not problems:
            return
        if not answer["complete"] and not accepted(self.scratch, self.shell, [text]):
            return
        self.disagreements += 1
        if self.shown >= self.options.show:
            return
        self.shown += 1

        def fails(shorter):
            if not accepted(self.scratch, self.shell, [shorter]):
                return False
            try:
                ran = again(shorter)
            except RuntimeError:  # a loop that has lost its break
                return False
            shorter_answer = self.parse([shorter])[0]
            if shorter_answer["complete"] != answer["complete"]:
                return False
            found, _ = compare(shorter_answer, ran, straight)
            # The same kind of disagreement, or it would wander off to another one.
            return any(p.split(":")[0] == problems[0].split(":")[0] for p in found)

        if self.options.minimize and not label.startswith("entry"):
            text = minimized(text, fails)
            problems = compare(self.parse([text])[0], again(text), straight)[0] or problems
        print(f"DISAGREEMENT {self.shell} {label}: {text!r}")
        for problem in problems[:4]:
            print(f"    {problem}")

    def entries(self, entries):
        mine = [entry for entry in entries if self.shell in entry.shells]
        for i, (entry, answer) in enumerate(zip(mine, self.parse([e.text for e in mine]))):
            one = lambda text: run_one(self.scratch, self.shell, text)  # noqa: E731
            ran = one(entry.text)
            if not entry.differs:
                self.check(f"entry {i}", entry.text, answer, ran, entry.straight, one)
            elif not compare(answer, ran, entry.straight)[0]:
                self.disagreements += 1
                print(f"AGREEMENT {self.shell} entry {i}, marked 'differs': {entry.text!r}")
        return len(mine)

    def generated(self, count, seed):
        made = []
        for i in range(count):
            generator = Generator(f"{seed} {self.shell} {i}", self.shell == "bash")
            made.append((generator.script(), generator))
        batched = lambda text: run_batch(self.scratch, self.shell, [text], 2)[0]  # noqa: E731
        for at in range(0, count, BATCH):
            part = made[at : at + BATCH]
            texts = [text for text, _ in part]
            ran = run_batch(self.scratch, self.shell, texts)
            for i, answer in enumerate(self.parse(texts)):
                label = f"script {at + i}"
                self.check(label, texts[i], answer, ran[i], part[i][1].straight, batched)
        return made

    def syntax(self, count, seed):
        good = 0
        for at in range(0, count, BATCH):
            numbers = range(at, min(count, at + BATCH))
            texts = [token_soup(f"{seed} {self.shell} {i}", self.shell == "bash") for i in numbers]
            taken = accepted(self.scratch, self.shell, texts)
            good += len(taken)
            for i, answer in enumerate(self.parse(texts)):
                if i not in taken:
                    self.refused += not answer["complete"]
                    continue
                if answer["complete"] or answer["limit"]:
                    continue
                # What the shells look at only when they come to it, and what bash alone takes.
                if "in [[" in answer["error"] or re.search(r"! *(#.*)?$", texts[i], re.MULTILINE):
                    continue
                if "bad substitution" in answer["error"] or "`" in texts[i]:
                    continue
                if "<<" in texts[i] and "$(" in texts[i]:
                    continue
                self.disagreements += 1
                if self.shown >= self.options.show:
                    continue
                self.shown += 1

                def fails(shorter):
                    refused = not self.parse([shorter])[0]["complete"]
                    return refused and accepted(self.scratch, self.shell, [shorter]) == {0}

                text = minimized(texts[i], fails) if self.options.minimize else texts[i]
                error = self.parse([text])[0]["error"]
                print(f"DISAGREEMENT {self.shell} syntax {at + i}: {text!r}")
                print(f"    accepted there: {error}")
        return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--words", required=True)
    parser.add_argument("--stub", required=True)
    parser.add_argument("--scripts")
    parser.add_argument("--count", type=int, default=2000, help="generated scripts for each shell")
    parser.add_argument("--syntax", type=int, default=1000, help="scripts of tokens for each shell")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shell", choices=list(DIALECTS))
    parser.add_argument("--show", type=int, default=10,
                        help="disagreements to print for each shell")
    parser.add_argument("--no-minimize", dest="minimize", action="store_false")
    options = parser.parse_args()

    reserve_log()
    shells = [options.shell] if options.shell else list(DIALECTS)
    missing = [shell for shell in shells if shutil.which(shell) is None]
    for shell in missing:
        print(f"SKIPPED: no {shell} to compare with")
    if missing == shells:
        return 77
    failed = False
    for shell in shells:
        if shell in missing:
            continue
        scratch = Scratch(options.stub)
        try:
            run = Run(options, shell, scratch)
            entries = run.entries(read_entries(options.scripts)) if options.scripts else 0
            made = run.generated(options.count, options.seed)
            straight = sum(generator.straight for _, generator in made)
            soup = run.syntax(options.syntax, options.seed)
        finally:
            scratch.remove()
        share = 100 * run.exact // max(1, run.calls)
        print(
            f"shell_differential: {shell}: {entries} written and {len(made)} generated scripts"
            f" ({straight} straight), {run.calls} calls, {share}% of them told exactly;"
            f" {options.syntax} scripts of tokens, {soup} accepted there,"
            f" {run.refused} of the others refused here; {run.disagreements} disagreements"
        )
        # A run in which nothing ran, or everything was unknown, would have compared nothing.
        if options.count and (run.calls < 2 * options.count or share < 75):
            print(f"FAILED: {shell}: too few calls, or too few of them told exactly")
            failed = True
        if options.syntax and (soup * 10 < options.syntax or soup * 10 > 9 * options.syntax):
            print(f"FAILED: {shell}: scripts of tokens are well-formed too seldom or too often")
            failed = True
        if run.disagreements:
            print(f"FAILED: {shell}: {run.disagreements} disagreements")
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
