// One background command.
//
// A shell is an Execution with a name. What the event thread of the process section tells of it is
// noted in Events: that it has ended, and a byte in the pipe of everybody who waits. The callbacks
// own the Events alone: they live in the process, which the Execution owns, so that owning the
// shell would keep both for ever, or have the event thread destroy a process and wait for itself.
//
// Locks are taken in this order and never held while a command starts, ends or is waited for:
// State::mutex, Shell::mutex, Events::mutex. The event thread takes the last one only.
#pragma once

#include "shells/shells.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

struct BackgroundShells::Shell {
  class Waiter;

  // What the event thread tells.
  struct Events {
    std::atomic<std::uint64_t> out_bytes{0};
    std::atomic<std::uint64_t> err_bytes{0};
    std::mutex mutex = {};
    std::vector<Waiter*> waiters = {};
    std::atomic<bool> ended{false};
    Clock::time_point ended_at = {};  // before `ended` is set

    void tell(bool end);
  };

  // One who waits: by a pipe, as a token can only be waited for by its descriptor.
  class Waiter {
   public:
    Waiter(std::shared_ptr<Events> events, bool for_output);
    ~Waiter();
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

    // What keeps it from waiting, for a token, too.
    Expected<void> problem(const std::optional<CancelToken>& cancel) const;
    // Until something happened since the last call. May return for nothing.
    void wait(const std::optional<CancelToken>& cancel, Clock::time_point deadline);
    // Needs the mutex of the events.
    void wake(bool end);

   private:
    std::shared_ptr<Events> events_;
    bool for_output_;
    bool woken_ = false;  // a byte lies in the pipe
    int error_ = 0;
    UniqueFd readable_ = UniqueFd();
    UniqueFd writable_ = UniqueFd();
    std::vector<pollfd> set_ = {};
  };

  // Starts the command, whose callbacks become others. When that fails, `failure` has the result.
  bool start(const Executor& executor, Command& command, Result& failure);
  bool has_ended() const;
  ShellWaitEnd wait(Waiter& waiter, const ShellWait& until, Clock::time_point deadline) const;
  // All of the result, at the end.
  Result result() const;
  ShellStatus status() const;

  std::string id = {};
  std::string start_time = utc_timestamp();
  Clock::time_point started = Clock::now();
  std::vector<std::string> notes = {};
  std::shared_ptr<Events> events = new_shared<Events>();
  Execution execution = {};
  std::atomic<bool> kill_asked{false};
  // This is the State's, and so is its mutex.
  bool foreground = false;  // not told to anybody

 private:
  mutable std::mutex mutex_ = {};
  mutable std::optional<Result> known_ = {};  // without the output, once it has ended
};

}  // namespace v0_1
}  // namespace codeexec
