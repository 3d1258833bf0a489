// How a run ends: by itself, at its timeout, by a token, with what it left in the background.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Outcome;
using codeexec::ProcessOptions;
using codeexec::ProcessResult;
using codeexec::run_process;
using codeexec::Stream;
using std::chrono::milliseconds;
using support::alive;
using support::child;
using support::describe;
using support::dies;
using support::first_number;
using support::has_zombie;
using support::program;
using support::run_clean;
using support::safety;
using support::shell;
using support::Stopwatch;
using support::without_supervisor;

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

TEST_CASE("a slow on_output keeps neither the deadline nor a cancel from being seen") {
  for (const bool cancels : {false, true}) {
    CAPTURE(cancels);
    ProcessOptions options = shell("yes >&2 & exec yes");
    options.timeout = cancels ? safety : milliseconds(300);
    (void)options.cancel.emplace().descriptor();  // made before descriptors are counted
    std::optional<std::chrono::steady_clock::time_point> end;
    int calls[2] = {0, 0};
    int late[2] = {0, 0};
    options.on_output = [&](Stream stream, std::string_view) {
      const int at = stream == Stream::out ? 0 : 1;
      // The program has begun before its output came, and so its time is over before this.
      if (!end && !cancels) end = std::chrono::steady_clock::now() + options.timeout;
      if (end && std::chrono::steady_clock::now() > *end) ++late[at];
      std::this_thread::sleep_for(milliseconds(50));
      if (!end && ++calls[0] == 3) {
        options.cancel->cancel();
        end = std::chrono::steady_clock::now();
      }
    };
    const ProcessResult r = run_clean(options);
    CHECK(r.outcome == (cancels ? Outcome::cancelled : Outcome::timed_out));
    // One of each stream that was due, what was written until the signal hit, and what the pipe
    // still had. Without a look at the clock after each there are 16 and more.
    CHECK(late[0] <= 8);
    CHECK(late[1] <= 8);
  }
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
  (void)options.cancel.emplace().descriptor();  // made before descriptors are counted
  std::ptrdiff_t lines = 0;
  options.on_output = [&](Stream, std::string_view bytes) {
    lines += std::count(bytes.begin(), bytes.end(), '\n');
    if (lines >= 40) options.cancel->cancel();  // all of them are there
  };
  const ProcessResult r = run_clean(options);
  CHECK(r.outcome == Outcome::cancelled);
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

// idle_timeout ------------------------------------------------------------------------------------

TEST_CASE("a program that prints nothing for its idle_timeout is stopped like by a timeout") {
  for (const bool supervised : {false, true}) {
    ProcessOptions options = shell("sleep 0.2; echo last >&2; exec sleep 300");
    options.supervised = supervised;
    options.idle_timeout = milliseconds(2000);
    const ProcessResult r = run_clean(options);
    CHECK(r.outcome == Outcome::timed_out);
    CHECK(r.idle);
    CHECK(r.signal == SIGTERM);
    CHECK(r.err == "last\n");
    // It counts from the last output, of either stream.
    CHECK(r.wall_time >= milliseconds(2200));
  }
}

TEST_CASE("a deadline that comes first is not told as the other one") {
  ProcessOptions options = shell("exec sleep 300");
  options.timeout = milliseconds(50);
  options.idle_timeout = safety;
  ProcessResult r = run_clean(options);
  CHECK(r.outcome == Outcome::timed_out);
  CHECK(!r.idle);
  std::swap(options.timeout, options.idle_timeout);
  r = run_clean(options);
  CHECK(r.outcome == Outcome::timed_out);
  CHECK(r.idle);
  options.argv = {"true"};
  r = run_clean(options);
  CHECK(r.succeeded());
  CHECK(!r.idle);
}

TEST_CASE("the time that a callback takes is not counted as silence") {
  // The callback takes longer than the program may be silent. On a busy machine a short time may be
  // too short for the answer.
  ProcessResult r;
  for (const milliseconds time : {milliseconds(1000), milliseconds(10000)}) {
    ProcessOptions options = shell("echo one; read line; echo two");
    options.keep_input_open = true;
    options.idle_timeout = time;
    std::optional<codeexec::Process> process;
    std::atomic<bool> ready{false};
    options.on_output = [&](Stream, std::string_view bytes) {
      if (bytes != "one\n") return;
      while (!ready) std::this_thread::yield();
      const auto until = std::chrono::steady_clock::now() + time + time / 5;
      while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
      (void)process->write("x\n");
    };
    auto started = codeexec::Process::start(options);
    REQUIRE(started);
    process.emplace(std::move(*started));
    ready = true;
    r = process->wait();
    if (!r.idle) break;
  }
  CHECK(r.succeeded());
  CHECK(!r.idle);
  CHECK(r.out == "one\ntwo\n");
}
