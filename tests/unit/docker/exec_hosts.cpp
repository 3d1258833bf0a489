// Commands in containers: killed hosts, many at once, files, networks, the gate, background shells.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "../../helpers/engine_support.hpp"
#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"
#include "exec_helpers.hpp"

using codeexec::Command;
using codeexec::ContainerExecutorOptions;
using codeexec::Outcome;
using codeexec::Result;
using std::chrono::seconds;
using support::Box;
using support::Change;
using support::check_usable;
using support::comes_true;
using support::debian_image;
using support::describe;
using support::docker;
using support::endless_program;
using support::has;
using support::has_debian;
using support::has_images;
using support::images;
using support::left_in;
using support::prints_text;
using support::processes;
using support::shared_box;

namespace {

bool container_exists(const std::string& name) {
  return docker({"container", "inspect", name}).succeeded();
}

}  // namespace

// The host goes away ------------------------------------------------------------------------------

namespace {

bool can_fork() {
  if (support::thread_sanitizer) MESSAGE("SKIPPED: ThreadSanitizer ends a fork with threads");
  return !support::thread_sanitizer;
}

// A program that runs a command in a container of its own, is killed, and is forgotten.
struct KilledHost {
  std::string container = {};
  std::string program = endless_program();
  bool began = false;

  KilledHost(const std::string& image, const Change& change) {
    const support::TempDir folder;
    const std::string began_file = folder / "container";
    const pid_t pid = ::fork();
    if (pid == 0) {
      const Box box(image, change);
      const codeexec::Execution execution =
          box.executor().start(Command::shell("setsid " + program + " & echo begin; " + program));
      if (prints_text(execution, "begin")) support::write_file(began_file, box.name());
      for (;;) ::pause();
    }
    began = comes_true([&] { return support::exists(began_file); }, seconds(60));
    if (began) comes_true([&] { return !(container = support::read_file(began_file)).empty(); });
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
};

}  // namespace

TEST_CASE("W-47: a container goes away when its program is killed") {
  if (!has_images() || !can_fork()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const KilledHost host(image, {});
    REQUIRE(host.began);
    CHECK(comes_true([&] { return !container_exists(host.container); }));
  }
}

TEST_CASE("W-47: commands in a persistent container die with the program that asked for them") {
  if (!has_images() || !can_fork()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const KilledHost host(image, [](ContainerExecutorOptions& options) {
      options.agent_id = "killed-host-" + std::to_string(::getpid());
      options.container.persistent = true;
    });
    REQUIRE(host.began);
    CHECK(container_exists(host.container));
    CHECK_FALSE(left_in(host.container, host.program));
    docker({"rm", "-f", host.container});
  }
}

TEST_CASE("W-47: a container goes away with the last handle") {
  if (!has_images()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    Box box(image);
    check_usable(box);
    const std::string name = box.name();
    CHECK(container_exists(name));
    box.drop();
    CHECK(comes_true([&] { return !container_exists(name); }));
  }
}

// Many at once ------------------------------------------------------------------------------------

TEST_CASE("commands of many threads in one container do not mix") {
  if (!has_images()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box& box = shared_box(image);
    std::vector<std::string> wrong(8);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < wrong.size(); ++i)
      threads.emplace_back([&box, &wrong, i] {
        for (int round = 0; round < 3; ++round) {
          const std::string word = "t" + std::to_string(i) + "r" + std::to_string(round);
          const Result result = box.run("n=0; while [ $n -lt 200 ]; do echo " + word + "; echo e" +
                                        word + " >&2; n=$((n+1)); done; exit " + std::to_string(i));
          std::string out;
          std::string err;
          for (int n = 0; n < 200; ++n) {
            out += word + "\n";
            err += "e" + word + "\n";
          }
          if (result.exit_code != static_cast<int>(i) || result.out != out || result.err != err)
            wrong[i] += describe(result);
        }
      });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& what : wrong) CHECK_MESSAGE(what.empty(), what);
  }
}

TEST_CASE("commands one after another and at once have one agent") {
  if (!has_images()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box box(image);
    std::vector<std::thread> threads;
    std::atomic<int> good{0};
    for (int i = 0; i < 5; ++i)
      threads.emplace_back([&] { good += box.run("echo x").out == "x\n"; });
    for (std::thread& thread : threads) thread.join();
    CHECK(good == 5);
    for (int i = 0; i < 5; ++i) {
      const Result result = box.run("echo " + std::to_string(i));
      CHECK_MESSAGE(result.out == std::to_string(i) + "\n", describe(result));
    }
    const std::vector<std::string> lines = support::lines_of(processes(box.name()));
    CHECK(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
            return support::ends(line, " --place");
          }) == 1);
  }
}

TEST_CASE("two executors have two containers, and what one writes to /tmp the other has not") {
  if (!has_images()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box one(image);
    const Box two(image);
    const Result written = one.run("echo secret >/tmp/shared && cat /tmp/shared; hostname");
    CHECK_MESSAGE(support::begins(written.out, "secret\n"), describe(written));
    const Result other = two.run("cat /tmp/shared; hostname");
    CHECK_FALSE(has(other.out, "secret"));
    CHECK(support::lines_of(written.out).back() != support::lines_of(other.out).back());
    // Nor does one see the processes or the workspace of the other.
    const Result look = two.run("ls '" + one.workspace.path() + "'");
    CHECK_FALSE(look.succeeded());
  }
}

// The host's files --------------------------------------------------------------------------------

TEST_CASE("W-46: the workspace has the same path, and files of commands have its owner") {
  if (!has_images()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    // Nobody is named: the owner of the workspace.
    const Box box(image, [](ContainerExecutorOptions& options) { options.container.user = ""; });
    box.workspace.file("from-host", "host\n");
    const Result result = box.run("cat '" + box.workspace.path() +
                                  "/from-host'; echo box >made; mkdir folder; id -u");
    CHECK_MESSAGE(result.out == "host\n1000\n", describe(result));
    CHECK(support::read_file(box.workspace / "made") == "box\n");
    for (const char* made : {"made", "folder"}) {
      struct stat status {};
      REQUIRE(::stat((box.workspace / made).c_str(), &status) == 0);
      CHECK(status.st_uid == 1000);
      CHECK(status.st_gid == 1000);
    }
    const codeexec::Files files(box.executor().file_rules(), box.workspace.path());
    REQUIRE(files.write("written", "by a tool\n"));
    CHECK(box.run("cat written").out == "by a tool\n");
    const auto content = files.read("made");
    REQUIRE(content);
    CHECK(content->bytes == "box\n");
    CHECK_FALSE(files.read("/etc/hostname"));
  }
}

TEST_CASE("read-only roots can be read and not written") {
  if (!has_images()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    support::TempDir context;
    context.file("data", "data\n", 0666);
    ::chmod(context.path().c_str(), 0777);
    const Box box(image, [&](ContainerExecutorOptions& options) {
      options.roots = {{options.workspace, codeexec::Permission::write},
                       {context.path(), codeexec::Permission::read}};
    });
    // What no policy can see.
    box.workspace.file("write.sh", "cat " + context.path() + "/data; echo x >" + context.path() +
                                       "/data; echo x >" + context.path() + "/new");
    const Result result = box.run("sh write.sh");
    CHECK_MESSAGE(support::begins(result.out, "data\n"), describe(result));
    CHECK_MESSAGE(has(result.err, "Read-only file system"), describe(result));
    CHECK(support::read_file(context / "data") == "data\n");
    CHECK_FALSE(support::exists(context / "new"));
    const codeexec::Files files(box.executor().file_rules(), box.workspace.path());
    CHECK(files.read(context / "data"));
    CHECK_FALSE(files.write(context / "data", "x"));
  }
}

// The network -------------------------------------------------------------------------------------

namespace {

// Listens on all addresses of the host and greets whoever comes.
class Greeter {
 public:
  Greeter() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    socklen_t size = sizeof address;
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
        ::listen(listener_, 8) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
      support::fail("listen", "");
    port = ntohs(address.sin_port);
    thread_ = std::thread([this] {
      for (;;) {
        const int guest = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (guest < 0) return;
        if (::write(guest, "hello\n", 6) == 6) ++guests;
        ::close(guest);
      }
    });
  }
  ~Greeter() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }

  int port = 0;
  std::atomic<int> guests{0};

 private:
  int listener_;
  std::thread thread_ = {};
};

}  // namespace

TEST_CASE("without a network nobody on the host can be reached, with a bridge one can") {
  if (!has_debian()) return;
  Greeter greeter;
  // Its argument is an address; without one the container's gateway, which is the host, is asked.
  const std::string visitor = R"py(
import socket, struct, sys
routes = [line.split() for line in open('/proc/net/route')]
gateways = [route[2] for route in routes if route[1] == '00000000']
address = sys.argv[1] if len(sys.argv) > 2 else socket.inet_ntoa(
    struct.pack('<L', int(gateways[0], 16)))
print(address, flush=True)
print(socket.create_connection((address, int(sys.argv[-1])), 20).recv(5).decode())
)py";
  const auto attempt = [&](codeexec::ContainerNetwork network, const std::string& address) {
    const Box box(debian_image,
                  [&](ContainerExecutorOptions& options) { options.container.network = network; });
    box.workspace.file("visit.py", visitor);
    return box.run("python3 visit.py " + address + " " + std::to_string(greeter.port));
  };
  const Result bridge = attempt(codeexec::ContainerNetwork::bridge, "");
  const std::vector<std::string> lines = support::lines_of(bridge.out);
  REQUIRE_MESSAGE(lines.size() == 2, describe(bridge));
  CHECK(lines[1] == "hello");
  CHECK(greeter.guests == 1);
  for (const std::string& address : {lines[0], std::string("127.0.0.1")}) {
    const Result none = attempt(codeexec::ContainerNetwork::none, address);
    CHECK_MESSAGE(none.exit_code == 1, describe(none));
    CHECK(none.out == address + "\n");
  }
  CHECK(greeter.guests == 1);
}

// The gate ----------------------------------------------------------------------------------------

TEST_CASE("the policy holds in containers as on the host, and everything is on the audit log") {
  if (!has_images()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    Box box(image, [](ContainerExecutorOptions& options) { options.agent_id = "agent-7"; });
    const std::string refused[] = {"sudo id", "rm -rf /", "dd if=/dev/zero of=/dev/sda"};
    for (const std::string& script : refused) {
      CAPTURE(script);
      const Result result = box.run(script);
      CHECK(result.outcome == Outcome::refused);
      CHECK_FALSE(result.rule.empty());
      CHECK(box.executor().check(Command::shell(script)).outcome == Outcome::refused);
    }
    // Nothing was needed for that.
    CHECK_FALSE(container_exists(box.name()));
    CHECK(box.run("echo out; exit 3").exit_code == 3);
    const std::vector<codeexec::Json> records = box.log.take();
    REQUIRE(records.size() == 4);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(records[i].find("outcome")->as_string() == "refused");
      CHECK_FALSE(records[i].find("allowed")->as_bool());
    }
    CHECK(records[3].find("outcome")->as_string() == "exited");
    CHECK(records[3].find("agent_id")->as_string() == "agent-7");
    CHECK(records[3].find("command")->as_string() == "echo out; exit 3");
    CHECK(records[3].find("stdout_bytes")->as_number() == 4);
  }
}

TEST_CASE("sudo is a matter of the policy where it is enabled") {
  if (!has_images()) return;
  const Box box(images()[0],
                [](ContainerExecutorOptions& options) { options.policy.enable_sudo = true; });
  CHECK(box.executor().check(Command::shell("sudo apt-get update")).outcome != Outcome::refused);
  CHECK(box.executor().check(Command::shell("sudo rm -rf /")).outcome == Outcome::refused);
}

TEST_CASE("secrets of a container are masked in the output and on the audit log") {
  if (!has_images()) return;
  const support::EnvironmentGuard host("CODEEXEC_TEST_TOKEN", "token-of-the-host-4711");
  for (const std::string& image : images()) {
    CAPTURE(image);
    Box box(image, [](ContainerExecutorOptions& options) {
      options.container.env_vars = {"CODEEXEC_TEST_TOKEN"};
    });
    const Result result = box.run(
        "echo \"<$CODEEXEC_TEST_TOKEN>\"; echo \"$CODEEXEC_TEST_TOKEN\" >&2; "
        "echo ${#CODEEXEC_TEST_TOKEN}; : token-of-the-host-4711");
    CHECK_MESSAGE(result.out == "<[redacted]>\n22\n", describe(result));
    CHECK(result.err == "[redacted]\n");
    CHECK_FALSE(has(result.command, "of-the-host"));
    for (const codeexec::Json& record : box.log.take())
      CHECK_FALSE(has(record.dump(), "of-the-host"));
    CHECK_FALSE(has(docker({"inspect", box.name()}).out, "of-the-host"));
  }
}

// Jobs and code -----------------------------------------------------------------------------------

TEST_CASE("W-34: background output in a container is whole; W-36: with its streams and status") {
  if (!has_images()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box& box = shared_box(image);
    codeexec::Jobs jobs(box.executor());
    const auto job = jobs.start(Command::shell(
        "echo a; sleep 0.1; echo b; echo e1 >&2; sleep 0.1; printf 'first\\nsecond'; exit 9"));
    REQUIRE(job);
    REQUIRE(jobs.wait(job->id));
    const auto output = jobs.read(job->id);
    REQUIRE(output);
    CHECK(output->out.text == "a\nb\nfirst\nsecond");
    CHECK(output->err.text == "e1\n");
    CHECK(output->status.state == codeexec::JobState::failed);
    CHECK(output->status.result.exit_code == 9);

    Result failure;
    CHECK_FALSE(jobs.start(Command::shell("sudo id"), &failure));
    CHECK(failure.outcome == Outcome::refused);
  }
}

TEST_CASE("W-35: a background command is killed in its container, with all that it started") {
  if (!has_images()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box& box = shared_box(image);
    codeexec::Jobs jobs(box.executor());
    const std::string program = endless_program();
    const std::string other = endless_program();
    const auto job = jobs.start(Command::shell("setsid " + program + " & echo begin; " + program));
    const auto stays = jobs.start(Command::shell("echo begin; " + other));
    REQUIRE(job);
    REQUIRE(stays);
    codeexec::Jobs::Wait begin;
    begin.pattern = *codeexec::Regex::compile("begin");
    REQUIRE(jobs.wait(job->id, begin));
    REQUIRE(jobs.wait(stays->id, begin));
    CHECK(has(processes(box.name()), program));
    const auto killed = jobs.kill(job->id);
    REQUIRE(killed);
    CHECK(*killed);
    CHECK_FALSE(left_in(box.name(), program));
    CHECK(jobs.status(job->id)->state == codeexec::JobState::killed);
    CHECK(has(processes(box.name()), other));
    CHECK(jobs.status(stays->id)->state == codeexec::JobState::running);
  }
}

TEST_CASE("jobs are written to, and end with their owner") {
  if (!has_images()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box& box = shared_box(image);
    const std::string program = endless_program();
    {
      codeexec::Jobs jobs(box.executor());
      Command command = Command::shell("read -r line; echo \"got $line\"; exec " + program);
      command.keep_input_open = true;
      const auto job = jobs.start(command);
      REQUIRE(job);
      REQUIRE(jobs.write(job->id, "a line\n"));
      codeexec::Jobs::Wait got;
      got.pattern = *codeexec::Regex::compile("got a line");
      const auto end = jobs.wait(job->id, got);
      REQUIRE(end);
      CHECK(*end == codeexec::Jobs::WaitEnd::matched);
      CHECK(has(processes(box.name()), program));
    }
    CHECK_FALSE(left_in(box.name(), program));
  }
}

TEST_CASE("code runs in the container") {
  if (!has_debian()) return;
  const Box& box = shared_box(debian_image);
  const codeexec::CodeResult python =
      codeexec::run_code(box.executor(), "python",
                         "import os\nprint(6 * 7, os.getuid(), open('/etc/hostname').read())");
  REQUIRE_MESSAGE(python.results.size() == 1, python.message);
  CHECK_MESSAGE(support::begins(python.results[0].out, "42 1000 "), describe(python.results[0]));
  const codeexec::CodeResult shell = codeexec::run_code(box.executor(), "sh", "echo $((6 * 7))");
  REQUIRE(shell.results.size() == 1);
  CHECK(shell.results[0].out == "42\n");
}

TEST_CASE("W-46: the log of a container has what commands did") {
  if (!has_images()) return;
  const Box box(images()[0]);
  CHECK(box.run("echo logged-output; exit 3").exit_code == 3);
  const support::TempDir folder;
  const auto saved = box.executor().save_log(folder / "deep/log");
  REQUIRE_MESSAGE(saved, saved.error().message);
  const std::string log = support::read_file(folder / "deep/log");
  CHECK_MESSAGE(has(log, "echo logged-output"), log);
  CHECK(has(log, "logged-output\n"));
}
