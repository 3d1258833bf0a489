// Killing takes everything, and nothing outlives a host.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Command;
using codeexec::JobOptions;
using codeexec::Jobs;
using codeexec::JobState;
using codeexec::JobStatus;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Outcome;
using codeexec::Regex;
using codeexec::SandboxMode;
using std::chrono::milliseconds;
using support::alive;
using support::at_end;
using support::child;
using support::describe;
using support::dies;
using support::first_number;
using support::Gate;
using support::has;
using support::kill;
using support::LeakCheck;
using support::make;
using support::read;
using support::safety;
using support::start;
using support::status_of;
using support::Stopwatch;
using support::thread_sanitizer;
using support::until_end;
using support::until_seen;
using support::wait;

TEST_CASE("W-26: kill takes everything that the job started") {
  LocalOptions options;
  options.kill_grace = milliseconds(50);
  const LocalExecutor here = make(options);
  Jobs jobs(here);
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
    const std::string id = start(jobs, script);
    CHECK(wait(jobs, id, until_seen("^[0-9]+$")) == "matched");
    const pid_t pid = first_number(read(jobs, id).out.text);
    CHECK(pid > 0);
    CHECK(alive(pid));
    CHECK(kill(jobs, id) == "true");
    CHECK(dies(pid));
    CHECK(status_of(jobs, id).state == JobState::killed);
  }
}

TEST_CASE("W-30: a state is the same whoever asks first, and says what happened") {
  const LocalExecutor here = make();
  Jobs jobs(here);

  // Killed stays killed, with the end that it took.
  const std::string killed = start(jobs, "echo ready; exec sleep 300");
  CHECK(wait(jobs, killed, until_seen("ready")) == "matched");
  CHECK(kill(jobs, killed) == "true");
  for (int i = 0; i < 2; ++i) {
    CHECK(describe(status_of(jobs, killed)) == "killed cancelled code -1 signal 15");
    CHECK(read(jobs, killed).status.state == JobState::killed);
    CHECK(jobs.list()[0].state == JobState::killed);
    CHECK(kill(jobs, killed) == "false");
  }

  // One that tidies up and leaves with success was killed nevertheless.
  const std::string polite = start(jobs, std::string("exec ") + child + " handle-term 0");
  CHECK(wait(jobs, polite, until_seen("ready")) == "matched");
  CHECK(kill(jobs, polite) == "true");
  CHECK(describe(status_of(jobs, polite)) == "killed cancelled code 0 signal 0");
  CHECK(has(read(jobs, polite).out.text, "bye\n"));

  // A job that failed unseen is not killed by a later kill.
  const std::string failed = start(jobs, "exit 7");
  CHECK(wait(jobs, failed, until_end()) == "ended");
  CHECK(kill(jobs, failed) == "false");
  CHECK(describe(status_of(jobs, failed)) == "failed exited code 7 signal 0");

  const std::string signaled = start(jobs, "kill -SEGV $$");
  CHECK(describe(at_end(jobs, signaled)) == "killed signaled code -1 signal 11");

  // Processes that a job leaves behind are ended.
  const std::string leaver = start(jobs, "sleep 60 & echo $!");
  CHECK(describe(at_end(jobs, leaver)) == "stopped exited code 0 signal 0");
  CHECK(dies(first_number(read(jobs, leaver).out.text)));
}

TEST_CASE("W-30: a kill that races with the end tells one story") {
  const LocalExecutor here = make();
  JobOptions options;
  options.max_finished = 1000;
  Jobs jobs(here, options);
  int killed = 0;
  for (int i = 0; i < 60; ++i) {
    const std::string id = start(jobs, i % 2 ? "exit 7" : "");
    for (int j = 0; j < i; ++j) std::this_thread::yield();
    const std::string answer = kill(jobs, id);
    const JobStatus status = status_of(jobs, id);
    CAPTURE(describe(status));
    if (answer == "true") {
      CHECK(status.state == JobState::killed);
      ++killed;
    } else {
      CHECK(answer == "false");
      CHECK(status.result.outcome == Outcome::exited);
      CHECK(status.state == (i % 2 ? JobState::failed : JobState::stopped));
    }
  }
  CAPTURE(killed);
}

TEST_CASE("W-31: a kill takes no fixed time and holds nobody up") {
  LocalOptions options;
  options.kill_grace = safety * 2;
  const LocalExecutor here = make(options);
  Jobs jobs(here);
  const Stopwatch watch;
  // This one takes its grace.
  const std::string stubborn = start(jobs, std::string("echo $$; exec ") + child + " ignore-term");
  CHECK(wait(jobs, stubborn, until_seen("ready")) == "matched");
  std::string answer;
  std::thread killer([&] { answer = kill(jobs, stubborn); });
  // Those that obey end at once, while it does.
  for (int i = 0; i < 20; ++i) {
    const std::string id = start(jobs, "echo ready; exec sleep 300");
    CHECK(wait(jobs, id, until_seen("ready")) == "matched");
    CHECK(read(jobs, id).out.text == "ready\n");
    CHECK(kill(jobs, id) == "true");
  }
  CHECK(jobs.list().size() == 21);
  CHECK(status_of(jobs, stubborn).state == JobState::running);
  CHECK(watch.soon());
  ::kill(first_number(read(jobs, stubborn).out.text), SIGKILL);
  killer.join();
  CHECK(answer == "true");
  CHECK(describe(status_of(jobs, stubborn)) == "killed cancelled code -1 signal 9");
  CHECK(watch.soon());
}

TEST_CASE("W-31: the end of the object kills all at the same time") {
  LocalOptions options;
  options.kill_grace = milliseconds(3000);
  const LocalExecutor here = make(options);
  std::vector<pid_t> pids;
  const LeakCheck leaks;
  auto begin = std::chrono::steady_clock::now();
  {
    Jobs jobs(here);
    for (int i = 0; i < 10; ++i) {
      const std::string id = start(jobs, std::string("echo $$; exec ") + child + " ignore-term");
      CHECK(wait(jobs, id, until_seen("ready")) == "matched");
      pids.push_back(first_number(read(jobs, id).out.text));
    }
    begin = std::chrono::steady_clock::now();
  }
  const auto took = std::chrono::steady_clock::now() - begin;
  CHECK(took >= milliseconds(3000));
  CHECK(took < milliseconds(29000));  // ten graces, one after the other, are more
  for (const pid_t pid : pids) CHECK(dies(pid));
  CHECK(leaks.clean());
}

TEST_CASE("of many kills at once, exactly one ended the job") {
  const LocalExecutor here = make();
  Jobs jobs(here);
  for (int round = 0; round < 10; ++round) {
    const std::string id = start(jobs, "echo ready; exec sleep 300");
    CHECK(wait(jobs, id, until_seen("ready")) == "matched");
    Gate gate;
    std::atomic<int> ended{0};
    std::atomic<int> not_ended{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&] {
        gate.pass();
        const std::string answer = kill(jobs, id);
        if (answer == "true") ++ended;
        if (answer == "false") ++not_ended;
        if (status_of(jobs, id).state != JobState::killed) ++ended;
      });
    gate.open();
    for (std::thread& thread : threads) thread.join();
    CHECK(ended == 1);
    CHECK(not_ended == 7);
  }
}

TEST_CASE("W-33: nothing outlives a host that is killed while ten jobs run") {
#if !defined(__linux__)
  MESSAGE("SKIPPED: only Linux has a supervisor");
#else
  if (thread_sanitizer) {
    MESSAGE("SKIPPED: ThreadSanitizer does not let a fork of this program start a thread");
    return;
  }
  if (!support::has_supervisor()) return;
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
      auto* jobs = new Jobs(*here);
      for (int i = 0; i < 10; ++i) {
        auto started = jobs->start(Command::shell(
            "trap '' TERM HUP; setsid sleep 3715 > /dev/null 2>&1 & echo $$ $!; sleep 3716"));
        if (!started) ::_exit(2);
        Jobs::Wait until;
        until.pattern = *Regex::compile("[0-9]+ [0-9]+");
        (void)jobs->wait(started->id, until);
        const std::string line = jobs->read(started->id)->out.text;
        if (::write(report[1], line.data(), line.size()) < 0) ::_exit(3);
      }
      ::close(report[1]);
      for (;;) ::pause();
    }
    ::close(report[1]);
    const std::string text = support::read_to_end(report[0]);
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

TEST_CASE("a copy made by fork leaves the jobs alone") {
  const LocalExecutor here = make();
  auto jobs = std::make_unique<Jobs>(here);
  const std::string id = start(*jobs, "echo ready; read line; echo got $line");
  const std::string problem = support::in_other_host([&] {
    jobs.reset();
    return std::string();
  });
  CHECK(problem == "");
  REQUIRE(jobs);
  CHECK(at_end(*jobs, id).state == JobState::stopped);
}
