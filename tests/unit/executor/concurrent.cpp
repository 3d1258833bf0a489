// max_concurrent: what waits, in which order, and what ends the wait.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Command;
using codeexec::Execution;
using codeexec::Json;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Outcome;
using codeexec::Result;
using std::chrono::milliseconds;
using support::AuditLog;
using support::describe;
using support::has;
using support::in;
using support::make;
using support::safety;
using support::Stopwatch;
using support::TempDir;

namespace {

LocalExecutor make_with(const TempDir& place, std::size_t max_concurrent) {
  LocalOptions options = in(place);
  options.max_concurrent = max_concurrent;
  return make(options);
}

// Has a slot until let_go().
class Holder {
 public:
  explicit Holder(const LocalExecutor& here) {
    Command command = Command::program({"cat"});
    command.keep_input_open = true;
    running_ = here.start(command);
    REQUIRE(running_.pid() > 0);
  }
  void let_go() {
    running_.close_input();
    CHECK(running_.wait().succeeded());
  }

 private:
  Execution running_ = {};
};

// Runs a command in a thread, and returns when it waits: it then has a descriptor of its work_dir
// and another one to wait for.
template <class Run>
std::thread waiting(Run run) {
  const int before = support::count_descriptors();
  std::thread thread(run);
  const Stopwatch watch;
  while (support::count_descriptors() < before + 2 && watch.soon()) std::this_thread::yield();
  CHECK(support::count_descriptors() >= before + 2);
  return thread;
}

}  // namespace

TEST_CASE("max_concurrent: no more commands run at a time, and all of them run") {
  for (const bool started : {false, true}) {
    CAPTURE(started);
    const TempDir place;
    const LocalExecutor here = make_with(place, 2);
    const LocalExecutor copy = here;  // they share the bound
    std::atomic<int> succeeded{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 6; ++i)
      threads.emplace_back([&, i] {
        const LocalExecutor& executor = i % 2 ? here : copy;
        const Command command = Command::shell(
            "if mkdir a; then mine=a; elif mkdir b; then mine=b; else exit 9; fi 2>/dev/null; "
            "sleep 0.01; rmdir $mine");
        for (int j = 0; j < 5; ++j)
          if ((started ? executor.start(command).wait() : executor.run(command)).succeeded())
            ++succeeded;
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(succeeded == 30);
  }
}

TEST_CASE("max_concurrent: commands start in the order in which they came") {
  const TempDir place;
  const LocalExecutor here = make_with(place, 1);
  Holder holder(here);
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i)
    threads.push_back(waiting([&, i] {
      const Command command = Command::shell("echo " + std::to_string(i) + " >> order");
      const Result r = i % 2 ? here.run(command) : here.start(command).wait();
      CHECK_MESSAGE(r.succeeded(), describe(r));
    }));
  CHECK(!support::exists(place.path() + "/order"));
  holder.let_go();
  for (std::thread& thread : threads) thread.join();
  CHECK(support::read_file(place.path() + "/order") == "0\n1\n2\n3\n4\n5\n");
}

TEST_CASE("max_concurrent: a cancel ends the wait, and those behind go on") {
  const TempDir place;
  AuditLog log;
  LocalOptions options = in(place);
  options.max_concurrent = 1;
  options.on_audit = log.callback();
  const LocalExecutor here = make(options);
  Holder holder(here);
  Command command = Command::shell("touch never");
  command.cancel.emplace();
  std::atomic<int> cancelled{0};
  std::vector<std::thread> threads;
  for (const bool started : {false, true})
    threads.push_back(waiting([&, started] {
      const Result r = started ? here.start(command).wait() : here.run(command);
      CHECK(r.outcome == Outcome::cancelled);
      CHECK(r.message == "cancelled before it was started");
      CHECK(r.command == "touch never");
      CHECK(r.work_dir == here.workspace());
      CHECK(r.pid == -1);
      ++cancelled;
    }));
  std::thread behind = waiting([&] { CHECK(here.run("touch behind").succeeded()); });
  CHECK(cancelled == 0);
  command.cancel->cancel();
  for (std::thread& thread : threads) thread.join();
  // One whose token is cancelled before does not wait at all.
  CHECK(here.run(command).outcome == Outcome::cancelled);
  CHECK(!support::exists(place.path() + "/behind"));
  int recorded = 0;
  for (const Json& record : log.take())
    if (record["command"].as_string() == "touch never" &&
        record["outcome"].as_string() == "cancelled")
      ++recorded;
  CHECK(recorded == 3);
  holder.let_go();
  behind.join();
  CHECK(support::exists(place.path() + "/behind"));
  CHECK(!support::exists(place.path() + "/never"));
}

TEST_CASE("max_concurrent: the time of the wait does not count") {
  const TempDir place;
  const LocalExecutor here = make_with(place, 1);
  // It waits longer than it may run. On a busy machine a short time may be too short to run in.
  for (const bool started : {false, true}) {
    CAPTURE(started);
    Result r;
    for (const milliseconds time : {milliseconds(600), milliseconds(6000), milliseconds(60000)}) {
      Holder holder(here);
      Command command = Command::shell("echo in time");
      command.timeout = time;
      std::thread thread =
          waiting([&] { r = started ? here.start(command).wait() : here.run(command); });
      std::this_thread::sleep_for(time + milliseconds(100));
      holder.let_go();
      thread.join();
      if (r.outcome == Outcome::exited) break;
    }
    CHECK_MESSAGE(r.out == "in time\n", describe(r));
    CHECK(r.wall_time < r.timeout);
  }
  // A command that runs out of time gives back its slot.
  Command endless = Command::shell("exec sleep 300");
  endless.timeout = milliseconds(20);
  CHECK(here.run(endless).outcome == Outcome::timed_out);
  const Execution first = here.start(endless);
  CHECK(here.run("true").succeeded());
  CHECK(first.wait().outcome == Outcome::timed_out);
}

TEST_CASE("max_concurrent: refusals, checks and background commands do not wait") {
  const TempDir place;
  const LocalExecutor here = make_with(place, 1);
  Holder holder(here);
  CHECK(here.run("sudo ls").outcome == Outcome::refused);
  CHECK(here.start(Command::shell("sudo ls")).wait().outcome == Outcome::refused);
  CHECK(here.check(Command::shell("ls")).rule.empty());
  CHECK(here.judge(Command::shell("ls")).verdict.allowed);
  Command command = Command::shell("echo beside");
  command.background = true;
  CHECK(here.run(command).out == "beside\n");
  CHECK(here.start(command).wait().out == "beside\n");
  holder.let_go();
  // Nor do they count.
  command.script = "exec sleep 300";
  const Execution beside = here.start(command);
  CHECK(here.run("true").succeeded());
}

TEST_CASE("max_concurrent: a slot is given back before the record, also by what does not start") {
  const TempDir place;
  LocalOptions options = in(place);
  options.max_concurrent = 1;
  int records = 0;
  const LocalExecutor* self = nullptr;
  options.on_audit = [&](const codeexec::AuditRecord& record) {
    ++records;
    if (record.result->command != "true") CHECK(self->run("true").succeeded());
  };
  const LocalExecutor here = make(options);
  self = &here;
  const Command nothing = Command::program({"/no/such/program"});
  CHECK(here.run(nothing).outcome == Outcome::not_started);
  CHECK(here.start(nothing).wait().outcome == Outcome::not_started);
  // Refused when its place is made, which has a slot.
  Command no_shell = Command::shell(":");
  no_shell.session.emplace();
  no_shell.interpreter = "/bin/cat";
  CHECK(here.run(no_shell).outcome == Outcome::refused);
  CHECK(here.start(no_shell).wait().outcome == Outcome::refused);
  { const Execution dropped = here.start(Command::shell("exec sleep 300")); }
  CHECK(here.run("exit 1").exit_code == 1);
  CHECK(records == 12);
}

TEST_CASE("max_concurrent: callbacks of started commands start others only if a slot is free") {
  const TempDir place;
  const LocalExecutor here = make_with(place, 1);
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Execution> others;
  Result in_time;
  Command command = Command::shell("echo begun; sleep 0.01");
  const auto start_other = [&] {
    const std::lock_guard<std::mutex> lock(mutex);
    others.push_back(here.start(Command::shell("echo other")));
    changed.notify_all();
  };
  command.on_output = [&](codeexec::Stream, std::string_view) { start_other(); };
  command.on_end = start_other;
  const Execution first = here.start(command);
  std::unique_lock<std::mutex> lock(mutex);
  REQUIRE(changed.wait_for(lock, safety, [&] { return others.size() == 2; }));
  const Result none = others[0].wait();
  CHECK(none.outcome == Outcome::not_started);
  CHECK(has(none.message, "as many commands run as may run at a time (1)"));
  CHECK(others[1].pid() > 0);
  lock.unlock();
  CHECK(others[1].wait().out == "other\n");
}
