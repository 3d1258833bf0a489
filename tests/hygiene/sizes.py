"""How large things may be: functions, classes, the interface; and how much of it is commented. Each
that is too large is one line. lizard (PyPI) finds the functions.
  [ROOT=.] python3 tests/hygiene/sizes.py"""

import collections
import re
import sys

import lizard
from checks import ROOT, check, failures

LONGEST_FUNCTION = 60  # lines
LARGEST_CLASS, MOST_FUNCTIONS = 600, 40  # lines in functions; functions of more than one line
LEAST_COMMENTS = 10  # percent of the lines of the definition half
MOST_TYPES = 108  # in the declaration half, with those that stand in others; a template is one

TYPE = re.compile(
    r"^ *(?:struct|class|enum class) (?:\[\[\w+\]\] )?(\w+)(?!\w|<void>)[^;{]*\{", re.M
)
NAMESPACE = re.compile(r"^codeexec::v0_1(?:::(?=[a-z])\w+)*(?:::|$)|^inner::")


def main():
    functions = []
    for part in sorted(ROOT.glob("src/*/*.[ch]pp")):
        found = lizard.analyze_file(str(part)).function_list
        functions += [(str(part.relative_to(ROOT)), function) for function in found]
    longest = max(function.length for _, function in functions)
    check(
        f"a function has at most {LONGEST_FUNCTION} lines, and the longest of {len(functions)} "
        f"has {longest}",
        [
            f"{part}:{function.start_line}: {function.name} has {function.length}"
            for part, function in functions
            if function.length > LONGEST_FUNCTION
        ],
    )

    lines, count = collections.Counter(), collections.Counter()
    for _, function in functions:
        owner = NAMESPACE.sub("", function.name).rpartition("::")[0]
        if owner and function.length > 1:
            lines[owner] += function.length
            count[owner] += 1
    check(
        f"a class has at most {LARGEST_CLASS} lines of functions, and {MOST_FUNCTIONS} of them",
        [
            f"{owner}: {lines[owner]} lines, {count[owner]} functions: give a job to another class"
            for owner in lines
            if lines[owner] > LARGEST_CLASS or count[owner] > MOST_FUNCTIONS
        ],
    )

    header = (ROOT / "codeexec.hpp").read_text()
    declarations, _, definitions = header.partition("\n#endif  // CODEEXEC_HPP\n")
    total = definitions.count("\n")
    comments = sum("//" in line for line in definitions.split("\n"))
    check(
        f"{100 * comments / total:.1f} % of them have a comment",
        [f"that is less than {LEAST_COMMENTS}"] * (100 * comments < LEAST_COMMENTS * total),
    )
    types = len(TYPE.findall(declarations))
    check(
        f"the declaration half has {types} types",
        [f"that is more than {MOST_TYPES}"] * (types > MOST_TYPES),
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
