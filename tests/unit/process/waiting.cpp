// Supervisors that wait for the next command of a sandbox.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <atomic>
#include <thread>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Network;
using codeexec::Process;
using codeexec::ProcessOptions;
using codeexec::ProcessResult;
using codeexec::run_process;
using codeexec::Sandbox;
using codeexec::SandboxMode;
using codeexec::SandboxOptions;
using support::describe;
using support::dies;
using support::first_number;
using support::has_supervisor;
using support::in_other_host;

#if defined(__linux__)

namespace {

SandboxOptions options_for(const std::string& writable) {
  SandboxOptions options;
  options.mode = SandboxMode::best_effort;
  options.writable = {writable};
  return options;
}

ProcessOptions shell_in(const Sandbox& sandbox, const std::string& script) {
  ProcessOptions options;
  options.argv = {"/bin/sh", "-c", script};
  options.environment = {"PATH=/usr/local/bin:/usr/bin:/bin"};
  options.timeout = support::safety;
  options.sandbox = sandbox;
  return options;
}

// The supervisor of a command that it has just started.
pid_t supervisor_of(const Sandbox& sandbox) {
  const ProcessResult r = run_process(shell_in(sandbox, "echo $PPID"));
  CHECK_MESSAGE(r.succeeded(), describe(r));
  return first_number(r.out);
}

struct Place {
  support::TempDir directory = support::TempDir();
  Sandbox sandbox = made(options_for(directory.path()));

  static Sandbox made(const SandboxOptions& options) {
    auto sandbox = Sandbox::create(options);
    if (!sandbox) support::fail("sandbox", sandbox.error().message);
    return *sandbox;
  }
};

}  // namespace

TEST_CASE("a supervisor waits for the next command of its sandbox, and ends with that") {
  if (!has_supervisor()) return;
  pid_t first = 0;
  {
    const Place place;
    first = supervisor_of(place.sandbox);
    REQUIRE(first > 0);
    for (int i = 0; i < 10; ++i) CHECK(supervisor_of(place.sandbox) == first);
    const Place other;
    CHECK(supervisor_of(other.sandbox) != first);
    // A host that waits for any child does not see it, and is not held up.
    CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
    CHECK(errno == ECHILD);
    CHECK(support::alive(first));
  }
  CHECK(dies(first));
}

TEST_CASE("a command with a supervisor that waited has all that the first one had") {
  if (!has_supervisor()) return;
  const Place place;
  const std::string& directory = place.directory.path();
  const pid_t supervisor = supervisor_of(place.sandbox);
  ProcessOptions options =
      shell_in(place.sandbox,
               "echo $PPID; pwd; cat; cat <&3; echo error >&2; touch file; touch /made; exit 7");
  options.work_dir = directory;
  options.input = "input\n";
  const int passed = ::open((directory + "/passed").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(::write(passed, "passed\n", 7) == 7);
  ::lseek(passed, 0, SEEK_SET);
  options.pass_fd = passed;
  SUBCASE("a directory by its path") {}
  SUBCASE("a directory by its descriptor") {
    options.work_dir = {};
    options.work_dir_fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }
  const ProcessResult r = run_process(options);
  CHECK(r.exit_code == 7);
  CHECK(r.out == std::to_string(supervisor) + "\n" + directory + "\ninput\npassed\n");
  CHECK(support::begins(r.err, "error\n"));
  CHECK(support::exists(directory + "/file"));
  CHECK(!support::exists("/made"));
  if (options.work_dir_fd >= 0) ::close(options.work_dir_fd);
  ::close(passed);

  ProcessOptions in_terminal = shell_in(place.sandbox, "echo $PPID; test -t 0 && tty > /dev/null");
  in_terminal.terminal = codeexec::TerminalSize{};
  const ProcessResult typed = run_process(in_terminal);
  CHECK_MESSAGE(typed.succeeded(), describe(typed));
  CHECK(first_number(typed.out) == supervisor);

  ProcessOptions missing = shell_in(place.sandbox, "");
  missing.argv = {"/no/such/program"};
  const ProcessResult none = run_process(missing);
  CHECK(none.outcome == codeexec::Outcome::not_started);
  CHECK(none.system_error == ENOENT);
  CHECK(supervisor_of(place.sandbox) > 0);
}

TEST_CASE("what a command leaves behind is gone before its supervisor has another one") {
  if (!has_supervisor()) return;
  const support::TempDir directory;
  SandboxOptions sandbox_options = options_for(directory.path());
  SUBCASE("on this host") {}
  SUBCASE("in a process table of its own") { sandbox_options.pid_namespace = true; }
  const Sandbox sandbox = Place::made(sandbox_options);
  // All processes and segments of the machine are looked at, and other tests run beside this one.
  const std::string own = std::to_string(::getpid());
  const std::string size = std::to_string(1000000 + ::getpid());
  const std::string sleep = "sleep 3799." + own;
  const bool has_own_table = support::contains(sandbox.report().enforced, "pid_namespace");
  for (int i = 0; i < 5; ++i) {
    const ProcessResult r = run_process(
        shell_in(sandbox, "setsid " + sleep + " > /dev/null 2>&1 < /dev/null & (setsid env -i " +
                              sleep + " > /dev/null 2>&1 < /dev/null &) & ipcmk -M " + size));
    // Elsewhere there is no such memory.
    if (has_own_table) CHECK_MESSAGE(r.succeeded(), describe(r));
    const ProcessResult next = run_process(shell_in(
        sandbox, "cat /proc/*/cmdline 2> /dev/null | tr '\\0' ' ' | grep -c 'sleep 3799[.]" + own +
                     "'; ipcs -m 2> /dev/null | grep -c " + size));
    CHECK_MESSAGE(next.out == "0\n0\n", describe(next));
  }
}

TEST_CASE("an order for a command that has ended does not reach the next one") {
  if (!has_supervisor()) return;
  const Place place;
  for (int i = 0; i < 100; ++i) {
    auto first = Process::start(shell_in(place.sandbox, "exit 0"));
    REQUIRE(first);
    std::atomic<bool> over{false};
    std::thread signaller([&] {
      while (!over) (void)first->signal(SIGTERM);
    });
    (void)first->wait();
    const ProcessResult second = run_process(shell_in(place.sandbox, "echo alive"));
    over = true;
    signaller.join();
    REQUIRE_MESSAGE(second.out == "alive\n", describe(second));
  }
}

TEST_CASE("a supervisor that was killed, stopped or is out of descriptors is no loss") {
  if (!has_supervisor()) return;
  const Place place;
  const pid_t first = supervisor_of(place.sandbox);
  REQUIRE(first > 0);
  bool is_kept = false;
  SUBCASE("killed") { ::kill(first, SIGKILL); }
  SUBCASE("killed, and reaped by the host") {
    ::kill(first, SIGKILL);
    CHECK(::waitpid(first, nullptr, __WALL) == first);
  }
  SUBCASE("stopped") {
    ::kill(first, SIGSTOP);
    is_kept = true;
  }
  SUBCASE("out of descriptors") {
    const rlimit few = {4, 4};
    CHECK(::prlimit(first, RLIMIT_NOFILE, &few, nullptr) == 0);
  }
  const pid_t next = supervisor_of(place.sandbox);
  CHECK(next > 0);
  CHECK((next == first) == is_kept);
  CHECK(supervisor_of(place.sandbox) == next);
}

TEST_CASE("a fork of the host has supervisors of its own") {
  if (!has_supervisor()) return;
  const Place place;
  const pid_t first = supervisor_of(place.sandbox);
  std::fflush(nullptr);
  const pid_t fork = ::fork();
  if (fork == 0) {
    const pid_t other = supervisor_of(place.sandbox);
    const bool well = other > 0 && other != first && supervisor_of(place.sandbox) == other;
    ::_exit(well ? 0 : 1);
  }
  int status = -1;
  CHECK(::waitpid(fork, &status, 0) == fork);
  CHECK(status == 0);
  CHECK(supervisor_of(place.sandbox) == first);
}

TEST_CASE("a host that ends leaves no supervisor that waits") {
  if (!has_supervisor()) return;
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  std::fflush(nullptr);
  const pid_t host = ::fork();
  if (host == 0) {
    static const Place place;
    const pid_t supervisor = supervisor_of(place.sandbox);
    (void)!::write(ends[1], &supervisor, sizeof supervisor);
    ::pause();
  }
  pid_t supervisor = 0;
  CHECK(::read(ends[0], &supervisor, sizeof supervisor) == sizeof supervisor);
  CHECK(support::alive(supervisor));
  ::kill(host, SIGKILL);
  ::waitpid(host, nullptr, 0);
  CHECK(dies(supervisor));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("a host's directory and umask hold for a supervisor that waited, and so does its user") {
  if (!has_supervisor()) return;
  const std::string problem = in_other_host([]() -> std::string {
    const Place place;
    const pid_t first = supervisor_of(place.sandbox);
    ::umask(0027);
    if (::chdir(place.directory.path().c_str()) != 0) return "chdir";
    const ProcessResult r = run_process(shell_in(place.sandbox, "umask; pwd; echo $PPID"));
    if (r.out != "0027\n" + place.directory.path() + "\n" + std::to_string(first) + "\n")
      return describe(r);
    if (::geteuid() != 0) return "";
    if (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0)
      return "setresuid";
    const ProcessResult other = run_process(shell_in(place.sandbox, "id -u; id -g"));
    return other.out == "65534\n65534\n" ? "" : describe(other);
  });
  CHECK(problem == "");
}

TEST_CASE("a host that closes all descriptors has no command run outside of its sandbox") {
  if (!has_supervisor()) return;
  const std::string problem = in_other_host([]() -> std::string {
    const Place place;
    if (supervisor_of(place.sandbox) <= 0) return "no supervisor";
    for (int fd = 3; fd < 4096; ++fd) ::close(fd);
    const ProcessResult r = run_process(shell_in(place.sandbox, "echo ran; touch /made"));
    if (support::exists("/made")) return "it wrote outside";
    return r.outcome == codeexec::Outcome::not_started ? "" : describe(r);
  });
  // The report of the other host goes by a descriptor, too.
  CHECK_MESSAGE(!support::exists("/made"), problem);
}

TEST_CASE("eight threads share the supervisors of a sandbox") {
  if (!has_supervisor()) return;
  const Place place;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread)
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 50; ++i) {
        const std::string text = std::to_string(thread) + "-" + std::to_string(i) + "\n";
        ProcessOptions options = shell_in(place.sandbox, "cat; exit " + std::to_string(i));
        options.input = text;
        const ProcessResult r = run_process(options);
        if (r.out != text || r.exit_code != i) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

#endif
