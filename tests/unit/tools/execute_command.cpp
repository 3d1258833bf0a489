// The tool execute_command: its description, results, sessions and binary output.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/server_support.hpp"
#include "helpers.hpp"

using codeexec::Json;
using support::all_keys;
using support::begins;
using support::check_failure;
using support::check_refused;
using support::dies;
using support::endless;
using support::ends;
using support::Fifo;
using support::has;
using support::names_of;
using support::parsed;
using support::run_command;
using support::run_program;
using support::Server;
using support::seven_keys;
using support::Strings;
using support::TempDir;
using support::wait_for_shell;

TEST_CASE("the tool is described as the reference describes it") {
  Server server(Strings{"--workspace", "/", "--timeout", "30", "--max-timeout", "90.5"});
  CHECK(server.greeting["result"]["serverInfo"]["name"] == Json("codeexec"));
  const std::string& told = server.greeting["result"]["instructions"].as_string();
  for (const char* part : {"execute_command", "by default in /."})
    CHECK_MESSAGE(has(told, part), told);
  const Json tools = server.ask("tools/list")["result"]["tools"];
  REQUIRE(tools.size() == 14);
  const Json& tool = tools[0];
  CHECK(tool["name"] == Json("execute_command"));
  CHECK(has(tool["description"].as_string(), "default 30 seconds"));
  const Json& input = tool["inputSchema"];
  CHECK(input["type"] == Json("object"));
  CHECK(input["required"] == parsed(R"(["command"])"));
  CHECK(names_of(input["properties"]) ==
        "command timeout work_dir session_id session_live run_in_background_after encoding "
        "max_output stdin idle_timeout");
  CHECK(input["properties"]["command"]["type"] == Json("string"));
  CHECK(input["properties"]["timeout"]["type"] == Json("number"));
  CHECK(input["properties"]["work_dir"]["type"] == Json("string"));
  CHECK(has(input["properties"]["timeout"]["description"].as_string(), "at most 90.5"));
  const Json& output = tool["outputSchema"];
  CHECK(names_of(output["properties"]) ==
        seven_keys +
            " outcome timed_out signal rule notes stdout_file stderr_file "
            "stdout_truncated stderr_truncated shell_id");
  // A command that still runs has no exit code.
  CHECK(output["required"].dump() ==
        R"(["success","stdout","stderr","execution_time","command","work_dir"])");
  // Every result has the types that the schema promises.
  const auto has_type = [](const Json& value, const std::string& type) {
    return type == "boolean"   ? value.is_bool()
           : type == "integer" ? value.is_integer()
           : type == "number"  ? value.is_number()
           : type == "array"   ? value.is_array()
                               : value.is_string();
  };
  Server full(Strings{"--full-results"});
  for (const char* command : {"echo x", "sudo x", "kill -9 $$"}) {
    const Json brief = server.execute(command);
    const Json r = full.execute(command);
    for (const Json::Member& property : output["properties"].members()) {
      const Json* const value = r.find(property.name);
      if (const Json* some = brief.find(property.name)) {
        REQUIRE(value);
        if (property.name != "execution_time" && property.name != "work_dir")
          CHECK(*some == *value);
      }
      if (value) CHECK(has_type(*value, property.value["type"].as_string()));
    }
  }
  CHECK(server.finish().empty());
  CHECK(!has(told, "before you delete"));
  Server guarded(Strings{"--delete-guard"});
  CHECK(has(guarded.greeting["result"]["instructions"].as_string(),
            "Read a file before you delete it."));
}

TEST_CASE("the delete guard remembers what the commands of a conversation read") {
  const TempDir place;
  place.file("a", "x");
  Server server(Strings{"--workspace", place.path(), "--delete-guard"});
  const Json r = server.execute("rm a");
  CHECK(r["rule"] == Json("delete-guard"));
  check_failure(
      r, "Cannot delete '" + (place / "a") +
             "': File must be read before deletion. View it with read_file, cat or diff first.");
  CHECK(server.execute("cat a")["stdout"] == Json("x"));
  CHECK(server.execute("rm a")["success"] == Json(true));
  CHECK(!support::exists(place / "a"));
}

TEST_CASE("--read-only forbids changes there, and nothing else") {
  const TempDir place;
  place.file("ro/file", "x");
  const auto rule_of = [&](const std::string& command, Strings arguments) {
    arguments.insert(arguments.end(), {"--workspace", place.path(), "--read-only", place / "ro"});
    return run_command(command, arguments)["rule"].as_string();
  };
  // What the policy says; what the kernel can add is another matter.
  for (const Strings& arguments :
       {Strings{}, Strings{"--allowed-paths", place.path(), "--sandbox", "off"}}) {
    CHECK(rule_of("cat ro/file > copy", arguments) == "");
    CHECK(rule_of("cd ro && cat file", arguments) == "");
    CHECK(rule_of("echo y > ro/file", arguments) == "read-only");
  }
  CHECK(support::read_file(place / "copy") == "x");
  CHECK(support::read_file(place / "ro/file") == "x");
  check_refused(
      run_program({"--read-only", place / "ro", "--allowed-paths", place / "ro", "--run", "true"}),
      "listed with different permissions");
}

TEST_CASE("arguments that break the schema are errors of the tool, and nothing runs") {
  const TempDir place;
  Server server(Strings{"--workspace", place.path()});
  const std::string touch = R"("command":"touch made")";
  for (const std::string& arguments :
       {std::string("{}"), std::string(R"({"command":7})"), std::string(R"({"command":null})"),
        std::string(R"({"command":["touch","made"]})"), "{" + touch + R"(,"timeout":"5s"})",
        "{" + touch + R"(,"timeout":0})", "{" + touch + R"(,"timeout":-1})",
        "{" + touch + R"(,"timeout":true})", "{" + touch + R"(,"work_dir":5})",
        "{" + touch + R"(,"workdir":"/"})", std::string(R"({"command":"touch made \ud800"})"),
        "{" + touch + R"(,"work_dir":"\udfff"})"}) {
    CAPTURE(arguments);
    server.send(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":)"
                R"("execute_command","arguments":)" +
                arguments + "}}");
    const Json reply = server.receive();
    CHECK(reply["id"] == Json(1));
    CHECK(reply["result"]["isError"] == Json(true));
    CHECK(!reply["result"]["content"][0]["text"].as_string().empty());
  }
  CHECK(!support::exists(place / "made"));
  const Json r = server.execute_with(parsed(R"({"command":"pwd","timeout":null,"work_dir":null})"));
  CHECK(r["stdout"] == Json(place.path() + "\n"));
  CHECK(server.execute_with(parsed(R"({"command":"pwd","work_dir":"/"})"))["stdout"] ==
        Json("/\n"));
  CHECK(server.execute_with(parsed(R"({"command":"pwd","work_dir":""})"))["stdout"] ==
        Json(place.path() + "\n"));
}

TEST_CASE("refusals and failures are normal results with the reference's texts") {
  const TempDir place;
  const TempDir outside;
  place.file("file");
  support::make_symlink(outside.path(), place / "out");
  const std::string root = place.path();
  Server server(Strings{"--workspace", root, "--allowed-paths", root, "--blocked-commands",
                        "echo bad.*", "--allowed-commands", "[a-z].*", "/.*"});
  for (const auto& [command, message] : std::vector<std::pair<const char*, const char*>>{
           {"chmod 777 file",
            "Potentially dangerous command detected: A mode that others may write by"},
           {"ECHO", "Command not in allowed list. Allowed patterns: [a-z].*, /.*"},
           {"echo bad", "Command matches blocked pattern: 'echo bad.*'"}}) {
    const Json r = server.execute(command);
    CHECK(begins(r["stderr"].as_string(), message));
    check_failure(r, r["stderr"].as_string());
  }
  const auto in_directory = [&](const std::string& work_dir) {
    Json arguments = Json::object({{"command", "pwd"}, {"work_dir", work_dir}});
    return server.execute_with(arguments);
  };
  struct Case {
    std::string work_dir, message, shown;
  };
  const std::string denied = "Path validation error: Path not in allowed directories: ";
  for (const Case& each : std::vector<Case>{
           {"/etc", denied + "/etc", "/etc"},
           {"out", denied + outside.path(), "out"},
           {"missing", "Working directory does not exist: " + root + "/missing", root + "/missing"},
           {"file", "Working directory is not a directory: " + root + "/file", root + "/file"}}) {
    CAPTURE(each.work_dir);
    const Json r = in_directory(each.work_dir);
    check_failure(r, each.message);
    CHECK(r["work_dir"] == Json(each.shown));
    CHECK(r["rule"] == Json("work_dir"));
    CHECK(r["execution_time"] == Json(0));
    CHECK(r["command"] == Json("pwd"));
  }
  // The policy is asked first.
  check_failure(server.execute_with(parsed(R"({"command":"echo bad","work_dir":"/etc"})")),
                "Command matches blocked pattern: 'echo bad.*'");
  CHECK(in_directory("")["stdout"] == Json(root + "\n"));
  const Json nul = server.execute_with(parsed(R"({"command":"a\u0000b"})"));
  CHECK(nul["rule"] == Json("nul-byte"));
  CHECK(nul["command"] == Json(std::string("a\0b", 3)));
  CHECK(nul["success"] == Json(false));
  CHECK(server.finish().empty());
}

TEST_CASE("W-14 W-18: a timeout is told in the reference's words, after the partial output") {
  Server server(Strings{"--max-timeout", "100", "--timeout", "100"});
  const Json whole =
      server.execute_with(parsed(R"({"command":"echo begin; exec sleep 60","timeout":1})"));
  CHECK(whole["stderr"] == Json("Command timed out after 1 second"));
  CHECK(whole["stdout"] == Json("begin\n"));
  CHECK(whole["exit_code"] == Json(-1));
  CHECK(whole["success"] == Json(false));
  CHECK(whole["timed_out"] == Json(true));
  CHECK(whole["outcome"] == Json("timed_out"));
  CHECK(whole["execution_time"].as_number() >= 1);
  const Json part =
      server.execute_with(parsed(R"({"command":"printf oops >&2; exec sleep 60","timeout":0.25})"));
  CHECK(part["stderr"] == Json("oops\nCommand timed out after 0.25 seconds"));
  const Json capped = server.execute_with(parsed(R"({"command":"true","timeout":1e300})"));
  CHECK(capped["success"] == Json(true));
  REQUIRE(capped["notes"].size() == 1);
  CHECK(ends(capped["notes"][0].as_string(), " to 100 seconds, the longest that is allowed here"));
  const Json model = server.execute_with(parsed(R"({"command":"true","timeout":120000})"));
  CHECK(model["notes"][0] ==
        Json("timeout reduced from 120000 to 100 seconds, the longest that is allowed here"));
  CHECK(!has(server.execute_with(parsed(R"({"command":"true","timeout":0.0001})"))["notes"].dump(),
             "reduced"));
}

TEST_CASE("W-09: after a timeout nothing of the tree is alive") {
  const TempDir place;
  Fifo fifo(place / "fifo");
  Server server;
  for (const std::string& command :
       {endless(fifo), "setsid " + std::string("sleep 300 & echo $! > ") + fifo.path() + "; wait",
        "sleep 300 & echo $! > " + fifo.path() + "; sleep 300 | cat; echo done"}) {
    Json arguments = Json::object({{"command", command}, {"timeout", 0.3}});
    const Json r = server.execute_with(arguments);
    CHECK(r["timed_out"] == Json(true));
    CHECK(dies(fifo.read_pid()));
  }
}

TEST_CASE("W-13 W-15 W-16 W-22: odd commands and outputs through the server") {
  const TempDir place;
  Fifo fifo(place / "fifo");
  Server server(Strings{"--max-output-size", "1000000"});
  const Json background = server.execute("sleep 300 & echo $! > " + fifo.path() + "; echo started");
  CHECK(background["success"] == Json(true));
  CHECK(background["stdout"] == Json("started\n"));
  CHECK(dies(fifo.read_pid()));
  const Json bytes = server.execute("printf 'ok\\377\\n'; exit 7");
  CHECK(bytes["exit_code"] == Json(7));
  CHECK(bytes["stdout"] == Json("ok\xEF\xBF\xBD\n"));
  CHECK(bytes["stdout_invalid_bytes"] == Json(1));
  CHECK(server.execute("printf 'a\\rb\\r\\nc'")["stdout"] == Json("b\r\nc"));
  const std::string text(200000, 'y');
  CHECK(server.execute("cat <<'EOF'\n" + text + "\nEOF")["stdout"] == Json(text + "\n"));
  for (const char* blank : {"", "   ", "\n\t\r\n"}) {
    const Json nothing = server.execute(blank);
    check_failure(nothing, "The command is empty");
    CHECK(nothing["rule"] == Json("command"));
    CHECK(server.error_of("start_background_shell", Json::object({{"command", blank}})) ==
          "The command is empty");
  }
  CHECK(server.execute("# nothing")["success"] == Json(true));
}

TEST_CASE("W-17: long output is cut in the middle, and counted") {
  Server server(Strings{"--max-output-size", "2000"});
  const Json r = server.execute("seq 1 100000");
  CHECK(r["success"] == Json(true));
  CHECK(r["stdout_truncated"] == Json(true));
  CHECK(r["stderr_truncated"].is_null());
  CHECK(r["stdout_bytes"] == Json(588895));
  const std::string& text = r["stdout"].as_string();
  CHECK(begins(text, "1\n2\n3\n"));
  CHECK(ends(text, "\n99999\n100000\n"));
  CHECK(has(text, "... (truncated: 587"));
  CHECK(text.size() < 2200);
}

TEST_CASE("no reply is above 8 MiB, and a shortened one says so") {
  Server server(Strings{"--max-output-size", "20000000"});
  constexpr std::size_t most = std::size_t{8} << 20;
  for (const char* command :
       {"head -c 6291456 /dev/zero | tr '\\0' '\\t'", "head -c 6291456 /dev/zero | tr '\\0' '\"'",
        "head -c 6291456 /dev/zero | tr '\\0' x",
        "head -c 6291456 /dev/zero | tr '\\0' x; "
        "head -c 6291456 /dev/zero | tr '\\0' '\\t' >&2"}) {
    CAPTURE(command);
    const Json r = server.execute(command);
    CHECK(server.last_line_size <= most);
    CHECK(server.last_line_size > most / 10);
    CHECK(r["success"] == Json(true));
    CHECK(r["stdout_bytes"] == Json(6291456));
    CHECK(r["stdout_truncated"] == Json(true));
    CHECK(has(r["stdout"].as_string(), "... (truncated to fit one reply: "));
  }
  // What fits is left as it is.
  const Json fits = server.execute("head -c 1000000 /dev/zero | tr '\\0' x");
  CHECK(fits["stdout"] == Json(std::string(1000000, 'x')));
  CHECK(fits["stdout_truncated"].is_null());
  // The command is in a full reply, too.
  Server full(Strings{"--full-results"});
  const Json r = full.execute("true '" + std::string(3000000, '"') + "'");
  CHECK(full.last_line_size <= most);
  CHECK(r["success"] == Json(true));
  CHECK(has(r["command"].as_string(), "... (truncated to fit one reply: "));
  CHECK(server.finish().empty());
}

TEST_CASE("a result tells a model what it does not know, and everything when that is asked for") {
  if (!support::confines()) return;
  const TempDir place;
  const std::string long_dir = place.directory(std::string(150, 'd') + "/" + std::string(150, 'e'));
  const std::string heredoc = "cat > file <<'E'\n" + std::string(10000, 'x') + "\nE\n";
  Server brief(Strings{"--workspace", place.path(), "--allowed-paths", place.path()});
  Server full(
      Strings{"--workspace", place.path(), "--allowed-paths", place.path(), "--full-results"});
  const auto names = [&](const char* command) { return names_of(brief.execute(command)); };
  CHECK(names("echo x; echo y >&2") == seven_keys);
  CHECK(names("exit 3") == seven_keys);
  CHECK(names("kill -9 $$") == seven_keys + " outcome signal notes");
  CHECK(names("sudo x") == seven_keys + " outcome rule");
  CHECK(names("printf '\\377'") == seven_keys + " stdout_bytes stdout_invalid_bytes");
  CHECK(begins(names_of(full.execute("echo x")), all_keys));
  // A model sees the progress as it would look; a program, and one that wants bytes, what was
  // printed.
  const char* const progress =
      "printf '1%%\\r2%%\\r\\n\\033[1mdone\\033[0m\\r\\n'; printf 'a\\rb' >&2";
  CHECK(brief.execute(progress)["stdout"] == Json("2%\r\ndone\r\n"));
  CHECK(brief.execute(progress)["stderr"] == Json("b"));
  CHECK(full.execute(progress)["stdout"] == Json("1%\r2%\r\n\x1b[1mdone\x1b[0m\r\n"));
  CHECK(full.execute(progress)["stderr"] == Json("a\rb"));
  const std::string id =
      full.use("start_background_shell", Json::object({{"command", progress}}))["shell_id"]
          .as_string();
  CHECK(wait_for_shell(full, id, "exit")["stdout"] == Json("1%\r2%\r\n\x1b[1mdone\x1b[0m\r\n"));

  // Of what the client has given stands the beginning.
  Json r = brief.execute(heredoc);
  CHECK(r["success"] == Json(true));
  CHECK(r["command"] == Json(heredoc.substr(0, 200) + "... (10020 bytes)"));
  CHECK(brief.last_line_size < 1500);
  CHECK(full.execute(heredoc)["command"] == Json(heredoc));
  const std::string fits = "true " + std::string(195, 'x');
  CHECK(brief.execute(fits)["command"] == Json(fits));
  const std::string wide = "true " + std::string(194, 'x') + "\xc3\xa4";
  CHECK(brief.execute(wide)["command"] == Json(wide.substr(0, 199) + "... (201 bytes)"));
  r = brief.execute_with(Json::object({{"command", "true"}, {"work_dir", long_dir}}));
  CHECK(begins(r["work_dir"].as_string(), place.path() + "/ddd"));
  CHECK(r["work_dir"].as_string().size() < 230);
  const Json shell = brief.use("start_background_shell", Json::object({{"command", heredoc}}));
  CHECK(shell["command"] == Json(heredoc.substr(0, 200) + "... (10020 bytes)"));
  const Json status =
      brief.use("get_background_shell_status", Json::object({{"shell_id", shell["shell_id"]}}));
  CHECK(status["command"] == shell["command"]);
}

TEST_CASE("commands with the same session_id begin where the last one ended") {
  if (!support::confines()) return;
  const TempDir place;
  place.directory("sub");
  Server server(Strings{"--workspace", place.path(), "--allowed-paths", place.path()});
  const auto run = [&](const char* id, const std::string& command, const char* work_dir = nullptr) {
    Json arguments = Json::object({{"command", command}, {"session_id", id}});
    if (work_dir) arguments.set("work_dir", work_dir);
    return server.execute_with(arguments);
  };
  CHECK(ends(names_of(run("a", "true")), " session_id session_work_dir"));
  Json r = run("a", "cd sub; export X=1; exit 3");
  CHECK(r["exit_code"] == Json(3));
  CHECK(r["work_dir"] == Json(place.path()));
  CHECK(r["session_id"] == Json("a"));
  CHECK(r["session_work_dir"] == Json(place / "sub"));
  r = run("a", "echo $X; pwd");
  CHECK(r["stdout"] == Json("1\n" + (place / "sub") + "\n"));
  CHECK(r["work_dir"] == Json(place / "sub"));
  // Neither another one nor none at all.
  r = run("A", "echo ${X-none}; pwd");
  CHECK(r["stdout"] == Json("none\n" + place.path() + "\n"));
  CHECK(r["session_work_dir"] == Json(place.path()));
  r = server.execute_with(parsed(R"({"command":"echo ${X-none}; pwd","session_id":null})"));
  CHECK(r["stdout"] == Json("none\n" + place.path() + "\n"));
  CHECK_FALSE(r.find("session_id"));
  CHECK_FALSE(r.find("session_work_dir"));

  // Out of what is allowed it does not go, and says so.
  r = run("a", "cd /; cd usr");
  CHECK(r["session_work_dir"] == Json(place / "sub"));
  CHECK(has(r["notes"].dump(), "the session stays in "));
  r = run("a", "pwd");
  CHECK(r["stdout"] == Json((place / "sub") + "\n"));
  CHECK_FALSE(r.find("notes"));
  CHECK(run("a", "pwd", ".")["stdout"] == Json(place.path() + "\n"));
  CHECK(run("a", "pwd; echo $X")["stdout"] == Json(place.path() + "\n1\n"));

  // What goes on in the background belongs to its session all the same.
  Fifo go(place / "go");
  r = server.execute_with(parsed(R"({"command":"cd sub; read x < ../go; export X=2",)"
                                 R"("session_id":"a","run_in_background_after":0.01})"));
  CHECK(r["outcome"] == Json("running"));
  CHECK(r["session_work_dir"] == Json(place.path()));
  go.write_text("go\n");
  CHECK(wait_for_shell(server, r["shell_id"].as_string(), "exit")["exit_code"] == Json(0));
  CHECK(run("a", "pwd; echo $X")["stdout"] == Json((place / "sub") + "\n2\n"));
}

TEST_CASE("names of sessions are bounded, and so is their number") {
  Server server(Strings{"--workspace", "/", "--no-supervisor"});
  const auto arguments = [](const std::string& id, const char* command) {
    return Json::object({{"command", command}, {"session_id", id}});
  };
  const std::string longest(64, 'x');
  CHECK(server.execute_with(arguments(longest, "true"))["session_id"] == Json(longest));
  CHECK(server.execute_with(arguments("Az09._-", "true"))["success"] == Json(true));
  for (const std::string& id : {std::string(), longest + "x", std::string("a b"),
                                std::string("a/b"), std::string("\xc3\xa9"), std::string("a\n")})
    CHECK(has(server.error_of("execute_command", arguments(id, "true")), "session_id"));
  CHECK(has(server.error_of("execute_command", parsed(R"({"command":"true","session_id":1})")),
            "session_id"));

  // Of more than 100 the one goes that was not used for the longest.
  const auto shown = [&](const std::string& id) {
    return server.execute_with(arguments(id, "echo ${X-none}"))["stdout"].as_string();
  };
  for (const char* id : {"first", "second"})
    CHECK(server.execute_with(arguments(id, "export X=1"))["success"] == Json(true));
  for (int i = 0; i < 98; ++i) {
    // Refused, which is quick; a session is used all the same.
    CHECK(server.execute_with(arguments(std::to_string(i), "sudo x"))["rule"] == Json("sudo"));
  }
  CHECK(shown("first") == "1\n");
  CHECK(server.execute_with(arguments("more", "sudo x"))["rule"] == Json("sudo"));
  CHECK(shown("first") == "1\n");
  CHECK(shown("second") == "none\n");
}

TEST_CASE("binary output is given in base64 when that is asked for") {
  Server server(Strings{"--max-output-size", "1024"});
  const auto run = [&](const std::string& command) {
    return server.execute_with(Json::object({{"command", command}, {"encoding", "base64"}}));
  };
  const Json r = run("printf 'a\\377\\000\\r\\n'; printf '\\376' >&2");
  CHECK(r["encoding"] == Json("base64"));
  CHECK(r["stdout"] == Json("Yf8ADQo="));
  CHECK(r["stderr"] == Json("/g=="));
  CHECK(r["stdout_truncated"].is_null());
  const Json many = run("head -c 5000 /dev/zero");
  CHECK(many["stdout"].as_string().size() == 1024);
  CHECK(many["stdout_truncated"] == Json(true));
  CHECK(many["stdout_bytes"] == Json(5000));
}

TEST_CASE("an answer in base64 tells what else would end stderr") {
  Server server;
  server.take_first_note();
  const auto notes = [&](const char* arguments) {
    const Json r = server.execute_with(parsed(arguments));
    CHECK(r["stderr"] == Json(""));
    REQUIRE(r["notes"].size() > 0);
    return r["notes"][0].as_string();
  };
  CHECK(has(notes(R"({"encoding":"base64","command":"sudo true"})"), "sudo"));
  CHECK(notes(R"({"encoding":"base64","command":"sleep 300","timeout":0.25})") ==
        "Command timed out after 0.25 seconds");
}

TEST_CASE("an answer in base64 has room for itself beside a long command") {
  Server server(Strings{"--max-output-size", "3000000"});
  const Json r = server.execute_with(
      Json::object({{"command", ": " + std::string(1900000, 'x') +
                                    "; head -c 1000000 /dev/zero | tr '\\0' x | tee /dev/stderr"},
                    {"encoding", "base64"}}));
  CHECK(r["stdout"].as_string().size() == 1333336);
  CHECK(r["stderr"].as_string().size() == 1333336);
  CHECK(server.last_line_size <= std::size_t{8} << 20);
}

TEST_CASE("names and texts that models send are understood, and others are told of the right one") {
  const TempDir place;
  const std::string folder = place.directory("folder");
  Server server(Strings{"--workspace", place.path()});
  CHECK(server.execute_with(parsed(
            R"({"command":"pwd","cwd":"folder","timeout":"5"})"))["stdout"] == Json(folder + "\n"));
  for (const char* name : {"stdin", "input"})
    CHECK(server.execute_with(Json::object({{"command", "cat"}, {name, "some\ntext"}}))["stdout"] ==
          Json("some\ntext"));
  CHECK(server.execute_with(
            parsed(R"({"command":"cat","stdin":"x","run_in_background_after":9})"))["stdout"] ==
        Json("x"));
  CHECK(has(
      server.error_of("execute_command", parsed(R"({"command":"pwd","cwd":"/","work_dir":"/"})")),
      "argument 'cwd' is another name of work_dir"));
  const std::string unknown =
      server.error_of("execute_command", parsed(R"({"command":"true","timeout_ms":5})"));
  CHECK(has(unknown, "'timeout_ms' is unknown; timeout is known: Seconds"));
  CHECK(!has(unknown, ".."));
  CHECK(has(
      server.error_of("execute_command", parsed(R"({"command":"true","run_in_background":true})")),
      "'run_in_background' is unknown; run_in_background_after is known: Seconds"));
  CHECK(has(server.error_of("execute_command", parsed(R"({"command":"true","path":"x"})")),
            "'path' is unknown; work_dir is known: "));
  CHECK(has(server.error_of("read_file", parsed(R"({"path":"x"})")),
            "'path' is unknown; file_path is known: "));
  CHECK(has(server.error_of("edit_file", parsed(R"({"path":"x","edits":[]})")),
            "'path' is unknown; file_path is known; argument 'file_path' is missing"));
}
