// The life of a background shell, and the gate that it passes.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <signal.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Command;
using codeexec::ErrorCode;
using codeexec::Expected;
using codeexec::JobOptions;
using codeexec::JobOutput;
using codeexec::Jobs;
using codeexec::JobState;
using codeexec::JobStatus;
using codeexec::Json;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Outcome;
using codeexec::Permission;
using codeexec::Result;
using codeexec::SandboxMode;
using codeexec::Stream;
using std::chrono::milliseconds;
using support::at_end;
using support::AuditLog;
using support::begins;
using support::describe;
using support::ends;
using support::has;
using support::kill;
using support::LeakCheck;
using support::make;
using support::read;
using support::safety;
using support::start;
using support::status_of;
using support::until_seen;
using support::wait;

// life of a job -----------------------------------------------------------------------------------

TEST_CASE("a job is started, listed, read, and has an end") {
  const support::TempDir place;
  LocalOptions options;
  options.workspace = place.path();
  const LocalExecutor here = make(options);
  Jobs jobs(here);
  const Expected<JobStatus> started =
      jobs.start(Command::shell("echo out; echo err >&2; read line; exit 3"));
  REQUIRE(started);
  CHECK(begins(started->id, "shell_"));
  CHECK(started->id.size() == 22);
  CHECK(started->id.find_first_not_of("0123456789abcdef", 6) == std::string::npos);
  CHECK(started->start_time.size() == 24);
  CHECK(ends(started->start_time, "Z"));
  CHECK(started->result.command == "echo out; echo err >&2; read line; exit 3");
  CHECK(started->result.work_dir == place.path());

  const JobStatus last = at_end(jobs, started->id);
  CHECK(describe(last) == "failed exited code 3 signal 0");
  CHECK(last.id == started->id);
  CHECK(last.start_time == started->start_time);
  CHECK(last.result.command == started->result.command);
  CHECK(last.result.work_dir == place.path());
  CHECK(last.result.timeout == codeexec::no_limit);
  CHECK(last.result.out_counts.total_bytes == 4);
  CHECK(last.result.out == "");
  CHECK(last.result.err == "");
  const JobOutput output = read(jobs, started->id);
  CHECK(output.out.text == "out\n");
  CHECK(output.err.text == "err\n");
  CHECK(output.status.state == JobState::failed);
  CHECK(kill(jobs, started->id) == "false");
}

TEST_CASE("what is known of a running job") {
  const LocalExecutor here = make();
  Jobs jobs(here);
  const std::string id = start(jobs, "echo ready; exec sleep 300");
  CHECK(wait(jobs, id, until_seen("ready")) == "matched");
  const JobStatus status = status_of(jobs, id);
  CHECK(describe(status) == "running unknown code -1 signal 0");
  CHECK(status.result.pid > 0);
  CHECK(status.result.command == "echo ready; exec sleep 300");
  CHECK(status.duration.count() >= 0);
  CHECK(kill(jobs, id) == "true");
  CHECK(status_of(jobs, id).duration >= status.duration);
}

TEST_CASE("the names of the states and ends") {
  CHECK(std::string(codeexec::name(JobState::running)) == "running");
  CHECK(std::string(codeexec::name(JobState::stopped)) == "stopped");
  CHECK(std::string(codeexec::name(JobState::failed)) == "failed");
  CHECK(std::string(codeexec::name(JobState::killed)) == "killed");
  CHECK(std::string(codeexec::name(Jobs::WaitEnd::matched)) == "matched");
  CHECK(std::string(codeexec::name(Jobs::WaitEnd::ended)) == "ended");
  CHECK(std::string(codeexec::name(Jobs::WaitEnd::timed_out)) == "timed_out");
  CHECK(std::string(codeexec::name(Jobs::WaitEnd::cancelled)) == "cancelled");
}

TEST_CASE("jobs are listed in the order of their start, and nobody shares a name") {
  const LocalExecutor here = make();
  Jobs first(here);
  Jobs second(here);
  std::vector<std::string> ids;
  std::set<std::string> all;
  for (int i = 0; i < 8; ++i) {
    ids.push_back(start(first, "true"));
    all.insert(ids.back());
    all.insert(start(second, "true"));
  }
  CHECK(all.size() == 16);
  std::vector<std::string> listed;
  for (const JobStatus& status : first.list()) listed.push_back(status.id);
  CHECK(listed == ids);
  CHECK(second.list().size() == 8);
  CHECK(!second.status(ids[0]));
}

TEST_CASE("an unknown job is reported as such by every member") {
  const LocalExecutor here = make();
  Jobs jobs(here);
  const std::string message =
      "there is no background shell 'x\\x0a' (any more): list the shells, or start a new one";
  const auto told = [&](const codeexec::Error& error) {
    return error.code == ErrorCode::not_found && error.message == message;
  };
  CHECK(told(jobs.status("x\n").error()));
  CHECK(told(jobs.read("x\n").error()));
  CHECK(told(jobs.wait("x\n").error()));
  CHECK(told(jobs.write("x\n", "y").error()));
  CHECK(told(jobs.close_input("x\n").error()));
  CHECK(told(jobs.kill("x\n").error()));
  CHECK(told(jobs.forget("x\n").error()));
}

TEST_CASE("the callbacks of the command are called, too") {
  const LocalExecutor here = make();
  std::mutex mutex;
  std::string seen;
  int ends_seen = 0;
  Command command = Command::shell("echo one; echo two >&2");
  command.on_output = [&](Stream stream, std::string_view bytes) {
    const std::lock_guard<std::mutex> lock(mutex);
    seen += stream == Stream::out ? "out:" : "err:";
    seen += bytes;
  };
  command.on_end = [&](const Result& result) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (result.succeeded() && result.out == "one\n") ++ends_seen;
  };
  Jobs jobs(here);
  const std::string id = start(jobs, command);
  at_end(jobs, id);
  const std::lock_guard<std::mutex> lock(mutex);
  CHECK(has(seen, "out:one\n"));
  CHECK(has(seen, "err:two\n"));
  CHECK(ends_seen == 1);
}

TEST_CASE("on_end starts the next command, and one that has ended may be forgotten there") {
  const LocalExecutor here = make();
  JobOptions options;
  options.max_finished = 0;
  Jobs jobs(here, options);
  std::mutex mutex;
  std::condition_variable changed;
  int ended = 0;
  Command command = Command::shell("exit 0");
  command.on_end = [&](const Result&) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (++ended < 5) {
      for (const JobStatus& job : jobs.list()) (void)jobs.kill(job.id);
      CHECK(jobs.start(command));
    }
    changed.notify_all();
  };
  start(jobs, command);
  std::unique_lock<std::mutex> lock(mutex);
  CHECK(changed.wait_for(lock, safety, [&] { return ended == 5; }));
}

TEST_CASE("secrets are masked in the status and output of a job") {
  LocalOptions options;
  options.environment.set = {{"TOKEN", "hunter2hunter2"}};
  options.environment.secret = {"TOKEN"};
  const LocalExecutor here = make(options);
  Jobs jobs(here);
  const std::string id = start(jobs, "echo $TOKEN hunter2hunter2; sleep 300");
  CHECK(wait(jobs, id, until_seen("^.redacted. .redacted.$")) == "matched");
  CHECK(status_of(jobs, id).result.command == "echo $TOKEN [redacted]; sleep 300");
  CHECK(jobs.list()[0].result.command == "echo $TOKEN [redacted]; sleep 300");
  CHECK(kill(jobs, id) == "true");
  CHECK(status_of(jobs, id).result.command == "echo $TOKEN [redacted]; sleep 300");
  CHECK(read(jobs, id).out.text == "[redacted] [redacted]\n");
}

// the gate ----------------------------------------------------------------------------------------

TEST_CASE("W-25: a background shell passes the same gate as run(), and is recorded like it") {
  const support::TempDir place;
  place.file("file.txt");
  place.directory(".venv/bin");
  place.directory("ro");
  place.file("ro/kept");
  const support::TempDir outside;
  AuditLog log;
  LocalOptions options;
  options.workspace = place.path();
  options.roots = {{place.path(), Permission::write}, {place / "ro", Permission::read}};
  options.policy.blocked = {"git push.*"};
  options.policy.allowed = {"[^y].*"};
  options.delete_guard = true;
  options.on_audit = log.callback();
  options.sandbox.mode = SandboxMode::best_effort;
  const LocalExecutor here = make(options);
  Jobs jobs(here);

  std::vector<Command> commands;
  const auto add = [&](Command command, const char* work_dir = "") {
    command.work_dir = work_dir;
    command.caller.tool = "parity";
    command.timeout = safety;
    commands.push_back(command);
  };
  add(Command::shell("echo fine $VIRTUAL_ENV; pwd; echo also >&2; exit 4"));
  add(Command::shell("pwd"), "ro");
  add(Command::shell("touch " + (outside / "file")));
  add(Command::shell("kill -9 $$"));
  add(Command::shell("git push"));
  add(Command::shell("yes"));
  add(Command::shell("sudo ls"));
  add(Command::shell("rm file.txt"));
  add(Command::shell("touch ro/new"));
  add(Command::shell("pwd"), outside.path().c_str());
  add(Command::shell("pwd"), "nowhere");
  add(Command::program({"/nonexistent/program"}));
  add(Command::program({"sudo", "ls"}));
  commands.push_back(Command::shell("pwd"));
  commands.back().timeout = milliseconds(-1);
  commands.push_back(Command::program({"true"}));
  commands.back().script = "both";

  for (const Command& command : commands) {
    CAPTURE(command.script);
    log.take();
    const Result ran = here.run(command);
    Result failure;
    const Expected<JobStatus> started = jobs.start(command, &failure);
    const bool runs = ran.outcome == Outcome::exited || ran.outcome == Outcome::signaled;
    REQUIRE(started.has_value() == runs);
    Result r = failure;
    if (started) {
      r = at_end(jobs, started->id).result;
      const JobOutput output = read(jobs, started->id);
      r.out = output.out.text;
      r.err = output.err.text;
    } else {
      CHECK(started.error().message == ran.message);
      CHECK((started.error().code == ErrorCode::permission_denied) ==
            (ran.outcome == Outcome::refused));
    }
    CHECK(r.outcome == ran.outcome);
    CHECK(r.exit_code == ran.exit_code);
    CHECK(r.signal == ran.signal);
    CHECK(r.rule == ran.rule);
    CHECK(r.rule_begin == ran.rule_begin);
    CHECK(r.rule_end == ran.rule_end);
    CHECK(r.message == ran.message);
    CHECK(r.command == ran.command);
    CHECK(r.work_dir == ran.work_dir);
    CHECK(r.venv == ran.venv);
    CHECK(r.out == ran.out);
    CHECK(r.err == ran.err);
    CHECK(r.notes == ran.notes);
    CHECK(r.timeout == ran.timeout);
    CHECK(r.step == ran.step);
    const std::vector<Json> records = log.take();
    REQUIRE(records.size() == 2);
    for (const Json::Member& member : records[0].members()) {
      CAPTURE(member.name);
      const bool measured = member.name == "time" || member.name == "duration_ms" ||
                            member.name == "cpu_ms" || member.name == "peak_memory";
      CHECK((measured || records[1][member.name] == member.value));
    }
    // A job has a name besides.
    CHECK(records[1].find("shell_id") != nullptr);
    CHECK(records[0].members().size() + 1 == records[1].members().size());
  }
  CHECK(jobs.list().size() == 4);
  CHECK(support::exists(place / "file.txt"));
  const std::vector<std::string>& enforced = here.sandbox_report().enforced;
  const bool confined = std::find(enforced.begin(), enforced.end(), "filesystem") != enforced.end();
  if (!confined) MESSAGE("SKIPPED: no sandbox here");
  CHECK(support::exists(outside / "file") != confined);
}

TEST_CASE("a command that does not start takes no place, and its error says why") {
  const LocalExecutor here = make();
  JobOptions options;
  options.max_running = 1;
  Jobs jobs(here, options);
  const LeakCheck leaks;
  Result failure;
  const Expected<JobStatus> missing =
      jobs.start(Command::program({"/nonexistent/program"}), &failure);
  REQUIRE(!missing);
  CHECK(missing.error().code == ErrorCode::not_found);
  CHECK(missing.error().system_error == ENOENT);
  CHECK(has(missing.error().message, "/nonexistent/program"));
  CHECK(failure.outcome == Outcome::not_started);
  CHECK(!jobs.start(Command::shell("sudo ls"), &failure));
  CHECK(failure.rule == "sudo");
  Command command = Command::shell("true");
  command.cancel.emplace();
  command.cancel->cancel();
  const Expected<JobStatus> cancelled = jobs.start(command);
  REQUIRE(!cancelled);
  CHECK(cancelled.error().message == "cancelled before it was started");
  command.cancel.reset();
  CHECK(jobs.list().empty());
  CHECK(leaks.clean());
  CHECK(jobs.start(Command::shell("sleep 300")));
}
