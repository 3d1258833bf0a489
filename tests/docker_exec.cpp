// Commands in containers, with a real engine and real shells: see tests/docker.cpp for what must be
// set. Each test runs in every image of `images()` that the engine has.
#include "engine_support.hpp"
#include "executor_support.hpp"
#include "support.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using codeexec::Command;
using codeexec::ContainerExecutor;
using codeexec::ContainerExecutorOptions;
using codeexec::Outcome;
using codeexec::Result;
using codeexec::Stream;
using std::chrono::milliseconds;
using std::chrono::seconds;
using support::comes_true;
using support::docker;
using support::has;
using support::has_image;

const char* const busybox = "codeexec-test/busybox:latest";  // ash; no /tmp
const char* const debian = "codeexec-test/debian:latest";    // dash
const char* const bash = "codeexec-test/debian-bash:latest";
// Of its own programs, which are not those that run as root.
const char* const ordinary_user = "1000:1000";

// The same as `debian` with bash as its sh.
void make_bash_image() {
  const std::string name = "codeexec-test-" + std::to_string(::getpid());
  if (!docker({"run", "--name", name, "--network", "none", debian, "ln", "-sf", "bash", "/bin/sh"})
           .succeeded())
    return;
  docker({"commit", "--change", "CMD [\"bash\"]", name, bash});
  docker({"rm", "-f", name});
}

const std::vector<std::string>& images() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> found;
    for (const char* image : {busybox, debian})
      if (has_image(image)) found.emplace_back(image);
    if (has_image(debian) && !has_image(bash)) make_bash_image();
    if (has_image(bash)) found.emplace_back(bash);
    return found;
  }();
  return all;
}

bool has_engine() {
  if (!support::has_engine()) return false;
  if (!images().empty()) return true;
  MESSAGE("SKIPPED: the engine has none of the images for tests");
  return false;
}

bool has_debian() { return support::has_engine_with(debian); }

using Change = std::function<void(ContainerExecutorOptions&)>;

// An executor with a container and a workspace of its own.
class Box {
 public:
  explicit Box(const std::string& image, const Change& change = {}) {
    if (::chown(workspace.path().c_str(), 1000, 1000) != 0) support::fail("chown", "");
    ContainerExecutorOptions options;
    options.workspace = workspace.path();
    options.container.image = image;
    options.container.user = ordinary_user;
    options.on_audit = log.callback();
    if (change) change(options);
    codeexec::Expected<ContainerExecutor> made = ContainerExecutor::create(options);
    REQUIRE_MESSAGE(made, made.error().message);
    executor_ = std::make_unique<ContainerExecutor>(*std::move(made));
  }
  ~Box() {
    if (executor_) docker({"rm", "-f", name()});
  }
  const ContainerExecutor& executor() const { return *executor_; }
  const std::string& name() const { return executor_->container().name(); }
  Result run(const std::string& script) const { return executor_->run(script); }
  Result run(const Command& command) const { return executor_->run(command); }
  // Its last handle, so that its container goes away.
  void drop() { executor_.reset(); }

  support::TempDir workspace = support::TempDir();
  support::AuditLog log = {};

 private:
  std::unique_ptr<ContainerExecutor> executor_ = {};
};

// For tests that leave a container as it was.
const Box& shared_box(const std::string& image) {
  static std::map<std::string, std::unique_ptr<Box>> boxes;
  std::unique_ptr<Box>& box = boxes[image];
  if (!box) box = std::make_unique<Box>(image);
  return *box;
}

std::string describe(const Result& result) {
  std::string text =
      result.summary() + " | " + result.message + " | out: " + result.out + " | err: " + result.err;
  for (const std::string& note : result.notes) text += " | note: " + note;
  return text;
}

// A program that no other test starts, and that does not end by itself.
std::string endless() {
  static std::atomic<int> count{0};
  return "sleep " + std::to_string(700000000 + ::getpid() % 10000 * 10000 + ++count);
}

// What runs in a container, as the host sees it.
std::string processes(const std::string& container) {
  return docker({"top", container, "-eo", "pid,args"}).out;
}

// Whether a program is in a container, once what was killed had time to die.
bool left_in(const std::string& container, const std::string& program) {
  return !comes_true([&] { return !has(processes(container), program); }, seconds(60));
}

bool container_exists(const std::string& name) {
  return docker({"container", "inspect", name}).succeeded();
}

bool prints(const codeexec::Execution& execution, const std::string& text) {
  return comes_true([&] { return has(execution.read(Stream::out, 0).text, text); });
}

// The next command of the same executor is well.
void check_usable(const Box& box) {
  const Result result = box.run("echo still here");
  CHECK_MESSAGE(result.succeeded(), describe(result));
  CHECK(result.out == "still here\n");
}

// A program of the engine's that does something else than `docker`.
std::string fake_engine(const support::TempDir& folder, const std::string& script) {
  return folder.file("engine", "#!/bin/sh\n" + script, 0755);
}

std::string all_bytes() {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  return bytes;
}

// What a command writes, byte for byte.
struct Raw {
  std::string out = {};
  std::string err = {};
  codeexec::Function<void(Stream, std::string_view)> callback() {
    return [this](Stream stream, std::string_view bytes) {
      (stream == Stream::out ? out : err).append(bytes);
    };
  }
};

// Ends the test unless the engine holds a container to what was asked: without that, what comes
// next would be a danger to the host.
void require_limit(const Box& box, const std::string& field, const std::string& value) {
  REQUIRE(box.executor().container().ensure());
  const std::string limit =
      docker({"container", "inspect", "-f", "{{.HostConfig." + field + "}}", box.name()}).out;
  REQUIRE(limit == value + "\n");
}

}  // namespace

// Streams -----------------------------------------------------------------------------------------

TEST_CASE("W-38: a command in a container has both streams apart, its status and its place") {
  if (!has_engine()) return;
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box& box = shared_box(image);
    const Result result = box.run("echo out; echo err >&2; exit 7");
    CHECK_MESSAGE(result.outcome == Outcome::exited, describe(result));
    CHECK(result.exit_code == 7);
    CHECK(result.out == "out\n");
    CHECK(result.err == "err\n");
    CHECK(result.message.empty());
    CHECK(result.pid > 1);

    const Result place = box.run("pwd; cat /etc/hostname; echo $PPID; id -u; id -g");
    const std::vector<std::string> lines = support::lines_of(place.out);
    REQUIRE_MESSAGE(lines.size() == 5, describe(place));
    CHECK(lines[0] == box.workspace.path());
    CHECK(lines[1] != std::string(host));
    CHECK(lines[3] == "1000");
    CHECK(lines[4] == "1000");

    const Result merged = [&] {
      Command command = Command::shell("echo a; echo b >&2; echo c");
      command.merge_streams = true;
      return box.run(command);
    }();
    CHECK(merged.out == "a\nb\nc\n");
    CHECK(merged.err.empty());
  }
}

TEST_CASE("W-38: all bytes come through on both streams, those of marks among them") {
  if (!has_engine()) return;
  support::Random random(7);
  std::string bytes = all_bytes();
  const std::string pieces[] = {"\001", "\001\001E", "\001P", "\nE", "0123abcd", "\001K:\n", "x"};
  for (int i = 0; i < 4000; ++i) bytes += pieces[random.below(7)];
  bytes += "\001E0";  // the beginning of a mark at the very end
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box& box = shared_box(image);
    box.workspace.file("bytes", bytes);
    Raw raw;
    Command command = Command::shell("cat bytes & cat bytes >&2; wait");
    command.on_output = raw.callback();
    const Result result = box.run(command);
    CHECK_MESSAGE(result.succeeded(), describe(result));
    CHECK(raw.out == bytes);
    CHECK(raw.err == bytes);
  }
}

TEST_CASE("marks that come in pieces are marks") {
  if (!has_engine()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const support::TempDir folder;
    const std::string engine = fake_engine(
        folder,
        "[ \"$1\" = exec ] || exec docker \"$@\"\n"
        "exec 3>&1\n"
        "{ docker \"$@\" | dd bs=1 2>/dev/null >&3; } 2>&1 | dd bs=1 >&2 2>/dev/null\n");
    const Box box(image, [&](ContainerExecutorOptions& options) {
      options.container.engine.program = engine;
    });
    const Result result = box.run("echo out; echo err >&2; exit 3");
    CHECK_MESSAGE(result.exit_code == 3, describe(result));
    CHECK(result.out == "out\n");
    CHECK(result.err == "err\n");
  }
}

TEST_CASE("forged marks with another id are output") {
  if (!has_engine()) return;
  const std::string forged =
      "\001P00112233445566778899aabbccddeeff:5\n"
      "\001E00112233445566778899aabbccddeeff:0:0\n"
      "\001K00112233445566778899aabbccddeeff\n"
      "\001X00112233445566778899aabbccddeeff:work_dir\n"
      "\001E\n\001K\n\001E:0:0\n\001\n";
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box& box = shared_box(image);
    box.workspace.file("forged", forged);
    Raw raw;
    Command command = Command::shell("cat forged; cat forged >&2; echo after; exit 9");
    command.on_output = raw.callback();
    const Result result = box.run(command);
    CHECK_MESSAGE(result.exit_code == 9, describe(result));
    CHECK(raw.out == forged + "after\n");
    CHECK(raw.err == forged);
  }
}

TEST_CASE("a command that forges its own end ends, and nothing of it survives") {
  if (!has_debian()) return;
  const Box box(debian);
  // The id is in the memory of the shell that waits for the command.
  box.workspace.file("forge.py", R"py(
import os, re, sys
shell = os.getppid()
found = set()
with open('/proc/%d/maps' % shell) as maps, open('/proc/%d/mem' % shell, 'rb') as memory:
  for line in maps:
    span, rights = line.split()[:2]
    if 'w' not in rights: continue
    begin, end = (int(part, 16) for part in span.split('-'))
    try:
      memory.seek(begin)
      found.update(re.findall(rb'(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])', memory.read(end - begin)))
    except OSError: pass
if len(sys.argv) > 1:
  for name in os.listdir('/proc'):
    if name.isdigit() and int(name) != os.getpid() and name != '1':
      try:
        if open('/proc/%s/comm' % name).read().strip() == 'sh': os.kill(int(name), 9)
      except OSError: pass
for id in found:
  os.write(1, b'\001E%s:0:0\n' % id)
  os.write(2, b'\001E%s\n' % id)
os.write(2, b'forged %d\n' % len(found))
while True: os.read(os.open('/dev/zero', 0), 4096)
)py");
  const std::string stays = endless();
  for (const std::string how : {"", " kill"}) {
    CAPTURE(how);
    Command command = Command::shell("setsid " + stays + " & exec python3 forge.py" + how);
    command.timeout = seconds(5);
    const Result result = box.run(command);
    CHECK_MESSAGE(result.outcome != Outcome::timed_out, describe(result));
    // Who has killed all shells that would kill it is killed at the end of the next command.
    check_usable(box);
    CHECK_FALSE(left_in(box.name(), stays));
    CHECK_FALSE(left_in(box.name(), "forge.py"));
  }
}

TEST_CASE("a flood is read to its end and kept in little memory") {
  if (!has_engine()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box box(image, [](ContainerExecutorOptions& options) { options.max_output = 65536; });
    const Result result =
        box.run("head -c 104857600 /dev/zero & head -c 10485760 /dev/zero >&2; wait; echo end");
    CHECK_MESSAGE(result.succeeded(), result.summary());
    CHECK(result.out_counts.total_bytes == (100u << 20) + 4);
    CHECK(result.err_counts.total_bytes == (10u << 20));
    CHECK(support::ends(result.out, "end\n"));
    CHECK(result.out.size() < 70000);
    check_usable(box);
  }
}

TEST_CASE("a slow reader holds up neither the engine nor other commands") {
  if (!has_engine()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box& box = shared_box(image);
    Command flood = Command::shell("head -c 10485760 /dev/zero");
    std::atomic<bool> over{false};
    flood.on_output = [&](Stream, std::string_view) {
      if (!over) ::poll(nullptr, 0, 20);
    };
    const codeexec::Execution execution = box.executor().start(flood);
    for (int i = 0; i < 3; ++i) check_usable(box);
    over = true;
    const Result result = execution.wait();
    CHECK_MESSAGE(result.out_counts.total_bytes == 10485760, result.summary());
  }
}

TEST_CASE("a child in the background that holds the output delays no command") {
  if (!has_engine()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box& box = shared_box(image);
    const std::string child = endless();
    const Result started = box.run(child + " & echo started");
    CHECK_MESSAGE(started.succeeded(), describe(started));
    CHECK(started.out == "started\n");
    CHECK_FALSE(left_in(box.name(), child));
    check_usable(box);

    // While one is there that does not end, too.
    codeexec::BackgroundShells shells(box.executor());
    const auto shell = shells.start(Command::shell("{ sleep 1; exec " + child + "; } & wait"));
    REQUIRE(shell);
    for (int i = 0; i < 3; ++i) check_usable(box);
  }
}

// What is asked -----------------------------------------------------------------------------------

TEST_CASE("values of variables arrive as they are, whatever is in them") {
  if (!has_engine()) return;
  std::string bytes = all_bytes().substr(1);
  bytes += "'\"$(echo no)`echo no`\\\n\\n${HOME}!#&;|<>*?[~ \t\r\n\n";
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box& box = shared_box(image);
    Raw raw;
    Command command = Command::shell("printf %s \"$VALUE\"; printf %s \"$OTHER\" >&2");
    command.environment = {{"VALUE", bytes}, {"OTHER", "'"}};
    command.on_output = raw.callback();
    const Result result = box.run(command);
    CHECK_MESSAGE(result.succeeded(), describe(result));
    CHECK(raw.out == bytes);
    CHECK(raw.err == "'");
  }
}

TEST_CASE("words of an argv and of a script arrive as they are") {
  if (!has_engine()) return;
  const std::string word = "a'b\"c $(echo no) `echo no` \\ \n $HOME * \x80\xff";
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box& box = shared_box(image);
    Raw raw;
    Command command = Command::program({"printf", "%s|", word, "", "-n", "--"});
    command.on_output = raw.callback();
    const Result result = box.run(command);
    CHECK_MESSAGE(result.succeeded(), describe(result));
    CHECK(raw.out == word + "||-n|--|");
    CHECK(box.run("-x; echo \"$-\"; echo 'it''s'").out.find("it") != std::string::npos);
    CHECK(box.run("+x 2>/dev/null; echo 'quoted \"'\\'").out == "quoted \"'\n");
  }
}

TEST_CASE("W-06: nothing of a command is expanded on the host") {
  if (!has_engine()) return;
  const std::string mark = "/tmp/codeexec-expanded-" + std::to_string(::getpid());
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box& box = shared_box(image);
    const Result result =
        box.run("x=\"$(echo in >" + mark + ")\"; echo \"`cat " + mark + "`\" $(( 40 + 2 ))");
    CHECK_MESSAGE(result.out == "in 42\n", describe(result));
    CHECK(::access(mark.c_str(), F_OK) != 0);
  }
}

TEST_CASE("a script of a mebibyte runs whole") {
  if (!has_engine()) return;
  std::string script = "n=0\n";
  while (script.size() < (1u << 20))
    script += "n=$((n+1)) # 'odd quote \" \\ $(no) " + std::string(1000, '#') + "\n";
  const auto lines = std::count(script.begin(), script.end(), '\n') - 1;
  script += "echo $n; read line; echo \"read: $line\"; ls /tmp/.codeexec* 2>/dev/null; exit 5";
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box& box = shared_box(image);
    Command command = Command::shell(script);
    Result result = box.run(command);
    CHECK_MESSAGE(result.exit_code == 5, (result.summary() + result.message + result.err));
    CHECK(result.out == std::to_string(lines) + "\nread: \n");
    command.input = "a line\n";
    result = box.run(command);
    CHECK(result.exit_code == 5);
    CHECK(support::begins(result.out, std::to_string(lines) + "\nread: a line\n"));
  }
}

TEST_CASE("input of a mebibyte arrives whole, and a command without any has none") {
  if (!has_engine()) return;
  support::Random random(3);
  std::string input;
  while (input.size() < (1u << 20)) input += static_cast<char>(random.below(256));
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box& box = shared_box(image);
    Raw raw;
    Command command = Command::shell("cat; exit 4");
    command.input = input;
    command.on_output = raw.callback();
    const Result result = box.run(command);
    CHECK_MESSAGE(result.exit_code == 4, result.summary());
    CHECK(raw.out == input);

    // One that does not read all of it, or none.
    command.script = "head -c 5; exit 6";
    CHECK(box.run(command).exit_code == 6);
    command.script = "exit 8";
    CHECK(box.run(command).exit_code == 8);
    check_usable(box);
    const Result none = box.run("cat; echo $?");
    CHECK_MESSAGE(none.out == "0\n", describe(none));
    // (The workspace lies in /tmp, too.)
    CHECK(box.run("ls -A /tmp | grep '^.codeexec'").out.empty());
  }
}

TEST_CASE("a running command is written to and read from") {
  if (!has_engine()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box& box = shared_box(image);
    Command command = Command::shell(
        "while read -r line; do echo \"got: $line\"; done; printf 'Name: '; echo over >&2");
    command.keep_input_open = true;
    const codeexec::Execution execution = box.executor().start(command);
    REQUIRE(execution.write("one\n"));
    CHECK(prints(execution, "got: one\n"));
    REQUIRE(execution.write("two\nthree"));
    CHECK(prints(execution, "got: two\n"));
    execution.close_input();
    const Result result = execution.wait();
    CHECK_MESSAGE(result.succeeded(), describe(result));
    CHECK(result.out == "got: one\ngot: two\nName: ");
    CHECK(result.err == "over\n");
  }
}

TEST_CASE(
    "the handle of a command that has ended holds no descriptors, if its input was open") {
  if (!has_engine()) return;
  const Box& box = shared_box(images().front());
  Command command = Command::shell("read -r line; exit 3");
  command.keep_input_open = true;
  std::vector<codeexec::Execution> ended;
  const auto run = [&] {
    ended.push_back(box.executor().start(command));
    REQUIRE(ended.back().write("one\n"));
    CHECK(ended.back().wait().exit_code == 3);
  };
  run();
  const int before = support::count_descriptors();
  for (int i = 0; i < 20; ++i) run();
  // An exec that waits for its command may be there or not: it has four.
  CHECK(comes_true([&] { return support::count_descriptors() < before + 10; }));
}

TEST_CASE("what cannot be started says why and runs nowhere") {
  if (!has_engine()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box& box = shared_box(image);
    const Result missing = box.run(Command::program({"no-such-program", "x"}));
    CHECK_FALSE(missing.succeeded());
    CHECK_MESSAGE(has(missing.err + missing.message, "no-such-program"), describe(missing));
    CHECK((missing.exit_code == 127 || missing.outcome == Outcome::not_started));

    Command command = Command::shell("echo ran");
    command.work_dir = box.workspace / "not-there";
    const Result nowhere = box.run(command);
    CHECK(nowhere.outcome == Outcome::refused);
    CHECK(nowhere.rule == "work_dir");
    // The gate has seen it, the container has not.
    support::TempDir other;
    const Box wide(image, [&](ContainerExecutorOptions& options) {
      options.roots = {{options.workspace, codeexec::Permission::write}};
      options.container.mounts = {};
    });
    command.work_dir = "/";
    const Result outside = wide.run(command);
    CHECK_MESSAGE(outside.outcome == Outcome::refused, describe(outside));

    command = Command::shell("echo ran");
    command.interpreter = "/no/such/shell";
    const Result no_shell = box.run(command);
    CHECK_FALSE(no_shell.succeeded());
    CHECK_MESSAGE(has(no_shell.err + no_shell.message, "/no/such/shell"), describe(no_shell));
    CHECK(no_shell.out.empty());

    const Box stranger(image, [](ContainerExecutorOptions& options) {
      options.container.user = "nobody-of-that-name";
    });
    const Result no_user = stranger.run("echo ran");
    CHECK(no_user.outcome == Outcome::not_started);
    CHECK_MESSAGE(has(no_user.message, "nobody-of-that-name"), describe(no_user));
    CHECK(no_user.out.empty());

    std::string with_nul = "echo ran";
    with_nul += '\0';
    CHECK_FALSE(box.run(with_nul).succeeded());
    check_usable(box);
  }
}

TEST_CASE("a directory that is gone in the container fails the start and names itself") {
  if (!has_engine()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box box(image);
    check_usable(box);
    // Only the host sees it: the container has another folder of that name.
    const std::string folder = box.workspace.directory("folder");
    Command command = Command::shell("echo ran");
    command.work_dir = folder;
    CHECK(box.run(command).succeeded());
    ::chmod(folder.c_str(), 0700);
    const Result result = box.run(command);
    CHECK(result.outcome == Outcome::not_started);
    CHECK(result.step == "work_dir");
    CHECK_MESSAGE(has(result.message, "folder"), describe(result));
    check_usable(box);
  }
}

TEST_CASE("the shell of commands can be another one") {
  if (!has_debian()) return;
  const Box box(debian, [](ContainerExecutorOptions& options) { options.shell = "/bin/bash"; });
  CHECK(box.run("echo ${BASH_VERSION:+bash} {1..3}").out == "bash 1 2 3\n");
  Command command = Command::shell("echo ${BASH_VERSION:-other}");
  command.interpreter = "/bin/dash";
  CHECK(box.run(command).out == "other\n");
}

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
  if (!has_engine()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box box(
        image, [](ContainerExecutorOptions& options) { options.kill_grace = milliseconds(100); });
    for (const std::string shape : trees) {
      CAPTURE(shape);
      const std::string program = endless();
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
  if (!has_engine()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box& box = shared_box(image);
    for (const std::string shape : trees) {
      CAPTURE(shape);
      const std::string program = endless();
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
  if (!has_engine()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box& box = shared_box(image);
    const std::string other = endless();
    const codeexec::Execution stays =
        box.executor().start(Command::shell("( setsid " + other + " & ); echo begin; " + other));
    REQUIRE(prints(stays, "begin"));
    const std::string program = endless();
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
  if (!has_engine()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box box(image);
    const std::string program = endless();
    // Processes are looked at in the order of their names, of which 9 is the last.
    const Result result = box.run(
        "ulimit -m 12345; while :; do " + program +
        " & case $! in 9*) break;; esac; kill $!; wait $! 2>/dev/null; done; echo done");
    CHECK_MESSAGE(result.out == "done\n", describe(result));
    CHECK_FALSE(left_in(box.name(), program));
  }
}

TEST_CASE("a command that handles SIGTERM has its grace and tells its own status") {
  if (!has_engine()) return;
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
  if (!has_engine()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box box(
        image, [](ContainerExecutorOptions& options) { options.kill_grace = milliseconds(100); });
    const std::string program = endless();
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
  if (!has_engine()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    for (const char* user : {ordinary_user, "0:0"}) {
      CAPTURE(std::string(user));
      const Box box(image, [&](ContainerExecutorOptions& options) {
        options.container.user = user;
        // Its root may not enter what is another's.
        if (*user == '0' && ::chown(options.workspace.c_str(), 0, 0) != 0)
          support::fail("chown", "");
      });
      const std::string program = endless();
      Command command =
          Command::shell("setsid " + program + " & echo begin; kill -9 -1; " + program);
      command.timeout = seconds(20);
      const Result result = box.run(command);
      CHECK_FALSE(result.succeeded());
      // A shell that is among the killed ones can print nothing more; one that is not goes on.
      CHECK_MESSAGE((result.outcome == Outcome::signaled || result.outcome == Outcome::timed_out),
                    describe(result));
      check_usable(box);
      CHECK_FALSE(left_in(box.name(), program));
    }
  }
}

TEST_CASE("a command that was killed by itself is told apart from one that ended") {
  if (!has_engine()) return;
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
    const std::string program = endless();
    const Result parent = box.run("setsid " + program + " & echo begin; kill -9 $PPID; " + program);
    CHECK_FALSE(parent.succeeded());
    CHECK_FALSE(left_in(box.name(), program));
    check_usable(box);
  }
}

TEST_CASE("a fork bomb stays in the container, which is usable afterwards") {
  if (!has_engine()) return;
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
  if (!has_engine()) return;
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

// The container goes away -------------------------------------------------------------------------

TEST_CASE("a container that is killed, removed or restarted under a command is told") {
  if (!has_engine()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const std::vector<std::vector<std::string>> ways = {
        {"kill"}, {"rm", "-f"}, {"restart", "-t", "0"}};
    for (const std::vector<std::string>& way : ways) {
      CAPTURE(way[0]);
      const Box box(image);
      const std::string program = endless();
      const codeexec::Execution execution =
          box.executor().start(Command::shell("echo begin; " + program));
      REQUIRE(prints(execution, "begin"));
      std::vector<std::string> words = way;
      words.push_back(box.name());
      CHECK(docker(words).succeeded());
      const Result result = execution.wait();
      CHECK_FALSE(result.succeeded());
      CHECK_MESSAGE(result.outcome == Outcome::signaled, describe(result));
      CHECK_MESSAGE(!result.message.empty(), describe(result));
      CHECK(result.out == "begin\n");
      check_usable(box);
      CHECK_FALSE(left_in(box.name(), program));
      // Between two commands.
      words.back() = box.name();
      CHECK(docker(words).succeeded());
      check_usable(box);
    }
  }
}

TEST_CASE("a removal that goes on already is waited for") {
  if (!has_engine()) return;
  const support::TempDir folder;
  const std::string file = folder / "removal";
  const std::string engine = fake_engine(
      folder, "if [ \"$1\" = rm ] && [ ! -e '" + file + "2' ]; then\n  if [ -e '" + file +
                  "1' ]; then : >'" + file + "2'; else : >'" + file +
                  "1'; fi\n  echo 'removal of container x is already in progress' >&2; exit 1\nfi\n"
                  "exec docker \"$@\"\n");
  const auto use = [](ContainerExecutorOptions& options, std::uint64_t memory) {
    options.agent_id = "removal-" + std::to_string(::getpid());
    options.container.persistent = true;
    options.container.memory = memory;
  };
  const Box old(images()[0], [&](ContainerExecutorOptions& options) { use(options, 64 << 20); });
  check_usable(old);
  const Box box(images()[0], [&](ContainerExecutorOptions& options) {
    use(options, 65 << 20);
    options.container.engine.program = engine;
  });
  check_usable(box);
  CHECK(support::exists(file + "2"));
}

namespace {

// An exec that starts while its container is paused would lock up Docker 20.10: waits for the one
// that is started ahead, when a command has ended. One that runs has two shells of that name.
void require_waiting(const Box& box, std::ptrdiff_t shells) {
  REQUIRE(comes_true([&] {
    const std::vector<std::string> lines = support::lines_of(processes(box.name()));
    return std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
             return support::ends(line, " sh");
           }) == shells;
  }));
}

}  // namespace

TEST_CASE("a container that is paused between two commands is woken") {
  if (!has_engine()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box box(image);
    check_usable(box);
    require_waiting(box, 1);
    REQUIRE(docker({"pause", box.name()}).succeeded());
    check_usable(box);
    check_usable(box);
  }
}

TEST_CASE("a container that is paused under a command does not hold the timeout") {
  if (!has_engine()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box box(
        image, [](ContainerExecutorOptions& options) { options.kill_grace = milliseconds(200); });
    const std::string program = endless();
    Command command = Command::shell("echo begin; " + program);
    command.timeout = seconds(3);
    const codeexec::Execution execution = box.executor().start(command);
    REQUIRE(prints(execution, "begin"));
    require_waiting(box, 2);
    REQUIRE(docker({"pause", box.name()}).succeeded());
    const Result result = execution.wait();
    CHECK_MESSAGE(result.outcome == Outcome::timed_out, describe(result));
    CHECK_FALSE(result.message.empty());
    check_usable(box);
    CHECK_FALSE(left_in(box.name(), program));
  }
}

// Cancelling --------------------------------------------------------------------------------------

TEST_CASE("a command is cancelled before, during its start and while it runs") {
  if (!has_engine()) return;
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
    const std::string program = endless();
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

TEST_CASE("a start that hangs is cancelled at once") {
  if (!has_engine()) return;
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
  if (!has_engine()) return;
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

TEST_CASE("an engine whose socket nobody answers is told in time") {
  if (!has_engine()) return;
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
  if (!has_engine()) return;
  const support::TempDir folder;
  const std::string engine =
      fake_engine(folder, "[ \"$1\" = exec ] || exec docker \"$@\"\nexec sleep 1000\n");
  const Box box(images()[0], [&](ContainerExecutorOptions& options) {
    options.container.engine.program = engine;
    options.container.start_timeout = milliseconds(500);
  });
  check_told(box.run("echo ran"), "start");
  CHECK_FALSE(support::exists(box.workspace / "ran"));
}

// The host goes away ------------------------------------------------------------------------------

namespace {

// A program that runs a command in a container of its own, is killed, and is forgotten.
struct KilledHost {
  std::string container = {};
  std::string program = endless();
  bool began = false;

  KilledHost(const std::string& image, const Change& change) {
    const support::TempDir folder;
    const std::string began_file = folder / "container";
    const pid_t pid = ::fork();
    if (pid == 0) {
      const Box box(image, change);
      const codeexec::Execution execution =
          box.executor().start(Command::shell("setsid " + program + " & echo begin; " + program));
      if (prints(execution, "begin")) support::write_file(began_file, box.name());
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
  if (!has_engine()) return;
  if (support::thread_sanitizer) {
    MESSAGE("SKIPPED: ThreadSanitizer ends a fork with threads");
    return;
  }
  for (const std::string& image : images()) {
    CAPTURE(image);
    const KilledHost host(image, {});
    REQUIRE(host.began);
    CHECK(comes_true([&] { return !container_exists(host.container); }));
  }
}

TEST_CASE("W-47: commands in a persistent container die with the program that asked for them") {
  if (!has_engine()) return;
  if (support::thread_sanitizer) {
    MESSAGE("SKIPPED: ThreadSanitizer ends a fork with threads");
    return;
  }
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
  if (!has_engine()) return;
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
  if (!has_engine()) return;
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

TEST_CASE("any number of execs may wait ahead") {
  if (!has_engine()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    for (const std::size_t warm : {std::size_t{0}, std::size_t{3}}) {
      CAPTURE(warm);
      const Box box(image,
                    [&](ContainerExecutorOptions& options) { options.container.warm = warm; });
      for (int i = 0; i < 5; ++i) {
        const Result result = box.run("echo " + std::to_string(i));
        CHECK_MESSAGE(result.out == std::to_string(i) + "\n", describe(result));
      }
      std::vector<std::thread> threads;
      std::atomic<int> good{0};
      for (int i = 0; i < 5; ++i)
        threads.emplace_back([&] { good += box.run("echo x").out == "x\n"; });
      for (std::thread& thread : threads) thread.join();
      CHECK(good == 5);
    }
  }
}

TEST_CASE("two executors have two containers, and what one writes to /tmp the other has not") {
  if (!has_engine()) return;
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
  if (!has_engine()) return;
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
  if (!has_engine()) return;
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
    const Box box(debian,
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
  if (!has_engine()) return;
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
  if (!has_engine()) return;
  const Box box(images()[0],
                [](ContainerExecutorOptions& options) { options.policy.enable_sudo = true; });
  CHECK(box.executor().check(Command::shell("sudo apt-get update")).outcome != Outcome::refused);
  CHECK(box.executor().check(Command::shell("sudo rm -rf /")).outcome == Outcome::refused);
}

TEST_CASE("secrets of a container are masked in the output and on the audit log") {
  if (!has_engine()) return;
  const support::EnvironmentGuard host("CODEEXEC_TEST_TOKEN", "token-of-the-host-4711");
  for (const std::string& image : images()) {
    CAPTURE(image);
    Box box(image, [](ContainerExecutorOptions& options) {
      options.container.credentials.env_vars = {"CODEEXEC_TEST_TOKEN"};
    });
    const Result result = box.run(
        "echo \"<$CODEEXEC_TEST_TOKEN>\"; echo \"$CODEEXEC_TEST_TOKEN\" >&2; "
        "echo ${#CODEEXEC_TEST_TOKEN}; : token-of-the-host-4711");
    CHECK_MESSAGE(result.out == "<[redacted]>\n22\n", describe(result));
    CHECK(result.err == "[redacted]\n");
    CHECK_FALSE(has(result.command, "4711"));
    for (const codeexec::Json& record : box.log.take()) CHECK_FALSE(has(record.dump(), "4711"));
    CHECK_FALSE(has(docker({"inspect", box.name()}).out, "4711"));
  }
}

// Background shells and code ----------------------------------------------------------------------

TEST_CASE("W-34: background output in a container is whole; W-36: with its streams and status") {
  if (!has_engine()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box& box = shared_box(image);
    codeexec::BackgroundShells shells(box.executor());
    const auto shell = shells.start(Command::shell(
        "echo a; sleep 0.1; echo b; echo e1 >&2; sleep 0.1; printf 'first\\nsecond'; exit 9"));
    REQUIRE(shell);
    REQUIRE(shells.wait(shell->id));
    const auto output = shells.read(shell->id);
    REQUIRE(output);
    CHECK(output->out.text == "a\nb\nfirst\nsecond");
    CHECK(output->err.text == "e1\n");
    CHECK(output->status.state == codeexec::ShellState::failed);
    CHECK(output->status.result.exit_code == 9);

    Result failure;
    CHECK_FALSE(shells.start(Command::shell("sudo id"), &failure));
    CHECK(failure.outcome == Outcome::refused);
  }
}

TEST_CASE("W-35: a background command is killed in its container, with all that it started") {
  if (!has_engine()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box& box = shared_box(image);
    codeexec::BackgroundShells shells(box.executor());
    const std::string program = endless();
    const std::string other = endless();
    const auto shell =
        shells.start(Command::shell("setsid " + program + " & echo begin; " + program));
    const auto stays = shells.start(Command::shell("echo begin; " + other));
    REQUIRE(shell);
    REQUIRE(stays);
    codeexec::ShellWait begin;
    begin.pattern = *codeexec::Regex::compile("begin");
    REQUIRE(shells.wait(shell->id, begin));
    REQUIRE(shells.wait(stays->id, begin));
    CHECK(has(processes(box.name()), program));
    const auto killed = shells.kill(shell->id);
    REQUIRE(killed);
    CHECK(*killed);
    CHECK_FALSE(left_in(box.name(), program));
    CHECK(shells.status(shell->id)->state == codeexec::ShellState::killed);
    CHECK(has(processes(box.name()), other));
    CHECK(shells.status(stays->id)->state == codeexec::ShellState::running);
  }
}

TEST_CASE("background shells are written to, and end with their owner") {
  if (!has_engine()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box& box = shared_box(image);
    const std::string program = endless();
    {
      codeexec::BackgroundShells shells(box.executor());
      Command command = Command::shell("read -r line; echo \"got $line\"; exec " + program);
      command.keep_input_open = true;
      const auto shell = shells.start(command);
      REQUIRE(shell);
      REQUIRE(shells.write(shell->id, "a line\n"));
      codeexec::ShellWait got;
      got.pattern = *codeexec::Regex::compile("got a line");
      const auto end = shells.wait(shell->id, got);
      REQUIRE(end);
      CHECK(*end == codeexec::ShellWaitEnd::matched);
      CHECK(has(processes(box.name()), program));
    }
    CHECK_FALSE(left_in(box.name(), program));
  }
}

TEST_CASE("code runs in the container") {
  if (!has_debian()) return;
  const Box& box = shared_box(debian);
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
  if (!has_engine()) return;
  const Box box(images()[0]);
  CHECK(box.run("echo logged-output; exit 3").exit_code == 3);
  const support::TempDir folder;
  const auto saved = box.executor().container().save_log(folder / "deep/log");
  REQUIRE_MESSAGE(saved, saved.error().message);
  const std::string log = support::read_file(folder / "deep/log");
  CHECK_MESSAGE(has(log, "echo logged-output"), log);
  CHECK(has(log, "logged-output\n"));
}
