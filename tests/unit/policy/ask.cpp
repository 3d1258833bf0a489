// What a person must approve: patterns and rules that ask.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "helpers.hpp"

using codeexec::ErrorCode;
using codeexec::Policy;
using codeexec::PolicyOptions;
using codeexec::Verdict;
using support::check_form;
using support::has;
using support::make;
using support::passes;
using support::refuses;

namespace {

PolicyOptions asking(std::vector<std::string> commands, std::vector<std::string> rules = {}) {
  PolicyOptions options;
  options.ask_commands = std::move(commands);
  options.ask_rules = std::move(rules);
  return options;
}

void asks(const Policy& policy, std::string_view rule,
          const std::vector<std::string_view>& scripts) {
  for (const std::string_view script : scripts) {
    CAPTURE(std::string(script));
    for (const bool in_full : {false, true}) {
      const Verdict verdict = policy.judge(script, {}, in_full).verdict;
      CHECK(verdict.must_ask);
      CHECK(!verdict.allowed);
      CHECK(!verdict);
      CHECK(verdict.rule == rule);
      check_form(verdict, script);
    }
  }
}

void refuses_outright(const Policy& policy, std::string_view rule,
                      const std::vector<std::string_view>& scripts) {
  refuses(policy, rule, scripts);
  for (const std::string_view script : scripts) {
    CAPTURE(std::string(script));
    CHECK(!policy.judge(script).verdict.must_ask);
  }
}

std::string error_of(const PolicyOptions& options) {
  const auto policy = Policy::create(options);
  REQUIRE(!policy.has_value());
  CHECK(policy.error().code == ErrorCode::invalid_argument);
  return policy.error().message;
}

}  // namespace

TEST_CASE("policy: ask: a pattern asks about every command of a script and every form of it") {
  const Policy policy = make(asking({"git push.*", "deploy( .*)?"}));
  asks(policy, "ask-commands",
       {"git push", "git push --force origin", "cd x && git push", "echo a; git push | cat",
        "if true; then git push; fi", "sh -c 'git push'", "env A=b git push", "/usr/bin/git push",
        "timeout 5 git push", "git -C /x push", "echo $(git push)", "f() { git push; }; f",
        "find . -exec deploy {} \\;", "xargs deploy", "./deploy now", "eval 'git push'"});
  passes(policy, {"git status", "echo git push", "grep 'git push' x", "# git push", "true"});
  const Verdict verdict = policy.judge("cd x && git push origin").verdict;
  CHECK(verdict.message ==
        "Command matches a pattern that a person must approve: 'git push.*' (git push origin)");
  CHECK(support::blamed(policy, "cd x && git push origin") == "git push origin");
  // Lists have no effect on what they do not name.
  CHECK(policy.judge(std::vector<std::string>{"git", "push"}).verdict.must_ask);
}

TEST_CASE("policy: ask: a command must not hide in what is not known before it runs") {
  const Policy policy = make(asking({"git push.*"}));
  asks(policy, "unknown-command", {"$GIT/bin/git push", "./* push"});
  // The rules refuse these in any case.
  refuses_outright(policy, "unknown-command", {"$GIT push", "$(cat x)"});
  refuses_outright(policy, "opaque-shell-input", {"curl x | sh"});
  PolicyOptions lax = asking({"git push.*"});
  lax.disabled_rules = {"unknown-command", "opaque-shell-input"};
  asks(make(lax), "unknown-command", {"$GIT push"});
  asks(make(lax), "opaque-shell-input", {"curl x | sh"});
  lax.ask_commands.clear();
  passes(make(lax), {"$GIT push", "curl x | sh"});
}

TEST_CASE("policy: ask: a rule asks in place of its refusal, and no other rule does") {
  const Policy policy = make(asking({}, {"sudo", "chmod"}));
  asks(policy, "sudo", {"sudo id", "cd x; sudo id", "env sudo id"});
  asks(policy, "chmod", {"chmod 777 x"});
  refuses_outright(policy, "su", {"su root"});
  passes(policy, {"chmod 644 x", "echo sudo"});
  const Verdict verdict = policy.judge("sudo id").verdict;
  CHECK(has(verdict.message, "Use of 'sudo' is not allowed (sudo id)"));
}

TEST_CASE("policy: ask: a refusal wins over a question, wherever it stands") {
  PolicyOptions options = asking({"git push.*", "rm .*"}, {"sudo", "unknown-command"});
  options.blocked = {"git push --force.*"};
  const Policy policy = make(options);
  asks(policy, "ask-commands", {"git push", "rm x"});
  asks(policy, "sudo", {"sudo id", "git push; sudo id", "sudo git push"});
  refuses_outright(policy, "su", {"sudo id; su root", "su root; git push"});
  refuses_outright(policy, "rm-protected", {"rm -rf /", "git push; rm -rf /usr", "sudo rm -rf /"});
  refuses_outright(policy, "blocked-commands", {"git push --force", "git push; git push --force"});
  refuses_outright(policy, "syntax", {"git push; ) x"});
  // With a block list, what is not known is refused.
  refuses_outright(policy, "unknown-command", {"$X y"});
  PolicyOptions allowing = asking({"git push.*"}, {"sudo"});
  allowing.allowed = {"git .*"};
  asks(make(allowing), "ask-commands", {"git push"});
  refuses_outright(make(allowing), "allowed-commands", {"git push; ls", "sudo id"});
  PolicyOptions unblocked = asking({}, {"unknown-command"});
  asks(make(unblocked), "unknown-command", {"$X y"});
}

TEST_CASE("policy: ask: compat mode asks, too, after all that refuses") {
  PolicyOptions options = asking({"git push"}, {"sudo"});
  options.compat = true;
  options.blocked = {"git push --force"};
  const Policy policy = make(options);
  asks(policy, "ask-commands", {"git push", "git push origin; ls"});
  asks(policy, "sudo", {"sudo id", "echo sudo", "git push; sudo id"});
  refuses_outright(policy, "su", {"sudo id; su"});
  refuses_outright(policy, "blocked-commands", {"git push --force"});
  passes(policy, {"ls; git push", "ls"});
  options.blocked.clear();
  options.allowed = {"git"};
  refuses_outright(make(options), "allowed-commands", {"sudo id"});
  asks(make(options), "sudo", {"git x; sudo id"});
}

TEST_CASE("policy: ask: a rule that enable_sudo switches off is asked about") {
  PolicyOptions options = asking({}, {"sudo"});
  options.enable_sudo = true;
  const Policy policy = make(options);
  asks(policy, "sudo", {"sudo id"});
  passes(policy, {"su root", "chmod 777 x", "chown a b"});
}

TEST_CASE("policy: ask: bad patterns, unknown rules and rules that are off are errors") {
  CHECK(support::begins(Policy::create(asking({"git("})).error().message,
                        "ask_commands: invalid pattern 'git(': "));
  CHECK(support::begins(error_of(asking({}, {"sodu"})),
                        "ask_rules: no rule is called 'sodu'; there are sudo, su, "));
  // These are no rules of the sanitizer.
  for (const char* name : {"", "allowed-commands", "syntax", "read-only", "SUDO"})
    CHECK(support::begins(error_of(asking({}, {"sudo", name})), "ask_rules: no rule is called "));
  PolicyOptions off = asking({}, {"dd"});
  off.disabled_rules = {"sudo", "dd"};
  CHECK(error_of(off) == "ask_rules: 'dd' is in disabled_rules, too: leave one out");
  PolicyOptions compat = asking({}, {"mkfs"});
  compat.compat = true;
  CHECK(error_of(compat) == "ask_rules: 'mkfs' has no pattern in compat mode: use strict");
}

TEST_CASE("policy: the reason of a pattern stands in the refusal and in the question") {
  codeexec::PolicyOptions options;
  options.blocked = {"git push.*"};
  options.ask_commands = {"npm publish.*"};
  options.reasons = {{"git push.*", "open a merge request"}, {"npm publish.*", "it is public"}};
  for (const bool compat : {false, true}) {
    CAPTURE(compat);
    options.compat = compat;
    const auto policy = support::make(options);
    CHECK(policy.judge("git push -f").verdict.message ==
          "Command matches blocked pattern: 'git push.*'; open a merge request");
    CHECK(policy.judge("npm publish").verdict.message ==
          "Command matches a pattern that a person must approve: 'npm publish.*'; it is public");
  }
}

TEST_CASE("policy: a pattern that contradicts its examples is an error") {
  codeexec::PolicyOptions good;
  good.allowed = {"git.*", "npm.*"};
  good.blocked = {"git push.*"};
  good.must_match = {{"git push.*", "git push -f"},
                     {"git push.*", "cd x && env A=1 git push"},
                     {"git.*", "git log"},
                     {"git push.*", "sudo git push"}};
  good.must_not_match = {{"git push.*", "git pull"}, {"git.*", "git log; ls"}};
  CHECK(codeexec::Policy::create(good).has_value());
  const auto error_of = [](const codeexec::PolicyOptions& options) {
    const auto policy = codeexec::Policy::create(options);
    return policy ? std::string() : policy.error().message;
  };
  codeexec::PolicyOptions bad = good;
  bad.must_match.push_back({"git push.*", "git pull"});
  CHECK(error_of(bad) == "blocked_commands: 'git push.*' does not match its example 'git pull'");
  bad = good;
  bad.must_not_match.push_back({"git.*", "git log"});
  CHECK(error_of(bad) == "allowed_commands: 'git.*' must not and does match its example 'git log'");
  bad = good;
  bad.must_match.push_back({"git", "git"});
  CHECK(error_of(bad) ==
        "allowed_commands, blocked_commands, ask_commands: 'git' has an example, and is in none of "
        "these lists");
  bad = good;
  bad.reasons.push_back({"npm.*", "x"});
  CHECK(error_of(bad) ==
        "allowed_commands: 'npm.*' has a reason, and only refusals and questions show one");
}
