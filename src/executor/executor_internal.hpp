// What the parts of the executor share: files in danger, sessions, notes.
#pragma once

#include "executor/executor.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "environment/environment_internal.hpp"
#include "paths/paths.hpp"
#include "policy/policy.hpp"
#include "process/process.hpp"
#include "sandbox/listener_internal.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

// Where records are kept, one for each command. Members are called from any thread.
class AuditLog {
 public:
  virtual ~AuditLog() = default;
  // Returns a note for the caller, when the record could not be kept, or an empty text.
  virtual std::string append(const AuditRecord& record) = 0;

 protected:
  AuditLog() = default;
  AuditLog(const AuditLog&) = default;
  AuditLog& operator=(const AuditLog&) = default;
};

// As which shell a program reports what it holds besides its folder and exported variables.
enum class HeldBy { none, sh, bash };

inline namespace inner {

// A single argument or variable may have 128 KiB on Linux (MAX_ARG_STRLEN), its NUL included.
// Scripts that do not fit are handed to the shell as a file.
inline constexpr std::size_t longest_inline_script = (std::size_t{128} << 10) - 1;

// In a session they come in parts of it, because all arguments together may have 2 MiB.
inline constexpr std::size_t longest_session_script = std::size_t{1} << 20;
// What the shell of a session may write of what it leaves.
inline constexpr std::size_t longest_session_text = std::size_t{256} << 10;

HeldBy held_by(std::string_view shell);

// What a shell of a session writes: its folder and exported variables, and what else it holds.
struct SessionState {
  std::string work_dir = {};
  Variables before = {};     // when the script began
  Variables variables = {};  // at its end
  // For Guard::held_by_shell(); empty: not all of that is known.
  std::vector<std::string> held = {};
};
// A script for `shell` that runs its arguments, joined, as one script, and writes what
// parse_session_state() reads to a descriptor from 1 to 9. Empty if that is no POSIX shell. `mark`
// is random and has nothing but letters and digits; there may be 9 `parts`. By `holder` it reports
// what else it holds, too; the first `held_parts` arguments, of two at most, it runs before.
std::string session_script(std::string_view shell, int descriptor, std::string_view mark,
                           std::size_t parts, HeldBy holder = HeldBy::none,
                           std::size_t held_parts = 0);
// The text is hostile: all of it must be as such a script writes it.
//   Errors: parse.
Expected<SessionState> parse_session_state(std::string_view text, std::string_view mark,
                                           HeldBy holder = HeldBy::none);

// The shell of a session writes its folder and variables to a pipe. Neither end blocks: bytes that
// are not in the pipe when the command has ended are lost.
Expected<void> make_session_pipe(UniqueFd& told, UniqueFd& writer);
std::string read_session_text(const UniqueFd& told);

// At most so many bytes of a text and a line for what is left out of its middle. The text may have
// been cut before, and then had `total` bytes.
std::string head_and_tail(const std::string& text, std::size_t bytes, std::uint64_t total);

// 60 s as "60", 1500 ms as "1.5", -250 ms as "-0.25", no_limit as "unlimited".
std::string seconds_text(std::chrono::milliseconds time);

// The same with its unit: "1 second", "1.5 seconds".
std::string count_of_seconds(std::chrono::milliseconds time);

// What notes say where the shell is a plain sh. Only one of them does.
inline constexpr std::string_view use_bash = "use `bash -c '...'`";

// "SIGSEGV (segmentation fault)".
std::string signal_text(int number);

// The present as RFC 3339 in UTC with milliseconds: 2026-01-31T12:00:00.250Z.
std::string utc_timestamp();

// Errors that come from a shortage of the system, and say nothing about the command.
bool is_shortage(int error);

// A file that only its descriptor knows, with `content` in it and read from the start.
Expected<UniqueFd> anonymous_file(std::string_view content);

bool is_program(const std::string& path);

// A .gitconfig with the name and address of this process's user, as git's own files have them:
// user.name and user.email. Empty where they do not have both.
std::string git_identity();

// The canonical path of a directory that an option names, with the rights `mode` of access(2) to
// it. An empty option stays empty.
Expected<std::string> usable_directory(const char* option, const std::string& given, int mode);

// Refuses a file of the host's own in a place where commands may write: a command could put a link
// there, or change the audit log. `writable` lists the canonical paths that commands may change.
Expected<void> check_out_of_reach(const ExecutorOptions& options,
                                  const std::vector<std::string>& writable);

// Never replaces a file that is there: it may be the user's own.
Expected<void> link_skills(const std::string& workspace, const std::string& skills_dir);

}  // namespace inner

// Of folders that are linked worktrees of git: what commands may do in their repositories, and why
// one is closed to them. Either may be empty.
struct GitAdvice {
  std::string allowed = {};
  std::string problem = {};
};

inline namespace inner {

// The note on a failure that the sandbox or the container may have caused: what is allowed, and
// which option allows more. Empty when nothing points to that. `writable` names the folders that
// the command may change.
std::string advice_on(const ProcessResult& ended, const Result& told, Network network,
                      std::string_view shell, const GitAdvice& git,
                      FunctionRef<std::string()> writable);

// Why a feature is missing in a report; empty: it is not.
std::string_view reason_missing(const SandboxReport& report, std::string_view feature);

// A note on what options asked for and is not in force, as best_effort lets commands run without
// it; empty when there is no such gap. `asked` is the network of the options.
std::string note_of_gaps(const SandboxReport& report, Network asked);

// A note on the processes that a command left behind; empty when there were none.
std::string note_of_left_behind(const ProcessResult& ended);

// The file that an access of a command reaches on the disk as it is now.
struct Target {
  const FileAccess* access = nullptr;
  std::vector<std::string> files = {};  // canonical: one, or those that a pattern stands for
  std::string directory = {};           // of a pattern: where all it can ever stand for lies
};

// When the kernel last changed what it keeps of a file. No command can set it back.
inline const timespec& change_time(const struct stat& status) {
#if defined(__APPLE__)
  return status.st_ctimespec;
#else
  return status.st_ctim;
#endif
}

std::string joined(const std::vector<std::string>& texts, std::string_view separator);

// What a lack of memory keeps from being written, for `tell_of_memory()`.
inline constexpr std::string_view no_record = "its audit record is";

// Adds a note for the caller, unless it is empty.
void add_note(std::vector<std::string>& notes, const char* form, Pieces values = {});

// Cuts a timeout down to the longest that an executor allows, with a note.
void bound_timeout(std::chrono::milliseconds& timeout, std::chrono::milliseconds most,
                   std::vector<std::string>& notes);

}  // namespace inner

// A directory with a random name and a folder `tmp` in it, removed with its content at the
// end. It is locked as long as it is in use, so one without a lock belonged to a program that was
// killed.
class PrivateFolder {
 public:
  // In an open directory, whose canonical path is `parent`. `option` is what errors name.
  static Expected<std::shared_ptr<const PrivateFolder>> create(const char* option, int directory,
                                                               const std::string& parent,
                                                               std::string_view prefix);
  // In an absolute directory, by default the TMPDIR of this process, or /tmp, where those of this
  // prefix are removed that are not in use.
  static Expected<std::shared_ptr<const PrivateFolder>> create(const char* option,
                                                               std::string_view prefix,
                                                               std::string_view parent = {});

  PrivateFolder(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  ~PrivateFolder();

  const std::string& path() const noexcept { return path_; }
  std::string temporary() const { return path_ + "/tmp"; }
  int fd() const noexcept { return fd_.get(); }

 private:
  // An errno, or 0. EWOULDBLOCK: another program that removes left folders has locked it.
  static int prepare(int fd);

  std::string path_;
  UniqueFd fd_;
  pid_t owner_ = ::getpid();
};

struct Session::State {
  static constexpr std::size_t max_variables = 256;
  static constexpr std::size_t max_bytes = std::size_t{64} << 10;
  static constexpr std::size_t max_held = 1024;
  static constexpr std::size_t max_held_bytes = 2 * longest_inline_script;

  std::mutex mutex = {};
  std::string work_dir = {};
  // By name, with `=` before their values; those that are empty were unset.
  TextMap changes = {};
  // What else shells hold, by HeldBy: see Guard::held_by_shell().
  std::array<TextMap, 3> held = {};
  std::uint64_t resets = 0;

  static const std::shared_ptr<State>& of(const Session& session) { return session.state_; }
  bool take(const SessionState& told, const std::string& folder, std::uint64_t reset);
  bool take_held(HeldBy holder, const TextMap& before, const TextMap& now, std::uint64_t reset);
};

inline namespace inner {

bool sets_variable(const Variables& variables, std::string_view name);

// The value that a list of NAME=value has for a name; null when it has none.
const char* value_of(const std::vector<std::string>& variables, std::string_view wanted);

// What can only be had with a sandbox must not be missed in silence.
Expected<void> check_without_sandbox(const SandboxOptions& options);

// Without a network, package managers try for a minute or more unless a variable forbids it.
std::vector<std::string> offline_variables(Network network, unsigned port = proxy_port);

// With a home of their own commands do not find the toolchains that rustup keeps in the user's.
// Those may be read, as they go with the ~/.cargo/bin of a PATH.
void add_toolchains(const Environment& environment, std::vector<std::string>& variables);

// The absolute path that the operator gave for a canonical one. The sandbox must see it: it refuses
// links which a command could have put there, and canonical paths have none.
std::string path_as_given(const std::string& canonical, const LocalOptions& options);

// The sandbox calls grants what are roots here, or the workspace.
SharedError in_words_of_roots(Error error, const LocalOptions& options);

// Adds to the options of the sandbox what the executor's options imply; the spill_dir is the one in
// use.
Expected<void> complete_sandbox(const LocalOptions& options, const std::string& spill_dir,
                                const std::vector<Root>& roots, const std::string& workspace,
                                SandboxOptions& sandbox, std::vector<std::string>& missing);

// Which shell, which Python: what holds wherever commands run.
std::string facts_of_shell(const std::string& shell, const EnvironmentOptions& environment);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
