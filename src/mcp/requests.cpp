// The session: what is done with each request.

#include "mcp/mcp.hpp"
#include "mcp/mcp_internal.hpp"
#include "mcp/session_internal.hpp"
#include "mcp/streams_internal.hpp"

#include "base/base_internal.hpp"
#include "json/json.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace mcp {
inline namespace inner {

CallPtr Session::on_request(Json message, Id id, const std::shared_ptr<Batch>& batch) {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    if (open_.count(id.key) > 0 || subscriptions_.count(id.key) > 0) {
      lock.unlock();
      fail(batch, id.spelling, invalid_request,
           "Invalid request: the id is that of a running request");
      return nullptr;
    }
  }
  const Json* params = message.find("params"sv);
  if (params && !params->is_object()) {
    fail(batch, id.spelling, invalid_params, "Invalid params: must be an object"sv);
    return nullptr;
  }
  const std::string& method = message["method"sv].as_string();
  if (message["params"sv]["_meta"sv].find(version_key) || method == "server/discover" ||
      method == "subscriptions/listen")
    return on_modern_request(std::move(message), std::move(id), batch);
  return on_legacy_request(std::move(message), std::move(id), batch);
}

CallPtr Session::on_modern_request(Json message, Id id, const std::shared_ptr<Batch>& batch) {
  const Json& params = message["params"sv];
  const std::string& method = message["method"sv].as_string();
  if (const std::optional<RpcError> error = envelope_error(params["_meta"sv])) {
    fail(batch, id.spelling, *error);
  } else if (method == "tools/call") {
    return on_call(std::move(message), std::move(id), true, batch);
  } else if (method == "tools/list") {
    on_list(params, id, true, batch);
  } else if (method == "server/discover") {
    reply(batch, id.spelling, discover_result());
  } else if (method == "subscriptions/listen") {
    on_listen(params, id, batch);
  } else {
    fail(batch, id.spelling, method_not_found, concat("Method not found: %", {in_quotes(method)}));
  }
  return nullptr;
}

CallPtr Session::on_legacy_request(Json message, Id id, const std::shared_ptr<Batch>& batch) {
  const Json& params = message["params"sv];
  const std::string& method = message["method"sv].as_string();
  if (method == "ping") {
    reply(batch, id.spelling, "{}"sv);
  } else if (method == "initialize") {
    on_initialize(params, id, batch);
  } else if (method != "tools/call" && method != "tools/list") {
    fail(batch, id.spelling, method_not_found, concat("Method not found: %", {in_quotes(method)}));
  } else if (negotiated_.empty()) {
    fail(batch, id.spelling, invalid_params,
         "Not initialized: send initialize first, or per-request _meta (2026-07-28)");
  } else if (method == "tools/call") {
    return on_call(std::move(message), std::move(id), false, batch);
  } else {
    on_list(params, id, false, batch);
  }
  return nullptr;
}

void Session::on_initialize(const Json& params, const Id& id, const std::shared_ptr<Batch>& batch) {
  if (batch)
    return fail(batch, id.spelling, invalid_request, "Invalid request: initialize in a batch"sv);
  const Json& wanted = params["protocolVersion"sv];
  if (!wanted.is_string())
    return fail(batch, id.spelling, invalid_params,
                "Invalid params: protocolVersion must be a string");
  const std::string& version = wanted.as_string();
  client_ = client_text(params["clientInfo"sv]);
  negotiated_ = served_legacy_version(version) ? version : std::string(newest_legacy_version);
  std::string result = "{";
  append_member(result, "protocolVersion"sv, negotiated_);
  append_all(result, ",\"capabilities\":{\"tools\":{}},\"serverInfo\":%", {server_info_});
  if (!options_.instructions.empty()) {
    result += ',';
    append_member(result, "instructions"sv, options_.instructions);
  }
  result += '}';
  reply(batch, id.spelling, result);
}

std::string Session::discover_result() const {
  std::string result = concat(
      "{\"resultType\":\"complete\",\"supportedVersions\":[\"%\"],\"capabilities\":{\"tools\":{}},",
      {modern_version});
  if (!options_.instructions.empty()) {
    append_member(result, "instructions"sv, options_.instructions);
    result += ',';
  }
  append_all(result, "\"ttlMs\":3600000,\"cacheScope\":\"private\",\"_meta\":{\"%\":%}}",
             {server_info_key, server_info_});
  return result;
}

std::string Session::list_result(bool modern) const {
  std::string result = "{\"tools\":[";
  bool first = true;
  for (const ToolEntry& entry : tools_) {
    if (!std::exchange(first, false)) result += ',';
    result += listing_of(*entry.tool);
  }
  result += ']';
  if (modern)
    result += concat(
        ",\"resultType\":\"complete\",\"ttlMs\":3600000,\"cacheScope\":\"private\",\"_meta\":{\"%"
        "\":%}",
        {server_info_key, server_info_});
  result += '}';
  return result;
}

void Session::on_list(const Json& params, const Id& id, bool modern,
                      const std::shared_ptr<Batch>& batch) {
  // There is one page only, so no cursor can be ours.
  if (params.find("cursor"sv)) return fail(batch, id.spelling, invalid_params, "Invalid cursor"sv);
  reply(batch, id.spelling, list_result(modern));
}

// No notification that could be subscribed to exists here, so the honoured subset is empty.
void Session::on_listen(const Json& params, const Id& id, const std::shared_ptr<Batch>& batch) {
  if (!params["notifications"sv].is_object())
    return fail(batch, id.spelling, invalid_params,
                "Invalid params: notifications must be an object");
  if (batch)
    return fail(batch, id.spelling, invalid_request,
                "Invalid request: subscriptions/listen in a batch");
  bool full = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    full = subscriptions_.size() >= most_subscriptions;
    if (!full) subscriptions_.emplace(id.key, id.spelling);
  }
  if (full)
    return fail(batch, id.spelling, internal_error,
                concat("Too many subscriptions: at most %", {most_subscriptions}));
  outbox_.send(
      concat("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/"
             "acknowledged\",\"params\":{\"_meta\":{\"%\":%},\"notifications\":{}}}\n",
             {subscription_key, id.spelling}));
}

CallPtr Session::on_call(Json message, Id id, bool modern, const std::shared_ptr<Batch>& batch) {
  const auto call = new_shared<OpenCall>();
  call->message = std::move(message);
  const Json& params = call->message["params"sv];
  const Json& name = params["name"sv];
  const auto refuse = [&](std::string_view text) -> CallPtr {
    fail(batch, id.spelling, invalid_params, text);
    return nullptr;
  };
  if (!name.is_string()) return refuse("Invalid params: name must be a string"sv);
  for (ToolEntry& entry : tools_)
    if (entry.tool->name == name.as_string()) call->entry = &entry;
  if (!call->entry) return refuse(concat("Unknown tool: %", {in_quotes(name.as_string())}));
  static const Json none = Json::object();
  const Json* arguments = params.find("arguments"sv);
  if (arguments && !arguments->is_object())
    return refuse("Invalid params: arguments must be an object"sv);
  call->tool = call->entry->tool;
  call->arguments = arguments ? arguments : &none;
  call->meta = &params["_meta"sv];
  const Id token = id_of((*call->meta)["progressToken"sv]);
  call->progress_token = token.spelling;
  call->request_id = id.spelling;
  call->client = modern ? client_text((*call->meta)[client_info_key]) : client_;
  call->session = shared_from_this();
  const std::size_t weight = weight_of(call->message);
  call->weight = weight;
  const std::size_t others = open_weight_.fetch_add(weight);
  call->batch = batch;
  call->id = std::move(id);
  call->modern = modern;
  call->max_reply = batch ? std::min(batch->share, options_.max_reply) : options_.max_reply;
  const std::size_t around = longest_envelope + call->id.spelling.size() + server_info_.size();
  call->max_result = call->max_reply - std::min(call->max_reply, around);
  std::string problem = check_arguments(*call->tool, *call->arguments, call->converted);
  if (problem.empty() && others > 0 && others + weight > options_.max_open_bytes)
    problem =
        "The server is busy: the messages of its open calls take too much memory. Try again "
        "when some have ended.";
  if (problem.empty()) return dispatch(call);
  answer(call, ToolResult::error(problem));
  return nullptr;
}

// The call, when it can run at once; otherwise it waits, or is refused.
CallPtr Session::dispatch(CallPtr call) {
  bool ending = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending = closing_;
    if (!ending && running_ < options_.max_concurrent) {
      ++running_;
      open_.emplace(call->id.key, call);
      return call;
    }
    if (!ending && waiting_.size() < options_.max_waiting) {
      open_.emplace(call->id.key, call);
      waiting_.push_back(std::move(call));
      return nullptr;
    }
  }
  answer(call, ToolResult::error(ending ? server_ends
                                        : concat("The server is busy: % calls are running and % "
                                                 "are waiting. Try again when some have ended.",
                                                 {options_.max_concurrent, options_.max_waiting})));
  return nullptr;
}

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
