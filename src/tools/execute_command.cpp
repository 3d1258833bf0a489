// The tool execute_command.
//
// With run_in_background_after, the command runs as a background command from its start, and the
// call waits for it that long:
//
//   run() in the foreground        -> ended                    -> result_json()
//   shells.run(), ended in time    -> as in the foreground     -> result_json()
//   shells.run(), still running    -> a background command     -> running_json(), with its shell_id

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

// The keys of a result for a command that still runs: its output so far, success true, and no exit
// code.
Json running_json(ToolSet& set, const JobStatus& job, std::size_t most, std::size_t room) {
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
  show_as_on_terminal(set.options, so_far, &set.executor);
  fit_output(set.options, most, so_far);
  so_far.wall_time = job.duration;
  std::string note = concat("the command goes on in the background as %", {job.id});
  if (!is_disabled(set.options, "get_background_shell_output"sv))
    note += "; get_background_shell_output gives what it prints";
  if (!is_disabled(set.options, "kill_background_shell"sv))
    note += "; kill_background_shell ends it";
  so_far.notes.push_back(note);
  set.tell(so_far.notes);
  Json object = result_json(set.options, so_far, room, true);
  set_member(object, "shell_id", job.id);
  return object;
}

// Runs a command that may go on in the background, and announces its end if it does.
JobStatus run_announced(ToolSet& set, const mcp::Call& call, Command& command,
                        std::chrono::milliseconds foreground, Function<void()>& ended) {
  const auto know_id = announce_end(call, ended);
  command.on_end = keep_executor(set, ended);
  JobStatus run = set.jobs.run(command, foreground, &set.executor);
  if (!run.id.empty()) know_id(run.id);
  return run;
}

void put_session(const ToolSet& set, const Command& command, const Json& id, Json& object) {
  if (!command.session) return;
  const std::string folder = command.session->work_dir();
  set_member(object, "session_id", id);
  set_member(object, "session_work_dir",
             shown_path(set, folder.empty() ? set.executor.workspace() : folder));
}

}  // namespace

inline namespace inner {

mcp::ToolResult execute_command(ToolSet& set, const mcp::Call& call) {
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
  command.max_output = most;
  command.input = argument_text(call, "stdin");
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
  if (const Json& seconds = call.argument("run_in_background_after"sv); seconds.is_number())
    foreground = milliseconds_of(seconds);
  command.background = foreground != no_limit;
  Function<void()> ended;
  if (!count_time(set, command, ended))
    return refuse(set, call, "running_time", set.use->refusal_of_command());
  JobStatus run;
  if (command.background) {
    run = run_announced(set, call, command, foreground, ended);
  } else {
    run.result = set.executor.run(command);
  }
  const bool goes_on = !run.id.empty();
  // One that never started, for whatever reason, has not called it.
  if (!goes_on) ended();
  add_note(run.result.notes, "%", {moved});
  Json object;
  if (!goes_on) {
    set.tell(run.result.notes);
    // In base64 stderr is bytes, so that the closing message becomes a note.
    const std::string closing = raw ? closing_message(run.result) : std::string();
    if (!closing.empty()) run.result.notes.push_back(closing);
    name_tool(set.options, run.result);
    show_as_on_terminal(set.options, run.result, &set.executor);
    fit_output(set.options, most, run.result);
    object = result_json(set.options, run.result, room);
  } else {
    object = running_json(set, run, most, room);
  }
  if (raw) raw->put(object, run.result);
  put_session(set, command, session_id, object);
  return answer_with(std::move(object));
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
