// The entry of this server in a client's file, and the setting for the client's own command tool.

#include "program/client_files_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "json/json.hpp"
#include "json/json_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

bool has_environment_of_its_own(const Client& client) {
  return client.format == EntryFormat::opencode_json;
}

// Where our variable is.
MemberPath variable_path(const Client& client) {
  return {client.key, server_name, has_environment_of_its_own(client) ? "environment" : "env",
          shell_variable};
}

// Programs that start another one, and add no protection by it.
constexpr std::string_view plain_starters[] = {"uvx", "uv", "pipx", "npx", "python", "python3"};

bool may_be_ours(std::string_view program) {
  const std::string_view name = base_name(program);
  return program.empty() || starts_with(name, server_name) || is_one_of(name, plain_starters);
}

// The texts of a list; false: it is something else.
bool add_texts(const Json& list, std::vector<std::string>& words) {
  for (const Json& item : list.items()) {
    if (!item.is_string()) return false;
    words.push_back(item.as_string());
  }
  return list.is_array();
}

// `command` is a program, or a list that begins with it.
void read_command(const Json& command, const Json* words, FoundEntry& entry) {
  std::vector<std::string> all;
  if (command.is_string()) all.push_back(command.as_string());
  if (command.is_array() && !add_texts(command, all)) entry.is_ours = false;
  if (words && !add_texts(*words, all)) entry.is_ours = false;
  if (!command.is_null() && !all.empty()) {
    entry.program = all[0];
    all.erase(all.begin());
  }
  entry.words = std::move(all);
  if (!may_be_ours(entry.program)) entry.is_ours = false;
}

Json approval_of(const Client& client) {
  return client.approval_value ? *Json::parse(client.approval_value) : Json();
}

Expected<FoundEntry> find_json_entry(const Client& client, std::string_view text) {
  if (const std::string problem = json_trouble(text); !problem.empty())
    return make_error(ErrorCode::parse, "%", {problem});
  FoundEntry found;
  const auto whole = Json::parse(text);
  const Json* const entry = whole ? (*whole)[client.key].find(server_name) : nullptr;
  if (!entry) return found;
  found.is_there = true;
  read_command((*entry)["command"], entry->find("args"), found);
  for (const char* const address : {"url", "httpUrl", "serverUrl"})
    if (entry->find(address)) found.is_ours = false;
  if (client.approval_member) {
    found.has_approval = entry->find(client.approval_member) != nullptr;
    found.is_approved = (*entry)[client.approval_member] == approval_of(client);
  }
  const Json& before = (*entry)[variable_path(client)[2]][shell_variable];
  if (before.is_string()) found.shell_before = before.as_string();
  return found;
}

Expected<FoundEntry> find_toml_entry(const Client& client, std::string_view text) {
  const auto table = read_toml_table(text, codex_server);
  if (!table) return table.failure();
  FoundEntry found;
  found.is_there = table->is_there;
  Json command;
  std::optional<Json> words;
  for (const TomlLine& line : table->lines) {
    if (line.key == "command"sv) command = toml_value(line.value);
    if (line.key == "args"sv) words = toml_value(line.value);
    if (line.key == "url"sv || ((line.key == "command"sv) && !command.is_string()))
      found.is_ours = false;
    if (line.key != client.approval_member) continue;
    found.has_approval = true;
    found.is_approved = toml_value(line.value) == approval_of(client);
  }
  read_command(command, words ? &*words : nullptr, found);
  return found;
}

}  // namespace

inline namespace inner {

Json entry_members(const Client& client, const std::string& program,
                   const std::vector<std::string>& words) {
  Json members = Json::object();
  if (client.format == EntryFormat::opencode_json) {
    Json command = Json::array({Json(program)});
    for (const std::string& word : words) command.push_back(Json(word));
    set_member(members, "type", "local");
    set_member(members, "command", std::move(command));
    set_member(members, "enabled", true);
    return members;
  }
  if (client.format == EntryFormat::typed_json) set_member(members, "type", "stdio");
  if (client.format == EntryFormat::copilot_json) set_member(members, "type", "local");
  set_member(members, "command", program);
  set_member(members, "args", list_of(words));
  if (client.format == EntryFormat::copilot_json)
    set_member(members, "tools", Json::array({Json("*")}));
  return members;
}

// MassGen's YAML has its own name for the server, so that it adds none and the tool keeps its id.
std::string entry_text(const Client& client, const Json& members) {
  if (client.format == EntryFormat::yaml) {
    const std::string& program = members["command"].as_string();
    return concat(
        "mcp_servers:\n  - name: command_line\n    type: stdio\n    command: %\n    args: %\n"
        "    security:\n      allowed_executables: [%]\n",
        {members["command"].dump(), members["args"].dump(), Json(base_name(program)).dump()});
  }
  std::string text;
  if (client.format == EntryFormat::toml)
    (void)set_toml_keys(text, codex_server, members);
  else
    (void)set_json_member(text, {client.key, server_name}, members);
  return text;
}

Expected<FoundEntry> find_entry(const Client& client, std::string_view text) {
  return client.format == EntryFormat::toml ? find_toml_entry(client, text)
                                            : find_json_entry(client, text);
}

// Members of an entry that are not ours stay: variables, a folder, bounds of time. So does the
// answer to whether it is in use.
std::string change_entry(const Client& client, std::string& text, const EntryChange& change) {
  const auto found = find_entry(client, text);
  if (!found) return found.error().message;
  Json members = change.members;
  if (change.approve && !found->has_approval)
    members.set(client.approval_member, approval_of(client));
  if (client.format == EntryFormat::toml) {
    if (change.disapprove && found->is_approved)
      (void)remove_toml_keys(text, codex_server, {client.approval_member});
    return set_toml_keys(text, codex_server, members);
  }
  const MemberPath path = {client.key, server_name};
  if (change.shell_before) {
    Json variables = Json::object();
    variables.set(shell_variable, *change.shell_before);
    if (!found->is_there) members.set(variable_path(client)[2], variables);
  }
  const auto whole = Json::parse(text);
  const Json& entry = whole ? (*whole)[client.key][server_name] : Json();
  if (!found->is_there || !entry.is_object()) return set_json_member(text, path, members);
  const Json there = entry;
  for (const Json::Member& member : members.members()) {
    if (there[member.name] == member.value) continue;
    if (there.find(member.name) && (member.name == "enabled" || member.name == "tools")) continue;
    std::string problem =
        set_json_member(text, {client.key, server_name, member.name}, member.value);
    if (!problem.empty()) return problem;
  }
  if (change.disapprove && found->is_approved)
    (void)remove_json_member(text, {client.key, server_name, client.approval_member});
  if (change.shell_before)
    return set_json_member(text, variable_path(client), Json(*change.shell_before));
  return {};
}

std::string remove_entry(const Client& client, std::string& text) {
  if (client.format == EntryFormat::toml) return remove_toml_keys(text, codex_server, {});
  return remove_json_member(text, {client.key, server_name});
}

Expected<bool> is_shell_off(const Client& client, std::string_view text) {
  const OwnShell& shell = client.own_shell;
  if (client.format == EntryFormat::toml) {
    const auto table = read_toml_table(text, codex_features);
    if (!table) return table.failure();
    for (const TomlLine& line : table->lines)
      if (line.key == shell.path[1]) return toml_value(line.value) == Json(false);
    return false;
  }
  if (const std::string problem = json_trouble(text); !problem.empty())
    return make_error(ErrorCode::parse, "%", {problem});
  const auto whole = Json::parse(text);
  const Json* value = whole ? &*whole : nullptr;
  for (const std::string_view name : shell.member())
    if (value) value = value->find(name);
  if (!value) return false;
  if (!shell.is_list) return *value == Json(shell.value);
  for (const Json& item : value->items())
    if (item == Json(shell.value)) return true;
  return false;
}

std::string add_shell_setting(const Client& client, std::string& text, std::string& before) {
  const OwnShell& shell = client.own_shell;
  before = "added";
  if (client.format == EntryFormat::toml) {
    Json members = Json::object();
    members.set(shell.path[1], false);
    return set_toml_keys(text, codex_features, members);
  }
  if (shell.is_list) return add_to_json_list(text, shell.member(), shell.value);
  const auto whole = Json::parse(text);
  const Json* value = whole ? &*whole : nullptr;
  for (const std::string_view name : shell.member())
    if (value) value = value->find(name);
  if (value) before = value->dump();
  return set_json_member(text, shell.member(), Json(shell.value));
}

std::string remove_shell_setting(const Client& client, std::string& text,
                                 const std::optional<std::string>& before, bool& was_ours) {
  const OwnShell& shell = client.own_shell;
  const auto is_off = is_shell_off(client, text);
  if (!is_off) return is_off.error().message;
  was_ours = false;
  if (!*is_off) return {};
  if (client.format == EntryFormat::toml) {
    const auto table = read_toml_table(text, codex_features);
    for (const TomlLine& line : table->lines)
      if (line.key == shell.path[1]) was_ours = line.value.find("codeexec-mcp") != line.value.npos;
    return was_ours ? remove_toml_keys(text, codex_features, {shell.path[1]}) : std::string();
  }
  if (!before) return {};
  was_ours = true;
  if (shell.is_list) return remove_from_json_list(text, shell.member(), shell.value);
  const auto old = Json::parse(*before);
  return old ? set_json_member(text, shell.member(), *old)
             : remove_json_member(text, shell.member());
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
