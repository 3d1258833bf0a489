// A handle on a started command, and a command that waits for its turn.
#pragma once

#include "executor/executor.hpp"
#include "executor/gate_internal.hpp"
#include "executor/slots_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "process/capture_internal.hpp"
#include "process/process.hpp"
#include "process/reactor_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// What copies of a handle share. Until it is settled, the command waits for its turn and has no
// process. From then on `known` belongs to the end of the process, until that is done().
struct Execution::State {
  // What was asked of a command that has not started.
  struct Wishes {
    std::string input = {};
    bool closes_input = false;
    bool cancels = false;
    std::optional<TerminalSize> size = {};
  };

  // What is written to the command passes the guard first, as this keeps it.
  struct Typing {
    std::shared_ptr<const Guard> guard;
    std::string script = {};
    std::string work_dir = {};
    bool terminal = false;
    std::mutex mutex = {};
    std::string typed = {};  // see Guard::judge_typed()
  };

  ~State();

  // Waits until it is settled. False: the time is over.
  bool settled_within(std::chrono::milliseconds time);
  // The process; null: it has none, or none yet. Once there is one it stays.
  const Process* running() const;
  // Queues bytes that may be written.
  Expected<void> write(std::string_view bytes);
  // Hands over what was asked meanwhile: the command has started, or will not.
  void settle();
  // Ends the wait of the command. Takes no memory.
  void give_up() const noexcept;
  // The command of a queued start has ended, or will not start.
  void end();

  // Of a command that has not started for lack of memory.
  static std::shared_ptr<State> of_no_memory();

  const std::shared_ptr<Result> known = new_shared<Result>();
  Result asked = Result();
  std::unique_ptr<Typing> typing = {};            // null: nothing can be written
  std::shared_ptr<const Redactor> redactor = {};  // there is one when there is a process
  // What it ran in: goes away after the process, which may outlive a handle dropped in a callback.
  std::shared_ptr<const void> home = {};
  // Of a command that waits for its turn, or has.
  bool has_waited = false;
  std::shared_ptr<Process::Reactor> reactor = {};  // while it waits
  std::weak_ptr<Executor::Queued> queued = {};
  bool keeps_input_open = false;
  bool has_terminal = false;

  mutable std::mutex mutex = {};
  // Below the mutex.
  std::condition_variable settled = {};
  std::optional<Process> process = {};
  bool is_settled = true;
  Wishes wishes = {};
  bool has_ended = false;
  std::optional<CancelToken> end_token = {};  // for descriptor(), of one that has waited
};

// A command of start() that waits for its turn. The line, a watch or a task holds it until that has
// come, or it is given up.
//
//   state     event                                next      function, thread of starts
//   in line   a slot is given back                 starting  begin(): place(), then the process
//   in line   cancelled, max_wait has passed, or   over      give_up(): not started
//             the last handle was dropped
//   starting  the process runs, or does not        over      begin()
class Executor::Queued {
 public:
  Queued(const Executor& executor, const Command& command);

  // Has a command stand in the line, from where `state` is that of a handle that waits. An errno:
  // there is no engine. Without memory for it nothing has changed.
  static int enter(const Executor& executor, const Command& command,
                   std::unique_ptr<Admission>& admission,
                   const std::shared_ptr<Execution::State>& state,
                   std::shared_ptr<Process::Reactor>& reactor);

  // For the engine to do soon, which is to be woken.
  void ask_to_give_up() noexcept { watch_->is_due.store(true); }

 private:
  void give_up();
  void begin();
  // Starts the command, unless it was cancelled or has no slot.
  void start(bool has_slot);
  // The wait is over.
  void leave();

  const std::shared_ptr<const Executor> executor_;
  const Command command_;
  std::unique_ptr<Admission> admission_ = {};
  std::weak_ptr<Execution::State> state_ = {};
  const std::shared_ptr<Slots::Waiter> waiter_ = new_shared<Slots::Waiter>();
  const std::shared_ptr<Process::Reactor::Watch> watch_ = new_shared<Process::Reactor::Watch>();
  std::shared_ptr<Process::Reactor> reactor_ = {};
  TaskThread::Task begin_ = {};  // what a slot is waited for with
};

}  // namespace v0_1
}  // namespace codeexec
