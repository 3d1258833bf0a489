// All jobs, and the public functions.

#include "jobs/jobs.hpp"
#include "jobs/held_internal.hpp"
#include "jobs/job_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "process/plan_internal.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// The jobs in the order of their start. A job counts as running when it has a place:
//
//   start():  reserve() --started--> add() --ended--> take_old() or forget() removes it
//                       --failed---> give_back()
//   run():    Foreground --ended in time--> nothing else
//                        --time over------> to_background(): reserve(), then the same
struct Jobs::State {
  using JobPointer = std::shared_ptr<Job>;

  State(const Executor& its_executor, JobOptions its_options)
      : executor(its_executor), options(its_options) {}

  // A job for `command`, which is changed to what will be started. `as_foreground`: by the options
  // of this executor, in place of those of jobs.
  Expected<JobPointer> make_job(Command& command, const Executor* as_foreground = nullptr) const;
  // Takes a place for a job that starts; add() or give_back() follows.
  Expected<void> reserve();
  void give_back();
  void add(const JobPointer& job);
  // False if there is no room, or no engine that drives it on.
  bool to_background(const JobPointer& job, Executor::Held& held);
  void remove(const Job& job);
  Expected<JobPointer> find(std::string_view id);
  std::vector<JobPointer> all();

  const Executor& executor;
  const JobOptions options;
  const pid_t owner = ::getpid();
  std::mutex mutex = {};
  std::vector<JobPointer> jobs = {};
  std::size_t starting = 0;      // places of jobs that are not in the list yet
  const CancelToken close = {};  // of the destructor, also for the threads in run()
  // The commands that they drive.
  std::size_t in_foreground = 0;
  bool none_in_foreground = true;
  std::condition_variable foreground_ended = {};

  // There as long as a thread drives one.
  class Foreground {
   public:
    explicit Foreground(State& state) : state_(state) { count(1); }
    Foreground(const Foreground&) = delete;
    Foreground& operator=(const Foreground&) = delete;
    ~Foreground() { count(-1); }

   private:
    void count(int more);

    State& state_;
  };

 private:
  // For these two, the caller holds the mutex.
  bool has_room() const;
  std::vector<JobPointer> take_old();
};

void Jobs::State::Foreground::count(int more) {
  const std::lock_guard<std::mutex> lock(state_.mutex);
  state_.in_foreground += static_cast<std::size_t>(more);
  state_.none_in_foreground = state_.in_foreground == 0;
  if (state_.none_in_foreground) state_.foreground_ended.notify_all();
}

Expected<Jobs::State::JobPointer> Jobs::State::make_job(Command& command,
                                                        const Executor* as_foreground) const {
  auto job = new_shared<Job>();
  const std::string random = random_hex(8);
  if (random.empty()) return system_error(errno, "cannot make a name for a background shell");
  job->known.id = concat("shell_%", {random});
  job->known.start_time = utc_timestamp();
  job->known.keeps_input = command.keep_input_open;
  command.background = true;
  if (as_foreground) {
    const ExecutorOptions& usual = as_foreground->options();
    if (!command.timeout) command.timeout = usual.timeout;
    if (!command.idle_timeout) command.idle_timeout = usual.idle_timeout;
    bound_timeout(*command.timeout, usual.max_timeout, job->notes);
    return job;
  }
  command.caller.shell_id = job->known.id;
  const bool asked = command.timeout.has_value();
  if (!asked) command.timeout = options.timeout;
  if (*command.timeout > options.max_timeout) {
    if (asked)
      add_note(
          job->notes,
          "timeout reduced from % to % seconds, the longest that background shells may have here",
          {seconds_text(*command.timeout), seconds_text(options.max_timeout)});
    command.timeout = options.max_timeout;
  }
  return job;
}

bool Jobs::State::has_room() const {
  std::size_t running = starting;
  for (const JobPointer& job : jobs)
    if (!job->events->ended.load()) ++running;
  return running < options.max_running;
}

// Removes ended jobs beyond the bounds of JobOptions. The caller destroys them after it has given
// up the mutex. Each removal costs a pass over all jobs; usually there is one at most.
std::vector<Jobs::State::JobPointer> Jobs::State::take_old() {
  constexpr std::size_t most_command_bytes = std::size_t{64} << 20;
  const Clock::time_point now = Clock::now();
  std::vector<JobPointer> old;
  for (;;) {
    std::size_t finished = 0;
    std::size_t command_bytes = 0;
    auto oldest = jobs.end();
    for (auto at = jobs.begin(); at != jobs.end(); ++at) {
      const Job& job = **at;
      if (!job.events->ended.load()) continue;
      ++finished;
      command_bytes += job.execution.asked().command.size();
      if (oldest == jobs.end() || job.events->ended_at < (*oldest)->events->ended_at) oldest = at;
    }
    if (oldest == jobs.end() ||
        (finished <= options.max_finished && command_bytes <= most_command_bytes &&
         now < later((*oldest)->events->ended_at, options.keep_finished)))
      return old;
    old.push_back(std::move(*oldest));
    jobs.erase(oldest);
  }
}

Expected<void> Jobs::State::reserve() {
  std::vector<JobPointer> old;
  const std::lock_guard<std::mutex> lock(mutex);
  old = take_old();
  if (!has_room())
    return make_error(ErrorCode::limit,
                      "as many background shells are running as may run at once (%): wait for one "
                      "to end, or kill one that is not needed any more",
                      {options.max_running});
  ++starting;
  return {};
}

void Jobs::State::give_back() {
  const std::lock_guard<std::mutex> lock(mutex);
  --starting;
}

void Jobs::State::add(const JobPointer& job) {
  const std::lock_guard<std::mutex> lock(mutex);
  --starting;
  jobs.push_back(job);
  // The destructor has ended all others meanwhile, and waits for the end of this one.
  if (close.cancelled()) job->execution.cancel();
}

bool Jobs::State::to_background(const JobPointer& job, Executor::Held& held) {
  if (close.cancelled() || !reserve()) return false;
  if (!job->take_over(held)) {
    give_back();
    return false;
  }
  add(job);
  return true;
}

void Jobs::State::remove(const Job& job) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto at = find_where(jobs, [&](const JobPointer& known) { return known.get() == &job; });
  if (at != jobs.end()) jobs.erase(at);
}

Expected<Jobs::State::JobPointer> Jobs::State::find(std::string_view id) {
  std::vector<JobPointer> old;
  const std::lock_guard<std::mutex> lock(mutex);
  old = take_old();
  for (const JobPointer& job : jobs)
    if (job->known.id == id) return job;
  return make_error(
      ErrorCode::not_found,
      "there is no background shell % (any more): list the shells, or start a new one",
      {in_quotes(id)});
}

std::vector<Jobs::State::JobPointer> Jobs::State::all() {
  std::vector<JobPointer> old;
  const std::lock_guard<std::mutex> lock(mutex);
  old = take_old();
  return jobs;
}

Jobs::Jobs(const Executor& executor, JobOptions options)
    : state_(new_shared<State>(executor, options)) {}

Jobs::~Jobs() {
  if (state_->owner != ::getpid()) {
    // A fork of the host: it has neither the jobs nor the event thread, and its heap may be locked.
    // The state is leaked on purpose.
    alignas(std::shared_ptr<State>) unsigned char place[sizeof state_];
    ::new (static_cast<void*>(place)) std::shared_ptr<State>(std::move(state_));
    return;
  }
  std::vector<State::JobPointer> all;
  {
    std::unique_lock<std::mutex> lock(state_->mutex);
    state_->close.cancel();
    for (const State::JobPointer& job : state_->jobs) job->execution.cancel();
    // One that was handed over meanwhile is in the list, too.
    wait_for_flag(state_->foreground_ended, lock, no_limit, state_->none_in_foreground);
    all.swap(state_->jobs);
  }
  for (const State::JobPointer& job : all) job->execution.wait_for(no_limit);
}

Expected<JobStatus> Jobs::start(const Command& command, Result* failure, const Executor* by) {
  const CancellationPause pause;
  State& state = *state_;
  if (auto place = state.reserve(); !place) return place.failure();
  Command changed = command;
  auto made = state.make_job(changed);
  if (!made) {
    state.give_back();
    return made.failure();
  }
  Job& job = **made;
  changed.keep_end_only = true;
  JobStatus failed;
  if (job.start(by ? *by : state.executor, changed, failed)) {
    state.add(*made);
    return job.status();
  }
  state.give_back();
  Result& result = failed.result;
  Error error = result.outcome == Outcome::refused ? make_error(ErrorCode::permission_denied, "")
                                                   : system_error(result.system_error, "");
  error.message = result.message;
  if (failure) *failure = std::move(result);
  return error;
}

// The token of the command ends it as long as this thread drives it.
JobStatus Jobs::run(const Command& command, std::chrono::milliseconds time, const Executor* by,
                    bool as_foreground) {
  const CancellationPause pause;
  if (in_event_thread()) abort_in_callback("wait() or run() of Jobs");
  const std::shared_ptr<State> state = state_;
  const Executor& executor = by ? *by : state->executor;
  JobStatus status;
  status.state = JobState::failed;
  const auto fail = [&](const Error& error) {
    status.result.system_error = error.system_error;
    status.result.step = step_name(SpawnStep::setup);
    status.result.message = error.message;
    return status;
  };
  Command changed = command;
  auto made = state->make_job(changed, as_foreground ? &executor : nullptr);
  if (!made) return fail(made.error());
  Job& job = **made;
  const CancelToken& close = state->close;
  if (close.descriptor() < 0 || (command.cancel && command.cancel->descriptor() < 0))
    return fail(Job::cannot_wait(errno));
  const State::Foreground foreground(*state);
  Executor::Held held;
  if (!job.start(executor, changed, status, held)) return status;
  // A person may have been asked first.
  const auto is_stopped = [&] {
    return close.cancelled() || (command.cancel && command.cancel->cancelled());
  };
  bool ended = held.drive(later(Clock::now(), time), close);
  if (!ended && !is_stopped()) {
    if (state->to_background(*made, held)) return job.status();
    held.close_input();
    // The caller waits without a bound of its own, so the command gets one.
    const bool is_bounded = command.timeout || as_foreground;
    const auto longest = is_bounded ? no_limit : std::max(time, executor.options().timeout);
    ended = held.drive(later(job.started, longest), close);
    if (!ended && !is_stopped())
      add_note(job.notes,
               "ended after the % that a command may take in the foreground, because as many run "
               "in the background as may",
               {count_of_seconds(longest)});
  }
  if (!ended) held.cancel();
  job.finish(status, held.result());
  return status;
}

Expected<JobStatus> Jobs::status(std::string_view id) const {
  const auto job = state_->find(id);
  if (!job) return job.failure();
  return (*job)->status();
}

std::vector<JobStatus> Jobs::list() const {
  std::vector<JobStatus> result;
  for (const State::JobPointer& job : state_->all()) result.push_back(job->status());
  return result;
}

Expected<JobOutput> Jobs::read(std::string_view id, std::uint64_t out, std::uint64_t err) const {
  const auto job = state_->find(id);
  if (!job) return job.failure();
  const Execution& execution = (*job)->execution;
  const std::size_t max_lines = state_->options.max_lines;
  // The status comes first: if it has ended, the output read after it is complete.
  return JobOutput{(*job)->status(), execution.read(Stream::out, out, max_lines),
                   execution.read(Stream::err, err, max_lines)};
}

Expected<TerminalScreen> Jobs::screen(std::string_view id) const {
  const auto job = state_->find(id);
  if (!job) return job.failure();
  auto screen = (*job)->execution.screen();
  if (screen) return screen;
  return make_error(ErrorCode::unsupported,
                    "background shell % has no terminal, and so no screen: read its output, or "
                    "start it with a terminal",
                    {in_quotes(id)});
}

Expected<void> Jobs::resize(std::string_view id, TerminalSize size) const {
  const auto job = state_->find(id);
  if (!job) return job.failure();
  auto asked = (*job)->execution.resize(size);
  if (!asked) return with_prefix("background shell %: ", {in_quotes(id)}, asked.error());
  return asked;
}

Expected<Jobs::WaitEnd> Jobs::wait(std::string_view id, const Wait& until) const {
  const CancellationPause pause;
  const Clock::time_point deadline = later(Clock::now(), until.time);
  const auto job = state_->find(id);
  if (!job) return job.failure();
  Job::Waiter waiter((*job)->events, until.pattern.has_value());
  if (auto ready = waiter.ready(until.cancel); !ready) return ready.failure();
  return (*job)->wait(waiter, until, deadline);
}

Expected<void> Jobs::write(std::string_view id, std::string_view bytes) const {
  const auto job = state_->find(id);
  if (!job) return job.failure();
  if ((*job)->has_ended())
    return make_error(ErrorCode::io, "background shell % has ended: it reads no input",
                      {in_quotes(id)});
  return (*job)->execution.write(bytes);
}

Expected<void> Jobs::close_input(std::string_view id) const {
  const auto job = state_->find(id);
  if (!job) return job.failure();
  (*job)->execution.close_input();
  return {};
}

Expected<bool> Jobs::signal(std::string_view id, int number) const {
  const auto job = state_->find(id);
  if (!job) return job.failure();
  return !(*job)->has_ended() && (*job)->execution.signal(number);
}

Expected<bool> Jobs::kill(std::string_view id) const {
  const auto found = state_->find(id);
  if (!found) return found.failure();
  Job& job = **found;
  if (job.has_ended()) return false;
  const bool first = !job.kill_asked.exchange(true);
  job.execution.cancel();
  job.execution.wait_for(no_limit);
  return first && job.status().result.outcome == Outcome::cancelled;
}

Expected<void> Jobs::forget(std::string_view id) const {
  const auto job = state_->find(id);
  if (!job) return job.failure();
  if (!(*job)->has_ended())
    return make_error(ErrorCode::invalid_argument, "background shell % still runs",
                      {in_quotes(id)});
  state_->remove(**job);
  return {};
}

}  // namespace v0_1
}  // namespace codeexec
