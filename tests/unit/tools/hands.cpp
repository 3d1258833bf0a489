// Input, keys and signals for commands in the background, and answers before the client gives up.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/server_support.hpp"
#include "helpers.hpp"

using codeexec::Json;
using support::begins;
using support::Fifo;
using support::has;
using support::lines_of;
using support::names_of;
using support::parsed;
using support::Server;
using support::shell_arguments;
using support::start_shell;
using support::Strings;
using support::TempDir;
using support::typing;
using support::wait_for_shell;

namespace {

// Prints the name of each signal, and goes on.
const std::string traps =
    "for s in INT HUP USR1 USR2 TERM QUIT WINCH; do trap \"echo got $s\" $s; done; echo up; "
    "while :; do sleep 300 & wait $!; done";

Json moved(Server& server, const Json& arguments) {
  Json r = server.execute_with(arguments);
  CAPTURE(r.dump());
  REQUIRE(r["outcome"] == Json("running"));
  CHECK(r["success"] == Json(true));
  REQUIRE(begins(r["shell_id"].as_string(), "shell_"));
  return r;
}

// By a command that is not moved, as its time is shorter than that of the client.
void take_note_of_confinement(Server& server) {
  const Json r = server.execute_with(parsed(R"({"command":"true","timeout":0.009})"));
  CHECK(has(r["notes"].dump(), "commands are not confined"));
}

std::string note_of(const Json& r) {
  return r["notes"].size() > 0 ? r["notes"][r["notes"].size() - 1].as_string() : "";
}

}  // namespace

TEST_CASE("keys are signals for a command without a terminal, and end its input") {
  Server server;
  const std::string id = start_shell(server, traps);
  std::string since = wait_for_shell(server, id, "up")["next"].as_string();
  const std::pair<const char*, const char*> keys[] = {
      {"ctrl-c", "INT"},   {"SIGHUP", "HUP"},   {"sigusr1", "USR1"},   {"SIGUSR2", "USR2"},
      {"SIGTERM", "TERM"}, {"ctrl-\\", "QUIT"}, {"SIGWINCH", "WINCH"}, {"SIGINT", "INT"}};
  for (const auto& key : keys) {
    CAPTURE(key.first);
    const Json r = server.use("write_background_shell", typing(id, "", {key.first}));
    CHECK(names_of(r) == "shell_id status written signals");
    CHECK(r["written"] == Json(0));
    CHECK(r["signals"].dump() == "[\"SIG" + std::string(key.second) + "\"]");
    const Json output = wait_for_shell(server, id, std::string("^got ") + key.second, since);
    CHECK(output["wait"] == Json("matched"));
    since = output["next"].as_string();
  }
  // What has no trap ends.
  const std::string other = start_shell(server, "exec sleep 300");
  server.use("write_background_shell", typing(other, "", {"ctrl-c"}));
  CHECK(wait_for_shell(server, other, "exit")["status"] == Json("killed"));
  CHECK(server.use("get_background_shell_status", shell_arguments(other))["signal"] == Json(2));
  CHECK(server.error_of("write_background_shell", typing(other, "", {"ctrl-c"})) ==
        "background shell '" + other + "' has ended");
}

TEST_CASE("text and keys on a pipe: enter is a newline, ctrl-d the end") {
  Server server;
  const std::string id = start_shell(server, "cat; echo closed; exec sleep 300");
  // Of a call with a mistake nothing is done.
  const std::string error = server.error_of("write_background_shell", typing(id, "bad", {"up"}));
  CHECK(begins(error, "there is no key 'up' without a terminal: keys are ctrl-c, "));
  CHECK(has(error, "SIGTERM"));
  CHECK(has(server.error_of("write_background_shell", typing(id, "", {"ctrl-z"})), "SIGSTOP"));
  Json r = server.use("write_background_shell", typing(id, "one", {"enter"}));
  CHECK(names_of(r) == "shell_id status written");
  CHECK(r["written"] == Json(4));
  CHECK(wait_for_shell(server, id, "^one$")["stdout"] == Json("one\n"));
  r = server.use("write_background_shell", shell_arguments(id));
  CHECK(begins(r["message"].as_string(), "its input is open; keys are ctrl-c"));
  r = server.use("write_background_shell", typing(id, "two\n", {"ctrl-d"}));
  CHECK(r["input"] == Json("closed"));
  CHECK(wait_for_shell(server, id, "closed")["stdout"] == Json("one\ntwo\nclosed\n"));
  CHECK(server.error_of("write_background_shell", typing(id, "three\n")) ==
        "Nothing was typed: its input is closed, by itself or by close_input; ctrl-c and signals "
        "reach it");
  r = server.use("write_background_shell", typing(id, "", {"SIGTERM"}));
  CHECK(wait_for_shell(server, id, "exit")["status"] == Json("killed"));
}

TEST_CASE("signals are on the audit log, and have the shell of the command") {
  const TempDir place;
  const std::string audit = place / "audit";
  Server server(Strings{"--audit-file", audit});
  const std::string id = start_shell(server, "exec sleep 300");
  server.use("write_background_shell", typing(id, "", {"SIGHUP"}));
  wait_for_shell(server, id, "exit");
  CHECK(server.finish().empty());
  Strings commands;
  for (const std::string& line : lines_of(support::read_file(audit))) {
    const Json record = parsed(line);
    CHECK(record["shell_id"] == Json(id));
    commands.push_back(record["command"].as_string());
  }
  CHECK(support::contains(commands, "write_background_shell " + id + " SIGHUP"));
}

TEST_CASE("a command that was sent to the background by its call is typed into") {
  Server server;
  server.take_first_note();
  const Json r = moved(server, parsed(R"({"command":"read x; echo \"got $x\"; read y; echo end",)"
                                      R"("run_in_background_after":0.01})"));
  const std::string id = r["shell_id"].as_string();
  CHECK(has(note_of(r), "write_background_shell types into it"));
  server.use("write_background_shell", typing(id, "it\n"));
  CHECK(wait_for_shell(server, id, "got")["stdout"] == Json("got it\n"));
  server.use("write_background_shell", typing(id, "", {"ctrl-d"}));
  CHECK(wait_for_shell(server, id, "exit")["stdout"] == Json("got it\nend\n"));
  // Without that its input ends at once, also when it is given as nothing.
  for (const char* arguments :
       {R"({"command":"cat; echo end"})",
        R"({"command":"cat; echo end","run_in_background_after":300,"stdin":""})",
        R"({"command":"cat; echo end","run_in_background_after":300,"stdin":"x"})"})
    CHECK(support::ends(server.execute_with(parsed(arguments))["stdout"].as_string(), "end\n"));
  Server operators(Strings{"--run-in-background-after", "300"});
  CHECK(operators.execute("cat; echo end")["stdout"] == Json("end\n"));
}

TEST_CASE("where there is no room in the background, what waits for input gets its end") {
  Server server(Strings{"--max-background-shells", "1"});
  start_shell(server, "exec sleep 300");
  const Json r =
      server.execute_with(parsed(R"({"command":"cat; echo end","run_in_background_after":0.01})"));
  CHECK(r["stdout"] == Json("end\n"));
  CHECK(r.find("shell_id") == nullptr);
}

TEST_CASE("a command that takes longer than a client may wait goes on in the background") {
  const TempDir place;
  Fifo go(place / "go");
  Server server(Strings{"--answer-within", "0.01"});
  take_note_of_confinement(server);
  const std::string command =
      "cat; echo begun; read x < " + go.path() + "; echo done; exec sleep 300";
  const Json r = moved(server, Json::object({{"command", command}}));
  const std::string id = r["shell_id"].as_string();
  CHECK(r["notes"].size() == 1);
  const std::string note = note_of(r);
  CHECK(begins(note, "the command goes on in the background as " + id + ", for 60 seconds in all"));
  CHECK(has(note, "it has no input, but write_background_shell sends it ctrl-c"));
  CHECK(has(server.error_of("write_background_shell", typing(id, "x\n")),
            "Nothing was typed: its input was ended at its start; ctrl-c and signals reach it"));
  Json state = server.use("write_background_shell", shell_arguments(id));
  CHECK(state["input"] == Json("closed"));
  go.write_text("go\n");
  CHECK(wait_for_shell(server, id, "done")["stdout"] == Json("begun\ndone\n"));
  server.use("write_background_shell", typing(id, "", {"ctrl-c"}));
  CHECK(wait_for_shell(server, id, "exit")["status"] == Json("killed"));
}

TEST_CASE("what the caller's timeout says stays in force in the background") {
  Server server(Strings{"--answer-within", "0.01", "--max-timeout", "3"});
  take_note_of_confinement(server);
  const Json r = moved(server, parsed(R"({"command":"exec sleep 300","timeout":500})"));
  CHECK(r["notes"][0] ==
        Json("timeout reduced from 500 to 3 seconds, the longest that is allowed here"));
  CHECK(has(note_of(r), ", for 3 seconds in all"));
  const std::string id = r["shell_id"].as_string();
  CHECK(wait_for_shell(server, id, "exit")["status"] == Json("failed"));
  CHECK(server.use("get_background_shell_status", shell_arguments(id))["timed_out"] == Json(true));
}

TEST_CASE("a command stays in the foreground when that is shorter, or nothing could read it") {
  const Json brief = parsed(R"({"command":"exec sleep 300","timeout":0.05})");
  CHECK(Server(Strings{"--answer-within", "30"}).execute_with(brief)["timed_out"] == Json(true));
  const Json arguments = parsed(R"({"command":"sleep 0.2; echo done"})");
  const Strings ways[] = {
      {"--answer-within", "0"},
      {"--answer-within", "0.01", "--max-background-time", "1"},
      {"--answer-within", "0.01", "--disable-tool", "get_background_shell_output"}};
  for (const Strings& way : ways) {
    CAPTURE(way[1]);
    CHECK(Server(way).execute_with(arguments)["stdout"] == Json("done\n"));
  }
  Server full(Strings{"--answer-within", "0.01", "--max-background-shells", "1"});
  start_shell(full, "exec sleep 300");
  CHECK(full.execute_with(arguments)["stdout"] == Json("done\n"));
}

TEST_CASE("long output of a command that could have gone on is cut at both ends alone") {
  Server server;
  const std::string numbers = support::numbered_lines(1, 300000);
  const std::string accents = support::repeat("\303\251\n", 500000);
  const auto check = [](const std::string& shown, const std::string& printed) {
    const std::string mark = "... (truncated: ";
    const std::size_t begin = shown.find(mark);
    REQUIRE(begin != std::string::npos);
    const std::size_t end = shown.find(" bytes omitted) ...\n", begin);
    REQUIRE(end != std::string::npos);
    const std::string head = shown.substr(0, begin);
    const std::string tail = shown.substr(shown.find('\n', end) + 1);
    CHECK(begins(printed, head));
    CHECK(support::ends(printed, tail));
    CHECK(head.size() + tail.size() + std::stoull(shown.substr(begin + mark.size())) ==
          printed.size());
  };
  check(server.execute("seq 1 300000")["stdout"].as_string(), numbers);
  const Json both = server.execute("yes \303\251 | head -n 500000; seq 1 300000 >&2");
  check(both["stdout"].as_string(), accents);
  check(both["stderr"].as_string(), numbers);
}

TEST_CASE("a client that wants progress waits for the end") {
  const TempDir place;
  Fifo begun(place / "begun");
  Fifo go(place / "go");
  Server server(Strings{"--answer-within", "0.05"});
  const Json arguments = Json::object(
      {{"command", "echo > " + begun.path() + "; read x < " + go.path() + "; echo done"}});
  server.send(Server::call_line("waits", arguments, Json::object({{"progressToken", "t"}})));
  begun.read_line();
  // Another one is answered first, after that time.
  server.send(Server::call_line("moved", parsed(R"({"command":"exec sleep 300"})")));
  const auto answer = [&] {
    for (;;) {
      Json message = server.receive();
      REQUIRE(!message.is_null());
      if (message.find("id")) return message;
    }
  };
  const Json first = answer();
  CHECK(first["id"] == Json("moved"));
  CHECK(first["result"]["structuredContent"].find("shell_id") != nullptr);
  go.write_text("go\n");
  const Json second = answer();
  CHECK(second["id"] == Json("waits"));
  CHECK(second["result"]["structuredContent"]["stdout"] == Json("done\n"));
  CHECK(second["result"]["structuredContent"].find("shell_id") == nullptr);
}

TEST_CASE("code that takes longer than a client may wait goes on, and its file with it") {
  const TempDir place;
  Fifo go(place / "go");
  Server server(Strings{"--answer-within", "0.01", "--workspace", place.path()});
  take_note_of_confinement(server);
  const auto count = [&] {
    const Json listed = server.use("list_files");
    std::size_t files = 0;
    for (const Json& entry : listed["entries"].items())
      if (begins(entry["path"].as_string(), "tmp_code_")) ++files;
    return files;
  };
  std::string code = "```sh\nread x < go; echo one\n```\n```sh\necho two\n```\n";
  std::string language = "markdown";
  std::string more = "it is block 1 of 2: those after it were not run";
  SUBCASE("of a shell") {}
  SUBCASE("in a file") {
    if (!support::has_python()) return;
    code = "x = open('go').readline(); print('one')\n";
    language = "python";
    more.clear();
  }
  const Json r = server.use("execute_code", Json::object({{"code", code}, {"language", language}}));
  CAPTURE(r.dump());
  REQUIRE(r["outcome"] == Json("running"));
  CHECK(r.find("exit_code") == nullptr);
  CHECK(has(r["notes"].dump(), "for 60 seconds in all"));
  CHECK(has(r["notes"].dump(), more));
  CHECK(count() == (more.empty() ? 1 : 0));
  const std::string id = r["shell_id"].as_string();
  go.write_text("go\n");
  const Json output = wait_for_shell(server, id, "exit");
  CHECK(output["stdout"] == Json("one\n"));
  CHECK(count() == 0);
}

TEST_CASE("the output of code that goes on stays in its file") {
  const TempDir place;
  Fifo go(place / "go");
  Server server(Strings{"--answer-within", "0.3", "--workspace", place.path()});
  take_note_of_confinement(server);
  const Json r =
      server.use("execute_code",
                 parsed(R"({"code":"printf %08000d 0; read x < go; echo end","language":"sh"})"));
  CAPTURE(r.dump());
  REQUIRE(r["outcome"] == Json("running"));
  go.write_text("go\n");
  const std::string id = r["shell_id"].as_string();
  wait_for_shell(server, id, "exit");
  const Json status = server.use("get_background_shell_status", shell_arguments(id));
  CHECK(support::read_file(status["stdout_file"].as_string()) == std::string(8000, '0') + "end\n");
}

TEST_CASE("one call waits for a shell no longer than a client may") {
  Server server(Strings{"--answer-within", "0.01"});
  const std::string id = start_shell(server, "exec sleep 300");
  Json arguments = shell_arguments(id);
  arguments.set("wait_for", "exit");
  arguments.set("timeout", 300);
  const Json r = server.use("get_background_shell_output", arguments);
  CHECK(r["wait"] == Json("timed_out"));
  CHECK(r["notes"].dump() == R"(["one call waits for 0.01 seconds at most: ask again"])");
}

TEST_CASE("the last 10000 lines of a stream are kept, and read in parts") {
  Server server;
  const std::string id = start_shell(server, "seq 1 20000");
  wait_for_shell(server, id, "exit");
  Json arguments = shell_arguments(id);
  arguments.set("tail", 9000);
  Json r = server.use("get_background_shell_output", arguments);
  const std::string& end = r["stdout"].as_string();
  CHECK(end.size() <= 30000);
  CHECK(support::ends(end, "\n19999\n20000\n"));
  CHECK(lines_of(end).front().size() == 5);
  CHECK(has(r["notes"].dump(), "not all of it fits into one answer; since \\\"0:0\\\" reads it"));
  arguments.set("tail", 3);
  CHECK(!has(server.use("get_background_shell_output", arguments)["notes"].dump(), "fits into"));
  std::string all;
  std::string since = "0:0";
  do {
    r = wait_for_shell(server, id, ".", since);
    all += r["stdout"].as_string();
    since = r["next"].as_string();
  } while (r["wait"] == Json("matched"));
  const std::string omitted = "\n... (48894 bytes omitted) ...\n";
  REQUIRE(begins(all, omitted));
  const Strings lines = lines_of(all.substr(omitted.size()));
  REQUIRE(lines.size() == 10000);
  CHECK(lines.front() == "10001");
  CHECK(lines.back() == "20000");
}
