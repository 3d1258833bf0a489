// One container, and the commands in it.
//
// A container's first process is an agent, see the room `place`, which prepares it and reads its
// standard input for ever: whoever holds the other end keeps the container alive. An exec in it is
// a second agent, which starts all commands, as their user, and ends them when it loses its input.
#pragma once

#include "docker/docker.hpp"
#include "docker/docker_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "environment/environment.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "paths/paths.hpp"
#include "place/place_internal.hpp"
#include "process/child_internal.hpp"
#include "process/process.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// Whether the program that made a container still runs.
Maker maker_of_container(const Json& container, const ProgramIdentity& own);

// Whether the program that made a container still runs, as far as can be seen from here, and is
// not this one.
bool has_other_maker(const Json& container, const ProgramIdentity& own);

// A text as a part of a name: letters, digits, _ . and -, at most so many.
std::string plain_name(std::string_view text, std::size_t longest);

// Who commands run as: the owner of the first directory that they may write to.
std::string user_of(const ContainerOptions& options);

bool is_number(std::string_view text);

ContainerHealth health_of(const Json& container);

// "1.5MiB", "12.3kB", "0.25%": the number, times its unit, and no more than fits into an integer.
double number_with_unit(std::string_view text);

// Where an agent that is not the image's own is mounted.
inline constexpr char agent_target[] = "/.codeexec-mcp";
// Files in the folders that a container has at their own paths, while it is made. Where it does not
// have these, its engine is of another machine, which has other folders there. A folder that this
// program cannot write to is not compared.
using Nonces = std::list<Nonce>;

// Runs an installer, and kills it when standard input ends: when this program gives up on it, or
// dies.
inline constexpr char install_script[] =
    "exec 3<&0 </dev/null; { read -r _ <&3; kill -KILL -$$; } & w=$!; exec 3<&-; "
    "\"$@\"; r=$?; kill -KILL $w; exit $r";

}  // namespace inner

// Whoever makes, mends, stops or removes it has the turn, and holds no lock meanwhile: the others
// wait for the end of the turn or for their cancel.
struct Container::State {
  // What happened in it. The end of a command is told from the thread for started commands, which
  // must never be the last to hold the container: removing it waits for that thread.
  struct Log {
    void add(std::string_view event);
    std::mutex mutex = {};
    Capture lines{std::size_t{1} << 20, 0};
    Redactor redactor = {};
  };

  explicit State(ContainerOptions given);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  // Removes one that is not persistent.
  ~State();

  // Makes sure that it runs. Nothing is asked of the engine when that is known.
  Expected<void> ensure(const std::optional<CancelToken>& cancel);
  // What was known of it is in doubt: the next ensure() asks the engine.
  void forget();
  void log(std::string_view event) { events->add(event); }
  Expected<void> save_log(const std::string& path);
  // When the container was started that is there, as its engine has it: all that ran before that is
  // ended. Asks the engine when that is not known. Empty: there is none.
  Expected<std::string> incarnation(const std::optional<CancelToken>& cancel);
  // Asks the engine for that, in quotes; nothing when it does not run.
  ProcessOptions incarnation_call() const;
  // The exec that an agent of that user is.
  ProcessOptions agent_call(std::string_view as) const;
  // For the next result: a command could not know it. At most 16 are kept.
  void add_note(std::string note);
  std::vector<std::string> take_notes();
  Expected<Json> look(const std::optional<CancelToken>& cancel = {}) const;
  Expected<void> stop();
  // Both together remove it. The first takes the turn and lets the engine begin; false when that
  // has failed, which the second tells.
  bool begin_removal();
  Expected<void> finish_removal();

  const ContainerOptions options;
  const std::string name;
  const std::string user;  // of its commands, for `exec --user`
  const std::shared_ptr<Log> events = new_shared<Log>();

 private:
  bool is_up() const;
  Expected<void> take_turn(const std::optional<CancelToken>& cancel);
  void end_turn(bool is_running);
  // What the engine said of it.
  Expected<void> removed(const ProcessResult& result) const;
  bool has_own_tmp() const;
  bool held_by_root() const;
  const char* agent_program() const;
  Nonces make_nonces() const;
  Json wanted_there() const;
  std::string preparation(const Nonces& nonces) const;
  Expected<Json> ask_agent(std::string_view as, const Nonces& nonces,
                           const std::optional<CancelToken>& cancel) const;
  // By what the engine's program says of its `version`.
  std::vector<std::string> configuration(std::string_view version) const;
  void add_labels(std::vector<std::string>& words) const;
  bool is_own(const Json& container) const;
  SharedError foreign() const;
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
  Expected<void> install(const std::optional<CancelToken>& cancel);
  // Whether the packages are installed; those that are not required may be missing.
  Expected<bool> install(const char* kind, const char* script,
                         const std::vector<std::string>& packages,
                         const std::optional<CancelToken>& cancel);
  void discard(bool at_once);
  void tell(std::string_view event);
  Expected<std::string> ask(const std::vector<std::string>& words, const char* what,
                            const std::optional<CancelToken>& cancel = {}) const {
    return ask_engine(options.engine, words, options.engine.call_timeout,
                      concat("% the container %", {what, name}), cancel);
  }

  const pid_t owner = ::getpid();
  std::string digits = {};  // of all that makes its kind
  mutable std::mutex mutex = {};
  bool running = false;  // as far as is known
  bool made = false;     // there may be one
  bool in_use = false;   // this object has made or found it before
  bool busy = false;     // somebody has the turn
  CancelToken turn_ended = {};
  std::optional<Process> lifeline = {};        // of one that is not persistent
  std::optional<std::string> started_at = {};  // of the container; nothing: not asked yet
  double cpus = options.cpus;                  // that the engine takes
  // Between the two steps of a removal: the engine's call, and what has failed before it.
  std::optional<Process> removal = {};
  Expected<void> unremoved = {};
  std::vector<std::string> notes = {};
};

// A command in a container, and what the engine does for one whose agent does not answer.
class ContainerExecutor::Exec final : public PlaceCommand {
 public:
  Exec(std::shared_ptr<PlaceLink> link, PlaceRequest request,
       std::shared_ptr<Container::State> container, std::string incarnation)
      : PlaceCommand(std::move(link), std::move(request)),
        container_(std::move(container)),
        incarnation_(std::move(incarnation)) {}
  bool launch(bool, const std::optional<CancelToken>& cancel, ProcessResult& failure) override {
    return PlaceCommand::launch(true, cancel, failure);
  }
  std::chrono::milliseconds kill_time() const override { return std::chrono::seconds(2); }
  // Of one whose agent is lost: not before nothing of it is left.
  bool ended() const override { return PlaceCommand::ended() && (measured_ || !was_lost()); }
  bool is_lost() const override { return PlaceCommand::ended() && !measured_ && was_lost(); }
  std::optional<ProcessOptions> next_measure(const ProcessResult* last) override;
  void finish(ProcessResult& result) override;

 private:
  void wait_for_start(std::unique_lock<std::mutex>& lock,
                      const std::optional<CancelToken>& cancel) override;

  const std::shared_ptr<Container::State> container_;
  const std::string incarnation_;  // of the container, when this was started
  bool killing_ = false;
  bool measured_ = false;
  std::string message_ = {};
};

struct ContainerExecutor::Place {
  const Container container;
  const PlaceSettings settings;
  std::string facts = {};      // for describe_place()
  std::string gitconfig = {};  // for a home that has none

  Place(Container made, PlaceSettings given)
      : container(std::move(made)), settings(std::move(given)) {}
  // To the agent in the container, which is made first where it is not there.
  Expected<std::shared_ptr<PlaceLink>> connect(const std::optional<CancelToken>& cancel,
                                               std::string& incarnation);

 private:
  std::mutex mutex_ = {};
  std::shared_ptr<PlaceLink> link_ = {};
  std::string incarnation_ = {};  // of the container that it leads to
};

}  // namespace v0_1
}  // namespace codeexec
