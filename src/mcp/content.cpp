// Content of results, and what a tool sees of its call.

#include "mcp/mcp.hpp"
#include "mcp/mcp_internal.hpp"
#include "mcp/session_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "json/json.hpp"
#include "json/json_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace mcp {
namespace {

Json of_type(const char* type) {
  Json block;
  set_member(block, "type", type);
  return block;
}

Json of_bytes(const char* type, std::string_view bytes, const std::string& mime_type) {
  Json block = of_type(type);
  set_member(block, "data", to_base64(bytes));
  set_member(block, "mimeType", mime_type);
  return block;
}

Json of_resource(const std::string& uri, const std::string& mime_type, const char* key,
                 std::string&& value) {
  Json resource;
  set_member(resource, "uri", uri);
  set_member(resource, "mimeType", mime_type);
  set_member(resource, key, std::move(value));
  Json block = of_type("resource");
  set_member(block, "resource", std::move(resource));
  return block;
}

}  // namespace

Json text_block(std::string text) {
  Json block = of_type("text");
  set_member(block, "text", std::move(text));
  return block;
}

Json image_block(std::string_view bytes, std::string mime_type) {
  return of_bytes("image", bytes, mime_type);
}

Json audio_block(std::string_view bytes, std::string mime_type) {
  return of_bytes("audio", bytes, mime_type);
}

Json resource_text_block(std::string uri, std::string mime_type, std::string text) {
  return of_resource(uri, mime_type, "text", std::move(text));
}

Json resource_blob_block(std::string uri, std::string mime_type, std::string_view bytes) {
  return of_resource(uri, mime_type, "blob", to_base64(bytes));
}

Json resource_link_block(std::string uri, std::string name, std::string mime_type,
                         std::string description) {
  Json block = of_type("resource_link");
  set_member(block, "uri", uri);
  set_member(block, "name", name);
  if (!mime_type.empty()) set_member(block, "mimeType", mime_type);
  if (!description.empty()) set_member(block, "description", description);
  return block;
}

ToolResult ToolResult::text(std::string text) {
  ToolResult result;
  result.content.push_back(text_block(std::move(text)));
  return result;
}

ToolResult ToolResult::error(std::string message) {
  ToolResult result = text(std::move(message));
  result.is_error = true;
  return result;
}

ToolResult ToolResult::with_structured(Json value) {
  ToolResult result = text(value.dump());
  result.structured = std::move(value);
  return result;
}

Call::Call(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}

const std::string& Call::tool() const noexcept { return state_->tool->name; }

const Json& Call::arguments() const noexcept { return *state_->arguments; }

const Json& Call::argument(std::string_view name) const noexcept {
  const Json& converted = state_->converted[name];
  if (!converted.is_null()) return converted;
  const Json& sent = arguments()[name];
  if (!sent.is_null()) return sent;
  const Parameter* parameter = find_parameter(state_->tool->parameters, name);
  return parameter ? parameter->default_value : sent;
}

const Json& Call::meta() const noexcept { return *state_->meta; }

const std::string& Call::request_id() const noexcept { return state_->request_id; }

const std::string& Call::client() const noexcept { return state_->client; }

const CancelToken& Call::cancel_token() const noexcept { return state_->cancel; }

bool Call::wants_progress() const noexcept { return state_->wants_progress; }
bool Call::runs_as_task() const noexcept { return state_->runs_as_task; }

void Call::progress(double progress, std::optional<double> total, std::string_view message) const {
  state_->notify(progress, total, message);
}

Expected<Json> Call::elicit(std::string_view message, const Json& requested_schema,
                            std::chrono::milliseconds timeout) const {
  return state_->ask(message, requested_schema, timeout);
}

Expected<std::shared_ptr<const Json>> Call::roots(std::chrono::milliseconds timeout) const {
  return state_->roots(timeout);
}

Function<void(std::string_view, const Json&)> Call::announcer() const {
  return state_->announcer();
}

std::size_t Call::max_result_bytes() const noexcept { return state_->max_result; }

}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
