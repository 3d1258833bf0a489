// The server program with containers of a played engine.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/server_support.hpp"
#include "../tools/helpers.hpp"

using codeexec::Json;
using codeexec::ProcessResult;
using support::begins;
using support::check_refused;
using support::FakeEngine;
using support::has;
using support::key_of;
using support::lines_of;
using support::names_of;
using support::parsed;
using support::report_of;
using support::run_command;
using support::run_program;
using support::Server;
using support::seven_keys;
using support::Strings;
using support::TempDir;

TEST_CASE("options that mean nothing where commands run are errors that name both") {
  const TempDir place;
  const auto refused = [&](Strings option, const std::string& key, const Strings& mode) {
    CAPTURE(key);
    option.insert(option.end(), mode.begin(), mode.end());
    const std::string words =
        mode.empty() ? std::string("execution_mode local") : mode[0].substr(2);
    for (const char* what : {"--check", "--run"}) {
      Strings arguments = option;
      arguments.insert(arguments.end(), {what, "true"});
      const ProcessResult r = run_program(arguments, place.path());
      check_refused(r, key + " has no effect with ");
      CHECK(has(r.err, key_of(words)));
    }
  };
  const std::string config = place.file("c.json", R"({"command_line_docker_image":"x"})");
  refused({"--config", config}, "docker_image", {});
  refused({"--docker-persistent=false"}, "docker_persistent", {});
  refused({"--tools-path", place.path()}, "tools_path", {});
  refused({"--user-id", "x"}, "user_id", {});
  const Strings docker = {"--execution-mode", "docker"};
  for (const char* option :
       {"--sandbox=strict", "--network=none", "--private-home=off", "--unix-sockets",
        "--shared-memory", "--terminals", "--pid-namespace", "--protected-paths=x",
        "--hidden-paths=x",
        "--no-watch-files", "--no-supervisor", "--limit-cpu=5", "--limit-memory=1000000",
        "--limit-address-space=1000000000", "--limit-processes=50", "--limit-open-files=50",
        "--limit-file-size=1000000", "--limit-disk=1000000", "--local-skills-directory=.",
        "--keep-env=X"}) {
    const std::string name = std::string(option).substr(2);
    refused({option}, key_of(name.substr(0, name.find('='))), docker);
  }
  refused({"--user-id", "x"}, "user_id", docker);
  check_refused(run_program({"--execution-mode", "docker", "--network", "none"}),
                "leave one of them out; a container has a docker_network_mode or docker_network");
  for (const Strings& half : {Strings{"--network", "allow"}, Strings{"--allow-domains", "python"}})
    check_refused(run_program({"--execution-mode", "docker", half[0], half[1]}),
                  "network: 'allow' and allow_domains need each other");
  const Strings user = {"--profile", "user-container", "--user-id", "x"};
  for (const char* option : {"allowed-paths", "workspace", "read-only", "disable-tool"}) {
    const ProcessResult r =
        run_program({user[0], user[1], user[2], user[3], std::string("--") + option, place.path(),
                     "--run", "true"});
    check_refused(r, key_of(option) + " has no effect with profile user-container");
  }
  check_refused(run_program({"--execution-mode", "srt"}),
                "Invalid command_line_execution_mode: 'srt'. Must be 'local', 'docker', 'ssh', "
                "'slurm', 'kubernetes' or 'command'.");
  check_refused(run_program({"--execution-mode", "docker", "--docker-network-mode", "mesh"}),
                "Invalid command_line_docker_network_mode: 'mesh'. Must be 'none', 'bridge', or "
                "'host'.");
  check_refused(run_program({"--profile", "user-container"}), "needs a user_id");
  check_refused(run_program({user[0], user[1], user[2], user[3], "--execution-mode", "local"}),
                "profile user-container has no execution_mode 'local'");
  check_refused(run_program({user[0], user[1], user[2], user[3], "--check", "true"}), "--check");
  check_refused(run_program({"--execution-mode", "docker", "--sandbox-report"}), "--doctor");
}

TEST_CASE("a mistake in what a container gets is told with its key") {
  const TempDir place;
  const auto refused = [&](const char* option, const char* value, const std::string& named) {
    CAPTURE(value);
    check_refused(
        run_program({"--execution-mode", "docker", option, value, "--check", "true"}, place.path()),
        named);
  };
  refused("--docker-credentials", R"({"mounts":["ssh_keys"]})", "docker_credentials: ");
  refused("--docker-credentials", R"({"mount":["ssh_key"]})", "docker_credentials: ");
  refused("--docker-credentials", R"({"mount":[],"mount":[]})", "--docker-credentials: ");
  refused("--docker-packages", R"({"preinstall":{"ruby":["x"]}})", "docker_packages: ");
  // What stands there may be secret.
  const ProcessResult r = run_program(
      {"--execution-mode", "docker", "--docker-credentials", R"(["hunter2"])", "--check", "true"});
  check_refused(r, "--docker-credentials: not a JSON object");
  CHECK(!has(r.err, "hunter2"));
}

TEST_CASE("the reference's keys of containers load, with command_line_ and without") {
  const TempDir place;
  const FakeEngine engine;
  for (const std::string start : {"", "command_line_"}) {
    CAPTURE(start);
    const std::string config = place.file(
        "c.json", "{\"" + start + "execution_mode\":\"docker\",\"" + start +
                      "docker_image\":\"my/image:2\",\"" + start +
                      "docker_memory_limit\":\"1.5GB\",\"" + start + "docker_cpu_limit\":4.0,\"" +
                      start + "docker_network_mode\":\"bridge\",\"" + start +
                      "docker_enable_sudo\":true,\"" + start +
                      "docker_credentials\":{\"env_vars\":[\"CODEEXEC_TEST_SECRET\"]},\"" + start +
                      "docker_packages\":{\"preinstall\":{\"npm\":[\"typescript\"]}}}");
    const ProcessResult r = run_program({"--config", config, "--docker-program", engine.program(),
                                         "--run", "echo $CODEEXEC_TEST_SECRET"},
                                        place.path(), {"CODEEXEC_TEST_SECRET=hunter2"});
    CHECK(parsed(r.out)["stdout"] == Json("[redacted]\n"));
    const std::string calls = engine.take_calls();
    CAPTURE(calls);
    for (const char* words :
         {" my/image:2 ", "--memory 1610612736", "--cpus 4", "--network bridge"})
      CHECK(has(calls, words));
    CHECK(has(calls, "typescript"));
    CHECK(!has(calls, "--cap-drop"));  // as sudo needs them
    CHECK(!has(calls, "hunter2"));
  }
}

TEST_CASE("sudo counts in a container, and chooses the image that has it") {
  const TempDir place;
  const FakeEngine engine;
  const auto rule = [&](Strings more) {
    more.insert(more.end(), {"--workspace", place.path(), "--check", "sudo ls"});
    return parsed(run_program(engine.options(more)).out)["rule"];
  };
  CHECK(rule({}) == Json("sudo"));
  CHECK(rule({"--enable-sudo"}).is_null());
  CHECK(rule({"--enable-sudo=false"}) == Json("sudo"));
  run_command("true", engine.options({"--workspace", place.path(), "--enable-sudo"}));
  CHECK(has(engine.take_calls(), "codeexec/runtime-sudo:latest"));
  run_command("true", engine.options({"--workspace", place.path()}));
  CHECK(has(engine.take_calls(), "codeexec/runtime:latest"));
}

TEST_CASE("nobody asks the engine before the first command") {
  const TempDir place;
  const FakeEngine engine;
  const Strings options = engine.options({"--workspace", place.path()});
  const auto with = [&](const char* option) {
    Strings arguments = options;
    arguments.emplace_back(option);
    return arguments;
  };
  CHECK(run_program(with("--help")).exit_code == 0);
  CHECK(run_program(with("--version")).exit_code == 0);
  CHECK(run_program(with("--list-rules")).exit_code == 0);
  Strings check = with("--check");
  check.emplace_back("ls");
  CHECK(run_program(check).exit_code == 0);
  Server server(options);
  server.ask("tools/list");
  CHECK(server.execute("sudo ls")["rule"] == Json("sudo"));
  CHECK(server.use("write_file", R"({"file_path":"x","content":"y"})")["success"] == Json(true));
  CHECK(engine.take_calls() == "");
  CHECK(server.execute("cat x")["stdout"] == Json("y"));
  CHECK(has(engine.take_calls(), "run "));
  CHECK(server.finish().empty());
}

TEST_CASE("without an engine nothing runs, and the first command says why") {
  const TempDir place;
  Server server(Strings{"--execution-mode", "docker", "--docker-program", place / "no-engine",
                        "--workspace", place.path()});
  CHECK(server.logged() == "");
  for (const Json& r : {server.execute("touch made"),
                        server.use("execute_code", R"({"language":"sh","code":"touch made"})")}) {
    CHECK(r["outcome"] == Json("not_started"));
    CHECK(has(r["stderr"].as_string(), "no-engine"));
  }
  CHECK(has(server.error_of("start_background_shell", parsed(R"({"command":"touch made"})")),
            "no-engine"));
  CHECK(!support::exists(place / "made"));
  CHECK(server.finish().empty());
}

TEST_CASE("the program that speaks to the engine keeps its variables, and no others") {
  const TempDir place;
  const FakeEngine engine;
  const Strings kept = {
      "DOCKER_HOST=unix:///nowhere", "DOCKER_CONFIG=/nowhere", "CONTAINER_HOST=x",
      "CONTAINERD_ADDRESS=y",        "XDG_RUNTIME_DIR=/run/x", "SSH_AUTH_SOCK=/run/y",
      "HTTPS_PROXY=http://proxy",    "no_proxy=here",          "HOME=/nonexistent"};
  Server::Options options;
  options.arguments = engine.options({"--workspace", place.path()});
  options.environment = kept;
  options.environment.emplace_back("CODEEXEC_TEST_TOKEN=hunter2");
  Server server(options);
  CHECK(server.execute("true")["success"] == Json(true));
  const std::string variables = engine.take_variables();
  for (const std::string& variable : kept) CHECK_MESSAGE(has(variables, variable), variable);
  CHECK(has(variables, "PATH="));
  CHECK(!has(variables, "hunter2"));
  CHECK(server.finish().empty());
}

TEST_CASE("results, shells, code and files are the same in a container") {
  const TempDir place;
  const FakeEngine engine;
  Server server(engine.options({"--workspace", place.path()}));
  const Json r = server.execute("echo out; echo err >&2; exit 3");
  CHECK(names_of(r) == seven_keys + " container");
  CHECK(r["exit_code"] == Json(3));
  CHECK(r["stdout"] == Json("out\n"));
  CHECK(r["stderr"] == Json("err\n"));
  CHECK(r["work_dir"] == Json(place.path()));
  const Json late = server.execute_with(parsed(R"({"command":"sleep 300","timeout":0.2})"));
  CHECK(late["timed_out"] == Json(true));
  const std::string shell =
      server.use("start_background_shell", R"({"command":"read x; echo got $x"})")["shell_id"]
          .as_string();
  server.use("write_background_shell", Json::object({{"shell_id", shell}, {"input", "it\n"}}));
  const Json output = server.use("get_background_shell_output",
                                 Json::object({{"shell_id", shell}, {"wait_for", "exit"}}));
  CHECK(output["stdout"] == Json("got it\n"));
  CHECK(server.use("execute_code", R"({"language":"sh","code":"echo coded"})")["stdout"] ==
        Json("coded\n"));
  server.use("write_file", R"({"file_path":"dir/x","content":"y"})");
  CHECK(server.execute("cat dir/x")["stdout"] == Json("y"));
  // What is not mounted is not there for the file tools either.
  CHECK(server.error_of("read_file", parsed(R"({"file_path":"/etc/hostname"})")) != "");
  CHECK(server.finish().empty());
}

TEST_CASE("the model is told what the container is and has") {
  const TempDir place;
  place.directory("ro");
  const FakeEngine engine;
  const auto told = [&](Strings more) {
    more.insert(more.end(), {"--workspace", place.path()});
    Server server(engine.options(more));
    std::string text = server.greeting["result"]["instructions"].as_string();
    CHECK(!has(text, "on this machine"));
    return text;
  };
  const std::string plain = told({});
  CHECK(has(plain, "a Linux container of the image codeexec/runtime:latest. It has Debian's"));
  CHECK(has(plain, "The network is switched off: nothing can be downloaded."));
  CHECK(has(plain, "There is no sudo: ask the user"));
  CHECK(has(plain, "changed below " + place.path() +
                       " and, until the container goes away, in /tmp; "
                       "nowhere else."));
  CHECK(!has(plain, "Read-only"));
  CHECK(has(plain, "The shell is /bin/sh."));
  const std::string other = told({"--docker-image", "my/own:1", "--docker-network-mode", "bridge",
                                  "--read-only", place / "ro", "--docker-read-only-root", "false"});
  CHECK(has(other, "of the image my/own:1. "));
  for (const char* absent : {"Debian", "switched off", "host's", "nowhere else"})
    CHECK(!has(other, absent));
  CHECK(has(other, "pip and npm install for you alone"));
  CHECK(has(other, "in /tmp and elsewhere in it."));
  CHECK(has(other, "Read-only: " + (place / "ro") + "."));
  const std::string sudo =
      told({"--enable-sudo", "--docker-network-mode", "host", "--docker-packages",
            R"({"preinstall":{"python":["polars>=1"]}})"});
  CHECK(has(sudo, "sudo needs no password: `sudo apt-get install -y PACKAGE`"));
  CHECK(has(sudo, "The network is the host's."));
  CHECK(has(sudo, "Installed when the container is made: polars>=1; a result says"));
  CHECK(has(told({"--enable-sudo"}), "sudo needs no password."));
}

TEST_CASE("--doctor: no engine is not the server's failure, but something to mend") {
  const TempDir place;
  const ProcessResult engine = run_program(
      {"--execution-mode", "docker", "--docker-program", place / "no-engine", "--doctor"},
      place.path());
  CHECK(engine.err == "");
  CHECK(engine.exit_code == 1);
  CHECK(has(engine.out, "FAIL engine: "));
  CHECK(has(engine.out, "no-engine"));
}

TEST_CASE("profile user-container: what no option says comes from the environment") {
  const TempDir place;
  const FakeEngine engine;
  const std::string tools = place.directory("t");
  const std::string skills = place.directory("s");
  const auto run = [&](const Strings& variables, const Strings& more = {}) {
    Strings arguments = {"--profile",        "user-container", "--user-id", "x",
                         "--docker-program", engine.program(), "--run",     "true"};
    arguments.insert(arguments.begin(), more.begin(), more.end());
    return run_program(arguments, place.path(), variables);
  };
  run({});
  std::string calls = engine.take_calls();
  CHECK(has(calls, " codeexec/executor:latest "));
  CHECK_FALSE(has(calls, "dst=/tools"));
  CHECK_FALSE(has(calls, "dst=/skills"));
  run({"MCP_EXECUTOR_IMAGE=some/image:1", "MCP_TOOLS_PATH=" + tools, "MCP_SKILLS_PATH=" + skills,
       "MCP_ARTIFACT_SIZE_LIMIT_MB=7"});
  calls = engine.take_calls();
  CHECK(has(calls, " some/image:1 "));
  CHECK(has(calls, "src=" + tools + ",dst=/tools,readonly"));
  CHECK(has(calls, "src=" + skills + ",dst=/skills,readonly"));
  // Options win, and what a variable says does not matter then.
  const std::string own = place.directory("own");
  run({"MCP_EXECUTOR_IMAGE=some/image:1", "MCP_TOOLS_PATH=/nonexistent",
       "MCP_ARTIFACT_SIZE_LIMIT_MB=x"},
      {"--docker-image", "other", "--tools-path", own, "--max-artifact-size", "100"});
  calls = engine.take_calls();
  CHECK(has(calls, " other "));
  CHECK(has(calls, "src=" + own + ",dst=/tools,readonly"));
  // Folders of the usual names are found in the server's directory.
  place.directory("tools");
  place.directory("skills");
  run({});
  calls = engine.take_calls();
  CHECK(has(calls, "src=" + place / "tools" + ",dst=/tools,readonly"));
  CHECK(has(calls, "src=" + place / "skills" + ",dst=/skills,readonly"));
  check_refused(run({"MCP_TOOLS_PATH=" + place / "missing"}), "/tools: ");
  check_refused(run({"MCP_SKILLS_PATH=" + place.file("file")}), "/skills: ");
  for (const char* size : {"0", "-1", "x", "5x", "1e3", "99999"})
    check_refused(run({std::string("MCP_ARTIFACT_SIZE_LIMIT_MB=") + size}),
                  "MCP_ARTIFACT_SIZE_LIMIT_MB");
}

TEST_CASE("a container's agent is the option's, the variable's or the server itself") {
  const TempDir place;
  const TempDir elsewhere;  // where commands may not write
  const FakeEngine engine;
  const std::string agent = elsewhere.file("agent", "", 0755);
  const auto agent_of = [&](const Strings& variables, Strings more) {
    more.insert(more.end(), {"--run", "true"});
    run_program(engine.options(more), place.path(), variables);
    const std::string calls = engine.take_calls();
    const std::size_t end = calls.find(",dst=/.codeexec-mcp,");
    if (end == std::string::npos) return std::string();
    const std::size_t begin = calls.rfind("src=", end) + 4;
    return calls.substr(begin, end - begin);
  };
  CHECK(agent_of({}, {}) == *codeexec::canonical_path(CODEEXEC_MCP));
  CHECK(agent_of({"CODEEXEC_PLACE_AGENT=" + agent}, {}) == agent);
  CHECK(agent_of({"CODEEXEC_PLACE_AGENT="}, {}).empty());
  CHECK(agent_of({"CODEEXEC_PLACE_AGENT=/nonexistent"}, {"--place-agent", agent}) == agent);
}
