// Nothing outlives a run, wherever its processes went.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <thread>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Outcome;
using codeexec::Process;
using codeexec::ProcessOptions;
using codeexec::ProcessResult;
using codeexec::run_process;
using codeexec::Sandbox;
using codeexec::SandboxOptions;
using codeexec::Stream;
using std::chrono::milliseconds;
using support::alive;
using support::child;
using support::child_path;
using support::contains;
using support::describe;
using support::first_number;
using support::has_supervisor;
using support::in_other_host;
using support::in_sandbox;
using support::LeftoverCheck;
using support::program;
using support::run_clean;
using support::safety;
using support::shell;
using support::Stopwatch;
using support::supervised;
using support::wide_sandbox;

TEST_CASE("W-09: after a timeout nobody is left, wherever the processes of the run went") {
  // Left the group (job control), the session and the parent, with and without our pipes.
  const char* scripts[] = {
      "(setsid sleep 3711 > /dev/null 2>&1 &); sleep 3711", "(setsid sleep 3711 &); sleep 3711",
      "(setsid env -i sleep 3711 &); sleep 3711",
      "bash -c 'set -m; (sleep 3711 > /dev/null 2>&1 &); sleep 3711'",
      "(setsid sh -c 'trap \"\" PIPE TERM; while :; do echo x; sleep 0.01; done' &); sleep 3711"};
  for (const char* script : scripts) {
    CAPTURE(script);
    // The descriptor is inherited by whoever is left, so its end tells that nobody is.
    int alive[2];
    REQUIRE(::pipe2(alive, O_CLOEXEC) == 0);
    ProcessOptions options = program({"/bin/sh", "-c", script});
    options.environment = {"PATH=/usr/local/bin:/usr/bin:/bin"};
    options.pass_fd = alive[1];
    options.timeout = std::chrono::milliseconds(300);
    options.kill_grace = std::chrono::milliseconds(100);
    const ProcessResult r = run_process(options);
    CHECK(r.outcome == Outcome::timed_out);
    CHECK(r.message.empty());
    ::close(alive[1]);
    pollfd fd = {alive[0], POLLIN, 0};
    CHECK(::poll(&fd, 1, 20000) == 1);
    char byte = 0;
    CHECK(::read(alive[0], &byte, 1) == 0);
    ::close(alive[0]);
  }
}

namespace {

// A pipe that every process of a run inherits as descriptor 3, and nobody else: its end tells that
// none of them is left.
class LifeLine {
 public:
  LifeLine() {
    if (::pipe2(ends_, O_CLOEXEC) != 0) support::fail("pipe2", "");
  }
  LifeLine(const LifeLine&) = delete;
  LifeLine& operator=(const LifeLine&) = delete;
  ~LifeLine() {
    ::close(ends_[0]);
    let_go();
  }
  int end() const { return ends_[1]; }
  void let_go() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }
  // Waits until a process of the run writes to descriptor 3.
  bool written() const { return read_byte() == 1; }
  // Whether all of them are gone, or will be in a moment.
  bool all_gone() {
    let_go();
    return read_byte() == 0;
  }

 private:
  // -1: nothing happens.
  ssize_t read_byte() const {
    pollfd fd = {ends_[0], POLLIN, 0};
    if (::poll(&fd, 1, 20000) != 1) return -1;
    char byte = 0;
    return ::read(ends_[0], &byte, 1);
  }
  int ends_[2] = {-1, -1};
};

// The sandbox has its supervisor by itself.
void supervise(ProcessOptions& options) { options.supervised = !in_sandbox(); }

ProcessOptions supervised_shell(const std::string& script, const LifeLine& life) {
  ProcessOptions options = program({"/bin/sh", "-c", script});
  options.environment = {"PATH=/usr/local/bin:/usr/bin:/bin"};
  options.pass_fd = life.end();
  supervise(options);
  return options;
}

const char* const survivors[] = {
    "setsid sleep 3712 > /dev/null 2>&1 < /dev/null &",
    "(setsid sleep 3712 > /dev/null 2>&1 < /dev/null &) &",
    "setsid env -i setsid sleep 3712 > /dev/null 2>&1 < /dev/null &",
    "nohup sleep 3712 > /dev/null 2>&1 < /dev/null &",
    "(trap '' TERM HUP; setsid sh -c 'sleep 3712; sleep 3712' > /dev/null 2>&1) &",
    "bash -c 'set -m; (sleep 3712 > /dev/null 2>&1 &)'",
    // Each starts the next and ends.
    ("echo 'test $1 -lt 400 && setsid sh \"$0\" $(($1 + 1)) &' > $TMP/next; "
     "setsid sh $TMP/next 0 > /dev/null 2>&1 &"),
    "setsid sh -c 'kill -STOP $$' > /dev/null 2>&1 < /dev/null &",
    "i=0; while [ $i -lt 200 ]; do setsid sleep 3712 > /dev/null 2>&1 & i=$((i + 1)); done"};

}  // namespace

TEST_CASE("W-09: under a supervisor nothing outlives a run that ended by itself") {
  if (!has_supervisor()) return;
  for (const char* script : survivors) {
    CAPTURE(script);
    LifeLine life;
    const support::TempDir directory;
    ProcessOptions options = supervised_shell(std::string(script) + "\necho done", life);
    options.environment.push_back("TMP=" + directory.path());
    const ProcessResult r = run_clean(options);
    CHECK(describe(r) == "exited code 0 signal 0 out 'done\n' err '' message ''");
    CHECK(!r.pipe_held);
    CHECK(life.all_gone());
  }
}

TEST_CASE("what a command left behind is counted") {
  if (!has_supervisor()) return;
  struct Row {
    const char* script;
    std::uint64_t count;
  };
  const Row rows[] = {
      {"true", 0},
      {"sleep 3714 & sleep 3714 &", 2},
      {"setsid sleep 3714 & kill -9 $$", 1},
      {"(setsid sleep 3714 > /dev/null 2>&1 &) & wait", 1},
      {"sleep 0 & wait", 0},
      // Killed by the command itself, which does not wait for it.
      {"sleep 3714 & kill -9 $!; while kill -0 $!; do grep -q ') Z' /proc/$!/stat && break; done",
       0},
      {"sleep 3714 & kill -9 $!; wait", 0}};
  for (const Row& row : rows) {
    CAPTURE(row.script);
    LifeLine life;
    const ProcessResult r = run_clean(supervised_shell(row.script, life));
    CHECK(r.left_behind == row.count);
    CHECK(life.all_gone());
  }
}

TEST_CASE("W-09: under a supervisor nothing outlives a timeout or a cancel") {
  if (!has_supervisor()) return;
  for (const char* script : survivors) {
    CAPTURE(script);
    LifeLine life;
    const support::TempDir directory;
    ProcessOptions options =
        supervised_shell(std::string(script) + "\ntrap '' TERM; echo here; sleep 3712", life);
    options.environment.push_back("TMP=" + directory.path());
    options.kill_grace = milliseconds(20);
    options.cancel.emplace();
    REQUIRE(options.cancel->descriptor() >= 0);
    options.on_output = [&](Stream, std::string_view) { options.cancel->cancel(); };
    const ProcessResult r = run_clean(options);
    CHECK(r.outcome == Outcome::cancelled);
    CHECK(r.message == "");
    CHECK(life.all_gone());
  }
}

TEST_CASE("W-33: under a supervisor nothing outlives a host that is killed") {
  if (!has_supervisor()) return;
  for (const char* script : survivors) {
    CAPTURE(script);
    LifeLine life;
    const support::TempDir directory;
    std::fflush(nullptr);
    const pid_t host = ::fork();
    if (host == 0) {
      ProcessOptions options =
          supervised_shell(std::string(script) + "\necho >&3; sleep 3712", life);
      options.environment.push_back("TMP=" + directory.path());
      (void)run_process(options);
      ::_exit(0);
    }
    CHECK(life.written());
    ::kill(host, SIGKILL);
    ::waitpid(host, nullptr, 0);
    CHECK(life.all_gone());
  }
}

TEST_CASE("under a supervisor nothing outlives a supervisor that is killed, and that is told") {
  if (!has_supervisor()) return;
  LifeLine life;
  ProcessOptions options = supervised_shell(
      "setsid sleep 3713 > /dev/null 2>&1 < /dev/null & sleep 3713 & echo $PPID; sleep 3713", life);
  bool killed = false;
  options.on_output = [&](Stream, std::string_view text) {
    const pid_t pid = first_number(std::string(text));
    killed = killed || (pid > 0 && ::kill(pid, SIGKILL) == 0);
  };
  const ProcessResult r = run_clean(options);
  CHECK(killed);
  CHECK(r.outcome == Outcome::unknown);
  CHECK(r.message == "its exit status was lost: its supervisor was killed");
  CHECK(life.all_gone());
}

TEST_CASE("a command that kills its supervisor first of all has run, and is ended with it") {
  if (!has_supervisor()) return;
  for (int i = 0; i < 50; ++i) {
    LifeLine life;
    const ProcessResult r =
        run_clean(supervised_shell("kill -9 $PPID 2> /dev/null; sleep 2; exit 9", life));
    CHECK(life.all_gone());
    if (in_sandbox() && r.exit_code == 9) return;  // which does not let it
    CHECK_MESSAGE(r.outcome == Outcome::unknown, describe(r));
  }
}

TEST_CASE("under a supervisor daemons that have ended are taken away while the command runs") {
  if (!has_supervisor()) return;
  LifeLine life;
  // A zombie of one would still be among the supervisor's children.
  const ProcessResult r = run_clean(supervised_shell(
      "i=0; while [ $i -lt 50 ]; do (setsid true &); i=$((i + 1)); done\n"
      "parent=$(cut -d' ' -f4 /proc/$$/stat)\n"
      "while [ $(wc -w < /proc/$parent/task/$parent/children) -gt 1 ]; do sleep 0.01; done\n"
      "echo alone",
      life));
  CHECK(r.out == "alone\n");
  CHECK(r.succeeded());
}

TEST_CASE("under a supervisor nothing outlives a command that one of its own traces") {
  if (!has_supervisor()) return;
  LifeLine life;
  ProcessOptions options = child({"be-traced"});
  supervise(options);
  options.pass_fd = life.end();
  const ProcessResult r = run_clean(options);
  if (r.exit_code == 9) {
    MESSAGE("SKIPPED: no process may trace its parent here");
    return;
  }
  CHECK(describe(r) == "exited code 0 signal 0 out '' err '' message ''");
  CHECK(life.all_gone());
}

TEST_CASE(
    "under a supervisor nothing outlives a command whose daemons grow while they are killed") {
  if (!has_supervisor()) return;
  LifeLine life;
  ProcessOptions options = child({"grow-chains", "6", "250"});
  supervise(options);
  options.pass_fd = life.end();
  const Stopwatch watch;
  const ProcessResult r = run_clean(options);
  CHECK(describe(r) == "exited code 0 signal 0 out '' err '' message ''");
  CHECK(watch.soon());
  CHECK(life.all_gone());
}

TEST_CASE("under a supervisor nothing outlives a timeout when the supervisor is stopped") {
  if (!has_supervisor()) return;
  LifeLine life;
  ProcessOptions options = supervised_shell(
      "setsid sleep 3714 > /dev/null 2>&1 < /dev/null & echo $PPID; sleep 3714", life);
  options.cancel.emplace();
  REQUIRE(options.cancel->descriptor() >= 0);
  options.kill_grace = milliseconds(20);
  bool stopped = false;
  options.on_output = [&](Stream, std::string_view text) {
    const pid_t pid = first_number(std::string(text));
    stopped = pid > 0 && ::kill(pid, SIGSTOP) == 0;
    options.cancel->cancel();
  };
  const ProcessResult r = run_clean(options);
  CHECK(stopped);
  CHECK(r.outcome == Outcome::cancelled);
  CHECK(life.all_gone());
}

TEST_CASE("under a supervisor the status is right even when the host reaps all children") {
  if (!has_supervisor()) return;
  const std::string problem = in_other_host([]() -> std::string {
    ::signal(SIGCHLD, SIG_IGN);
    ProcessOptions options = program({"/bin/sh", "-c", "exit 7"});
    supervise(options);
    const ProcessResult r = run_process(options);
    return r.outcome == Outcome::exited && r.exit_code == 7 ? "" : describe(r);
  });
  CHECK(problem == "");
}

TEST_CASE("signals reach the group of a started program under a supervisor") {
  if (!has_supervisor()) return;
  LifeLine life;
  auto process = Process::start(supervised_shell(
      "trap 'echo usr1; exit 3' USR1; echo ready; while :; do sleep 0.1; done", life));
  REQUIRE(process);
  while (process->read(Stream::out, 0).text.empty() && !process->done()) std::this_thread::yield();
  CHECK(process->signal(SIGUSR1));
  const ProcessResult& r = process->wait();
  CHECK(r.out == "ready\nusr1\n");
  CHECK(r.exit_code == 3);
  CHECK(!process->signal(SIGUSR1));
  CHECK(life.all_gone());
}

TEST_CASE("the handle of a program that has ended holds no descriptors") {
  // Keeps the thread for processes, which has descriptors of its own.
  auto other = Process::start(shell("exec sleep 3716"));
  REQUIRE(other);
  const LeftoverCheck leaks;
  ProcessOptions options = shell("exit 3");
  SUBCASE("under a supervisor") { options.supervised = true; }
  SUBCASE("with open input") { options.keep_input_open = true; }
  auto ended = Process::start(options);
  REQUIRE(ended);
  CHECK(ended->wait().exit_code == 3);
  CHECK(leaks.clean());
}

TEST_CASE("the process of a handle is the program, not its supervisor") {
  LifeLine life;
  auto process = Process::start(supervised_shell("echo $$; exec sleep 3715", life));
  REQUIRE(process);
  while (process->read(Stream::out, 0).text.empty() && !process->done()) std::this_thread::yield();
  CHECK(process->pid() == first_number(process->read(Stream::out, 0).text));
  process->cancel();
  CHECK(process->wait().pid == process->pid());
}

TEST_CASE("a sandbox that is off keeps its limits under a supervisor") {
  SandboxOptions limited;
  limited.limits.open_files = 50;
  const auto off = Sandbox::create(limited);
  REQUIRE(off);
  if (!contains(off->report().enforced, "open_files")) {
    MESSAGE("SKIPPED: this system has no such limit");
    return;
  }
  for (const bool supervised : {false, true}) {
    CAPTURE(supervised);
    LifeLine life;
    ProcessOptions options = supervised_shell(
        "ulimit -n; setsid sleep 3716 > /dev/null 2>&1 < /dev/null & echo $!", life);
    options.sandbox = *off;
    options.supervised = supervised;
    const ProcessResult r = run_clean(options);
    REQUIRE(support::begins(r.out, "50\n"));
    if (supervised && has_supervisor()) CHECK(life.all_gone());
    ::kill(first_number(r.out.substr(3)), SIGKILL);
  }
}

// What became another user's cannot be killed; what came of it is told, and soon.
TEST_CASE("a run is not held up by what its supervisor may not kill") {
  if (!has_supervisor()) return;
  if (::geteuid() != 0) {
    MESSAGE("SKIPPED: only root can make a program that becomes root");
    return;
  }
  const support::TempDir directory;
  REQUIRE(::chmod(directory.path().c_str(), 0755) == 0);
  const std::string elevator = directory.path() + "/become-root";
  support::write_file(elevator, support::read_file(child_path()), 04755);
  LifeLine life;
  const std::string problem = in_other_host([&]() -> std::string {
    if (::setgroups(0, nullptr) != 0 || ::setresgid(65534, 65534, 65534) != 0 ||
        ::setresuid(65534, 65534, 65534) != 0)
      return "";
    ProcessOptions options = program({elevator, "become-root"});
    options.sandbox = Sandbox();
    options.supervised = true;
    options.pass_fd = life.end();
    const Stopwatch watch;
    const ProcessResult r = run_process(options);
    if (r.exit_code == 9) return "SKIPPED: programs do not become root here";
    const bool told = r.message == "some of its processes are another user's and are still running";
    return r.succeeded() && told && watch.soon() ? "" : describe(r);
  });
  if (support::begins(problem, "SKIPPED")) {
    MESSAGE(problem);
    return;
  }
  CHECK(problem == "");
}

// Started by the next case where calls are denied. Prints how a supervised and a sandboxed program
// fared.
TEST_CASE("process: (helper) starts programs that ask for a supervisor" * doctest::skip()) {
  for (const bool sandboxed : {false, true}) {
    ProcessOptions options = program({"/bin/echo", "ran"});
    options.supervised = true;
    options.sandbox = sandboxed ? wide_sandbox() : Sandbox();
    const ProcessResult r = run_process(options);
    std::printf("@%s: %s%s\n", sandboxed ? "sandboxed" : "supervised", name(r.outcome),
                r.out == "ran\n" ? " ran" : "");
  }
  std::fflush(stdout);
}

#ifdef CODEEXEC_TEST_DENY

TEST_CASE("where there can be no supervisor, only a sandbox is refused") {
  if (!has_supervisor()) return;
  struct Case {
    const char* denied;
    const char* told;
  };
  const Case cases[] = {
      {"clone3=ENOSYS", "@supervised: exited ran @sandboxed: exited ran "},
      // PR_SET_CHILD_SUBREAPER
      {"prctl:36=EINVAL", "@supervised: exited ran @sandboxed: not_started "},
      {"prctl:36=EPERM", "@supervised: exited ran @sandboxed: not_started "},
  };
  for (const Case& c : cases) {
    CAPTURE(c.denied);
    ProcessOptions options;
    options.argv = {CODEEXEC_TEST_DENY,
                    c.denied,
                    "--",
                    support::real_path("/proc/self/exe"),
                    "--no-skip",
                    "--no-intro",
                    "--test-case=process: (helper)*"};
    for (char** variable = environ; *variable; ++variable) options.environment.push_back(*variable);
    options.timeout = safety;
    const ProcessResult r = run_process(options);
    std::string told;
    for (const std::string& line : support::lines_of(r.out))
      if (support::begins(line, "@")) told += line + " ";
    CHECK_MESSAGE(told == c.told, r.out, r.err);
  }
}

#endif

TEST_CASE("a command that fills the disk beyond its limit is killed, and that is told") {
  const support::TempDir directory(support::quiet_base());
  SandboxOptions limited;
  limited.writable = {directory.path()};
  limited.limits.disk = 8 << 20;
  auto sandbox = Sandbox::create(limited);
  REQUIRE(sandbox);
  if (!contains(sandbox->report().enforced, "disk")) {
    MESSAGE("SKIPPED: no limit of the sandbox works here");
    return;
  }
  ProcessOptions options = program(
      {"/bin/sh", "-c",
       "for i in 1 2 3 4 5 6 7 8 9; do head -c 16777216 /dev/zero > file$i; done; sleep 3714"});
  options.sandbox = *sandbox;
  options.work_dir = directory.path();
  const ProcessResult r = run_clean(options);
  CHECK(r.outcome == Outcome::signaled);
  CHECK(r.signal == SIGKILL);
  CHECK(r.limits_reached == std::vector<std::string>{"disk"});
}
