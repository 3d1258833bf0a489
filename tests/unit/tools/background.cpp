// Background shells, and commands that go on in the background.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <signal.h>

#include <set>

#include "../../helpers/server_support.hpp"
#include "helpers.hpp"

using codeexec::Json;
using support::begins;
using support::dies;
using support::endless;
using support::enforces;
using support::Fifo;
using support::has;
using support::lines_of;
using support::names_of;
using support::parsed;
using support::patience_ms;
using support::report_of;
using support::Server;
using support::shell_arguments;
using support::start_shell;
using support::Strings;
using support::TempDir;
using support::wait_for_shell;

// background shells -------------------------------------------------------------------------------

TEST_CASE("background shells have the names, arguments and keys of the reference") {
  const TempDir place;
  Server server(Strings{"--workspace", place.path()});
  server.take_first_note();
  const Json shell = server.use("start_background_shell",
                                R"({"command":"echo out; echo err >&2; read x; exit 3"})");
  CHECK(names_of(shell) == "shell_id status command pid work_dir");
  CHECK(shell["status"] == Json("running"));
  CHECK(shell["command"] == Json("echo out; echo err >&2; read x; exit 3"));
  CHECK(shell["pid"].as_number() > 1);
  CHECK(shell["work_dir"] == Json(place.path()));
  const std::string id = shell["shell_id"].as_string();

  Json output = wait_for_shell(server, id, "err");
  CHECK(names_of(output) == "shell_id stdout stderr status exit_code next wait");
  CHECK(output["wait"] == Json("matched"));
  CHECK(output["stderr"] == Json("err\n"));
  CHECK(output["status"] == Json("running"));
  CHECK(output["exit_code"] == Json());

  // The other stream may be read a moment later.
  Json status;
  const support::Stopwatch watch;
  do status = server.use("get_background_shell_status", shell_arguments(id));
  while (!(status["stdout_bytes"] == Json(4)) && watch.soon());
  CHECK(names_of(status) ==
        "shell_id status exit_code pid command cwd start_time duration_seconds stdout_bytes "
        "stderr_bytes");
  CHECK(status["pid"] == shell["pid"]);
  CHECK(status["cwd"] == Json(place.path()));
  CHECK(status["stdout_bytes"] == Json(4));

  const Json list = server.use("list_background_shells");
  CHECK(names_of(list) == "shells count");
  CHECK(list["count"] == Json(1));
  CHECK(list["shells"][0]["shell_id"] == Json(id));

  const Json written =
      server.use("write_background_shell", Json::object({{"shell_id", id}, {"input", "go\n"}}));
  CHECK(names_of(written) == "shell_id status written");
  CHECK(written["written"] == Json(3));
  output = wait_for_shell(server, id, "exit");
  CHECK(output["wait"] == Json("ended"));
  CHECK(output["stdout"] == Json("out\n"));
  CHECK(output["status"] == Json("failed"));
  CHECK(output["exit_code"] == Json(3));

  status = server.use("get_background_shell_status", shell_arguments(id));
  CHECK(status["outcome"].is_null());
  CHECK(status["timed_out"].is_null());
  const Json killed = server.use("kill_background_shell", shell_arguments(id));
  CHECK(names_of(killed) == "shell_id status signal message");
  CHECK(killed["status"] == Json("failed"));
  CHECK(killed["signal"] == Json());
  CHECK(killed["message"] == Json("Process already terminated"));
}

TEST_CASE("W-25: a background command passes the gate of every other one") {
  const TempDir place;
  const TempDir outside;
  place.directory("sub/.venv/bin");
  const std::string audit = place / "audit";
  Server server(Strings{"--allowed-paths", place.path(), "--workspace", place.path(),
                        "--audit-file", audit, "--blocked-commands", "git push.*", "--sandbox",
                        "off"});
  const auto refusal = [&](const std::string& command, const std::string& work_dir) {
    Json arguments = Json::object({{"command", command}});
    if (!work_dir.empty()) arguments.set("work_dir", work_dir);
    const Json result = server.ask_tool("start_background_shell", arguments);
    CHECK(result["isError"] == Json(true));
    CHECK(begins(result["structuredContent"]["error"].as_string(), "Command validation error: "));
    return result["structuredContent"]["rule"].as_string();
  };
  CHECK(refusal("true; git push", "") == "blocked-commands");
  CHECK(refusal("sudo true", "") == "sudo");
  CHECK(refusal("true", outside.path()) == "work_dir");
  CHECK(server.use("list_background_shells")["count"] == Json(0));
  const Json shell =
      server.use("start_background_shell",
                 Json::object({{"command", "echo ${VIRTUAL_ENV-none}"}, {"work_dir", "sub"}}));
  const Json output = wait_for_shell(server, shell["shell_id"].as_string(), "exit");
  CHECK(output["stdout"] == Json((place / "sub/.venv") + "\n"));
  CHECK(output["status"] == Json("stopped"));
  CHECK(server.finish().empty());
  const Strings records = lines_of(support::read_file(audit));
  REQUIRE(records.size() == 4);
  for (const std::string& record : records)
    CHECK(parsed(record)["tool"] == Json("start_background_shell"));
  CHECK(parsed(records[0])["allowed"] == Json(false));
  CHECK(parsed(records[3])["outcome"] == Json("exited"));
}

TEST_CASE("the output of a shell is read by cursor, by tail and by pattern") {
  Server server;
  const std::string id =
      start_shell(server, "while read line; do echo \"got $line\"; done; echo end >&2");
  const auto say = [&](const std::string& text) {
    server.use("write_background_shell", Json::object({{"shell_id", id}, {"input", text}}));
  };
  say("one\ntwo\n");
  Json output = wait_for_shell(server, id, "two");
  CHECK(output["stdout"] == Json("got one\ngot two\n"));
  const std::string first = output["next"].as_string();
  say("three\n");
  output = wait_for_shell(server, id, "^got three$", first);
  CHECK(output["stdout"] == Json("got three\n"));
  // The same cursor gives the same again, and more; without one it is everything.
  say("four\n");
  output = wait_for_shell(server, id, "four", first);
  CHECK(output["stdout"] == Json("got three\ngot four\n"));
  Json arguments = shell_arguments(id);
  CHECK(
      lines_of(server.use("get_background_shell_output", arguments)["stdout"].as_string()).size() ==
      4);
  arguments.set("tail", 1);
  output = server.use("get_background_shell_output", arguments);
  CHECK(output["stdout"] == Json("got four\n"));
  CHECK(output["stdout_missed_bytes"] == Json(26));
  arguments.set("tail", 0);
  CHECK(server.use("get_background_shell_output", arguments)["stdout"] == Json(""));

  // A bound on the waiting, and arguments that are none.
  arguments = shell_arguments(id);
  arguments.set("wait_for", "never");
  arguments.set("timeout", 0.05);
  CHECK(server.use("get_background_shell_output", arguments)["wait"] == Json("timed_out"));
  arguments.set("wait_for", "(");
  CHECK(has(server.error_of("get_background_shell_output", arguments), "wait_for: "));
  arguments = shell_arguments(id);
  for (const char* since : {"x", "1", "1:", ":1", "1:2:3", "-1:0", "1:99999999999999999999"}) {
    arguments.set("since", since);
    CHECK(has(server.error_of("get_background_shell_output", arguments), "since: "));
  }
  server.use("write_background_shell",
             Json::object({{"shell_id", id}, {"input", ""}, {"close_input", true}}));
  output = wait_for_shell(server, id, "exit");
  CHECK(output["stderr"] == Json("end\n"));
  CHECK(output["status"] == Json("stopped"));
  CHECK(has(server.error_of("write_background_shell",
                            Json::object({{"shell_id", id}, {"input", "late"}})),
            "input"));
}

TEST_CASE("the cursor of a shell never goes back over what has come") {
  const TempDir place;
  Fifo go(place / "go");
  Server server;
  // What looks like the beginning of a title, with bytes that are no UTF-8.
  const std::string id = start_shell(server,
                                     "printf '\\033]'; head -c 99 /dev/zero | tr '\\0' '\\377'; "
                                     "echo begun >&2; read x < " +
                                         go.path() + "; echo; echo end");
  Json output = server.use("get_background_shell_output",
                           Json::object({{"shell_id", id}, {"wait_for", "begun"}}));
  CHECK(output["next"] == Json("101:6"));
  go.write_text("go\n");
  output = wait_for_shell(server, id, "exit", output["next"].as_string());
  CHECK(output["stdout"] == Json("\nend\n"));
}

TEST_CASE("an unknown shell is an error that says what to do") {
  Server server;
  const Json arguments = Json::object({{"shell_id", "shell_0123456789abcdef"}, {"input", "x"}});
  for (const char* tool : {"get_background_shell_output", "get_background_shell_status",
                           "kill_background_shell", "write_background_shell"}) {
    CAPTURE(std::string(tool));
    Json given = arguments;
    if (std::string(tool) != "write_background_shell")
      given = shell_arguments("shell_0123456789abcdef");
    const std::string error = server.error_of(tool, given);
    CHECK(has(error, "shell_0123456789abcdef"));
    CHECK(has(error, "list"));
  }
}

TEST_CASE("a list of shells with long commands fits into a reply") {
  Server server(Strings{"--max-background-shells", "60", "--full-results"});
  for (int i = 0; i < 60; ++i) start_shell(server, "exec sleep 300 #" + std::string(16000, '\1'));
  const Json list = server.use("list_background_shells");
  CHECK(list["count"] == Json(60));
  CHECK(begins(list["shells"][59]["command"].as_string(), "exec sleep 300 #"));
}

TEST_CASE("calls that wait for shells leave room for one that ends a shell") {
  Server server(Strings{"--max-concurrent", "2"});
  const std::string id = start_shell(server, "sleep 300");
  Json arguments = shell_arguments(id);
  arguments.set("wait_for", "exit");
  arguments.set("timeout", patience_ms / 1000);
  for (const char* call : {"one", "other"})
    server.send(Server::call_line(call, arguments, {}, "get_background_shell_output"));
  // One of them may wait, whichever comes first.
  const Json refused = server.receive();
  CHECK(refused["result"]["isError"] == Json(true));
  CHECK(has(refused["result"]["structuredContent"]["error"].as_string(), "1 calls are waiting"));
  server.send(Server::call_line("kill", shell_arguments(id), {}, "kill_background_shell"));
  std::set<std::string> answered = {refused["id"].as_string()};
  for (int i = 0; i < 2; ++i) answered.insert(server.receive()["id"].as_string());
  CHECK(answered == std::set<std::string>{"kill", "one", "other"});
}

TEST_CASE("more shells than may run are refused with what to do") {
  Server server(Strings{"--max-background-shells", "2"});
  const std::string first = start_shell(server, "sleep 300");
  start_shell(server, "sleep 300");
  const std::string error =
      server.error_of("start_background_shell", parsed(R"({"command":"sleep 300"})"));
  CHECK(begins(error, "Failed to start background shell: "));
  CHECK(has(error, "2"));
  const Json killed = server.use("kill_background_shell", shell_arguments(first));
  CHECK(killed["status"] == Json("killed"));
  CHECK(killed["signal"] == Json("SIGTERM"));
  start_shell(server, "sleep 300");
}

TEST_CASE("a background command has a deadline when it or the operator says so") {
  Server server(Strings{"--timeout", "0.1", "--max-timeout", "0.2"});
  const TempDir place;
  Fifo go(place / "go");
  // Neither of those holds for it.
  const std::string without = start_shell(server, "read x < " + go.path() + "; echo done");
  const Json shell =
      server.use("start_background_shell", parsed(R"({"command":"sleep 300","timeout":0.3})"));
  Json output = wait_for_shell(server, shell["shell_id"].as_string(), "exit");
  CHECK(output["status"] == Json("failed"));
  const Json status =
      server.use("get_background_shell_status", shell_arguments(shell["shell_id"].as_string()));
  CHECK(status["timed_out"] == Json(true));
  go.write_text("go\n");
  CHECK(wait_for_shell(server, without, "exit")["stdout"] == Json("done\n"));

  Server bounded(Strings{"--max-background-time", "0.2"});
  output = wait_for_shell(bounded, start_shell(bounded, "sleep 300"), "exit");
  CHECK(output["status"] == Json("failed"));
}

namespace {

bool has_supervisor(const TempDir& place) {
  if (enforces(report_of({"--sandbox", "best-effort", "--workspace", place.path()}), "containment"))
    return true;
  MESSAGE("SKIPPED: there is no supervisor on this system");
  return false;
}

}  // namespace

TEST_CASE("W-33: nothing of ten shells survives a server that is killed, or whose input ends") {
  const TempDir place;
  Strings arguments = {"--workspace", place.path()};
  if (!has_supervisor(place)) return;
  SUBCASE("without a sandbox") {}
  SUBCASE("in a sandbox") { arguments.insert(arguments.end(), {"--sandbox", "best-effort"}); }
  for (const bool kill : {true, false}) {
    CAPTURE(kill);
    Server server(arguments);
    Fifo fifo(place / (kill ? "killed" : "ended"));
    std::vector<pid_t> pids;
    for (int i = 0; i < 10; ++i) {
      start_shell(server, "setsid sleep 300 & echo $! > " + fifo.path() + "; wait");
      pids.push_back(fifo.read_pid());
    }
    if (kill)
      server.signal(SIGKILL);
    else
      CHECK(server.finish().empty());
    for (const pid_t pid : pids) CHECK(dies(pid));
  }
}

TEST_CASE("a command that leaves processes behind is told what to use") {
  if (!has_supervisor(TempDir())) return;
  const std::string note = "1 process that the command left behind was ended";
  const std::string instead = "; use start_background_shell";
  const Json arguments = Json::object({{"command", "sleep 300 & echo up"}});
  Server server;
  server.take_first_note();
  const Json r = server.execute_with(arguments);
  CHECK(r["success"] == Json(true));
  CHECK(r["notes"].dump() == "[\"" + note + instead + "\"]");
  const Json code = server.use("execute_code",
                               Json::object({{"code", "sleep 300 & echo up"}, {"language", "sh"}}));
  CHECK(code["notes"].dump() == r["notes"].dump());
  const auto told_of = [](const Json& list) {
    return has(list["result"]["tools"][0]["description"].as_string(), "start_background_shell");
  };
  CHECK(told_of(server.ask("tools/list")));
  Server without(Strings{"--disable-tool", "start_background_shell"});
  without.take_first_note();
  CHECK(without.execute_with(arguments)["notes"].dump() == "[\"" + note + "\"]");
  CHECK(!told_of(without.ask("tools/list")));
}

// in the background after a while -----------------------------------------------------------------

TEST_CASE("a command that takes long goes on in the background") {
  const TempDir place;
  Fifo go(place / "go");
  const std::string command = "echo begun; read x < " + go.path() + "; echo done; exit 4";
  Strings options = {"--timeout", "30"};
  Json arguments = Json::object({{"command", command}});
  SUBCASE("when the call says so") { arguments.set("run_in_background_after", 2); }
  SUBCASE("when the operator says so") {
    options.insert(options.end(), {"--run-in-background-after", "2"});
  }
  Server server(options);
  server.take_first_note();
  const Json running = server.execute_with(arguments);
  CHECK(begins(names_of(running),
               "success stdout stderr execution_time command work_dir outcome notes shell_id"));
  CHECK(running["success"] == Json(true));
  CHECK(running["notes"].size() == 1);
  CHECK(running["outcome"] == Json("running"));
  CHECK(running["stdout"] == Json("begun\n"));
  CHECK(running["stderr"] == Json(""));
  CHECK(running["timed_out"].is_null());
  CHECK(has(running["notes"][0].as_string(), running["shell_id"].as_string()));
  CHECK(server.use("list_background_shells")["count"] == Json(1));
  go.write_text("go\n");
  const Json output = wait_for_shell(server, running["shell_id"].as_string(), "exit");
  CHECK(output["stdout"] == Json("begun\ndone\n"));
  CHECK(output["exit_code"] == Json(4));
}

TEST_CASE("what is told of a running command fits into a reply") {
  Server server(Strings{"--max-output-size", "8m"});
  const Json running = server.execute_with(
      parsed(R"({"command":"for s in 1 2; do head -c 4000000 /dev/zero >&$s; done; sleep 300",)"
             R"("run_in_background_after":2})"));
  REQUIRE(running["outcome"] == Json("running"));
  CHECK(running["stdout"].as_string().size() < 400000);
  CHECK(running["stderr"].as_string().size() < 400000);
}

TEST_CASE("a command that ends before that is answered as ever") {
  const TempDir place;
  const std::string audit = place / "audit";
  Server server(Strings{"--max-output-size", "1024", "--audit-file", audit});
  server.take_first_note();
  const auto both = [&](const std::string& command) {
    Json with =
        server.execute_with(Json::object({{"command", command}, {"run_in_background_after", 30}}));
    Json without = server.execute(command);
    for (Json* result : {&with, &without}) {
      result->set("execution_time", 0);
      // Each has a file of its own.
      CHECK((*result)["stdout_file"].is_string() == (*result)["stdout_truncated"].as_bool());
      if (result->find("stdout_file")) {
        CHECK(has((*result)["notes"][0].as_string(), (*result)["stdout_file"].as_string()));
        result->set("stdout_file", "file");
        result->set("notes", 0);
      }
    }
    CHECK(with.dump() == without.dump());
    return with;
  };
  CHECK(both("echo x; echo y >&2; exit 3")["exit_code"] == Json(3));
  CHECK(both("sudo x")["rule"] == Json("sudo"));
  CHECK(both("kill -9 $$")["signal"] == Json(9));
  // Of a long output the beginning, too.
  CHECK(begins(both("seq 1 1000")["stdout"].as_string(), "1\n2\n"));
  CHECK(server.use("list_background_shells")["count"] == Json(0));
  CHECK(lines_of(support::read_file(audit)).size() == 9);
}

TEST_CASE("a command whose client goes away before that is killed") {
  const TempDir place;
  Fifo fifo(place / "fifo");
  Server server;
  server.send(Server::call_line(
      "x", Json::object({{"command", endless(fifo)}, {"run_in_background_after", 60}})));
  const pid_t pid = fifo.read_pid();
  server.cancel("x");
  CHECK(dies(pid));
  CHECK(server.use("list_background_shells")["count"] == Json(0));
}

TEST_CASE("who follows a shell by cursor misses nothing, however much it prints at once") {
  Server server;
  const std::string id = start_shell(server, "seq 1000001 1009999");
  std::string expected;
  for (int i = 1000001; i <= 1009999; ++i) expected += std::to_string(i) + "\n";
  std::string all;
  std::string since;
  Json output;
  int answers = 0;
  do {
    output = wait_for_shell(server, id, ".", since);
    const std::string& text = output["stdout"].as_string();
    CHECK(text.size() <= std::size_t{30000});
    CHECK((text.empty() || text.back() == '\n'));
    CHECK(output.find("stdout_missed_bytes") == nullptr);
    const bool more = text.size() > 0 && all.size() + text.size() < expected.size();
    if (more && output["status"] == Json("stopped"))
      CHECK(has(output["notes"].dump(), "more waits: ask again with since"));
    all += text;
    since = output["next"].as_string();
    ++answers;
  } while (output["wait"] == Json("matched") && answers < 100);
  CHECK(all == expected);
  CHECK(answers >= 3);
  // Without a cursor it is what there is, in short.
  output = server.use("get_background_shell_output", shell_arguments(id));
  CHECK(output["stdout_missed_bytes"].as_integer() > 40000);
  CHECK(support::begins(output["stdout"].as_string(), "1000001\n"));
  CHECK(has(output["stdout"].as_string(), "\n1009999\n"));
}

TEST_CASE("the end of a shell is announced to clients that listen, one way or the other") {
  const TempDir place;
  Server server(Strings{"--workspace", place.path()});
  const auto until = [&](const char* method) {
    for (;;) {
      const Json message = server.receive();
      REQUIRE(!message.is_null());
      if (message["method"] == Json(method)) return message["params"];
    }
  };
  const auto type = [&](const std::string& id) {
    Json arguments = shell_arguments(id);
    arguments.set("input", "x\n");
    server.send(Server::call_line("typed", arguments, {}, "write_background_shell"));
  };
  // A shell that was started as one, and a command that has become one.
  const std::string first = start_shell(server, "read x");
  const std::string second =
      server
          .execute_with(parsed(R"({"command":"while [ ! -e end ]; do sleep 0.01; done",)"
                               R"("run_in_background_after":0.01})"))["shell_id"]
          .as_string();
  REQUIRE(!second.empty());
  server.send(R"({"jsonrpc":"2.0","id":"listen","method":"subscriptions/listen","params":{"_meta":)"
              R"({"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
              R"("io.modelcontextprotocol/clientCapabilities":{}},"notifications":)"
              R"({"resourceSubscriptions":["file:///etc","codeexec://shell/)" +
              first + R"(","codeexec://shell/)" + second + "\"]}}}");
  CHECK(until("notifications/subscriptions/acknowledged")["notifications"] ==
        Json::object({{"resourceSubscriptions",
                       Json::array({"codeexec://shell/" + first, "codeexec://shell/" + second})}}));
  type(first);
  CHECK(until("notifications/resources/updated")["uri"] == Json("codeexec://shell/" + first));
  server.send(R"({"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}})");
  server.send(Server::call_line(2, parsed(R"({"command":"touch end"})")));
  CHECK(until("notifications/message")["data"] ==
        Json::object({{"shell_id", second}, {"status", "ended"}}));
  CHECK(until("notifications/resources/updated")["uri"] == Json("codeexec://shell/" + second));
  // What ends in the foreground is no news; what ends before its id is known is.
  server.send(Server::call_line(3, parsed(R"({"command":"true","run_in_background_after":30})")));
  server.send(Server::call_line(4, parsed(R"({"command":"true"})"), {}, "start_background_shell"));
  const Json last = until("notifications/message")["data"];
  CHECK(begins(last["shell_id"].as_string(), "shell_"));
  CHECK(last["shell_id"] != Json(first));
  CHECK(last["shell_id"] != Json(second));
}
