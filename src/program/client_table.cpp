// The MCP clients that --client-config knows.
//
// The formats are those of the clients' documents, and of their programs where these run without a
// screen, in November 2026.

#include "program/client_files_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/platform_internal.hpp"
#include "paths/paths.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// A setting that is the value of a member.
constexpr OwnShell is_value(std::initializer_list<const char*> path, const char* value) {
  OwnShell setting;
  std::size_t depth = 0;
  for (const char* const name : path) setting.path[depth++] = name;
  setting.value = value;
  return setting;
}

// A setting that is one text of a list.
constexpr OwnShell in_list(std::initializer_list<const char*> path, const char* value) {
  OwnShell setting = is_value(path, value);
  setting.is_list = true;
  return setting;
}

// The same in a file of its own.
constexpr OwnShell in_file(OwnShell setting, UserFile user, const char* project) {
  setting.user = user;
  setting.project = project;
  return setting;
}

constexpr OwnShell claude_setting() {
  return in_file(in_list({"permissions", "deny"}, "Bash"),
                 {"CLAUDE_CONFIG_DIR", ".claude/", "settings.json"}, ".claude/settings.json");
}

constexpr OwnShell cline_setting() {
  return in_file(in_list({"disabledTools"}, "run_commands"),
                 {"CLINE_DATA_DIR", ".cline/data/", "settings/global-settings.json"}, nullptr);
}

constexpr Client clients[] = {
    Client("claude-code", "Claude Code", EntryFormat::typed_json)
        .user_file("mcpServers", {"CLAUDE_CONFIG_DIR", "", ".claude.json"})
        .project_file(".mcp.json")
        .sign(".claude")
        .replaces("${")
        .approval(nullptr, nullptr,
                  "it asks for each tool; without a person: claude -p ... --allowedTools "
                  "'mcp__codeexec__*'")
        .shell("Bash", claude_setting()),
    Client("claude-desktop", "Claude Desktop", EntryFormat::json)
        .user_file("mcpServers",
                   {"XDG_CONFIG_HOME", ".config/", "Claude/claude_desktop_config.json"}),
    Client("cursor", "Cursor", EntryFormat::json)
        .user_file("mcpServers", {"", "", ".cursor/mcp.json"})
        .project_file(".cursor/mcp.json")
        .replaces("${")
        .shell_by_hand("terminal tool",
                       "its editor asks for each command that is on no allowlist of Cursor "
                       "Settings, Agents; cursor-agent refuses all with \"Shell(**)\" in "
                       "permissions.deny of ~/.cursor/cli-config.json"),
    Client("vscode", "VS Code", EntryFormat::typed_json)
        .user_file("servers", {"XDG_CONFIG_HOME", ".config/", "Code/User/mcp.json"})
        .project_file(".vscode/mcp.json")
        .replaces("${")
        .shell_by_hand("terminal tools",
                       "deselect them with Configure Tools, the tools button of the Chat view"),
    Client("codex", "Codex", EntryFormat::toml)
        .user_file("mcp_servers", {"CODEX_HOME", ".codex/", "config.toml"})
        .project_file(".codex/config.toml")
        .approval("default_tools_approval_mode", "\"approve\"",
                  "without a person codex exec refuses tools that nobody approved")
        // In TOML; see codex_features.
        .shell("shell tool", is_value({"features", "shell_tool"}, "false")),
    Client("gemini", "Gemini CLI", EntryFormat::json)
        .user_file("mcpServers", {"", "", ".gemini/settings.json"})
        .project_file(".gemini/settings.json")
        .replaces("$")
        .approval("trust", "true",
                  "without a person it shows no tool of a server that is not trusted; the folder "
                  "must be trusted, too, or gemini --skip-trust")
        .shell("run_shell_command", in_list({"tools", "exclude"}, "run_shell_command")),
    Client("qwen", "Qwen Code", EntryFormat::json)
        .user_file("mcpServers", {"", "", ".qwen/settings.json"})
        .project_file(".qwen/settings.json")
        .replaces("$")
        .approval("trust", "true",
                  "without a person it refuses tools of a server that is not trusted")
        .shell("run_shell_command", in_list({"tools", "disabled"}, "run_shell_command")),
    Client("opencode", "opencode", EntryFormat::opencode_json)
        .user_file("mcp", {"XDG_CONFIG_HOME", ".config/", "opencode/opencode.json"})
        .project_file("opencode.json")
        .replaces("{env:")
        .shell("bash", is_value({"permission", "bash"}, "deny")),
    Client("cline", "Cline", EntryFormat::json)
        .user_file("mcpServers",
                   {"CLINE_DATA_DIR", ".cline/data/", "settings/cline_mcp_settings.json"})
        .sign(".cline")
        .shell("run_commands", cline_setting()),
    Client("continue", "Continue", EntryFormat::json)
        .user_file("mcpServers", {"CONTINUE_GLOBAL_DIR", ".continue/", "mcpServers/codeexec.json"})
        .project_file(".continue/mcpServers/codeexec.json")
        .sign(".continue")
        .replaces("${{")
        .shell_by_hand("terminal command tool",
                       "set it to Excluded in the list of tools; cn reads \"exclude: [Bash]\" in "
                       "~/.continue/permissions.yaml"),
    Client("copilot", "Copilot CLI", EntryFormat::copilot_json)
        .user_file("mcpServers", {"COPILOT_HOME", ".copilot/", "mcp-config.json"})
        .project_file(".github/mcp.json")
        .replaces("${")
        .approval(nullptr, nullptr,
                  "it asks for each tool; without a person: copilot -p ... --allow-tool=codeexec")
        .shell_by_hand("shell tool", "start it as copilot --deny-tool=shell"),
    Client("zed", "Zed", EntryFormat::json)
        .user_file("context_servers", {"XDG_CONFIG_HOME", ".config/", "zed/settings.json"})
        .shell("terminal tool",
               is_value({"agent", "tool_permissions", "tools", "terminal", "default"}, "deny")),
    Client("windsurf", "Windsurf", EntryFormat::json)
        .user_file("mcpServers", {"", "", ".codeium/windsurf/mcp_config.json"})
        .replaces("${")
        .shell_by_hand("terminal tool",
                       "switch Auto Execution off in its settings, then it asks for each command"),
    Client("massgen", "MassGen", EntryFormat::yaml)
        .user_file("", {"", ".config/massgen/", "config.yaml"})
        .replaces("${")
        .shell_by_hand("command line tool",
                       "the name command_line of this entry takes its place: it adds none of its "
                       "own")};

// A user's file; empty when no variable names a folder for it.
std::string user_path(const UserFile& file) {
  const char* folder = std::getenv(file.variable);
  const bool has_own = folder && folder[0] == '/';
  if (!has_own) folder = std::getenv("HOME");
  if (!folder || folder[0] != '/') return {};
  return concat("%/%%", {folder, has_own ? "" : file.folder, file.file});
}

// The folder that a path lies in.
std::string folder_around(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return path.substr(0, slash == 0 ? 1 : slash);
}

bool is_there(const std::string& path) {
  struct stat status {};
  return !path.empty() && ::stat(path.c_str(), &status) == 0;
}

// The folder that a relative path begins in: the current one, or the one that its `..` lead to.
std::string first_folder_of(std::string_view path) {
  std::string folder = ".";
  for (std::size_t at = 0; path.substr(at, 3) == "../"sv; at += 3) folder += "/..";
  return folder;
}

}  // namespace

inline namespace inner {

Clients known_clients() { return {std::begin(clients), std::end(clients)}; }

const Client* find_client(std::string_view name) {
  for (const Client& client : clients)
    if (client.name == name) return &client;
  return nullptr;
}

std::string client_names() {
  std::string names;
  for (const Client& client : clients) append_all(names, {names.empty() ? "" : ", ", client.name});
  return names;
}

bool seems_installed(const Client& client) {
  if (client.format == EntryFormat::yaml) return true;
  const std::string file = user_path(client.user);
  const bool has_sign = client.installed[0] != '\0';
  return file.empty() || is_there(file) || (!has_sign && is_there(folder_around(file))) ||
         (has_sign && is_there(user_path({"", "", client.installed})));
}

Expected<ClientPlace> client_place_of(const Client& client, const std::string& file) {
  ClientPlace place;
  place.file = file.empty() ? user_path(client.user) : file;
  if (place.file.empty())
    return make_error(ErrorCode::invalid_argument,
                      "HOME names no folder: give the client's file, as --write FILE");
  const OwnShell& shell = client.own_shell;
  if (!shell.has_file()) place.settings = place.file;
  if (file.empty()) {
    if (shell.has_file()) place.settings = user_path(shell.user);
    return place;
  }
  const std::string_view own = client.project;
  const bool is_of_project = !own.empty() && (file == own || ends_with(file, concat({"/", own})));
  if (file[0] != '/')
    place.project = first_folder_of(file);
  else if (is_of_project)
    place.project = file.substr(0, file.size() - own.size());
  if (shell.has_file() && shell.project && is_of_project)
    place.settings =
        concat({std::string_view(file).substr(0, file.size() - own.size()), shell.project});
  if (shell.has_file() && file == user_path(client.user)) place.settings = user_path(shell.user);
  return place;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
