#!/usr/bin/env python3
"""Makes codeexec.hpp from the parts in src/.

python3 src/join.py                    writes codeexec.hpp
python3 src/join.py --check            fails unless codeexec.hpp is what src/ makes
python3 src/join.py --only SECTION...  prints a header of these sections and of what they need

First it makes src/report/page_internal.hpp from the files of the page of --report.

src/frame.hpp includes every part. A part stands in place of its #include, once, below what it
includes itself. Each half of the header opens the namespaces once, and what the parts share
(`inline namespace inner`) becomes CODEEXEC_INNER, which is unnamed where one file implements all
wings, as nothing outside of it may use it then. A namespace that is closed and opened again at once
stays open.

The table of wings in the frame says which macro compiles which sections. A part of the second half
stands in a group that is compiled where a wing wants it: a .cpp in its own wing, an internal header
in each wing of which a .cpp includes it, directly or through others. Each group has a macro of its
own, so that a file gets it once, however often it includes the header."""
import base64
import functools
import hashlib
import itertools
import pathlib
import re
import sys

SRC = pathlib.Path(__file__).resolve().parent
HEADER, COMMAND = SRC.parent / "codeexec.hpp", "python3 src/join.py"
# Of the manual's tables: a section with its needs, those in parentheses for its declarations alone;
# a wing with its sections; the macros of other headers.
ROW = re.compile(r"//   ([a-z]+) +needs: (\S+(?: \S+)*)")
MACROS = re.compile(r"//   MACROS ([a-z ]+)$")
WING = re.compile(r"//   CODEEXEC_IMPLEMENT_([A-Z]+) +([a-z]+(?: [a-z]+)*)$")
PAGE = "report/page_internal.hpp"
CONTINUED = re.compile(r"\n//                       (?=\S)")  # in the next line of the table
INCLUDE = re.compile(r'#include "(([a-z]+)/[a-z0-9_]+\.[ch]pp)"')
OPENING = ["namespace codeexec {", "inline namespace v0_1 {"]
CLOSING = ["}  // namespace v0_1", "}  // namespace codeexec"]
DROPPED = [*CLOSING, "#pragma once"]
SHARED = {"inline namespace inner {": "CODEEXEC_INNER {", "}  // namespace inner": "}  // inner"}
REOPENED = [
    re.compile(r"^}  // namespace(| \w+)\n((?:\n|//.*\n)*)namespace\1 {\n", re.M),
    re.compile(r"^}  // inner()\n((?:\n|//.*\n)*)CODEEXEC_INNER {\n", re.M),
]
ONLY = "// with --only: "  # begins a line of the frame that a header of some sections has
EACH_WING = "// each wing: "  # begins a line of the frame that becomes one for each
EACH_MACRO = "// each macro: "
ANY_WING = "// any wing"  # a line of the frame that becomes the beginning of an #if


def fail(message):
    sys.exit(f"src/join.py: {message}")


@functools.lru_cache(maxsize=None)
def read(name):
    try:
        return (SRC / name).read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        fail(f"src/{name}, which is included, cannot be read as ASCII text: {error}")


def includes_of(name):
    return [found[1] for found in map(INCLUDE.match, read(name)) if found]


def needs_of(frame):
    """What each section needs, and those of which it needs the declarations alone."""
    needs, only_declared = {}, {}
    table = CONTINUED.sub(" ", "\n".join(frame)).split("\n")
    for row in filter(None, map(ROW.match, table)):
        words = [word for word in row[2].split() if word != "-"]
        needs[row[1]] = [word.strip("()") for word in words]
        only_declared[row[1]] = [word.strip("()") for word in words if word.startswith("(")]
    return needs, only_declared


def sections(frame, named):
    """What each section needs, and the sections that are named with all that they need: those to
    declare and those to define."""
    needs, only_declared = needs_of(frame)
    for name in named:
        if name not in needs:
            fail(f"there is no section {name!r}; the sections are: {' '.join(needs)}")
    defined = list(named or needs)
    for name in defined:
        defined += [n for n in needs[name] if n not in only_declared[name] and n not in defined]
    declared = list(defined)
    for name in declared:
        declared += [n for n in needs[name] if n not in declared]
    return needs, set(declared), set(defined)


def wings_of(frame, needs):
    """The wing of each section, in the order of the table."""
    wing_of = {}
    for row in filter(None, map(WING.match, frame)):
        for section in row[2].split():
            if section in wing_of or section not in needs:
                fail(f"the table of wings has {section!r}, which is no section or has a wing")
            wing_of[section] = row[1]
    for section in needs:
        if section not in wing_of:
            fail(f"the section {section!r} is in no wing: add it to the table of wings")
    return wing_of


def wanted_by(frame, wing_of):
    """The wings that want each part of the second half."""
    wanted = {}

    def want(name, wing):
        if wing in wanted.setdefault(name, set()):
            return
        wanted[name].add(wing)
        for other in includes_of(name):
            want(other, wing)

    for include in filter(None, map(INCLUDE.match, frame)):
        if include[1].endswith(".cpp"):
            want(include[1], wing_of[include[2]])
    return {name: frozenset(wings) for name, wings in wanted.items()}


def condition(begin, wings, all_wings):
    """An #if for some of the wings, in lines that are not too long."""
    terms = [f"defined(CODEEXEC_IMPLEMENT_{wing})" for wing in all_wings if wing in wings]
    lines = [begin + ("(" if len(terms) > 1 else "")]
    for at, term in enumerate(terms):
        end = " || " if at + 1 < len(terms) else ")" if at else ""
        if len(lines[-1] + term + end) > 98:
            lines[-1] = lines[-1].rstrip() + " \\"
            lines.append("    ")
        lines[-1] += term + end
    return lines


def in_namespaces(lines):
    """Lines of parts, with the namespaces opened once."""
    is_open, kept = False, []
    for line in lines:
        if line in DROPPED or (is_open and line in OPENING):
            continue
        is_open = is_open or line == OPENING[-1]
        kept.append(SHARED.get(line, line))
    return [*kept, "", *CLOSING] if is_open else kept


def merged(lines):
    """Lines in which a namespace that is closed and opened again at once stays open."""
    text, again = "\n".join(lines), True
    while again:
        text, first = REOPENED[0].subn(r"\2", text)
        text, second = REOPENED[1].subn(r"\2", text)
        again = first or second
    return text.split("\n")


def joined(named):
    frame = read("frame.hpp")
    needs, declared, defined = sections(frame, named)
    wing_of = wings_of(frame, needs)
    all_wings = list(dict.fromkeys(wing_of.values()))
    macros = [name for row in filter(None, map(MACROS.match, frame)) for name in row[1].split()]
    wants = wanted_by(frame, wing_of)
    command = f"{COMMAND} --only {' '.join(named)}" if named else COMMAND
    lines, done = [], set()
    parts = []  # since the last line of the frame: the wings that want it, and its lines

    def append(name, is_definition):
        done.add(name)
        own, body = name.split("/")[0], []
        for line in read(name):
            include = INCLUDE.match(line)
            if include and include[2] not in [own, *needs[own]]:
                fail(f"src/{name} includes {include[1]}, but {own} does not need {include[2]}")
            if include and include[1] not in done:
                append(include[1], is_definition)
            if not include:
                body.append(line)
        wings = wants[name] if is_definition else None
        parts.append((wings, ["", f"// {name} ".ljust(100, "-"), *body]))

    def write_parts():
        """Writes the parts: declarations as they are, definitions in groups."""
        for number, (wings, some) in enumerate(itertools.groupby(parts, key=lambda p: p[0])):
            body = merged(in_namespaces(itertools.chain(*(text for _, text in some))))
            if wings:
                macro = f"CODEEXEC_GROUP_{number + 1}"
                begin = f"#if !defined({macro})"
                if wings != set(all_wings) and not named:
                    lines.extend(["", *condition(begin + " && ", wings, all_wings)])
                else:
                    lines.extend(["", begin])
                lines.extend([f"#define {macro}", *body, "", f"#endif  // {macro}"])
            else:
                lines.extend(body)
        parts.clear()

    in_dropped_row = False
    for line in frame:
        include, row = INCLUDE.match(line), ROW.match(line)
        in_dropped_row = not row and in_dropped_row and line.startswith("//       ")
        in_dropped_row = in_dropped_row or bool(row and row[1] not in declared)
        is_code = include and include[1].endswith(".cpp")
        if include and include[2] in (defined if is_code else declared):
            if include[1] not in done:
                append(include[1], is_code)
        elif not include and not in_dropped_row:
            if line:
                write_parts()
            if line.startswith(EACH_WING):
                lines += [line[len(EACH_WING) :].replace("WING", wing) for wing in all_wings]
            elif line.startswith(EACH_MACRO):
                lines += [line[len(EACH_MACRO) :].replace("MACRO", macro) for macro in macros]
            elif line == ANY_WING:
                lines += condition("#if !defined(CODEEXEC_IMPLEMENTED) && ", all_wings, all_wings)
            elif named or not line.startswith(ONLY):
                lines.append(line.replace(ONLY, "").replace(f"`{COMMAND}`", f"`{command}`"))
    missing = sorted({str(p.relative_to(SRC)) for p in SRC.glob("*/*.[ch]pp")} - done)
    if missing and defined == set(needs):
        fail(f"src/frame.hpp does not include src/{missing[0]}: add its line there")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


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


if __name__ == "__main__":
    main(sys.argv[1:])
