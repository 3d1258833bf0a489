// A command in the foreground, and how the engine takes it over.

#include "jobs/held_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "process/child_internal.hpp"
#include "process/process.hpp"

namespace codeexec {
inline namespace v0_1 {

// What was printed until now has gone to what is kept of it, to the hash and to the callback, by
// this thread. What comes from now on goes the way of a started command. There is no output in
// between. Nothing: there is no engine, and nothing has changed.
std::optional<Process> Process::State::Delivery::hand_over(const std::shared_ptr<State>& self,
                                                           Function<void()> on_printed) {
  ProcessOptions& owned = *state_.owned_options;
  Function<void(Stream, std::string_view)> own = owned.on_output;
  const auto report = [&] {
    owned.on_output = [told = std::move(on_printed), next = own](Stream stream,
                                                                 std::string_view bytes) {
      told();
      next(stream, bytes);
    };
  };
  if (!enough_memory(report)) return {};
  std::optional<CancelToken> cancel;
  cancel.swap(owned.cancel);
  state_.reads_in_place = false;
  state_.io.out.writer.reset();
  state_.io.err.writer.reset();
  // From here on all of it is the engine's, unless that fails.
  auto process = launch(self, nullptr);
  if (process) return std::move(*process);
  owned.on_output = std::move(own);
  owned.cancel = std::move(cancel);
  mailbox.reset();
  posted.reset();
  return {};
}

Executor::Held::~Held() {
  if (!run_ || run_->over()) return;
  run_->kill_asked.store(true);
  end();
}

// Without memory for the result it says so.
bool Executor::Held::start(const Executor& executor, Command& command) {
  set_.reserve(Process::State::slot_count + 1);
  command.on_end = [into = std::weak_ptr<Result>(result_),
                    next = std::move(command.on_end)](const Result& ended) {
    next(ended);
    const auto result = into.lock();
    if (!result || enough_memory([&] { *result = ended; })) return;
    *result = Result();
    result->outcome = ended.outcome;
    result->exit_code = ended.exit_code;
    result->signal = ended.signal;
    tell_of_memory(result->message, "its output and notes are");
  };
  execution_ = executor.begin(command, &run_);
  return run_ != nullptr;
}

bool Executor::Held::drive(Clock::time_point until, const CancelToken& stop) {
  return codeexec::drive(*run_, set_, until, stop.descriptor());
}

void Executor::Held::cancel() {
  run_->cancel_asked.store(true);
  end();
}

// No descriptor says that it was asked to end, so that it first looks without a wait.
void Executor::Held::end() {
  Process::State::ReadBuffer buffer;
  set_.clear();
  while (!enough_memory([&] { run_->step(set_, buffer); })) pause_for_memory();
  codeexec::drive(*run_, set_, Clock::time_point::max(), -1);
}

bool Executor::Held::hand_over(Function<void()> on_printed) {
  auto process = run_->delivery.hand_over(run_, std::move(on_printed));
  if (!process) return false;
  execution_.adopt(std::move(*process));
  run_.reset();
  result_.reset();
  return true;
}

}  // namespace v0_1
}  // namespace codeexec
