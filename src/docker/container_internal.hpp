// One container, and the commands in it.
//
// A container's PID 1 is a shell that reads its standard input for ever: whoever holds the other
// end keeps the container alive. Each command is an exec of its own with a dead-man switch, see
// `exec_script`; one such exec is started ahead.
#pragma once

#include "docker/docker.hpp"
#include "docker/docker_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "environment/environment.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "paths/paths.hpp"
#include "process/child_internal.hpp"
#include "process/process.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// A program by what tells it from all others on its machine, also after a restart of that.
struct ProgramIdentity {
  std::string host = {};
  std::string boot = {};
  // Its user, and the process table in which its number means something.
  std::string space = {};
  std::string pid = {};
  std::string start = {};
};

ProgramIdentity own_identity();

// Whether the program that made a container has ended. In doubt it has not.
bool is_orphan(const Json& container, const ProgramIdentity& own);

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

inline constexpr char ready_line[] = "codeexec ready\n";
inline constexpr char lacks_line[] = "codeexec lacks ";
inline constexpr char unseen_line[] = "codeexec unseen\n";

// Empty files in the folders that a container has at their own paths, while it is made. Where the
// container does not see them, its engine is of another machine, which has other folders there. A
// folder that this program cannot write to is not compared.
class Beacons {
 public:
  explicit Beacons(const std::vector<Mount>& mounts);
  ~Beacons();
  Beacons(const Beacons&) = delete;
  Beacons& operator=(const Beacons&) = delete;
  // Of a file in each folder.
  const std::vector<std::string>& paths() const { return paths_; }

 private:
  const std::string name_ = ".codeexec-" + random_hex(16);
  std::vector<UniqueFd> folders_ = {};
  std::vector<std::string> paths_ = {};
};

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
  const std::shared_ptr<Log> events = std::make_shared<Log>();

 private:
  bool is_up() const;
  Expected<void> take_turn(const std::optional<CancelToken>& cancel);
  void end_turn(bool is_running);
  bool has_own_tmp() const;
  std::vector<std::string> set_up_words(const char* then, const Beacons* beacons = nullptr) const;
  std::vector<std::string> configuration(const Beacons* beacons = nullptr) const;
  void add_labels(std::vector<std::string>& words) const;
  bool is_own(const Json& container) const;
  Error foreign() const;
  Expected<void> make(const std::optional<CancelToken>& cancel);
  Expected<void> check_unused(const Json& found) const;
  bool lower_cpus(std::string_view refusal);
  Expected<void> clear(const std::string& id, const std::optional<CancelToken>& cancel);
  Expected<bool> reuse(const Json& found, const std::optional<CancelToken>& cancel);
  Expected<void> get_image(const std::optional<CancelToken>& cancel);
  Expected<void> create(const std::optional<CancelToken>& cancel);
  Expected<std::string> hold(const std::vector<std::string>& words,
                             const std::optional<CancelToken>& cancel);
  Expected<void> look_for(const Beacons& beacons, std::string_view told,
                          const std::optional<CancelToken>& cancel);
  Expected<void> set_up(const std::optional<CancelToken>& cancel);
  Expected<void> install(const std::optional<CancelToken>& cancel);
  // Whether the packages are installed; those that are not required may be missing.
  Expected<bool> install(const char* kind, const char* script,
                         const std::vector<std::string>& packages,
                         const std::optional<CancelToken>& cancel);
  void discard();
  void tell(std::string_view event);
  Expected<std::string> ask(const std::vector<std::string>& words, const char* what,
                            const std::optional<CancelToken>& cancel = {}) const {
    return ask_engine(options.engine, words, options.engine.call_timeout,
                      concat({what, " the container ", name}), cancel);
  }

  const pid_t owner = ::getpid();
  std::string digits = {};  // of all that makes its kind
  mutable std::mutex mutex = {};
  bool running = false;  // as far as is known
  bool made = false;     // there may be one
  bool in_use = false;   // this object has made or found it before
  bool busy = false;     // somebody has the turn
  CancelToken turn_ended = {};
  std::optional<Process> lifeline = {};  // of one that is not persistent
  std::string started_at = {};           // with that
  double cpus = options.cpus;            // that the engine takes
  // Between the two steps of a removal: the engine's call, and what has failed before it.
  std::optional<Process> removal = {};
  Expected<void> unremoved = {};
  std::vector<std::string> notes = {};
};

// An exec for one command: started, then given its command, then the carrier of that.
class ContainerExecutor::Exec final : public Carrier {
 public:
  // Where it is, and how its engine is called.
  struct Where {
    EngineOptions engine = {};
    std::string container = {};
    std::string user = {};
    bool sudo = false;  // commands may have processes of root's
    ProcessOptions call(bool with_input, const std::vector<std::string>& words,
                        std::chrono::milliseconds timeout) const;
  };

  // Starts the exec, which then waits. Its start is not waited for.
  static Expected<std::shared_ptr<Exec>> start(const Where& where);
  Exec(const Where& where, std::string id)
      : where_(where), id_(std::move(id)), out_(id_), err_(id_) {}

  // Whether it still waits, as far as can be told without asking.
  bool waits() const;
  // A program is to carry the command's input to a FIFO in the container.
  Expected<void> connect_input();
  std::string input_path() const { return concat({"/tmp/.codeexec-", id_}); }
  // Sends the request, or the rest of it, and waits until the command has begun.
  enum class Start {
    begun,
    slow,       // not yet, at the deadline: wait once more, or give up
    cancelled,  // as the token says; what may have begun ends with this object
    refused,    // nothing has run, and another exec may do better
    failed,     // another one will not do better
    lost,       // whether it has begun is not known
  };
  Start begin(std::string_view& request, Clock::time_point deadline,
              const std::optional<CancelToken>& cancel);
  // Kills what may have begun, and says how that went.
  std::string kill_all();
  // Why it has not begun, and at what step.
  Error failure() const;
  const Where& where() const { return where_; }
  const std::string& failed_step() const { return failed_step_; }
  const std::string& session_text() const { return out_.session(); }
  // With those that wait in it.
  bool container_ended() const { return container_ended_; }

  int exit_descriptor() const override { return line_.exit_event.get(); }
  UniqueFd take_out() override { return std::move(line_.out); }
  UniqueFd take_err() override { return std::move(line_.err); }
  UniqueFd take_input() override { return std::move(input_.input); }
  int pid() const override { return pid_; }
  void take(Stream stream, std::string_view bytes,
            FunctionRef<void(std::string_view)> use) override;
  bool ended() const override { return out_.ended() && err_.ended(); }
  bool signal(int number) override;
  void kill() override;
  std::optional<ProcessOptions> next_measure(const ProcessResult* last) override;
  void finish(ProcessResult& result) override;

 private:
  // One stream of an exec: tells marks from what the command writes. Linear, whatever the command
  // writes; holds back what may become a mark. Without a start, everything is told in `noise`.
  class Framing {
   public:
    static constexpr std::size_t most_noise = 4096;

    explicit Framing(std::string id) : id_(std::move(id)) {}
    bool begun() const { return begun_; }
    bool ended() const { return end_ != 0; }
    char end() const { return end_; }                    // E, K or X
    const std::string& text() const { return text_; }    // after the last mark's colon
    const std::string& noise() const { return noise_; }  // before the start
    const std::string& session() const { return session_; }

    // Returns the rest that comes after the start mark, when that has just come.
    void take(std::string_view bytes, FunctionRef<void(std::string_view)> use) {
      const std::size_t prefix = id_.size() + 2;
      while (!bytes.empty() && !ended()) {
        const char c = bytes.front();
        if (held_.empty()) {
          const std::size_t size = std::min(bytes.find('\001'), bytes.size());
          give(bytes.substr(0, size), use);
          bytes.remove_prefix(size);
          if (!bytes.empty()) hold(bytes);
        } else if (held_.size() < prefix) {
          const bool fits =
              held_.size() == 1 ? std::strchr("PEKXS", c) && c != '\0' : c == id_[held_.size() - 2];
          if (fits)
            hold(bytes);
          else
            give_held(use);
        } else if (c == '\n') {
          bytes.remove_prefix(1);
          mark(prefix);
          // The start has another reader than what comes after it.
          if (begun_ && !rest_taken_) {
            rest_taken_ = true;
            rest_ = bytes;
            return;
          }
        } else if (held_.size() < prefix + longest_text) {
          hold(bytes);
        } else {
          give_held(use);
        }
      }
    }
    // Bytes that come before the command has a reader; those after the start are kept for it.
    void begin(std::string_view bytes) {
      if (begun_)
        rest_ += bytes;
      else
        take(bytes, [](std::string_view) {});
    }
    // What came together with the start.
    std::string take_rest() { return std::move(rest_); }

   private:
    static constexpr std::size_t longest_text = 64;

    void hold(std::string_view& bytes) {
      held_ += bytes.front();
      bytes.remove_prefix(1);
    }
    void give(std::string_view bytes, FunctionRef<void(std::string_view)> use) {
      if (telling_session_) {
        session_.append(bytes.substr(0, longest_session_text - session_.size()));
        return;
      }
      if (begun_ && !bytes.empty()) return use(bytes);
      noise_.append(bytes.substr(0, most_noise - std::min(most_noise, noise_.size())));
    }
    void give_held(FunctionRef<void(std::string_view)> use) {
      give(held_, use);
      held_.clear();
    }
    void mark(std::size_t prefix) {
      const std::size_t text = std::min(prefix + 1, held_.size());
      text_ = held_.substr(text);
      if (held_[1] == 'P')
        begun_ = true;
      else if (held_[1] == 'S')
        telling_session_ = true;
      else
        end_ = held_[1];
      held_.clear();
    }

    std::string id_;
    std::string held_ = {};
    std::string text_ = {};
    std::string noise_ = {};
    std::string rest_ = {};
    bool begun_ = false;
    bool rest_taken_ = false;
    bool telling_session_ = false;
    std::string session_ = {};
    char end_ = 0;
  };

  Where where_;
  std::string id_;
  std::string mark_ = {};  // the limit that all of the command bears, bytes
  Line line_ = {};
  Line input_ = {};
  Framing out_;
  Framing err_;
  int pid_ = -1;
  int measures_ = 0;
  bool killed_ = false;
  std::atomic<bool> signalled_{false};
  bool container_ended_ = false;
  std::string failed_step_ = "container";
  std::string message_ = {};
};

struct ContainerExecutor::Place {
  Container container;
  Environment environment;
  std::string shell;
  bool sets_path = false;  // by the options: the image's does not count
  std::string facts = {};  // for describe_place()
  // A command of the shell that sees to it that git finds a name and an address, or empty.
  std::string set_identity = {};

  // Those that were started ahead. A thread starts them: that takes up to some milliseconds, and no
  // result has to wait for it. They are apart from the container, which the thread for started
  // commands, where many commands end, must never be the last to hold.
  class Execs {
   public:
    explicit Execs(std::size_t size) : size_(size) {}
    Execs(const Execs&) = delete;
    Execs& operator=(const Execs&) = delete;
    ~Execs();

    // Whether one that was to wait has ended: perhaps with its container.
    bool has_lost_one();
    // One that waits, or null.
    std::shared_ptr<Exec> take();
    // Sees to it that there are as many as there should be. A failure to start one shows when a
    // command needs it.
    void refill(const Exec::Where& where);
    // Those that are there are of no use any more.
    void drop();

   private:
    static void* thread_main(void* self);
    void start_those_asked_for();

    const std::size_t size_;
    const pid_t owner_ = ::getpid();  // a fork of the program has no such thread
    std::mutex mutex_ = {};
    std::condition_variable event_ = {};
    std::vector<std::shared_ptr<Exec>> waiting_ = {};
    std::optional<Exec::Where> asked_for_ = {};
    std::size_t drops_ = 0;
    bool ending_ = false;
    bool has_thread_ = false;
    pthread_t thread_ = {};
  };
  const std::shared_ptr<Execs> execs;

  Exec::Where where() const {
    return {container.options().engine, container.name(), container.state_->user,
            container.options().sudo};
  }

  Place(Container made, Environment variables, std::string shell_path)
      : container(std::move(made)),
        environment(std::move(variables)),
        shell(std::move(shell_path)),
        execs(std::make_shared<Execs>(container.options().warm)) {}
};

}  // namespace v0_1
}  // namespace codeexec
