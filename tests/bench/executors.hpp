// Executors that several programs of the bench measure, or measure others by.
#ifndef CODEEXEC_TESTS_BENCH_EXECUTORS_HPP
#define CODEEXEC_TESTS_BENCH_EXECUTORS_HPP

#include "codeexec.hpp"

#include "report.hpp"

inline codeexec::LocalExecutor local_executor() {
  codeexec::LocalOptions options;
  options.workspace = "/tmp";
  options.max_output = 65536;
  auto made = codeexec::LocalExecutor::create(options);
  if (!made) fail("LocalExecutor", made.error().message);
  return *std::move(made);
}

inline void run_true(const codeexec::Executor& executor) {
  const codeexec::Result result = executor.run(codeexec::Command::program({"true"}));
  if (!result.succeeded()) fail("a command", result.summary() + " " + result.message);
}

#endif  // CODEEXEC_TESTS_BENCH_EXECUTORS_HPP
