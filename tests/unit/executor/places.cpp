// A /tmp, shared memory, terminals and a network that all commands of an executor have in common.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <optional>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Command;
using codeexec::Execution;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Network;
using codeexec::Result;
using codeexec::SandboxMode;
using support::begins;
using support::has;
using support::output_of;

namespace {

LocalOptions confined_in(const support::TempDir& place) {
  LocalOptions options = support::in(place);
  options.sandbox.mode = SandboxMode::best_effort;
  return options;
}

LocalExecutor in_common(const LocalOptions& options) {
  auto executor = LocalExecutor::create(options);
  REQUIRE_MESSAGE(executor, executor.error().message);
  return *executor;
}

bool has_own_tmp(const LocalExecutor& executor) {
  for (const std::string& place : executor.sandbox_report().places)
    if (place == "tmp: own") return true;
  MESSAGE("SKIPPED: no sandbox here that has a /tmp of its own");
  return false;
}

}  // namespace

TEST_CASE("what a command leaves in /tmp is there for the next one, for files and as a directory") {
  const support::TempDir place;
  std::optional<LocalExecutor> here = in_common(confined_in(place));
  if (!has_own_tmp(*here)) return;
  output_of(*here, "mkdir /tmp/d; echo a > /tmp/d/x");
  CHECK(output_of(*here, "cat /tmp/d/x") == "a\n");
  const codeexec::Files files = here->files();
  const auto read = files.read("/tmp/d/x");
  REQUIRE_MESSAGE(read, read.error().message);
  CHECK(read->bytes == "a\n");
  CHECK(read->path == "/tmp/d/x");
  const auto written = files.write("/tmp/d/y", "b");
  REQUIRE_MESSAGE(written, written.error().message);
  CHECK(*written == "/tmp/d/y");
  CHECK(output_of(*here, "cat /tmp/d/y") == "b");
  CHECK(!support::exists("/tmp/d/y"));
  const auto list = files.list("/tmp/d/");
  REQUIRE_MESSAGE(list, list.error().message);
  CHECK(list->path == "/tmp/d");
  REQUIRE(list->entries.size() == 2);
  CHECK(list->entries[0].path == "x");
  output_of(*here, "echo 'echo a; sudo id' > /tmp/d/s.sh");
  CHECK(here->run("sh /tmp/d/s.sh").rule == "sudo");
  const auto missing = files.read("/tmp/d/none");
  REQUIRE_FALSE(missing);
  CHECK(has(missing.error().message, "'/tmp/d/none'"));
  // By a link that a command has made nothing of the host's is reached.
  const support::TempDir outside;
  outside.file("secret", "secret");
  output_of(*here, "ln -s " + outside.path() + " /tmp/d/link");
  const auto linked = files.read("/tmp/d/link/secret");
  REQUIRE_FALSE(linked);
  CHECK(linked.error().code == codeexec::ErrorCode::permission_denied);

  Command in_tmp = Command::shell("pwd; cat x");
  in_tmp.work_dir = "/tmp/d";
  CHECK(output_of(*here, in_tmp) == "/tmp/d\na\n");
  Command step = Command::shell("cd /tmp/d");
  step.session = codeexec::Session();
  CHECK(here->run(step).succeeded());
  step.script = "pwd; cat x";
  CHECK(output_of(*here, step) == "/tmp/d\na\n");

  const LocalExecutor other = in_common(confined_in(place));
  CHECK(output_of(other, "cat /tmp/d/x 2> /dev/null || echo none") == "none\n");
  CHECK_FALSE(other.files().read("/tmp/d/x"));
  LocalOptions without = confined_in(place);
  without.private_tmp = false;
  CHECK(in_common(without).sandbox_report().places.empty());
}

TEST_CASE("a /tmp of an executor's own goes with its last copy, and what is in it") {
  const support::TempDir place;
  const support::TempDir temporary;
  support::EnvironmentGuard variables;
  variables.set("TMPDIR", temporary.path().c_str());
  {
    std::optional<LocalExecutor> here = in_common(confined_in(place));
    if (!has_own_tmp(*here)) return;
    output_of(*here, "mkdir -p /tmp/a/b; echo > /tmp/a/b/c; chmod 0 /tmp/a");
    const LocalExecutor copy = *here;
    here.reset();
    CHECK(output_of(copy, "ls /tmp | grep -x a") == "a\n");
    CHECK(::system(("test -n \"$(ls -A " + temporary.path() + ")\"").c_str()) == 0);
  }
  CHECK(::system(("test -z \"$(ls -A " + temporary.path() + ")\"").c_str()) == 0);
}

TEST_CASE("a server of one command is reached by the next, and by nobody else") {
  const support::TempDir place;
  LocalOptions options = confined_in(place);
  options.sandbox.network = Network::loopback;
  const LocalExecutor here = in_common(options);
  if (here.sandbox_report().network != Network::loopback) {
    MESSAGE("SKIPPED: no network namespaces here");
    return;
  }
  if (!here.run("python3 -c 'import socket'").succeeded()) {
    MESSAGE("SKIPPED: no python3 here");
    return;
  }
  Command server = Command::shell(
      "exec python3 -u -c \"import socket; s = socket.create_server(('127.0.0.1', 4000)); "
      "print('ready'); [c.sendall(b'hello') or c.close() for c, _ in iter(s.accept, None)]\"");
  server.background = true;
  const std::string client =
      "python3 -c \"import socket; print(socket.create_connection(('127.0.0.1', "
      "4000)).recv(9).decode())\" 2> /dev/null || echo none";
  Execution running = here.start(server);
  CHECK(support::comes_true(
      [&] { return has(running.read(codeexec::Stream::out, 0).text, "ready"); }));
  CHECK(output_of(here, client) == "hello\n");
  CHECK(output_of(in_common(options), client) == "none\n");
  CHECK(codeexec::run(client).out == "none\n");
  // What it cannot do to it is as before.
  CHECK(output_of(here, "kill -9 " + std::to_string(running.pid()) + " 2> /dev/null || echo no") ==
        "no\n");
  running.cancel();
  running.wait();
  CHECK(output_of(here, client) == "none\n");
}

TEST_CASE("hidden paths are neither for commands nor for the tools that read and write files") {
  const support::TempDir place("/var/tmp");
  place.file(".env", "secret");
  place.file("a/keys/key", "secret");
  place.file("a/other", "other");
  LocalOptions options = confined_in(place);
  options.sandbox.hidden_paths = {".env", place / "a/keys", "later", "link/later"};
  options.roots = {{place.path(), codeexec::Permission::write}};
  const LocalExecutor here = in_common(options);
  const auto& enforced = here.sandbox_report().enforced;
  if (support::contains(enforced, "filesystem"))
    CHECK(has(here.describe_place(), " What is at " + place / ".env" + ", "));
  const codeexec::Files files = here.files();
  for (const char* name : {".env", "a/keys/key", "a/../.env"}) {
    CAPTURE(name);
    CHECK_FALSE(files.read(place / name));
    CHECK_FALSE(files.write(place / name, "x"));
  }
  CHECK_FALSE(files.list(place / "a/keys"));
  place.file("later", "secret");
  CHECK_FALSE(files.read(place / "later"));
  // By a link that a command has put on the way.
  place.file("real/later", "secret");
  REQUIRE(::symlink("real", (place / "link").c_str()) == 0);
  CHECK_FALSE(here.files().read(place / "real/later"));
  CHECK(files.read(place / "a/other"));
  CHECK(support::read_file(place / ".env") == "secret");
  if (!support::contains(enforced, "hidden_paths")) {
    const Result told = here.run("true");
    REQUIRE(!told.notes.empty());
    CHECK(has(told.notes[0], "hidden paths"));
    MESSAGE("SKIPPED: no sandbox here that hides paths");
    return;
  }
  CHECK(output_of(here, "cat .env a/keys/key later 2> /dev/null; cat a/other") == "other");
  // A file that takes its place while the executor lives, as editors write.
  place.file("new", "secret");
  REQUIRE(::rename((place / "new").c_str(), (place / ".env").c_str()) == 0);
  CHECK(output_of(here, "cat .env 2> /dev/null; cat a/other") == "other");
}

TEST_CASE("hidden paths need a sandbox, and lie in what is granted") {
  const support::TempDir place("/var/tmp");
  LocalOptions options = confined_in(place);
  const auto refusal = [&](const std::string& path) {
    options.sandbox.hidden_paths = {path};
    const auto executor = LocalExecutor::create(options);
    return executor ? "" : executor.error().message;
  };
  CHECK(begins(refusal(""), "hidden_paths: "));
#if defined(__linux__) && (!defined(CODEEXEC_HAS_SANDBOX) || CODEEXEC_HAS_SANDBOX)
  CHECK(begins(refusal("."), "hidden_paths: "));
#endif
  options.sandbox.mode = SandboxMode::off;
  CHECK(begins(refusal(".env"), "hidden_paths: it needs a sandbox"));
}
