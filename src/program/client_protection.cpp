// What an entry of a client's file protects.
//
// The rule: an option that protects, and stands in the entry that is there, must be named anew.
// With any value, since a person who names it has seen it. `--sandbox off` stands for all of the
// sandbox's. For less without a name, the entry is taken out first.

#include "program/client_files_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/platform_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "paths/paths.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

struct ProtectingOption {
  const char* name;
  const char* unprotected;  // a value that protects nothing; empty: each one protects
  bool is_of_sandbox;       // --sandbox off takes its place
};

constexpr ProtectingOption protecting_options[] = {
    {"allowed-paths", "", true},
    {"read-only", "", true},
    {"workspace", "", true},
    {"sandbox", "off", true},
    {"network", "host", true},
    {"allow-domains", "", true},
    {"private-home", "off", true},
    {"pid-namespace", "false", true},
    {"protected-paths", "", true},
    {"hidden-paths", "", true},
    {"execution-mode", "local", false},
    {"profile", "commands", false},
    {"policy", "compat", false},
    {"allowed-commands", "", false},
    {"blocked-commands", "", false},
    {"ask-commands", "", false},
    {"ask-rule", "", false},
    {"delete-guard", "false", false},
    {"limit-cpu", "", false},
    {"limit-memory", "", false},
    {"limit-address-space", "", false},
    {"limit-processes", "", false},
    {"limit-open-files", "", false},
    {"limit-file-size", "", false},
    {"limit-disk", "", false},
    {"calls-per-minute", "", false},
    {"running-time", "", false},
    {"secret-env", "", false},
    {"no-git-identity", "false", false},
    {"disable-tool", "", false},
    {"audit-file", "", false},
    {"docker-network-mode", "host", false},
    {"docker-memory-limit", "0", false},
    {"docker-cpu-limit", "0", false},
    {"docker-pids-limit", "0", false},
    {"docker-read-only-root", "false", false},
    {"docker-user", "", false},
    {"docker-runtime", "", false},
    // It may have any of these in it.
    {"config", "", false},
};

// The value of an option in words of a command line: its first word, or the empty text of a flag.
std::optional<std::string_view> value_in(const std::vector<std::string>& words,
                                         std::string_view name) {
  const std::string option = concat({"--", name});
  const std::string assigned = concat({option, "="});
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (starts_with(word, assigned)) return word.substr(assigned.size());
    if (word != option) continue;
    const bool has_value = i + 1 < words.size() && !starts_with(words[i + 1], "--"sv);
    return has_value ? std::string_view(words[i + 1]) : ""sv;
  }
  return {};
}

bool protects(const std::vector<std::string>& words, const ProtectingOption& option) {
  const auto value = value_in(words, option.name);
  return value && (option.unprotected[0] == '\0' || *value != option.unprotected);
}

bool is_named(const Invocation& invocation, std::string_view name) {
  if (name == "config"sv) return invocation.config.has_value();
  return find_where(invocation.given, [&](const Option* option) {
           return option->name() == name;
         }) != invocation.given.end();
}

std::string quoted_roots(const std::vector<Root>& roots) {
  std::string text;
  for (const Root& root : roots)
    append_all(text, "%%", {text.empty() ? "" : ", ", in_quotes(root.path)});
  return text;
}

const char* network_text(const ServerConfig& config) {
  switch (config.local.sandbox.network) {
    case Network::none:
      return "the network is closed";
    case Network::loopback:
      return "of the network they reach a 127.0.0.1 of their own";
    case Network::allow:
      return "of the network they reach the names of --allow-domains";
    default:
      return "the network is open (--network none closes it)";
  }
}

// A folder with the keys and settings of its user, or with those of all.
bool is_too_wide(const std::string& path) {
  const auto canonical = canonical_path(path);
  if (!canonical) return false;
  const char* const home = std::getenv("HOME");
  const auto own = canonical_path(home && home[0] == '/' ? home : "/");
  const std::string_view above = std::string_view(*canonical).substr(0, canonical->rfind('/'));
  return *canonical == "/" || *canonical == "/root" || above == "/home"sv ||
         (own && codeexec::is_within(*own, *canonical));
}

}  // namespace

inline namespace inner {

bool is_confined(const ServerConfig& config) {
  const bool is_container = !(config.use & Option::kernel);
  return is_container || config.sandbox != SandboxMode::off;
}

bool words_confine(const std::vector<std::string>& words) {
  const auto mode = value_in(words, "execution-mode");
  if (mode == "docker"sv || value_in(words, "profile") == "user-container"sv) return true;
  if (value_in(words, "sandbox") == "off"sv) return false;
  return !mode || mode == "local"sv || value_in(words, "sandbox") ||
         value_in(words, "allowed-paths");
}

std::string protection_text(const ServerConfig& config) {
  if (!(config.use & Option::kernel))
    return "protected: commands run in a container, which sees the workspace and what is mounted";
  if (!is_confined(config))
    return concat("NOT protected: commands run with all rights of the user%%",
                  {config.use == Option::local ? "" : " there",
                   config.sandbox == SandboxMode::off ? ", as --sandbox off asks for" : ""});
  std::vector<Root> roots = config.local.roots;
  if (roots.empty() && !config.local.workspace.empty())
    roots.push_back({config.local.workspace, Permission::write});
  return concat("protected: commands write only to %, HOME is %; %",
                {roots.empty() ? "the project that the client opens" : quoted_roots(roots),
                 config.local.private_home == PrivateHome::off ? "the user's" : "hidden",
                 network_text(config)});
}

std::vector<std::string> protection_warnings(const ServerConfig& config) {
  std::vector<std::string> lines;
  std::vector<std::string> folders = config.read_only;
  for (const Root& root : config.local.roots) folders.push_back(root.path);
  folders.push_back(config.local.workspace);
  for (const std::string& folder : folders)
    if (!folder.empty() && is_too_wide(folder))
      lines.push_back(
          concat("%: a home or the whole system, with its keys and settings, is no "
                 "project: name the project's folder",
                 {in_quotes(folder)}));
  if (::geteuid() == 0 && config.use == Option::local)
    lines.emplace_back("user 0: a client of root starts commands as root; use it as another user");
  return lines;
}

std::string lost_protection(const FoundEntry& entry, const ServerConfig& config) {
  if (!entry.is_there) return {};
  const char* const other = config.program->client_config->c_str();
  if (!entry.is_ours)
    return concat(
        "its entry % starts %, whose protection is not known here: take it out first "
        "(--client-config % --remove)",
        {server_name, entry.program.empty() ? Piece("another server") : in_quotes(entry.program),
         other});
  std::string lost;
  bool is_of_sandbox = true;
  for (const ProtectingOption& option : protecting_options) {
    const bool is_dropped = option.is_of_sandbox && config.sandbox == SandboxMode::off;
    if (is_dropped || !protects(entry.words, option) || is_named(config.invocation, option.name))
      continue;
    append_all(lost, {lost.empty() ? "--" : ", --", option.name});
    is_of_sandbox = is_of_sandbox && option.is_of_sandbox;
  }
  if (lost.empty()) return {};
  return concat(
      "its entry % is protected by %: name the same again to keep it%, or take the entry "
      "out first (--client-config % --remove)",
      {server_name, lost, is_of_sandbox ? ", say --sandbox off to drop it" : "", other});
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
