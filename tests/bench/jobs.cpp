// What background jobs cost: idle ones in memory and processor time, output through the ring
// beside a bare loop, and reading what is new.
//
//   sh tests/bench/run.sh jobs
//
// --quick: fewer jobs and rounds. Ends with status 1 and a line "GATE FAILED: ..." when a promise
// is not kept.
#include "codeexec.hpp"

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "floor.hpp"

namespace {

using codeexec::Command;
using codeexec::Jobs;

const char* const self = "/proc/self/exe";

template <class T>
T checked(const char* what, codeexec::Expected<T> value) {
  if (!value) fail(what, value.error().message);
  return std::move(*value);
}

// What this program does when it is started as its own child: writes so many bytes, then reads its
// input to the end.
int write_and_wait(std::uint64_t left) {
  Pinned::pin_to(1);
  static char block[65536];
  std::memset(block, 'x', sizeof block);
  for (std::size_t i = 63; i < sizeof block; i += 64) block[i] = '\n';
  while (left > 0) {
    const ssize_t size = ::write(1, block, std::min<std::uint64_t>(left, sizeof block));
    if (size <= 0) return 1;
    left -= static_cast<std::uint64_t>(size);
  }
  while (::read(0, block, sizeof block) > 0) {
  }
  return 0;
}

Command child(std::uint64_t bytes) {
  return Command::program({self, "--write", std::to_string(bytes)});
}

codeexec::LocalExecutor executor_with(std::size_t max_output,
                                      codeexec::SandboxMode mode = codeexec::SandboxMode::off) {
  codeexec::LocalOptions options;
  options.max_output = max_output;
  options.sandbox.mode = mode;
  options.sandbox.readable = {checked("self", codeexec::canonical_path(self))};
  return checked("LocalExecutor", codeexec::LocalExecutor::create(options));
}

// Resident memory of this process that belongs to no file, in bytes.
double own_memory() {
  std::FILE* const status = std::fopen("/proc/self/status", "r");
  if (!status) return 0;
  char line[256];
  double kibibytes = 0;
  while (std::fgets(line, sizeof line, status))
    if (std::sscanf(line, "RssAnon: %lf kB", &kibibytes) == 1) break;
  std::fclose(status);
  return kibibytes * 1024;
}

double processor_time() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

void measure_idle(const char* where, codeexec::SandboxMode mode, std::size_t count) {
  const auto here = executor_with(std::size_t{1} << 20, mode);
  codeexec::JobOptions options;
  options.max_running = count + 1;
  Jobs jobs(here, options);
  const auto start_one = [&] {
    Command command = child(64);
    command.keep_input_open = true;
    const auto job = checked("start", jobs.start(command));
    codeexec::Jobs::Wait line;
    line.pattern = checked("pattern", codeexec::Regex::compile("x"));
    checked("wait", jobs.wait(job.id, line));
  };
  start_one();  // the thread and its buffer
  const double before = own_memory();
  for (std::size_t i = 0; i < count; ++i) start_one();
  const double each = (own_memory() - before) / static_cast<double>(count);
  const double begin = processor_time();
  ::poll(nullptr, 0, 2000);
  const double used = processor_time() - begin;
  const std::string what = std::string("an idle job") + where;
  report(what + ": memory", "KiB", figure(each / 1024), {"<=", 20});
  // The promise is about all of them.
  report(what + ": processor time in 2 s", "us", figure(used * 1e6 / static_cast<double>(count)),
         {"<=", 2, used * 1e3});
}

void measure_ring(std::uint64_t bytes, int rounds) {
  const Pinned reader(0);  // and the thread that reads the output: it is made by this one
  const auto here = executor_with(std::size_t{1} << 20);
  Jobs jobs(here);
  const std::string size = std::to_string(bytes);
  const Argv argv = {self, "--write", size.c_str(), nullptr};
  Samples bare;
  Samples ring;
  for (int i = 0; i < rounds; ++i) {
    bare.add(microseconds([&] {
      if (read_bare(argv) != bytes) fail("bare loop", "bytes are missing");
    }));
    ring.add(microseconds([&] {
      const auto job = checked("start", jobs.start(child(bytes)));
      checked("wait", jobs.wait(job.id));
      if (checked("status", jobs.status(job.id)).result.out_counts.total_bytes != bytes)
        fail("ring", "bytes are missing");
    }));
  }
  const double gibibytes = static_cast<double>(bytes) / (1 << 30) * 1e6;
  report("a job that prints 1 GiB", "GiB/s", ring.rate(gibibytes), "bare poll and read",
         bare.rate(gibibytes), {">=", 0.8, bare.median() / ring.median()});
}

// Reads the last bytes of what a job has printed, many times.
Samples time_to_read(Jobs& jobs, const std::string& id, std::uint64_t printed,
                     std::uint64_t fresh) {
  Samples times;
  for (int i = 0; i < 301; ++i) {
    times.add(microseconds([&] {
      if (checked("read", jobs.read(id, printed - fresh)).out.text.size() != fresh)
        fail("read", "not what is new");
    }));
  }
  return times;
}

void measure_reading() {
  constexpr std::uint64_t kept[] = {1 << 20, 16 << 20};
  constexpr std::uint64_t fresh[] = {1 << 10, 64 << 10, 512 << 10};
  Samples times[2][3];
  for (int k = 0; k < 2; ++k) {
    const auto here = executor_with(kept[k]);
    codeexec::JobOptions options;
    options.max_lines = std::size_t{1} << 20;
    Jobs jobs(here, options);
    const std::uint64_t printed = 2 * kept[k];
    Command command = child(printed);
    command.keep_input_open = true;
    const auto job = checked("start", jobs.start(command));
    while (checked("status", jobs.status(job.id)).result.out_counts.total_bytes < printed)
      ::poll(nullptr, 0, 1);
    for (int f = 0; f < 3; ++f) times[k][f] = time_to_read(jobs, job.id, printed, fresh[f]);
  }
  const auto what = [&](int f, const char* of) {
    return "read " + std::to_string(fresh[f] >> 10) + " KiB of new output, of " + of + " kept";
  };
  for (int f = 0; f < 3; ++f) {
    Gate gate;
    if (f == 1) gate = {"<=", 2};
    report(what(f, "16 MiB"), "us", times[1][f], "of 1 MiB kept", times[0][f], gate);
  }
  report(what(2, "16 MiB"), "us", times[1][2], "an eighth of it", times[1][1], {"<=", 16});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--write") == 0)
    return write_and_wait(std::strtoull(argv[2], nullptr, 10));
  const bool quick = has_argument(argc, argv, "--quick");
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  const std::size_t count = quick ? 200 : 1000;
  measure_idle("", codeexec::SandboxMode::off, count);
  measure_idle(" in a sandbox", codeexec::SandboxMode::best_effort, count);
  measure_ring(std::uint64_t{1} << 30, quick ? 3 : 15);
  measure_reading();
  return finish();
}
