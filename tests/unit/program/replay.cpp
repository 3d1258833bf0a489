// --replay: the commands of an audit log again.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../report/helpers.hpp"

using codeexec::Json;
using codeexec::ProcessResult;
using support::audit_of;
using support::begins;
using support::check_refused;
using support::exists;
using support::has;
using support::lines_of;
using support::parsed;
using support::run_program;
using support::Strings;
using support::TempDir;

namespace {

ProcessResult replayed(const TempDir& place, const std::string& audit, const Strings& more = {}) {
  Strings arguments = {"--replay", audit, "--workspace", place.directory("again")};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_program(arguments);
}

}  // namespace

TEST_CASE("commands that do the same again are no difference, and those refused are not run") {
  const TempDir place;
  const std::string audit =
      audit_of(place, {"echo one > a; cat a", "mkdir sub && cd sub && pwd > ../b", "exit 3",
                       "kill -9 $$", "cat a >&2", "sudo touch " + (place / "refused")});
  const ProcessResult same = replayed(place, audit);
  CHECK(same.err == "");
  CHECK(same.out == "5 commands ran again, 0 of them differently; 1 skipped: refused\n");
  CHECK(same.exit_code == 0);
  CHECK(exists(place / "again/sub"));
}

TEST_CASE("what differs is named, in lines or as JSON") {
  const TempDir place;
  const std::string flag = place / "flag";
  const std::string audit = audit_of(
      place,
      {"test ! -e " + flag, "cat " + flag + " 2>&1; true", "echo $COLOUR", "echo 1; kill -9 $$"},
      {"--set-env", "COLOUR=red"});
  place.file("flag", "abc");
  const ProcessResult changed = replayed(place, audit, {"--set-env", "COLOUR=rot"});
  CHECK(changed.exit_code == 1);
  const Strings lines = lines_of(changed.out);
  REQUIRE(lines.size() == 4);
  CHECK(lines[0] == "line 1: test ! -e " + flag + "; exit_code was 0, now 1");
  CHECK(begins(lines[1], "line 2: cat " + flag + " 2>&1; true; stdout_bytes was "));
  CHECK(lines[2] == "line 3: echo $COLOUR; stdout differs, with as many bytes");
  CHECK(lines[3] == "4 commands ran again, 3 of them differently");

  const ProcessResult as_json =
      replayed(place, audit, {"--set-env", "COLOUR=red", "--json", "--blocked-commands", "kill.*"});
  CHECK(as_json.exit_code == 1);
  const Strings objects = lines_of(as_json.out);
  REQUIRE(objects.size() == 4);
  CHECK(parsed(objects[0])["difference"] == parsed(R"({"exit_code":[0,1]})"));
  CHECK(parsed(objects[2])["line"] == Json(4));
  CHECK(parsed(objects[2])["difference"] == parsed(R"({"outcome":["signaled","refused"]})"));
  CHECK(parsed(objects[2])["rule"].as_string() != "");
  CHECK(parsed(objects[3]) == parsed(R"({"ran":4,"different":3,"skipped":{}})"));
}

TEST_CASE("what the log does not hold is skipped, and a broken log is no success") {
  const TempDir place;
  const std::string long_command = "true " + std::string(20000, 'x');
  const std::string audit = audit_of(place, {long_command, "true", "exit 0"}, {"--set-env", "A=1"});
  {
    support::Server server({"--audit-file", audit, "--workspace", place / "work"});
    server.use("execute_command", R"({"command":"cat","stdin":"abc"})");
    server.use("write_file", R"({"file_path":"a","content":"abc"})");
    CHECK(server.finish().empty());
  }
  run_program({"--secret-env", "KEY", "--audit-file", audit, "--run", "true hush-hush"}, "/",
              {"KEY=hush-hush"});
  const ProcessResult r = replayed(place, audit);
  CHECK(r.out ==
        "2 commands ran again, 0 of them differently; 1 skipped: no command line; 1 skipped: cut "
        "in the log; 1 skipped: its input is not in the log; 1 skipped: a secret in it is "
        "masked\n");
  CHECK(r.exit_code == 0);

  const std::string whole = support::read_file(audit);
  const ProcessResult cut = replayed(place, place.file("cut", whole.substr(0, whole.size() - 9)));
  CHECK(cut.exit_code == 1);
  CHECK(has(cut.err, "cut: line 6 is cut"));
  std::string forged = whole;
  forged.replace(forged.find("exit 0"), 6, "exit 1");
  const ProcessResult changed = replayed(place, place.file("forged", forged));
  CHECK(begins(changed.out, "1 commands ran again, 0 of them differently; "));
  CHECK(has(changed.err, "forged: line 3 was changed after it had been written"));
  CHECK(changed.exit_code == 1);
  check_refused(replayed(place, place / "none"), "cannot open");
  check_refused(run_program({"--replay", audit, "--run", "true"}), "--replay excludes");
}

TEST_CASE("a command of a folder that is not below the first one is not run, there or elsewhere") {
  const TempDir place;
  const std::string audit = audit_of(place, {"true", "touch ran"});
  for (const std::string& folder : {place.path(), place / "work/../other"}) {
    std::string text = support::read_file(audit);
    const std::size_t second = text.find('\n') + 1;
    const std::string work = Json(place / "work").dump();
    text.replace(text.find(work, second), work.size(), Json(folder).dump());
    // Without hashes it is read as it stands.
    std::string plain;
    for (const std::string& line : lines_of(text)) {
      Json record = parsed(line);
      for (const char* name : {"time", "outcome", "allowed", "tool", "command", "work_dir"})
        plain += (plain.empty() || plain.back() == '\n' ? "{" : ",") + Json(name).dump() + ":" +
                 record[name].dump();
      plain += "}\n";
    }
    const ProcessResult r = replayed(place, place.file("plain", plain));
    CHECK(r.out ==
          "1 commands ran again, 0 of them differently; 1 skipped: its folder is not below that of "
          "the first command\n");
    for (const char* there : {"ran", "again/ran", "other/ran"}) CHECK_FALSE(exists(place / there));
  }
}

TEST_CASE("a value of a hostile log reaches no terminal") {
  const TempDir place;
  const std::string audit = place.file(
      "audit",
      R"({"time":"2026-01-31T12:00:00.000Z","outcome":"exited","allowed":true,"tool":"run",)"
      R"("command":"true","work_dir":")" +
          place.path() +
          "\",\"exit_code\":\"\xc2\x9b"
          "2J" +
          std::string(9999, 'x') + "\"}\n");
  const ProcessResult r = replayed(place, audit);
  CHECK(has(r.out, "exit_code was \"\\xc2\\x9b2Jxxx"));
  CHECK(r.out.size() < 1000);
}

TEST_CASE("a replay may be recorded in the log that it reads") {
  const TempDir place;
  const std::string audit = audit_of(place, {"echo 1", "echo 2"});
  CHECK(replayed(place, audit, {"--audit-file", audit}).exit_code == 0);
  CHECK(lines_of(support::read_file(audit)).size() == 4);
}
