// One job.
//
// A job is an Execution with a name. The callback thread of the process room reports to the job's
// Events: it records the end, and writes a byte to the pipe of each waiting thread.
//
//   callback thread --on_output, on_end--> Events --pipe--> Waiter in wait()
//
// One of run() is driven by that thread, and is a job when it is handed over: see Executor::Held.
//
// The callbacks own the Events, not the job. The process owns its callbacks and the job owns the
// process: callbacks that owned the job would keep both for ever, or would let the callback thread
// destroy a process and wait for itself.
//
// Locks are taken in this order: Jobs::State::mutex, Job::mutex, Events::mutex. None is held while
// a command starts, ends or is waited for. The callback thread takes the last one only.
#pragma once

#include "jobs/jobs.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "jobs/held_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

struct Jobs::Job {
  class Waiter;

  // Written by the callback thread.
  struct Events {
    std::mutex mutex = {};
    Waiter* waiters = nullptr;  // a list
    std::atomic<bool> ended{false};
    Clock::time_point ended_at = {};  // written before `ended`

    void report(bool end);
  };

  // A thread that waits for events. It has a pipe, because the wait may also be ended by a token,
  // and tokens are waited for by their descriptors.
  class Waiter {
   public:
    Waiter(std::shared_ptr<Events> events, bool for_output);
    ~Waiter();
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

    // Fails if the pipe or the token's descriptor could not be made.
    Expected<void> ready(const std::optional<CancelToken>& cancel) const;
    // Returns after an event since the last call, a cancel or the deadline; sometimes without any.
    void wait(const std::optional<CancelToken>& cancel, Clock::time_point deadline);
    // The caller holds the mutex of the events.
    void wake(bool end);

   private:
    friend struct Events;

    std::shared_ptr<Events> events_;
    Waiter* next_ = nullptr;
    bool for_output_;
    bool woken_ = false;  // there is a byte in the pipe
    int error_ = 0;
    UniqueFd readable_ = UniqueFd();
    UniqueFd writable_ = UniqueFd();
    std::vector<pollfd> set_ = {};  // the pipe and the token
  };

  // Without a descriptor for it.
  static Error cannot_wait(int error);
  // Wraps the callbacks of the command and starts it. On failure, sets the state and the result of
  // `failure`.
  bool start(const Executor& executor, Command& command, JobStatus& failure);
  // The same for one that the calling thread drives; its output is not reported.
  bool start(const Executor& executor, Command& command, JobStatus& failure, Executor::Held& held);
  // Has the engine drive that one from here on. False: it cannot.
  bool take_over(Executor::Held& held);
  // True once the execution is done, and on_end has reported it.
  bool has_ended() const;
  // True if a line of the screen matches, after output that the caller has not seen.
  bool shows(const Wait& until) const;
  WaitEnd wait(Waiter& waiter, const Wait& until, Clock::time_point deadline) const;
  // Sets state, duration and result, with all output, of one that has ended.
  void finish(JobStatus& status, Result&& result) const;
  JobStatus status();

  std::mutex mutex = {};
  // What status() returns; the id does not change. While the job runs, a copy gets the duration and
  // the number of bytes so far.
  JobStatus known = {};
  Clock::time_point started = Clock::now();
  std::vector<std::string> notes = {};
  std::shared_ptr<Events> events = new_shared<Events>();
  Execution execution = {};
  std::atomic<bool> kill_asked{false};

 private:
  void report_end(Command& command) const;
  static bool did_not_start(const Execution& tried, JobStatus& failure);
  // Sets what is known of a command that runs.
  void know_start();
  std::uint64_t printed(Stream stream) const;
};

}  // namespace v0_1
}  // namespace codeexec
