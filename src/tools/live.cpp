// Commands of a session in a terminal, which go on when the answer does not wait for them:
// session_live of execute_command.
//
// Each command has a shell and a terminal of its own. What the session keeps comes to the shell and
// goes from it as in all sessions (see executor/session.cpp), so that a command and the one after
// it share nothing else. Why it is not one shell that lives on, into which commands are typed:
//
//   * The text of a command is an argument of its shell. It never goes through a terminal or
//     through a descriptor. On such a way, terminal settings (stty), keys of the line editor,
//     history and prompts make another text of it behind the judge, and a command that was left in
//     the background can take or add bytes.
//   * A shell that lives on keeps what it does not report: functions and aliases whose report was
//     forged, traps, descriptors, attributes of variables. The next text would be judged without
//     them. Here the next shell has what was reported, read and judged, and else nothing.
//   * Settings of a terminal end with it.
//
// So processes that a command leaves in the background end with it, as with all commands.
//
//   state     what happens                               next
//   ready     a command is judged and started            running, or a refusal
//   running   it ends                                    ready: its result
//             the timeout passes: ctrl-c is typed        ready; or running, if it does not listen
//             silence                                    running: the output so far, and its id
//             the call is cancelled: ctrl-c is typed     ready or running
//             another command                            running: refused
//             an empty command                           running: waits on
//
// A command that runs is a background shell: what it reads and shows in between goes by the tools
// of these. Memory: what the executor keeps of one stream.

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
#include "process/process.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// How long a program has to end after ctrl-c.
constexpr std::chrono::milliseconds interrupt_wait = std::chrono::seconds(2);

// A terminal gets two bytes for each newline.
std::string without_returns(std::string_view text) {
  std::string lines;
  for (std::size_t at = 0; at < text.size(); ++at)
    if (text.substr(at, 2) != "\r\n"sv) lines += text[at];
  return lines;
}

// A call that is about such a session.
class LiveCall {
 public:
  LiveCall(ToolSet& set, const mcp::Call& call, const std::string& id, LiveSession::State& state)
      : set_(set),
        call_(call),
        state_(state),
        command_(command_of(call, "command")),
        begin_(Clock::now()),
        silence_(command_.idle_timeout.value_or(usual_wait)) {
    const ExecutorOptions& limits = set.executor.options();
    timeout_ = std::min(command_.timeout.value_or(limits.timeout), limits.max_timeout);
    interrupts_ = command_.timeout || !is_empty_script(command_.script);
    command_.session = set.sessions.of(id);
  }

  mcp::ToolResult answer() {
    const auto last = set_.jobs.status(state_.shell_id);
    if (!is_empty_script(command_.script)) {
      if (last && last->state == JobState::running)
        return failed(
            concat("its last command still runs: %. Wait with an empty command, or use "
                   "write_background_shell with shell_id % (input, or keys ctrl-c)",
                   {echoed(set_.options, last->result.command), state_.shell_id}));
      if (last)
        notes_.push_back(
            concat("the command before has ended; get_background_shell_output has the rest of its "
                   "output, with shell_id %",
                   {state_.shell_id}));
      if (!start()) return tell(false);
    } else if (!last) {
      return refuse(set_, call_, "command", "The command is empty, and nothing runs");
    }
    return wait_and_tell();
  }

 private:
  // False: it did not start, as the result says.
  bool start() {
    state_ = LiveSession::State();
    add_note(notes_, "%", {leave_closed_folder(set_, command_)});
    command_.timeout.reset();
    command_.idle_timeout.reset();
    command_.terminal = TerminalSize();
    const auto job = start_job(set_, call_, command_, result_);
    if (job) {
      state_.shell_id = job->id;
    } else if (result_.message.empty()) {
      result_.message = job.error().message;
    }
    return job.has_value();
  }

  std::uint64_t printed() const {
    const auto job = set_.jobs.status(state_.shell_id);
    return job ? job->result.out_counts.total_bytes : 0;
  }

  std::chrono::milliseconds elapsed() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin_);
  }

  Expected<Jobs::WaitEnd> wait_for_end(std::chrono::milliseconds time) {
    Jobs::Wait until;
    until.time = time;
    until.cancel = call_.cancel_token();
    return set_.jobs.wait(state_.shell_id, until);
  }

  // Waits until the command or the call ends, or nothing was printed for so long.
  Expected<Jobs::WaitEnd> wait() {
    const std::chrono::milliseconds most = std::min(timeout_, time_to_answer(set_, call_));
    for (;;) {
      const std::uint64_t before = printed();
      const std::chrono::milliseconds left = most - elapsed();
      auto end = wait_for_end(std::min(left, silence_));
      const bool is_over = left <= silence_ || printed() == before;
      if (!end || *end != Jobs::WaitEnd::timed_out || is_over) return end;
    }
  }

  // What was typed to a shell may be too much to be judged, and then no key is typed any more.
  void interrupt() {
    if (!set_.jobs.write(state_.shell_id, "\x03")) (void)set_.jobs.signal(state_.shell_id, SIGINT);
    Jobs::Wait until;
    until.time = interrupt_wait;
    (void)set_.jobs.wait(state_.shell_id, until);
  }

  mcp::ToolResult wait_and_tell() {
    const auto end = wait();
    if (!end) return failed(end.error().message);
    const bool late = interrupts_ && *end == Jobs::WaitEnd::timed_out && elapsed() >= timeout_;
    if (late || *end == Jobs::WaitEnd::cancelled) interrupt();
    const auto read = set_.jobs.read(state_.shell_id, state_.next);
    if (!read) return failed(read.error().message);
    const bool runs = read->status.state == JobState::running;
    take(*read);
    if (late) {
      result_.outcome = Outcome::timed_out;
      notes_.push_back(
          concat(runs ? "after its timeout of % seconds ctrl-c was typed, and it still runs"
                      : "after its timeout of % seconds ctrl-c was typed",
                 {seconds_text(timeout_)}));
    }
    if (runs)
      notes_.push_back(concat(
          "it still runs: wait with an empty command, or use write_background_shell with shell_id "
          "% (input, or keys ctrl-c)",
          {state_.shell_id}));
    return tell(runs);
  }

  // The result is what there is now, and what was printed since the last answer.
  void take(const JobOutput& output) {
    const OutputChunk& chunk = output.out;
    result_ = output.status.result;
    result_.out_counts.total_bytes = chunk.next - state_.next;
    result_.out_counts.dropped_bytes = chunk.missed;
    result_.out_file = chunk.file;
    result_.out_counts.file_bytes = chunk.file_bytes;
    result_.out = set_.executor.redact(without_returns(chunk.text));
    state_.next = chunk.next;
  }

  mcp::ToolResult tell(bool runs) {
    result_.timeout = timeout_;
    result_.wall_time = elapsed();
    result_.notes.insert(result_.notes.begin(), notes_.begin(), notes_.end());
    if (!runs) add_next_step(set_, command_, result_);
    show_as_on_terminal(set_.options, result_, &set_.executor);
    fit_output(set_.options, wanted_output(set_, call_), result_, runs);
    set_.tell(result_.notes);
    Json object =
        result_json(set_.options, result_, room_for_texts(call_.max_result_bytes()), runs);
    if (runs) set_member(object, "shell_id", state_.shell_id);
    put_session(set_, command_, call_.argument("session_id"sv), object);
    if (!runs) {
      (void)set_.jobs.forget(state_.shell_id);
      state_ = LiveSession::State();
    }
    return answer_with(std::move(object));
  }

  ToolSet& set_;
  const mcp::Call& call_;
  LiveSession::State& state_;
  Command command_;
  const Clock::time_point begin_;
  const std::chrono::milliseconds silence_;
  std::chrono::milliseconds timeout_{0};
  bool interrupts_ = true;  // at the timeout; waiting on alone does not
  std::vector<std::string> notes_ = {};
  Result result_ = Result();
};

}  // namespace

inline namespace inner {

mcp::ToolResult execute_live(ToolSet& set, const mcp::Call& call) {
  for (const char* const name : {"stdin", "encoding", "run_in_background_after"})
    if (!call.argument(name).is_null())
      return failed(
          concat("% does not go with session_live: use write_background_shell for input", {name}));
  const std::string& id = argument_text(call, "session_id");
  if (!is_session_id(id)) return failed("session_live needs a session_id: see its description"sv);
  const LiveSession session = set.shared->live_sessions.of(id);
  const std::unique_lock<std::mutex> lock(session->mutex, std::try_to_lock);
  if (!lock) return failed("another call waits for this session"sv);
  return LiveCall(set, call, id, session->state).answer();
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
