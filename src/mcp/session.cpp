// The session: lines become messages.

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

CallPtr Session::on_line(std::string_view line) {
  if (is_blank(line)) return nullptr;
  JsonLimits limits;
  limits.max_values = most_values;
  Expected<Json> message = Json::parse(line, limits);
  if (!message) {
    on_unreadable(line, message.error());
    return nullptr;
  }
  if (!message->is_array()) return on_message(std::move(*message), nullptr);
  if (negotiated_ == batching_version && message->size() > 0) {
    on_batch(std::move(*message));
  } else {
    refuse_line(Id(), invalid_request,
                "Invalid request: an array of messages is served only in protocol version "
                "2025-03-26, and never an empty one");
  }
  return nullptr;
}

void Session::on_unreadable(std::string_view line, const Error& error) {
  const std::size_t bad = find_invalid_utf8(line);
  if (bad == std::string_view::npos) {
    IdScanner scanner;
    scanner.feed(line);
    return refuse_line(scanner.id(), parse_error, concat("Parse error: %", {error.message}));
  }
  JsonLimits lenient;
  lenient.max_values = most_values;
  lenient.accept_invalid_utf8 = true;
  const Expected<Json> readable = Json::parse(line, lenient);
  Id id;
  if (readable && readable->is_object()) {
    const Json* id_value = readable->find("id"sv);
    const bool request = (*readable)["method"sv].is_string();
    const bool response = !request && (readable->find("result"sv) || readable->find("error"sv));
    if (response || (request && !id_value)) {
      ++bad_lines_;
      return log("ignored a message that is not UTF-8"sv);
    }
    if (id_value) id = id_of(*id_value);
  } else if (!readable) {
    IdScanner scanner;
    scanner.feed(line);
    id = scanner.id();
  }
  refuse_line(id, parse_error, concat("Parse error: invalid UTF-8 at byte %", {bad}));
}

void Session::on_too_long(const Id& id) {
  refuse_line(id, parse_error,
              concat("Parse error: the message is longer than % bytes", {options_.max_line}));
}

// Answers a line that is no message. After a few in a row that is only logged: what comes in could
// be the echo of our own answers. A client waits for the answer to an id, so those are more.
void Session::refuse_line(const Id& id, int code, std::string_view message) {
  if (bad_lines_ < (id.spelling.empty() ? answered_bad_lines : answered_bad_ids)) {
    ++bad_lines_;
    log(message);
    fail(nullptr, id.spelling, code, message);
  } else {
    log(concat("not answered: %", {message}));
  }
}

void Session::on_batch(Json messages) {
  const std::size_t most = std::min(longest_batch, options_.max_reply / smallest_reply);
  if (messages.size() > most)
    return refuse_line(Id(), invalid_request,
                       concat("Invalid request: more than % messages in a batch", {most}));
  const auto batch = new_shared<Batch>();
  batch->share = options_.max_reply / messages.size() - 2;
  for (const Json& message : messages.items()) {
    CallPtr call = on_message(message, batch);
    if (!call) continue;
    // Only one call can run here, and more messages are to come: others take them.
    const std::lock_guard<std::mutex> lock(mutex_);
    --running_;
    waiting_.push_back(std::move(call));
    call_a_thread();
  }
  count_down(*batch);
}

CallPtr Session::on_message(Json message, const std::shared_ptr<Batch>& batch) {
  const auto refuse = [&](const Id& id, std::string_view problem) -> CallPtr {
    const std::string text = concat("Invalid request: %", {problem});
    if (batch || !id.spelling.empty()) {
      count_up(batch);
      fail(batch, id.spelling, invalid_request, text);
    } else {
      refuse_line(id, invalid_request, text);
    }
    return nullptr;
  };
  if (!message.is_object()) return refuse(Id(), "not an object"sv);
  const Json* method = message.find("method"sv);
  const Json* id_value = message.find("id"sv);
  if (!method && (message.find("result"sv) || message.find("error"sv))) {
    bad_lines_ = 0;
    return nullptr;  // we ask for nothing, so it answers nothing
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
    if (version_two) on_notification(message);
    return nullptr;
  }
  count_up(batch);
  return on_request(std::move(message), std::move(id), batch);
}

void Session::on_notification(const Json& message) {
  if (message["method"sv].as_string() != "notifications/cancelled") return;
  const Id id = id_of(message["params"sv]["requestId"sv]);
  if (!id.spelling.empty()) cancel(id.key);
}

void Session::cancel(const std::string& key) {
  CallPtr call;
  bool was_waiting = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    subscriptions_.erase(key);
    const auto found = open_.find(key);
    if (found == open_.end()) return;
    call = found->second;
    open_.erase(found);
    const auto place = find_in(waiting_, call);
    was_waiting = place != waiting_.end();
    if (was_waiting) waiting_.erase(place);
  }
  if (!call->finish()) return;
  call->cancel.cancel();
  if (was_waiting && call->batch) count_down(*call->batch);
}

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
