// What commands find in a container: names, caches, clients of credentials, paths of any form. What
// needs an engine is skipped without one, see parity.cpp.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/engine_support.hpp"
#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"
#include "container_helpers.hpp"

using codeexec::ContainerExecutor;
using codeexec::ContainerExecutorOptions;
using codeexec::Permission;
using codeexec::Result;
using support::busybox_image;
using support::debian_image;
using support::docker;
using support::has;
using support::has_engine;
using support::has_engine_with;
using support::small;
using support::TempDir;

namespace {

ContainerExecutorOptions options_of(const std::string& workspace, const char* image) {
  ContainerExecutorOptions options;
  if (::chmod(workspace.c_str(), 0777) != 0) support::fail("chmod", workspace);
  options.workspace = workspace;
  options.agent_id = support::fresh_agent();
  options.container = small({}, image);
  return options;
}

std::string run_in(const ContainerExecutorOptions& options, const std::string& script) {
  const auto executor = ContainerExecutor::create(options);
  if (!executor) return executor.error().message;
  const Result result = executor->run(script);
  return result.out + result.err + result.message;
}

}  // namespace

TEST_CASE("container: folders with commas and quotes in their names") {
  if (!has_engine()) return;
  const TempDir folder;
  const std::string odd = folder.directory("a,b \"c\"");
  folder.file("a,b \"c\"/seen", "x");
  ContainerExecutorOptions options = options_of(odd, busybox_image);
  options.roots = {{odd, Permission::write},
                   {folder.directory("a,b \"c\"/no,ne"), Permission::none}};
  CHECK(run_in(options, "cat seen; pwd") == "x" + odd + "\n");
}

TEST_CASE("container: an image with nothing but one program, and one with another C library") {
  if (!has_engine()) return;
  const TempDir workspace;
  {
    const auto executor =
        ContainerExecutor::create(options_of(workspace.path(), "codeexec-test/empty:latest"));
    REQUIRE(executor);
    codeexec::Command command;
    command.argv = {"/program"};  // a busybox that does not know its name
    const Result result = executor->run(command);
    CHECK_MESSAGE(has(result.err, "applet not found"), result.message);
    CHECK(result.exit_code == 127);
    const Result none = executor->run("true");
    CHECK(none.outcome == codeexec::Outcome::not_started);
    CHECK_MESSAGE(has(none.message, "sh"), none.message);
  }
  CHECK(run_in(options_of(workspace.path(), "codeexec-test/musl:latest"),
               "echo shell; ls /lib | grep -c ld-musl") == "shell\n1\n");
}

#if defined(CODEEXEC_STATIC)
TEST_CASE("container: an image that has an agent needs none of this machine's") {
  if (!has_engine()) return;
  const TempDir workspace;
  const auto run_without_ours = [&](const char* image, const std::string& script) {
    ContainerExecutorOptions options = options_of(workspace.path(), image);
    options.container.agent.clear();
    return run_in(options, script);
  };
  CHECK(has(run_without_ours(busybox_image, "echo there"), "name a static one (place_agent)"));
  const TempDir context;
  context.file("codeexec-mcp", support::read_file(CODEEXEC_STATIC), 0755);
  context.file("Dockerfile", "FROM codeexec-test/busybox\nCOPY codeexec-mcp /bin/\n");
  const std::string image = "codeexec-test/agent-" + std::to_string(::getpid()) + ":latest";
  REQUIRE(docker({"build", "-q", "-t", image, context.path()}).succeeded());
  CHECK(run_without_ours(image.c_str(), "echo there; ls /.codeexec-mcp") ==
        "there\nls: /.codeexec-mcp: No such file or directory\n");
  docker({"rmi", image});
}
#endif

TEST_CASE("container: a user without a name has one in the variables, and in /etc/passwd") {
  if (!has_engine_with(debian_image)) return;
  const TempDir folder;
  ContainerExecutorOptions options = options_of(folder.path(), debian_image);
  const char* const script = "echo $USER $LOGNAME; id -un 2>&1 | tail -n 1";
  options.container.user = "4321:4322";
  CHECK(has(run_in(options, script), "user4321 user4321\n"));
  options.container.user = "1000:1000";
  CHECK(run_in(options, script) == "agent agent\nagent\n");
  options.container.user = "4321:4322";
  options.container.read_only_root = false;
  CHECK(run_in(options, script) == "user4321 user4321\nuser4321\n");
  options.container.environment = {{"USER", "somebody"}};
  CHECK(has(run_in(options, script), "somebody "));
}

TEST_CASE("container: credentials whose program the image lacks are a note") {
  if (!has_engine()) return;
  const TempDir folder;
  const support::EnvironmentGuard home("HOME", folder.directory("home").c_str());
  folder.directory("home/.ssh");
  ContainerExecutorOptions options = options_of(folder.directory("work"), busybox_image);
  options.container.credentials = {"ssh_keys"};
  const auto executor = ContainerExecutor::create(options);
  REQUIRE_MESSAGE(executor, executor.error().message);
  const Result first = executor->run("true");
  CHECK_MESSAGE(first.succeeded(), first.summary());
  REQUIRE(first.notes.size() == 1);
  CHECK(has(first.notes[0], "has no ssh, "));
  CHECK(executor->run("true").notes.empty());
}

TEST_CASE("container: git finds the user's name and address, and nothing else of the user's") {
  if (!has_engine()) return;
  const TempDir folder;
  support::EnvironmentGuard home("HOME", folder.directory("home").c_str());
  home.unset("XDG_CONFIG_HOME");
  home.unset("GIT_CONFIG_GLOBAL");
  folder.file("home/.gitconfig",
              "[user]\nname = Ada 'A' L\nemail = ada@x\n[github]\ntoken = t0ken\n");
  const std::string told = "[user]\n\tname = \"Ada 'A' L\"\n\temail = \"ada@x\"\n";
  const char* const show = "cat \"${GIT_CONFIG_GLOBAL:-$HOME/.gitconfig}\" 2>/dev/null; true";
  for (const char* user : {"4321:4322", "0:0"}) {
    CAPTURE(user);
    ContainerExecutorOptions options = options_of(folder.directory("work"), busybox_image);
    options.container.user = user;
    CHECK(run_in(options, show) == told);
    options.git_identity = false;
    CHECK(run_in(options, show) == "");
    options.git_identity = true;
    options.container.environment = {{"HOME", "/tmp"}};
    const auto executor = ContainerExecutor::create(options);
    REQUIRE_MESSAGE(executor, executor.error().message);
    CHECK(executor->run(show).out == told);
    CHECK(executor->run("echo ${GIT_CONFIG_GLOBAL-none}; echo mine > ~/.gitconfig").out ==
          "none\n");
    CHECK(executor->run(show).out == "mine\n");
    // Of another home than that of the image's user.
    for (const bool sudo : {false, true}) {
      CAPTURE(sudo);
      ContainerExecutorOptions elsewhere = options;
      elsewhere.container.sudo = sudo;
      elsewhere.container.environment = {};
      elsewhere.environment.set = {{"HOME", "/elsewhere"}};
      elsewhere.container.scratch = {{"/elsewhere", std::uint64_t{1} << 20}};
      CHECK(run_in(elsewhere, show) == told);
    }
    // That file is the user's own when it is asked for.
    options.container.environment = {};
    options.container.credentials = {"git_config"};
    CHECK(has(run_in(options, show), "t0ken"));
  }
}

TEST_CASE("container: one that has the machine's process table is prepared, too") {
  if (!has_engine()) return;
  const TempDir folder;
  ContainerExecutorOptions options = options_of(folder.directory("work"), busybox_image);
  options.container.user = "4321:4322";
  options.container.read_only_root = false;
  options.container.engine_options = {"pid=host"};
  const auto executor = ContainerExecutor::create(options);
  REQUIRE_MESSAGE(executor, executor.error().message);
  const codeexec::Result r = executor->run("whoami");
  CHECK_MESSAGE(r.out == "user4321\n", r.summary());
  CHECK(r.notes.empty());
}

TEST_CASE("container: sudo serves groups by name, and any number") {
  if (!has_engine()) return;
  const TempDir folder;
  const auto run_as = [&](const char* user) {
    ContainerExecutorOptions options = options_of(folder.directory("work"), busybox_image);
    options.container.sudo = true;
    options.container.user = user;
    const auto executor = ContainerExecutor::create(options);
    REQUIRE_MESSAGE(executor, executor.error().message);
    const codeexec::Result r = executor->run("echo $(id -u) $(id -g)");
    return r.message + r.out;
  };
  CHECK(run_as("4294967294:4294967294") == "4294967294 4294967294\n");
  CHECK(run_as("4321:root") == "4321 0\n");
  CHECK(has(run_as("4321:nobody-knows"), "unable to find user 4321:nobody-knows"));
}

TEST_CASE("container: a cache outlives the containers that share it") {
  if (!has_engine()) return;
  const TempDir folder;
  ContainerExecutorOptions options = options_of(folder.path(), busybox_image);
  options.container.user = "4321:4322";
  options.container.cache = options.agent_id;
  const std::string volume = "codeexec-cache-" + options.agent_id;
  CHECK(run_in(options, "mkdir $npm_config_cache && echo x >$XDG_CACHE_HOME/y; echo $CARGO_HOME") ==
        "/var/cache/codeexec/cargo\n");
  CHECK(run_in(options, "cat $XDG_CACHE_HOME/y; ls $XDG_CACHE_HOME") == "x\nnpm\ny\n");
  const auto listed = docker({"volume", "ls", "-q", "--filter", "label=codeexec.managed=1"});
  CHECK(has(listed.out, volume));
  CHECK(docker({"volume", "rm", "-f", volume}).succeeded());
}
