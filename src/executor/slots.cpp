// How many commands of an executor run at a time: slots and the line of those that wait for one.
//
//   state        event or check           next         function, and the thread that calls it
//   asks         a slot is free           has a slot   take(), caller of run() or start()
//   asks         none is free             in the line  take()
//   in the line  a slot is given back     has a slot   give_back(), any thread; the first only
//   in the line  cancelled, or too late   not started  leave(): the blocking take(), or the thread
//                                                      of queued starts
//   has a slot   the command has ended    -            give_back()
//
// What holds under the mutex: a line exists only while all slots are taken, a slot that is given
// back goes to the first in the line at once, and a waiter is in the line until it has a slot or
// has left. A cancel that comes together with the slot does not take the slot away.

#include "executor/slots_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

bool Slots::take_free(std::size_t count) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (taken_ >= count) return false;
  ++taken_;
  return true;
}

bool Slots::take(std::size_t count, Line&& waiter) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (taken_ < count) {
    ++taken_;
    return true;
  }
  line_.splice(line_.end(), waiter);
  return false;
}

bool Slots::leave(const std::shared_ptr<Waiter>& waiter) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto at = std::find(line_.begin(), line_.end(), waiter);
  if (at == line_.end()) return false;
  line_.erase(at);
  return true;
}

bool Slots::take(std::size_t count, const std::optional<CancelToken>& cancel,
                 Clock::time_point deadline) {
  if (take_free(count)) return true;
  const CancelToken called;
  const auto waiter = new_shared<Waiter>();
  waiter->called = [called] { called.cancel(); };
  Line entry = {waiter};
  return take(count, std::move(entry)) || wait_for_event(called, cancel, deadline) ||
         !leave(waiter);
}

void Slots::give_back() {
  Function<void()> called;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (line_.empty()) {
      --taken_;
      return;
    }
    called = std::exchange(line_.front()->called, nullptr);
    line_.pop_front();
  }
  called();
}

}  // namespace v0_1
}  // namespace codeexec
