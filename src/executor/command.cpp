// Commands and results.

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

}  // namespace v0_1
}  // namespace codeexec
