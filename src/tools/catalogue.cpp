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

mcp::Parameter parameter(const char* name, mcp::ParameterType type, std::string description) {
  mcp::Parameter parameter;
  parameter.name = name;
  parameter.type = type;
  parameter.nullable = true;
  parameter.description = std::move(description);
  return parameter;
}

mcp::Parameter choice(const char* name, std::vector<std::string> choices, std::string description) {
  mcp::Parameter chosen = parameter(name, mcp::ParameterType::string, std::move(description));
  chosen.choices = std::move(choices);
  return chosen;
}

mcp::Parameter work_dir_parameter(const Executor& executor) {
  mcp::Parameter folder =
      parameter("work_dir", mcp::ParameterType::string,
                concat({"Where to run it: absolute, or relative to ", to_utf8(executor.workspace()),
                        ", which is the default."}));
  folder.other_name = "cwd";
  return folder;
}

mcp::Parameter timeout_parameter(const Executor& executor) {
  return seconds("timeout",
                 concat({"Seconds, fractions allowed, at most ",
                         seconds_text(executor.options().max_timeout), ". Not milliseconds."}));
}

mcp::Parameter max_output_parameter(const ToolOptions& options) {
  mcp::Parameter bytes =
      count("max_output", concat({"Bytes of each stream to show; default and most: ",
                                  std::to_string(options.max_output), "."}));
  bytes.minimum = 1;
  return bytes;
}

// write_background_shell calls it input.
mcp::Parameter stdin_parameter() {
  mcp::Parameter text =
      parameter("stdin", mcp::ParameterType::string, "Text for its standard input.");
  text.other_name = "input";
  return text;
}

using ToolHandler = mcp::ToolReply (*)(ToolSet&, const mcp::Call&);
struct BoundTool {
  mcp::Tool tool;
  ToolHandler handler;
};

void add_command_tools(const Executor& executor, const ToolOptions& options,
                       std::vector<BoundTool>& tools) {
  const std::string background =
      options.run_in_background_after == no_limit
          ? std::string("default: never")
          : concat({"default: ", seconds_text(options.run_in_background_after)});
  mcp::Tool tool = make_tool(
      "execute_command", "Run a command", Effect::runs,
      concat({"Runs a shell command and returns its exit code, stdout and stderr. Blocks until the "
              "command ends or its timeout passes (default ",
              count_of_seconds(executor.options().timeout),
              "). Then everything it started is killed, also what `&` or nohup left in the "
              "background",
              is_disabled(options, "start_background_shell")
                  ? ""
                  : ": for that there is start_background_shell",
              ". Standard input is empty without stdin. Commands do not share a shell: the working "
              "directory and "
              "variables of one "
              "are gone in the next, unless both have the same session_id: then `cd` and `export` "
              "carry on."}),
      {required("command", "The command line, for the shell."), timeout_parameter(executor),
       work_dir_parameter(executor),
       parameter("session_id", mcp::ParameterType::string,
                 "A name of your choice (A-Z a-z 0-9 . _ -, at most 64) for commands that follow "
                 "each other; without a work_dir they start where the last one ended, which "
                 "session_work_dir of the answer tells."),
       seconds("run_in_background_after",
               concat({"Seconds (", background,
                       "): a command that is still running then goes on in the background, without "
                       "a timeout unless one is given, and the answer has its shell_id."})),
       choice("encoding", {"utf-8", "base64"},
              "base64: stdout and stderr as they are, for binary output."),
       max_output_parameter(options), stdin_parameter()});
  tool.output_schema = execution_schema();
  tools.push_back({std::move(tool), execute_command});
  tools.push_back(
      {make_tool(
           "execute_code", "Run code", Effect::runs,
           "Runs code in sh, bash, python or javascript from a file, as a command of its own. "
           "Markdown with several fenced blocks is run block by block until one fails. A "
           "first line like `# filename: tools/report.py` names the file.",
           {required("code", "The code, or Markdown with fenced blocks."),
            parameter("language", mcp::ParameterType::string,
                      "The language; without it Markdown is looked for, then guessed."),
            timeout_parameter(executor), work_dir_parameter(executor),
            max_output_parameter(options)}),
       execute_code});
}

void add_shell_tools(const Executor& executor, const ToolOptions& options,
                     std::vector<BoundTool>& tools) {
  const mcp::Parameter shell_id =
      required("shell_id", "As start_background_shell or list_background_shells gave it.");
  const auto add = [&](const char* name, const char* title, Effect effect, const char* description,
                       std::vector<mcp::Parameter> parameters, ToolHandler handler) {
    tools.push_back({make_tool(name, title, effect, description, std::move(parameters)), handler});
  };
  add("start_background_shell", "Start a command in the background", Effect::runs,
      "Starts a shell command that goes on by itself, such as a server or a long experiment, and "
      "returns its shell_id at once. It passes the same checks as execute_command.",
      {required("command", "The command line, for the shell."), work_dir_parameter(executor),
       seconds("timeout", "Seconds until it is killed; default: none.")},
      start_background_shell);
  add("get_background_shell_output", "Read what a background command printed", Effect::reads,
      "Returns what a background command has printed, also a last line that is not finished. To "
      "read only what is new, give the `next` of the last answer as `since`.",
      {shell_id, parameter("since", mcp::ParameterType::string, "The `next` of an earlier answer."),
       count("tail", "Only so many lines from the end of each stream."),
       parameter(
           "wait_for", mcp::ParameterType::string,
           "Wait until a line that came after `since` matches this pattern (Python's syntax), "
           "or the command has ended; \"exit\": until it has ended."),
       seconds("timeout", "Seconds to wait at most, with wait_for; default: 30."),
       max_output_parameter(options)},
      get_background_shell_output);
  add("get_background_shell_status", "Look after a background command", Effect::reads,
      "Tells whether a background command is running, stopped (exit code 0), failed or killed.",
      {shell_id}, get_background_shell_status);
  mcp::Parameter close_input = parameter("close_input", mcp::ParameterType::boolean,
                                         "No more input follows: the command reads its end.");
  add("write_background_shell", "Type into a background command", Effect::runs,
      "Writes to the standard input of a background command. A line needs its \\n.",
      {shell_id, required("input", "The text, as it is."), close_input}, write_background_shell);
  add("kill_background_shell", "End a background command", Effect::runs,
      "Ends a background command and everything it has started: SIGTERM, then SIGKILL.", {shell_id},
      kill_background_shell);
  add("list_background_shells", "List background commands", Effect::reads,
      "Lists the background commands that run, and those that ended lately.", {},
      list_background_shells);
}

void add_file_tools(std::vector<BoundTool>& tools) {
  mcp::Parameter depth = count("depth", "Levels of directories to go down; default: 1.");
  depth.minimum = 1;
  const mcp::Parameter file_path = required("file_path", "Absolute, or relative to the workspace.");
  const auto add = [&](const char* name, const char* title, Effect effect, const char* description,
                       std::vector<mcp::Parameter> parameters, ToolHandler handler) {
    tools.push_back({make_tool(name, title, effect, description, std::move(parameters)), handler});
  };
  add("read_file", "Read a file", Effect::reads,
      "Reads a text file, or a part of it, by lines or bytes. Images come as images.",
      {file_path, count("offset", "Where to begin, counted from 0; default: 0."),
       count("count", "How many lines or bytes; default: as many as fit."),
       choice("unit", {"lines", "bytes"}, "Of offset and count; default: lines."),
       choice("encoding", {"utf-8", "base64"}, "base64: for binary files.")},
      read_file);
  add("write_file", "Write a file", Effect::writes_files,
      "Replaces a file as a whole, or makes it together with missing directories.",
      {file_path, required("content", "All that will be in the file."),
       choice("encoding", {"utf-8", "base64"}, "Of content; default: utf-8.")},
      write_file);
  add("list_files", "List a directory", Effect::reads, "Lists what a directory holds.",
      {parameter("path", mcp::ParameterType::string, "The directory; default: the workspace."),
       depth},
      list_files);
  add("read_docstring", "Read a docstring", Effect::reads,
      "Reads the docstring of a Python function, class, method (Class.method) or module from its "
      "source file. Nothing is imported or run.",
      {file_path, parameter("function_name", mcp::ParameterType::string,
                            "A dotted name from the top of the file; empty: the module.")},
      read_docstring);
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

mcp::Parameter required(const char* name, std::string description) {
  mcp::Parameter needed = parameter(name, mcp::ParameterType::string, std::move(description));
  needed.nullable = false;
  needed.required = true;
  return needed;
}

mcp::Parameter count(const char* name, std::string description) {
  mcp::Parameter number = parameter(name, mcp::ParameterType::integer, std::move(description));
  number.minimum = 0;
  return number;
}

mcp::Parameter seconds(const char* name, std::string description) {
  mcp::Parameter time = parameter(name, mcp::ParameterType::number, std::move(description));
  time.greater_than = 0;
  return time;
}

mcp::Tool make_tool(const char* name, const char* title, Effect effect, std::string description,
                    std::vector<mcp::Parameter> parameters) {
  mcp::Tool tool;
  tool.name = name;
  tool.title = title;
  tool.description = std::move(description);
  tool.parameters = std::move(parameters);
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
    const bool is_known = std::any_of(tools.begin(), tools.end(), [&](const BoundTool& bound) {
      return bound.tool.name == disabled;
    });
    if (!is_known)
      return make_error(ErrorCode::invalid_argument,
                        {"disabled_tools: there is no tool ", quoted(disabled)});
  }
  return {};
}

}  // namespace inner

Expected<void> add_execution_tools(mcp::Server& server, const Executor& executor,
                                   const ToolOptions& options) {
  if (auto ok = check_disabled(executor, options); !ok) return ok;
  std::vector<BoundTool> tools = all_tools(executor, options);
  const auto set = std::make_shared<ToolSet>(executor, options);
  for (BoundTool& bound : tools) {
    if (is_disabled(options, bound.tool.name)) continue;
    bound.tool.handler = [set, handler = bound.handler](const mcp::Call& call) {
      std::string no = set->use->refusal_of_call(call.tool());
      if (!no.empty()) return mcp::ToolReply(refuse(*set, call, "calls_per_minute", std::move(no)));
      return handler(*set, call);
    };
    if (auto ok = server.add(std::move(bound.tool)); !ok) return ok;
  }
  return {};
}

}  // namespace v0_1
}  // namespace codeexec
