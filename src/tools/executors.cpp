// From the options of the server to the executor of its commands.
//
// settle_options() completes ServerConfig once, in place. create_place() then makes one of three:
//
//   local                          LocalExecutor      of config.local
//   docker                         ContainerExecutor  of config.local and config.user.container
//   command ssh slurm kubernetes   PlaceExecutor      of config.local and a transport or an engine,
//                                                     which may take its places from a pool
//
// Variables of this process that are defaults of options are read here, and nowhere in the library.

#include "tools/options_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "cluster/cluster.hpp"
#include "docker/container_internal.hpp"
#include "docker/docker.hpp"
#include "docker/docker_internal.hpp"
#include "environment/environment.hpp"
#include "environment/environment_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "paths/paths.hpp"
#include "place/place.hpp"
#include "policy/policy.hpp"
#include "sandbox/sandbox.hpp"
#include "shell/script_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Output goes to a model, which reads no colours and pagers. Variables that the operator sets or
// keeps win. Not CI=1, which makes package managers keep to their lock files and builds fail for
// warnings.
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

// Options of a container that stand for others, and the agent that it gets.
Expected<void> settle_container(ServerConfig& config) {
  ContainerOptions& options = config.user.container;
  options.on_progress = [](std::string_view what) { warn(printable(what)); };
  // This program is an agent itself. A variable that is set and empty asks for the image's own.
  char own[PATH_MAX] = "";
  const char* const named = std::getenv("CODEEXEC_PLACE_AGENT");
  if (options.agent.empty() && (named || ::readlink("/proc/self/exe", own, sizeof own - 1) > 0))
    options.agent = named ? named : own;
  if (!config.credentials.is_null()) {
    const auto ok = credentials_from_json(config.credentials, options);
    if (!ok) return with_prefix("docker_credentials: ", {}, ok.error());
  }
  if (!config.packages.is_null()) {
    const bool required = options.packages_required;
    const auto ok = packages_from_json(config.packages, options);
    if (!ok) return with_prefix("docker_packages: ", {}, ok.error());
    options.packages_required |= required;
  }
  return {};
}

// Mounts the folders for /tools and /skills.
Expected<void> add_folders(ServerConfig& config) {
  for (const bool skills : {false, true}) {
    auto folder =
        usable_directory(skills ? "skills_path" : "tools_path",
                         skills ? config.user.skills_dir : config.user.tools_dir, R_OK | X_OK);
    if (!folder) return folder.failure();
    if (!folder->empty())
      config.user.container.mounts.push_back({std::move(*folder), skills ? "/skills" : "/tools"});
  }
  return {};
}

// A variable that is set and not empty, or null.
const char* variable_or_null(const char* name) {
  const char* const value = std::getenv(name);
  return value && *value ? value : nullptr;
}

// Settles a folder of all users: the option, else a variable, else the usual folder if it is there.
void settle_folder(std::string& folder, const char* variable, const char* usual) {
  if (!folder.empty()) return;
  if (const char* const named = variable_or_null(variable))
    folder = named;
  else if (::access(usual, F_OK) == 0)
    folder = usual;
}

// These variables are those of the server that the profile user-container replaces.
Expected<void> settle_users(ServerConfig& config) {
  UserContainerOptions& options = config.user;
  const char* const image = variable_or_null("MCP_EXECUTOR_IMAGE");
  if (config.user.container.image.empty() && image) config.user.container.image = image;
  settle_folder(options.tools_dir, "MCP_TOOLS_PATH", "./tools");
  settle_folder(options.skills_dir, "MCP_SKILLS_PATH", "./skills");
  if (options.max_artifact != 0) return {};
  options.max_artifact = config.usual_artifact;
  const char* const size = variable_or_null("MCP_ARTIFACT_SIZE_LIMIT_MB");
  if (!size) return {};
  const auto megabytes = is_number(size) ? leading_number(size, std::uint64_t{0}) : 0;
  if (megabytes == 0 || megabytes > 1024)
    return make_error(ErrorCode::invalid_argument,
                      "MCP_ARTIFACT_SIZE_LIMIT_MB must be a number from 1 to 1024, and % is not",
                      {in_quotes(size)});
  options.max_artifact = megabytes << 20;
  return {};
}

}  // namespace

inline namespace inner {

// Needed by --places and --doctor, too, which make no pod.
KubernetesOptions kubernetes_options(const ServerConfig& config) {
  KubernetesOptions options = config.kubernetes;
  options.agent_id = config.local.agent_id;
  options.start_timeout = config.start_timeout;
  options.lifetime = std::chrono::seconds(config.kubernetes_lifetime);
  return options;
}

Expected<std::string> own_program() {
  auto path = canonical_path("/proc/self/exe");
  if (path && ::access(path->c_str(), X_OK) == 0) return path;
  return make_error(ErrorCode::io, "this program is not there any more: start it again");
}

Expected<void> settle_options(ServerConfig& config) {
  LocalOptions& local = config.local;
  local.policy.enable_sudo = config.user.container.sudo;
  if (config.policy_mode == "compat")
    local.policy.compat = true;
  else if (config.policy_mode != "strict")
    return bad_value("policy"sv, config.policy_mode, "strict or compat"sv);
  local.audit_output = static_cast<std::size_t>(config.audit_output);
  if (config.use & Option::containers)
    if (auto ok = settle_container(config); !ok) return ok;
  if (config.use == Option::users) return settle_users(config);
  if (config.use == Option::docker)
    if (auto ok = add_folders(config); !ok) return ok;

  if (auto ok = settle_folders(config); !ok) return ok;
  // Background commands keep more than one answer shows.
  if (config.max_output < 1024 || config.max_output > local.max_output)
    local.max_output = static_cast<std::size_t>(config.max_output);
  if (local.timeout.count() == 0) local.timeout = std::min(config.usual_timeout, local.max_timeout);
  set_terminal(local.environment);
  return {};
}

}  // namespace inner

namespace {

// The engine that makes places. An agent without a name is copied there.
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

// Sets the engine, or with place_pool one that takes its places from the pool. The pool refers to
// `config`, which must outlive it.
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

// The words of a command, as a shell would split them; no shell is started for that.
Expected<std::vector<std::string>> words_of_command(const std::string& text) {
  std::vector<std::string> words;
  bool plain = true;
  const auto read = [&](const shell::Visit& visit) {
    const shell::Command& command = visit.command;
    // A second command has something before it.
    plain = plain && words.empty() && command.assignments.empty() && command.redirections.empty() &&
            !command.pipeline && !command.background && !command.compound;
    for (const shell::Word& word : command.words) {
      plain = plain && word.known() && !word.glob && !word.home && !word.assumed;
      words.push_back(word.text);
    }
  };
  if (shell::walk(text, {}, read).complete && plain && !words.empty()) return words;
  return bad_value("place_command"sv, text,
                   "words, without variables, patterns, operators and `~`: no shell reads them");
}

// Completes the options of a place: its copied files, and the way to it.
Expected<void> set_place(const ServerConfig& config, PlaceOptions& options,
                         std::optional<PlacePool>& pool) {
  options.sandbox = config.local.sandbox;
  options.environment = config.local.environment;
  options.keep_alive = config.place.keep_alive;
  options.agent = config.user.container.agent;
  options.workspace_mode = config.place_workspace;
  options.copy_max_files = config.place.copy_max_files;
  options.copy_max_bytes = config.place.copy_max_bytes;
  options.copy_exclude = config.place.copy_exclude;
  options.copy_gitignore = config.place.copy_gitignore;
  const PlaceOptions usual;
  if (options.workspace_mode != PlaceWorkspace::copy &&
      (options.copy_gitignore || !options.copy_exclude.empty() ||
       options.copy_max_files != usual.copy_max_files ||
       options.copy_max_bytes != usual.copy_max_bytes))
    return bad_value("place_workspace",
                     options.workspace_mode == PlaceWorkspace::remote ? "remote"sv : "shared"sv,
                     "copy, as place_copy_ is given");
  std::string agent = config.place_agent;
  if (!options.agent.empty() && config.use != Option::command) {
    if (agent != ServerConfig::usual_agent)
      return bad_value("place_agent_path"sv, agent, "needed where place_agent is copied there"sv);
    agent.clear();
  }
  if (config.use & Option::made) {
    options.name = config.use == Option::slurm ? "Slurm" : "Kubernetes";
    return set_engine(config, agent, options, pool);
  }
  options.name = config.place_host;
  auto words = config.use == Option::ssh ? ssh_transport(config.place_host, agent)
                                         : words_of_command(config.place_command);
  if (!words) return words.failure();
  options.transport = std::move(*words);
  return {};
}

// An error about a root that no option names is one about the workspace.
Error in_words_of_folders(Error error, const ServerConfig& config) {
  constexpr std::string_view of_roots = "allowed_paths: ";
  if (!config.narrows_roots && starts_with(error.message, of_roots))
    error.message.replace(0, of_roots.size(), "workspace: ");
  return error;
}

template <class T>
ExecutorPointer owned(T&& executor) {
  return new_shared<const std::decay_t<T>>(std::forward<T>(executor));
}

}  // namespace

inline namespace inner {

ContainerExecutorOptions container_executor_options(const ServerConfig& config) {
  return {ExecutorOptions(config.local), config.user.container, config.local.environment};
}

SharedError in_our_words(Error error, bool container) {
  // Pairs: the name in the library, the name of the program.
  constexpr std::string_view of_containers =
      "cache docker_cache cpus docker_cpu_limit credentials docker_credentials image docker_image "
      "engine_options docker_option log_file docker_log_file memory docker_memory_limit "
      "mounts docker_mount network docker_network packages docker_packages skills_dir skills_path "
      "tools_dir tools_path user docker_user ";
  constexpr std::string_view of_all =
      "agent place_agent allowed_domains allow_domains ask_rules ask_rule disabled_rules "
      "disable_rule disabled_tools disable_tool keep keep_env "
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

// For commands of users only the policy, the timeout and the audit log of `local` count.
Expected<UserContainers> create_user_containers(ServerConfig& config) {
  UserContainerOptions& options = config.user;
  options.policy = config.local.policy;
  if (config.local.timeout.count() != 0) options.timeout = config.local.timeout;
  options.audit_file = config.local.audit_file;
  options.audit_output = config.local.audit_output;
  auto containers = UserContainers::create(options);
  if (!containers) return in_our_words(containers.error(), true);
  return containers;
}

Expected<CommandPlace> create_place(const ServerConfig& config) {
  CommandPlace place;
  if (config.use == Option::docker) {
    auto executor = ContainerExecutor::create(container_executor_options(config));
    if (!executor) return in_our_words(executor.error(), true);
    place.executor = owned(std::move(*executor));
    return place;
  }
  if (config.use & Option::places) {
    PlaceOptions options{ExecutorOptions(config.local)};
    if (auto ok = set_place(config, options, place.pool); !ok) return ok.failure();
    if (!config.no_project.empty())
      return make_error(ErrorCode::invalid_argument,
                        "workspace: %: name the folder of a project, or set sandbox to off",
                        {config.no_project});
    auto executor = PlaceExecutor::create(options);
    if (!executor) return in_our_words(executor.error());
    if (config.reach_place)
      if (auto ok = executor->reach(); !ok) return ok.failure();
    place.facts = executor->facts();
    place.sandbox = place.facts->sandbox;
    place.executor = owned(std::move(*executor));
    return place;
  }
  auto executor = LocalExecutor::create(config.local);
  if (!executor) return in_our_words(in_words_of_folders(executor.error(), config));
  place.sandbox = executor->sandbox_report();
  place.executor = owned(std::move(*executor));
  return place;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
