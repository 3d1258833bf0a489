// The page that --report writes, as text; tests/report/browser.py opens it.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <sys/stat.h>

#include "helpers.hpp"

using codeexec::Json;
using codeexec::ProcessResult;
using support::audit_of;
using support::check_refused;
using support::has;
using support::lines_of;
using support::Page;
using support::page_of;
using support::parsed;
using support::read_file;
using support::run_program;
using support::Strings;
using support::TempDir;

namespace {

std::string record(const std::string& members, int second = 0) {
  return "{\"time\":\"2026-01-31T12:00:0" + std::to_string(second) +
         ".000Z\",\"host\":\"h\",\"pid\":1,\"outcome\":\"exited\",\"exit_code\":0" + members +
         "}\n";
}

}  // namespace

TEST_CASE("a report has the commands of a log, and says that it is whole") {
  const TempDir place;
  const std::string audit =
      audit_of(place, {"echo one", "exit 3", "sudo true"}, {"--audit-output", "1k"});
  const Page page = page_of(place, {audit});
  CHECK(page.said.out == "3 records in the report\n");
  REQUIRE(page.records.size() == 3);
  CHECK(page.records[0]["command"] == Json("echo one"));
  CHECK(page.records[0]["stdout"] == Json("one\n"));
  CHECK(page.records[0]["outcome"] == Json("exited"));
  CHECK(page.records[0].find("host"));
  CHECK_FALSE(page.records[1].find("host"));  // the same as in the record before
  CHECK_FALSE(page.records[0].find("hash"));
  CHECK(page.records[1]["exit_code"] == Json(3));
  CHECK(page.records[2]["rule"] == Json("sudo"));
  CHECK(page.summary["findings"] == Json(""));
  CHECK(has(page.summary["chains"][0].as_string(), "3 records as they were written"));
  struct stat status {};
  REQUIRE(::stat((place / "page.html").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);

  // The same page on standard output, but for the time when it was made.
  const ProcessResult direct = run_program({"--report", audit});
  CHECK(direct.exit_code == 0);
  CHECK(support::block_of(direct.out, "records") == support::block_of(page.text, "records"));
  CHECK(direct.err == "codeexec-mcp: 3 records in the report\n");
}

TEST_CASE("nothing of a record can end its block of data, and nothing leads out of the page") {
  const TempDir place;
  const std::string hostile =
      "</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)> \" ' & ]]>";
  std::string text;
  for (const char* name : {"command", "agent_id", "rule", "stdout", "</script>", "__proto__"})
    text += record("," + Json(name).dump() + ":" + Json(hostile).dump());
  const Page page = page_of(place, {place.file("a", text)});
  REQUIRE(page.records.size() == 6);
  CHECK(page.records[0]["command"] == Json(hostile));
  CHECK(page.records[4]["</script>"] == Json(hostile));
  CHECK(support::block_of(page.text, "records").find('<') == std::string::npos);
  CHECK(support::block_of(page.text, "summary").find('<') == std::string::npos);
  CHECK(support::count_of(page.text, "<script") == 3);
  CHECK(has(page.text, "default-src 'none'; script-src 'sha256-"));
  for (const char* outside : {"http:", "https:", "src=", "href=", "url(", "@import"})
    CHECK_FALSE(has(page.text.substr(0, page.text.find("id=\"records\"")), outside));
}

TEST_CASE("what a record and the one before have in common is left out, and what is gone is null") {
  const TempDir place;
  const Page page = page_of(place, {place.file("a", record(",\"agent_id\":\"x\",\"new\":[1,{}]") +
                                                        record(",\"agent_id\":\"x\"", 1) +
                                                        record("", 2) + record("", 3))});
  REQUIRE(page.records.size() == 4);
  CHECK(page.records[0]["agent_id"] == Json("x"));
  CHECK(page.records[0]["new"] == parsed("[1,{}]"));
  CHECK_FALSE(page.records[1].find("agent_id"));
  REQUIRE(page.records[2].find("agent_id"));
  CHECK(page.records[2]["agent_id"].is_null());
  CHECK_FALSE(page.records[3].find("agent_id"));
}

TEST_CASE("broken lines and files are findings, and the rest is shown") {
  const TempDir place;
  const std::string long_line(std::size_t{65} << 20, 'x');
  const std::string log =
      place.file("a", record(",\"command\":\"one\"") + "{\"cut\":\n" + "[1]\n" +
                          std::string("\0\xff\n", 3) + long_line + "\n" + std::string(5000, '[') +
                          "\n" + record(",\"command\":\"two\"") + "{\"time\":\"2026");
  const Page page = page_of(place, {log, place / "missing", place.path(), log});
  REQUIRE(page.records.size() == 4);
  CHECK(page.records[1]["command"] == Json("two"));
  const Strings lines = lines_of(page.said.out);
  REQUIRE(lines.size() == 15);
  CHECK(lines[0] == place / "missing: No such file or directory");
  CHECK(lines[1] == place.path() + ": Is a directory");
  CHECK(has(lines[2], "a: line 2 is no record: "));
  CHECK(has(lines[3], "a: line 3 is no record: it has no time and outcome"));
  CHECK(has(lines[4], "a: line 4 is no record: "));
  CHECK(has(lines[5], "a: line 5 is longer than 67108864 bytes"));
  CHECK(has(lines[6], "a: line 6 is no record: "));
  CHECK(has(lines[7], "a: line 8 is cut"));
  CHECK(lines[14] == "4 records in the report");
  CHECK(has(page.summary["findings"].as_string(), "line 2 is no record"));

  // Of many bad lines the first are named.
  std::string bad;
  for (int i = 0; i < 1000; ++i) bad += "{}\n";
  const Page many = page_of(place, {place.file("b", bad)});
  CHECK(lines_of(many.said.out).size() == 22);
  CHECK(has(many.said.out, "b: and 980 more lines\n"));
}

TEST_CASE("a page has a bound: the last records, with long texts cut") {
  const TempDir place;
  std::string log;
  const std::string text(2000, '\x1b');  // six bytes each in JSON
  const std::string members = ",\"command\":" + Json(text).dump() +
                              ",\"stdout\":" + Json(text).dump() + ",\"other\":[" +
                              std::string(4000, '[') + std::string(4000, ']') + "]";
  const std::string deep = record(members);
  // All of them are twice the bound, and no more, as much of a log takes a sanitizer long to read.
  const std::string wide =
      record(",\"command\":" + Json(text.substr(0, 200)).dump() + ",\"list\":[" + [] {
        std::string list = "0";
        for (int i = 0; i < 400; ++i) list += ",0";
        return list;
      }() + "]");
  log += deep;
  for (int i = 0; i < 21000; ++i) log += wide;
  const Page page = page_of(place, {place.file("a", log)});
  CHECK(page.records.size() == 20000);
  CHECK(page.text.size() < (std::size_t{20} << 20));
  CHECK(page.summary["left_out"] == Json(1001));
  CHECK(page.records[5000]["cut"] == Json(true));
  CHECK(has(page.said.out, "of 21001 lines the first 1001 are left out\n"));

  // Short ones keep all of a long text.
  const Page one =
      page_of(place, {place.file("b", record(",\"command\":\"" + std::string(3000, 'c') + "\""))});
  CHECK(one.records[0]["command"] == Json(std::string(3000, 'c')));
  CHECK_FALSE(one.records[0].find("cut"));
}

TEST_CASE("a record of many small members is cut, too") {
  const TempDir place;
  std::string members;
  for (int i = 0; i < 9000; ++i) members += ",\"member" + std::to_string(i) + "\":\"\"";
  members += ",\"list\":[\"\"";
  std::string text;
  for (int i = 0; i < 100; ++i) text += record(members + "]");
  const Page page = page_of(place, {place.file("a", text)});
  REQUIRE(page.records.size() == 100);
  CHECK(page.records[50]["cut"] == Json(true));
  CHECK(page.text.size() < (std::size_t{8} << 20));
}

TEST_CASE("a report never goes over a log, and says what it cannot do") {
  const TempDir place;
  const std::string log = place.file("a", record(""));
  check_refused(run_program({"--report", log, "--output", log}), "is an audit log");
  CHECK(read_file(log) == record(""));
  check_refused(run_program({"--report", place / "none", "--output", place / "p"}),
                "nothing to report: " + (place / "none") + ": No such file or directory");
  CHECK(run_program({"--report", log, "--output", place / "no/p"}).exit_code == 2);
  check_refused(run_program({"--output", place / "p"}), "--output is for --report");
  check_refused(run_program({"--report"}), "--report");
  CHECK(run_program({"--report", log, "--output", "/dev/full"}).exit_code == 2);
}
