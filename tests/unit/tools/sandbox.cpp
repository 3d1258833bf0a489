// The server program with a sandbox.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/server_support.hpp"
#include "helpers.hpp"

using codeexec::Json;
using codeexec::ProcessResult;
using support::all_keys;
using support::begins;
using support::check_refused;
using support::enforces;
using support::has;
using support::lines_of;
using support::names_of;
using support::parsed;
using support::report_of;
using support::run_bare;
using support::run_command;
using support::run_program;
using support::Server;
using support::Strings;
using support::TempDir;

TEST_CASE("the sandbox is best_effort unless an option says otherwise") {
  if (!support::confines()) return;
  const TempDir place;
  const auto mode_of = [&](Strings arguments) {
    arguments.insert(arguments.end(), {"--workspace", place.path(), "--sandbox-report"});
    return parsed(run_bare(arguments).out)["mode"].as_string();
  };
  const Strings paths = {"--allowed-paths", place.path()};
  const auto with = [](Strings arguments, const Strings& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  CHECK(mode_of({}) == "best_effort");
  CHECK(mode_of(paths) == "best_effort");
  CHECK(mode_of({"--read-only", "/usr"}) == "best_effort");
  CHECK(mode_of({"--sandbox", "off"}) == "off");
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
  for (const char* mode : {"best-effort", "strict"})
    check_refused(run_program({"--sandbox", mode, "--workspace", "/", "--run", "true"}),
                  "workspace: a sandbox cannot be given '/'");
  check_refused(run_program({"--allowed-paths", "/", "--run", "true"}),
                "allowed_paths: a sandbox cannot be given '/'");
  check_refused(run_program({"--allowed-paths", "/usr", "--run", "true"}), "allowed_paths: '/usr'");
  check_refused(run_bare({"--workspace", "/usr", "--run", "true"}), "workspace: '/usr'");
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
  CHECK(begins(names_of(report), "mode network landlock_abi enforced missing"));
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

TEST_CASE("--read-only of the workspace itself: commands may change nothing but their home") {
  const TempDir place;
  place.file("file", "x");
  const std::string config =
      place.file("c.json", R"({"read_only": ["."], "sandbox": "best_effort"})");
  const Strings arguments = {"--config", config};
  if (!enforces(report_of(arguments, place.path()), "filesystem")) {
    MESSAGE("SKIPPED: no sandbox here");
    return;
  }
  const Json read =
      run_command("cat file; echo y > \"$HOME/f\" && cat \"$HOME/f\"", arguments, place.path());
  CHECK(read["stdout"] == Json("xy\n"));
  CHECK(run_command("echo y > file", arguments, place.path())["rule"] == Json("read-only"));
  // By a variable that the policy cannot know.
  CHECK(run_command("d=$(printf file); sh -c 'echo y > $0' $d", arguments,
                    place.path())["success"] == Json(false));
  CHECK(support::read_file(place / "file") == "x");
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
  if (!support::confines()) return;
  const TempDir place;
  const Strings arguments = {"--sandbox", "best-effort", "--workspace", place.path()};
  const Json quiet = run_command("true", arguments);
  CHECK(names_of(quiet) == all_keys + " sandbox");
  CHECK(quiet["sandbox"]["mode"] == Json("best_effort"));
  CHECK(quiet["sandbox"]["network"] == Json("host"));
  const Json changed = run_command("echo x > .envrc", arguments);
  CHECK(names_of(changed) == all_keys + " notes sandbox put_back");
  CHECK(changed["put_back"] == Json::array({place / ".envrc"}));
  const Strings allowed = {"--sandbox",  "best-effort",   "--workspace",
                           place.path(), "--allow-later", "."};
  const Json reported = run_command("echo x > .envrc", allowed);
  CHECK(names_of(reported) == all_keys + " notes sandbox changed_files");
  CHECK(reported["changed_files"] == Json::array({place / ".envrc"}));
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
  CHECK(!has(told({}), "in a sandbox"));
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

TEST_CASE("an empty workspace costs few system calls to be watched") {
  if (!support::confines()) return;
  const TempDir place;
  const TempDir traces;
  // Counts what looks at files, of the server and of its command. A call in which another thread
  // was traced has two lines, the second one with "resumed".
  const auto looks = [&](const Strings& more) {
    const std::string trace = traces / "trace";
    codeexec::ProcessOptions options;
    options.argv = {"strace",
                    "-f",
                    "-qq",
                    "-o",
                    trace,
                    "-e",
                    "trace=%file,%desc",
                    CODEEXEC_MCP,
                    "--allowed-paths",
                    place.path(),
                    "--run",
                    "true"};
    options.argv.insert(options.argv.end(), more.begin(), more.end());
    // A server that looks for leaks at its end does not bear a tracer.
    options.environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/nonexistent",
                           "ASAN_OPTIONS=detect_leaks=0"};
    options.work_dir = place.path();
    options.supervised = false;
    const ProcessResult result = codeexec::run_process(options);
    std::size_t count = 0;
    for (const std::string& line :
         lines_of(support::exists(trace) ? support::read_file(trace) : ""))
      if (has(line, "stat") && !has(line, " resumed>")) ++count;
    return result.succeeded() ? count : 0;
  };
  std::size_t without = looks({"--no-watch-files"});
  if (without == 0) {
    MESSAGE("SKIPPED: no strace that may trace here");
    return;
  }
  // The sandbox looks at the whole of /etc, too, which another program may change meanwhile, for a
  // moment only as well. So the count with watching is compared when those before and behind it are
  // the same, and once more when it is too high then.
  std::size_t with = looks({});
  for (int tries = 0; tries < 20; ++tries) {
    const std::size_t again = looks({"--no-watch-files"});
    if (again == without && with <= without + 12) break;
    without = again;
    with = looks({});
  }
  CHECK(with <= without + 12);
}
