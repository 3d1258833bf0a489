// Sessions that are one shell in a terminal, which lives on between the calls.
//
// A command is typed as one line, and judged as what is typed. What the terminal gets until the
// next prompt is its output. The prompt is a sequence that terminals do not show, with a number
// that nothing else prints, so that nothing is guessed:
//
//   ESC ] 7770 ; FOLDER ; NUMBER ; EXIT CODE BEL
//
//   state     what happens                               next
//   none      a shell starts, until its first prompt     ready, or a failure
//   ready     a command is typed                         running
//   running   the prompt comes                           ready: its result
//             the timeout passes: ctrl-c is typed        ready; or running, if it does not listen
//             silence                                    running: the output so far, and its id
//             the call is cancelled: ctrl-c is typed     running
//             another command                            running: refused
//             an empty command                           running: waits on
//             the shell ends                             none: the exit code of the shell
//
// What programs read and print in between goes by the tools of background shells, as the shell is
// one of them. Memory: what the executor keeps of one stream; a line is typed once and not kept.

#include "tools/tools.hpp"
#include "tools/tools_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "jobs/jobs.hpp"
#include "json/json.hpp"
#include "json/json_internal.hpp"
#include "mcp/mcp.hpp"
#include "policy/policy.hpp"
#include "process/process.hpp"
#include "regex/regex.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// How long a shell has for its first prompt, and a program to end after ctrl-c.
constexpr std::chrono::milliseconds first_prompt_wait = std::chrono::seconds(10);
constexpr std::chrono::milliseconds interrupt_wait = std::chrono::seconds(2);

// A line of a terminal may have 4,095 bytes.
constexpr std::size_t longest_typed_line = 3000;

// The first one that starts. Nothing that is typed is shown: the caller knows it. One script for
// both would be judged by what each of them may read.
// The prompt is not in the environment from the start: bash removes it when it runs a script.
constexpr const char* shell_scripts[] = {
    "stty -echo; PS1='%' PS2= HISTFILE= exec bash --noprofile --norc --noediting -i",
    "stty -echo; PS1='%' PS2= exec sh -i"};

constexpr std::string_view prompt_begin = "\x1b]7770;";

// What stands in a prompt.
struct Prompt {
  std::size_t begin = 0;  // bytes of the text before it, and behind it
  std::size_t end = 0;
  std::string folder = {};
  int exit_code = 0;
};

// The last prompt in what the terminal got.
std::optional<Prompt> find_prompt(std::string_view text, std::string_view number) {
  const std::string mark = concat({";", number, ";"});
  const std::size_t at = text.rfind(mark);
  if (at == std::string_view::npos) return std::nullopt;
  Prompt prompt;
  prompt.begin = text.rfind(prompt_begin, at);
  if (prompt.begin == std::string_view::npos) return std::nullopt;
  const std::size_t folder = prompt.begin + prompt_begin.size();
  prompt.folder = text.substr(folder, at - folder);
  const char* const end = text.data() + text.size();
  const auto code = std::from_chars(text.data() + at + mark.size(), end, prompt.exit_code);
  if (code.ec != std::errc() || code.ptr == end || *code.ptr != '\a') return std::nullopt;
  prompt.end = static_cast<std::size_t>(code.ptr - text.data()) + 1;
  return prompt;
}

// True for what a terminal and a shell there leave as it is, and answer with one prompt: a line of
// printable ASCII, without what stands for an earlier line.
bool can_be_typed(std::string_view script) {
  if (script.size() > longest_typed_line || starts_with(script, "^"sv)) return false;
  for (const char c : script)
    if (c < ' ' || c > '~' || c == '!') return false;
  return true;
}

// The line that is typed for a script: itself, or one that runs it, which the guard reads as well.
std::string typed_line(std::string_view script) {
  if (can_be_typed(script)) return concat({script, "\n"});
  std::string text = "eval \"$(printf '";
  std::size_t begin = 0;  // of its line
  for (const char c : script) {
    if (text.size() - begin > longest_typed_line) {
      text += "'\\\n";
      begin = text.size();
      text += '\'';
    }
    if (c == '%' || c == '\\') {
      text.append(2, c);
    } else if (c < ' ' || c > '~' || c == '\'' || c == '!') {
      const auto byte = static_cast<unsigned char>(c);
      text += '\\';
      for (const int digit : {byte >> 6, byte >> 3 & 7, byte & 7})
        text += static_cast<char>('0' + digit);
    } else {
      text += c;
    }
  }
  return text + "')\"\n";
}

// A terminal gets two bytes for each newline.
std::string without_returns(std::string_view text) {
  std::string lines;
  for (std::size_t at = 0; at < text.size(); ++at)
    if (text.substr(at, 2) != "\r\n"sv) lines += text[at];
  return lines;
}

// A call that is about a session that lives.
class LiveCall {
 public:
  LiveCall(ToolSet& set, const mcp::Call& call, LiveSession::State& session)
      : set_(set),
        call_(call),
        session_(session),
        command_(command_of(call, "command")),
        begin_(Clock::now()),
        silence_(command_.idle_timeout.value_or(usual_wait)) {
    const ExecutorOptions& limits = set.executor.options();
    timeout_ = std::min(command_.timeout.value_or(limits.timeout), limits.max_timeout);
    interrupts_ = command_.timeout || !is_empty_script(command_.script);
  }

  mcp::ToolResult answer() {
    if (command_.script.find('\0') != std::string::npos)
      return refuse(set_, call_, "command", "A NUL cannot be typed");
    if (auto ready = make_ready(); !ready) return failed(ready.error().message, rule_);
    if (is_empty_script(command_.script)) {
      if (!session_.running)
        return refuse(set_, call_, "command", "The command is empty, and nothing runs");
    } else {
      if (session_.running) take_output(false);
      if (session_.running)
        return failed(
            concat("its last command still runs: %. Wait with an empty command, or use "
                   "write_background_shell with shell_id % (input, or keys ctrl-c)",
                   {echoed(set_.options, session_.command), session_.shell_id}));
      if (auto typed = type_command(); !typed)
        return failed(concat("Nothing was typed: %", {typed.error().message}), rule_);
    }
    return wait_and_tell();
  }

 private:
  // Leaves a shell that waits for a command or runs one.
  Expected<void> make_ready() {
    if (!session_.shell_id.empty()) {
      const auto job = set_.jobs.status(session_.shell_id);
      if (job && job->state == JobState::running) return {};
      notes_.push_back(
          "the shell of this session had ended: this is a new one, without its folder and "
          "variables");
    }
    auto started = start_shell(shell_scripts[0]);
    if (!started && started.error().code == ErrorCode::io) started = start_shell(shell_scripts[1]);
    return started;
  }

  Expected<void> start_shell(const char* script) {
    session_ = LiveSession::State();
    session_.number = random_hex(16);
    if (session_.number.empty()) return system_error(errno, "cannot get random bytes");
    Command shell = command_of(call_, "");
    shell.script = concat(script, {concat({prompt_begin, "$PWD;", session_.number, ";$?\a"})});
    shell.timeout.reset();
    shell.idle_timeout.reset();
    shell.terminal = TerminalSize();
    Result failure;
    auto job = start_job(set_, call_, shell, failure);
    rule_ = failure.rule;
    if (!job) return with_prefix("the shell of the session did not start: ", {}, job.error());
    session_.shell_id = job->id;
    session_.running = true;
    const auto end = wait_for_prompt(first_prompt_wait);
    if (!end) return end.failure();
    take_output(false);
    if (!session_.running) return {};
    (void)set_.jobs.kill(session_.shell_id);
    session_ = LiveSession::State();
    return make_error(ErrorCode::io, "the shell of the session did not show its prompt");
  }

  Expected<void> type_command() {
    const std::string& script = command_.script;
    const auto written = set_.jobs.write(session_.shell_id, typed_line(script));
    const bool refused = !written && written.error().code == ErrorCode::permission_denied;
    if (refused) rule_ = "input";
    record_hand(set_, call_, {call_.tool(), session_.shell_id}, script,
                written ? "" : written.error().message, refused);
    if (!written) return written.failure();
    session_.running = true;
    session_.command = script;
    return {};
  }

  Expected<Jobs::WaitEnd> wait_for_prompt(std::chrono::milliseconds time) {
    Jobs::Wait until;
    until.out = session_.next;
    until.time = time;
    until.cancel = call_.cancel_token();
    auto pattern = Regex::compile(concat({";", session_.number, ";[0-9]+\a"}));
    if (!pattern) return pattern.failure();
    until.pattern = std::move(*pattern);
    return set_.jobs.wait(session_.shell_id, until);
  }

  std::uint64_t printed() const {
    const auto job = set_.jobs.status(session_.shell_id);
    return job ? job->result.out_counts.total_bytes : 0;
  }

  std::chrono::milliseconds elapsed() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin_);
  }

  // Waits until the prompt comes, the shell or the call ends, or nothing was printed for so long.
  Expected<Jobs::WaitEnd> wait() {
    const std::chrono::milliseconds most = std::min(timeout_, time_to_answer(set_, call_));
    for (;;) {
      const std::uint64_t before = printed();
      const std::chrono::milliseconds left = most - elapsed();
      auto end = wait_for_prompt(std::min(left, silence_));
      const bool is_over = left <= silence_ || printed() == before;
      if (!end || *end != Jobs::WaitEnd::timed_out || is_over) return end;
    }
  }

  Expected<Jobs::WaitEnd> interrupt() {
    if (auto typed = set_.jobs.write(session_.shell_id, "\x03"); !typed) return typed.failure();
    return wait_for_prompt(interrupt_wait);
  }

  mcp::ToolResult wait_and_tell() {
    auto end = wait();
    const bool late =
        interrupts_ && end && *end == Jobs::WaitEnd::timed_out && elapsed() >= timeout_;
    if (late || (end && *end == Jobs::WaitEnd::cancelled)) end = interrupt();
    if (!end) return failed(end.error().message);
    take_output(true);
    if (late)
      notes_.push_back(concat(
          session_.running ? "after its timeout of % seconds ctrl-c was typed, and it still runs"
                           : "after its timeout of % seconds ctrl-c was typed; the shell is still "
                             "there, with its folder and variables",
          {seconds_text(timeout_)}));
    if (late) result_.outcome = Outcome::timed_out;
    return tell();
  }

  // Takes what was printed; a prompt in it ends the command. `keep`: it is for the result.
  void take_output(bool keep) {
    const auto read = set_.jobs.read(session_.shell_id, session_.next);
    if (!read) return;
    const OutputChunk& chunk = read->out;
    std::string text = chunk.text;
    if (const auto prompt = find_prompt(text, session_.number)) {
      session_.running = false;
      session_.folder = prompt->folder;
      result_.outcome = Outcome::exited;
      result_.exit_code = prompt->exit_code;
      text.erase(prompt->begin, prompt->end - prompt->begin);
    }
    const std::uint64_t size = chunk.next - session_.next;
    session_.next = chunk.next;
    if (!keep) return;
    result_.out_counts.total_bytes = size;
    result_.out_counts.dropped_bytes = chunk.missed;
    result_.out_file = chunk.file;
    result_.out_counts.file_bytes = chunk.file_bytes;
    result_.out = set_.executor.redact(without_returns(text));
    if (read->status.state == JobState::running) return;
    ended_ = true;
    result_.outcome = read->status.result.outcome;
    result_.exit_code = read->status.result.exit_code;
    result_.signal = read->status.result.signal;
  }

  mcp::ToolResult tell() {
    const bool runs = session_.running && !ended_;
    result_.command = set_.executor.redact(session_.command);
    result_.work_dir = set_.executor.redact(to_utf8(session_.folder));
    result_.timeout = timeout_;
    result_.wall_time = elapsed();
    if (ended_) notes_.push_back("the shell of the session has ended; the next command starts one");
    if (runs)
      notes_.push_back(concat(
          "it still runs: wait with an empty command, or use write_background_shell with shell_id "
          "% (input, or keys ctrl-c)",
          {session_.shell_id}));
    result_.notes = std::move(notes_);
    if (!runs) add_next_step(set_, command_, result_);
    show_as_on_terminal(set_.options, result_, &set_.executor);
    fit_output(set_.options, wanted_output(set_, call_), result_, runs);
    set_.tell(result_.notes);
    Json object =
        result_json(set_.options, result_, room_for_texts(call_.max_result_bytes()), runs);
    if (runs) set_member(object, "shell_id", session_.shell_id);
    set_member(object, "session_id", call_.argument("session_id"sv));
    set_member(object, "session_work_dir", result_.work_dir);
    if (ended_) session_ = LiveSession::State();
    return answer_with(std::move(object));
  }

  ToolSet& set_;
  const mcp::Call& call_;
  LiveSession::State& session_;
  const Command command_;
  const Clock::time_point begin_;
  const std::chrono::milliseconds silence_;
  std::chrono::milliseconds timeout_{0};
  bool interrupts_ = true;  // at the timeout; waiting on alone does not
  std::string rule_ = {};   // of a refusal
  std::vector<std::string> notes_ = {};
  Result result_ = Result();
  bool ended_ = false;  // the shell
};

}  // namespace

inline namespace inner {

mcp::ToolResult execute_live(ToolSet& set, const mcp::Call& call) {
  for (const char* const name : {"stdin", "encoding", "work_dir", "run_in_background_after"})
    if (!call.argument(name).is_null())
      return failed(
          concat("% does not go with session_live: type cd, or use "
                 "write_background_shell for input",
                 {name}));
  const std::string& id = argument_text(call, "session_id");
  if (!is_session_id(id)) return failed("session_live needs a session_id: see its description"sv);
  const LiveSession session = set.shared->live_sessions.of(id);
  const std::unique_lock<std::mutex> lock(session->mutex, std::try_to_lock);
  if (!lock) return failed("another call waits for this session"sv);
  return LiveCall(set, call, session->state).answer();
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
