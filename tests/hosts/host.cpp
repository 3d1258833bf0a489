// A host program of the worst kind. It sets itself up as it is told, uses the library in each way
// there is, and tells what it saw; run.py makes the surroundings and judges.
//
//   codeexec-test-host REPORT SETTINGS MARK WORKSPACE WAY...
//     REPORT     the descriptor of a pipe that takes a line for each way, "WAY: VERDICT[: text]",
//                and "host: ok" when nothing of the host has changed; it is close-on-exec at once
//     SETTINGS   see settings below, joined with +; "none"
//     MARK       so many seconds sleep those that must not survive: run.py finds them by it
//     WORKSPACE  a directory; when it is "-", the current one
//     WAY        see ways and main() below
//   Verdicts: ok; refused (nothing was run, and a message says why); told (it ran, and what went
//   wrong is told); unknown (how it ended could not be learned, as is said); WRONG.
//
// Exit status: 0, however bad it was; 98 for a wrong use.
#include <dlfcn.h>
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "codeexec.hpp"

extern "C" char** environ;

namespace {

using codeexec::BackgroundShells;
using codeexec::Command;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Outcome;
using codeexec::ProcessOptions;
using codeexec::ProcessResult;
using codeexec::Stream;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

int report = -1;
std::string mark;
std::string workspace;
// Only what hangs takes longer.
constexpr milliseconds patience = std::chrono::seconds(60);

void say(const std::string& text, int fd) {
  std::size_t at = 0;
  while (at < text.size()) {
    const ssize_t size = ::write(fd, text.data() + at, text.size() - at);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return;
    at += static_cast<std::size_t>(size);
  }
}

std::string one_line(std::string text) {
  if (text.size() > 300) text.resize(300);
  std::replace(text.begin(), text.end(), '\n', '|');
  return text;
}

void tell(const std::string& way, const std::string& verdict) {
  say(way + ": " + one_line(verdict) + "\n", report);
}

// What must be as it was afterwards ---------------------------------------------------------------

using State = std::map<std::string, std::string>;

template <class T>
std::string bytes_of(const T& value) {
  std::string text;
  const auto* at = reinterpret_cast<const unsigned char*>(&value);
  for (std::size_t i = 0; i < sizeof value; ++i) text += std::to_string(at[i]) + ".";
  return text;
}

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

// Settings ----------------------------------------------------------------------------------------

std::atomic<bool> stop{false};
std::vector<std::thread> helpers;
std::atomic<int> stolen{0};
bool own_children = false;  // the host has some, and minds them

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

// Ways to use the library -------------------------------------------------------------------------

std::string describe(const ProcessResult& r) {
  return std::string(name(r.outcome)) + " " + std::to_string(r.exit_code) + " signal " +
         std::to_string(r.signal) + " out '" + r.out.substr(0, 100) + "' err '" +
         r.err.substr(0, 100) + "' " + r.step + " " + r.message + (r.pipe_held ? " (held)" : "");
}

std::string wrong(const ProcessResult& r) { return "WRONG: " + describe(r); }

// What a run that was not as it should be may be, when it says so.
std::string excuse(const ProcessResult& r) {
  if (r.outcome == Outcome::not_started && !r.message.empty() && r.exit_code == -1)
    return "refused: " + r.message;
  if (r.outcome == Outcome::unknown && !r.message.empty() && r.exit_code == -1)
    return "unknown: " + r.message;
  return wrong(r);
}

std::string refused(const codeexec::Error& error) {
  return error.message.empty() ? "WRONG: an error without a message" : "refused: " + error.message;
}

ProcessOptions shell(const std::string& script) {
  ProcessOptions options;
  options.argv = {"/bin/sh", "-c", script};
  options.environment = {"PATH=/usr/bin:/bin"};
  options.work_dir = "/";
  options.timeout = patience;
  return options;
}

std::string judge_seven(const ProcessResult& r, const char* out, const char* err) {
  // What holds a pipe can be a fork of this program.
  const bool whole = r.out == out && r.err == err && (own_children || !r.pipe_held);
  if (r.outcome != Outcome::exited || r.exit_code != 7 || !whole) return excuse(r);
  return r.message.empty() ? "ok" : "told: " + r.message;
}

// The end of a run that was stopped: its outcome, its output, and that it came in time.
template <class Run>
std::string judge_timeout(Run&& run) {
  // Twice as long each time, for a machine on which the shell takes its time.
  for (milliseconds timeout(150);; timeout *= 2) {
    const auto begin = Clock::now();
    const ProcessResult r = run(timeout);
    const auto took = std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
    if (r.outcome == Outcome::not_started) return excuse(r);
    if (took > timeout + std::chrono::seconds(30))
      return "WRONG: took " + std::to_string(took.count()) + " ms of " +
             std::to_string(timeout.count());
    if (r.outcome == Outcome::timed_out && r.out == "before\n")
      return r.message.empty() ? "ok" : "told: " + r.message;
    if (r.outcome != Outcome::timed_out || timeout > patience / 2) return excuse(r);
  }
}

const char* const daemon_script = "(setsid sleep $MARK </dev/null >/dev/null 2>&1 &); ";

std::string with_mark(std::string script) {
  for (std::size_t at; (at = script.find("$MARK")) != std::string::npos;)
    script.replace(at, 5, mark);
  return script;
}

std::string run_plain() {
  ProcessOptions options = shell("cat; echo err >&2; exit 7");
  options.input = "in";
  return judge_seven(run_process(options), "in", "err\n");
}

std::string run_until_timeout() {
  return judge_timeout([](milliseconds timeout) {
    ProcessOptions options = shell(with_mark("echo before; setsid sleep $MARK & sleep $MARK"));
    options.timeout = timeout;
    options.kill_grace = milliseconds(100);
    return run_process(options);
  });
}

std::string run_many() {
  for (int i = 0; i < 100; ++i) {
    const ProcessResult r = run_process(shell("echo out; exit 7"));
    if (r.exit_code != 7 || r.out != "out\n") return excuse(r);
  }
  return "ok";
}

// Nor is it killed for holding a pipe of the program's.
std::string fork_during_run() {
  ProcessOptions options = shell("echo ready; exit 7");
  std::vector<pid_t> forks;
  options.on_output = [&forks](Stream, std::string_view) {
    forks.push_back(make_orphan());
    forks.push_back(::fork());
    if (forks.back() == 0)
      for (;;) ::pause();
  };
  const ProcessResult r = run_process(options);
  std::string verdict =
      r.exit_code == 7 && r.out == "ready\n" && r.pipe_held && forks.size() == 2 ? "ok" : wrong(r);
  for (const pid_t pid : forks) {
    if (pid < 0 || is_dead(pid)) verdict = "WRONG: a fork of the host was killed";
    if (pid > 0) ::kill(pid, SIGKILL);
    if (pid > 0) ::waitpid(pid, nullptr, 0);
  }
  return verdict;
}

// A fork of the host that is made while a program runs does not keep its standard input open.
std::string fork_after_start() {
  for (int i = 0; i < 20; ++i) {
    ProcessOptions options = shell("cat; exit 7");
    options.input = "in";
    auto process = codeexec::Process::start(std::move(options));
    if (!process) return refused(process.error());
    const pid_t pid = ::fork();
    if (pid == 0)
      for (;;) ::pause();
    const bool ended = process->wait_for(std::chrono::seconds(20));
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    if (!ended) return "WRONG: it waits for the end of its input";
    if (process->wait().out != "in") return wrong(process->wait());
  }
  return "ok";
}

std::string start_and_cancel() {
  ProcessOptions options = shell(with_mark("echo ready; sleep $MARK & sleep $MARK"));
  const codeexec::CancelToken token;
  options.cancel = token;
  options.on_output = [token](Stream, std::string_view) { token.cancel(); };
  ProcessResult failure;
  auto process = codeexec::Process::start(std::move(options), {}, &failure);
  if (!process) return refused(process.error());
  if (!process->wait_for(patience)) return "WRONG: it goes on";
  const ProcessResult& r = process->wait();
  return r.outcome == Outcome::cancelled && r.out == "ready\n" ? "ok" : excuse(r);
}

std::string run_supervised() {
  ProcessOptions options = shell(with_mark(daemon_script) + "echo out; exit 7");
  options.supervised = true;
  return judge_seven(run_process(options), "out\n", "");
}

std::string time_out_supervised() {
  return judge_timeout([](milliseconds timeout) {
    ProcessOptions options = shell(with_mark(daemon_script) + "echo before; sleep " + mark);
    options.supervised = true;
    options.timeout = timeout;
    options.kill_grace = milliseconds(100);
    return run_process(options);
  });
}

LocalOptions local() {
  LocalOptions options;
  options.workspace = workspace;
  options.timeout = patience;
  options.kill_grace = milliseconds(100);
  options.environment.auto_venv = false;
  return options;
}

std::string run_in_sandbox() {
  LocalOptions options = local();
  options.sandbox.mode = codeexec::SandboxMode::strict;
  if (!workspace.empty()) options.roots = {{workspace, codeexec::Permission::write}};
  auto executor = LocalExecutor::create(options);
  if (!executor) return refused(executor.error());
  const codeexec::Result r = executor->run(with_mark(daemon_script) +
                                           "(echo in > in && cat in) 2>/dev/null || echo cannot; "
                                           "(echo > /tmp/codeexec-host-out) 2>/dev/null && "
                                           "echo outside; exit 7");
  if (r.out == "cannot\n" && r.exit_code == 7) return "told: it cannot write to its workspace";
  return judge_seven(r, "in\n", "");
}

std::string run_script() {
  auto executor = LocalExecutor::create(local());
  if (!executor) return refused(executor.error());
  return judge_seven(executor->run("echo out; echo err >&2; exit 7"), "out\n", "err\n");
}

std::string keep_all_variables() {
  LocalOptions options = local();
  options.environment.keep_all = true;
  auto executor = LocalExecutor::create(options);
  if (!executor) return refused(executor.error());
  return judge_seven(executor->run("echo out; exit 7"), "out\n", "");
}

std::string background_shell() {
  auto executor = LocalExecutor::create(local());
  if (!executor) return refused(executor.error());
  BackgroundShells shells(*executor);
  const auto started =
      shells.start(Command::shell(with_mark("echo ready; sleep $MARK & sleep $MARK")));
  if (!started) return refused(started.error());
  codeexec::ShellWait until;
  until.pattern = *codeexec::Regex::compile("ready");
  until.time = patience;
  const auto end = shells.wait(started->id, until);
  if (!end) return "told: " + end.error().message;
  const auto killed = shells.kill(started->id);
  if (!killed || !*killed) return "WRONG: it was not the kill that ended it";
  const auto output = shells.read(started->id);
  if (!output || output->out.text != "ready\n") return "WRONG: its output is not there";
  const codeexec::Result& r = output->status.result;
  if (output->status.state == codeexec::ShellState::killed) return "ok";
  return excuse(r);
}

std::string use_session() {
  auto executor = LocalExecutor::create(local());
  if (!executor) return refused(executor.error());
  Command command = Command::shell("export CARRIED=on; cd / && cd usr");
  const codeexec::Session session;
  command.session = session;
  const codeexec::Result first = executor->run(command);
  if (!first.succeeded()) return excuse(first);
  command.script = "pwd; echo $CARRIED; exit 7";
  return judge_seven(executor->run(command), "/usr\non\n", "");
}

std::string run_file() {
  auto executor = LocalExecutor::create(local());
  if (!executor) return refused(executor.error());
  codeexec::CodeLanguage language;
  language.names = {"plain"};
  language.extension = "plain";
  language.program = {"/bin/sh"};
  codeexec::CodeOptions options;
  options.languages = {language};
  const codeexec::CodeResult r =
      codeexec::run_code(*executor, "plain", "echo out\nexit 7\n", options);
  if (r.results.empty())
    return r.message.empty() ? "WRONG: neither a result nor a message" : "refused: " + r.message;
  return judge_seven(r.results[0], "out\n", "");
}

// Long output that goes to a file, and a record of it.
std::string write_files() {
  LocalOptions options = local();
  options.max_output = 1024;
  options.spill_dir = workspace;
  options.audit_file = (workspace.empty() ? std::string("audit") : workspace + "/audit");
  auto executor = LocalExecutor::create(options);
  if (!executor) return refused(executor.error());
  const std::string line = "a line of some fifty bytes, again and again ....";
  const std::size_t size = 3000 * (line.size() + 1);
  const codeexec::Result r =
      executor->run("i=0; while [ $i -lt 3000 ]; do echo '" + line + "'; i=$((i+1)); done; exit 7");
  std::string said = r.message;
  for (const std::string& note : r.notes) said += " " + note;
  if (r.outcome != Outcome::exited || r.exit_code != 7 || r.out_counts.total_bytes != size)
    return excuse(r);
  struct stat audit {};
  const bool recorded = ::stat(options.audit_file.c_str(), &audit) == 0 && audit.st_size > 100;
  if (r.out_counts.file_bytes == size && recorded) return "ok";
  return said.empty() ? "WRONG: files are not whole, and nothing says so" : "told: " + said;
}

// At each number of descriptors there may be: a command runs, or it is refused before it has done
// anything.
std::string run_with_few_descriptors() {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const std::string trace = workspace + "/trace";
  std::string verdict = "ok";
  int refusals = 0;
  for (rlim_t most = 5; most < 40 && verdict == "ok"; ++most) {
    const rlimit few = {most, before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
    for (const bool supervised : {false, true}) {
      ::unlink(trace.c_str());
      ProcessOptions options = shell(with_mark("touch " + trace + "; setsid sleep $MARK & exit 7"));
      options.supervised = supervised;
      const ProcessResult r = run_process(options);
      const bool ran = ::access(trace.c_str(), F_OK) == 0;
      const bool is_refusal = r.outcome == Outcome::not_started && r.system_error == EMFILE;
      if (is_refusal) ++refusals;
      if (is_refusal ? ran : r.outcome != Outcome::exited || r.exit_code != 7)
        verdict = wrong(r) + " with " + std::to_string(most) + (ran ? ", and it ran" : "");
    }
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
  return verdict == "ok" && refusals < 4 ? "WRONG: hardly a refusal" : verdict;
}

// What a run costs does not depend on how many descriptors there could be.
std::string cost_of_run() {
  const auto used = [] {
    double sum = 0;
    for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
      rusage usage{};
      ::getrusage(who, &usage);
      for (const timeval& time : {usage.ru_utime, usage.ru_stime})
        sum += static_cast<double>(time.tv_sec) * 1000 + static_cast<double>(time.tv_usec) / 1000;
    }
    return sum;
  };
  constexpr int runs = 20;
  const double before = used();
  for (int i = 0; i < runs; ++i) {
    ProcessOptions options = shell("exit 7");
    options.supervised = i % 2 == 1;
    const ProcessResult r = run_process(options);
    if (r.exit_code != 7) return excuse(r);
  }
  const double each = (used() - before) / runs;
  return each < 25 ? "ok" : "WRONG: " + std::to_string(each) + " ms of CPU for each";
}

// Arguments that no system takes.
std::string run_too_long() {
  ProcessOptions options = shell("exit 7");
  options.argv.push_back(std::string(std::size_t{4} << 20, 'x'));
  const ProcessResult r = run_process(options);
  if (r.outcome == Outcome::not_started && r.system_error == E2BIG) return "ok";
  return wrong(r);
}

// A thread with the smallest stack there is.
std::string on_small_stack(std::size_t size, std::string (*way)()) {
  struct Job {
    std::string (*way)();
    std::string verdict;
  } job = {way, ""};
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  if (::pthread_attr_setstacksize(&attributes, size) != 0) return "WRONG: no such stack";
  pthread_t thread;
  const auto body = [](void* argument) -> void* {
    auto* own = static_cast<Job*>(argument);
    own->verdict = own->way();
    return nullptr;
  };
  const int error = ::pthread_create(&thread, &attributes, body, &job);
  ::pthread_attr_destroy(&attributes);
  if (error != 0) return std::string("WRONG: ") + std::strerror(error);
  ::pthread_join(thread, nullptr);
  return job.verdict;
}

std::string on_all_small_stacks() {
  constexpr std::size_t size = 128 * 1024;
  for (auto* way : {run_plain, run_until_timeout, start_and_cancel, run_supervised, run_script,
                    run_in_sandbox, background_shell, use_session, run_file}) {
    const std::string verdict = on_small_stack(size, way);
    if (verdict != "ok") return verdict;
  }
  return "ok";
}

// A fork of the host has only its own thread, in the middle of whatever the others did.
std::string use_in_fork() {
  auto executor = LocalExecutor::create(local());
  if (!executor) return refused(executor.error());
  BackgroundShells shells(*executor);
  const auto started = shells.start(Command::shell(with_mark("echo ready; sleep $MARK")));
  if (!started) return refused(started.error());
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "WRONG: no pipe";
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(ends[0]);
    std::string verdict = "ok";
    for (auto* way : {run_plain, run_until_timeout, start_and_cancel, run_supervised, run_script,
                      background_shell, use_session, run_file})
      if (verdict == "ok") verdict = way();
    // The objects that were there before, too.
    if (verdict == "ok") verdict = judge_seven(executor->run("echo out; exit 7"), "out\n", "");
    if (verdict == "ok") {
      const codeexec::Execution run = executor->start(Command::shell("echo out; exit 7"));
      verdict = run.wait_for(patience) ? judge_seven(run.wait(), "out\n", "") : "WRONG: it goes on";
    }
    if (verdict == "ok") {
      const auto more = shells.start(Command::shell("echo out"));
      verdict = more ? "ok" : refused(more.error());
    }
    say(verdict, ends[1]);
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string verdict;
  char buffer[512];
  pollfd wanted = {ends[0], POLLIN, 0};
  for (;;) {
    const int ready = ::poll(&wanted, 1, 80000);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      verdict = "WRONG: the fork hangs";
      ::kill(pid, SIGKILL);
      break;
    }
    const ssize_t size = ::read(ends[0], buffer, sizeof buffer);
    if (size <= 0) break;
    verdict.append(buffer, static_cast<std::size_t>(size));
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) return "WRONG: the fork ended with " + std::to_string(status);
  if (verdict != "ok") return verdict;
  const auto now = shells.status(started->id);
  return now && now->state == codeexec::ShellState::running
             ? "ok"
             : "WRONG: the fork ended a shell of ours";
}

// The implementation in a shared library that comes and goes.
std::string use_plugin(const std::string& path) {
  for (int i = 0; i < 3; ++i) {
    void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) return std::string("WRONG: ") + ::dlerror();
    using Run = int (*)(const char*);
    void* symbol = ::dlsym(handle, "run_all");
    Run run = nullptr;
    std::memcpy(&run, &symbol, sizeof run);
    const int failed = run ? run(mark.c_str()) : -1;
    if (failed != 0) return "WRONG: step " + std::to_string(failed) + " of the plugin";
    if (::dlclose(handle) != 0) return "WRONG: it cannot be closed";
    if (::dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD)) return "WRONG: it is still there";
  }
  return "ok";
}

struct Way {
  const char* name;
  std::string (*use)();
};

const Way ways[] = {
    {"run", run_plain},
    {"timeout", run_until_timeout},
    {"cancel", start_and_cancel},
    {"supervised", run_supervised},
    {"supervised-timeout", time_out_supervised},
    {"script", run_script},
    {"sandbox", run_in_sandbox},
    {"shell", background_shell},
    {"session", use_session},
    {"code", run_file},
    {"files", write_files},
    {"many", run_many},
    {"fork-after-start", fork_after_start},
    {"fork-during-run", fork_during_run},
    {"too-long", run_too_long},
    {"few-descriptors", run_with_few_descriptors},
    {"cost", cost_of_run},
    {"keep-all", keep_all_variables},
    {"small-stacks", on_all_small_stacks},
    {"fork", use_in_fork},
};

// The end of the host -----------------------------------------------------------------------------

// All that can run when it comes.
struct Everything {
  LocalExecutor plain;
  LocalExecutor sandboxed;
  BackgroundShells shells;
  std::vector<codeexec::Execution> started = {};
  std::vector<codeexec::Process> processes = {};

  Everything(LocalExecutor one, LocalExecutor two)
      : plain(std::move(one)), sandboxed(std::move(two)), shells(plain) {}
};

const char* const endless = "trap '' TERM HUP INT; (setsid sleep $MARK &); echo ready; sleep $MARK";

Everything* start_everything() {
  LocalOptions options = local();
  auto plain = LocalExecutor::create(options);
  options.sandbox.mode = codeexec::SandboxMode::best_effort;
  auto sandboxed = LocalExecutor::create(options);
  if (!plain || !sandboxed) return nullptr;
  auto* all = new Everything(std::move(*plain), std::move(*sandboxed));
  std::atomic<int> ready{0};
  Command command = Command::shell(with_mark(endless));
  command.on_output = [&ready](Stream, std::string_view) { ++ready; };
  command.timeout = std::chrono::hours(1);
  all->started.push_back(all->plain.start(command));
  all->started.push_back(all->sandboxed.start(command));
  if (!all->shells.start(command)) return nullptr;
  ProcessOptions process = shell(with_mark(endless));
  process.supervised = true;
  process.on_output = command.on_output;
  process.timeout = codeexec::no_limit;
  auto fourth = codeexec::Process::start(process);
  if (!fourth) return nullptr;
  all->processes.push_back(std::move(*fourth));
  // One that a thread of the host waits for.
  std::thread([all, command] { all->plain.run(command); }).detach();
  const auto limit = Clock::now() + patience;
  while (ready < 5 && Clock::now() < limit) ::usleep(1000);
  return ready == 5 ? all : nullptr;
}

int end_badly(const std::string& way, char* own_name) {
  Everything* all = start_everything();
  tell("started", all ? "ok" : "WRONG: not everything was started");
  if (!all) return 0;
  const rlimit none{};
  ::setrlimit(RLIMIT_CORE, &none);
  if (way == "segv") ::raise(SIGSEGV);
  if (way == "abort") std::abort();
  if (way == "kill") ::kill(::getpid(), SIGKILL);
  if (way == "term") ::kill(::getpid(), SIGTERM);
  if (way == "_exit") ::_exit(0);
  if (way == "exit") std::exit(0);
  if (way == "thread-exit") ::pthread_exit(nullptr);  // of the first thread; the others go on
  if (way == "exec")
    ::execl(own_name, own_name, "-", "-", "-", "-", "linger", static_cast<char*>(nullptr));
  if (way == "destroy") {
    delete all;
    return 0;
  }
  ::pause();
  return 0;
}

// Objects that live until after main().
struct Lasting {
  Everything* all = nullptr;
  bool runs_at_the_end = false;
  ~Lasting() {
    if (!runs_at_the_end) return;
    for (const Way& way : ways)
      if (std::strcmp(way.name, "many") == 0)
        break;
      else
        tell(std::string("at-exit-") + way.name, way.use());
    delete all;
    tell("at-exit", "ok");
  }
} lasting;

// Descriptors above 2 that this program was given.
int only_standard() {
  for (int fd = 3; fd < 1024; ++fd)
    if (::fcntl(fd, F_GETFD) != -1) return fd;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) return 98;
  const std::string first = argv[5];
  if (first == "only-standard") return only_standard();
  if (first == "linger") {
    // What became of the host: it must not end before the commands of what it was.
    for (;;) ::pause();
  }
  report = std::atoi(argv[1]);
  if (report > 2) ::fcntl(report, F_SETFD, FD_CLOEXEC);
  mark = argv[3];
  workspace = std::strcmp(argv[4], "-") == 0 ? "" : argv[4];
  const std::string settings = argv[2];
  for (std::size_t at = 0; at <= settings.size();) {
    const std::size_t end = std::min(settings.find('+', at), settings.size());
    if (!set_up(settings.substr(at, end - at), argv[0])) {
      tell("setting", "missing: " + settings.substr(at, end - at));
      return 0;
    }
    at = end + 1;
  }
  if (first == "serve") {
    argv[5] = argv[0];
    const int status = codeexec::server_main(argc - 5, argv + 5);
    end_settings(settings);
    return status;
  }
  if (first == "end") return end_badly(argv[6], argv[0]);
  if (first == "statics") {
    lasting.all = start_everything();
    lasting.runs_at_the_end = true;
    tell("started", lasting.all ? "ok" : "WRONG: not everything was started");
    return 0;
  }
  // What the C library does once is done before: it may keep a descriptor or change a mask.
  (void)::getenv("HOME");
  State before = state_of_host();
  for (int i = 5; i < argc; ++i) {
    if (std::strcmp(argv[i], "plugin") == 0) {
      tell("plugin", use_plugin(argv[i + 1]));
      ++i;
      continue;
    }
    const Way* found = nullptr;
    for (const Way& way : ways)
      if (std::strcmp(way.name, argv[i]) == 0) found = &way;
    if (!found) return 98;
    tell(argv[i], found->use());
  }
  State after = state_of_host();
  // The other threads of such a host have descriptors of their own.
  for (int fd = 0; own_children && fd < last_descriptor(); ++fd) {
    before.erase("descriptor " + std::to_string(fd));
    after.erase("descriptor " + std::to_string(fd));
  }
  const std::string changed = difference(before, after);
  end_settings(settings);
  siginfo_t info{};
  std::string left;
  if (!own_children && ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
    left = "a child is left: " + std::to_string(info.si_pid) + "; ";
  tell("host", changed.empty() && left.empty() ? "ok" : "WRONG: " + left + changed);
  return 0;
}
