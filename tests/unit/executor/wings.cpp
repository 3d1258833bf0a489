// Executors that are made without some wings, and with a guard of the program's own.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"

using codeexec::ExecutorWings;
using codeexec::Judgement;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Outcome;
using codeexec::Permission;
using codeexec::Result;
using support::has;
using support::TempDir;

namespace {

// Refuses what has "bad" in it and asks about "perhaps". Says that "x" is removed, and has not read
// what has "unclear" in it.
class WordGuard final : public codeexec::Guard {
 public:
  Judgement judge(std::string_view script, std::string_view, bool) const override {
    Judgement judgement;
    judgement.verdict.allowed = !has(script, "bad") && !has(script, "perhaps");
    judgement.verdict.must_ask = has(script, "perhaps");
    if (!judgement.verdict) judgement.verdict.rule = "word";
    judgement.complete = !has(script, "unclear");
    if (has(script, "rm x")) {
      codeexec::FileAccess access;
      access.kind = codeexec::FileAccess::Kind::remove;
      access.path = "x";
      judgement.files.push_back(access);
    }
    return judgement;
  }
  bool can_read(std::string_view script, std::string_view) const override {
    return !has(script, "unclear");
  }
};

ExecutorWings with_word_guard() {
  ExecutorWings wings;
  wings.own_guard = std::make_shared<const WordGuard>();
  return wings;
}

}  // namespace

TEST_CASE("without wings commands run, unjudged") {
  const auto here = LocalExecutor::create({}, {});
  REQUIRE(here);
  const Result r = here->run("eval 'echo judged by none'");
  CHECK(r.out == "judged by none\n");
  CHECK(here->judge(codeexec::Command::shell("sudo ls")).verdict.allowed);
  // The same text is refused by the policy.
  ExecutorWings policy;
  policy.guard = codeexec::create_guard;
  const auto judged = LocalExecutor::create({}, policy);
  REQUIRE(judged);
  CHECK(judged->check(codeexec::Command::shell("sudo ls")).rule == "sudo");
}

TEST_CASE("an option whose wing is not given is an error that names it") {
  const TempDir place;
  const std::vector<std::pair<const char*, void (*)(LocalOptions&)>> options = {
      {"compat", [](LocalOptions& o) { o.policy.compat = true; }},
      {"compat_lists", [](LocalOptions& o) { o.policy.compat_lists = true; }},
      {"allowed_commands", [](LocalOptions& o) { o.policy.allowed = {"ls"}; }},
      {"allow_usual", [](LocalOptions& o) { o.policy.allow_usual = true; }},
      {"blocked_commands", [](LocalOptions& o) { o.policy.blocked = {"ls"}; }},
      {"disabled_rules", [](LocalOptions& o) { o.policy.disabled_rules = {"sudo"}; }},
      {"ask_commands", [](LocalOptions& o) { o.policy.ask_commands = {"ls"}; }},
      {"ask_rules", [](LocalOptions& o) { o.policy.ask_rules = {"sudo"}; }},
      {"max_command_bytes", [](LocalOptions& o) { o.policy.max_command_bytes = 100; }},
      {"delete_guard", [](LocalOptions& o) { o.delete_guard = true; }},
      {"roots that are not writable",
       [](LocalOptions& o) {
         o.roots = {{o.workspace, Permission::read}};
       }},
      {"watch_files",
       [](LocalOptions& o) { o.sandbox.mode = codeexec::SandboxMode::best_effort; }},
      {"audit_file", [](LocalOptions& o) { o.audit_file = o.workspace + "/log"; }},
      {"allowed_domains", [](LocalOptions& o) {
         o.sandbox.mode = codeexec::SandboxMode::best_effort;
         o.sandbox.network = codeexec::Network::allow;
         o.watch_files = false;
         o.allowed_domains = {"example.org"};
       }}};
  for (const auto& option : options) {
    LocalOptions wanted;
    wanted.workspace = place.path();
    option.second(wanted);
    const auto made = LocalExecutor::create(wanted, {});
    REQUIRE_MESSAGE(!made, option.first);
    CHECK(made.error().code == codeexec::ErrorCode::invalid_argument);
    CHECK_MESSAGE(made.error().message.rfind(option.first, 0) == 0, made.error().message);
  }
}

TEST_CASE("a guard of the program's own is shown code as the script that gives it") {
  std::string script;
  class CodeGuard final : public codeexec::Guard {
   public:
    explicit CodeGuard(std::string& script) : script_(script) {}
    Judgement judge(std::string_view text, std::string_view, bool) const override {
      script_ = text;
      return {};
    }
    bool can_read(std::string_view, std::string_view) const override { return true; }

   private:
    std::string& script_;
  };
  CodeGuard(script).judge_code({"python3", "-u"}, "print('it')", "/");
  CHECK(script == R"('python3' '-u' <<< 'print('\''it'\'')' )");
  CHECK_FALSE(WordGuard().judge_code({"python3"}, "bad", "/").verdict);
}

TEST_CASE("a guard of the program's own judges in place of the policy") {
  const TempDir place;
  place.file("x", "there");
  LocalOptions options;
  options.workspace = place.path();
  options.delete_guard = true;
  const auto here = LocalExecutor::create(options, with_word_guard());
  REQUIRE(here);
  CHECK(here->run("echo fine").out == "fine\n");
  CHECK(here->run("echo bad").rule == "word");
  CHECK(here->run("echo perhaps").outcome == Outcome::refused);
  CHECK(here->run("rm x").rule == "delete-guard");
  CHECK(here->run("echo unclear").rule == "delete-guard");
  // Lists and rules are the policy's.
  options.policy.blocked = {"ls"};
  const auto both = LocalExecutor::create(options, with_word_guard());
  REQUIRE(!both);
  CHECK(has(both.error().message, "blocked_commands"));
}

TEST_CASE("a guard of one's own stands in place of one that is made") {
  ExecutorWings wings = with_word_guard();
  wings.guard = codeexec::create_guard;
  const auto here = LocalExecutor::create({}, wings);
  REQUIRE(here);
  CHECK(here->check(codeexec::Command::shell("sudo ls")).rule.empty());
  CHECK(here->check(codeexec::Command::shell("bad")).rule == "word");
}
