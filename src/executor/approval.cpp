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
//   a file that it runs has changed       refused: it may be asked again      ask()
//   the answer is session                 it runs; its print is remembered    ask()
//   the answer is prefix                  it runs; that of its prefix is      ask()
//
// What holds: no mutex is held while a person is asked, so that several may be asked at a time, and
// the command has no slot yet. All copies of an executor share the prints, of which the oldest goes
// when there are 1,000. A print is a hash, so that it keeps no secret of the command.

#include "executor/executor.hpp"
#include "executor/gate_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/names_internal.hpp"
#include "paths/paths.hpp"
#include "policy/policy.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// What must be the same for an approval to hold. Each text has its size before it, so that no two
// commands have one print.
std::string print_of(const Approval& approval, const Command& command,
                     const std::vector<std::string>& unset, const std::string& contents) {
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
  add(contents);
  return sha256(print);
}

// The print of an approval, and that of its prefix; without a prefix this is empty.
std::pair<std::string, std::string> prints_of(const Approval& approval, const Command& command,
                                              const std::vector<std::string>& unset,
                                              const std::string& contents) {
  std::pair<std::string, std::string> prints(print_of(approval, command, unset, contents), "");
  if (approval.prefix.empty()) return prints;
  Approval general = approval;
  general.command = approval.prefix;
  general.message = "prefix";
  prints.second = print_of(general, command, unset, contents);
  return prints;
}

// Programs whose first word says what they do.
constexpr auto programs_with_commands = NameSet{
    "apt",    "apt-get", "aws",    "brew",   "bundle", "cargo",     "conda",     "docker", "dotnet",
    "gcloud", "gh",      "git",    "go",     "helm",   "kubectl",   "mvn",       "npm",    "pip",
    "pip3",   "pnpm",    "podman", "poetry", "rustup", "systemctl", "terraform", "uv",     "yarn"};

// The two words that a plain command begins with; empty: it is none.
std::string prefix_of(std::string_view command) {
  const bool is_plain = all_are(command, [](char c) {
    return is_name_char(c) || "/.:=@%+,- "sv.find(c) != std::string_view::npos;
  });
  const std::string_view name = take_part(command, ' ');
  const std::string_view verb = take_part(command, ' ');
  const bool is_verb =
      !verb.empty() && all_are(verb, [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; });
  if (!is_plain || !is_verb || verb[0] == '-' || !programs_with_commands.has(name)) return {};
  return concat("% %", {name, verb});
}

std::vector<std::string> files_run_by(const Guard& guard, const Command& command,
                                      const Result& result) {
  return guard
      .judge_reading(result.command, command.input, result.work_dir, true, command.environment)
      .runs;
}

// Keeps those files that lie in the workspace, at most 16, as seen from the work_dir; gives what is
// in them, as hashes.
std::string contents_of(std::vector<std::string>& files, const std::string& work_dir,
                        const std::string& workspace) {
  constexpr std::size_t longest = std::size_t{16} << 20;
  constexpr std::size_t most = 16;
  std::string contents;
  std::vector<std::string> kept;
  for (const std::string& file : files) {
    const auto path = canonical_path(file, work_dir);
    struct stat status {};
    if (!path || !codeexec::is_within(*path, workspace) || ::stat(path->c_str(), &status) != 0 ||
        !S_ISREG(status.st_mode))
      continue;
    std::string seen = file;
    if (codeexec::is_within(file, work_dir))
      seen.erase(0, work_dir == "/" ? 1 : work_dir.size() + 1);
    if (kept.size() == most || is_one_of(seen, kept)) continue;
    const auto text = read_whole_file(*path, longest, {});
    append_all(contents, {path->size(), ":", *path, text ? sha256(*text) : std::string("unread")});
    kept.push_back(std::move(seen));
  }
  files = std::move(kept);
  return contents;
}

const char* name_of_answer(const Approval& approval, bool for_prefix) {
  if (!approval.allowed) return "no";
  if (for_prefix) return "prefix";
  return approval.for_session ? "session" : "once";
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
  std::vector<std::string> files;
  const auto look_at_files = [&] {
    return concat("%%", {contents_of(files, result.work_dir, gate.options.workspace),
                         held.empty() ? std::string() : sha256(held)});
  };
  if (command.code.empty() && !gate.elsewhere)
    files = files_run_by(*guard_of(gate), command, result);
  const std::string contents = look_at_files();
  approval.runs = files;
  if (command.code.empty() && command.input.empty() && approval.runs.empty())
    approval.prefix = prefix_of(result.command);
  const auto [print, prefix_print] = prints_of(approval, command, unset, contents);
  {
    const std::lock_guard<std::mutex> lock(gate.approvals_mutex);
    if (is_one_of(print, gate.approvals) || is_one_of(prefix_print, gate.approvals)) {
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
  const bool for_prefix = approval.for_prefix && !prefix_print.empty();
  result.answer = name_of_answer(approval, for_prefix);
  if (cancelled()) return;
  if (!approval.allowed) {
    const bool asked = approval.problem.empty();
    reject(question.rule, "%%: %",
           {asked ? "A person was asked and did not allow it"
                  : "Command needs the approval of a person, and ",
            approval.problem, question.message},
           question.begin, question.end);
  } else if (look_at_files() != contents) {
    reject(question.rule,
           "A file that the command runs was changed while a person was asked: try again; %",
           {question.message}, question.begin, question.end);
  } else if (approval.for_session || for_prefix) {
    const std::lock_guard<std::mutex> lock(gate.approvals_mutex);
    if (gate.approvals.size() == Gate::max_approvals) gate.approvals.erase(gate.approvals.begin());
    gate.approvals.push_back(for_prefix ? prefix_print : print);
  }
}

}  // namespace v0_1
}  // namespace codeexec
