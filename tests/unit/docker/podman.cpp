// Containers of podman, with a storage of its own: by root, and by a user where one runs the tests.

#include "container_helpers.hpp"

#include <unistd.h>

#include <optional>

using codeexec::Permission;
using codeexec::Result;
using namespace support;

namespace {

class Podman {
 public:
  TempDir folder = {};
  TempDir workspace = {};

  Podman() {
    // What is asked of this machine in place of podman's defaults, which need more rights than
    // some have: no higher limits than there are, and a runtime that knows its cgroups.
    write_file(program(),
               "#!/bin/sh\n"
               "at='" +
                   folder.path() +
                   "'\nruntime=$(command -v runc || command -v crun)\n"
                   "exec /usr/bin/podman --root \"$at/s\" --runroot \"$at/r\" --tmpdir \"$at/t\" "
                   "--storage-driver vfs --cgroup-manager cgroupfs --runtime \"$runtime\" \"$@\"\n",
               0755);
    for (const char* sub : {"/s", "/r", "/t", "/tree/bin"}) make_directories(folder.path() + sub);
  }
  ~Podman() {
    podman({"rm", "-af"});
    podman({"rmi", "-af"});
    // Of a user, the storage has files of other users.
    if (::geteuid() != 0) podman({"unshare", "rm", "-rf", folder / "s"});
  }

  // False after saying that the test is skipped.
  bool runs() {
    if (!has_engine()) return false;
    if (!exists("/usr/bin/podman")) {
      MESSAGE("SKIPPED: no podman here");
      return false;
    }
#if !defined(CODEEXEC_STATIC)
    MESSAGE("SKIPPED: no static server for containers of podman");
    return false;
#endif
    const codeexec::ProcessResult made = run({"sh", "-c",
                                              "cd \"$1/tree\" && cp \"$(command -v busybox)\" bin/ "
                                              "&& for i in $(busybox --list); do [ $i = busybox ] "
                                              "|| ln -s busybox bin/$i; done && mkdir -p etc proc "
                                              "dev sys tmp && tar -c . | \"$0\" import - this",
                                              program(), folder.path()});
    REQUIRE_MESSAGE(made.succeeded(), made.err);
    const codeexec::ProcessResult trial =
        podman({"run", "--rm", "--network", "none", "--ulimit", "nofile=1024:1024", "--ulimit",
                "nproc=1000:1000", "this", "true"});
    if (trial.succeeded()) return true;
    MESSAGE("SKIPPED: podman runs no container here: " << trial.err);
    return false;
  }

  codeexec::ContainerExecutorOptions options() const {
    codeexec::ContainerExecutorOptions options;
    options.workspace = workspace.path();
    options.container = small(fresh_agent(), "this");
    options.container.engine.program = program();
    options.container.engine_options = {"ulimit=nproc=1000:1000"};
    return options;
  }

  std::string containers() const { return podman({"ps", "-aq"}).out; }

  std::string program() const { return folder / "podman"; }

  codeexec::Process start(std::vector<std::string> words) const {
    words.insert(words.begin(), program());
    codeexec::ProcessOptions call = call_of(std::move(words));
    call.timeout = codeexec::no_limit;
    auto started = codeexec::Process::start(std::move(call));
    REQUIRE_MESSAGE(started, started.error().message);
    return *std::move(started);
  }

 private:
  static codeexec::ProcessOptions call_of(std::vector<std::string> argv) {
    codeexec::ProcessOptions call;
    call.argv = std::move(argv);
    for (char** variable = environ; *variable; ++variable) call.environment.emplace_back(*variable);
    call.timeout = std::chrono::seconds(60);
    return call;
  }
  static codeexec::ProcessResult run(std::vector<std::string> argv) {
    return codeexec::run_process(call_of(std::move(argv)));
  }
  codeexec::ProcessResult podman(std::vector<std::string> words) const {
    words.insert(words.begin(), program());
    return run(std::move(words));
  }
};

codeexec::ContainerExecutor podman_executor(const codeexec::ContainerExecutorOptions& options) {
  auto executor = codeexec::ContainerExecutor::create(options);
  REQUIRE_MESSAGE(executor, executor.error().message);
  return *std::move(executor);
}

}  // namespace

TEST_CASE("podman: commands run in its containers, which end with the executor") {
  Podman podman;
  if (!podman.runs()) return;
  {
    const auto executor = podman_executor(podman.options());
    const Result r = executor.run("pwd; id -u; grep CapBnd /proc/self/status; echo new >f; exit 7");
    CHECK_MESSAGE(r.exit_code == 7, r.summary());
    CHECK(has(r.out, podman.workspace.path() + "\n" + std::to_string(::geteuid()) + "\n"));
    CHECK(has(r.out, "CapBnd:\t0000000000000000"));
    CHECK(read_file(podman.workspace / "f") == "new\n");
    codeexec::Command slow = codeexec::Command::shell("trap '' TERM; sleep 500 & wait");
    slow.timeout = std::chrono::milliseconds(300);
    CHECK(executor.run(slow).outcome == codeexec::Outcome::timed_out);
    CHECK(executor.run("ps | grep -c '[s]leep 500'").out == "0\n");
    codeexec::Command reading = codeexec::Command::shell("wc -c");
    reading.input = repeat("0123456789", 100000);
    CHECK(executor.run(reading).out == "1000000\n");
    CHECK(!podman.containers().empty());
  }
  CHECK(comes_true([&] { return podman.containers().empty(); }));
}

TEST_CASE("podman: what is kept away is not seen") {
  Podman podman;
  if (!podman.runs()) return;
  podman.workspace.file("secret/key", "key");
  podman.workspace.file("se,cret/key", "key");
  codeexec::ContainerExecutorOptions options = podman.options();
  options.roots = {{podman.workspace.path(), Permission::write},
                   {podman.workspace / "secret", Permission::none},
                   {podman.workspace / "se,cret", Permission::none}};
  const TempDir folder;
  std::optional<codeexec::Process> service;
  SUBCASE("") {}
  SUBCASE("when its program is called docker") {
    options.container.engine.program =
        folder.file("docker", "#!/bin/sh\nexec '" + podman.program() + "' \"$@\"\n", 0755);
  }
  SUBCASE("when docker's program speaks to its service") {
    const std::string socket = folder / "socket";
    service = podman.start({"system", "service", "--time", "0", "unix://" + socket});
    REQUIRE(comes_true([&] { return exists(socket); }));
    options.container.engine.program = "docker";
    options.container.engine.host = "unix://" + socket;
  }
  const Result r = podman_executor(options).run("ls -A . *");
  CHECK_MESSAGE(has(r.out, "secret"), r.summary());
  CHECK_FALSE(has(r.out, "key"));
}
