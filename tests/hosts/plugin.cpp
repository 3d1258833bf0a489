// A shared library with the implementation in it, which a host opens and closes; see host.cpp.
#include <chrono>
#include <string>

#include "codeexec.hpp"

// 0, or the number of the first step that did not do as it should. `mark`: what sleeps, sleeps so
// many seconds.
extern "C" __attribute__((visibility("default"))) int run_all(const char* mark) {
  codeexec::LocalOptions options;
  options.kill_grace = std::chrono::milliseconds(100);
  auto executor = codeexec::LocalExecutor::create(options);
  if (!executor) return 1;
  if (executor->run("echo out; exit 7").exit_code != 7) return 2;
  const codeexec::Execution started = executor->start(codeexec::Command::shell("echo out; exit 7"));
  if (started.wait().exit_code != 7) return 3;
  codeexec::Jobs jobs(*executor);
  if (!jobs.start(codeexec::Command::shell(std::string("sleep ") + mark))) return 4;
  codeexec::ProcessOptions supervised;
  supervised.argv = {"/bin/sh", "-c", std::string("setsid sleep ") + mark + " & exit 7"};
  supervised.supervised = true;
  return run_process(supervised).exit_code == 7 ? 0 : 5;
}
