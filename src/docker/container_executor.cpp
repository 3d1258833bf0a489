// The executor of a container.

#include "docker/container_internal.hpp"
#include "docker/docker.hpp"

#include "agent/command_internal.hpp"
#include "agent/link_internal.hpp"
#include "agent/messages_internal.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "environment/environment_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "executor/gate_internal.hpp"
#include "json/json.hpp"
#include "json/json_internal.hpp"
#include "paths/paths.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// One thread at a time connects; the others wait, and get the same connection. A connection holds
// as long as its container was not started again, which the time of its start shows. When the
// engine says that the container is gone or asleep, ensure() mends that, and one more try follows.
Expected<std::shared_ptr<AgentLink>> ContainerExecutor::Target::connect(
    const std::optional<CancelToken>& cancel, std::string& incarnation) {
  constexpr int most_tries = 2;
  Container& state = *container;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (int tries = 1;; ++tries) {
    if (link_ && link_->is_lost()) {
      link_.reset();
      state.forget();
    }
    if (auto ok = state.ensure(cancel); !ok) return ok.failure();
    if (link_) {
      const auto there = state.incarnation(cancel);
      if (!there) return there.failure();
      if (incarnation_ == *there) {
        incarnation = incarnation_;
        return link_;
      }
      link_.reset();
    }
    AgentLink::Wanted wanted;
    wanted.name = concat("the container %", {state.name});
    // The commands' user can do no more than they can; root becomes that user, where they may
    // become root.
    wanted.transport = state.agent_call(state.options.sudo ? "0:0" : state.user);
    wanted.connect_timeout = state.options.start_timeout;
    wanted.hello = hello();
    // The engine answers that while it starts the agent.
    wanted.meanwhile = [&] { (void)state.incarnation(cancel); };
    auto opened = AgentLink::open(wanted, cancel);
    if (opened) {
      auto there = state.incarnation(cancel);
      if (!there) return there.failure();
      link_ = *opened;
      incarnation = incarnation_ = std::move(*there);
      return opened;
    }
    const std::string& said = opened.error().message;
    const auto has = [&said](const char* words) { return said.find(words) != std::string::npos; };
    bool may_do_better = false;
    for (const char* words : {"No such container", "no such container", "is not running",
                              "is paused", "is restarting", "stopped state"})
      may_do_better = may_do_better || has(words);
    if (may_do_better && tries < most_tries) {
      state.forget();
      continue;
    }
    return opened;
  }
}

// No sandbox: the container is one. An agent of root's keeps its capabilities to become the
// commands' user, and these get what sudo needs; any other gives all of them up.
Json ContainerExecutor::Target::hello() const {
  const Container& state = *container;
  Json wanted = new_hello(std::chrono::seconds(30));
  set_member(wanted, "container", true);
  set_member(wanted, "keeps", state.options.sudo);
  set_member(wanted, "gitconfig", gitconfig);
  set_member(wanted, "connections", served != nullptr);
  set_member(wanted, "sandbox", to_json(SandboxOptions()));
  if (state.options.sudo) set_member(wanted, "user", state.user);
  if (const auto resolved = settings.environment.resolve({}))
    if (const char* const home = value_of(resolved->variables, "HOME"sv))
      set_member(wanted, "home", home);
  return wanted;
}

namespace {

// Roots become mounts. An error of one has the name of the option that it comes from.
SharedError in_words_of_mounted_roots(Error error, const ExecutorOptions& options,
                                      const std::vector<Root>& roots) {
  constexpr std::string_view theirs = "mounts: ";
  for (const Root& root : roots) {
    const auto path = canonical_path(root.path);
    if (!path || !starts_with(error.message, concat("%%", {theirs, in_quotes(*path)}))) continue;
    error.message.replace(0, theirs.size(),
                          options.roots.empty()                 ? "workspace: "
                          : root.permission == Permission::read ? "read_only: "
                                                                : "allowed_paths: ");
    break;
  }
  return error;
}

}  // namespace

// Completes and checks everything, and asks no engine: the container is made for the first command.
// Files of this host that commands could change through a mount are refused, as for commands here.
Expected<ContainerExecutor> ContainerExecutor::create(const ContainerExecutorOptions& options,
                                                      const ExecutorWings& wings) {
  const CancellationPause pause;
  ContainerExecutor executor;
  ExecutorOptions general = options;
  // Without roots, the workspace is mounted: a container sees nothing that is not.
  if (general.roots.empty())
    general.roots.push_back({general.workspace.empty() ? "." : general.workspace});
  ContainerOptions wanted = options.container;
  wanted.agent_id = options.agent_id;
  for (const Root& root : general.roots) {
    auto path = canonical_path(root.path);
    if (!path) return with_prefix("allowed_paths: ", {}, path.error());
    wanted.mounts.push_back({std::move(*path), {}, root.permission});
  }
  if (auto ok = complete_options(wanted); !ok)
    return in_words_of_mounted_roots(ok.error(), options, general.roots);
  const bool is_named = !options.allowed_domains.empty();
  if (is_named && network(wanted) != "none")
    return make_error(ErrorCode::invalid_argument,
                      "allowed_domains: the container has the network %: it must have none",
                      {network(wanted)});
  auto server = make_network(options, wings, is_named ? Network::allow : Network::none);
  if (!server) return server.failure();
  auto container = new_shared<Container>(std::move(wanted));
  if (auto ok = executor.set_up(general, wings, container->options.secrets); !ok)
    return ok.failure();
  std::vector<std::string> writable;
  for (const Mount& mount : container->options.mounts)
    if (mount.permission == Permission::write) writable.push_back(mount.source);
  if (auto ok = check_out_of_reach(general, writable); !ok) return ok.failure();

  EnvironmentOptions variables = options.environment;
  variables.keep.clear();
  variables.keep_all = false;
  variables.workspace = executor.workspace();
  variables.set = container->options.environment;
  for (const auto& variable : options.environment.set) variables.set.push_back(variable);
  auto environment = Environment::create(variables);
  if (!environment) return environment.failure();
  auto target = new_shared<Target>(
      std::move(container), CommandSettings(std::move(*environment), options.shell, variables.set));
  target->facts = facts_of_shell(options.shell, variables);
  if (options.git_identity) target->gitconfig = git_identity();
  target->served = std::move(*server);
  executor.target_ = std::move(target);
  return executor;
}

const std::string& ContainerExecutor::container_name() const noexcept {
  return target_->container->name;
}

const ContainerOptions& ContainerExecutor::container_options() const noexcept {
  return target_->container->options;
}

// What a caller may do before the first command, so that this one need not wait.
Expected<void> ContainerExecutor::ensure(const std::optional<CancelToken>& cancel) const {
  return target_->container->ensure(cancel);
}

Expected<ContainerInfo> ContainerExecutor::info() const { return target_->container->info(); }

Expected<ContainerInfo> ContainerExecutor::stats() const { return target_->container->stats(); }

Expected<void> ContainerExecutor::stop() const { return target_->container->stop(); }

Expected<void> ContainerExecutor::remove() const { return target_->container->remove(); }

Expected<void> ContainerExecutor::save_log(const std::string& path) const {
  return target_->container->save_log(path);
}

// Secrets are masked, and lines cannot look like events of this library: see Log::add().
void ContainerExecutor::log(std::string_view event) const { target_->container->log(event); }

// For a model: what is there, what it may change, and what it need not try. Each sentence follows
// from an option, so that none is untrue for a container that is set up another way.
std::string ContainerExecutor::describe_place() const {
  const ContainerOptions& options = container_options();
  const bool online = network(options) != "none";
  std::vector<std::string> installed;
  for (const auto* list :
       {&options.system_packages, &options.python_packages, &options.npm_packages})
    installed.insert(installed.end(), list->begin(), list->end());
  std::string writable;
  std::string readable;
  for (const Mount& mount : options.mounts) {
    if (mount.permission == Permission::none) continue;
    std::string& list = mount.permission == Permission::write ? writable : readable;
    list += concat({list.empty() ? "" : ", ", mount.target});
  }
  std::string text = concat("% Commands run in a Linux container of the image %.",
                            {target_->facts, options.image});
  if (starts_with(options.image, "codeexec/runtime"))
    text +=
        " It has Debian's tools, git, gh, curl, ripgrep, compilers for C and C++, Python with pip, "
        "uv, pytest, requests, numpy and pandas, and Node.js with npm.";
  if (!installed.empty())
    text += concat(
        " Installed when the container is made: %; a result says so when one could not be had.",
        {joined(installed, ", ")});
  if (!online && !target_->served)
    text += " The network is switched off: nothing can be downloaded.";
  text += describe_network(target_->served, "the container");
  if (network(options) == "host") text += " The network is the host's.";
  if (!options.sudo)
    text += concat(" There is no sudo: %ask the user for an image that has what is missing.",
                   {online ? "pip and npm install for you alone; for system packages " : ""});
  else
    text +=
        concat(" sudo needs no password%",
               {online ? ": `sudo apt-get install -y PACKAGE` (not brew, dnf or the like)." : "."});
  text += concat(" Files can be changed %until the container goes away, in /tmp%",
                 {writable.empty() ? "" : concat("below % and, ", {writable}),
                  *options.read_only_root ? "; nowhere else." : " and elsewhere in it."});
  if (!readable.empty()) text += concat(" Read-only: %.", {readable});
  return to_utf8(text);
}

std::shared_ptr<const Executor> ContainerExecutor::copy() const {
  return new_shared<ContainerExecutor>(*this);
}

// Called by the gate, once the command is allowed. A container that cannot be had is a Result with
// the outcome not_started or cancelled, and the step "container".
Expected<void> ContainerExecutor::place(const Command& command, Admission& admission) const {
  const std::shared_ptr<Container>& container = target_->container;
  StartRequest request;
  auto ok = AgentCommand::request_for(command, admission, target_->settings, request);
  if (!ok || !admission.admitted()) return ok;
  if (network(container->options) == "none")
    admission.ending.network = target_->served ? Network::allow : Network::none;
  std::string incarnation;
  auto link = target_->connect(command.cancel, incarnation);
  if (!link) {
    admission.fail(link.error(), "container");
    if (command.cancel && command.cancel->cancelled())
      admission.result.outcome = Outcome::cancelled;
    return {};
  }
  for (std::string& note : container->take_notes())
    admission.result.notes.push_back(std::move(note));
  auto exec = new_shared<Exec>(*link, std::move(request), container, std::move(incarnation));
  exec->connect = connect_by(target_->served, admission);
  if (command.session) admission.ending.session_text = [exec] { return exec->session_data(); };
  admission.remote = std::move(exec);
  admission.process.secrets = container->options.secrets;
  admission.result.container = container->name;
  admission.home = target_;
  // The container's log gets the head and the tail of each output.
  admission.ending.log = [log = container->events](const Result& reported,
                                                   const ProcessResult& ended) {
    Result result = reported;
    static_cast<ProcessResult&>(result) = ended;
    constexpr std::size_t most = 2000;
    std::string event = concat("$ %\n%", {utf8_prefix(result.command, most), result.summary()});
    for (const std::string* text : {&result.out, &result.err}) {
      if (text->empty()) continue;
      event += text == &result.out ? "\nstdout:\n" : "\nstderr:\n";
      if (text->size() <= 2 * most)
        event += *text;
      else
        event += concat("%\n...\n%", {utf8_prefix(*text, most), utf8_suffix(*text, most)});
    }
    log->add(event);
  };
  return {};
}

}  // namespace v0_1
}  // namespace codeexec
