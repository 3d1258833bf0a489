// The engine thread.

#include "process/reactor_internal.hpp"

#include "process/child_internal.hpp"
#include "process/plan_internal.hpp"
#include "process/process.hpp"
#include "process/start_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Id of the process in which this thread is one of the engine's, or 0. A fork made in a callback
// copies the value and has no such thread, so the id is compared.
thread_local pid_t event_thread_of = 0;

}  // namespace

inline namespace inner {

void become_event_thread() { event_thread_of = ::getpid(); }

bool in_event_thread() noexcept { return event_thread_of != 0 && event_thread_of == ::getpid(); }

void abort_in_callback(const char* function) {
  std::fprintf(stderr,
               "codeexec: %s was called in a callback of a started program, on the thread that it "
               "would wait for\n",
               function);
  std::abort();
}

}  // namespace inner

std::shared_ptr<Process::Reactor> Process::Reactor::shared(int& error) {
  struct Shared {
    std::mutex mutex = {};
    std::weak_ptr<Reactor> reactor = {};
  };
  // Never destroyed: handles in static objects may end after it would.
  static Shared& current = *new Shared;
  const std::lock_guard<std::mutex> lock(current.mutex);
  std::shared_ptr<Reactor> reactor = current.reactor.lock();
  if (reactor && reactor->is_ours()) return reactor;
  reactor = new_shared<Reactor>();
  error = reactor->begin();
  if (error != 0) return nullptr;
  current.reactor = reactor;
  return reactor;
}

int Process::Reactor::begin() {
  owner = ::getpid();
  if (!make_pipe(wake_out, wake_in)) return errno;
  set_nonblocking(wake_out);
  set_nonblocking(wake_in);
  const int error = start_thread(&thread, thread_main, this);
  has_thread = error == 0;
  return error;
}

Process::Reactor::~Reactor() {
  if (!has_thread) return;
  if (::pthread_equal(thread, ::pthread_self())) {
    event_thread_of = 0;
    ::pthread_detach(thread);
    return;
  }
  {
    const std::lock_guard<std::mutex> lock(mutex);
    ending = true;
  }
  wake();
  ::pthread_join(thread, nullptr);
}

int Process::Reactor::begin_delivery(const State& state) {
  return state.delivery.mailbox ? delivery_of(state).begin() : 0;
}

void Process::Reactor::add(Run&& run) noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    incoming.splice(incoming.end(), run);
  }
  wake();
}

void Process::Reactor::add(Watched&& watch) noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex);
    incoming_watches.splice(incoming_watches.end(), watch);
  }
  wake();
}

// A command has its turn, then those that wait for theirs. Without memory to wait for the next one
// it has that at once.
TaskThread::Task Process::Reactor::delivery_task(const std::shared_ptr<State>& state) {
  return TaskThread::task([this, state] {
    while (state->delivery.deliver(state))
      if (enough_memory([&] { delivery_of(*state).add(delivery_task(state)); })) return;
  });
}

void Process::Reactor::wake() {
  // A full pipe wakes the thread as well. If the kernel lacks memory, this tries again: after a
  // lost wake-up the thread would wait without end.
  while (::write(wake_in.get(), "", 1) < 0 && (errno == EINTR || errno == ENOMEM))
    ::poll(nullptr, 0, 1);
}

void Process::Reactor::let_go(std::shared_ptr<Reactor>&& handle) {
  if (Reactor* const reactor = handle.get()) reactor->keep(handle);
}

// Under the mutex to the end: with the reference the thread may destroy this object. While `self`
// has one, this is not the last.
void Process::Reactor::keep(std::shared_ptr<Reactor>& handle) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (self)
    handle.reset();
  else
    self = std::move(handle);
  wake();
}

void* Process::Reactor::thread_main(void* self) {
  become_event_thread();
  static_cast<Reactor*>(self)->loop();
  return nullptr;
}

void Process::Reactor::add_watches(std::vector<pollfd>& set, Clock::time_point& deadline) {
  for (const std::shared_ptr<Watch>& watch : watches) {
    set.push_back({watch->descriptor, POLLIN, 0});
    // Its wake-up may be spent already.
    deadline = std::min(deadline, watch->is_due.load() ? Clock::now() : watch->deadline);
  }
}

void Process::Reactor::look_at_watches(const std::vector<pollfd>& set) {
  const Clock::time_point now = Clock::now();
  std::size_t entry = set.size() - std::min(set.size(), watches.size());
  for (const std::shared_ptr<Watch>& watch : watches) {
    const bool is_ready = entry < set.size() && set[entry++].revents != 0;
    const bool is_due = is_ready || watch->is_due.load() || now >= watch->deadline;
    if (is_due && !watch->over.exchange(true)) starts.add(std::move(watch->task));
  }
}

// What waits to be delivered goes to the thread that does it; with its last step a run does, too,
// as that thread is to free it.
void Process::Reactor::pass_on() {
  for (auto at = running.begin(); at != running.end();) {
    State& state = **at;
    const bool over = state.over();
    Mailbox* const mailbox = state.delivery.mailbox.get();
    const bool is_claimed = mailbox && mailbox->claim();
    if (mailbox && (over || is_claimed)) {
      TaskThread::Task task;
      if (!enough_memory([&] { task = delivery_task(*at); })) {
        if (is_claimed) mailbox->unclaim();
        lacks_memory = true;
        ++at;
        continue;
      }
      TaskThread& courier = delivery_of(state);
      if (over) at->reset();
      courier.add(std::move(task));
    }
    at = over ? running.erase(at) : std::next(at);
  }
}

void Process::Reactor::add_descriptors(std::vector<pollfd>& set, Clock::time_point& deadline) {
  set.clear();
  set.push_back({wake_out.get(), POLLIN, 0});
  for (const std::shared_ptr<State>& state : running) {
    if (state->over()) continue;  // it is still to be delivered
    state->add_descriptors(set);
    deadline = std::min(deadline, state->deadline());
  }
  add_watches(set, deadline);
}

void Process::Reactor::loop() {
  State::ReadBuffer buffer;
  std::vector<pollfd> set;
  for (;;) {
    Clock::time_point deadline = Clock::time_point::max();
    std::shared_ptr<Reactor> last;
    {
      const std::lock_guard<std::mutex> lock(mutex);
      if (ending) return;
      // A request to a new run may have woken this thread before the run was in the list. That
      // wake-up is spent, so each new run gets one step without waiting.
      if (!incoming.empty()) deadline = Clock::now();
      running.splice(running.end(), incoming);
      watches.splice(watches.end(), incoming_watches);
      // Before this thread looks whether it has anything to do: it may not be woken again.
      watches.remove_if([](const std::shared_ptr<Watch>& watch) { return watch->over.load(); });
      if (running.empty() && watches.empty()) last.swap(self);
    }
    last.reset();
    if (!in_event_thread()) return;  // that was the last reference, and this object is gone
    // Without memory the time alone is looked at.
    if (std::exchange(lacks_memory, false)) {
      pause_for_memory();
      deadline = Clock::now();
    }
    if (!enough_memory([&] { add_descriptors(set, deadline); })) {
      set.clear();
      lacks_memory = true;
    } else {
      wait_for_events(set, deadline);
      char woken[256];
      if (set[0].revents) (void)!::read(wake_out.get(), woken, sizeof woken);
    }
    for (const std::shared_ptr<State>& state : running)
      if (!state->over() && !enough_memory([&] { state->step(set, buffer); })) lacks_memory = true;
    pass_on();
    look_at_watches(set);
  }
}

}  // namespace v0_1
}  // namespace codeexec
