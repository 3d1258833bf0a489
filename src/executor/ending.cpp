// The last steps of the gate: the end of a command, its secrets, its record.
//
//   step      what becomes of it without memory                              function
//   end       notes may be missing, as the message says                      conclude()
//   mask      no text is left but `out of memory`                            mask()
//   record    there is none, as the message says; an audit file counts it    record()
//
// What holds: each step is taken, whatever became of those before, and throws nothing for a lack of
// memory.

#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "executor/gate_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "paths/paths.hpp"
#include "process/process.hpp"

namespace codeexec {
inline namespace v0_1 {

// The folders that commands may change, for the advice on a failure.
std::string Executor::Gate::writable(const Ending& ending) const {
  std::vector<std::string> writable;
  for (const Root& root : paths.roots())
    if (root.permission == Permission::write) writable.push_back(root.path);
  if (paths.roots().empty()) writable.push_back(options.workspace);
  const char* own = ending.own_tmp ? " and in /tmp" : "";
  if (ending.own_home)
    own = ending.own_tmp ? ", in $HOME, $TMPDIR and /tmp" : " and in $HOME and $TMPDIR (not /tmp)";
  return joined(writable, ", "sv) + own;
}

namespace {

void add_notes_on_end(const ProcessResult& ended, std::vector<std::string>& notes) {
  for (std::string limit : ended.limits_reached) {
    std::replace(limit.begin(), limit.end(), '_', ' ');
    add_note(notes, "the command reached its limit of %", {limit});
  }
  if (ended.outcome == Outcome::signaled)
    add_note(notes, "ended by %", {signal_text(ended.signal)});
  add_note(notes, "%", {note_of_left_behind(ended)});
}

}  // namespace

// Called once for each command whose start did not fail: by the thread of run(), or by the delivery
// thread after start(), where it holds up the other commands of that thread. The log comes last,
// with all notes in it.
void Executor::Gate::conclude(const Ending& ending, const ProcessResult& ended,
                              Result& told) const {
  bool has_all = true;
  const auto step = [&](FunctionRef<void()> work) { has_all = enough_memory(work) && has_all; };
  step([&] { remember(ending.read_files, ending.created_files); });
  step([&] { bound_spilled(ended, told); });
  step([&] { add_note(told.notes, "%", {ending.late_note()}); });
  step([&] { add_notes_on_end(ended, told.notes); });
  Network network = ending.network;
  step([&] {
    // The note on refused connections says all that advice on the network could say.
    if (ending.end_network(told, redactor)) network = Network::host;
  });
  step([&] {
    add_note(told.notes, "%", {advice_on(ended, told, network, options.shell, ending.git, [&] {
               return writable(ending);
             })});
  });
  step([&] {
    if (ending.session) add_note(told.notes, "%", {ending.hand_on(ended, paths)});
  });
  step([&] { ending.later(told); });
  step([&] { ending.log(told, ended); });
  if (!has_all) tell_of_memory(told.message, "notes are");
}

void Executor::Gate::mask(Result& result) const {
  if (redactor.empty() || enough_memory([&] { mask_texts(result); })) return;
  for (std::string* text : {&result.command, &result.work_dir, &result.message}) text->clear();
  result.notes.clear();
  result.changed_files.clear();
  result.put_back.clear();
  result.rule_begin = result.rule_end = 0;
  result.message = out_of_memory;
}

// A mark that lies within a secret becomes one near it, and stays within the text.
void Executor::Gate::mask_texts(Result& result) const {
  // The offending bytes are those of the masked command from here on.
  const std::string_view command = result.command;
  const std::size_t begin = redactor.redact(command.substr(0, result.rule_begin)).size();
  const std::size_t end = redactor.redact(command.substr(0, result.rule_end)).size();
  for (std::string* text : {&result.command, &result.work_dir, &result.message})
    *text = redactor.redact(*text);
  for (std::string& note : result.notes) note = redactor.redact(note);
  for (std::vector<std::string>* files : {&result.changed_files, &result.put_back})
    for (std::string& path : *files) path = redactor.redact(path);
  result.rule_begin = std::min(begin, result.command.size());
  result.rule_end = std::min(end, result.command.size());
}

// What a record says of the caller. start() makes it before the command runs, as the Command need
// not live until the end. Names come from clients and are cut to 1 KiB, the input to 4 KiB.
AuditRecord Executor::Gate::record_of(const Command& command, std::string time) const {
  constexpr std::size_t longest_name = 1024;
  constexpr std::size_t longest_input = 4096;
  AuditRecord record;
  if (!recording()) return record;
  record.time = std::move(time);
  record.host = host;
  record.pid = ::getpid();
  record.agent_id = options.agent_id;
  const auto cut = [](const std::string& text) {
    return std::string(utf8_prefix(text, longest_name));
  };
  const Caller& caller = command.caller;
  record.caller = {cut(caller.tool), cut(caller.client), cut(caller.request),
                   cut(caller.session_id), cut(caller.shell_id)};
  if (!command.code.empty()) record.code = redactor.redact(command.code);
  // More is masked than is kept, so that a secret that the cut goes through is seen.
  const std::string_view input = command.input;
  record.input = redactor.redact(input.substr(0, 16 * longest_input));
  record.input.resize(utf8_prefix(record.input, longest_input).size());
  record.input_bytes = input.size();
  if (!command.input.empty()) record.input_sha256 = sha256(command.input);
  record.max_output = options.audit_output;
  return record;
}

// Calls on_audit for one command at a time, then writes to the audit log. A failure of the log is a
// note, and the outcome of the command stands.
bool Executor::Gate::record(Result& result, AuditRecord&& record) const {
  if (!recording()) return true;
  record.result = &result;
  return enough_memory([&] {
    if (options.on_audit) {
      const std::lock_guard<std::recursive_mutex> lock(audit_mutex);
      options.on_audit(record);
    }
    if (audit) add_note(result.notes, "%", {audit->append(record)});
  });
}

void Executor::Gate::close(Result& result, const Command& command, std::string time) const {
  mask(result);
  AuditRecord made;
  const auto make = [&] { made = record_of(command, std::move(time)); };
  if (!enough_memory(make) || !record(result, std::move(made)))
    tell_of_memory(result.message, no_record);
}

}  // namespace v0_1
}  // namespace codeexec
