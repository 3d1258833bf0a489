// Helpers for the tests with a container engine. CODEEXEC_TEST_DOCKER=1 says that DOCKER_HOST is
// one for tests, which has the images that tests/helpers/engine.sh makes.
#ifndef CODEEXEC_TESTS_ENGINE_SUPPORT_HPP
#define CODEEXEC_TESTS_ENGINE_SUPPORT_HPP

#include "codeexec.hpp"
#include "support.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace support {

// Images that tests/helpers/engine.sh makes: with ash and no /tmp, and with dash.
constexpr char busybox_image[] = "codeexec-test/busybox:latest";
constexpr char debian_image[] = "codeexec-test/debian:latest";

// What starts commands in their containers. Empty: the image has it. The server reads the variable.
#if defined(CODEEXEC_STATIC)
inline constexpr char engine_agent[] = CODEEXEC_STATIC;
inline const bool has_agent = ::setenv("CODEEXEC_PLACE_AGENT", engine_agent, 1) == 0;
#else
inline constexpr char engine_agent[] = "";
#endif

// The engine's program, beside what is tested.
inline codeexec::ProcessResult docker(std::vector<std::string> words) {
  codeexec::ProcessOptions call;
  call.argv = std::move(words);
  call.argv.insert(call.argv.begin(), "docker");
  for (char** variable = environ; *variable; ++variable) call.environment.emplace_back(*variable);
  call.timeout = std::chrono::seconds(60);
  return codeexec::run_process(call);
}

inline bool has_image(const std::string& image) {
  return docker({"image", "inspect", image}).succeeded();
}

// False after saying that the test is skipped.
inline bool has_engine() {
  if (std::getenv("CODEEXEC_TEST_DOCKER")) return true;
  MESSAGE("SKIPPED: no container engine for tests (CODEEXEC_TEST_DOCKER is not set)");
  return false;
}
inline bool has_engine_with(const std::string& image) {
  if (!has_engine()) return false;
  if (has_image(image)) return true;
  MESSAGE("SKIPPED: the engine has no image " << image);
  return false;
}

// An agent or user that no other run of these tests has.
inline std::string fresh_agent() {
  static std::atomic<int> count{0};
  return "test-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
}

}  // namespace support

#endif  // CODEEXEC_TESTS_ENGINE_SUPPORT_HPP
