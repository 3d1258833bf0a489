// Commands that begin in the foreground.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <thread>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Command;
using codeexec::JobOptions;
using codeexec::Jobs;
using codeexec::JobState;
using codeexec::JobStatus;
using codeexec::Json;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Outcome;
using codeexec::Result;
using codeexec::Stream;
using std::chrono::milliseconds;
using support::at_end;
using support::AuditLog;
using support::begins;
using support::describe;
using support::Gate;
using support::make;
using support::read;
using support::safety;
using support::start;
using support::until_seen;
using support::wait;

TEST_CASE("run() is a run when the command ends in time") {
  const support::TempDir place;
  AuditLog log;
  LocalOptions options;
  options.workspace = place.path();
  options.max_output = 1024;
  options.on_audit = log.callback();
  const LocalExecutor here = make(options);
  JobOptions job_options;
  job_options.max_running = 0;
  Jobs jobs(here, job_options);
  for (const char* script :
       {"echo out; echo err >&2; exit 3", "seq 1 10000", "sudo ls", "kill -9 $$", ""}) {
    CAPTURE(script);
    Command command = Command::shell(script);
    command.timeout = safety;
    log.take();
    const Result ran = here.run(command);
    const JobStatus run = jobs.run(command, safety);
    CHECK(run.id.empty());
    const Result& r = run.result;
    CHECK(r.outcome == ran.outcome);
    CHECK(r.exit_code == ran.exit_code);
    CHECK(r.signal == ran.signal);
    CHECK(r.out == ran.out);
    CHECK(r.err == ran.err);
    CHECK(r.out_counts.total_bytes == ran.out_counts.total_bytes);
    CHECK(r.out_counts.dropped_bytes == ran.out_counts.dropped_bytes);
    CHECK(r.rule == ran.rule);
    CHECK(r.message == ran.message);
    CHECK(r.command == ran.command);
    CHECK(r.work_dir == ran.work_dir);
    CHECK(r.notes == ran.notes);
    CHECK(r.timeout == ran.timeout);
    const std::vector<Json> records = log.take();
    REQUIRE(records.size() == 2);
    CHECK(records[0]["outcome"] == records[1]["outcome"]);
    CHECK(jobs.list().empty());
  }
  Command command = Command::shell("exec sleep 300");
  command.timeout = milliseconds(30);
  const JobStatus late = jobs.run(command, safety);
  CHECK(late.id.empty());
  CHECK(late.result.outcome == Outcome::timed_out);
}

TEST_CASE("run() becomes a job when the command takes longer, and its token lets go of it") {
  const LocalExecutor here = make();
  JobOptions options;
  options.max_running = 1;
  Jobs jobs(here, options);
  Command command = Command::shell("echo begun; read x; echo $x");
  command.keep_input_open = true;
  command.cancel.emplace();
  const JobStatus run = jobs.run(command, milliseconds(30));
  REQUIRE(!run.id.empty());
  CHECK(run.state == JobState::running);
  CHECK(begins(run.id, "shell_"));
  CHECK(jobs.list().size() == 1);
  command.cancel->cancel();
  CHECK(wait(jobs, run.id, until_seen("begun")) == "matched");
  CHECK(!jobs.start(Command::shell("true")));
  CHECK(jobs.write(run.id, "more\n"));
  CHECK(describe(at_end(jobs, run.id)) == "stopped exited code 0 signal 0");
  CHECK(read(jobs, run.id).out.text == "begun\nmore\n");
}

TEST_CASE("run() as_foreground has the executor's timeouts, also as a job") {
  LocalOptions bounds;
  bounds.timeout = milliseconds(1500);
  bounds.max_timeout = milliseconds(2000);
  AuditLog log;
  bounds.on_audit = log.callback();
  const LocalExecutor here = make(bounds);
  JobOptions options;
  options.timeout = options.max_timeout = milliseconds(1);
  Jobs jobs(here, options);
  Command command = Command::shell("exec sleep 300");
  const JobStatus usual = jobs.run(command, milliseconds(1), nullptr, true);
  REQUIRE(!usual.id.empty());
  CHECK(usual.result.timeout == milliseconds(1500));
  command.timeout = std::chrono::seconds(500);
  const JobStatus cut = jobs.run(command, milliseconds(1), nullptr, true);
  REQUIRE(!cut.id.empty());
  CHECK(cut.result.notes ==
        std::vector<std::string>{"timeout reduced from 500 to 2 seconds, the longest that is "
                                 "allowed here"});
  CHECK(at_end(jobs, usual.id).result.outcome == Outcome::timed_out);
  CHECK(at_end(jobs, cut.id).result.timeout == milliseconds(2000));
  for (const Json& record : log.take()) CHECK(record.find("shell_id") == nullptr);
}

TEST_CASE("run() stays in the foreground when there is no room") {
  const LocalExecutor here = make();
  JobOptions options;
  options.max_running = 1;
  Jobs jobs(here, options);
  const std::string other = start(jobs, "exec sleep 300");
  Command command = Command::shell("sleep 0.1; echo done");
  JobStatus run = jobs.run(command, milliseconds(1));
  CHECK(run.id.empty());
  CHECK(run.result.out == "done\n");
  // Without a timeout of its own it comes back all the same.
  LocalOptions brief;
  brief.timeout = milliseconds(50);
  const LocalExecutor impatient = make(brief);
  JobOptions nothing;
  nothing.max_running = 0;
  Jobs none(impatient, nothing);
  run = none.run(Command::shell("echo begun; exec sleep 300"), milliseconds(1));
  CHECK(run.id.empty());
  CHECK(run.result.outcome == Outcome::cancelled);
  REQUIRE(!run.result.notes.empty());
  CHECK(support::begins(run.result.notes[0], "ended after the 0.05 seconds"));
  // There is no input to wait for, either.
  command = Command::shell("cat; echo end");
  command.keep_input_open = true;
  run = Jobs(here, nothing).run(command, milliseconds(1));
  CHECK(run.result.out == "end\n");
  // There its token has its effect to the end.
  command = Command::shell("echo begun; exec sleep 300");
  command.cancel.emplace();
  command.on_output = [token = *command.cancel](Stream, std::string_view) { token.cancel(); };
  for (const milliseconds time : {milliseconds(0), milliseconds(safety)}) {
    command.cancel.emplace();
    command.on_output = [token = *command.cancel](Stream, std::string_view) { token.cancel(); };
    run = jobs.run(command, time);
    CHECK(run.id.empty());
    CHECK(run.result.outcome == Outcome::cancelled);
    CHECK(run.result.out == "begun\n");
  }
  // It is cancelled before it starts.
  run = jobs.run(command, safety);
  CHECK(run.id.empty());
  CHECK(run.result.outcome == Outcome::cancelled);
  CHECK(run.result.message == "cancelled before it was started");
  CHECK(jobs.list().size() == 1);
  CHECK(jobs.list()[0].id == other);
}

TEST_CASE("a command in the foreground takes no place and is not listed") {
  const LocalExecutor here = make();
  JobOptions options;
  options.max_running = 1;
  Jobs jobs(here, options);
  Gate runs;
  Command command = Command::shell("echo ready; exec sleep 300");
  command.cancel.emplace();
  command.on_output = [&](Stream, std::string_view) { runs.open(); };
  std::thread runner([&] { CHECK(jobs.run(command, safety).id.empty()); });
  runs.pass();
  const std::string id = start(jobs, "exec sleep 300");
  CHECK(jobs.list().size() == 1);
  command.cancel->cancel();
  runner.join();
  CHECK(jobs.list().size() == 1);
  CHECK(jobs.list()[0].id == id);
}

TEST_CASE("nothing is lost or doubled when a command that prints becomes a job") {
  const support::TempDir place;
  AuditLog log;
  LocalOptions options;
  options.workspace = place.path();
  options.max_output = std::size_t{1} << 30;
  options.on_audit = log.callback();
  const LocalExecutor here = make(options);
  JobOptions job_options;
  job_options.max_lines = codeexec::unbounded;
  Jobs jobs(here, job_options);
  support::Random random(20);
  for (int round = 0; round < 10; ++round) {
    CAPTURE(round);
    std::string heard;
    std::string id;
    {
      // It prints all the time until it has become a job, and reads its input only then.
      Command command = Command::shell(
          "i=0; until [ -e go ]; do i=$((i + 1)); echo $i; echo e$i >&2; done; echo; wc -c");
      command.input.assign(1000000, 'x');
      command.on_output = [&heard](Stream stream, std::string_view bytes) {
        if (stream == Stream::out) heard += bytes;
      };
      id = jobs.run(command, milliseconds(random.below(30))).id;
    }
    REQUIRE(!id.empty());
    const std::uint64_t begin = status_of(jobs, id).result.out_counts.total_bytes;
    Jobs::Wait more = until_seen(".");
    more.out = begin;
    CHECK(wait(jobs, id, more) == "matched");
    support::write_file(place / "go", "");
    const JobStatus end = at_end(jobs, id);
    CHECK(::unlink((place / "go").c_str()) == 0);
    const std::string out = read(jobs, id).out.text;
    const std::string err = read(jobs, id).err.text;
    const std::string numbers = out.substr(0, out.find("\n\n") + 1);
    const int lines = static_cast<int>(support::count_of(numbers, "\n"));
    CHECK(lines > 0);
    CHECK((out == support::numbered_lines(1, lines) + "\n1000000\n"));
    CHECK((err == support::numbered_lines(1, lines, "e")));
    CHECK((heard == out));
    CHECK(end.result.out_counts.total_bytes == out.size());
    CHECK(describe(end) == "stopped exited code 0 signal 0");
    CHECK(log.take().size() == 1);
    support::write_file(place / "out", out);
    support::write_file(place / "err", err);
    const Result again = here.run("cat out; cat err >&2");
    CHECK(end.result.out_counts.sha256 == again.out_counts.sha256);
    CHECK(end.result.err_counts.sha256 == again.err_counts.sha256);
    log.take();
  }
}

TEST_CASE("a command in the foreground needs no thread and calls back in that of run()") {
  const LocalExecutor here = make();
  Jobs jobs(here);
  Command command = Command::shell("echo out; sleep 0.1");
  std::vector<std::thread::id> callers;
  const auto note = [&callers] { callers.push_back(std::this_thread::get_id()); };
  command.on_output = [&](Stream, std::string_view) { note(); };
  command.heartbeat = milliseconds(5);
  command.on_heartbeat = note;
  command.on_end = [&](const Result&) { note(); };
  CHECK(jobs.run(command, safety).result.outcome == Outcome::exited);
  CHECK(callers.size() >= 3);
  for (const std::thread::id caller : callers) CHECK((caller == std::this_thread::get_id()));
}
