// The tools as clients see them.

#include "tools/option_internal.hpp"
#include "tools/tool_texts_internal.hpp"
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

// All tools but those of user containers, in the order of tools/list. A parameter is explained
// once: models pay for every byte.
struct ToolRow {
  ToolHandler handler;
  ToolText text;
  bool in_folder = true;  // see ToolChoice
};
constexpr ToolRow tool_rows[] = {
    {execute_command,
     {"execute_command",
      "Run a command",
      ToolEffect::runs,
      "Runs a shell command and returns its exit code, stdout and stderr. Blocks until it ends or "
      "its timeout passes (default {default}){sooner}. Then everything it started is killed, also "
      "what `&` or nohup left in the background{instead}. `cd`, variables and functions carry on "
      "only to commands of the same session_id.",
      {{"command", Takes::required_text, "For {shell}"},
       {"timeout", Takes::seconds, "Seconds, not milliseconds, at most {most_seconds}."},
       {"work_dir", Takes::text, "Default, and base of relative paths: the workspace.", "cwd"},
       {"session_id", Takes::text,
        "Any name of A-Z a-z 0-9 . _ -; without work_dir it starts where the last one ended."},
       {"session_live", Takes::truth,
        "Runs it in a terminal; if it is silent or waits for input, the answer says so; \"\": "
        "waits on."},
       {"run_in_background_after", Takes::seconds,
        "Seconds ({background}) after which it goes on in the background, without a timeout unless "
        "given."},
       {"encoding", Takes::encoding, "base64: for binary output."},
       {"max_output", Takes::from_1, "Bytes of output, at most {most_bytes}."},
       // write_background_shell calls it input.
       {"stdin", Takes::text, "Default: empty, or open with run_in_background_after.", "input"},
       {"idle_timeout", Takes::seconds, "Seconds of silence that end it."}}}},
    {execute_code,
     {"execute_code",
      "Run code",
      ToolEffect::runs,
      "Runs code in sh, bash, python or javascript from a file. Markdown with fenced blocks is run "
      "block by block until one fails. A first line like `# filename: tools/report.py` names the "
      "file.",
      {{"code", Takes::required_text},
       {"language", Takes::text, "Or markdown; default: guessed."},
       {"timeout", Takes::seconds},
       {"work_dir", Takes::text, "", "cwd"},
       {"max_output", Takes::from_1},
       {"idle_timeout", Takes::seconds}}}},
    {start_background_shell,
     {"start_background_shell",
      "Start a background command",
      ToolEffect::runs,
      "Starts a command that goes on by itself, such as a server, and returns its shell_id at "
      "once.",
      {{"command", Takes::required_text, "For {shell_path}."},
       {"work_dir", Takes::text, "", "cwd"},
       {"timeout", Takes::seconds, "Seconds; default: none."},
       {"terminal", Takes::truth, "For an editor, a debugger, a REPL."},
       {"rows", Takes::from_1, "Default: 24."},
       {"cols", Takes::from_1, "Default: 80."},
       {"idle_timeout", Takes::seconds}}}},
    {get_background_shell_output,
     {"get_background_shell_output",
      "Read a background command",
      ToolEffect::reads,
      "Returns what a background command has printed. To read only what is new, give the last "
      "answer's `next` as `since`.",
      {{"shell_id", Takes::required_text},
       {"since", Takes::text},
       {"tail", Takes::from_0, "Only so many last lines."},
       {"wait_for", Takes::text,
        "Until a line after `since` matches this pattern (Python's syntax), or it ends; \"exit\": "
        "until it ends."},
       {"timeout", Takes::seconds, "Seconds to wait; default: 30."},
       {"screen", Takes::truth,
        "What its terminal shows now, instead of the output; wait_for then looks at that."},
       {"max_output", Takes::from_1}}},
     false},
    {get_background_shell_status,
     {"get_background_shell_status",
      "Check a background command",
      ToolEffect::reads,
      "Whether it is running, stopped (exit code 0), failed or killed.",
      {{"shell_id", Takes::required_text}}},
     false},
    {write_background_shell,
     {"write_background_shell",
      "Type into a background command",
      ToolEffect::runs,
      "Writes to its standard input: input, then keys. A line needs its \\n, or on a terminal the "
      "key enter.",
      {{"shell_id", Takes::required_text},
       {"input", Takes::text},
       {"keys", Takes::texts,
        "ctrl-c, SIGTERM and such; for a terminal also enter, tab, escape, up, pagedown, f1, "
        "alt-x."},
       {"close_input", Takes::truth, "Its input ends then."},
       {"rows", Takes::from_1, "Another size for its terminal."},
       {"cols", Takes::from_1}}},
     false},
    {kill_background_shell,
     {"kill_background_shell",
      "End a background command",
      ToolEffect::runs,
      "Ends it and everything it has started: SIGTERM, then SIGKILL.",
      {{"shell_id", Takes::required_text}}},
     false},
    {list_background_shells,
     {"list_background_shells", "List background commands", ToolEffect::reads,
      "Lists those that run, or ended lately."},
     false},
    {read_file,
     {"read_file",
      "Read a file",
      ToolEffect::reads,
      "Reads a text file, or part of it. Images come as images.",
      {{"file_path", Takes::required_text, "Absolute, or relative to the workspace."},
       {"offset", Takes::from_0, "Counted from 0."},
       {"count", Takes::from_0},
       {"unit", Takes::unit, "Default: lines."},
       {"encoding", Takes::encoding}}}},
    {write_file,
     {"write_file",
      "Write a file",
      ToolEffect::writes,
      "Writes a whole file, and makes missing directories.",
      {{"file_path", Takes::required_text},
       {"content", Takes::required_text},
       {"encoding", Takes::encoding}}}},
    {edit_file,
     {"edit_file",
      "Edit a file",
      ToolEffect::runs,
      "Replaces exact texts.",
      {{"file_path", Takes::required_text}, {"edits", Takes::edits}}}},
    {list_files,
     {"list_files",
      "List a directory",
      ToolEffect::reads,
      "Lists what a directory holds.",
      {{"path", Takes::text, "Default: the workspace."}, {"depth", Takes::from_1}}}},
    {search_files,
     {"search_files",
      "Search files",
      ToolEffect::reads,
      "Finds lines in files.",
      {{"pattern", Takes::required_text},
       {"path", Takes::text},
       {"glob", Takes::text},
       {"context", Takes::from_0},
       {"files_only", Takes::truth}}}},
    {read_docstring,
     {"read_docstring",
      "Read a docstring",
      ToolEffect::reads,
      "Reads a Python docstring; nothing is run.",
      {{"file_path", Takes::required_text},
       {"function_name", Takes::text, "As Class.method; empty: the module."}}}},
};

constexpr auto packed_tools = pack_names<ToolTextSource<tool_rows>>();

// What a tool has besides its texts.
struct ToolBinding {
  ToolHandler handler = nullptr;
  bool in_folder = true;
  ToolFacts facts = {};
};
constexpr auto tool_entries = pack_entries<tool_rows>([](const ToolRow& row) {
  return ToolBinding{row.handler, row.in_folder, facts_of(row.text)};
});

std::string_view name_of_tool(std::size_t row) { return packed_tools.table().name(row); }

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
  if (name == "sooner"sv)
    return options.answer_within.count() <= 0 ? std::string()
                                              : concat("; after % it may go on in the background",
                                                       {count_of_seconds(options.answer_within)});
  return is_disabled(options, "start_background_shell"sv)
             ? ""
             : ": for that there is start_background_shell";
}

SharedError no_such_tool(std::string_view name) {
  NearestName nearest(name);
  for (std::size_t row = 0; row < tool_entries.size(); ++row) nearest.consider(name_of_tool(row));
  return make_error(ErrorCode::invalid_argument, "disabled_tools: there is no tool %%",
                    {in_quotes(name), nearest.suggestion()});
}

// Of each edit, with the names that other tools for it have.
constexpr ToolParameter edit_fields[] = {{"old_text", Takes::required_text, "", "old_string"},
                                         {"new_text", Takes::required_text, "", "new_string"},
                                         {"all", Takes::truth, "", "replace_all"}};

void set_type(mcp::Parameter& parameter, Takes takes) {
  parameter.required = takes == Takes::required_text || takes == Takes::edits;
  parameter.nullable = !parameter.required;
  parameter.type = mcp::ParameterType::string;
  switch (takes) {
    case Takes::text:
    case Takes::required_text:
      break;
    case Takes::texts:
      parameter.type = mcp::ParameterType::array;
      parameter.items = mcp::ParameterType::string;
      break;
    case Takes::encoding:
      parameter.choices = words_of({"utf-8", "base64"});
      break;
    case Takes::unit:
      parameter.choices = words_of({"lines", "bytes"});
      break;
    case Takes::seconds:
      parameter.type = mcp::ParameterType::number;
      parameter.greater_than = 0;
      break;
    case Takes::from_0:
    case Takes::from_1:
      parameter.type = mcp::ParameterType::integer;
      parameter.minimum = takes == Takes::from_1 ? 1 : 0;
      break;
    case Takes::truth:
      parameter.type = mcp::ParameterType::boolean;
      break;
    case Takes::edits:
      parameter.type = mcp::ParameterType::array;
      parameter.items = mcp::ParameterType::object;
      for (const ToolParameter& field : edit_fields) {
        mcp::Parameter& part = parameter.fields.emplace_back();
        part.name = field.name;
        part.other_name = field.other_name;
        set_type(part, field.takes);
      }
      break;
  }
}

}  // namespace

inline namespace inner {

mcp::Tool tool_of(const NameTable& texts, std::size_t row, const ToolFacts& facts,
                  FunctionRef<std::string(std::string_view)> value) {
  const auto text = [&](std::size_t column) { return texts.at(row, column).first(); };
  const auto filled = [&](std::size_t column) {
    std::string result;
    for (std::string_view form = text(column); !form.empty();) {
      result += take_part(form, '{');
      if (!form.empty()) result += value(take_part(form, '}'));
    }
    return result;
  };
  mcp::Tool tool;
  tool.tasks = false;
  tool.name = text(name_column);
  tool.title = text(title_column);
  tool.description = filled(description_column);
  // The hints beyond these have no meaning for a tool that only reads, or are the protocol's
  // defaults: clients that count the bytes of a listing pay for each.
  if (facts.effect == ToolEffect::reads)
    tool.read_only = true;
  else
    tool.destructive = true;
  if (facts.effect == ToolEffect::writes) {
    tool.idempotent = true;
    tool.open_world = false;
  }
  for (std::size_t i = 0; i < ToolText::most_parameters; ++i) {
    const std::size_t column = parameter_columns + columns_of_parameter * i;
    const std::string_view name = text(column + parameter_name);
    if (name.empty()) break;
    mcp::Parameter& parameter = tool.parameters.emplace_back();
    parameter.name = name;
    parameter.other_name = text(column + other_name);
    set_type(parameter, facts.takes[i]);
    if (name == "timeout"sv) tool.tasks = true;  // it may take long
    parameter.description = filled(column + parameter_description);
  }
  return tool;
}

void disable_other_tools(ToolOptions& options, std::string_view tool) {
  for (std::size_t row = 0; row < tool_entries.size(); ++row)
    if (name_of_tool(row) != tool) add_words(options.disabled_tools, {name_of_tool(row)});
}

Expected<void> check_disabled(const ToolOptions& options) {
  for (const std::string& disabled : options.disabled_tools) {
    std::size_t row = 0;
    while (row < tool_entries.size() && name_of_tool(row) != disabled) ++row;
    if (row == tool_entries.size()) return no_such_tool(disabled);
  }
  return {};
}

// Every handler first counts its call in UseCounter.
Expected<void> add_chosen_tools(mcp::Server& server, const Executor& executor,
                                const ToolOptions& options, ToolChoice choose) {
  if (auto ok = check_disabled(options); !ok) return ok;
  for (std::size_t row = 0; row < tool_entries.size(); ++row) {
    if (is_disabled(options, name_of_tool(row))) continue;
    const ToolBinding& entry = tool_entries[row];
    mcp::Tool tool = tool_of(packed_tools.table(), row, entry.facts, [&](std::string_view name) {
      return tool_value(name, executor, options);
    });
    if (entry.handler == execute_command) tool.output_schema = execution_schema();
    tool.handler = [choose, &entry](const mcp::Call& call) -> mcp::ToolResult {
      const auto set = choose(call, entry.in_folder);
      if (!set) return as_read(true, failed("the call was cancelled"sv));
      std::string no = set->use->refusal_of_call(call.tool());
      return as_read(set->options.json_text || set->options.full_results,
                     no.empty() ? entry.handler(*set, call)
                                : refuse(*set, call, "calls_per_minute", std::move(no)));
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
