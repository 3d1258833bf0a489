// From the options to the place where commands run.

#include "tools/options_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "docker/docker.hpp"
#include "environment/environment.hpp"
#include "environment/environment_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "paths/paths.hpp"
#include "policy/policy.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// The value whose name was given; `-` stands for `_`, too.
template <class Enum>
Expected<Enum> parse_enum(std::string_view option, std::string_view value,
                          std::initializer_list<Enum> choices) {
  std::string wanted(value);
  std::replace(wanted.begin(), wanted.end(), '-', '_');
  std::string all;
  for (const Enum choice : choices) {
    if (wanted == name(choice)) return choice;
    all += concat({all.empty() ? "" : ", ", name(choice)});
  }
  return bad_value(option, value, concat({"one of ", all}));
}

// Clients start servers anywhere: where commands may not work, they start in the first place where
// they may. Empty: the current directory.
std::string workspace_of(const ServerConfig& config) {
  PathOptions allowed;
  allowed.roots = config.local.roots;
  if (!config.local.workspace.empty() || allowed.roots.empty()) return config.local.workspace;
  const auto rules = PathRules::create(allowed);
  const auto here = canonical_path(".");
  const bool may_work_here = !rules || !here || rules->permission(*here) != Permission::none;
  return may_work_here ? std::string() : allowed.roots[0].path;
}

// Without paths there is nothing to confine commands to, unless it is asked for.
Expected<void> set_sandbox(const ServerConfig& config, LocalOptions& options) {
  options.sandbox.mode = options.roots.empty() ? SandboxMode::off : SandboxMode::best_effort;
  if (!config.sandbox.empty()) {
    const auto mode = parse_enum("sandbox", config.sandbox,
                                 {SandboxMode::off, SandboxMode::best_effort, SandboxMode::strict});
    if (!mode) return mode.error();
    options.sandbox.mode = *mode;
  }
  const auto network =
      parse_enum("network", config.network, {Network::host, Network::none, Network::loopback});
  if (!network) return network.error();
  options.sandbox.network = *network;
  const auto home = parse_enum("private_home", config.private_home,
                               {PrivateHome::off, PrivateHome::command, PrivateHome::executor});
  if (!home) return home.error();
  options.private_home = *home;
  options.watch_files = !config.no_watch_files;
  options.supervised = !config.no_supervisor;
  return {};
}

Expected<PolicyOptions> policy_options(const ServerConfig& config) {
  PolicyOptions policy = config.local.policy;
  policy.enable_sudo = config.enable_sudo;
  if (config.policy_mode == "compat")
    policy.mode = PolicyOptions::Mode::compat;
  else if (config.policy_mode != "strict")
    return bad_value("policy", config.policy_mode, "strict or compat");
  return policy;
}

// Output goes to a model: without colours, pagers and what else needs a terminal, unless the
// operator has it otherwise. Not CI=1, which makes package managers keep to their lock files and
// builds fail for warnings.
void set_terminal(EnvironmentOptions& options) {
  struct Setting {
    char name[12];
    char value[8];
    bool may_be_kept;  // the others are kept of every host
  };
  constexpr Setting settings[] = {{"NO_COLOR", "1", false},
                                  {"TERM", "dumb", false},
                                  {"PAGER", "cat", true},
                                  {"GIT_PAGER", "cat", true}};
  for (const Setting& setting : settings) {
    bool is_set = setting.may_be_kept && is_kept(setting.name, options) &&
                  std::getenv(setting.name) != nullptr;
    for (const auto& given : options.set) is_set |= given.first == setting.name;
    if (!is_set) options.set.emplace_back(setting.name, setting.value);
  }
}

// What is the same wherever commands run. To name what is read-only must not forbid everything
// else; nor is everything given away where commands are confined: there the workspace may be
// changed.
Expected<ExecutorOptions> common_options(const ServerConfig& config, bool confined) {
  ExecutorOptions options = config.local;
  options.workspace = workspace_of(config);
  auto policy = policy_options(config);
  if (!policy) return policy.error();
  options.policy = std::move(*policy);
  if (options.roots.empty() && !config.read_only.empty())
    options.roots.push_back({!confined                   ? "/"
                             : options.workspace.empty() ? "."
                                                         : options.workspace,
                             Permission::write});
  for (const std::string& path : config.read_only)
    options.roots.push_back({path, Permission::read});
  // Background commands keep more than one answer shows.
  if (config.max_output < 1024 || config.max_output > options.max_output)
    options.max_output = static_cast<std::size_t>(config.max_output);
  options.audit_output = static_cast<std::size_t>(config.audit_output);
  if (options.timeout.count() == 0)
    options.timeout = std::min(ExecutorOptions().timeout, options.max_timeout);
  return options;
}

}  // namespace

inline namespace inner {

Expected<LocalOptions> local_options(const ServerConfig& config) {
  LocalOptions options = config.local;
  if (auto ok = set_sandbox(config, options); !ok) return ok.error();
  const bool off = options.sandbox.mode == SandboxMode::off;
  auto common = common_options(config, !off);
  if (!common) return common.error();
  static_cast<ExecutorOptions&>(options) = std::move(*common);
  set_terminal(options.environment);
  options.environment.auto_venv = !config.no_auto_venv;
  return options;
}

Expected<ContainerOptions> container_options(const ServerConfig& config) {
  ContainerOptions options = config.container;
  options.on_progress = [](std::string_view what) { warn(printable(what)); };
  const auto policy = parse_enum("docker_image_policy", config.image_policy,
                                 {ImagePolicy::never, ImagePolicy::missing, ImagePolicy::always});
  if (!policy) return policy.error();
  options.image_policy = *policy;
  options.sudo = config.enable_sudo;
  const auto add = [&options](const char* option, const std::string& value) {
    if (!value.empty()) options.engine_options.push_back(concat({option, "=", value}));
  };
  add("runtime", config.runtime);
  add("gpus", config.gpus);
  for (const std::string& address : config.dns) add("dns", address);
  for (const std::string& host : config.add_host) add("add-host", host);
  options.warm = static_cast<std::size_t>(config.warm);
  if (!config.credentials.is_null()) {
    auto credentials = credentials_from_json(config.credentials);
    if (!credentials) return with_prefix({"docker_credentials: "}, credentials.error());
    options.credentials = std::move(*credentials);
  }
  if (!config.packages.is_null()) {
    auto packages = packages_from_json(config.packages);
    if (!packages) return with_prefix({"docker_packages: "}, packages.error());
    options.packages = std::move(*packages);
  }
  options.packages.required = options.packages.required || config.packages_required;
  return options;
}

}  // namespace inner

namespace {

Expected<ContainerExecutorOptions> container_executor_options(const ServerConfig& config) {
  ContainerExecutorOptions options;
  auto common = common_options(config, true);
  if (!common) return common.error();
  static_cast<ExecutorOptions&>(options) = std::move(*common);
  auto container = container_options(config);
  if (!container) return container.error();
  options.container = std::move(*container);
  for (const bool skills : {false, true}) {
    auto folder =
        usable_directory(skills ? "skills_path" : "tools_path",
                         skills ? config.user.skills_dir : config.user.tools_dir, R_OK | X_OK);
    if (!folder) return folder.error();
    if (!folder->empty())
      options.container.mounts.push_back({std::move(*folder), skills ? "/skills" : "/tools"});
  }
  options.environment = config.local.environment;
  set_terminal(options.environment);
  options.environment.auto_venv = !config.no_auto_venv;
  options.shell = config.local.shell;
  return options;
}

template <class T>
std::unique_ptr<const Executor> owned(T&& executor) {
  return std::make_unique<const std::decay_t<T>>(std::forward<T>(executor));
}

}  // namespace

inline namespace inner {

Error in_our_words(Error error, bool container) {
  using Name = std::pair<std::string_view, std::string_view>;
  constexpr Name of_containers[] = {{"cache", "docker_cache"},
                                    {"cpus", "docker_cpu_limit"},
                                    {"credentials", "docker_credentials"},
                                    {"image", "docker_image"},
                                    {"engine_options", "docker_option"},
                                    {"log_file", "docker_log_file"},
                                    {"memory", "docker_memory_limit"},
                                    {"mounts", "docker_mount"},
                                    {"network", "docker_network"},
                                    {"packages", "docker_packages"},
                                    {"skills_dir", "skills_path"},
                                    {"tools_dir", "tools_path"},
                                    {"user", "docker_user"},
                                    {"warm", "docker_warm"}};
  constexpr Name of_all[] = {{"disabled_rules", "disable_rule"},
                             {"disabled_tools", "disable_tool"},
                             {"keep", "keep_env"},
                             {"max_output", "max_output_size"},
                             {"secret", "secret_env"},
                             {"set", "set_env"},
                             {"skills_dir", "local_skills_directory"}};
  constexpr std::string_view limits = "limits: ";
  constexpr std::string_view engine = "engine ";
  if (starts_with(error.message, limits)) error.message.replace(0, limits.size(), "limit_");
  if (starts_with(error.message, engine)) error.message.replace(0, engine.size(), "docker_");
  const std::string_view first =
      std::string_view(error.message).substr(0, error.message.find_first_of(": "));
  const auto rename = [&](const Name* begin, const Name* end) {
    const Name* const found =
        std::find_if(begin, end, [first](const Name& entry) { return entry.first == first; });
    if (found != end) error.message.replace(0, first.size(), found->second);
    return found != end;
  };
  if (!container || !rename(std::begin(of_containers), std::end(of_containers)))
    rename(std::begin(of_all), std::end(of_all));
  return error;
}

void warn(const std::string& message) {
  std::fprintf(stderr, "codeexec-mcp: %s\n", message.c_str());
}

Expected<UserContainers> create_user_containers(const ServerConfig& config) {
  UserContainerOptions options = config.user;
  auto container = container_options(config);
  if (!container) return container.error();
  options.container = std::move(*container);
  auto policy = policy_options(config);
  if (!policy) return policy.error();
  options.policy = std::move(*policy);
  if (config.local.timeout.count() != 0) options.timeout = config.local.timeout;
  options.audit_file = config.local.audit_file;
  options.audit_output = static_cast<std::size_t>(config.audit_output);
  auto containers = UserContainers::create(options);
  if (!containers) return in_our_words(containers.error(), true);
  return containers;
}

Expected<CommandPlace> create_place(const ServerConfig& config) {
  CommandPlace place;
  if (config.use == Option::docker) {
    auto options = container_executor_options(config);
    if (!options) return options.error();
    auto executor = ContainerExecutor::create(*options);
    if (!executor) return in_our_words(executor.error(), true);
    place.executor = owned(std::move(*executor));
    place.wanted = std::move(*options);
    return place;
  }
  const auto options = local_options(config);
  if (!options) return options.error();
  auto executor = LocalExecutor::create(*options);
  if (!executor) return in_our_words(executor.error());
  place.sandbox = executor->sandbox_report();
  place.executor = owned(std::move(*executor));
  return place;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
