// Containers without an engine: options, and what a small program in its place says.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <thread>

#include "../../helpers/engine_support.hpp"
#include "../../helpers/executor_support.hpp"
#include "../../helpers/fake_engine.hpp"
#include "../../helpers/support.hpp"
#include "container_helpers.hpp"

using codeexec::CancelToken;
using codeexec::ContainerNetwork;
using codeexec::ContainerOptions;
using codeexec::ErrorCode;
using codeexec::Expected;
using codeexec::Mount;
using codeexec::Permission;
using std::chrono::milliseconds;
using support::Container;
using support::has;
using support::make;
using support::require;
using support::small;
using support::TempDir;

namespace {

// A program in place of the engine's. Its arguments go to `log`, one line for each, a blank line
// after each call; then it runs `script`.
struct ScriptedEngine {
  explicit ScriptedEngine(const std::string& script)
      : path(folder.file("docker",
                         "#!/bin/sh\nfor a; do printf '%s\\n' \"$a\"; done >>" + (folder / "log") +
                             "\necho >>" + (folder / "log") + "\n" + script + "\n",
                         0755)) {}
  ContainerOptions options() const {
    ContainerOptions options = small("fake");
    options.engine.program = path;
    return options;
  }
  std::string log() const {
    return support::exists(folder / "log") ? support::read_file(folder / "log") : std::string();
  }
  TempDir folder = {};
  std::string path;
};

// An engine that makes a container of anything.
constexpr char willing[] =
    "case $1 in image) echo '[{}]';; container) echo 'No such container' >&2; exit 1;;\n"
    "exec) case $* in *' --place') printf '%b' '" FAKE_AGENT_ANSWER
    "';; esac;;\nrun) [ \"$2\" != -i ] || { printf '%b' '" FAKE_AGENT_ANSWER
    "'; cat >/dev/null; };; esac";

std::string problem_of(const ContainerOptions& options) {
  const auto complete = codeexec::complete(options);
  if (complete) return "accepted";
  CHECK(complete.error().code != ErrorCode::io);
  CHECK_FALSE(has(complete.error().message, "\n"));
  return complete.error().message;
}

}  // namespace

// Options -----------------------------------------------------------------------------------------

TEST_CASE("container options: a root that may be written to when that is needed") {
  CHECK(*codeexec::complete({})->read_only_root);
  ContainerOptions options;
  options.sudo = true;
  const auto complete = codeexec::complete(options);
  CHECK_FALSE(*complete->read_only_root);
  CHECK(complete->image == "codeexec/runtime-sudo:latest");
}

TEST_CASE("W-44: sudo keeps an image of one's own") {
  ContainerOptions options;
  options.sudo = true;
  options.image = "registry.example:5000/me/own:1.0";
  const auto complete = codeexec::complete(options);
  REQUIRE(complete);
  CHECK(complete->image == options.image);
}

TEST_CASE("container options: what cannot be a word of an argv is refused, by its option") {
  for (const char* image : {"-x", "a b", "a;b", "a\nb", "/a", "a$b"}) {
    CAPTURE(std::string(image));
    ContainerOptions options;
    options.image = image;
    CHECK(support::begins(problem_of(options), "image: "));
  }
  for (const char* user : {"-u", "a b", ":1", "1\n2", "$(id)"}) {
    CAPTURE(std::string(user));
    ContainerOptions options;
    options.user = user;
    CHECK(support::begins(problem_of(options), "user: "));
  }
  for (const char* user : {"1000:1000", "agent", "0"}) {
    ContainerOptions options;
    options.user = user;
    CHECK(problem_of(options) == "accepted");
  }
  ContainerOptions options;
  options.engine.program = "-H";
  CHECK(support::begins(problem_of(options), "engine program: "));
  options = {};
  options.engine.context = "a";
  options.engine.host = "unix:///x";
  CHECK(support::begins(problem_of(options), "engine context: "));
  options = {};
  options.environment = {{"A=B", "c"}};
  CHECK(support::begins(problem_of(options), "environment: "));
  options = {};
  options.agent_id = std::string("a\0b", 3);
  CHECK(support::begins(problem_of(options), "agent_id: "));
}

TEST_CASE("container options: bounds that no engine takes") {
  const auto with = [](auto change) {
    ContainerOptions options;
    change(options);
    return problem_of(options);
  };
  CHECK(with([](auto& o) { o.memory = (6 << 20) - 1; }) ==
        "memory: must be 6 MiB or more, or 0 for no bound");
  CHECK(with([](auto& o) { o.memory = 6 << 20; }) == "accepted");
  CHECK(with([](auto& o) { o.memory = 0; }) == "accepted");
  CHECK(support::begins(with([](auto& o) { o.cpus = -1; }), "cpus: "));
  CHECK(support::begins(with([](auto& o) { o.cpus = 0.001; }), "cpus: "));
  CHECK(support::begins(with([](auto& o) { o.cpus = std::numeric_limits<double>::quiet_NaN(); }),
                        "cpus: "));
  CHECK(with([](auto& o) { o.cpus = 0; }) == "accepted");
  CHECK(support::begins(with([](auto& o) { o.engine.call_timeout = milliseconds(0); }),
                        "engine timeouts: "));
  CHECK(support::begins(with([](auto& o) { o.start_timeout = milliseconds(-1); }), "timeouts"));
}

TEST_CASE("container options: more options of the engine") {
  const auto problem = [](const std::string& word) {
    ContainerOptions options;
    options.engine_options = {word};
    return problem_of(options);
  };
  for (const char* good : {"privileged", "--privileged", "ulimit=nproc=9", "device=/dev/fuse"})
    CHECK(problem(good) == "accepted");
  for (const char* bad : {"", "-", "=", "v=/:/x", "a b", "device=a\nb", "=x"})
    CHECK(has(problem(bad), "is no long option"));
  for (const char* own : {"name=x", "--rm", "rm=false", "entrypoint=x", "network=host", "user=0"})
    CHECK(has(problem(own), "is set by codeexec itself"));
  ContainerOptions options;
  std::vector<std::string> progress;
  options.on_progress = [&progress](std::string_view line) { progress.emplace_back(line); };
  options.engine_options = {"runtime=x",
                            "ulimit=nproc=9",
                            "add-host=a:1.2.3.4",
                            "dns=9.9.9.9",
                            "security-opt=seccomp=/profile.json",
                            "platform=linux/arm64"};
  CHECK(codeexec::complete(options));
  CHECK(progress.empty());
  options.engine_options = {
      "--privileged",   "dns=9.9.9.9", "cap-add=ALL", "pid=host", "security-opt=seccomp=unconfined",
      "volume=/:/host", "gpus=all"};
  CHECK(codeexec::complete(options));
  CHECK(progress == std::vector<std::string>{
                        "engine_options: the container is held less by privileged cap-add=ALL "
                        "pid=host security-opt=seccomp=unconfined volume=/:/host gpus=all"});
}

TEST_CASE("W-40: no container sees the host's system, its home or the engine's socket") {
  const TempDir folder;
  const std::string socket = folder.directory("run") + "/engine.sock";
  const support::EnvironmentGuard engine("DOCKER_HOST", ("unix://" + socket).c_str());
  support::EnvironmentGuard home("HOME", folder.directory("home/me").c_str());
  folder.directory("work");
  support::make_symlink("/etc", folder / "link");
  const auto with = [](const std::string& source, const std::string& target = {},
                       Permission permission = Permission::read) {
    ContainerOptions options;
    options.mounts = {{source, target, permission}};
    return problem_of(options);
  };
  for (const char* source :
       {"/", "/etc", "/usr", "/bin", "/sbin", "/lib", "/boot", "/dev", "/proc", "/sys", "/run",
        "/var", "/var/run", "/root", "/proc/self", "/dev/null", "/etc/../etc/", "/home"}) {
    CAPTURE(std::string(source));
    CHECK(has(with(source, "/x"), "which no container is given"));
  }
  CHECK(has(with(folder / "link", "/x"), "is a folder of the host's system"));
  CHECK(has(with(folder / "run", "/x"), "holds the socket of a container engine"));
  CHECK(has(with(folder / "home/me", "/x"), "is the home directory"));
  CHECK(has(with(folder / "home", "/x"), "is the home directory, or holds it"));
  CHECK(has(with("~", "/x"), "is the home directory"));
  CHECK(has(with("/etc/ssl", "/x", Permission::write), "would be writable"));
  CHECK(has(with(folder / "missing"), "No such file"));
  CHECK(with(folder / "work") == "accepted");
  CHECK(with(folder / "work", "/elsewhere", Permission::write) == "accepted");
  support::make_directories(folder / "home/me/project");
  CHECK(with("~/project") == "accepted");

  const auto complete = codeexec::complete([&] {
    ContainerOptions options;
    options.mounts = {{"~/../me/project", {}, Permission::read},
                      {folder / "work", {}, Permission::write}};
    return options;
  }());
  REQUIRE(complete);
  CHECK(complete->mounts[0].source == folder / "home/me/project");
  CHECK(complete->mounts[0].target == folder / "home/me/project");
  CHECK(complete->mounts[0].permission == Permission::read);
}

TEST_CASE("container options: places of mounts") {
  const TempDir folder;
  folder.directory("a,b");
  folder.directory("a\"b");
  folder.directory("plain");
  folder.directory("other");
  const auto with = [](std::vector<Mount> mounts) {
    ContainerOptions options;
    options.mounts = std::move(mounts);
    return problem_of(options);
  };
  const std::string plain = folder / "plain";
  CHECK(with({{folder / "a,b", "/x", Permission::read}}) == "accepted");
  CHECK(with({{folder / "a\"b", "/a,readonly=false", Permission::read}}) == "accepted");
  for (const char* target : {"x", "/", "/a/../b", "/a\nb", "/proc", "/sys/x", "/dev", "/a/"}) {
    CAPTURE(std::string(target));
    CHECK(support::begins(with({{plain, target, Permission::read}}), "mounts: "));
  }
  CHECK(has(with({{plain, "/x", Permission::read}, {folder / "other", "/x", Permission::read}}),
            "something else"));
  CHECK(has(with({{plain, "/x", Permission::read}, {plain, "/x", Permission::write}}),
            "something else"));
  CHECK(with({{plain, "/x", Permission::read}, {plain, "/x", Permission::read}}) == "accepted");
  ContainerOptions options;
  options.mounts = {{plain, "/x", Permission::read}};
  options.scratch = {{"/x", 1}};
  CHECK(support::begins(problem_of(options), "scratch: "));
  options.scratch = {{"/y:exec", 1}};
  CHECK(support::begins(problem_of(options), "scratch: "));
  options.scratch = {};
  options.mounts[0].permission = Permission::write;
  options.log_file = plain + "/log";
  CHECK(support::begins(problem_of(options), "log_file: "));
  options.log_file = {};
  options.agent = plain + "/agent";
  support::write_file(options.agent, "", 0755);
  CHECK(has(problem_of(options), "agent: '" + options.agent + "' lies where commands may write"));
  options.agent = folder / "agent";
  for (const int mode : {0755, 0750}) {
    support::write_file(options.agent, "");
    REQUIRE(::chmod(options.agent.c_str(), static_cast<mode_t>(mode)) == 0);
    std::string told;
    options.on_progress = [&told](std::string_view text) { told += text; };
    CHECK(problem_of(options) == "accepted");
    CHECK(has(told, "may not be read and executed by others") == (mode == 0750));
  }
  options.agent = {};
  // Twice is as good as once.
  options.log_file = folder / "log";
  const auto once = codeexec::complete(options);
  REQUIRE(once);
  const auto twice = codeexec::complete(*once);
  REQUIRE(twice);
  CHECK(twice->mounts.size() == 1);
}

TEST_CASE("W-45: packages that cannot be installed are refused at once") {
  ContainerOptions options;
  options.python_packages = {"requests>=2.31.0"};
  CHECK(problem_of(options) == "packages: installing needs a network: set network to bridge");
  options.network = ContainerNetwork::bridge;
  CHECK(problem_of(options) == "accepted");
  options.python_packages = {"--index-url=http://evil"};
  CHECK(support::begins(problem_of(options), "packages: "));
  options.python_packages = {""};
  CHECK(support::begins(problem_of(options), "packages: "));
  options.python_packages = {};
  options.system_packages = {"hello"};
  CHECK(problem_of(options) == "packages: system and npm packages need sudo");
  options.sudo = true;
  CHECK(problem_of(options) == "accepted");
  options.read_only_root = true;
  CHECK(has(problem_of(options), "read_only_root"));
}

// The engine's program, and faults of it ----------------------------------------------------------

TEST_CASE("engine: a program that is not there") {
  ContainerOptions options = small("none");
  options.engine.program = "/nonexistent/docker";
  const auto made = make(options)->ensure();
  REQUIRE_FALSE(made);
  CHECK(made.error().code == ErrorCode::not_found);
  CHECK(has(made.error().message, "install docker or podman"));
}

TEST_CASE("engine: what it says is classified, in one line and without control bytes") {
  struct Row {
    const char* said;
    ErrorCode code;
    const char* help;
  };
  for (const Row& row :
       {Row{"permission denied while trying to connect to the Docker daemon socket at unix:///x",
            ErrorCode::permission_denied, "group docker"},
        Row{"Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?",
            ErrorCode::io, "DOCKER_HOST"},
        Row{"Error response from daemon: pull access denied for x, repository does not exist",
            ErrorCode::not_found, "log in"},
        Row{"docker: Error response from daemon: Minimum memory limit allowed is 6MB",
            ErrorCode::invalid_argument, "6 MiB"},
        Row{"docker: Error response from daemon: Range of CPUs is from 0.01 to 2.00, as there are",
            ErrorCode::invalid_argument, "set cpus"},
        Row{"context \"x\": context not found: open /x", ErrorCode::invalid_argument,
            "docker context ls"}}) {
    CAPTURE(std::string(row.said));
    const ScriptedEngine engine("printf '%s\\033[31m\\n\\nRun '\"'docker run --help'\"' x\\n' '" +
                                std::string(row.said) + "' >&2; exit 125");
    const auto made = make(engine.options())->ensure();
    REQUIRE_FALSE(made);
    const std::string& message = made.error().message;
    CAPTURE(message);
    CHECK(made.error().code == row.code);
    CHECK(has(message, row.help));
    CHECK_FALSE(has(message, "--help"));
    CHECK_FALSE(has(message, "\n"));
    CHECK_FALSE(has(message, "\033"));
  }
  const ScriptedEngine loud("head -c 300000 /dev/zero | tr '\\0' x >&2; exit 1");
  const auto made = make(loud.options())->ensure();
  REQUIRE_FALSE(made);
  CHECK(made.error().message.size() < 1000);
}

TEST_CASE("engine: amounts that no machine has are bounded") {
  const ScriptedEngine engine("printf '1.5%%\\t" + std::string(90, '9') + "GiB / 2kB\\t1" +
                              std::string(30, '0') + "\\n'");
  const auto stats = make(engine.options())->stats();
  REQUIRE(stats);
  CHECK(stats->cpu_percent == 1.5);
  CHECK(stats->memory == 1000000000000000000u);
  CHECK(stats->memory_limit == 2000);
  CHECK(stats->pids == 1000000000000000000u);
}

TEST_CASE("engine: one that never answers is given up, at each call") {
  const ScriptedEngine stuck("exec sleep 1000");
  ContainerOptions options = stuck.options();
  options.engine.call_timeout = milliseconds(200);
  const Container container = make(options);
  const auto made = container->ensure();
  REQUIRE_FALSE(made);
  CHECK(has(made.error().message, "no answer in "));
  CHECK_FALSE(container->info());
  CHECK_FALSE(container->stats());
  CHECK_FALSE(container->remove());

  const ScriptedEngine slow_run("case $1 in image) echo '[{}]';; run) exec sleep 1000;; esac");
  options.engine.program = slow_run.path;
  options.engine.run_timeout = milliseconds(200);
  const auto run = make(options)->ensure();
  REQUIRE_FALSE(run);
  CHECK(has(run.error().message, "cannot make the container"));
  CHECK(has(run.error().message, "no answer in "));
}

TEST_CASE("engine: making a container can be cancelled, and so can waiting for that") {
  const ScriptedEngine stuck("case $1 in image) echo '[{}]';; run) : >" +
                             std::string("\"${0%/*}/running\"; exec sleep 1000;; esac"));
  ContainerOptions options = stuck.options();
  options.engine.call_timeout = milliseconds(200);
  const Container container = make(options);
  const CancelToken maker_token;
  const CancelToken waiter_token;
  Expected<void> maker_result;
  std::thread maker([&] { maker_result = container->ensure(maker_token); });
  while (!support::exists(stuck.folder / "running")) ::poll(nullptr, 0, 5);
  std::thread canceller([&] { waiter_token.cancel(); });
  const auto waited = container->ensure(waiter_token);
  canceller.join();
  REQUIRE_FALSE(waited);
  CHECK(has(waited.error().message, "cancelled"));
  maker_token.cancel();
  maker.join();
  REQUIRE_FALSE(maker_result);
  CHECK(has(maker_result.error().message, "cancelled"));
}

TEST_CASE("engine: a context, a host, and podman's words for them") {
  for (const bool podman : {false, true}) {
    const ScriptedEngine engine("echo 'No such container' >&2; exit 1");
    const std::string program = engine.folder / (podman ? "podman" : "docker");
    if (podman) support::make_symlink(engine.path, program);
    ContainerOptions options = engine.options();
    options.engine.program = program;
    options.engine.context = "far";
    CHECK_FALSE(make(options)->info()->exists);
    options.engine.context.clear();
    options.engine.host = "ssh://far";
    CHECK_FALSE(make(options)->info()->exists);
    CHECK(support::begins(engine.log(), podman ? "--connection\nfar\n" : "--context\nfar\n"));
    CHECK(has(engine.log(), podman ? "\n--url\nssh://far\n" : "\n--host\nssh://far\n"));
  }
}

TEST_CASE("W-39: each package is one argument, as it is written") {
  const ScriptedEngine engine(willing);
  ContainerOptions options = engine.options();
  options.network = ContainerNetwork::bridge;
  options.sudo = true;
  options.system_packages = {"libfoo=1.2*"};
  options.python_packages = {"numpy>=1.24.0", "x; touch /tmp/evil"};
  options.npm_packages = {"@scope/tool@^2"};
  std::vector<std::string> progress;
  options.on_progress = [&progress](std::string_view line) { progress.emplace_back(line); };
  require(make(options)->ensure());
  const std::string log = engine.log();
  const std::size_t system = log.find("\nlibfoo=1.2*\n");
  const std::size_t python =
      log.find("pip install -- \"$@\"\nsh\nnumpy>=1.24.0\nx; touch /tmp/evil\n\n");
  const std::size_t npm = log.find("npm install -g -- \"$@\"\nsh\n@scope/tool@^2\n\n");
  CHECK(system < python);
  CHECK(python < npm);
  CHECK(npm != std::string::npos);
  REQUIRE(progress.size() == 3);
  CHECK(progress[1] == "install python packages: numpy>=1.24.0 x; touch /tmp/evil");
}

TEST_CASE("packages: a failure is told, and ends the container only when it must not be") {
  const ScriptedEngine engine(
      std::string("case $* in *pip*) echo 'no such package: x' >&2; exit 3;; "
                  "esac\n") +
      willing);
  ContainerOptions options = engine.options();
  options.network = ContainerNetwork::bridge;
  options.python_packages = {"x"};
  std::string told;
  options.on_progress = [&told](std::string_view line) { told = line; };
  require(make(options)->ensure());
  CHECK(told == "cannot install python packages: x (status 3): no such package: x");
  options.packages_required = true;
  const auto made = make(options)->ensure();
  REQUIRE_FALSE(made);
  CHECK(has(made.error().message, "no such package: x"));
}

TEST_CASE("W-43: names are plain and bounded, and of parallel runs they differ") {
  const ScriptedEngine engine(willing);
  ContainerOptions options = engine.options();
  options.agent_id = "a b/../c" + std::string(100, 'x') + "\xff";
  const Container one = make(options);
  const Container other = make(options);
  CHECK(one.name() != other.name());
  CHECK(support::begins(one.name(), "codeexec-a-b-..-c"));
  CHECK(one.name().size() <= 9 + 24 + 1 + 8);
  CHECK(one.name().find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-") ==
        std::string::npos);
  options.persistent = true;
  CHECK(make(options).name() == make(options).name());
  ContainerOptions second = options;
  second.instance_id = "2";
  CHECK(make(options).name() != make(second).name());
  // The boundary between the two counts.
  options.agent_id = "ab";
  second.agent_id = "a";
  second.instance_id = "b";
  CHECK(make(options).name().substr(12) != make(second).name().substr(11));
}
