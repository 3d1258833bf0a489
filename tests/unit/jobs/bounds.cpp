// Input, time and number of jobs, and everything at once.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Command;
using codeexec::ErrorCode;
using codeexec::Expected;
using codeexec::JobOptions;
using codeexec::JobOutput;
using codeexec::Jobs;
using codeexec::JobState;
using codeexec::JobStatus;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Outcome;
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

TEST_CASE("W-32: a job is written to until it has ended or its input is closed") {
  const LocalExecutor here = make();
  Jobs jobs(here);
  Command command = Command::shell("cat; echo closed; exec sleep 300");
  command.keep_input_open = true;
  const std::string id = start(jobs, command);
  CHECK(jobs.write(id, "one\n"));
  CHECK(wait(jobs, id, until_seen("^one$")) == "matched");
  CHECK(jobs.write(id, "two\n"));
  CHECK(jobs.close_input(id));
  CHECK(wait(jobs, id, until_seen("^closed$")) == "matched");
  CHECK(read(jobs, id).out.text == "one\ntwo\nclosed\n");
  Expected<void> written = jobs.write(id, "three\n");
  REQUIRE(!written);
  CHECK(written.error().code == ErrorCode::io);
  CHECK(written.error().message ==
        "cannot write to standard input: it was closed, by the program or by close_input()");
  CHECK(kill(jobs, id) == "true");
  written = jobs.write(id, "four\n");
  REQUIRE(!written);
  CHECK(written.error().code == ErrorCode::io);
  CHECK(written.error().message == "background shell '" + id + "' has ended: it reads no input");
  CHECK(jobs.close_input(id));

  const std::string stuck = [&] {
    command.script = "exec sleep 300";
    return start(jobs, command);
  }();
  CHECK(jobs.write(stuck, std::string(1 << 20, 'x')));
  do written = jobs.write(stuck, std::string(1 << 20, 'x'));
  while (written);
  CHECK(written.error().code == ErrorCode::limit);

  // Without keep_input_open there is none.
  const std::string id_without = start(jobs, "cat; exec sleep 300");
  written = jobs.write(id_without, "x");
  REQUIRE(!written);
  CHECK(written.error().code == ErrorCode::io);
  CHECK(written.error().message ==
        "cannot write to standard input: it was not kept open: start the command with "
        "keep_input_open");
}

TEST_CASE("a job gets signals, and says whether it takes input") {
  const LocalExecutor here = make();
  Jobs jobs(here);
  Command command = Command::shell(
      "trap 'echo told' USR1; trap 'exit 3' INT; echo up; while :; do sleep 300 & wait $!; done");
  command.keep_input_open = true;
  const std::string id = start(jobs, command);
  CHECK(status_of(jobs, id).keeps_input);
  CHECK(status_of(jobs, id).takes_input);
  CHECK(jobs.close_input(id));
  CHECK(status_of(jobs, id).keeps_input);
  CHECK(!status_of(jobs, id).takes_input);
  CHECK(wait(jobs, id, until_seen("up")) == "matched");
  Expected<bool> sent = jobs.signal(id, SIGUSR1);
  CHECK((sent && *sent));
  CHECK(wait(jobs, id, until_seen("told")) == "matched");
  sent = jobs.signal(id, SIGINT);
  CHECK((sent && *sent));
  CHECK(describe(at_end(jobs, id)) == "failed exited code 3 signal 0");
  sent = jobs.signal(id, SIGINT);
  CHECK((sent && !*sent));
  CHECK(!jobs.signal("shell_none", SIGINT));
  const std::string without = start(jobs, "exec sleep 300");
  CHECK(!status_of(jobs, without).keeps_input);
  CHECK(!status_of(jobs, without).takes_input);
}

TEST_CASE("W-32: a job has the time that it is given, and no more than it may have") {
  const LocalExecutor here = make();
  JobOptions options;
  options.timeout = milliseconds(30);
  options.max_timeout = milliseconds(60);
  {
    Jobs jobs(here, options);
    Command command = Command::shell("exec sleep 300");
    const JobStatus by_default = at_end(jobs, start(jobs, command));
    CHECK(describe(by_default) == "failed timed_out code -1 signal 15");
    CHECK(by_default.result.timeout == milliseconds(30));
    CHECK(by_default.result.notes.empty());
    command.timeout = milliseconds(40);
    CHECK(at_end(jobs, start(jobs, command)).result.timeout == milliseconds(40));
    command.timeout = seconds(500);
    const std::string id = start(jobs, command);
    const std::vector<std::string> notes = {
        "timeout reduced from 500 to 0.06 seconds, the longest that background shells may have "
        "here"};
    CHECK(status_of(jobs, id).result.notes == notes);
    CHECK(at_end(jobs, id).result.timeout == milliseconds(60));
    CHECK(status_of(jobs, id).result.notes == notes);
    const JobStatus run = jobs.run(command, safety);
    CHECK(run.id.empty());
    CHECK(run.result.outcome == Outcome::timed_out);
    CHECK(run.result.notes == notes);
  }
  // The executor's times have no part in it.
  LocalOptions local;
  local.timeout = milliseconds(20);
  local.max_timeout = milliseconds(20);
  const LocalExecutor hasty = make(local);
  Jobs jobs(hasty);
  CHECK(at_end(jobs, start(jobs, "sleep 0.2")).state == JobState::stopped);
}

TEST_CASE("no more run at once than may, however many are started at once") {
  const LocalExecutor here = make();
  JobOptions options;
  options.max_running = 7;
  const LeakCheck leaks;
  {
    Jobs jobs(here, options);
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
          const Expected<JobStatus> status = jobs.start(Command::shell("exec sleep 300"));
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
    const std::vector<JobStatus> all = jobs.list();
    CHECK(all.size() == 7);
    // Each that ends makes room for one.
    CHECK(kill(jobs, all[3].id) == "true");
    CHECK(jobs.start(Command::shell("exec sleep 300")));
    CHECK(!jobs.start(Command::shell("exec sleep 300")));
  }
  CHECK(leaks.clean());
}

TEST_CASE("jobs with huge commands are forgotten before they fill the memory") {
  const LocalExecutor here = make();
  Jobs jobs(here);
  const std::string huge = ": " + std::string(std::size_t{7} << 19, 'x');  // 3.5 MiB
  std::string last;
  for (int i = 0; i < 20; ++i) {
    last = start(jobs, huge);
    at_end(jobs, last);
  }
  CHECK(jobs.list().size() == 18);
  CHECK(jobs.list().back().id == last);
}

TEST_CASE("a job is forgotten once it has ended, and no sooner") {
  const LocalExecutor here = make();
  Jobs jobs(here);
  const std::string other = start(jobs, "true");
  Command reads = Command::shell("read line");
  reads.keep_input_open = true;
  const std::string id = start(jobs, reads);
  const Expected<void> early = jobs.forget(id);
  REQUIRE(!early);
  CHECK(early.error().code == ErrorCode::invalid_argument);
  CHECK(jobs.close_input(id));
  CHECK(wait(jobs, id, until_end()) == "ended");
  CHECK(jobs.forget(id));
  CHECK(!jobs.status(id));
  CHECK(jobs.status(other));
  CHECK(!jobs.forget(id));
}

TEST_CASE("W-32: jobs that have ended are forgotten, the oldest first") {
  const LocalExecutor here = make();
  JobOptions options;
  options.max_finished = 3;
  Jobs jobs(here, options);
  const LeakCheck leaks;
  std::vector<std::string> ids;
  const std::string running = start(jobs, "exec sleep 300");
  for (int i = 0; i < 6; ++i) {
    ids.push_back(start(jobs, "exit " + std::to_string(i)));
    // A wait for it may come after it was forgotten.
    CHECK(wait(jobs, ids.back(), until_end()) == "ended");
  }
  std::vector<std::string> listed;
  for (const JobStatus& status : jobs.list()) listed.push_back(status.id);
  CHECK(listed == std::vector<std::string>{running, ids[3], ids[4], ids[5]});
  CHECK(!jobs.status(ids[2]));
  CHECK(status_of(jobs, ids[3]).result.exit_code == 3);
  // Their end counts, not their start.
  CHECK(kill(jobs, running) == "true");
  listed.clear();
  for (const JobStatus& status : jobs.list()) listed.push_back(status.id);
  CHECK(listed == std::vector<std::string>{running, ids[4], ids[5]});

  options.keep_finished = milliseconds(0);
  Jobs forgetful(here, options);
  const std::string id = start(forgetful, "true");
  // A thread that waits keeps it.
  const Expected<Jobs::WaitEnd> end = forgetful.wait(id, until_end());
  CHECK((end || end.error().code == ErrorCode::not_found));
  CHECK(forgetful.list().empty());
  CHECK(!forgetful.read(id));

  options.max_finished = 0;
  options.keep_finished = codeexec::no_limit;
  Jobs none(here, options);
  (void)none.wait(start(none, "true"), until_end());
  CHECK(none.list().empty());
  options.max_finished = 1;
  Jobs one(here, options);
  at_end(one, start(one, "true"));
  CHECK(one.list().size() == 1);
}

// everything at once ------------------------------------------------------------------------------

TEST_CASE("readers, waiters, killers and starters do not disturb each other") {
  LocalOptions options;
  options.max_output = 1 << 16;
  const LocalExecutor here = make(options);
  JobOptions job_options;
  job_options.max_running = 6;
  job_options.max_finished = 4;
  const LeakCheck leaks;
  {
    Jobs jobs(here, job_options);
    std::atomic<bool> over{false};
    std::atomic<int> kills{0};
    std::atomic<int> mistakes{0};
    const std::vector<std::string> scripts = {
        "yes", "echo ready; exec sleep 300", "seq 1 20000; exit 1",
        std::string(child) + " flood 2 1000000", std::string(child) + " dribble 2000"};
    const auto any_id = [&](support::Random& random) {
      const std::vector<JobStatus> all = jobs.list();
      return all.empty() ? std::string("shell_0") : all[random.below(all.size())].id;
    };
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 2; ++i)
      threads.emplace_back([&, i] {  // starts, and now and then in the foreground
        support::Random random(i + 1);
        while (!over) {
          const Command command = Command::shell(scripts[random.below(scripts.size())]);
          const bool first = random.below(4) == 0;
          if (first && jobs.list().size() < 5) {
            Command bounded = command;
            bounded.timeout = milliseconds(50);
            (void)jobs.run(bounded, milliseconds(random.below(20)));
          } else if (const auto started = jobs.start(command);
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
          JobOutput last;
          for (int j = 0; j < 20; ++j) {
            const Expected<JobOutput> output = jobs.read(id, last.out.next, last.err.next);
            if (!output) break;
            if (output->out.next < last.out.next || output->err.next < last.err.next) ++mistakes;
            if (!codeexec::is_utf8(output->out.text)) ++mistakes;
            last = *output;
          }
        }
      });
    for (unsigned i = 0; i < 2; ++i)
      threads.emplace_back([&, i] {  // waits
        support::Random random(i + 21);
        while (!over) {
          Jobs::Wait until;
          if (random.below(2)) until.pattern = pattern("^1999|never|q$");
          until.time = milliseconds(random.below(10));
          const Expected<Jobs::WaitEnd> end = jobs.wait(any_id(random), until);
          if (!end && end.error().code != ErrorCode::not_found) ++mistakes;
        }
      });
    for (unsigned i = 0; i < 2; ++i)
      threads.emplace_back([&, i] {  // kills
        support::Random random(i + 31);
        while (!over) {
          const std::string id = any_id(random);
          const Expected<bool> killed = jobs.kill(id);
          if (!killed && killed.error().code != ErrorCode::not_found) ++mistakes;
          const Expected<JobStatus> status = jobs.status(id);
          if (killed && status && status->state == JobState::running) ++mistakes;
          if (killed && *killed && status && status->state != JobState::killed) ++mistakes;
          if (killed && *killed) ++kills;
        }
      });
    while (kills < 60) std::this_thread::yield();
    over = true;
    for (std::thread& thread : threads) thread.join();
    CHECK(mistakes == 0);
    CHECK(jobs.list().size() <= 10);
  }
  CHECK(leaks.clean());
}
