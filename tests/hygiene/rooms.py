"""The rules between the rooms of src/, as src/README.md has them: which part may include what,
where names stand, how long a part may be. Each broken rule is one line that says what to do.
  [ROOT=.] python3 tests/hygiene/rooms.py"""

import re
import subprocess
import sys

from checks import ROOT, check, failures

SRC = ROOT / "src"
sys.dont_write_bytecode = True
sys.path.insert(0, str(SRC))
import join  # its tables of sections and wings

LONGEST_PART, LONGEST_TEST = 600, 900
SYSTEM_HEADERS = ["base/base.hpp", "base/platform_internal.hpp"]  # the only parts with some
# Rooms with functions of several parts that call each other in a circle. (Members of a class do so
# in more of them: of the parsers and walkers of what is nested.)
CIRCLES = {"process", "tools"}

# Of CMakeLists.txt: the wings that a wing needs.
WING_NEEDS = re.compile(r"^set\(needs_of_([a-z]+)((?: [a-z]+)*)\)$", re.M)
INCLUDE = re.compile(r'#include "([^"]+)"')
TYPE = re.compile(r"(?:class|struct|union|enum class) (?:\[\[\w+\]\] )?(\w+)(?: final)?(?= [:{]|$)")
ALIAS = re.compile(r"using (\w+) =")
VALUE = re.compile(r"[^=({]*?\b(\w+)(?:\[\w*\])* ?(?:=|\{|;)")
FUNCTION = re.compile(r"(?:[^=(]*?[\s*&>])?((?:\w+::)*~?\w+)\(")
WORD = re.compile(r"\b[A-Za-z_]\w*")
CALL = re.compile(r"(?<![.\w>:])([a-z]\w*)\(")
TOKEN = re.compile(r'//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|\S')
LITERALS = re.compile(r'(?:"(?:\\.|[^"\\\n])*"\s*)+')  # texts that the compiler joins


def code_of(text):
    """Without comments, but for those that name a namespace, and without what strings hold."""
    text = re.sub(r'R"(\w*)\(.*?\)\1"', '""', text, flags=re.S)
    return re.sub(r'//(?! namespace)[^\n]*|"(?:\\.|[^"\\\n])*"', '""', text)


def named(line):
    """The name that a line at the left margin declares or defines, or None."""
    line = re.sub(r"^(?:\[\[\w+\]\] |template <.*?> |inline |CODEEXEC_IN_CHILD )*", "", line)
    for pattern in (TYPE, ALIAS):
        if found := pattern.match(line):
            return found[1]
    function, value = FUNCTION.match(line), VALUE.match(line)
    if value and (not function or value.end() <= function.end()):
        return value[1]
    return function[1] if function else None


def names_of(text):
    """Names at namespace scope, each with the innermost namespace: `inner`, `` or another."""
    spaces = []
    for line in text.split("\n"):
        if opening := re.match(r"(?:inline )?namespace ?(\w*) ?\{$", line):
            spaces.append(opening[1])
        elif line.startswith("}  // namespace"):
            spaces.pop()
        elif re.match(r"(?:struct|class) \w+;$", line):
            continue  # defined elsewhere
        elif re.match(r"[A-Za-z\[]", line) and not line.startswith(("static_assert", "template <")):
            name = named(line)
            if name and "::" not in name and name != "operator":
                yield name, spaces[-1] if spaces else None


def wrong_forms_of(text):
    """Texts with a % for each value whose values, in braces behind them, are more or fewer."""
    tokens = [token for token in TOKEN.findall(text) if not token.startswith("//")]
    marks, form = 0, None
    for at, token in enumerate(tokens):
        if token[0] == '"':
            marks = token.count("%") + (marks if form else 0)
            form = form or token
        elif form and token == "," and tokens[at + 1] == "{" and tokens[at + 2] != "}":
            values, depth = 1, 0
            for inner in tokens[at + 1 :]:
                depth += (inner in ("(", "[", "{")) - (inner in (")", "]", "}"))
                values += inner == "," and depth == 1
                if depth == 0:
                    break
            if marks and values != marks:
                yield form
            form = None
        else:
            form = None


def packed_tables_of(text):
    """Texts that look like tables: a NUL or a tab behind a word, and more rows behind that."""
    text = re.sub(r'R"(\w*)\(.*?\)\1"', '""', text, flags=re.S)
    for literal in LITERALS.finditer(re.sub(r"^ *//[^\n]*", "", text, flags=re.M)):
        whole = "".join(re.findall(r'"((?:\\.|[^"\\\n])*)"', literal[0]))
        if re.search(r"(?<!\\)[\w.)]\\[0t]\w.*\\[0n]", whole):
            yield whole[:60]


def circles_of(graph):
    """Sets of nodes that reach each other."""
    reach = {}
    for start in graph:
        seen, left = set(), [start]
        while left:
            for node in graph.get(left.pop(), ()):
                if node not in seen:
                    seen.add(node)
                    left.append(node)
        reach[start] = seen
    found = {frozenset(n for n in graph if n in reach[m] and m in reach[n]) for m in graph}
    return sorted(sorted(circle) for circle in found if circle)


def main():
    parts = {str(p.relative_to(SRC)): p.read_text() for p in sorted(SRC.glob("*/*.[ch]pp"))}
    code = {name: code_of(text) for name, text in parts.items()}
    room = {name: name.split("/")[0] for name in parts}
    frame = join.read("frame.hpp")
    needs, declared = join.needs_of(frame)
    wing_of = {room: wing.lower() for room, wing in join.wings_of(frame, needs).items()}
    below = {}
    for row in WING_NEEDS.finditer((ROOT / "CMakeLists.txt").read_text()):
        direct = row[2].split()
        below[row[1]] = {row[1], *direct}.union(*(below[wing] for wing in direct))
    includes = {name: INCLUDE.findall(text) for name, text in parts.items()}

    joined = subprocess.run(
        [sys.executable, SRC / "join.py", "--check"], stderr=subprocess.PIPE, text=True
    )
    check("codeexec.hpp is what src/ makes", joined.stderr.splitlines())
    check(
        "each folder of src/ is a section in the manual's table",
        [
            f"src/{r}: add it to the table in src/frame.hpp"
            for r in sorted(set(room.values()) - set(needs))
        ],
    )
    check(
        "a section needs sections above it",
        [
            f"{r} needs {n}, which stands below it in the table of src/frame.hpp"
            for r in needs
            for n in needs[r]
            if n not in list(needs)[: list(needs).index(r)]
        ],
    )

    def forbidden(name):
        for other in includes[name]:
            if other not in parts:
                yield f'src/{name} includes {other}, which is not in src/: write "room/part.hpp"'
            elif other.endswith(".cpp"):
                yield f"src/{name} includes {other}: declare what it uses in an internal header"
            elif room[other] not in [room[name], *needs[room[name]]]:
                yield (
                    f"src/{name} includes {other}, but {room[name]} does not need {room[other]}: "
                    "move the line to another room, or the need into the table of src/frame.hpp"
                )
            elif other == f"{room[other]}/{room[other]}.hpp":
                continue
            elif room[other] in declared[room[name]]:
                yield (
                    f"src/{name} includes {other}, but {room[name]} needs only the declarations of "
                    f"{room[other]}, as the parentheses in the table of src/frame.hpp say"
                )
            elif wing_of[room[other]] not in below[wing_of[room[name]]]:
                yield (
                    f"src/{name} includes {other}, whose wing {wing_of[room[other]]} may be "
                    f"missing where {wing_of[room[name]]} is: meet by an interface, see "
                    "ExecutorWings"
                )

    check(
        "parts include headers of their own room and of those that it needs",
        [line for name in parts for line in forbidden(name)],
    )
    used = {
        r: {room[o] for n in parts if room[n] == r for o in includes[n] if o in parts}
        for r in needs
    }
    check(
        "a section includes all that the table says it needs",
        [
            f"{r} includes nothing of {n}: take it out of the table in src/frame.hpp"
            for r in needs
            for n in needs[r]
            if n not in used[r]
        ],
    )
    check(
        "no headers include each other in a circle",
        [" -> ".join(circle) for circle in circles_of(includes)],
    )
    check(
        "system headers stand in one place",
        [
            f"src/{name}: move its `#include <...>` to src/{SYSTEM_HEADERS[1]}"
            for name in parts
            if "#include <" in parts[name] and name not in SYSTEM_HEADERS
        ],
    )

    check(
        "a text has a % for each of its values",
        [
            f"src/{name}: {form}: count them"
            for name, text in parts.items()
            for form in wrong_forms_of(text)
        ],
    )

    check(
        "no table is a text that is cut up at run time",
        [
            f"src/{name}: \"{table}...\": make it rows, see src/base/names_internal.hpp"
            for name, text in parts.items()
            for table in packed_tables_of(text)
        ],
    )

    homes, exported = {}, {}
    for name, text in code.items():
        for word, space in names_of(text):
            if space == "inner" and name.endswith(".hpp"):
                exported.setdefault(word, set()).add(name)
            if space in ("", "inner"):
                homes.setdefault(word, set()).add(name)
    check(
        "a name is exported by one internal header",
        [
            f"{word}: in {' and '.join(sorted(where))}"
            for word, where in exported.items()
            if len(where) > 1
        ],
    )
    check(
        "names that are not public are unique in the house, as they meet in codeexec.hpp",
        [
            f"{word}: rename it in one of {' '.join(sorted(where))}"
            for word, where in homes.items()
            if len(where) > 1 and word not in exported
        ],
    )
    check(
        "what a part has for itself has no name that an internal header exports, as it would hide "
        "that where wings share it",
        [
            f"{word}: in src/{name}, and exported by {' '.join(sorted(exported[word]))}: rename it"
            for name, text in code.items()
            for word, space in names_of(text)
            if space == "" and word in exported
        ],
    )
    tests = {
        p: p.read_text(errors="replace")
        for p in (ROOT / "tests").rglob("*.[ch]pp")
        if "build" not in p.relative_to(ROOT).parts
    }
    inside = {p: code_of(text) for p, text in tests.items() if "_internal.hpp" in text}
    users = {}
    for name, text in [*code.items(), *inside.items()]:
        for word in WORD.findall(text):
            users.setdefault(word, {}).setdefault(name, 0)
            users[word][name] += 1

    def defines(name, word):
        return name in homes[word] and str(name).endswith(".cpp")

    check(
        "what an internal header exports is used by another part",
        [
            f"{word}: nobody uses it but {' '.join(sorted(homes[word]))}; move it there"
            for word, headers in exported.items()
            for header in headers
            if not any(n != header and not defines(n, word) for n in users[word])
            and users[word][header] < 2
        ],
    )

    calls = {name: set() for name in parts if name.endswith(".cpp")}
    for user in calls:
        for word in set(CALL.findall(code[user])) & set(exported):
            # Another room's function of this name is meant only where its header may be included.
            if any(room[h] in [room[user], *needs[room[user]]] for h in exported[word]):
                calls[user] |= {n for n in homes[word] - {user} if n in calls}
    circles = circles_of(calls)
    print(
        "parts that call each other in a circle, as they may:",
        *map(" ".join, circles or ["none"]),
        sep="\n  ",
    )
    check(
        "parts call each other in a circle only inside one room",
        [" ".join(c) for c in circles if len({room[n] for n in c}) > 1],
    )
    check("no room has a new circle", [" ".join(c) for c in circles if room[c[0]] not in CIRCLES])

    page = [p for ending in ("html", "css", "js") for p in SRC.glob(f"*/*.{ending}")]
    lines = {
        **{f"src/{n}": t.count("\n") for n, t in parts.items() if n != "report/page_internal.hpp"},
        **{f"src/{p.relative_to(SRC)}": p.read_text().count("\n") for p in page},
        **{str(p.relative_to(ROOT)): t.count("\n") for p, t in tests.items()},
    }
    longest = {"src": LONGEST_PART, "tests": LONGEST_TEST}
    check(
        f"a part has at most {LONGEST_PART} lines, a test at most {LONGEST_TEST}",
        [f"{n} has {k}: cut it by theme" for n, k in lines.items() if k > longest[n.split("/")[0]]],
    )
    whole = sum(text.count("\n") for text in parts.values())
    print(f"{len(parts)} parts of {whole} lines")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
