// Containers: one per agent or user, images, credentials, packages, logs.
#pragma once

#include "agent/agent.hpp"
#include "base/base.hpp"
#include "environment/environment.hpp"
#include "executor/executor.hpp"
#include "files/files.hpp"
#include "json/json.hpp"
#include "paths/paths.hpp"
#include "policy/policy.hpp"

namespace codeexec {
inline namespace v0_1 {

// The program that speaks to a container engine. It is always called with an argv, never through a
// shell, and gets the host's variables (DOCKER_HOST, DOCKER_CONFIG, the proxy's). Every call is
// bounded in time.
struct EngineOptions {
  std::string program = "docker";  // or podman or nerdctl, or a path
  // The engine of another machine by the program's own means: a context (--context), or an address
  // as DOCKER_HOST has it (--host). Empty: as the program finds it by itself.
  std::string context = {};
  std::string host = {};
  std::chrono::milliseconds call_timeout = std::chrono::seconds(15);  // of small calls
  std::chrono::milliseconds run_timeout = std::chrono::seconds(60);   // of making a container
  std::chrono::milliseconds pull_timeout = std::chrono::minutes(10);  // of fetching an image
};

// When the image of a container is pulled.
enum class ImagePolicy {
  never,    // it must be there
  missing,  // is pulled when it is not
  always,   // is pulled first
};
const char* name(ImagePolicy policy) noexcept;

enum class ContainerNetwork {
  none,    // nothing but its own loopback
  bridge,  // the engine's network: it reaches the world, and the host by its address
  host,    // the host's own
};
const char* name(ContainerNetwork network) noexcept;

// A file or directory of the host that a container sees.
struct Mount {
  std::string source = {};  // must exist; links are followed first; `~/` is the home directory
  std::string target = {};  // absolute; empty: the same path
  Permission permission = Permission::read;
};

// One container and its rights. Hardened unless an option says otherwise: no capabilities, no new
// privileges, the engine's own seccomp filter, a read-only root with a /tmp of
// its own, bounds on memory, processors, processes and descriptors.
struct ContainerOptions {
  EngineOptions engine = EngineOptions();
  std::string image = {};  // empty: codeexec/runtime:latest, with sudo codeexec/runtime-sudo:latest
  ImagePolicy image_policy = ImagePolicy::missing;
  // Commands may become root by sudo: no capabilities are dropped, new privileges are allowed and
  // the root is writable.
  bool sudo = false;
  ContainerNetwork network = ContainerNetwork::none;
  // A network that the engine has by that name, in place of `network`. Empty: none.
  std::string network_name = {};
  // More options of the engine's `run`, by their long names and without dashes: "runtime=runsc",
  // "device=/dev/fuse", "privileged". Only the engine checks them; those that this library
  // sets itself are errors. on_progress reports those that weaken the container.
  std::vector<std::string> engine_options = {};
  std::uint64_t memory = std::uint64_t{2} << 30;      // bytes, swap included; 0: no bound
  double cpus = 2;                                    // processors; 0: no bound
  std::uint64_t pids = 256;                           // processes and threads; 0: no bound
  std::uint64_t shm_size = std::uint64_t{64} << 20;   // bytes of /dev/shm
  std::uint64_t tmp_size = std::uint64_t{512} << 20;  // bytes of /tmp
  // More directories like /tmp, that everybody can write to: absolute paths and their sizes. What
  // is in them lasts as long as the container runs.
  std::vector<std::pair<std::string, std::uint64_t>> scratch = {};
  // Of the root. Empty: yes, unless sudo or packages need to write to it.
  std::optional<bool> read_only_root = {};
  // The user of commands: UID:GID, or a user of the image. Empty: the owner of the workspace.
  std::string user = {};
  // Files and directories of the host, besides the roots of the executor.
  std::vector<Mount> mounts = {};
  Variables environment = {};  // of its commands
  // A volume of the engine's, codeexec-cache-NAME, that keeps what pip, uv, npm, cargo and go fetch
  // beyond the container, for all containers with that name. Empty: none.
  std::string cache = {};
  // Files and variables of the user that the container gets. None by default, but for git_identity
  // of ExecutorOptions. Values never stand in an argv, a log, an audit record or an error; they are
  // masked in the output of commands, but for those of fewer than 4 bytes, numbers of up to 5
  // digits and words like true, localhost or production.
  //   Names, each mounted read-only where the container's home has it, and only if it is there:
  // ssh_keys (~/.ssh), git_config (~/.gitconfig), gh_config (~/.config/gh), npm_config (~/.npmrc),
  // pypi_config (~/.pypirc), claude_config (~/.claude), codex_config (~/.codex), gemini_config
  // (~/.gemini).
  std::vector<std::string> credentials = {};
  // Variables; later ones win over earlier ones: of the file (see parse_env_file), only those
  // in env_vars_from_file when that is not empty (one that it does not have is an error); all of
  // the host, but for those below; those of the host that env_vars names, as far as they are set.
  //   Of all of the host, these are left out, which belong to its system, its session and its
  // programs: _ PATH HOME PWD OLDPWD SHELL USER USERNAME LOGNAME HOSTNAME TMPDIR TMP TEMP TEMPDIR
  // TERM TERMCAP TERMINFO* COLUMNS LINES LS_COLORS LESSOPEN LESSCLOSE SHLVL SHELLOPTS BASH* ENV IFS
  // CDPATH PS1 PS2 PS4 PROMPT_COMMAND MAIL LD_* DYLD_* GCONV_PATH LOCPATH XDG_* DBUS_* DISPLAY
  // WAYLAND_* XAUTHORITY SSH_* GPG_* SUDO_* DOCKER_* CONTAINER_* BUILDKIT_* INVOCATION_ID
  // JOURNAL_STREAM NOTIFY_SOCKET LISTEN_* SYSTEMD_* VIRTUAL_ENV* PYTHONHOME PYTHONPATH CONDA_*
  // _CE_* NVM_* CODEEXEC_*; and of the rest are not masked LANG LANGUAGE LC_* TZ COLORTERM NO_COLOR
  // FORCE_COLOR EDITOR VISUAL PAGER MANPAGER and paths that the host has.
  //   A line of the file that is none is left out, which on_progress reports.
  //   Names are of letters of ASCII, digits and _. At most 128 KiB each, 1 MiB together.
  std::string env_file = {};
  std::vector<std::string> env_vars_from_file = {};
  bool pass_all_env = false;
  std::vector<std::string> env_vars = {};
  std::vector<std::string> secrets = {};  // values that are masked in output, logs and records
  // Packages that are installed when the container is made, in this order, as they are written,
  // each as one argument: "requests>=2.31.0".
  std::vector<std::string> system_packages = {};  // by apt-get; needs sudo
  std::vector<std::string> python_packages = {};  // by pip
  std::vector<std::string> npm_packages = {};     // by npm, globally; needs sudo
  bool packages_required = false;                 // a failure fails the container
  std::chrono::milliseconds package_timeout = std::chrono::minutes(10);  // of each of the three
  // Whose container it is. With the same two, and the same options, a persistent container is found
  // again. Any text.
  std::string agent_id = {};
  std::string instance_id = {};
  // It outlives the program and is used again. Otherwise it is removed when the last handle goes
  // away, and when the program dies, however that happens.
  bool persistent = false;
  // The agent, which starts the commands in the container: a static codeexec-mcp of the engine's
  // machine, or another program that calls agent_main() for the argument --place; it is mounted
  // read-only. Empty: the codeexec-mcp that the image has.
  std::string agent = {};
  std::chrono::milliseconds start_timeout = std::chrono::seconds(15);  // of the agent
  // Written when the container is removed: see ContainerExecutor::save_log(). Empty: nowhere.
  std::string log_file = {};
  Function<void(std::string_view)> on_progress = {};  // a line each: pulling, installing
};

// The options of a container, checked and complete: paths canonical, defaults filled in. Errors
// name the option. Asks no engine.
Expected<ContainerOptions> complete(const ContainerOptions& options);

// Variables of a file in the grammar of .env files: lines NAME=value, blank ones and those that
// begin with #, with or without blanks (spaces and tabs) at the start. A NAME has letters of ASCII,
// digits and _, and does not begin with a digit; `export ` may stand before it, and blanks around
// the =.
//   A value without quotes ends before a # that follows a blank and at the end of the line, and has
// no blanks around it. One that begins with a quote goes up to the next one, over lines, too; only
// a comment may follow it. In single quotes everything is itself; in double quotes \n \r \t are
// what they are in C, \" \\ \$ the second character, and other backslashes themselves. Nothing is
// expanded. A byte order mark at the start is skipped. \r\n is a line end, which is \n in a value.
// Of two with one name the later value counts, in the place of the first.
//   Errors: parse with the offset and the number of the line, never with its text (a NUL is one,
//   too); limit for more than 1 MiB.
//   With `skipped`, a line that is no such thing is left out, and its number is put there, of
// at most 16 lines.
Expected<Variables> parse_env_file(std::string_view text,
                                   std::vector<std::string>* skipped = nullptr);

// Sets the options of a container from what a configuration file has. After an error some are set.
// Every key may be left out; one that is not known, or of
// another kind, is an error that names it (invalid_argument). A mount's mode is "ro" unless said.
//   {"mount": [NAME], "additional_mounts": {SOURCE: {"bind": TARGET, "mode": "ro" or "rw"}},
//    "env_file": PATH, "env_vars": [NAME], "env_vars_from_file": [NAME], "pass_all_env": BOOL}
Expected<void> credentials_from_json(const Json& value, ContainerOptions& options);
//   {"preinstall": {"python": [], "npm": [], "system": []}, "required": BOOL, "timeout": SECONDS}
Expected<void> packages_from_json(const Json& value, ContainerOptions& options);

// A container as its engine describes it. Empty but for the name and the image when there is none.
struct ContainerInfo {
  bool exists = false;
  std::string id = {};
  std::string name = {};
  std::string image = {};
  std::string created = {};  // RFC 3339
  std::string status = {};   // created, running, paused, restarting, removing, exited or dead
  bool running = false;
  int exit_code = 0;
  std::string error = {};
  std::string started_at = {};  // RFC 3339
  std::string finished_at = {};
  bool oom_killed = false;
  int pid = 0;  // of its first process, on the engine's machine
  // What it uses at the moment. Only ContainerExecutor::stats() sets it, and these alone.
  double cpu_percent = 0;          // of one processor: 200 is two of them
  std::uint64_t memory = 0;        // bytes in use
  std::uint64_t memory_limit = 0;  // bytes
  std::uint64_t pids = 0;          // processes and threads
};
// {"id","name","image","created","status","running","exit_code","error","started_at","finished_at",
//  "oom_killed","pid"}.
Json to_json(const ContainerInfo& info);

struct ContainerExecutorOptions : ExecutorOptions {
  // Its agent_id is taken from the executor's; the roots (the workspace, when there are none)
  // become mounts by their permission, at the same path as on the host.
  ContainerOptions container = ContainerOptions();
  // Its `keep`, `keep_all` have no effect: nothing of the host's environment travels.
  EnvironmentOptions environment = EnvironmentOptions();
};

// Runs commands in a container. Everything that holds for LocalExecutor holds here, in the
// container: deadlines kill there, both streams are apart, nothing of a command outlives it. The
// command gets PATH from the image, HOME=/tmp unless the image's user has one that it can write to.
//   The container is made by the first command, and again whenever it is not there: a command never
// runs anywhere else. The first run() or start() takes as long as making one. A Result says in
// `message` when the container had to be killed for it.
//   A handle: copies share the container, which is removed with the last one unless it is
// persistent. Containers are known by their labels (codeexec.managed and others), never by their
// names: one without our labels is never touched.
//   In a fork of the program, which has no part in the container, its commands do not start.
//   All members are safe from any thread. Errors are those of the engine, with what to do about
// them.
class ContainerExecutor : public Executor {
 public:
  // Asks no engine: a missing one is reported by the first command.
  static Expected<ContainerExecutor> create(const ContainerExecutorOptions& options,
                                            const ExecutorWings& wings);
  static Expected<ContainerExecutor> create(const ContainerExecutorOptions& options) {
    return create(options, ExecutorWings::all());
  }

  std::string describe_place() const override;
  const std::string& container_name() const noexcept;
  const ContainerOptions& container_options() const noexcept;  // complete()

  // Makes the container, starts it, wakes it from a pause, or makes it anew when it was made with
  // other options. Does nothing when it is known to run. Packages are installed here.
  Expected<void> ensure(const std::optional<CancelToken>& cancel = {}) const;
  Expected<ContainerInfo> info() const;
  Expected<ContainerInfo> stats() const;

  // Ends all that runs in it, and keeps it. (One that is not persistent is removed by that.)
  Expected<void> stop() const;
  // Removes it with all that runs in it, after its log was saved.
  Expected<void> remove() const;

  // Writes the log of this library: commands with their times, outcomes and the heads
  // and tails of their output, and what was done to the container; its last 1 MiB at most.
  // Header lines `# Docker Container Logs for agent: ...` and state of the container before it.
  // Makes directories; mode 0600.
  Expected<void> save_log(const std::string& path) const;
  // Adds a line to it; secrets are masked.
  void log(std::string_view event) const;

 private:
  friend class ContainerManager;
  friend class UserContainers;
  class Exec;
  struct Target;
  ContainerExecutor() = default;
  Expected<void> place(const Command& command, Admission& admission) const override;
  std::shared_ptr<const Executor> copy() const override;
  std::shared_ptr<Target> target_ = {};
};

// Containers of many agents. All members are safe from any thread.
class ContainerManager {
 public:
  // Asks no engine. Each executor that is made here uses this one.
  explicit ContainerManager(EngineOptions engine = {});
  // The executor of an agent: made at first, then always the same one.
  //   Errors: those of ContainerExecutor::create(); invalid_argument when the same agent asks with
  //   another image, workspace or network.
  Expected<ContainerExecutor> executor(const ContainerExecutorOptions& options,
                                       const ExecutorWings& wings);
  Expected<ContainerExecutor> executor(const ContainerExecutorOptions& options) {
    return executor(options, ExecutorWings::all());
  }
  std::vector<std::string> agents() const;
  // Removes one, or all of them at the same time. With `log_dir` the logs go to
  // <log_dir>/<agent>/docker_container.log.
  Expected<void> cleanup(const std::string& agent_id, const std::string& log_dir = {});
  Expected<void> cleanup_all(const std::string& log_dir = {});
  // Removes containers that programs of this user on this machine have left, and that have ended
  // since: by label and by the identity of the process, never by name. Persistent containers stay,
  // but for those that never ran. Returns how many went.
  Expected<std::size_t> reap_orphans() const;

 private:
  struct State;
  static Expected<void> remove(const std::vector<ContainerExecutor>& gone,
                               const std::string& log_dir);
  std::shared_ptr<State> state_;
};

// The containers of an engine that programs of ours have made, with their agent_id. With
// `remove_left` those are removed that programs of this user on this machine have left which are
// gone: by label and by the identity of the process, never by name. Persistent containers stay, but
// for those that never ran.
//   Errors: those of the engine; the first container that cannot be removed ends it.
Expected<std::vector<FoundPlace>> container_places(const EngineOptions& engine,
                                                   bool remove_left = false);

struct UserContainerOptions {
  // Its image, when empty, is codeexec/executor:latest; its user, when empty, 1000:1000, who is
  // `coderunner` there; its agent_id is the user's id.
  ContainerOptions container = ContainerOptions();
  std::string tools_dir = {};   // mounted read-only as /tools; empty: there is none
  std::string skills_dir = {};  // mounted read-only as /skills; empty: there is none
  std::uint64_t workspace_size = std::uint64_t{512} << 20;  // bytes of /workspace, in memory
  std::uint64_t artifacts_size = std::uint64_t{256} << 20;  // bytes of /artifacts, likewise
  std::uint64_t max_artifact = std::uint64_t{50} << 20;     // bytes of a file that is handed over
  std::chrono::milliseconds timeout = std::chrono::seconds(30);  // of a command
  PolicyOptions policy = PolicyOptions();  // of commands; its enable_sudo is set
  // Of all that is done for users; see ExecutorOptions.
  std::string audit_file = {};
  std::string audit_key = {};
  std::string audit_syslog = {};
  std::size_t audit_output = 0;
};

// One container for each user, with /tools and /skills, a /workspace and /artifacts of its own.
// Nothing of the host's file system but those two folders is seen. All members are safe from any
// thread; calls for one user that make its container wait for each other.
class UserContainers {
 public:
  static Expected<UserContainers> create(const UserContainerOptions& options,
                                         const ExecutorWings& wings);
  static Expected<UserContainers> create(const UserContainerOptions& options) {
    return create(options, ExecutorWings::all());
  }

  // By bash, or sh when the image has none; of a Command `script` counts and what is about output,
  // times and cancelling. An error when there is no container to be had.
  Expected<Result> execute_bash(const std::string& user_id, Command command) const;
  Expected<Result> execute_bash(const std::string& user_id, const std::string& command,
                                std::optional<std::chrono::milliseconds> timeout = {}) const;
  // `count` lines from line `offset` (0: the first); empty: to the end. At most 1 MiB.
  Expected<std::string> read_file(const std::string& user_id, const std::string& path,
                                  std::uint64_t offset = 0,
                                  std::optional<std::uint64_t> count = {}) const;
  // Whole or not at all; of any length up to 64 MiB. Returns the bytes written.
  Expected<std::uint64_t> write_file(const std::string& user_id, const std::string& path,
                                     std::string_view content) const;
  // Of a module of /tools ("pkg.module") or of a file in the container; read as text, never run.
  Expected<std::string> read_docstring(const std::string& user_id,
                                       const std::string& module_or_path,
                                       const std::string& function) const;
  // Files in /artifacts, in the order of their names: their `path`, which is a name, and `size`.
  Expected<std::vector<FileEntry>> list_artifacts(const std::string& user_id) const;
  Expected<std::string> get_artifact(const std::string& user_id, const std::string& name) const;

  // Both remove the container: /workspace and /artifacts, which are memory, are lost.
  Expected<void> stop(const std::string& user_id) const;
  Expected<void> cleanup(const std::string& user_id) const;
  Expected<void> cleanup_all() const;

  // As create() has completed them.
  const UserContainerOptions& options() const noexcept;

 private:
  class User;
  struct State;
  UserContainers() = default;
  std::shared_ptr<State> state_ = {};
};

}  // namespace v0_1
}  // namespace codeexec
