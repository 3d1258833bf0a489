// Helpers for the tests of places: executors whose agent is the server program on this host.
#ifndef CODEEXEC_TESTS_PLACE_SUPPORT_HPP
#define CODEEXEC_TESTS_PLACE_SUPPORT_HPP

#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "executor_support.hpp"
#include "support.hpp"

#include <string>
#include <vector>

namespace support {

using Strings = std::vector<std::string>;

inline codeexec::PlaceOptions place_options(const std::string& workspace) {
  codeexec::PlaceOptions options;
  options.transport = {CODEEXEC_MCP, "--place"};
  options.name = "box";
  options.workspace = workspace;
  options.timeout = safety;
  return options;
}

inline codeexec::PlaceExecutor make_place(const codeexec::PlaceOptions& options) {
  codeexec::Expected<codeexec::PlaceExecutor> made = codeexec::PlaceExecutor::create(options);
  REQUIRE_MESSAGE(made, made.error().message);
  return *std::move(made);
}

inline codeexec::Error place_error(const codeexec::PlaceOptions& options) {
  const codeexec::Expected<codeexec::PlaceExecutor> made = codeexec::PlaceExecutor::create(options);
  REQUIRE(!made);
  return made.error();
}

// A command that prints its number and stays, with a grandchild that has left its group and session
// and writes its own number to the file `daemon`. It runs `then` before it stays.
inline std::string staying(const std::string& then = {}) {
  return "trap '' TERM HUP; setsid sh -c 'echo $$ > daemon.tmp; mv daemon.tmp daemon; "
         "while :; do sleep 600; done' & echo $$; " +
         then + "while :; do sleep 600; done";
}

// The number that a command has printed for itself.
inline pid_t pid_in(const std::string& text) { return first_number(text); }

// Waits until a file is there that a command makes.
inline bool appears(const std::string& path) {
  const Stopwatch watch;
  while (!exists(path) && watch.soon()) ::poll(nullptr, 0, 2);
  return exists(path);
}

}  // namespace support

#endif  // CODEEXEC_TESTS_PLACE_SUPPORT_HPP
