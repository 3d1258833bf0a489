// Commands that a person must approve.
//
// A guard says must_ask, and no other check refuses the command. Then, in this order:
//
//   check                                 what follows                        function
//   approved for the session before       it runs; the answer: "remembered"   ask()
//   no callback, or in the event thread   refused                             reject_unasked()
//   cancelled before or during the call   cancelled, whatever the answer is   ask()
//   the answer is no, or there is none    refused, with the rule that asked   ask()
//   the answer is once                    it runs; the same is asked again    ask()
//   the answer is session                 it runs; its print is remembered    ask()
//
// What holds: no mutex is held while a person is asked, so that several may be asked at a time, and
// the command has no slot yet. All copies of an executor share the prints, of which the oldest goes
// when there are 1,000. A print is a hash, so that it keeps no secret of the command.

#include "executor/executor.hpp"
#include "executor/gate_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "policy/policy.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// What must be the same for an approval to hold. Each text has its size before it, so that no two
// commands have one print.
std::string print_of(const Approval& approval, const Command& command,
                     const std::vector<std::string>& unset) {
  std::string print;
  const auto add = [&print](std::string_view text) { append_all(print, {text.size(), ":", text}); };
  for (const std::string* text :
       {&approval.rule, &approval.message, &approval.work_dir, &approval.command, &command.code,
        &command.input, &command.interpreter})
    add(*text);
  add(std::to_string(command.environment.size()));  // where the unset ones begin
  for (const auto& [variable, value] : command.environment) {
    add(variable);
    add(value);
  }
  for (const std::string& variable : unset) add(variable);
  return sha256(print);
}

}  // namespace

// The command's own callback is stronger. The event thread cannot wait for a person.
Function<void(Approval&)> Executor::Gate::who_asks(const Command& command) const {
  if (in_event_thread()) return {};
  return command.on_ask ? command.on_ask : options.on_ask;
}

void Executor::Admission::reject_unasked() {
  reject(question.rule,
         "Command needs the approval of a person, and this program cannot ask for it: %",
         {question.message}, question.begin, question.end);
}

// Called by admit() in the thread of run() or start(), which waits for the answer without a bound.
void Executor::Admission::ask(const Gate& gate, const Command& command) {
  Approval approval;
  approval.command = result.command;
  approval.work_dir = result.work_dir;
  approval.rule = question.rule;
  approval.message = question.message;
  approval.given = &command;
  const std::string print = print_of(approval, command, unset);
  {
    const std::lock_guard<std::mutex> lock(gate.approvals_mutex);
    if (is_one_of(print, gate.approvals)) {
      result.answer = "remembered";
      return;
    }
  }
  const auto on_ask = gate.who_asks(command);
  if (!on_ask) return reject_unasked();
  for (std::string* text : {&approval.command, &approval.work_dir, &approval.message})
    *text = gate.redactor.redact(*text);
  const auto cancelled = [&] {
    if (!command.cancel || !command.cancel->cancelled()) return false;
    fail(cancelled_before_start(), step_name(SpawnStep::setup));
    result.outcome = Outcome::cancelled;
    return true;
  };
  if (cancelled()) return;
  on_ask(approval);
  constexpr std::size_t longest_name = 1024;
  result.asked = to_utf8(utf8_prefix(approval.asked, longest_name));
  result.answer = !approval.allowed ? "no" : approval.for_session ? "session" : "once";
  if (cancelled()) return;
  if (!approval.allowed) {
    const bool asked = approval.problem.empty();
    reject(question.rule, "%%: %",
           {asked ? "A person was asked and did not allow it"
                  : "Command needs the approval of a person, and ",
            approval.problem, question.message},
           question.begin, question.end);
  } else if (approval.for_session) {
    const std::lock_guard<std::mutex> lock(gate.approvals_mutex);
    if (gate.approvals.size() == Gate::max_approvals) gate.approvals.erase(gate.approvals.begin());
    gate.approvals.push_back(print);
  }
}

}  // namespace v0_1
}  // namespace codeexec
