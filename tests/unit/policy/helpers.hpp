// Helpers that several tests of the policy section share.
#ifndef CODEEXEC_TESTS_UNIT_POLICY_HELPERS_HPP
#define CODEEXEC_TESTS_UNIT_POLICY_HELPERS_HPP

#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../../helpers/support.hpp"

namespace support {

inline codeexec::Policy make(const codeexec::PolicyOptions& options) {
  auto policy = codeexec::Policy::create(options);
  REQUIRE_MESSAGE(policy.has_value(), policy.error().message);
  return *policy;
}

inline codeexec::PolicyOptions lists(std::vector<std::string> allowed,
                                     std::vector<std::string> blocked = {}) {
  codeexec::PolicyOptions options;
  options.allowed = std::move(allowed);
  options.blocked = std::move(blocked);
  return options;
}

// The text that a refusal points at.
inline std::string blamed(const codeexec::Policy& policy, std::string_view command) {
  const codeexec::Verdict verdict = policy.judge(command).verdict;
  return std::string(command.substr(verdict.begin, verdict.end - verdict.begin));
}

inline codeexec::Policy strict(codeexec::PolicyOptions options = {}) {
  options.compat = false;
  return make(options);
}

inline std::string rule_of(const codeexec::Policy& policy, std::string_view script,
                           std::string_view work_dir = {}) {
  return policy.judge(script, work_dir, false).verdict.rule;
}

// Judges what comes after a command that has written a file.
inline std::shared_ptr<const codeexec::Guard> after_writing(const codeexec::Policy& policy,
                                                            const std::string& file,
                                                            const std::string& text) {
  const auto text_of = [file, text](const std::string& path) -> std::optional<std::string> {
    if (path != file) return {};
    return text;
  };
  return policy.with_files(text_of);
}

// What every refusal has, besides its rule.
inline void check_form(const codeexec::Verdict& verdict, std::string_view script) {
  CHECK(verdict.allowed == verdict.rule.empty());
  CHECK(verdict.allowed == verdict.message.empty());
  CHECK(verdict.begin <= verdict.end);
  CHECK(verdict.end <= script.size());
  CHECK(verdict.message.find('\n') == std::string::npos);
  CHECK(codeexec::is_utf8(verdict.message));
}

inline void refuses(const codeexec::Policy& policy, std::string_view rule,
                    const std::vector<std::string_view>& scripts, std::string_view work_dir = {}) {
  for (const std::string_view script : scripts) {
    CAPTURE(std::string(script));
    const codeexec::Verdict verdict = policy.judge(script, work_dir).verdict;
    CHECK(verdict.rule == rule);
    CHECK(verdict.begin < verdict.end);
    check_form(verdict, script);
  }
}

inline void passes(const codeexec::Policy& policy, const std::vector<std::string_view>& scripts,
                   std::string_view work_dir = {}) {
  for (const std::string_view script : scripts) {
    CAPTURE(std::string(script));
    const codeexec::Verdict verdict = policy.judge(script, work_dir).verdict;
    CHECK(verdict.rule == "");
    CHECK(verdict.message == "");
    check_form(verdict, script);
  }
}

}  // namespace support

#endif  // CODEEXEC_TESTS_UNIT_POLICY_HELPERS_HPP
