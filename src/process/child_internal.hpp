// One running program, and programs that run elsewhere.
#pragma once

#include "process/plan_internal.hpp"
#include "process/process.hpp"
#include "process/process_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "sandbox/capabilities_internal.hpp"
#include "sandbox/sandbox_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// A command that runs elsewhere, in a container: a program of this host carries its streams, with
// marks between what the command writes, and orders to it. What the marks and orders are is the
// affair of who knows the place. One thread at a time, but for signal().
class Carrier {
 public:
  // A program of this host whose three streams are ours. Nobody drives it: it is a line elsewhere.
  struct Line {
    UniqueFd input = UniqueFd();
    UniqueFd out = UniqueFd();
    UniqueFd err = UniqueFd();
    UniqueFd exit_event = UniqueFd();
    pid_t pid = -1;
    bool is_pidfd = false;
    pthread_t waiter = {};
    pid_t owner = ::getpid();  // a fork of the program has a copy of this object only

    Line() = default;
    Line(const Line&) = delete;
    Line& operator=(const Line&) = delete;
    ~Line() { end(); }

    Expected<void> start(const ProcessOptions& options);
    // Kills the program and forgets it. What it carries notices.
    void end();
  };

  virtual ~Carrier() = default;

  // Called once, before all others. Who does not `wait` learns only by the end that the command
  // could not start. False: it has not started, and `failure` says why.
  virtual bool launch(bool wait, const std::optional<CancelToken>& cancel,
                      ProcessResult& failure) = 0;
  // Valid from the start of the command on.
  virtual int exit_descriptor() const = 0;  // readable when the carrying program has ended
  virtual UniqueFd take_out() = 0;
  virtual UniqueFd take_err() = 0;
  // Of the command; none when it has none. What it takes off `given` it sends before what comes
  // through that, and keeps where it lies, until finish().
  virtual UniqueFd take_input(std::string_view& given) = 0;
  virtual int pid() const = 0;  // of the command, as its place sees it

  // Calls `use` with what the command itself wrote of what came. Empty bytes: what came so far.
  virtual void take(Stream stream, std::string_view bytes,
                    FunctionRef<void(std::string_view)> use) = 0;
  virtual bool ended() const = 0;                 // both streams have told the end of the command
  virtual bool is_lost() const { return false; }  // they never will, and measures are due
  virtual bool signal(int number) = 0;  // to all processes of the command; safe from any thread
  virtual void kill() = 0;              // all of them
  // When the carrying program has ended, or nothing has told the end within kill_time() of kill():
  // a program to be run that kills the command or learns its fate, after the `last` one of these;
  // nothing when no more can be done.
  virtual std::chrono::milliseconds kill_time() const { return std::chrono::seconds(1); }
  virtual std::optional<ProcessOptions> next_measure(const ProcessResult* last) = 0;
  // How it ended: outcome, exit_code, signal, limits_reached and message. Lets go of all it holds.
  virtual void finish(ProcessResult& result) = 0;
};

inline namespace inner {

std::string next_run_variable(std::uint64_t ticks);

// An exception cannot go on from here: the program that runs would be left with nobody to end it.
void call_back(FunctionRef<void()> callback) noexcept;

}  // namespace inner

// Fields above the mutex belong to the thread that pumps; those below are shared with the handles.
struct Process::State {
  // Of `recovering`: a command elsewhere is ended or found out about by another program.
  enum class Phase { running, asked_to_end, killed, recovering, draining, over };

  // The whole of a stream, in a file.
  struct Spill {
    UniqueFd file = UniqueFd();
    std::string path = {};
    std::atomic<std::uint64_t> written{0};
    bool tried = false;
    std::string problem = {};
  };

  struct Output {
    Stream stream;
    UniqueFd pipe = UniqueFd();
    UniqueFd writer = UniqueFd();  // our own copy of the program's end, see start()
    bool open = false;             // not yet seen at its end
    int read_error = 0;            // errno that ended it too soon
    std::uint64_t bytes_read = 0;  // from the pipe
    // So much may be read now. Who passes on what is read has the program wait, at its end, too.
    std::size_t room = std::size_t(-1);
    Spill spill = Spill();
    Capture capture;
    Redactor redactor;
    detail::Sha256 hash = {};
    Output(Stream which, std::size_t max_bytes, bool only_end, const Redactor& masking)
        : stream(which), capture(max_bytes, only_end ? 0 : max_bytes / 2), redactor(masking) {}
  };

  static constexpr std::size_t buffer_size = 65536;

  // Where output is read to on its way; one serves all states of a thread. Not on the stack, of
  // which threads may have little, not zeroed, and only made for a program that prints something.
  class ReadBuffer {
   public:
    char* data() {
      if (!bytes_) bytes_.reset(new char[buffer_size]);
      return bytes_.get();
    }

   private:
    std::unique_ptr<char[]> bytes_ = {};
  };

  // The descriptors that are waited for, in this order.
  enum Slot { slot_out, slot_err, slot_input, slot_exit, slot_cancel, slot_count };

  explicit State(const ProcessOptions& borrowed)
      : options(borrowed),
        out(Stream::out, borrowed.max_output, borrowed.keep_end_only,
            total_size(borrowed.secrets) <= Redactor::max_total ? Redactor(borrowed.secrets)
                                                                : Redactor()),
        err(Stream::err, borrowed.merge_streams ? 0 : borrowed.max_output, borrowed.keep_end_only,
            out.redactor),
        unwritten(borrowed.borrowed_input.empty() ? borrowed.input : borrowed.borrowed_input) {}
  explicit State(std::unique_ptr<ProcessOptions> given) : State(*given) {
    owned_options = std::move(given);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() = default;

  // With `hold_writers` the program's ends of the pipes stay open here until it has ended, so that
  // its exit wakes this thread once and not three times. That costs two descriptors for each.
  bool start(bool hold_writers);
  void add_descriptors(std::vector<pollfd>& set);
  Clock::time_point deadline() const;
  void step(const std::vector<pollfd>& set, ReadBuffer& buffer);
  bool over() const { return phase == Phase::over; }

  // Of options that are its own: what only the start needs, which is most of it.
  void forget_start();

  // For the handles.
  bool signal_group(int number);
  // To the group, and to descendants that left it.
  void signal_tree(int number);

  std::unique_ptr<ProcessOptions> owned_options = {};
  const ProcessOptions& options;
  Function<void(const ProcessResult&)> on_end = {};
  Phase phase = Phase::running;
  Outcome stopped_as = Outcome::exited;  // timed_out or cancelled once it was asked to end
  pid_t pid = -1;                        // of our child: the program, or its supervisor
  UniqueFd exit_event = UniqueFd();
  bool is_pidfd = false;
  pthread_t waiter = {};
  Supervisor supervisor = Supervisor();
#if CODEEXEC_HAS_SANDBOX
  RunCgroup cgroup = {};
#endif
  Output out;
  Output err;
  UniqueFd spill_directory = UniqueFd();  // when the caller has not opened it
  int spill_error = 0;                    // errno that kept it from being opened
  UniqueFd input = UniqueFd();
  int input_error = 0;         // errno that ended it too soon
  std::string_view unwritten;  // of what is given, then of `current_input`
  std::string current_input = {};
  std::vector<KnownProcess> escaped = {};  // descendants outside the process group
  bool scattered_killed = false;
  std::string run_variable = {};  // NAME=value, in the environment of this run alone
  std::uint64_t start_ticks = 0;
  std::size_t slots[slot_count] = {};
  Clock::time_point started = {};
  Clock::time_point ended = {};
  Clock::time_point timeout_at = Clock::time_point::max();
  Clock::time_point heartbeat_at = Clock::time_point::max();
  Clock::time_point disk_check_at = Clock::time_point::max();
  // Bytes at the start, of each file system where they are limited.
  std::array<std::uint64_t, most_disk_roots> free_disk = {};
  bool disk_reached = false;
  Clock::time_point phase_until = {};  // of asked_to_end and killed
  Clock::time_point drain_until = {};
  Clock::time_point drain_end = {};

  std::atomic<bool> cancel_asked{false};
  std::atomic<bool> kill_asked{false};
  std::mutex mutex = {};
  std::condition_variable ended_event = {};
  std::optional<CancelToken> end_token =
      {};  // the same for poll(), where somebody has asked for it
  std::string queued_input = {};
  bool input_open = false;
  bool input_ends = true;  // when everything queued is written
  bool reaped = false;
  bool done = false;
  ProcessResult result = ProcessResult();
  std::unique_ptr<State> measure = {};  // while recovering

 private:
  static constexpr std::size_t no_slot = std::size_t(-1);

  bool refuse_options();
  void open_spill_directory();
  bool fail(SpawnStep step, int error, std::string message);
  bool adopt(bool wait);
  void fill_pipe();
  void set_times();
  void carrier_ended(ReadBuffer& buffer, Clock::time_point now);
  void recover();
  void add_slot(std::vector<pollfd>& set, Slot slot, int fd, short events);
  short events_of(const std::vector<pollfd>& set, Slot slot) const;
  void output_event(Output& output, short events, ReadBuffer& buffer, Clock::time_point now);
  void read_output(Output& output, ReadBuffer& buffer, Clock::time_point now);
  ssize_t read_in_place(Output& output);
  void take_bytes(Output& output, std::string_view bytes);
  void take_output(Output& output, std::string_view bytes);
  void keep_output(Output& output, std::string_view bytes);
  void end_output(Output& output);
  void spill(Output& output, std::string_view bytes);
  void write_spill(Output& output, std::string_view bytes);
  bool more_input();
  void feed_input();
  void close_input();
  void check_time(Clock::time_point now);
  void check_disk(Clock::time_point now);
  bool disk_filled() const;
  void ask_to_end(Outcome why, Clock::time_point now);
  void kill_all();
  void kill_background();
  void leader_ended(ReadBuffer& buffer, Clock::time_point now);
  void kill_scattered(Clock::time_point now);
  bool held() const;
  void drain_further(Clock::time_point now);
  void finish(bool abandon);
  void fill_status();
  void fill_output(Output& output, std::string& text, OutputCounts& counts, std::string& file);
  void add_to_message(std::string_view text);
  bool find_escaped();
  void signal_escaped(int number);
  bool supervised() const;
  pid_t command() const;
  bool order(int number);
  void await_group_signals();
  void take_report();
  bool none_left() const;  // nothing of the run is alive, for sure
  ExitStatus last_status();
  void name_limits();
};

}  // namespace v0_1
}  // namespace codeexec
