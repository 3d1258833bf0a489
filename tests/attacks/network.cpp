// The network: sockets of every kind, and the system calls of other ABIs.
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "attack.hpp"

namespace attacks {
namespace {

template <class Address>
int send_to(const std::string& name, int fd, const Address& to, socklen_t size) {
  if (fd < 0) return tell(name + "-socket", -1);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&to), size) != 0)
    return tell(name + "-connect", -1);
  return tell(name, ::send(fd, "attacked\n", 9, MSG_NOSIGNAL));
}

int inet4(const std::string& name, const Arguments& a, int type, int protocol) {
  return send_to(name, ::socket(AF_INET, type, protocol), loopback4(a[0]), sizeof(sockaddr_in));
}
int inet6(const std::string& name, const Arguments& a, int type) {
  sockaddr_in6 to;
  std::memset(&to, 0, sizeof to);
  to.sin6_family = AF_INET6;
  to.sin6_port = htons(static_cast<std::uint16_t>(number(a[0])));
  to.sin6_addr = in6addr_loopback;
  return send_to(name, ::socket(AF_INET6, type, 0), to, sizeof to);
}
int tcp(const Arguments& a) { return inet4("tcp", a, SOCK_STREAM, 0); }
int tcp6(const Arguments& a) { return inet6("tcp6", a, SOCK_STREAM); }
int udp(const Arguments& a) { return inet4("udp", a, SOCK_DGRAM, 0); }
int udp6(const Arguments& a) { return inet6("udp6", a, SOCK_DGRAM); }
int mptcp(const Arguments& a) { return inet4("mptcp", a, SOCK_STREAM, 262); }

int fast_open(const Arguments& a) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return tell("socket", -1);
  const sockaddr_in to = loopback4(a[0]);
  return tell("fast_open", ::sendto(fd, "attacked\n", 9, MSG_FASTOPEN | MSG_NOSIGNAL,
                                    reinterpret_cast<const sockaddr*>(&to), sizeof to));
}

// A question to a name server, put together by hand.
int dns(const Arguments& a) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0) return tell("socket", -1);
  const sockaddr_in to = loopback4(a[0]);
  const char question[] =
      "\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x08"
      "attacked"
      "\x04"
      "test\0\0\x01\0\x01";
  return tell("dns", ::sendto(fd, question, sizeof question - 1, 0,
                              reinterpret_cast<const sockaddr*>(&to), sizeof to));
}

int listen_tcp(const Arguments&) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return tell("socket", -1);
  const sockaddr_in to = loopback4("0");
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) return tell("bind", -1);
  return tell("listen", ::listen(fd, 1));
}

// Server and client in one command.
int own_loopback(const Arguments&) {
  const int server = ::socket(AF_INET, SOCK_STREAM, 0);
  if (server < 0) return tell("socket", -1);
  sockaddr_in to = loopback4("0");
  socklen_t size = sizeof to;
  if (::bind(server, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 ||
      ::listen(server, 1) != 0 ||
      ::getsockname(server, reinterpret_cast<sockaddr*>(&to), &size) != 0)
    return tell("bind", -1);
  const int client = ::socket(AF_INET, SOCK_STREAM, 0);
  return tell("connect", ::connect(client, reinterpret_cast<const sockaddr*>(&to), sizeof to));
}

int open_socket(const Arguments& a) {
  return tell("socket", ::socket(number(a[0]), number(a[1]), number(a[2])));
}

// Every family and type, but for pairs: none of them can be made without a network.
int all_sockets(const Arguments&) {
  int made = 0;
  for (int family = 0; family < 64; ++family) {
    for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET, SOCK_RDM}) {
      const int fd = ::socket(family, type, 0);
      if (fd < 0) continue;
      ++made;
      ::close(fd);
    }
  }
  say("sockets " + std::to_string(made) + "\n");
  return 0;
}

socklen_t unix_address(const std::string& path, bool abstract, sockaddr_un& to) {
  std::memset(&to, 0, sizeof to);
  to.sun_family = AF_UNIX;
  char* start = to.sun_path + (abstract ? 1 : 0);
  std::memcpy(start, path.data(), std::min(path.size(), sizeof to.sun_path - 2));
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
}

int unix_send(const Arguments& a, int type, bool abstract) {
  sockaddr_un to;
  const socklen_t size = unix_address(a[0], abstract, to);
  return send_to("unix", ::socket(AF_UNIX, type, 0), to, size);
}
int unix_stream(const Arguments& a) { return unix_send(a, SOCK_STREAM, false); }
int unix_datagram(const Arguments& a) { return unix_send(a, SOCK_DGRAM, false); }
int abstract_stream(const Arguments& a) { return unix_send(a, SOCK_STREAM, true); }
int abstract_datagram(const Arguments& a) { return unix_send(a, SOCK_DGRAM, true); }

int unix_bind(const Arguments& a) {
  sockaddr_un to;
  const socklen_t size = unix_address(a[0], false, to);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  if (fd < 0) return tell("socket", -1);
  return tell("bind", ::bind(fd, reinterpret_cast<const sockaddr*>(&to), size));
}

// So that nobody else can have that name. Nothing can be sent to it: it has its other half.
int pair_bind(const Arguments& a) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return tell("socketpair", -1);
  sockaddr_un name;
  const socklen_t size = unix_address(a[0], true, name);
  return tell("bind", ::bind(pair[0], reinterpret_cast<const sockaddr*>(&name), size));
}

// A half of a pair is a socket like any: a datagram one can be pointed anywhere.
int pair_send(const Arguments& a) {
  const int type = number(a[1]);
  int pair[2];
  if (::socketpair(AF_UNIX, type, 0, pair) != 0) return tell("socketpair", -1);
  sockaddr_un to;
  const socklen_t size = unix_address(a[0], false, to);
  const auto* address = reinterpret_cast<const sockaddr*>(&to);
  if (::sendto(pair[0], "attacked\n", 9, MSG_NOSIGNAL, address, size) == 9) return 0;
  iovec bytes = {const_cast<char*>("attacked\n"), 9};
  msghdr message;
  std::memset(&message, 0, sizeof message);
  message.msg_name = &to;
  message.msg_namelen = size;
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  if (::sendmsg(pair[0], &message, MSG_NOSIGNAL) == 9) return 0;
  ::close(pair[1]);
  if (::connect(pair[0], address, size) != 0) return tell("connect", -1);
  return tell("send", ::send(pair[0], "attacked\n", 9, MSG_NOSIGNAL));
}

int pair_in_order(const Arguments&) {
  int pair[2];
  char bytes[8];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return tell("socketpair", -1);
  if (::write(pair[0], "x", 1) != 1) return tell("write", -1);
  return tell("read", ::read(pair[1], bytes, 1));
}

// The system calls of i386, which have other numbers: 102 is socketcall, 20 getpid.
int i386(const Arguments& a) {
#if defined(__x86_64__)
  void* memory =
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  if (memory == MAP_FAILED) return tell("mmap", -1);
  auto* low = static_cast<std::uint32_t*>(memory);
  const auto at = [low](int index) {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(low + index));
  };
  const auto call = [](long nr, long first, long second) {
    long result = 0;
    // The 32-bit entry may not keep r8 to r11.
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(nr), "b"(first), "c"(second)
                     : "memory", "r8", "r9", "r10", "r11");
    return static_cast<int>(result);
  };
  low[0] = AF_INET;
  low[1] = SOCK_STREAM;
  low[2] = 0;
  const int fd = call(102, 1, at(0));
  errno = -fd;
  if (fd < 0) return tell("socketcall", -1);
  const sockaddr_in to = loopback4(a[0]);
  std::memcpy(low + 8, &to, sizeof to);
  low[0] = static_cast<std::uint32_t>(fd);
  low[1] = at(8);
  low[2] = sizeof to;
  const int connected = call(102, 3, at(0));
  errno = -connected;
  return tell("socketcall", connected < 0 ? -1 : ::write(fd, "attacked\n", 9));
#else
  (void)a;
  errno = ENOSYS;
  return unavailable("int 0x80");
#endif
}

int x32(const Arguments&) {
#if defined(__x86_64__)
  const long pid = raw(0x40000000L + SYS_getpid);
  if (pid < 0 && errno == ENOSYS) return unavailable("x32");
  return tell("x32", pid);
#else
  errno = ENOSYS;
  return unavailable("x32");
#endif
}

}  // namespace

Verbs network_verbs() {
  return {
      {"tcp", 1, tcp},
      {"tcp6", 1, tcp6},
      {"udp", 1, udp},
      {"udp6", 1, udp6},
      {"mptcp", 1, mptcp},
      {"fast-open", 1, fast_open},
      {"dns", 1, dns},
      {"listen", 0, listen_tcp},
      {"own-loopback", 0, own_loopback},
      {"socket", 3, open_socket},
      {"all-sockets", 0, all_sockets},
      {"unix-stream", 1, unix_stream},
      {"unix-datagram", 1, unix_datagram},
      {"abstract-stream", 1, abstract_stream},
      {"abstract-datagram", 1, abstract_datagram},
      {"unix-bind", 1, unix_bind},
      {"pair-bind", 1, pair_bind},
      {"pair-send", 2, pair_send},
      {"pair", 0, pair_in_order},
      {"i386", 1, i386},
      {"x32", 0, x32},
  };
}

}  // namespace attacks
