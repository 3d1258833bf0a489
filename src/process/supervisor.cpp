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
//
// Where all commands of a policy can be started alike (SandboxPlan::idle), a supervisor whose
// command has left nothing behind waits for the next one. It has its namespaces and the filter of
// system calls, which its commands inherit, from its first start on. Their descriptors come with
// the order to start, as its table is its own. Landlock holds each command apart from all others,
// and so it is entered for each, as are limits and the loss of capabilities.

// Where the supervisor keeps its descriptors, in a table of its own: in place of the standard
// streams, so that none of a command's can have these numbers. The command gets new ones.
enum SupervisorDescriptor : int { orders_fd, host_fd, broker_fd, first_other_fd };

CODEEXEC_IN_CHILD void set_life(Supervision& run, Supervision::Life life) {
  __atomic_store_n(&run.life, run.run << 2 | life, __ATOMIC_RELEASE);
}

CODEEXEC_IN_CHILD void tell_of_start(Supervision& run) {
  run.told_start = true;
  set_life(run, Supervision::watching);
  raw(SYS_futex, &run.life, FUTEX_WAKE, INT_MAX);
}

// Closes all but the supervisor's own descriptors and, while a command runs, its pidfd.
CODEEXEC_IN_CHILD void close_others(const Supervision& run) {
  int kept[most_broker_directories + 2];
  std::size_t count = 0;
  kept[count++] = run.command;
  kept[count++] = run.has_next ? run.sandbox->ruleset : -1;
  for (std::size_t i = 0; i < run.sandbox->broker_directory_count; ++i)
    kept[count++] = run.sandbox->broker_directories[i];
  close_from(first_other_fd, kept, count);
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
  // No number below `first_other_fd` is left for what comes with an order.
  long filled = 0;
  if (run.has_next && run.broker < 0) filled = raw(SYS_dup3, orders_fd, broker_fd, 0);
  return filled < 0 ? filled : 0;
}

// The filter holds the supervisor, too, from here on, and what it starts.
CODEEXEC_IN_CHILD long enter_filter(const SandboxPlan& sandbox) {
  const long result = sandbox.no_new_privs ? raw(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) : 0;
  return result < 0 ? result : install_filter(sandbox);
}

// "/proc/PID/task", with "/TID/children" when `thread` is not 0.
CODEEXEC_IN_CHILD void set_path(Supervision& run, int pid, int thread) {
  std::size_t size = 0;
  const char* const parts[] = {"/proc/", "/task", "/", "/children"};
  const int numbers[] = {pid, 0, thread, 0};
  for (int part = 0; part < (thread == 0 ? 2 : 4); ++part) {
    for (const char* c = parts[part]; *c != '\0'; ++c) run.path[size++] = *c;
    size = append_number(run.path, size, static_cast<std::uint32_t>(numbers[part]));
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
  run.killed = run.reaped = 0;
  run.report.denied = false;
  if (!find_children(run, "/proc/thread-self/children")) return false;
  while (run.found_count > 0) {
    const int pid = run.found[--run.found_count];
    raw(SYS_kill, pid, SIGSTOP);
    find_children_of(run, pid);
    const long result = raw(SYS_kill, pid, SIGKILL);
    if (result == 0) ++run.killed;
    if (result == -EPERM) run.report.denied = true;
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
  ++run.reaped;
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

// Waits until a child has ended. False: none has for 10 ms. Signals are blocked here, and so one
// that came before stays until it is taken.
CODEEXEC_IN_CHILD bool await_child() {
  const KernelSigset child_ended = only_child_ended();
  const long time[2] = {0, 10000000};
  return raw(SYS_rt_sigtimedwait, &child_ended, nullptr, &time[0], kernel_sigset_size) == SIGCHLD;
}

// Whether a child in the group of the command is not reaped yet. It keeps the group's number.
CODEEXEC_IN_CHILD bool has_group(Supervision& run) {
  return raw(SYS_waitid, P_PGID, run.report.pid, &run.info, WEXITED | WNOHANG | WNOWAIT | __WALL,
             0) == 0;
}

// Kills children until none is left, however long some take to die. A process that another one
// traces ends only when its tracer is gone, so this never waits for a single child. False: after a
// second there are still some that cannot be found or killed.
CODEEXEC_IN_CHILD bool end_all(Supervision& run) {
  constexpr int most_failures = 100;
  constexpr int most_waits = 256;  // as others of the session may enter the group meanwhile
  int failures = 0;
  // Looking for processes takes memory. Where a container has none but that of processes that have
  // just been killed, which is not free yet, the kernel would end this process for it. So a look
  // waits until those have ended.
  for (int waits = 0; waits < most_waits && has_group(run) && await_child(); ++waits)
    reap_ended(run);
  while (reap_ended(run)) {
    if (!kill_descendants(run) && ++failures == most_failures) return false;
    while (await_child() && reap_ended(run) && run.reaped < run.killed) {
    }
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
    const SupervisorOrder& order = run.order;
    if (raw(SYS_read, orders_fd, &run.order, sizeof run.order) != long{sizeof run.order}) return;
    if (order.run != run.run || order.signal == 0) continue;
    if (order.signal == SIGKILL) return;
    raw(SYS_kill, -run.report.pid, int{order.signal});
    __atomic_store_n(&run.signals_sent, run.signals_sent + 1, __ATOMIC_RELEASE);
    raw(SYS_futex, &run.signals_sent, FUTEX_WAKE_PRIVATE, INT_MAX);
  }
}

CODEEXEC_IN_CHILD void end_command(Supervision& run) {
  // Those that ended before the command, even by a SIGKILL of its own, are not counted.
  run.report.all_ended = !reap_ended(run);
  run.report.left_behind = 0;
  if (run.report.all_ended) return;
  const long group = run.report.pid;
  if (has_group(run)) raw(SYS_kill, -group, SIGKILL);
  if (!run.report.known) raw(SYS_kill, group, SIGKILL);
  run.report.all_ended = end_all(run);
}

// Says that the command has ended, and that it may have another one.
CODEEXEC_IN_CHILD void tell_of_end(Supervision& run) {
  run.command = -1;
  run.child_ended = -1;
  close_others(run);
  set_life(run, Supervision::idle);
  raw(SYS_sendto, orders_fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT, nullptr, 0);
}

// Puts the descriptors that have come into the plan. False: not all of them have.
CODEEXEC_IN_CHILD bool take_descriptors(Supervision& run) {
  if (run.message.msg_flags & MSG_CTRUNC) return false;
  ChildPlan& plan = run.next;
  const int* given = run.ordered;
  for (int ChildPlan::*const field : ordered_descriptors)
    if (plan.*field >= 0) plan.*field = *given++;
  plan.cgroups = given;
  run.plan = &plan;
  return true;
}

// Waits for the order to start another command. False: there will be none.
CODEEXEC_IN_CHILD bool await_next(Supervision& run) {
  tell_of_end(run);
  for (;;) {
    pollfd set[2];
    set[0].fd = orders_fd;
    set[1].fd = run.host;
    for (pollfd& entry : set) {
      entry.events = POLLIN;
      entry.revents = 0;
    }
    raw(SYS_ppoll, &set[0], 2, nullptr, nullptr, 0);
    if (set[1].revents) return false;
    run.message.msg_controllen = sizeof run.control;
    const long size = raw(SYS_recvmsg, orders_fd, &run.message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (size == -EAGAIN || size == -EINTR) continue;
    if (size != long{sizeof run.order}) return false;
    if (run.order.signal == 0 && run.order.run == run.run) return take_descriptors(run);
  }
}

// What it does once. 0 or a negative errno.
CODEEXEC_IN_CHILD long become_supervisor(Supervision& run) {
  raw(SYS_prctl, PR_SET_NAME, "codeexec", 0, 0, 0);
  // A signal to the host's process group must not kill the supervisor, too.
  raw(SYS_setpgid, 0, 0);
  // A host that ignores SIGCHLD would have its children reaped by the kernel. What all commands
  // need is done once for all.
  if (run.has_next)
    reset_signals(run.plan->handlers_cleared);
  else
    reset_signal(SIGCHLD);
  long result = raw(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  if (result == 0) result = set_up_namespaces(*run.sandbox);
  const ListenerPass* const listener = run.plan->listener;
  if (result == 0 && listener) result = listener->pass();
  SpawnStep step = SpawnStep::sandbox;
  if (result == 0) {
    result = move_descriptors(run);
    if (result < 0) step = SpawnStep::start;
  }
  if (result == 0 && run.filtered) result = enter_filter(*run.sandbox);
  if (result < 0) run.report.failure = failed_at(step, result);
  return result;
}

// What a command may have left in namespaces is not there for the next one: shared memory, which no
// process needs to hold. 0 or a negative errno.
CODEEXEC_IN_CHILD long clear_namespaces(Supervision& run) {
  if ((run.sandbox->clone_flags & CLONE_NEWIPC) == 0) return 0;
  const long result = raw(SYS_unshare, CLONE_NEWIPC);
  if (result < 0) run.report.failure = failed_at(SpawnStep::sandbox, result);
  return result;
}

// 0 or a negative errno: the command does not run.
CODEEXEC_IN_CHILD long start_command(Supervision& run) {
  ChildPlan& plan = *run.plan;
  plan.supervisor = raw(SYS_getpid);
  plan.filtered = run.filtered;
  plan.signals_reset = run.has_next;
  run.has_cloned = true;
  const long result = clone_child(plan, run.command_stack, sizeof run.command_stack, &run.command);
  if (result < 0) {
    run.report.failure = failed_at(SpawnStep::start, result);
    return result;
  }
  run.report.pid = result;
  run.report.failure = failed_at(static_cast<SpawnStep>(int{plan.failed_step}), -plan.failed_error);
  close_others(run);
  if (run.report.failure.error != 0) {
    end_command(run);
    return -run.report.failure.error;
  }
  return 0;
}

}  // namespace

inline namespace inner {

CODEEXEC_IN_CHILD int supervisor_main(void* argument) {
  Supervision& run = *static_cast<Supervision*>(argument);
  run.plan->ran = 1;
  long result = become_supervisor(run);
  if (result == 0) result = start_command(run);
  tell_of_start(run);
  while (result == 0) {
    watch_command(run);
    end_command(run);
    run.told_end = true;
    if (!run.has_next || !run.report.all_ended || !await_next(run)) break;
    result = clear_namespaces(run);
    if (result == 0) result = start_command(run);
    tell_of_start(run);
  }
  for (;;) raw(SYS_exit_group, 0);
}

}  // namespace inner

#endif

}  // namespace v0_1
}  // namespace codeexec
