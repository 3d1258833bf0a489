// --check: judging without running.

#include "tools/tools.hpp"
#include "tools/tools_internal.hpp"

#include "audit/audit_internal.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "json/json.hpp"
#include "mcp/mcp.hpp"
#include "policy/policy.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

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

// The exit status of several judgements: a refusal counts more than a question.
int status_after(int status, const Verdict& verdict) {
  if (verdict || status == 2) return status;
  return verdict.must_ask && status != 1 ? 3 : 1;
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
      status = status_after(status, judgement.verdict);
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

}  // namespace

inline namespace inner {

int check(const Executor& executor, const std::string& script) {
  if (script == "-") return check_lines(executor);
  const Judgement judgement = executor.judge(Command::shell(script));
  return print_answer(to_json(judgement).dump() + "\n", status_after(0, judgement.verdict));
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
