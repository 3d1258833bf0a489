// The session: calls that take long become tasks (the extension io.modelcontextprotocol/tasks).
//
//   tools/call --> answered within task_time: the result, as ever
//              --> not: {"resultType":"task","taskId":...}, and the call goes on without a request
//
//   working <--> input_required         a handler asks: tasks/get has the question, tasks/update
//      |                                brings the answer
//      +--> completed | failed          tasks/get has the result or the error
//      +--> cancelled                   by tasks/cancel; what the handler returns is dropped
//
// So a client that asks for tasks gets what is short at once, and needs no more for it.

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

constexpr std::string_view cancelled_outcome = "cancelled";

}  // namespace

inline namespace inner {

bool knows_tasks(const Json& capabilities) {
  return capabilities["extensions"sv][tasks_extension].is_object();
}

bool Tasks::add(const CallPtr& call) {
  const std::lock_guard<std::mutex> lock(mutex_);
  drop_expired();
  if (tasks_.size() >= most_tasks) {
    const auto ended =
        find_where(tasks_, [](const CallPtr& task) { return !task->outcome.empty(); });
    if (ended == tasks_.end()) return false;
    tasks_.erase(ended);
  }
  call->task_id = random_hex(16);
  call->task_began = call->task_changed = utc_time(::time(nullptr));
  call->task_expires = Clock::now() + keep_task_time;
  if (!call->task_id.empty()) tasks_.push_back(call);
  return !call->task_id.empty();
}

// Needs the mutex.
void Tasks::drop_expired() {
  const Clock::time_point now = Clock::now();
  while (!tasks_.empty() && tasks_.front()->task_expires <= now) {
    tasks_.front()->cancel.cancel();
    tasks_.erase(tasks_.begin());
  }
}

void Tasks::remove(const OpenCall& call) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = find_where(tasks_, [&](const CallPtr& task) { return task.get() == &call; });
  if (found != tasks_.end()) tasks_.erase(found);
}

void Tasks::end() {
  const std::lock_guard<std::mutex> lock(mutex_);
  tasks_.clear();
}

CallPtr Tasks::find(std::string_view id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  drop_expired();
  const auto found = find_where(tasks_, [&](const CallPtr& task) { return task->task_id == id; });
  return found == tasks_.end() ? nullptr : *found;
}

// A text in JSON cannot have the name of a member and its colon: the first one is the member.
void Tasks::complete(OpenCall& call, const std::string& text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (call.task_id.empty() || !call.outcome.empty() || text.empty()) return;
  const std::size_t at = std::min(text.find("\"result\":"), text.find("\"error\":"));
  call.outcome = text.substr(at, text.size() - at - 1);
  call.task_changed = utc_time(::time(nullptr));
}

void Tasks::cancel(OpenCall& call) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!call.outcome.empty()) return;
  call.outcome = cancelled_outcome;
  call.task_changed = utc_time(::time(nullptr));
}

std::string Tasks::describe(const OpenCall& call, const std::string& question) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::string& outcome = call.outcome;
  const bool has_result = !outcome.empty() && outcome != cancelled_outcome;
  const char* status = question.empty() ? "working" : "input_required";
  if (has_result) status = starts_with(outcome, "\"r"sv) ? "completed" : "failed";
  if (outcome == cancelled_outcome) status = "cancelled";
  std::string text = concat(
      "\"taskId\":\"%\",\"status\":\"%\",\"createdAt\":\"%Z\",\"lastUpdatedAt\":\"%Z\",\"ttlMs\":%,"
      "\"pollIntervalMs\":500",
      {call.task_id, status, call.task_began, call.task_changed,
       std::chrono::milliseconds(keep_task_time).count()});
  if (has_result) return concat("%,%", {text, outcome});
  if (outcome.empty() && !question.empty()) return concat("%,%", {text, question});
  return text;
}

// the session ----

// It is described while it still works: the handler may return at any time.
void Session::make_task(const CallPtr& call) {
  if (!tasks_.add(call)) return;
  const std::string task =
      concat("{\"resultType\":\"task\",%,\"_meta\":{\"%\":%}}",
             {tasks_.describe(*call, std::string()), server_info_key, server_info_});
  bool is_done = false;
  {
    const std::lock_guard<std::mutex> lock(call->mutex);
    is_done = std::exchange(call->done, true);
    call->task = call->task || !is_done;
  }
  if (is_done) return tasks_.remove(*call);
  pool_.hide(*call);
  outbox_.send(reply_text(call->request.id.spelling, task) + '\n');
}

// Null, and the request is answered: there is no such task.
CallPtr Session::task_of(const Request& request) {
  const Json& params = request.params();
  if (!knows_tasks(params["_meta"sv][capabilities_key])) {
    RpcError error = rpc_error(missing_capability, "The client has not declared tasks"sv);
    const Json extensions = Json::object({{std::string(tasks_extension), Json::object()}});
    error.data =
        Json::object({{"requiredCapabilities", Json::object({{"extensions", extensions}})}});
    fail(request, error);
    return nullptr;
  }
  CallPtr call = tasks_.find(params["taskId"sv].as_string());
  if (!call) fail(request, invalid_params, "Unknown taskId: the task is over, or never was"sv);
  return call;
}

void Replies::acknowledge(const Request& request, std::string_view members) {
  reply(request, concat("{\"resultType\":\"complete\",%\"_meta\":{\"%\":%}}",
                        {members, server_info_key, server_info_}));
}

void Session::on_task_get(Request&& request) {
  if (const CallPtr call = task_of(request))
    acknowledge(request, tasks_.describe(*call, questions_.question_of(*call)) + ',');
}

void Session::on_task_update(Request&& request) {
  const CallPtr call = task_of(request);
  if (!call) return;
  questions_.answer(*call, request.params()["inputResponses"sv]);
  acknowledge(request, ""sv);
}

void Session::on_task_cancel(Request&& request) {
  const CallPtr call = task_of(request);
  if (!call) return;
  tasks_.cancel(*call);
  call->cancel.cancel();
  questions_.drop(*call);
  acknowledge(request, ""sv);
}

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
