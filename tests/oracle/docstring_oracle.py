#!/usr/bin/env python3
"""Compares python_docstring with ast.get_docstring on the Python files of this machine.

docstring_oracle.py --program codeexec-docstring [--all] [FILE...]

Without --all: a sample of the standard library and, of long files, some names. Exit status 77 when
there is nothing to compare with.
"""
import argparse
import ast
import glob
import inspect
import io
import json
import os
import subprocess
import sys
import sysconfig
import tokenize
import warnings

SAMPLE_FILES = 250
SAMPLE_NAMES = 12


def cleandoc(text):
    """inspect.cleandoc of Python 3.13, which takes blanks alone for indentation."""
    lines = text.expandtabs().split("\n")
    margin = sys.maxsize
    for line in lines[1:]:
        content = len(line.lstrip(" "))
        if content:
            margin = min(margin, len(line) - content)
    lines[0] = lines[0].lstrip(" ")
    if margin < sys.maxsize:
        lines[1:] = [line[margin:] for line in lines[1:]]
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        lines.pop(0)
    return "\n".join(lines)


def is_accessor(node):
    """Whether it is the setter or deleter of a property that has a getter of the same name."""
    return any(
        isinstance(mark, ast.Attribute)
        and mark.attr in ("setter", "deleter")
        and isinstance(mark.value, ast.Name)
        and mark.value.id == node.name
        for mark in node.decorator_list
    )


def definitions(body):
    """The functions and classes of one level, in the order of the source."""
    found = []
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if not is_accessor(node):
                found.append(node)
            continue
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, field, [])
            if isinstance(inner, list):
                waiting.extend(inner)
    return sorted(found, key=lambda node: node.lineno)


def expectations(tree):
    """Pairs of a dotted name and its raw docstring; of a name that does not exist: False."""
    yield "", ast.get_docstring(tree, clean=False)
    waiting = [("", tree.body)]
    while waiting:
        prefix, body = waiting.pop()
        last = {node.name: node for node in definitions(body)}
        yield prefix + "no_such_name", False
        for name, node in last.items():
            yield prefix + name, ast.get_docstring(node, clean=False)
            if isinstance(node, ast.ClassDef):
                waiting.append((prefix + name + ".", node.body))
            else:
                nested = definitions(node.body)
                if nested:
                    yield prefix + name + "." + nested[0].name, False


def candidates():
    library = sysconfig.get_paths()["stdlib"]
    places = [library, os.path.dirname(library) + "/python3", "/usr/local/lib"]
    files = set()
    for place in places:
        files.update(glob.glob(place + "/**/*.py", recursive=True))
    return sorted(os.path.realpath(file) for file in files)


def judge(program, path, names):
    program.stdin.write(json.dumps({"path": path, "names": names}) + "\n")
    program.stdin.flush()
    answer = program.stdout.readline()
    if not answer:
        sys.exit("docstring_oracle: the program ended at %s" % path)
    return json.loads(answer)


def agrees(raw, said):
    if raw is False:
        return isinstance(said, dict) and said["code"] == "not_found"
    # What UTF-8 cannot say.
    raw = "".join("\ufffd" if 0xD800 <= ord(c) <= 0xDFFF else c for c in raw or "")
    if said == cleandoc(raw):
        return True
    # The module reads \N{...} and the library does not.
    return isinstance(said, str) and "\\N{" in said


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    assert cleandoc("a\n    b\n  c\n") == inspect.cleandoc("a\n    b\n  c\n")
    warnings.simplefilter("ignore")

    files = options.files or candidates()
    if not files:
        print("SKIPPED: no Python files to compare with")
        return 77
    if not options.all and not options.files:
        files = files[:: max(1, len(files) // SAMPLE_FILES)]
    program = subprocess.Popen(
        [options.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    )
    compared = skipped = wrong = with_text = 0
    for path in files:
        with open(path, "rb") as file:
            source = file.read()
        try:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
            if encoding not in ("utf-8", "utf-8-sig"):
                raise ValueError("another encoding")
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError):
            skipped += 1  # for other Pythons, in other encodings, or no Python
            continue
        pairs = list(expectations(tree))
        if not options.all:
            pairs = pairs[:: max(1, len(pairs) // SAMPLE_NAMES)]
        said = judge(program, path, [name for name, _ in pairs])
        for (name, raw), text in zip(pairs, said):
            compared += 1
            with_text += bool(raw)
            if not agrees(raw, text):
                wrong += 1
                print("%s: %r\n  Python: %r\n  said:   %r" % (path, name, raw, text))
    program.stdin.close()
    print(
        "docstrings: %d files, %d names (%d with a docstring), %d files skipped, %d wrong"
        % (len(files) - skipped, compared, with_text, skipped, wrong)
    )
    if with_text < 100 and not options.files:
        print("docstring_oracle: too few to mean anything")
        return 1
    return 1 if wrong or program.wait() != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
