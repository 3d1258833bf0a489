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
