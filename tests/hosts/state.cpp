// What must be as it was when the library has been used: descriptors, signals, variables and so on.
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "host.hpp"

extern "C" char** environ;

namespace hosts {
namespace {

template <class T>
std::string bytes_of(const T& value) {
  std::string text;
  const auto* at = reinterpret_cast<const unsigned char*>(&value);
  for (std::size_t i = 0; i < sizeof value; ++i) text += std::to_string(at[i]) + ".";
  return text;
}

}  // namespace

int last_descriptor() {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  return files.rlim_cur < 2048 ? 2048 : 4096;
}

State state_of_host() {
  State state;
  for (int fd = 0; fd < last_descriptor(); ++fd) {
    const int flags = ::fcntl(fd, F_GETFD);
    struct stat status {};
    if (flags == -1 || ::fstat(fd, &status) != 0) continue;
    state["descriptor " + std::to_string(fd)] =
        std::to_string(flags) + " " + std::to_string(::fcntl(fd, F_GETFL)) + " " +
        std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
  }
  sigset_t mask;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  sigset_t pending;
  ::sigpending(&pending);
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action {};
    if (::sigaction(number, nullptr, &action) != 0) continue;
    const std::string name = std::to_string(number);
    state["mask " + name] = std::to_string(sigismember(&mask, number));
    // A host that blocks these has its own reasons for them to wait.
    if (number != SIGCHLD && number != SIGALRM)
      state["pending " + name] = std::to_string(sigismember(&pending, number));
    state["disposition " + name] = (action.sa_handler == SIG_DFL   ? "default"
                                    : action.sa_handler == SIG_IGN ? "ignored"
                                                                   : "handled ") +
                                   std::to_string(action.sa_flags);
    for (int other = 1; other < NSIG; ++other)
      if (sigismember(&action.sa_mask, other) == 1)
        state["disposition " + name] += " " + std::to_string(other);
  }
  stack_t stack{};
  ::sigaltstack(nullptr, &stack);
  state["alternative stack"] = std::to_string(stack.ss_flags) + " " + std::to_string(stack.ss_size);
  struct stat here {};
  state["directory"] = ::stat(".", &here) == 0
                           ? std::to_string(here.st_dev) + ":" + std::to_string(here.st_ino)
                           : std::string("none");
  const mode_t mode = ::umask(0);
  ::umask(mode);
  state["umask"] = std::to_string(mode);
  std::string all;
  for (char** variable = environ; variable && *variable; ++variable) all += *variable, all += '\n';
  state["environment"] =
      std::to_string(all.size()) + " " + std::to_string(std::hash<std::string>()(all));
  for (int resource = 0; resource < RLIM_NLIMITS; ++resource) {
    rlimit limit{};
    ::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit);
    state["limit " + std::to_string(resource)] = bytes_of(limit);
  }
  const char* locale = ::setlocale(LC_ALL, nullptr);
  state["locale"] = locale ? locale : "none";
  state["nice"] = std::to_string(::getpriority(PRIO_PROCESS, 0));
  int number = 0;
  ::prctl(PR_GET_CHILD_SUBREAPER, &number, 0, 0, 0);
  state["subreaper"] = std::to_string(number);
  ::prctl(PR_GET_PDEATHSIG, &number, 0, 0, 0);
  state["death signal"] = std::to_string(number);
  state["no_new_privs"] = std::to_string(::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
  state["dumpable"] = std::to_string(::prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
  state["session"] = std::to_string(::getsid(0)) + " " + std::to_string(::getpgrp());
  state["identity"] = std::to_string(::geteuid()) + " " + std::to_string(::getegid());
  return state;
}

std::string difference(const State& before, const State& after) {
  std::string text;
  for (const auto& [name, value] : before) {
    const auto found = after.find(name);
    if (found == after.end())
      text += name + " is gone; ";
    else if (found->second != value)
      text += name + ": " + value + " -> " + found->second + "; ";
  }
  for (const auto& [name, value] : after)
    if (before.find(name) == before.end()) text += name + " is new: " + value + "; ";
  return text;
}

}  // namespace hosts
