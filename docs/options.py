#!/usr/bin/env python3
"""Makes what documents the options of codeexec-mcp, from the program's own table of them:

    python3 docs/options.py build/codeexec-mcp            writes the files
    python3 docs/options.py --check build/codeexec-mcp    are they what it would write?

docs/options.md, the man page docs/codeexec-mcp.1 and the completions of bash, zsh and fish in
docs/completions. The rows are src/*/option_table.cpp; the program prints them with --help-all
--json.
"""
import json
import pathlib
import re
import subprocess
import sys
import textwrap

DOCS = pathlib.Path(__file__).resolve().parent
MADE = "Made by docs/options.py from src/*/option_table.cpp: change those, then run it."
PROGRAM = "codeexec-mcp"
RELEASED = "2026-11-21"  # the date of the version, for the man page

# The page with more: that of the first row whose pattern matches, else that of the group.
PAGES = [
    ("execution-mode|place-copy|place-workspace", "places.md"),
    ("allow-domains|network$", "network.md"),
    ("ask-|idle-timeout", "ask.md"),
    ("limit-|allowed-paths|read-only", "sandbox.md"),
    ("client-config|write", "moving-in.md"),
    ("report|output|replay|transcript|audit|verify-audit", "report.md"),
    ("sandbox-report|explain", "sandbox.md"),
    ("list-rules|check", "policy.md"),
    ("list-domains", "network.md"),
    ("place|json", "places.md"),
]
GROUP_PAGES = {
    "Where commands run": "serve.md",
    "Policy": "policy.md",
    "Sandbox and network": "sandbox.md",
    "Limits": "serve.md",
    "Environment": "serve.md",
    "Background and tools": "terminal.md",
    "Records": "report.md",
    "Containers": "containers.md",
    "Other places": "places.md",
    "On the command line only": "serve.md",
}

ALL = {"local", "docker", "user-container", "command", "ssh", "slurm", "kubernetes"}
# Where an option has an effect, when its group does not say it.
MODES = [
    (ALL, ""),
    (ALL - {"user-container"}, ""),
    (ALL - {"user-container", "docker"}, "Not in containers."),
    ({"local"}, "On this host alone."),
]


def run(program, *words):
    return subprocess.run([program, *words], check=True, stdout=subprocess.PIPE,
                          encoding="utf-8").stdout


class Option:
    def __init__(self, row):
        self.name, self.value, self.group = row["option"], row["value"], row["group"]
        self.default, self.help, self.often = row["default"], row["help"], row["often"]
        self.choices = [word.replace("_", "-") for word in row["choices"].split(", ") if word]
        self.is_key = row["modes"] != []
        if self.is_key and not self.default:
            self.default = "none" if self.value else "off"
        self.keys = [self.name.replace("-", "_")] + [row["other_key"]] * (row["other_key"] != "")
        self.summary = self.help.split(". ")[0]
        in_group = "(" in self.group or not self.is_key
        known = [text for modes, text in MODES if modes == set(row["modes"])]
        self.modes = "" if in_group or not known else known[0]
        if not in_group and not known:
            sys.exit(f"docs/options.py: what is said of the modes of --{self.name}?")

    @property
    def usage(self):
        return f"--{self.name}" + (f" {self.value}" if self.value else "")

    @property
    def page(self):
        for pattern, page in PAGES:
            if re.match(pattern, self.name) and (self.is_key or page != "places.md"):
                return page
        return GROUP_PAGES[self.group.split(" (")[0]]

    @property
    def sentence(self):
        # The name of a choice is written as it is.
        is_name = re.split("[,:]", self.help)[0] in self.choices
        text = self.help if is_name else self.help[0].upper() + self.help[1:]
        return text + ("" if text.endswith(".") else ".") + (" " + self.modes).rstrip()


def groups_of(options):
    """(name of the group, its options), in the order of the table."""
    groups = {}
    for option in options:
        groups.setdefault(option.group, []).append(option)
    return groups.items()


# options.md --------------------------------------------------------------------------------------

def cell(text):
    text = text.replace("|", r"\|").replace("<", "&lt;").replace("*", r"\*")
    return re.sub(r"(?<![a-z-])--[a-z-]*[a-z]", r"`\g<0>`", text)


def code(text):
    return f"`{text}`".replace("|", r"\|")


def markdown(options):
    lines = [
        "# The options of codeexec-mcp",
        "",
        f"<!-- {MADE} -->",
        "",
        "Every option, with its default and its key in a configuration file. A command line and a",
        "file that do the same:",
        "",
        "```sh",
        "codeexec-mcp --allowed-paths /path/to/project --network none --timeout 120",
        "codeexec-mcp --config settings.json",
        "```",
        "",
        "```json",
        '{"allowed_paths": ["/path/to/project"], "network": "none", "timeout": 120}',
        "```",
        "",
        "The command line wins over the file. An option of a single value may be given once, and",
        "the values of a list add up. Unknown options and keys, bad values, missing paths, empty",
        "lists and options without effect are errors: one line on standard error, exit status 2.",
        "Each key may begin with `command_line_`, as MassGen's do.",
        "",
        "SIZE is a number of bytes, or one with `k`, `m`, `g` or `t` after it (1024, 1024^2, ...).",
        "A value with `...` is a list. An option without a value is `true` in the file.",
    ]
    for group, members in groups_of(options):
        lines += ["", f"## {group.split(' (')[0]}", ""]
        mode = re.search(r"\((.*)\)", group)
        if mode:
            lines += [f"With `{mode.group(1)}`.", ""]
        keyed = members[0].is_key
        lines += ["| option | " + "key | " * keyed + "default | meaning | more |",
                  "|---|" + "---|" * keyed + "---|---|---|"]
        for option in members:
            keys = [" ".join(code(key) for key in option.keys)] * keyed
            page = f"[{option.page[:-3]}]({option.page})"
            cells = [code(option.usage), *keys, cell(option.default), cell(option.sentence), page]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


# the man page ------------------------------------------------------------------------------------

def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return re.sub(r"^\.", r"\\&.", text)


def man(options, version):
    lines = [
        f'.\\" {MADE}',
        f'.TH CODEEXEC\\-MCP 1 "{RELEASED}" "codeexec\\-mcp {version}" "User Commands"',
        ".SH NAME",
        "codeexec\\-mcp \\- run commands for an AI agent, as an MCP server",
        ".SH SYNOPSIS",
        ".B codeexec\\-mcp",
        "[\\fIoptions\\fR]",
        "[\\fB\\-\\-run\\fR \\fICOMMAND\\fR | \\fB\\-\\-check\\fR \\fICOMMAND\\fR |",
        "\\fB\\-\\-doctor\\fR | \\fB\\-\\-client\\-config\\fR \\fINAME\\fR]",
        ".SH DESCRIPTION",
        "Serves the Model Context Protocol on standard input and output, until the",
        "input ends. A client, such as an assistant for programming, starts it and asks",
        "it to run commands. They have deadlines and bounded output; a policy judges",
        "them, and a sandbox holds them.",
        ".PP",
        "Each option is also a key of the JSON object in the file of",
        ".BR \\-\\-config ,",
        "with _ for \\-. A value with ... is a list.",
        "SIZE is a number of bytes, or one with k, m, g or t after it.",
        ".SH OPTIONS",
    ]
    for group, members in groups_of(options):
        lines.append(f".SS {roff(group)}")
        for option in members:
            value = f" \\fI{roff(option.value)}\\fR" if option.value else ""
            default = f" Default: {option.default}." if option.default else ""
            lines += [".TP", f"\\fB\\-\\-{roff(option.name)}\\fR{value}"]
            lines += [roff(line) for line in textwrap.wrap(option.sentence + default, 70,
                                                           break_on_hyphens=False)]
    lines += [
        ".SH EXIT STATUS",
        "0 when the input has ended, 1 for an error while serving, 2 for a wrong option.",
        "Those of \\fB\\-\\-run\\fR, \\fB\\-\\-check\\fR, \\fB\\-\\-doctor\\fR and "
        "\\fB\\-\\-sandbox\\-report\\fR stand there.",
        ".SH EXAMPLES",
        ".TP",
        "codeexec\\-mcp \\-\\-allowed\\-paths . \\-\\-client\\-config claude\\-code \\-\\-write",
        "Adds the server to a client, with commands that can change this directory alone.",
        ".TP",
        "codeexec\\-mcp \\-\\-allowed\\-paths . \\-\\-network none \\-\\-run \\(aqmake test\\(aq",
        "Runs one command in a sandbox without a network.",
        ".TP",
        "codeexec\\-mcp \\-\\-allowed\\-paths . \\-\\-sandbox\\-report \\-\\-explain",
        "Prints what the kernel holds such commands to.",
    ]
    return "\n".join(lines) + "\n"


# completions -------------------------------------------------------------------------------------

def kind(option):
    """What completes a value of the option: words, `directory`, `file` or nothing."""
    if option.choices:
        return option.choices
    value = option.value.strip("[].")
    return {"DIR": "directory", "FILE": "file", "PATH": "file"}.get(value)


def cases(options, words, directory, file):
    """Lines of a case statement, one for each way to complete."""
    ways = {}
    for option in options:
        way = kind(option)
        if way:
            ways.setdefault(tuple(way) if isinstance(way, list) else way, []).append(option.name)
    for way, names in ways.items():
        action = {"directory": directory, "file": file}.get(way) or words(" ".join(way))
        yield f"    {'|'.join('--' + name for name in names)}) {action} ;;"


def bash(options):
    names = "\n".join("--" + option.name for option in options)
    # The bash of macOS has no compopt.
    paths = 'compopt -o filenames 2> /dev/null; COMPREPLY=($(compgen -{} -- "$current"))'
    return f"""# bash completion of {PROGRAM}. {MADE}
_codeexec_mcp() {{
  local IFS=$'\\n' current=${{COMP_WORDS[COMP_CWORD]}} option= i words=
  COMPREPLY=()
  # A value may stand behind a `=`, which is then a word of its own.
  [ "$current" = = ] && current=
  case $current in
    -*)
      COMPREPLY=($(compgen -W '{names}' -- "$current"))
      return
      ;;
  esac
  # The value belongs to the last option before it.
  for ((i = COMP_CWORD - 1; i > 0; i--)); do
    case ${{COMP_WORDS[i]}} in --*) option=${{COMP_WORDS[i]}} && break ;; esac
  done
  case $option in
""" + "\n".join(cases(options, lambda words: f"words='{words}'",
                      paths.format("d"), paths.format("f"))
                ) + f"""
  esac
  IFS=$' \\n'
  [ -z "$words" ] || COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -F _codeexec_mcp {PROGRAM}
"""


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def zsh(options):
    rows = "\n".join("    " + quoted(f"--{option.name}:{option.summary}") for option in options)
    return f"""#compdef {PROGRAM}
# zsh completion of {PROGRAM}. {MADE}
_codeexec_mcp() {{
  local option= word
  local -a names
  names=(
{rows}
  )
  if [[ $PREFIX == -* ]]; then
    _describe -o option names
    return
  fi
  # The value belongs to the last option before it.
  for word in ${{words[2,CURRENT-1]}}; do
    [[ $word == --* ]] && option=$word
  done
  case $option in
""" + "\n".join(cases(options, lambda words: f"compadd -- {words}", "_directories", "_files")) + """
  esac
}
_codeexec_mcp "$@"
"""


def fish(options):
    # The second value of a list is completed as a file: fish takes it for no option's.
    lines = [f"# fish completion of {PROGRAM}. {MADE}"]
    for option in options:
        way = kind(option)
        takes = " -x" if option.value else ""
        if isinstance(way, list):
            takes += f" -a {quoted(' '.join(way))}"
        elif way:
            takes = " -r -F" if way == "file" else " -x -a '(__fish_complete_directories)'"
        about = option.summary.replace("\\", "\\\\").replace("'", "\\'")
        lines.append(f"complete -c {PROGRAM} -l {option.name}{takes} -d '{about}'")
    return "\n".join(lines) + "\n"


def main(words):
    check = words[:1] == ["--check"]
    if len(words) != 1 + check:
        sys.exit(__doc__)
    program = words[-1]
    options = [Option(row) for row in json.loads(run(program, "--help-all", "--json"))]
    version = run(program, "--version").split()[-1]
    rules = re.findall(r"^(?:\*| ) ([a-z][a-z-]*) ", run(program, "--list-rules"), re.M)
    for option in options:
        if option.name in ("disable-rule", "ask-rule"):
            option.choices = rules
    made = {
        "options.md": markdown(options),
        "codeexec-mcp.1": man(options, version),
        "completions/codeexec-mcp.bash": bash(options),
        "completions/_codeexec-mcp": zsh(options),
        "completions/codeexec-mcp.fish": fish(options),
    }
    stale = 0
    for name, text in made.items():
        path = DOCS / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale += 1
        if check:
            print(f"docs/{name}: is not what {program} makes: python3 docs/options.py {program}")
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
