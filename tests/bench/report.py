"""Makes the report of a run of the benchmarks, and keeps the pages true to it. run.sh calls it:

  report.py FOLDER [key=value...] [--check | --readme] [--repository DIR]

FOLDER/rows.jsonl holds what the benchmarks have written. From it come FOLDER/results.json and
FOLDER/results.md, and the table is printed. Then:

  (always)   numbers in README.md, in docs/numbers.md and in the manual of codeexec.hpp that look
             measured stand in claims.txt, and what that names is there
  --check    each row of the tables in docs/numbers.md and README.md is one that the benchmarks have
             printed, and the rows of claims.txt say what the texts say
  --readme   the same, and both tables are written anew with the numbers of this run

Each problem is a line "FAILED: ...", and the exit status is 1.
"""
import argparse
import datetime
import json
import os
import platform
import re
import sys

BEGIN = "<!-- numbers: begin; `sh tests/bench/run.sh --docker --readme` writes what follows -->"
END = "<!-- numbers: end -->"
TABLES = ("docs/numbers.md", "README.md")  # the second has an extract of the first
problems = []


def failed(message):
    problems.append(message)
    print("FAILED: " + message)


# numbers ------------------------------------------------------------------------------------------


def digits(value, least):
    """Three significant digits of big numbers, `least` of small ones."""
    if value == 0:
        return "0"
    size = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    return f"{value:.{max(0, least - size)}f}" if size else f"{value:.{least}g}"


# From how many of the unit on another one is used, and how many of the first that is.
SCALES = {
    "us": [(1e6, 1e6, "s"), (1e3, 1e3, "ms"), (1, 1, "us"), (0, 1e-3, "ns")],
    "ms": [(1e3, 1e3, "s"), (1, 1, "ms"), (0, 1e-3, "us")],
    "KiB": [(10240, 1024, "MiB"), (0, 1, "KiB")],
    "bytes": [(1024, 1024, "KiB"), (0, 1, "bytes")],
}


def scaled(value, unit):
    for least, factor, name in SCALES.get(unit, []):
        if abs(value) >= least:
            return value / factor, name
    return value, unit


def shown(figure, unit):
    if unit == "calls/s":
        return f"{figure['value']:,.0f} per s"
    value, name = scaled(figure["value"], unit)
    if value == int(value):
        return f"{int(value)} {name}"
    return f"{digits(value, 3 if abs(value) < 10 else 2)} {name}"


def spread(figure, unit):
    if figure["low"] == figure["high"]:
        return ""
    return f"{shown({'value': figure['low']}, unit)} to {shown({'value': figure['high']}, unit)}"


def shown_ratio(ratio):
    if ratio is None:
        return ""
    if 0 < ratio < 0.02:
        return f"1/{float(f'{1 / ratio:.2g}'):,.0f}"
    return digits(ratio, 3 if ratio < 10 else 2)


def gate_text(row):
    gate = row.get("gate")
    if not gate:
        return ""
    relation = "at most" if gate["relation"] == "<=" else "at least"
    text = f"{relation} {gate['limit']:g}"
    if "ratio" in row and abs(gate["value"] - row["ratio"]) > 1e-3 * abs(row["ratio"]):
        text += f", is {digits(gate['value'], 3)}"
    return text + ("" if gate["holds"] else ": **missed**")


# rows ---------------------------------------------------------------------------------------------


def key(row):
    return row["what"], row.get("rival", "")


def named(name):
    return name[0] + (" / " + name[1] if name[1] else "")


def read_rows(path):
    rows = []
    group = ""
    with open(path, encoding="utf-8") as file:
        for line in filter(str.strip, file):
            row = json.loads(line)
            if set(row) == {"group"}:
                group = row["group"]
                continue
            row["group"] = group
            rows.append(row)
    names = [key(row) for row in rows]
    for name in sorted(set(name for name in names if names.count(name) > 1)):
        failed(f"two rows have the name: {named(name)}")
    return rows


def escaped(text):
    return text.replace("|", "\\|").replace("*", "\\*")


def cells_of(row):
    """What the pages and results.md have in common: name, ours, rival's, ratio."""
    theirs = ""
    if row.get("rival"):
        theirs = f"{shown(row['theirs'], row['unit'])}: {escaped(row['rival'])}"
    return [escaped(row["what"]), shown(row["ours"], row["unit"]), theirs,
            shown_ratio(row.get("ratio"))]


def results_table(rows):
    lines = ["| what | codeexec | beside | ratio | spread: codeexec | spread: beside | gate |",
             "|---|---|---|---|---|---|---|"]
    group = None
    for row in rows:
        if row["group"] != group:
            group = row["group"]
            lines.append(f"| **{group}** | | | | | | |")
        if "skipped" in row:
            rival = escaped(row["rival"])
            lines.append(f"| {escaped(row['what'])} | SKIPPED: {escaped(row['skipped'])} "
                         f"| {rival} | | | | |")
            continue
        theirs = spread(row["theirs"], row["unit"]) if row.get("rival") else ""
        lines.append("| " + " | ".join(cells_of(row) + [spread(row["ours"], row["unit"]), theirs,
                                                       gate_text(row)]) + " |")
    return lines


# the machine --------------------------------------------------------------------------------------


def first_match(path, pattern, otherwise):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            found = re.search(pattern, file.read(), re.M)
        return found.group(1).strip() if found else otherwise
    except OSError:
        return otherwise


def machine_facts(pairs):
    flags = first_match("/proc/cpuinfo", r"^flags\s*:(.*)$", "")
    facts = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "processors": os.cpu_count(),
        "processor": first_match("/proc/cpuinfo", r"^model name\s*:(.*)$", platform.machine()),
        "virtual": "hypervisor" in flags.split(),
        "memory_GiB": round(int(first_match("/proc/meminfo", r"^MemTotal:\s*(\d+)", "0")) / 2**20),
        "system": platform.system(),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }
    facts.update(pairs)
    return facts


def machine_line(facts):
    kind = "virtual machine" if facts["virtual"] else "machine"
    return (f"{facts['processors']}-CPU {kind} ({facts['processor']}), {facts['system']} "
            f"{facts['kernel']}, {facts.get('compiler', '?')} {facts.get('flags', '')}, "
            f"{facts['date'].split()[0]}")


# the pages and the manual -------------------------------------------------------------------------


def split_page(repository, page):
    """Before the table, the lines of the table, and after it."""
    with open(os.path.join(repository, page), encoding="utf-8") as file:
        text = file.read()
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        failed(f"{page} does not have both markers of the table of numbers, once each")
        return None
    before, rest = text.split(BEGIN)
    inside, after = rest.split(END)
    return before, inside.strip("\n").split("\n"), after


def names_in(page, lines):
    names = []
    for line in lines:
        if not line.startswith("|") or line.startswith(("| what |", "|---")):
            continue
        cells = [cell.strip().replace("\\|", "|").replace("\\*", "*")
                 for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) != 4:
            failed(f"{page}: not four cells: {line}")
            continue
        rival = cells[2]
        if ": " in rival:
            rival = rival.split(": ", 1)[1]
        names.append((cells[0], rival))
    return names


def written_table(names, by_name, facts):
    lines = [f"Measured on a {machine_line(facts)}:", "",
             "| what | codeexec | beside | ratio |", "|---|---|---|---|"]
    return lines + ["| " + " | ".join(cells_of(by_name[name])) + " |" for name in names]


def handle_page(repository, page, rows, facts, write):
    parts = split_page(repository, page)
    if not parts:
        return
    before, lines, after = parts
    names = names_in(page, lines)
    by_name = {key(row): row for row in rows}
    good = True
    if not names:
        failed(f"{page}: the table of numbers is empty")
        good = False
    for name in names:
        row = by_name.get(name)
        if row is None:
            failed(f"{page} has a row that no benchmark has printed: {named(name)}")
            good = False
        elif "skipped" in row:
            failed(f"{page} has a row that was skipped: {named(name)}: {row['skipped']}")
            good = False
    if not write or not good:
        return
    table = written_table(names, by_name, facts)
    with open(os.path.join(repository, page), "w", encoding="utf-8") as file:
        file.write(before + BEGIN + "\n" + "\n".join(table) + "\n" + END + after)
    print(f"{page}: wrote {len(names)} rows")


def texts(repository):
    """Of each file what is meant to be read: pages without the table, the manual of the header."""
    found = {}
    for page in TABLES:
        parts = split_page(repository, page)
        found[page] = parts[0] + parts[2] if parts else ""
    with open(os.path.join(repository, "codeexec.hpp"), encoding="utf-8") as file:
        manual = file.read().split("#ifndef CODEEXEC_HPP")[0]
    manual = re.sub(r"^// ?", "", manual, flags=re.M)
    found["codeexec.hpp"] = manual
    return {name: re.sub(r"\s+", " ", text) for name, text in found.items()}


# What is stated as measured: bounds and defaults are written in whole seconds and in KiB, MiB, GiB.
MEASURED = re.compile(r"\d[\d.,]*\s?(?:us|ms|[kKMG]B|[KMG]iB/s|times (?:as|less|more)|%)(?!\w)"
                      r"|\d+\.\d\d+ ?s\b"
                      r"|\babout [\w.,]+ [KMG]iB"
                      r"|\b(?:an?|one|two|few|some|half|of|[\d.,]+) (?:milli|micro)seconds?\b")


def check_claims(repository, rows):
    claims = []
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "claims.txt"), encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                claims.append([cell.strip() for cell in line.split("|")])
    by_what = {row["what"]: row for row in rows or []}
    contents = texts(repository)
    for name, words, what, least, most in claims:
        if words not in contents[name]:
            failed(f"claims.txt: {name} does not say any more: {words}")
        contents[name] = contents[name].replace(words, " ")
        if rows is None:
            continue
        row = by_what.get(what)
        if row is None:
            failed(f"{name}: \"{words}\": no benchmark has printed: {what}")
        elif "skipped" in row:
            failed(f"{name}: \"{words}\": was skipped: {what}: {row['skipped']}")
        elif not float(least) <= row["ours"]["value"] <= float(most):
            failed(f"{name}: \"{words}\": measured was {shown(row['ours'], row['unit'])}")
    for name, text in contents.items():
        for found in MEASURED.finditer(text):
            around = text[max(0, found.start() - 40):found.end() + 20]
            failed(f"{name}: a number without a row of the benchmarks (claims.txt): ...{around}...")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("facts", nargs="*")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--readme", action="store_true")
    parser.add_argument("--repository",
                        default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    options = parser.parse_args()
    facts = machine_facts(dict(fact.split("=", 1) for fact in options.facts))
    rows = read_rows(os.path.join(options.folder, "rows.jsonl"))
    with open(os.path.join(options.folder, "results.json"), "w", encoding="utf-8") as file:
        json.dump({"machine": facts, "rows": rows}, file, indent=1)
        file.write("\n")
    lines = [f"Medians; a spread is from the tenth to the ninetieth percentile. "
             f"{machine_line(facts)}, {facts['memory_GiB']} GiB of memory, "
             f"Python {facts['python']}.", ""]
    lines += results_table(rows)
    with open(os.path.join(options.folder, "results.md"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    print("\n" + "\n".join(lines) + "\n")
    complete = options.check or options.readme
    check_claims(options.repository, rows if complete else None)
    if complete:
        for page in TABLES:
            handle_page(options.repository, page, rows, facts, options.readme)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
