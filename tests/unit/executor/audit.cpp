// The audit log.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <set>
#include <thread>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/json_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Command;
using codeexec::Json;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Outcome;
using codeexec::Result;
using std::chrono::milliseconds;
using support::AuditLog;
using support::begins;
using support::ends;
using support::in;
using support::lines_of;
using support::make;
using support::member_names;
using support::parsed;
using support::Strings;

TEST_CASE("every command leaves one record, through callback and file alike") {
  const support::TempDir place;
  AuditLog log;
  LocalOptions options = in(place);
  options.agent_id = "agent-7";
  options.audit_file = place / "audit.jsonl";
  options.on_audit = log.callback();
  const LocalExecutor here = make(options);
  Command fine = Command::shell("echo 12345; printf abc >&2; exit 3");
  fine.tool = "some_tool";
  here.run(fine);
  here.run("true; sudo ls");
  here.run(Command::program({"/nonexistent/program"}));
  here.start(Command::shell("kill -9 $$")).wait();
  Command slow = Command::shell("sleep 300");
  slow.timeout = milliseconds(50);
  here.run(slow);

  const std::vector<Json> records = log.take();
  const std::string file = support::read_file(place / "audit.jsonl");
  const Strings lines = lines_of(file);
  REQUIRE(records.size() == 5);
  REQUIRE(lines.size() == 5);
  CHECK(ends(file, "}\n"));
  for (std::size_t i = 0; i < lines.size(); ++i) CHECK(lines[i] == records[i].dump());

  const Json& first = records[0];
  CHECK(member_names(first) == Strings{"time", "agent_id", "tool", "command", "work_dir", "allowed",
                                       "outcome", "exit_code", "duration_ms", "cpu_ms",
                                       "stdout_bytes", "stderr_bytes"});
  const std::string& time = first["time"].as_string();
  REQUIRE(time.size() == 24);
  for (std::size_t i = 0; i < time.size(); ++i) {
    const char shape = "dddd-dd-ddTdd:dd:dd.dddZ"[i];
    CHECK((shape == 'd' ? time[i] >= '0' && time[i] <= '9' : time[i] == shape));
  }
  CHECK(first["agent_id"] == Json("agent-7"));
  CHECK(first["tool"] == Json("some_tool"));
  CHECK(first["command"] == Json(fine.script));
  CHECK(first["work_dir"] == Json(place.path()));
  CHECK(first["allowed"] == Json(true));
  CHECK(first["outcome"] == Json("exited"));
  CHECK(first["exit_code"] == Json(3));
  CHECK(first["duration_ms"].as_number() > 0);
  CHECK(first["duration_ms"].as_number() < 30000);
  CHECK(first["cpu_ms"].as_number() >= 0);
  CHECK(first["stdout_bytes"] == Json(6));
  CHECK(first["stderr_bytes"] == Json(3));

  const Json& refused = records[1];
  CHECK(member_names(refused) == Strings{"time", "agent_id", "tool", "command", "work_dir",
                                         "allowed", "rule", "rule_begin", "rule_end", "message",
                                         "outcome", "exit_code", "duration_ms", "cpu_ms",
                                         "stdout_bytes", "stderr_bytes"});
  CHECK(refused["tool"] == Json("run"));
  CHECK(refused["allowed"] == Json(false));
  CHECK(refused["rule"] == Json("sudo"));
  const std::string& command = refused["command"].as_string();
  const auto begin = static_cast<std::size_t>(refused["rule_begin"].as_integer());
  const auto end = static_cast<std::size_t>(refused["rule_end"].as_integer());
  CHECK(begin == 6);
  CHECK(begins(command.substr(begin, end - begin), "sudo"));
  CHECK(begins(refused["message"].as_string(),
               "Potentially dangerous command detected: Use of 'sudo' is not allowed"));
  CHECK(refused["outcome"] == Json("refused"));
  CHECK(refused["duration_ms"] == Json(0));

  CHECK(records[2]["outcome"] == Json("not_started"));
  CHECK(records[2]["exit_code"] == Json(-1));
  CHECK(records[3]["outcome"] == Json("signaled"));
  CHECK(records[3]["signal"] == Json(9));
  CHECK(records[4]["outcome"] == Json("timed_out"));
  CHECK(records[4]["duration_ms"].as_number() >= 50);

  struct stat status {};
  REQUIRE(::stat((place / "audit.jsonl").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
}

TEST_CASE("an audit record cuts a long command, and stays one line whatever the command holds") {
  const support::TempDir place;
  LocalOptions options;
  options.audit_file = place / "audit";
  const LocalExecutor here = make(options);
  here.run(": '\n\r\xff\xe2\x80\xa8\"'");
  const std::string text = "echo \xC3\xA4";
  here.run(": " + std::string(16 * 1024 - 3, 'x') + "\xC3\xA4");
  here.run(": " + std::string(16 * 1024 - 2, 'x'));
  const Strings lines = lines_of(support::read_file(place / "audit"));
  REQUIRE(lines.size() == 3);
  CHECK(parsed(lines[0])["command"] == Json(": '\n\r\xEF\xBF\xBD\xE2\x80\xA8\"'"));
  CHECK(parsed(lines[1])["command"].as_string() == ": " + std::string(16 * 1024 - 3, 'x'));
  CHECK(parsed(lines[1])["command_bytes"] == Json(16 * 1024 + 1));
  CHECK(parsed(lines[2])["command"].as_string().size() == 16 * 1024);
  CHECK(parsed(lines[2]).find("command_bytes") == nullptr);
}

TEST_CASE("an audit record has the code of a command, masked and cut") {
  const support::TempDir place;
  const support::EnvironmentGuard secret("CODEEXEC_TEST_TOKEN", "hunter2-hunter2");
  AuditLog log;
  LocalOptions options = in(place);
  options.environment.secret = {"CODEEXEC_TEST_TOKEN"};
  options.on_audit = log.callback();
  const LocalExecutor here = make(options);
  Command command = Command::program({"true"});
  command.code = "use hunter2-hunter2";
  here.run(command);
  here.start(command).wait();
  command.code = std::string(16 * 1024 - 1, 'x') + "\xC3\xA4";
  here.run(command);
  command.code.clear();
  here.run(command);
  command = Command::program({"sudo", "true"});
  command.code = "use hunter2-hunter2";
  here.run(command);
  here.start(command).wait();
  const std::vector<Json> records = log.take();
  REQUIRE(records.size() == 6);
  for (const std::size_t i : {0u, 1u, 4u, 5u}) {
    CAPTURE(i);
    CHECK(records[i]["code"] == Json("use [redacted]"));
    CHECK(records[i].find("code_bytes") == nullptr);
  }
  CHECK(records[2]["code"] == Json(std::string(16 * 1024 - 1, 'x')));
  CHECK(records[2]["code_bytes"] == Json(16 * 1024 + 1));
  CHECK(records[3].find("code") == nullptr);
}

TEST_CASE("what was done by other means than a command is recorded and masked") {
  const support::TempDir place;
  const support::EnvironmentGuard secret("CODEEXEC_TEST_TOKEN", "hunter2-hunter2");
  AuditLog log;
  LocalOptions options = in(place);
  options.environment.secret = {"CODEEXEC_TEST_TOKEN"};
  options.agent_id = "somebody";
  options.audit_file = place / "audit";
  options.on_audit = log.callback();
  const LocalExecutor here = make(options);
  CHECK(here.redact("a hunter2-hunter2 b") == "a [redacted] b");
  Result result;
  result.command = "read hunter2-hunter2";
  result.work_dir = place.path();
  result.outcome = Outcome::exited;
  here.record(result, "read_file");
  CHECK(result.command == "read [redacted]");
  CHECK(result.notes.empty());
  const std::vector<Json> records = log.take();
  REQUIRE(records.size() == 1);
  CHECK(records[0]["tool"] == Json("read_file"));
  CHECK(records[0]["command"] == Json("read [redacted]"));
  CHECK(records[0]["agent_id"] == Json("somebody"));
  CHECK(records[0]["allowed"] == Json(true));
  CHECK(ends(records[0]["time"].as_string(), "Z"));
  CHECK(parsed(support::read_file(place / "audit")).dump() == records[0].dump());
}

TEST_CASE("16 threads append whole lines to the audit file, which keeps what it had") {
  const support::TempDir place;
  place.file("audit", "{\"old\":true}\n");
  LocalOptions options;
  options.audit_file = place / "audit";
  const LocalExecutor one = make(options);
  const LocalExecutor two = make(options);
  constexpr int thread_count = 16;
  constexpr int each = 20;
  std::vector<std::thread> threads;
  for (int t = 0; t < thread_count; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < each; ++i) {
        // Refused, so that nothing but the record takes time; each of another length.
        const std::string id = std::to_string(t) + "/" + std::to_string(i) + "/";
        (t % 2 ? one : two).run("sudo " + id + std::string(static_cast<std::size_t>(i) * 700, 'x'));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Strings lines = lines_of(support::read_file(place / "audit"));
  REQUIRE(lines.size() == 1 + thread_count * each);
  CHECK(lines[0] == "{\"old\":true}");
  std::set<std::string> ids;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const Json record = parsed(lines[i]);
    const std::string& command = record["command"].as_string();
    ids.insert(command.substr(0, command.rfind('/')));
    CHECK(record["rule"] == Json("sudo"));
  }
  CHECK(ids.size() == thread_count * each);
}

TEST_CASE("an audit record that cannot be written is told in the result") {
  if (!support::exists("/dev/full")) {
    MESSAGE("SKIPPED: there is no /dev/full");
    return;
  }
  LocalOptions options;
  options.audit_file = "/dev/full";
  const LocalExecutor here = make(options);
  const auto told = [](const Result& r) {
    return r.notes.size() == 1 &&
           begins(r.notes[0], "the audit record could not be written to '/dev/full': ");
  };
  CHECK(told(here.run("true")));
  CHECK(told(here.run("sudo ls")));
  CHECK(told(here.start(Command::shell("true")).wait()));
  CHECK(told(here.start(Command::shell("sudo ls")).wait()));
  CHECK(here.run("true").succeeded());
}
