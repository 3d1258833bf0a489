// The gate: the checks that every command passes, its end and its record.
//
// A command takes these steps in the thread that calls run() or start(). The first refusal or
// failure stands, and the steps after it are left out, but for mask and record.
//
//   step      refuses or fails as                 function, and what it does besides
//   session   -                                   enter(): takes folder and variables
//   form      rule "command"                      check_form()
//   policy    a rule of the guard, or a question  check_policy()
//   deadline  rule "timeout"                      check_timeout(): cuts it to max_timeout
//   work_dir  rule "work_dir"                     check_work_dir(): keeps the folder open
//   files     rule "read-only", "delete-guard"    check_files(): if a root or option asks for it
//   approval  the rule that asks, or cancelled    ask(): if there is a question
//   slot      cancelled, or not started           take_slot(): if there is a max_concurrent
//   place     a step, or rule "command"           place(): home, variables, sandbox, argv
//   start     a step                              run() or launch() of the process
//   end       -                                   conclude(): notes, session, changed files
//   mask      -                                   mask(): secrets in the texts of the result
//   record    a note in the result                record(): of each command, refused or not
//
// What holds: a command is admitted as long as its rule and its message are both empty. check() and
// judge() take the steps to `files` and mask what they say; they ask no person, change nothing and
// are not recorded. After start() the steps from `end` on are taken by the event thread.

#include "executor/execution_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "executor/gate_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "files/files.hpp"
#include "paths/elsewhere_internal.hpp"
#include "paths/paths.hpp"
#include "paths/paths_internal.hpp"
#include "policy/policy.hpp"
#include "process/child_internal.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

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

void bound_timeout(std::chrono::milliseconds& timeout, std::chrono::milliseconds most,
                   std::vector<std::string>& notes) {
  if (timeout <= most) return;
  add_note(notes, "timeout reduced from % to %, the longest that is allowed here",
           {seconds_text(timeout), count_of_seconds(most)});
  timeout = most;
}

std::string note_of_left_behind(const ProcessResult& ended) {
  const bool by_itself = ended.outcome == Outcome::exited || ended.outcome == Outcome::signaled;
  if (!by_itself || ended.left_behind == 0) return {};
  return ended.left_behind == 1
             ? "1 process that the command left behind was ended"
             : concat("% processes that the command left behind were ended", {ended.left_behind});
}

}  // namespace inner

// What the command needs cannot be had, which says nothing about the command. ECANCELED alone makes
// it a cancelled one.
void Executor::Admission::fail(const Error& error, const char* step) {
  result.outcome = error.system_error == ECANCELED ? Outcome::cancelled : Outcome::not_started;
  result.system_error = error.system_error;
  result.step = step;
  result.message = error.message;
}

// Whatever was found before: it does not run.
void Executor::Admission::fail_for_memory() {
  result.rule.clear();
  fail_without_memory(result);
}

// A rule refuses the command. `begin` and `end` are bytes of the command as it was given: mask()
// moves them.
void Executor::Admission::reject(std::string_view rule, const char* message, Pieces values,
                                 std::size_t begin, std::size_t end) {
  result.outcome = Outcome::refused;
  result.rule = rule;
  result.message = concat(message, values);
  result.rule_begin = begin;
  result.rule_end = end;
}

Executor::~Executor() = default;

std::string Executor::describe_place() const { return {}; }

namespace {

// Called before anything is made. The error names the option.
Expected<void> check_general_options(const ExecutorOptions& options) {
  const std::pair<const char*, std::chrono::milliseconds> times[] = {
      {"timeout", options.timeout},
      {"max_timeout", options.max_timeout},
      {"idle_timeout", options.idle_timeout},
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
  if (options.max_spill == 0 || options.max_spill_total == 0)
    return make_error(ErrorCode::invalid_argument,
                      "%: 0 would keep no file: give a size, or unbounded",
                      {options.max_spill == 0 ? "max_spill" : "max_spill_total"});
  return {};
}

// For executors without a guard: nothing is judged, so no option may ask for it.
class OpenGuard final : public Guard {
 public:
  Judgement judge(std::string_view, std::string_view, bool) const override { return {}; }
  bool can_read(std::string_view, std::string_view) const override { return true; }
};

// The guard that judges the commands: a policy, the program's own guard, or one that lets all pass.
// Without a policy an option that needs one is an error, so that no limit is dropped in silence.
// The program's own guard can serve read-only roots and the delete guard.
Expected<std::shared_ptr<const Guard>> guard_of(const ExecutorOptions& options,
                                                const ExecutorWings& wings) {
  const PolicyOptions& policy = options.policy;
  if (wings.guard && !wings.own_guard) return wings.guard(policy);
  const bool reads_only =
      std::any_of(options.roots.begin(), options.roots.end(),
                  [](const Root& root) { return root.permission != Permission::write; });
  const std::pair<const char*, bool> asked[] = {
      {"compat", policy.compat},
      {"compat_lists", policy.compat_lists},
      {"allowed_commands", !policy.allowed.empty()},
      {"allow_usual", policy.allow_usual},
      {"blocked_commands", !policy.blocked.empty()},
      {"disabled_rules", !policy.disabled_rules.empty()},
      {"ask_commands", !policy.ask_commands.empty()},
      {"ask_rules", !policy.ask_rules.empty()},
      {"reasons", !policy.reasons.empty()},
      {"must_match", !policy.must_match.empty()},
      {"must_not_match", !policy.must_not_match.empty()},
      {"max_command_bytes", policy.max_command_bytes != PolicyOptions().max_command_bytes},
      {"delete_guard", options.delete_guard && !wings.own_guard},
      {"roots that are not writable", reads_only && !wings.own_guard}};
  for (const auto& [option, is_set] : asked)
    if (is_set)
      return make_error(ErrorCode::invalid_argument,
                        "%: this executor was made without a policy, which it needs", {option});
  if (wings.own_guard) return wings.own_guard;
  return std::shared_ptr<const Guard>(new_shared<const OpenGuard>());
}

}  // namespace

// Called once by create() of each kind of executor, before there is a copy. If a step fails, gate_
// stays null and no executor is made. The audit file comes last, as opening it makes it.
Expected<void> Executor::set_up(const ExecutorOptions& options, const ExecutorWings& wings,
                                const std::vector<std::string>& secrets,
                                FilesElsewhere* elsewhere) {
  if (auto ok = check_general_options(options); !ok) return ok;
  auto guard = guard_of(options, wings);
  if (!guard) return guard.failure();
  auto paths =
      elsewhere ? PathRules::of_canonical(elsewhere->roots) : PathRules::create(options.roots);
  if (!paths) return paths.failure();

  auto gate = new_shared<Gate>(options, std::move(*guard), std::move(*paths), secrets);
  gate->options.timeout = std::min(options.timeout, options.max_timeout);
  gate->elsewhere = elsewhere;
  if (auto ok = gate->find_workspace(); !ok) return ok;
  if (auto ok = gate->set_up_guards(); !ok) return ok;
  if (auto ok = gate->set_up_files(); !ok) return ok;
  if (auto ok = gate->set_up_audit(wings); !ok) return ok;
  gate->no_memory = Execution::State::of_no_memory();
  gate_ = std::move(gate);
  return {};
}

// Keeps the canonical path, so that a later chdir() of the program does not move the workspace.
Expected<void> Executor::Gate::find_workspace() {
  std::string& workspace = options.workspace;
  if (elsewhere) {
    workspace = elsewhere->workspace;
    return {};
  }
  const std::string given = workspace.empty() ? "." : workspace;
  const auto found = PathRules().open_work_dir(given, ".", &workspace);
  if (!found) return with_prefix("workspace: ", {}, found.error());
  return {};
}

Expected<void> Executor::Gate::set_up_guards() {
  std::vector<std::string> roots = {options.workspace};
  for (const Root& root : paths.roots()) {
    // If the files are elsewhere, the kernel there enforces it.
    if (root.permission != Permission::write && !elsewhere) has_read_only_roots = true;
    roots.push_back(root.path);
  }
  if (options.delete_guard) delete_guard.emplace(std::move(roots));
  return {};
}

// A record without the name of the host is still one: a failure of gethostname() is passed over.
Expected<void> Executor::Gate::set_up_audit(const ExecutorWings& wings) {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) == 0) host = name;
  const bool has_file = !options.audit_file.empty();
  if (!options.audit_key.empty()) {
    if (!has_file)
      return make_error(ErrorCode::invalid_argument, "audit_key: it needs an audit_file");
    const auto key = canonical_path(options.audit_key);
    if (!key) return with_prefix("audit_key: ", {}, key.error());
    if (paths.restricted() ? paths.permission(*key) != Permission::none
                           : codeexec::is_within(*key, options.workspace))
      return make_error(ErrorCode::invalid_argument,
                        "audit_key: % lies where commands may read: choose a place outside",
                        {in_quotes(*key)});
  }
  if (!has_file && options.audit_syslog.empty()) return {};
  if (!wings.audit)
    return make_error(ErrorCode::invalid_argument,
                      "audit_%: this executor was made without an audit log, which it needs",
                      {has_file ? "file" : "syslog"});
  auto opened = wings.audit(options);
  if (!opened) return opened.failure();
  audit = std::move(*opened);
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
  return gate_->elsewhere->canonical(path, base);
}

const FilesElsewhere* Executor::elsewhere() const noexcept { return gate_->elsewhere; }

std::shared_ptr<const MovedDirectory> Executor::moved() const { return {}; }

// Called for each command, and by tools. Elsewhere no directory is opened, and an empty work_dir is
// the workspace without a look at the other side.
Expected<UniqueFd> Executor::open_work_dir(std::string_view work_dir, std::string* path) const {
  if (const auto other = moved()) {
    const std::string here = other->here(work_dir, workspace());
    if (!here.empty()) {
      if (path) *path = other->as_seen(here);
      auto opened = file_rules().open_found(here);
      return opened ? std::move(opened) : other->as_seen(opened.error());
    }
  }
  Expected<std::string> found = workspace();
  if (!work_dir.empty() || !gate_->elsewhere)
    found = canonical(work_dir.empty() ? "."sv : work_dir, workspace());
  if (found && path) *path = *found;
  return gate_->paths.open_found(found, !gate_->elsewhere);
}

// Refuses mistakes of the caller, whatever the text of the command is.
bool Executor::Admission::check_form(const Command& command) {
  const char* message = nullptr;
  if (!command.argv.empty() && !command.script.empty())
    message = "a command has either a script or an argv, not both";
  else if (command.session && !command.argv.empty())
    message = "only a script can have a session: an argv leaves nothing to it";
  else if (command.session && command.script.size() > longest_session_script)
    message = "a script in a session may have at most 1 MiB";
  if (message) reject("command", message);
  return !message;
}

// A question is no refusal yet: the checks after this may refuse the command, and then no person is
// asked. The files of the command are looked for only if a check or the caller needs them.
bool Executor::Admission::check_policy(const Gate& gate, const Command& command,
                                       const std::string& work_dir, Judgement& judgement,
                                       bool in_full) {
  judgement = guard_of(gate)->judge_reading(result.command, command.input, work_dir,
                                            in_full || gate.guards_files(), command.environment);
  Verdict& verdict = judgement.verdict;
  std::string typed;
  if (verdict && command.terminal && !command.input.empty())
    verdict = guard_of(gate)->judge_typed(result.command, work_dir, true, command.input, typed);
  if (verdict.must_ask)
    question = verdict;
  else if (!verdict)
    reject(verdict.rule, "%", {verdict.message}, verdict.begin, verdict.end);
  if (!admitted() || command.code.empty() || command.argv.empty()) return admitted();
  // The last word is the file that the code is in.
  const Verdict of_code =
      guard_of(gate)
          ->judge_code({command.argv.begin(), command.argv.end() - 1}, command.code, work_dir)
          .verdict;
  if (of_code) return true;
  if (!of_code.must_ask)
    reject(of_code.rule, "%", {of_code.message}, 0, result.command.size());
  else if (!question.must_ask)
    question = of_code;
  question.end = std::min(question.end, result.command.size());
  question.begin = std::min(question.begin, question.end);
  return admitted();
}

// Takes the times of the command or else the executor's. A background command has only those that
// it brings, and max_timeout does not bound it.
bool Executor::Admission::check_timeout(const ExecutorOptions& options, const Command& command) {
  result.timeout = command.timeout.value_or(command.background ? no_limit : options.timeout);
  result.idle_timeout =
      command.idle_timeout.value_or(command.background ? no_limit : options.idle_timeout);
  const bool idle = result.timeout.count() > 0;  // if one of them is wrong
  const auto shorter = idle ? result.idle_timeout : result.timeout;
  if (shorter.count() <= 0) {
    reject("timeout", "%timeout must be greater than 0 seconds, and not %",
           {idle ? "idle_" : "", seconds_text(shorter)});
    return false;
  }
  if (!command.background) bound_timeout(result.timeout, options.max_timeout, result.notes);
  return true;
}

// `path` is the canonical path, when that is known. A shortage of descriptors or memory is no
// refusal: the same command may pass when it is asked for again.
bool Executor::Admission::check_work_dir(const Gate& gate, const Command& command,
                                         bool in_session_folder, Expected<UniqueFd>&& found,
                                         const std::string& path) {
  if (found) {
    directory = OpenDirectory{path, found.take()};
    result.work_dir = path;
    return true;
  }
  if (is_shortage(found.error().system_error)) {
    this->fail(found.error(), "work_dir");
    return false;
  }
  reject(
      "work_dir", "%%",
      {found.error().message, in_session_folder ? "; the session is there: give a work_dir to leave"
                              : starts_with(command.work_dir, "~"sv) ? "; `~` is not expanded here"
                                                                     : ""});
  // The canonical path helps against typing errors. Outside of the roots it is not shown.
  if (!path.empty() && gate.paths.permission(path) != Permission::none) result.work_dir = path;
  return false;
}

// All that may refuse a command by what is known of it. The text of the command is hostile: it is
// read, and nothing of it is run.
void Executor::Admission::screen(const Executor& executor, const Command& given,
                                 Judgement& judgement, bool in_full) {
  const Gate& gate = *executor.gate_;
  const ExecutorOptions& options = gate.options;
  if (given.session) enter(given, gate);
  const Command& command = this->command(given);
  time = utc_timestamp();
  result.command = command.argv.empty() ? command.script : script_of_argv(command.argv);
  result.work_dir = command.work_dir.empty() ? options.workspace : command.work_dir;
  if (!check_form(command)) return;
  // Relative paths in the script are judged for where it will run. A work_dir that cannot be used
  // is refused later, as the policy comes first.
  std::string path;
  auto found = executor.open_work_dir(command.work_dir, &path);
  const std::string& work_dir = path.empty() ? options.workspace : path;
  const bool in_session_folder = command.work_dir != given.work_dir;
  if (check_policy(gate, command, work_dir, judgement, in_full) &&
      check_timeout(options, command) &&
      check_work_dir(gate, command, in_session_folder, std::move(found), path) &&
      gate.guards_files())
    check_files(executor, command, judgement);
}

// The steps after screen() may wait: for a person, for a slot, for a place that has to be reached.
// They come in this order, so that no person is asked about a command that a check refuses, and a
// command that waits for a person holds no slot.
void Executor::Admission::decide(const Executor& executor, const Command& given) {
  Judgement judgement;
  screen(executor, given, judgement, false);
  if (admitted() && question.must_ask) ask(*executor.gate_, this->command(given));
}

void Executor::Admission::prepare(const Executor& executor, const Command& given) {
  const Gate& gate = *executor.gate_;
  const ExecutorOptions& options = gate.options;
  const Command& command = this->command(given);
  process.work_dir = directory.path;
  process.work_dir_fd = directory.fd.get();
  process.borrowed_input = given.input;
  process.keep_input_open = command.keep_input_open;
  process.merge_streams = command.merge_streams || command.terminal;
  process.terminal = command.terminal;
  process.max_output = options.max_output;
  if (command.max_output) {
    process.spill_above = command.spill_above.value_or(*command.max_output);
    if (!command.background || *command.max_output > process.max_output)
      process.max_output = *command.max_output;
  }
  process.keep_end_only = command.keep_end_only;
  process.supervised = command.background;
  process.spill_dir = options.spill_dir;
  process.hash_output = gate.recording();
  process.spill_dir_fd = gate.spill_directory.get();
  process.max_spill = options.max_spill;
  process.timeout = result.timeout;
  process.idle_timeout = result.idle_timeout;
  process.kill_grace = options.kill_grace;
  process.cancel = command.cancel;
  process.on_output = command.on_output;
  process.heartbeat = command.heartbeat;
  process.on_heartbeat = command.on_heartbeat;
  process.post = options.post;
  if (auto placed = executor.place(command, *this); !placed) this->fail(placed.error(), "setup");
}

// The slot is owned by the Ending, so it is given back also when the command does not start.
void Executor::Gate::own_slot(Admission& admission) const {
  admission.ending.slot =
      owner_of(&slots, [](void* taken) { static_cast<Slots*>(taken)->give_back(); });
}

void Executor::Gate::take_slot(const Command& command, Admission& admission) const {
  if (!needs_slot(command)) return;
  const auto until = in_event_thread() ? Clock::now() : later(Clock::now(), command.max_wait);
  if (slots.take(options.max_concurrent, command.cancel, until)) return own_slot(admission);
  reject_waiting(command, command.cancel && command.cancel->cancelled(), admission);
}

void Executor::Gate::reject_waiting(const Command& command, bool is_cancelled,
                                    Admission& admission) const {
  Error error = cancelled_before_start();
  if (!is_cancelled) {
    error.system_error = 0;
    error.message =
        concat("as many commands run as may run at a time (%), %",
               {options.max_concurrent,
                in_event_thread()
                    ? std::string("and run() cannot wait for their end in a callback "
                                  "of a started command: use start()")
                    : concat("and none has ended within % s", {seconds_text(command.max_wait)})});
  }
  admission.fail(error, step_name(SpawnStep::setup));
}

Result Executor::Gate::not_started_without_memory(const Command& command) const {
  Result result;
  fail_without_memory(result);
  std::string time;
  (void)enough_memory([&] {
    time = utc_timestamp();
    result.command = command.script;
  });
  close(result, command, std::move(time));
  return result;
}

// The slot is given back before the record is made, so that the next command does not wait for the
// log or for on_audit.
Result Executor::run(const Command& command) const {
  const CancellationPause pause;
  Admission admission;
  std::shared_ptr<Process::State> run;
  const auto make = [&] {
    admission.decide(*this, command);
    if (admission.admitted()) gate_->take_slot(command, admission);
    if (admission.admitted()) admission.prepare(*this, command);
    admission.process.keep_input_open = false;  // there is no handle to write to it
    if (admission.admitted())
      run = new_run(std::move(admission.process), std::move(admission.remote));
  };
  Result& result = admission.result;
  if (!enough_memory(make)) {
    admission.fail_for_memory();
  } else if (run) {
    static_cast<ProcessResult&>(result) = run->run();
    run.reset();
    if (result.outcome != Outcome::not_started) gate_->conclude(admission.ending, result, result);
  }
  admission.ending.slot.reset();
  gate_->close(result, command, std::move(admission.time));
  return std::move(result);
}

// For what tools do without a command. They have made their checks before.
void Executor::record(Result& result, const Command& asked) const {
  const CancellationPause pause;
  gate_->close(result, asked, utc_timestamp());
}

std::string Executor::redact(std::string_view text) const { return gate_->redactor.redact(text); }

Result Executor::run(std::string_view script) const {
  Command command;
  const bool has_memory = enough_memory([&] { command.script = std::string(script); });
  return has_memory ? run(command) : gate_->not_started_without_memory(command);
}

Result Executor::check(const Command& command) const {
  const CancellationPause pause;
  Judgement judgement;
  Admission admission;
  admission.screen(*this, command, judgement, false);
  if (admission.admitted() && admission.question.must_ask && !gate_->who_asks(command))
    admission.reject_unasked();
  gate_->mask(admission.result);
  return std::move(admission.result);
}

// A refusal or failure of a later check takes the place of a verdict that would let the command run
// or ask.
Judgement Executor::judge(const Command& command) const {
  const CancellationPause pause;
  Judgement judgement;
  Admission admission;
  admission.screen(*this, command, judgement, true);
  const Result& result = admission.result;
  judgement.verdict.message = gate_->redactor.redact(judgement.verdict.message);
  if (admission.admitted() || !(judgement.verdict || judgement.verdict.must_ask)) return judgement;
  judgement.verdict.allowed = false;
  judgement.verdict.must_ask = false;
  judgement.verdict.rule = result.rule.empty() ? result.step : result.rule;
  judgement.verdict.message = gate_->redactor.redact(result.message);
  judgement.verdict.begin = result.rule_begin;
  judgement.verdict.end = result.rule_end;
  return judgement;
}

}  // namespace v0_1
}  // namespace codeexec
