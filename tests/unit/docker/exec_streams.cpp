// Commands in containers, with a real engine and real shells: their streams, and what is asked.
// See parity.cpp for what must be set. Each test runs in every image of `images()` that the engine
// has.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "../../helpers/engine_support.hpp"
#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"
#include "exec_helpers.hpp"

using codeexec::Command;
using codeexec::ContainerExecutorOptions;
using codeexec::Outcome;
using codeexec::Result;
using codeexec::Stream;
using std::chrono::seconds;
using support::Box;
using support::check_usable;
using support::comes_true;
using support::debian_image;
using support::describe;
using support::endless_program;
using support::fake_engine;
using support::has;
using support::has_debian;
using support::has_images;
using support::images;
using support::left_in;
using support::prints_text;
using support::shared_box;

namespace {

std::string all_bytes() {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  return bytes;
}

// What a command writes, byte for byte.
struct RawOutput {
  std::string out = {};
  std::string err = {};
  codeexec::Function<void(Stream, std::string_view)> callback() {
    return [this](Stream stream, std::string_view bytes) {
      (stream == Stream::out ? out : err).append(bytes);
    };
  }
};

}  // namespace

// Streams -----------------------------------------------------------------------------------------

TEST_CASE("W-38: a command in a container has both streams apart, its status and its place") {
  if (!has_images()) return;
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
  if (!has_images()) return;
  support::Random random(7);
  std::string bytes = all_bytes();
  const std::string pieces[] = {"\001", "\001\001E", "\001P", "\nE", "0123abcd", "\001K:\n", "x"};
  for (int i = 0; i < 4000; ++i) bytes += pieces[random.below(7)];
  bytes += "\001E0";  // the beginning of a mark at the very end
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box& box = shared_box(image);
    box.workspace.file("bytes", bytes);
    RawOutput raw;
    Command command = Command::shell("cat bytes & cat bytes >&2; wait");
    command.on_output = raw.callback();
    const Result result = box.run(command);
    CHECK_MESSAGE(result.succeeded(), describe(result));
    CHECK(raw.out == bytes);
    CHECK(raw.err == bytes);
  }
}

TEST_CASE("marks that come in pieces are marks") {
  if (!has_images()) return;
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
  if (!has_images()) return;
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
    RawOutput raw;
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
  const Box box(debian_image);
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
  const std::string stays = endless_program();
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
  if (!has_images()) return;
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
  if (!has_images()) return;
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
  if (!has_images()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box& box = shared_box(image);
    const std::string child = endless_program();
    const Result started = box.run(child + " & echo started");
    CHECK_MESSAGE(started.succeeded(), describe(started));
    CHECK(started.out == "started\n");
    CHECK_FALSE(left_in(box.name(), child));
    check_usable(box);

    // While one is there that does not end, too.
    codeexec::Jobs jobs(box.executor());
    const auto job = jobs.start(Command::shell("{ sleep 1; exec " + child + "; } & wait"));
    REQUIRE(job);
    for (int i = 0; i < 3; ++i) check_usable(box);
  }
}

// What is asked -----------------------------------------------------------------------------------

TEST_CASE("values of variables arrive as they are, whatever is in them") {
  if (!has_images()) return;
  std::string bytes = all_bytes().substr(1);
  bytes += "'\"$(echo no)`echo no`\\\n\\n${HOME}!#&;|<>*?[~ \t\r\n\n";
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box& box = shared_box(image);
    RawOutput raw;
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
  if (!has_images()) return;
  const std::string word = "a'b\"c $(echo no) `echo no` \\ \n $HOME * \x80\xff";
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box& box = shared_box(image);
    RawOutput raw;
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
  if (!has_images()) return;
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
  if (!has_images()) return;
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
  if (!has_images()) return;
  support::Random random(3);
  std::string input;
  while (input.size() < (1u << 20)) input += static_cast<char>(random.below(256));
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box& box = shared_box(image);
    RawOutput raw;
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
  if (!has_images()) return;
  for (const std::string& image : images()) {
    CAPTURE(image);
    const Box& box = shared_box(image);
    Command command = Command::shell(
        "while read -r line; do echo \"got: $line\"; done; printf 'Name: '; echo over >&2");
    command.keep_input_open = true;
    const codeexec::Execution execution = box.executor().start(command);
    REQUIRE(execution.write("one\n"));
    CHECK(prints_text(execution, "got: one\n"));
    REQUIRE(execution.write("two\nthree"));
    CHECK(prints_text(execution, "got: two\n"));
    execution.close_input();
    const Result result = execution.wait();
    CHECK_MESSAGE(result.succeeded(), describe(result));
    CHECK(result.out == "got: one\ngot: two\nName: ");
    CHECK(result.err == "over\n");
  }
}

TEST_CASE("the handle of a command that has ended holds no descriptors, if its input was open") {
  if (!has_images()) return;
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
  if (!has_images()) return;
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
  if (!has_images()) return;
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
  const Box box(debian_image,
                [](ContainerExecutorOptions& options) { options.shell = "/bin/bash"; });
  CHECK(box.run("echo ${BASH_VERSION:+bash} {1..3}").out == "bash 1 2 3\n");
  Command command = Command::shell("echo ${BASH_VERSION:-other}");
  command.interpreter = "/bin/dash";
  CHECK(box.run(command).out == "other\n");
}
