// Replies, errors and notifications as text.

#include "mcp/mcp.hpp"
#include "mcp/mcp_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/names_internal.hpp"
#include "json/json.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace mcp {
namespace {

void append_content(std::string& out, const ToolResult& result) {
  out += "\"content\":[";
  bool first = true;
  for (const Json& block : result.content) {
    if (!std::exchange(first, false)) out += ',';
    block.dump_to(out);
  }
  if (result.content.empty()) {
    out += "{\"type\":\"text\",";
    append_member(out, "text"sv, result.structured ? result.structured->dump() : std::string());
    out += '}';
  }
  out += ']';
}

}  // namespace

inline namespace inner {

std::string reply_text(std::string_view id, std::string_view result) {
  return concat("{\"jsonrpc\":\"2.0\",\"id\":%,\"result\":%}", {id, result});
}

std::string error_text(std::string_view id, const RpcError& error) {
  std::string text = "{\"jsonrpc\":\"2.0\",";
  if (!id.empty()) append_all(text, "\"id\":%,", {id});
  append_all(text, "\"error\":{\"code\":%,", {error.code});
  append_member(text, "message"sv, error.message);
  if (error.data) {
    text += ",\"data\":";
    error.data->dump_to(text);
  }
  text += "}}";
  return text;
}

RpcError rpc_error(int code, std::string_view message) {
  RpcError error;
  error.code = code;
  error.message = message;
  return error;
}

std::string server_info_of(const ServerOptions& options) {
  std::string text = "{";
  append_member(text, "name"sv, options.name);
  text += ',';
  append_member(text, "version"sv, options.version);
  append_optional(text, "title"sv, options.title);
  append_optional(text, "websiteUrl"sv, options.website);
  text += '}';
  return text;
}

std::string client_text(const Json& info) {
  constexpr std::size_t longest = 256;
  const std::string text =
      concat("% %", {info["name"sv].as_string(), info["version"sv].as_string()});
  return std::string(utf8_prefix(text == " " ? "" : text, longest));
}

bool gets_structured(const ServerOptions& options, std::string_view client) {
  for (const std::string& name : options.text_only_clients)
    if (starts_with(client, name)) return false;
  return true;
}

std::string result_problem(const ToolResult& result) {
  constexpr std::size_t limit = deepest_output - 4;
  bool deep = result.structured && depth_of(*result.structured, limit) > limit;
  deep = deep || depth_of(result.meta, limit) > limit;
  for (const Json& block : result.content) {
    if (!block.is_object()) return "held a content block that is not an object";
    deep = deep || depth_of(block, limit) > limit;
  }
  return deep ? "was nested too deeply to be sent" : "";
}

ToolResult failure_of(std::string_view tool, std::string_view what) {
  return ToolResult::error(concat("The result of % %.", {tool, what}));
}

std::string result_text(const ToolResult& result, bool modern, std::string_view own_meta) {
  std::string text = "{";
  if (modern) text += "\"resultType\":\"complete\",";
  append_content(text, result);
  // Legacy clients know objects only; others read the text.
  if (result.structured && (modern || result.structured->is_object())) {
    text += ",\"structuredContent\":";
    result.structured->dump_to(text);
  }
  if (result.is_error) text += ",\"isError\":true";
  std::string meta(own_meta);
  for (const Json::Member& member : result.meta.members()) {
    if (starts_with(own_meta, concat("\"%\":", {member.name}))) continue;
    if (!meta.empty()) meta += ',';
    append_string(meta, member.name);
    meta += ':';
    member.value.dump_to(meta);
  }
  if (!meta.empty()) append_all(text, ",\"_meta\":{%}", {meta});
  text += '}';
  return text;
}

bool is_log_level(const Json& value) {
  static constexpr auto levels =
      NameSet{"alert", "critical", "debug", "emergency", "error", "info", "notice", "warning"};
  return levels.has(value.as_string());
}

std::optional<RpcError> envelope_error(const Json& meta) {
  const Json& version = meta[version_key];
  if (!version.is_string())
    return rpc_error(invalid_params, concat("params._meta needs %, a string", {version_key}));
  if (version.as_string() != modern_version) {
    RpcError error = rpc_error(unsupported_version, "Unsupported protocol version"sv);
    error.data = Json::object({{"supported", Json::array({std::string(modern_version)})},
                               {"requested", std::string(utf8_prefix(version.as_string(), 64))}});
    return error;
  }
  if (!meta[capabilities_key].is_object())
    return rpc_error(invalid_params, concat("params._meta needs %, an object", {capabilities_key}));
  const Json* level = meta.find(log_level_key);
  if (level && !is_log_level(*level))
    return rpc_error(invalid_params, concat("Unknown %", {log_level_key}));
  return std::nullopt;
}

void log_to_standard_error(std::string_view text) {
  pollfd fd = {2, POLLOUT, 0};
  if (::poll(&fd, 1, 0) != 1) return;
  const std::string line = concat("mcp: %\n", {text.substr(0, 1000)});
  write_to_pipe(2, line);
}

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
