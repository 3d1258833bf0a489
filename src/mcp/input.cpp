// Lines from the client.
//
//   buffer   | consumed | line that is being collected | read, not yet searched |   free   |
//            0        begin_                       scanned_                   end_    capacity_
//
// next() looks for a newline after scanned_ and reads more if there is none. A line that grows
// longer than the limit is skipped: its bytes go to the IdScanner and are dropped, until its
// newline comes.

#include "mcp/streams_internal.hpp"

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace mcp {
inline namespace inner {

bool may_try_again(int error) {
  if (error == ENOMEM) ::poll(nullptr, 0, 1);
  return error == EINTR || error == EAGAIN || error == ENOMEM;
}

LineReader::Event LineReader::next(std::string_view& line) {
  for (;;) {
    if (find_newline(line)) {
      if (!skipping_ && line.size() <= longest_) return Event::line;
      skip(line);
      skipping_ = false;
      return Event::too_long;
    }
    if (skipping_ || end_ - begin_ > longest_) {
      skip(std::string_view(buffer_.get() + begin_, end_ - begin_));
      begin_ = scanned_ = end_;
    }
    if (ended_) return last_line(line);
    const Event event = fill();
    if (event == Event::end) {
      ended_ = true;
    } else if (event != Event::line) {
      return event;
    }
  }
}

bool LineReader::find_newline(std::string_view& line) {
  if (scanned_ == end_) return false;
  const char* from = buffer_.get() + scanned_;
  const void* newline = std::memchr(from, '\n', end_ - scanned_);
  if (!newline) {
    scanned_ = end_;
    return false;
  }
  const auto stop = static_cast<std::size_t>(static_cast<const char*>(newline) - buffer_.get());
  line = take_line(stop, stop + 1);
  return true;
}

LineReader::Event LineReader::last_line(std::string_view& line) {
  if (skipping_) {
    skipping_ = false;
    return Event::too_long;
  }
  if (begin_ == end_) return Event::end;
  line = take_line(end_, end_);
  return Event::line;
}

std::string_view LineReader::take_line(std::size_t stop, std::size_t next) {
  std::string_view line(buffer_.get() + begin_, stop - begin_);
  begin_ = scanned_ = next;
  if (std::exchange(first_, false) && starts_with(line, "\xef\xbb\xbf"sv)) line.remove_prefix(3);
  return line;
}

void LineReader::skip(std::string_view bytes) {
  if (!skipping_) scanner_ = IdScanner();
  skipping_ = true;
  scanner_.feed(bytes);
}

LineReader::Event LineReader::fill() {
  make_room();
  for (;;) {
    pollfd fds[2] = {{fd_, POLLIN, 0}, {wake_, POLLIN, 0}};
    if (::poll(fds, 2, -1) < 0 && !may_try_again(errno)) return fail();
    if (fds[1].revents != 0) return Event::interrupted;
    if (fds[0].revents == 0) continue;
    const ssize_t size = ::read(fd_, buffer_.get() + end_, capacity_ - end_);
    if (size > 0) {
      end_ += static_cast<std::size_t>(size);
      return Event::line;
    }
    // A terminal or a connection that is gone is the end of input, too.
    if (size == 0 || errno == EIO || errno == ECONNRESET) return Event::end;
    if (errno != EINTR && errno != EAGAIN) return fail();
  }
}

LineReader::Event LineReader::fail() {
  error_ = errno;
  return Event::failed;
}

void LineReader::make_room() {
  const std::size_t rest = end_ - begin_;
  if (rest == 0) begin_ = scanned_ = end_ = 0;
  if (rest == 0 && capacity_ > big_buffer) capacity_ = 0;
  if (end_ < capacity_) return;
  if (rest <= capacity_ / 2 && capacity_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, rest);
  } else {
    capacity_ = std::max(small_buffer, 2 * capacity_);
    std::unique_ptr<char[]> bigger(new char[capacity_]);
    if (rest > 0) std::memcpy(bigger.get(), buffer_.get() + begin_, rest);
    buffer_ = std::move(bigger);
  }
  scanned_ -= begin_;
  begin_ = 0;
  end_ = rest;
}

}  // namespace inner
}  // namespace mcp

}  // namespace v0_1
}  // namespace codeexec
