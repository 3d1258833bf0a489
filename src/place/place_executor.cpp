// The executor of a place.

#include "place/place.hpp"
#include "place/place_internal.hpp"

#include "agent/command_internal.hpp"
#include "agent/link_internal.hpp"
#include "agent/messages_internal.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "copy/copy_internal.hpp"
#include "copy/tree_internal.hpp"
#include "environment/environment_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "executor/gate_internal.hpp"
#include "executor/network_internal.hpp"
#include "files/files.hpp"
#include "files/files_internal.hpp"
#include "json/json.hpp"
#include "json/json_internal.hpp"
#include "paths/paths.hpp"
#include "paths/paths_internal.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// What is wrong whatever the other end is, before anything is started.
Expected<void> check_options(const PlaceOptions& options) {
  const auto wrong = [](const char* why) { return make_error(ErrorCode::invalid_argument, why); };
  if (options.transport.empty() == !options.engine)
    return wrong(options.engine ? "transport: an engine has its own"
                                : "transport is empty: nothing leads to a place");
  if (!options.agent.empty() && !options.engine && options.transport.back() == "--place")
    return wrong(
        "agent: is for a transport that leads to a shell, such as `sh`, and not to an agent");
  if (options.keep_alive < std::chrono::seconds(1) ||
      options.connect_timeout <= std::chrono::seconds(0))
    return wrong("keep_alive must be at least one second, and connect_timeout more than 0");
  if (options.workspace_mode == PlaceWorkspace::remote && options.delete_guard)
    return make_error(ErrorCode::unsupported,
                      "delete_guard: not for a workspace that is only in a place");
  if (!options.sandbox.hidden_paths.empty())
    return make_error(ErrorCode::unsupported, "hidden_paths: not in a place");
  for (const std::string& word : options.transport)
    if (has_nul(word)) return wrong("transport has a NUL byte in it");
  return check_without_sandbox(options.sandbox);
}

// The options of a copy, for both sides: see CopyTree.
Json copy_options(const PlaceOptions& options) {
  Json object = Json::object();
  set_member(object, "files", static_cast<unsigned long long>(options.copy_max_files));
  set_member(object, "size", static_cast<unsigned long long>(options.copy_max_bytes));
  set_member(object, "exclude", list_of(options.copy_exclude));
  set_member(object, "gitignore", options.copy_gitignore);
  return object;
}

// Whether a workspace can be copied as it is now. Roots outside of it could not be, and commands
// there would miss them; a host file that commands could change is refused as for commands here.
Expected<void> check_copy(const PlaceOptions& options, const std::string& workspace,
                          const PathRules& paths) {
  for (const std::string& pattern : options.copy_exclude)
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
  const auto tree = CopyTree::of(workspace, paths, copy_options(options));
  if (!tree) return tree.failure();
  if ((*tree)->scan()) return {};
  return make_error(ErrorCode::limit, "workspace: it cannot be copied: %",
                    {(*tree)->report.problem});
}

}  // namespace

const char* name(PlaceWorkspace workspace) noexcept {
  switch (workspace) {
    case PlaceWorkspace::shared:
      return "shared";
    case PlaceWorkspace::remote:
      return "remote";
    case PlaceWorkspace::copy:
      return "copy";
  }
  return "";
}

// What all copies of an executor share: how the other end is reached, and the connection to it.
//
//   state      event                                       next       function
//   unreached  a command, or reach()                       reached    connect() -> open()
//   unreached  the way there fails                         unreached  connect(): `failure`
//   reached    a command                                   reached    connect(): the same link
//   reached    the link is lost, a command comes           unreached  connect(), then as there
//   reached    the copy alone is lost, a command comes     unreached  connect(), then as there
//
// What holds: `mutex` is held while the other end is reached, so that one thread does it and the
// others wait for its link or its error; `failures` shows which. `copy`, if there is one, is
// of `link`. A command keeps its link by itself, so that one that is replaced ends with its last
// command. `wanted` is written before the first connection and under the mutex, and `settings`
// never changes.
struct PlaceExecutor::Target final : FilesElsewhere {
  AgentLink::Wanted wanted = {};
  CommandSettings settings;
  const PlaceWorkspace mode;
  const Network network;  // as asked for; what there is stands in the facts
  std::string described = {};
  std::mutex mutex = {};
  std::shared_ptr<PlaceEngine> engine = {};
  std::shared_ptr<AgentLink> link = {};         // goes before the place does
  std::shared_ptr<WorkspaceCopy> copy = {};     // of that link
  std::string name = {};                        // while it is not known what the engine calls it
  std::shared_ptr<CommandNetwork> served = {};  // with Network::allow
  std::vector<std::string> notes = {};          // for the next result
  std::atomic<std::uint64_t> failures{0};
  Error failure = {};

  Target(CommandSettings given, const PlaceOptions& options)
      : settings(std::move(given)),
        mode(options.workspace_mode),
        network(options.sandbox.network) {}
  Expected<void> ask(FileMessage& message) const override;
  Expected<std::string> canonical(std::string_view path, std::string_view base) const override {
    return canonical_elsewhere(*this, path, base);
  }
  static SharedError misled_by(const std::string& from);
  void want(const PlaceOptions& options);
  // Has the workspace and the roots found there.
  Expected<void> find(const PlaceOptions& options);
  // Gives the place the workspace and the roots of this host, as they are or as a copy.
  Expected<void> give(const PlaceOptions& options, const std::string& local,
                      const PathRules& paths);
  // The copy of the workspace at the other end.
  Expected<std::shared_ptr<WorkspaceCopy>> copy_to(const std::shared_ptr<AgentLink>& reached,
                                                   const PlaceExecutor& executor);
  // The command, which ends when its changes are here.
  static std::shared_ptr<AgentCommand> carry(std::shared_ptr<WorkspaceCopy> copied,
                                             StartRequest&& request, Admission& admission);

  // The connection, or a new one if it was lost. A caller that has waited while another one failed
  // gets the same error, and does not try again.
  Expected<std::shared_ptr<AgentLink>> connect(const std::optional<CancelToken>& cancel) {
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
      if (mode == PlaceWorkspace::remote && !notes.empty() && link->name() != before)
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
  Expected<std::shared_ptr<AgentLink>> open(const std::optional<CancelToken>& cancel) {
    if (engine) {
      auto way = engine->reach(cancel);
      if (!way) return way.failure();
      wanted.name = std::move(way->name);
      wanted.transport.argv = std::move(way->transport);
      set_member(wanted.hello, "lines", way->whole_lines);
      wanted.account = std::move(way->account);
    }
    wanted.transport.environment = own_variables();
    if (mode != PlaceWorkspace::copy) return AgentLink::open(wanted, cancel);
    std::string_view root_list = wanted.hello["ground"sv].as_string();
    const CopyMark mark(std::string(take_part(root_list, '\0')));
    set_member(wanted.hello, "marked", mark.is_made());
    return AgentLink::open(wanted, cancel);
  }
};

PlaceEngine::~PlaceEngine() = default;

// Asks the agent's program about a file. The answer comes from a place that may be hostile: its
// size is bounded by what was asked for, its form is checked, and a path in it must be canonical in
// form. It is const for the tools, and reaches the place like a command does.
Expected<void> PlaceExecutor::Target::ask(FileMessage& message) const {
  constexpr std::size_t most_text = std::size_t{16} << 20;  // but for the bytes of a file
  const std::size_t most = most_text + static_cast<std::size_t>(message.numbers[4]);
  ProcessOptions process;
  process.input = message.text();
  process.timeout = std::chrono::minutes(10);
  process.max_output = 0;
  // ProcessResult::out would be UTF-8.
  std::string said;
  process.on_output = [&](Stream stream, std::string_view bytes) {
    if (stream == Stream::out && said.size() < most) said += bytes;
  };
  auto reached = const_cast<Target*>(this)->connect({});
  if (!reached) return reached.failure();
  const std::string from = (*reached)->name();
  auto question = new_shared<AgentCommand>(std::move(*reached), StartRequest::question());
  const ProcessResult ended = new_run(std::move(process), std::move(question))->run();
  if (!ended.succeeded() || !message.take(said))
    return make_error(ErrorCode::io, "% has not answered about its files: %",
                      {from, ended.message});
  if (message.numbers[0] != 0) return message.error();
  if (is_canonical_form(message.path)) return {};
  return misled_by(from);
}

SharedError PlaceExecutor::Target::misled_by(const std::string& from) {
  return make_error(ErrorCode::io, "% has reported a path that is none", {from});
}

void PlaceExecutor::Target::want(const PlaceOptions& options) {
  wanted.name = options.name;
  if (options.name.empty())
    for (const std::string& word : options.transport)
      append_all(wanted.name, {wanted.name.empty() ? "" : " ", printable(word)});
  wanted.transport.argv = options.transport;
  if (!options.agent.empty())
    wanted.upload = [path = options.agent](AgentUpload& upload) -> Expected<void> {
      constexpr std::size_t longest = std::size_t{64} << 20;
      auto file = read_whole_file(path, longest, "agent"sv);
      if (!file) return file.failure();
      upload.program = std::move(*file);
      upload.script = bring_text(upload.program);
      return {};
    };
  wanted.connect_timeout = options.connect_timeout;
  wanted.hello = new_hello(options.keep_alive);
  set_member(wanted.hello, "sandbox", to_json(options.sandbox));
  set_member(wanted.hello, "connections", served != nullptr);
  name = wanted.name;
  engine = options.engine;
  described = facts_of_shell(options.shell, options.environment);
}

// A workspace that is there too is proved by a nonce with each connection; one that is copied is
// scanned now, so that a wrong pattern or one file too many is an error of create() and not of a
// command.
Expected<void> PlaceExecutor::Target::give(const PlaceOptions& options, const std::string& local,
                                           const PathRules& paths) {
  if (!is_utf8(local))
    return make_error(ErrorCode::invalid_argument, "workspace: % is not UTF-8", {in_quotes(local)});
  set_member(wanted.hello, "ground", root_list_of(local, paths.roots()));
  if (mode == PlaceWorkspace::shared) {
    wanted.workspace = local;
    return {};
  }
  set_member(wanted.hello, "copy", copy_options(options));
  return check_copy(options, local, paths);
}

// Reaches the other end once to look the workspace and the roots up, and keeps what it says: later
// connections ask for exactly that, as the same names could lead elsewhere by then. A root that
// commands may not change must be held by the sandbox there, or lie in none that they may.
Expected<void> PlaceExecutor::Target::find(const PlaceOptions& options) {
  set_member(wanted.hello, "remote", true);
  if (options.environment.command_prefix.empty()) {
    set_member(wanted.hello, "venv", options.environment.venv_path);
    set_member(wanted.hello, "auto_venv", options.environment.auto_venv);
  }
  set_member(wanted.hello, "ground",
             root_list_of(options.workspace.empty() ? "." : options.workspace, options.roots));
  const auto reached = connect({});
  if (!reached) return reached.failure();
  const AgentLink& found = **reached;
  set_member(wanted.hello, "ground", found.root_list());
  set_member(wanted.hello, "found", true);
  roots = roots_in(found.root_list(), workspace);
  if (!is_canonical_form(workspace) || roots.empty() != options.roots.empty())
    return misled_by(found.name());
  const bool confined = is_one_of("filesystem"sv, found.facts().sandbox.enforced);
  for (const Root& root : roots) {
    if (!is_canonical_form(root.path)) return misled_by(found.name());
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

// One copy for each link. It is not kept if the link was replaced meanwhile: the command that asked
// for it has it alone then, and ends with that link.
Expected<std::shared_ptr<WorkspaceCopy>> PlaceExecutor::Target::copy_to(
    const std::shared_ptr<AgentLink>& reached, const PlaceExecutor& executor) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (copy && copy->link() == reached) return copy;
  auto made =
      WorkspaceCopy::open(reached, executor.workspace(), executor.paths(), wanted.hello["copy"sv]);
  if (made && link == reached) copy = *made;
  return made;
}

// Paths of the workspace are those of the copy for the command: where it starts, its venv, and the
// values of variables that begin with it. What its session leaves is translated back, as the next
// command may be with another copy.
std::shared_ptr<AgentCommand> PlaceExecutor::Target::carry(std::shared_ptr<WorkspaceCopy> copied,
                                                           StartRequest&& request,
                                                           Admission& admission) {
  copied->translate(request.work_dir);
  copied->translate(request.venv);
  for (std::string& variable : request.set) {
    const std::size_t value = variable.find('=') + 1;
    std::string path = variable.substr(value);
    copied->translate(path);
    variable.replace(value, std::string::npos, path);
  }
  const auto remote = new_shared<CopiedCommand>(std::move(request), copied);
  admission.ending.late_note = [remote] { return remote->note(); };
  admission.ending.session_text = [remote, copied, mark = admission.ending.mark] {
    return copied->with_local_folder(remote->session_data(), mark);
  };
  return remote;
}

// BatchMode, as no one can answer a question here; `--` keeps a host from being read as an option.
Expected<std::vector<std::string>> ssh_transport(const std::string& host,
                                                 const std::string& agent) {
  if (host.empty() || host[0] == '-' || has_nul(host))
    return make_error(ErrorCode::invalid_argument,
                      "place_host must be what ssh calls a machine, and not %", {in_quotes(host)});
  auto words = words_of({"ssh", "-T", "-o", "BatchMode=yes", "--", host});
  if (agent.empty())
    add_words(words, {"sh"});
  else
    add_words(words, {shell_word(agent), "--place"});
  return words;
}

// The order: what needs no other end; the proxy; a workspace that is only there, for which the
// other end is reached; the gate, which needs its paths; and last the connection, so that a command
// finds it made. With an engine, that waits for the first command: a place that is not used costs
// nothing.
Expected<PlaceExecutor> PlaceExecutor::create(const PlaceOptions& options,
                                              const ExecutorWings& wings) {
  const CancellationPause pause;
  if (auto ok = check_options(options); !ok) return ok.failure();
  const bool remote = options.workspace_mode == PlaceWorkspace::remote;
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
  PlaceExecutor executor;
  executor.target_ = new_shared<Target>(
      CommandSettings(std::move(*environment), options.shell, variables.set), options);
  Target& target = *executor.target_;
  auto server = make_network(options, wings, options.sandbox.network);
  if (!server) return server.failure();
  target.served = std::move(*server);
  target.want(options);
  if (remote)
    if (auto ok = target.find(options); !ok) return ok.failure();
  if (auto ok = executor.set_up(options, wings, target.settings.environment.secrets(),
                                remote ? &target : nullptr);
      !ok)
    return ok.failure();
  if (!remote)
    if (auto ok = target.give(options, executor.workspace(), executor.paths()); !ok)
      return ok.failure();
  if (!options.engine)
    if (auto ok = executor.reach(); !ok) return ok.failure();
  return executor;
}

Expected<void> PlaceExecutor::reach(const std::optional<CancelToken>& cancel) const {
  const auto link = target_->connect(cancel);
  if (!link) return link.failure();
  return {};
}

// Of a lost link, too, until the next command replaces it.
PlaceFacts PlaceExecutor::facts() const {
  const std::lock_guard<std::mutex> lock(target_->mutex);
  PlaceFacts facts = target_->link ? target_->link->facts() : PlaceFacts();
  facts.workspace = target_->workspace;
  if (target_->copy && target_->copy->workspace() != workspace())
    facts.workspace = target_->copy->workspace();
  return facts;
}

std::string PlaceExecutor::describe_place() const {
  const PlaceFacts there = facts();
  std::string machine;
  if (!there.host.empty())
    machine = concat(", % (%)", {printable(there.host), printable(there.machine)});
  const auto served = there.sandbox.network == Network::allow ? target_->served : nullptr;
  const bool copied = target_->mode == PlaceWorkspace::copy;
  const bool is_other = !there.workspace.empty();
  return to_utf8(concat("% Commands run on another machine%%%%",
                        {target_->described, machine,
                         copied     ? ", which has a copy of the workspace under "
                         : is_other ? ". The workspace is only there, for the file tools, too."
                                    : ", which has the workspace under the same path.",
                         !copied    ? ""
                         : is_other ? printable(there.workspace)
                                    : "the same path",
                         copied ? "." : ""}) +
                 describe_network(served, "one command"));
}

std::string PlaceExecutor::home(const Command& command, std::string_view work_dir) const {
  const auto environment = target_->settings.environment.resolve(work_dir, command.environment);
  const char* const home = environment ? value_of(environment->variables, "HOME"sv) : nullptr;
  return home ? home : facts().home;
}

std::shared_ptr<const Executor> PlaceExecutor::copy() const {
  return new_shared<PlaceExecutor>(*this);
}

// Called by the gate, once the command is allowed. What is wrong with the other end is a Result:
// the step `place` when it is not reached, `workspace` when the copy cannot be brought up to date.
// A copy that was lost in between is made anew, once; a second loss would be a place that cannot
// hold one.
Expected<void> PlaceExecutor::place(const Command& command, Admission& admission) const {
  StartRequest request;
  auto ok = AgentCommand::request_for(command, admission, target_->settings, request);
  if (!ok || !admission.admitted()) return ok;
  const auto fail = [&admission](const Error& error, const char* step) {
    admission.fail(error, step);
    return Expected<void>();
  };
  std::shared_ptr<AgentLink> reached;
  std::shared_ptr<AgentCommand> remote;
  for (bool again = false;; again = true) {
    auto link = target_->connect(command.cancel);
    admission.result.place = link ? (*link)->name() : target_->name;
    if (!link) return fail(link.error(), "place");
    reached = std::move(*link);
    if (target_->mode != PlaceWorkspace::copy) {
      remote = new_shared<AgentCommand>(reached, std::move(request));
      break;
    }
    auto copy = target_->copy_to(reached, *this);
    if (!copy) return fail(copy.error(), "workspace");
    const auto sent = (*copy)->send(command.cancel, admission.result.notes);
    if (sent) {
      remote = Target::carry(std::move(*copy), std::move(request), admission);
      break;
    }
    if (again || !(*copy)->is_lost()) return fail(sent.error(), "workspace");
  }
  add_note(admission.result.notes, "%", {note_of_gaps(reached->facts().sandbox, target_->network)});
  for (std::string& note : target_->take_notes()) admission.result.notes.push_back(std::move(note));
  if (command.session && !admission.ending.session_text)
    admission.ending.session_text = [remote] { return remote->session_data(); };
  remote->connect = connect_by(target_->served, admission);
  admission.remote = std::move(remote);
  admission.process.secrets = target_->settings.environment.secrets();
  admission.home = target_;
  return {};
}

}  // namespace v0_1
}  // namespace codeexec
