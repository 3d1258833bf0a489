// max_concurrent: what waits, in which order, and what ends the wait.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <poll.h>

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

LocalExecutor make_with(
    const TempDir& place, std::size_t max_concurrent,
    const codeexec::Function<void(const codeexec::AuditRecord&)>& on_audit = {}) {
  LocalOptions options = in(place);
  options.max_concurrent = max_concurrent;
  options.on_audit = on_audit;
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

// A command that has waited for its turn leaves the engine to end by itself: no other test is to
// see that.
class Quiet {
 public:
  Quiet() = default;
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;
  ~Quiet() {
    CHECK(support::comes_true([&] { return support::count_descriptors() <= before_; }));
  }

 private:
  int before_ = support::count_descriptors();
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
  const Quiet quiet;
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
  const Quiet quiet;
  const TempDir place;
  const LocalExecutor here = make_with(place, 1);
  Holder holder(here);
  std::vector<std::thread> threads;
  std::vector<Execution> handles;
  for (int i = 0; i < 6; ++i) {
    const Command command = Command::shell("echo " + std::to_string(i) + " >> order");
    if (i % 2 == 0)
      handles.push_back(here.start(command));
    else
      threads.push_back(waiting([&, command] { CHECK(here.run(command).succeeded()); }));
  }
  CHECK(!support::exists(place.path() + "/order"));
  holder.let_go();
  for (std::thread& thread : threads) thread.join();
  for (const Execution& handle : handles) CHECK_MESSAGE(handle.wait().succeeded(), "a handle");
  CHECK(support::read_file(place.path() + "/order") == "0\n1\n2\n3\n4\n5\n");
}

TEST_CASE("max_concurrent: a cancel ends the wait, and those behind go on") {
  const Quiet quiet;
  const TempDir place;
  AuditLog log;
  const LocalExecutor here = make_with(place, 1, log.callback());
  Holder holder(here);
  Command command = Command::shell("touch never");
  command.cancel.emplace();
  const auto is_cancelled = [&](const Result& r) {
    CHECK(r.outcome == Outcome::cancelled);
    CHECK(r.message == "cancelled before it was started");
    CHECK(r.command == "touch never");
    CHECK(r.work_dir == here.workspace());
    CHECK(r.pid == -1);
  };
  std::atomic<bool> is_over{false};
  std::thread blocked = waiting([&] {
    is_cancelled(here.run(command));
    is_over = true;
  });
  const Execution handle = here.start(command);
  std::thread behind = waiting([&] { CHECK(here.run("touch behind").succeeded()); });
  CHECK(!is_over);
  CHECK(!handle.done());
  command.cancel->cancel();
  blocked.join();
  is_cancelled(handle.wait());
  CHECK(handle.done());
  // One whose token is cancelled before does not wait at all.
  CHECK(here.run(command).outcome == Outcome::cancelled);
  is_cancelled(here.start(command).wait());
  CHECK(!support::exists(place.path() + "/behind"));
  int recorded = 0;
  for (const Json& record : log.take())
    if (record["command"].as_string() == "touch never" &&
        record["outcome"].as_string() == "cancelled")
      ++recorded;
  CHECK(recorded == 4);
  holder.let_go();
  behind.join();
  CHECK(support::exists(place.path() + "/behind"));
  CHECK(!support::exists(place.path() + "/never"));
}

TEST_CASE("max_concurrent: the time of the wait does not count") {
  const Quiet quiet;
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
      Execution handle;
      std::thread thread;
      if (started)
        handle = here.start(command);
      else
        thread = waiting([&] { r = here.run(command); });
      std::this_thread::sleep_for(time + milliseconds(100));
      holder.let_go();
      if (started) r = handle.wait();
      if (!started) thread.join();
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
  const Quiet quiet;
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
  const Quiet quiet;
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

TEST_CASE("max_concurrent: callbacks of started commands start others, and run none that waits") {
  const Quiet quiet;
  const TempDir place;
  const LocalExecutor here = make_with(place, 1);
  Execution other;
  Result none;
  bool was_done = true;
  Command command = Command::shell("echo begun; sleep 0.01");
  command.on_output = [&](codeexec::Stream, std::string_view) {
    none = here.run("echo never");
    other = here.start(Command::shell("echo other"));
    was_done = other.done();
  };
  CHECK(here.start(command).wait().succeeded());
  CHECK(none.outcome == Outcome::not_started);
  CHECK(has(none.message, "as many commands run as may run at a time (1)"));
  CHECK(!was_done);
  CHECK(other.wait().out == "other\n");
}

TEST_CASE("max_concurrent: a handle that waits for its turn is one like any other") {
  const Quiet quiet;
  const TempDir place;
  const LocalExecutor here = make_with(place, 1);
  Holder holder(here);
  Command command = Command::shell("pwd; cat; echo $A");
  command.environment = {{"A", "of the command"}};
  command.keep_input_open = true;
  std::atomic<int> ends{0};
  command.on_end = [&](const Result& r) { ends += r.succeeded() ? 1 : 100; };
  const Execution handle = here.start(command);
  CHECK(!handle.done());
  CHECK(!handle.wait_for(milliseconds(1)));
  CHECK(handle.pid() == -1);
  CHECK(handle.asked().command == command.script);
  CHECK(handle.asked().work_dir == here.workspace());
  CHECK(handle.read(codeexec::Stream::out, 0).text.empty());
  CHECK(!handle.screen());
  pollfd entry = {handle.descriptor(), POLLIN, 0};
  REQUIRE(entry.fd >= 0);
  CHECK(::poll(&entry, 1, 0) == 0);
  CHECK(handle.write("typed before\n"));
  const auto too_much = handle.write(std::string(std::size_t{1} << 20, 'x'));
  REQUIRE(!too_much);
  CHECK(too_much.error().code == codeexec::ErrorCode::limit);
  handle.close_input();
  CHECK(!handle.write("after the end"));
  holder.let_go();
  CHECK(::poll(&entry, 1, static_cast<int>(milliseconds(safety).count())) == 1);
  CHECK(handle.done());
  const Result r = handle.wait();
  CHECK_MESSAGE(r.out == here.workspace() + "\ntyped before\nof the command\n", describe(r));
  CHECK(ends == 1);
  CHECK(handle.pid() > 0);
  CHECK(handle.descriptor() == entry.fd);
}

TEST_CASE("max_concurrent: a wait ends by cancel(), by max_wait and with the last handle") {
  const Quiet quiet;
  const TempDir place;
  AuditLog log;
  const LocalExecutor here = make_with(place, 1, log.callback());
  Holder holder(here);
  const Command command = Command::shell("touch never");
  const Execution cancelled = here.start(command);
  cancelled.cancel();
  CHECK(cancelled.wait().outcome == Outcome::cancelled);
  pollfd entry = {cancelled.descriptor(), POLLIN, 0};
  CHECK(::poll(&entry, 1, 0) == 1);

  Command in_time = command;
  in_time.max_wait = milliseconds(20);
  for (const bool started : {false, true}) {
    const Result late = started ? here.start(in_time).wait() : here.run(in_time);
    CHECK(late.outcome == Outcome::not_started);
    CHECK(has(late.message, "as many commands run as may run at a time (1)"));
    CHECK(has(late.message, "none has ended within 0.02 s"));
  }
  { const Execution dropped = here.start(command); }
  CHECK(support::comes_true([&] { return log.count() == 4; }));
  const Execution last = here.start(Command::shell("touch last"));
  holder.let_go();
  CHECK(last.wait().succeeded());
  CHECK(!support::exists(place.path() + "/never"));
}

TEST_CASE("max_concurrent: many starts from many threads, with cancels and dropped handles") {
  const Quiet quiet;
  const TempDir place;
  {
    const LocalExecutor here = make_with(place, 3);
    std::atomic<int> ran{0};
    std::atomic<int> others{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        std::vector<Execution> handles;
        for (int i = 0; i < 25; ++i) {
          Command command = Command::shell("exit 0");
          command.on_end = [&](const Result&) { ++ran; };
          handles.push_back(here.start(command));
          if (i % 5 == t) handles.back().cancel();
          if (i % 7 == t) handles.pop_back();
        }
        for (const Execution& handle : handles)
          others += handle.wait().outcome == Outcome::exited ? 0 : 1;
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(ran > 0);
    CHECK(ran + others <= 100);
    CHECK(here.run("true").succeeded());
  }
}
