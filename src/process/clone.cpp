// Starting by clone, on borrowed memory.

#include "process/plan_internal.hpp"
#include "process/start_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "sandbox/capabilities_internal.hpp"
#include "sandbox/child_internal.hpp"
#include "sandbox/plan_internal.hpp"
#include "sandbox/system_calls_internal.hpp"

#ifndef SYS_close_range
#define CODEEXEC_CLOSE_RANGE_NUMBER 436  // the same on every architecture
#else
#define CODEEXEC_CLOSE_RANGE_NUMBER SYS_close_range
#endif

namespace codeexec {
inline namespace v0_1 {

namespace {

#if CODEEXEC_HAS_CLONE
CODEEXEC_IN_CHILD bool is_kept_open(int fd, const int* kept, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    if (kept[i] == fd) return true;
  return false;
}

// Closes all descriptors from `first` on but those that are kept, which become close-on-exec.
// Needed on Linux before 5.9.
CODEEXEC_IN_CHILD void close_each(int first, const int* kept, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    if (kept[i] >= 0) raw(SYS_fcntl, kept[i], F_SETFD, FD_CLOEXEC);
  const long directory = raw(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY, 0);
  if (directory < 0) {
    for (int fd = first; fd < 65536; ++fd)
      if (!is_kept_open(fd, kept, count)) raw(SYS_close, fd);
    return;
  }
  alignas(8) char entries[2048];
  long size = 0;
  while ((size = raw(SYS_getdents64, directory, &entries[0], 2048)) > 0) {
    long at = 0;
    while (at < size) {
      const int fd = next_number(entries, at);
      if (fd >= first && !is_kept_open(fd, kept, count) && fd != directory) raw(SYS_close, fd);
    }
  }
  raw(SYS_close, directory);
}

// 0 or a negative errno.
CODEEXEC_IN_CHILD long enter_work_dir(const ChildPlan& plan) {
  if (plan.work_dir_fd < 0) return plan.work_dir ? raw(SYS_chdir, plan.work_dir) : 0;
#if CODEEXEC_HAS_SANDBOX
  // The descriptor belongs to the host's mounts. A program with mounts of its own needs the
  // directory at the same path among those, and it must be the same directory.
  if (plan.sandbox && plan.sandbox->has_own_mounts() && plan.work_dir) {
    const long entered = raw(SYS_chdir, plan.work_dir);
    if (entered < 0) return entered;
    struct stat wanted;
    struct stat found;
    long known = raw(SYS_fstat, plan.work_dir_fd, &wanted);
    if (known == 0) known = raw(SYS_newfstatat, AT_FDCWD, ".", &found, 0);
    if (known < 0) return known;
    return wanted.st_dev == found.st_dev && wanted.st_ino == found.st_ino ? 0 : -ESTALE;
  }
#endif
  return raw(SYS_fchdir, plan.work_dir_fd);
}

#if CODEEXEC_HAS_SANDBOX
// Enters all of the sandbox but the system call filter, which would refuse the next steps. Returns
// 0 or a negative errno.
CODEEXEC_IN_CHILD long enter_sandbox(const ChildPlan& plan) {
  if (!plan.sandbox) return 0;
  for (std::size_t i = 0; i < plan.cgroup_count; ++i) {
    const long written = raw(SYS_write, plan.cgroups[i], "0", 1);
    if (written < 0) return written;
  }
  const long result = confine(*plan.sandbox);
  if (result < 0 || plan.supervisor == 0) return result;
  // If the supervisor is killed, by any process, the kernel kills the program with it. What the
  // program has started until then is found by its marks.
  raw(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  return raw(SYS_getppid) == plan.supervisor ? 0 : -ESRCH;
}
#endif

// 0 or a negative errno.
CODEEXEC_IN_CHILD long become_user(const ChildPlan& plan) {
#if defined(SYS_setresuid32)
  constexpr long numbers[] = {SYS_setgroups32, SYS_setresgid32, SYS_setresuid32};
#else
  constexpr long numbers[] = {SYS_setgroups, SYS_setresgid, SYS_setresuid};
#endif
  if (plan.uid < 0) return 0;
  const auto group = static_cast<gid_t>(plan.gid);
  long result = raw(numbers[0], 1, &group);
  if (result == 0) result = raw(numbers[1], plan.gid, plan.gid, plan.gid);
  return result == 0 ? raw(numbers[2], plan.uid, plan.uid, plan.uid) : result;
}

// Returns only if a step fails.
CODEEXEC_IN_CHILD Failure become_program(ChildPlan& plan) {
  if (!plan.signals_reset) reset_signals(plan.handlers_cleared);
  // A new session leaves the host's terminal: a prompt for a password then fails at once instead of
  // waiting for ever. If a filter refuses setsid(), the program at least needs a process group of
  // its own, which can be killed.
  if (raw(SYS_setsid) < 0) raw(SYS_setpgid, 0, 0);
  // All sources are above 2, so that none is overwritten before its turn.
  const int streams[3] = {plan.input, plan.output, plan.error_output};
  for (int fd = 0; fd < 3; ++fd) {
    const long result = raw(SYS_dup3, streams[fd], fd, 0);
    if (result < 0) return failed_at(SpawnStep::stdio, result);
  }
  long result = plan.terminal ? raw(SYS_ioctl, 0, TIOCSCTTY, 0) : 0;
  if (result < 0) return failed_at(SpawnStep::stdio, result);
  result = become_user(plan);
  if (result < 0) return failed_at(SpawnStep::setup, result);
  result = enter_work_dir(plan);
  if (result < 0) return failed_at(SpawnStep::work_dir, result);
  if (plan.pass_fd == 3)
    result = raw(SYS_fcntl, 3, F_SETFD, 0);
  else if (plan.pass_fd >= 0)
    result = raw(SYS_dup3, plan.pass_fd, 3, 0);
  if (result < 0) return failed_at(SpawnStep::pass_fd, result);
  const std::uint64_t no_core[2] = {0, 0};
  raw(SYS_prlimit64, 0, RLIMIT_CORE, &no_core[0], nullptr);
#if CODEEXEC_HAS_SANDBOX
  result = enter_sandbox(plan);
  if (result < 0) return failed_at(SpawnStep::sandbox, result);
#endif
  close_from(plan.pass_fd >= 0 ? 4 : 3, &plan.report, 1);
  const KernelSigset none = {};
  set_signal_mask(&none, nullptr);
#if CODEEXEC_HAS_SANDBOX
  if (plan.sandbox && !plan.filtered) result = install_filter(*plan.sandbox);
  if (result < 0) return failed_at(SpawnStep::sandbox, result);
#endif
  struct Execute {
    CODEEXEC_IN_CHILD int operator()(const char* path, char* const* argv, char* const* variables) {
      return static_cast<int>(-raw(SYS_execve, path, argv, variables));
    }
  };
  return {SpawnStep::exec, execute_first(plan, Execute())};
}

CODEEXEC_IN_CHILD int child_main(void* argument) {
  ChildPlan& plan = *static_cast<ChildPlan*>(argument);
  plan.ran = 1;
  plan.in_use = 1;
  plan.pid = raw(SYS_getpid);
  const Failure failure = become_program(plan);
  plan.failed_step = static_cast<int>(failure.step);
  plan.failed_error = failure.error;
  if (plan.report >= 0) raw(SYS_write, plan.report, &failure, sizeof failure);
  for (;;) raw(SYS_exit_group, 127);
}

// Whether clone really shares memory. Emulators (qemu-user, Valgrind) turn it into a fork, and then
// a failure must travel through a pipe. Learned from the first start, which has a pipe in any case.
enum class SharedMemory : int { unknown, yes, no };
std::atomic<SharedMemory> shared_memory{SharedMemory::unknown};

void read_report(const UniqueFd& report, ChildPlan& plan) {
  Failure failure = {};
  if (!read_record(report, failure)) return;
  plan.failed_error = failure.error;
  plan.failed_step = static_cast<int>(failure.step);
}
#endif

}  // namespace

inline namespace inner {

#if CODEEXEC_HAS_CLONE
CODEEXEC_IN_CHILD int next_number(const char* entries, long& at) {
  // inode and offset (8 bytes each), the record's length (2), a type (1), the name
  const auto* record = reinterpret_cast<const unsigned char*>(entries + at);
  at += record[16] | record[17] << 8;
  const unsigned char* digit = record + 19;
  int number = 0;
  while (*digit >= '0' && *digit <= '9') number = number * 10 + (*digit++ - '0');
  return digit == record + 19 ? -1 : number;
}

CODEEXEC_IN_CHILD void reset_signal(int number) {
  // The kernel's sigaction is the handler, the flags, perhaps a restorer, and the mask.
  const unsigned long by_default[8] = {};
  raw(SYS_rt_sigaction, number, &by_default[0], nullptr, kernel_sigset_size);
}

CODEEXEC_IN_CHILD void reset_signals(bool handlers_cleared) {
  unsigned long current[8] = {};
  for (int number = 1; number <= kernel_signals; ++number) {
    if (number == SIGKILL || number == SIGSTOP) continue;
    // Where handlers are cleared already, most signals need no second call.
    const long unknown =
        handlers_cleared ? raw(SYS_rt_sigaction, number, nullptr, &current[0], kernel_sigset_size)
                         : 1;
    if (unknown == 0 && current[0] == 0 && current[1] == 0) continue;
    reset_signal(number);
  }
}

CODEEXEC_IN_CHILD void close_from(int first, const int* kept, std::size_t count) {
  constexpr int last = INT_MAX;
  int begin = first;
  for (;;) {
    int next = last;  // the lowest from here on that is kept
    for (std::size_t i = 0; i < count; ++i)
      if (kept[i] >= begin && kept[i] < next) next = kept[i];
    const int end = next == last ? last : next - 1;
    if (begin <= end && raw(CODEEXEC_CLOSE_RANGE_NUMBER, begin, end, 0) != 0) break;
    if (next == last) return;
    begin = next + 1;
  }
  close_each(first, kept, count);
}

CODEEXEC_IN_CHILD Failure failed_at(SpawnStep step, long result) {
  return {step, static_cast<int>(-result)};
}

CODEEXEC_IN_CHILD long clone_child(ChildPlan& plan, char* stack, std::size_t size, int* pidfd) {
  const CloneRequest request = {CLONE_VFORK, child_main, &plan,   stack,
                                size,        pidfd,      SIGCHLD, &plan.in_use};
  return clone_process(request, plan.handlers_cleared);
}

Spawned spawn_once(ChildPlan& plan) {
  Spawned child;
  child.step = SpawnStep::setup;
  UniqueFd report;
  UniqueFd report_end;
  if (shared_memory.load() != SharedMemory::yes) {
    child.error = make_report_pipe(report, report_end);
    if (child.error != 0) return child;
  }
  plan.report = report_end.get();
  plan.ran = 0;
  plan.failed_error = 0;
  int pidfd = -1;
  long pid = -1;
  {
    alignas(16) char stack[child_stack_size];
    const SignalPause pause;
    pid = clone_child(plan, stack, sizeof stack, &pidfd);
  }
  child.exit_event.reset(above_standard_streams(pidfd));
  if (pid < 0) {
    child.step = SpawnStep::start;
    child.error = static_cast<int>(-pid);
    return child;
  }
  child.pid = static_cast<pid_t>(pid);
  report_end.reset();
  if (plan.report >= 0) shared_memory.store(plan.ran ? SharedMemory::yes : SharedMemory::no);
  if (!plan.ran) read_report(report, plan);
  if (plan.failed_error == 0) {
    if (!child.exit_event) child.exit_event.reset(open_pidfd(child.pid));
    child.is_pidfd = static_cast<bool>(child.exit_event);
    if (child.is_pidfd) return child;
    plan.failed_error = watch_by_thread(child);
    plan.failed_step = static_cast<int>(SpawnStep::start);
    if (plan.failed_error == 0) return child;
    ::kill(-child.pid, SIGKILL);
  }
  child.error = plan.failed_error;
  child.step = static_cast<SpawnStep>(int{plan.failed_step});
  reap_failed(child.pid);
  child.exit_event.reset();
  return child;
}
#endif

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
