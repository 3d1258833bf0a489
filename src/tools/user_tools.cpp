// The tools of a user's container.

#include "tools/tools.hpp"
#include "tools/tools_internal.hpp"

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

namespace codeexec {
inline namespace v0_1 {

namespace {

struct UserTool {
  mcp::Tool tool;
  mcp::ToolReply (*handler)(const UserContainers&, const std::string&, const mcp::Call&);
};

mcp::ToolReply execute_bash(const UserContainers& containers, const std::string& user_id,
                            const mcp::Call& call) {
  Command command = command_of(call, "command");
  command.cancel = call.cancel_token();
  const ToolOptions usual;
  command.max_output = usual.max_output;
  listen(command, call, {});
  auto result = containers.execute_bash(user_id, std::move(command));
  if (!result) return failed(result.error().message);
  show_as_on_terminal(*result);
  fit_output(usual, usual.max_output, *result);
  return mcp::ToolResult::with_structured(
      result_json(usual, *result, room_for_texts(call.max_result_bytes())));
}

mcp::ToolReply read_user_file(const UserContainers& containers, const std::string& user_id,
                              const mcp::Call& call) {
  const std::string& path = call.argument("file_path").as_string();
  std::optional<std::uint64_t> lines;
  if (const Json& given = call.argument("line_count"); given.is_number()) lines = count_of(given);
  auto text = containers.read_file(user_id, path, count_of(call.argument("offset")), lines);
  if (!text) return failed(text.error().message);
  std::string content = to_utf8(*text);
  shorten({&content}, room_for_texts(call.max_result_bytes()),
          [](const std::string&, std::size_t) {});
  return mcp::ToolResult::with_structured(
      Json::object({{"file_path", path}, {"content", std::move(content)}}));
}

mcp::ToolReply write_user_file(const UserContainers& containers, const std::string& user_id,
                               const mcp::Call& call) {
  const std::string& path = call.argument("file_path").as_string();
  const auto bytes = containers.write_file(user_id, path, call.argument("content").as_string());
  if (!bytes) return failed(bytes.error().message);
  return mcp::ToolResult::with_structured(Json::object(
      {{"success", true},
       {"file_path", path},
       {"bytes", *bytes},
       {"message", concat({"Successfully wrote ", std::to_string(*bytes), " bytes to ", path})}}));
}

mcp::ToolReply read_user_docstring(const UserContainers& containers, const std::string& user_id,
                                   const mcp::Call& call) {
  const std::string& path = call.argument("file_path").as_string();
  const std::string& function = call.argument("function_name").as_string();
  const auto found = containers.read_docstring(user_id, path, function);
  if (!found) return failed(found.error().message);
  std::string text = to_utf8(*found);
  shorten({&text}, room_for_texts(call.max_result_bytes()), [](const std::string&, std::size_t) {});
  return mcp::ToolResult::with_structured(Json::object(
      {{"file_path", path}, {"function_name", function}, {"docstring", std::move(text)}}));
}

mcp::ToolReply list_artifacts(const UserContainers& containers, const std::string& user_id,
                              const mcp::Call&) {
  const auto artifacts = containers.list_artifacts(user_id);
  if (!artifacts) return failed(artifacts.error().message);
  Json list = Json::array();
  for (const Artifact& artifact : *artifacts)
    list.push_back(Json::object({{"name", to_utf8(artifact.name)}, {"size", artifact.size}}));
  return mcp::ToolResult::with_structured(Json::object({{"artifacts", std::move(list)}}));
}

mcp::ToolReply get_artifact(const UserContainers& containers, const std::string& user_id,
                            const mcp::Call& call) {
  const std::string& name = call.argument("name").as_string();
  const auto bytes = containers.get_artifact(user_id, name);
  if (!bytes) return failed(bytes.error().message);
  std::string content = to_base64(*bytes);
  if (2 * content.size() > room_for_texts(call.max_result_bytes()))
    return failed(concat({quoted(name), " has ", std::to_string(bytes->size()),
                          " bytes, too many for one reply: split it into parts"}));
  return mcp::ToolResult::with_structured(Json::object({{"name", name},
                                                        {"size", bytes->size()},
                                                        {"encoding", "base64"},
                                                        {"content", std::move(content)}}));
}

}  // namespace

inline namespace inner {

std::string_view front_matter(std::string_view text, std::string_view key) {
  bool first = true;
  while (!text.empty()) {
    const std::string_view line = trim_blanks(without_line_ends(text.substr(0, text.find('\n'))));
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
    if (first != (line == "---")) return {};
    first = false;
    if (starts_with(line, key) && line.substr(key.size(), 1) == ":")
      return trim_blanks(line.substr(key.size() + 1));
  }
  return {};
}

std::string list_skills(const std::string& folder) {
  constexpr std::size_t most = 100;
  constexpr std::size_t longest = 300;
  std::string text;
  PathOptions roots;
  roots.roots.push_back({folder, Permission::read});
  auto rules = PathRules::create(roots);
  if (folder.empty() || !rules) return text;
  const Files files(std::move(*rules), folder);
  const auto list = files.list(folder);
  std::size_t count = 0;
  for (const FileEntry& entry : list ? list->entries : std::vector<FileEntry>()) {
    const auto skill = files.read(concat({entry.path, "/SKILL.md"}));
    if (!skill || ++count > most) continue;
    const std::string about =
        to_utf8(utf8_prefix(front_matter(skill->bytes, "description"), longest));
    text += concat({text.empty() ? " " : ", ", to_utf8(entry.path), about.empty() ? "" : " (",
                    about, about.empty() ? "" : ")"});
  }
  return text;
}

}  // namespace inner

Expected<void> add_user_container_tools(mcp::Server& server, const UserContainers& containers,
                                        const std::string& user_id) {
  using mcp::ParameterType;
  const char* const path_help = "A path in the container; relative ones begin at /workspace.";
  const UserTool tools[] = {
      {make_tool("execute_bash", "Run a command", Effect::runs,
                 "Runs a shell command in your container and returns its exit code, stdout and "
                 "stderr.",
                 {required("command", "The command line, for bash."),
                  seconds("timeout", concat({"Seconds; default: ",
                                             seconds_text(containers.options().timeout), "."}))}),
       execute_bash},
      {make_tool("read_file", "Read a file", Effect::reads,
                 "Reads a text file of your container, or some of its lines.",
                 {required("file_path", path_help),
                  count("offset", "How many lines to skip; default: 0."),
                  count("line_count", "How many lines to read; default: all.")}),
       read_user_file},
      {make_tool("write_file", "Write a file", Effect::writes_files,
                 "Writes a file of your container, or replaces it.",
                 {required("file_path", path_help), required("content", "The whole new text.")}),
       write_user_file},
      {make_tool("read_docstring", "Read a docstring", Effect::reads,
                 "Reads what a Python function says of itself, without running it.",
                 {required("file_path", "A Python file, or a module of /tools (\"pkg.module\")."),
                  required("function_name", "The function, or Class.method.")}),
       read_user_docstring},
      {make_tool("list_artifacts", "List artifacts", Effect::reads,
                 "Lists the files in /artifacts, which are what is handed over.", {}),
       list_artifacts},
      {make_tool("get_artifact", "Get an artifact", Effect::reads, "Reads a file of /artifacts.",
                 {required("name", "Its name, without a directory.")}),
       get_artifact}};
  for (const UserTool& bound : tools) {
    mcp::Tool tool = bound.tool;
    tool.handler = [&containers, user_id, handler = bound.handler](const mcp::Call& call) {
      return handler(containers, user_id, call);
    };
    if (auto ok = server.add(std::move(tool)); !ok) return ok;
  }
  return {};
}

}  // namespace v0_1
}  // namespace codeexec
