// The chain of records in a file, and what results and records have in common as JSON.
#pragma once

#include "audit/audit.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "json/json.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// Audit records hold at most this much of a command, and of code.
inline constexpr std::size_t longest_audited_text = std::size_t{16} << 10;

// How the line of a record begins and ends in the audit file; between them stands what
// to_json(AuditRecord) has. See ExecutorOptions::audit_file.
inline constexpr std::string_view audit_begin = "{\"previous\":\"";
inline constexpr std::string_view audit_end = ",\"hash\":\"";
inline constexpr std::size_t sha256_digits = 64;

// The hash that the line of a record ends with; empty when it is not one.
std::string_view audit_hash(std::string_view line);

// Fields that the audit log and the result of the tool have in common.
void set_sandbox_fields(Json& object, const Result& r);

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
