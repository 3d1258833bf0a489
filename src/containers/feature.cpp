// Containers as a feature of the server: --execution-mode docker, and --profile user-container.

#include "containers/containers.hpp"
#include "containers/containers_internal.hpp"

#include "agent/agent.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/platform_internal.hpp"
#include "docker/container_internal.hpp"
#include "docker/docker.hpp"
#include "docker/docker_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "mcp/mcp.hpp"
#include "paths/paths.hpp"
#include "policy/policy.hpp"
#include "sandbox/sandbox.hpp"
#include "tools/option_internal.hpp"
#include "tools/server_internal.hpp"
#include "tools/tools.hpp"
#include "tools/tools_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

const char* add_mount(std::string_view word, std::vector<Mount>& mounts) {
  std::string_view rest = word;
  Mount mount;
  if (ends_with(rest, ":rw"sv)) mount.permission = Permission::write;
  if (ends_with(rest, ":rw"sv) || ends_with(rest, ":ro"sv)) rest.remove_suffix(3);
  const std::size_t colon = std::min(rest.find(':'), rest.size());
  mount.source = rest.substr(0, colon);
  if (colon < rest.size()) mount.target = rest.substr(colon + 1);
  const bool has_target = colon == rest.size() || starts_with(mount.target, "/"sv);
  if (mount.source.empty() || !has_target || mount.target.find(':') != std::string::npos)
    return "of the form SOURCE, SOURCE:/TARGET, or one with :ro or :rw";
  mounts.push_back(std::move(mount));
  return nullptr;
}

}  // namespace inner

namespace {

bool is_for_user(const ServerConfig& config) {
  return config.containers->profile == "user-container";
}

SharedError wrong_choice(const char* option, std::string_view value, const char* choices) {
  return make_error(ErrorCode::invalid_argument, "Invalid %: %. Must be %.",
                    {option, in_quotes(value), choices});
}

void begin_containers(ServerConfig& config) {
  config.containers = new_shared<ContainerConfig>();
  if (!config.run_agent) config.run_agent = agent_main;
}

Expected<void> choose_container_mode(ServerConfig& config) {
  std::string& profile = config.containers->profile;
  std::replace(profile.begin(), profile.end(), '_', '-');
  if (!is_for_user(config) && profile != "commands")
    return wrong_choice("profile", profile, "'commands' or 'user-container'");
  if (config.execution_mode.empty() && is_for_user(config)) config.execution_mode = "docker";
  return {};
}

Expected<void> check_profile(ServerConfig& config) {
  if (config.use != Option::docker)
    return make_error(ErrorCode::invalid_argument,
                      "profile user-container has no execution_mode '%'", {config.execution_mode});
  if (config.containers->user_id.empty())
    return make_error(ErrorCode::invalid_argument, "profile user-container needs a user_id");
  config.use = Option::users;
  config.profile_text = "profile user-container";
  return {};
}

// A container has its own network modes. Of the sandbox's it has `allow`, with names.
Expected<void> check_network(const ServerConfig& config) {
  const bool is_named = config.local.sandbox.network == Network::allow;
  for (const Option* const option : config.invocation.given)
    if (option->name() == "network"sv && (!is_named || config.use == Option::users))
      return without_effect(
          *option, config,
          "; a container has a docker_network_mode or docker_network, or network allow");
  if (config.use == Option::docker && is_named == config.local.allowed_domains.empty())
    return make_error(ErrorCode::invalid_argument,
                      "network: 'allow' and allow_domains need each other");
  return {};
}

Expected<void> check_containers(ServerConfig& config) {
  if (is_for_user(config))
    if (auto ok = check_profile(config); !ok) return ok;
  ContainerConfig& own = *config.containers;
  ContainerNetwork& network = own.user.container.network;
  for (const ContainerNetwork known :
       {ContainerNetwork::none, ContainerNetwork::bridge, ContainerNetwork::host})
    if (own.network == name(known)) network = known;
  if (own.network != name(network))
    return wrong_choice("command_line_docker_network_mode", own.network,
                        "'none', 'bridge', or 'host'");
  if (config.use & Option::containers) return check_network(config);
  return {};
}

Expected<void> check_container_call(ServerConfig& config) {
  if (config.invocation.check && config.use == Option::users)
    return make_error(ErrorCode::invalid_argument, "--check has no policy to ask with --profile");
  return {};
}

// Options of a container that stand for others, and the agent that it gets.
Expected<void> settle_container(ServerConfig& config) {
  ContainerOptions& options = config.containers->user.container;
  options.on_progress = [](std::string_view what) { warn(printable(what)); };
  // This program is an agent itself. A variable that is set and empty asks for the image's own.
  char own[PATH_MAX] = "";
  const char* const named = std::getenv("CODEEXEC_PLACE_AGENT");
  options.agent = config.agent;
  if (options.agent.empty() && (named || ::readlink("/proc/self/exe", own, sizeof own - 1) > 0))
    options.agent = named ? named : own;
  if (!config.containers->credentials.is_null()) {
    const auto ok = credentials_from_json(config.containers->credentials, options);
    if (!ok) return with_prefix("docker_credentials: ", {}, ok.error());
  }
  if (!config.containers->packages.is_null()) {
    const bool required = options.packages_required;
    const auto ok = packages_from_json(config.containers->packages, options);
    if (!ok) return with_prefix("docker_packages: ", {}, ok.error());
    options.packages_required |= required;
  }
  return {};
}

// Mounts the folders for /tools and /skills.
Expected<void> add_folders(ServerConfig& config) {
  for (const bool skills : {false, true}) {
    auto folder = usable_directory(
        skills ? "skills_path" : "tools_path",
        skills ? config.containers->user.skills_dir : config.containers->user.tools_dir,
        R_OK | X_OK);
    if (!folder) return folder.failure();
    if (!folder->empty())
      config.containers->user.container.mounts.push_back(
          {std::move(*folder), skills ? "/skills" : "/tools"});
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
  UserContainerOptions& options = config.containers->user;
  const char* const image = variable_or_null("MCP_EXECUTOR_IMAGE");
  if (config.containers->user.container.image.empty() && image)
    config.containers->user.container.image = image;
  settle_folder(options.tools_dir, "MCP_TOOLS_PATH", "./tools");
  settle_folder(options.skills_dir, "MCP_SKILLS_PATH", "./skills");
  if (options.max_artifact != 0) return {};
  options.max_artifact = config.containers->usual_artifact;
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

// With profile user-container.
int serve_user(ServerConfig& config) {
  const auto containers = create_user_containers(config);
  if (!containers) return fail(2, containers.error().message);
  drop_variables(config);
  warn_of_bare_patterns(config);
  const TerminationSignals signals;
  if (!signals.problem().empty()) return fail(1, signals.problem());
  const std::string& user_id = config.containers->user_id;
  if (config.invocation.run) {
    Command command = Command::shell(*config.invocation.run);
    command.cancel = signals.token();
    const auto result = containers->execute_bash(user_id, std::move(command));
    return result ? print_result(*result) : fail(125, result.error().message);
  }
  return serve_tools(config, describe(*containers), signals.token(), [&](mcp::Server& server) {
    return add_user_container_tools(server, *containers, user_id,
                                    config.result_text == ResultText::json);
  });
}

Expected<void> settle_containers(ServerConfig& config) {
  config.local.policy.enable_sudo = config.containers->user.container.sudo;
  if (config.local.policy.enable_sudo && config.use == Option::local)
    warn("enable_sudo has no effect in local mode");
  if (!(config.use & Option::containers)) return {};
  // The program that speaks to the engine finds it, and its way there, by these.
  add_words(config.kept_variables,
            {"DOCKER_*", "CONTAINER*", "NERDCTL_*", "REGISTRY_AUTH_FILE", "XDG_*", "SSH_*",
             "SSL_CERT_*", "HTTP_PROXY", "DBUS_SESSION_BUS_ADDRESS", "http_proxy", "HTTPS_PROXY",
             "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"});
  if (auto ok = settle_container(config); !ok) return ok;
  if (config.use == Option::docker) return add_folders(config);
  config.serve = serve_user;
  return settle_users(config);
}

Expected<CommandPlace> create_container_place(const ServerConfig& config) {
  auto executor = ContainerExecutor::create(container_executor_options(config), config.wings);
  if (!executor) return in_words_of_containers(executor.error());
  CommandPlace place;
  place.executor = owned_executor(std::move(*executor));
  return place;
}

// Where the library has another name for what an option sets.
constexpr OptionName container_names[] = {
    {"agent", "place_agent"},
    {"cache", "docker_cache"},
    {"cpus", "docker_cpu_limit"},
    {"credentials", "docker_credentials"},
    {"engine_options", "docker_option"},
    {"image", "docker_image"},
    {"log_file", "docker_log_file"},
    {"memory", "docker_memory_limit"},
    {"mounts", "docker_mount"},
    {"network", "docker_network"},
    {"packages", "docker_packages"},
    {"skills_dir", "skills_path"},
    {"tools_dir", "tools_path"},
    {"user", "docker_user"},
};

constexpr ServerMode container_modes[] = {{"docker", Option::docker, create_container_place}};

constexpr OptionNote container_notes[] = {
    {"network", "; a container has docker_network_mode, or this one"},
    {"agent-id", ". In docker mode also whose container it is"},
};

}  // namespace

inline namespace inner {

ContainerExecutorOptions container_executor_options(const ServerConfig& config) {
  return {ExecutorOptions(config.local), config.containers->user.container,
          config.local.environment};
}

SharedError in_words_of_containers(Error error) {
  constexpr std::string_view engine = "engine ";
  std::string& message = error.message;
  if (starts_with(message, engine)) message.replace(0, engine.size(), "docker_");
  return in_our_words(std::move(error), container_names);
}

// For commands of users only the policy, the timeout and the audit log of `local` count.
Expected<UserContainers> create_user_containers(ServerConfig& config) {
  UserContainerOptions& options = config.containers->user;
  options.policy = config.local.policy;
  if (config.local.timeout.count() != 0) options.timeout = config.local.timeout;
  options.audit_file = config.local.audit_file;
  options.audit_key = config.local.audit_key;
  options.audit_syslog = config.local.audit_syslog;
  options.audit_output = config.local.audit_output;
  auto containers = UserContainers::create(options, config.wings);
  if (!containers) return in_words_of_containers(containers.error());
  return containers;
}

}  // namespace inner

namespace {

constexpr Feature container_feature = [] {
  Feature feature;
  feature.options = container_feature_options;
  feature.modes = container_modes;
  feature.modes_in_short = "docker";
  feature.modes_in_full = "docker: in a container";
  feature.notes = container_notes;
  feature.begin = begin_containers;
  feature.choose_mode = choose_container_mode;
  feature.check = check_containers;
  feature.check_call = check_container_call;
  feature.settle = settle_containers;
  return feature;
}();

}  // namespace

namespace features {

const ServerFeature& containers = container_feature;

}  // namespace features

}  // namespace v0_1
}  // namespace codeexec
