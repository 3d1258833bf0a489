// The one gate that every command passes, and running on this host.
#pragma once

#include "base/base.hpp"
#include "environment/environment.hpp"
#include "files/files.hpp"
#include "paths/paths.hpp"
#include "policy/policy.hpp"
#include "process/process.hpp"
#include "sandbox/sandbox.hpp"
#include "terminal/terminal.hpp"

namespace codeexec {
inline namespace v0_1 {

// What commands leave to those after them when they name the same session: the folder they end in
// and the variables that they export or unset; under bash, sh, dash and ash also variables that are
// not exported, aliases and options of the shell, and under bash arrays, attributes of variables
// and functions. Each command has a shell of its own, which begins with that, and is judged with
// it. With an own_guard without Guard::with_held() it is as with other shells.
//   A command starts with what the session has then, and when it has left by itself, what it has
// changed of that becomes the session's: of two at the same time that change the same, the one
// that ends last counts. One that was stopped or killed changes nothing, nor does one whose shell
// wrote no report, after `exec` or with a trap of its own on EXIT; a note says so.
//   Not carried: PWD, OLDPWD, SHLVL and _; what changes how a shell reads the next script or runs
//   before it (ENV, IFS, PS4, CDPATH, FPATH, ZDOTDIR, GLOBIGNORE, SHELLOPTS, POSIXLY_CORRECT,
//   BASH*, LD_PRELOAD, LD_AUDIT, DYLD_INSERT_LIBRARIES); CODEEXEC_*; an `unset HOME`; what would
//   end or hide what the next command does (set -e, -n, -x, -v, traps); functions and aliases that
//   the policy refuses as a command, which a note names. With changes of more than 256 exported
//   variables or 64 KiB the session stays as it was, and with more than 1,024 other things or 256
//   KiB these stay as they were, as a note says.
// Copies share it. All members are safe from any thread.
class Session {
 public:
  Session();                     // as if no command had used it yet
  std::string work_dir() const;  // canonical; empty: the workspace
  // What commands have exported and was not there before, or had another value. Not masked.
  Variables variables() const;
  void reset() const;  // to how it began; what runs meanwhile changes nothing any more

  struct State;  // internal

 private:
  std::shared_ptr<State> state_;
};

struct Command;

// The question whether a command may run that a policy lets a person decide: see
// PolicyOptions::ask_commands. The executor fills it; secrets are masked in its texts.
struct Approval {
  std::string command = {};  // as in Result, like work_dir
  std::string work_dir = {};
  std::string rule = {};     // and message: of the Verdict
  std::string message = {};  // why it is asked
  // What the command begins with, where the answer may hold for all that do: `git push`. Empty for
  // what is more than one plain command, and for programs without commands of their own.
  std::string prefix = {};
  // Files of the workspace that it runs, as seen from its work_dir: others may change them. The
  // answer holds as long as they stay as they are.
  std::vector<std::string> runs = {};
  // The command, with the folder and variables of its session: what it runs besides the text, and
  // its caller. Not masked; valid during the call.
  const Command* given = nullptr;
  // For the callback to set, from here on. The command runs; otherwise it is refused.
  bool allowed = false;
  // With `allowed`: it runs unasked from now on, with this executor and its copies, as long as all
  // of this is the same: rule and message, work_dir, command, code, input, interpreter, and the
  // variables of the command and its Session, and the content of `runs`. The last 1,000 such
  // answers are remembered.
  bool for_session = false;
  // With `allowed`: the same for all commands with this `prefix`, and with the same rule, work_dir
  // and variables.
  bool for_prefix = false;
  // Who was asked, for the audit record, of which 1 KiB is kept.
  std::string asked = {};
  // Of one that is not allowed: why there was no answer, as part of a sentence for the model.
  std::string problem = {};
};

struct Result;

// Who asks for a command, for the audit record, which has 1 KiB of each. Nothing is judged by it.
struct Caller {
  std::string tool = "run";
  std::string client = {};   // the program that asks, where several may: name and version
  std::string request = {};  // the id of its request
  std::string session_id = {};
  std::string shell_id = {};  // set by Jobs
};

// One command: a script for the shell, or a program with arguments that no shell ever sees.
struct Command {
  Command();
  Command(const Command& other);
  Command(Command&& other) noexcept;
  Command& operator=(const Command& other);
  Command& operator=(Command&& other) noexcept;
  ~Command();

  std::string script = {};             // for the executor's shell; any length
  std::vector<std::string> argv = {};  // when not empty: started directly; `script` must be empty
  // Relative to the workspace. Empty: the folder of the session, or the workspace.
  std::string work_dir = {};
  // For scripts of at most 1 MiB, and a POSIX shell. Its variables are stronger than all others but
  // those of `environment`. Its folder is judged like any other work_dir, for each command.
  std::optional<Session> session = {};
  // Empty: the executor's. One that exceeds its max_timeout is cut down to that; a note says so.
  std::optional<std::chrono::milliseconds> timeout = {};
  // How long it may wait for its turn (ExecutorOptions::max_concurrent). Then it does not start.
  std::chrono::milliseconds max_wait = no_limit;
  // Without output for so long it ends like by its timeout. Empty: the executor's, and none for a
  // background command.
  std::optional<std::chrono::milliseconds> idle_timeout = {};
  Variables environment = {};    // wins over everything else
  std::string input = {};        // for standard input; empty: /dev/null
  bool keep_input_open = false;  // start() only: Execution::write() may follow
  bool merge_streams = false;    // both streams in `out`, in their true order
  // Its standard streams are a terminal of this size, see ProcessOptions.
  std::optional<TerminalSize> terminal = {};
  // Bytes kept per stream, in place of the executor's max_output. Of a background command the
  // greater of the two is kept. A stream that is longer than that, or than spill_above, goes to a
  // file, where files are made.
  std::optional<std::size_t> max_output = {};
  std::optional<std::size_t> spill_above = {};
  bool keep_end_only = false;              // of long output: the end, and nothing of the start
  std::optional<CancelToken> cancel = {};  // ends the command when cancelled, from any thread
  // Runs beside other work, as a server or a long training does: without a timeout of its own it
  // has none, and max_timeout does not apply to it. It does not survive the host.
  bool background = false;
  // The shell that reads `script`: a program that knows -c. Empty: the executor's.
  std::string interpreter = {};
  // What `argv` is given to run in a file, which is its last word: judged by Guard::judge_code(),
  // and kept in the audit record.
  std::string code = {};

  // Live output as raw bytes, and a sign of life every `heartbeat`. Called by the caller of run(),
  // or after start() by a thread of this library. The rules for callbacks stand in ProcessOptions;
  // on_end and on_audit have the same.
  Function<void(Stream, std::string_view)> on_output = {};
  std::chrono::milliseconds heartbeat = no_limit;
  Function<void()> on_heartbeat = {};

  // Called once, by the same thread and after all others, when a command that start() has started
  // has ended and was recorded: done() is true, and it may start the next command. The last handle
  // waits for it. Not called when the command was refused or did not start.
  Function<void(const Result&)> on_end = {};

  // Asks a person, in place of the executor's on_ask. Called in the thread that has called run() or
  // start(), which wait for it without a bound of their own, when nothing refuses the command and
  // before it waits for max_concurrent. Calls of several threads come at the same time. It should
  // return soon when `cancel` is cancelled; whatever it sets then, the command does not start. Not
  // called in callbacks of started commands, which cannot wait: the command is refused there, as it
  // is without such a callback.
  Function<void(Approval&)> on_ask = {};

  Caller caller = Caller();

  static Command shell(std::string script);
  static Command program(std::vector<std::string> argv);
};

// What a command reached for over a network with Network::allow.
struct Connection {
  std::string name = {};     // as it was asked for, made printable
  unsigned port = 0;         // 0: none was named
  std::string verdict = {};  // "allowed", "refused" (by the list or for the address), "failed" or
                             // "bad request"
  std::string reason = {};   // of all but "allowed"
  std::uint64_t sent = 0;    // bytes to the server, and from it
  std::uint64_t received = 0;
};

// What happened to a command: what its process did, and what the gate decided.
struct Result : ProcessResult {
  Result();
  Result(const Result& other);
  Result(Result&& other) noexcept;
  Result& operator=(const Result& other);
  Result& operator=(Result&& other) noexcept;
  ~Result();

  // Secrets are masked in all text here. The command as it was given; an argv in shell quotes.
  std::string command = {};
  std::string work_dir = {};  // canonical; as given when the command was refused before
  // Of a refusal: a policy rule, "work_dir", "timeout", "command", "read-only" or "delete-guard".
  std::string rule = {};
  // Of a command that a person must approve: who was asked, and the name of the answer, or
  // "remembered" of one that was given before. Empty: there was no question.
  std::string asked = {};
  std::string answer = {};
  std::size_t rule_begin = 0;  // the offending bytes of the command, where the rule knows them
  std::size_t rule_end = 0;
  std::chrono::milliseconds timeout = no_limit;       // the deadline that was in force
  std::chrono::milliseconds idle_timeout = no_limit;  // the same of Command::idle_timeout
  std::string venv = {};                              // the virtual environment in use, or empty
  std::shared_ptr<const SandboxReport> sandbox = {};  // what was in force; null: refused before
  std::string container = {};                         // the name of the one it ran in, or empty
  std::string place = {};  // the name of the one that is not this host, see PlaceExecutor; or empty
  // Files that run later and outside of the sandbox, by the user's own tools: those that changed
  // during the command, and those that were put back as they were before it. Canonical paths, 100
  // of each at most. See LocalOptions::watch_files.
  std::vector<std::string> changed_files = {};
  std::vector<std::string> put_back = {};
  // In the order in which they ended, 100 at most; how many there were beyond them.
  std::vector<Connection> connections = {};
  std::uint64_t connections_omitted = 0;
  std::vector<std::string> notes = {};  // what else the caller should know, a sentence each

  // One line: how it ended, how long it took, how much it wrote.
  std::string summary() const;
};

// One line of the audit log: what was asked, what was decided, how it ended.
struct AuditRecord {
  std::string time = {};  // when it was asked: UTC, RFC 3339 with milliseconds
  std::string host = {};  // the name of this machine
  int pid = 0;            // of this program
  std::string agent_id = {};
  Caller caller = {};     // as the command names it
  std::string code = {};  // what a program was given to run in a file; secrets masked
  // What was written to its standard input, typed to it, or written to a file by a tool. The text
  // has its secrets masked, and is cut to 4 KiB; size and hash are those of all of it, as it was.
  std::string input = {};
  std::uint64_t input_bytes = 0;
  std::string input_sha256 = {};   // empty: nothing was written
  std::size_t max_output = 0;      // bytes of each stream that to_json() gives
  const Result* result = nullptr;  // valid during the callback
};

// A handle on a started command. Copies share it. All members are safe from any thread. When the
// last copy goes away the command is killed.
class Execution {
 public:
  bool done() const;
  bool wait_for(std::chrono::milliseconds time) const;  // true when it is done
  Result wait() const;                                  // blocks until it is done
  void cancel() const;                                  // outcome becomes Outcome::cancelled
  // Becomes readable when it is done, as Process::descriptor(); -1 when it never started.
  int descriptor() const;
  int pid() const;  // -1 when it never started
  // What was known when it was started: command, work_dir, timeout, venv, sandbox and notes. Of a
  // command that never started: all there is. Valid as long as the handle.
  const Result& asked() const noexcept;

  // Standard input, for commands with keep_input_open. Bytes are queued, at most 1 MiB of them.
  // What a shell or another program that runs what it reads would get is judged first.
  //   Errors: permission_denied when the guard refuses it: nothing of it was written.
  Expected<void> write(std::string_view bytes) const;
  void close_input() const;
  // Whether bytes could be written now: it was kept open, and is not closed yet.
  bool takes_input() const;
  // Sends a signal to its process group, wherever that is. False: it has ended, or waits.
  bool signal(int number) const;

  // What its terminal shows, and another size for it: see Process::screen() and resize().
  Expected<TerminalScreen> screen() const;
  Expected<void> resize(TerminalSize size) const;

  // What a stream printed since `cursor` (0 at first), as far as it is still kept; see
  // OutputChunk.
  OutputChunk read(Stream stream, std::uint64_t cursor, std::size_t max_lines = unbounded) const;

  struct State;  // internal

 private:
  friend class Executor;
  void adopt(Process&& process) const;  // of one whose caller has driven it
  std::shared_ptr<State> state_ = {};
};

// What every executor needs to know. All of it is checked by create(), which names what is wrong.
struct ExecutorOptions {
  std::string workspace = {};  // where commands start; empty: the directory of the caller, now
  // Where a work_dir may lie; empty: anywhere. A script that would change what lies in a root that
  // is not writable is refused, as far as its words name the files it changes.
  std::vector<Root> roots = {};
  PolicyOptions policy = PolicyOptions();
  // Refuses scripts that delete files which no command before them read or made; see DeleteGuard.
  // (A move counts as a deletion of what is moved.)
  bool delete_guard = false;
  // Of commands that bring none (no_limit: max_timeout); the longest that any other may have, which
  // is cut down to it. For commands that run as long as they like, both are no_limit.
  std::chrono::milliseconds timeout = std::chrono::seconds(60);
  std::chrono::milliseconds max_timeout = std::chrono::hours(1);
  std::chrono::milliseconds idle_timeout = no_limit;  // of commands that bring none
  std::chrono::milliseconds kill_grace = std::chrono::milliseconds(500);  // SIGTERM to SIGKILL
  // How many commands of this executor and its copies run at a time; 0: any number. Others wait,
  // and start in the order in which they came: run() blocks meanwhile, and start() returns at once,
  // with a handle that waits. They are judged before they wait, and have the state that their
  // session had then. Timeouts count from the start of a command. A cancel ends the wait, or
  // Command::max_wait: the outcome is `cancelled` or `not_started`, and nothing was started.
  // Commands with Command::background neither wait nor count; JobOptions::max_running bounds those
  // of Jobs. In callbacks of started commands run() cannot wait: a command that would have to is
  // not started. Callbacks of run() must not run commands that might wait for it.
  std::size_t max_concurrent = 0;
  std::size_t max_output = std::size_t{1} << 20;  // bytes kept per stream: its head and its tail
  // When set: a stream that outgrows max_output goes whole to a file here, which commands and the
  // tools may read. It must not lie where a sandbox or container lets commands write.
  std::string spill_dir = {};
  // Without a spill_dir: such files go to a directory that is made in the TMPDIR of this process,
  // or /tmp, and removed with the last copy of the executor; when this process is killed, by the
  // next executor that makes one. Of more than max_spill_total bytes together the oldest files are
  // removed, and a note says so.
  bool private_spill_dir = false;
  // Bytes per file, the rest is not written, and of all files together. At least 1; or unbounded.
  std::uint64_t max_spill = std::uint64_t{64} << 20;
  std::uint64_t max_spill_total = std::uint64_t{256} << 20;
  std::string shell = "/bin/sh";  // reads scripts, where they run: any shell that knows -c
  // For Network::allow of a sandbox, or a container without a network, and only then: what commands
  // may reach by a proxy of this program, to which variables such as HTTPS_PROXY lead them. Each is
  // a name (example.org), all names below one (*.example.org), an address, with a port
  // (github.com:22) or for the ports 80 and 443; or one of the sets of domain_sets(). Names must
  // lead to public addresses, or to addresses that are listed, too. What is refused is in a note of
  // the result. A place has no way to the world by this but through this host.
  std::vector<std::string> allowed_domains = {};
  // What they may not reach, whatever is allowed: names, addresses and sets as above, each with a
  // port or for all of them, and with a reason for the caller behind a `=`
  // ("*.example.org=use the mirror").
  std::vector<std::string> denied_domains = {};
  // Where the world is behind another proxy: http://[USER:PASSWORD@]HOST[:PORT], through which all
  // connections go but those to this host and to direct_domains, which are as in NO_PROXY (a name
  // with all below it, an address, "*"). It resolves the names, so that addresses are not judged
  // here; commands do not see its credentials.
  std::string parent_proxy = {};
  std::vector<std::string> direct_domains = {};
  // Where commands have a HOME that is not this process's user's, in a private home or a container,
  // and no .gitconfig in it, there is one with that user's user.name and user.email, as his own
  // files for git say them when the executor is made, so that `git commit` works; with nothing else
  // of them. What the repository or a variable says is stronger.
  bool git_identity = true;
  // Where the callbacks of started commands are called, but for on_audit: see ProcessOptions::post.
  Function<void(Function<void()>)> post = {};
  std::string agent_id = {};              // for the audit log
  Function<void(Approval&)> on_ask = {};  // see Command::on_ask
  // One line of JSON per command, appended; made with mode 0600. Like spill_dir, it must not lie
  // where a sandbox or container lets commands write. Each begins with "previous", the hash of the
  // line before it, and ends with "hash", the SHA-256 of all that stands before that member, so
  // that `codeexec-mcp --verify-audit` sees what was changed, left out or put in. While a program
  // writes to it, it also notices when its own last record is gone, or the file: a member "notice"
  // of the next record and a note of that result report it. What is replaced or cut off when no
  // program writes shows by a key, by the last hash kept elsewhere, or by the log of the system.
  // Several programs may write to one file. What cannot be written waits in memory, up to 1 MiB.
  std::string audit_file = {};
  // A file of at least 16 bytes (at most 4 KiB) that is the key of the hashes: "hmac" in place of
  // "hash", HMAC-SHA-256. Without it no line can be made that --verify-audit accepts with it. It
  // must lie where commands can neither read nor write.
  std::string audit_key = {};
  // The socket of the log of the system, usually /dev/log: each record goes there, too, in the form
  // of RFC 5424, without output and with at most 2 KiB of the command; "hash" is that of its line
  // in audit_file. What cannot be sent is a note of the result.
  std::string audit_syslog = {};
  std::size_t audit_output = 0;  // bytes of each stream in a record, its head and its tail; 0: none
  // Called in the thread that ends the command, for one at a time. It must not wait for another
  // command of this executor, which could not be recorded meanwhile.
  Function<void(const AuditRecord&)> on_audit = {};
};

class AuditLog;        // internal: where records are kept
class CommandNetwork;  // internal: what serves connections of commands by the names of hosts
struct LocalOptions;

// Called before a command starts, with its work_dir. What it returns is called when the command has
// ended, and completes its result.
using LaterEnd = Function<void(Result&)>;
using LaterBegin = Function<LaterEnd(const std::string& work_dir)>;

// What makes the parts of an executor that stand in other wings of this header (see WINGS at its
// top). create(options) has all of them. A program that implements less of the header gives
// create() what it has; an option whose part is not given is an error then, and never ignored.
struct ExecutorWings {
  // Of ExecutorOptions::policy.
  Expected<std::shared_ptr<const Guard>> (*guard)(const PolicyOptions& policy) = nullptr;
  // Of audit_file and audit_syslog.
  Expected<std::shared_ptr<AuditLog>> (*audit)(const ExecutorOptions& options) = nullptr;
  // Of allowed_domains.
  Expected<std::shared_ptr<CommandNetwork>> (*network)(const ExecutorOptions& options) = nullptr;
  // Judges the commands in place of a policy, whose lists and rules are errors then. Without this
  // and `guard` no command is judged; delete_guard and roots that are not writable are errors, too.
  std::shared_ptr<const Guard> own_guard = {};
  // Of LocalOptions::watch_files, in these folders.
  Expected<LaterBegin> (*later)(const LocalOptions& options,
                                std::vector<std::string> folders) = nullptr;
  bool (*is_run_later)(std::string_view path) = nullptr;

  static ExecutorWings all();
};

// Defined in the wings TOOLS and NETWORK; create_guard() in POLICY.
Expected<LaterBegin> keep_later(const LocalOptions& options, std::vector<std::string> folders);
bool runs_later(std::string_view path);  // see its section
Expected<std::shared_ptr<AuditLog>> open_audit_log(const ExecutorOptions& options);
Expected<std::shared_ptr<CommandNetwork>> open_network(const ExecutorOptions& options);

// Inline, so that only a program that calls it needs those wings.
inline ExecutorWings ExecutorWings::all() {
  return {create_guard, open_audit_log, open_network, {}, keep_later, runs_later};
}

// Runs commands: judges each by policy and path rules, starts it, bounds it and records it. This is
// the seam between what is asked and where it happens. Safe from any thread; a pthread_cancel() is
// acted upon after the call.
//
// The first refusal stands: of the policy, the timeout, the work_dir, read-only roots, the delete
// guard, in this order. If none of them refuses a command that a person must approve, the person is
// asked. The last two know the files of a command from Policy::judge(): those
// that are spelled out in it, not those that only a run could show or that a program picks itself.
// With either of them, a command that cannot be read is refused in compat mode, too.
//
// When memory runs out, a command that has not begun does not start: Outcome::not_started, ENOMEM,
// and the message `out of memory`. One that runs goes on to its end, and its message says what the
// result lacks. Where an output is cut by that, it is the beginning of the stream. No process is
// left, and run(), start() and Execution::wait() do not throw.
class Executor {
 public:
  virtual ~Executor();

  // Runs to the end and blocks the calling thread only, at most for the timeout and
  // kill_grace + 3 s after the start. What the command did, and a refusal, are in the Result.
  Result run(const Command& command) const;
  Result run(std::string_view script) const;

  // Starts and returns at once. A command that has to wait for max_concurrent starts later, by a
  // thread of this library: its handle is used like any other meanwhile. When a command was refused
  // or could not start, the handle is done already.
  Execution start(const Command& command) const;
  Execution start(std::string_view script) const;

  // Judges without running: the Result of a refusal, or outcome not_started and an empty rule.
  // Asks no person: what must be approved is refused here unless run() could ask.
  Result check(const Command& command) const;

  // The same verdict, with all that was found in the command. It says what must be approved.
  Judgement judge(const Command& command) const;

  // What the delete guard remembers, for tools that read or make files by other means than a
  // command; null when it is off.
  const DeleteGuard* delete_guard() const noexcept;

  // As create() has completed them.
  const ExecutorOptions& options() const noexcept;
  const std::string& workspace() const noexcept;
  const PathRules& paths() const noexcept;
  // Which files the tools may read and write that do so by other means than a command: what a
  // command may, as far as roots can say it.
  virtual PathRules file_rules() const;
  // These files, where the commands run. Valid as long as a copy of this executor.
  Files files() const { return Files(file_rules(), workspace(), elsewhere(), moved()); }
  // canonical_path(), where the commands run.
  Expected<std::string> canonical(std::string_view path, std::string_view base) const;
  // The directory that a command of this work_dir starts in: see PathRules::open_work_dir(). Where
  // that is not on this host it is not opened, and not known to exist. `path` becomes its canonical
  // path, also when it may not be used.
  Expected<UniqueFd> open_work_dir(std::string_view work_dir, std::string* path = nullptr) const;
  // Masks the secrets of the commands.
  std::string redact(std::string_view text) const;
  // Puts on the audit log what was done by other means than a command. Of `asked` counts what is
  // for the audit record, and its input: what was written. Masks secrets in `result`; a failure to
  // write the log goes into its notes.
  void record(Result& result, const Command& asked) const;

  // What a model should know of the place: where commands may write, what they reach. Sentences, or
  // nothing.
  virtual std::string describe_place() const;

  struct Gate;       // internal, as the next ones
  struct Admission;  // a command that passes the gate, and becomes a process
  class Queued;      // one that waits for its turn
  class Held;        // one that its caller drives

 protected:
  Executor() = default;
  Executor(const Executor&) = default;
  Executor& operator=(const Executor&) = default;
  // `secrets` are masked in what results and records say of a command. With `elsewhere`, which must
  // live as long, workspace and roots are its own.
  Expected<void> set_up(const ExecutorOptions& options, const ExecutorWings& wings,
                        const std::vector<std::string>& secrets = {},
                        FilesElsewhere* elsewhere = nullptr);
  // Has the guard judge what commands have written, where these rules let them write, when a later
  // one runs it. Called before there is a copy.
  void judge_files(const PathRules& rules, std::shared_ptr<const MovedDirectory> moved) const;

 private:
  // Turns an admitted command into the process that carries it out.
  virtual Expected<void> place(const Command& command, Admission& admission) const = 0;
  // For a command that starts later.
  virtual std::shared_ptr<const Executor> copy() const = 0;
  // start(), whose process, with `driven`, its caller drives.
  Execution begin(const Command& command, std::shared_ptr<Process::State>* driven) const;
  // The last part of start(), for a command that has its turn.
  void launch(const Command& command, Admission& admission,
              const std::shared_ptr<Execution::State>& state) const;
  bool launch_admitted(const Command& command, Admission& admission,
                       const std::shared_ptr<Execution::State>& state) const;
  bool enqueue(const Command& command, std::unique_ptr<Admission>& admission,
               const std::shared_ptr<Execution::State>& state) const;
  const FilesElsewhere* elsewhere() const noexcept;
  // The directory of this host that commands have as /tmp. Null: none.
  virtual std::shared_ptr<const MovedDirectory> moved() const;
  // The home directory that `~` means in a command; empty when it is not known.
  virtual std::string home(const Command& command, std::string_view work_dir) const;
  std::shared_ptr<const Gate> gate_ = {};
};

// A directory of the commands' own that HOME and TMPDIR lead to, in place of the user's with its
// keys and tokens; made with mode 0700 in the TMPDIR of this process, or /tmp. TMPDIR is `tmp` in
// it. Both are stronger than what is kept of the host, and weaker than EnvironmentOptions::set and
// the variables of a command. What a program leaves that is killed, the next one removes.
enum class PrivateHome {
  off,  // HOME and TMPDIR as the environment has them
  // A new one for each command, removed with all that is in it when run() returns, or with the last
  // handle of a started one. All lie in one directory that commands may write to, so that those
  // that run at the same time can reach each other's.
  command,
  executor,  // one for all, removed with the last copy of the executor: caches and settings stay
};
const char* name(PrivateHome home) noexcept;

// By default without a sandbox: commands have all rights of this process on files, the network and
// other processes. Set sandbox.mode to confine them.
struct LocalOptions : ExecutorOptions {
  // Its `workspace` is taken from the executor's.
  EnvironmentOptions environment = EnvironmentOptions();
  // Its `writable`, `readable` and `search_path` are added to: the roots by their permission (the
  // workspace, when there are none), venv_path and skills_dir, the private home, the PATH.
  SandboxOptions sandbox = SandboxOptions();
  // Without a sandbox it has no effect.
  PrivateHome private_home = PrivateHome::executor;
  // In a sandbox: SandboxOptions::tmp is a directory of the executor's own, made beside the private
  // home and removed with the last copy of the executor. Files in it have the same path for
  // commands, for files() and as work_dir. Where commands cannot have it, SandboxReport::places
  // says why.
  bool private_tmp = true;
  // Nothing of a command outlives it, nor this program, however that ends: see
  // ProcessOptions::supervised. So it is in any case in a sandbox, and for Command::background.
  bool supervised = true;
  // In a sandbox: keep what the user's own tools will run or obey later, outside of it, as it is:
  // what runs_later() lists, in the work_dir and each writable root (of 64 at most), three levels
  // deep. What a command has made or changed of it is put back before its result is given, and is
  // in Result::put_back; what comes through all the same, in Result::changed_files.
  bool watch_files = true;
  // Of these, what commands may change all the same: paths that are absolute or relative to each
  // writable root, with all below them, such as ".github/workflows". ".": everything, so that a
  // change is only reported.
  std::vector<std::string> allow_later = {};
  // Where the command's versions of what was put back are kept, one folder for each command; made
  // when it is needed. Empty: codeexec/put-back in $XDG_STATE_HOME, or in ~/.local/state. Without
  // such a folder, or where commands may write, they stay beside as PUT_BACK_..._name.
  std::string put_back_dir = {};
  // Linked as .agent/skills in the workspace before the first command, unless something of that
  // name is there already. Empty: no link.
  std::string skills_dir = {};
};

// Runs commands on this host, with the rights of this process or in a sandbox.
class LocalExecutor : public Executor {
 public:
  // PolicyOptions::enable_sudo has no effect: it is for containers, whose root is not the host's.
  //   Errors of the sandbox, besides those of Sandbox::create(): `/` as a root or as the workspace
  //   that commands may write to; in strict mode, a root that the kernel cannot hold a command to;
  //   with mode off, a network other than host and a pid_namespace, which only a sandbox can have;
  //   Network::allow without allowed_domains or where no network can be kept from commands.
  static Expected<LocalExecutor> create(const LocalOptions& options, const ExecutorWings& wings);
  static Expected<LocalExecutor> create(const LocalOptions& options) {
    return create(options, ExecutorWings::all());
  }

  // What is in force. To Sandbox::report() it adds, as missing, roots that the kernel cannot hold a
  // command to, because they lie in a root that allows more; the policy still knows them:
  //   forbidden_roots    roots with Permission::none
  //   read_only_roots    roots with Permission::read in a writable one
  const SandboxReport& sandbox_report() const noexcept;
  std::string describe_place() const override;
  PathRules file_rules() const override;

 private:
  struct Place;
  LocalExecutor() = default;
  Expected<void> place(const Command& command, Admission& admission) const override;
  std::shared_ptr<const Executor> copy() const override;
  std::shared_ptr<const MovedDirectory> moved() const override;
  std::string home(const Command& command, std::string_view work_dir) const override;
  std::shared_ptr<const Place> place_ = {};
};

// Runs a script on this host with the defaults of LocalOptions, hence without a sandbox, as
// LocalExecutor::run() does. Where there can be no executor, the result says why
// (Outcome::not_started).
inline Result run(std::string_view script) {
  const auto here = LocalExecutor::create({});
  if (here) return here->run(script);
  Result result;
  result.command = script;
  result.message = here.error().message;
  return result;
}

}  // namespace v0_1
}  // namespace codeexec
