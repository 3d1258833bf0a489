// The floor: posix_spawn() and waitpid(), and a pipe to capture.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver.hpp"

namespace {

pid_t start(const char* program, const char* argument, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (output >= 0) posix_spawn_file_actions_adddup2(&actions, output, 1);
  char* argv[] = {const_cast<char*>(program), const_cast<char*>(argument), nullptr};
  pid_t pid = -1;
  check(posix_spawn(&pid, program, &actions, nullptr, argv, environ) == 0);
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

void wait_for(pid_t pid) {
  int status = -1;
  check(waitpid(pid, &status, 0) == pid && status == 0);
}

}  // namespace

void run() { wait_for(start("/bin/true", nullptr, -1)); }

std::string capture() {
  int ends[2];
  check(pipe2(ends, O_CLOEXEC) == 0);
  const pid_t pid = start("/bin/echo", "hello", ends[1]);
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t size; (size = read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(size));
  close(ends[0]);
  wait_for(pid);
  return text;
}

void many() {
  std::vector<pid_t> all;
  for (int i = 0; i < at_once; ++i) all.push_back(start("/bin/true", nullptr, -1));
  for (const pid_t pid : all) wait_for(pid);
}

int main() { return drive(); }
