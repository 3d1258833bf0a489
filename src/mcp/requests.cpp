// The session: each request goes to the function that serves its method.

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

// ERAS
//
// One process serves clients of both eras, and each request decides by itself which rules it gets:
//
//   params._meta names a protocol version, or the method is one of the modern era alone
//     |
//     +-- yes: modern (2026-07-28, stateless). The envelope in _meta is checked; nothing that came
//     |        before matters.
//     +-- no:  legacy. `initialize` agrees on one of four versions: the one that the client wants,
//              or else the newest. Tools need that first; ping does not.

// A method, the eras that have it, and the function that serves it.
struct Session::Method {
  std::string_view name;
  bool legacy;
  bool modern;
  enum Needs : char { nothing, initialize, tasks } needs;  // in the legacy era
  void (Session::*serve)(Request&& request);
};

const Session::Method* Session::find_method(std::string_view name) {
  static constexpr Method methods[] = {
      {"tools/call", true, true, Method::initialize, &Session::on_call},
      {"tools/list", true, true, Method::initialize, &Session::on_list},
      {"ping", true, false, Method::nothing, &Session::on_ping},
      {"logging/setLevel", true, false, Method::initialize, &Session::on_set_level},
      {"initialize", true, false, Method::nothing, &Session::on_initialize},
      {"server/discover", false, true, Method::nothing, &Session::on_discover},
      {"tasks/get", true, true, Method::tasks, &Session::on_task_get},
      {"tasks/update", false, true, Method::tasks, &Session::on_task_update},
      {"tasks/cancel", true, true, Method::tasks, &Session::on_task_cancel},
      {"tasks/result", true, false, Method::tasks, &Session::on_task_result},
      {"tasks/list", true, false, Method::tasks, &Session::on_task_list},
      {"subscriptions/listen", false, true, Method::nothing, &Session::on_listen},
  };
  for (const Method& method : methods)
    if (method.name == name) return &method;
  return nullptr;
}

void Session::on_request(Request request) {
  if (in_use(request.id))
    return fail(request, invalid_request, "Invalid request: the id is that of a running request");
  const Json* params = request.message.find("params"sv);
  if (params && !params->is_object())
    return fail(request, invalid_params, "Invalid params: must be an object"sv);
  const std::string& name = request.message["method"sv].as_string();
  const Method* const method = find_method(name);
  const Json& meta = request.params()["_meta"sv];
  request.modern =
      meta.find(version_key) || (method && !method->legacy && method->needs != Method::tasks);
  if (request.modern)
    if (const std::optional<RpcError> error = envelope_error(meta)) return fail(request, *error);
  if (!method || !(request.modern ? method->modern : method->legacy))
    return fail(request, method_not_found, concat("Method not found: %", {in_quotes(name)}));
  if (!request.modern && method->needs == Method::tasks && !has_tasks(request))
    return fail(request, method_not_found, "Tasks need protocol version 2025-11-25"sv);
  if (!request.modern && method->needs == Method::initialize && negotiated_.empty())
    return fail(request, invalid_params,
                "Not initialized: send initialize first, or per-request _meta (2026-07-28)");
  (this->*method->serve)(std::move(request));
}

bool Session::in_use(const Id& id) {
  return pool_.has(id) || listeners_.has(id) || tasks_.has_request(id);
}

void Session::on_ping(Request&& request) { reply(request, "{}"sv); }

void Session::on_initialize(Request&& request) {
  if (request.batch)
    return fail(request, invalid_request, "Invalid request: initialize in a batch"sv);
  const Json& wanted = request.params()["protocolVersion"sv];
  if (!wanted.is_string())
    return fail(request, invalid_params, "Invalid params: protocolVersion must be a string"sv);
  const std::string& version = wanted.as_string();
  client_ = client_text(request.params()["clientInfo"sv]);
  can_ask_ = (version == newest_legacy_version || version == asking_version) &&
             can_ask(request.params()["capabilities"sv]);
  has_roots_ = options_.ask_roots && request.params()["capabilities"sv]["roots"sv].is_object();
  negotiated_ = served_legacy_version(version) ? version : std::string(newest_legacy_version);
  std::string result = "{";
  append_member(result, "protocolVersion"sv, negotiated_);
  append_all(result, ",\"capabilities\":{\"logging\":{},\"tools\":{}%},\"serverInfo\":%",
             {has_tasks(request)
                  ? ",\"tasks\":{\"list\":{},\"cancel\":{},\"requests\":{\"tools\":{\"call\":{}}}}"
                  : "",
              server_info_});
  append_optional(result, "instructions"sv, options_.instructions);
  result += '}';
  reply(request, result);
}

void Session::on_discover(Request&& request) {
  std::string result = concat(
      "{\"resultType\":\"complete\",\"supportedVersions\":[\"%\"],\"capabilities\":{\"tools\":{},"
      "\"extensions\":{\"%\":{}}}",
      {modern_version, tasks_extension});
  append_optional(result, "instructions"sv, options_.instructions);
  append_all(result, ",%}", {modern_list_members()});
  reply(request, result);
}

// The members of a result in the modern era that the client may keep for an hour.
std::string Replies::modern_list_members() const {
  return concat("\"ttlMs\":3600000,\"cacheScope\":\"private\",\"_meta\":{%}", {own_meta_});
}

std::string Session::client_of(const Request& request) const {
  return request.modern ? client_text(request.params()["_meta"sv][client_info_key]) : client_;
}

void Session::on_list(Request&& request) {
  // There is only one page, so a cursor cannot come from here.
  if (request.params().find("cursor"sv)) return fail(request, invalid_params, "Invalid cursor"sv);
  const bool schemas = gets_structured(options_, client_of(request));
  std::string result = "{\"tools\":[";
  bool first = true;
  for (const ToolEntry& entry : tools_) {
    if (!std::exchange(first, false)) result += ',';
    result += listing_of(*entry.tool, has_tasks(request), schemas);
  }
  result += ']';
  if (request.modern) append_all(result, ",\"resultType\":\"complete\",%", {modern_list_members()});
  result += '}';
  reply(request, result);
}

void Session::on_listen(Request&& request) {
  const Json& wanted = request.params()["notifications"sv];
  if (!wanted.is_object())
    return fail(request, invalid_params, "Invalid params: notifications must be an object"sv);
  if (request.batch)
    return fail(request, invalid_request, "Invalid request: subscriptions/listen in a batch"sv);
  if (!listeners_.add(request.id, wanted["resourceSubscriptions"sv]))
    fail(request, internal_error,
         concat("Too many subscriptions: at most %", {most_subscriptions}));
}

void Session::on_set_level(Request&& request) {
  const Json& level = request.params()["level"sv];
  if (!is_log_level(level)) return fail(request, invalid_params, "Unknown level"sv);
  listeners_.set_level(level.as_string());
  reply(request, "{}"sv);
}

// Checks a call: the tool's name, the shape of the parameters, the arguments, the memory. The first
// two are errors of the protocol; the others become results that the model reads.
void Session::on_call(Request&& received) {
  if (received.modern && received.params().find("requestState"sv))
    return on_retry(std::move(received));
  const auto call = new_shared<OpenCall>();
  call->request = std::move(received);
  const Request& request = call->request;
  const Json& name = request.params()["name"sv];
  if (!name.is_string())
    return fail(request, invalid_params, "Invalid params: name must be a string"sv);
  for (ToolEntry& entry : tools_)
    if (entry.tool->name == name.as_string()) call->entry = &entry;
  if (!call->entry)
    return fail(request, invalid_params, concat("Unknown tool: %", {in_quotes(name.as_string())}));
  static const Json none = Json::object();
  const Json* arguments = request.params().find("arguments"sv);
  if (arguments && !arguments->is_object())
    return fail(request, invalid_params, "Invalid params: arguments must be an object"sv);
  const bool asks_for_task = has_tasks(request) && request.params().find("task"sv);
  if (asks_for_task && !request.params()["task"sv].is_object())
    return fail(request, invalid_params, "Invalid params: task must be an object"sv);
  if (asks_for_task && !call->entry->tool->tasks)
    return fail(request, method_not_found, "This tool does not run as a task"sv);
  call->session = shared_from_this();
  call->tool = call->entry->tool;
  call->request_id = request.id.spelling;
  call->arguments = arguments ? arguments : &none;
  call->meta = &request.params()["_meta"sv];
  call->progress_token = id_of((*call->meta)["progressToken"sv]).spelling;
  call->wants_progress = !call->progress_token.empty();
  call->can_ask = request.modern ? can_ask((*call->meta)[capabilities_key]) : can_ask_;
  call->has_roots =
      request.modern ? options_.ask_roots && (*call->meta)[capabilities_key]["roots"sv].is_object()
                     : has_roots_.load();
  call->client = client_of(request);
  const std::size_t weight = weight_of(request.message);
  call->weight = weight;
  const std::size_t others = open_weight_.fetch_add(weight);
  const bool tasks =
      request.modern && !request.batch && knows_tasks((*call->meta)[capabilities_key]);
  if (tasks) call->task_at = Clock::now() + task_time;
  call->runs_as_task = tasks || asks_for_task;
  if (asks_for_task && !tasks_.begin(call))
    return fail(request, internal_error, concat("Too many tasks: % are running", {most_tasks}));
  const std::size_t around = longest_envelope + request.id.spelling.size() + server_info_.size() +
                             (tasks || asks_for_task ? task_envelope + server_info_.size() : 0);
  const std::size_t most = most_bytes(request);
  call->max_result = most - std::min(most, around);
  std::string problem = check_arguments(*call->tool, *call->arguments, call->converted);
  if (problem.empty() && others > 0 && others + weight > options_.max_open_bytes)
    problem =
        "The server is busy: the messages of its open calls take too much memory. Try again "
        "when some have ended.";
  if (problem.empty()) problem = pool_.accept(call);
  if (!problem.empty()) answer(call, ToolResult::error(problem));
}

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
