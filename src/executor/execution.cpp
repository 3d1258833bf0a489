// Handles on commands that run, or wait for their turn.
//
//   state of a handle  event                        next         function, and its thread
//   made               refused, or failed to start  done         start(), the caller's
//   made               the process runs             running      start()
//   made               no slot is free              waiting      start()
//   waiting            its turn, the process runs   running      Queued::begin(), thread of starts
//   waiting            cancelled, too late          done         Queued::give_up(), the same
//   waiting            the last handle goes away    given up     ~State(), any; it does not wait
//   running            cancel()                     running      Process::cancel(), any
//   running            the last handle goes away    killed       ~Process(), any; it waits
//   running, killed    the process has ended        concluded    conclude of launch(), delivery
//   concluded          the same                     done         the process, delivery
//   done               the same                     delivered    on_end of the command
//
// What holds: without a process a handle is waiting or done, and of one that is done `known` has
// all there is. With one, only the delivery writes `known`, and only before the process is done().
// `asked` does not change once start() has returned. In a callback the last handle is dropped
// without a wait.

#include "executor/execution_internal.hpp"

#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "executor/gate_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "process/capture_internal.hpp"
#include "process/child_internal.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// All of a result that takes no memory.
Result short_result(const Result& known, const ProcessResult& ended) {
  Result result;
  result.outcome = ended.outcome;
  result.exit_code = ended.exit_code;
  result.signal = ended.signal;
  result.idle = ended.idle;
  result.pipe_held = ended.pipe_held;
  result.left_behind = ended.left_behind;
  result.wall_time = ended.wall_time;
  result.cpu_time = ended.cpu_time;
  result.peak_memory = ended.peak_memory;
  result.pid = ended.pid;
  result.system_error = ended.system_error;
  result.step = ended.step;  // a short word
  result.timeout = known.timeout;
  result.idle_timeout = known.idle_timeout;
  result.sandbox = known.sandbox;
  result.out_counts.total_bytes = result.out_counts.dropped_bytes = ended.out_counts.total_bytes;
  result.err_counts.total_bytes = result.err_counts.dropped_bytes = ended.err_counts.total_bytes;
  return result;
}

Result copy_of(const Result& known) {
  Result result;
  if (enough_memory([&] { result = known; })) return result;
  result = short_result(known, known);
  tell_of_memory(result.message, "what was told of it is");
  return result;
}

// What conclude() has found, and the end of the process.
Result whole_result(const Result& known, const ProcessResult& ended, const Redactor& redactor) {
  Result result;
  const auto fill = [&] {
    result = known;
    static_cast<ProcessResult&>(result) = ended;
    result.message = redactor.redact(result.message);
    if (!known.message.empty())
      append_all(result.message, {result.message.empty() ? "" : "; ", known.message});
  };
  if (enough_memory(fill)) return result;
  result = short_result(known, ended);
  tell_of_memory(result.message, "its output and notes are");
  return result;
}

}  // namespace

// The start ---------------------------------------------------------------------------------------

Execution Executor::start(const Command& command) const { return begin(command, nullptr); }

Execution Executor::begin(const Command& command, std::shared_ptr<Process::State>* driven) const {
  const CancellationPause pause;
  Execution execution;
  std::unique_ptr<Admission> admission;
  const auto make = [&] {
    execution.state_ = new_shared<Execution::State>();
    admission = std::make_unique<Admission>();
  };
  if (!enough_memory(make)) {
    (void)gate_->not_started_without_memory(command);
    execution.state_ = gate_->no_memory;
    return execution;
  }
  const auto note_typing = [&] {
    auto typing = std::make_unique<Execution::State::Typing>();
    typing->guard = admission->guard_of(*gate_);
    typing->script = admission->result.command;
    typing->work_dir = admission->directory.path;
    typing->terminal = command.terminal.has_value();
    typing->typed = command.input;
    execution.state_->typing = std::move(typing);
  };
  bool waits = false;
  const auto decide = [&] {
    admission->driven = driven;
    admission->decide(*this, command);
    if (!admission->admitted()) return;
    if (command.keep_input_open) note_typing();
    if (!gate_->needs_slot(command)) return;
    waits = !gate_->slots.take_free(gate_->options.max_concurrent);
    if (!waits) gate_->own_slot(*admission);
  };
  if (!enough_memory(decide)) admission->fail_for_memory();
  if (waits && enqueue(command, admission, execution.state_)) return execution;
  launch(command, *admission, execution.state_);
  return execution;
}

// False: it cannot wait, as the admission says.
bool Executor::enqueue(const Command& command, std::unique_ptr<Admission>& admission,
                       const std::shared_ptr<Execution::State>& state) const {
  std::shared_ptr<Process::Reactor> reactor;
  int error = 0;
  const bool has_memory = enough_memory([&] {
    error = Queued::enter(*this, command, admission, state, reactor);
    if (error != 0)
      admission->fail(system_error(error, "cannot start the thread for processes"),
                      step_name(SpawnStep::setup));
  });
  if (!has_memory) admission->fail_for_memory();
  Process::Reactor::let_go(std::move(reactor));
  return has_memory && error == 0;
}

Execution Executor::start(std::string_view script) const {
  const CancellationPause pause;
  Command command;
  if (enough_memory([&] { command.script = std::string(script); })) return start(command);
  (void)gate_->not_started_without_memory(command);
  Execution execution;
  execution.state_ = gate_->no_memory;
  return execution;
}

// `known` is shared with the function that records the end. That function lives in the process, so
// it must not own the process, or neither would ever go away. It writes `known` before the process
// is done(), and all others read it afterwards. The end is taken in this order: conclude, mask,
// slot, record, home, done, the command's on_end. The slot is free before the callbacks, which may
// start the next command. The input is copied, as the Command need not live until the end.
// Without memory for any step before the process runs there is none.
void Executor::launch(const Command& command, Admission& admission,
                      const std::shared_ptr<Execution::State>& state) const {
  if (admission.admitted() && !enough_memory([&] { admission.prepare(*this, command); }))
    admission.fail_for_memory();
  const bool is_admitted = admission.admitted();
  Result& known = *state->known;
  known = std::move(admission.result);
  bool runs = false;
  const auto start = [&] { runs = is_admitted && launch_admitted(command, admission, state); };
  if (!enough_memory(start)) fail_without_memory(known);
  if (runs) return;
  admission.ending.slot.reset();
  gate_->close(known, command, std::move(admission.time));
  if (!state->has_waited && !enough_memory([&] { state->asked = known; }))
    fail_without_memory(state->asked);
}

// False: it has not started, as its result says.
bool Executor::launch_admitted(const Command& command, Admission& admission,
                               const std::shared_ptr<Execution::State>& given) const {
  Execution::State& state = *given;
  admission.process.borrowed_input = {};
  admission.process.input = command.input;
  state.home = std::move(admission.home);
  state.redactor = std::shared_ptr<const Redactor>(gate_, &gate_->redactor);
  const bool is_here = !admission.remote;
  const auto run = new_run(std::move(admission.process), std::move(admission.remote));
  run->delivery.has_callbacks = command.on_end || gate_->options.on_audit;
  run->delivery.conclude = [gate = gate_, known = state.known,
                            record = gate_->record_of(command, admission.time),
                            ending = std::move(admission.ending),
                            home = state.home](const ProcessResult& ended) mutable {
    gate->conclude(ending, ended, *known);
    gate->mask(*known);
    ending.slot.reset();
    if (gate->recording()) {
      Result result = whole_result(*known, ended, gate->redactor);
      if (!gate->record(result, std::move(record))) tell_of_memory(known->message, no_record);
      known->notes = std::move(result.notes);
    }
    home.reset();
  };
  if (command.on_end)
    run->delivery.on_end = [known = state.known, redactor = state.redactor,
                            next = command.on_end](const ProcessResult& ended) {
      next(whole_result(*known, ended, *redactor));
    };
  if (state.has_waited)
    run->delivery.on_end = [handle = std::weak_ptr<Execution::State>(given),
                            next = std::move(run->delivery.on_end)](const ProcessResult& ended) {
      next(ended);
      if (const auto known_handle = handle.lock()) known_handle->end();
    };
  if (!state.has_waited) {
    state.asked = *state.known;
    gate_->mask(state.asked);
  }
  if (admission.driven) {
    if (run->begin(is_here))
      *admission.driven = run;
    else
      static_cast<ProcessResult&>(*state.known) = std::move(run->result);
    return *admission.driven != nullptr;
  }
  ProcessResult failure;
  auto process = Process::State::launch(run, &failure);
  if (!process) {
    static_cast<ProcessResult&>(*state.known) = std::move(failure);
    return false;
  }
  const std::lock_guard<std::mutex> lock(state.mutex);
  state.process.emplace(std::move(*process));
  return true;
}

// The wait ----------------------------------------------------------------------------------------

Executor::Queued::Queued(const Executor& executor, const Command& command)
    : executor_(executor.copy()), command_(command) {}

// All that takes memory is made before the first of it is kept: what waits holds itself, until its
// turn has come or it is given up.
int Executor::Queued::enter(const Executor& executor, const Command& given,
                            std::unique_ptr<Admission>& admission,
                            const std::shared_ptr<Execution::State>& state,
                            std::shared_ptr<Process::Reactor>& reactor) {
  int error = 0;
  reactor = Process::Reactor::shared(error);
  if (reactor) error = reactor->starts.begin();
  if (error != 0) return error;
  const auto queued = new_shared<Queued>(executor, given);
  const Gate& gate = *queued->executor_->gate_;
  const Command& command = queued->command_;
  TaskThread::Task begin = TaskThread::task([queued] { queued->begin(); });
  TaskThread::Task give_up = TaskThread::task([queued] { queued->give_up(); });
  Function<void()> called = [queued] { queued->reactor_->starts.add(std::move(queued->begin_)); };
  Slots::Line line = {queued->waiter_};
  Process::Reactor::Watched watch = {queued->watch_};
  Result asked = admission->result;
  gate.mask(asked);

  queued->admission_ = std::move(admission);
  queued->reactor_ = reactor;
  queued->state_ = state;
  state->has_waited = true;
  state->reactor = reactor;
  state->queued = queued;
  state->keeps_input_open = command.keep_input_open;
  state->has_terminal = command.terminal.has_value();
  state->is_settled = false;
  state->asked = std::move(asked);
  queued->begin_ = std::move(begin);
  queued->waiter_->called = called;
  if (command.cancel) queued->watch_->descriptor = command.cancel->descriptor();
  queued->watch_->deadline = later(Clock::now(), command.max_wait);
  queued->watch_->task = std::move(give_up);
  // It stands in the line before it can be given up. From then on it may be over at any time.
  if (gate.slots.take(gate.options.max_concurrent, std::move(line))) {
    queued->waiter_->called = nullptr;
    called();
  } else {
    reactor->add(std::move(watch));
  }
  return 0;
}

void Executor::Queued::leave() {
  waiter_->called = nullptr;
  begin_.clear();
  if (!watch_->over.exchange(true)) watch_->task.clear();
  Process::Reactor::let_go(std::move(reactor_));
}

void Executor::Queued::begin() {
  const auto own_slot = [this] { executor_->gate_->own_slot(*admission_); };
  if (!enough_memory(own_slot)) admission_->fail_for_memory();
  start(true);
  leave();
}

// Of a command that has a slot by now, begin() decides.
void Executor::Queued::give_up() {
  if (!executor_->gate_->slots.leave(waiter_)) return;
  start(false);
  leave();
}

// The state may go away with this, and with it a process: that must be before leave(), which holds
// the engine until then. Without a handle there is still a record.
void Executor::Queued::start(bool has_slot) {
  auto state = state_.lock();
  bool is_cancelled = !state || (command_.cancel && command_.cancel->cancelled());
  if (state) {
    const std::lock_guard<std::mutex> lock(state->mutex);
    is_cancelled = is_cancelled || state->wishes.cancels;
  }
  const auto reject = [&] {
    if (is_cancelled || !has_slot)
      executor_->gate_->reject_waiting(command_, is_cancelled, *admission_);
    if (!state) state = new_shared<Execution::State>();
  };
  if (!enough_memory(reject)) admission_->fail_for_memory();
  if (!state)  // there is no handle, either
    return executor_->gate_->close(admission_->result, command_, std::move(admission_->time));
  executor_->launch(command_, *admission_, state);
  state->settle();
}

// Handles -----------------------------------------------------------------------------------------

Execution::State::~State() {
  if (!reactor) return;
  if (!reactor->is_ours()) {
    leak(reactor);
    return;
  }
  give_up();
  Process::Reactor::let_go(std::move(reactor));
}

std::shared_ptr<Execution::State> Execution::State::of_no_memory() {
  auto state = new_shared<State>();
  fail_without_memory(*state->known);
  fail_without_memory(state->asked);
  return state;
}

void Execution::State::give_up() const noexcept {
  const auto waiting = queued.lock();
  if (!waiting) return;
  waiting->ask_to_give_up();
  reactor->wake();
}

bool Execution::State::settled_within(std::chrono::milliseconds time) {
  std::unique_lock<std::mutex> lock(mutex);
  return wait_for_flag(settled, lock, time, is_settled);
}

const Process* Execution::State::running() const {
  const std::lock_guard<std::mutex> lock(mutex);
  return is_settled && process ? &*process : nullptr;
}

void Execution::State::settle() {
  // Before the wait for it ends. This thread is the one that has set the process.
  if (!process) end();
  std::shared_ptr<Process::Reactor> engine;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (process) {
      if (wishes.size) (void)process->resize(*wishes.size);
      if (!wishes.input.empty()) (void)process->write(wishes.input);
      if (wishes.closes_input) process->close_input();
      if (wishes.cancels) process->cancel();
    }
    is_settled = true;
    settled.notify_all();
    engine.swap(reactor);
  }
  Process::Reactor::let_go(std::move(engine));
}

void Execution::State::end() {
  const std::lock_guard<std::mutex> lock(mutex);
  has_ended = true;
  if (end_token) end_token->cancel();
}

void Execution::adopt(Process&& process) const { state_->process.emplace(std::move(process)); }

bool Execution::done() const {
  if (!state_->settled_within(std::chrono::milliseconds(0))) return false;
  const Process* const process = state_->running();
  return !process || process->done();
}

bool Execution::wait_for(std::chrono::milliseconds time) const {
  const CancellationPause pause;
  const Clock::time_point until = later(Clock::now(), time);
  if (!state_->settled_within(time)) return false;
  const Process* const process = state_->running();
  if (!process || time == no_limit) return !process || process->wait_for(time);
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
  return process->wait_for(std::max(left, std::chrono::milliseconds(0)));
}

// Puts the end of the process and what conclude() has found into one Result.
Result Execution::wait() const {
  if (!state_->settled_within(no_limit)) abort_in_callback("wait()");
  const Process* const process = state_->running();
  if (!process) return copy_of(*state_->known);
  return whole_result(*state_->known, process->wait(), *state_->redactor);
}

void Execution::cancel() const {
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    if (!state_->is_settled) {
      state_->wishes.cancels = true;
      return state_->give_up();
    }
  }
  if (const Process* const process = state_->running()) process->cancel();
}

int Execution::descriptor() const {
  if (!state_->has_waited) return state_->process ? state_->process->descriptor() : -1;
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (!state_->end_token) {
    state_->end_token.emplace();
    if (state_->has_ended) state_->end_token->cancel();
  }
  return state_->end_token->descriptor();
}

const Result& Execution::asked() const noexcept { return state_->asked; }

// The pid stays when the command has ended: by then it may be that of another process.
int Execution::pid() const {
  const Process* const process = state_->running();
  return process ? process->pid() : -1;
}

// Queues the bytes and returns: the engine writes them when the command has room for them.
Expected<void> Execution::State::write(std::string_view bytes) {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!is_settled)
      return add_input(bytes, keeps_input_open && !wishes.closes_input, keeps_input_open,
                       wishes.input);
  }
  if (const Process* const started = running()) return started->write(bytes);
  return make_error(ErrorCode::io, "the command is not running, so it reads no input");
}

// One piece after the other is judged and queued, as each is judged by those before it.
Expected<void> Execution::write(std::string_view bytes) const {
  const auto& typing = state_->typing;
  if (!typing) return state_->write(bytes);
  const std::lock_guard<std::mutex> lock(typing->mutex);
  std::string typed = typing->typed;
  const Verdict verdict =
      typing->guard->judge_typed(typing->script, typing->work_dir, typing->terminal, bytes, typed);
  if (!verdict) {
    const std::string message = concat(
        "%%", {verdict.message, verdict.must_ask ? "; a person is asked about commands, but not "
                                                   "about what is typed: run it as a command"
                                                 : ""});
    return make_error(ErrorCode::permission_denied, "%",
                      {state_->redactor ? state_->redactor->redact(message) : message});
  }
  auto written = state_->write(bytes);
  if (written) typing->typed = std::move(typed);
  return written;
}

void Execution::close_input() const {
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->wishes.closes_input = true;
    if (!state_->is_settled) return;
  }
  if (const Process* const process = state_->running()) process->close_input();
}

bool Execution::takes_input() const { return state_->write({}).has_value(); }

bool Execution::signal(int number) const {
  const Process* const process = state_->running();
  return process && process->signal(number);
}

Expected<TerminalScreen> Execution::screen() const {
  if (const Process* const process = state_->running()) return process->screen();
  if (!done() && state_->has_terminal) return TerminalScreen();
  return make_error(ErrorCode::unsupported, "the command did not start, and shows nothing");
}

Expected<void> Execution::resize(TerminalSize size) const {
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    if (!state_->is_settled && state_->has_terminal) {
      state_->wishes.size = size;
      return {};
    }
  }
  if (const Process* const process = state_->running()) return process->resize(size);
  return make_error(ErrorCode::unsupported, "the command did not start, and has no terminal");
}

// A command without a process has printed nothing, so the cursor stays where it was.
OutputChunk Execution::read(Stream stream, std::uint64_t cursor, std::size_t max_lines) const {
  if (const Process* const process = state_->running())
    return process->read(stream, cursor, max_lines);
  OutputChunk nothing;
  nothing.next = cursor;
  return nothing;
}

}  // namespace v0_1
}  // namespace codeexec
