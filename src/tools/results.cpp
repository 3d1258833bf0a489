// Results as JSON, within the bound of a reply.

#include "tools/tools.hpp"
#include "tools/tools_internal.hpp"

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
// Between two messages of what a command prints. The server passes on 20 in a second.
constexpr std::chrono::milliseconds message_interval = std::chrono::milliseconds(100);

// What a command prints, as progress messages for a client that asked for them: each tells what is
// new since the one before, the end of it when that is much. Progress counts the seconds since the
// start. Used by the one thread that drives the command.
class LiveOutput {
 public:
  explicit LiveOutput(const mcp::Call& call) : call_(call) { send("running"); }
  void add(std::string_view bytes) {
    if (bytes.size() > longest) bytes.remove_prefix(bytes.size() - longest);
    text_.append(bytes);
    if (text_.size() > longest) text_.erase(0, text_.size() - longest);
    if (Clock::now() - sent_ >= message_interval) send_text();
  }
  // Every message_interval.
  void tick() {
    if (!text_.empty())
      send_text();
    else if (Clock::now() - sent_ >= longest_silence)
      send("running");
  }

 private:
  static constexpr std::size_t longest = 4096;

  // A character that has not arrived whole waits for the next message.
  void send_text() {
    const std::string_view whole = utf8_prefix(text_, text_.size());
    const std::string message = to_utf8(whole.empty() ? text_ : whole);
    text_.erase(0, whole.empty() ? text_.size() : whole.size());
    send(message);
  }
  void send(const std::string& message) {
    sent_ = Clock::now();
    const auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(sent_ - begin_);
    call_.progress(static_cast<double>(elapsed.count()) / 1000.0, {}, message);
  }

  mcp::Call call_;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point sent_ = {};
  std::string text_ = {};
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
      return concat({"Command timed out after ", count_of_seconds(result.timeout)});
    case Outcome::cancelled:
      return "Command was cancelled";
    case Outcome::refused:
      return result.message;
    case Outcome::not_started:
      return concat({"Execution error: ", result.message});
    case Outcome::unknown:
      return "Execution error: the command ended, but its exit status could not be learned";
    case Outcome::exited:
    case Outcome::signaled:
      break;
  }
  return {};
}

Json execution_schema() {
  const auto type = [](const char* type_name, const char* description) {
    return Json::object({{"type", type_name}, {"description", description}});
  };
  Json properties = Json::object();
  properties.set("success",
                 type("boolean", "The command left with exit code 0, in time, or still runs."));
  Json exit_code = type("integer",
                        "Minus the signal's number when a signal killed it; -1 when it timed out, "
                        "was refused or did not start; null while it runs.");
  exit_code.set("type", Json::array({"integer", "null"}));
  properties.set("exit_code", std::move(exit_code));
  properties.set("stdout",
                 type("string", "What it printed; the middle is left out when too long."));
  properties.set("stderr", type("string", "The same for standard error, and why it did not run."));
  properties.set("execution_time", type("number", "Seconds."));
  properties.set("command", type("string", "The command, or its beginning."));
  properties.set("work_dir", type("string", "The directory it ran in."));
  Json required = Json::array();
  for (const Json::Member& member : properties.members()) required.push_back(member.name);
  properties.set("outcome", type("string", "How it ended; not told: exited."));
  properties.set("timed_out", type("boolean", "It was stopped at its deadline."));
  properties.set("stdout_bytes", type("integer", "Bytes it wrote in all, when they are not here."));
  properties.set("stderr_bytes", type("integer", "The same for stderr."));
  properties.set("stdout_truncated", type("boolean", "stdout leaves something out."));
  properties.set("stderr_truncated", type("boolean", "stderr leaves something out."));
  Json schema = Json::object();
  schema.set("type", "object");
  schema.set("properties", std::move(properties));
  schema.set("required", std::move(required));
  return schema;
}

std::size_t bytes_in_reply(std::string_view text) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const std::string_view rest = text.substr(i, 3);
    if (c == '"' || c == '\\')
      bytes += 2 + 4;
    else if (c == '\n' || c == '\t' || c == '\r' || c == '\b' || c == '\f')
      bytes += 2 + 3;
    else if (c < 0x20 || c == 0x7f || starts_with(rest, "\xc2\x85") ||
             starts_with(rest, "\xe2\x80\xa8") || starts_with(rest, "\xe2\x80\xa9"))
      bytes += 6 + 7;
    else
      bytes += 1 + 1;
  }
  return bytes;
}

void shorten(const std::vector<std::string*>& texts, std::size_t room,
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
    const std::size_t omitted = cut_middle(longest, longest.size() / 2, " to fit one reply");
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

// Without `full`: only what is not as usual.
Json json_of(const Result& result, bool full) {
  std::string err = result.err;
  const std::string closing = closing_message(result);
  if (!closing.empty() && !err.empty() && err.back() != '\n') err += '\n';
  err += closing;

  const auto seconds = static_cast<double>(result.wall_time.count()) / 1e6;
  Json object = Json::object();
  object.set("success", result.succeeded());
  object.set("exit_code", json_exit_code(result));
  object.set("stdout", result.out);
  object.set("stderr", std::move(err));
  object.set("execution_time", seconds);
  object.set("command", result.command);
  object.set("work_dir", result.work_dir);
  const bool timed_out = result.outcome == Outcome::timed_out;
  const auto differs = [full](const OutputCounts& counts) {
    return full || counts.dropped_bytes > 0 || counts.invalid_bytes > 0;
  };
  const bool out_cut = result.out_counts.dropped_bytes > 0;
  const bool err_cut = result.err_counts.dropped_bytes > 0;
  if (full || result.outcome != Outcome::exited) object.set("outcome", name(result.outcome));
  if (full || timed_out) object.set("timed_out", timed_out);
  if (differs(result.out_counts)) object.set("stdout_bytes", result.out_counts.total_bytes);
  if (differs(result.err_counts)) object.set("stderr_bytes", result.err_counts.total_bytes);
  if (full || out_cut) object.set("stdout_truncated", out_cut);
  if (full || err_cut) object.set("stderr_truncated", err_cut);
  if (result.signal != 0) object.set("signal", result.signal);
  if (!result.rule.empty()) object.set("rule", result.rule);
  if (result.out_counts.invalid_bytes > 0)
    object.set("stdout_invalid_bytes", result.out_counts.invalid_bytes);
  if (result.err_counts.invalid_bytes > 0)
    object.set("stderr_invalid_bytes", result.err_counts.invalid_bytes);
  if (!result.out_file.empty()) object.set("stdout_file", result.out_file);
  if (!result.err_file.empty()) object.set("stderr_file", result.err_file);
  if (result.pipe_held) object.set("output_held_open", true);
  Json notes = Json::array();
  for (const std::string& note : result.notes) notes.push_back(note);
  const bool told_elsewhere = !closing.empty() && closing.find(result.message) != std::string::npos;
  if (!result.message.empty() && !told_elsewhere) notes.push_back(result.message);
  if (notes.size() > 0) object.set("notes", std::move(notes));
  set_sandbox_fields(object, result);
  return object;
}

}  // namespace

inline namespace inner {

std::string echoed(const ToolOptions& options, const std::string& text) {
  const std::size_t longest = options.full_results ? longest_audited_text : longest_echo;
  if (text.size() <= longest) return text;
  return concat({utf8_prefix(text, longest), "... (", std::to_string(text.size()), " bytes)"});
}

void name_tool(const ToolOptions& options, Result& result) {
  const std::string left_behind = note_of_left_behind(result);
  if (left_behind.empty() || is_disabled(options, "start_background_shell")) return;
  for (std::string& note : result.notes)
    if (note == left_behind) note += "; use start_background_shell";
}

Json result_json(const ToolOptions& options, Result& result, std::size_t room) {
  if (!options.full_results) {
    result.command = echoed(options, result.command);
    result.work_dir = echoed(options, result.work_dir);
    result.sandbox.reset();
  }
  fit(result, room);
  return json_of(result, options.full_results);
}

mcp::ToolResult failed(const std::string& message, const std::string& rule) {
  Json object = Json::object({{"success", false}, {"error", to_utf8(message)}});
  if (!rule.empty()) object.set("rule", rule);
  mcp::ToolResult result = mcp::ToolResult::with_structured(std::move(object));
  result.is_error = true;
  return result;
}

std::chrono::milliseconds milliseconds_of(const Json& seconds) {
  const double bounded = std::min(seconds.as_number(), 3.2e10);
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(bounded * 1000.0)));
}

std::uint64_t count_of(const Json& number) {
  return static_cast<std::uint64_t>(std::min(number.as_number(), 9e15));
}

bool is_disabled(const ToolOptions& options, const std::string& tool) {
  const std::vector<std::string>& disabled = options.disabled_tools;
  return std::find(disabled.begin(), disabled.end(), tool) != disabled.end();
}

Result refused_result(const ToolSet& set, const mcp::Call& call, const char* bound,
                      std::string message) {
  const bool is_code = call.tool() == "execute_code";
  const std::string& script = call.argument(is_code ? "code" : "command").as_string();
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
  return mcp::ToolResult::with_structured(
      result_json(set.options, result, room_for_texts(call.max_result_bytes())));
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

Command command_of(const mcp::Call& call, const char* argument) {
  Command command;
  if (*argument) command.script = call.argument(argument).as_string();
  command.tool = call.tool();
  command.client = call.client();
  command.request = call.request_id();
  if (const Json& id = call.argument("session_id"); id.is_string())
    command.session_id = id.as_string();
  command.work_dir = call.argument("work_dir").as_string();
  if (const Json& seconds = call.argument("timeout"); seconds.is_number())
    command.timeout = milliseconds_of(seconds);
  return command;
}

void listen(Command& command, const mcp::Call& call, const std::shared_ptr<RawOutput>& raw) {
  std::shared_ptr<LiveOutput> live;
  if (call.wants_progress()) {
    live = std::make_shared<LiveOutput>(call);
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

Json to_json(const Judgement& judgement) {
  const Verdict& verdict = judgement.verdict;
  Json object = Json::object();
  object.set("allowed", verdict.allowed);
  object.set("rule", verdict ? Json() : Json(verdict.rule));
  object.set("message", verdict ? Json() : Json(verdict.message));
  object.set("begin", verdict ? Json() : Json(verdict.begin));
  object.set("end", verdict ? Json() : Json(verdict.end));
  Json commands = Json::array();
  for (const shell::Command& command : judgement.commands) {
    if (command.compound) continue;
    Json words = Json::array();
    for (const shell::Word& word : command.words)
      words.push_back(word.known() ? Json(word.text) : Json());
    Json assignments = Json::array();
    for (const shell::Assignment& assignment : command.assignments)
      assignments.push_back(assignment.value.known()
                                ? Json(concat({assignment.name, "=", assignment.value.text}))
                                : Json());
    Json entry = Json::object();
    entry.set("words", std::move(words));
    if (assignments.size() > 0) entry.set("assignments", std::move(assignments));
    entry.set("begin", command.begin);
    entry.set("end", command.end);
    commands.push_back(std::move(entry));
  }
  object.set("commands", std::move(commands));
  return object;
}

}  // namespace v0_1
}  // namespace codeexec
