// Other processes: their signals, memory, descriptors, limits and namespaces.
#include <fcntl.h>
#include <linux/perf_event.h>
#include <mqueue.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "attack.hpp"

namespace attacks {
namespace {

// Who stands between us and the runner, outermost first: the server and its supervisor, but not the
// shells of the command itself.
int ancestors(const Arguments& a) {
  const int end = number(a[0]);
  std::string found;
  int pid = ::getppid();
  for (int i = 0; i < 20 && pid > 1 && pid != end; ++i) {
    const int fd = ::open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY);
    char text[1024];
    const ssize_t size = fd < 0 ? -1 : ::read(fd, text, sizeof text - 1);
    ::close(fd);
    if (size <= 0) break;
    text[size] = 0;
    const char* rest = std::strrchr(text, ')');
    if (!rest) break;
    if (!std::strstr(text, "(sh)")) found = std::to_string(pid) + "\n" + found;
    pid = std::atoi(rest + 4);
  }
  say(found);
  return 0;
}

int send_signal(const Arguments& a) {
  const std::string& how = a[0];
  const int pid = number(a[1]);
  const int signal = number(a[2]);
  siginfo_t info;
  std::memset(&info, 0, sizeof info);
  info.si_code = SI_QUEUE;
  info.si_pid = ::getpid();
  info.si_uid = ::getuid();
  long result = -1;
  if (how == "kill") result = ::kill(pid, signal);
  if (how == "group") result = ::kill(-pid, signal);
  if (how == "tkill") result = raw(SYS_tkill, pid, signal);
  if (how == "tgkill") result = raw(SYS_tgkill, pid, pid, signal);
  if (how == "queue") result = raw(SYS_rt_sigqueueinfo, pid, signal, &info);
  if (how == "tgqueue") result = raw(SYS_rt_tgsigqueueinfo, pid, pid, signal, &info);
  if (how == "pidfd") {
    const long fd = raw(sys_pidfd_open, pid, 0U);
    if (fd < 0) return tell("pidfd_open", -1);
    result = raw(sys_pidfd_send_signal, fd, signal, 0L, 0U);
  }
  return tell(how, result);
}

// SIGIO, SIGURG and others go to whom F_SETOWN names.
int signal_by_owner(const Arguments& a) {
  const int pid = number(a[1]);
  int pair[2];
  if (a[0] == "pipe") {
    if (::pipe(pair) != 0) return tell("pipe", -1);
  } else if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) {
    return tell("socketpair", -1);
  }
  if (::fcntl(pair[0], F_SETOWN, pid) != 0) return tell("F_SETOWN", -1);
  ::fcntl(pair[0], F_SETSIG, SIGTERM);
  if (::fcntl(pair[0], F_SETFL, O_ASYNC | O_NONBLOCK) != 0) return tell("O_ASYNC", -1);
  return tell("write", ::write(pair[1], "x", 1));
}

int lease_signal(const Arguments& a) {
  const int fd = ::open("lease", O_CREAT | O_RDONLY, 0600);
  if (::fcntl(fd, F_SETLEASE, F_WRLCK) != 0) return tell("F_SETLEASE", -1);
  ::fcntl(fd, F_SETSIG, SIGTERM);
  if (::fcntl(fd, F_SETOWN, number(a[0])) != 0) return tell("F_SETOWN", -1);
  return tell("break", ::open("lease", O_RDONLY | O_NONBLOCK) < 0 && errno != EWOULDBLOCK ? -1 : 0);
}

int trace(const Arguments& a) {
  const int pid = number(a[0]);
  const bool seize = a[2] == "seize";
  if (raw(SYS_ptrace, seize ? PTRACE_SEIZE : PTRACE_ATTACH, pid, 0L, 0L) != 0)
    return tell("ptrace", -1);
  if (seize && raw(SYS_ptrace, PTRACE_INTERRUPT, pid, 0L, 0L) != 0) return tell("interrupt", -1);
  ::waitpid(pid, nullptr, __WALL);
  const long result = raw(SYS_ptrace, PTRACE_POKEDATA, pid, address(a[1]), 0x4b4341545441L);
  raw(SYS_ptrace, PTRACE_DETACH, pid, 0L, 0L);
  return tell("poke", result);
}

int memory_of(const Arguments& a, bool writing, bool by_file) {
  const pid_t pid = number(a[0]);
  char bytes[64] = "ATTACK";
  const std::size_t length = writing ? 6 : sizeof bytes;
  ssize_t size = -1;
  if (by_file) {
    const int fd =
        ::open(("/proc/" + std::to_string(pid) + "/mem").c_str(), writing ? O_RDWR : O_RDONLY);
    if (fd < 0) return tell("open", -1);
    const off_t offset = static_cast<off_t>(address(a[1]));
    size = writing ? ::pwrite(fd, bytes, length, offset) : ::pread(fd, bytes, length, offset);
  } else {
    iovec mine = {bytes, length};
    // NOLINTNEXTLINE: an address in another process
    iovec theirs = {reinterpret_cast<void*>(address(a[1])), length};
    size = writing ? ::process_vm_writev(pid, &mine, 1, &theirs, 1, 0)
                   : ::process_vm_readv(pid, &mine, 1, &theirs, 1, 0);
  }
  if (size > 0 && !writing) say(std::string(bytes, static_cast<std::size_t>(size)));
  return tell("memory", size);
}
int memory_read(const Arguments& a) { return memory_of(a, false, false); }
int memory_write(const Arguments& a) { return memory_of(a, true, false); }
int memory_file_read(const Arguments& a) { return memory_of(a, false, true); }
int memory_file_write(const Arguments& a) { return memory_of(a, true, true); }

// Every readable region that is private to it: what its heap and stack hold.
int memory_dump(const Arguments& a) {
  std::FILE* maps = std::fopen(("/proc/" + a[0] + "/maps").c_str(), "r");
  const int memory = ::open(("/proc/" + a[0] + "/mem").c_str(), O_RDONLY);
  if (!maps || memory < 0) return tell("open", -1);
  char line[512];
  std::string bytes(1 << 16, 0);
  while (std::fgets(line, sizeof line, maps)) {
    unsigned long begin = 0, end = 0;
    char rights[8];
    if (std::sscanf(line, "%lx-%lx %7s", &begin, &end, rights) != 3 || rights[1] != 'w') continue;
    end = std::min(end, begin + (1UL << 24));
    for (; begin < end; begin += bytes.size()) {
      const ssize_t size = ::pread(memory, bytes.data(), std::min(bytes.size(), end - begin),
                                   static_cast<off_t>(begin));
      if (size <= 0) break;
      const std::string found(bytes.data(), static_cast<std::size_t>(size));
      const std::size_t at = found.find("SECRET=");
      if (at != std::string::npos) say(found.substr(at, 64) + "\n");
    }
  }
  return 0;
}

int take_descriptor(const Arguments& a) {
  const long pidfd = raw(sys_pidfd_open, number(a[0]), 0U);
  if (pidfd < 0) return tell("pidfd_open", -1);
  const long fd = raw(sys_pidfd_getfd, pidfd, number(a[1]), 0U);
  if (fd < 0) return tell("pidfd_getfd", -1);
  ::lseek(static_cast<int>(fd), 0, SEEK_SET);
  return show_and_tell("pidfd_getfd", static_cast<int>(fd));
}

int compare(const Arguments& a) {
  return tell("kcmp", raw(SYS_kcmp, ::getpid(), number(a[0]), 0, 0L, 0L));
}

int set_limit(const Arguments& a) {
  const rlimit limit = {77, 77};
  return tell("prlimit", ::prlimit(number(a[0]), RLIMIT_NOFILE, &limit, nullptr));
}

int get_limit(const Arguments& a) {
  rlimit limit;
  return tell("prlimit", ::prlimit(number(a[0]), RLIMIT_NOFILE, nullptr, &limit));
}

int set_affinity(const Arguments& a) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(0, &set);
  return tell("sched_setaffinity", ::sched_setaffinity(number(a[0]), sizeof set, &set));
}

int set_priority(const Arguments& a) {
  return tell("setpriority", ::setpriority(PRIO_PROCESS, static_cast<id_t>(number(a[0])), 7));
}

int advise(const Arguments& a) {
  const long pidfd = raw(sys_pidfd_open, number(a[0]), 0U);
  if (pidfd < 0) return tell("pidfd_open", -1);
  // NOLINTNEXTLINE: an address in another process
  iovec theirs = {reinterpret_cast<void*>(address(a[1]) & ~4095UL), 4096};
  return tell("process_madvise", raw(sys_process_madvise, pidfd, &theirs, 1UL, 20 /* cold */, 0U));
}

int perf_of(const Arguments& a) {
  perf_event_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.size = sizeof attributes;
  attributes.config = PERF_COUNT_SW_TASK_CLOCK;
  attributes.exclude_kernel = 1;
  return tell("perf_event_open", raw(SYS_perf_event_open, &attributes, number(a[0]), -1, -1, 0UL));
}

int enter_namespace(const Arguments& a) {
  const int fd = ::open(("/proc/" + a[0] + "/ns/" + a[1]).c_str(), O_RDONLY);
  if (fd < 0) return tell("open", -1);
  return tell("setns", ::setns(fd, 0));
}

int enter_by_pidfd(const Arguments& a) {
  const long fd = raw(sys_pidfd_open, number(a[0]), 0U);
  if (fd < 0) return tell("pidfd_open", -1);
  return tell("setns", ::setns(static_cast<int>(fd), CLONE_NEWNET));
}

int shared_read(const Arguments& a) {
  const void* memory = ::shmat(number(a[0]), nullptr, SHM_RDONLY);
  if (memory == reinterpret_cast<const void*>(-1)) return tell("shmat", -1);
  say(std::string(static_cast<const char*>(memory), 64));
  return 0;
}

int queue_read(const Arguments& a) {
  const mqd_t queue = ::mq_open(a[0].c_str(), O_RDONLY | O_NONBLOCK);
  if (queue < 0) return tell("mq_open", -1);
  char bytes[8192];
  const ssize_t size = ::mq_receive(queue, bytes, sizeof bytes, nullptr);
  if (size > 0) say(std::string(bytes, static_cast<std::size_t>(size)));
  return tell("mq_receive", size);
}

// What the runner's victims are made with: a segment, or a queue, that holds a secret.
int make_shared(const Arguments& a) {
  const int id = ::shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
  if (id < 0) return unavailable("shmget");
  void* memory = ::shmat(id, nullptr, 0);
  if (memory == reinterpret_cast<void*>(-1)) return unavailable("shmat");
  std::memcpy(memory, a[0].c_str(), std::min<std::size_t>(a[0].size() + 1, 4096));
  say(std::to_string(id) + "\n");
  return 0;
}
int remove_shared(const Arguments& a) { return ::shmctl(number(a[0]), IPC_RMID, nullptr); }
int make_queue(const Arguments& a) {
  const mqd_t queue = ::mq_open(a[0].c_str(), O_CREAT | O_RDWR, 0600, nullptr);
  if (queue < 0) return unavailable("mq_open");
  return ::mq_send(queue, a[1].c_str(), a[1].size(), 0);
}
int remove_queue(const Arguments& a) { return ::mq_unlink(a[0].c_str()); }

}  // namespace

Verbs process_verbs() {
  return {
      {"ancestors", 1, ancestors},
      {"signal", 3, send_signal},
      {"owner", 2, signal_by_owner},
      {"lease", 1, lease_signal},
      {"trace", 3, trace},
      {"memory-read", 2, memory_read},
      {"memory-write", 2, memory_write},
      {"memory-file-read", 2, memory_file_read},
      {"memory-file-write", 2, memory_file_write},
      {"memory-dump", 1, memory_dump},
      {"take-descriptor", 2, take_descriptor},
      {"compare", 1, compare},
      {"set-limit", 1, set_limit},
      {"get-limit", 1, get_limit},
      {"set-affinity", 1, set_affinity},
      {"set-priority", 1, set_priority},
      {"advise", 2, advise},
      {"perf", 1, perf_of},
      {"enter", 2, enter_namespace},
      {"enter-pidfd", 1, enter_by_pidfd},
      {"shared-read", 1, shared_read},
      {"queue-read", 1, queue_read},
      {"make-shared", 1, make_shared},
      {"remove-shared", 1, remove_shared},
      {"make-queue", 2, make_queue},
      {"remove-queue", 1, remove_queue},
  };
}

}  // namespace attacks
