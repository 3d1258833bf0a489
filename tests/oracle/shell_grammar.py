"""Snippets for shell_commands.py: expansions in expansions, subscripts, arithmetic, builtins that
take names or commands, quotes, here-documents, functions, aliases, eval, in each other.

A snippet calls nothing but builtins and the stubs, writes only below the folder that it starts in,
and ends by itself. Each call has a number of its own. The same seed makes the same snippet.
"""

import random

STUBS = [f"w{i}" for i in range(1, 10)]


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def doubled(text):
    """In double quotes, so that it is `text` again behind them."""
    for c in '\\"$`':
        text = text.replace(c, "\\" + c)
    return '"' + text + '"'


class Grammar:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.calls = 0
        self.names = 0
        self.known = []  # variables that have been set before

    def pick(self, choices):
        return self.random.choice(choices)

    def one_in(self, n):
        return self.random.randrange(n) == 0

    # Commands that run, and what runs them

    def call(self):
        self.calls += 1
        return f"w{1 + self.random.randrange(len(STUBS))} {self.calls}"

    def command(self, depth):
        """What stands in a substitution."""
        if depth <= 0 or self.one_in(2):
            return self.call()
        return self.statement(depth - 1)

    def run(self, depth, plain=False):
        """A word that runs a command when it is expanded; `plain`: it keeps its place in quotes."""
        kind = self.random.randrange(12)
        if depth <= 0 or kind < 5:
            call = self.call()
            return f"`{call}`" if self.one_in(4) and not plain else f"$({call})"
        inner = self.run(depth - 1, plain)
        if kind == 5:
            return "${u:-" + inner + "}"
        if kind == 6:
            return "$((" + self.arithmetic(depth - 1, plain) + "))"
        if kind == 7:
            return "${a[" + self.subscript(depth - 1, plain) + "]}"
        if kind == 8:
            return "$(echo " + inner + ")"
        if kind == 9:
            return self.parameter(depth - 1, plain)
        text = self.command(depth - 1)
        if plain and "\n" in text or "\n" in text and "<<" in text:
            return inner
        return "$(" + text + ("\n)" if "#" in text or "\n" in text else ")")

    def subscript(self, depth, plain=False):
        inner = self.run(depth, plain)
        return self.pick([
            inner,
            quoted(inner) if not plain else inner,
            '"' + inner + '"' if '"' not in inner and not plain else inner,
            "b[" + inner + "]",
            "1+" + inner,
            inner + "0",
            "0",
            "\\" + inner,
            "b[" + quoted(inner) + "]" if not plain else inner,
            "${b[" + inner + "]}",
            "$'" + inner + "'" if "'" not in inner and not plain else inner,
        ])

    def arithmetic(self, depth, plain=False):
        inner = self.run(depth, plain)
        return self.pick([
            inner,
            "a[" + self.subscript(depth, plain) + "]",
            "1+" + inner,
            "a[" + inner + "]=1",
            "a[" + inner + "]++",
            "x?" + inner + ":1",
            "a[" + inner + "],1",
            "(1)",
            "1||a[" + inner + "]",
            "x=" + inner,
            '"' + inner + '"' if '"' not in inner and not plain else inner,
            "${u:-a[" + inner + "]}",
            "b[a[" + inner + "]]",
            self.name(),
        ])

    def name(self):
        return self.pick(self.known) if self.known and not self.one_in(4) else self.pick("xyab")

    def parameter(self, depth, plain=False):
        inner = self.run(depth, plain)
        q = inner if plain or "'" in inner else "'" + inner + "'"
        name = self.name()
        return self.pick([
            "${u-" + inner + "}",
            "${u:=" + inner + "}",
            "${u+" + inner + "}",
            "${x:+" + q + "}",
            "${u:-" + q + "}",
            "${x#" + inner + "}",
            "${x%%" + q + "}",
            "${x/" + inner + "/1}",
            "${x//" + q + "/" + inner + "}",
            "${x:" + self.arithmetic(depth, plain) + "}",
            "${x:0:" + self.arithmetic(depth, plain) + "}",
            "${#a[" + self.subscript(depth, plain) + "]}",
            "${!a[" + self.subscript(depth, plain) + "]}",
            "${x^" + inner + "}",
            "${" + name + "@P}",
            "${!" + name + "}",
            "${!" + name + "@P}",
            "${a[@]:" + inner + ":1}",
            "${" + name + ":-" + inner + "}",
            "${@:" + self.arithmetic(depth, plain) + "}",
            "${x?" + inner + "}",
            "${#u:-" + inner + "}",
            "${a[0]-" + inner + "}",
            "${!x-" + inner + "}",
            "${" + name + "@A}",
            "${x@" + self.pick("QEUK") + "}",
            "$[" + self.arithmetic(depth, plain) + "]",
            "${x,,[" + inner + "]}",
        ])

    def word(self, depth):
        """A word in a command that prints nothing of interest."""
        inner = self.run(depth)
        q = '"' + inner + '"' if '"' not in inner else inner
        return self.pick([
            inner,
            q,
            "a" + inner,
            "{a," + inner + "}",
            "'a'" + q,
            "x=" + inner,
            "$'\\x41'" + inner,
            "~/" + inner,
            self.parameter(depth),
            '"' + self.parameter(depth).replace('"', "") + '"',
            "$\"" + inner + '"' if '"' not in inner else inner,
            "\\a" + inner,
            "[" + inner + "]*",
            "@(" + inner + "|b)" if self.one_in(3) else inner,
        ])

    # Values that are run later

    def value(self, depth):
        """A text that runs something when it is evaluated again, as it shall be in the variable."""
        inner = self.run(min(depth, 1), True)
        return self.pick([
            f"a[{inner}]",
            f"a[{inner}]",
            f"b[a[{inner}]]",
            f"a[{inner}]+1",
            inner,
            f"1+a[0{inner}]",
            f"${{u:-{inner}}}",
            f"$(( {inner} ))",
            f"x[{self.name()}]",
            self.name(),
        ])

    def assign(self, depth):
        """Sets a variable to such a text, in one of many ways."""
        name = self.pick(["x", "y", "v1", "v2", "n"])
        value = self.value(depth)
        q = self.pick([quoted, doubled])(value)
        half = len(value) // 2
        ways = [
            f"{name}={q}",
            f"{name}={q}",
            f"{name}={q}",
            f"export {name}={q}",
            f"{name}={quoted(value[:half])}; {name}=${name}{quoted(value[half:])}",
            f"{name}={quoted(value[:half])}; {name}+={quoted(value[half:])}",
            f"declare {name}={q}",
            f"typeset -g {name}={q}",
            f"readonly {name}={q}",
            f"{name}=$(echo {quoted(value)})",
            f"read -r {name} <<< {q}",
            f"printf -v {name} %s {q}",
            f"printf -v {name} '%s%s' {quoted(value[:half])} " f"{quoted(value[half:])}",
            f"read -r {name} <<'E'\n{value}\nE",
            f"z={q}; {name}=$z",
            f"z={quoted('q' + value)}; {name}=${{z#q}}",
            f"z={quoted(value + '.c')}; {name}=${{z%.*}}",
            f": ${{{name}:={value}}}" if "'" not in value else f"{name}={q}",
            f"for {name} in {q}; do :; done",
            f"set -- {q}; {name}=$1",
            f"mapfile -t {name} <<< {q}",
            f"{name}=({q})",
            f"read -ra {name} <<< {q}",
            f"IFS= read -r {name} <<< {q}",
            f"{name}=$'{value}'" if "'" not in value and "\\" not in value else f"{name}={q}",
            f"let {name}=1; {name}={q}",
            f"eval {name}={quoted(quoted(value))}",
            f"declare -n r={name}; r={q}; unset -n r",
            f"case 1 in 1) {name}={q};; esac",
            f"if :; then {name}={q}; fi",
            f"f() {{ {name}={q}; }}; f",
            f"declare -i {name}={q}",
            f"declare -u {name}",
            f"z={quoted(value.replace('[', '(', 1))}; {name}=${{z/(/[}}",
            f"z={quoted('ZZ' + value)}; {name}=${{z:2}}",
            f"{name}={q} :",
        ]
        self.known.append(name)
        return self.pick(ways)

    def use(self, depth):
        """Evaluates a variable that holds a text."""
        name = self.name()
        return self.pick([
            f"echo $(({name}))",
            f"echo $((${name}))",
            f"(({name}))",
            f"(({name}++))",
            f"let {name}",
            f'let "{name}+1"',
            f"[[ {name} -eq 1 ]]",
            f"[[ ${name} -gt 1 ]]",
            f"[[ 1 -lt ${name} ]]",
            f'[[ -v ${name} ]]',
            f'[ -v "${name}" ]',
            f"test -v ${name}",
            f"echo ${{a[{name}]}}",
            f"echo ${{a[${name}]}}",
            f"a[{name}]=1",
            f"a[${name}]=1",
            f"a=([{name}]=1)",
            f"echo ${{{name}@P}}",
            f'echo "${{{name}@P}}"',
            f"eval \"${name}\"",
            f"eval echo \"${name}\"",
            f"unset \"${name}\"",
            f"read \"${name}\" <<< 1",
            f"printf -v \"${name}\" 1",
            f"declare \"${name}=1\"",
            f"export \"${name}=1\"",
            f"declare -i q; q=${name}",
            f"declare -n r={name}; echo $r",
            f"declare -n r=${name}; " f"r=1",
            f"declare -n r=${name}; echo $r",
            f"echo ${{!{name}}}",
            f"for ((i={name}; i<0; i++)); do :; done",
            f"PS4=${name}; set -x; :; set +x",
            f"echo ${{x:{name}}}",
            f"echo ${{x:0:${name}}}",
            f"echo $[{name}]",
            f"declare -i q=${name}",
            f"local q; echo $(({name}))",
            f"${name}",
            f"trap \"${name}\" EXIT",
            f"alias q=\"${name}\"\nq",
            f"f() {{ echo $(($1)); }}; f \"${name}\"",
            f"set -- \"${name}\"; echo $(($1))",
            f"wait -n -p \"${name}\"",
            f"mapfile \"${name}\" " f"<<< 1",
            f"getopts ab \"${name}\" -a",
            f"(( ${name} ))",
            f"exec {{q}}>\"${name}\"",
            f"cat <<E\n$(({name}))\nE",
            f"case $(({name})) in *) ;; esac",
            f"y=${name}; (({name}+y))",
            f"[ ${name} -eq 1 ]",
            f"echo ${{{name}}}",
            f"shift ${name}",
            f"exit $(({name}))",
            f"return $(({name}))",
            f"unset 'a['\"${name}\"']'",
            f"f() {{ local -n r=$1; echo $r; }}; f {name}",
            f"f() {{ local -n r=$1; r=1; }}; " f"f \"${name}\"",
            f"f() {{ local -i q=$1; }}; f \"${name}\"",
            f"[[ -z ${{a[{name}]}} ]]",
            f"declare -a c=(1 [{name}]=2)",
            f"typeset -i q; q+=${name}",
            f"(( a[{name}] ))",
        ])

    # Statements

    def subscripts(self, depth):
        s = self.subscript(depth)
        p = self.run(depth, True)
        q = quoted(f"a[{p}]")
        return self.pick([
            f"echo ${{a[{s}]}}",
            f'echo "${{a[{s}]}}"',
            f"a[{s}]=1",
            f"a[{s}]+=1",
            f"a=([{s}]=1 2)",
            f"a+=([{s}]=1)",
            f"declare -a a=([{s}]=1)",
            f"declare a[{s}]=1",
            f"unset a[{s}]",
            f"unset {q}",
            f"printf -v {q} 1",
            f"printf -v a[{s}] %s 1",
            f"read {q} <<< 1",
            f"read a[{s}] <<< 1",
            f"read -r x {q} <<< '1 2'",
            f"[[ -v {q} ]]",
            f"[ -v {q} ]",
            f"test -v {q}",
            f"[[ -v a[{s}] ]]",
            f"[[ {q} -eq 1 ]]",
            f"[[ 1 -ge a[{s}] ]]",
            f"let {q}",
            f"let a[{s}]=1",
            f"declare {q}=1",
            f"export {q}=1",
            f"readonly {q}=1",
            f"declare -n r={q}; r=1",
            f"declare -n r={q}; echo $r",
            f"wait -n -p {q}",
            f"getopts a {q} -a",
            f"mapfile {q} <<< 1",
            f"declare -A h; h[{s}]=1",
            f"declare -A h=([{s}]=1)",
            f"declare -A h; echo ${{h[{s}]}}",
            f"declare -A h; unset " f"{quoted(f'h[{p}]')}",
            f": {{a[{s}]}}>/dev/null",
            f"exec {{a[{p}]}}>/dev/null",
            f"f() {{ local a[{s}]=1; }}; f",
            f"f() {{ local {q}; }}; f",
            f"for a[{s}] in 1; do :; done",
            f"declare -p {q}",
            f"a[{s}]=1 :",
            f"coproc a[{s}] {{ :; }}; wait",
            f"[ -n {q} ]",
            f"declare -i q={q}",
            f"declare -i q; q={q}",
            f"echo $(( a[{s}] ))",
            f"(( a[{s}]++ ))",
            f"printf -va[{s}] 1",
            f"read -a {q} <<< 1",
            f"a[{s}]=(1)",
            f"unset -v {q}",
            f"declare -A h; (( h[{s}]++ ))",
            f"declare -A h; [[ -v h[{s}] ]]",
            f"declare -A h; [[ -v {quoted(f'h[{p}]')} ]]",
            f"builtin unset {q}",
            f"command unset {q}",
            f"command printf -v {q} 1",
            f"[[ {q} == 1 ]]",
            f"typeset {q}",
            f"exec {{a[{s}]}}<&-",
            f"compgen -W {quoted(p)}",
            f"echo {{a[{s}],b}}",
            f"declare -n r=a; r[{s}]=1",
            f"[[ -R {q} ]]",
            f"echo a[{s}]",
            f"a[0]=1 a[{s}]=2 :",
            f"select a[{s}] in 1; do break; done",
        ])

    def builtins(self, depth):
        c = self.command(min(depth, 1))
        if "'" in c or "\n" in c:
            c = self.call()
        p = self.run(0, True)
        return self.pick([
            f"!({c})",
            f"eval -- {quoted(c)}",
            f"command command eval {quoted(c)}",
            f"builtin command {c}",
            f"builtin builtin eval {quoted(c)}",
            f"x=eval; $x {quoted(c)}",
            f"$(echo eval) {quoted(c)}",
            f"HOME={c.split()[0]}; ~ 1",
            f": {c.split()[0]}; $_ 1",
            f"{{{c.split()[0]},1}}",
            f"{{eval,{quoted(c)}}}",
            f"set -- {c.split()[0]}; ${{!#}} 1",
            f"set -- a {c}; \"${{@:2}}\"",
            f"set -- a {c}; ${{*:2:2}}",
            f"shopt -s expand_aliases\nalias if={quoted(c + '; if')}\nif :; then :; fi",
            f"alias while={quoted(c + '; while')}\nwhile false; do :; done",
            f"alias 1={quoted(c)}\n1",
            f"alias a={quoted(c + ' ')} b=1\na b",
            f"echo() {{ {c}; }}; echo a",
            f"cd() {{ {c}; }}; cd a",
            f"test() {{ {c}; }}; test a",
            f"function a-b {{ {c}; }}; a-b",
            f"a.b() {{ {c}; }}; a.b",
            f"{c} | time {self.call()}",
            f"time ! {c}",
            f"! time {c}",
            f"case esac in (esac) {c};; esac",
            f"case in in in) {c};; esac",
            f"for in in in; do {c}; done",
            f"for x\nin 1\ndo\n{c}\ndone",
            f"if {c}\nthen {self.call()}\nelif {self.call()}\nthen :\nelse {self.call()}\nfi",
            f"IFS=,; x={quoted(c.replace(' ', ','))}; $x",
            f"x=$'{c}'; $x",
            f"x=\"{c}\" y=\"$x\"; $y",
            f"printf -v x %s {quoted(c)}; $x",
            f"read -r x <<< {quoted(c)}; $x",
            f"x={quoted(c + '.c')}; ${{x%.c}}",
            f"x={quoted('a' + c)}; ${{x#a}}",
            f"x={quoted(c)}; ${{x}}",
            f"x={quoted(c)}; f() {{ $x; }}; f",
            f"trap {quoted(c)} INT; kill -INT $BASHPID",
            f"x={c.split()[0]}; \"$x\" 1 & wait",
            f"cat <<E > /dev/null; {c}\nE\n{self.call()}",
            f": <<E'F'; {c}\n$(w1)\nEF\n{self.call()}",
            f": <<\"E\"; {c}\n$(w1)\nE\n{self.call()}",
            f": <<\\E; {c}\n`w1`\nE\n{self.call()}",
            f": <<-E; {c}\n\ta\n\tE\n{self.call()}",
            f": <<E\n\\$(w1) \\\\$({c})\nE",
            f"x=$(cat <<E\n$({c})\nE\n)",
            f"eval {quoted(c)} {quoted('; ' + self.call())}",
            f"eval 'f() {{' {quoted(c)} '; }}'; f",
            f"eval : '&&' {quoted(c)}",
            f"eval \"x=1 {c}\"",
            f"eval {quoted(': #')} ; {c}",
            f"if((1)){{ {c}; }} fi",
            f"if((1))then {c};fi",
            f"{{ {c};}}>f",
            f"({c})>f",
            f"{c}&{self.call()}&wait",
            f"{c}&&{self.call()}||{self.call()}",
            f"{c};;",
            f"x={c}",
            f"x= {c}",
            f"x=\\\n {c}",
            f"x=1\\\ny=2 {c}",
            f"<f {c}",
            f">f {c} >f2 a",
            f"2>&1 {c}",
            f"a=(1 2) {c}",
            f"x+=(1) {c}",
            f"-x() {{ {c}; }}; -x",
            f"declare -a a={quoted('($(' + c + '))')}",
            f"declare -A h={quoted('([$(' + c + ')]=1)')}",
            f"f() {{ local -a a=$1; }}; f {quoted('($(' + c + '))')}",
            f"a=(); declare a={quoted('(`' + c + '`)')}",
            f"set -- {quoted('a[$(' + c + ')]')}; ((${{!#}}))",
            f"set -- $u {quoted('a[$(' + c + ')]')}; (($1))",
            f"set -- -a {quoted('b[$(' + c + ')]')}; getopts a: o; ((OPTARG))",
            f"OPTIND={quoted('a[$(' + c + ')]')}",
            f"RANDOM={quoted('a[$(' + c + ')]')}",
            f"x=$'\\x24'; ((a[${{x}}({c})]))",
            f"x=$'\\x24'; echo ${{a[${{x}}({c})]}}",
            f"echo ${{a[$'\\x24({c})']}}",
            f"x='${{'; y='u:-$({c})}}'; echo ${{x@P}} $x$y",
            f"x='$'; y=\"$x({c})\"; echo ${{y@P}}",
            f"set -- {quoted('$(' + c + ')')}; echo ${{1@P}} ${{@@P}} ${{*@P}}",
            f"echo $[ a[$({c})] ] $[ ']' ]",
            f"echo \"$[ 1 + $({c}) ]\"",
            f"echo \"${{u:-\"$({c})\"}}\"",
            f"echo \"${{u:-\\\"$({c})\\\"}}\"",
            f"echo \"${{u:-'\"$({c})\"'}}\"",
            f"echo \"${{u:-${{u:-'$({c})'}}}}\"",
            f"echo \"`echo \\\"$({c})\\\"`\"",
            f"echo `echo '$({c})'`",
            f"echo `echo \\$({c})`",
            f"echo `echo \\\\$({c})`",
            f"echo $(echo '`{c}`')",
            f"echo \"$(echo \"$({c})\")\"",
            f"echo \"$(echo '$({c})')\"",
            f"echo \\\\$({c}) \\$({c[:0]}echo)",
            f"echo ${{#}} $# ${{##}} ${{#x}} $({c})",
            f"echo ${{x:-}}}} $({c})",
            f"echo '}}' \"}}\" }} {{ $({c})",
            f"echo $(: '#' ; {c} # ')'\n)",
            f"echo $(case x in x) {c};; esac)",
            f"echo $(case x in (x) {c} ;; esac; {self.call()})",
            f"echo $(: <<E\n)\nE\n{c})",
            f"echo $((1)) $( ({c}) ) $(({c});:)",
            f"echo $(( $(({c[:0]}1)) + $({c}) ))",
            f"jobs -x {c}",
            f"eval {quoted(c)}",
            f"eval {doubled(c)}",
            f"eval eval {quoted(quoted(c))}",
            f"trap {quoted(c)} EXIT",
            f"trap {quoted(c)} ERR; false",
            f"trap {quoted(c)} DEBUG; :",
            f"set -T; trap {quoted(c)} RETURN; f() {{ :; }}; f",
            f"trap {quoted(c)} 0",
            f"trap {quoted(c)} USR1; kill -USR1 $BASHPID; :",
            f"trap -- {quoted(c)} EXIT",
            f"shopt -s expand_aliases\nalias q={quoted(c)}\nq",
            f"alias q={quoted(c)}\nq a",
            f"shopt -s expand_aliases\nBASH_ALIASES[q]={quoted(c)}\nq",
            f"BASH_CMDS[q]=$PWD/../bin/w1; q",
            "hash -p $PWD/../bin/w2 q; q",
            f"set -o history; history -s {quoted(c)}; fc -s",
            f"history -s {c}; fc -s",
            f"set -o history\n{c}\nfc -s",
            f"mapfile -c 1 -C {quoted(c)} x <<< 1",
            f"mapfile -C{c.split()[0]} -c1 x <<< 1",
            f"readarray -tC {quoted(c)} -c 1 <<< 1",
            f"command_not_found_handle() {{ {c}; }}; nosuch",
            f"PS4={quoted(p)}; set -x; :",
            f"PS4={quoted(p)} ; set -o xtrace; :",
            f"coproc {c}; wait",
            f"coproc N {{ {c}; }}; wait",
            f"time {c}",
            f"! {c}",
            f"! ! {c}",
            f"time -p -- {c}",
            f"command {c}",
            f"command -p {c}",
            f"command -- {c}",
            f"builtin eval {quoted(c)}",
            f"builtin command {c}",
            f"exec {c}",
            f"( exec {c} )",
            f"compgen -C {quoted(c)} x",
            f"compgen -F f x; f() {{ {c}; }}",
            f"f() {{ {c}; }}; compgen -F f x",
            f"enable -n echo; {c}",
            f". /dev/stdin <<'E'\n{c}\nE",
            f". /dev/stdin <<< {quoted(c)}",
            f"source <(echo {quoted(c)})",
            f"echo {quoted(c)} | . /dev/stdin",
            f"x={quoted(c)}; $x",
            f"x={quoted(c)}; eval $x",
            f"x=({c}); \"${{x[@]}}\"",
            f"set -- {c}; \"$@\"",
            f"set -- {c}; $*",
            f"x={quoted(c)}; y=x; ${{!y}}",
            f"{c} &\nwait",
            f"{{ {c} & }}; wait",
            f"{c} | {self.call()}",
            f"{c} |& {self.call()}",
            f"{c} &> /dev/null",
            f"{c} &>> /dev/null",
            f"{c} >& /dev/null",
            f"{c} {{q}}> /dev/null",
            f"printf '%(' 1; {c}",
            f"read x < <({c})",
            f": >({c}); wait",
            f"echo <({c})",
            f"function g {{ {c}; }}; g",
            f"function g() {{ {c}; }}; g",
            f"function g\n{{\n{c}\n}}\ng",
            f"function g ( {c} )\ng",
            f"g() if :; then {c}; fi; g",
            f"g() {c}; g",
            f"(( 1 )) && {c}",
            f"(( x {c} ))",
            f"(( {c} ))",
            f"(({c}); {self.call()})",
            f"( ( {c} ))",
            f"((x) {c})",
            f"(( $x {c} ))",
            f"(({c})|{self.call()})",
            f"((:); {c} )",
            f"if (( $x {c} )); then :; fi",
            f"echo $(( $x {c} ))",
            f"echo $(( {c} ); {self.call()})",
            f"echo $(({c}) )",
            f"select x in a; do {c}; done <<< 1",
            f"until {c}; do break; done",
            f"while {c}; do break; done",
            f"for x in 1 2; do {c}; done",
            f"for x; do {c}; done",
            f"for ((;;)) {{ {c}; break; }}",
            f"for x in 1; {{ {c}; }}",
            f"[[ -n $({c}) ]]",
            f"case x in x) {c};& y) {self.call()};; esac",
            f"case x in *) {c};;& *) {self.call()}; esac",
            f"echo $'a\\'; {c}; echo 'b'",
            f"echo $'\\''; {c} #'",
            f"echo {{a,b}}; {c}",
            f"echo \"${{u:-'}}\"; {c}; echo \"'}}\"",
            f"echo ${{u:-'}}'}}; {c}",
            f"echo 'a'\\''; {c}'",
            f"[[ a < b ]]; {c}",
            f"[[ x =~ (a|b) ]] || {c}",
            f"x=y {c}",
            f"x=(1); {c}",
            f"x+=1 {c}",
            f"a[0]=1 {c}",
            f"declare -f g; {c}",
            f"let x=1; {c}",
            f"echo a#b; {c} #c",
            f"#a\n{c}",
            f"echo \\\n#a\n{c}",
            f"{c[:2]}\\\n{c[2:]}",
            f"if ! {c}; then :; else {self.call()}; fi",
            f"unset -f g; g() {{ {c}; }}; unset -v g; g",
            f"eval 'g() {{ {c.replace(chr(39), '')}; }}'; g",
            f"coproc {{ {c}; }} 2>/dev/null; wait",
            f"cd d && {c}",
            f"pushd d; {c}",
            f"umask 022; {c}",
            f"x={quoted(c)}; eval \"${{x}}\"",
            f"eval \"$(echo {quoted(c)})\"",
            f"set -- a; {c} $#",
            f"shopt -s lastpipe; echo {quoted(c)} | read x; eval \"$x\"",
            f"alias e='eval '\ne {quoted(c)}",
            f"alias r='w1 '\nalias q='a; {c}'\nr q",
            f"shopt -s expand_aliases\nalias r='w1 ' " f"q='; {c}'\nr q",
            f"trap {quoted(c)} EXIT; exit",
            f"trap {quoted(c)} EXIT; exec {self.call()}",
            f"f() {{ {c}; }}; export -f f; f",
            f"f() {{ trap {quoted(c)} RETURN; }}; f",
            f"exec 3<<< 1; {c} <&3",
            f"times; {c}",
            f"caller; {c}",
            f"hash; {c}",
            f"ulimit -c 0; {c}",
            f"suspend -z; {c}",
            f"enable -f /nosuch q; {c}",
            f"bind -x '\"q\": {c}'",
            f"fg; {c}",
            f"type w1; {c}",
            f"PROMPT_COMMAND={quoted(c)}; :",
            f"x=$({c}) y=$({self.call()})",
            f"test -n a -o {c.split()[0]}; {c}",
            f"[ a ] && [ b ] && {c}",
            f"logout; {c}",
            f"printf %s {quoted(c)} | while read -r l; do eval \"$l\"; done",
            f"while read -r l; do $l; done <<'E'\n{c}\nE",
            f"history -c; history -s {quoted(c)}; fc -s w",
            f"set -o history; history -s {quoted(c)}; fc -e - -1",
            f"set -H; history -s {quoted(c)}; !!",
            f"set -o history; set -H\n{c}\n!!",
            f"history -p {quoted(c)}",
            f"let 'x={p}'",
            f"f() {{ {c}; }}; f | {self.call()}",
            f"f() {{ \"$@\"; }}; f {c}",
            f"f() {{ $1 $2; }}; f {c}",
            f"f() {{ shift; \"$@\"; }}; f a {c}",
            f"f() {{ eval \"$1\"; }}; f {quoted(c)}",
            f"f() {{ local x=$1; $x 1; }}; f {c.split()[0]}",
            f"f() ( {c} ); f",
            f"f() for x in 1; do {c}; done\nf",
        ])

    def here(self, depth):
        inner = self.run(depth)
        c = self.call()
        line = self.pick([
            inner,
            f"${{u:-'{inner}'}}" if "'" not in inner else inner,
            f"${{u:-{inner}}}",
            f"'{inner}'",
            f"\\{inner}",
            f"\\\\{inner}",
            f"a {inner} b",
            f"$(({self.arithmetic(depth)}))",
            f"${{a[{self.subscript(depth)}]}}",
            f'"{inner}"',
            self.parameter(depth),
        ])
        if "\n" in line:
            line = inner if "\n" not in inner else f"$({c})"
        head = self.pick([
            ": <<E",
            "read x <<E",
            ": <<-E",
            "read -r x <<E",
            ": <<E 2>/dev/null",
            "{ :; } <<E",
            ": <<'E'",
            ": <<\\E",
            ': <<"E"',
            "eval : <<E",
            "x=1 <<E",
            ": <<E;",
            "while read -r l; do eval \"$l\"; done <<E",
            ". /dev/stdin <<E",
            ": <<E <<F",
            f": <<E; {c}",
            f"f() {{ :; }} <<E",
            "if :; then :; fi <<E",
        ])
        tail = "E\nF" if "<<F" in head else "E"
        text = f"{head}\n{line}\n{tail}"
        return text + "\nf" if head.startswith("f()") else text

    def redirect(self, depth):
        inner = self.run(depth)
        target = self.pick([
            inner,
            '"' + inner + '"' if '"' not in inner else inner,
            "f" + inner,
            "${u:-f" + inner + "}",
            "${a[" + self.subscript(depth) + "]:-f}",
            "$((" + self.arithmetic(depth) + "))",
        ])
        return self.pick([
            f": > {target}",
            f": < {target}",
            f": >> {target}",
            f": 2> {target}",
            f": &> {target}",
            f": >& {target}",
            f": <& {target}",
            f": <<< {target}",
            f"{{ :; }} > {target}",
            f"( : ) < {target}",
            f": <> {target}",
            f"if :; then :; fi 2> {target}",
            f"exec 4< {target}",
            f": {{q}}> {target}",
            f"[[ a ]] > {target}",
            f"(( 1 )) > {target}",
            f"f() {{ :; }} > {target}; f",
            f"case a in a) ;; esac > {target}",
            f"for x in 1; do :; done > {target}",
            f"> {target}",
            f"x=1 > {target}",
            f"coproc {{ :; }} > {target}; wait",
        ])

    def cases(self, depth):
        inner = self.word(depth)
        p = self.run(depth)
        return self.pick([
            f"case {inner} in x) ;; *) ;; esac",
            f"case x in {inner}) ;; esac",
            f"case a in a|{p}) ;; esac",
            f"case {quoted(p)} in *) ;; esac",
            f"case ${{a[{self.subscript(depth)}]}} in *) ;; esac",
            f"case a in ${{u:-{p}}}) ;; esac",
            f"for x in {inner}; do :; done",
            f"select x in {inner}; do break; done",
            f"[[ {p} == a ]]",
            f"[[ a == {p} ]]",
            f"[[ a =~ {p} ]]",
            f"[[ -f {p} ]]",
            f"[[ {p} -nt a ]]",
            f"[[ ! {p} ]]",
            f"[[ a && {p} ]]",
            f"[[ ( {p} ) ]]",
            f"[[ a < {p} ]]",
            f"[ {p} = a ]",
            f"[[ -z ${{x[{self.subscript(depth)}]}} ]]",
            f"case a in (a) : {inner};; esac",
            f"[[ a =~ [{p}] ]]",
            f"[[ a == @({p}|b) ]]",
            f"[[ {p} -eq 1 ]]",
            f"[[ -v {p} ]]",
            f"[[ -t {p} ]]",
            f"[[ a -ef {p} ]]",
        ])

    def statement(self, depth):
        kind = self.random.randrange(26)
        if kind < 3:
            return self.pick([
                "echo ",
                ": ",
                "x=",
                "export x=",
                "local x=",
                "a=(",
                "shift ",
                "declare x=",
                "w1 ",
                "echo a ",
                "x=1 y=",
            ]) + self.word(depth)
        if kind < 7:
            return self.subscripts(depth)
        if kind < 11:
            return self.builtins(depth)
        if kind < 13:
            arithmetic = self.arithmetic(depth)
            return self.pick([
                f"echo $(({arithmetic}))",
                f"(({arithmetic}))",
                f"let {quoted(arithmetic)}",
                f"echo $[{arithmetic}]",
                f"for (({arithmetic};0;)); do :; done",
                f"for ((;{arithmetic};)); do break; done",
                f"echo \"$(({arithmetic}))\"",
                f"for ((;0;{arithmetic})); do :; done",
                f"x=$(({arithmetic}))",
                f"x=1; ((x={arithmetic}))",
                f"if (({arithmetic})); then :; fi",
            ])
        if kind == 13:
            return self.here(depth)
        if kind == 14:
            return self.redirect(depth)
        if kind == 15:
            return self.cases(depth)
        if kind < 22:
            first = self.assign(depth)
            joint = "\n" if "<<" in first else self.pick(["; ", "\n", " && "])
            return first + joint + self.use(depth)
        inner = self.statement(depth - 1) if depth > 0 else self.call()
        end = "\n" if "\n" in inner or "#" in inner else "; "
        return self.pick([
            f"{{ {inner}{end}}}",
            f"( {inner}{end})",
            f"if :; then {inner}{end}fi",
            f"g() {{ {inner}{end}}}; g",
            f"for k in 1; do {inner}{end}done",
            f"eval {quoted(inner)}",
            f"eval {doubled(inner)}",
            f"trap {quoted(inner)} EXIT",
            f"echo $({inner}{end})",
            f"x=$({inner}{end})",
            f"echo \"$({inner}{end})\"",
            f"case 1 in 1) {inner}{end};; esac" if end == "\n" else f"case 1 in 1) {inner};; esac",
            f"{inner}{end}{self.call()}",
            f"while :; do {inner}{end}break; done",
            f"! {inner}",
            f"{inner}\n{self.statement(depth - 2)}",
            f"function g {{ {inner}{end}}}; g",
            f"until {inner}{end}do break; done",
            f"{{ {inner}{end}}} | {self.call()}",
            f". /dev/stdin <<'EE'\n{inner}\nEE",
            f"{{ {inner}{end}}} &\nwait",
            f": <({inner}{end})",
        ])

    def snippet(self):
        text = self.statement(self.pick([0, 1, 1, 2, 2, 3]))
        # What is evaluated only in a session of the shell's own, or where an option is set.
        if self.one_in(8):
            text = self.pick([
                "shopt -s extglob\n",
                "set -x\n",
                "set -e\n",
                "set -u\n",
                "set -f\n",
                "set -o posix\n",
                "IFS=:\n",
                "a=(1 2)\n",
                "set -o history\n",
                "shopt -s expand_aliases\n",
                "shopt -s assoc_expand_once\n",
                "shopt -s lastpipe\n",
                "set -k\n",
                "x=1\n",
                "set -T\n",
            ]) + text
        return text
