// Survival: processes that try to outlive their command.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "attack.hpp"

namespace attacks {
namespace {

// Whoever has the file locked is alive: the lock goes when the last process with the descriptor has
// gone. The file gets the pid as well.
int take_hold(const std::string& file) {
  end_file = file.substr(0, file.rfind('/')) + "/end";
  const int fd = ::open(file.c_str(), O_CREAT | O_RDWR | O_APPEND, 0600);
  if (fd < 0 || ::flock(fd, LOCK_SH) != 0) std::_Exit(tell("hold", -1));
  const std::string line = std::to_string(::getpid()) + "\n";
  if (::write(fd, line.data(), line.size()) < 0) std::_Exit(1);
  return fd;
}

void close_streams() {
  const int null = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) ::dup2(null, fd);
}

[[noreturn]] void run_again(const char* verb, const std::string& file) {
  std::string program = "attack", first = verb, second = file;
  char* const argv[] = {program.data(), first.data(), second.data(), nullptr};
  char* const nothing[] = {nullptr};
  ::execve("/proc/self/exe", argv, nothing);
  std::_Exit(1);
}

int hold(const Arguments& a) {
  for (std::size_t i = 1; i < a.size(); ++i) {
    if (a[i] == "ignore")
      for (const int signal : {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGCONT})
        ::signal(signal, SIG_IGN);
    if (a[i] == "session") ::setsid();
    if (a[i] == "group") ::setpgid(0, 0);
    if (a[i] == "quiet") close_streams();
  }
  take_hold(a[0]);
  if (a.back() == "stop") ::raise(SIGSTOP);
  wait_for_the_end();
}

// A daemon as the book has it: two forks, a session, no streams, no directory.
int daemon_of_two_forks(const Arguments& a) {
  if (::fork() != 0) return 0;
  ::setsid();
  if (::fork() != 0) std::_Exit(0);
  close_streams();
  take_hold(a[0]);
  if (::chdir("/") != 0) std::_Exit(1);
  wait_for_the_end();
}

// And one that has nothing left by which it could be recognised: no variables, another name.
int bare_daemon(const Arguments& a) {
  if (::fork() != 0) return 0;
  ::setsid();
  if (::fork() != 0) std::_Exit(0);
  close_streams();
  run_again("bare", a[0]);
}
int bare(const Arguments& a) {
  ::prctl(PR_SET_NAME, "kworker/u4:2", 0, 0, 0);
  ::setsid();
  take_hold(a[0]);
  wait_for_the_end();
}

// Each one makes the next and ends: whoever kills by pid comes too late.
[[noreturn]] void go_on(int limit) {
  for (int i = 0; i < limit && !ended(); ++i) {
    const pid_t pid = ::fork();
    if (pid > 0) std::_Exit(0);
    if (pid < 0) ::poll(nullptr, 0, 1);
    if (i % 7 == 0) ::setsid();
  }
  wait_for_the_end();
}
int chain(const Arguments& a) {
  if (::fork() != 0) return 0;
  take_hold(a[0]);
  close_streams();
  go_on(3000);
}
// Several of them at once.
int many_chains(const Arguments& a) {
  take_hold(a[0]);
  for (int i = 0; i < 4; ++i) {
    if (::fork() != 0) continue;
    close_streams();
    go_on(2000);
  }
  return 0;
}

// In our memory, but no thread of ours.
alignas(16) char stack[65536];
int same_memory(const Arguments& a) {
  static std::string file;
  file = a[0];
  const auto body = [](void*) {
    ::setsid();
    take_hold(file);
    wait_for_the_end();
    return 0;
  };
  const int pid = ::clone(body, stack + sizeof stack, CLONE_VM | SIGCHLD, nullptr);
  if (pid < 0) return tell("clone", -1);
  while (::access(file.c_str(), F_OK) != 0) ::sched_yield();
  std::_Exit(0);
}

// A child of our parent, and not of us; without a signal to it when it ends.
int sibling(const Arguments& a) {
  const long pid = raw(SYS_clone, CLONE_PARENT, 0L, 0L, 0L, 0L);
  if (pid != 0) return pid < 0 ? tell("clone", -1) : 0;
  ::setsid();
  take_hold(a[0]);
  wait_for_the_end();
}

// Orphans come to us instead of to whoever waits for them above.
int adopter(const Arguments& a) {
  if (::fork() != 0) return 0;
  ::setsid();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  if (::fork() == 0) {
    if (::fork() != 0) std::_Exit(0);
    ::setsid();
    take_hold(a[0] + ".2");
    wait_for_the_end();
  }
  take_hold(a[0]);
  ::signal(SIGCHLD, SIG_IGN);
  wait_for_the_end();
}

// The first thread has ended: the process looks dead in many places, and is not.
void* second_thread(void*) {
  wait_for_the_end();
  return nullptr;
}
int without_leader(const Arguments& a) {
  if (::fork() != 0) return 0;
  ::setsid();
  take_hold(a[0]);
  pthread_t thread;
  if (::pthread_create(&thread, nullptr, second_thread, nullptr) != 0) return 1;
  raw(SYS_exit, 0);
  return 0;
}

// At the request to end it makes another that does not hear it.
std::string heir;
void on_term(int) {
  if (::fork() != 0) std::_Exit(0);
  ::setsid();
  for (const int signal : {SIGTERM, SIGHUP, SIGINT}) ::signal(signal, SIG_IGN);
  take_hold(heir);
  wait_for_the_end();
}
int heir_at_term(const Arguments& a) {
  heir = a[0] + ".2";
  ::signal(SIGTERM, on_term);
  take_hold(a[0]);
  wait_for_the_end();
}

// What a process does that wants to outlive those that it came from.
int without_death_signal(const Arguments& a) {
  if (::fork() != 0) return 0;
  ::prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
  if (::fork() != 0) std::_Exit(0);
  ::prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
  ::setsid();
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  take_hold(a[0]);
  close_streams();
  wait_for_the_end();
}

}  // namespace

Verbs survival_verbs() {
  return {
      {"hold", 1, hold},
      {"daemon", 1, daemon_of_two_forks},
      {"bare-daemon", 1, bare_daemon},
      {"bare", 1, bare},
      {"chain", 1, chain},
      {"many-chains", 1, many_chains},
      {"same-memory", 1, same_memory},
      {"sibling", 1, sibling},
      {"adopter", 1, adopter},
      {"without-leader", 1, without_leader},
      {"heir", 1, heir_at_term},
      {"without-death-signal", 1, without_death_signal},
  };
}

}  // namespace attacks
