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
  PlaceSettings settings;
  std::string described = {};
  std::mutex mutex = {};
  std::shared_ptr<PlaceLink> link = {};
  std::string name = {};  // while it is not known what the engine calls it
  std::shared_ptr<PlaceEngine> engine = {};
  std::vector<std::string> notes = {};  // for the next result
  std::atomic<std::uint64_t> failures{0};
  Error failure = {};

  explicit Place(PlaceSettings given) : settings(std::move(given)) {}

  // The connection, or a new one where it was lost. Who has waited while that failed does not try
  // it again.
  Expected<std::shared_ptr<PlaceLink>> connect(const std::optional<CancelToken>& cancel) {
    const std::uint64_t known = failures.load();
    const std::lock_guard<std::mutex> lock(mutex);
    if (link && !link->is_lost()) return link;
    if (failures.load() != known) return failure;
    if (link)
      notes.push_back(concat({"the connection to ", link->name(), " was lost (", link->reason(),
                              ") and has been made anew: what ran there before is ended"}));
    link.reset();
    auto opened = open(cancel);
    if (opened) {
      link = *opened;
    } else if (opened.error().system_error != ECANCELED) {
      failure = opened.error();
      failures.fetch_add(1);
    }
    return opened;
  }

  std::vector<std::string> take_notes() {
    const std::lock_guard<std::mutex> lock(mutex);
    return std::exchange(notes, {});
  }

 private:
  Expected<std::shared_ptr<PlaceLink>> open(const std::optional<CancelToken>& cancel) {
    if (engine) {
      auto way = engine->reach(cancel);
      if (!way) return way.error();
      wanted.name = std::move(way->name);
      wanted.transport.argv = std::move(way->transport);
      wanted.whole_lines = way->whole_lines;
    }
    wanted.transport.environment = own_variables();
    return PlaceLink::open(wanted, cancel);
  }
};

PlaceEngine::~PlaceEngine() = default;

Expected<std::vector<std::string>> ssh_transport(const std::string& host,
                                                 const std::string& agent) {
  if (host.empty() || host[0] == '-' || has_nul(host))
    return make_error(ErrorCode::invalid_argument,
                      {"place_host must be what ssh calls a machine, and not ", quoted(host)});
  std::vector<std::string> words = {
      "ssh",    "-T", "-o", "BatchMode=yes", "--", host, agent.empty() ? "sh" : shell_word(agent),
      "--place"};
  if (agent.empty()) words.pop_back();
  return words;
}

Expected<PlaceExecutor> PlaceExecutor::create(const PlaceOptions& options) {
  const CancellationPause pause;
  PlaceExecutor executor;
  if (options.transport.empty() == !options.engine)
    return make_error(ErrorCode::invalid_argument,
                      {options.engine ? "transport: an engine has its own"
                                      : "transport is empty: nothing leads to a place"});
  if (!options.agent.empty() && !options.engine && options.transport.back() == "--place")
    return make_error(
        ErrorCode::invalid_argument,
        {"agent: is for a transport that leads to a shell, such as `sh`, and not to ", "an agent"});
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
  auto place =
      new_shared<Place>(PlaceSettings(std::move(*environment), options.shell, variables.set));
  PlaceLink::Wanted& wanted = place->wanted;
  wanted.name = options.name;
  for (const std::string& word : options.transport) {
    if (has_nul(word))
      return make_error(ErrorCode::invalid_argument, {"transport has a NUL byte in it"});
    if (options.name.empty())
      append_all(wanted.name, {wanted.name.empty() ? "" : " ", printable(word)});
  }
  wanted.transport.argv = options.transport;
  wanted.agent = options.agent;
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
  place->name = wanted.name;
  place->engine = options.engine;
  place->described = facts_of_shell(options.shell, variables);
  executor.place_ = std::move(place);
  if (!options.engine)
    if (auto ok = executor.reach(); !ok) return ok.error();
  return executor;
}

Expected<void> PlaceExecutor::reach(const std::optional<CancelToken>& cancel) const {
  const auto link = place_->connect(cancel);
  if (!link) return link.error();
  return {};
}

PlaceFacts PlaceExecutor::facts() const {
  const std::lock_guard<std::mutex> lock(place_->mutex);
  return place_->link ? place_->link->facts() : PlaceFacts();
}

std::string PlaceExecutor::describe_place() const {
  const PlaceFacts there = facts();
  std::string machine;
  if (!there.host.empty())
    machine = concat({", ", printable(there.host), " (", printable(there.machine), ")"});
  return to_utf8(concat({place_->described, " Commands run on another machine", machine,
                         ", which has the workspace under the same path."}));
}

std::string PlaceExecutor::home(const Command& command, std::string_view work_dir) const {
  const auto environment = place_->settings.environment.resolve(work_dir, command.environment);
  const char* const home = environment ? value_of(environment->variables, "HOME") : nullptr;
  return home ? home : facts().home;
}

Expected<void> PlaceExecutor::place(const Command& command, Admission& admission) const {
  auto request = PlaceCommand::request_for(command, admission, place_->settings);
  if (!request) return request.error();
  if (!*request) return {};
  auto link = place_->connect(command.cancel);
  admission.result.place = link ? (*link)->name() : place_->name;
  if (!link) {
    admission.fail(link.error(), "place");
    if (link.error().system_error == ECANCELED) admission.result.outcome = Outcome::cancelled;
    return {};
  }
  for (std::string& note : place_->take_notes()) admission.result.notes.push_back(std::move(note));
  auto carrier = new_shared<PlaceCommand>(*link, std::move(**request));
  if (command.session) admission.ending.session_text = [carrier] { return carrier->told(); };
  admission.process.carrier = std::move(carrier);
  admission.process.secrets = place_->settings.environment.secrets();
  admission.home = place_;
  return {};
}

}  // namespace v0_1
}  // namespace codeexec
