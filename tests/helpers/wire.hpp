// Two network namespaces, and a wire between them that is slow, loses packets or is pulled out.
//
// The wire is a thread of this program: what one end's network device sends it hands to the other.
// So it needs neither `tc` nor a kernel with netem. The namespaces have no names, and end with this
// object and the programs in them. Needs root, /dev/net/tun and nsenter.
#ifndef CODEEXEC_TESTS_WIRE_HPP
#define CODEEXEC_TESTS_WIRE_HPP

#include <arpa/inet.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <atomic>
#include <deque>
#include <thread>

#include "support.hpp"

namespace support {

class Wire {
 public:
  static constexpr const char* addresses[2] = {"10.97.0.1", "10.97.0.2"};  // near, far

  // Both ends are up when it returns; see problem().
  Wire() {
    if (::pipe2(wake_, O_CLOEXEC) != 0) return;
    for (const int end : {0, 1}) {
      // A thread can be in a namespace of its own, and leaves it by its end.
      std::thread([this, end] { problem_ = problem_.empty() ? join(end) : problem_; }).join();
      if (!problem_.empty()) return;
    }
    thread_ = std::thread([this] { carry(); });
  }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  ~Wire() {
    ::close(wake_[1]);
    if (thread_.joinable()) thread_.join();
    for (const int fd : {wake_[0], ends_[0], ends_[1], namespaces_[0], namespaces_[1]})
      if (fd >= 0) ::close(fd);
  }

  // Why there is none; empty: there is one.
  const std::string& problem() const { return problem_; }

  // The words that begin a command at its near end (0) or its far one (1).
  std::vector<std::string> at(int end) const {
    return {"nsenter", "--net=/proc/" + std::to_string(::getpid()) + "/fd/" +
                           std::to_string(namespaces_[end])};
  }

  // A socket at its near end.
  int socket() const {
    int fd = -1;
    std::thread([&] {
      if (::setns(namespaces_[0], CLONE_NEWNET) == 0)
        fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    }).join();
    if (fd < 0) fail("socket", addresses[0]);
    return fd;
  }

  // So long each way.
  void delay(std::chrono::microseconds time) { delay_.store(time.count()); }
  // So many of a thousand packets go missing.
  void lose(unsigned share) { lost_.store(share); }
  // How many did.
  unsigned long missing() const { return missing_.load(); }

  // As a cable that comes out: both ends see that they are connected to nothing.
  void pull() {
    cut_[0].store(true);
    cut_[1].store(true);
    set_carrier(0);
  }
  void plug() {
    set_carrier(1);
    cut_[0].store(false);
    cut_[1].store(false);
  }
  // What is sent by one end arrives nowhere, and nobody sees that.
  void cut(int from) { cut_[from].store(true); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Packet {
    Clock::time_point due;
    std::string bytes;
  };
  // More are lost, as in any queue of a network.
  static constexpr std::size_t most_waiting = 8192;

  // Makes the namespace and the device of one end, in a thread that is left in it.
  std::string join(int end) {
    const auto problem = [](const char* what) {
      return std::string("no network namespaces with devices here: ") + what + ": " +
             std::strerror(errno);
    };
    if (::unshare(CLONE_NEWNET) != 0) return problem("unshare");
    namespaces_[end] = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (namespaces_[end] < 0) return problem("/proc/thread-self/ns/net");
    const int tun = ::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (tun < 0) return problem("/dev/net/tun");
    ends_[end] = tun;
    ifreq device = named("wire");
    device.ifr_flags = IFF_TUN | IFF_NO_PI;
    if (::ioctl(tun, TUNSETIFF, &device) != 0) return problem("TUNSETIFF");
    const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool done = fd >= 0;
    for (const auto& [request, text] :
         {std::pair(SIOCSIFADDR, addresses[end]), std::pair(SIOCSIFNETMASK, "255.255.255.0")}) {
      sockaddr_in address{};
      address.sin_family = AF_INET;
      ::inet_pton(AF_INET, text, &address.sin_addr);
      ifreq set = named("wire");
      std::memcpy(&set.ifr_addr, &address, sizeof address);
      done = done && ::ioctl(fd, static_cast<unsigned long>(request), &set) == 0;
    }
    for (const char* name : {"lo", "wire"}) {
      ifreq up = named(name);
      up.ifr_flags = IFF_UP | IFF_RUNNING;
      done = done && ::ioctl(fd, SIOCSIFFLAGS, &up) == 0;
    }
    const std::string result = done ? std::string() : problem("ioctl");
    ::close(fd);
    // What most systems have. Others pace what they send by guesses, which costs milliseconds.
    const int control = ::open("/proc/sys/net/ipv4/tcp_congestion_control", O_WRONLY | O_CLOEXEC);
    if (control >= 0) {
      (void)!::write(control, "cubic", 5);
      ::close(control);
    }
    return result;
  }

  static ifreq named(const char* name) {
    ifreq result{};
    std::snprintf(result.ifr_name, sizeof result.ifr_name, "%s", name);
    return result;
  }

  void set_carrier(int value) {
    for (const int end : ends_) ::ioctl(end, TUNSETCARRIER, &value);
  }

  void carry() {
    std::uint32_t random = 1;
    std::deque<Packet> waiting[2];
    for (;;) {
      Clock::time_point due = Clock::time_point::max();
      for (const auto& packets : waiting)
        if (!packets.empty()) due = std::min(due, packets.front().due);
      pollfd set[] = {{ends_[0], POLLIN, 0}, {ends_[1], POLLIN, 0}, {wake_[0], POLLIN, 0}};
      timespec time{};
      if (due != Clock::time_point::max()) {
        const auto left = std::max((due - Clock::now()).count(), Clock::rep(0));
        time = {static_cast<time_t>(left / 1000000000), static_cast<long>(left % 1000000000)};
      }
      ::ppoll(set, 3, due == Clock::time_point::max() ? nullptr : &time, nullptr);
      if (set[2].revents) return;
      for (const int from : {0, 1}) {
        if (set[from].revents & POLLIN) take(from, waiting[from], random);
        while (!waiting[from].empty() && waiting[from].front().due <= Clock::now()) {
          const std::string& bytes = waiting[from].front().bytes;
          // What cannot be taken is lost, as anywhere.
          if (!cut_[from].load()) (void)!::write(ends_[1 - from], bytes.data(), bytes.size());
          waiting[from].pop_front();
        }
      }
    }
  }

  void take(int from, std::deque<Packet>& waiting, std::uint32_t& random) {
    char buffer[65536];
    for (int i = 0; i < 64; ++i) {
      const ssize_t size = ::read(ends_[from], buffer, sizeof buffer);
      if (size <= 0) return;
      random = random * 1664525 + 1013904223;
      if (cut_[from].load() || waiting.size() >= most_waiting) continue;
      if ((random >> 16) % 1000 < lost_.load()) {
        ++missing_;
        continue;
      }
      waiting.push_back({Clock::now() + std::chrono::microseconds(delay_.load()),
                         std::string(buffer, static_cast<std::size_t>(size))});
    }
  }

  std::string problem_ = {};
  int wake_[2] = {-1, -1};
  int ends_[2] = {-1, -1};
  int namespaces_[2] = {-1, -1};
  std::atomic<long long> delay_{0};  // in microseconds
  std::atomic<unsigned> lost_{0};
  std::atomic<unsigned long> missing_{0};
  std::atomic<bool> cut_[2] = {{false}, {false}};  // what comes from there
  std::thread thread_ = {};
};

}  // namespace support

#endif  // CODEEXEC_TESTS_WIRE_HPP
