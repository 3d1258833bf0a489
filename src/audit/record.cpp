// Audit records as JSON.
//
// Called for each command that is recorded, by an audit log or by on_audit of the program. The
// result has its secrets masked before. All texts may come from a client or a command, and any
// bytes may be in them: the writer of JSON makes valid text of them.
//
//   part of a record       bound                                        function
//   names of the caller    1 KiB each, cut by Gate::record_of()         audit_json()
//   command, code          16 KiB each; then the whole size is named    audit_json()
//   verdict                of the gate and of the person who was asked  set_verdict_fields()
//   output                 max_output of each stream; size and hash     audit_json()
//   connections            100; then how many there were besides        connections_of()
//   sandbox and place      -                                            set_sandbox_fields()

#include "audit/audit.hpp"
#include "audit/audit_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "json/json.hpp"
#include "json/json_internal.hpp"
#include "process/process.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

void set_sandbox_fields(Json& object, const Result& r) {
  if (r.sandbox && r.sandbox->mode != SandboxMode::off) {
    Json sandbox = Json::object();
    sandbox.set("mode"sv, name(r.sandbox->mode));
    sandbox.set("network"sv, name(r.sandbox->network));
    if (!r.sandbox->missing.empty()) sandbox.set("missing"sv, list_of(r.sandbox->missing));
    object.set("sandbox"sv, std::move(sandbox));
  }
  if (!r.container.empty()) object.set("container"sv, r.container);
  if (!r.place.empty()) object.set("place"sv, r.place);
  if (!r.limits_reached.empty()) object.set("limits_reached"sv, list_of(r.limits_reached));
  if (!r.changed_files.empty()) object.set("changed_files"sv, list_of(r.changed_files));
  if (!r.put_back.empty()) object.set("put_back"sv, list_of(r.put_back));
  const std::uint64_t redactions = r.out_counts.redactions + r.err_counts.redactions;
  if (redactions > 0) object.set("redactions"sv, redactions);
}

}  // namespace inner

namespace {

// Result::connections; null when there are none.
Json connections_of(const Result& r) {
  if (r.connections.empty()) return Json();
  Json list = Json::array();
  for (const Connection& connection : r.connections) {
    Json object = Json::object();
    object.set("name"sv, connection.name);
    object.set("port"sv, connection.port);
    object.set("verdict"sv, connection.verdict);
    if (!connection.reason.empty()) object.set("reason"sv, connection.reason);
    object.set("sent"sv, connection.sent);
    object.set("received"sv, connection.received);
    list.push_back(std::move(object));
  }
  if (r.connections_omitted > 0) {
    Json object = Json::object();
    object.set("omitted"sv, r.connections_omitted);
    list.push_back(std::move(object));
  }
  return list;
}

void set_known(Json& object, std::string_view field, const std::string& text) {
  if (!text.empty()) object.set(field, text);
}

void set_verdict_fields(Json& object, const Result& r) {
  object.set("allowed"sv, r.outcome != Outcome::refused);
  set_known(object, "rule"sv, r.rule);
  if (r.rule_end > r.rule_begin) {
    object.set("rule_begin"sv, r.rule_begin);
    object.set("rule_end"sv, r.rule_end);
  }
  set_known(object, "message"sv, r.message);
  set_known(object, "asked"sv, r.asked);
  set_known(object, "answer"sv, r.answer);
}

}  // namespace

Json to_json(const AuditRecord& record) {
  return audit_json(record, longest_audited_text, record.max_output);
}

inline namespace inner {

// The result is valid during the call. Members whose value says nothing are left out, as audit.hpp
// marks them by `?`.
Json audit_json(const AuditRecord& record, std::size_t longest_text, std::size_t max_output) {
  const Result& r = *record.result;
  const auto milliseconds = [](std::chrono::microseconds span) {
    return static_cast<double>(span.count()) / 1000.0;
  };
  Json object = Json::object();
  const auto set_text = [&object](std::string_view field, const std::string& text) {
    object.set(field, text);
  };
  set_text("time"sv, record.time);
  set_text("host"sv, record.host);
  object.set("pid"sv, record.pid);
  set_known(object, "agent_id"sv, record.agent_id);
  set_known(object, "client"sv, record.caller.client);
  set_known(object, "request"sv, record.caller.request);
  set_known(object, "session_id"sv, record.caller.session_id);
  set_known(object, "shell_id"sv, record.caller.shell_id);
  set_text("tool"sv, record.caller.tool);
  const auto set_cut = [&](std::string_view field, const std::string& text) {
    set_text(field, std::string(utf8_prefix(text, longest_text)));
    if (text.size() > longest_text) object.set(concat("%_bytes", {field}), text.size());
  };
  set_cut("command"sv, r.command);
  if (!record.code.empty()) set_cut("code"sv, record.code);
  if (!record.input_sha256.empty()) {
    set_text("input"sv, std::string(utf8_prefix(record.input, longest_text)));
    object.set("input_bytes"sv, record.input_bytes);
    set_text("input_sha256"sv, record.input_sha256);
  }
  set_text("work_dir"sv, r.work_dir);
  set_verdict_fields(object, r);
  object.set("outcome"sv, name(r.outcome));
  if (r.idle) object.set("idle"sv, true);
  object.set("exit_code"sv, r.exit_code);
  if (r.signal != 0) object.set("signal"sv, r.signal);
  object.set("duration_ms"sv, milliseconds(r.wall_time));
  object.set("cpu_ms"sv, milliseconds(r.cpu_time));
  if (r.peak_memory > 0) object.set("peak_memory"sv, r.peak_memory);
  const auto set_stream = [&](std::string_view field, const std::string& text,
                              const OutputCounts& counts) {
    object.set(concat("%_bytes", {field}), counts.total_bytes);
    if (counts.total_bytes == 0) return;
    set_known(object, concat("%_sha256", {field}), counts.sha256);
    if (max_output > 0) set_text(field, head_and_tail(text, max_output, counts.total_bytes));
  };
  set_stream("stdout"sv, r.out, r.out_counts);
  set_stream("stderr"sv, r.err, r.err_counts);
  if (Json connections = connections_of(r); !connections.is_null())
    object.set("connections"sv, std::move(connections));
  set_sandbox_fields(object, r);
  return object;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
