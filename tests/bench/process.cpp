// What running a program costs, beside the least it can cost and beside what others pay.
//
//   c++ -std=c++17 -O2 -I. tests/bench/process.cpp -o bench-process -pthread && ./bench-process
//
// --quick: fewer runs, and 1 GiB instead of 4 GiB of touched memory.
// --sandbox: only what the sandbox adds.
// Rivals take turns, so that a busy machine hurts all of them. Medians are printed, and the
// tenth percentile: what the work costs when nobody else had the processor. The gates use the lower
// of both ratios. Ends with status 1 and a line "GATE FAILED: ..." when a promise is not kept.
#define CODEEXEC_IMPLEMENTATION
#include "codeexec.hpp"

#include "floor.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

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

struct Samples {
  std::vector<double> values = {};
  double at(double share) {
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
  }
  double median() { return at(0.5); }
};

double ratio(Samples& work, Samples& base) {
  return std::min(work.median() / base.median(), work.at(0.1) / base.at(0.1));
}

void print_row(const char* what, Samples& samples, Samples& base) {
  std::printf("  %-28s p10 %8.1f us  %6.3f x   median %8.1f us  %6.3f x\n", what, samples.at(0.1),
              samples.at(0.1) / base.at(0.1), samples.median(), samples.median() / base.median());
}

// Python's own measurement of subprocess.run, in a process of its own. 0 when there is no python3.
double python_median(const char* command) {
  const std::string script = std::string(
                                 "import subprocess,time\nt=[]\nfor i in range(200):\n"
                                 " a=time.perf_counter()\n subprocess.run(") +
                             command +
                             ",capture_output=True)\n t.append(time.perf_counter()-a)\n"
                             "t.sort()\nprint(t[100]*1e6)\n";
  codeexec::ProcessOptions options = options_for({"python3", "-c", script.c_str()});
  const codeexec::ProcessResult result = codeexec::run_process(options);
  return result.succeeded() ? std::strtod(result.out.c_str(), nullptr) : 0;
}

void compare_runs(const char* title, const Argv& argv, const char* python, int runs, double limit) {
  const codeexec::ProcessOptions options = options_for(argv);
  Samples floor;
  Samples ours;
  Samples spawned;
  for (int i = 0; i < runs; ++i) {
    floor.values.push_back(microseconds([&] { run_floor(argv); }));
    ours.values.push_back(microseconds([&] { run_codeexec(options); }));
    spawned.values.push_back(microseconds([&] { run_posix_spawn(argv); }));
  }
  std::printf("%s, both streams captured, %d runs each\n", title, runs);
  print_row("floor (clone, read, wait)", floor, floor);
  print_row("codeexec run_process", ours, floor);
  print_row("posix_spawn (subprocess.h)", spawned, floor);
  const std::string name = std::string(title) + ": codeexec / ";
  gate((name + "floor").c_str(), ratio(ours, floor), "<=", limit);
  gate((name + "posix_spawn").c_str(), ratio(ours, spawned), "<=", 1.0);
  const double python_time = python_median(python);
  if (python_time > 0) {
    std::printf("  %-28s                              median %8.1f us  %6.3f x\n",
                "Python subprocess.run", python_time, python_time / floor.median());
    gate((name + "Python").c_str(), ours.median() / python_time, "<=", 1.0);
  } else {
    std::printf("  SKIPPED: no python3 to compare with\n");
  }
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

// The same host, small and with touched memory, in turns: the memory is given and taken away.
void compare_big_host(std::size_t gibibytes, int rounds) {
  const Argv argv = {"/bin/true", nullptr};
  const codeexec::ProcessOptions options = options_for(argv);
  Samples small;
  Samples big;
  Samples forked;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < 200; ++i)
      small.values.push_back(microseconds([&] { run_codeexec(options); }));
    const TouchedMemory memory(gibibytes << 30);
    for (int i = 0; i < 200; ++i)
      big.values.push_back(microseconds([&] { run_codeexec(options); }));
    for (int i = 0; i < 3; ++i) forked.values.push_back(microseconds([&] { run_fork(argv); }));
  }
  std::printf("/bin/true from a host with %zu GiB of touched memory\n", gibibytes);
  print_row("codeexec, small host", small, small);
  print_row("codeexec, big host", big, small);
  print_row("fork, big host", forked, small);
  gate("big host / small host", ratio(big, small), "<=", 1.15);
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
  const char* name;
  codeexec::ProcessOptions options;
  Samples samples = {};
};

// False, and says so, when this machine does not have what the sandbox needs.
bool add_sandboxed(std::vector<Way>& ways, const char* name, const Argv& argv,
                   const codeexec::SandboxOptions& sandbox_options) {
  auto sandbox = codeexec::Sandbox::create(sandbox_options);
  if (!sandbox) {
    std::printf("  SKIPPED: %s: %s\n", name, sandbox.error().message.c_str());
    return false;
  }
  ways.push_back({name, options_for(argv)});
  ways.back().options.sandbox = std::move(*sandbox);
  return true;
}

// Whether the user may make the namespaces that bubblewrap needs.
bool bubblewrap_works(const Argv& argv) {
  return codeexec::run_process(options_for(argv)).succeeded();
}

void compare_sandbox(const char* title, const Argv& argv, int runs, double limit) {
  std::printf("%s in the sandbox, %d runs each\n", title, runs);
  const ScratchDirectory scratch;
  const codeexec::SandboxOptions full = full_sandbox(scratch);
  std::vector<Way> ways = {{"no sandbox", options_for(argv)}};
  if (!add_sandboxed(ways, "full sandbox", argv, full)) return;
  ways.push_back({"supervised only", options_for(argv)});
  ways.back().options.supervised = true;
  codeexec::SandboxOptions other = full;
  other.pid_namespace = true;
  add_sandboxed(ways, "with a pid namespace", argv, other);
  other = full;
  other.network = codeexec::Network::loopback;
  add_sandboxed(ways, "with a loopback network", argv, other);
  Argv wrapped = {"bwrap", "--ro-bind", "/", "/", "--unshare-all"};
  wrapped.insert(wrapped.end(), argv.begin(), argv.end());
  if (bubblewrap_works(wrapped))
    ways.push_back({"bubblewrap", options_for(wrapped)});
  else
    std::printf("  SKIPPED: no bubblewrap to compare with\n");

  for (int i = 0; i < runs; ++i)
    for (Way& way : ways)
      way.samples.values.push_back(microseconds([&] { run_codeexec(way.options); }));
  for (Way& way : ways) print_row(way.name, way.samples, ways[0].samples);
  const std::string name = std::string(title) + ": full sandbox / ";
  gate((name + "none").c_str(), ratio(ways[1].samples, ways[0].samples), "<=", limit);
  if (std::strcmp(ways.back().name, "bubblewrap") == 0)
    gate((name + "bubblewrap").c_str(), ratio(ways[1].samples, ways.back().samples), "<=", 1.0);
}

void compare_sandbox_in_big_host(std::size_t mebibytes, int rounds) {
  const ScratchDirectory scratch;
  std::printf("/bin/true in the sandbox, from a host with %zu MiB of touched memory\n", mebibytes);
  std::vector<Way> ways;
  if (!add_sandboxed(ways, "full sandbox", {"/bin/true", nullptr}, full_sandbox(scratch))) return;
  const codeexec::ProcessOptions& options = ways[0].options;
  Samples small;
  Samples big;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < 100; ++i)
      small.values.push_back(microseconds([&] { run_codeexec(options); }));
    const TouchedMemory memory(mebibytes << 20);
    for (int i = 0; i < 100; ++i)
      big.values.push_back(microseconds([&] { run_codeexec(options); }));
  }
  print_row("full sandbox, small host", small, small);
  print_row("full sandbox, big host", big, small);
  gate("full sandbox: big host / small host", ratio(big, small), "<=", 1.10);
}

// Writes that many bytes to standard output, 64 KiB at a time; what this program does when it is
// started as its own child.
int write_output(std::uint64_t left) {
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
  const std::string size = std::to_string(bytes);
  const Argv argv = {self, "--write", size.c_str(), nullptr};
  const codeexec::ProcessOptions options = options_for(argv);
  Samples bare;
  Samples ours;
  const std::uint64_t before = peak_memory();
  for (int i = 0; i < runs; ++i) {
    bare.values.push_back(microseconds([&] {
      if (read_bare(argv) != bytes) fail("bare loop");
    }));
    ours.values.push_back(microseconds([&] {
      if (codeexec::run_process(options).out_counts.total_bytes != bytes) fail("run_process");
    }));
  }
  const double growth = static_cast<double>(peak_memory() - before) / (1 << 20);
  const double rate = static_cast<double>(bytes) / (1 << 30) * 1e6;
  std::printf("capture of %.2f GiB, %d runs each\n", static_cast<double>(bytes) / (1 << 30), runs);
  std::printf("  bare poll and read   %6.2f GiB/s\n  codeexec             %6.2f GiB/s\n",
              rate / bare.median(), rate / ours.median());
  gate("capture rate / bare loop", 1 / ratio(ours, bare), ">=", 0.9);
  gate("growth of peak memory, MiB", growth, "<=", 8);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--write") == 0)
    return write_output(std::strtoull(argv[2], nullptr, 10));
  bool quick = false;
  bool only_sandbox = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--quick") == 0) quick = true;
    if (std::strcmp(argv[i], "--sandbox") == 0) only_sandbox = true;
  }
  const int runs = quick ? 500 : 2000;
  if (!only_sandbox) {
    // First, so that no other measurement has raised the peak before.
    compare_capture("/proc/self/exe", std::uint64_t{1} << 30, quick ? 9 : 21);
    compare_runs("/bin/true", {"/bin/true", nullptr}, "['/bin/true']", runs, 1.10);
    compare_runs("sh -c true", {"/bin/sh", "-c", "true", nullptr}, "'true',shell=True", runs, 1.08);
    compare_big_host(quick ? 1 : 4, quick ? 2 : 3);
  }
  compare_sandbox("/bin/true", {"/bin/true", nullptr}, runs / 2, 1.60);
  compare_sandbox("sh -c true", {"/bin/sh", "-c", "true", nullptr}, runs / 2, 1.40);
  compare_sandbox_in_big_host(512, quick ? 3 : 10);
  std::printf(gates_hold ? "all gates hold\n" : "a gate failed\n");
  return gates_hold ? 0 : 1;
}
