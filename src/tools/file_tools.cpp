// The tools that read, write, edit, list and search files.
//
// Files checks each path by the rules of the executor. Secrets are masked in what a reply shows,
// and each call is put on the audit log, like a command.

#include "tools/tools_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "files/files.hpp"
#include "json/json.hpp"
#include "mcp/mcp.hpp"
#include "paths/paths.hpp"
#include "process/process.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Puts a call of a file tool on the audit log, as a command line of its name and path.
void record_file(const ToolSet& set, const mcp::Call& call, bool done, const Error& error,
                 const std::string& content = {}) {
  Result result;
  std::vector<std::string> words = {call.tool()};
  for (const char* const name : {"file_path", "pattern", "path"})
    if (const Json& value = call.argument(name); value.is_string())
      words.push_back(value.as_string());
  result.command = script_of_argv(words);
  result.work_dir = set.executor.workspace();
  result.outcome = Outcome::exited;
  result.exit_code = 0;
  if (!done) {
    const bool denied = error.code == ErrorCode::permission_denied;
    if (denied) result.outcome = Outcome::refused;
    if (denied) result.rule = "paths";
    result.exit_code = denied ? -1 : 1;
    result.message = error.message;
  }
  Command asked = command_of(call, "");
  if (done) asked.input = content;
  set.executor.record(result, asked);
}

// For the delete guard: a file counts as read if any part of it was shown.
void remember_read(const ToolSet& set, const FileContent& file) {
  const DeleteGuard* const guard = set.executor.delete_guard();
  if (guard && (!file.bytes.empty() || file.size == 0)) guard->mark_read(file.path);
}

// Reads a range of a file. Where the call does not say how much it wants, that is what a result
// has room for: bytes of text count as they are sent, and short lines count more.
Expected<FileContent> read_asked(const ToolSet& set, const mcp::Call& call, FileRange range,
                                 bool as_text) {
  const std::string& path = argument_text(call, "file_path");
  auto read = set.files.read(path, range);
  if (!read || !as_text || set.options.full_results || range.count != FileRange::all) return read;
  const std::size_t room = set.options.max_output / 16 * 15;
  const std::size_t fits = first_of_streams(read->bytes, {}, room).first.size();
  if (fits == 0 || fits == read->bytes.size()) return read;
  range.max_bytes = fits;
  return set.files.read(path, range);
}

}  // namespace

inline namespace inner {

mcp::ToolResult read_file(ToolSet& set, const mcp::Call& call) {
  FileRange range;
  if (argument_text(call, "unit") == "bytes") range.by_bytes = true;
  if (const Json& offset = call.argument("offset"sv); offset.is_number())
    range.offset = count_of(offset);
  if (const Json& count = call.argument("count"sv); count.is_number())
    range.count = count_of(count);
  else if (!set.options.full_results)
    range.max_bytes = set.options.max_output / 4 * 3;  // in base64 it is max_output
  // A byte takes at most 13 of a reply.
  range.max_bytes = std::min(range.max_bytes, call.max_result_bytes() / 16);
  const bool wants_base64 = argument_text(call, "encoding") == "base64";
  const auto read = read_asked(set, call, range, !wants_base64);
  record_file(set, call, read.has_value(), read.error());
  if (!read) return failed_here(set, read.error());
  const FileContent& file = *read;
  Json object;
  const std::string path = shown_path(set, file.path);
  set_member(object, "file_path", path);
  if (!file.mime_type.empty() && !wants_base64) {
    // An image is of use only as a whole.
    range = {};
    range.by_bytes = true;
    range.max_bytes = call.max_result_bytes() / 2;
    const auto whole = set.files.read(argument_text(call, "file_path"), range);
    if (!whole) return failed_here(set, whole.error());
    const FileContent& image = *whole;
    if (image.more)
      return failed(
          concat("% is an image of % bytes, too large for one reply; read parts of it with "
                 "encoding base64 and unit bytes",
                 {in_quotes(path), image.size}));
    remember_read(set, image);
    set_member(object, "mime_type", image.mime_type);
    set_member(object, "size", image.size);
    mcp::ToolResult result = answer_with(std::move(object));
    result.content.push_back(mcp::image_block(set.executor.redact(image.bytes), image.mime_type));
    return result;
  }
  if (file.binary && !wants_base64)
    return failed(concat("% is a binary file of % bytes; read it with encoding base64",
                         {in_quotes(path), file.size}));
  remember_read(set, file);
  const std::string content = set.executor.redact(file.bytes);
  set_member(object, "content", wants_base64 ? to_base64(content) : to_utf8(content));
  set_member(object, "encoding", wants_base64 ? "base64" : "utf-8");
  set_member(object, "size", file.size);
  set_member(object, "offset", range.offset);
  set_member(object, "begin", file.begin);
  set_member(object, "lines", file.lines);
  set_member(object, "next", file.next);
  set_member(object, "more", file.more);
  if (file.cut_line) set_member(object, "cut_line", true);
  return answer_with(std::move(object));
}

mcp::ToolResult write_file(ToolSet& set, const mcp::Call& call) {
  std::string bytes = argument_text(call, "content");
  if (argument_text(call, "encoding") == "base64") {
    auto decoded = from_base64(bytes);
    if (!decoded) return failed("content is not base64 (RFC 4648), as encoding says"sv);
    bytes = std::move(*decoded);
  }
  const auto written = set.files.write(argument_text(call, "file_path"), bytes);
  record_file(set, call, written.has_value(), written.error(), bytes);
  if (!written) return failed_here(set, written.error());
  if (const DeleteGuard* const guard = set.executor.delete_guard()) guard->mark_created(*written);
  Json object;
  set_member(object, "success", true);
  set_member(object, "file_path", shown_path(set, *written));
  set_member(object, "bytes", bytes.size());
  return answer_with(std::move(object));
}

mcp::ToolResult edit_file(ToolSet& set, const mcp::Call& call) {
  const Json& asked = call.argument("edits"sv);
  std::vector<FileEdit> edits;
  for (const Json& item : asked.items())
    edits.push_back(
        {item["old_text"sv].as_string(), item["new_text"sv].as_string(), item["all"sv].as_bool()});
  const auto edited = set.files.edit(argument_text(call, "file_path"), edits);
  record_file(set, call, edited.has_value(), edited.error(), asked.dump());
  if (!edited) return failed_here(set, edited.error());
  if (const DeleteGuard* const guard = set.executor.delete_guard()) guard->mark_read(edited->path);
  Json object;
  set_member(object, "success", true);
  set_member(object, "file_path", shown_path(set, edited->path));
  set_member(object, "replaced", edited->replaced);
  std::string diff = set.executor.redact(edited->diff);
  shorten({&diff}, room_for_texts(call.max_result_bytes()), [](const std::string&, std::size_t) {});
  set_member(object, "diff", std::move(diff));
  return answer_with(std::move(object));
}

// Entries that do not fit into the reply are left out from the end, and `more` is true.
mcp::ToolResult list_files(ToolSet& set, const mcp::Call& call) {
  const Json& path = call.argument("path"sv);
  const Json& depth = call.argument("depth"sv);
  constexpr std::uint64_t deepest = std::numeric_limits<std::size_t>::max();
  const std::uint64_t levels = depth.is_number() ? std::min(count_of(depth), deepest) : 1;
  const auto list =
      set.files.list(path.is_string() ? path.as_string() : ".", static_cast<std::size_t>(levels));
  record_file(set, call, list.has_value(), list.error());
  if (!list) return failed_here(set, list.error());
  // A reply holds the JSON twice, and of some characters three times as many bytes.
  std::size_t room = room_for_texts(call.max_result_bytes()) / 4;
  if (!set.options.full_results) room = std::min(room, set.options.max_output);
  Json entries = Json::array();
  bool more = list->more;
  for (const FileEntry& entry : list->entries) {
    Json shown_entry;
    set_member(shown_entry, "path", shown_path(set, entry.path));
    set_member(shown_entry, "type", name(entry.type));
    set_member(shown_entry, "size", entry.size);
    set_member(shown_entry, "modified", entry.modified);
    if (entry.closed) set_member(shown_entry, "closed", true);
    const std::size_t size = shown_entry.dump().size() + 1;
    more = more || size > room;
    if (size > room) break;
    room -= size;
    entries.push_back(std::move(shown_entry));
  }
  Json object;
  set_member(object, "path", shown_path(set, list->path));
  set_member(object, "entries", std::move(entries));
  if (list->ignored > 0) set_member(object, "ignored", list->ignored);
  set_member(object, "more", more);
  return answer_with(std::move(object));
}

mcp::ToolResult search_files(ToolSet& set, const mcp::Call& call) {
  FileSearch search;
  search.pattern = argument_text(call, "pattern");
  search.glob = argument_text(call, "glob");
  if (const Json& context = call.argument("context"sv); context.is_number())
    search.context = static_cast<std::size_t>(std::min<std::uint64_t>(count_of(context), 100));
  search.files_only = call.argument("files_only"sv).as_bool();
  search.max_matches = 500;
  search.max_bytes = std::min(std::size_t{16} << 10, call.max_result_bytes() / 16);
  search.cancel = call.cancel_token();
  search.mask = [&set](std::string_view line) { return set.executor.redact(line); };
  const std::string& path = argument_text(call, "path");
  const auto found = set.files.search(path.empty() ? "." : path, search);
  record_file(set, call, found.has_value(), found.error());
  if (!found) return failed_here(set, found.error());
  Json object;
  set_member(object, "path", shown_path(set, found->path));
  set_member(object, "matches", found->matches);
  set_member(object, "text", set.executor.redact(to_utf8(found->text)));
  const std::pair<const char*, std::uint64_t> left_out[] = {
      {"ignored", found->ignored}, {"binary", found->binary}, {"unreadable", found->unreadable}};
  for (const auto& [name, count] : left_out)
    if (count > 0) set_member(object, name, count);
  set_member(object, "more", found->more);
  return answer_with(std::move(object));
}

mcp::ToolResult read_docstring(ToolSet& set, const mcp::Call& call) {
  constexpr std::size_t longest_source = std::size_t{4} << 20;
  FileRange range;
  range.by_bytes = true;
  range.max_bytes = longest_source;
  const auto file = set.files.read(argument_text(call, "file_path"), range);
  record_file(set, call, file.has_value(), file.error());
  if (!file) return failed_here(set, file.error());
  if (file->more)
    return failed(concat("% is longer than % bytes, too long for a source file",
                         {in_quotes(file->path), longest_source}));
  const std::string& function = argument_text(call, "function_name");
  auto docstring = python_docstring(file->bytes, function);
  if (!docstring) {
    const std::string& message = docstring.error().message;
    const std::string path = in_quotes(shown_path(set, file->path));
    if (function.empty()) return failed(concat("%: %", {path, message}));
    return failed(concat("%, %: %", {path, in_quotes(function), message}));
  }
  std::string text = set.executor.redact(to_utf8(*docstring));
  shorten({&text}, room_for_texts(call.max_result_bytes()), [](const std::string&, std::size_t) {});
  Json object;
  set_member(object, "file_path", shown_path(set, file->path));
  set_member(object, "function_name", function);
  set_member(object, "docstring", std::move(text));
  return answer_with(std::move(object));
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
