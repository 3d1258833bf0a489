// Sessions whose commands run in a terminal: session_live of execute_command.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/server_support.hpp"
#include "helpers.hpp"

using codeexec::Json;
using support::has;
using support::has_program;
using support::Server;
using support::shell_arguments;
using support::Strings;
using support::TempDir;
using support::typing;

namespace {

// A server without a sandbox, and one session of it.
class Live {
 public:
  explicit Live(Strings more = {}) : server(options_with(std::move(more))) {}

  Json run(const std::string& command, Json more = Json::object()) {
    return server.use("execute_command", with(command, std::move(more)));
  }
  // What the server answers, also to what it refuses.
  Json ask(const std::string& command, Json more = Json::object()) {
    return server.ask_tool("execute_command", with(command, std::move(more)));
  }
  std::string out(const std::string& command) {
    const Json result = run(command);
    CHECK_MESSAGE(result["success"] == Json(true), result.dump());
    return result["stdout"].as_string();
  }

  const TempDir place;
  Server server;

 private:
  static Json with(const std::string& command, Json&& more) {
    more.set("command", command);
    more.set("session_id", "s");
    more.set("session_live", true);
    return std::move(more);
  }
  Strings options_with(Strings more) const {
    more.insert(more.begin(), {"--workspace", place.path(), "--sandbox", "off"});
    return more;
  }
};

Json silent(double seconds) { return Json::object({{"idle_timeout", seconds}}); }

// Runs a command that goes on, until it has shown a text. `shown` gets all that it has shown.
Json until_shown(Live& live, const std::string& command, const char* text, std::string& shown) {
  Json result = live.run(command, silent(0.3));
  shown = result["stdout"].as_string();
  while (result["outcome"] == Json("running") && !has(shown, text)) {
    result = live.run("", silent(0.3));
    shown += result["stdout"].as_string();
  }
  CHECK_MESSAGE(result["outcome"] == Json("running"), result.dump());
  return result;
}

// Waits until the session has nothing more to do.
Json at_the_end(Live& live) {
  Json result = live.run("");
  while (result["outcome"] == Json("running")) result = live.run("");
  return result;
}

}  // namespace

TEST_CASE("a live session keeps what sessions keep, and shows the output alone") {
  if (!has_program("bash")) return;
  Live live;
  CHECK(live.out("x=42; a=(1 '2 3'); f() { echo \"f $1\"; }; alias hello='echo hi'") == "");
  CHECK(live.out("echo $x ${a[1]}; f me\nhello") == "42 2 3\nf me\nhi\n");
  CHECK(live.out("mkdir -p 'in here' && cd 'in here' && set -o noclobber") == "");
  const Json where = live.run("pwd; set -o | grep noclobber | tr -s ' \\t' ' '");
  CHECK(where["stdout"].as_string() == live.place / "in here\nnoclobber on\n");
  CHECK(where["session_work_dir"].as_string() == live.place / "in here");
  CHECK(where["session_id"] == Json("s"));
  CHECK(live.run("false")["exit_code"] == Json(1));
  CHECK(live.out("echo one; cat <<end\ntwo\nend\nprintf 'not ended'") == "one\ntwo\nnot ended");
  CHECK(live.out("tty > /dev/null && test -t 0 -a -t 1 -a -t 2") == "");
  CHECK(live.out("shopt -q login_shell || case $- in *i*) echo interactive;; esac") == "");
  const auto elsewhere = [&live](const char* id, const char* command) {
    return live.server.use("execute_command",
                           Json::object({{"command", command}, {"session_id", id}}));
  };
  CHECK(elsewhere("t", "echo ${x-none}")["stdout"] == Json("none\n"));
  CHECK(elsewhere("s", "echo $x; y=1")["stdout"] == Json("42\n"));
  CHECK(live.out("echo $y") == "1\n");
  Json in_folder = Json::object({{"work_dir", live.place.path()}});
  CHECK(live.run("pwd", in_folder)["stdout"] == Json(live.place.path() + "\n"));
  // None of them is left among the background shells.
  CHECK(live.server.use("list_background_shells")["shells"].size() == 0);
}

TEST_CASE("a live session works with a plain sh") {
  Live live({"--shell", "/bin/sh"});
  CHECK(live.out("x='a b'; cd /; test -t 0") == "");
  CHECK(live.out("echo \"$x\"; pwd") == "a b\n/\n");
}

TEST_CASE("a command of a live session arrives as it is") {
  Live live;
  const std::string odd = "\xc3\xa4 ! !! ^x^y \t ' \\ \" $HOME `x` \x01 \x7f \x03 \x04 \x16";
  const Json given = live.run("cat > odd <<\\end\n" + odd + "\nend");
  CHECK(given["success"] == Json(true));
  CHECK(support::read_file(live.place / "odd") == odd + "\n");
  const std::string tall(20000, 'x');
  CHECK(live.out("printf %s " + tall + " | wc -c") == "20000\n");
  CHECK(live.run("echo 'open")["outcome"] == Json("refused"));
  CHECK(live.out("echo still here") == "still here\n");
}

TEST_CASE("a live session goes on after a timeout, ctrl-c and silence") {
  Live live;
  CHECK(live.out("x=1; echo begun") == "begun\n");
  const Json in_time = Json::object({{"timeout", 0.5}});
  std::string shown;
  for (const char* const command : {"sleep 600", "while :; do sleep 0.1; done"}) {
    until_shown(live, std::string("echo before; ") + command, "before\n", shown);
    const Json late = live.run("", in_time);
    CHECK(late["outcome"] == Json("timed_out"));
    CHECK(late["success"] == Json(false));
    CHECK(has(late["notes"].dump(), "ctrl-c was typed"));
    CHECK(live.run(command, in_time)["outcome"] == Json("timed_out"));
    CHECK(live.out("echo $x") == "1\n");
  }
  // It may listen to ctrl-c, and go on.
  const Json deaf = until_shown(live, "trap 'echo no' INT; echo set; read a; read b; echo got $b",
                                "set\n", shown);
  const Json still = live.run("", in_time);
  CHECK(has(still["notes"].dump(), "it still runs"));
  live.server.use("write_background_shell", typing(deaf["shell_id"].as_string(), "one\ntwo\n"));
  CHECK(has(at_the_end(live)["stdout"].as_string(), "got two\n"));

  const Json waits =
      until_shown(live, "echo name?; read name; echo \"hello $name\"", "name?\n", shown);
  CHECK(shown == "name?\n");
  CHECK(waits["exit_code"] == Json());
  const std::string id = waits["shell_id"].as_string();
  CHECK(has(waits["notes"].dump(), id));
  const Json refused = live.ask("echo no");
  CHECK(refused["isError"] == Json(true));
  CHECK(has(refused.dump(), "still runs"));
  live.server.use("write_background_shell", typing(id, "you\n"));
  CHECK(at_the_end(live)["stdout"] == Json("you\nhello you\n"));
  CHECK(live.out("echo $name") == "you\n");

  const Json sleeps = live.run("sleep 600", silent(0.3));
  CHECK(sleeps["outcome"] == Json("running"));
  live.server.use("write_background_shell", typing(sleeps["shell_id"].as_string(), "", {"ctrl-c"}));
  const Json interrupted = at_the_end(live);
  CHECK(interrupted["outcome"] == Json("signaled"));
  CHECK(interrupted["signal"] == Json(2));

  // What came after an answer is in the next one that waits on, also when the end came meanwhile.
  support::Fifo fifo(live.place / "fifo");
  const Json reads = live.run("read x < " + fifo.path() + "; echo later", silent(0.3));
  CHECK(reads["outcome"] == Json("running"));
  fifo.write_text("go\n");
  CHECK(at_the_end(live)["stdout"] == Json("later\n"));
}

TEST_CASE("a live session outlives its shells, and what becomes of them") {
  Live live;
  live.out("x=1");
  const Json end = live.run("echo bye; y=2; exit 3");
  CHECK(end["stdout"] == Json("bye\n"));
  CHECK(end["exit_code"] == Json(3));
  CHECK(live.out("echo $x $y") == "1 2\n");

  const Json replaced = live.run("z=3; exec cat", silent(0.3));
  CHECK(replaced["outcome"] == Json("running"));
  live.server.use("write_background_shell",
                  typing(replaced["shell_id"].as_string(), "exit 7; echo $x\n\x04"));
  const Json was_cat = at_the_end(live);
  CHECK(was_cat["stdout"] == Json("exit 7; echo $x\nexit 7; echo $x\n"));
  CHECK(was_cat["exit_code"] == Json(0));
  CHECK(has(was_cat["notes"].dump(), "ended in exec"));
  CHECK(live.out("echo $x ${z-none}") == "1 none\n");

  CHECK(live.run("kill -9 $$")["signal"] == Json(9));
  const Json runs = live.run("sleep 600", silent(0.3));
  live.server.use("kill_background_shell", shell_arguments(runs["shell_id"].as_string()));
  const Json next = live.run("echo $x again");
  CHECK(next["stdout"] == Json("1 again\n"));
  CHECK(has(next["notes"].dump(), "the command before has ended"));
}

TEST_CASE("what a live command leaves in the background ends with it") {
  if (!has_program("bash")) return;
  Live live;
  const std::string pid = live.out("sleep 600 > /dev/null & echo $!");
  // One that has ended may not have been reaped yet.
  CHECK(support::comes_true([&] { return live.run("kill -0 " + pid)["exit_code"] == Json(1); }));
}

TEST_CASE("a live command is one of the background shells") {
  Live live({"--max-background-shells", "1"});
  const std::string id = live.run("sleep 600", silent(0.3))["shell_id"].as_string();
  const Json other = live.server.use(
      "execute_command",
      Json::object({{"command", "true"}, {"session_id", "t"}, {"session_live", true}}));
  CHECK(other["success"] == Json(false));
  CHECK(has(other.dump(), "as many background shells are running"));
  CHECK(live.server.use("list_background_shells")["shells"].items()[0]["shell_id"] == Json(id));
  live.server.use("kill_background_shell", shell_arguments(id));
  CHECK(live.run("")["outcome"] == Json("cancelled"));
  CHECK(live.out("echo free") == "free\n");
  CHECK(live.server.use("list_background_shells")["shells"].size() == 0);
}

TEST_CASE("a live session is judged as any session") {
  Live live({"--blocked-commands", "forbidden.*"});
  CHECK(live.out("echo fine") == "fine\n");
  for (const char* const command : {"forbidden thing", "echo x; forbidden", "x=forbidden; $x y"})
    CHECK_MESSAGE(live.run(command)["outcome"] == Json("refused"), command);
  CHECK(live.out("y=forbid") == "");
  CHECK(live.run("${y}den z")["outcome"] == Json("refused"));
  CHECK(live.out("echo still $y") == "still forbid\n");
  // A shell in it is typed to as any shell at a terminal.
  const Json shell = live.run("stty erase Z; exec sh", silent(0.3));
  const Json typed =
      live.server.ask_tool("write_background_shell",
                           typing(shell["shell_id"].as_string(), "echo ZZZZZforbidden thing\n"));
  CHECK(typed["isError"] == Json(true));
  CHECK(has(typed.dump(), "Nothing was typed"));
  live.server.use("kill_background_shell", shell_arguments(shell["shell_id"].as_string()));
}

namespace {

// What a policy refuses wherever it sees it, and what is harmless in words: what a command behind
// one of the tricks must print, and not do.
constexpr const char* marker_command = "touch marker";
const Strings victims = {"a; touch marker", "a\ntouch marker\n", "$(touch marker) `touch marker`",
                         "\x03touch marker\n\x04", "x!!y ^a^touch marker^ 'q' \"z\" \\"};

class Attacked : public Live {
 public:
  Attacked() : Live({"--blocked-commands", "touch marker", "--shell", "/bin/bash"}) {
    support::write_file(place / "script", "touch marker\n");
  }

  // A command that may be refused, and need not end: what comes after it counts.
  void attack(const std::string& trick) {
    const Json result = run(trick, silent(0.3));
    if (result["outcome"] == Json("running"))
      server.use("kill_background_shell", shell_arguments(result["shell_id"].as_string()));
    check(trick);
  }

  void check(const std::string& trick) {
    for (const std::string& victim : victims) {
      const Json result = run("cat <<\\the_end\n" + victim + "\nthe_end");
      CHECK_MESSAGE(result["success"] == Json(true), (trick + ": " + result.dump()));
      CHECK_MESSAGE(has(result["stdout"].as_string(), victim.substr(0, 1)), trick);
    }
    CHECK_MESSAGE(!support::exists(place / "marker"), trick);
  }
};

}  // namespace

TEST_CASE("no setting of a terminal or a shell makes another command of a live one") {
  if (!has_program("bash")) return;
  Attacked live;
  CHECK(live.run(marker_command)["outcome"] == Json("refused"));
  for (const char* const trick :
       {"stty erase a kill c intr e",
        "stty raw -echo",
        "stty iuclc olcuc",
        "stty lnext t eol m",
        "stty -icanon -isig",
        "stty 0",
        "bind '\"a\": \"b\"'",
        "bind -x '\"a\": echo'",
        "set -o emacs",
        "set -o vi",
        "set -o histexpand; set -H",
        "histchars='at#'",
        "history -s 'echo'; set -o history",
        "fc -l",
        "PROMPT_COMMAND='echo b'",
        "PS0='$(echo b)'",
        "PS1='`echo b`'; PS2=$PS1; PS4=$PS1; set -x",
        "exec < script",
        "exec 0< script",
        "exec 255< script",
        "exec 3< script",
        "exec 8< script",
        "exec 9< script",
        "exec 9<&-",
        "exec 0<&- 1>&- 2>&-",
        "read -t 0.1 -u 255 x",
        "read -t 0.1 -u 3 x",
        "cat <&9",
        "cat <&3",
        "cat <&8",
        "cat /proc/$$/fd/8 /proc/$$/fd/10 /proc/$$/fd/255",
        "for f in 3 8 9 10 11 255; do echo touch marker > /proc/$$/fd/$f; done",
        "exec true",
        "exit 1",
        "kill -STOP $$",
        "kill -9 $$",
        "trap 'x=1' DEBUG EXIT CHLD ERR RETURN USR1",
        "shopt -s extdebug; trap false DEBUG",
        "set -k -e -u -f -n -v -x -C -a -h -B -m -T -E",
        "set -o posix; POSIXLY_CORRECT=1",
        "export POSIXLY_CORRECT=1 SHELLOPTS BASHOPTS",
        "IFS=abc; export IFS",
        "export BASH_ENV=script ENV=script; BASH_ENV=script",
        "declare -u x y z; declare -i c; readonly CODEEXEC_STATUS=1",
        "readonly PWD OLDPWD IFS _x",
        "shopt -s expand_aliases extglob nullglob; shopt -u sourcepath",
        "enable -n eval command",
        "hash -p ./script cat",
        "ulimit -n 20; ulimit -f 0",
        "umask 777",
        "LC_ALL=C; export LANG=x",
        "set -- touch marker",
        "coproc cat",
        "disown -a; suspend",
        "tput smcup",
        "reset"})
    live.attack(trick);
  // From a process that is there when the next commands run, where it may be.
  for (const char* const trick :
       {"stty erase a < /dev/tty", "stty raw < /dev/tty", "read -u 255 x", "cat <&255", "cat <&3",
        "cat <&0", "exec 0< script", "while echo touch; do sleep 0.01; done > /dev/tty",
        "while :; do for f in /proc/$$/fd/*; do echo touch > $f; done; sleep 0.01; done",
        "while kill -INT $$; do sleep 0.01; done"}) {
    live.attack("( " + std::string(trick) + " ) 2> /dev/null &");
    live.attack("nohup setsid sh -c '" + std::string(trick) + "' > /dev/null 2>&1 &");
  }
}

TEST_CASE("no name that a shell can have is in the way of live commands") {
  if (!has_program("bash")) return;
  for (const char* const name :
       {"eval", "builtin", "command", "unset", "export", "trap", "declare", "set", "exit", "shopt",
        "alias", "shift", "echo", "pwd", ":", "["}) {
    Attacked live;
    live.attack(std::string("function ") + name + " { x=1; }");
    live.attack(std::string("function ") + name + " { $1; \"$@\"; \"$*\"; }; readonly -f " + name);
    live.attack(std::string("alias ") + name + "=\"echo '\"; shopt -s expand_aliases");
    live.attack(std::string("alias ") + name + "='a ; echo touch'");
    live.attack(std::string("readonly ") + name + "=1; declare -u " + name);
  }
}

TEST_CASE("what a live command forges in place of its report does not run") {
  if (!has_program("bash")) return;
  Attacked live;
  // The report goes to descriptor 8 of the shell, which bash keeps as 10 meanwhile. After the
  // folder and what is exported come options, aliases, variables and functions.
  const auto forge = [&live](const std::string& state) {
    support::write_file(live.place / "state", state);
    const Json forged = live.run(
        "mark=$(tr '\\0' '\\n' < /proc/$$/cmdline | grep -o 'echo [0-9a-f]\\{32\\}' | head -n 1);"
        "mark=${mark#echo }; { pwd; echo $mark; export -p; printf '%s\\n' $mark;"
        "sed \"s/MARK/$mark/\" state; } > /proc/$$/fd/10; exec true");
    CHECK_MESSAGE(forged["success"] == Json(true), forged.dump());
  };
  // What is no command is taken: the forgery works.
  forge("MARK\nMARK\ndeclare -- x=\"forged\"\nMARK\nMARK\n");
  CHECK(live.out("echo $x") == "forged\n");
  for (const char* const state : {"MARK\nMARK\ndeclare -- x=\"$(touch marker)\"\nMARK\nMARK\n",
                                  "MARK\nMARK\ndeclare -- x=1; touch marker\nMARK\nMARK\n",
                                  "MARK\nMARK\ndeclare -i x=\"a[$(touch marker)]\"\nMARK\nMARK\n",
                                  "MARK\nMARK\ndeclare -a x=([$(touch marker)]=1)\nMARK\nMARK\n",
                                  "MARK\nMARK\ndeclare -n x=\"a[$(touch marker)]\"\nMARK\nMARK\n",
                                  "MARK\nMARK\nMARK\ncat () \n{ \n    touch marker\n}\nMARK\n",
                                  "MARK\nMARK\nMARK\ncat () \n{ \n    :\n}\ntouch marker\nMARK\n",
                                  "MARK\nMARK\nMARK\neval () \n{ \n    touch marker\n}\nMARK\n",
                                  "MARK\nalias cat='touch marker'\nMARK\nMARK\nMARK\n",
                                  "shopt -s extglob; touch marker\nMARK\nMARK\nMARK\nMARK\n",
                                  "shopt -s extglob\ntouch marker\nMARK\nMARK\nMARK\nMARK\n"}) {
    forge(state);
    live.check(state);
  }
}

TEST_CASE("a live session starts under a list of what is allowed") {
  Live live({"--allowed-commands", "echo( .*)?"});
  CHECK(live.out("echo fine") == "fine\n");
  CHECK(live.run("printf no")["outcome"] == Json("refused"));
  CHECK(live.run("bash")["outcome"] == Json("refused"));
  CHECK(live.out("echo again") == "again\n");
}

TEST_CASE("wrong calls of live sessions say what to do") {
  Live live;
  const auto error = [&](Json arguments) {
    arguments.set("command", "true");
    arguments.set("session_live", true);
    const Json answer = live.server.ask_tool("execute_command", arguments);
    CHECK(answer["isError"] == Json(true));
    return answer.dump();
  };
  CHECK(has(error(Json::object()), "needs a session_id"));
  CHECK(has(error(Json::object({{"session_id", "a b"}})), "needs a session_id"));
  CHECK(has(error(Json::object({{"session_id", "s"}, {"stdin", "x"}})), "stdin does not go with"));
  CHECK(has(error(Json::object({{"session_id", "s"}, {"encoding", "base64"}})),
            "encoding does not go with"));
  const Json empty = live.run("");
  CHECK(empty["success"] == Json(false));
  CHECK(has(empty["stderr"].as_string(), "nothing runs"));
}
