// Input, time and number of shells, and everything at once.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::BackgroundShells;
using codeexec::Command;
using codeexec::ErrorCode;
using codeexec::Expected;
using codeexec::ForegroundRun;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Outcome;
using codeexec::ShellCursor;
using codeexec::ShellOptions;
using codeexec::ShellOutput;
using codeexec::ShellState;
using codeexec::ShellStatus;
using codeexec::ShellWait;
using codeexec::ShellWaitEnd;
using std::chrono::milliseconds;
using std::chrono::seconds;
using support::at_end;
using support::child;
using support::describe;
using support::Gate;
using support::kill;
using support::LeakCheck;
using support::make;
using support::pattern;
using support::read;
using support::safety;
using support::start;
using support::status_of;
using support::until_end;
using support::until_seen;
using support::wait;

// input, time and number --------------------------------------------------------------------------

TEST_CASE("W-32: a shell is written to until it has ended or its input is closed") {
  const LocalExecutor here = make();
  BackgroundShells shells(here);
  Command command = Command::shell("cat; echo closed; exec sleep 300");
  command.keep_input_open = true;
  const std::string id = start(shells, command);
  CHECK(shells.write(id, "one\n"));
  CHECK(wait(shells, id, until_seen("^one$")) == "matched");
  CHECK(shells.write(id, "two\n"));
  CHECK(shells.close_input(id));
  CHECK(wait(shells, id, until_seen("^closed$")) == "matched");
  CHECK(read(shells, id).out.text == "one\ntwo\nclosed\n");
  Expected<void> written = shells.write(id, "three\n");
  REQUIRE(!written);
  CHECK(written.error().code == ErrorCode::io);
  CHECK(written.error().message ==
        "cannot write to standard input: it was closed, by the program or by close_input()");
  CHECK(kill(shells, id) == "true");
  written = shells.write(id, "four\n");
  REQUIRE(!written);
  CHECK(written.error().code == ErrorCode::io);
  CHECK(written.error().message == "background shell '" + id + "' has ended: it reads no input");
  CHECK(shells.close_input(id));

  const std::string stuck = [&] {
    command.script = "exec sleep 300";
    return start(shells, command);
  }();
  CHECK(shells.write(stuck, std::string(1 << 20, 'x')));
  do written = shells.write(stuck, std::string(1 << 20, 'x'));
  while (written);
  CHECK(written.error().code == ErrorCode::limit);

  // Without keep_input_open there is none.
  const std::string id_without = start(shells, "cat; exec sleep 300");
  written = shells.write(id_without, "x");
  REQUIRE(!written);
  CHECK(written.error().code == ErrorCode::io);
  CHECK(written.error().message ==
        "cannot write to standard input: it was not kept open: start the command with "
        "keep_input_open");
}

TEST_CASE("W-32: a shell has the time that it is given, and no more than it may have") {
  const LocalExecutor here = make();
  ShellOptions options;
  options.timeout = milliseconds(30);
  options.max_timeout = milliseconds(60);
  {
    BackgroundShells shells(here, options);
    Command command = Command::shell("exec sleep 300");
    const ShellStatus by_default = at_end(shells, start(shells, command));
    CHECK(describe(by_default) == "failed timed_out code -1 signal 15");
    CHECK(by_default.result.timeout == milliseconds(30));
    CHECK(by_default.result.notes.empty());
    command.timeout = milliseconds(40);
    CHECK(at_end(shells, start(shells, command)).result.timeout == milliseconds(40));
    command.timeout = seconds(500);
    const std::string id = start(shells, command);
    const std::vector<std::string> notes = {
        "timeout reduced from 500 to 0.06 seconds, the longest that background shells may have "
        "here"};
    CHECK(status_of(shells, id).result.notes == notes);
    CHECK(at_end(shells, id).result.timeout == milliseconds(60));
    CHECK(status_of(shells, id).result.notes == notes);
    const ForegroundRun run = shells.run(command, safety);
    CHECK(run.ended);
    CHECK(run.result.outcome == Outcome::timed_out);
    CHECK(run.result.notes == notes);
  }
  // The executor's times have no part in it.
  LocalOptions local;
  local.timeout = milliseconds(20);
  local.max_timeout = milliseconds(20);
  const LocalExecutor hasty = make(local);
  BackgroundShells shells(hasty);
  CHECK(at_end(shells, start(shells, "sleep 0.2")).state == ShellState::stopped);
}

TEST_CASE("no more run at once than may, however many are started at once") {
  const LocalExecutor here = make();
  ShellOptions options;
  options.max_running = 7;
  const LeakCheck leaks;
  {
    BackgroundShells shells(here, options);
    Gate gate;
    std::atomic<int> started{0};
    std::atomic<int> refused{0};
    std::vector<std::thread> threads;
    const std::string message =
        "as many background shells are running as may run at once (7): wait for one to end, or "
        "kill one that is not needed any more";
    for (int i = 0; i < 20; ++i)
      threads.emplace_back([&] {
        gate.pass();
        for (int j = 0; j < 50; ++j) {
          const Expected<ShellStatus> status = shells.start(Command::shell("exec sleep 300"));
          if (status) ++started;
          if (!status && status.error().code == ErrorCode::limit &&
              status.error().message == message)
            ++refused;
        }
      });
    gate.open();
    for (std::thread& thread : threads) thread.join();
    CHECK(started == 7);
    CHECK(refused == 993);
    const std::vector<ShellStatus> all = shells.list();
    CHECK(all.size() == 7);
    // Each that ends makes room for one.
    CHECK(kill(shells, all[3].id) == "true");
    CHECK(shells.start(Command::shell("exec sleep 300")));
    CHECK(!shells.start(Command::shell("exec sleep 300")));
  }
  CHECK(leaks.clean());
}

TEST_CASE("shells with huge commands are forgotten before they fill the memory") {
  const LocalExecutor here = make();
  BackgroundShells shells(here);
  const std::string huge = ": " + std::string(std::size_t{7} << 19, 'x');  // 3.5 MiB
  std::string last;
  for (int i = 0; i < 20; ++i) {
    last = start(shells, huge);
    at_end(shells, last);
  }
  CHECK(shells.list().size() == 18);
  CHECK(shells.list().back().id == last);
}

TEST_CASE("W-32: shells that have ended are forgotten, the oldest first") {
  const LocalExecutor here = make();
  ShellOptions options;
  options.max_finished = 3;
  BackgroundShells shells(here, options);
  const LeakCheck leaks;
  std::vector<std::string> ids;
  const std::string running = start(shells, "exec sleep 300");
  for (int i = 0; i < 6; ++i) {
    ids.push_back(start(shells, "exit " + std::to_string(i)));
    // Whoever is asked for has been forgotten already, or not.
    CHECK(wait(shells, ids.back(), until_end()) == "ended");
  }
  std::vector<std::string> listed;
  for (const ShellStatus& status : shells.list()) listed.push_back(status.id);
  CHECK(listed == std::vector<std::string>{running, ids[3], ids[4], ids[5]});
  CHECK(!shells.status(ids[2]));
  CHECK(status_of(shells, ids[3]).result.exit_code == 3);
  // Their end counts, not their start.
  CHECK(kill(shells, running) == "true");
  listed.clear();
  for (const ShellStatus& status : shells.list()) listed.push_back(status.id);
  CHECK(listed == std::vector<std::string>{running, ids[4], ids[5]});

  options.keep_finished = milliseconds(0);
  BackgroundShells forgetful(here, options);
  const std::string id = start(forgetful, "true");
  // Who waits keeps it.
  const Expected<ShellWaitEnd> end = forgetful.wait(id, until_end());
  CHECK((end || end.error().code == ErrorCode::not_found));
  CHECK(forgetful.list().empty());
  CHECK(!forgetful.read(id));

  options.max_finished = 0;
  options.keep_finished = codeexec::no_limit;
  BackgroundShells none(here, options);
  (void)none.wait(start(none, "true"), until_end());
  CHECK(none.list().empty());
  options.max_finished = 1;
  BackgroundShells one(here, options);
  at_end(one, start(one, "true"));
  CHECK(one.list().size() == 1);
}

// everything at once ------------------------------------------------------------------------------

TEST_CASE("readers, waiters, killers and starters do not disturb each other") {
  LocalOptions options;
  options.max_output = 1 << 16;
  const LocalExecutor here = make(options);
  ShellOptions shell_options;
  shell_options.max_running = 6;
  shell_options.max_finished = 4;
  const LeakCheck leaks;
  {
    BackgroundShells shells(here, shell_options);
    std::atomic<bool> over{false};
    std::atomic<int> kills{0};
    std::atomic<int> mistakes{0};
    const std::vector<std::string> scripts = {
        "yes", "echo ready; exec sleep 300", "seq 1 20000; exit 1",
        std::string(child) + " flood 2 1000000", std::string(child) + " dribble 2000"};
    const auto any_id = [&](support::Random& random) {
      const std::vector<ShellStatus> all = shells.list();
      return all.empty() ? std::string("shell_0") : all[random.below(all.size())].id;
    };
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 2; ++i)
      threads.emplace_back([&, i] {  // starts, and now and then in the foreground
        support::Random random(i + 1);
        while (!over) {
          const Command command = Command::shell(scripts[random.below(scripts.size())]);
          const bool first = random.below(4) == 0;
          if (first && shells.list().size() < 5) {
            Command bounded = command;
            bounded.timeout = milliseconds(50);
            (void)shells.run(bounded, milliseconds(random.below(20)));
          } else if (const auto started = shells.start(command);
                     !started && started.error().code != ErrorCode::limit) {
            ++mistakes;
          }
        }
      });
    for (unsigned i = 0; i < 2; ++i)
      threads.emplace_back([&, i] {  // reads on, and each byte once
        support::Random random(i + 11);
        while (!over) {
          const std::string id = any_id(random);
          ShellCursor at;
          for (int j = 0; j < 20; ++j) {
            const Expected<ShellOutput> output = shells.read(id, at);
            if (!output) break;
            if (output->out.next < at.out || output->err.next < at.err) ++mistakes;
            if (!codeexec::is_utf8(output->out.text)) ++mistakes;
            at = {output->out.next, output->err.next};
          }
        }
      });
    for (unsigned i = 0; i < 2; ++i)
      threads.emplace_back([&, i] {  // waits
        support::Random random(i + 21);
        while (!over) {
          ShellWait until;
          if (random.below(2)) until.pattern = pattern("^1999|never|q$");
          until.time = milliseconds(random.below(10));
          const Expected<ShellWaitEnd> end = shells.wait(any_id(random), until);
          if (!end && end.error().code != ErrorCode::not_found) ++mistakes;
        }
      });
    for (unsigned i = 0; i < 2; ++i)
      threads.emplace_back([&, i] {  // kills
        support::Random random(i + 31);
        while (!over) {
          const std::string id = any_id(random);
          const Expected<bool> killed = shells.kill(id);
          if (!killed && killed.error().code != ErrorCode::not_found) ++mistakes;
          const Expected<ShellStatus> status = shells.status(id);
          if (killed && status && status->state == ShellState::running) ++mistakes;
          if (killed && *killed && status && status->state != ShellState::killed) ++mistakes;
          if (killed && *killed) ++kills;
        }
      });
    while (kills < 60) std::this_thread::yield();
    over = true;
    for (std::thread& thread : threads) thread.join();
    CHECK(mistakes == 0);
    CHECK(shells.list().size() <= 10);
  }
  CHECK(leaks.clean());
}
