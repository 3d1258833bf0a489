// The gate: policy, work_dir, deadline, session, record.

#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "executor/gate_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "files/files.hpp"
#include "files/files_internal.hpp"
#include "json/json.hpp"
#include "paths/paths.hpp"
#include "policy/policy.hpp"
#include "policy/policy_internal.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Why a command may fail here and not elsewhere.
enum class Cause : char {
  none,
  dialect,
  semaphores,
  pseudo_terminals,
  shims,
  identity,
  signals,
  network,
  refused_connection,
  files,
  processes
};

// What programs print then, in lower case, a line each. What stands before `|` stands at most a few
// lines before the rest.
struct Symptoms {
  Cause cause;
  const char* lines;
};

// The first that is found counts. Some come from the variables of such a command, see
// offline_variables().
constexpr Symptoms symptoms[] = {
    {Cause::dialect,
     "[[: not found\n: source: not found\n: shopt: not found\n: declare: not found\n"
     ": typeset: not found\n: mapfile: not found\n: readarray: not found\n: pushd: not found\n"
     ": let: not found\n++: not found\nillegal option -o pipefail\nbad for loop variable\n"
     "syntax error: \"(\" unexpected\nredirection unexpected\nbad substitution"},
    {Cause::semaphores, "semlock|permission denied\n/dev/shm|permission denied"},
    {Cause::pseudo_terminals, "out of pty devices\npseudo-terminal|permission denied"},
    {Cause::shims, "pyenv: cannot rehash"},
    {Cause::identity, "tell me who you are"},
    {Cause::signals, "kill|operation not permitted\nkill|no such process"},
    {Cause::network,
     "could not resolve host\nname resolution\neai_again\nnetwork is unreachable\nenetunreach\n"
     "failed to connect to\nfailed to establish a new connection\nconnect eacces\n"
     "eacces|syscall: 'connect'\nurlopen error [errno 13]\nsocket|permission denied\n"
     "connecting to|permission denied\nenotcached\noffline mode\n--offline was specified\n"
     "could not be found in registry index\nnetwork was disabled\ngoproxy=off\n"
     "no matching distribution found"},
    {Cause::refused_connection, "connection refused\neconnrefused"},
    {Cause::files, "permission denied\nread-only file system"},
    {Cause::processes, "cannot fork\ncan't start new thread\nresource temporarily unavailable"},
};

// Programs that were told to be quiet, and left with these.
struct QuietFailure {
  char program[5];
  int exit_code;
};
constexpr QuietFailure quiet_failures[] = {{"wget", 4}, {"curl", 6}, {"curl", 7}};

bool shows(std::string_view text, std::string_view symptom) {
  constexpr std::size_t few_lines = 400;
  const std::size_t bar = symptom.find('|');
  const bool alone = bar == std::string_view::npos;
  const std::size_t at = text.rfind(alone ? symptom : symptom.substr(bar + 1));
  if (at == std::string_view::npos) return false;
  const std::size_t begin = at - std::min(at, few_lines);
  return alone || text.substr(begin, at - begin).find(symptom.substr(0, bar)) != text.npos;
}

// Whether a command that is held so can fail for that.
bool possible(Cause cause, const Result& told, Network network) {
  const bool confined = told.sandbox && told.sandbox->mode != SandboxMode::off;
  const auto names = [&](const std::vector<std::string>& features, std::string_view name) {
    for (const std::string& feature : features)
      if (starts_with(feature, name)) return true;
    return false;
  };
  switch (cause) {
    case Cause::dialect:
      return true;
    case Cause::network:
      return network != Network::host;
    case Cause::refused_connection:
      return network == Network::loopback;
    case Cause::identity:
      return confined || !told.container.empty() || !told.place.empty();
    case Cause::files:
      // A file that is no program is refused everywhere.
      return confined && told.exit_code != 126 && names(told.sandbox->enforced, "filesystem"sv);
    case Cause::processes:
      return confined && (names(told.sandbox->enforced, "processes"sv) ||
                          names(told.sandbox->missing, "processes"sv));
    case Cause::none:
    case Cause::semaphores:
    case Cause::pseudo_terminals:
    case Cause::shims:
    case Cause::signals:
      break;
  }
  return confined;
}

Cause cause_in(std::string_view output, const Result& told, Network network) {
  constexpr std::size_t most = std::size_t{64} << 10;  // the reason stands at the end
  std::string text(output.substr(output.size() - std::min(output.size(), most)));
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  for (const auto& [cause, lines] : symptoms) {
    std::string_view rest = possible(cause, told, network) ? lines : ""sv;
    while (!rest.empty())
      if (shows(text, take_part(rest, '\n'))) return cause;
  }
  return Cause::none;
}

Cause cause_of_failure(const ProcessResult& ended, const Result& told, Network network) {
  if (ended.succeeded()) return Cause::none;
  for (const std::string* output : {&ended.err, &ended.out})
    if (const Cause cause = cause_in(*output, told, network); cause != Cause::none) return cause;
  if (network == Network::host || !ended.err.empty()) return Cause::none;
  for (const QuietFailure& failure : quiet_failures)
    if (ended.exit_code == failure.exit_code &&
        told.command.find(failure.program) != std::string::npos)
      return Cause::network;
  return Cause::none;
}

// What is allowed, and which option allows more.
std::string advice_for(Cause cause, Network network, const std::string& writable) {
  switch (cause) {
    case Cause::none:
      break;
    case Cause::dialect:
      return "the shell is a POSIX sh, without [[, source and arrays: use `bash -c '...'`, or "
             "execute_code with language bash";
    case Cause::semaphores:
      return "/dev/shm is closed to commands here (option shared_memory)";
    case Cause::pseudo_terminals:
      return "commands can make no terminals here (option terminals)";
    case Cause::shims:
      return "pyenv's own files cannot be changed here: use the pip of a .venv in the workspace";
    case Cause::identity:
      return "no user.name and user.email are known here: set them in the repository, with `git "
             "config`";
    case Cause::signals:
      return "a command can signal only what it has started itself; kill_background_shell ends a "
             "background command";
    case Cause::refused_connection:
    case Cause::network:
      if (network != Network::loopback)
        return concat("The network is switched off for commands here (network: %)",
                      {name(network)});
      return "Each command has a 127.0.0.1 of its own here, and nothing else of the network "
             "(network: loopback): run a server and its client in one command";
    case Cause::files:
      return concat(
          "Commands can change files only below %, and read only these, the system and its tools "
          "(options allowed_paths, read_only)",
          {writable});
    case Cause::processes:
      return "the processes and threads of commands are limited here (option limit_processes), and "
             "others of the user may count, too";
  }
  return {};
}

}  // namespace

inline namespace inner {

std::string joined(const std::vector<std::string>& texts, std::string_view separator) {
  std::string result;
  for (const std::string& text : texts) append_all(result, {result.empty() ? "" : separator, text});
  return result;
}

void add_note(std::vector<std::string>& notes, const char* form, Pieces values) {
  std::string note = concat(form, values);
  if (!note.empty()) notes.push_back(std::move(note));
}

std::string note_of_left_behind(const ProcessResult& ended) {
  const bool by_itself = ended.outcome == Outcome::exited || ended.outcome == Outcome::signaled;
  if (!by_itself || ended.left_behind == 0) return {};
  return ended.left_behind == 1
             ? "1 process that the command left behind was ended"
             : concat("% processes that the command left behind were ended", {ended.left_behind});
}

}  // namespace inner

void Executor::Admission::fail(const Error& error, const char* step) {
  result.outcome = Outcome::not_started;
  result.system_error = error.system_error;
  result.step = step;
  result.message = error.message;
}

void Executor::Admission::refuse(std::string_view rule, const char* message, Pieces values,
                                 std::size_t begin, std::size_t end) {
  result.outcome = Outcome::refused;
  result.rule = rule;
  result.message = concat(message, values);
  result.rule_begin = begin;
  result.rule_end = end;
}

Executor::~Executor() = default;

std::string Executor::describe_place() const { return {}; }

Expected<void> Executor::set_up(const ExecutorOptions& options,
                                const std::vector<std::string>& secrets,
                                FilesElsewhere* elsewhere) {
  const std::pair<const char*, std::chrono::milliseconds> times[] = {
      {"timeout", options.timeout},
      {"max_timeout", options.max_timeout},
      {"kill_grace", options.kill_grace}};
  for (const auto& [field, time] : times)
    if (time.count() <= 0)
      return make_error(ErrorCode::invalid_argument, "% must be greater than 0, and not %",
                        {field, seconds_text(time)});
  if (options.timeout > options.max_timeout && options.timeout != no_limit)
    return make_error(ErrorCode::invalid_argument, "timeout (% s) is longer than max_timeout (% s)",
                      {seconds_text(options.timeout), seconds_text(options.max_timeout)});
  if (options.max_output < 1024)
    return make_error(ErrorCode::invalid_argument,
                      "max_output must be at least 1024 bytes, and not %", {options.max_output});

  auto policy = Policy::create(options.policy);
  if (!policy) return policy.failure();
  PathOptions path_options;
  path_options.roots = options.roots;
  auto paths =
      elsewhere ? PathRules::of_canonical(elsewhere->roots) : PathRules::create(path_options);
  if (!paths) return paths.failure();

  auto gate = new_shared<Gate>(options, std::move(*policy), std::move(*paths), secrets);
  gate->options.timeout = std::min(options.timeout, options.max_timeout);
  for (const Root& root : gate->paths.roots())
    // Where they are elsewhere, the kernel there sees to it.
    if (root.permission != Permission::write && !elsewhere) gate->has_read_only_roots = true;
  gate->elsewhere = elsewhere;
  if (elsewhere) {
    gate->options.workspace = elsewhere->workspace;
  } else {
    auto workspace =
        PathRules().open_work_dir(options.workspace.empty() ? "." : options.workspace, ".");
    if (!workspace) return with_prefix("workspace: ", {}, workspace.error());
    gate->options.workspace = workspace->path;
  }
  if (options.delete_guard) {
    std::vector<std::string> roots = {gate->options.workspace};
    for (const Root& root : gate->paths.roots()) roots.push_back(root.path);
    gate->delete_guard.emplace(std::move(roots));
  }
  if (gate->guards_files() && options.policy.mode == PolicyOptions::Mode::compat) {
    PolicyOptions nothing_but_syntax;
    for (const RuleInfo& rule : Policy::rules())
      nothing_but_syntax.disabled_rules.push_back(rule.name);
    auto reader = Policy::create(nothing_but_syntax);
    if (!reader) return reader.failure();
    gate->reader.emplace(std::move(*reader));
  }
  auto spill_dir = usable_directory("spill_dir", options.spill_dir, W_OK | X_OK);
  if (!spill_dir) return spill_dir.failure();
  gate->options.spill_dir = std::move(*spill_dir);
  if (auto ok = gate->set_up_files(); !ok) return ok.failure();
  if (!options.audit_file.empty()) {
    auto audit = detail::AuditFile::open(options.audit_file);
    if (!audit) return audit.failure();
    gate->audit = std::move(*audit);
  }
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) == 0) gate->host = host;
  gate_ = std::move(gate);
  return {};
}

const ExecutorOptions& Executor::options() const noexcept { return gate_->options; }
const std::string& Executor::workspace() const noexcept { return gate_->options.workspace; }

const PathRules& Executor::paths() const noexcept { return gate_->paths; }

const DeleteGuard* Executor::delete_guard() const noexcept {
  return gate_->delete_guard ? &*gate_->delete_guard : nullptr;
}

std::string Executor::home(const Command&, std::string_view) const { return {}; }

Expected<std::string> Executor::canonical(std::string_view path, std::string_view base) const {
  if (!gate_->elsewhere) return canonical_path(path, base);
  FileMessage message(FileMessage::canonical, path);
  message.extra = base;
  if (auto ok = gate_->elsewhere->ask(message); !ok) return ok.failure();
  return std::move(message.path);
}

Expected<OpenDirectory> Executor::open_work_dir(std::string_view work_dir,
                                                std::string* path) const {
  Expected<std::string> found = workspace();
  if (!work_dir.empty() || !gate_->elsewhere)
    found = canonical(work_dir.empty() ? "."sv : work_dir, workspace());
  if (found && path) *path = *found;
  return gate_->paths.open_found(std::move(found), !gate_->elsewhere);
}

// Everything that may refuse a command; nothing is changed by it. `judgement` is filled `in_full`
// when that is asked for or needed, and has nothing but the policy's verdict otherwise.
Executor::Admission Executor::screen(const Command& given, Judgement& judgement,
                                     bool in_full) const {
  const ExecutorOptions& options = gate_->options;
  Admission admission;
  if (given.session) admission.enter(given, options.workspace);
  const Command& command = admission.command(given);
  Result& result = admission.result;
  admission.time = utc_timestamp();
  result.command = command.argv.empty() ? command.script : script_of_argv(command.argv);
  result.work_dir = command.work_dir.empty() ? options.workspace : command.work_dir;

  if (!command.argv.empty() && !command.script.empty()) {
    admission.refuse("command", "a command has either a script or an argv, not both");
    return admission;
  }
  if (command.session && !command.argv.empty()) {
    admission.refuse("command", "only a script can have a session: an argv leaves nothing to it");
    return admission;
  }
  if (command.session && command.script.size() > longest_session_script) {
    admission.refuse("command", "a script in a session may have at most 1 MiB");
    return admission;
  }
  // What is relative in the script is judged for what it is where the script will run; a work_dir
  // that is none is refused below.
  std::string path;
  auto directory = open_work_dir(command.work_dir, &path);
  const std::string& work_dir = path.empty() ? options.workspace : path;
  const Policy& policy = gate_->policy;
  if (in_full || gate_->guards_files())
    judgement = command.argv.empty() ? policy.judge(command.script, work_dir)
                                     : policy.judge(command.argv, work_dir);
  else
    judgement.verdict = command.argv.empty() ? policy.check(command.script, work_dir)
                                             : policy.check(command.argv, work_dir);
  const Verdict& verdict = judgement.verdict;
  if (!verdict) {
    admission.refuse(verdict.rule, "%", {verdict.message}, verdict.begin, verdict.end);
    return admission;
  }

  result.timeout = command.timeout.value_or(command.background ? no_limit : options.timeout);
  if (result.timeout.count() <= 0) {
    admission.refuse("timeout", "timeout must be greater than 0 seconds, and not %",
                     {seconds_text(result.timeout)});
    return admission;
  }
  if (result.timeout > options.max_timeout && !command.background) {
    add_note(result.notes, "timeout reduced from % to %, the longest that is allowed here",
             {seconds_text(result.timeout), count_of_seconds(options.max_timeout)});
    result.timeout = options.max_timeout;
  }

  if (!directory && is_shortage(directory.error().system_error)) {
    admission.fail(directory.error(), "work_dir");
    return admission;
  }
  if (!directory) {
    admission.refuse(
        "work_dir", "%%",
        {directory.error().message,
         command.work_dir != given.work_dir     ? "; the session is there: give a work_dir to leave"
         : starts_with(command.work_dir, "~"sv) ? "; `~` is not expanded here"
                                                : ""});
    // What lies within the roots may be shown as it was understood; it helps against typing errors.
    if (!path.empty() && gate_->paths.permission(path) != Permission::none) result.work_dir = path;
    return admission;
  }
  admission.directory = std::move(*directory);
  result.work_dir = admission.directory.path;
  if (gate_->guards_files()) guard_files(command, judgement, admission);
  return admission;
}

Executor::Admission Executor::admit(const Command& given) const {
  const ExecutorOptions& options = gate_->options;
  Judgement judgement;
  Admission admission = screen(given, judgement, false);
  if (!admission.admitted()) return admission;
  const Command& command = admission.command(given);
  Result& result = admission.result;
  ProcessOptions& process = admission.process;
  process.work_dir = admission.directory.path;
  process.work_dir_fd = admission.directory.fd.get();
  process.borrowed_input = given.input;
  process.keep_input_open = command.keep_input_open;
  process.merge_streams = command.merge_streams;
  process.max_output = options.max_output;
  if (command.max_output) {
    process.spill_above = *command.max_output;
    if (!command.background || *command.max_output > process.max_output)
      process.max_output = *command.max_output;
  }
  process.keep_end_only = command.keep_end_only;
  process.supervised = command.background;
  process.spill_dir = options.spill_dir;
  process.hash_output = gate_->recording();
  process.spill_dir_fd = gate_->spill_directory.get();
  process.max_spill = options.max_spill;
  process.timeout = result.timeout;
  process.kill_grace = options.kill_grace;
  process.cancel = command.cancel;
  process.on_output = command.on_output;
  process.heartbeat = command.heartbeat;
  process.on_heartbeat = command.on_heartbeat;
  if (auto placed = place(command, admission); !placed) admission.fail(placed.error(), "setup");
  return admission;
}

std::string Executor::Gate::writable(const Ending& ending) const {
  std::vector<std::string> writable;
  for (const Root& root : paths.roots())
    if (root.permission == Permission::write) writable.push_back(root.path);
  if (paths.roots().empty()) writable.push_back(options.workspace);
  return joined(writable, ", "sv) + (ending.own_home ? " and in $HOME and $TMPDIR (not /tmp)" : "");
}

void Executor::Gate::conclude(const Ending& ending, const ProcessResult& ended,
                              Result& told) const {
  remember(ending.read_files, ending.created_files);
  bound_spilled(ended, told);
  add_note(told.notes, "%", {ending.late_note()});
  for (std::string limit : ended.limits_reached) {
    std::replace(limit.begin(), limit.end(), '_', ' ');
    add_note(told.notes, "the command reached its limit of %", {limit});
  }
  if (ended.outcome == Outcome::signaled)
    add_note(told.notes, "ended by %", {signal_text(ended.signal)});
  add_note(told.notes, "%", {note_of_left_behind(ended)});
  const Cause cause = cause_of_failure(ended, told, ending.network);
  const bool is_plain = has_entry("sh dash ash"sv, base_name(options.shell));
  if (cause != Cause::none && (cause != Cause::dialect || is_plain))
    add_note(told.notes, "%", {advice_for(cause, ending.network, writable(ending))});
  if (ending.session) add_note(told.notes, "%", {ending.hand_on(ended, paths)});
  told.changed_files = ending.changed_files();
  if (!told.changed_files.empty())
    add_note(
        told.notes,
        "changed during the command, and used outside of the sandbox by the user's own tools: %",
        {joined(told.changed_files, ", "sv)});
  ending.log(told, ended);
}

void Executor::Gate::mask(Result& result) const {
  if (redactor.empty()) return;
  // The offending bytes are those of the masked command from here on.
  const std::string_view command = result.command;
  const std::size_t begin = redactor.redact(command.substr(0, result.rule_begin)).size();
  const std::size_t end = redactor.redact(command.substr(0, result.rule_end)).size();
  for (std::string* text : {&result.command, &result.work_dir, &result.message})
    *text = redactor.redact(*text);
  for (std::string& note : result.notes) note = redactor.redact(note);
  for (std::string& path : result.changed_files) path = redactor.redact(path);
  result.rule_begin = std::min(begin, result.command.size());
  result.rule_end = std::min(end, result.command.size());
}

AuditRecord Executor::Gate::record_of(const Command& command, std::string time) const {
  constexpr std::size_t longest_name = 1024;
  AuditRecord record;
  if (!recording()) return record;
  record.time = std::move(time);
  record.host = host;
  record.pid = ::getpid();
  record.agent_id = options.agent_id;
  const std::pair<std::string*, const std::string*> names[] = {
      {&record.client, &command.client},
      {&record.request, &command.request},
      {&record.session_id, &command.session_id},
      {&record.shell_id, &command.shell_id},
      {&record.tool, &command.tool}};
  for (const auto& [name, given] : names) *name = utf8_prefix(*given, longest_name);
  if (!command.code.empty()) record.code = redactor.redact(command.code);
  record.input_bytes = command.input.size();
  if (!command.input.empty()) record.input_sha256 = sha256(command.input);
  record.max_output = options.audit_output;
  return record;
}

void Executor::Gate::record(Result& result, AuditRecord record) const {
  if (!recording()) return;
  record.result = &result;
  if (options.on_audit) {
    const std::lock_guard<std::recursive_mutex> lock(audit_mutex);
    options.on_audit(record);
  }
  if (!audit) return;
  add_note(result.notes, "%", {audit->append(record.to_json().dump())});
}

Result Executor::run(const Command& command) const {
  const CancellationPause pause;
  Admission admission = admit(command);
  Result& result = admission.result;
  admission.process.keep_input_open = false;  // nobody could write to it
  if (admission.admitted()) {
    static_cast<ProcessResult&>(result) = run_process(admission.process);
    if (result.outcome != Outcome::not_started) gate_->conclude(admission.ending, result, result);
  }
  gate_->mask(result);
  gate_->record(result, gate_->record_of(command, std::move(admission.time)));
  return std::move(result);
}

void Executor::record(Result& result, const Command& asked) const {
  const CancellationPause pause;
  gate_->mask(result);
  gate_->record(result, gate_->record_of(asked, utc_timestamp()));
}

std::string Executor::redact(std::string_view text) const { return gate_->redactor.redact(text); }

Result Executor::run(std::string_view script) const {
  return run(Command::shell(std::string(script)));
}

Result Executor::check(const Command& command) const {
  const CancellationPause pause;
  Judgement judgement;
  Admission admission = screen(command, judgement, false);
  gate_->mask(admission.result);
  return std::move(admission.result);
}

Judgement Executor::judge(const Command& command) const {
  const CancellationPause pause;
  Judgement judgement;
  const Admission admission = screen(command, judgement, true);
  const Result& result = admission.result;
  judgement.verdict.message = gate_->redactor.redact(judgement.verdict.message);
  if (admission.admitted() || !judgement.verdict) return judgement;
  judgement.verdict.allowed = false;
  judgement.verdict.rule = result.rule.empty() ? result.step : result.rule;
  judgement.verdict.message = gate_->redactor.redact(result.message);
  judgement.verdict.begin = result.rule_begin;
  judgement.verdict.end = result.rule_end;
  return judgement;
}

}  // namespace v0_1
}  // namespace codeexec
