// How much of an output an answer has, and where the rest is.
//
// The executor has cut an output to its max_output before, and keeps the whole in a file if it may.
// Here it is cut once more for the answer, and a note names the file.

#include "tools/tools.hpp"
#include "tools/tools_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "json/json.hpp"
#include "mcp/mcp.hpp"
#include "process/process.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

std::size_t wanted_output(const ToolSet& set, const mcp::Call& call) {
  const Json& asked = call.argument("max_output"sv);
  const std::size_t most = set.options.max_output;
  return asked.is_number()
             ? static_cast<std::size_t>(std::min<std::uint64_t>(count_of(asked), most))
             : most;
}

std::size_t cut_middle(std::string& text, std::size_t most, std::string_view why) {
  const std::string_view head = utf8_prefix(text, most / 2);
  const std::string_view tail = utf8_suffix(text, most / 2);
  const std::size_t omitted = text.size() - head.size() - tail.size();
  text = concat("%\n... (truncated%: % bytes omitted) ...\n%", {head, why, omitted, tail});
  return omitted;
}

std::size_t cut_output(std::string& text, std::size_t most) {
  // Text that was cut to so many bytes before has a line that says so.
  constexpr std::size_t longest_line = 256;
  if (text.size() <= most + longest_line) return 0;
  return cut_middle(text, most, concat(", exceeded % bytes", {most}));
}

std::string note_of_rest(const ToolOptions& options, Stream stream, std::uint64_t total,
                         const std::string& file, std::uint64_t file_bytes) {
  std::string note = concat("% has % bytes, and not all of them are here; ",
                            {stream == Stream::out ? "stdout" : "stderr", total});
  if (file.empty()) return note + "send it to a file to read it in parts";
  note += file_bytes < total ? concat("the first % are in ", {file_bytes}) : "all of it is in ";
  note += file;
  if (!is_disabled(options, "read_file"sv)) note += ": use read_file with offset and count";
  return note;
}

void fit_output(const ToolOptions& options, std::size_t most, Result& result) {
  for (const Stream stream : {Stream::out, Stream::err}) {
    const bool is_out = stream == Stream::out;
    OutputCounts& counts = is_out ? result.out_counts : result.err_counts;
    const std::string& file = is_out ? result.out_file : result.err_file;
    counts.dropped_bytes += cut_output(is_out ? result.out : result.err, most);
    if (counts.dropped_bytes > 0 || !file.empty())
      result.notes.push_back(
          note_of_rest(options, stream, counts.total_bytes, file, counts.file_bytes));
  }
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
