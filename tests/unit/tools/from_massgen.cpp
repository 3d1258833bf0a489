// examples/from_massgen.py: the server takes what it makes of MassGen's files.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/server_support.hpp"
#include "helpers.hpp"

using codeexec::Json;
using codeexec::ProcessResult;
using support::has;
using support::lines_of;
using support::parsed;
using support::run_program;
using support::Strings;
using support::TempDir;

namespace {

// A folder with a file of MassGen, and the example that reads it.
struct Conversion {
  TempDir place;

  ProcessResult run(const std::string& yaml, const Strings& more = {},
                    const Strings& python = {"python3"}) const {
    Strings argv = python;
    argv.push_back(CODEEXEC_ROOT "/examples/from_massgen.py");
    argv.push_back(place.file("agents.yaml", yaml));
    argv.insert(argv.end(), more.begin(), more.end());
    ProcessResult result = support::run_argv(std::move(argv), place.path(), {});
    CHECK_FALSE(has(result.err, "Traceback"));
    CHECK_FALSE(has(result.err, "\x1b"));
    return result;
  }

  // What it makes of the file, after the server has taken it.
  Json taken(const ProcessResult& r) const {
    CAPTURE(r.err);
    REQUIRE(r.exit_code == 0);
    const std::string file = place.file("codeexec.json", r.out);
    const ProcessResult server = run_program({"--config", file, "--check", "ls"}, place.path());
    CHECK_MESSAGE(server.exit_code != 2, server.err, r.out);
    return parsed(r.out);
  }

  std::string rule(const std::string& command) const {
    return parsed(
               run_program({"--config", place / "codeexec.json", "--check", command}).out)["rule"]
        .as_string();
  }
};

bool lacks_yaml() {
  const Conversion trial;
  if (trial.run("agent: {backend: {}}").exit_code == 0) return false;
  MESSAGE("SKIPPED: there is no python3 with PyYAML");
  return true;
}

std::size_t lines_with(const ProcessResult& r, const std::string& words) {
  std::size_t count = 0;
  for (const std::string& line : lines_of(r.err))
    if (has(line, words)) ++count;
  return count;
}

const std::string full_setup = R"(
agent:
  id: "fullstack_agent"
  backend:
    type: "openai"
    model: "gpt-5-mini"
    cwd: "workspace"
    enable_mcp_command_line: true
    command_line_execution_mode: "docker"
    command_line_docker_enable_sudo: true
    command_line_docker_network_mode: "bridge"
    command_line_docker_memory_limit: "2g"
    command_line_docker_cpu_limit: 1.5
    command_line_docker_image: "massgen/mcp-runtime-sudo:latest"
    command_line_docker_credentials:
      env_file: ".env"
      env_vars_from_file: ["GITHUB_TOKEN"]
    command_line_docker_packages:
      auto_install_deps: true
      preinstall:
        python: ["massgen"]
        npm: ["typescript"]
orchestrator:
  snapshot_storage: "snapshots"
  context_paths:
    - path: "shared"
      permission: "read"
ui:
  display_type: "rich_terminal"
)";

const std::string two_agents = R"(
agents:
  - id: "coder"
    backend:
      type: "openai"
      cwd: "w1"
      command_execution_prefix: "env A=1"
      command_line_docker_image: "x"
      command_line_blocked_commands: ["git push", "rm.*", "a|b"]
  - id: "reviewer"
    backend:
      type: "gemini"
      cwd: "w2"
      command_line_whitelist_patterns: ["cat .*", "ls"]
)";

}  // namespace

TEST_CASE("MassGen's options of containers become those of the server") {
  if (lacks_yaml()) return;
  const Conversion c;
  c.place.directory("workspace");
  c.place.directory("shared");
  c.place.file(".env", "GITHUB_TOKEN=abcdefgh\n");
  const ProcessResult r = c.run(full_setup);
  const Json made = c.taken(r);
  CHECK(made["execution_mode"] == Json("docker"));
  CHECK(made["enable_sudo"] == Json(true));
  CHECK(made["docker_network_mode"] == Json("bridge"));
  CHECK(made["docker_memory_limit"] == Json("2g"));
  CHECK(made["docker_cpu_limit"] == Json(1.5));
  CHECK(made["docker_credentials"]["env_file"] == Json(c.place / ".env"));
  CHECK(made["docker_packages"].dump() ==
        R"({"preinstall":{"python":["massgen"],"npm":["typescript"]}})");
  CHECK(made["workspace"] == Json(c.place / "workspace"));
  CHECK(made["allowed_paths"][0] == Json(c.place / "workspace"));
  CHECK(made["read_only"][0] == Json(c.place / "shared"));
  CHECK(made["agent_id"] == Json("fullstack_agent"));
  CHECK(lines_with(r, "left out: enable_mcp_command_line: ") == 1);
  CHECK(lines_with(r, "left out: auto_install_deps: ") == 1);
  CHECK(lines_with(r, "left out: snapshot_storage: ") == 1);
  CHECK(lines_with(r, "left out: type, model: ") == 1);
  CHECK(lines_of(r.err).size() == 4);
}

TEST_CASE("one agent of several is converted, and its lists judge as there") {
  if (lacks_yaml()) return;
  const Conversion c;
  c.place.directory("w1");
  c.place.directory("w2");
  const ProcessResult none = c.run(two_agents);
  CHECK(none.exit_code == 1);
  CHECK(has(none.err, R"(choose with --agent: "coder", "reviewer")"));
  CHECK(c.run(two_agents, {"--agent", "nope"}).exit_code == 1);

  const ProcessResult coder = c.run(two_agents, {"--agent", "coder"});
  const Json made = c.taken(coder);
  CHECK(made["command_execution_prefix"] == Json("env A=1"));
  CHECK(lines_with(coder, "left out: command_line_docker_image: there is no container") == 1);
  for (const std::string& command : Strings{"git push", "git push origin", "rm x", "ls; git pushx"})
    CHECK_MESSAGE(c.rule(command) == "blocked-commands", command);
  CHECK(c.rule("git status") == "");
  CHECK(c.rule("ba") == "blocked-commands");

  const ProcessResult reviewer = c.run(two_agents, {"--agent", "reviewer"});
  c.taken(reviewer);
  CHECK(lines_with(reviewer, "must match a whole command") == 1);
  CHECK(c.rule("cat x") == "");
  CHECK(c.rule("cat x; id") == "allowed-commands");
}

TEST_CASE("MassGen's sandbox becomes ours, with no network") {
  if (lacks_yaml()) return;
  const Conversion c;
  c.place.directory("w");
  const ProcessResult r = c.run(
      "agent:\n  backend:\n    cwd: w\n    command_line_execution_mode: srt\n"
      "    permissions: {role: read-only}\n"
      "    command_line_srt_allow_read: [/usr/share]\n    command_line_srt_read_mode: open\n"
      "    command_line_srt_network_allowed_domains: [x.org]\n    command_line_srt_new: 1\n");
  REQUIRE(r.exit_code == 0);
  const Json made = parsed(r.out);
  CHECK(made["sandbox"] == Json("strict"));
  CHECK(made["network"] == Json("none"));
  CHECK(made["execution_mode"] == Json("local"));
  CHECK(made["read_only"].dump() == Json::array({c.place / "w", "/usr/share"}).dump());
  CHECK(made["allowed_paths"].is_null());
  for (const std::string key : {"srt_read_mode", "srt_network_allowed_domains", "srt_new"})
    CHECK(lines_with(r, "left out: command_line_" + key + ": ") == 1);
  // Here a machine may lack what a strict sandbox needs; the keys must be known all the same.
  const ProcessResult server =
      run_program({"--config", c.place.file("c.json", r.out), "--client-config", "cursor"}, "/",
                  {"HOME=/nonexistent"});
  CHECK_MESSAGE(server.exit_code == 0, server.err);
}

TEST_CASE("older names of MassGen are known, too") {
  if (lacks_yaml()) return;
  const Conversion c;
  const Json made = c.taken(c.run(
      "agents:\n- backend:\n    enable_docker_isolation: true\n    docker_network_mode: none\n"
      "    docker_run_mcp_inside: true\n    command_line_blacklist_patterns: ['x.*']\n"));
  CHECK(made["execution_mode"] == Json("docker"));
  CHECK(made["docker_network_mode"] == Json("none"));
  CHECK(made["blocked_commands"][0] == Json("x.*"));
}

TEST_CASE("a file that makes no configuration gets one line that says why") {
  if (lacks_yaml()) return;
  const std::string backend = "agent:\n  backend:\n    ";
  std::string laughs = "a0: &a0 [x, x]\n";
  std::string merges = "a0: &a0 {k: x}\n";
  for (int i = 1; i < 30; ++i) {
    const std::string now = std::to_string(i);
    const std::string before = "*a" + std::to_string(i - 1);
    laughs += "a" + now + ": &a" + now + " [" + before + ", " + before + "]\n";
    merges += "a" + now + ": &a" + now + " {<<: [" + before + ", " + before + "]}\n";
  }
  const std::vector<std::pair<std::string, std::string>> files = {
      {"", "not an object at the top"},
      {"- a\n", "not an object at the top"},
      {"x: 1\n", "there is no agent:"},
      {"agents: []\n", "there is no agent:"},
      {"agents: [1]\n", "an agent has no backend:"},
      {"agent: {backend: x}\n", "an agent has no backend:"},
      {"agent: [\n", "not YAML at line"},
      {"a: 1\n--- \nb: 2\n", "not YAML"},
      {"agent: !!python/object/apply:os.getcwd []\n", "not YAML at line 1"},
      {"agent: \xff\n", "not UTF-8 at byte 7"},
      {std::string("agent: \0\n", 9), "not YAML"},
      {std::string(50000, '['), "nested too deep"},
      {std::string((1 << 20) + 1, ' '), "longer than 1048576 bytes"},
      {laughs + "agent:\n  backend: {x: *a29}\n", "more than 10000 values"},
      {merges + "agent:\n  backend: {x: *a29}\n", "more than 10000 values"},
      {"agent: &a\n  backend: {x: *a}\n", "nested too deep"},
      {backend + "cwd: a\n    cwd: b\n", "the key \"cwd\" occurs twice"},
      {backend + "cwd: 1\n", "cwd: \"1\" is not a text"},
      {backend + "cwd: \"a\\0\"\n", "a text with NUL"},
      {backend + "x: 2020-01-01\n", "is not text, number, list or object"},
      {backend + "1: x\n", "the key \"1\" is no string"},
      {backend + "context_paths: [{permission: write}]\n", "names no path"},
      {backend + "context_paths: 7\n", "names no path"},
      {backend + "command_line_execution_mode: \"\\e[31m\"\n", "is none of MassGen's"},
      {backend + "command_line_allowed_commands: ls\n", "is not a list of texts"},
      {backend + "command_line_allowed_commands: [yes]\n", "is not a list of texts"},
      {backend + "command_line_docker_cpu_limit: .nan\n", "not a number that JSON has"},
      {backend + "command_line_docker_cpu_limit: true\n", "is not a number"},
      {backend + "command_line_docker_packages: [a]\n", "is not an object"},
      {backend + "command_line_blocked_commands: [a]\n    command_line_blacklist_patterns: [b]\n",
       "another key says the same"}};
  for (const auto& file : files) {
    const std::string& text = file.first;
    const std::string& reason = file.second;
    CAPTURE(text.substr(0, 100));
    const Conversion c;
    const ProcessResult r = c.run(text);
    CHECK(r.exit_code == 1);
    CHECK(r.out == "");
    CHECK(lines_of(r.err).size() == 1);
    CHECK_MESSAGE(has(r.err, reason), r.err);
  }
}

TEST_CASE("an empty list is left out, and a line says so: there it allowed everything") {
  if (lacks_yaml()) return;
  const Conversion c;
  const ProcessResult r = c.run("agent: {backend: {command_line_allowed_commands: []}}");
  CHECK(c.taken(r)["allowed_commands"].is_null());
  CHECK(lines_with(r, "left out: command_line_allowed_commands: an empty list") == 1);
}

TEST_CASE("without PyYAML, JSON is read, and YAML gets a line that names it") {
  if (lacks_yaml()) return;
  const Conversion c;
  const Strings bare = {"python3", "-S"};  // without the packages of the site
  if (c.run("agent: {backend: {}}", {}, bare).exit_code == 0) {
    MESSAGE("SKIPPED: this Python has PyYAML of its own");
    return;
  }
  const ProcessResult none = c.run("agent: {backend: {}}", {}, bare);
  CHECK(none.exit_code == 2);
  CHECK(has(none.err, "PyYAML is missing"));
  const ProcessResult json = c.run(
      R"({"agent": {"id": "a", "backend": {"command_line_blocked_commands": ["x.*"]}}})", {}, bare);
  CHECK(c.taken(json)["blocked_commands"][0] == Json("x.*"));
}
