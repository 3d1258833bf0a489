// How many commands of an executor run at a time: slots and the line of those that wait for one.

#include "executor/slots_internal.hpp"

#include "executor/gate_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

struct Slots::Waiter {
  CancelToken called = {};  // cancelled when it has a slot
  Waiter* next = nullptr;
};

bool Slots::take(std::size_t count, const std::optional<CancelToken>& cancel) {
  std::optional<Waiter> self;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (taken_ < count) {
      ++taken_;
      return true;
    }
    if (in_event_thread()) return false;
    self.emplace();
    Waiter** end = &first_;
    while (*end) end = &(*end)->next;
    *end = &*self;
  }
  wait_for_event(self->called, cancel, Clock::time_point::max());
  // give_back() uses a waiter under the mutex only, so it can go away after this.
  const std::lock_guard<std::mutex> lock(mutex_);
  if (self->called.cancelled()) return true;
  Waiter** at = &first_;
  while (*at != &*self) at = &(*at)->next;
  *at = self->next;
  return false;
}

void Slots::give_back() {
  const std::lock_guard<std::mutex> lock(mutex_);
  Waiter* const next = first_;
  if (!next) {
    --taken_;
    return;
  }
  first_ = next->next;
  next->called.cancel();
}

bool Executor::Gate::take_slot(const Command& command, Admission& admission) const {
  if (options.max_concurrent == 0 || command.background) return true;
  if (slots.take(options.max_concurrent, command.cancel)) {
    admission.ending.slot =
        owner_of(&slots, [](void* taken) { static_cast<Slots*>(taken)->give_back(); });
    return true;
  }
  Error error = cancelled_before_start();
  if (in_event_thread()) {
    error.system_error = 0;
    error.message = concat(
        "as many commands run as may run at a time (%), and a callback of a started command cannot "
        "wait for their end",
        {options.max_concurrent});
  }
  admission.fail(error, step_name(SpawnStep::setup));
  return false;
}

}  // namespace v0_1
}  // namespace codeexec
