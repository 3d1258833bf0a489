// The session: how calls are answered, and what is told of their progress.

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
                          std::string_view message) {
  std::string text = concat(
      "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
      "progress\",\"params\":{\"progressToken\":%,\"progress\":%",
      {token, number_value(progress).dump()});
  if (total && std::isfinite(*total))
    append_all(text, ",\"total\":%", {number_value(*total).dump()});
  if (!message.empty()) {
    text += ',';
    append_member(text, "message"sv, utf8_prefix(message, longest_notice));
  }
  text += "}}\n";
  return text;
}

}  // namespace

inline namespace inner {

// replies ----

void Session::reply(const std::shared_ptr<Batch>& batch, std::string_view id,
                    std::string_view result) {
  const std::size_t limit = batch ? batch->share : options_.max_reply;
  std::string text = reply_text(id, result);
  if (text.size() >= limit)
    text = error_text(id, rpc_error(internal_error, "The result is too long to be sent"sv));
  deliver(batch, std::move(text));
}

void Session::fail(const std::shared_ptr<Batch>& batch, std::string_view id,
                   const RpcError& error) {
  deliver(batch, error_text(id, error));
}

void Session::fail(const std::shared_ptr<Batch>& batch, std::string_view id, int code,
                   std::string_view message) {
  fail(batch, id, rpc_error(code, message));
}

void Session::deliver(const std::shared_ptr<Batch>& batch, std::string text) {
  if (!batch) {
    text += '\n';
    return outbox_.send(std::move(text));
  }
  {
    const std::lock_guard<std::mutex> lock(batch->mutex);
    batch->replies += batch->replies.empty() ? '[' : ',';
    batch->replies += text;
  }
  count_down(*batch);
}

// One more reply is to come, if it is for a batch at all.
void Session::count_up(const std::shared_ptr<Batch>& batch) {
  if (!batch) return;
  const std::lock_guard<std::mutex> lock(batch->mutex);
  ++batch->open;
}

// Sends a batch's replies when there are no more to come; a batch of notifications has none.
void Session::count_down(Batch& batch) {
  std::string replies;
  {
    const std::lock_guard<std::mutex> lock(batch.mutex);
    if (--batch.open > 0 || batch.replies.empty()) return;
    replies.swap(batch.replies);
  }
  replies += "]\n";
  outbox_.send(std::move(replies));
}

ToolReply Session::invoke(const CallPtr& call) {
#if defined(__cpp_exceptions)
  try {
    return call->tool->handler(Call(call));
  } catch (const std::exception& error) {
    const std::string_view what = std::string_view(error.what()).substr(0, 500);
    return ToolResult::error(concat("The tool % failed: %", {call->tool->name, what}));
  } catch (...) {
    return ToolResult::error(concat("The tool % failed.", {call->tool->name}));
  }
#else
  return call->tool->handler(Call(call));
#endif
}

void Session::answer(const CallPtr& call, const ToolReply& reply) {
  release(*call);  // before the client can ask again
  const bool cancelled = [&] {
    const std::lock_guard<std::mutex> lock(call->mutex);
    return call->done;
  }();
  // Only a saving: finish() decides.
  std::string text = cancelled ? std::string() : answer_text(*call, reply);
  if (call->finish()) {
    forget(call);
    if (call->more_follow && !call->batch)
      outbox_.send_later(std::move(text) + '\n');
    else
      deliver(call->batch, std::move(text));
  } else if (call->batch) {
    count_down(*call->batch);
  }
}

// Takes the call out of the open ones, unless the id has been taken by another since.
void Session::forget(const CallPtr& call) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = open_.find(call->id.key);
  if (found != open_.end() && found->second == call) open_.erase(found);
}

std::string Session::answer_text(const OpenCall& call, const ToolReply& reply) const {
  const std::string& tool = call.tool->name;
  const std::string_view info = call.modern ? std::string_view(server_info_) : std::string_view();
  const auto of_result = [&](const ToolResult& result) {
    return reply_text(call.id.spelling, result_text(result, info));
  };
  if (const RpcError* error = reply.rpc_error()) {
    std::string text = error_text(call.id.spelling, *error);
    if (text.size() < call.max_reply) return text;
    return error_text(call.id.spelling,
                      rpc_error(error->code, concat("The error of % was too long", {tool})));
  }
  const ToolResult& result = reply.result();
  if (!call.tool->output_schema.is_null() && !result.is_error && !result.structured)
    return error_text(
        call.id.spelling,
        rpc_error(internal_error, concat("Internal error: % gave no structured content", {tool})));
  const std::string problem = result_problem(result);
  if (!problem.empty()) return of_result(failure_of(tool, problem));
  if (!call.tool->output_schema.is_null() && !result.is_error) {
    const std::string wrong =
        mismatch(call.tool->output_schema, *result.structured, "structuredContent");
    if (!wrong.empty())
      return error_text(
          call.id.spelling,
          rpc_error(internal_error,
                    concat("Internal error: % broke its output_schema: %", {tool, wrong})));
  }
  std::string text = of_result(result);
  if (text.size() < call.max_reply) return text;
  return of_result(failure_of(
      tool,
      concat(
          "was dropped, because it is % bytes long as JSON and at most % can be sent; ask for less",
          {text.size(), call.max_reply})));
}

void Session::send_progress(OpenCall& call, double progress, std::optional<double> total,
                            std::string_view message) {
  if (call.progress_token.empty() || !std::isfinite(progress)) return;
  const std::lock_guard<std::mutex> lock(call.mutex);
  if (call.done || (call.last_progress && progress <= *call.last_progress)) return;
  if (!call.may_notify()) return;
  call.last_progress = progress;
  // Under the call's mutex, so that it cannot be overtaken by the answer; it never waits.
  outbox_.offer(progress_text(call.progress_token, progress, total, message));
}

OpenCall::~OpenCall() {
  if (session) session->release(*this);
}

void OpenCall::notify(double progress, std::optional<double> total, std::string_view text) {
  session->send_progress(*this, progress, total, text);
}

void Session::log(std::string_view text) {
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
