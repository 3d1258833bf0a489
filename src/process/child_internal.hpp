// One run of a command, on this host or elsewhere.
#pragma once

#include "process/capture_internal.hpp"
#include "process/delivery_internal.hpp"
#include "process/plan_internal.hpp"
#include "process/process.hpp"
#include "process/process_internal.hpp"
#include "process/remote_internal.hpp"
#include "process/start_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "sandbox/capabilities_internal.hpp"
#include "sandbox/sandbox_internal.hpp"
#include "terminal/terminal.hpp"
#include "terminal/terminal_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

std::string next_run_variable(std::uint64_t ticks);

}  // namespace inner

// A run as a state machine without a thread: it names descriptors and a deadline to wait for, and
// step() acts on what has come. LocalRun and RemoteRun say how a command starts, dies and ends.
//
//   running ---------------------.   timeout, cancel, full disk: to the next row
//      v                         |
//   asked_to_end  SIGTERM -------+   kill_grace has passed, or a handle was destroyed
//      v                         |
//   killed  SIGKILL -------------+   its end has not come within kill_time()
//      |                         |
//      |                     its end
//      |                         |--- RemoteRun -----------------------------> over
//      |                         v                                              ^
//      |  LocalRun:          draining  its pipes are read until they close,     |
//      |  given up               |     or `drain` or `max_drain` has passed     |
//      |                         '--------------------------------------------->|
//      |---------------------------------------------------------------------->|
//      |  RemoteRun:                                                            |
//      '-----------------> recovering  other programs kill it or ask for its ---'
//                                      fate; also when its end is lost
//
// One thread drives it. Members for handles, and what they share with it, are under the mutex.
struct Process::State {
  static constexpr std::size_t buffer_size = 65536;

  // Where output is read to on its way; one serves all runs of a thread. It is on the heap, as
  // stacks may be small, and is made when the first program prints something.
  class ReadBuffer {
   public:
    // Null: there is no memory for it now.
    char* data() {
      if (!bytes_) bytes_.reset(new (std::nothrow) char[buffer_size]);
      return bytes_.get();
    }

   private:
    std::unique_ptr<char[]> bytes_ = {};
  };

  // The descriptors that are waited for, in this order.
  enum Slot { slot_out, slot_err, slot_input, slot_exit, slot_cancel, slot_count };

  State(const State&) = delete;
  State& operator=(const State&) = delete;
  virtual ~State() = default;

  // Starts, and drives the run to its end in the calling thread.
  ProcessResult run();
  // Starts, and has the engine drive it: see Process::start(). Of one that has begun only that; if
  // that fails, it can still be driven once its mailboxes are gone.
  static Expected<Process> launch(std::shared_ptr<State> state, ProcessResult* failure);

  // False: it has not started, as `result` says. `at_once`: the caller drives this run alone, so
  // that the start may leave errors to the end, and hold the program's ends of the pipes until its
  // end: that wakes the thread once and not three times, and takes two descriptors. When it runs
  // out of memory nothing runs: what comes after the start proper needs none, or goes without it.
  virtual bool start(bool at_once) = 0;
  // The same; without memory it has not started, either.
  bool begin(bool at_once);
  virtual void add_descriptors(std::vector<pollfd>& set);
  virtual Clock::time_point deadline() const;
  // In an empty set nothing has come: the time alone is looked at.
  virtual void step(const std::vector<pollfd>& set, ReadBuffer& buffer);
  bool over() const { return phase == Phase::over; }
  // Frees those of its own options that only the start needs, which are most.
  void forget_start();

  // For handles, in any thread.
  int pid();
  bool ended_within(std::chrono::milliseconds time);
  int end_descriptor();
  bool signal_group(int number);
  Expected<void> queue_input(std::string_view bytes);
  void end_input();
  OutputChunk read(Stream stream, std::uint64_t cursor, std::size_t max_lines);
  Expected<TerminalScreen> screen();
  Expected<void> resize(TerminalSize size);  // soon: see apply_size()

  // For the thread that drives it. The bytes that may be read of a stream now; the program waits
  // for more, at its end, too.
  std::size_t& room(Stream stream) { return (stream == Stream::out ? io.out : io.err).room; }
  // To the group, and to descendants that left it.
  virtual void signal_tree(int number, bool resume = false);
  bool takes_input() const { return static_cast<bool>(io.input); }
  std::size_t waiting_input() const { return io.unwritten.size() + io.queued_input.size(); }
  void give_input(std::string_view bytes);
  void apply_size();

  std::atomic<bool> cancel_asked{false};
  std::atomic<bool> kill_asked{false};
  std::atomic<bool> size_asked{false};
  ProcessResult result = ProcessResult();

 protected:
  enum class Phase { running, asked_to_end, killed, recovering, draining, over };

  // The whole of a stream, in a file.
  struct Spill {
    UniqueFd file = UniqueFd();
    std::string path = {};
    std::atomic<std::uint64_t> written{0};
    bool tried = false;
    std::string problem = {};
    void write(std::string_view bytes, std::uint64_t most);  // `most` for the whole file
  };

  struct Output {
    Stream stream;
    UniqueFd pipe = UniqueFd();
    UniqueFd writer = UniqueFd();  // our own copy of the program's end, see start()
    bool open = false;             // not yet seen at its end
    int read_error = 0;            // errno that ended it too soon
    std::uint64_t bytes_read = 0;  // from the pipe
    // Memory ran out. What is kept, handed on and in the file is the beginning of the stream, so
    // that no piece in it is missing; the rest is read, and counted.
    bool is_cut = false;
    std::uint64_t lost = 0;
    std::size_t room = std::size_t(-1);
    Spill spill = Spill();
    Capture capture;
    Redactor redactor;
    detail::Sha256 hash = {};
    Output(Stream which, std::size_t max_bytes, bool only_end, const Redactor& masking)
        : stream(which), capture(max_bytes, only_end ? 0 : max_bytes / 2), redactor(masking) {}
  };

  // The three streams, and the directory for files of long output.
  struct Streams {
    explicit Streams(const ProcessOptions& options);
    // Nothing more is read: the driver, or the delivery of what was read, must make room before.
    bool is_full() const { return (out.open && out.room == 0) || (err.open && err.room == 0); }
    Output out;
    Output err;
    UniqueFd spill_directory = UniqueFd();  // when the caller has not opened it
    int spill_error = 0;                    // errno that kept it from being opened
    UniqueFd input = UniqueFd();
    int input_error = 0;         // errno that ended it too soon
    std::string_view unwritten;  // of what is given, then of `current_input`
    char last_written = '\n';
    bool end_typed = false;  // a terminal's end of input
    std::string current_input = {};
    // Below the mutex.
    std::string queued_input = {};
    bool input_open = false;
    bool input_ends = true;  // when everything queued is written
  };

  struct Timers {
    Clock::time_point started = {};
    Clock::time_point ended = {};
    Clock::time_point timeout = Clock::time_point::max();
    Clock::time_point idle = Clock::time_point::max();  // moved on by each output
    Clock::time_point heartbeat = Clock::time_point::max();
    Clock::time_point disk_check = Clock::time_point::max();
    Clock::time_point phase_end = {};  // of asked_to_end and killed
    Clock::time_point drain = {};      // without data
    Clock::time_point drain_end = {};  // in any case
  };

  explicit State(const ProcessOptions& borrowed) : options(borrowed), io(borrowed) {}
  explicit State(std::unique_ptr<ProcessOptions> given) : State(*given) {
    owned_options = std::move(given);
  }

  // Where the two kinds differ.
  virtual int exit_descriptor() const { return -1; }
  virtual bool send_signal(int number) = 0;  // to the group, under the mutex
  virtual void kill_all() = 0;
  virtual std::chrono::milliseconds kill_time() const = 0;
  virtual void outlive_kill(Clock::time_point now) = 0;
  // Looks for the end of the command; `exited`: the exit descriptor is readable. True: nothing is
  // to be done in this step any more.
  virtual bool find_end(bool exited, ReadBuffer& buffer, Clock::time_point now) = 0;
  virtual void fill_status() = 0;
  virtual void check_time(Clock::time_point now);
  virtual void take_bytes(Output& output, std::string_view bytes) { take_output(output, bytes); }
  // False for one elsewhere, too: the agent there types and answers.
  virtual bool drives_terminal() const { return false; }
  virtual bool can_resize() const { return true; }  // under the mutex
  virtual void set_size(TerminalSize size) = 0;
  virtual void release() {}  // frees what a handle need not keep, after the end

  // Null: none is asked for. (Of Sandbox, Process and its members are friends.)
  const Sandbox::State* sandbox() const { return options.sandbox.state_.get(); }
  bool one_stream() const { return options.merge_streams || options.terminal; }
  bool prepare();
  bool prepare_screen();
  void set_times();
  bool end_start();
  bool fail(SpawnStep step, int error, std::string message);
  void ask_to_end(Outcome why, Clock::time_point now);
  void read_output(Output& output, ReadBuffer& buffer, Clock::time_point now);
  void take_output(Output& output, std::string_view bytes, bool is_last = false);
  void close_input();
  void finish();

  std::unique_ptr<ProcessOptions> owned_options = {};
  const ProcessOptions& options;
  Phase phase = Phase::running;
  Outcome stopped_as = Outcome::exited;  // another one once it was asked to end
  bool was_idle = false;                 // that was for its idle_timeout
  bool reads_in_place = false;           // no hash, mask, callback or terminal needs the bytes
  Streams io;
  Timers times = Timers();

 public:
  // What becomes of what a run brings, and of its end: see delivery.cpp.
  class Delivery {
   public:
    explicit Delivery(State& state) : state_(state) {}
    Delivery(const Delivery&) = delete;
    Delivery& operator=(const Delivery&) = delete;

    // Before the start: makes the mailboxes and the threads. An errno.
    int prepare(std::shared_ptr<Reactor>& reactor);
    // For the thread that drives the run.
    void put(Output& output, std::string_view bytes);
    void beat();
    void end();
    // How many bytes may be read now, and since when nothing waits.
    std::size_t room();
    Clock::time_point quiet_since();
    // Has the engine drive on what a thread has driven: see Executor::Held.
    std::optional<Process> hand_over(const std::shared_ptr<State>& self,
                                     Function<void()> on_printed);
    // For a delivery thread. True: there may be more, after others had their turn.
    bool deliver(const std::shared_ptr<State>& self);

    // What a started run brings waits here. Null: the thread that drives the run delivers at once.
    std::unique_ptr<Mailbox> mailbox = {};
    // With ProcessOptions::post: what waits for the tasks of the program.
    std::unique_ptr<Mailbox> posted = {};
    Reactor* engine = nullptr;   // of a started run; there as long as the run is not done
    bool has_callbacks = false;  // of the program, and not only of this library
    // The end of a started command: what completes its result, before done() is true, and what
    // gets the result afterwards.
    Function<void(const ProcessResult&)> conclude = {};
    Function<void(const ProcessResult&)> on_end = {};

   private:
    struct Turn;

    void hand_on(Output& output, std::string_view bytes);
    void heartbeat();
    void complete();
    void wake_engine() const;
    void post_rest(const std::shared_ptr<State>& self);
    void post_turn(const std::shared_ptr<State>& self);
    void take_posted(const std::shared_ptr<State>& self);
    void drop_posted();

    State& state_;
    Mailbox::Content content_ = {};  // of the delivery thread, which takes it
    Mailbox::Content posted_content_ = {};
    bool is_complete_ = false;
    std::atomic<bool> is_dropped_{false};  // the program does not call back any more
  };
  Delivery delivery{*this};

 protected:
  std::mutex mutex = {};
  // Below the mutex.
  std::unique_ptr<TerminalEmulator> terminal = {};  // null: it has none
  TerminalSize wanted_size = {};                    // with size_asked

 private:
  static constexpr std::size_t no_slot = std::size_t(-1);

  void add_slot(std::vector<pollfd>& set, Slot slot, int fd, short events);
  short events_of(const std::vector<pollfd>& set, Slot slot) const;
  void output_event(Output& output, short events, ReadBuffer& buffer, Clock::time_point now);
  void keep_output(Output& output, std::string_view bytes);
  void end_output(Output& output);
  void spill(Output& output, std::string_view bytes);
  bool more_input();
  void feed_input();
  void fill_output(Output& output, std::string& text, OutputCounts& counts, std::string& file);

  std::size_t slots[slot_count] = {};
  // Below the mutex.
  std::condition_variable ended_event = {};
  std::optional<CancelToken> end_token = {};  // the same for poll(), once a handle asks for it
  bool reaped = false;
  bool done = false;
  bool is_delivered = false;
};

// A program of this host: our child, or the child of a supervisor that is ours.
class LocalRun final : public Process::State {
 public:
  explicit LocalRun(const ProcessOptions& borrowed) : State(borrowed) {}
  explicit LocalRun(std::unique_ptr<ProcessOptions> given) : State(std::move(given)) {}
  bool start(bool at_once) override;
  Clock::time_point deadline() const override;
  void signal_tree(int number, bool resume) override;

 private:
  int exit_descriptor() const override;
  bool send_signal(int number) override;
  void kill_all() override;
  std::chrono::milliseconds kill_time() const override { return std::chrono::seconds(2); }
  void outlive_kill(Clock::time_point now) override;
  bool find_end(bool exited, ReadBuffer& buffer, Clock::time_point now) override;
  void fill_status() override;
  void check_time(Clock::time_point now) override;

  bool check_options();
  bool drives_terminal() const override { return terminal != nullptr; }
  void set_size(TerminalSize size) override;
  bool make_pipes(const Launch& launch, UniqueFd (&program_ends)[3]);
  bool make_terminal_streams(const Launch& launch, UniqueFd (&program_ends)[3]);
  bool fail_start(const Launch& launch, SpawnStep step, int error, std::string_view file = {});
  void fill_pipe();
  void watch_disk();
  void check_disk(Clock::time_point now);
  bool disk_filled() const;
  bool is_over();  // when the exit descriptor is readable
  void leader_ended(ReadBuffer& buffer, Clock::time_point now);
  void kill_background();
  void kill_scattered(Clock::time_point now);
  bool find_escaped();
  bool find_escaped_in(std::vector<KnownProcess>& seen);
  void tell(const char* message);
  void signal_escaped(int number);
  bool supervised() const;
  pid_t command() const;
  bool order(int number);
  void await_group_signals();
  void take_report();
  bool none_left() const;  // nothing of the run is alive, for sure
  ExitStatus last_status();
  void give_up();
  void take_status();
  void name_limits();

  ChildHandle child_ = {};  // the program, or its supervisor
  Supervisor supervisor_ = Supervisor();
#if CODEEXEC_HAS_SANDBOX
  RunCgroup cgroup_ = {};
#endif
  bool given_up_ = false;
  bool scattered_killed_ = false;
  std::vector<KnownProcess> escaped_ = {};  // descendants outside the process group
  std::string run_variable_ = {};           // NAME=value, in the environment of this run alone
  std::uint64_t start_ticks_ = 0;
  // Bytes at the start, of each file system where they are limited.
  std::array<std::uint64_t, most_disk_roots> free_disk_ = {};
};

// A command elsewhere. While its end is lost, `recovery_` is the run of a program here.
class RemoteRun final : public Process::State {
 public:
  RemoteRun(std::unique_ptr<ProcessOptions> given, std::shared_ptr<RemoteCommand> command)
      : State(std::move(given)), command_(std::move(command)) {}
  bool start(bool at_once) override;
  void add_descriptors(std::vector<pollfd>& set) override;
  Clock::time_point deadline() const override;
  void step(const std::vector<pollfd>& set, ReadBuffer& buffer) override;

 private:
  bool send_signal(int number) override { return command_->signal(number); }
  void kill_all() override { command_->signal(SIGKILL); }
  std::chrono::milliseconds kill_time() const override { return command_->kill_time(); }
  void outlive_kill(Clock::time_point now) override;
  bool find_end(bool exited, ReadBuffer& buffer, Clock::time_point now) override;
  void fill_status() override { command_->finish(result); }
  void take_bytes(Output& output, std::string_view bytes) override;
  bool can_resize() const override { return command_->can_resize(); }
  void set_size(TerminalSize size) override { command_->resize(size); }
  void release() override { command_.reset(); }
  void recover();

  std::shared_ptr<RemoteCommand> command_;
  std::shared_ptr<State> recovery_ = {};
};

inline namespace inner {

// Drives a run that has begun, in the calling thread. False: it has not ended by then, or `stop` is
// readable. `set` has room for Process::State::slot_count + 1.
bool drive(Process::State& run, std::vector<pollfd>& set,
           std::chrono::steady_clock::time_point until, int stop);

// The run of a program here or, with `remote`, of that command.
std::shared_ptr<Process::State> new_run(ProcessOptions&& options,
                                        std::shared_ptr<RemoteCommand> remote = {});

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
