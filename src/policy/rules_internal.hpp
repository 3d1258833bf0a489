// The sanitizer's rules: their order, and the form of their texts.
#pragma once

#include "policy/policy.hpp"

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// The rules in the order of judgement in strict mode. Each has its texts in rules.cpp.
enum class Rule : unsigned char {
  sudo,
  su,
  chmod,
  chown,
  dd,
  mkfs,
  disk_tools,
  mount,
  device_write,
  rm_protected,
  rm_unset_variable,
  mv_dev_null,
  fork_bomb,
  end_machine,
  kill_all,
  machine_settings,
  accounts,
  host_access,
  plant,
  opaque_shell_input,
  unknown_command,
};

inline constexpr std::size_t rule_count = static_cast<std::size_t>(Rule::unknown_command) + 1;

// What is said of a rule; the rows stand in rules.cpp.
struct RuleTexts {
  Rule rule;
  const char* name;         // for options and verdicts
  const char* message;      // begins the refusal
  const char* description;  // for a person: what it refuses, and what it lets pass
  const char* instead;      // ends the refusal: what to do
};
const RuleTexts& texts_of(Rule rule);

// What compat mode refuses a script for: a rule's pattern, with its message, in MassGen's words.
struct CompatRule {
  Rule rule;
  const char* pattern;
  const char* message;
};
// In MassGen's order.
struct CompatRules {
  const CompatRule* begin() const { return first; }
  const CompatRule* end() const { return last; }
  const CompatRule* first;
  const CompatRule* last;
};
CompatRules compat_rules();

constexpr std::uint32_t bit(Rule rule) { return std::uint32_t{1} << static_cast<unsigned>(rule); }

// All of them. The last one has the highest bit.
inline constexpr std::uint32_t all_rules =
    (bit(Rule::unknown_command) - 1) | bit(Rule::unknown_command);

// Those that do not apply where PolicyOptions::enable_sudo is set.
inline constexpr std::uint32_t lifted_by_sudo =
    bit(Rule::sudo) | bit(Rule::su) | bit(Rule::chmod) | bit(Rule::chown);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
