// Credentials: files and variables of the user that a container gets.
//
//   options                      what becomes of it
//   credentials (names)          the file of that name, if it is there, mounted read-only
//   env_file                     all its variables, or those in env_vars_from_file
//   pass_all_env                 variables of this process, but for variables_of_host
//   env_vars                     these variables of this process, if they are set
//
// A later line wins over an earlier one with the same variable. Values are secrets, which outputs
// and logs do not show, unless is_trivial() or is_harmless() says that hiding them would only harm.

#include "docker/docker.hpp"
#include "docker/docker_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/names_internal.hpp"
#include "base/platform_internal.hpp"
#include "json/json.hpp"
#include "paths/paths.hpp"
#include "process/capture_internal.hpp"
#include "process/process.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

struct NamedMount {
  const char* name;
  const char* path;  // in the home directory
};
constexpr NamedMount named_mounts[] = {
    {"ssh_keys", ".ssh"},       {"git_config", ".gitconfig"}, {"gh_config", ".config/gh"},
    {"npm_config", ".npmrc"},   {"pypi_config", ".pypirc"},   {"claude_config", ".claude"},
    {"codex_config", ".codex"}, {"gemini_config", ".gemini"},
};

SharedError credential_error(std::string_view key, std::string_view subject, std::string_view what,
                             ErrorCode code = ErrorCode::invalid_argument) {
  return make_error(code, "credentials: %: % %", {key, in_quotes(subject), what});
}

// True for short numbers and for words such as yes, no or localhost: to mask them everywhere would
// make outputs unreadable and hide nothing.
bool is_trivial(std::string_view value) {
  if (value.size() < Redactor::min_size) return true;
  if (value.size() <= 5 && value.find_first_not_of("0123456789.-+") == std::string_view::npos)
    return true;
  static constexpr auto words =
      NameSet{"0.0.0.0", "127.0.0.1",   "always",   "auto",    "c.utf-8", "debug",
              "default", "development", "disabled", "enabled", "error",   "false",
              "info",    "localhost",   "never",    "none",    "null",    "production",
              "staging", "test",        "true",     "utf-8",   "warning"};
  return words.has(in_lower_case(value));
}

// Variables of the host's system, session and programs. In a container they would be wrong.
constexpr auto variables_of_host = NameList{"_",
                                            "PATH",
                                            "HOME",
                                            "PWD",
                                            "OLDPWD",
                                            "SHELL",
                                            "USER",
                                            "USERNAME",
                                            "LOGNAME",
                                            "HOSTNAME",
                                            "TMPDIR",
                                            "TMP",
                                            "TEMP",
                                            "TEMPDIR",
                                            "TERM",
                                            "TERMCAP",
                                            "TERMINFO*",
                                            "COLUMNS",
                                            "LINES",
                                            "LS_COLORS",
                                            "LESSOPEN",
                                            "LESSCLOSE",
                                            "SHLVL",
                                            "SHELLOPTS",
                                            "BASH*",
                                            "ENV",
                                            "IFS",
                                            "CDPATH",
                                            "PS1",
                                            "PS2",
                                            "PS4",
                                            "PROMPT_COMMAND",
                                            "MAIL",
                                            "LD_*",
                                            "DYLD_*",
                                            "GCONV_PATH",
                                            "LOCPATH",
                                            "XDG_*",
                                            "DBUS_*",
                                            "DISPLAY",
                                            "WAYLAND_*",
                                            "XAUTHORITY",
                                            "SSH_*",
                                            "GPG_*",
                                            "SUDO_*",
                                            "DOCKER_*",
                                            "CONTAINER_*",
                                            "BUILDKIT_*",
                                            "INVOCATION_ID",
                                            "JOURNAL_STREAM",
                                            "NOTIFY_SOCKET",
                                            "LISTEN_*",
                                            "SYSTEMD_*",
                                            "VIRTUAL_ENV*",
                                            "PYTHONHOME",
                                            "PYTHONPATH",
                                            "CONDA_*",
                                            "_CE_*",
                                            "NVM_*",
                                            "CODEEXEC_*"};

// True if a variable of the host is no secret: by its name, or as its value is a path of the host.
bool is_harmless(std::string_view variable, const std::string& value) {
  static constexpr auto known =
      NameList{"LANG",        "LANGUAGE", "LC_*",   "TZ",    "COLORTERM", "NO_COLOR",
               "FORCE_COLOR", "EDITOR",   "VISUAL", "PAGER", "MANPAGER"};
  return known.match(variable) || (value[0] == '/' && ::access(value.c_str(), F_OK) == 0);
}

// Reads the credentials in the order of the table above. Values are collected by name, so that
// later ones replace earlier ones; at the end the secrets among them are found and the sizes
// checked.
class CredentialReader {
 public:
  CredentialReader(const ContainerOptions& options, std::string_view home)
      : options_(options), home_(home) {}

  // The bounds are those of what a container can be given: a variable of a size that no program can
  // start with, and more secrets than can be masked, are errors here and not later.
  Expected<Credentials> read() {
    for (const auto step : {&CredentialReader::add_mounts, &CredentialReader::add_file,
                            &CredentialReader::add_host, &CredentialReader::add_named})
      if (auto ok = (this->*step)(); !ok) return ok.failure();
    std::size_t size = 0;
    for (const auto& [variable, value] : values_) {
      const std::size_t bytes = variable.size() + value.size() + 2;
      size += bytes;
      if (bytes > longest_variable)
        return credential_error("environment"sv, variable, "has too long a value"sv,
                                ErrorCode::limit);
      if (!is_one_of(variable, shown_) && !is_trivial(without_line_ends(value)))
        result_.secrets.push_back(value);
      result_.variables.push_back({variable, value});
    }
    if (size > Redactor::max_total)
      return make_error(ErrorCode::limit, "credentials: the variables have more than % bytes",
                        {Redactor::max_total});
    return std::move(result_);
  }

 private:
  // Files of the user, read-only, into the home of the container. One that is not there is a note
  // and no error, as a list of them is written once for many machines.
  Expected<void> add_mounts() {
    for (const std::string& wanted : options_.credentials) {
      std::string known;
      const NamedMount* found = nullptr;
      for (const NamedMount& mount : named_mounts) {
        append_all(known, {known.empty() ? "is none of " : ", ", mount.name});
        if (wanted == mount.name) found = &mount;
      }
      if (!found) return credential_error("mount", wanted, known);
      const Mount mount = {concat("~/%", {found->path}), concat("%/%", {home_, found->path}),
                           Permission::read};
      const auto source = with_home(mount.source);
      if (!source) return with_prefix("credentials: mount: ", {}, source.error());
      if (::access(source->c_str(), F_OK) == 0)
        result_.mounts.push_back(mount);
      else
        result_.notes.push_back(concat("credentials: %: there is no %", {wanted, mount.source}));
    }
    return {};
  }

  // Variables of a .env file. All of it is read, and lines that are none are named by number, never
  // shown.
  Expected<void> add_file() {
    constexpr std::string_view key = "env_vars_from_file";
    if (options_.env_file.empty()) {
      if (options_.env_vars_from_file.empty()) return {};
      return make_error(ErrorCode::invalid_argument, "credentials: % needs an env_file", {key});
    }
    auto path = with_home(options_.env_file);
    if (!path) return with_prefix("credentials: env_file: ", {}, path.error());
    auto text = read_whole_file(*path, longest_env_file, "credentials: env_file");
    if (!text) return text.failure();
    std::vector<std::string> skipped;
    auto parsed = parse_env_file(*text, &skipped);
    for (const std::string& line : skipped)
      result_.notes.push_back(
          concat("credentials: env_file %: left out: %", {in_quotes(*path), line}));
    if (!parsed)
      return with_prefix("credentials: env_file %: ", {in_quotes(*path)}, parsed.error());
    if (options_.env_vars_from_file.empty())
      for (const auto& [variable, value] : *parsed) values_[variable] = value;
    for (const std::string& variable : options_.env_vars_from_file) {
      if (auto ok = check_name(key, variable); !ok) return ok;
      const auto found =
          find_where(*parsed, [&](const auto& one) { return one.first == variable; });
      if (found == parsed->end())
        return credential_error(key, variable, "is not in the env_file"sv, ErrorCode::not_found);
      values_[variable] = found->second;
    }
    return {};
  }

  // All variables of this process but those that would be wrong in a container, or lead to its
  // engine.
  Expected<void> add_host() {
    if (!options_.pass_all_env) return {};
    for (char** entry = environ; entry && *entry; ++entry) {
      const std::string_view text = *entry;
      const std::string_view variable = text.substr(0, text.find('='));
      if (variable.size() == text.size() || !is_name(variable) || variables_of_host.match(variable))
        continue;
      add_of_host(std::string(variable), std::string(text.substr(variable.size() + 1)));
    }
    return {};
  }

  // Named ones of this process; one that is not set is a note.
  Expected<void> add_named() {
    for (const std::string& variable : options_.env_vars) {
      if (auto ok = check_name("env_vars"sv, variable); !ok) return ok;
      if (const char* const value = std::getenv(variable.c_str()))
        add_of_host(variable, value);
      else
        result_.notes.push_back(
            concat("credentials: env_vars: % is not set on the host", {variable}));
    }
    return {};
  }

  // Replaces a value of the env_file.
  void add_of_host(const std::string& variable, const std::string& value) {
    values_[variable] = value;
    if (is_harmless(variable, value)) shown_.push_back(variable);
  }

  // NAME=value is a mistake, and the error must not show the value.
  static Expected<void> check_name(std::string_view key, const std::string& variable) {
    if (is_name(variable)) return {};
    return credential_error(key, std::string_view(variable).substr(0, variable.find('=')),
                            variable.find('=') == std::string::npos
                                ? "is not the name of a variable"
                                : "must be a name alone, without = and a value");
  }

  const ContainerOptions& options_;
  std::string_view home_;
  Credentials result_ = Credentials();
  TextMap values_ = {};
  std::vector<std::string> shown_ = {};  // those that are no secrets
};

// An object of a configuration file, whose keys are read one by one. The first error is kept, and
// done() returns it, or an error for keys that were never taken. `path` is the object's place.
class JsonKeys {
 public:
  JsonKeys(const Json& value, std::string path) : value_(value), path_(std::move(path)) {
    if (!value.is_object()) wrong(""sv, "must be an object"sv);
  }

  // The value of a key; null, which is as good as none, when it is missing.
  const Json& take(std::string_view key) {
    seen_.push_back(key);
    return value_[key];
  }
  void strings(std::string_view key, std::vector<std::string>& target) {
    const Json& list = take(key);
    if (list.is_null()) return;
    bool good = list.is_array();
    for (const Json& item : list.items()) {
      good = good && is_text(item);
      target.push_back(item.as_string());
    }
    if (!good) wrong(key, "must be a list of strings"sv);
  }
  void text(std::string_view key, std::string& target) {
    const Json& given = take(key);
    if (given.is_null()) return;
    target = given.as_string();
    if (!is_text(given)) wrong(key, "must be a string"sv);
  }
  void flag(std::string_view key, bool& target) {
    const Json& given = take(key);
    if (given.is_null()) return;
    target = given.as_bool();
    if (!given.is_bool()) wrong(key, "must be true or false"sv);
  }
  void wrong(std::string_view key, std::string_view what) {
    if (error_.empty()) error_ = concat("%%% %", {path_, key.empty() ? "" : ".", key, what});
  }
  // Call this last. Keys that were not taken are unknown.
  Expected<void> done() {
    for (const Json::Member& member : value_.members())
      if (std::find(seen_.begin(), seen_.end(), member.name) == seen_.end())
        wrong(""sv, concat("has an unknown key %", {in_quotes(member.name)}));
    if (error_.empty()) return {};
    return make_error(ErrorCode::invalid_argument, "%", {error_});
  }

 private:
  static bool is_text(const Json& value) {
    return value.is_string() && !value.has_lone_surrogate() &&
           value.as_string().find('\0') == std::string::npos;
  }
  const Json& value_;
  std::string path_;
  std::vector<std::string_view> seen_ = {};
  std::string error_ = {};
};

}  // namespace

inline namespace inner {

// As a shell does at the start of a word; ~other is a name like any other.
Expected<std::string> with_home(std::string_view path) {
  if (path != "~"sv && !starts_with(path, "~/"sv)) return std::string(path);
  const char* const home = std::getenv("HOME");
  if (!home || home[0] != '/')
    return make_error(ErrorCode::not_found, "the variable HOME, which ~ stands for, is not set");
  return concat({home, path.substr(1)});
}

Expected<Credentials> load_credentials(const ContainerOptions& options, std::string_view home) {
  return CredentialReader(options, home).read();
}

}  // namespace inner

// Unknown keys are errors, as a credential that is left out in silence is found much later, in a
// command.
Expected<void> credentials_from_json(const Json& value, ContainerOptions& options) {
  JsonKeys keys(value, "credentials");
  keys.strings("mount"sv, options.credentials);
  keys.text("env_file"sv, options.env_file);
  keys.strings("env_vars"sv, options.env_vars);
  keys.strings("env_vars_from_file"sv, options.env_vars_from_file);
  keys.flag("pass_all_env"sv, options.pass_all_env);
  const Json& mounts = keys.take("additional_mounts"sv);
  if (!mounts.is_null() && !mounts.is_object())
    keys.wrong("additional_mounts"sv, "must be an object"sv);
  if (auto ok = keys.done(); !ok) return ok;
  for (const Json::Member& member : mounts.members()) {
    JsonKeys mount_keys(member.value,
                        concat("credentials.additional_mounts.%", {in_quotes(member.name)}));
    Mount mount;
    std::string mode = "ro";
    mount.source = member.name;
    mount_keys.text("bind"sv, mount.target);
    mount_keys.text("mode"sv, mode);
    if (mode == "rw")
      mount.permission = Permission::write;
    else if (mode != "ro")
      mount_keys.wrong("mode"sv, "must be \"ro\" or \"rw\""sv);
    if (auto ok = mount_keys.done(); !ok) return ok;
    options.mounts.push_back(std::move(mount));
  }
  return {};
}

// The same for packages, whose timeout is in seconds, as in the files of MassGen.
Expected<void> packages_from_json(const Json& value, ContainerOptions& options) {
  JsonKeys keys(value, "packages");
  const Json& lists = keys.take("preinstall"sv);
  keys.flag("required"sv, options.packages_required);
  if (const Json& seconds = keys.take("timeout"sv); !seconds.is_null()) {
    const double time = seconds.as_number();
    if (!(time > 0 && time <= 86400))
      keys.wrong("timeout"sv, "must be seconds, more than 0 and at most 86400"sv);
    else
      options.package_timeout = std::chrono::milliseconds(static_cast<std::int64_t>(time * 1000));
  }
  if (auto ok = keys.done(); !ok) return ok;
  if (lists.is_null()) return {};
  JsonKeys list_keys(lists, "packages.preinstall");
  list_keys.strings("system"sv, options.system_packages);
  list_keys.strings("python"sv, options.python_packages);
  list_keys.strings("npm"sv, options.npm_packages);
  return list_keys.done();
}

}  // namespace v0_1
}  // namespace codeexec
