// The client's roots: commands work in them, as far as the operator allows it.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/server_support.hpp"
#include "helpers.hpp"

using codeexec::Json;
using support::begins;
using support::ends;
using support::has;
using support::parsed;
using support::Server;
using support::Strings;
using support::TempDir;

namespace {

std::string root_of(const std::string& path) { return R"({"uri":"file://)" + path + "\"}"; }

// A server, and a client that has roots.
class Rooted {
 public:
  explicit Rooted(const std::string& work_dir, Strings arguments = {},
                  const std::string& home = "/nonexistent", Strings environment = {})
      : server_(options(work_dir, std::move(arguments), home, std::move(environment))) {
    server_.greeting = server_.ask(
        "initialize", R"({"protocolVersion":"2025-11-25","capabilities":{"roots":)"
                      R"({"listChanged":true}},"clientInfo":{"name":"test","version":"1"}})");
    notify("initialized");
  }

  void notify(const std::string& what) {
    server_.send(R"({"jsonrpc":"2.0","method":"notifications/)" + what + R"("})");
  }
  // The next message must ask for the roots. Its id.
  std::string question() {
    const Json asked = server_.receive();
    CHECK(asked["method"] == Json("roots/list"));
    return asked["id"].dump();
  }
  void answer(const std::string& id, const std::string& roots) {
    server_.send(R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":{"roots":[)" + roots + "]}}");
  }
  // Answers the question that has come, or comes.
  void name_roots(const std::string& roots) { answer(question(), roots); }
  void change_roots(const std::string& roots) {
    notify("roots/list_changed");
    name_roots(roots);
  }

  std::string folder() { return server_.execute("pwd")["stdout"].as_string(); }
  // The notes of a command, joined.
  std::string notes() {
    std::string all;
    const Json result = server_.execute("true");
    for (const Json& note : result["notes"].items()) all += note.as_string() + "\n";
    return all;
  }
  Server& server() { return server_; }

 private:
  static Server::Options options(const std::string& work_dir, Strings arguments,
                                 const std::string& home, Strings environment) {
    Server::Options made;
    made.arguments = std::move(arguments);
    made.work_dir = work_dir;
    made.confined = true;
    made.initialize = false;
    made.environment = std::move(environment);
    made.environment.push_back("HOME=" + home);
    return made;
  }

  Server server_;
};

}  // namespace

TEST_CASE("commands start in the first root, and may work in all of them") {
  const TempDir place;
  const std::string first = place.directory("first");
  const std::string second = place.directory("second one");
  const std::string start = place.directory("start");
  Rooted client(start);
  CHECK(has(client.server().greeting["result"]["instructions"].as_string(),
            "If the client names roots, these take the place of " + start));
  client.name_roots(root_of(first) + "," + root_of(place / "second%20one"));
  CHECK(client.folder() == first + "\n");
  const Json there = client.server().execute_with(
      Json::object({{"command", "echo x > file && pwd"}, {"work_dir", second}}));
  CHECK(there["stdout"] == Json(second + "\n"));
  CHECK(support::read_file(second + "/file") == "x\n");
  // The folder that it was started in is none of them.
  CHECK(client.server().execute_with(
            Json::object({{"command", "pwd"}, {"work_dir", start}}))["rule"] == Json("work_dir"));
  CHECK(client.server().use("write_file", R"({"file_path":"f","content":"x"})")["file_path"] ==
        Json(first + "/f"));
  CHECK(has(client.server().error_of("write_file",
                                     Json::object({{"file_path", start + "/f"}, {"content", "x"}})),
            "not in the allowed"));
  CHECK(client.server().use("list_files")["path"] == Json(first));
  CHECK(client.server().use("execute_code", R"({"code":"pwd","language":"sh"})")["stdout"] ==
        Json(first + "\n"));
  CHECK(client.server().finish().empty());
}

TEST_CASE("two clients of one entry each see their own project") {
  const TempDir place;
  const std::string projects[] = {place.directory("a"), place.directory("b")};
  place.file("a/mine", "a");
  place.file("b/mine", "b");
  // With roots, and from the folder that each was started in; all at the same time.
  Rooted rooted_a(place.directory("elsewhere"));
  Rooted rooted_b(place / "elsewhere");
  Rooted started_a(projects[0]);
  Rooted started_b(projects[1]);
  rooted_a.name_roots(root_of(projects[0]));
  rooted_b.name_roots(root_of(projects[1]));
  started_a.name_roots("");
  started_b.name_roots("");
  if (!support::confines()) return;
  for (int round = 0; round < 3; ++round) {
    const std::pair<Rooted*, int> all[] = {
        {&rooted_a, 0}, {&rooted_b, 1}, {&started_a, 0}, {&started_b, 1}};
    for (const auto& [client, own] : all) {
      const std::string other = projects[1 - own];
      const Json result = client->server().execute("pwd; cat mine; cat " + other + "/mine; touch " +
                                                   other + "/touched");
      CHECK(result["stdout"] == Json(projects[own] + "\n" + (own == 0 ? "a" : "b")));
      CHECK(!support::exists(other + "/touched"));
    }
  }
}

TEST_CASE("a client that does not answer has its commands where the server was started") {
  if (!support::confines()) return;
  const TempDir place;
  const std::string start = place.directory("start");
  const std::string late = place.directory("late");
  Rooted client(start);
  const std::string id = client.question();
  const Json first = client.server().execute("pwd");
  CHECK(first["stdout"] == Json(start + "\n"));
  CHECK(first["notes"] ==
        Json::array({"the client has not named its roots: commands start in " + start}));
  CHECK(client.notes() == "");
  // Its late answer counts from then on.
  client.answer(id, root_of(late));
  CHECK(client.folder() == late + "\n");
  CHECK(client.server().finish().empty());
}

TEST_CASE("a client that answers an error has its commands where the server was started") {
  if (!support::confines()) return;
  const TempDir place;
  Rooted client(place.path());
  client.server().send(R"({"jsonrpc":"2.0","id":)" + client.question() +
                       R"(,"error":{"code":-32603,"message":"no"}})");
  const Json first = client.server().execute("pwd");
  CHECK(first["stdout"] == Json(place.path() + "\n"));
  CHECK(first["notes"] ==
        Json::array({"the client has not named its roots: commands start in " + place.path()}));
}

TEST_CASE("a root that is none is ignored, with a note") {
  if (!support::confines()) return;
  const TempDir place;
  const std::string start = place.directory("start");
  const std::string home = place.directory("home/me");
  place.file("file", "x");
  place.directory("good");
  support::make_symlink(home, place / "to-home");
  support::make_symlink("/", place / "to-root");
  const std::pair<std::string, std::string> wrong[] = {
      {R"({"uri":"file:///"})", "it is a directory of the system"},
      {R"({"uri":"file:////"})", "it is a directory of the system"},
      {R"({"uri":"file:///usr/../etc/./"})", "it is a directory of the system"},
      {R"({"uri":"file:///tmp"})", "it is a directory of the system"},
      {R"({"uri":"file:///proc/1"})", "it belongs to the system"},
      {root_of(home), "it is a home directory"},
      {root_of(place / "home"), "it is a home directory"},
      {root_of(place / "file"), "it is not a directory"},
      {root_of(place / "missing"), "No such file"},
      {R"({"uri":"http://example.org/x"})", "it is no file: URI"},
      {R"({"uri":"vscode-remote://host/x"})", "it is no file: URI"},
      {R"({"uri":"/tmp"})", "it is no file: URI"},
      {R"({"uri":"file:relative"})", "it has no absolute path"},
      {R"({"uri":"file://host/tmp/x"})", "it is on another machine"},
      {R"({"uri":"file:///tmp/%00"})", "a NUL"},
      {R"({"uri":"file:///tmp/%2"})", "a % without two digits"},
      {R"({"uri":"file:///tmp/%zz"})", "a % without two digits"},
      {R"({"uri":"file:///)" + std::string(20000, 'x') + "\"}", "it is too long"},
      {R"({"uri":"file:///)" + std::string(5000, 'x') + "\"}", "longer than"},
      {R"({"uri":""})", "it is no file: URI"},
      {R"({"uri":7})", "it is no file: URI"},
      {R"({"name":"x"})", "it is no file: URI"},
      {"null", "it is no file: URI"},
      {"[]", "it is no file: URI"},
      {"\"file:///tmp\"", "it is no file: URI"}};
  Rooted client(start, {}, home);
  client.name_roots("");
  for (const auto& row : wrong) {
    const auto& [root, why] = row;
    CAPTURE(row.first.substr(0, 200));
    client.change_roots(root);
    const Json result = client.server().execute("pwd");
    CHECK(result["stdout"] == Json(start + "\n"));
    REQUIRE(result["notes"].size() == 1);
    const std::string note = result["notes"][0].as_string();
    CAPTURE(note);
    CHECK(begins(note, "the client's root '"));
    CHECK(has(note, "' is ignored: "));
    if (!has(why, "longer")) CHECK(has(note, why));
    CHECK(note.size() < 1000);
  }
  // A good one beside wrong ones counts.
  client.change_roots(wrong[0].first + "," + root_of(place / "good") + ",null");
  CHECK(client.folder() == place / "good\n");
  // Links that commands could have made are not followed, wherever they lead.
  if (!support::confines()) return;
  place.directory("target");
  support::make_symlink(place / "target", place / "good/link");
  for (const char* link : {"to-home", "to-root", "good/link"}) {
    client.change_roots(root_of(place / link));
    const Json result = client.server().execute("pwd");
    CHECK(result["stdout"] == Json(start + "\n"));
    CHECK(has(result["notes"].dump(), "' is ignored: "));
  }
}

TEST_CASE("names of any bytes") {
  const TempDir place;
  const std::string latin = place.directory("caf\xe9 #1?");
  Rooted client(place.directory("start"));
  client.name_roots(R"({"uri":"FILE://localhost)" + place.path() + R"(/caf%E9%20%231?"})");
  CHECK(client.server().execute("echo x > file")["success"] == Json(true));
  CHECK(support::read_file(latin + "/file") == "x\n");
}

TEST_CASE("many roots and nested ones") {
  if (!support::confines()) return;
  const TempDir place;
  std::string all;
  for (int i = 0; i < 3000; ++i) {
    const std::string name = "r" + std::to_string(i);
    if (i < 70) place.directory(name);
    all += (i == 0 ? "" : ",") + root_of(place / name);
  }
  Rooted client(place.directory("start"));
  client.name_roots(all);
  Json result = client.server().execute("pwd");
  CHECK(result["stdout"] == Json(place / "r0\n"));
  CHECK(result["notes"] == Json::array({"of the client's roots the first 64 count"}));
  const auto works_in = [&](const std::string& folder) {
    return client.server()
        .execute_with(Json::object({{"command", "true"}, {"work_dir", place / folder}}))["success"]
        .as_bool();
  };
  CHECK(works_in("r63"));
  CHECK(!works_in("r64"));
  // Many wrong ones have few notes.
  std::string wrong;
  for (int i = 0; i < 60; ++i) wrong += root_of(place / "missing") + ",";
  client.change_roots(wrong + root_of(place / "r1"));
  result = client.server().execute("pwd");
  CHECK(result["stdout"] == Json(place / "r1\n"));
  REQUIRE(result["notes"].size() == 7);
  CHECK(result["notes"][5] == Json("55 more roots are ignored"));
  // One in another, and one twice.
  place.directory("r2/in");
  client.change_roots(root_of(place / "r2/in") + "," + root_of(place / "r2") + "," +
                      root_of(place / "r2/in"));
  CHECK(client.folder() == place / "r2/in\n");
  CHECK(works_in("r2"));
}

TEST_CASE("roots that change while commands run") {
  if (!support::confines()) return;
  const TempDir place;
  const std::string a = place.directory("a");
  const std::string b = place.directory("b");
  support::Fifo fifo(place / "a/fifo");
  support::Fifo go(place / "a/go");
  Rooted client(place.directory("start"));
  Server& server = client.server();
  client.name_roots(root_of(a));
  const std::string shell = support::start_shell(
      server, "echo up > fifo; read x < go; pwd; echo done > made; echo $TMPDIR; touch $TMPDIR/x");
  CHECK(fifo.read_line() == "up");
  CHECK(
      server.execute_with(parsed(
          R"({"command":"mkdir sub; cd sub; export A=b","session_id":"s"})"))["session_work_dir"] ==
      Json(a + "/sub"));
  client.change_roots(root_of(b));
  const Json next = server.execute("pwd");
  CHECK(next["stdout"] == Json(b + "\n"));
  CHECK(next["notes"] ==
        Json::array({"the client's roots have changed: commands start in " + b + " now"}));
  // The session leaves a folder that is none any more, says so, and keeps its variables.
  const Json moved = server.execute_with(parsed(R"({"command":"pwd; echo $A","session_id":"s"})"));
  CHECK(moved["stdout"] == Json(b + "\nb\n"));
  CHECK(moved["session_work_dir"] == Json(b));
  CHECK(moved["notes"] ==
        Json::array({"the session has left " + a + "/sub: no command may start there any more"}));
  // What runs goes on as it began, and can be asked and ended.
  CHECK(server.use("list_background_shells")["count"] == Json(1));
  go.write_text("go\n");
  const Json ended = support::wait_for_shell(server, shell, "exit");
  CHECK(begins(ended["stdout"].as_string(), a + "\n"));
  CHECK(ended["exit_code"] == Json(0));
  CHECK(ended["stderr"] == Json(""));
  CHECK(support::read_file(a + "/made") == "done\n");
  // Back again, and many times.
  for (int i = 0; i < 6; ++i) {
    const std::string folder = place.directory("many" + std::to_string(i));
    client.change_roots(root_of(folder));
    CHECK(client.folder() == folder + "\n");
  }
  client.change_roots(root_of(a));
  CHECK(client.folder() == a + "\n");
  // A session whose folder is still one stays there.
  server.execute_with(parsed(R"({"command":"cd sub","session_id":"t"})"));
  client.change_roots(root_of(b) + "," + root_of(a));
  CHECK(server.execute_with(parsed(R"({"command":"pwd","session_id":"t"})"))["stdout"] ==
        Json(a + "/sub\n"));
  CHECK(server.finish().empty());
}

TEST_CASE("a command keeps its folder when the roots change before it ends") {
  const TempDir place;
  const std::string a = place.directory("a");
  const std::string b = place.directory("b");
  support::Fifo fifo(place / "a/fifo");
  support::Fifo go(place / "a/go");
  Rooted client(place.directory("start"));
  client.name_roots(root_of(a));
  client.server().send(Server::call_line(
      7, Json::object({{"command", "echo up > fifo; read x < go; echo z > z; pwd"}})));
  CHECK(fifo.read_line() == "up");
  client.change_roots(root_of(b));
  CHECK(client.folder() == b + "\n");
  go.write_text("go\n");
  const Json reply = client.server().receive();
  CHECK(reply["id"] == Json(7));
  CHECK(reply["result"]["structuredContent"]["stdout"] == Json(a + "\n"));
  CHECK(support::read_file(a + "/z") == "z\n");
}

TEST_CASE("roots narrow what the operator allows, and open nothing else") {
  if (!support::confines()) return;
  const TempDir place;
  const std::string work = place.directory("work");
  const std::string project = place.directory("work/project");
  const std::string other = place.directory("work/other");
  const std::string outside = place.directory("outside");
  const std::string library = place.directory("library");
  place.file("library/book", "book");
  place.file("work/other/secret", "secret");
  Rooted client(work, {"--allowed-paths", work, "--read-only", library});
  client.name_roots(root_of(project) + "," + root_of(outside));
  Json result = client.server().execute("pwd");
  CHECK(result["stdout"] == Json(project + "\n"));
  REQUIRE(result["notes"].size() == 1);
  CHECK(ends(result["notes"][0].as_string(), outside + "' is ignored: it lies outside of "
                                                       "--allowed-paths"));
  CHECK(client.server().execute("cat " + library + "/book")["stdout"] == Json("book"));
  CHECK(has(client.server().error_of("read_file", Json::object({{"file_path", other + "/secret"}})),
            "not in the allowed"));
  if (support::confines()) {
    CHECK(client.server().execute("cat " + other + "/secret")["success"] == Json(false));
    CHECK(client.server().execute("d=" + library + "; sh -c 'touch $0/x' $d")["success"] ==
          Json(false));
  }
  // A root around what is allowed opens that alone.
  client.change_roots(root_of(place.path()));
  CHECK(client.folder() == work + "\n");
  CHECK(!client.server()
             .execute_with(Json::object({{"command", "true"}, {"work_dir", outside}}))["success"]
             .as_bool());
  // A read-only root stays one.
  client.change_roots(root_of(project) + "," + root_of(library));
  CHECK(client.server().execute_with(Json::object(
            {{"command", "echo x > new"}, {"work_dir", library}}))["success"] == Json(false));
  CHECK(!support::exists(library + "/new"));
  // None that is allowed: all as at the start.
  client.change_roots(root_of(outside));
  result = client.server().execute("pwd");
  CHECK(result["stdout"] == Json(work + "\n"));
  CHECK(has(result["notes"].dump(), "it lies outside of --allowed-paths"));
}

TEST_CASE("--workspace pins the folder: the client is not asked") {
  const TempDir place;
  const std::string project = place.directory("project");
  Rooted client("/", {"--workspace", project});
  CHECK(client.folder() == project + "\n");
  CHECK(!has(client.server().greeting["result"]["instructions"].as_string(), "roots"));
  CHECK(client.server().finish().empty());
}

TEST_CASE("roots name the project where the server was started in none") {
  if (!support::confines()) return;
  const TempDir place;
  Rooted client("/");
  client.name_roots(root_of(place.path()));
  CHECK(client.folder() == place.path() + "\n");
  CHECK(client.notes() == "");
  client.change_roots("");
  CHECK(has(client.folder(), "/codeexec-empty-"));
  CHECK(has(client.notes(), "set --allowed-paths DIR"));
}

TEST_CASE("--sandbox off: the first root is where commands start, and nothing is narrowed") {
  const TempDir place;
  const std::string a = place.directory("a");
  const std::string b = place.directory("b");
  Rooted client("/", {"--sandbox", "off"});
  client.name_roots(root_of(a));
  CHECK(client.folder() == a + "\n");
  CHECK(client.server().execute("echo x > " + b + "/file")["success"] == Json(true));
  CHECK(client.server().execute_with(
            Json::object({{"command", "pwd"}, {"work_dir", b}}))["stdout"] == Json(b + "\n"));
}

TEST_CASE("secrets and variables are there in each root") {
  const TempDir place;
  Rooted client(place.directory("start"),
                {"--keep-env", "KEPT", "--secret-env", "SECRET", "--secret-env", "OTHER",
                 "--set-env", "OTHER=hunter3"},
                "/nonexistent", {"SECRET=hunter2", "KEPT=kept"});
  for (const char* folder : {"a", "b"}) {
    const std::string root = root_of(place.directory(folder));
    if (std::string(folder) == "a")
      client.name_roots(root);
    else
      client.change_roots(root);
    const Json result =
        client.server().execute("echo $SECRET $OTHER $KEPT; [ $SECRET = hunter2 ] && echo same");
    CHECK(result["stdout"] == Json("[redacted] [redacted] kept\nsame\n"));
  }
}

TEST_CASE("2026-07-28: the first command asks for the roots") {
  const TempDir place;
  const std::string project = place.directory("project");
  Server::Options options;
  options.work_dir = place.directory("start");
  options.confined = true;
  options.initialize = false;
  options.environment = {"HOME=/nonexistent"};
  Server server(options);
  const auto call = [&](int id, const std::string& more = "") {
    server.send(R"({"jsonrpc":"2.0","id":)" + std::to_string(id) +
                R"(,"method":"tools/call","params":{"name":"execute_command","arguments":)"
                R"({"command":"pwd"})" +
                more +
                R"(,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
                R"("io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}})");
    return server.receive()["result"];
  };
  const Json asked = call(1);
  CHECK(asked["resultType"] == Json("input_required"));
  CHECK(asked["inputRequests"]["question"]["method"] == Json("roots/list"));
  const Json told = call(2, R"(,"inputResponses":{"question":{"roots":[)" + root_of(project) +
                                R"(]}},"requestState":)" + asked["requestState"].dump());
  CHECK(told["structuredContent"]["stdout"] == Json(project + "\n"));
  CHECK(call(3)["structuredContent"]["stdout"] == Json(project + "\n"));
}
