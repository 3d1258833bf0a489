// What the parts of the host program share; see host.cpp.
#ifndef CODEEXEC_TESTS_HOSTS_HOST_HPP
#define CODEEXEC_TESTS_HOSTS_HOST_HPP

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "codeexec.hpp"

namespace hosts {

inline int report = -1;
inline std::string mark;
inline std::string workspace;
// Only what hangs takes longer.
constexpr std::chrono::milliseconds patience = std::chrono::seconds(60);

inline void say(const std::string& text, int fd) {
  std::size_t at = 0;
  while (at < text.size()) {
    const ssize_t size = ::write(fd, text.data() + at, text.size() - at);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return;
    at += static_cast<std::size_t>(size);
  }
}

inline std::string one_line(std::string text) {
  if (text.size() > 300) text.resize(300);
  std::replace(text.begin(), text.end(), '\n', '|');
  return text;
}

inline void tell(const std::string& way, const std::string& verdict) {
  say(way + ": " + one_line(verdict) + "\n", report);
}

// What must be as it was afterwards, in state.cpp -------------------------------------------------

using State = std::map<std::string, std::string>;

// Descriptors below this one are looked at.
int last_descriptor();
State state_of_host();
std::string difference(const State& before, const State& after);

// Settings, in settings.cpp -----------------------------------------------------------------------

inline bool own_children = false;  // the host has some, and minds them

bool set_up(const std::string& setting, char* own_name);
void end_settings(const std::string& settings);
bool is_dead(pid_t pid);
pid_t make_orphan();

// Ways to use the library, in ways.cpp ------------------------------------------------------------

struct Way {
  const char* name;
  std::string (*use)();
};
std::vector<Way> ways();
std::string use_plugin(const std::string& path);

codeexec::ProcessOptions shell(const std::string& script);
codeexec::LocalOptions local();
std::string with_mark(std::string script);

}  // namespace hosts

#endif  // CODEEXEC_TESTS_HOSTS_HOST_HPP
