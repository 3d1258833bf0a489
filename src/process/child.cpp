// One program: its start, its events, its deadlines.

#include "process/child_internal.hpp"
#include "process/plan_internal.hpp"
#include "process/process.hpp"
#include "process/process_internal.hpp"
#include "process/start_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "sandbox/capabilities_internal.hpp"
#include "sandbox/plan_internal.hpp"
#include "sandbox/sandbox.hpp"
#include "sandbox/sandbox_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

void call_back(FunctionRef<void()> callback) noexcept { callback(); }

}  // namespace inner

// Fails the start for a mistake of the caller's, before anything is made.
bool Process::State::refuse_options() {
  const auto any_nul = [&](const std::vector<std::string>& texts) {
    for (const std::string& text : texts)
      if (has_nul(text)) return true;
    return false;
  };
  if (options.argv.empty()) return !fail(SpawnStep::setup, EINVAL, "argv is empty: no program");
  const char* where = nullptr;
  if (any_nul(options.argv)) where = "argv";
  if (any_nul(options.environment)) where = "environment";
  if (has_nul(options.work_dir)) where = "work_dir";
  if (has_nul(options.spill_dir)) where = "spill_dir";
  if (where)
    return !fail(SpawnStep::setup, EINVAL,
                 concat("cannot start %: % has a NUL byte in it, which no program can be given",
                        {in_quotes(options.argv[0]), where}));
  if (total_size(options.secrets) > Redactor::max_total)
    return !fail(SpawnStep::setup, E2BIG,
                 concat("cannot start %: secrets has more than % bytes",
                        {in_quotes(options.argv[0]), Redactor::max_total}));
  return false;
}

// Always false, so that a failing step can return it.
bool Process::State::fail(SpawnStep step, int error, std::string message) {
  phase = Phase::over;
  result.outcome = Outcome::not_started;
  result.system_error = error;
  result.step = step_name(step);
  result.message = std::move(message);
  done = true;
  return false;
}

// A program that may write there could put a link in its place while it runs.
void Process::State::open_spill_directory() {
  if (options.spill_dir.empty() || options.spill_dir_fd >= 0) return;
#if defined(O_PATH)
  constexpr int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
#else
  constexpr int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
#endif
  spill_directory.reset(above_standard_streams(::open(options.spill_dir.c_str(), flags)));
  if (!spill_directory) spill_error = errno;
}

bool Process::State::start(bool hold_writers) {
  reap_abandoned();
  if (!options.carrier && refuse_options()) return false;
  if (options.cancel && options.cancel->cancelled()) {
    fail(SpawnStep::setup, ECANCELED, "cancelled before it was started");
    result.outcome = Outcome::cancelled;
    return false;
  }
  open_spill_directory();
  if (options.carrier) return adopt(!hold_writers);
#if defined(__linux__)
  start_ticks = ticks_now();
#endif
  run_variable = next_run_variable(start_ticks);
  Launch launch(options, run_variable);
#if CODEEXEC_HAS_SANDBOX
  if (options.sandbox.state_) {
    if (auto made = cgroup.make(*options.sandbox.state_); !made)
      return fail(SpawnStep::sandbox, made.error().system_error, made.error().message);
    launch.plan.sandbox = &options.sandbox.state_->plan;
    launch.plan.cgroups = cgroup.descriptors();
    launch.plan.cgroup_count = cgroup.count();
  } else if (options.supervised) {
    launch.plan.sandbox = &no_sandbox;
  }
  launch.plan.supervised = options.supervised;
#endif
  const auto fail_at = [&](SpawnStep step, int error, std::string_view file = {}) {
    return fail(step, error, describe_failure(options, launch, step, error, file));
  };
  // Whoever is another user may still open its streams by name, such as /dev/stderr. Some kernels
  // (gVisor's) give a pipe to nobody: that alone fails there.
  const auto make = [this](UniqueFd& read_end, UniqueFd& write_end) {
    if (!make_pipe(read_end, write_end)) return false;
    if (options.uid >= 0)
      (void)!::fchown(read_end.get(), static_cast<uid_t>(options.uid),
                      static_cast<gid_t>(options.gid));
    return true;
  };
  UniqueFd child_out;
  UniqueFd child_err;
  UniqueFd child_in;
  if (!make(out.pipe, child_out)) return fail_at(SpawnStep::setup, errno);
  if (!options.merge_streams && !make(err.pipe, child_err)) return fail_at(SpawnStep::setup, errno);
  if (unwritten.empty() && !options.keep_input_open) {
    child_in.reset(above_standard_streams(::open("/dev/null", O_RDONLY | O_CLOEXEC)));
    if (!child_in) return fail_at(SpawnStep::setup, errno, "/dev/null: "sv);
  } else if (!make(child_in, input)) {
    return fail_at(SpawnStep::setup, errno);
  } else {
    fill_pipe();
  }
  launch.plan.input = child_in.get();
  launch.plan.output = child_out.get();
  launch.plan.error_output = options.merge_streams ? child_out.get() : child_err.get();
  started = Clock::now();
  Spawned child = spawn(launch.plan, supervisor);
  if (child.error != 0) return fail_at(child.step, child.error);
  pid = child.pid;
  exit_event = std::move(child.exit_event);
  is_pidfd = child.is_pidfd;
  waiter = child.waiter;
  result.pid = command();
  out.open = true;
  err.open = !options.merge_streams;
  if (hold_writers) {
    out.writer = std::move(child_out);
    err.writer = std::move(child_err);
  }
  set_nonblocking(out.pipe);
  set_nonblocking(err.pipe);
  set_times();
  if (options.sandbox.state_) {
    std::uint64_t* free = free_disk.data();
    for (const UniqueFd& root : options.sandbox.state_->disk_roots) {
      *free++ = free_bytes(root);
      disk_check_at = started;
    }
  }
  return true;
}

// Writes what the pipe takes of the input, and closes it after the last byte: a fork of the host
// that catches an open end keeps the program waiting for as long as it lives.
void Process::State::fill_pipe() {
  set_nonblocking(input);
  const ssize_t size = ::write(input.get(), unwritten.data(), unwritten.size());
  if (size > 0) unwritten.remove_prefix(static_cast<std::size_t>(size));
  if (unwritten.empty() && !options.keep_input_open) input.reset();
}

void Process::State::set_times() {
  input_open = static_cast<bool>(input);
  input_ends = !options.keep_input_open;
  timeout_at = later(started, options.timeout);
  if (options.heartbeat.count() > 0 && options.on_heartbeat)
    heartbeat_at = later(started, options.heartbeat);
}

bool Process::State::adopt(bool wait) {
  Carrier& carrier = *options.carrier;
  const Clock::time_point asked = Clock::now();
  if (!carrier.launch(wait, options.cancel, result)) {
    phase = Phase::over;
    done = true;
    return false;
  }
  out.pipe = carrier.take_out();
  err.pipe = carrier.take_err();
  input = carrier.take_input(unwritten);
  result.pid = carrier.pid();
  out.open = err.open = true;
  // The way there and back counts, but not that its place had to be woken.
  started = Clock::now();
  if (started - asked < std::chrono::seconds(1)) started = asked;
  set_times();
  for (Output* output : {&out, &err}) take_bytes(*output, {});
  return true;
}

void Process::State::forget_start() {
  for (auto* texts : {&owned_options->argv, &owned_options->environment, &owned_options->secrets})
    std::vector<std::string>().swap(*texts);
}

void Process::State::add_slot(std::vector<pollfd>& set, Slot slot, int fd, short events) {
  slots[slot] = no_slot;
  if (fd < 0) return;
  slots[slot] = set.size();
  set.push_back({fd, events, 0});
}

short Process::State::events_of(const std::vector<pollfd>& set, Slot slot) const {
  return slots[slot] == no_slot ? short{0} : set[slots[slot]].revents;
}

void Process::State::add_descriptors(std::vector<pollfd>& set) {
  if (measure) return measure->add_descriptors(set);
  add_slot(set, slot_out, out.open && out.room != 0 ? out.pipe.get() : -1, POLLIN);
  add_slot(set, slot_err, err.open && err.room != 0 ? err.pipe.get() : -1, POLLIN);
  // Without anything to write, only the reader's end of it is of interest.
  add_slot(set, slot_input, input.get(), input && more_input() ? POLLOUT : short{0});
  const int exit = options.carrier ? options.carrier->exit_descriptor() : exit_event.get();
  add_slot(set, slot_exit, phase == Phase::draining ? -1 : exit, POLLIN);
  const bool may_cancel = options.cancel && phase == Phase::running;
  add_slot(set, slot_cancel, may_cancel ? options.cancel->descriptor() : -1, POLLIN);
}

Clock::time_point Process::State::deadline() const {
  switch (phase) {
    case Phase::running:
      return std::min({timeout_at, heartbeat_at, disk_check_at});
    case Phase::asked_to_end:
    case Phase::killed:
      return std::min(phase_until, heartbeat_at);
    case Phase::recovering:
      return measure->deadline();
    case Phase::draining:
      return held() ? Clock::time_point::max() : drain_until;
    case Phase::over:
      break;
  }
  return Clock::time_point::max();
}

void Process::State::step(const std::vector<pollfd>& set, ReadBuffer& buffer) {
  if (measure) {
    measure->step(set, buffer);
    if (measure->over()) recover();
    return;
  }
  const Clock::time_point now = Clock::now();
  output_event(out, events_of(set, slot_out), buffer, now);
  output_event(err, events_of(set, slot_err), buffer, now);
  const short input_events = events_of(set, slot_input);
  if (input_events & POLLOUT)
    feed_input();
  else if (input_events)
    close_input();
  if (options.carrier &&
      (options.carrier->ended() || options.carrier->is_lost() || events_of(set, slot_exit)))
    return carrier_ended(buffer, now);
  if (events_of(set, slot_exit)) leader_ended(buffer, now);
  // Callbacks may have taken long. After its end, what lies in the pipes is read first.
  check_time(phase == Phase::draining ? now : Clock::now());
}

// The command has told its end, or the program that carries it has gone without that.
void Process::State::carrier_ended(ReadBuffer& buffer, Clock::time_point now) {
  ended = now;
  for (Output* output : {&out, &err}) {
    // What was written before its end is in the pipe, and nobody writes any more.
    std::uint64_t before = 0;
    do {
      before = output->bytes_read;
      if (output->open && !options.carrier->ended()) read_output(*output, buffer, now);
    } while (output->bytes_read != before);
  }
  if (options.carrier->ended()) return finish(false);
  recover();
}

void Process::State::recover() {
  phase = Phase::recovering;
  for (;;) {
    std::optional<ProcessOptions> next =
        options.carrier->next_measure(measure ? &measure->result : nullptr);
    measure.reset();
    if (!next) return finish(false);
    measure = std::make_unique<State>(std::make_unique<ProcessOptions>(std::move(*next)));
    if (measure->start(false)) return;
  }
}

void Process::State::check_time(Clock::time_point now) {
  const bool cancelled = cancel_asked.load() || (options.cancel && options.cancel->cancelled());
  if (phase == Phase::running || phase == Phase::asked_to_end) {
    if (now >= heartbeat_at) {
      call_back([&] { options.on_heartbeat(); });
      now = Clock::now();
      heartbeat_at = later(now, options.heartbeat);
    }
  }
  switch (phase) {
    case Phase::running:
      if (kill_asked.load() || cancelled)
        ask_to_end(Outcome::cancelled, now);
      else if (now >= timeout_at)
        ask_to_end(Outcome::timed_out, now);
      else if (now >= disk_check_at)
        check_disk(now);
      break;
    case Phase::asked_to_end:
      if (kill_asked.load() || now >= phase_until) {
        kill_all();
        phase = Phase::killed;
        phase_until =
            now + (options.carrier ? options.carrier->kill_time() : std::chrono::seconds(2));
      }
      break;
    case Phase::killed:
      if (now < phase_until) break;
      ended = now;
      if (options.carrier)
        recover();
      else
        finish(true);
      break;
    case Phase::draining:
      if (!out.open && !err.open)
        finish(false);
      else if (held())
        drain_until = drain_end = later(now, options.max_drain);
      else if (now >= drain_until)
        drain_further(now);
      break;
    case Phase::recovering:
    case Phase::over:
      break;
  }
}

}  // namespace v0_1
}  // namespace codeexec
