// The session: how calls are answered, and how their progress is reported.
//
// A result is checked before it is sent, and one that cannot be sent is replaced:
//
//   an RpcError                     sent as it is, or as a short one if it is too long
//   no structured content, though   an error for the client's program: the tool is at fault
//     the tool has an output schema,
//     or content that breaks it
//   nested too deeply               a result that says so, for the model
//   longer than max_reply           a result that says so, for the model

#include "mcp/mcp.hpp"
#include "mcp/mcp_internal.hpp"
#include "mcp/session_internal.hpp"
#include "mcp/streams_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "json/json.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace mcp {
namespace {

std::string progress_text(std::string_view token, double progress, std::optional<double> total,
                          std::string_view message, std::string_view meta) {
  std::string text = concat(
      "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
      "progress\",\"params\":{\"progressToken\":%,\"progress\":%",
      {token, Json(progress).dump()});
  if (total && std::isfinite(*total)) append_all(text, ",\"total\":%", {Json(*total).dump()});
  append_optional(text, "message"sv, utf8_prefix(message, longest_notice));
  if (!meta.empty()) append_all(text, ",\"_meta\":{%}", {meta});
  text += "}}\n";
  return text;
}

}  // namespace

inline namespace inner {

OpenCall::~OpenCall() {
  if (session) session->release(*this);
}

void OpenCall::notify(double progress, std::optional<double> total, std::string_view text) {
  session->send_progress(*this, progress, total, text);
}

// A bucket that holds 32 notices at most: each notice takes one out, and 20 a second flow in.
bool OpenCall::may_notify() {
  const Clock::time_point now = Clock::now();
  if (last_progress) {
    const std::chrono::duration<double> passed = now - notices_counted;
    notices_left = std::min(32.0, notices_left + 20 * passed.count());
  }
  notices_counted = now;
  if (notices_left < 1) return false;
  notices_left -= 1;
  return true;
}

// replies ----

// The longest answer to a request, and a byte more.
std::size_t Replies::most_bytes(const Request& request) const {
  return request.batch ? std::min(request.batch->share, options_.max_reply) : options_.max_reply;
}

void Replies::reply(const Request& request, std::string_view result) {
  std::string text = reply_text(request.id.spelling, result);
  if (text.size() >= most_bytes(request))
    return fail(request, internal_error, "The result is too long to be sent"sv);
  deliver(request.batch.get(), std::move(text));
}

void Replies::fail(const Request& request, const RpcError& error) {
  deliver(request.batch.get(), error_text(request.id.spelling, error));
}

void Replies::fail(const Request& request, int code, std::string_view message) {
  fail(request, rpc_error(code, message));
}

void Replies::deliver(Batch* batch, std::string text) {
  if (!batch) {
    text += '\n';
    return outbox_.send(std::move(text));
  }
  const std::lock_guard<std::mutex> lock(batch->mutex);
  batch->replies += batch->replies.empty() ? '[' : ',';
  batch->replies += text;
}

Batch::~Batch() {
  if (!replies.empty()) outbox.send(std::move(replies) + "]\n");
}

ToolResult Session::invoke(const CallPtr& call) {
#if defined(__cpp_exceptions)
  try {
    return call->tool->handler(Call::State::handle(call));
  } catch (const std::exception& error) {
    const std::string_view what = std::string_view(error.what()).substr(0, 500);
    return ToolResult::error(concat("The tool % failed: %", {call->tool->name, what}));
  } catch (...) {
    return ToolResult::error(concat("The tool % failed.", {call->tool->name}));
  }
#else
  return call->tool->handler(Call::State::handle(call));
#endif
}

void Session::answer(const CallPtr& call, ToolResult reply) {
  release(*call);  // before the client can ask again
  // This saves the work of writing the answer; finish() decides whether it is sent.
  const bool dropped = call->is_done() && !call->is_task();
  std::string text = dropped ? std::string() : answer_text(*call, reply);
  const bool ends = call->finish();
  const bool is_sent = ends && !call->is_task();
  pool_.remove(*call);
  if (!is_sent) {
    const std::vector<Id> requests = tasks_.complete(*call, text, reply.is_error);
    if (ends) task_changed(*call, requests);
  } else {
    if (call->by_reader)
      outbox_.send_later(std::move(text) + '\n');
    else
      deliver(call->request.batch.get(), std::move(text));
  }
  call->request.batch.reset();
}

// `result` becomes the one that is sent.
std::string Replies::answer_text(const OpenCall& call, ToolResult& result) const {
  const std::string& tool = call.tool->name;
  const std::string& id = call.request.id.spelling;
  const std::size_t most = most_bytes(call.request);
  const bool modern = call.request.modern;
  const std::string meta = modern ? own_meta_ : call.related_task();
  const auto of_result = [&](const ToolResult& some) {
    return reply_text(id, result_text(some, modern, meta));
  };
  if (const std::optional<RpcError>& error = result.rpc_error) {
    std::string text = error_text(id, *error);
    if (text.size() < most) return text;
    return error_text(id, rpc_error(error->code, concat("The error of % was too long", {tool})));
  }
  if (!call.tool->output_schema.is_null() && !result.is_error && !result.structured)
    return error_text(
        id,
        rpc_error(internal_error, concat("Internal error: % gave no structured content", {tool})));
  const std::string problem = result_problem(result);
  if (!problem.empty()) return of_result(result = failure_of(tool, problem));
  if (!call.tool->output_schema.is_null() && !result.is_error) {
    const std::string wrong =
        mismatch(call.tool->output_schema, *result.structured, "structuredContent");
    if (!wrong.empty())
      return error_text(
          id, rpc_error(internal_error,
                        concat("Internal error: % broke its output_schema: %", {tool, wrong})));
  }
  if (result.structured && !gets_structured(options_, call.client)) {
    if (result.content.empty()) result.content.push_back(text_block(result.structured->dump()));
    result.structured.reset();
  }
  std::string text = of_result(result);
  if (text.size() < most) return text;
  return of_result(result = failure_of(tool, concat("was dropped, because it is % bytes long as "
                                                    "JSON and at most % can be sent; ask for less",
                                                    {text.size(), most})));
}

void Replies::send_progress(OpenCall& call, double progress, std::optional<double> total,
                            std::string_view message) {
  if (call.progress_token.empty() || !std::isfinite(progress)) return;
  const std::lock_guard<std::mutex> lock(call.mutex);
  if (call.done || (call.last_progress && progress <= *call.last_progress)) return;
  if (!call.may_notify()) return;
  call.last_progress = progress;
  // The mutex of the call keeps the answer from overtaking this. offer() never waits.
  outbox_.offer(progress_text(call.progress_token, progress, total, message, call.related_task()));
}

void Replies::log(std::string_view text) {
  const std::lock_guard<std::mutex> lock(log_mutex_);
  if (options_.log) {
    options_.log(text);
  } else {
    log_to_standard_error(text);
  }
}

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
