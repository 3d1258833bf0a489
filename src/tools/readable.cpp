// Results as lines that a model reads.
//
// Models pay for each escape of JSON, and clients cut long results at an end or in their middle. So
// a result is made of lines, in the order of their weight:
//
//   exit code 1, after 12.3 s     how it ended, of a command
//   note: stdout has 1988895 ...  short members, a line each
//   stdout:                       texts, as they are
//   ...
//
// Only texts have lines that others have written, so that what stands before them is ours.

#include "tools/tools.hpp"
#include "tools/tools_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/names_internal.hpp"
#include "json/json.hpp"
#include "mcp/mcp.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Members of a command's result that its first line or a note says, or that the caller knows.
bool is_said_elsewhere(std::string_view name) {
  static constexpr auto names = NameSet{"command",          "execution_time",
                                        "exit_code",        "outcome",
                                        "output_held_open", "rule",
                                        "signal",           "stderr_bytes",
                                        "stderr_file",      "stderr_invalid_bytes",
                                        "stderr_truncated", "stdout_bytes",
                                        "stdout_file",      "stdout_invalid_bytes",
                                        "stdout_truncated", "success",
                                        "timed_out",        "work_dir"};
  return names.has(name);
}

// Members that are texts, whatever is in them.
bool is_text(std::string_view name) {
  static constexpr auto names =
      NameSet{"content", "diff", "docstring", "screen", "stderr", "stdout", "text"};
  return names.has(name);
}

std::string how_it_ended(const Json& object) {
  const std::string& outcome = object["outcome"sv].as_string();
  std::string text = concat("exit code %", {object["exit_code"sv].as_integer()});
  if (outcome == "running")
    text = "still running";
  else if (outcome == "timed_out")
    text += ": timed out";
  else if (outcome == "refused")
    append_all(text, ": refused by the rule %", {object["rule"sv].as_string()});
  else if (outcome != "exited" && outcome != "signaled" && !outcome.empty())
    append_all(text, ": %", {outcome == "not_started" ? "not started" : outcome});
  constexpr double worth_a_word = 1;
  if (const double seconds = object["execution_time"sv].as_number(); seconds >= worth_a_word)
    append_all(text, ", after % s", {Json(std::round(seconds * 10) / 10).dump()});
  if (object["stdout"sv].as_string().empty() && object["stderr"sv].as_string().empty())
    text += ", no output";
  return text;
}

// A text of our own, or one of others that has no line of its own by a trick.
void append_line(std::string& text, std::string_view name, const Json& value) {
  const std::string& words = value.as_string();
  const bool plain = value.is_string() && words == printable(words);
  append_all(text, "%: %\n", {name, plain ? words : value.dump()});
}

// Characters that no client can show, such as NUL, by their number.
void append_text(std::string& text, std::string_view name, std::string_view shown) {
  append_all(text, "%:\n", {name});
  for (const char byte : shown) {
    const auto c = static_cast<unsigned char>(byte);
    if ((c >= 0x20 && c != 0x7f) || c == '\n' || c == '\t' || c == '\r') {
      text += byte;
      continue;
    }
    text += "\\x";
    append_hex(text, c);
  }
}

std::string readable_text(const Json& object) {
  const bool is_command = object.find("execution_time"sv) && object.find("stdout"sv);
  std::string text;
  if (is_command) text = how_it_ended(object) + '\n';
  std::string blocks;
  for (const Json::Member& member : object.members()) {
    const Json& value = member.value;
    const std::string& name = member.name;
    if (value.is_null() || (is_command && is_said_elsewhere(name))) continue;
    if (value.is_string() && is_text(name)) {
      const bool is_stream = starts_with(name, "std"sv);
      if (is_stream && value.as_string().empty()) continue;
      if (!blocks.empty() && blocks.back() != '\n') blocks += '\n';
      append_text(blocks, name, value.as_string());
    } else if (name == "notes") {
      for (const Json& note : value.items()) append_line(text, "note"sv, note);
    } else if (value.is_array() && value.size() > 0 && value[0].is_object()) {
      append_all(text, "%:\n", {name});
      for (const Json& item : value.items()) append_all(text, "%\n", {item.dump()});
    } else if (name != "success" || value.as_bool()) {
      append_line(text, name, value);
    }
  }
  text += blocks;
  return text;
}

}  // namespace

inline namespace inner {

mcp::ToolResult as_read(bool as_json, mcp::ToolResult result) {
  if (!result.structured || !result.content.empty()) return result;
  result.content.push_back(
      mcp::text_block(as_json ? result.structured->dump() : readable_text(*result.structured)));
  return result;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
