// What the verbs of the attacks share: how they tell what they got, and what old headers lack.
#ifndef CODEEXEC_TESTS_ATTACKS_ATTACK_HPP
#define CODEEXEC_TESTS_ATTACKS_ATTACK_HPP

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace attacks {

using Arguments = std::vector<std::string>;

// Numbers that are the same on every architecture, and that old headers lack.
constexpr long sys_pidfd_send_signal = 424;
constexpr long sys_io_uring_setup = 425;
constexpr long sys_io_uring_enter = 426;
constexpr long sys_open_tree = 428;
constexpr long sys_move_mount = 429;
constexpr long sys_fsopen = 430;
constexpr long sys_pidfd_open = 434;
constexpr long sys_clone3 = 435;
constexpr long sys_openat2 = 437;
constexpr long sys_pidfd_getfd = 438;
constexpr long sys_process_madvise = 440;
constexpr long sys_mount_setattr = 442;
constexpr long sys_quotactl_fd = 443;
constexpr long sys_landlock_create_ruleset = 444;
constexpr long sys_landlock_add_rule = 445;
constexpr long sys_landlock_restrict_self = 446;
constexpr long sys_process_mrelease = 448;
constexpr long sys_file_setattr = 469;

inline long word(long value) { return value; }
inline long word(int value) { return value; }
inline long word(unsigned value) { return static_cast<long>(value); }
inline long word(unsigned long value) { return static_cast<long>(value); }
inline long word(const void* value) {
  return static_cast<long>(reinterpret_cast<std::intptr_t>(value));
}

template <class... Values>
inline long raw(long number, Values... values) {
  return ::syscall(number, word(values)...);
}

inline void say(const std::string& text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const ssize_t size = ::write(1, text.data() + at, text.size() - at);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return;
    at += static_cast<std::size_t>(size);
  }
}

inline int tell(const std::string& name, long result) {
  const int error = result < 0 ? errno : 0;
  say("probe " + name + " " + std::to_string(result < 0 ? -1L : 0L) + " " + std::to_string(error) +
      "\n");
  return result < 0 ? 1 : 0;
}

// This machine has not what the attack needs.
inline int unavailable(const std::string& why) {
  say("unavailable: " + why + ": " + std::strerror(errno) + "\n");
  return 77;
}

inline int number(const std::string& text) { return std::atoi(text.c_str()); }
inline unsigned long address(const std::string& text) {
  return std::strtoul(text.c_str(), nullptr, 0);
}

inline void show(int fd) {
  char bytes[4096];
  for (ssize_t size = 0; (size = ::read(fd, bytes, sizeof bytes)) > 0;)
    say(std::string(bytes, static_cast<std::size_t>(size)));
}

inline int write_and_tell(const std::string& name, int fd) {
  if (fd < 0) return tell(name, -1);
  return tell(name, ::write(fd, "attacked\n", 9));
}

inline int show_and_tell(const std::string& name, int fd) {
  if (fd < 0) return tell(name, -1);
  show(fd);
  return 0;
}

// Where a survivor learns that it may go: the runner makes this file.
inline std::string end_file;
inline bool ended() { return !end_file.empty() && ::access(end_file.c_str(), F_OK) == 0; }

[[noreturn]] inline void wait_for_the_end() {
  ::alarm(60);  // no survivor outlives the suite for long
  while (!ended()) ::poll(nullptr, 0, 20);
  std::_Exit(0);
}

inline sockaddr_in loopback4(const std::string& port) {
  sockaddr_in to;
  std::memset(&to, 0, sizeof to);
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(number(port)));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return to;
}

struct Verb {
  const char* name;
  std::size_t arguments;  // at least
  int (*run)(const Arguments& arguments);
};
using Verbs = std::vector<Verb>;

// Each in a file of its theme.
Verbs file_verbs();
Verbs ring_verbs();
Verbs network_verbs();
Verbs process_verbs();
Verbs privilege_verbs();
Verbs limit_verbs();
Verbs survival_verbs();

}  // namespace attacks

#endif  // CODEEXEC_TESTS_ATTACKS_ATTACK_HPP
