// The tool write_background_shell: what is done to a command that runs in the background.
//
// Text and keys become steps, which are all made before the first is carried out: of a call with a
// mistake nothing is. What a key is depends on the command:
//
//   key          on a terminal               otherwise
//   ctrl-c       typed: the terminal makes   SIGINT
//   ctrl-\       signals of them             SIGQUIT
//   ctrl-d       typed                       the end of its input
//   enter        typed                       a newline
//   SIGTERM ...  that signal                 that signal
//   others       typed                       there are none

#include "tools/tools.hpp"
#include "tools/tools_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "jobs/jobs.hpp"
#include "json/json.hpp"
#include "mcp/mcp.hpp"
#include "process/process.hpp"
#include "terminal/terminal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Records what a call has typed into a background command, or done to it: the words are the tool,
// its id and what was done. `problem`: why it was not.
void record_hand(ToolSet& set, const mcp::Call& call, const std::vector<std::string>& words,
                 std::string_view input, const std::string& problem, bool refused) {
  Command asked = command_of(call, "");
  asked.caller.shell_id = words[1];
  asked.input = input;
  Result result;
  result.command = script_of_argv(words);
  result.work_dir = set.executor.workspace();
  result.outcome = refused ? Outcome::refused : Outcome::exited;
  result.exit_code = problem.empty() ? 0 : refused ? -1 : 1;
  if (refused) result.rule = "input";
  result.message = problem;
  set.executor.record(result, asked);
}

// A row for each signal that a key may be. SIGKILL is left to kill_background_shell, which ends
// what has left the group of the command, too.
struct SignalKey {
  std::string_view name;
  int number;
};
constexpr SignalKey signal_keys[] = {
    {"SIGINT", SIGINT},     {"SIGTERM", SIGTERM}, {"SIGHUP", SIGHUP},
    {"SIGQUIT", SIGQUIT},   {"SIGUSR1", SIGUSR1}, {"SIGUSR2", SIGUSR2},
    {"SIGWINCH", SIGWINCH}, {"SIGSTOP", SIGSTOP}, {"SIGCONT", SIGCONT},
};
// Keys that are signals for a command without a terminal.
constexpr SignalKey control_keys[] = {{"ctrl-c", SIGINT}, {"ctrl-\\", SIGQUIT}};

// Null: it is none of them. Case does not matter.
const SignalKey* find_key(const SignalKey* begin, const SignalKey* end, std::string_view key) {
  const std::string wanted = in_lower_case(key);
  for (; begin != end; ++begin)
    if (in_lower_case(begin->name) == wanted) return begin;
  return nullptr;
}

// Text, or a signal, or the end of the input.
struct HandStep {
  std::string text = {};
  int signal = 0;
  bool ends_input = false;
};

// What one call does to one command.
class Hands {
 public:
  Hands(ToolSet& set, const mcp::Call& call)
      : set_(set), call_(call), id_(argument_text(call, "shell_id")) {}

  mcp::ToolResult act() {
    const auto job = set_.jobs.status(id_);
    if (!job) return failed(job.error().message);
    job_ = *job;
    screen_ = set_.jobs.screen(id_);
    if (auto ok = plan(); !ok) return failed(ok.error().message);
    const TerminalSize size = size_asked(call_, {0, 0});
    const bool resizes = size.rows != 0 || size.cols != 0;
    if (resizes)
      if (auto ok = set_.jobs.resize(id_, size); !ok) return failed(ok.error().message);
    for (const HandStep& step : steps_)
      if (auto ok = carry_out(step); !ok)
        return failed(ok.error().message,
                      ok.error().code == ErrorCode::permission_denied ? "input" : "");
    return answer(!resizes && steps_.empty());
  }

 private:
  HandStep& add_step() { return steps_.emplace_back(); }

  void type(std::string_view text) {
    if (text.empty()) return;
    const bool goes_on = !steps_.empty() && !steps_.back().text.empty();
    (goes_on ? steps_.back() : add_step()).text += text;
  }

  Expected<void> plan() {
    type(argument_text(call_, "input"));
    for (const Json& key : call_.argument("keys"sv).items())
      if (auto ok = plan_key(key.as_string()); !ok) return ok;
    if (call_.argument("close_input"sv).as_bool()) add_step().ends_input = true;
    return {};
  }

  Expected<void> plan_key(const std::string& key) {
    const SignalKey* signal = find_key(std::begin(signal_keys), std::end(signal_keys), key);
    if (!signal && !screen_)
      signal = find_key(std::begin(control_keys), std::end(control_keys), key);
    if (signal) {
      add_step().signal = signal->number;
      return {};
    }
    if (screen_) {
      const auto bytes = key_bytes({key}, *screen_);
      if (!bytes) return bytes.failure();
      type(*bytes);
      return {};
    }
    const std::string name = in_lower_case(key);
    if (name == "enter") {
      type("\n"sv);
    } else if (name == "ctrl-d") {
      add_step().ends_input = true;
    } else {
      return make_error(ErrorCode::invalid_argument, "there is no key % without a terminal: %",
                        {in_quotes(key), keys_without_terminal()});
    }
    return {};
  }

  static std::string keys_without_terminal() {
    std::string names = "keys are ctrl-c, ctrl-\\, ctrl-d (the end of its input), enter";
    for (const SignalKey& signal : signal_keys) append_all(names, {", ", signal.name});
    return names;
  }

  Expected<void> carry_out(const HandStep& step) {
    if (step.ends_input) return set_.jobs.close_input(id_);
    if (step.signal != 0) return send(step.signal);
    auto written = set_.jobs.write(id_, step.text);
    const bool refused = !written && written.error().code == ErrorCode::permission_denied;
    record_hand(set_, call_, {call_.tool(), id_}, step.text, written ? "" : written.error().message,
                refused);
    if (written) {
      written_ += step.text.size();
    } else if (refused) {
      return with_prefix("Nothing was typed: ", {}, written.error());
    } else if (job_.state == JobState::running && !job_.takes_input) {
      return make_error(ErrorCode::io, "Nothing was typed: %", {input_text()});
    }
    return written;
  }

  Expected<void> send(int number) {
    const std::string name(name_of(number));
    const auto sent = set_.jobs.signal(id_, number);
    if (!sent) return sent.failure();
    const std::string problem =
        *sent ? std::string() : concat("background shell % has ended", {in_quotes(id_)});
    record_hand(set_, call_, {call_.tool(), id_, name}, {}, problem, false);
    if (!*sent) return make_error(ErrorCode::io, "%", {problem});
    sent_.push_back(name);
    return {};
  }

  static std::string_view name_of(int number) {
    for (const SignalKey& signal : signal_keys)
      if (signal.number == number) return signal.name;
    return {};
  }

  // Why it has no input.
  std::string input_text() const {
    return job_.keeps_input
               ? "its input is closed, by itself or by close_input; ctrl-c and signals reach it"
               : "its input was ended at its start; ctrl-c and signals reach it. A command has one "
                 "with start_background_shell, or execute_command with run_in_background_after "
                 "and without stdin";
  }

  // What can be done with it, for a call that does nothing.
  std::string abilities() const {
    if (screen_) return "it has a terminal: input and all keys are typed there";
    return concat("%; %",
                  {job_.takes_input ? "its input is open" : input_text(), keys_without_terminal()});
  }

  mcp::ToolResult answer(bool has_asked_nothing) {
    const auto now = set_.jobs.status(id_);
    if (!now) return failed(now.error().message);
    Json object;
    set_member(object, "shell_id", id_);
    set_member(object, "status", name(now->state));
    set_member(object, "written", written_);
    if (!sent_.empty()) set_member(object, "signals", list_of(sent_));
    const bool runs = now->state == JobState::running;
    if (runs && !now->takes_input) set_member(object, "input", "closed");
    if (runs && has_asked_nothing) set_member(object, "message", abilities());
    return answer_with(std::move(object));
  }

  ToolSet& set_;
  const mcp::Call& call_;
  const std::string& id_;
  JobStatus job_ = JobStatus();
  Expected<TerminalScreen> screen_ = TerminalScreen();  // an error: it has none
  std::vector<HandStep> steps_ = {};
  std::size_t written_ = 0;
  std::vector<std::string> sent_ = {};
};

}  // namespace

inline namespace inner {

mcp::ToolResult write_background_shell(ToolSet& set, const mcp::Call& call) {
  return Hands(set, call).act();
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
