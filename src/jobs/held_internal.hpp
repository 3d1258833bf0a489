// A command that the thread which has started it drives, until it ends or is to be a job.
//
//   state of the run  event                               next       function
//   new               the gate refuses it, or no start    over       start()
//   new               it runs                             driven     start()
//   driven            the time is up, or `stop` came      driven     drive(), which returns
//   driven            its end                             over       drive()
//   driven            the engine takes it                 handed on  hand_over()
//   driven            this goes away                      over       ~Held(), which kills it
//
// So a command that ends in time costs what it costs by Executor::run(): no thread is begun, none
// is waked, and its output goes straight into what is kept of it. Its callbacks are called by the
// thread that drives it.
#pragma once

#include "executor/executor.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "process/child_internal.hpp"
#include "process/process.hpp"

namespace codeexec {
inline namespace v0_1 {

class Executor::Held {
 public:
  Held() = default;
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held();

  // Starts a command, of which `Command::background` is set. False: it has not started, as
  // execution().wait() says.
  bool start(const Executor& executor, Command& command);
  // True: it has ended. False: it is late, or `stop` is cancelled.
  bool drive(Clock::time_point until, const CancelToken& stop);
  // Ends it now, and drives it until it has ended.
  void cancel();
  void close_input() { run_->end_input(); }
  // Of one that has ended.
  Result&& result() { return std::move(*result_); }
  // Has the engine drive it on, by which `on_printed` is called at each output, before the
  // command's own callback; Command::cancel has no effect any more. False: there is no engine for
  // it, and it stays as it was.
  bool hand_over(Function<void()> on_printed);

  // One of start() from when it was handed over. Before that only asked() may be used.
  const Execution& execution() const { return execution_; }

 private:
  // Drives what was asked to end.
  void end();

  Execution execution_ = {};
  std::shared_ptr<Process::State> run_ = {};  // null: it has not started, or was handed over
  std::shared_ptr<Result> result_ = new_shared<Result>();  // where on_end puts it
  std::vector<pollfd> set_ = {};
};

}  // namespace v0_1
}  // namespace codeexec
