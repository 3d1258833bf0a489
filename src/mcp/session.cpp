// The session: lines become messages.
//
//   line ---> blank: ignored
//        ---> not JSON, or too long: refuse_line()
//        ---> array: on_batch(), its members are messages; only in version 2025-03-26
//        ---> object: on_message()
//               result or error without a method: on_response(), in questions.cpp
//               method without an id: on_notification()
//               method and id: on_request(), in requests.cpp
//               otherwise: an error, with the id if there is a valid one
//
// CANCELLATION. cancel() takes the call out of the table of open requests, so that its id is free
// again. A call that waits is dropped. A call that runs has its CancelToken cancelled; its handler
// goes on until it notices, and its result is dropped. If the answer is being sent at the same
// moment, finish() of the call lets one of the two win, and the other does nothing.

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
inline namespace inner {

// messages ----

void Session::on_line(std::string_view line) {
  if (is_blank(line)) return;
  JsonLimits limits;
  limits.max_values = most_values;
  Expected<Json> message = Json::parse(line, limits);
  if (!message) return on_unreadable(line, message.error());
  if (!message->is_array()) return on_message(std::move(*message), nullptr);
  if (negotiated_ == batching_version && message->size() > 0) {
    on_batch(std::move(*message));
  } else {
    refuse_line(Id(), invalid_request,
                "Invalid request: an array of messages is served only in protocol version "
                "2025-03-26, and never an empty one");
  }
}

// A line that is not JSON. An answer names the id if the scanner can find one. If only the encoding
// is wrong, the line can be read nevertheless, and what needs no answer gets none.
void Session::on_unreadable(std::string_view line, const Error& error) {
  IdScanner scanner;
  scanner.feed(line);
  const std::size_t bad = find_invalid_utf8(line);
  if (bad == std::string_view::npos)
    return refuse_line(scanner.id(), parse_error, concat("Parse error: %", {error.message}));
  JsonLimits lenient;
  lenient.max_values = most_values;
  lenient.accept_invalid_utf8 = true;
  const Expected<Json> message = Json::parse(line, lenient);
  if (message && message->is_object()) {
    const bool request = (*message)["method"sv].is_string();
    const bool response = !request && (message->find("result"sv) || message->find("error"sv));
    if (response || (request && !message->find("id"sv))) {
      ++bad_lines_;
      return log("ignored a message that is not UTF-8"sv);
    }
  }
  refuse_line(scanner.id(), parse_error, concat("Parse error: invalid UTF-8 at byte %", {bad}));
}

void Session::on_too_long(const Id& id) {
  refuse_line(id, parse_error,
              concat("Parse error: the message is longer than % bytes", {options_.max_line}));
}

// Answers a line that is no message. After a few such lines in a row it only logs them: they could
// be the echo of our own answers, which would never end. A client waits for an answer with its id,
// so lines with an id are answered more often.
void Session::refuse_line(const Id& id, int code, std::string_view message) {
  if (bad_lines_ < (id.spelling.empty() ? answered_bad_lines : answered_bad_ids)) {
    ++bad_lines_;
    log(message);
    deliver(nullptr, error_text(id.spelling, rpc_error(code, message)));
  } else {
    log(concat("not answered: %", {message}));
  }
}

void Session::on_batch(Json messages) {
  const std::size_t most = std::min(longest_batch, options_.max_reply / smallest_reply);
  if (messages.size() > most)
    return refuse_line(Id(), invalid_request,
                       concat("Invalid request: more than % messages in a batch", {most}));
  const auto batch = new_shared<Batch>(outbox_, options_.max_reply / messages.size() - 2);
  for (const Json& message : messages.items()) on_message(message, batch);
}

void Session::on_message(Json message, const std::shared_ptr<Batch>& batch) {
  const auto refuse = [&](const Id& id, std::string_view problem) {
    const std::string text = concat("Invalid request: %", {problem});
    if (batch || !id.spelling.empty()) {
      deliver(batch.get(), error_text(id.spelling, rpc_error(invalid_request, text)));
    } else {
      refuse_line(id, invalid_request, text);
    }
  };
  if (!message.is_object()) return refuse(Id(), "not an object"sv);
  const Json* method = message.find("method"sv);
  const Json* id_value = message.find("id"sv);
  if (!method && (message.find("result"sv) || message.find("error"sv))) {
    bad_lines_ = 0;
    return on_response(message);
  }
  Id id;
  if (id_value) {
    id = id_of(*id_value);
    if (id.spelling.empty())
      return refuse(Id(), "id must be a string or an integer, of at most 1024 bytes"sv);
  }
  if (!method || !method->is_string()) return refuse(id, "method must be a string"sv);
  const bool version_two = message["jsonrpc"sv].as_string() == "2.0";
  if (!version_two && id_value) return refuse(id, "jsonrpc must be \"2.0\""sv);
  bad_lines_ = 0;
  if (!id_value) {
    if (version_two) on_notification(method->as_string(), message["params"sv]);
    return;
  }
  Request request;
  request.message = std::move(message);
  request.id = std::move(id);
  request.batch = batch;
  on_request(std::move(request));
}

// Others have no effect.
void Session::on_notification(std::string_view method, const Json& params) {
  if (method == "notifications/cancelled"sv) cancel(id_of(params["requestId"sv]));
  if (method == "notifications/initialized"sv || method == "notifications/roots/list_changed"sv)
    ask_for_roots(false);
}

// Cancels the call with this id, or ends the subscription. Another id has no effect.
void Session::cancel(const Id& id) {
  listeners_.remove(id);
  tasks_.remove_request(id);
  if (id.key.empty()) return;
  bool was_waiting = false;
  const CallPtr call = pool_.withdraw(id, was_waiting);
  if (!call || !call->finish()) return;
  call->cancel.cancel();
  questions_.drop(*call);
  if (was_waiting) call->request.batch.reset();
}

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
