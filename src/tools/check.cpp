// --check: judging without running.

#include "tools/tools.hpp"
#include "tools/tools_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "json/json.hpp"
#include "mcp/mcp.hpp"
#include "policy/policy.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// The lines of standard input, each of at most `longest` bytes in memory.
class InputLines {
 public:
  explicit InputLines(std::size_t longest) : longest_(longest) {}
  // Goes to the next line; false at the end, and where reading fails.
  bool next() {
    line_.clear();
    too_long_ = false;
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
      if (end != std::string_view::npos) return true;
    }
  }
  const std::string& line() const { return line_; }
  bool too_long() const { return too_long_; }  // then the line is not whole
  int error() const { return error_; }         // an errno, or 0

 private:
  bool fill() {
    ssize_t size = -1;
    do size = ::read(STDIN_FILENO, buffer_, sizeof buffer_);
    while (size < 0 && errno == EINTR);
    if (size < 0) error_ = errno;
    rest_ = std::string_view(buffer_, size < 0 ? 0 : static_cast<std::size_t>(size));
    return size > 0;
  }
  std::size_t longest_;
  std::string line_ = {};
  bool too_long_ = false;
  int error_ = 0;
  std::string_view rest_ = {};
  char buffer_[65536];
};

// The command in a line of --check -.
Expected<std::string> command_of_line(const InputLines& lines, std::size_t longest) {
  if (lines.too_long())
    return make_error(ErrorCode::limit,
                      concat({"longer than ", std::to_string(longest), " bytes"}));
  JsonLimits limits;
  limits.max_values = 1;
  auto value = Json::parse(lines.line(), limits);
  if (!value) return with_prefix("not a JSON string: ", value.error());
  if (!value->is_string() || value->has_lone_surrogate())
    return make_error(ErrorCode::parse, "not a JSON string");
  return value->as_string();
}

// One answer for each line, as soon as it has come.
int check_lines(const Executor& executor) {
  const std::size_t longest = mcp::ServerOptions().max_line;
  InputLines lines(longest);
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
      answer.set("error", concat({"line ", std::to_string(number), ": ", script.error().message}));
    }
    if (!print(answer.dump() + "\n")) return fail(1, "cannot write to standard output");
  }
  if (lines.error() != 0)
    return fail(1, concat({"cannot read standard input: ", errno_text(lines.error())}));
  return status;
}

}  // namespace

inline namespace inner {

int check(const Executor& executor, const std::string& script) {
  if (script == "-") return check_lines(executor);
  const Judgement judgement = executor.judge(Command::shell(script));
  if (!print(to_json(judgement).dump() + "\n")) return fail(1, "cannot write to standard output");
  return judgement.verdict ? 0 : 1;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
