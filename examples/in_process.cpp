// The library inside a program: runs commands under limits and a policy, streams the output of one,
// cancels it, and lets another run in the background.
//
//   c++ -std=c++17 -I. examples/in_process.cpp -o in_process -pthread
//
// Prints each result and its audit record, the live output until the cancel, and the output of the
// job in the background.
#define CODEEXEC_IMPLEMENTATION
#include "codeexec.hpp"

#include <cstdio>

int main() {
  // Every option has a safe default; create() checks them all and names the one that is wrong.
  codeexec::LocalOptions options;
  options.workspace = "/tmp";
  options.roots = {{"/tmp"}};
  options.timeout = std::chrono::seconds(10);
  options.policy.blocked = {"git push.*"};
  options.on_audit = [](const codeexec::AuditRecord& record) {
    std::printf("audit: %s\n", to_json(record).dump().c_str());
  };
  auto here = codeexec::LocalExecutor::create(options);
  if (!here) {
    std::fprintf(stderr, "%s\n", here.error().message.c_str());
    return 2;
  }

  // Run to the end. What a command can cause is data, not an error.
  for (const char* script : {"pwd; echo oops >&2; exit 3", "git push --force", "cd / && kill $$"}) {
    const codeexec::Result result = here->run(script);
    std::printf("> %s\n%s\n%s%s", script, result.summary().c_str(), result.out.c_str(),
                result.err.c_str());
  }

  // The same in a sandbox: only the workspace can be changed, and there is no network.
  options.sandbox.mode = codeexec::SandboxMode::best_effort;
  options.sandbox.network = codeexec::Network::none;
  const auto confined = codeexec::LocalExecutor::create(options);
  if (!confined) {
    std::fprintf(stderr, "%s\n", confined.error().message.c_str());
    return 2;
  }
  for (const std::string& missing : confined->sandbox_report().missing)
    std::printf("not enforced here: %s\n", missing.c_str());
  std::printf("%s", confined->run("echo network $CODEEXEC_NETWORK, home $HOME").out.c_str());

  // No shell: the arguments arrive as they are. Input, time limit and variables are its own.
  codeexec::Command sort = codeexec::Command::program({"sort", "-r"});
  sort.input = "apple\nbanana\n";
  sort.timeout = std::chrono::seconds(2);
  std::printf("%s", here->run(sort).out.c_str());

  // Start, stream, cancel. The output arrives on the library's thread as it is printed.
  codeexec::CancelToken enough;
  codeexec::Command ticker = codeexec::Command::shell("while :; do echo tick; sleep 0.1; done");
  ticker.cancel = enough;
  ticker.on_output = [enough, ticks = 0](codeexec::Stream, std::string_view bytes) mutable {
    std::printf("live: %.*s", static_cast<int>(bytes.size()), bytes.data());
    if (++ticks == 3) enough.cancel();
  };
  const codeexec::Execution running = here->start(ticker);
  std::printf("started process %d\n", running.pid());
  const codeexec::Result result = running.wait();
  std::printf("%s\n", result.summary().c_str());

  // A job, such as a server or a training, runs in the background. It ends with `jobs` at the
  // latest.
  codeexec::Jobs jobs(*here);
  const auto job = jobs.start(
      codeexec::Command::shell("for i in 1 2 3; do echo epoch $i; sleep 0.1; done; sleep 600"));
  if (!job) {
    std::fprintf(stderr, "%s\n", job.error().message.c_str());
    return 1;
  }
  codeexec::Jobs::Wait third;
  third.pattern = *codeexec::Regex::compile("epoch 3");
  const auto waited = jobs.wait(job->id, third);
  std::printf("%s", jobs.read(job->id)->out.text.c_str());
  const auto killed = jobs.kill(job->id);
  if (!waited || !killed) return 1;
  return result.outcome == codeexec::Outcome::cancelled ? 0 : 1;
}
