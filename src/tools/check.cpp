// --check: judging without running; --verify-audit.
//
// Both read lines of any length in bounded memory: a line that is too long is skipped to its end,
// and reported.

#include "tools/tools.hpp"
#include "tools/tools_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "mcp/mcp.hpp"
#include "policy/policy.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// The lines of a file, each of at most `longest` bytes in memory.
class InputLines {
 public:
  InputLines(int fd, std::size_t longest) : fd_(fd), longest_(longest) {}
  // Goes to the next line; false at the end, and where reading fails.
  bool next() {
    line_.clear();
    too_long_ = false;
    ended_ = false;
    bool any = false;
    for (;;) {
      if (rest_.empty() && !fill()) return any;
      any = true;
      const std::size_t end = rest_.find('\n');
      const std::string_view piece = rest_.substr(0, end);
      if (line_.size() + piece.size() > longest_)
        too_long_ = true;
      else
        line_ += piece;
      rest_.remove_prefix(std::min(piece.size() + 1, rest_.size()));
      ended_ = end != std::string_view::npos;
      if (ended_) return true;
    }
  }
  const std::string& line() const { return line_; }
  bool too_long() const { return too_long_; }  // then the line is not whole
  bool ended() const { return ended_; }        // by a newline
  int error() const { return error_; }         // an errno, or 0

 private:
  bool fill() {
    ssize_t size = -1;
    do size = ::read(fd_, buffer_, sizeof buffer_);
    while (size < 0 && errno == EINTR);
    if (size < 0) error_ = errno;
    rest_ = std::string_view(buffer_, size < 0 ? 0 : static_cast<std::size_t>(size));
    return size > 0;
  }
  int fd_;
  std::size_t longest_;
  std::string line_ = {};
  bool too_long_ = false;
  bool ended_ = false;
  int error_ = 0;
  std::string_view rest_ = {};
  char buffer_[65536];
};

// The command in a line of --check -.
Expected<std::string> command_of_line(const InputLines& lines, std::size_t longest) {
  if (lines.too_long()) return make_error(ErrorCode::limit, "longer than % bytes", {longest});
  JsonLimits limits;
  limits.max_values = 1;
  auto value = Json::parse(lines.line(), limits);
  if (!value) return with_prefix("not a JSON string: ", {}, value.error());
  if (!value->is_string() || value->has_lone_surrogate())
    return make_error(ErrorCode::parse, "not a JSON string");
  return value->as_string();
}

// One answer for each line, as soon as it has come.
int check_lines(const Executor& executor) {
  const std::size_t longest = mcp::ServerOptions().max_line;
  InputLines lines(STDIN_FILENO, longest);
  int status = 0;
  for (std::size_t number = 1; lines.next(); ++number) {
    const auto script = command_of_line(lines, longest);
    Json answer;
    if (script) {
      const Judgement judgement = executor.judge(Command::shell(*script));
      if (!judgement.verdict) status = std::max(status, 1);
      answer = to_json(judgement);
    } else {
      status = 2;
      set_member(answer, "error", concat("line %: %", {number, script.error().message}));
    }
    if (!print(answer.dump() + "\n")) return fail(1, "cannot write to standard output");
  }
  if (lines.error() != 0)
    return fail(1, concat("cannot read standard input: %", {errno_text(lines.error())}));
  return status;
}

// The problem of a line of an audit log, or null. Each record has the hash of the one before it and
// its own, so that a change breaks the chain there. `previous` is the hash of the record before,
// and becomes that of this one; it is empty before the first. `first`: no line stands before this
// one; then `start` becomes the hash that it names.
const char* problem_of_record(const InputLines& lines, bool first, std::string& previous,
                              std::string& start) {
  const std::string_view line = lines.line();
  const std::string_view hash = audit_hash(line);
  if (!lines.ended() || lines.too_long() || hash.empty())
    return "is cut, or is no record of this log";
  const std::size_t body = line.size() - hash.size() - audit_end.size() - 2;
  if (sha256(line.substr(0, body)) != hash) return "was changed after it had been written";
  std::string_view told = line.substr(audit_begin.size(), sha256_digits);
  if (told[0] == '"') told = {};
  if (!first && told != previous)
    return "does not follow the line before it: lines were taken out, put in or exchanged there";
  if (first) start = told;
  previous = hash;
  return nullptr;
}

}  // namespace

inline namespace inner {

// Lines without hashes may stand before the first record that has them, and nowhere else. The end
// of a log can be cut off unseen, so that the last hash is printed: an operator may keep it
// elsewhere.
int verify_audit(const std::string& path) {
  constexpr std::size_t longest_record = std::size_t{64} << 20;
  const UniqueFd file(above_standard_streams(::open(path.c_str(), O_RDONLY | O_CLOEXEC)));
  if (!file) return fail(2, concat("cannot open %: %", {in_quotes(path), errno_text(errno)}));
  InputLines lines(file.get(), longest_record);
  std::string previous;
  std::string start;
  std::size_t older = 0;
  std::size_t number = 0;
  while (lines.next()) {
    ++number;
    // A log may have begun before its records had hashes.
    if (previous.empty() && lines.ended() && !starts_with(lines.line(), audit_begin)) {
      ++older;
      continue;
    }
    if (const char* const problem = problem_of_record(lines, number == 1, previous, start)) {
      print(concat("%: line % %\n", {path, number, problem}));
      return 1;
    }
  }
  if (lines.error() != 0)
    return fail(2, concat("cannot read %: %", {in_quotes(path), errno_text(lines.error())}));
  const std::string text = concat(
      "%: % records as they were written%%%%%\n",
      {path, number - older, older > 0 ? concat(", after % lines without a hash", {older}) : "",
       start.empty() ? "" : ", the first after a record that is not here and has the hash ", start,
       previous.empty() ? "" : "; the last hash is ", previous});
  return print(text) ? 0 : fail(1, "cannot write to standard output");
}

int check(const Executor& executor, const std::string& script) {
  if (script == "-") return check_lines(executor);
  const Judgement judgement = executor.judge(Command::shell(script));
  if (!print(to_json(judgement).dump() + "\n")) return fail(1, "cannot write to standard output");
  return judgement.verdict ? 0 : 1;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
