#!/usr/bin/env python3
"""Makes docs/api.md from the declarations in src/ and their comments.

python3 docs/api.py           writes docs/api.md
python3 docs/api.py --check   fails unless docs/api.md is what src/ makes

The order is that of src/frame.hpp. A paragraph of a public header is a declaration with its
comment: the comment becomes prose, and the declaration is shown without private parts and function
bodies. The headers are laid out by clang-format, so lines and indentation say what belongs
together."""
import pathlib
import re
import sys
import textwrap

DOCS = pathlib.Path(__file__).resolve().parent
SRC, PAGE = DOCS.parent / "src", DOCS / "api.md"
PUBLIC = re.compile(r'^#include "((\w+)/\2\.hpp)"$', re.M)
ROW = re.compile(r"^//   (\w+) +needs: ", re.M)
MEMBER_BODY = re.compile(r"inline [\w:<>]+ \w+::\w+\(")
TYPE = re.compile(r"^(?:class|struct|enum class|using)(?: \[\[\w+\]\])? ([\w:]+(?:<[\w(). ]+>)?)"
                  r"(?= *(?:\{|:[^:]|=))", re.M)
FORWARD = re.compile(r"^(?:template <[^\n]*>\n)?(?:class|struct|enum class) [\w:]+;"
                     r"(?: *//[^\n]*)?\n?", re.M)
CALLED = re.compile(r"^(?!template)(?:[\w:<>,*&\[\] ]+[ *&])?(\w+)\(([^()]*)", re.M)
CONSTANT = re.compile(r"^(?:(?:inline )?constexpr|extern const) [\w:<>& ]*?(\w+)(?= =|\{|;)",
                      re.M)
PRIVATE = re.compile(r"^( *) private:\n(?:.*\n)*?(?=\1 (?:public|protected):|\1\};)", re.M)
INTERNAL = re.compile(r"^ +(?:(?:struct|class) \w+;(?:  // internal.*)?|friend .*;)\n", re.M)
BODY = re.compile(r"\)((?:\s*(?:const|noexcept|override|&&?))*)\s*(\{|:(?!:))")
JSON = ('{"', '["')
LABEL = re.compile(r"^([A-Z]\w+): +")

INTRODUCTION = """\
# The declarations

Look up what a public type or function of `codeexec.hpp` promises: units, defaults, errors, and from
which threads it may be called. To learn by example, begin with the [README](../README.md). Members
keep the comments that they have in the header; private parts and function bodies are left out.

All names are in `namespace codeexec`. Nothing throws but `std::bad_alloc`: what can fail returns an
[`Expected`](#expected), and what a command does is data in its [`Result`](#result).

This page is made by `python3 docs/api.py` from the comments in `src/`.
"""


def fail(message):
    sys.exit(f"docs/api.py: {message}")


def closing(text, at):
    """The place behind the brace that closes the one at `at`."""
    depth = 0
    for place in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return place + 1
    fail(f"no closing brace: {text[at:at + 80]!r}")


def without_bodies(code):
    done, at = "", 0
    for found in BODY.finditer(code):
        line_start = code.rfind("\n", 0, found.start()) + 1
        if found.start() < at or "//" in code[line_start:found.start()]:
            continue
        begin, depth = found.end() - 1, 0
        while code[begin] != "{" or depth:  # behind the initializers of a constructor
            depth += {"(": 1, ")": -1}.get(code[begin], 0)
            begin += 1
        done += code[at:found.start()] + ")" + found[1] + ";"
        at = closing(code, begin)
    return done + code[at:]


def slug(heading):
    """As GitHub makes the anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def paragraphs(text):
    """(prefix of its namespace, lines) of each paragraph at namespace scope."""
    lines, depth, prefix, hidden = [], 0, "", False
    for line in text.splitlines() + [""]:
        if line.startswith("namespace detail {"):
            hidden = True
        elif line.startswith("}  // namespace detail"):
            hidden = False
        elif found := re.match(r"namespace (\w+) \{", line):
            prefix = found[1] + "::" if found[1] != "codeexec" else ""
        elif line.startswith("}  // namespace"):
            prefix = ""
        elif hidden or line.startswith(("inline namespace", "#include", "#pragma")):
            pass
        elif line or depth:
            code = line.split("//")[0]
            depth += code.count("{") - code.count("}")
            lines.append(line)
        elif lines:
            yield prefix, lines
            lines = []


def prose(comment, links):
    """Markdown of the lines of a comment."""
    chunks = [[]]  # of lines
    for at, line in enumerate(comment):
        kind = kind_of(line, comment[at + 1:at + 2], chunks[-1])
        if kind == "new" and chunks[-1]:
            chunks.append([])
        if line:
            chunks[-1].append(line)
    done = []
    for chunk in filter(None, chunks):
        if chunk[0].startswith(JSON) or is_table(chunk):
            done.append("```text\n" + textwrap.dedent("\n".join(chunk)) + "\n```")
        else:
            text = escaped(" ".join(line.strip() for line in chunk), links)
            done.append(re.sub(LABEL, r"**\1:** ", re.sub(r"^\\- ", "- ", text)))
    return "\n\n".join(done)


def kind_of(line, following, chunk):
    """Whether a line of a comment begins something "new" or is "more" of the chunk before it."""
    if not chunk or not line:
        return "new"
    if chunk[0].startswith(JSON):
        return "new" if re.search(r"[}\]]\.?$", chunk[-1]) else "more"
    if line.startswith(("- ", *JSON)) or re.match(LABEL, line.strip()):
        return "new"
    if chunk[0].startswith("- ") or re.match(LABEL, chunk[0].strip()):
        return "more" if line.startswith("  ") or chunk[0].startswith("  ") else "new"
    # Two indented lines are a table; one is the beginning of a paragraph.
    if is_table(chunk) or is_table([line, *following]):
        return "more" if is_table([*chunk, line]) else "new"
    return "new" if line.startswith("  ") else "more"


def is_table(chunk):
    return (len(chunk) > 1 and all(line.startswith("  ") for line in chunk) and
            not re.match(LABEL, chunk[0].strip()))


def escaped(text, links):
    """Prose with Markdown's characters made harmless, and names of types made links."""
    pieces = re.split(r"(`[^`]*`)", text)
    for at in range(0, len(pieces), 2):
        piece = re.sub(r"([\\*<\[\]|])|(?<![\w:])(_)|(_)(?!\w)",
                       lambda found: "\\" + found[0], pieces[at])
        pieces[at] = re.sub(r"[A-Za-z]\w+(?:::\w+)*(?:\(\))?",
                            lambda found: linked(found[0], links), piece)
    text = "".join(pieces)
    return re.sub(r"^([-+#>]|\d+\.)", r"\\\1", text)


def linked(name, links):
    for part in (name, name.rpartition("::")[0]):
        # A single word is linked where it cannot be a word of the sentence.
        if part in links and ("::" in name or re.search(r"[a-z][A-Z]", part)):
            return f"[`{name}`](#{links[part]})"
    return f"`{name}`" if "::" in name or name.endswith("()") else name


def headings(prefix, code):
    """The names that a declaration is looked up by, and the arguments of a function."""
    plain = re.sub(r" *//.*", "", code)
    types = [prefix + name for name in TYPE.findall(plain)]
    if types:
        return types, ""
    found = CALLED.findall(re.sub(r"\n +", " ", plain))
    if found:
        return [f"{prefix}{name}()" for name, _ in found], short(found[0][1])
    return [prefix + name for name in CONSTANT.findall(plain)], ""


def short(arguments):
    """The types of arguments, without what is around their names."""
    arguments = re.sub(r"<.*?>", "", re.sub(r" = [^,]*", "", arguments))
    kinds = [re.sub(r"const |std::| ?[&*]|\s\w+$", "", one.strip()) for one in arguments.split(",")]
    return ", ".join(re.sub(r" \w+$", "", kind.strip()) for kind in kinds if kind)


class Entry:
    """A declaration, or a comment that stands alone."""

    def __init__(self, prefix, lines):
        count = next((at for at, line in enumerate(lines) if not line.startswith("//")), len(lines))
        self.comment = [line[2:].removeprefix(" ") for line in lines[:count]]
        code = "\n".join(lines[count:]) + "\n"
        code = INTERNAL.sub("", PRIVATE.sub("", FORWARD.sub("", code)))
        self.code = re.sub(r"\n\n+(?= *\}|$)|\n(?=\n\n)", "\n", without_bodies(code)).strip("\n")
        self.names, self.arguments = headings(prefix, self.code)
        self.heading = ""


def read_section(name):
    """What a section says of itself, and its entries."""
    text = (SRC / name).read_text(encoding="ascii")
    entries = [Entry(*paragraph) for paragraph in paragraphs(text.partition("#pragma once")[2])]
    # The body of a member is no declaration: its class has that.
    entries = [entry for entry in entries if not MEMBER_BODY.match(entry.code)]
    for entry in entries:
        if entry.code and not entry.names:
            fail(f"{name}: no name is found in\n{entry.code}")
    return text.splitlines()[0].removeprefix("// "), entries


def made():
    frame = (SRC / "frame.hpp").read_text(encoding="ascii")
    sections = [(found[2], *read_section(found[1])) for found in PUBLIC.finditer(frame)]
    for name in ROW.findall(frame):
        header = f"{name}/{name}.hpp"
        if (SRC / header).exists() and header not in (found[1] for found in PUBLIC.finditer(frame)):
            fail(f"src/frame.hpp does not include {header}")
    shown = [entry for _, _, entries in sections for entry in entries if entry.code]
    firsts = [entry.names[0] for entry in shown]
    links = {}
    for entry in shown:
        entry.heading = entry.names[0]
        if firsts.count(entry.heading) > 1:
            entry.heading = entry.heading.replace("()", f"({entry.arguments})")
        for name in entry.names:
            links.setdefault(name, slug(entry.heading))
    anchors = [slug(entry.heading) for entry in shown]
    if len(set(anchors)) < len(anchors):
        fail(f"two headings have one anchor: {sorted(anchors)}")
    page = [INTRODUCTION, "| section | what it does | names |\n|---|---|---|"]
    for section, job, entries in sections:
        names = [f"[`{entry.heading}`](#{slug(entry.heading)})" for entry in entries if entry.code]
        page.append(f"| [{section}](#section-{section}) | {job} | {' '.join(names)} |")
    for section, job, entries in sections:
        page.append(f"\n## Section {section}\n\n{job} Declared in `src/{section}/{section}.hpp`.")
        for entry in entries:
            if entry.code:
                page.append("\n### " + entry.heading.replace("<", "\\<"))
            if entry.comment:
                page.append("\n" + prose(entry.comment, links))
            if entry.code:
                page.append(f"\n```cpp\n{entry.code}\n```")
    return "\n".join(page) + "\n"


def main(arguments):
    if arguments not in ([], ["--check"]):
        fail(f"{' '.join(arguments)!r} is no call of it\n{__doc__}")
    page = made()
    if not arguments:
        PAGE.write_text(page, encoding="ascii")
    elif not PAGE.exists() or PAGE.read_text(encoding="ascii") != page:
        fail("docs/api.md is not what src/ makes: run python3 docs/api.py")


main(sys.argv[1:])
