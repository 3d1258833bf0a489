// The supervisor: a process that kills all that a command leaves.

#include "process/plan_internal.hpp"
#include "process/start_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "sandbox/broker_internal.hpp"
#include "sandbox/capabilities_internal.hpp"
#include "sandbox/child_internal.hpp"
#include "sandbox/listener_internal.hpp"
#include "sandbox/plan_internal.hpp"
#include "sandbox/system_calls_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if CODEEXEC_HAS_SANDBOX

namespace {

// supervising -------------------------------------------------------------------------------------
//
// A supervised command is the child of a supervisor, which is a child of this program. The
// supervisor shares this program's memory and never calls exec, so it costs only a clone. It is a
// subreaper: each process that the command starts, in any session, becomes its child when its own
// parents die.
// So it can kill all of them when the command ends, when this program orders it, and when this
// program is gone for any reason. When it has no more children, no process of the command is left.
//
// Threads of this program go on running in the same memory. So the supervisor uses only raw system
// calls and the data in its Supervision, which must stay until it has ended.

// Where the supervisor keeps its descriptors, in a table of its own: in place of the standard
// streams. The command gets new ones.
enum SupervisorDescriptor : int { orders_fd, host_fd, broker_fd, first_other_fd };

CODEEXEC_IN_CHILD void tell_of_start(Supervision& run) {
  run.told_start = true;
  __atomic_store_n(&run.life, Supervision::watching, __ATOMIC_RELEASE);
  raw(SYS_futex, &run.life, FUTEX_WAKE, INT_MAX);
}

// Without a broker, which not every kernel and container has, Landlock refuses what it would do.
CODEEXEC_IN_CHILD void take_broker(Supervision& run) {
  raw(SYS_close, broker_fd);
  if (run.sandbox->brokered_count == 0) return;
  const long listener = start_broker(*run.sandbox);
  if (listener < 0) return;
  run.broker = broker_fd;
  if (listener == broker_fd) return;
  if (raw(SYS_dup3, listener, broker_fd, 0) < 0) run.broker = -1;
  raw(SYS_close, listener);
}

// Moves the host's descriptors that the supervisor needs to these numbers. This can fail, so it is
// done before the command is started. Returns 0 or a negative errno.
CODEEXEC_IN_CHILD long move_descriptors(Supervision& run) {
  const int kept[] = {run.orders, run.host};
  for (int i = 0; i < broker_fd; ++i) {
    // All sources are above 2.
    const long moved = kept[i] >= 0 ? raw(SYS_dup3, kept[i], i, 0) : raw(SYS_close, i);
    if (moved < 0 && kept[i] >= 0) return moved;
  }
  if (run.host >= 0) run.host = host_fd;
  take_broker(run);
  return 0;
}

// "/proc/PID/task", with "/TID/children" when `thread` is not 0.
CODEEXEC_IN_CHILD void set_path(Supervision& run, int pid, int thread) {
  std::size_t size = 0;
  const char* const parts[] = {"/proc/", "/task", "/", "/children"};
  const int numbers[] = {pid, 0, thread, 0};
  for (int part = 0; part < (thread == 0 ? 2 : 4); ++part) {
    for (const char* c = parts[part]; *c != '\0'; ++c) run.path[size++] = *c;
    int number = numbers[part];
    char digits[12];
    int count = 0;
    for (; number > 0; number /= 10) digits[count++] = static_cast<char>('0' + number % 10);
    while (count > 0) run.path[size++] = digits[--count];
  }
  run.path[size] = '\0';
}

// Adds the processes that a file of children lists to those found. False: it cannot be read.
CODEEXEC_IN_CHILD bool find_children(Supervision& run, const char* path) {
  const long list = raw(SYS_openat, AT_FDCWD, path, O_RDONLY, 0);
  if (list < 0) return false;
  int pid = 0;
  long size = 0;
  while ((size = raw(SYS_read, list, &run.text[0], sizeof run.text)) > 0) {
    for (long i = 0; i < size; ++i) {
      const char c = run.text[i];
      if (c >= '0' && c <= '9') {
        pid = pid * 10 + (c - '0');
        continue;
      }
      // If the list is full, drop the pid: it is reparented to us and found on the next pass.
      constexpr std::size_t most = sizeof run.found / sizeof run.found[0];
      if (pid > 0 && run.found_count < most) run.found[run.found_count++] = pid;
      pid = 0;
    }
  }
  raw(SYS_close, list);
  return true;
}

CODEEXEC_IN_CHILD void find_children_of(Supervision& run, int pid) {
  set_path(run, pid, 0);
  const long threads = raw(SYS_openat, AT_FDCWD, &run.path[0], O_RDONLY | O_DIRECTORY, 0);
  if (threads < 0) return;
  long size = 0;
  while ((size = raw(SYS_getdents64, threads, &run.entries[0], sizeof run.entries)) > 0) {
    long at = 0;
    while (at < size) {
      const int thread = next_number(run.entries, at);
      if (thread <= 0) continue;
      set_path(run, pid, thread);
      find_children(run, run.path);
    }
  }
  raw(SYS_close, threads);
}

// Kills all descendants. Each is stopped before its children are listed, so that it cannot make
// more meanwhile. None is reaped during that, so no pid is used again. A process that appears in
// between is found on the next pass. False: they cannot be found, or cannot be killed.
CODEEXEC_IN_CHILD bool kill_descendants(Supervision& run) {
  if (run.own_table) {
    // As pid 1 of its own process table, -1 means all processes in that table but itself. In any
    // other table it would mean all processes of the user.
    if (raw(SYS_getpid) == 1) raw(SYS_kill, -1, SIGKILL);
    return true;
  }
  run.found_count = 0;
  run.report.denied = false;
  if (!find_children(run, "/proc/thread-self/children")) return false;
  while (run.found_count > 0) {
    const int pid = run.found[--run.found_count];
    raw(SYS_kill, pid, SIGSTOP);
    find_children_of(run, pid);
    if (raw(SYS_kill, pid, SIGKILL) == -EPERM) run.report.denied = true;
  }
  return !run.report.denied;
}

CODEEXEC_IN_CHILD KernelSigset only_child_ended() {
  KernelSigset set = {};
  set.bits[(SIGCHLD - 1) / 8] = 1u << ((SIGCHLD - 1) % 8);
  return set;
}

// Reaps a process if it has ended. If it is the command, records how it ended.
CODEEXEC_IN_CHILD void take_away(Supervision& run, long pid) {
  SupervisorReport& report = run.report;
  const bool is_command = pid == report.pid && !report.known;
  run.info.si_pid = 0;
  raw(SYS_waitid, P_PID, pid, &run.info, WEXITED | WNOHANG | __WALL,
      is_command ? &report.usage : nullptr);
  if (run.info.si_pid == 0) return;
  if (!is_command) {
    if (run.info.si_code == CLD_KILLED && run.info.si_status == SIGKILL) ++report.left_behind;
    return;
  }
  report.known = true;
  report.exited = run.info.si_code == CLD_EXITED;
  report.value = run.info.si_status;
}

// Reaps all processes that have ended. False: no child is left.
CODEEXEC_IN_CHILD bool reap_ended(Supervision& run) {
  if (!run.report.known) take_away(run, run.report.pid);
  for (;;) {
    run.info.si_pid = 0;
    const long waited =
        raw(SYS_waitid, P_ALL, 0, &run.info, WEXITED | WNOHANG | WNOWAIT | __WALL, 0);
    if (waited == -ECHILD) return false;
    if (waited < 0 || run.info.si_pid == 0) return true;
    take_away(run, run.info.si_pid);
  }
}

// Kills children until none is left, however long some take to die. A process that another one
// traces ends only when its tracer is gone, so this never waits for a single child. False: after a
// second there are still some that cannot be found or killed.
CODEEXEC_IN_CHILD bool end_all(Supervision& run) {
  constexpr int most_failures = 100;
  const KernelSigset child_ended = only_child_ended();
  int failures = 0;
  while (reap_ended(run)) {
    if (!kill_descendants(run) && ++failures == most_failures) return false;
    // Signals are blocked here, and so this one stays until it is taken.
    const long time[2] = {0, 10000000};
    raw(SYS_rt_sigtimedwait, &child_ended, nullptr, &time[0], kernel_sigset_size);
  }
  return true;
}

// Reaps daemons of the command that have ended before it: only their parent, this process, can.
CODEEXEC_IN_CHILD void reap_orphans(Supervision& run) {
  for (;;) {
    run.info.si_pid = 0;
    raw(SYS_waitid, P_ALL, 0, &run.info, WEXITED | WNOHANG | WNOWAIT | __WALL, 0);
    const long pid = run.info.si_pid;
    if (pid == 0 || pid == run.report.pid) return;
    raw(SYS_waitid, P_PID, pid, &run.info, WEXITED | WNOHANG | __WALL, 0);
  }
}

// Gives back the pages that the start needed, but not the stack that this and its callers use.
CODEEXEC_IN_CHILD void give_back_memory(Supervision& run) {
  constexpr std::uintptr_t most_used_from_here = 1024;
  volatile char here = 0;
  const auto begin = reinterpret_cast<std::uintptr_t>(&run);
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(&here) - most_used_from_here;
  raw(SYS_madvise, &run, (end - begin) / run.page_size * run.page_size, MADV_DONTNEED);
}

// Prepares for a command that runs for long: gives back memory, and watches for orphans that end.
// For a short command these calls would cost more than they save.
CODEEXEC_IN_CHILD void settle_down(Supervision& run) {
  give_back_memory(run);
  // A SIGCHLD that came before is still pending, as it is blocked here.
  const KernelSigset child_ended = only_child_ended();
  run.child_ended = static_cast<int>(
      raw(SYS_signalfd4, -1, &child_ended, kernel_sigset_size, O_CLOEXEC | O_NONBLOCK));
}

// Waits until the command has ended or an order to end it arrives.
CODEEXEC_IN_CHILD void watch_command(Supervision& run) {
  long time_left[2] = {0, 20000000};  // until it counts as one that runs for long
  bool settled = false;
  for (;;) {
    pollfd set[5];
    set[0].fd = orders_fd;
    set[1].fd = run.host;
    set[2].fd = run.command;
    set[3].fd = run.child_ended;
    set[4].fd = run.broker;
    for (pollfd& entry : set) {
      entry.events = POLLIN;
      entry.revents = 0;
    }
    const long ready = raw(SYS_ppoll, &set[0], 5, settled ? nullptr : &time_left[0], nullptr, 0);
    if (ready == 0) {
      settle_down(run);
      settled = true;
    }
    if (set[1].revents || set[2].revents) return;
    if (set[3].revents) {
      raw(SYS_read, run.child_ended, &run.text[0], sizeof run.text);
      reap_orphans(run);
    }
    if (set[4].revents) serve_broker(*run.sandbox, run.broker, run.entries);
    if (!set[0].revents) continue;
    const long size = raw(SYS_read, orders_fd, &run.text[0], sizeof run.text);
    if (size <= 0) return;
    for (long i = 0; i < size; ++i) {
      if (run.text[i] == SIGKILL) return;
      raw(SYS_kill, -run.report.pid, int{run.text[i]});
      __atomic_store_n(&run.signals_sent, run.signals_sent + 1, __ATOMIC_RELEASE);
      raw(SYS_futex, &run.signals_sent, FUTEX_WAKE_PRIVATE, INT_MAX);
    }
  }
}

CODEEXEC_IN_CHILD void end_command(Supervision& run) {
  // Those that ended before the command, even by a SIGKILL of its own, are not counted.
  run.report.all_ended = !reap_ended(run);
  run.report.left_behind = 0;
  if (run.report.all_ended) return;
  const long group = run.report.pid;
  // A child in the group that is not reaped yet keeps the group's number.
  if (raw(SYS_waitid, P_PGID, group, &run.info, WEXITED | WNOHANG | WNOWAIT | __WALL, 0) == 0)
    raw(SYS_kill, -group, SIGKILL);
  if (!run.report.known) raw(SYS_kill, group, SIGKILL);
  run.report.all_ended = end_all(run);
}

CODEEXEC_IN_CHILD long start_command(Supervision& run) {
  raw(SYS_prctl, PR_SET_NAME, "codeexec", 0, 0, 0);
  // A signal to the host's process group must not kill the supervisor, too.
  raw(SYS_setpgid, 0, 0);
  // A host that ignores this signal has its children reaped by the kernel.
  const unsigned long by_default[8] = {};
  raw(SYS_rt_sigaction, SIGCHLD, &by_default[0], nullptr, kernel_sigset_size);
  long result = raw(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  ChildPlan& plan = *run.plan;
  if (result == 0) result = set_up_namespaces(*run.sandbox);
  if (result == 0 && plan.listener) result = plan.listener->pass();
  if (result < 0) {
    run.report.failure = failed_at(SpawnStep::sandbox, result);
    return result;
  }
  plan.supervisor = raw(SYS_getpid);
  result = move_descriptors(run);
  if (result == 0)
    result = clone_child(plan, run.command_stack, sizeof run.command_stack, &run.command);
  if (result < 0) {
    run.report.failure = failed_at(SpawnStep::start, result);
    return result;
  }
  run.report.pid = result;
  run.report.failure = failed_at(static_cast<SpawnStep>(int{plan.failed_step}), -plan.failed_error);
  int kept[most_broker_directories + 1] = {run.command};
  for (std::size_t i = 0; i < run.sandbox->broker_directory_count; ++i)
    kept[i + 1] = run.sandbox->broker_directories[i];
  close_from(first_other_fd, kept, 1 + run.sandbox->broker_directory_count);
  if (run.report.failure.error != 0) {
    end_command(run);
    return -run.report.failure.error;
  }
  return 0;
}

CODEEXEC_IN_CHILD int supervisor_main(void* argument) {
  Supervision& run = *static_cast<Supervision*>(argument);
  run.plan->ran = 1;
  const long result = start_command(run);
  tell_of_start(run);
  if (result == 0) {
    watch_command(run);
    end_command(run);
    run.told_end = true;
  }
  for (;;) raw(SYS_exit_group, 0);
}

struct SharingTrial {
  volatile bool ran = false;
};

CODEEXEC_IN_CHILD int sharing_trial_main(void* argument) {
  static_cast<SharingTrial*>(argument)->ran = true;
  for (;;) raw(SYS_exit_group, 0);
}

// Checks that a child shares this program's memory (emulators copy it) and comes with a pidfd
// (Linux 5.2). A child that does nothing shows it, so that no command is started in vain. Returns 0
// or an errno.
int check_sharing() {
  static std::atomic<bool> shared{false};
  if (shared.load()) return 0;
  alignas(16) char stack[child_stack_size];
  SharingTrial trial;
  int pidfd = -1;
  long pid = -1;
  {
    bool cleared = false;
    const SignalPause pause;
    const CloneRequest request = {
        CLONE_VFORK, sharing_trial_main, &trial, stack, sizeof stack, &pidfd, 0};
    pid = clone_process(request, cleared);
  }
  if (pid < 0) return static_cast<int>(-pid);
  const UniqueFd handle(pidfd);
  while (raw(SYS_wait4, pid, 0, __WALL, 0) == -EINTR) {
  }
  shared.store(trial.ran && handle);
  return shared.load() ? 0 : ENOSYS;
}

// Whether a child could not be made because the system lacks something that may be free soon.
bool is_passing(int error) {
  return error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE;
}

// The memory of a supervisor that has ended, kept for the next one. At most five pages are in use.
std::atomic<Supervision*> spare_supervision{nullptr};

int make_supervision(Supervisor& supervisor) {
  void* place = spare_supervision.exchange(nullptr);
  // As a stack it is not made of huge pages.
  if (!place)
    place = ::mmap(nullptr, sizeof(Supervision), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (place == MAP_FAILED) return errno;
  supervisor.run.reset(::new (place) Supervision);
  supervisor.run->page_size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return 0;
}

void wait_while(const std::uint32_t& word, std::uint32_t value) {
  while (__atomic_load_n(&word, __ATOMIC_ACQUIRE) == value)
    ::syscall(SYS_futex, &word, FUTEX_WAIT, long{value}, nullptr, nullptr, 0);
}

// The failure of a start whose supervisor was killed before it reported, for example by the command
// itself.
Failure unreported_start(ChildPlan& plan) {
  if (plan.pid == 0) return {SpawnStep::sandbox, ESRCH};
  wait_while(plan.in_use, 1);
  return {static_cast<SpawnStep>(int{plan.failed_step}), plan.failed_error};
}

// Waits until a new supervisor reports the start. Sets `error` when the command does not run.
void await_start(Spawned& child, Supervisor& supervisor, ChildPlan& plan) {
  Supervision& run = *supervisor.run;
  wait_while(run.life, Supervision::starting);
  const bool told = run.told_start;
  const SupervisorReport& report = run.report;
  const Failure failure = told ? report.failure : unreported_start(plan);
  if (failure.error == 0 && child.exit_event) {
    supervisor.command = run.own_table ? -1 : static_cast<pid_t>(told ? report.pid : plan.pid);
    return set_nonblocking(supervisor.orders);
  }
  child.step = failure.step;
  child.error = failure.error != 0 ? failure.error : EMFILE;
  child.no_supervisor = told && report.pid == 0 && !is_passing(child.error);
  supervisor.orders.reset();  // its order to end
  reap_failed(child.pid);
  // A supervisor killed during the start may have left a child that still uses its memory: it is
  // leaked on purpose.
  if (!told) (void)supervisor.run.release();
  child.exit_event.reset();
}

}  // namespace

void SupervisionDeleter::operator()(Supervision* run) const noexcept {
  Supervision* none = nullptr;
  if (!spare_supervision.compare_exchange_strong(none, run)) ::munmap(run, sizeof *run);
}

inline namespace inner {

Spawned spawn_supervised(ChildPlan& plan, Supervisor& supervisor) {
  Spawned child;
  child.step = SpawnStep::start;
  child.error = check_sharing();
  child.no_supervisor = child.error != 0 && !is_passing(child.error);
  if (child.error != 0) return child;
  child.step = SpawnStep::setup;
  UniqueFd orders_end;
  if (!make_pipe(orders_end, supervisor.orders)) child.error = errno;
  if (child.error == 0) child.error = make_supervision(supervisor);
  if (child.error != 0) return child;
  const UniqueFd host(open_pidfd(::getpid()));
  Supervision& run = *supervisor.run;
  run.plan = &plan;
  run.sandbox = plan.sandbox;
  run.own_table = (plan.sandbox->clone_flags & CLONE_NEWPID) != 0;
  run.orders = orders_end.get();
  run.host = host.get();
  plan.report = -1;
  plan.ran = 0;
  plan.pid = 0;
  plan.failed_error = 0;
  int pidfd = -1;
  CloneRequest request = {plan.sandbox->clone_flags, supervisor_main, &run,   run.stack,
                          sizeof run.stack,          &pidfd,          SIGCHLD};
  request.cleared_at_end = &run.life;
  long pid = -1;
  const NamespaceTurn turn(*plan.sandbox);
  {
    const SignalPause pause;
    pid = clone_process(request, plan.handlers_cleared);
  }
  child.exit_event.reset(above_standard_streams(pidfd));
  if (pid < 0) {
    child.step = SpawnStep::start;
    child.error = static_cast<int>(-pid);
    child.no_supervisor = !is_passing(child.error);
    return child;
  }
  child.pid = static_cast<pid_t>(pid);
  child.is_pidfd = true;
  orders_end.reset();
  await_start(child, supervisor, plan);
  return child;
}

}  // namespace inner

#endif

}  // namespace v0_1
}  // namespace codeexec
