// A host program of the worst kind. It sets itself up as it is told, uses the library in each way
// there is, and tells what it saw; run.py makes the surroundings and judges.
//
//   codeexec-test-host REPORT SETTINGS MARK WORKSPACE WAY...
//     REPORT     the descriptor of a pipe that takes a line for each way, "WAY: VERDICT[: text]",
//                and "host: ok" when nothing of the host has changed; it is close-on-exec at once
//     SETTINGS   see settings.cpp, joined with +; "none"
//     MARK       so many seconds sleep those that must not survive: run.py finds them by it
//     WORKSPACE  a directory; when it is "-", the current one
//     WAY        see ways.cpp and run() below
//   Verdicts: ok; refused (nothing was run, and a message says why); told (it ran, and what went
//   wrong is told); unknown (how it ended could not be learned, as is said); WRONG.
//
// Exit status: 0, however bad it was; 98 for a wrong use.
#include "host.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hosts {
namespace {

using codeexec::Command;
using codeexec::Jobs;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::ProcessOptions;
using codeexec::Stream;
using Clock = std::chrono::steady_clock;

// The end of the host -----------------------------------------------------------------------------

// All that can run when it comes.
struct Everything {
  LocalExecutor plain;
  LocalExecutor sandboxed;
  Jobs jobs;
  std::vector<codeexec::Execution> started = {};
  std::vector<codeexec::Process> processes = {};

  Everything(LocalExecutor one, LocalExecutor two)
      : plain(std::move(one)), sandboxed(std::move(two)), jobs(plain) {}
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
  if (!all->jobs.start(command)) return nullptr;
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
    for (const Way& way : ways())
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

int run(int argc, char** argv) {
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
  const std::vector<Way> all = ways();
  State before = state_of_host();
  for (int i = 5; i < argc; ++i) {
    if (std::strcmp(argv[i], "plugin") == 0) {
      tell("plugin", use_plugin(argv[i + 1]));
      ++i;
      continue;
    }
    const Way* found = nullptr;
    for (const Way& way : all)
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

}  // namespace
}  // namespace hosts

int main(int argc, char** argv) { return hosts::run(argc, argv); }
