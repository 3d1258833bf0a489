// Jobs with a terminal.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "helpers.hpp"

using codeexec::Command;
using codeexec::ErrorCode;
using codeexec::Jobs;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using support::at_end;
using support::has;
using support::start;
using support::until_seen;

namespace {

Command on_terminal(const std::string& script) {
  Command command = Command::shell(script);
  command.terminal = codeexec::TerminalSize();
  command.keep_input_open = true;
  return command;
}

LocalExecutor executor() {
  auto made = LocalExecutor::create(LocalOptions());
  REQUIRE(made);
  return *made;
}

}  // namespace

TEST_CASE("a job with a terminal shows its screen, also when it has ended") {
  const LocalExecutor here = executor();
  Jobs jobs(here);
  const std::string id =
      start(jobs, on_terminal("printf 'first\\033[1;1HF'; read x; printf '\\033[2Jlast'; exit 4"));
  Jobs::Wait until = until_seen("^First$");
  until.on_screen = true;
  REQUIRE(support::wait(jobs, id, until) == "matched");
  auto screen = jobs.screen(id);
  REQUIRE(screen);
  CHECK(screen->text == "First");
  CHECK(screen->cursor_col == 2);
  // What was seen already does not count: it waits for more.
  until.out = support::read(jobs, id).out.next;
  until.time = std::chrono::milliseconds(1);
  CHECK(support::wait(jobs, id, until) == "timed_out");
  REQUIRE(jobs.write(id, "\n"));
  until.pattern = support::pattern("last");
  until.time = support::safety;
  CHECK(support::wait(jobs, id, until) == "matched");
  CHECK(at_end(jobs, id).result.exit_code == 4);
  screen = jobs.screen(id);
  REQUIRE(screen);
  CHECK(screen->text == "\nlast");
  const auto late = jobs.write(id, "x");
  CHECK(!late);
}

TEST_CASE("a job without a terminal has no screen") {
  const LocalExecutor here = executor();
  Jobs jobs(here);
  const std::string id = start(jobs, "test -t 0 || echo none");
  CHECK(support::read(jobs, id).err.text.empty());
  at_end(jobs, id);
  CHECK(support::read(jobs, id).out.text == "none\n");
  const auto screen = jobs.screen(id);
  REQUIRE(!screen);
  CHECK(screen.error().code == ErrorCode::unsupported);
  CHECK(has(screen.error().message, id));
  CHECK(jobs.screen("shell_0").error().code == ErrorCode::not_found);
}

TEST_CASE("a command in the foreground may have a terminal") {
  const LocalExecutor here = executor();
  Command command = on_terminal("tty > /dev/null && echo is one; cat");
  command.keep_input_open = false;
  command.input = "typed\n";
  const codeexec::Result result = here.run(command);
  CHECK(result.succeeded());
  CHECK(has(result.out, "is one\r\n"));
  CHECK(has(result.out, "typed\r\n"));
}

TEST_CASE("a job's terminal gets another size") {
  const LocalExecutor here = executor();
  Jobs jobs(here);
  const std::string id = start(jobs, on_terminal("read x; stty size"));
  REQUIRE(jobs.resize(id, {10, 0}));
  REQUIRE(jobs.write(id, "\n"));
  at_end(jobs, id);
  CHECK(has(support::read(jobs, id).out.text, "10 80\r\n"));
  CHECK(jobs.resize(id, {10, 10}).error().code == ErrorCode::io);
  const std::string plain = start(jobs, "sleep 60");
  const auto refused = jobs.resize(plain, {10, 10});
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::unsupported);
  CHECK(has(refused.error().message, plain));
  CHECK(jobs.resize("shell_0", {10, 10}).error().code == ErrorCode::not_found);
}
