// Helpers that several tests of the paths section share.
#ifndef CODEEXEC_TESTS_UNIT_PATHS_HELPERS_HPP
#define CODEEXEC_TESTS_UNIT_PATHS_HELPERS_HPP

#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <sys/wait.h>

#include "../../helpers/support.hpp"

namespace support {

// What open_work_dir() says: the error's message, or the path with "ok " in front.
inline std::string opened(const codeexec::PathRules& rules, std::string_view work_dir,
                          std::string_view base) {
  std::string path;
  auto directory = rules.open_work_dir(work_dir, base, &path);
  return directory ? "ok " + path : directory.error().message;
}

// Runs the function in a child process without root's power over files, and tells whether it
// returned true there.
template <class F>
bool true_as_ordinary_user(F function) {
  std::fflush(stdout);
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (!support::become_ordinary_user()) ::_exit(2);
    ::_exit(function() ? 0 : 1);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) != 2);
  return WEXITSTATUS(status) == 0;
}

}  // namespace support

#endif  // CODEEXEC_TESTS_UNIT_PATHS_HELPERS_HPP
