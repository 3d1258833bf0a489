// --places: what is listed and how, with programs that stand in for Slurm's and Docker's.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../tools/helpers.hpp"

using codeexec::Json;
using codeexec::ProcessResult;
using namespace support;

namespace {

// A folder for PATH whose squeue prints `jobs` and whose scancel writes down what it is given.
class FakeSlurm {
 public:
  explicit FakeSlurm(const std::string& jobs) {
    folder_.file("jobs", jobs);
    folder_.file("squeue", "#!/bin/sh\n[ \"$SLURM_TIME_FORMAT\" = %s ] && cat \"${0%/*}/jobs\"\n",
                 0755);
    folder_.file("scancel",
                 "#!/bin/sh\necho \"$@\" >> \"${0%/*}/cancelled\"\n"
                 "[ ! -e \"${0%/*}/refuses\" ] || { echo 'Access denied' >&2; exit 1; }\n",
                 0755);
  }
  ProcessResult list(Strings words) const {
    words.insert(words.end(), {"--execution-mode", "slurm"});
    EnvironmentGuard variables;
    variables.set("PATH", (folder_.path() + ":/usr/bin:/bin").c_str());
    return run_program(words);
  }
  void be_away() const {
    folder_.file("squeue",
                 "#!/bin/sh\nprintf 'slurm_load_jobs error: Unable to contact slurm controller "
                 "(connect failure)\\nsqueue: giving up\\n' >&2; exit 1\n",
                 0755);
  }
  void refuse() const { folder_.file("refuses", ""); }
  std::string cancelled() const {
    const std::string path = folder_ / "cancelled";
    return exists(path) ? read_file(path) : std::string();
  }

 private:
  TempDir folder_ = {};
};

std::string own_host() {
  char name[256] = "";
  REQUIRE(::gethostname(name, sizeof name - 1) == 0);
  return name;
}

// Of a program of this user on this machine that cannot run any more: the machine has started anew.
std::string of_the_dead() {
  char space[256] = "";
  const ssize_t size = ::readlink("/proc/self/ns/pid", space, sizeof space - 1);
  REQUIRE(size > 0);
  return "codeexec;" + own_host() + ";another-boot;" + std::to_string(::geteuid()) + " " + space +
         ";77;1";
}

}  // namespace

TEST_CASE("places: a list of jobs, whatever their names are") {
  const std::string now = std::to_string(::time(nullptr));
  const FakeSlurm slurm("11;RUNNING;" + now + ";" + of_the_dead() + ";codeexec-one; two\033[31m\n" +
                        "12;PENDING;" + std::to_string(::time(nullptr) - 7300) +
                        ";codeexec;far;b;0 x;5;6;codeexec-\xff\n" + "13;RUNNING;" + now +
                        ";(null);codeexec-x\n" +  // somebody else's
                        "14;COMPLETING;" + now + ";" + of_the_dead() +
                        ";y\n"  // is on its way out
                        "15;RUNNING\n;;;\n\n");
  const ProcessResult table = slurm.list({"--places"});
  CHECK(table.exit_code == 0);
  CHECK(table.err == "");
  const Strings lines = lines_of(table.out);
  REQUIRE(lines.size() == 4);
  CHECK(begins(lines[0], "name  agent "));
  CHECK(has(lines[1], "11    one; two\\x1b[31m  "));
  CHECK(has(lines[1], "  " + own_host() + " "));
  CHECK(has(lines[1], "  77   gone  "));
  CHECK(ends(lines[1], "  running"));
  CHECK(has(lines[2], "  2 h  "));
  CHECK(has(lines[2], "  5    unknown"));
  CHECK(codeexec::is_utf8(table.out));

  const Json list = parsed(slurm.list({"--places", "--json"}).out);
  REQUIRE(list.size() == 3);
  CHECK(names_of(list[0]) == "name agent age host pid owner state");
  CHECK(list[0]["agent"] == Json("one; two\033[31m"));
  CHECK(list[0]["owner"] == Json("gone"));
  CHECK(list[1]["state"] == Json("pending"));
  CHECK(list[1]["pid"] == Json("5"));
  CHECK(list[1]["age"].as_integer() >= 7300);
  CHECK(slurm.cancelled() == "");

  const Json left = parsed(slurm.list({"--places-remove", "--json"}).out);
  CHECK(left[0]["state"] == Json("removed"));
  CHECK(left[1]["state"] == Json("pending"));
  CHECK(left[2]["state"] == Json("completing"));
  CHECK(slurm.cancelled() == "11\n");
  CHECK(has(slurm.list({"--places-remove"}).out, "  removed\n"));
}

TEST_CASE("places: a job that cannot be cancelled") {
  const FakeSlurm slurm("11;RUNNING;1;" + of_the_dead() + ";codeexec-x\n");
  slurm.refuse();
  const ProcessResult r = slurm.list({"--places-remove"});
  CHECK(r.exit_code == 1);
  CHECK(r.out == "");
  CHECK(begins(r.err, "codeexec-mcp: Slurm does not cancel job 11: "));
  CHECK(lines_of(r.err).size() == 1);
}

TEST_CASE("places: a controller that does not answer") {
  const FakeSlurm slurm("");
  slurm.be_away();
  const ProcessResult r = slurm.list({"--places"});
  CHECK(r.exit_code == 1);
  CHECK(r.out == "");
  CHECK(r.err ==
        "codeexec-mcp: Slurm lists no jobs: slurm_load_jobs error: Unable to contact slurm "
        "controller (connect failure) squeue: giving up; its controller does not answer: ask who "
        "runs the cluster\n");
}

TEST_CASE("places: where there is no engine") {
  TempDir place;
  EnvironmentGuard variables;
  variables.set("PATH", place.path().c_str());
  const ProcessResult slurm = run_program({"--execution-mode", "slurm", "--places"});
  CHECK(slurm.exit_code == 1);
  CHECK(has(slurm.err, "Slurm lists no jobs"));
  CHECK(has(slurm.err, "install Slurm's programs"));
  const ProcessResult docker = run_program(
      {"--execution-mode", "docker", "--docker-program", place / "no-engine", "--places"});
  CHECK(docker.exit_code == 1);
  CHECK(lines_of(docker.err).size() == 1);
}

TEST_CASE("places: uses that mean nothing") {
  const TempDir project;
  check_refused(run_program({"--execution-mode", "command", "--place-command", "true", "--sandbox",
                             "best-effort", "--network", "allow"},
                            project.path()),
                "network: 'allow' needs allowed_domains");
  check_refused(run_program({"--places"}), "execution_mode local makes no places to list");
  check_refused(run_program({"--places-remove", "--execution-mode", "ssh", "--place-host", "x"}),
                "execution_mode ssh makes no places to list");
  check_refused(run_program({"--json"}),
                "--json is for --places, --places-remove, --replay, --help-all");
  check_refused(run_program({"--execution-mode", "docker", "--place-pool", "2"}),
                "place_pool has no effect with execution_mode docker");
  check_refused(run_program({"--execution-mode", "slurm", "--place-pool", "1001"}),
                "place_pool must be from 1 to 1000, and not 1001");
}
