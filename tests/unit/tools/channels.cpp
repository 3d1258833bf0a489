// Whatever way a text comes to a shell, it passes the same gate.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/server_support.hpp"
#include "helpers.hpp"

using codeexec::Json;
using support::has;
using support::parsed;
using support::Server;
using support::shell_arguments;
using support::Strings;
using support::TempDir;
using support::typing;

TEST_CASE("stdin of a shell is judged") {
  const TempDir place;
  Server server(Strings{"--workspace", place.path(), "--blocked-commands", "git push.*"});
  for (const char* const call : {R"({"command":"bash","stdin":"git push --force; sudo id"})",
                                 R"({"command":"sh -s","stdin":"git push"})",
                                 R"({"command":"xargs -I{} sh -c '{}'","stdin":"git push"})"}) {
    CAPTURE(call);
    CHECK(server.execute_with(parsed(call))["success"] == Json(false));
  }
  CHECK(server.execute_with(parsed(R"({"command":"cat","stdin":"git push"})"))["stdout"] ==
        Json("git push"));
}

TEST_CASE("what is typed into a background shell is judged, and nothing of it gets there") {
  const TempDir place;
  Server server(Strings{"--workspace", place.path(), "--blocked-commands", "git push.*"});
  for (const bool terminal : {false, true}) {
    CAPTURE(terminal);
    Json start = Json::object({{"command", "sh"}});
    if (terminal) start.set("terminal", true);
    const std::string id = server.use("start_background_shell", start)["shell_id"].as_string();
    for (const char* const text : {"git push\n", "echo a; sudo id\n"}) {
      CAPTURE(text);
      const std::string message = server.error_of("write_background_shell", typing(id, text));
      CHECK(has(message, "Nothing was typed: "));
    }
    if (terminal) {
      // Before its prompt ctrl-c would end it.
      Json prompt = shell_arguments(id);
      prompt.set("screen", true);
      prompt.set("wait_for", "[#$]");
      server.use("get_background_shell_output", prompt);
      CHECK(has(server.error_of("write_background_shell", typing(id, "ls")), "not finished"));
      server.use("write_background_shell", typing(id, "", {"up"}));
      CHECK(has(server.error_of("write_background_shell", typing(id, "", {"enter"})), "ctrl-c"));
      server.use("write_background_shell", typing(id, "", {"ctrl-c"}));
    }
    server.use("write_background_shell", typing(id, "echo $((6 * 7)) > sum\n"));
    Json end = typing(id, "exit\n");
    server.use("write_background_shell", end);
    Json wait = shell_arguments(id);
    wait.set("wait_for", "exit");
    server.use("get_background_shell_output", wait);
    CHECK(support::read_file(place / "sum") == "42\n");
  }
}

namespace {

// Whether files that are changed from now on have a later time than this one: the clock that dates
// them goes on in steps.
bool is_of_the_past(const std::string& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  timespec now{};
#if defined(__APPLE__)
  const timespec& changed = status.st_ctimespec;
  ::clock_gettime(CLOCK_REALTIME, &now);
#else
  const timespec& changed = status.st_ctim;
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
#endif
  return now.tv_sec > changed.tv_sec ||
         (now.tv_sec == changed.tv_sec && now.tv_nsec > changed.tv_nsec);
}

}  // namespace

TEST_CASE("a file that a tool has written is judged when a command runs it") {
  const TempDir place;
  support::write_file(place / "person.sh", "touch made\n");
  REQUIRE(support::comes_true([&] { return is_of_the_past(place / "person.sh"); }));
  Server server(
      Strings{"--workspace", place.path(), "--blocked-commands", "(touch made|git push)"});
  const std::pair<const char*, const char*> files[] = {
      {"s.sh", "echo a\ngit push\n"}, {"s.py", "import os\nos.system('git push')\n"}};
  for (const auto& [path, content] : files)
    server.use("write_file", Json::object({{"file_path", path}, {"content", content}}));
  for (const char* const script : {"sh s.sh", ". ./s.sh", "python3 s.py", "cd . && bash ./s.sh"}) {
    CAPTURE(script);
    const Json result = server.execute(script);
    CHECK(result["rule"] == Json("blocked-commands"));
  }
  server.use("write_file", parsed(R"({"file_path":"edited.sh","content":"echo b\n"})"));
  CHECK(server.execute("sh edited.sh")["success"] == Json(true));
  server.use("edit_file", parsed(R"({"file_path":"edited.sh",)"
                                 R"("edits":[{"old_text":"echo b","new_text":"git push"}]})"));
  CHECK(server.execute("sh edited.sh")["rule"] == Json("blocked-commands"));
  // What a person had before is the person's.
  CHECK(server.execute("sh person.sh")["success"] == Json(true));
  CHECK(support::exists(place / "made"));
  server.execute("echo '# changed' >> person.sh");
  CHECK(server.execute("sh person.sh")["rule"] == Json("blocked-commands"));
}
