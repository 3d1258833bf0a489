// The session: what handlers ask the person at the client.
//
//   2025 revisions                            2026-07-28
//
//   tools/call, id 1    --->                  tools/call, id 1                       --->
//                       <--- elicitation/                 <--- result "input_required",
//                            create, id 1                      with a requestState; id 1 is done
//   result, id 1        --->                  tools/call, id 2, same arguments, with
//                                             inputResponses and requestState        --->
//                       <--- result, id 1                 <--- result, id 2
//
// In both the handler waits in elicit(). In the second, its call is parked: it has no id, and
// nothing may be sent for it, until the retry gives it a new one. The requestState is random, so
// only the client that was asked can know it, and good for one answer. A retry without the answer
// is asked again.

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

constexpr std::string_view question_name = "question";  // in inputRequests and inputResponses

SharedError was_cancelled() {
  return with_message(system_error(ECANCELED, ""),
                      "elicit: the call was cancelled or answered, or the client has left");
}

// The answer as Call::elicit() gives it, from what the client has sent.
Expected<Json> answer_of(const Json& sent, const Json& schema) {
  const std::string& action = sent["action"sv].as_string();
  if (action == "decline" || action == "cancel") return Json::object({{"action", action}});
  const auto wrong = [](std::string_view what) {
    return make_error(ErrorCode::parse, "elicit: the client has answered %", {what});
  };
  if (action != "accept")
    return wrong(concat("without an action: %", {utf8_prefix(sent["message"sv].as_string(), 200)}));
  const Json& content = sent["content"sv];
  if (!content.is_object()) return wrong("accept without a content");
  const std::string problem = mismatch(schema, content, "content");
  if (!problem.empty()) return wrong(concat("something else than was asked for: %", {problem}));
  return Json::object({{"action", action}, {"content", content}});
}

}  // namespace

inline namespace inner {

// An empty capability means forms, as that of 2025-06-18 does.
bool can_ask(const Json& capabilities) {
  const Json& elicitation = capabilities["elicitation"sv];
  return elicitation.is_object() && (elicitation.find("form"sv) || !elicitation.find("url"sv));
}

// the table ----

Expected<void> Questions::add(OpenCall& call, std::string key, std::string question) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (ended_) return was_cancelled();
  if (open_.size() >= most_questions || find_in(open_, &call) != open_.end())
    return make_error(ErrorCode::limit, "elicit: this call or % others ask already",
                      {most_questions});
  call.question_key = std::move(key);
  call.question = std::move(question);
  call.answer = Json();
  open_.push_back(&call);
  return {};
}

int Questions::wait(OpenCall& call, std::chrono::milliseconds timeout) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto is_settled = [&] { return find_in(open_, &call) == open_.end(); };
  if (changed_.wait_for(lock, timeout, is_settled))
    return call.question_key.empty() ? 0 : ECANCELED;
  open_.erase(find_in(open_, &call));
  return ETIMEDOUT;
}

void Questions::settle(std::string_view key, FunctionRef<bool(OpenCall&)> settle) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = find_where(open_, [&](OpenCall* call) { return call->question_key == key; });
  if (found == open_.end() || !settle(**found)) return;
  (*found)->question_key.clear();
  open_.erase(found);
  changed_.notify_all();
}

std::string Questions::question_of(const OpenCall& call) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return find_in(open_, &call) == open_.end() ? std::string() : call.question;
}

void Questions::answer(const OpenCall& call, const Json& responses) {
  std::string key;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (find_in(open_, &call) == open_.end()) return;
    key = call.question_key;
  }
  settle(key, [&](OpenCall& asking) {
    const Json* const answer = responses.find(question_name);
    if (answer) asking.answer = *answer;
    return answer != nullptr;
  });
}

void Questions::drop(const OpenCall& call) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = find_in(open_, &call);
  if (found != open_.end()) open_.erase(found);
  changed_.notify_all();
}

void Questions::end() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ended_ = true;
  open_.clear();
  changed_.notify_all();
}

// asking ----

Expected<Json> OpenCall::ask(std::string_view message, const Json& schema,
                             std::chrono::milliseconds timeout) {
  return session->elicit(*this, message, schema, timeout);
}

Expected<Json> Session::elicit(OpenCall& call, std::string_view message, const Json& schema,
                               std::chrono::milliseconds timeout) {
  if (!call.can_ask)
    return make_error(ErrorCode::unsupported,
                      "elicit: the client does not offer to ask a person (elicitation)");
  constexpr std::size_t deepest = deepest_output - 8;
  if (schema["type"sv].as_string() != "object" || depth_of(schema, deepest) > deepest)
    return make_error(ErrorCode::invalid_argument, "elicit: requested_schema is no flat object");
  std::string ask = "\"method\":\"elicitation/create\",\"params\":{";
  append_member(ask, "message"sv, message);
  append_all(ask, ",\"requestedSchema\":%", {schema.dump()});
  const std::string about = call.related_task();
  if (!about.empty()) append_all(ask, ",\"_meta\":{%}", {about});
  ask += '}';
  if (ask.size() + longest_id + smallest_reply / 2 > options_.max_reply)
    return make_error(ErrorCode::invalid_argument, "elicit: the question is too long");
  auto answer = this->ask(call, ask, timeout);
  if (!answer) return answer;
  return answer_of(*answer, schema);
}

// Sends a request that belongs to a call, and waits for what the client answers.
Expected<Json> Session::ask(OpenCall& call, const std::string& request,
                            std::chrono::milliseconds timeout) {
  const bool modern = call.request.modern;
  const std::string about = call.related_task();
  const std::string name = modern ? random_hex(16) : std::to_string(++asked_);
  if (name.empty()) return system_error(errno, "elicit: random numbers");
  std::string question = concat("\"inputRequests\":{\"%\":{%}}", {question_name, request});
  if (const auto added =
          questions_.add(call, concat(modern ? "s%" : "n%", {name}), std::move(question));
      !added)
    return added.error();
  pool_.begin_waiting(call);
  // The client of a task sees the question when it asks how the task is.
  const bool parked = modern && park(call);
  const bool sent = modern ? parked || call.is_task() : !call.is_done();
  if (!sent) questions_.drop(call);
  if (sent && !modern) outbox_.send(concat("{\"jsonrpc\":\"2.0\",\"id\":%,%}\n", {name, request}));
  if (sent && !about.empty()) task_changed(call);
  const auto most = std::chrono::duration_cast<std::chrono::milliseconds>(question_time);
  const int error = questions_.wait(call, std::min(timeout, most));
  pool_.end_waiting();
  if (sent && !about.empty()) task_changed(call);
  if (error == 0) return std::move(call.answer);
  if (parked) {
    pool_.remove(call);  // no request is left that its result could answer
    call.cancel.cancel();
  } else if (sent && !modern) {
    outbox_.offer(
        concat("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
               "\"requestId\":%}}\n",
               {name}));
  }
  if (error == ECANCELED) return was_cancelled();
  Error late;
  late.code = ErrorCode::limit;
  late.system_error = error;
  return with_message(late, concat("elicit: no answer in % ms", {timeout.count()}));
}

// The result that asks.
std::string Replies::question_text(const OpenCall& call) const {
  return concat("{\"resultType\":\"input_required\",%,\"requestState\":\"%\",\"_meta\":{%}}",
                {call.question, call.question_key.substr(1), own_meta_});
}

// Answers the request of a call with a question. False: the call is answered or cancelled already.
bool Session::park(OpenCall& call) {
  if (!call.finish()) return false;
  const Id id = pool_.readdress(call, Id());
  const std::shared_ptr<Batch> batch = std::move(call.request.batch);
  deliver(batch.get(), reply_text(id.spelling, question_text(call)));
  return true;
}

// answers ----

void Session::on_response(const Json& message) {
  const Id id = id_of(message["id"sv]);
  bool again = false;
  if (roots_.settle(id.key, message, again)) return again ? ask_for_roots(false) : void();
  questions_.settle(id.key, [&](OpenCall& call) {
    if (call.request.modern) return false;
    const Json* result = message.find("result"sv);
    call.answer = result ? *result : message["error"sv];
    return true;
  });
}

// The second request of a call that was answered with a question.
void Session::on_retry(Request&& request) {
  const Json& params = request.params();
  const char* problem =
      "Unknown requestState: it was used, its time is over, or this server has not given it";
  std::string again;
  questions_.settle(id_of(params["requestState"sv]).key, [&](OpenCall& call) {
    if (!call.request.modern || call.is_task()) return false;
    const Json& first = call.request.params();
    problem = "The requestState is that of another call";
    if (first["name"sv] != params["name"sv] || first["arguments"sv] != params["arguments"sv])
      return false;
    problem = nullptr;
    const Json* const answer = params["inputResponses"sv].find(question_name);
    if (!answer) {
      again = question_text(call);
      return false;
    }
    call.answer = *answer;
    (void)pool_.readdress(call, std::move(request.id));
    const std::lock_guard<std::mutex> lock(call.mutex);
    call.request.batch = std::move(request.batch);
    call.progress_token = id_of(params["_meta"sv]["progressToken"sv]).spelling;
    call.done = false;
    return true;
  });
  if (problem) return fail(request, invalid_params, problem);
  if (!again.empty()) reply(request, again);
}

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
