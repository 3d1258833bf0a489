// Records of commands as JSON, and the file that keeps them.
#pragma once

#include "base/base.hpp"
#include "executor/executor.hpp"
#include "json/json.hpp"

namespace codeexec {
inline namespace v0_1 {

// {"time","host","pid","agent_id"?,"client"?,"request"?,"session_id"?,"shell_id"?,"tool",
//  "command","command_bytes"?,"code"?,"code_bytes"?,"input"?,"input_bytes"?,"input_sha256"?,
//  "work_dir",
//  "allowed","rule"?,"rule_begin"?,"rule_end"?,"message"?,"asked"?,"answer"?,"outcome",
//  "idle"?,"exit_code","signal"?,
//  "duration_ms","cpu_ms","peak_memory"?,"stdout_bytes","stdout_sha256"?,"stdout"?,
//  "stderr_bytes","stderr_sha256"?,"stderr"?,"sandbox"?,"container"?,"place"?,"limits_reached"?,
//  "changed_files"?,"put_back"?,"connections"?,"redactions"?}.
// A command or code longer than 16 KiB is cut; command_bytes or code_bytes then has its whole
// length. input is cut to 4 KiB, and input_bytes is its whole length. rule_begin and rule_end are
// the offending bytes of the whole command, where the rule knows them. The hashes are SHA-256: of
// the whole stream, secrets masked, however little of it is kept; those of an empty stream are left
// out. sandbox is there when its mode is not off: {"mode","network","missing"?}, of which missing
// is what could not be had. redactions counts the secrets that were masked in the output.
// peak_memory is in bytes, of the largest process. Each of connections is
// {"name","port","verdict","reason"?,"sent","received"}, see Connection; if there were more, the
// last one is {"omitted"}, a count.
Json to_json(const AuditRecord& record);

}  // namespace v0_1
}  // namespace codeexec
