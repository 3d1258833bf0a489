#!/usr/bin/env python3
"""Makes codeexec.hpp from the parts in src/.

python3 src/join.py                    writes codeexec.hpp
python3 src/join.py --check            fails unless codeexec.hpp is what src/ makes
python3 src/join.py --only SECTION...  prints a header of these sections and of what they need

First it makes src/report/page_internal.hpp from the files of the page of --report.

src/frame.hpp includes every part. A part stands in place of its #include, once, below what it
includes itself. Each half of the header opens the namespaces once, and what the parts share
(`inline namespace inner`) becomes unnamed, as nothing outside of the header may use it. A namespace
that is closed and opened again at once stays open."""
import base64
import hashlib
import pathlib
import re
import sys

SRC = pathlib.Path(__file__).resolve().parent
HEADER, COMMAND = SRC.parent / "codeexec.hpp", "python3 src/join.py"
PAGE = "report/page_internal.hpp"
ROW = re.compile(r"//   ([a-z]+) +needs: (\S+(?: \S+)*)")  # of the manual's table of sections
INCLUDE = re.compile(r'#include "(([a-z]+)/[a-z0-9_]+\.[ch]pp)"')
OPENING = ["namespace codeexec {", "inline namespace v0_1 {"]
CLOSING = ["}  // namespace v0_1", "}  // namespace codeexec"]
DROPPED = [*CLOSING, "#pragma once"]
SHARED = {"inline namespace inner {": "namespace {", "}  // namespace inner": "}  // namespace"}
REOPENED = re.compile(r"^}  // namespace(| \w+)\n((?:\n|//.*\n)*)namespace\1 {\n", re.M)
ONLY = "// with --only: "  # begins a line of the frame that a header of some sections has


def fail(message):
    sys.exit(f"src/join.py: {message}")


def read(name):
    try:
        return (SRC / name).read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        fail(f"src/{name}, which is included, cannot be read as ASCII text: {error}")


def sections(frame, named):
    """What each section needs, and the sections that are named with all that they need."""
    needs = {}
    for row in filter(None, map(ROW.match, frame)):
        needs[row[1]] = list(needs) if row[2] == "all" else row[2].split()
    wanted = list(named or needs)
    for name in wanted:
        if name not in needs:
            fail(f"there is no section {name!r}; the sections are: {' '.join(needs)}")
        wanted += [need for need in needs[name] if need != "-" and need not in wanted]
    return needs, set(wanted)


def joined(named):
    frame = read("frame.hpp")
    needs, wanted = sections(frame, named)
    command = f"{COMMAND} --only {' '.join(named)}" if named else COMMAND
    lines, done, is_open = [], set(), False

    def append(name):
        nonlocal is_open
        done.add(name)
        own, body = name.split("/")[0], []
        for line in read(name):
            include = INCLUDE.match(line)
            if include and include[2] not in [own, *needs[own]]:
                fail(f"src/{name} includes {include[1]}, but {own} does not need {include[2]}")
            if include and include[1] not in done:
                append(include[1])
            if not include and line not in DROPPED + (OPENING if is_open else []):
                body.append(SHARED.get(line, line))
                is_open = is_open or line == OPENING[-1]
        lines.extend(["", f"// {name} ".ljust(100, "-"), *body])

    for line in frame:
        include, row = INCLUDE.match(line), ROW.match(line)
        if include and include[2] in wanted and include[1] not in done:
            append(include[1])
        elif not include and not (row and row[1] not in wanted):
            if line and is_open:
                lines += ["", *CLOSING]
                is_open = False
            if named or not line.startswith(ONLY):
                lines.append(line.replace(ONLY, "").replace(f"`{COMMAND}`", f"`{command}`"))
    missing = sorted({str(p.relative_to(SRC)) for p in SRC.glob("*/*.[ch]pp")} - done)
    if missing and wanted == set(needs):
        fail(f"src/frame.hpp does not include src/{missing[0]}: add its line there")
    text, again = "\n".join(lines), True
    while again:  # an outer namespace that stays open brings inner ones together
        text, again = REOPENED.subn(r"\2", text)
    return re.sub(r"\n{3,}", "\n\n", text) + "\n"


PAGE_FRAME = """\
// The page of --report. `{command}` makes this part from page.html, page.css and page.js.
#pragma once

#include "base/base_internal.hpp"

namespace codeexec {{
inline namespace v0_1 {{

inline namespace inner {{

// Up to the records, one a line.
inline constexpr std::string_view page_begin = R"page({0})page";

// Between the records and the summary.
inline constexpr std::string_view page_middle = R"page({1})page";

// Behind the summary.
inline constexpr std::string_view page_end = R"page({2})page";

}}  // namespace inner

}}  // namespace v0_1
}}  // namespace codeexec
"""


def page():
    """The part with the page of --report: page.html with page.css and page.js in place of what
    loads them, and their hashes in place of 'self', cut where it has its two blocks of data."""
    text = "\n".join(read("report/page.html")) + "\n"
    for name, tag, load in [
        ("report/page.css", "style", '<link rel="stylesheet" href="page.css">'),
        ("report/page.js", "script", '<script src="page.js"></script>'),
    ]:
        lines = [line.strip() for line in read(name)]
        for number, line in enumerate(lines, 1):
            if line.count("`") % 2 or line.endswith("\\"):  # what is indented may be text
                fail(f"src/{name}:{number}: a text must end on the line where it begins")
        comment = re.compile(r"//.*|/\*[^*]*\*/|")
        code = "".join(line + "\n" for line in lines if not comment.fullmatch(line))
        digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
        for old, new in [
            (f"{tag}-src 'self'", f"{tag}-src 'sha256-{digest}'"),
            (load, f"<{tag}>{code}</{tag}>"),
        ]:
            if text.count(old) != 1:
                fail(f"src/report/page.html must have {old} once")
            text = text.replace(old, new)
    parts = re.fullmatch(
        r'(.* id="records">\n).*?(</script>.* id="summary">\n).*?(</script>.*)', text, re.S
    )
    if not parts:
        fail("src/report/page.html must have two blocks of data, records and summary")
    return PAGE_FRAME.format(*parts.groups(), command=COMMAND)


def main(arguments):
    named = arguments[1:] if arguments[:1] == ["--only"] else []
    if arguments not in ([], ["--check"]) and not named:
        fail(f"{' '.join(arguments)!r} is no call of it\n{__doc__}")
    made = page()
    if not arguments:
        (SRC / PAGE).write_text(made, encoding="ascii")
    elif (SRC / PAGE).read_text(encoding="ascii") != made:
        fail(f"src/{PAGE} is not what the files of the page make: run {COMMAND}")
    text = joined(named)
    if named:
        sys.stdout.write(text)
    elif not arguments:
        HEADER.write_text(text, encoding="ascii")
    elif HEADER.read_text(encoding="ascii") != text:
        fail(f"codeexec.hpp is not what src/ makes: change src/, not that file, and run {COMMAND}")


main(sys.argv[1:])
