// The tools as clients see them.

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

mcp::Parameter& add_text(mcp::Tool& tool, const char* name, std::string_view description) {
  return add_parameter(tool, name, mcp::ParameterType::string, description);
}

void add_choice(mcp::Tool& tool, const char* name, const char* first, const char* second,
                const char* description) {
  add_text(tool, name, description).choices = {first, second};
}

void add_command(mcp::Tool& tool, const Executor& executor) {
  const std::string& shell = executor.options().shell;
  required(tool, "command",
           concat("For %%", {to_utf8(shell), base_name(shell) == "sh"
                                                 ? ", which may lack bash's [[, source and arrays."
                                                 : "."}));
}

void add_work_dir(mcp::Tool& tool) {
  add_text(tool, "work_dir", "Directory; default, and base of relative paths: the workspace.")
      .other_name = "cwd";
}

void add_timeout(mcp::Tool& tool, const Executor& executor) {
  seconds(tool, "timeout",
          concat("Seconds, not milliseconds, at most %.",
                 {seconds_text(executor.options().max_timeout)}));
}

void add_max_output(mcp::Tool& tool, const ToolOptions& options) {
  count(tool, "max_output", concat("Bytes per stream, at most %.", {options.max_output})).minimum =
      1;
}

using ToolHandler = mcp::ToolReply (*)(ToolSet&, const mcp::Call&);
struct BoundTool {
  mcp::Tool tool;
  ToolHandler handler;
};
using BoundTools = std::vector<BoundTool>;

mcp::Tool& add_tool(BoundTools& tools, ToolHandler handler, const char* name, const char* title,
                    Effect effect, std::string_view description) {
  tools.push_back({make_tool(name, title, effect, description), handler});
  return tools.back().tool;
}

void add_command_tools(const Executor& executor, const ToolOptions& options, BoundTools& tools) {
  const std::string background =
      options.run_in_background_after == no_limit
          ? std::string("default: never")
          : concat("default: %", {seconds_text(options.run_in_background_after)});
  mcp::Tool& command = add_tool(
      tools, execute_command, "execute_command", "Run a command", Effect::runs,
      concat("Runs a shell command and returns its exit code, stdout and stderr. Blocks until it "
             "ends or its timeout passes (default %). Then everything it started is killed, also "
             "what `&` or nohup left in the background%. Standard input is empty without stdin. "
             "Directory and variables of one command are gone in the next, unless both have the "
             "same session_id: then `cd` and `export` carry on.",
             {count_of_seconds(executor.options().timeout),
              is_disabled(options, "start_background_shell"sv)
                  ? ""
                  : ": for that there is start_background_shell"}));
  add_command(command, executor);
  add_timeout(command, executor);
  add_work_dir(command);
  add_text(
      command, "session_id",
      "Any name (1 to 64 of A-Z a-z 0-9 . _ -) for commands that share directory and variables; "
      "without work_dir each starts where the last one ended.");
  seconds(command, "run_in_background_after",
          concat("Seconds (%) after which it goes on in the background, without a timeout unless "
                 "given; the answer has its shell_id.",
                 {background}));
  add_choice(command, "encoding", "utf-8", "base64", "base64: for binary output.");
  add_max_output(command, options);
  // write_background_shell calls it input.
  add_text(command, "stdin", "Text for its standard input.").other_name = "input";
  command.output_schema = execution_schema();
  mcp::Tool& code = add_tool(
      tools, execute_code, "execute_code", "Run code", Effect::runs,
      "Runs code in sh, bash, python or javascript from a file. Markdown "
      "with several fenced blocks is run block by block until one fails. A first line like "
      "`# filename: tools/report.py` names the file.");
  required(code, "code", "The code, or Markdown with fenced blocks.");
  add_text(code, "language", "Or markdown; default: guessed.");
  add_timeout(code, executor);
  add_work_dir(code);
  add_max_output(code, options);
}

void add_shell_tools(const Executor& executor, const ToolOptions& options, BoundTools& tools) {
  const auto add_shell_id = [](mcp::Tool& tool) {
    required(tool, "shell_id", "What start_background_shell gave.");
  };
  mcp::Tool& start = add_tool(tools, start_background_shell, "start_background_shell",
                              "Start a background command", Effect::runs,
                              "Starts a shell command that goes on by itself, such as a server, "
                              "and returns its shell_id at once.");
  add_command(start, executor);
  add_work_dir(start);
  seconds(start, "timeout", "Seconds until it is killed; default: none.");
  mcp::Tool& output = add_tool(tools, get_background_shell_output, "get_background_shell_output",
                               "Read a background command", Effect::reads,
                               "Returns what a background command has printed. To read only what "
                               "is new, give the last answer's `next` as `since`.");
  add_shell_id(output);
  add_text(output, "since", "An earlier answer's `next`.");
  count(output, "tail", "Only so many last lines.");
  add_text(output, "wait_for",
           "Wait until a line after `since` matches this pattern (Python's syntax), or the end; "
           "\"exit\": until the end.");
  seconds(output, "timeout", "Seconds to wait at most; default: 30.");
  add_max_output(output, options);
  add_shell_id(add_tool(tools, get_background_shell_status, "get_background_shell_status",
                        "Check a background command", Effect::reads,
                        "Tells whether a background command is running, stopped (exit code 0), "
                        "failed or killed."));
  mcp::Tool& write = add_tool(tools, write_background_shell, "write_background_shell",
                              "Type into a background command", Effect::runs,
                              "Writes to its standard input. A line needs its \\n.");
  add_shell_id(write);
  required(write, "input", "The text, as it is.");
  add_parameter(write, "close_input", mcp::ParameterType::boolean,
                "It then reads the end of its input.");
  add_shell_id(add_tool(tools, kill_background_shell, "kill_background_shell",
                        "End a background command", Effect::runs,
                        "Ends it and everything it has started: SIGTERM, then SIGKILL."));
  add_tool(tools, list_background_shells, "list_background_shells", "List background commands",
           Effect::reads, "Lists those that run, or ended lately.");
}

void add_file_tools(BoundTools& tools) {
  const auto add_file_path = [](mcp::Tool& tool) {
    required(tool, "file_path", "Absolute, or relative to the workspace.");
  };
  mcp::Tool& read = add_tool(tools, read_file, "read_file", "Read a file", Effect::reads,
                             "Reads a text file, or part of it. Images come as images.");
  add_file_path(read);
  count(read, "offset", "Where to begin, counted from 0; default: 0.");
  count(read, "count", "How many lines or bytes; default: as many as fit.");
  add_choice(read, "unit", "lines", "bytes", "Of offset and count; default: lines.");
  add_choice(read, "encoding", "utf-8", "base64", "base64: for binary files.");
  mcp::Tool& write = add_tool(tools, write_file, "write_file", "Write a file", Effect::writes_files,
                              "Writes a whole file, and makes missing directories.");
  add_file_path(write);
  required(write, "content", "All that will be in the file.");
  add_choice(write, "encoding", "utf-8", "base64", "Of content; default: utf-8.");
  mcp::Tool& list = add_tool(tools, list_files, "list_files", "List a directory", Effect::reads,
                             "Lists what a directory holds.");
  add_text(list, "path", "The directory; default: the workspace.");
  count(list, "depth", "Levels of directories to go down; default: 1.").minimum = 1;
  mcp::Tool& docstring =
      add_tool(tools, read_docstring, "read_docstring", "Read a docstring", Effect::reads,
               "Reads the docstring of a Python function, class, method (Class.method) or module "
               "from its source, without running it.");
  add_file_path(docstring);
  add_text(docstring, "function_name", "Dotted; empty: the module.");
}

std::vector<BoundTool> all_tools(const Executor& executor, const ToolOptions& options) {
  std::vector<BoundTool> tools;
  add_command_tools(executor, options, tools);
  add_shell_tools(executor, options, tools);
  add_file_tools(tools);
  return tools;
}

}  // namespace

inline namespace inner {

mcp::Parameter& add_parameter(mcp::Tool& tool, const char* name, mcp::ParameterType type,
                              std::string_view description) {
  mcp::Parameter& parameter = tool.parameters.emplace_back();
  parameter.name = name;
  parameter.type = type;
  parameter.nullable = true;
  parameter.description = description;
  return parameter;
}

void required(mcp::Tool& tool, const char* name, std::string_view description) {
  mcp::Parameter& needed = add_parameter(tool, name, mcp::ParameterType::string, description);
  needed.nullable = false;
  needed.required = true;
}

mcp::Parameter& count(mcp::Tool& tool, const char* name, std::string_view description) {
  mcp::Parameter& number = add_parameter(tool, name, mcp::ParameterType::integer, description);
  number.minimum = 0;
  return number;
}

void seconds(mcp::Tool& tool, const char* name, std::string_view description) {
  add_parameter(tool, name, mcp::ParameterType::number, description).greater_than = 0;
}

mcp::Tool make_tool(const char* name, const char* title, Effect effect,
                    std::string_view description) {
  mcp::Tool tool;
  tool.name = name;
  tool.title = title;
  tool.description = description;
  tool.annotations.read_only = effect == Effect::reads;
  tool.annotations.destructive = effect != Effect::reads;
  tool.annotations.idempotent = effect != Effect::runs;
  tool.annotations.open_world = effect == Effect::runs;
  return tool;
}

Expected<void> check_disabled(const Executor& executor, const ToolOptions& options) {
  if (options.disabled_tools.empty()) return {};
  const std::vector<BoundTool> tools = all_tools(executor, options);
  for (const std::string& disabled : options.disabled_tools) {
    const auto known =
        find_where(tools, [&](const BoundTool& bound) { return bound.tool.name == disabled; });
    if (known == tools.end())
      return make_error(ErrorCode::invalid_argument, "disabled_tools: there is no tool %",
                        {in_quotes(disabled)});
  }
  return {};
}

}  // namespace inner

Expected<void> add_execution_tools(mcp::Server& server, const Executor& executor,
                                   const ToolOptions& options) {
  if (auto ok = check_disabled(executor, options); !ok) return ok;
  std::vector<BoundTool> tools = all_tools(executor, options);
  const auto set = new_shared<ToolSet>(executor, options);
  for (BoundTool& bound : tools) {
    if (is_disabled(options, bound.tool.name)) continue;
    bound.tool.handler = [set, handler = bound.handler](const mcp::Call& call) -> mcp::ToolReply {
      std::string no = set->use->refusal_of_call(call.tool());
      if (!no.empty()) return refuse(*set, call, "calls_per_minute", std::move(no));
      return handler(*set, call);
    };
    if (auto ok = server.add(std::move(bound.tool)); !ok) return ok;
  }
  return {};
}

}  // namespace v0_1
}  // namespace codeexec
