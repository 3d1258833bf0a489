// Lines to the client.

#include "mcp/streams_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace mcp {
inline namespace inner {

int Outbox::start() {
  if (quit_.descriptor() < 0) return errno;
  // The host's signal handlers are not to run here.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = start_own_thread(writer_, [this] { write_what_is_left(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  started_ = error == 0;
  return error;
}

void Outbox::send(std::string line) {
  std::unique_lock<std::mutex> lock(mutex_);
  ++waiting_;
  room_.wait(lock, [&] { return closed_ || !patient_ || fits(line.size(), limit_); });
  --waiting_;
  if (closed_ || !fits(line.size(), limit_)) return;
  add(std::move(line));
  drain(lock);
}

void Outbox::send_later(std::string line) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (closed_) return;
  const bool much = held_ + line.size() > step || !fits(line.size(), limit_);
  if (!much) return add(std::move(line));
  lock.unlock();
  send(std::move(line));
}

void Outbox::push() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (held_ > 0 && !closed_) drain(lock);
}

void Outbox::offer(std::string line) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (closed_ || !fits(line.size(), limit_ / 2)) return;
  add(std::move(line));
  drain(lock);
}

bool Outbox::stuck() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return waiting_ > 0 && std::exchange(written_asked_, written_) == written_;
}

void Outbox::stop_waiting() {
  const std::lock_guard<std::mutex> lock(mutex_);
  patient_ = false;
  room_.notify_all();
}

void Outbox::flush(std::chrono::milliseconds time) {
  std::unique_lock<std::mutex> lock(mutex_);
  room_.wait_for(lock, time, [&] { return closed_ || held_ == 0; });
}

void Outbox::close() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    discard();
  }
  quit_.cancel();
  if (started_) pthread_join(writer_, nullptr);
  started_ = false;
  std::unique_lock<std::mutex> lock(mutex_);
  room_.wait(lock, [&] { return !writing_; });
}

void Outbox::add(std::string line) {
  held_ += line.size();
  if (queue_.empty()) {
    queue_ = std::move(line);
  } else {
    queue_ += line;
  }
}

void Outbox::discard() {
  closed_ = true;
  held_ = 0;
  queue_ = std::string();
  room_.notify_all();
  handed_over_.notify_all();
}

void Outbox::drain(std::unique_lock<std::mutex>& lock) {
  if (writing_) return;
  writing_ = true;
  while (!queue_.empty()) {
    if (write_part(lock, false)) continue;
    if (closed_) break;
    handed_ = true;
    handed_over_.notify_one();
    return;
  }
  writing_ = false;
  if (closed_) room_.notify_all();
}

bool Outbox::write_part(std::unique_lock<std::mutex>& lock, bool wait) {
  std::string part = std::exchange(queue_, std::string());
  lock.unlock();
  std::size_t done = 0;
  const int error = write_bytes(part, done, wait);
  lock.lock();
  if (closed_) return false;
  held_ -= done;
  written_ += done;
  if (error != 0) {
    discard();
    broken_.cancel();
    return false;
  }
  room_.notify_all();
  if (done == part.size()) return true;
  part.erase(0, done);
  part += queue_;
  queue_ = std::move(part);
  return false;
}

int Outbox::write_bytes(std::string_view bytes, std::size_t& done, bool wait) {
  HeldSignal guard(SIGPIPE);
  while (done < bytes.size() && !quit_.cancelled()) {
    pollfd fds[2] = {{fd_, POLLOUT, 0}, {wait ? quit_.descriptor() : -1, POLLIN, 0}};
    const int ready = ::poll(fds, 2, wait ? -1 : 0);
    if (ready == 0) return 0;
    if (ready < 0 || fds[0].revents == 0) continue;
    const ssize_t size = ::write(fd_, bytes.data() + done, std::min(step, bytes.size() - done));
    if (size >= 0) {
      done += static_cast<std::size_t>(size);
    } else if (const int error = errno; !may_try_again(error)) {
      if (error == EPIPE) guard.take_back();
      return error;
    }
  }
  return 0;
}

void Outbox::write_what_is_left() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    handed_over_.wait(lock, [&] { return handed_ || closed_; });
    if (handed_) {
      while (!queue_.empty() && !closed_) write_part(lock, true);
      handed_ = false;
      writing_ = false;
      room_.notify_all();
    }
    if (closed_) return;
  }
}

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
