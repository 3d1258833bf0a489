// subprocess.h of sheredom.
#include <subprocess.h>

#include "driver.hpp"

namespace {

void start(subprocess_s& process, const char* program, const char* argument) {
  const char* const argv[] = {program, argument, nullptr};
  check(subprocess_create(argv, subprocess_option_inherit_environment, &process) == 0);
}

void finish(subprocess_s& process) {
  int status = -1;
  check(subprocess_join(&process, &status) == 0 && status == 0);
  subprocess_destroy(&process);
}

}  // namespace

void run() {
  subprocess_s process;
  start(process, "/bin/true", nullptr);
  finish(process);
}

std::string capture() {
  subprocess_s process;
  start(process, "/bin/echo", "hello");
  std::string text;
  char buffer[4096];
  while (const std::size_t size = fread(buffer, 1, sizeof buffer, subprocess_stdout(&process)))
    text.append(buffer, size);
  finish(process);
  return text;
}

void many() {
  std::vector<subprocess_s> all(at_once);
  for (subprocess_s& one : all) start(one, "/bin/true", nullptr);
  for (subprocess_s& one : all) finish(one);
}

int main() { return drive(); }
