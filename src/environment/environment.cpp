// The variables, the venv and the prefix of a command.
//
// create() does once what does not depend on the command: it filters the host's variables, checks
// the operator's and fills in PATH and LANG. resolve() copies that and looks for the venv. Nothing
// is cached between commands, because creating a venv is itself a command.
//
// MCP clients start a server with six variables and no locale, and Python, git and others then
// fall back to ASCII: hence LANG. A missing PATH is not passed on, because each program has its own
// idea of what that means, and "<venv>/bin:" with nothing behind it would mean the work_dir.

#include "environment/environment.hpp"
#include "environment/environment_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/names_internal.hpp"
#include "base/platform_internal.hpp"
#include "paths/paths.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr std::string_view default_path =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// What is wrong with the name of a variable; null: nothing.
const char* problem_of_variable(std::string_view text) {
  return text.empty() || text.find('=') != std::string_view::npos || has_nul(text)
             ? "is no variable name: empty, or has '=' or NUL"
             : nullptr;
}

// Python's venv module refuses the colon, too: PATH has no way to quote it.
bool is_venv(const std::string& path) {
  return path.find(':') == std::string::npos && is_directory(path + "/bin");
}

SharedError environment_error(std::string_view option, std::string_view subject,
                              std::string_view what) {
  return make_error(ErrorCode::invalid_argument, "%: % %", {option, in_quotes(subject), what});
}

// Puts checked variables into the map, later ones over earlier ones. `option` names their origin.
Expected<void> assign_variables(TextMap& map, std::string_view option, const Variables& variables) {
  for (const auto& [variable, value] : variables) {
    const char* problem = problem_of_variable(variable);
    if (!problem && has_nul(value)) problem = "has a value with a NUL byte in it";
    if (problem) return environment_error(option, variable, problem);
    map[variable] = value;
  }
  return {};
}

const char* problem_of_kept(std::string_view pattern) {
  if (const char* const problem = problem_of_variable(pattern)) return problem;
  return pattern.find('*') < pattern.size() - 1 ? "has a '*' that is not its last character"
                                                : nullptr;
}

bool is_secret(std::string_view variable, const EnvironmentOptions& options) {
  return is_one_of(variable, options.secret);
}

// The host's variables that commands may see. Of two with one name the first counts, as for
// getenv().
TextMap kept_variables(const EnvironmentOptions& options) {
  TextMap map;
  for (char** entry = ::environ; entry && *entry; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string_view::npos) continue;
    const std::string_view variable = text.substr(0, equals);
    if ((is_kept(variable, options) || is_secret(variable, options)) && map.count(variable) == 0)
      map[std::string(variable)] = text.substr(equals + 1);
  }
  return map;
}

const char* problem_of_secret(std::string_view variable) {
  if (const char* const problem = problem_of_variable(variable)) return problem;
  return variable.find('*') == std::string_view::npos ? nullptr
                                                      : "has a '*': each secret is named by itself";
}

// The values of the secret variables among those of commands.
Expected<void> add_secret_values(const TextMap& map, const std::vector<std::string>& variables,
                                 std::vector<std::string>& values) {
  for (const std::string& variable : variables) {
    if (const char* const problem = problem_of_secret(variable))
      return environment_error("secret"sv, variable, problem);
    const auto found = map.find(variable);
    if (found == map.end())
      return make_error(ErrorCode::not_found,
                        "secret: % is neither a variable of this process nor one of 'set'",
                        {in_quotes(variable)});
    if (without_line_ends(found->second).size() < shortest_secret)
      return environment_error(
          "secret", variable,
          concat("has a value of fewer than % bytes, which cannot be masked", {shortest_secret}));
    values.push_back(found->second);
  }
  if (total_size(values) > longest_secrets)
    return make_error(ErrorCode::limit, "secret: the values have more than % bytes",
                      {longest_secrets});
  return {};
}

bool is_missing(const TextMap& map, std::string_view variable) {
  const auto found = map.find(variable);
  return found == map.end() || found->second.empty();
}

const char* problem_of_prefix(std::string_view prefix) {
  if (prefix.find_first_of(std::string_view("\0\n", 2)) != std::string_view::npos)
    return "has a newline or a NUL byte";
  return !prefix.empty() && prefix.find_first_not_of(" \t") == std::string_view::npos ? "is blank"
                                                                                      : nullptr;
}

// The canonical path of the operator's venv.
Expected<std::string> check_venv_path(const std::string& given) {
  auto path = canonical_path(given);
  if (!path) return with_prefix("venv_path: ", {}, path.error());
  if (path->find(':') != std::string::npos)
    return environment_error("venv_path"sv, *path, "has a ':', which PATH cannot hold"sv);
  if (!is_venv(*path))
    return make_error(ErrorCode::not_found, "venv_path: % has no 'bin' directory",
                      {in_quotes(*path)});
  return path;
}

}  // namespace

inline namespace inner {

bool is_directory(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool is_kept(std::string_view variable, const EnvironmentOptions& options) {
  if (options.keep_all) return true;
  for (const std::string& pattern : options.keep) {
    if (variable == pattern) return true;
    if (ends_with(pattern, "*"sv) &&
        starts_with(variable, std::string_view(pattern).substr(0, pattern.size() - 1)))
      return true;
  }
  return false;
}

}  // namespace inner

std::vector<std::string> usual_variables() {
  static constexpr auto names =
      NameList{"PATH",     "HOME", "USER",   "LOGNAME", "SHELL",     "LANG",     "LC_*",
               "LANGUAGE", "TZ",   "TMPDIR", "TERM",    "COLORTERM", "NO_COLOR", "FORCE_COLOR"};
  std::vector<std::string> list;
  for (const std::string_view name : names) list.emplace_back(name);
  return list;
}

Expected<void> Environment::set_up(const EnvironmentOptions& options) {
  for (const std::string& pattern : options.keep)
    if (const char* const problem = problem_of_kept(pattern))
      return environment_error("keep"sv, pattern, problem);
  if (const char* const problem = problem_of_prefix(options.command_prefix))
    return environment_error("command_prefix"sv, options.command_prefix, problem);
  prefix_ = options.command_prefix;
  auto_venv_ = options.auto_venv;
  if (!options.venv_path.empty()) {
    auto path = check_venv_path(options.venv_path);
    if (!path) return path.failure();
    venv_path_ = std::move(*path);
  }
  if (!options.workspace.empty()) {
    auto path = canonical_path(options.workspace);
    if (!path) return with_prefix("workspace: ", {}, path.error());
    workspace_ = std::move(*path);
  }

  TextMap map = kept_variables(options);
  auto ok = assign_variables(map, "set"sv, options.set);
  if (ok) ok = add_secret_values(map, options.secret, secrets_);
  if (!ok) return ok;
  if (is_missing(map, "PATH"sv)) map["PATH"] = default_path;
  if (is_missing(map, "LANG"sv) && is_missing(map, "LC_ALL"sv)) map["LANG"] = "C.UTF-8";
  for (const auto& [variable, value] : map) variables_.push_back({variable, value});
  return {};
}

Expected<Environment> Environment::create(const EnvironmentOptions& options) {
  Environment result;
  if (auto ok = result.set_up(options); !ok) return ok.failure();
  return result;
}

Expected<std::string> Environment::find_venv(std::string_view work_dir) const {
  if (!prefix_.empty()) return std::string();
  if (!venv_path_.empty()) {
    if (is_venv(venv_path_)) return venv_path_;
    return make_error(ErrorCode::not_found, "venv_path: % is gone since the start",
                      {in_quotes(venv_path_)});
  }
  if (!auto_venv_) return std::string();
  if (work_dir == workspace_) work_dir = {};
  for (const std::string_view place : {work_dir, std::string_view(workspace_)}) {
    if (place.empty()) continue;
    std::string venv = concat("%/.venv", {place});
    if (is_venv(venv)) return venv;
  }
  return std::string();
}

Expected<CommandEnvironment> Environment::resolve(std::string_view work_dir,
                                                  const Variables& extra) const {
  if (!work_dir.empty() && (work_dir[0] != '/' || has_nul(work_dir)))
    return environment_error("work_dir"sv, work_dir, "is not an absolute path"sv);
  auto venv = find_venv(work_dir);
  if (!venv) return venv.failure();

  TextMap map;
  for (const auto& [variable, value] : variables_) map[variable] = value;
  if (!work_dir.empty()) map["PWD"] = work_dir;
  if (!venv->empty()) {
    map["VIRTUAL_ENV"] = *venv;
    std::string& path = map["PATH"];
    path = concat("%/bin:%", {*venv, path});
    map.erase("PYTHONHOME");
  }
  if (auto assigned = assign_variables(map, "environment"sv, extra); !assigned)
    return assigned.failure();

  CommandEnvironment result;
  result.variables.reserve(map.size());
  for (const auto& [variable, value] : map)
    result.variables.push_back(concat("%=%", {variable, value}));
  result.prefix = prefix_;
  result.venv = std::move(*venv);
  return result;
}

}  // namespace v0_1
}  // namespace codeexec
