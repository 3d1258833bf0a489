// The same commands on this host and in a place: the same results.

#include "../../helpers/place_support.hpp"

#include <atomic>
#include <thread>

using codeexec::Command;
using codeexec::Outcome;
using codeexec::Result;
using namespace support;

namespace {

// What must not differ. Messages do where they name the agent's supervisor.
std::string shown(const Result& r) {
  std::string text = std::string(name(r.outcome)) + " " + std::to_string(r.exit_code) + " signal " +
                     std::to_string(r.signal) + " step " + r.step + " error " +
                     std::to_string(r.system_error) + " rule " + r.rule + " out '" + r.out +
                     "' err '" + r.err + "' left " + std::to_string(r.left_behind) + " message '" +
                     r.message + "'";
  for (const std::string& note : r.notes) text += " note '" + note + "'";
  for (const std::string& limit : r.limits_reached) text += " limit " + limit;
  return text;
}

struct Both {
  TempDir workspace = {};
  codeexec::LocalExecutor here;
  codeexec::PlaceExecutor there;

  Both() : here(make(local())), there(make_place(place_options(workspace.path()))) {}

  codeexec::LocalOptions local() const {
    codeexec::LocalOptions options;
    options.workspace = workspace.path();
    options.timeout = safety;
    return options;
  }
  void compare(const Command& command) const {
    const std::string expected = shown(here.run(command));
    CAPTURE(command.script);
    CHECK(shown(there.run(command)) == expected);
    const codeexec::Execution started = there.start(command);
    CHECK(shown(started.wait()) == expected);
  }
};

}  // namespace

TEST_CASE("place: scripts end as they end here") {
  const Both both;
  for (const char* script : {"true",
                             "exit 7",
                             "exit 255",
                             "echo out; echo err >&2",
                             "printf 'no newline'",
                             "printf 'a\\0b\\377c'",
                             "kill -9 $$",
                             "kill -SEGV $$",
                             "kill -TERM $$",
                             "pwd; cd /; pwd",
                             "cat; echo $?",
                             "no-such-program-xyz",
                             "sh -c 'exit 3' | cat",
                             "sleep 60 & echo left",
                             "(setsid sleep 60 &) ; echo daemon",
                             "trap 'echo bye' EXIT; echo hi",
                             "ulimit -c",
                             "echo \"$PWD\"",
                             "readlink /proc/self/fd/0",
                             "ls /proc/self/fd | tr '\\n' ' '",
                             "sudo true",
                             "echo a >&3",
                             "umask",
                             "-x",
                             "exec >&-; echo lost",
                             "ps -o stat= -p $$ | tr -d '+sl \\n'",
                             "nice; cat /proc/$$/oom_score_adj",
                             "trap '' TERM; echo ignoring",
                             "i=0; while [ $i -lt 500 ]; do echo $i; echo $i >&2; "
                             "i=$((i+1)); done"}) {
    both.compare(Command::shell(script));
  }
}

TEST_CASE("place: programs, input, streams in one, folders and variables") {
  const Both both;
  make_directories(both.workspace / "sub dir");
  both.compare(Command::program({"printf", "%s|", "a b", "", "c'd\"e", "$HOME", "\n"}));
  both.compare(Command::program({"no-such-program-xyz"}));
  both.compare(Command::program({both.workspace / "sub dir"}));
  both.compare(Command::program({std::string("a\0b", 3)}));
  Command command = Command::shell("cat; echo end");
  command.input = repeat("0123456789abcdef\n", 40000);
  both.compare(command);
  command.script = "head -c 5; echo; exit 4";
  both.compare(command);
  command.script = "exec <&-; sleep 0.1; echo closed";
  both.compare(command);
  command = Command::shell("for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done");
  command.merge_streams = true;
  both.compare(command);
  command = Command::shell("pwd; echo \"$PWD\"");
  command.work_dir = "sub dir";
  both.compare(command);
  command.work_dir = "missing";
  both.compare(command);
  command = Command::shell("echo \"$A|$B|$PATH\"");
  command.environment = {{"A", "x\ny"}, {"B", "\xff"}, {"PATH", "/bin:/usr/bin"}};
  both.compare(command);
  command = Command::shell("echo \"${#X}\"");
  command.environment = {{"X", repeat("v", 100000)}};
  both.compare(command);
  command = Command::shell("echo $((" + repeat("1 + ", 100000) + "1)) # " + repeat("x", 200000));
  both.compare(command);
  command = Command::shell("echo \"$BASH_VERSION\" | cut -c1");
  command.interpreter = "/bin/bash";
  both.compare(command);
}

TEST_CASE("place: a deadline ends it and its grandchildren, and so does a cancel") {
  const Both both;
  for (const char* script :
       {"echo $$; sleep 600", "trap '' TERM; echo $$; while :; do sleep 600; done",
        "(setsid sh -c 'trap \"\" TERM; while :; do sleep 600; done' & echo $!); sleep 600",
        "trap 'echo asked; exit 5' TERM; echo $$; sleep 600 & wait", "echo $$; kill -STOP $$"}) {
    CAPTURE(script);
    Command command = Command::shell(script);
    command.timeout = std::chrono::milliseconds(400);
    const Stopwatch watch;
    const Result expected = both.here.run(command);
    const Result r = both.there.run(command);
    CHECK(watch.soon());
    CHECK(r.outcome == Outcome::timed_out);
    CHECK(r.exit_code == expected.exit_code);
    CHECK(r.signal == expected.signal);
    CHECK(r.message == expected.message);
    CHECK(dies(pid_in(r.out)));

    command.timeout.reset();
    command.cancel.emplace();
    command.on_output = [token = *command.cancel](codeexec::Stream, std::string_view) {
      token.cancel();
    };
    const Result stopped = both.there.run(command);
    CHECK(stopped.outcome == Outcome::cancelled);
    CHECK(stopped.signal == expected.signal);
    CHECK(dies(pid_in(stopped.out)));
  }
  Command late = Command::shell("echo never");
  late.cancel.emplace();
  late.cancel->cancel();
  CHECK(both.there.run(late).outcome == Outcome::cancelled);
}

TEST_CASE("place: sessions hand on folder and variables") {
  const Both both;
  make_directories(both.workspace / "sub");
  codeexec::Session here;
  codeexec::Session there;
  for (const char* script :
       {"cd sub; export A='1 2'; B=3", "pwd; echo \"$A|$B\"; unset A; export C=\"$(seq 2000)\"",
        "echo \"${A-none}|${#C}\"; cd ..", "pwd; kill -9 $$", "echo \"${#C}\"; exec true",
        "yes | head -c 300000 | tr -d '\\n' > f; export D=\"$(cat f)\"; echo big", "pwd"}) {
    Command command = Command::shell(script);
    command.session = here;
    const std::string expected = shown(both.here.run(command));
    command.session = there;
    CAPTURE(script);
    CHECK(shown(both.there.run(command)) == expected);
    CHECK(there.work_dir() == here.work_dir());
  }
}

TEST_CASE("place: a flood is kept by head and tail, and counted") {
  const Both both;
  constexpr std::uint64_t size = std::uint64_t{100} << 20;
  const Result r = both.there.run("head -c " + std::to_string(size) + " /dev/zero | tr '\\0' x");
  CHECK(r.exit_code == 0);
  CHECK(r.out_counts.total_bytes == size);
  CHECK(r.message == "");
}

TEST_CASE("place: bytes of both streams arrive in order and whole, however they are read") {
  const Both both;
  Command command = Command::shell(
      "seq 1 60000; seq 1 60000 >&2; head -c 3000000 /dev/urandom > r; cat r; cat r >&2");
  std::string out;
  std::string err;
  command.on_output = [&](codeexec::Stream stream, std::string_view bytes) {
    std::string& to = stream == codeexec::Stream::out ? out : err;
    to += bytes;
    if (to.size() % 7 == 0) std::this_thread::yield();
  };
  const Result r = both.there.run(command);
  REQUIRE(r.exit_code == 0);
  const std::string random = read_file(both.workspace / "r");
  std::string expected;
  for (int i = 1; i <= 60000; ++i) expected += std::to_string(i) + "\n";
  expected += random;
  CHECK(out == expected);
  CHECK(err == expected);
}

TEST_CASE("place: what is started runs on, is written to, read from and signalled") {
  const Both both;
  Command command = Command::shell("while read -r line; do echo \"got $line\"; done; echo end");
  command.keep_input_open = true;
  const codeexec::Execution cat = both.there.start(command);
  CHECK(cat.pid() > 0);
  CHECK(cat.write("one\n"));
  const Stopwatch watch;
  while (cat.read(codeexec::Stream::out, 0).text != "got one\n" && watch.soon())
    ::poll(nullptr, 0, 2);
  CHECK(cat.write("two\n"));
  cat.close_input();
  CHECK(cat.wait().out == "got one\ngot two\nend\n");
  CHECK(both.there.start(Command::program({"no-such-program-xyz"})).pid() == -1);

  const codeexec::Execution dropped = both.there.start(Command::shell("echo $$; sleep 600"));
  const pid_t pid = dropped.pid();
  CHECK(alive(pid));
  {
    const codeexec::Execution last = both.there.start(Command::shell("sleep 600"));
    const pid_t other = last.pid();
    CHECK(alive(other));
    last.cancel();
    CHECK(last.wait().outcome == Outcome::cancelled);
    CHECK(dies(other));
  }
  dropped.cancel();
  CHECK(dropped.wait().signal == SIGTERM);
  CHECK(dies(pid));

  command.script = "trap 'echo told; exit 7' USR1; echo up; while :; do sleep 600 & wait $!; done";
  const codeexec::Execution told = both.there.start(command);
  CHECK(told.takes_input());
  while (told.read(codeexec::Stream::out, 0).text != "up\n" && watch.soon()) ::poll(nullptr, 0, 2);
  CHECK(told.signal(SIGUSR1));
  CHECK(told.wait().out == "up\ntold\n");
  CHECK(told.wait().exit_code == 7);
  CHECK(!told.signal(SIGUSR1));
  CHECK(!told.takes_input());
}

TEST_CASE("place: a terminal is made there, and its screen is here") {
  const Both both;
  Command command = Command::shell("stty size; echo $TERM; echo e >&2; cat; exit 3");
  command.terminal = codeexec::TerminalSize{30, 100};
  both.compare(command);
  command.terminal = codeexec::TerminalSize{30, 100000};
  both.compare(command);

  command = Command::shell("stty raw -echo; printf 'a\\033[3;5Hb\\033[6n'; head -c 6 | od -An -c");
  command.terminal = codeexec::TerminalSize{24, 80};
  command.keep_input_open = true;
  const codeexec::Execution run = both.there.start(command);
  CHECK(run.wait().succeeded());
  const auto screen = run.screen();
  REQUIRE(screen);
  CHECK(support::has(screen->text, "a\n\n    b"));
  // One answer, of the agent.
  CHECK(support::has(screen->text, "033   [   3   ;   6   R"));
}

TEST_CASE("place: a terminal there gets another size, and its screen here") {
  const Both both;
  Command command = Command::shell("read x; stty size; printf '\\033[30;100He'");
  command.terminal = codeexec::TerminalSize{24, 80};
  command.keep_input_open = true;
  const codeexec::Execution run = both.there.start(command);
  REQUIRE(run.resize({30, 100}));
  REQUIRE(run.write("\n"));
  CHECK(run.wait().succeeded());
  CHECK(support::has(run.wait().out, "30 100"));
  const auto screen = run.screen();
  REQUIRE(screen);
  CHECK(screen->cursor_row == 30);
  CHECK(screen->cursor_col == 100);
}

TEST_CASE("place: a handle that goes away has its command killed") {
  const Both both;
  pid_t pid = -1;
  {
    const codeexec::Execution started = both.there.start(Command::shell("trap '' TERM; sleep 600"));
    pid = started.pid();
    CHECK(alive(pid));
  }
  CHECK(dies(pid));
  CHECK(both.there.run("echo on").out == "on\n");
}

TEST_CASE("place: one that nobody reads holds up no other, and takes bounded memory") {
  const Both both;
  Command flood = Command::shell("yes");
  std::mutex reading;
  std::unique_lock<std::mutex> held(reading);
  std::atomic<bool> begun{false};
  flood.on_output = [&](codeexec::Stream, std::string_view) {
    begun = true;
    const std::lock_guard<std::mutex> wait(reading);
  };
  flood.cancel.emplace();
  std::thread reader([&] { CHECK(both.there.run(flood).outcome == Outcome::cancelled); });
  const Stopwatch watch;
  while (!begun && watch.soon()) ::poll(nullptr, 0, 2);
  for (int i = 0; i < 20; ++i) CHECK(both.there.run("echo through").out == "through\n");
  flood.cancel->cancel();
  held.unlock();
  reader.join();
}

TEST_CASE("place: 200 commands at once, none starved") {
  const Both both;
  std::vector<codeexec::Execution> all;
  for (int i = 0; i < 200; ++i) {
    Command command =
        Command::shell("echo " + std::to_string(i) + "; head -c 200000 /dev/zero; exit 3");
    command.timeout = 10 * safety;  // each waits for the others
    all.push_back(both.there.start(command));
  }
  for (int i = 0; i < 200; ++i) {
    const Result r = all[static_cast<std::size_t>(i)].wait();
    CHECK_MESSAGE(r.exit_code == 3, describe(r));
    CHECK(r.out_counts.total_bytes == 200000 + std::to_string(i).size() + 1);
  }
}

TEST_CASE("place: a flood of input and output comes as it is") {
  const Both both;
  std::string text;
  for (int i = 0; text.size() < (20u << 20); ++i) text += std::to_string(i) + "\n";
  Command command = Command::program({"cat"});
  command.input = text;
  command.max_output = text.size();
  const Result r = both.there.run(command);
  CHECK_MESSAGE(r.succeeded(), describe(r));
  CHECK(r.out == text);
  const codeexec::Execution started = both.there.start(command);
  CHECK(started.wait().out == text);
  // Nobody reads all of it.
  command.argv = {"head", "-c", "7"};
  CHECK(both.there.run(command).out == text.substr(0, 7));
}

TEST_CASE("place: secrets are masked, policy and paths hold, and all of it is recorded") {
  TempDir workspace;
  AuditLog log;
  codeexec::PlaceOptions options = place_options(workspace.path());
  options.roots = {{workspace.path()}};
  options.environment.set = {{"TOKEN", "geheimnis"}};
  options.environment.secret = {"TOKEN"};
  options.on_audit = log.callback();
  const codeexec::PlaceExecutor there = make_place(options);
  const Result r = there.run("echo $TOKEN; echo x$TOKEN >&2");
  CHECK(r.out == "[redacted]\n");
  CHECK(r.err == "x[redacted]\n");
  CHECK(r.place == "box");
  CHECK(there.run("sudo true").outcome == Outcome::refused);
  Command outside = Command::shell("true");
  outside.work_dir = "/";
  CHECK(there.run(outside).rule == "work_dir");
  const std::vector<codeexec::Json> records = log.take();
  REQUIRE(records.size() == 3);
  CHECK(records[0]["place"].as_string() == "box");
  CHECK(records[0]["stdout_bytes"].as_integer() == 11);
}

TEST_CASE("place: its own variables, with those that are set and unset") {
  TempDir workspace;
  codeexec::PlaceOptions options = place_options(workspace.path());
  options.transport = {"env",   "-i",      "HOME=/home/there", "PATH=/place/bin:/usr/bin:/bin",
                       "OF=it", "LANG=xx", CODEEXEC_MCP,       "--place"};
  options.environment.set = {{"SET", "here"}};
  make_directories(workspace / ".venv/bin");
  const codeexec::PlaceExecutor there = make_place(options);
  const Result r = there.run("echo \"$HOME|$PATH|$OF|$LANG|$SET|$VIRTUAL_ENV|$USER\"");
  CHECK(r.out == "/home/there|" + (workspace / ".venv/bin") +
                     ":/place/bin:/usr/bin:/bin|it|xx|here|" + (workspace / ".venv") + "|\n");
  CHECK(there.facts().home == "/home/there");
  CHECK(there.facts().uid == ::getuid());
  CHECK(has(there.describe_place(), there.facts().host));
}

TEST_CASE("place: a sandbox of the kernel there holds") {
  TempDir workspace;
  TempDir outside;
  codeexec::PlaceOptions options = place_options(workspace.path());
  options.sandbox.mode = codeexec::SandboxMode::best_effort;
  options.sandbox.limits.cpu_time = 1;
  const codeexec::PlaceExecutor there = make_place(options);
  if (!contains(there.facts().sandbox.enforced, "filesystem")) {
    MESSAGE("SKIPPED: this kernel has no Landlock");
    return;
  }
  CHECK(there.run("echo x > f && cat f").out == "x\n");
  CHECK(there.run("echo x > " + (outside / "f")).exit_code != 0);
  CHECK(!exists(outside / "f"));
  const Result home = there.run("echo x > \"$HOME/f\" && echo y > \"$TMPDIR/g\" && echo $HOME");
  CHECK_MESSAGE(home.exit_code == 0, describe(home));
  CHECK(begins(home.out, there.facts().home));
  const Result busy = there.run("while :; do :; done");
  CHECK(busy.limits_reached == std::vector<std::string>{"cpu_time"});
}
