// The gate: what every command passes, whatever place it runs in.
//
// screen() and admit() are the gate: policy, deadline, work_dir, the files it would change, then
// the place where it runs, in this order, so that the message a caller gets is the same as in the
// systems this library replaces. run() and start() both go through it and through Gate::record();
// neither has a way around. Without read-only roots and delete guard, no file is looked for.
#pragma once

#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "files/files.hpp"
#include "paths/paths.hpp"
#include "policy/policy.hpp"
#include "process/process.hpp"

namespace codeexec {
inline namespace v0_1 {

struct Executor::Ending {
  // Canonical paths of what the command uses, for the delete guard, once it has run.
  std::vector<std::string> read_files = {};
  std::vector<std::string> created_files = {};
  // The files of LocalOptions::watch_files that changed since it began.
  Function<std::vector<std::string>()> changed_files = {};
  // What the command can reach, and whether HOME and TMPDIR are its own.
  Network network = Network::host;
  bool own_home = false;
  // What its place tells once it has ended.
  Function<std::string()> late_note = {};
  // For who keeps a log of its own: what is told of the command, and what became of it.
  Function<void(const Result&, const ProcessResult&)> log = {};

  // Of a command of a session: how many resets that had when it began, and its folder then; and
  // what place() adds: the mark of the session_script(), and what that wrote.
  std::shared_ptr<Session::State> session = {};
  std::uint64_t resets = 0;
  std::string folder = {};
  std::string mark = {};
  Function<std::string()> session_text = {};
  // What the session does not take over, and why; empty when it takes all. A folder where the next
  // command would be refused is not taken.
  std::string hand_on(const ProcessResult& ended, const PathRules& paths) const {
    constexpr std::string_view all = "the session keeps its folder and variables as they were: ";
    if (ended.outcome != Outcome::exited)
      return concat("%the command did not end by itself", {all});
    auto told = detail::parse_session_state(session_text(), mark);
    if (!told) return concat({all, told.error().message});
    std::string note;
    if (paths.permission(told->work_dir) == Permission::none) {
      const std::string there = shell_word(to_utf8(told->work_dir));
      note = concat(
          "the session stays in %, because % is not within the folders that commands may start in; "
          "`cd % && ...` works in one command",
          {printable(folder), there, there});
      told->work_dir = folder;
    }
    if (session->take(*told, folder, resets)) return note;
    return concat("%more than 256 variables or 64 KiB changed", {all});
  }
};

// What all copies of an executor share. Immutable after set_up(), but for what the delete guard
// remembers and the audit file.
struct Executor::Gate {
  ExecutorOptions options;
  Policy policy;
  PathRules paths;
  PathRules file_rules = PathRules();  // with what the host writes for commands and tools to read
  UniqueFd spill_directory = {};
  std::shared_ptr<const PrivateFolder> private_spill = {};
  // The files in it, oldest first: name and size.
  mutable std::mutex spilled_mutex = {};
  mutable std::vector<std::pair<std::string, std::size_t>> spilled = {};
  mutable std::uint64_t spilled_bytes = 0;
  std::optional<DeleteGuard> delete_guard = {};
  bool has_read_only_roots = false;
  // Null: workspace and roots are on this host.
  FilesElsewhere* elsewhere = nullptr;
  // With such a guard and a policy that lets pass what it cannot read: objects to just that.
  std::optional<Policy> reader = {};
  std::unique_ptr<detail::AuditFile> audit = {};
  mutable std::recursive_mutex audit_mutex = {};  // a callback may run a command itself
  std::string host = {};                          // of audit records
  Redactor redactor;

  Gate(const ExecutorOptions& given, Policy&& judged_by, PathRules&& confined_by,
       const std::vector<std::string>& secrets)
      : options(given),
        policy(std::move(judged_by)),
        paths(std::move(confined_by)),
        redactor(secrets) {}
  bool recording() const { return audit || options.on_audit; }
  bool guards_files() const { return has_read_only_roots || delete_guard; }
  // Opens the spill_dir, for the host to write to and for tools to read.
  Expected<void> set_up_files();
  // Counts the files of a command that has ended, and removes the oldest when there are too many.
  void bound_spilled(const ProcessResult& ended, Result& told) const;
  // Each of these refuses the first target that it objects to.
  void guard_read_only(const std::list<Target>& targets, Admission& admission) const;
  void guard_deletions(const std::list<Target>& targets, Admission& admission) const;
  // Tells the delete guard what a command that has run read and made.
  void remember(const std::vector<std::string>& read,
                const std::vector<std::string>& created) const {
    if (!delete_guard) return;
    const auto is_file = [](const std::string& path) {
      struct stat status {};
      return ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
    };
    for (const std::string& path : read)
      if (is_file(path)) delete_guard->mark_read(path);
    for (const std::string& path : created)
      if (is_file(path)) delete_guard->mark_created(path);
  }
  std::string writable(const Ending& ending) const;
  // Tells in `told` what is to be seen when a command has ended. `ended` may be part of it.
  void conclude(const Ending& ending, const ProcessResult& ended, Result& told) const;
  // Masks secrets in what is told of a command, once.
  void mask(Result& result) const;
  // What a record says of the command before it runs; nothing when nobody records.
  AuditRecord record_of(const Command& command, std::string time) const;
  // Tells the audit log; a failure to do so goes into the notes of the result.
  void record(Result& result, AuditRecord record) const;
};

struct Executor::Admission {
  Result result = Result();                   // of a refusal, or what is known before the start
  ProcessOptions process = ProcessOptions();  // filled by place()
  OpenDirectory directory = OpenDirectory();  // pins the work_dir until the child is in it
  UniqueFd script = {};                       // a script too long for an argument
  std::shared_ptr<const void> home = {};      // what it runs in: removed when it goes away
  std::string time = {};
  Ending ending = Ending();
  // Of a session: the command with the folder and the variables of that, and those that are unset.
  std::optional<Command> in_session = {};
  std::vector<std::string> unset = {};

  // The command that is meant.
  const Command& command(const Command& given) const { return in_session ? *in_session : given; }
  void enter(const Command& given, const std::string& workspace) {
    ending.session = given.session->state_;
    Command& command = in_session.emplace(given);
    const std::lock_guard<std::mutex> lock(ending.session->mutex);
    ending.resets = ending.session->resets;
    ending.folder = ending.session->work_dir.empty() ? workspace : ending.session->work_dir;
    if (command.work_dir.empty()) command.work_dir = ending.session->work_dir;
    command.environment.clear();
    for (const auto& [variable, value] : ending.session->changes)
      if (!value.empty())
        command.environment.push_back({variable, value.substr(1)});
      else
        unset.push_back(variable);
    for (const auto& variable : given.environment) {
      command.environment.push_back(variable);
      for (auto at = unset.begin(); at != unset.end();)
        at = *at == variable.first ? unset.erase(at) : at + 1;
    }
  }
  bool admitted() const { return result.rule.empty() && result.message.empty(); }
  // Adds to the shell in `words` what has it run `text` for a session: it writes what it leaves
  // to descriptor 3. False when it cannot, as the result then says.
  bool follow_session(const std::string& text, std::vector<std::string>& words);
  void fail(const Error& error, const char* step);
  void refuse(std::string_view rule, const char* message, Pieces values = {}, std::size_t begin = 0,
              std::size_t end = 0);
};

}  // namespace v0_1
}  // namespace codeexec
