// The compat policy: the rules, lists and texts of the reference.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <ctime>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::ErrorCode;
using codeexec::Policy;
using codeexec::PolicyOptions;
using codeexec::Verdict;
using support::blamed;
using support::lists;
using support::make;
using namespace std::string_view_literals;

namespace {

Policy compat(PolicyOptions options = {}) {
  options.compat = true;
  return make(options);
}

Policy compat_with_sudo() {
  PolicyOptions options;
  options.enable_sudo = true;
  return compat(options);
}

Policy compat_with_lists(std::vector<std::string> allowed, std::vector<std::string> blocked = {}) {
  return compat(lists(std::move(allowed), std::move(blocked)));
}

struct RuleText {
  std::string_view name;
  std::string_view message;
};

const RuleText rule_texts[] = {
    {"rm-protected", "Use of 'rm -rf /' is not allowed"},
    {"mv-dev-null", "Moving files to /dev/null is not allowed"},
    {"dd", "Use of 'dd' command is not allowed"},
    {"device-write", "Overwriting disk blocks directly is not allowed"},
    {"fork-bomb", "Fork bombs are not allowed"},
    {"sudo", "Use of 'sudo' is not allowed"},
    {"su", "Use of 'su' is not allowed"},
    {"chown", "Use of 'chown' is not allowed"},
    {"chmod", "Use of 'chmod' is not allowed"},
};

std::string message_of(std::string_view rule) {
  for (const RuleText& text : rule_texts)
    if (text.name == rule)
      return "Potentially dangerous command detected: " + std::string(text.message);
  return "no such rule";
}

void check_refused(const Policy& policy, std::string_view command, std::string_view rule) {
  CAPTURE(std::string(command));
  const Verdict verdict = policy.judge(command).verdict;
  CHECK(!verdict);
  CHECK(!verdict.allowed);
  CHECK(verdict.rule == rule);
  CHECK(verdict.message == message_of(rule));
  CHECK(verdict.begin < verdict.end);
  CHECK(verdict.end <= command.size());
}

void check_allowed(const Policy& policy, std::string_view command) {
  CAPTURE(std::string(command));
  const Verdict verdict = policy.judge(command).verdict;
  CHECK(verdict);
  CHECK(verdict.allowed);
  CHECK(verdict.rule == "");
  CHECK(verdict.message == "");
}

}  // namespace

// compat: sanitizer -------------------------------------------------------------------------------

TEST_CASE("policy: compat: its rules are those of the reference") {
  std::size_t count = 0;
  for (const auto& rule : Policy::rules()) {
    if (!rule.compat) continue;
    ++count;
    CHECK(message_of(rule.name) != "no such rule");
  }
  CHECK(count == std::size(rule_texts));
}

TEST_CASE("policy: compat: dangerous commands are refused with the exact message") {
  const Policy policy = compat();
  check_refused(policy, "rm -rf /", "rm-protected");
  check_refused(policy, "dd if=/dev/zero of=/dev/sda", "dd");
  check_refused(policy, ":(){ :|:& };:", "fork-bomb");
  check_refused(policy, "mv file /dev/null", "mv-dev-null");
  check_refused(policy, "sudo apt install something", "sudo");
  check_refused(policy, "su root", "su");
  check_refused(policy, "chown root file.txt", "chown");
  check_refused(policy, "chmod 777 file.txt", "chmod");
  check_refused(policy, "echo Hello > /dev/sda", "device-write");
  CHECK(policy.judge("rm -rf /").verdict.message ==
        "Potentially dangerous command detected: Use of 'rm -rf /' is not allowed");
}

TEST_CASE("policy: compat: ordinary commands pass") {
  const Policy policy = compat();
  for (const char* command :
       {"python script.py", "pytest tests/", "npm run build", "ls -la", "rm file.txt",
        "git submodule update", "echo 'summary'", "python -m pip install --user requests", "",
        "   ", "rm -rf build", "adduser x", "echo x > /dev/null", "issue", "ddrescue"})
    check_allowed(policy, command);
}

TEST_CASE(
    "policy: compat: sudo is refused by default, wherever it stands and before what it runs") {
  const Policy policy = compat();
  for (const char* command :
       {"sudo apt-get update", "sudo apt-get install -y ffmpeg", "sudo pip install tensorflow",
        "sudo npm install -g typescript", "sudo chmod 755 file.txt",
        "echo 'test' && sudo apt update", "sudo apt-get install malicious-package"})
    check_refused(policy, command, "sudo");
}

TEST_CASE("policy: compat: enable_sudo lets sudo, su, chown and chmod pass") {
  const Policy policy = compat_with_sudo();
  for (const char* command :
       {"sudo apt-get update", "sudo apt-get install -y ffmpeg", "sudo pip install tensorflow",
        "sudo npm install -g typescript", "sudo chmod 755 file.txt",
        "echo 'test' && sudo apt update", "sudo chown user:group file.txt", "su postgres",
        "chown user:group file.txt", "chmod 755 file.txt", "chmod +x script.sh",
        "sudo apt-get install gh"})
    check_allowed(policy, command);
}

TEST_CASE("policy: compat: enable_sudo leaves the other rules in force") {
  const Policy policy = compat_with_sudo();
  check_refused(policy, "rm -rf /", "rm-protected");
  check_refused(policy, "sudo rm -rf /", "rm-protected");
  check_refused(policy, "dd if=/dev/zero of=/dev/sda", "dd");
  check_refused(policy, "sudo dd if=/dev/zero of=/dev/sda", "dd");
  check_refused(policy, ":(){ :|:& };:", "fork-bomb");
  check_refused(policy, "mv file /dev/null", "mv-dev-null");
  check_refused(policy, "sudo mv file /dev/null", "mv-dev-null");
  check_refused(policy, "echo test > /dev/sda1", "device-write");
}

TEST_CASE("policy: compat: su, chown and chmod are refused without enable_sudo") {
  const Policy policy = compat();
  check_refused(policy, "su root", "su");
  check_refused(policy, "su - postgres", "su");
  check_refused(policy, "chown root:root file.txt", "chown");
  check_refused(policy, "chmod 777 file.txt", "chmod");
  check_refused(policy, "chmod +x script.sh", "chmod");
}

TEST_CASE("policy: compat: of several rules the first in their order is reported") {
  const Policy policy = compat();
  check_refused(policy, "chmod x; chown x; su x; sudo x; dd x; rm -rf /", "rm-protected");
  check_refused(policy, "chmod x; chown x; su x; sudo x; dd x", "dd");
  check_refused(policy, "chmod x; chown x; su x; sudo x", "sudo");
  check_refused(policy, "chmod x; chown x; su x", "su");
  check_refused(policy, "chmod x; chown x", "chown");
}

TEST_CASE("policy: compat: patterns see newlines as the original does") {
  const Policy policy = compat();
  check_refused(policy, "rm\n-rf\n/", "rm-protected");  // \s takes a newline
  check_refused(policy, "mv a b\n/dev/null", "mv-dev-null");
  check_allowed(policy, "mv a\nb /dev/null");  // the dot does not
  check_refused(policy, "x >\n/dev/sdb", "device-write");
  check_refused(policy, "rm\302\240-rf /", "rm-protected");  // \s takes a no-break space
  check_allowed(policy, "\303\251dd x");                     // \b: a letter stands before dd
  check_refused(policy, "\342\200\234dd\342\200\235", "dd");
  check_allowed(policy, "SUDO x; Dd");
}

TEST_CASE(
    "policy: W-04: compat: harmless commands that the original refuses are refused in compat "
    "mode") {
  const Policy policy = compat();
  check_refused(policy, "rm -rf /tmp/build", "rm-protected");
  check_refused(policy, "rm -rf /abs/workspace/build", "rm-protected");
  check_refused(policy, "mv a b && cat x > /dev/null", "mv-dev-null");
  check_refused(policy, "mv a b; ls 2> /dev/null", "mv-dev-null");
  check_refused(policy, "git add dd.txt", "dd");
  check_refused(policy, "echo dd", "dd");
  check_refused(policy, "grep -n dd x", "dd");
  check_refused(policy, "ls dd/", "dd");
  check_refused(policy, "grep sudo README.md", "sudo");
  check_refused(policy, "git commit -m 'drop sudo'", "sudo");
  check_refused(policy, "cat su.txt", "su");
  check_refused(policy, "python su.py", "su");
  check_refused(policy, "cat chown.md", "chown");
  check_refused(policy, "echo chmod", "chmod");
  check_refused(policy, "git update-index --chmod=+x f", "chmod");
  check_refused(policy, "python -c 'import os; os.chmod(1,2)'", "chmod");
}

TEST_CASE(
    "policy: W-03: compat: dangerous commands that the original lets pass do pass in compat mode") {
  const Policy policy = compat();
  for (const char* command : {"rm -fr /",         "rm -r -f /",     "rm -Rf /",
                              "rm -rf -- /",      "rm -rf ~",       "rm -rf $HOME",
                              "rm -rf *",         "rm -rf \"/\"",   "rm -rf --no-preserve-root /",
                              "r\\m -rf /",       "'rm' -rf /",     "find / -delete",
                              "mv x '/dev/null'", "d''d if=x",      "> /dev/nvme0n1",
                              "cp x /dev/sda",    ":() { :|:& };:", "bomb(){ bomb|bomb& };bomb",
                              "s\\udo ls",        "doas ls",        "install -m 777"})
    check_allowed(policy, command);
}

TEST_CASE("policy: compat: a refusal says which bytes caused it") {
  const Policy policy = compat();
  CHECK(blamed(policy, "cd x && rm  -rf /tmp") == "rm  -rf /");
  CHECK(blamed(policy, "a; mv x y /dev/null z") == "mv x y /dev/null");
  CHECK(blamed(policy, "echo x >/dev/sdb2") == ">/dev/sdb2");
  CHECK(blamed(policy, "\303\251 sudo x") == "sudo");
  CHECK(blamed(policy, "x :(){ :|:& };: y") == ":(){ :|:& };:");
}

TEST_CASE("policy: compat: a rule that is switched off by name is skipped, and no other") {
  for (const RuleText& rule : rule_texts) {
    PolicyOptions options;
    options.disabled_rules = {std::string(rule.name)};
    const Policy policy = compat(options);
    CAPTURE(std::string(rule.name));
    for (const auto& [name, command] : {std::pair{"rm-protected"sv, "rm -rf /"sv},
                                        {"mv-dev-null"sv, "mv x /dev/null"sv},
                                        {"dd"sv, "dd x"sv},
                                        {"device-write"sv, ">/dev/sda"sv},
                                        {"fork-bomb"sv, ":(){ :|:& };:"sv},
                                        {"sudo"sv, "sudo x"sv},
                                        {"su"sv, "su x"sv},
                                        {"chown"sv, "chown x"sv},
                                        {"chmod"sv, "chmod x"sv}}) {
      if (name == rule.name)
        check_allowed(policy, command);
      else
        check_refused(policy, command, name);
    }
  }
}

TEST_CASE("policy: an unknown rule to switch off is an error that names the option") {
  for (const char* name : {"sudoo", "", "allowed-commands", "DD"}) {
    PolicyOptions options;
    options.disabled_rules = {"dd", name};
    const auto policy = Policy::create(options);
    CAPTURE(name);
    REQUIRE(!policy.has_value());
    CHECK(policy.error().code == ErrorCode::invalid_argument);
    CHECK(policy.error().message ==
          "disabled_rules: no rule is called '" + std::string(name) +
              "'; there are sudo, su, chmod, chown, dd, mkfs, disk-tools, mount, "
              "device-write, rm-protected, rm-unset-variable, mv-dev-null, fork-bomb, end-machine, "
              "kill-all, machine-settings, accounts, host-access, plant, opaque-shell-input, "
              "unknown-command");
  }
}

// compat: allow and block lists -------------------------------------------------------------------

TEST_CASE(
    "policy: compat: an allowed pattern must match at the start, and need not reach the end") {
  const Policy policy = compat_with_lists({"pytest.*", "python .*"});
  check_allowed(policy, "pytest");
  check_allowed(policy, "pytest -q");
  check_allowed(policy, "python x.py");
  check_allowed(policy, "python x.py\nanything else");
  const Policy prefix = compat_with_lists({"git"});
  check_allowed(prefix, "gitk");
  for (const char* command : {" pytest", "python", "uv run pytest", "", "PYTHON x", "x\npytest"}) {
    CAPTURE(command);
    const Verdict verdict = policy.judge(std::string_view(command)).verdict;
    CHECK(!verdict);
    CHECK(verdict.rule == "allowed-commands");
    CHECK(verdict.message == "Command not in allowed list. Allowed patterns: pytest.*, python .*");
    CHECK(verdict.begin == 0);
    CHECK(verdict.end == std::string_view(command).size());
  }
}

TEST_CASE("policy: compat: no allowed pattern allows everything that is not blocked") {
  check_allowed(compat_with_lists({}), "anything at all");
}

TEST_CASE("policy: compat: a blocked pattern must match at the start") {
  const Policy policy = compat_with_lists({}, {"rm .*", "git push.*"});
  for (const char* command : {"git push", "git push origin", "git pushx"}) {
    CAPTURE(command);
    const Verdict verdict = policy.judge(std::string_view(command)).verdict;
    CHECK(!verdict);
    CHECK(verdict.rule == "blocked-commands");
    CHECK(verdict.message == "Command matches blocked pattern: 'git push.*'");
    CHECK(verdict.begin == 0);
    CHECK(verdict.end == std::string_view(command).size());
  }
  for (const char* command : {" git push", "cd . && git push", "git  push", "\ngit push", "rm"})
    check_allowed(policy, command);
  CHECK(blamed(policy, "rm a\nls") == "rm a");
}

TEST_CASE("policy: compat: the first blocked pattern that matches is reported") {
  CHECK(compat_with_lists({}, {"b", "a", "a.*"}).judge("ab"sv).verdict.message ==
        "Command matches blocked pattern: 'a'");
}

TEST_CASE("policy: compat: a blocked pattern wins over an allowed one") {
  const Policy policy = compat_with_lists({"git .*"}, {"git push.*"});
  check_allowed(policy, "git status");
  CHECK(policy.judge("git push"sv).verdict.rule == "blocked-commands");
}

TEST_CASE(
    "policy: compat: the sanitizer is asked first, then the allowed list, then the blocked one") {
  const Policy policy = compat_with_lists({"git .*", "sudo .*"}, {"sudo .*", "npm .*"});
  CHECK(policy.judge("sudo x"sv).verdict.rule == "sudo");
  CHECK(policy.judge("dd x"sv).verdict.rule == "dd");
  CHECK(policy.judge("npm x"sv).verdict.rule == "allowed-commands");
  CHECK(policy.judge("git x"sv).verdict.rule == "");
}

TEST_CASE("policy: W-08: a pattern that is none is refused when the policy is made") {
  PolicyOptions options;
  options.allowed = {"python .*", "py(thon"};
  auto policy = Policy::create(options);
  REQUIRE(!policy.has_value());
  CHECK(policy.error().code == ErrorCode::parse);
  CHECK(policy.error().offset == 2);
  CHECK(
      policy.error().message ==
      "allowed_commands: invalid pattern 'py(thon': missing ), unterminated subpattern at byte 2");

  options = {};
  options.blocked = {"x", "rm (?=-rf)"};
  policy = Policy::create(options);
  REQUIRE(!policy.has_value());
  CHECK(policy.error().code == ErrorCode::unsupported);
  CHECK(policy.error().message ==
        "blocked_commands: invalid pattern 'rm (?=-rf)': look-ahead cannot be matched in linear "
        "time at byte 3");
}

// compat: form, argv, time ------------------------------------------------------------------------

TEST_CASE("policy: compat: a NUL byte is refused, whatever stands around it") {
  const Policy policy = compat_with_lists({".*"});
  for (const std::string_view command : {"\0"sv, "ls\0-la"sv, "sudo\0x"sv, "ls\0"sv}) {
    const Verdict verdict = policy.judge(command).verdict;
    CHECK(!verdict);
    CHECK(verdict.rule == "nul-byte");
    CHECK(verdict.begin == command.find('\0'));
    CHECK(verdict.end == verdict.begin + 1);
    CHECK(verdict.message == "Command contains a NUL byte (at byte " +
                                 std::to_string(verdict.begin) + "), which no command can contain");
  }
  CHECK(policy.judge(std::vector<std::string>{"ls", std::string("a\0b", 3)}).verdict.rule ==
        "nul-byte");
}

TEST_CASE("policy: compat: a command above max_command_bytes is refused") {
  PolicyOptions options;
  options.max_command_bytes = 10;
  const Policy policy = compat(options);
  check_allowed(policy, "0123456789");
  const Verdict verdict = policy.judge("0123456789a"sv).verdict;
  CHECK(verdict.rule == "command-too-long");
  CHECK(verdict.message == "Command is longer than 10 bytes (max_command_bytes)");
  CHECK(verdict.begin == 10);
  CHECK(verdict.end == 11);
}

TEST_CASE("policy: compat: an argv is judged as the script that starts the same") {
  using Argv = std::vector<std::string>;
  const Policy policy = compat_with_lists(
      {"python x\\.py", "echo '.*'$", "'' a$", "printf 'it'\\\\''s'$"}, {"python x\\.py -v"});
  CHECK(policy.judge(Argv{"python", "x.py"}).verdict);
  CHECK(policy.judge(Argv{"echo", "a b; $(c) `d`"}).verdict);
  CHECK(policy.judge(Argv{"", "a"}).verdict);
  CHECK(policy.judge(Argv{"printf", "it's"}).verdict);
  CHECK(policy.judge(Argv{"python", "x.py", "-v"}).verdict.rule == "blocked-commands");
  CHECK(policy.judge(Argv{"python x.py"}).verdict.rule == "allowed-commands");
  CHECK(policy.judge(Argv{"echo", "plain"}).verdict.rule == "allowed-commands");
  CHECK(policy.judge(Argv{}).verdict.rule == "allowed-commands");
  const Verdict verdict = compat().judge(Argv{"env", "a b", "sudo"}).verdict;
  CHECK(verdict.rule == "sudo");
  CHECK(verdict.begin == 10);  // env 'a b' sudo
  CHECK(verdict.end == 14);
}

TEST_CASE(
    "policy: W-05: compat: a verdict takes linear time, whatever the command and the patterns") {
  const std::clock_t start = std::clock();
  const Policy policy = compat();
  check_allowed(policy, "mv" + std::string(65536, ' '));
  std::string repeated;
  while (repeated.size() < 65536) repeated += "mv ";
  check_allowed(policy, repeated);
  check_allowed(policy, std::string(std::size_t{4} << 20, 'd'));
  std::string arrows;
  while (arrows.size() < 65536) arrows += "> \t";
  check_allowed(policy, arrows);

  const Policy lists = compat_with_lists({"(a+)+$", "(\\w+\\s?)+$"}, {"(a|a)*b"});
  CHECK(lists.judge(std::string(65536, 'a') + "!").verdict.rule == "allowed-commands");
  check_allowed(lists, std::string(65536, 'a'));
  // Of the processor, and generous: what is quadratic here takes minutes.
  CHECK((std::clock() - start) / CLOCKS_PER_SEC < 20);
}

TEST_CASE("policy: compat: hostile bytes are judged like any others") {
  const Policy policy = compat();
  check_refused(policy, "\377sudo\200", "sudo");
  check_refused(policy, "\303 dd", "dd");
  check_allowed(policy, "\360\237\230 \355\240\200 \300\257");
  CHECK(compat_with_lists({}, {"a\nb"}).judge("a\nb"sv).verdict.message ==
        "Command matches blocked pattern: 'a\nb'");
}

TEST_CASE("policy: copies share what was compiled, between threads too") {
  const Policy policy = compat_with_lists({"git .*"});
  std::vector<int> refused(4, 0);
  std::vector<std::thread> threads;
  for (int& count : refused)
    threads.emplace_back([&count, copy = policy] {
      for (int i = 0; i < 200; ++i)
        count += !copy.judge("sudo ls"sv).verdict && copy.judge("git log"sv).verdict;
    });
  for (std::thread& thread : threads) thread.join();
  for (const int count : refused) CHECK(count == 200);
}

TEST_CASE("policy: compat lists: in strict mode nothing passes that they refuse in compat mode") {
  PolicyOptions options = lists({"echo.*", "cat.*"}, {"echo a.*\\| *cat", "echo b"});
  const Policy strict = make(options);
  options.compat_lists = true;
  const Policy both = make(options);
  const auto rule = [](const Policy& policy, const std::string& script) {
    return policy.judge(script).verdict.rule;
  };
  // Patterns over a whole line, patterns that a command only begins with, and a blank before it.
  for (const std::string script : {"echo a b | cat", "echo b c"}) {
    CHECK(rule(strict, script) == "");
    CHECK(rule(both, script) == "blocked-commands");
  }
  CHECK(rule(strict, " echo x") == "");
  CHECK(rule(both, " echo x") == "allowed-commands");
  // Each command of a script is judged all the same, and the sanitizer is the strict one.
  CHECK(rule(both, "echo x; id") == "allowed-commands");
  CHECK(rule(both, "echo x | cat") == "");
  CHECK(rule(both, "echo chmod") == "");
}
