// The one gate: what is refused and how that is told, the same for run() and start().
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <signal.h>

#include <set>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Command;
using codeexec::Json;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Outcome;
using codeexec::Permission;
using codeexec::Result;
using std::chrono::milliseconds;
using std::chrono::seconds;
using support::AuditLog;
using support::begins;
using support::in;
using support::LeakCheck;
using support::long_script;
using support::make;
using support::member_names;
using support::Strings;

TEST_CASE("run() gives output, status and where it ran") {
  const support::TempDir place;
  const LocalExecutor here = make(in(place));
  const LeakCheck leaks;
  const Result r = here.run("echo out; echo err >&2; pwd; exit 3");
  CHECK(r.outcome == Outcome::exited);
  CHECK(r.exit_code == 3);
  CHECK(!r.succeeded());
  CHECK(r.out == "out\n" + place.path() + "\n");
  CHECK(r.err == "err\n");
  CHECK(r.command == "echo out; echo err >&2; pwd; exit 3");
  CHECK(r.work_dir == place.path());
  CHECK(r.timeout == seconds(60));
  CHECK(r.rule.empty());
  CHECK(r.message.empty());
  CHECK(r.notes.empty());
  CHECK(r.pid > 0);
  CHECK(r.wall_time.count() > 0);
  CHECK(leaks.clean());
}

TEST_CASE("a refusal tells its rule, its message and the bytes of the command that caused it") {
  const support::TempDir place;
  AuditLog log;
  LocalOptions options = in(place);
  options.on_audit = log.callback();
  const LocalExecutor here = make(options);
  const std::string script = "touch made && echo x | sudo tee y";
  const Result r = here.run(script);
  CHECK(r.outcome == Outcome::refused);
  CHECK(r.rule == "sudo");
  CHECK(begins(r.message, "Potentially dangerous command detected: Use of 'sudo' is not allowed"));
  CHECK(begins(script.substr(r.rule_begin, r.rule_end - r.rule_begin), "sudo"));
  CHECK(r.exit_code == -1);
  CHECK(r.pid == -1);
  CHECK(r.command == script);
  CHECK(r.work_dir == place.path());
  CHECK(r.wall_time.count() == 0);
  CHECK(r.out.empty());
  CHECK(r.err.empty());
  CHECK(!support::exists(place / "made"));
  CHECK(log.take().size() == 1);
}

TEST_CASE("allowed and blocked patterns refuse with the reference's texts") {
  LocalOptions options;
  options.policy.allowed = {"echo.*", "cat .*"};
  options.policy.blocked = {"echo secret.*"};
  const LocalExecutor here = make(options);
  CHECK(here.run("echo fine").succeeded());
  const Result other = here.run("ls");
  CHECK(other.rule == "allowed-commands");
  CHECK(begins(other.message, "Command not in allowed list. Allowed patterns: echo.*, cat .*"));
  const Result blocked = here.run("echo secret thing");
  CHECK(blocked.rule == "blocked-commands");
  CHECK(begins(blocked.message, "Command matches blocked pattern: 'echo secret.*'"));
}

TEST_CASE("an argv is judged as the command line that would start the same") {
  const LocalExecutor here = make({});
  const Result r = here.run(Command::program({"sudo", "ls", "a b"}));
  CHECK(r.outcome == Outcome::refused);
  CHECK(r.rule == "sudo");
  CHECK(r.command == "sudo ls 'a b'");
  CHECK(begins(r.command.substr(r.rule_begin, r.rule_end - r.rule_begin), "sudo"));
}

TEST_CASE("W-48: no name of a tool leads around the gate") {
  const codeexec::LocalExecutor executor = support::make();
  for (const char* tool : {"", "execute_command", "mcp__command_line__execute_command", "Bash"}) {
    CAPTURE(std::string(tool));
    Command command = Command::shell("rm -rf / --no-such-option; sudo --version");
    command.caller.tool = tool;
    CHECK(executor.run(command).outcome == Outcome::refused);
    CHECK(executor.check(command).outcome == Outcome::refused);
    CHECK(executor.start(command).wait().outcome == Outcome::refused);
  }
}

TEST_CASE("a command with both a script and an argv is refused") {
  const LocalExecutor here = make({});
  Command command = Command::program({"/bin/true"});
  command.script = "false";
  const Result r = here.run(command);
  CHECK(r.outcome == Outcome::refused);
  CHECK(r.rule == "command");
  CHECK(r.message == "a command has either a script or an argv, not both");
}

TEST_CASE("run() and start() pass the same gate and give the same results") {
  const support::TempDir place;
  place.file("file.txt");
  const support::TempDir outside;
  support::make_symlink(outside.path(), place / "out");
  AuditLog log;
  LocalOptions options = in(place);
  options.roots = {{place.path(), Permission::write}};
  options.policy.blocked = {"echo blocked.*"};
  options.policy.allowed = {"[^y].*", ""};
  options.max_timeout = seconds(70);
  options.on_audit = log.callback();
  options.delete_guard = true;
  place.directory("ro");
  options.roots.push_back({place / "ro", Permission::read});
  const LocalExecutor here = make(options);

  std::vector<Command> commands;
  const auto add = [&](const char* script, const char* work_dir = "",
                       std::optional<milliseconds> timeout = {}) {
    Command command = Command::shell(script);
    command.work_dir = work_dir;
    command.timeout = timeout;
    command.caller.tool = "parity";
    commands.push_back(command);
  };
  add("echo fine; echo also >&2; exit 4");
  add("");
  add("kill -9 $$");
  add("sudo ls");
  add("echo blocked");
  add("touch ro/x");
  add("rm file.txt");
  add("ls", "/");
  add("ls", "out");
  add("ls", "missing");
  add("ls", "file.txt");
  add("ls", "", milliseconds(0));
  add("ls", "", milliseconds(-250));
  add("true", "", seconds(999));
  add("echo begin; exec sleep 300", "", milliseconds(200));
  commands.push_back(Command::program({"/nonexistent/program"}));
  commands.push_back(Command::shell(std::string("a\0b", 3)));
  commands.push_back(Command::shell("true"));
  commands.back().environment = {{"", "x"}};
  commands.push_back(Command::shell(long_script(200000)));
  commands.push_back(Command::shell("true"));
  commands.back().argv = {"/bin/true"};

  std::set<Outcome> seen;
  for (const Command& command : commands) {
    CAPTURE(command.script.substr(0, 50));
    CAPTURE(command.work_dir);
    log.take();
    const Result run = here.run(command);
    const std::vector<Json> run_records = log.take();
    const Result started = here.start(command).wait();
    const std::vector<Json> start_records = log.take();
    const Result checked = here.check(command);
    CHECK(log.take().empty());
    seen.insert(run.outcome);

    CHECK(run.outcome == started.outcome);
    CHECK(run.exit_code == started.exit_code);
    CHECK(run.signal == started.signal);
    CHECK(run.out == started.out);
    CHECK(run.err == started.err);
    CHECK(run.command == started.command);
    CHECK(run.work_dir == started.work_dir);
    CHECK(run.rule == started.rule);
    CHECK(run.message == started.message);
    CHECK(run.rule_begin == started.rule_begin);
    CHECK(run.rule_end == started.rule_end);
    CHECK(run.timeout == started.timeout);
    CHECK(run.notes == started.notes);
    CHECK(run.step == started.step);
    CHECK(run.system_error == started.system_error);

    REQUIRE(run_records.size() == 1);
    REQUIRE(start_records.size() == 1);
    for (const char* field :
         {"tool", "command", "work_dir", "allowed", "rule", "message", "outcome", "exit_code",
          "signal", "stdout_bytes", "stderr_bytes", "command_bytes"})
      CHECK_MESSAGE(run_records[0][field] == start_records[0][field], field);
    CHECK(member_names(run_records[0]) == member_names(start_records[0]));

    // check() knows the refusals, and only them.
    if (run.outcome == Outcome::refused) {
      CHECK(checked.outcome == Outcome::refused);
      CHECK(checked.rule == run.rule);
      CHECK(checked.message == run.message);
      CHECK(checked.work_dir == run.work_dir);
    } else {
      CHECK(checked.outcome == Outcome::not_started);
      CHECK(checked.rule.empty());
      CHECK(checked.message.empty());
    }
  }
  CHECK(seen == std::set<Outcome>{Outcome::exited, Outcome::signaled, Outcome::timed_out,
                                  Outcome::refused, Outcome::not_started});
}

TEST_CASE("check() judges and touches nothing") {
  const support::TempDir place;
  const support::TempDir skills;
  const support::TempDir audit;
  AuditLog log;
  LocalOptions options = in(place);
  options.skills_dir = skills.path();
  options.audit_file = audit / "log";
  options.on_audit = log.callback();
  const LocalExecutor here = make(options);
  const LeakCheck leaks;
  const Result r = here.check(Command::shell("touch made"));
  CHECK(r.outcome == Outcome::not_started);
  CHECK(r.rule.empty());
  CHECK(r.work_dir == place.path());
  CHECK(r.timeout == seconds(60));
  CHECK(here.check(Command::shell("sudo ls")).rule == "sudo");
  CHECK(!support::exists(place / "made"));
  CHECK(!support::exists(place / ".agent"));
  CHECK(log.take().empty());
  CHECK(support::read_file(audit / "log").empty());
  CHECK(leaks.clean());
}

TEST_CASE("refusals come in the order policy, timeout, work_dir") {
  const support::TempDir place;
  LocalOptions options = in(place);
  options.roots = {{place.path(), Permission::write}};
  const LocalExecutor here = make(options);
  Command command = Command::shell("sudo ls");
  command.timeout = milliseconds(0);
  command.work_dir = "/";
  CHECK(here.run(command).rule == "sudo");
  command.script = "ls";
  CHECK(here.run(command).rule == "timeout");
  command.timeout = seconds(1);
  CHECK(here.run(command).rule == "work_dir");
  command.work_dir = place.path();
  CHECK(here.run(command).succeeded());
}

TEST_CASE("W-07: enable_sudo does not count on this host") {
  LocalOptions options;
  options.policy.enable_sudo = true;
  const LocalExecutor here = make(options);
  for (const std::string& script :
       Strings{"sudo -n true", "su nobody", "chown nobody no", "chmod --reference=no no"})
    CHECK_MESSAGE(here.check(Command::shell(script)).outcome == Outcome::refused, script);
}

TEST_CASE("the policy is told where a script will run") {
  const support::TempDir place;
  support::make_symlink("/", place / "root");
  place.directory("sub");
  const LocalExecutor here = make(in(place));
  const auto rule_in = [&](const char* work_dir) {
    Command command = Command::shell("rm -rf * --no-such-option");
    command.work_dir = work_dir;
    return here.check(command).rule;
  };
  CHECK(rule_in("/") == "rm-protected");
  CHECK(rule_in("root") == "rm-protected");
  CHECK(rule_in("../../../../../../../..") == "rm-protected");
  CHECK(rule_in("") == "");
  CHECK(rule_in("sub") == "");
  CHECK(rule_in("missing") == "work_dir");
}

TEST_CASE("judge() tells the verdict of check() and what was found") {
  const support::TempDir place;
  place.directory("ro");
  LocalOptions options = in(place);
  options.roots = {{place.path(), Permission::write}, {place / "ro", Permission::read}};
  options.policy.blocked = {"ls .*"};
  const LocalExecutor here = make(options);
  std::vector<Command> commands;
  for (const char* script : {"echo a; true", "sudo ls", "ls x", "touch ro/x", "touch x"})
    commands.push_back(Command::shell(script));
  commands.push_back(Command::program({"touch", "ro/x y"}));
  commands.push_back(Command::shell("true"));
  commands.back().argv = {"true"};
  commands.push_back(Command::shell("true"));
  commands.back().timeout = milliseconds(0);
  commands.push_back(Command::shell("true"));
  commands.back().work_dir = "/";
  std::set<std::string> rules;
  for (const Command& command : commands) {
    CAPTURE(command.script);
    const codeexec::Judgement judgement = here.judge(command);
    const Result checked = here.check(command);
    CHECK(judgement.verdict.allowed == (checked.outcome != Outcome::refused));
    CHECK(judgement.verdict.rule == checked.rule);
    CHECK(judgement.verdict.message == checked.message);
    CHECK(judgement.verdict.begin == checked.rule_begin);
    CHECK(judgement.verdict.end == checked.rule_end);
    rules.insert(judgement.verdict.rule);
  }
  CHECK(rules == std::set<std::string>{"", "sudo", "blocked-commands", "read-only", "command",
                                       "timeout", "work_dir"});
  const codeexec::Judgement judgement = here.judge(commands[0]);
  REQUIRE(judgement.commands.size() == 2);
  CHECK(judgement.commands[0].words.at(1) == "a");
  CHECK(!support::exists(place / "x"));
}
