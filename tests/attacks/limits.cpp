// Limits: more processes, memory, files and time than is granted.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "attack.hpp"

namespace attacks {
namespace {

// That many processes at once, as far as they can be had.
int processes(const Arguments& a) {
  std::vector<pid_t> made;
  for (int i = 0; i < number(a[0]); ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) wait_for_the_end();
    if (pid < 0) break;
    made.push_back(pid);
  }
  say("processes " + std::to_string(made.size()) + "\n");
  for (const pid_t pid : made) ::kill(pid, SIGKILL);
  for (const pid_t pid : made) ::waitpid(pid, nullptr, 0);
  return 0;
}

bool fill(std::size_t megabytes) {
  const std::size_t size = megabytes << 20;
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  auto* bytes = static_cast<volatile char*>(memory);
  for (std::size_t at = 0; at < size; at += 4096) bytes[at] = 1;
  return true;
}

int memory(const Arguments& a) {
  if (!fill(static_cast<std::size_t>(number(a[0])))) return tell("mmap", -1);
  say("filled\n");
  return 0;
}

// The memory of many small processes. Those count that still have it when the last one has filled
// its own: one may be killed for the memory of the next.
int memory_of_many(const Arguments& a) {
  int ready[2], go[2];
  if (::pipe(ready) != 0 || ::pipe(go) != 0) return tell("pipe", -1);
  sigset_t child;
  ::sigemptyset(&child);
  ::sigaddset(&child, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &child, nullptr);
  const int ended = ::signalfd(-1, &child, SFD_CLOEXEC);
  if (ended < 0) return tell("signalfd", -1);
  const int count = number(a[0]);
  for (int i = 0; i < count; ++i) {
    const pid_t pid = ::fork();
    if (pid < 0) return tell("fork", -1);
    if (pid > 0) continue;
    ::close(go[1]);
    if (!fill(static_cast<std::size_t>(number(a[1])))) std::_Exit(1);
    char byte = 0;
    if (::write(ready[1], "x", 1) == 1 && ::read(go[0], &byte, 1) != 0) std::_Exit(1);
    std::_Exit(0);
  }
  ::close(ready[1]);
  // One that was killed is not heard of: its end is waited for, too.
  pollfd wanted[2] = {{ready[0], POLLIN, 0}, {ended, POLLIN, 0}};
  char byte = 0;
  for (int heard = 0; heard < count; ++heard) {
    while (::poll(wanted, 2, -1) < 0) {
    }
    if (wanted[1].revents != 0 || ::read(ready[0], &byte, 1) != 1) break;
  }
  ::close(go[1]);
  int filled = 0;
  for (int status = 0; ::wait(&status) > 0;)
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) ++filled;
  say("filled " + std::to_string(filled) + "\n");
  return 0;
}

// A file that is nowhere but in memory, and so is no data of any process.
int memory_file(const Arguments& a) {
  const int fd = static_cast<int>(raw(SYS_memfd_create, "attack", 0U));
  const std::string block(1 << 20, 'x');
  for (int i = 0; i < number(a[0]); ++i)
    if (::write(fd, block.data(), block.size()) < 0) return tell("write", -1);
  say("filled\n");
  return 0;
}

int reserve(const Arguments& a) {
  const std::size_t size = static_cast<std::size_t>(number(a[0])) << 20;
  void* memory =
      ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return tell("mmap", memory == MAP_FAILED ? -1 : 0);
}

// Works for that many milliseconds of processor time.
int spin(const Arguments& a) {
  const long wanted = number(a[0]);
  for (;;) {
    timespec used;
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    if (used.tv_sec * 1000 + used.tv_nsec / 1000000 >= wanted) break;
  }
  say("spun\n");
  return 0;
}

int descriptors(const Arguments& a) {
  int count = 0;
  while (count < number(a[0]) && ::open("/dev/null", O_RDONLY) >= 0) ++count;
  say("descriptors " + std::to_string(count) + "\n");
  return 0;
}

int big_file(const Arguments& a) {
  ::signal(SIGXFSZ, SIG_IGN);
  const int fd = ::open("big", O_CREAT | O_WRONLY, 0600);
  const std::string block(1 << 20, 'x');
  for (int i = 0; i < number(a[0]); ++i)
    if (::write(fd, block.data(), block.size()) != static_cast<ssize_t>(block.size()))
      return tell("write", -1);
  say("written\n");
  return 0;
}

// Many files, then time for whoever watches the disk.
int many_files(const Arguments& a) {
  const std::string block(1 << 20, 'x');
  for (int i = 0; i < number(a[0]); ++i) {
    const int fd = ::open(("f" + std::to_string(i)).c_str(), O_CREAT | O_WRONLY, 0600);
    if (::write(fd, block.data(), block.size()) < 0) return tell("write", -1);
    ::close(fd);
  }
  ::sync();
  ::poll(nullptr, 0, number(a[1]));
  say("written\n");
  return 0;
}

int raise_limit(const Arguments& a) {
  rlimit limit;
  const int which = number(a[0]);
  if (::getrlimit(static_cast<__rlimit_resource>(which), &limit) != 0) return tell("getrlimit", -1);
  say("limit " + std::to_string(static_cast<long>(limit.rlim_max)) + "\n");
  limit.rlim_cur = limit.rlim_max = limit.rlim_max + 1;
  return tell("setrlimit", ::setrlimit(static_cast<__rlimit_resource>(which), &limit));
}

}  // namespace

Verbs limit_verbs() {
  return {
      {"processes", 1, processes},
      {"memory", 1, memory},
      {"memory-of-many", 2, memory_of_many},
      {"memory-file", 1, memory_file},
      {"reserve", 1, reserve},
      {"spin", 1, spin},
      {"descriptors", 1, descriptors},
      {"big-file", 1, big_file},
      {"many-files", 2, many_files},
      {"raise-limit", 1, raise_limit},
  };
}

}  // namespace attacks
