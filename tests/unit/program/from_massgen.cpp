// examples/from_massgen.py: the server takes what it makes of MassGen's files.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/server_support.hpp"
#include "../tools/helpers.hpp"

using codeexec::Json;
using codeexec::ProcessResult;
using support::begins;
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
  CHECK(lines_with(r, "left out: ui, ui.display_type: ") == 1);
  CHECK(lines_with(r, "note: cwd: ") == 1);
  CHECK(lines_of(r.err).size() == 6);
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

TEST_CASE("what is wrong with a folder has the name of its option") {
  const TempDir place;
  const auto error_of = [&place](const std::string& options) {
    return run_program({"--config", place.file("c.json", options), "--check", "ls"}).err;
  };
  const std::string docker = R"({"execution_mode": "docker", )";
  CHECK(begins(error_of(docker + R"("allowed_paths": ["/nonexistent"]})"),
               "codeexec-mcp: allowed_paths: '/nonexistent'"));
  CHECK(begins(
      error_of(docker + R"("read_only": ["/usr"], "allowed_paths": [")" + place.path() + "\"]}"),
      "codeexec-mcp: read_only: '/usr'"));
  CHECK(begins(error_of(docker + R"("workspace": "/nonexistent"})"),
               "codeexec-mcp: workspace: '/nonexistent'"));
  CHECK(begins(error_of(docker + R"("docker_mount": ["/nonexistent"]})"),
               "codeexec-mcp: docker_mount: '/nonexistent'"));
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
      {backend + "cwd: /dev/null/x\n", "cwd: \"/dev/null/x\": Not a directory"},
      {backend + "permissions: 7\n", "permissions: \"7\" is not an object"},
      {backend + "permissions: {role: boss}\n", "permissions.role: \"boss\" is none of"},
      {backend + "permissions: {rules: [a]}\n", "permissions.rules: "},
      {backend + "permissions: {rules: {forbid: []}}\n", "there are deny, ask and allow"},
      {backend + "permissions: {rules: {deny: \"command(x)\"}}\n", "is not a list of texts"},
      {backend + "permissions: {rules: {deny: [\"rm x\"]}}\n", "not of the form action(target)"},
      {backend + "permissions: {rules: {deny: [\"run(x)\"]}}\n", "not of the form action(target)"},
      {backend + "context_paths: [{path: /, permission: write, protected_paths: [/]}]\n",
       "protected_paths: \"/\" lies not in"},
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

TEST_CASE("rules about commands become lists of commands, and others are named") {
  if (lacks_yaml()) return;
  const Conversion c;
  const ProcessResult r = c.run(
      "agent:\n  backend:\n    cwd: w\n    permissions:\n      automation_default: deny-all\n"
      "      rules:\n"
      "        deny: ['command(git push --force*)', 'write_file(/etc/**)', '*(rm [!a]?.x)']\n"
      "        ask: ['read_url(*)', 'command(npm publish*)']\n"
      "        allow: ['command(git *)', 'command(ls)', 'read_file(./**)']\n");
  c.taken(r);
  const std::vector<std::pair<std::string, std::string>> verdicts = {
      {"git push --force origin", "blocked-commands"},
      {"cd . && git push --force", "blocked-commands"},
      {"git push", ""},
      {"ls", ""},
      {"ls -l", "allowed-commands"},
      {"rm bc.x", "blocked-commands"},
      {"rm ac.x", "allowed-commands"},
      {"rm bcx", "allowed-commands"},
      {"npm publish now", "ask-commands"},
      {"npm test", "allowed-commands"}};
  for (const auto& wanted : verdicts)
    CHECK_MESSAGE(c.rule(wanted.first) == wanted.second, wanted.first);
  for (const std::string named :
       {"deny: \"write_file(/etc/**)\"", "ask: \"read_url(*)\"", "allow: \"read_file(./**)\""})
    CHECK_MESSAGE(lines_with(r, "left out: permissions.rules." + named) == 1, named);
  CHECK(lines_with(r, "left out: permissions.automation_default: ") == 1);
  CHECK(lines_with(r, "note: permissions.rules.allow: here every other command is refused") == 1);

  // A list of allowed commands stays the only one: two lists together would allow more.
  const ProcessResult two = c.run(
      "agent:\n  backend:\n    command_line_allowed_commands: ['ls']\n"
      "    permissions: {rules: {allow: ['command(id)']}}\n");
  c.taken(two);
  CHECK(c.rule("id") == "allowed-commands");
  CHECK(lines_with(two, "left out: permissions.rules.allow: ") == 1);

  // What is switched off there has no effect here.
  const ProcessResult off =
      c.run("agent:\n  backend:\n    permissions: {enabled: false, rules: {deny: ['command']}}\n");
  c.taken(off);
  CHECK(c.rule("id") == "");
  CHECK(lines_with(off, "permissions.enabled is false") == 1);

  const ProcessResult reader = c.run("agent:\n  backend:\n    permissions: {role: Researcher}\n");
  c.taken(reader);
  CHECK(c.rule("id") == "blocked-commands");
  CHECK(lines_with(reader, "note: permissions.role: researcher refuses every command") == 1);
}

TEST_CASE("the folder of an agent is made, and a missing one of the user's is named") {
  if (lacks_yaml()) return;
  const Conversion c;
  c.place.directory("here/.git/hooks");
  const ProcessResult r = c.run(
      "agent:\n  backend:\n    cwd: a/b\n    context_paths:\n"
      "    - {path: here, permission: write, protected_paths: [.git/hooks/], note: x}\n"
      "    - path: nowhere\n");
  const Json made = c.taken(r);
  CHECK(codeexec::is_within(made["workspace"].as_string(), c.place.path()));
  CHECK(lines_with(r, "made: ") == 1);
  CHECK(lines_with(r, "left out: context_paths: \"nowhere\" is no folder") == 1);
  CHECK(lines_with(r, "left out: context_paths.note: ") == 1);
  CHECK(made["protected_paths"].dump() == R"([".git/hooks"])");
  CHECK(made["allowed_paths"].size() == 2);
  const ProcessResult boxed = c.run(
      "agent:\n  backend:\n    command_line_execution_mode: docker\n    context_paths:\n"
      "    - {path: here, permission: write, protected_paths: [.git]}\n");
  CHECK(boxed.exit_code == 1);
  CHECK(has(boxed.err, "protected_paths of \"here\": a container cannot hold them"));
}

// The keys are those of the package, which tests/clients/massgen compares with the list.
TEST_CASE("each key that MassGen knows is converted or named") {
  if (lacks_yaml()) return;
  const Conversion c;
  c.place.directory("shared");
  const Json keys = parsed(support::read_file(CODEEXEC_ROOT "/tests/clients/massgen/keys.json"));
  const auto object_of = [&keys](const char* section, const Strings& without) {
    Json object = Json::object();
    for (const Json& key : keys[section].items())
      if (std::find(without.begin(), without.end(), key.as_string()) == without.end())
        object.set(key.as_string(), "x");
    return object;
  };
  const Json valid = parsed(R"({
    "cwd": "w", "context_paths": [],
    "command_line_execution_mode": "docker", "command_line_allowed_commands": ["a"],
    "command_line_blocked_commands": ["b"], "command_line_docker_image": "i",
    "command_line_docker_memory_limit": "1g", "command_line_docker_cpu_limit": 1,
    "command_line_docker_network_mode": "bridge", "command_line_docker_enable_sudo": false,
    "command_line_docker_credentials": {"env_vars": ["A"]},
    "command_line_docker_packages": {"preinstall": {"python": ["p"]}},
    "command_line_srt_allow_read": ["shared"], "command_line_srt_read_only": false})");
  Json backend = object_of("backend", {});
  for (const Json::Member& member : valid.members()) backend.set(member.name, member.value);
  Json permissions = object_of("permissions", {"enabled", "role", "rules"});
  permissions.set("rules", parsed(R"j({"deny": ["command(x)"]})j"));
  backend.set("permissions", permissions);
  Json agent = object_of("agent", {"backend"});
  agent.set("backend", backend);
  Json orchestrator = object_of("orchestrator", {"context_paths"});
  orchestrator.set("coordination", object_of("coordination", {}));
  Json top = object_of("top", {"agents", "agent"});
  top.set("agent", agent);
  top.set("orchestrator", orchestrator);
  const ProcessResult r = c.run(top.dump());
  const Json made = c.taken(r);

  // Those that are converted have a name here, or are a part of what has.
  const std::string converted =
      " cwd context_paths agent agents orchestrator backend id permissions enabled role rules "
      "command_line_srt_allow_read command_line_srt_read_only path permission protected_paths "
      "agent_id command_line_docker_enable_sudo ";
  std::string said = " ";
  for (const char letter : r.err) said += std::string(",:\n.").find(letter) < 4 ? ' ' : letter;
  for (const Json::Member& section : keys.members())
    for (const Json& key : section.value.items()) {
      const std::string& name = key.as_string();
      const std::string plain =
          name.rfind("command_line_", 0) == 0 ? name.substr(13) : std::string(name);
      const bool is_there = has(said, " " + name + " ") || has(converted, " " + name + " ") ||
                            !made[name].is_null() || !made[plain].is_null();
      CHECK_MESSAGE((is_there || section.name == "version"), section.name << "." << name);
    }
}
