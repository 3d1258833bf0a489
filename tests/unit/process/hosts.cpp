// Hosts that make it hard: signals, descriptors, threads and forks of theirs.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <atomic>
#include <thread>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Outcome;
using codeexec::ProcessOptions;
using codeexec::ProcessResult;
using codeexec::run_process;
using codeexec::Stream;
using std::chrono::milliseconds;
using support::child;
using support::describe;
using support::dies;
using support::first_number;
using support::has_supervisor;
using support::in_other_host;
using support::LeftoverCheck;
using support::program;
using support::safety;
using support::shell;

namespace {

// The status is right, or it is said not to be known; never a success that was not seen.
std::string check_status_seven(const ProcessResult& r) {
  if (r.outcome == Outcome::unknown)
    return r.exit_code == -1 && !r.message.empty() ? "" : describe(r);
  return r.outcome == Outcome::exited && r.exit_code == 7 ? "" : describe(r);
}

}  // namespace

TEST_CASE("a host that ignores SIGCHLD never sees a wrong status") {
  const std::string problem = in_other_host([]() -> std::string {
    ::signal(SIGCHLD, SIG_IGN);
    for (int i = 0; i < 20; ++i) {
      const std::string wrong = check_status_seven(run_process(shell("echo hi; exit 7")));
      if (!wrong.empty()) return wrong;
    }
    const ProcessResult r = run_process(shell("sleep 300 & echo $!; exit 7"));
    if (!dies(first_number(r.out))) return "the background job lives";
    return ::signal(SIGCHLD, SIG_DFL) == SIG_IGN ? "" : "the disposition was changed";
  });
  CHECK(problem == "");
}

TEST_CASE("a host thread that waits for any child never leads to a wrong status") {
  const std::string problem = in_other_host([]() -> std::string {
    std::atomic<bool> stop{false};
    std::thread thief([&] {
      while (!stop)
        if (::waitpid(-1, nullptr, 0) < 0) std::this_thread::yield();
    });
    std::string wrong;
    for (int i = 0; i < 100 && wrong.empty(); ++i)
      wrong = check_status_seven(run_process(shell("exit 7")));
    stop = true;
    thief.join();
    return wrong;
  });
  CHECK(problem == "");
}

TEST_CASE("blocked and ignored signals of the host do not reach the program") {
  const std::string problem = in_other_host([]() -> std::string {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGINT, SIG_IGN);
    ::signal(SIGUSR1, [](int) { ::_exit(77); });
    const std::string none = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n";
    ProcessResult r = run_process(child({"signals"}));
    if (r.out != none) return describe(r);
    // Signals that hardly anybody ignores are looked for once in a second.
    ::signal(SIGRTMIN + 3, SIG_IGN);
    ::signal(SIGXCPU, SIG_IGN);
    const auto limit = std::chrono::steady_clock::now() + safety;
    do r = run_process(child({"signals"}));
    while (r.out != none && std::chrono::steady_clock::now() < limit);
    if (r.out != none) return describe(r);
    sigset_t now;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
    if (sigismember(&now, SIGTERM) != 1) return "the host's mask was changed";
    return ::signal(SIGPIPE, SIG_DFL) == SIG_IGN ? "" : "the host's disposition was changed";
  });
  CHECK(problem == "");
}

TEST_CASE("a host without descriptors 0, 1 and 2 runs programs") {
  const std::string problem = in_other_host([]() -> std::string {
    ::close(0);
    ::close(1);
    ::close(2);
    ProcessOptions options = shell("cat; echo err >&2");
    options.input = "in";
    const ProcessResult r = run_process(options);
    if (r.out != "in" || r.err != "err\n" || !r.succeeded()) return describe(r);
    const ProcessResult list = run_process(child({"descriptors"}));
    if (list.out != "0 1 2 \n") return describe(list);
    return support::descriptor_is_open(0) || support::descriptor_is_open(1) ? "left open" : "";
  });
  CHECK(problem == "");
}

TEST_CASE("interrupted system calls change nothing") {
  const std::string problem = in_other_host([]() -> std::string {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    ::sigaction(SIGALRM, &action, nullptr);  // without SA_RESTART
    const itimerval storm = {{0, 200}, {0, 200}};
    ::setitimer(ITIMER_REAL, &storm, nullptr);
    for (int i = 0; i < 100; ++i) {
      ProcessOptions options = shell("cat; exit 7");
      options.input.assign(100000, 'e');
      const ProcessResult r = run_process(options);
      if (r.exit_code != 7 || r.out != options.input) return describe(r).substr(0, 200);
    }
    return "";
  });
  CHECK(problem == "");
}

TEST_CASE("eight threads run a hundred programs each, without mixing them up") {
  const LeftoverCheck leaks;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        const std::string word = std::to_string(t) + "-" + std::to_string(i);
        ProcessOptions options = program({"/bin/echo", word});
        if (i % 10 == 0) {
          options = shell("cat; exit " + std::to_string(t));
          options.input = word + "\n";
        }
        const ProcessResult r = run_process(options);
        if (r.out != word + "\n" || r.exit_code != (i % 10 == 0 ? t : 0)) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(leaks.clean());
}

TEST_CASE("other threads' programs do not hold this one's pipes") {
  // A program that got our pipe would hold it for longer than the drain, and be killed for it.
  std::atomic<bool> started{false};
  std::vector<codeexec::Process> others;
  std::thread other([&] {
    for (int i = 0; i < 100; ++i) {
      ProcessOptions options = child({"sleep"});
      options.timeout = milliseconds(500);
      auto process = codeexec::Process::start(std::move(options));
      if (process) others.push_back(std::move(*process));
    }
    started = true;
  });
  int held = 0;
  while (!started)
    if (run_process(program({"/bin/true"})).pipe_held) ++held;
  other.join();
  CHECK(others.size() == 100);
  CHECK(held == 0);
  for (const codeexec::Process& process : others)
    CHECK(process.wait().outcome == Outcome::timed_out);
}

#if defined(__linux__)

namespace {

// A path to that directory which takes the kernel some milliseconds to follow. It may begin anew
// once, and follows 40 links in all.
std::string long_way_to(const std::string& directory) {
  std::string there_and_back;
  while (there_and_back.size() < 4000) there_and_back += "d/../";
  support::make_directories(directory + "/d");
  support::make_symlink(there_and_back + ".", directory + "/s");
  std::string path = directory;
  for (int i = 0; i < 19; ++i) path += "/s";
  return path;
}

// Of one thread, or 0.
pid_t first_child(pid_t pid, pid_t thread) {
  const std::string path =
      "/proc/" + std::to_string(pid) + "/task/" + std::to_string(thread) + "/children";
  int child = 0;
  if (std::FILE* file = std::fopen(path.c_str(), "re")) {
    if (std::fscanf(file, "%d", &child) != 1) child = 0;
    std::fclose(file);
  }
  return child;
}

int descriptors_of(pid_t pid) {
  int count = 0;
  if (DIR* directory = ::opendir(("/proc/" + std::to_string(pid) + "/fd").c_str())) {
    while (::readdir(directory)) ++count;
    ::closedir(directory);
  }
  return count - 2;
}

// Runs a program in a thread of its own.
struct Runner {
  std::atomic<pid_t> thread_id{0};
  std::atomic<bool> over{false};
  ProcessResult result = {};
  std::thread thread;
  explicit Runner(const ProcessOptions& options)
      : thread([this, options] {
          thread_id = static_cast<pid_t>(::syscall(SYS_gettid));
          result = run_process(options);
          over = true;
        }) {
    while (thread_id == 0) std::this_thread::yield();
  }
};

}  // namespace

TEST_CASE("a program that is just being started is not taken for what another one has left") {
  if (!has_supervisor()) return;
  const support::TempDir dir;
  const std::string way = long_way_to(dir.path());
  // One that keeps its pipes open in this program for as long as it looks for its own.
  ProcessOptions first = program({"true"});
  std::string path = "PATH=";
  for (int i = 0; i < 20; ++i) path += way + ":";
  first.environment = {path + "/usr/bin:/bin"};
  ProcessOptions second = program({"true"});
  second.work_dir = way;
  // Their supervisors would be some that waited.
  first.sandbox = second.sandbox = codeexec::Sandbox();
  second.supervised = true;
  bool caught = false;
  for (int tries = 0; tries < 1000 && !caught; ++tries) {
    Runner ends(first);
    while (first_child(::getpid(), ends.thread_id) == 0 && !ends.over) std::this_thread::yield();
    const int own = support::count_descriptors();
    Runner begins(second);
    pid_t command = 0;
    while (command == 0 && !begins.over) {
      const pid_t supervisor = first_child(::getpid(), begins.thread_id);
      if (supervisor != 0) command = first_child(supervisor, supervisor);
    }
    if (command > 0) ::kill(command, SIGSTOP);
    const bool holds = command > 0 && descriptors_of(command) >= own;
    ends.thread.join();
    caught = holds && ends.result.pipe_held;
    if (command > 0) ::kill(command, SIGCONT);
    begins.thread.join();
    CHECK(ends.result.succeeded());
    REQUIRE_MESSAGE(begins.result.succeeded(), std::string(codeexec::name(begins.result.outcome)),
                    " ", begins.result.signal, " ", begins.result.message);
  }
  if (!caught) MESSAGE("SKIPPED: no program could be stopped in the middle of its start");
}

#endif

TEST_CASE("pthread_cancel during a run acts after it and leaks nothing") {
  const LeftoverCheck leaks;
  static std::atomic<bool> running;
  static std::atomic<bool> ended;
  running = false;
  ended = false;
  pthread_t thread;
  const auto body = [](void*) -> void* {
    ProcessOptions options = shell("echo; sleep 0.2");
    options.on_output = [](Stream, std::string_view) { running = true; };
    ended = run_process(options).succeeded();
    return nullptr;
  };
  REQUIRE(::pthread_create(&thread, nullptr, body, nullptr) == 0);
  while (!running) std::this_thread::yield();
  ::pthread_cancel(thread);
  ::pthread_join(thread, nullptr);
  CHECK(ended);
  CHECK(leaks.clean());
}

TEST_CASE("a host that forks at the same time is not disturbed") {
  std::atomic<bool> stop{false};
  std::thread forker([&] {
    while (!stop) {
      const pid_t pid = ::fork();
      if (pid == 0) ::_exit(0);
      if (pid > 0) ::waitpid(pid, nullptr, 0);
    }
  });
  int wrong = 0;
  for (int i = 0; i < 100; ++i)
    if (!run_process(program({"/bin/true"})).succeeded()) ++wrong;
  stop = true;
  forker.join();
  CHECK(wrong == 0);
}
