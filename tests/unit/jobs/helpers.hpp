// Helpers that several tests of the jobs section share.
#ifndef CODEEXEC_TESTS_UNIT_JOBS_HELPERS_HPP
#define CODEEXEC_TESTS_UNIT_JOBS_HELPERS_HPP

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

inline codeexec::Jobs::Wait until_seen(std::string_view text) {
  codeexec::Jobs::Wait wait;
  wait.pattern = pattern(text);
  wait.time = safety;
  return wait;
}

inline codeexec::Jobs::Wait until_end() {
  codeexec::Jobs::Wait wait;
  wait.time = safety;
  return wait;
}

inline std::string start(codeexec::Jobs& jobs, const codeexec::Command& command) {
  const codeexec::Expected<codeexec::JobStatus> started = jobs.start(command);
  REQUIRE_MESSAGE(started, started.error().message);
  return started->id;
}

inline std::string start(codeexec::Jobs& jobs, const std::string& script) {
  return start(jobs, codeexec::Command::shell(script));
}

inline codeexec::JobStatus status_of(const codeexec::Jobs& jobs, const std::string& id) {
  const codeexec::Expected<codeexec::JobStatus> status = jobs.status(id);
  REQUIRE_MESSAGE(status, status.error().message);
  return *status;
}

inline codeexec::JobOutput read(const codeexec::Jobs& jobs, const std::string& id,
                                std::uint64_t out = 0, std::uint64_t err = 0) {
  const codeexec::Expected<codeexec::JobOutput> output = jobs.read(id, out, err);
  REQUIRE_MESSAGE(output, output.error().message);
  return *output;
}

// "matched" and so on, or the error.
inline std::string wait(const codeexec::Jobs& jobs, const std::string& id,
                        const codeexec::Jobs::Wait& until) {
  const codeexec::Expected<codeexec::Jobs::WaitEnd> end = jobs.wait(id, until);
  return end ? codeexec::name(*end) : end.error().message;
}

inline codeexec::JobStatus at_end(const codeexec::Jobs& jobs, const std::string& id) {
  CHECK(wait(jobs, id, until_end()) == "ended");
  return status_of(jobs, id);
}

// "true", "false" or the error.
inline std::string kill(const codeexec::Jobs& jobs, const std::string& id) {
  const codeexec::Expected<bool> killed = jobs.kill(id);
  return killed ? (*killed ? "true" : "false") : killed.error().message;
}

inline std::string describe(const codeexec::JobStatus& status) {
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

#endif  // CODEEXEC_TESTS_UNIT_JOBS_HELPERS_HPP
