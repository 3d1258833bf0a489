// From the options of the server to the executor of its commands.

#include "tools/options_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "cluster/cluster.hpp"
#include "docker/docker.hpp"
#include "environment/environment.hpp"
#include "environment/environment_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "paths/paths.hpp"
#include "place/place.hpp"
#include "policy/policy.hpp"
#include "sandbox/sandbox.hpp"
#include "shell/shell.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// The enumerator whose name was given; the names stand in the order of the enumeration, and `-`
// stands for `_`, too.
Expected<int> enumerator_of(std::string_view option, std::string_view value,
                            std::string_view names) {
  std::string_view left = names;
  std::string wanted(value);
  std::replace(wanted.begin(), wanted.end(), '-', '_');
  for (int place = 0; !left.empty(); ++place) {
    if (take_part(left, ',') == wanted) return place;
    if (!left.empty()) left.remove_prefix(1);
  }
  return bad_value(option, value, concat("one of %", {names}));
}

// Clients start servers anywhere: where commands may not work, they start in the first place where
// they may. Empty: the current directory.
std::string workspace_of(const ServerConfig& config) {
  PathOptions allowed;
  allowed.roots = config.local.roots;
  if (!config.local.workspace.empty() || allowed.roots.empty()) return config.local.workspace;
  if (config.place_workspace == "remote") return allowed.roots[0].path;
  const auto rules = PathRules::create(allowed);
  const auto here = canonical_path("."sv);
  const bool may_work_here = !rules || !here || rules->permission(*here) != Permission::none;
  return may_work_here ? std::string() : allowed.roots[0].path;
}

// Without paths there is nothing to confine commands to, unless it is asked for.
Expected<void> set_sandbox(const ServerConfig& config, LocalOptions& options) {
  options.sandbox.mode = options.roots.empty() ? SandboxMode::off : SandboxMode::best_effort;
  if (!config.sandbox.empty()) {
    const auto mode = enumerator_of("sandbox"sv, config.sandbox, "off, best_effort, strict"sv);
    if (!mode) return mode.failure();
    options.sandbox.mode = static_cast<SandboxMode>(*mode);
  }
  const auto network = enumerator_of("network"sv, config.network, "host, none, loopback"sv);
  if (!network) return network.failure();
  options.sandbox.network = static_cast<Network>(*network);
  const auto home =
      enumerator_of("private_home"sv, config.private_home, "off, command, executor"sv);
  if (!home) return home.failure();
  options.private_home = static_cast<PrivateHome>(*home);
  options.watch_files = !config.no_watch_files;
  options.supervised = !config.no_supervisor;
  return {};
}

// `policy` is that of the configuration already.
Expected<void> settle_policy(const ServerConfig& config, PolicyOptions& policy) {
  policy.enable_sudo = config.enable_sudo;
  if (config.policy_mode == "compat")
    policy.mode = PolicyOptions::Mode::compat;
  else if (config.policy_mode != "strict")
    return bad_value("policy"sv, config.policy_mode, "strict or compat"sv);
  return {};
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
    if (!is_set) options.set.push_back({setting.name, setting.value});
  }
}

// What is the same wherever commands run. To name what is read-only must not forbid everything
// else; nor is everything given away where commands are confined: there the workspace may be
// changed.
// `options` are those of the configuration already.
Expected<void> settle_common(const ServerConfig& config, bool confined, ExecutorOptions& options) {
  options.workspace = workspace_of(config);
  if (auto ok = settle_policy(config, options.policy); !ok) return ok;
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
  options.git_identity = !config.no_git_identity;
  if (options.timeout.count() == 0)
    options.timeout = std::min(config.usual_timeout, options.max_timeout);
  return {};
}

}  // namespace

inline namespace inner {

KubernetesOptions kubernetes_options(const ServerConfig& config) {
  KubernetesOptions options = config.kubernetes;
  options.agent_id = config.local.agent_id;
  options.start_timeout = config.start_timeout;
  options.lifetime = std::chrono::seconds(config.kubernetes_lifetime);
  return options;
}

Expected<LocalOptions> local_options(const ServerConfig& config) {
  LocalOptions options = config.local;
  if (auto ok = set_sandbox(config, options); !ok) return ok.failure();
  const bool off = options.sandbox.mode == SandboxMode::off;
  if (auto ok = settle_common(config, !off, options); !ok) return ok.failure();
  set_terminal(options.environment);
  options.environment.auto_venv = !config.no_auto_venv;
  return options;
}

Expected<ContainerOptions> container_options(const ServerConfig& config) {
  ContainerOptions options = config.container;
  options.on_progress = [](std::string_view what) { warn(printable(what)); };
  const auto policy =
      enumerator_of("docker_image_policy"sv, config.image_policy, "never, missing, always"sv);
  if (!policy) return policy.failure();
  options.image_policy = static_cast<ImagePolicy>(*policy);
  options.sudo = config.enable_sudo;
  const auto add = [&options](const char* option, const std::string& value) {
    if (!value.empty()) options.engine_options.push_back(concat("%=%", {option, value}));
  };
  add("runtime", config.runtime);
  add("gpus", config.gpus);
  for (const std::string& address : config.dns) add("dns", address);
  for (const std::string& host : config.add_host) add("add-host", host);
  // This program is an agent itself.
  char own[PATH_MAX] = "";
  if (options.agent.empty() && !std::getenv("CODEEXEC_PLACE_AGENT") &&
      ::readlink("/proc/self/exe", own, sizeof own - 1) > 0)
    options.agent = own;
  if (!config.credentials.is_null()) {
    auto credentials = credentials_from_json(config.credentials);
    if (!credentials) return with_prefix("docker_credentials: ", {}, credentials.error());
    options.credentials = std::move(*credentials);
  }
  if (!config.packages.is_null()) {
    auto packages = packages_from_json(config.packages);
    if (!packages) return with_prefix("docker_packages: ", {}, packages.error());
    options.packages = std::move(*packages);
  }
  options.packages.required = options.packages.required || config.packages_required;
  return options;
}

}  // namespace inner

namespace {

// What makes a place. An agent without a name is copied there.
Expected<std::shared_ptr<PlaceEngine>> engine_of(const ServerConfig& config,
                                                 const std::string& agent) {
  const Function<void(std::string_view)> progress = [](std::string_view what) {
    warn(std::string(what));
  };
  if (config.use == Option::kubernetes) {
    KubernetesOptions kubernetes = kubernetes_options(config);
    kubernetes.agent = agent;
    kubernetes.on_progress = progress;
    return kubernetes_pods(kubernetes);
  }
  SlurmOptions slurm = config.slurm;
  slurm.agent_id = config.local.agent_id;
  slurm.agent = agent;
  slurm.start_timeout = config.start_timeout;
  slurm.on_progress = progress;
  return slurm_jobs(slurm);
}

// With `place_pool` it is one that takes them from there. The configuration outlives the pool.
Expected<void> set_engine(const ServerConfig& config, const std::string& agent,
                          PlaceOptions& options, std::optional<PlacePool>& pool) {
  auto engine = engine_of(config, agent);
  if (!engine) return engine.failure();
  options.engine = std::move(*engine);
  if (config.place_pool == 0) return {};
  auto made = PlacePool::create(
      [&config, agent]() -> std::shared_ptr<PlaceEngine> {
        auto another = engine_of(config, agent);
        return another ? *another : nullptr;
      },
      static_cast<std::size_t>(config.place_pool),
      [](const Error& error) { warn(concat("place_pool: %", {error.message})); });
  if (!made) return made.failure();
  options.engine = made->take();
  pool = std::move(*made);
  return {};
}

// One value holds the words of a command, as a shell would split them; none is needed for that.
Expected<PlaceOptions> place_options(const ServerConfig& config, std::optional<PlacePool>& pool) {
  PlaceOptions options;
  static_cast<ExecutorOptions&>(options) = ExecutorOptions(config.local);
  auto local = local_options(config);
  if (!local) return local.failure();
  options.sandbox = local->sandbox;
  if (auto ok = settle_common(config, options.sandbox.mode != SandboxMode::off, options); !ok)
    return ok.failure();
  options.environment = local->environment;
  options.shell = local->shell;
  options.keep_alive = config.keep_alive;
  options.agent = config.container.agent;
  const auto mode =
      enumerator_of("place_workspace"sv, config.place_workspace, "shared, remote, copy"sv);
  if (!mode) return mode.failure();
  options.workspace_mode = static_cast<PlaceWorkspace>(*mode);
  options.copy = config.copy;
  const PlaceCopyOptions usual;
  if (options.workspace_mode != PlaceWorkspace::copy &&
      (options.copy.gitignore || !options.copy.exclude.empty() ||
       options.copy.max_files != usual.max_files || options.copy.max_bytes != usual.max_bytes))
    return bad_value("place_workspace", config.place_workspace, "copy, as place_copy_ is given");
  std::string agent = config.place_agent;
  if (!options.agent.empty() && config.use != Option::command) {
    if (agent != ServerConfig::usual_agent)
      return bad_value("place_agent_path"sv, agent, "needed where place_agent is copied there"sv);
    agent.clear();
  }
  if (config.use & Option::made) {
    if (auto ok = set_engine(config, agent, options, pool); !ok) return ok.failure();
    options.name = config.use == Option::slurm ? "Slurm" : "Kubernetes";
    return options;
  }
  if (config.use == Option::ssh) {
    auto words = ssh_transport(config.place_host, agent);
    if (!words) return words.failure();
    options.transport = std::move(*words);
    options.name = config.place_host;
    return options;
  }
  const shell::Script script = shell::parse(config.place_command);
  bool plain = script.complete && script.commands.size() == 1;
  if (plain) {
    const shell::Command& only = script.commands[0];
    plain = only.assignments.empty() && only.redirections.empty() && !only.pipeline &&
            !only.background && !only.compound;
    for (const shell::Word& word : only.words) {
      plain = plain && word.known() && !word.glob && !word.home && !word.assumed;
      options.transport.push_back(word.text);
    }
  }
  if (!plain || options.transport.empty())
    return bad_value("place_command"sv, config.place_command,
                     "words, without variables, patterns, operators and `~`: no shell reads them");
  return options;
}

Expected<ContainerExecutorOptions> container_executor_options(const ServerConfig& config) {
  ContainerExecutorOptions options;
  static_cast<ExecutorOptions&>(options) = ExecutorOptions(config.local);
  if (auto ok = settle_common(config, true, options); !ok) return ok.failure();
  auto container = container_options(config);
  if (!container) return container.failure();
  options.container = std::move(*container);
  for (const bool skills : {false, true}) {
    auto folder =
        usable_directory(skills ? "skills_path" : "tools_path",
                         skills ? config.user.skills_dir : config.user.tools_dir, R_OK | X_OK);
    if (!folder) return folder.failure();
    if (!folder->empty())
      options.container.mounts.push_back({std::move(*folder), skills ? "/skills" : "/tools"});
  }
  options.environment = config.local.environment;
  set_terminal(options.environment);
  options.environment.auto_venv = !config.no_auto_venv;
  return options;
}

template <class T>
std::unique_ptr<const Executor> owned(T&& executor) {
  return std::make_unique<const std::decay_t<T>>(std::forward<T>(executor));
}

}  // namespace

inline namespace inner {

SharedError in_our_words(Error error, bool container) {
  // Each name with what it is called here.
  constexpr std::string_view of_containers =
      "cache docker_cache cpus docker_cpu_limit credentials docker_credentials image docker_image "
      "engine_options docker_option log_file docker_log_file memory docker_memory_limit "
      "mounts docker_mount network docker_network packages docker_packages skills_dir skills_path "
      "tools_dir tools_path user docker_user ";
  constexpr std::string_view of_all =
      "agent place_agent disabled_rules disable_rule disabled_tools disable_tool keep keep_env "
      "keep_alive place_keep_alive "
      "max_output max_output_size secret secret_env set set_env "
      "skills_dir local_skills_directory ";
  constexpr std::string_view limits = "limits: ";
  constexpr std::string_view engine = "engine ";
  std::string& message = error.message;
  if (starts_with(message, limits)) message.replace(0, limits.size(), "limit_");
  if (starts_with(message, engine)) message.replace(0, engine.size(), "docker_");
  const std::string_view first = std::string_view(message).substr(0, message.find_first_of(": "));
  for (std::string_view names : {container ? of_containers : of_all, of_all})
    while (!names.empty()) {
      const std::string_view name = take_part(names, ' ');
      const std::string_view ours = take_part(names, ' ');
      if (name != first) continue;
      message.replace(0, first.size(), ours);
      return error;
    }
  return error;
}

void warn(const std::string& message) {
  std::fprintf(stderr, "codeexec-mcp: %s\n", message.c_str());
}

Expected<UserContainers> create_user_containers(const ServerConfig& config) {
  UserContainerOptions options = config.user;
  auto container = container_options(config);
  if (!container) return container.failure();
  options.container = std::move(*container);
  options.policy = config.local.policy;
  if (auto ok = settle_policy(config, options.policy); !ok) return ok.failure();
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
    if (!options) return options.failure();
    auto executor = ContainerExecutor::create(*options);
    if (!executor) return in_our_words(executor.error(), true);
    place.executor = owned(std::move(*executor));
    place.wanted = std::move(*options);
    return place;
  }
  if (config.use & Option::places) {
    const auto options = place_options(config, place.pool);
    if (!options) return options.failure();
    auto executor = PlaceExecutor::create(*options);
    if (!executor) return in_our_words(executor.error());
    if (config.reach_place)
      if (auto ok = executor->reach(); !ok) return ok.failure();
    place.facts = executor->facts();
    place.sandbox = place.facts->sandbox;
    place.executor = owned(std::move(*executor));
    return place;
  }
  const auto options = local_options(config);
  if (!options) return options.failure();
  auto executor = LocalExecutor::create(*options);
  if (!executor) return in_our_words(executor.error());
  place.sandbox = executor->sandbox_report();
  place.executor = owned(std::move(*executor));
  return place;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
