// How long a command may run, and where.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <signal.h>

#include <map>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Command;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Outcome;
using codeexec::Permission;
using codeexec::Result;
using std::chrono::milliseconds;
using std::chrono::seconds;
using support::begins;
using support::child;
using support::dies;
using support::has;
using support::in;
using support::lines_of;
using support::make;
using support::output_of;
using support::Stopwatch;
using support::Strings;

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
  CHECK(r.notes ==
        Strings{"timeout reduced from unlimited to 2.5 seconds, the longest that is allowed here"});
  command.timeout = milliseconds(2500);
  r = here.run(command);
  CHECK(r.timeout == milliseconds(2500));
  CHECK(r.notes.empty());
  command.timeout.reset();
  r = here.run(command);
  CHECK(r.timeout == milliseconds(1500));
  CHECK(r.notes.empty());
}

TEST_CASE("an executor without a limit gives commands the most that is allowed") {
  LocalOptions options;
  options.timeout = codeexec::no_limit;
  CHECK(make(options).run("true").timeout == seconds(3600));
  CHECK(make(options).options().timeout == seconds(3600));
  options.max_timeout = codeexec::no_limit;
  CHECK(make(options).run("true").timeout == codeexec::no_limit);
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

namespace {

// What has no time to print before its timeout is run again with a longer one.
Result run_printing(LocalOptions options, const Command& command) {
  for (options.timeout = milliseconds(300);; options.timeout *= 4) {
    Result result = make(options).run(command);
    if (!result.out.empty() || options.timeout > seconds(10)) return result;
  }
}

}  // namespace

TEST_CASE("W-14 W-09: the executor's own timeout applies, keeps the output and kills the tree") {
  for (const char* script :
       {"sleep 300 & echo $!; wait", "sleep 300 & echo $!; sleep 300 | cat; echo never",
        "setsid sleep 300 & echo $!; wait"}) {
    CAPTURE(script);
    const Result r = run_printing(LocalOptions(), Command::shell(script));
    CHECK(r.outcome == Outcome::timed_out);
    CHECK(r.exit_code == -1);
    CHECK(r.timeout >= milliseconds(300));
    CHECK(r.wall_time >= r.timeout);
    CHECK(r.wall_time < r.timeout + support::safety / 2);
    REQUIRE(lines_of(r.out).size() == 1);
    CHECK(dies(std::atoi(r.out.c_str())));
  }
}

TEST_CASE("kill_grace passes before a command that ignores SIGTERM is killed") {
  LocalOptions options;
  options.kill_grace = milliseconds(200);
  const Result r = run_printing(options, Command::program({child, "ignore-term"}));
  CHECK(r.outcome == Outcome::timed_out);
  CHECK(r.signal == SIGKILL);
  CHECK(r.out == "ready\n");
  CHECK(r.wall_time >= r.timeout + milliseconds(200));
  CHECK(r.wall_time < r.timeout + support::safety / 2);
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
      {"~", "Working directory does not exist: " + root + "/~; `~` is not expanded here",
       root + "/~"},
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
