// The session: its threads, which take turns.

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

// threads ----

// Needs the mutex. 0 or an errno.
int Session::add_worker() {
  workers_.emplace_back();
  Worker& self = workers_.back();
  const int error =
      start_own_thread(self.thread, [session = shared_from_this(), &self] { session->work(self); });
  if (error != 0) workers_.pop_back();
  return error;
}

void Session::work(Worker& self) {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    if (CallPtr call = take_waiting()) {
      run_call(lock, call);
    } else if (closing_) {
      break;
    } else if (!leading_ && !input_ended_) {
      leading_ = true;
      lock.unlock();
      call = lead();
      lock.lock();
      leading_ = false;
      if (call) run_call(lock, call);
    } else {
      ++idle_;
      rest(lock);
      --idle_;
      if (called_ > 0) --called_;
    }
  }
  self.ended = true;
  quiet_.notify_all();
}

// Waits to be called, or as the one on watch until a short call turns out to be a long one.
void Session::rest(std::unique_lock<std::mutex>& lock) {
  if (watched_ || quick_calls_ == calls_seen_) return work_.wait(lock);
  watched_ = true;
  bool called = false;
  while (!called && quick_calls_ != calls_seen_) {
    calls_seen_ = quick_calls_;
    called = work_.wait_for(lock, watch_time) == std::cv_status::no_timeout;
  }
  watched_ = false;
}

// Needs the mutex. The next waiting call, with a place to run.
CallPtr Session::take_waiting() {
  if (waiting_.empty() || running_ == options_.max_concurrent) return nullptr;
  CallPtr call = std::move(waiting_.front());
  waiting_.erase(waiting_.begin());
  ++running_;
  return call;
}

// Needs the mutex. Sees to it that one more thread comes. Without one the present threads do what
// is to be done, later.
bool Session::call_a_thread() {
  if (idle_ > called_) {
    ++called_;
    work_.notify_one();
    return true;
  }
  return workers_.size() <= options_.max_concurrent && add_worker() == 0;
}

// Runs a call that has its place in running_, while somebody else reads.
void Session::run_call(std::unique_lock<std::mutex>& lock, const CallPtr& call) {
  const bool comes_back = call->entry->quick && watched_;
  if (comes_back) {
    ++quick_calls_;
  } else if (!leading_ && !input_ended_ && !closing_ && called_ == 0) {
    if (call->entry->quick) ++quick_calls_;
    call_a_thread();
  }
  lock.unlock();
  // With a client that asks much at once, answers go out together, once for all that were read.
  // Nothing waits for a call that may take long: nor for one that does, for who then takes over the
  // reading writes them.
  call->more_follow = call->more_follow && comes_back;
  if (!comes_back) outbox_.push();
  const Clock::time_point start = Clock::now();
  ToolReply reply = invoke(call);
  const bool quick = Clock::now() - start < quick_time;
  answer(call, reply);
  lock.lock();
  call->entry->quick = quick;
  --running_;
  if (running_ == 0 && (input_ended_ || closing_)) quiet_.notify_all();
  if (!call->more_follow || !leading_) return;
  // It took longer than was hoped. Who reads meanwhile may have nothing to write for long.
  lock.unlock();
  outbox_.push();
  lock.lock();
}

// Reads and answers messages until there is a call to run here, or none will come.
CallPtr Session::lead() {
  std::string_view line;
  for (;;) {
    if (!reader_.has_line()) outbox_.push();
    // What was read already is not served any more, either, once the server ends.
    const LineReader::Event event =
        wake_.cancelled() ? LineReader::Event::interrupted : reader_.next(line);
    if (event == LineReader::Event::line) {
      if (CallPtr call = on_line(line)) {
        call->more_follow = reader_.has_line();
        return call;
      }
    } else if (event == LineReader::Event::too_long) {
      on_too_long(reader_.skipped_id());
    } else {
      const std::lock_guard<std::mutex> lock(mutex_);
      input_ended_ = true;
      if (event == LineReader::Event::failed) read_error_ = reader_.error();
      ended_.cancel();
      return nullptr;
    }
  }
}

// The leader tells when the input has ended. It cannot when it waits for a client that does not
// read its answers; then it is the end, too, if that client has closed the input and takes nothing
// more.
void Session::wait_for_the_end(const CancelToken& stop) {
  // A pipe that nobody reads, or that nobody writes to, reports that without being asked.
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

void Session::wait_until_quiet(std::chrono::milliseconds time) {
  std::unique_lock<std::mutex> lock(mutex_);
  quiet_.wait_for(lock, time, [&] { return running_ == 0 && waiting_.empty(); });
}

// Calls that are cancelled because the server ends are still answered, with what they have.
void Session::cancel_everything() {
  std::vector<CallPtr> waiting;
  std::map<std::string, CallPtr> running;
  TextMap subscriptions;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closing_ = true;
    waiting.swap(waiting_);
    running = open_;
    subscriptions.swap(subscriptions_);
    work_.notify_all();
  }
  wake_.cancel();
  outbox_.stop_waiting();
  for (const auto& [key, call] : running) call->cancel.cancel();
  for (const CallPtr& call : waiting) answer(call, ToolResult::error(server_ends));
  for (const auto& [key, id] : subscriptions)
    reply(nullptr, id,
          concat("{\"resultType\":\"complete\",\"_meta\":{\"%\":%,\"%\":%}}",
                 {subscription_key, id, server_info_key, server_info_}));
}

// False when a thread is still in a handler; it is left to itself.
bool Session::join_workers() {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto ended = [&] {
    const auto at_work = [](const Worker& worker) { return !worker.ended; };
    return find_where(workers_, at_work) == workers_.end();
  };
  const bool all = quiet_.wait_for(lock, std::chrono::milliseconds(100), ended);
  for (const Worker& worker : workers_) {
    if (worker.ended) {
      pthread_join(worker.thread, nullptr);
    } else {
      pthread_detach(worker.thread);
    }
  }
  open_.clear();
  return all;
}

Expected<void> Session::run(const CancelToken& stop) {
  if (stop.descriptor() < 0 || ended_.descriptor() < 0 || wake_.descriptor() < 0)
    return system_error(errno, "serve: descriptors");
  int error = outbox_.start();
  // Two from the start: there must always be one to read while the other works.
  for (int i = 0; i < 2 && error == 0; ++i) {
    const std::lock_guard<std::mutex> lock(mutex_);
    error = add_worker();
  }
  if (error == 0) wait_for_the_end(stop);
  bool input_ended = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    input_ended = input_ended_;
  }
  if (input_ended && !stop.cancelled()) wait_until_quiet(finish_time);
  cancel_everything();
  wait_until_quiet(cancel_time);
  outbox_.push();
  outbox_.flush(flush_time);
  outbox_.close();
  const bool all = join_workers();
  if (error != 0) return system_error(error, "serve: thread");
  if (read_error_ != 0) return system_error(read_error_, "serve: reading in_fd");
  if (!all) return make_error(ErrorCode::limit, "serve: a tool's handler did not return");
  return {};
}

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
