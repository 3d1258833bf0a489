// Helpers that several tests of the process section share.
#ifndef CODEEXEC_TESTS_UNIT_PROCESS_HELPERS_HPP
#define CODEEXEC_TESTS_UNIT_PROCESS_HELPERS_HPP

#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "../../helpers/support.hpp"

namespace support {

inline std::string child_path() {
#ifdef CODEEXEC_TEST_CHILD
  return CODEEXEC_TEST_CHILD;
#else
  const char* path = std::getenv("CODEEXEC_TEST_CHILD");
  return path ? path : "./codeexec-test-child";
#endif
}

// All cases of this section hold for programs with a supervisor between them and the host, too, in
// a sandbox or not: two more entries of ctest run them like that.
inline bool in_sandbox() { return std::getenv("CODEEXEC_TEST_SANDBOX") != nullptr; }

inline bool supervised() { return std::getenv("CODEEXEC_TEST_SUPERVISED") != nullptr; }

// One that lets the cases do what they do otherwise.
inline const codeexec::Sandbox& wide_sandbox() {
  static const codeexec::Sandbox sandbox = [] {
    const char* temporary = std::getenv("TMPDIR");
    codeexec::SandboxOptions options;
    options.mode = codeexec::SandboxMode::best_effort;
    options.writable = {support::real_path(temporary && *temporary ? temporary : "/tmp")};
    const std::string child = support::real_path(child_path());
    options.readable = {child.substr(0, child.rfind('/'))};
    auto made = codeexec::Sandbox::create(options);
    if (!made) support::fail("sandbox", made.error().message);
    return *made;
  }();
  return sandbox;
}

inline codeexec::ProcessOptions program(std::vector<std::string> argv) {
  codeexec::ProcessOptions options;
  options.argv = std::move(argv);
  options.environment = {"PATH=/usr/bin:/bin"};
  options.timeout = safety;
  if (in_sandbox()) options.sandbox = wide_sandbox();
  options.supervised = supervised();
  return options;
}

inline void without_supervisor(codeexec::ProcessOptions& options) {
  options.sandbox = codeexec::Sandbox();
  options.supervised = false;
}

inline codeexec::ProcessOptions shell(const std::string& script) {
  return program({"/bin/sh", "-c", script});
}

inline codeexec::ProcessOptions child(std::vector<std::string> words) {
  words.insert(words.begin(), child_path());
  return program(std::move(words));
}

inline bool has_zombie() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

inline std::string describe(const codeexec::ProcessResult& r) {
  return std::string(codeexec::name(r.outcome)) + " code " + std::to_string(r.exit_code) +
         " signal " + std::to_string(r.signal) + " out '" + r.out + "' err '" + r.err +
         "' message '" + r.message + "'";
}

inline int thread_count() {
  int count = 0;
  if (DIR* directory = ::opendir("/proc/self/task")) {
    while (const dirent* entry = ::readdir(directory))
      if (entry->d_name[0] != '.') ++count;
    ::closedir(directory);
  }
  return count;
}

// Descriptors that a run must not leave open. The sandbox of all cases keeps supervisors for the
// next commands, each with a socket and a pidfd; without it these are counted, too.
inline int count_leftovers() {
  int count = support::count_descriptors();
  if (!in_sandbox()) return count;
  const long limit = ::sysconf(_SC_OPEN_MAX);  // beyond which none was counted
  for (int fd = 0; fd < limit && fd < 4096; ++fd) {
    char target[64] = {};
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    if (::readlink(link.c_str(), target, sizeof target - 1) <= 0) continue;
    if (begins(target, "socket:") || begins(target, "anon_inode:[pidfd]")) --count;
  }
  return count;
}

// Says when no descriptor and no zombie is left more than before.
class LeftoverCheck {
 public:
  LeftoverCheck() {
    if (in_sandbox()) wide_sandbox();  // it has descriptors of its own, once it is made
    before_ = count_leftovers();
  }
  bool clean() const { return count_leftovers() == before_ && !has_zombie(); }

 private:
  int before_ = 0;
};

inline bool same_mask(const sigset_t& a, const sigset_t& b) {
  for (int number = 1; number < NSIG; ++number)
    if (sigismember(&a, number) != sigismember(&b, number)) return false;
  return true;
}

// A run after which nothing of the host's has changed.
inline codeexec::ProcessResult run_clean(const codeexec::ProcessOptions& options) {
  const LeftoverCheck leaks;
  sigset_t before;
  sigset_t after;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
  codeexec::ProcessResult result = codeexec::run_process(options);
  ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
  CHECK(same_mask(before, after));
  CHECK(leaks.clean());
  return result;
}

inline bool has_supervisor() {
  if (contains(wide_sandbox().report().enforced, "containment")) return true;
  MESSAGE("SKIPPED: there is no supervisor on this system");
  return false;
}

}  // namespace support

#endif  // CODEEXEC_TESTS_UNIT_PROCESS_HELPERS_HPP
