// A program of this host: its start, its deadlines, how it is killed, how it ended.

#include "process/capture_internal.hpp"
#include "process/child_internal.hpp"
#include "process/plan_internal.hpp"
#include "process/process.hpp"
#include "process/process_internal.hpp"
#include "process/start_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "sandbox/capabilities_internal.hpp"
#include "sandbox/listener_internal.hpp"
#include "sandbox/plan_internal.hpp"
#include "sandbox/sandbox.hpp"
#include "sandbox/sandbox_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// The start ---------------------------------------------------------------------------------------

// False: the start has failed for a mistake of the caller's, before anything is made.
bool LocalRun::check_options() {
  const auto any_nul = [&](const std::vector<std::string>& texts) {
    for (const std::string& text : texts)
      if (has_nul(text)) return true;
    return false;
  };
  if (options.argv.empty()) return fail(SpawnStep::setup, EINVAL, "argv is empty: no program");
  const char* where = nullptr;
  if (any_nul(options.argv)) where = "argv";
  if (any_nul(options.environment)) where = "environment";
  if (has_nul(options.work_dir)) where = "work_dir";
  if (has_nul(options.spill_dir)) where = "spill_dir";
  if (where)
    return fail(SpawnStep::setup, EINVAL,
                concat("cannot start %: % has a NUL byte in it, which no program can be given",
                       {in_quotes(options.argv[0]), where}));
  if (total_size(options.secrets) > Redactor::max_total)
    return fail(SpawnStep::setup, E2BIG,
                concat("cannot start %: secrets has more than % bytes",
                       {in_quotes(options.argv[0]), Redactor::max_total}));
  return true;
}

// Always false, so that a failing step can return it.
bool LocalRun::fail_start(const Launch& launch, SpawnStep step, int error, std::string_view file) {
  return fail(step, error, describe_failure(options, launch, step, error, file));
}

// Makes the streams of the program, whose ends are those of descriptors 0, 1 and 2.
bool LocalRun::make_pipes(const Launch& launch, UniqueFd (&program_ends)[3]) {
  auto& [program_in, program_out, program_err] = program_ends;
  if (terminal) return make_terminal_streams(launch, program_ends);
  // The program may run as another user and open its streams by name, such as /dev/stderr, so they
  // get that owner. Where a pipe has no owner (gVisor), only such an open fails.
  const auto make = [this](UniqueFd& read_end, UniqueFd& write_end) {
    if (!make_pipe(read_end, write_end)) return false;
    if (options.uid >= 0)
      (void)!::fchown(read_end.get(), static_cast<uid_t>(options.uid),
                      static_cast<gid_t>(options.gid));
    return true;
  };
  if (!make(io.out.pipe, program_out) ||
      (!options.merge_streams && !make(io.err.pipe, program_err)))
    return fail_start(launch, SpawnStep::setup, errno);
  if (!io.unwritten.empty() || options.keep_input_open) {
    if (!make(program_in, io.input)) return fail_start(launch, SpawnStep::setup, errno);
    fill_pipe();
    return true;
  }
  program_in.reset(above_standard_streams(::open("/dev/null", O_RDONLY | O_CLOEXEC)));
  return program_in || fail_start(launch, SpawnStep::setup, errno, "/dev/null: "sv);
}

// Writes as much input as the pipe holds, and closes it after the last byte: a fork of the host
// that copies an open end would keep the program waiting for as long as it lives.
void LocalRun::fill_pipe() {
  set_nonblocking(io.input);
  const ssize_t size = ::write(io.input.get(), io.unwritten.data(), io.unwritten.size());
  if (size > 0) io.unwritten.remove_prefix(static_cast<std::size_t>(size));
  if (io.unwritten.empty() && !options.keep_input_open) io.input.reset();
}

bool LocalRun::start(bool at_once) {
  if (!check_options() || !prepare()) return false;
#if defined(__linux__)
  start_ticks_ = ticks_now();
#endif
  run_variable_ = next_run_variable(start_ticks_);
  Launch launch(options, run_variable_);
  ChildPlan& plan = launch.plan;
#if CODEEXEC_HAS_SANDBOX
  if (sandbox()) {
    if (auto made = cgroup_.make(*sandbox()); !made)
      return fail(SpawnStep::sandbox, made.error().system_error, made.error().message);
    plan.sandbox = &sandbox()->plan;
    plan.cgroups = cgroup_.descriptors();
    plan.cgroup_count = cgroup_.count();
  } else if (options.supervised) {
    plan.sandbox = &no_sandbox;
  }
  plan.supervised = options.supervised;
  ListenerPass listener;
  if (options.on_listener && plan.sandbox && plan.sandbox->proxied) {
    if (const int error = listener.prepare(options.listener_port); error != 0)
      return fail_start(launch, SpawnStep::setup, error);
    plan.listener = &listener;
  }
#endif
  UniqueFd program_ends[3];
  if (!make_pipes(launch, program_ends)) return false;
  auto& [program_in, program_out, program_err] = program_ends;
  plan.input = program_in.get();
  plan.output = program_out.get();
  plan.error_output = one_stream() ? program_out.get() : program_err.get();
  times.started = Clock::now();
  Spawned spawned = spawn(plan, supervisor_);
  if (spawned.error != 0) return fail_start(launch, spawned.step, spawned.error);
  child_ = std::move(spawned);
  // It runs: from here on nothing may fail.
  if (!enough_memory([&] { result.pid = command(); })) result.pid = child_.pid;
#if CODEEXEC_HAS_SANDBOX
  if (plan.listener && !enough_memory([&] { options.on_listener(listener.take()); }))
    tell_of_memory(result.message, "its network is");
#endif
  io.out.open = true;
  io.err.open = !one_stream();
  if (at_once && !terminal) {
    io.out.writer = std::move(program_out);
    io.err.writer = std::move(program_err);
  }
  set_nonblocking(io.out.pipe);
  set_nonblocking(io.err.pipe);
  reads_in_place =
      !options.on_output && !options.hash_output && io.out.redactor.empty() && !terminal;
  set_times();
  watch_disk();
  return true;
}

void LocalRun::watch_disk() {
  if (!sandbox()) return;
  std::uint64_t* free = free_disk_.data();
  for (const UniqueFd& root : sandbox()->disk_roots) {
    *free++ = free_bytes(root);
    times.disk_check = times.started;
  }
}

// Deadlines and the end ---------------------------------------------------------------------------

bool LocalRun::disk_filled() const {
  const std::uint64_t* before = free_disk_.data();
  for (const UniqueFd& root : sandbox()->disk_roots) {
    const std::uint64_t now = free_bytes(root);
    if (*before > now && *before - now > sandbox()->options.limits.disk) return true;
    ++before;
  }
  return false;
}

// The system does not report a full disk, so that the disks are polled.
void LocalRun::check_disk(Clock::time_point now) {
  constexpr std::chrono::milliseconds interval(250);
  times.disk_check = later(now, interval);
  if (disk_filled()) ask_to_end(Outcome::signaled, now);
}

Clock::time_point LocalRun::deadline() const {
  if (phase != Phase::draining) return State::deadline();
  return io.is_full() ? Clock::time_point::max() : times.drain;
}

void LocalRun::check_time(Clock::time_point now) {
  if (phase != Phase::draining) {
    State::check_time(now);
    if (phase == Phase::running && now >= times.disk_check) check_disk(now);
  } else if (!io.out.open && !io.err.open) {
    finish();
  } else if (io.is_full()) {
    times.drain = times.drain_end = later(now, options.max_drain);
  } else if (now >= times.drain) {
    // No data came for a while: the processes that hold the pipes are not in the group.
#if defined(__linux__)
    if (!scattered_killed_) return kill_scattered(now);
#endif
    finish();
  }
}

// Stops them first, so that none forks during the search, then kills them.
void LocalRun::kill_all() {
  if (supervised()) {
    order(SIGKILL);
    // The supervisor may be stopped, and reads the order only when it goes on.
    ::kill(child_.pid, SIGCONT);
    return;
  }
  signal_group(SIGSTOP);
  for (int round = 0; round < 16 && find_escaped(); ++round) signal_escaped(SIGSTOP);
  signal_group(SIGKILL);
  signal_escaped(SIGKILL);
}

// The leader has ended. The processes that it left are killed while its zombie keeps the number of
// the group from being used again.
void LocalRun::kill_background() {
  signal_group(SIGKILL);
  if (stopped_as == Outcome::exited) return;
  for (int round = 0; round < 16 && find_escaped(); ++round) signal_escaped(SIGSTOP);
  signal_escaped(SIGKILL);
}

bool LocalRun::find_end(bool exited, ReadBuffer& buffer, Clock::time_point now) {
  if (exited && is_over()) leader_ended(buffer, now);
  return false;
}

void LocalRun::leader_ended(ReadBuffer& buffer, Clock::time_point now) {
  phase = Phase::draining;
  times.ended = now;
  io.out.writer.reset();
  io.err.writer.reset();
  close_input();
  take_report();
  const bool keep = options.keep_background && stopped_as == Outcome::exited && !supervised();
  if (!keep && !none_left()) kill_background();
  times.drain_end = later(now, options.max_drain);
  times.drain = std::min(later(now, options.drain), times.drain_end);
  if (!none_left() && (stopped_as != Outcome::exited || supervised())) kill_scattered(now);
  if (io.out.open) read_output(io.out, buffer, now);
  if (io.err.open) read_output(io.err, buffer, now);
  if (keep) finish();
}

// Sets the message, in as many words as there is memory for.
void LocalRun::tell(const char* message) {
  if (!enough_memory([&] { result.message = message; })) result.message = out_of_memory;
}

// Kills what bears a mark of this run and gives the pipes a last moment to be closed.
void LocalRun::kill_scattered([[maybe_unused]] Clock::time_point now) {
  scattered_killed_ = true;
#if defined(__linux__)
  bool all_killed = false;
  const auto kill = [&] {
    RunMarks marks;
    marks.session = command();
    marks.variable = run_variable_;
    marks.since = start_ticks_;
    for (const Output* output : {&io.out, &io.err})
      // A terminal's name may be another one's elsewhere.
      if (output->open && !terminal)
        marks.pipes.push_back(link_target(concat("/proc/self/fd/%", {output->pipe.get()})));
    all_killed = kill_marked(marks);
  };
  if (!enough_memory(kill) || !all_killed) tell("some of its processes may still be running");
  times.drain_end = later(now, std::min(options.drain, std::chrono::milliseconds(100)));
  times.drain = times.drain_end;
#endif
}

// Finds descendants outside the process group. True: found new ones. Without memory to look for
// them those that are known are all.
bool LocalRun::find_escaped() {
  bool found = false;
  std::vector<KnownProcess> seen;
  return enough_memory([&] { found = find_escaped_in(seen); }) && found;
}

bool LocalRun::find_escaped_in([[maybe_unused]] std::vector<KnownProcess>& seen) {
  bool found = false;
#if defined(__linux__)
  const pid_t group = command();
  const auto visit = [&seen](pid_t process, std::uint64_t start) {
    ProcessStat stat;
    if (start_of(seen, process) == 0 && read_stat(process, stat) &&
        (start == 0 || stat.start == start))
      seen.push_back({process, stat.start});
  };
  visit(child_.pid, 0);
  for (const KnownProcess& process : escaped_) visit(process.pid, process.start);
  for (std::size_t at = 0; at < seen.size(); ++at) {
    const KnownProcess parent = seen[at];
    for (const pid_t child : children_of(parent.pid)) {
      if (start_of(seen, child) != 0) continue;
      // Numbers are used again: it is a child only if its parent is still the one that was asked.
      ProcessStat stat;
      ProcessStat parent_stat;
      if (!read_stat(child, stat) || stat.parent != parent.pid) continue;
      if (!read_stat(parent.pid, parent_stat) || parent_stat.start != parent.start) continue;
      seen.push_back({child, stat.start});
      if (stat.group == group) continue;
      escaped_.push_back({child, stat.start});
      found = true;
    }
  }
#endif
  return found;
}

void LocalRun::signal_escaped(int number) {
#if defined(__linux__)
  for (const KnownProcess& process : escaped_) signal_same(process.pid, process.start, number);
#else
  (void)number;
#endif
}

bool LocalRun::send_signal(int number) {
  if (child_.pid <= 0) return false;
  if (supervised()) return order(number);
#if CODEEXEC_HAS_CLONE
  // Linux 6.9: cannot hit another group, even if the host has reaped the leader.
  constexpr unsigned to_group = 4;
  if (child_.is_pidfd) {
    if (signal_pidfd(child_.exit_event.get(), number, to_group)) return true;
    if (errno == ESRCH) return false;
  }
#endif
  return ::kill(-child_.pid, number) == 0;
}

void LocalRun::signal_tree(int number, bool resume) {
  find_escaped();
  State::signal_tree(number, resume);
  // The group first: a shell in it that waits for one of the others would otherwise see that end,
  // and go on before it gets the signal itself.
  if (!escaped_.empty()) await_group_signals();
  signal_escaped(number);
  if (resume) signal_escaped(SIGCONT);
}

#if CODEEXEC_HAS_SANDBOX
bool LocalRun::supervised() const { return static_cast<bool>(supervisor_.orders); }

// A supervisor that waits for another command says on its socket that this one has ended.
int LocalRun::exit_descriptor() const {
  return supervisor_.waiting && !supervisor_.is_lost ? supervisor_.orders.get()
                                                     : child_.exit_event.get();
}

// The socket of one that was killed closes a moment before its end, when its children do not have
// another parent yet.
bool LocalRun::is_over() {
  if (!supervisor_.waiting || supervisor_.run->told_end || supervisor_.is_lost) return true;
  supervisor_.is_lost = true;
  return false;
}

// The number of the command's group, as this program sees it.
pid_t LocalRun::command() const {
  if (!supervised()) return child_.pid;
  if (supervisor_.command > 0) return supervisor_.command;
  const std::vector<pid_t> children = children_of(child_.pid);
  return children.empty() ? child_.pid : children[0];
}

// Sends an order to the supervisor_. False when there is none, or none any more.
bool LocalRun::order(int number) {
  if (!supervisor_.orders) return false;
  SupervisorOrder order;
  order.run = supervisor_.run->run;
  order.signal = number;
  const ssize_t sent =
      ::send(supervisor_.orders.get(), &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT);
  const bool is_sent = sent == static_cast<ssize_t>(sizeof order);
  if (is_sent && number != SIGKILL) ++supervisor_.signals_asked;
  return is_sent;
}

// A supervisor that was stopped is not waited for.
void LocalRun::await_group_signals() {
  if (!supervised()) return;
  std::uint32_t asked = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    asked = supervisor_.signals_asked;
  }
  const std::uint32_t& sent = supervisor_.run->signals_sent;
  const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(50);
  for (;;) {
    const std::uint32_t now = __atomic_load_n(&sent, __ATOMIC_ACQUIRE);
    const std::chrono::nanoseconds left = deadline - Clock::now();
    if (now == asked || left.count() <= 0) return;
    const long time[2] = {0, static_cast<long>(left.count())};
    ::syscall(SYS_futex, &sent, FUTEX_WAIT_PRIVATE, now, &time[0], nullptr, 0);
  }
}

void LocalRun::take_report() {
  if (supervised() && supervisor_.run->told_end) supervisor_.last = supervisor_.run->report;
}

bool LocalRun::none_left() const { return supervised() && supervisor_.last.all_ended; }

ExitStatus LocalRun::last_status() {
  if (!supervised()) return reap(child_.exit_event, child_.is_pidfd, child_.pid);
  ExitStatus status;
  status.known = supervisor_.last.known;
  status.exited = supervisor_.last.exited;
  status.value = supervisor_.last.value;
  status.usage = supervisor_.last.usage;
  result.left_behind = supervisor_.last.left_behind;
  if (supervisor_.last.denied && !supervisor_.last.all_ended)
    tell("some of its processes are another user's and are still running");
  if (keep_supervisor(child_, supervisor_)) return status;
  reap(child_.exit_event, child_.is_pidfd, child_.pid);
  supervisor_.run.reset();
  return status;
}
#else
bool LocalRun::supervised() const { return false; }
int LocalRun::exit_descriptor() const { return child_.exit_event.get(); }
bool LocalRun::is_over() { return true; }
pid_t LocalRun::command() const { return child_.pid; }
bool LocalRun::order(int) { return false; }
void LocalRun::await_group_signals() {}
void LocalRun::take_report() {}
bool LocalRun::none_left() const { return false; }
ExitStatus LocalRun::last_status() { return reap(child_.exit_event, child_.is_pidfd, child_.pid); }
#endif

void LocalRun::outlive_kill(Clock::time_point) {
  given_up_ = true;
  finish();
}

// It does not die because it waits in the kernel. A later start reaps it.
void LocalRun::give_up() {
  times.ended = Clock::now();
  tell("it did not die within 2 s of SIGKILL and was given up");
  if (!child_.is_pidfd) ::pthread_detach(child_.waiter);
#if CODEEXEC_HAS_SANDBOX
  (void)supervisor_.run.release();  // it is still in use
#endif
  abandon_child(child_.pid);
}

void LocalRun::fill_status() {
  result.pipe_held = io.out.open || io.err.open;
  if (given_up_)
    give_up();
  else
    take_status();
  child_.exit_event.reset();
#if CODEEXEC_HAS_SANDBOX
  // A handle may be kept for long after the end.
  supervisor_.orders.reset();
#endif
  escaped_.clear();
}

void LocalRun::take_status() {
  if (!child_.is_pidfd) ::pthread_join(child_.waiter, nullptr);
  const ExitStatus status = last_status();
  result.outcome = status.exited ? Outcome::exited : Outcome::signaled;
  if (status.known && status.exited) result.exit_code = status.value;
  if (status.known && !status.exited) result.signal = status.value;
  if (!status.known) {
    result.outcome = Outcome::unknown;
    tell(supervised() ? "its exit status was lost: its supervisor was killed"
                      : "its exit status was lost: this program ignores SIGCHLD or waits for "
                        "any child");
  }
  const auto micros = [](const timeval& time) {
    return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
  };
  result.cpu_time = micros(status.usage.ru_utime) + micros(status.usage.ru_stime);
#if defined(__APPLE__)
  constexpr std::uint64_t unit = 1;
#else
  constexpr std::uint64_t unit = 1024;
#endif
  result.peak_memory = static_cast<std::uint64_t>(status.usage.ru_maxrss) * unit;
  if (sandbox() && !enough_memory([&] { name_limits(); }))
    tell_of_memory(result.message, "the limits that it has reached are");
}

// As far as it shows: in the signals that the kernel sends for some limits, to the program itself
// or to what a shell ran and reports by its own status, and in the counters of a cgroup.
void LocalRun::name_limits() {
  const Limits& limits = sandbox()->options.limits;
  const auto ended_by = [&](int number) {
    return result.signal == number || result.exit_code == 128 + number;
  };
  const auto cpu_seconds = std::chrono::duration_cast<std::chrono::seconds>(result.cpu_time);
  const bool cpu_used_up = static_cast<std::uint64_t>(cpu_seconds.count()) >= limits.cpu_time;
  if (limits.cpu_time > 0 && (ended_by(SIGXCPU) || (ended_by(SIGKILL) && cpu_used_up)))
    result.limits_reached.push_back("cpu_time");
  // Both bound a file; the smaller one has ended it.
  const bool by_size =
      limits.file_size > 0 && (limits.disk == 0 || limits.file_size <= limits.disk);
  const bool by_disk = limits.disk > 0 && !by_size;
  if (by_size && ended_by(SIGXFSZ)) result.limits_reached.push_back("file_size");
  if (stopped_as == Outcome::signaled || (by_disk && ended_by(SIGXFSZ)) || disk_filled())
    result.limits_reached.push_back("disk");
#if CODEEXEC_HAS_SANDBOX
  for (std::string& name : cgroup_.finish()) result.limits_reached.push_back(std::move(name));
#endif
}

}  // namespace v0_1
}  // namespace codeexec
