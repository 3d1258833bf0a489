// The tools of background shells.

#include "tools/tools.hpp"
#include "tools/tools_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "mcp/mcp.hpp"
#include "policy/policy_internal.hpp"
#include "process/process.hpp"
#include "regex/regex.hpp"
#include "shells/shells.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// The reference's exit_code of a shell: null while it runs.
Json shell_exit_code(const ShellStatus& shell) {
  if (shell.state == ShellState::running) return {};
  return json_exit_code(shell.result);
}

std::string cursor_text(const ShellCursor& cursor) {
  return concat("%:%", {cursor.out, cursor.err});
}

std::optional<ShellCursor> parse_cursor(std::string_view text) {
  ShellCursor cursor;
  const char* const end = text.data() + text.size();
  const auto out = std::from_chars(text.data(), end, cursor.out);
  if (out.ec != std::errc() || out.ptr == end || *out.ptr != ':') return {};
  const auto err = std::from_chars(out.ptr + 1, end, cursor.err);
  if (err.ec != std::errc() || err.ptr != end) return {};
  return cursor;
}

// Its last lines, of which the very last may lack its end.
std::string_view last_lines(std::string_view text, std::uint64_t count) {
  if (count == 0) return {};
  std::size_t at = text.size();
  if (at > 0 && text[at - 1] == '\n') --at;
  while (at > 0) {
    if (text[at - 1] == '\n' && --count == 0) return text.substr(at);
    --at;
  }
  return text;
}

// Waits as the arguments say. How that ended, or nothing when nothing was to be waited for.
Expected<std::optional<ShellWaitEnd>> wait_as_asked(ToolSet& set, const mcp::Call& call,
                                                    const ShellCursor& since) {
  const Json& wait_for = call.argument("wait_for"sv);
  if (!wait_for.is_string()) return std::optional<ShellWaitEnd>();
  ShellWait until;
  until.since = since;
  until.cancel = call.cancel_token();
  const Json& seconds = call.argument("timeout"sv);
  until.time = std::min(seconds.is_number() ? milliseconds_of(seconds) : usual_wait, longest_wait);
  if (wait_for.as_string() != "exit") {
    auto pattern = Regex::compile(wait_for.as_string());
    if (!pattern) return with_prefix("wait_for: ", {}, pattern.error());
    until.pattern = std::move(*pattern);
  }
  const std::size_t others = set.waiters.fetch_add(1);
  if (others >= set.options.max_waiters) {
    --set.waiters;
    return make_error(
        ErrorCode::limit,
        "% calls are waiting for shells already, as many as may: ask without wait_for", {others});
  }
  const auto end = set.shells.wait(argument_text(call, "shell_id"), until);
  --set.waiters;
  if (!end) return end.failure();
  return std::optional<ShellWaitEnd>(*end);
}

// Of a text that began at byte `since`, what is too long for one reply waits for the next call. Not
// where a byte that is no UTF-8 has become three, as the offset is not known then.
bool leave_the_rest(Capture::Chunk& chunk, std::uint64_t since, std::size_t most) {
  const std::size_t gap = chunk.missed > 0 ? Capture::gap(chunk.missed).size() : 0;
  if (chunk.text.size() <= most + gap) return false;
  std::string_view first = utf8_prefix(chunk.text, most + gap);
  const std::size_t line_end = first.rfind('\n');
  if (line_end != std::string_view::npos && line_end > gap) first = first.substr(0, line_end + 1);
  if (first.size() <= gap || first.find("\xef\xbf\xbd") != std::string_view::npos) return false;
  chunk.next = since + chunk.missed + (first.size() - gap);
  chunk.text.resize(first.size());
  return true;
}

Json shell_json(const ToolOptions& options, const ShellStatus& shell, std::size_t room) {
  const Result& r = shell.result;
  Json object;
  set_member(object, "shell_id", shell.id);
  set_member(object, "status", name(shell.state));
  set_member(object, "exit_code", shell_exit_code(shell));
  set_member(object, "pid", r.pid);
  set_member(object, "command", std::string(utf8_prefix(echoed(options, r.command), room)));
  set_member(object, "cwd", r.work_dir);
  set_member(object, "start_time", shell.start_time);
  set_member(object, "duration_seconds", static_cast<double>(shell.duration.count()) / 1000.0);
  set_member(object, "stdout_bytes", r.out_counts.total_bytes);
  set_member(object, "stderr_bytes", r.err_counts.total_bytes);
  if (shell.state == ShellState::running) return object;
  // What else there is to tell of an end, with the names that execute_command has for it.
  Result end = r;
  end.out.clear();
  end.err.clear();
  const Json all = result_json(options, end, room);
  for (const char* key :
       {"outcome", "timed_out", "signal", "output_held_open", "notes", "stdout_file", "stderr_file",
        "sandbox", "limits_reached", "changed_files", "redactions"})
    if (const Json* value = all.find(key)) object.set(key, *value);
  return object;
}

}  // namespace

inline namespace inner {

mcp::ToolReply start_background_shell(ToolSet& set, const mcp::Call& call) {
  Command command = command_of(call, "command");
  if (is_empty_script(command.script)) return refuse(set, call, "command", "The command is empty");
  command.background = true;
  command.keep_input_open = true;
  command.max_output = set.options.max_output;
  Function<void()> ended;
  if (!count_time(set, command, ended))
    return refuse(set, call, "running_time", set.use->refusal_of_command());
  command.on_end = ended;
  Result failure;
  const auto shell = set.shells.start(command, &failure);
  if (!shell) {
    ended();
    const char* const what = failure.outcome == Outcome::refused
                                 ? "Command validation error: "
                                 : "Failed to start background shell: ";
    return failed(concat({what, shell.error().message}), failure.rule);
  }
  Json object;
  set_member(object, "shell_id", shell->id);
  set_member(object, "status", name(shell->state));
  set_member(object, "command", echoed(set.options, shell->result.command));
  set_member(object, "pid", shell->result.pid);
  set_member(object, "work_dir", shell->result.work_dir);
  if (!shell->result.notes.empty()) set_member(object, "notes", list_of(shell->result.notes));
  return answer_with(std::move(object));
}

mcp::ToolReply get_background_shell_output(ToolSet& set, const mcp::Call& call) {
  const std::string& id = argument_text(call, "shell_id");
  ShellCursor since;
  if (const Json& text = call.argument("since"sv); text.is_string() && !text.as_string().empty()) {
    const auto cursor = parse_cursor(text.as_string());
    if (!cursor)
      return failed(concat("since: % is not the `next` of an earlier answer for this shell",
                           {in_quotes(text.as_string())}));
    since = *cursor;
  }
  const auto waited = wait_as_asked(set, call, since);
  if (!waited) return failed(waited.error().message);
  auto output = set.shells.read(id, since);
  if (!output) return failed(output.error().message);
  std::string& out = output->out.text;
  std::string& err = output->err.text;
  const Json& tail = call.argument("tail"sv);
  const std::size_t most = wanted_output(set, call);
  const bool follows = call.argument("since"sv).is_string() && !tail.is_number();
  bool more = false;
  if (follows) {
    more = leave_the_rest(output->out, since.out, most);
    more |= leave_the_rest(output->err, since.err, most);
  }
  if (output->status.state == ShellState::running)
    for (Capture::Chunk* chunk : {&output->out, &output->err}) {
      const std::size_t waits = unfinished_escape(chunk->text);
      chunk->text.resize(chunk->text.size() - waits);
      chunk->next -= waits;
    }
  std::uint64_t missed[] = {output->out.missed, output->err.missed};
  if (tail.is_number()) {
    for (std::string* text : {&out, &err}) {
      const std::string_view last = last_lines(*text, count_of(tail));
      missed[text == &err] += text->size() - last.size();
      *text = std::string(last);
    }
  }
  for (std::string* text : {&out, &err}) *text = set.executor.redact(as_on_terminal(*text));
  for (std::string* text : {&out, &err}) missed[text == &err] += cut_output(*text, most);
  shorten({&out, &err}, room_for_texts(call.max_result_bytes()),
          [&](const std::string& text, std::size_t omitted) { missed[&text == &err] += omitted; });
  Json notes = Json::array();
  if (more) notes.push_back("more waits: ask again with since, or with tail for the last lines");
  for (const Stream stream : {Stream::out, Stream::err}) {
    const Capture::Chunk& chunk = stream == Stream::out ? output->out : output->err;
    if (missed[stream == Stream::err] > 0 && !chunk.file.empty())
      notes.push_back(note_of_rest(set.options, stream, chunk.next, chunk.file, chunk.file_bytes));
  }
  Json object;
  set_member(object, "shell_id", id);
  set_member(object, "stdout", std::move(out));
  set_member(object, "stderr", std::move(err));
  set_member(object, "status", name(output->status.state));
  set_member(object, "exit_code", shell_exit_code(output->status));
  set_member(object, "next", cursor_text({output->out.next, output->err.next}));
  if (*waited) set_member(object, "wait", name(**waited));
  if (missed[0] > 0) set_member(object, "stdout_missed_bytes", missed[0]);
  if (missed[1] > 0) set_member(object, "stderr_missed_bytes", missed[1]);
  if (notes.size() > 0) set_member(object, "notes", std::move(notes));
  return answer_with(std::move(object));
}

mcp::ToolReply get_background_shell_status(ToolSet& set, const mcp::Call& call) {
  const auto shell = set.shells.status(argument_text(call, "shell_id"));
  if (!shell) return failed(shell.error().message);
  return answer_with(shell_json(set.options, *shell, room_for_texts(call.max_result_bytes())));
}

mcp::ToolReply list_background_shells(ToolSet& set, const mcp::Call& call) {
  const std::vector<ShellStatus> known = set.shells.list();
  // All commands together may take half of a reply, of which a byte takes at most 13.
  const std::size_t room = call.max_result_bytes() / 26 / std::max<std::size_t>(known.size(), 1);
  Json list = Json::array();
  for (const ShellStatus& shell : known) list.push_back(shell_json(set.options, shell, room));
  const auto size = list.size();
  Json object;
  set_member(object, "shells", std::move(list));
  set_member(object, "count", size);
  return answer_with(std::move(object));
}

mcp::ToolReply write_background_shell(ToolSet& set, const mcp::Call& call) {
  const std::string& id = argument_text(call, "shell_id");
  const std::string& input = argument_text(call, "input");
  if (!input.empty()) {
    const auto written = set.shells.write(id, input);
    Command asked = command_of(call, "");
    asked.shell_id = id;
    asked.input = input;
    Result result;
    result.command = script_of_argv({call.tool(), id});
    result.work_dir = set.executor.workspace();
    result.outcome = Outcome::exited;
    result.exit_code = written ? 0 : 1;
    result.message = written.error().message;
    set.executor.record(result, asked);
    if (!written) return failed(written.error().message);
  }
  if (call.argument("close_input"sv).as_bool()) {
    if (auto ok = set.shells.close_input(id); !ok) return failed(ok.error().message);
  }
  const auto shell = set.shells.status(id);
  if (!shell) return failed(shell.error().message);
  Json object;
  set_member(object, "shell_id", id);
  set_member(object, "status", name(shell->state));
  set_member(object, "written", input.size());
  return answer_with(std::move(object));
}

mcp::ToolReply kill_background_shell(ToolSet& set, const mcp::Call& call) {
  const std::string& id = argument_text(call, "shell_id");
  const auto was_running = set.shells.kill(id);
  if (!was_running) return failed(was_running.error().message);
  const auto shell = set.shells.status(id);
  if (!shell) return failed(shell.error().message);
  Json object;
  set_member(object, "shell_id", id);
  set_member(object, "status", name(shell->state));
  set_member(object, "signal", *was_running ? Json("SIGTERM") : Json());
  if (!*was_running) set_member(object, "message", "Process already terminated");
  return answer_with(std::move(object));
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
