// Where commands may work when no option says it: in the project that the server was started in.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/server_support.hpp"
#include "helpers.hpp"

using codeexec::Json;
using codeexec::ProcessResult;
using support::begins;
using support::ends;
using support::has;
using support::lines_of;
using support::parsed;
using support::run_bare;
using support::Server;
using support::Strings;
using support::TempDir;

namespace {

// Commands that do no harm where they are not confined.
const char* const reach_outside = "echo x > ../outside; cat ../secret; ls \"$FOREIGN_HOME\"";

Json ran(const std::string& command, const std::string& work_dir, Strings arguments = {},
         const Strings& environment = {}) {
  arguments.insert(arguments.end(), {"--run", command});
  const ProcessResult r = run_bare(arguments, work_dir, environment);
  CAPTURE(r.err);
  REQUIRE(ends(r.out, "}\n"));
  return parsed(r.out);
}

Server::Options bare(const std::string& work_dir, Strings arguments = {}) {
  Server::Options options;
  options.arguments = std::move(arguments);
  options.work_dir = work_dir;
  options.confined = true;
  options.environment = {"HOME=/nonexistent"};
  return options;
}

const std::string no_project = ": set --allowed-paths DIR, or start the server in a project";

}  // namespace

TEST_CASE("without options commands are confined to the folder that the server was started in") {
  const TempDir place;
  const std::string project = place.directory("project");
  const std::string home = place.directory("home");
  place.file("secret", "secret");
  place.file("home/.profile", "x");
  if (!support::confines()) return;
  const Strings environment = {"HOME=" + home};
  const std::string hidden = "ls " + home + "; " + reach_outside;
  for (const Strings& arguments :
       {Strings{}, Strings{"--sandbox", "best-effort"}, Strings{"--workspace", project}}) {
    const std::string start =
        arguments.size() == 2 && arguments[0] == "--workspace" ? "/" : project;
    const Json result = ran(hidden + "; echo y > inside", start, arguments, environment);
    CHECK(result["stdout"] == Json(""));
    CHECK(result["work_dir"] == Json(project));
    CHECK(result["sandbox"]["mode"] == Json("best_effort"));
    CHECK(!support::exists(place / "outside"));
    CHECK(support::read_file(project + "/inside") == "y\n");
    // Beside a folder below /tmp there is nothing else of the host's.
    const std::string& told = result["stderr"].as_string();
    CHECK((has(told, "ermission denied") || has(told, "Read-only file system")));
  }
  // The tools for files, and where commands start, follow.
  Server server(bare(project));
  CHECK(has(server.error_of("read_file", parsed(R"({"file_path":"../secret"})")),
            "not in the allowed"));
  CHECK(has(server.error_of("write_file", parsed(R"({"file_path":"../new","content":"x"})")),
            "not in the allowed"));
  CHECK(server.execute_with(parsed(R"({"command":"pwd","work_dir":".."})"))["success"] ==
        Json(false));
  CHECK(server.execute("pwd")["stdout"] == Json(project + "\n"));
  CHECK(server.finish().empty());
  CHECK(lines_of(server.logged()).size() == 1);
  CHECK(begins(server.logged(), "codeexec-mcp: commands are confined to " + project + ", where"));
  CHECK(has(server.logged(), "--sandbox off lets them work anywhere"));
}

TEST_CASE("--sandbox off alone confines nothing, and says so once") {
  const TempDir place;
  const std::string project = place.directory("project");
  CHECK(ran("echo x > ../outside", project, {"--sandbox", "off"})["success"] == Json(true));
  CHECK(support::exists(place / "outside"));
  Server server(bare(project, {"--sandbox", "off"}));
  CHECK(has(server.greeting["result"]["instructions"].as_string(),
            "Nothing confines commands: they can do all that the user can."));
  server.take_first_note();
  CHECK(!server.execute("true").find("notes"));
  CHECK(server.finish().empty());
  CHECK(server.logged() == "");
}

TEST_CASE("a folder that is no project is replaced by an empty one") {
  if (!support::confines()) return;
  const TempDir place;
  const std::string home = place.directory("people/me");
  place.directory("people/me/work");
  support::make_symlink("/", place / "root");
  support::make_symlink(home, place / "link");
  const std::pair<std::string, std::string> folders[] = {
      {"/", "/ is a directory of the system"},
      {"/usr", "/usr is a directory of the system"},
      {"/etc", "/etc is a directory of the system"},
      {"/tmp", "/tmp is a directory of the system"},
      {"/var", "/var is a directory of the system"},
      {"/proc/self", "belongs to the system"},
      {place / "root", "/ is a directory of the system"},
      {home, home + " is a home directory, or lies around one"},
      {place / "link", home + " is a home directory, or lies around one"},
      {place / "people", place / "people" + " is a home directory, or lies around one"}};
  for (const auto& row : folders) {
    const auto& [folder, why] = row;
    CAPTURE(row.first);
    const Json result = ran("pwd; ls -A; stat -c %a .", folder, {}, {"HOME=" + home});
    const std::string work_dir = result["work_dir"].as_string();
    CHECK(has(work_dir, "/codeexec-empty-"));
    CHECK(result["stdout"] == Json(work_dir + "\n700\n"));
    REQUIRE(result["notes"].size() == 1);
    CHECK(begins(result["notes"][0].as_string(), "commands run in an empty folder, as "));
    CHECK(ends(result["notes"][0].as_string(), why + no_project));
    // It is gone with the server.
    CHECK(!support::exists(work_dir));
  }
  // What lies in a home is one, and so is a folder of the system that is named.
  CHECK(ran("pwd", home + "/work", {}, {"HOME=" + home})["stdout"] == Json(home + "/work\n"));
}

TEST_CASE("a server in no project says in every result what to set, and confines") {
  const TempDir home;
  if (!support::confines()) return;
  Server::Options options = bare("/", {"--full-results"});
  Server server(options);
  const std::string note =
      "commands run in an empty folder, as / is a directory of the system" + no_project;
  CHECK(has(server.greeting["result"]["instructions"].as_string(), "For now " + note + "."));
  for (int i = 0; i < 2; ++i) CHECK(server.execute("pwd")["notes"] == Json::array({note}));
  CHECK(server.use("execute_code", R"({"code":"pwd","language":"sh"})")["notes"] ==
        Json::array({note}));
  CHECK(server.use("start_background_shell", R"({"command":"true"})")["notes"] ==
        Json::array({note}));
  CHECK(
      has(server.error_of("read_file", parsed(R"({"file_path":"/etc/hostname-x"})")), "; " + note));
  CHECK(server.execute_with(parsed(R"({"command":"pwd","work_dir":"/"})"))["rule"] ==
        Json("work_dir"));
  const std::string folder = server.execute("pwd")["work_dir"].as_string();
  CHECK(server.use("write_file", R"({"file_path":"f","content":"x"})")["file_path"] ==
        Json(folder + "/f"));
  CHECK(server.finish().empty());
  CHECK(!support::exists(folder));
  CHECK(server.logged() == "codeexec-mcp: " + note + "; --sandbox off lets them work anywhere\n");
}

TEST_CASE("a home that is opened is warned of") {
  const TempDir home;
  if (!support::confines()) return;
  const Strings environment = {"HOME=" + home.path()};
  const auto told = [&](Strings arguments) {
    arguments.insert(arguments.end(), {"--run", "true"});
    return run_bare(arguments, "/", environment).err;
  };
  const std::string why = home.path() + " is a home directory, or lies around one: commands can ";
  const std::string remedy = " all that is in it; name the folder of a project\n";
  CHECK(told({"--allowed-paths", home.path()}) ==
        "codeexec-mcp: allowed_paths: " + why + "change" + remedy);
  CHECK(told({"--workspace", home.path()}) ==
        "codeexec-mcp: workspace: " + why + "change" + remedy);
  CHECK(has(told({"--allowed-paths", home.directory("project"), "--read-only", home.path()}),
            "read_only: " + why + "read" + remedy));
  CHECK(told({"--allowed-paths", home / "project"}) == "");
  CHECK(told({"--allowed-paths", home.path(), "--sandbox", "off"}) == "");
}

TEST_CASE("--check and --sandbox-report follow the same rule") {
  if (!support::confines()) return;
  const TempDir project;
  CHECK(parsed(run_bare({"--sandbox-report"}, project.path()).out)["mode"] == Json("best_effort"));
  CHECK(parsed(run_bare({"--sandbox-report"}, "/").out)["mode"] == Json("best_effort"));
  CHECK(parsed(run_bare({"--check", "true"}, "/").out)["allowed"] == Json(true));
  CHECK(has(run_bare({"--doctor"}, project.path()).out, "sandbox: best_effort"));
  const ProcessResult none = run_bare({"--doctor"}, "/");
  CHECK(none.exit_code == 0);  // a client may name its roots later
  CHECK(has(none.out, "warn project: commands run in an empty folder, as / is a directory of the"));
}

TEST_CASE("commands at a place are confined to the workspace there") {
  const TempDir project;
  const Strings place = {"--execution-mode", "command", "--place-command", CODEEXEC_MCP " --place"};
  const std::string inside = project.directory("inside");
  if (!support::confines()) return;
  const Json result = ran("pwd; echo x > ../outside", inside, place);
  CHECK(result["stdout"] == Json(inside + "\n"));
  CHECK(!support::exists(project / "outside"));
  Strings refused = place;
  refused.insert(refused.end(), {"--run", "true"});
  support::check_refused(run_bare(refused, "/"),
                         "workspace: / is a directory of the system: name the folder of a project");
}
