// The protocol's constants, parameters, tools and messages.
#pragma once

#include "mcp/mcp.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "json/json.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace mcp {
inline namespace inner {

inline constexpr std::string_view modern_version = "2026-07-28";
inline constexpr std::string_view newest_legacy_version = "2025-11-25";
inline constexpr std::string_view batching_version = "2025-03-26";
inline constexpr std::string_view asking_version = "2025-06-18";  // the first with elicitation
inline constexpr std::string_view version_key = "io.modelcontextprotocol/protocolVersion";
inline constexpr std::string_view capabilities_key = "io.modelcontextprotocol/clientCapabilities";
inline constexpr std::string_view client_info_key = "io.modelcontextprotocol/clientInfo";
inline constexpr std::string_view log_level_key = "io.modelcontextprotocol/logLevel";
inline constexpr std::string_view server_info_key = "io.modelcontextprotocol/serverInfo";
inline constexpr std::string_view tasks_extension = "io.modelcontextprotocol/tasks";
inline constexpr std::string_view related_task_key = "io.modelcontextprotocol/related-task";
inline constexpr std::string_view subscription_key = "io.modelcontextprotocol/subscriptionId";

inline constexpr int parse_error = -32700;
inline constexpr int invalid_request = -32600;
inline constexpr int method_not_found = -32601;
inline constexpr int invalid_params = -32602;
inline constexpr int internal_error = -32603;
inline constexpr int missing_capability = -32021;
inline constexpr int unsupported_version = -32022;

inline constexpr const char* server_ends = "The server is ending; the tool was not called.";
inline constexpr std::size_t longest_id = 1024;    // bytes as JSON; it is echoed in every answer
inline constexpr std::size_t longest_batch = 100;  // messages; each needs a share of max_reply
inline constexpr std::size_t most_subscriptions = 64;  // open ones
inline constexpr std::size_t most_listened = 4096;     // bytes of the URIs of each
inline constexpr std::size_t most_questions = 16;      // open ones; each has a thread and an answer
inline constexpr std::size_t most_tasks = 16;          // that run or are kept; each has a result
inline constexpr std::size_t task_envelope = 768;      // bytes around the result of one
inline constexpr std::size_t most_result_requests = 64;  // tasks/result that wait for an end
inline constexpr std::size_t most_values = 1000000;      // in one message: 100 MB at the worst
inline constexpr std::size_t longest_notice = 4096;      // bytes of a progress message
inline constexpr std::size_t deepest_output = 60;        // clients give up at 64 levels and more
inline constexpr std::size_t longest_envelope = 160;     // bytes around id, result and serverInfo
inline constexpr std::size_t smallest_reply = 4096;      // lower bound of ServerOptions::max_reply
inline constexpr unsigned answered_bad_lines = 8;   // in a row; later ones could be an echo of ours
inline constexpr unsigned answered_bad_ids = 1000;  // in a row, of those whose id can be read
// A handler that returns within quick_time is short. A short one may lose its processor for a while
// to a thread that it has woken, and must still count as short; a client notices no delay like
// this.
inline constexpr std::chrono::microseconds quick_time{200};
// After this time in a call, the reader loses its place.
inline constexpr std::chrono::milliseconds watch_time{1};
// At the end: for calls to return by themselves, then to return once they are cancelled, and then
// for the client to read what is left.
inline constexpr std::chrono::milliseconds finish_time{300};
inline constexpr std::chrono::milliseconds cancel_time{600};
inline constexpr std::chrono::milliseconds flush_time{250};
// After this time in a call, it becomes a task, if the client knows tasks; it is kept for so long.
inline constexpr std::chrono::milliseconds task_time{1000};
inline constexpr std::chrono::minutes keep_task_time{60};
inline constexpr std::chrono::hours question_time{1};  // for a person to answer, at the most
// For the program of a client to name its roots. After this time it may be asked again.
inline constexpr std::chrono::minutes roots_time{1};
inline constexpr std::size_t most_roots = 100;                       // that are kept
inline constexpr std::size_t heaviest_root = std::size_t{64} << 10;  // bytes in memory, about

bool served_legacy_version(std::string_view version);

// Appends a text as a JSON string. Bytes that are not UTF-8 become U+FFFD.
inline void append_string(std::string& out, std::string_view text) { Json(text).dump_to(out); }

// "name":"text"
void append_member(std::string& out, std::string_view name, std::string_view text);

// The same after a comma, unless the text is empty.
void append_optional(std::string& out, std::string_view name, std::string_view text);

bool is_blank(std::string_view line);

// Deepest nesting of arrays and objects, counted no further than one above `limit`.
std::size_t depth_of(const Json& value, std::size_t limit);

// Bytes that a value takes in memory, about.
std::size_t weight_of(const Json& value);

bool is_numeric(ParameterType type);

// The name of a type in a JSON Schema.
const char* type_name(ParameterType type);

// The problem with an argument, or an empty text.
std::string problem_of(const Parameter& parameter, const Json& value);

const Parameter* find_parameter(const std::vector<Parameter>& parameters, std::string_view name);

// The reason why a call cannot be made with these arguments, or an empty text. Arguments that the
// handler sees in another form go into `converted`.
std::string check_arguments(const Tool& tool, const Json& arguments, Json& converted);

// The problem with a tool, or an empty text.
std::string tool_problem(const Tool& tool);

// The tool as tools/list shows it; `tasks`: with the member that offers those of 2025-11-25.
// `schema`: with its output schema.
std::string listing_of(const Tool& tool, bool tasks, bool schema);

using Tools = std::vector<std::shared_ptr<const Tool>>;

std::string reply_text(std::string_view id, std::string_view result);

// An empty id is left out: JSON-RPC's null does not fit the protocol's schema.
std::string error_text(std::string_view id, const RpcError& error);

RpcError rpc_error(int code, std::string_view message);

// {"name":...,"version":...}
std::string server_info_of(const ServerOptions& options);

// The name and version of an implementation's info, see Call::client().
std::string client_text(const Json& info);

// Whether this client gets structuredContent, see ServerOptions::text_only_clients.
bool gets_structured(const ServerOptions& options, std::string_view client);

// The reason why a result cannot be sent, or an empty text.
std::string result_problem(const ToolResult& result);

// The place where a value does not match a JSON Schema, or an empty text. Checked are type, enum,
// const, required, properties, additionalProperties, items and the bounds of numbers, and nothing
// else. Both must have a bounded depth, see result_problem().
std::string mismatch(const Json& schema, const Json& value, const std::string& place);

ToolResult failure_of(std::string_view tool, std::string_view what);

// `meta` is a member that its `_meta` gets, or empty. Only the modern era has a resultType.
std::string result_text(const ToolResult& result, bool modern, std::string_view meta);

// The error in the envelope of a request in the modern era, if there is one.
std::optional<RpcError> envelope_error(const Json& meta);

bool is_log_level(const Json& value);

// True if a client with these capabilities can show a form to a person.
bool can_ask(const Json& capabilities);

// True if a client with these capabilities has the tasks extension.
bool knows_tasks(const Json& capabilities);

// A line on descriptor 2, unless that would block.
void log_to_standard_error(std::string_view text);

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
