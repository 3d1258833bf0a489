// Start a program, feed and capture it, wait for it, kill its tree.
#pragma once

#include "base/base.hpp"
#include "sandbox/sandbox.hpp"
#include "terminal/terminal.hpp"

namespace codeexec {
inline namespace v0_1 {

// How a run ended.
enum class Outcome {
  exited,       // by itself; exit_code holds its status
  signaled,     // killed by a signal that was not sent for a timeout or a cancel; see `signal`
  timed_out,    // stopped at its deadline
  cancelled,    // stopped on request
  refused,      // never started: a policy or a path rule said no (set by executors only)
  not_started,  // never started: see system_error and step
  unknown,      // it ended, but how could not be learned: the host reaped it, on Linux before 6.15
};
const char* name(Outcome outcome) noexcept;

// No bound, for options that count bytes or lines and where 0 keeps none of them. (For times there
// is no_limit.)
inline constexpr std::size_t unbounded = static_cast<std::size_t>(-1);

// The two output streams of a program.
enum class Stream { out, err };

// Bytes of one stream.
struct OutputCounts {
  std::uint64_t total_bytes = 0;    // the program wrote, as far as it was read
  std::uint64_t dropped_bytes = 0;  // of them not in the text
  std::uint64_t invalid_bytes = 0;  // of the kept ones: not UTF-8, replaced by U+FFFD
  std::uint64_t file_bytes = 0;     // in the spill file; less than total_bytes: it was cut
  std::uint64_t redactions = 0;     // secrets masked; the other counts are those of the masked text
  std::string sha256 = {};          // of all bytes, with ProcessOptions::hash_output: 64 hex digits
};

// A piece of a stream, as read() of a Process, an Execution or Jobs gives it.
//
// The text is the output after the first `cursor` bytes, as far as it is still kept. The line
// "\n... (<n> bytes omitted) ...\n" stands where bytes are missing. A character that has only
// arrived in part waits for the next call, unless the stream has ended. Begin with cursor 0, then
// pass `next`. At most the last `max_lines` lines are returned; lines before them count as missed.
struct OutputChunk {
  std::string text = {};         // well-formed UTF-8
  std::uint64_t next = 0;        // the cursor for the next call
  std::uint64_t missed = 0;      // bytes after the cursor that are no longer kept
  std::string file = {};         // the spill file, when there is one
  std::uint64_t file_bytes = 0;  // in that file
};

struct ProcessOptions {
  // Program and arguments. A program without a slash is searched in the PATH of `environment`
  // (without one: /bin:/usr/bin), as execvp(3) does, scripts without a #! line included.
  std::vector<std::string> argv = {};
  // NAME=value; exactly this, nothing is inherited. CODEEXEC_RUN_ID is added: its value finds the
  // processes of the run that left its process group and session.
  std::vector<std::string> environment = {};
  std::string work_dir = {};  // empty: the caller's
  int work_dir_fd = -1;       // an open directory, borrowed during the start; wins over work_dir
  int pass_fd = -1;           // borrowed during the start; the program gets it as descriptor 3
  // On Linux, for root: user and group of the program, which has no other groups. -1: those of this
  // process.
  std::int64_t uid = -1;
  std::int64_t gid = -1;
  // Fed to standard input, which is then closed. Empty: standard input is /dev/null.
  std::string input = {};
  std::string_view borrowed_input = {};  // in its place, when not empty: the caller's until the end
  bool keep_input_open = false;          // for Process::write(), until Process::close_input()
  bool merge_streams = false;  // one pipe for both streams: true order, all of it in `out`
  // Makes a terminal of this size the standard streams of the program, which controls its session.
  // Output is one stream, as with merge_streams; the end of input is typed as ctrl-d; TERM is
  // xterm-256color. Questions of the program to the terminal are answered. A terminal line takes at
  // most 4 KiB of input until the program reads it.
  std::optional<TerminalSize> terminal = {};

  // The sandbox of the program. Unless it is off, a supervisor stands between the host (the process
  // that uses this library) and the program, on Linux on x86_64 and aarch64. It adopts all
  // processes that the program leaves behind, and kills them when the program or the host ends.
  // It is a process that shares the host's memory, so `ps` shows it as codeexec with the host's
  // size.
  Sandbox sandbox = {};
  // With Network::allow of the sandbox: called once, in the thread that starts the program and when
  // it runs, with a socket that listens on a port of the 127.0.0.1 of its network, for a proxy.
  // Where commands have one network (SandboxOptions::common_network), each needs another port.
  Function<void(UniqueFd)> on_listener = {};
  std::uint16_t listener_port = 61080;
  // The same supervisor without a sandbox: no process of the program outlives the program or the
  // host. Exceptions are processes of another user (by sudo), and a program that kills the
  // supervisor. Without support (another system, an emulator, Linux before 5.2) it has no effect.
  bool supervised = false;
  // Values that are masked: each occurrence in the output, in the spill file and in what on_output
  // gets becomes [redacted], also when it arrives in pieces. Values of fewer than 4 bytes are not
  // masked. With more than 1 MiB of values the start fails. Line ends at the end of a value do not
  // count.
  std::vector<std::string> secrets = {};

  // Bytes kept per stream, its head and its tail.
  std::size_t max_output = std::size_t{1} << 20;  // 0: none
  bool keep_end_only = false;                     // all of them from its end, to follow the output
  // When not empty: a stream that outgrows max_output, or spill_above when that is less, goes whole
  // into a new file in this directory (mode 0600, name codeexec-<random>.out or .err), which is the
  // caller's to delete. The directory is opened at the start, so replacing it later has no effect.
  std::string spill_dir = {};
  // That directory, opened by the caller and borrowed until the end; spill_dir then only names it.
  int spill_dir_fd = -1;
  std::size_t spill_above = unbounded;
  // Sets OutputCounts::sha256. Per MiB of output this takes 0.7 ms of processor time where the
  // processor has instructions for it (x86 with SHA extensions, ARMv8), and about 4 ms elsewhere.
  bool hash_output = false;
  std::uint64_t max_spill = std::uint64_t{1}
                            << 30;  // bytes per file, or unbounded; the rest is not written

  // Times. Zero or less means at once; no_limit means never. `timeout` counts from the start of the
  // program.
  std::chrono::milliseconds timeout = no_limit;
  // Stops it like a timeout when neither stream has brought a byte for so long.
  std::chrono::milliseconds idle_timeout = no_limit;
  std::chrono::milliseconds kill_grace = std::chrono::milliseconds(500);  // SIGTERM to SIGKILL
  // Once the program has ended, its pipes are read until they are closed everywhere, or `drain`
  // passes without data, or `max_drain` passes in all.
  std::chrono::milliseconds drain = std::chrono::milliseconds(100);
  std::chrono::milliseconds max_drain = std::chrono::milliseconds(1500);
  // Leave the processes that the program started in the background alive when it ends by itself,
  // and do not wait for their output. Otherwise they are killed, and always under a supervisor.
  bool keep_background = false;

  std::optional<CancelToken> cancel = {};  // stops the run like a timeout
  // Callbacks. run_process() calls them in its caller's thread, and looks at deadlines after each
  // call. Those of all started programs, on_end among them, share one thread of this library, which
  // does nothing else: deadlines are kept and output is read whatever they do. One that takes long
  // holds up the callbacks of other programs, and its own program when 256 KiB of its output wait.
  // In that thread they may start programs and use handles, also their own, but not wait: wait() on
  // one that is not done() ends this program with a message, wait_for() returns done() at once, and
  // a handle that goes away has its program killed without waiting for that. An exception that
  // leaves a callback ends this program, too (std::terminate).
  // With `post`, those of a started program are called by tasks that this gets, one at a time, each
  // to be called once: in the thread of an event loop, say. It is called itself in a thread of this
  // library, and must not wait. Then done() does not wait for callbacks, on_end comes last, and a
  // thread that does the tasks must not wait() for a program with on_output. The callbacks of a
  // program whose task is dropped are not called any more.
  Function<void(Function<void()>)> post = {};
  // Raw bytes, as they arrive; but what may be the beginning of a secret waits for its end.
  Function<void(Stream, std::string_view)> on_output = {};
  std::chrono::milliseconds heartbeat = no_limit;  // zero or less: never, too
  Function<void()> on_heartbeat = {};              // every `heartbeat` while it runs
};

// What became of a program.
struct ProcessResult {
  ProcessResult();
  ProcessResult(const ProcessResult& other);
  ProcessResult(ProcessResult&& other) noexcept;
  ProcessResult& operator=(const ProcessResult& other);
  ProcessResult& operator=(ProcessResult&& other) noexcept;
  ~ProcessResult();

  Outcome outcome = Outcome::not_started;
  // 0 to 255 when the program left by itself (after a SIGTERM of ours, too), else -1.
  int exit_code = -1;
  int signal = 0;     // that ended it, or 0
  bool idle = false;  // timed_out for its idle_timeout
  std::string out = {};
  std::string err = {};
  OutputCounts out_counts = {};
  OutputCounts err_counts = {};
  std::string out_file = {};  // the spill file, when one was made
  std::string err_file = {};
  bool pipe_held = false;  // reading stopped although a process still held a pipe open
  // Processes that ran on when it had ended, and were killed, as far as a supervisor counted them.
  std::uint64_t left_behind = 0;
  std::chrono::microseconds wall_time{0};
  std::chrono::microseconds cpu_time{0};  // user and system, of the program and what it waited for
  std::uint64_t peak_memory = 0;          // bytes: resident set of the largest process
  int pid = -1;                           // in a process table of its own: as the host sees it
  // Names of the Limits that the run has reached, as far as they show from outside.
  std::vector<std::string> limits_reached = {};
  int system_error = 0;  // of a failed start: errno
  // Of a failed start: setup, start, stdio, work_dir, pass_fd, sandbox or exec.
  std::string step = {};
  std::string message = {};  // one line for a person when something did not go as asked
  bool succeeded() const noexcept { return outcome == Outcome::exited && exit_code == 0; }
};

// Runs one program to its end. Blocks the calling thread only, and needs no other thread. Safe from
// any thread; a pthread_cancel() is acted upon after the run. The caller's signal handlers, masks,
// SIGCHLD disposition and other children are neither used nor changed.
//
// The program runs in a session of its own (no terminal of ours), with an empty signal mask, all
// signals at their defaults, no core dumps (RLIMIT_CORE 0) and no descriptors but 0, 1, 2 and
// pass_fd's 3. A timeout or cancel sends SIGTERM and SIGCONT to its process group and to those of
// its descendants that left the group, then SIGKILL after kill_grace. On Linux, SIGKILL then also
// goes to every process that is still in its session, has its CODEEXEC_RUN_ID or holds its pipes.
// When the program ends by itself, its group is killed; if that does not close the pipes, the same
// processes are killed, too. With a supervisor, all processes that the program left are killed in
// each case. A process that does not die within two seconds is given up, and `message` says so.
// When memory runs out it does not start, or goes on to its end, and `message` says what the result
// lacks; the same holds for Process::start().
ProcessResult run_process(const ProcessOptions& options);

// A running program. All started programs share the threads of this library: one that watches
// them, and when they are needed one for callbacks and one for the library's own work at the end of
// a command. They begin with the first Process and have ended when the destructor of the last one
// returns (in a callback, and after a command that waited for its turn: soon after). Members are
// safe from any thread (except moving and destroying). In a child that the host makes by fork(2),
// they do nothing.
class Process {
 public:
  // `on_end`, when given, is called once with the final result, when done() is true and all other
  // callbacks have returned; ProcessOptions has the rules for callbacks. It is not called if the
  // start fails. `failure`, when given, then holds all that is known; the error has the same
  // errno and message.
  static Expected<Process> start(ProcessOptions options,
                                 Function<void(const ProcessResult&)> on_end = {},
                                 ProcessResult* failure = nullptr);

  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  // Kills the process group at once, with SIGKILL, and waits for the end and for callbacks that
  // still run (but in a callback).
  ~Process();

  int pid() const noexcept;
  bool done() const;
  // True when it has ended within that time, and on_end has returned.
  bool wait_for(std::chrono::milliseconds time) const;
  // The reference is valid as long as this object.
  const ProcessResult& wait() const;
  // Becomes readable when it has ended, for poll() and event loops; nothing is to be read from it.
  // Made on first use and owned by this object; -1 when the system has none left.
  int descriptor() const;
  // Asks it to stop, as a timeout does, and returns at once.
  void cancel() const;
  // Sends a signal to the process group. False when it has ended.
  bool signal(int number) const;

  // Queues bytes for standard input (keep_input_open) and returns at once. ErrorCode::limit when
  // more than 1 MiB would wait to be read; ErrorCode::io and EPIPE when the program or
  // close_input() has closed it.
  Expected<void> write(std::string_view bytes) const;
  // End of input, after everything that was queued.
  void close_input() const;

  // What the terminal of the program shows, or showed when it ended.
  //   Errors: unsupported if it has none (ProcessOptions::terminal).
  Expected<TerminalScreen> screen() const;
  // Gives the terminal another size; rows or columns of 0 stay as they are. Returns at once: the
  // programs on it get SIGWINCH soon, and before what is written later. On the screen, lines are
  // cut or padded, and rows go from the top only to keep the line of the cursor.
  //   Errors: unsupported if it has none, or is in a place with an agent that cannot; io if it has
  //   ended; invalid_argument.
  Expected<void> resize(TerminalSize size) const;

  // What the stream brought since `cursor`, as far as it is still kept; see OutputChunk.
  OutputChunk read(Stream stream, std::uint64_t cursor, std::size_t max_lines = unbounded) const;

  struct State;    // internal, as the next one
  struct Reactor;  // the threads that drive all states of start()

 private:
  Process(std::shared_ptr<State> state, std::shared_ptr<Reactor> reactor) noexcept;
  void end() noexcept;

  std::shared_ptr<State> state_ = {};
  std::shared_ptr<Reactor> reactor_ = {};  // the last handle's end is that of the threads
};

}  // namespace v0_1
}  // namespace codeexec
