// What a command in a container costs beside `docker exec` and a command on this host, which take
// turns with it: one after a rest, one right after another, 16 at once, output and input, the first
// one, the end by a timeout, and commands beside a child that holds the output.
//
//   sh tests/bench/run.sh --docker docker
//
// Needs an engine for tests (CODEEXEC_TEST_DOCKER=1 and DOCKER_HOST, see engine.sh) with the
// image codeexec-test/debian, and an agent that runs there (CODEEXEC_PLACE_AGENT). --quick: fewer
// rounds. Ends with status 1 and a line "GATE FAILED: ..." when a promise is not kept.
#include "codeexec.hpp"

#include <dirent.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "executors.hpp"
#include "floor.hpp"

namespace {

using codeexec::Command;
using codeexec::ContainerExecutor;
using codeexec::Outcome;
using std::chrono::milliseconds;

// All that is measured here.
struct Name {
  const char* what;
  const char* rival;
};
const Name rows[] = {
    {"a command in a container, 200 ms after the last one", "docker exec"},
    {"a command in a container, right after the last one", "docker exec"},
    {"a command in a container, 200 ms after the last one", "LocalExecutor"},
    {"a command in a container, right after the last one", "LocalExecutor"},
    {"16 commands at once in a container", "docker exec"},
    {"the first command in a container", "docker run -d, docker exec"},
    {"100 MiB of output from a container", "docker exec"},
    {"100 MiB of input into a container", "docker exec -i"},
    {"killed in its container, known after the end of the grace", ""},
    {"a command in a container beside a child that holds its output", "alone"},
    {"a command in a container after one that left a child", "alone"},
    {"memory of the docker client of an agent", ""},
};

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

ContainerExecutor new_executor() {
  codeexec::ContainerExecutorOptions options;
  options.container.image = "codeexec-test/debian:latest";
  options.container.image_policy = codeexec::ImagePolicy::never;
  options.container.user = "1000:1000";
  if (const char* const agent = std::getenv("CODEEXEC_PLACE_AGENT"))
    options.container.agent = agent;
  options.workspace = "/tmp";
  options.kill_grace = milliseconds(100);
  options.max_output = 65536;
  auto made = ContainerExecutor::create(options);
  if (!made) fail("ContainerExecutor", made.error().message);
  const auto ready = made->ensure();
  if (!ready) fail("container", ready.error().message);
  return *std::move(made);
}

// The engine's own way, in the same container.
class Rival {
 public:
  explicit Rival(const ContainerExecutor& executor) : name_(executor.container_name()) {}
  std::uint64_t run(const std::vector<const char*>& words) const {
    Argv argv = {docker_.c_str(), "exec", "-i", "-u", "1000:1000", name_.c_str()};
    argv.insert(argv.end(), words.begin(), words.end());
    argv.push_back(nullptr);
    return read_bare(argv);
  }

 private:
  std::string docker_ = program_path("docker");
  std::string name_;
};

void measure_commands(bool rests, int rounds) {
  const ContainerExecutor executor = new_executor();
  const codeexec::LocalExecutor host = local_executor();
  const Rival rival(executor);
  run_true(executor);
  rest();
  Samples ours;
  Samples theirs;
  Samples local;
  const auto wait = [&](const codeexec::Executor& next) {
    if (rests)
      rest();
    else
      run_true(next);
  };
  for (int i = 0; i < rounds; ++i) {
    theirs.add(microseconds([&] { rival.run({"true"}); }) / 1000);
    wait(executor);
    ours.add(microseconds([&] { run_true(executor); }) / 1000);
    wait(host);
    local.add(microseconds([&] { run_true(host); }) / 1000);
    if (rests) rest();
  }
  const Name* const row = &rows[rests ? 0 : 1];
  report(row[0].what, "ms", ours, row[0].rival, theirs, {"<=", 0.04});
  report(row[2].what, "ms", ours, row[2].rival, local, {"<=", 2, best_ratio(ours, local)});
}

// Each of them in a thread of its own; in milliseconds until the last has ended.
template <class Work>
double all_at_once(const Work& work) {
  std::vector<std::thread> threads;
  return microseconds([&] {
           for (int i = 0; i < 16; ++i) threads.emplace_back(work);
           for (std::thread& thread : threads) thread.join();
         }) /
         1000;
}

void measure_parallel(int rounds) {
  const ContainerExecutor executor = new_executor();
  const Rival rival(executor);
  run_true(executor);
  Samples ours;
  Samples theirs;
  for (int i = 0; i < rounds; ++i) {
    theirs.add(all_at_once([&] { rival.run({"true"}); }));
    ours.add(all_at_once([&] { run_true(executor); }));
  }
  report(rows[4].what, "ms", ours, rows[4].rival, theirs, {"<=", 0.2});
}

// From nothing, also without a container.
void measure_first(int rounds) {
  Samples ours;
  Samples theirs;
  const std::string docker = program_path("docker");
  for (int i = 0; i < rounds; ++i) {
    const std::string name = "codeexec-bench-" + std::to_string(::getpid());
    theirs.add(microseconds([&] {
                 read_bare({docker.c_str(), "run", "-d", "--init", "--network", "none", "--name",
                            name.c_str(), "codeexec-test/debian:latest", "sleep", "1000", nullptr});
                 read_bare({docker.c_str(), "exec", name.c_str(), "true", nullptr});
               }) /
               1000);
    read_bare({docker.c_str(), "rm", "-f", name.c_str(), nullptr});
    std::optional<ContainerExecutor> executor;
    ours.add(microseconds([&] {
               executor.emplace(new_executor());
               run_true(*executor);
             }) /
             1000);
  }
  report(rows[5].what, "ms", ours, rows[5].rival, theirs, {"<=", 1.05});
}

void measure_output(std::uint64_t bytes, int rounds) {
  const ContainerExecutor executor = new_executor();
  const Rival rival(executor);
  const std::string size = std::to_string(bytes);
  run_true(executor);
  Samples ours;
  Samples theirs;
  for (int i = 0; i < rounds; ++i) {
    rest();
    theirs.add(microseconds([&] {
      if (rival.run({"head", "-c", size.c_str(), "/dev/zero"}) != bytes)
        fail("docker exec", "bytes are missing");
    }));
    rest();
    ours.add(microseconds([&] {
      const codeexec::Result result =
          executor.run(Command::program({"head", "-c", size, "/dev/zero"}));
      if (result.out_counts.total_bytes != bytes) fail("output", result.summary());
    }));
  }
  const double mebibytes = static_cast<double>(bytes) / (1 << 20) * 1e6;
  report(rows[6].what, "MiB/s", ours.rate(mebibytes), rows[6].rival, theirs.rate(mebibytes),
         {">=", 0.9});
}

// Each counts what came.
void measure_input(std::uint64_t bytes, int rounds) {
  const ContainerExecutor executor = new_executor();
  const Rival rival(executor);
  const std::string size = std::to_string(bytes) + "\n";
  const std::string input(bytes, 'x');
  const int file = ::memfd_create("input", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) fail("memfd_create");
  const int usual = ::fcntl(0, F_DUPFD_CLOEXEC, 3);
  run_true(executor);
  Samples ours;
  Samples theirs;
  for (int i = 0; i < rounds; ++i) {
    rest();
    // It inherits this program's.
    ::lseek(file, 0, SEEK_SET);
    ::dup2(file, 0);
    theirs.add(microseconds([&] {
      if (rival.run({"wc", "-c"}) != size.size()) fail("docker exec", "bytes are missing");
    }));
    ::dup2(usual, 0);
    rest();
    Command command = Command::program({"wc", "-c"});
    command.input = input;
    ours.add(microseconds([&] {
      const codeexec::Result result = executor.run(command);
      if (result.out != size) fail("input", result.summary() + " " + result.message);
    }));
  }
  ::close(file);
  ::close(usual);
  const double mebibytes = static_cast<double>(bytes) / (1 << 20) * 1e6;
  report(rows[7].what, "MiB/s", ours.rate(mebibytes), rows[7].rival, theirs.rate(mebibytes),
         {">=", 0.9});
}

void measure_timeout(int rounds) {
  const ContainerExecutor executor = new_executor();
  run_true(executor);
  Samples late;
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
    late.add(took / 1000 - 300);
  }
  report(rows[8].what, "ms", late, {"<=", 20});
}

void measure_held_output(int rounds) {
  const ContainerExecutor alone = new_executor();
  const ContainerExecutor beside = new_executor();
  Command holder = Command::shell("sleep 1000 & echo started; wait");
  holder.background = true;
  const codeexec::Execution holds = beside.start(holder);
  Samples usual;
  Samples held;
  for (int i = 0; i < rounds; ++i) {
    rest();
    usual.add(microseconds([&] { run_true(alone); }) / 1000);
    rest();
    held.add(microseconds([&] { run_true(beside); }) / 1000);
  }
  if (holds.done()) fail("a background command", holds.wait().summary());
  report(rows[9].what, "ms", held, rows[9].rival, usual, {"<=", 1.5});

  // After a command that left such a child, which is killed with it.
  Samples after;
  for (int i = 0; i < rounds; ++i) {
    rest();
    if (!alone.run("sleep 1000 & echo started").succeeded()) fail("a command", "it failed");
    rest();
    after.add(microseconds([&] { run_true(alone); }) / 1000);
  }
  report(rows[10].what, "ms", after, rows[10].rival, usual, {"<=", 1.5});
}

// Resident memory in bytes of this program's children that are docker clients.
double memory_of_clients() {
  double total = 0;
  DIR* const processes = ::opendir("/proc");
  if (!processes) fail("/proc");
  while (const dirent* const entry = ::readdir(processes)) {
    const std::string path = std::string("/proc/") + entry->d_name + "/stat";
    std::FILE* const file = std::fopen(path.c_str(), "re");
    if (!file) continue;
    int parent = 0;
    long pages = 0;
    // pid (docker) state ppid, 19 more, rss
    const int fields = std::fscanf(file,
                                   "%*d (docker) %*c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                                   "%*s %*s %*s %*s %*s %*s %*s %*s %*s %ld",
                                   &parent, &pages);
    std::fclose(file);
    if (fields == 2 && parent == ::getpid())
      total += static_cast<double>(pages) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  }
  ::closedir(processes);
  return total;
}

// Beside the client that holds the container itself.
void measure_client() {
  const ContainerExecutor executor = new_executor();
  const double before = memory_of_clients();
  run_true(executor);
  rest();
  report(rows[11].what, "MB", figure((memory_of_clients() - before) / 1e6));
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = has_argument(argc, argv, "--quick");
  if (!std::getenv("CODEEXEC_TEST_DOCKER")) {
    for (const Name& row : rows)
      skipped(row.what, row.rival,
              "no container engine for tests: run.sh --docker, or CODEEXEC_TEST_DOCKER");
    return 0;
  }
  const int rounds = quick ? 5 : 21;
  measure_commands(true, rounds);
  measure_commands(false, rounds);
  measure_parallel(quick ? 3 : 21);
  measure_first(quick ? 3 : 11);
  measure_output(std::uint64_t{100} << 20, quick ? 3 : 7);
  measure_input(std::uint64_t{100} << 20, quick ? 3 : 7);
  measure_timeout(quick ? 3 : 9);
  measure_held_output(rounds);
  measure_client();
  return finish();
}
