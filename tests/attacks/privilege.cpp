// Privilege: capabilities, terminals, and system calls that a command must not have.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "ring.hpp"

namespace attacks {
namespace {

int identity(const Arguments&) {
  say("euid " + std::to_string(::geteuid()) + "\n");
  std::FILE* file = std::fopen("/proc/self/status", "r");
  char line[256];
  while (file && std::fgets(line, sizeof line, file))
    if (std::strncmp(line, "Cap", 3) == 0 || std::strncmp(line, "NoNewPrivs", 10) == 0) say(line);
  return 0;
}

int raise_capabilities(const Arguments&) {
  struct {
    std::uint32_t version;
    int pid;
  } header = {0x20080522, 0};
  struct {
    std::uint32_t effective, permitted, inheritable;
  } data[2] = {{~0U, ~0U, ~0U}, {~0U, ~0U, ~0U}};
  // All at once is more than the permitted set holds for most, so one after another, too.
  long result = raw(SYS_capset, &header, data);
  for (unsigned bit = 0; bit < 32 && result != 0; ++bit) {
    data[0] = {1U << bit, 1U << bit, 0};
    data[1] = {0, 0, 0};
    result = raw(SYS_capset, &header, data);
  }
  return tell("capset", result);
}

int open_terminal(int& slave) {
  const int master = ::open("/dev/ptmx", O_RDWR | O_NOCTTY);
  if (master < 0) return -1;
  int unlock = 0, index = 0;
  if (::ioctl(master, TIOCSPTLCK, &unlock) != 0 || ::ioctl(master, TIOCGPTN, &index) != 0)
    return -1;
  slave = ::open(("/dev/pts/" + std::to_string(index)).c_str(), O_RDWR | O_NOCTTY);
  return slave < 0 ? -1 : master;
}

// Characters pushed into a terminal are what its shell reads next. The terminal is our own.
int push_characters(const Arguments& a) {
  const pid_t child = ::fork();
  if (child == 0) {
    int slave = -1;
    ::setsid();
    if (open_terminal(slave) < 0) std::_Exit(unavailable("/dev/ptmx"));
    ::ioctl(slave, TIOCSCTTY, 0);
    const unsigned long request = address(a[0]);
    char character = request == 0x541c ? 2 : 'x';
    std::_Exit(tell("ioctl", raw(SYS_ioctl, slave, request, &character)));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

long clone_probe(unsigned long flags) {
  const long pid = raw(SYS_clone, flags | static_cast<unsigned long>(SIGCHLD), 0L, 0L, 0L, 0L);
  if (pid == 0) std::_Exit(0);
  if (pid > 0) ::waitpid(static_cast<pid_t>(pid), nullptr, 0);
  return pid;
}

long clone3_probe(std::uint64_t flags) {
  std::uint64_t arguments[8] = {flags, 0, 0, 0, SIGCHLD, 0, 0, 0};
  const long pid = raw(sys_clone3, arguments, sizeof arguments);
  if (pid == 0) std::_Exit(0);
  if (pid > 0) ::waitpid(static_cast<pid_t>(pid), nullptr, 0);
  return pid;
}

// One system call each, with arguments that are wrong wherever a success could change anything.
// In a process of its own, whose namespaces and root directory nobody needs.
long call(const std::string& name) {
  if (name == "unshare-user") return raw(SYS_unshare, CLONE_NEWUSER);
  if (name == "unshare-mount") return raw(SYS_unshare, CLONE_NEWNS);
  if (name == "unshare-net") return raw(SYS_unshare, CLONE_NEWNET);
  if (name == "unshare-pid") return raw(SYS_unshare, CLONE_NEWPID);
  if (name == "unshare-ipc") return raw(SYS_unshare, CLONE_NEWIPC);
  if (name == "unshare-uts") return raw(SYS_unshare, CLONE_NEWUTS);
  if (name == "unshare-cgroup") return raw(SYS_unshare, CLONE_NEWCGROUP);
  if (name == "unshare-time") return raw(SYS_unshare, 0x80);
  if (name == "unshare-user-high") return raw(SYS_unshare, 0x7f00000000L | CLONE_NEWUSER);
  if (name == "clone-user") return clone_probe(CLONE_NEWUSER);
  if (name == "clone-user-net") return clone_probe(CLONE_NEWUSER | CLONE_NEWNET);
  if (name == "clone-pid") return clone_probe(CLONE_NEWPID);
  if (name == "clone3-user") return clone3_probe(CLONE_NEWUSER);
  if (name == "clone3-net") return clone3_probe(CLONE_NEWNET);
  if (name == "chroot") return raw(SYS_chroot, ".");
  if (name == "pivot_root") return raw(SYS_pivot_root, "no-such-directory", "no-such-directory");
  if (name == "mount") return raw(SYS_mount, "none", ".", "no-such-file-system", 0L, 0L);
  if (name == "umount2") return raw(SYS_umount2, ".", MNT_DETACH);
  if (name == "fsopen") return raw(sys_fsopen, "tmpfs", 0U);
  if (name == "open_tree") return raw(sys_open_tree, AT_FDCWD, ".", 1U /* a copy */);
  if (name == "move_mount") return raw(sys_move_mount, -1, "", -1, "", 0x44U);
  if (name == "mount_setattr") return raw(sys_mount_setattr, -1, "", 0x1000U, "", 0UL);
  if (name == "swapon") return raw(SYS_swapon, "attack.sh", 0);
  if (name == "swapoff") return raw(SYS_swapoff, "attack.sh");
  if (name == "reboot") return raw(SYS_reboot, 1, 2, 3, 0L);
  if (name == "kexec_load") return raw(SYS_kexec_load, 0UL, 0UL, 0L, 0xffffUL);
  if (name == "init_module") return raw(SYS_init_module, "x", 1UL, "");
  if (name == "finit_module") return raw(SYS_finit_module, -1, "", 0);
  if (name == "delete_module") return raw(SYS_delete_module, "no_such_module", O_NONBLOCK);
  if (name == "settimeofday") {
    const timeval time = {0, 2000000};
    return raw(SYS_settimeofday, &time, 0L);
  }
  if (name == "clock_settime") {
    const timespec time = {0, 0};
    return raw(SYS_clock_settime, CLOCK_MONOTONIC, &time);
  }
  if (name == "sethostname") return raw(SYS_sethostname, "x", -1);
  if (name == "setdomainname") return raw(SYS_setdomainname, "x", -1);
  if (name == "syslog") return raw(SYS_syslog, 3 /* read all */, "", 0);
  if (name == "acct") return raw(SYS_acct, "no-such-file");
  if (name == "quotactl") return raw(SYS_quotactl, 0x7fff0000, "no-such-device", 0, 0L);
  if (name == "quotactl_fd") return raw(sys_quotactl_fd, -1, 0U, 0, 0L);
  if (name == "add_key") return raw(SYS_add_key, "user", "codeexec-attack", "x", 1UL, -3);
  if (name == "request_key") return raw(SYS_request_key, "user", "codeexec-attack", 0L, -3);
  if (name == "keyctl") return raw(SYS_keyctl, 0 /* get id */, -3, 1);
  if (name == "io_uring_setup") {
    RingParameters parameters;
    std::memset(&parameters, 0, sizeof parameters);
    return raw(sys_io_uring_setup, 2U, &parameters);
  }
  if (name == "bpf") {
    std::uint32_t map[32] = {2 /* array */, 4, 4, 1};
    return raw(SYS_bpf, 0 /* create a map */, map, sizeof map);
  }
  if (name == "userfaultfd") return raw(SYS_userfaultfd, 1 /* user mode only */);
  if (name == "fanotify_init") return raw(SYS_fanotify_init, 0x200 /* ids */, O_RDONLY);
  if (name == "process_mrelease") return raw(sys_process_mrelease, -1, 0U);
  if (name == "setuid") return raw(SYS_setuid, 54321);
  if (name == "setgid") return raw(SYS_setgid, 54321);
  if (name == "setgroups") {
    const gid_t group = 54321;
    return raw(SYS_setgroups, 1, &group);
  }
  if (name == "chown") return ::chown("attack.sh", 54321, 54321);
  if (name == "memlock") {
    const rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    return ::setrlimit(RLIMIT_MEMLOCK, &limit);
  }
  if (name == "nice") return ::setpriority(PRIO_PROCESS, 0, -5);
  if (name == "realtime") {
    sched_param parameter = {};
    parameter.sched_priority = 1;
    return ::sched_setscheduler(0, SCHED_FIFO, &parameter);
  }
  if (name == "ambient") return ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 1, 0, 0);
  if (name == "securebits") return ::prctl(PR_SET_SECUREBITS, 0, 0, 0, 0);
#if defined(__x86_64__)
  if (name == "ioperm") return raw(SYS_ioperm, 0x80UL, 1UL, 1);
  if (name == "iopl") return raw(SYS_iopl, 3U);
  if (name == "modify_ldt") {
    char table[16];
    return raw(SYS_modify_ldt, 0, table, sizeof table);
  }
#endif
  errno = ENOSYS;
  return -1;
}

int probe(const Arguments& a) {
  const pid_t child = ::fork();
  if (child == 0) std::_Exit(tell(a[0], call(a[0])));
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

// A second filter that allows everything cannot weaken the first.
int filter_again(const Arguments& a) {
  sock_filter allow = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
  const sock_fprog program = {1, &allow};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0U, &program) != 0)
    say("the filter was not installed\n");
  return probe(a);
}

// Nor can a second ruleset that grants everything.
int grant_again(const Arguments& a) {
  const std::uint64_t handled[1] = {0x7fff};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const long ruleset = raw(sys_landlock_create_ruleset, handled, sizeof handled, 0U);
  struct {
    std::uint64_t access;
    std::int32_t fd;
  } __attribute__((packed)) grant = {0x7fff, ::open("/", O_PATH)};
  if (ruleset >= 0) raw(sys_landlock_add_rule, ruleset, 1, &grant, 0U);
  if (ruleset >= 0) raw(sys_landlock_restrict_self, ruleset, 0U);
  return write_and_tell("open", ::open(a[0].c_str(), O_WRONLY | O_APPEND));
}

}  // namespace

Verbs privilege_verbs() {
  return {
      {"identity", 0, identity},         {"raise-capabilities", 0, raise_capabilities},
      {"push", 1, push_characters},      {"probe", 1, probe},
      {"filter-again", 1, filter_again}, {"grant-again", 1, grant_again},
  };
}

}  // namespace attacks
