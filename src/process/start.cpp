// Pipes, the launch of a program, and why it failed.

#include "process/plan_internal.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "sandbox/capabilities_internal.hpp"
#include "sandbox/plan_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// A thread that waits for the end of a child, without reaping it, and then closes a pipe. For
// systems without pidfd.
struct ExitWaiter {
  pid_t pid = -1;
  UniqueFd end = UniqueFd();
};

void* wait_for_exit(void* argument) {
  const std::unique_ptr<ExitWaiter> waiter(static_cast<ExitWaiter*>(argument));
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(waiter->pid), &info, WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
  return nullptr;
}

// A program that is there, but whose #! interpreter or dynamic loader is not, fails like a missing
// one. "; its interpreter '/x' is missing" for such a file, else an empty text.
std::string missing_interpreter(const Launch& launch) {
  const ChildPlan& plan = launch.plan;
  UniqueFd directory;
  int base = plan.work_dir_fd >= 0 ? plan.work_dir_fd : AT_FDCWD;
  if (plan.work_dir_fd < 0 && plan.work_dir) {
    directory.reset(::open(plan.work_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    base = directory.get();
  }
  for (const std::string& path : launch.candidates()) {
    struct stat status {};
    if (::fstatat(base, path.c_str(), &status, 0) != 0 || !S_ISREG(status.st_mode)) continue;
    const UniqueFd file(::openat(base, path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    char line[256];
    const ssize_t size = file ? ::read(file.get(), line, sizeof line) : -1;
    const std::string_view start(line, size > 0 ? static_cast<std::size_t>(size) : 0);
    if (!starts_with(start, "#!"sv)) return "; the program is there, but its loader is missing";
    const std::size_t begin = std::min(start.find_first_not_of(" \t", 2), start.size());
    const std::size_t end = start.find_first_of(" \t\r\n", begin);
    return concat("; its interpreter % is missing", {in_quotes(start.substr(begin, end - begin))});
  }
  return {};
}

// As in_quotes(), without the quotes.
std::string unquoted(std::string_view text) {
  const std::string safe = in_quotes(text);
  return safe.substr(1, safe.size() - 2);
}

}  // namespace

inline namespace inner {

const char* step_name(SpawnStep step) {
  switch (step) {
    case SpawnStep::setup:
      return "setup";
    case SpawnStep::start:
      return "start";
    case SpawnStep::stdio:
      return "stdio";
    case SpawnStep::work_dir:
      return "work_dir";
    case SpawnStep::pass_fd:
      return "pass_fd";
    case SpawnStep::sandbox:
      return "sandbox";
    case SpawnStep::exec:
      break;
  }
  return "exec";
}

Clock::time_point later(Clock::time_point from, std::chrono::milliseconds time) {
  // Fifty years are for ever, far from overflow, and fit into a time_t of 32 bits.
  constexpr std::chrono::milliseconds longest = std::chrono::hours(24 * 365 * 50);
  if (time >= longest) return Clock::time_point::max();
  return from + std::max(time, std::chrono::milliseconds(0));
}

void wait_for_events(pollfd* set, std::size_t count, Clock::time_point deadline) {
  using std::chrono::nanoseconds;
  nanoseconds left = nanoseconds::max();
  if (deadline != Clock::time_point::max())
    left = std::max(nanoseconds(0), nanoseconds(deadline - Clock::now()));
  const auto size = static_cast<nfds_t>(count);
#if defined(__linux__)
  timespec time{};
  time.tv_sec = static_cast<time_t>(left.count() / 1000000000);
  time.tv_nsec = static_cast<long>(left.count() % 1000000000);
  const bool for_ever = left == nanoseconds::max();
  const int ready = ::ppoll(set, size, for_ever ? nullptr : &time, nullptr);
#else
  const auto rounded = left.count() / 1000000 + 1;
  const int time = left == nanoseconds::max()
                       ? -1
                       : static_cast<int>(std::min<decltype(rounded)>(rounded, INT_MAX));
  const int ready = ::poll(set, size, left.count() == 0 ? 0 : time);
#endif
  // After an interruption the answers are undefined: nothing is ready.
  for (std::size_t i = 0; ready < 0 && i < count; ++i) set[i].revents = 0;
}

void wait_for_events(std::vector<pollfd>& set, Clock::time_point deadline) {
  wait_for_events(set.data(), set.size(), deadline);
}

bool wait_for_event(const CancelToken& event, const std::optional<CancelToken>& cancel,
                    Clock::time_point deadline) {
  // Without a descriptor this polls: the system lacks descriptors only for a moment.
  const bool blind = event.descriptor() < 0 || (cancel && cancel->descriptor() < 0);
  pollfd set[] = {{event.descriptor(), POLLIN, 0}, {cancel ? cancel->descriptor() : -1, POLLIN, 0}};
  while (!event.cancelled() && !(cancel && cancel->cancelled())) {
    const Clock::time_point now = Clock::now();
    if (now >= deadline) break;
    wait_for_events(set, cancel ? 2 : 1,
                    blind ? std::min(deadline, now + std::chrono::milliseconds(50)) : deadline);
  }
  return event.cancelled();
}

SharedError cancelled_before_start() {
  return with_message(system_error(ECANCELED, ""), "cancelled before it was started");
}

std::vector<std::string> own_variables() {
  std::vector<std::string> variables;
  for (char** variable = environ; variable && *variable; ++variable)
    variables.emplace_back(*variable);
  return variables;
}

bool make_pipe(UniqueFd& read_end, UniqueFd& write_end) {
  int ends[2] = {-1, -1};
#if defined(__linux__)
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
#else
  if (::pipe(ends) != 0) return false;
  for (const int end : ends) ::fcntl(end, F_SETFD, FD_CLOEXEC);
#endif
  read_end.reset(above_standard_streams(ends[0]));
  const int error = errno;
  write_end.reset(above_standard_streams(ends[1]));
  if (read_end && write_end) return true;
  if (!read_end) errno = error;
  return false;
}

#if defined(__linux__)
int open_pidfd(pid_t pid) {
  return above_standard_streams(
      static_cast<int>(::syscall(SYS_pidfd_open, static_cast<long>(pid), 0L)));
}
#endif

void set_nonblocking(const UniqueFd& fd) {
  if (fd) ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
}

std::uint64_t free_bytes(const UniqueFd& directory) {
  struct statvfs status {};
  if (::fstatvfs(directory.get(), &status) != 0) return 0;
  return std::uint64_t{status.f_bavail} * status.f_frsize;
}

int start_thread(pthread_t* thread, void* (*function)(void*), void* argument) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = ::pthread_create(thread, nullptr, function, argument);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

int watch_by_thread(Spawned& child) {
  std::unique_ptr<ExitWaiter> waiter(new (std::nothrow) ExitWaiter);
  if (!waiter) return ENOMEM;
  waiter->pid = child.pid;
  if (!make_pipe(child.exit_event, waiter->end)) return errno;
  const int error = start_thread(&child.waiter, wait_for_exit, waiter.get());
  if (error == 0) (void)waiter.release();
  return error;
}

int make_report_pipe(UniqueFd& report, UniqueFd& report_end) {
  if (!make_pipe(report, report_end)) return errno;
  report_end.reset(above_child_descriptors(report_end.release()));
  return report_end ? 0 : errno;
}

void reap_failed(pid_t pid) {
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(pid), &info, any_child | WEXITED) != 0 &&
         errno == EINTR) {
  }
}

Spawned spawn(ChildPlan& plan, [[maybe_unused]] Supervisor& supervisor) {
  const auto attempt = [&] {
#if CODEEXEC_HAS_SANDBOX
    const bool sandboxed = plan.sandbox && plan.sandbox->supervised;
    if (sandboxed || plan.supervised) {
      Spawned child = spawn_supervised(plan, supervisor);
      if (sandboxed || !child.no_supervisor) return child;
      plan.supervised = false;
      plan.supervisor = 0;
      supervisor = Supervisor();
    }
#endif
    return spawn_once(plan);
  };
  Spawned child = attempt();
  for (const int milliseconds : {1, 5, 20}) {
    if (child.error != EAGAIN && child.error != ETXTBSY) break;
    ::poll(nullptr, 0, milliseconds);
    child = attempt();
  }
  return child;
}

std::string describe_failure(const ProcessOptions& options, const Launch& launch, SpawnStep step,
                             int error, std::string_view file) {
  const std::string reason = concat({file, errno_text(error)});
  if (step == SpawnStep::work_dir) {
    if (options.work_dir_fd >= 0)
      return concat("cannot enter work_dir descriptor %: %", {options.work_dir_fd, reason});
    return concat("cannot enter work_dir %: %", {in_quotes(options.work_dir), reason});
  }
  std::string detail = step_name(step);
  if (step == SpawnStep::exec) {
    if (options.argv[0].find('/') == std::string::npos)
      append_all(detail, "; looked in PATH=%", {unquoted(launch.search_path())});
    if (error == ENOENT) detail += missing_interpreter(launch);
  }
  return concat("cannot start %: % (%)", {in_quotes(options.argv[0]), reason, detail});
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
