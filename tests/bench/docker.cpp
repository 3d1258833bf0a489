// What a command in a container costs beside `docker exec`, which takes turns with it: one that an
// exec waits for, one that starts its own, output, the end by a timeout, and commands beside a
// child that holds the output.
//
//   c++ -std=c++17 -O2 -I. tests/bench/docker.cpp -o bench-docker -pthread && ./bench-docker
//
// Needs an engine for tests (CODEEXEC_TEST_DOCKER=1 and DOCKER_HOST, see tests/engine.sh) with the
// image codeexec-test/debian. --quick: fewer rounds. Ends with status 1 and a line "GATE FAILED:
// ..." when a promise is not kept.
#define CODEEXEC_IMPLEMENTATION
#include "codeexec.hpp"

#include "floor.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <algorithm>
#include <string>
#include <vector>

#include <unistd.h>

namespace {

using codeexec::Command;
using codeexec::ContainerExecutor;
using codeexec::Outcome;
using std::chrono::milliseconds;

[[noreturn]] void fail(const char* what, const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", what, why.c_str());
  std::exit(2);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void rest() { ::poll(nullptr, 0, 200); }

std::string program_path(const char* name) {
  const char* path = std::getenv("PATH");
  std::string rest = path ? path : "/usr/bin:/bin";
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const std::string candidate = rest.substr(0, end) + "/" + name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    rest.erase(0, std::min(end + 1, rest.size()));
  }
  fail("not found", name);
}

ContainerExecutor executor_with(std::size_t warm) {
  codeexec::ContainerExecutorOptions options;
  options.container.image = "codeexec-test/debian:latest";
  options.container.image_policy = codeexec::ImagePolicy::never;
  options.container.user = "1000:1000";
  options.container.warm = warm;
  options.workspace = "/tmp";
  options.kill_grace = milliseconds(100);
  options.max_output = 65536;
  auto made = ContainerExecutor::create(options);
  if (!made) fail("ContainerExecutor", made.error().message);
  const auto ready = made->container().ensure();
  if (!ready) fail("container", ready.error().message);
  return *std::move(made);
}

// The engine's own way, in the same container.
class Rival {
 public:
  explicit Rival(const ContainerExecutor& executor) : name_(executor.container().name()) {}
  std::uint64_t run(const std::vector<const char*>& words) const {
    Argv argv = {docker_.c_str(), "exec", "-u", "1000:1000", name_.c_str()};
    argv.insert(argv.end(), words.begin(), words.end());
    argv.push_back(nullptr);
    return read_bare(argv);
  }

 private:
  std::string docker_ = program_path("docker");
  std::string name_;
};

void run_true(const ContainerExecutor& executor) {
  const codeexec::Result result = executor.run(Command::program({"true"}));
  if (!result.succeeded()) fail("a command", result.summary() + " " + result.message);
}

void measure_commands(std::size_t warm, int rounds) {
  const ContainerExecutor executor = executor_with(warm);
  const Rival rival(executor);
  run_true(executor);
  rest();
  std::vector<double> ours;
  std::vector<double> theirs;
  for (int i = 0; i < rounds; ++i) {
    theirs.push_back(microseconds([&] { rival.run({"true"}); }) / 1000);
    rest();
    ours.push_back(microseconds([&] { run_true(executor); }) / 1000);
    rest();
  }
  std::printf("%s: %.2f ms; docker exec: %.1f ms\n",
              warm ? "a command after a pause of 200 ms" : "a command that starts its own exec",
              median(ours), median(theirs));
  if (warm)
    gate("docker exec / a command after a pause", median(theirs) / median(ours), ">=", 15);
  else
    gate("a command that starts its own exec / docker exec", median(ours) / median(theirs),
         "<=", 1.05);
}

void measure_output(std::uint64_t bytes, int rounds) {
  const ContainerExecutor executor = executor_with(1);
  const Rival rival(executor);
  const std::string size = std::to_string(bytes);
  run_true(executor);
  std::vector<double> ours;
  std::vector<double> theirs;
  for (int i = 0; i < rounds; ++i) {
    rest();
    theirs.push_back(microseconds([&] {
      if (rival.run({"head", "-c", size.c_str(), "/dev/zero"}) != bytes)
        fail("docker exec", "bytes are missing");
    }));
    rest();
    ours.push_back(microseconds([&] {
      const codeexec::Result result =
          executor.run(Command::program({"head", "-c", size, "/dev/zero"}));
      if (result.out_counts.total_bytes != bytes) fail("output", result.summary());
    }));
  }
  const double rate = static_cast<double>(bytes) / (1 << 20) * 1e6;
  std::printf("%.0f MiB of output: %.0f MiB/s; docker exec: %.0f MiB/s\n",
              static_cast<double>(bytes) / (1 << 20), rate / median(ours), rate / median(theirs));
  gate("rate of the output / docker exec", median(theirs) / median(ours), ">=", 0.95);
}

void measure_timeout(int rounds) {
  const ContainerExecutor executor = executor_with(1);
  run_true(executor);
  std::vector<double> late;
  for (int i = 0; i < rounds; ++i) {
    rest();
    Command command = Command::shell("trap '' TERM; while :; do sleep 1000; done");
    command.timeout = milliseconds(200);
    const double took = microseconds([&] {
      const codeexec::Result result = executor.run(command);
      if (result.outcome != Outcome::timed_out || !result.message.empty())
        fail("timeout", result.summary() + " " + result.message);
    });
    // After the timeout and kill_grace.
    late.push_back(took / 1000 - 300);
  }
  std::printf("known to be dead after the end of kill_grace: %.1f ms\n", median(late));
  gate("death after the end of kill_grace, ms", median(late), "<=", 50);
}

void measure_held_output(int rounds) {
  const ContainerExecutor alone = executor_with(1);
  const ContainerExecutor beside = executor_with(1);
  Command holder = Command::shell("sleep 1000 & echo started; wait");
  holder.background = true;
  const codeexec::Execution holds = beside.start(holder);
  std::vector<double> usual;
  std::vector<double> held;
  for (int i = 0; i < rounds; ++i) {
    rest();
    usual.push_back(microseconds([&] { run_true(alone); }) / 1000);
    rest();
    held.push_back(microseconds([&] { run_true(beside); }) / 1000);
  }
  if (holds.done()) fail("a background command", holds.wait().summary());
  std::printf("a command beside a child that holds its output: %.2f ms; alone: %.2f ms\n",
              median(held), median(usual));
  gate("beside a child that holds its output / alone", median(held) / median(usual), "<=", 1.5);

  // After a command that left such a child, which is killed with it.
  std::vector<double> after;
  for (int i = 0; i < rounds; ++i) {
    rest();
    if (!alone.run("sleep 1000 & echo started").succeeded()) fail("a command", "it failed");
    rest();
    after.push_back(microseconds([&] { run_true(alone); }) / 1000);
  }
  std::printf("a command after one that left a child: %.2f ms\n", median(after));
  gate("after one that left a child / alone", median(after) / median(usual), "<=", 1.5);
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
  if (!std::getenv("CODEEXEC_TEST_DOCKER")) {
    std::puts("SKIPPED: no container engine for tests (CODEEXEC_TEST_DOCKER is not set)");
    return 0;
  }
  const int rounds = quick ? 7 : 21;
  measure_commands(1, rounds);
  measure_commands(0, rounds);
  measure_output(std::uint64_t{100} << 20, quick ? 3 : 7);
  measure_timeout(quick ? 3 : 9);
  measure_held_output(rounds);
  return gates_hold ? 0 : 1;
}
