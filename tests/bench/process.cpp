// What running a program costs, beside the least it can cost and beside what others pay.
//
//   sh tests/bench/run.sh process
//
// --quick: fewer runs.
// --sandbox: only what the sandbox adds.
// Rivals take turns, so that a busy machine hurts all of them. The gates use the ratio of medians
// or, when that is lower, of the tenth percentiles: what the work costs when nobody else had the
// processor. Ends with status 1 and a line "GATE FAILED: ..." when a promise is not kept.
#include "codeexec.hpp"

#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "calls.hpp"
#include "floor.hpp"

namespace {

void read_to_end(int fd) {
  static char buffer[65536];
  while (::read(fd, buffer, sizeof buffer) > 0) {
  }
}

// The floor: two pipes, read to the end, wait.
void run_floor(const Argv& argv) {
  int out[2];
  int err[2];
  make_pipe(out);
  make_pipe(err);
  const pid_t pid = start_floor({&argv, out[1], err[1]});
  read_to_end(out[0]);
  read_to_end(err[0]);
  ::close(out[0]);
  ::close(err[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
}

// The way of subprocess.h: posix_spawn with three pipes, which the caller gets as FILEs.
void run_posix_spawn(const Argv& argv) {
  int in[2];
  int out[2];
  int err[2];
  make_pipe(in);
  make_pipe(out);
  make_pipe(err);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addclose(&actions, in[1]);
  ::posix_spawn_file_actions_adddup2(&actions, in[0], 0);
  ::posix_spawn_file_actions_addclose(&actions, out[0]);
  ::posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  ::posix_spawn_file_actions_addclose(&actions, err[0]);
  ::posix_spawn_file_actions_adddup2(&actions, err[1], 2);
  pid_t pid = -1;
  if (::posix_spawn(&pid, argv[0], &actions, nullptr, writable(argv), environ) != 0)
    fail("posix_spawn");
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(in[0]);
  ::close(out[1]);
  ::close(err[1]);
  std::FILE* const input = ::fdopen(in[1], "wb");
  std::FILE* const output = ::fdopen(out[0], "rb");
  std::FILE* const error_output = ::fdopen(err[0], "rb");
  static char buffer[65536];
  while (std::fread(buffer, 1, sizeof buffer, output) > 0) {
  }
  while (std::fread(buffer, 1, sizeof buffer, error_output) > 0) {
  }
  std::fclose(input);
  int status = 0;
  ::waitpid(pid, &status, 0);
  std::fclose(output);
  std::fclose(error_output);
}

void run_fork(const Argv& argv) {
  int out[2];
  int err[2];
  make_pipe(out);
  make_pipe(err);
  const pid_t pid = ::fork();
  if (pid < 0) fail("fork");
  if (pid == 0) {
    FloorChild child = {&argv, out[1], err[1]};
    floor_child(&child);
  }
  ::close(out[1]);
  ::close(err[1]);
  read_to_end(out[0]);
  read_to_end(err[0]);
  ::close(out[0]);
  ::close(err[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
}

void run_codeexec(const codeexec::ProcessOptions& options) {
  const codeexec::ProcessResult result = codeexec::run_process(options);
  if (!result.succeeded()) {
    std::fprintf(stderr, "run_process: %s\n", result.message.c_str());
    std::exit(2);
  }
}

codeexec::ProcessOptions options_for(const Argv& argv) {
  codeexec::ProcessOptions options;
  for (const char* word : argv)
    if (word) options.argv.push_back(word);
  for (char** variable = environ; *variable; ++variable) options.environment.push_back(*variable);
  options.timeout = std::chrono::seconds(60);
  return options;
}

// Runs the same again and again, when it is asked to.
std::string python_script(const char* command) {
  return std::string(
             "import subprocess, sys, time\n"
             "for line in sys.stdin:\n"
             "  begin = time.perf_counter()\n"
             "  subprocess.run(") +
         command +
         ", capture_output=True)\n"
         "  print((time.perf_counter() - begin) * 1e6)\n";
}

void compare_runs(const std::string& title, const Argv& argv, const char* command, int runs,
                  double limit) {
  const codeexec::ProcessOptions options = options_for(argv);
  Samples floor;
  Samples ours;
  Samples spawned;
  Samples pythons;
  Python python(python_script(command));
  for (int i = 0; i < runs; ++i) {
    floor.add(microseconds([&] { run_floor(argv); }));
    ours.add(microseconds([&] { run_codeexec(options); }));
    spawned.add(microseconds([&] { run_posix_spawn(argv); }));
    if (python.there()) pythons.add(python.ask());
  }
  const std::string what = "run " + title + ", both streams captured";
  report(what, "us", ours, "bare clone, read, wait", floor, {"<=", limit, best_ratio(ours, floor)});
  report(what, "us", ours, "posix_spawn, as subprocess.h does", spawned,
         {"<=", 1.0, best_ratio(ours, spawned)});
  const char* const python_name = "Python subprocess.run";
  if (python.there())
    report(what, "us", ours, python_name, pythons, {"<=", 1.0});
  else
    skipped(what, python_name, "there is no python3");
}

// The program that README.md shows, and what it says that its command takes.
void measure_hello(int runs) {
  const auto here = codeexec::LocalExecutor::create({});
  if (!here) fail("LocalExecutor", here.error().message);
  Samples times;
  for (int i = 0; i < runs; ++i) {
    const codeexec::Result result = here->run("echo hello; echo oops >&2; exit 3");
    if (result.exit_code != 3) fail("hello", result.summary());
    times.add(std::chrono::duration<double, std::milli>(result.wall_time).count());
  }
  report("the command of examples/hello.cpp", "ms", times);
}

// Memory of this host of which every page is there.
class TouchedMemory {
 public:
  explicit TouchedMemory(std::size_t size) : size_(size) {
    memory_ = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) fail("mmap");
    ::madvise(memory_, size, MADV_NOHUGEPAGE);
    for (std::size_t at = 0; at < size; at += 4096) static_cast<char*>(memory_)[at] = 1;
  }
  TouchedMemory(const TouchedMemory&) = delete;
  TouchedMemory& operator=(const TouchedMemory&) = delete;
  ~TouchedMemory() { ::munmap(memory_, size_); }

 private:
  std::size_t size_;
  void* memory_;
};

double available_memory() {
  std::FILE* const file = std::fopen("/proc/meminfo", "re");
  char line[256];
  double kibibytes = 0;
  while (file && std::fgets(line, sizeof line, file))
    if (std::sscanf(line, "MemAvailable: %lf kB", &kibibytes) == 1) break;
  if (file) std::fclose(file);
  return kibibytes * 1024;
}

// The same host, small and with touched memory, in turns: the memory is given and taken away.
void compare_big_host(int rounds) {
  const std::string what = "run /bin/true from a host with 4 GiB in use";
  const std::size_t size = std::size_t{4} << 30;
  if (available_memory() < 1.5 * static_cast<double>(size)) {
    for (const char* rival : {"from a small host", "fork and exec"})
      skipped(what, rival, "this machine has too little free memory");
    return;
  }
  const Argv argv = {"/bin/true", nullptr};
  const codeexec::ProcessOptions options = options_for(argv);
  Samples small;
  Samples big;
  Samples forked;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < 200; ++i) small.add(microseconds([&] { run_codeexec(options); }));
    const TouchedMemory memory(size);
    for (int i = 0; i < 200; ++i) big.add(microseconds([&] { run_codeexec(options); }));
    for (int i = 0; i < 3; ++i) forked.add(microseconds([&] { run_fork(argv); }));
  }
  report(what, "us", big, "from a small host", small, {"<=", 1.15, best_ratio(big, small)});
  report(what, "us", big, "fork and exec", forked);
}

// A directory that the sandboxed programs may write to.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    if (!::mkdtemp(path_)) fail("mkdtemp");
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  ~ScratchDirectory() { ::rmdir(path_); }
  const char* path() const { return path_; }

 private:
  char path_[32] = "/tmp/codeexec-bench-XXXXXX";
};

// What a server grants: one writable root, the system, the tools on the PATH; and no network.
codeexec::SandboxOptions full_sandbox(const ScratchDirectory& scratch) {
  codeexec::SandboxOptions options;
  options.mode = codeexec::SandboxMode::strict;
  options.writable = {scratch.path()};
  const char* const path = std::getenv("PATH");
  options.search_path = path ? path : "/usr/bin:/bin";
  options.network = codeexec::Network::none;
  return options;
}

// One way to run a program, and how long that took each time.
struct Way {
  std::string name;
  codeexec::ProcessOptions options;
  Samples samples = {};
};

// When this machine does not have what the sandbox needs, it says so.
void add_sandboxed(std::vector<Way>& ways, const std::string& name, const Argv& argv,
                   const codeexec::SandboxOptions& sandbox_options) {
  auto sandbox = codeexec::Sandbox::create(sandbox_options);
  if (!sandbox) return skipped(name, "without a sandbox", sandbox.error().message);
  ways.push_back({name, options_for(argv)});
  ways.back().options.sandbox = std::move(*sandbox);
}

void compare_sandbox(const std::string& title, const Argv& argv, int runs, double limit) {
  const ScratchDirectory scratch;
  const codeexec::SandboxOptions full = full_sandbox(scratch);
  const std::string run = "run " + title;
  const std::string in_full = run + " in the full sandbox";
  std::vector<Way> ways = {{"without a sandbox", options_for(argv)}};
  add_sandboxed(ways, in_full, argv, full);
  ways.push_back({run + " with a supervisor", options_for(argv)});
  ways.back().options.supervised = true;
  codeexec::SandboxOptions other = full;
  other.pid_namespace = true;
  add_sandboxed(ways, run + " in the sandbox, with a process table of its own", argv, other);
  other = full;
  other.network = codeexec::Network::loopback;
  add_sandboxed(ways, run + " in the sandbox, with a loopback network of its own", argv, other);
  Argv wrapped = {"bwrap", "--ro-bind", "/", "/", "--unshare-all"};
  wrapped.insert(wrapped.end(), argv.begin(), argv.end());
  // The user may not be allowed to make the namespaces that it needs.
  const codeexec::ProcessOptions bubblewrap = options_for(wrapped);
  const bool has_bubblewrap = codeexec::run_process(bubblewrap).succeeded();
  const std::string in_namespaces = run + " in the sandbox, with namespaces of its own";
  other.pid_namespace = true;
  add_sandboxed(ways, in_namespaces, argv, other);
  if (has_bubblewrap) ways.push_back({"bubblewrap", bubblewrap});

  for (int i = 0; i < runs; ++i)
    for (Way& way : ways) way.samples.add(microseconds([&] { run_codeexec(way.options); }));
  Samples& without = ways[0].samples;
  for (Way& way : ways) {
    if (way.name == in_full)
      report(way.name, "us", way.samples, ways[0].name, without,
             {"<=", limit, best_ratio(way.samples, without)});
    // The second does what bubblewrap does: a table of processes and a network of its own.
    if (way.name == in_full || way.name == in_namespaces) {
      Samples& last = ways.back().samples;
      if (has_bubblewrap)
        report(way.name, "us", way.samples, "bubblewrap", last,
               {"<=", 1.0, best_ratio(way.samples, last)});
      else
        skipped(way.name, "bubblewrap", "bwrap is not installed or may not make namespaces");
    } else if (&way != &ways[0] && way.name != "bubblewrap") {
      report(way.name, "us", way.samples, ways[0].name, without);
    }
  }
}

void compare_sandbox_in_big_host(std::size_t mebibytes, int rounds) {
  const std::string what = "run /bin/true in the full sandbox from a host with " +
                           std::to_string(mebibytes) + " MiB in use";
  const ScratchDirectory scratch;
  std::vector<Way> ways;
  add_sandboxed(ways, what, {"/bin/true", nullptr}, full_sandbox(scratch));
  if (ways.empty()) return;
  const codeexec::ProcessOptions& options = ways[0].options;
  Samples small;
  Samples big;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < 100; ++i) small.add(microseconds([&] { run_codeexec(options); }));
    const TouchedMemory memory(mebibytes << 20);
    for (int i = 0; i < 100; ++i) big.add(microseconds([&] { run_codeexec(options); }));
  }
  report(what, "us", big, "from a small host", small, {"<=", 1.10, best_ratio(big, small)});
}

// Writes that many bytes to standard output, 64 KiB at a time; what this program does when it is
// started as its own child.
int write_output(std::uint64_t left) {
  Pinned::pin_to(1);
  static char block[65536];
  std::memset(block, 'x', sizeof block);
  while (left > 0) {
    const ssize_t size = ::write(1, block, std::min<std::uint64_t>(left, sizeof block));
    if (size <= 0) return 1;
    left -= static_cast<std::uint64_t>(size);
  }
  return 0;
}

std::uint64_t peak_memory() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

void compare_capture(const char* self, std::uint64_t bytes, int runs) {
  const Pinned reader(0);  // where the two sides run decides more than what the reader does
  const std::string size = std::to_string(bytes);
  const Argv argv = {self, "--write", size.c_str(), nullptr};
  const codeexec::ProcessOptions options = options_for(argv);
  codeexec::ProcessOptions masking = options;
  masking.secrets = {"sk-ant-REDACTED"};
  Samples bare;
  Samples ours;
  codeexec::ProcessOptions hashing = options;
  hashing.hash_output = true;
  Samples masked;
  Samples hashed;
  const std::uint64_t before = peak_memory();
  const auto capture = [&](const codeexec::ProcessOptions& how) {
    if (codeexec::run_process(how).out_counts.total_bytes != bytes) fail("run_process");
  };
  for (int i = 0; i < runs; ++i) {
    bare.add(microseconds([&] {
      if (read_bare(argv) != bytes) fail("bare loop");
    }));
    ours.add(microseconds([&] { capture(options); }));
    masked.add(microseconds([&] { capture(masking); }));
    hashed.add(microseconds([&] { capture(hashing); }));
  }
  const double growth = static_cast<double>(peak_memory() - before) / (1 << 20);
  const double gibibytes = static_cast<double>(bytes) / (1 << 30) * 1e6;
  report("capture 1 GiB of output, head and tail kept", "GiB/s", ours.rate(gibibytes),
         "bare poll and read", bare.rate(gibibytes), {">=", 0.9, 1 / best_ratio(ours, bare)});
  report("capture 1 GiB of output with a secret to mask", "GiB/s", masked.rate(gibibytes),
         "without a secret", ours.rate(gibibytes), {">=", 0.7, 1 / best_ratio(masked, ours)});
  report("capture 1 GiB of output with its SHA-256, as for an audit log", "GiB/s",
         hashed.rate(gibibytes), "without", ours.rate(gibibytes),
         {">=", 1 / 1.3, 1 / best_ratio(hashed, ours)});
  report("growth of the host's memory by capturing 1 GiB", "MiB", figure(growth), {"<=", 8});
}

// What users call: the gate, the process and the record.
struct Executed {
  const char* name;
  const char* how;  // the word for --runs
  double limit;
  double most_calls;  // of this program, its supervisor and the child
  std::optional<codeexec::LocalExecutor> executor = {};
  Samples samples = {};
  bool starts() const { return std::strcmp(how, "start") == 0; }
};

const Argv shell_true = {"/bin/sh", "-c", "true", nullptr};
const char floor_name[] = "bare clone, read, wait";

std::vector<Executed> executed_ways() {
  std::vector<Executed> ways;
  ways.push_back({"Executor::run() of `true`", "plain", 1.20, 128});
  ways.push_back({"Executor::run() of `true` with an audit log", "audit", 1.25, 132});
  ways.push_back({"Executor::run() of `true` with a secret to mask", "secret", 1.25, 128});
  ways.push_back({"Executor::start() and wait() of `true`", "start", 1.40, 168});
  ways.push_back(
      {"Executor::run() of `true` in the sandbox, with an audit log", "sandbox", 1.30, 110});
  return ways;
}

// False: this machine cannot, and why was told.
bool make_executor(Executed& way, const ScratchDirectory& scratch) {
  codeexec::LocalOptions options;
  options.workspace = scratch.path();
  const std::string how = way.how;
  if (how == "audit" || how == "sandbox") options.audit_file = "/dev/null";
  if (how == "sandbox") options.sandbox = full_sandbox(scratch);
  if (how == "secret") {
    options.environment.set = {{"TOKEN", "sk-ant-REDACTED"}};
    options.environment.secret = {"TOKEN"};
  }
  auto made = codeexec::LocalExecutor::create(options);
  if (made) way.executor.emplace(std::move(*made));
  if (!made) skipped(way.name, floor_name, made.error().message);
  return way.executor.has_value();
}

void execute(const Executed& way, const codeexec::Command& command) {
  const codeexec::Result result =
      way.starts() ? way.executor->start(command).wait() : way.executor->run(command);
  if (!result.succeeded()) fail(way.name, result.summary());
}

void compare_executor(int runs) {
  const codeexec::Command command = codeexec::Command::shell("true");
  const ScratchDirectory scratch;
  std::vector<Executed> ways = executed_ways();
  for (Executed& way : ways) make_executor(way, scratch);
  Samples floor;
  for (int i = 0; i < runs; ++i) {
    floor.add(microseconds([&] { run_floor(shell_true); }));
    for (Executed& way : ways)
      if (way.executor) way.samples.add(microseconds([&] { execute(way, command); }));
  }
  for (Executed& way : ways)
    if (way.executor)
      report(way.name, "us", way.samples, floor_name, floor,
             {"<=", way.limit, best_ratio(way.samples, floor)});
}

// Runs `work` in each of `count` threads at once.
template <class Work>
void at_once(int count, const Work& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
}

void compare_burst(int rounds) {
  constexpr int count = 64;
  const codeexec::Command command = codeexec::Command::shell("true");
  const ScratchDirectory scratch;
  Executed plain = executed_ways()[0];
  if (!make_executor(plain, scratch)) return;
  Samples ours;
  Samples floor;
  for (int round = 0; round < rounds; ++round) {
    floor.add(microseconds([&] { at_once(count, [&] { run_floor(shell_true); }); }));
    ours.add(microseconds([&] {
      at_once(count, [&] {
        if (!plain.executor->run(command).succeeded()) fail("a command of a burst");
      });
    }));
  }
  report("64 calls of Executor::run() of `true` at once", "us", ours,
         "64 times at once: " + std::string(floor_name), floor,
         {"<=", 1.25, best_ratio(ours, floor)});
}

// What this program does under strace: so many runs, `how`.
int run_many(const std::string& how, int runs) {
  const ScratchDirectory scratch;
  for (int i = 0; how == "floor" && i < runs; ++i) run_floor(shell_true);
  for (Executed& way : executed_ways())
    if (how == way.how && make_executor(way, scratch))
      for (int i = 0; i < runs; ++i) execute(way, codeexec::Command::shell("true"));
  return 0;
}

void compare_calls() {
  char self[4096] = {};  // strace would take /proc/self/exe for itself
  if (::readlink("/proc/self/exe", self, sizeof self - 1) < 0) fail("/proc/self/exe");
  const ScratchDirectory scratch;
  const std::string file = std::string(scratch.path()) + "/calls";
  const auto count = [&](const std::string& how, Calls& calls) {
    return count_calls({self, "--runs", how}, file, calls);
  };
  Calls floor;
  const bool can = count("floor", floor);
  for (const Executed& way : executed_ways()) {
    const std::string what = std::string(way.name) + ": system calls";
    Calls ours;
    if (!can || !count(way.how, ours)) {
      skipped(what, floor_name, "strace is not installed, or may not trace");
      continue;
    }
    report(what, "calls", figure(ours.host + ours.others), floor_name,
           figure(floor.host + floor.others), {"<=", way.most_calls, ours.host + ours.others});
    report(what + " of this program", "calls", figure(ours.host), floor_name, figure(floor.host));
    if (std::strcmp(way.how, "sandbox") == 0)
      report("files looked at for one command in an empty workspace", "calls", figure(ours.stats),
             {"<=", 12});
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--write") == 0)
    return write_output(std::strtoull(argv[2], nullptr, 10));
  if (argc == 4 && std::strcmp(argv[1], "--runs") == 0)
    return run_many(argv[2], std::atoi(argv[3]));
  const bool quick = has_argument(argc, argv, "--quick");
  const int runs = quick ? 300 : 2000;
  if (!has_argument(argc, argv, "--sandbox")) {
    // First, so that no other measurement has raised the peak before.
    compare_capture("/proc/self/exe", std::uint64_t{1} << 30, quick ? 5 : 21);
    compare_runs("/bin/true", {"/bin/true", nullptr}, "['/bin/true']", runs, 1.10);
    compare_runs("sh -c true", {"/bin/sh", "-c", "true", nullptr}, "'true', shell=True", runs,
                 1.08);
    measure_hello(runs / 2);
    compare_executor(runs / 2);
    compare_burst(runs / 20);
    compare_calls();
    compare_big_host(quick ? 1 : 3);
  }
  compare_sandbox("/bin/true", {"/bin/true", nullptr}, runs / 2, 1.20);
  compare_sandbox("sh -c true", {"/bin/sh", "-c", "true", nullptr}, runs / 2, 1.20);
  compare_sandbox_in_big_host(512, quick ? 2 : 10);
  return finish();
}
