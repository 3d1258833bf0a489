// Programs that run on their own, and their handles.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <poll.h>
#include <signal.h>

#include <atomic>
#include <thread>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Outcome;
using codeexec::Process;
using codeexec::ProcessOptions;
using codeexec::ProcessResult;
using codeexec::Stream;
using std::chrono::milliseconds;
using support::alive;
using support::child;
using support::describe;
using support::dies;
using support::first_number;
using support::in_other_host;
using support::LeftoverCheck;
using support::program;
using support::safety;
using support::shell;
using support::Stopwatch;
using support::thread_count;
using support::thread_sanitizer;

TEST_CASE("a started process runs on its own and gives its result to every waiter") {
  const LeftoverCheck leaks;
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

TEST_CASE("a descriptor becomes readable when a started process has ended") {
  const LeftoverCheck leaks;
  {
    ProcessOptions options = program({"cat"});
    options.keep_input_open = true;
    auto process = Process::start(options);
    REQUIRE(process);
    pollfd entry = {process->descriptor(), POLLIN, 0};
    REQUIRE(entry.fd >= 0);
    CHECK(process->descriptor() == entry.fd);
    CHECK(::poll(&entry, 1, 0) == 0);
    process->close_input();
    CHECK(::poll(&entry, 1, static_cast<int>(milliseconds(safety).count())) == 1);
    CHECK(process->done());

    auto ended = Process::start(shell("exit 3"));
    REQUIRE(ended);
    CHECK(ended->wait().exit_code == 3);
    entry.fd = ended->descriptor();
    CHECK(::poll(&entry, 1, 0) == 1);
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
      const codeexec::OutputChunk chunk = process->read(Stream::out, cursor);
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
  const LeftoverCheck leaks;
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
  const LeftoverCheck leaks;
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
