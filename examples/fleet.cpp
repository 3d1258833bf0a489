// Runs many agents at once, each in a place of its own. Prints their results as they come, then one
// table.
//
//   c++ -std=c++17 -I. examples/fleet.cpp -o fleet -pthread
//   ./fleet command codeexec-mcp --place          wherever this command starts a codeexec-mcp
//   ./fleet ssh box                               another machine, which also sees this folder
//   ./fleet container codeexec/runtime:latest     a container for each
//   ./fleet slurm mem=1G partition=debug          a job of Slurm for each
//   ./fleet kubernetes IMAGE namespace=agents     a pod of Kubernetes for each
//
// Options stand before the kind of place:
//   --agents N       how many agents (32)
//   --pool N         how many places are kept ready (0), with slurm and kubernetes
//   --program PATH   of codeexec-mcp in the place
//   --bring FILE     a static codeexec-mcp, which is copied into the place
//
// The exit status is 1 if a command has failed, and 2 if the command line is wrong.
#define CODEEXEC_IMPLEMENTATION
#include "codeexec.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace {

const char* const commands[] = {"uname -n", "echo $((6 * 7))", "seq 100000 | sort -rn | head -n 1"};

struct Fleet {
  std::string kind = {};
  std::vector<std::string> words = {};   // after the kind
  std::string program = "codeexec-mcp";  // empty: `bring` is copied there
  std::string bring = {};
  std::optional<codeexec::PlacePool> pool = {};
};

// One line of the table.
struct Row {
  std::string place = "-";
  int ran = 0;
  int succeeded = 0;
  double seconds = 0;
};

template <class Options>
void settle(Options& options, const Fleet& fleet, const std::string& agent) {
  options.agent_id = agent;
  options.agent = fleet.program;
  options.start_timeout = std::chrono::minutes(10);
}

// Makes jobs or pods; null after printing why it cannot.
std::shared_ptr<codeexec::PlaceEngine> engine_for(const Fleet& fleet, const std::string& agent) {
  codeexec::SlurmOptions slurm;
  settle(slurm, fleet, agent);
  slurm.options = fleet.words;
  codeexec::KubernetesOptions kubernetes;
  settle(kubernetes, fleet, agent);
  if (!fleet.words.empty()) {
    kubernetes.image = fleet.words[0];
    kubernetes.options.assign(fleet.words.begin() + 1, fleet.words.end());
  }
  const auto engine =
      fleet.kind == "slurm" ? codeexec::slurm_jobs(slurm) : codeexec::kubernetes_pods(kubernetes);
  if (!engine) std::fprintf(stderr, "%s\n", engine.error().message.c_str());
  return engine ? *engine : nullptr;
}

bool has_engine(const Fleet& fleet) { return fleet.kind == "slurm" || fleet.kind == "kubernetes"; }

template <class T>
std::unique_ptr<codeexec::Executor> kept(const codeexec::Expected<T>& made) {
  if (made) return std::make_unique<T>(*made);
  std::fprintf(stderr, "%s\n", made.error().message.c_str());
  return nullptr;
}

// Returns an executor with a place of its own; null after printing why there is none.
std::unique_ptr<codeexec::Executor> executor_for(const Fleet& fleet, const std::string& agent) {
  if (fleet.kind == "container") {
    codeexec::ContainerExecutorOptions options;
    options.agent_id = agent;
    if (!fleet.words.empty()) options.container.image = fleet.words[0];
    return kept(codeexec::ContainerExecutor::create(options));
  }
  codeexec::PlaceOptions options;
  options.agent_id = agent;
  options.agent = fleet.bring;
  if (has_engine(fleet)) {
    options.engine = fleet.pool ? fleet.pool->take() : engine_for(fleet, agent);
    if (!options.engine) return nullptr;
    if (fleet.kind == "kubernetes") {
      options.workspace = "/workspace";
      options.workspace_mode = codeexec::PlaceWorkspace::remote;
    }
  } else if (fleet.kind == "ssh") {
    const auto words =
        codeexec::ssh_transport(fleet.words.empty() ? "" : fleet.words[0], fleet.program);
    if (!words) return std::fprintf(stderr, "%s\n", words.error().message.c_str()), nullptr;
    options.transport = *words;
  } else {
    options.transport = fleet.words;
  }
  return kept(codeexec::PlaceExecutor::create(options));
}

// The work of one agent. A real program would ask a model for each command.
void work(const Fleet& fleet, const std::string& agent, Row& row, std::mutex& printing) {
  const auto begin = std::chrono::steady_clock::now();
  const std::unique_ptr<codeexec::Executor> place = executor_for(fleet, agent);
  for (const char* const command : commands) {
    if (!place) break;
    const codeexec::Result result = place->run(command);
    row.place = result.container.empty() ? result.place : result.container;
    ++row.ran;
    row.succeeded += result.succeeded() ? 1 : 0;
    const std::lock_guard<std::mutex> lock(printing);
    std::printf("%s$ %s\n%s%s%s%s%s\n", agent.c_str(), command, result.out.c_str(),
                result.err.c_str(), result.summary().c_str(), result.message.empty() ? "" : ": ",
                result.message.c_str());
  }
  row.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

int main(int argc, char** argv) {
  Fleet fleet;
  std::size_t agents = 32;
  std::size_t ready = 0;
  int at = 1;
  for (; at + 1 < argc && argv[at][0] == '-'; at += 2) {
    const std::string option = argv[at];
    if (option == "--agents")
      agents = std::strtoul(argv[at + 1], nullptr, 10);
    else if (option == "--pool")
      ready = std::strtoul(argv[at + 1], nullptr, 10);
    else if (option == "--program")
      fleet.program = argv[at + 1];
    else if (option == "--bring")
      fleet.bring = argv[at + 1], fleet.program.clear();
    else
      break;  // not a kind of place either, which is reported below
  }
  if (at < argc) fleet.kind = argv[at++];
  fleet.words.assign(argv + at, argv + argc);
  if (fleet.kind != "command" && fleet.kind != "ssh" && fleet.kind != "container" &&
      !has_engine(fleet))
    return std::fputs("fleet [--agents N] [--pool N] [--program PATH] KIND [WORD...]\n", stderr), 2;
  if (ready > 0 && has_engine(fleet)) {
    const auto pool = codeexec::PlacePool::create(
        [&fleet] { return engine_for(fleet, "fleet"); }, ready,
        [](const codeexec::Error& error) { std::fprintf(stderr, "%s\n", error.message.c_str()); });
    if (!pool) return std::fprintf(stderr, "%s\n", pool.error().message.c_str()), 2;
    fleet.pool = *pool;
  }

  std::vector<Row> rows(agents);
  std::vector<std::thread> threads;
  std::mutex printing;
  for (std::size_t i = 0; i < agents; ++i)
    threads.emplace_back([&, i] { work(fleet, "agent-" + std::to_string(i), rows[i], printing); });
  for (std::thread& thread : threads) thread.join();

  int failed = 0;
  std::printf("\n%-10s  %-42s  %8s  %4s  %8s\n", "agent", "place", "commands", "ok", "seconds");
  for (std::size_t i = 0; i < agents; ++i) {
    const Row& row = rows[i];
    const std::string agent = "agent-" + std::to_string(i);
    std::printf("%-10s  %-42s  %8d  %4d  %8.2f\n", agent.c_str(), row.place.c_str(), row.ran,
                row.succeeded, row.seconds);
    if (row.ran == 0 || row.succeeded < row.ran) ++failed;
  }
  return failed == 0 ? 0 : 1;
}
