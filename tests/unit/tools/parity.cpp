// Parity with the tests of the reference, through the server.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/server_support.hpp"
#include "helpers.hpp"

using codeexec::Json;
using support::begins;
using support::check_failure;
using support::has;
using support::has_python;
using support::lines_of;
using support::parsed;
using support::Server;
using support::Strings;
using support::TempDir;

namespace {

void check_verdict(Server& server, const std::string& command, const std::string& rule) {
  CAPTURE(command);
  // Only judged: the directory is outside of the roots, which is asked after the policy.
  const Json r =
      server.execute_with(Json::object({{"command", command}, {"work_dir", "/nonexistent"}}));
  CHECK(r["success"] == Json(false));
  CHECK(r["exit_code"] == Json(-1));
  CHECK(r["rule"] == Json(rule));
  if (rule != "work_dir")
    CHECK(begins(r["stderr"].as_string(), "Potentially dangerous command detected: "));
}

}  // namespace

TEST_CASE("parity 1 simple_python_command, 2 python_script_execution, 3 command_with_error") {
  if (!has_python()) return;
  const TempDir place;
  place.file("script.py", "print('Line 1')\nprint('Line 2')\n");
  Server server(Strings{"--workspace", place.path()});
  const Json simple = server.execute("python -c \"print('Hello, World!')\"");
  CHECK(simple["exit_code"] == Json(0));
  CHECK(has(simple["stdout"].as_string(), "Hello, World!"));
  const Json script = server.execute("python script.py");
  CHECK(script["success"] == Json(true));
  CHECK(script["stdout"] == Json("Line 1\nLine 2\n"));
  const Json error = server.execute("python -c \"import sys; sys.exit(1)\"");
  CHECK(error["success"] == Json(false));
  CHECK(error["exit_code"] == Json(1));
}

TEST_CASE("parity 4 command_timeout") {
  if (!has_python()) return;
  Server server;
  const Json r = server.execute_with(
      parsed(R"({"command":"python -c \"import time; time.sleep(100)\"","timeout":1})"));
  CHECK(r["stderr"] == Json("Command timed out after 1 seconds"));
  CHECK(r["execution_time"].as_number() < 60);
}

TEST_CASE("parity 5 working_directory, 6 path_exists_validation, 7 relative_path_resolution") {
  const TempDir place;
  place.file("test.txt", "content");
  place.file("subdir/test.txt", "below");
  Server server(Strings{"--workspace", place.path()});
  const auto in_directory = [&](const std::string& command, const std::string& work_dir) {
    return server.execute_with(Json::object({{"command", command}, {"work_dir", work_dir}}));
  };
  CHECK(has(in_directory("ls", place.path())["stdout"].as_string(), "test.txt"));
  check_failure(in_directory("ls", place / "no"),
                "Working directory does not exist: " + (place / "no"));
  CHECK(in_directory("cat test.txt", "subdir")["stdout"] == Json("below"));
  CHECK(server.execute("cat subdir/test.txt")["stdout"] == Json("below"));
}

TEST_CASE("parity 8 dangerous_command_patterns, 10 sudo_blocked_by_default, 13, 15") {
  const TempDir place;
  Strings arguments = {"--workspace", place.path(), "--allowed-paths", place.path()};
  SUBCASE("strict") {}
  const char* harmless = "work_dir";
  SUBCASE("compat") {
    arguments.insert(arguments.end(), {"--policy", "compat"});
    harmless = "chmod";
  }
  Server server(arguments);
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"rm -rf /", "rm-protected"},
      {"dd if=/dev/zero of=/dev/sda", "dd"},
      {":(){ :|:& };:", "fork-bomb"},
      {"mv file /dev/null", "mv-dev-null"},
      {"echo test > /dev/sda1", "device-write"},
      {"sudo apt install something", "sudo"},
      {"su root", "su"},
      {"chown root file.txt", "chown"},
      {"chmod 777 file.txt", "chmod"},
      {"sudo apt-get update", "sudo"},
      {"sudo apt-get install -y ffmpeg", "sudo"},
      {"sudo pip install tensorflow", "sudo"},
      {"sudo npm install -g typescript", "sudo"},
      {"sudo chmod 755 file.txt", "sudo"},
      {"echo 'test' && sudo apt update", "sudo"},
      {"su - postgres", "su"},
      {"chown root:root file.txt", "chown"},
      {"sudo apt-get install malicious-package", "sudo"}};
  for (const auto& [command, rule] : cases) check_verdict(server, command, rule);
  check_verdict(server, "chmod +x script.sh", harmless);
}

TEST_CASE("parity 9 safe_commands_pass") {
  const TempDir place;
  Strings arguments = {"--workspace", place.path(), "--allowed-paths", place.path()};
  SUBCASE("strict") {}
  SUBCASE("compat") { arguments.insert(arguments.end(), {"--policy", "compat"}); }
  Server server(arguments);
  for (const char* command :
       {"python script.py", "pytest tests/", "npm run build", "ls -la", "rm file.txt",
        "git submodule update", "echo 'summary'", "python -m pip install --user requests"})
    check_verdict(server, command, "work_dir");
}

TEST_CASE("parity 11, 12, 14, 16: with sudo allowed by name the other rules stay") {
  const TempDir place;
  Strings arguments = {"--workspace", place.path(),     "--allowed-paths",
                       place.path(),  "--disable-rule", "sudo",
                       "su",          "chown",          "chmod"};
  SUBCASE("strict") {}
  SUBCASE("compat") { arguments.insert(arguments.end(), {"--policy", "compat"}); }
  Server server(arguments);
  for (const char* command :
       {"sudo apt-get update", "sudo chown user:group file.txt", "sudo chmod 755 file.txt",
        "su postgres", "chown user:group file.txt", "chmod 755 file.txt", "chmod +x script.sh",
        "sudo apt-get install gh"})
    check_verdict(server, command, "work_dir");
  for (const auto& [command, rule] :
       std::vector<std::pair<const char*, const char*>>{{"sudo rm -rf /", "rm-protected"},
                                                        {"sudo dd if=/dev/zero of=/dev/sda", "dd"},
                                                        {":(){ :|:& };:", "fork-bomb"},
                                                        {"sudo mv file /dev/null", "mv-dev-null"},
                                                        {"echo test > /dev/sda1", "device-write"}})
    check_verdict(server, command, rule);
}

TEST_CASE("parity 17 stdout_capture, 18 stderr_capture, 19 large_output_handling, 20, 21") {
  if (!has_python()) return;
  Server server;
  const Json out = server.execute("python -c \"print('First'); print('Second')\"");
  CHECK(out["stdout"] == Json("First\nSecond\n"));
  CHECK(out["stderr"] == Json(""));
  const Json err = server.execute("python -c \"import sys; print('Error', file=sys.stderr)\"");
  CHECK(err["stdout"] == Json(""));
  CHECK(err["stderr"] == Json("Error\n"));
  const Json large = server.execute("python -c \"for i in range(1000): print('Line', i)\"");
  CHECK(large["success"] == Json(true));
  CHECK(lines_of(large["stdout"].as_string()).size() == 1000);
  CHECK(large["stdout_truncated"] == Json(false));
  const Json version = server.execute("python --version");
  CHECK(begins(version["stdout"].as_string(), "Python 3"));
  const Json pip = server.execute("python -m pip --version");
  if (!pip["success"].as_bool()) {
    MESSAGE("SKIPPED: python has no pip here");
    return;
  }
  CHECK(has(pip["stdout"].as_string(), "pip"));
}

TEST_CASE("parity 27 auto_detect_venv, 28 no_venv_fallback") {
  const TempDir place;
  place.directory("with/.venv/bin");
  place.directory("without");
  Server server(Strings{"--allowed-paths", place.path()});
  const auto path_in = [&](const std::string& work_dir) {
    return server
        .execute_with(Json::object(
            {{"command", "echo \"$PATH $VIRTUAL_ENV\""}, {"work_dir", place / work_dir}}))["stdout"]
        .as_string();
  };
  const std::string venv = place / "with/.venv";
  const std::string plain = std::getenv("PATH") ? std::getenv("PATH") : "/usr/bin:/bin";
  CHECK(path_in("with") == venv + "/bin:" + plain + " " + venv + "\n");
  CHECK(path_in("without") == plain + " \n");
}
