// What a person sees first: --help, --help-all, the greeting on a terminal, --explain.

#include <fcntl.h>
#include <unistd.h>

#include <map>
#include <set>

#include "helpers.hpp"

namespace {

using codeexec::Json;
using codeexec::ProcessResult;
using support::begins;
using support::check_refused;
using support::enforces;
using support::has;
using support::lines_of;
using support::parsed;
using support::run_program;
using support::Strings;
using support::TempDir;

Json all_options() { return parsed(run_program({"--help-all", "--json"}).out); }

}  // namespace

TEST_CASE("--help fits one screen: each option that is needed often, on one line") {
  for (const char* option : {"--help", "-h"}) {
    const ProcessResult r = run_program({option});
    CHECK(r.exit_code == 0);
    CHECK(r.err == "");
    CHECK(begins(r.out, "codeexec-mcp " CODEEXEC_VERSION_STRING " - "));
    const Strings lines = lines_of(r.out);
    CHECK(lines.size() <= 50);
    std::set<std::string> shown;
    for (const std::string& line : lines) {
      CHECK_MESSAGE(line.size() <= 80, line);
      if (begins(line, "  --")) shown.insert(line.substr(4, line.find(' ', 4) - 4));
    }
    const Json rows = all_options();
    for (const Json& row : rows.items()) {
      const std::string& name = row["option"].as_string();
      CHECK_MESSAGE(row["often"].as_bool() == (shown.count(name) == 1), name);
    }
    CHECK(has(r.out, "--help-all"));
  }
}

TEST_CASE("--help-all has every option in its group, with its default, and the rules") {
  const ProcessResult r = run_program({"--help-all"});
  CHECK(r.exit_code == 0);
  CHECK(r.err == "");
  std::string in_one_line;
  for (const std::string& line : lines_of(r.out)) {
    CHECK_MESSAGE(line.size() <= 80, line);
    const std::size_t text = line.find_first_not_of(' ');
    if (text != std::string::npos) in_one_line += line.substr(text) + " ";
  }
  std::set<std::string> groups;
  std::string group;
  std::size_t at = 0;
  const Json rows = all_options();
  CHECK(rows.size() > 120);
  for (const Json& row : rows.items()) {
    const std::string name = row["option"].as_string();
    CAPTURE(name);
    if (row["group"].as_string() != group) {
      group = row["group"].as_string();
      CHECK_MESSAGE(groups.insert(group).second, "its group stands in two places");
      at = r.out.find("\n\n" + group + "\n", at);
      REQUIRE(at != std::string::npos);
    }
    at = r.out.find("\n  --" + name, at);
    REQUIRE(at != std::string::npos);
    // Its words and its default, whatever the lines.
    std::string words = row["help"].as_string();
    CHECK(words.size() > 8);
    if (!row["default"].as_string().empty()) words += " (default: " + row["default"].as_string();
    std::string together = in_one_line;
    CHECK(has(together, words));
  }
  CHECK(groups.size() == 10);
  for (const codeexec::RuleInfo& rule : codeexec::Policy::rules())
    CHECK(has(in_one_line, std::string(" ") + rule.name + " "));
}

TEST_CASE("on a terminal the server says what it is, then serves; on a pipe it says nothing") {
  if (!support::confines()) return;
  const int leader = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (leader < 0 || ::grantpt(leader) != 0 || ::unlockpt(leader) != 0) {
    MESSAGE("SKIPPED: this system makes no pseudo-terminals");
    return;
  }
  const std::string name = ::ptsname(leader);
  const int follower = ::open(name.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
  REQUIRE(follower >= 0);
  const std::string ping = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\n";
  const std::string typed = ping + "\x04";  // the end of the input
  REQUIRE(::write(leader, typed.data(), typed.size()) == static_cast<ssize_t>(typed.size()));
  codeexec::ProcessOptions options;
  options.argv = {"/bin/sh", "-c", "exec \"$0\" < \"$1\"", CODEEXEC_MCP, name};
  options.environment = {"PATH=/usr/bin:/bin", "HOME=/nonexistent"};
  options.timeout = std::chrono::milliseconds(support::patience_ms);
  const ProcessResult r = codeexec::run_process(options);
  ::close(follower);
  ::close(leader);
  CHECK(r.exit_code == 0);
  CHECK(has(r.out, "\"id\":7"));
  CHECK(lines_of(r.err).size() == 6);  // the first says where commands are confined
  CHECK(begins(r.err, "codeexec-mcp: commands "));
  for (const char* words : {"MCP server", "--client-config", " --write", "--run 'echo ", "--help"})
    CHECK(has(r.err, words));
  CHECK_FALSE(has(r.err, "\x1b"));

  const ProcessResult piped = run_program({}, "/", {}, ping);
  CHECK(piped.out == r.out);
  CHECK(piped.err == "");
}

TEST_CASE("--sandbox-report --explain prints the rules, in lines and as JSON") {
  const TempDir place;
  check_refused(run_program({"--explain"}), "--explain is for --sandbox-report");
  const Strings off = {"--sandbox-report", "--explain"};
  CHECK(has(run_program(off).out, "there are no rules"));

  Strings arguments = {"--allowed-paths",    place.path(), "--network",       "none",
                       "--limit-open-files", "77",         "--sandbox-report"};
  const Json plain = parsed(run_program(arguments, place.path()).out);
  arguments.push_back("--explain");
  const ProcessResult text = run_program(arguments, place.path());
  arguments.push_back("--json");
  Json report = parsed(run_program(arguments, place.path()).out);
  const Json rules = report["rules"];
  CHECK(plain["rules"].is_null());
  for (const char* member : {"mode", "network", "landlock_abi", "enforced", "missing"})
    CHECK(report[member] == plain[member]);
  CHECK(text.exit_code == (plain["missing"].size() > 0 ? 1 : 0));
  for (const std::string& line : lines_of(text.out)) CHECK(codeexec::is_utf8(line));
  if (!enforces(plain, "filesystem") || !enforces(plain, "system_calls")) {
    if (rules.size() == 0) CHECK(has(text.out, "there are no rules"));
    MESSAGE("SKIPPED: no sandbox here, of which rules would be printed");
    return;
  }
  std::map<std::string, std::string> by_name;
  for (const Json& rule : rules.items()) {
    const std::string& line = rule.as_string();
    by_name[line.substr(0, line.find(": "))] += line.substr(line.find(": ") + 2) + "\n";
  }
  CHECK(has(by_name["filesystem"], " " + place.path().substr(place.path().rfind('/') + 1)));
  CHECK(has(by_name["system_calls"], "EACCES socket: all families\n"));
  CHECK(has(by_name["limits"], "RLIMIT_NOFILE of each process: 77"));
  CHECK(has(by_name["network"], "no socket"));
  CHECK(has(by_name["privileges"], "no_new_privs"));
  for (const auto& [name, lines] : by_name) CHECK(has(text.out, "\n" + name + "\n"));
  CHECK(has(text.out, "process_vm_readv"));
}
