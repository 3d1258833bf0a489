// What callbacks may do: those of started programs share one thread, which does nothing else.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Outcome;
using codeexec::Process;
using codeexec::ProcessOptions;
using codeexec::ProcessResult;
using codeexec::run_process;
using codeexec::Stream;
using std::chrono::milliseconds;
using support::child;
using support::dies;
using support::has;
using support::LeftoverCheck;
using support::safety;
using support::shell;
using support::Stopwatch;

namespace {

// Handles that callbacks use, with what happened there.
struct Chain {
  std::mutex mutex = {};
  std::condition_variable changed = {};
  std::optional<Process> handle = {};
  int ended = 0;

  template <class Condition>
  bool wait(Condition condition) {
    std::unique_lock<std::mutex> lock(mutex);
    return changed.wait_for(lock, safety, condition);
  }
};

// Each ends the one before it, whose on_end calls this.
void start_next(Chain& chain, int left) {
  const std::lock_guard<std::mutex> lock(chain.mutex);
  auto next = Process::start(shell("exit 0"), [&chain, left](const ProcessResult&) {
    if (left > 1) start_next(chain, left - 1);
    const std::lock_guard<std::mutex> last(chain.mutex);
    if (left == 1) chain.handle.reset();
    ++chain.ended;
    chain.changed.notify_all();
  });
  if (next) chain.handle.emplace(std::move(*next));
}

// What a fork of this program writes to standard error until it is aborted, or something else.
template <class Body>
std::string last_words(Body body) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    const rlimit no_core = {0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::signal(SIGABRT, SIG_DFL);
    ::dup2(ends[1], 2);
    body();
    ::_exit(0);
  }
  ::close(ends[1]);
  const std::string words = support::read_to_end(ends[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  const bool aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
  return aborted ? words : "status " + std::to_string(status) + ": " + words;
}

}  // namespace

TEST_CASE("on_end starts the next program and drops its own handle") {
  // ThreadSanitizer has a thread of its own, which begins with the first other one.
  std::thread([] {}).join();
  const LeftoverCheck leaks;
  const int threads = support::thread_count();
  Chain chain;
  start_next(chain, 5);
  REQUIRE(chain.wait([&] { return chain.ended == 5; }));
  // The thread is nobody's: it ends when nothing runs any more.
  const Stopwatch watch;
  while ((support::thread_count() != threads || !leaks.clean()) && watch.soon())
    std::this_thread::yield();
  CHECK(support::thread_count() == threads);
  CHECK(leaks.clean());
}

TEST_CASE("a handle that is dropped in a callback has its program killed") {
  const LeftoverCheck leaks;
  {
    Chain chain;
    std::atomic<int> ends{0};
    auto other = Process::start(child({"sleep"}), [&](const ProcessResult& r) {
      if (r.signal == SIGKILL) ++ends;
    });
    REQUIRE(other);
    const pid_t pid = other->pid();
    chain.handle.emplace(std::move(*other));
    ProcessOptions options = shell("echo; read x");
    options.keep_input_open = true;
    options.on_output = [&](Stream, std::string_view) {
      const std::lock_guard<std::mutex> lock(chain.mutex);
      CHECK(!chain.handle->done());
      CHECK(!chain.handle->wait_for(codeexec::no_limit));
      chain.handle.reset();
      ++chain.ended;
      chain.changed.notify_all();
    };
    auto process = Process::start(options);
    REQUIRE(process);
    REQUIRE(chain.wait([&] { return chain.ended == 1; }));
    CHECK(dies(pid));
    REQUIRE(process->write("\n"));
    CHECK(process->wait().succeeded());
    const Stopwatch watch;
    while (ends == 0 && watch.soon()) std::this_thread::yield();
    CHECK(ends == 1);
  }
  const Stopwatch watch;
  while (!leaks.clean() && watch.soon()) std::this_thread::yield();
  CHECK(leaks.clean());
}

TEST_CASE("wait() in a callback of a started program ends this one with a message") {
  if (support::thread_sanitizer) return;
  const std::string words = last_words([] {
    ProcessOptions waiting = shell("read x");
    waiting.keep_input_open = true;  // it ends with this program, which nobody else would end
    auto other = Process::start(waiting);
    std::fprintf(stderr, "%d\n", other->pid());
    ProcessOptions options = shell("echo");
    options.on_output = [&](Stream, std::string_view) { (void)other->wait(); };
    auto process = Process::start(options);
    (void)process->wait();
  });
  CHECK_MESSAGE(has(words, "codeexec: wait() was called in a callback"), words);
  CHECK(dies(support::first_number(words)));
}

TEST_CASE("wait() is allowed in callbacks of run_process(), which has no other thread") {
  auto other = Process::start(shell("exit 4"));
  REQUIRE(other);
  int code = -1;
  ProcessOptions options = shell("echo");
  options.on_output = [&](Stream, std::string_view) { code = other->wait().exit_code; };
  CHECK(run_process(options).succeeded());
  CHECK(code == 4);
}

TEST_CASE("a fork that is made in a callback may wait for its own programs") {
  if (support::thread_sanitizer) return;
  std::string problem = "not called";
  ProcessOptions options = shell("echo");
  options.on_output = [&](Stream, std::string_view) {
    problem = support::in_other_host([]() -> std::string {
      auto own = Process::start(shell("exit 6"));
      if (!own) return own.error().message;
      return own->wait().exit_code == 6 ? "" : "another exit code";
    });
  };
  auto process = Process::start(options);
  REQUIRE(process);
  CHECK(process->wait().succeeded());
  CHECK(problem == "");
}

#if defined(__cpp_exceptions)
TEST_CASE("an exception that leaves a callback ends this program") {
  if (support::thread_sanitizer) return;
  for (const bool started : {false, true}) {
    CAPTURE(started);
    const std::string words = last_words([&] {
      ProcessOptions options = shell("echo");
      options.on_output = [](Stream, std::string_view) { throw std::runtime_error("from here"); };
      try {
        if (!started) (void)run_process(options);
        if (started) (void)Process::start(options)->wait();
      } catch (const std::exception&) {
      }
    });
    CHECK_MESSAGE(has(words, "from here"), words);
  }
}
#endif

TEST_CASE("a callback that takes long holds up its own program, and no deadline") {
  std::mutex mutex;
  std::condition_variable changed;
  bool goes_on = false;
  bool entered = false;
  std::size_t seen = 0;
  ProcessOptions slow = shell("head -c 4000000 /dev/zero; exec sleep 1000");
  slow.timeout = milliseconds(300);
  slow.on_output = [&](Stream, std::string_view bytes) {
    std::unique_lock<std::mutex> lock(mutex);
    seen += bytes.size();
    entered = true;
    changed.notify_all();
    changed.wait_for(lock, safety, [&] { return goes_on; });
  };
  auto held = Process::start(slow);
  REQUIRE(held);
  {
    std::unique_lock<std::mutex> lock(mutex);
    REQUIRE(changed.wait_for(lock, safety, [&] { return entered; }));
  }
  // Another one is stopped in time, and its end is known.
  ProcessOptions options = child({"sleep"});
  options.timeout = milliseconds(100);
  auto other = Process::start(options);
  REQUIRE(other);
  CHECK(other->wait().outcome == Outcome::timed_out);
  // So is this one. What it has printed and none has taken is bounded.
  CHECK(dies(held->pid()));
  CHECK(!held->done());
  CHECK(held->read(Stream::out, 0).next < 1000000);
  {
    const std::lock_guard<std::mutex> lock(mutex);
    CHECK(seen < 1000000);
    goes_on = true;
    changed.notify_all();
  }
  const ProcessResult& r = held->wait();
  CHECK(r.outcome == Outcome::timed_out);
  CHECK(r.out_counts.total_bytes == seen);
}

TEST_CASE("on_end: the handle is done() there, and wait() returns what it gets") {
  Chain chain;
  ProcessResult given;
  bool was_done = false;
  int code = -1;
  {
    const std::lock_guard<std::mutex> lock(chain.mutex);
    auto process = Process::start(shell("echo out; exit 3"), [&](const ProcessResult& r) {
      const std::lock_guard<std::mutex> inner(chain.mutex);
      given = r;
      was_done = chain.handle->done();
      code = chain.handle->wait().exit_code;
      ++chain.ended;
      chain.changed.notify_all();
    });
    REQUIRE(process);
    chain.handle.emplace(std::move(*process));
  }
  REQUIRE(chain.wait([&] { return chain.ended == 1; }));
  CHECK(given.out == "out\n");
  CHECK(was_done);
  CHECK(code == 3);
}

namespace {

// An event loop of a program: does the tasks that it was given, in the thread that asks for it.
class Loop {
 public:
  codeexec::Function<void(codeexec::Function<void()>)> post() {
    return [shared = shared_](codeexec::Function<void()> task) {
      const std::lock_guard<std::mutex> lock(shared->mutex);
      shared->tasks.push_back(std::move(task));
      shared->changed.notify_all();
    };
  }
  // Until the condition is true.
  template <class Condition>
  bool run_until(Condition condition) {
    const Stopwatch watch;
    while (!condition()) {
      if (!watch.soon()) return false;
      run_one();
    }
    return true;
  }
  std::size_t waiting() const {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    return shared_->tasks.size();
  }
  void drop() {
    std::deque<codeexec::Function<void()>> tasks;
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    tasks.swap(shared_->tasks);
  }

 private:
  struct Shared {
    std::mutex mutex = {};
    std::condition_variable changed = {};
    std::deque<codeexec::Function<void()>> tasks = {};
  };

  void run_one() {
    codeexec::Function<void()> task;
    {
      std::unique_lock<std::mutex> lock(shared_->mutex);
      if (!shared_->changed.wait_for(lock, milliseconds(100),
                                     [&] { return !shared_->tasks.empty(); }))
        return;
      task = std::move(shared_->tasks.front());
      shared_->tasks.pop_front();
    }
    task();
  }

  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace

TEST_CASE("post: callbacks come in the thread that does the tasks, in order, on_end last") {
  Loop loop;
  std::string seen;
  bool ended = false;
  bool elsewhere = false;
  std::size_t late = 0;
  const std::thread::id here = std::this_thread::get_id();
  ProcessOptions options = shell("echo one; sleep 0.1; echo two; head -c 3000000 /dev/zero");
  options.post = loop.post();
  options.heartbeat = milliseconds(20);
  int beats = 0;
  options.on_heartbeat = [&] { ++beats; };
  options.on_output = [&](Stream, std::string_view bytes) {
    elsewhere = elsewhere || std::this_thread::get_id() != here;
    if (ended) ++late;
    seen += bytes;
  };
  ProcessResult last;
  auto process = Process::start(options, [&](const ProcessResult& r) {
    elsewhere = elsewhere || std::this_thread::get_id() != here;
    ended = true;
    last = r;
  });
  REQUIRE(process);
  CHECK(loop.run_until([&] { return ended; }));
  CHECK(process->done());
  CHECK(!elsewhere);
  CHECK(late == 0);
  CHECK(beats > 0);
  CHECK(seen.size() == 3000008);
  CHECK(support::begins(seen, "one\ntwo\n"));
  CHECK(last.succeeded());
  CHECK(loop.waiting() == 0);
}

TEST_CASE("post: a loop that stands still holds up its programs, and none of their deadlines") {
  Loop loop;
  std::size_t seen = 0;
  bool ended = false;
  ProcessOptions options = shell("yes");
  options.post = loop.post();
  options.timeout = milliseconds(200);
  options.on_output = [&](Stream, std::string_view bytes) { seen += bytes.size(); };
  auto process = Process::start(options, [&](const ProcessResult&) { ended = true; });
  REQUIRE(process);
  CHECK(dies(process->pid()));
  CHECK(process->read(Stream::out, 0).next < 2000000);
  CHECK(seen == 0);
  CHECK(loop.run_until([&] { return ended; }));
  CHECK(process->wait().outcome == Outcome::timed_out);
  CHECK(process->wait().out_counts.total_bytes == seen);
}

TEST_CASE("post: a handle that goes away in the loop's thread does not wait for it") {
  const LeftoverCheck leaks;
  Loop loop;
  std::size_t seen = 0;
  bool ended = false;
  {
    ProcessOptions options = shell("yes");
    options.post = loop.post();
    options.on_output = [&](Stream, std::string_view bytes) { seen += bytes.size(); };
    auto process = Process::start(options, [&](const ProcessResult&) { ended = true; });
    REQUIRE(process);
    CHECK(support::comes_true([&] { return process->read(Stream::out, 0).next > 200000; }));
  }
  CHECK(!ended);
  CHECK(loop.run_until([&] { return ended; }));
  CHECK(seen > 0);
  CHECK(leaks.clean());
}

TEST_CASE("post: the callbacks of a program whose task is dropped are not called, and it ends") {
  Loop loop;
  int calls = 0;
  ProcessOptions options = shell("head -c 3000000 /dev/zero; exit 3");
  options.on_output = [&](Stream, std::string_view) { ++calls; };
  const auto count = [&](const ProcessResult&) { ++calls; };
  for (const bool at_once : {true, false}) {
    if (at_once)
      options.post = [](codeexec::Function<void()>) {};
    else
      options.post = loop.post();
    auto process = Process::start(options, count);
    REQUIRE(process);
    if (!at_once) CHECK(support::comes_true([&] { return loop.waiting() > 0; }));
    loop.drop();
    const ProcessResult& r = process->wait();
    CHECK(r.exit_code == 3);
    CHECK(r.out_counts.total_bytes == 3000000);
    loop.drop();
  }
  CHECK(calls == 0);
}
