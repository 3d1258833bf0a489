// Commands in the background: that they pass the gate, that nothing of them survives, that nothing
// of their output is lost or kept without bound, and that no call waits longer than it must.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "executor_support.hpp"
#include "support.hpp"

using codeexec::AuditRecord;
using codeexec::BackgroundShells;
using codeexec::CancelToken;
using codeexec::Capture;
using codeexec::Command;
using codeexec::ErrorCode;
using codeexec::Expected;
using codeexec::ForegroundRun;
using codeexec::Json;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Outcome;
using codeexec::Permission;
using codeexec::Regex;
using codeexec::Result;
using codeexec::SandboxMode;
using codeexec::ShellCursor;
using codeexec::ShellOptions;
using codeexec::ShellOutput;
using codeexec::ShellState;
using codeexec::ShellStatus;
using codeexec::ShellWait;
using codeexec::ShellWaitEnd;
using codeexec::Stream;
using std::chrono::milliseconds;
using std::chrono::seconds;
using support::AuditLog;
using support::begins;
using support::dies;
using support::ends;
using support::has;
using support::LeakCheck;
using support::make;
using support::thread_sanitizer;

namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool sanitized = true;
#elif defined(__has_feature)
constexpr bool sanitized = __has_feature(thread_sanitizer) || __has_feature(address_sanitizer);
#else
constexpr bool sanitized = false;
#endif

// Nothing here takes as long; it only keeps a failing test from hanging.
constexpr seconds safety(60);

const char* const child = CODEEXEC_TEST_CHILD;

// Tells an end that came of itself from one that a limit of `safety` had to bring about.
class Stopwatch {
 public:
  bool soon() const { return std::chrono::steady_clock::now() - begin_ < safety / 2; }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// Whoever has ended may still be waited for by its parent.
bool alive(pid_t pid) {
  if (::kill(pid, 0) != 0) return false;
  std::FILE* file = std::fopen(("/proc/" + std::to_string(pid) + "/stat").c_str(), "r");
  if (!file) return !support::exists("/proc/self/stat");
  char text[512] = "";
  const std::size_t size = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  const std::string line(text, size);
  const std::size_t end = line.rfind(')');
  return end != std::string::npos && line[end + 2] != 'Z' && line[end + 2] != 'X';
}

Regex pattern(std::string_view text) {
  auto compiled = Regex::compile(text);
  REQUIRE(compiled);
  return *compiled;
}

ShellWait until_seen(std::string_view text) {
  ShellWait wait;
  wait.pattern = pattern(text);
  wait.time = safety;
  return wait;
}

ShellWait until_end() {
  ShellWait wait;
  wait.time = safety;
  return wait;
}

std::string start(BackgroundShells& shells, const Command& command) {
  const Expected<ShellStatus> started = shells.start(command);
  REQUIRE_MESSAGE(started, started.error().message);
  return started->id;
}

std::string start(BackgroundShells& shells, const std::string& script) {
  return start(shells, Command::shell(script));
}

ShellStatus status_of(const BackgroundShells& shells, const std::string& id) {
  const Expected<ShellStatus> status = shells.status(id);
  REQUIRE_MESSAGE(status, status.error().message);
  return *status;
}

ShellOutput read(const BackgroundShells& shells, const std::string& id, ShellCursor since = {}) {
  const Expected<ShellOutput> output = shells.read(id, since);
  REQUIRE_MESSAGE(output, output.error().message);
  return *output;
}

// "matched" and so on, or the error.
std::string wait(const BackgroundShells& shells, const std::string& id, const ShellWait& until) {
  const Expected<ShellWaitEnd> end = shells.wait(id, until);
  return end ? codeexec::name(*end) : end.error().message;
}

ShellStatus at_end(const BackgroundShells& shells, const std::string& id) {
  CHECK(wait(shells, id, until_end()) == "ended");
  return status_of(shells, id);
}

// "true", "false" or the error.
std::string kill(const BackgroundShells& shells, const std::string& id) {
  const Expected<bool> killed = shells.kill(id);
  return killed ? (*killed ? "true" : "false") : killed.error().message;
}

std::string describe(const ShellStatus& status) {
  return std::string(codeexec::name(status.state)) + " " + codeexec::name(status.result.outcome) +
         " code " + std::to_string(status.result.exit_code) + " signal " +
         std::to_string(status.result.signal);
}

pid_t first_number(const std::string& text) { return std::atoi(text.c_str()); }

// Lets threads go on at the same time.
class Gate {
 public:
  void open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    opened_.notify_all();
  }
  void pass() {
    std::unique_lock<std::mutex> lock(mutex_);
    opened_.wait(lock, [this] { return open_; });
  }

 private:
  std::mutex mutex_ = {};
  std::condition_variable opened_ = {};
  bool open_ = false;
};

// Bytes of memory that this process has in use; 0 when the system does not tell.
long long resident_memory() {
  if (!support::exists("/proc/self/statm")) return 0;
  const std::string text = support::read_file("/proc/self/statm");
  return std::atoll(text.c_str() + text.find(' ')) * ::sysconf(_SC_PAGESIZE);
}

}  // namespace

// life of a shell ---------------------------------------------------------------------------------

TEST_CASE("a background shell is started, told of, read, and has an end") {
  const support::TempDir place;
  LocalOptions options;
  options.workspace = place.path();
  const LocalExecutor here = make(options);
  BackgroundShells shells(here);
  const Expected<ShellStatus> started =
      shells.start(Command::shell("echo out; echo err >&2; read line; exit 3"));
  REQUIRE(started);
  CHECK(begins(started->id, "shell_"));
  CHECK(started->id.size() == 22);
  CHECK(started->id.find_first_not_of("0123456789abcdef", 6) == std::string::npos);
  CHECK(started->start_time.size() == 24);
  CHECK(ends(started->start_time, "Z"));
  CHECK(started->result.command == "echo out; echo err >&2; read line; exit 3");
  CHECK(started->result.work_dir == place.path());

  const ShellStatus last = at_end(shells, started->id);
  CHECK(describe(last) == "failed exited code 3 signal 0");
  CHECK(last.id == started->id);
  CHECK(last.start_time == started->start_time);
  CHECK(last.result.command == started->result.command);
  CHECK(last.result.work_dir == place.path());
  CHECK(last.result.timeout == codeexec::no_limit);
  CHECK(last.result.out_counts.total_bytes == 4);
  CHECK(last.result.out == "");
  CHECK(last.result.err == "");
  const ShellOutput output = read(shells, started->id);
  CHECK(output.out.text == "out\n");
  CHECK(output.err.text == "err\n");
  CHECK(output.status.state == ShellState::failed);
  CHECK(kill(shells, started->id) == "false");
}

TEST_CASE("what is known of a running shell") {
  const LocalExecutor here = make();
  BackgroundShells shells(here);
  const std::string id = start(shells, "echo ready; exec sleep 300");
  CHECK(wait(shells, id, until_seen("ready")) == "matched");
  const ShellStatus status = status_of(shells, id);
  CHECK(describe(status) == "running unknown code -1 signal 0");
  CHECK(status.result.pid > 0);
  CHECK(status.result.command == "echo ready; exec sleep 300");
  CHECK(status.duration.count() >= 0);
  CHECK(kill(shells, id) == "true");
  CHECK(status_of(shells, id).duration >= status.duration);
}

TEST_CASE("the names of the states and ends") {
  CHECK(std::string(codeexec::name(ShellState::running)) == "running");
  CHECK(std::string(codeexec::name(ShellState::stopped)) == "stopped");
  CHECK(std::string(codeexec::name(ShellState::failed)) == "failed");
  CHECK(std::string(codeexec::name(ShellState::killed)) == "killed");
  CHECK(std::string(codeexec::name(ShellWaitEnd::matched)) == "matched");
  CHECK(std::string(codeexec::name(ShellWaitEnd::ended)) == "ended");
  CHECK(std::string(codeexec::name(ShellWaitEnd::timed_out)) == "timed_out");
  CHECK(std::string(codeexec::name(ShellWaitEnd::cancelled)) == "cancelled");
}

TEST_CASE("shells are listed in the order of their start, and nobody shares a name") {
  const LocalExecutor here = make();
  BackgroundShells first(here);
  BackgroundShells second(here);
  std::vector<std::string> ids;
  std::set<std::string> all;
  for (int i = 0; i < 8; ++i) {
    ids.push_back(start(first, "true"));
    all.insert(ids.back());
    all.insert(start(second, "true"));
  }
  CHECK(all.size() == 16);
  std::vector<std::string> listed;
  for (const ShellStatus& status : first.list()) listed.push_back(status.id);
  CHECK(listed == ids);
  CHECK(second.list().size() == 8);
  CHECK(!second.status(ids[0]));
}

TEST_CASE("an unknown shell is told as such by every member") {
  const LocalExecutor here = make();
  BackgroundShells shells(here);
  const std::string message =
      "there is no background shell 'x\\x0a' (any more): list the shells, or start a new one";
  const auto told = [&](const codeexec::Error& error) {
    return error.code == ErrorCode::not_found && error.message == message;
  };
  CHECK(told(shells.status("x\n").error()));
  CHECK(told(shells.read("x\n").error()));
  CHECK(told(shells.wait("x\n").error()));
  CHECK(told(shells.write("x\n", "y").error()));
  CHECK(told(shells.close_input("x\n").error()));
  CHECK(told(shells.kill("x\n").error()));
}

TEST_CASE("the callbacks of the command are called, too") {
  const LocalExecutor here = make();
  std::mutex mutex;
  std::string seen;
  int ends_seen = 0;
  Command command = Command::shell("echo one; echo two >&2");
  command.on_output = [&](Stream stream, std::string_view bytes) {
    const std::lock_guard<std::mutex> lock(mutex);
    seen += stream == Stream::out ? "out:" : "err:";
    seen += bytes;
  };
  command.on_end = [&] {
    const std::lock_guard<std::mutex> lock(mutex);
    ++ends_seen;
  };
  BackgroundShells shells(here);
  const std::string id = start(shells, command);
  at_end(shells, id);
  const std::lock_guard<std::mutex> lock(mutex);
  CHECK(has(seen, "out:one\n"));
  CHECK(has(seen, "err:two\n"));
  CHECK(ends_seen == 1);
}

TEST_CASE("secrets are masked in all that is told of a shell") {
  LocalOptions options;
  options.environment.set = {{"TOKEN", "hunter2hunter2"}};
  options.environment.secret = {"TOKEN"};
  const LocalExecutor here = make(options);
  BackgroundShells shells(here);
  const std::string id = start(shells, "echo $TOKEN hunter2hunter2; sleep 300");
  CHECK(wait(shells, id, until_seen("^.redacted. .redacted.$")) == "matched");
  CHECK(status_of(shells, id).result.command == "echo $TOKEN [redacted]; sleep 300");
  CHECK(shells.list()[0].result.command == "echo $TOKEN [redacted]; sleep 300");
  CHECK(kill(shells, id) == "true");
  CHECK(status_of(shells, id).result.command == "echo $TOKEN [redacted]; sleep 300");
  CHECK(read(shells, id).out.text == "[redacted] [redacted]\n");
}

// the gate ----------------------------------------------------------------------------------------

TEST_CASE("W-25: a background shell passes the same gate as run(), and is recorded like it") {
  const support::TempDir place;
  place.file("file.txt");
  place.directory(".venv/bin");
  place.directory("ro");
  place.file("ro/kept");
  const support::TempDir outside;
  AuditLog log;
  LocalOptions options;
  options.workspace = place.path();
  options.roots = {{place.path(), Permission::write}, {place / "ro", Permission::read}};
  options.policy.blocked = {"git push.*"};
  options.policy.allowed = {"[^y].*"};
  options.delete_guard = true;
  options.on_audit = log.callback();
  options.sandbox.mode = SandboxMode::best_effort;
  const LocalExecutor here = make(options);
  BackgroundShells shells(here);

  std::vector<Command> commands;
  const auto add = [&](Command command, const char* work_dir = "") {
    command.work_dir = work_dir;
    command.tool = "parity";
    command.timeout = safety;
    commands.push_back(command);
  };
  add(Command::shell("echo fine $VIRTUAL_ENV; pwd; echo also >&2; exit 4"));
  add(Command::shell("pwd"), "ro");
  add(Command::shell("touch " + (outside / "file")));
  add(Command::shell("kill -9 $$"));
  add(Command::shell("git push"));
  add(Command::shell("yes"));
  add(Command::shell("sudo ls"));
  add(Command::shell("rm file.txt"));
  add(Command::shell("touch ro/new"));
  add(Command::shell("pwd"), outside.path().c_str());
  add(Command::shell("pwd"), "nowhere");
  add(Command::program({"/nonexistent/program"}));
  add(Command::program({"sudo", "ls"}));
  commands.push_back(Command::shell("pwd"));
  commands.back().timeout = milliseconds(-1);
  commands.push_back(Command::program({"true"}));
  commands.back().script = "both";

  for (const Command& command : commands) {
    CAPTURE(command.script);
    log.take();
    const Result ran = here.run(command);
    Result failure;
    const Expected<ShellStatus> started = shells.start(command, &failure);
    const bool runs = ran.outcome == Outcome::exited || ran.outcome == Outcome::signaled;
    REQUIRE(started.has_value() == runs);
    Result r = failure;
    if (started) {
      r = at_end(shells, started->id).result;
      const ShellOutput output = read(shells, started->id);
      r.out = output.out.text;
      r.err = output.err.text;
    } else {
      CHECK(started.error().message == ran.message);
      CHECK((started.error().code == ErrorCode::permission_denied) ==
            (ran.outcome == Outcome::refused));
    }
    CHECK(r.outcome == ran.outcome);
    CHECK(r.exit_code == ran.exit_code);
    CHECK(r.signal == ran.signal);
    CHECK(r.rule == ran.rule);
    CHECK(r.rule_begin == ran.rule_begin);
    CHECK(r.rule_end == ran.rule_end);
    CHECK(r.message == ran.message);
    CHECK(r.command == ran.command);
    CHECK(r.work_dir == ran.work_dir);
    CHECK(r.venv == ran.venv);
    CHECK(r.out == ran.out);
    CHECK(r.err == ran.err);
    CHECK(r.notes == ran.notes);
    CHECK(r.timeout == ran.timeout);
    CHECK(r.step == ran.step);
    const std::vector<Json> records = log.take();
    REQUIRE(records.size() == 2);
    for (const Json::Member& member : records[0].members()) {
      CAPTURE(member.name);
      const bool measured =
          member.name == "time" || member.name == "duration_ms" || member.name == "cpu_ms";
      CHECK((measured || records[1][member.name] == member.value));
    }
    CHECK(records[0].members().size() == records[1].members().size());
  }
  CHECK(shells.list().size() == 4);
  CHECK(support::exists(place / "file.txt"));
  const std::vector<std::string>& enforced = here.sandbox_report().enforced;
  const bool confined = std::find(enforced.begin(), enforced.end(), "filesystem") != enforced.end();
  if (!confined) MESSAGE("SKIPPED: no sandbox here");
  CHECK(support::exists(outside / "file") != confined);
}

TEST_CASE("what could not be started takes no place, and its error tells why") {
  const LocalExecutor here = make();
  ShellOptions options;
  options.max_running = 1;
  BackgroundShells shells(here, options);
  const LeakCheck leaks;
  Result failure;
  const Expected<ShellStatus> missing =
      shells.start(Command::program({"/nonexistent/program"}), &failure);
  REQUIRE(!missing);
  CHECK(missing.error().code == ErrorCode::not_found);
  CHECK(missing.error().system_error == ENOENT);
  CHECK(has(missing.error().message, "/nonexistent/program"));
  CHECK(failure.outcome == Outcome::not_started);
  CHECK(!shells.start(Command::shell("sudo ls"), &failure));
  CHECK(failure.rule == "sudo");
  Command command = Command::shell("true");
  command.cancel.emplace();
  command.cancel->cancel();
  const Expected<ShellStatus> cancelled = shells.start(command);
  REQUIRE(!cancelled);
  CHECK(cancelled.error().message == "cancelled before it was started");
  command.cancel.reset();
  CHECK(shells.list().empty());
  CHECK(leaks.clean());
  CHECK(shells.start(Command::shell("sleep 300")));
}

// killing -----------------------------------------------------------------------------------------

TEST_CASE("W-26: kill takes everything that the shell started") {
  LocalOptions options;
  options.kill_grace = milliseconds(50);
  const LocalExecutor here = make(options);
  BackgroundShells shells(here);
  const std::string test_child = child;
  const std::vector<std::string> scripts = {
      "cd /tmp && sleep 9.31e5 & echo $!; wait; true",
      "setsid sleep 3713 & echo $!; wait",
      test_child + " leave-session; sleep 300",
      test_child + " daemon; sleep 300",
      test_child + " hide-descendant; sleep 300",
      "(trap '' TERM; " + test_child + " daemon; sleep 300); true",
      "nohup sh -c 'trap \"\" TERM HUP; sleep 3713; sleep 3714' > /dev/null 2>&1 & echo $!; wait",
  };
  for (const std::string& script : scripts) {
    CAPTURE(script);
    const std::string id = start(shells, script);
    CHECK(wait(shells, id, until_seen("^[0-9]+$")) == "matched");
    const pid_t pid = first_number(read(shells, id).out.text);
    CHECK(pid > 0);
    CHECK(alive(pid));
    CHECK(kill(shells, id) == "true");
    CHECK(dies(pid));
    CHECK(status_of(shells, id).state == ShellState::killed);
  }
}

TEST_CASE("W-30: a state is the same whoever asks first, and says what happened") {
  const LocalExecutor here = make();
  BackgroundShells shells(here);

  // Killed stays killed, with the end that it took.
  const std::string killed = start(shells, "echo ready; exec sleep 300");
  CHECK(wait(shells, killed, until_seen("ready")) == "matched");
  CHECK(kill(shells, killed) == "true");
  for (int i = 0; i < 2; ++i) {
    CHECK(describe(status_of(shells, killed)) == "killed cancelled code -1 signal 15");
    CHECK(read(shells, killed).status.state == ShellState::killed);
    CHECK(shells.list()[0].state == ShellState::killed);
    CHECK(kill(shells, killed) == "false");
  }

  // One that tidies up and leaves with success was killed nevertheless.
  const std::string polite = start(shells, std::string("exec ") + child + " handle-term 0");
  CHECK(wait(shells, polite, until_seen("ready")) == "matched");
  CHECK(kill(shells, polite) == "true");
  CHECK(describe(status_of(shells, polite)) == "killed cancelled code 0 signal 0");
  CHECK(has(read(shells, polite).out.text, "bye\n"));

  // What nobody saw fail was not killed by a later kill.
  const std::string failed = start(shells, "exit 7");
  CHECK(wait(shells, failed, until_end()) == "ended");
  CHECK(kill(shells, failed) == "false");
  CHECK(describe(status_of(shells, failed)) == "failed exited code 7 signal 0");

  const std::string signaled = start(shells, "kill -SEGV $$");
  CHECK(describe(at_end(shells, signaled)) == "killed signaled code -1 signal 11");

  // A job of a shell that has ended does not go on unseen.
  const std::string job = start(shells, "sleep 60 & echo $!");
  CHECK(describe(at_end(shells, job)) == "stopped exited code 0 signal 0");
  CHECK(dies(first_number(read(shells, job).out.text)));
}

TEST_CASE("W-30: a kill that races with the end tells one story") {
  const LocalExecutor here = make();
  ShellOptions options;
  options.max_finished = 1000;
  BackgroundShells shells(here, options);
  int killed = 0;
  for (int i = 0; i < 60; ++i) {
    const std::string id = start(shells, i % 2 ? "exit 7" : "");
    for (int j = 0; j < i; ++j) std::this_thread::yield();
    const std::string answer = kill(shells, id);
    const ShellStatus status = status_of(shells, id);
    CAPTURE(describe(status));
    if (answer == "true") {
      CHECK(status.state == ShellState::killed);
      ++killed;
    } else {
      CHECK(answer == "false");
      CHECK(status.result.outcome == Outcome::exited);
      CHECK(status.state == (i % 2 ? ShellState::failed : ShellState::stopped));
    }
  }
  CAPTURE(killed);
}

TEST_CASE("W-31: a kill takes no fixed time and holds nobody up") {
  LocalOptions options;
  options.kill_grace = safety * 2;
  const LocalExecutor here = make(options);
  BackgroundShells shells(here);
  const Stopwatch watch;
  // This one takes its grace.
  const std::string stubborn =
      start(shells, std::string("echo $$; exec ") + child + " ignore-term");
  CHECK(wait(shells, stubborn, until_seen("ready")) == "matched");
  std::string answer;
  std::thread killer([&] { answer = kill(shells, stubborn); });
  // Those that obey end at once, while it does.
  for (int i = 0; i < 20; ++i) {
    const std::string id = start(shells, "echo ready; exec sleep 300");
    CHECK(wait(shells, id, until_seen("ready")) == "matched");
    CHECK(read(shells, id).out.text == "ready\n");
    CHECK(kill(shells, id) == "true");
  }
  CHECK(shells.list().size() == 21);
  CHECK(status_of(shells, stubborn).state == ShellState::running);
  CHECK(watch.soon());
  ::kill(first_number(read(shells, stubborn).out.text), SIGKILL);
  killer.join();
  CHECK(answer == "true");
  CHECK(describe(status_of(shells, stubborn)) == "killed cancelled code -1 signal 9");
  CHECK(watch.soon());
}

TEST_CASE("W-31: the end of the object kills all at the same time") {
  LocalOptions options;
  options.kill_grace = milliseconds(1000);
  const LocalExecutor here = make(options);
  std::vector<pid_t> pids;
  const LeakCheck leaks;
  auto begin = std::chrono::steady_clock::now();
  {
    BackgroundShells shells(here);
    for (int i = 0; i < 10; ++i) {
      const std::string id = start(shells, std::string("echo $$; exec ") + child + " ignore-term");
      CHECK(wait(shells, id, until_seen("ready")) == "matched");
      pids.push_back(first_number(read(shells, id).out.text));
    }
    begin = std::chrono::steady_clock::now();
  }
  const auto took = std::chrono::steady_clock::now() - begin;
  CHECK(took >= milliseconds(1000));
  CHECK(took < milliseconds(9000));  // ten graces, one after the other, are more
  for (const pid_t pid : pids) CHECK(dies(pid));
  CHECK(leaks.clean());
}

TEST_CASE("of many kills at once, exactly one ended the shell") {
  const LocalExecutor here = make();
  BackgroundShells shells(here);
  for (int round = 0; round < 10; ++round) {
    const std::string id = start(shells, "echo ready; exec sleep 300");
    CHECK(wait(shells, id, until_seen("ready")) == "matched");
    Gate gate;
    std::atomic<int> ended{0};
    std::atomic<int> not_ended{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&] {
        gate.pass();
        const std::string answer = kill(shells, id);
        if (answer == "true") ++ended;
        if (answer == "false") ++not_ended;
        if (status_of(shells, id).state != ShellState::killed) ++ended;
      });
    gate.open();
    for (std::thread& thread : threads) thread.join();
    CHECK(ended == 1);
    CHECK(not_ended == 7);
  }
}

TEST_CASE("W-33: nothing outlives a host that is killed while ten shells run") {
#if !defined(__linux__)
  MESSAGE("SKIPPED: only Linux has a supervisor");
#else
  if (thread_sanitizer) {
    MESSAGE("SKIPPED: ThreadSanitizer does not let a fork of this program start a thread");
    return;
  }
  LocalOptions contained;
  contained.sandbox.mode = SandboxMode::best_effort;
  const std::vector<std::string> enforced = make(contained).sandbox_report().enforced;
  if (std::find(enforced.begin(), enforced.end(), "containment") == enforced.end()) {
    MESSAGE("SKIPPED: there is no supervisor on this system");
    return;
  }
  for (const bool sandboxed : {false, true}) {
    CAPTURE(sandboxed);
    const support::TempDir place;
    int report[2];
    REQUIRE(::pipe(report) == 0);
    std::fflush(nullptr);
    const pid_t host = ::fork();
    if (host == 0) {
      LocalOptions options;
      options.workspace = place.path();
      if (sandboxed) options.sandbox.mode = SandboxMode::best_effort;
      auto here = LocalExecutor::create(options);
      if (!here) ::_exit(1);
      auto* shells = new BackgroundShells(*here);
      for (int i = 0; i < 10; ++i) {
        auto started = shells->start(Command::shell(
            "trap '' TERM HUP; setsid sleep 3715 > /dev/null 2>&1 & echo $$ $!; sleep 3716"));
        if (!started) ::_exit(2);
        ShellWait until;
        until.pattern = *Regex::compile("[0-9]+ [0-9]+");
        (void)shells->wait(started->id, until);
        const std::string line = shells->read(started->id)->out.text;
        if (::write(report[1], line.data(), line.size()) < 0) ::_exit(3);
      }
      ::close(report[1]);
      for (;;) ::pause();
    }
    ::close(report[1]);
    std::string text;
    char buffer[4096];
    ssize_t size = 0;
    while ((size = ::read(report[0], buffer, sizeof buffer)) > 0)
      text.append(buffer, static_cast<std::size_t>(size));
    ::close(report[0]);
    CHECK(::kill(host, SIGKILL) == 0);
    ::waitpid(host, nullptr, 0);
    const std::vector<std::string> lines = support::lines_of(text);
    CHECK(lines.size() == 10);
    for (const std::string& line : lines) {
      CHECK(dies(first_number(line)));
      CHECK(dies(first_number(line.substr(line.find(' ') + 1))));
    }
  }
#endif
}

TEST_CASE("a copy made by fork leaves the shells alone") {
  const LocalExecutor here = make();
  auto shells = std::make_unique<BackgroundShells>(here);
  const std::string id = start(*shells, "echo ready; read line; echo got $line");
  const std::string problem = support::in_other_host([&] {
    shells.reset();
    return std::string();
  });
  CHECK(problem == "");
  REQUIRE(shells);
  CHECK(at_end(*shells, id).state == ShellState::stopped);
}

// output ------------------------------------------------------------------------------------------

TEST_CASE("W-27: 300 MB without a newline stay within the ring") {
  const LocalExecutor here = make();
  BackgroundShells shells(here);
  // Once before, for what a first time costs.
  at_end(shells, start(shells, std::string(child) + " flood 1 1000000"));
  const long long before = resident_memory();
  const std::string id = start(shells, std::string(child) + " flood 1 300000000");
  const ShellStatus status = at_end(shells, id);
  const long long after = resident_memory();
  CHECK(status.state == ShellState::stopped);
  CHECK(status.result.out_counts.total_bytes == 300000000);
  const ShellOutput output = read(shells, id);
  constexpr std::uint64_t ring = 1 << 20;
  CHECK(output.out.next == 300000000);
  CHECK(output.out.missed == 300000000 - ring);
  const std::string note = "\n... (" + std::to_string(300000000 - ring) + " bytes omitted) ...\n";
  CHECK(begins(output.out.text, note));
  CHECK(output.out.text.size() == note.size() + ring);
  if (before == 0)
    MESSAGE("SKIPPED: this system does not tell how much memory is in use");
  else
    CHECK(after - before < (sanitized ? 64 : 8) * (1 << 20));
}

TEST_CASE("W-28: bytes that are not UTF-8 lose nothing") {
  const LocalExecutor here = make();
  BackgroundShells shells(here);
  const std::string id = start(shells, "printf 'a\\377\\nb\\n'; yes | head -n 1000; echo last");
  CHECK(at_end(shells, id).state == ShellState::stopped);
  const ShellOutput output = read(shells, id);
  CHECK(begins(output.out.text, "a\xef\xbf\xbd\nb\ny\n"));
  CHECK(ends(output.out.text, "y\nlast\n"));
  CHECK(output.out.missed == 0);

  const std::string binary = start(shells, "head -c 3000000 /dev/urandom");
  CHECK(at_end(shells, binary).state == ShellState::stopped);
  std::uint64_t told = 0;
  ShellCursor since;
  const ShellOutput random = read(shells, binary, since);
  CHECK(codeexec::is_utf8(random.out.text));
  CHECK(random.out.next == 3000000);
  told = random.out.missed;
  CHECK(told >= 3000000 - (1 << 20));
}

TEST_CASE("W-29: a last line without an end is seen at once") {
  const LocalExecutor here = make();
  BackgroundShells shells(here);
  Command command = Command::shell("printf 'Password: '; read answer; printf \"<$answer>\"");
  command.keep_input_open = true;
  const std::string id = start(shells, command);
  CHECK(wait(shells, id, until_seen("^Password: $")) == "matched");
  CHECK(read(shells, id).out.text == "Password: ");
  CHECK(shells.write(id, "swordfish\n"));
  CHECK(at_end(shells, id).state == ShellState::stopped);
  CHECK(read(shells, id, {10, 0}).out.text == "<swordfish>");
}

TEST_CASE("W-32: a reader gets each byte once, and a character when it is whole") {
  const LocalExecutor here = make();
  BackgroundShells shells(here);
  Command command = Command::shell(
      "printf 'one\\n'; printf 'eins\\n' >&2; read x; printf 'caf\\303'; read x; printf '\\251!'; "
      "read x; printf '\\303'");
  command.keep_input_open = true;
  const std::string id = start(shells, command);
  CHECK(wait(shells, id, until_seen("one")) == "matched");
  CHECK(wait(shells, id, until_seen("eins")) == "matched");
  ShellCursor at;
  ShellOutput output = read(shells, id);
  CHECK(output.out.text == "one\n");
  CHECK(output.err.text == "eins\n");
  at = {output.out.next, output.err.next};
  CHECK(shells.write(id, "\n"));
  ShellWait until = until_seen("caf");
  until.since = at;
  CHECK(wait(shells, id, until) == "matched");
  output = read(shells, id, at);
  CHECK(output.out.text == "caf");
  CHECK(output.err.text == "");
  CHECK(output.out.next == 7);
  at = {output.out.next, output.err.next};
  CHECK(shells.write(id, "\n"));
  until = until_seen("!");
  until.since = at;
  CHECK(wait(shells, id, until) == "matched");
  output = read(shells, id, at);
  CHECK(output.out.text == "\xc3\xa9!");
  at = {output.out.next, output.err.next};
  CHECK(shells.write(id, "\n"));
  at_end(shells, id);
  output = read(shells, id, at);
  CHECK(output.out.text == "\xef\xbf\xbd");
  at = {output.out.next, output.err.next};
  output = read(shells, id, at);
  CHECK(output.out.text == "");
  CHECK(output.err.text == "");
  CHECK(output.out.next == at.out);
  CHECK(output.err.next == at.err);
}

TEST_CASE("both streams can come in one, and then there is only out") {
  const LocalExecutor here = make();
  BackgroundShells shells(here);
  Command command = Command::shell("echo one; echo two >&2; echo three");
  command.merge_streams = true;
  const std::string id = start(shells, command);
  at_end(shells, id);
  CHECK(read(shells, id).out.text == "one\ntwo\nthree\n");
  CHECK(read(shells, id).err.text == "");
}

TEST_CASE("of long output the last lines are told, and what is left out is counted") {
  const LocalExecutor here = make();
  ShellOptions options;
  options.max_lines = 3;
  BackgroundShells shells(here, options);
  const std::string id = start(shells, "seq 1 100; printf tail; seq 1 3 >&2");
  at_end(shells, id);
  const ShellOutput output = read(shells, id);
  CHECK(output.out.text == "\n... (285 bytes omitted) ...\n99\n100\ntail");
  CHECK(output.out.missed == 285);
  CHECK(output.out.next == 296);
  CHECK(output.err.text == "1\n2\n3\n");
  CHECK(output.err.missed == 0);
  CHECK(read(shells, id, {285, 0}).out.text == "99\n100\ntail");
  CHECK(read(shells, id, {286, 0}).out.text == "9\n100\ntail");
  CHECK(read(shells, id, {280, 0}).out.missed == 5);
  CHECK(read(shells, id, {296, 0}).out.text == "");
  CHECK(read(shells, id, {1000, 0}).out.next == 296);
  CHECK(read(shells, id, {0, 2}).err.text == "2\n3\n");
}

TEST_CASE("the last lines of a Capture are those of its text") {
  support::Random random(7);
  for (int round = 0; round < 3000; ++round) {
    const std::size_t size = 1 + random.below(40);
    const std::size_t head = random.below(3) ? 0 : random.below(size + 1);
    Capture capture(size, head);
    std::string all;
    const std::size_t total = random.below(80);
    while (all.size() < total) {
      std::string piece;
      for (std::size_t i = random.below(9); i > 0; --i) piece += random.below(3) ? 'x' : '\n';
      capture.add(piece);
      all += piece;
    }
    const std::uint64_t cursor = random.below(all.size() + 2);
    const std::size_t most = random.below(6);
    const Capture::Chunk whole = capture.read(cursor, true);
    const Capture::Chunk chunk = capture.read(cursor, true, most);
    CAPTURE(all);
    CAPTURE(cursor);
    CAPTURE(most);
    CAPTURE(size);
    CAPTURE(head);
    CAPTURE(whole.text);
    CAPTURE(chunk.text);
    const std::string note =
        chunk.missed ? "\n... (" + std::to_string(chunk.missed) + " bytes omitted) ...\n" : "";
    const std::size_t at = chunk.text.find(note);
    REQUIRE(at != std::string::npos);
    const std::string before = chunk.text.substr(0, at);
    const std::string after = chunk.text.substr(at + note.size());
    CHECK(chunk.next == all.size());
    const std::size_t new_bytes = all.size() - std::min<std::size_t>(cursor, all.size());
    CHECK(before.size() + after.size() + chunk.missed == new_bytes);
    CHECK(ends(all, after));
    const std::size_t lines = support::lines_of(before).size() + support::lines_of(after).size();
    CHECK(lines <= most);
    if (whole.missed == chunk.missed) {
      CHECK(whole.text == chunk.text);
    } else if (head == 0 && most > 0) {
      // All that it may tell: it begins a line, and there is one line for each.
      CHECK(lines == most);
      CHECK(all[all.size() - after.size() - 1] == '\n');
    }
  }
}

TEST_CASE("a read costs what is new, and not what is kept") {
  LocalOptions options;
  options.max_output = 32 << 20;
  const LocalExecutor here = make(options);
  BackgroundShells shells(here);
  const std::string id = start(shells, std::string(child) + " flood 1 32000000");
  at_end(shells, id);
  const auto time_of = [&](std::uint64_t cursor) {
    const auto begin = std::chrono::steady_clock::now();
    CHECK(read(shells, id, {cursor, 0}).out.next == 32000000);
    return std::chrono::steady_clock::now() - begin;
  };
  auto at_the_end = time_of(32000000);
  for (int i = 0; i < 20; ++i) at_the_end = std::min(at_the_end, time_of(32000000));
  CHECK(at_the_end * 10 < time_of(0));
}

// waiting -----------------------------------------------------------------------------------------

TEST_CASE("W-32: wait ends for a line of either stream, the end, the time or the token") {
  const LocalExecutor here = make();
  BackgroundShells shells(here);
  Command command = Command::shell("echo begun; echo warned >&2; read x; echo rest; exit 2");
  command.keep_input_open = true;
  const std::string id = start(shells, command);
  CHECK(wait(shells, id, until_seen("^begun$")) == "matched");
  CHECK(wait(shells, id, until_seen("warn")) == "matched");
  // What it was given is looked at again, as long as it is kept.
  CHECK(wait(shells, id, until_seen("^begun$")) == "matched");
  ShellWait until = until_seen("begun|warned");
  until.since = {6, 7};
  until.time = milliseconds(0);
  CHECK(wait(shells, id, until) == "timed_out");
  until.time = milliseconds(20);
  CHECK(wait(shells, id, until) == "timed_out");
  until.since = {6, 0};
  CHECK(wait(shells, id, until) == "matched");

  until = until_seen("never");
  until.cancel.emplace();
  std::thread canceller([&] { until.cancel->cancel(); });
  CHECK(wait(shells, id, until) == "cancelled");
  canceller.join();
  CHECK(wait(shells, id, until) == "cancelled");
  CHECK(status_of(shells, id).state == ShellState::running);

  CHECK(shells.write(id, "\n"));
  CHECK(wait(shells, id, until_seen("never")) == "ended");
  CHECK(wait(shells, id, until_end()) == "ended");
  CHECK(wait(shells, id, until_seen("rest")) == "matched");
  CHECK(wait(shells, id, {}) == "ended");
}

TEST_CASE("a pattern sees whole lines, the line that has no end yet, and nothing else") {
  const LocalExecutor here = make();
  BackgroundShells shells(here);
  const std::string id = start(shells, "printf 'one two\\n\\nthree\\nfo'; exec sleep 300");
  CHECK(wait(shells, id, until_seen("^fo$")) == "matched");
  const auto seen = [&](std::string_view text) {
    ShellWait until = until_seen(text);
    until.time = milliseconds(0);
    return wait(shells, id, until) == "matched";
  };
  CHECK(seen("^one two$"));
  CHECK(seen("^$"));
  CHECK(seen("\\Athree\\Z"));
  CHECK(!seen("^two"));
  CHECK(!seen("two\\s+three"));
  CHECK(!seen("foo"));
  CHECK(!seen("\n"));
}

TEST_CASE("a pattern finds what comes in pieces, also in a line of any length") {
  const LocalExecutor here = make();
  BackgroundShells shells(here);
  Command command = Command::shell("exec cat");
  command.keep_input_open = true;
  const std::string id = start(shells, command);
  Gate gate;
  std::string found;
  std::string anchored;
  std::thread waiter([&] {
    gate.open();
    found = wait(shells, id, until_seen("needle"));
  });
  std::thread other([&] { anchored = wait(shells, id, until_seen("^x{1,5000}n")); });
  gate.pass();
  ShellCursor at;
  for (int i = 0; i < 40; ++i) {
    CHECK(shells.write(id, std::string(1000, 'x')));
    ShellWait until = until_seen("x");
    until.since = at;
    CHECK(wait(shells, id, until) == "matched");
    at.out = read(shells, id, at).out.next;
  }
  for (const char c : std::string("needle")) {
    CHECK(shells.write(id, std::string(1, c)));
    ShellWait until = until_seen(".");
    until.since = at;
    CHECK(wait(shells, id, until) == "matched");
    at.out = read(shells, id, at).out.next;
  }
  waiter.join();
  CHECK(found == "matched");
  CHECK(kill(shells, id) == "true");
  // A long line does not begin where it was cut.
  other.join();
  CHECK(anchored == "ended");
}

TEST_CASE("what is told of missing bytes is not searched") {
  const LocalExecutor here = make();
  BackgroundShells shells(here);
  const std::string id = start(shells, std::string(child) + " flood 1 3000000; echo; echo end");
  at_end(shells, id);
  CHECK(has(read(shells, id).out.text, "omitted"));
  CHECK(wait(shells, id, until_seen("omitted|^$")) == "ended");
  CHECK(wait(shells, id, until_seen("^end$")) == "matched");
  // With a head there is one in the middle.
  const ForegroundRun run = shells.run(Command::shell(std::string("echo begin; ") + child +
                                                      " flood 1 3000000; echo; echo end; "
                                                      "exec sleep 300"),
                                       milliseconds(0));
  REQUIRE(!run.ended);
  CHECK(wait(shells, run.shell.id, until_seen("^end$")) == "matched");
  CHECK(wait(shells, run.shell.id, until_seen("^begin$")) == "matched");
  ShellWait until = until_seen("omitted");
  until.time = milliseconds(0);
  CHECK(has(read(shells, run.shell.id).out.text, "omitted"));
  CHECK(wait(shells, run.shell.id, until) == "timed_out");
}

TEST_CASE("a waiter sleeps until something happens") {
#if !defined(RUSAGE_THREAD)
  MESSAGE("SKIPPED: this system does not count what a thread does");
#else
  const LocalExecutor here = make();
  BackgroundShells shells(here);
  const std::string id = start(shells, "echo ready; exec sleep 300");
  CHECK(wait(shells, id, until_seen("ready")) == "matched");
  ShellWait until = until_seen("never");
  until.cancel.emplace();
  until.time = milliseconds(400);
  rusage before{};
  rusage after{};
  ::getrusage(RUSAGE_THREAD, &before);
  CHECK(wait(shells, id, until) == "timed_out");
  ::getrusage(RUSAGE_THREAD, &after);
  CHECK(after.ru_nvcsw - before.ru_nvcsw < 4);
#endif
}

TEST_CASE("many can wait for one shell, each for what it wants") {
  const LocalExecutor here = make();
  BackgroundShells shells(here);
  Command command = Command::shell("exec cat");
  command.keep_input_open = true;
  const std::string id = start(shells, command);
  const LeakCheck leaks;
  std::atomic<int> matched{0};
  std::atomic<int> ended{0};
  std::atomic<int> cancelled{0};
  const CancelToken token;
  std::vector<std::thread> threads;
  for (int i = 0; i < 60; ++i)
    threads.emplace_back([&, i] {
      ShellWait until = until_seen("^word " + std::to_string(i) + "$");
      if (i % 3 == 1) until.pattern.reset();
      if (i % 3 == 2) {
        until.pattern = pattern("never");
        until.cancel = token;
      }
      const std::string end = wait(shells, id, until);
      if (end == "matched" && i % 3 == 0) ++matched;
      if (end == "ended" && i % 3 == 1) ++ended;
      if (end == "cancelled" && i % 3 == 2) ++cancelled;
    });
  for (int i = 0; i < 60; ++i) CHECK(shells.write(id, "word " + std::to_string(i) + "\n"));
  token.cancel();
  while (matched < 20 || cancelled < 20) std::this_thread::yield();
  CHECK(ended == 0);
  CHECK(shells.close_input(id));
  for (std::thread& thread : threads) thread.join();
  CHECK(matched == 20);
  CHECK(ended == 20);
  CHECK(cancelled == 20);
}

TEST_CASE("the end of the object lets those go who wait") {
  const LocalExecutor here = make();
  auto shells = std::make_unique<BackgroundShells>(here);
  const std::string id = start(*shells, "exec sleep 300");
  const int before = support::count_descriptors();
  std::vector<std::string> answers(6);
  std::vector<std::thread> threads;
  for (std::string& answer : answers)
    threads.emplace_back([&, all = shells.get()] { answer = wait(*all, id, until_seen("never")); });
  // Each of those who wait has two.
  while (support::count_descriptors() < before + 12) std::this_thread::yield();
  Gate runs;
  Command command = Command::shell("echo ready; exec sleep 301");
  command.on_output = [&](Stream, std::string_view) { runs.open(); };
  std::thread runner([&, all = shells.get()] {
    const ForegroundRun run = all->run(command, safety);
    CHECK(run.ended);
    CHECK(run.result.outcome == Outcome::cancelled);
  });
  runs.pass();
  const Stopwatch watch;
  shells.reset();
  for (std::thread& thread : threads) thread.join();
  runner.join();
  for (const std::string& answer : answers) CHECK(answer == "ended");
  CHECK(watch.soon());
}

TEST_CASE("without descriptors a wait tells so, and nothing hangs") {
  const LocalExecutor here = make();
  BackgroundShells shells(here);
  const std::string id = start(shells, "exec sleep 300");
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const rlimit low = {3, limit.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
  const Expected<ShellWaitEnd> end = shells.wait(id, until_seen("x"));
  const ForegroundRun run = shells.run(Command::shell("true"), milliseconds(0));
  const Expected<ShellStatus> started = shells.start(Command::shell("true"));
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
  REQUIRE(!end);
  CHECK(end.error().code == ErrorCode::limit);
  CHECK(begins(end.error().message, "cannot wait for a background shell: "));
  CHECK(run.ended);
  CHECK(run.result.outcome == Outcome::not_started);
  CHECK(begins(run.result.message, "cannot wait for a background shell: "));
  REQUIRE(!started);
  CHECK(started.error().code == ErrorCode::limit);
  CHECK(shells.list().size() == 1);
}

// input, time and number --------------------------------------------------------------------------

TEST_CASE("W-32: a shell is written to until it has ended or its input is closed") {
  const LocalExecutor here = make();
  BackgroundShells shells(here);
  Command command = Command::shell("cat; echo closed; exec sleep 300");
  command.keep_input_open = true;
  const std::string id = start(shells, command);
  CHECK(shells.write(id, "one\n"));
  CHECK(wait(shells, id, until_seen("^one$")) == "matched");
  CHECK(shells.write(id, "two\n"));
  CHECK(shells.close_input(id));
  CHECK(wait(shells, id, until_seen("^closed$")) == "matched");
  CHECK(read(shells, id).out.text == "one\ntwo\nclosed\n");
  Expected<void> written = shells.write(id, "three\n");
  REQUIRE(!written);
  CHECK(written.error().code == ErrorCode::io);
  CHECK(kill(shells, id) == "true");
  written = shells.write(id, "four\n");
  REQUIRE(!written);
  CHECK(written.error().code == ErrorCode::io);
  CHECK(written.error().message == "background shell '" + id + "' has ended: it reads no input");
  CHECK(shells.close_input(id));

  const std::string stuck = [&] {
    command.script = "exec sleep 300";
    return start(shells, command);
  }();
  CHECK(shells.write(stuck, std::string(1 << 20, 'x')));
  do written = shells.write(stuck, std::string(1 << 20, 'x'));
  while (written);
  CHECK(written.error().code == ErrorCode::limit);

  // Without keep_input_open there is none.
  const std::string id_without = start(shells, "cat; exec sleep 300");
  CHECK(!shells.write(id_without, "x"));
}

TEST_CASE("W-32: a shell has the time that it is given, and no more than it may have") {
  const LocalExecutor here = make();
  ShellOptions options;
  options.timeout = milliseconds(30);
  options.max_timeout = milliseconds(60);
  {
    BackgroundShells shells(here, options);
    Command command = Command::shell("exec sleep 300");
    const ShellStatus by_default = at_end(shells, start(shells, command));
    CHECK(describe(by_default) == "failed timed_out code -1 signal 15");
    CHECK(by_default.result.timeout == milliseconds(30));
    CHECK(by_default.result.notes.empty());
    command.timeout = milliseconds(40);
    CHECK(at_end(shells, start(shells, command)).result.timeout == milliseconds(40));
    command.timeout = seconds(500);
    const std::string id = start(shells, command);
    const std::vector<std::string> notes = {
        "timeout reduced from 500 to 0.06 seconds, the longest that background shells may have "
        "here"};
    CHECK(status_of(shells, id).result.notes == notes);
    CHECK(at_end(shells, id).result.timeout == milliseconds(60));
    CHECK(status_of(shells, id).result.notes == notes);
    const ForegroundRun run = shells.run(command, safety);
    CHECK(run.ended);
    CHECK(run.result.outcome == Outcome::timed_out);
    CHECK(run.result.notes == notes);
  }
  // The executor's times have no part in it.
  LocalOptions local;
  local.timeout = milliseconds(20);
  local.max_timeout = milliseconds(20);
  const LocalExecutor hasty = make(local);
  BackgroundShells shells(hasty);
  CHECK(at_end(shells, start(shells, "sleep 0.2")).state == ShellState::stopped);
}

TEST_CASE("no more run at once than may, however many are started at once") {
  const LocalExecutor here = make();
  ShellOptions options;
  options.max_running = 7;
  const LeakCheck leaks;
  {
    BackgroundShells shells(here, options);
    Gate gate;
    std::atomic<int> started{0};
    std::atomic<int> refused{0};
    std::vector<std::thread> threads;
    const std::string message =
        "as many background shells are running as may run at once (7): wait for one to end, or "
        "kill one that is not needed any more";
    for (int i = 0; i < 20; ++i)
      threads.emplace_back([&] {
        gate.pass();
        for (int j = 0; j < 50; ++j) {
          const Expected<ShellStatus> status = shells.start(Command::shell("exec sleep 300"));
          if (status) ++started;
          if (!status && status.error().code == ErrorCode::limit &&
              status.error().message == message)
            ++refused;
        }
      });
    gate.open();
    for (std::thread& thread : threads) thread.join();
    CHECK(started == 7);
    CHECK(refused == 993);
    const std::vector<ShellStatus> all = shells.list();
    CHECK(all.size() == 7);
    // Each that ends makes room for one.
    CHECK(kill(shells, all[3].id) == "true");
    CHECK(shells.start(Command::shell("exec sleep 300")));
    CHECK(!shells.start(Command::shell("exec sleep 300")));
  }
  CHECK(leaks.clean());
}

TEST_CASE("shells with huge commands are forgotten before they fill the memory") {
  const LocalExecutor here = make();
  BackgroundShells shells(here);
  const std::string huge = ": " + std::string(std::size_t{7} << 19, 'x');  // 3.5 MiB
  std::string last;
  for (int i = 0; i < 20; ++i) {
    last = start(shells, huge);
    at_end(shells, last);
  }
  CHECK(shells.list().size() == 18);
  CHECK(shells.list().back().id == last);
}

TEST_CASE("W-32: shells that have ended are forgotten, the oldest first") {
  const LocalExecutor here = make();
  ShellOptions options;
  options.max_finished = 3;
  BackgroundShells shells(here, options);
  const LeakCheck leaks;
  std::vector<std::string> ids;
  const std::string running = start(shells, "exec sleep 300");
  for (int i = 0; i < 6; ++i) {
    ids.push_back(start(shells, "exit " + std::to_string(i)));
    // Whoever is asked for has been forgotten already, or not.
    CHECK(wait(shells, ids.back(), until_end()) == "ended");
  }
  std::vector<std::string> listed;
  for (const ShellStatus& status : shells.list()) listed.push_back(status.id);
  CHECK(listed == std::vector<std::string>{running, ids[3], ids[4], ids[5]});
  CHECK(!shells.status(ids[2]));
  CHECK(status_of(shells, ids[3]).result.exit_code == 3);
  // Their end counts, not their start.
  CHECK(kill(shells, running) == "true");
  listed.clear();
  for (const ShellStatus& status : shells.list()) listed.push_back(status.id);
  CHECK(listed == std::vector<std::string>{running, ids[4], ids[5]});

  options.keep_finished = milliseconds(0);
  BackgroundShells forgetful(here, options);
  const std::string id = start(forgetful, "true");
  // Who waits keeps it.
  const Expected<ShellWaitEnd> end = forgetful.wait(id, until_end());
  CHECK((end || end.error().code == ErrorCode::not_found));
  CHECK(forgetful.list().empty());
  CHECK(!forgetful.read(id));

  options.max_finished = 0;
  options.keep_finished = codeexec::no_limit;
  BackgroundShells none(here, options);
  (void)none.wait(start(none, "true"), until_end());
  CHECK(none.list().empty());
  options.max_finished = 1;
  BackgroundShells one(here, options);
  at_end(one, start(one, "true"));
  CHECK(one.list().size() == 1);
}

// the foreground first ----------------------------------------------------------------------------

TEST_CASE("run() is a run when the command ends in time") {
  const support::TempDir place;
  AuditLog log;
  LocalOptions options;
  options.workspace = place.path();
  options.max_output = 1024;
  options.on_audit = log.callback();
  const LocalExecutor here = make(options);
  ShellOptions shell_options;
  shell_options.max_running = 0;
  BackgroundShells shells(here, shell_options);
  for (const char* script :
       {"echo out; echo err >&2; exit 3", "seq 1 10000", "sudo ls", "kill -9 $$", ""}) {
    CAPTURE(script);
    Command command = Command::shell(script);
    command.timeout = safety;
    log.take();
    const Result ran = here.run(command);
    const ForegroundRun run = shells.run(command, safety);
    CHECK(run.ended);
    const Result& r = run.result;
    CHECK(r.outcome == ran.outcome);
    CHECK(r.exit_code == ran.exit_code);
    CHECK(r.signal == ran.signal);
    CHECK(r.out == ran.out);
    CHECK(r.err == ran.err);
    CHECK(r.out_counts.total_bytes == ran.out_counts.total_bytes);
    CHECK(r.out_counts.dropped_bytes == ran.out_counts.dropped_bytes);
    CHECK(r.rule == ran.rule);
    CHECK(r.message == ran.message);
    CHECK(r.command == ran.command);
    CHECK(r.work_dir == ran.work_dir);
    CHECK(r.notes == ran.notes);
    CHECK(r.timeout == ran.timeout);
    const std::vector<Json> records = log.take();
    REQUIRE(records.size() == 2);
    CHECK(records[0]["outcome"] == records[1]["outcome"]);
    CHECK(shells.list().empty());
  }
  Command command = Command::shell("exec sleep 300");
  command.timeout = milliseconds(30);
  const ForegroundRun late = shells.run(command, safety);
  CHECK(late.ended);
  CHECK(late.result.outcome == Outcome::timed_out);
}

TEST_CASE("run() becomes a shell when the command takes longer, and its token lets go of it") {
  const LocalExecutor here = make();
  ShellOptions options;
  options.max_running = 1;
  BackgroundShells shells(here, options);
  Command command = Command::shell("echo begun; read x; echo $x");
  command.keep_input_open = true;
  command.cancel.emplace();
  const ForegroundRun run = shells.run(command, milliseconds(30));
  REQUIRE(!run.ended);
  CHECK(run.shell.state == ShellState::running);
  CHECK(begins(run.shell.id, "shell_"));
  CHECK(shells.list().size() == 1);
  command.cancel->cancel();
  CHECK(wait(shells, run.shell.id, until_seen("begun")) == "matched");
  CHECK(!shells.start(Command::shell("true")));
  CHECK(shells.write(run.shell.id, "more\n"));
  CHECK(describe(at_end(shells, run.shell.id)) == "stopped exited code 0 signal 0");
  CHECK(read(shells, run.shell.id).out.text == "begun\nmore\n");
}

TEST_CASE("run() stays in the foreground when there is no room") {
  const LocalExecutor here = make();
  ShellOptions options;
  options.max_running = 1;
  BackgroundShells shells(here, options);
  const std::string other = start(shells, "exec sleep 300");
  Command command = Command::shell("sleep 0.1; echo done");
  ForegroundRun run = shells.run(command, milliseconds(1));
  CHECK(run.ended);
  CHECK(run.result.out == "done\n");
  // Without a timeout of its own it comes back all the same.
  LocalOptions brief;
  brief.timeout = milliseconds(50);
  const LocalExecutor impatient = make(brief);
  BackgroundShells none(impatient, [] {
    ShellOptions nothing;
    nothing.max_running = 0;
    return nothing;
  }());
  run = none.run(Command::shell("echo begun; exec sleep 300"), milliseconds(1));
  CHECK(run.ended);
  CHECK(run.result.outcome == Outcome::cancelled);
  REQUIRE(!run.result.notes.empty());
  CHECK(support::begins(run.result.notes[0], "ended after the 0.05 seconds"));
  // There its token has its effect to the end.
  command = Command::shell("echo begun; exec sleep 300");
  command.cancel.emplace();
  command.on_output = [token = *command.cancel](Stream, std::string_view) { token.cancel(); };
  for (const milliseconds time : {milliseconds(0), milliseconds(safety)}) {
    command.cancel.emplace();
    command.on_output = [token = *command.cancel](Stream, std::string_view) { token.cancel(); };
    run = shells.run(command, time);
    CHECK(run.ended);
    CHECK(run.result.outcome == Outcome::cancelled);
    CHECK(run.result.out == "begun\n");
  }
  // It is cancelled before it starts.
  run = shells.run(command, safety);
  CHECK(run.ended);
  CHECK(run.result.outcome == Outcome::cancelled);
  CHECK(run.result.message == "cancelled before it was started");
  CHECK(shells.list().size() == 1);
  CHECK(shells.list()[0].id == other);
}

TEST_CASE("what runs in the foreground takes no place and is not told of") {
  const LocalExecutor here = make();
  ShellOptions options;
  options.max_running = 1;
  BackgroundShells shells(here, options);
  Gate runs;
  Command command = Command::shell("echo ready; exec sleep 300");
  command.cancel.emplace();
  command.on_output = [&](Stream, std::string_view) { runs.open(); };
  std::thread runner([&] { CHECK(shells.run(command, safety).ended); });
  runs.pass();
  const std::string id = start(shells, "exec sleep 300");
  CHECK(shells.list().size() == 1);
  command.cancel->cancel();
  runner.join();
  CHECK(shells.list().size() == 1);
  CHECK(shells.list()[0].id == id);
}

// everything at once ------------------------------------------------------------------------------

TEST_CASE("readers, waiters, killers and starters do not disturb each other") {
  LocalOptions options;
  options.max_output = 1 << 16;
  const LocalExecutor here = make(options);
  ShellOptions shell_options;
  shell_options.max_running = 6;
  shell_options.max_finished = 4;
  const LeakCheck leaks;
  {
    BackgroundShells shells(here, shell_options);
    std::atomic<bool> over{false};
    std::atomic<int> kills{0};
    std::atomic<int> mistakes{0};
    const std::vector<std::string> scripts = {
        "yes", "echo ready; exec sleep 300", "seq 1 20000; exit 1",
        std::string(child) + " flood 2 1000000", std::string(child) + " dribble 2000"};
    const auto any_id = [&](support::Random& random) {
      const std::vector<ShellStatus> all = shells.list();
      return all.empty() ? std::string("shell_0") : all[random.below(all.size())].id;
    };
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 2; ++i)
      threads.emplace_back([&, i] {  // starts, and now and then in the foreground
        support::Random random(i + 1);
        while (!over) {
          const Command command = Command::shell(scripts[random.below(scripts.size())]);
          const bool first = random.below(4) == 0;
          if (first && shells.list().size() < 5) {
            Command bounded = command;
            bounded.timeout = milliseconds(50);
            (void)shells.run(bounded, milliseconds(random.below(20)));
          } else if (const auto started = shells.start(command);
                     !started && started.error().code != ErrorCode::limit) {
            ++mistakes;
          }
        }
      });
    for (unsigned i = 0; i < 2; ++i)
      threads.emplace_back([&, i] {  // reads on, and each byte once
        support::Random random(i + 11);
        while (!over) {
          const std::string id = any_id(random);
          ShellCursor at;
          for (int j = 0; j < 20; ++j) {
            const Expected<ShellOutput> output = shells.read(id, at);
            if (!output) break;
            if (output->out.next < at.out || output->err.next < at.err) ++mistakes;
            if (!codeexec::is_utf8(output->out.text)) ++mistakes;
            at = {output->out.next, output->err.next};
          }
        }
      });
    for (unsigned i = 0; i < 2; ++i)
      threads.emplace_back([&, i] {  // waits
        support::Random random(i + 21);
        while (!over) {
          ShellWait until;
          if (random.below(2)) until.pattern = pattern("^1999|never|q$");
          until.time = milliseconds(random.below(10));
          const Expected<ShellWaitEnd> end = shells.wait(any_id(random), until);
          if (!end && end.error().code != ErrorCode::not_found) ++mistakes;
        }
      });
    for (unsigned i = 0; i < 2; ++i)
      threads.emplace_back([&, i] {  // kills
        support::Random random(i + 31);
        while (!over) {
          const std::string id = any_id(random);
          const Expected<bool> killed = shells.kill(id);
          if (!killed && killed.error().code != ErrorCode::not_found) ++mistakes;
          const Expected<ShellStatus> status = shells.status(id);
          if (killed && status && status->state == ShellState::running) ++mistakes;
          if (killed && *killed && status && status->state != ShellState::killed) ++mistakes;
          if (killed && *killed) ++kills;
        }
      });
    while (kills < 60) std::this_thread::yield();
    over = true;
    for (std::thread& thread : threads) thread.join();
    CHECK(mistakes == 0);
    CHECK(shells.list().size() <= 10);
  }
  CHECK(leaks.clean());
}
