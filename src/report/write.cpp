// --report: the records of audit logs as data of a page.
//
// The page is constant text around two blocks of data, which no browser executes: one record a line
// as JSON, and a summary. A record stands there as in the audit log, but
//   - without hashes,
//   - without those of `kept_members` that it has in common with the record before it; null: the
//     record before has it, and this one does not,
//   - with long texts and lists cut; such a record has "cut":true.
// Every `<` is escaped, so that no text can end its block or begin a comment. The script shows
// texts as text only, and the page's content security policy lets nothing else run or be loaded.

#include "report/page_internal.hpp"
#include "report/report_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/names_internal.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr std::uint64_t most_records = 20000;  // in a page, which is read as a whole
constexpr std::int64_t room_for_records = std::int64_t{7} << 20;
constexpr std::int64_t room_for_record = 16384;  // at most, with what short records have left over
constexpr std::size_t least_text = 80;           // is shown of a text, however little room there is
constexpr std::size_t longest_member_name = 64;

// Members that a record shares with the one before it are left out: the page has the same list.
constexpr auto kept_members = NameList{"host", "pid",      "agent_id",  "client", "session_id",
                                       "tool", "work_dir", "container", "place",  "sandbox"};
// What no reader of a page needs.
constexpr auto dropped_members =
    NameSet{"allowed", "hash", "input_sha256", "previous", "stderr_sha256", "stdout_sha256"};

// A value of a record, with texts and lists cut that do not fit. `room` becomes less by what it
// takes.
Json cut_value(const Json& value, std::size_t& room, bool& is_cut) {
  const auto take = [&room](std::size_t size) { room -= std::min(room, size); };
  if (value.is_string()) {
    const std::string& text = value.as_string();
    // So that the texts after this one have room, too.
    const std::size_t most = std::max(room / 2, least_text);
    is_cut = is_cut || text.size() > most;
    take(std::min(text.size(), most) + 2);
    return head_and_tail(text, most, 0);
  }
  take(8);
  if (value.is_array()) {
    Json list = Json::array();
    for (const Json& item : value.items()) {
      if (room == 0) {
        is_cut = true;
        break;
      }
      list.push_back(cut_value(item, room, is_cut));
    }
    return list;
  }
  if (!value.is_object()) return value;
  Json::Object members;
  for (const Json::Member& member : value.members()) {
    if (room == 0) {
      is_cut = true;
      break;
    }
    members.push_back({std::string(utf8_prefix(member.name, longest_member_name)),
                       cut_value(member.value, room, is_cut)});
    take(member.name.size());
  }
  return Json(std::move(members));
}

// Writes the page in pieces. After an error nothing more is written.
class PageWriter {
 public:
  // `records`: how many will come.
  PageWriter(int fd, std::uint64_t records)
      : fd_(fd), share_(room_for_records / static_cast<std::int64_t>(std::max(records, least))) {
    waiting_ = page_begin;
  }

  void add(const Json& record) {
    room_ += share_;
    auto room = static_cast<std::size_t>(
        std::clamp<std::int64_t>(room_, static_cast<std::int64_t>(least_text), room_for_record));
    bool is_cut = false;
    Json::Object members;
    for (const std::string_view kept : kept_members) {
      const std::string name(kept);
      const Json value = cut_value(record[name], room, is_cut);
      std::string text = value.dump();
      std::string& before = kept_[name];
      if (text == (before.empty() ? "null" : before)) continue;
      before = std::move(text);
      members.push_back({name, value});
    }
    for (const Json::Member& member : record.members()) {
      if (kept_members.has(member.name) || dropped_members.has(member.name)) continue;
      if (room == 0 && members.size() > most_members) {
        is_cut = true;
        break;
      }
      members.push_back({std::string(utf8_prefix(member.name, longest_member_name)),
                         cut_value(member.value, room, is_cut)});
      room -= std::min(room, member.name.size());
    }
    if (is_cut) members.push_back({"cut", true});
    const std::size_t size = waiting_.size();
    append_data(Json(std::move(members)));
    room_ -= static_cast<std::int64_t>(waiting_.size() - size);
    if (waiting_.size() >= (std::size_t{1} << 16)) flush();
  }

  // Ends the page. Returns an errno, or 0.
  int finish(const Json& summary) {
    waiting_ += page_middle;
    append_data(summary);
    waiting_ += page_end;
    flush();
    return error_;
  }

 private:
  static constexpr std::uint64_t least = 1;
  static constexpr std::size_t most_members = 60;

  void append_data(const Json& value) {
    const std::string text = value.dump();
    for (std::string_view rest = text; !rest.empty();) {
      const std::size_t size = std::min(rest.find('<'), rest.size());
      append_all(waiting_, {rest.substr(0, size), size < rest.size() ? "\\u003c" : "\n"});
      rest.remove_prefix(std::min(size + 1, rest.size()));
    }
  }

  void flush() {
    if (error_ == 0) error_ = write_all(fd_, waiting_);
    waiting_.clear();
  }

  int fd_;
  std::int64_t share_;
  std::int64_t room_ = 0;  // below zero after hostile texts, whose escapes take more than they do
  TextMap kept_ = {};      // the members that the next record may have in common, as JSON
  std::string waiting_ = {};
  int error_ = 0;
};

// How many lines each of the files has, with a line for each that cannot be read.
std::vector<std::uint64_t> lines_of_files(const std::vector<std::string>& files,
                                          std::string& told) {
  std::vector<std::uint64_t> counts;
  for (const std::string& path : files) {
    std::uint64_t& count = counts.emplace_back(0);
    const UniqueFd file(
        above_standard_streams(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)));
    int error = file ? 0 : errno;
    struct stat status {};
    if (error == 0 && ::fstat(file.get(), &status) == 0 && !S_ISREG(status.st_mode))
      error = S_ISDIR(status.st_mode) ? EISDIR : ESPIPE;
    if (error == 0) {
      InputLines lines(file.get(), 0);
      while (lines.next()) ++count;
      error = lines.error();
    }
    if (error != 0) append_all(told, "%: %\n", {printable(path), errno_text(error)});
  }
  return counts;
}

// Where the page goes: never over one of the logs.
Expected<UniqueFd> open_page(const std::string& output, const std::vector<std::string>& files) {
  if (output.empty()) return UniqueFd(::dup(STDOUT_FILENO));
  UniqueFd fd(above_standard_streams(
      ::open(output.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600)));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0)
    return system_error(errno, "cannot write %", {in_quotes(output)});
  for (const std::string& path : files) {
    struct stat log {};
    if (::stat(path.c_str(), &log) == 0 && log.st_dev == status.st_dev &&
        log.st_ino == status.st_ino)
      return make_error(ErrorCode::invalid_argument, "% is an audit log: choose another --output",
                        {in_quotes(output)});
  }
  if (S_ISREG(status.st_mode) && ::ftruncate(fd.get(), 0) != 0)
    return system_error(errno, "cannot write %", {in_quotes(output)});
  return fd;
}

}  // namespace

inline namespace inner {

Expected<std::string> write_report(const std::vector<std::string>& files,
                                   const std::string& output) {
  std::string told;
  const std::vector<std::uint64_t> counts = lines_of_files(files, told);
  std::uint64_t total = 0;
  for (const std::uint64_t count : counts) total += count;
  if (total == 0 && !told.empty())
    return make_error(ErrorCode::not_found, "nothing to report: %",
                      {told.substr(0, told.size() - 1)});
  const auto page_file = open_page(output, files);
  if (!page_file) return page_file.failure();
  const std::uint64_t left_out = total - std::min(total, most_records);
  PageWriter page(page_file->get(), total - left_out);
  std::uint64_t line = 0;
  std::uint64_t shown = 0;
  Json chains = Json::array();
  for (std::size_t i = 0; i < files.size(); ++i) {
    AuditReader reader;
    if (counts[i] == 0 || !reader.open(files[i])) continue;
    // Lines that have come since they were counted are left for the next report.
    while (reader.number() < counts[i] && reader.next()) {
      Json record;
      if (++line <= left_out || !reader.read(record)) continue;
      page.add(record);
      ++shown;
    }
    if (auto ok = reader.finish(); !ok) append_all(told, "%\n", {ok.error().message});
    told += reader.findings();
    chains.push_back(concat("%: %", {printable(files[i]), reader.summary()}));
  }
  Json summary = Json::object();
  summary.set("left_out"sv, left_out);
  summary.set("made"sv, utc_timestamp());
  summary.set("version"sv, CODEEXEC_VERSION_STRING);
  summary.set("findings"sv, told);
  summary.set("chains"sv, std::move(chains));
  if (const int error = page.finish(summary); error != 0)
    return system_error(error, "cannot write %", {in_quotes(output)});
  return concat("%% records in the report%\n",
                {told, shown,
                 left_out > 0 ? concat("; of % lines the first % are left out", {total, left_out})
                              : std::string()});
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
