// Other machines as a feature of the server: --execution-mode ssh, slurm, kubernetes and command.

#include "places/places_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "cluster/cluster.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "place/place.hpp"
#include "shell/script_internal.hpp"
#include "tools/option_internal.hpp"
#include "tools/server_internal.hpp"
#include "tools/tools.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

KubernetesOptions kubernetes_options(const ServerConfig& config) {
  KubernetesOptions options = config.places->kubernetes;
  options.agent_id = config.local.agent_id;
  options.start_timeout = config.places->start_timeout;
  options.lifetime = std::chrono::seconds(config.places->kubernetes_lifetime);
  return options;
}

}  // namespace inner

namespace {

// The agent of other machines is one of containers, too.
void begin_places(ServerConfig& config) {
  config.places = new_shared<PlaceConfig>();
  config.run_agent = place_main;
}

Expected<void> check_places(ServerConfig& config) {
  PlaceConfig& own = *config.places;
  if (own.workspace == no_workspace_mode)
    own.workspace =
        config.use == Option::kubernetes ? PlaceWorkspace::remote : PlaceWorkspace::shared;
  config.works_elsewhere = own.workspace == PlaceWorkspace::remote;
  const bool lacks_command = config.use == Option::command && own.command.empty();
  if (lacks_command || (config.use == Option::ssh && own.host.empty()))
    return make_error(ErrorCode::invalid_argument, "execution_mode % needs a %",
                      {config.execution_mode, lacks_command ? "place_command" : "place_host"});
  return {};
}

Expected<void> settle_places(ServerConfig& config) {
  // The way to a place may need any of them, and again.
  config.keeps_variables = config.use & Option::places;
  // A single command needs no other place.
  if (config.invocation.is_single) config.places->pool = 0;
  return {};
}

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
  SlurmOptions slurm = config.places->slurm;
  slurm.agent_id = config.local.agent_id;
  slurm.agent = agent;
  slurm.start_timeout = config.places->start_timeout;
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
  if (config.places->pool == 0) return {};
  auto made = PlacePool::create(
      [&config, agent]() -> std::shared_ptr<PlaceEngine> {
        auto another = engine_of(config, agent);
        return another ? *another : nullptr;
      },
      static_cast<std::size_t>(config.places->pool),
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
  options.keep_alive = config.places->place.keep_alive;
  options.agent = config.agent;
  options.workspace_mode = config.places->workspace;
  options.copy_max_files = config.places->place.copy_max_files;
  options.copy_max_bytes = config.places->place.copy_max_bytes;
  options.copy_exclude = config.places->place.copy_exclude;
  options.copy_gitignore = config.places->place.copy_gitignore;
  const PlaceOptions usual;
  if (options.workspace_mode != PlaceWorkspace::copy &&
      (options.copy_gitignore || !options.copy_exclude.empty() ||
       options.copy_max_files != usual.copy_max_files ||
       options.copy_max_bytes != usual.copy_max_bytes))
    return bad_value("place_workspace",
                     options.workspace_mode == PlaceWorkspace::remote ? "remote"sv : "shared"sv,
                     "copy, as place_copy_ is given");
  std::string agent = config.places->agent_path;
  if (!options.agent.empty() && config.use != Option::command) {
    if (agent != PlaceConfig::usual_agent)
      return bad_value("place_agent_path"sv, agent, "needed where place_agent is copied there"sv);
    agent.clear();
  }
  if (config.use & Option::made) {
    options.name = config.use == Option::slurm ? "Slurm" : "Kubernetes";
    return set_engine(config, agent, options, pool);
  }
  options.name = config.places->host;
  auto words = config.use == Option::ssh ? ssh_transport(config.places->host, agent)
                                         : words_of_command(config.places->command);
  if (!words) return words.failure();
  options.transport = std::move(*words);
  return {};
}

// Where the library has another name for what an option sets.
constexpr OptionName place_names[] = {{"agent", "place_agent"}, {"keep_alive", "place_keep_alive"}};

Expected<CommandPlace> create_other_place(const ServerConfig& config) {
  CommandPlace place;
  PlaceOptions options{ExecutorOptions(config.local)};
  std::optional<PlacePool> pool;
  if (auto ok = set_place(config, options, pool); !ok) return ok.failure();
  if (pool) place.owner = new_shared<PlacePool>(std::move(*pool));
  if (!config.no_project.empty())
    return make_error(ErrorCode::invalid_argument,
                      "workspace: %: name the folder of a project, or set sandbox to off",
                      {config.no_project});
  auto executor = PlaceExecutor::create(options, config.wings);
  if (!executor) return in_our_words(executor.error(), place_names);
  if (config.reach_place)
    if (auto ok = executor->reach(); !ok) return ok.failure();
  place.sandbox = executor->facts().sandbox;
  place.executor = owned_executor(std::move(*executor));
  return place;
}

constexpr ServerMode place_modes[] = {{"ssh", Option::ssh, create_other_place},
                                      {"slurm", Option::slurm, create_other_place},
                                      {"kubernetes", Option::kubernetes, create_other_place},
                                      {"command", Option::command, create_other_place}};

constexpr Feature place_feature = [] {
  Feature feature;
  feature.options = place_feature_options;
  feature.modes = place_modes;
  feature.modes_in_short = "other places";
  feature.modes_in_full = "ssh, slurm, kubernetes and command: on another machine";
  feature.begin = begin_places;
  feature.check = check_places;
  feature.settle = settle_places;
  return feature;
}();

}  // namespace

namespace features {

const ServerFeature& places = place_feature;

}  // namespace features

}  // namespace v0_1
}  // namespace codeexec
