// Commands in coroutines (C++20), which all run in one thread: that of an event loop.
//
//   c++ -std=c++20 -I. examples/coroutines.cpp -o coroutines -pthread
//
// awaitable.hpp beside this file is what makes a command something to wait for. The loop and the
// coroutine type are small ones, for those that the program has.
#define CODEEXEC_IMPLEMENTATION
#include "awaitable.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

// An event loop. Its coroutines and tasks are called in the thread that has called run().
class Loop {
 public:
  Loop() {
    if (::pipe(wake_) != 0) throw std::runtime_error("pipe");
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop() {
    ::close(wake_[0]);
    ::close(wake_[1]);
  }

  void when_readable(int descriptor, std::coroutine_handle<> waiting) {
    waits_.push_back({descriptor, waiting});
  }
  void forget(std::coroutine_handle<> waiting) noexcept {
    std::erase_if(waits_, [&](const Wait& wait) { return wait.waiting == waiting; });
  }

  // From any thread, as ExecutorOptions::post.
  void post(codeexec::Function<void()> task) {
    const std::lock_guard<std::mutex> lock(mutex_);
    tasks_.push_back(std::move(task));
    if (tasks_.size() == 1) (void)!::write(wake_[1], "", 1);
  }

  // Until no coroutine waits any more.
  void run() {
    while (!waits_.empty()) {
      std::vector<pollfd> set = {{wake_[0], POLLIN, 0}};
      for (const Wait& wait : waits_) set.push_back({wait.descriptor, POLLIN, 0});
      if (::poll(set.data(), set.size(), -1) < 0) {
        if (errno != EINTR) return std::perror("poll");
        continue;
      }
      if (set[0].revents != 0) {
        do_tasks();
        continue;
      }
      // One before the next poll(): it may end others' waits, and their descriptors be used again.
      for (std::size_t i = 0; i < waits_.size(); ++i)
        if (set[i + 1].revents != 0) {
          resume(i);
          break;
        }
    }
    do_tasks();
  }

 private:
  struct Wait {
    int descriptor;
    std::coroutine_handle<> waiting;
  };

  void resume(std::size_t i) {
    const std::coroutine_handle<> waiting = waits_[i].waiting;
    waits_.erase(waits_.begin() + static_cast<std::ptrdiff_t>(i));
    waiting.resume();
  }

  void do_tasks() {
    std::vector<codeexec::Function<void()>> tasks;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      tasks.swap(tasks_);
      char byte;
      if (!tasks.empty()) (void)!::read(wake_[0], &byte, 1);
    }
    for (codeexec::Function<void()>& task : tasks) task();
  }

  std::vector<Wait> waits_;
  std::mutex mutex_;
  std::vector<codeexec::Function<void()>> tasks_;  // below the mutex
  int wake_[2];
};

// A coroutine that starts at once and has a result, or an exception, for the one that waits for it.
template <class T>
class Task {
 public:
  struct promise_type {
    Task get_return_object() {
      return Task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_never initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct Next {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> self) noexcept {
          const std::coroutine_handle<> next = self.promise().then;
          return next ? next : std::coroutine_handle<>(std::noop_coroutine());
        }
        void await_resume() noexcept {}
      };
      return Next();
    }
    void return_value(T given) { value = std::move(given); }
    void unhandled_exception() { error = std::current_exception(); }

    std::optional<T> value;
    std::exception_ptr error;
    std::coroutine_handle<> then;
  };

  Task(Task&& other) noexcept : self_(std::exchange(other.self_, nullptr)) {}
  Task& operator=(Task&&) = delete;
  // Of one that has not ended, its commands are killed.
  ~Task() {
    if (self_) self_.destroy();
  }

  bool await_ready() const { return self_.done(); }
  void await_suspend(std::coroutine_handle<> waiting) { self_.promise().then = waiting; }
  T await_resume() {
    if (self_.promise().error) std::rethrow_exception(self_.promise().error);
    return *std::move(self_.promise().value);
  }

 private:
  explicit Task(std::coroutine_handle<promise_type> self) : self_(self) {}
  std::coroutine_handle<promise_type> self_;
};

using codeexec::Command;
using codeexec::Executor;
using codeexec::Result;
using codeexec_await::end_of;

// What a command prints; throws when it fails.
Task<std::string> output_of(const Executor& here, Loop& loop, std::string script) {
  const Result result = co_await end_of(here.start(script), loop);
  if (!result.succeeded()) throw std::runtime_error(script + ": " + result.summary());
  co_return result.out;
}

// Two commands, of which the first one waits for what the second one prints.
Task<std::string> both(const Executor& here, Loop& loop) {
  Command reader = Command::shell("read -r word; echo \"then $word\"");
  reader.keep_input_open = true;
  const codeexec::Execution reading = here.start(reader);
  const std::string first = co_await output_of(here, loop, "echo first");
  if (!reading.write(first)) reading.cancel();
  const Result result = co_await end_of(reading, loop);
  co_return first + result.out;
}

// One that is cancelled while it runs, and says so by its output.
Task<codeexec::Outcome> cancelled(const Executor& here, Loop& loop) {
  const codeexec::CancelToken token;
  Command endless = Command::shell("echo begun; sleep 1000");
  endless.cancel = token;
  endless.on_output = [token](codeexec::Stream, std::string_view) { token.cancel(); };
  const Result result = co_await end_of(here.start(endless), loop);
  co_return result.outcome;
}

Task<int> work(const Executor& here, Loop& loop) {
  const std::thread::id thread = std::this_thread::get_id();
  // Both begin here, and are waited for below.
  Task<std::string> words = both(here, loop);
  Task<codeexec::Outcome> ended = cancelled(here, loop);
  std::printf("%s", (co_await words).c_str());
  std::printf("%s\n", name(co_await ended));
  try {
    co_await output_of(here, loop, "exit 3");
  } catch (const std::runtime_error& error) {
    std::printf("%.28s\n", error.what());
  }
  // It goes away before it has ended, and kills its command.
  output_of(here, loop, "sleep 1000");
  std::printf("one thread: %s\n", std::this_thread::get_id() == thread ? "yes" : "no");
  co_return 0;
}

}  // namespace

int main() {
  Loop loop;
  codeexec::LocalOptions options;
  options.post = [&loop](codeexec::Function<void()> task) { loop.post(std::move(task)); };
  auto here = codeexec::LocalExecutor::create(options);
  if (!here) return std::fprintf(stderr, "%s\n", here.error().message.c_str()), 2;
  const Task<int> all = work(*here, loop);
  loop.run();
}
