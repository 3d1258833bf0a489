// Containers as the systems that this library replaces test them (parity 29 to 40), and sessions in
// containers. CODEEXEC_TEST_DOCKER=1 says that DOCKER_HOST is an engine for tests, which has the
// images that tests/helpers/engine.sh makes.
#include "../../helpers/engine_support.hpp"
#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"

#include <string>
#include <vector>

namespace {

using codeexec::Command;
using codeexec::ContainerExecutor;
using codeexec::ContainerExecutorOptions;
using codeexec::ContainerNetwork;
using codeexec::Outcome;
using codeexec::Permission;
using codeexec::Result;
using support::has;
using support::has_engine;
using support::TempDir;

ContainerExecutorOptions options_in(const TempDir& workspace) {
  if (::chown(workspace.path().c_str(), 1000, 1000) != 0) support::fail("chown", workspace.path());
  ContainerExecutorOptions options;
  options.workspace = workspace.path();
  options.container.image = "codeexec/runtime:latest";
  options.container.agent = support::engine_agent;
  return options;
}

ContainerExecutorOptions with_sudo(ContainerExecutorOptions options) {
  options.container.image = "codeexec/runtime-sudo:latest";
  options.container.sudo = true;
  options.policy.enable_sudo = true;
  return options;
}

ContainerExecutor executor_of(const ContainerExecutorOptions& options) {
  auto made = ContainerExecutor::create(options);
  REQUIRE_MESSAGE(made, made.error().message);
  return *std::move(made);
}

std::string told(const Result& result) {
  return result.summary() + " | " + result.message + " | " + result.out + " | " + result.err;
}

std::string inspect(const ContainerExecutor& executor, const std::string& format) {
  return support::docker({"inspect", "-f", format, executor.container_name()}).out;
}

Result run_in(const ContainerExecutor& executor, const codeexec::Session& session,
              const std::string& script) {
  Command command = Command::shell(script);
  command.session = session;
  return executor.run(command);
}

}  // namespace

TEST_CASE("parity 29 docker_manager_initialization: options are kept, and no engine is asked") {
  TempDir workspace;
  ContainerExecutorOptions options = options_in(workspace);
  options.container.image = "some/image:1";
  options.container.memory = std::uint64_t{512} << 20;
  options.container.cpus = 1;
  options.container.engine.program = workspace / "no-such-program";
  const ContainerExecutor executor = executor_of(options);
  const codeexec::ContainerOptions& complete = executor.container_options();
  CHECK(complete.image == "some/image:1");
  CHECK(complete.network == ContainerNetwork::none);
  CHECK(complete.memory == std::uint64_t{512} << 20);
  CHECK(complete.cpus == doctest::Approx(1));
}

TEST_CASE("parity 30 container_creation, 31 command_execution, 35 resource_limits") {
  if (!has_engine()) return;
  TempDir workspace;
  ContainerExecutorOptions options = options_in(workspace);
  options.container.memory = std::uint64_t{512} << 20;
  options.container.cpus = 1;
  const ContainerExecutor executor = executor_of(options);
  REQUIRE_FALSE(executor.info()->exists);
  const Result result = executor.run("echo 'Hello from Docker'");
  CHECK_MESSAGE(result.succeeded(), told(result));
  CHECK(result.out == "Hello from Docker\n");
  CHECK(result.container == executor.container_name());
  const auto info = executor.info();
  REQUIRE_MESSAGE(info, info.error().message);
  CHECK_FALSE(info->id.empty());
  CHECK(info->running);
  CHECK(inspect(executor,
                "{{.HostConfig.Memory}} {{.HostConfig.MemorySwap}} "
                "{{.HostConfig.NanoCpus}}") == "536870912 536870912 1000000000\n");
}

TEST_CASE("parity 32 persistence: what one command installs, the next one has") {
  if (!has_engine()) return;
  TempDir workspace;
  ContainerExecutorOptions options = options_in(workspace);
  options.container.network = ContainerNetwork::host;
  options.container.environment = {{"PIP_USER", "1"}, {"PIP_BREAK_SYSTEM_PACKAGES", "1"}};
  options.timeout = std::chrono::minutes(2);
  const ContainerExecutor executor = executor_of(options);
  CHECK_FALSE(executor.run("python3 -c 'import click'").succeeded());
  const Result installed = executor.run("python3 -m pip install -q click");
  REQUIRE_MESSAGE(installed.succeeded(), told(installed));
  const Result used = executor.run("python3 -c 'import click; print(click.__name__)'");
  CHECK_MESSAGE(used.out == "click\n", told(used));
}

TEST_CASE("parity 33 workspace_mounting, 34 isolation, 38 context_path_mounting") {
  if (!has_engine()) return;
  TempDir first;
  TempDir second;
  TempDir context;
  first.file("from-host", "host\n");
  context.file("notes", "context\n");
  REQUIRE(::chmod(context.path().c_str(), 0755) == 0);
  ContainerExecutorOptions options = options_in(first);
  options.roots = {{first.path(), Permission::write}, {context.path(), Permission::read}};
  const ContainerExecutor one = executor_of(options);
  const ContainerExecutor two = executor_of(options_in(second));
  const Result both_ways = one.run("cat from-host; echo container >from-container");
  CHECK_MESSAGE(both_ways.out == "host\n", told(both_ways));
  CHECK(support::read_file(first / "from-container") == "container\n");
  CHECK_FALSE(two.run(Command::program({"cat", first / "from-host"})).succeeded());
  CHECK(one.run(Command::program({"cat", context / "notes"})).out == "context\n");
  // By the place itself, past the rule that reads scripts.
  const Result refused = one.run("echo x >" + context.path() + "/new");
  CHECK(refused.outcome == Outcome::refused);
  const Result failed =
      one.run(Command::program({"python3", "-c", "open('" + (context / "new") + "', 'w')"}));
  CHECK(has(failed.err, "Read-only file system"));
  CHECK_FALSE(support::exists(context / "new"));
}

TEST_CASE("parity 36 network_isolation, 37 command_timeout") {
  if (!has_engine()) return;
  TempDir workspace;
  const ContainerExecutor executor = executor_of(options_in(workspace));
  const Result connect =
      executor.run("python3 -c \"import socket; socket.create_connection(('1.1.1.1', 53), 5)\"");
  CHECK(has(connect.err, "Network is unreachable"));
  Command command = Command::shell("sleep 7654321");
  command.timeout = std::chrono::seconds(1);
  const Result result = executor.run(command);
  CHECK(result.outcome == Outcome::timed_out);
  CHECK(result.exit_code == -1);
  CHECK(result.wall_time >= std::chrono::seconds(1));
  CHECK_FALSE(has(executor.run("cat /proc/[0-9]*/cmdline | tr '\\0' ' '").out, "7654321"));
}

TEST_CASE("parity 39 sudo_enabled_image_selection") {
  CHECK(codeexec::complete({})->image == "codeexec/runtime:latest");
  codeexec::ContainerOptions options;
  options.sudo = true;
  CHECK(codeexec::complete(options)->image == "codeexec/runtime-sudo:latest");
  options.image = "my/own:1";
  CHECK(codeexec::complete(options)->image == "my/own:1");
}

TEST_CASE("parity 40 sudo_functionality") {
  if (!has_engine()) return;
  TempDir workspace;
  const ContainerExecutor executor = executor_of(with_sudo(options_in(workspace)));
  CHECK(executor.run("whoami").out == "agent\n");
  const Result root = executor.run("sudo whoami");
  CHECK_MESSAGE(root.out == "root\n", told(root));
}

TEST_CASE("W-37: what a command has made root's by sudo does not outlive it either") {
  if (!has_engine()) return;
  TempDir workspace;
  const ContainerExecutor executor = executor_of(with_sudo(options_in(workspace)));
  const char* const look = "cat /proc/[0-9]*/cmdline | tr '\\0' ' '";
  REQUIRE(executor.run("sudo sh -c 'setsid sleep 7654322 & echo begun'").out == "begun\n");
  CHECK_FALSE(has(executor.run(look).out, "sleep 7654322"));
  Command command = Command::shell("sudo sleep 7654323");
  command.timeout = std::chrono::seconds(1);
  CHECK(executor.run(command).outcome == Outcome::timed_out);
  CHECK_FALSE(has(executor.run(look).out, "sleep 7654323"));
}

TEST_CASE("a session carries on in a container, and nothing does without one") {
  if (!has_engine()) return;
  TempDir workspace;
  const ContainerExecutor executor = executor_of(options_in(workspace));
  const codeexec::Session session;
  REQUIRE(executor.run("mkdir sub").succeeded());
  const Result first = run_in(executor, session, "cd sub; export A='x y'; echo out; echo err >&2");
  CHECK_MESSAGE(first.out == "out\n", told(first));
  CHECK(first.err == "err\n");
  CHECK(first.notes.empty());
  CHECK(session.work_dir() == (workspace / "sub"));
  const Result second = run_in(executor, session, "pwd; echo \"$A\"; exit 3");
  CHECK(second.out == (workspace / "sub") + "\nx y\n");
  CHECK(second.exit_code == 3);
  CHECK(executor.run("pwd; echo \"$A\"").out == workspace.path() + "\n\n");
  // A command that was killed leaves it as it was; one that unsets takes away. Notes tell of both,
  // the signal and the session.
  CHECK(run_in(executor, session, "export A=other; kill -9 $$").notes.size() == 2);
  CHECK(run_in(executor, session, "echo \"$A\"; unset A").out == "x y\n");
  CHECK(run_in(executor, session, "echo ${A-unset}").out == "unset\n");
  // What is told of a session is no output, however it looks.
  const Result long_script =
      run_in(executor, session, "echo '" + std::string(200000, 'x') + "' | wc -c");
  CHECK_MESSAGE(long_script.out == "200001\n", told(long_script));
  CHECK(executor.run("ls -d /tmp/.codeexec*").out == "");
  // A folder of the container alone is none that the next command could start in.
  CHECK(run_in(executor, session, "cd /tmp").notes.size() == 1);
  const Result after = run_in(executor, session, "pwd");
  CHECK_MESSAGE(after.out == workspace / "sub\n", told(after));
}
