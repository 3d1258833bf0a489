// What a command is and what it gets: script or argv, prefix, venv, environment.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Command;
using codeexec::Json;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Outcome;
using codeexec::Result;
using support::AuditLog;
using support::begins;
using support::has;
using support::in;
using support::LeakCheck;
using support::long_script;
using support::make;
using support::output_of;
using support::Strings;

// what a command is -------------------------------------------------------------------------------

TEST_CASE("one command in one line") {
  const Result result = codeexec::run("echo hello; exit 3");
  CHECK(result.out == "hello\n");
  CHECK(result.exit_code == 3);
  CHECK(codeexec::run("sudo ls").outcome == Outcome::refused);
}

TEST_CASE("empty and blank commands succeed and do nothing") {
  const LocalExecutor here = make({});
  for (const char* script : {"", "   ", "\n\n", "# nothing"}) {
    const Result r = here.run(script);
    CHECK(r.succeeded());
    CHECK(r.out.empty());
    CHECK(r.err.empty());
  }
}

TEST_CASE("a signal that ended a command is told by its name") {
  const LocalExecutor here = make({});
  const Result r = here.run("kill -SEGV $$");
  CHECK(r.signal == SIGSEGV);
  CHECK(r.notes == Strings{"ended by SIGSEGV (segmentation fault)"});
  CHECK(here.run("kill -USR1 $$").notes == Strings{"ended by signal " + std::to_string(SIGUSR1)});
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
