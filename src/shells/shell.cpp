// One background command: its events, its output, those who wait for it.

#include "shells/shell_internal.hpp"
#include "shells/shells.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"
#include "regex/regex.hpp"

namespace codeexec {
inline namespace v0_1 {

const char* name(ShellState state) noexcept {
  switch (state) {
    case ShellState::running:
      return "running";
    case ShellState::stopped:
      return "stopped";
    case ShellState::failed:
      return "failed";
    case ShellState::killed:
      break;
  }
  return "killed";
}

const char* name(ShellWaitEnd end) noexcept {
  switch (end) {
    case ShellWaitEnd::matched:
      return "matched";
    case ShellWaitEnd::ended:
      return "ended";
    case ShellWaitEnd::timed_out:
      return "timed_out";
    case ShellWaitEnd::cancelled:
      break;
  }
  return "cancelled";
}

namespace {

// The outcome alone decides: a cancel that came too late has not changed it.
ShellState state_of(const Result& ended) {
  switch (ended.outcome) {
    case Outcome::exited:
      return ended.exit_code == 0 ? ShellState::stopped : ShellState::failed;
    case Outcome::signaled:
    case Outcome::cancelled:
      return ShellState::killed;
    case Outcome::timed_out:
    case Outcome::refused:
    case Outcome::not_started:
    case Outcome::unknown:
      break;
  }
  return ShellState::failed;
}

// Looks for a pattern in the lines of one stream as they come.
class LineSearch {
 public:
  LineSearch(Stream stream, std::uint64_t since) : stream_(stream), cursor_(since) {}

  // True when a line matches of what is new since the last call.
  bool advance(const Execution& execution, const Regex& pattern) {
    const Capture::Chunk chunk = execution.read(stream_, cursor_);
    cursor_ = chunk.next;
    std::string_view text = chunk.text;
    if (chunk.missed == 0) return search(text, pattern);
    // The note stands in the middle when a head is kept. It is no output.
    const std::string note = Capture::gap(chunk.missed);
    const std::size_t at = text.find(note);
    if (search(text.substr(0, at), pattern)) return true;
    line_.clear();
    context_ = 0;
    return search(text.substr(at + note.size()), pattern);
  }

 private:
  static constexpr std::size_t looked_at_again = 4096;

  bool search(std::string_view text, const Regex& pattern) {
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      const bool whole = end != std::string_view::npos;
      const std::string_view piece = text.substr(0, end);
      // A whole line is looked at where it lies.
      if (!line_.empty() || !whole) line_.append(piece);
      if (pattern.find(line_.empty() ? piece : std::string_view(line_), context_)) return true;
      if (!whole) {
        forget();
        return false;
      }
      line_.clear();
      context_ = 0;
      text.remove_prefix(end + 1);
    }
    return false;
  }

  // Of a line that goes on, the end is kept, and before it a character for `^` and `\b` to see.
  void forget() {
    constexpr std::size_t longest_character = 4;
    if (line_.size() <= looked_at_again + longest_character) return;
    const std::size_t kept = utf8_suffix(line_, looked_at_again).size();
    line_ = std::string(utf8_suffix(line_, kept + longest_character));
    context_ = line_.size() - kept;
  }

  Stream stream_;
  std::uint64_t cursor_;
  std::string line_ = {};    // of which the end has not come yet
  std::size_t context_ = 0;  // bytes at its start that are not looked at any more
};

}  // namespace

void BackgroundShells::Shell::Events::tell(bool end) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (end) {
    ended_at = Clock::now();
    ended.store(true);
  }
  for (Waiter* waiter : waiters) waiter->wake(end);
}

BackgroundShells::Shell::Waiter::Waiter(std::shared_ptr<Events> events, bool for_output)
    : events_(std::move(events)), for_output_(for_output) {
  if (!make_pipe(readable_, writable_)) {
    error_ = errno;
    return;
  }
  const std::lock_guard<std::mutex> lock(events_->mutex);
  events_->waiters.push_back(this);
}

BackgroundShells::Shell::Waiter::~Waiter() {
  const std::lock_guard<std::mutex> lock(events_->mutex);
  std::vector<Waiter*>& all = events_->waiters;
  auto at = all.begin();
  while (at != all.end() && *at != this) ++at;
  if (at != all.end()) all.erase(at);  // it is not there when its pipe could not be made
}

Expected<void> BackgroundShells::Shell::Waiter::problem(
    const std::optional<CancelToken>& cancel) const {
  if (error_ != 0) return system_error(error_, "cannot wait for a background shell");
  if (cancel && cancel->descriptor() < 0)
    return system_error(errno, "cannot wait for a background shell");
  return {};
}

void BackgroundShells::Shell::Waiter::wait(const std::optional<CancelToken>& cancel,
                                           Clock::time_point deadline) {
  set_.assign(1, {readable_.get(), POLLIN, 0});
  if (cancel) set_.push_back({cancel->descriptor(), POLLIN, 0});
  wait_for_events(set_, deadline);
  if (!set_[0].revents) return;
  const std::lock_guard<std::mutex> lock(events_->mutex);
  char byte = 0;
  if (::read(readable_.get(), &byte, 1) == 1) woken_ = false;
}

void BackgroundShells::Shell::Waiter::wake(bool end) {
  if (woken_ || (!end && !for_output_)) return;
  woken_ = ::write(writable_.get(), "", 1) == 1;
}

bool BackgroundShells::Shell::start(const Executor& executor, Command& command, Result& failure) {
  command.on_output = [noted = events, told = std::move(command.on_output)](
                          Stream stream, std::string_view bytes) {
    (stream == Stream::out ? noted->out_bytes : noted->err_bytes) += bytes.size();
    noted->tell(false);
    told(stream, bytes);
  };
  command.on_end = [noted = events, told = std::move(command.on_end)] {
    noted->tell(true);
    told();
  };
  execution = executor.start(command);
  if (execution.pid() >= 0) return true;
  failure = execution.wait();
  return false;
}

// What was told as ended is also done: the event thread is only just leaving the callback.
bool BackgroundShells::Shell::has_ended() const {
  return events->ended.load() && execution.wait_for(no_limit);
}

ShellWaitEnd BackgroundShells::Shell::wait(Waiter& waiter, const ShellWait& until,
                                           Clock::time_point deadline) const {
  if (in_event_thread()) abort_in_callback("wait() or run() of BackgroundShells");
  LineSearch out(Stream::out, until.since.out);
  LineSearch err(Stream::err, until.since.err);
  for (;;) {
    // Before its output is looked at, which is complete then.
    const bool ended = has_ended();
    if (until.pattern &&
        (out.advance(execution, *until.pattern) || err.advance(execution, *until.pattern)))
      return ShellWaitEnd::matched;
    if (ended) return ShellWaitEnd::ended;
    if (until.cancel && until.cancel->cancelled()) return ShellWaitEnd::cancelled;
    if (Clock::now() >= deadline) return ShellWaitEnd::timed_out;
    waiter.wait(until.cancel, deadline);
  }
}

Result BackgroundShells::Shell::result() const {
  Result result = execution.wait();
  result.notes.insert(result.notes.end(), notes.begin(), notes.end());
  return result;
}

ShellStatus BackgroundShells::Shell::status() const {
  ShellStatus status;
  status.id = id;
  status.start_time = start_time;
  if (has_ended()) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!known_) {
      Result ended = result();
      for (std::string* output : {&ended.out, &ended.err}) std::string().swap(*output);
      known_.emplace(std::move(ended));
    }
    status.result = *known_;
    status.state = state_of(*known_);
    status.duration =
        std::chrono::duration_cast<std::chrono::milliseconds>(events->ended_at - started);
    return status;
  }
  status.result = execution.asked();
  status.result.outcome = Outcome::unknown;
  status.result.pid = execution.pid();
  status.result.out_counts.total_bytes = events->out_bytes.load();
  status.result.err_counts.total_bytes = events->err_bytes.load();
  status.result.notes.insert(status.result.notes.end(), notes.begin(), notes.end());
  status.duration = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - started);
  return status;
}

}  // namespace v0_1
}  // namespace codeexec
