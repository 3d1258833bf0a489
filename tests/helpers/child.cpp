// A program for the tests of processes: each verb is one kind of bad (or merely unusual) behaviour.
// Usage: codeexec-test-child VERB [ARGUMENT...]
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

void say(const std::string& text, int fd = 1) {
  std::size_t at = 0;
  while (at < text.size()) {
    const ssize_t size = ::write(fd, text.data() + at, text.size() - at);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) std::_Exit(99);
    at += static_cast<std::size_t>(size);
  }
}

[[noreturn]] void sleep_for_ever() {
  for (;;) ::pause();
}

void sleep_milliseconds(int time) { ::usleep(static_cast<useconds_t>(time) * 1000); }

int term_status = 0;

void on_term(int) {
  say("bye\n");
  std::_Exit(term_status);
}

// SIGTERM is ignored: only SIGKILL helps.
int ignore_term() {
  ::signal(SIGTERM, SIG_IGN);
  say("ready\n");
  sleep_for_ever();
}

// Says goodbye on SIGTERM and ends with the given status.
int handle_term(int status) {
  term_status = status;
  ::signal(SIGTERM, on_term);
  say("ready\n");
  sleep_for_ever();
}

// Writes that many bytes, 'x', to a descriptor; for ever when it is 0.
int flood(int fd, unsigned long long bytes) {
  const std::string block(65536, 'x');
  if (bytes == 0)
    for (;;) say(block, fd);
  for (unsigned long long left = bytes; left > 0;) {
    const std::size_t size = left < block.size() ? static_cast<std::size_t>(left) : block.size();
    say(block.substr(0, size), fd);
    left -= size;
  }
  return 0;
}

// One byte per write.
int dribble(int count) {
  for (int i = 0; i < count; ++i) say(std::string(1, static_cast<char>('a' + i % 26)));
  return 0;
}

// Starts a process in a session of its own that keeps the pipes open, prints its number and ends.
int leave_session() {
  int ends[2];
  if (::pipe(ends) != 0) return 1;
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::setsid();
    ::close(ends[0]);
    ::close(ends[1]);
    sleep_for_ever();
  }
  ::close(ends[1]);
  char none = 0;
  (void)!::read(ends[0], &none, 1);  // its end: the other has left
  say(std::to_string(pid) + "\n");
  return 0;
}

// Like a daemon: forks twice, so that its parent is dead; keeps the pipes, prints its number. With
// `writes`, it writes to standard output again and again.
int daemonize(bool writes) {
  const pid_t first = ::fork();
  if (first == 0) {
    ::setsid();
    int said[2] = {-1, -1};
    if (::pipe(said) != 0) std::_Exit(97);
    const pid_t second = ::fork();
    if (second != 0) {
      say(std::to_string(second) + "\n");
      std::_Exit(0);
    }
    // The number comes first: its writer has ended when the pipe has.
    char end = 0;
    ::close(said[1]);
    while (::read(said[0], &end, 1) < 0 && errno == EINTR) continue;
    ::close(said[0]);
    ::signal(SIGPIPE, SIG_IGN);
    while (writes) {
      if (::write(1, ".", 1) < 0) std::_Exit(0);
      sleep_milliseconds(5);
    }
    sleep_for_ever();
  }
  int status = 0;
  ::waitpid(first, &status, 0);
  return 0;
}

// Has a descendant in another session that holds no pipe, and lives on with it.
int hide_descendant() {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::signal(SIGTERM, SIG_IGN);
    ::setsid();
    const int null = ::open("/dev/null", O_RDWR);
    ::dup2(null, 0);
    ::dup2(null, 1);
    ::dup2(null, 2);
    sleep_for_ever();
  }
  say(std::to_string(pid) + "\n");
  sleep_for_ever();
}

void* speak_late(void*) {
  sleep_milliseconds(300);
  say("late\n");
  std::_Exit(5);
}

// The first thread ends, the process does not.
int leader_exits() {
  pthread_t thread;
  ::pthread_create(&thread, nullptr, speak_late, nullptr);
  ::pthread_detach(thread);
  say("early\n");
  ::pthread_exit(nullptr);
}

// End of output is not the end.
int close_early() {
  say("before\n");
  ::close(1);
  ::close(2);
  sleep_milliseconds(300);
  return 4;
}

// Lines of /proc/self/status about signals.
int show_signals() {
  std::FILE* file = std::fopen("/proc/self/status", "r");
  char line[256];
  while (file && std::fgets(line, sizeof line, file))
    if (std::strncmp(line, "SigBlk", 6) == 0 || std::strncmp(line, "SigIgn", 6) == 0) say(line);
  if (file) std::fclose(file);
  return 0;
}

int show_descriptors() {
  std::string list;
  for (int fd = 0; fd < 4096; ++fd)
    if (::fcntl(fd, F_GETFD) != -1) list += std::to_string(fd) + " ";
  say(list + "\n");
  return 0;
}

int copy(int from) {
  char buffer[65536];
  for (;;) {
    const ssize_t size = ::read(from, buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return size == 0 ? 0 : 1;
    say(std::string(buffer, static_cast<std::size_t>(size)));
  }
}

int show_session() {
  const int terminal = ::open("/dev/tty", O_RDWR);
  rlimit core{};
  ::getrlimit(RLIMIT_CORE, &core);
  say(::getsid(0) == ::getpid() ? "session leader\n" : "in a session\n");
  say(::getpgrp() == ::getpid() ? "group leader\n" : "in a group\n");
  say(terminal < 0 ? "no terminal\n" : "terminal\n");
  say(core.rlim_cur == 0 ? "no core\n" : "core\n");
  return 0;
}

// A child for every signal of the group: each of them is told.
int fork_storm(int count) {
  for (int i = 0; i < count; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) sleep_for_ever();
    if (pid > 0) say(std::to_string(pid) + "\n");
  }
  sleep_for_ever();
}

// Leaves a daemon that traces this process, and so is told of its end before its parent is. Status
// 9: this system does not let it.
int be_traced() {
  int ready[2];
  if (::pipe(ready) != 0) return 1;
  const pid_t self = ::getpid();
  if (::fork() == 0) {
    ::setsid();
    ::signal(SIGTERM, SIG_IGN);
    const bool traces = ::ptrace(PTRACE_SEIZE, self, nullptr, nullptr) == 0;
    say(traces ? "y" : "n", ready[1]);
    for (int fd = 0; fd < 3; ++fd) ::close(fd);
    ::close(ready[0]);
    ::close(ready[1]);
    sleep_for_ever();
  }
  char answer = 'n';
  while (::read(ready[0], &answer, 1) < 0 && errno == EINTR) {
  }
  // Nothing at the end, such as a check for leaks, could trace this process as well.
  std::_Exit(answer == 'y' ? 0 : 9);
}

// Chains of daemons, all alive, of which the last one always makes one more.
int grow_chains(int chains, int length) {
  for (int chain = 0; chain < chains; ++chain) {
    if (::fork() != 0) continue;
    for (int fd = 0; fd < 3; ++fd) ::close(fd);
    for (int link = 0; link < length; ++link) {
      ::setsid();
      if (::fork() != 0) sleep_for_ever();
      ::usleep(300);
    }
    sleep_for_ever();
  }
  return 0;
}

// Installed with the right to, it leaves a daemon that only root can kill, until nobody reads from
// the pipe that is descriptor 3. Status 9: it has not got the right.
int become_root() {
  if (::setuid(0) != 0) return 9;
  int ready[2];
  if (::pipe(ready) != 0) return 1;
  if (::fork() == 0) {
    ::setsid();
    for (int fd = 0; fd < 3; ++fd) ::close(fd);
    ::close(ready[0]);
    ::close(ready[1]);
    pollfd unread = {3, 0, 0};
    ::poll(&unread, 1, 60000);
    std::_Exit(0);
  }
  ::close(ready[1]);
  char none = 0;
  while (::read(ready[0], &none, 1) < 0 && errno == EINTR) {
  }
  return 0;
}

int reopen_stdout() {
  const int fd = ::open("/dev/stdout", O_WRONLY);
  if (fd < 0) return 1;
  say("reopened\n", fd);
  return 0;
}

int number(char** argv, int index) { return argv[index] ? std::atoi(argv[index]) : 0; }

}  // namespace

int main(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  if (verb == "ignore-term") return ignore_term();
  if (verb == "handle-term") return handle_term(number(argv, 2));
  if (verb == "flood") return flood(number(argv, 2), std::strtoull(argv[3], nullptr, 10));
  if (verb == "dribble") return dribble(number(argv, 2));
  if (verb == "leave-session") return leave_session();
  if (verb == "daemon") return daemonize(false);
  if (verb == "daemon-writer") return daemonize(true);
  if (verb == "hide-descendant") return hide_descendant();
  if (verb == "leader-exits") return leader_exits();
  if (verb == "close-early") return close_early();
  if (verb == "signals") return show_signals();
  if (verb == "descriptors") return show_descriptors();
  if (verb == "copy") return copy(number(argv, 2));
  if (verb == "session") return show_session();
  if (verb == "fork-storm") return fork_storm(number(argv, 2));
  if (verb == "reopen-stdout") return reopen_stdout();
  if (verb == "be-traced") return be_traced();
  if (verb == "become-root") return become_root();
  if (verb == "grow-chains") return grow_chains(number(argv, 2), number(argv, 3));
  if (verb == "exit") return number(argv, 2);
  if (verb == "raise") {
    ::raise(number(argv, 2));
    say("survived\n");
    return 0;
  }
  if (verb == "no-input") {
    // With an argument it empties the pipe first, so that there is room for a write that nobody
    // will read.
    static char buffer[65536];
    if (argc > 2) (void)!::read(0, buffer, sizeof buffer);
    ::close(0);
    sleep_milliseconds(20);
    return 0;
  }
  if (verb == "sleep") {
    say("ready\n");
    sleep_for_ever();
  }
  std::fprintf(stderr, "codeexec-test-child: unknown verb '%s'\n", verb.c_str());
  return 98;
}
