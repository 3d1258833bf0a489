// Starting, capturing, waiting and killing, against programs that behave badly and hosts that do.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <dirent.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "support.hpp"

using codeexec::Capture;
using codeexec::Outcome;
using codeexec::OutputCounts;
using codeexec::Process;
using codeexec::ProcessOptions;
using codeexec::ProcessResult;
using codeexec::Redactor;
using codeexec::run_process;
using codeexec::Sandbox;
using codeexec::SandboxMode;
using codeexec::SandboxOptions;
using codeexec::Stream;
using std::chrono::milliseconds;
using std::chrono::seconds;
using support::in_other_host;
using support::thread_sanitizer;

namespace {

// Nothing here takes as long; it only keeps a failing test from hanging.
constexpr seconds safety(60);

// Tells an end that came of itself from one that a limit of `safety` had to bring about.
class Stopwatch {
 public:
  bool soon() const { return std::chrono::steady_clock::now() - begin_ < safety / 2; }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

std::string child_path() {
#ifdef CODEEXEC_TEST_CHILD
  return CODEEXEC_TEST_CHILD;
#else
  const char* path = std::getenv("CODEEXEC_TEST_CHILD");
  return path ? path : "./codeexec-test-child";
#endif
}

// All cases of this file hold for programs with a supervisor between them and the host, too, in a
// sandbox or not: two more entries of ctest run them like that.
bool in_sandbox() { return std::getenv("CODEEXEC_TEST_SANDBOX") != nullptr; }
bool supervised() { return std::getenv("CODEEXEC_TEST_SUPERVISED") != nullptr; }

// One that lets the cases do what they do otherwise.
const Sandbox& wide_sandbox() {
  static const Sandbox sandbox = [] {
    const char* temporary = std::getenv("TMPDIR");
    SandboxOptions options;
    options.mode = SandboxMode::best_effort;
    options.writable = {support::real_path(temporary && *temporary ? temporary : "/tmp")};
    const std::string child = support::real_path(child_path());
    options.readable = {child.substr(0, child.rfind('/'))};
    auto made = Sandbox::create(options);
    if (!made) support::fail("sandbox", made.error().message);
    return *made;
  }();
  return sandbox;
}

ProcessOptions program(std::vector<std::string> argv) {
  ProcessOptions options;
  options.argv = std::move(argv);
  options.environment = {"PATH=/usr/bin:/bin"};
  options.timeout = safety;
  if (in_sandbox()) options.sandbox = wide_sandbox();
  options.supervised = supervised();
  return options;
}

void without_supervisor(ProcessOptions& options) {
  options.sandbox = Sandbox();
  options.supervised = false;
}

ProcessOptions shell(const std::string& script) { return program({"/bin/sh", "-c", script}); }

ProcessOptions child(std::vector<std::string> words) {
  words.insert(words.begin(), child_path());
  return program(std::move(words));
}

std::string process_state(pid_t pid) {
  std::FILE* file = std::fopen(("/proc/" + std::to_string(pid) + "/stat").c_str(), "r");
  if (!file) return "gone";
  char text[512] = "";
  const std::size_t size = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  const std::string line(text, size);
  const std::size_t end = line.rfind(')');
  return end == std::string::npos ? "gone" : line.substr(end + 2, 1);
}

bool alive(pid_t pid) {
  const std::string state = process_state(pid);
  return state != "gone" && state != "Z" && state != "X";
}

// A killed process takes a moment to go; one that was not killed never does.
bool dies(pid_t pid) {
  for (int i = 0; i < 1000; ++i) {
    if (!alive(pid)) return true;
    ::poll(nullptr, 0, 10);
  }
  ::kill(pid, SIGKILL);
  return false;
}

pid_t first_number(const std::string& text) { return std::atoi(text.c_str()); }

bool has_zombie() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

std::string describe(const ProcessResult& r) {
  return std::string(codeexec::name(r.outcome)) + " code " + std::to_string(r.exit_code) +
         " signal " + std::to_string(r.signal) + " out '" + r.out + "' err '" + r.err +
         "' message '" + r.message + "'";
}

// Says when no descriptor and no zombie is left more than before.
class LeakCheck {
 public:
  LeakCheck() : before_(support::count_descriptors()) {}
  bool clean() const { return support::count_descriptors() == before_ && !has_zombie(); }

 private:
  int before_;
};

bool same_mask(const sigset_t& a, const sigset_t& b) {
  for (int number = 1; number < NSIG; ++number)
    if (sigismember(&a, number) != sigismember(&b, number)) return false;
  return true;
}

// A run after which nothing of the host's has changed.
ProcessResult run_clean(const ProcessOptions& options) {
  const LeakCheck leaks;
  sigset_t before;
  sigset_t after;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
  ProcessResult result = run_process(options);
  ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
  CHECK(same_mask(before, after));
  CHECK(leaks.clean());
  return result;
}

int thread_count() {
  int count = 0;
  if (DIR* directory = ::opendir("/proc/self/task")) {
    while (const dirent* entry = ::readdir(directory))
      if (entry->d_name[0] != '.') ++count;
    ::closedir(directory);
  }
  return count;
}

}  // namespace

// Completion --------------------------------------------------------------------------------------

TEST_CASE("a program's output, status and costs are told") {
  const ProcessResult r = run_clean(shell("echo out; echo err >&2; exit 7"));
  CHECK(r.outcome == Outcome::exited);
  CHECK(r.exit_code == 7);
  CHECK(r.signal == 0);
  CHECK(r.out == "out\n");
  CHECK(r.err == "err\n");
  CHECK(r.out_counts.total_bytes == 4);
  CHECK(r.out_counts.dropped_bytes == 0);
  CHECK(!r.succeeded());
  CHECK(!r.pipe_held);
  CHECK(r.pid > 0);
  CHECK(r.wall_time.count() > 0);
  CHECK(r.peak_memory > 100 * 1024);
  CHECK(r.message.empty());
}

TEST_CASE("the CPU time of a busy program is counted") {
  const ProcessResult r = run_process(shell("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"));
  CHECK(r.succeeded());
  CHECK(r.cpu_time >= milliseconds(5));
}

TEST_CASE("W-13: a background job that holds the pipe does not delay the result and is killed") {
  ProcessOptions options = shell("sleep 300 & echo $! started");
  options.drain = safety;  // the end must come from the killing, not from the drain
  options.max_drain = safety;
  const Stopwatch watch;
  const ProcessResult r = run_clean(options);
  CHECK(r.succeeded());
  CHECK(watch.soon());
  CHECK(r.out.find("started\n") != std::string::npos);
  CHECK(!r.pipe_held);
  CHECK(dies(first_number(r.out)));
}

TEST_CASE("keep_background leaves the background job alive and does not wait for it") {
  ProcessOptions options = shell("sleep 300 & echo $!");
  without_supervisor(options);  // with one it has no effect
  options.keep_background = true;
  options.drain = safety;
  options.max_drain = safety;
  const Stopwatch watch;
  const ProcessResult r = run_clean(options);
  CHECK(r.succeeded());
  CHECK(watch.soon());
  CHECK(r.pipe_held);
  const pid_t pid = first_number(r.out);
  CHECK(alive(pid));
  ::kill(pid, SIGKILL);
  CHECK(dies(pid));
}

TEST_CASE("W-09 W-13: a process in another session that holds the pipe is found and killed") {
  const ProcessResult r = run_clean(child({"leave-session"}));
  CHECK(r.succeeded());
  CHECK(!r.pipe_held);
  CHECK(dies(first_number(r.out)));
}

TEST_CASE("W-09 W-13: a daemon that holds the pipe is found and killed") {
  const ProcessResult r = run_clean(child({"daemon"}));
  CHECK(r.succeeded());
  CHECK(!r.pipe_held);
  CHECK(dies(first_number(r.out)));
}

TEST_CASE("a daemon that writes for ever cannot re-arm the drain for ever") {
  ProcessOptions options = child({"daemon-writer"});
  without_supervisor(options);  // which would kill it at once
  options.max_drain = milliseconds(300);
  const ProcessResult r = run_clean(options);
  CHECK(r.succeeded());
  CHECK(r.out.find('.') != std::string::npos);
  CHECK(dies(first_number(r.out)));
}

TEST_CASE("data after the end re-arms the drain") {
  // The background job is kept in the group's place by a session of its own, and writes longer than
  // `drain`, but never pauses as long.
  ProcessOptions options = shell(
      "setsid sh -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do sleep 0.1; echo $i; done' & "
      "sleep 0.05");
  without_supervisor(options);  // which would kill it at once
  options.drain = milliseconds(700);
  options.max_drain = safety;
  const Stopwatch watch;
  const ProcessResult r = run_process(options);
  CHECK(r.succeeded());
  CHECK(watch.soon());
  CHECK(r.out == "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n");
}

TEST_CASE("the end of the output is not the end of the program") {
  const ProcessResult r = run_clean(child({"close-early"}));
  CHECK(r.outcome == Outcome::exited);
  CHECK(r.exit_code == 4);
  CHECK(r.out == "before\n");
}

TEST_CASE("the end of the first thread is not the end of the program") {
  const ProcessResult r = run_clean(child({"leader-exits"}));
  CHECK(r.outcome == Outcome::exited);
  CHECK(r.exit_code == 5);
  CHECK(r.out == "early\nlate\n");
}

// Timeouts and killing ----------------------------------------------------------------------------

TEST_CASE("W-14: output before a timeout is kept") {
  ProcessOptions options = shell("echo begin; sleep 300");
  options.timeout = milliseconds(300);
  const Stopwatch watch;
  const ProcessResult r = run_clean(options);
  CHECK(r.outcome == Outcome::timed_out);
  CHECK(r.exit_code == -1);
  CHECK(r.signal == SIGTERM);
  CHECK(r.out == "begin\n");
  CHECK(r.wall_time >= milliseconds(300));
  CHECK(watch.soon());
}

TEST_CASE("W-09: a timeout leaves no process of the shell's alive") {
  for (const char* script :
       {"sleep 300 & echo $!; wait; echo done", "sleep 300 & echo $!; sleep 99 | cat",
        "set -m; sleep 300 & echo $!; wait"}) {
    CAPTURE(script);
    ProcessOptions options = shell(script);
    options.timeout = milliseconds(300);
    const ProcessResult r = run_clean(options);
    CHECK(r.outcome == Outcome::timed_out);
    CHECK(first_number(r.out) > 0);
    CHECK(dies(first_number(r.out)));
  }
}

TEST_CASE("W-09: a timeout kills a descendant that left the session and the pipes") {
  ProcessOptions options = child({"hide-descendant"});
  options.timeout = milliseconds(300);
  options.kill_grace = milliseconds(100);
  const ProcessResult r = run_clean(options);
  CHECK(r.outcome == Outcome::timed_out);
  CHECK(dies(first_number(r.out)));
}

TEST_CASE("W-09: setsid sleep is dead after a timeout") {
  ProcessOptions options = shell("setsid sh -c 'echo $$; exec sleep 99' & wait; sleep 300");
  options.timeout = milliseconds(400);
  const ProcessResult r = run_clean(options);
  CHECK(r.outcome == Outcome::timed_out);
  CHECK(dies(first_number(r.out)));
}

TEST_CASE("a program that ignores SIGTERM is killed after the grace") {
  ProcessOptions options = child({"ignore-term"});
  options.timeout = milliseconds(300);
  options.kill_grace = milliseconds(200);
  const ProcessResult r = run_clean(options);
  CHECK(r.outcome == Outcome::timed_out);
  CHECK(r.signal == SIGKILL);
  CHECK(r.out == "ready\n");
  CHECK(r.wall_time >= milliseconds(500));
}

TEST_CASE("a program that handles SIGTERM keeps its status and its last words") {
  ProcessOptions options = child({"handle-term", "23"});
  options.timeout = milliseconds(300);
  options.kill_grace = safety;
  const ProcessResult r = run_clean(options);
  CHECK(r.outcome == Outcome::timed_out);
  CHECK(r.exit_code == 23);
  CHECK(r.signal == 0);
  CHECK(r.out == "ready\nbye\n");
}

TEST_CASE("a program that stopped itself is ended by the timeout") {
  ProcessOptions options = child({"raise", std::to_string(SIGSTOP)});
  options.timeout = milliseconds(300);
  options.kill_grace = safety;  // SIGTERM alone must do: SIGCONT wakes it up
  const ProcessResult r = run_clean(options);
  CHECK(r.outcome == Outcome::timed_out);
  CHECK(r.signal == SIGTERM);
  CHECK(r.out.empty());
}

TEST_CASE("W-17: endless output does not keep the deadline from being seen") {
  ProcessOptions options = child({"flood", "1", "0"});
  options.timeout = milliseconds(300);
  options.max_output = 1000;
  const Stopwatch watch;
  const ProcessResult r = run_clean(options);
  CHECK(r.outcome == Outcome::timed_out);
  CHECK(watch.soon());
  CHECK(r.out_counts.total_bytes > 100000);
}

TEST_CASE("a timeout of zero or less ends the program at once") {
  for (const int time : {0, -5}) {
    ProcessOptions options = child({"sleep"});
    options.timeout = milliseconds(time);
    const ProcessResult r = run_clean(options);
    CHECK(r.outcome == Outcome::timed_out);
    CHECK(!alive(r.pid));
  }
}

TEST_CASE("a timeout ends a program that does not read its input") {
  ProcessOptions options = child({"sleep"});
  options.input.assign(1 << 20, 'i');
  options.timeout = milliseconds(300);
  const ProcessResult r = run_clean(options);
  CHECK(r.outcome == Outcome::timed_out);
  CHECK(r.out == "ready\n");
}

TEST_CASE("many descendants die with the group") {
  ProcessOptions options = child({"fork-storm", "40"});
  options.timeout = milliseconds(500);
  const ProcessResult r = run_clean(options);
  CHECK(r.outcome == Outcome::timed_out);
  int count = 0;
  for (std::size_t at = 0; at < r.out.size(); at = r.out.find('\n', at) + 1, ++count)
    CHECK(dies(first_number(r.out.substr(at))));
  CHECK(count == 40);
}

TEST_CASE("a kill that races with the natural end is no error") {
  for (int i = 0; i < 60; ++i) {
    ProcessOptions options = shell("sleep 0.01; exit 3");
    options.timeout = milliseconds(8 + i % 8);
    const ProcessResult r = run_process(options);
    const bool natural = r.outcome == Outcome::exited && r.exit_code == 3;
    const bool killed = r.outcome == Outcome::timed_out;
    INFO(describe(r));
    CHECK((natural || killed));
  }
  CHECK(!has_zombie());
}

TEST_CASE("death by a signal of its own is told as such") {
  const ProcessResult r = run_clean(shell("kill -9 $$"));
  CHECK(r.outcome == Outcome::signaled);
  CHECK(r.signal == SIGKILL);
  CHECK(r.exit_code == -1);
  CHECK(!r.succeeded());
}

TEST_CASE("a cancel token ends a run from another thread") {
  ProcessOptions options = child({"sleep"});
  options.cancel.emplace();
  std::atomic<bool> saw_output{false};
  options.on_output = [&](Stream, std::string_view) { saw_output = true; };
  std::thread canceller([&, token = *options.cancel] {
    while (!saw_output) std::this_thread::yield();
    token.cancel();
  });
  const ProcessResult r = run_process(options);
  canceller.join();
  CHECK(r.outcome == Outcome::cancelled);
  CHECK(r.out == "ready\n");
  CHECK(!alive(r.pid));
}

TEST_CASE("a token that is cancelled already keeps the program from being started") {
  support::TempDir directory;
  ProcessOptions options = program({"/usr/bin/touch", directory / "made"});
  options.cancel.emplace();
  options.cancel->cancel();
  const ProcessResult r = run_clean(options);
  CHECK(r.outcome == Outcome::cancelled);
  CHECK(r.pid == -1);
  CHECK(!support::exists(directory / "made"));
}

TEST_CASE("the heartbeat beats while the program runs") {
  ProcessOptions options = child({"sleep"});
  options.cancel.emplace();
  options.heartbeat = milliseconds(10);
  int beats = 0;
  options.on_heartbeat = [&] {
    if (++beats == 5) options.cancel->cancel();
  };
  const ProcessResult r = run_process(options);
  CHECK(r.outcome == Outcome::cancelled);
  CHECK(beats >= 5);
  CHECK(r.wall_time >= milliseconds(50));
}

// Output and input --------------------------------------------------------------------------------

TEST_CASE("W-17: huge output is counted to the byte and kept at both ends") {
  ProcessOptions options = shell("echo first; head -c 300000000 /dev/zero | tr '\\0' z; echo last");
  options.max_output = 10000;
  const ProcessResult r = run_clean(options);
  CHECK(r.succeeded());
  CHECK(r.out_counts.total_bytes == 300000011);
  CHECK(r.out_counts.dropped_bytes == 300000011 - 10000);
  CHECK(r.out.substr(0, 6) == "first\n");
  CHECK(r.out.substr(r.out.size() - 5) == "last\n");
  CHECK(r.out.find("\n... (truncated, exceeded 10000 bytes: 299990011 bytes omitted) ...\n") ==
        5000);
}

TEST_CASE("W-17: what a flood leaves is its true head and tail, and the listener saw all of it") {
  for (const std::size_t max : {131072u, 200001u, 1u << 20}) {
    ProcessOptions options = shell("seq 1 700000");
    options.max_output = max;
    std::string whole;
    options.on_output = [&](Stream, std::string_view bytes) { whole.append(bytes); };
    const ProcessResult r = run_clean(options);
    Capture expected(max);
    expected.add(whole);
    CHECK(whole.size() == r.out_counts.total_bytes);
    CHECK(whole.substr(whole.size() - 7) == "700000\n");
    CHECK((r.out == expected.text()));
  }
}

TEST_CASE("a lot on one stream before the other does not deadlock") {
  const ProcessResult r = run_clean(shell("head -c 2000000 /dev/zero >&2; echo done"));
  CHECK(r.succeeded());
  CHECK(r.out == "done\n");
  CHECK(r.err_counts.total_bytes == 2000000);
}

TEST_CASE("output around the size of a pipe is complete") {
  for (const int size : {1, 4095, 4096, 4097, 65535, 65536, 65537, 131072}) {
    const ProcessResult r = run_process(child({"flood", "1", std::to_string(size)}));
    CHECK(r.out == std::string(static_cast<std::size_t>(size), 'x'));
  }
}

TEST_CASE("single-byte writes arrive whole and in order") {
  const ProcessResult r = run_process(child({"dribble", "2000"}));
  REQUIRE(r.out.size() == 2000);
  for (std::size_t i = 0; i < 2000; ++i)
    if (r.out[i] != static_cast<char>('a' + i % 26)) FAIL_CHECK("wrong byte at " << i);
}

TEST_CASE("NUL bytes and a missing newline at the end are kept") {
  const ProcessResult r = run_process(shell("printf 'a\\0b'"));
  CHECK(r.out == std::string("a\0b", 3));
}

TEST_CASE("W-16: carriage returns are kept") {
  CHECK(run_process(shell("printf 'a\\rb\\r\\nc'")).out == "a\rb\r\nc");
}

TEST_CASE("W-15: output that is not UTF-8 is replaced and counted, and the status is kept") {
  const ProcessResult r = run_process(shell("printf 'ok\\377\\376\\n'; exit 7"));
  CHECK(r.exit_code == 7);
  CHECK(r.out == "ok\xef\xbf\xbd\xef\xbf\xbd\n");
  CHECK(r.out_counts.invalid_bytes == 2);
  CHECK(r.out_counts.total_bytes == 5);
}

TEST_CASE("merged streams keep the true order") {
  ProcessOptions options = shell("echo 1; echo 2 >&2; echo 3; echo 4 >&2");
  options.merge_streams = true;
  const ProcessResult r = run_clean(options);
  CHECK(r.out == "1\n2\n3\n4\n");
  CHECK(r.err.empty());
  CHECK(r.err_counts.total_bytes == 0);
}

TEST_CASE("on_output sees the raw bytes of both streams") {
  ProcessOptions options = shell("printf 'a\\377'; printf b >&2");
  std::string out;
  std::string err;
  options.on_output = [&](Stream stream, std::string_view bytes) {
    (stream == Stream::out ? out : err).append(bytes);
  };
  run_process(options);
  CHECK(out == "a\xff");
  CHECK(err == "b");
}

TEST_CASE("a program can open /dev/stdout again") {
  CHECK(run_process(child({"reopen-stdout"})).out == "reopened\n");
}

TEST_CASE("W-10: without input, standard input is at its end at once") {
  const ProcessResult r = run_clean(shell("cat; read x; echo $?"));
  CHECK(r.succeeded());
  CHECK(r.out == "1\n");
}

TEST_CASE("8 MB of input come back without deadlock") {
  ProcessOptions options = program({"cat"});
  options.input.resize(8000000);
  for (std::size_t i = 0; i < options.input.size(); ++i)
    options.input[i] = static_cast<char>('a' + i % 23);
  options.max_output = 16000000;
  const ProcessResult r = run_clean(options);
  CHECK(r.succeeded());
  CHECK(r.out == options.input);
}

TEST_CASE("a program that closes its input early is no error and SIGPIPE does not strike") {
  for (const bool ignored : {false, true}) {
    const std::string problem = in_other_host([&]() -> std::string {
      ::signal(SIGPIPE, ignored ? SIG_IGN : SIG_DFL);
      ProcessOptions options = program({"head", "-c", "3"});
      options.input.assign(4000000, 'q');
      for (int i = 0; i < 20; ++i) {
        const ProcessResult r = run_process(options);
        if (!r.succeeded() || r.out != "qqq") return describe(r);
      }
      // Many times: whether a write meets the closed end is a race.
      for (int i = 0; i < 40; ++i) {
        ProcessOptions closes = i == 0 ? child({"no-input"}) : child({"no-input", "after-a-sip"});
        closes.input.assign(4000000, 'q');
        const ProcessResult r = run_process(closes);
        if (!r.succeeded()) return describe(r);
      }
      sigset_t pending;
      sigpending(&pending);
      return sigismember(&pending, SIGPIPE) == 0 ? "" : "a SIGPIPE is left";
    });
    CAPTURE(ignored);
    CHECK(problem == "");
  }
}

TEST_CASE("a SIGPIPE that was pending before stays pending") {
  const std::string problem = in_other_host([]() -> std::string {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    ::pthread_kill(::pthread_self(), SIGPIPE);
    ProcessOptions options = child({"no-input", "after-a-sip"});
    options.input.assign(4000000, 'q');
    for (int i = 0; i < 20; ++i)
      if (!run_process(options).succeeded()) return "run failed";
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGPIPE) == 1 ? "" : "the host's SIGPIPE is gone";
  });
  CHECK(problem == "");
}

TEST_CASE("the whole of a stream that outgrows its buffer is in the spill file") {
  const support::TempDir directory;
  ProcessOptions options = shell("head -c 500000 /dev/urandom | od -x; echo small >&2");
  options.max_output = 20000;
  options.spill_dir = directory.path();
  std::string whole;
  options.on_output = [&](Stream stream, std::string_view bytes) {
    if (stream == Stream::out) whole.append(bytes);
  };
  const ProcessResult r = run_clean(options);
  CHECK(r.out_counts.dropped_bytes > 0);
  REQUIRE(!r.out_file.empty());
  CHECK(r.out_file.substr(0, directory.path().size() + 1) == directory.path() + "/");
  CHECK(support::read_file(r.out_file) == whole);
  CHECK(r.out_counts.file_bytes == whole.size());
  CHECK(r.err_file.empty());
  struct stat status {};
  REQUIRE(::stat(r.out_file.c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0600);
  CHECK(r.message.empty());
}

TEST_CASE("a spill file that was cut or could not be made is told") {
  const support::TempDir directory;
  ProcessOptions options = child({"flood", "1", "100000"});
  options.max_output = 1000;
  options.spill_dir = directory.path();
  options.max_spill = 5000;
  ProcessResult r = run_clean(options);
  CHECK(r.succeeded());
  CHECK(support::read_file(r.out_file) == std::string(5000, 'x'));
  CHECK(r.out_counts.file_bytes == 5000);
  CHECK(r.out_counts.total_bytes == 100000);
  CHECK(r.message.find("max_spill") != std::string::npos);

  options.spill_dir = directory / "missing";
  r = run_clean(options);
  CHECK(r.succeeded());
  CHECK(r.out_file.empty());
  CHECK(r.message.find("No such file") != std::string::npos);

  options = child({"flood", "1", "1000"});
  options.max_output = 1000;
  options.spill_dir = directory.path();
  CHECK(run_clean(options).out_file.empty());
}

// Capture -----------------------------------------------------------------------------------------

TEST_CASE("Capture keeps exactly head and tail, whatever the pieces") {
  support::Random random;
  for (int round = 0; round < 300; ++round) {
    const std::size_t max = random.below(round % 2 ? 60000 : 40);
    Capture capture(max);
    std::string all;
    const std::size_t pieces = random.below(12);
    for (std::size_t i = 0; i < pieces; ++i) {
      std::string piece(random.below(round % 2 ? 40000 : 20), '\0');
      for (char& c : piece) c = static_cast<char>('a' + random.below(26));
      capture.add(piece);
      all += piece;
    }
    OutputCounts counts;
    const std::string text = capture.text(&counts);
    CHECK(counts.total_bytes == all.size());
    if (all.size() <= max) {
      CHECK(text == all);
      CHECK(counts.dropped_bytes == 0);
      continue;
    }
    const std::size_t dropped = all.size() - max;
    CHECK(counts.dropped_bytes == dropped);
    CHECK(text == all.substr(0, max / 2) + "\n... (truncated, exceeded " + std::to_string(max) +
                      " bytes: " + std::to_string(dropped) + " bytes omitted) ...\n" +
                      all.substr(all.size() - (max - max / 2)));
  }
}

TEST_CASE("Capture cuts at characters and counts what it cuts") {
  for (std::size_t max = 0; max < 40; ++max) {
    Capture capture(max);
    std::string all;
    for (int i = 0; i < 30; ++i) all += i % 2 ? "\xe2\x82\xac" : "\xf0\x9f\x98\x80";
    capture.add(all);
    OutputCounts counts;
    const std::string text = capture.text(&counts);
    CHECK(codeexec::is_utf8(text));
    CHECK(text.find("\xef\xbf\xbd") == std::string::npos);
    CHECK(counts.invalid_bytes == 0);
    const std::size_t marker = text.find("\n... (truncated");
    REQUIRE(marker != std::string::npos);
    const std::size_t tail = text.size() - text.find(") ...\n") - 6;
    CHECK(counts.dropped_bytes == all.size() - marker - tail);
    CHECK(marker + tail <= max);
    CHECK(all.substr(0, marker) == text.substr(0, marker));
    CHECK(all.substr(all.size() - tail) == text.substr(text.size() - tail));
  }
}

TEST_CASE("Capture gives what is new since a cursor, whole characters only") {
  Capture capture(1000);
  capture.add("abc\xe2\x82");
  Capture::Chunk chunk = capture.read(0, false);
  CHECK(chunk.text == "abc");
  CHECK(chunk.next == 3);
  capture.add("\xac!");
  chunk = capture.read(chunk.next, false);
  CHECK(chunk.text == "\xe2\x82\xac!");
  CHECK(chunk.next == 7);
  CHECK(chunk.missed == 0);
  CHECK(capture.read(7, false).text.empty());
  CHECK(capture.read(99, false).next == 7);
  capture.add("\xe2");
  CHECK(capture.read(7, false).text.empty());
  CHECK(capture.read(7, true).text == "\xef\xbf\xbd");
}

TEST_CASE("Capture lets a character wait that lies across the border of head and tail") {
  const std::string text = "ab\xf0\x9f\x98\x80x\xf0\x9f\x98\x80y";
  for (std::size_t head = 0; head <= 8; ++head) {
    CAPTURE(head);
    Capture capture(16, head);
    std::uint64_t cursor = 0;
    std::string told;
    for (const char c : text) {
      capture.add(std::string_view(&c, 1));
      const Capture::Chunk chunk = capture.read(cursor, false);
      told += chunk.text;
      cursor = chunk.next;
    }
    CHECK(told == text);
  }
}

TEST_CASE("Capture tells what a late reader missed") {
  Capture capture(10);
  capture.add("0123456789abcdefghij");
  Capture::Chunk chunk = capture.read(0, false);
  CHECK(chunk.text == "01234\n... (10 bytes omitted) ...\nfghij");
  CHECK(chunk.missed == 10);
  CHECK(chunk.next == 20);
  chunk = capture.read(7, false);
  CHECK(chunk.missed == 8);
  CHECK(chunk.text == "\n... (8 bytes omitted) ...\nfghij");
  chunk = capture.read(17, false);
  CHECK(chunk.missed == 0);
  CHECK(chunk.text == "hij");
}

TEST_CASE("following a stream by cursor loses nothing while the reader keeps up") {
  support::Random random(7);
  Capture capture(4096);
  std::string all;
  std::string followed;
  std::uint64_t cursor = 0;
  for (int i = 0; i < 500; ++i) {
    const std::string piece(random.below(1500), static_cast<char>('a' + i % 26));
    capture.add(piece);
    all += piece;
    const Capture::Chunk chunk = capture.read(cursor, false);
    CHECK(chunk.missed == 0);
    followed += chunk.text;
    cursor = chunk.next;
  }
  CHECK(followed == all);
}

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

// Supervision -------------------------------------------------------------------------------------

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

bool contains(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

bool has_supervisor() {
  if (contains(wide_sandbox().report().enforced, "containment")) return true;
  MESSAGE("SKIPPED: there is no supervisor on this system");
  return false;
}

// Of this program, with that name.
pid_t supervisor_pid() {
  const std::string list = support::read_file("/proc/thread-self/children");
  const char* at = list.c_str();
  for (;;) {
    char* end = nullptr;
    const long pid = std::strtol(at, &end, 10);
    if (end == at) return -1;
    at = end;
    const std::string path = "/proc/" + std::to_string(pid) + "/comm";
    if (support::exists(path) && support::read_file(path) == "codeexec\n")
      return static_cast<pid_t>(pid);
  }
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
      "setsid sleep 3713 > /dev/null 2>&1 < /dev/null & sleep 3713 & echo ready; sleep 3713", life);
  bool killed = false;
  options.on_output = [&](Stream, std::string_view) {
    const pid_t pid = supervisor_pid();
    killed = pid > 0 && ::kill(pid, SIGKILL) == 0;
  };
  const ProcessResult r = run_clean(options);
  CHECK(killed);
  CHECK(r.outcome == Outcome::unknown);
  CHECK(r.out == "ready\n");
  CHECK(r.message == "its exit status was lost: its supervisor was killed");
  CHECK(life.all_gone());
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
      "setsid sleep 3714 > /dev/null 2>&1 < /dev/null & echo ready; sleep 3714", life);
  options.cancel.emplace();
  REQUIRE(options.cancel->descriptor() >= 0);
  options.kill_grace = milliseconds(20);
  bool stopped = false;
  options.on_output = [&](Stream, std::string_view) {
    const pid_t pid = supervisor_pid();
    stopped = pid > 0 && ::kill(pid, SIGSTOP) == 0;
    options.cancel->cancel();
  };
  const ProcessResult r = run_clean(options);
  CHECK(stopped);
  CHECK(r.outcome == Outcome::cancelled);
  CHECK(r.out == "ready\n");
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
  const LeakCheck leaks;
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
    if (thread_sanitizer && support::begins(c.denied, "clone3")) {
      MESSAGE("SKIPPED: ThreadSanitizer's clone() and a child on the same memory do not get along");
      continue;
    }
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

// Masking -----------------------------------------------------------------------------------------

namespace {

// What is known of a masked stream of which only `text` has come: worked out from the definition,
// in quadratic time. With `ended`, nothing may be held back.
struct Masked {
  std::string text = {};
  std::uint64_t count = 0;
};

Masked naively_masked(const std::vector<std::string>& secrets, const std::string& text,
                      bool ended) {
  std::size_t certain = text.size();  // no secret that goes on begins before it
  std::vector<std::pair<std::size_t, std::size_t>> found;
  for (std::size_t begin = 0; begin < text.size(); ++begin) {
    std::size_t longest = 0;
    for (std::string secret : secrets) {
      while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
      if (secret.size() < Redactor::min_size) continue;
      if (text.compare(begin, secret.size(), secret) == 0)
        longest = std::max(longest, secret.size());
      const std::size_t left = text.size() - begin;
      const bool goes_on = left < secret.size() && secret.compare(0, left, text, begin) == 0;
      if (!ended && goes_on) certain = std::min(certain, begin);
    }
    if (longest == 0) continue;
    if (found.empty() || begin >= found.back().second)
      found.emplace_back(begin, begin + longest);
    else
      found.back().second = std::max(found.back().second, begin + longest);
  }
  Masked result;
  std::size_t at = 0;
  for (const auto& [begin, end] : found) {
    if (begin > certain) break;
    result.text += text.substr(at, begin - at) + std::string(Redactor::mask);
    ++result.count;
    at = end;
  }
  if (at < certain) result.text += text.substr(at, certain - at);
  return result;
}

std::string masked(const std::vector<std::string>& secrets, const std::string& text) {
  return Redactor(secrets).redact(text);
}

// What becomes of a text that comes in two pieces, cut at every place: the same, or an empty text.
std::string masked_in_two(const std::vector<std::string>& secrets, const std::string& text) {
  std::string first;
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    Redactor redactor(secrets);
    std::string result(redactor.add(text.substr(0, cut)));
    result += redactor.add(text.substr(cut));
    result += redactor.finish();
    if (cut == 0) first = result;
    if (result != first) return {};
  }
  return first;
}

}  // namespace

TEST_CASE("a Redactor masks each secret wherever the stream is cut") {
  const std::vector<std::string> secrets = {"hunter2", "correct horse", "hunter2hunter2",
                                            std::string("nul\0bytes", 9), "\xff\xfe\xff\xfe"};
  const std::pair<std::string, std::string> cases[] = {
      {"", ""},
      {"nothing here", "nothing here"},
      {"hunter2", "[redacted]"},
      {"my hunter2!", "my [redacted]!"},
      {"hunter", "hunter"},
      {"hunterhunter2", "hunter[redacted]"},
      {"hunter2hunter2", "[redacted]"},
      {"hunter2hunter", "[redacted]hunter"},
      {"hunter2 hunter2", "[redacted] [redacted]"},
      {"hunter2correct horse", "[redacted][redacted]"},
      {std::string("a nul\0bytes b", 13), "a [redacted] b"},
      {std::string("a nul\0byte b", 12), std::string("a nul\0byte b", 12)},
      {"\xff\xff\xfe\xff\xfe\xff", "\xff[redacted]\xff"},
      {"[redacted]", "[redacted]"},
  };
  for (const auto& each : cases) {
    const std::string& text = each.first;
    CAPTURE(text);
    CHECK(masked(secrets, text) == each.second);
    CHECK(masked_in_two(secrets, text) == each.second);
  }
}

TEST_CASE("a Redactor masks every byte of secrets that overlap, touch or lie in each other") {
  CHECK(masked({"abcd", "cdef"}, "xabcdefx") == "x[redacted]x");
  CHECK(masked({"abcd", "efgh"}, "xabcdefghx") == "x[redacted][redacted]x");
  CHECK(masked({"abcd", "efgh", "dedd"}, "abcdefgh") == "[redacted][redacted]");
  CHECK(masked({"abcd", "efgh", "cdef"}, "abcdefgh") == "[redacted]");
  CHECK(masked({"bcde", "abcdefg"}, "abcdefg abcdef") == "[redacted] a[redacted]f");
  CHECK(masked({"1111", "2222", "x1111y2222z"}, "x1111y2222z") == "[redacted]");
  CHECK(masked({"1111", "2222", "x1111y2222z"}, "x1111y2222y") == "x[redacted]y[redacted]y");
  CHECK(masked({"aaaa"}, "aaaaaaaaa") == "[redacted]");
  CHECK(masked({"aaaa"}, "aaa aaaa") == "aaa [redacted]");
  Redactor redactor({"abcd", "abcd", "cdab"});
  CHECK(redactor.add("abcdabcd abcd") == "[redacted] [redacted]");
  CHECK(redactor.count() == 2);
}

TEST_CASE("a Redactor leaves out what is too short, and line ends at the end of a secret") {
  CHECK(Redactor().empty());
  CHECK(Redactor({"", "abc", "abc\n", "ab\r\n", "\n\n\n\n\n"}).empty());
  CHECK(!Redactor({"abcd"}).empty());
  CHECK(masked({}, "abcd") == "abcd");
  CHECK(masked({"", "abc"}, "abcd") == "abcd");
  CHECK(masked({"secret\n"}, "secret") == "[redacted]");
  CHECK(masked({"secret\r\n\n"}, "a secret\nb") == "a [redacted]\nb");
  CHECK(masked({"two\nlines\n"}, "two\nlines two") == "[redacted] two");
}

TEST_CASE("a Redactor returns at once what cannot become a secret any more") {
  Redactor redactor({"hunter2", "hunter2 and more"});
  CHECK(redactor.add("password: ") == "password: ");
  CHECK(redactor.add("hunt") == "");
  CHECK(redactor.add("x") == "huntx");
  CHECK(redactor.add("huhunter") == "hu");
  CHECK(redactor.add("2") == "[redacted]");
  CHECK(redactor.add(" and") == "");
  CHECK(redactor.add("!") == " and!");
  CHECK(redactor.add("hunter2 and mor") == "[redacted]");
  CHECK(redactor.add("e") == "");
  CHECK(redactor.add("h") == "");
  CHECK(redactor.finish() == "h");
  CHECK(redactor.finish() == "");
  CHECK(redactor.count() == 2);
  CHECK(redactor.add("unter2") == "unter2");  // the end of one stream and the next are no secret
}

TEST_CASE("copies of a Redactor go on by themselves") {
  Redactor one({"hunter2"});
  CHECK(one.add("hun") == "");
  Redactor other = one;
  CHECK(one.add("ter2") == "[redacted]");
  CHECK(other.add("gry") == "hungry");
  CHECK(one.redact("hunter2") == "[redacted]");
  CHECK(one.count() == 1);
  CHECK(other.count() == 0);
}

TEST_CASE("a Redactor does what its definition says, whatever the secrets and the pieces are") {
  support::Random random;
  for (int round = 0; round < 3000; ++round) {
    const std::size_t letters = 1 + random.below(3);
    const auto random_text = [&](std::size_t longest) {
      std::string text;
      for (std::size_t left = random.below(longest + 1); left > 0; --left)
        text += random.below(40) == 0 ? '\n' : static_cast<char>('a' + random.below(letters));
      return text;
    };
    std::vector<std::string> secrets;
    for (std::size_t left = random.below(5); left > 0; --left) secrets.push_back(random_text(12));
    const std::string text = random_text(60);
    Redactor redactor(secrets);
    std::string result;
    std::size_t at = 0;
    while (at < text.size()) {
      const std::size_t size = 1 + random.below(text.size() - at);
      result += redactor.add(text.substr(at, size));
      at += size;
      const Masked expected = naively_masked(secrets, text.substr(0, at), false);
      if (result == expected.text && redactor.count() == expected.count) continue;
      std::string all = "text '" + text.substr(0, at) + "' secrets";
      for (const std::string& secret : secrets) all += " '" + secret + "'";
      FAIL(all << ": got '" << result << "', expected '" << expected.text << "'");
    }
    result += redactor.finish();
    const Masked expected = naively_masked(secrets, text, true);
    REQUIRE(result == expected.text);
    REQUIRE(redactor.count() == expected.count);
    REQUIRE(redactor.redact(text) == expected.text);
  }
}

// Each of these takes minutes where a byte costs as much as a secret is long.
TEST_CASE("a Redactor is linear for the worst secrets and streams") {
  constexpr std::size_t size = 300000;
  SUBCASE("a stream that is always about to become the secret, byte by byte") {
    const std::string secret = std::string(size, 'a') + "b";
    Redactor redactor({secret});
    std::size_t returned = 0;
    for (std::size_t i = 0; i < 2 * size; ++i) returned += redactor.add("a").size();
    CHECK(returned == size);
    CHECK(redactor.add("b") == Redactor::mask);
    CHECK(redactor.finish() == "");
  }
  SUBCASE("many secrets within one that does not come") {
    std::string secret;
    while (secret.size() < size) secret += "1111y";
    Redactor redactor({"1111", secret + "z"});
    std::uint64_t returned = 0;
    for (std::size_t i = 0; i < 2 * size; ++i)
      returned += redactor.add(std::string(1, "1111y"[i % 5])).size();
    returned += redactor.finish().size();
    CHECK(redactor.count() == 2 * size / 5);
    CHECK(returned == 2 * size / 5 * (Redactor::mask.size() + 1));
  }
  SUBCASE("secrets that are the ends of each other") {
    std::vector<std::string> secrets;
    for (std::size_t length = 4; length < 1000; ++length)
      secrets.push_back("c" + std::string(length, 'a') + "b");
    const Redactor redactor(secrets);
    const std::string longer = "c" + std::string(1200, 'a') + "b";
    std::string text;
    std::string expected;
    while (text.size() < size) {
      text += longer + "c" + std::string(9, 'a') + "b";
      expected += longer + std::string(Redactor::mask);
    }
    CHECK(redactor.redact(text) == expected);
  }
}

namespace {

// A program that has printed a part of the secret waits for a line here before it prints the rest.
class Gate {
 public:
  Gate() : path_(directory_ / "gate") {
    if (::mkfifo(path_.c_str(), 0600) != 0) support::fail("mkfifo", path_);
    fd_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
    if (fd_ < 0) support::fail("open", path_);
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() { ::close(fd_); }
  std::string wait() const { return "read line < " + path_ + "; "; }  // for a script
  void open() const {
    if (::write(fd_, "go\n", 3) != 3) support::fail("write", path_);
  }

 private:
  support::TempDir directory_ = {};
  std::string path_;
  int fd_ = -1;
};

}  // namespace

TEST_CASE("a secret that comes in two pieces is masked in both streams and for the listener") {
  for (const bool merged : {false, true}) {
    CAPTURE(merged);
    const Gate gate;
    ProcessOptions options =
        shell("printf 'out: hun'; " + gate.wait() + "printf 'ter2 in'; " +
              "printf 'err: correct' >&2; " + gate.wait() + "printf ' horse in hunter' >&2");
    options.secrets = {"hunter2", "correct horse"};
    options.merge_streams = merged;
    std::string heard[2];
    options.on_output = [&](Stream stream, std::string_view bytes) {
      std::string& text = heard[stream == Stream::out ? 0 : 1];
      text += bytes;
      if (bytes == "out: " || support::has(bytes, "err: ")) gate.open();
    };
    const ProcessResult r = run_clean(options);
    CHECK(r.succeeded());
    if (merged) {
      CHECK(r.out == "out: [redacted] inerr: [redacted] in hunter");
      CHECK(r.out_counts.redactions == 2);
    } else {
      CHECK(r.out == "out: [redacted] in");
      CHECK(r.err == "err: [redacted] in hunter");
      CHECK(r.out_counts.redactions == 1);
      CHECK(r.err_counts.redactions == 1);
      CHECK(r.err_counts.total_bytes == r.err.size());
    }
    CHECK(heard[0] == r.out);
    CHECK(heard[1] == r.err);
  }
}

TEST_CASE(
    "what is read of a running program is masked, and the end of a stream frees what is held") {
  ProcessOptions options =
      shell("printf 'a hun'; read line; printf 'ter2 b hunt'; read line; exec >&-; read line");
  options.secrets = {"hunter2"};
  options.keep_input_open = true;
  auto process = Process::start(options);
  REQUIRE(process);
  const auto wait_for = [&](const std::string& expected) {
    std::string text;
    while ((text = process->read(Stream::out, 0).text).size() < expected.size() && !process->done())
      std::this_thread::yield();
    CHECK(text == expected);
  };
  wait_for("a ");
  CHECK(process->write("go\n"));
  wait_for("a [redacted] b ");
  CHECK(process->write("go\n"));
  wait_for("a [redacted] b hunt");
  CHECK(!process->done());
  process->close_input();
  CHECK(process->wait().out == "a [redacted] b hunt");
  CHECK(process->wait().out_counts.redactions == 1);
}

TEST_CASE("what was held back is not lost when somebody still holds the pipe, or at a cancel") {
  ProcessOptions options = shell("sleep 300 2>&- & echo $! >&2; printf hunt");
  options.secrets = {"hunter2"};
  without_supervisor(options);  // which would kill it at once
  options.keep_background = true;
  std::string heard;
  options.on_output = [&](Stream stream, std::string_view bytes) {
    if (stream == Stream::out) heard += bytes;
  };
  ProcessResult r = run_clean(options);
  CHECK(r.pipe_held);
  CHECK(r.out == "hunt");
  CHECK(heard == "hunt");
  CHECK(::kill(first_number(r.err), SIGKILL) == 0);

  options = shell("printf 'go hunt'; exec sleep 300");
  options.secrets = {"hunter2"};
  options.cancel.emplace();
  options.on_output = [&](Stream, std::string_view bytes) {
    if (bytes == "go ") options.cancel->cancel();
  };
  r = run_process(options);
  CHECK(r.outcome == Outcome::cancelled);
  CHECK(r.out == "go hunt");
}

TEST_CASE("the head, the tail and the spill file are cut from the masked stream") {
  const support::TempDir directory;
  const std::string secret = "0123456789abcdef";
  // Without masking, each cut of max_output would go through a secret.
  ProcessOptions options =
      shell("i=0; while [ $i -lt 20000 ]; do printf 'k=" + secret + "\\n'; i=$((i+1)); done");
  options.secrets = {secret, "unrelated"};
  std::string whole;
  for (int i = 0; i < 20000; ++i) whole += "k=[redacted]\n";
  for (const bool spilled : {false, true}) {
    for (const std::size_t max : {100u, 101u, 131072u, 1u << 20}) {
      CAPTURE(spilled);
      CAPTURE(max);
      options.max_output = max;
      if (spilled) options.spill_dir = directory.path();
      std::string heard;
      options.on_output = [&](Stream, std::string_view bytes) { heard += bytes; };
      const ProcessResult r = run_process(options);
      Capture expected(max);
      expected.add(whole);
      CHECK((r.out == expected.text()));
      CHECK((heard == whole));
      CHECK(r.out_counts.total_bytes == whole.size());
      CHECK(r.out_counts.redactions == 20000);
      CHECK(r.out_file.empty() == (!spilled || whole.size() <= max));
      if (r.out_file.empty()) continue;
      CHECK((support::read_file(r.out_file) == whole));
      CHECK(r.out_counts.file_bytes == whole.size());
    }
  }
}

TEST_CASE("a secret at the border of two reads is masked") {
  for (const std::size_t before : {65530u, 65535u, 65536u, 131070u}) {
    ProcessOptions options = shell("cat");
    options.input = std::string(before, 'x') + "hunter2";
    options.secrets = {"hunter2"};
    const ProcessResult r = run_process(options);
    CHECK((r.out == std::string(before, 'x') + "[redacted]"));
  }
}

TEST_CASE("secrets that are too short mask nothing, and too many start nothing") {
  ProcessOptions options = shell("echo abc abc");
  options.secrets = {"", "abc", "a", "\n\n\n\n"};
  CHECK(run_process(options).out == "abc abc\n");
  options.secrets = {std::string(Redactor::max_total, 'x')};
  CHECK(run_process(options).out == "abc abc\n");
  options.secrets.push_back("y");
  const ProcessResult r = run_process(options);
  CHECK(r.outcome == Outcome::not_started);
  CHECK(r.step == "setup");
  CHECK(r.message == "cannot start '/bin/sh': secrets has more than 1048576 bytes");
}

// What the program gets ---------------------------------------------------------------------------

TEST_CASE("the environment is exactly what was given, and a mark that differs for each run") {
  support::EnvironmentGuard guard("CODEEXEC_SECRET", "hidden");
  ProcessOptions options = program({"/usr/bin/env"});
  options.environment = {"A=1", "CODEEXEC_RUN_ID=forged", "B=two words"};
  const std::string given = "A=1\nB=two words\nCODEEXEC_RUN_ID=";
  const std::string first = run_process(options).out;
  const std::string second = run_process(options).out;
  for (const std::string& out : {first, second}) {
    CHECK(out.substr(0, given.size()) == given);
    CHECK(out.find("forged") == out.npos);
    CHECK(out.find('\n', given.size()) == out.size() - 1);
  }
  CHECK(first != second);
}

TEST_CASE("the program runs in work_dir, and the host stays where it is") {
  const support::TempDir directory;
  ProcessOptions options = program({"pwd"});
  options.work_dir = directory.path();
  CHECK(run_process(options).out == directory.path() + "\n");

  const int fd = ::open("/usr", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  options.work_dir_fd = fd;
  CHECK(run_process(options).out == "/usr\n");
  CHECK(support::descriptor_is_open(fd));
  ::close(fd);
}

TEST_CASE("the program has a session of its own, no terminal and no core dumps") {
  const std::string problem = in_other_host([]() -> std::string {
    rlimit core{};
    ::getrlimit(RLIMIT_CORE, &core);
    core.rlim_cur = core.rlim_max = std::max<rlim_t>(core.rlim_max, 4096);
    ::setrlimit(RLIMIT_CORE, &core);
    const ProcessResult r = run_process(child({"session"}));
    return r.out == "session leader\ngroup leader\nno terminal\nno core\n" ? "" : describe(r);
  });
  CHECK(problem == "");
}

TEST_CASE("no descriptor of the host reaches the program") {
  const int leaky = ::fcntl(1, F_DUPFD, 77);  // not CLOEXEC
  REQUIRE(leaky >= 77);
  const ProcessResult r = run_process(child({"descriptors"}));
  ::close(leaky);
  CHECK(r.out == "0 1 2 \n");
}

TEST_CASE("pass_fd becomes descriptor 3 and nothing else") {
  const support::TempDir directory;
  const std::string path = directory.file("passed", "hello");
  for (const int number : {3, 60}) {
    const std::string problem = in_other_host([&]() -> std::string {
      const int opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
      ::dup2(opened, number);
      ::fcntl(number, F_SETFD, FD_CLOEXEC);
      if (opened != number) ::close(opened);
      ProcessOptions options = child({"copy", "3"});
      options.pass_fd = number;
      const ProcessResult r = run_process(options);
      if (r.out != "hello") return describe(r);
      ProcessOptions list = child({"descriptors"});
      list.pass_fd = number;
      const ProcessResult all = run_process(list);
      return all.out == "0 1 2 3 \n" ? "" : describe(all);
    });
    CAPTURE(number);
    CHECK(problem == "");
  }
}

TEST_CASE("PATH is searched in the program's environment") {
  const support::TempDir directory;
  directory.file("tool", "#!/bin/sh\necho mine\n", 0755);
  directory.file("blocked/tool", "#!/bin/sh\necho blocked\n", 0644);
  ProcessOptions options = program({"tool"});
  options.environment = {"PATH=/nowhere:" + (directory / "blocked") + ":" + directory.path()};
  CHECK(run_process(options).out == "mine\n");
  options.environment = {};  // /bin:/usr/bin
  options.argv = {"echo", "found"};
  CHECK(run_process(options).out == "found\n");
}

TEST_CASE("a script without a first line is given to sh") {
  const support::TempDir directory;
  ProcessOptions options = program({directory.file("script", "echo \"$0 $1\"\n", 0755), "arg"});
  CHECK(run_process(options).out == (directory / "script") + " arg\n");
}

// Failed starts -----------------------------------------------------------------------------------

TEST_CASE("every failed start tells errno, step and a sentence") {
  const support::TempDir directory;
  const std::string plain = directory.file("plain", "text", 0644);
  const std::string orphan = directory.file("orphan", "#!/no/such/interpreter\n", 0755);
  struct Case {
    const char* what;
    std::vector<std::string> argv;
    std::string work_dir;
    int error;
    const char* step;
    std::string message;
  };
  const Case cases[] = {
      {"missing in PATH",
       {"nosuch"},
       "",
       ENOENT,
       "exec",
       "cannot start 'nosuch': No such file or directory (exec; looked in PATH=/usr/bin:/bin)"},
      {"missing",
       {"/no/such"},
       "",
       ENOENT,
       "exec",
       "cannot start '/no/such': No such file or directory (exec)"},
      {"directory", {"/etc"}, "", EACCES, "exec", "cannot start '/etc': Permission denied (exec)"},
      {"not executable",
       {plain},
       "",
       EACCES,
       "exec",
       "cannot start '" + plain + "': Permission denied (exec)"},
      {"interpreter",
       {orphan},
       "",
       ENOENT,
       "exec",
       "cannot start '" + orphan +
           "': No such file or directory (exec; its interpreter "
           "'/no/such/interpreter' is missing)"},
      {"path through a file", {plain + "/x"}, "", ENOENT, "exec", "cannot start "},
      {"empty name", {""}, "", ENOENT, "exec", "cannot start '': No such file or directory"},
      {"argument too long",
       {"true", std::string(3 << 20, 'a')},
       "",
       E2BIG,
       "exec",
       "cannot start 'true': Argument list too long (exec"},
      {"work_dir missing",
       {"true"},
       "/no/dir",
       ENOENT,
       "work_dir",
       "cannot enter work_dir '/no/dir': No such file or directory"},
      {"work_dir a file",
       {"true"},
       plain,
       ENOTDIR,
       "work_dir",
       "cannot enter work_dir '" + plain + "': Not a directory"},
      {"no argv", {}, "", EINVAL, "setup", "argv is empty"},
      {"NUL in argv",
       {"true", std::string("a\0b", 3)},
       "",
       EINVAL,
       "setup",
       "cannot start 'true': argv has a NUL byte"},
      {"NUL in work_dir",
       {"true"},
       std::string("/\0x", 3),
       EINVAL,
       "setup",
       "cannot start 'true': work_dir has a NUL byte"},
  };
  for (const Case& expected : cases) {
    CAPTURE(expected.what);
    ProcessOptions options = program(expected.argv);
    options.work_dir = expected.work_dir;
    const ProcessResult r = run_clean(options);
    CHECK(r.outcome == Outcome::not_started);
    CHECK(r.system_error == expected.error);
    CHECK(r.step == expected.step);
    CHECK(r.message.substr(0, expected.message.size()) == expected.message);
    CHECK(r.exit_code == -1);
    CHECK(r.pid == -1);

    ProcessResult failure;
    const auto started = Process::start(options, {}, &failure);
    REQUIRE(!started);
    CHECK(started.error().system_error == expected.error);
    CHECK(started.error().message == r.message);
    CHECK(failure.step == expected.step);
  }
}

TEST_CASE("NUL bytes in the environment keep a program from being started") {
  ProcessOptions options = program({"true"});
  options.environment.push_back(std::string("A=\0", 3));
  const ProcessResult r = run_clean(options);
  CHECK(r.outcome == Outcome::not_started);
  CHECK(r.step == "setup");
  CHECK(r.message.find("environment") != std::string::npos);
}

TEST_CASE("a bad work_dir_fd and a bad pass_fd are told apart") {
  ProcessOptions options = program({"true"});
  options.work_dir_fd = 4000;
  CHECK(run_clean(options).step == "work_dir");
  options.work_dir_fd = -1;
  options.pass_fd = 4000;
  const ProcessResult r = run_clean(options);
  CHECK(r.step == "pass_fd");
  CHECK(r.system_error == EBADF);
}

TEST_CASE("a program that is still open for writing is tried again for a moment") {
  const support::TempDir directory;
  const std::string path = directory.file("busy", support::read_file("/bin/true"), 0755);
  const int writer = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  REQUIRE(writer >= 0);
  const ProcessResult busy = run_clean(program({path}));
  CHECK(busy.outcome == Outcome::not_started);
  CHECK(busy.system_error == ETXTBSY);
  std::thread closer([&] {
    ::poll(nullptr, 0, 4);
    ::close(writer);
  });
  const ProcessResult r = run_process(program({path}));
  closer.join();
  CHECK(r.succeeded());
}

TEST_CASE("running out of descriptors at any point is told and leaks none") {
  const std::string problem = in_other_host([]() -> std::string {
    int failures = 0;
    for (int limit = 3; limit < 20; ++limit) {
      const rlimit few = {static_cast<rlim_t>(limit), 4096};
      ::setrlimit(RLIMIT_NOFILE, &few);
      const int before = support::count_descriptors();
      ProcessOptions options = program({"true"});
      options.input = "x";
      const ProcessResult r = run_process(options);
      if (support::count_descriptors() != before)
        return "leak with a limit of " + std::to_string(limit);
      if (has_zombie()) return "zombie";
      if (r.succeeded()) continue;
      ++failures;
      if (r.outcome != Outcome::not_started || r.message.empty()) return describe(r);
      if (r.system_error != EMFILE) return describe(r);
    }
    return failures >= 4 ? "" : "only " + std::to_string(failures) + " failures";
  });
  CHECK(problem == "");
}

TEST_CASE("running out of processes is told, and the signal mask is as before") {
  if (::geteuid() == 0) {
    const std::string problem = in_other_host([]() -> std::string {
      const rlimit none = {1, 1};
      if (::setrlimit(RLIMIT_NPROC, &none) != 0 || ::setuid(65534) != 0) return "";
      sigset_t before;
      ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
      const ProcessResult r = run_process(program({"true"}));
      sigset_t after;
      ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
      if (!same_mask(before, after)) return "mask changed";
      if (r.outcome != Outcome::not_started) return describe(r);
      if (r.system_error != EAGAIN || r.step != "start") return describe(r);
      return "";
    });
    CHECK(problem == "");
  } else {
    MESSAGE("SKIPPED: lowering RLIMIT_NPROC to nothing needs a user without processes (root)");
  }
}

// Hostile hosts -----------------------------------------------------------------------------------

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
  const LeakCheck leaks;
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
  const LeakCheck leaks;
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

// Started processes -------------------------------------------------------------------------------

TEST_CASE("a started process runs on its own and gives its result to every waiter") {
  const LeakCheck leaks;
  {
    auto process = Process::start(shell("echo out; sleep 0.1; exit 3"));
    REQUIRE(process);
    CHECK(process->pid() > 0);
    std::vector<std::thread> waiters;
    std::atomic<int> right{0};
    for (int i = 0; i < 4; ++i)
      waiters.emplace_back([&] {
        if (process->wait().exit_code == 3) ++right;
      });
    for (std::thread& waiter : waiters) waiter.join();
    CHECK(right == 4);
    CHECK(process->done());
    CHECK(process->wait_for(milliseconds(0)));
    CHECK(process->wait().out == "out\n");
    CHECK(!process->signal(SIGTERM));
  }
  CHECK(leaks.clean());
}

TEST_CASE("writing to and reading from a started process") {
  ProcessOptions options = program({"cat"});
  options.keep_input_open = true;
  options.input = "first\n";
  auto process = Process::start(options);
  REQUIRE(process);
  std::uint64_t cursor = 0;
  std::string seen;
  const auto read_until = [&](const std::string& end) {
    while (seen.size() < end.size() || seen.substr(seen.size() - end.size()) != end) {
      const Process::Chunk chunk = process->read(Stream::out, cursor);
      seen += chunk.text;
      cursor = chunk.next;
      if (chunk.text.empty()) std::this_thread::yield();
      if (process->done() && chunk.text.empty()) break;
    }
  };
  read_until("first\n");
  CHECK(seen == "first\n");
  REQUIRE(process->write("second\n"));
  read_until("second\n");
  CHECK(!process->done());
  REQUIRE(process->write("third\n"));
  process->close_input();
  CHECK(!process->write("late"));
  const ProcessResult& r = process->wait();
  CHECK(r.succeeded());
  CHECK(r.out == "first\nsecond\nthird\n");
  CHECK(process->read(Stream::out, 6).text == "second\nthird\n");
}

TEST_CASE("the queue for standard input is bounded, and writing after the end is an error") {
  ProcessOptions options = child({"sleep"});
  options.keep_input_open = true;
  auto process = Process::start(options);
  REQUIRE(process);
  const std::string block(300000, 'b');
  bool refused = false;
  for (int i = 0; i < 20 && !refused; ++i) {
    const auto written = process->write(block);
    if (!written) {
      refused = true;
      CHECK(written.error().code == codeexec::ErrorCode::limit);
    }
  }
  CHECK(refused);
  process->cancel();
  CHECK(process->wait().outcome == Outcome::cancelled);
  const auto written = process->write("x");
  REQUIRE(!written);
  CHECK(written.error().system_error == EPIPE);
}

TEST_CASE("cancel and signal from other threads") {
  auto process = Process::start(child({"handle-term", "9"}));
  REQUIRE(process);
  while (process->read(Stream::out, 0).text.empty()) std::this_thread::yield();
  std::thread([&] { CHECK(process->signal(SIGTERM)); }).join();
  CHECK(process->wait().outcome == Outcome::exited);
  CHECK(process->wait().exit_code == 9);

  auto other = Process::start(child({"handle-term", "9"}));
  REQUIRE(other);
  while (other->read(Stream::out, 0).text.empty()) std::this_thread::yield();
  std::thread([&] { other->cancel(); }).join();
  CHECK(other->wait().outcome == Outcome::cancelled);
  CHECK(other->wait().exit_code == 9);
}

TEST_CASE("the end of a handle kills its group at once and waits for it") {
  const LeakCheck leaks;
  const Stopwatch watch;
  pid_t leader = 0;
  pid_t other = 0;
  {
    ProcessOptions options = shell("trap '' TERM; sleep 300 & echo $!; wait");
    options.kill_grace = safety;
    auto process = Process::start(options);
    REQUIRE(process);
    leader = process->pid();
    while (process->read(Stream::out, 0).text.empty()) std::this_thread::yield();
    other = first_number(process->read(Stream::out, 0).text);
    CHECK(alive(other));
    Process moved = std::move(*process);
    CHECK(alive(leader));
  }
  CHECK(!alive(leader));
  CHECK(watch.soon());
  CHECK(dies(other));
  CHECK(leaks.clean());
}

TEST_CASE("the timeout, the token and on_end work for started processes, too") {
  ProcessOptions options = child({"sleep"});
  options.timeout = milliseconds(100);
  std::atomic<int> ends{0};
  auto slow = Process::start(options, [&](const ProcessResult& r) {
    if (r.outcome == Outcome::timed_out) ++ends;
  });
  REQUIRE(slow);
  CHECK(slow->wait().outcome == Outcome::timed_out);
  CHECK(ends == 1);

  options.timeout = safety;
  options.cancel.emplace();
  auto cancelled = Process::start(options);
  REQUIRE(cancelled);
  options.cancel->cancel();
  CHECK(cancelled->wait().outcome == Outcome::cancelled);
}

TEST_CASE("one thread serves all started processes and ends with the last handle") {
  const int before = thread_count();
  const LeakCheck leaks;
  {
    std::vector<Process> processes;
    for (int i = 0; i < 50; ++i) {
      auto process = Process::start(shell("read x; echo " + std::to_string(i)));
      REQUIRE(process);
      processes.push_back(std::move(*process));
    }
    for (int i = 0; i < 50; ++i)
      CHECK(processes[static_cast<std::size_t>(i)].wait().out == std::to_string(i) + "\n");
#if !defined(CODEEXEC_HAS_CLONE) || CODEEXEC_HAS_CLONE
    CHECK(thread_count() == before + 1);
#endif
  }
  CHECK(thread_count() == before);
  CHECK(leaks.clean());
}

TEST_CASE("a handle that a fork of the host inherited does nothing there") {
  auto process = Process::start(child({"sleep"}));
  REQUIRE(process);
  // From here on the thread only waits: a fork must not copy an allocator that it has locked.
  while (process->read(Stream::out, 0).text.empty()) std::this_thread::yield();
  const std::string problem = in_other_host([&]() -> std::string {
    { Process inherited = std::move(*process); }
    if (thread_sanitizer) return "";
    auto own = Process::start(program({"/bin/echo", "own"}));
    if (!own) return own.error().message;
    return own->wait().out == "own\n" ? "" : describe(own->wait());
  });
  CHECK(problem == "");
  CHECK(alive(process->pid()));
  CHECK(!process->done());
}
