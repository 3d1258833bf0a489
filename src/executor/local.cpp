// The executor of this host.
//
//   step of create()  what fails it                                      function
//   environment       a workspace or venv that cannot be used            Environment::create()
//   gate              an option of the gate                              set_up()
//   shell, skills     no program; no directory                           create()
//   homes             no folder can be made                              make_homes()
//   sandbox           grants, limits or a network that cannot be had     make_sandbox()
//   file rules        a root that is gone                                make_file_rules()
//
//   step of place()   what keeps the command from starting               function
//   home              no folder can be made                              next_home()
//   variables         a venv or variable that cannot be used             resolve()
//   skills            nothing: a note says why there is no link          link_skills(), once
//   confine           strict, and a granted path has been replaced       confine()
//   words             no POSIX shell for a session                       words_to_run()
//   descriptor 3      no pipe, or no memory for a long script            open_session_pipe()
//
// What holds: a Place does not change after create(), but for skills_linked under its mutex.
// place() runs in the thread of the command's caller, for several commands at a time.

#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "executor/gate_internal.hpp"
#include "executor/local_internal.hpp"
#include "executor/network_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "environment/environment_internal.hpp"
#include "paths/paths.hpp"
#include "paths/paths_internal.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"
#include "sandbox/listener_internal.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

const char* name(PrivateHome home) noexcept {
  switch (home) {
    case PrivateHome::off:
      return "off";
    case PrivateHome::command:
      return "command";
    case PrivateHome::executor:
      return "executor";
  }
  return "";
}

// The variables of a command in a work_dir; `home` is its private one, or null.
Expected<CommandEnvironment> LocalExecutor::Place::resolve(const Command& command,
                                                           std::string_view work_dir,
                                                           const Home* home) const {
  if (!home) return environment.resolve(work_dir, command.environment);
  Variables extra;
  if (gives_home) extra.push_back({"HOME", home->path()});
  if (gives_temporary) extra.push_back({"TMPDIR", home->temporary()});
  for (const auto& variable : command.environment) extra.push_back(variable);
  return environment.resolve(work_dir, extra);
}

inline namespace inner {

// Read by a model. A command_prefix finds its own Python, so no venv is named with one.
std::string facts_of_shell(const std::string& shell, const EnvironmentOptions& environment) {
  std::string facts = concat("The shell is %.", {to_utf8(shell)});
  const std::string prefix = to_utf8(environment.command_prefix);
  if (!prefix.empty())
    return concat("% Every command line is run with `%` before it; do not write that yourself.",
                  {facts, prefix});
  if (!environment.venv_path.empty())
    return concat("% Commands use the Python virtual environment %.",
                  {facts, to_utf8(environment.venv_path)});
  if (!environment.auto_venv) return facts;
  return facts +
         " A `.venv` in the directory of a command, or in the workspace, is used by itself.";
}

}  // namespace inner

namespace {

// Describes the shell and the limits, which hold with and without a sandbox.
std::string facts_of_place(const LocalOptions& options) {
  std::string facts = facts_of_shell(options.shell, options.environment);
  const Limits& limits = options.sandbox.limits;
  const auto bound = [&facts](std::uint64_t value, const char* before, const char* after) {
    if (value != 0) append_all(facts, {before, value, after});
  };
  bound(limits.memory, " A command may use ", " bytes of memory.");
  bound(limits.cpu_time, " Each of its processes may use ", " seconds of CPU time.");
  bound(limits.processes, " There may be ", " processes and threads.");
  bound(limits.file_size, " No file may become larger than ", " bytes.");
  bound(limits.disk, " A command may fill the disk by ", " bytes.");
  return facts;
}

}  // namespace

// The sandbox comes after the gate, whose canonical roots it grants, and after the homes, which it
// grants, too. A failure ends create() with the name of the option; homes and spill folder go away.
Expected<LocalExecutor> LocalExecutor::create(const LocalOptions& options,
                                              const ExecutorWings& wings) {
  const CancellationPause pause;
  LocalExecutor executor;
  EnvironmentOptions variables = options.environment;
  variables.workspace = options.workspace.empty() ? "." : options.workspace;
  auto environment = Environment::create(variables);
  if (!environment) return environment.failure();
  ExecutorOptions general = options;
  general.policy.enable_sudo = false;
  if (auto ok = executor.set_up(general, wings, environment->secrets()); !ok) return ok.failure();
  if (has_nul(options.shell) || !is_program(options.shell))
    return make_error(ErrorCode::invalid_argument,
                      "shell must be the path of a program, and % is not",
                      {in_quotes(options.shell)});
  auto skills_dir = usable_directory("skills_dir", options.skills_dir, R_OK | X_OK);
  if (!skills_dir) return skills_dir.failure();
  auto place = new_shared<Place>(std::move(*environment), options.shell, std::move(*skills_dir));
  if (auto ok = place->make_homes(options); !ok) return ok.failure();
  if (auto ok = place->make_sandbox(options, wings, executor); !ok) return ok.failure();
  place->supervised = options.supervised;
  place->facts = facts_of_place(options);
  std::vector<std::string> readable = options.sandbox.readable;
  if (!executor.options().spill_dir.empty()) readable.push_back(executor.options().spill_dir);
  auto file_rules = place->make_file_rules(executor.Executor::file_rules(), readable);
  if (!file_rules) return file_rules.failure();
  executor.judge_files(*file_rules, place->moved);
  place->file_rules = std::move(*file_rules);
  executor.place_ = std::move(place);
  return executor;
}

// What options ask for and the kernel cannot do is an error in strict mode, and else a gap that the
// report and a note name. Network::allow is no such gap where the network would be open: that is an
// error.
Expected<void> LocalExecutor::Place::make_sandbox(const LocalOptions& options,
                                                  const ExecutorWings& wings,
                                                  const Executor& executor) {
  std::vector<std::string> missing;
  const std::string& spill_dir =
      options.spill_dir.empty() ? executor.options().spill_dir : options.spill_dir;
  SandboxOptions wanted = options.sandbox;
  wanted.common_network = true;
  std::string no_tmp;
  if (auto ok = complete_sandbox(options, spill_dir, executor.paths().roots(), executor.workspace(),
                                 wanted, missing);
      !ok)
    return ok;
  protected_paths = wanted.protected_paths;
  hidden_paths = wanted.hidden_paths;
  if (wanted.mode != SandboxMode::off) {
    git = find_git_folders(wanted.writable, wanted.readable, options.environment.set);
    writable = wanted.writable;
    for (std::string& path : wanted.writable) path = path_as_given(path, options);
    for (const std::string& path : git.writable) wanted.writable.push_back(path);
    for (const std::string& path : git.readable) wanted.readable.push_back(path);
    for (const std::string& path : git.replaceable) wanted.replaceable.push_back(path);
    if (auto ok = check_out_of_reach(options, wanted.writable); !ok) return ok;
    if (homes) wanted.writable.push_back(homes->path());
    if (options.private_tmp && wanted.tmp.empty()) no_tmp = make_tmp(wanted);
  }
  auto made = Sandbox::create(wanted);
  if (!made) return in_words_of_roots(made.error(), options);
  sandbox = std::move(*made);
  SandboxReport known = sandbox.report();
  if (auto ok = make_later(options, wings, known); !ok) return ok;
  if (!no_tmp.empty()) known.places.push_back(concat("tmp: none (%)", {no_tmp}));
  settle_tmp(known, wanted);
  for (std::string& entry : missing) known.missing.push_back(std::move(entry));
  auto server = make_network(options, wings, wanted.network);
  if (!server) return server.failure();
  // What was not to be an open network must not become one.
  if (*server && known.network == Network::host)
    return make_error(ErrorCode::unsupported,
                      "network: 'allow' cannot be had here: %; set network to host or none",
                      {joined(known.missing, "; "sv)});
  if (known.network == Network::allow) network = std::move(*server);
  weak_variables = offline_variables(known.network);
  if (homes) add_toolchains(environment, weak_variables);
  gaps = note_of_gaps(known, wanted.network);
  report = new_shared<const SandboxReport>(std::move(known));
  return {};
}

// What runs later is looked for in what the sandbox lets commands change.
Expected<void> LocalExecutor::Place::make_later(const LocalOptions& options,
                                                const ExecutorWings& wings, SandboxReport& known) {
  if (!options.watch_files || known.mode == SandboxMode::off) return {};
  if (!wings.later || !wings.is_run_later)
    return make_error(ErrorCode::invalid_argument,
                      "watch_files: keep_later() is not among the wings that create() was given; "
                      "without it, set watch_files to false");
  std::vector<std::string> folders = writable;
  for (const std::string& path : git.own)
    if (!is_one_of(path, folders)) folders.push_back(path);
  auto begin = wings.later(options, std::move(folders));
  if (!begin) return begin.failure();
  later = std::move(*begin);
  runs_later = wings.is_run_later;
  allow_later = options.allow_later;
  known.enforced.push_back("put_back");
  return {};
}

const SandboxReport& LocalExecutor::sandbox_report() const noexcept { return *place_->report; }

// Read by a model, which plans by it. Nothing is said of files when the kernel does not hold them;
// the network is that of the report, and not that of the options.
std::string LocalExecutor::describe_place() const {
  const SandboxReport& report = *place_->report;
  if (!place_->sandboxed()) return place_->facts;
  std::string text = place_->facts;
  if (is_one_of("filesystem"sv, report.enforced)) {
    std::vector<std::string> readable;
    for (const Root& root : paths().roots())
      if (root.permission == Permission::read) readable.push_back(root.path);
    append_all(text,
               " Commands run in a sandbox. They can change files only below %%; they can read "
               "the system, its tools%% and nothing else of the user's.",
               {to_utf8(joined(place_->writable, ", "sv)), place_->about_tmp(),
                readable.empty() ? "" : ", ", to_utf8(joined(readable, ", "sv))});
    const std::string git = place_->about_git();
    append_all(text, {git.empty() ? "" : " ", git, git.empty() ? "" : "."});
    if (!place_->protected_paths.empty())
      append_all(text,
                 " What is there of % is protected: changing it fails as 'read-only' or 'busy'.",
                 {to_utf8(joined(place_->protected_paths, ", "sv))});
    if (!place_->hidden_paths.empty())
      append_all(text, " What is at % is hidden: it cannot be read.",
                 {to_utf8(joined(place_->hidden_paths, ", "sv))});
    if (place_->runs_later)
      text += " Git hooks, .vscode, .envrc and the like are put back after each command.";
  }
  if (report.network == Network::none)
    text += " The network is switched off: nothing can be downloaded.";
  text += describe_network(place_->network, "the commands");
  if (report.network == Network::loopback)
    text +=
        " The network is switched off, but for 127.0.0.1 among the commands: one can run a server "
        "in the background, and others reach it.";
  return text;
}

const char* LocalExecutor::Place::about_tmp() const {
  if (moved) return homes ? ", and their own HOME, TMPDIR and /tmp" : ", and a /tmp of their own";
  return homes ? " and their own HOME and TMPDIR (use $TMPDIR, not /tmp)" : "";
}

std::string LocalExecutor::Place::about_git() const {
  if (git.shared.empty()) return {};
  return concat(
      "In %, which their git worktrees belong to, commands can change objects, refs and logs, but "
      "not config, hooks and other worktrees: `git config` and `git worktree add` need that folder "
      "in allowed_paths",
      {to_utf8(joined(git.shared, ", "sv))});
}

// A sandbox without roots still has places where its commands may read and write.
Expected<PathRules> LocalExecutor::Place::make_file_rules(
    const PathRules& paths, const std::vector<std::string>& readable) const {
  if (!sandboxed()) return paths;
  std::vector<Root> roots = paths.roots();
  const auto add = [&roots](const std::string& path, Permission permission) {
    roots.push_back({path, permission});
    // A place that is gone, or is a root already, adds nothing.
    if (!PathRules::create(roots)) roots.pop_back();
  };
  for (const std::string& path : writable) {
    add(path, Permission::write);
    for (const std::string& name : protected_paths)
      add(concat("%/%", {path, name}), Permission::read);
  }
  if (homes) add(homes->path(), Permission::write);
  if (moved) add(moved->real, Permission::write);
  for (const std::string& path : readable) add(path, Permission::read);
  // Without any root everything would be allowed.
  if (roots.empty()) roots.push_back({"/", Permission::none});
  return PathRules::create(roots);
}

// What is hidden may be a file, come later, or be reached by a link that a command has made.
PathRules LocalExecutor::file_rules() const {
  std::vector<Root> roots = place_->file_rules.roots();
  for (const std::string& path : place_->hidden_paths) {
    roots.push_back({path, Permission::none});
    if (auto now = canonical_path(path)) roots.push_back({std::move(*now), Permission::none});
  }
  PathRules rules = PathRules::of_canonical(std::move(roots));
  if (place_->runs_later)
    rules.keep(place_->runs_later, place_->allow_later,
               [place = place_](const std::string& directory) { return place->watch(directory); });
  return rules;
}

// What runs later for another reason than its name is known by a look alone.
Function<std::string()> LocalExecutor::Place::watch(const std::string& directory) const {
  if (!lies_in_one_of(directory, writable)) return {};
  return [end = later(directory)] {
    Result result;
    end(result);
    return result.put_back.empty() ? std::string()
                                   : concat(
                                         "put back as it was, since the user's own tools run it "
                                         "later: % (allow_later)",
                                         {joined(result.put_back, ", "sv)});
  };
}

std::shared_ptr<const MovedDirectory> LocalExecutor::moved() const { return place_->moved; }

std::string LocalExecutor::home(const Command& command, std::string_view work_dir) const {
  // The home of a command that has not started is not there yet, but this is where it will be.
  const auto environment = place_->resolve(command, work_dir, place_->homes.get());
  if (!environment) return {};
  const char* const home = value_of(environment->variables, "HOME"sv);
  return home ? home : std::string();
}

std::vector<std::string> LocalExecutor::Place::port_variables(std::uint16_t port) const {
  if (port == 0 || port == proxy_port) return weak_variables;
  std::vector<std::string> variables = offline_variables(report->network, port);
  // Those of toolchains follow the others.
  for (std::size_t i = variables.size(); i < weak_variables.size(); ++i)
    variables.push_back(weak_variables[i]);
  return variables;
}

// The grants are checked for each command, as one before it may have put another directory in the
// place of one. That gives no new rights, as the kernel's rules belong to the directory of
// create(): strict mode does not start the command, and else a note says it. The watched files are
// looked at after that.
void LocalExecutor::Place::confine(Admission& admission) const {
  ProcessOptions& process = admission.process;
  Result& result = admission.result;
  result.sandbox = report;
  admission.ending.network = report->network;
  admission.ending.git = {about_git(), git.problem};
  process.sandbox = sandbox;
  process.secrets = environment.secrets();
  process.supervised = process.supervised || supervised;
  const std::uint16_t port = listen_by(network, ports, admission);
  for (const std::string& variable : port_variables(port))
    if (!value_of(process.environment, std::string_view(variable).substr(0, variable.find('='))))
      process.environment.push_back(variable);
  add_note(result.notes, "%", {gaps});
  if (!sandboxed()) return;
  if (auto same = sandbox.check_grants(); !same) {
    const Error error = with_prefix("sandbox: ", {}, same.error());
    if (report->mode == SandboxMode::strict) return admission.fail(error, "sandbox");
    result.notes.push_back(error.message);
  }
  admission.ending.later = later(admission.directory.path);
}

namespace {

// The reader lives in the Ending, to be read after the end; the writer is passed to this command
// alone.
Expected<void> open_session_pipe(Executor::Admission& admission) {
  UniqueFd told;
  if (auto ok = make_session_pipe(told, admission.script); !ok) return ok;
  admission.process.pass_fd = admission.script.get();
  admission.ending.session_text = [told = std::move(told)] { return read_session_text(told); };
  return {};
}

}  // namespace

std::shared_ptr<const Executor> LocalExecutor::copy() const {
  return new_shared<LocalExecutor>(*this);
}

// Called by admit(). What a session has unset goes after confine(), which adds weak variables.
Expected<void> LocalExecutor::place(const Command& command, Admission& admission) const {
  auto home = place_->next_home();
  if (!home) return home.failure();
  admission.home = *home;
  admission.ending.own_home = *home != nullptr;
  admission.ending.own_tmp = place_->moved != nullptr;
  auto environment = place_->resolve(command, admission.directory.path, home->get());
  if (!environment) return environment.failure();
  if (!place_->skills_dir.empty()) {
    const std::lock_guard<std::mutex> lock(place_->skills_mutex);
    if (!place_->skills_linked) {
      if (auto ok = link_skills(workspace(), place_->skills_dir); !ok)
        admission.result.notes.push_back(ok.error().message);
      place_->skills_linked = true;
    }
  }
  ProcessOptions& process = admission.process;
  process.environment = std::move(environment->variables);
  admission.result.venv = environment->venv;
  place_->confine(admission);
  if (!admission.admitted()) return {};
  auto& variables = process.environment;
  for (const std::string& name : admission.unset)
    for (auto at = variables.begin(); at != variables.end();)
      at = starts_with(*at, name + "=") ? variables.erase(at) : at + 1;

  process.argv = admission.words_to_run(command, place_->shell, environment->prefix);
  if (!admission.admitted()) return {};
  if (admission.third == Admission::Third::session) return open_session_pipe(admission);
  if (admission.third == Admission::Third::script) {
    auto script = anonymous_file(command.script);
    if (!script) return script.failure();
    admission.script = std::move(*script);
    process.pass_fd = admission.script.get();
  }
  return {};
}

}  // namespace v0_1
}  // namespace codeexec
