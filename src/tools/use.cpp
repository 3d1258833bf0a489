// Fair use: how long and how many commands may run.

#include "tools/tools.hpp"
#include "tools/tools_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

std::string UseCounter::refusal_of_call(const std::string& tool) {
  if (calls_per_minute_ == 0) return {};
  const std::lock_guard<std::mutex> lock(mutex_);
  auto found = find_where(calls_, [&](const auto& known) { return known.first == tool; });
  if (found == calls_.end()) found = calls_.emplace(found, tool, std::vector<Clock::time_point>());
  std::vector<Clock::time_point>& calls = found->second;
  const Clock::time_point now = Clock::now();
  auto recent = calls.begin();
  while (recent != calls.end() && now - *recent >= window) ++recent;
  calls.erase(calls.begin(), recent);
  if (calls.size() < calls_per_minute_) {
    calls.push_back(now);
    return {};
  }
  const auto left = std::chrono::ceil<std::chrono::seconds>(window - (now - calls.front()));
  return concat("% may be called % times in a minute (calls_per_minute); try again in % seconds",
                {tool, calls_per_minute_, left.count()});
}

std::chrono::milliseconds UseCounter::time_left() const {
  if (running_time_ == no_limit) return no_limit;
  const std::lock_guard<std::mutex> lock(mutex_);
  return running_time_ - time_used(Clock::now());
}

std::string UseCounter::refusal_of_command() const {
  return concat(
      "the commands of this session have used up the % seconds they may take together "
      "(running_time)",
      {seconds_text(running_time_)});
}

Function<void()> UseCounter::begin(const std::shared_ptr<UseCounter>& counter) {
  if (counter->running_time_ == no_limit) return {};
  const Clock::time_point begin = Clock::now();
  const std::lock_guard<std::mutex> lock(counter->mutex_);
  ++counter->running_;
  counter->starts_ += begin.time_since_epoch();
  return [counter, begin, over = new_shared<std::atomic<bool>>(false)] {
    if (!over->exchange(true)) counter->end(begin);
  };
}

std::chrono::milliseconds UseCounter::time_used(Clock::time_point now) const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      finished_ + now.time_since_epoch() * running_ - starts_);
}

void UseCounter::end(Clock::time_point begin) {
  const std::lock_guard<std::mutex> lock(mutex_);
  --running_;
  starts_ -= begin.time_since_epoch();
  finished_ += Clock::now() - begin;
}

bool is_session_id(std::string_view id) {
  constexpr std::string_view allowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  return !id.empty() && id.size() <= 64 && id.find_first_not_of(allowed) == std::string_view::npos;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
