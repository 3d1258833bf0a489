// The images of docker/, the script that builds them, and the engine of the tests. What is in an
// image is looked at by running it, which needs an engine: see tests/helpers/engine.sh.
#include "../../helpers/engine_support.hpp"
#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"

using codeexec::Command;
using codeexec::Result;
using support::has_engine;

namespace {

const std::string source = CODEEXEC_ROOT;

// Runs a program with variables of its own and those that Docker looks at.
Result run(std::vector<std::string> argv,
           std::vector<std::pair<std::string, std::string>> environment = {},
           const std::string& work_dir = "/") {
  codeexec::LocalOptions options;
  options.workspace = work_dir;
  options.environment.keep.push_back("DOCKER_*");
  options.supervised = false;  // an engine outlives the script that starts it
  options.policy.disabled_rules = {"sudo"};
  Command command = Command::program(std::move(argv));
  command.environment = std::move(environment);
  return support::make(options).run(command);
}

// What a script prints in a new container without network, as a user of it; and how it ended, when
// that is not well.
std::string in_image(const std::string& image, const std::string& user, const std::string& script) {
  const Result result = run(
      {"docker", "run", "--rm", "--network", "none", "--user", user, image, "sh", "-c", script});
  return result.succeeded() ? result.out : result.out + result.summary() + "\n" + result.err;
}

std::string docker(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "docker");
  const Result result = run(std::move(arguments));
  INFO(result.err);
  CHECK_MESSAGE(result.succeeded(), result.command);
  return result.out.substr(0, result.out.find('\n'));
}

Result engine(const std::string& verb, const std::string& path) {
  return run({"sh", source + "/tests/helpers/engine.sh", verb, path});
}

// Ends an engine however a test ends.
struct EngineGuard {
  explicit EngineGuard(std::string path) : place(std::move(path)) {}
  EngineGuard(const EngineGuard&) = delete;
  EngineGuard& operator=(const EngineGuard&) = delete;
  ~EngineGuard() { engine("stop", place); }
  std::string place;
};

Result build(std::vector<std::string> arguments,
             std::vector<std::pair<std::string, std::string>> environment = {},
             const std::string& work_dir = "/") {
  arguments.insert(arguments.begin(), {"sh", source + "/docker/build.sh"});
  return run(std::move(arguments), std::move(environment), work_dir);
}

// A program in the place of docker: it writes its arguments to a file, one line for each call, and
// fails when they have a certain word.
std::string fake_docker(const support::TempDir& folder, const std::string& fails_at = "no such") {
  return folder.file("fake-docker",
                     "#!/bin/sh\nprintf '%s|' \"$@\" >> " + (folder / "calls") + "\necho >> " +
                         (folder / "calls") + "\ncase \" $* \" in *\" " + fails_at +
                         " \"*) echo 'first line' >&2; echo 'the engine sleeps' >&2; exit 3;; "
                         "esac\n",
                     0755);
}

}  // namespace

TEST_CASE("build.sh: what it cannot do is told in one line, with the way out") {
  const auto expect = [](const Result& result, int exit_code, const std::string& line) {
    CAPTURE(result.out);
    CHECK(result.exit_code == exit_code);
    CHECK(result.err == line + "\n");
    CHECK(result.out.empty());
  };
  expect(build({"--sodu"}), 2, "build.sh: unknown option --sodu (try --help)");
  expect(build({"image"}), 2, "build.sh: unknown option image (try --help)");
  expect(build({"--agent", "/no/such"}), 1, "build.sh: --agent: there is no file /no/such");
  expect(build({"--tag"}), 2, "build.sh: --tag needs a value (try --help)");
  expect(build({"--base", ""}), 2, "build.sh: --base needs a value (try --help)");
  expect(build({"--sudo", "--executor"}), 2,
         "build.sh: --sudo or --executor, not both (try --help)");
  expect(build({"--executor", "--sudo"}), 2,
         "build.sh: --sudo or --executor, not both (try --help)");
  expect(build({}, {{"CODEEXEC_DOCKER", "no-such-docker"}}), 1,
         "build.sh: there is no program no-such-docker: install Docker, or set "
         "CODEEXEC_DOCKER=podman");

  const support::TempDir folder;
  expect(build({}, {{"CODEEXEC_DOCKER", fake_docker(folder, "ps")}}), 1,
         "build.sh: " + (folder / "fake-docker") +
             " cannot reach its engine; start it, or set DOCKER_HOST: the engine sleeps");
  CHECK(support::read_file(folder / "calls") == "ps|-q|\n");
}

TEST_CASE("build.sh: an engine that is not there is told by what docker says of it") {
  if (!has_engine()) return;
  const Result result = build({}, {{"DOCKER_HOST", "unix:///no/such/docker.sock"}});
  CHECK(result.exit_code == 1);
  CHECK(result.out.empty());
  CAPTURE(result.err);
  CHECK(result.err.rfind("build.sh: docker cannot reach its engine; start it, or set DOCKER_HOST: "
                         "Cannot connect to the Docker daemon at unix:///no/such/docker.sock",
                         0) == 0);
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
}

TEST_CASE("build.sh: the help tells every option") {
  for (const char* option : {"-h", "--help"}) {
    const Result result = build({option}, {{"CODEEXEC_DOCKER", "no-such-docker"}});
    CHECK(result.exit_code == 0);
    CHECK(result.err.empty());
    for (const char* word : {"--sudo", "--executor", "-n, --name NAME", "-t, --tag TAG",
                             "--base IMAGE", "--agent FILE", "-h, --help", "CODEEXEC_DOCKER"})
      CHECK_MESSAGE(result.out.find(word) != std::string::npos, word);
    CHECK(result.out.find("set -eu") == std::string::npos);
  }
}

TEST_CASE("build.sh: each option reaches the program that builds, from any folder") {
  const support::TempDir folder;
  const std::string docker = fake_docker(folder);
  const std::string files = source + "/docker";
  const auto calls = [&](const std::vector<std::string>& arguments) {
    support::remove_all(folder / "calls");
    const Result result = build(arguments, {{"CODEEXEC_DOCKER", docker}}, folder.path());
    CHECK_MESSAGE(result.succeeded(), result.err);
    const std::string text = support::read_file(folder / "calls");
    REQUIRE(text.rfind("ps|-q|\n", 0) == 0);
    return text.substr(7);
  };
  const std::string runtime = "|-f|" + files + "/Dockerfile|" + files + "|\n";
  CHECK(calls({}) == "build|-t|codeexec/runtime:latest" + runtime);
  CHECK(calls({"-t", "2", "-n", "my/image"}) == "build|-t|my/image:2" + runtime);
  CHECK(calls({"--tag", "2", "--name", "my/image"}) == "build|-t|my/image:2" + runtime);
  CHECK(calls({"--base", "debian:12", "--", "--network", "host", "--label", "a b"}) ==
        "build|--build-arg|BASE=debian:12|-t|codeexec/runtime:latest|--network|host|--label|a b" +
            runtime);
  CHECK(calls({"--executor", "--", "--no-cache"}) ==
        "build|-t|codeexec/executor:latest|--no-cache|-f|" + files + "/Dockerfile.executor|" +
            files + "|\n");
  const std::string sudo = "|-f|" + files + "/Dockerfile.sudo|" + files + "|\n";
  CHECK(calls({"--sudo", "-t", "2", "--", "--no-cache"}) ==
        "build|-t|codeexec/runtime:2|--no-cache" + runtime +
            "build|--build-arg|BASE=codeexec/runtime:2|-t|codeexec/runtime-sudo:2|--no-cache" +
            sudo);
  CHECK(calls({"--sudo", "--base", "my/image", "--name", "my/sudo"}) ==
        "build|--build-arg|BASE=my/image|-t|my/sudo:latest" + sudo);
  const std::string both = calls({"--agent", folder.file("agent", "x")});
  CHECK(
      both.rfind("build|-t|codeexec/runtime:latest" + runtime + "build|-t|codeexec/runtime:latest|",
                 0) == 0);
}

TEST_CASE("build.sh: an image that was not built is a failure, and no other is built upon it") {
  const support::TempDir folder;
  const Result result =
      build({"--sudo"}, {{"CODEEXEC_DOCKER", fake_docker(folder, "codeexec/runtime:latest")}});
  CHECK(result.exit_code == 1);
  CHECK(result.err ==
        "first line\nthe engine sleeps\n"
        "build.sh: codeexec/runtime:latest was not built; the reason stands above\n");
  CHECK(support::read_file(folder / "calls").find("runtime-sudo") == std::string::npos);
}

TEST_CASE("engine.sh: takes no folder for its own that is not") {
  if (::geteuid() != 0) {
    const Result result = engine("stop", "/tmp");
    CHECK(result.exit_code == 1);
    CHECK(result.err.find("needs root") != std::string::npos);
    return;
  }
  const support::TempDir folder;
  folder.file("precious", "data");
  for (const char* verb : {"start", "stop", "images"}) {
    const Result result = engine(verb, folder.path());
    CHECK(result.exit_code == 1);
    CHECK(result.err.find("tests/helpers/engine.sh: ") == 0);
    CHECK(support::read_file(folder / "precious") == "data");
  }
  CHECK(engine("stop", folder / "missing").succeeded());
  CHECK(engine("images", folder / "missing").exit_code == 1);
  CHECK(engine("start", folder.directory(std::string(80, 'x'))).err.find("too long") !=
        std::string::npos);
  CHECK(engine("sotp", folder.path()).exit_code == 2);
  CHECK(engine("stop", "").exit_code == 2);
}

TEST_CASE("engine.sh: nothing is left of an engine and its containers, even when it was killed") {
  if (!has_engine()) return;
  if (::geteuid() != 0) {
    MESSAGE("SKIPPED: only root can start an engine");
    return;
  }
  const support::TempDir folder;
  const std::string place = folder / "engine";
  const std::string host = "unix://" + place + "/docker.sock";
  const EngineGuard guard(place);
  for (int i = 0; i < 2; ++i) {
    const Result started = engine("start", place);
    CHECK_MESSAGE(started.succeeded(), started.err);
    CHECK(started.out == host + "\n");
  }
  // A container that heeds no signal.
  const Result load = run({"sh", "-c", "docker save \"$1\" | docker --host \"$0\" load", host,
                           "codeexec-test/busybox"});
  CHECK_MESSAGE(load.succeeded(), load.err);
  const std::string container =
      docker({"--host", host, "run", "--detach", "codeexec-test/busybox", "sh", "-c",
              "trap '' TERM HUP INT; while :; do sleep 3600; done"});
  const std::string pid =
      docker({"--host", host, "inspect", "--format", "{{.State.Pid}}", container});
  const std::string bridge =
      docker({"--host", host, "network", "inspect", "--format",
              "{{index .Options \"com.docker.network.bridge.name\"}}", "bridge"});
  CHECK(support::exists("/proc/" + pid + "/exe"));
  CHECK(support::exists("/sys/class/net/" + bridge + "/bridge"));
  bool killed = false;
  SUBCASE("stopped") {}
  SUBCASE("killed") { killed = true; }
  if (killed) {
    const pid_t engine_pid = std::atoi(support::read_file(place + "/pid").c_str());
    REQUIRE(engine_pid > 1);
    REQUIRE(::kill(engine_pid, SIGKILL) == 0);
    REQUIRE(support::dies(engine_pid));
    CHECK(support::exists("/proc/" + pid + "/exe"));
  }
  const Result stopped = engine("stop", place);
  CHECK_MESSAGE(stopped.succeeded(), stopped.err);
  CHECK_FALSE(support::exists(place));
  CHECK_FALSE(support::exists("/proc/" + pid + "/exe"));
  CHECK_FALSE(support::exists("/sys/class/net/" + bridge));
  CHECK(support::read_file("/proc/self/mounts").find(place) == std::string::npos);
  const Result left = run({"sh", "-c",
                           "cat /proc/[0-9]*/environ 2> /dev/null | tr '\\0' '\\n' | "
                           "grep -xF \"CODEEXEC_ENGINE=$0\"",
                           place});
  CHECK(left.exit_code == 1);
}

TEST_CASE("the engine answers, and has the images of the tests") {
  if (!has_engine()) return;
  CHECK_FALSE(docker({"version", "--format", "{{.Server.Version}}"}).empty());
  for (const char* image : {"codeexec-test/busybox", "codeexec-test/base", "codeexec-test/debian",
                            "codeexec/runtime", "codeexec/runtime-sudo", "codeexec/executor"})
    docker({"image", "inspect", "--format", "{{.Id}}", image});
  CHECK(in_image("codeexec-test/busybox", "0", "id -u; ls -d /tmp 2>&1").find("0\nls: /tmp: No") ==
        0);
  CHECK(in_image("codeexec-test/debian", "agent", "id -u; python3 -c 'print(1)'") == "1000\n1\n");
}

TEST_CASE("the runtime image has what it says, for its user") {
  if (!has_engine()) return;
  for (const char* image : {"codeexec/runtime", "codeexec/runtime-sudo"}) {
    CAPTURE(image);
    CHECK(in_image(image, "agent", "id -u; id -g; echo $HOME; pwd; touch $HOME/x && echo yes") ==
          "1000\n1000\n/home/agent\n/workspace\nyes\n");
    CHECK(in_image(image, "agent",
                   "python --version | cut -d . -f 1; node --version | cut -d . -f 1; "
                   "node -p '6*7'; npm prefix -g; echo 'int main(){return 0;}' > a.c && "
                   "make -s a && ./a && echo built") == "Python 3\nv20\n42\n/usr/local\nbuilt\n");
    CHECK(in_image(image, "agent",
                   "for p in git ssh curl rg unzip ps gh npx uv uvx ast-grep pytest pip; do "
                   "command -v $p > /dev/null || echo \"no $p\"; done; "
                   "gh --version > /dev/null && rg --version > /dev/null && echo runs") ==
          "runs\n");
    CHECK(in_image(image, "agent",
                   "python -c 'import numpy, pandas, pytest, requests; "
                   "print(pandas.Series(numpy.arange(4)).sum())'") == "6\n");
    CHECK(in_image(image, "agent",
                   "stat -c '%U:%G %a %n' /workspace /context /temp_workspaces; "
                   "touch /workspace/x /context/x /temp_workspaces/x && echo writable") ==
          "agent:agent 755 /workspace\nagent:agent 755 /context\n"
          "agent:agent 755 /temp_workspaces\nwritable\n");
    CHECK(in_image(image, "agent",
                   "echo $PYTHONUNBUFFERED $PYTHONDONTWRITEBYTECODE $PIP_NO_CACHE_DIR "
                   "$PIP_DISABLE_PIP_VERSION_CHECK $DEBIAN_FRONTEND") ==
          "1 1 1 1 noninteractive\n");
    // Nothing of the build is left behind, and root runs no program of the user's before its own.
    CHECK(in_image(image, "0",
                   "ls -A /tmp /var/lib/apt/lists /var/cache/apt/archives | "
                   "grep -vE '^(/|$|lock$|partial$)'; "
                   "case $PATH in /usr/local/*:/bin:/home/agent/.local/bin) echo good;; "
                   "*) echo $PATH;; esac") == "good\n");
    CHECK(docker({"image", "inspect", "--format", "{{.Config.User}}", image}).empty());
  }
}

TEST_CASE("W-39: the images install the versions that are asked for, and no file has their name") {
  if (!has_engine()) return;
  CHECK(in_image("codeexec/runtime", "0",
                 "ls -A / /root /workspace | grep '='; python -c \""
                 "from importlib.metadata import version\n"
                 "for name, least in ('pytest', (7, 0)), ('requests', (2, 31)), "
                 "('numpy', (1, 24)), ('pandas', (2, 0)):\n"
                 "  have = tuple(int(part) for part in version(name).split('.')[:2])\n"
                 "  print(name, have >= least)\"") ==
        "pytest True\nrequests True\nnumpy True\npandas True\n");
}

TEST_CASE("pip installs for the user, also over Debian's own Python") {
  if (!has_engine()) return;
  CHECK(in_image("codeexec/runtime", "agent",
                 "mkdir p && cd p && printf 'from setuptools import setup\\n"
                 "setup(name=\"own\", version=\"1\", py_modules=[\"own\"])\\n' > setup.py && "
                 "echo x=5 > own.py && "
                 "pip install -q --no-build-isolation --no-index . > log 2>&1 || cat log; "
                 "cd / && python -c 'import own; print(own.x, own.__file__)' | "
                 "sed 's/lib.*site-packages/lib/'") == "5 /home/agent/.local/lib/own.py\n");
}

TEST_CASE("sudo works in the sudo image, and only there") {
  if (!has_engine()) return;
  CHECK(in_image("codeexec/runtime", "agent", "command -v sudo || echo none") == "none\n");
  // Without a network, too, and without a word on stderr.
  CHECK(in_image("codeexec/runtime-sudo", "agent",
                 "sudo -n id -u 2>&1; sudo -n sh -c 'stat -c %a /etc/sudoers.d/agent; "
                 "visudo -c -q && echo good'") == "0\n440\ngood\n");
  CHECK(in_image("codeexec/runtime-sudo", "nobody", "sudo -n id -u 2> /dev/null || echo refused") ==
        "refused\n");
}

TEST_CASE("the executor image has what it says, for its user") {
  if (!has_engine()) return;
  const std::string image = "codeexec/executor";
  CHECK(in_image(image, "coderunner",
                 "id -u; echo $HOME; pwd; bash -c 'echo ${BASH_VERSION:+bash}'") ==
        "1000\n/home/coderunner\n/workspace\nbash\n");
  CHECK(in_image(image, "coderunner",
                 "stat -c '%U:%G %a %n' /tools /skills /workspace /artifacts; "
                 "touch /tools/x /skills/x 2> /dev/null || echo no; "
                 "touch /workspace/x /artifacts/x && echo yes") ==
        "root:root 755 /tools\nroot:root 755 /skills\ncoderunner:coderunner 755 /workspace\n"
        "coderunner:coderunner 755 /artifacts\nno\nyes\n");
  CHECK(in_image(image, "0",
                 "echo 'def f(): return 7' > /tools/seven.py; cd /; "
                 "python -c 'import seven; print(seven.f())'; ls /tools") == "7\nseven.py\n");
}

TEST_CASE("a container that only runs its image's command reaps orphans, and ends when told to") {
  if (!has_engine()) return;
  for (const char* image : {"codeexec/runtime", "codeexec/runtime-sudo", "codeexec/executor"}) {
    CAPTURE(image);
    const std::string id = docker({"run", "--detach", "--network", "none", image});
    // Orphans are left to PID 1, whose own sleep is the only one that stays.
    const Result sleeps =
        run({"docker", "exec", id, "sh", "-c",
             "for i in 1 2 3 4 5 6 7 8; do (setsid sleep 0.01 &); done; "
             "count() { ps -eo comm | grep -c '^sleep'; }; left=600; "
             "while [ $(count) -ne 1 ] && [ $left -gt 0 ]; do left=$((left - 1)); sleep 0.05; "
             "done; count"});
    CHECK(sleeps.out == "1\n");
    // Who has to be killed after that time ends with 137.
    docker({"stop", "--time", "20", id});
    CHECK(docker({"inspect", "--format", "{{.State.ExitCode}}", id}) == "0");
    docker({"rm", "--force", id});
  }
}
