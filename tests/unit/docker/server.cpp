// The server program with containers of a real engine: see parity.cpp. What needs none is in
// unit/containers/server.cpp, with a played one.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <set>

#include "../../helpers/engine_support.hpp"
#include "../../helpers/server_support.hpp"

using codeexec::Json;
using codeexec::ProcessResult;
using support::begins;
using support::comes_true;
using support::docker;
using support::fresh_agent;
using support::has;
using support::lines_of;
using support::names_of;
using support::parsed;
using support::run_program;
using support::Server;
using support::Strings;
using support::TempDir;

namespace {

constexpr char image[] = "codeexec-test/debian:latest";

// What the docker program needs to find the engine.
Strings engine_variables() {
  Strings variables = {"HOME=/nonexistent"};
  for (const char* name : {"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG"})
    if (const char* value = std::getenv(name)) variables.push_back(std::string(name) + "=" + value);
  return variables;
}

bool has_engine() { return support::has_engine_with(image); }

Strings in_container(const std::string& workspace, const Strings& more = {}) {
  Strings options = {"--execution-mode",      "docker", "--docker-image", image,
                     "--docker-image-policy", "never",  "--workspace",    workspace};
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

Server::Options server_options(const Strings& arguments) {
  Server::Options options;
  options.arguments = arguments;
  options.environment = engine_variables();
  options.environment.emplace_back("CODEEXEC_TEST_TOKEN=hunter2");
  return options;
}

// Containers of an agent, by whatever program.
Strings containers_of(const std::string& agent) {
  const ProcessResult r = docker({"ps", "-a", "-q", "--filter", "label=codeexec.user=" + agent});
  REQUIRE_MESSAGE(r.succeeded(), r.err);
  return lines_of(r.out);
}

}  // namespace

TEST_CASE("W-25 W-37 W-38: a conversation in a container") {
  if (!has_engine()) return;
  const TempDir place;
  place.file("ro/kept", "kept");
  place.directory("ws");
  const std::string workspace = place / "ws";
  const std::string audit = place / "audit";
  Server server(server_options(
      in_container(workspace, {"--allowed-paths", workspace, "--read-only", place / "ro",
                               "--audit-file", audit, "--set-env", "A=x y"})));
  // It is not this machine, and both streams are apart.
  const Json first = server.execute("echo $A; hostname; id -u; echo err >&2; exit 3");
  CHECK(
      begins(names_of(first), "success exit_code stdout stderr execution_time command work_dir "));
  CHECK(first["exit_code"] == Json(3));
  CHECK(first["stderr"] == Json("err\n"));
  CHECK(first["work_dir"] == Json(workspace));
  const Strings lines = lines_of(first["stdout"].as_string());
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] == "x y");
  char host[256] = "";
  REQUIRE(::gethostname(host, sizeof host - 1) == 0);
  CHECK(lines[1] != host);
  CHECK(lines[2] == std::to_string(::geteuid()));
  // Nothing of the host's variables, no network, nothing of the host but what was given.
  const std::string variables = server.execute("env")["stdout"].as_string();
  for (const char* absent : {"hunter2", "DOCKER_HOST", "/nonexistent"})
    CHECK(!has(variables, absent));
  CHECK(server.execute("ls /sys/class/net")["stdout"] == Json("lo\n"));
  CHECK(server.execute("ls " + place.path())["stdout"] == Json("ro\nws\n"));
  CHECK(server.execute("cat ../ro/kept")["stdout"] == Json("kept"));
  // By a name that the policy cannot know.
  const Json refused = server.execute("d=$(echo Li4vcm8K | base64 -d); sh -c 'echo x > $0/new' $d");
  CHECK(has(refused["stderr"].as_string(), "Read-only file system"));
  CHECK(!support::exists(place / "ro/new"));
  CHECK(server.execute("touch /new")["success"] == Json(false));
  // Files are the same on both sides.
  server.use("write_file", R"({"file_path":"dir/in","content":"from the tool"})");
  CHECK(server.execute("cat dir/in; echo from inside > dir/out")["stdout"] ==
        Json("from the tool"));
  CHECK(support::read_file(workspace + "/dir/out") == "from inside\n");
  CHECK(server.use("read_file", R"({"file_path":"dir/out"})")["content"] == Json("from inside\n"));
  // Bytes that are no text, deadlines, code, shells.
  const Json bytes = server.execute("printf 'ok\\377\\n'; exit 7");
  CHECK(bytes["exit_code"] == Json(7));
  CHECK(bytes["stdout_invalid_bytes"] == Json(1));
  const Json late = server.execute_with(
      parsed(R"({"command":"echo begun; (setsid sleep 301.5 &) ; sleep 301.5","timeout":0.5})"));
  CHECK(late["timed_out"] == Json(true));
  CHECK(late["stdout"] == Json("begun\n"));
  CHECK(server.execute("cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c '[3]01.5'")["stdout"] ==
        Json("0\n"));
  const Json coded = server.use("execute_code", R"-({"language":"python","code":"print(6 * 7)"})-");
  CHECK(coded["stdout"] == Json("42\n"));
  const Json started =
      server.use("start_background_shell", R"({"command":"hostname; read x; echo got $x"})");
  const std::string shell = started["shell_id"].as_string();
  server.use("write_background_shell", Json::object({{"shell_id", shell}, {"input", "it\n"}}));
  const Json output = server.use("get_background_shell_output",
                                 Json::object({{"shell_id", shell}, {"wait_for", "exit"}}));
  CHECK(output["stdout"] == Json(lines[1] + "\ngot it\n"));
  CHECK(server.execute("sudo ls")["rule"] == Json("sudo"));
  CHECK(server.finish().empty());
  const std::string log = support::read_file(audit);
  CHECK(has(log, "hostname"));
  CHECK(has(log, R"("rule":"sudo")"));
}

TEST_CASE("W-33 W-47: a container goes away with its server, however that ends") {
  if (!has_engine()) return;
  const TempDir place;
  for (const int signal : {SIGTERM, SIGKILL, 0}) {
    CAPTURE(signal);
    const std::string agent = fresh_agent();
    Server server(server_options(in_container(place.path(), {"--agent-id", agent})));
    CHECK(server.execute("true")["success"] == Json(true));
    CHECK(containers_of(agent).size() == 1);
    if (signal == 0)
      server.close_input();
    else
      server.signal(signal);
    server.wait();
    CHECK(comes_true([&] { return containers_of(agent).empty(); }, std::chrono::seconds(60)));
  }
}

TEST_CASE("a persistent container is found again by its agent and instance") {
  if (!has_engine()) return;
  const TempDir place;
  const std::string agent = fresh_agent();
  const auto run = [&](const char* instance, const char* command) {
    Strings arguments = in_container(place.path(), {"--docker-persistent", "--agent-id", agent,
                                                    "--instance-id", instance, "--run", command});
    const ProcessResult r = run_program(arguments, "/", engine_variables());
    return parsed(r.out)["stdout"].as_string();
  };
  run("a", "echo mine > /tmp/kept");
  CHECK(run("a", "cat /tmp/kept") == "mine\n");
  CHECK(run("b", "cat /tmp/kept") == "");
  const Strings left = containers_of(agent);
  CHECK(left.size() == 2);
  for (const std::string& container : left) CHECK(docker({"rm", "-f", container}).succeeded());
}

TEST_CASE("--run and --doctor with an engine") {
  if (!has_engine()) return;
  const TempDir place;
  const auto run = [&](Strings more) {
    return run_program(in_container(place.path(), more), "/", engine_variables());
  };
  CHECK(run({"--run", "true"}).exit_code == 0);
  CHECK(run({"--run", "false"}).exit_code == 1);
  CHECK(run({"--run", "sudo ls"}).exit_code == 125);
  const ProcessResult missing =
      run_program({"--execution-mode", "docker", "--docker-image", "codeexec-test/none:1",
                   "--docker-image-policy", "never", "--workspace", place.path(), "--run", "true"},
                  "/", engine_variables());
  CHECK(missing.exit_code == 125);
  CHECK(has(parsed(missing.out)["stderr"].as_string(), "codeexec-test/none:1"));
  const ProcessResult doctor = run({"--doctor"});
  CAPTURE(doctor.out);
  CHECK(doctor.err == "");
  const Strings checks = lines_of(doctor.out);
  CHECK(checks.size() >= 6);
  bool all = true;
  for (const std::string& line : checks) {
    CHECK((begins(line, "ok   ") || begins(line, "FAIL ")));
    // What this engine's machine cannot bound is said.
    if (!begins(line, "ok   ")) CHECK(begins(line, "FAIL limits: "));
    all = all && begins(line, "ok   ");
  }
  CHECK(doctor.exit_code == (all ? 0 : 1));
  std::string subjects;
  for (const std::string& line : checks) subjects += line.substr(5, line.find(':') - 5) + " ";
  CHECK(subjects == "engine image containers command workspace user network limits agent ");
  // What weakens the container, and what helps where an image is missing.
  CHECK(has(run({"--docker-option", "cap-add=CHOWN", "--doctor"}).out,
            "\nFAIL options: the container is held less by cap-add=CHOWN\n"));
  const ProcessResult lost =
      run_program({"--execution-mode", "docker", "--docker-image", "codeexec-test/none:1",
                   "--workspace", place.path(), "--doctor"},
                  "/", engine_variables());
  CHECK(lost.exit_code == 1);
  CHECK(has(lost.out, "engine version "));
  CHECK(has(lost.out,
            "\nFAIL image: codeexec-test/none:1 is not here: build it (sh docker/build.sh)"));
  CHECK(lines_of(lost.out).size() == 2);
}

TEST_CASE("--profile user-container serves the tools of one user's container") {
  if (!has_engine()) return;
  const TempDir place;
  place.file("tools/shout.py", "def shout(text):\n  \"\"\"Says it loud.\"\"\"\n");
  place.directory("skills");
  const std::string user = fresh_agent();
  const Strings arguments = {
      "--profile",     "user-container",        "--user-id", user,           "--docker-image",
      image,           "--docker-image-policy", "never",     "--tools-path", place / "tools",
      "--skills-path", place / "skills"};
  Server server(server_options(arguments));
  std::set<std::string> names;
  const Json tools = server.ask("tools/list")["result"]["tools"];
  for (const Json& tool : tools.items()) names.insert(tool["name"].as_string());
  CHECK(names == std::set<std::string>{"execute_bash", "get_artifact", "list_artifacts",
                                       "read_docstring", "read_file", "write_file"});
  CHECK(server.use("execute_bash", R"({"command":"pwd; ls /tools"})")["stdout"] ==
        Json("/workspace\nshout.py\n"));
  CHECK(containers_of(user).size() == 1);
  CHECK(server.finish().empty());
  CHECK(comes_true([&] { return containers_of(user).empty(); }, std::chrono::seconds(60)));
  Strings run = arguments;
  run.insert(run.end(), {"--run", "exit 3"});
  const ProcessResult r = run_program(run, "/", engine_variables());
  CHECK(r.exit_code == 1);
  CHECK(parsed(r.out)["exit_code"] == Json(3));
}
