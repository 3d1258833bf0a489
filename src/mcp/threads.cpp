// The pool: the threads of a session, as session_internal.hpp draws them.

#include "mcp/mcp.hpp"
#include "mcp/mcp_internal.hpp"
#include "mcp/session_internal.hpp"
#include "mcp/streams_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace mcp {
inline namespace inner {

// the pool ----

// Starts a thread. Returns 0 or an errno. Needs the mutex.
int Pool::add_thread(void (Pool::*body)(const Thread&)) {
  threads_.emplace_back();
  Thread& self = threads_.back();
  const auto run = [this, session = session_.shared_from_this(), &self, body] {
    (this->*body)(self);
    const std::lock_guard<std::mutex> lock(mutex_);
    self.ended = true;
    quiet_.notify_all();
  };
  const int error = start_own_thread(self.thread, run);
  if (error != 0) threads_.pop_back();
  return error;
}

// Calls a thread for a task that is new, and starts one if there are more tasks than idle threads.
// If none can be started, threads that are busy now do the task later. Needs the mutex.
void Pool::call_worker() {
  const std::size_t tasks = waiting_.size() + (reader_ ? 0 : 1);
  const std::size_t pool = threads_.size() - 1;  // without the watch
  if (tasks > idle_ && pool <= options_.max_concurrent + asking_) (void)add_thread(&Pool::work);
  work_.notify_one();
}

void Pool::work(const Thread& self) {
  for (;;) {
    CallPtr call;
    const Task task = next_task(self, call);
    if (task == Task::end) return;
    if (task == Task::read) session_.read_input(self);
    if (task == Task::run) run_call(call);
  }
}

// Waits for a task, and marks it as taken: by the reader's place, or as a handler that runs.
Pool::Task Pool::next_task(const Thread& self, CallPtr& call) {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    if (phase_ == Phase::closing) return Task::end;
    if (phase_ == Phase::reading && !reader_) {
      reader_ = &self;
      return Task::read;
    }
    if (!waiting_.empty() && running_ < options_.max_concurrent + asking_) {
      call = std::move(waiting_.front());
      waiting_.erase(waiting_.begin());
      ++running_;
      return Task::run;
    }
    ++idle_;
    work_.wait(lock);
    --idle_;
  }
}

// the reader's place ----

bool Pool::reads(const Thread& self) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return reader_ == &self;
}

void Pool::stop_reading(int error) {
  const std::lock_guard<std::mutex> lock(mutex_);
  reader_ = nullptr;
  if (phase_ != Phase::reading) return;
  phase_ = Phase::draining;
  read_error_ = error;
}

std::string Pool::accept(const CallPtr& call) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::size_t calls = running_ + waiting_.size();
    const std::size_t most = options_.max_concurrent + asking_;
    const bool at_once = calls < most;
    if (phase_ == Phase::closing) return server_ends;
    if (!at_once && calls - most >= options_.max_waiting)
      return concat(
          "The server is busy: % calls are running and % are waiting. Try again when some have "
          "ended.",
          {options_.max_concurrent, options_.max_waiting});
    open_.push_back(call);
    if (call->task_at < Clock::time_point::max() && std::exchange(watch_sleeps_, false))
      watch_needed_.notify_one();
    call->by_reader = at_once && call->entry->quick && !call->request.batch;
    if (!call->by_reader) {
      waiting_.push_back(call);
      call_worker();
      return {};
    }
    ++running_;
    short_call_ = call;
    short_call_began_ = Clock::now();
    if (std::exchange(watch_sleeps_, false)) watch_needed_.notify_one();
  }
  run_call(call);
  return {};
}

// Runs and answers a call that is counted in running_.
void Pool::run_call(const CallPtr& call) {
  const bool quick = session_.run_call(call);
  const std::lock_guard<std::mutex> lock(mutex_);
  call->entry->quick = quick;
  if (short_call_ == call) short_call_ = nullptr;
  --running_;
  if (phase_ != Phase::reading) quiet_.notify_all();
}

void Pool::make_task(std::unique_lock<std::mutex>& lock, Clock::time_point due) {
  const CallPtr call =
      *find_where(open_, [&](const CallPtr& open) { return open->task_at == due; });
  call->task_at = Clock::time_point::max();
  lock.unlock();
  session_.make_task(call);
  lock.lock();
}

// The watch: frees the reader's place when a short call has turned out to be a long one, and makes
// tasks of calls that take longer still.
void Pool::watch_short_calls(const Thread&) {
  constexpr int ticks_until_sleep = 20;
  std::unique_lock<std::mutex> lock(mutex_);
  while (phase_ != Phase::closing) {
    const Clock::duration age = Clock::now() - short_call_began_;
    if (short_call_ && age >= watch_time) {
      short_call_ = nullptr;
      reader_ = nullptr;
      call_worker();
    }
    Clock::time_point next = Clock::time_point::max();
    for (const CallPtr& call : open_) next = std::min(next, call->task_at);
    watch_sleeps_ = !short_call_ && age >= ticks_until_sleep * watch_time;
    if (next <= Clock::now()) {
      make_task(lock, next);
    } else if (!watch_sleeps_) {
      watch_needed_.wait_for(lock, watch_time);
    } else if (next == Clock::time_point::max()) {
      watch_needed_.wait(lock);
    } else {
      watch_needed_.wait_until(lock, next);
    }
  }
}

// A short call gives the reader's place away at once.
void Pool::begin_waiting(const OpenCall& call) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++asking_;
  if (short_call_.get() == &call) {
    short_call_ = nullptr;
    reader_ = nullptr;
  }
  call_worker();
}

void Pool::end_waiting() {
  const std::lock_guard<std::mutex> lock(mutex_);
  --asking_;
}

// the table ----

// Needs the mutex.
std::vector<CallPtr>::iterator Pool::find_open(const Id& id) {
  return find_where(
      open_, [&](const CallPtr& call) { return !call->hidden && call->request.id.key == id.key; });
}

bool Pool::has(const Id& id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return find_open(id) != open_.end();
}

void Pool::remove(const OpenCall& call) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = find_where(open_, [&](const CallPtr& open) { return open.get() == &call; });
  if (found != open_.end()) open_.erase(found);
}

void Pool::hide(OpenCall& call) {
  const std::lock_guard<std::mutex> lock(mutex_);
  call.hidden = true;
}

Id Pool::readdress(OpenCall& call, Id id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(call.request.id, std::move(id));
}

CallPtr Pool::withdraw(const Id& id, bool& was_waiting) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = find_open(id);
  if (found == open_.end()) return nullptr;
  CallPtr call = *found;
  open_.erase(found);
  const auto place = find_in(waiting_, call);
  was_waiting = place != waiting_.end();
  if (was_waiting) waiting_.erase(place);
  return call;
}

// the end ----

bool Pool::is_draining() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return phase_ == Phase::draining;
}

void Pool::wait_until_quiet(std::chrono::milliseconds time) {
  std::unique_lock<std::mutex> lock(mutex_);
  quiet_.wait_for(lock, time, [&] { return running_ == 0 && waiting_.empty(); });
}

void Pool::close(std::vector<CallPtr>& waiting, std::vector<CallPtr>& open) {
  const std::lock_guard<std::mutex> lock(mutex_);
  phase_ = Phase::closing;
  waiting.swap(waiting_);
  open = open_;
  work_.notify_all();
  watch_needed_.notify_all();
}

bool Pool::join() {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto ended = [&] {
    const auto at_work = [](const Thread& thread) { return !thread.ended; };
    return find_where(threads_, at_work) == threads_.end();
  };
  const bool all = quiet_.wait_for(lock, std::chrono::milliseconds(100), ended);
  for (const Thread& thread : threads_) {
    if (thread.ended) {
      pthread_join(thread.thread, nullptr);
    } else {
      pthread_detach(thread.thread);
    }
  }
  open_.clear();
  return all;
}

// Two threads of the pool are needed in any case: one reads while the other is in a handler.
int Pool::start() {
  const std::lock_guard<std::mutex> lock(mutex_);
  int error = add_thread(&Pool::watch_short_calls);
  for (int i = 0; i < 2 && error == 0; ++i) error = add_thread(&Pool::work);
  return error;
}

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
