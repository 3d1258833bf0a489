// The tool execute_command.
//
// With run_in_background_after, a command that takes longer goes on as a background command, and
// has the timeouts of one from its start. So it is with answer_within, but for the timeouts, which
// are those of the foreground:
//
//   run() in the foreground      -> ended                  -> result_json()
//   jobs.run(), ended in time    -> as in the foreground   -> result_json()
//   jobs.run(), still running    -> a background command   -> output_so_far(), with its shell_id

#include "tools/tools.hpp"
#include "tools/tools_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "jobs/jobs.hpp"
#include "json/json.hpp"
#include "mcp/mcp.hpp"
#include "process/process.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Cuts the output to what the answer has: text, or in base64 the bytes of `raw`.
void show_output(ToolSet& set, Result& result, RawOutput* raw, std::size_t most, bool is_running) {
  if (raw) {
    raw->fit(most, result);
    note_rest(set.options, result, is_running);
  } else {
    show_as_on_terminal(set.options, result, &set.executor, "; encoding base64 gives its bytes"sv);
    fit_output(set.options, most, result, is_running);
  }
}

// What is to be known of a command that goes on: until when, and what can be done with it.
std::string note_of_job(const ToolSet& set, const JobStatus& job) {
  const Result& result = job.result;
  std::string note = concat("the command goes on in the background as %", {job.id});
  if (result.timeout != no_limit)
    append_all(note, ", for % in all", {count_of_seconds(result.timeout)});
  const auto has_tool = [&set](std::string_view tool) { return !is_disabled(set.options, tool); };
  if (has_tool("get_background_shell_output"sv))
    note += "; get_background_shell_output gives what it prints, with wait_for \"exit\" at its end";
  if (has_tool("write_background_shell"sv))
    note += job.takes_input ? "; write_background_shell types into it and sends ctrl-c"
                            : "; it has no input, but write_background_shell sends it ctrl-c";
  if (has_tool("kill_background_shell"sv)) note += "; kill_background_shell ends it";
  return note;
}

// How long a command of this call stays in the foreground, of one that would stay for `asked`. With
// no_limit it is run there.
std::chrono::milliseconds time_in_foreground(const ToolSet& set, const mcp::Call& call,
                                             const Command& command,
                                             std::chrono::milliseconds asked) {
  const std::chrono::milliseconds most =
      call.wants_progress() ? no_limit : time_to_answer(set, call);
  const ExecutorOptions& usual = set.executor.options();
  if (asked != no_limit) return std::min(asked, most);
  const auto longest = std::min(command.timeout.value_or(usual.timeout), usual.max_timeout);
  const bool may_move = longest > most && longest <= set.options.jobs.max_timeout &&
                        usual.max_concurrent == 0 &&
                        !is_disabled(set.options, "get_background_shell_output"sv);
  return may_move ? most : no_limit;
}

}  // namespace

inline namespace inner {

std::chrono::milliseconds time_to_answer(const ToolSet& set, const mcp::Call& call) {
  const std::chrono::milliseconds most = set.options.answer_within;
  return call.runs_as_task() || most.count() <= 0 ? no_limit : most;
}

Result output_so_far(ToolSet& set, const JobStatus& job, std::size_t most, RawOutput* raw) {
  Result so_far = job.result;
  if (const auto read = set.jobs.read(job.id)) {
    const JobOutput& output = *read;
    so_far.out = output.out.text;
    so_far.err = output.err.text;
    so_far.out_counts.total_bytes = output.out.next;
    so_far.err_counts.total_bytes = output.err.next;
    so_far.out_counts.dropped_bytes = output.out.missed;
    so_far.err_counts.dropped_bytes = output.err.missed;
    so_far.out_file = output.out.file;
    so_far.err_file = output.err.file;
    so_far.out_counts.file_bytes = output.out.file_bytes;
    so_far.err_counts.file_bytes = output.err.file_bytes;
  }
  show_output(set, so_far, raw, most, true);
  so_far.wall_time = job.duration;
  so_far.notes.push_back(note_of_job(set, job));
  return so_far;
}

JobStatus run_for_call(ToolSet& set, const mcp::Call& call, Command& command,
                       std::chrono::milliseconds foreground, Function<void()>& ended) {
  const auto time = time_in_foreground(set, call, command, foreground);
  JobStatus run;
  if (time == no_limit) {
    run.result = set.executor.run(command);
  } else {
    const auto know_id = announce_end(call, ended);
    command.on_end = [next = std::move(command.on_end),
                      keep = keep_executor(set, ended)](const Result& result) {
      next(result);
      keep(result);
    };
    // Where only the client does not wait for longer, timeouts stay those of the foreground.
    run = set.jobs.run(command, time, &set.executor, foreground == no_limit);
    if (!run.id.empty()) {
      know_id(run.id);
      return run;
    }
  }
  // One that never started, for whatever reason, has not called it.
  ended();
  // As a job it would have kept more than what can be shown of it, all of which would be looked at.
  const std::size_t most = command.max_output.value_or(unbounded);
  keep_ends(most, run.result.out, run.result.out_counts);
  keep_ends(most, run.result.err, run.result.err_counts);
  return run;
}

}  // namespace inner

namespace {

// The keys of a result for a command that still runs: its output so far, success true, and no exit
// code.
Json running_json(ToolSet& set, const JobStatus& job, RawOutput* raw, std::size_t most,
                  std::size_t room) {
  Result so_far = output_so_far(set, job, most, raw);
  set.tell(so_far.notes);
  Json object = result_json(set.options, so_far, room, true);
  set_member(object, "shell_id", job.id);
  return object;
}

Json ended_json(ToolSet& set, const Command& command, Result& result, RawOutput* raw,
                std::size_t most, std::size_t room) {
  set.tell(result.notes);
  // In base64 stderr is bytes, so that the closing message becomes a note.
  const std::string closing = raw ? closing_message(result) : std::string();
  if (!closing.empty()) result.notes.push_back(closing);
  add_next_step(set, command, result);
  name_tool(set.options, result);
  show_output(set, result, raw, most, false);
  return result_json(set.options, result, room);
}

}  // namespace

inline namespace inner {

void put_session(const ToolSet& set, const Command& command, const Json& id, Json& object) {
  if (!command.session) return;
  const std::string folder = command.session->work_dir();
  set_member(object, "session_id", id);
  set_member(object, "session_work_dir",
             shown_path(set, folder.empty() ? set.executor.workspace() : folder));
}

mcp::ToolResult execute_command(ToolSet& set, const mcp::Call& call) {
  if (call.argument("session_live"sv).as_bool()) return execute_live(set, call);
  Command command = command_of(call, "command");
  command.cancel = call.cancel_token();
  if (is_empty_script(command.script)) return refuse(set, call, "command", "The command is empty");
  const Json& session_id = call.argument("session_id"sv);
  if (session_id.is_string()) {
    if (!is_session_id(session_id.as_string()))
      return failed("session_id must be 1 to 64 of the characters A-Z a-z 0-9 . _ -"sv);
    command.session = set.sessions.of(session_id.as_string());
  }
  const std::string moved = leave_closed_folder(set, command);
  const std::size_t most = wanted_output(set, call);
  bound_output(command, most);
  const Json& input = call.argument("stdin"sv);
  command.input = input.as_string();
  std::size_t room = room_for_texts(call.max_result_bytes());
  std::shared_ptr<RawOutput> raw;
  // Base64 stands in the reply twice, a third longer than the bytes; that of both streams takes
  // eight ninths of the room at most.
  if (argument_text(call, "encoding") == "base64") {
    raw = new_shared<RawOutput>(std::min(most, room / 6));
    room /= 9;
  }
  listen(command, call, raw, &set.executor);
  let_ask(set, command, call);
  std::chrono::milliseconds foreground = set.options.run_in_background_after;
  if (const Json& seconds = call.argument("run_in_background_after"sv); seconds.is_number()) {
    foreground = milliseconds_of(seconds);
    // Who wants it in the background may want to type into it. All others end their input at once.
    command.keep_input_open = !input.is_string();
  }
  command.background = foreground != no_limit;
  Function<void()> ended;
  if (!count_time(set, command, ended))
    return refuse(set, call, "running_time", set.use->refusal_of_command());
  JobStatus run = run_for_call(set, call, command, foreground, ended);
  const bool goes_on = !run.id.empty();
  add_note(run.result.notes, "%", {moved});
  Json object = goes_on ? running_json(set, run, raw.get(), most, room)
                        : ended_json(set, command, run.result, raw.get(), most, room);
  if (raw) raw->put(object);
  put_session(set, command, session_id, object);
  return answer_with(std::move(object));
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
