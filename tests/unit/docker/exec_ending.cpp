// Commands in containers: how they end, by themselves and when the engine is not well.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "../../helpers/engine_support.hpp"
#include "../../helpers/executor_support.hpp"
#include "../../helpers/fake_engine.hpp"
#include "../../helpers/support.hpp"
#include "exec_helpers.hpp"

using codeexec::Command;
using codeexec::ContainerExecutorOptions;
using codeexec::Outcome;
using codeexec::Result;
using codeexec::Stream;
using std::chrono::milliseconds;
using std::chrono::seconds;
using support::Box;
using support::Change;
using support::check_usable;
using support::comes_true;
using support::describe;
using support::docker;
using support::endless_program;
using support::fake_engine;
using support::has;
using support::has_images;
using support::images;
using support::left_in;
using support::ordinary_user;
using support::prints_text;
using support::processes;
using support::shared_box;

namespace {

// Ends the test unless the engine holds a container to what was asked: without that, what comes
// next would be a danger to the host.
void require_limit(const Box& box, const std::string& field, const std::string& value) {
  REQUIRE(box.executor().ensure());
  const std::string limit =
      docker({"container", "inspect", "-f", "{{.HostConfig." + field + "}}", box.name()}).out;
  REQUIRE(limit == value + "\n");
}

}  // namespace

// Ending commands ---------------------------------------------------------------------------------

namespace {

// Shapes of what a command leaves or hides, with `%` for the program.
const char* const trees[] = {
    "% & exec %",
    "trap '' TERM HUP INT; sh -c \"trap '' TERM; % & %\" & trap '' TERM; %; %",
    "setsid % & wait",
    "setsid sh -c 'trap \"\" TERM; % & wait' & wait",
    "env -i setsid % & %",
    "( setsid sh -c '( % & ) ; % &' & ) ; %",
    "( exec env -i setsid sh -c '( exec </dev/null >/dev/null 2>&1; % & ) &' ) & %",
    "sh -c 'cd /; umask 0; setsid sh -c \"% >/dev/null 2>&1 & exit\" & exit' ; %",
};

std::string with_program(const std::string& shape, const std::string& program) {
  std::string script;
  for (const char c : shape) script += c == '%' ? program : std::string(1, c);
  return script;
}

}  // namespace

TEST_CASE("W-37: a timeout kills in the container, the whole tree, whatever shape it has") {
  if (!has_images()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box box(
        image, [](ContainerExecutorOptions& options) { options.kill_grace = milliseconds(100); });
    for (const std::string shape : trees) {
      CAPTURE(shape);
      const std::string program = endless_program();
      Command command = Command::shell("echo begin; " + with_program(shape, program));
      command.timeout = milliseconds(400);
      const Result result = box.run(command);
      CHECK_MESSAGE(result.outcome == Outcome::timed_out, describe(result));
      CHECK(result.out == "begin\n");
      CHECK(result.message.empty());
      CHECK_FALSE(left_in(box.name(), program));
    }
    check_usable(box);
  }
}

TEST_CASE("what a command leaves in the background is killed when it ends by itself") {
  if (!has_images()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box& box = shared_box(image);
    for (const std::string shape : trees) {
      CAPTURE(shape);
      const std::string program = endless_program();
      const Result result =
          box.run("{ " + with_program(shape, program) + "\n} & " + "sleep 0.1; echo done; exit 3");
      CHECK_MESSAGE(result.exit_code == 3, describe(result));
      CHECK(result.out == "done\n");
      CHECK_FALSE(left_in(box.name(), program));
    }
    check_usable(box);
  }
}

TEST_CASE("what a command leaves under limits of its own is killed, what others run is not") {
  if (!has_images()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box& box = shared_box(image);
    const std::string other = endless_program();
    const codeexec::Execution stays =
        box.executor().start(Command::shell("( setsid " + other + " & ); echo begin; " + other));
    REQUIRE(prints_text(stays, "begin"));
    const std::string program = endless_program();
    // The mark of a command is a limit on its resident set.
    const Result result = box.run("ulimit -m 12345; ( exec env -i setsid sh -c '" + program +
                                  " & " + program + "' & ) ; ulimit -m");
    CHECK_MESSAGE(result.out == "12345\n", describe(result));
    CHECK_FALSE(left_in(box.name(), program));
    CHECK(has(processes(box.name()), other));
    CHECK_FALSE(stays.done());
    stays.cancel();
    CHECK(stays.wait().outcome == Outcome::cancelled);
    CHECK_FALSE(left_in(box.name(), other));
  }
}

TEST_CASE("what a command leaves is killed, also when it is looked at last") {
  if (!has_images()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box box(image);
    const std::string program = endless_program();
    // Processes are looked at in the order of their names, of which 9 is the last.
    const Result result =
        box.run("ulimit -m 12345; while :; do " + program +
                " & case $! in 9*) break;; esac; kill $!; wait $! 2>/dev/null; done; echo done");
    CHECK_MESSAGE(result.out == "done\n", describe(result));
    CHECK_FALSE(left_in(box.name(), program));
  }
}

TEST_CASE("a command that handles SIGTERM has its grace and tells its own status") {
  if (!has_images()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box box(image,
                  [](ContainerExecutorOptions& options) { options.kill_grace = seconds(30); });
    Command command =
        Command::shell("trap 'echo cleaned; exit 42' TERM; echo begin; while :; do sleep 1; done");
    command.timeout = milliseconds(600);
    const Result result = box.run(command);
    CHECK_MESSAGE(result.outcome == Outcome::timed_out, describe(result));
    CHECK(result.exit_code == 42);
    CHECK(result.out == "begin\ncleaned\n");
  }
}

TEST_CASE("a command that signals its whole group ends only itself") {
  if (!has_images()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box box(
        image, [](ContainerExecutorOptions& options) { options.kill_grace = milliseconds(100); });
    const std::string program = endless_program();
    const Result asked = box.run("setsid " + program + " & echo begin; kill 0; " + program);
    CHECK_FALSE(asked.succeeded());
    CHECK_MESSAGE((asked.signal == SIGTERM || asked.exit_code == 128 + SIGTERM), describe(asked));
    CHECK(asked.out == "begin\n");
    CHECK_FALSE(left_in(box.name(), program));

    const Result killed = box.run("setsid " + program + " & echo begin; kill -9 0; " + program);
    CHECK_MESSAGE(killed.outcome == Outcome::signaled, describe(killed));
    CHECK(killed.signal == SIGKILL);
    CHECK(killed.out == "begin\n");
    CHECK_FALSE(left_in(box.name(), program));

    Command stopped =
        Command::shell("setsid " + program + " & echo begin; kill -STOP 0; echo never");
    stopped.timeout = milliseconds(500);
    const Result result = box.run(stopped);
    CHECK_MESSAGE(result.outcome == Outcome::timed_out, describe(result));
    CHECK_FALSE(left_in(box.name(), program));
    check_usable(box);
  }
}

TEST_CASE("a command that kills all it can ends, and the next one runs") {
  if (!has_images()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    for (const char* user : {ordinary_user, "0:0"}) {
      CAPTURE(std::string(user));
      const Box box(image, [&](ContainerExecutorOptions& options) {
        options.container.user = user;
        options.policy.disabled_rules = {"kill-all"};
        // Its root may not enter what is another's.
        if (*user == '0' && ::chown(options.workspace.c_str(), 0, 0) != 0)
          support::fail("chown", "");
      });
      const std::string program = endless_program();
      Command command =
          Command::shell("setsid " + program + " & echo begin; kill -9 -1; " + program);
      command.timeout = seconds(20);
      const Result result = box.run(command);
      CHECK_FALSE(result.succeeded());
      // The agent is among the killed ones, and with it whoever could tell how the command ended.
      CHECK_MESSAGE(result.outcome == Outcome::unknown, describe(result));
      CHECK_MESSAGE(has(result.message, "its container had to be killed"), describe(result));
      check_usable(box);
      CHECK_FALSE(left_in(box.name(), program));
    }
  }
}

TEST_CASE("a command that was killed by itself is told apart from one that ended") {
  if (!has_images()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box& box = shared_box(image);
    const Result result = box.run("echo begin; kill -9 $$");
    CHECK_FALSE(result.succeeded());
    CHECK_MESSAGE((result.signal == SIGKILL || result.exit_code == 128 + SIGKILL),
                  describe(result));
    CHECK(result.out == "begin\n");
    CHECK(result.limits_reached.empty());
    // The shell that waits for the command.
    const std::string program = endless_program();
    const Result parent = box.run("setsid " + program + " & echo begin; kill -9 $PPID; " + program);
    CHECK_FALSE(parent.succeeded());
    CHECK_FALSE(left_in(box.name(), program));
    check_usable(box);
  }
}

TEST_CASE("a fork bomb stays in the container, which is usable afterwards") {
  if (!has_images()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box box(image, [](ContainerExecutorOptions& options) {
      options.container.pids = 48;
      options.kill_grace = milliseconds(200);
    });
    require_limit(box, "PidsLimit", "48");
    box.workspace.file("bomb", "b() { b & b & wait; sleep 30; b; }\nb\n");
    Command command = Command::shell("sh bomb 2>/dev/null");
    command.timeout = seconds(1);
    const Result result = box.run(command);
    CHECK_FALSE(result.succeeded());
    CHECK_MESSAGE(result.outcome != Outcome::not_started, describe(result));
    check_usable(box);
    CHECK_FALSE(left_in(box.name(), "bomb"));
  }
}

TEST_CASE("a memory bomb is told as one, and a plain SIGKILL is not") {
  if (!has_images()) return;
  const std::string eater = "a=xxxxxxxxxxxxxxxx; while :; do a=$a$a; done";
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box box(image, [](ContainerExecutorOptions& options) {
      options.container.memory = std::uint64_t{64} << 20;
    });
    require_limit(box, "Memory", "67108864");
    const Result bomb = box.run(eater);
    CHECK_FALSE(bomb.succeeded());
    REQUIRE_MESSAGE(bomb.limits_reached.size() == 1, describe(bomb));
    CHECK(bomb.limits_reached[0] == "memory");
    // Of a child, too, when the command itself goes on.
    const Result child = box.run("sh -c '" + eater + "'; echo after");
    CHECK(child.out == "after\n");
    CHECK_MESSAGE(child.limits_reached == std::vector<std::string>{"memory"}, describe(child));
    const Result plain = box.run("kill -9 $$");
    CHECK_FALSE(plain.succeeded());
    CHECK_MESSAGE(plain.limits_reached.empty(), describe(plain));
    check_usable(box);
  }
}

TEST_CASE("many small programs that have no memory left do not take their agent along") {
  if (!has_images()) return;
  // Each is smaller than the agent, which all of them need. While it starts a command it has the
  // score that the command inherits.
  const std::string many =
      "i=0; while [ $i -lt 200 ]; do sleep 700 & i=$((i+1)); done; echo after; sleep 0.2";
  for (const bool sudo : {false, true}) {
    CAPTURE(sudo);
    const Box box(images()[0], [sudo](ContainerExecutorOptions& options) {
      options.container.memory = std::uint64_t{12} << 20;
      options.container.sudo = sudo;
    });
    require_limit(box, "Memory", "12582912");
    const std::string agent = std::to_string(support::agent_of(box.executor()));
    const Result told = box.run("until [ \"$(cat /proc/" + agent +
                                "/oom_score_adj)\" != 1000 ]; do :; done; " + many);
    CHECK_MESSAGE(told.limits_reached == std::vector<std::string>{"memory"}, describe(told));
    CHECK_MESSAGE(told.outcome != Outcome::unknown, describe(told));
    CHECK(box.run("cat /proc/self/oom_score_adj").out == "1000\n");
    CHECK(std::to_string(support::agent_of(box.executor())) == agent);
  }
}

// The container goes away -------------------------------------------------------------------------

namespace {

// An engine that restarts a container with --rm may remove it instead, which is a race of its own.
bool was_done(const codeexec::ProcessResult& result) {
  return result.succeeded() || has(result.err, "is marked for removal");
}

// A persistent container of an agent: with other memory it is made anew.
Change kept(const char* agent, std::uint64_t memory) {
  return [agent, memory](ContainerExecutorOptions& options) {
    options.agent_id = std::string(agent) + "-" + std::to_string(::getpid());
    options.container.persistent = true;
    options.container.memory = memory;
  };
}

}  // namespace

TEST_CASE("a container that is killed, removed or restarted under a command is told") {
  if (!has_images()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const std::vector<std::vector<std::string>> ways = {
        {"kill"}, {"rm", "-f"}, {"restart", "-t", "0"}};
    for (const std::vector<std::string>& way : ways) {
      CAPTURE(way[0]);
      const Box box(image);
      const std::string program = endless_program();
      const codeexec::Execution execution =
          box.executor().start(Command::shell("echo begin; " + program));
      REQUIRE(prints_text(execution, "begin"));
      std::vector<std::string> words = way;
      words.push_back(box.name());
      CHECK(was_done(docker(words)));
      const Result result = execution.wait();
      CHECK_FALSE(result.succeeded());
      // While it ends the engine says for a moment that it runs as before: it is killed once more.
      const bool unsure = result.outcome == Outcome::unknown &&
                          (way[0] == "restart" || has(result.message, "had to be killed"));
      CHECK_MESSAGE((result.outcome == Outcome::signaled || unsure), describe(result));
      CHECK_MESSAGE(!result.message.empty(), describe(result));
      CHECK(result.out == "begin\n");
      check_usable(box);
      CHECK_FALSE(left_in(box.name(), program));
      // Between two commands.
      words.back() = box.name();
      CHECK(was_done(docker(words)));
      check_usable(box);
    }
  }
}

TEST_CASE("a removal that goes on already is waited for") {
  if (!has_images()) return;
  const support::TempDir folder;
  const std::string file = folder / "removal";
  const std::string engine = fake_engine(
      folder, "if [ \"$1\" = rm ] && [ ! -e '" + file + "2' ]; then\n  if [ -e '" + file +
                  "1' ]; then : >'" + file + "2'; else : >'" + file +
                  "1'; fi\n  echo 'removal of container x is already in progress' >&2; exit 1\nfi\n"
                  "exec docker \"$@\"\n");
  const Box old(images()[0], kept("removal", 64 << 20));
  check_usable(old);
  const Box box(images()[0], [&](ContainerExecutorOptions& options) {
    kept("removal", 65 << 20)(options);
    options.container.engine.program = engine;
  });
  check_usable(box);
  CHECK(support::exists(file + "2"));
}

TEST_CASE("a container that the engine does not remove gives up its name") {
  if (!has_images()) return;
  const support::TempDir folder;
  const std::string engine = fake_engine(folder,
                                         "if [ \"$1\" = rm ]; then\n  echo 'removal of container x "
                                         "is already in progress' >&2; exit 1\nfi\n"
                                         "exec docker \"$@\"\n");
  const Box old(images()[0], kept("held", 64 << 20));
  check_usable(old);
  const auto id_of = [](const std::string& name) {
    return docker({"inspect", "-f", "{{.Id}}", name}).out.substr(0, 64);
  };
  const std::string id = id_of(old.name());
  const std::string other = old.name() + "-" + id.substr(0, 12);
  {
    const Box box(images()[0], [&](ContainerExecutorOptions& options) {
      kept("held", 65 << 20)(options);
      options.container.engine.program = engine;
      options.container.engine.call_timeout = seconds(3);
    });
    check_usable(box);
    CHECK(id_of(box.name()) != id);
    CHECK(id_of(other) == id);
  }
  CHECK(docker({"rm", "-f", other}).succeeded());
}

TEST_CASE("a container that is paused between two commands is woken") {
  if (!has_images()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box box(image);
    check_usable(box);
    REQUIRE(docker({"pause", box.name()}).succeeded());
    check_usable(box);
    check_usable(box);
  }
}

TEST_CASE("a container that is paused under a command does not hold the timeout") {
  if (!has_images()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box box(
        image, [](ContainerExecutorOptions& options) { options.kill_grace = milliseconds(200); });
    const std::string program = endless_program();
    Command command = Command::shell("echo begin; " + program);
    command.timeout = seconds(3);
    const codeexec::Execution execution = box.executor().start(command);
    REQUIRE(prints_text(execution, "begin"));
    REQUIRE(docker({"pause", box.name()}).succeeded());
    const Result result = execution.wait();
    CHECK_MESSAGE(result.outcome == Outcome::timed_out, describe(result));
    CHECK_FALSE(result.message.empty());
    check_usable(box);
    CHECK_FALSE(left_in(box.name(), program));
  }
}

TEST_CASE("a container, or the client that leads to it, goes at any moment of a command") {
  if (!has_images()) return;
  // What the engine is asked for when so many bytes have come from the agent.
  for (const char* way : {"kill -9 $client", "docker kill $5", "docker rm -f $5"}) {
    CAPTURE(std::string(way));
    for (const int bytes : {1, 270, 350, 430}) {
      CAPTURE(bytes);
      const support::TempDir folder;
      const std::string fifo = "'" + (folder / "fifo") + "'";
      const std::string engine = fake_engine(
          folder, "case $* in *--place) mkfifo " + fifo + " || exec docker \"$@\" ;;\n" +
                      "*) exec docker \"$@\" ;; esac\nexec 4<&0\ndocker \"$@\" <&4 >" + fifo +
                      " & client=$!\n{ dd bs=1 count=" + std::to_string(bytes) + "; " + way +
                      " >&2; } <" + fifo + "\n");
      const Box box(images()[0], [&](ContainerExecutorOptions& options) {
        options.container.engine.program = engine;
      });
      const std::string program = endless_program();
      const std::string output = "begin\nbegin\nbegin\nbegin\nend\n";
      const Result result =
          box.run("echo >> runs; setsid " + program +
                  " & for i in 1 2 3 4; do echo begin; done; echo >ended; echo end; exit 3");
      const std::string told = describe(result);
      CAPTURE(told);
      const bool has_run = support::exists(box.workspace / "runs");
      if (result.outcome == Outcome::exited) {
        CHECK(result.exit_code == 3);
        CHECK(result.out == output);
        CHECK(support::exists(box.workspace / "ended"));
      } else {
        CHECK_FALSE(result.message.empty());
        CHECK(output.compare(0, result.out.size(), result.out) == 0);
        if (result.outcome == Outcome::not_started) CHECK_FALSE(has_run);
      }
      if (has_run) CHECK(support::read_file(box.workspace / "runs") == "\n");
      CHECK_FALSE(left_in(box.name(), program));
      // That moment may be one of the next command, which is told then.
      const Result next = box.run("echo next");
      if (!next.succeeded()) CHECK_FALSE(next.message.empty());
      check_usable(box);
    }
  }
}

// Cancelling --------------------------------------------------------------------------------------

TEST_CASE("a command is cancelled before, during its start and while it runs") {
  if (!has_images()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box& box = shared_box(image);
    const codeexec::CancelToken before;
    before.cancel();
    Command command = Command::shell("echo ran >ran");
    command.cancel = before;
    CHECK(box.run(command).outcome == Outcome::cancelled);
    CHECK_FALSE(support::exists(box.workspace / "ran"));

    const codeexec::CancelToken later;
    const std::string program = endless_program();
    command = Command::shell("echo begin; setsid " + program + " & " + program);
    command.cancel = later;
    command.on_output = [&](Stream, std::string_view) { later.cancel(); };
    const Result result = box.run(command);
    CHECK_MESSAGE(result.outcome == Outcome::cancelled, describe(result));
    CHECK(result.out == "begin\n");
    CHECK_FALSE(left_in(box.name(), program));
    check_usable(box);
  }
}

TEST_CASE("a command and its executor that go at the same time take the container with them") {
  if (!has_images()) return;
  for (int i = 0; i < 5; ++i) {
    std::string name;
    {
      Box box(images()[0]);
      Command command = Command::shell("echo begin; " + endless_program());
      command.background = true;
      const codeexec::Execution execution = box.executor().start(command);
      REQUIRE(prints_text(execution, "begin"));
      name = box.name();
      box.drop();
    }
    CHECK(comes_true([&] { return !docker({"container", "inspect", name}).succeeded(); }));
  }
}

TEST_CASE("a start that hangs is cancelled at once") {
  if (!has_images()) return;
  const support::TempDir folder;
  const std::string engine =
      fake_engine(folder, "[ \"$1\" = exec ] || exec docker \"$@\"\n: >'" + folder.path() +
                              "/started'\nexec sleep 1000\n");
  const Box box(images()[0], [&](ContainerExecutorOptions& options) {
    options.container.engine.program = engine;
    options.container.start_timeout = std::chrono::hours(1);
  });
  const codeexec::CancelToken source;
  std::thread canceller([&] {
    comes_true([&] { return support::exists(folder / "started"); }, seconds(60));
    source.cancel();
  });
  Command command = Command::shell("echo ran");
  command.cancel = source;
  const Result result = box.run(command);
  canceller.join();
  CHECK_MESSAGE(result.outcome == Outcome::cancelled, describe(result));
  CHECK(result.out.empty());
}

TEST_CASE("making a container that hangs is cancelled at once") {
  if (!has_images()) return;
  const support::TempDir folder;
  const std::string engine =
      fake_engine(folder, "case $1 in image) echo '[{}]';; run) : >'" + folder.path() +
                              "/started'; exec sleep 1000;; esac\n");
  const Box box(images()[0], [&](ContainerExecutorOptions& options) {
    options.container.engine.program = engine;
    options.container.engine.run_timeout = std::chrono::hours(1);
  });
  const codeexec::CancelToken source;
  std::thread canceller([&] {
    comes_true([&] { return support::exists(folder / "started"); }, seconds(60));
    source.cancel();
  });
  Command command = Command::shell("echo ran");
  command.cancel = source;
  const Result result = box.run(command);
  canceller.join();
  CHECK_MESSAGE(result.outcome == Outcome::cancelled, describe(result));
}

namespace {

// Runs a command whose start hangs, and cancels it when that shows by a file.
Result cancelled_when(const Box& box, const std::string& shows) {
  const codeexec::CancelToken source;
  std::thread canceller([&] {
    comes_true([&] { return support::exists(shows); }, seconds(60));
    source.cancel();
  });
  Command command = Command::shell("echo ran >ran");
  command.cancel = source;
  Result result = box.run(command);
  canceller.join();
  CHECK_MESSAGE(result.outcome == Outcome::cancelled, describe(result));
  CHECK_FALSE(support::exists(box.workspace / "ran"));
  return result;
}

}  // namespace

TEST_CASE("a cancel asks nothing of an engine that hangs, and a container that comes later goes") {
  if (!has_images()) return;
  for (const bool persistent : {false, true}) {
    CAPTURE(persistent);
    const support::TempDir folder;
    const std::string engine = fake_engine(
        folder,
        "cd '" + folder.path() +
            "'\nif [ $1 = version ]; then exec docker \"$@\"\nelif [ -e hangs ]; then : >asked\n"
            "elif [ $1 = run ] && [ ! -e words ]; then shift; [ $1 = -i ] || shift\n"
            "printf '%s\\0' -i \"$@\" >words; : >hangs; exec sleep 1000\nfi\n"
            "exec docker \"$@\"\n");
    std::string name;
    {
      Box box(images()[0], [&](ContainerExecutorOptions& options) {
        options.agent_id = "late-" + std::to_string(::getpid());
        options.container.persistent = persistent;
        options.container.engine.program = engine;
      });
      name = box.name();
      cancelled_when(box, folder / "hangs");
      CHECK_FALSE(support::exists(folder / "asked"));
      // The engine has heard all of it, and makes the container when nobody waits for it.
      REQUIRE(::unlink((folder / "hangs").c_str()) == 0);
      const std::string create = "xargs -0 docker create >/dev/null <'" + folder / "words'";
      REQUIRE(std::system(create.c_str()) == 0);
      REQUIRE(docker({"container", "inspect", name}).succeeded());
      check_usable(box);
      box.drop();
    }
    if (persistent) docker({"rm", "-f", name});
    CHECK_FALSE(docker({"container", "inspect", name}).succeeded());
  }
}

TEST_CASE("a command whose agent does not answer is cancelled at once") {
  const support::FakeEngine well;
  const support::TempDir folder;
  const std::string engine = fake_engine(
      folder, "cd '" + folder.path() +
                  "'\n[ \"$1 $2\" != 'container inspect' ] || [ ! -e sick ] || { : >asked; "
                  "exec sleep 1000; }\nexec " +
                  well.program() + " \"$@\"\n");
  Box box(support::busybox_image, [&](ContainerExecutorOptions& options) {
    options.container.engine.program = engine;
    options.container.engine.call_timeout = std::chrono::hours(1);
    options.container.agent = CODEEXEC_MCP;
    ::chmod(options.workspace.c_str(), 0777);  // whose owner the agent cannot be
  });
  const pid_t agent = support::agent_of(box.executor());
  folder.file("sick", "");
  REQUIRE(::kill(agent, SIGSTOP) == 0);
  const Result result = cancelled_when(box, folder / "asked");
  CHECK_MESSAGE(has(result.message, "kills it if it does"), describe(result));
  REQUIRE(::kill(agent, SIGCONT) == 0);
  REQUIRE(::unlink((folder / "sick").c_str()) == 0);
  check_usable(box);
}

// The engine is not well --------------------------------------------------------------------------

namespace {

// Nothing has run, and the result says what is wrong.
void check_told(const Result& result, const std::string& what) {
  CHECK_MESSAGE(result.outcome == Outcome::not_started, describe(result));
  CHECK(result.out.empty());
  CHECK_MESSAGE(has(result.message, what), describe(result));
}

}  // namespace

TEST_CASE("an engine that is not there is told and nothing runs on the host") {
  const support::TempDir folder;
  const std::string mark = folder / "ran";
  const std::string script = "echo ran; echo ran >'" + mark + "'";
  const auto attempt = [&](const Change& change) {
    const Box box("codeexec-test/busybox:latest", [&](ContainerExecutorOptions& options) {
      options.container.engine.call_timeout = milliseconds(500);
      options.container.engine.run_timeout = milliseconds(500);
      options.container.engine.pull_timeout = milliseconds(500);
      options.container.start_timeout = milliseconds(500);
      change(options);
    });
    return box.run(script);
  };
  check_told(attempt([&](ContainerExecutorOptions& options) {
               options.container.engine.program = folder / "no-docker";
             }),
             "no-docker");
  check_told(attempt([&](ContainerExecutorOptions& options) {
               options.container.engine.program = fake_engine(folder, "exec sleep 1000\n");
             }),
             "engine");
  // One that takes everything for done and does nothing.
  check_told(attempt([&](ContainerExecutorOptions& options) {
               options.container.engine.program = fake_engine(folder, "exit 0\n");
             }),
             "engine");
  check_told(attempt([&](ContainerExecutorOptions& options) {
               options.container.engine.program =
                   fake_engine(folder, "echo 'the daemon is ill' >&2; exit 1\n");
             }),
             "the daemon is ill");
  // One that begins well.
  check_told(attempt([&](ContainerExecutorOptions& options) {
               options.container.engine.program = fake_engine(
                   folder, "[ \"$1\" = run ] && { echo ready; exec cat; }\nexec sleep 1000\n");
             }),
             "");
  CHECK_FALSE(support::exists(mark));
}

#if defined(__linux__)
namespace {

// What this thread starts meanwhile shares its processor, and is not interrupted by it: a short
// program has ended when its start returns.
class LastInTurn {
 public:
  LastInTurn() {
    ::sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one);
    ::sched_setaffinity(0, sizeof one, &one);
    set_policy(SCHED_BATCH);
  }
  ~LastInTurn() {
    set_policy(SCHED_OTHER);
    ::sched_setaffinity(0, sizeof before_, &before_);
  }
  LastInTurn(const LastInTurn&) = delete;
  LastInTurn& operator=(const LastInTurn&) = delete;

 private:
  static void set_policy(int policy) {
    const sched_param none = {};
    ::sched_setscheduler(0, policy, &none);
  }
  cpu_set_t before_ = {};
};

}  // namespace

TEST_CASE("an exec whose client has ended before it is written to is told, without a signal") {
  const support::FakeEngine well;
  const support::TempDir folder;
  const std::string engine =
      fake_engine(folder, "[ \"$1\" = exec ] || exec " + well.program() +
                              " \"$@\"\necho 'the daemon is ill' >&2; exit 1\n");
  const Box box(support::busybox_image, [&](ContainerExecutorOptions& options) {
    options.container.engine.program = engine;
  });
  const LastInTurn turn;
  for (int i = 0; i < 10; ++i) check_told(box.run("echo ran"), "the daemon is ill");
}
#endif

// The engines tell that on standard output.
TEST_CASE("an agent that a container has lost is told, without advice for other places") {
  const support::FakeEngine well;
  const support::TempDir folder;
  // The first that it is asked is whether the workspace is there.
  const std::string engine = fake_engine(
      folder, "[ \"$1\" = exec ] && [ -e '" + folder.path() +
                  "/asked' ] && echo 'OCI runtime exec failed: no such file or directory' && "
                  "exit 127\n[ \"$1\" != exec ] || : > '" +
                  folder.path() + "/asked'\nexec " + well.program() + " \"$@\"\n");
  const Box box(support::busybox_image, [&](ContainerExecutorOptions& options) {
    options.container.engine.program = engine;
    options.container.agent = CODEEXEC_MCP;
  });
  const Result r = box.run("echo ran");
  check_told(r, "OCI runtime exec failed: no such file");
  CHECK(!has(r.message, "place_agent"));
}

TEST_CASE("an engine whose socket nobody answers is told in time") {
  if (!has_images()) return;
  const support::TempDir folder;
  const auto attempt = [&](const std::string& address) {
    const Box box(images()[0], [&](ContainerExecutorOptions& options) {
      options.container.engine.host = address;
      options.container.engine.call_timeout = seconds(1);
      options.container.engine.run_timeout = seconds(1);
      options.container.engine.pull_timeout = seconds(1);
    });
    return box.run("echo ran");
  };
  check_told(attempt("unix://" + folder / "none.sock"), "none.sock");

  const std::string path = folder / "silent.sock";
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::listen(listener, 16) == 0);
  check_told(attempt("unix://" + path), "docker");
  ::close(listener);
}

TEST_CASE("an exec that does not begin is told in time") {
  if (!has_images()) return;
  const support::TempDir folder;
  const std::string engine =
      fake_engine(folder, "[ \"$1 $2\" = 'exec -i' ] || exec docker \"$@\"\nexec sleep 1000\n");
  const Box box(images()[0], [&](ContainerExecutorOptions& options) {
    options.container.engine.program = engine;
    options.container.start_timeout = milliseconds(500);
  });
  check_told(box.run("echo ran"), "answer");
  CHECK_FALSE(support::exists(box.workspace / "ran"));
}
