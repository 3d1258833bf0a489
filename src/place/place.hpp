// Commands on another machine, in a container, anywhere that a pipe leads to.
#pragma once

#include "agent/agent.hpp"
#include "base/base.hpp"
#include "environment/environment.hpp"
#include "executor/executor.hpp"
#include "paths/paths.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

// Makes a place and removes it, such as a job of a cluster. One executor has it, and calls it from
// one thread at a time.
class PlaceEngine {
 public:
  struct Way {
    std::string name = {};                    // what the place is called in results and messages
    std::vector<std::string> transport = {};  // as PlaceOptions::transport
    bool whole_lines = false;                 // the transport holds back what ends in no newline
    CancelToken ended = {};  // cancelled when the place has ended, if the engine notices that
    // Returns why the place has ended, on one line; empty: not known. Called once when the
    // connection was lost, in a thread of the library and perhaps after the engine has gone. It
    // should take some seconds at most, for which the ends of commands there wait.
    Function<std::string()> account = {};
  };

  PlaceEngine() = default;
  PlaceEngine(const PlaceEngine&) = delete;
  PlaceEngine& operator=(const PlaceEngine&) = delete;
  // Removes the place.
  virtual ~PlaceEngine();
  // Makes the place if there is none, and waits until it is up. A cancel is an error with
  // ECANCELED.
  virtual Expected<Way> reach(const std::optional<CancelToken>& cancel) = 0;
  // The way to the place that reach() has made last, as long as that is there; makes none.
  //   Errors: not_found when it has ended, or an engine does not know.
  virtual Expected<Way> current();
};

// Keeps places ready, so that an executor that needs one has it at once. Copies share them. Safe
// from any thread. It has `size` threads of its own, 16 at most, and makes as many places at a
// time.
//
// A place that has ended while it was kept is replaced. A failure is reported once, and stops the
// pool until an executor needs a place: then one is made, or the executor gets the error. While n
// executors wait, n places are being made, or as many as there are threads.
class PlacePool {
 public:
  // Returns an engine whose place is still to be made; null is a failure. Called from several
  // threads at once.
  using Source = Function<std::shared_ptr<PlaceEngine>()>;

  // Begins to make them. `on_failure` gets the error of a place for which no executor waits, in any
  // thread.
  //   Errors: invalid_argument for a size of 0 or above 1000.
  static Expected<PlacePool> create(Source source, std::size_t size,
                                    Function<void(const Error&)> on_failure = {});
  // For PlaceOptions::engine. The engine takes a ready place when its first command comes, and
  // another one when that place has ended; its destructor removes the last one. The destructor of
  // the last copy of the pool removes all ready places and waits for that; after it the engine
  // takes no more.
  std::shared_ptr<PlaceEngine> take() const;
  std::size_t ready() const;  // how many places are ready

 private:
  class Taken;
  struct State;
  PlacePool() = default;
  std::shared_ptr<State> state_ = {};
};

// Where the workspace of a place is.
enum class PlaceWorkspace {
  shared,  // here and there, the same files under the same path
  remote,  // only there
  copy,    // here, and copied there for the commands
};
const char* name(PlaceWorkspace workspace) noexcept;

struct PlaceOptions : ExecutorOptions {
  // Program and arguments whose standard streams lead to an agent (`codeexec-mcp --place`, or
  // place_main()), such as {"ssh", "-T", "box", "codeexec-mcp", "--place"}. Started without a
  // shell, with the variables of this process, and again when the connection was lost.
  std::vector<std::string> transport = {};
  // In place of a transport: what makes the place when the first command needs it, or the executor
  // is created for a workspace that is only there, see slurm_jobs() and kubernetes_pods(). Its own;
  // no two executors share one.
  std::shared_ptr<PlaceEngine> engine = {};
  // A static `codeexec-mcp` for the place, or another program that calls place_main() for the
  // argument --place. It is copied once: the transport then leads to a POSIX shell there, such as
  // {"ssh", "-T", "box", "sh"}, which puts it, by the name of its version and SHA-256 and checked
  // by that each time, into a folder that its user alone may enter: in $XDG_CACHE_HOME or
  // ~/.cache, in ~, in /var/tmp or /tmp. Nothing removes it. Empty: an agent is at the other end.
  std::string agent = {};
  // With `remote`, the workspace, the roots and EnvironmentOptions::venv_path are looked up there
  // once, from the directory that the agent starts in; a `~` at their start is its home. So is each
  // work_dir, by one message more of a command that names one: that it is not there is reported
  // when the command starts. Executor::files() are those of the place, but for the spill_dir, which
  // is here. A root of less than Permission::write must lie in none that commands may change, and
  // the sandbox must hold there, which alone keeps commands from it. Result::venv is empty, as the
  // agent finds it, and a PATH of EnvironmentOptions::set does not get its `bin`. There can be no
  // delete_guard, which remembers files of this host.
  //
  // With `copy`, workspace and roots are those of this host, and so are Executor::files(). The
  // changes of this side are sent before a command starts, and those of the other side are fetched
  // when it has ended; one copy is made at a time. The folder there has the same path if an empty
  // folder can be made or found at that, or PlaceFacts::workspace; it is removed when the
  // connection ends. A change is found by size, times and mode, and is a whole file. A file that
  // has changed on both sides stays as it is on each, and a note says so, until one of them is
  // removed. Rights are copied, owners and setuid are not; a hard link becomes a file. Changes of
  // files that commands may not write do not come back. If the connection is lost, so are the
  // changes of the commands that ran. The list takes up to 250 bytes and the path for each file, at
  // each end.
  PlaceWorkspace workspace_mode = PlaceWorkspace::shared;
  // Of a workspace that is copied, on either side, folders included. If there are more, nothing is
  // copied, and a command does not start. 0: none may be there.
  std::uint64_t copy_max_files = 100000;
  std::uint64_t copy_max_bytes = std::uint64_t{1} << 30;  // of the sizes of all files
  // Lines as of a .gitignore in the workspace, at most 1,024: these files are not copied, and stay
  // where they are.
  std::vector<std::string> copy_exclude = {};
  // The .gitignore files of each side count as well: 1,024 lines of those for one folder, and
  // 64 KiB of each.
  bool copy_gitignore = false;
  // For results and messages. Empty: the words of the transport.
  std::string name = {};
  // Its `set` and `secret` count, and venvs, which lie in the workspace; nothing is kept of this
  // host. All other variables are the agent's own.
  EnvironmentOptions environment = EnvironmentOptions();
  // What the agent holds its commands to, by the kernel there. Its `writable` and `readable` are
  // added to: the roots by their permission (the workspace, when there are none).
  SandboxOptions sandbox = SandboxOptions();
  // Of reaching the place, until its agent has answered. A copy has a second more for each 32 kB.
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(20);
  // After so long without a sign of life each end gives up: commands there are killed by the agent,
  // and end here as Outcome::unknown. At least one second.
  std::chrono::milliseconds keep_alive = std::chrono::seconds(30);
};

// The transport that leads to an agent over ssh, with the user's own configuration of it: it asks
// no questions (BatchMode), so that an unknown host key or a password is a failure. Without a name
// of the agent it leads to a shell, for PlaceOptions::agent.
//   Errors: invalid_argument for a host that is empty or would be read as an option.
Expected<std::vector<std::string>> ssh_transport(const std::string& host,
                                                 const std::string& agent = "codeexec-mcp");

// Runs commands in a place that is not this host, through an agent that runs there. Policy, roots,
// masking, sessions, output and audit stay on this side. The workspace and the roots must be the
// same files there under the same paths, of which the workspace is tried each time the place is
// reached, with a file that is made there for a moment; or they are only there.
//
// One connection serves all commands, of which each costs one message there and one back. When it
// is lost, all of them end as Outcome::unknown with a message, none is run again, and the next
// command opens a new one. It holds at most (1 + ln n) times 16 MiB and n times 512 KiB of output
// that n running commands have written and the program has not read, and as much of their input.
// Safe from any thread, with one thread of its own. In a fork of the program its commands do not
// start: a fork makes an executor of its own.
class PlaceExecutor : public Executor {
 public:
  // Reaches the place, unless it is still to be made. PolicyOptions::enable_sudo counts: root is
  // not the host's.
  //   Errors: io, with what the transport said and what to do about it; unsupported for an agent of
  //   another protocol, for a workspace that is not the same there, for a strict sandbox that
  //   cannot be had there.
  static Expected<PlaceExecutor> create(const PlaceOptions& options, const ExecutorWings& wings);
  static Expected<PlaceExecutor> create(const PlaceOptions& options) {
    return create(options, ExecutorWings::all());
  }

  // Makes and reaches the place, where no command has done that yet.
  Expected<void> reach(const std::optional<CancelToken>& cancel = {}) const;
  // As they were when the place was reached last; empty before.
  PlaceFacts facts() const;
  std::string describe_place() const override;

 private:
  struct Target;
  PlaceExecutor() = default;
  Expected<void> place(const Command& command, Admission& admission) const override;
  std::shared_ptr<const Executor> copy() const override;
  std::string home(const Command& command, std::string_view work_dir) const override;
  std::shared_ptr<Target> target_ = {};
};

// The agent of another machine: agent_main(), with workspaces that are only there or copied.
// For files of these it starts its own program once more, with the one argument --place, which must
// then call this with the standard streams.
int place_main(int in, int out);

}  // namespace v0_1
}  // namespace codeexec
