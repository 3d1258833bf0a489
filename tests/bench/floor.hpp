// What the benchmarks of programs and of background shells share: the least that a program and its
// output can cost.
#ifndef CODEEXEC_TESTS_BENCH_FLOOR_HPP
#define CODEEXEC_TESTS_BENCH_FLOOR_HPP

#include <poll.h>
#include <sched.h>

#include "report.hpp"

// Borrowed memory, no timeout, no limits, no checks.
struct FloorChild {
  const Argv* argv;
  int out;
  int err;
};

inline int floor_child(void* argument) {
  const auto* child = static_cast<const FloorChild*>(argument);
  ::dup2(child->out, 1);
  ::dup2(child->err, 2);
  ::execve((*child->argv)[0], writable(*child->argv), environ);
  ::_exit(127);
}

// Keeps this program on one processor while it lives. A child that is to have another one pins
// itself: it inherits this.
class Pinned {
 public:
  explicit Pinned(int number) {
    ::sched_getaffinity(0, sizeof before_, &before_);
    pin_to(number);
  }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  ~Pinned() { ::sched_setaffinity(0, sizeof before_, &before_); }

  static void pin_to(int number) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(number, &one);
    ::sched_setaffinity(0, sizeof one, &one);  // where there is no such processor: as it was
  }

 private:
  cpu_set_t before_ = {};
};

// Closes its ends of the pipes here.
inline pid_t start_floor(FloorChild child) {
  alignas(16) char stack[16384];
  const pid_t pid =
      ::clone(floor_child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &child);
  if (pid < 0) fail("clone");
  ::close(child.out);
  if (child.err != 2) ::close(child.err);
  return pid;
}

// A bare loop of poll and read, which keeps nothing. The bytes of standard output.
inline std::uint64_t read_bare(const Argv& argv) {
  int out[2];
  make_pipe(out);
  const pid_t pid = start_floor({&argv, out[1], 2});
  static char buffer[65536];
  std::uint64_t total = 0;
  for (;;) {
    pollfd wait = {out[0], POLLIN, 0};
    ::poll(&wait, 1, -1);
    const ssize_t size = ::read(out[0], buffer, sizeof buffer);
    if (size <= 0) break;
    total += static_cast<std::uint64_t>(size);
  }
  ::close(out[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return total;
}

#endif  // CODEEXEC_TESTS_BENCH_FLOOR_HPP
