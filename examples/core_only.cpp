// The smallest program: commands with deadlines, bounded output and the kernel's sandbox, and none
// of what this header has besides. Only the definitions of its core are compiled:
//
//   c++ -std=c++17 -O2 -I. examples/core_only.cpp -o core_only -pthread
//   ./core_only 'echo hello; echo oops >&2'
//
// No policy judges the command here, as the program gives create() no wing that has one. With
// CODEEXEC_IMPLEMENT_POLICY below, and {codeexec::create_guard} in place of {}, each command is.
#ifndef CODEEXEC_IMPLEMENTED  // CMake builds the implementation once, for all examples
#define CODEEXEC_IMPLEMENT_CORE
#endif
#include "codeexec.hpp"

#include <cstdio>

int main(int argc, char** argv) {
  codeexec::LocalOptions options;
  options.timeout = std::chrono::seconds(10);
  // As much as this system has: files are written below the workspace only, and no network.
  options.sandbox.mode = codeexec::SandboxMode::best_effort;
  options.sandbox.network = codeexec::Network::none;
  // What a command leaves for the user's git or editor is put back by another wing, TOOLS.
  options.watch_files = false;
  const auto executor = codeexec::LocalExecutor::create(options, {});
  if (!executor) {
    std::fprintf(stderr, "%s\n", executor.error().message.c_str());
    return 1;
  }
  const codeexec::Result result = executor->run(argc > 1 ? argv[1] : "echo hello");
  std::printf("%s%s%s\n", result.out.c_str(), result.err.c_str(), result.summary().c_str());
  return result.succeeded() ? 0 : 1;
}
