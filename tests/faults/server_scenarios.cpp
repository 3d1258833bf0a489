// Scenarios of faults.cpp: a server with a client, and commands in containers.
#include "scenarios.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mutex>

#include "../helpers/fake_engine.hpp"
#include "region.hpp"

namespace faults {
namespace {

using codeexec::Expected;
using codeexec::Outcome;
using codeexec::Result;
using std::chrono::seconds;
using support::has;

// A client of a server that is this process, on descriptors 0 and 1 as usual.
class Client {
 public:
  explicit Client(const Place& place) : transcript_(place / "transcript") {
    int to[2];
    int from[2];
    int started[2];
    for (int* pipe : {to, from, started})
      if (::pipe2(pipe, O_CLOEXEC) != 0) support::fail("pipe", "");
    pid_ = ::fork();
    if (pid_ == 0) {
      const int file = ::open(transcript_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      ::signal(SIGPIPE, SIG_IGN);
      ::dup2(from[0], 0);
      ::dup2(to[1], 1);
      ::dup2(file, 2);
      ::execl("/bin/sh", "sh", "-c", conversation, static_cast<char*>(nullptr));
      ::_exit(127);
    }
    old_in_ = ::fcntl(0, F_DUPFD_CLOEXEC, 3);
    old_out_ = ::fcntl(1, F_DUPFD_CLOEXEC, 3);
    ::dup2(to[0], 0);
    ::dup2(from[1], 1);
    for (const int end : {to[0], to[1], from[0], from[1], started[1]}) ::close(end);
    // The calls before it executes its program are not those that are to fail.
    char byte = 0;
    while (::read(started[0], &byte, 1) < 0 && errno == EINTR) {
    }
    ::close(started[0]);
  }
  // What the server has answered.
  std::string finish() {
    ::dup2(old_in_, 0);
    ::dup2(old_out_, 1);
    ::close(old_in_);
    ::close(old_out_);
    ::waitpid(pid_, nullptr, 0);
    const std::string text = support::read_file(transcript_);
    ::unlink(transcript_.c_str());
    return text;
  }

 private:
  static constexpr const char* conversation =
      "say() { printf '%s\\n' \"$1\"; }\n"
      "say '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
      "\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},"
      "\"clientInfo\":{\"name\":\"test\",\"version\":\"1\"}}}'\n"
      "say '{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}'\n"
      "say '{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{"
      "\"name\":\"execute_command\",\"arguments\":{\"command\":\"echo called; exit 8\"}}}'\n"
      "while read -r line; do\n"
      "  printf '%s\\n' \"$line\" >&2\n"
      "  case $line in *'\"id\":2,'*) break ;; esac\n"
      "done\n";
  std::string transcript_;
  pid_t pid_ = -1;
  int old_in_ = -1;
  int old_out_ = -1;
};

std::string file_of_descriptor(int fd) { return support::path_of_descriptor(fd); }

}  // namespace

void serve(Place& place, Report& report) {
  Client client(place);
  const std::string streams = file_of_descriptor(0) + file_of_descriptor(1);
  std::mutex mutex;
  std::string logged;
  Expected<void> served;
  Region region;
  const auto executor = codeexec::LocalExecutor::create(local(place));
  Expected<void> added;
  if (executor) {
    codeexec::mcp::ServerOptions options;
    options.log = [&](std::string_view line) {
      const std::lock_guard<std::mutex> lock(mutex);
      logged.append(line);
    };
    codeexec::mcp::Server server(options);
    added = codeexec::add_execution_tools(server, *executor);
    if (added) served = server.serve();
  }
  region.end();
  if (file_of_descriptor(0) + file_of_descriptor(1) != streams)
    report.problem("descriptors 0 and 1 are others");
  const std::vector<std::string> replies = support::lines_of(client.finish());
  if (!report.judge(executor, "create") || !report.judge(added, "add")) return;
  const bool greeted = !replies.empty() && has(replies[0], "\"id\":1,\"result\"");
  const bool answered = replies.size() == 2 && has(replies[1], "\"id\":2,\"result\"");
  if (greeted && answered && has(replies[1], "\"stdout\":\"called\\n\"") &&
      has(replies[1], "\"exit_code\":8"))
    return report.right();
  if (!served) return report.told("serve", served.error());
  // So does a terminal that has gone.
  // Calls that have not ended by then are cancelled.
  if (report.is_fault(EIO)) return report.told("served", "the input has ended", EIO);
  if (greeted && answered && has(replies[1], "\"success\":false"))
    return report.told("answered", replies[1], 0);
  report.told("served with " + std::to_string(replies.size()) + " replies", logged, 0);
}

void docker(Place& place, Report& report) {
  const support::FakeEngine engine;
  codeexec::ContainerExecutorOptions options;
  options.workspace = place.workspace();
  options.timeout = seconds(10);
  options.container.engine.program = engine.program();
  options.container.user = "0:0";
  options.container.agent = CODEEXEC_MCP;
  Result r;
  Region region;
  {
    const auto executor = codeexec::ContainerExecutor::create(options);
    if (!report.judge(executor, "create")) return;
    r = executor->run("echo out; echo err >&2; exit 3");
  }
  region.end();
  report.judge(r, exited(r, 3, "out\n", "err\n"));
}

void no_docker(Place& place, Report& report) {
  codeexec::ContainerExecutorOptions options;
  options.workspace = place.workspace();
  options.container.engine.program = place / "nothing";
  options.container.user = "0:0";
  Result r;
  Region region;
  {
    const auto executor = codeexec::ContainerExecutor::create(options);
    if (!report.judge(executor, "create")) return;
    r = executor->run("echo out");
  }
  region.end();
  if (r.outcome != Outcome::not_started || r.message.empty())
    report.problem("a command of no engine was started");
  report.right();
}

}  // namespace faults
