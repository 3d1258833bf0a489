// The session: news for clients that listen.

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

// A session keeps its tools, and a tool may keep this function: it must not keep the session.
Function<void(std::string_view, const Json&)> OpenCall::announcer() const {
  return [weak = std::weak_ptr<Session>(session)](std::string_view uri, const Json& data) {
    if (const auto alive = weak.lock()) alive->announce(uri, data);
  };
}

// News have the level info.
void Listeners::set_level(const std::string& level) {
  const std::lock_guard<std::mutex> lock(mutex_);
  wants_log_ = level == "debug" || level == "info";
}

bool Listeners::has(const Id& id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return subscriptions_.count(id.key) > 0;
}

// Honoured are URIs that can be announced, as long as there is room for them.
bool Listeners::add(const Id& id, const Json& uris) {
  std::string kept = "\n";
  std::string honoured;
  for (const Json& each : uris.items()) {
    const std::string& uri = each.as_string();
    if (options_.announced.empty() || !starts_with(uri, options_.announced) ||
        uri.find('\n') != std::string::npos || kept.size() + uri.size() >= most_listened)
      continue;
    kept += uri + '\n';
    if (!honoured.empty()) honoured += ',';
    append_string(honoured, uri);
  }
  if (!honoured.empty()) honoured = concat("\"resourceSubscriptions\":[%]", {honoured});
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (subscriptions_.size() >= most_subscriptions) return false;
    subscriptions_.emplace(id.key, id.spelling);
  }
  outbox_.send(
      concat("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/"
             "acknowledged\",\"params\":{\"_meta\":{\"%\":%},\"notifications\":{%}}}\n",
             {subscription_key, id.spelling, honoured}));
  // Not before: the client must be sent this first.
  const std::lock_guard<std::mutex> lock(mutex_);
  if (subscriptions_.count(id.key) > 0) uris_[id.spelling] = std::move(kept);
  return true;
}

void Listeners::remove(const Id& id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = subscriptions_.find(id.key);
  if (found == subscriptions_.end()) return;
  uris_.erase(found->second);
  subscriptions_.erase(found);
}

TextMap Listeners::end() {
  const std::lock_guard<std::mutex> lock(mutex_);
  uris_.clear();
  return std::exchange(subscriptions_, TextMap());
}

// The mutex keeps news from following the end of a subscription. offer() never waits.
void Listeners::announce(std::string_view uri, const Json& data) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (wants_log_) {
    std::string text =
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\"";
    append_optional(text, "logger"sv, options_.name);
    append_all(text, ",\"data\":%}}\n", {data.dump()});
    outbox_.offer(std::move(text));
  }
  const std::string line = concat("\n%\n", {uri});
  for (const auto& [id, uris] : uris_) {
    if (uris.find(line) == std::string::npos) continue;
    std::string text = concat(
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\",\"params\":{"
        "\"_meta\":{\"%\":%}",
        {subscription_key, id});
    append_optional(text, "uri"sv, uri);
    outbox_.offer(text + "}}\n");
  }
}

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
