"""Do the texts that a model reads name only what there is?

  [ROOT=.] python3 tests/hygiene/named.py

Notes, refusals and advice say "use read_file", "give it with run_in_background_after". A word with
an underscore in a sentence of these parts must be a name: a literal of its own somewhere in src/
("read_file", as tables have tools, arguments and fields), or an option (limit-processes).
"""

import os
import pathlib
import re
import sys

root = pathlib.Path(os.environ.get("ROOT", "."))
read_by_models = ["src/tools", "src/jobs", "src/executor/advice.cpp",
                  "src/containers/user_tools.cpp", "src/paths/delete_guard.cpp"]
literal = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
sentence = re.compile(r'(?:"(?:[^"\\\n]|\\.)*"\s*)+')


def text_of(path):
    return re.sub(r"^\s*//.*|\s//\s.*", "", path.read_text(), flags=re.M)


def words_of(text):
    """The words with an underscore of all sentences, with the sentence."""
    for match in sentence.finditer(text):
        whole = "".join(literal.findall(match.group()))
        if whole.count(" ") < 3:
            continue
        for word in re.findall(r"(?<![\w{])[a-z]+(?:_[a-z0-9]+)+(?![\w(}])", whole):
            yield word, whole


def main():
    parts = [path for path in (root / "src").rglob("*.?pp")]
    known = set()
    for path in parts:
        known.update(name.replace("-", "_") for name in literal.findall(text_of(path)))
    known.update(["command_line_" + name for name in known])  # as MassGen has the keys
    wrong = []
    for path in parts:
        name = path.relative_to(root).as_posix()
        if any(name.startswith(part) for part in read_by_models):
            wrong += [f"{name}: there is no {word}: {whole}"
                      for word, whole in words_of(text_of(path)) if word not in known]
    # It must see what it looks for.
    seen = list(words_of('x = "use read_file, " "or give it with no_such_argument";'))
    if [word for word, _ in seen] != ["read_file", "no_such_argument"] or "read_file" not in known \
            or "no_such_argument" in known:
        wrong.append("named.py: it does not see names")
    for line in wrong:
        print(line)
    return 1 if wrong else 0


sys.exit(main())
