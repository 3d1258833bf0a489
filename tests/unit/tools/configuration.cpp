// Configuration files and wrong command lines.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <map>

#include "../../helpers/server_support.hpp"
#include "helpers.hpp"

using codeexec::Json;
using codeexec::ProcessResult;
using support::begins;
using support::check_refused;
using support::ends;
using support::has;
using support::is_list;
using support::is_number;
using support::key_of;
using support::lines_of;
using support::options_of_help;
using support::parsed;
using support::run_command;
using support::run_program;
using support::Server;
using support::Strings;
using support::TempDir;

TEST_CASE("the reference's other names of keys are accepted, with and without command_line_") {
  if (!support::confines()) return;
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
    const ProcessResult r = run_program(
        {"--config", config, "--policy", mode, "--workspace", place.path(), "--check", command});
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
       Strings{"git status", "git pushx", "rm build/x", "echo git push", "git push origin"})
    CHECK_MESSAGE(rule_of(read_only, "strict", command) == "", command);
}

TEST_CASE("without a workspace, commands start where they may work") {
  const support::TempDir place;
  const std::string first = place.directory("first");
  const std::string second = place.directory("second");
  const auto work_dir = [&](Strings arguments, const std::string& here) {
    arguments.insert(arguments.end(), {"--sandbox", "off", "--run", "pwd"});
    const ProcessResult r = run_program(arguments, here);
    CHECK(r.err == "");
    return parsed(r.out)["stdout"].as_string();
  };
  CHECK(work_dir({"--allowed-paths", first, second}, "/") == first + "\n");
  CHECK(work_dir({"--allowed-paths", first, second}, second) == second + "\n");
  CHECK(work_dir({"--read-only", first}, second) == second + "\n");
  CHECK(work_dir({"--allowed-paths", first, "--workspace", first}, second) == first + "\n");
}

TEST_CASE("a workspace outside of the allowed paths is warned of at the start") {
  const support::TempDir allowed;
  const auto warnings = [&](const std::string& workspace) {
    return run_program(
               {"--allowed-paths", allowed.path(), "--workspace", workspace, "--sandbox", "off"})
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

TEST_CASE("a pattern of the configuration file may have a reason and examples") {
  const TempDir place;
  const auto check = [&](const std::string& patterns, const std::string& command) {
    const std::string file = place.file("c.json", R"({"blocked_commands":[)" + patterns + "]}");
    return run_program({"--config", file, "--check", command});
  };
  const std::string good = R"("rm x",{"pattern":"git push.*","reason":"open a merge request",)"
                           R"("match":["git push -f"],"not_match":["git pull"]},)"
                           R"({"prefix":["a.b","c"],"match":["a.b c","a.b c d"],)"
                           R"("not_match":["axb c","a.b cd"]})";
  const Json verdict = parsed(check(good, "git push -f").out);
  CHECK(verdict["message"] ==
        Json("Command matches blocked pattern: 'git push.*'; open a merge request"));
  CHECK(parsed(check(good, "a.b c x").out)["rule"] == Json("blocked-commands"));
  CHECK(parsed(check(good, "git pull").out)["allowed"] == Json(true));
  const std::pair<const char*, const char*> wrong[] = {
      {R"({"pattern":"git push.*","match":["git pull"]})",
       "blocked_commands: 'git push.*' does not match its example 'git pull'"},
      {R"({"prefix":["git"],"not_match":["git log"]})", "must not and does match its example"},
      {R"({"pattern":"a","prefix":["a"]})", "needs either a pattern or a prefix"},
      {R"({"reason":"a"})", "needs either a pattern or a prefix"},
      {R"({"prefix":[]})", "needs either a pattern or a prefix"},
      {R"({"pattern":"a","why":"b"})", "unknown key 'why' of a pattern"},
      {R"({"pattern":["a"]})", "pattern of a pattern must be a string"},
      {R"({"pattern":"a","match":"a"})", "match of a pattern must be a list of strings"},
      {R"({"pattern":"a","match":[1]})", "match of a pattern must be a list of strings"},
      {R"({"pattern":"(","reason":"x"})", "invalid pattern"},
      {"1", "every item must be a string"}};
  for (const auto& each : wrong) {
    const ProcessResult r = check(each.first, "true");
    CHECK_MESSAGE(r.exit_code == 2, r.err);
    CHECK_MESSAGE(has(r.err, each.second), r.err);
    CHECK(lines_of(r.err).size() == 1);
  }
}

TEST_CASE("the command line wins over the configuration file") {
  if (!support::confines()) return;
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
      {"ADDRESS...", {""}},
      {"NAME:ADDRESS...", {""}},
      {"GPUS", {""}},
      {"WORD...", {"", "-v", "/dev/fuse", "name=x", "network=host", "a=\x01"}},
      {"BOOL", {"maybe", "", "1"}},
      {"CPUS", {"abc", "-1", "", "2x", "1e400"}},
      {"ID", {""}},
      {"IMAGE", {"", "-v", "a b"}},
      {"JSON", {"", "{", "[]", "true", R"({"unknown":1})"}},
      {"NAME", {""}},
      {"POLICY", {"", "sometimes", "Never"}},
      {"PROGRAM", {""}},
      {"SIZE", {"abc", "-5", "", "1.5", "m", "b", "1x", "1kk", "1 k", "1e400", "1e16"}},
      {"SRC[:DST][:ro|:rw]...", {"", ":/x", "/usr:x", "/usr:/a:/b", missing, "/usr:/proc/x", "/"}},
      {"USER", {"", "-u", "a b"}},
      {"DIR", {missing, file}},
      {"DIR...", {missing, file, ""}},
      {"FILE", {missing + "/x", place.path()}},
      {"PATH", {missing, file, "sh", "", place.path()}},
      {"SECONDS", {"abc", "0", "-5", "", "1s", "0x10", "nan", "inf", "1e400", "31536001", "5,0"}},
      {"N", {"abc", "0", "-5", "", "1.5", "1e400", "1e16"}},
      {"PATTERN...", {"(", "a**", "[z-a]", "(?=x)", "(a)\\1"}},
      {"NAME=VALUE...", {"noequals", "=x", ""}},
      {"MODE", {"dock", "srt", "", "Local", "Strict"}},
      {"WORDS", {" ", "a\nb"}}};
  const Strings no_amounts = {"abc", "0", "-5", "", "1.5", "1k", "1e400", "1e16"};
  const Strings no_sizes = {"abc", "0", "0k", "-5", "", "1.5", "m", "1kk", "1 k", "1e400", "1e16"};
  // Names are wrong in different ways; an agent may be called anything.
  const std::map<std::string, Strings> wrong_by_name = {
      {"answer-within", {"abc", "-5", "", "1s", "0x10", "nan", "inf", "31536001"}},
      {"disable-rule", {"sodu", ""}},
      {"ask-rule", {"sodu", ""}},
      {"allow-domains", {"", "pyton", "*", "https://example.org", "127.1"}},
      {"deny-domains", {"", "pyton", "*", "https://example.org", "127.1", "=reason"}},
      {"disable-tool", {"write_files", ""}},
      {"place-command", {"", " ", "a | b", "a; b", "a > b", "A=b", "$A", "a *", "~/a", "'a"}},
      {"place-host", {"", "-oProxyCommand=true"}},
      {"place-agent-path", {""}},
      {"slurm-option", {"", "--mem=1G", "-p", "1", "Mem=1"}},
      {"kubernetes-option", {"", "--context=lab", "-n", "1", "Context=lab"}},
      {"kubernetes-limit", {"", "memory", "memory=", "=1Gi"}},
      {"kubernetes-image", {""}},
      {"kubernetes-claim", {""}},
      {"kubernetes-pod-template", {""}},
      {"kubernetes-warm-pool", {""}},
      {"kubernetes-lifetime", {"abc", "0", "-5", "", "1.5"}},
      {"place-workspace", {"", "copied", "Remote"}},
      {"place-copy-exclude", {"", "a\nb"}},
      {"place-copy-gitignore", {"maybe"}},
      {"place-keep-alive", {"abc", "0", "0.5", "-5", ""}},
      {"keep-env", {"A=B", "", "A*B"}},
      {"protect-paths", {"", "/usr", "../x", "a/../b"}},
      {"secret-env", {"A=B", "", "CODEEXEC_NOT_THERE"}},
      {"enable-sudo", {"maybe"}},
      {"docker-cache", {"", "a b", "-x", "a/b"}},
      {"docker-network", {"", "a b", "-x"}},
      {"docker-packages-required", {"maybe"}},
      {"docker-persistent", {"maybe"}},
      {"docker-pids-limit", {"abc", "-5", "", "1.5", "1k", "1e400", "1e16"}},
      {"docker-log-file", {""}},
      {"place-agent", {"/nonexistent/agent", "/"}},
      {"profile", {"", "user", "Commands"}},
      {"delete-guard", {"maybe"}},
      {"allow-usual", {"maybe"}},
      {"audit-syslog", {"", "/nonexistent/log"}},
      {"no-git-identity", {"maybe"}},
      {"full-results", {"maybe"}},
      {"result-text", {"", "text", "JSON"}},
      {"unix-sockets", {"maybe"}},
      {"shared-memory", {"maybe"}},
      {"terminals", {"maybe"}},
      {"pid-namespace", {"maybe"}},
      {"protected-paths", {"", "/etc", "a/../b"}},
      {"hidden-paths", {"", "/", "."}},
      {"devices", {"", "gpus", "dev/kvm"}},
      {"no-supervisor", {"maybe"}},
      {"no-watch-files", {"maybe"}},
      {"allow-later", {"", "a/../b", "../a"}},
      {"put-back-dir", {"/dev/null"}},
      {"no-private-tmp", {"maybe"}},
      {"max-output-size", {"abc", "0", "-5", "", "1.5", "1kk", "1e400", "1e16", "100"}},
      {"limit-cpu", no_amounts},
      {"limit-memory", no_sizes},
      {"limit-address-space", no_sizes},
      {"limit-file-size", no_sizes},
      {"limit-disk", no_sizes},
      {"no-auto-venv", {"maybe", "1"}}};
  for (const auto& option : options_of_help()) {
    const std::string& name = option.first;
    const std::string& value = option.second;
    CAPTURE(name);
    const auto by_name = wrong_by_name.find(name);
    const auto by_kind = wrong.find(value);
    REQUIRE_MESSAGE((by_name != wrong_by_name.end() || by_kind != wrong.end()),
                    "wrong values are missing for --", name, " or for its kind ", value);
    const Strings& words = by_name != wrong_by_name.end() ? by_name->second : by_kind->second;
    const std::string key = key_of(name);
    // Where the option has a meaning.
    Strings here;
    if (begins(name, "docker-") || ends(name, "s-path") || name == "place-agent")
      here = {"--execution-mode", "docker", "--workspace", place.path()};
    if (name == "deny-domains") here = {"--allow-domains", "example.org"};
    if (name == "allow-domains" || name == "deny-domains")
      here.insert(here.end(),
                  {"--network", "allow", "--sandbox", "best-effort", "--workspace", place.path()});
    if (name == "allow-later" || name == "put-back-dir")
      here = {"--sandbox", "best-effort", "--workspace", place.path()};
    if (name == "place-command") here = {"--execution-mode", "command"};
    if (name == "place-host") here = {"--execution-mode", "ssh"};
    if (name == "slurm-option" || name == "place-start-timeout" || name == "place-pool")
      here = {"--execution-mode", "slurm"};
    if (begins(name, "kubernetes-")) {
      here = {"--execution-mode", "kubernetes"};
      if (name == "kubernetes-option" || name == "kubernetes-limit")
        here.insert(here.end(), {"--kubernetes-image", "x"});
    }
    if (name == "place-agent-path" || name == "place-keep-alive" || name == "place-workspace")
      here = {"--execution-mode", "ssh", "--place-host", "nobody.invalid"};
    if (begins(name, "place-copy-"))
      here = {"--execution-mode",  "ssh", "--place-host", "nobody.invalid",
              "--place-workspace", "copy"};
    if (name == "user-id" || name == "max-artifact-size" || ends(name, "s-size") ||
        name == "workspace-size")
      here = {"--profile", "user-container"};
    const auto check_named = [&](Strings arguments) {
      arguments.insert(arguments.end(), here.begin(), here.end());
      const ProcessResult r = run_program(arguments, place.path());  // a project
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
  for (const char* key : {"workspace", "shell", "audit_file", "audit_key", "spill_dir", "venv_path",
                          "local_skills_directory"}) {
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
  check_refused(run_program({"--place", "here"}), "--place");
  check_refused(run_program({"--place", "--run", "true"}),
                "--place takes no option but --agent-id");
  check_refused(run_program({"--execution-mode", "ssh"}), "needs a place_host");
  check_refused(run_program({"--execution-mode", "command"}), "needs a place_command");
  check_refused(run_program({"--place-host", "box"}), "has no effect with");
  // A container has the workspace of this host.
  for (const char* mode : {"docker", "local"})
    check_refused(run_program({"--execution-mode", mode, "--place-workspace", "remote"}),
                  std::string("place_workspace has no effect with execution_mode ") + mode);
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
