// The executor of a place.

#include "place/copy_internal.hpp"
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

namespace {

// What was asked of a copy, and whether it can be had of what is here now.
Expected<void> check_copy(const PlaceOptions& options, const std::string& workspace,
                          const PathRules& paths) {
  for (const std::string& pattern : options.copy.exclude)
    if (pattern.empty() || !is_utf8(pattern) ||
        pattern.find_first_of("\0\n"sv) != std::string::npos)
      return make_error(ErrorCode::invalid_argument, "place_copy_exclude: % is no line of UTF-8",
                        {in_quotes(pattern)});
  for (const Root& root : paths.roots())
    if (!codeexec::is_within(root.path, workspace) && !codeexec::is_within(workspace, root.path))
      return make_error(ErrorCode::unsupported,
                        "allowed_paths: % lies outside of the workspace, and that alone is copied",
                        {in_quotes(root.path)});
  if (auto ok = check_out_of_reach(options, {workspace}); !ok) return ok;
  return PlaceCopy({}).look_at(workspace, paths, copy_options(options.copy));
}

}  // namespace

struct PlaceExecutor::Place final : FilesElsewhere {
  PlaceLink::Wanted wanted = {};
  PlaceSettings settings;
  std::string described = {};
  std::mutex mutex = {};
  std::shared_ptr<PlaceEngine> engine = {};
  std::shared_ptr<PlaceLink> link = {};  // goes before the place does
  std::shared_ptr<PlaceCopy> copy = {};  // of that link
  std::string name = {};                 // while it is not known what the engine calls it
  std::vector<std::string> notes = {};   // for the next result
  std::atomic<std::uint64_t> failures{0};
  Error failure = {};

  explicit Place(PlaceSettings given) : settings(std::move(given)) {}
  Expected<void> ask(FileMessage& message) const override;
  SharedError misled() const;
  // Has the workspace and the roots found there.
  Expected<void> find(const PlaceOptions& options);
  // Has the workspace copied there, as it is here now.
  Expected<std::shared_ptr<PlaceCopy>> copy_for(const PlaceExecutor& executor,
                                                std::shared_ptr<PlaceLink>& reached,
                                                const std::optional<CancelToken>& cancel,
                                                std::vector<std::string>& told);
  // The command, whose end comes when what it changed is here.
  static std::shared_ptr<PlaceCommand> carry(std::shared_ptr<PlaceLink> reached,
                                             std::shared_ptr<PlaceCopy> copied,
                                             PlaceRequest request, Admission& admission);

  // The connection, or a new one where it was lost. Who has waited while that failed does not try
  // it again.
  Expected<std::shared_ptr<PlaceLink>> connect(const std::optional<CancelToken>& cancel) {
    const std::uint64_t known = failures.load();
    const std::lock_guard<std::mutex> lock(mutex);
    const bool copy_is_lost = copy && copy->is_lost();
    if (link && !link->is_lost() && !copy_is_lost) return link;
    if (failures.load() != known) return failure;
    if (copy)
      notes.push_back(concat(
          "the workspace has been copied to % anew, where the last copy was lost", {link->name()}));
    copy.reset();
    if (link && link->is_lost())
      notes.push_back(concat(
          "the connection to % was lost (%) and has been made anew: what ran there before is ended",
          {link->name(), link->reason()}));
    const std::string before = link ? link->name() : std::string();
    link.reset();
    auto opened = open(cancel);
    if (opened) {
      link = *opened;
      if (wanted.is_remote && !notes.empty() && link->name() != before)
        append_all(notes.back(), ", and so are the files that it alone had");
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
      if (!way) return way.failure();
      wanted.name = std::move(way->name);
      wanted.transport.argv = std::move(way->transport);
      wanted.whole_lines = way->whole_lines;
      wanted.account = std::move(way->account);
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
  if (!reached) return reached.failure();
  PlaceRequest request;
  request.argv.emplace_back();
  request.has_input = true;
  process.carrier = new_shared<PlaceCommand>(*reached, std::move(request));
  const ProcessResult told = run_process(process);
  if (!told.succeeded() || !message.take(said))
    return make_error(ErrorCode::io, "% has not answered about its files: %",
                      {wanted.name, told.message});
  if (message.numbers[0] != 0) return message.error();
  if (is_canonical_form(message.path)) return {};
  return misled();
}

SharedError PlaceExecutor::Place::misled() const {
  return make_error(ErrorCode::io, "% has told a path that is none", {wanted.name});
}

Expected<void> PlaceExecutor::Place::find(const PlaceOptions& options) {
  wanted.is_remote = true;
  if (options.environment.command_prefix.empty()) {
    wanted.venv_path = options.environment.venv_path;
    wanted.auto_venv = options.environment.auto_venv;
  }
  wanted.ground = ground_of(options.workspace.empty() ? "." : options.workspace, options.roots);
  const auto reached = connect({});
  if (!reached) return reached.failure();
  const PlaceLink& found = **reached;
  wanted.ground = found.ground();
  wanted.is_found = true;
  roots = roots_in(wanted.ground, workspace);
  if (!is_canonical_form(workspace) || roots.empty() != options.roots.empty()) return misled();
  const bool confined = is_one_of("filesystem"sv, found.facts().sandbox.enforced);
  for (const Root& root : roots) {
    if (!is_canonical_form(root.path)) return misled();
    bool held = confined || root.permission == Permission::write;
    for (const Root& around : roots)
      if (around.permission == Permission::write && root.permission != Permission::write)
        held = held && !codeexec::is_within(root.path, around.path);
    if (!held)
      return make_error(ErrorCode::unsupported,
                        "read_only: nothing would keep commands from %: in a place it must lie in "
                        "no folder that may be changed, and a sandbox must hold there",
                        {printable(root.path)});
  }
  return {};
}

Expected<std::shared_ptr<PlaceCopy>> PlaceExecutor::Place::copy_for(
    const PlaceExecutor& executor, std::shared_ptr<PlaceLink>& reached,
    const std::optional<CancelToken>& cancel, std::vector<std::string>& told) {
  for (bool again = false;; again = true) {
    if (again) {
      auto link_again = connect(cancel);
      if (!link_again) return link_again.failure();
      reached = *link_again;
    }
    Expected<std::shared_ptr<PlaceCopy>> made = std::shared_ptr<PlaceCopy>();
    {
      const std::lock_guard<std::mutex> lock(mutex);
      if (!copy || copy->link() != reached) {
        made = PlaceCopy::open(reached, executor.workspace(), executor.paths(), wanted.copy);
        if (!made) return made;
        if (link == reached) copy = *made;
      } else {
        made = copy;
      }
    }
    const auto sent = (*made)->send(cancel, told);
    if (sent) return made;
    if (again || !(*made)->is_lost()) return sent.failure();
  }
}

std::shared_ptr<PlaceCommand> PlaceExecutor::Place::carry(std::shared_ptr<PlaceLink> reached,
                                                          std::shared_ptr<PlaceCopy> copied,
                                                          PlaceRequest request,
                                                          Admission& admission) {
  copied->translate(request.work_dir);
  copied->translate(request.venv);
  for (std::string& variable : request.set) {
    const std::size_t value = variable.find('=') + 1;
    std::string path = variable.substr(value);
    copied->translate(path);
    variable.replace(value, std::string::npos, path);
  }
  const auto carrier = new_shared<CopiedCommand>(std::move(reached), std::move(request), copied);
  admission.ending.late_note = [carrier] { return carrier->note(); };
  admission.ending.session_text = [carrier, copied, mark = admission.ending.mark] {
    return copied->told_here(carrier->told(), mark);
  };
  return carrier;
}

Expected<std::vector<std::string>> ssh_transport(const std::string& host,
                                                 const std::string& agent) {
  if (host.empty() || host[0] == '-' || has_nul(host))
    return make_error(ErrorCode::invalid_argument,
                      "place_host must be what ssh calls a machine, and not %", {in_quotes(host)});
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
    return make_error(ErrorCode::invalid_argument, "%",
                      {options.engine ? "transport: an engine has its own"
                                      : "transport is empty: nothing leads to a place"});
  if (!options.agent.empty() && !options.engine && options.transport.back() == "--place")
    return make_error(
        ErrorCode::invalid_argument,
        "agent: is for a transport that leads to a shell, such as `sh`, and not to an agent");
  if (options.keep_alive < std::chrono::seconds(1) ||
      options.connect_timeout <= std::chrono::seconds(0))
    return make_error(ErrorCode::invalid_argument,
                      "keep_alive must be at least one second, and connect_timeout more than 0");
  const bool remote = options.workspace_mode == PlaceWorkspace::remote;
  const bool copies = options.workspace_mode == PlaceWorkspace::copy;
  if (remote && options.delete_guard)
    return make_error(ErrorCode::unsupported,
                      "delete_guard: not for a workspace that is only in a place");
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
  if (!environment) return environment.failure();
  const std::vector<std::string> secrets = environment->secrets();
  if (!remote)
    if (auto ok = executor.set_up(options, secrets); !ok) return ok.failure();
  auto place =
      new_shared<Place>(PlaceSettings(std::move(*environment), options.shell, variables.set));
  PlaceLink::Wanted& wanted = place->wanted;
  wanted.name = options.name;
  for (const std::string& word : options.transport) {
    if (has_nul(word))
      return make_error(ErrorCode::invalid_argument, "transport has a NUL byte in it");
    if (options.name.empty())
      append_all(wanted.name, {wanted.name.empty() ? "" : " ", printable(word)});
  }
  wanted.transport.argv = options.transport;
  wanted.agent = options.agent;
  wanted.connect_timeout = options.connect_timeout;
  wanted.keep_alive = options.keep_alive;
  wanted.sandbox = options.sandbox;
  place->name = wanted.name;
  place->engine = options.engine;
  if (remote) {
    if (auto ok = place->find(options); !ok) return ok.failure();
    if (auto ok = executor.set_up(options, secrets, place.get()); !ok) return ok.failure();
  } else {
    const std::string& workspace = executor.workspace();
    if (!is_utf8(workspace))
      return make_error(ErrorCode::invalid_argument, "workspace: % is not UTF-8",
                        {in_quotes(workspace)});
    wanted.ground = ground_of(workspace, executor.paths().roots());
    if (!copies) wanted.workspace = workspace;
    if (copies)
      if (auto ok = check_copy(options, workspace, executor.paths()); !ok) return ok.failure();
    if (copies) wanted.copy = copy_options(options.copy);
  }
  place->described = facts_of_shell(options.shell, options.environment);
  executor.place_ = std::move(place);
  if (!options.engine)
    if (auto ok = executor.reach(); !ok) return ok.failure();
  return executor;
}

Expected<void> PlaceExecutor::reach(const std::optional<CancelToken>& cancel) const {
  const auto link = place_->connect(cancel);
  if (!link) return link.failure();
  return {};
}

PlaceFacts PlaceExecutor::facts() const {
  const std::lock_guard<std::mutex> lock(place_->mutex);
  PlaceFacts facts = place_->link ? place_->link->facts() : PlaceFacts();
  facts.workspace = place_->workspace;
  if (place_->copy && place_->copy->workspace() != workspace())
    facts.workspace = place_->copy->workspace();
  return facts;
}

std::string PlaceExecutor::describe_place() const {
  const PlaceFacts there = facts();
  std::string machine;
  if (!there.host.empty())
    machine = concat(", % (%)", {printable(there.host), printable(there.machine)});
  const bool copied = place_->wanted.copy.is_object();
  const bool is_other = !there.workspace.empty();
  return to_utf8(concat("% Commands run on another machine%%%%",
                        {place_->described, machine,
                         copied     ? ", which has a copy of the workspace under "
                         : is_other ? ". The workspace is only there, for the file tools, too."
                                    : ", which has the workspace under the same path.",
                         !copied    ? ""
                         : is_other ? printable(there.workspace)
                                    : "the same path",
                         copied ? "." : ""}));
}

std::string PlaceExecutor::home(const Command& command, std::string_view work_dir) const {
  const auto environment = place_->settings.environment.resolve(work_dir, command.environment);
  const char* const home = environment ? value_of(environment->variables, "HOME"sv) : nullptr;
  return home ? home : facts().home;
}

Expected<void> PlaceExecutor::place(const Command& command, Admission& admission) const {
  auto request = PlaceCommand::request_for(command, admission, place_->settings);
  if (!request) return request.failure();
  if (!*request) return {};
  auto link = place_->connect(command.cancel);
  admission.result.place = link ? (*link)->name() : place_->name;
  if (!link) {
    admission.fail(link.error(), "place");
    if (link.error().system_error == ECANCELED) admission.result.outcome = Outcome::cancelled;
    return {};
  }
  std::shared_ptr<PlaceCommand> carrier;
  if (place_->wanted.copy.is_object()) {
    auto copy = place_->copy_for(*this, *link, command.cancel, admission.result.notes);
    if (!copy) {
      admission.fail(copy.error(), "workspace");
      if (copy.error().system_error == ECANCELED) admission.result.outcome = Outcome::cancelled;
      return {};
    }
    carrier = Place::carry(std::move(*link), std::move(*copy), std::move(**request), admission);
  } else {
    carrier = new_shared<PlaceCommand>(*link, std::move(**request));
  }
  for (std::string& note : place_->take_notes()) admission.result.notes.push_back(std::move(note));
  if (command.session && !admission.ending.session_text)
    admission.ending.session_text = [carrier] { return carrier->told(); };
  admission.process.carrier = std::move(carrier);
  admission.process.secrets = place_->settings.environment.secrets();
  admission.home = place_;
  return {};
}

}  // namespace v0_1
}  // namespace codeexec
