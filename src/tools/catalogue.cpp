// The tools as clients see them.

#include "tools/option_internal.hpp"
#include "tools/tools.hpp"
#include "tools/tools_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "mcp/mcp.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

using ToolHandler = mcp::ToolResult (*)(ToolSet&, const mcp::Call&);

// All tools but those of user containers, in the order of tools/list. See tool_of() for the texts.
// A parameter is explained once: models pay for every byte.
struct ToolRow {
  ToolHandler handler;
  const char* text;
  bool in_folder = true;  // see ToolChoice
};
constexpr ToolRow tool_rows[] = {
    {execute_command,
     "execute_command\tRun a command\truns\tRuns a shell command and returns its exit code, stdout "
     "and stderr. Blocks until it ends or its timeout passes (default {default}). Then everything "
     "it started is killed, also what `&` or nohup left in the background{instead}. `cd` and "
     "`export` carry on only to commands of the same session_id.\n"
     "command\trequired\tFor {shell}\n"
     "timeout\tseconds\tSeconds, not milliseconds, at most {most_seconds}.\n"
     "work_dir|cwd\ttext\tDefault, and base of relative paths: the workspace.\n"
     "session_id\ttext\tAny name of A-Z a-z 0-9 . _ -; without work_dir it starts where the last "
     "one ended.\n"
     "run_in_background_after\tseconds\tSeconds ({background}) after which it goes on in the "
     "background, without a timeout unless given.\n"
     "encoding\tutf-8|base64\tbase64: for binary output.\n"
     "max_output\tfrom 1\tBytes per stream, at most {most_bytes}.\n"
     // write_background_shell calls it input.
     "stdin|input\ttext\tDefault: empty.\n"
     "idle_timeout\tseconds\tSeconds of silence that end it."},
    {execute_code,
     "execute_code\tRun code\truns\tRuns code in sh, bash, python or javascript from a file. "
     "Markdown with fenced blocks is run block by block until one fails. A first line like "
     "`# filename: tools/report.py` names the file.\n"
     "code\trequired\n"
     "language\ttext\tOr markdown; default: guessed.\n"
     "timeout\tseconds\n"
     "work_dir|cwd\ttext\n"
     "max_output\tfrom 1\n"
     "idle_timeout\tseconds"},
    {start_background_shell,
     "start_background_shell\tStart a background command\truns\tStarts a shell command that goes "
     "on by itself, such as a server, and returns its shell_id at once.\n"
     "command\trequired\tFor {shell_path}.\n"
     "work_dir|cwd\ttext\n"
     "timeout\tseconds\tSeconds; default: none.\n"
     "terminal\ttruth\tFor an editor, a debugger, a REPL.\n"
     "rows\tfrom 1\tDefault: 24.\n"
     "cols\tfrom 1\tDefault: 80.\n"
     "idle_timeout\tseconds"},
    {get_background_shell_output,
     "get_background_shell_output\tRead a background command\treads\tReturns what a background "
     "command has printed. To read only what is new, give the last answer's `next` as `since`.\n"
     "shell_id\trequired\n"
     "since\ttext\n"
     "tail\tfrom 0\tOnly so many last lines.\n"
     "wait_for\ttext\tUntil a line after `since` matches this pattern (Python's syntax), or it "
     "ends; \"exit\": until it ends.\n"
     "timeout\tseconds\tSeconds to wait; default: 30.\n"
     "screen\ttruth\tWhat its terminal shows now, instead of the output; wait_for then looks at "
     "that, once there is more than `since`.\n"
     "max_output\tfrom 1",
     false},
    {get_background_shell_status,
     "get_background_shell_status\tCheck a background command\treads\tTells whether a background "
     "command is running, stopped (exit code 0), failed or killed.\n"
     "shell_id\trequired",
     false},
    {write_background_shell,
     "write_background_shell\tType into a background command\truns\tWrites to its standard input: "
     "input, then keys. A line needs its \\n, or on a terminal the key enter.\n"
     "shell_id\trequired\n"
     "input\ttext\n"
     "keys\ttexts\tFor a terminal: enter, tab, escape, up, pagedown, f1, ctrl-c, alt-x "
     "and such.\n"
     "close_input\ttruth\tIts input ends then.\n"
     "rows\tfrom 1\tAnother size for its terminal.\n"
     "cols\tfrom 1",
     false},
    {kill_background_shell,
     "kill_background_shell\tEnd a background command\truns\tEnds it and everything it has "
     "started: SIGTERM, then SIGKILL.\n"
     "shell_id\trequired",
     false},
    {list_background_shells,
     "list_background_shells\tList background commands\treads\tLists those that run, or ended "
     "lately.",
     false},
    {read_file,
     "read_file\tRead a file\treads\tReads a text file, or part of it. Images come as images.\n"
     "file_path\trequired\tAbsolute, or relative to the workspace.\n"
     "offset\tfrom 0\tCounted from 0.\n"
     "count\tfrom 0\tDefault: as many as fit.\n"
     "unit\tlines|bytes\tDefault: lines.\n"
     "encoding\tutf-8|base64"},
    {write_file,
     "write_file\tWrite a file\twrites\tWrites a whole file, and makes missing directories.\n"
     "file_path\trequired\n"
     "content\trequired\n"
     "encoding\tutf-8|base64"},
    {list_files,
     "list_files\tList a directory\treads\tLists what a directory holds.\n"
     "path\ttext\tDefault: the workspace.\n"
     "depth\tfrom 1\tLevels to go down; default: 1."},
    {read_docstring,
     "read_docstring\tRead a docstring\treads\tReads the docstring of a Python function, class, "
     "method (Class.method) or module, without running it.\n"
     "file_path\trequired\n"
     "function_name\ttext\tDotted; empty: the module."}};

std::string_view name_of(const ToolRow& row) {
  std::string_view text = row.text;
  return take_part(text, '\t');
}

// What the texts name in braces, by the executor and the options.
std::string tool_value(std::string_view name, const Executor& executor,
                       const ToolOptions& options) {
  const ExecutorOptions& settings = executor.options();
  if (name == "default"sv) return count_of_seconds(settings.timeout);
  if (name == "most_seconds"sv) return seconds_text(settings.max_timeout);
  if (name == "most_bytes"sv) return concat({options.max_output});
  if (name == "shell_path"sv) return to_utf8(settings.shell);
  if (name == "shell"sv)
    return concat({to_utf8(settings.shell), base_name(settings.shell) == "sh"
                                                ? ", which may lack bash's [[, source and arrays."
                                                : "."});
  if (name == "background"sv)
    return concat("default: %", {options.run_in_background_after == no_limit
                                     ? std::string("never")
                                     : seconds_text(options.run_in_background_after)});
  return is_disabled(options, "start_background_shell"sv)
             ? ""
             : ": for that there is start_background_shell";
}

SharedError no_such_tool(std::string_view name) {
  NearestName nearest(name);
  for (const ToolRow& row : tool_rows) nearest.consider(name_of(row));
  return make_error(ErrorCode::invalid_argument, "disabled_tools: there is no tool %%",
                    {in_quotes(name), nearest.suggestion()});
}

// The kinds of parameters.
void set_kind(mcp::Parameter& parameter, std::string_view kind) {
  parameter.nullable = kind != "required"sv;
  parameter.required = kind == "required"sv;
  parameter.type = mcp::ParameterType::string;
  if (kind == "seconds"sv) {
    parameter.type = mcp::ParameterType::number;
    parameter.greater_than = 0;
  } else if (starts_with(kind, "from "sv)) {
    parameter.type = mcp::ParameterType::integer;
    parameter.minimum = kind.back() - '0';
  } else if (kind == "truth"sv) {
    parameter.type = mcp::ParameterType::boolean;
  } else if (kind == "texts"sv) {
    parameter.type = mcp::ParameterType::array;
    parameter.items = mcp::ParameterType::string;
  }
  if (kind.find('|') == std::string_view::npos) return;
  while (!kind.empty()) add_words(parameter.choices, {take_part(kind, '|')});
}

}  // namespace

inline namespace inner {

mcp::Tool tool_of(std::string_view text, FunctionRef<std::string(std::string_view)> value) {
  const auto filled = [&](std::string_view form) {
    std::string result;
    while (!form.empty()) {
      result += take_part(form, '{');
      if (!form.empty()) result += value(take_part(form, '}'));
    }
    return result;
  };
  mcp::Tool tool;
  tool.tasks = false;
  std::string_view head = take_part(text, '\n');
  tool.name = take_part(head, '\t');
  tool.title = take_part(head, '\t');
  const std::string_view effect = take_part(head, '\t');
  tool.description = filled(head);
  // The hints beyond these have no meaning for a tool that only reads, or are the protocol's
  // defaults: clients that count the bytes of a listing pay for each.
  if (effect == "reads"sv)
    tool.read_only = true;
  else
    tool.destructive = true;
  if (effect == "writes"sv) {
    tool.idempotent = true;
    tool.open_world = false;
  }
  while (!text.empty()) {
    std::string_view row = take_part(text, '\n');
    std::string_view names = take_part(row, '\t');
    mcp::Parameter& parameter = tool.parameters.emplace_back();
    parameter.name = take_part(names, '|');
    parameter.other_name = names;
    set_kind(parameter, take_part(row, '\t'));
    if (parameter.name == "timeout"sv) tool.tasks = true;  // it may take long
    parameter.description = filled(row);
  }
  return tool;
}

void disable_other_tools(ToolOptions& options, std::string_view tool) {
  for (const ToolRow& row : tool_rows)
    if (name_of(row) != tool) add_words(options.disabled_tools, {name_of(row)});
}

Expected<void> check_disabled(const ToolOptions& options) {
  for (const std::string& disabled : options.disabled_tools)
    if (find_where(tool_rows, [&](const ToolRow& row) { return name_of(row) == disabled; }) ==
        std::end(tool_rows))
      return no_such_tool(disabled);
  return {};
}

// Every handler first counts its call in UseCounter.
Expected<void> add_chosen_tools(mcp::Server& server, const Executor& executor,
                                const ToolOptions& options, ToolChoice choose) {
  if (auto ok = check_disabled(options); !ok) return ok;
  for (const ToolRow& row : tool_rows) {
    if (is_disabled(options, name_of(row))) continue;
    mcp::Tool tool = tool_of(
        row.text, [&](std::string_view name) { return tool_value(name, executor, options); });
    if (row.handler == execute_command) tool.output_schema = execution_schema();
    tool.handler = [choose, &row](const mcp::Call& call) -> mcp::ToolResult {
      const auto set = choose(call, row.in_folder);
      if (!set) return failed("the call was cancelled"sv);
      std::string no = set->use->refusal_of_call(call.tool());
      if (!no.empty()) return refuse(*set, call, "calls_per_minute", std::move(no));
      return row.handler(*set, call);
    };
    if (auto ok = server.add(std::move(tool)); !ok) return ok;
  }
  return {};
}

}  // namespace inner

// All handlers share the ToolSet, which lives as long as the server has one of its tools.
Expected<void> add_execution_tools(mcp::Server& server, const Executor& executor,
                                   const ToolOptions& options) {
  const ExecutorPointer borrowed(std::shared_ptr<void>(), &executor);
  auto set = new_shared<ToolSet>(new_shared<SharedTools>(borrowed, options), borrowed);
  return add_chosen_tools(server, executor, options,
                          [set = std::move(set)](const mcp::Call&, bool) { return set; });
}

}  // namespace v0_1
}  // namespace codeexec
