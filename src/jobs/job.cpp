// One job: its events, its output, the threads that wait for it.

#include "jobs/held_internal.hpp"
#include "jobs/job_internal.hpp"
#include "jobs/jobs.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "process/capture_internal.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"
#include "regex/regex.hpp"

namespace codeexec {
inline namespace v0_1 {

const char* name(JobState state) noexcept {
  switch (state) {
    case JobState::running:
      return "running";
    case JobState::stopped:
      return "stopped";
    case JobState::failed:
      return "failed";
    case JobState::killed:
      return "killed";
  }
  return "";
}

const char* name(Jobs::WaitEnd end) noexcept {
  switch (end) {
    case Jobs::WaitEnd::matched:
      return "matched";
    case Jobs::WaitEnd::ended:
      return "ended";
    case Jobs::WaitEnd::timed_out:
      return "timed_out";
    case Jobs::WaitEnd::cancelled:
      return "cancelled";
  }
  return "";
}

namespace {

// The outcome decides: a cancel that came too late has no effect on it.
JobState state_of(const Result& ended) {
  if (ended.outcome == Outcome::signaled || ended.outcome == Outcome::cancelled)
    return JobState::killed;
  return ended.succeeded() ? JobState::stopped : JobState::failed;
}

// Searches the lines of one stream for a pattern while they come in.
class LineSearch {
 public:
  LineSearch(Stream stream, std::uint64_t since) : stream_(stream), cursor_(since) {}

  // True if a line matches in the output since the last call.
  bool advance(const Execution& execution, const Regex& pattern) {
    const OutputChunk chunk = execution.read(stream_, cursor_);
    cursor_ = chunk.next;
    std::string_view text = chunk.text;
    if (chunk.missed == 0) return search(text, pattern);
    // The note about missed bytes is no output. It follows the head of the stream, if one is kept.
    const std::string note = Capture::gap(chunk.missed);
    const std::size_t at = text.find(note);
    if (search(text.substr(0, at), pattern)) return true;
    line_.clear();
    context_ = 0;
    return search(text.substr(at + note.size()), pattern);
  }

 private:
  static constexpr std::size_t searched_again = 4096;

  bool search(std::string_view text, const Regex& pattern) {
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      const bool whole = end != std::string_view::npos;
      const std::string_view piece = text.substr(0, end);
      // A line that came in one piece is searched without a copy.
      if (!line_.empty() || !whole) line_.append(piece);
      if (pattern.find(line_.empty() ? piece : std::string_view(line_), context_)) return true;
      if (!whole) {
        shorten();
        return false;
      }
      line_.clear();
      context_ = 0;
      text.remove_prefix(end + 1);
    }
    return false;
  }

  // Keeps the end of an unfinished line, and one character before it, which `^` and `\b` look at.
  void shorten() {
    constexpr std::size_t longest_character = 4;
    if (line_.size() <= searched_again + longest_character) return;
    const std::size_t kept = utf8_suffix(line_, searched_again).size();
    line_ = std::string(utf8_suffix(line_, kept + longest_character));
    context_ = line_.size() - kept;
  }

  Stream stream_;
  std::uint64_t cursor_;
  std::string line_ = {};    // an unfinished line
  std::size_t context_ = 0;  // bytes at its start where no match may begin
};

}  // namespace

void Jobs::Job::Events::report(bool end) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (end) {
    ended_at = Clock::now();
    ended.store(true);
  }
  for (Waiter* waiter = waiters; waiter; waiter = waiter->next_) waiter->wake(end);
}

Jobs::Job::Waiter::Waiter(std::shared_ptr<Events> events, bool for_output)
    : events_(std::move(events)), for_output_(for_output) {
  if (!make_pipe(readable_, writable_)) error_ = errno;
  set_ = {{readable_.get(), POLLIN, 0}, {-1, POLLIN, 0}};
  const std::lock_guard<std::mutex> lock(events_->mutex);
  next_ = events_->waiters;
  events_->waiters = this;
}

Jobs::Job::Waiter::~Waiter() {
  const std::lock_guard<std::mutex> lock(events_->mutex);
  Waiter** at = &events_->waiters;
  while (*at != this) at = &(*at)->next_;
  *at = next_;
}

Expected<void> Jobs::Job::Waiter::ready(const std::optional<CancelToken>& cancel) const {
  int error = error_;
  if (error == 0 && cancel && cancel->descriptor() < 0) error = errno;
  if (error == 0) return {};
  return cannot_wait(error);
}

Error Jobs::Job::cannot_wait(int error) {
  return system_error(error, "cannot wait for a background shell");
}

void Jobs::Job::Waiter::wait(const std::optional<CancelToken>& cancel, Clock::time_point deadline) {
  if (cancel) set_[1].fd = cancel->descriptor();
  wait_for_events(set_, deadline);
  if (!set_[0].revents) return;
  const std::lock_guard<std::mutex> lock(events_->mutex);
  char byte = 0;
  if (::read(readable_.get(), &byte, 1) == 1) woken_ = false;
}

void Jobs::Job::Waiter::wake(bool end) {
  if (woken_ || (!end && !for_output_)) return;
  woken_ = ::write(writable_.get(), "", 1) == 1;
}

void Jobs::Job::report_end(Command& command) const {
  command.on_end = [reported = events, next = std::move(command.on_end)](const Result& result) {
    next(result);
    reported->report(true);
  };
}

void Jobs::Job::know_start() {
  Result& result = known.result;
  result = Result(execution.asked());
  result.outcome = Outcome::unknown;
  result.pid = execution.pid();
  result.notes.insert(result.notes.end(), notes.begin(), notes.end());
}

bool Jobs::Job::did_not_start(const Execution& tried, JobStatus& failure) {
  failure.result = tried.wait();
  failure.state = state_of(failure.result);
  return false;
}

bool Jobs::Job::start(const Executor& executor, Command& command, JobStatus& failure) {
  command.on_output = [reported = events, next = std::move(command.on_output)](
                          Stream stream, std::string_view bytes) {
    reported->report(false);
    next(stream, bytes);
  };
  report_end(command);
  execution = executor.start(command);
  if (execution.pid() < 0) return did_not_start(execution, failure);
  know_start();
  return true;
}

bool Jobs::Job::start(const Executor& executor, Command& command, JobStatus& failure,
                      Executor::Held& held) {
  report_end(command);
  return held.start(executor, command) || did_not_start(held.execution(), failure);
}

bool Jobs::Job::take_over(Executor::Held& held) {
  if (!held.hand_over([reported = events] { reported->report(false); })) return false;
  execution = held.execution();
  know_start();
  return true;
}

std::uint64_t Jobs::Job::printed(Stream stream) const {
  return execution.read(stream, std::numeric_limits<std::uint64_t>::max()).next;
}

bool Jobs::Job::shows(const Wait& until) const {
  if (printed(Stream::out) <= until.out) return false;
  const auto screen = execution.screen();
  if (!screen) return false;
  std::string_view rest = screen->text;
  while (!rest.empty())
    if (until.pattern->find(take_part(rest, '\n'), 0)) return true;
  return false;
}

bool Jobs::Job::has_ended() const { return events->ended.load() && execution.wait_for(no_limit); }

Jobs::WaitEnd Jobs::Job::wait(Waiter& waiter, const Wait& until, Clock::time_point deadline) const {
  if (in_event_thread()) abort_in_callback("wait() or run() of Jobs");
  LineSearch out(Stream::out, until.out);
  LineSearch err(Stream::err, until.err);
  for (;;) {
    // Asked before the search: if the job has ended, its output is complete.
    const bool ended = has_ended();
    if (until.on_screen) {
      if (until.pattern && shows(until)) return WaitEnd::matched;
    } else if (until.pattern &&
               (out.advance(execution, *until.pattern) || err.advance(execution, *until.pattern)))
      return WaitEnd::matched;
    if (ended) return WaitEnd::ended;
    if (until.cancel && until.cancel->cancelled()) return WaitEnd::cancelled;
    if (Clock::now() >= deadline) return WaitEnd::timed_out;
    waiter.wait(until.cancel, deadline);
  }
}

void Jobs::Job::finish(JobStatus& status, Result&& ended) const {
  Result& result = status.result;
  result = std::move(ended);
  result.notes.insert(result.notes.end(), notes.begin(), notes.end());
  status.state = state_of(result);
  status.duration =
      std::chrono::duration_cast<std::chrono::milliseconds>(events->ended_at - started);
}

JobStatus Jobs::Job::status() {
  const bool ended = has_ended();
  const std::lock_guard<std::mutex> lock(mutex);
  if (ended && known.state == JobState::running) {
    finish(known, execution.wait());
    for (std::string* output : {&known.result.out, &known.result.err}) std::string().swap(*output);
  }
  JobStatus status = known;
  if (ended) return status;
  status.result.out_counts.total_bytes = printed(Stream::out);
  status.result.err_counts.total_bytes = printed(Stream::err);
  status.takes_input = execution.takes_input();
  status.duration = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - started);
  return status;
}

}  // namespace v0_1
}  // namespace codeexec
