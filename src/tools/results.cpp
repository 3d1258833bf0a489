// Results as JSON, within the bound of a reply.
//
// A reply holds a text twice, escaped once and twice (see bytes_in_reply), so that a text of n
// bytes may take 13 n. fit() therefore measures texts as they will be written, and cuts the
// longest.

#include "tools/tools.hpp"
#include "tools/tools_internal.hpp"

#include "audit/audit_internal.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "mcp/mcp.hpp"
#include "policy/policy.hpp"
#include "process/process.hpp"
#include "shell/shell.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// A sign of life for a client that asked for progress; the official TypeScript client gives up
// after 60 s without one.
constexpr std::chrono::milliseconds longest_silence = std::chrono::seconds(2);
// The time between two messages with output. The server passes on 20 in a second.
constexpr std::chrono::milliseconds message_interval = std::chrono::milliseconds(100);

// Sends the output of a command as progress messages: each has the output since the one before, or
// its end when that is much. While a command prints nothing, a message has the time and the last
// line: "12 s: Compiling foo.c". The progress is the number of seconds since the start. Only the
// thread that drives the command uses it.
class LiveOutput {
 public:
  LiveOutput(const mcp::Call& call, const Executor* executor) : call_(call), executor_(executor) {
    send("running");
  }
  void add(std::string_view bytes) {
    text_.append(bytes.substr(bytes.size() - std::min(bytes.size(), longest)));
    if (text_.size() > longest) text_.erase(0, text_.size() - longest);
    unsent_ = std::min(unsent_ + bytes.size(), text_.size());
    if (Clock::now() - sent_ >= message_interval) send_text();
  }
  // Every message_interval.
  void tick() {
    if (unsent_ > 0)
      send_text();
    else if (Clock::now() - sent_ >= longest_silence)
      send(concat("% s: %", {elapsed().count() / 1000, last_line()}));
  }

 private:
  static constexpr std::size_t longest = 4096;
  static constexpr std::size_t longest_line = 200;

  // A character that has not arrived whole waits for the next message.
  void send_text() {
    const std::string_view rest = std::string_view(text_).substr(text_.size() - unsent_);
    const std::string_view whole = utf8_prefix(rest, rest.size());
    const std::string_view shown = whole.empty() ? rest : whole;
    unsent_ -= shown.size();
    send(to_utf8(shown));
  }
  // A character or an escape sequence that has not arrived whole does not show yet.
  std::string last_line() const {
    std::string_view whole = utf8_prefix(text_, text_.size());
    whole.remove_suffix(unfinished_escape(whole));
    std::string shown = as_on_terminal(whole);
    if (executor_) shown = executor_->redact(shown);
    shown.resize(shown.find_last_not_of(" \t\r\n") + 1);  // npos + 1 is 0
    if (shown.empty()) return "running";
    const std::string_view line = std::string_view(shown).substr(shown.rfind('\n') + 1);
    return printable(utf8_prefix(line, longest_line));
  }
  std::chrono::milliseconds elapsed() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin_);
  }
  // Two messages of one millisecond have two numbers: progress that does not grow is not sent.
  void send(const std::string& message) {
    sent_ = Clock::now();
    progress_ = std::max(progress_ + 1, elapsed().count());
    call_.progress(static_cast<double>(progress_) / 1000.0, {}, message);
  }

  mcp::Call call_;
  const Executor* executor_;  // its secrets are masked; or null
  Clock::time_point begin_ = Clock::now();
  Clock::time_point sent_ = {};
  std::chrono::milliseconds::rep progress_ = -1;  // of the last message
  std::string text_ = {};                         // the end of the output
  std::size_t unsent_ = 0;                        // bytes at its end that were in no message
};

// What execute_command gives. A schema may have other members besides: those that come seldom, and
// say what they are, are left out, as models pay for every byte.
struct ResultField {
  const char* name;
  std::string_view type;
  const char* description = "";
  bool is_always_there = false;
};
constexpr bool always = true;
constexpr ResultField result_fields[] = {
    {"success", "boolean", "", always},
    {"exit_code", "integer", "-N: signal N; -1: timed out, refused, not started; none: it runs."},
    {"stdout", "string", "", always},
    {"stderr", "string", "", always},
    {"execution_time", "number", "", always},
    {"command", "string", "", always},
    {"work_dir", "string", "", always},
    {"outcome", "string"},
    {"timed_out", "boolean"},
    {"signal", "integer"},
    {"rule", "string"},
    {"notes", "array"},
    {"stdout_file", "string"},
    {"stderr_file", "string"},
    {"stdout_truncated", "boolean"},
    {"stderr_truncated", "boolean"},
    {"shell_id", "string"},
};

}  // namespace

inline namespace inner {

int json_exit_code(const Result& result) {
  if (result.outcome == Outcome::exited) return result.exit_code;
  if (result.outcome == Outcome::signaled) return -result.signal;
  return -1;
}

std::string closing_message(const Result& result) {
  switch (result.outcome) {
    case Outcome::timed_out:
      return result.idle ? concat("Command timed out: no output for %",
                                  {count_of_seconds(result.idle_timeout)})
                         : concat("Command timed out after %", {count_of_seconds(result.timeout)});
    case Outcome::cancelled:
      return "Command was cancelled";
    case Outcome::refused:
      return result.message;
    case Outcome::not_started:
      return concat("Execution error: %", {result.message});
    case Outcome::unknown:
      return "Execution error: the command ended, but its exit status could not be learned";
    case Outcome::exited:
    case Outcome::signaled:
      break;
  }
  return {};
}

Json execution_schema() {
  Json properties;
  Json required = Json::array();
  for (const ResultField& field : result_fields) {
    Json property;
    set_member(property, "type", field.type);
    if (field.type == "array"sv) set_member(property, "items", Json::object({{"type", "string"}}));
    if (*field.description) set_member(property, "description", field.description);
    properties.set(field.name, std::move(property));
    if (field.is_always_there) required.push_back(field.name);
  }
  Json schema;
  set_member(schema, "type", "object");
  set_member(schema, "properties", std::move(properties));
  set_member(schema, "required", std::move(required));
  return schema;
}

std::size_t bytes_in_json(std::string_view text, std::size_t at) {
  const auto c = static_cast<unsigned char>(text[at]);
  if (c == '"' || c == '\\' || c == '\n' || c == '\t' || c == '\r' || c == '\b' || c == '\f')
    return 2;
  if (c >= 0x20 && c < 0x7f) return 1;
  const std::string_view rest = text.substr(at, 3);
  const bool is_escaped = c < 0x20 || c == 0x7f || starts_with(rest, "\xc2\x85"sv) ||
                          starts_with(rest, "\xe2\x80\xa8"sv) ||
                          starts_with(rest, "\xe2\x80\xa9"sv);
  return is_escaped ? 6 : 1;
}

}  // namespace inner

namespace {

// Bytes that a text takes in a reply, which holds it twice: in the object, escaped once, and in the
// text block, where it may be escaped once more: there each backslash of an escape and each quote
// takes one byte more.
std::size_t bytes_in_reply(std::string_view text) {
  std::size_t bytes = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::size_t once = bytes_in_json(text, at);
    const bool is_quoted = text[at] == '"' || text[at] == '\\';
    bytes += 2 * once + (is_quoted ? 2 : once > 1 ? 1 : 0);
  }
  return bytes;
}

// Leaves half of a text, its head and its tail, and a line between that says why. Returns how many
// bytes it took out.
std::size_t cut_to_half(std::string& text) {
  const std::string_view head = utf8_prefix(text, text.size() / 4);
  const std::string_view tail = utf8_suffix(text, text.size() / 4);
  const std::size_t omitted = text.size() - head.size() - tail.size();
  text =
      concat("%\n... (truncated to fit one reply: % bytes omitted) ...\n%", {head, omitted, tail});
  return omitted;
}

}  // namespace

inline namespace inner {

void shorten(std::initializer_list<std::string*> texts, std::size_t room,
             FunctionRef<void(const std::string&, std::size_t omitted)> cut) {
  const auto size_of_all = [&] {
    std::size_t size = 0;
    for (const std::string* text : texts) size += bytes_in_reply(*text);
    return size;
  };
  while (size_of_all() > room) {
    std::string& longest = **std::max_element(
        texts.begin(), texts.end(),
        [](const std::string* a, const std::string* b) { return a->size() < b->size(); });
    // A further cut would take away less than the line that reports it adds.
    if (longest.size() <= longest_echo) return;
    const std::size_t omitted = cut_to_half(longest);
    cut(longest, omitted);
  }
}

std::size_t room_for_texts(std::size_t max_bytes) {
  constexpr std::size_t for_the_rest = 16384;
  return max_bytes - std::min(max_bytes, for_the_rest);
}

}  // namespace inner

namespace {

void fit(Result& result, std::size_t room) {
  shorten({&result.out, &result.err, &result.command, &result.work_dir, &result.message}, room,
          [&result](const std::string& text, std::size_t omitted) {
            if (&text == &result.out) result.out_counts.dropped_bytes += omitted;
            if (&text == &result.err) result.err_counts.dropped_bytes += omitted;
          });
}

// Without `full`, keys with their usual values are left out. With `is_running`, it is what is known
// so far.
Json json_of(const Result& result, bool full, bool is_running = false) {
  std::string err = result.err;
  const std::string closing = is_running ? std::string() : closing_message(result);
  if (!closing.empty() && !err.empty() && err.back() != '\n') err += '\n';
  err += closing;

  const auto seconds = static_cast<double>(result.wall_time.count()) / 1e6;
  Json object;
  set_member(object, "success", is_running || result.succeeded());
  if (!is_running) set_member(object, "exit_code", json_exit_code(result));
  set_member(object, "stdout", result.out);
  set_member(object, "stderr", std::move(err));
  set_member(object, "execution_time", seconds);
  set_member(object, "command", result.command);
  set_member(object, "work_dir", result.work_dir);
  const bool timed_out = result.outcome == Outcome::timed_out;
  const OutputCounts& out = result.out_counts;
  const OutputCounts& err_counts = result.err_counts;
  if (is_running)
    set_member(object, "outcome", "running");
  else if (full || result.outcome != Outcome::exited)
    set_member(object, "outcome", name(result.outcome));
  if (full || timed_out) set_member(object, "timed_out", timed_out);
  if (full || out.dropped_bytes > 0 || out.invalid_bytes > 0)
    set_member(object, "stdout_bytes", out.total_bytes);
  if (full || err_counts.dropped_bytes > 0 || err_counts.invalid_bytes > 0)
    set_member(object, "stderr_bytes", err_counts.total_bytes);
  if (full || out.dropped_bytes > 0) set_member(object, "stdout_truncated", out.dropped_bytes > 0);
  if (full || err_counts.dropped_bytes > 0)
    set_member(object, "stderr_truncated", err_counts.dropped_bytes > 0);
  if (result.signal != 0) set_member(object, "signal", result.signal);
  if (!result.rule.empty()) set_member(object, "rule", result.rule);
  if (out.invalid_bytes > 0) set_member(object, "stdout_invalid_bytes", out.invalid_bytes);
  if (err_counts.invalid_bytes > 0)
    set_member(object, "stderr_invalid_bytes", err_counts.invalid_bytes);
  if (!result.out_file.empty()) set_member(object, "stdout_file", result.out_file);
  if (!result.err_file.empty()) set_member(object, "stderr_file", result.err_file);
  if (result.pipe_held) set_member(object, "output_held_open", true);
  Json notes = Json::array();
  for (const std::string& note : result.notes) notes.push_back(note);
  const bool told_elsewhere = !closing.empty() && closing.find(result.message) != std::string::npos;
  if (!result.message.empty() && !told_elsewhere) notes.push_back(result.message);
  if (notes.size() > 0) set_member(object, "notes", std::move(notes));
  set_sandbox_fields(object, result);
  return object;
}

}  // namespace

inline namespace inner {

std::string echoed(const ToolOptions& options, const std::string& text) {
  const std::size_t longest = options.full_results ? longest_audited_text : longest_echo;
  if (text.size() <= longest) return text;
  return concat("%... (% bytes)", {utf8_prefix(text, longest), text.size()});
}

void name_tool(const ToolOptions& options, Result& result) {
  const std::string left_behind = note_of_left_behind(result);
  if (left_behind.empty() || is_disabled(options, "start_background_shell"sv)) return;
  for (std::string& note : result.notes)
    if (note == left_behind) note += "; use start_background_shell";
}

Json result_json(const ToolOptions& options, Result& result, std::size_t room, bool is_running) {
  if (!options.full_results) {
    result.command = echoed(options, result.command);
    result.work_dir = echoed(options, result.work_dir);
    result.sandbox.reset();
  }
  fit(result, room);
  return json_of(result, options.full_results, is_running);
}

mcp::ToolResult failed(std::string_view message, std::string_view rule) {
  Json object;
  set_member(object, "success", false);
  set_member(object, "error", to_utf8(message));
  if (!rule.empty()) set_member(object, "rule", rule);
  mcp::ToolResult result = answer_with(std::move(object));
  result.is_error = true;
  return result;
}

void ToolSet::tell(std::vector<std::string>& notes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (std::string& note : notes_.news) notes.push_back(std::move(note));
  notes_.news.clear();
  add_note(notes, "%", {notes_.standing});
}

mcp::ToolResult failed_here(const ToolSet& set, const Error& error) {
  const std::string& note = set.standing_note();
  return failed(
      concat("%%%", {set.executor.redact(error.message), note.empty() ? "" : "; ", note}));
}

// A background command may outlive the roots that it was started for.
Function<void(const Result&)> keep_executor(const ToolSet& set, Function<void()> ended) {
  return [kept = set.owner, ended = std::move(ended)](const Result&) { ended(); };
}

std::string leave_closed_folder(const ToolSet& set, Command& command) {
  if (!command.session || !command.work_dir.empty()) return {};
  const std::string folder = command.session->work_dir();
  const PathRules& rules = set.executor.paths();
  if (folder.empty() || rules.permission(folder) != Permission::none || !rules.restricted())
    return {};
  command.work_dir = set.executor.workspace();
  return concat("the session has left %: no command may start there any more",
                {shown_path(set, folder)});
}

mcp::ToolResult answer_with(Json&& object) {
  mcp::ToolResult result;
  result.structured = std::move(object);
  return result;
}

const std::string& argument_text(const mcp::Call& call, const char* name) {
  return call.argument(name).as_string();
}

std::chrono::milliseconds milliseconds_of(const Json& seconds) {
  const double bounded = std::min(seconds.as_number(), 3.2e10);
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(bounded * 1000.0)));
}

std::uint64_t count_of(const Json& number) {
  return static_cast<std::uint64_t>(std::min(number.as_number(), 9e15));
}

bool is_disabled(const ToolOptions& options, std::string_view tool) {
  return is_one_of(tool, options.disabled_tools);
}

Result refused_result(const ToolSet& set, const mcp::Call& call, const char* bound,
                      std::string message) {
  const bool is_code = call.tool() == "execute_code";
  const std::string& script = call.argument(is_code ? "code"sv : "command"sv).as_string();
  Result result;
  result.outcome = Outcome::refused;
  result.command = std::string(utf8_prefix(script, longest_audited_text));
  result.work_dir = set.executor.workspace();
  result.rule = bound;
  result.message = std::move(message);
  set.executor.record(result, command_of(call, ""));
  return result;
}

mcp::ToolResult refuse(const ToolSet& set, const mcp::Call& call, const char* bound,
                       std::string message) {
  Result result = refused_result(set, call, bound, std::move(message));
  if (call.tool() != "execute_code" && call.tool() != "execute_command")
    return failed(result.message);
  return answer_with(result_json(set.options, result, room_for_texts(call.max_result_bytes())));
}

bool is_empty_script(const std::string& script) {
  return script.find_first_not_of(" \t\r\n") == std::string::npos;
}

std::string shown_path(const ToolSet& set, const std::string& path) {
  return set.executor.redact(to_utf8(path));
}

bool count_time(const ToolSet& set, Command& command, Function<void()>& ended) {
  const std::chrono::milliseconds left = set.use->time_left();
  if (left.count() <= 0) return false;
  if (left != no_limit) {
    const auto usual = command.background ? no_limit : set.executor.options().timeout;
    command.timeout = std::min(command.timeout.value_or(usual), left);
  }
  ended = UseCounter::begin(set.use);
  return true;
}

// The fields that the audit log needs stand in the command, so that refused calls have them, too.
Command command_of(const mcp::Call& call, const char* argument) {
  Command command;
  if (*argument) command.script = call.argument(argument).as_string();
  command.caller.tool = call.tool();
  command.caller.client = call.client();
  command.caller.request = call.request_id();
  if (const Json& id = call.argument("session_id"sv); id.is_string())
    command.caller.session_id = id.as_string();
  command.work_dir = argument_text(call, "work_dir");
  if (const Json& seconds = call.argument("timeout"sv); seconds.is_number())
    command.timeout = milliseconds_of(seconds);
  if (const Json& seconds = call.argument("idle_timeout"sv); seconds.is_number())
    command.idle_timeout = milliseconds_of(seconds);
  return command;
}

// The callbacks share the ownership of their state: a command in the background outlives its call.
void listen(Command& command, const mcp::Call& call, const std::shared_ptr<RawOutput>& raw,
            const Executor* executor) {
  std::shared_ptr<LiveOutput> live;
  if (call.wants_progress()) {
    live = new_shared<LiveOutput>(call, executor);
    command.heartbeat = message_interval;
    command.on_heartbeat = [live] { live->tick(); };
  }
  if (!live && !raw) return;
  command.on_output = [live, raw](Stream stream, std::string_view bytes) {
    if (live) live->add(bytes);
    if (raw) raw->add(stream, bytes);
  };
}

}  // namespace inner

Json to_json(const Result& result) { return json_of(result, true); }

// Words that are known only at run time are null: they have an expansion in them.
Json to_json(const Judgement& judgement) {
  const Verdict& verdict = judgement.verdict;
  Json object;
  set_member(object, "allowed", verdict.allowed);
  if (verdict.must_ask) set_member(object, "must_ask", true);
  set_member(object, "rule", verdict ? Json() : Json(verdict.rule));
  set_member(object, "message", verdict ? Json() : Json(verdict.message));
  set_member(object, "begin", verdict ? Json() : Json(verdict.begin));
  set_member(object, "end", verdict ? Json() : Json(verdict.end));
  Json commands = Json::array();
  for (const SimpleCommand& command : judgement.commands) {
    const auto known = [](const std::vector<std::string>& texts) {
      Json list = Json::array();
      for (const std::string& text : texts)
        list.push_back(text.find('\0') == std::string::npos ? Json(text) : Json());
      return list;
    };
    Json entry;
    set_member(entry, "words", known(command.words));
    if (!command.assignments.empty()) set_member(entry, "assignments", known(command.assignments));
    set_member(entry, "begin", command.begin);
    set_member(entry, "end", command.end);
    commands.push_back(std::move(entry));
  }
  set_member(object, "commands", std::move(commands));
  return object;
}

}  // namespace v0_1
}  // namespace codeexec
