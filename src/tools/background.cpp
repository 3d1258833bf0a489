// The tools of background shells.

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
#include "process/capture_internal.hpp"
#include "process/process.hpp"
#include "regex/regex.hpp"
#include "terminal/terminal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Byte offsets in stdout and stderr, which a client gets as "OUT:ERR" in `next`.
struct OutputOffsets {
  std::uint64_t out = 0;
  std::uint64_t err = 0;
};

bool parse_offsets(std::string_view text, OutputOffsets& offsets) {
  const char* const end = text.data() + text.size();
  const auto out = std::from_chars(text.data(), end, offsets.out);
  if (out.ec != std::errc() || out.ptr == end || *out.ptr != ':') return false;
  const auto err = std::from_chars(out.ptr + 1, end, offsets.err);
  return err.ec == std::errc() && err.ptr == end;
}

// As the reference has it: null while the job runs.
Json exit_code_of_job(const JobStatus& job) {
  if (job.state == JobState::running) return {};
  return json_exit_code(job.result);
}

// The last lines of a text; the very last may lack its newline.
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

// Waits as the arguments say. `ended_by` gets the name of the wait's end; it stays null if the call
// does not ask to wait. A wait for less than was asked for gets a note.
Expected<void> wait_as_asked(ToolSet& set, const mcp::Call& call, const OutputOffsets& since,
                             const char*& ended_by, Json& notes) {
  const Json& wait_for = call.argument("wait_for"sv);
  if (!wait_for.is_string()) return {};
  Jobs::Wait until;
  until.out = since.out;
  until.err = since.err;
  until.cancel = call.cancel_token();
  const Json& seconds = call.argument("timeout"sv);
  const auto asked = seconds.is_number() ? milliseconds_of(seconds) : usual_wait;
  const auto most = std::min(time_to_answer(set, call), longest_wait);
  until.time = std::min(asked, most);
  if (wait_for.as_string() != "exit") {
    auto pattern = Regex::compile(wait_for.as_string());
    if (!pattern) return with_prefix("wait_for: ", {}, pattern.error());
    until.pattern = std::move(*pattern);
    until.on_screen = call.argument("screen"sv).as_bool();
  }
  const std::size_t others = set.waiters.fetch_add(1);
  if (others >= set.options.max_waiters) {
    --set.waiters;
    return make_error(
        ErrorCode::limit,
        "% calls are waiting for shells already, as many as may: ask without wait_for", {others});
  }
  const auto end = set.jobs.wait(argument_text(call, "shell_id"), until);
  --set.waiters;
  if (!end) return end.failure();
  ended_by = name(*end);
  if (*end == Jobs::WaitEnd::timed_out && asked > most)
    notes.push_back(concat("one call waits for % at most: ask again", {count_of_seconds(most)}));
  return {};
}

// Shortens a text that began at byte `since` to what it begins with; the next call gets the rest.
// Does nothing if the kept text has U+FFFD: it may stand for one byte, so the offset is not known.
bool leave_the_rest(OutputChunk& chunk, std::uint64_t since, std::string_view first) {
  const std::size_t gap = chunk.missed > 0 ? Capture::gap(chunk.missed).size() : 0;
  if (chunk.text.size() <= std::max(first.size(), gap)) return false;
  const std::size_t line_end = first.rfind('\n');
  if (line_end != std::string_view::npos && line_end > gap) first = first.substr(0, line_end + 1);
  if (first.size() <= gap || first.find(replacement_character) != std::string_view::npos)
    return false;
  chunk.next = since + chunk.missed + (first.size() - gap);
  chunk.text.resize(first.size());
  return true;
}

// Leaves the end of a text. Returns the number of bytes that it took away.
std::size_t leave_the_end(std::string& text, std::string_view last) {
  const std::size_t omitted = text.size() - last.size();
  text.erase(0, omitted);
  return omitted;
}

Json json_of_job(const ToolOptions& options, const JobStatus& job, std::size_t room) {
  const Result& r = job.result;
  Json object;
  set_member(object, "shell_id", job.id);
  set_member(object, "status", name(job.state));
  set_member(object, "exit_code", exit_code_of_job(job));
  set_member(object, "pid", r.pid);
  set_member(object, "command", std::string(utf8_prefix(echoed(options, r.command), room)));
  set_member(object, "cwd", r.work_dir);
  set_member(object, "start_time", job.start_time);
  set_member(object, "duration_seconds", static_cast<double>(job.duration.count()) / 1000.0);
  set_member(object, "stdout_bytes", r.out_counts.total_bytes);
  set_member(object, "stderr_bytes", r.err_counts.total_bytes);
  if (job.state == JobState::running) return object;
  // The rest of an ended job, under the names that execute_command uses.
  Result end = r;
  if (r.idle) end.notes.push_back(closing_message(r));
  const Json all = result_json(options, end, room);
  for (const char* key :
       {"outcome", "timed_out", "signal", "output_held_open", "notes", "stdout_file", "stderr_file",
        "sandbox", "limits_reached", "changed_files", "put_back", "redactions"})
    if (const Json* value = all.find(key)) object.set(key, *value);
  return object;
}

// Cuts the texts to what the call asks for and the reply has room for. `missed` counts the bytes
// left out of each stream; `notes` say where they can be had.
void fit_job_output(ToolSet& set, const mcp::Call& call, const OutputOffsets& since,
                    JobOutput& output, std::uint64_t (&missed)[2], Json& notes) {
  const Json& tail = call.argument("tail"sv);
  const std::size_t most = wanted_output(set, call);
  const bool in_parts = call.argument("since"sv).is_string() && !tail.is_number();
  if (in_parts) {
    const auto [out, err] = first_of_streams(output.out.text, output.err.text, most);
    bool more = leave_the_rest(output.out, since.out, out);
    more |= leave_the_rest(output.err, since.err, err);
    if (more) notes.push_back("more waits: ask again with since, or with tail for the last lines");
  }
  const bool exactly = set.options.full_results;
  OutputChunk* const chunks[] = {&output.out, &output.err};
  for (int i = 0; i < 2; ++i) {
    OutputChunk& chunk = *chunks[i];
    std::string& text = chunk.text;
    if (output.status.state == JobState::running && !exactly) {
      const std::size_t unfinished = unfinished_escape(text);
      text.resize(text.size() - unfinished);
      chunk.next -= unfinished;
    }
    missed[i] = chunk.missed;
    if (tail.is_number()) {
      const std::size_t before = text.size();
      text = std::string(last_lines(text, count_of(tail)));
      missed[i] += before - text.size();
    }
    OutputCounts counts;
    counts.total_bytes = chunk.next;
    if (!exactly && summarize_binary(text, counts, {}))
      missed[i] = chunk.next - std::min(chunk.next, i == 0 ? since.out : since.err);
    else
      text = set.executor.redact(exactly ? text : as_on_terminal(text));
  }
  const std::uint64_t before_cut[2] = {missed[0], missed[1]};
  if (tail.is_number()) {
    const auto [out, err] = last_of_streams(output.out.text, output.err.text, most);
    missed[0] += leave_the_end(output.out.text, out);
    missed[1] += leave_the_end(output.err.text, err);
  } else {
    cut_streams(output.out.text, output.err.text, most, missed);
  }
  bool is_short = false;
  for (int i = 0; i < 2; ++i)
    is_short |=
        missed[i] > before_cut[i] && !in_parts && (tail.is_number() || chunks[i]->file.empty());
  if (is_short)
    notes.push_back(concat("not all of it fits into one answer; since \"%:%\" reads it in parts",
                           {since.out, since.err}));
  shorten({&output.out.text, &output.err.text}, room_for_texts(call.max_result_bytes()),
          [&](const std::string& text, std::size_t omitted) {
            missed[&text == &output.err.text] += omitted;
          });
  for (int i = 0; i < 2; ++i)
    if (const OutputChunk& chunk = *chunks[i]; missed[i] > 0 && !chunk.file.empty())
      notes.push_back(note_of_rest(set.options, i == 0 ? Stream::out : Stream::err, chunk.next,
                                   chunk.file, chunk.file_bytes));
}

// The screen in place of both streams.
void put_screen(ToolSet& set, const mcp::Call& call, const TerminalScreen& screen, Json& object) {
  std::string text = set.executor.redact(screen.text);
  std::string none;
  std::uint64_t dropped[2] = {};
  cut_streams(text, none,
              std::min(wanted_output(set, call), room_for_texts(call.max_result_bytes())), dropped);
  set_member(object, "screen", std::move(text));
  set_member(object, "cursor", concat("%:%", {screen.cursor_row, screen.cursor_col}));
}

// What a background command is now, with one member more.
mcp::ToolResult answer_about(ToolSet& set, const std::string& id, const char* member, Json value,
                             const char* message = nullptr) {
  const auto job = set.jobs.status(id);
  if (!job) return failed(job.error().message);
  Json object;
  set_member(object, "shell_id", id);
  set_member(object, "status", name(job->state));
  set_member(object, member, std::move(value));
  if (message) set_member(object, "message", message);
  return answer_with(std::move(object));
}

}  // namespace

inline namespace inner {

TerminalSize size_asked(const mcp::Call& call, TerminalSize otherwise) {
  const auto cells = [&call](std::string_view name, int value) {
    const Json& asked = call.argument(name);
    return asked.is_number() ? static_cast<int>(std::min<std::uint64_t>(count_of(asked), INT_MAX))
                             : value;
  };
  return {cells("rows"sv, otherwise.rows), cells("cols"sv, otherwise.cols)};
}

// A command that stays in the foreground gets no id, and may call `ended` twice.
Function<void(const std::string&)> announce_end(const mcp::Call& call, Function<void()>& ended) {
  const auto id = new_shared<std::string>();
  const auto step = [id, announce = call.announcer(), steps = new_shared<std::atomic<int>>(0)] {
    if (steps->fetch_add(1) != 1 || id->empty()) return;
    announce(shell_uris + *id, Json::object({{"shell_id", *id}, {"status", "ended"}}));
  };
  ended = [step, next = std::move(ended)] {
    next();
    step();
  };
  return [id, step](const std::string& known) {
    *id = known;
    step();
  };
}

Expected<JobStatus> start_job(ToolSet& set, const mcp::Call& call, Command& command,
                              Result& failure) {
  command.background = true;
  command.keep_input_open = true;
  command.max_output = set.options.max_output;
  let_ask(set, command, call);
  Function<void()> ended;
  if (!count_time(set, command, ended)) {
    failure = refused_result(set, call, "running_time", set.use->refusal_of_command());
    return make_error(ErrorCode::limit, "%", {failure.message});
  }
  const auto know_id = announce_end(call, ended);
  command.on_end = keep_executor(set, ended);
  auto job = set.jobs.start(command, &failure, &set.executor);
  if (job)
    know_id(job->id);
  else
    ended();
  return job;
}

mcp::ToolResult start_background_shell(ToolSet& set, const mcp::Call& call) {
  Command command = command_of(call, "command");
  if (is_empty_script(command.script)) return refuse(set, call, "command", "The command is empty");
  if (call.argument("terminal"sv).as_bool())
    command.terminal = size_asked(call, TerminalSize());
  else if (call.argument("rows"sv).is_number() || call.argument("cols"sv).is_number())
    return failed("rows and cols are the size of a terminal: ask for one with terminal");
  Result failure;
  auto job = start_job(set, call, command, failure);
  if (!job) {
    const char* const what = failure.outcome == Outcome::refused
                                 ? "Command validation error: "
                                 : "Failed to start background shell: ";
    return failed(concat({what, job.error().message}), failure.rule);
  }
  Json object;
  set_member(object, "shell_id", job->id);
  set_member(object, "status", name(job->state));
  set_member(object, "command", echoed(set.options, job->result.command));
  set_member(object, "pid", job->result.pid);
  set_member(object, "work_dir", job->result.work_dir);
  set.tell(job->result.notes);
  if (!job->result.notes.empty()) set_member(object, "notes", list_of(job->result.notes));
  return answer_with(std::move(object));
}

mcp::ToolResult get_background_shell_output(ToolSet& set, const mcp::Call& call) {
  const std::string& id = argument_text(call, "shell_id");
  OutputOffsets since;
  if (const Json& text = call.argument("since"sv); text.is_string() && !text.as_string().empty())
    if (!parse_offsets(text.as_string(), since))
      return failed(concat("since: % is not the `next` of an earlier answer for this shell",
                           {in_quotes(text.as_string())}));
  const char* ended_by = nullptr;
  Json notes = Json::array();
  const auto waited = wait_as_asked(set, call, since, ended_by, notes);
  if (!waited) return failed(waited.error().message);
  auto output = set.jobs.read(id, since.out, since.err);
  if (!output) return failed(output.error().message);
  const bool wants_screen = call.argument("screen"sv).as_bool();
  Expected<TerminalScreen> screen = TerminalScreen();
  if (wants_screen) screen = set.jobs.screen(id);
  if (!screen) return failed(screen.error().message);
  std::uint64_t missed[2] = {};
  Json object;
  set_member(object, "shell_id", id);
  if (wants_screen) {
    put_screen(set, call, *screen, object);
  } else {
    fit_job_output(set, call, since, *output, missed, notes);
    set_member(object, "stdout", std::move(output->out.text));
    set_member(object, "stderr", std::move(output->err.text));
  }
  set_member(object, "status", name(output->status.state));
  set_member(object, "exit_code", exit_code_of_job(output->status));
  set_member(object, "next", concat("%:%", {output->out.next, output->err.next}));
  if (ended_by) set_member(object, "wait", ended_by);
  if (missed[0] > 0) set_member(object, "stdout_missed_bytes", missed[0]);
  if (missed[1] > 0) set_member(object, "stderr_missed_bytes", missed[1]);
  if (notes.size() > 0) set_member(object, "notes", std::move(notes));
  return answer_with(std::move(object));
}

mcp::ToolResult get_background_shell_status(ToolSet& set, const mcp::Call& call) {
  const auto job = set.jobs.status(argument_text(call, "shell_id"));
  if (!job) return failed(job.error().message);
  return answer_with(json_of_job(set.options, *job, room_for_texts(call.max_result_bytes())));
}

mcp::ToolResult list_background_shells(ToolSet& set, const mcp::Call& call) {
  const std::vector<JobStatus> known = set.jobs.list();
  // All commands together get half of the reply; a byte of a command takes at most 13 bytes of it.
  const std::size_t room = call.max_result_bytes() / 26 / std::max<std::size_t>(known.size(), 1);
  Json list = Json::array();
  for (const JobStatus& job : known) list.push_back(json_of_job(set.options, job, room));
  Json object;
  set_member(object, "shells", std::move(list));
  set_member(object, "count", known.size());
  return answer_with(std::move(object));
}

mcp::ToolResult kill_background_shell(ToolSet& set, const mcp::Call& call) {
  const std::string& id = argument_text(call, "shell_id");
  const auto was_running = set.jobs.kill(id);
  if (!was_running) return failed(was_running.error().message);
  if (*was_running) return answer_about(set, id, "signal", "SIGTERM");
  return answer_about(set, id, "signal", Json(), "Process already terminated");
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
