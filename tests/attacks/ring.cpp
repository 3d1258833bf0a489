// Files and the network by io_uring, past whoever watches system calls.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "ring.hpp"

namespace attacks {
namespace {

constexpr std::uint8_t ring_connect = 16, ring_openat = 18, ring_read = 22, ring_write = 23,
                       ring_socket = 45;

int ring_file(const Arguments& a, bool writing) {
  Ring ring;
  if (!ring.open()) return tell("io_uring_setup", -1);
  const int fd =
      ring.run(ring_openat, AT_FDCWD, a[0].c_str(), 0, 0, writing ? O_WRONLY | O_APPEND : O_RDONLY);
  if (fd < 0) {
    errno = -fd;
    return tell("openat", -1);
  }
  char bytes[64] = "attacked\n";
  const int size = ring.run(writing ? ring_write : ring_read, fd, bytes, ~std::uint64_t{0},
                            writing ? 9 : sizeof bytes, 0);
  if (size > 0 && !writing) say(std::string(bytes, static_cast<std::size_t>(size)));
  return size > 0 ? 0 : 1;
}
int ring_write_file(const Arguments& a) { return ring_file(a, true); }
int ring_read_file(const Arguments& a) { return ring_file(a, false); }

int ring_tcp(const Arguments& a) {
  Ring ring;
  if (!ring.open()) return tell("io_uring_setup", -1);
  const int fd = ring.run(ring_socket, AF_INET, nullptr, SOCK_STREAM, 0, 0);
  errno = -fd;
  if (fd < 0) return errno == EINVAL ? unavailable("IORING_OP_SOCKET") : tell("socket", -1);
  const sockaddr_in to = loopback4(a[0]);
  const int connected = ring.run(ring_connect, fd, &to, sizeof to, 0, 0);
  errno = -connected;
  if (connected < 0) return tell("connect", -1);
  ring.run(ring_write, fd, "attacked\n", ~std::uint64_t{0}, 9, 0);
  return 0;
}

}  // namespace

Verbs ring_verbs() {
  return {
      {"ring-write", 1, ring_write_file},
      {"ring-read", 1, ring_read_file},
      {"ring-tcp", 1, ring_tcp},
  };
}

}  // namespace attacks
