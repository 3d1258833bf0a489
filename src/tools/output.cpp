// How much of an output an answer has, and where the rest is.
//
// The executor has cut an output to its max_output before, and keeps the whole in a file if it may.
// Here both streams are cut to the room of the answer, which counts bytes as they are sent, and a
// note names the file. Clients cut once more what is long for them; docs/clients.md has what they
// do. So the notes stand before the streams, and what is shown has fewer lines and bytes than those
// clients show that cut off an end:
//
//   both streams fit       as they are
//   one of them is short   the other one gets the rest of the room
//   both are long          a quarter each

#include "tools/tools.hpp"
#include "tools/tools_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/platform_internal.hpp"
#include "executor/executor.hpp"
#include "json/json.hpp"
#include "json/json_internal.hpp"
#include "mcp/mcp.hpp"
#include "process/process.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// What a text takes of the room: its bytes in JSON, or more if its lines are short.
class Measure {
 public:
  explicit Measure(std::size_t of_line) : of_line_(of_line) {}
  void add(std::string_view text, std::size_t at) {
    bytes_ += bytes_in_json(text, at);
    if (text[at] == '\n') ++lines_;
  }
  std::size_t cost() const { return std::max(bytes_, lines_ * of_line_); }

 private:
  const std::size_t of_line_;  // the least that a line costs
  std::size_t bytes_ = 0;
  std::size_t lines_ = 0;
};

std::size_t cost_of(std::string_view text, std::size_t of_line) {
  Measure all(of_line);
  for (std::size_t at = 0; at < text.size(); ++at) all.add(text, at);
  return all.cost();
}

// The first bytes that cost so much, up to the end of a line if that is not far.
std::string_view head_within(std::string_view text, std::size_t room, std::size_t of_line) {
  Measure so_far(of_line);
  std::size_t size = 0;
  for (; size < text.size(); ++size) {
    so_far.add(text, size);
    if (so_far.cost() > room) break;
  }
  const std::string_view head = utf8_prefix(text, size);
  const std::size_t line_end = head.rfind('\n') + 1;  // npos + 1 is 0
  return line_end > head.size() / 2 ? head.substr(0, line_end) : head;
}

std::string_view tail_within(std::string_view text, std::size_t room, std::size_t of_line) {
  Measure so_far(of_line);
  std::size_t size = 0;
  for (; size < text.size(); ++size) {
    so_far.add(text, text.size() - 1 - size);
    if (so_far.cost() > room) break;
  }
  if (size == text.size()) return text;
  const std::string_view tail = utf8_suffix(text, size);
  const std::size_t line_end = tail.find('\n') + 1;
  return line_end < tail.size() / 2 ? tail.substr(line_end) : tail;
}

// What a server shows of a result where no option says so.
std::size_t usual_output() {
  static const std::size_t usual = ToolOptions().max_output;
  return usual;
}

// The least that a line costs in so much room: with the usual one, there are fewer than the 2,000
// lines that opencode shows.
std::size_t cost_of_line(std::size_t room) {
  constexpr std::size_t least = 13;
  return least * std::min(room, usual_output()) / usual_output();
}

// Bytes of the line that stands where the executor has cut, if it is in this text.
std::size_t size_of_cut(std::string_view text) {
  const std::size_t begin = text.find("\n... ("sv);
  if (begin == std::string_view::npos) return 0;
  constexpr std::string_view last = " bytes omitted) ...\n";
  const std::size_t end = text.find(last, begin);
  return end == std::string_view::npos ? 0 : end + last.size() - begin;
}

// Cuts a text to so much. Returns how many bytes it took out; the line in their place has them and
// those that were dropped before.
std::size_t cut_stream(std::string& text, std::size_t room, std::size_t of_line,
                       std::uint64_t dropped) {
  const std::string_view all = text;
  const std::string_view head = head_within(all, room / 2, of_line);
  const std::string_view tail = tail_within(all.substr(head.size()), room / 2, of_line);
  const std::string_view middle = all.substr(head.size(), all.size() - head.size() - tail.size());
  const std::size_t omitted = middle.size() - (dropped > 0 ? size_of_cut(middle) : 0);
  text = concat("%%... (truncated: % bytes omitted) ...\n%",
                {head, head.empty() || head.back() == '\n' ? "" : "\n", omitted + dropped, tail});
  return omitted;
}

// What both streams may take of an answer.
struct StreamRooms {
  std::size_t out = 0;
  std::size_t err = 0;
};

StreamRooms rooms_of(std::size_t out, std::size_t err, std::size_t room) {
  const std::size_t quarter = room / 4;
  if (out + err <= room) return {out, err};
  if (err <= quarter) return {room - err, err};
  if (out <= quarter) return {out, room - out};
  return {quarter, quarter};
}

// The room of both streams together. A call that asks for less than usual gets so much; of more,
// the rest of the answer takes its part.
std::size_t room_of_streams(const ToolOptions& options, std::size_t most, Result& result) {
  // Notes that are added later, and the fields of a session and a background command.
  constexpr std::size_t for_what_follows = 1024;
  std::string out;
  std::string err;
  out.swap(result.out);
  err.swap(result.err);
  Result rest = result;
  const std::size_t size = result_json(options, rest, unbounded).dump().size() + for_what_follows;
  out.swap(result.out);
  err.swap(result.err);
  const std::size_t all = std::max(most, usual_output());
  return std::min(most, all - std::min(all, size));
}

}  // namespace

inline namespace inner {

std::size_t wanted_output(const ToolSet& set, const mcp::Call& call) {
  const Json& asked = call.argument("max_output"sv);
  const std::size_t most = set.options.max_output;
  return asked.is_number()
             ? static_cast<std::size_t>(std::min<std::uint64_t>(count_of(asked), most))
             : most;
}

void bound_output(Command& command, std::size_t most) {
  command.max_output = most;
  command.spill_above = most / 4;
}

void keep_ends(std::size_t most, std::string& text, OutputCounts& counts) {
  // What the executor keeps itself may be as long: three bytes stand for one that is not UTF-8.
  if (text.size() / 4 <= most) return;
  const std::string_view head = utf8_prefix(text, most / 2);
  const std::string_view tail = utf8_suffix(text, most - most / 2);
  const std::uint64_t kept = head.size() + tail.size();
  counts.dropped_bytes = counts.total_bytes - std::min(counts.total_bytes, kept);
  text = concat("%\n... (truncated, exceeded % bytes: % bytes omitted) ...\n%",
                {head, most, counts.dropped_bytes, tail});
}

void cut_streams(std::string& out, std::string& err, std::size_t room,
                 std::uint64_t (&dropped)[2]) {
  const std::size_t of_line = cost_of_line(room);
  const StreamRooms cost = {cost_of(out, of_line), cost_of(err, of_line)};
  const StreamRooms rooms = rooms_of(cost.out, cost.err, room);
  if (cost.out > rooms.out) dropped[0] += cut_stream(out, rooms.out, of_line, dropped[0]);
  if (cost.err > rooms.err) dropped[1] += cut_stream(err, rooms.err, of_line, dropped[1]);
}

std::pair<std::string_view, std::string_view> first_of_streams(std::string_view out,
                                                               std::string_view err,
                                                               std::size_t room) {
  const std::size_t of_line = cost_of_line(room);
  const StreamRooms rooms = rooms_of(cost_of(out, of_line), cost_of(err, of_line), room);
  return {head_within(out, rooms.out, of_line), head_within(err, rooms.err, of_line)};
}

std::pair<std::string_view, std::string_view> last_of_streams(std::string_view out,
                                                              std::string_view err,
                                                              std::size_t room) {
  const std::size_t of_line = cost_of_line(room);
  const StreamRooms rooms = rooms_of(cost_of(out, of_line), cost_of(err, of_line), room);
  return {tail_within(out, rooms.out, of_line), tail_within(err, rooms.err, of_line)};
}

void RawOutput::fit(std::size_t room, Result& result) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto size_in_base64 = [](const std::string& bytes) { return (bytes.size() + 2) / 3 * 4; };
  const StreamRooms rooms = rooms_of(size_in_base64(out_), size_in_base64(err_), room);
  out_.resize(std::min(out_.size(), rooms.out / 4 * 3));
  err_.resize(std::min(err_.size(), rooms.err / 4 * 3));
  result.out.clear();
  result.err.clear();
  // What a running command prints meanwhile is here first.
  const auto count = [](OutputCounts& counts, std::uint64_t kept) {
    counts.dropped_bytes = counts.total_bytes - std::min(counts.total_bytes, kept);
  };
  count(result.out_counts, out_.size());
  count(result.err_counts, err_.size());
}

void RawOutput::put(Json& object) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  set_member(object, "stdout", to_base64(out_));
  set_member(object, "stderr", to_base64(err_));
  set_member(object, "encoding", "base64");
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

void note_rest(const ToolOptions& options, Result& result, bool is_running) {
  for (const Stream stream : {Stream::out, Stream::err}) {
    const bool is_out = stream == Stream::out;
    const OutputCounts& counts = is_out ? result.out_counts : result.err_counts;
    std::string& file = is_out ? result.out_file : result.err_file;
    if (counts.dropped_bytes > 0) {
      result.notes.push_back(
          note_of_rest(options, stream, counts.total_bytes, file, counts.file_bytes));
    } else if (!file.empty() && !is_running) {
      ::unlink(file.c_str());
      file.clear();
    }
  }
}

void cut_result(const ToolOptions& options, std::size_t most, Result& result) {
  if (result.out.empty() && result.err.empty()) return;
  std::uint64_t dropped[] = {result.out_counts.dropped_bytes, result.err_counts.dropped_bytes};
  cut_streams(result.out, result.err, room_of_streams(options, most, result), dropped);
  result.out_counts.dropped_bytes = dropped[0];
  result.err_counts.dropped_bytes = dropped[1];
}

void fit_output(const ToolOptions& options, std::size_t most, Result& result, bool is_running) {
  cut_result(options, most, result);
  note_rest(options, result, is_running);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
