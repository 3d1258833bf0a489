// Commands that run in the background.
#pragma once

#include "base/base.hpp"
#include "executor/executor.hpp"
#include "process/process.hpp"
#include "regex/regex.hpp"
#include "terminal/terminal.hpp"

namespace codeexec {
inline namespace v0_1 {

struct JobOptions {
  std::size_t max_running = 10;
  std::size_t max_lines = 10000;                     // the last lines of a stream that read() gives
  std::chrono::milliseconds timeout = no_limit;      // of commands without a timeout of their own
  std::chrono::milliseconds max_timeout = no_limit;  // longer timeouts are reduced to it
  // How many ended jobs are kept, each with its output, and for how long. Whenever a job starts or
  // is looked up, the oldest beyond these bounds are removed. They are also removed while the
  // commands of all ended jobs take more than 64 MiB.
  std::size_t max_finished = 100;
  std::chrono::milliseconds keep_finished = std::chrono::hours(1);
};

enum class JobState {
  running,
  stopped,  // exited with code 0
  failed,   // exited with another code, timed out, did not start, or its status was lost
  killed,   // ended by a signal, or cancelled: also when it then exited by itself
};
const char* name(JobState state) noexcept;

struct JobStatus {
  // "shell_" and 16 random hexadecimal digits. It is a capability: anybody who has it can use the
  // job.
  std::string id = {};
  JobState state = JobState::running;
  // While the job runs: what is known so far, with outcome `unknown`. Afterwards everything but out
  // and err, which Jobs::read() gives.
  Result result = Result();
  bool keeps_input = false;               // Command::keep_input_open
  bool takes_input = false;               // it is open now: Jobs::write() may follow
  std::string start_time = {};            // UTC, RFC 3339 with milliseconds
  std::chrono::milliseconds duration{0};  // until now, or until the job ended
};

// Output after the byte offsets given to Jobs::read(); OutputChunk::next is the offset for the next
// call. OutputChunk::missed counts bytes that the ring has lost and bytes before the last max_lines
// lines; the text then begins with a line that says so. If `status` has ended, the output is
// complete.
struct JobOutput {
  JobStatus status = JobStatus();
  OutputChunk out = {};
  OutputChunk err = {};
};

// Starts commands through the executor's gate and lets them run in the background, as jobs. Each
// job's streams are read all the time, into rings of the executor's max_output bytes, without a
// thread or a timer per job.
//
// Thread-safe. In callbacks of started commands, wait() and run() end this program with a message;
// kill() and the destructor do not wait there; see ProcessOptions. The executor is borrowed, for
// start() and run().
//   Errors of every function that takes an id: not_found if there is no such job (any more).
class Jobs {
 public:
  struct Wait {
    std::uint64_t out = 0;  // offsets in the two streams, as read() takes them
    std::uint64_t err = 0;
    // Wait for a line of either stream after these offsets that matches; a last line without its
    // newline counts. The pattern sees one line at a time, without the newline. While a line grows,
    // only its last 4 KiB are searched again: a longer match may be missed, and `$` matches where
    // the line ends so far. Bytes that the ring has lost are skipped. Empty: wait for the end.
    std::optional<Regex> pattern = {};
    // Match the lines of the terminal's screen in place of the output's, once there is output after
    // the offset `out`.
    bool on_screen = false;
    std::chrono::milliseconds time = no_limit;
    std::optional<CancelToken> cancel = {};  // ends the wait, not the job
  };
  enum class WaitEnd { matched, ended, timed_out, cancelled };

  explicit Jobs(const Executor& executor, JobOptions options = {});
  // Kills all running jobs at once and waits for them: at most for the executor's kill_grace and 3
  // seconds. Other threads may still be in wait(), run() or kill(), which return then; other calls
  // must have returned. If this program ends in any other way, its jobs are killed, too. In a fork
  // of this program, the destructor does nothing.
  ~Jobs();
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  // Starts a job and returns at once. Sets Command::background and keep_end_only, and takes
  // keep_input_open from the command. The timeout is the command's or that of JobOptions; those of
  // the executor have no effect.
  //   Errors: limit if max_running jobs are running; the command is then neither judged nor
  //   recorded. permission_denied if the gate refuses the command, or the error of its start;
  //   `failure`, if given, then gets the Result.
  // Another executor may be given that starts this one; it is borrowed until the job is removed.
  Expected<JobStatus> start(const Command& command, Result* failure = nullptr,
                            const Executor* by = nullptr);

  // Runs a command in the foreground. If it has not ended after `time`, it goes on as a job, and
  // the state is `running`. Otherwise there is no job: `id` and `start_time` are empty, and the
  // result is that of Executor::run() with all output, also for a refusal. Output keeps head and
  // tail, unless the command has keep_end_only. Timeouts are those of start(). Command::cancel ends
  // the foreground run only, not the job. If max_running jobs are running, the command stays in the
  // foreground, and its input ends; without a timeout of its own it is then cancelled after the
  // executor's, and a note says so. Until it is a job its callbacks are called by the caller, as
  // those of Executor::run().
  // With `as_foreground` it is like one of Executor::run() also as a job: its timeouts are the
  // executor's, those of JobOptions have no effect, and its audit record does not name the job.
  JobStatus run(const Command& command, std::chrono::milliseconds time,
                const Executor* by = nullptr, bool as_foreground = false);

  Expected<JobStatus> status(std::string_view id) const;
  std::vector<JobStatus> list() const;  // in the order of their start

  // The output after these byte offsets. Takes time and memory in proportion to what is returned.
  Expected<JobOutput> read(std::string_view id, std::uint64_t out = 0, std::uint64_t err = 0) const;

  // What the terminal of the job shows, also after its end.
  //   Errors: unsupported if it has none: see Command::terminal.
  Expected<TerminalScreen> screen(std::string_view id) const;
  // Gives it another size, see Process::resize().
  Expected<void> resize(std::string_view id, TerminalSize size) const;

  // Blocks the calling thread, in time linear in what the job prints.
  //   Errors: limit if there are no descriptors left; each call takes two.
  Expected<WaitEnd> wait(std::string_view id, const Wait& until) const;
  Expected<WaitEnd> wait(std::string_view id) const { return wait(id, Wait()); }

  // For commands with keep_input_open. Queues the bytes, at most 1 MiB of them.
  //   Errors: io if the job has ended or its input is closed; limit; permission_denied if the guard
  //   refuses what the job would run of them, see Execution::write().
  Expected<void> write(std::string_view id, std::string_view bytes) const;
  Expected<void> close_input(std::string_view id) const;
  // Sends a signal to its process group. False: it has ended.
  Expected<bool> signal(std::string_view id, int number) const;

  // Ends the job as a timeout does, with everything that it has started, and returns when it has
  // ended: after the executor's kill_grace and 3 seconds at the latest. True for the one call that
  // ended it; false if it had ended by itself or for another reason.
  Expected<bool> kill(std::string_view id) const;

  // Removes a job that has ended, with its output.
  //   Errors: invalid_argument if it still runs.
  Expected<void> forget(std::string_view id) const;

 private:
  struct Job;
  struct State;
  std::shared_ptr<State> state_;  // shared with calls of other threads that still wait
};
const char* name(Jobs::WaitEnd end) noexcept;

}  // namespace v0_1
}  // namespace codeexec
