// Scenarios of faults.cpp: programs that are run, without an executor.
#include "scenarios.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "region.hpp"

namespace faults {
namespace {

using codeexec::Outcome;
using codeexec::ProcessOptions;
using codeexec::ProcessResult;
using std::chrono::milliseconds;

template <class Body>
auto in_region(Body body) {
  const Region region;
  return body();
}

ProcessOptions script(const Place& place, const std::string& text) {
  return program(place, {"sh", "-c", text});
}

ProcessResult run_in_region(const ProcessOptions& options) {
  return in_region([&] { return codeexec::run_process(options); });
}

// A process in a session of its own, that is there when the next command runs.
const char* const escape =
    "mkfifo gone; setsid sh -c 'echo > gone; exec sleep 1000' & read line < gone; rm gone; ";

}  // namespace

void plain(Place& place, Report& report) {
  const ProcessResult r = run_in_region(script(place, "echo out; echo err >&2; exit 3"));
  report.judge(r, exited(r, 3, "out\n", "err\n"));
}

// Descriptors for the directory and for the program, one stream for both, a script without #!.
void handles(Place& place, Report& report) {
  support::write_file(place / "program", "echo out; echo err >&2; read line <&3; echo $line", 0755);
  support::write_file(place / "passed", "given\n");
  const int folder = ::open(place.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int passed = ::open((place / "passed").c_str(), O_RDONLY | O_CLOEXEC);
  ProcessOptions options = program(place, {"./program"});
  options.work_dir_fd = folder;
  options.pass_fd = passed;
  options.merge_streams = true;
  const ProcessResult r = run_in_region(options);
  ::close(folder);
  ::close(passed);
  ::unlink((place / "program").c_str());
  ::unlink((place / "passed").c_str());
  report.judge(r, exited(r, 0, "out\nerr\ngiven\n"));
}

void input(Place& place, Report& report) {
  ProcessOptions options = program(place, {"cat"});
  options.input = std::string(200000, 'i') + "end";
  const ProcessResult r = run_in_region(options);
  report.judge(r, exited(r, 0, options.input));
}

void timeout(Place& place, Report& report) {
  ProcessOptions options =
      script(place, "trap '' TERM; echo ready; sleep 1000 & setsid sleep 1000 & wait; sleep 1000");
  options.timeout = milliseconds(60);
  options.kill_grace = milliseconds(10);
  const ProcessResult r = run_in_region(options);
  const bool printed = r.out.empty() || r.out == "ready\n";
  report.judge(r, r.outcome == Outcome::timed_out && printed && r.message.empty());
}

void cancel(Place& place, Report& report) {
  std::mutex mutex;
  std::condition_variable event;
  bool ready = false;
  ProcessOptions options = script(place, "echo ready; exec sleep 1000");
  options.kill_grace = milliseconds(10);
  options.cancel.emplace();
  options.on_output = [&](codeexec::Stream, std::string_view) {
    const std::lock_guard<std::mutex> lock(mutex);
    ready = true;
    event.notify_all();
  };
  std::thread canceller([&] {
    std::unique_lock<std::mutex> lock(mutex);
    event.wait(lock, [&] { return ready; });
    lock.unlock();
    options.cancel->cancel();
  });
  const ProcessResult r = in_region([&] {
    ProcessResult result = codeexec::run_process(options);
    {
      const std::lock_guard<std::mutex> lock(mutex);
      ready = true;
    }
    event.notify_all();
    canceller.join();
    options.cancel.reset();
    return result;
  });
  report.judge(r, r.outcome == Outcome::cancelled && r.out == "ready\n" && r.message.empty());
}

// What holds the pipe and has left the group and its parents is found and killed.
void background(Place& place, Report& report) {
  ProcessOptions options = script(place, std::string(escape) + "echo ready");
  options.drain = milliseconds(50);
  options.max_drain = milliseconds(200);
  const ProcessResult r = run_in_region(options);
  report.judge(r, exited(r, 0, "ready\n"));
}

void spill(Place& place, Report& report) {
  ProcessOptions options = script(place, "head -c 100000 /dev/zero | tr '\\0' x");
  options.max_output = 1000;
  options.spill_dir = place.workspace();
  const ProcessResult r = run_in_region(options);
  const bool kept = r.outcome == Outcome::exited && r.exit_code == 0 && r.out.size() > 1000 &&
                    r.out_counts.total_bytes == 100000;
  bool whole = false;
  if (!r.out_file.empty() && support::exists(r.out_file)) {
    whole = support::read_file(r.out_file) == std::string(100000, 'x') &&
            r.out_counts.file_bytes == 100000;
    if (!whole && r.out_counts.file_bytes != support::read_file(r.out_file).size())
      report.problem("file_bytes is not the size of the spill file");
    ::unlink(r.out_file.c_str());
  }
  report.judge(r, kept && whole);
}

void supervised(Place& place, Report& report) {
  ProcessOptions options = script(place, std::string(escape) + "echo out; echo err >&2; exit 3");
  options.supervised = true;
  const ProcessResult r = run_in_region(options);
  report.judge(r, exited(r, 3, "out\n", "err\n"));
}

void supervised_timeout(Place& place, Report& report) {
  ProcessOptions options =
      script(place, "trap '' TERM; echo ready; setsid sleep 1000 & while :; do sleep 1000; done");
  options.supervised = true;
  options.timeout = milliseconds(60);
  options.kill_grace = milliseconds(10);
  const ProcessResult r = run_in_region(options);
  const bool printed = r.out.empty() || r.out == "ready\n";
  report.judge(r, r.outcome == Outcome::timed_out && printed && r.message.empty());
}

// A supervisor has nothing of the host's: what the host closes is closed.
void held(Place& place, Report& report) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) support::fail("pipe", "");
  ProcessOptions options = script(place, "echo out; exec cat");
  options.supervised = true;
  options.keep_input_open = true;
  Region region;
  ProcessResult failure;
  auto process = codeexec::Process::start(options, {}, &failure);
  bool closed = false;
  if (process) {
    ::close(ends[1]);
    pollfd end = {ends[0], POLLIN, 0};
    int ready = -1;
    while (ready < 0) ready = ::poll(&end, 1, 5000);
    closed = ready == 1;
    process->close_input();
    failure = process->wait();
    { const codeexec::Process last = std::move(*process); }
  } else {
    ::close(ends[1]);
  }
  region.end();
  ::close(ends[0]);
  if (process && !closed) report.problem("somebody else holds the host's pipe");
  report.judge(failure, exited(failure, 0, "out\n"));
}

// With input while it runs, on the library's own thread.
void start(Place& place, Report& report) {
  ProcessOptions options = program(place, {"cat"});
  options.keep_input_open = true;
  int ends = 0;
  ProcessResult failure;
  Region region;
  auto process = codeexec::Process::start(
      options, [&](const ProcessResult&) { ++ends; }, &failure);
  if (!process) {
    region.end();
    if (failure.message != process.error().message || failure.outcome != Outcome::not_started)
      report.problem("two stories of the failure");
    return report.judge(failure, false);
  }
  const auto written = process->write("hello\n");
  process->close_input();
  const ProcessResult r = process->wait();
  const std::string read = process->read(codeexec::Stream::out, 0).text;
  { const codeexec::Process last = std::move(*process); }
  region.end();
  if (ends != 1) report.problem("on_end was not called once");
  if (r.out != read) report.problem("two stories of the output");
  if (!written) return report.told("write", written.error());
  report.judge(r, exited(r, 0, "hello\n"));
}

// Its handle ends it.
void abandoned(Place& place, Report& report) {
  ProcessOptions options = script(place, "trap '' TERM; echo ready; sleep 1000");
  Region region;
  auto process = codeexec::Process::start(options);
  if (process) {
    { const codeexec::Process last = std::move(*process); }
    region.end();
    return report.right();
  }
  region.end();
  report.told("start", process.error());
}

}  // namespace faults
