// The gate: what every command passes, whatever place it runs in.
//
// Admission::screen() and admit() are the gate: policy, deadline, work_dir, the files it would
// change, then the place where it runs, in this order, so that the message a caller gets is the
// same as in the systems this library replaces. run() and start() both go through it and through
// Gate::record(), with no way around it. Without read-only roots and delete guard, the gate looks
// for no files on the disk.
#pragma once

#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "executor/slots_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "files/files.hpp"
#include "paths/paths.hpp"
#include "policy/policy.hpp"
#include "process/capture_internal.hpp"
#include "process/process.hpp"
#include "process/remote_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// A directory that was checked, and opened unless it is elsewhere.
struct OpenDirectory {
  std::string path = {};  // canonical: absolute, no symbolic link, no `.` or `..`, no final slash
  UniqueFd fd = {};
};

// One command on its way through the gate, with all that must live until its process has started.
// It is admitted until one of the checks refuses it or a step fails; then `result` says why.
struct Executor::Admission {
  // What is done when the command has ended.
  struct Ending {
    // Canonical paths of what the command uses, for the delete guard, once it has run.
    std::vector<std::string> read_files = {};
    std::vector<std::string> created_files = {};
    // Keeps what runs later.
    LaterEnd later = {};
    // What the command can reach, and whether HOME and TMPDIR are its own.
    Network network = Network::host;
    bool own_home = false;
    bool own_tmp = false;
    GitAdvice git = {};
    // Ends the connections of the command and puts them into the result, secrets masked; true: some
    // were refused.
    Function<bool(Result&, const Redactor&)> end_network = {};
    // Of max_concurrent: given back when the last copy goes away.
    std::shared_ptr<void> slot = {};
    // A note of its place, once it has ended.
    Function<std::string()> late_note = {};
    // For a place with a log of its own: the result as it is reported, and what the process did.
    Function<void(const Result&, const ProcessResult&)> log = {};

    // Of a command of a session: how many resets that had when it began, and its folder then; and
    // what place() adds: the mark of the session_script(), and what that wrote.
    std::shared_ptr<Session::State> session = {};
    std::uint64_t resets = 0;
    std::string folder = {};
    std::string mark = {};
    Function<std::string()> session_text = {};
    // What else its shell begins with, and what judges that.
    HeldBy holder = HeldBy::none;
    TextMap held = {};
    std::shared_ptr<const Guard> guard = {};
    std::string hand_on(const ProcessResult& ended, const PathRules& paths) const;
    std::string hand_on_held(const SessionState& told) const;
  };

  // What a command finds at its descriptor 3: nothing, a pipe for what it leaves to its session,
  // or its script, which is too long for an argument.
  enum class Third { nothing, session, script };

  Result result = Result();                    // of a refusal, or what is known before the start
  ProcessOptions process = ProcessOptions();   // filled by place()
  std::shared_ptr<RemoteCommand> remote = {};  // set by place(), when it does not run on this host
  OpenDirectory directory = OpenDirectory();   // pins the work_dir until the child is in it
  UniqueFd script = {};                        // a script too long for an argument
  std::shared_ptr<const void> home = {};       // what it runs in: removed when it goes away
  std::string time = {};
  std::shared_ptr<Process::State>* driven = nullptr;  // the place for a run that its caller drives
  Ending ending = Ending();
  // Of a session: the command with the folder and the variables of that, and those that are unset.
  std::optional<Command> in_session = {};
  Verdict question = {};  // must_ask: a person decides, if nothing refuses the command
  std::vector<std::string> unset = {};
  // What the shell of the session runs before the command, and the guard that knows it; null: none.
  std::string held = {};
  std::shared_ptr<const Guard> guard = {};
  Third third = Third::nothing;

  // Runs all checks that may refuse the command, in the order below. It changes nothing.
  // `judgement` is filled `in_full` when that is asked for or needed, and has nothing but the
  // policy's verdict otherwise.
  void screen(const Executor& executor, const Command& given, Judgement& judgement, bool in_full);
  // The same, then asks a person where one must decide.
  void decide(const Executor& executor, const Command& given);
  // Makes the process that carries out an admitted command, which has its slot.
  void prepare(const Executor& executor, const Command& given);

  // The command that is judged and run.
  const Command& command(const Command& given) const { return in_session ? *in_session : given; }
  void enter(const Command& given, const Gate& gate);
  const std::shared_ptr<const Guard>& guard_of(const Gate& gate) const;
  bool admitted() const { return result.rule.empty() && result.message.empty(); }
  // The argv of the process: the command's, or `shell` and its arguments, behind `prefix`. Sets
  // `third`. Empty when it cannot be run, as the result then says.
  std::vector<std::string> words_to_run(const Command& command, const std::string& shell,
                                        const std::string& prefix);
  // Adds to the shell in `words` what has it run `text` for a session: it writes what it leaves
  // to descriptor 3. False when it cannot, as the result then says.
  bool follow_session(const std::string& text, std::vector<std::string>& words);
  // Each of these returns whether the command is still admitted.
  bool check_form(const Command& command);
  bool check_policy(const Gate& gate, const Command& command, const std::string& work_dir,
                    Judgement& judgement, bool in_full);
  bool check_timeout(const ExecutorOptions& options, const Command& command);
  bool check_work_dir(const Gate& gate, const Command& command, bool in_session_folder,
                      Expected<UniqueFd>&& found, const std::string& path);
  void check_files(const Executor& executor, const Command& command, const Judgement& judgement);

  // Asks a person to decide on `question`. The command is admitted, or the result says why not.
  void ask(const Gate& gate, const Command& command);
  void reject_unasked();

  void fail(const Error& error, const char* step);
  // Takes no memory.
  void fail_for_memory();
  void reject(std::string_view rule, const char* message, Pieces values = {}, std::size_t begin = 0,
              std::size_t end = 0);
};

// What all copies of an executor share. Immutable after set_up(), but for what the delete guard
// remembers and the audit file.
struct Executor::Gate {
  using Ending = Admission::Ending;

  ExecutorOptions options;
  mutable std::shared_ptr<const Guard> guard;  // judge_files() changes it
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
  std::shared_ptr<AuditLog> audit = {};
  mutable std::recursive_mutex audit_mutex = {};  // a callback may run a command itself
  std::string host = {};                          // of audit records
  Redactor redactor;
  mutable Slots slots = {};
  // SHA-256 of what a person has approved for the session, the oldest first.
  static constexpr std::size_t max_approvals = 1000;
  mutable std::mutex approvals_mutex = {};
  mutable std::vector<std::string> approvals = {};

  Gate(const ExecutorOptions& given, std::shared_ptr<const Guard> judged_by,
       PathRules&& confined_by, const std::vector<std::string>& secrets)
      : options(given),
        guard(std::move(judged_by)),
        paths(std::move(confined_by)),
        redactor(secrets) {}
  bool recording() const { return audit || options.on_audit; }
  bool guards_files() const { return has_read_only_roots || delete_guard; }
  // The steps of set_up(). The last one opens the spill_dir, for the host to write to and for tools
  // to read.
  Expected<void> find_workspace();
  Expected<void> set_up_guards();
  Expected<void> set_up_audit(const ExecutorWings& wings);
  Expected<void> set_up_files();
  // Whether a command takes a slot of max_concurrent.
  bool needs_slot(const Command& command) const {
    return options.max_concurrent != 0 && !command.background;
  }
  // Waits for a slot if the command needs one; otherwise the admission says why it does not run.
  void take_slot(const Command& command, Admission& admission) const;
  // The slot that was taken is given back when the command has ended, or does not start.
  void own_slot(Admission& admission) const;
  // Refuses a command that is still in the line: it was cancelled, or waits for too long.
  void reject_waiting(const Command& command, bool is_cancelled, Admission& admission) const;
  // Counts the files of a command that has ended, and removes the oldest when there are too many.
  void bound_spilled(const ProcessResult& ended, Result& told) const;
  // What asks a person about a command; empty: nothing can.
  Function<void(Approval&)> who_asks(const Command& command) const;
  // Each of these refuses the first target that it objects to.
  void guard_read_only(const std::list<Target>& targets, Admission& admission) const;
  void guard_deletions(const std::list<Target>& targets, Admission& admission) const;
  // What start() gives when there is no memory for a handle: done, not started.
  std::shared_ptr<Execution::State> no_memory = {};
  // Records in the delete guard which files a command has read and made.
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
  // Completes the result `told` after the command has ended. `ended` may be part of `told`.
  void conclude(const Ending& ending, const ProcessResult& ended, Result& told) const;
  // Masks secrets in a result. Call it once. What cannot be masked for lack of memory is left out.
  void mask(Result& result) const;
  void mask_texts(Result& result) const;
  // The end of a command that cannot even be looked at.
  Result not_started_without_memory(const Command& command) const;
  // The last steps of a command that has not started, or of run().
  void close(Result& result, const Command& command, std::string time) const;
  // What a record says of the command before it runs; empty when nothing is recorded.
  AuditRecord record_of(const Command& command, std::string time) const;
  // Writes to the audit log; if that fails, a note of the result says so. False: there was no
  // memory for it, as the result is to say.
  bool record(Result& result, AuditRecord&& record) const;
};

}  // namespace v0_1
}  // namespace codeexec
