// Helpers that several tests of the shells section share.
#ifndef CODEEXEC_TESTS_UNIT_SHELLS_HELPERS_HPP
#define CODEEXEC_TESTS_UNIT_SHELLS_HELPERS_HPP

#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <condition_variable>
#include <mutex>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"

namespace support {

inline const char* const child = CODEEXEC_TEST_CHILD;

inline codeexec::Regex pattern(std::string_view text) {
  auto compiled = codeexec::Regex::compile(text);
  REQUIRE(compiled);
  return *compiled;
}

inline codeexec::ShellWait until_seen(std::string_view text) {
  codeexec::ShellWait wait;
  wait.pattern = pattern(text);
  wait.time = safety;
  return wait;
}

inline codeexec::ShellWait until_end() {
  codeexec::ShellWait wait;
  wait.time = safety;
  return wait;
}

inline std::string start(codeexec::BackgroundShells& shells, const codeexec::Command& command) {
  const codeexec::Expected<codeexec::ShellStatus> started = shells.start(command);
  REQUIRE_MESSAGE(started, started.error().message);
  return started->id;
}

inline std::string start(codeexec::BackgroundShells& shells, const std::string& script) {
  return start(shells, codeexec::Command::shell(script));
}

inline codeexec::ShellStatus status_of(const codeexec::BackgroundShells& shells,
                                       const std::string& id) {
  const codeexec::Expected<codeexec::ShellStatus> status = shells.status(id);
  REQUIRE_MESSAGE(status, status.error().message);
  return *status;
}

inline codeexec::ShellOutput read(const codeexec::BackgroundShells& shells, const std::string& id,
                                  codeexec::ShellCursor since = {}) {
  const codeexec::Expected<codeexec::ShellOutput> output = shells.read(id, since);
  REQUIRE_MESSAGE(output, output.error().message);
  return *output;
}

// "matched" and so on, or the error.
inline std::string wait(const codeexec::BackgroundShells& shells, const std::string& id,
                        const codeexec::ShellWait& until) {
  const codeexec::Expected<codeexec::ShellWaitEnd> end = shells.wait(id, until);
  return end ? codeexec::name(*end) : end.error().message;
}

inline codeexec::ShellStatus at_end(const codeexec::BackgroundShells& shells,
                                    const std::string& id) {
  CHECK(wait(shells, id, until_end()) == "ended");
  return status_of(shells, id);
}

// "true", "false" or the error.
inline std::string kill(const codeexec::BackgroundShells& shells, const std::string& id) {
  const codeexec::Expected<bool> killed = shells.kill(id);
  return killed ? (*killed ? "true" : "false") : killed.error().message;
}

inline std::string describe(const codeexec::ShellStatus& status) {
  return std::string(codeexec::name(status.state)) + " " + codeexec::name(status.result.outcome) +
         " code " + std::to_string(status.result.exit_code) + " signal " +
         std::to_string(status.result.signal);
}

// Lets threads go on at the same time.
class Gate {
 public:
  void open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    opened_.notify_all();
  }
  void pass() {
    std::unique_lock<std::mutex> lock(mutex_);
    opened_.wait(lock, [this] { return open_; });
  }

 private:
  std::mutex mutex_ = {};
  std::condition_variable opened_ = {};
  bool open_ = false;
};

}  // namespace support

#endif  // CODEEXEC_TESTS_UNIT_SHELLS_HELPERS_HPP
