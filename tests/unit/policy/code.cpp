// What code of other languages starts is judged as if the script started it.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <ctime>

#include "helpers.hpp"

using namespace std::string_view_literals;
using support::lists;
using support::make;
using support::passes;
using support::refuses;
using support::rule_of;
using support::strict;

namespace {

// A text with each COMMAND replaced.
std::string with_command(std::string_view form, std::string_view command) {
  std::string text(form);
  constexpr std::string_view mark = "COMMAND";
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at))
    text.replace(at, mark.size(), command);
  return text;
}

// Each of these starts COMMAND.
const char* const starting_forms[] = {
    R"~(python3 -c 'import os; os.system("COMMAND")')~",
    R"~(python3 -c 'import subprocess as s; s.run("COMMAND".split())')~",
    R"~(python3 -c 'import subprocess as s; s.run(args=("COMMAND"), shell=True)')~",
    R"~(python3 -c 'from subprocess import getoutput as g; g("COMMAND")')~",
    R"~(python3 -c 'import os; getattr(os, "system")("COMMAND")')~",
    R"~(python3 -c 'import os; f = os.system; f("COMMAND")')~",
    R"~(python3 -c 'exec("import os; os.system(\"COMMAND\")")')~",
    R"~(python3 -c 'import os; c = "COMMAND"; os.system(c)')~",
    R"~(python3 -c 'import os; c = ""; c += "COMMAND"; os.system(c)')~",
    R"~(python3 -c 'import os; os.system("" + "COMMAND")')~",
    R"~(python3 -c 'import os; os.system(f"COMMAND")')~",
    R"~(python3 -c 'import os; print(f"{{ {os.system("COMMAND")}")')~",
    R"~(python3 -c 'import os; """it"s"""; os.system("COMMAND")')~",
    "python3 -c 'import os\n# it\"s\nos.system(\"COMMAND\")'",
    R"~(python3 -m timeit 'import os; os.system("COMMAND")')~",
    "python3 - <<'EOF'\nimport os\nos.system('COMMAND')\nEOF",
    R"~(perl -e 'system q{COMMAND}')~",
    R"~(perl -e 'exec qw(COMMAND)')~",
    R"~(perl -e 'print qx!COMMAND!')~",
    R"~(perl -e 'open(F, "COMMAND |")')~",
    R"~(perl -e 'open my $f, "| COMMAND"')~",
    R"~(perl -e 'open(F, "-|", qw(COMMAND))')~",
    R"~(perl -e '$c = "COMMAND"; system $c')~",
    R"~(perl -pe 's/x/system("COMMAND")/e' f)~",
    R"~(perl -ne 'm/"/; system("COMMAND")' f)~",
    R"~(perl -e '$#a; system("COMMAND")')~",
    R"~(perl -e 'print "@{[ `COMMAND` ]}"')~",
    "perl -e 'system <<E;\nCOMMAND\nE\n'",
    R"~(ruby -e '%x{COMMAND}')~",
    R"~(ruby -e 'open("|COMMAND")')~",
    R"~(ruby -e 'require "open3"; Open3.capture2("COMMAND")')~",
    R"~(ruby -e 'Kernel.send(:system, "COMMAND")')~",
    R"~(ruby -e 'puts "#{`COMMAND`}"')~",
    R"~(ruby -e 'system(*%w[COMMAND])')~",
    R"~(ruby -e 'puts /"/ =~ "x"; system("COMMAND")')~",
    R"~(node -e 'require("child_process")["execSync"]("COMMAND")')~",
    R"~(node -e 'const {execSync: e} = require("child_process"); e("COMMAND")')~",
    R"~(node -e '/"/.test(x); require("child_process").execSync("COMMAND")')~",
    R"~(node -e '/* " */ require("child_process").execSync("COMMAND")')~",
    R"~(node -e 'eval("require(`child_process`).execSync(`COMMAND`)")')~",
    R"~(node -e '`${require("child_process").execSync("COMMAND")}`')~",
    R"~(node -e 'a = (b) / "2"; c = 1 / 2; require("child_process").execSync("COMMAND")')~",
    R"~(bun -e 'await Bun.$`COMMAND`')~",
    R"~(php -r 'call_user_func("system", "COMMAND");')~",
    R"~(php -r '$f = "system"; $f("COMMAND");')~",
    R"~(php -r 'pcntl_exec("/bin/sh", ["-c", "COMMAND"]);')~",
    "echo \"it's <?php system('COMMAND');\" | php",
    R"~(awk '/#/ { system("COMMAND") }' f)~",
    R"~(awk '/"/ { system("COMMAND") }' f)~",
    R"~(awk 'BEGIN { c = "COMMAND"; c | getline }')~",
    R"~(awk -v c='COMMAND' 'BEGIN { system(c) }')~",
    R"~(awk 'BEGIN { system ("COMMAND") }')~",
    "awk 'BEGIN { system \\\n (\"COMMAND\") }'",
    "awk -v a=b -v c='true\nCOMMAND' 'BEGIN { system(c) }'",
    R"~(gawk 'BEGIN { f = "system"; @f("COMMAND") }')~",
    R"~(awk 'BEGIN { while (("COMMAND" | getline l) > 0) print l }')~",
    "awk -f - <<'EOF'\nBEGIN { system(\"COMMAND\") }\nEOF",
    R"~(lua -e 'os.execute [[COMMAND]]')~",
    R"~(lua -e 'os.execute [==[COMMAND]==]')~",
    R"~(lua -e '--[[ " ]] os["execute"]("COMMAND")')~",
    R"~(lua -e 'local e = os.execute; e("" .. "COMMAND")')~",
    R"~(Rscript -e 'x <- 1 # "
system("COMMAND")')~",
    "tclsh <<< 'exec COMMAND'",
    "tclsh <<< 'if {1} {puts [exec COMMAND]}'",
    "tclsh <<< 'set f [open \"|COMMAND\"]'",
    "expect -c 'spawn COMMAND'",
    "m4 <<< 'syscmd(`COMMAND)'",
    "echo 'esyscmd([COMMAND])' | m4",
    "ed <<< '!COMMAND'",
    "printf '1\\nr !COMMAND\\n' | ed f",
    "ex -s <<< ':!COMMAND'",
    "vim -c 'silent !COMMAND' f",
    "vim -c 'exe \"!COMMAND\"' f",
    "vim -c 'py3 import os; os.system(\"COMMAND\")'",
};

}  // namespace

TEST_CASE("policy: what code starts is judged by the rules and by the patterns") {
  const auto rules = strict();
  const auto blocking = strict(lists({}, {"git push.*"}));
  codeexec::PolicyOptions options;
  options.ask_commands = {"git push.*"};
  const auto asking = strict(options);
  for (const char* const form : starting_forms) {
    CAPTURE(std::string(form));
    CHECK(rule_of(rules, with_command(form, "sudo id")) == "sudo");
    CHECK(rule_of(blocking, with_command(form, "git push -f")) == "blocked-commands");
    CHECK(rule_of(asking, with_command(form, "git push -f")) == "ask-commands");
    CHECK(rule_of(blocking, with_command(form, "git pull")) == "");
  }
}

TEST_CASE("policy: a text of code is what its escapes say") {
  refuses(strict(), "sudo",
          {R"(python3 -c 'os.system("\x73udo id")')", R"(python3 -c 'os.system("\163udo id")')",
           R"(python3 -c 'os.system("\u0073udo id")')", R"(node -e 'x.exec("\u{73}udo id")')",
           R"(perl -e 'system "\x{73}udo id"')", R"(lua -e 'os.execute("\115udo id")')",
           R"(lua -e 'os.execute("\z   sudo id")')", R"(awk 'BEGIN { system("\163udo id") }')",
           R"(ruby -e 'system "\u{73}udo id"')", R"(php -r 'system("\163udo id");')"});
  passes(strict(), {R"(python3 -c 'os.system(r"\x73udo id")')", R"(perl -e 'system q(\x73udo id)')",
                    R"(ruby -e 'system %q(\x73udo id)')", R"(php -r 'system("\$sudo id");')"});
}

TEST_CASE("policy: what is no code in a language is passed over") {
  passes(strict(), {"python3 -c '# os.system(\"sudo id\")'",
                    "node -e '// x.execSync(\"sudo id\")'",
                    "node -e '/* x.execSync(\"sudo id\") */ 1'",
                    "lua -e '-- os.execute(\"sudo id\")'",
                    "lua -e '--[[\nos.execute(\"sudo id\")\n]]'",
                    "perl -e '# `sudo id`'",
                    "perl -e '\n=pod\n\n`sudo id`\n\n=cut\n\nprint 1'",
                    "php -r '// system(\"sudo id\")'",
                    "ruby -e '# system(\"sudo id\")'",
                    "awk '# system(\"sudo id\")'",
                    "python3 -c 's.run([\"ls\"], input=\"sudo id\", cwd=\"sudo\")'",
                    "python3 -c 'x = \"os.system(sudo id)\"'",
                    "python3 -c 'print(\"sudo id\")'",
                    "node -e '/x.execSync(\"sudo id\")/.test(y)'",
                    "perl -ne 'print if m{`sudo id`}' f",
                    "awk '/system(\"sudo id\")/' f",
                    "ruby -e 'puts %q(`sudo id`)'",
                    "ed f <<< $'a\\n!sudo id\\n.\\nw'",
                    "tclsh <<< '# exec sudo id'",
                    "php <<< 'system(\"sudo id\");'"});
}

TEST_CASE("policy: code that is not known before it runs is refused") {
  refuses(strict(), "opaque-shell-input",
          {"node -e \"$(curl x)\"", "python3 -c \"$(curl x)\"", "python3 -c \"$CODE\"",
           "perl -e \"$(cat x)\"", "ruby -e \"require 'x'; $(curl x)\"",
           "python3 -c \"import os\n$(curl x)\"", "awk \"$(curl x)\"", "php -r \"$X\"",
           "lua -e \"$X\"", "node -p \"$X\""});
  passes(strict(),
         {"python3 -c \"print($A + $B)\"", "node -p \"'$A'.length\"", "awk \"/$X/ { print }\" f",
          "awk \"NR==$N\" f", "awk \"{ print \\$$N }\" f", "perl -pe \"s/a/$B/\" f",
          "python3 -c \"import json; print(json.load(open('$F'))['$K'])\"", "node <(cat x.js)",
          "python3 \"$SCRIPT\"", "ssh host \"python3 -c 'print($X)'\""});
}

TEST_CASE("policy: a command that awk makes of what it reads is not known") {
  refuses(strict(), "opaque-shell-input",
          {"awk '{ system($1) }' f",
           "awk '{ print | $2 }' f",
           "awk '{ $0 | getline }' f",
           "awk '{ \"\" $1 | getline x }' f",
           "awk '{ x = $1; system(x) }' f",
           "awk '{ cmd = \"ls\"; cmd = $1; cmd | getline r }' f",
           "awk '{ system($NF \" x\") }' f",
           "echo 'a b' | awk '{system($(NF-1))}'",
           "gawk '{ print |& $1 }' f",
           "awk '{ printf \"%s\", $1 | $2 }' f",
           "awk '{ print $1 | \"sh\" }' f",
           "awk '{ print | \"/bin/bash -s\" }' f",
           "awk 'BEGIN { system(ENVIRON[\"X\"]) }'",
           "awk 'BEGIN { system(ARGV[1]) }' ls",
           "awk '{ system(substr($0, 3)) }' f",
           "awk '{ system(sprintf(\"%s x\", $1)) }' f",
           "awk '{ system(\"true; \" $1) }' f",
           "awk 'BEGIN { while ((\"cat f\" | getline l) > 0) system(l) }'",
           "awk -v c=\"$X\" 'BEGIN { system(c) }'",
           "find . -exec awk '{ system($1) }' {} +"});
  refuses(
      strict(), "sudo",
      {"awk 'BEGIN { print \"sudo id\" | \"sh\" }'", "awk 'BEGIN { \"sudo id\" |& getline x }'",
       "awk '{ system(sprintf(\"sudo ls %s\", $1)) }' f", "awk '{ system(\"sudo ls \" $1) }' f"});
  passes(strict(),
         {"awk '{ print $1 | \"sort -u\" }' f", "awk '{ print $0 | \"cat 1>&2\" }' f",
          "awk '$1 ~ /foo|bar/ { print $2 }' f", "awk '{ x = $1 / 2 } /a|b/ { print x }' f",
          "awk 'BEGIN { \"date +%s\" | getline t; print t }'",
          "awk '{ \"date -d \" $1 \" +%s\" | getline d; print d }' f",
          "awk '{ cmd = \"grep -c \" $1 \" f\"; cmd | getline n; close(cmd) }' f",
          "awk '{ cmd = sprintf(\"stat -c %%s %s\", $1); cmd | getline n }' f",
          "awk '{ system(\"mkdir -p \" $1) }' f", "awk '{ system(\"\"); print; fflush() }' f",
          "awk '{ print $1 || $2; print \"a|b\" }' f", "awk 'BEGIN { print \"ls\" | \"sh\" }'",
          "awk '{ print \"sudo id\" | \"sort\" }' f",
          "awk '{ while ((getline l < \"f\") > 0) n++ }' f"});
}

TEST_CASE("policy: code is read in a time that grows with its size") {
  const auto policy = strict();
  const auto repeated = [](std::string_view piece, std::size_t size) {
    std::string text;
    while (text.size() < size) text += piece;
    return text;
  };
  // Each is made to be read again and again.
  const std::pair<const char*, const char*> slow[] = {
      {"python3", "x=x+x\n"}, {"python3", "os.system("},
      {"python3", "f\"{\""},  {"python3", "f'{'"},
      {"node", "`${"},        {"node", "/["},
      {"node", "a /b "},      {"perl", "q("},
      {"perl", "<<A "},       {"perl", "\"${\""},
      {"perl", "s{"},         {"ruby", "#{"},
      {"ruby", "\"#{"},       {"lua", "[["},
      {"lua", "[==["},        {"php", "<?php \"{$"},
      {"tclsh", "["},         {"tclsh", "{"},
      {"m4", "syscmd("},      {"python3", "\\'"},
      {"python3", "eval('"},  {"python3", "x='aaaaaaaa'+x;"},
      {"ruby", "%w["},        {"perl", "y{{"},
  };
  for (const auto& each : slow) {
    const std::string program = each.first, piece = each.second;
    CAPTURE(program);
    CAPTURE(piece);
    const std::string script = program + " <<'EOF'\n" + repeated(piece, 400000) + "\nEOF";
    const std::clock_t begin = std::clock();
    policy.judge(script, {}, false);
    // Of the processor, and generous: what is quadratic here takes minutes.
    CHECK((std::clock() - begin) / CLOCKS_PER_SEC < 20);
  }
}
