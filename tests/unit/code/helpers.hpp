// Helpers that several tests of the code section share.
#ifndef CODEEXEC_TESTS_UNIT_CODE_HELPERS_HPP
#define CODEEXEC_TESTS_UNIT_CODE_HELPERS_HPP

#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"

namespace support {

using Strings = std::vector<std::string>;

inline codeexec::LocalOptions in(const support::TempDir& directory) {
  codeexec::LocalOptions options;
  options.workspace = directory.path();
  options.timeout = safety;
  return options;
}

inline codeexec::LocalExecutor executor_in(const support::TempDir& directory) {
  return make(in(directory));
}

inline std::string describe(const codeexec::CodeResult& r) {
  std::string text = "message '" + r.message + "'";
  for (const codeexec::Result& result : r.results)
    text += " | " + result.command.substr(0, 200) + ": " + result.summary() + " out '" +
            result.out.substr(0, 500) + "' err '" + result.err.substr(0, 500) + "'";
  for (const std::string& file : r.files) text += " file " + file;
  return text;
}

// What code prints that must succeed, in one language.
inline std::string output_of(const codeexec::Executor& executor, std::string_view language,
                             std::string_view code, const codeexec::CodeOptions& options = {}) {
  const codeexec::CodeResult r = codeexec::run_code(executor, language, code, options);
  CHECK_MESSAGE(r.succeeded, describe(r));
  CHECK(r.message == "");
  REQUIRE(r.results.size() == 1);
  CHECK(r.results[0].err == "");
  return r.results[0].out;
}

// Collects what the audit log is told.
struct Audit {
  Strings commands = {};
  Strings codes = {};
  std::vector<codeexec::Outcome> outcomes = {};
};

inline codeexec::LocalOptions audited(codeexec::LocalOptions options, Audit& audit) {
  options.on_audit = [&audit](const codeexec::AuditRecord& record) {
    audit.commands.push_back(record.result->command);
    audit.codes.push_back(record.code);
    audit.outcomes.push_back(record.result->outcome);
  };
  return options;
}

}  // namespace support

#endif  // CODEEXEC_TESTS_UNIT_CODE_HELPERS_HPP
