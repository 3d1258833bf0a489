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
