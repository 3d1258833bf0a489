// What the sandbox of a local executor grants.
//
// complete_sandbox() is called once, by create(), and takes the steps below in this order. With the
// sandbox off it only checks that no option needs one.
//
//   source of a grant                     right    function
//   workspace, if there are no roots      write    grant_roots()
//   a root that may be written            write    grant_roots()
//   a root that may be read               read     grant_roots()
//   venv_path, skills_dir, spill_dir      read     grant_needed()
//   shell                                 read     grant_needed()
//   the PATH of the commands              read     complete_sandbox(), as the search_path
//
// What holds: no root and no needed path grants `/`, and a needed path no home directory. A root
// within one that allows more cannot be held: that is an error in strict mode, and a gap of the
// report otherwise.

#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "environment/environment.hpp"
#include "environment/environment_internal.hpp"
#include "paths/paths.hpp"
#include "sandbox/grants_internal.hpp"
#include "sandbox/listener_internal.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Roots of one kind that lie in a root which allows more. Grants only add up in the kernel, so
// commands have there what the outer root allows.
std::string roots_out_of_reach(const std::vector<Root>& roots, Permission permission) {
  std::vector<std::string> paths;
  for (const Root& root : roots) {
    bool allows_more = false;
    for (const Root& other : roots)
      allows_more = allows_more || (other.permission > root.permission &&
                                    codeexec::is_within(root.path, other.path));
    if (root.permission == permission && allows_more) paths.push_back(in_quotes(root.path));
  }
  return joined(paths, ", "sv);
}

// An absolute path, with the links that it was given with: the sandbox looks at each link in it.
std::string path_from_here(const std::string& path) {
  if (starts_with(path, "/"sv)) return path;
  const auto here = canonical_path(".");
  return here ? concat("%/%", {*here, path}) : path;
}

// What lies in a writable directory is readable already, and so is the system. The sandbox gets
// the path as it was given: it refuses links which a command could have put there.
void grant_reading(SandboxOptions& sandbox, const std::string& canonical,
                   const std::string& given) {
  if (is_readable_system(canonical)) return;
  for (const std::string& other : sandbox.writable)
    if (codeexec::is_within(canonical, other)) return;
  sandbox.readable.push_back(given);
}

// What commands need besides the roots, by the names of its options.
struct NeededPath {
  const char* option;
  const std::string& path;
};
std::array<NeededPath, 4> needed_paths(const LocalOptions& options, const std::string& spill_dir) {
  return {{{"venv_path", options.environment.venv_path},
           {"skills_dir", options.skills_dir},
           {"spill_dir", spill_dir},
           {"shell", options.shell}}};
}

Expected<void> grant_needed(const LocalOptions& options, const std::string& spill_dir,
                            SandboxOptions& sandbox) {
  for (const NeededPath& needed : needed_paths(options, spill_dir)) {
    if (needed.path.empty()) continue;
    auto canonical = canonical_path(needed.path);
    if (!canonical) return canonical.failure();
    const std::size_t before = sandbox.readable.size();
    grant_reading(sandbox, *canonical, path_from_here(needed.path));
    if (sandbox.readable.size() != before && is_home_directory(*canonical))
      return make_error(ErrorCode::invalid_argument,
                        "%: % is a home directory or above one, which commands would be shown all "
                        "of; name the directory that they need",
                        {needed.option, in_quotes(needed.path)});
  }
  return {};
}

// What the roots allow as grants of the sandbox. What it cannot hold goes into `missing`.
Expected<void> grant_roots(const LocalOptions& options, const std::vector<Root>& roots,
                           const std::string& workspace, SandboxOptions& sandbox,
                           std::vector<std::string>& missing) {
  const auto check = [](const char* option, const std::string& path) -> Expected<void> {
    if (path != "/") return {};
    return make_error(ErrorCode::invalid_argument,
                      "%: a sandbox cannot be given '/': name the directories that commands need, "
                      "or set sandbox to off",
                      {option});
  };
  if (roots.empty()) {
    if (auto ok = check("workspace", workspace); !ok) return ok;
    sandbox.writable.push_back(workspace);
  }
  for (const Root& root : roots) {
    if (root.permission == Permission::none) continue;
    const bool write = root.permission == Permission::write;
    if (auto ok = check(write ? "allowed_paths" : "read_only", root.path); !ok) return ok;
    if (write) sandbox.writable.push_back(root.path);
  }
  for (const Root& root : roots)
    if (root.permission == Permission::read)
      grant_reading(sandbox, root.path, path_as_given(root.path, options));
  for (const Permission permission : {Permission::none, Permission::read}) {
    const std::string paths = roots_out_of_reach(roots, permission);
    if (paths.empty()) continue;
    const bool none = permission == Permission::none;
    std::string reason = concat("%%: the kernel cannot take it back there",
                                {paths, none ? " in a directory that commands may use"
                                             : " in a directory that commands may change"});
    if (sandbox.mode == SandboxMode::strict)
      return make_error(ErrorCode::unsupported,
                        "%: sandbox strict: %; move it out, or set sandbox to best_effort",
                        {none ? "allowed_paths" : "read_only", reason});
    missing.push_back(concat({none ? "forbidden_roots: " : "read_only_roots: ", reason}));
  }
  return {};
}

}  // namespace

inline namespace inner {

Expected<void> check_without_sandbox(const SandboxOptions& options) {
  if (options.mode != SandboxMode::off) return {};
  if (options.network != Network::host)
    return make_error(ErrorCode::invalid_argument,
                      "network: % needs a sandbox: set sandbox to best_effort or strict",
                      {in_quotes(name(options.network))});
  const char* const asked = options.pid_namespace              ? "pid_namespace"
                            : !options.protected_paths.empty() ? "protected_paths"
                            : !options.hidden_paths.empty()    ? "hidden_paths"
                                                               : nullptr;
  if (asked)
    return make_error(ErrorCode::invalid_argument,
                      "%: it needs a sandbox: set sandbox to best_effort or strict", {asked});
  return {};
}

bool sets_variable(const Variables& variables, std::string_view name) {
  for (const auto& variable : variables)
    if (variable.first == name) return true;
  return false;
}

const char* value_of(const std::vector<std::string>& variables, std::string_view wanted) {
  for (const std::string& variable : variables)
    if (starts_with(variable, wanted) && variable.size() > wanted.size() &&
        variable[wanted.size()] == '=')
      return variable.c_str() + wanted.size() + 1;
  return nullptr;
}

std::vector<std::string> offline_variables(Network network, unsigned port) {
  if (network == Network::host) return {};
  std::vector<std::string> variables = {concat("CODEEXEC_NETWORK=%", {name(network)})};
  if (network == Network::allow) {
    const std::string proxy = concat("http://127.0.0.1:%", {port});
    for (const char* variable : {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"})
      add_words(variables, {concat("%=%", {variable, proxy}),
                            concat("%=%", {in_lower_case(variable), proxy})});
    add_words(variables, {"NO_PROXY=localhost,127.0.0.1,::1", "no_proxy=localhost,127.0.0.1,::1",
                          "NODE_USE_ENV_PROXY=1"});
  }
  if (network == Network::none)
    add_words(variables, {"npm_config_offline=true", "npm_config_fetch_retries=0",
                          "pnpm_config_fetch_retries=0", "PIP_NO_INDEX=1", "CARGO_NET_OFFLINE=true",
                          "UV_OFFLINE=1", "GOPROXY=off", "HF_HUB_OFFLINE=1"});
  return variables;
}

void add_toolchains(const Environment& environment, std::vector<std::string>& variables) {
  const auto resolved = environment.resolve({});
  const char* const home = resolved ? value_of(resolved->variables, "HOME"sv) : nullptr;
  if (!home) return;
  const std::string toolchains = concat("%/.rustup", {home});
  if (is_directory(toolchains)) variables.push_back(concat("RUSTUP_HOME=%", {toolchains}));
}

std::string path_as_given(const std::string& canonical, const LocalOptions& options) {
  for (const Root& root : options.roots) {
    const auto path = canonical_path(root.path);
    if (path && *path == canonical) return path_from_here(root.path);
  }
  const auto workspace = canonical_path(options.workspace);
  return workspace && *workspace == canonical ? path_from_here(options.workspace) : canonical;
}

SharedError in_words_of_roots(Error error, const LocalOptions& options) {
  constexpr std::string_view theirs = "grants: ";
  for (const char* own : {"limits: ", "sandbox: ", "hidden_paths: "})
    if (starts_with(error.message, own)) return error;
  const char* option = nullptr;
  const auto look_at = [&](const char* name, const std::string& path) {
    if (!option && !path.empty() &&
        starts_with(error.message, concat("%% ", {theirs, in_quotes(path_from_here(path))})))
      option = name;
  };
  for (const Root& root : options.roots)
    if (root.permission == Permission::read) look_at("read_only", root.path);
  for (const NeededPath& needed : needed_paths(options, options.spill_dir))
    look_at(needed.option, needed.path);
  if (!option && (!starts_with(error.message, theirs) || !options.sandbox.writable.empty() ||
                  !options.sandbox.readable.empty()))
    return with_prefix("sandbox: ", {}, error);
  if (!option) option = options.roots.empty() ? "workspace" : "allowed_paths";
  error.message.replace(0, theirs.size(), concat("%: ", {option}));
  return error;
}

Expected<void> complete_sandbox(const LocalOptions& options, const std::string& spill_dir,
                                const std::vector<Root>& roots, const std::string& workspace,
                                SandboxOptions& sandbox, std::vector<std::string>& missing) {
  if (sandbox.mode == SandboxMode::off) return check_without_sandbox(sandbox);
  if (auto ok = grant_roots(options, roots, workspace, sandbox, missing); !ok) return ok;
  if (auto ok = grant_needed(options, spill_dir, sandbox); !ok) return ok;
  for (std::string& path : sandbox.hidden_paths) {
    auto canonical = canonical_path(path, workspace);
    if (!canonical) return with_prefix("hidden_paths: ", {}, canonical.error());
    path = std::move(*canonical);
  }
  // Of the commands' PATH, but without a venv: that has a grant of its own, and what the links lead
  // to in one that a command may have made would be granted as well.
  EnvironmentOptions variables = options.environment;
  variables.auto_venv = false;
  variables.venv_path.clear();
  const auto environment = Environment::create(variables);
  if (!environment) return environment.failure();
  const auto resolved = environment->resolve({});
  if (!resolved) return resolved.failure();
  const char* const path = value_of(resolved->variables, "PATH"sv);
  if (path && !sandbox.search_path.empty()) sandbox.search_path += ':';
  if (path) sandbox.search_path += path;
  return {};
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
