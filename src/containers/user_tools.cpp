// The tools of a user's container, and its description for a model.
//
// The handlers translate between the arguments of a call and the members of UserContainers, which
// do the work, check the arguments and write the audit log.

#include "containers/containers.hpp"
#include "containers/containers_internal.hpp"
#include "tools/tool_texts_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "docker/docker.hpp"
#include "docker/docker_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "files/files.hpp"
#include "json/json.hpp"
#include "mcp/mcp.hpp"
#include "paths/paths.hpp"
#include "tools/tools.hpp"
#include "tools/tools_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

mcp::ToolResult execute_bash(const UserContainers& containers, const std::string& user_id,
                             const mcp::Call& call) {
  Command command = command_of(call, "command");
  command.cancel = call.cancel_token();
  const ToolOptions usual;
  bound_output(command, usual.max_output);
  listen(command, call, {});
  command.on_ask = [&call, &usual](Approval& approval) {
    ask_client(call, approval, usual.ask_timeout);
  };
  auto result = containers.execute_bash(user_id, std::move(command));
  if (!result) return failed(result.error().message);
  show_as_on_terminal(usual, *result);
  fit_output(usual, usual.max_output, *result, false);
  return answer_with(result_json(usual, *result, room_for_texts(call.max_result_bytes())));
}

mcp::ToolResult read_user_file(const UserContainers& containers, const std::string& user_id,
                               const mcp::Call& call) {
  const std::string& path = argument_text(call, "file_path");
  std::optional<std::uint64_t> lines;
  if (const Json& given = call.argument("line_count"sv); given.is_number()) lines = count_of(given);
  auto text = containers.read_file(user_id, path, count_of(call.argument("offset"sv)), lines);
  if (!text) return failed(text.error().message);
  std::string content = to_utf8(*text);
  shorten({&content}, room_for_texts(call.max_result_bytes()),
          [](const std::string&, std::size_t) {});
  Json object;
  set_member(object, "file_path", path);
  set_member(object, "content", std::move(content));
  return answer_with(std::move(object));
}

mcp::ToolResult write_user_file(const UserContainers& containers, const std::string& user_id,
                                const mcp::Call& call) {
  const std::string& path = argument_text(call, "file_path");
  const auto bytes = containers.write_file(user_id, path, argument_text(call, "content"));
  if (!bytes) return failed(bytes.error().message);
  Json object;
  set_member(object, "success", true);
  set_member(object, "file_path", path);
  set_member(object, "bytes", *bytes);
  set_member(object, "message", concat("Successfully wrote % bytes to %", {*bytes, path}));
  return answer_with(std::move(object));
}

mcp::ToolResult read_user_docstring(const UserContainers& containers, const std::string& user_id,
                                    const mcp::Call& call) {
  const std::string& path = argument_text(call, "file_path");
  const std::string& function = argument_text(call, "function_name");
  const auto found = containers.read_docstring(user_id, path, function);
  if (!found) return failed(found.error().message);
  std::string text = to_utf8(*found);
  shorten({&text}, room_for_texts(call.max_result_bytes()), [](const std::string&, std::size_t) {});
  Json object;
  set_member(object, "file_path", path);
  set_member(object, "function_name", function);
  set_member(object, "docstring", std::move(text));
  return answer_with(std::move(object));
}

mcp::ToolResult list_artifacts(const UserContainers& containers, const std::string& user_id,
                               const mcp::Call&) {
  const auto artifacts = containers.list_artifacts(user_id);
  if (!artifacts) return failed(artifacts.error().message);
  Json list = Json::array();
  for (const FileEntry& artifact : *artifacts) {
    Json entry;
    set_member(entry, "name", to_utf8(artifact.path));
    set_member(entry, "size", artifact.size);
    list.push_back(std::move(entry));
  }
  Json object;
  set_member(object, "artifacts", std::move(list));
  return answer_with(std::move(object));
}

mcp::ToolResult get_artifact(const UserContainers& containers, const std::string& user_id,
                             const mcp::Call& call) {
  const std::string& name = argument_text(call, "name");
  const auto bytes = containers.get_artifact(user_id, name);
  if (!bytes) return failed(bytes.error().message);
  std::string content = to_base64(*bytes);
  if (2 * content.size() > room_for_texts(call.max_result_bytes()))
    return failed(concat("% has % bytes, too many for one reply: split it into parts",
                         {in_quotes(name), bytes->size()}));
  Json object;
  set_member(object, "name", name);
  set_member(object, "size", bytes->size());
  set_member(object, "encoding", "base64");
  set_member(object, "content", std::move(content));
  return answer_with(std::move(object));
}

using UserToolHandler = mcp::ToolResult (*)(const UserContainers&, const std::string&,
                                            const mcp::Call&);

// {} is the timeout of commands that give none.
struct UserTool {
  UserToolHandler handler;
  ToolText text;
};
constexpr UserTool user_tools[] = {
    {execute_bash,
     {"execute_bash",
      "Run a command",
      ToolEffect::runs,
      "Runs a shell command in your container and returns its exit code, stdout and stderr.",
      {{"command", Takes::required_text, "The command line, for bash."},
       {"timeout", Takes::seconds, "Seconds; default: {}."}}}},
    {read_user_file,
     {"read_file",
      "Read a file",
      ToolEffect::reads,
      "Reads a text file of your container, or some of its lines.",
      {{"file_path", Takes::required_text,
        "A path in the container; relative ones begin at /workspace."},
       {"offset", Takes::from_0, "How many lines to skip; default: 0."},
       {"line_count", Takes::from_0, "How many lines to read; default: all."}}}},
    {write_user_file,
     {"write_file",
      "Write a file",
      ToolEffect::writes,
      "Writes a file of your container, or replaces it.",
      {{"file_path", Takes::required_text,
        "A path in the container; relative ones begin at /workspace."},
       {"content", Takes::required_text, "The whole new text."}}}},
    {read_user_docstring,
     {"read_docstring",
      "Read a docstring",
      ToolEffect::reads,
      "Reads what a Python function says of itself, without running it.",
      {{"file_path", Takes::required_text,
        "A Python file, or a module of /tools (\"pkg.module\")."},
       {"function_name", Takes::required_text, "The function, or Class.method."}}}},
    {list_artifacts,
     {"list_artifacts", "List artifacts", ToolEffect::reads,
      "Lists the files in /artifacts, which are what is handed over."}},
    {get_artifact,
     {"get_artifact",
      "Get an artifact",
      ToolEffect::reads,
      "Reads a file of /artifacts.",
      {{"name", Takes::required_text, "Its name, without a directory."}}}},
};

constexpr auto packed_user_tools = pack_names<ToolTextSource<user_tools>>();

// What a tool has besides its texts.
struct UserToolEntry {
  UserToolHandler handler = nullptr;
  ToolFacts facts = {};
};
constexpr auto user_tool_entries = pack_entries<user_tools>([](const UserTool& row) {
  return UserToolEntry{row.handler, facts_of(row.text)};
});

}  // namespace

inline namespace inner {

std::string_view front_matter(std::string_view text, std::string_view key) {
  bool first = true;
  while (!text.empty()) {
    const std::string_view line = trim_blanks(without_line_ends(text.substr(0, text.find('\n'))));
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
    if (first != (line == "---"sv)) return {};
    first = false;
    if (starts_with(line, key) && line.substr(key.size(), 1) == ":"sv)
      return trim_blanks(line.substr(key.size() + 1));
  }
  return {};
}

}  // namespace inner

namespace {

// " name (description), ..." of the folders that have a SKILL.md. They are read by the path rules
// of their folder: a link that leads out of it is left out.
std::string list_skills(const std::string& folder) {
  constexpr std::size_t most = 100;
  constexpr std::size_t longest = 300;
  std::string text;
  auto rules = PathRules::create({{folder, Permission::read}});
  if (folder.empty() || !rules) return text;
  const Files files(std::move(*rules), folder);
  const auto list = files.list(folder);
  std::size_t count = 0;
  for (const FileEntry& entry : list ? list->entries : std::vector<FileEntry>()) {
    const auto skill = files.read(concat("%/SKILL.md", {entry.path}));
    if (!skill || ++count > most) continue;
    const std::string about =
        to_utf8(utf8_prefix(front_matter(skill->bytes, "description"sv), longest));
    append_all(text, {text.empty() ? " " : ", ", to_utf8(entry.path), about.empty() ? "" : " (",
                      about, about.empty() ? "" : ")"});
  }
  return text;
}

}  // namespace

Expected<void> add_user_container_tools(mcp::Server& server, const UserContainers& containers,
                                        const std::string& user_id, bool json_text) {
  for (std::size_t row = 0; row < user_tool_entries.size(); ++row) {
    const UserToolEntry& entry = user_tool_entries[row];
    mcp::Tool tool = tool_of(
        packed_user_tools.table(), row, entry.facts,
        [&containers](std::string_view) { return seconds_text(containers.options().timeout); });
    tool.handler = [&containers, user_id, json_text,
                    handler = entry.handler](const mcp::Call& call) {
      return as_read(json_text, handler(containers, user_id, call));
    };
    if (auto ok = server.add(std::move(tool)); !ok) return ok;
  }
  return {};
}

std::string describe(const UserContainers& containers) {
  const UserContainerOptions& options = containers.options();
  std::string text;
  say(text,
      "execute_bash runs commands in a container of your own, in /workspace. A command may take % "
      "unless it asks for more.",
      {count_of_seconds(options.timeout)});
  if (!options.tools_dir.empty())
    say(text,
        "/tools has Python modules: look at them with ls and read_docstring, then import them.");
  const std::string skills = list_skills(options.skills_dir);
  if (!skills.empty())
    say(text, "Before work that one of these skills is about, read its /skills/NAME/SKILL.md:%.",
        {skills});
  say(text,
      "Put what is to be handed over into /artifacts. It and /workspace last as long as the "
      "container runs.");
  if (options.container.network == ContainerNetwork::none) say(text, "There is no network.");
  return text;
}

}  // namespace v0_1
}  // namespace codeexec
