// Makes one system call of a process fail: a tracer by ptrace. It follows a program that was forked
// from this one, the threads of it and what it clones until that has executed another program, and
// counts their calls between two marks. The call that was chosen is not made and gives an errno; of
// those that do their work in any case, like close(), it is made.
//
// strace can do the same, but each fault would cost a start of it and of the program, and the calls
// could not be counted by who makes them nor from a mark on. Linux on x86_64; needs no codeexec.
#ifndef CODEEXEC_TESTS_FAULTS_TRACER_HPP
#define CODEEXEC_TESTS_FAULTS_TRACER_HPP

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "../helpers/support.hpp"
#include "region.hpp"

namespace faults {

// Who makes a call: the program, a child of it or a child of that, before they execute anything.
enum class Who : int { host, child, grandchild };

inline const char* name(Who who) {
  const char* const names[] = {"host", "child", "grandchild"};
  return names[static_cast<int>(who)];
}

// A system call that can fail, and how.
struct Kind {
  long number;
  const char* name;
  std::vector<int> errors;
  bool performed = false;  // it does its work and fails nevertheless
};

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

// A call of that number for a pipe, of which the kernel has other failures to tell.
constexpr long for_pipe = 1000000;

inline const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {SYS_open, "open", {EMFILE, ENFILE, ENOMEM, EACCES, EIO}},
      {SYS_openat, "openat", {EMFILE, ENFILE, ENOMEM, EACCES, EIO}},
      {SYS_openat2, "openat2", {EMFILE, ENFILE, ENOMEM, EACCES, ENOSYS, EPERM}},
      {SYS_read, "read", {EIO, EINTR}},
      {SYS_readv, "readv", {EIO, EINTR}},
      {SYS_pread64, "pread64", {EIO, EINTR}},
      {SYS_write, "write", {EIO, ENOSPC, EINTR}},
      {SYS_writev, "writev", {EIO, ENOSPC, EINTR}},
      {SYS_close, "close", {EIO, EINTR}, true},
      {SYS_close_range, "close_range", {ENOSYS, ENOMEM}},
      {SYS_pipe2, "pipe2", {EMFILE, ENFILE}},
      {SYS_dup, "dup", {EMFILE}},
      {SYS_dup2, "dup2", {EMFILE, EBUSY}},
      {SYS_dup3, "dup3", {EMFILE, EBUSY}},
      {SYS_fcntl, "fcntl", {EMFILE, EINVAL}},
      {SYS_eventfd2, "eventfd2", {EMFILE, ENFILE, ENOMEM}},
      {SYS_inotify_init1, "inotify_init1", {EMFILE, ENFILE, ENOMEM}},
      {SYS_inotify_add_watch, "inotify_add_watch", {ENOSPC, ENOMEM, EACCES}},
      {SYS_signalfd4, "signalfd4", {EMFILE, ENFILE, ENOMEM}},
      {SYS_pidfd_open, "pidfd_open", {EMFILE, ENFILE, ENOMEM, ENOSYS}},
      {SYS_pidfd_send_signal, "pidfd_send_signal", {ENOSYS, EINVAL}},
      {SYS_memfd_create, "memfd_create", {EMFILE, ENFILE, ENOMEM}},
      {SYS_clone, "clone", {EAGAIN, ENOMEM, EMFILE}},
      {SYS_clone3, "clone3", {EAGAIN, ENOMEM, EMFILE, ENOSYS}},
      {SYS_fork, "fork", {EAGAIN, ENOMEM}},
      {SYS_vfork, "vfork", {EAGAIN, ENOMEM}},
      {SYS_execve, "execve", {ENOMEM, EAGAIN, EACCES, EIO, ETXTBSY}},
      {SYS_wait4, "wait4", {EINTR}},
      {SYS_waitid, "waitid", {EINTR}},
      {SYS_poll, "poll", {ENOMEM, EINTR}},
      {SYS_ppoll, "ppoll", {ENOMEM, EINTR}},
      {SYS_chdir, "chdir", {EACCES, ENOENT, ENOMEM, EIO}},
      {SYS_fchdir, "fchdir", {EACCES, EIO}},
      {SYS_setsid, "setsid", {EPERM}},
      {SYS_setpgid, "setpgid", {EPERM, EACCES}},
      {SYS_prlimit64, "prlimit64", {EPERM}},
      {SYS_prctl, "prctl", {EINVAL, EPERM}},
      {SYS_seccomp, "seccomp", {ENOMEM, EINVAL, ENOSYS}},
      {SYS_landlock_create_ruleset, "landlock_create_ruleset", {EMFILE, ENOMEM, EOPNOTSUPP}},
      {SYS_landlock_add_rule, "landlock_add_rule", {ENOMEM, EINVAL}},
      {SYS_landlock_restrict_self, "landlock_restrict_self", {E2BIG, ENOMEM, EPERM}},
      {SYS_open_tree, "open_tree", {EPERM, ENOMEM}},
      {SYS_move_mount, "move_mount", {EPERM, ENOMEM}},
      {SYS_mount_setattr, "mount_setattr", {EPERM, ENOMEM}},
      {SYS_mount, "mount", {EPERM, ENOMEM}},
      {SYS_umount2, "umount2", {EPERM, EBUSY}},
      {SYS_unshare, "unshare", {EPERM, ENOSPC, ENOMEM}},
      {SYS_setns, "setns", {EPERM}},
      {SYS_capset, "capset", {EPERM}},
      {SYS_capget, "capget", {EPERM}},
      {SYS_setresuid, "setresuid", {EPERM, EAGAIN}},
      {SYS_setresgid, "setresgid", {EPERM}},
      {SYS_setgroups, "setgroups", {EPERM, ENOMEM}},
      {SYS_socket, "socket", {EMFILE, ENFILE, ENOMEM, EACCES}},
      {SYS_socketpair, "socketpair", {EMFILE, ENFILE, ENOMEM}},
      {SYS_bind, "bind", {EACCES, ENOMEM}},
      {SYS_connect, "connect", {EACCES, EINTR, ENOMEM}},
      {SYS_sendmsg, "sendmsg", {ENOMEM, EINTR}},
      {SYS_recvmsg, "recvmsg", {ENOMEM, EINTR}},
      {SYS_sendto, "sendto", {ENOMEM, EINTR}},
      {SYS_recvfrom, "recvfrom", {ENOMEM, EINTR}},
      {SYS_ioctl, "ioctl", {EPERM, EIO}},
      {SYS_mkdir, "mkdir", {EACCES, ENOSPC, EIO}},
      {SYS_mkdirat, "mkdirat", {EACCES, ENOSPC, EIO}},
      {SYS_unlink, "unlink", {EACCES, EIO}},
      {SYS_unlinkat, "unlinkat", {EACCES, EIO}},
      {SYS_rmdir, "rmdir", {EACCES, EIO}},
      {SYS_rename, "rename", {EACCES, ENOSPC, EIO}},
      {SYS_renameat, "renameat", {EACCES, ENOSPC, EIO}},
      {SYS_renameat2, "renameat2", {EACCES, ENOSPC, EINVAL, EIO}},
      {SYS_linkat, "linkat", {EPERM, ENOSPC, EIO}},
      {SYS_symlink, "symlink", {EACCES, ENOSPC, EIO}},
      {SYS_symlinkat, "symlinkat", {EACCES, ENOSPC, EIO}},
      {SYS_readlink, "readlink", {EACCES, EIO, ENOMEM}},
      {SYS_readlinkat, "readlinkat", {EACCES, EIO, ENOMEM}},
      {SYS_stat, "stat", {EACCES, EIO, ENOMEM}},
      {SYS_lstat, "lstat", {EACCES, EIO, ENOMEM}},
      {SYS_fstat, "fstat", {EIO, ENOMEM}},
      {SYS_newfstatat, "newfstatat", {EACCES, EIO, ENOMEM}},
      {SYS_statx, "statx", {EACCES, EIO, ENOMEM}},
      {SYS_statfs, "statfs", {EACCES, EIO}},
      {SYS_fstatfs, "fstatfs", {EIO, ENOMEM}},
      {SYS_access, "access", {EACCES, EIO}},
      {SYS_faccessat, "faccessat", {EACCES, EIO}},
      {SYS_faccessat2, "faccessat2", {EACCES, ENOSYS, EIO}},
      {SYS_getdents64, "getdents64", {EIO, ENOENT}},
      {SYS_getcwd, "getcwd", {ENOENT, ENOMEM}},
      {SYS_listen, "listen", {EADDRINUSE}},
      {SYS_getsockname, "getsockname", {ENOBUFS}},
      {SYS_truncate, "truncate", {EIO}},
      {SYS_keyctl, "keyctl", {ENOSYS}},
      {SYS_read + for_pipe, "read-pipe", {EIO, EINTR}},
      {SYS_write + for_pipe, "write-pipe", {ENOMEM, EINTR}},
      {SYS_lseek, "lseek", {EIO}},
      {SYS_fsync, "fsync", {EIO, ENOSPC, EINTR}},
      {SYS_fdatasync, "fdatasync", {EIO, ENOSPC, EINTR}},
      {SYS_ftruncate, "ftruncate", {EIO, EINTR}},
      {SYS_flock, "flock", {EINTR, ENOLCK}},
      {SYS_fchmod, "fchmod", {EPERM, EIO}},
      {SYS_fchmodat, "fchmodat", {EPERM, EIO}},
      {SYS_chmod, "chmod", {EPERM, EIO}},
      {SYS_fchown, "fchown", {EPERM, EIO}},
      {SYS_fchownat, "fchownat", {EPERM, EIO}},
      {SYS_utimensat, "utimensat", {EPERM, EIO}},
      {SYS_getrandom, "getrandom", {ENOSYS, EINTR}},
      {SYS_kill, "kill", {EPERM}},
      {SYS_madvise, "madvise", {EINVAL, EAGAIN}},
      {SYS_mmap, "mmap", {ENOMEM, EAGAIN}},
      {SYS_rt_sigtimedwait, "rt_sigtimedwait", {EINTR}},
      {SYS_nanosleep, "nanosleep", {EINTR}},
      {SYS_clock_nanosleep, "clock_nanosleep", {EINTR}},
  };
  return all;
}

inline const Kind* find_kind(long number) {
  for (const Kind& kind : kinds())
    if (kind.number == number) return &kind;
  return nullptr;
}

// Calls that cannot fail when they are given sound arguments, or that belong to the memory
// allocator, whose failure is std::bad_alloc and no affair of this test.
inline bool cannot_fail(long number) {
  static const std::vector<long> numbers = {SYS_rt_sigaction,
                                            SYS_rt_sigprocmask,
                                            SYS_rt_sigreturn,
                                            SYS_sigaltstack,
                                            SYS_getpid,
                                            SYS_gettid,
                                            SYS_getppid,
                                            SYS_getuid,
                                            SYS_geteuid,
                                            SYS_getgid,
                                            SYS_getegid,
                                            SYS_getresuid,
                                            SYS_getresgid,
                                            SYS_getgroups,
                                            SYS_getpgid,
                                            SYS_getpgrp,
                                            SYS_getsid,
                                            SYS_umask,
                                            SYS_uname,
                                            SYS_sysinfo,
                                            SYS_getrusage,
                                            SYS_times,
                                            SYS_brk,
                                            SYS_munmap,
                                            SYS_mprotect,
                                            SYS_mremap,
                                            SYS_futex,
                                            SYS_set_robust_list,
                                            SYS_rseq,
                                            SYS_set_tid_address,
                                            SYS_arch_prctl,
                                            SYS_sched_yield,
                                            SYS_sched_getaffinity,
                                            SYS_clock_gettime,
                                            SYS_gettimeofday,
                                            SYS_time,
                                            SYS_exit,
                                            SYS_exit_group,
                                            SYS_restart_syscall,
                                            SYS_tgkill,
                                            SYS_getpriority,
                                            SYS_setpriority,
                                            SYS_rt_sigpending,
                                            SYS_membarrier};
  for (const long known : numbers)
    if (known == number) return true;
  return false;
}

struct Fault {
  Who who;
  long number;
  int nth;  // from 1
  int error;
};

using Counts = std::map<std::pair<Who, long>, int>;

// What became of a program.
struct Trace {
  Counts calls = {};  // between the marks
  bool injected = false;
  bool executed = false;  // a program, between the marks
  bool hung = false;
  int status = 0;                      // as waitpid() tells it
  std::string report = {};             // what it wrote to its end
  std::vector<std::string> left = {};  // processes that outlived it
};

class Tracer {
 public:
  explicit Tracer(std::chrono::seconds patience) : patience_(patience) {
    // What the program leaves behind comes to this process.
    if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) support::fail("prctl", "subreaper");
    struct sigaction action {};
    action.sa_handler = [](int) {};  // it only interrupts
    ::sigaction(SIGALRM, &action, nullptr);
    const itimerval often = {{0, 100000}, {0, 100000}};
    ::setitimer(ITIMER_REAL, &often, nullptr);
  }

  // Runs the body in a fork of this program. `report` is what it returns.
  Trace run(const std::function<std::string()>& body, const Fault* fault) {
    fault_ = fault;
    trace_ = Trace();
    tracees_.clear();
    armed_ = false;
    done_ = false;
    int go[2];
    int report[2];
    if (::pipe(go) != 0 || ::pipe(report) != 0) support::fail("pipe", "");
    std::fflush(nullptr);
    host_ = ::fork();
    if (host_ < 0) support::fail("fork", "");
    if (host_ == 0) {
      ::close(go[1]);
      ::close(report[0]);
      be_host(body, go[0], report[1]);
    }
    ::close(go[0]);
    ::close(report[1]);
    constexpr long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                             PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    if (::ptrace(PTRACE_SEIZE, host_, 0, options) != 0) {
      const int error = errno;
      ::close(go[1]);
      ::kill(host_, SIGKILL);
      ::waitpid(host_, nullptr, 0);
      errno = error;
      support::fail("ptrace", "a process of its own");
    }
    tracees_[host_].who = Who::host;
    ::close(go[1]);
    follow();
    trace_.report = read_all(report[0]);
    return trace_;
  }

  // Whether this system lets a process be traced at all.
  static bool permitted() {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::pause();
      ::_exit(0);
    }
    const bool seized = ::ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_EXITKILL) == 0;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, __WALL);
    return seized;
  }

 private:
  using Clock = std::chrono::steady_clock;

  struct Tracee {
    Who who = Who::host;
    bool known = false;    // who it is
    bool waiting = false;  // stopped until that is known
    bool failing = false;  // in the call that is to fail
  };

  [[noreturn]] static void be_host(const std::function<std::string()>& body, int go, int report) {
    const itimerval never = {};
    ::setitimer(ITIMER_REAL, &never, nullptr);
    ::signal(SIGALRM, SIG_DFL);
    ::prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
    char byte = 0;
    (void)!::read(go, &byte, 1);  // its end is the sign
    ::close(go);
    const std::string text = body();
    std::size_t at = 0;
    while (at < text.size()) {
      const ssize_t size = ::write(report, text.data() + at, text.size() - at);
      if (size <= 0) break;
      at += static_cast<std::size_t>(size);
    }
    ::_exit(0);
  }

  static std::string read_all(int fd) {
    std::string text;
    char buffer[4096];
    ssize_t size = 0;
    // Who has outlived the program may hold the pipe.
    ::fcntl(fd, F_SETFL, O_NONBLOCK);
    while ((size = ::read(fd, buffer, sizeof buffer)) > 0)
      text.append(buffer, static_cast<std::size_t>(size));
    ::close(fd);
    return text;
  }

  // Until all have ended.
  void follow() {
    Clock::time_point deadline = Clock::now() + patience_;
    bool host_ended = false;
    for (;;) {
      int status = 0;
      const pid_t pid = ::waitpid(-1, &status, __WALL);
      if (pid < 0 && errno == ECHILD) return;
      if (pid < 0 && errno != EINTR) support::fail("waitpid", "");
      if (pid > 0) take(pid, status);
      if (pid == host_ && (WIFEXITED(status) || WIFSIGNALED(status))) {
        trace_.status = status;
        host_ended = true;
        deadline = Clock::now() + std::chrono::seconds(3);
      }
      if (Clock::now() < deadline) continue;
      const std::vector<pid_t> left = children();
      if (host_ended) {
        for (const pid_t child : left) trace_.left.push_back(description(child));
      } else {
        trace_.hung = true;
        trace_.left.push_back(description(host_));
      }
      for (const pid_t child : left) ::kill(child, SIGKILL);
      deadline = Clock::now() + std::chrono::seconds(1);
    }
  }

  void take(pid_t pid, int status) {
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      tracees_.erase(pid);
      return;
    }
    if (!WIFSTOPPED(status)) return;
    Tracee& tracee = tracees_[pid];
    if (pid == host_) tracee.known = true;
    const int number = WSTOPSIG(status);
    const int event = status >> 16;
    if (!tracee.known) {
      // Its first stop, before its maker's stop told of it.
      tracee.waiting = true;
      return;
    }
    switch (event) {
      case PTRACE_EVENT_CLONE:
      case PTRACE_EVENT_FORK:
      case PTRACE_EVENT_VFORK: {
        unsigned long made = 0;
        ::ptrace(PTRACE_GETEVENTMSG, pid, 0, &made);
        introduce(static_cast<pid_t>(made), pid, tracee.who);
        return resume(pid, 0);
      }
      case PTRACE_EVENT_EXEC:
        // What a command does is its own affair.
        trace_.executed |= armed_;
        ::ptrace(PTRACE_DETACH, pid, 0, 0);
        tracees_.erase(pid);
        return;
      case PTRACE_EVENT_STOP:
        if (number == SIGTRAP) return resume(pid, 0);
        ::ptrace(PTRACE_LISTEN, pid, 0, 0);
        return;
      default:
        break;
    }
    if (number == (SIGTRAP | 0x80)) {
      system_call(pid, tracee);
      return resume(pid, 0);
    }
    if (number == mark && pid == host_ && !done_) {
      done_ = armed_;
      armed_ = !armed_;
      if (armed_)
        for (const auto& other : tracees_)
          if (other.first != pid) ::ptrace(PTRACE_INTERRUPT, other.first, 0, 0);
      return resume(pid, 0);
    }
    resume(pid, event == 0 ? number : 0);
  }

  // A thread of its maker, or a child of it.
  void introduce(pid_t pid, pid_t maker, Who who) {
    Tracee& made = tracees_[pid];
    made.known = true;
    made.who = who;
    if (group_of(pid) != group_of(maker))
      made.who = who == Who::host ? Who::child : Who::grandchild;
    if (!made.waiting) return;
    made.waiting = false;
    resume(pid, 0);
  }

  static std::string group_of(pid_t pid) {
    const std::string path = "/proc/" + std::to_string(pid) + "/status";
    if (!support::exists(path)) return std::to_string(pid);
    const std::string text = support::read_file(path);
    const std::size_t at = text.find("\nTgid:");
    return text.substr(at + 6, text.find('\n', at + 6) - at - 6);
  }

  static std::string target_of(pid_t pid, int fd) {
    char target[64] = "";
    const std::string link = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
    return ::readlink(link.c_str(), target, sizeof target - 1) > 0 ? target : "";
  }

  // Stops it at its next call only if that may be the one that is to fail.
  void resume(pid_t pid, int signal) {
    const Tracee& tracee = tracees_[pid];
    const bool counts = armed_ && (!fault_ || (!trace_.injected && tracee.who == fault_->who));
    const auto how = counts || tracee.failing ? PTRACE_SYSCALL : PTRACE_CONT;
    ::ptrace(how, pid, 0, static_cast<long>(signal));
  }

  // Before a call and after it.
  void system_call(pid_t pid, Tracee& tracee) {
    __ptrace_syscall_info info = {};
    if (::ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info) <= 0) return;
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
      const auto number = static_cast<long>(info.entry.nr);
      if (!armed_ || !can_fail(number, info.entry.args)) return;
      const bool transfers = number == SYS_read || number == SYS_write;
      const std::string file =
          transfers ? target_of(pid, static_cast<int>(info.entry.args[0])) : std::string();
      // An event cannot fail.
      if (support::begins(file, "anon_inode:")) return;
      const bool is_pipe = support::begins(file, "pipe:");
      const long kind_number = is_pipe ? number + for_pipe : number;
      const int count = ++trace_.calls[{tracee.who, kind_number}];
      if (!fault_ || trace_.injected || fault_->who != tracee.who ||
          fault_->number != kind_number || fault_->nth != count)
        return;
      trace_.injected = tracee.failing = true;
      const Kind* const kind = find_kind(kind_number);
      // Another call in its place, which any filter allows.
      if (!kind || !kind->performed) set_register(pid, &user_regs_struct::orig_rax, SYS_getpid);
    } else if (info.op == PTRACE_SYSCALL_INFO_EXIT && tracee.failing) {
      tracee.failing = false;
      const auto result = -static_cast<long long>(fault_->error);
      set_register(pid, &user_regs_struct::rax, static_cast<unsigned long long>(result));
    }
  }

  template <class Register>
  static void set_register(pid_t pid, Register which, unsigned long long value) {
    user_regs_struct registers = {};
    if (::ptrace(PTRACE_GETREGS, pid, 0, &registers) != 0) return;
    registers.*which = value;
    ::ptrace(PTRACE_SETREGS, pid, 0, &registers);
  }

  template <class Arguments>
  static bool can_fail(long number, const Arguments& arguments) {
    if (cannot_fail(number)) return false;
    switch (number) {
      case SYS_fcntl:
        return arguments[1] == F_DUPFD || arguments[1] == F_DUPFD_CLOEXEC;
      case SYS_mmap:
        // Stacks; the rest is the allocator's.
        return (arguments[3] & MAP_STACK) != 0;
      case SYS_prlimit64:
        return arguments[2] != 0;
      case SYS_prctl:
        // A name cannot be refused.
        return arguments[0] != PR_SET_NAME && arguments[0] != PR_GET_DUMPABLE;
      case SYS_madvise:
        return true;
      default:
        return true;
    }
  }

  static std::vector<pid_t> children() {
    std::vector<pid_t> pids;
    const std::string text = support::read_file("/proc/thread-self/children");
    for (std::size_t at = 0; at < text.size(); at = text.find(' ', at) + 1)
      pids.push_back(static_cast<pid_t>(std::atoi(text.c_str() + at)));
    return pids;
  }

  static std::string description(pid_t pid) {
    const std::string base = "/proc/" + std::to_string(pid);
    if (!support::exists(base + "/cmdline")) return "a process";
    std::string text = support::read_file(base + "/cmdline");
    for (char& c : text)
      if (c == '\0') c = ' ';
    return text.substr(0, 80) + "(" + support::read_file(base + "/syscall").substr(0, 40) + ")";
  }

  std::chrono::seconds patience_;
  const Fault* fault_ = nullptr;
  Trace trace_ = {};
  std::map<pid_t, Tracee> tracees_ = {};
  pid_t host_ = -1;
  bool armed_ = false;
  bool done_ = false;
};

}  // namespace faults

#endif  // CODEEXEC_TESTS_FAULTS_TRACER_HPP
