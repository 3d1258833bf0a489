// --doctor of commands on this host: what they are kept from, in lines with a state and a remedy.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/server_support.hpp"
#include "../tools/helpers.hpp"

using codeexec::Json;
using codeexec::ProcessResult;
using support::begins;
using support::enforces;
using support::has;
using support::lines_of;
using support::report_of;
using support::run_argv;
using support::run_program;
using support::Strings;
using support::TempDir;

namespace {

// The line of a subject among the first ones, which are about it as users see it.
std::string line_about(const std::string& text, const std::string& subject) {
  for (const std::string& line : lines_of(text))
    if (line.size() > 5 && begins(line.substr(5), subject + ": ")) return line;
  return {};
}

ProcessResult examine(const TempDir& place, const Strings& more = {}) {
  Strings arguments = {"--workspace", place.path(), "--allowed-paths", place.path(), "--doctor"};
  arguments.insert(arguments.begin(), more.begin(), more.end());
  return run_program(arguments, place.path());
}

bool can_confine() {
  const TempDir place;
  const Json report = report_of({"--allowed-paths", place.path()}, place.path());
  if (enforces(report, "filesystem") && report["missing"].size() == 0) return true;
  MESSAGE("SKIPPED: the sandbox is not complete here");
  return false;
}

}  // namespace

TEST_CASE("doctor: without a sandbox nothing is well, and the exit status says so") {
  const ProcessResult off = run_program({"--sandbox", "off", "--doctor"});
  CHECK(off.exit_code == 1);
  CHECK(begins(off.out, "FAIL sandbox: off: "));
  CHECK(has(lines_of(off.out)[0], "--allowed-paths"));
  CHECK(line_about(off.out, "files").empty());
  CHECK(begins(line_about(off.out, "user"), ::geteuid() == 0 ? "warn user: " : "ok   user: "));
}

TEST_CASE("doctor: each line of a confined server has a state, and each feature stands alone") {
  const TempDir place;
  const Strings paths = {"--allowed-paths", place.path()};
  const Json report = report_of(paths, place.path());
  const ProcessResult on = examine(place);
  CHECK(on.err == "");
  CHECK(on.exit_code == (report["missing"].size() > 0 ? 1 : 0));
  for (const std::string& line : lines_of(on.out))
    CHECK_MESSAGE((begins(line, "ok   ") || begins(line, "warn ") || begins(line, "FAIL ")), line);
  for (const Json& feature : report["enforced"].items())
    CHECK(has(on.out, "\nok   " + feature.as_string() + "\n"));
  for (const Json& gap : report["missing"].items()) CHECK(has(on.out, "\nFAIL " + gap.as_string()));
}

TEST_CASE("doctor: what commands can write, read and reach") {
  if (!can_confine()) return;
  const TempDir place;
  const TempDir other;
  const ProcessResult open = examine(place, {"--read-only", other.path()});
  CHECK(begins(open.out, "ok   sandbox: "));
  const std::string files = line_about(open.out, "files");
  CHECK(has(files, "write only in " + place.path() + " and a HOME"));
  CHECK(has(files, "read that, " + other.path() + ", "));
  CHECK(begins(line_about(open.out, "home"), "ok   "));
  CHECK(begins(line_about(open.out, "network"), "warn network: open"));
  CHECK(has(line_about(open.out, "network"), "--network none"));
  CHECK(has(line_about(open.out, "limits"), "--limit-memory"));
  const ProcessResult closed =
      examine(place, {"--network", "none", "--limit-file-size", "1g", "--private-home", "off"});
  CHECK(line_about(closed.out, "network") == "ok   network: off");
  CHECK(!has(line_about(closed.out, "limits"), "--limit-disk"));
  CHECK(has(line_about(closed.out, "files"), "write only in " + place.path() + ", and"));
  CHECK(begins(line_about(closed.out, "processes"), "ok   "));
}

TEST_CASE("doctor: a home as an allowed path, and a folder of the PATH that opens what is beside") {
  if (!can_confine()) return;
  const TempDir place;
  const std::string home = place.directory("home");
  place.directory("home/.ssh");
  const ProcessResult wide =
      run_program({"--workspace", home, "--allowed-paths", home, "--doctor"}, home);
  CHECK(begins(line_about(wide.out, "home"), "warn home: " + home));
  CHECK(has(line_about(wide.out, "home"), "name the folder of a project"));
  CHECK(wide.exit_code == 0);

  const TempDir project;
  const std::string bin = project.directory("bin");
  const auto with_path = [&] {
    return run_argv({"/usr/bin/env", "PATH=" + bin + ":/usr/bin:/bin", CODEEXEC_MCP, "--workspace",
                     place.path(), "--allowed-paths", place.path(), "--doctor"},
                    place.path(), {"HOME=/nonexistent"});
  };
  CHECK(line_about(with_path().out, "PATH").empty());
  project.file("data", "x");
  const std::string line = line_about(with_path().out, "PATH");
  CHECK(begins(line, "warn PATH: " + bin));
  CHECK(has(line, "in " + project.path() + ";"));
}

TEST_CASE("doctor: colours are for terminals whose user wants them") {
  const std::string command = std::string("'" CODEEXEC_MCP "' --sandbox off --doctor");
  if (!run_argv({"/bin/sh", "-c", "command -v script"}, "/", {}).succeeded()) {
    MESSAGE("SKIPPED: there is no program `script` to make a terminal");
    return;
  }
  const auto on_terminal = [&](const Strings& variables) {
    return run_argv({"script", "-qec", command, "/dev/null"}, "/", variables).out;
  };
  CHECK(begins(on_terminal({"TERM=xterm"}), "\033[1;31mFAIL \033[0msandbox: off"));
  CHECK(begins(on_terminal({"TERM=xterm", "NO_COLOR=1"}), "FAIL sandbox: off"));
  CHECK(begins(on_terminal({"TERM=xterm", "NO_COLOR="}), "\033["));
  CHECK(begins(on_terminal({"TERM=dumb"}), "FAIL sandbox: off"));
  CHECK(begins(run_program({"--sandbox", "off", "--doctor"}).out, "FAIL sandbox: off"));
}
