// How many commands of an executor run at a time: slots and the line of those that wait for one.
//
//   state        event or check               next         function, and the thread that calls it
//   asks         a slot is free               has a slot   take(), caller of run() or start()
//   asks         none is free                 in the line  take()
//   asks         none is free, in a callback  not started  take(), event thread: it must not wait
//   in the line  a slot is given back         has a slot   give_back(), any thread; the first only
//   in the line  the command is cancelled     not started  take(), which leaves the line
//   has a slot   the command has ended        -            give_back()
//
// What holds under the mutex: a line exists only while all slots are taken, a slot that is given
// back goes to the first in the line at once, and a waiter is in the line until it has a slot or
// has left. A cancel that comes together with the slot does not take the slot away.

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

// The slot is owned by the Ending, so it is given back also when the command does not start.
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
