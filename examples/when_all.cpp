// Many commands at once, a few at a time; the first that fails cancels all others.
//
//   c++ -std=c++17 -I. examples/when_all.cpp -o when_all -pthread
//
// start() returns at once: what has to wait for its turn waits in its handle. Prints how the
// commands ended.
#define CODEEXEC_IMPLEMENTATION
#include "codeexec.hpp"

#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace {

// Starts all of them, and returns when the last one has ended. A command that fails cancels the
// token that all have: those that run are stopped, and those that wait do not start.
std::vector<codeexec::Result> when_all(const codeexec::Executor& here,
                                       std::vector<codeexec::Command> commands) {
  const codeexec::CancelToken failed;
  std::vector<codeexec::Execution> running;
  for (codeexec::Command& command : commands) {
    command.cancel = failed;
    command.on_end = [failed](const codeexec::Result& result) {
      if (!result.succeeded()) failed.cancel();
    };
    running.push_back(here.start(command));
  }
  std::vector<codeexec::Result> results;
  for (const codeexec::Execution& one : running) results.push_back(one.wait());
  return results;
}

}  // namespace

int main() {
  codeexec::LocalOptions options;
  options.max_concurrent = 8;
  auto here = codeexec::LocalExecutor::create(options);
  if (!here) return std::fprintf(stderr, "%s\n", here.error().message.c_str()), 2;
  std::vector<codeexec::Command> commands;
  for (int i = 1; i <= 200; ++i)
    commands.push_back(codeexec::Command::shell(i == 20 ? "exit 3" : "exit 0"));
  const std::vector<codeexec::Result> results = when_all(*here, commands);
  std::map<std::string, int> ends;
  for (const codeexec::Result& result : results)
    ++ends[result.succeeded()                               ? "succeeded"
           : result.outcome == codeexec::Outcome::cancelled ? "cancelled"
                                                            : "failed"];
  for (const auto& [end, count] : ends)
    std::printf("%s: %s\n", end.c_str(), count > 1 ? "some" : "one");
  return 0;
}
