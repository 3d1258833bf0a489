// The session: the roots of the client, which it is asked for.
//
//   2025 revisions                              2026-07-28
//
//   notifications/initialized  --->             tools/call, id 1                           --->
//                              <--- roots/list                <--- result "input_required"
//   result                     --->             tools/call, id 2, with inputResponses      --->
//   notifications/roots/
//                list_changed  --->
//                              <--- roots/list
//
// Only calls that need the roots wait for them. See questions.cpp for the second way.

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

// The list as it is kept. What is no object, or is too heavy, is null.
Roots::List kept_roots(const Json& roots) {
  Json kept = Json::array();
  for (const Json& root : roots.items()) {
    if (kept.size() == most_roots) break;
    kept.push_back(root.is_object() && weight_of(root) <= heaviest_root ? root : Json());
  }
  return new_shared<const Json>(std::move(kept));
}

}  // namespace

inline namespace inner {

// the table ----

bool Roots::begin(std::string key, bool first) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (first && asked_) return false;
  const Clock::time_point now = Clock::now();
  again_ = !key_.empty() && now < asked_at_ + roots_time;
  if (again_) return false;
  key_ = std::move(key);
  asked_ = true;
  asked_at_ = now;
  return true;
}

bool Roots::is_settled() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !is_open();
}

bool Roots::settle(std::string_view key, const Json& message, bool& again) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (key.empty() || key != key_) return false;
  key_.clear();
  again = again_;
  if (const Json& roots = message["result"sv]["roots"sv]; roots.is_array())
    known_ = kept_roots(roots);
  changed_.notify_all();
  return true;
}

Expected<Roots::List> Roots::wait(std::chrono::milliseconds timeout) {
  std::unique_lock<std::mutex> lock(mutex_);
  const bool in_time =
      changed_.wait_until(lock, asked_at_ + timeout, [this] { return !is_open(); });
  if (known_) return known_;
  if (ended_) return with_message(system_error(ECANCELED, ""), "roots: the client has left");
  if (in_time) return make_error(ErrorCode::parse, "roots: the client has not named any");
  Error late;
  late.code = ErrorCode::limit;
  late.system_error = ETIMEDOUT;
  return with_message(late, concat("roots: no answer in % ms", {timeout.count()}));
}

void Roots::end() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

// asking ----

Expected<std::shared_ptr<const Json>> OpenCall::roots(std::chrono::milliseconds timeout) {
  return session->roots(*this, timeout);
}

// In the 2025 revisions, if the client offers its roots and no request is open. `first`: unless it
// was asked before.
void Session::ask_for_roots(bool first) {
  if (!has_roots_) return;
  const std::string id = std::to_string(++asked_);
  if (roots_.begin(concat("n%", {id}), first))
    outbox_.send(concat("{\"jsonrpc\":\"2.0\",\"id\":%,\"method\":\"roots/list\"}\n", {id}));
}

// A client that calls without notifications/initialized is asked here.
Expected<Roots::List> Session::roots(OpenCall& call, std::chrono::milliseconds timeout) {
  if (!call.has_roots)
    return make_error(ErrorCode::unsupported, "roots: the client does not offer them");
  constexpr std::string_view key = "modern";  // no id of a request is this
  if (!call.request.modern) {
    ask_for_roots(true);
  } else if (roots_.begin(std::string(key), true)) {
    const auto answer = ask(call, "\"method\":\"roots/list\"", roots_time);
    bool again = false;
    (void)roots_.settle(key, answer ? Json::object({{"result", *answer}}) : Json(), again);
  }
  if (roots_.is_settled()) return roots_.wait(timeout);
  // A few calls have others run in their place while they wait: each has a thread.
  const bool gives_way = roots_waiters_.fetch_add(1) < most_questions;
  if (gives_way) pool_.begin_waiting(call);
  auto roots = roots_.wait(timeout);
  if (gives_way) pool_.end_waiting();
  roots_waiters_.fetch_sub(1);
  return roots;
}

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
