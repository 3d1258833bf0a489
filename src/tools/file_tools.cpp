// The tools that read, write and list files.

#include "tools/tools_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "files/files.hpp"
#include "json/json.hpp"
#include "mcp/mcp.hpp"
#include "paths/paths.hpp"
#include "policy/policy_internal.hpp"
#include "process/process.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// What a file tool did, as a record of the audit log: its words are shown as a command line.
template <class T>
void record_file(const ToolSet& set, const mcp::Call& call, const Expected<T>& done,
                 std::string content = {}) {
  Result result;
  result.command = script_of_argv(
      {call.tool(), call.argument(call.tool() == "list_files" ? "path" : "file_path").as_string()});
  result.work_dir = set.executor.workspace();
  result.outcome = Outcome::exited;
  result.exit_code = 0;
  if (!done) {
    const bool denied = done.error().code == ErrorCode::permission_denied;
    result.outcome = denied ? Outcome::refused : Outcome::exited;
    if (denied) result.rule = "paths";
    result.exit_code = denied ? -1 : 1;
    result.message = done.error().message;
  }
  Command asked = command_of(call, "");
  if (done) asked.input = std::move(content);
  set.executor.record(result, asked);
}

// What was shown of a file counts as read, as little as it may be.
void remember_read(const ToolSet& set, const FileContent& file) {
  const DeleteGuard* const guard = set.executor.delete_guard();
  if (guard && (!file.bytes.empty() || file.size == 0)) guard->mark_read(file.path);
}

}  // namespace

inline namespace inner {

mcp::ToolReply read_file(ToolSet& set, const mcp::Call& call) {
  FileRange range;
  if (call.argument("unit").as_string() == "bytes") range.unit = FileRange::Unit::bytes;
  if (const Json& offset = call.argument("offset"); offset.is_number())
    range.offset = count_of(offset);
  if (const Json& count = call.argument("count"); count.is_number()) range.count = count_of(count);
  // A byte takes at most 13 of a reply, see bytes_in_reply().
  range.max_bytes = std::min(range.max_bytes, call.max_result_bytes() / 16);
  auto file = set.files.read(call.argument("file_path").as_string(), range);
  record_file(set, call, file);
  if (!file) return failed(set.executor.redact(file.error().message));
  const bool wants_base64 = call.argument("encoding").as_string() == "base64";
  Json object = Json::object();
  const std::string path = shown_path(set, file->path);
  object.set("file_path", path);
  const bool is_image = !file->mime_type.empty() && !wants_base64;
  if (is_image) {
    // An image is of use only as a whole.
    range = {};
    range.unit = FileRange::Unit::bytes;
    range.max_bytes = call.max_result_bytes() / 2;
    file = set.files.read(call.argument("file_path").as_string(), range);
    if (!file) return failed(set.executor.redact(file.error().message));
    if (file->more)
      return failed(concat({quoted(path), " is an image of ", std::to_string(file->size),
                            " bytes, too large for one reply; read parts of it with encoding "
                            "base64 and unit bytes"}));
    remember_read(set, *file);
    object.set("mime_type", file->mime_type);
    object.set("size", file->size);
    mcp::ToolResult result = mcp::ToolResult::with_structured(std::move(object));
    result.content = {mcp::Content::image(set.executor.redact(file->bytes), file->mime_type)};
    return result;
  }
  if (file->binary && !wants_base64)
    return failed(concat({quoted(path), " is a binary file of ", std::to_string(file->size),
                          " bytes; read it with encoding base64"}));
  remember_read(set, *file);
  const std::string content = set.executor.redact(file->bytes);
  object.set("content", wants_base64 ? to_base64(content) : to_utf8(content));
  object.set("encoding", wants_base64 ? "base64" : "utf-8");
  object.set("size", file->size);
  object.set("offset", range.offset);
  object.set("begin", file->begin);
  object.set("lines", file->lines);
  object.set("next", file->next);
  object.set("more", file->more);
  if (file->cut_line) object.set("cut_line", true);
  return mcp::ToolResult::with_structured(std::move(object));
}

mcp::ToolReply write_file(ToolSet& set, const mcp::Call& call) {
  std::string bytes = call.argument("content").as_string();
  if (call.argument("encoding").as_string() == "base64") {
    auto decoded = from_base64(bytes);
    if (!decoded) return failed("content is not base64 (RFC 4648), as encoding says");
    bytes = std::move(*decoded);
  }
  const auto written = set.files.write(call.argument("file_path").as_string(), bytes);
  const std::size_t size = bytes.size();
  record_file(set, call, written, std::move(bytes));
  if (!written) return failed(set.executor.redact(written.error().message));
  if (const DeleteGuard* const guard = set.executor.delete_guard()) guard->mark_created(*written);
  return mcp::ToolResult::with_structured(
      Json::object({{"success", true}, {"file_path", shown_path(set, *written)}, {"bytes", size}}));
}

mcp::ToolReply list_files(ToolSet& set, const mcp::Call& call) {
  const Json& path = call.argument("path");
  const Json& depth = call.argument("depth");
  constexpr std::uint64_t deepest = std::numeric_limits<std::size_t>::max();
  const std::uint64_t levels = depth.is_number() ? std::min(count_of(depth), deepest) : 1;
  const auto list =
      set.files.list(path.is_string() ? path.as_string() : ".", static_cast<std::size_t>(levels));
  record_file(set, call, list);
  if (!list) return failed(set.executor.redact(list.error().message));
  std::size_t room = room_for_texts(call.max_result_bytes());
  Json entries = Json::array();
  bool more = list->more;
  for (const FileEntry& entry : list->entries) {
    constexpr std::size_t for_the_rest = 256;
    const std::string name_shown = shown_path(set, entry.path);
    const std::size_t size = bytes_in_reply(name_shown) + for_the_rest;
    more = more || size > room;
    if (size > room) break;
    room -= size;
    Json shown_entry = Json::object({{"path", name_shown},
                                     {"type", name(entry.type)},
                                     {"size", entry.size},
                                     {"modified", entry.modified}});
    if (entry.closed) shown_entry.set("closed", true);
    entries.push_back(std::move(shown_entry));
  }
  return mcp::ToolResult::with_structured(Json::object(
      {{"path", shown_path(set, list->path)}, {"entries", std::move(entries)}, {"more", more}}));
}

mcp::ToolReply read_docstring(ToolSet& set, const mcp::Call& call) {
  constexpr std::size_t longest_source = std::size_t{4} << 20;
  FileRange range;
  range.unit = FileRange::Unit::bytes;
  range.max_bytes = longest_source;
  const auto file = set.files.read(call.argument("file_path").as_string(), range);
  record_file(set, call, file);
  if (!file) return failed(set.executor.redact(file.error().message));
  if (file->more)
    return failed(concat({quoted(file->path), " is longer than ", std::to_string(longest_source),
                          " bytes, too long for a source file"}));
  const std::string& function = call.argument("function_name").as_string();
  auto docstring = python_docstring(file->bytes, function);
  if (!docstring) {
    const std::string& message = docstring.error().message;
    const std::string path = quoted(shown_path(set, file->path));
    if (function.empty()) return failed(concat({path, ": ", message}));
    return failed(concat({path, ", ", quoted(function), ": ", message}));
  }
  std::string text = set.executor.redact(to_utf8(*docstring));
  shorten({&text}, room_for_texts(call.max_result_bytes()), [](const std::string&, std::size_t) {});
  return mcp::ToolResult::with_structured(Json::object({{"file_path", shown_path(set, file->path)},
                                                        {"function_name", function},
                                                        {"docstring", std::move(text)}}));
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
