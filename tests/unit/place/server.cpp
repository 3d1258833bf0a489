// The server program with a place: what it tells of it, and its tools there.

#include "../../helpers/place_support.hpp"
#include "../../helpers/server_support.hpp"

using codeexec::Json;
using codeexec::ProcessResult;
using namespace support;

namespace {

Strings server_options(const TempDir& workspace, Strings more = {}) {
  more.insert(more.end(), {"--execution-mode", "command", "--place-command",
                           "'" CODEEXEC_MCP "' --place", "--workspace", workspace.path()});
  return more;
}

}  // namespace

TEST_CASE("place: the server's tools work there as here") {
  TempDir workspace;
  Server server(server_options(workspace));
  CHECK(has(server.greeting["result"]["instructions"].as_string(), "another machine"));
  const Json ran = server.execute("echo hi; pwd");
  CHECK(ran["stdout"] == Json("hi\n" + workspace.path() + "\n"));
  const Json first =
      server.execute_with(parsed(R"({"command":"cd /; export A=b","session_id":"s"})"));
  CHECK(first["session_work_dir"] == Json("/"));
  const Json next = server.execute_with(parsed(R"({"command":"echo $A; pwd","session_id":"s"})"));
  CHECK(next["stdout"] == Json("b\n/\n"));
  const Json shell =
      server.use("start_background_shell", R"({"command":"read x; echo got $x; cat"})");
  const Json id = shell["shell_id"];
  CHECK(shell["pid"].as_integer() > 0);
  server.use("write_background_shell", Json::object({{"shell_id", id}, {"input", "it\n"}}));
  const Json output =
      server.use("get_background_shell_output",
                 Json::object({{"shell_id", id}, {"wait_for", "got"}, {"timeout", 60}}));
  CHECK(output["stdout"] == Json("got it\n"));
  CHECK(server.use("kill_background_shell", Json::object({{"shell_id", id}}))["signal"] ==
        Json("SIGTERM"));
  const Json code =
      server.use("execute_code", Json::object({{"code", "print(6 * 7)"}, {"language", "python"}}));
  CHECK(code["stdout"] == Json("42\n"));
  server.use("write_file", R"({"file_path":"f","content":"text"})");
  CHECK(server.execute("cat f")["stdout"] == Json("text"));
  const Json gone = server.use("start_background_shell", R"({"command":"no-such-program-xyz"})");
  CHECK(gone["pid"].as_integer() > 0);  // of the shell
  CHECK(server.finish().empty());
}

TEST_CASE("place: the shell is sh where none is named, as bash may not be there") {
  TempDir workspace;
  for (const Strings& shell : {Strings(), Strings{"--shell", "auto"}}) {
    Server server(server_options(workspace, shell));
    CHECK(has(server.greeting["result"]["instructions"].as_string(), "The shell is /bin/sh."));
    CHECK(begins(server.execute("echo $0")["stdout"].as_string(), "/bin/sh"));
  }
}

TEST_CASE("place: --doctor and --sandbox-report tell of it") {
  TempDir workspace;
  const ProcessResult doctor = run_program(server_options(workspace, {"--doctor"}));
  CHECK(begins(doctor.out, "ok   place: "));
  CHECK(has(doctor.out, "agent " CODEEXEC_VERSION_STRING));
  CHECK(has(doctor.out, "ok   workspace: " + workspace.path()));
  CHECK(has(doctor.out, "warn sandbox: off"));
  const ProcessResult none =
      run_program({"--execution-mode", "command", "--place-command", "false", "--doctor"});
  CHECK(none.exit_code == 1);
  CHECK(begins(none.out, "FAIL place: cannot reach false"));
  const ProcessResult report =
      run_program(server_options(workspace, {"--sandbox", "best-effort", "--sandbox-report"}));
  CHECK(parsed(report.out)["mode"] == Json("best_effort"));
  CHECK(parsed(report.out)["rules"].is_null());
  // The rules are those of the kernel there.
  const ProcessResult explained =
      run_program(server_options(workspace, {"--sandbox", "best-effort", "--limit-open-files", "77",
                                             "--sandbox-report", "--explain"}));
  if (parsed(report.out)["enforced"].size() > 0)
    CHECK(has(explained.out, "RLIMIT_NOFILE of each process: 77"));
  else
    CHECK(has(explained.out, "there are no rules"));
}

TEST_CASE("place: the server brings an agent along") {
  TempDir workspace;
  TempDir home;
  const std::string shell = "env -u XDG_CACHE_HOME HOME='" + home.path() + "' sh";
  const Json ran = run_command("readlink /proc/$PPID/exe",
                               {"--execution-mode", "command", "--place-command", shell,
                                "--place-agent", CODEEXEC_MCP, "--workspace", workspace.path()});
  CHECK(begins(ran["stdout"].as_string(), home / ".cache/codeexec/codeexec-mcp-"));
  const auto error_of = [&](Strings arguments) {
    arguments.insert(arguments.end(), {"--place-agent", CODEEXEC_MCP, "--run", "true"});
    return run_program(arguments).err;
  };
  CHECK(has(error_of({"--execution-mode", "ssh", "--place-host", "x", "--place-agent-path", "y"}),
            "place_agent_path: 'y' is not needed where place_agent is copied there"));
  CHECK(has(error_of(server_options(workspace)),
            "place_agent: is for a transport that leads to a shell"));
}
