// One container, and the commands in it.
//
// Two agents of the room `agent` work in a container:
//
//   this program                          the container
//   holder ------ run -i ---- stdin ----> first process: an agent of root's. It prepares the
//                                         container, then reads its input until that ends.
//   AgentLink --- exec -i --- stdin ----> second agent: runs as the commands' user. It starts all
//                                         commands, and kills them when its input ends.
//
// When this program dies, both inputs end. The commands are killed, the first process returns, and
// the engine removes the container, which was made with --rm. In a persistent container the engine
// holds the input of the first process, and nothing is removed.
//
// The life of a container, as Container::ensure() drives it:
//
//            look for a container of that name, if there may be one
//               |                 |                         |
//             none     ours, for the same agent          another's: an error
//               |                 |
//               |      same options, and it runs or can be started, unpaused?
//               |         |no                               |yes: reuse()
//               |         | used by another program: error  |
//               |         | else clear() removes it         |
//               v         v                                 |
//            create():  `run` ............ get_image() when `run` finds no image
//                       the agent ........ folders, user, mounts are checked: check_answer()
//                       install() ........ packages, once for each container
//               |                                           |
//               v                                           v
//            running  <---- forget(): a command found it gone; the next ensure() looks again
//               |
//               +-- stop() ----> a persistent one is killed and stays; others are removed
//               +-- remove() --> the log is saved, then `rm -f`
//               +-- the last executor goes: as remove(), unless it is persistent
//
//   state    event                                      next     function
//   unknown  a command comes, the engine has none       running  ensure() -> make() -> create()
//   unknown  one of ours with these options, that runs  running  make() -> reuse(), which starts
//            or can be started                                   or unpauses it
//   unknown  one of ours with others, which is unused   running  make() -> clear(), create()
//   unknown  one of ours that another program uses      unknown  make() -> check_unused(): error
//   unknown  another's has the name                     unknown  make() -> foreign(): error
//   unknown  it cannot be made, or a cancel             unknown  make() -> discard()
//   running  a command does not begin in time           unknown  Exec::wait_for_start() ->
//                                                                forget(), and at once ensure()
//   running  the agent of a command is lost             unknown  Exec::recover() -> forget()
//   running  the connection of all commands is lost     unknown  Target::connect() -> forget()
//   running  the program that holds it has ended        unknown  is_up(); make() says so
//   each     stop() of a persistent one                 unknown  stop()
//   each     remove(), ~Container()                     unknown  begin_removal(),
//                                                                finish_removal()
//
// What holds: in `running`, this program has seen it run and nothing has said otherwise since; one
// that is not persistent has a holder besides, whose end is the end of the container. In
// `unknown`, no command is started; made says whether there may be one to look for, and a
// persistent one may always be there. A step that changes the container has the turn (busy), and
// its end sets the state. started_at is of the container that was made or found last: one that was
// started again has another.
#pragma once

#include "docker/docker.hpp"
#include "docker/docker_internal.hpp"

#include "agent/command_internal.hpp"
#include "agent/identity_internal.hpp"
#include "agent/link_internal.hpp"
#include "agent/nonce_internal.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "environment/environment.hpp"
#include "executor/executor_internal.hpp"
#include "executor/network_internal.hpp"
#include "json/json.hpp"
#include "paths/paths.hpp"
#include "process/capture_internal.hpp"
#include "process/child_internal.hpp"
#include "process/process.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// Whether the program that made a container still runs, by the labels of the container.
std::optional<bool> maker_of_container(const Json& container, const ProgramIdentity& own);

// True if another program made it, and that program still runs as far as can be seen from here.
bool has_other_maker(const Json& container, const ProgramIdentity& own);

// A text as a part of a name: letters, digits, _ . and -, at most so many.
std::string plain_name(std::string_view text, std::size_t longest);

// The user of commands, as UID:GID: the owner of the first directory that they may write to.
std::string user_of(const ContainerOptions& options);

bool is_number(std::string_view text);

// Reads the answer of `inspect`. The caller sets the name and the image.
ContainerInfo info_of(const Json& container);

// "1.5MiB", "12.3kB", "0.25%": the number, times its unit, and no more than fits into an integer.
double number_with_unit(std::string_view text);

// Where an agent that is not the image's own is mounted.
inline constexpr char agent_target[] = "/.codeexec-mcp";
// Files with random content in the mounted folders, while a container is made. If the container
// does not see them, its engine is on another machine, which has other folders at these paths. A
// folder that this program cannot write to is not compared.
using Nonces = std::list<Nonce>;

// Runs an installer, and kills it when standard input ends: this program has given up or died.
inline constexpr char install_script[] =
    "exec 3<&0 </dev/null; { read -r _ <&3; kill -KILL -$$; } & w=$!; exec 3<&-; "
    "\"$@\"; r=$?; kill -KILL $w; exit $r";

}  // namespace inner

// The plan of a container: its options, its name, and the words for the engine and the agent that
// follow from them. Calls no engine itself. (Not in `inner`, like Container below:
// ContainerExecutor has members of these types.)
struct ContainerPlan {
  // `given` must be complete().
  explicit ContainerPlan(ContainerOptions given);

  // The arguments of `run` that the options make, with the command. `version` is what the engine's
  // program prints for `version`, as podman is asked for some things in other words; or empty.
  std::vector<std::string> configuration(std::string_view version) const;
  // Adds those that say whose container it is.
  void add_labels(std::vector<std::string>& words) const;
  // Whether it was made for the same agent, by whatever program of ours.
  bool is_own(const Json& container) const;
  SharedError foreign() const;  // the error, where another container has the name
  // The exec that is an agent of that user.
  ProcessOptions agent_call(std::string_view as) const;
  // Asks the engine when the container was started, in quotes; nothing when it does not run.
  ProcessOptions incarnation_call() const;
  // The frame for an agent that prepares the container.
  std::string preparation(const Nonces& nonces) const;
  Nonces make_nonces() const;
  // A /tmp that is a directory of the host is left as it is.
  bool has_own_tmp() const;
  // Whether its first process is root's: commands of root could kill that.
  bool held_by_root() const;

  const ContainerOptions options;
  const std::string name;
  const std::string user;      // of its commands, for `exec --user`
  double cpus = options.cpus;  // that the engine takes
  std::string digits = {};     // of all that makes its kind

 private:
  const char* agent_program() const;
  Json wanted_there() const;
};

// One container of the engine, which executors share. Its members keep it in the state that they
// are asked for, by calls of the engine's program, and keep a log of what happened in it.
//
// Calls of the engine take seconds, so that no lock is held meanwhile. A member that changes the
// container takes the turn first; the others wait for the end of the turn or for their cancel.
// `running` is what is known, and may be out of date: forget() resets it.
class Container : public ContainerPlan {
 public:
  // The log. The thread for started commands adds the end of a command, and so shares the log
  // alone: it must never be the last to hold the container, as removing that waits for this thread.
  struct Log {
    void add(std::string_view event);
    std::mutex mutex = {};
    Capture lines{std::size_t{1} << 20, 0};
    Redactor redactor = {};
  };

  // `given` must be complete(). Asks no engine.
  explicit Container(ContainerOptions given);
  Container(const Container&) = delete;
  Container& operator=(const Container&) = delete;
  // Removes one that is not persistent.
  ~Container();

  // Makes sure that it runs. Asks the engine nothing when that is known.
  Expected<void> ensure(const std::optional<CancelToken>& cancel);
  // Puts in doubt that it runs: the next ensure() asks the engine.
  void forget();
  void log(std::string_view event) { events->add(event); }
  Expected<void> save_log(const std::string& path);
  // The time when the container was started, as its engine has it. Commands of an earlier time have
  // ended. Asks the engine when that is not known. Empty: there is no container.
  Expected<std::string> incarnation(const std::optional<CancelToken>& cancel);
  // Keeps a note for the next result, which cannot know it otherwise. At most 16 are kept.
  void add_note(std::string note);
  std::vector<std::string> take_notes();
  Expected<Json> look(const std::optional<CancelToken>& cancel = {}) const;
  Expected<ContainerInfo> info() const;
  Expected<ContainerInfo> stats() const;
  Expected<void> stop();
  Expected<void> remove();
  // Removes several at the same time. Returns the first error, after all were tried.
  static Expected<void> remove_all(std::vector<Container*> containers);
  // Both together remove it, so that several can be removed at the same time. The first takes the
  // turn and lets the engine begin; the second waits, returns the error of both and ends the turn.
  bool begin_removal();
  Expected<void> finish_removal();

  const std::shared_ptr<Log> events = new_shared<Log>();

 private:
  bool is_up() const;
  Expected<void> take_turn(const std::optional<CancelToken>& cancel);
  void end_turn(bool is_running);
  // The error of a removal, by the end of the engine's program.
  Expected<void> removed(const ProcessResult& result) const;
  Expected<Json> ask_agent(std::string_view as, const Nonces& nonces,
                           const std::optional<CancelToken>& cancel) const;
  Expected<void> make(const std::optional<CancelToken>& cancel);
  Expected<void> check_unused(const Json& found) const;
  bool lower_cpus(std::string_view refusal);
  Expected<void> clear(const std::string& id, const std::optional<CancelToken>& cancel);
  Expected<bool> reuse(const Json& found, const std::optional<CancelToken>& cancel);
  Expected<void> get_image(const std::optional<CancelToken>& cancel);
  Expected<void> create(const std::optional<CancelToken>& cancel);
  Expected<void> hold(const std::vector<std::string>& words,
                      const std::optional<CancelToken>& cancel);
  Expected<void> check_answer(const Json& answer, const Nonces& nonces,
                              const std::optional<CancelToken>& cancel);
  Expected<void> set_up(const std::optional<CancelToken>& cancel);
  // The same of one that was just made. If its first process has ended, the error has its words.
  Expected<void> set_up_new(const std::optional<CancelToken>& cancel);
  Expected<void> install(const std::optional<CancelToken>& cancel);
  // True if all are installed; false if some are missing that are not required.
  Expected<bool> install(const char* kind, const char* script,
                         const std::vector<std::string>& packages,
                         const std::optional<CancelToken>& cancel);
  void discard(bool at_once);
  void report(std::string_view event);
  Expected<std::string> ask(const std::vector<std::string>& words, const char* what,
                            const std::optional<CancelToken>& cancel = {}) const {
    return ask_engine(options.engine, words, options.engine.call_timeout,
                      concat("% the container %", {what, name}), cancel);
  }

  const pid_t owner = ::getpid();
  mutable std::mutex mutex = {};
  bool running = false;  // as far as is known
  bool made = false;     // there may be one
  bool in_use = false;   // this object has made or found it before
  bool busy = false;     // a thread has the turn
  CancelToken turn_ended = {};
  std::optional<Process> holder = {};          // of one that is not persistent
  std::optional<std::string> started_at = {};  // of the container; nothing: not asked yet
  // Between the two steps of a removal: the engine's call, and the error that stands so far.
  std::optional<Process> removal = {};
  Expected<void> unremoved = {};
  std::vector<std::string> notes = {};
};

// A command in a container. Its agent starts and kills it. If the agent is lost, the engine kills
// the container, unless that has ended or was started again meanwhile:
//
//   state     event                                     next      function
//   runs      its agent is lost, or silent after a kill asks      recover(nullptr): inspect
//   asks      the same start time, or it is not known   kills     recover(): kill
//   asks      another start time, or no container       measured  recover(): "was stopped"
//   kills     the engine has killed it                  measured  recover(): "had to be killed"
//   kills     it is not there, or does not run          measured  recover(): "was stopped"
//   kills     the engine cannot                         measured  recover(): "may still be running"
//   measured                                            (none)    finish()
//
// What holds: killing_ is true from `kills` on, unless the container was found gone; measured_ in
// `measured`, where message_ has the words for the result, and no process of the command is left
// but where these say so. The outcome is then `signaled`; a command that is not known to have
// begun, or whose container this had to kill after a lost connection, stays `unknown`.

class ContainerExecutor::Exec final : public AgentCommand {
 public:
  Exec(std::shared_ptr<AgentLink> link, StartRequest&& request,
       std::shared_ptr<Container> container, std::string incarnation)
      : AgentCommand(std::move(link), std::move(request)),
        container_(std::move(container)),
        incarnation_(std::move(incarnation)) {}
  bool launch(bool, const std::optional<CancelToken>& cancel, ProcessResult& failure) override {
    return AgentCommand::launch(true, cancel, failure);
  }
  std::chrono::milliseconds kill_time() const override { return std::chrono::seconds(2); }
  // When its agent is lost, it has ended once none of its processes can be left.
  bool ended() const override { return AgentCommand::ended() && (measured_ || !was_lost()); }
  bool is_lost() const override { return AgentCommand::ended() && !measured_ && was_lost(); }
  std::shared_ptr<Process::State> recover(const ProcessResult* last) override;
  void finish(ProcessResult& result) override;

 private:
  void wait_for_start(std::unique_lock<std::mutex>& lock,
                      const std::optional<CancelToken>& cancel) override;

  const std::shared_ptr<Container> container_;
  const std::string incarnation_;  // of the container, when this was started
  bool killing_ = false;
  bool measured_ = false;
  std::string message_ = {};
};

struct ContainerExecutor::Target {
  const std::shared_ptr<Container> container;
  const CommandSettings settings;
  std::string facts = {};                       // for describe_place()
  std::string gitconfig = {};                   // for a home that has none
  std::shared_ptr<CommandNetwork> served = {};  // of the names that commands may reach

  Target(std::shared_ptr<Container> made, CommandSettings given)
      : container(std::move(made)), settings(std::move(given)) {}
  Json hello() const;  // for the agent
  // Returns the connection to the agent in the container. Makes the container first if it is not
  // there, and connects anew if the container was started again since.
  Expected<std::shared_ptr<AgentLink>> connect(const std::optional<CancelToken>& cancel,
                                               std::string& incarnation);

 private:
  std::mutex mutex_ = {};
  std::shared_ptr<AgentLink> link_ = {};
  std::string incarnation_ = {};  // of the container that it leads to
};

}  // namespace v0_1
}  // namespace codeexec
