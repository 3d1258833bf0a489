// Background shells with a terminal: their screens, keys, and the programs that need them.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <unistd.h>

#include "../../helpers/server_support.hpp"
#include "helpers.hpp"

using codeexec::Json;
using support::has;
using support::has_program;
using support::names_of;
using support::patience_ms;
using support::Server;
using support::shell_arguments;
using support::start_shell;
using support::Strings;
using support::TempDir;
using support::typing;

namespace {

// A server with one shell that has a terminal, and what it shows.
class Terminal {
 public:
  Terminal(Strings arguments, const std::string& command, Json more = Json::object())
      : server(std::move(arguments)) {
    more.set("command", command);
    more.set("terminal", true);
    const Json shell = server.use("start_background_shell", more);
    id = shell["shell_id"].as_string();
    REQUIRE_MESSAGE(!id.empty(), shell.dump());
  }

  // What it shows once a line matches, after what was typed last.
  std::string until(const std::string& pattern) {
    CAPTURE(pattern);
    Json arguments = shell_arguments(id);
    arguments.set("screen", true);
    arguments.set("wait_for", pattern);
    arguments.set("since", since);
    arguments.set("timeout", patience_ms / 2000);
    last = server.use("get_background_shell_output", arguments);
    CHECK_MESSAGE(last["wait"] == Json(pattern == "exit" ? "ended" : "matched"),
                  pattern << " in " << last.dump());
    since = last["next"].as_string();
    return last["screen"].as_string();
  }

  void type(const std::string& text, const Strings& keys = {}) {
    const Json result = server.ask_tool("write_background_shell", typing(id, text, keys));
    CHECK(result["isError"] != Json(true));
  }

  void resize(Json arguments) {
    arguments.set("shell_id", id);
    CHECK(server.ask_tool("write_background_shell", arguments)["isError"] != Json(true));
  }

  Server server;
  std::string id = {};
  std::string since = {};
  Json last = {};
};

// Options of a server whose commands are in a sandbox, or not.
Strings options_in(const TempDir& place, bool sandboxed) {
  return {"--workspace", place.path(), "--sandbox", sandboxed ? "best_effort" : "off"};
}

}  // namespace

TEST_CASE("a shell with a terminal has a screen, keys and a size") {
  const TempDir place;
  Terminal terminal(options_in(place, false), "stty -echo; stty size; cat",
                    Json::object({{"rows", 10}, {"cols", 40}}));
  CHECK(terminal.until("^10 40$") == "10 40");
  CHECK(names_of(terminal.last) == "shell_id screen cursor status exit_code next wait");
  CHECK(terminal.last["cursor"] == Json("2:1"));
  terminal.type("one", {"enter"});
  CHECK(terminal.until("^one$") == "10 40\none");
  terminal.type("two", {"backspace", "backspace", "e", "n", "enter"});
  CHECK(has(terminal.until("^ten$"), "one\nten"));
  // The plain output is still there.
  const Json output =
      terminal.server.use("get_background_shell_output", shell_arguments(terminal.id));
  CHECK(has(output["stdout"].as_string(), "10 40\r\none\r\n"));
  CHECK(output["stderr"] == Json(""));
  terminal.type("", {"ctrl-c"});
  CHECK(has(terminal.until("exit"), "one\nten"));
  CHECK(terminal.last["status"] == Json("killed"));
  // After the end the screen stays, and nothing can be typed.
  CHECK(has(terminal.until("exit"), "one\nten"));
  Json arguments = shell_arguments(terminal.id);
  arguments.set("keys", Json::array({"enter"}));
  CHECK(has(terminal.server.error_of("write_background_shell", arguments), "has ended"));
}

TEST_CASE("the end of input is typed, and a prompt for a password sees a terminal") {
  const TempDir place;
  Terminal terminal(options_in(place, false),
                    "stty -echo; printf 'Password: ' > /dev/tty; read p < /dev/tty; stty echo; "
                    "echo got $p; cat; echo over");
  terminal.until("Password:");
  terminal.type("hidden", {"enter"});
  CHECK(has(terminal.until("got hidden"), "Password: got hidden"));
  terminal.server.use("write_background_shell",
                      Json::object({{"shell_id", terminal.id}, {"close_input", true}}));
  CHECK(has(terminal.until("exit"), "over"));
}

TEST_CASE("mistakes about terminals are explained") {
  Server server;
  const std::string plain = start_shell(server, "cat");
  Json arguments = shell_arguments(plain);
  arguments.set("screen", true);
  CHECK(has(server.error_of("get_background_shell_output", arguments), "has no terminal"));
  arguments = shell_arguments(plain);
  arguments.set("keys", Json::array({"up"}));
  CHECK(
      has(server.error_of("write_background_shell", arguments), "no key 'up' without a terminal"));

  const Json shell =
      server.use("start_background_shell", Json::object({{"command", "cat"}, {"terminal", true}}));
  arguments = shell_arguments(shell["shell_id"].as_string());
  arguments.set("keys", Json::array({"enter", "return"}));
  const std::string message = server.error_of("write_background_shell", arguments);
  CHECK(has(message, "return"));
  CHECK(has(message, "enter, tab"));
  arguments.set("keys", Json::array({1}));
  CHECK(server.ask_tool("write_background_shell", arguments)["isError"] == Json(true));

  for (const char* size : {R"({"rows":100000})", R"({"cols":501})", R"({"rows":201,"cols":1})",
                           R"({"rows":9223372036854775807})"}) {
    Json wrong = support::parsed(size);
    wrong.set("command", "echo started");
    wrong.set("terminal", true);
    CHECK(has(server.error_of("start_background_shell", wrong), "1 to 200 and 1 to 500"));
  }
  CHECK(has(
      server.error_of("start_background_shell", Json::object({{"command", "true"}, {"rows", 30}})),
      "ask for one"));
  Json zero = Json::object({{"command", "true"}, {"terminal", true}, {"rows", 0}});
  CHECK(server.ask_tool("start_background_shell", zero)["isError"] == Json(true));
}

TEST_CASE("secrets are masked on the screen, too") {
  const TempDir place;
  Strings options = options_in(place, false);
  options.insert(options.end(), {"--set-env", "TOKEN=abcdefgh", "--secret-env", "TOKEN"});
  // The letters come together only on the screen.
  Terminal terminal(options, "printf 'efgh\\rabcd\\033[1;1Habcd\\033[1;5Hefgh end'; read x");
  CHECK(terminal.until("end") == "[redacted] end");
}

TEST_CASE("vim, less, top, python and gdb work") {
  for (const bool sandboxed : {false, true}) {
    CAPTURE(sandboxed);
    const TempDir place;
    const Strings options = options_in(place, sandboxed);
    if (has_program("vi")) {
      Terminal vi(options, "vi -u NONE -i NONE text.txt");
      vi.until("text.txt");
      vi.type("ihello\nworld", {"escape", "g", "g", "x"});
      CHECK(has(vi.until("^ello"), "ello\nworld\n"));
      vi.type(":wq", {"enter"});
      vi.until("exit");
      CHECK(vi.last["exit_code"] == Json(0));
      CHECK(support::read_file(place / "text.txt") == "ello\nworld\n");
    }
    if (has_program("less")) {
      Terminal less(options, "seq 1 100 | less");
      CHECK(has(less.until("^23$"), "1\n2\n3\n"));
      less.type("", {"pagedown"});
      CHECK(has(less.until("^46$"), "24\n25\n"));
      less.type("/77", {"enter"});
      CHECK(support::begins(less.until("^99$"), "77\n78\n"));
      less.type("q");
      less.until("exit");
      CHECK(less.last["exit_code"] == Json(0));
    }
    if (has_program("top")) {
      Terminal top(options, "top");
      CHECK(has(top.until("PID +USER"), "load average"));
      top.type("q");
      top.until("exit");
      CHECK(top.last["exit_code"] == Json(0));
    }
    if (has_program("python3")) {
      Terminal python(options, "exec python3 -q");
      python.until(">>>");
      python.type("6 * 7", {"enter"});
      python.until("^42$");
      // One long sleep would not see a ctrl-c that comes just before it.
      python.type("import time; print(40 + 3); [time.sleep(.01) for _ in iter(int, 1)]", {"enter"});
      python.until("^43$");
      python.type("", {"ctrl-c"});
      python.until("^KeyboardInterrupt");
      python.type("exit(4)", {"enter"});
      python.until("exit");
      CHECK(python.last["exit_code"] == Json(4));
    }
    if (has_program("gdb")) {
      Terminal gdb(options, "gdb -q -nx --args sh -c 'echo from the program; exit 3'");
      gdb.until("\\(gdb\\)");
      // In the sandbox a program may not be traced, and gdb says so.
      gdb.type("print 6 * 7", {"enter"});
      gdb.until("^\\$1 = 42$");
      gdb.type("quit", {"enter"});
      gdb.until("exit");
      CHECK(gdb.last["exit_code"] == Json(0));
    }
  }
}

TEST_CASE("job control works in an interactive shell") {
  if (!has_program("bash")) return;
  const TempDir place;
  Terminal bash(options_in(place, true), "PS1='$ ' bash --norc --noprofile -i");
  bash.until("^\\$");
  // Without exec a shell may start sleep by vfork, and a stop that comes in between holds both: the
  // child before its program, and the shell until that runs. bash then hears of neither.
  bash.type("sh -c 'echo runs; exec sleep 1000'", {"enter"});
  bash.until("^runs$");
  bash.type("", {"ctrl-z"});
  bash.until("Stopped");
  bash.type("stty size; echo x > /dev/tty; disown; exit 5", {"enter"});
  CHECK(has(bash.until("exit"), "24 80\nx"));
  CHECK(bash.last["exit_code"] == Json(5));
}

TEST_CASE("another size reaches the programs that are on the terminal") {
  for (const bool sandboxed : {false, true}) {
    CAPTURE(sandboxed);
    const TempDir place;
    const Strings options = options_in(place, sandboxed);
    Terminal shell(options, "stty -echo; echo ready; read x; stty size; read x");
    shell.until("^ready$");
    shell.resize(Json::object({{"rows", 30}, {"cols", 100}, {"input", "\n"}}));
    shell.until("^30 100$");
    if (has_program("python3")) {
      support::write_file(place / "size.py",
                          "import shutil, signal, sys\n"
                          "changed = {signal.SIGWINCH}\n"
                          "signal.pthread_sigmask(signal.SIG_BLOCK, changed)\n"
                          "print('ready', flush=True)\n"
                          "signal.sigwait(changed)\n"
                          "print('%d %d' % shutil.get_terminal_size())\n"
                          "sys.exit(6)\n");
      Terminal python(options, "exec python3 size.py");
      python.until("^ready$");
      python.resize(Json::object({{"cols", 132}}));
      CHECK(has(python.until("exit"), "132 24"));
      CHECK(python.last["exit_code"] == Json(6));
    }
    // A signal that comes just before these wait for a key is seen with the next key. This one
    // draws the screen anew.
    if (has_program("less")) {
      Terminal less(options, "seq 1 100 | less");
      less.until("^23$");
      less.resize(Json::object({{"rows", 40}, {"input", "r"}}));
      less.until("^39$");
      less.resize(Json::object({{"rows", 11}, {"input", "r"}}));
      CHECK(support::begins(less.until("^10$"), "1\n2\n3\n4\n5\n6\n7\n8\n9\n10"));
      less.type("q");
      less.until("exit");
    }
    if (has_program("vi")) {
      Terminal vi(options, "vi -u NONE -i NONE -c 'set ruler' other.txt");
      // The ruler comes last, and lies where the narrow screen has no room.
      vi.until("0,0-1");
      vi.resize(Json::object({{"rows", 10}, {"cols", 40}, {"input", "\f"}}));
      vi.until("0,0-1");
      vi.type(":set lines? columns?", {"enter"});
      vi.until("lines=10");
      vi.type("", {"enter"});
      vi.type(":q!", {"enter"});
      vi.until("exit");
      CHECK(vi.last["exit_code"] == Json(0));
    }
  }
}

TEST_CASE("a size that a shell cannot have is refused, and nothing is typed then") {
  Server server;
  const std::string plain = start_shell(server, "cat");
  Json arguments = shell_arguments(plain);
  arguments.set("rows", 30);
  arguments.set("input", "typed\n");
  CHECK(has(server.error_of("write_background_shell", arguments), "has no terminal"));
  const Json shell =
      server.use("start_background_shell", Json::object({{"command", "cat"}, {"terminal", true}}));
  arguments.set("shell_id", shell["shell_id"]);
  for (const int rows : {201, 1000000}) {
    arguments.set("rows", rows);
    CHECK(has(server.error_of("write_background_shell", arguments), "1 to 200 and 1 to 500"));
  }
  for (const std::string& id : {plain, shell["shell_id"].as_string()}) {
    const Json output = server.use("get_background_shell_output", shell_arguments(id));
    CHECK(output["stdout"] == Json(""));
  }
}
