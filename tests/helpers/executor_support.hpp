// Helpers for the tests of what runs commands through an executor.
#ifndef CODEEXEC_TESTS_EXECUTOR_SUPPORT_HPP
#define CODEEXEC_TESTS_EXECUTOR_SUPPORT_HPP

#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "support.hpp"

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace support {

// An executor with options that must be good.
inline codeexec::LocalExecutor make(const codeexec::LocalOptions& options = {}) {
  codeexec::Expected<codeexec::LocalExecutor> made = codeexec::LocalExecutor::create(options);
  REQUIRE_MESSAGE(made, made.error().message);
  return *std::move(made);
}

// Without one, what a killed program has started lives on, and nobody counts what was left behind.
inline bool has_supervisor() {
  codeexec::ProcessOptions probe;
  probe.argv = {"/bin/sh", "-c", "cat /proc/$PPID/comm"};
  probe.supervised = true;
  if (codeexec::run_process(probe).out == "codeexec\n") return true;
  MESSAGE("SKIPPED: there is no supervisor on this system");
  return false;
}

// All that a failed check should tell of a result.
inline std::string describe(const codeexec::Result& r) {
  std::string text =
      r.summary() + " out '" + r.out + "' err '" + r.err + "' message '" + r.message + "'";
  for (const std::string& note : r.notes) text += " note '" + note + "'";
  return text;
}

// Collects audit records as their JSON; may be called from any thread.
class AuditLog {
 public:
  codeexec::Function<void(const codeexec::AuditRecord&)> callback() {
    return [shared = shared_](const codeexec::AuditRecord& record) {
      const std::lock_guard<std::mutex> lock(shared->mutex);
      shared->records.push_back(to_json(record));
    };
  }
  std::vector<codeexec::Json> take() {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    return std::exchange(shared_->records, {});
  }
  std::size_t count() const {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    return shared_->records.size();
  }

 private:
  struct Shared {
    std::mutex mutex = {};
    std::vector<codeexec::Json> records = {};
  };
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

// Whether the command has printed that, or does so in time.
inline bool prints_text(const codeexec::Execution& execution, const std::string& text) {
  return comes_true([&] { return has(execution.read(codeexec::Stream::out, 0).text, text); });
}

// Bytes of every kind pass an executor in both directions as they are, and a command that has begun
// can be cancelled.
inline void check_streams(const codeexec::Executor& executor) {
  codeexec::Command command = codeexec::Command::shell("cat; printf '\\000\\377\\r\\n\\033'");
  for (int i = 0; i < 300000; ++i) command.input += static_cast<char>(i * 7 % 251);
  command.max_output = 1 << 20;
  std::string out;
  command.on_output = [&](codeexec::Stream, std::string_view bytes) { out += bytes; };
  CHECK(executor.run(command).succeeded());
  CHECK((out == command.input + std::string("\0\377\r\n\033", 5)));
  const codeexec::Execution started =
      executor.start(codeexec::Command::shell("printf begun; sleep 600"));
  CHECK(prints_text(started, "begun"));
  started.cancel();
  CHECK(started.wait().outcome == codeexec::Outcome::cancelled);
}

// The agent of an executor: the parent of its commands, or of their supervisors.
inline pid_t agent_of(const codeexec::Executor& executor) {
  const codeexec::Result r = executor.run(
      "read name < /proc/$PPID/comm; s=$(cat /proc/$PPID/stat); "
      "[ $name = codeexec ] || s=\"x) S $PPID\"; echo \"$s\"");
  const std::size_t end = r.out.rfind(')');
  REQUIRE(end != std::string::npos);
  int parent = 0;
  REQUIRE(std::sscanf(r.out.c_str() + end + 4, "%d", &parent) == 1);
  REQUIRE(parent > 1);
  REQUIRE(parent != ::getpid());
  return parent;
}

}  // namespace support

#endif  // CODEEXEC_TESTS_EXECUTOR_SUPPORT_HPP
