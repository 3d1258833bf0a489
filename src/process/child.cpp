// One run: its events, its deadlines, its handles.

#include "process/capture_internal.hpp"
#include "process/child_internal.hpp"
#include "process/plan_internal.hpp"
#include "process/process.hpp"
#include "process/process_internal.hpp"
#include "process/start_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

Process::State::Streams::Streams(const ProcessOptions& options)
    : out(Stream::out, options.max_output, options.keep_end_only,
          total_size(options.secrets) <= Redactor::max_total ? Redactor(options.secrets)
                                                             : Redactor()),
      err(Stream::err, options.merge_streams || options.terminal ? 0 : options.max_output,
          options.keep_end_only, out.redactor),
      unwritten(options.borrowed_input.empty() ? options.input : options.borrowed_input) {}

// The start ---------------------------------------------------------------------------------------

// What starts of both kinds have in common. False: the start has failed.
bool Process::State::prepare() {
  reap_abandoned();
  if (options.cancel && options.cancel->cancelled()) {
    fail(SpawnStep::setup, ECANCELED, "cancelled before it was started");
    result.outcome = Outcome::cancelled;
    return false;
  }
  if (!prepare_screen()) return false;
  if (options.spill_dir.empty() || options.spill_dir_fd >= 0) return true;
    // Opened now: a program that may write there could put a link in its place while it runs.
#if defined(O_PATH)
  constexpr int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
#else
  constexpr int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
#endif
  io.spill_directory.reset(above_standard_streams(::open(options.spill_dir.c_str(), flags)));
  if (!io.spill_directory) io.spill_error = errno;
  return true;
}

// Always false, so that a failing start can return it.
bool Process::State::end_start() {
  phase = Phase::over;
  done = true;
  is_delivered = true;
  return false;
}

bool Process::State::begin(bool at_once) {
  bool is_started = false;
  if (enough_memory([&] { is_started = start(at_once); })) return is_started;
  fail_without_memory(result);
  return end_start();
}

bool Process::State::fail(SpawnStep step, int error, std::string message) {
  result.outcome = Outcome::not_started;
  result.system_error = error;
  result.step = step_name(step);
  result.message = std::move(message);
  return end_start();
}

void Process::State::set_times() {
  io.input_open = static_cast<bool>(io.input);
  io.input_ends = !options.keep_input_open;
  times.timeout = later(times.started, options.timeout);
  times.idle = later(times.started, options.idle_timeout);
  if (options.heartbeat.count() > 0 && options.on_heartbeat)
    times.heartbeat = later(times.started, options.heartbeat);
}

void Process::State::forget_start() {
  for (auto* texts : {&owned_options->argv, &owned_options->environment, &owned_options->secrets})
    std::vector<std::string>().swap(*texts);
}

// Events and deadlines ----------------------------------------------------------------------------

ProcessResult Process::State::run() {
  std::vector<pollfd> set;
  if (!enough_memory([&] { set.reserve(slot_count + 1); }))
    fail_without_memory(result);
  else if (begin(true))
    drive(*this, set, Clock::time_point::max(), -1);
  return std::move(result);
}

void Process::State::add_slot(std::vector<pollfd>& set, Slot slot, int fd, short events) {
  slots[slot] = no_slot;
  if (fd < 0) return;
  slots[slot] = set.size();
  set.push_back({fd, events, 0});
}

short Process::State::events_of(const std::vector<pollfd>& set, Slot slot) const {
  return slots[slot] < set.size() ? set[slots[slot]].revents : short{0};
}

void Process::State::add_descriptors(std::vector<pollfd>& set) {
  if (delivery.mailbox) io.out.room = io.err.room = delivery.room();
  add_slot(set, slot_out, io.out.open && io.out.room != 0 ? io.out.pipe.get() : -1, POLLIN);
  add_slot(set, slot_err, io.err.open && io.err.room != 0 ? io.err.pipe.get() : -1, POLLIN);
  // Without anything to write, only the reader's end of it is of interest.
  add_slot(set, slot_input, io.input.get(), io.input && more_input() ? POLLOUT : short{0});
  add_slot(set, slot_exit, phase == Phase::draining ? -1 : exit_descriptor(), POLLIN);
  const bool may_cancel = options.cancel && phase == Phase::running;
  add_slot(set, slot_cancel, may_cancel ? options.cancel->descriptor() : -1, POLLIN);
}

Clock::time_point Process::State::deadline() const {
  if (phase == Phase::running)
    return std::min({times.timeout, times.idle, times.heartbeat, times.disk_check});
  if (phase == Phase::asked_to_end || phase == Phase::killed)
    return std::min(times.phase_end, times.heartbeat);
  return Clock::time_point::max();
}

void Process::State::step(const std::vector<pollfd>& set, ReadBuffer& buffer) {
  const Clock::time_point now = Clock::now();
  apply_size();
  output_event(io.out, events_of(set, slot_out), buffer, now);
  output_event(io.err, events_of(set, slot_err), buffer, now);
  const short input_events = events_of(set, slot_input);
  if (input_events & POLLOUT)
    feed_input();
  else if (input_events)
    close_input();
  if (find_end(events_of(set, slot_exit) != 0, buffer, now)) return;
  // Callbacks may have taken long. After its end, what lies in the pipes is read first.
  check_time(phase == Phase::draining ? now : Clock::now());
}

void Process::State::check_time(Clock::time_point now) {
  const bool cancelled = cancel_asked.load() || (options.cancel && options.cancel->cancelled());
  if ((phase == Phase::running || phase == Phase::asked_to_end) && now >= times.heartbeat) {
    delivery.beat();
    now = Clock::now();
    times.heartbeat = later(now, options.heartbeat);
  }
  if (phase == Phase::running) {
    if (kill_asked.load() || cancelled) return ask_to_end(Outcome::cancelled, now);
    // The time that a callback takes is not silence, nor is that in which nothing is read.
    if (delivery.mailbox && options.idle_timeout != no_limit)
      times.idle = std::max(times.idle, later(delivery.quiet_since(), options.idle_timeout));
    was_idle = now >= times.idle && now < times.timeout;
    if (was_idle || now >= times.timeout) ask_to_end(Outcome::timed_out, now);
  } else if (phase == Phase::asked_to_end && (kill_asked.load() || now >= times.phase_end)) {
    kill_all();
    phase = Phase::killed;
    times.phase_end = now + kill_time();
  } else if (phase == Phase::killed && now >= times.phase_end) {
    outlive_kill(now);
  }
}

// Outcome::signaled: a disk is full. That command is killed at once, as it would go on writing.
void Process::State::ask_to_end(Outcome why, Clock::time_point now) {
  stopped_as = why;
  phase = Phase::asked_to_end;
  const bool at_once = kill_asked.load() || why == Outcome::signaled;
  times.phase_end = at_once ? now : later(now, options.kill_grace);
  if (now >= times.phase_end) return check_time(now);
  signal_tree(SIGTERM, true);
}

void Process::State::signal_tree(int number, bool resume) {
  signal_group(number);
  if (resume) signal_group(SIGCONT);
}

void Process::State::finish() {
  phase = Phase::over;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    reaped = true;
    if (!enough_memory([&] { fill_status(); })) {
      if (result.outcome == Outcome::not_started) result.outcome = Outcome::unknown;
      tell_of_memory(result.message, "how it ended is");
    }
  }
  close_input();
  if (stopped_as != Outcome::exited) result.outcome = stopped_as;
  result.idle = was_idle;
  result.wall_time =
      std::chrono::duration_cast<std::chrono::microseconds>(times.ended - times.started);
  const auto tell_of_input = [&] {
    add_to_message(result.message,
                   "not all of its standard input could be written: " + errno_text(io.input_error));
  };
  if (io.input_error != 0 && !enough_memory(tell_of_input))
    tell_of_memory(result.message, "what became of its input is");
  fill_output(io.out, result.out, result.out_counts, result.out_file);
  fill_output(io.err, result.err, result.err_counts, result.err_file);
  delivery.end();
}

// Handles -----------------------------------------------------------------------------------------

inline namespace inner {

bool drive(Process::State& run, std::vector<pollfd>& set, Clock::time_point until, int stop) {
  Process::State::ReadBuffer buffer;
  bool is_stopped = false;
  const auto turn = [&] {
    set.clear();
    run.add_descriptors(set);
    set.push_back({stop, POLLIN, 0});
    wait_for_events(set, std::min(run.deadline(), until));
    is_stopped = set.back().revents != 0;
    run.step(set, buffer);
  };
  while (!run.over() && !is_stopped && (until == Clock::time_point::max() || Clock::now() < until))
    if (!enough_memory(turn)) pause_for_memory();
  return run.over();
}

void fail_without_memory(ProcessResult& result) {
  result.outcome = Outcome::not_started;
  result.system_error = ENOMEM;
  result.step = step_name(SpawnStep::setup);
  result.message = out_of_memory;
}

void add_to_message(std::string& message, std::string_view text) {
  if (text.empty()) return;
  const auto add = [&] {
    message.reserve(message.size() + text.size() + 2);
    append_all(message, {message.empty() ? "" : "; ", text});
  };
  if (!enough_memory(add) && message.empty()) message = out_of_memory;
}

bool wait_for_flag(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                   std::chrono::milliseconds time, const bool& flag) {
  if (time.count() <= 0 || in_event_thread()) return flag;
  const Clock::time_point until = later(Clock::now(), time);
  const auto is_set = [&flag] { return flag; };
  if (until != Clock::time_point::max()) return changed.wait_until(lock, until, is_set);
  changed.wait(lock, is_set);
  return true;
}

Expected<void> add_input(std::string_view bytes, bool is_open, bool was_kept_open,
                         std::string& waiting) {
  constexpr std::size_t most = std::size_t{1} << 20;
  if (!is_open)
    return with_message(
        system_error(EPIPE, ""),
        concat("cannot write to standard input: it was %",
               {was_kept_open ? "closed, by the program or by close_input()"
                              : "not kept open: start the command with keep_input_open"}));
  if (waiting.size() + bytes.size() > most)
    return make_error(ErrorCode::limit,
                      "cannot write to standard input: 1 MiB waits to be read already");
  waiting.append(bytes);
  return {};
}

}  // namespace inner

int Process::State::pid() {
  const std::lock_guard<std::mutex> lock(mutex);  // a remote command sets it again at its end
  return result.pid;
}

// Outside of callbacks a wait is for on_end, too.
bool Process::State::ended_within(std::chrono::milliseconds time) {
  std::unique_lock<std::mutex> lock(mutex);
  if (time.count() <= 0 || in_event_thread()) return done;
  return wait_for_flag(ended_event, lock, time, is_delivered);
}

int Process::State::end_descriptor() {
  const std::lock_guard<std::mutex> lock(mutex);
  if (!end_token) {
    end_token.emplace();
    if (done) end_token->cancel();
  }
  return end_token->descriptor();
}

bool Process::State::signal_group(int number) {
  const std::lock_guard<std::mutex> lock(mutex);
  return !reaped && send_signal(number);
}

Expected<void> Process::State::queue_input(std::string_view bytes) {
  const std::lock_guard<std::mutex> lock(mutex);
  return add_input(bytes, io.input_open && !io.input_ends, options.keep_input_open,
                   io.queued_input);
}

void Process::State::end_input() {
  const std::lock_guard<std::mutex> lock(mutex);
  io.input_ends = true;
}

OutputChunk Process::State::read(Stream stream, std::uint64_t cursor, std::size_t max_lines) {
  const std::lock_guard<std::mutex> lock(mutex);
  const Output& output = stream == Stream::out ? io.out : io.err;
  OutputChunk chunk = output.capture.read(cursor, done, max_lines);
  chunk.file = output.spill.path;
  chunk.file_bytes = output.spill.written;
  return chunk;
}

}  // namespace v0_1
}  // namespace codeexec
