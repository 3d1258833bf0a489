// Commands that a person must approve.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <thread>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/json_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Approval;
using codeexec::AuditRecord;
using codeexec::Command;
using codeexec::Judgement;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Outcome;
using codeexec::Permission;
using codeexec::Result;
using support::has;
using support::make;
using support::TempDir;

namespace {

// Answers as it is told, and keeps what it was asked.
struct Person {
  bool allows = false;
  bool for_session = false;
  std::string problem = {};
  std::vector<Approval> asked = {};
  codeexec::Function<void(Approval&)> callback() {
    return [this](Approval& approval) {
      approval.asked = "Ann";
      approval.problem = problem;
      approval.allowed = allows;
      approval.for_session = for_session;
      asked.push_back(approval);
    };
  }
};

LocalOptions asking(const TempDir& place) {
  LocalOptions options;
  options.workspace = place.path();
  options.policy.ask_commands = {"touch .*", "cat( .*)?"};
  options.policy.ask_rules = {"unknown-command"};
  return options;
}

constexpr const char* pattern_message =
    "Command matches a pattern that a person must approve: 'touch .*'";

}  // namespace

TEST_CASE("ask: without a callback a command is refused, and says why") {
  const TempDir place;
  const LocalExecutor here = make(asking(place));
  const Result r = here.run("touch made");
  CHECK(r.outcome == Outcome::refused);
  CHECK(r.rule == "ask-commands");
  CHECK(r.rule_end == 10);
  CHECK(r.answer == "");
  CHECK(r.message == std::string("Command needs the approval of a person, and this program cannot "
                                 "ask for it: ") +
                         pattern_message);
  CHECK(!support::exists(place / "made"));
  CHECK(here.check(Command::shell("touch made")).rule == "ask-commands");
  CHECK(here.start(Command::shell("touch made")).wait().rule == "ask-commands");
  CHECK(here.run("true").succeeded());
}

TEST_CASE("ask: an answer may hold for all commands that begin with the same words") {
  const TempDir place;
  LocalOptions options;
  options.workspace = place.path();
  options.policy.ask_commands = {"git .*", "touch .*", "cd .*"};
  std::vector<std::string> prefixes;
  bool agrees = true;
  options.on_ask = [&](Approval& approval) {
    prefixes.push_back(approval.prefix);
    approval.allowed = approval.for_prefix = agrees;
  };
  const LocalExecutor here = make(options);
  CHECK(here.run("git version").answer == "prefix");
  agrees = false;
  CHECK(here.run("git version --build-options").answer == "remembered");
  CHECK(prefixes.size() == 1);
  // These are something else, or more than one plain command.
  for (const char* const other :
       {"git help", "git version; true", "git version > x", "git version $X", "git -C . version",
        "A=1 git version", "git  version", "cd . && git version", "touch version"}) {
    CAPTURE(std::string(other));
    const std::size_t before = prefixes.size();
    CHECK(here.run(other).outcome == Outcome::refused);
    CHECK(prefixes.size() == before + 1);
    CHECK(prefixes.back() == (std::string(other) == "git help" ? "git help" : ""));
  }
  // Without a prefix there is nothing that the answer could hold for.
  agrees = true;
  CHECK(here.run("touch x").answer == "once");
  CHECK(here.run("touch x").answer == "once");
}

TEST_CASE("ask: an answer holds as long as the files that the command runs stay as they are") {
  const TempDir place;
  place.file("a.sh", "true\n");
  LocalOptions options;
  options.workspace = place.path();
  options.policy.ask_commands = {"sh .*", "cat .*"};
  std::vector<std::vector<std::string>> runs;
  std::string change;
  options.on_ask = [&](Approval& approval) {
    runs.push_back(approval.runs);
    approval.allowed = approval.for_session = true;
    if (!change.empty()) place.file("a.sh", change);
  };
  const LocalExecutor here = make(options);
  CHECK(here.run("sh a.sh").answer == "session");
  REQUIRE(runs.size() == 1);
  CHECK(runs[0] == std::vector<std::string>{"a.sh"});
  CHECK(here.run("sh a.sh").answer == "remembered");
  place.file("a.sh", "exit 3\n");
  CHECK(here.run("sh a.sh").exit_code == 3);
  CHECK(runs.size() == 2);
  CHECK(here.run("sh a.sh").answer == "remembered");
  here.run("timeout 5 sh ./a.sh; cd . && python3.11 -u no.py; sh -c '. ./a.sh'; sh $PWD/a.sh");
  CHECK(runs.back() == std::vector<std::string>{"a.sh"});
  // A file that is read is not run.
  CHECK(here.run("cat a.sh").answer == "session");
  CHECK(runs.back().empty());
  place.file("a.sh", "true\n");
  CHECK(here.run("cat a.sh").answer == "remembered");
  // One that is changed while the question stands is not run.
  place.file("a.sh", "exit 4\n");
  change = "exit 5\n";
  const Result r = here.run("sh a.sh");
  CHECK(r.outcome == Outcome::refused);
  CHECK(has(r.message, "A file that the command runs was changed while a person was asked"));
}

TEST_CASE("ask: the answers no, once and session, and what each is remembered for") {
  const TempDir place;
  place.directory("sub");
  Person person;
  LocalOptions options = asking(place);
  options.on_ask = person.callback();
  const LocalExecutor here = make(options);
  Result r = here.run("touch made");
  CHECK(r.outcome == Outcome::refused);
  CHECK(r.message == std::string("A person was asked and did not allow it: ") + pattern_message);
  CHECK(r.answer == "no");
  CHECK(r.asked == "Ann");
  CHECK(!support::exists(place / "made"));
  REQUIRE(person.asked.size() == 1);
  CHECK(person.asked[0].command == "touch made");
  CHECK(person.asked[0].work_dir == here.workspace());
  CHECK(person.asked[0].rule == "ask-commands");
  CHECK(person.asked[0].message == pattern_message);

  person.allows = true;
  for (const std::size_t count : {2u, 3u}) {
    r = here.run("touch made");
    CHECK(r.succeeded());
    CHECK(r.answer == "once");
    CHECK(person.asked.size() == count);
  }
  person.allows = person.for_session = true;
  CHECK(here.run("touch made").answer == "session");
  CHECK(person.asked.size() == 4);
  person.allows = false;
  const LocalExecutor copy = here;
  r = copy.run("touch made");
  CHECK(r.succeeded());
  CHECK(r.answer == "remembered");
  CHECK(r.asked == "");
  CHECK(person.asked.size() == 4);
  // Anything else is another question.
  Command command = Command::shell("touch made");
  const auto is_asked = [&] {
    const std::size_t before = person.asked.size();
    CHECK(here.run(command).outcome == Outcome::refused);
    CHECK(person.asked.size() == before + 1);
  };
  command.work_dir = "sub";
  is_asked();
  command = Command::shell("touch made ");
  is_asked();
  command = Command::shell("touch made");
  command.environment = {{"PATH", "/elsewhere"}};
  is_asked();
  command = Command::shell("touch made");
  command.input = "text";
  is_asked();
  CHECK(person.asked.back().given != nullptr);
  command = Command::shell("touch made; $X");
  is_asked();
  command = Command::shell("touch made");
  command.session.emplace();
  CHECK(here.run(command).answer == "remembered");
  command.script = "export X=1";
  CHECK(here.run(command).succeeded());
  command.script = "touch made";
  is_asked();
  CHECK(person.asked.back().command == "touch made");
  CHECK(make(options).run("touch made").outcome == Outcome::refused);
}

TEST_CASE("ask: an approval without two variables is none for one with the value of the other") {
  const TempDir place;
  Person person;
  person.allows = person.for_session = true;
  LocalOptions options = asking(place);
  options.on_ask = person.callback();
  const LocalExecutor here = make(options);
  Command command = Command::shell("export A_HELPER=x evil=x");
  command.session.emplace();
  REQUIRE(here.run(command).succeeded());
  command.script = "unset A_HELPER evil";
  REQUIRE(here.run(command).succeeded());
  command.script = "touch made";
  REQUIRE(here.run(command).answer == "session");
  CHECK(here.run(command).answer == "remembered");
  person.allows = false;
  command.session.emplace();
  command.script = "export A_HELPER=evil";
  REQUIRE(here.run(command).succeeded());
  command.script = "touch made";
  CHECK(here.run(command).answer == "no");
}

TEST_CASE("ask: a thousand answers are remembered, and the oldest goes first") {
  const TempDir place;
  Person person;
  person.allows = person.for_session = true;
  LocalOptions options = asking(place);
  options.on_ask = person.callback();
  // Commands that are approved, and cannot start at once.
  options.shell = place.file("shell", "#!/bin/sh\nexit 0\n");
  REQUIRE(::chmod(options.shell.c_str(), 0700) == 0);
  const LocalExecutor here = make(options);
  for (int i = 0; i < 1001; ++i) CHECK(here.run("touch " + std::to_string(i)).answer == "session");
  CHECK(here.run("touch 1").answer == "remembered");
  CHECK(here.run("touch 1000").answer == "remembered");
  CHECK(here.run("touch 0").answer == "session");
  CHECK(here.run("touch 1").answer == "session");
  CHECK(person.asked.size() == 1003);
}

TEST_CASE("ask: no answer is a refusal that tells the reason") {
  const TempDir place;
  Person person;
  person.problem = "nobody answered";
  LocalOptions options = asking(place);
  const LocalExecutor here = make(options);
  Command command = Command::shell("touch made");
  command.on_ask = person.callback();
  const Result r = here.run(command);
  CHECK(r.message == std::string("Command needs the approval of a person, and nobody answered: ") +
                         pattern_message);
  CHECK(here.check(command).rule == "");
  CHECK(person.asked.size() == 1);
}

TEST_CASE("ask: what is refused for another reason is not asked about") {
  const TempDir place;
  place.directory("ro");
  place.file("unread");
  Person person;
  person.allows = true;
  LocalOptions options = asking(place);
  options.roots = {{place.path(), Permission::write}, {place / "ro", Permission::read}};
  options.delete_guard = true;
  options.on_ask = person.callback();
  const LocalExecutor here = make(options);
  const auto rule_of = [&](Command command) {
    const Result r = here.run(command);
    CHECK(r.outcome == Outcome::refused);
    const Judgement judgement = here.judge(command);
    CHECK(!judgement.verdict.must_ask);
    CHECK(judgement.verdict.rule == r.rule);
    return r.rule;
  };
  CHECK(rule_of(Command::shell("touch x; sudo id")) == "sudo");
  CHECK(rule_of(Command::shell("touch ro/x")) == "read-only");
  CHECK(rule_of(Command::shell("touch x; rm unread")) == "delete-guard");
  Command command = Command::shell("touch x");
  command.work_dir = "/";
  CHECK(rule_of(command) == "work_dir");
  command.work_dir.clear();
  command.timeout = std::chrono::milliseconds(0);
  CHECK(rule_of(command) == "timeout");
  CHECK(person.asked.empty());
  CHECK(here.judge(Command::shell("touch x")).verdict.must_ask);
  CHECK(!here.judge(Command::shell("touch x")).verdict.allowed);
  CHECK(here.run("touch x").succeeded());
  CHECK(person.asked.size() == 1);
}

TEST_CASE("ask: a cancel while a person is asked keeps the command from starting") {
  const TempDir place;
  const LocalExecutor here = make(asking(place));
  Command command = Command::shell("touch made");
  command.cancel.emplace();
  int asked = 0;
  command.on_ask = [&](Approval& approval) {
    ++asked;
    command.cancel->cancel();
    approval.allowed = true;
  };
  for (int i = 0; i < 2; ++i) {
    const Result r = here.run(command);
    CHECK(r.outcome == Outcome::cancelled);
    CHECK(r.message == "cancelled before it was started");
  }
  CHECK(asked == 1);
  CHECK(!support::exists(place / "made"));
}

TEST_CASE("ask: start() waits for the answer, and a callback of a command cannot ask") {
  const TempDir place;
  Person person;
  person.allows = true;
  LocalOptions options = asking(place);
  options.on_ask = person.callback();
  const LocalExecutor here = make(options);
  Command outer = Command::shell("touch one");
  Result inner;
  std::thread::id thread;
  outer.on_ask = [&](Approval& approval) {
    thread = std::this_thread::get_id();
    approval.allowed = true;
  };
  outer.on_end = [&](const Result&) { inner = here.start(Command::shell("touch two")).wait(); };
  CHECK(here.start(outer).wait().succeeded());
  const bool here_asked = thread == std::this_thread::get_id();
  CHECK(here_asked);
  CHECK(inner.outcome == Outcome::refused);
  CHECK(has(inner.message, "this program cannot ask for it"));
  CHECK(person.asked.empty());
}

TEST_CASE("ask: the audit record says who was asked and the answer") {
  const TempDir place;
  Person person;
  LocalOptions options = asking(place);
  options.on_ask = person.callback();
  std::vector<std::string> records;
  options.on_audit = [&](const AuditRecord& record) {
    records.push_back(codeexec::to_json(record).dump());
  };
  const LocalExecutor here = make(options);
  here.run("touch a");
  person.allows = person.for_session = true;
  here.run("touch a");
  here.run("touch a");
  here.run("true");
  REQUIRE(records.size() == 4);
  CHECK(has(records[0], R"("asked":"Ann","answer":"no")"));
  CHECK(has(records[0], R"("allowed":false,"rule":"ask-commands")"));
  CHECK(has(records[1], R"("asked":"Ann","answer":"session")"));
  CHECK(has(records[1], R"("allowed":true)"));
  CHECK(has(records[2], R"("answer":"remembered")"));
  CHECK(!has(records[2], R"("asked")"));
  CHECK(!has(records[3], R"("answer")"));
}

TEST_CASE("ask: secrets are masked in the question") {
  const TempDir place;
  Person person;
  const support::EnvironmentGuard secret("CODEEXEC_TEST_TOKEN", "hunter-two");
  LocalOptions options = asking(place);
  options.environment.secret = {"CODEEXEC_TEST_TOKEN"};
  options.on_ask = person.callback();
  const Result r = make(options).run("touch hunter-two");
  REQUIRE(person.asked.size() == 1);
  CHECK(person.asked[0].command == "touch [redacted]");
  CHECK(!has(person.asked[0].message, "hunter"));
  CHECK(!has(r.message, "hunter"));
}

// idle_timeout ------------------------------------------------------------------------------------

TEST_CASE("idle_timeout: a command without output for so long has timed out, and says so") {
  LocalOptions options;
  options.idle_timeout = std::chrono::milliseconds(200);
  support::AuditLog log;
  options.on_audit = log.callback();
  const LocalExecutor here = make(options);
  Result r = here.run("echo out; exec sleep 300");
  CHECK(r.outcome == Outcome::timed_out);
  CHECK(r.idle);
  CHECK(r.out == "out\n");
  CHECK(r.idle_timeout == std::chrono::milliseconds(200));
  CHECK(support::begins(r.summary(), "timed out without output for 0.2 s in "));
  const auto records = log.take();
  REQUIRE(records.size() == 1);
  CHECK(records[0]["outcome"] == codeexec::Json("timed_out"));
  CHECK(records[0]["idle"] == codeexec::Json(true));
  // That of the command wins. A background command has none but its own.
  Command command = Command::shell("exec sleep 0.5");
  command.idle_timeout = codeexec::no_limit;
  CHECK(here.run(command).succeeded());
  command.idle_timeout.reset();
  command.background = true;
  CHECK(here.run(command).succeeded());
  command.script = "exec sleep 300";
  command.idle_timeout = std::chrono::milliseconds(100);
  r = here.run(command);
  CHECK(r.idle);
  CHECK(r.idle_timeout == std::chrono::milliseconds(100));
}

TEST_CASE("idle_timeout: zero or less is refused, in the options and of a command") {
  const LocalExecutor here = make({});
  Command command = Command::shell("echo ran");
  for (const int time : {0, -1}) {
    command.idle_timeout = std::chrono::milliseconds(time);
    const Result r = here.run(command);
    CHECK(r.rule == "timeout");
    CHECK(support::begins(r.message, "idle_timeout must be greater than 0 seconds, and not "));
    LocalOptions options;
    options.idle_timeout = std::chrono::milliseconds(time);
    const auto made = LocalExecutor::create(options);
    REQUIRE(!made);
    CHECK(support::begins(made.error().message, "idle_timeout must be greater than 0"));
  }
}
