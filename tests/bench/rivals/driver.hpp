// What the rivals in C++ share. Each is a program that takes turns with the others: for a line
// "TASK COUNT" on its input it does that so often, and prints how many microseconds one took.
//   run       start /bin/true and wait for it
//   capture   start /bin/echo, and read what it prints
//   many      200 times /bin/true, all started before the first is waited for
//   hold      keep COUNT MiB of memory in use from now on
#ifndef CODEEXEC_TESTS_BENCH_RIVALS_DRIVER_HPP
#define CODEEXEC_TESTS_BENCH_RIVALS_DRIVER_HPP

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

constexpr int at_once = 200;

// What a rival defines. Each ends the program by check() when it goes wrong.
void run();
std::string capture();
void many();

inline void check(bool good) {
  if (!good) std::fputs("it did not work\n", stderr), std::exit(1);
}

inline int drive() {
  std::vector<std::string> held;
  char task[32];
  int count = 0;
  while (std::scanf("%31s %d", task, &count) == 2) {
    const auto begin = std::chrono::steady_clock::now();
    if (std::strcmp(task, "hold") == 0)
      held.emplace_back(static_cast<std::size_t>(count) << 20, 'x');
    for (int i = 0; i < count; ++i) {
      if (std::strcmp(task, "run") == 0) run();
      if (std::strcmp(task, "capture") == 0) check(capture() == "hello\n");
      if (std::strcmp(task, "many") == 0) many();
    }
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
    std::printf("%.3f\n", time.count() / count);
    std::fflush(stdout);
  }
  return 0;
}

#endif  // CODEEXEC_TESTS_BENCH_RIVALS_DRIVER_HPP
