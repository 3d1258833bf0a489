// Nothing of the output is lost or kept without bound, and no call waits longer than it must.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::CancelToken;
using codeexec::Command;
using codeexec::ErrorCode;
using codeexec::Expected;
using codeexec::JobOptions;
using codeexec::JobOutput;
using codeexec::Jobs;
using codeexec::JobState;
using codeexec::JobStatus;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Outcome;
using codeexec::Stream;
using std::chrono::milliseconds;
using support::at_end;
using support::begins;
using support::child;
using support::ends;
using support::Gate;
using support::has;
using support::kill;
using support::LeakCheck;
using support::make;
using support::pattern;
using support::read;
using support::safety;
using support::start;
using support::status_of;
using support::Stopwatch;
using support::thread_sanitizer;
using support::until_end;
using support::until_seen;
using support::wait;

namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool sanitized = true;
#elif defined(__has_feature)
constexpr bool sanitized = __has_feature(thread_sanitizer) || __has_feature(address_sanitizer);
#else
constexpr bool sanitized = false;
#endif

// Bytes of memory that this process has in use; 0 if the system does not say.
long long resident_memory() {
  if (!support::exists("/proc/self/statm")) return 0;
  const std::string text = support::read_file("/proc/self/statm");
  return std::atoll(text.c_str() + text.find(' ')) * ::sysconf(_SC_PAGESIZE);
}

}  // namespace

// output ------------------------------------------------------------------------------------------

TEST_CASE("W-27: 300 MB without a newline stay within the ring") {
  const LocalExecutor here = make();
  Jobs jobs(here);
  // The first time costs more and is not counted.
  at_end(jobs, start(jobs, std::string(child) + " flood 1 1000000"));
  const long long before = resident_memory();
  const std::string id = start(jobs, std::string(child) + " flood 1 300000000");
  const JobStatus status = at_end(jobs, id);
  const long long after = resident_memory();
  CHECK(status.state == JobState::stopped);
  CHECK(status.result.out_counts.total_bytes == 300000000);
  const JobOutput output = read(jobs, id);
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
  Jobs jobs(here);
  const std::string id = start(jobs, "printf 'a\\377\\nb\\n'; yes | head -n 1000; echo last");
  CHECK(at_end(jobs, id).state == JobState::stopped);
  const JobOutput output = read(jobs, id);
  CHECK(begins(output.out.text, "a\xef\xbf\xbd\nb\ny\n"));
  CHECK(ends(output.out.text, "y\nlast\n"));
  CHECK(output.out.missed == 0);

  const std::string binary = start(jobs, "head -c 3000000 /dev/urandom");
  CHECK(at_end(jobs, binary).state == JobState::stopped);
  std::uint64_t told = 0;
  const JobOutput random = read(jobs, binary);
  CHECK(codeexec::is_utf8(random.out.text));
  CHECK(random.out.next == 3000000);
  told = random.out.missed;
  CHECK(told >= 3000000 - (1 << 20));
}

TEST_CASE("W-29: a last line without an end is seen at once") {
  const LocalExecutor here = make();
  Jobs jobs(here);
  Command command = Command::shell("printf 'Password: '; read answer; printf \"<$answer>\"");
  command.keep_input_open = true;
  const std::string id = start(jobs, command);
  CHECK(wait(jobs, id, until_seen("^Password: $")) == "matched");
  CHECK(read(jobs, id).out.text == "Password: ");
  CHECK(jobs.write(id, "swordfish\n"));
  CHECK(at_end(jobs, id).state == JobState::stopped);
  CHECK(read(jobs, id, 10, 0).out.text == "<swordfish>");
}

TEST_CASE("W-32: a reader gets each byte once, and a character when it is whole") {
  const LocalExecutor here = make();
  Jobs jobs(here);
  Command command = Command::shell(
      "printf 'one\\n'; printf 'eins\\n' >&2; read x; printf 'caf\\303'; read x; printf '\\251!'; "
      "read x; printf '\\303'");
  command.keep_input_open = true;
  const std::string id = start(jobs, command);
  CHECK(wait(jobs, id, until_seen("one")) == "matched");
  CHECK(wait(jobs, id, until_seen("eins")) == "matched");
  JobOutput output = read(jobs, id);
  CHECK(output.out.text == "one\n");
  CHECK(output.err.text == "eins\n");
  CHECK(jobs.write(id, "\n"));
  Jobs::Wait until = until_seen("caf");
  until.out = output.out.next;
  until.err = output.err.next;
  CHECK(wait(jobs, id, until) == "matched");
  output = read(jobs, id, output.out.next, output.err.next);
  CHECK(output.out.text == "caf");
  CHECK(output.err.text == "");
  CHECK(output.out.next == 7);
  CHECK(jobs.write(id, "\n"));
  until = until_seen("!");
  until.out = output.out.next;
  until.err = output.err.next;
  CHECK(wait(jobs, id, until) == "matched");
  output = read(jobs, id, output.out.next, output.err.next);
  CHECK(output.out.text == "\xc3\xa9!");
  CHECK(jobs.write(id, "\n"));
  at_end(jobs, id);
  output = read(jobs, id, output.out.next, output.err.next);
  CHECK(output.out.text == "\xef\xbf\xbd");
  const JobOutput last = read(jobs, id, output.out.next, output.err.next);
  CHECK(last.out.text == "");
  CHECK(last.err.text == "");
  CHECK(last.out.next == output.out.next);
  CHECK(last.err.next == output.err.next);
}

TEST_CASE("both streams can come in one, and then there is only out") {
  const LocalExecutor here = make();
  Jobs jobs(here);
  Command command = Command::shell("echo one; echo two >&2; echo three");
  command.merge_streams = true;
  const std::string id = start(jobs, command);
  at_end(jobs, id);
  CHECK(read(jobs, id).out.text == "one\ntwo\nthree\n");
  CHECK(read(jobs, id).err.text == "");
}

TEST_CASE("of long output the last lines are given, and the bytes left out are counted") {
  const LocalExecutor here = make();
  JobOptions options;
  options.max_lines = 3;
  Jobs jobs(here, options);
  const std::string id = start(jobs, "seq 1 100; printf tail; seq 1 3 >&2");
  at_end(jobs, id);
  const JobOutput output = read(jobs, id);
  CHECK(output.out.text == "\n... (285 bytes omitted) ...\n99\n100\ntail");
  CHECK(output.out.missed == 285);
  CHECK(output.out.next == 296);
  CHECK(output.err.text == "1\n2\n3\n");
  CHECK(output.err.missed == 0);
  CHECK(read(jobs, id, 285, 0).out.text == "99\n100\ntail");
  CHECK(read(jobs, id, 286, 0).out.text == "9\n100\ntail");
  CHECK(read(jobs, id, 280, 0).out.missed == 5);
  CHECK(read(jobs, id, 296, 0).out.text == "");
  CHECK(read(jobs, id, 1000, 0).out.next == 296);
  CHECK(read(jobs, id, 0, 2).err.text == "2\n3\n");
}

TEST_CASE("a read costs what is new, and not what is kept") {
  LocalOptions options;
  options.max_output = 32 << 20;
  const LocalExecutor here = make(options);
  Jobs jobs(here);
  const std::string id = start(jobs, std::string(child) + " flood 1 32000000");
  at_end(jobs, id);
  const auto time_of = [&](std::uint64_t cursor) {
    const auto begin = std::chrono::steady_clock::now();
    CHECK(read(jobs, id, cursor, 0).out.next == 32000000);
    return std::chrono::steady_clock::now() - begin;
  };
  auto at_the_end = time_of(32000000);
  for (int i = 0; i < 20; ++i) at_the_end = std::min(at_the_end, time_of(32000000));
  CHECK(at_the_end * 10 < time_of(0));
}

// waiting -----------------------------------------------------------------------------------------

TEST_CASE("W-32: wait ends for a line of either stream, the end, the time or the token") {
  const LocalExecutor here = make();
  Jobs jobs(here);
  Command command = Command::shell("echo begun; echo warned >&2; read x; echo rest; exit 2");
  command.keep_input_open = true;
  const std::string id = start(jobs, command);
  CHECK(wait(jobs, id, until_seen("^begun$")) == "matched");
  CHECK(wait(jobs, id, until_seen("warn")) == "matched");
  // Output is searched again, as long as it is kept.
  CHECK(wait(jobs, id, until_seen("^begun$")) == "matched");
  Jobs::Wait until = until_seen("begun|warned");
  until.out = 6;
  until.err = 7;
  until.time = milliseconds(0);
  CHECK(wait(jobs, id, until) == "timed_out");
  until.time = milliseconds(20);
  CHECK(wait(jobs, id, until) == "timed_out");
  until.err = 0;
  CHECK(wait(jobs, id, until) == "matched");

  until = until_seen("never");
  until.cancel.emplace();
  std::thread canceller([&] { until.cancel->cancel(); });
  CHECK(wait(jobs, id, until) == "cancelled");
  canceller.join();
  CHECK(wait(jobs, id, until) == "cancelled");
  CHECK(status_of(jobs, id).state == JobState::running);

  CHECK(jobs.write(id, "\n"));
  CHECK(wait(jobs, id, until_seen("never")) == "ended");
  CHECK(wait(jobs, id, until_end()) == "ended");
  CHECK(wait(jobs, id, until_seen("rest")) == "matched");
  CHECK(wait(jobs, id, {}) == "ended");
}

TEST_CASE("a pattern sees whole lines, the line that has no end yet, and nothing else") {
  const LocalExecutor here = make();
  Jobs jobs(here);
  const std::string id = start(jobs, "printf 'one two\\n\\nthree\\nfo'; exec sleep 300");
  CHECK(wait(jobs, id, until_seen("^fo$")) == "matched");
  const auto seen = [&](std::string_view text) {
    Jobs::Wait until = until_seen(text);
    until.time = milliseconds(0);
    return wait(jobs, id, until) == "matched";
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
  Jobs jobs(here);
  Command command = Command::shell("exec cat");
  command.keep_input_open = true;
  const std::string id = start(jobs, command);
  Gate gate;
  std::string found;
  std::string anchored;
  std::thread waiter([&] {
    gate.open();
    found = wait(jobs, id, until_seen("needle"));
  });
  std::thread other([&] { anchored = wait(jobs, id, until_seen("^x{1,5000}n")); });
  gate.pass();
  std::uint64_t next = 0;
  for (int i = 0; i < 40; ++i) {
    CHECK(jobs.write(id, std::string(1000, 'x')));
    Jobs::Wait until = until_seen("x");
    until.out = next;
    CHECK(wait(jobs, id, until) == "matched");
    next = read(jobs, id, next).out.next;
  }
  for (const char c : std::string("needle")) {
    CHECK(jobs.write(id, std::string(1, c)));
    Jobs::Wait until = until_seen(".");
    until.out = next;
    CHECK(wait(jobs, id, until) == "matched");
    next = read(jobs, id, next).out.next;
  }
  waiter.join();
  CHECK(found == "matched");
  CHECK(kill(jobs, id) == "true");
  // A long line does not begin where it was cut.
  other.join();
  CHECK(anchored == "ended");
}

TEST_CASE("the note about missing bytes is not searched") {
  const LocalExecutor here = make();
  Jobs jobs(here);
  const std::string id = start(jobs, std::string(child) + " flood 1 3000000; echo; echo end");
  at_end(jobs, id);
  CHECK(has(read(jobs, id).out.text, "omitted"));
  CHECK(wait(jobs, id, until_seen("omitted|^$")) == "ended");
  CHECK(wait(jobs, id, until_seen("^end$")) == "matched");
  // With a head there is one in the middle.
  const JobStatus run = jobs.run(Command::shell(std::string("echo begin; ") + child +
                                                " flood 1 3000000; echo; echo end; "
                                                "exec sleep 300"),
                                 milliseconds(0));
  REQUIRE(!run.id.empty());
  CHECK(wait(jobs, run.id, until_seen("^end$")) == "matched");
  CHECK(wait(jobs, run.id, until_seen("^begin$")) == "matched");
  Jobs::Wait until = until_seen("omitted");
  until.time = milliseconds(0);
  CHECK(has(read(jobs, run.id).out.text, "omitted"));
  CHECK(wait(jobs, run.id, until) == "timed_out");
}

TEST_CASE("a waiter sleeps until something happens") {
#if !defined(RUSAGE_THREAD)
  MESSAGE("SKIPPED: this system does not count what a thread does");
#else
  const LocalExecutor here = make();
  Jobs jobs(here);
  const std::string id = start(jobs, "echo ready; exec sleep 300");
  CHECK(wait(jobs, id, until_seen("ready")) == "matched");
  Jobs::Wait until = until_seen("never");
  until.cancel.emplace();
  until.time = milliseconds(400);
  rusage before{};
  rusage after{};
  ::getrusage(RUSAGE_THREAD, &before);
  CHECK(wait(jobs, id, until) == "timed_out");
  ::getrusage(RUSAGE_THREAD, &after);
  CHECK(after.ru_nvcsw - before.ru_nvcsw < 4);
#endif
}

TEST_CASE("many can wait for one job, each for what it wants") {
  const LocalExecutor here = make();
  Jobs jobs(here);
  Command command = Command::shell("exec cat");
  command.keep_input_open = true;
  const std::string id = start(jobs, command);
  const LeakCheck leaks;
  std::atomic<int> matched{0};
  std::atomic<int> ended{0};
  std::atomic<int> cancelled{0};
  const CancelToken token;
  std::vector<std::thread> threads;
  for (int i = 0; i < 60; ++i)
    threads.emplace_back([&, i] {
      Jobs::Wait until = until_seen("^word " + std::to_string(i) + "$");
      if (i % 3 == 1) until.pattern.reset();
      if (i % 3 == 2) {
        until.pattern = pattern("never");
        until.cancel = token;
      }
      const std::string end = wait(jobs, id, until);
      if (end == "matched" && i % 3 == 0) ++matched;
      if (end == "ended" && i % 3 == 1) ++ended;
      if (end == "cancelled" && i % 3 == 2) ++cancelled;
    });
  for (int i = 0; i < 60; ++i) CHECK(jobs.write(id, "word " + std::to_string(i) + "\n"));
  token.cancel();
  while (matched < 20 || cancelled < 20) std::this_thread::yield();
  CHECK(ended == 0);
  CHECK(jobs.close_input(id));
  for (std::thread& thread : threads) thread.join();
  CHECK(matched == 20);
  CHECK(ended == 20);
  CHECK(cancelled == 20);
}

TEST_CASE("the destructor ends all waits") {
  const LocalExecutor here = make();
  auto jobs = std::make_unique<Jobs>(here);
  const std::string id = start(*jobs, "exec sleep 300");
  const int before = support::count_descriptors();
  std::vector<std::string> answers(6);
  std::vector<std::thread> threads;
  for (std::string& answer : answers)
    threads.emplace_back([&, all = jobs.get()] { answer = wait(*all, id, until_seen("never")); });
  // Each thread that waits has two.
  while (support::count_descriptors() < before + 12) std::this_thread::yield();
  Gate runs;
  Command command = Command::shell("echo ready; exec sleep 301");
  command.on_output = [&](Stream, std::string_view) { runs.open(); };
  std::thread runner([&, all = jobs.get()] {
    const JobStatus run = all->run(command, safety);
    CHECK(run.id.empty());
    CHECK(run.result.outcome == Outcome::cancelled);
  });
  runs.pass();
  const Stopwatch watch;
  jobs.reset();
  for (std::thread& thread : threads) thread.join();
  runner.join();
  for (const std::string& answer : answers) CHECK(answer == "ended");
  CHECK(watch.soon());
}

TEST_CASE("without descriptors a wait is an error, and nothing hangs") {
  const LocalExecutor here = make();
  Jobs jobs(here);
  const std::string id = start(jobs, "exec sleep 300");
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const rlimit low = {3, limit.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
  const Expected<Jobs::WaitEnd> end = jobs.wait(id, until_seen("x"));
  const JobStatus run = jobs.run(Command::shell("true"), milliseconds(0));
  const Expected<JobStatus> started = jobs.start(Command::shell("true"));
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
  REQUIRE(!end);
  CHECK(end.error().code == ErrorCode::limit);
  CHECK(begins(end.error().message, "cannot wait for a background shell: "));
  CHECK(run.id.empty());
  CHECK(run.result.outcome == Outcome::not_started);
  CHECK(begins(run.result.message, "cannot wait for a background shell: "));
  REQUIRE(!started);
  CHECK(started.error().code == ErrorCode::limit);
  CHECK(jobs.list().size() == 1);
}
