// How many bytes may be on their way, and what waits for room in a pipe.

#include "agent/flow_internal.hpp"
#include "agent/frames_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "process/child_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

void widen_pipe([[maybe_unused]] int fd) {
#if defined(__linux__)
  constexpr int bytes = 256 << 10;
  ::fcntl(fd, F_SETPIPE_SZ, bytes);
#endif
}

}  // namespace inner

// Credit is worth a frame once half of what was allowed has been taken: at full speed that is two
// frames a window, and a reader of single bytes does not cost a frame for each. With more commands
// the share of each is smaller, but never below what one may send unasked.
std::size_t StreamWindow::credit(std::size_t held, std::size_t commands) {
  const std::size_t open = left + held;
  if (allowed - open < allowed / 2) return 0;
  const std::size_t most = std::max(stream_window, most_window / commands);
  if (most <= open) return 0;
  allowed = most;
  left = most - held;
  return most - open;
}

// As write(2); on an error, errno says what to do and nothing is lost.
ssize_t SendQueue::write_to(int fd) {
  const ssize_t size = write_to_pipe(fd, std::string_view(bytes).substr(written));
  if (size <= 0) return size;
  written += static_cast<std::size_t>(size);
  // No more is moved than was written before.
  if (written >= bytes.size() - written) {
    bytes.erase(0, written);
    written = 0;
  }
  return size;
}

// Writes at once if nothing waits, which is most often all of it and saves a wake-up. The rest
// waits, and cannot be more than the window. False: more came than was allowed, or an empty piece.
bool RemoteStreams::Flow::take(std::string_view bytes) {
  if (bytes.empty() || !window.use(bytes.size())) return false;
  untaken += bytes.size();
  if (waiting.empty() && writer) {
    const ssize_t size = write_to_pipe(writer.get(), bytes);
    if (size > 0) bytes.remove_prefix(static_cast<std::size_t>(size));
  }
  waiting.bytes += bytes;
  return true;
}

// Writes what waits. What has no reader any more is dropped, and counts as read, so that the
// program that writes it is not stopped for ever. After the end, a pipe is closed when all is in
// it; a socket goes on in the other direction.
void RemoteStreams::Flow::write() {
  if (!waiting.empty() && writer && waiting.write_to(writer.get()) < 0 && errno != EAGAIN &&
      errno != EINTR) {
    waiting.clear();
    untaken = 0;
    ended = ended || is_socket;
  }
  if (!ended || !waiting.empty()) return;
  if (is_socket)
    ::shutdown(writer.get(), SHUT_WR);
  else
    writer.reset();
}

// A connection's bytes count as taken once they are in its socket, as its peer is a program like
// any other; a command's count when the caller has read them.
std::size_t RemoteStreams::Flow::pass(std::size_t sharers) {
  write();
  untaken = waiting.size();
  return ended || !writer ? 0 : window.credit(untaken, sharers);
}

// False: it is no credit, of another stream, or brings the window over its bound, which an honest
// end never does: it has at most that to give.
bool RemoteStreams::take_credit(const Frame& frame, Channel wanted) {
  Channel channel{};
  std::size_t bytes = 0;
  if (!read_credit(frame, channel, bytes) || channel != wanted) return false;
  if (bytes > most_window - input_window) return false;
  input_window += bytes;
  return true;
}

}  // namespace v0_1
}  // namespace codeexec
