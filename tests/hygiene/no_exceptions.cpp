// Every layer at work in a program without exceptions and without type information.
#define CODEEXEC_IMPLEMENTATION
#include "codeexec.hpp"

#include <cstdio>

static int failures = 0;

static void check(bool good, const char* what) {
  if (good) return;
  std::printf("FAILED: %s\n", what);
  ++failures;
}

int main() {
  const auto json = codeexec::Json::parse(R"({"a":[1,2.5,"x"]})");
  check(json && json->dump() == R"({"a":[1,2.5,"x"]})", "JSON is read and written");
  check(!codeexec::Json::parse("[1,"), "bad JSON is an error, not an exception");

  const auto pattern = codeexec::Regex::compile("a+b");
  check(pattern && pattern->search("xaab"), "a pattern matches");
  check(!codeexec::Regex::compile("a(b"), "a bad pattern is an error, not an exception");

  codeexec::LocalOptions options;
  options.workspace = "/";
  const auto here = codeexec::LocalExecutor::create(options);
  check(bool(here), "an executor is made");
  if (here) {
    const codeexec::Result result = here->run("echo out; echo err >&2; exit 3");
    check(result.outcome == codeexec::Outcome::exited && result.exit_code == 3, "a command runs");
    check(result.out == "out\n" && result.err == "err\n", "its output is kept");
    check(here->run("sudo true").outcome == codeexec::Outcome::refused, "a command is refused");
  }
  options.workspace = "/does/not/exist";
  check(!codeexec::LocalExecutor::create(options), "a bad option is an error, not an exception");
  return failures == 0 ? 0 : 1;
}
