// How a host sets itself up, for the worse; the names are those that host.cpp is given.
#include <fcntl.h>
#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "host.hpp"

extern "C" char** environ;

namespace hosts {

// Whoever adopts a process that was killed may leave it a zombie.
bool is_dead(pid_t pid) {
  char text[512] = {};
  const int fd = ::open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return true;
  (void)!::read(fd, text, sizeof text - 1);
  ::close(fd);
  const char* name_end = std::strrchr(text, ')');
  return !name_end || name_end[2] == 'Z' || name_end[2] == 'X';
}

// A fork whose parent is dead, or -1.
pid_t make_orphan() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return -1;
  const pid_t child = ::fork();
  if (child == 0) {
    const pid_t orphan = ::fork();
    if (orphan == 0)
      for (;;) ::pause();
    (void)!::write(ends[1], &orphan, sizeof orphan);
    ::_exit(0);
  }
  ::close(ends[1]);
  pid_t orphan = -1;
  if (::read(ends[0], &orphan, sizeof orphan) != sizeof orphan) orphan = -1;
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return orphan;
}

namespace {

std::atomic<bool> stop{false};
std::vector<std::thread> helpers;
std::atomic<int> stolen{0};

void handle(int number, void (*handler)(int), int flags = 0) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  ::sigaction(number, &action, nullptr);
}

void nothing(int) {}

void reap_everything(int) {
  const int before = errno;
  while (::waitpid(-1, nullptr, WNOHANG) > 0) ++stolen;
  errno = before;
}

// The children of another thread's fork get descriptors, but none of them must survive an exec.
void fork_all_the_time(char* own_name) {
  std::string verdict = "ok";
  while (!stop) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::execl(own_name, own_name, "-", "-", "-", "-", "only-standard", static_cast<char*>(nullptr));
      ::_exit(99);
    }
    int status = 0;
    pid_t ended = -1;
    while (pid > 0 && (ended = ::waitpid(pid, &status, 0)) < 0 && errno == EINTR) {
    }
    if (pid < 0 || ended != pid || status != 0)
      verdict = "WRONG: a child of another thread ended with " + std::to_string(status);
  }
  tell("forker", verdict);
}

std::vector<pid_t> forked;
std::size_t forks_killed = 0;

void end_forks() {
  for (const pid_t pid : forked) {
    if (is_dead(pid)) ++forks_killed;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  forked.clear();
}

// These never execute anything, and so keep whatever was open when they were made: a child of the
// host, and one whose parent is dead.
void keep_forks() {
  while (!stop) {
    const pid_t orphan = make_orphan();
    if (orphan > 0) forked.push_back(orphan);
    const pid_t kept = ::fork();
    if (kept == 0)
      for (;;) ::pause();
    if (kept > 0) forked.push_back(kept);
    ::usleep(2000);
    // So long that the runs which they disturb have ended.
    if (forked.size() >= 40) {
      ::usleep(300000);
      end_forks();
    }
  }
}

}  // namespace

// What the settings have started is ended, and what it must have been like is told.
void end_settings(const std::string& settings) {
  stop = true;
  for (std::thread& helper : helpers) helper.join();
  helpers.clear();
  end_forks();
  if (settings == "kept-forks")
    tell("forks", forks_killed == 0 ? "ok"
                                    : "WRONG: the library killed " + std::to_string(forks_killed) +
                                          " forks of the host");
}

bool set_up(const std::string& setting, char* own_name) {
  if (setting == "none") return true;
  if (setting == "sigchld-ignored") return ::signal(SIGCHLD, SIG_IGN), true;
  if (setting == "sigchld-reaped") return handle(SIGCHLD, reap_everything), true;
  if (setting == "sigchld-reaped-restart")
    return handle(SIGCHLD, reap_everything, SA_RESTART), true;
  if (setting == "sigchld-nocldwait") return handle(SIGCHLD, nothing, SA_NOCLDWAIT), true;
  if (setting == "sigchld-nocldstop") return handle(SIGCHLD, nothing, SA_NOCLDSTOP), true;
  if (setting == "waitpid-thief" || setting == "waitid-thief") {
    const bool info_only = setting == "waitid-thief";
    helpers.emplace_back([info_only] {
      siginfo_t info;
      while (!stop) {
        const int got = info_only ? ::waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WCONTINUED)
                                  : ::waitpid(-1, nullptr, 0);
        if (got < 0 && errno == ECHILD)
          ::usleep(200);
        else
          ++stolen;
      }
    });
    return true;
  }
  if (setting == "signals-blocked") {
    sigset_t all;
    sigfillset(&all);
    return ::pthread_sigmask(SIG_SETMASK, &all, nullptr), true;
  }
  if (setting == "all-ignored") {
    for (int number = 1; number < NSIG; ++number)
      if (number != SIGKILL && number != SIGSTOP) ::signal(number, SIG_IGN);
    return true;
  }
  if (setting == "all-handled") {
    for (int number = 1; number < NSIG; ++number)
      if (number != SIGKILL && number != SIGSTOP && number != SIGSEGV) handle(number, nothing);
    return true;
  }
  if (setting == "sigpipe-default") return ::signal(SIGPIPE, SIG_DFL), true;
  if (setting == "sigpipe-ignored") return ::signal(SIGPIPE, SIG_IGN), true;
  if (setting == "sigpipe-handled") return handle(SIGPIPE, [](int) { ::_exit(97); }), true;
  if (setting.compare(0, 7, "closed-") == 0) {
    for (const char digit : setting.substr(7)) ::close(digit - '0');
    return true;
  }
  if (setting == "alternative-stack") {
    static char memory[65536];
    stack_t stack{};
    stack.ss_sp = memory;
    stack.ss_size = sizeof memory;
    ::sigaltstack(&stack, nullptr);
    for (const int number : {SIGCHLD, SIGALRM, SIGPIPE, SIGUSR1, SIGIO})
      handle(number, nothing, SA_ONSTACK);
    const itimerval beat = {{0, 5000}, {0, 5000}};
    return ::setitimer(ITIMER_REAL, &beat, nullptr), true;
  }
  if (setting == "alarm-storm") {
    handle(SIGALRM, nothing);
    const itimerval storm = {{0, 500}, {0, 500}};
    return ::setitimer(ITIMER_REAL, &storm, nullptr), true;
  }
  if (setting == "forker") {
    helpers.emplace_back([own_name] { fork_all_the_time(own_name); });
    return own_children = true;
  }
  if (setting == "kept-forks") {
    helpers.emplace_back(keep_forks);
    return own_children = true;
  }
  if (setting == "idle-crowd") {
    ::setpriority(PRIO_PROCESS, 0, 19);
    for (int i = 0; i < 8; ++i)
      helpers.emplace_back([] {
        const sched_param none{};
        ::sched_setscheduler(0, SCHED_IDLE, &none);
        while (!stop) sched_yield();
      });
    return true;
  }
  if (setting == "umask-077") return ::umask(077), true;
  if (setting == "umask-777") return ::umask(0777), true;
  if (setting == "directory-deleted" || setting == "directory-closed") {
    const char* base = std::getenv("TMPDIR");
    std::string place = std::string(base ? base : "/tmp") + "/host-XXXXXX";
    if (!::mkdtemp(&place[0]) || ::chdir(place.c_str()) != 0) return false;
    return setting == "directory-deleted" ? ::rmdir(place.c_str()) == 0
                                          : ::chmod(place.c_str(), 0) == 0;
  }
  if (setting.compare(0, 7, "locale-") == 0)
    return ::setlocale(LC_ALL, setting.c_str() + 7) != nullptr;
  if (setting == "environment-none") return ::clearenv() == 0;
  if (setting == "environment-null") return environ = nullptr, true;
  if (setting == "environment-broken") {
    // No `=`, no name, twice the same, bytes that are no text.
    static char texts[][16] = {"nothing",       "=empty",        "",
                               "PATH=/usr/bin", "PATH=/nowhere", "LANG=\xff\xfe"};
    static char* odd[] = {texts[0], texts[1], texts[2], texts[3], texts[4], texts[5], nullptr};
    return environ = odd, true;
  }
  if (setting == "environment-huge") {
    // As setenv() would, which takes seconds for so many.
    static std::vector<std::string> texts;
    static std::vector<char*> variables;
    for (int i = 0; i < 100000; ++i) texts.push_back("HOST_VARIABLE_" + std::to_string(i) + "=x");
    for (char** variable = environ; variable && *variable; ++variable) texts.push_back(*variable);
    for (std::string& text : texts) variables.push_back(&text[0]);
    variables.push_back(nullptr);
    return environ = variables.data(), true;
  }
  if (setting == "traced-off") return ::prctl(PR_SET_DUMPABLE, 0) == 0;
  if (setting == "no-new-privs") return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
  if (setting == "subreaper") return ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
  return false;
}

}  // namespace hosts
