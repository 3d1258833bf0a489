// The programs that have made places, and whether they still run.
#pragma once

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// What identifies a program among all of its machine, also after the machine was restarted.
struct ProgramIdentity {
  std::string host = {};
  std::string boot = {};
  // Its user, and the process table in which its number means something.
  std::string space = {};
  std::string pid = {};
  std::string start = {};
};

ProgramIdentity own_identity();

// The text that marks what a program has made in an engine: its parts with a `;` between them.
std::string owner_text(const ProgramIdentity& program);
// Takes those parts off the text, with the `;` after the last one.
ProgramIdentity take_owner(std::string_view& text);

// Whether a program still runs. Empty: it is of another machine or user.
std::optional<bool> still_runs(const ProgramIdentity& maker, const ProgramIdentity& own);

// Since a time as of RFC 3339, such as 2026-01-31T12:00:00.5+01:00; -1 when it is none.
std::chrono::seconds age_since(const std::string& time);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
