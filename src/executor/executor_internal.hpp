// What the parts of the executor share: audit, files in danger, sessions.
#pragma once

#include "executor/executor.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "environment/environment.hpp"
#include "json/json.hpp"
#include "paths/paths.hpp"
#include "policy/policy.hpp"
#include "process/process.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// A single argument or variable may have 128 KiB on Linux (MAX_ARG_STRLEN), its NUL included.
// Scripts that do not fit are handed to the shell as a file.
inline constexpr std::size_t longest_inline_script = (std::size_t{128} << 10) - 1;

// In a session they come in parts of it, because all arguments together may have 2 MiB.
inline constexpr std::size_t longest_session_script = std::size_t{1} << 20;
// What a command of a session may tell of what it leaves.
inline constexpr std::size_t longest_session_text = std::size_t{256} << 10;

// Audit records hold at most this much of a command, and of code.
inline constexpr std::size_t longest_audited_text = std::size_t{16} << 10;

// 60 s as "60", 1500 ms as "1.5", -250 ms as "-0.25", no_limit as "unlimited".
std::string seconds_text(std::chrono::milliseconds time);

// The present as RFC 3339 in UTC with milliseconds: 2026-01-31T12:00:00.250Z.
std::string utc_timestamp();

// Errors that say nothing about the command, but that the system is short of something.
bool is_shortage(int error);

// A file that only its descriptor knows, with `content` in it and read from the start.
Expected<UniqueFd> anonymous_file(std::string_view content);

bool is_program(const std::string& path);

// The canonical path of a directory that an option names, with the rights `mode` of access(2) to
// it. An empty option stays empty.
Expected<std::string> usable_directory(const char* option, const std::string& given, int mode);

// The audit log, to be appended to. Only what takes every write at once is good enough: a pipe
// would block the commands, or end the host with SIGPIPE.
Expected<UniqueFd> open_audit_file(const std::string& path);

// Never replaces what is there: it may be the user's own.
Expected<void> link_skills(const std::string& workspace, const std::string& skills_dir);

Json list_of(const std::vector<std::string>& texts);

// What the audit log and the result of the tool tell alike, where it applies.
void set_sandbox_fields(Json& object, const Result& r);

// What an access of a command comes to on the disk as it is now.
struct Target {
  const FileAccess* access = nullptr;
  std::vector<std::string> files = {};  // canonical: one, or those that a pattern stands for
  std::string directory = {};           // of a pattern: where all it can ever stand for lies
};

// Files that the user's own tools run or obey later, outside of any sandbox, as they are at one
// moment: in each of some directories, those that LocalOptions::watch_files names. What the kernel
// keeps of a file tells a change: no command can set back st_ctime.
class WatchedFiles {
 public:
  static constexpr std::size_t max_directories = 64;
  static constexpr std::size_t max_files = 8192;       // in all
  static constexpr std::size_t max_entries = 256;      // of one directory
  static constexpr std::size_t max_listed = 4096;      // of one that is watched
  static constexpr std::size_t max_repositories = 64;  // directly below one that is watched
  static constexpr std::size_t max_changes = 100;

  // Nothing.
  WatchedFiles() = default;
  explicit WatchedFiles(std::vector<std::string> directories, bool below = true);

  // Paths of those that are others now than they were then, are new, or have gone.
  std::vector<std::string> changes() const;

 private:
  using Print = std::array<std::uint64_t, 9>;
  // A watched directory, and its path with a slash at the end.
  struct Place {
    int fd;
    std::string start;
  };

  // Of a directory only which one it is: its times change with every file in it.
  static Print print_of(const struct stat& status);
  static bool is_another(const std::pair<const std::string, Print>& known);
  static std::string text_of(const Place& place, const std::string& file);

  // True when it is a directory (and not a link to one).
  bool look_at_one(const Place& place, const std::string& file);
  // Of a folder that holds what is like repositories, the settings of each.
  void look_at_entries(const Place& place, const std::string& path, bool repositories = false);
  void look_at_settings(const Place& place, const std::string& git);
  void look_at_repository(const Place& place, const std::string& git);
  // Those of watched_paths that begin with an entry; all of them when that is empty.
  void look_at_watched(const Place& place, std::string_view entry);
  void look_at(const std::string& directory);

  std::vector<std::string> directories_ = {};
  bool below_ = true;  // whether repositories below are looked at: not where there are too many
  std::size_t left_ = max_files;
  std::map<std::string, Print> prints_ = {};
};

std::string joined(const std::vector<std::string>& texts, std::string_view separator);

}  // namespace inner

struct Session::State {
  static constexpr std::size_t max_variables = 256;
  static constexpr std::size_t max_bytes = std::size_t{64} << 10;

  std::mutex mutex = {};
  std::string work_dir = {};
  // By name; those without a value were unset.
  std::map<std::string, std::optional<std::string>> changes = {};
  std::uint64_t resets = 0;

  bool take(const detail::SessionState& told, const std::string& folder, std::uint64_t reset);
};

inline namespace inner {

// The value that a list of NAME=value has for a name; null when it has none.
const char* value_of(const std::vector<std::string>& variables, std::string_view wanted);

// Without a network, package managers try for a minute or more unless they are told not to.
std::vector<std::string> offline_variables(Network network);

// With a home of their own commands do not find the toolchains that rustup keeps in the user's.
// Those may be read, as they go with the ~/.cargo/bin of a PATH.
void add_toolchains(const Environment& environment, std::vector<std::string>& variables);

// The absolute path that the operator gave for a canonical one. The sandbox must see it: it refuses
// links which a command could have put there, and canonical paths have none.
std::string path_as_given(const std::string& canonical, const LocalOptions& options);

// The sandbox calls grants what are roots here, or the workspace.
Error in_words_of_roots(Error error, const LocalOptions& options);

// The options of the sandbox with all that the executor's options imply.
Expected<SandboxOptions> complete_sandbox(const LocalOptions& options,
                                          const std::vector<Root>& roots,
                                          const std::string& workspace,
                                          std::vector<std::string>& missing);

// A script as an argument of a shell. The blank keeps one like "-x" from being read as an option.
std::string as_operand(const std::string& script);

// A prefix, if there is one, goes before the command line as a whole, never before its first simple
// command only: the shell that reads the prefix gets the rest as arguments.
std::vector<std::string> prefixed(const std::string& prefix, const std::string& shell,
                                  std::vector<std::string> words);

// Which shell, which Python: what holds wherever commands run.
std::string facts_of_shell(const std::string& shell, const EnvironmentOptions& environment);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
