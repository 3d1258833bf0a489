// Starting by fork, where there is no clone.

#include "process/start_internal.hpp"

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if !CODEEXEC_HAS_CLONE

namespace {

// Only functions that POSIX allows between fork and exec in a process with threads.
SpawnStep become_program_after_fork(ChildPlan& plan) {
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &by_default, nullptr);
  ::setsid();
  if (::dup2(plan.input, 0) < 0 || ::dup2(plan.output, 1) < 0 || ::dup2(plan.error_output, 2) < 0)
    return SpawnStep::stdio;
  if (plan.terminal && ::ioctl(0, TIOCSCTTY, 0) != 0) return SpawnStep::stdio;
  if (plan.work_dir_fd >= 0) {
    if (::fchdir(plan.work_dir_fd) != 0) return SpawnStep::work_dir;
  } else if (plan.work_dir) {
    if (::chdir(plan.work_dir) != 0) return SpawnStep::work_dir;
  }
  if (plan.pass_fd == 3) {
    if (::fcntl(3, F_SETFD, 0) < 0) return SpawnStep::pass_fd;
  } else if (plan.pass_fd >= 0) {
    if (::dup2(plan.pass_fd, 3) < 0) return SpawnStep::pass_fd;
  }
  const rlimit no_core = {0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  // Above 65536 descriptors a loop would take seconds; what a host opens there must be CLOEXEC.
  rlimit descriptors = {65536, 65536};
  ::getrlimit(RLIMIT_NOFILE, &descriptors);
  const int limit = static_cast<int>(std::min<rlim_t>(descriptors.rlim_cur, 65536));
  for (int fd = plan.pass_fd >= 0 ? 4 : 3; fd < limit; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  sigset_t none;
  sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  errno = execute_first(plan, [](const char* path, char* const* argv, char* const* variables) {
    ::execve(path, argv, variables);
    return errno;
  });
  return SpawnStep::exec;
}

}  // namespace

inline namespace inner {

Spawned spawn_once(ChildPlan& plan) {
  Spawned child;
  child.step = SpawnStep::setup;
  UniqueFd report;
  UniqueFd report_end;
  child.error = make_report_pipe(report, report_end);
  if (child.error != 0) return child;
  plan.report = report_end.get();
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  child.pid = ::fork();
  if (child.pid == 0) {
    const SpawnStep step = become_program_after_fork(plan);
    const Failure failure = {step, errno};
    (void)!::write(plan.report, &failure, sizeof failure);
    ::_exit(127);
  }
  child.error = child.pid < 0 ? errno : 0;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  child.step = SpawnStep::start;
  if (child.pid < 0) return child;
  report_end.reset();
  Failure failure = {};
  if (read_record(report, failure)) {
    child.error = failure.error;
    child.step = failure.step;
  } else {
    child.error = watch_by_thread(child);
    if (child.error == 0) return child;
    ::kill(-child.pid, SIGKILL);
  }
  reap_failed(child.pid);
  return child;
}

}  // namespace inner

#endif

}  // namespace v0_1
}  // namespace codeexec
