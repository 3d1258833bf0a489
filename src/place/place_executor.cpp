// The executor of a place.

#include "place/place.hpp"
#include "place/place_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "environment/environment.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "executor/gate_internal.hpp"
#include "files/files.hpp"
#include "files/files_internal.hpp"
#include "paths/paths.hpp"
#include "paths/paths_internal.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

struct PlaceExecutor::Place final : FilesElsewhere {
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
  Expected<void> ask(FileMessage& message) const override;
  Error misled() const;
  // Has the workspace and the roots found there.
  Expected<void> find(const PlaceOptions& options);

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

// The answer comes from a place that may be hostile.
Expected<void> PlaceExecutor::Place::ask(FileMessage& message) const {
  constexpr std::size_t most_told = std::size_t{16} << 20;  // but for the bytes of a file
  const std::size_t most = most_told + static_cast<std::size_t>(message.numbers[4]);
  ProcessOptions process;
  process.input = message.text();
  process.timeout = std::chrono::minutes(10);
  process.max_output = 0;
  // ProcessResult::out would be UTF-8.
  std::string said;
  process.on_output = [&](Stream stream, std::string_view bytes) {
    if (stream == Stream::out && said.size() < most) said += bytes;
  };
  auto reached = const_cast<Place*>(this)->connect({});
  if (!reached) return reached.error();
  PlaceRequest request;
  request.argv.emplace_back();
  request.has_input = true;
  process.carrier = new_shared<PlaceCommand>(*reached, std::move(request));
  const ProcessResult told = run_process(process);
  if (!told.succeeded() || !message.take(said))
    return make_error(ErrorCode::io,
                      {wanted.name, " has not answered about its files: ", told.message});
  if (message.numbers[0] != 0) return message.error();
  if (is_canonical_form(message.path)) return {};
  return misled();
}

Error PlaceExecutor::Place::misled() const {
  return make_error(ErrorCode::io, {wanted.name, " has told a path that is none"});
}

Expected<void> PlaceExecutor::Place::find(const PlaceOptions& options) {
  wanted.is_remote = true;
  if (options.environment.command_prefix.empty()) {
    wanted.venv_path = options.environment.venv_path;
    wanted.auto_venv = options.environment.auto_venv;
  }
  wanted.ground = ground_of(options.workspace.empty() ? "." : options.workspace, options.roots);
  const auto reached = connect({});
  if (!reached) return reached.error();
  const PlaceLink& found = **reached;
  wanted.ground = found.ground();
  wanted.is_found = true;
  roots = roots_in(wanted.ground, workspace);
  if (!is_canonical_form(workspace) || roots.empty() != options.roots.empty()) return misled();
  const bool confined = is_one_of("filesystem", found.facts().sandbox.enforced);
  for (const Root& root : roots) {
    if (!is_canonical_form(root.path)) return misled();
    bool held = confined || root.permission == Permission::write;
    for (const Root& around : roots)
      if (around.permission == Permission::write && root.permission != Permission::write)
        held = held && !codeexec::is_within(root.path, around.path);
    if (!held)
      return make_error(ErrorCode::unsupported,
                        {"read_only: nothing would keep commands from ", printable(root.path),
                         ": in a place it must lie in no folder that may be changed, and a sandbox "
                         "must hold there"});
  }
  return {};
}

Expected<std::vector<std::string>> ssh_transport(const std::string& host,
                                                 const std::string& agent) {
  if (host.empty() || host[0] == '-' || has_nul(host))
    return make_error(ErrorCode::invalid_argument,
                      {"place_host must be what ssh calls a machine, and not ", in_quotes(host)});
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
  const bool remote = options.workspace_mode == PlaceWorkspace::remote;
  if (remote && options.engine)
    return make_error(ErrorCode::unsupported,
                      {"place_workspace: remote is for a place that is there already"});
  if (remote && options.delete_guard)
    return make_error(ErrorCode::unsupported,
                      {"delete_guard: not for a workspace that is only in a place"});
  EnvironmentOptions variables = options.environment;
  variables.keep.clear();
  variables.keep_all = false;
  variables.workspace = options.workspace.empty() ? "." : options.workspace;
  if (remote) {
    variables.workspace.clear();
    variables.venv_path.clear();
    variables.auto_venv = false;
  }
  auto environment = Environment::create(variables);
  if (!environment) return environment.error();
  const std::vector<std::string> secrets = environment->secrets();
  if (!remote)
    if (auto ok = executor.set_up(options, secrets); !ok) return ok.error();
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
  wanted.sandbox = options.sandbox;
  if (remote) {
    if (auto ok = place->find(options); !ok) return ok.error();
    if (auto ok = executor.set_up(options, secrets, place.get()); !ok) return ok.error();
  } else {
    wanted.workspace = executor.workspace();
    if (!is_utf8(wanted.workspace))
      return make_error(ErrorCode::invalid_argument,
                        {"workspace: ", in_quotes(wanted.workspace), " is not UTF-8"});
    wanted.ground = ground_of(wanted.workspace, executor.paths().roots());
  }
  place->name = wanted.name;
  place->engine = options.engine;
  place->described = facts_of_shell(options.shell, options.environment);
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
  PlaceFacts facts = place_->link ? place_->link->facts() : PlaceFacts();
  facts.workspace = place_->workspace;
  return facts;
}

std::string PlaceExecutor::describe_place() const {
  const PlaceFacts there = facts();
  std::string machine;
  if (!there.host.empty())
    machine = concat({", ", printable(there.host), " (", printable(there.machine), ")"});
  return to_utf8(concat({place_->described, " Commands run on another machine", machine,
                         there.workspace.empty()
                             ? ", which has the workspace under the same path."
                             : ". The workspace is only there, for the file tools, too."}));
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
