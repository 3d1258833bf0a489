// Sessions: what of a command carries on to the next one, in real shells, and that nothing does
// which was not asked for.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <unistd.h>

#include <memory>
#include <thread>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::CancelToken;
using codeexec::Command;
using codeexec::ErrorCode;
using codeexec::Execution;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Outcome;
using codeexec::Permission;
using codeexec::Result;
using codeexec::SandboxMode;
using codeexec::Session;
using std::chrono::milliseconds;
using std::chrono::seconds;
using support::describe;
using support::has;
using support::make;
using support::noted;

namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

// A workspace with the folders `sub` and `sub/deep`, and an executor in it.
struct Place {
  support::TempDir directory = {};
  LocalOptions options = {};
  Place() {
    directory.directory("sub/deep");
    options.workspace = directory.path();
    options.timeout = support::safety;
  }
  std::string sub() const { return directory / "sub"; }
  // Anything may run.
  void judge_nothing() {
    for (const codeexec::RuleInfo& rule : codeexec::Policy::rules())
      options.policy.disabled_rules.push_back(rule.name);
    options.policy.compat = true;
  }
};

Command in(const Session& session, const std::string& script) {
  Command command = Command::shell(script);
  command.session = session;
  return command;
}

bool kept(const Result& r) { return noted(r, "the session keeps"); }

std::string value_of(const Session& session, const std::string& name) {
  for (const auto& variable : session.variables())
    if (variable.first == name) return variable.second;
  return "(none)";
}

// The shells that are here, under names that tell what they are.
class Shells {
 public:
  Shells() {
    for (const char* name : {"dash", "bash", "mksh", "ksh93", "zsh", "yash"}) {
      bool found = false;
      for (const char* folder : {"/bin/", "/usr/bin/"}) {
        const std::string path = std::string(folder) + name;
        if (found || ::access(path.c_str(), X_OK) != 0) continue;
        paths.push_back(path);
        found = true;
      }
      const bool wanted = std::string(name) == "dash" || std::string(name) == "bash";
      if (wanted && !found) MESSAGE("SKIPPED: no " << std::string(name));
    }
    for (const char* busybox : {"/bin/busybox", "/usr/bin/busybox"}) {
      if (::access(busybox, X_OK) != 0 || support::exists(links_ / "ash")) continue;
      support::make_symlink(busybox, links_ / "ash");
      paths.push_back(links_ / "ash");
    }
    if (!support::exists(links_ / "ash")) MESSAGE("SKIPPED: no busybox");
    paths.push_back("/bin/sh");
  }
  std::vector<std::string> paths = {};

 private:
  support::TempDir links_ = {};
};

const std::vector<std::string>& shells() {
  static const Shells all;
  return all.paths;
}

// Those in which everything holds, as the README says.
bool is_main(const std::string& shell) {
  return support::ends(shell, "dash") || support::ends(shell, "bash") ||
         support::ends(shell, "/ash") || shell == "/bin/sh";
}

// How the next command of a session begins.
Result next(const LocalExecutor& executor, const Session& session, const std::string& shell = {}) {
  Command command = in(session, "printf '%s|%s|%s|%s' \"$PWD\" \"${A-none}\" \"${B-none}\" $#");
  command.interpreter = shell;
  return executor.run(command);
}

}  // namespace

// what carries on ---------------------------------------------------------------------------------

TEST_CASE("cd, export and unset carry on within a session, and nowhere else") {
  const Place place;
  const LocalExecutor executor = make(place.options);
  for (const std::string& shell : shells()) {
    CAPTURE(shell);
    const Session session;
    CHECK(session.work_dir().empty());
    Command first = in(session,
                       "cd sub && export A='it'\"'\"'s \"$x\" `y` \\' B='two\nlines\t'; C=3; "
                       "f() { :; }; echo $0 $#");
    first.interpreter = shell;
    Result r = executor.run(first);
    REQUIRE_MESSAGE(r.succeeded(), describe(r));
    CHECK(r.out == shell + " 0\n");
    CHECK(r.err.empty());
    CHECK(r.notes.empty());
    CHECK(r.work_dir == place.directory.path());
    CHECK(session.work_dir() == place.sub());
    CHECK(session.variables() == Variables{{"A", "it's \"$x\" `y` \\"}, {"B", "two\nlines\t"}});

    r = next(executor, session, shell);
    CHECK_MESSAGE(r.out == place.sub() + "|it's \"$x\" `y` \\|two\nlines\t|0", describe(r));
    CHECK(r.work_dir == place.sub());
    // Which shells keep what is not exported: session_shells.cpp.
    first.script = "echo \"${C-none}\"; unset A; export B=; cd deep";
    r = executor.run(first);
    CHECK(r.out == (is_main(shell) ? "3\n" : "none\n"));
    r = next(executor, session, shell);
    CHECK_MESSAGE(r.out == place.sub() + "/deep|none||0", describe(r));

    // Neither without a session nor in another one.
    CHECK(executor.run("pwd; echo ${B-none}").out == place.directory.path() + "\nnone\n");
    CHECK(next(executor, Session()).out == place.directory.path() + "|none|none|0");

    session.reset();
    CHECK(session.work_dir().empty());
    CHECK(session.variables().empty());
    CHECK(next(executor, session, shell).out == place.directory.path() + "|none|none|0");
  }
}

TEST_CASE("a session and what start() starts") {
  const Place place;
  const LocalExecutor executor = make(place.options);
  const Session session;
  Command command = in(session, "cd sub; export A=1; exit 3");
  std::string at_end;
  command.on_end = [&](const Result&) { at_end = session.work_dir(); };
  const Execution execution = executor.start(command);
  CHECK(execution.wait().exit_code == 3);
  CHECK(at_end == place.sub());
  CHECK(next(executor, session).out == place.sub() + "|1|none|0");
}

TEST_CASE(
    "however a script ends, its status is its own, and the session has all of it or nothing") {
  Place place;
  place.judge_nothing();
  const LocalExecutor executor = make(place.options);
  struct Case {
    const char* script;
    int status;  // of a shell that was killed: minus the signal; -2: any but 0
    bool moved;
    const char* out = "";
    bool everywhere = true;  // not only in dash, bash and busybox
  };
  const Case cases[] = {
      {"cd sub; export A=1; exit 7", 7, true},
      {"cd sub; export A=1; (exit 5)", 5, true},
      {"set -e; cd sub; export A=1; false; cd /", 1, true},
      {"set -eu -f -C; cd sub; export A=1", 0, true},
      {"set -u; cd sub; export A=1; echo $nothing; cd /", -2, true},
      {"cd sub; export A=1; : ${nothing?is missing}; cd /", -2, true},
      {"cd sub; export A=1\nif ; then", -2, true, "", false},
      {"cd sub; export A=1; nonexistent-command 2>/dev/null", 127, true},
      {"cd sub; export A=1; exec >/dev/null 2>&1; echo x; exit 4", 4, true},
      {"cd sub; export A=1; (cd /; export A=2; exit 3); echo $?", 0, true, "3\n"},
      {"cd sub; export A=1; { cd /; sleep 600; } >/dev/null 2>&1 &", 0, true},
      {"cd sub; export A=1; pwd() { echo /; }; echo() { :; }; exit 2", 2, true},
      {"cd sub; export A=1; set -- a b; exit $#", 2, true},
      {"cd sub; export A=1; set -x; true", 0, true},
      {"trap 'echo bye $?' EXIT; cd sub; export A=1; (exit 4)", 4, true, "bye 4\n"},
      {"trap 'echo bye $?' EXIT; cd sub; export A=1; exit 4", 4, false, "bye 4\n"},
      {"cd sub; export A=1; exec sh -c 'exit 6'", 6, false, "", false},
      {"cd sub; export A=1; kill -9 $$", -9, false},
      {"cd sub; export A=1; kill -TERM $$; sleep 600", -15, false, "", false},
      {"cd sub; export A=1; exec 3>&- 8>&- 9>&-; exit 3", 3, true, "", false},
      {"mkdir gone; cd gone; export A=1; rmdir ../gone; exit 6", 6, false, "", false},
      {"cd sub; export A=1; for f in /proc/$$/fd/1?; do echo junk >$f; done; exit 5", 5, false, "",
       false},
      {"exec 3<sub 8<sub; exec 3<&- 8<&-; cd sub; export A=1; exit 1", 1, true, "", false},
  };
  for (const std::string& shell : shells()) {
    for (const Case& c : cases) {
      if (!c.everywhere && !is_main(shell)) continue;
      CAPTURE(shell);
      CAPTURE(std::string(c.script));
      const Session session;
      Command first = in(session, "export A=0 B=0");
      REQUIRE(executor.run(first).succeeded());
      first.script = c.script;
      first.interpreter = shell;
      const Result r = executor.run(first);
      CAPTURE(describe(r));
      const int status = r.outcome == Outcome::signaled ? -r.signal : r.exit_code;
      CHECK((status == c.status || (c.status == -2 && status > 0)));
      CHECK(r.out == c.out);
      if (r.exit_code >= 0 && c.status != -2) CHECK((r.err.empty() || has(c.script, "set -x")));
      CHECK(kept(r) == !c.moved);
      CHECK(session.work_dir() == (c.moved ? place.sub() : place.directory.path()));
      CHECK(session.variables() == Variables{{"A", c.moved ? "1" : "0"}, {"B", "0"}});
    }
  }
}

TEST_CASE("a session's shell is told of nothing that is not the script's") {
  const Place place;
  const LocalExecutor executor = make(place.options);
  for (const std::string& shell : shells()) {
    if (!is_main(shell)) continue;
    CAPTURE(shell);
    Command command = in(Session(), "set -x; true");
    command.interpreter = shell;
    const Result traced = executor.run(command);
    CHECK_MESSAGE(support::lines_of(traced.err).size() == 1, traced.err);
    // Programs have three descriptors, as without a session.
    command.script = std::string(CODEEXEC_TEST_CHILD) + " descriptors";
    const Result with = executor.run(command);
    command.session.reset();
    const Result without = executor.run(command);
    CHECK_MESSAGE(with.succeeded(), describe(with));
    CHECK(with.out == without.out);
    // Errors name the lines of the script.
    command.session = Session();
    command.script = "true\nnonexistent-command";
    CHECK(has(executor.run(command).err, "nonexistent-command"));
    if (support::ends(shell, "bash")) CHECK(has(executor.run(command).err, "line 2:"));
  }
}

TEST_CASE("a command that is stopped leaves its session as it was") {
  const Place place;
  const LocalExecutor executor = make(place.options);
  for (const std::string& shell : shells()) {
    CAPTURE(shell);
    const Session session;
    // It has the time to leave by itself, and tells what it has changed.
    Command command =
        in(session, "trap 'exit 0' TERM; cd sub; export A=1; echo ready; sleep 600 & wait");
    command.interpreter = shell;
    SUBCASE("at its deadline") { command.timeout = milliseconds(300); }
    SUBCASE("by somebody") {
      command.cancel = CancelToken();
      command.on_output = [cancel = *command.cancel](codeexec::Stream, std::string_view) {
        cancel.cancel();
      };
    }
    const Result r = executor.run(command);
    CHECK((r.outcome == Outcome::timed_out || r.outcome == Outcome::cancelled));
    CHECK(kept(r));
    CHECK(session.work_dir().empty());
    CHECK(session.variables().empty());
  }
}

TEST_CASE("of two commands at once each tells what it has changed") {
  const Place place;
  const LocalExecutor executor = make(place.options);
  const Session session;
  REQUIRE(executor.run(in(session, "export A=0 B=0")).succeeded());
  Command waiting = in(session, "cd sub; export A=1; read line; echo $B");
  waiting.keep_input_open = true;
  const Execution slow = executor.start(waiting);
  REQUIRE(executor.run(in(session, "export B=2")).succeeded());
  CHECK(session.work_dir() == place.directory.path());
  slow.close_input();
  CHECK(slow.wait().out == "0\n");
  CHECK(next(executor, session).out == place.sub() + "|1|2|0");

  // One that stays where it began has not changed the folder.
  const Session fresh;
  waiting = in(fresh, "export A=1; read line");
  waiting.keep_input_open = true;
  const Execution still = executor.start(waiting);
  REQUIRE(executor.run(in(fresh, "cd sub")).succeeded());
  still.close_input();
  CHECK_FALSE(kept(still.wait()));
  CHECK(next(executor, fresh).out == place.sub() + "|1|none|0");

  // What began before a reset has no part in what is after it.
  waiting = in(session, "export A=3; read line");
  waiting.keep_input_open = true;
  const Execution late = executor.start(waiting);
  session.reset();
  late.close_input();
  CHECK_FALSE(kept(late.wait()));
  CHECK(session.variables().empty());
}

TEST_CASE("sessions leave no descriptors open") {
  const Place place;
  const LocalExecutor executor = make(place.options);
  const support::LeakCheck leaks;
  const Session session;
  for (int i = 0; i < 3; ++i) {
    CHECK(executor.run(in(session, "cd sub; cd ..")).succeeded());
    CHECK(executor.start(in(session, "true")).wait().succeeded());
    CHECK(executor.run(in(session, "exit 300")).exit_code != 0);
    CHECK(executor.run(in(session, "sleep 600 >/dev/null 2>&1 &")).succeeded());
  }
  CHECK(leaks.clean());
}

TEST_CASE("a session is safe from many threads") {
  const Place place;
  const LocalExecutor executor = make(place.options);
  const Session session;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      const std::string name = "V" + std::to_string(i);
      for (int round = 0; round < 5; ++round) {
        (void)executor.run(
            in(session, "cd " + place.sub() + "; export " + name + "=" + std::to_string(round)));
        (void)session.variables();
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(session.variables() == Variables{{"V0", "4"}, {"V1", "4"}, {"V2", "4"}, {"V3", "4"}});
  CHECK(session.work_dir() == place.sub());
}

// the environment ---------------------------------------------------------------------------------

TEST_CASE("variables of the executor, the session and the command") {
  Place place;
  place.options.environment.set = {{"A", "executor"}, {"B", "executor"}, {"D", "executor"}};
  const LocalExecutor executor = make(place.options);
  const Session session;
  const std::string show = "echo ${A-none} ${B-none} ${C-none} ${D-none}";
  const auto run = [&](const std::string& script, const Variables& own = {}) {
    Command command = in(session, script);
    command.environment = own;
    const Result r = executor.run(command);
    CHECK_MESSAGE(r.succeeded(), describe(r));
    return r.out;
  };
  CHECK(run(show) == "executor executor none executor\n");
  CHECK(session.variables().empty());
  // What only this command was given is no change of it.
  CHECK(run(show, {{"A", "own"}, {"C", "own"}}) == "own executor own executor\n");
  CHECK(session.variables().empty());
  run("export A=session C=session; unset D");
  CHECK(session.variables() == Variables{{"A", "session"}, {"C", "session"}});
  CHECK(run(show) == "session executor session none\n");
  CHECK(run(show, {{"A", "own"}, {"D", "own"}}) == "own executor session own\n");
  CHECK(run(show) == "session executor session none\n");
  run("export D=again; unset A");
  CHECK(run(show) == "none executor session again\n");
  session.reset();
  CHECK(run(show) == "executor executor none executor\n");
}

TEST_CASE("what is not carried on") {
  Place place;
  place.judge_nothing();
  const LocalExecutor executor = make(place.options);
  for (const std::string& shell : shells()) {
    CAPTURE(shell);
    const Session session;
    Command command = in(session, "");
    command.interpreter = shell;
    for (const char* script :
         {"cd sub; cd ..; export PWD OLDPWD", "export LD_PRELOAD=/x.so LD_AUDIT=/y.so",
          "export BASH_ENV=/x ENV=/y", "export IFS=: PS4=x CDPATH=/ GLOBIGNORE=x FPATH=/ ZDOTDIR=/",
          "export CODEEXEC_RUN_ID=1 CODEEXEC_X=1", "unset HOME", "NOT=exported", "export NONE"}) {
      CAPTURE(std::string(script));
      // zsh gives it a value.
      if (support::ends(shell, "zsh") && has(script, "NONE")) continue;
      command.script = script;
      const Result r = executor.run(command);
      CHECK_MESSAGE(r.succeeded(), describe(r));
      CHECK_FALSE(kept(r));
      CHECK(session.variables().empty());
    }
    command.script = "echo $HOME";
    CHECK(executor.run(command).out != "\n");
    if (!support::ends(shell, "bash")) continue;
    command.script = "f() { :; }; export -f f; readonly R=1; export R; a=(1 2); export a";
    CHECK(executor.run(command).succeeded());
    CHECK(session.variables().empty());
    // In POSIX mode bash does not say which variables are read-only.
    command.session = Session();
    command.script = "export POSIXLY_CORRECT=1 SHELLOPTS BASHOPTS";
    CHECK(executor.run(command).succeeded());
    CHECK(command.session->variables().empty());
  }
}

TEST_CASE("more than a session can hold leaves it as it was") {
  const Place place;
  const LocalExecutor executor = make(place.options);
  const Session session;
  const auto fill = [&](const std::string& count, const std::string& size) {
    return executor.run(in(session, "cd sub; v=$(printf %0" + size + "d 0); i=0; while [ $i -lt " +
                                        count + " ]; do export \"V$i=$v\"; i=$((i + 1)); done"));
  };
  REQUIRE(executor.run(in(session, "export A=1")).succeeded());
  for (const auto& [number, length] : std::vector<std::pair<std::string, std::string>>{
           {"256", "1"}, {"1", "65536"}, {"4", "100000"}}) {
    const Result r = fill(number, length);
    CHECK_MESSAGE(r.succeeded(), describe(r));
    CHECK(noted(r, "256"));
    CHECK(kept(r));
    CHECK(session.work_dir() == place.directory.path());
    CHECK(session.variables() == Variables{{"A", "1"}});
  }
  Result r = fill("255", "200");
  CHECK_FALSE(kept(r));
  CHECK(session.variables().size() == 256);
  CHECK(session.work_dir() == place.sub());
  session.reset();
  r = fill("1", "65500");
  CHECK_FALSE(kept(r));
  CHECK(value_of(session, "V0").size() == 65500);
}

// the gate ----------------------------------------------------------------------------------------

TEST_CASE("only scripts have sessions, in shells that can") {
  const Place place;
  const LocalExecutor executor = make(place.options);
  Command command = Command::program({"true"});
  command.session = Session();
  CHECK(executor.check(command).rule == "command");
  CHECK(executor.run(command).rule == "command");
  command = in(Session(), "true");
  for (const char* shell : {"/usr/bin/env", "python3", "/bin/fish"}) {
    command.interpreter = shell;
    const Result r = executor.run(command);
    CHECK(r.rule == "command");
    CHECK_MESSAGE(has(r.message, "POSIX shell"), r.message);
  }
}

TEST_CASE("long scripts in a session") {
  const Place place;
  const LocalExecutor executor = make(place.options);
  for (const std::string& shell : shells()) {
    CAPTURE(shell);
    for (const std::size_t size : {131070u, 131071u, 131072u, 300000u, 1u << 20}) {
      CAPTURE(size);
      const Session session;
      Command command = in(session, "cd sub; export A='x\ny'; v=\"");
      command.interpreter = shell;
      const std::string end = "\"; echo ${#v}; exit 3";
      const std::size_t length = size - command.script.size() - end.size();
      command.script += std::string(length, 'a') + end;
      const Result r = executor.run(command);
      CHECK_MESSAGE(r.exit_code == 3, r.summary() << r.message << r.err.substr(0, 200));
      CHECK(r.out == std::to_string(length) + "\n");
      CHECK(session.work_dir() == place.sub());
      CHECK(value_of(session, "A") == "x\ny");
    }
  }
  const Result r = executor.run(in(Session(), "true #" + std::string(1 << 20, 'a')));
  CHECK(r.rule == "command");
  CHECK(has(r.message, "1 MiB"));
}

TEST_CASE("the folder of a session is judged like any work_dir") {
  Place place;
  support::TempDir outside;
  place.options.roots = {{place.directory.path(), Permission::write},
                         {place.directory.directory("ro"), Permission::read}};
  place.directory.file("ro/file");
  const LocalExecutor executor = make(place.options);
  const Session session;
  const auto run = [&](const std::string& script, const std::string& work_dir = {}) {
    Command command = in(session, script);
    command.work_dir = work_dir;
    const std::string rule = executor.check(command).rule;
    const Result r = executor.run(command);
    CHECK(r.rule == rule);
    return r;
  };

  SUBCASE("what is relative means what it means there") {
    CHECK(run("cd ro").succeeded());
    CHECK(run("rm -f file").rule == "read-only");
    CHECK(run("rm -f ../sub/file").succeeded());
    CHECK(run("rm -f file", "sub").succeeded());
    CHECK(session.work_dir() == place.sub());
    CHECK(run("rm -f file").succeeded());
  }
  SUBCASE("a variable means what it is there") {
    CHECK(run("export HOME=" + place.directory / "ro").succeeded());
    CHECK(run("rm -f ~/file").rule == "read-only");
  }
  SUBCASE("outside of the roots it stays where it was, and says so once") {
    CHECK(run("cd sub").notes.empty());
    const Result left = run("export A=1; cd " + outside.path());
    CHECK(left.succeeded());
    REQUIRE(left.notes.size() == 1);
    CHECK(support::begins(left.notes[0], "the session stays in " + place.sub() + ", because '" +
                                             outside.path() + "' is not within"));
    CHECK(session.work_dir() == place.sub());
    const Result next = run("echo $A; pwd");
    CHECK(next.out == "1\n" + place.sub() + "\n");
    CHECK(next.notes.empty());
    CHECK(run("cd " + outside.path() + " && pwd").out == outside.path() + "\n");
    CHECK(run("pwd", outside.path()).rule == "work_dir");
  }
  SUBCASE("a folder that has gone") {
    CHECK(run("mkdir -p new; cd new").succeeded());
    support::remove_all(session.work_dir());
    const Result r = run("pwd");
    CHECK(r.rule == "work_dir");
    CHECK_MESSAGE(has(r.message, "give a work_dir"), r.message);
    CHECK(run("cd deep", "sub").work_dir == place.sub());
    CHECK(run("pwd").out == place.sub() + "/deep\n");
  }
  SUBCASE("another's command without a session is where it was") {
    CHECK(run("cd sub").succeeded());
    CHECK(executor.run("pwd").out == place.directory.path() + "\n");
  }
}

TEST_CASE("the policy judges the script and nothing else, and the audit log has it") {
  Place place;
  support::AuditLog log;
  place.options.on_audit = log.callback();
  place.options.policy.allowed = {"cd .*", "pwd"};
  const LocalExecutor executor = make(place.options);
  const Session session;
  CHECK(executor.run(in(session, "cd sub")).succeeded());
  CHECK(executor.run(in(session, "pwd")).out == place.sub() + "\n");
  CHECK(executor.run(in(session, "export A=1; ls")).outcome == Outcome::refused);
  const auto records = log.take();
  REQUIRE(records.size() == 3);
  CHECK(records[1]["command"] == codeexec::Json("pwd"));
  CHECK(records[1]["work_dir"] == codeexec::Json(place.sub()));
}

TEST_CASE("a venv and a prefix in a session") {
  Place place;
  place.directory.file(".venv/bin/tool", "#!/bin/sh\necho tool\n", 0755);
  SUBCASE("with a prefix") { place.options.environment.command_prefix = "env MORE=1"; }
  SUBCASE("with a venv") {}
  SUBCASE("with a prefix that hands on no descriptor") {
    place.options.environment.command_prefix =
        place.directory.file("close", "#!/bin/sh\nexec \"$@\" 3>&-\n", 0755);
    const Session session;
    const Result r = make(place.options).run(in(session, "cd sub; pwd; exit 4"));
    CHECK(r.exit_code == 4);
    CHECK(r.out == place.sub() + "\n");
    CHECK_MESSAGE(r.err.empty(), r.err);
    CHECK(kept(r));
    CHECK(session.work_dir().empty());
    return;
  }
  const LocalExecutor executor = make(place.options);
  const Session session;
  CHECK(executor.run(in(session, "cd sub; export A=1; export PATH=\"$PATH:/x\"")).succeeded());
  const Result r = next(executor, session);
  CHECK_MESSAGE(r.out == place.sub() + "|1|none|0", describe(r));
  CHECK(support::ends(value_of(session, "PATH"), ":/x"));
  CHECK(value_of(session, "VIRTUAL_ENV") == "(none)");
}

#if defined(__linux__)
TEST_CASE("sessions in a sandbox") {
  Place place;
  place.options.sandbox.mode = SandboxMode::best_effort;
  place.options.private_home = codeexec::PrivateHome::command;
  SUBCASE("with a supervisor and limits") { place.options.sandbox.limits.file_size = 1; }
  SUBCASE("without the network") { place.options.sandbox.network = codeexec::Network::none; }
  SUBCASE("with a process table of its own") { place.options.sandbox.pid_namespace = true; }
  for (const char* shell : {"/bin/dash", "/bin/bash"}) {
    if (::access(shell, X_OK) != 0) {
      MESSAGE("SKIPPED: no " << std::string(shell));
      continue;
    }
    place.options.shell = shell;
    const LocalExecutor executor = make(place.options);
    const Session session;
    const Result first = executor.run(in(session, "cd sub; export A=1; unset LANG; exit 3"));
    CHECK_MESSAGE(first.exit_code == 3, describe(first));
    CHECK_FALSE(kept(first));
    // The home of the command has gone with it.
    CHECK(session.variables() == Variables{{"A", "1"}});
    const Result r = next(executor, session);
    CHECK_MESSAGE(r.out == place.sub() + "|1|none|0", describe(r));
    CHECK(executor.start(in(session, "cd ..")).wait().succeeded());
    CHECK(session.work_dir() == place.directory.path());
    CHECK(executor.run(in(session, "echo ${LANG-none}; cd $HOME && pwd")).succeeded());
    CHECK(executor.run(in(session, "pwd")).rule == "work_dir");
  }
}
#endif

TEST_CASE("sessions: a command is judged with what earlier ones have exported") {
  const support::TempDir place;
  LocalOptions options;
  options.workspace = place.path();
  options.policy.blocked = {"touch made.*"};
  const LocalExecutor here = make(options);
  Command command = Command::shell("export X=made L=ls T=touch");
  command.session = codeexec::Session();
  CHECK(here.run(command).succeeded());
  command.script = "touch $X";
  CHECK(here.run(command).rule == "blocked-commands");
  command.script = "$T made";
  CHECK(here.run(command).rule == "blocked-commands");
  command.script = "$L; echo $X";
  CHECK(here.run(command).out == "made\n");
  command.script = "touch $X";
  command.environment = {{"X", "other"}};
  CHECK(here.run(command).succeeded());
  command.script = "unset X T; export L=";
  CHECK(here.run(command).succeeded());
  command.environment = {};
  command.script = "rm -rf \"$L\"/*";
  CHECK(here.judge(command).verdict.rule == "rm-protected");
  CHECK(!support::exists(place / "made"));
}
