// What commands read, are typed and run from files passes the same gate as their text.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Command;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Outcome;
using codeexec::Result;
using support::in;
using support::make;

namespace {

Command reading(std::string script, std::string input) {
  Command command = Command::shell(std::move(script));
  command.input = std::move(input);
  return command;
}

}  // namespace

TEST_CASE("the input of a command is judged with it") {
  const support::TempDir place;
  LocalOptions options = in(place);
  options.policy.blocked = {"git push.*"};
  options.policy.ask_commands = {"touch .*"};
  const LocalExecutor here = make(options);
  CHECK(here.run(reading("bash", "echo a; git push --force")).rule == "blocked-commands");
  CHECK(here.run(reading("sh -s", "sudo id")).rule == "sudo");
  CHECK(here.run(reading("sh", "touch made")).rule == "ask-commands");
  CHECK(here.run(reading("sh", "echo a")).out == "a\n");
  CHECK(here.run(reading("cat", "git push")).out == "git push");
  CHECK(here.judge(reading("xargs -I{} sh -c '{}'", "sudo id")).verdict.rule == "sudo");
  Command program = Command::program({"/bin/sh", "-s"});
  program.input = "touch made";
  CHECK(here.run(program).rule == "ask-commands");
  const codeexec::Execution started = here.start(program);
  CHECK(started.wait().outcome == Outcome::refused);
  CHECK(!support::exists(place / "made"));
}

TEST_CASE("what is written to a shell that runs is judged before it is handed on") {
  const support::TempDir place;
  LocalOptions options = in(place);
  options.policy.blocked = {"git push.*"};
  options.policy.ask_commands = {"touch .*"};
  const LocalExecutor here = make(options);
  Command command = Command::shell("sh");
  command.keep_input_open = true;
  for (const bool terminal : {false, true}) {
    CAPTURE(terminal);
    if (terminal) command.terminal = codeexec::TerminalSize();
    const codeexec::Execution shell = here.start(command);
    for (const char* const text : {"git push --force\n", "echo a; sudo id\n", "touch made\n"}) {
      CAPTURE(text);
      const auto written = shell.write(text);
      REQUIRE(!written);
      CHECK(written.error().code == codeexec::ErrorCode::permission_denied);
    }
    CHECK(support::has(shell.write("touch made\n").error().message, "not about what is typed"));
    CHECK(shell.write("cd /\n"));
    CHECK(!shell.write("rm -rf *\n"));
    CHECK(shell.write("echo $((6 * 7)) > " + place.path() + "/sum\n"));
    CHECK(shell.write(terminal ? "exit\r" : "exit\n"));
    CHECK(shell.wait().exit_code == 0);
    CHECK(support::read_file(place / "sum") == "42\n");
    CHECK(!support::exists(place / "made"));
  }
}

TEST_CASE("what is written to a program that runs no commands is handed on as it is") {
  const support::TempDir place;
  const LocalExecutor here = make(in(place));
  Command command = Command::shell("cat");
  command.keep_input_open = true;
  const codeexec::Execution cat = here.start(command);
  const std::string bytes("sudo id\n\0\xff", 10);
  CHECK(cat.write(bytes));
  cat.close_input();
  CHECK(cat.wait().out_counts.total_bytes == bytes.size());
}

TEST_CASE("what is written to a command that waits for its turn is judged, too") {
  const support::TempDir place;
  LocalOptions options = in(place);
  options.max_concurrent = 1;
  const LocalExecutor here = make(options);
  Command command = Command::shell("sh");
  command.keep_input_open = true;
  const codeexec::Execution first = here.start(command);
  const codeexec::Execution second = here.start(command);
  CHECK(!second.write("sudo id\n"));
  CHECK(second.write("echo waited\n"));
  second.close_input();
  first.close_input();
  CHECK(second.wait().out == "waited\n");
}

TEST_CASE("the audit log has the text that a command reads, masked and cut") {
  const support::TempDir place;
  support::AuditLog log;
  LocalOptions options = in(place);
  options.on_audit = log.callback();
  const support::EnvironmentGuard secret("CODEEXEC_TEST_TOKEN", "sesame-open-4711");
  options.environment.secret = {"CODEEXEC_TEST_TOKEN"};
  const LocalExecutor here = make(options);
  here.run(reading("bash", "git status; sudo id"));
  here.run(reading("wc -c", std::string(4090, 'x') + "sesame-open-4711" + std::string(100, 'y')));
  here.run(reading("true", ""));
  const std::vector<codeexec::Json> records = log.take();
  REQUIRE(records.size() == 3);
  CHECK(records[0]["input"] == codeexec::Json("git status; sudo id"));
  CHECK(records[0]["rule"] == codeexec::Json("sudo"));
  const std::string& cut = records[1]["input"].as_string();
  CHECK(cut.size() == 4096);
  CHECK(!support::has(cut, "sesame"));
  CHECK(records[1]["input_bytes"] == codeexec::Json(4206));
  CHECK(records[2].find("input") == nullptr);
}

TEST_CASE("a file that a command has written is judged when a later one runs it") {
  const support::TempDir place;
  const support::TempDir elsewhere;
  LocalOptions options = in(place);
  options.policy.blocked = {"touch made.*"};
  options.roots = {{place.path(), codeexec::Permission::write},
                   {elsewhere.path(), codeexec::Permission::read}};
  support::make_directories(place / "sub");
  const LocalExecutor here = make(options);
  const char* const write =
      "cat > s.sh <<'END'\n#!/bin/sh\necho ran\ntouch made\nEND\nchmod +x s.sh; cp s.sh sub/t.sh; "
      "ln s.sh hard.sh; ln -s sub/t.sh soft.sh; echo 'import os; os.system(\"touch made\")' > s.py";
  CHECK(here.run(write).exit_code == 0);
  for (const char* const script :
       {"sh s.sh", ". ./s.sh", "./s.sh", "cd sub && ./t.sh", "sh ./sub/../s.sh", "bash hard.sh",
        "./soft.sh", "sh -c 'sh s.sh'", "python3 s.py", "env A=b nohup ./s.sh &"}) {
    CAPTURE(script);
    const Result r = here.run(script);
    CHECK(r.rule == "blocked-commands");
    CHECK(support::has(r.message, "(in the file " + place.path() + "/"));
    CHECK(here.start(Command::shell(script)).wait().rule == "blocked-commands");
    CHECK(here.judge(Command::shell(script)).verdict.rule == "blocked-commands");
  }
  CHECK(here.run(Command::program({"./s.sh"})).rule == "blocked-commands");
  Command shell = Command::shell("sh");
  shell.keep_input_open = true;
  const codeexec::Execution running = here.start(shell);
  CHECK(!running.write("sh s.sh\n"));
  CHECK(running.write("echo typed\n"));
  running.close_input();
  CHECK(running.wait().out == "typed\n");
  CHECK(here.run("cat s.sh").exit_code == 0);
  CHECK(here.run("echo 'echo other' > s.sh; sh s.sh").out == "other\n");
  CHECK(here.run("sh s.sh").out == "other\n");
  CHECK(!support::exists(place / "made"));
  // Where commands cannot write, no command has written.
  support::write_file(elsewhere / "s.sh", "echo a; touch made\n");
  CHECK(here.check(Command::shell("sh " + elsewhere.path() + "/s.sh")).rule.empty());
  support::make_symlink(elsewhere / "s.sh", place / "link.sh");
  CHECK(here.check(Command::shell("sh link.sh")).rule.empty());
}

TEST_CASE("what is no text of a command does not keep another one from running it") {
  const support::TempDir place;
  LocalOptions options = in(place);
  options.policy.blocked = {"touch made.*"};
  const LocalExecutor here = make(options);
  const std::string body = "exit 0\ntouch made\n";
  support::write_file(place / "large", body + std::string(1 << 20, '#'));
  support::write_file(place / "binary", body + std::string(1, '\0'));
  support::make_directories(place / "directory");
  REQUIRE(::mkfifo((place / "fifo").c_str(), 0600) == 0);
  for (const char* const file : {"large", "binary", "directory", "fifo", "missing"}) {
    CAPTURE(file);
    const Result r = here.check(Command::shell("sh ./" + std::string(file)));
    CHECK(r.rule.empty());
  }
  CHECK(here.run("sh large").exit_code == 0);
  support::write_file(place / "large", body + std::string((1 << 20) - body.size(), '#'));
  CHECK(here.run("sh large").rule == "blocked-commands");
}

TEST_CASE("with a list of what is allowed, all that a written file runs must be on it") {
  const support::TempDir place;
  LocalOptions options = in(place);
  options.policy.allowed = {"(echo|sh|cat)( .*)?"};
  const LocalExecutor here = make(options);
  CHECK(here.run("echo 'echo a; touch made' > s.sh").exit_code == 0);
  CHECK(here.run("sh s.sh").rule == "allowed-commands");
  CHECK(here.run("echo 'echo a; $X b' > s.sh").exit_code == 0);
  CHECK(!here.run("sh s.sh").rule.empty());
  CHECK(here.run("echo 'echo a; cat s.sh' > s.sh").exit_code == 0);
  CHECK(here.run("sh s.sh").out == "a\necho a; cat s.sh\n");
  CHECK(!support::exists(place / "made"));
}
