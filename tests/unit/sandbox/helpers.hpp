// Helpers that several tests of the sandbox section share.
#ifndef CODEEXEC_TESTS_UNIT_SANDBOX_HELPERS_HPP
#define CODEEXEC_TESTS_UNIT_SANDBOX_HELPERS_HPP

#include "codeexec.hpp"

#include <doctest/doctest.h>

#if defined(__linux__)
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include <algorithm>

#include "../../helpers/support.hpp"

namespace support {

inline codeexec::SandboxOptions options_for(codeexec::SandboxMode mode,
                                            const std::string& writable = {}) {
  codeexec::SandboxOptions options;
  options.mode = mode;
  if (!writable.empty()) options.writable = {writable};
  const char* path = std::getenv("PATH");
  options.search_path = path ? path : "";
  return options;
}

inline codeexec::SandboxReport report_of(const codeexec::SandboxOptions& options) {
  auto sandbox = codeexec::Sandbox::create(options);
  REQUIRE_MESSAGE(sandbox, sandbox.error().message);
  return sandbox->report();
}

#if defined(__linux__) && (!defined(CODEEXEC_HAS_SANDBOX) || CODEEXEC_HAS_SANDBOX)

// The entry of `missing` for a feature, or "".
inline std::string missing(const codeexec::SandboxReport& report, const std::string& feature) {
  for (const std::string& entry : report.missing)
    if (support::begins(entry, feature + ": ")) return entry;
  return "";
}

// Whether this kernel has all that a whole sandbox needs, asked without the library; says so when
// not. Where it has, a feature that the library misses is a failure of the test.
inline bool has_everything(const std::string& what) {
  constexpr long number_of_landlock_create_ruleset = 444;
  constexpr int version = 1;
  constexpr long abi_with_everything = 6;
  static const bool landlock =
      ::syscall(number_of_landlock_create_ruleset, nullptr, 0, version) >= abi_with_everything;
  static const bool filters = ::prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0;
  if (landlock && filters) return true;
  MESSAGE("SKIPPED: ", what, " needs a kernel with Landlock ABI 6 and seccomp");
  return false;
}

inline codeexec::ProcessResult run_in(const codeexec::Sandbox& sandbox, const std::string& script,
                                      const std::string& work_dir = "/") {
  codeexec::ProcessOptions options;
  options.argv = {"/bin/sh", "-c", script};
  const char* path = std::getenv("PATH");
  options.environment = {std::string("PATH=") + (path ? path : "/usr/bin:/bin"), "LC_ALL=C"};
  options.work_dir = work_dir;
  options.sandbox = sandbox;
  options.timeout = std::chrono::seconds(60);
  return codeexec::run_process(options);
}

inline codeexec::ProcessResult run_in(const codeexec::SandboxOptions& options,
                                      const std::string& script,
                                      const std::string& work_dir = "/") {
  auto sandbox = codeexec::Sandbox::create(options);
  REQUIRE_MESSAGE(sandbox, sandbox.error().message);
  return run_in(*sandbox, script, work_dir);
}

// Standard output, and how it ended when that was not well.
inline std::string output_of(const codeexec::ProcessResult& result) {
  if (result.outcome != codeexec::Outcome::exited)
    return name(result.outcome) + (": " + result.message);
  return result.out + (result.exit_code == 0 ? "" : "exit " + std::to_string(result.exit_code));
}

// The helper's lines without their `@`; `rules` are those of codeexec-test-deny, or empty.
inline std::vector<std::string> report_elsewhere(const std::string& words,
                                                 const std::string& rules = {}) {
  codeexec::ProcessOptions options;
  if (!rules.empty()) options.argv = {CODEEXEC_TEST_DENY, rules, "--"};
  const std::vector<std::string> helper = {support::real_path("/proc/self/exe"), "--no-skip",
                                           "--no-intro", "--test-case=sandbox: (helper)*"};
  options.argv.insert(options.argv.end(), helper.begin(), helper.end());
  for (char** variable = environ; *variable; ++variable) options.environment.push_back(*variable);
  options.environment.push_back("CODEEXEC_TEST_SANDBOX=" + words);
  options.timeout = std::chrono::seconds(120);
  const codeexec::ProcessResult result = codeexec::run_process(options);
  CHECK_MESSAGE(result.succeeded(), result.out, result.err);
  std::vector<std::string> lines;
  for (const std::string& line : support::lines_of(result.out))
    if (support::begins(line, "@")) lines.push_back(line.substr(1));
  return lines;
}

// The names after "enforced ", each followed by a blank.
inline std::string enforced(const std::vector<std::string>& lines) {
  std::string names;
  for (const std::string& line : lines)
    if (support::begins(line, "enforced ")) names += line.substr(9) + " ";
  return names;
}

inline bool is_missing(const std::vector<std::string>& lines, const std::string& feature) {
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return support::begins(line, "missing " + feature + ": ");
  });
}

inline bool is_root(const std::string& what) {
  if (::geteuid() == 0) return true;
  MESSAGE("SKIPPED: ", what, " needs root");
  return false;
}

#endif

}  // namespace support

#endif  // CODEEXEC_TESTS_UNIT_SANDBOX_HELPERS_HPP
