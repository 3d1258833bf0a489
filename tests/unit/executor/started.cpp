// Cancelling, and commands that were started.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <initializer_list>
#include <mutex>
#include <thread>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::AuditRecord;
using codeexec::Command;
using codeexec::ErrorCode;
using codeexec::Execution;
using codeexec::Expected;
using codeexec::Json;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Outcome;
using codeexec::Result;
using codeexec::Stream;
using std::chrono::milliseconds;
using std::chrono::seconds;
using support::AuditLog;
using support::begins;
using support::dies;
using support::has;
using support::in;
using support::LeakCheck;
using support::make;
using support::safety;
using support::Stopwatch;

namespace {

// Something that happens once, in any thread.
class Event {
 public:
  void set() {
    const std::lock_guard<std::mutex> lock(mutex_);
    happened_ = true;
    changed_.notify_all();
  }
  bool wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, safety, [this] { return happened_; });
  }

 private:
  std::mutex mutex_ = {};
  std::condition_variable changed_ = {};
  bool happened_ = false;
};

bool is_running(pid_t pid) { return ::kill(pid, 0) == 0; }

}  // namespace

TEST_CASE("a started command can be waited for with poll()") {
  const LocalExecutor here = make({});
  Command command = Command::program({"cat"});
  command.keep_input_open = true;
  const Execution execution = here.start(command);
  pollfd entry = {execution.descriptor(), POLLIN, 0};
  REQUIRE(entry.fd >= 0);
  CHECK(::poll(&entry, 1, 0) == 0);
  execution.close_input();
  CHECK(::poll(&entry, 1, static_cast<int>(milliseconds(safety).count())) == 1);
  CHECK(execution.done());
  CHECK(here.start("sudo ls").descriptor() == -1);
  CHECK(here.start("echo text").wait().out == "text\n");
}

TEST_CASE("a run() is cancelled from another thread, and its tree dies") {
  const LocalExecutor here = make({});
  Event running;
  Command command = Command::shell("sleep 300 & echo $!; wait");
  command.cancel.emplace();
  command.on_output = [&](Stream, std::string_view) { running.set(); };
  std::thread other([&, token = *command.cancel] {
    running.wait();
    token.cancel();
  });
  const Stopwatch watch;
  const Result r = here.run(command);
  other.join();
  CHECK(r.outcome == Outcome::cancelled);
  CHECK(r.exit_code == -1);
  CHECK(begins(r.summary(), "cancelled in "));
  CHECK(dies(std::atoi(r.out.c_str())));
  CHECK(watch.soon());
}

TEST_CASE("a command whose token is cancelled already does nothing") {
  const support::TempDir place;
  AuditLog log;
  LocalOptions options = in(place);
  options.on_audit = log.callback();
  const LocalExecutor here = make(options);
  Command command = Command::shell("touch made");
  command.cancel.emplace();
  command.cancel->cancel();
  CHECK(here.run(command).outcome == Outcome::cancelled);
  CHECK(here.start(command).wait().outcome == Outcome::cancelled);
  CHECK(!support::exists(place / "made"));
  CHECK(log.take().size() == 2);
}

TEST_CASE("a started command is cancelled through its handle, a copy of it, or the token") {
  const LocalExecutor here = make({});
  for (const int way : {0, 1, 2}) {
    CAPTURE(way);
    Event running;
    Command command = Command::shell("sleep 300 & echo $!; wait");
    command.cancel.emplace();
    command.on_output = [&](Stream, std::string_view) { running.set(); };
    const Execution handle = here.start(command);
    const Execution copy = handle;
    REQUIRE(running.wait());
    CHECK(!handle.done());
    CHECK(!handle.wait_for(milliseconds(0)));
    CHECK(handle.pid() > 0);
    std::thread other([&] {
      if (way == 0) handle.cancel();
      if (way == 1) copy.cancel();
      if (way == 2) command.cancel->cancel();
    });
    CHECK(handle.wait_for(safety));
    other.join();
    CHECK(copy.done());
    const Result r = handle.wait();
    CHECK(r.outcome == Outcome::cancelled);
    CHECK(dies(std::atoi(r.out.c_str())));
    handle.cancel();  // afterwards: nothing
    CHECK(handle.wait().outcome == Outcome::cancelled);
  }
}

TEST_CASE("a started command is written to and read from while it runs") {
  const LocalExecutor here = make({});
  Event asked;
  Event answered;
  Command command =
      Command::shell("printf 'name? '; read name; echo \"hello $name\"; cat; echo end >&2");
  command.keep_input_open = true;
  std::string seen;
  command.on_output = [&](Stream, std::string_view bytes) {
    seen += bytes;
    if (has(seen, "name? ")) asked.set();
    if (has(seen, "hello")) answered.set();
  };
  const Execution handle = here.start(command);
  REQUIRE(asked.wait());
  codeexec::OutputChunk chunk = handle.read(Stream::out, 0);
  CHECK(chunk.text == "name? ");
  CHECK(chunk.next == 6);
  CHECK(chunk.missed == 0);
  CHECK(handle.write("Ada\n"));
  REQUIRE(answered.wait());
  chunk = handle.read(Stream::out, chunk.next);
  CHECK(begins(chunk.text, "hello"));
  CHECK(handle.write("last words"));
  handle.close_input();
  const Result r = handle.wait();
  CHECK(r.succeeded());
  CHECK(r.out == "name? hello Ada\nlast words");
  CHECK(handle.read(Stream::out, 6).text == "hello Ada\nlast words");
  CHECK(handle.read(Stream::err, 0).text == "end\n");
  CHECK(handle.read(Stream::out, r.out.size()).text.empty());
  const Expected<void> late = handle.write("x");
  CHECK(!late);
  CHECK(late.error().code == ErrorCode::io);
}

TEST_CASE("a refused or failed start gives a handle that is done") {
  const LocalExecutor here = make({});
  for (const Command& command :
       {Command::shell("sudo ls"), Command::program({"/nonexistent/program"})}) {
    const Execution handle = here.start(command);
    CHECK(handle.done());
    CHECK(handle.wait_for(milliseconds(0)));
    CHECK(handle.pid() == -1);
    handle.cancel();
    handle.close_input();
    const Expected<void> written = handle.write("x");
    REQUIRE(!written);
    CHECK(written.error().code == ErrorCode::io);
    const codeexec::OutputChunk chunk = handle.read(Stream::out, 5);
    CHECK(chunk.text.empty());
    CHECK(chunk.next == 5);
    const Result r = handle.wait();
    CHECK((r.outcome == Outcome::refused || r.outcome == Outcome::not_started));
    CHECK(!r.message.empty());
  }
}

TEST_CASE("on_end is called once, after the record and before wait() returns") {
  LocalOptions options;
  std::atomic<int> recorded{0};
  std::atomic<int> ended{0};
  std::atomic<int> recorded_first{0};
  options.on_audit = [&](const AuditRecord&) { ++recorded; };
  const LocalExecutor here = make(options);
  Command command = Command::shell("exit 3");
  std::atomic<int> exit_code{-1};
  command.on_end = [&](const Result& result) {
    ++ended;
    recorded_first = recorded.load();
    exit_code = result.exit_code;
  };
  CHECK(here.start(command).wait().exit_code == 3);
  CHECK(exit_code == 3);
  CHECK(ended == 1);
  CHECK(recorded_first == 1);
  // The end of the handle is one, too.
  command.script = "exec sleep 300";
  { const Execution dropped = here.start(command); }
  CHECK(ended == 2);
  CHECK(recorded_first == 2);
  command.script = "sudo ls";
  CHECK(here.start(command).wait().rule == "sudo");
  command = Command::program({"/nonexistent/program"});
  command.on_end = [&](const Result&) { ++ended; };
  CHECK(here.start(command).wait().outcome == Outcome::not_started);
  CHECK(ended == 2);
  CHECK(recorded == 4);
}

TEST_CASE("a handle tells what was asked while the command runs") {
  const support::TempDir place;
  const support::EnvironmentGuard secret("CODEEXEC_TEST_TOKEN", "hunter2-hunter2");
  LocalOptions options = in(place);
  options.environment.secret = {"CODEEXEC_TEST_TOKEN"};
  options.max_timeout = seconds(60);
  const LocalExecutor here = make(options);
  Command command = Command::shell(": hunter2-hunter2; exec cat");
  command.keep_input_open = true;
  command.timeout = seconds(100);
  const Execution handle = here.start(command);
  const Result& asked = handle.asked();
  CHECK(!handle.done());
  CHECK(asked.command == ": [redacted]; exec cat");
  CHECK(asked.work_dir == here.workspace());
  CHECK(asked.timeout == seconds(60));
  CHECK(asked.notes.size() == 1);
  CHECK(static_cast<bool>(asked.sandbox));
  handle.close_input();
  CHECK(handle.wait().succeeded());
  CHECK(&handle.asked() == &asked);
  CHECK(asked.command == ": [redacted]; exec cat");

  const Execution refused = here.start(Command::shell("sudo hunter2-hunter2"));
  CHECK(refused.asked().rule == "sudo");
  CHECK(refused.asked().outcome == Outcome::refused);
  CHECK(refused.asked().command == "sudo [redacted]");
  const Execution missing = here.start(Command::program({"/nonexistent/program"}));
  CHECK(missing.asked().step == "exec");
}

TEST_CASE("the end of the last handle kills the command, and it is recorded") {
  AuditLog log;
  LocalOptions options;
  options.on_audit = log.callback();
  const LocalExecutor here = make(options);
  pid_t pid = -1;
  {
    std::optional<Execution> first = here.start(Command::shell("exec sleep 300"));
    const Execution second = *first;
    pid = second.pid();
    first.reset();
    CHECK(!second.done());
    CHECK(is_running(pid));
  }
  CHECK(dies(pid));
  const std::vector<Json> records = log.take();
  REQUIRE(records.size() == 1);
  CHECK(records[0]["outcome"] != Json("exited"));
}

TEST_CASE("what is asked of a command right after its start is not lost") {
  const LocalExecutor here = make({});
  const Stopwatch watch;
  for (int i = 0; i < 100; ++i) {
    Command command = Command::shell("exec cat");
    command.keep_input_open = true;
    command.timeout = seconds(10);
    const Execution closed = here.start(command);
    closed.close_input();
    CHECK(closed.wait().succeeded());
    const Execution cancelled = here.start(command);
    cancelled.cancel();
    CHECK(cancelled.wait().outcome == Outcome::cancelled);
    here.start(command);  // dropped at once
    if (!watch.soon()) break;
  }
  CHECK(watch.soon());
}

TEST_CASE("a pthread_cancel() is acted upon after what an executor was asked for") {
  struct Asked {
    const LocalExecutor& here;
    void (*ask)(const LocalExecutor& here);
    bool returned;
  };
  const support::TempDir place;
  const LocalExecutor here = make(in(place));
  const auto body = [](void* argument) -> void* {
    Asked& asked = *static_cast<Asked*>(argument);
    ::pthread_cancel(::pthread_self());
    asked.ask(asked.here);
    asked.returned = true;
    ::pthread_testcancel();
    return nullptr;
  };
  for (const auto ask : std::initializer_list<void (*)(const LocalExecutor&)>{
           [](const LocalExecutor& it) { CHECK(it.run("echo").out == "\n"); },
           [](const LocalExecutor& it) { CHECK(it.check(Command::shell("echo")).rule.empty()); },
           [](const LocalExecutor& it) { CHECK(it.judge(Command::shell("echo")).verdict); },
           [](const LocalExecutor& it) {
             CHECK(it.start(Command::shell("echo")).wait().succeeded());
           },
           [](const LocalExecutor& it) { (void)it.start(Command::shell("sleep 300")); },
           [](const LocalExecutor&) { CHECK(LocalExecutor::create({})); },
       }) {
    Asked asked = {here, ask, false};
    pthread_t thread;
    REQUIRE(::pthread_create(&thread, nullptr, body, &asked) == 0);
    void* result = nullptr;
    REQUIRE(::pthread_join(thread, &result) == 0);
    CHECK(asked.returned);
    CHECK(result == PTHREAD_CANCELED);
  }
}

TEST_CASE("an executor may go away before what it started") {
  std::optional<LocalExecutor> here = make({});
  Command command = Command::shell("cat; echo end");
  command.keep_input_open = true;
  const Execution handle = here->start(command);
  here.reset();
  handle.close_input();
  CHECK(handle.wait().out == "end\n");
}

TEST_CASE("many commands at once, run and started, are not mixed up") {
  AuditLog log;
  LocalOptions options;
  options.on_audit = log.callback();
  const LocalExecutor here = make(options);
  const LeakCheck leaks;
  constexpr int thread_count = 8;
  constexpr int each = 12;
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < thread_count; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < each; ++i) {
        const std::string text = std::to_string(t) + "-" + std::to_string(i);
        const Execution started = here.start(Command::shell("echo s" + text + "; exit 3"));
        const Result r = here.run("echo r" + text);
        const Result s = started.wait();
        if (r.out == "r" + text + "\n" && r.exit_code == 0 && s.out == "s" + text + "\n" &&
            s.exit_code == 3)
          ++good;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(good == thread_count * each);
  CHECK(log.take().size() == 2 * thread_count * each);

  std::vector<Execution> handles;
  for (int i = 0; i < 50; ++i) {
    Command command = Command::shell("cat");
    command.keep_input_open = true;
    handles.push_back(here.start(command));
  }
  for (std::size_t i = 0; i < handles.size(); ++i) CHECK(handles[i].write(std::to_string(i)));
  for (const Execution& handle : handles) handle.close_input();
  for (std::size_t i = 0; i < handles.size(); ++i)
    CHECK(handles[i].wait().out == std::to_string(i));
  handles.clear();
  CHECK(leaks.clean());
}
