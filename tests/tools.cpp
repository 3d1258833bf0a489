// The server program, run as a client would run it: command line, configuration file, --run, and
// conversations over pipes. The parts of a conversation that concern the protocol alone are in
// mcp.cpp.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "server_support.hpp"

using codeexec::Expected;
using codeexec::Json;
using codeexec::Outcome;
using codeexec::ProcessOptions;
using codeexec::ProcessResult;
using support::begins;
using support::check_refused;
using support::dies;
using support::ends;
using support::FakeEngine;
using support::has;
using support::lines_of;
using support::names_of;
using support::parsed;
using support::patience_ms;
using support::run_command;
using support::run_program;
using support::Server;
using support::Strings;
using support::TempDir;

namespace {

// A named pipe that commands write to, so that the test knows when they are so far.
class Fifo {
 public:
  explicit Fifo(const std::string& path) : path_(path) {
    REQUIRE(::mkfifo(path.c_str(), 0666) == 0);
    fd_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    REQUIRE(fd_ >= 0);
  }
  Fifo(const Fifo&) = delete;
  Fifo& operator=(const Fifo&) = delete;
  ~Fifo() { ::close(fd_); }
  const std::string& path() const { return path_; }

  std::string read_line() {
    std::string line;
    for (;;) {
      pollfd wanted = {fd_, POLLIN, 0};
      REQUIRE_MESSAGE(::poll(&wanted, 1, patience_ms) == 1, "no command wrote to the pipe");
      char byte = 0;
      REQUIRE(::read(fd_, &byte, 1) == 1);
      if (byte == '\n') return line;
      line += byte;
    }
  }
  pid_t read_pid() { return std::atoi(read_line().c_str()); }
  void write_text(const std::string& text) {
    REQUIRE(::write(fd_, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }

 private:
  std::string path_;
  int fd_ = -1;
};

// What --sandbox-report prints.
Json report_of(Strings arguments, const std::string& work_dir = "/") {
  arguments.push_back("--sandbox-report");
  const ProcessResult r = run_program(arguments, work_dir);
  CHECK(r.err == "");
  CHECK(lines_of(r.out).size() == 1);
  const Json report = parsed(r.out);
  CHECK(r.exit_code == (report["missing"].size() > 0 ? 1 : 0));
  return report;
}

bool enforces(const Json& report, const std::string& feature) {
  for (const Json& name : report["enforced"].items())
    if (name == Json(feature)) return true;
  return false;
}

// Whether commands can be confined here; says so when not.
bool has_sandbox() {
  if (enforces(report_of({"--sandbox", "best-effort", "--workspace", TempDir().path()}),
               "filesystem"))
    return true;
  MESSAGE("SKIPPED: no sandbox here");
  return false;
}

// The options of --help: name and what it calls the value ("" for none).
std::vector<std::pair<std::string, std::string>> options_of_help() {
  const ProcessResult help = run_program({"--help"});
  CHECK(help.exit_code == 0);
  CHECK(help.err == "");
  std::vector<std::pair<std::string, std::string>> options;
  for (const std::string& line : lines_of(help.out)) {
    if (!begins(line, "  --")) continue;
    const std::size_t name_end = line.find(' ', 4);
    const std::string name = line.substr(4, name_end - 4);
    std::string value;
    if (line[name_end + 1] != ' ')
      value = line.substr(name_end + 1, line.find(' ', name_end + 1) - name_end - 1);
    options.emplace_back(name, value);
  }
  return options;
}

bool is_special(const std::string& name) {
  return name == "config" || name == "run" || name == "check" || name == "list-rules" ||
         name == "sandbox-report" || name == "doctor" || name == "help" || name == "version";
}

std::string key_of(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

bool is_list(const std::string& value) { return ends(value, "..."); }
bool is_number(const std::string& value) {
  return value == "SECONDS" || value == "BYTES" || value == "N" || value == "CPUS";
}

// The words of a command line as the value that the configuration file would have.
Json config_value(const std::string& value, const Strings& words) {
  if (value.empty()) return Json(true);
  if (is_number(value) || value == "JSON" || value == "BOOL") return parsed(words.at(0));
  if (!is_list(value)) return Json(words.at(0));
  Json list = Json::array();
  for (const std::string& word : words) list.push_back(word);
  return list;
}

// Writing to a server that has ended must fail, not kill the tests.
class NoSigpipe {
 public:
  NoSigpipe() : before_(::signal(SIGPIPE, SIG_IGN)) {}
  ~NoSigpipe() { ::signal(SIGPIPE, before_); }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  void (*before_)(int);
};

// A command that tells its process number and then runs until somebody ends it.
std::string endless(const Fifo& fifo) { return "sleep 300 & echo $! > " + fifo.path() + "; wait"; }

const std::string seven_keys = "success exit_code stdout stderr execution_time command work_dir";
const std::string all_keys = seven_keys +
                             " outcome timed_out stdout_bytes stderr_bytes stdout_truncated "
                             "stderr_truncated";

// A command that was refused or could not run, in the reference's form.
void check_failure(const Json& object, const std::string& stderr_text) {
  CHECK(begins(names_of(object), seven_keys));
  CHECK(object["success"] == Json(false));
  CHECK(object["exit_code"] == Json(-1));
  CHECK(object["stdout"] == Json(""));
  CHECK(object["stderr"].as_string() == stderr_text);
}

}  // namespace

// command line and configuration ------------------------------------------------------------------

TEST_CASE("--help and --version go to stdout, with status 0, and do nothing else") {
  for (const char* option : {"--help", "-h"}) {
    const ProcessResult r = run_program({option});
    CHECK(r.exit_code == 0);
    CHECK(r.err == "");
    CHECK(begins(r.out, "codeexec-mcp " CODEEXEC_VERSION_STRING " - "));
    std::string rules;
    const Strings lines = lines_of(r.out);
    for (const std::string& line : lines) {
      CHECK(line.size() <= 100);
      // The last lines are the names of the rules.
      if (has(line, "sanitizer rules, for --disable-rule:")) rules.clear();
      if (begins(line, "  ")) rules += line.substr(1);
    }
    std::string expected;
    for (const codeexec::RuleInfo& rule : codeexec::Policy::rules())
      expected += std::string(" ") + rule.name;
    CHECK(rules == expected);
  }
  const ProcessResult version = run_program({"--version"});
  CHECK(version.exit_code == 0);
  CHECK(version.out == "codeexec-mcp " CODEEXEC_VERSION_STRING "\n");
  CHECK(version.err == "");
}

TEST_CASE("every option of --help works from the command line and from the configuration file") {
  const TempDir place;
  const TempDir skills;
  skills.file("s.md", "a skill");
  place.directory("spill");
  place.directory("venv/bin");
  place.directory("project/.venv/bin");
  place.directory("ro");
  place.file("guarded");
  const TempDir disk(support::quiet_base());
  const std::string workspace = place.directory("workspace");
  const std::string audit = place / "audit";
  const std::string wrapper =
      place.file("shell", "#!/bin/sh\necho wrapped\nexec /bin/sh \"$@\"\n", 0755);

  struct Effect {
    Strings words;   // the option's value
    Strings others;  // other options that are needed to see it
    std::string command;
    std::function<bool(const ProcessResult&, const Json&)> seen;  // empty: has none in --run
  };
  const auto prints = [](const std::string& text) {
    return [text](const ProcessResult&, const Json& r) { return r["stdout"] == Json(text + "\n"); };
  };
  // In a sandbox; with options whose effect shows in it only.
  const auto sandboxed = [&](Strings options = {}) {
    options.insert(options.end(), {"--sandbox", "best-effort", "--workspace", workspace});
    return options;
  };
  const auto breaks = [](const std::string& rule) {
    return [rule](const ProcessResult&, const Json& r) { return r["rule"] == Json(rule); };
  };
  const FakeEngine engine;
  const Strings in_docker = engine.options({"--workspace", workspace});
  const auto for_user = [&](Strings options) {
    options.insert(options.end(), {"--docker-program", engine.program(), "--tools-path",
                                   skills.path(), "--skills-path", skills.path()});
    return options;
  };
  const Strings with_packages =
      engine.options({"--workspace", workspace, "--docker-network-mode", "bridge",
                      "--docker-packages", R"({"preinstall":{"python":["x"]}})"});
  const auto called = [&](const std::string& words) {
    return
        [&, words](const ProcessResult&, const Json&) { return has(engine.take_calls(), words); };
  };
  const std::map<std::string, Effect> effects = {
      {"allowed-paths", {{place.path(), skills.path()}, {}, "true", breaks("work_dir")}},
      {"read-only",
       {{place / "ro", skills.path()},
        {"--workspace", place.path()},
        "touch ro/x",
        breaks("read-only")}},
      {"workspace", {{place.path()}, {}, "pwd", prints(place.path())}},
      {"timeout",
       {{"0.2"},
        {},
        "sleep 0.6",
        [](const ProcessResult&, const Json& r) {
          return r["stderr"] == Json("Command timed out after 0.2 seconds");
        }}},
      {"max-timeout",
       {{"0.2"},
        {},
        "sleep 0.6",
        [](const ProcessResult&, const Json& r) {
          return r["stderr"] == Json("Command timed out after 0.2 seconds");
        }}},
      {"max-output-size",
       {{"2048"},
        {},
        "seq 1 2000",
        [](const ProcessResult&, const Json& r) { return r["stdout_truncated"].as_bool(); }}},
      {"policy", {{"compat"}, {}, "echo dd", breaks("dd")}},
      {"allowed-commands", {{"echo.*", "cat.*"}, {}, "true", breaks("allowed-commands")}},
      {"blocked-commands", {{"echo.*", "true.*"}, {}, "true", breaks("blocked-commands")}},
      {"disable-rule",
       {{"dd", "su"}, {}, "dd --version > /dev/null; su --help > /dev/null; echo x", prints("x")}},
      {"delete-guard",
       {{},
        {"--workspace", place.path()},
        "test -d guarded && rm guarded",
        breaks("delete-guard")}},
      {"sandbox",
       {{"best-effort"},
        {"--workspace", workspace},
        "true",
        [](const ProcessResult&, const Json& r) {
          return r["sandbox"]["mode"] == Json("best_effort");
        }}},
      {"network", {{"none"}, sandboxed(), "echo ${CODEEXEC_NETWORK-}", prints("none")}},
      {"private-home", {{"off"}, sandboxed(), "echo $HOME", prints("/nonexistent")}},
      {"unix-sockets",
       {{},
        sandboxed({"--network", "none"}),
        "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) and print \"made\\n\"'",
        prints("made")}},
      {"shared-memory",
       {{},
        sandboxed(),
        "touch /dev/shm/codeexec-test-$$ && rm /dev/shm/codeexec-test-$$ && echo made",
        prints("made")}},
      {"terminals",
       {{}, sandboxed(), "test -c /dev/ptmx && : <> /dev/ptmx && echo made", prints("made")}},
      {"pid-namespace", {{}, sandboxed(), "test $$ -lt 20 && echo new", prints("new")}},
      {"no-supervisor",
       {{},
        {"--sandbox", "off"},
        "setsid sleep 300 > /dev/null 2>&1 < /dev/null & echo $!",
        [](const ProcessResult&, const Json& r) {
          const int pid = std::atoi(r["stdout"].as_string().c_str());
          return pid > 1 && ::kill(pid, SIGKILL) == 0;
        }}},
      {"no-watch-files",
       {{},
        sandboxed(),
        "echo x > .envrc",
        [](const ProcessResult&, const Json& r) {
          return r["success"].as_bool() && !r.find("changed_files");
        }}},
      {"limit-cpu", {{"7"}, {}, "ulimit -t", prints("7")}},
      {"limit-memory",
       {{"33554432"},
        {},
        "perl -e '$x = \"a\" x (64 << 20)'",
        [](const ProcessResult&, const Json& r) { return !r["success"].as_bool(); }}},
      {"limit-address-space", {{"2147483648"}, {}, "ulimit -v", prints("2097152")}},
      {"limit-processes",
       {{"10"},
        {},
        "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do sleep 0.2 & done; wait; echo all",
        [](const ProcessResult&, const Json& r) { return r["stdout"] != Json("all\n"); }}},
      {"limit-open-files", {{"64"}, {}, "ulimit -n", prints("64")}},
      {"limit-file-size", {{"1048576"}, {}, "ulimit -f", prints("2048")}},
      {"limit-disk",
       {{"4194304"},
        {"--sandbox", "best-effort", "--workspace", disk.path()},
        // More than others, who use the same disk, are likely to give back meanwhile.
        "for i in 1 2 3 4 5 6 7 8 9 10; do head -c 20000000 /dev/zero >> big; sleep 0.3; done",
        [](const ProcessResult&, const Json& r) { return has(r.dump(), "limits_reached"); }}},
      {"secret-env",
       {{"CODEEXEC_TEST_SECRET", "CODEEXEC_TEST_OTHER"},
        {},
        "echo $CODEEXEC_TEST_SECRET",
        prints("[redacted]")}},
      {"execution-mode",
       {{"docker"},
        {"--docker-program", engine.program(), "--workspace", workspace},
        "true",
        called("\nexec ")}},
      {"docker-program",
       {{engine.program()},
        {"--execution-mode", "docker", "--docker-host", "unix:///nonexistent", "--workspace",
         workspace},
        "true",
        called("run -i")}},
      {"docker-context", {{"far"}, in_docker, "true", called("--context far run -i")}},
      {"docker-host", {{"ssh://far"}, in_docker, "true", called("--host ssh://far run -i")}},
      {"docker-call-timeout", {{"5"}, in_docker, "true", {}}},
      {"docker-run-timeout", {{"5"}, in_docker, "true", {}}},
      {"docker-pull-timeout", {{"5"}, in_docker, "true", {}}},
      {"docker-start-timeout", {{"5"}, in_docker, "true", {}}},
      {"docker-warm", {{"0"}, in_docker, "true", {}}},
      {"docker-image", {{"some/image:1"}, in_docker, "true", called(" some/image:1 ")}},
      {"docker-image-policy", {{"always"}, in_docker, "true", called("pull codeexec")}},
      {"docker-network-mode", {{"bridge"}, in_docker, "true", called("--network bridge")}},
      {"docker-memory-limit", {{"512m"}, in_docker, "true", called("--memory 536870912")}},
      {"docker-cpu-limit", {{"1.5"}, in_docker, "true", called("--cpus 1.5")}},
      {"docker-pids-limit", {{"77"}, in_docker, "true", called("--pids-limit 77")}},
      {"docker-shm-size", {{"32m"}, in_docker, "true", called("--shm-size 33554432")}},
      {"docker-tmp-size", {{"0.25g"}, in_docker, "true", called("size=268435456")}},
      {"docker-read-only-root",
       {{"false"},
        in_docker,
        "true",
        [&](const ProcessResult&, const Json&) {
          const std::string calls = engine.take_calls();
          return has(calls, "run -i") && !has(calls, "--read-only");
        }}},
      {"docker-user", {{"1234:1235"}, in_docker, "true", called("-u 1234:1235")}},
      {"docker-mount",
       {{skills.path() + ":/seen:ro", place.path() + ":rw"},
        in_docker,
        "true",
        [&](const ProcessResult&, const Json&) {
          const std::string calls = engine.take_calls();
          return has(calls, "src=" + skills.path() + ",dst=/seen,readonly") &&
                 has(calls, "src=" + place.path() + ",dst=" + place.path() + " ");
        }}},
      {"docker-credentials",
       {{R"({"env_vars":["CODEEXEC_TEST_SECRET"]})"},
        in_docker,
        "echo ${CODEEXEC_TEST_SECRET-none}",
        prints("[redacted]")}},
      {"docker-packages",
       {{R"({"preinstall":{"python":["tabulate>=0.9"]}})"},
        engine.options({"--workspace", workspace, "--docker-network-mode", "bridge"}),
        "true",
        called("tabulate>=0.9")}},
      {"docker-packages-required",
       {{},
        with_packages,
        "true",
        [](const ProcessResult&, const Json& r) {
          return r["outcome"] == Json("not_started") && has(r["stderr"].as_string(), "packages");
        }}},
      {"docker-persistent", {{}, in_docker, "true", called("run -d")}},
      {"docker-log-file",
       {{place / "docker.log"},
        in_docker,
        "true",
        [&](const ProcessResult&, const Json&) {
          return support::exists(place / "docker.log") &&
                 ::unlink((place / "docker.log").c_str()) == 0;
        }}},
      {"tools-path", {{skills.path()}, in_docker, "true", called(",dst=/tools,readonly")}},
      {"skills-path", {{skills.path()}, in_docker, "true", called(",dst=/skills,readonly")}},
      {"profile",
       {{"user-container"},
        for_user({"--user-id", "somebody"}),
        "true",
        called("dst=/tools,readonly")}},
      {"workspace-size",
       {{"7m"},
        for_user({"--profile", "user-container", "--user-id", "somebody"}),
        "true",
        called("7340032")}},
      {"artifacts-size",
       {{"7m"},
        for_user({"--profile", "user-container", "--user-id", "somebody"}),
        "true",
        called("7340032")}},
      {"user-id",
       {{"somebody"}, for_user({"--profile", "user-container"}), "true", called("somebody")}},
      {"max-artifact-size",
       {{"1m"}, for_user({"--profile", "user-container", "--user-id", "somebody"}), "true", {}}},
      {"agent-id",
       {{"agent 7"},
        {"--audit-file", audit},
        ": > " + audit,
        [&](const ProcessResult&, const Json&) {
          return has(support::read_file(audit), R"("agent_id":"agent 7")");
        }}},
      {"instance-id", {{"run 3"}, {}, "true", {}}},
      {"enable-sudo",
       {{},
        {},
        "sudo ls",
        [](const ProcessResult& r, const Json& object) {
          return has(r.err, "enable_sudo has no effect") && object["rule"] == Json("sudo");
        }}},
      {"local-skills-directory",
       {{skills.path()},
        {"--workspace", place.path()},
        "test -L .agent/skills && cat .agent/skills/s.md && echo; rm -rf .agent",
        prints("a skill")}},
      {"command-prefix", {{"env 'VIA=a b'"}, {}, "cd / && echo $VIA", prints("a b")}},
      {"venv-path", {{place / "venv"}, {}, "echo $VIRTUAL_ENV", prints(place / "venv")}},
      {"no-auto-venv",
       {{}, {"--workspace", place / "project"}, "echo ${VIRTUAL_ENV-none}", prints("none")}},
      {"keep-env",
       {{"CODEEXEC_TEST_A", "CODEEXEC_TEST_B*"},
        {},
        "echo $CODEEXEC_TEST_A $CODEEXEC_TEST_BB",
        prints("1 2")}},
      {"set-env", {{"A=x=y", "B="}, {}, "echo $A ${B-unset}.", prints("x=y .")}},
      {"shell",
       {{wrapper},
        {},
        "echo x",
        [](const ProcessResult&, const Json& r) { return r["stdout"] == Json("wrapped\nx\n"); }}},
      {"audit-file",
       {{audit},
        {},
        ": > " + audit,
        [&](const ProcessResult&, const Json&) { return has(support::read_file(audit), "{"); }}},
      {"spill-dir",
       {{place / "spill"},
        {"--max-output-size", "1024"},
        "seq 1 2000",
        [](const ProcessResult&, const Json& r) { return r["stdout_file"].is_string(); }}},
      {"max-concurrent", {{"3"}, {}, "true", {}}},
      {"run-in-background-after", {{"5"}, {}, "true", {}}},
      {"max-background-shells", {{"3"}, {}, "true", {}}},
      {"max-background-time", {{"60"}, {}, "true", {}}},
      {"calls-per-minute", {{"30"}, {}, "true", {}}},
      {"running-time", {{"60"}, {}, "true", {}}},
      {"disable-tool", {{"write_file", "execute_code"}, {}, "true", {}}},
  };

  // Where the system cannot do it, there is no effect to be seen.
  Strings asking = {"--sandbox",       "best-effort", "--network", "none",
                    "--pid-namespace", "--workspace", workspace};
  for (const char* limit : {"cpu", "memory", "address-space", "processes", "open-files", "disk"})
    asking.insert(asking.end(), {std::string("--limit-") + limit, "1000000"});
  asking.insert(asking.end(), {"--limit-file-size", "1000000"});
  const Json report = report_of(asking);
  const std::map<std::string, std::string> needs = {{"network", "network"},
                                                    {"unix-sockets", "network"},
                                                    {"shared-memory", "filesystem"},
                                                    {"terminals", "filesystem"},
                                                    {"no-supervisor", "containment"},
                                                    {"pid-namespace", "pid_namespace"},
                                                    {"limit-cpu", "cpu_time"},
                                                    {"limit-memory", "memory"},
                                                    {"limit-address-space", "address_space"},
                                                    {"limit-processes", "processes"},
                                                    {"limit-open-files", "open_files"},
                                                    {"limit-file-size", "file_size"},
                                                    {"limit-disk", "disk"}};
  const Strings environment = {"CODEEXEC_TEST_A=1", "CODEEXEC_TEST_BB=2",
                               "CODEEXEC_TEST_SECRET=hunter2", "CODEEXEC_TEST_OTHER=hunter3"};
  std::size_t count = 0;
  for (const auto& option : options_of_help()) {
    const std::string& name = option.first;
    const std::string& value = option.second;
    if (is_special(name)) continue;
    CAPTURE(name);
    ++count;
    const auto found = effects.find(name);
    REQUIRE_MESSAGE(found != effects.end(), "an option without a test");
    const Effect& effect = found->second;
    const auto need = needs.find(name);
    if (need != needs.end() && !enforces(report, need->second)) {
      MESSAGE("SKIPPED: --" << name << " has no effect here: no " << need->second);
      continue;
    }
    REQUIRE(effect.words.empty() == value.empty());

    const auto run_with = [&](Strings arguments) {
      arguments.insert(arguments.end(), effect.others.begin(), effect.others.end());
      arguments.insert(arguments.end(), {"--run", effect.command});
      support::write_file(audit, "");
      ProcessResult r = run_program(arguments, "/", environment);
      const Json object = r.out.empty() ? Json() : parsed(r.out);
      CAPTURE(r.out);
      CAPTURE(r.err);
      if (!effect.seen) {
        // A user's commands begin in a /workspace, which the played engine does not have.
        CHECK(r.exit_code == (name == "max-artifact-size" ? 125 : 0));
        return true;
      }
      return effect.seen(r, object);
    };
    Strings arguments = {"--" + name};
    arguments.insert(arguments.end(), effect.words.begin(), effect.words.end());
    const bool without = effect.seen && run_with({});
    CHECK(!without);
    CHECK(run_with(arguments));
    if (effect.words.size() == 1) CHECK(run_with({"--" + name + "=" + effect.words[0]}));

    const Json setting = config_value(value, effect.words);
    for (const std::string& key : {key_of(name), "command_line_" + key_of(name)}) {
      CAPTURE(key);
      Json config = Json::object();
      config.set(key, setting);
      const std::string file = place.file("config.json", config.dump());
      CHECK(run_with({"--config", file}));
    }
  }
  CHECK(count == effects.size());
}

TEST_CASE("the reference's other names of keys are accepted, with and without command_line_") {
  const TempDir place;
  place.directory("venv/bin");
  const auto run_with = [&](const std::string& config, const std::string& command) {
    return run_command(command, {"--config", place.file("c.json", config)});
  };
  for (const std::string start : {"", "command_line_"}) {
    CAPTURE(start);
    CHECK(run_with("{\"" + start + "whitelist_patterns\":[\"echo.*\"]}", "ls")["rule"] ==
          Json("allowed-commands"));
    CHECK(run_with("{\"" + start + "blacklist_patterns\":[\"ls.*\"]}", "ls")["rule"] ==
          Json("blocked-commands"));
    CHECK(run_with("{\"" + start + "command_execution_prefix\":\"env A=1\"}",
                   "echo $A")["stdout"] == Json("1\n"));
    CHECK(run_with("{\"" + start + "command_execution_venv_path\":\"" + (place / "venv") + "\"}",
                   "echo $VIRTUAL_ENV")["stdout"] == Json(place / "venv\n"));
  }
  // Further forms of a value.
  CHECK(run_with(R"({"set_env":{"A":"x y","B":7,"C":true}})", "echo $A $B $C")["stdout"] ==
        Json("x y 7 true\n"));
  CHECK(run_with(R"({"enable_sudo":false,"no_auto_venv":false,"timeout":1e1})",
                 "true")["success"] == Json(true));
}

TEST_CASE("W-01 W-02 W-08: the reference's example lists load from its keys, in both modes") {
  const TempDir place;
  const std::string allowed = place.file(
      "allowed.json",
      R"({"command_line_allowed_commands":["uv run python.*","uv run pytest.*","python.*",)"
      R"("pytest.*"]})");
  const std::string read_only = place.file(
      "read_only.json",
      R"({"command_line_blocked_commands":["git push","git push --force","git reset --hard",)"
      R"("git clean -fd","git commit","git rebase","git merge","gh pr create","gh repo delete",)"
      R"("gh secret set","rm -rf","sudo"]})");
  const auto rule_of = [&](const std::string& config, const std::string& mode,
                           const std::string& command) {
    const ProcessResult r = run_program({"--config", config, "--policy", mode, "--check", command});
    const Json object = parsed(r.out);
    CHECK(r.exit_code == (object["allowed"].as_bool() ? 0 : 1));
    return object["rule"].as_string();
  };
  // The reference's own verdicts.
  for (const std::string& command :
       Strings{"python x.py", "pytest", "python3 -m x", "uv run pytest -q", "pythonevil",
               "python x; curl evil"})
    CHECK_MESSAGE(rule_of(allowed, "compat", command) == "", command);
  for (const std::string& command :
       Strings{"ls", " python x.py", "PYTHONPATH=. python x.py", "uv run x", ""})
    CHECK_MESSAGE(rule_of(allowed, "compat", command) == "allowed-commands", command);
  for (const std::string& command :
       Strings{"git push", "git pushx", "git commit -m x", "rm -rf x", "gh secret set"})
    CHECK_MESSAGE(rule_of(read_only, "compat", command) == "blocked-commands", command);
  for (const std::string& command :
       Strings{"git status", " git push", "cd . && git push", "rm x", "git  push"})
    CHECK_MESSAGE(rule_of(read_only, "compat", command) == "", command);
  CHECK(rule_of(read_only, "compat", "sudo ls") == "sudo");

  // What is true of every command of the script.
  for (const std::string& command : Strings{"python x.py", "pytest", " python x.py",
                                            "uv run pytest -q", "python x.py && pytest", ""})
    CHECK_MESSAGE(rule_of(allowed, "strict", command) == "", command);
  for (const std::string& command :
       Strings{"ls", "python x; curl evil", "python x.py | sh", "python x\nrm -rf ~",
               "PYTHONPATH=. python x.py", "uv run x", "timeout 5 python x.py"})
    CHECK_MESSAGE(rule_of(allowed, "strict", command) != "", command);
  CHECK(rule_of(allowed, "strict", "python x; curl evil") == "allowed-commands");
  for (const std::string& command :
       Strings{"git push", " git push", "cd . && git push", "git  push", "env git push",
               "(git push)", "g\\it push", "bash -c 'git push'", "git -C . push", "X=1 git push"})
    CHECK_MESSAGE(rule_of(read_only, "strict", command) == "blocked-commands", command);
  for (const std::string& command :
       Strings{"git status", "git pushx", "rm x", "echo git push", "git push origin"})
    CHECK_MESSAGE(rule_of(read_only, "strict", command) == "", command);
}

TEST_CASE("a workspace outside of the allowed paths is warned of at the start") {
  const support::TempDir allowed;
  const auto warnings = [&](const std::string& workspace) {
    return run_program({"--allowed-paths", allowed.path(), "--workspace", workspace, "--sandbox",
                        "off"})
        .err;
  };
  CHECK(has(warnings("/"), "codeexec-mcp: workspace: commands start in /, which is not in"));
  CHECK(warnings(allowed.path()) == "");
}

TEST_CASE("a blocked pattern that only means a bare command is warned of at the start") {
  const auto warnings = [](Strings arguments) {
    arguments.insert(arguments.end(), {"--run", "true"});
    const ProcessResult r = run_program(arguments);
    CHECK(r.exit_code == 0);
    CHECK(parsed(r.out)["success"] == Json(true));
    return r.err;
  };
  const std::string begin = "codeexec-mcp: blocked_commands: ";
  CHECK(warnings({"--blocked-commands", "git push", "sudo"}) ==
        begin +
            "'git push' matches only this exact command; write 'git push( .*)?' to refuse it "
            "with arguments\n" +
            begin +
            "'sudo' matches only this exact command; write 'sudo( .*)?' to refuse it with "
            "arguments\n");
  CHECK(warnings({"--blocked-commands", "git push", "--policy", "compat"}) == "");
  CHECK(warnings({"--blocked-commands", "git push.*", "git push( .*)?", "rm .*", "[g]it", "a\\.b",
                  "x$", "a|b"}) == "");
  CHECK(warnings({"--allowed-commands", "true"}) == "");
  CHECK(lines_of(warnings({"--blocked-commands", "a\nb\x1b"})).size() == 1);
  // A server says it, too, and not where messages go.
  Server server(Strings{"--blocked-commands", "git push"});
  CHECK(server.execute("git push")["rule"] == Json("blocked-commands"));
  CHECK(has(server.logged(), "'git push' matches only this exact command"));
  CHECK(server.finish().empty());
}

TEST_CASE("the command line wins over the configuration file") {
  const TempDir place;
  const std::string config = place.file(
      "c.json", R"({"workspace":"/nonexistent","allowed_commands":["echo.*"],"timeout":"bad"})");
  const Json r = run_command("pwd", {"--config", config, "--workspace", place.path(), "--timeout",
                                     "5", "--allowed-commands", "pwd"});
  CHECK(r["stdout"] == Json(place.path() + "\n"));
  CHECK(run_command("echo x", {"--workspace", place.path(), "--timeout", "5", "--allowed-commands",
                               "pwd", "--config", config})["rule"] == Json("allowed-commands"));
  check_refused(run_program({"--config", config, "--run", "true"}), "timeout");
}

TEST_CASE("W-08: a wrong value is one line on stderr that names the option, and status 2") {
  const TempDir place;
  const std::string file = place.file("file");
  const std::string missing = place / "missing";
  // For what --help calls a value: what it cannot be.
  const std::map<std::string, Strings> wrong = {
      {"ADDRESS", {""}},
      {"BOOL", {"maybe", "", "1"}},
      {"CPUS", {"abc", "-1", "", "2x", "1e400"}},
      {"ID", {""}},
      {"IMAGE", {"", "-v", "a b"}},
      {"JSON", {"", "{", "[]", "true", R"({"unknown":1})"}},
      {"NAME", {""}},
      {"POLICY", {"", "sometimes", "Never"}},
      {"PROGRAM", {""}},
      {"SIZE", {"abc", "-5", "", "1.5", "m", "b", "1x", "1kk", "1 k", "1e400", "1e16"}},
      {"SRC[:DST][:ro|:rw]...", {"", ":/x", "/usr:x", "/usr:/a:/b", missing, "/usr:/x,y", "/"}},
      {"USER", {"", "-u", "a b"}},
      {"DIR", {missing, file}},
      {"DIR...", {missing, file, ""}},
      {"FILE", {missing + "/x", place.path()}},
      {"PATH", {missing, file, "sh", "", place.path()}},
      {"SECONDS", {"abc", "0", "-5", "", "1s", "0x10", "nan", "inf", "1e400", "31536001", "5,0"}},
      {"BYTES", {"abc", "0", "-5", "", "1.5", "1k", "1e400", "1e16", "100"}},
      {"N", {"abc", "0", "-5", "", "1.5", "1e400", "1e16"}},
      {"PATTERN...", {"(", "a**", "[z-a]", "(?=x)", "(a)\\1"}},
      {"NAME=VALUE...", {"noequals", "=x", ""}},
      {"MODE", {"dock", "srt", "", "Local", "Strict"}},
      {"WORDS", {" ", "a\nb"}}};
  const Strings no_amounts = {"abc", "0", "-5", "", "1.5", "1k", "1e400", "1e16"};
  // Names are wrong in different ways; an agent may be called anything.
  const std::map<std::string, Strings> wrong_by_name = {
      {"disable-rule", {"sodu", ""}},
      {"disable-tool", {"write_files", ""}},
      {"keep-env", {"A=B", "", "A*B"}},
      {"secret-env", {"A=B", "", "CODEEXEC_NOT_THERE"}},
      {"enable-sudo", {"maybe"}},
      {"docker-packages-required", {"maybe"}},
      {"docker-persistent", {"maybe"}},
      {"docker-pids-limit", {"abc", "-5", "", "1.5", "1k", "1e400", "1e16"}},
      {"docker-warm", {"abc", "-5", "", "1.5", "1k", "1e400", "1e16"}},
      {"docker-log-file", {""}},
      {"profile", {"", "user", "Commands"}},
      {"delete-guard", {"maybe"}},
      {"unix-sockets", {"maybe"}},
      {"shared-memory", {"maybe"}},
      {"terminals", {"maybe"}},
      {"pid-namespace", {"maybe"}},
      {"no-supervisor", {"maybe"}},
      {"no-watch-files", {"maybe"}},
      {"limit-cpu", no_amounts},
      {"limit-memory", no_amounts},
      {"limit-address-space", no_amounts},
      {"limit-file-size", no_amounts},
      {"limit-disk", no_amounts},
      {"no-auto-venv", {"maybe", "1"}}};
  for (const auto& option : options_of_help()) {
    const std::string& name = option.first;
    const std::string& value = option.second;
    if (is_special(name)) continue;
    CAPTURE(name);
    const auto by_name = wrong_by_name.find(name);
    const auto by_kind = wrong.find(value);
    REQUIRE((by_name != wrong_by_name.end() || by_kind != wrong.end()));
    const Strings& words = by_name != wrong_by_name.end() ? by_name->second : by_kind->second;
    const std::string key = key_of(name);
    // Where the option has a meaning.
    Strings here;
    if (begins(name, "docker-") || ends(name, "s-path"))
      here = {"--execution-mode", "docker", "--workspace", place.path()};
    if (name == "user-id" || name == "max-artifact-size" || ends(name, "s-size") ||
        name == "workspace-size")
      here = {"--profile", "user-container"};
    const auto check_named = [&](Strings arguments) {
      arguments.insert(arguments.end(), here.begin(), here.end());
      const ProcessResult r = run_program(arguments);
      check_refused(r, "codeexec-mcp: ");
      const bool named = has(r.err, "--" + name) || has(r.err, key);
      CHECK_MESSAGE(named, r.err);
      CHECK_MESSAGE(!has(r.err, "has no effect with"), r.err);
    };
    const auto check_key = [&](const std::string& json) {
      CAPTURE(json);
      const std::string config = place.file("c.json", "{\"" + key + "\":" + json + "}");
      check_named({"--config", config, "--run", "true"});
    };
    for (const std::string& word : words) {
      CAPTURE(word);
      check_named({"--" + name, word, "--run", "true"});
      if (value.empty()) continue;
      if (is_number(value) && Json::parse(word))
        check_key(word);
      else
        check_key((is_list(value) ? Json::array({word}) : Json(word)).dump());
    }
    // The number of words.
    if (!value.empty()) check_named({"--" + name, "--run", "true"});
    if (!is_list(value)) check_named({"--" + name, "true", "x", "--run", "true"});
    // Types that the key cannot have.
    for (const char* json : {"null", "\"\\ud800\"", "[[]]", "[1]", "{\"a\":[]}", "[]"})
      check_key(json);
    check_key(is_number(value) ? "\"1\"" : value.empty() || value == "SIZE" ? "\"true\"" : "1");
    if (!is_number(value) && !value.empty() && value != "BOOL") check_key("true");
  }
}

TEST_CASE("NUL bytes in a path of the configuration file do not name another file") {
  const TempDir place;
  for (const char* key :
       {"workspace", "shell", "audit_file", "spill_dir", "venv_path", "local_skills_directory"}) {
    CAPTURE(key);
    const std::string path = std::string(key) == "shell" ? "/bin/sh" : place.path();
    const std::string config =
        place.file("c.json", "{\"" + std::string(key) + "\":\"" + path + "\\u0000x\"}");
    check_refused(run_program({"--config", config, "--run", "true"}), key);
  }
}

TEST_CASE("unknown options, words out of place and wrong uses of the special options") {
  check_refused(run_program({"--allowed-command", "x"}), "unknown option '--allowed-command'");
  check_refused(run_program({"--"}), "unknown option '--'");
  check_refused(run_program({"serve"}), "unexpected argument 'serve'");
  check_refused(run_program({"-x"}), "unexpected argument '-x'");
  check_refused(run_program({""}), "unexpected argument");
  check_refused(run_program({"--config"}), "--config");
  check_refused(run_program({"--run"}), "--run");
  check_refused(run_program({"--run", "true", "false"}), "--run");
  check_refused(run_program({"--check"}), "--check");
  check_refused(run_program({"--check", "true", "false"}), "--check");
  check_refused(run_program({"--check", "true", "--check", "-"}), "--check is given twice");
  check_refused(run_program({"--check", "true", "--check", ""}), "--check is given twice");
  check_refused(run_program({"--check", "true", "--run", "true"}), "exclude each other");
  check_refused(run_program({"--list-rules", "all"}), "--list-rules");
  check_refused(run_program({"--sandbox-report", "all"}), "--sandbox-report");
  check_refused(run_program({"--help", "me"}), "--help");
  check_refused(run_program({"--version", "1", "2"}), "--version");
  check_refused(run_program({"--bad\nline\x1b[31m\xff"}), "unknown option");
  check_refused(run_program({"--timeout", "60", "--max-timeout", "30"}), "max_timeout");
  // The second of two would silently win; only lists add up.
  check_refused(run_program({"--timeout", "5", "--timeout", "6"}), "--timeout is given twice");
  check_refused(run_program({"--run", "true", "--run", "true"}), "--run is given twice");
  check_refused(run_program({"--config", "a", "--config", "b"}), "--config is given twice");
  const ProcessResult both = run_program(
      {"--blocked-commands", "cat.*", "--blocked-commands", "echo.*", "--run", "cat /dev/null"});
  CHECK(parsed(both.out)["rule"] == Json("blocked-commands"));
}

TEST_CASE("nothing runs without a timeout shorter than the longest allowed") {
  const Json r = run_command("sleep 3600", {"--max-timeout", "0.2"});
  CHECK(r["stderr"] == Json("Command timed out after 0.2 seconds"));
}

TEST_CASE("a configuration file that cannot be used is an error that names it") {
  const TempDir place;
  const auto check_config = [&](const std::string& content, const std::string& named) {
    CAPTURE(content.substr(0, 100));
    const std::string file = place.file("c.json", content);
    const ProcessResult r = run_program({"--config", file, "--run", "true"});
    check_refused(r, named);
    CHECK(has(r.err, file));
  };
  check_config("", "--config");
  check_config("{", "--config");
  check_config("{} x", "--config");
  check_config("[]", "not an object");
  check_config("null", "not an object");
  check_config("{'timeout':5}", "--config");
  check_config("{\"agent_id\":\"\xff\"}", "--config");
  check_config("{\"timeout\":5,}", "--config");
  check_config(std::string(100000, '['), "--config");
  check_config("{\"a\":" + std::string(300, '[') + std::string(300, ']') + "}", "--config");
  check_config("{\"agent_id\":\"" + std::string(1 << 20, 'x') + "\"}", "longer than");
  check_config("{\"timeuot\":5}", "timeuot: unknown key");
  check_config("{\"command_line_docker_images\":\"x\"}", "command_line_docker_images: unknown key");
  check_config("{\"Timeout\":5}", "unknown key");
  check_config(R"({"blocked_commands":["git.*"],"blocked_commands":["zzz"]})", "twice");
  check_config(R"({"blocked_commands":["git.*"],"command_line_blacklist_patterns":["zzz"]})",
               "another key sets blocked_commands already");
  check_config(R"({"set_env":{"A=B":"x"}})", "set_env");
  check_config(R"({"blocked_commands":["git\u0000.*"]})", "blocked_commands");
  check_config("{\"time-out\":5}", "unknown key");
  check_config("{\"config\":\"x\"}", "config: unknown key");
  check_config("{\"run\":\"x\"}", "run: unknown key");
  check_config("{\"check\":\"x\"}", "check: unknown key");
  check_config("{\"list_rules\":true}", "list_rules: unknown key");
  check_config("{\"sandbox_report\":true}", "sandbox_report: unknown key");
  check_config("{\"\":1}", "unknown key");
  check_config("{\"a\\nb\\u001b\":1}", "unknown key");
  check_config("{\"command_line_\":1}", "unknown key");
  check_config("{\"command_line_command_line_timeout\":1}", "unknown key");
  check_refused(run_program({"--config", place / "missing.json"}), place / "missing.json");
  check_refused(run_program({"--config", place.path()}), place.path());
  check_refused(run_program({"--config", ""}), "--config");
  REQUIRE(::mkfifo((place / "fifo").c_str(), 0600) == 0);
  check_refused(run_program({"--config", place / "fifo"}), place / "fifo");
  // Can be opened, even by root, but not read.
  check_refused(run_program({"--config", "/proc/self/mem"}), "/proc/self/mem");
}

// --run -------------------------------------------------------------------------------------------

TEST_CASE("--run: status 0, 1 or 125, and one line of JSON") {
  const auto status_of = [](const std::string& command, Strings arguments = {}) {
    arguments.insert(arguments.end(), {"--run", command});
    const ProcessResult r = run_program(arguments);
    CHECK(r.err == "");
    CHECK(lines_of(r.out).size() == 1);
    CHECK(begins(names_of(parsed(r.out)), all_keys));
    return r.exit_code;
  };
  CHECK(status_of("true") == 0);
  CHECK(status_of("") == 0);
  CHECK(status_of("exit 7") == 1);
  CHECK(status_of("kill -9 $$") == 1);
  CHECK(status_of("exec sleep 60", {"--timeout", "0.1"}) == 1);
  CHECK(status_of("sudo ls") == 125);
  CHECK(status_of("ls", {"--allowed-commands", "echo"}) == 125);
  CHECK(status_of("ls", {"--set-env", "A=" + std::string(100000, 'x') + "\xff"}) == 0);
  CHECK(status_of("--help") == 1);  // the command, not the option
  const TempDir place;
  const std::string shell = place.file("shell", "#!/nonexistent/interpreter\n", 0755);
  CHECK(status_of("true", {"--shell", shell}) == 125);
}

TEST_CASE("--run=COMMAND is the same") {
  const ProcessResult r = run_program({"--run=echo a=b"});
  CHECK(r.exit_code == 0);
  CHECK(parsed(r.out)["stdout"] == Json("a=b\n"));
}

// --check and --list-rules ------------------------------------------------------------------------

namespace {

// What --check says of the command, with its exit status checked.
Json judged(const std::string& command, Strings arguments = {}, const std::string& place = "/") {
  arguments.insert(arguments.end(), {"--check", command});
  const ProcessResult r = run_program(arguments, place);
  CHECK(r.err == "");
  REQUIRE(ends(r.out, "}\n"));
  CHECK(lines_of(r.out).size() == 1);
  Json object = parsed(r.out);
  CHECK(r.exit_code == (object["allowed"].as_bool() ? 0 : 1));
  return object;
}

}  // namespace

TEST_CASE("--check judges without running, in one line of JSON") {
  const TempDir place;
  const Json allowed =
      judged("touch made; X=1 A=$(date) true \"$(mktemp)\" 'a b' ''", {}, place.path());
  CHECK(names_of(allowed) == "allowed rule message begin end commands");
  CHECK(allowed["allowed"] == Json(true));
  for (const char* key : {"rule", "message", "begin", "end"}) CHECK(allowed[key].is_null());
  CHECK(!support::exists(place / "made"));
  std::vector<Json> found;
  for (const Json& command : allowed["commands"].items()) found.push_back(command);
  REQUIRE(found.size() == 4);
  CHECK(found[0] == parsed(R"({"words":["touch","made"],"begin":0,"end":10})"));
  CHECK(names_of(found[0]) == "words begin end");
  CHECK(found[1]["words"] == parsed(R"(["mktemp"])"));  // words are expanded first
  CHECK(found[2]["words"] == parsed(R"(["date"])"));
  CHECK(found[3]["words"] == parsed(R"(["true",null,"a b",""])"));
  CHECK(found[3]["assignments"] == parsed(R"(["X=1",null])"));
  CHECK(names_of(found[3]) == "words assignments begin end");

  const std::string script = "echo hello && sudo ls";
  const Json refused = judged(script);
  CHECK(names_of(refused) == names_of(allowed));
  CHECK(refused["allowed"] == Json(false));
  CHECK(refused["rule"] == Json("sudo"));
  CHECK(begins(refused["message"].as_string(),
               "Potentially dangerous command detected: Use of 'sudo' is not allowed"));
  CHECK(refused["begin"] == Json(14));
  CHECK(refused["end"].as_integer() > 14);
  CHECK(refused["end"].as_integer() <= 21);
  CHECK(refused["commands"].size() == 2);

  CHECK(judged("")["commands"] == Json::array());
  CHECK(judged("--help")["commands"][0]["words"][0] == Json("--help"));
  CHECK(run_program({"--check=sudo ls"}).exit_code == 1);
  CHECK(judged("echo 'unterminated")["allowed"] == Json(false));
}

TEST_CASE("--check says what --run would do, with everything that is configured") {
  const TempDir place;
  place.directory("ro");
  place.directory("sub");
  place.file("unread");
  const std::string config =
      place.file("c.json", R"({"disable_rule":["dd"],"delete_guard":true,"blocked_commands":)"
                           R"(["git push.*"],"allowed_commands":["[a-fh-z].*","git.*"],)"
                           R"("read_only":[")" +
                               (place / "ro") + R"("],"workspace":")" + place.path() + "\"}");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"true", ""},
      {"dd --version", ""},
      {"sudo -V", "sudo"},
      {"git push --dry-run --no-such-option", "blocked-commands"},
      {"Git status", "allowed-commands"},
      {"touch ro/x", "read-only"},
      {"cd ro; touch x", "read-only"},
      {"rm unread", "delete-guard"},
      {"rm missing", ""},
      {"chmod --version", "chmod"}};
  for (const auto& [script, rule] : cases) {
    const std::string command = script;
    CAPTURE(command);
    const Json object = judged(command, {"--config", config});
    CHECK(object["rule"].as_string() == rule);
    const ProcessResult r = run_program({"--config", config, "--run", command});
    CHECK(parsed(r.out)["rule"].as_string() == rule);
    if (rule != "") CHECK(ends(parsed(r.out)["stderr"].as_string(), object["message"].as_string()));
  }
  CHECK(judged("echo dd", {"--policy", "compat"})["rule"] == Json("dd"));
  CHECK(judged("echo dd", {"--policy", "strict"})["rule"].is_null());
  CHECK(judged("echo dd")["rule"].is_null());
  // The directory it would run in counts.
  CHECK(judged("rm -rf * --no-such-option", {"--workspace", "/"})["rule"] == Json("rm-protected"));
  CHECK(judged("rm -rf * --no-such-option", {"--workspace", place / "sub"})["rule"].is_null());
  CHECK(judged("true", {"--workspace", "/", "--allowed-paths", place.path(), "--sandbox",
                        "off"})["rule"] == Json("work_dir"));
  check_refused(run_program({"--disable-rule", "sodu", "--check", "true"}), "disable_rule");
}

TEST_CASE("--check - answers each line of the input at once") {
  Server::Options options;
  options.initialize = false;
  options.arguments = {"--check", "-", "--blocked-commands", "git push.*"};
  Server server(options);
  const auto rule_of = [&](const Json& command) {
    server.send(command.dump());
    return parsed(server.receive_line())["rule"];
  };
  CHECK(rule_of("echo x").is_null());
  CHECK(rule_of("git push origin") == Json("blocked-commands"));
  CHECK(rule_of("echo a\nsudo ls") == Json("sudo"));
  CHECK(rule_of(std::string("a\0b", 3)) == Json("nul-byte"));
  CHECK(rule_of("").is_null());
  CHECK(rule_of("\xC3\xA4").is_null());
  server.close_input();
  CHECK(server.receive_line() == "");
  CHECK(server.wait() == 1);
}

TEST_CASE("--check - : exit statuses, and lines that are no command") {
  const auto check = [](const std::string& input) {
    return run_program({"--check", "-"}, "/", {}, input);
  };
  CHECK(check("").exit_code == 0);
  CHECK(check("").out == "");
  CHECK(check("\"true\"\n\"ls\"\n").exit_code == 0);
  CHECK(check("\"true\"\r\n \"ls\" ").exit_code == 0);
  CHECK(lines_of(check("\"true\"\r\n \"ls\" ").out).size() == 2);
  CHECK(check("\"sudo ls\"\n\"ls\"\n").exit_code == 1);

  const ProcessResult mixed =
      check("\"true\"\n\nls\n{}\n\"\\ud800\"\n\"sudo ls\"\n\"a\" \"b\"\n[\"ls\"]\n7\n\xff\n\"ls");
  CHECK(mixed.exit_code == 2);
  CHECK(mixed.err == "");
  const Strings lines = lines_of(mixed.out);
  REQUIRE(lines.size() == 11);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    CAPTURE(i);
    const Json answer = parsed(lines[i]);
    if (i == 0 || i == 5) {
      CHECK(answer["allowed"] == Json(i == 0));
      continue;
    }
    CHECK(names_of(answer) == "error");
    CHECK(begins(answer["error"].as_string(),
                 "line " + std::to_string(i + 1) + ": not a JSON string"));
  }
  CHECK(check("ls\n").exit_code == 2);
  CHECK(check("ls\n\"sudo ls\"\n").exit_code == 2);
  // No line costs more memory than a message may have bytes.
  const std::size_t most = std::size_t{16} << 20;
  const ProcessResult big = check("\"" + std::string(most - 2, ' ') + "\"\n\"" +
                                  std::string(most - 1, 'y') + "\"\n\"ls\"");
  CHECK(big.exit_code == 2);
  const Strings answers = lines_of(big.out);
  REQUIRE(answers.size() == 3);
  CHECK(parsed(answers[0])["allowed"] == Json(true));
  CHECK(parsed(answers[1])["error"] == Json("line 2: longer than 16777216 bytes"));
  CHECK(parsed(answers[2])["allowed"] == Json(true));
}

TEST_CASE("--list-rules prints what each rule refuses") {
  const ProcessResult r = run_program({"--list-rules", "--workspace", "/nonexistent"});
  CHECK(r.exit_code == 0);
  CHECK(r.err == "");
  const Strings lines = lines_of(r.out);
  std::size_t at = 0;
  for (const codeexec::RuleInfo& rule : codeexec::Policy::rules()) {
    const std::string start = std::string(rule.compat ? "* " : "  ") + rule.name + " ";
    while (at < lines.size() && !begins(lines[at], start)) ++at;
    REQUIRE_MESSAGE(at < lines.size(), rule.name);
    // The description, however it is broken into lines.
    std::string text = lines[at].substr(start.size());
    for (++at; at < lines.size() && begins(lines[at], "      "); ++at) text += " " + lines[at];
    std::string words;
    for (const char c : text)
      if (c != ' ' || (!words.empty() && words.back() != ' ')) words += c;
    CHECK(words == rule.description);
    CHECK(!words.empty());
  }
  for (const std::string& line : lines) CHECK(line.size() <= 100);
}

TEST_CASE("to_json(Judgement): what is not UTF-8 or not known does no harm") {
  codeexec::Judgement judgement;
  judgement.verdict.allowed = false;
  judgement.verdict.rule = "x";
  judgement.verdict.begin = 3;
  codeexec::shell::Command command;
  command.words.resize(3);
  command.words[0].text = "a\xff";
  command.words[1].text = std::string("b\0", 2);
  command.assignments.resize(2);
  command.assignments[0].name = "N";
  command.assignments[0].value.text = "v w";
  command.assignments[1].name = "M";
  command.assignments[1].value.text = std::string(1, '\0');
  command.begin = 1;
  command.end = 9;
  judgement.commands.push_back(command);
  command.compound = true;  // redirections of a group: no command of its own
  judgement.commands.push_back(command);
  CHECK(to_json(judgement).dump() ==
        R"({"allowed":false,"rule":"x","message":"","begin":3,"end":0,"commands":[{"words":)"
        "[\"a\xEF\xBF\xBD\",null,\"\"],"
        R"("assignments":["N=v w",null],"begin":1,"end":9}]})");
}

TEST_CASE("the keys of a result: the reference's seven, then ours, then what applies") {
  CHECK(names_of(run_command("echo x")) == all_keys);
  CHECK(names_of(run_command("kill -9 $$")) == all_keys + " signal");
  CHECK(names_of(run_command("sudo ls")) == all_keys + " rule");
  CHECK(names_of(run_command("printf '\\377'; printf '\\377' >&2")) ==
        all_keys + " stdout_invalid_bytes stderr_invalid_bytes");
  const TempDir place;
  CHECK(names_of(run_command("seq 1 5000; seq 1 5000 >&2",
                             {"--max-output-size", "1024", "--spill-dir", place.path()})) ==
        all_keys + " stdout_file stderr_file");
  const Json r = run_command("printf ab; printf c >&2; exit 3", {}, place.path());
  CHECK(r["success"] == Json(false));
  CHECK(r["exit_code"] == Json(3));
  CHECK(r["stdout"] == Json("ab"));
  CHECK(r["stderr"] == Json("c"));
  CHECK(r["execution_time"].as_number() > 0);
  CHECK(r["execution_time"].as_number() < 60);
  CHECK(r["command"] == Json("printf ab; printf c >&2; exit 3"));
  CHECK(r["work_dir"] == Json(place.path()));
  CHECK(r["outcome"] == Json("exited"));
  CHECK(r["timed_out"] == Json(false));
  CHECK(r["stdout_bytes"] == Json(2));
  CHECK(r["stderr_bytes"] == Json(1));
  CHECK(r["stdout_truncated"] == Json(false));
  CHECK(r["stderr_truncated"] == Json(false));
}

TEST_CASE("exit codes are those of Python's subprocess") {
  CHECK(run_command("kill -9 $$")["exit_code"] == Json(-9));
  CHECK(run_command("sh -c 'kill -9 $$'; exit $?")["exit_code"] == Json(137));
  CHECK(run_command("nonexistent-program")["exit_code"] == Json(127));
  CHECK(run_command("/etc/passwd")["exit_code"] == Json(126));
  CHECK(run_command("exit 255")["exit_code"] == Json(255));
  CHECK(run_command("kill -TERM $$")["exit_code"] == Json(-15));
}

TEST_CASE("SIGTERM during --run kills the command, and the result is still printed") {
  const TempDir place;
  Fifo fifo(place / "fifo");
  Server::Options options;
  options.initialize = false;
  options.arguments = {"--run", endless(fifo)};
  Server server(options);
  const pid_t pid = fifo.read_pid();
  server.signal(SIGTERM);
  server.signal(SIGTERM);  // an impatient client
  const Json r = parsed(server.receive_line());
  CHECK(r["outcome"] == Json("cancelled"));
  CHECK(r["stderr"] == Json("Command was cancelled"));
  CHECK(r["exit_code"] == Json(-1));
  CHECK(server.wait() == 1);
  CHECK(dies(pid));
}

// the sandbox -------------------------------------------------------------------------------------

TEST_CASE("the sandbox is best_effort when allowed paths are given, and off otherwise") {
  if (!has_sandbox()) return;
  const TempDir place;
  const auto mode_of = [&](Strings arguments) {
    arguments.insert(arguments.end(), {"--workspace", place.path()});
    return report_of(arguments)["mode"].as_string();
  };
  const Strings paths = {"--allowed-paths", place.path()};
  const auto with = [](Strings arguments, const Strings& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  CHECK(mode_of({}) == "off");
  CHECK(mode_of(paths) == "best_effort");
  CHECK(mode_of({"--read-only", "/usr"}) == "off");
  CHECK(mode_of(with(paths, {"--sandbox", "off"})) == "off");
  for (const char* spelling : {"best-effort", "best_effort"}) {
    CHECK(mode_of({"--sandbox", spelling}) == "best_effort");
    CHECK(mode_of(with(paths, {"--sandbox", spelling})) == "best_effort");
  }
  CHECK(mode_of({"--config", place.file("c.json", "{\"allowed_paths\":[\"" + place.path() +
                                                      "\"],\"sandbox\":\"off\"}")}) == "off");
  const ProcessResult strict =
      run_program({"--sandbox", "strict", "--sandbox-report"}, place.path());
  if (strict.exit_code == 0)
    CHECK(parsed(strict.out)["mode"] == Json("strict"));
  else
    check_refused(strict, "sandbox");
  // What only a sandbox can have is not left out in silence.
  check_refused(run_program({"--network", "none", "--run", "true"}), "network: 'none' needs a");
  check_refused(run_program({"--pid-namespace", "--run", "true"}), "pid_namespace: it needs a");
  check_refused(run_program({"--sandbox", "best-effort", "--run", "true"}),
                "workspace: a sandbox cannot be given '/'");
  check_refused(run_program({"--allowed-paths", "/", "--run", "true"}),
                "allowed_paths: a sandbox cannot be given '/'");
  check_refused(run_program({"--allowed-paths", "/usr", "--run", "true"}), "allowed_paths: '/usr'");
  check_refused(run_program({"--sandbox", "strict", "--run", "true"}, "/usr"), "workspace: '/usr'");
  check_refused(run_program({"--limit-open-files", "3", "--run", "true"}), "limit_open_files");
  // A choice is told.
  check_refused(run_program({"--sandbox", "on"}), "is not one of off, best_effort, strict");
  check_refused(run_program({"--network", "off"}), "is not one of host, none, loopback");
  check_refused(run_program({"--private-home", "on"}), "is not one of off, command, executor");
}

TEST_CASE("--sandbox-report prints what is in force, and its status what is missing") {
  const TempDir place;
  place.directory("ro");
  const Json off = report_of({});
  CHECK(names_of(off) == "mode network landlock_abi enforced missing");
  CHECK(off["mode"] == Json("off"));
  CHECK(off["enforced"].size() == 0);
  const Json report = report_of({"--allowed-paths", place.path()}, place.path());
  CHECK(names_of(report) == "mode network landlock_abi enforced missing");
  CHECK(report["network"] == Json("host"));
  CHECK(report["landlock_abi"].is_integer());
  CHECK(report["enforced"].size() + report["missing"].size() > 5);
  const Strings gap = {"--allowed-paths", place.path(), "--read-only", place / "ro"};
  const Json gaps = report_of(gap, place.path());
  const Json& missing = gaps["missing"];
  REQUIRE(missing.size() == report["missing"].size() + 1);
  CHECK(begins(missing[missing.size() - 1].as_string(), "read_only_roots: '" + (place / "ro")));
  // Who runs something is told on one line, and in the result.
  Strings run = gap;
  run.insert(run.end(), {"--run", "true"});
  const ProcessResult ran = run_program(run, place.path());
  CHECK(lines_of(ran.err).size() == 1);
  CHECK(begins(ran.err, "codeexec-mcp: sandbox: missing here: "));
  CHECK(has(ran.err, "read_only_roots: '" + (place / "ro")));
  CHECK(parsed(ran.out)["sandbox"]["missing"].dump() == missing.dump());
  // A strict one does not start with gaps.
  run.insert(run.begin(), {"--sandbox", "strict"});
  check_refused(run_program(run, place.path()), "read_only: sandbox strict: ");
  run.back() = "--sandbox-report";
  run.erase(run.end() - 2);
  check_refused(run_program(run, place.path()), "read_only: sandbox strict: ");
}

TEST_CASE("--read-only in a sandbox without allowed paths: the workspace is what may be changed") {
  const TempDir place;
  place.file("ro/file", "x");
  const std::string workspace = place.directory("workspace");
  const Strings arguments = {"--sandbox", "best-effort", "--workspace",
                             workspace,   "--read-only", place / "ro"};
  if (!enforces(report_of(arguments), "filesystem")) {
    MESSAGE("SKIPPED: no sandbox here");
    return;
  }
  CHECK(run_command("cat ../ro/file > copy", arguments)["success"] == Json(true));
  CHECK(support::read_file(workspace + "/copy") == "x");
  // By a variable that the policy cannot know.
  CHECK(run_command("d=$(printf ../ro); sh -c 'touch $0/new' $d", arguments)["success"] ==
        Json(false));
  CHECK(!support::exists(place / "ro/new"));
  CHECK(run_command("touch ../new", arguments)["success"] == Json(false));
  CHECK(run_command("pwd", arguments)["stdout"] == Json(workspace + "\n"));
}

TEST_CASE("what a result tells of the sandbox comes after what was known before") {
  if (!has_sandbox()) return;
  const TempDir place;
  const Strings arguments = {"--sandbox", "best-effort", "--workspace", place.path()};
  const Json quiet = run_command("true", arguments);
  CHECK(names_of(quiet) == all_keys + " sandbox");
  CHECK(quiet["sandbox"]["mode"] == Json("best_effort"));
  CHECK(quiet["sandbox"]["network"] == Json("host"));
  const Json changed = run_command("echo x > .envrc", arguments);
  CHECK(names_of(changed) == all_keys + " notes sandbox changed_files");
  CHECK(changed["changed_files"] == Json::array({place / ".envrc"}));
  CHECK(names_of(run_command("sudo ls", arguments)) == all_keys + " rule");
  CHECK(names_of(run_command("echo hunter2", {"--set-env", "T=hunter2", "--secret-env", "T"})) ==
        all_keys + " redactions");
}

TEST_CASE("the model is told what the sandbox leaves it") {
  const TempDir place;
  const auto told = [&](Strings arguments) {
    arguments.insert(arguments.end(), {"--workspace", place.path()});
    Server server(arguments);
    std::string text = server.greeting["result"]["instructions"].as_string();
    CHECK(server.finish().empty());
    return text;
  };
  CHECK(!has(told({}), "sandbox"));
  const Json report =
      report_of({"--allowed-paths", place.path(), "--network", "none"}, place.path());
  const std::string text = told({"--allowed-paths", place.path(), "--network", "none"});
  CHECK(has(text, "change files only below " + place.path()) == enforces(report, "filesystem"));
  CHECK(has(text, "The network is switched off") == (report["network"] == Json("none")));
  CHECK(!has(told({"--allowed-paths", place.path()}), "network"));
  if (!enforces(report, "filesystem")) return;
  CHECK(has(text, "their own HOME"));
  CHECK(!has(told({"--allowed-paths", place.path(), "--private-home", "off"}), "HOME"));
}

// containers --------------------------------------------------------------------------------------

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
        "--shared-memory", "--terminals", "--pid-namespace", "--no-watch-files", "--no-supervisor",
        "--limit-cpu=5", "--limit-memory=1000000", "--limit-address-space=1000000000",
        "--limit-processes=50", "--limit-open-files=50", "--limit-file-size=1000000",
        "--limit-disk=1000000", "--local-skills-directory=.", "--keep-env=X"}) {
    const std::string name = std::string(option).substr(2);
    refused({option}, key_of(name.substr(0, name.find('='))), docker);
  }
  refused({"--user-id", "x"}, "user_id", docker);
  const Strings user = {"--profile", "user-container", "--user-id", "x"};
  for (const char* option : {"allowed-paths", "workspace", "read-only", "disable-tool"}) {
    const ProcessResult r =
        run_program({user[0], user[1], user[2], user[3], std::string("--") + option, place.path(),
                     "--run", "true"});
    check_refused(r, key_of(option) + " has no effect with profile user-container");
  }
  check_refused(run_program({"--execution-mode", "srt"}),
                "Invalid command_line_execution_mode: 'srt'. Must be 'local' or 'docker'.");
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
  CHECK(begins(names_of(r), all_keys));
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
  CHECK(has(sudo, "Installed besides: polars>=1."));
  CHECK(has(told({"--enable-sudo"}), "sudo needs no password."));
}

TEST_CASE("--doctor tells in lines what is there and what is missing") {
  const TempDir place;
  const ProcessResult off = run_program({"--doctor"});
  CHECK(off.exit_code == 0);
  CHECK(begins(off.out, "ok   sandbox: off, network host: "));
  const Strings paths = {"--allowed-paths", place.path()};
  const Json report = report_of(paths, place.path());
  const ProcessResult on = run_program({paths[0], paths[1], "--doctor"}, place.path());
  CHECK(on.err == "");
  CHECK(on.exit_code == (report["missing"].size() > 0 ? 1 : 0));
  for (const Json& feature : report["enforced"].items())
    CHECK(has(on.out, "ok   " + feature.as_string() + "\n"));
  for (const Json& gap : report["missing"].items())
    CHECK(has(on.out, "FAIL " + gap.as_string() + "\n"));
  CHECK(lines_of(on.out).size() == 1 + report["enforced"].size() + report["missing"].size());
  // No engine is not the server's failure, but something to mend.
  const ProcessResult engine = run_program(
      {"--execution-mode", "docker", "--docker-program", place / "no-engine", "--doctor"},
      place.path());
  CHECK(engine.err == "");
  CHECK(engine.exit_code == 1);
  CHECK(has(engine.out, "FAIL engine: "));
  CHECK(has(engine.out, "no-engine"));
}

// documentation -----------------------------------------------------------------------------------

TEST_CASE("the example configurations are good, and do what their README says") {
  const std::string configs = CODEEXEC_ROOT "/examples/configs/";
  const std::string readme = support::read_file(configs + "README.md");
  const Json list = run_command("ls " + configs + "*.json");
  const Strings files = lines_of(list["stdout"].as_string());
  CHECK(files.size() >= 9);
  for (const std::string& file : files) {
    CAPTURE(file);
    CHECK(has(readme, file.substr(configs.size())));
    const ProcessResult r = run_program({"--config", file, "--check", "ls"}, CODEEXEC_ROOT);
    CHECK(r.exit_code == 0);
    // Some of the user's own may not be there.
    for (const std::string& line : lines_of(r.err))
      CHECK_MESSAGE(begins(line, "codeexec-mcp: credentials: "), line);
  }
  const auto rule = [&](const char* file, const char* command) {
    const ProcessResult r =
        run_program({"--config", configs + file, "--check", command}, CODEEXEC_ROOT);
    return parsed(r.out)["rule"].as_string();
  };
  for (const char* command : {"git push", "git push origin main", "gh pr merge 5", "rm -rf build",
                              "gh repo delete x", "cd src && git commit -m x"})
    CHECK_MESSAGE(rule("github_read_only.json", command) == "blocked-commands", command);
  for (const char* command : {"git status", "gh issue list", "git log --oneline", "rm x"})
    CHECK_MESSAGE(rule("github_read_only.json", command) == "", command);
  CHECK(parsed(support::read_file(configs + "github_read_only.json"))["blocked_commands"].size() ==
        30);
  CHECK(rule("full_development.json", "sudo apt-get update") == "");
}

TEST_CASE("the README has each option of --help, and no other") {
  const std::string readme = support::read_file(CODEEXEC_ROOT "/README.md");
  std::set<std::string> known;
  for (const auto& option : options_of_help()) {
    known.insert("--" + option.first);
    const bool told =
        has(readme, "`--" + option.first + "`") || has(readme, "`--" + option.first + " ");
    CHECK_MESSAGE(told, option.first);
  }
  for (const std::string& line : lines_of(readme)) {
    // Of the tables' first column.
    if (!begins(line, "| `--")) continue;
    const std::string cell = line.substr(2, line.find(" | ") - 2);
    for (std::size_t at = cell.find("`--"); at != std::string::npos;
         at = cell.find("`--", at + 1)) {
      const std::string name = cell.substr(at + 1, cell.find_first_of(" `", at + 1) - at - 1);
      CHECK_MESSAGE(known.count(name) == 1, name);
    }
  }
}

// the tool ----------------------------------------------------------------------------------------

TEST_CASE("the tool is described as the reference describes it") {
  Server server(Strings{"--workspace", "/", "--timeout", "30", "--max-timeout", "90.5"});
  CHECK(server.greeting["result"]["serverInfo"]["name"] == Json("codeexec"));
  const std::string& told = server.greeting["result"]["instructions"].as_string();
  for (const char* part : {"execute_command", "by default in /.", "30 seconds", "at most 90.5"})
    CHECK_MESSAGE(has(told, part), told);
  const Json tools = server.ask("tools/list")["result"]["tools"];
  REQUIRE(tools.size() == 12);
  const Json& tool = tools[0];
  CHECK(tool["name"] == Json("execute_command"));
  CHECK(has(tool["description"].as_string(), "default 30 seconds"));
  const Json& input = tool["inputSchema"];
  CHECK(input["type"] == Json("object"));
  CHECK(input["required"] == parsed(R"(["command"])"));
  CHECK(names_of(input["properties"]) ==
        "command timeout work_dir session_id run_in_background_after encoding");
  CHECK(input["properties"]["command"]["type"] == Json("string"));
  const auto accepts = [&](const char* name, const char* type) {
    const Json& schema = input["properties"][name];
    const std::string text = schema.dump();
    return has(text, "\"null\"") && has(text, std::string("\"") + type + "\"");
  };
  CHECK(accepts("timeout", "number"));
  CHECK(accepts("work_dir", "string"));
  CHECK(has(input["properties"]["timeout"]["description"].as_string(), "at most 90.5"));
  const Json& output = tool["outputSchema"];
  CHECK(names_of(output["properties"]) == all_keys);
  CHECK(output["required"].size() == 13);
  // Every result has the types that the schema promises.
  for (const char* command : {"echo x", "sudo x", "kill -9 $$"}) {
    const Json r = server.execute(command);
    for (const Json::Member& property : output["properties"].members()) {
      const std::string& type = property.value["type"].as_string();
      const Json& value = r[property.name];
      CHECK((type == "boolean"   ? value.is_bool()
             : type == "integer" ? value.is_integer()
             : type == "number"  ? value.is_number()
                                 : value.is_string()));
    }
  }
  CHECK(server.finish().empty());
  CHECK(!has(told, "before you delete"));
  Server guarded(Strings{"--delete-guard"});
  CHECK(has(guarded.greeting["result"]["instructions"].as_string(),
            "Read a file before you delete it."));
}

TEST_CASE("the delete guard remembers what the commands of a conversation read") {
  const TempDir place;
  place.file("a", "x");
  Server server(Strings{"--workspace", place.path(), "--delete-guard"});
  const Json r = server.execute("rm a");
  CHECK(r["rule"] == Json("delete-guard"));
  check_failure(r, "Cannot delete '" + (place / "a") +
                       "': File must be read before deletion. Use read (including "
                       "read_multimodal_files) or diff tools to view the file first.");
  CHECK(server.execute("cat a")["stdout"] == Json("x"));
  CHECK(server.execute("rm a")["success"] == Json(true));
  CHECK(!support::exists(place / "a"));
}

TEST_CASE("--read-only forbids changes there, and nothing else") {
  const TempDir place;
  place.file("ro/file", "x");
  const auto rule_of = [&](const std::string& command, Strings arguments) {
    arguments.insert(arguments.end(), {"--workspace", place.path(), "--read-only", place / "ro"});
    return run_command(command, arguments)["rule"].as_string();
  };
  // What the policy says; what the kernel can add is another matter.
  for (const Strings& arguments :
       {Strings{}, Strings{"--allowed-paths", place.path(), "--sandbox", "off"}}) {
    CHECK(rule_of("cat ro/file > copy", arguments) == "");
    CHECK(rule_of("cd ro && cat file", arguments) == "");
    CHECK(rule_of("echo y > ro/file", arguments) == "read-only");
  }
  CHECK(support::read_file(place / "copy") == "x");
  CHECK(support::read_file(place / "ro/file") == "x");
  check_refused(
      run_program({"--read-only", place / "ro", "--allowed-paths", place / "ro", "--run", "true"}),
      "listed with different permissions");
}

TEST_CASE("arguments that break the schema are errors of the tool, and nothing runs") {
  const TempDir place;
  Server server(Strings{"--workspace", place.path()});
  const std::string touch = R"("command":"touch made")";
  for (const std::string& arguments :
       {std::string("{}"), std::string(R"({"command":7})"), std::string(R"({"command":null})"),
        std::string(R"({"command":["touch","made"]})"), "{" + touch + R"(,"timeout":"5"})",
        "{" + touch + R"(,"timeout":0})", "{" + touch + R"(,"timeout":-1})",
        "{" + touch + R"(,"timeout":true})", "{" + touch + R"(,"work_dir":5})",
        "{" + touch + R"(,"workdir":"/"})", std::string(R"({"command":"touch made \ud800"})"),
        "{" + touch + R"(,"work_dir":"\udfff"})"}) {
    CAPTURE(arguments);
    server.send(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":)"
                R"("execute_command","arguments":)" +
                arguments + "}}");
    const Json reply = server.receive();
    CHECK(reply["id"] == Json(1));
    CHECK(reply["result"]["isError"] == Json(true));
    CHECK(!reply["result"]["content"][0]["text"].as_string().empty());
  }
  CHECK(!support::exists(place / "made"));
  const Json r = server.execute_with(parsed(R"({"command":"pwd","timeout":null,"work_dir":null})"));
  CHECK(r["stdout"] == Json(place.path() + "\n"));
  CHECK(server.execute_with(parsed(R"({"command":"pwd","work_dir":"/"})"))["stdout"] ==
        Json("/\n"));
  CHECK(server.execute_with(parsed(R"({"command":"pwd","work_dir":""})"))["stdout"] ==
        Json(place.path() + "\n"));
}

TEST_CASE("refusals and failures are normal results with the reference's texts") {
  const TempDir place;
  const TempDir outside;
  place.file("file");
  support::make_symlink(outside.path(), place / "out");
  const std::string root = place.path();
  Server server(Strings{"--workspace", root, "--allowed-paths", root, "--blocked-commands",
                        "echo bad.*", "--allowed-commands", "[a-z].*", "/.*"});
  for (const auto& [command, message] : std::vector<std::pair<const char*, const char*>>{
           {"chmod 777 file",
            "Potentially dangerous command detected: Use of 'chmod' is not allowed"},
           {"ECHO", "Command not in allowed list. Allowed patterns: [a-z].*, /.*"},
           {"echo bad", "Command matches blocked pattern: 'echo bad.*'"}}) {
    const Json r = server.execute(command);
    CHECK(begins(r["stderr"].as_string(), message));
    check_failure(r, r["stderr"].as_string());
  }
  const auto in_directory = [&](const std::string& work_dir) {
    Json arguments = Json::object({{"command", "pwd"}, {"work_dir", work_dir}});
    return server.execute_with(arguments);
  };
  struct Case {
    std::string work_dir, message, shown;
  };
  const std::string denied = "Path validation error: Path not in allowed directories: ";
  for (const Case& each : std::vector<Case>{
           {"/etc", denied + "/etc", "/etc"},
           {"out", denied + outside.path(), "out"},
           {"missing", "Working directory does not exist: " + root + "/missing", root + "/missing"},
           {"file", "Working directory is not a directory: " + root + "/file", root + "/file"}}) {
    CAPTURE(each.work_dir);
    const Json r = in_directory(each.work_dir);
    check_failure(r, each.message);
    CHECK(r["work_dir"] == Json(each.shown));
    CHECK(r["rule"] == Json("work_dir"));
    CHECK(r["execution_time"] == Json(0));
    CHECK(r["command"] == Json("pwd"));
  }
  // The policy is asked first.
  check_failure(server.execute_with(parsed(R"({"command":"echo bad","work_dir":"/etc"})")),
                "Command matches blocked pattern: 'echo bad.*'");
  CHECK(in_directory("")["stdout"] == Json(root + "\n"));
  const Json nul = server.execute_with(parsed(R"({"command":"a\u0000b"})"));
  CHECK(nul["rule"] == Json("nul-byte"));
  CHECK(nul["command"] == Json(std::string("a\0b", 3)));
  CHECK(nul["success"] == Json(false));
  CHECK(server.finish().empty());
}

TEST_CASE("W-14 W-18: a timeout is told in the reference's words, after the partial output") {
  Server server(Strings{"--max-timeout", "100", "--timeout", "100"});
  const Json whole =
      server.execute_with(parsed(R"({"command":"echo begin; exec sleep 60","timeout":1})"));
  CHECK(whole["stderr"] == Json("Command timed out after 1 seconds"));
  CHECK(whole["stdout"] == Json("begin\n"));
  CHECK(whole["exit_code"] == Json(-1));
  CHECK(whole["success"] == Json(false));
  CHECK(whole["timed_out"] == Json(true));
  CHECK(whole["outcome"] == Json("timed_out"));
  CHECK(whole["execution_time"].as_number() >= 1);
  const Json part =
      server.execute_with(parsed(R"({"command":"printf oops >&2; exec sleep 60","timeout":0.25})"));
  CHECK(part["stderr"] == Json("oops\nCommand timed out after 0.25 seconds"));
  CHECK(part["stderr_bytes"] == Json(4));
  const Json capped = server.execute_with(parsed(R"({"command":"true","timeout":1e300})"));
  CHECK(capped["success"] == Json(true));
  REQUIRE(capped["notes"].size() == 1);
  CHECK(ends(capped["notes"][0].as_string(), " to 100 seconds, the longest that is allowed here"));
  const Json model = server.execute_with(parsed(R"({"command":"true","timeout":120000})"));
  CHECK(model["notes"][0] ==
        Json("timeout reduced from 120000 to 100 seconds, the longest that is allowed here"));
  CHECK(server.execute_with(parsed(R"({"command":"true","timeout":0.0001})")).find("notes") ==
        nullptr);
}

TEST_CASE("W-09: after a timeout nothing of the tree is alive") {
  const TempDir place;
  Fifo fifo(place / "fifo");
  Server server;
  for (const std::string& command :
       {endless(fifo), "setsid " + std::string("sleep 300 & echo $! > ") + fifo.path() + "; wait",
        "sleep 300 & echo $! > " + fifo.path() + "; sleep 300 | cat; echo done"}) {
    Json arguments = Json::object({{"command", command}, {"timeout", 0.3}});
    const Json r = server.execute_with(arguments);
    CHECK(r["timed_out"] == Json(true));
    CHECK(dies(fifo.read_pid()));
  }
}

TEST_CASE("W-13 W-15 W-16 W-22: odd commands and outputs through the server") {
  const TempDir place;
  Fifo fifo(place / "fifo");
  Server server;
  const Json background = server.execute("sleep 300 & echo $! > " + fifo.path() + "; echo started");
  CHECK(background["success"] == Json(true));
  CHECK(background["stdout"] == Json("started\n"));
  CHECK(dies(fifo.read_pid()));
  const Json bytes = server.execute("printf 'ok\\377\\n'; exit 7");
  CHECK(bytes["exit_code"] == Json(7));
  CHECK(bytes["stdout"] == Json("ok\xEF\xBF\xBD\n"));
  CHECK(bytes["stdout_invalid_bytes"] == Json(1));
  CHECK(server.execute("printf 'a\\rb\\r\\nc'")["stdout"] == Json("a\rb\r\nc"));
  const std::string text(200000, 'y');
  CHECK(server.execute("cat <<'EOF'\n" + text + "\nEOF")["stdout"] == Json(text + "\n"));
  CHECK(server.execute("")["success"] == Json(true));
  CHECK(server.execute("   ")["success"] == Json(true));
}

TEST_CASE("W-17: long output is cut in the middle, and counted") {
  Server server(Strings{"--max-output-size", "2000"});
  const Json r = server.execute("seq 1 100000");
  CHECK(r["success"] == Json(true));
  CHECK(r["stdout_truncated"] == Json(true));
  CHECK(r["stderr_truncated"] == Json(false));
  CHECK(r["stdout_bytes"] == Json(588895));
  const std::string& text = r["stdout"].as_string();
  CHECK(begins(text, "1\n2\n3\n"));
  CHECK(ends(text, "\n99999\n100000\n"));
  CHECK(has(text, "(truncated, exceeded 2000 bytes: 586895 bytes omitted)"));
  CHECK(text.size() < 2200);
}

TEST_CASE("no reply is above 8 MiB, and a shortened one says so") {
  Server server(Strings{"--max-output-size", "20000000"});
  constexpr std::size_t most = std::size_t{8} << 20;
  for (const char* command :
       {"head -c 6291456 /dev/zero", "head -c 6291456 /dev/zero | tr '\\0' '\"'",
        "head -c 6291456 /dev/zero | tr '\\0' x",
        "head -c 6291456 /dev/zero | tr '\\0' x; head -c 6291456 /dev/zero >&2"}) {
    CAPTURE(command);
    const Json r = server.execute(command);
    CHECK(server.last_line_size <= most);
    CHECK(server.last_line_size > most / 10);
    CHECK(r["success"] == Json(true));
    CHECK(r["stdout_bytes"] == Json(6291456));
    CHECK(r["stdout_truncated"] == Json(true));
    CHECK(has(r["stdout"].as_string(), "... (truncated to fit one reply: "));
  }
  // What fits is left as it is.
  const Json fits = server.execute("head -c 1000000 /dev/zero | tr '\\0' x");
  CHECK(fits["stdout"] == Json(std::string(1000000, 'x')));
  CHECK(fits["stdout_truncated"] == Json(false));
  // The command is in the reply, too.
  const Json r = server.execute("true '" + std::string(3000000, '"') + "'");
  CHECK(server.last_line_size <= most);
  CHECK(r["success"] == Json(true));
  CHECK(has(r["command"].as_string(), "... (truncated to fit one reply: "));
  CHECK(server.finish().empty());
}

// conversations -----------------------------------------------------------------------------------

TEST_CASE("W-05 W-19: a command made to choke patterns is judged in no time") {
  Strings arguments = {"--blocked-commands", "(a+)+$", "(\\w+\\s?)+$", "--allowed-paths", "/tmp"};
  SUBCASE("strict") {}
  SUBCASE("compat") { arguments.insert(arguments.end(), {"--policy", "compat"}); }
  Server server(arguments);
  const auto begin = std::chrono::steady_clock::now();
  for (const std::string& command :
       {"mv" + std::string(100000, ' ') + "x!", std::string(100000, 'a') + "!",
        std::string(100000, 'b') + "!"}) {
    const Json r = server.execute(command);
    CHECK(r["rule"] == Json("work_dir"));
  }
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(patience_ms / 2));
}

TEST_CASE("signs of life come while a command runs, to those who asked") {
  const TempDir place;
  Fifo fifo(place / "fifo");
  Fifo go(place / "go");
  Server server;
  const std::string command = "echo one; echo 'line two' > /dev/stderr; echo x > " + fifo.path() +
                              "; read a < " + go.path();
  const Json meta = Json::object({{"progressToken", "t"}});
  server.send(Server::call_line(1, Json::object({{"command", command}}), meta));
  double last = -1;
  std::string printed;
  while (!has(printed, "one\n") || !has(printed, "line two\n")) {
    const Json progress = server.receive();
    REQUIRE(progress["method"] == Json("notifications/progress"));
    CHECK(progress["params"]["progressToken"] == Json("t"));
    CHECK(progress["params"]["progress"].as_number() > last);
    last = progress["params"]["progress"].as_number();
    const std::string& message = progress["params"]["message"].as_string();
    if (message != "running") printed += message;
  }
  CHECK(printed.size() == std::string_view("one\nline two\n").size());
  CHECK(fifo.read_line() == "x");
  go.write_text("go\n");
  Json reply = server.receive();
  while (reply.find("method")) reply = server.receive();
  CHECK(Server::object_of(reply["result"])["success"] == Json(true));
  // Without a token, nothing but the reply.
  server.send(Server::call_line(2, Json::object({{"command", "sleep 0.1"}})));
  reply = server.receive();
  CHECK(reply["id"] == Json(2));
  CHECK(server.finish().empty());
}

TEST_CASE("W-19 W-20: a cancelled call is killed and not answered, and the server goes on") {
  const TempDir place;
  Fifo fifo(place / "fifo");
  const std::string audit = place / "audit";
  Server server(Strings{"--audit-file", audit, "--agent-id", "me"});
  server.send(Server::call_line("long", Json::object({{"command", endless(fifo)}})));
  const pid_t pid = fifo.read_pid();
  server.ping();
  CHECK(server.ask("tools/list")["result"]["tools"].size() == 12);
  CHECK(server.execute("echo meanwhile")["stdout"] == Json("meanwhile\n"));
  server.cancel("long");
  CHECK(dies(pid));
  server.ping();
  CHECK(server.finish().empty());
  const Strings lines = lines_of(support::read_file(audit));
  REQUIRE(lines.size() == 2);
  for (const std::string& line : lines) {
    CHECK(parsed(line)["tool"] == Json("execute_command"));
    CHECK(parsed(line)["agent_id"] == Json("me"));
  }
  CHECK(parsed(lines[1])["outcome"] == Json("cancelled"));
}

TEST_CASE("20 calls at once: 16 run, 4 wait, all are answered") {
  const TempDir place;
  Fifo arrived(place / "arrived");
  Fifo go(place / "go");
  Server server;
  for (int i = 0; i < 20; ++i) {
    const std::string command = "echo " + std::to_string(i) + " > " + arrived.path() +
                                "; read x < " + go.path() + "; echo " + std::to_string(i);
    server.send(Server::call_line(i, Json::object({{"command", command}})));
  }
  std::set<std::string> seen;
  for (int i = 0; i < 16; ++i) seen.insert(arrived.read_line());
  CHECK(seen.size() == 16);
  server.ping();
  std::string all;
  for (int i = 0; i < 20; ++i) all += "\n";
  go.write_text(all);
  std::set<std::int64_t> answered;
  for (int i = 0; i < 20; ++i) {
    const Json reply = server.receive();
    const std::int64_t id = reply["id"].as_integer();
    answered.insert(id);
    CHECK(Server::object_of(reply["result"])["stdout"] == Json(std::to_string(id) + "\n"));
  }
  CHECK(answered.size() == 20);
  CHECK(server.finish().empty());
}

TEST_CASE("--max-concurrent bounds the commands that run at a time") {
  const TempDir place;
  Fifo arrived(place / "arrived");
  Fifo go(place / "go");
  Server server(Strings{"--max-concurrent", "1"});
  const std::string wait = "echo " + std::string("first > ") + arrived.path() + "; read x < " +
                           go.path() + "; echo end > " + arrived.path();
  server.send(Server::call_line(1, Json::object({{"command", wait}})));
  server.send(Server::call_line(2, Json::object({{"command", "echo second > " + arrived.path()}})));
  CHECK(arrived.read_line() == "first");
  server.ping();
  go.write_text("\n");
  CHECK(arrived.read_line() == "end");
  CHECK(arrived.read_line() == "second");
  CHECK(server.receive()["id"] == Json(1));
  CHECK(server.receive()["id"] == Json(2));
}

TEST_CASE("the end of the input during a run ends the server, and no process is left") {
  const TempDir place;
  Fifo fifo(place / "fifo");
  Server server;
  server.send(Server::call_line(1, Json::object({{"command", endless(fifo)}})));
  const pid_t pid = fifo.read_pid();
  server.close_input();
  CHECK(server.wait() == 0);
  CHECK(dies(pid));
}

TEST_CASE("SIGTERM, SIGINT and SIGHUP during a run end the server, and no process is left") {
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    CAPTURE(number);
    const TempDir place;
    Fifo fifo(place / "fifo");
    Server server;
    server.send(Server::call_line(1, Json::object({{"command", endless(fifo)}})));
    server.send(Server::call_line(
        2, Json::object({{"command", "trap '' TERM INT HUP; " + endless(fifo) + "; wait"}})));
    const pid_t first = fifo.read_pid();
    const pid_t second = fifo.read_pid();
    server.signal(number);
    server.signal(number);  // a second one while it ends changes nothing
    CHECK(server.wait() == 0);
    CHECK(dies(first));
    CHECK(dies(second));
  }
}

TEST_CASE("SIGTERM ends a server that has nothing to do") {
  Server server;
  server.ping();
  server.signal(SIGTERM);
  CHECK(server.wait() == 0);
  CHECK(server.logged() == "");
}

TEST_CASE("a client that no longer reads ends the server, and no process is left") {
  const NoSigpipe guard;
  const TempDir place;
  Fifo fifo(place / "fifo");
  Server server;
  server.send(Server::call_line(1, Json::object({{"command", endless(fifo)}})));
  const pid_t pid = fifo.read_pid();
  server.close_output();
  server.send(R"({"jsonrpc":"2.0","id":2,"method":"ping"})");
  CHECK(server.wait() == 0);
  CHECK(dies(pid));
}

TEST_CASE("W-10: what the client sends never reaches a command") {
  Server server;
  const std::string ping = R"({"jsonrpc":"2.0","id":2,"method":"ping"})";
  server.send(Server::call_line(1, Json::object({{"command", "cat; read x; echo \"[$x]\""}})) +
              "\n" + ping + "\n" + ping + "\n");
  int pings = 0;
  for (int i = 0; i < 3; ++i) {
    const Json reply = server.receive();
    if (reply["id"] == Json(2)) {
      ++pings;
      continue;
    }
    CHECK(Server::object_of(reply["result"])["stdout"] == Json("[]\n"));
  }
  CHECK(pings == 2);
}

TEST_CASE("W-12: nothing but messages is on stdout, whatever commands write and where") {
  Server server;
  server.ping();
  const Json r = server.execute(
      "echo junk > /dev/stdout; echo junk > /proc/self/fd/1; echo junk > /dev/stderr; "
      "(for i in 3 4 5 6 7 8 9; do eval \"echo junk >&$i\"; done) 2> /dev/null; echo end");
  CHECK(r["stdout"].as_string() == "junk\njunk\nend\n");
  CHECK(r["stderr"] == Json("junk\n"));
  server.ping();
  CHECK(server.finish().empty());
  CHECK(server.logged() == "");
}

TEST_CASE("W-11 R07b: a command can neither write to the server's stdout nor read its secrets") {
  // root may look into every process; only another user shows what is protected.
  const TempDir place;
  Server::Options options;
  options.program = place.file("server", support::read_file(CODEEXEC_MCP), 0755);
  REQUIRE(::chmod(place.path().c_str(), 0755) == 0);
  if (::geteuid() == 0) {
    ProcessOptions probe;
    probe.argv = {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/bin/true"};
    if (!codeexec::run_process(probe).succeeded()) {
      MESSAGE("SKIPPED: root, and no setpriv to become somebody else");
      return;
    }
    options.wrapper = {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"};
  }
  options.environment = {"CODEEXEC_TEST_TOKEN=hunter2"};
  Server server(options);
  const Json r = server.execute(
      "ppid=$PPID; for fd in 0 1 2 3 4 5 6 7 8 9; do "
      "echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}' > /proc/$ppid/fd/$fd && echo open; "
      "done; "
      "ls /proc/$ppid/fd && echo listed; cat /proc/$ppid/environ && echo read; "
      "head -c 1 /proc/$ppid/mem && echo memory; env; id -u");
  const std::string& out = r["stdout"].as_string();
  CAPTURE(r["stderr"].as_string());
  for (const char* part : {"open", "listed", "read", "memory", "hunter2"})
    CHECK_MESSAGE(!has(out, part), out);
  CHECK(out.find("PATH=") != std::string::npos);
  if (::geteuid() == 0) CHECK(ends(out, "\n65534\n"));
  server.ping();
  CHECK(server.finish().empty());
}

TEST_CASE("W-21 W-07: secrets stay with the server, and --enable-sudo does not count here") {
  Server::Options options;
  options.environment = {"CODEEXEC_TEST_TOKEN=hunter2"};
  options.arguments = {"--enable-sudo"};
  Server server(options);
  CHECK(!has(server.execute("env")["stdout"].as_string(), "hunter2"));
  CHECK(server.execute("sudo id")["rule"] == Json("sudo"));
  CHECK(has(server.logged(), "enable_sudo has no effect in local mode"));
}

TEST_CASE("R07b: the server itself keeps no variables but those that commands see") {
  Server::Options options;
  options.arguments = {"--keep-env", "CODEEXEC_TEST_KEPT"};
  options.environment = {"CODEEXEC_TEST_TOKEN=hunter2", "CODEEXEC_TEST_KEPT=kept", "LC_TIME=C",
                         "=odd=hunter2", "hunter2"};
  Server server(options);
  server.ping();
  const std::string path = "/proc/" + std::to_string(server.pid()) + "/environ";
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    MESSAGE("SKIPPED: " << path << " cannot be read, which root with all capabilities may");
    return;
  }
  ::close(file);
  const std::string variables = support::read_file(path);
  for (const char* part : {"hunter2", "CODEEXEC_TEST_TOKEN"}) CHECK(!has(variables, part));
  for (const char* part : {"CODEEXEC_TEST_KEPT=kept", "PATH=", "LC_TIME=C"})
    CHECK(has(variables, part));
  const Json r = server.execute("tr '\\0' '\\n' < " + path + "; env");
  CHECK(has(r["stdout"].as_string(), "CODEEXEC_TEST_KEPT=kept"));
  CHECK(!has(r["stdout"].as_string(), "hunter2"));
}

TEST_CASE("starting has no effects on disk") {
  const TempDir place;
  const TempDir skills;
  Server::Options options;
  options.work_dir = place.path();
  options.environment = {"HOME=" + place.path(), "TMPDIR=" + place.path()};
  options.arguments = {"--local-skills-directory", skills.path(), "--allowed-paths", place.path()};
  Server server(options);
  server.ask("tools/list");
  CHECK(server.execute("sudo ls")["rule"] == Json("sudo"));
  CHECK(server.finish().empty());
  const Json list = run_command("ls -A " + place.path());
  CHECK(list["stdout"] == Json(""));
}

TEST_CASE("W-24: --local-skills-directory links, and destroys nothing") {
  const TempDir skills;
  skills.file("s.md", "a skill");
  const TempDir place;
  const Strings arguments = {"--local-skills-directory", skills.path(), "--workspace",
                             place.path()};
  CHECK(run_command("cat .agent/skills/s.md", arguments)["stdout"] == Json("a skill"));
  CHECK(run_command("true", arguments).find("notes") == nullptr);
  const TempDir own;
  own.file(".agent/skills/mine", "mine");
  const Json r = run_command("cat .agent/skills/mine", {"--local-skills-directory", skills.path(),
                                                        "--workspace", own.path()});
  CHECK(r["stdout"] == Json("mine"));
  CHECK(r["notes"].size() == 1);
}

TEST_CASE("a program without some of the descriptors 0 to 2 does no harm") {
  const TempDir place;
  const std::string audit = place / "audit";
  SUBCASE("--run without any") {
    Server::Options options;
    options.initialize = false;
    options.closed = {0, 1, 2};
    options.arguments = {"--audit-file", audit, "--run",
                         "touch " + (place / "made") + "; cat; echo out; echo err >&2"};
    Server server(options);
    CHECK(server.wait() == 1);
    CHECK(support::exists(place / "made"));
  }
  SUBCASE("--run without stderr") {
    Server::Options options;
    options.initialize = false;
    options.closed = {2};
    options.arguments = {"--audit-file", audit, "--enable-sudo", "--run", "echo out"};
    Server server(options);
    CHECK(parsed(server.receive_line())["stdout"] == Json("out\n"));
    CHECK(server.wait() == 0);
  }
  SUBCASE("a conversation without stderr") {
    Server::Options options;
    options.closed = {2};
    options.arguments = {"--audit-file", audit};
    Server server(options);
    CHECK(server.execute("echo out; echo err >&2")["stdout"] == Json("out\n"));
    CHECK(server.finish().empty());
  }
  SUBCASE("serving without stdin or stdout ends at once") {
    for (const std::vector<int>& closed : {std::vector<int>{0}, {1}, {0, 1}, {0, 1, 2}}) {
      Server::Options options;
      options.initialize = false;
      options.closed = closed;
      options.arguments = {"--audit-file", audit};
      Server server(options);
      server.close_input();
      const int status = server.wait();
      CHECK((status == 0 || status == 1));
    }
    CHECK(support::read_file(audit) == "");
    return;
  }
  // Nothing but the record went into the only file that was opened.
  const Strings lines = lines_of(support::read_file(audit));
  REQUIRE(lines.size() == 1);
  CHECK(parsed(lines[0])["outcome"] == Json("exited"));
}

// parity with the tests of the reference, through the server --------------------------------------

namespace {

// Python for the parity tests; false after saying that it is missing.
bool has_python() {
  if (run_command("python --version")["success"].as_bool()) return true;
  MESSAGE("SKIPPED: there is no program called python");
  return false;
}

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
  SUBCASE("compat") { arguments.insert(arguments.end(), {"--policy", "compat"}); }
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
      {"chmod +x script.sh", "chmod"},
      {"sudo apt-get install malicious-package", "sudo"}};
  for (const auto& [command, rule] : cases) check_verdict(server, command, rule);
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

// background shells -------------------------------------------------------------------------------

namespace {

// Starts a command in the background; its shell_id.
std::string start_shell(Server& server, const std::string& command) {
  const Json shell = server.use("start_background_shell", Json::object({{"command", command}}));
  return shell["shell_id"].as_string();
}

Json shell_arguments(const std::string& id) { return Json::object({{"shell_id", id}}); }

Json wait_for_shell(Server& server, const std::string& id, const std::string& pattern,
                    const std::string& since = "") {
  Json arguments = shell_arguments(id);
  arguments.set("wait_for", pattern);
  arguments.set("since", since);
  arguments.set("timeout", patience_ms / 1000);
  return server.use("get_background_shell_output", arguments);
}

}  // namespace

TEST_CASE("background shells have the names, arguments and keys of the reference") {
  const TempDir place;
  Server server(Strings{"--workspace", place.path()});
  const Json shell = server.use("start_background_shell",
                                R"({"command":"echo out; echo err >&2; read x; exit 3"})");
  CHECK(names_of(shell) == "shell_id status command pid work_dir");
  CHECK(shell["status"] == Json("running"));
  CHECK(shell["command"] == Json("echo out; echo err >&2; read x; exit 3"));
  CHECK(shell["pid"].as_number() > 1);
  CHECK(shell["work_dir"] == Json(place.path()));
  const std::string id = shell["shell_id"].as_string();

  Json output = wait_for_shell(server, id, "err");
  CHECK(names_of(output) == "shell_id stdout stderr status exit_code next wait");
  CHECK(output["wait"] == Json("matched"));
  CHECK(output["stderr"] == Json("err\n"));
  CHECK(output["status"] == Json("running"));
  CHECK(output["exit_code"] == Json());

  Json status = server.use("get_background_shell_status", shell_arguments(id));
  CHECK(names_of(status) ==
        "shell_id status exit_code pid command cwd start_time duration_seconds stdout_bytes "
        "stderr_bytes");
  CHECK(status["pid"] == shell["pid"]);
  CHECK(status["cwd"] == Json(place.path()));
  CHECK(status["stdout_bytes"] == Json(4));

  const Json list = server.use("list_background_shells");
  CHECK(names_of(list) == "shells count");
  CHECK(list["count"] == Json(1));
  CHECK(list["shells"][0]["shell_id"] == Json(id));

  const Json written =
      server.use("write_background_shell", Json::object({{"shell_id", id}, {"input", "go\n"}}));
  CHECK(names_of(written) == "shell_id status written");
  CHECK(written["written"] == Json(3));
  output = wait_for_shell(server, id, "exit");
  CHECK(output["wait"] == Json("ended"));
  CHECK(output["stdout"] == Json("out\n"));
  CHECK(output["status"] == Json("failed"));
  CHECK(output["exit_code"] == Json(3));

  status = server.use("get_background_shell_status", shell_arguments(id));
  CHECK(status["outcome"] == Json("exited"));
  CHECK(status["timed_out"] == Json(false));
  const Json killed = server.use("kill_background_shell", shell_arguments(id));
  CHECK(names_of(killed) == "shell_id status signal message");
  CHECK(killed["status"] == Json("failed"));
  CHECK(killed["signal"] == Json());
  CHECK(killed["message"] == Json("Process already terminated"));
}

TEST_CASE("W-25: a background command passes the gate of every other one") {
  const TempDir place;
  const TempDir outside;
  place.directory("sub/.venv/bin");
  const std::string audit = place / "audit";
  Server server(Strings{"--allowed-paths", place.path(), "--workspace", place.path(),
                        "--audit-file", audit, "--blocked-commands", "git push.*", "--sandbox",
                        "off"});
  const auto refusal = [&](const std::string& command, const std::string& work_dir) {
    Json arguments = Json::object({{"command", command}});
    if (!work_dir.empty()) arguments.set("work_dir", work_dir);
    const Json result = server.ask_tool("start_background_shell", arguments);
    CHECK(result["isError"] == Json(true));
    CHECK(begins(result["structuredContent"]["error"].as_string(), "Command validation error: "));
    return result["structuredContent"]["rule"].as_string();
  };
  CHECK(refusal("true; git push", "") == "blocked-commands");
  CHECK(refusal("sudo true", "") == "sudo");
  CHECK(refusal("true", outside.path()) == "work_dir");
  CHECK(server.use("list_background_shells")["count"] == Json(0));
  const Json shell =
      server.use("start_background_shell",
                 Json::object({{"command", "echo ${VIRTUAL_ENV-none}"}, {"work_dir", "sub"}}));
  const Json output = wait_for_shell(server, shell["shell_id"].as_string(), "exit");
  CHECK(output["stdout"] == Json((place / "sub/.venv") + "\n"));
  CHECK(output["status"] == Json("stopped"));
  CHECK(server.finish().empty());
  const Strings records = lines_of(support::read_file(audit));
  REQUIRE(records.size() == 4);
  for (const std::string& record : records)
    CHECK(parsed(record)["tool"] == Json("start_background_shell"));
  CHECK(parsed(records[0])["allowed"] == Json(false));
  CHECK(parsed(records[3])["outcome"] == Json("exited"));
}

TEST_CASE("the output of a shell is read by cursor, by tail and by pattern") {
  Server server;
  const std::string id =
      start_shell(server, "while read line; do echo \"got $line\"; done; echo end >&2");
  const auto say = [&](const std::string& text) {
    server.use("write_background_shell", Json::object({{"shell_id", id}, {"input", text}}));
  };
  say("one\ntwo\n");
  Json output = wait_for_shell(server, id, "two");
  CHECK(output["stdout"] == Json("got one\ngot two\n"));
  const std::string first = output["next"].as_string();
  say("three\n");
  output = wait_for_shell(server, id, "^got three$", first);
  CHECK(output["stdout"] == Json("got three\n"));
  // The same cursor gives the same again, and more; without one it is everything.
  say("four\n");
  output = wait_for_shell(server, id, "four", first);
  CHECK(output["stdout"] == Json("got three\ngot four\n"));
  Json arguments = shell_arguments(id);
  CHECK(
      lines_of(server.use("get_background_shell_output", arguments)["stdout"].as_string()).size() ==
      4);
  arguments.set("tail", 1);
  output = server.use("get_background_shell_output", arguments);
  CHECK(output["stdout"] == Json("got four\n"));
  CHECK(output["stdout_missed_bytes"] == Json(26));
  arguments.set("tail", 0);
  CHECK(server.use("get_background_shell_output", arguments)["stdout"] == Json(""));

  // A bound on the waiting, and arguments that are none.
  arguments = shell_arguments(id);
  arguments.set("wait_for", "never");
  arguments.set("timeout", 0.05);
  CHECK(server.use("get_background_shell_output", arguments)["wait"] == Json("timed_out"));
  arguments.set("wait_for", "(");
  CHECK(has(server.error_of("get_background_shell_output", arguments), "wait_for: "));
  arguments = shell_arguments(id);
  for (const char* since : {"x", "1", "1:", ":1", "1:2:3", "-1:0", "1:99999999999999999999"}) {
    arguments.set("since", since);
    CHECK(has(server.error_of("get_background_shell_output", arguments), "since: "));
  }
  server.use("write_background_shell",
             Json::object({{"shell_id", id}, {"input", ""}, {"close_input", true}}));
  output = wait_for_shell(server, id, "exit");
  CHECK(output["stderr"] == Json("end\n"));
  CHECK(output["status"] == Json("stopped"));
  CHECK(has(server.error_of("write_background_shell",
                            Json::object({{"shell_id", id}, {"input", "late"}})),
            "input"));
}

TEST_CASE("an unknown shell is an error that says what to do") {
  Server server;
  const Json arguments = Json::object({{"shell_id", "shell_0123456789abcdef"}, {"input", "x"}});
  for (const char* tool : {"get_background_shell_output", "get_background_shell_status",
                           "kill_background_shell", "write_background_shell"}) {
    CAPTURE(std::string(tool));
    Json given = arguments;
    if (std::string(tool) != "write_background_shell")
      given = shell_arguments("shell_0123456789abcdef");
    const std::string error = server.error_of(tool, given);
    CHECK(has(error, "shell_0123456789abcdef"));
    CHECK(has(error, "list"));
  }
}

TEST_CASE("a list of shells with long commands fits into a reply") {
  Server server(Strings{"--max-background-shells", "60"});
  for (int i = 0; i < 60; ++i) start_shell(server, "exec sleep 300 #" + std::string(16000, '\1'));
  const Json list = server.use("list_background_shells");
  CHECK(list["count"] == Json(60));
  CHECK(begins(list["shells"][59]["command"].as_string(), "exec sleep 300 #"));
}

TEST_CASE("calls that wait for shells leave room for one that ends a shell") {
  Server server(Strings{"--max-concurrent", "2"});
  const std::string id = start_shell(server, "sleep 300");
  Json arguments = shell_arguments(id);
  arguments.set("wait_for", "exit");
  arguments.set("timeout", patience_ms / 1000);
  for (const char* call : {"one", "other"})
    server.send(Server::call_line(call, arguments, {}, "get_background_shell_output"));
  // One of them may wait, whichever comes first.
  const Json refused = server.receive();
  CHECK(refused["result"]["isError"] == Json(true));
  CHECK(has(refused["result"]["structuredContent"]["error"].as_string(), "1 calls are waiting"));
  server.send(Server::call_line("kill", shell_arguments(id), {}, "kill_background_shell"));
  std::set<std::string> answered = {refused["id"].as_string()};
  for (int i = 0; i < 2; ++i) answered.insert(server.receive()["id"].as_string());
  CHECK(answered == std::set<std::string>{"kill", "one", "other"});
}

TEST_CASE("more shells than may run are refused with what to do") {
  Server server(Strings{"--max-background-shells", "2"});
  const std::string first = start_shell(server, "sleep 300");
  start_shell(server, "sleep 300");
  const std::string error =
      server.error_of("start_background_shell", parsed(R"({"command":"sleep 300"})"));
  CHECK(begins(error, "Failed to start background shell: "));
  CHECK(has(error, "2"));
  const Json killed = server.use("kill_background_shell", shell_arguments(first));
  CHECK(killed["status"] == Json("killed"));
  CHECK(killed["signal"] == Json("SIGTERM"));
  start_shell(server, "sleep 300");
}

TEST_CASE("a background command has a deadline when it or the operator says so") {
  Server server(Strings{"--timeout", "0.1", "--max-timeout", "0.2"});
  const TempDir place;
  Fifo go(place / "go");
  // Neither of those holds for it.
  const std::string without = start_shell(server, "read x < " + go.path() + "; echo done");
  const Json shell =
      server.use("start_background_shell", parsed(R"({"command":"sleep 300","timeout":0.3})"));
  Json output = wait_for_shell(server, shell["shell_id"].as_string(), "exit");
  CHECK(output["status"] == Json("failed"));
  const Json status =
      server.use("get_background_shell_status", shell_arguments(shell["shell_id"].as_string()));
  CHECK(status["timed_out"] == Json(true));
  go.write_text("go\n");
  CHECK(wait_for_shell(server, without, "exit")["stdout"] == Json("done\n"));

  Server bounded(Strings{"--max-background-time", "0.2"});
  output = wait_for_shell(bounded, start_shell(bounded, "sleep 300"), "exit");
  CHECK(output["status"] == Json("failed"));
}

TEST_CASE("W-33: nothing of ten shells survives a server that is killed, or whose input ends") {
  const TempDir place;
  Strings arguments = {"--workspace", place.path()};
  if (!enforces(report_of({"--sandbox", "best-effort", "--workspace", place.path()}),
                "containment")) {
    MESSAGE("SKIPPED: there is no supervisor on this system");
    return;
  }
  SUBCASE("without a sandbox") {}
  SUBCASE("in a sandbox") { arguments.insert(arguments.end(), {"--sandbox", "best-effort"}); }
  for (const bool kill : {true, false}) {
    CAPTURE(kill);
    Server server(arguments);
    Fifo fifo(place / (kill ? "killed" : "ended"));
    std::vector<pid_t> pids;
    for (int i = 0; i < 10; ++i) {
      start_shell(server, "setsid sleep 300 & echo $! > " + fifo.path() + "; wait");
      pids.push_back(fifo.read_pid());
    }
    if (kill)
      server.signal(SIGKILL);
    else
      CHECK(server.finish().empty());
    for (const pid_t pid : pids) CHECK(dies(pid));
  }
}

// in the background after a while -----------------------------------------------------------------

TEST_CASE("a command that takes long goes on in the background") {
  const TempDir place;
  Fifo go(place / "go");
  const std::string command = "echo begun; read x < " + go.path() + "; echo done; exit 4";
  Strings options = {"--timeout", "30"};
  Json arguments = Json::object({{"command", command}});
  SUBCASE("when the call says so") { arguments.set("run_in_background_after", 2); }
  SUBCASE("when the operator says so") {
    options.insert(options.end(), {"--run-in-background-after", "2"});
  }
  Server server(options);
  const Json running = server.execute_with(arguments);
  CHECK(begins(names_of(running), seven_keys));
  CHECK(running["success"] == Json(false));
  CHECK(running["exit_code"] == Json(-1));
  CHECK(running["outcome"] == Json("running"));
  CHECK(running["stdout"] == Json("begun\n"));
  CHECK(running["stderr"] == Json(""));
  CHECK(running["timed_out"] == Json(false));
  CHECK(has(running["notes"][0].as_string(), running["shell_id"].as_string()));
  CHECK(server.use("list_background_shells")["count"] == Json(1));
  go.write_text("go\n");
  const Json output = wait_for_shell(server, running["shell_id"].as_string(), "exit");
  CHECK(output["stdout"] == Json("begun\ndone\n"));
  CHECK(output["exit_code"] == Json(4));
}

TEST_CASE("a command that ends before that is answered as ever") {
  const TempDir place;
  const std::string audit = place / "audit";
  Server server(Strings{"--max-output-size", "1024", "--audit-file", audit});
  const auto both = [&](const std::string& command) {
    Json with =
        server.execute_with(Json::object({{"command", command}, {"run_in_background_after", 30}}));
    Json without = server.execute(command);
    for (Json* result : {&with, &without}) result->set("execution_time", 0);
    CHECK(with.dump() == without.dump());
    return with;
  };
  CHECK(both("echo x; echo y >&2; exit 3")["exit_code"] == Json(3));
  CHECK(both("sudo x")["rule"] == Json("sudo"));
  CHECK(both("kill -9 $$")["signal"] == Json(9));
  // Of a long output the beginning, too.
  CHECK(begins(both("seq 1 1000")["stdout"].as_string(), "1\n2\n"));
  CHECK(server.use("list_background_shells")["count"] == Json(0));
  CHECK(lines_of(support::read_file(audit)).size() == 8);
}

TEST_CASE("a command whose client goes away before that is killed") {
  const TempDir place;
  Fifo fifo(place / "fifo");
  Server server;
  server.send(Server::call_line(
      "x", Json::object({{"command", endless(fifo)}, {"run_in_background_after", 60}})));
  const pid_t pid = fifo.read_pid();
  server.cancel("x");
  CHECK(dies(pid));
  CHECK(server.use("list_background_shells")["count"] == Json(0));
}

TEST_CASE("commands with the same session_id begin where the last one ended") {
  const TempDir place;
  place.directory("sub");
  Server server(Strings{"--workspace", place.path(), "--allowed-paths", place.path()});
  const auto run = [&](const char* id, const std::string& command, const char* work_dir = nullptr) {
    Json arguments = Json::object({{"command", command}, {"session_id", id}});
    if (work_dir) arguments.set("work_dir", work_dir);
    return server.execute_with(arguments);
  };
  CHECK(ends(names_of(run("a", "true")), " session_id session_work_dir"));
  Json r = run("a", "cd sub; export X=1; exit 3");
  CHECK(r["exit_code"] == Json(3));
  CHECK(r["work_dir"] == Json(place.path()));
  CHECK(r["session_id"] == Json("a"));
  CHECK(r["session_work_dir"] == Json(place / "sub"));
  r = run("a", "echo $X; pwd");
  CHECK(r["stdout"] == Json("1\n" + (place / "sub") + "\n"));
  CHECK(r["work_dir"] == Json(place / "sub"));
  // Neither another one nor none at all.
  r = run("A", "echo ${X-none}; pwd");
  CHECK(r["stdout"] == Json("none\n" + place.path() + "\n"));
  CHECK(r["session_work_dir"] == Json(place.path()));
  r = server.execute_with(parsed(R"({"command":"echo ${X-none}; pwd","session_id":null})"));
  CHECK(r["stdout"] == Json("none\n" + place.path() + "\n"));
  CHECK_FALSE(r.find("session_id"));
  CHECK_FALSE(r.find("session_work_dir"));

  // Out of what is allowed there is a way back.
  r = run("a", "cd /; cd usr");
  CHECK(r["session_work_dir"] == Json("/usr"));
  r = run("a", "pwd");
  CHECK(r["rule"] == Json("work_dir"));
  CHECK(has(r["stderr"].as_string(), "give a work_dir"));
  CHECK(r["session_work_dir"] == Json("/usr"));
  CHECK(run("a", "pwd", ".")["stdout"] == Json(place.path() + "\n"));
  CHECK(run("a", "pwd; echo $X")["stdout"] == Json(place.path() + "\n1\n"));

  // What goes on in the background belongs to its session all the same.
  Fifo go(place / "go");
  r = server.execute_with(parsed(R"({"command":"cd sub; read x < ../go; export X=2",)"
                                 R"("session_id":"a","run_in_background_after":0.01})"));
  CHECK(r["outcome"] == Json("running"));
  CHECK(r["session_work_dir"] == Json(place.path()));
  go.write_text("go\n");
  CHECK(wait_for_shell(server, r["shell_id"].as_string(), "exit")["exit_code"] == Json(0));
  CHECK(run("a", "pwd; echo $X")["stdout"] == Json((place / "sub") + "\n2\n"));
}

TEST_CASE("names of sessions are bounded, and so is their number") {
  Server server(Strings{"--workspace", "/", "--no-supervisor"});
  const auto arguments = [](const std::string& id, const char* command) {
    return Json::object({{"command", command}, {"session_id", id}});
  };
  const std::string longest(64, 'x');
  CHECK(server.execute_with(arguments(longest, "true"))["session_id"] == Json(longest));
  CHECK(server.execute_with(arguments("Az09._-", "true"))["success"] == Json(true));
  for (const std::string& id : {std::string(), longest + "x", std::string("a b"),
                                std::string("a/b"), std::string("\xc3\xa9"), std::string("a\n")})
    CHECK(has(server.error_of("execute_command", arguments(id, "true")), "session_id"));
  CHECK(has(server.error_of("execute_command", parsed(R"({"command":"true","session_id":1})")),
            "session_id"));

  // Of more than 100 the one goes that was not used for the longest.
  const auto shown = [&](const std::string& id) {
    return server.execute_with(arguments(id, "echo ${X-none}"))["stdout"].as_string();
  };
  for (const char* id : {"first", "second"})
    CHECK(server.execute_with(arguments(id, "export X=1"))["success"] == Json(true));
  for (int i = 0; i < 98; ++i) {
    // Refused, which is quick; a session is used all the same.
    CHECK(server.execute_with(arguments(std::to_string(i), "sudo x"))["rule"] == Json("sudo"));
  }
  CHECK(shown("first") == "1\n");
  CHECK(server.execute_with(arguments("more", "sudo x"))["rule"] == Json("sudo"));
  CHECK(shown("first") == "1\n");
  CHECK(shown("second") == "none\n");
}

TEST_CASE("binary output is given in base64 when that is asked for") {
  Server server(Strings{"--max-output-size", "1024"});
  const auto run = [&](const std::string& command) {
    return server.execute_with(Json::object({{"command", command}, {"encoding", "base64"}}));
  };
  const Json r = run("printf 'a\\377\\000\\r\\n'; printf '\\376' >&2");
  CHECK(r["encoding"] == Json("base64"));
  CHECK(r["stdout"] == Json("Yf8ADQo="));
  CHECK(r["stderr"] == Json("/g=="));
  CHECK(r["stdout_truncated"] == Json(false));
  const Json many = run("head -c 5000 /dev/zero");
  CHECK(many["stdout"].as_string().size() == 1368);
  CHECK(many["stdout_truncated"] == Json(true));
  CHECK(many["stdout_bytes"] == Json(5000));
}

TEST_CASE("an answer in base64 tells what else would end stderr") {
  Server server;
  const auto notes = [&](const char* arguments) {
    const Json r = server.execute_with(parsed(arguments));
    CHECK(r["stderr"] == Json(""));
    REQUIRE(r["notes"].size() == 1);
    return r["notes"][0].as_string();
  };
  CHECK(has(notes(R"({"encoding":"base64","command":"sudo true"})"), "sudo"));
  CHECK(notes(R"({"encoding":"base64","command":"sleep 300","timeout":0.25})") ==
        "Command timed out after 0.25 seconds");
}

TEST_CASE("an answer in base64 has room for itself beside a long command") {
  Server server;
  const Json r = server.execute_with(
      Json::object({{"command", ": " + std::string(1900000, 'x') +
                                    "; head -c 1000000 /dev/zero | tr '\\0' x | tee /dev/stderr"},
                    {"encoding", "base64"}}));
  CHECK(r["stdout"].as_string().size() == 1333336);
  CHECK(r["stderr"].as_string().size() == 1333336);
  CHECK(server.last_line_size <= std::size_t{8} << 20);
}

// code --------------------------------------------------------------------------------------------

TEST_CASE("code runs from a file, and its tool passes the gate") {
  if (!has_python()) return;
  const TempDir place;
  const std::string audit = place / "audit";
  const std::string workspace = place.directory("workspace");
  Server server(Strings{"--workspace", workspace, "--audit-file", audit});
  const std::string code = "# filename: tools/quote.py\nprint('it\\'s \"$HOME\" `x`')\n";
  Json r = server.use("execute_code", Json::object({{"language", "python"}, {"code", code}}));
  CHECK(begins(names_of(r), seven_keys));
  CHECK(r["success"] == Json(true));
  CHECK(r["stdout"] == Json("it's \"$HOME\" `x`\n"));
  CHECK(r["code_file"] == Json(workspace + "/tools/quote.py"));
  CHECK(r["blocks"] == Json(1));
  CHECK(support::read_file(workspace + "/tools/quote.py") == code);
  const Json record = parsed(support::read_file(audit));
  CHECK(record["tool"] == Json("execute_code"));
  CHECK(record["code"] == Json(code));

  r = server.use("execute_code", Json::object({{"code",
                                                "First:\n```sh\necho one\n```\nthen\n```python\n"
                                                "print('two'); raise SystemExit(5)\n```\n"
                                                "```sh\necho three\n```\n"}}));
  CHECK(r["success"] == Json(false));
  CHECK(r["exit_code"] == Json(5));
  CHECK(r["stdout"] == Json("one\ntwo\n"));
  CHECK(r["blocks"] == Json(2));
  CHECK(r["files"].size() == 2);

  // What is only saved needs no command.
  r = server.use("execute_code", Json::object({{"language", "html"}, {"code", "<p>x</p>\n"}}));
  CHECK(r["success"] == Json(true));
  CHECK(r["exit_code"] == Json(0));
  CHECK(r["blocks"] == Json(0));
  CHECK(support::read_file(r["code_file"].as_string()) == "<p>x</p>\n");

  CHECK(has(server.error_of("execute_code", parsed(R"({"language":"markdown","code":"no fence"})")),
            "no fenced block"));
  // What looks like code is no Markdown, whatever its texts hold.
  r = server.use("execute_code",
                 Json::object({{"code", "print('''\n```sh\nexit 7\n```\n'''.count('7'))\n"}}));
  CHECK(r["stdout"] == Json("1\n"));

  // A shell's code is a command like any other; nothing was written before it was judged.
  r = server.use("execute_code", Json::object({{"language", "bash"}, {"code", "sudo true"}}));
  CHECK(r["rule"] == Json("sudo"));
  r = server.use("execute_code", Json::object({{"language", "cobol"}, {"code", "STOP RUN."}}));
  CHECK(r["success"] == Json(false));
  CHECK(has(r["stderr"].as_string(), "cobol"));
  r = server.use("execute_code",
                 Json::object({{"language", "python"}, {"code", "# filename: ../x.py\n"}}));
  CHECK(r["success"] == Json(false));
  CHECK(has(r["stderr"].as_string(), "Filename is not in the workspace"));
  CHECK(!support::exists(place / "x.py"));
}

TEST_CASE("code that is only saved is a success") {
  const TempDir place;
  Server server(Strings{"--workspace", place.path()});
  const Json r = server.use("execute_code", Json::object({{"language", "html"}, {"code", "<p>"}}));
  CHECK(r["success"] == Json(true));
  CHECK(r["outcome"] == Json("exited"));
  CHECK(r["stderr"] == Json(""));
  CHECK(r["blocks"] == Json(0));
  CHECK(r["code_file"].is_string());
}

TEST_CASE("many blocks take no more memory, time and room than they may") {
  const TempDir place;
  Server server(Strings{"--workspace", place.path(), "--max-output-size", "1024"});
  const auto fenced = [](const std::string& code, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += "```sh\n" + code + "\n```\n";
    return Json::object({{"code", text}});
  };
  Json r =
      server.use("execute_code", fenced("head -c 2000 /dev/zero | tr '\\0' x; echo y >&2", 50));
  CHECK(r["success"] == Json(true));
  CHECK(r["blocks"] == Json(50));
  CHECK(r["stdout_bytes"] == Json(100000));
  CHECK(r["stdout_truncated"] == Json(true));
  CHECK(r["stdout"].as_string().size() < 5000);
  CHECK(r["stderr"].as_string().size() == 100);
  CHECK(r["stderr_truncated"] == Json(false));
  CHECK(has(server.error_of("execute_code", fenced("touch ran", 101)), "101 code blocks"));
  CHECK(!support::exists(place / "ran"));

  Server bounded(Strings{"--workspace", place.path(), "--running-time", "1"});
  r = bounded.use("execute_code", fenced("echo begun; sleep 0.4", 20));
  CHECK(r["success"] == Json(false));
  CHECK(r["blocks"].as_number() <= 4);
  CHECK(begins(r["stdout"].as_string(), "begun\n"));
}

// files -------------------------------------------------------------------------------------------

TEST_CASE("files are written, read, listed and searched for docstrings") {
  const TempDir place;
  Server server(Strings{"--workspace", place.path(), "--allowed-paths", place.path()});
  Json r = server.use("write_file",
                      Json::object({{"file_path", "src/m.py"},
                                    {"content", "def f():\n    \"\"\"Says f.\"\"\"\n\nf()\n"}}));
  CHECK(names_of(r) == "success file_path bytes");
  CHECK(r["file_path"] == Json(place / "src/m.py"));
  CHECK(r["bytes"] == Json(32));
  r = server.use("read_file", R"({"file_path":"src/m.py","offset":1,"count":2})");
  CHECK(begins(names_of(r), "file_path content encoding size offset begin lines next more"));
  CHECK(r["content"] == Json("    \"\"\"Says f.\"\"\"\n\n"));
  CHECK(r["lines"] == Json(2));
  CHECK(r["next"] == Json(3));
  CHECK(r["more"] == Json(true));
  r = server.use("read_file", R"({"file_path":"src/m.py","unit":"bytes","offset":28})");
  CHECK(r["content"] == Json("f()\n"));
  r = server.use("list_files", R"({"path":"src"})");
  CHECK(names_of(r) == "path entries more");
  REQUIRE(r["entries"].size() == 1);
  CHECK(names_of(r["entries"][0]) == "path type size modified");
  CHECK(r["entries"][0]["path"] == Json("m.py"));
  CHECK(server.use("list_files")["entries"].size() == 1);
  r = server.use("read_docstring", R"({"file_path":"src/m.py","function_name":"f"})");
  CHECK(r["docstring"] == Json("Says f."));
  CHECK(has(server.error_of("read_docstring",
                            parsed(R"({"file_path":"src/m.py","function_name":"F.by"})")),
            "m.py', 'F.by': "));

  // Binary files as base64, images as images.
  server.use("write_file", R"({"file_path":"b","content":"AP8=","encoding":"base64"})");
  CHECK(support::read_file(place / "b") == std::string("\0\xff", 2));
  CHECK(has(server.error_of("read_file", parsed(R"({"file_path":"b"})")), "base64"));
  CHECK(server.use("read_file", R"({"file_path":"b","encoding":"base64"})")["content"] ==
        Json("AP8="));
  CHECK(has(server.error_of("write_file",
                            parsed(R"({"file_path":"b","content":"!","encoding":"base64"})")),
            "base64"));
  place.file("p.png", std::string("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16));
  const Json image = server.ask_tool("read_file", parsed(R"({"file_path":"p.png"})"));
  CHECK(image["content"][0]["type"] == Json("image"));
  CHECK(image["content"][0]["mimeType"] == Json("image/png"));
}

TEST_CASE("W-54: file tools stay within the roots, mask secrets and are on the audit log") {
  const TempDir place;
  const TempDir outside;
  outside.file("secret", "hidden");
  place.file("ro/file", "old");
  place.file("with_secret", "the key is hunter2!");
  support::make_symlink(outside.path(), place / "link");
  const std::string audit = outside / "audit";
  Server::Options options;
  options.arguments = {"--workspace",  place.path(), "--allowed-paths", place.path(),
                       "--read-only",  place / "ro", "--audit-file",    audit,
                       "--secret-env", "TOKEN",      "--sandbox",       "off"};
  options.environment = {"TOKEN=hunter2"};
  Server server(options);
  const auto error = [&](const std::string& tool, const std::string& path) {
    Json arguments = Json::object({{tool == "list_files" ? "path" : "file_path", path}});
    if (tool == "write_file") arguments.set("content", "new");
    return server.error_of(tool, arguments);
  };
  std::size_t refusals = 0;
  for (const std::string& path :
       {outside / "secret", place / "link/secret", std::string("../") + "x",
        std::string("x; echo INJECTED"), std::string("/proc/self/environ")}) {
    for (const char* tool : {"read_file", "write_file", "read_docstring", "list_files"}) {
      // A name with a blank is a name: it can be made.
      if (path[0] == 'x' && std::string(tool) == "write_file") continue;
      CAPTURE(path);
      CAPTURE(std::string(tool));
      CHECK(!has(error(tool, path), "hidden"));
      ++refusals;
    }
  }
  CHECK(support::read_file(outside / "secret") == "hidden");
  CHECK(has(error("write_file", "ro/file"), "read"));
  CHECK(support::read_file(place / "ro/file") == "old");
  CHECK(server.use("read_file", R"({"file_path":"with_secret"})")["content"] ==
        Json("the key is [redacted]!"));
  CHECK(server.finish().empty());
  const Strings records = lines_of(support::read_file(audit));
  REQUIRE(records.size() == refusals + 2);
  CHECK(parsed(records[0])["tool"] == Json("read_file"));
  CHECK(parsed(records[0])["allowed"] == Json(false));
  CHECK(parsed(records.back())["command"] == Json("read_file with_secret"));
  CHECK(parsed(records.back())["outcome"] == Json("exited"));
}

TEST_CASE("secrets are masked in names and in base64, too") {
  const TempDir place;
  place.file("a", "the key is hunter2!");
  place.file("hunter2/b", std::string("x\0", 2));
  place.file("hunter2/m.py", "def f(): 'says f'\n");
  Server::Options options;
  options.arguments = {"--workspace", place.path(), "--secret-env", "TOKEN"};
  options.environment = {"TOKEN=hunter2"};
  Server server(options);
  const auto told = [&](const std::string& tool, const char* arguments) {
    const std::string answer = server.ask_tool(tool, parsed(arguments)).dump();
    CHECK_MESSAGE(!has(answer, "hunter2"), answer);
    return answer;
  };
  CHECK(has(told("list_files", R"({"depth":2})"), "[redacted]/m.py"));
  CHECK(has(told("read_file", R"({"file_path":"a","encoding":"base64"})"),
            "dGhlIGtleSBpcyBbcmVkYWN0ZWRdIQ=="));
  const std::string id = R"({"file_path":"hunter2/)";
  CHECK(has(told("read_file", (id + R"(b"})").c_str()), "binary"));
  CHECK(has(told("read_file", (id + "m.py\"}").c_str()), "says f"));
  CHECK(has(told("write_file", (id + "c\",\"content\":\"\"}").c_str()), "[redacted]/c"));
  CHECK(has(told("read_docstring", (id + "m.py\",\"function_name\":\"f\"}").c_str()), "says f"));
  CHECK(has(told("read_docstring", (id + "m.py\",\"function_name\":\"g\"}").c_str()), "defined"));
  CHECK(has(told("execute_code", R"({"language":"css","code":"/* filename: hunter2/x.css */"})"),
            "[redacted]/x.css"));
}

TEST_CASE("the delete guard knows what the file tools read and made") {
  const TempDir place;
  place.file("a", "x");
  Server server(Strings{"--workspace", place.path(), "--delete-guard"});
  // To see nothing of it is not to read it.
  server.use("read_file", R"({"file_path":"a","count":0})");
  CHECK(server.execute("rm a")["rule"] == Json("delete-guard"));
  server.use("read_file", R"({"file_path":"a"})");
  server.use("write_file", R"({"file_path":"b","content":"y"})");
  CHECK(server.execute("rm a b")["success"] == Json(true));
}

// fair use ----------------------------------------------------------------------------------------

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
  CHECK(tools.size() == 10);
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
  CHECK(told({"--disable-tool", "execute_command", "start_background_shell", "execute_code",
              "--allowed-commands", "git .*", "--blocked-commands", "git push.*", "--delete-guard",
              "--running-time", "5"}) == "");

  Server server(Strings{"--disable-tool", "get_background_shell_output", "kill_background_shell"});
  const Json r =
      server.execute_with(parsed(R"({"command":"sleep 300","run_in_background_after":0.01})"));
  CHECK(r["notes"][0] ==
        Json("the command goes on in the background as " + r["shell_id"].as_string()));
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
  CHECK(has(plain, "/bin/sh"));
  CHECK(has(plain, "start_background_shell (at most 10 at a time)"));
  for (const char* absent : {"pattern", "sandbox", "in a minute", "before it", "virtual env"})
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
