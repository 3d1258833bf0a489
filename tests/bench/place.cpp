// What a command in a place costs: over ssh on this machine beside a new `ssh HOST true`, over a
// wire with 20 ms there and back, 200 at once, and a place where nothing runs; in a job of Slurm,
// where $SLURM_CONF leads to one (helpers/slurm.sh), and in a pod, where there is a Kubernetes of
// the tests (helpers/kubernetes.sh). The agent is $CODEEXEC_PLACE_AGENT, or this program.
//
// Needs openssh-server, and for the wire root and /dev/net/tun (helpers/wire.hpp). --quick: fewer
// rounds. Ends with status 1 and a line "GATE FAILED: ..." when a promise is not kept.
#include "codeexec.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "../helpers/sshd.hpp"
#include "../helpers/wire.hpp"
#include "executors.hpp"
#include "floor.hpp"

namespace {

using codeexec::Command;
using codeexec::PlaceExecutor;
using std::chrono::milliseconds;
using Strings = std::vector<std::string>;

// All that is measured here.
struct Name {
  const char* what;
  const char* rival;
};
const Name rows[] = {
    {"a command over ssh", "ssh HOST true"},
    {"a command over ssh, 20 ms away", "one round trip"},
    {"32 MiB of output over ssh, 20 ms away", "ssh HOST head"},
    {"a command in a place on this host, right after the last one", "LocalExecutor"},
    {"an idle place: memory of its agent", ""},
    {"an idle place: processor time of its agent in 2 s", ""},
    {"200 commands at once in one place, 1 MiB of output each", "by LocalExecutor"},
    {"200 commands at once in one place: memory of the agent", ""},
    {"200 commands at once in one place: memory of this end", ""},
    {"a command in a job of Slurm", "srun --overlap true"},
    {"the first copy of a workspace of 10,000 files", "tar | tar"},
    {"the same over ssh", "tar | ssh tar"},
    {"a command after which three of 10,000 files are copied, and three before", ""},
    {"32 places served by one program: its memory", ""},
    {"a first command whose place was kept ready, in a job of Slurm", "one that waits for its job"},
    {"a server that is killed: until its 3 jobs of Slurm are gone", ""},
    {"a command in a pod of Kubernetes", "kubectl exec POD -- true"},
};

std::string agent() {
  if (const char* const named = std::getenv("CODEEXEC_PLACE_AGENT")) return named;
  char path[4096];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path);
  if (size < 0) fail("/proc/self/exe");
  return std::string(path, static_cast<std::size_t>(size));
}

codeexec::PlaceOptions options_for(Strings transport) {
  codeexec::PlaceOptions options;
  options.transport = std::move(transport);
  options.workspace = "/tmp";
  options.max_output = 65536;
  return options;
}

PlaceExecutor place_at(Strings transport) {
  auto made = PlaceExecutor::create(options_for(std::move(transport)));
  if (!made) fail("PlaceExecutor", made.error().message);
  return *std::move(made);
}

// ssh ---------------------------------------------------------------------------------------------

// At one end of a wire, or here.
class Server {
 public:
  explicit Server(const std::string& address = "127.0.0.1", int port = support::free_port(),
                  Strings there = {}, Strings here = {})
      : sshd_(root(), address, port, std::move(there), std::move(here)) {
    if (!sshd_.problem().empty()) fail("sshd", sshd_.problem());
  }
  Strings words(const Strings& last) const {
    Strings all = sshd_.client();
    all.insert(all.end(), {"-T", "-o", "BatchMode=yes", "--", "box"});
    all.insert(all.end(), last.begin(), last.end());
    return all;
  }
  PlaceExecutor place() const { return place_at(words({agent(), "--place"})); }

 private:
  static std::string root() {
    const char* const root = std::getenv("ROOT");
    return root ? root : ".";
  }

  support::Sshd sshd_;
};

// For a program that is looked for in PATH.
struct Words {
  explicit Words(Strings given) : words(std::move(given)) {
    argv.push_back("/usr/bin/env");
    for (const std::string& word : words) argv.push_back(word.c_str());
    argv.push_back(nullptr);
  }
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;
  const Strings words;
  Argv argv = {};
};

void measure_ssh(int rounds) {
  const Server server;
  const PlaceExecutor there = server.place();
  const Words rival(server.words({"true"}));
  run_true(there);
  Samples ours;
  Samples theirs;
  for (int i = 0; i < rounds; ++i) {
    theirs.add(microseconds([&] { read_bare(rival.argv); }) / 1000);
    for (int j = 0; j < 3; ++j) ours.add(microseconds([&] { run_true(there); }) / 1000);
  }
  report(rows[0].what, "ms", ours, rows[0].rival, theirs, {"<=", 0.05});
}

// Of a connection that is refused.
double round_trip(const support::Wire& wire) {
  const int fd = wire.socket();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(9);
  ::inet_pton(AF_INET, support::Wire::addresses[1], &address.sin_addr);
  const double took = microseconds([&] {
    if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 ||
        errno != ECONNREFUSED)
      fail("connect");
  });
  ::close(fd);
  return took / 1000;
}

void measure_distance(int rounds, int long_rounds) {
  support::Wire wire;
  if (!wire.problem().empty()) {
    for (const Name& row : {rows[1], rows[2]}) skipped(row.what, row.rival, wire.problem());
    return;
  }
  wire.delay(milliseconds(10));
  const Server server(support::Wire::addresses[1], 22, wire.at(1), wire.at(0));
  const PlaceExecutor there = server.place();
  run_true(there);
  Samples ours;
  Samples theirs;
  for (int i = 0; i < rounds; ++i) {
    theirs.add(round_trip(wire));
    ours.add(microseconds([&] { run_true(there); }) / 1000);
  }
  // The promise is about what is added to a round trip.
  report(rows[1].what, "ms", ours, rows[1].rival, theirs,
         {"<=", 3, ours.median() - theirs.median()});

  constexpr std::uint64_t bytes = std::uint64_t{32} << 20;
  const Strings head = {"head", "-c", std::to_string(bytes), "/dev/zero"};
  const Words rival(server.words(head));
  Samples our_output;
  Samples their_output;
  for (int i = 0; i < long_rounds; ++i) {
    their_output.add(microseconds([&] {
      if (read_bare(rival.argv) != bytes) fail("ssh", "bytes are missing");
    }));
    our_output.add(microseconds([&] {
      const codeexec::Result result = there.run(Command::program(head));
      if (result.out_counts.total_bytes != bytes) fail("output", result.summary());
    }));
  }
  const double mebibytes = static_cast<double>(bytes) / (1 << 20) * 1e6;
  report(rows[2].what, "MiB/s", our_output.rate(mebibytes), rows[2].rival,
         their_output.rate(mebibytes), {">=", 0.5});
}

// here --------------------------------------------------------------------------------------------

// A line of /proc/PID/smaps_rollup, in bytes.
double memory_of(const std::string& pid, const Strings& lines) {
  std::FILE* const file = std::fopen(("/proc/" + pid + "/smaps_rollup").c_str(), "re");
  if (!file) fail("smaps_rollup");
  double total = 0;
  char line[256];
  while (std::fgets(line, sizeof line, file))
    for (const std::string& name : lines)
      if (std::strncmp(line, (name + ":").c_str(), name.size() + 1) == 0)
        total += std::strtod(line + name.size() + 1, nullptr) * 1024;
  std::fclose(file);
  return total;
}
double private_memory(const std::string& pid) {
  return memory_of(pid, {"Private_Clean", "Private_Dirty"});
}

// Its processor time so far, in microseconds.
double time_of(const std::string& pid) {
  std::FILE* const file = std::fopen(("/proc/" + pid + "/schedstat").c_str(), "re");
  double nanoseconds = 0;
  if (!file || std::fscanf(file, "%lf", &nanoseconds) != 1) fail("schedstat");
  std::fclose(file);
  return nanoseconds / 1000;
}

// A place on this host, whose agent has left its number in a file.
class Here {
 public:
  PlaceExecutor place() const {
    return place_at({"sh", "-c", "echo $$ > \"$0\"; exec \"$1\" --place", file(), agent()});
  }
  std::string pid() const {
    const std::string text = support::read_file(file());
    return text.substr(0, text.find('\n'));
  }

 private:
  std::string file() const { return folder_ / "pid"; }
  support::TempDir folder_ = {};
};

void measure_commands(int rounds) {
  const Here here;
  const PlaceExecutor there = here.place();
  const codeexec::LocalExecutor rival = local_executor();
  run_true(there);
  run_true(rival);
  Samples ours;
  Samples theirs;
  for (int i = 0; i < rounds; ++i) {
    theirs.add(microseconds([&] { run_true(rival); }) / 1000);
    ours.add(microseconds([&] { run_true(there); }) / 1000);
  }
  report(rows[3].what, "ms", ours, rows[3].rival, theirs, {"<=", 2, best_ratio(ours, theirs)});
}

void measure_idle() {
  const Here here;
  const PlaceExecutor there = here.place();
  for (int i = 0; i < 20; ++i) run_true(there);
  ::poll(nullptr, 0, 100);
  const double begin = time_of(here.pid());
  ::poll(nullptr, 0, 2000);
  const double used = time_of(here.pid()) - begin;
  // Its pages of the file count, too: where it runs nobody else has them.
  report(rows[4].what, "MB", figure(memory_of(here.pid(), {"Rss"}) / 1e6), {"<=", 3});
  report(rows[5].what, "us", figure(used), {"<=", 0});
}

// All of them have begun and wait; then each prints a mebibyte and ends. `meanwhile` is called when
// all have begun, and after the half of them have ended.
double run_many(const codeexec::Executor& executor, int count, const std::string& go,
                const std::function<void()>& meanwhile) {
  support::remove_all(go);
  Command command = Command::shell("echo ready; read x < \"$GO\"; head -c 1048576 /dev/zero");
  command.environment = {{"GO", go}};
  if (::mkfifo(go.c_str(), 0600) != 0) fail("mkfifo");
  std::vector<codeexec::Execution> all;
  for (int i = 0; i < count; ++i) all.push_back(executor.start(command));
  for (const codeexec::Execution& each : all)
    while (each.read(codeexec::Stream::out, 0).text.empty() && !each.done()) ::poll(nullptr, 0, 1);
  meanwhile();
  const double took = microseconds([&] {
    const int fd = ::open(go.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) fail("open");
    const std::string lines(static_cast<std::size_t>(count), '\n');
    if (::write(fd, lines.data(), lines.size()) < 0) fail("write");
    std::size_t ended = 0;
    for (const codeexec::Execution& each : all) {
      const codeexec::Result result = each.wait();
      if (!result.succeeded() || result.out_counts.total_bytes != 1048576 + 6)
        fail("one of many", result.summary() + " " + result.message);
      if (++ended == all.size() / 2) meanwhile();
    }
    ::close(fd);
  });
  return took / 1000;
}

void measure_many(int rounds) {
  constexpr int count = 200;
  const support::TempDir folder;
  const Here here;
  const PlaceExecutor there = here.place();
  const codeexec::LocalExecutor rival = local_executor();
  run_true(there);
  const double agent_before = private_memory(here.pid());
  const double before = private_memory("self");
  double agent_most = 0;
  double most = 0;
  Samples ours;
  Samples theirs;
  for (int i = 0; i < rounds; ++i) {
    ours.add(run_many(there, count, folder / "go", [&] {
      agent_most = std::max(agent_most, private_memory(here.pid()) - agent_before);
      most = std::max(most, private_memory("self") - before);
    }));
    theirs.add(run_many(rival, count, folder / "go", [] {}));
  }
  report(rows[6].what, "ms", ours, rows[6].rival, theirs);
  // The bound is 150 MiB for all of them, which only those reach whose output nobody takes.
  constexpr double bound = count * 0.25;
  report(rows[7].what, "MiB", figure(agent_most / (1 << 20)), {"<=", bound});
  report(rows[8].what, "MiB", figure(most / (1 << 20)), {"<=", bound});
}

// Beside a step of the same job for each command.
void measure_slurm(int rounds) {
  if (!std::getenv("SLURM_CONF"))
    return skipped(rows[9].what, rows[9].rival, "$SLURM_CONF is not set");
  codeexec::SlurmOptions slurm;
  slurm.agent = agent();
  codeexec::PlaceOptions options = options_for({});
  const auto engine = codeexec::slurm_jobs(slurm);
  if (!engine) fail("slurm_jobs", engine.error().message);
  options.engine = *engine;
  const auto there = PlaceExecutor::create(options);
  if (!there) fail("PlaceExecutor", there.error().message);
  const codeexec::Result job = there->run("printf %s \"$SLURM_JOB_ID\"");
  if (!job.succeeded()) fail("a command in a job", job.message);
  const Words rival({"srun", "--jobid", job.out, "--overlap", "true"});
  Samples ours;
  Samples theirs;
  for (int i = 0; i < rounds; ++i) {
    theirs.add(microseconds([&] { read_bare(rival.argv); }) / 1000);
    for (int j = 0; j < 3; ++j) ours.add(microseconds([&] { run_true(*there); }) / 1000);
  }
  report(rows[9].what, "ms", ours, rows[9].rival, theirs, {"<=", 1.0 / 15});
}

// 10,000 files of up to 16 KiB in 500 folders.
void fill(const std::string& workspace) {
  for (int folder = 0; folder < 500; ++folder) {
    const std::string path =
        workspace + "/" + std::to_string(folder % 20) + "/" + std::to_string(folder);
    support::make_directories(path);
    for (int file = 0; file < 20; ++file)
      support::write_file(path + "/file" + std::to_string(file),
                          std::string(static_cast<std::size_t>((folder * 20 + file) * 37 % 16384),
                                      static_cast<char>('a' + file)));
  }
}

// A place whose copy lies below `cache`: the workspace's own path is taken.
PlaceExecutor copy_at(const std::string& workspace, const std::string& cache, Strings words) {
  words.insert(words.end(), {"env", "XDG_CACHE_HOME=" + cache, agent(), "--place"});
  codeexec::PlaceOptions options = options_for(std::move(words));
  options.workspace = workspace;
  options.workspace_mode = codeexec::PlaceWorkspace::copy;
  auto made = PlaceExecutor::create(options);
  if (!made) fail("PlaceExecutor", made.error().message);
  return *std::move(made);
}

void measure_first_copy(const Name& row, int rounds, const std::string& workspace,
                        const Strings& words) {
  std::string wire;
  for (const std::string& word : words) wire += "'" + word + "' ";
  Samples ours;
  Samples theirs;
  for (int i = 0; i < rounds; ++i) {
    const support::TempDir there;
    const Words rival({"sh", "-c",
                       "tar -C \"$0\" -cf - . | " + wire + "tar -C " + there.path() + " -xf -",
                       workspace});
    theirs.add(microseconds([&] { read_bare(rival.argv); }) / 1000);
    const support::TempDir cache;
    const PlaceExecutor place = copy_at(workspace, cache.path(), words);
    ours.add(microseconds([&] { run_true(place); }) / 1000);
  }
  report(row.what, "ms", ours, row.rival, theirs, {"<=", 1.3});
}

void measure_copy(int rounds) {
  const support::TempDir workspace;
  fill(workspace.path());
  measure_first_copy(rows[10], rounds, workspace.path(), {});
  if (support::Sshd::is_there()) {
    const Server server;
    measure_first_copy(rows[11], rounds, workspace.path(), server.words({}));
  } else {
    skipped(rows[11].what, rows[11].rival, "no sshd here (openssh-server)");
  }
  const support::TempDir cache;
  const PlaceExecutor place = copy_at(workspace.path(), cache.path(), {});
  run_true(place);
  Samples ours;
  for (int i = 0; i < 5 * rounds; ++i) {
    const std::string text = std::to_string(i);
    for (const char* name : {"/0/0/file1", "/7/67/file2", "/19/499/file3"})
      support::write_file(workspace.path() + name, text);
    ours.add(
        microseconds([&] {
          const codeexec::Result result = place.run(
              "cat 0/0/file1 7/67/file2 19/499/file3; echo x >> 0/0/file4; echo x >> 7/67/file5; "
              "echo x >> 19/499/file6");
          if (result.out != text + text + text || !result.notes.empty()) fail("copy", result.out);
        }) /
        1000);
  }
  report(rows[12].what, "ms", ours, {"<=", 200});
}

// One for each agent: all run a command that prints a mebibyte at once, twice.
void measure_fleet() {
  constexpr std::size_t count = 32;
  std::vector<std::unique_ptr<Here>> folders;
  std::vector<PlaceExecutor> places;
  for (std::size_t i = 0; i < count; ++i) {
    folders.push_back(std::make_unique<Here>());
    places.push_back(folders.back()->place());
  }
  const Command command = Command::program({"head", "-c", "1048576", "/dev/zero"});
  double most = 0;
  for (int round = 0; round < 2; ++round) {
    std::vector<codeexec::Execution> all;
    for (const PlaceExecutor& place : places) all.push_back(place.start(command));
    most = std::max(most, memory_of("self", {"Rss"}));
    for (const codeexec::Execution& each : all) {
      const codeexec::Result result = each.wait();
      if (!result.succeeded()) fail("one of many places", result.summary() + " " + result.message);
      most = std::max(most, memory_of("self", {"Rss"}));
    }
  }
  report(rows[13].what, "MB", figure(most / 1e6), {"<=", 200});
}

codeexec::SlurmOptions slurm_options() {
  codeexec::SlurmOptions slurm;
  slurm.agent = agent();
  return slurm;
}

std::shared_ptr<codeexec::PlaceEngine> new_job() {
  const auto engine = codeexec::slurm_jobs(slurm_options());
  if (!engine) fail("slurm_jobs", engine.error().message);
  return *engine;
}

// From making the executor to the end of its first command.
double first_command(std::shared_ptr<codeexec::PlaceEngine> engine) {
  codeexec::PlaceOptions options = options_for({});
  options.engine = std::move(engine);
  std::optional<PlaceExecutor> there;
  const double took = microseconds([&] {
    auto made = PlaceExecutor::create(options);
    if (!made) fail("PlaceExecutor", made.error().message);
    there.emplace(*std::move(made));
    run_true(*there);
  });
  return took / 1000;
}

void measure_pool(int rounds) {
  if (!std::getenv("SLURM_CONF"))
    return skipped(rows[14].what, rows[14].rival, "$SLURM_CONF is not set");
  const auto pool = codeexec::PlacePool::create(new_job, 1);
  if (!pool) fail("PlacePool", pool.error().message);
  Samples ours;
  Samples theirs;
  for (int i = 0; i < rounds; ++i) {
    while (pool->ready() == 0) ::poll(nullptr, 0, 1);
    ours.add(first_command(pool->take()));
    while (pool->ready() == 0) ::poll(nullptr, 0, 1);
    theirs.add(first_command(new_job()));
  }
  report(rows[14].what, "ms", ours, rows[14].rival, theirs);
}

// Of a program that has one job in use and two that are ready.
void measure_end(int rounds) {
  if (!std::getenv("SLURM_CONF"))
    return skipped(rows[15].what, rows[15].rival, "$SLURM_CONF is not set");
  Samples times;
  for (int i = 0; i < rounds; ++i) {
    int ready[2];
    if (::pipe(ready) != 0) fail("pipe");
    const pid_t child = ::fork();
    if (child == 0) {
      const auto pool = codeexec::PlacePool::create(new_job, 2);
      codeexec::PlaceOptions options = options_for({});
      options.engine = pool->take();
      const auto there = PlaceExecutor::create(options);
      run_true(*there);
      while (pool->ready() < 2) ::poll(nullptr, 0, 1);
      (void)!::write(ready[1], "", 1);
      for (;;) ::pause();
    }
    char byte = 0;
    if (child < 0 || ::read(ready[0], &byte, 1) != 1) fail("fork");
    ::close(ready[0]);
    ::close(ready[1]);
    ::kill(child, SIGKILL);
    times.add(microseconds([&] {
                ::waitpid(child, nullptr, 0);
                for (bool any = true; any;) {
                  const auto left = codeexec::slurm_places();
                  if (!left) fail("slurm_places", left.error().message);
                  any = false;
                  for (const codeexec::FoundPlace& place : *left)
                    any = any || place.pid == std::to_string(child);
                }
              }) /
              1000);
  }
  report(rows[15].what, "ms", times, {"<=", 30000});
}

// Beside a process of the same pod for each command. The pod gets this program, or the agent, if it
// is a static one.
void measure_kubernetes(int rounds) {
  if (!std::getenv("CODEEXEC_TEST_KUBERNETES"))
    return skipped(rows[16].what, rows[16].rival, "CODEEXEC_TEST_KUBERNETES is not set");
  codeexec::KubernetesOptions kubernetes;
  kubernetes.image = "localhost/busybox:1";
  kubernetes.agent.clear();
  codeexec::PlaceOptions options = options_for({});
  const auto engine = codeexec::kubernetes_pods(kubernetes);
  if (!engine) fail("kubernetes_pods", engine.error().message);
  options.engine = *engine;
  options.agent = agent();
  options.workspace = "/workspace";
  options.workspace_mode = codeexec::PlaceWorkspace::remote;
  const auto there = PlaceExecutor::create(options);
  if (!there) fail("PlaceExecutor", there.error().message);
  const codeexec::Result pod = there->run("printf %s \"$HOSTNAME\"");
  if (!pod.succeeded()) fail("a command in a pod", pod.message);
  const Words rival({"kubectl", "exec", pod.out, "--", "true"});
  Samples ours;
  Samples theirs;
  for (int i = 0; i < rounds; ++i) {
    theirs.add(microseconds([&] { read_bare(rival.argv); }) / 1000);
    for (int j = 0; j < 3; ++j) ours.add(microseconds([&] { run_true(*there); }) / 1000);
  }
  report(rows[16].what, "ms", ours, rows[16].rival, theirs, {"<=", 1.0 / 40});
}

}  // namespace

int main(int argc, char** argv) {
  if (has_argument(argc, argv, "--place")) return codeexec::place_main(0, 1);
  const bool quick = has_argument(argc, argv, "--quick");
  measure_commands(quick ? 51 : 301);
  measure_idle();
  measure_many(quick ? 1 : 5);
  measure_slurm(quick ? 5 : 31);
  measure_copy(quick ? 3 : 11);
  measure_pool(quick ? 3 : 21);
  measure_fleet();
  measure_end(quick ? 2 : 11);
  measure_kubernetes(quick ? 5 : 31);
  if (support::Sshd::is_there()) {
    measure_ssh(quick ? 5 : 31);
    measure_distance(quick ? 11 : 101, quick ? 1 : 5);
  } else {
    for (const Name& row : {rows[0], rows[1], rows[2]})
      skipped(row.what, row.rival, "no sshd here (openssh-server)");
  }
  return finish();
}
