// Commands, results, and handles on commands that run.
//
//   state of a handle  event                        next         function, and its thread
//   made               refused, or failed to start  done         start(), the caller's
//   made               the process runs             running      start()
//   running            cancel()                     running      Process::cancel(), any
//   running            the last handle goes away    killed       ~Process(), any; it waits
//   running, killed    the process has ended        concluded    on_end of start(), event thread
//   concluded          on_end has returned          done         the process, event thread
//
// What holds: without a process a handle is done, and `known` has all there is. With one, only the
// event thread writes `known`, and only before the process is done(). `asked` does not change once
// start() has returned. In the event thread the last handle is dropped without a wait.

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

// Null: it has none.
const char* text_of_signal(int number) {
  switch (number) {
    case SIGHUP:
      return "SIGHUP";
    case SIGINT:
      return "SIGINT";
    case SIGQUIT:
      return "SIGQUIT";
    case SIGILL:
      return "SIGILL (illegal instruction)";
    case SIGTRAP:
      return "SIGTRAP";
    case SIGABRT:
      return "SIGABRT (aborted)";
    case SIGBUS:
      return "SIGBUS (bus error)";
    case SIGFPE:
      return "SIGFPE (arithmetic error)";
    case SIGKILL:
      return "SIGKILL";
    case SIGSEGV:
      return "SIGSEGV (segmentation fault)";
    case SIGPIPE:
      return "SIGPIPE (nobody reads its output)";
    case SIGALRM:
      return "SIGALRM";
    case SIGTERM:
      return "SIGTERM";
    case SIGXCPU:
      return "SIGXCPU (limit of CPU time)";
    case SIGXFSZ:
      return "SIGXFSZ (limit of file size)";
    case SIGSYS:
      return "SIGSYS (refused system call)";
  }
  return nullptr;
}

}  // namespace

inline namespace inner {

std::string signal_text(int number) {
  if (const char* const text = text_of_signal(number)) return text;
  return concat("signal %", {number});
}

}  // namespace inner

// Out of line: each file that uses one would have its own copies otherwise.
Command::Command() = default;
Command::Command(const Command&) = default;
Command::Command(Command&&) noexcept = default;
Command& Command::operator=(const Command&) = default;
Command& Command::operator=(Command&&) noexcept = default;
Command::~Command() = default;

Result::Result() = default;
Result::Result(const Result&) = default;
Result::Result(Result&&) noexcept = default;
Result& Result::operator=(const Result&) = default;
Result& Result::operator=(Result&&) noexcept = default;
Result::~Result() = default;

Command Command::shell(std::string script) {
  Command command;
  command.script = std::move(script);
  return command;
}

Command Command::program(std::vector<std::string> argv) {
  Command command;
  command.argv = std::move(argv);
  return command;
}

// For a person or a log: the words may change, so that programs read the members.
std::string Result::summary() const {
  std::string text;
  switch (outcome) {
    case Outcome::exited:
      text = concat("exited with status %", {exit_code});
      break;
    case Outcome::signaled:
      text = concat("killed by %", {signal_text(signal)});
      break;
    case Outcome::timed_out:
      text = idle ? concat("timed out without output for % s", {seconds_text(idle_timeout)})
                  : concat("timed out after % s", {seconds_text(timeout)});
      break;
    case Outcome::cancelled:
      text = "cancelled";
      break;
    case Outcome::refused:
      return concat("refused (%): %", {rule, message});
    case Outcome::not_started:
      return concat("not started: %", {message});
    case Outcome::unknown:
      text = "ended, but its status could not be learned";
      break;
  }
  const auto wall = std::chrono::duration_cast<std::chrono::milliseconds>(wall_time);
  append_all(text, " in % s; % bytes on stdout, % on stderr",
             {seconds_text(wall), out_counts.total_bytes, err_counts.total_bytes});
  if (out_counts.dropped_bytes + err_counts.dropped_bytes > 0) text += " (shortened)";
  return text;
}

// `known` is shared with the callback that records the end. That callback lives in the process, so
// it must not own the process, or neither would ever go away. It writes `known` before the process
// is done(), and all others read it afterwards.
struct Execution::State {
  std::shared_ptr<Result> known = {};
  Result asked = Result();
  std::shared_ptr<const Redactor> redactor = {};  // there is one when there is a process
  // What it ran in: goes away after the process, which may outlive a handle dropped in a callback.
  std::shared_ptr<const void> home = {};
  std::optional<Process> process = {};

  static State& make(Execution& execution) {
    execution.state_ = new_shared<State>();
    return *execution.state_;
  }
};

// The end is taken in this order: conclude, mask, slot, record, the command's on_end, home. The
// slot is free before the callbacks, which may start the next command. The input is copied, as the
// Command need not live until the end.
Execution Executor::start(const Command& command) const {
  const CancellationPause pause;
  Admission admission;
  admission.admit(*this, command);
  admission.process.borrowed_input = {};
  admission.process.input = command.input;
  Execution execution;
  Execution::State& state = Execution::State::make(execution);
  state.known = new_shared<Result>(std::move(admission.result));
  state.home = std::move(admission.home);
  if (state.known->rule.empty() && state.known->message.empty()) {
    state.redactor = std::shared_ptr<const Redactor>(gate_, &gate_->redactor);
    auto on_end = [gate = gate_, known = state.known, told = command.on_end,
                   record = gate_->record_of(command, admission.time),
                   ending = std::move(admission.ending),
                   home = state.home](const ProcessResult& ended) mutable {
      gate->conclude(ending, ended, *known);
      gate->mask(*known);
      ending.slot.reset();
      if (gate->recording()) {
        Result result = *known;
        static_cast<ProcessResult&>(result) = ended;
        result.message = gate->redactor.redact(result.message);
        gate->record(result, record);
        known->notes = std::move(result.notes);
      }
      told();
      home.reset();
    };
    state.asked = *state.known;
    gate_->mask(state.asked);
    ProcessResult failure;
    auto process =
        Process::State::launch(new_run(std::move(admission.process), std::move(admission.remote)),
                               std::move(on_end), &failure);
    if (process) {
      state.process.emplace(std::move(*process));
      return execution;
    }
    static_cast<ProcessResult&>(*state.known) = std::move(failure);
  }
  admission.ending.slot.reset();
  gate_->mask(*state.known);
  gate_->record(*state.known, gate_->record_of(command, std::move(admission.time)));
  state.asked = *state.known;
  return execution;
}

bool Execution::done() const { return !state_->process || state_->process->done(); }

bool Execution::wait_for(std::chrono::milliseconds time) const {
  return !state_->process || state_->process->wait_for(time);
}

// Puts the end of the process and what conclude() has found into one Result.
Result Execution::wait() const {
  if (!state_->process) return *state_->known;
  const ProcessResult& ended = state_->process->wait();
  Result result = *state_->known;
  static_cast<ProcessResult&>(result) = ended;
  result.message = state_->redactor->redact(result.message);
  return result;
}

void Execution::cancel() const {
  if (state_->process) state_->process->cancel();
}

int Execution::descriptor() const { return state_->process ? state_->process->descriptor() : -1; }

const Result& Execution::asked() const noexcept { return state_->asked; }

// The pid stays when the command has ended: by then it may be that of another process.
int Execution::pid() const { return state_->process ? state_->process->pid() : -1; }

// Queues the bytes and returns: the event thread writes them when the command has room for them.
Expected<void> Execution::write(std::string_view bytes) const {
  if (state_->process) return state_->process->write(bytes);
  return make_error(ErrorCode::io, "the command is not running, so it reads no input");
}

void Execution::close_input() const {
  if (state_->process) state_->process->close_input();
}

Expected<TerminalScreen> Execution::screen() const {
  if (state_->process) return state_->process->screen();
  return make_error(ErrorCode::unsupported, "the command did not start, and shows nothing");
}

Expected<void> Execution::resize(TerminalSize size) const {
  if (state_->process) return state_->process->resize(size);
  return make_error(ErrorCode::unsupported, "the command did not start, and has no terminal");
}

// A command without a process has printed nothing, so the cursor stays where it was.
OutputChunk Execution::read(Stream stream, std::uint64_t cursor, std::size_t max_lines) const {
  if (state_->process) return state_->process->read(stream, cursor, max_lines);
  OutputChunk nothing;
  nothing.next = cursor;
  return nothing;
}

}  // namespace v0_1
}  // namespace codeexec
