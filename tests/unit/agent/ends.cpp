// What is left when the agent, the transport or the program on this side ends, and places that are
// not what they should be.

#include "../../helpers/place_support.hpp"

#include "../../helpers/fake_engine.hpp"

#include <sys/socket.h>

#include <thread>

using codeexec::Command;
using codeexec::ErrorCode;
using codeexec::Execution;
using codeexec::Outcome;
using codeexec::PlaceExecutor;
using codeexec::PlaceOptions;
using codeexec::Result;
using namespace support;

namespace {

struct Fixture {
  TempDir workspace = {};
  PlaceOptions options = place_options(workspace.path());

  pid_t daemon() const {
    REQUIRE(appears(workspace / "daemon"));
    return pid_in(read_file(workspace / "daemon"));
  }
};

}  // namespace

TEST_CASE("place: an agent that is killed takes all with it, and the next command has a new one") {
  if (!has_supervisor()) return;
  Fixture f;
  const PlaceExecutor there = make_place(f.options);
  const Execution started = there.start(Command::shell(staying()));
  const pid_t command = started.pid();
  const pid_t daemon = f.daemon();
  REQUIRE(::kill(agent_of(there), SIGKILL) == 0);
  const Result r = started.wait();
  CHECK(r.outcome == Outcome::unknown);
  CHECK(has(r.message, "the connection to box was lost"));
  CHECK(r.out == std::to_string(command) + "\n");
  CHECK(dies(command));
  CHECK(dies(daemon));
  const Result next = there.run("echo again");
  CHECK(next.out == "again\n");
  REQUIRE(next.notes.size() == 1);
  CHECK(has(next.notes[0], "made anew"));
  CHECK(there.run("echo once more").notes.empty());
}

TEST_CASE("place: a command that kills its agent is told so") {
  if (!has_supervisor()) return;
  Fixture f;
  const PlaceExecutor there = make_place(f.options);
  const std::string agent = std::to_string(agent_of(there));
  CHECK(there.run("kill -9 " + agent + "; sleep 600").outcome == Outcome::unknown);
}

TEST_CASE("place: when the transport is killed, or this side ends, nothing runs on there") {
  Fixture f;
  // The transport is a program of its own between the two.
  f.options.transport = {"sh", "-c",
                         "sh -c 'echo $$ > \"$0\"; exec cat' \"$1\" | \"$0\" --place | cat",
                         CODEEXEC_MCP, f.workspace / "transport"};
  pid_t command = -1;
  pid_t daemon = -1;
  pid_t agent = -1;
  {
    const PlaceExecutor there = make_place(f.options);
    const Execution started = there.start(Command::shell(staying()));
    command = started.pid();
    daemon = f.daemon();
    SUBCASE("the transport") {
      agent = agent_of(there);
      REQUIRE(::kill(pid_in(read_file(f.workspace / "transport")), SIGKILL) == 0);
      const Result r = started.wait();
      CHECK(r.outcome == Outcome::unknown);
    }
    SUBCASE("this side") { agent = agent_of(there); }
  }
  CHECK(dies(command));
  CHECK(dies(daemon));
  CHECK(dies(agent));
}

TEST_CASE("place: the server that is killed leaves nothing there") {
  Fixture f;
  const std::string script = staying();
  const pid_t server = ::fork();
  REQUIRE(server >= 0);
  if (server == 0) {
    ::execl(CODEEXEC_MCP, CODEEXEC_MCP, "--execution-mode", "command", "--place-command",
            CODEEXEC_MCP " --place", "--workspace", f.workspace.path().c_str(), "--run",
            script.c_str(), nullptr);
    ::_exit(97);
  }
  const pid_t daemon = f.daemon();
  REQUIRE(::kill(server, SIGKILL) == 0);
  REQUIRE(::waitpid(server, nullptr, 0) == server);
  CHECK(dies(daemon));
}

TEST_CASE("place: a fork of this program has no part in its connection") {
  if (thread_sanitizer) {
    MESSAGE("SKIPPED: ThreadSanitizer ends a fork with threads");
    return;
  }
  Fixture f;
  const FakeEngine engine;
  codeexec::ContainerExecutorOptions options;
  options.workspace = f.workspace.path();
  options.container.image = "any";
  options.container.engine.program = engine.program();
  options.container.agent = CODEEXEC_MCP;
  const auto container = codeexec::ContainerExecutor::create(options);
  REQUIRE_MESSAGE(container, container.error().message);
  const PlaceExecutor place = make_place(f.options);
  for (const codeexec::Executor* const there :
       {static_cast<const codeexec::Executor*>(&place),
        static_cast<const codeexec::Executor*>(&*container)}) {
    CAPTURE(there == &place);
    const Execution started = there->start(Command::shell("until [ -e go ]; do sleep 0.01; done"));
    REQUIRE(started.pid() > 0);
    CHECK(in_other_host([&]() -> std::string {
            const Result r = there->run("echo ran > ran");
            if (r.outcome != Outcome::not_started || !has(r.message, "fork")) return r.summary();
            const Result own = make_place(f.options).run("echo own");
            return own.out == "own\n" ? "" : own.summary();
          }) == "");
    CHECK(!exists(f.workspace / "ran"));
    f.workspace.file("go", "");
    CHECK(started.wait().succeeded());
    CHECK(there->run("rm go; echo again").out == "again\n");
  }
}

TEST_CASE("place: an agent that says nothing any more is given up, and gives up") {
  if (!has_supervisor()) return;
  Fixture f;
  f.options.keep_alive = std::chrono::seconds(1);
  const PlaceExecutor there = make_place(f.options);
  const Execution started = there.start(Command::shell(staying()));
  const pid_t command = started.pid();
  const pid_t daemon = f.daemon();
  const pid_t agent = agent_of(there);
  REQUIRE(::kill(agent, SIGSTOP) == 0);
  const Result r = started.wait();
  CHECK(r.outcome == Outcome::unknown);
  CHECK(has(r.message, "nothing was heard"));
  ::kill(agent, SIGCONT);
  CHECK(dies(agent));
  CHECK(dies(command));
  CHECK(dies(daemon));
}

TEST_CASE("place: an idle connection stays") {
  Fixture f;
  f.options.keep_alive = std::chrono::seconds(1);
  const PlaceExecutor there = make_place(f.options);
  const pid_t agent = agent_of(there);
  CHECK(there.run("sleep 2.5").exit_code == 0);
  CHECK(agent_of(there) == agent);
}

TEST_CASE("place: what cannot be reached is told in one line") {
  Fixture f;
  const auto message_of = [&](Strings transport) {
    f.options.transport = std::move(transport);
    const codeexec::Error error = place_error(f.options);
    CHECK(!has(error.message, "\n"));
    return error.message;
  };
  CHECK(has(message_of({"no-such-program-xyz"}), "cannot reach box"));
  CHECK(has(message_of({"false"}), "closed at the other end"));
  CHECK(has(message_of({"sh", "-c", "echo welcome; echo 'Host key verification failed.' >&2"}),
            "connect once by hand"));
  CHECK(has(message_of({"sh", "-c", "exec codeexec-mcp-xyz --place"}), "install codeexec-mcp"));
  CHECK(has(message_of({"yes"}), "no greeting of an agent"));
  CHECK(has(message_of({"echo", "codeexec-place/99"}), "protocol"));
  CHECK(has(message_of({"echo", "OCI runtime exec failed"}), "it said: OCI runtime exec failed"));
  f.options.connect_timeout = std::chrono::milliseconds(100);
  CHECK(has(message_of({"sleep", "600"}), "did not answer within 0.1 s"));
  CHECK(has(message_of({"sh", "-c", "echo; echo who are you; exec sleep 600"}), "who are you"));
  f.options.transport = {};
  CHECK(place_error(f.options).code == ErrorCode::invalid_argument);
}

TEST_CASE("place: those who wait for a connection that cannot be had share its failure") {
  Fixture f;
  f.options.transport = {"sh", "-c",
                         "echo >> \"$1\"; [ -e \"$1.off\" ] || exec \"$0\" --place; sleep 1",
                         CODEEXEC_MCP, f.workspace / "tries"};
  const PlaceExecutor there = make_place(f.options);
  write_file(f.workspace / "tries.off", "");
  there.run("kill -9 " + std::to_string(agent_of(there)));
  std::vector<std::thread> all;
  for (int i = 0; i < 8; ++i)
    all.emplace_back([&] { CHECK(there.run("true").outcome == Outcome::not_started); });
  for (std::thread& each : all) each.join();
  // The first connection, and less than one for each of them.
  CHECK(read_file(f.workspace / "tries").size() < 1 + all.size());
  support::remove_all(f.workspace / "tries.off");
  CHECK(there.run("echo on").out == "on\n");
}

TEST_CASE("place: what a login prints before is skipped") {
  Fixture f;
  f.options.transport = {"sh", "-c", "seq 5000; printf 'no end of line'; exec \"$0\" --place",
                         CODEEXEC_MCP};
  CHECK(make_place(f.options).run("echo hi").out == "hi\n");
}

TEST_CASE("place: a workspace that is another one there is refused") {
  Fixture f;
  // In a mount namespace of its own, the workspace is an empty folder.
  f.options.transport = {"unshare",
                         "-m",
                         "sh",
                         "-c",
                         "mount -t tmpfs none \"$1\" && exec \"$0\" --place",
                         CODEEXEC_MCP,
                         f.workspace.path()};
  codeexec::ProcessOptions trial;
  trial.argv = {"unshare", "-m", "mount", "-t", "tmpfs", "none", f.workspace.path()};
  if (!codeexec::run_process(trial).succeeded()) {
    MESSAGE("SKIPPED: no mount namespace here");
    return;
  }
  const codeexec::Error error = place_error(f.options);
  CHECK(error.code == ErrorCode::unsupported);
  CHECK(has(error.message, "is not the same folder in box"));
  CHECK(names_in(f.workspace.path()).empty());
}

TEST_CASE("place: a strict sandbox that cannot be had there is an error") {
  Fixture f;
  f.options.sandbox.mode = codeexec::SandboxMode::strict;
  f.options.sandbox.writable = {"/"};
  CHECK(has(place_error(f.options).message, "sandbox"));
}

TEST_CASE("place: nothing is left of a connection") {
  Fixture f;
  make_place(f.options).run("true");
  const LeakCheck leaks;
  for (int i = 0; i < 3; ++i) {
    const PlaceExecutor there = make_place(f.options);
    CHECK(there.run("echo $$").exit_code == 0);
    const Execution started = there.start(Command::shell("cat"));
    started.cancel();
    started.wait();
  }
  CHECK(leaks.clean());
  CHECK(names_in(f.workspace.path()).empty());
}
