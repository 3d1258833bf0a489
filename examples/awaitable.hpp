// co_await for commands, in C++20: copy this file, which needs nothing but codeexec.hpp.
//
//   codeexec::Result result = co_await codeexec_await::end_of(executor.start("make"), loop);
//
// The coroutine goes on in `loop`, the event loop of the program, and so in a thread of its choice:
// that of ExecutorOptions::post, when the loop takes these tasks, too. A loop is anything that has
//
//   void when_readable(int descriptor, std::coroutine_handle<> waiting);  // resumes it, once
//   void forget(std::coroutine_handle<> waiting) noexcept;                // does not resume it
//
// What becomes of a command:
//   it was refused, or could not start     the coroutine goes on at once; the Result says why
//   it waits for its turn, or runs         the coroutine goes on when it has ended, however it does
//   Execution::cancel(), Command::cancel   the same, and soon: Outcome::cancelled
//   the coroutine is destroyed meanwhile   the command is killed, unless there are other handles on
//                                          it; in the thread of the loop, as nothing else is safe
//   when_readable() throws                 the same, and co_await throws that
//   there is no descriptor left for it     co_await blocks until it has ended
#ifndef CODEEXEC_EXAMPLES_AWAITABLE_HPP
#define CODEEXEC_EXAMPLES_AWAITABLE_HPP

#include <coroutine>
#include <utility>

#include "codeexec.hpp"

namespace codeexec_await {

template <class Loop>
class EndOf {
 public:
  EndOf(codeexec::Execution execution, Loop& loop)
      : execution_(std::move(execution)), loop_(loop) {}
  EndOf(const EndOf&) = delete;
  EndOf& operator=(const EndOf&) = delete;
  ~EndOf() {
    if (waiting_) loop_.forget(waiting_);
  }

  bool await_ready() const { return execution_.done(); }
  bool await_suspend(std::coroutine_handle<> waiting) {
    const int descriptor = execution_.descriptor();
    if (descriptor < 0) return false;
    loop_.when_readable(descriptor, waiting);
    waiting_ = waiting;
    return true;
  }
  codeexec::Result await_resume() {
    waiting_ = nullptr;
    return execution_.wait();  // blocks only without a descriptor
  }

 private:
  const codeexec::Execution execution_;
  Loop& loop_;
  std::coroutine_handle<> waiting_ = nullptr;  // as long as the loop knows of it
};

// For co_await: the Result of the command. The loop must outlive the coroutine.
template <class Loop>
EndOf<Loop> end_of(codeexec::Execution execution, Loop& loop) {
  return {std::move(execution), loop};
}

}  // namespace codeexec_await

#endif  // CODEEXEC_EXAMPLES_AWAITABLE_HPP
