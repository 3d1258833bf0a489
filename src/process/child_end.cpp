// One program: how it is killed, and what is told of its end.

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

bool Process::State::disk_filled() const {
  const Sandbox::State& sandbox = *options.sandbox.state_;
  const std::uint64_t* before = free_disk.data();
  for (const UniqueFd& root : sandbox.disk_roots) {
    const std::uint64_t now = free_bytes(root);
    if (now<*before&& * before - now> sandbox.options.limits.disk) return true;
    ++before;
  }
  return false;
}

// Nothing tells when a disk fills up, so it is looked at now and then.
void Process::State::check_disk(Clock::time_point now) {
  constexpr std::chrono::milliseconds interval(250);
  disk_check_at = later(now, interval);
  if (!disk_filled()) return;
  disk_reached = true;
  ask_to_end(Outcome::signaled, now);
}

void Process::State::ask_to_end(Outcome why, Clock::time_point now) {
  stopped_as = why;
  phase = Phase::asked_to_end;
  // Asked politely, it would go on writing.
  const bool at_once = kill_asked.load() || disk_reached;
  phase_until = at_once ? now : later(now, options.kill_grace);
  if (now >= phase_until) return check_time(now);
  if (!options.carrier) find_escaped();
  signal_group(SIGTERM);
  signal_group(SIGCONT);
  // A shell that waits for one of these would otherwise end as if nothing had been asked of it.
  if (!escaped.empty()) await_group_signals();
  signal_escaped(SIGTERM);
  signal_escaped(SIGCONT);
}

// Stops first, so that nobody forks away from under the search, then kills.
void Process::State::kill_all() {
  if (options.carrier) return options.carrier->kill();
  if (supervised()) {
    order(SIGKILL);
    // Somebody may have stopped it.
    ::kill(pid, SIGCONT);
    return;
  }
  signal_group(SIGSTOP);
  for (int round = 0; round < 16 && find_escaped(); ++round) signal_escaped(SIGSTOP);
  signal_group(SIGKILL);
  signal_escaped(SIGKILL);
}

// The leader has ended: what it leaves is killed while its zombie keeps the group's number ours.
void Process::State::kill_background() {
  signal_group(SIGKILL);
  if (stopped_as == Outcome::exited) return;
  for (int round = 0; round < 16 && find_escaped(); ++round) signal_escaped(SIGSTOP);
  signal_escaped(SIGKILL);
}

void Process::State::leader_ended(ReadBuffer& buffer, Clock::time_point now) {
  phase = Phase::draining;
  ended = now;
  out.writer.reset();
  err.writer.reset();
  close_input();
  take_report();
  const bool keep = options.keep_background && stopped_as == Outcome::exited && !supervised();
  if (!keep && !none_left()) kill_background();
  drain_end = later(now, options.max_drain);
  drain_until = std::min(later(now, options.drain), drain_end);
  if (!none_left() && (stopped_as != Outcome::exited || supervised())) kill_scattered(now);
  if (out.open) read_output(out, buffer, now);
  if (err.open) read_output(err, buffer, now);
  if (keep) finish(false);
}

// Kills what bears a mark of this run and gives the pipes a last moment to be closed.
void Process::State::kill_scattered([[maybe_unused]] Clock::time_point now) {
#if defined(__linux__)
  scattered_killed = true;
  RunMarks marks;
  marks.session = command();
  marks.variable = run_variable;
  marks.since = start_ticks;
  for (const Output* output : {&out, &err})
    if (output->open)
      marks.pipes.push_back(link_target(concat("/proc/self/fd/%", {output->pipe.get()})));
  if (!kill_marked(marks)) result.message = "some of its processes may still be running";
  drain_end = later(now, std::min(options.drain, std::chrono::milliseconds(100)));
  drain_until = drain_end;
#endif
}

// Somebody has to make room before what lies in the pipes can be read.
bool Process::State::held() const {
  return (out.open && out.room == 0) || (err.open && err.room == 0);
}

// Nothing came for a while: those who still hold the pipes are not in the group.
void Process::State::drain_further(Clock::time_point now) {
#if defined(__linux__)
  if (!scattered_killed) return kill_scattered(now);
#endif
  (void)now;
  finish(false);
}

// Finds descendants outside the process group. True: found new ones.
bool Process::State::find_escaped() {
  bool found = false;
#if defined(__linux__)
  std::vector<KnownProcess> seen;
  const pid_t group = command();
  const auto visit = [&seen](pid_t process, std::uint64_t start) {
    ProcessStat stat;
    if (start_of(seen, process) == 0 && read_stat(process, stat) &&
        (start == 0 || stat.start == start))
      seen.push_back({process, stat.start});
  };
  visit(pid, 0);
  for (const KnownProcess& process : escaped) visit(process.pid, process.start);
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
      escaped.push_back({child, stat.start});
      found = true;
    }
  }
#endif
  return found;
}

void Process::State::signal_escaped(int number) {
#if defined(__linux__)
  for (const KnownProcess& process : escaped) signal_same(process.pid, process.start, number);
#else
  (void)number;
#endif
}

bool Process::State::signal_group(int number) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (reaped) return false;
  if (options.carrier) return options.carrier->signal(number);
  if (pid <= 0) return false;
  if (supervised()) return order(number);
#if CODEEXEC_HAS_CLONE
  // Linux 6.9: cannot hit another group, even if the host has reaped the leader.
  constexpr unsigned to_group = 4;
  if (is_pidfd) {
    if (signal_pidfd(exit_event.get(), number, to_group)) return true;
    if (errno == ESRCH) return false;
  }
#endif
  return ::kill(-pid, number) == 0;
}

void Process::State::signal_tree(int number) {
  find_escaped();
  signal_group(number);
  // A shell that waits for one of these would otherwise end as if nothing had been asked of it.
  if (!escaped.empty()) await_group_signals();
  signal_escaped(number);
}

void Process::State::fill_output(Output& output, std::string& text, OutputCounts& counts,
                                 std::string& file) {
  end_output(output);
  output.pipe.reset();
  output.spill.file.reset();
  text = output.capture.text(&counts);
  counts.redactions = output.redactor.count();
  counts.file_bytes = output.spill.written;
  if (options.hash_output) counts.sha256 = output.hash.hex();
  file = output.spill.path;
  if (output.read_error != 0)
    add_to_message(concat(
        "its % could not be read to the end: %",
        {output.stream == Stream::out ? "stdout" : "stderr", errno_text(output.read_error)}));
  add_to_message(output.spill.problem);
}

void Process::State::add_to_message(std::string_view text) {
  if (!text.empty() && !result.message.empty()) result.message += "; ";
  result.message += text;
}

#if CODEEXEC_HAS_SANDBOX
bool Process::State::supervised() const { return static_cast<bool>(supervisor.orders); }

// The number of the command's group, as this program sees it.
pid_t Process::State::command() const {
  if (!supervised()) return pid;
  if (supervisor.command > 0) return supervisor.command;
  const std::vector<pid_t> children = children_of(pid);
  return children.empty() ? pid : children[0];
}

// Tells the supervisor. False when there is none, or none any more.
bool Process::State::order(int number) {
  if (!supervisor.orders) return false;
  const char byte = static_cast<char>(number);
  const ssize_t written = write_to_pipe(supervisor.orders.get(), {&byte, 1});
  if (written == 1 && number != SIGKILL) ++supervisor.signals_asked;
  return written == 1;
}

// A supervisor that somebody has stopped is not waited for.
void Process::State::await_group_signals() {
  if (!supervised()) return;
  std::uint32_t asked = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    asked = supervisor.signals_asked;
  }
  const std::uint32_t& sent = supervisor.run->signals_sent;
  const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(50);
  for (;;) {
    const std::uint32_t now = __atomic_load_n(&sent, __ATOMIC_ACQUIRE);
    const std::chrono::nanoseconds left = deadline - Clock::now();
    if (now == asked || left.count() <= 0) return;
    const long time[2] = {0, static_cast<long>(left.count())};
    ::syscall(SYS_futex, &sent, FUTEX_WAIT_PRIVATE, now, &time[0], nullptr, 0);
  }
}

void Process::State::take_report() {
  if (supervised() && supervisor.run->told_end) supervisor.last = supervisor.run->report;
}

bool Process::State::none_left() const { return supervised() && supervisor.last.all_ended; }

ExitStatus Process::State::last_status() {
  const ExitStatus own = reap(exit_event, is_pidfd, pid);
  if (!supervised()) return own;
  ExitStatus status;
  status.known = supervisor.last.known;
  status.exited = supervisor.last.exited;
  status.value = supervisor.last.value;
  status.usage = supervisor.last.usage;
  result.left_behind = supervisor.last.left_behind;
  if (supervisor.last.denied && !supervisor.last.all_ended)
    result.message = "some of its processes are another user's and are still running";
  supervisor.run.reset();
  return status;
}
#else
bool Process::State::supervised() const { return false; }
pid_t Process::State::command() const { return pid; }
bool Process::State::order(int) { return false; }
void Process::State::await_group_signals() {}
void Process::State::take_report() {}
bool Process::State::none_left() const { return false; }
ExitStatus Process::State::last_status() { return reap(exit_event, is_pidfd, pid); }
#endif

void Process::State::fill_status() {
  if (options.carrier) return options.carrier->finish(result);
  if (!is_pidfd) ::pthread_join(waiter, nullptr);
  const ExitStatus status = last_status();
  result.outcome = status.exited ? Outcome::exited : Outcome::signaled;
  if (status.known && status.exited) result.exit_code = status.value;
  if (status.known && !status.exited) result.signal = status.value;
  if (!status.known) {
    result.outcome = Outcome::unknown;
    result.message = supervised()
                         ? "its exit status was lost: its supervisor was killed"
                         : "its exit status was lost: this program ignores SIGCHLD or waits for "
                           "any child";
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
  if (options.sandbox.state_) name_limits();
}

// As far as it shows: in the signals that the kernel sends for some limits, to the program itself
// or to what a shell ran and tells by its own status, and in the counters of a cgroup.
void Process::State::name_limits() {
  const Limits& limits = options.sandbox.state_->options.limits;
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
  if (disk_reached || (by_disk && ended_by(SIGXFSZ)) || disk_filled())
    result.limits_reached.push_back("disk");
#if CODEEXEC_HAS_SANDBOX
  for (std::string& name : cgroup.finish()) result.limits_reached.push_back(std::move(name));
#endif
}

void Process::State::finish(bool abandon) {
  phase = Phase::over;
  result.pipe_held = !options.carrier && (out.open || err.open);
  {
    const std::lock_guard<std::mutex> lock(mutex);
    reaped = true;
    if (!abandon) fill_status();
  }
  close_input();
  if (abandon) {
    ended = Clock::now();
    result.message = "it did not die within 2 s of SIGKILL and was given up";
    if (!is_pidfd) ::pthread_detach(waiter);
#if CODEEXEC_HAS_SANDBOX
    (void)supervisor.run.release();  // it is still in use
#endif
    abandon_child(pid);
  }
  if (stopped_as != Outcome::exited) result.outcome = stopped_as;
  result.wall_time = std::chrono::duration_cast<std::chrono::microseconds>(ended - started);
  exit_event.reset();
#if CODEEXEC_HAS_SANDBOX
  // A handle may be kept for long after the end.
  supervisor.orders.reset();
#endif
  escaped.clear();
  if (input_error != 0)
    add_to_message("not all of its standard input could be written: " + errno_text(input_error));
  fill_output(out, result.out, result.out_counts, result.out_file);
  fill_output(err, result.err, result.err_counts, result.err_file);
  call_back([&] { on_end(result); });
  // What these hold, such as a container, may take long to go away. Who waits for this end holds
  // it as well, and has to be the last one: this thread must not wait.
  on_end = nullptr;
  if (owned_options) owned_options->carrier.reset();
  const std::lock_guard<std::mutex> lock(mutex);
  done = true;
  ended_event.notify_all();
  if (end_token) end_token->cancel();
}

}  // namespace v0_1
}  // namespace codeexec
