// What the proxy of Network::allow costs: bytes that a command fetches through it, and the time
// that it adds to a connection; beside the same program outside of the sandbox, which connects
// directly. Both ends are on this machine, and so is the place whose connections come back to it.
// --quick: fewer rounds. Ends with status 1 and a line "GATE FAILED: ..." when a promise is not
// kept.
#include "codeexec.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include "executors.hpp"
#include "floor.hpp"

namespace {

struct Row {
  const char* throughput;
  const char* latency;
};
constexpr Row here = {"bytes fetched through the proxy by one command",
                      "a connection through the proxy, until its first byte"};
constexpr Row there = {"bytes fetched through the proxy by one command in a place",
                       "a connection through the proxy from a place, until its first byte"};
const char* const directly = "directly";

// Takes a byte on each connection and answers with as many MiB, or with itself if that is 0. It
// ends with this program.
class Source {
 public:
  Source() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (::bind(fd_, any, size) != 0 || ::listen(fd_, 64) != 0 ||
        ::getsockname(fd_, any, &size) != 0)
      fail("a socket that listens");
    port_ = ntohs(address.sin_port);
    std::thread([fd = fd_] { serve(fd); }).detach();
  }
  unsigned port() const { return port_; }

 private:
  static void serve(int listener) {
    static char block[1 << 20];
    for (;;) {
      const int fd = ::accept(listener, nullptr, nullptr);
      if (fd < 0) fail("accept");
      char size = 0;
      if (::recv(fd, &size, 1, 0) == 1) {
        if (size == 0) (void)!::send(fd, &size, 1, MSG_NOSIGNAL);
        bool open = true;
        for (int i = 0; i < size && open; ++i) {
          std::size_t sent = 0;
          while (sent < sizeof block && open) {
            const ssize_t written = ::send(fd, block + sent, sizeof block - sent, MSG_NOSIGNAL);
            open = written > 0;
            if (open) sent += static_cast<std::size_t>(written);
          }
        }
      }
      ::close(fd);
    }
  }

  int fd_;
  unsigned port_ = 0;
};

int connect_to(unsigned port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (fd < 0 || ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    fail("connect");
  return fd;
}

// A connection to the source: through the proxy, or directly.
int open_source(unsigned port, bool proxied) {
  if (!proxied) return connect_to(port);
  const int fd = connect_to(61080);
  const std::string head = "CONNECT 127.0.0.1:" + std::to_string(port) + " HTTP/1.1\r\n\r\n";
  if (::send(fd, head.data(), head.size(), 0) < 0) fail("send");
  std::string answer;
  char byte = 0;
  while (answer.size() < 4 || answer.compare(answer.size() - 4, 4, "\r\n\r\n") != 0) {
    if (::recv(fd, &byte, 1, 0) != 1) fail("the proxy's answer");
    answer += byte;
  }
  if (answer.compare(0, 12, "HTTP/1.1 200") != 0) fail("the proxy", answer);
  return fd;
}

// The command: prints a time for each round, in microseconds.
int run_client(unsigned port, bool proxied, int rounds, char mebibytes) {
  static char block[1 << 20];
  for (int i = 0; i < rounds; ++i) {
    std::size_t got = 0;
    const double time = microseconds([&] {
      const int fd = open_source(port, proxied);
      if (::send(fd, &mebibytes, 1, 0) != 1) fail("send");
      ssize_t size = 0;
      while ((size = ::recv(fd, block, sizeof block, 0)) > 0) got += static_cast<std::size_t>(size);
      ::close(fd);
    });
    const std::size_t wanted = mebibytes == 0 ? 1 : static_cast<std::size_t>(mebibytes) << 20;
    if (got != wanted) fail("the source", std::to_string(got) + " bytes");
    std::printf("%.1f\n", time);
  }
  return 0;
}

Samples times_of(const codeexec::Executor& executor, unsigned port, bool proxied, int rounds,
                 int mebibytes) {
  char self[4096];
  const ssize_t size = ::readlink("/proc/self/exe", self, sizeof self);
  if (size < 0) fail("/proc/self/exe");
  const codeexec::Result r = executor.run(codeexec::Command::program(
      {std::string(self, static_cast<std::size_t>(size)), "--client", std::to_string(port),
       proxied ? "1" : "0", std::to_string(rounds), std::to_string(mebibytes)}));
  if (!r.succeeded()) fail("the client", r.summary() + " " + r.message + " " + r.err);
  Samples samples;
  for (const char* at = r.out.c_str(); *at != '\0'; at = std::strchr(at, '\n') + 1)
    samples.add(std::atof(at));
  return samples;
}

void measure(const Row& row, const codeexec::Executor& proxied, unsigned port, bool quick) {
  const codeexec::LocalExecutor direct = local_executor();
  constexpr int mebibytes = 100;
  const int rounds = quick ? 5 : 21;
  Samples ours = times_of(proxied, port, true, rounds, mebibytes);
  Samples theirs = times_of(direct, port, false, rounds, mebibytes);
  const double gibibits = mebibytes / 1024.0 * 8 * 1e6;
  const double rate = gibibits / ours.median();
  report(row.throughput, "Gibit/s", ours.rate(gibibits), directly, theirs.rate(gibibits),
         {">=", 1.0, rate});
  const int connections = quick ? 201 : 2001;
  Samples our_time = times_of(proxied, port, true, connections, 0);
  Samples their_time = times_of(direct, port, false, connections, 0);
  const double added = (our_time.median() - their_time.median()) / 1000;
  report(row.latency, "us", our_time, directly, their_time, {"<=", 1.0, added});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 6 && std::strcmp(argv[1], "--client") == 0)
    return run_client(static_cast<unsigned>(std::atoi(argv[2])), *argv[3] == '1',
                      std::atoi(argv[4]), static_cast<char>(std::atoi(argv[5])));
  if (argc == 2 && std::strcmp(argv[1], "--place") == 0) return codeexec::place_main(0, 1);
  const bool quick = has_argument(argc, argv, "--quick");
  const Source source;
  char self[4096];
  const ssize_t size = ::readlink("/proc/self/exe", self, sizeof self);
  if (size < 0) fail("/proc/self/exe");
  codeexec::LocalOptions options;
  options.workspace = "/tmp";
  options.sandbox.mode = codeexec::SandboxMode::best_effort;
  options.sandbox.network = codeexec::Network::allow;
  options.sandbox.readable = {std::string(self, static_cast<std::size_t>(size))};
  options.allowed_domains = {"127.0.0.1:" + std::to_string(source.port())};
  const auto proxied = codeexec::LocalExecutor::create(options);
  if (!proxied || proxied->sandbox_report().network != codeexec::Network::allow) {
    for (const Row& row : {here, there})
      for (const char* what : {row.throughput, row.latency})
        skipped(what, directly, "no network namespaces");
    return finish();
  }
  measure(here, *proxied, source.port(), quick);
  codeexec::PlaceOptions elsewhere{codeexec::ExecutorOptions(options)};
  elsewhere.transport = {options.sandbox.readable[0], "--place"};
  elsewhere.sandbox = options.sandbox;
  const auto placed = codeexec::PlaceExecutor::create(elsewhere);
  if (!placed) fail("a place", placed.error().message);
  measure(there, *placed, source.port(), quick);
  return finish();
}
