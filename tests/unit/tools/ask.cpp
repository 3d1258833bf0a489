// What a person must approve, asked through the client; idle_timeout; the line of progress.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "helpers.hpp"

using codeexec::Json;
using codeexec::ProcessResult;
using support::begins;
using support::check_refused;
using support::Fifo;
using support::has;
using support::lines_of;
using support::parsed;
using support::run_command;
using support::run_program;
using support::Server;
using support::Strings;
using support::TempDir;

namespace {

// A server whose client can ask its user.
struct Asking {
  Server server;
  Json question = {};  // the last one, and its id
  int next = 0;

  explicit Asking(Strings arguments, bool can_ask = true) : server(options(std::move(arguments))) {
    const Json reply = server.ask(
        "initialize", std::string(R"({"protocolVersion":"2025-06-18","capabilities":{)") +
                          (can_ask ? R"("elicitation":{})" : "") +
                          R"(},"clientInfo":{"name":"probe","version":"7"}})");
    REQUIRE(reply["result"].is_object());
    server.send(R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
  }
  static Server::Options options(Strings arguments) {
    Server::Options result;
    result.arguments = std::move(arguments);
    result.initialize = false;
    return result;
  }
  // Calls a tool and takes the question that comes. Null: the answer came at once.
  Json call(const Json& arguments, const std::string& tool = "execute_command",
            const Json& meta = {}) {
    server.send(Server::call_line(++next, arguments, meta, tool));
    return take_question();
  }
  Json take_question() {
    question = Json();
    const Json message = server.receive();
    if (message["method"] != Json("elicitation/create")) return message;
    question = message;
    return {};
  }
  const std::string& text() const { return question["params"]["message"].as_string(); }
  void answer(const std::string& result) {
    server.send(R"({"jsonrpc":"2.0","id":)" + question["id"].dump() + R"(,"result":)" + result +
                "}");
  }
  // The object of the tool's answer.
  Json say(const std::string& choice) {
    answer(R"({"action":"accept","content":{"answer":")" + choice + "\"}}");
    return Server::object_of(server.receive()["result"]);
  }
};

Json command(const std::string& script) { return Json::object({{"command", script}}); }

}  // namespace

TEST_CASE("ask: a client that cannot ask gets a refusal that says so") {
  const TempDir place;
  Asking client({"--workspace", place.path(), "--ask-commands", "touch .*"}, false);
  const Json reply = client.call(command("touch made"));
  CHECK(client.question.is_null());
  const Json object = Server::object_of(reply["result"]);
  CHECK(object["rule"] == Json("ask-commands"));
  CHECK(object["stderr"] ==
        Json("Command needs the approval of a person, and this client cannot ask its user: Command "
             "matches a pattern that a person must approve: 'touch .*'"));
  CHECK(!support::exists(place / "made"));
  CHECK(run_command("touch made", {"--workspace", place.path(), "--ask-commands",
                                   "touch .*"})["rule"] == Json("ask-commands"));
}

TEST_CASE("ask: a prefix is offered where there is one, and files that are run are named") {
  const TempDir place;
  place.file("a.sh", "true\n");
  Asking client({"--workspace", place.path(), "--ask-commands", "git .*", "sh .*"});
  client.call(command("git version"));
  CHECK(has(client.text(), "no command that begins with `git version` is asked about again"));
  CHECK(client.question["params"]["requestedSchema"]["properties"]["answer"]["enum"] ==
        parsed(R"(["once","session","prefix","no"])"));
  client.say("prefix");
  client.call(command("git version --build-options"));
  CHECK(client.question.is_null());
  client.call(command("sh a.sh"));
  CHECK(has(client.text(),
            "\nIt runs these files, which can change; then it is asked again:\n  | a.sh\n"));
  CHECK(client.say("once")["success"] == Json(true));
}

TEST_CASE("ask: once, session and no, and the audit log tells who has answered") {
  const TempDir place;
  const std::string audit = place / "audit";
  Asking client({"--workspace", place.path(), "--ask-commands", "touch .*", "--ask-rule", "chmod",
                 "--audit-file", audit});
  client.call(command("touch made"));
  REQUIRE(!client.question.is_null());
  CHECK(client.text() ==
        "May this command run?\nCommand:\n  | touch made\nFolder:\n  | " + place.path() +
            "\nAsked because of ask-commands:\n  | Command matches a pattern that a person must "
            "approve: 'touch .*'\nonce: it runs now. session: it runs, and exactly the same is not "
            "asked again until the server ends. no: it does not run, and the model is told so.");
  const Json& schema = client.question["params"]["requestedSchema"];
  CHECK(schema == parsed(R"({"type":"object","properties":{"answer":{"type":"string",)"
                         R"("enum":["once","session","no"]}},"required":["answer"]})"));
  Json object = client.say("no");
  CHECK(object["success"] == Json(false));
  CHECK(begins(object["stderr"].as_string(), "A person was asked and did not allow it: "));
  CHECK(!support::exists(place / "made"));
  client.call(command("touch made"));
  CHECK(client.say("once")["success"] == Json(true));
  CHECK(support::exists(place / "made"));
  client.call(command("touch made"));
  CHECK(client.say("session")["success"] == Json(true));
  const Json reply = client.call(command("touch made"));
  CHECK(client.question.is_null());
  CHECK(Server::object_of(reply["result"])["success"] == Json(true));
  client.call(command("chmod 777 made"));
  CHECK(has(client.text(), "Asked because of chmod:\n"));
  CHECK(client.say("once")["success"] == Json(true));
  // A refusal is no question.
  client.call(command("touch x; sudo id"));
  CHECK(client.question.is_null());
  CHECK(client.server.finish().empty());
  const Strings lines = lines_of(support::read_file(audit));
  REQUIRE(lines.size() == 6);
  const char* const answers[] = {"no", "once", "session", "remembered", "once", ""};
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Json record = parsed(lines[i]);
    CHECK(record["answer"].as_string() == answers[i]);
    CHECK(record["asked"].as_string() == (i == 3 || i == 5 ? "" : "the user of probe 7"));
  }
}

TEST_CASE("ask: answers that are none do not let a command run") {
  const TempDir place;
  Asking client({"--workspace", place.path(), "--ask-commands", "touch .*"});
  const std::pair<const char*, const char*> answers[] = {
      {R"({"action":"decline"})", "the client declined, for its user or by itself"},
      {R"({"action":"cancel"})", "the question was closed without an answer"},
      {R"({"action":"accept"})", ""},
      {R"({"action":"accept","content":{}})", ""},
      {R"({"action":"accept","content":{"answer":"yes"}})", ""},
      {R"({"action":"accept","content":{"answer":["once"]}})", ""},
      {R"({"action":"Accept","content":{"answer":"once"}})", ""},
      {R"({"action":"decline","content":{"answer":"once"}})", ""},
      {R"({"content":{"answer":"once"}})", ""},
      {"[]", ""}};
  for (const auto& entry : answers) {
    const std::string answer = entry.first;
    CAPTURE(answer);
    client.call(command("touch made"));
    REQUIRE(!client.question.is_null());
    client.answer(answer);
    const Json object = Server::object_of(client.server.receive()["result"]);
    CHECK(object["rule"] == Json("ask-commands"));
    CHECK(has(object["stderr"].as_string(), entry.second));
    CHECK(!support::exists(place / "made"));
  }
  // A second answer comes too late.
  client.call(command("touch made"));
  client.answer(R"({"action":"decline"})");
  CHECK(Server::object_of(client.server.receive()["result"])["success"] == Json(false));
  client.answer(R"({"action":"accept","content":{"answer":"once"}})");
  client.server.ping();
  CHECK(!support::exists(place / "made"));
  CHECK(client.server.finish().empty());
}

TEST_CASE("ask: a person who does not answer in time, and a call that is cancelled meanwhile") {
  const TempDir place;
  Asking client(
      {"--workspace", place.path(), "--ask-commands", "touch .*", "--ask-timeout", "0.2"});
  client.call(command("touch made"));
  REQUIRE(!client.question.is_null());
  Json message = client.server.receive();
  while (message.find("method")) message = client.server.receive();
  CHECK(has(Server::object_of(message["result"])["stderr"].as_string(),
            "nobody answered within 0.2 seconds"));

  Asking patient({"--workspace", place.path(), "--ask-commands", "touch .*"});
  patient.call(command("touch made"));
  REQUIRE(!patient.question.is_null());
  patient.server.cancel(Json(1));
  patient.answer(R"({"action":"accept","content":{"answer":"once"}})");
  // The call is not answered.
  message = Json();
  patient.server.send(R"({"jsonrpc":"2.0","id":"p","method":"ping"})");
  do message = patient.server.receive();
  while (message.find("method"));
  CHECK(message["id"] == Json("p"));
  CHECK(!support::exists(place / "made"));
}

TEST_CASE("ask: a command cannot hide in the question, or look like a part of it") {
  const TempDir place;
  Asking client(
      {"--workspace", place.path(), "--ask-commands", "touch .*", "--disable-tool", "write_file"});
  const std::string blanks(150, ' ');
  client.call(command("touch 'a\nFolder:\n  | /safe\r\x1b[2J\t\xe2\x80\xae" + blanks +
                      "touch b\xc2\xa0\xe4\xb8\xad'"));
  REQUIRE(!client.question.is_null());
  const std::string text = client.text();
  CHECK(has(text,
            "Command:\n  | touch 'a\n  | Folder:\n  |   | /safe\\u{d}\\u{1b}[2J\\u{9}"
            "\\u{202e}"));
  CHECK(has(text, "touch b\\u{a0}\xe4\xb8\xad'\nFolder:\n"));
  for (const std::string& line : lines_of(text)) CHECK(line.size() < 200);
  for (const std::string& line : lines_of(text)) {
    if (begins(line, "  | ") || begins(line, "  + ")) continue;
    CHECK(
        has("May this command run?Command:Folder:Asked because of ask-commands:once: it runs "
            "now. session: it runs, and exactly the same is not asked again until the server "
            "ends. no: it does not run, and the model is told so.",
            line));
  }
  client.say("no");
  // What it reads is a part of what runs.
  client.call(parsed(R"({"command":"touch x; cat","stdin":"one\ntwo"})"));
  CHECK(has(client.text(), "Its standard input:\n  | one\n  | two\n"));
  client.say("no");
  // So are the variables that its session has.
  const Json object = Server::object_of(
      client.call(parsed(R"({"command":"export PATH=/evil:$PATH","session_id":"s"})"))["result"]);
  CHECK(object["success"] == Json(true));
  client.call(parsed(R"({"command":"touch x","session_id":"s"})"));
  CHECK(has(client.text(), "With these variables:\n  | PATH=/evil:"));
  client.say("no");
  // What cannot be shown whole is not asked about.
  for (const std::string& more : {std::string(9000, 'x'), support::repeat("\n", 300)}) {
    const Json reply = client.call(command("touch a # " + more));
    CHECK(client.question.is_null());
    CHECK(has(Server::object_of(reply["result"])["stderr"].as_string(),
              "a question of more than 8192 bytes or 200 lines is not asked"));
  }
}

TEST_CASE("ask: background commands and code are asked about, too") {
  const TempDir place;
  Asking client({"--workspace", place.path(), "--ask-commands", "touch .*", "python3 .*"});
  client.call(command("touch made"), "start_background_shell");
  REQUIRE(!client.question.is_null());
  client.answer(R"({"action":"accept","content":{"answer":"once"}})");
  CHECK(client.server.receive()["result"]["structuredContent"]["shell_id"].is_string());
  client.call(parsed(R"({"code":"print(6 * 7) ","language":"python"})"), "execute_code");
  REQUIRE(!client.question.is_null());
  CHECK(has(client.text(), "Code that it runs:\n  | print(6 * 7) \n"));
  CHECK(client.say("once")["stdout"] == Json("42\n"));
  client.call(parsed(R"({"code":"touch x","language":"sh"})"), "execute_code");
  REQUIRE(!client.question.is_null());
  CHECK(client.say("no")["success"] == Json(false));
  client.call(parsed(R"({"command":"touch y; echo x","run_in_background_after":50})"));
  CHECK(client.say("once")["stdout"] == Json("x\n"));
}

TEST_CASE("ask: code that another command has changed meanwhile is not what runs") {
  const TempDir place;
  Asking client({"--workspace", place.path(), "--ask-commands", "python3 .*"});
  client.call(Json::object({{"code", "# filename: a.py\nprint(6 * 7)"}, {"language", "python"}}),
              "execute_code");
  REQUIRE(!client.question.is_null());
  place.file("a.py", "print('other')");
  CHECK(client.say("once")["stdout"] == Json("42\n"));
}

TEST_CASE("ask: while a person is asked, a client that wants progress hears so") {
  const TempDir place;
  Asking client({"--workspace", place.path(), "--ask-commands", "touch .*"});
  client.server.send(
      Server::call_line(1, command("touch made"), Json::object({{"progressToken", "t"}})));
  bool told = false;
  Json question;
  double last = -1;
  while (!told) {
    const Json message = client.server.receive();
    if (message["method"] == Json("elicitation/create")) question = message;
    if (message["method"] != Json("notifications/progress")) continue;
    CHECK(message["params"]["progress"].as_number() > last);
    last = message["params"]["progress"].as_number();
    told = message["params"]["message"] == Json("waiting for a person's approval");
  }
  client.question = question;
  client.answer(R"({"action":"accept","content":{"answer":"once"}})");
  Json message = client.server.receive();
  while (message.find("method")) message = client.server.receive();
  CHECK(Server::object_of(message["result"])["success"] == Json(true));
}

TEST_CASE("ask: --check tells a question from a refusal, by a key and by its status") {
  const Strings options = {"--ask-commands", "git push.*", "--ask-rule", "sudo"};
  const auto check = [&](const std::string& what, const std::string& input = {}) {
    Strings arguments = options;
    arguments.insert(arguments.end(), {"--check", what});
    return run_program(arguments, "/", {}, input);
  };
  for (const char* script : {"git push", "sudo id"}) {
    const ProcessResult r = check(script);
    CHECK(r.exit_code == 3);
    const Json object = parsed(r.out);
    CHECK(support::names_of(object) == "allowed must_ask rule message begin end commands");
    CHECK(object["allowed"] == Json(false));
    CHECK(object["must_ask"] == Json(true));
  }
  CHECK(check("git status").exit_code == 0);
  const ProcessResult refused = check("git push; su");
  CHECK(refused.exit_code == 1);
  CHECK(!parsed(refused.out).find("must_ask"));
  CHECK(check("-", "\"true\"\n\"git push\"\n\"true\"\n").exit_code == 3);
  CHECK(check("-", "\"su\"\n\"git push\"\n").exit_code == 1);
  CHECK(check("-", "\"git push\"\n\"su\"\n").exit_code == 1);
  CHECK(check("-", "\"git push\"\nx\n\"su\"\n").exit_code == 2);
  check_refused(run_program({"--ask-rule", "dd", "--disable-rule", "dd", "--check", "true"}),
                "ask_rule: 'dd' is in disabled_rules, too");
  CHECK(has(run_program({"--ask-commands", "git push", "--check", "true"}).err,
            "ask_commands: 'git push' matches only this exact command; write 'git push( .*)?' to "
            "ask about it with arguments"));
}

TEST_CASE("idle_timeout: of a call, of the server, of a background command and in a place") {
  const Strings places[] = {
      {}, {"--execution-mode", "command", "--place-command", CODEEXEC_MCP " --place"}};
  for (Strings arguments : places) {
    arguments.insert(arguments.end(), {"--idle-timeout", "0.3"});
    Server server(arguments);
    server.take_first_note();
    Json object = server.execute("echo x; exec sleep 300");
    CHECK(object["stderr"] == Json("Command timed out: no output for 0.3 seconds"));
    CHECK(object["stdout"] == Json("x\n"));
    CHECK(object["outcome"] == Json("timed_out"));
    CHECK(object["timed_out"] == Json(true));
    CHECK(object["notes"] ==
          Json::array(
              {"pass a longer idle_timeout (at most 3600 s), or use start_background_shell"}));
    object = server.execute_with(parsed(R"({"command":"sleep 0.5; echo x","idle_timeout":60})"));
    CHECK(object["success"] == Json(true));
    // It goes on in the background, where the server's has no effect.
    const Json shell = server.execute_with(
        parsed(R"({"command":"sleep 300","run_in_background_after":0.01,"idle_timeout":0.5})"));
    REQUIRE(shell["shell_id"].is_string());
    Json arguments_of_wait = Json::object({{"wait_for", "exit"}});
    arguments_of_wait.set("shell_id", shell["shell_id"]);
    CHECK(server.use("get_background_shell_output", arguments_of_wait)["wait"] == Json("ended"));
    const Json status =
        server.use("get_background_shell_status", Json::object({{"shell_id", shell["shell_id"]}}));
    CHECK(status["status"] == Json("failed"));
    CHECK(status["notes"] == parsed(R"(["Command timed out: no output for 0.5 seconds"])"));
    CHECK(server.finish().empty());
  }
}

TEST_CASE("idle_timeout: of code, and of a command that begins in the background") {
  Server server;
  const Json code =
      server.use("execute_code",
                 parsed(R"({"code":"echo x; exec sleep 300","language":"sh","idle_timeout":0.3})"));
  CHECK(code["stderr"] == Json("Command timed out: no output for 0.3 seconds"));
  CHECK(code["stdout"] == Json("x\n"));
  CHECK(code["outcome"] == Json("timed_out"));
  const Json shell = server.use("start_background_shell",
                                parsed(R"({"command":"echo x; sleep 300","idle_timeout":0.3})"));
  Json id = Json::object({{"shell_id", shell["shell_id"]}});
  const Json status = id;
  id.set("wait_for", Json("exit"));
  CHECK(server.use("get_background_shell_output", id)["wait"] == Json("ended"));
  const Json told = server.use("get_background_shell_status", status);
  CHECK(told["status"] == Json("failed"));
  CHECK(told["outcome"] == Json("timed_out"));
  CHECK(told["notes"] == parsed(R"(["Command timed out: no output for 0.3 seconds"])"));
  CHECK(has(server.error_of("execute_code", parsed(R"({"code":"true","idle_timeout":0})")),
            "idle_timeout"));
  CHECK(has(
      server.error_of("start_background_shell", parsed(R"({"command":"true","idle_timeout":0})")),
      "idle_timeout"));
  CHECK(server.finish().empty());
}

TEST_CASE(
    "progress of a silent command shows the time and the last line, cleaned, cut and masked") {
  const TempDir place;
  Fifo go(place / "go");
  Server::Options options;
  options.arguments = {"--secret-env", "TOKEN"};
  options.environment = {"TOKEN=hunter-two"};
  Server server(options);
  const auto last_of = [&](const std::string& script, const std::string& wanted) {
    static int id = 0;
    ++id;
    server.send(Server::call_line(id, command(script + "; read x < " + go.path()),
                                  Json::object({{"progressToken", id}})));
    std::string text;
    while (!has(text, " s: ") || !has(text, wanted))
      text = server.receive()["params"]["message"].as_string();
    go.write_text("go\n");
    for (Json reply = server.receive(); reply.find("method");) reply = server.receive();
    CHECK(text.find(" s: ") <= 3);
    return text.substr(text.find(": ") + 2);
  };
  CHECK(last_of("echo one; echo 'two  '; printf '\\n \\n'", "two") == "two");
  CHECK(last_of("printf 'old\\rnew\\033[31m red\\033[0m\\001'", "new") == "new red\\x01");
  CHECK(last_of("echo hunter-two", "[re") == "[redacted]");
  // Only a terminal puts it together.
  CHECK(last_of("printf 'hunx\\bter-two'", "[re") == "[redacted]");
  CHECK(last_of("seq -s, 1000 2000", "1,1").size() == 200);
}
