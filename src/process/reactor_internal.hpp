// The engine: the thread that watches all started programs, and those that deliver.
#pragma once

#include "process/child_internal.hpp"
#include "process/delivery_internal.hpp"
#include "process/process.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// Leaves an object to a fork of the host that must not destroy it. This takes no memory from the
// heap, which the fork may have left locked.
template <class T>
void leak(std::shared_ptr<T>& object) noexcept {
  alignas(std::shared_ptr<T>) unsigned char left[sizeof object];
  ::new (static_cast<void*>(left)) std::shared_ptr<T>(std::move(object));
}

// Makes this thread one of those for which in_event_thread() is true.
void become_event_thread();

}  // namespace inner

// The engine thread keeps deadlines, reads pipes, writes input and reaps. It owns `running`;
// handles hand over through `incoming` and wake it by the pipe. It runs no code of the program:
// callbacks, and what they hold, belong to the threads for tasks, each of which begins when it is
// needed:
//
//   callbacks   deliver to commands that have callbacks of the program, and end those
//   endings     end all others, which so never wait for a callback
//   starts      start what has waited for its turn
//
// The last handle joins the threads. One that is dropped in a callback cannot do that: it leaves
// its reference to `self`, and the threads end when nothing runs any more.
struct Process::Reactor {
  // A descriptor and a deadline: as soon as that is ready, or this has passed, the thread of starts
  // does `task`.
  struct Watch {
    int descriptor = -1;  // -1: none
    std::chrono::steady_clock::time_point deadline = {};
    TaskThread::Task task = {};
    std::atomic<bool> is_due{false};  // as if the deadline had passed; then wake() the engine
    std::atomic<bool> over{false};    // it is not needed any more
  };
  // Lists of one, that are made before something begins which must then be added without memory.
  using Run = std::list<std::shared_ptr<State>>;
  using Watched = std::list<std::shared_ptr<Watch>>;

  static std::shared_ptr<Reactor> shared(int& error);
  Reactor() = default;
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;
  ~Reactor();

  // Starts the thread that this run needs for its delivery. Returns an errno.
  int begin_delivery(const State& state);
  void add(Run&& run) noexcept;
  void add(Watched&& watch) noexcept;
  void wake();
  // Drops a reference, and waits for no thread: in one that the last handle would join.
  static void let_go(std::shared_ptr<Reactor>&& handle);
  // False in a fork of the process that made it, which has no such thread.
  bool is_ours() const { return owner == ::getpid(); }

 private:
  int begin();
  void keep(std::shared_ptr<Reactor>& handle);
  static void* thread_main(void* self);
  void loop();
  TaskThread& delivery_of(const State& state) {
    return state.delivery.has_callbacks ? callbacks : endings;
  }
  TaskThread::Task delivery_task(const std::shared_ptr<State>& state);
  void add_descriptors(std::vector<pollfd>& set, std::chrono::steady_clock::time_point& deadline);
  void add_watches(std::vector<pollfd>& set, std::chrono::steady_clock::time_point& deadline);
  void look_at_watches(const std::vector<pollfd>& set);
  void pass_on();

  pid_t owner = -1;
  pthread_t thread = {};
  bool has_thread = false;
  UniqueFd wake_in = UniqueFd();
  UniqueFd wake_out = UniqueFd();
  Run running = {};
  Watched watches = {};
  bool lacks_memory = false;  // for a step, which is tried again a moment later
  std::mutex mutex = {};
  Run incoming = {};
  Watched incoming_watches = {};
  std::shared_ptr<Reactor> self = {};
  bool ending = false;
  // Last, so that they end before all else goes away that their tasks use.
  TaskThread callbacks{TaskThread::Kind::calls_back};
  TaskThread endings{TaskThread::Kind::calls_back};

 public:
  TaskThread starts{TaskThread::Kind::other};
};

}  // namespace v0_1
}  // namespace codeexec
