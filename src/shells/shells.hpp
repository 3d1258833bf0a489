// Commands that run in the background.
#pragma once

#include "base/base.hpp"
#include "executor/executor.hpp"
#include "process/process.hpp"
#include "regex/regex.hpp"

namespace codeexec {
inline namespace v0_1 {

struct ShellOptions {
  std::size_t max_running = 10;
  std::size_t max_lines = 10000;                     // of each stream, told at once: the last ones
  std::chrono::milliseconds timeout = no_limit;      // of commands that bring none
  std::chrono::milliseconds max_timeout = no_limit;  // longer ones are cut down to it
  // How many shells that have ended are still known, and how long; the oldest go first, also when
  // the commands of all of them have more than 64 MiB. Eviction happens when another one starts or
  // is asked for. Each keeps its output.
  std::size_t max_finished = 100;
  std::chrono::milliseconds keep_finished = std::chrono::hours(1);
};

enum class ShellState {
  running,
  stopped,  // left by itself with exit code 0
  failed,   // left with another one, ran out of time, or how it ended could not be learned
  killed,   // by a signal, or because somebody asked; also when it then left by itself
};
const char* name(ShellState state) noexcept;

struct ShellStatus {
  std::string id = {};  // "shell_" and 16 hexadecimal digits of randomness: who knows it may use it
  ShellState state = ShellState::running;
  // While it runs: what is known so far, outcome `unknown`. Afterwards all but out and err, which
  // BackgroundShells::read() gives.
  Result result = Result();
  std::string start_time = {};            // UTC, RFC 3339 with milliseconds
  std::chrono::milliseconds duration{0};  // until now, or its end
};

// Where a reader of the output stands: bytes of the two streams. Cursors only grow.
struct ShellCursor {
  std::uint64_t out = 0;
  std::uint64_t err = 0;
};

// What a shell printed after a cursor; the next one is Chunk::next. What fell out of the ring, or
// is more than max_lines before the end, is counted in Chunk::missed; the text then begins with the
// line that tells so. When `status` says that it has ended, this is all there will be.
struct ShellOutput {
  ShellStatus status = ShellStatus();
  Capture::Chunk out = {};
  Capture::Chunk err = {};
};

struct ShellWait {
  ShellCursor since = {};
  // Until a line of either stream after `since` matches, also one that has no end yet, or it has
  // ended. The pattern sees one line at a time, without its newline. Of a line that comes in
  // pieces, the last 4 KiB are looked at again with each: a longer match may not be found, and `$`
  // matches where a piece ends. What fell out of the ring before it could be looked at is skipped.
  // Empty: until it has ended.
  std::optional<Regex> pattern = {};
  std::chrono::milliseconds time = no_limit;
  std::optional<CancelToken> cancel = {};  // ends the waiting, not the shell
};

enum class ShellWaitEnd { matched, ended, timed_out, cancelled };
const char* name(ShellWaitEnd end) noexcept;

// What became of a command that was given some time in the foreground.
struct ForegroundRun {
  bool ended = false;  // `result` has everything, and the shell is not known any more
  Result result = Result();
  ShellStatus shell = ShellStatus();  // otherwise it goes on as this one
};

// Runs commands that pass the executor's gate and are not waited for. Each has both streams read
// all the time, into rings of the executor's max_output bytes; no thread and no polling for any.
// All members are safe from any thread. In callbacks of started commands, wait() and run() end this
// program with a message, and kill() and the destructor do not wait for the end; see
// ProcessOptions. The executor is borrowed: it must be there for start() and run().
//   Errors of all that take an id: not_found for one that is not known (any more).
class BackgroundShells {
 public:
  explicit BackgroundShells(const Executor& executor, ShellOptions options = {});
  // Kills what runs, all of it at the same time, and waits for that: for the executor's kill_grace
  // and 3 seconds at most. Calls of other threads must have returned, but for those that wait in
  // wait(), run() or kill(): these return, too, as what they wait for has ended. When this program
  // ends in another way, however it does, all of it is killed, too. (In a copy of this program made
  // by fork(2) it does nothing.)
  ~BackgroundShells();
  BackgroundShells(const BackgroundShells&) = delete;
  BackgroundShells& operator=(const BackgroundShells&) = delete;

  // Starts and returns at once. keep_input_open is as the command says it; background and
  // keep_end_only are set. The timeout is the command's, or that of ShellOptions; the executor's
  // have no part in it.
  //   Errors: limit when max_running are running; nothing is judged or recorded then. When the gate
  //   refuses the command, or it does not start, permission_denied or another one, and `failure`,
  //   when given, holds its Result.
  Expected<ShellStatus> start(const Command& command, Result* failure = nullptr);

  // Runs a command in the foreground, and leaves it to itself when it has not ended after `time`.
  // When there is no room for another running shell then, it stays in the foreground; without a
  // timeout of its own it is then cancelled after the executor's, and a note says so. A refusal is
  // a result, too. The result is what Executor::run() gives, and the shell has the head and the
  // tail of its output unless the command says keep_end_only; but it is a background command from
  // its start, so that its timeout is found as start() does. The command's `cancel` has no effect
  // any more once it was left to itself.
  ForegroundRun run(const Command& command, std::chrono::milliseconds time);

  Expected<ShellStatus> status(std::string_view id) const;
  std::vector<ShellStatus> list() const;  // in the order of their start

  // Costs time and memory in proportion to what is new, and at most to what is kept.
  Expected<ShellOutput> read(std::string_view id, ShellCursor since = {}) const;

  // Blocks the calling thread only, which wakes for what is printed. Time linear in that.
  //   Errors: limit when there are no descriptors left; each call takes two.
  Expected<ShellWaitEnd> wait(std::string_view id, const ShellWait& until = {}) const;

  // For commands with keep_input_open. Bytes are queued, at most 1 MiB of them.
  //   Errors: io when it has ended or closed its input; limit.
  Expected<void> write(std::string_view id, std::string_view bytes) const;
  Expected<void> close_input(std::string_view id) const;

  // Ends it as a timeout does, with everything it has started, and returns when it has ended: after
  // the executor's kill_grace and 3 seconds at the latest. True for the one call that ended it;
  // false when it ended by itself, even if nobody has seen that yet, or for another reason.
  Expected<bool> kill(std::string_view id) const;

 private:
  struct Shell;
  struct State;
  std::shared_ptr<State> state_;  // shared with calls of other threads that still wait
};

}  // namespace v0_1
}  // namespace codeexec
