// The session: its threads, as session_internal.hpp draws them.

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
int Session::add_thread(void (Session::*body)(const Thread&)) {
  threads_.emplace_back();
  Thread& self = threads_.back();
  const int error = start_own_thread(self.thread, [session = shared_from_this(), &self, body] {
    ((*session).*body)(self);
    const std::lock_guard<std::mutex> lock(session->mutex_);
    self.ended = true;
    session->quiet_.notify_all();
  });
  if (error != 0) threads_.pop_back();
  return error;
}

// Calls a thread for a task that is new, and starts one if there are more tasks than idle threads.
// If none can be started, threads that are busy now do the task later. Needs the mutex.
void Session::call_worker() {
  const std::size_t tasks = waiting_.size() + (reader_ ? 0 : 1);
  const std::size_t pool = threads_.size() - 1;  // without the watch
  if (tasks > idle_ && pool <= options_.max_concurrent) (void)add_thread(&Session::work);
  work_.notify_one();
}

void Session::work(const Thread& self) {
  for (;;) {
    CallPtr call;
    const Task task = next_task(self, call);
    if (task == Task::end) return;
    if (task == Task::read) read_input(self);
    if (task == Task::run) run_call(call);
  }
}

// Waits for a task, and marks it as taken: by the reader's place, or as a handler that runs.
Session::Task Session::next_task(const Thread& self, CallPtr& call) {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    if (phase_ == Phase::closing) return Task::end;
    if (phase_ == Phase::reading && !reader_) {
      reader_ = &self;
      return Task::read;
    }
    if (!waiting_.empty() && running_ < options_.max_concurrent) {
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

// the reader ----

// Reads and serves messages until the input ends or the watch has given the place away. Answers of
// the reader go out together: after the last message that has been received.
void Session::read_input(const Thread& self) {
  using Event = LineReader::Event;
  std::string_view line;
  while (reads(self)) {
    if (!input_.has_line()) outbox_.push();
    // Messages that were received before the session ended are not served any more.
    const Event event = wake_.cancelled() ? Event::interrupted : input_.next(line);
    if (event == Event::line) {
      on_line(line);
    } else if (event == Event::too_long) {
      on_too_long(input_.skipped_id());
    } else {
      stop_reading(event == Event::failed ? input_.error() : 0);
    }
  }
  outbox_.push();
}

bool Session::reads(const Thread& self) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return reader_ == &self;
}

void Session::stop_reading(int error) {
  const std::lock_guard<std::mutex> lock(mutex_);
  reader_ = nullptr;
  if (phase_ != Phase::reading) return;
  phase_ = Phase::draining;
  read_error_ = error;
  ended_.cancel();
}

// Runs a call that is short, gives another one to the workers, or refuses it.
void Session::accept(const CallPtr& call) {
  std::string problem;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::size_t calls = running_ + waiting_.size();
    const bool at_once = calls < options_.max_concurrent;
    if (phase_ == Phase::closing) {
      problem = server_ends;
    } else if (!at_once && calls - options_.max_concurrent >= options_.max_waiting) {
      problem = concat(
          "The server is busy: % calls are running and % are waiting. Try again when some have "
          "ended.",
          {options_.max_concurrent, options_.max_waiting});
    } else {
      open_.push_back(call);
      call->by_reader = at_once && call->entry->quick && !call->request.batch;
      if (!call->by_reader) {
        waiting_.push_back(call);
        return call_worker();
      }
      ++running_;
      short_call_ = call;
      short_call_began_ = Clock::now();
      if (std::exchange(watch_sleeps_, false)) watch_needed_.notify_one();
    }
  }
  if (problem.empty()) return run_call(call);
  answer(call, ToolResult::error(problem));
}

// Runs and answers a call that is counted in running_.
void Session::run_call(const CallPtr& call) {
  const Clock::time_point start = Clock::now();
  const ToolReply reply = invoke(call);
  const bool quick = Clock::now() - start < quick_time;
  answer(call, reply);
  const std::lock_guard<std::mutex> lock(mutex_);
  call->entry->quick = quick;
  if (short_call_ == call) short_call_ = nullptr;
  --running_;
  if (phase_ != Phase::reading) quiet_.notify_all();
}

// The watch: frees the reader's place when a short call has turned out to be a long one.
void Session::watch_short_calls(const Thread&) {
  constexpr int ticks_until_sleep = 20;
  std::unique_lock<std::mutex> lock(mutex_);
  while (phase_ != Phase::closing) {
    const Clock::duration age = Clock::now() - short_call_began_;
    if (short_call_ && age >= watch_time) {
      short_call_ = nullptr;
      reader_ = nullptr;
      call_worker();
    }
    watch_sleeps_ = !short_call_ && age >= ticks_until_sleep * watch_time;
    if (watch_sleeps_) {
      watch_needed_.wait(lock);
    } else {
      watch_needed_.wait_for(lock, watch_time);
    }
  }
}

// the end ----

// The reader reports the end of the input. It cannot while it waits for a client that does not read
// its answers; it is the end, too, if such a client has closed the input and takes nothing more.
void Session::wait_for_the_end(const CancelToken& stop) {
  // A pipe whose other end is closed reports that without being asked.
  pollfd fds[4] = {{stop.descriptor(), POLLIN, 0},
                   {ended_.descriptor(), POLLIN, 0},
                   {out_fd_, 0, 0},
                   {in_fd_, 0, 0}};
  int patience = -1;
  for (;;) {
    const int ready = ::poll(fds, 4, patience);
    if (ready < 0 && !may_try_again(errno)) return;
    if (ready > 0 && (fds[0].revents | fds[1].revents | fds[2].revents) != 0) return;
    if (ready > 0 && fds[3].revents != 0) {
      fds[3].fd = -1;  // known from now on
      patience = static_cast<int>(finish_time.count());
      (void)outbox_.stuck();
    } else if (ready == 0 && outbox_.stuck()) {
      return;
    }
  }
}

bool Session::input_ended() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return phase_ == Phase::draining;
}

void Session::wait_until_quiet(std::chrono::milliseconds time) {
  std::unique_lock<std::mutex> lock(mutex_);
  quiet_.wait_for(lock, time, [&] { return running_ == 0 && waiting_.empty(); });
}

// Calls that are cancelled because the server ends are still answered, with what they have.
void Session::cancel_everything() {
  std::vector<CallPtr> waiting;
  std::vector<CallPtr> running;
  TextMap subscriptions;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    phase_ = Phase::closing;
    waiting.swap(waiting_);
    running = open_;
    subscriptions.swap(subscriptions_);
    work_.notify_all();
    watch_needed_.notify_all();
  }
  wake_.cancel();
  outbox_.stop_waiting();
  for (const CallPtr& call : running) call->cancel.cancel();
  for (const CallPtr& call : waiting) answer(call, ToolResult::error(server_ends));
  for (const auto& [key, id] : subscriptions)
    deliver(nullptr,
            reply_text(id, concat("{\"resultType\":\"complete\",\"_meta\":{\"%\":%,\"%\":%}}",
                                  {subscription_key, id, server_info_key, server_info_})));
}

// False if a thread is still in a handler. It is detached, and owns a reference to the session.
bool Session::join_threads() {
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
int Session::start_threads() {
  int error = outbox_.start();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (error == 0) error = add_thread(&Session::watch_short_calls);
  for (int i = 0; i < 2 && error == 0; ++i) error = add_thread(&Session::work);
  return error;
}

Expected<void> Session::run(const CancelToken& stop) {
  if (stop.descriptor() < 0 || ended_.descriptor() < 0 || wake_.descriptor() < 0)
    return system_error(errno, "serve: descriptors");
  const int error = start_threads();
  if (error == 0) wait_for_the_end(stop);
  if (input_ended() && !stop.cancelled()) wait_until_quiet(finish_time);
  cancel_everything();
  wait_until_quiet(cancel_time);
  outbox_.push();
  outbox_.flush(flush_time);
  outbox_.close();
  const bool all = join_threads();
  if (error != 0) return system_error(error, "serve: thread");
  if (read_error_ != 0) return system_error(read_error_, "serve: reading in_fd");
  if (!all) return make_error(ErrorCode::limit, "serve: a tool's handler did not return");
  return {};
}

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
