// The gate: policy, work_dir, deadline, session, record.

#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "executor/gate_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
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

// What programs print that could not reach the network, or that the variables of such a command
// (see offline_variables) kept from trying.
bool tells_of_no_network(std::string_view output, Network network) {
  constexpr std::size_t most = std::size_t{64} << 10;  // the reason stands at the end
  std::string text(output.substr(output.size() - std::min(output.size(), most)));
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  for (const char* words :
       {"could not resolve host", "name resolution", "eai_again", "network is unreachable",
        "failed to connect to", "socket: permission denied", "enotcached", "offline mode",
        "--offline was specified", "network was disabled", "goproxy=off",
        "no matching distribution found"})
    if (text.find(words) != std::string::npos) return true;
  return network == Network::loopback && text.find("connection refused") != std::string::npos;
}

}  // namespace

inline namespace inner {

std::string joined(const std::vector<std::string>& texts, std::string_view separator) {
  std::string result;
  for (const std::string& text : texts) result += concat({result.empty() ? "" : separator, text});
  return result;
}

}  // namespace inner

Executor::~Executor() = default;

std::string Executor::describe_place() const { return {}; }

Expected<void> Executor::set_up(const ExecutorOptions& options,
                                const std::vector<std::string>& secrets) {
  const auto positive = [](std::chrono::milliseconds time, const char* field) -> Expected<void> {
    if (time.count() > 0) return {};
    return make_error(ErrorCode::invalid_argument,
                      concat({field, " must be greater than 0, and not ", seconds_text(time)}));
  };
  if (auto ok = positive(options.timeout, "timeout"); !ok) return ok.error();
  if (auto ok = positive(options.max_timeout, "max_timeout"); !ok) return ok.error();
  if (auto ok = positive(options.kill_grace, "kill_grace"); !ok) return ok.error();
  if (options.timeout > options.max_timeout && options.timeout != no_limit)
    return make_error(
        ErrorCode::invalid_argument,
        concat({"timeout (", seconds_text(options.timeout), " s) is longer than max_timeout (",
                seconds_text(options.max_timeout), " s)"}));
  if (options.max_output < 1024)
    return make_error(ErrorCode::invalid_argument,
                      concat({"max_output must be at least 1024 bytes, and not ",
                              std::to_string(options.max_output)}));

  auto policy = Policy::create(options.policy);
  if (!policy) return policy.error();
  PathOptions path_options;
  path_options.roots = options.roots;
  auto paths = PathRules::create(path_options);
  if (!paths) return paths.error();

  auto gate = std::make_shared<Gate>(std::move(*policy), std::move(*paths));
  gate->options = options;
  gate->options.timeout = std::min(options.timeout, options.max_timeout);
  gate->redactor = Redactor(secrets);
  for (const Root& root : gate->paths.roots())
    if (root.permission != Permission::write) gate->has_read_only_roots = true;
  auto unrestricted = PathRules::create({});
  if (!unrestricted) return unrestricted.error();
  auto workspace =
      unrestricted->open_work_dir(options.workspace.empty() ? "." : options.workspace, ".");
  if (!workspace) {
    Error error = workspace.error();
    error.message = concat({"workspace: ", error.message});
    return error;
  }
  gate->options.workspace = workspace->path;
  if (options.delete_guard) {
    std::vector<std::string> roots = {workspace->path};
    for (const Root& root : gate->paths.roots()) roots.push_back(root.path);
    gate->delete_guard.emplace(std::move(roots));
  }
  if (gate->guards_files() && options.policy.mode == PolicyOptions::Mode::compat) {
    PolicyOptions nothing_but_syntax;
    for (const RuleInfo& rule : Policy::rules())
      nothing_but_syntax.disabled_rules.push_back(rule.name);
    auto reader = Policy::create(nothing_but_syntax);
    if (!reader) return reader.error();
    gate->reader.emplace(std::move(*reader));
  }
  auto spill_dir = usable_directory("spill_dir", options.spill_dir, W_OK | X_OK);
  if (!spill_dir) return spill_dir.error();
  gate->options.spill_dir = std::move(*spill_dir);
  if (!options.audit_file.empty()) {
    auto audit = open_audit_file(options.audit_file);
    if (!audit) return audit.error();
    gate->audit = std::move(*audit);
  }
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

PathRules Executor::file_rules() const { return paths(); }

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
  const auto place = command.work_dir.empty() ? options.workspace
                                              : canonical_path(command.work_dir, options.workspace);
  const std::string& work_dir = place ? *place : options.workspace;
  const Policy& policy = gate_->policy;
  if (in_full || gate_->guards_files())
    judgement = command.argv.empty() ? policy.judge(command.script, work_dir)
                                     : policy.judge(command.argv, work_dir);
  else
    judgement.verdict = command.argv.empty() ? policy.check(command.script, work_dir)
                                             : policy.check(command.argv, work_dir);
  const Verdict& verdict = judgement.verdict;
  if (!verdict) {
    admission.refuse(verdict.rule, verdict.message, verdict.begin, verdict.end);
    return admission;
  }

  result.timeout = command.timeout.value_or(command.background ? no_limit : options.timeout);
  if (result.timeout.count() <= 0) {
    admission.refuse("timeout", concat({"timeout must be greater than 0 seconds, and not ",
                                        seconds_text(result.timeout)}));
    return admission;
  }
  if (result.timeout > options.max_timeout && !command.background) {
    result.notes.push_back(
        concat({"timeout reduced from ", seconds_text(result.timeout), " to ",
                seconds_text(options.max_timeout), " seconds, the longest that is allowed here"}));
    result.timeout = options.max_timeout;
  }

  auto directory = gate_->paths.open_work_dir(command.work_dir, options.workspace);
  if (!directory && is_shortage(directory.error().system_error)) {
    admission.fail(directory.error(), "work_dir");
    return admission;
  }
  if (!directory) {
    admission.refuse("work_dir",
                     concat({directory.error().message,
                             command.work_dir == given.work_dir
                                 ? ""
                                 : "; the session is there: give a work_dir to leave"}));
    // What lies within the roots may be shown as it was understood; it helps against typing errors.
    const auto path = canonical_path(result.work_dir, options.workspace);
    if (path && gate_->paths.permission(*path) != Permission::none) result.work_dir = *path;
    return admission;
  }
  admission.directory = std::move(*directory);
  result.work_dir = admission.directory.path;
  if (gate_->guards_files()) guard_files(command, judgement, admission);
  return admission;
}

bool Executor::follow_session(const std::string& script, Admission& admission,
                              std::vector<std::string>& words) {
  const std::string shell = words.back();
  const std::size_t parts = (script.size() + longest_inline_script - 1) / longest_inline_script;
  std::string& mark = admission.ending.mark;
  mark = random_hex(16);
  std::string wrapper = detail::session_script(shell, 3, mark, parts);
  if (mark.empty())
    admission.fail(system_error(errno, "cannot get random bytes for the session"), "setup");
  else if (wrapper.empty())
    admission.refuse("command", concat({"a session needs a POSIX shell, and ", quoted(shell),
                                        " is not known as one"}));
  words.insert(words.end(), {"-c", std::move(wrapper), shell});
  for (std::size_t i = 0; i < parts; ++i)
    words.push_back(script.substr(i * longest_inline_script, longest_inline_script));
  return admission.admitted();
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
  process.input = command.input;
  process.keep_input_open = command.keep_input_open;
  process.merge_streams = command.merge_streams;
  process.max_output = options.max_output;
  process.keep_end_only = command.keep_end_only;
  process.supervised = command.background;
  process.spill_dir = options.spill_dir;
  process.timeout = result.timeout;
  process.kill_grace = options.kill_grace;
  process.cancel = command.cancel;
  process.on_output = command.on_output;
  process.heartbeat = command.heartbeat;
  process.on_heartbeat = command.on_heartbeat;
  if (auto placed = place(command, admission); !placed) admission.fail(placed.error(), "setup");
  return admission;
}

void Executor::Gate::conclude(const Ending& ending, const ProcessResult& ended,
                              Result& told) const {
  remember(ending.read_files, ending.created_files);
  for (std::string limit : ended.limits_reached) {
    std::replace(limit.begin(), limit.end(), '_', ' ');
    told.notes.push_back(concat({"the command reached its limit of ", limit}));
  }
  const Network network = told.sandbox ? told.sandbox->network : Network::host;
  if (network != Network::host && !ended.succeeded() &&
      (tells_of_no_network(ended.err, network) || tells_of_no_network(ended.out, network)))
    told.notes.push_back(
        concat({"The network is switched off for commands here (network: ", name(network), ")"}));
  if (const std::string why = ending.session ? ending.hand_on(ended) : ""; !why.empty())
    told.notes.push_back(
        concat({"the session keeps its folder and variables as they were: ", why}));
  told.changed_files = ending.changed_files();
  if (!told.changed_files.empty())
    told.notes.push_back(concat({"changed during the command, and used outside of the sandbox by ",
                                 "the user's own tools: ", joined(told.changed_files, ", ")}));
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

void Executor::Gate::record(Result& result, const Asked& asked) const {
  if (!recording()) return;
  AuditRecord record;
  record.time = asked.time;
  record.agent_id = options.agent_id;
  record.tool = asked.tool;
  if (!asked.code.empty()) record.code = redactor.redact(asked.code);
  record.result = &result;
  if (options.on_audit) options.on_audit(record);
  if (!audit) return;
  const std::string line = record.to_json().dump() + "\n";
  const ssize_t written = write_to_file(audit.get(), line);
  if (written == static_cast<ssize_t>(line.size())) return;
  const std::string reason = written < 0 ? errno_text(errno) : "it was written only in part";
  result.notes.push_back(concat(
      {"the audit record could not be written to ", quoted(options.audit_file), ": ", reason}));
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
  gate_->record(result, {command.tool, command.code, admission.time});
  return std::move(result);
}

void Executor::record(Result& result, const std::string& tool) const {
  const CancellationPause pause;
  gate_->mask(result);
  gate_->record(result, {tool, {}, utc_timestamp()});
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
