// Statuses of ended programs.

#include "process/process_internal.hpp"
#include "process/start_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

void decode_wait_status(int status, ExitStatus& result) {
  result.known = true;
  result.exited = WIFEXITED(status);
  result.value = result.exited ? WEXITSTATUS(status) : WTERMSIG(status);
}

#if defined(__linux__)
// From Linux 6.15 on, holders of a pidfd can read the status even if the host has reaped the child,
// or the kernel did because the host ignores SIGCHLD.
void ask_pidfd(int pidfd, ExitStatus& result) {
  struct PidfdInfo {  // first version of the kernel's struct pidfd_info
    std::uint64_t mask;
    std::uint64_t cgroup;
    std::uint32_t ids[11];
    std::int32_t exit_code;
  };
  constexpr std::uint64_t wants_exit = 8;
  constexpr unsigned long request = _IOWR(0xFF, 11, PidfdInfo);
  const Clock::time_point deadline = later(Clock::now(), std::chrono::seconds(3));
  for (bool gone = false;;) {
    PidfdInfo info{};
    info.mask = wants_exit;
    // Not ioctl(), whose request is an unsigned long in glibc and an int in musl.
    if (::syscall(SYS_ioctl, pidfd, request, &info) != 0) return;
    if (info.mask & wants_exit) return decode_wait_status(info.exit_code, result);
    if (gone || Clock::now() >= deadline) return;
    // Dead, but not yet gone: the hang-up comes when the kernel has let go of it. The thread of the
    // host that reaps it may have to wait for a processor first.
    pollfd hang_up = {pidfd, 0, 0};
    wait_for_events(&hang_up, 1, deadline);
    gone = hang_up.revents != 0;
  }
}
#endif

}  // namespace

inline namespace inner {

#if defined(__linux__)
bool take_child(bool by_pidfd, int id, siginfo_t& info, rusage* usage) {
  // The kernel's waitid, unlike libc's, gives the resources used as well.
  const long type = by_pidfd ? 3 /* P_PIDFD */ : P_PID;
  long failed = 0;
  do failed = ::syscall(SYS_waitid, type, long{id}, &info, long{any_child | WEXITED}, usage);
  while (failed != 0 && errno == EINTR);
  return failed == 0;
}
#endif

ExitStatus reap(const UniqueFd& exit_event, bool is_pidfd, pid_t pid) {
  ExitStatus result;
#if defined(__linux__)
  siginfo_t info{};
  if (take_child(is_pidfd, is_pidfd ? exit_event.get() : pid, info, &result.usage)) {
    result.known = true;
    result.exited = info.si_code == CLD_EXITED;
    result.value = info.si_status;
  } else if (is_pidfd) {
    ask_pidfd(exit_event.get(), result);
  }
#else
  (void)exit_event;
  (void)is_pidfd;
  int status = 0;
  pid_t reaped = 0;
  do reaped = ::wait4(pid, &status, 0, &result.usage);
  while (reaped < 0 && errno == EINTR);
  if (reaped == pid) decode_wait_status(status, result);
#endif
  return result;
}

}  // namespace inner

namespace {

// Children that were killed and are not waited for: they wait in the kernel for a device or a
// network file system, or take long to end. A later start reaps them when they have ended.
struct Abandoned {
  std::mutex mutex = {};
  std::vector<pid_t> pids = {};
  std::atomic<bool> any{false};
};

// Never destroyed: handles in static objects may end after it would.
Abandoned& abandoned() {
  static Abandoned& list = *new Abandoned;
  return list;
}

}  // namespace

inline namespace inner {

void abandon_child(pid_t pid) {
  Abandoned& list = abandoned();
  const std::lock_guard<std::mutex> lock(list.mutex);
  await_memory([&] { list.pids.push_back(pid_t{pid}); });
  list.any.store(true);
}

void reap_abandoned() {
  Abandoned& list = abandoned();
  if (!list.any.load()) return;
  const std::lock_guard<std::mutex> lock(list.mutex);
  const auto gone = [](pid_t pid) {
    siginfo_t info{};
    int failed = 0;
    do failed = ::waitid(P_PID, static_cast<id_t>(pid), &info, any_child | WEXITED | WNOHANG);
    while (failed != 0 && errno == EINTR);
    return failed != 0 || info.si_pid == pid;
  };
  std::size_t left = 0;
  for (const pid_t pid : list.pids)
    if (!gone(pid)) list.pids[left++] = pid;
  while (list.pids.size() > left) list.pids.pop_back();
  list.any.store(!list.pids.empty());
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
