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

using UserHandler = mcp::ToolReply (*)(const UserContainers&, const std::string&, const mcp::Call&);

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
  return answer_with(result_json(usual, *result, room_for_texts(call.max_result_bytes())));
}

mcp::ToolReply read_user_file(const UserContainers& containers, const std::string& user_id,
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

mcp::ToolReply write_user_file(const UserContainers& containers, const std::string& user_id,
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

mcp::ToolReply read_user_docstring(const UserContainers& containers, const std::string& user_id,
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

mcp::ToolReply list_artifacts(const UserContainers& containers, const std::string& user_id,
                              const mcp::Call&) {
  const auto artifacts = containers.list_artifacts(user_id);
  if (!artifacts) return failed(artifacts.error().message);
  Json list = Json::array();
  for (const Artifact& artifact : *artifacts) {
    Json entry;
    set_member(entry, "name", to_utf8(artifact.name));
    set_member(entry, "size", artifact.size);
    list.push_back(std::move(entry));
  }
  Json object;
  set_member(object, "artifacts", std::move(list));
  return answer_with(std::move(object));
}

mcp::ToolReply get_artifact(const UserContainers& containers, const std::string& user_id,
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
    const auto skill = files.read(concat("%/SKILL.md", {entry.path}));
    if (!skill || ++count > most) continue;
    const std::string about =
        to_utf8(utf8_prefix(front_matter(skill->bytes, "description"sv), longest));
    append_all(text, {text.empty() ? " " : ", ", to_utf8(entry.path), about.empty() ? "" : " (",
                      about, about.empty() ? "" : ")"});
  }
  return text;
}

}  // namespace inner

Expected<void> add_user_container_tools(mcp::Server& server, const UserContainers& containers,
                                        const std::string& user_id) {
  constexpr std::string_view path_help =
      "A path in the container; relative ones begin at /workspace.";
  Expected<void> ok;
  const auto add = [&](mcp::Tool&& tool, UserHandler handler) {
    if (!ok) return;
    tool.handler = [&containers, user_id, handler](const mcp::Call& call) {
      return handler(containers, user_id, call);
    };
    ok = server.add(std::move(tool));
  };
  mcp::Tool bash = make_tool(
      "execute_bash", "Run a command", Effect::runs,
      "Runs a shell command in your container and returns its exit code, stdout and stderr."sv);
  required(bash, "command", "The command line, for bash."sv);
  seconds(bash, "timeout",
          concat("Seconds; default: %.", {seconds_text(containers.options().timeout)}));
  add(std::move(bash), execute_bash);
  mcp::Tool read = make_tool("read_file", "Read a file", Effect::reads,
                             "Reads a text file of your container, or some of its lines."sv);
  required(read, "file_path", path_help);
  count(read, "offset", "How many lines to skip; default: 0."sv);
  count(read, "line_count", "How many lines to read; default: all."sv);
  add(std::move(read), read_user_file);
  mcp::Tool write = make_tool("write_file", "Write a file", Effect::writes_files,
                              "Writes a file of your container, or replaces it."sv);
  required(write, "file_path", path_help);
  required(write, "content", "The whole new text."sv);
  add(std::move(write), write_user_file);
  mcp::Tool docstring = make_tool("read_docstring", "Read a docstring", Effect::reads,
                                  "Reads what a Python function says of itself, without running "
                                  "it."sv);
  required(docstring, "file_path", "A Python file, or a module of /tools (\"pkg.module\")."sv);
  required(docstring, "function_name", "The function, or Class.method."sv);
  add(std::move(docstring), read_user_docstring);
  add(make_tool("list_artifacts", "List artifacts", Effect::reads,
                "Lists the files in /artifacts, which are what is handed over."sv),
      list_artifacts);
  mcp::Tool get =
      make_tool("get_artifact", "Get an artifact", Effect::reads, "Reads a file of /artifacts."sv);
  required(get, "name", "Its name, without a directory."sv);
  add(std::move(get), get_artifact);
  return ok;
}

}  // namespace v0_1
}  // namespace codeexec
