// The bytes between the two sides of a copied workspace.

#include "copy/wire_internal.hpp"

#include "agent/frames_internal.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "process/child_internal.hpp"
#include "process/start_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// A side that does nothing for 10 minutes is given up.
Clock::time_point copy_deadline() { return later(Clock::now(), std::chrono::minutes(10)); }

}  // namespace

// Collects what is small, as a message of a few numbers is not worth a system call.
bool CopyWire::put(std::string_view bytes) {
  sending_ += bytes;
  return sending_.size() < longest_payload || flush();
}

// In the order of bytes of this machine: both sides run on processors that write the lower byte
// first.
bool CopyWire::put_numbers(std::initializer_list<std::uint64_t> numbers) {
  return put(
      {reinterpret_cast<const char*>(numbers.begin()), numbers.size() * sizeof(std::uint64_t)});
}

// Writes all of it, and waits where the pipe is full. False: the other side has gone, or has read
// nothing for 10 minutes, as a disk may that does not answer.
// Each wait has a deadline of its own: a copy may take long, as long as it goes on.
bool CopyWire::flush() {
  std::string_view left = sending_;
  while (!left.empty()) {
    const ssize_t size = write_to_pipe(out_.get(), left);
    if (size > 0) {
      left.remove_prefix(static_cast<std::size_t>(size));
    } else if (errno == EAGAIN) {
      std::vector<pollfd> set = {{out_.get(), POLLOUT, 0}};
      wait_for_events(set, copy_deadline());
      if (set[0].revents == 0) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  sending_.clear();
  return true;
}

// Reads as much as there is, however little is asked for, and keeps the rest. `taken` gets all that
// was read, as the credit of the sender is for bytes that have left the pipe.
std::string_view CopyWire::get_some(std::size_t most) {
  while (got_.empty()) {
    const ssize_t size = ::read(in_.get(), buffer_.get(), longest_payload);
    if (size > 0) {
      got_ = {buffer_.get(), static_cast<std::size_t>(size)};
      taken(got_);
    } else if (size < 0 && errno == EAGAIN) {
      std::vector<pollfd> set = {{in_.get(), POLLIN, 0}};
      wait_for_events(set, copy_deadline());
      if (set[0].revents == 0) return {};
    } else if (size == 0 || errno != EINTR) {
      return {};
    }
  }
  const std::string_view some = got_.substr(0, most);
  got_.remove_prefix(some.size());
  return some;
}

// All of it, or false when the other side has gone before.
bool CopyWire::get(void* bytes, std::size_t size) {
  auto* to = static_cast<char*>(bytes);
  while (size != 0) {
    const std::string_view some = get_some(size);
    if (some.empty()) return false;
    std::memcpy(to, some.data(), some.size());
    to += some.size();
    size -= some.size();
  }
  return true;
}

}  // namespace v0_1
}  // namespace codeexec
