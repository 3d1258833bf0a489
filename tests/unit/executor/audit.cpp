// The audit log.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
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

TEST_CASE("one record at a time is told, and a command may be run by who is told") {
  const support::TempDir place;
  LocalOptions options = in(place);
  std::atomic<int> at_once{0};
  std::atomic<int> most{0};
  std::atomic<int> records{0};
  const LocalExecutor* itself = nullptr;
  options.on_audit = [&](const codeexec::AuditRecord& record) {
    const int number = ++records;
    if (record.result->command == "echo inner") return;
    const int now = ++at_once;
    if (now > most) most = now;
    if (number == 1) CHECK(itself->run("echo inner").out == "inner\n");
    std::this_thread::yield();
    --at_once;
  };
  const LocalExecutor here = make(options);
  itself = &here;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 10; ++n) here.run("true");
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(records == 41);
  CHECK(most == 1);
}

TEST_CASE("every command leaves one record, through callback and file alike") {
  const support::TempDir place;
  AuditLog log;
  LocalOptions options = in(place);
  options.agent_id = "agent-7";
  options.audit_file = place / "audit.jsonl";
  options.on_audit = log.callback();
  const LocalExecutor here = make(options);
  Command fine = Command::shell("echo 12345; printf abc >&2; exit 3");
  fine.caller.tool = "some_tool";
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
  // In the file, the chain stands around what the callback is told.
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string told = records[i].dump();
    CHECK(begins(lines[i], "{\"previous\":\""));
    CHECK(lines[i].find("\"," + told.substr(1, told.size() - 2) + ",\"hash\":\"") !=
          std::string::npos);
  }

  const Json& first = records[0];
  CHECK(member_names(first) == Strings{"time", "host", "pid", "agent_id", "tool", "command",
                                       "work_dir", "allowed", "outcome", "exit_code", "duration_ms",
                                       "cpu_ms", "peak_memory", "stdout_bytes", "stdout_sha256",
                                       "stderr_bytes", "stderr_sha256"});
  char host[256] = {};
  REQUIRE(::gethostname(host, sizeof host - 1) == 0);
  CHECK(first["host"] == Json(host));
  CHECK(first["pid"] == Json(static_cast<std::int64_t>(::getpid())));
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
  CHECK(member_names(refused) == Strings{"time", "host", "pid", "agent_id", "tool", "command",
                                         "work_dir", "allowed", "rule", "rule_begin", "rule_end",
                                         "message", "outcome", "exit_code", "duration_ms", "cpu_ms",
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
  Command asked;
  asked.caller.tool = "read_file";
  here.record(result, asked);
  CHECK(result.command == "read [redacted]");
  CHECK(result.notes.empty());
  const std::vector<Json> records = log.take();
  REQUIRE(records.size() == 1);
  CHECK(records[0]["tool"] == Json("read_file"));
  CHECK(records[0]["command"] == Json("read [redacted]"));
  CHECK(records[0]["agent_id"] == Json("somebody"));
  CHECK(records[0]["allowed"] == Json(true));
  CHECK(ends(records[0]["time"].as_string(), "Z"));
  CHECK(parsed(support::read_file(place / "audit"))["command"] == records[0]["command"]);
}

namespace {

// What sha256sum(1) says of a text.
std::string sha256_of(const support::TempDir& place, const std::string& text) {
  codeexec::ProcessOptions options;
  options.argv = {"sha256sum", place.file("hashed", text)};
  options.environment = {"PATH=/usr/bin:/bin"};
  return codeexec::run_process(options).out.substr(0, 64);
}

// The hashes of a file's records lead from each to the next.
bool is_chain(const Strings& lines) {
  std::string previous;
  for (const std::string& line : lines) {
    const Json record = parsed(line);
    if (!previous.empty() && record["previous"] != Json(previous)) return false;
    previous = record["hash"].as_string();
    if (previous.size() != 64) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("an audit record tells who asked, and the hashes of input and output") {
  const support::TempDir place;
  AuditLog log;
  LocalOptions options = in(place);
  options.max_output = 1024;
  options.audit_output = 20;
  options.on_audit = log.callback();
  const LocalExecutor here = make(options);
  Command command = Command::shell("seq 1 10000; cat >&2");
  command.caller.client = "somebody 1.0";
  command.caller.request = "\"r-7\"";
  command.caller.session_id = "s1";
  command.caller.shell_id = "shell_0";
  command.input = std::string(100000, 'i');
  here.run(command);
  here.start(command).wait();
  command.input.clear();
  command.caller.client = std::string(5000, 'c');
  here.run(command);
  const std::vector<Json> records = log.take();
  REQUIRE(records.size() == 3);
  std::string counted;
  for (int i = 1; i <= 10000; ++i) counted += std::to_string(i) + "\n";
  for (const std::size_t i : {0u, 1u}) {
    CAPTURE(i);
    const Json& record = records[i];
    CHECK(record["client"] == Json("somebody 1.0"));
    CHECK(record["request"] == Json("\"r-7\""));
    CHECK(record["session_id"] == Json("s1"));
    CHECK(record["shell_id"] == Json("shell_0"));
    CHECK(record["input_bytes"] == Json(100000));
    CHECK(record["input_sha256"] == Json(sha256_of(place, std::string(100000, 'i'))));
    CHECK(record["stderr_sha256"] == record["input_sha256"]);
    CHECK(record["stdout_sha256"] == Json(sha256_of(place, counted)));
    CHECK(record["stdout"] == Json("1\n2\n3\n4\n5\n\n... (48874 bytes omitted) ...\n999\n10000\n"));
  }
  CHECK(records[2].find("input_sha256") == nullptr);
  CHECK(records[2].find("stderr_sha256") == nullptr);
  CHECK(records[2]["client"].as_string().size() == 1024);
}

TEST_CASE("the hash of an output is that of what is told: with its secrets masked") {
  const support::TempDir place;
  const support::EnvironmentGuard secret("CODEEXEC_TEST_TOKEN", "hunter2-hunter2");
  AuditLog log;
  LocalOptions options = in(place);
  options.environment.secret = {"CODEEXEC_TEST_TOKEN"};
  options.audit_output = 100;
  options.on_audit = log.callback();
  const LocalExecutor here = make(options);
  here.run("printf 'a %s b' \"$CODEEXEC_TEST_TOKEN\"");
  const std::vector<Json> records = log.take();
  REQUIRE(records.size() == 1);
  CHECK(records[0]["stdout"] == Json("a [redacted] b"));
  CHECK(records[0]["stdout_sha256"] == Json(sha256_of(place, "a [redacted] b")));
}

TEST_CASE("an audit file that is removed, replaced or shortened is told, and goes on") {
  const support::TempDir place;
  LocalOptions options;
  options.audit_file = place / "audit";
  const LocalExecutor here = make(options);
  const auto lines = [&] { return lines_of(support::read_file(place / "audit")); };
  const auto told = [](const Result& r, const std::string& what) {
    return r.notes.size() == 1 && ends(r.notes[0], what);
  };
  CHECK(here.run("echo one").notes.empty());
  const std::string first_hash = parsed(lines()[0])["hash"].as_string();

  REQUIRE(::unlink((place / "audit").c_str()) == 0);
  CHECK(told(here.run("echo two"), "removed or replaced"));
  CHECK(here.run("echo three").notes.empty());
  REQUIRE(lines().size() == 2);
  CHECK(parsed(lines()[0])["previous"] == Json(first_hash));
  CHECK(parsed(lines()[0])["notice"] == Json("the file had been removed or replaced"));
  CHECK(is_chain(lines()));

  // A link in its place is not followed.
  const std::string elsewhere = place.file("elsewhere", "");
  REQUIRE(::rename((place / "audit").c_str(), (place / "old").c_str()) == 0);
  REQUIRE(::symlink(elsewhere.c_str(), (place / "audit").c_str()) == 0);
  const Result linked = here.run("echo four");
  REQUIRE(linked.notes.size() == 1);
  CHECK(begins(linked.notes[0], "the audit record could not be written to "));
  CHECK(support::read_file(elsewhere).empty());
  REQUIRE(::rename((place / "old").c_str(), (place / "audit").c_str()) == 0);
  here.run("echo five");
  REQUIRE(lines().size() == 4);
  CHECK(parsed(lines()[2])["command"] == Json("echo four"));
  CHECK(is_chain(lines()));

  REQUIRE(::truncate((place / "audit").c_str(), 10) == 0);
  CHECK(told(here.run("echo six"), "the file had become shorter"));
  CHECK(here.run("echo seven").notes.empty());
  REQUIRE(lines().size() == 3);
  CHECK(lines()[0] == "{\"previous");
  CHECK(parsed(lines()[1])["command"] == Json("echo six"));
  CHECK(is_chain({lines()[1], lines()[2]}));

  // What somebody else has written is no hash, and no text that stands in the next line.
  std::ofstream(place / "audit", std::ios::app)
      << ",\"hash\":\"" << std::string(64, '"') << "\"}\n";
  here.run("echo eight");
  REQUIRE(lines().size() == 5);
  CHECK(parsed(lines()[4])["previous"] == Json(""));
}

namespace {

// As long as it lives, no file grows beyond so many bytes.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(std::size_t bytes) {
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() { CHECK(::setrlimit(RLIMIT_FSIZE, &before_) == 0); }

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("audit records that find no room wait, and are written in order when there is some") {
  const support::TempDir place;
  LocalOptions options;
  options.audit_file = place / "audit";
  const LocalExecutor here = make(options);
  CHECK(here.run("echo one").notes.empty());
  const auto size = support::read_file(place / "audit").size();
  {
    std::vector<Result> results;
    {
      // The next record fits in part.
      const FileSizeLimit limit(size + 100);
      for (const char* command : {"echo two", "sudo three"}) results.push_back(here.run(command));
    }
    for (const Result& result : results) {
      REQUIRE(result.notes.size() == 1);
      CHECK(begins(result.notes[0], "the audit record could not be written to "));
    }
    CHECK(support::read_file(place / "audit").size() == size);
  }
  CHECK(here.run("echo four").notes.empty());
  const Strings lines = lines_of(support::read_file(place / "audit"));
  REQUIRE(lines.size() == 4);
  CHECK(parsed(lines[1])["command"] == Json("echo two"));
  CHECK(parsed(lines[2])["command"] == Json("sudo three"));
  CHECK(is_chain(lines));
}

TEST_CASE("of audit records that wait for room 1 MiB are kept, and the others counted") {
  const support::TempDir place;
  LocalOptions options;
  options.audit_file = place / "audit";
  const LocalExecutor here = make(options);
  const std::string longest(16 * 1024 - 10, 'x');
  {
    const FileSizeLimit limit(0);
    for (int i = 0; i < 100; ++i) here.run("sudo " + std::to_string(i) + longest);
  }
  here.run("sudo last");
  const Strings lines = lines_of(support::read_file(place / "audit"));
  REQUIRE(lines.size() > 50);
  CHECK(lines.size() < 66);
  CHECK(parsed(lines[0])["lost"] == Json(static_cast<std::int64_t>(101 - lines.size())));
  CHECK(parsed(lines.back())["command"] == Json("sudo last"));
  CHECK(parsed(lines.back()).find("lost") == nullptr);
  CHECK(is_chain(lines));
}

TEST_CASE("a lock that somebody holds on the audit file does not stop commands") {
  const support::TempDir place;
  LocalOptions options;
  options.audit_file = place / "audit";
  const LocalExecutor here = make(options);
  const codeexec::UniqueFd other(::open((place / "audit").c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(::flock(other.get(), LOCK_EX) == 0);
  CHECK(here.run("echo one").succeeded());
  CHECK(here.run("echo two").succeeded());
  Strings lines = lines_of(support::read_file(place / "audit"));
  CHECK(lines.size() == 2);
  CHECK(is_chain(lines));

  // Half a line stays: who does not ask for the lock may have written behind it.
  const auto size = support::read_file(place / "audit").size();
  Result cut;
  {
    const FileSizeLimit limit(size + 100);
    cut = here.run("echo three");
  }
  CHECK(cut.notes.size() == 1);
  CHECK(support::read_file(place / "audit").size() == size + 100);
  here.run("echo four");
  lines = lines_of(support::read_file(place / "audit"));
  REQUIRE(lines.size() == 5);
  CHECK(parsed(lines[3])["command"] == Json("echo three"));
  CHECK(is_chain({lines[3], lines[4]}));
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
  CHECK(is_chain({lines.begin() + 1, lines.end()}));
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
