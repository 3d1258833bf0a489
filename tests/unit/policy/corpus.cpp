// The corpus of labelled commands against the strict policy.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "codeexec.hpp"
#include "corpus.hpp"

using codeexec::Json;
using codeexec::Policy;
using codeexec::PolicyOptions;
using codeexec::Verdict;
using support::header;
using support::rows;
using support::strings;

namespace {

// A policy of one list alone, without the sanitizer; or of the sanitizer alone.
Policy policy_of(const std::string& column) {
  PolicyOptions options;
  if (column == "whitelist") options.allowed = strings(header()["whitelist_patterns"]);
  if (column == "blacklist") options.blocked = strings(header()["blacklist_patterns"]);
  if (column != "sanitizer")
    for (const auto& rule : Policy::rules()) options.disabled_rules.push_back(rule.name);
  const auto policy = Policy::create(options);
  REQUIRE_MESSAGE(policy.has_value(), policy.error().message);
  return *policy;
}

struct Count {
  int deny = 0;
  int allow = 0;
  int false_deny = 0;
  int false_allow = 0;
};

std::string told(const Count& count) {
  return std::to_string(count.deny) + " to refuse, " + std::to_string(count.allow) +
         " to allow; wrongly allowed " + std::to_string(count.false_allow) + ", wrongly refused " +
         std::to_string(count.false_deny);
}

// Every row but those of interpreters, which are best effort, must have the verdict of its label.
void judge(const std::string& column) {
  const Policy policy = policy_of(column);
  Count count;
  Count interpreters;
  for (const Json& row : rows()) {
    const std::string& command = row["command"].as_string();
    const bool best_effort = row["category"].as_string() == "interp";
    const bool allowed = row[column].as_string() == "allow";
    const Verdict verdict = policy.judge(command).verdict;
    Count& counted = best_effort ? interpreters : count;
    ++(allowed ? counted.allow : counted.deny);
    const std::string which = row["id"].as_string() + ": " + row["command"].dump();
    const std::string got = verdict.rule + ": " + verdict.message;
    if (verdict.allowed != allowed) {
      ++(allowed ? counted.false_deny : counted.false_allow);
      if (!best_effort && allowed) FAIL_CHECK(which, "\n  should pass, but: ", got);
      if (!best_effort && !allowed)
        FAIL_CHECK(which, "\n  should be refused: ", row["rule"].as_string());
    } else if (column == "sanitizer" && !allowed && !best_effort) {
      const bool named =
          verdict.rule == row["rule"].as_string() || verdict.rule == row["or_rule"].as_string();
      CHECK_MESSAGE(named, which, "\n  should be ", row["rule"].as_string(), ", is ", got);
    }
  }
  MESSAGE(column, ": ", told(count));
  if (interpreters.deny != 0) MESSAGE(column, ", interpreters: ", told(interpreters));
}

}  // namespace

TEST_CASE("corpus: the sanitizer refuses what is labelled so, by its rule, and nothing else") {
  judge("sanitizer");
}

TEST_CASE("corpus: allowed patterns let pass what is labelled so, and nothing else") {
  judge("whitelist");
}

TEST_CASE("corpus: blocked patterns refuse what is labelled so, and nothing else") {
  judge("blacklist");
}
