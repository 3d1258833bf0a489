// Programs with a terminal of their own.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::ErrorCode;
using codeexec::Outcome;
using codeexec::Process;
using codeexec::ProcessOptions;
using codeexec::ProcessResult;
using codeexec::Stream;
using codeexec::TerminalSize;
using std::chrono::milliseconds;
using support::comes_true;
using support::describe;
using support::has;
using support::in_sandbox;
using support::lines_of;
using support::run_clean;
using support::shell;

namespace {

// A terminal that no command has.
class OtherTerminal {
 public:
  OtherTerminal() : fd_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    if (fd_ >= 0 && ::grantpt(fd_) == 0 && ::unlockpt(fd_) == 0) name_ = ::ptsname(fd_);
  }
  OtherTerminal(const OtherTerminal&) = delete;
  OtherTerminal& operator=(const OtherTerminal&) = delete;
  ~OtherTerminal() { ::close(fd_); }
  const std::string& name() const { return name_; }

 private:
  int fd_;
  std::string name_ = {};
};

bool has_terminals() {
  if (!OtherTerminal().name().empty()) return true;
  MESSAGE("SKIPPED: this system makes no pseudo-terminals");
  return false;
}

ProcessOptions on_terminal(const std::string& script, TerminalSize size = {}) {
  ProcessOptions options = shell(script);
  options.terminal = size;
  return options;
}

Process started(ProcessOptions options) {
  options.keep_input_open = true;
  auto process = Process::start(std::move(options));
  REQUIRE_MESSAGE(process, process.error().message);
  return std::move(*process);
}

bool shows(const Process& process, std::string_view text) {
  return comes_true([&] {
    const auto screen = process.screen();
    return screen && has(screen->text, text);
  });
}

}  // namespace

TEST_CASE("a terminal is all three streams of a program, and controls its session") {
  if (!has_terminals()) return;
  ProcessOptions options = on_terminal(
      "for fd in 0 1 2; do test -t $fd || echo no $fd; done; stty size; echo $TERM;"
      "echo error >&2; echo by name > /dev/tty; ps -o tpgid= -p $$ | tr -d ' '; echo $$; exit 3",
      {30, 90});
  options.environment.push_back("TERM=dumb");
  const ProcessResult result = run_clean(options);
  INFO(describe(result));
  CHECK(result.exit_code == 3);
  CHECK(result.err.empty());
  CHECK(!result.pipe_held);
  const std::vector<std::string> lines = lines_of(result.out);
  REQUIRE(lines.size() == 6);
  CHECK(lines[0] == "30 90\r");
  CHECK(lines[1] == "xterm-256color\r");
  CHECK(lines[2] == "error\r");
  CHECK(lines[3] == "by name\r");
  // In the sandbox ps may see no process.
  if (!in_sandbox()) CHECK(lines[4] == lines[5]);
}

TEST_CASE("input is typed, and its end is ctrl-d") {
  if (!has_terminals()) return;
  for (const char* input : {"", "a line\n", "no line", "two\nlines\n"}) {
    CAPTURE(std::string(input));
    ProcessOptions options = on_terminal("stty -echo; echo ready; cat; echo end");
    options.input = input;
    const ProcessResult result = run_clean(options);
    CHECK(result.succeeded());
    CHECK(has(result.out, "end\r\n"));
    for (const std::string& line : lines_of(input)) CHECK(has(result.out, line));
  }
  const Process process = started(on_terminal("cat; echo over"));
  REQUIRE(process.write("typed\n"));
  CHECK(shows(process, "typed\ntyped"));
  process.close_input();
  CHECK(process.wait().succeeded());
  CHECK(has(process.wait().out, "over"));
  const auto late = process.write("late");
  REQUIRE(!late);
  CHECK(late.error().code == ErrorCode::io);
}

TEST_CASE("keys are signals for the program in the foreground") {
  if (!has_terminals()) return;
  // A shell that just starts a program by vfork may keep the signal from both.
  const Process process = started(on_terminal("exec cat"));
  REQUIRE(process.write("ready\n"));
  REQUIRE(shows(process, "ready\nready"));
  REQUIRE(process.write("\x03"));
  const ProcessResult& result = process.wait();
  INFO(describe(result));
  CHECK(result.signal == SIGINT);
}

TEST_CASE("the terminal answers the questions of a program") {
  if (!has_terminals()) return;
  // It reads an answer of so many bytes.
  const std::string ask =
      "stty raw -echo; printf 'ab\\033[6n'; head -c 6 | od -An -c; printf '\\033[5n';"
      "head -c 4 | od -An -c";
  const Process process = started(on_terminal(ask));
  const ProcessResult& result = process.wait();
  INFO(describe(result));
  CHECK(has(result.out, "033   [   1   ;   3   R"));
  CHECK(has(result.out, "033   [   0   n"));
}

TEST_CASE("the screen is there while a program runs and when it has ended") {
  if (!has_terminals()) return;
  const Process process =
      started(on_terminal("printf 'one\\033[3;5Htwo'; read x; printf '\\033[Hnew'", {5, 20}));
  REQUIRE(shows(process, "one\n\n    two"));
  auto screen = process.screen();
  CHECK(screen->cursor_row == 3);
  CHECK(screen->cursor_col == 8);
  REQUIRE(process.write("\n"));
  CHECK(process.wait().succeeded());
  screen = process.screen();
  REQUIRE(screen);
  CHECK(screen->text == "new\n\n    two");
  // The output stays as it came.
  CHECK(has(process.wait().out, "one\x1b[3;5Htwo"));
  CHECK(has(process.read(Stream::out, 0).text, "one\x1b[3;5Htwo"));
}

TEST_CASE("all that a program writes comes, however it ends") {
  if (!has_terminals()) return;
  ProcessOptions options = on_terminal("seq 1 50000; printf last");
  const ProcessResult result = run_clean(options);
  CHECK(result.succeeded());
  CHECK(lines_of(result.out).size() == 50001);
  CHECK(support::ends(result.out, "50000\r\nlast"));
  CHECK(result.message.empty());
}

TEST_CASE("a program that closes its terminal goes on") {
  if (!has_terminals()) return;
  const ProcessResult result =
      run_clean(on_terminal("echo before; exec < /dev/null > /dev/null 2>&1; sleep 0.1; exit 7"));
  INFO(describe(result));
  CHECK(result.exit_code == 7);
  CHECK(result.out == "before\r\n");
  CHECK(result.message.empty());
}

TEST_CASE("what is left in the background does not hold the terminal") {
  if (!has_terminals()) return;
  for (const char* script : {"sleep 600 & echo done", "trap '' HUP; sleep 600 & echo done",
                             "setsid sleep 600 & echo done; sleep 0.1"}) {
    CAPTURE(std::string(script));
    const ProcessResult result = run_clean(on_terminal(script));
    CHECK(result.succeeded());
    CHECK(result.out == "done\r\n");
    CHECK(!result.pipe_held);
  }
}

TEST_CASE("a timeout ends a program with a terminal, too") {
  if (!has_terminals()) return;
  ProcessOptions options =
      on_terminal("trap '' HUP TERM INT; echo deaf; while :; do sleep 1; done");
  options.timeout = milliseconds(300);
  options.kill_grace = milliseconds(50);
  const ProcessResult result = run_clean(options);
  CHECK(result.outcome == Outcome::timed_out);
  CHECK(result.out == "deaf\r\n");
}

TEST_CASE("a size that no terminal may have is an error that says so") {
  for (const TerminalSize size :
       {TerminalSize{0, 80}, TerminalSize{24, 0}, TerminalSize{-1, 80}, TerminalSize{24, 100000},
        TerminalSize{201, 80}, TerminalSize{1, 501}}) {
    CAPTURE(size.rows);
    CAPTURE(size.cols);
    const ProcessResult result = run_clean(on_terminal("echo started", size));
    CHECK(result.outcome == Outcome::not_started);
    CHECK(has(result.message, "1 to 200 and 1 to 500"));
  }
  if (!has_terminals()) return;
  for (const TerminalSize size : {TerminalSize{1, 1}, TerminalSize{200, 500}})
    CHECK(run_clean(on_terminal("stty size", size)).out ==
          std::to_string(size.rows) + " " + std::to_string(size.cols) + "\r\n");
}

TEST_CASE("without a terminal there is no screen") {
  auto process = Process::start(shell("test -t 0 || test -t 1 || echo none; echo x > /dev/tty"));
  REQUIRE(process);
  CHECK(process->wait().out == "none\n");
  const auto screen = process->screen();
  REQUIRE(!screen);
  CHECK(screen.error().code == ErrorCode::unsupported);
}

TEST_CASE("in a sandbox the terminals of others stay out of reach") {
  if (!has_terminals() || !in_sandbox()) return;
  if (!support::contains(support::wide_sandbox().report().enforced, "filesystem")) {
    MESSAGE("SKIPPED: this sandbox guards no files");
    return;
  }
  const OtherTerminal other;
  const ProcessResult result = run_clean(on_terminal(
      "(echo x > " + other.name() +
      ") 2> /dev/null || echo refused; (ls /dev/pts) 2> /dev/null ||"
      "echo refused; (: > /dev/ptmx) 2> /dev/null || echo refused; echo mine > /dev/tty"));
  CHECK(result.out == "refused\r\nrefused\r\nrefused\r\nmine\r\n");
}

TEST_CASE("the size changes while the program runs, and it gets SIGWINCH") {
  if (!has_terminals()) return;
  // A wait ends when a trap is due.
  const Process process = started(
      on_terminal("trap 'echo; stty size; printf \"\\033[99;999HE\"' WINCH; trap 'exit 7' TERM; "
                  "sleep 1000 & echo ready; "
                  "while :; do wait; done"));
  REQUIRE(shows(process, "ready"));
  REQUIRE(process.resize({30, 100}));
  CHECK(shows(process, "30 100"));
  CHECK(comes_true([&] { return process.screen()->cursor_row == 30; }));
  CHECK(process.screen()->cursor_col == 100);
  REQUIRE(process.resize({0, 50}));
  REQUIRE(process.resize({10, 0}));
  CHECK(shows(process, "10 50"));
  for (const TerminalSize& wrong :
       {TerminalSize{201, 80}, TerminalSize{24, 501}, TerminalSize{-1, 80}, TerminalSize{24, -1}}) {
    const auto refused = process.resize(wrong);
    REQUIRE(!refused);
    CHECK(refused.error().code == ErrorCode::invalid_argument);
    CHECK(has(refused.error().message, "1 to 200 and 1 to 500"));
  }
  REQUIRE(process.signal(SIGTERM));
  CHECK(process.wait().exit_code == 7);
  const auto late = process.resize({24, 80});
  REQUIRE(!late);
  CHECK(late.error().code == ErrorCode::io);

  const Process plain = started(shell("cat"));
  const auto refused = plain.resize({24, 80});
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::unsupported);
}
