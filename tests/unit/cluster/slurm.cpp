// Jobs of a real Slurm of one node, helpers/slurm.sh.

#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "slurm_helpers.hpp"

#include <string>
#include <thread>
#include <vector>

using codeexec::CancelToken;
using codeexec::Command;
using codeexec::Error;
using codeexec::Outcome;
using codeexec::PlaceExecutor;
using codeexec::PlaceOptions;
using codeexec::ProcessResult;
using codeexec::Result;
using codeexec::SlurmOptions;
using namespace support;

namespace {

// A job that has all of the node.
class Everything {
 public:
  Everything() {
    codeexec::ProcessOptions options;
    options.argv = {"salloc", "--quiet", "-K", "-n16", "sh", "-c", "echo here; exec cat"};
    options.environment = {"PATH=/usr/bin:/bin",
                           std::string("SLURM_CONF=") + std::getenv("SLURM_CONF")};
    options.keep_input_open = true;
    auto started = codeexec::Process::start(options);
    REQUIRE(started);
    process_.emplace(std::move(*started));
    REQUIRE(comes_true([&] { return process_->read(codeexec::Stream::out, 0).text == "here\n"; }));
  }
  void end() {
    process_->close_input();
    (void)process_->wait();
  }

 private:
  std::optional<codeexec::Process> process_ = {};
};

}  // namespace

TEST_CASE("slurm: commands run in one job, which is gone with the executor") {
  if (has_no_slurm()) return;
  Jobs f;
  ::setenv("CODEEXEC_TEST_SECRET", "of the server", 1);
  {
    const PlaceExecutor there = f.executor();
    CHECK(jobs().empty());
    const Result r = there.run("echo $SLURM_JOB_ID; echo \"${CODEEXEC_TEST_SECRET-}\"; exit 3");
    REQUIRE_MESSAGE(r.outcome == Outcome::exited, r.message);
    CHECK(r.exit_code == 3);
    CHECK(r.out == number_of(r) + "\n\n");
    CHECK(jobs() == number_of(r) + "\n");
    CHECK(there.run("kill -KILL $$").signal == SIGKILL);
    CHECK(there.run("echo $SLURM_JOB_ID").out == number_of(r) + "\n");
    CHECK(there.run("pwd").out == f.workspace.path() + "\n");
  }
  ::unsetenv("CODEEXEC_TEST_SECRET");
  CHECK(no_job_is_left());
}

TEST_CASE("slurm: bytes come as they are, and lines before they are whole") {
  if (has_no_slurm()) return;
  Jobs f;
  const PlaceExecutor there = f.executor();
  check_streams(there);
}

TEST_CASE("slurm: a job that is cancelled is told of, and replaced by another") {
  if (has_no_slurm()) return;
  Jobs f;
  const PlaceExecutor there = f.executor();
  const codeexec::Execution started =
      there.start(Command::shell("echo $$; setsid sleep 600 & echo $!; wait"));
  REQUIRE(prints_text(started, "\n"));
  const std::string first = jobs().substr(0, jobs().find('\n'));
  REQUIRE(run_words({"scancel", first}).succeeded());
  const Result r = started.wait();
  CHECK(r.outcome == Outcome::unknown);
  CHECK_MESSAGE(has(r.message, "the connection to Slurm job " + first + " was lost"), r.message);
  CHECK_MESSAGE(has(r.message, "CANCELLED"), r.message);
  for (const std::string& pid : lines_of(r.out)) CHECK(dies(static_cast<pid_t>(std::stol(pid))));
  const Result next = there.run("echo again");
  REQUIRE_MESSAGE(next.out == "again\n", next.message);
  CHECK(number_of(next) != first);
  REQUIRE(next.notes.size() == 1);
  CHECK(begins(next.notes[0], "the connection to Slurm job " + first + " was lost ("));
  CHECK(has(next.notes[0], "CANCELLED"));
  CHECK(there.run("true").notes.empty());
}

TEST_CASE("slurm: a job whose time is up is told of") {
  if (has_no_slurm()) return;
  Jobs f;
  f.slurm.options = {"time=10"};
  const PlaceExecutor there = f.executor();
  const codeexec::Execution started = there.start(Command::shell("echo begun; sleep 600"));
  REQUIRE(prints_text(started, "begun\n"));
  const std::string job = jobs().substr(0, jobs().find('\n'));
  REQUIRE(run_words({"scontrol", "update", "jobid=" + job, "EndTime=now"}).succeeded());
  const Result r = started.wait();
  CHECK(r.outcome == Outcome::unknown);
  CHECK_MESSAGE(has(r.message, "DUE TO TIME LIMIT"), r.message);
  CHECK(r.out == "begun\n");
}

TEST_CASE("slurm: a node that fails is told of") {
  if (has_no_slurm()) return;
  Jobs f;
  const PlaceExecutor there = f.executor();
  const ProcessResult nodes = run_words({"sinfo", "-h", "-o", "%n"});
  REQUIRE(nodes.succeeded());
  const std::string node = nodes.out.substr(0, nodes.out.find('\n'));
  const codeexec::Execution started = there.start(Command::shell("echo begun; sleep 600"));
  REQUIRE(prints_text(started, "begun\n"));
  REQUIRE(run_words({"scontrol", "update", "nodename=" + node, "state=down", "reason=test"})
              .succeeded());
  const Result r = started.wait();
  // It comes back by itself when its daemon reports next, or is told to.
  CHECK(comes_true([&] {
    (void)run_words({"scontrol", "update", "nodename=" + node, "state=resume"});
    return run_words({"sinfo", "-h", "-o", "%T"}).out == "idle\n";
  }));
  CHECK(r.outcome == Outcome::unknown);
  CHECK_MESSAGE((has(r.message, "NODE FAILURE") || has(r.message, "Node failure")), r.message);
  const Result next = there.run("echo again");
  CHECK_MESSAGE(next.out == "again\n", next.message);
}

TEST_CASE("slurm: a job in the queue keeps its place while commands come and go") {
  if (has_no_slurm()) return;
  Jobs f;
  f.slurm.start_timeout = std::chrono::milliseconds(700);
  const PlaceExecutor there = f.executor();
  Everything busy;
  const Result r = there.run("echo ran >> ran");
  CHECK(r.outcome == Outcome::not_started);
  CHECK_MESSAGE(has(r.message, "it waits in the queue and stays there; try again later"),
                r.message);
  CHECK(has(f.progress(), "queued and waiting for resources"));
  const std::string waiting = jobs();
  CHECK(lines_of(waiting).size() == 2);
  Command command = Command::shell("echo ran >> ran");
  command.cancel = CancelToken();
  std::thread impatient([&] { command.cancel->cancel(); });
  CHECK(there.run(command).outcome == Outcome::cancelled);
  impatient.join();
  CHECK(jobs() == waiting);
  busy.end();
  Result last = there.run("echo ran >> ran");
  while (last.outcome == Outcome::not_started) last = there.run("echo ran >> ran");
  CHECK(last.succeeded());
  CHECK(read_file(f.workspace / "ran") == "ran\n");
  CHECK(has(waiting, number_of(last)));
}

TEST_CASE("slurm: an executor that goes while its job is in the queue takes it away") {
  if (has_no_slurm()) return;
  Jobs f;
  f.slurm.start_timeout = std::chrono::milliseconds(500);
  Everything busy;
  {
    const PlaceExecutor there = f.executor();
    CHECK(there.run("true").outcome == Outcome::not_started);
    CHECK(lines_of(jobs()).size() == 2);
  }
  CHECK(comes_true([] { return lines_of(jobs()).size() == 1; }));
  busy.end();
}

TEST_CASE("slurm: a refusal is one line that says what to do") {
  if (has_no_slurm()) return;
  Jobs f;
  const auto message = [&](const Strings& options) {
    f.slurm.options = options;
    const Result r = f.executor().run("echo ran > ran");
    CHECK(r.outcome == Outcome::not_started);
    CHECK(!has(r.message, "\n"));
    return r.message;
  };
  CHECK_MESSAGE(has(message({"partition=nosuch"}), "choose one that `sinfo` lists"),
                message({"partition=nosuch"}));
  CHECK_MESSAGE(has(message({"mem=900G"}), "no node has what is asked for"), message({"mem=900G"}));
  CHECK_MESSAGE(has(message({"nosuch=1"}), "salloc --help lists them"), message({"nosuch=1"}));
  f.slurm.options = {};
  f.slurm.agent = "/nonexistent/codeexec-mcp";
  CHECK_MESSAGE(has(message({}), "there is no such program there"), message({}));
  CHECK(!exists(f.workspace / "ran"));
  for (const char* word : {"", "-p", "--mem=1G", "1", "Mem"}) {
    SlurmOptions options;
    options.options = {word};
    const auto engine = codeexec::slurm_jobs(options);
    REQUIRE(!engine);
    CHECK(engine.error().code == codeexec::ErrorCode::invalid_argument);
    CHECK(begins(engine.error().message, "slurm_option must be "));
  }
  CHECK(no_job_is_left());
}

TEST_CASE("slurm: limits of a job hold") {
  if (has_no_slurm()) return;
  Jobs f;
  f.slurm.options = {"mem=64M"};
  const PlaceExecutor there = f.executor();
  const Result r = there.run("head -c 200000000 /dev/zero | tail -c 150000000 > /dev/null; true");
  CHECK(!(r.succeeded() && r.err.empty()));
}

TEST_CASE("slurm: without Slurm's programs") {
  const TempDir workspace;
  const std::string path = std::getenv("PATH");
  PlaceOptions options;
  const auto engine = codeexec::slurm_jobs({});
  REQUIRE(engine);
  options.engine = *engine;
  options.workspace = workspace.path();
  const auto there = PlaceExecutor::create(options);
  REQUIRE(there);
  ::setenv("PATH", workspace.path().c_str(), 1);
  const Result r = there->run("true");
  ::setenv("PATH", path.c_str(), 1);
  CHECK(r.outcome == Outcome::not_started);
  CHECK_MESSAGE(has(r.message, "install Slurm's programs here"), r.message);
}

TEST_CASE("slurm: a server that is killed leaves no job") {
  if (has_no_slurm()) return;
  Jobs f;
  const auto server = [&] {
    const pid_t pid = ::fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      ::setenv("PATH", "/usr/bin:/bin", 1);
      ::execl(CODEEXEC_MCP, CODEEXEC_MCP, "--execution-mode", "slurm", "--place-agent-path",
              CODEEXEC_MCP, "--workspace", f.workspace.path().c_str(), "--run",
              "echo begun > begun; sleep 600", nullptr);
      ::_exit(97);
    }
    REQUIRE(comes_true([&] { return exists(f.workspace / "begun"); }));
    return pid;
  };
  const pid_t first = server();
  REQUIRE(::kill(first, SIGKILL) == 0);
  REQUIRE(::waitpid(first, nullptr, 0) == first);
  CHECK(no_job_is_left());
}

TEST_CASE("slurm: jobs that programs have left are cancelled, those of living ones never") {
  if (has_no_slurm()) return;
  Jobs f;
  const PlaceExecutor living = f.executor();
  const std::string kept = number_of(living.run("true"));
  // As this program would have left it, had it been killed together with its salloc.
  const std::string comment = run_words({"squeue", "-h", "-j", kept, "-o", "%k"}).out;
  REQUIRE(begins(comment, "codeexec;"));
  const std::string pid = std::to_string(::getpid());
  const std::size_t at = comment.find(";" + pid + ";");
  REQUIRE(at != std::string::npos);
  const std::string of_the_dead =
      comment.substr(0, at) + ";" + pid + ";1";  // a program of that number that began before
  REQUIRE(run_words({"salloc", "--no-shell", "--comment", of_the_dead}).succeeded());
  const std::string of_others = "codeexec;elsewhere;x;y;1;1";
  REQUIRE(run_words({"salloc", "--no-shell", "--comment", of_others}).succeeded());
  CHECK(lines_of(jobs()).size() == 3);
  const PlaceExecutor another = f.executor();
  const std::string its_own = number_of(another.run("true"));
  CHECK(has(f.progress(), "which a program that has ended had left"));
  Strings left = lines_of(jobs());
  CHECK(left.size() == 3);
  CHECK(living.run("echo $SLURM_JOB_ID").out == kept + "\n");
  for (const std::string& job : left)
    if (job != kept && job != its_own) CHECK(run_words({"scancel", job}).succeeded());
}
