// Lines to the client.

#include "mcp/streams_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace mcp {
inline namespace inner {

int start_own_thread(pthread_t& thread, Function<void()> run) {
  using Run = Function<void()>;
  auto boxed = std::make_unique<Run>(std::move(run));
  const auto body = [](void* argument) -> void* {
    const std::unique_ptr<Run> mine(static_cast<Run*>(argument));
    (*mine)();
    return nullptr;
  };
  const int error = ::pthread_create(&thread, nullptr, body, boxed.get());
  if (error == 0) (void)boxed.release();
  return error;
}

int Outbox::start() {
  if (quit_.descriptor() < 0) return errno;
  // The host's signal handlers must not run on this thread.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = start_own_thread(writer_, [this] { wait_for_client(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  started_ = error == 0;
  return error;
}

void Outbox::send(std::string line) {
  std::unique_lock<std::mutex> lock(mutex_);
  ++waiting_;
  room_.wait(lock, [&] { return state_ != State::open || fits(line.size(), limit_); });
  --waiting_;
  if (!fits(line.size(), limit_)) return;
  add(std::move(line));
  write_at_once();
}

void Outbox::send_later(std::string line) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (held() + line.size() <= std::min(step, limit_)) return add(std::move(line));
  }
  send(std::move(line));
}

void Outbox::push() {
  const std::lock_guard<std::mutex> lock(mutex_);
  write_at_once();
}

void Outbox::offer(std::string line) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!fits(line.size(), limit_ / 2)) return;
  add(std::move(line));
  write_at_once();
}

bool Outbox::stuck() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return waiting_ > 0 && !std::exchange(progress_, false);
}

void Outbox::stop_waiting() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (state_ == State::open) state_ = State::ending;
  room_.notify_all();
}

void Outbox::flush(std::chrono::milliseconds time) {
  std::unique_lock<std::mutex> lock(mutex_);
  room_.wait_for(lock, time, [&] { return held() == 0; });
}

void Outbox::close() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    end();
  }
  quit_.cancel();
  if (started_) pthread_join(writer_, nullptr);
  started_ = false;
}

void Outbox::add(std::string line) {
  if (state_ == State::closed) return;
  if (queue_.empty()) {
    queue_ = std::move(line);
  } else {
    queue_ += line;
  }
}

void Outbox::end() {
  state_ = State::closed;
  queue_ = std::string();
  written_ = 0;
  room_.notify_all();
  needed_.notify_all();
}

// Writes the queue until it is empty or the client takes no more.
void Outbox::write_at_once() {
  if (held() == 0 || behind_) return;
  HeldSignal guard(SIGPIPE);
  while (held() > 0 && write_step(guard)) {
  }
  if (held() > 0) {
    behind_ = true;
    needed_.notify_one();
  }
  // A queue that is half written moves up: no byte is moved more often than one is written.
  if (held() <= written_) {
    queue_ = held() == 0 ? std::string() : queue_.substr(written_);
    written_ = 0;
  }
  room_.notify_all();
}

// Writes a part of the queue. False if the client does not take it at once.
bool Outbox::write_step(HeldSignal& guard) {
  pollfd fd = {fd_, POLLOUT, 0};
  const int ready = ::poll(&fd, 1, 0);
  if (ready == 0) return false;
  const ssize_t size =
      ready < 0 ? -1 : ::write(fd_, queue_.data() + written_, std::min(step, held()));
  if (size >= 0) {
    written_ += static_cast<std::size_t>(size);
    progress_ = true;
  } else if (const int error = errno; !may_try_again(error)) {
    if (error == EPIPE) guard.take_back();
    end();
    broken_.cancel();
  }
  return true;
}

void Outbox::wait_for_client() {
  pollfd fds[2] = {{fd_, POLLOUT, 0}, {quit_.descriptor(), POLLIN, 0}};
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    needed_.wait(lock, [&] { return behind_ || state_ == State::closed; });
    if (state_ == State::closed) return;
    lock.unlock();
    if (::poll(fds, 2, -1) < 0) (void)may_try_again(errno);
    lock.lock();
    behind_ = false;
    write_at_once();
  }
}

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
