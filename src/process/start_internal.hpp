// Starting a program, with and without a supervisor.
#pragma once

#include "process/plan_internal.hpp"
#include "process/process.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "sandbox/capabilities_internal.hpp"
#include "sandbox/plan_internal.hpp"
#include "terminal/terminal_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// A child of this process, and how to learn of its end.
struct ChildHandle {
  pid_t pid = -1;                    // the program, or its supervisor
  UniqueFd exit_event = UniqueFd();  // becomes readable when the whole process has ended
  bool is_pidfd = false;
  pthread_t waiter = {};  // unless is_pidfd: the thread that makes exit_event readable
};

inline namespace inner {

const char* step_name(SpawnStep step);

// For waitid(): a child that sends no SIGCHLD at its end, too.
#if defined(__linux__)
inline constexpr int any_child = __WALL;
#else
inline constexpr int any_child = 0;
#endif

// A child that runs, or why there is none.
struct Spawned : ChildHandle {
  SpawnStep step = SpawnStep::setup;
  int error = 0;
  bool no_supervisor = false;  // there can be none here; no command has been started
};

// Blocks pthread_cancel() while a run is driven; a cancel takes effect afterwards.
class CancellationPause {
 public:
  CancellationPause() { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  CancellationPause(const CancellationPause&) = delete;
  CancellationPause& operator=(const CancellationPause&) = delete;
  ~CancellationPause() { ::pthread_setcancelstate(before_, nullptr); }

 private:
  int before_ = 0;
};

// True in the threads of the engine, which call the callbacks of started programs and end them:
// they must not wait for their ends, which they report themselves.
bool in_event_thread() noexcept;

// Adds bytes to the input that waits to be written to a command.
//   Errors: as Process::write().
Expected<void> add_input(std::string_view bytes, bool is_open, bool was_kept_open,
                         std::string& waiting);

// Waits until `flag`, under the lock, for `time` at most, and not at all in an event thread.
// Returns the flag.
bool wait_for_flag(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                   std::chrono::milliseconds time, const bool& flag);

// Ends this program with a message that names the function: waiting would never end.
[[noreturn]] void abort_in_callback(const char* function);

Clock::time_point later(Clock::time_point from, std::chrono::milliseconds time);

// Waits until a descriptor is ready or the deadline has passed. Interruptions count as events.
void wait_for_events(pollfd* set, std::size_t count, Clock::time_point deadline);
void wait_for_events(std::vector<pollfd>& set, Clock::time_point deadline);

// Waits for an event, which is a token that is cancelled. False when `cancel` came first or the
// deadline has passed. Takes no memory.
bool wait_for_event(const CancelToken& event, const std::optional<CancelToken>& cancel,
                    Clock::time_point deadline);

// The error, with ECANCELED, of what a cancel has kept from starting.
SharedError cancelled_before_start();

// The variables of this process, as NAME=value.
std::vector<std::string> own_variables();

// A pipe whose ends are not inherited and not one of 0, 1 and 2. False and errno on failure.
bool make_pipe(UniqueFd& read_end, UniqueFd& write_end);

#if defined(__linux__)
// A descriptor of a process, which never means another one that gets its pid later. -1 before Linux
// 5.3.
int open_pidfd(pid_t pid);
#endif

void set_nonblocking(const UniqueFd& fd);

// Of the file system that a directory lies on, for users without privileges; 0 if it is not known.
std::uint64_t free_bytes(const UniqueFd& directory);

// Its value is different for each run, so that the processes of a run can be found by it.
inline constexpr std::string_view run_variable_name = "CODEEXEC_RUN_ID=";

// Everything a child needs that takes memory, made before it exists.
class Launch {
 public:
  // `run_variable` takes the place of one of the same name.
  Launch(const ProcessOptions& options, const std::string& run_variable) {
    const std::string& program = options.argv[0];
    if (program.find('/') != std::string::npos) {
      candidates_.push_back(program);
    } else {
      search(options.environment, program);
    }
    // No pointer moves: there is room for all of them.
    pointers_ = std::vector<char*>(candidates_.size() + 2 * options.argv.size() +
                                   options.environment.size() + 7);
    next_ = pointers_.data();
    plan.paths = next_;
    add(candidates_, 0);
    plan.argv = next_;
    add(options.argv, 0);
    static char shell_name[] = "sh";
    plan.shell_argv = next_;
    *next_++ = shell_name;
    *next_++ = nullptr;
    add(options.argv, 1);
    plan.environment = next_;
    plan.terminal = options.terminal.has_value();
    for (const std::string& variable : options.environment)
      if (!starts_with(variable, run_variable_name) &&
          !(plan.terminal && starts_with(variable, "TERM="sv)))
        add(variable);
    if (plan.terminal) *next_++ = const_cast<char*>(terminal_variable);
    add(run_variable);
    *next_ = nullptr;
    plan.work_dir = options.work_dir.empty() ? nullptr : options.work_dir.c_str();
    plan.work_dir_fd = options.work_dir_fd;
    plan.pass_fd = options.pass_fd;
    plan.uid = static_cast<long>(options.uid);
    plan.gid = static_cast<long>(options.gid);
  }

  const std::vector<std::string>& candidates() const { return candidates_; }
  const std::string& search_path() const { return search_path_; }

  ChildPlan plan = ChildPlan();

 private:
  // execve() takes char*, but promises in its rationale not to write.
  void add(const std::string& text) { *next_++ = const_cast<char*>(text.c_str()); }

  void add(const std::vector<std::string>& texts, std::size_t first) {
    for (std::size_t i = first; i < texts.size(); ++i) add(texts[i]);
    *next_++ = nullptr;
  }

  // An empty element of PATH is the working directory (POSIX, 8.3).
  void search(const std::vector<std::string>& environment, const std::string& program) {
    search_path_ = "/bin:/usr/bin";
    for (const std::string& variable : environment)
      if (starts_with(variable, "PATH="sv)) {
        search_path_ = variable.substr(5);
        break;
      }
    if (program.empty()) return;
    std::string_view rest = search_path_;
    for (;;) {
      const std::size_t colon = rest.find(':');
      const std::string_view directory = rest.substr(0, colon);
      candidates_.push_back(concat("%/%", {directory.empty() ? "." : directory, program}));
      if (colon == std::string_view::npos) return;
      rest.remove_prefix(colon + 1);
    }
  }

  std::string search_path_ = {};
  std::vector<std::string> candidates_ = {};
  std::vector<char*> pointers_ = {};  // lists with a null at the end of each
  char** next_ = nullptr;             // in these
};

// Executes the first path that is a program, as execvp(3) does; returns the errno of its failure.
template <class Execute>
CODEEXEC_IN_CHILD int execute_first(ChildPlan& plan, Execute execute) {
  int failure = ENOENT;
  for (const char* const* path = plan.paths; *path; ++path) {
    int error = execute(*path, plan.argv, plan.environment);
    if (error == ENOEXEC) {
      plan.shell_argv[1] = const_cast<char*>(*path);
      const int shell_error = execute("/bin/sh", plan.shell_argv, plan.environment);
      if (shell_error != ENOENT) error = shell_error;
    }
    if (error == EACCES) failure = EACCES;
    if (error != EACCES && error != ENOENT && error != ENOTDIR) return error;
  }
  return failure;
}

// Starts a thread on which no signal of the host is handled. An errno, or 0.
int start_thread(pthread_t* thread, void* (*function)(void*), void* argument);

int watch_by_thread(Spawned& child);

// Reads the report of a child from its pipe. False: there is none, or only a part. Retries reads
// that fail: without a report it is not known whether a program runs.
template <class Record>
bool read_record(const UniqueFd& pipe, Record& record) {
  constexpr int most_failures = 10;
  int failures = 0;
  ssize_t size = 0;
  do size = ::read(pipe.get(), &record, sizeof record);
  while (size < 0 && (errno == EINTR || ++failures < most_failures));
  return size == static_cast<ssize_t>(sizeof record);
}

// Makes the pipe by which a child reports what went wrong. An errno, or 0.
int make_report_pipe(UniqueFd& report, UniqueFd& report_end);

// Reaps a child that never became a program, or is not wanted.
void reap_failed(pid_t pid);

#if CODEEXEC_HAS_CLONE
// The number that is the name of an entry which getdents64() gave, or -1. Goes on to the next one.
CODEEXEC_IN_CHILD int next_number(const char* entries, long& at);

CODEEXEC_IN_CHILD void reset_signal(int number);

// Sets all signals to their defaults. Ignored signals would stay ignored in the program, and with
// SIGPIPE ignored `yes | head` never ends. No system call asks for all at once; the 62 calls take
// 5 to 10 us. `handlers_cleared`: no handler of the host is left.
CODEEXEC_IN_CHILD void reset_signals(bool handlers_cleared);

// Closes all descriptors from `first` on but those that are kept, of which -1 is none. The table of
// descriptors is a copy: closing touches nothing of the parent's.
CODEEXEC_IN_CHILD void close_from(int first, const int* kept, std::size_t count);

CODEEXEC_IN_CHILD Failure failed_at(SpawnStep step, long result);

// Returns when the child has executed its program or has ended.
CODEEXEC_IN_CHILD long clone_child(ChildPlan& plan, char* stack, std::size_t size, int* pidfd);
#endif

Spawned spawn_once(ChildPlan& plan);

#if CODEEXEC_HAS_SANDBOX
// Of a program that has nothing of a sandbox but, where there can be one, a supervisor.
inline constexpr SandboxPlan no_sandbox = {false};

// What a supervisor does: its argument is its Supervision.
CODEEXEC_IN_CHILD int supervisor_main(void* argument);

// As spawn_once(), with a supervisor between: one that waits, or a new one.
Spawned spawn_supervised(ChildPlan& plan, Supervisor& supervisor);

// True: the supervisor of a command that has ended waits for another one, and is kept for it. The
// run has none any more then.
bool keep_supervisor(ChildHandle& child, Supervisor& supervisor);
#endif

// Two failures are temporary: a system that is out of processes for a moment, and a program
// that another thread's fork still holds open for writing.
Spawned spawn(ChildPlan& plan, [[maybe_unused]] Supervisor& supervisor);

// `file`: what the error is about, when it is not the program.
std::string describe_failure(const ProcessOptions& options, const Launch& launch, SpawnStep step,
                             int error, std::string_view file);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
