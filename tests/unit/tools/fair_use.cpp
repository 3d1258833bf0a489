// Bounds for a client, tools that are disabled, and the instructions.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/server_support.hpp"
#include "helpers.hpp"

using codeexec::Json;
using support::has;
using support::lines_of;
using support::parsed;
using support::Server;
using support::start_shell;
using support::Strings;
using support::TempDir;
using support::wait_for_shell;

TEST_CASE("calls in a minute are bounded for each tool") {
  const TempDir place;
  const std::string audit = place / "audit";
  Server server(Strings{"--calls-per-minute", "2", "--audit-file", audit});
  CHECK(server.execute("echo 1")["success"] == Json(true));
  CHECK(server.execute("echo 2")["success"] == Json(true));
  const Json r = server.execute("echo 3");
  CHECK(r["outcome"] == Json("refused"));
  CHECK(r["rule"] == Json("calls_per_minute"));
  CHECK(has(r["stderr"].as_string(), "calls_per_minute"));
  CHECK(has(r["stderr"].as_string(), "execute_command"));
  for (int i = 0; i < 2; ++i) server.use("list_background_shells");
  CHECK(has(server.error_of("list_background_shells", Json::object()), "calls_per_minute"));
  server.use("list_files", R"({"path":"/"})");
  CHECK(server.finish().empty());
  CHECK(parsed(lines_of(support::read_file(audit))[2])["allowed"] == Json(false));
}

TEST_CASE("the running time of all commands together is bounded") {
  Server server(Strings{"--running-time", "0.5"});
  Json r;
  SUBCASE("in the foreground") {
    r = server.execute("sleep 300");
    CHECK(r["timed_out"] == Json(true));
  }
  SUBCASE("in the background") {
    const Json output = wait_for_shell(server, start_shell(server, "sleep 300"), "exit");
    CHECK(output["status"] == Json("failed"));
  }
  r = server.execute("true");
  CHECK(r["rule"] == Json("running_time"));
  CHECK(has(r["stderr"].as_string(), "0.5 seconds"));
  CHECK(has(server.error_of("start_background_shell", parsed(R"({"command":"true"})")),
            "running_time"));
  r = server.use("execute_code", R"({"language":"sh","code":"true"})");
  CHECK(r["rule"] == Json("running_time"));
}

TEST_CASE("tools that are disabled are not there, and not spoken of") {
  Server server(Strings{"--disable-tool", "start_background_shell", "execute_code"});
  const Json tools = server.ask("tools/list")["result"]["tools"];
  CHECK(tools.size() == 12);
  for (const Json& tool : tools.items()) {
    CHECK(tool["name"] != Json("start_background_shell"));
    CHECK(tool["name"] != Json("execute_code"));
  }
  CHECK(!has(server.greeting["result"]["instructions"].as_string(), "start_background_shell"));
}

TEST_CASE("nothing sends the model to a tool that is disabled") {
  const auto told = [](Strings arguments) {
    Server server(arguments);
    return server.greeting["result"]["instructions"].as_string();
  };
  const std::string followed =
      told({"--disable-tool", "get_background_shell_output", "execute_code"});
  CHECK(has(followed, "start_background_shell (at most 10 at a time)."));
  CHECK(!has(followed, "get_background_shell_output"));
  CHECK(has(told({"--disable-tool", "execute_command", "start_background_shell"}), "are refused"));
  CHECK(has(told({"--allow-usual"}),
            "Only these commands may run, in their usual forms: basename cat "));
  CHECK(has(told({"--allow-usual", "--allowed-commands", "git.*"}),
            "may run: git.* . So may, in their usual forms: basename cat "));
  CHECK(told({"--disable-tool", "execute_command", "start_background_shell", "execute_code",
              "--allowed-commands", "git .*", "--blocked-commands", "git push.*", "--delete-guard",
              "--running-time", "5"}) == "");

  Server server(Strings{"--disable-tool", "get_background_shell_output", "kill_background_shell",
                        "write_background_shell"});
  const Json r =
      server.execute_with(parsed(R"({"command":"sleep 300","run_in_background_after":0.01})"));
  CHECK(r["notes"][0] ==
        Json("the command goes on in the background as " + r["shell_id"].as_string()));
}

TEST_CASE("the tools say which shell reads their commands") {
  const auto told = [](const Strings& arguments, std::size_t tool) {
    Server server(arguments);
    const Json schema = server.ask("tools/list")["result"]["tools"][tool]["inputSchema"];
    return schema["properties"]["command"]["description"].as_string();
  };
  // What it may lack is said once.
  const Strings plain = {"--shell", "/bin/sh"};
  CHECK(told(plain, 0) == "For /bin/sh, which may lack bash's [[, source and arrays.");
  CHECK(told(plain, 2) == "For /bin/sh.");
  const std::string found = told({}, 2);
  CHECK((found == "For /bin/sh." || has(found, "/bash.")));
  CHECK(told({"--shell", "auto"}, 2) == found);
  for (const std::size_t tool : {0U, 2U})
    CHECK(told({"--shell", "/bin/cat"}, tool) == "For /bin/cat.");
}

TEST_CASE("what a model is told at the start takes less than 9300 bytes") {
  const TempDir place;
  for (const char* option : {"--workspace", "--allowed-paths"}) {
    Server server(Strings{option, place.path()});
    const Json tools = server.ask("tools/list")["result"]["tools"];
    const std::string instructions = server.greeting["result"]["instructions"].as_string();
    CHECK(tools.size() == 14);
    CHECK(tools.dump().size() + instructions.size() < 9300);
    // What a model can not guess, and what goes wrong without it.
    const std::string told = tools[0].dump();
    for (const char* part : {"`&`", "start_background_shell", "same session_id"})
      CHECK_MESSAGE(has(told, part), told);
    CHECK(has(instructions, "a note names the file that has the whole"));
  }
}

TEST_CASE("the instructions tell what is in force") {
  const TempDir place;
  place.directory("venv/bin");
  const auto told = [&](Strings arguments) {
    arguments.insert(arguments.end(), {"--workspace", place.path()});
    Server server(arguments);
    return server.greeting["result"]["instructions"].as_string();
  };
  const std::string plain = told({});
  CHECK((has(plain, "The shell is /bin/sh.") || has(plain, "/bash.")));
  CHECK(has(plain, "start_background_shell (at most 10 at a time)"));
  // --sandbox off
  CHECK(has(plain, "Nothing confines commands: they can do all that the user can."));
  for (const char* absent : {"pattern", "in a sandbox", "in a minute", "before it", "virtual env"})
    CHECK(!has(plain, absent));
  CHECK(has(told({"--command-prefix", "uv run"}), "`uv run` before it"));
  CHECK(has(told({"--venv-path", place / "venv"}), place / "venv"));
  CHECK(has(told({"--allowed-commands", "git .*"}), "git .*"));
  CHECK(has(told({"--blocked-commands", "git push.*"}), "git push.*"));
  CHECK(has(told({"--calls-per-minute", "7"}), "7 times in a minute"));
  CHECK(has(told({"--running-time", "77"}), "77 seconds"));
  CHECK(has(told({"--limit-memory", "536870912"}), "536870912 bytes of memory"));
  CHECK(has(told({"--run-in-background-after", "12"}), "after 12 seconds"));
}

TEST_CASE("the server gives back the memory that large results took") {
#if defined(__GLIBC__)
  if (support::address_sanitizer || support::thread_sanitizer) return;  // with heaps of their own
  const TempDir place;
  support::Fifo printed(place / "printed");
  Server server(Strings{"--max-output-size", "3000000"});
  const auto resident = [&] {
    std::size_t total = 0;
    std::size_t pages = 0;
    const std::string statm = "/proc/" + std::to_string(server.pid()) + "/statm";
    CHECK(std::sscanf(support::read_file(statm).c_str(), "%zu %zu", &total, &pages) == 2);
    return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  };
  const std::size_t before = resident();
  const Json arguments = Json::object(
      {{"command", "head -c 3000000 /dev/zero | tr '\\0' x; echo > " + printed.path()}});
  for (int burst = 0; burst < 3; ++burst) {
    for (int i = 0; i < 16; ++i) server.send(Server::call_line(Json(100 + i), arguments));
    // Nothing is read until the server has all of it.
    for (int i = 0; i < 16; ++i) printed.read_line();
    for (int i = 0; i < 16; ++i) CHECK(server.receive_line().size() > 3000000);
  }
  server.ask("ping");
  // Of the 96 MB that went out each time, glibc kept 55 to 350 by itself.
  CHECK(resident() < before + 25000000);
#endif
}
