// How many commands of an executor run at a time.
//
//   take() --a slot is free--> running --give_back()--> the first in the line gets the slot
//      |
//      +-----none is free----> in the line --gets a slot--> running
//                                   |
//                                   +-------cancelled-----> not started
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
  // Takes one of `count` slots. False if `cancel` came first, or if there is none and the caller
  // may not wait, as it is the thread on which the commands that have one end.
  bool take(std::size_t count, const std::optional<CancelToken>& cancel);
  void give_back();

 private:
  struct Waiter;

  std::mutex mutex_ = {};
  std::size_t taken_ = 0;
  Waiter* first_ = nullptr;  // the line, on the stacks of the threads that wait
};

}  // namespace v0_1
}  // namespace codeexec
