// The one gate and running on this host: what is refused and how that is told, what a command gets,
// what is recorded, and that run() and start() do not differ in any of it.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#if defined(__linux__)
#include <sys/mount.h>
#endif

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "executor_support.hpp"
#include "support.hpp"

using codeexec::AuditRecord;
using codeexec::CancelToken;
using codeexec::Capture;
using codeexec::Command;
using codeexec::ErrorCode;
using codeexec::Execution;
using codeexec::Expected;
using codeexec::Json;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Network;
using codeexec::Outcome;
using codeexec::Permission;
using codeexec::ProcessOptions;
using codeexec::Result;
using codeexec::SandboxMode;
using codeexec::Stream;
using std::chrono::milliseconds;
using std::chrono::seconds;
using support::AuditLog;
using support::begins;
using support::dies;
using support::ends;
using support::has;
using support::LeakCheck;
using support::lines_of;
using support::make;

namespace {

// Nothing here takes as long; it only keeps a failing test from hanging.
constexpr seconds safety(60);

using Strings = std::vector<std::string>;

// Tells an end that came of itself from one that a limit of `safety` had to bring about.
class Stopwatch {
 public:
  bool soon() const { return std::chrono::steady_clock::now() - begin_ < safety / 2; }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// Something that happens once, in any thread.
class Event {
 public:
  void set() {
    const std::lock_guard<std::mutex> lock(mutex_);
    happened_ = true;
    changed_.notify_all();
  }
  bool wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, safety, [this] { return happened_; });
  }

 private:
  std::mutex mutex_ = {};
  std::condition_variable changed_ = {};
  bool happened_ = false;
};

bool is_running(pid_t pid) { return ::kill(pid, 0) == 0; }

Json parsed(const std::string& text) {
  const Expected<Json> value = Json::parse(text);
  REQUIRE_MESSAGE(value, text);
  return *value;
}

std::vector<std::string> names_of(const Json& object) {
  Strings names;
  for (const Json::Member& member : object.members()) names.push_back(member.name);
  return names;
}

LocalOptions in(const support::TempDir& directory) {
  LocalOptions options;
  options.workspace = directory.path();
  return options;
}

std::string describe(const Result& r) {
  std::string text =
      r.summary() + " out '" + r.out + "' err '" + r.err + "' message '" + r.message + "'";
  for (const std::string& note : r.notes) text += " note '" + note + "'";
  return text;
}

// A command that must succeed; its standard output.
std::string output_of(const LocalExecutor& executor, const Command& command) {
  const Result r = executor.run(command);
  CHECK_MESSAGE(r.succeeded(), describe(r));
  return r.out;
}

std::string output_of(const LocalExecutor& executor, const std::string& script) {
  return output_of(executor, Command::shell(script));
}

// A script of at least `size` bytes that prints "end".
std::string long_script(std::size_t size) {
  // Long lines: a script may have 4096 commands.
  const std::string line = ": " + std::string(1021, 'x') + "\n";
  std::string script;
  while (script.size() < size) script += line;
  return script + "echo end\n";
}

const char* const child = CODEEXEC_TEST_CHILD;

}  // namespace

// the gate ----------------------------------------------------------------------------------------

TEST_CASE("run() gives output, status and where it ran") {
  const support::TempDir place;
  const LocalExecutor here = make(in(place));
  const LeakCheck leaks;
  const Result r = here.run("echo out; echo err >&2; pwd; exit 3");
  CHECK(r.outcome == Outcome::exited);
  CHECK(r.exit_code == 3);
  CHECK(!r.succeeded());
  CHECK(r.out == "out\n" + place.path() + "\n");
  CHECK(r.err == "err\n");
  CHECK(r.command == "echo out; echo err >&2; pwd; exit 3");
  CHECK(r.work_dir == place.path());
  CHECK(r.timeout == seconds(60));
  CHECK(r.rule.empty());
  CHECK(r.message.empty());
  CHECK(r.notes.empty());
  CHECK(r.pid > 0);
  CHECK(r.wall_time.count() > 0);
  CHECK(leaks.clean());
}

TEST_CASE("a refusal tells its rule, its message and the bytes of the command that caused it") {
  const support::TempDir place;
  AuditLog log;
  LocalOptions options = in(place);
  options.on_audit = log.callback();
  const LocalExecutor here = make(options);
  const std::string script = "touch made && echo x | sudo tee y";
  const Result r = here.run(script);
  CHECK(r.outcome == Outcome::refused);
  CHECK(r.rule == "sudo");
  CHECK(begins(r.message, "Potentially dangerous command detected: Use of 'sudo' is not allowed"));
  CHECK(begins(script.substr(r.rule_begin, r.rule_end - r.rule_begin), "sudo"));
  CHECK(r.exit_code == -1);
  CHECK(r.pid == -1);
  CHECK(r.command == script);
  CHECK(r.work_dir == place.path());
  CHECK(r.wall_time.count() == 0);
  CHECK(r.out.empty());
  CHECK(r.err.empty());
  CHECK(!support::exists(place / "made"));
  CHECK(log.take().size() == 1);
}

TEST_CASE("allowed and blocked patterns refuse with the reference's texts") {
  LocalOptions options;
  options.policy.allowed = {"echo.*", "cat .*"};
  options.policy.blocked = {"echo secret.*"};
  const LocalExecutor here = make(options);
  CHECK(here.run("echo fine").succeeded());
  const Result other = here.run("ls");
  CHECK(other.rule == "allowed-commands");
  CHECK(begins(other.message, "Command not in allowed list. Allowed patterns: echo.*, cat .*"));
  const Result blocked = here.run("echo secret thing");
  CHECK(blocked.rule == "blocked-commands");
  CHECK(begins(blocked.message, "Command matches blocked pattern: 'echo secret.*'"));
}

TEST_CASE("an argv is judged as the command line that would start the same") {
  const LocalExecutor here = make({});
  const Result r = here.run(Command::program({"sudo", "ls", "a b"}));
  CHECK(r.outcome == Outcome::refused);
  CHECK(r.rule == "sudo");
  CHECK(r.command == "sudo ls 'a b'");
  CHECK(begins(r.command.substr(r.rule_begin, r.rule_end - r.rule_begin), "sudo"));
}

TEST_CASE("W-48: no name of a tool leads around the gate") {
  const codeexec::LocalExecutor executor = support::make();
  for (const char* tool : {"", "execute_command", "mcp__command_line__execute_command", "Bash"}) {
    CAPTURE(std::string(tool));
    Command command = Command::shell("rm -rf / --no-such-option; sudo --version");
    command.tool = tool;
    CHECK(executor.run(command).outcome == Outcome::refused);
    CHECK(executor.check(command).outcome == Outcome::refused);
    CHECK(executor.start(command).wait().outcome == Outcome::refused);
  }
}

TEST_CASE("a command with both a script and an argv is refused") {
  const LocalExecutor here = make({});
  Command command = Command::program({"/bin/true"});
  command.script = "false";
  const Result r = here.run(command);
  CHECK(r.outcome == Outcome::refused);
  CHECK(r.rule == "command");
  CHECK(r.message == "a command has either a script or an argv, not both");
}

TEST_CASE("run() and start() pass the same gate and give the same results") {
  const support::TempDir place;
  place.file("file.txt");
  const support::TempDir outside;
  support::make_symlink(outside.path(), place / "out");
  AuditLog log;
  LocalOptions options = in(place);
  options.roots = {{place.path(), Permission::write}};
  options.policy.blocked = {"echo blocked.*"};
  options.policy.allowed = {"[^y].*", ""};
  options.max_timeout = seconds(70);
  options.on_audit = log.callback();
  options.delete_guard = true;
  place.directory("ro");
  options.roots.push_back({place / "ro", Permission::read});
  const LocalExecutor here = make(options);

  std::vector<Command> commands;
  const auto add = [&](const char* script, const char* work_dir = "",
                       std::optional<milliseconds> timeout = {}) {
    Command command = Command::shell(script);
    command.work_dir = work_dir;
    command.timeout = timeout;
    command.tool = "parity";
    commands.push_back(command);
  };
  add("echo fine; echo also >&2; exit 4");
  add("");
  add("kill -9 $$");
  add("sudo ls");
  add("echo blocked");
  add("touch ro/x");
  add("rm file.txt");
  add("ls", "/");
  add("ls", "out");
  add("ls", "missing");
  add("ls", "file.txt");
  add("ls", "", milliseconds(0));
  add("ls", "", milliseconds(-250));
  add("true", "", seconds(999));
  add("echo begin; exec sleep 300", "", milliseconds(200));
  commands.push_back(Command::program({"/nonexistent/program"}));
  commands.push_back(Command::shell(std::string("a\0b", 3)));
  commands.push_back(Command::shell("true"));
  commands.back().environment = {{"", "x"}};
  commands.push_back(Command::shell(long_script(200000)));
  commands.push_back(Command::shell("true"));
  commands.back().argv = {"/bin/true"};

  std::set<Outcome> seen;
  for (const Command& command : commands) {
    CAPTURE(command.script.substr(0, 50));
    CAPTURE(command.work_dir);
    log.take();
    const Result run = here.run(command);
    const std::vector<Json> run_records = log.take();
    const Result started = here.start(command).wait();
    const std::vector<Json> start_records = log.take();
    const Result checked = here.check(command);
    CHECK(log.take().empty());
    seen.insert(run.outcome);

    CHECK(run.outcome == started.outcome);
    CHECK(run.exit_code == started.exit_code);
    CHECK(run.signal == started.signal);
    CHECK(run.out == started.out);
    CHECK(run.err == started.err);
    CHECK(run.command == started.command);
    CHECK(run.work_dir == started.work_dir);
    CHECK(run.rule == started.rule);
    CHECK(run.message == started.message);
    CHECK(run.rule_begin == started.rule_begin);
    CHECK(run.rule_end == started.rule_end);
    CHECK(run.timeout == started.timeout);
    CHECK(run.notes == started.notes);
    CHECK(run.step == started.step);
    CHECK(run.system_error == started.system_error);

    REQUIRE(run_records.size() == 1);
    REQUIRE(start_records.size() == 1);
    for (const char* field :
         {"tool", "command", "work_dir", "allowed", "rule", "message", "outcome", "exit_code",
          "signal", "stdout_bytes", "stderr_bytes", "command_bytes"})
      CHECK_MESSAGE(run_records[0][field] == start_records[0][field], field);
    CHECK(names_of(run_records[0]) == names_of(start_records[0]));

    // check() knows the refusals, and only them.
    if (run.outcome == Outcome::refused) {
      CHECK(checked.outcome == Outcome::refused);
      CHECK(checked.rule == run.rule);
      CHECK(checked.message == run.message);
      CHECK(checked.work_dir == run.work_dir);
    } else {
      CHECK(checked.outcome == Outcome::not_started);
      CHECK(checked.rule.empty());
      CHECK(checked.message.empty());
    }
  }
  CHECK(seen == std::set<Outcome>{Outcome::exited, Outcome::signaled, Outcome::timed_out,
                                  Outcome::refused, Outcome::not_started});
}

TEST_CASE("check() judges and touches nothing") {
  const support::TempDir place;
  const support::TempDir skills;
  const support::TempDir audit;
  AuditLog log;
  LocalOptions options = in(place);
  options.skills_dir = skills.path();
  options.audit_file = audit / "log";
  options.on_audit = log.callback();
  const LocalExecutor here = make(options);
  const LeakCheck leaks;
  const Result r = here.check(Command::shell("touch made"));
  CHECK(r.outcome == Outcome::not_started);
  CHECK(r.rule.empty());
  CHECK(r.work_dir == place.path());
  CHECK(r.timeout == seconds(60));
  CHECK(here.check(Command::shell("sudo ls")).rule == "sudo");
  CHECK(!support::exists(place / "made"));
  CHECK(!support::exists(place / ".agent"));
  CHECK(log.take().empty());
  CHECK(support::read_file(audit / "log").empty());
  CHECK(leaks.clean());
}

TEST_CASE("refusals come in the order policy, timeout, work_dir") {
  const support::TempDir place;
  LocalOptions options = in(place);
  options.roots = {{place.path(), Permission::write}};
  const LocalExecutor here = make(options);
  Command command = Command::shell("sudo ls");
  command.timeout = milliseconds(0);
  command.work_dir = "/";
  CHECK(here.run(command).rule == "sudo");
  command.script = "ls";
  CHECK(here.run(command).rule == "timeout");
  command.timeout = seconds(1);
  CHECK(here.run(command).rule == "work_dir");
  command.work_dir = place.path();
  CHECK(here.run(command).succeeded());
}

TEST_CASE("W-07: enable_sudo does not count on this host") {
  LocalOptions options;
  options.policy.enable_sudo = true;
  const LocalExecutor here = make(options);
  for (const std::string& script :
       Strings{"sudo -V", "su --version", "chown --version", "chmod --version"})
    CHECK_MESSAGE(here.check(Command::shell(script)).outcome == Outcome::refused, script);
}

TEST_CASE("the policy is told where a script will run") {
  const support::TempDir place;
  support::make_symlink("/", place / "root");
  place.directory("sub");
  const LocalExecutor here = make(in(place));
  const auto rule_in = [&](const char* work_dir) {
    Command command = Command::shell("rm -rf * --no-such-option");
    command.work_dir = work_dir;
    return here.check(command).rule;
  };
  CHECK(rule_in("/") == "rm-protected");
  CHECK(rule_in("root") == "rm-protected");
  CHECK(rule_in("../../../../../../../..") == "rm-protected");
  CHECK(rule_in("") == "");
  CHECK(rule_in("sub") == "");
  CHECK(rule_in("missing") == "work_dir");
}

TEST_CASE("judge() tells the verdict of check() and what was found") {
  const support::TempDir place;
  place.directory("ro");
  LocalOptions options = in(place);
  options.roots = {{place.path(), Permission::write}, {place / "ro", Permission::read}};
  options.policy.blocked = {"ls .*"};
  const LocalExecutor here = make(options);
  std::vector<Command> commands;
  for (const char* script : {"echo a; true", "sudo ls", "ls x", "touch ro/x", "touch x"})
    commands.push_back(Command::shell(script));
  commands.push_back(Command::program({"touch", "ro/x y"}));
  commands.push_back(Command::shell("true"));
  commands.back().argv = {"true"};
  commands.push_back(Command::shell("true"));
  commands.back().timeout = milliseconds(0);
  commands.push_back(Command::shell("true"));
  commands.back().work_dir = "/";
  std::set<std::string> rules;
  for (const Command& command : commands) {
    CAPTURE(command.script);
    const codeexec::Judgement judgement = here.judge(command);
    const Result checked = here.check(command);
    CHECK(judgement.verdict.allowed == (checked.outcome != Outcome::refused));
    CHECK(judgement.verdict.rule == checked.rule);
    CHECK(judgement.verdict.message == checked.message);
    CHECK(judgement.verdict.begin == checked.rule_begin);
    CHECK(judgement.verdict.end == checked.rule_end);
    rules.insert(judgement.verdict.rule);
  }
  CHECK(rules == std::set<std::string>{"", "sudo", "blocked-commands", "read-only", "command",
                                       "timeout", "work_dir"});
  const codeexec::Judgement judgement = here.judge(commands[0]);
  REQUIRE(judgement.commands.size() == 2);
  CHECK(judgement.commands[0].words.at(1).text == "a");
  CHECK(!support::exists(place / "x"));
}

// read-only roots ---------------------------------------------------------------------------------

namespace {

// A workspace with read-only parts.
struct ReadOnlyPlace {
  ReadOnlyPlace() {
    place.file("ws/ro/file", "precious");
    place.file("ws/ro/deep/file", "precious");
    place.file("ws/.ref/file", "precious");
    place.file("ws/a", "a");
    place.file("ws/b", "b");
    place.file("ws/sub/c", "c");
    place.directory("ws/ro/out");
    support::make_symlink("ro", place / "ws/link");
    support::make_symlink("ro/file", place / "ws/to_file");
    support::make_symlink("../ro", place / "ws/sub/up");
    support::make_symlink(ws, place / "ws/self");
    options.workspace = ws;
    options.roots = {{ws, Permission::write},
                     {ws + "/ro", Permission::read},
                     {ws + "/.ref", Permission::read},
                     {ws + "/ro/out", Permission::write}};
    options.environment.set = {{"HOME", ws}};
  }
  support::TempDir place = {};
  std::string ws = place / "ws";
  LocalOptions options = {};
};

}  // namespace

TEST_CASE("W-50: a script that would change a read-only root is refused, with the path") {
  const ReadOnlyPlace at;
  const std::string ro = at.ws + "/ro";
  const LocalExecutor here = make(at.options);
  // Script and what of it is refused, below the workspace.
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"echo x > ro/new", "ro/new"},
      {"echo x >> ro/file", "ro/file"},
      {"cat a 2>&1 > ro/file", "ro/file"},
      {"cat a > " + ro + "/file", "ro/file"},
      {"echo x | tee ro/file", "ro/file"},
      {"tee ro/file < a", "ro/file"},
      {"cp -f a ro/new", "ro/new"},
      {"cp a b ro", "ro"},
      {"sed -i s/p/q/ ro/file", "ro/file"},
      {"truncate -s0 ro/file", "ro/file"},
      {"ln -sf a ro/file", "ro/file"},
      {"mkdir -p ro/d", "ro/d"},
      {"touch ro/new", "ro/new"},
      {"mv a ro/new", "ro/new"},
      {"mv ro/file a", "ro/file"},
      {"rm ro/file", "ro/file"},
      {"rm -f ro/deep/../file", "ro/file"},
      {"rm -rf ro", "ro"},
      {"rmdir ro", "ro"},
      {"true; touch a && (rm b; touch ro/new)", "ro/new"},
      {"cd ro && touch new", "ro/new"},
      {"sh -c 'touch ro/new'", "ro/new"},
      {"env X=1 touch ro/new", "ro/new"},
      {"find ro -name file -delete", "ro"},
      {"touch sub/../ro/new", "ro/new"},
      // Through symbolic links.
      {"touch link/new", "ro/new"},
      {"echo x > to_file", "ro/file"},
      {"rm link/file", "ro/file"},
      {"touch sub/up/new", "ro/new"},
      {"rm self/ro/file", "ro/file"},
      {"touch /proc/self/root" + ro + "/new", "ro/new"},
      // All around a read-only root.
      {"rm -rf " + at.ws, "ro"},
      {"rm -rf .", "ro"},
      {"mv " + at.ws + " " + at.ws + "2", "ro"},
      // Patterns: what they stand for, and where that can be at all.
      {"rm -rf *", "ro"},
      {"rm -rf " + at.ws + "/*", "ro"},
      {"rm -rf r?", "ro"},
      {"rm -rf [!a-q]o", "ro"},
      {"rm */file", "ro/file"},
      {"rm ro/*", "ro"},
      {"rm ro/no*such", "ro"},
      {"touch ro/*", "ro"},
      {"rm -rf .r*", ".ref"},
      {"rm -rf .*f", ".ref"},
      {"rm -rf ro*", "ro"},
      {"rm -rf [p-s]o", "ro"},
      // Home.
      {"touch ~/ro/new", "ro/new"},
      {"touch \"$HOME/ro/new\"", "ro/new"}};
  for (const auto& each : cases) {
    const std::string& script = each.first;
    CAPTURE(script);
    const Result r = here.check(Command::shell(script));
    CHECK(r.outcome == Outcome::refused);
    CHECK(r.rule == "read-only");
    CHECK(r.message == "Command would modify read-only context path: " + at.ws + "/" + each.second);
    CHECK(r.rule_begin < r.rule_end);
    CHECK(r.rule_end <= script.size());
  }
  CHECK(here.run("echo x > ro/new; echo ran").out.empty());
  CHECK(!support::exists(ro + "/new"));
  const Result argv = here.run(Command::program({"touch", ro + "/new file"}));
  CHECK(argv.rule == "read-only");
  CHECK(argv.command.substr(argv.rule_begin, argv.rule_end - argv.rule_begin) ==
        "'" + ro + "/new file'");
  // Where the range is exact.
  const Result exact = here.run("echo x > ro/new");
  CHECK(has(exact.command.substr(exact.rule_begin, exact.rule_end - exact.rule_begin), "ro/new"));
}

TEST_CASE("W-49: what changes nothing read-only is not refused") {
  const ReadOnlyPlace at;
  const LocalExecutor here = make(at.options);
  for (const std::string& script :
       Strings{"cat ro/file", "cat link/file > copy", "cp ro/file sub/copy",
               std::string("echo > " + at.ws + "/ro2"), "touch ro2/x", "rm -f rox/*", "rm -f sub/*",
               "rm -rf sub/*", "rm a*", "rm -rf ?re[f]", "rm -rf [a-q]o", "rm */nosuch",
               "touch */nosuch", "rm -rf r", "rm -rf o*", "echo ro/file", "echo '> ro/file'",
               "grep -r 'rm ro' .", "touch ro/out/x", "rm -rf ro/out/x", "echo x > /dev/null",
               "cat a 2> /dev/null",
               // The link goes, not what it leads to.
               "rm link", "rm to_file",
               // The false alarms of the reference.
               "python train.py --model gpt-4", "ruff format .", "transform x", "warm up",
               "docker rm x", "echo " + at.ws + "/ro/path", "for i in 1; do echo $i; done",
               "/usr/bin/python3 x.py", "touch \"$(mktemp)\""}) {
    const Result r = here.check(Command::shell(script));
    CHECK_MESSAGE(r.rule == "", script << ": " << r.rule << ": " << r.message);
  }
}

TEST_CASE("read-only roots: the deepest root decides, and work_dir counts") {
  const ReadOnlyPlace at;
  const LocalExecutor here = make(at.options);
  Command command = Command::shell("touch x");
  command.work_dir = "ro";
  CHECK(here.check(command).rule == "read-only");
  command.work_dir = "link/deep";
  CHECK(here.check(command).rule == "read-only");
  command.work_dir = "ro/out";
  CHECK(here.check(command).rule == "");
  command.script = "touch ../x";
  CHECK(here.check(command).rule == "read-only");
  command.script = "touch ../../x";
  CHECK(here.check(command).rule == "");
  // Nothing may be changed where not even reading is allowed.
  LocalOptions options = at.options;
  options.roots = {{at.ws, Permission::write}, {at.ws + "/ro", Permission::none}};
  CHECK(make(options).check(Command::shell("touch ro/x")).rule == "read-only");
  // Outside of all roots is another matter.
  CHECK(here.check(Command::shell("touch /tmp/codeexec-nothing")).rule == "");
}

TEST_CASE("read-only roots: a home directory that is not known is none to write to") {
  const ReadOnlyPlace at;
  LocalOptions options = at.options;
  options.environment.set = {};
  options.environment.keep = {"PATH"};
  const LocalExecutor here = make(options);
  CHECK(here.check(Command::shell("touch ~/x")).rule == "read-only");
  CHECK(here.check(Command::shell("cat ~/x")).rule == "");
  CHECK(here.check(Command::shell("touch ~nobody-like-this/x")).rule == "read-only");
  Command command = Command::shell("touch ~/x");
  command.environment = {{"HOME", at.ws}};
  CHECK(here.check(command).rule == "");
  command.environment = {{"HOME", at.ws + "/ro"}};
  CHECK(here.check(command).rule == "read-only");
  CHECK(has(here.check(Command::shell("touch ~roo/x")).message, "is not known here"));
  // root's home is what /etc/passwd says.
  options.roots.push_back({"/root", Permission::read});
  if (::access("/root", R_OK | X_OK) != 0) {
    MESSAGE("SKIPPED: /root cannot be read here");
    return;
  }
  CHECK(make(options).check(Command::shell("touch ~root/x")).message ==
        "Command would modify read-only context path: /root/x");
}

TEST_CASE("the file guard with the compat policy: what cannot be read is refused") {
  const ReadOnlyPlace at;
  LocalOptions options = at.options;
  options.policy.mode = codeexec::PolicyOptions::Mode::compat;
  const auto rule_of = [](const LocalExecutor& here, const char* script) {
    return here.check(Command::shell(script)).rule;
  };
  const LocalExecutor read_only = make(options);
  CHECK(rule_of(read_only, "touch ro/x") == "read-only");
  CHECK(rule_of(read_only, "touch x") == "");
  CHECK(rule_of(read_only, "rm -fr / --no-such-option") == "read-only");
  CHECK(rule_of(read_only, "echo dd") == "dd");
  for (const char* script : {"echo 'open", "touch ro/x; fi", "echo $(", "cat <<'A' $(\nA"})
    CHECK(rule_of(read_only, script) == "read-only");
  CHECK(read_only.check(Command::shell("echo 'open")).message ==
        "Command was not understood, so which files it changes is not known");
  CHECK(rule_of(read_only, "cat \"$(mktemp)\"; $TOOL x | sh") == "");
  options.roots = {};
  CHECK(rule_of(make(options), "echo 'open") == "");
  options.delete_guard = true;
  CHECK(rule_of(make(options), "echo 'open") == "delete-guard");
  CHECK(rule_of(make(options), "rm a") == "delete-guard");
}

// the delete guard --------------------------------------------------------------------------------

namespace {

std::string unread(const std::string& path) {
  return "Cannot delete '" + path +
         "': File must be read before deletion. Use read (including read_multimodal_files) or "
         "diff tools to view the file first.";
}

}  // namespace

TEST_CASE("delete guard: what no command has read or made is not deleted") {
  const support::TempDir place;
  for (const char* name : {"a", "b", "c", "d", "e", "sub/f", "sub/g", "build/h", "i.pyc"})
    place.file(name, name);
  LocalOptions options = in(place);
  options.delete_guard = true;
  const LocalExecutor here = make(options);
  const auto refused = [&](const std::string& script, const std::string& message) {
    const Result r = here.run(script);
    CHECK_MESSAGE(r.rule == "delete-guard", script);
    CHECK(r.outcome == Outcome::refused);
    CHECK(r.message == message);
    CHECK(r.rule_begin < r.rule_end);
    CHECK(r.rule_end <= script.size());
  };
  refused("rm a", unread(place / "a"));
  refused("rm -f ./a", unread(place / "a"));
  refused("rm " + (place / "a"), unread(place / "a"));
  refused("cat a && rm a", unread(place / "a"));  // it was not read before this was written
  CHECK(support::read_file(place / "a") == "a");

  CHECK(here.run("cat a").succeeded());
  refused("rm a b", unread(place / "b"));
  refused("rm a b c d e", "Cannot delete 4 unread file(s). Examples: " + place / "b" + ", " +
                              (place / "c") + ", " + (place / "d") +
                              " (and 1 more). Please read files before deletion using Read or "
                              "read_multimodal_files.");
  refused("rm ?", "Cannot delete 4 unread file(s). Examples: " + place / "b" + ", " +
                      (place / "c") + ", " + (place / "d") +
                      " (and 1 more). Please read files before deletion using Read or "
                      "read_multimodal_files.");
  CHECK(here.run("rm a").succeeded());
  CHECK(!support::exists(place / "a"));

  refused("rm -rf sub", "Cannot delete directory '" + place / "sub" +
                            "': Contains 2 unread file(s). Examples: f, g. Please read files "
                            "before deletion.");
  // These take no file with them.
  CHECK(here.check(Command::shell("rmdir sub; rm sub")).rule == "");
  CHECK(here.run("cat sub/f").succeeded());
  refused("rm -rf s*", "Cannot delete directory '" + place / "sub" +
                           "': Contains 1 unread file(s). Examples: g. Please read files before "
                           "deletion.");
  CHECK(here.run("cat sub/* > all").succeeded());
  CHECK(here.run("rm -rf sub").succeeded());
  CHECK(!support::exists(place / "sub"));

  // What was made may go; what is auto-generated or not there, too.
  CHECK(here.run("rm all").succeeded());
  CHECK(here.run("echo x > new; mkdir -p dir; touch dir/x").succeeded());
  CHECK(here.run("rm -r new dir").succeeded());
  CHECK(here.run("rm i.pyc").succeeded());
  refused("rm build/h", unread(place / "build/h"));
  CHECK(here.run("rm -rf build").succeeded());
  CHECK(here.run("rm -f missing; rm -rf missing").succeeded());
  CHECK(here.run("echo x > once; rm once").succeeded());
  // A pattern that stands for no file means itself.
  place.file("[x]");
  refused("rm [x]", unread(place / "[x]"));
  // A move takes a file away, too.
  refused("mv b elsewhere", unread(place / "b"));
}

TEST_CASE("delete guard: only what has run counts, and start() counts like run()") {
  const support::TempDir place;
  for (const char* name : {"a", "b", "c"}) place.file(name);
  LocalOptions options = in(place);
  options.delete_guard = true;
  options.policy.blocked = {"cat a"};
  const LocalExecutor here = make(options);
  const auto may = [&](const char* script) {
    return here.check(Command::shell(script)).rule.empty();
  };
  here.run("cat a");
  here.check(Command::shell("cat b"));
  CHECK(!may("rm a"));
  CHECK(!may("rm b"));
  CHECK(here.run(Command::program({"/nonexistent/cat", "b"})).outcome == Outcome::not_started);
  here.run("cat later");
  place.file("later");
  CHECK(!may("rm b"));
  CHECK(!may("rm later"));
  here.start(Command::shell("cat b")).wait();
  CHECK(may("rm b"));
  // A copy has the same memory, another executor its own.
  const LocalExecutor copy = here;
  copy.run("cat c");
  CHECK(may("rm c"));
  CHECK(make(options).check(Command::shell("rm c")).rule == "delete-guard");
  // Other tools may tell what they read.
  REQUIRE(here.delete_guard());
  here.delete_guard()->mark_read(place / "a");
  CHECK(may("rm a"));
  CHECK(make(in(place)).delete_guard() == nullptr);
  CHECK(make(in(place)).check(Command::shell("rm a b c")).rule == "");
}

TEST_CASE("a pattern that may stand for too many files is refused") {
  const support::TempDir place;
  const std::string full = place.directory("full");
  support::fill_directory(full, codeexec::DeleteGuard::max_entries + 1);
  LocalOptions options = in(place);
  options.delete_guard = true;
  const LocalExecutor here = make(options);
  const Result r = here.check(Command::shell("rm full/*x"));
  CHECK(r.rule == "delete-guard");
  CHECK(r.message == "Command would change '" + full +
                         "/*x': there are more than 100000 entries, too many to be checked");
  CHECK(here.check(Command::shell("cat full/*x")).rule == "");
}

TEST_CASE("delete guard: the entries of all the trees are looked at once") {
  const support::TempDir place;
  std::string script = "rm -rf";
  std::string path = "d";
  for (int i = 0; i < 60; ++i) {
    support::fill_directory(place.directory(path), 50, ".log");
    script += " " + path;
    path += "/d";
  }
  LocalOptions options = in(place);
  options.delete_guard = true;
  const LocalExecutor here = make(options);
  CHECK(here.check(Command::shell(script)).rule == "");
  place.file("d/d/d/precious");
  CHECK(here.check(Command::shell(script)).rule == "delete-guard");
  CHECK(here.check(Command::shell("rm -rf d/d/d/d d-x d")).rule == "delete-guard");
  CHECK(here.check(Command::shell("rm -rf d/d/d/d")).rule == "");
}

// timeouts ----------------------------------------------------------------------------------------

TEST_CASE("W-18: a timeout of zero or less is refused") {
  const LocalExecutor here = make({});
  const auto message_for = [&](milliseconds timeout) {
    Command command = Command::shell("echo ran");
    command.timeout = timeout;
    const Result r = here.run(command);
    CHECK(r.outcome == Outcome::refused);
    CHECK(r.rule == "timeout");
    CHECK(r.out.empty());
    return r.message;
  };
  const std::string text = "timeout must be greater than 0 seconds, and not ";
  CHECK(message_for(milliseconds(0)) == text + "0");
  CHECK(message_for(milliseconds(-1)) == text + "-0.001");
  CHECK(message_for(milliseconds(-500)) == text + "-0.5");
  CHECK(message_for(milliseconds(-1000)) == text + "-1");
  CHECK(message_for(milliseconds(-1250)) == text + "-1.25");
  CHECK(begins(message_for(milliseconds::min()), text + "-9223372036854775"));
}

TEST_CASE("W-18: a timeout above the most that is allowed is reduced, and the result says so") {
  LocalOptions options;
  options.timeout = milliseconds(1500);
  options.max_timeout = milliseconds(2500);
  const LocalExecutor here = make(options);
  Command command = Command::shell("true");
  command.timeout = seconds(120000);
  Result r = here.run(command);
  CHECK(r.succeeded());
  CHECK(r.timeout == milliseconds(2500));
  CHECK(r.notes ==
        Strings{"timeout reduced from 120000 to 2.5 seconds, the longest that is allowed "
                "here"});
  command.timeout = codeexec::no_limit;
  r = here.run(command);
  CHECK(r.timeout == milliseconds(2500));
  CHECK(r.notes.size() == 1);
  command.timeout = milliseconds(2500);
  r = here.run(command);
  CHECK(r.timeout == milliseconds(2500));
  CHECK(r.notes.empty());
  command.timeout.reset();
  r = here.run(command);
  CHECK(r.timeout == milliseconds(1500));
  CHECK(r.notes.empty());
}

TEST_CASE("a command in the background has the timeout it asks for, and no other") {
  LocalOptions options;
  options.timeout = milliseconds(50);
  options.max_timeout = milliseconds(100);
  const LocalExecutor here = make(options);
  Command command = Command::shell("sleep 0.5; echo done");
  command.background = true;
  Result r = here.start(command).wait();
  CHECK(r.out == "done\n");
  CHECK(r.timeout == codeexec::no_limit);
  CHECK(r.notes.empty());
  command.timeout = seconds(120000);
  r = here.start(command).wait();
  CHECK(r.out == "done\n");
  CHECK(r.timeout == seconds(120000));
  CHECK(r.notes.empty());
  command = Command::shell("sleep 300");
  command.background = true;
  command.timeout = milliseconds(150);
  r = here.start(command).wait();
  CHECK(r.outcome == Outcome::timed_out);
  command.timeout = milliseconds(0);
  CHECK(here.check(command).rule == "timeout");
}

TEST_CASE("W-14 W-09: the executor's own timeout applies, keeps the output and kills the tree") {
  LocalOptions options;
  options.timeout = milliseconds(300);
  const LocalExecutor here = make(options);
  const Stopwatch watch;
  for (const char* script :
       {"sleep 300 & echo $!; wait", "sleep 300 & echo $!; sleep 300 | cat; echo never",
        "setsid sleep 300 & echo $!; wait"}) {
    CAPTURE(script);
    const Result r = here.run(script);
    CHECK(r.outcome == Outcome::timed_out);
    CHECK(r.exit_code == -1);
    CHECK(r.wall_time >= milliseconds(300));
    CHECK(r.timeout == milliseconds(300));
    REQUIRE(lines_of(r.out).size() == 1);
    CHECK(dies(std::atoi(r.out.c_str())));
  }
  CHECK(watch.soon());
}

TEST_CASE("kill_grace passes before a command that ignores SIGTERM is killed") {
  LocalOptions options;
  options.kill_grace = milliseconds(200);
  const LocalExecutor here = make(options);
  Command command = Command::program({child, "ignore-term"});
  command.timeout = milliseconds(300);
  const Stopwatch watch;
  const Result r = here.run(command);
  CHECK(r.outcome == Outcome::timed_out);
  CHECK(r.signal == SIGKILL);
  CHECK(r.out == "ready\n");
  CHECK(r.wall_time >= milliseconds(500));
  CHECK(watch.soon());
}

// work_dir ----------------------------------------------------------------------------------------

TEST_CASE("work_dir: empty, relative, absolute, and through links inside the roots") {
  const support::TempDir place;
  place.directory("sub/deep");
  support::make_symlink("sub", place / "link");
  LocalOptions options = in(place);
  options.roots = {{place.path(), Permission::write}};
  const LocalExecutor here = make(options);
  const std::string root = place.path();
  const std::map<std::string, std::string> cases = {{"", root},
                                                    {".", root},
                                                    {"sub", root + "/sub"},
                                                    {"./sub//deep/", root + "/sub/deep"},
                                                    {"sub/../sub", root + "/sub"},
                                                    {root, root},
                                                    {root + "/sub/deep", root + "/sub/deep"},
                                                    {"link", root + "/sub"},
                                                    {"link/deep/..", root + "/sub"}};
  for (const auto& each : cases) {
    const std::string& given = each.first;
    const std::string& expected = each.second;
    CAPTURE(given);
    Command command = Command::shell("pwd; pwd -P; echo \"$PWD\"");
    command.work_dir = given;
    const Result r = here.run(command);
    CHECK(r.out == expected + "\n" + expected + "\n" + expected + "\n");
    CHECK(r.work_dir == expected);
  }
}

TEST_CASE("work_dir: the reference's messages, exactly, and work_dir as the reference shows it") {
  const support::TempDir place;
  const support::TempDir outside;
  place.file("file.txt");
  place.directory("sub");
  support::make_symlink(outside.path(), place / "out");
  support::make_symlink("..", place / "up");
  support::make_symlink("loop", place / "loop");
  const std::string root = place.path();
  LocalOptions options = in(place);
  options.roots = {{root, Permission::write}};
  const LocalExecutor here = make(options);
  struct Case {
    std::string given, message, shown;
  };
  const std::string denied = "Path validation error: Path not in allowed directories: ";
  const std::vector<Case> cases = {
      {"/", denied + "/", "/"},
      {outside.path(), denied + outside.path(), outside.path()},
      {"out", denied + outside.path(), "out"},
      {"out/x", denied + outside.path() + "/x", "out/x"},
      {"up", denied + root.substr(0, root.rfind('/')), "up"},
      {"..", denied + root.substr(0, root.rfind('/')), ".."},
      {root + "2", denied + root + "2", root + "2"},
      {"missing", "Working directory does not exist: " + root + "/missing", root + "/missing"},
      {"sub/../missing/x", "Working directory does not exist: " + root + "/missing/x",
       root + "/missing/x"},
      {"~", "Working directory does not exist: " + root + "/~", root + "/~"},
      {"file.txt", "Working directory is not a directory: " + root + "/file.txt",
       root + "/file.txt"}};
  for (const Case& each : cases) {
    CAPTURE(each.given);
    Command command = Command::shell("touch made");
    command.work_dir = each.given;
    const Result r = here.run(command);
    CHECK(r.outcome == Outcome::refused);
    CHECK(r.rule == "work_dir");
    CHECK(r.message == each.message);
    CHECK(r.work_dir == each.shown);
  }
  CHECK(!support::exists(place / "made"));
  CHECK(!support::exists(outside / "made"));

  Command command = Command::shell("true");
  for (const std::string& given :
       {std::string("a\0b", 3), std::string("loop"), std::string(100000, 'x')}) {
    command.work_dir = given;
    const Result r = here.run(command);
    CHECK(r.outcome == Outcome::refused);
    CHECK(r.rule == "work_dir");
    CHECK(begins(r.message, "Path validation error: "));
    CHECK(!has(r.message, std::string_view("\0", 1)));
  }
}

TEST_CASE("a root without permission cuts its subtree out") {
  const support::TempDir place;
  place.directory("private/deep");
  LocalOptions options = in(place);
  options.roots = {{place.path(), Permission::write}, {place / "private", Permission::none}};
  const LocalExecutor here = make(options);
  Command command = Command::shell("pwd");
  CHECK(here.run(command).succeeded());
  command.work_dir = "private/deep";
  CHECK(here.run(command).rule == "work_dir");
}

TEST_CASE("without roots any directory is allowed, and the workspace is the caller's directory") {
  const support::TempDir place;
  const support::DirectoryGuard moved(place.path());
  const LocalExecutor here = make({});
  CHECK(here.workspace() == place.path());
  CHECK(output_of(here, "pwd") == place.path() + "\n");
  Command command = Command::shell("pwd");
  command.work_dir = "/";
  CHECK(output_of(here, command) == "/\n");
}

TEST_CASE("the workspace stays where it was when the caller moves") {
  const support::TempDir place;
  const support::TempDir other;
  place.directory("w");
  LocalOptions options;
  options.workspace = "w";
  std::optional<LocalExecutor> here;
  {
    const support::DirectoryGuard moved(place.path());
    here.emplace(make(options));
  }
  const support::DirectoryGuard moved(other.path());
  CHECK(here->workspace() == place / "w");
  CHECK(output_of(*here, "pwd") == place / "w\n");
}

TEST_CASE("a workspace outside of the roots refuses commands that name no other place") {
  const support::TempDir place;
  const support::TempDir root;
  LocalOptions options = in(place);
  options.roots = {{root.path(), Permission::write}};
  const LocalExecutor here = make(options);
  CHECK(here.run("pwd").message ==
        "Path validation error: Path not in allowed directories: " + place.path());
  Command command = Command::shell("pwd");
  command.work_dir = root.path();
  CHECK(output_of(here, command) == root.path() + "\n");
}

// what a command is -------------------------------------------------------------------------------

TEST_CASE("empty and blank commands succeed and do nothing") {
  const LocalExecutor here = make({});
  for (const char* script : {"", "   ", "\n\n", "# nothing"}) {
    const Result r = here.run(script);
    CHECK(r.succeeded());
    CHECK(r.out.empty());
    CHECK(r.err.empty());
  }
}

TEST_CASE("NUL bytes in any part of a command are told and start nothing") {
  const support::TempDir place;
  const LocalExecutor here = make(in(place));
  const std::string nul("a\0b", 3);
  const Result script = here.run("touch made; " + nul);
  CHECK(script.outcome == Outcome::refused);
  CHECK(script.rule == "nul-byte");
  CHECK(script.message == "Command contains a NUL byte (at byte 13), which no command can contain");
  CHECK(script.rule_begin == 13);
  CHECK(script.rule_end == 14);
  const Result argv = here.run(Command::program({"touch", "made", nul}));
  CHECK(argv.outcome == Outcome::refused);
  CHECK(argv.rule == "nul-byte");
  Command command = Command::shell("touch made");
  command.environment = {{"NAME", nul}};
  const Result value = here.run(command);
  CHECK(value.outcome == Outcome::not_started);
  CHECK(value.step == "setup");
  CHECK(value.message == "environment: 'NAME' has a value with a NUL byte in it");
  command.environment = {{nul, "x"}};
  CHECK(here.run(command).outcome == Outcome::not_started);
  command.environment = {};
  command.input = nul;
  CHECK(here.run(command).succeeded());
  CHECK(support::exists(place / "made"));
}

TEST_CASE("W-22: commands over 128 KiB run, in every shell") {
  for (const char* shell : {"/bin/sh", "/bin/bash"}) {
    CAPTURE(shell);
    if (!support::exists(shell)) {
      MESSAGE("SKIPPED: there is no " << std::string(shell));
      continue;
    }
    LocalOptions options;
    options.shell = shell;
    const LocalExecutor here = make(options);
    const LeakCheck leaks;
    const std::string text(200000, 'y');
    const Result r = here.run("cat <<'EOF'\n" + text + "\nEOF\necho \"status $?\"; exit 7");
    CHECK(r.exit_code == 7);
    CHECK(r.out == text + "\nstatus 0\n");
    CHECK(r.err.empty());

    const std::string longer = long_script(3 << 20);
    CHECK(output_of(here, longer) == "end\n");

    // Standard input stays the command's own.
    Command command = Command::shell(long_script(200000) + "cat; pwd\n");
    command.input = "fed";
    command.work_dir = "/";
    CHECK(output_of(here, command) == "end\nfed/\n");
    CHECK(leaks.clean());
  }
}

TEST_CASE("W-22: every length around the limit of one argument works") {
  const LocalExecutor here = make({});
  const std::string head = "echo ok #";
  for (std::size_t size = (128 << 10) - 4; size <= (128 << 10) + 2; ++size) {
    CAPTURE(size);
    CHECK(output_of(here, head + std::string(size - head.size(), 'x')) == "ok\n");
    CHECK(here.run("-" + std::string(size - 1, 'x')).exit_code == 127);
  }
}

TEST_CASE("a script longer than max_command_bytes is refused") {
  LocalOptions options;
  options.policy.max_command_bytes = 100;
  const LocalExecutor here = make(options);
  CHECK(here.run(std::string(100, ' ')).succeeded());
  CHECK(here.run(std::string(101, ' ')).rule == "command-too-long");
}

TEST_CASE("an argv never sees a shell") {
  const support::TempDir place;
  const LocalExecutor here = make(in(place));
  const Strings words = {"$(id)", "; touch made", "`id`", "*", "a'b\"c", "", "\n", "\xff"};
  std::string expected;
  for (const std::string& word : words) expected += (word == "\xff" ? "\xEF\xBF\xBD" : word) + "|";
  Strings argv = {"printf", "%s|"};
  argv.insert(argv.end(), words.begin(), words.end());
  CHECK(output_of(here, Command::program(argv)) == expected);
  CHECK(!support::exists(place / "made"));
  CHECK(here.run(Command::program({"echo", "a b", "c"})).command == "echo 'a b' c");
}

TEST_CASE("a program that is not there is told with errno and step, and recorded") {
  AuditLog log;
  LocalOptions options;
  options.on_audit = log.callback();
  const LocalExecutor here = make(options);
  const Result r = here.run(Command::program({"/nonexistent/program"}));
  CHECK(r.outcome == Outcome::not_started);
  CHECK(r.system_error == ENOENT);
  CHECK(r.step == "exec");
  CHECK(has(r.message, "/nonexistent/program"));
  CHECK(has(r.summary(), "not started: "));
  const std::vector<Json> records = log.take();
  REQUIRE(records.size() == 1);
  CHECK(records[0]["outcome"] == Json("not_started"));
  CHECK(records[0]["allowed"] == Json(true));
  CHECK(records[0]["message"] == Json(r.message));
}

TEST_CASE("a script that begins like an option is a script") {
  const support::TempDir place;
  for (const char* shell : {"/bin/sh", "/bin/bash"}) {
    if (!support::exists(shell)) continue;
    LocalOptions options = in(place);
    options.shell = shell;
    const LocalExecutor here = make(options);
    for (const char* script : {"-x", "--version", "+e", "-c"}) {
      CAPTURE(script);
      const Result r = here.run(script);
      CHECK(r.exit_code == 127);
      CHECK(has(r.err, "not found"));
      CHECK(r.command == script);
    }
  }
}

TEST_CASE("the shell of the options runs the scripts") {
  if (!support::exists("/bin/bash")) {
    MESSAGE("SKIPPED: there is no /bin/bash");
    return;
  }
  LocalOptions options;
  options.shell = "/bin/bash";
  CHECK(output_of(make(options), "a=(1 2 3); echo ${#a[@]} ${BASH_VERSION:+bash}") == "3 bash\n");
}

TEST_CASE("a command names its own interpreter, and is judged all the same") {
  if (!support::exists("/bin/bash")) {
    MESSAGE("SKIPPED: there is no /bin/bash");
    return;
  }
  const support::TempDir place;
  LocalOptions options = in(place);
  options.environment.command_prefix = "env GIVEN=1";
  options.policy.blocked = {"rm .*"};
  const LocalExecutor here = make(options);
  const auto by = [](std::string interpreter, std::string script) {
    Command command = Command::shell(std::move(script));
    command.interpreter = std::move(interpreter);
    return command;
  };
  const LeakCheck leaks;
  CHECK(output_of(here, by("/bin/bash", "a=(1 2 3); echo ${#a[@]} ${BASH_VERSION:+bash} $GIVEN")) ==
        "3 bash 1\n");
  CHECK(output_of(here, by("bash", "echo ${BASH_VERSION:+bash} $0")) == "bash bash\n");
  CHECK(output_of(here, by("bash", "-x() { echo like an option; }; -x")) == "like an option\n");
  const std::string longer = long_script(200000) + "cat; echo ${BASH_VERSION:+bash}\n";
  Command fed = by("/bin/bash", longer);
  fed.input = "fed ";
  for (const Result& r : {here.run(fed), here.start(fed).wait()}) {
    CHECK(r.out == "end\nfed bash\n");
    CHECK(r.command == longer);
  }
  for (const char* script : {"rm x", "sudo ls"}) {
    CAPTURE(script);
    const Result r = here.run(by("/bin/bash", script));
    CHECK(r.outcome == Outcome::refused);
    CHECK(r.rule == (begins(script, "rm") ? "blocked-commands" : "sudo"));
  }
  const Result r = here.run(by("/nonexistent/shell", "true"));
  CHECK(!r.succeeded());
  CHECK(leaks.clean());
}

// prefix, venv, environment -----------------------------------------------------------------------

TEST_CASE("W-23: a prefix goes before the whole command line") {
  const support::TempDir place;
  place.directory("sub");
  LocalOptions options = in(place);
  options.environment.command_prefix = "env 'VIA=a b' OTHER=\"it's\"";
  const LocalExecutor here = make(options);
  CHECK(output_of(here, "cd sub && printenv VIA && pwd; printenv OTHER | cat") ==
        "a b\n" + place.path() + "/sub\nit's\n");
  CHECK(output_of(here, "printenv VIA\nprintenv VIA") == "a b\na b\n");
  CHECK(output_of(here, Command::program({"printenv", "VIA", "OTHER"})) == "a b\nit's\n");
  CHECK(output_of(here, Command::program({"printf", "%s|", "$(id)", "", "x y"})) == "$(id)||x y|");
  CHECK(output_of(here, long_script(200000) + "printenv VIA") == "end\na b\n");
  CHECK(here.run("exit 9").exit_code == 9);
  CHECK(here.run("kill -9 $$").exit_code != 0);
  Command command = Command::shell("cat");
  command.input = "through";
  CHECK(output_of(here, command) == "through");
  CHECK(here.run("echo x").command == "echo x");
}

TEST_CASE("the policy judges the command without its prefix") {
  LocalOptions options;
  options.environment.command_prefix = "env SUDO=sudo";
  options.policy.allowed = {"echo .*"};
  const LocalExecutor here = make(options);
  CHECK(here.run("echo x").succeeded());
  CHECK(here.run("env x").rule == "allowed-commands");
}

TEST_CASE("a prefix that cannot be run fails like a command that cannot") {
  LocalOptions options;
  options.environment.command_prefix = "/nonexistent/runner";
  const Result r = make(options).run("touch /should-not-be");
  CHECK(r.outcome == Outcome::exited);
  CHECK(r.exit_code == 127);
  CHECK(!support::exists("/should-not-be"));
}

TEST_CASE("venv: prefix, else the explicit one, else the work_dir's, else the workspace's") {
  const support::TempDir place;
  place.directory("project");
  place.directory("plain");
  if (!make(in(place)).run("python3 -m venv --without-pip own").succeeded()) {
    MESSAGE("SKIPPED: python3 -m venv does not work here");
    return;
  }
  const std::string python = "python -c 'import sys; print(sys.prefix)'";
  const auto in_directory = [](const std::string& script, const std::string& work_dir) {
    Command command = Command::shell(script);
    command.work_dir = work_dir;
    return command;
  };
  CHECK(make(in(place)).run("true").venv.empty());
  for (const char* path : {".venv", "project/.venv"})
    CHECK(make(in(place)).run("python3 -m venv --without-pip " + std::string(path)).succeeded());

  LocalOptions options = in(place);
  const LocalExecutor automatic = make(options);
  CHECK(output_of(automatic, python) == place / ".venv\n");
  CHECK(output_of(automatic, in_directory(python, "project")) == place / "project/.venv\n");
  CHECK(output_of(automatic, in_directory(python, "plain")) == place / ".venv\n");
  CHECK(output_of(automatic, "echo \"$VIRTUAL_ENV\"; command -v python") ==
        place / ".venv\n" + place.path() + "/.venv/bin/python\n");
  CHECK(automatic.run(in_directory("true", "project")).venv == place / "project/.venv");

  options.environment.venv_path = place / "own";
  const LocalExecutor with_path = make(options);
  CHECK(output_of(with_path, in_directory(python, "project")) == place / "own\n");
  CHECK(with_path.run("true").venv == place / "own");

  options.environment.command_prefix = "env VIA=prefix";
  const LocalExecutor with_prefix = make(options);
  const Result r = with_prefix.run(in_directory("echo \"${VIRTUAL_ENV-none}\"", "project"));
  CHECK(r.out == "none\n");
  CHECK(r.venv.empty());

  LocalOptions off = in(place);
  off.environment.auto_venv = false;
  CHECK(output_of(make(off), "echo \"${VIRTUAL_ENV-none}\"") == "none\n");

  // One that disappears is a failed start, not another Python.
  support::remove_all(place / "own");
  const Result gone = with_path.run("echo ran");
  CHECK(gone.outcome == Outcome::not_started);
  CHECK(gone.step == "setup");
  CHECK(has(gone.message, "venv_path"));
  CHECK(gone.out.empty());
}

TEST_CASE("W-21: commands see no secrets of the host") {
  support::EnvironmentGuard host("CODEEXEC_TEST_TOKEN", "hunter2");
  host.set("AWS_SECRET_ACCESS_KEY", "hunter2");
  const LocalExecutor here = make({});
  CHECK(!has(output_of(here, "env"), "hunter2"));
  CHECK(!has(here.run(Command::program({"env"})).out, "hunter2"));
  CHECK(!has(here.start(Command::shell("env")).wait().out, "hunter2"));

  LocalOptions options;
  options.environment.keep.push_back("CODEEXEC_TEST_*");
  options.environment.set = {{"ADDED", "by the operator"}};
  const LocalExecutor kept = make(options);
  CHECK(output_of(kept, "echo $CODEEXEC_TEST_TOKEN, $ADDED") == "hunter2, by the operator\n");
}

TEST_CASE("variables of one command are its own, and the strongest") {
  LocalOptions options;
  options.environment.set = {{"COLOR", "red"}};
  const LocalExecutor here = make(options);
  Command command = Command::shell("echo $COLOR $MORE");
  command.environment = {{"COLOR", "blue"}, {"MORE", "a\nb"}};
  CHECK(output_of(here, command) == "blue a b\n");
  CHECK(output_of(here, "echo $COLOR $MORE") == "red\n");
  command.environment = {{"A=B", "x"}};
  const Result r = here.run(command);
  CHECK(r.outcome == Outcome::not_started);
  CHECK(has(r.message, "environment: 'A=B'"));
}

TEST_CASE("an environment too big for the kernel is told") {
  const LocalExecutor here = make({});
  Command command = Command::shell("true");
  command.environment = {{"BIG", std::string(200000, 'x')}};
  const Result r = here.run(command);
  CHECK(r.outcome == Outcome::not_started);
  CHECK(r.system_error == E2BIG);
  CHECK(r.step == "exec");
}

// input and output --------------------------------------------------------------------------------

TEST_CASE("W-10: standard input is empty, or what was given") {
  const LocalExecutor here = make({});
  CHECK(output_of(here, "cat; read x || echo end") == "end\n");
  Command command = Command::shell("head -c 3; echo; cat");
  command.input = "onetwo";
  CHECK(output_of(here, command) == "one\ntwo");
  command.script = "wc -c";
  command.input = std::string(3000000, 'x');
  CHECK(std::atoi(output_of(here, command).c_str()) == 3000000);
}

TEST_CASE("run() does not wait for input that nobody can write") {
  const LocalExecutor here = make({});
  Command command = Command::shell("cat; echo end");
  command.keep_input_open = true;
  const Stopwatch watch;
  CHECK(output_of(here, command) == "end\n");
  command.input = "given ";
  CHECK(output_of(here, command) == "given end\n");
  CHECK(watch.soon());
}

TEST_CASE("merged streams are in order") {
  const LocalExecutor here = make({});
  Command command = Command::shell("echo 1; echo 2 >&2; echo 3; echo 4 >&2");
  command.merge_streams = true;
  const Result r = here.run(command);
  CHECK(r.out == "1\n2\n3\n4\n");
  CHECK(r.err.empty());
}

TEST_CASE("W-17: of long output the head and the tail are kept, and the counts are exact") {
  LocalOptions options;
  options.max_output = 1024;
  const LocalExecutor here = make(options);
  const Result r = here.run("seq 1 20000; seq 1 30000 >&2");
  CHECK(r.succeeded());
  CHECK(r.out_counts.total_bytes == 108894);
  CHECK(r.err_counts.total_bytes == 168894);
  CHECK(begins(r.out, "1\n2\n3\n"));
  CHECK(ends(r.out, "\n19999\n20000\n"));
  CHECK(begins(r.err, "1\n2\n3\n"));
  CHECK(ends(r.err, "\n29999\n30000\n"));
  CHECK(r.out_counts.dropped_bytes == 108894 - 1024);
  CHECK(has(r.out, "\n... (truncated, exceeded 1024 bytes: 107870 bytes omitted) ...\n"));
  CHECK(has(r.summary(), "(shortened)"));
  CHECK(r.out_file.empty());
  const Result fits = here.run("seq 1 100");
  CHECK(fits.out_counts.dropped_bytes == 0);
  CHECK(!has(fits.out, "truncated"));
}

TEST_CASE("with spill_dir the whole of a long stream is in a file") {
  const support::TempDir place;
  LocalOptions options = in(place);
  options.max_output = 1024;
  {
    const support::DirectoryGuard moved(place.path());
    place.directory("spill");
    options.spill_dir = "spill";
    const LocalExecutor here = make(options);
    const Result small = here.run("seq 1 100");
    CHECK(small.out_file.empty());
    const support::DirectoryGuard away("/");
    const Result r = here.run("seq 1 20000; seq 1 20000 >&2");
    REQUIRE(begins(r.out_file, place / "spill/codeexec-"));
    REQUIRE(begins(r.err_file, place / "spill/codeexec-"));
    const std::string whole = support::read_file(r.out_file);
    CHECK(whole.size() == 108894);
    CHECK(ends(whole, "\n19999\n20000\n"));
    CHECK(has(whole, "\n10000\n"));
    CHECK(support::read_file(r.err_file) == whole);
    CHECK(r.out_counts.file_bytes == 108894);
    struct stat status {};
    REQUIRE(::stat(r.out_file.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0600);
  }
}

TEST_CASE("W-15 W-16: output is repaired where it is not UTF-8, and else left as it is") {
  const LocalExecutor here = make({});
  const Result r = here.run("printf 'ok\\377\\n'; exit 7");
  CHECK(r.exit_code == 7);
  CHECK(r.out == "ok\xEF\xBF\xBD\n");
  CHECK(r.out_counts.invalid_bytes == 1);
  CHECK(r.out_counts.total_bytes == 4);
  CHECK(output_of(here, "printf 'a\\rb\\r\\nc'") == "a\rb\r\nc");
}

TEST_CASE("W-13: a background job neither delays the result nor outlives it") {
  const LocalExecutor here = make({});
  const Stopwatch watch;
  const Result r = here.run("sleep 300 & echo $!");
  CHECK(r.outcome == Outcome::exited);
  CHECK(r.exit_code == 0);
  CHECK(dies(std::atoi(r.out.c_str())));
  CHECK(watch.soon());
}

TEST_CASE("W-09 W-33: nothing of a command outlives it, or a host that is killed") {
  ProcessOptions probe;
  probe.argv = {"/bin/sh", "-c", "cat /proc/$PPID/comm"};
  probe.supervised = true;
  if (codeexec::run_process(probe).out != "codeexec\n") {
    MESSAGE("SKIPPED: there is no supervisor on this system");
    return;
  }
  const std::string leave = "setsid sleep 300 > /dev/null 2>&1 < /dev/null & echo $!; ";
  for (const SandboxMode mode : {SandboxMode::off, SandboxMode::best_effort}) {
    CAPTURE(name(mode));
    LocalOptions options;
    options.sandbox.mode = mode;
    const LocalExecutor here = make(options);
    CHECK(dies(std::atoi(output_of(here, Command::shell(leave + "sleep 0.1")).c_str())));

    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    std::fflush(nullptr);
    const pid_t host = ::fork();
    if (host == 0) {
      Command command = Command::shell(leave + "sleep 300");
      command.on_output = [&](Stream, std::string_view bytes) {
        (void)!::write(ends[1], bytes.data(), bytes.size());
      };
      (void)here.run(command);
      ::_exit(0);
    }
    char text[32] = {};
    CHECK(::read(ends[0], text, sizeof text - 1) > 0);
    ::kill(host, SIGKILL);
    ::waitpid(host, nullptr, 0);
    CHECK(dies(std::atoi(text)));
    for (const int end : ends) ::close(end);
  }
}

TEST_CASE("of long output only the end is kept where that is wanted") {
  LocalOptions options;
  options.max_output = 1024;
  const LocalExecutor here = make(options);
  Command command = Command::shell("printf 'x%.0s' $(seq 5000); printf end; echo err >&2");
  command.keep_end_only = true;
  for (const Result& r : {here.run(command), here.start(command).wait()}) {
    CHECK(r.out == "\n... (truncated, exceeded 1024 bytes: 3979 bytes omitted) ...\n" +
                       std::string(1021, 'x') + "end");
    CHECK(r.out_counts.dropped_bytes == 3979);
    CHECK(r.err == "err\n");
  }
}

TEST_CASE("live output and signs of life reach the caller of run() in its own thread") {
  const LocalExecutor here = make({});
  const std::thread::id caller = std::this_thread::get_id();
  bool own_thread = true;
  std::string out;
  std::string err;
  int beats = 0;
  Command command = Command::program({child, "close-early"});
  command.heartbeat = milliseconds(20);
  command.on_heartbeat = [&] {
    ++beats;
    own_thread = own_thread && std::this_thread::get_id() == caller;
  };
  CHECK(here.run(command).exit_code == 4);
  CHECK(beats > 0);
  Command speaker = Command::shell("printf 'a\\377'; printf b >&2");
  speaker.on_output = [&](Stream stream, std::string_view bytes) {
    (stream == Stream::out ? out : err) += bytes;
    own_thread = own_thread && std::this_thread::get_id() == caller;
  };
  CHECK(here.run(speaker).succeeded());
  CHECK(out == "a\xff");
  CHECK(err == "b");
  CHECK(own_thread);
}

// cancel and start --------------------------------------------------------------------------------

TEST_CASE("a run() is cancelled from another thread, and its tree dies") {
  const LocalExecutor here = make({});
  Event running;
  Command command = Command::shell("sleep 300 & echo $!; wait");
  command.cancel.emplace();
  command.on_output = [&](Stream, std::string_view) { running.set(); };
  std::thread other([&, token = *command.cancel] {
    running.wait();
    token.cancel();
  });
  const Stopwatch watch;
  const Result r = here.run(command);
  other.join();
  CHECK(r.outcome == Outcome::cancelled);
  CHECK(r.exit_code == -1);
  CHECK(begins(r.summary(), "cancelled in "));
  CHECK(dies(std::atoi(r.out.c_str())));
  CHECK(watch.soon());
}

TEST_CASE("a command whose token is cancelled already does nothing") {
  const support::TempDir place;
  AuditLog log;
  LocalOptions options = in(place);
  options.on_audit = log.callback();
  const LocalExecutor here = make(options);
  Command command = Command::shell("touch made");
  command.cancel.emplace();
  command.cancel->cancel();
  CHECK(here.run(command).outcome == Outcome::cancelled);
  CHECK(here.start(command).wait().outcome == Outcome::cancelled);
  CHECK(!support::exists(place / "made"));
  CHECK(log.take().size() == 2);
}

TEST_CASE("a started command is cancelled through its handle, a copy of it, or the token") {
  const LocalExecutor here = make({});
  for (const int way : {0, 1, 2}) {
    CAPTURE(way);
    Event running;
    Command command = Command::shell("sleep 300 & echo $!; wait");
    command.cancel.emplace();
    command.on_output = [&](Stream, std::string_view) { running.set(); };
    const Execution handle = here.start(command);
    const Execution copy = handle;
    REQUIRE(running.wait());
    CHECK(!handle.done());
    CHECK(!handle.wait_for(milliseconds(0)));
    CHECK(handle.pid() > 0);
    std::thread other([&] {
      if (way == 0) handle.cancel();
      if (way == 1) copy.cancel();
      if (way == 2) command.cancel->cancel();
    });
    CHECK(handle.wait_for(safety));
    other.join();
    CHECK(copy.done());
    const Result r = handle.wait();
    CHECK(r.outcome == Outcome::cancelled);
    CHECK(dies(std::atoi(r.out.c_str())));
    handle.cancel();  // afterwards: nothing
    CHECK(handle.wait().outcome == Outcome::cancelled);
  }
}

TEST_CASE("a started command is written to and read from while it runs") {
  const LocalExecutor here = make({});
  Event asked;
  Event answered;
  Command command =
      Command::shell("printf 'name? '; read name; echo \"hello $name\"; cat; echo end >&2");
  command.keep_input_open = true;
  std::string seen;
  command.on_output = [&](Stream, std::string_view bytes) {
    seen += bytes;
    if (has(seen, "name? ")) asked.set();
    if (has(seen, "hello")) answered.set();
  };
  const Execution handle = here.start(command);
  REQUIRE(asked.wait());
  Capture::Chunk chunk = handle.read(Stream::out, 0);
  CHECK(chunk.text == "name? ");
  CHECK(chunk.next == 6);
  CHECK(chunk.missed == 0);
  CHECK(handle.write("Ada\n"));
  REQUIRE(answered.wait());
  chunk = handle.read(Stream::out, chunk.next);
  CHECK(begins(chunk.text, "hello"));
  CHECK(handle.write("last words"));
  handle.close_input();
  const Result r = handle.wait();
  CHECK(r.succeeded());
  CHECK(r.out == "name? hello Ada\nlast words");
  CHECK(handle.read(Stream::out, 6).text == "hello Ada\nlast words");
  CHECK(handle.read(Stream::err, 0).text == "end\n");
  CHECK(handle.read(Stream::out, r.out.size()).text.empty());
  const Expected<void> late = handle.write("x");
  CHECK(!late);
  CHECK(late.error().code == ErrorCode::io);
}

TEST_CASE("a refused or failed start gives a handle that is done") {
  const LocalExecutor here = make({});
  for (const Command& command :
       {Command::shell("sudo ls"), Command::program({"/nonexistent/program"})}) {
    const Execution handle = here.start(command);
    CHECK(handle.done());
    CHECK(handle.wait_for(milliseconds(0)));
    CHECK(handle.pid() == -1);
    handle.cancel();
    handle.close_input();
    const Expected<void> written = handle.write("x");
    REQUIRE(!written);
    CHECK(written.error().code == ErrorCode::io);
    const Capture::Chunk chunk = handle.read(Stream::out, 5);
    CHECK(chunk.text.empty());
    CHECK(chunk.next == 5);
    const Result r = handle.wait();
    CHECK((r.outcome == Outcome::refused || r.outcome == Outcome::not_started));
    CHECK(!r.message.empty());
  }
}

TEST_CASE("on_end is called once, after the record and before wait() returns") {
  LocalOptions options;
  std::atomic<int> recorded{0};
  std::atomic<int> ended{0};
  std::atomic<int> recorded_first{0};
  options.on_audit = [&](const AuditRecord&) { ++recorded; };
  const LocalExecutor here = make(options);
  Command command = Command::shell("exit 3");
  command.on_end = [&] {
    ++ended;
    recorded_first = recorded.load();
  };
  CHECK(here.start(command).wait().exit_code == 3);
  CHECK(ended == 1);
  CHECK(recorded_first == 1);
  // The end of the handle is one, too.
  command.script = "exec sleep 300";
  { const Execution dropped = here.start(command); }
  CHECK(ended == 2);
  CHECK(recorded_first == 2);
  command.script = "sudo ls";
  CHECK(here.start(command).wait().rule == "sudo");
  command = Command::program({"/nonexistent/program"});
  command.on_end = [&] { ++ended; };
  CHECK(here.start(command).wait().outcome == Outcome::not_started);
  CHECK(ended == 2);
  CHECK(recorded == 4);
}

TEST_CASE("a handle tells what was asked while the command runs") {
  const support::TempDir place;
  const support::EnvironmentGuard secret("CODEEXEC_TEST_TOKEN", "hunter2-hunter2");
  LocalOptions options = in(place);
  options.environment.secret = {"CODEEXEC_TEST_TOKEN"};
  options.max_timeout = seconds(60);
  const LocalExecutor here = make(options);
  Command command = Command::shell(": hunter2-hunter2; exec cat");
  command.keep_input_open = true;
  command.timeout = seconds(100);
  const Execution handle = here.start(command);
  const Result& asked = handle.asked();
  CHECK(!handle.done());
  CHECK(asked.command == ": [redacted]; exec cat");
  CHECK(asked.work_dir == here.workspace());
  CHECK(asked.timeout == seconds(60));
  CHECK(asked.notes.size() == 1);
  CHECK(static_cast<bool>(asked.sandbox));
  handle.close_input();
  CHECK(handle.wait().succeeded());
  CHECK(&handle.asked() == &asked);
  CHECK(asked.command == ": [redacted]; exec cat");

  const Execution refused = here.start(Command::shell("sudo hunter2-hunter2"));
  CHECK(refused.asked().rule == "sudo");
  CHECK(refused.asked().outcome == Outcome::refused);
  CHECK(refused.asked().command == "sudo [redacted]");
  const Execution missing = here.start(Command::program({"/nonexistent/program"}));
  CHECK(missing.asked().step == "exec");
}

TEST_CASE("the end of the last handle kills the command, and it is recorded") {
  AuditLog log;
  LocalOptions options;
  options.on_audit = log.callback();
  const LocalExecutor here = make(options);
  pid_t pid = -1;
  {
    std::optional<Execution> first = here.start(Command::shell("exec sleep 300"));
    const Execution second = *first;
    pid = second.pid();
    first.reset();
    CHECK(!second.done());
    CHECK(is_running(pid));
  }
  CHECK(dies(pid));
  const std::vector<Json> records = log.take();
  REQUIRE(records.size() == 1);
  CHECK(records[0]["outcome"] != Json("exited"));
}

TEST_CASE("what is asked of a command right after its start is not lost") {
  const LocalExecutor here = make({});
  const Stopwatch watch;
  for (int i = 0; i < 100; ++i) {
    Command command = Command::shell("exec cat");
    command.keep_input_open = true;
    command.timeout = seconds(10);
    const Execution closed = here.start(command);
    closed.close_input();
    CHECK(closed.wait().succeeded());
    const Execution cancelled = here.start(command);
    cancelled.cancel();
    CHECK(cancelled.wait().outcome == Outcome::cancelled);
    here.start(command);  // dropped at once
    if (!watch.soon()) break;
  }
  CHECK(watch.soon());
}

TEST_CASE("an executor may go away before what it started") {
  std::optional<LocalExecutor> here = make({});
  Command command = Command::shell("cat; echo end");
  command.keep_input_open = true;
  const Execution handle = here->start(command);
  here.reset();
  handle.close_input();
  CHECK(handle.wait().out == "end\n");
}

TEST_CASE("many commands at once, run and started, are not mixed up") {
  AuditLog log;
  LocalOptions options;
  options.on_audit = log.callback();
  const LocalExecutor here = make(options);
  const LeakCheck leaks;
  constexpr int thread_count = 8;
  constexpr int each = 12;
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < thread_count; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < each; ++i) {
        const std::string text = std::to_string(t) + "-" + std::to_string(i);
        const Execution started = here.start(Command::shell("echo s" + text + "; exit 3"));
        const Result r = here.run("echo r" + text);
        const Result s = started.wait();
        if (r.out == "r" + text + "\n" && r.exit_code == 0 && s.out == "s" + text + "\n" &&
            s.exit_code == 3)
          ++good;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(good == thread_count * each);
  CHECK(log.take().size() == 2 * thread_count * each);

  std::vector<Execution> handles;
  for (int i = 0; i < 50; ++i) {
    Command command = Command::shell("cat");
    command.keep_input_open = true;
    handles.push_back(here.start(command));
  }
  for (std::size_t i = 0; i < handles.size(); ++i) CHECK(handles[i].write(std::to_string(i)));
  for (const Execution& handle : handles) handle.close_input();
  for (std::size_t i = 0; i < handles.size(); ++i)
    CHECK(handles[i].wait().out == std::to_string(i));
  handles.clear();
  CHECK(leaks.clean());
}

// the audit log -----------------------------------------------------------------------------------

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
  CHECK(names_of(first) == Strings{"time", "agent_id", "tool", "command", "work_dir", "allowed",
                                   "outcome", "exit_code", "duration_ms", "cpu_ms", "stdout_bytes",
                                   "stderr_bytes"});
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
  CHECK(names_of(refused) == Strings{"time", "agent_id", "tool", "command", "work_dir", "allowed",
                                     "rule", "rule_begin", "rule_end", "message", "outcome",
                                     "exit_code", "duration_ms", "cpu_ms", "stdout_bytes",
                                     "stderr_bytes"});
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

// the sandbox -------------------------------------------------------------------------------------

namespace {

LocalOptions sandboxed_in(const support::TempDir& directory,
                          SandboxMode mode = SandboxMode::best_effort) {
  LocalOptions options = in(directory);
  options.sandbox.mode = mode;
  return options;
}

bool contains(const Strings& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

// Whether the kernel has what a test is about; says so when it has not.
bool enforces(const LocalExecutor& executor, const std::string& feature) {
  if (contains(executor.sandbox_report().enforced, feature)) return true;
  MESSAGE("SKIPPED: no sandbox here that has " << feature);
  return false;
}

// A sentence of the notes that begins so; empty when there is none.
std::string note_of(const Result& r, const std::string& begin) {
  for (const std::string& note : r.notes)
    if (begins(note, begin)) return note;
  return {};
}

}  // namespace

TEST_CASE("the roots are what a sandboxed command may change and read") {
  const support::TempDir place;
  const std::string write = place.directory("write");
  const std::string read = place.directory("read");
  const std::string other = place.directory("other");
  for (const std::string& directory : {write, read, other})
    place.file(directory.substr(place.path().size() + 1) + "/file", "old");
  const auto check_sees = [&](const LocalOptions& options, const std::string& directory, bool reads,
                              bool writes) {
    const LocalExecutor here = make(options);
    CAPTURE(directory);
    const Result r = here.run("cat " + directory + "/file");
    CHECK(r.out == (reads ? "old" : ""));
    // Not a redirection: that is what the policy knows of.
    here.run("sh -c 'd=$(printf %s " + directory + "); touch $d/new'");
    CHECK(support::exists(directory + "/new") == writes);
    ::unlink((directory + "/new").c_str());
  };
  LocalOptions options;
  options.workspace = write;
  options.sandbox.mode = SandboxMode::best_effort;
  if (!enforces(make(options), "filesystem")) return;
  SUBCASE("without roots it is the workspace") {
    check_sees(options, write, true, true);
    check_sees(options, read, false, false);
  }
  SUBCASE("each root by its permission") {
    options.roots = {{write, Permission::write}, {read, Permission::read}};
    check_sees(options, write, true, true);
    check_sees(options, read, true, false);
    check_sees(options, other, false, false);
  }
  SUBCASE("and what is granted besides") {
    options.roots = {{write, Permission::write}};
    options.sandbox.writable = {other};
    options.sandbox.readable = {read};
    check_sees(options, other, true, true);
    check_sees(options, read, true, false);
  }
  SUBCASE("the control: without a sandbox all of it") {
    options.sandbox.mode = SandboxMode::off;
    check_sees(options, other, true, true);
  }
}

TEST_CASE("file_rules(): what tools may read and write is what commands may") {
  const support::TempDir place;
  const std::string write = place.directory("write");
  const std::string read = place.directory("read");
  const std::string inner = place.directory("write/inner");
  const std::string other = place.directory("other");
  LocalOptions options;
  options.workspace = write;
  const auto check = [&](const LocalExecutor& here, const std::string& path, Permission wanted) {
    CAPTURE(path);
    CHECK(here.file_rules().permission(path) == wanted);
  };
  SUBCASE("without a sandbox as the roots say") {
    const LocalExecutor free = make(options);
    CHECK(!free.file_rules().restricted());
    options.roots = {{write, Permission::write}, {read, Permission::read}};
    const LocalExecutor bound = make(options);
    check(bound, write, Permission::write);
    check(bound, read, Permission::read);
    check(bound, other, Permission::none);
  }
  SUBCASE("a sandbox without roots") {
    options.sandbox.mode = SandboxMode::best_effort;
    options.sandbox.readable = {read, place / "missing"};
    const LocalExecutor here = make(options);
    CHECK(!here.paths().restricted());
    check(here, write, Permission::write);
    check(here, inner, Permission::write);
    check(here, read, Permission::read);
    check(here, other, Permission::none);
    check(here, "/", Permission::none);
    const std::string home = output_of(here, Command::shell("printf %s \"$HOME\""));
    check(here, home, Permission::write);
  }
  SUBCASE("a sandbox with roots") {
    options.sandbox.mode = SandboxMode::best_effort;
    options.roots = {{write, Permission::write}, {inner, Permission::read}};
    options.sandbox.readable = {read};
    options.sandbox.writable = {inner};
    const LocalExecutor here = make(options);
    check(here, write, Permission::write);
    check(here, inner, Permission::read);  // the root is the user's word
    check(here, read, Permission::read);
    check(here, other, Permission::none);
  }
}

TEST_CASE("a sandboxed command can use the venv, the skills and the shell of the options") {
  const support::TempDir place;
  const support::TempDir elsewhere;
  elsewhere.file("venv/bin/tool", "#!/bin/sh\necho tool\n", 0755);
  elsewhere.file("skills/s.md", "a skill\n");
  LocalOptions options = sandboxed_in(place);
  options.environment.venv_path = elsewhere / "venv";
  options.skills_dir = elsewhere / "skills";
  options.shell = elsewhere.file("shell", support::read_file("/bin/sh"), 0755);
  const LocalExecutor here = make(options);
  if (!enforces(here, "filesystem")) return;
  CHECK(output_of(here, "tool; cat .agent/skills/s.md; echo $0") ==
        "tool\na skill\n" + options.shell + "\n");
  // In a writable root they need no grant of their own, which a strict one could not have.
  options.roots = {{place.path(), Permission::write}, {elsewhere.path(), Permission::write}};
  CHECK(output_of(make(options), "tool; cat .agent/skills/s.md") == "tool\na skill\n");
  CHECK(make(options).sandbox_report().missing.size() == here.sandbox_report().missing.size());
  elsewhere.file("secret", "hidden");
  CHECK(here.run("cat " + (elsewhere / "secret")).out == "");
}

TEST_CASE("what a sandboxed command needs is not granted through a link that one could plant") {
  const support::TempDir place;
  const support::TempDir away;
  away.file("bin/secret", "hidden");
  support::make_symlink(away.path(), place / "link");
  const auto refused = [&](const LocalOptions& wanted, const std::string& option) {
    LocalOptions options = wanted;
    options.sandbox.mode = SandboxMode::best_effort;
    const LocalExecutor here = make(options);
    if (!enforces(here, "filesystem")) return;
    CHECK(here.run("cat " + (away / "bin/secret")).out == "");
    CHECK(here.sandbox_report().missing.size() >= 1);
    options.sandbox.mode = SandboxMode::strict;
    const Expected<LocalExecutor> strict = LocalExecutor::create(options);
    REQUIRE(!strict);
    CHECK(begins(strict.error().message, option + ": '" + (place / "link")));
    CHECK(has(strict.error().message, "leads through the symbolic link"));
  };
  LocalOptions options = sandboxed_in(place);
  SUBCASE("a venv") {
    options.environment.venv_path = place / "link";
    refused(options, "venv_path");
  }
  SUBCASE("skills") {
    options.skills_dir = place / "link";
    refused(options, "skills_dir");
  }
  SUBCASE("a root to read") {
    options.roots = {{place.path(), Permission::write}, {place / "link", Permission::read}};
    refused(options, "read_only");
  }
  SUBCASE("nor is a home directory granted for one of them") {
    if (!enforces(make(options), "filesystem")) return;
    const support::EnvironmentGuard home("HOME", away.path().c_str());
    options.skills_dir = away.path();
    const Expected<LocalExecutor> made = LocalExecutor::create(options);
    REQUIRE(!made);
    CHECK(begins(made.error().message, "skills_dir: "));
    CHECK(has(made.error().message, "is a home directory"));
  }
}

TEST_CASE("a sandbox that cannot be given its roots is an error that names the option") {
  const support::TempDir place;
  const auto error_of = [](const LocalOptions& options) {
    const Expected<LocalExecutor> made = LocalExecutor::create(options);
    REQUIRE(!made);
    CHECK(!has(made.error().message, "\n"));
    return made.error().message;
  };
  for (const SandboxMode mode : {SandboxMode::best_effort, SandboxMode::strict}) {
    LocalOptions options = sandboxed_in(place, mode);
    options.roots = {{"/", Permission::write}};
    CHECK(begins(error_of(options), "allowed_paths: a sandbox cannot be given '/'"));
    options.roots = {{place.path(), Permission::write}, {"/", Permission::read}};
    CHECK(begins(error_of(options), "read_only: a sandbox cannot be given '/'"));
    options.roots = {};
    options.workspace = "/";
    CHECK(begins(error_of(options), "workspace: a sandbox cannot be given '/'"));
    // Where it is cut out, nothing is given.
    options = sandboxed_in(place, mode);
    options.roots = {{place.path(), Permission::write}, {"/", Permission::none}};
    const Expected<LocalExecutor> made = LocalExecutor::create(options);
    if (!made) CHECK(!has(made.error().message, "'/'"));
    options.sandbox.writable = {"relative"};
    CHECK(begins(error_of(options), "sandbox: "));
  }
  // Without a sandbox nobody would hold commands to these.
  LocalOptions off = in(place);
  off.sandbox.network = Network::none;
  CHECK(begins(error_of(off), "network: 'none' needs a sandbox"));
  off.sandbox.network = Network::loopback;
  CHECK(begins(error_of(off), "network: 'loopback' needs a sandbox"));
  off.sandbox.network = Network::host;
  CHECK(LocalExecutor::create(off));
  off.sandbox.pid_namespace = true;
  CHECK(begins(error_of(off), "pid_namespace: it needs a sandbox"));
}

TEST_CASE("roots that allow less than one around them are told to be out of the kernel's reach") {
  const support::TempDir place;
  const std::string forbidden = place.directory("forbidden");
  const std::string shown = place.directory("shown");
  const std::string apart = place.directory("apart");
  LocalOptions options = sandboxed_in(place);
  const auto missing_of = [&](SandboxMode mode) {
    options.sandbox.mode = mode;
    Strings told;
    const LocalExecutor here = make(options);
    for (const std::string& missing : here.sandbox_report().missing)
      if (has(missing, "_roots: ")) told.push_back(missing);
    return told;
  };
  const auto strict_error = [&] {
    options.sandbox.mode = SandboxMode::strict;
    const Expected<LocalExecutor> made = LocalExecutor::create(options);
    REQUIRE(!made);
    CHECK(made.error().code == ErrorCode::unsupported);
    return made.error().message;
  };
  options.roots = {{place.path(), Permission::write}, {forbidden, Permission::none}};
  CHECK(missing_of(SandboxMode::best_effort) ==
        Strings{"forbidden_roots: '" + forbidden +
                "' in a directory that commands may use: the kernel cannot take it back there"});
  CHECK(begins(strict_error(), "allowed_paths: sandbox strict: '" + forbidden + "'"));
  CHECK(missing_of(SandboxMode::off).empty());
  options.roots = {
      {place.path(), Permission::write}, {shown, Permission::read}, {apart, Permission::read}};
  CHECK(missing_of(SandboxMode::best_effort) ==
        Strings{"read_only_roots: '" + shown + "', '" + apart +
                "' in a directory that commands may change: the kernel cannot take it back there"});
  CHECK(begins(strict_error(), "read_only: sandbox strict: '" + shown + "', '" + apart + "'"));
  options.roots = {{shown, Permission::read},
                   {forbidden, Permission::none},
                   {apart, Permission::write},
                   {place.path(), Permission::none}};
  options.workspace = apart;
  CHECK(missing_of(SandboxMode::best_effort).empty());
}

TEST_CASE("a result says what it was held to, unless it was refused before") {
  const support::TempDir place;
  AuditLog log;
  LocalOptions options = sandboxed_in(place);
  options.on_audit = log.callback();
  const LocalExecutor here = make(options);
  const Result ran = here.run("true");
  REQUIRE((ran.sandbox != nullptr));
  CHECK(ran.sandbox->mode == SandboxMode::best_effort);
  CHECK((ran.sandbox.get() == &here.sandbox_report()));
  CHECK((here.start(Command::shell("true")).wait().sandbox == ran.sandbox));
  CHECK(!here.run("sudo ls").sandbox);
  CHECK(!here.check(Command::shell("true")).sandbox);
  const std::vector<Json> records = log.take();
  REQUIRE(records.size() == 3);
  Json expected = Json::object({{"mode", "best_effort"}, {"network", "host"}});
  if (!here.sandbox_report().missing.empty()) {
    Json missing = Json::array();
    for (const std::string& text : here.sandbox_report().missing) missing.push_back(text);
    expected.set("missing", std::move(missing));
  }
  for (std::size_t i = 0; i < 2; ++i) CHECK(records[i]["sandbox"].dump() == expected.dump());
  CHECK(records[2].find("sandbox") == nullptr);

  options.sandbox.mode = SandboxMode::off;
  const LocalExecutor free = make(options);
  const Result unconfined = free.run("true");
  REQUIRE((unconfined.sandbox != nullptr));
  CHECK(unconfined.sandbox->mode == SandboxMode::off);
  CHECK(log.take().at(0).find("sandbox") == nullptr);
  CHECK(begins(free.describe_place(), "The shell is /bin/sh."));
  CHECK(!has(free.describe_place(), "sandbox"));
  const auto& enforced = here.sandbox_report().enforced;
  const bool confined = std::count(enforced.begin(), enforced.end(), "filesystem") == 1;
  CHECK(has(here.describe_place(), "Commands run in a sandbox") == confined);
}

TEST_CASE(
    "a granted path that has become another directory: strict does not run, best_effort tells") {
  const support::TempDir place;
  for (const SandboxMode mode : {SandboxMode::best_effort, SandboxMode::strict}) {
    const std::string granted = place.directory("granted");
    LocalOptions options;
    options.workspace = place.directory("workspace");
    options.roots = {{options.workspace, Permission::write}, {granted, Permission::read}};
    options.sandbox.mode = mode;
    const Expected<LocalExecutor> made = LocalExecutor::create(options);
    if (!made || !contains(made->sandbox_report().enforced, "filesystem")) {
      MESSAGE("SKIPPED: no sandbox here that is " << std::string(codeexec::name(mode)));
      continue;
    }
    CHECK(made->run("echo ran").out == "ran\n");
    REQUIRE(::rename(granted.c_str(), (granted + ".old").c_str()) == 0);
    place.directory("granted");
    const Result r = made->run("echo ran");
    const Result started = made->start(Command::shell("echo ran")).wait();
    if (mode == SandboxMode::strict) {
      for (const Result* each : {&r, &started}) {
        CHECK(each->outcome == Outcome::not_started);
        CHECK(each->step == "sandbox");
        CHECK(begins(each->message, "sandbox: "));
        CHECK(has(each->message, granted));
        CHECK(each->out == "");
      }
    } else {
      CHECK(r.out == "ran\n");
      CHECK(has(note_of(r, "sandbox: "), granted));
      CHECK(started.out == "ran\n");
    }
    support::remove_all(granted);
    support::remove_all(granted + ".old");
  }
}

TEST_CASE("without a network, package managers are told not to try, by the weakest variables") {
  const support::TempDir place;
  const Strings variables = {"npm_config_offline", "npm_config_fetch_retries",
                             "PIP_NO_INDEX",       "CARGO_NET_OFFLINE",
                             "UV_OFFLINE",         "GOPROXY",
                             "HF_HUB_OFFLINE",     "CODEEXEC_NETWORK"};
  std::string print = "echo";
  for (const std::string& variable : variables) print += " ${" + variable + "-}";
  LocalOptions options = sandboxed_in(place);
  CHECK(output_of(make(options), print) == "\n");
  options.sandbox.network = Network::none;
  const LocalExecutor none = make(options);
  if (none.sandbox_report().network != Network::none) {
    MESSAGE("SKIPPED: the network cannot be switched off here");
    CHECK(output_of(none, print) == "\n");
    return;
  }
  CHECK(output_of(none, print) == "true 0 1 true 1 off 1 none\n");
  options.environment.set = {{"GOPROXY", "file:///cache"}};
  const support::EnvironmentGuard kept("UV_OFFLINE", "0");
  options.environment.keep.push_back("UV_OFFLINE");
  Command command = Command::shell(print);
  command.environment = {{"PIP_NO_INDEX", ""}};
  CHECK(output_of(make(options), command) == "true 0 true 0 file:///cache 1 none\n");

  options.sandbox.network = Network::loopback;
  const LocalExecutor loopback = make(options);
  if (loopback.sandbox_report().network != Network::loopback) return;
  CHECK(output_of(loopback, "echo $CODEEXEC_NETWORK ${PIP_NO_INDEX-}") == "loopback\n");
}

TEST_CASE("a command that fails for want of a network is told why") {
  const support::TempDir place;
  LocalOptions options = sandboxed_in(place);
  const std::string begin = "The network is switched off for commands here";
  const auto hint = [&](const LocalExecutor& executor, const std::string& script) {
    return note_of(executor.run(script), begin);
  };
  const std::string resolve = "echo 'curl: (6) Could NOT resolve host: x' >&2; exit 6";
  CHECK(hint(make(options), resolve) == "");
  for (const Network network : {Network::none, Network::loopback}) {
    options.sandbox.network = network;
    const LocalExecutor here = make(options);
    if (here.sandbox_report().network != network) {
      MESSAGE("SKIPPED: no network " << std::string(codeexec::name(network)) << " here");
      continue;
    }
    const std::string told = begin + " (network: " + codeexec::name(network) + ")";
    CHECK(hint(here, resolve) == told);
    for (const char* words :
         {"Temporary failure in name resolution", "getaddrinfo EAI_AGAIN registry.npmjs.org",
          "connect: Network is unreachable", "npm ERR! code ENOTCACHED",
          "curl: (7) Failed to connect to 192.0.2.1 port 80", "dial udp: socket: permission denied",
          "ERROR: No matching distribution found for x", "module lookup disabled by GOPROXY=off",
          "you're in offline mode", "--offline was specified",
          "Packages were unavailable because the network was disabled"}) {
      CAPTURE(words);
      CHECK(hint(here, "echo \"" + std::string(words) + "\"; false") == told);
    }
    CHECK(hint(here, "echo Connection refused; false") ==
          (network == Network::loopback ? told : ""));
    CHECK(here.start(Command::shell(resolve)).wait().notes == Strings{told});
    CHECK(hint(here, "echo 'Could not resolve host' >&2") == "");
    CHECK(hint(here, "echo 'no such file'; false") == "");
    // The reason stands at the end of a long output.
    CHECK(hint(here, "seq 1 200000; echo EAI_AGAIN; false") == told);
    CHECK(hint(here, "echo EAI_AGAIN; seq 1 200000; false") == "");
  }
}

TEST_CASE("files that the user's tools run later are watched in a sandbox") {
  const support::TempDir place;
  const std::string write = place.directory("write");
  const std::string sub = place.directory("write/sub");
  const std::string read = place.directory("read");
  place.file("write/.git/config", "[core]");
  place.file("write/.git/hooks/pre-commit.sample", "x");
  place.file("write/.git/hooks/old", "x");
  place.file("write/.vscode/tasks.json", "{}");
  LocalOptions options;
  options.workspace = write;
  options.roots = {{write, Permission::write}, {read, Permission::read}};
  options.sandbox.mode = SandboxMode::best_effort;
  const LocalExecutor here = make(options);
  const std::string begin = "changed during the command, and used outside of the sandbox by ";
  const auto changes = [&](const std::string& script, const std::string& work_dir = {}) {
    Command command = Command::shell(script);
    command.work_dir = work_dir;
    const Result r = here.run(command);
    CHECK_MESSAGE(r.succeeded(), describe(r));
    CHECK((note_of(r, begin) == "") == r.changed_files.empty());
    return r.changed_files;
  };
  CHECK(changes("true") == Strings{});
  CHECK(changes("cat .git/config; ls .git/hooks .vscode; mkdir -p x; echo x > x/.envrc; "
                "echo x > .git/index; echo y > .git/hooks/pre-commit.sample; touch y") ==
        Strings{});
  // Added, changed and removed; the same bytes are a change, too.
  CHECK(changes("echo x > .git/hooks/pre-commit") == Strings{write + "/.git/hooks/pre-commit"});
  CHECK(changes("echo x > .git/hooks/pre-commit") == Strings{write + "/.git/hooks/pre-commit"});
  CHECK(changes("touch -d 2001-01-01 .git/hooks/old") == Strings{write + "/.git/hooks/old"});
  CHECK(changes("printf y > .git/hooks/old; touch -d 2001-01-01 .git/hooks/old") ==
        Strings{write + "/.git/hooks/old"});
  CHECK(changes("rm .git/hooks/old") == Strings{write + "/.git/hooks/old"});
  CHECK(changes("mv .git/config .git/c && mv .git/c .git/config") ==
        Strings{write + "/.git/config"});
  CHECK(changes("ln -s sub .envrc; echo x > .vscode/tasks.json") ==
        Strings{write + "/.envrc", write + "/.vscode/tasks.json"});
  for (const char* file : {".git/config.worktree",
                           ".git/commondir",
                           ".husky/pre-push",
                           ".idea/workspace.xml",
                           ".ssh/config",
                           ".gitconfig",
                           ".npmrc",
                           ".yarnrc",
                           ".yarnrc.yml",
                           ".config/git/config",
                           ".config/fish/config.fish",
                           ".profile",
                           ".bashrc",
                           ".bash_profile",
                           ".bash_login",
                           ".bash_logout",
                           ".bash_aliases",
                           ".zshenv",
                           ".zprofile",
                           ".zshrc",
                           ".zlogin",
                           ".zlogout",
                           ".kshrc",
                           ".cshrc",
                           ".tcshrc",
                           ".login"}) {
    CAPTURE(file);
    const Strings changed =
        changes("mkdir -p $(dirname " + std::string(file) + ") && echo x > " + file);
    CHECK(contains(changed, write + "/" + file));
  }
  // All of .git gives way to another one, in part and as a whole.
  CHECK(contains(changes("mv .git/hooks .git/h; mkdir .git/hooks"), write + "/.git/hooks"));
  CHECK(contains(changes("mv .git .g; echo 'gitdir: .g' > .git"), write + "/.git"));
  CHECK(contains(changes("rm .git; mv .g .git"), write + "/.git"));
  CHECK(changes("rm .envrc") == Strings{write + "/.envrc"});
  // The work_dir is watched, too.
  CHECK(changes("echo x > .envrc", "sub") == Strings{sub + "/.envrc"});
  CHECK(changes("echo x > .envrc; echo x > ../.envrc", "sub") ==
        Strings{write + "/.envrc", sub + "/.envrc"});

  AuditLog log;
  options.on_audit = log.callback();
  const LocalExecutor audited = make(options);
  const Result started = audited.start(Command::shell("echo z > .envrc")).wait();
  CHECK(started.changed_files == Strings{write + "/.envrc"});
  CHECK(note_of(started, begin) == begin + "the user's own tools: " + write + "/.envrc");
  CHECK(log.take().at(0)["changed_files"] == Json::array({write + "/.envrc"}));
  options.watch_files = false;
  CHECK(make(options).run("echo z > .envrc").changed_files.empty());
  options.watch_files = true;
  options.sandbox.mode = SandboxMode::off;
  CHECK(make(options).run("echo z > .envrc").changed_files.empty());
}

TEST_CASE("watching files is bounded") {
  const support::TempDir place;
  const LocalExecutor here = make(sandboxed_in(place));
  const Result many = here.run("mkdir .vscode && cd .vscode && seq 1 1000 | xargs touch");
  CHECK_MESSAGE(many.succeeded(), describe(many));
  CHECK(many.changed_files.size() == 100);
  const Result gone = here.run("rm -r .vscode");
  CHECK(gone.changed_files.size() == 100);
  CHECK(here.run("true").changed_files.empty());
}

TEST_CASE("secrets are masked in everything that is told of a command") {
  const support::TempDir place;
  const support::EnvironmentGuard secret("CODEEXEC_TEST_TOKEN", "hunter2-hunter2");
  AuditLog log;
  LocalOptions options = in(place);
  options.environment.secret = {"CODEEXEC_TEST_TOKEN"};
  options.on_audit = log.callback();
  options.policy.blocked = {"curl .*"};
  options.max_timeout = seconds(60);
  const LocalExecutor here = make(options);
  const auto told = [](const Result& r) {
    return describe(r) + r.command + r.work_dir + r.err_file + r.out_file;
  };
  Command command = Command::shell("echo $CODEEXEC_TEST_TOKEN; : hunter2-hunter2");
  command.timeout = seconds(100);  // for a note
  for (const Result& r : {here.run(command), here.start(command).wait()}) {
    CHECK(r.out == "[redacted]\n");
    CHECK(r.command == "echo $CODEEXEC_TEST_TOKEN; : [redacted]");
    CHECK(r.notes.size() == 1);
    CHECK(r.out_counts.redactions == 1);
  }
  // Of a refusal, the bytes of the masked command are told.
  const std::string refused = "echo hunter2-hunter2; curl hunter2-hunter2; true";
  for (const Result& r : {here.run(refused), here.check(Command::shell(refused)),
                          here.start(Command::shell(refused)).wait()}) {
    CHECK(r.rule == "blocked-commands");
    CHECK(!has(told(r), "hunter2"));
    CHECK(r.command == "echo [redacted]; curl [redacted]; true");
    CHECK(r.command.substr(r.rule_begin, r.rule_end - r.rule_begin) == "curl [redacted]");
  }
  CHECK(!has(here.judge(Command::shell(refused)).verdict.message, "hunter2"));
  // Where the start fails, and where the message comes from the system.
  for (const Command& failing :
       {Command::program({"/hunter2-hunter2/x"}), Command::program({"hunter2-hunter2"})}) {
    for (const Result& r : {here.run(failing), here.start(failing).wait()}) {
      CHECK(r.outcome == Outcome::not_started);
      CHECK(has(r.message, "[redacted]"));
      CHECK(!has(told(r), "hunter2"));
    }
  }
  Command lost = Command::shell("true");
  lost.work_dir = "/hunter2-hunter2";
  CHECK(has(here.run(lost).message, "[redacted]"));
  const std::vector<Json> records = log.take();
  CHECK(records.size() == 9);
  for (const Json& record : records) {
    CHECK(!has(record.dump(), "hunter2"));
    CHECK(record["command"].is_string());
  }
  CHECK(records[0]["redactions"] == Json(1));
  CHECK(records[1]["redactions"] == Json(1));
  CHECK(records[2].find("redactions") == nullptr);
}

TEST_CASE("secrets are masked in the names of changed files") {
  const support::TempDir place;
  const support::EnvironmentGuard secret("CODEEXEC_TEST_TOKEN", "hunter2-hunter2");
  place.directory(".vscode");
  LocalOptions options = in(place);
  options.environment.secret = {"CODEEXEC_TEST_TOKEN"};
  options.sandbox.mode = codeexec::SandboxMode::best_effort;
  const Result r = make(options).run(": > .vscode/$CODEEXEC_TEST_TOKEN");
  REQUIRE(r.changed_files.size() == 1);
  CHECK(r.changed_files[0] == place.path() + "/.vscode/[redacted]");
}

// create() ----------------------------------------------------------------------------------------

TEST_CASE("every wrong option is an error of create() that names it") {
  const support::TempDir place;
  const std::string file = place.file("file", "#!/bin/sh\n", 0755);
  const std::string plain = place.file("plain");
  const std::string missing = place / "missing";
  support::make_symlink(plain, place / "link");
  REQUIRE(::mkfifo((place / "fifo").c_str(), 0600) == 0);
  const std::string nul("/bin/sh\0x", 9);
  struct Case {
    const char* named;
    std::function<void(LocalOptions&)> spoil;
  };
  const std::vector<Case> cases = {
      {"timeout", [](LocalOptions& o) { o.timeout = milliseconds(0); }},
      {"timeout", [](LocalOptions& o) { o.timeout = milliseconds(-500); }},
      {"max_timeout", [](LocalOptions& o) { o.max_timeout = milliseconds(0); }},
      {"kill_grace", [](LocalOptions& o) { o.kill_grace = milliseconds(0); }},
      {"max_timeout", [](LocalOptions& o) { o.max_timeout = seconds(59); }},
      {"max_output", [](LocalOptions& o) { o.max_output = 1023; }},
      {"max_output", [](LocalOptions& o) { o.max_output = 0; }},
      {"workspace", [&](LocalOptions& o) { o.workspace = missing; }},
      {"workspace", [&](LocalOptions& o) { o.workspace = file; }},
      {"workspace", [&](LocalOptions& o) { o.workspace = nul; }},
      {"allowed_paths",
       [&](LocalOptions& o) {
         o.roots = {{missing, Permission::write}};
       }},
      {"allowed_paths",
       [&](LocalOptions& o) {
         o.roots = {{file, Permission::write}};
       }},
      {"allowed_paths",
       [&](LocalOptions& o) {
         o.roots = {{"", Permission::write}};
       }},
      {"allowed_commands", [](LocalOptions& o) { o.policy.allowed = {"("}; }},
      {"blocked_commands",
       [](LocalOptions& o) {
         o.policy.blocked = {"ok", "(?=x)"};
       }},
      {"disabled_rules", [](LocalOptions& o) { o.policy.disabled_rules = {"sodu"}; }},
      {"spill_dir", [&](LocalOptions& o) { o.spill_dir = missing; }},
      {"spill_dir", [&](LocalOptions& o) { o.spill_dir = file; }},
      {"spill_dir", [&](LocalOptions& o) { o.spill_dir = nul; }},
      {"audit_file", [&](LocalOptions& o) { o.audit_file = missing + "/log"; }},
      {"audit_file", [&](LocalOptions& o) { o.audit_file = place.path(); }},
      {"audit_file", [&](LocalOptions& o) { o.audit_file = place / "fifo"; }},
      {"audit_file", [&](LocalOptions& o) { o.audit_file = place / "link"; }},
      {"audit_file", [&](LocalOptions& o) { o.audit_file = place.path() + nul; }},
      {"shell", [&](LocalOptions& o) { o.shell = missing; }},
      {"shell", [&](LocalOptions& o) { o.shell = plain; }},
      {"shell", [&](LocalOptions& o) { o.shell = place.path(); }},
      {"shell", [](LocalOptions& o) { o.shell = ""; }},
      {"shell", [](LocalOptions& o) { o.shell = "sh"; }},
      {"shell", [&](LocalOptions& o) { o.shell = nul; }},
      {"skills_dir", [&](LocalOptions& o) { o.skills_dir = missing; }},
      {"skills_dir", [&](LocalOptions& o) { o.skills_dir = file; }},
      {"venv_path", [&](LocalOptions& o) { o.environment.venv_path = missing; }},
      {"venv_path", [&](LocalOptions& o) { o.environment.venv_path = place.path(); }},
      {"command_prefix", [](LocalOptions& o) { o.environment.command_prefix = " "; }},
      {"command_prefix", [](LocalOptions& o) { o.environment.command_prefix = "a\nb"; }},
      {"keep", [](LocalOptions& o) { o.environment.keep = {"A=B"}; }},
      {"set",
       [](LocalOptions& o) {
         o.environment.set = {{"", "x"}};
       }},
  };
  for (const Case& each : cases) {
    LocalOptions options = in(place);
    each.spoil(options);
    const LeakCheck leaks;
    const Expected<LocalExecutor> made = LocalExecutor::create(options);
    CAPTURE(each.named);
    REQUIRE(!made);
    CAPTURE(made.error().message);
    CHECK(has(made.error().message, each.named));
    CHECK(!has(made.error().message, "\n"));
    CHECK(!has(made.error().message, std::string_view("\0", 1)));
    CHECK(leaks.clean());
  }
  CHECK(LocalExecutor::create(in(place)));
}

TEST_CASE("defaults are what the declarations say") {
  const LocalExecutor here = make({});
  CHECK(here.options().timeout == seconds(60));
  CHECK(here.options().max_timeout == seconds(3600));
  CHECK(LocalOptions().max_output == 1048576);
  CHECK(output_of(here, "echo $0") == "/bin/sh\n");
}

TEST_CASE("copies of an executor are the same executor") {
  LocalOptions options;
  options.policy.blocked = {"ls.*"};
  std::optional<LocalExecutor> first = make(options);
  const LocalExecutor copy = *first;
  first.reset();
  CHECK(copy.run("ls").rule == "blocked-commands");
  CHECK(output_of(copy, "echo x") == "x\n");
}

TEST_CASE("W-24: skills are linked once, and never in place of something else") {
  const support::TempDir skills;
  skills.file("skill.md", "text");
  SUBCASE("linked before the first command that runs") {
    const support::TempDir place;
    LocalOptions options = in(place);
    options.skills_dir = skills.path() + "/.";
    const LocalExecutor here = make(options);
    CHECK(here.run("sudo ls").outcome == Outcome::refused);
    CHECK(!support::exists(place / ".agent"));
    CHECK(output_of(here, "cat .agent/skills/skill.md") == "text");
    CHECK(support::real_path(place / ".agent/skills") == skills.path());
    CHECK(here.run("true").notes.empty());
    CHECK(make(options).run("true").notes.empty());  // as it was left
  }
  SUBCASE("a directory of the user's own stays") {
    const support::TempDir place;
    place.file(".agent/skills/mine.md", "mine");
    LocalOptions options = in(place);
    options.skills_dir = skills.path();
    const LocalExecutor here = make(options);
    const Result r = here.run("cat .agent/skills/mine.md");
    CHECK(r.out == "mine");
    REQUIRE(r.notes.size() == 1);
    CHECK(has(r.notes[0], "cannot link the skills as "));
    CHECK(support::read_file(place / ".agent/skills/mine.md") == "mine");
  }
  SUBCASE("a link to something else stays") {
    const support::TempDir place;
    const support::TempDir other;
    place.directory(".agent");
    support::make_symlink(other.path(), place / ".agent/skills");
    LocalOptions options = in(place);
    options.skills_dir = skills.path();
    CHECK(make(options).run("true").notes.size() == 1);
    CHECK(support::real_path(place / ".agent/skills") == other.path());
  }
  SUBCASE("a file in the way stays, and the command runs") {
    const support::TempDir place;
    place.file(".agent", "a file");
    LocalOptions options = in(place);
    options.skills_dir = skills.path();
    const Result r = make(options).run("cat .agent");
    CHECK(r.succeeded());
    CHECK(r.out == "a file");
    CHECK(r.notes.size() == 1);
  }
}

TEST_CASE("the summary of every outcome") {
  Result r;
  r.wall_time = milliseconds(1250);
  r.out_counts.total_bytes = 10;
  r.err_counts.total_bytes = 3;
  const std::string tail = " in 1.25 s; 10 bytes on stdout, 3 on stderr";
  r.outcome = Outcome::exited;
  r.exit_code = 3;
  CHECK(r.summary() == "exited with status 3" + tail);
  r.outcome = Outcome::signaled;
  r.signal = 9;
  CHECK(r.summary() == "killed by signal 9" + tail);
  r.outcome = Outcome::timed_out;
  r.timeout = milliseconds(1500);
  CHECK(r.summary() == "timed out after 1.5 s" + tail);
  r.outcome = Outcome::cancelled;
  CHECK(r.summary() == "cancelled" + tail);
  r.outcome = Outcome::unknown;
  CHECK(r.summary() == "ended, but its status could not be learned" + tail);
  r.err_counts.dropped_bytes = 1;
  CHECK(r.summary() == "ended, but its status could not be learned" + tail + " (shortened)");
  r.message = "because";
  r.outcome = Outcome::not_started;
  CHECK(r.summary() == "not started: because");
  r.outcome = Outcome::refused;
  r.rule = "dd";
  CHECK(r.summary() == "refused (dd): because");
}

TEST_CASE("the host's directory, descriptors and signal dispositions are left alone") {
  const support::TempDir place;
  const LocalExecutor here = make(in(place));
  const std::string before = support::real_path(".");
  struct sigaction old_child {};
  ::sigaction(SIGCHLD, nullptr, &old_child);
  const LeakCheck leaks;
  here.run("cd /; exit 1");
  here.run("sudo ls");
  here.run(long_script(200000));
  here.start(Command::shell("true")).wait();
  CHECK(support::real_path(".") == before);
  CHECK(leaks.clean());
  struct sigaction now_child {};
  ::sigaction(SIGCHLD, nullptr, &now_child);
  CHECK((now_child.sa_handler == old_child.sa_handler));
}

// Private homes -----------------------------------------------------------------------------------

namespace {

// Where private homes are made: a TMPDIR of this process's own.
class HomesPlace {
 public:
  HomesPlace() : guard_("TMPDIR", directory_.path().c_str()) {}

  // Names in it, sorted, without those of the tests' own directories.
  Strings entries() const {
    Strings names;
    DIR* listing = ::opendir(directory_.path().c_str());
    if (!listing) support::fail("opendir", directory_.path());
    while (const dirent* entry = ::readdir(listing)) names.emplace_back(entry->d_name);
    ::closedir(listing);
    names.erase(std::remove_if(names.begin(), names.end(),
                               [](const std::string& name) {
                                 return name[0] == '.' || begins(name, "codeexec-test-");
                               }),
                names.end());
    std::sort(names.begin(), names.end());
    return names;
  }
  const support::TempDir& directory() const { return directory_; }

 private:
  support::TempDir directory_ = {};
  support::EnvironmentGuard guard_;
};

LocalOptions with_home(codeexec::PrivateHome home, const support::TempDir& workspace) {
  LocalOptions options = in(workspace);
  options.sandbox.mode = codeexec::SandboxMode::best_effort;
  options.private_home = home;
  return options;
}

std::string home_of(const LocalExecutor& executor) {
  return output_of(executor, Command::shell("printf %s \"$HOME\""));
}

template <class Body>
std::string in_fork(bool as_user, Body body) {
  return support::in_other_host([&]() -> std::string {
    constexpr uid_t user = 12345;
    if (as_user && ::geteuid() == 0 &&
        (::setgroups(0, nullptr) != 0 || ::setgid(user) != 0 || ::setuid(user) != 0))
      return "cannot become another user";
    return body();
  });
}

// A directory in a directory in a directory ...; paths are too short for it.
void make_deep_tree(const std::string& path, int levels) {
  const std::string name(40, 'd');
  int here = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (int level = 0; level < levels && here >= 0; ++level) {
    if (::mkdirat(here, name.c_str(), 0700) != 0) support::fail("mkdirat", path);
    const int next = ::openat(here, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ::close(here);
    here = next;
  }
  if (here < 0) support::fail("open", path);
  ::close(here);
}

}  // namespace

TEST_CASE("a private home of the executor: one for all its commands, removed with its last copy") {
  const HomesPlace place;
  const support::TempDir workspace;
  std::optional<LocalExecutor> executor =
      make(with_home(codeexec::PrivateHome::executor, workspace));
  const std::string home = home_of(*executor);
  CHECK(begins(home, place.directory().path() + "/codeexec-home-"));
  CHECK(place.entries().size() == 1);
  const std::string user = std::to_string(::geteuid());
  CHECK(output_of(*executor, Command::shell("stat -c '%a %u' \"$HOME\" \"$TMPDIR\"")) ==
        "700 " + user + "\n700 " + user + "\n");
  CHECK(output_of(*executor, Command::shell("echo \"$TMPDIR\"")) == home + "/tmp\n");
  output_of(*executor, Command::shell("echo kept > ~/file; mktemp"));
  CHECK(output_of(*executor, Command::shell("cat ~/file; ls $TMPDIR | wc -l")) == "kept\n1\n");
  std::optional<LocalExecutor> copy = *executor;
  Execution running = copy->start(Command::shell("echo ready; read line"));
  executor.reset();
  CHECK(home_of(*copy) == home);
  copy.reset();
  CHECK(support::exists(home));  // of the command that still runs
  running.cancel();
  running.wait();
  running = Execution();
  CHECK(place.entries().empty());
}

TEST_CASE("a private home of the command: a new one for each, removed when it ends") {
  const HomesPlace place;
  const support::TempDir workspace;
  {
    const LocalExecutor executor = make(with_home(codeexec::PrivateHome::command, workspace));
    const Strings parents = place.entries();
    REQUIRE(parents.size() == 1);
    const std::string parent = place.directory() / parents[0];
    const std::string script =
        "echo \"$HOME\"; echo \"$TMPDIR\"; stat -c %a \"$HOME\"; ls -A \"$HOME\"; echo > ~/file";
    const Strings first = lines_of(output_of(executor, Command::shell(script)));
    const Strings second = lines_of(output_of(executor, Command::shell(script)));
    REQUIRE(first.size() == 4);
    REQUIRE(second.size() == 4);
    CHECK(begins(first[0], parent + "/command-"));
    CHECK(first[0] != second[0]);
    CHECK(second[1] == second[0] + "/tmp");
    CHECK(second[2] == "700");
    CHECK(second[3] == "tmp");
    CHECK(!support::exists(first[0]));
    CHECK(!support::exists(second[0]));

    Execution started = executor.start(Command::shell(script));
    const std::string home = lines_of(started.wait().out).at(0);
    CHECK(support::exists(home + "/file"));
    started = Execution();
    CHECK(!support::exists(home));
    Command failing = Command::program({"/nonexistent/program"});
    CHECK(executor.run(failing).outcome == Outcome::not_started);
    const Strings beside = lines_of(output_of(executor, Command::shell("ls -A \"$HOME/..\"")));
    REQUIRE(beside.size() == 2);
    CHECK(begins(beside[0], "command-"));  // its own
    CHECK(beside[1] == "tmp");
  }
  CHECK(place.entries().empty());
}

TEST_CASE("what the operator or the command sets is stronger than a private home") {
  const HomesPlace place;
  const support::TempDir workspace;
  const std::string script = "echo \"$HOME\"; echo \"$TMPDIR\"";
  for (const auto kind : {codeexec::PrivateHome::executor, codeexec::PrivateHome::command}) {
    LocalOptions options = with_home(kind, workspace);
    options.environment.keep_all = true;
    const auto shown = [&](const Command& command) {
      return lines_of(output_of(make(options), command));
    };
    const std::string private_one = place.directory().path() + "/codeexec-home-";
    Command command = Command::shell(script);
    CHECK(begins(shown(command).at(0), private_one));
    options.environment.set = {{"HOME", "/set"}};
    CHECK(shown(command).at(0) == "/set");
    CHECK(begins(shown(command).at(1), private_one));
    options.environment.set = {{"TMPDIR", "/set"}};
    CHECK(begins(shown(command).at(0), private_one));
    CHECK(shown(command).at(1) == "/set");
    command.environment = {{"HOME", "/given"}, {"TMPDIR", "/given, too"}};
    CHECK(shown(command) == Strings{"/given", "/given, too"});
  }
}

TEST_CASE("without a sandbox, or when it is off, there is no private home") {
  const HomesPlace place;
  const support::TempDir workspace;
  support::EnvironmentGuard guard("HOME", "/home/of the host");
  LocalOptions options = with_home(codeexec::PrivateHome::off, workspace);
  CHECK(home_of(make(options)) == "/home/of the host");
  options = in(workspace);
  CHECK(options.private_home == codeexec::PrivateHome::executor);
  CHECK(home_of(make(options)) == "/home/of the host");
  CHECK(place.entries().empty());
}

TEST_CASE("a private home that cannot be made is an error of create()") {
  const support::TempDir workspace;
  const std::string missing = workspace / "missing";
  const support::EnvironmentGuard guard("TMPDIR", missing.c_str());
  const auto made = LocalExecutor::create(with_home(codeexec::PrivateHome::executor, workspace));
  CHECK(made.error().message ==
        "private_home: cannot make a directory in '" + missing + "': No such file or directory");
}

TEST_CASE("a private home is removed whatever commands leave in it, and nothing else is") {
  const HomesPlace place;
  const support::TempDir outside;
  outside.file("directory/precious", "precious");
  if (::chmod(outside.path().c_str(), 0777) != 0 ||
      ::chmod(place.directory().path().c_str(), 0777) != 0)
    support::fail("chmod", "");
  for (const bool as_user : {false, true}) {
    CAPTURE(as_user);
    const std::string problem = in_fork(as_user, [&]() -> std::string {
      LocalOptions options;
      options.workspace = outside.path();
      options.sandbox.mode = codeexec::SandboxMode::best_effort;
      {
        const LocalExecutor executor = make(options);
        const std::string home = home_of(executor);
        support::make_symlink(outside.path(), home + "/link");
        support::make_symlink(outside / "directory", home + "/tmp/link");
        support::make_symlink("/nonexistent", home + "/dangling");
        support::write_file(home + "/\xff\xfe\n", "no UTF-8");
        support::write_file(home + "/tmp/read-only", "", 0400);
        support::make_directories(home + "/a/\xff/c");
        support::write_file(home + "/a/\xff/file", "");
        support::make_directories(home + "/closed/below/deeper");
        support::write_file(home + "/removed-0", "a name that the removal uses, too");
        support::make_directories(home + "/removed-1/x/y");
        if (::mkfifo((home + "/fifo").c_str(), 0600) != 0) return "mkfifo";
        support::fill_directory(home + "/tmp", 3000);
        // More than a path or a set of descriptors can have; levels are slow to make.
        if (as_user) make_deep_tree(home, 200);
        for (const char* closed : {"/closed/below/deeper", "/closed/below", "/closed", "/a", ""})
          if (::chmod((home + closed).c_str(), 0) != 0) return "chmod";
        // Few descriptors: none is kept per level.
        rlimit few{};
        ::getrlimit(RLIMIT_NOFILE, &few);
        few.rlim_cur = static_cast<rlim_t>(support::count_descriptors() + 20);
        ::setrlimit(RLIMIT_NOFILE, &few);
      }
      return place.entries().empty() ? "" : "still there: " + place.entries()[0];
    });
    CHECK(problem == "");
    CHECK(support::read_file(outside / "directory/precious") == "precious");
    struct stat status {};
    REQUIRE(::stat((outside / "directory").c_str(), &status) == 0);
    CHECK((status.st_mode & 07777) == 0755);
  }
}

#if defined(__linux__)
TEST_CASE("what is mounted in a private home is not removed") {
  const HomesPlace place;
  const support::TempDir outside;
  outside.file("below/precious", "precious");
  outside.file("precious", "precious");
  const std::string problem = in_fork(false, [&]() -> std::string {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      return "SKIPPED";
    const support::TempDir workspace;
    {
      const LocalExecutor executor = make(with_home(codeexec::PrivateHome::executor, workspace));
      const std::string home = home_of(executor);
      support::make_directories(home + "/a/mounted");
      support::make_directories(home + "/mounted");
      for (const std::string& on : {home + "/a/mounted", home + "/mounted"})
        if (::mount(outside.path().c_str(), on.c_str(), nullptr, MS_BIND, nullptr) != 0)
          return "SKIPPED";
    }
    return place.entries().size() == 1 ? "" : "the mount is gone";
  });
  if (problem == "SKIPPED") {
    MESSAGE("SKIPPED: no right to mount");
    return;
  }
  CHECK(problem == "");
  for (const char* file : {"precious", "below/precious"}) CHECK(support::exists(outside / file));
}
#endif

TEST_CASE("homes that killed programs left are removed by the next, and no others") {
  const HomesPlace place;
  const support::TempDir workspace;
  const LocalOptions options = with_home(codeexec::PrivateHome::executor, workspace);
  const auto leave_home = [&] {
    return in_fork(false, [&]() -> std::string {
      const LocalExecutor executor = make(options);
      support::make_directories(home_of(executor) + "/left/behind");
      ::_exit(0);  // nothing is destroyed, as with SIGKILL
    });
  };
  REQUIRE(leave_home() == "");
  REQUIRE(place.entries().size() == 1);
  const std::string left = place.entries()[0];
  const support::TempDir outside;
  outside.file("precious", "precious");
  support::make_symlink(outside.path(), place.directory() / "codeexec-home-linked");
  place.directory().file("codeexec-home-a-file");
  place.directory().file("codeexec-home-aaaaaa");
  place.directory().directory("codeexec-home-longer-name/x");
  place.directory().directory("other/x");
  const bool is_root = ::geteuid() == 0;
  if (is_root) {
    place.directory().directory("codeexec-home-others");
    REQUIRE(::chown((place.directory() / "codeexec-home-others").c_str(), 12345, 12345) == 0);
  }
  const Strings others = [&] {
    Strings names = place.entries();
    names.erase(std::find(names.begin(), names.end(), left));
    return names;
  }();
  {
    const LocalExecutor executor = make(options);
    const std::string home = home_of(executor);
    CHECK(!support::exists(place.directory() / left));
    const LocalExecutor second = make(options);
    CHECK(support::exists(home));
    CHECK(support::exists(home_of(second)));
  }
  CHECK(place.entries() == others);
  CHECK(support::exists(outside / "precious"));
}

TEST_CASE("a start removes a bounded number of homes that were left") {
  const HomesPlace place;
  const support::TempDir workspace;
  for (int i = 0; i < 20; ++i)
    place.directory().directory("codeexec-home-" + std::to_string(100000 + i) + "/tmp");
  const LocalOptions options = with_home(codeexec::PrivateHome::executor, workspace);
  (void)make(options);
  CHECK(place.entries().size() == 4);
  (void)make(options);
  CHECK(place.entries().empty());
}

TEST_CASE("a fork of the host does not remove the home") {
  const HomesPlace place;
  const support::TempDir workspace;
  std::optional<LocalExecutor> executor =
      make(with_home(codeexec::PrivateHome::executor, workspace));
  const std::string home = home_of(*executor);
  CHECK(in_fork(false, [&]() -> std::string {
          executor.reset();
          return "";
        }) == "");
  CHECK(support::exists(home + "/tmp"));
}

TEST_CASE("the tilde of a command is judged as the private home") {
  const HomesPlace place;
  const support::TempDir workspace;
  for (const auto kind : {codeexec::PrivateHome::executor, codeexec::PrivateHome::command}) {
    LocalOptions options = with_home(kind, workspace);
    options.delete_guard = true;
    const LocalExecutor executor = make(options);
    CHECK(executor.run("echo x > ~/file && rm ~/file").outcome == Outcome::exited);
    if (kind == codeexec::PrivateHome::command) continue;
    support::write_file(home_of(executor) + "/unread", "");
    CHECK(executor.run("rm ~/unread").rule == "delete-guard");
  }
}

TEST_CASE("the names of private homes") {
  CHECK(std::string(codeexec::name(codeexec::PrivateHome::off)) == "off");
  CHECK(std::string(codeexec::name(codeexec::PrivateHome::command)) == "command");
  CHECK(std::string(codeexec::name(codeexec::PrivateHome::executor)) == "executor");
}
