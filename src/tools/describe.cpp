// The description of the place where commands run, for the model. Each sentence costs room in the
// model's context, so that it stands there only if it is true and of use for the tools that there
// are.

#include "jobs/jobs.hpp"
#include "tools/tools.hpp"
#include "tools/tools_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "policy/policy.hpp"
#include "policy/policy_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

void say(std::string& text, const char* sentence, Pieces values) {
  if (!text.empty()) text += ' ';
  append_all(text, sentence, values);
}

}  // namespace inner

std::string describe(const Executor& executor, const ToolOptions& options) {
  const ExecutorOptions& settings = executor.options();
  std::string text;
  const auto has_tool = [&](const char* tool) { return !is_disabled(options, tool); };
  if (has_tool("execute_command"))
    say(text,
        "execute_command runs shell commands, by default in %. They have no terminal. Of "
        "long output % bytes are shown, the beginning and the end%",
        {to_utf8(executor.workspace()), options.max_output,
         settings.spill_dir.empty() ? "." : "; a note names the file that has the whole."});
  if (has_tool("execute_command") && options.run_in_background_after != no_limit)
    say(text, "What still runs after % goes on in the background.",
        {count_of_seconds(options.run_in_background_after)});
  if (has_tool("start_background_shell"))
    say(text, "For servers and long work use start_background_shell (at most % at a time)%",
        {options.jobs.max_running,
         has_tool("get_background_shell_output")
             ? ", and get_background_shell_output with wait_for to follow it."
             : "."});
  const bool runs_commands =
      has_tool("execute_command") || has_tool("start_background_shell") || has_tool("execute_code");
  if (runs_commands) say(text, "Some commands are refused; the answer then says by which rule.");
  const PolicyOptions& policy = settings.policy;
  std::string usual;
  if (policy.allow_usual)
    for (const std::string_view name : usual_commands())
      append_all(usual, {usual.empty() ? "" : " ", name});
  if (runs_commands && !policy.allowed.empty())
    say(text, "Only commands that match one of these patterns may run: % .%%",
        {to_utf8(joined(policy.allowed, "  "sv)),
         usual.empty() ? "" : " So may, in their usual forms: ", usual});
  else if (runs_commands && !usual.empty())
    say(text, "Only these commands may run, in their usual forms: %", {usual});
  if (runs_commands && !policy.blocked.empty())
    say(text, "Commands that match one of these patterns are refused: % .",
        {to_utf8(joined(policy.blocked, "  "sv))});
  if (runs_commands && !(policy.ask_commands.empty() && policy.ask_rules.empty()))
    say(text, "Some commands wait until a person allows them; do not go around a no.");
  if (runs_commands && executor.delete_guard()) say(text, "Read a file before you delete it.");
  if (options.calls_per_minute != 0)
    say(text, "Each tool may be called % times in a minute.", {options.calls_per_minute});
  if (runs_commands && options.running_time != no_limit)
    say(text, "All commands together may take %.", {count_of_seconds(options.running_time)});
  if (const std::string place = executor.describe_place(); runs_commands && !place.empty())
    say(text, "%", {place});
  return text;
}

}  // namespace v0_1
}  // namespace codeexec
