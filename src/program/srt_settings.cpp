// Settings of the sandbox-runtime (srt), which MassGen writes for its mode of that name, as
// settings of this sandbox.
//
// srt lets commands read everything but denyRead, and of that allowRead again; here commands read
// what is granted and nothing else: the writable and readable folders, and what programs need of
// the system. So a denial holds by itself, and what lies in a folder that is granted is hidden.

#include "program/program_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/platform_internal.hpp"
#include "executor/executor.hpp"
#include "json/json.hpp"
#include "paths/paths.hpp"
#include "sandbox/grants_internal.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// A key of the settings, as sandbox-runtime 0.0.x has it. What is not in this table is an error: it
// may be a protection.
struct SrtKey {
  const char* section;  // empty: at the top
  const char* name;
  enum Use {
    used,       // settings_of() reads it
    harmless,   // without it nothing is allowed that is denied with it
    allowance,  // allows something that is not granted here
    not_held    // a restriction that is not held here, or something else is meant to hold it
  } use;
};
constexpr SrtKey srt_keys[] = {{"", "filesystem", SrtKey::used},
                               {"", "network", SrtKey::used},
                               {"", "credentials", SrtKey::not_held},
                               {"", "allowAppleEvents", SrtKey::allowance},
                               {"", "allowPty", SrtKey::allowance},
                               {"", "bwrapPath", SrtKey::harmless},
                               {"", "enableWeakerNestedSandbox", SrtKey::harmless},
                               {"", "enableWeakerNetworkIsolation", SrtKey::harmless},
                               {"", "git", SrtKey::harmless},
                               {"", "ignoreViolations", SrtKey::harmless},
                               {"", "javaAgentJarPath", SrtKey::harmless},
                               {"", "mandatoryDenySearchDepth", SrtKey::harmless},
                               {"", "ripgrep", SrtKey::harmless},
                               {"", "seccomp", SrtKey::harmless},
                               {"", "socatPath", SrtKey::harmless},
                               {"", "windows", SrtKey::harmless},
                               {"filesystem", "allowGitConfig", SrtKey::used},
                               {"filesystem", "allowRead", SrtKey::used},
                               {"filesystem", "allowWrite", SrtKey::used},
                               {"filesystem", "denyRead", SrtKey::used},
                               {"filesystem", "denyWrite", SrtKey::used},
                               {"filesystem", "disabled", SrtKey::not_held},
                               {"network", "allowAllUnixSockets", SrtKey::allowance},
                               {"network", "allowLocalBinding", SrtKey::used},
                               {"network", "allowMachLookup", SrtKey::allowance},
                               {"network", "allowUnixSockets", SrtKey::allowance},
                               {"network", "allowedDomains", SrtKey::used},
                               {"network", "deniedDomainReasons", SrtKey::harmless},
                               {"network", "deniedDomains", SrtKey::used},
                               {"network", "deniedResolvedAddresses", SrtKey::not_held},
                               {"network", "filterRequest", SrtKey::not_held},
                               {"network", "httpProxyPort", SrtKey::not_held},
                               {"network", "mitmProxy", SrtKey::not_held},
                               {"network", "parentProxy", SrtKey::not_held},
                               {"network", "socksProxyPort", SrtKey::not_held},
                               {"network", "strictAllowlist", SrtKey::harmless},
                               {"network", "tlsTerminate", SrtKey::not_held}};

// What srt never lets commands write, in every folder that they may write to.
constexpr const char* always_kept[] = {
    ".git/hooks", ".gitconfig", ".gitmodules",      ".bashrc",       ".bash_profile",
    ".zshrc",     ".zprofile",  ".profile",         ".ripgreprc",    ".mcp.json",
    ".vscode",    ".idea",      ".claude/commands", ".claude/agents"};

// The folders of the system, of which commands get what programs need, whether these are named or
// not.
constexpr const char* system_folders[] = {
    "/",       "/usr", "/bin", "/sbin",      "/lib",     "/lib32",  "/lib64",
    "/libx32", "/etc", "/opt", "/dev",       "/tmp",     "/var",    "/proc",
    "/sys",    "/run", "/nix", "/nix/store", "/private", "/System", "/Library"};

// What is granted of the system, in whole or in part.
constexpr const char* granted_system[] = {"/usr",
                                          "/bin",
                                          "/sbin",
                                          "/lib",
                                          "/lib32",
                                          "/lib64",
                                          "/libx32",
                                          "/etc",
                                          "/opt",
                                          "/proc",
                                          "/sys",
                                          "/nix/store",
                                          "/run/current-system"};

// Files that are never granted, though others of their folder are.
constexpr const char* never_granted[] = {"/etc/shadow", "/etc/shadow-", "/etc/gshadow",
                                         "/etc/gshadow-", "/etc/sudoers"};

struct SrtSettings {
  std::vector<std::string> allow_write = {};  // canonical, like the next three
  std::vector<std::string> deny_write = {};
  std::vector<std::string> allow_read = {};
  std::vector<std::string> deny_read = {};
  std::vector<std::string> allowed_domains = {};
  std::vector<std::string> denied_domains = {};
  bool allows_git_config = false;
  bool allows_local = false;
};

bool is_set(const Json& value) {
  return !value.is_null() && !(value.is_bool() && !value.as_bool()) &&
         !((value.is_array() || value.is_object()) && value.size() == 0);
}

Expected<void> check_keys(const Json& object, std::string_view section) {
  for (const Json::Member& member : object.members()) {
    const std::string shown = concat("%%%", {section, section.empty() ? "" : ".", member.name});
    const auto* const key = find_where(srt_keys, [&](const SrtKey& known) {
      return known.section == section && known.name == member.name;
    });
    if (key == std::end(srt_keys))
      return make_error(ErrorCode::invalid_argument,
                        "% is not known here, and may be a protection: leave it out",
                        {in_quotes(shown)});
    if (!is_set(member.value)) continue;
    if (key->use == SrtKey::not_held)
      return make_error(ErrorCode::unsupported, "% is not held here: leave it out",
                        {in_quotes(shown)});
    if (key->use == SrtKey::allowance)
      warn(concat("srt-settings: % is not granted here", {in_quotes(shown)}));
  }
  return {};
}

Expected<void> read_texts(const Json& object, const char* name, std::vector<std::string>& texts) {
  const Json& value = object[name];
  bool is_right = value.is_null() || value.is_array();
  for (const Json& item : value.items()) {
    is_right = is_right && item.is_string() && !item.as_string().empty();
    if (is_right) texts.push_back(item.as_string());
  }
  if (is_right) return {};
  return make_error(ErrorCode::invalid_argument, "% is not a list of texts", {in_quotes(name)});
}

Expected<void> read_truth(const Json& object, const char* name, bool& truth) {
  const Json& value = object[name];
  if (!value.is_null() && !value.is_bool())
    return make_error(ErrorCode::invalid_argument, "% is not true or false", {in_quotes(name)});
  truth = value.as_bool();
  return {};
}

// A path as srt reads it, with links followed.
Expected<std::string> path_of_srt(const char* name, const std::string& text) {
  const auto wrong = [&](const char* why) {
    return make_error(ErrorCode::invalid_argument, "%: %: %", {name, in_quotes(text), why});
  };
  if (text.find_first_of("*?[") != std::string::npos)
    return wrong("a pattern is not held here: name the path");
  std::string path = text;
  if (text == "~" || starts_with(text, "~/"sv)) {
    const char* const home = std::getenv("HOME");
    if (!home || home[0] != '/') return wrong("HOME names no folder");
    path = concat("%%", {home, text.substr(1)});
  }
  if (!starts_with(path, "/"sv)) return wrong("a path must be absolute");
  // The names of the system's folders stand for what programs need of them, not for what links of
  // theirs lead to.
  if (is_one_of(path, system_folders)) return path;
  auto canonical = canonical_path(path);
  if (!canonical) return wrong(canonical.error().message.c_str());
  return canonical;
}

Expected<void> read_paths(const Json& object, const char* name, std::vector<std::string>& paths) {
  std::vector<std::string> texts;
  if (auto ok = read_texts(object, name, texts); !ok) return ok;
  for (const std::string& text : texts) {
    auto path = path_of_srt(name, text);
    if (!path) return path.failure();
    if (!is_one_of(*path, paths)) paths.push_back(std::move(*path));
  }
  return {};
}

Expected<void> read_settings(const Json& object, SrtSettings& settings) {
  if (!object.is_object()) return make_error(ErrorCode::invalid_argument, "not a JSON object");
  auto ok = check_keys(object, ""sv);
  for (const char* section : {"filesystem", "network"}) {
    if (!ok) return ok;
    if (!object[section].is_object())
      return make_error(ErrorCode::invalid_argument, "% is not an object", {in_quotes(section)});
    ok = check_keys(object[section], section);
  }
  const Json& files = object["filesystem"];
  const Json& network = object["network"];
  if (ok) ok = read_paths(files, "allowWrite", settings.allow_write);
  if (ok) ok = read_paths(files, "denyWrite", settings.deny_write);
  if (ok) ok = read_paths(files, "allowRead", settings.allow_read);
  if (ok) ok = read_paths(files, "denyRead", settings.deny_read);
  if (ok) ok = read_truth(files, "allowGitConfig", settings.allows_git_config);
  if (ok) ok = read_texts(network, "allowedDomains", settings.allowed_domains);
  if (ok) ok = read_texts(network, "deniedDomains", settings.denied_domains);
  if (ok) ok = read_truth(network, "allowLocalBinding", settings.allows_local);
  return ok;
}

// True if one of the folders is the path, or lies above it.
bool lies_in_any(std::string_view path, const std::vector<std::string>& folders) {
  for (const std::string& folder : folders)
    if (codeexec::is_within(path, folder)) return true;
  return false;
}

// Whether srt lets commands read there.
bool may_be_read(std::string_view path, const SrtSettings& settings) {
  return lies_in_any(path, settings.allow_read) || !lies_in_any(path, settings.deny_read);
}

// Grants the folders and files, in `config`.
class SrtGrants {
 public:
  SrtGrants(const SrtSettings& settings, ServerConfig& config)
      : settings_(settings), config_(config) {}

  Expected<void> add_writable() {
    for (const std::string& path : settings_.allow_write) {
      if (lies_in_any(path, settings_.deny_write)) {
        warn(concat("srt-settings: % is in allowWrite, and denyWrite takes it back",
                    {in_quotes(path)}));
        continue;
      }
      if (!may_be_read(path, settings_))
        return make_error(ErrorCode::unsupported,
                          "allowWrite: % may not be read by denyRead: add it to allowRead",
                          {in_quotes(path)});
      add(path, Permission::write);
    }
    return {};
  }

  // `starts`: where commands may start in any case, if they may read there.
  void add_readable(const std::vector<std::string>& starts) {
    for (const std::string& path : settings_.allow_read)
      if (!is_one_of(path, system_folders) && !lies_in_any(path, writable_))
        add(path, Permission::read);
    for (const std::string& given : starts) {
      const auto path = canonical_path(given);
      if (!path || lies_in_any(*path, writable_) || lies_in_any(*path, readable_)) continue;
      if (may_be_read(*path, settings_))
        add(*path, Permission::read);
      else
        warn(
            concat("srt-settings: no command starts in %: it may not be read", {in_quotes(*path)}));
    }
  }

  // What may not be written in a folder that may. It has to be there: what is not cannot be kept.
  Expected<void> add_kept() {
    std::vector<std::string>& kept = config_.local.sandbox.protected_paths;
    for (const std::string& path : settings_.deny_write)
      for (const std::string& folder : writable_) {
        if (!codeexec::is_within(path, folder)) continue;
        if (::access(path.c_str(), F_OK) != 0)
          return make_error(ErrorCode::unsupported,
                            "denyWrite: % lies in %, which commands may write to, and is not "
                            "there: make it first",
                            {in_quotes(path), in_quotes(folder)});
        kept.push_back(path.substr(folder == "/" ? 1 : folder.size() + 1));
      }
    for (const char* name : always_kept)
      if (!is_one_of(std::string_view(name), kept)) add_words(kept, {name});
    if (!settings_.allows_git_config) add_words(kept, {".git/config"});
    return {};
  }

  // Every denial in what is granted must be held; the system is not changed.
  Expected<void> add_hidden() {
    std::vector<std::string>& hidden = config_.local.sandbox.hidden_paths;
    for (const std::string& denied : settings_.deny_read) {
      if ((lies_in_any(denied, writable_) || lies_in_any(denied, readable_)) &&
          !lies_in_any(denied, settings_.allow_read)) {
        for (const std::string& allowed : settings_.allow_read)
          if (codeexec::is_within(allowed, denied))
            return make_error(ErrorCode::unsupported,
                              "allowRead: % cannot be read again in %, which denyRead hides: move "
                              "it out",
                              {in_quotes(allowed), in_quotes(denied)});
        hidden.push_back(denied);
      }
      if (is_one_of(denied, never_granted)) continue;
      for (const char* folder : granted_system)
        if (auto ok = check_system(denied, folder); !ok) return ok;
    }
    return {};
  }

 private:
  void add(const std::string& path, Permission permission) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) {
      warn(concat("srt-settings: % is not there, and will not be % when it is",
                  {in_quotes(path), permission == Permission::write ? "written to" : "read"}));
      return;
    }
    const bool writes = permission == Permission::write;
    (writes ? writable_ : readable_).push_back(path);
    SandboxOptions& sandbox = config_.local.sandbox;
    if (S_ISDIR(status.st_mode))
      config_.local.roots.push_back({path, permission});
    else
      (writes ? sandbox.writable : sandbox.readable).push_back(path);
  }

  // The deeper one of the two, if one lies in the other, must be allowed again.
  Expected<void> check_system(const std::string& denied, const char* folder) const {
    const auto canonical = canonical_path(folder);
    if (!canonical || ::access(folder, F_OK) != 0) return {};
    std::string_view both;
    if (codeexec::is_within(denied, *canonical))
      both = denied;
    else if (codeexec::is_within(*canonical, denied))
      both = *canonical;
    if (both.empty() || lies_in_any(both, settings_.allow_read) ||
        is_one_of(folder, settings_.allow_read))
      return {};
    return make_error(ErrorCode::unsupported,
                      "denyRead: % holds what programs need of the system, which commands read "
                      "here in any case; allow % in allowRead, or leave it out",
                      {in_quotes(denied), both});
  }

  const SrtSettings& settings_;
  ServerConfig& config_;
  std::vector<std::string> writable_ = {};
  std::vector<std::string> readable_ = {};
};

// Takes folders out of this program's PATH that commands may not read: a tool's folder on the PATH
// is granted with what belongs to it.
Expected<void> clear_path(const SrtSettings& settings) {
  const char* const path = std::getenv("PATH");
  std::string kept;
  for (std::string_view rest = path ? path : ""; !rest.empty();) {
    const std::string_view folder = take_part(rest, ':');
    const auto canonical = canonical_path(folder);
    if (!canonical || !may_be_read(*canonical, settings)) continue;
    append_all(kept, {kept.empty() ? "" : ":", folder});
  }
  if (::setenv("PATH", kept.empty() ? "/usr/bin:/bin" : kept.c_str(), 1) == 0) return {};
  return make_error(ErrorCode::io, "cannot set PATH: %", {errno_text(errno)});
}

// The user's name for git stands in a file of the home.
bool may_read_git_identity(const SrtSettings& settings) {
  const char* const home = std::getenv("HOME");
  const auto file = canonical_path(concat("%/.gitconfig", {home ? home : ""}));
  return file && may_be_read(*file, settings);
}

void set_network(const SrtSettings& settings, ServerConfig& config) {
  const bool has_names = !settings.allowed_domains.empty();
  config.local.allowed_domains = settings.allowed_domains;
  if (has_names) config.local.denied_domains = settings.denied_domains;
  config.local.sandbox.network = has_names               ? Network::allow
                                 : settings.allows_local ? Network::loopback
                                                         : Network::none;
}

Expected<void> apply(const SrtSettings& settings, const std::vector<std::string>& paths,
                     ServerConfig& config) {
  SrtGrants grants(settings, config);
  auto ok = grants.add_writable();
  if (ok) grants.add_readable(paths);
  if (ok) ok = grants.add_kept();
  if (ok) ok = grants.add_hidden();
  if (ok) set_network(settings, config);
  if (ok) ok = clear_path(settings);
  if (ok && config.local.roots.empty())
    ok = make_error(ErrorCode::invalid_argument, "there is no folder that commands may start in");
  if (!ok) return ok;
  config.sandbox = SandboxMode::strict;
  config.local.git_identity = config.local.git_identity && may_read_git_identity(settings);
  return {};
}

}  // namespace

inline namespace inner {

Expected<void> apply_srt_settings(const std::string& file, const std::vector<std::string>& paths,
                                  ServerConfig& config) {
  const auto text = read_whole_file(file, longest_config, "srt-settings"sv);
  if (!text) return text.failure();
  JsonLimits limits;
  limits.unique_names = true;
  const auto json = Json::parse(*text, limits);
  SrtSettings settings;
  auto ok = json ? read_settings(*json, settings) : Expected<void>(json.error());
  if (ok) ok = apply(settings, paths, config);
  if (!ok) return with_prefix("srt-settings: %: ", {in_quotes(file)}, ok.error());
  return {};
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
