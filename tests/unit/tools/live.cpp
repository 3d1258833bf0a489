// Sessions that are one shell in a terminal: session_live of execute_command.
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

namespace {

// A server without a sandbox, and one session of it.
class Live {
 public:
  explicit Live(Strings more = {}) : server(options_with(std::move(more))) {}

  Json run(const std::string& command, Json more = Json::object()) {
    more.set("command", command);
    more.set("session_id", "s");
    more.set("session_live", true);
    return server.use("execute_command", more);
  }
  std::string out(const std::string& command) {
    const Json result = run(command);
    CHECK_MESSAGE(result["success"] == Json(true), result.dump());
    return result["stdout"].as_string();
  }

  const TempDir place;
  Server server;

 private:
  Strings options_with(Strings more) const {
    more.insert(more.begin(), {"--workspace", place.path(), "--sandbox", "off"});
    return more;
  }
};

Json silent(double seconds) { return Json::object({{"idle_timeout", seconds}}); }

// Waits until the session has nothing more to do.
Json at_the_end(Live& live) {
  Json result = live.run("");
  while (result["outcome"] == Json("running")) result = live.run("");
  return result;
}

}  // namespace

TEST_CASE("a live session keeps all that a shell keeps, and shows the output alone") {
  if (!has_program("bash")) return;
  Live live;
  CHECK(live.out("x=42; a=(1 '2 3'); f() { echo \"f $1\"; }; alias hello='echo hi'") == "");
  CHECK(live.out("echo $x ${a[1]}; f me\nhello") == "42 2 3\nf me\nhi\n");
  CHECK(live.out("mkdir -p 'in here' && cd 'in here' && umask 077") == "");
  const Json where = live.run("pwd; umask");
  CHECK(where["stdout"].as_string() == live.place / "in here\n0077\n");
  CHECK(where["session_work_dir"].as_string() == live.place / "in here");
  CHECK(where["session_id"] == Json("s"));
  CHECK(live.run("false")["exit_code"] == Json(1));
  CHECK(live.out("echo $?") == "1\n");
  CHECK(live.out("echo one; cat <<end\ntwo\nend\nprintf 'not ended'") == "one\ntwo\nnot ended");
  CHECK(live.out("tty > /dev/null") == "");
  const Json other = live.server.use(
      "execute_command",
      Json::object({{"command", "echo ${x-none}"}, {"session_id", "t"}, {"session_live", true}}));
  CHECK(other["stdout"] == Json("none\n"));
}

TEST_CASE("what is typed into a live session arrives as it is") {
  if (!has_program("bash")) return;
  Live live;
  const std::string odd = "\xc3\xa4 ! !! ^x^y \t ' \\ \" $HOME `x` \x01 \x7f";
  const Json typed = live.run("cat > odd <<\\end\n" + odd + "\nend");
  CHECK(typed["success"] == Json(true));
  CHECK(support::read_file(live.place / "odd") == odd + "\n");
  const std::string tall(20000, 'x');
  CHECK(live.out("printf %s " + tall + " | wc -c") == "20000\n");
  const Json open = live.server.ask_tool(
      "execute_command",
      Json::object({{"command", "echo 'open"}, {"session_id", "s"}, {"session_live", true}}));
  CHECK(has(open.dump(), "the text ends within a command"));
  CHECK(live.out("echo still here") == "still here\n");
}

TEST_CASE("a live session goes on after a timeout, ctrl-c and silence") {
  Live live;
  CHECK(live.out("x=1; echo begun") == "begun\n");
  const Json late = live.run("echo before; sleep 600", Json::object({{"timeout", 0.5}}));
  CHECK(support::begins(late["stdout"].as_string(), "before\n"));
  CHECK(late["outcome"] == Json("timed_out"));
  CHECK(late["success"] == Json(false));
  CHECK(has(late["notes"].dump(), "ctrl-c was typed"));
  CHECK(live.out("echo $x") == "1\n");

  const Json waits = live.run("echo name?; read name; echo \"hello $name\"", silent(0.5));
  CHECK(waits["outcome"] == Json("running"));
  CHECK(waits["stdout"] == Json("name?\n"));
  CHECK(waits["exit_code"] == Json());
  const std::string id = waits["shell_id"].as_string();
  CHECK(has(waits["notes"].dump(), id));
  const Json refused = live.server.ask_tool(
      "execute_command",
      Json::object({{"command", "echo no"}, {"session_id", "s"}, {"session_live", true}}));
  CHECK(refused["isError"] == Json(true));
  CHECK(has(refused.dump(), "still runs"));
  Json typed = shell_arguments(id);
  typed.set("input", "you\n");
  live.server.use("write_background_shell", typed);
  CHECK(at_the_end(live)["stdout"] == Json("hello you\n"));
  CHECK(live.out("echo $name") == "you\n");

  CHECK(live.run("sleep 600", silent(0.3))["outcome"] == Json("running"));
  Json interrupt = shell_arguments(id);
  interrupt.set("keys", Json::array({"ctrl-c"}));
  live.server.use("write_background_shell", interrupt);
  CHECK(at_the_end(live)["exit_code"] == Json(130));

  // What came after an answer is in the next one that waits on, also when the end came meanwhile.
  support::Fifo fifo(live.place / "fifo");
  const Json reads = live.run("read x < " + fifo.path() + "; echo later", silent(0.3));
  CHECK(reads["outcome"] == Json("running"));
  fifo.write_text("go\n");
  CHECK(at_the_end(live)["stdout"] == Json("later\n"));
}

TEST_CASE("a live session whose shell ends starts another one, and says so") {
  Live live;
  live.out("x=1");
  const Json end = live.run("echo bye; exit 3");
  CHECK(has(end["stdout"].as_string(), "bye\n"));
  CHECK(end["exit_code"] == Json(3));
  CHECK(has(end["notes"].dump(), "has ended"));
  CHECK(live.out("echo ${x-none}") == "none\n");
  const Json known = live.server.use("list_background_shells");
  for (const Json& shell : known["shells"].items())
    if (shell["status"] == Json("running"))
      live.server.use("kill_background_shell", shell_arguments(shell["shell_id"].as_string()));
  const Json next = live.run("echo again");
  CHECK(next["stdout"] == Json("again\n"));
  CHECK(has(next["notes"].dump(), "a new one"));
}

TEST_CASE("a live session is judged by what is typed") {
  Live live({"--blocked-commands", "forbidden.*"});
  CHECK(live.out("echo fine") == "fine\n");
  for (const char* const command : {"forbidden thing", "echo x; forbidden", "x=forbidden; $x y"}) {
    const Json answer = live.server.ask_tool(
        "execute_command",
        Json::object({{"command", command}, {"session_id", "s"}, {"session_live", true}}));
    CHECK_MESSAGE(answer["isError"] == Json(true), command);
    CHECK(has(answer.dump(), "Nothing was typed"));
  }
  CHECK(live.out("y=forbid") == "");
  const Json joined = live.server.ask_tool(
      "execute_command",
      Json::object({{"command", "${y}den z"}, {"session_id", "s"}, {"session_live", true}}));
  CHECK(joined["isError"] == Json(true));
  CHECK(live.out("echo still $y") == "still forbid\n");
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
  CHECK(has(error(Json::object({{"session_id", "s"}, {"work_dir", "/"}})), "type cd"));
  const Json empty = live.run("");
  CHECK(empty["success"] == Json(false));
  CHECK(has(empty["stderr"].as_string(), "nothing runs"));
}
