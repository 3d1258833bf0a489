// The executor of a place.

#include "place/place.hpp"
#include "place/place_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "environment/environment.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "executor/gate_internal.hpp"
#include "paths/paths.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

struct PlaceExecutor::Place {
  PlaceLink::Wanted wanted = {};
  Environment environment;
  std::string shell;
  bool sets_path = false;  // by the options: the place's own does not count
  bool sets_lang = false;
  std::string described = {};
  std::mutex mutex = {};
  std::shared_ptr<PlaceLink> link = {};
  bool was_lost = false;  // and the next result tells it
  std::atomic<std::uint64_t> failures{0};
  Error failure = {};

  explicit Place(Environment variables, std::string shell_path)
      : environment(std::move(variables)), shell(std::move(shell_path)) {}

  // The connection, or a new one where it was lost. Who has waited while that failed does not try
  // it again.
  Expected<std::shared_ptr<PlaceLink>> connect(const std::optional<CancelToken>& cancel) {
    const std::uint64_t known = failures.load();
    const std::lock_guard<std::mutex> lock(mutex);
    if (link && !link->is_lost()) return link;
    if (failures.load() != known) return failure;
    was_lost = was_lost || link;
    wanted.transport.environment.clear();
    for (char** variable = environ; variable && *variable; ++variable)
      wanted.transport.environment.emplace_back(*variable);
    auto opened = PlaceLink::open(wanted, cancel);
    if (opened) {
      link = *opened;
    } else if (opened.error().system_error != ECANCELED) {
      failure = opened.error();
      failures.fetch_add(1);
    }
    return opened;
  }
};

Expected<std::vector<std::string>> ssh_transport(const std::string& host,
                                                 const std::string& agent) {
  if (host.empty() || host[0] == '-' || has_nul(host))
    return make_error(ErrorCode::invalid_argument,
                      {"place_host must be what ssh calls a machine, and not ", quoted(host)});
  return std::vector<std::string>{
      "ssh", "-T", "-o", "BatchMode=yes", "--", host, shell_word(agent), "--place"};
}

Expected<PlaceExecutor> PlaceExecutor::create(const PlaceOptions& options) {
  const CancellationPause pause;
  PlaceExecutor executor;
  if (options.transport.empty())
    return make_error(ErrorCode::invalid_argument,
                      {"transport is empty: nothing leads to a place"});
  if (options.keep_alive < std::chrono::seconds(1) ||
      options.connect_timeout <= std::chrono::seconds(0))
    return make_error(ErrorCode::invalid_argument,
                      {"keep_alive must be at least one second, and connect_timeout more than 0"});
  EnvironmentOptions variables = options.environment;
  variables.keep.clear();
  variables.keep_all = false;
  variables.workspace = options.workspace.empty() ? "." : options.workspace;
  auto environment = Environment::create(variables);
  if (!environment) return environment.error();
  if (auto ok = executor.set_up(options, environment->secrets()); !ok) return ok.error();
  auto place = std::make_shared<Place>(std::move(*environment), options.shell);
  place->sets_path = sets_variable(variables.set, "PATH");
  place->sets_lang = sets_variable(variables.set, "LANG");
  PlaceLink::Wanted& wanted = place->wanted;
  wanted.name = options.name;
  for (const std::string& word : options.transport) {
    if (has_nul(word))
      return make_error(ErrorCode::invalid_argument, {"transport has a NUL byte in it"});
    if (options.name.empty())
      wanted.name += concat({wanted.name.empty() ? "" : " ", printable(word)});
  }
  wanted.transport.argv = options.transport;
  wanted.connect_timeout = options.connect_timeout;
  wanted.keep_alive = options.keep_alive;
  wanted.workspace = executor.workspace();
  wanted.sandbox = options.sandbox;
  if (!is_utf8(wanted.workspace))
    return make_error(ErrorCode::invalid_argument,
                      {"workspace: ", quoted(wanted.workspace), " is not UTF-8"});
  if (options.sandbox.mode != SandboxMode::off) {
    for (const Root& root : executor.paths().roots())
      if (root.permission != Permission::none)
        (root.permission == Permission::write ? wanted.sandbox.writable : wanted.sandbox.readable)
            .push_back(root.path);
    if (executor.paths().roots().empty()) wanted.sandbox.writable.push_back(wanted.workspace);
  }
  if (auto link = place->connect({}); !link) return link.error();
  executor.place_ = std::move(place);
  executor.place_->described = facts_of_shell(options.shell, variables);
  return executor;
}

PlaceFacts PlaceExecutor::facts() const {
  const std::lock_guard<std::mutex> lock(place_->mutex);
  return place_->link->facts();
}

std::string PlaceExecutor::describe_place() const {
  const PlaceFacts there = facts();
  return to_utf8(
      concat({place_->described, " Commands run on another machine, ", printable(there.host), " (",
              printable(there.machine), "), which has the workspace under the same path."}));
}

std::string PlaceExecutor::home(const Command& command, std::string_view work_dir) const {
  const auto environment = place_->environment.resolve(work_dir, command.environment);
  const char* const home = environment ? value_of(environment->variables, "HOME") : nullptr;
  return home ? home : facts().home;
}

Expected<void> PlaceExecutor::place(const Command& command, Admission& admission) const {
  auto environment = place_->environment.resolve(admission.directory.path, command.environment);
  if (!environment) return environment.error();
  admission.result.venv = environment->venv;
  admission.result.place = place_->wanted.name;
  PlaceRequest request;
  request.work_dir = admission.directory.path;
  request.unset = admission.unset;
  const bool sets_path = place_->sets_path || sets_variable(command.environment, "PATH");
  const bool sets_lang = place_->sets_lang || sets_variable(command.environment, "LANG");
  if (!sets_path) request.venv = environment->venv;
  for (std::string& variable : environment->variables)
    if ((sets_path || !starts_with(variable, "PATH=")) &&
        (sets_lang || !starts_with(variable, "LANG=")))
      request.set.push_back(std::move(variable));

  Third third{};
  request.argv = words_to_run(command, place_->shell, environment->prefix, admission, third);
  if (!admission.admitted()) return {};
  request.tells = third == Third::session;
  request.has_script = third == Third::script;
  if (request.has_script) request.script = command.script;
  std::size_t size = request.script.size();
  for (const auto* texts : {&request.argv, &request.set, &request.unset}) {
    size += total_size(*texts) + texts->size();
    for (const std::string& text : *texts)
      if (has_nul(text))
        return make_error(ErrorCode::invalid_argument,
                          {"a command has a NUL byte in it, which no program can be given"});
  }
  if (size > longest_request - longest_payload)
    return make_error(ErrorCode::limit, {"a command may have at most 64 MiB in a place"});
  request.merge_streams = command.merge_streams;
  request.has_input = !command.input.empty() || command.keep_input_open;
  ProcessOptions& process = admission.process;
  request.kill_grace = process.kill_grace;
  // This side judges; it is for a connection that does not pass its word on.
  constexpr std::chrono::milliseconds slack = std::chrono::seconds(1);
  if (process.timeout < no_limit - process.kill_grace - slack)
    request.timeout = process.timeout + process.kill_grace + slack;

  auto link = place_->connect(command.cancel);
  if (!link) {
    admission.fail(link.error(), "place");
    if (link.error().system_error == ECANCELED) admission.result.outcome = Outcome::cancelled;
    return {};
  }
  if (take_loss())
    admission.result.notes.push_back(
        concat({"the connection to ", place_->wanted.name,
                " was lost and has been made anew: what ran there before is ended"}));
  auto carrier = std::make_shared<PlaceCommand>(*link, std::move(request));
  if (command.session) admission.ending.session_text = [carrier] { return carrier->told(); };
  process.carrier = std::move(carrier);
  process.secrets = place_->environment.secrets();
  admission.home = place_;
  return {};
}

bool PlaceExecutor::take_loss() const {
  const std::lock_guard<std::mutex> lock(place_->mutex);
  return std::exchange(place_->was_lost, false);
}

}  // namespace v0_1
}  // namespace codeexec
