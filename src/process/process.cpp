// Public functions, and the handle on a started program.

#include "process/process.hpp"
#include "process/child_internal.hpp"
#include "process/plan_internal.hpp"
#include "process/reactor_internal.hpp"
#include "process/remote_internal.hpp"
#include "process/start_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// Out of line: each file that uses one would have its own copies otherwise.
ProcessResult::ProcessResult() = default;
ProcessResult::ProcessResult(const ProcessResult&) = default;
ProcessResult::ProcessResult(ProcessResult&&) noexcept = default;
ProcessResult& ProcessResult::operator=(const ProcessResult&) = default;
ProcessResult& ProcessResult::operator=(ProcessResult&&) noexcept = default;
ProcessResult::~ProcessResult() = default;

ProcessResult run_process(const ProcessOptions& options) {
  const CancellationPause pause;
  ProcessResult result;
  if (!enough_memory([&] { result = LocalRun(options).run(); })) fail_without_memory(result);
  return result;
}

Expected<Process> Process::start(ProcessOptions options,
                                 Function<void(const ProcessResult&)> on_end,
                                 ProcessResult* failure) {
  std::shared_ptr<State> state;
  if (!enough_memory([&] { state = new_run(std::move(options)); })) {
    if (failure) fail_without_memory(*failure);
    return Error{ErrorCode::limit, ENOMEM, 0, out_of_memory};
  }
  state->delivery.has_callbacks = static_cast<bool>(on_end);
  state->delivery.on_end = std::move(on_end);
  return State::launch(std::move(state), failure);
}

Expected<Process> Process::State::launch(std::shared_ptr<State> state, ProcessResult* failure) {
  const CancellationPause pause;
  std::shared_ptr<Reactor> reactor;
  Reactor::Run run;
  const bool has_begun = state->times.started != Clock::time_point();
  bool is_started = false;
  const auto start = [&] {
    run.push_back(state);
    const int error = state->delivery.prepare(reactor);
    if (error == 0)
      is_started = has_begun || state->start(false);
    else if (!has_begun)
      state->fail(SpawnStep::setup, error,
                  concat("cannot start the thread for processes: %", {errno_text(error)}));
  };
  if (!enough_memory(start) && !has_begun) {
    fail_without_memory(state->result);
    state->end_start();
  }
  if (!is_started) {
    SharedError problem = Error{ErrorCode::limit, ENOMEM, 0, out_of_memory};
    (void)enough_memory([&] {
      problem = with_message(system_error(state->result.system_error, ""), state->result.message);
    });
    if (failure) *failure = std::move(state->result);
    return problem;
  }
  state->forget_start();
  reactor->add(std::move(run));
  return Process(std::move(state), std::move(reactor));
}

Process::Process(std::shared_ptr<State> state, std::shared_ptr<Reactor> reactor) noexcept
    : state_(std::move(state)), reactor_(std::move(reactor)) {}

Process::Process(Process&& other) noexcept = default;

Process& Process::operator=(Process&& other) noexcept {
  if (this == &other) return *this;
  end();
  state_ = std::move(other.state_);
  reactor_ = std::move(other.reactor_);
  return *this;
}

Process::~Process() { end(); }

void Process::end() noexcept {
  if (!state_) return;
  if (!reactor_->is_ours()) {
    // The process and the threads that their destructors would end do not exist here.
    leak(state_);
    return leak(reactor_);
  }
  const CancellationPause pause;
  state_->kill_asked.store(true);
  if (in_event_thread()) {
    Reactor::let_go(std::move(reactor_));
  } else {
    reactor_->wake();
    (void)wait();
  }
  state_.reset();
  reactor_.reset();
}

int Process::pid() const noexcept { return state_->pid(); }

bool Process::done() const { return state_->ended_within(std::chrono::milliseconds(0)); }

bool Process::wait_for(std::chrono::milliseconds time) const {
  const CancellationPause pause;
  return state_->ended_within(time);
}

const ProcessResult& Process::wait() const {
  if (!wait_for(no_limit)) abort_in_callback("wait()");
  return state_->result;
}

int Process::descriptor() const { return state_->end_descriptor(); }

void Process::cancel() const {
  state_->cancel_asked.store(true);
  reactor_->wake();
}

bool Process::signal(int number) const { return state_->signal_group(number); }

Expected<void> Process::write(std::string_view bytes) const {
  auto queued = state_->queue_input(bytes);
  if (queued) reactor_->wake();
  return queued;
}

void Process::close_input() const {
  state_->end_input();
  reactor_->wake();
}

Expected<TerminalScreen> Process::screen() const { return state_->screen(); }

Expected<void> Process::resize(TerminalSize size) const {
  auto asked = state_->resize(size);
  if (asked) reactor_->wake();
  return asked;
}

OutputChunk Process::read(Stream stream, std::uint64_t cursor, std::size_t max_lines) const {
  return state_->read(stream, cursor, max_lines);
}

}  // namespace v0_1
}  // namespace codeexec
