// How many commands of an executor run at a time.
//
//   take() --a slot is free--> running --give_back()--> the first in the line gets the slot
//      |
//      +-----none is free----> in the line --gets a slot--> running
//                                   |
//                                   +-------cancelled, waited too long--> not started
#pragma once

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// The slots of ExecutorOptions::max_concurrent and the line of those that wait for one, in the
// order in which they came. A slot that is given back is handed to the first of the line, so that
// no later command can take it. Thread-safe.
class Slots {
 public:
  // One that waits. `called` is called once, when it has a slot, in the thread that has given that
  // back.
  struct Waiter {
    Function<void()> called = {};
  };

  // Takes one of `count` slots, if one is free.
  bool take_free(std::size_t count);
  // The same, or else `waiter`, a list of one, stands in the line. True: it has a slot, and is not
  // called. Takes no memory.
  using Line = std::list<std::shared_ptr<Waiter>>;
  bool take(std::size_t count, Line&& waiter) noexcept;
  // Leaves the line. False: it is not there, as it has got a slot.
  bool leave(const std::shared_ptr<Waiter>& waiter);
  // Takes a slot, and blocks until there is one. False if `cancel` or the deadline came first.
  bool take(std::size_t count, const std::optional<CancelToken>& cancel,
            std::chrono::steady_clock::time_point deadline);
  void give_back();

 private:
  std::mutex mutex_ = {};
  std::size_t taken_ = 0;
  Line line_ = {};
};

}  // namespace v0_1
}  // namespace codeexec
