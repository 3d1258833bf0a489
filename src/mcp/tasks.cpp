// The session: calls that take long become tasks. Both eras have them, in one table.
//
// 2026-07-28, the extension io.modelcontextprotocol/tasks: the server decides.
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
//
// 2025-11-25: the client decides, call by call. States are the same ones, but `failed` is also what
// the tool says to have failed. A question goes to the client as ever.
//
//   tools/call with `task` --> {"task":{"taskId":...}} at once; each change is notified
//   tasks/get: the state; tasks/result: waits for the end, then what the call would have given

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

std::string OpenCall::related_task() const {
  if (request.modern || task_id.empty()) return {};
  return concat("\"%\":{\"taskId\":\"%\"}", {related_task_key, task_id});
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
  requests_.clear();
}

CallPtr Tasks::find(std::string_view id, bool modern) {
  const std::lock_guard<std::mutex> lock(mutex_);
  drop_expired();
  const auto found = find_where(tasks_, [&](const CallPtr& task) {
    return task->task_id == id && task->request.modern == modern;
  });
  return found == tasks_.end() ? nullptr : *found;
}

std::vector<CallPtr> Tasks::list() {
  const std::lock_guard<std::mutex> lock(mutex_);
  drop_expired();
  std::vector<CallPtr> all;
  for (const CallPtr& task : tasks_)
    if (!task->request.modern) all.push_back(task);
  return all;
}

// Needs the mutex.
std::vector<Id> Tasks::take_requests(const OpenCall& call) {
  std::vector<Id> taken;
  for (auto at = requests_.begin(); at != requests_.end();) {
    if (at->second.get() == &call) {
      taken.push_back(std::move(at->first));
      at = requests_.erase(at);
    } else {
      ++at;
    }
  }
  return taken;
}

bool Tasks::await(const CallPtr& call, Id& id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!call->outcome.empty()) return true;
  if (requests_.size() < most_result_requests)
    requests_.emplace_back(std::exchange(id, Id()), call);
  return false;
}

bool Tasks::has_request(const Id& id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return find_where(requests_, [&](const auto& each) { return each.first.key == id.key; }) !=
         requests_.end();
}

void Tasks::remove_request(const Id& id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found =
      find_where(requests_, [&](const auto& each) { return each.first.key == id.key; });
  if (found != requests_.end()) requests_.erase(found);
}

bool Tasks::begin(const CallPtr& call) {
  if (!add(call)) return false;
  call->task = call->hidden = true;
  outbox_.send(
      reply_text(call->request.id.spelling, concat("{\"task\":{%}}", {describe(*call, ""sv)})) +
      '\n');
  return true;
}

// An id that is longer than that of the call may not fit.
void Tasks::send_result(const Id& id, const OpenCall& call) {
  std::string text;
  std::string_view problem;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (call.outcome == cancelled_outcome)
      problem = "The task was cancelled"sv;
    else
      text = concat("{\"jsonrpc\":\"2.0\",\"id\":%,%}", {id.spelling, call.outcome});
  }
  if (text.size() >= options_.max_reply) problem = "The result is too long to be sent"sv;
  if (!problem.empty()) text = error_text(id.spelling, rpc_error(internal_error, problem));
  outbox_.send(std::move(text) + '\n');
}

// A text in JSON cannot have the name of a member and its colon: the first one is the member.
std::vector<Id> Tasks::complete(OpenCall& call, const std::string& text, bool tool_failed) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (call.task_id.empty() || !call.outcome.empty() || text.empty()) return {};
  const std::size_t at = std::min(text.find("\"result\":"), text.find("\"error\":"));
  call.outcome = text.substr(at, text.size() - at - 1);
  call.tool_failed = tool_failed;
  call.task_changed = utc_time(::time(nullptr));
  return take_requests(call);
}

bool Tasks::cancel(OpenCall& call, std::vector<Id>& requests) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!call.outcome.empty()) return false;
  call.outcome = cancelled_outcome;
  call.task_changed = utc_time(::time(nullptr));
  requests = take_requests(call);
  return true;
}

// Needs the mutex.
const char* Tasks::status_of(const OpenCall& call, bool asks) const {
  if (call.outcome.empty()) return asks ? "input_required" : "working";
  if (call.outcome == cancelled_outcome) return "cancelled";
  if (!starts_with(call.outcome, "\"r"sv)) return "failed";
  return !call.request.modern && call.tool_failed ? "failed" : "completed";
}

std::string Tasks::describe(const OpenCall& call, std::string_view question) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::string& outcome = call.outcome;
  const bool modern = call.request.modern;
  const std::string_view unit = modern ? "Ms"sv : ""sv;
  std::string text = concat(
      "\"taskId\":\"%\",\"status\":\"%\",\"createdAt\":\"%Z\",\"lastUpdatedAt\":\"%Z\",\"ttl%\":%,"
      "\"pollInterval%\":500",
      {call.task_id, status_of(call, !question.empty()), call.task_began, call.task_changed, unit,
       std::chrono::milliseconds(keep_task_time).count(), unit});
  if (!modern) return text;
  if (!outcome.empty() && outcome != cancelled_outcome) return concat("%,%", {text, outcome});
  if (outcome.empty() && !question.empty()) return concat("%,%", {text, question});
  return text;
}

// the session ----

// It is described while it still works: the handler may return at any time.
void Session::make_task(const CallPtr& call) {
  if (!tasks_.add(call)) return;
  const std::string task = concat("{\"resultType\":\"task\",%,\"_meta\":{%}}",
                                  {tasks_.describe(*call, ""sv), own_meta_});
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

// the requests ----

// Reports it to a client of the legacy era; `requests` have waited for the end.
void TaskRequests::task_changed(const OpenCall& call, const std::vector<Id>& requests) {
  if (call.request.modern) return;
  outbox_.offer(
      concat("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tasks/status\",\"params\":{%}}\n",
             {tasks_.describe(call, questions_.question_of(call))}));
  for (const Id& id : requests) tasks_.send_result(id, call);
}

// Null, and the request is answered: there is no such task.
CallPtr TaskRequests::task_of(const Request& request) {
  const Json& params = request.params();
  if (request.modern && !knows_tasks(params["_meta"sv][capabilities_key])) {
    RpcError error = rpc_error(missing_capability, "The client has not declared tasks"sv);
    const Json extensions = Json::object({{std::string(tasks_extension), Json::object()}});
    error.data =
        Json::object({{"requiredCapabilities", Json::object({{"extensions", extensions}})}});
    fail(request, error);
    return nullptr;
  }
  CallPtr call = tasks_.find(params["taskId"sv].as_string(), request.modern);
  if (!call) fail(request, invalid_params, "Unknown taskId: the task is over, or never was"sv);
  return call;
}

void Replies::acknowledge(const Request& request, std::string_view members) {
  reply(request, concat("{\"resultType\":\"complete\",%\"_meta\":{%}}", {members, own_meta_}));
}

void TaskRequests::on_task_get(Request&& request) {
  const CallPtr call = task_of(request);
  if (!call) return;
  const std::string state = tasks_.describe(*call, questions_.question_of(*call));
  if (!request.modern) return reply(request, concat("{%}", {state}));
  acknowledge(request, state + ',');
}

void TaskRequests::on_task_update(Request&& request) {
  const CallPtr call = task_of(request);
  if (!call) return;
  questions_.answer(*call, request.params()["inputResponses"sv]);
  acknowledge(request, ""sv);
}

void TaskRequests::on_task_cancel(Request&& request) {
  const CallPtr call = task_of(request);
  if (!call) return;
  std::vector<Id> requests;
  const bool cancelled = tasks_.cancel(*call, requests);
  if (!request.modern && !cancelled)
    return fail(request, invalid_params, "The task has ended already"sv);
  if (!request.modern) (void)call->finish();
  call->cancel.cancel();
  questions_.drop(*call);
  if (request.modern) return acknowledge(request, ""sv);
  reply(request, concat("{%}", {tasks_.describe(*call, ""sv)}));
  task_changed(*call, requests);
}

void TaskRequests::on_task_result(Request&& request) {
  const CallPtr call = task_of(request);
  if (!call) return;
  if (tasks_.await(call, request.id)) {
    tasks_.send_result(request.id, *call);
  } else if (!request.id.spelling.empty()) {
    fail(request, internal_error,
         concat("Too many requests wait for tasks: at most %", {most_result_requests}));
  }
}

void TaskRequests::on_task_list(Request&& request) {
  if (request.params().find("cursor"sv)) return fail(request, invalid_params, "Invalid cursor"sv);
  std::string tasks;
  for (const CallPtr& call : tasks_.list()) {
    if (!tasks.empty()) tasks += ',';
    append_all(tasks, "{%}", {tasks_.describe(*call, questions_.question_of(*call))});
  }
  reply(request, concat("{\"tasks\":[%]}", {tasks}));
}

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
