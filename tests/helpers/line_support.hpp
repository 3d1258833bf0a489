// Helpers for the tests of servers that speak in lines.
#ifndef CODEEXEC_TESTS_LINE_SUPPORT_HPP
#define CODEEXEC_TESTS_LINE_SUPPORT_HPP

#include "support.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

namespace support {

inline void send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = ::write(fd, bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    REQUIRE(size > 0);
    bytes.remove_prefix(static_cast<std::size_t>(size));
  }
}

// What a server says, line by line.
class LineReader {
 public:
  // Milliseconds that it may say nothing.
  explicit LineReader(int patience) : patience_(patience) {}

  // The next line without its newline; empty when the stream has ended.
  std::string next(int fd) {
    for (;;) {
      const std::size_t end = pending_.find('\n', scanned_);
      if (end != std::string::npos) {
        std::string line = pending_.substr(0, end);
        pending_.erase(0, end + 1);
        scanned_ = 0;
        return line;
      }
      scanned_ = pending_.size();
      pollfd wanted = {fd, POLLIN, 0};
      REQUIRE_MESSAGE(::poll(&wanted, 1, patience_) == 1, "the server said nothing");
      char buffer[65536];
      const ssize_t size = ::read(fd, buffer, sizeof buffer);
      REQUIRE(size >= 0);
      if (size == 0) {
        CHECK(pending_.empty());
        return {};
      }
      pending_.append(buffer, static_cast<std::size_t>(size));
    }
  }

 private:
  int patience_;
  std::string pending_ = {};
  std::size_t scanned_ = 0;
};

}  // namespace support

#endif  // CODEEXEC_TESTS_LINE_SUPPORT_HPP
