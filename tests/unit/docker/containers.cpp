// Containers from their making to their removal, and many agents. What needs an engine is skipped
// without one, see parity.cpp.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "../../helpers/engine_support.hpp"
#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"
#include "container_helpers.hpp"

using codeexec::ContainerNetwork;
using codeexec::ContainerOptions;
using codeexec::ErrorCode;
using codeexec::ImagePolicy;
using codeexec::Json;
using codeexec::Permission;
using support::busybox_image;
using support::Container;
using support::debian_image;
using support::docker;
using support::fresh_agent;
using support::has;
using support::has_engine;
using support::make;
using support::require;
using support::small;
using support::TempDir;

namespace {

Json look(const std::string& name) {
  const auto told = docker({"container", "inspect", name});
  if (!told.succeeded()) return {};
  const auto parsed = Json::parse(told.out);
  REQUIRE(parsed);
  return (*parsed)[0];
}

bool is_there(const std::string& name) { return !look(name).is_null(); }

// Removes a container that a test has made by hand, or that is to outlive its handles.
struct Remover {
  std::string name;
  ~Remover() { docker({"rm", "-f", name}); }
};

}  // namespace

// With an engine ----------------------------------------------------------------------------------

TEST_CASE("W-42: a container is hardened, and what it leaves behind is reaped") {
  if (!has_engine()) return;
  const TempDir folder;
  ContainerOptions options = small(fresh_agent());
  options.mounts = {{folder.directory("rw"), {}, Permission::write},
                    {folder.directory("ro"), {}, Permission::read},
                    {folder.directory("rw/secret"), {}, Permission::none}};
  folder.file("rw/secret/key", "x");
  options.scratch = {{"/scratch/deep", 1 << 20}};
  options.memory = 64 << 20;
  options.pids = 32;
  const Container container = make(options);
  require(container->ensure());
  const Json host = look(container.name())["HostConfig"];
  CHECK(host["CapDrop"].dump() == "[\"ALL\"]");
  CHECK(host["CapAdd"].size() == 0);
  CHECK(host["SecurityOpt"].dump() == "[\"no-new-privileges\"]");
  CHECK(host["ReadonlyRootfs"].as_bool());
  CHECK_FALSE(host["Privileged"].as_bool());
  CHECK(host["Init"].as_bool());
  CHECK(host["AutoRemove"].as_bool());
  CHECK(host["PidsLimit"].as_integer() == 32);
  CHECK(host["Memory"].as_integer() == 64 << 20);
  CHECK(host["MemorySwap"].as_integer() == 64 << 20);
  CHECK(host["NanoCpus"].as_integer() == 1000000000);
  CHECK(host["NetworkMode"].as_string() == "none");
  const auto in = [&container](const char* user, const std::string& script) {
    return docker({"exec", "-u", user, container.name(), "sh", "-c", script});
  };
  CHECK_FALSE(in("0:0", "touch /x").succeeded());
  CHECK(in("12345:12345", "echo x >/tmp/x && echo y >/scratch/deep/y").succeeded());
  CHECK_FALSE(in("0:0", "touch " + (folder / "ro") + "/x").succeeded());
  CHECK(in("0:0", "ls -A " + (folder / "rw/secret")).out.empty());
  CHECK(in("0:0", "cat /proc/net/dev | grep -c :").out == "1\n");
  CHECK(in("0:0", "grep CapEff /proc/self/status").out == "CapEff:\t0000000000000000\n");
  CHECK(in("12345:12345", "grep CapEff /proc/self/status").out == "CapEff:\t0000000000000000\n");
  CHECK(in("0:0", "ulimit -n; ulimit -c").out == "4096\n0\n");
  // Orphans are reaped by process 1: none is left of many more than the bound on processes.
  CHECK(in("0:0", "i=0; while [ $i -lt 60 ]; do (sh -c 'exit 0' &); i=$((i + 1)); done; echo all")
            .out == "all\n");
  CHECK(in("0:0",
           "i=0; while ps | grep -q '[Zz]ombie\\|\\[sh\\]' && [ $i -lt 50 ]; do "
           "i=$((i + 1)); sleep 0.1; done; ps | grep -c '\\[sh\\]'")
            .out == "0\n");
}

TEST_CASE("container: threads that need it wait for one that makes it") {
  if (!has_engine()) return;
  const Container container = make(small(fresh_agent()));
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) threads.emplace_back([&] { good += container->ensure() ? 1 : 0; });
  for (std::thread& thread : threads) thread.join();
  CHECK(good == 6);
  const std::string filter = "label=codeexec.user=" + container->container_options().agent_id;
  const auto listed = docker({"ps", "-a", "-q", "--filter", filter});
  CHECK(support::lines_of(listed.out).size() == 1);
}

TEST_CASE("W-43: containers of one agent in parallel runs do not meet") {
  if (!has_engine()) return;
  ContainerOptions options = small("a b/../c");
  const Container one = make(options);
  require(one->ensure());
  std::string name;
  {
    const Container other = make(options);
    require(other->ensure());
    name = other.name();
    CHECK(is_there(name));
    CHECK(look(name)["Config"]["Labels"]["codeexec.user"].as_string() == "a b/../c");
  }
  CHECK_FALSE(is_there(name));
  CHECK(one->info()->running);
}

TEST_CASE("W-47: nothing of a container outlives the program, which was killed") {
  if (!has_engine()) return;
  const std::string agent = fresh_agent();
  const std::string died = support::in_other_host([&]() -> std::string {
    const Container container = make(small(agent));
    if (auto ok = container->ensure(); !ok) return ok.error().message;
    if (!container->info()->running) return "it does not run";
    ::kill(::getpid(), SIGKILL);
    return "lives";
  });
  CHECK(died == "the other host died: 9");
  const auto listed = [&] {
    return docker({"ps", "-a", "-q", "--filter", "label=codeexec.user=" + agent}).out;
  };
  for (int i = 0; i < 200 && !listed().empty(); ++i) ::poll(nullptr, 0, 50);
  CHECK(listed().empty());
}

TEST_CASE("container: one that has gone is made anew") {
  if (!has_engine()) return;
  const Container container = make(small(fresh_agent()));
  for (const char* deed : {"rm", "kill"}) {
    CAPTURE(std::string(deed));
    require(container->ensure());
    const std::string id = container->info()->id;
    CHECK(container->info()->running);
    std::vector<std::string> words = {deed, container.name()};
    if (std::string(deed) == "rm") words.insert(words.begin() + 1, "-f");
    REQUIRE(docker(words).succeeded());
    // The end of the program that held it is what tells; it follows the container's.
    for (int i = 0; i < 200; ++i) {
      require(container->ensure());
      if (const auto info = container->info(); info && info->id != id && info->running) break;
      ::poll(nullptr, 0, 50);
    }
    CHECK(container->info()->id != id);
    CHECK(container->info()->running);
  }
}

TEST_CASE("container: one that somebody has restarted is made anew, with a lifeline") {
  if (!has_engine()) return;
  codeexec::ContainerExecutorOptions options;
  const TempDir folder;
  options.workspace = folder.path();
  options.agent_id = fresh_agent();
  options.container = small({});
  const auto executor = codeexec::ContainerExecutor::create(options);
  REQUIRE_MESSAGE(executor, executor.error().message);
  CHECK(executor->run("true").succeeded());
  const std::string id = executor->info()->id;
  REQUIRE(docker({"restart", "-t", "0", executor->container_name()}).succeeded());
  const codeexec::Result result = executor->run("echo here");
  CHECK(result.out == "here\n");
  CHECK(executor->info()->id != id);
}

TEST_CASE("roots: what is kept away is not seen in a container either") {
  if (!has_engine()) return;
  const TempDir folder;
  folder.file("work/seen", "seen");
  folder.file("work/secret/key", "key");
  folder.directory("outside");
  codeexec::ContainerExecutorOptions options;
  options.workspace = folder / "work";
  options.roots = {{folder / "work", Permission::write},
                   {folder / "work/secret", Permission::none},
                   {folder / "outside", Permission::none}};
  options.container = small({});
  const auto executor = codeexec::ContainerExecutor::create(options);
  REQUIRE_MESSAGE(executor, executor.error().message);
  CHECK(executor->container_options().mounts.size() == 2);
  const codeexec::Result result = executor->run("ls; ls -A *; touch */x");
  CHECK(has(result.out, "seen"));
  CHECK_FALSE(has(result.out, "key"));
  CHECK_FALSE(has(executor->describe_place(), "secret"));
}

TEST_CASE("container: a persistent one is found, started and woken again") {
  if (!has_engine()) return;
  ContainerOptions options = small(fresh_agent());
  options.persistent = true;
  Remover remover{make(options).name()};
  std::string id;
  {
    const Container container = make(options);
    require(container->ensure());
    id = container->info()->id;
    CHECK(docker({"exec", "-u", "12345", remover.name, "sh", "-c", "echo x >/tmp/x"}).succeeded());
  }
  CHECK(is_there(remover.name));
  for (const char* label : {"label=codeexec.managed=1", "label=codeexec.kind=persistent"})
    CHECK(has(docker({"ps", "-aq", "--no-trunc", "--filter", label}).out, id));
  for (const char* deed : {"", "pause", "kill"}) {
    CAPTURE(std::string(deed));
    if (*deed) REQUIRE(docker({deed, remover.name}).succeeded());
    const Container container = make(options);
    require(container->ensure());
    CHECK(container->info()->id == id);
    CHECK(container->info()->status == "running");
    CHECK(docker({"exec", "-u", "12345", remover.name, "sh", "-c", "echo x >/tmp/x"}).succeeded());
  }
  const Container container = make(options);
  require(container->stop());
  require(container->stop());
  CHECK(container->info()->status == "exited");
  require(container->ensure());
  CHECK(container->info()->id == id);

  SUBCASE("with other options it is made anew") {
    options.memory = 128 << 20;
    const Container other = make(options);
    CHECK(other.name() == remover.name);
    require(other->ensure());
    CHECK(other->info()->id != id);
    CHECK(look(remover.name)["HostConfig"]["Memory"].as_integer() == 128 << 20);
  }
  SUBCASE("it is removed when that is asked for") {
    require(container->remove());
    CHECK_FALSE(is_there(remover.name));
    CHECK_FALSE(container->info()->exists);
    require(container->remove());
  }
}

TEST_CASE("container: options of the engine reach it, and so do its refusals") {
  if (!has_engine()) return;
  ContainerOptions options = small(fresh_agent());
  options.engine_options = {"add-host=somewhere:192.0.2.1", "ulimit=nofile=99:99",
                            "--cap-add=CHOWN"};
  const Container container = make(options);
  require(container->ensure());
  const Json host = look(container.name())["HostConfig"];
  CHECK(has(host["ExtraHosts"].dump(), "somewhere:192.0.2.1"));
  CHECK(has(host["CapAdd"].dump(), "CHOWN"));
  CHECK(docker({"exec", container.name(), "sh", "-c", "ulimit -n"}).out == "99\n");

  options.engine_options = {"runtime=nothing-of-that-name"};
  const auto made = make(options)->ensure();
  REQUIRE_FALSE(made);
  CAPTURE(made.error().message);
  CHECK(has(made.error().message, "nothing-of-that-name"));
  CHECK(has(made.error().message, "`docker info` lists the runtimes"));
  options.engine_options.clear();
  options.network_name = fresh_agent();
  const auto lost = make(options)->ensure();
  REQUIRE_FALSE(lost);
  CHECK(has(lost.error().message, options.network_name));
}

TEST_CASE("container: no more processors are asked for than the engine has") {
  if (!has_engine()) return;
  for (const bool persistent : {false, true}) {
    ContainerOptions options = small(fresh_agent());
    options.persistent = persistent;
    options.cpus = 5000;
    std::vector<std::string> progress;
    options.on_progress = [&progress](std::string_view line) { progress.emplace_back(line); };
    const Container container = make(options);
    const Remover remover{container.name()};
    require(container->ensure());
    REQUIRE(progress.size() == 1);
    CHECK(has(progress[0], "cpus: the engine's machine has "));
    const auto cpus = look(container.name())["HostConfig"]["NanoCpus"].as_integer();
    CHECK(cpus >= 1000000000);
    CHECK(cpus < 5000000000000);
    // The container is found again, though it has other bounds.
    if (persistent) {
      const std::string id = container->info()->id;
      require(make(options)->ensure());
      CHECK(container->info()->id == id);
    }
  }
}

TEST_CASE("container: a persistent one that another program uses is not taken from it") {
  if (!has_engine()) return;
  const TempDir folder;
  codeexec::ContainerExecutorOptions options;
  options.workspace = folder.path();
  options.agent_id = fresh_agent();
  options.container = small({});
  options.container.persistent = true;
  const auto in_another_program = [&](std::uint64_t memory) {
    return support::in_other_host([&]() -> std::string {
      codeexec::ContainerExecutorOptions other = options;
      other.container.memory = memory;
      const auto executor = codeexec::ContainerExecutor::create(other);
      if (!executor) return executor.error().message;
      const codeexec::Result result = executor->run("true");
      return result.succeeded() ? "ran" : result.message;
    });
  };
  const std::string refusal = "another program uses the container ";
  std::string name;
  {
    // Found, not made, by this program.
    REQUIRE(in_another_program(options.container.memory) == "ran");
    const auto executor = codeexec::ContainerExecutor::create(options);
    REQUIRE_MESSAGE(executor, executor.error().message);
    name = executor->container_name();
    CHECK(executor->run("true").succeeded());
    // Its agent is an exec.
    CHECK(support::comes_true([&] { return look(name)["ExecIDs"].size() > 0; }));
    CHECK(support::begins(in_another_program(64 << 20), refusal + name));
    CHECK(executor->run("true").notes.empty());
  }
  CHECK(support::comes_true([&] { return look(name)["ExecIDs"].size() == 0; }));
  CHECK(in_another_program(64 << 20) == "ran");
  // Made by this program, which has no exec in it.
  const auto executor = codeexec::ContainerExecutor::create(options);
  REQUIRE(executor);
  CHECK(executor->run("true").succeeded());
  CHECK(support::begins(in_another_program(64 << 20), refusal + name));
  require(executor->remove());
}

TEST_CASE("container: one of that name that is not ours is never touched") {
  if (!has_engine()) return;
  ContainerOptions options = small(fresh_agent());
  options.persistent = true;
  const Container container = make(options);
  const Remover remover{container.name()};
  REQUIRE(docker({"run", "-d", "--name", container.name(), "--network", "none", busybox_image,
                  "sleep", "1000"})
              .succeeded());
  for (const auto& done : {container->ensure(), container->stop(), container->remove()}) {
    REQUIRE_FALSE(done);
    CHECK(done.error().code == ErrorCode::invalid_argument);
    CHECK(has(done.error().message, "was not made for this agent"));
  }
  CHECK(look(container.name())["State"]["Running"].as_bool());
}

TEST_CASE("container: what a failed attempt leaves behind is removed") {
  if (!has_engine()) return;
  const TempDir folder;
  folder.directory("empty");
  REQUIRE(std::system(("tar -C " + (folder / "empty") +
                       " -c . | docker import - codeexec-test/no-shell:latest >/dev/null")
                          .c_str()) == 0);
  for (const bool persistent : {false, true}) {
    ContainerOptions options = small(fresh_agent(), "codeexec-test/no-shell:latest");
    options.persistent = persistent;
    options.agent = "/bin/sh";
    const Container container = make(options);
    const auto made = container->ensure();
    REQUIRE_FALSE(made);
    CAPTURE(made.error().message);
    CHECK(made.error().code == ErrorCode::invalid_argument);
    CHECK(has(made.error().message, "the image cannot run the agent: name a static one"));
    CHECK_FALSE(is_there(container.name()));
  }
  docker({"rmi", "codeexec-test/no-shell:latest"});
}

TEST_CASE("images: one that is not there, by policy") {
  if (!has_engine()) return;
  ContainerOptions options = small(fresh_agent(), "codeexec-test/none-sudo:latest");
  const auto never = make(options)->ensure();
  REQUIRE_FALSE(never);
  CHECK(never.error().code == ErrorCode::not_found);
  CHECK(has(never.error().message, "image_policy is never"));
  options.image_policy = ImagePolicy::missing;
  options.sudo = true;
  std::vector<std::string> progress;
  options.on_progress = [&progress](std::string_view line) { progress.emplace_back(line); };
  const auto pulled = make(options)->ensure();
  REQUIRE_FALSE(pulled);
  CHECK(has(pulled.error().message, "cannot pull the image"));
  CHECK(support::ends(pulled.error().message, "sh docker/build.sh --sudo"));
  CHECK(progress[0] == "pulling the image codeexec-test/none-sudo:latest");
  // The image that is here needs no registry.
  options.image = busybox_image;
  options.sudo = false;
  require(make(options)->ensure());
}

TEST_CASE("sudo: users without a name get one, and root is not held back") {
  if (!has_engine()) return;
  const TempDir folder;
  ContainerOptions options = small(fresh_agent(), debian_image);
  options.sudo = true;
  options.user = "4321:4322";
  const Container container = make(options);
  require(container->ensure());
  const auto in = [&container](const std::string& script) {
    return docker({"exec", "-u", "0:0", container.name(), "sh", "-c", script}).out;
  };
  CHECK(has(in("cat /etc/passwd"), "user4321:x:4321:4322:"));
  CHECK(in("touch /x && echo yes") == "yes\n");
  CHECK(in("grep NoNewPrivs /proc/self/status") == "NoNewPrivs:\t0\n");
  CHECK(look(container.name())["HostConfig"]["PidsLimit"].as_integer() == 256);
}

TEST_CASE("container: a host's directory as its /tmp is left as it is") {
  if (!has_engine()) return;
  const TempDir folder;
  ContainerOptions options = small(fresh_agent());
  const std::string tmp = folder.directory("tmp");
  ::chmod(tmp.c_str(), 0750);
  options.mounts = {{tmp, "/tmp", Permission::write}};
  const Container container = make(options);
  require(container->ensure());
  struct stat status {};
  REQUIRE(::stat(tmp.c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0750);
}

TEST_CASE("container: a mount that leads elsewhere by now is noticed") {
  if (!has_engine()) return;
  const TempDir folder;
  ContainerOptions options = small(fresh_agent());
  options.mounts = {{folder.directory("a/b"), {}, Permission::write}};
  const Container container = make(options);
  support::remove_all(folder / "a/b");
  support::make_symlink("/etc", folder / "a/b");
  const auto made = container->ensure();
  REQUIRE_FALSE(made);
  CHECK(has(made.error().message, "leads elsewhere by now"));
}

TEST_CASE("container: an engine with another folder at the path of one of ours is refused") {
  if (!has_engine()) return;
  const TempDir folder;
  const std::string ours = folder.directory("ours");
  const std::string theirs = folder.directory("theirs");
  // What an engine of another machine does with a path that both machines have.
  const std::string program =
      folder.file("docker",
                  "#!/bin/sh\nn=$#\nwhile [ $n -gt 0 ]; do a=$1; shift; n=$((n - 1))\n"
                  "  case $a in type=bind,src=" +
                      ours + ",*) a=type=bind,src=" + theirs +
                      ",${a#*,*,} ;; esac\n  set -- \"$@\" \"$a\"\ndone\nexec docker \"$@\"\n",
                  0755);
  for (const bool persistent : {false, true}) {
    for (const mode_t mode : {mode_t{0755}, mode_t{0700}}) {
      CAPTURE(persistent);
      CAPTURE(mode);
      REQUIRE(::chmod(ours.c_str(), mode) == 0);
      REQUIRE(::chmod(theirs.c_str(), mode) == 0);
      REQUIRE(::chown(ours.c_str(), 1234, 1234) == 0);
      REQUIRE(::chown(theirs.c_str(), 1234, 1234) == 0);
      ContainerOptions options = small(fresh_agent());
      options.persistent = persistent;
      options.mounts = {{ours, {}, Permission::write}};
      {
        const Container container = make(options);
        const Remover remover{container.name()};
        require(container->ensure());
      }
      options.engine.program = program;
      const Container container = make(options);
      const auto made = container->ensure();
      REQUIRE_FALSE(made);
      CAPTURE(made.error().message);
      CHECK(made.error().code == ErrorCode::invalid_argument);
      CHECK(has(made.error().message, "another " + ours + " than this one"));
      CHECK_FALSE(is_there(container.name()));
      for (const std::string& place : {ours, theirs}) CHECK(::rmdir(place.c_str()) == 0);
      for (const std::string& place : {ours, theirs}) REQUIRE(::mkdir(place.c_str(), 0755) == 0);
    }
  }
}

TEST_CASE("container: health, information and use of the machine") {
  if (!has_engine()) return;
  ContainerOptions options = small(fresh_agent());
  options.memory = 64 << 20;
  const Container container = make(options);
  const auto before = container->info();
  REQUIRE(before);
  CHECK_FALSE(before->exists);
  CHECK_FALSE(before->running);
  require(container->ensure());
  const auto info = container->info();
  REQUIRE(info);
  CHECK(info->id.size() == 64);
  CHECK(info->name == container.name());
  CHECK(info->image == busybox_image);
  CHECK(has(info->created, "T"));
  CHECK(info->exists);
  CHECK(info->running);
  CHECK(info->status == "running");
  CHECK(info->pid > 0);
  CHECK(has(info->started_at, "T"));
  CHECK(to_json(*info)["name"].as_string() == container.name());
  CHECK(to_json(*info)["running"].as_bool());
  const auto stats = container->stats();
  REQUIRE_MESSAGE(stats, stats.error().message);
  CHECK(stats->memory > 0);
  CHECK(stats->memory_limit == 64 << 20);
  CHECK(stats->pids >= 2);
  CHECK(stats->cpu_percent >= 0);
}

TEST_CASE("W-46: the log tells what happened, in bounded space, and is kept at the end") {
  if (!has_engine()) return;
  const TempDir folder;
  ContainerOptions options = small(fresh_agent());
  options.log_file = folder / "deep/er/log";
  const std::string agent = options.agent_id;
  {
    const Container container = make(options);
    require(container->ensure());
    container->log("exit 0: make test\nsecond line\033");
    require(container->save_log(folder / "now"));
    const std::string text = support::read_file(folder / "now");
    CAPTURE(text);
    const std::vector<std::string> lines = support::lines_of(text);
    REQUIRE(lines.size() == 12);
    CHECK(lines[0] == "# Docker Container Logs for agent: " + agent);
    CHECK(lines[1] == "# Container Status: running");
    CHECK(lines[2] == "# Running: True");
    CHECK(lines[3] == "# Exit Code: 0");
    CHECK(lines[4] == "# OOM Killed: False");
    CHECK(lines[5] == "# Error: ");
    CHECK(support::begins(lines[6], "# Started At: 2"));
    CHECK(support::begins(lines[7], "# Finished At: "));
    CHECK(lines[8] == "#" + std::string(79, '='));
    CHECK(has(lines[9], "container " + container.name() + " made of " + busybox_image));
    CHECK(support::ends(lines[10], "Z exit 0: make test"));
    CHECK(lines[11] == " second line\\x1b");
    for (int i = 0; i < 3000; ++i) container->log(std::string(1000, 'x'));
    container->log("the last");
  }
  const std::string text = support::read_file(options.log_file);
  CHECK(text.size() < (1 << 20) + 2000);
  CHECK(text.size() > (1 << 20) - 2000);
  CHECK(has(text, "the last\n"));
  struct stat status {};
  REQUIRE(::stat(options.log_file.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
}

TEST_CASE("W-47: what programs that are gone have left is reaped, by label and identity") {
  if (!has_engine()) return;
  const Container living = make(small(fresh_agent()));
  require(living->ensure());
  const Json labels = look(living.name())["Config"]["Labels"];
  struct Row {
    const char* label;  // that differs from the one of a living program
    const char* value;
    bool goes;
  };
  const std::string gone = std::to_string(::getpid());
  const std::vector<Row> rows = {{"start", "1", true},
                                 {"pid", "999999999", true},
                                 {"boot", "another", true},
                                 {"none", "", false},
                                 {"managed", "0", false}};
  std::vector<std::string> names;
  const auto leave = [&](std::vector<std::pair<std::string, std::string>> changes) {
    const std::string name = "cx-" + fresh_agent();
    // One that never ran is as good as one that runs, but when it was to outlive its program.
    std::vector<std::string> words = {"create", "--name", name, "--network", "none"};
    if (changes.back().first == "kind") words = {"run", "-d", "--name", name, "--network", "none"};
    for (const auto& [label, value] : labels.members()) {
      std::string text = value.as_string();
      for (const auto& change : changes)
        if (label == "codeexec." + change.first) text = change.second;
      words.insert(words.end(), {"--label", label + "=" + text});
    }
    words.insert(words.end(), {busybox_image, "sleep", "1000"});
    REQUIRE(docker(words).succeeded());
    names.push_back(name);
  };
  for (const Row& row : rows) leave({{row.label, row.value}});
  leave({{"start", "1"}, {"host", "another"}});
  leave({{"start", "1"}, {"ns", "another"}});
  leave({{"start", "1"}, {"kind", "persistent"}});
  const codeexec::ContainerManager manager;
  const auto reaped = manager.reap_orphans();
  REQUIRE_MESSAGE(reaped, reaped.error().message);
  CHECK(*reaped >= 3);
  CHECK(living->info()->running);
  for (std::size_t i = 0; i < names.size(); ++i) {
    CAPTURE(i);
    CHECK(is_there(names[i]) == !(i < rows.size() && rows[i].goes));
    docker({"rm", "-f", names[i]});
  }
}

TEST_CASE("packages: installed by pip with the version that was asked for") {
  if (!has_engine()) return;
  ContainerOptions options = small(fresh_agent(), debian_image);
  options.network = ContainerNetwork::host;
  options.python_packages = {"six>=1.16.0", "idna"};
  options.packages_required = true;
  const Container container = make(options);
  const auto made = container->ensure();
  REQUIRE_MESSAGE(made, made.error().message);
  const auto used = docker({"exec", "-u", "12345:12345", container.name(), "sh", "-c",
                            "cd /; ls; python3 -c 'import six, idna; print(six.__version__)'"});
  CHECK(used.succeeded());
  CHECK(has(used.out, "1.1"));
  CHECK_FALSE(has(used.out, "="));
}

// The notes of the first command and of the one after it.
std::vector<std::string> first_notes(const codeexec::ContainerExecutor& executor) {
  const codeexec::Result first = executor.run("true");
  CHECK_MESSAGE(first.succeeded(), first.summary());
  CHECK(executor.run("true").notes.empty());
  return first.notes;
}

TEST_CASE("packages: what cannot be had is a note of the first result, and is tried again") {
  if (!has_engine()) return;
  const TempDir folder;
  codeexec::ContainerExecutorOptions options;
  options.workspace = folder.path();
  for (const bool persistent : {false, true}) {
    CAPTURE(persistent);
    options.agent_id = fresh_agent();
    options.container = small({});
    options.container.network = ContainerNetwork::host;
    options.container.persistent = persistent;
    options.container.python_packages = {"nothing-of-that-name"};  // the image has no Python
    std::string id;
    for (int program = 0; program < 2; ++program) {
      const auto executor = codeexec::ContainerExecutor::create(options);
      REQUIRE_MESSAGE(executor, executor.error().message);
      CHECK(has(executor->describe_place(), "Installed when the container is made: nothing-of"));
      const auto notes = first_notes(*executor);
      REQUIRE(notes.size() == 1);
      CHECK(support::begins(notes[0], "cannot install python packages: nothing-of-that-name "));
      const std::string found = executor->info()->id;
      if (program == 1) CHECK((found == id) == persistent);
      if (program == 1) require(executor->remove());
      id = found;
    }
  }
}

TEST_CASE("container: that it was replaced or restarted is a note of the next result") {
  if (!has_engine()) return;
  const TempDir folder;
  codeexec::ContainerExecutorOptions options;
  options.workspace = folder.path();
  for (const bool persistent : {false, true}) {
    CAPTURE(persistent);
    options.agent_id = fresh_agent();
    options.container = small({});
    options.container.persistent = persistent;
    const auto executor = codeexec::ContainerExecutor::create(options);
    REQUIRE_MESSAGE(executor, executor.error().message);
    const std::string& name = executor->container_name();
    CHECK(first_notes(*executor).empty());
    REQUIRE(docker({"rm", "-f", name}).succeeded());
    auto notes = first_notes(*executor);
    REQUIRE(notes.size() == 1);
    CHECK(has(notes[0], "the container was made anew: "));
    if (!persistent) continue;
    REQUIRE(docker({"kill", name}).succeeded());
    notes = first_notes(*executor);
    REQUIRE(notes.size() == 1);
    CHECK(has(notes[0], "was started again: "));
    options.container.memory = 64 << 20;
    const auto other = codeexec::ContainerExecutor::create(options);
    REQUIRE(other);
    notes = first_notes(*other);
    REQUIRE(notes.size() == 1);
    CHECK(has(notes[0], "the container was made anew: "));
    require(other->remove());
  }
}

// Many agents -------------------------------------------------------------------------------------

TEST_CASE("manager: an agent has one executor, and what it was made for stays") {
  const TempDir folder;
  codeexec::ContainerManager manager;
  codeexec::ContainerExecutorOptions options;
  options.workspace = folder.directory("a");
  options.agent_id = "one";
  const auto first = manager.executor(options);
  REQUIRE_MESSAGE(first, first.error().message);
  const auto again = manager.executor(options);
  REQUIRE(again);
  CHECK(&again->container_options() == &first->container_options());
  const auto refused = [&](auto change) {
    codeexec::ContainerExecutorOptions other = options;
    change(other);
    const auto made = manager.executor(other);
    if (made) return std::string("accepted");
    CHECK(made.error().code == ErrorCode::invalid_argument);
    return made.error().message;
  };
  CHECK(has(refused([](auto& o) { o.container.image = "x"; }), "another image"));
  CHECK(has(refused([](auto& o) { o.container.network = ContainerNetwork::host; }),
            "another network"));
  CHECK(has(refused([&](auto& o) { o.workspace = folder.directory("b"); }), "another workspace"));
  CHECK(refused([](auto& o) { o.agent_id = "two"; }) == "accepted");
  CHECK(manager.agents() == std::vector<std::string>{"one", "two"});
}

TEST_CASE("manager: containers are removed together, and their logs are kept") {
  if (!has_engine()) return;
  const TempDir folder;
  codeexec::ContainerManager manager;
  std::vector<std::string> names;
  for (const char* agent : {"one", "a b/../c", "three"}) {
    codeexec::ContainerExecutorOptions options;
    options.workspace = folder.directory("work");
    options.agent_id = agent;
    options.container = small({});
    const auto executor = manager.executor(options);
    REQUIRE_MESSAGE(executor, executor.error().message);
    require(executor->ensure());
    names.push_back(executor->container_name());
  }
  require(manager.cleanup("three"));
  require(manager.cleanup("nobody"));
  CHECK_FALSE(is_there(names[2]));
  CHECK(is_there(names[0]));
  require(manager.cleanup_all(folder / "logs"));
  CHECK(manager.agents().empty());
  CHECK_FALSE(is_there(names[0]));
  CHECK_FALSE(is_there(names[1]));
  CHECK(has(support::read_file(folder / "logs/one/docker_container.log"), "for agent: one\n"));
  int folders = 0;
  if (DIR* directory = ::opendir((folder / "logs").c_str())) {
    while (const dirent* entry = ::readdir(directory)) folders += entry->d_name[0] != '.';
    ::closedir(directory);
  }
  CHECK(folders == 2);
  CHECK_FALSE(support::exists(folder / "c"));
}
