// What a server makes in a real Slurm, keeps ready there, lists and removes.

#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/server_support.hpp"
#include "slurm_helpers.hpp"

using codeexec::Json;
using codeexec::PlaceExecutor;
using codeexec::ProcessResult;
using namespace support;

namespace {

// How long the jobs of a killed server may stay, as docs/places.md says it.
constexpr std::chrono::seconds stated_time(30);

Strings with_slurm(Strings words) {
  words.insert(words.end(), {"--execution-mode", "slurm"});
  return words;
}

Server::Options server_options(const TempDir& workspace, Strings more = {}) {
  Server::Options options;
  more.insert(more.end(), {"--place-agent-path", CODEEXEC_MCP, "--workspace", workspace.path()});
  options.arguments = with_slurm(std::move(more));
  options.environment = {std::string("SLURM_CONF=") + std::getenv("SLURM_CONF"),
                         "HOME=" + workspace.path()};
  return options;
}

ProcessResult list(const Strings& words) {
  return run_program(with_slurm(words), "/",
                     {std::string("SLURM_CONF=") + std::getenv("SLURM_CONF")});
}

Json listed() {
  const ProcessResult r = list({"--places", "--json"});
  CHECK(r.err == "");
  CHECK(r.exit_code == 0);
  return parsed(r.out);
}

std::size_t count_of_jobs() { return lines_of(jobs()).size(); }

// A job with the comment of another program than this one: that has another part of it.
std::string job_of_another(const std::string& comment, const std::string& part,
                           const std::string& other) {
  const std::size_t at = comment.find(part);
  REQUIRE(at != std::string::npos);
  std::string changed = comment;
  changed.replace(at, part.size(), other);
  const ProcessResult r =
      run_words({"salloc", "--no-shell", "--job-name", "codeexec-left", "--comment", changed});
  REQUIRE(r.succeeded());
  const std::string number = r.err.substr(r.err.find("allocation ") + 11);
  return number.substr(0, number.find_first_not_of("0123456789"));
}

}  // namespace

TEST_CASE("slurm lists: before a server and after it was killed they are the same") {
  if (has_no_slurm()) return;
  REQUIRE(no_job_is_left());
  TempDir workspace;
  const Json before = listed();
  CHECK(before.size() == 0);
  CHECK(list({"--places"}).out == "name  agent  age  host  pid  owner  state\n");
  Server server(server_options(workspace, {"--place-pool", "2", "--agent-id", "my agent"}));
  REQUIRE(comes_true([] { return count_of_jobs() == 2; }));
  const Json ran = server.execute("echo $SLURM_JOB_ID");
  CHECK(begins(ran["place"].as_string(), "Slurm job "));
  REQUIRE(comes_true([] { return count_of_jobs() == 3; }));
  const Json running = listed();
  CHECK(running.size() == 3);
  std::string names;
  for (const Json& place : running.items()) {
    CHECK(place["agent"] == Json("my agent"));
    CHECK(place["owner"] == Json("running"));
    CHECK(place["pid"] == Json(std::to_string(server.pid())));
    CHECK(place["age"].as_integer(-1) >= 0);
    CHECK(place["age"].as_integer() < 600);
    CHECK(place["state"] == Json("running"));
    names += place["name"].as_string() + "\n";
  }
  CHECK(has("\n" + names, "\n" + ran["stdout"].as_string()));
  // Those of a living server stay.
  CHECK(lines_of(list({"--places-remove"}).out).size() == 4);
  CHECK(count_of_jobs() == 3);
  server.signal(SIGKILL);
  CHECK(server.wait() == -SIGKILL);
  CHECK(comes_true([&] { return listed() == before; }, stated_time));
}

TEST_CASE("slurm pool: a job that ends is replaced by one that is there") {
  if (has_no_slurm()) return;
  REQUIRE(no_job_is_left());
  TempDir workspace;
  Server server(server_options(workspace, {"--place-pool", "1"}));
  const std::string first = server.execute("true")["place"].as_string();
  REQUIRE(comes_true([] { return count_of_jobs() == 2; }));
  std::string ready;
  for (const std::string& job : lines_of(jobs()))
    if (!has(first, job)) ready = job;
  REQUIRE(run_words({"scancel", first.substr(10)}).succeeded());
  std::string next = first;
  REQUIRE(comes_true([&] {
    const Json told = server.call(Json::object({{"command", "true"}}))["structuredContent"];
    next = told["place"].as_string();
    return told["success"].as_bool() && next != first;
  }));
  CHECK(next == "Slurm job " + ready);
  CHECK(comes_true([] { return count_of_jobs() == 2; }));
  server.finish();
  CHECK(no_job_is_left());
}

TEST_CASE("slurm pool: a job that ends while it is kept is replaced") {
  if (has_no_slurm()) return;
  Jobs f;
  const auto pool = codeexec::PlacePool::create(
      [&f]() -> std::shared_ptr<codeexec::PlaceEngine> {
        const auto engine = codeexec::slurm_jobs(f.slurm);
        return engine ? *engine : nullptr;
      },
      1);
  REQUIRE(pool);
  REQUIRE(comes_true([&] { return pool->ready() == 1; }));
  const std::string first = lines_of(jobs()).at(0);
  REQUIRE(run_words({"scancel", first}).succeeded());
  CHECK(comes_true([&] { return pool->ready() == 0; }));
  codeexec::PlaceOptions options = f.options();
  options.engine = pool->take();
  const auto there = PlaceExecutor::create(options);
  REQUIRE(there);
  const codeexec::Result r = there->run("true");
  CHECK_MESSAGE(r.succeeded(), r.message);
  CHECK(number_of(r) != first);
}

TEST_CASE("slurm: a server inside of a job that is held for it") {
  if (has_no_slurm()) return;
  REQUIRE(no_job_is_left());
  TempDir workspace;
  const ProcessResult submitted =
      run_words({"sbatch", "--parsable", CODEEXEC_ROOT "/examples/slurm/hold.sbatch"});
  REQUIRE_MESSAGE(submitted.succeeded(), submitted.err);
  const std::string job = submitted.out.substr(0, submitted.out.find('\n'));
  REQUIRE(comes_true([&] {
    return run_words({"squeue", "-h", "-j", job, "-o", "%t"}).out == "R\n";
  }));
  Server::Options options;
  options.wrapper = {"srun", "--jobid", job, "--overlap"};
  options.arguments = {"--workspace", workspace.path(), "--keep-env", "SLURM_JOB_ID"};
  options.environment = {std::string("SLURM_CONF=") + std::getenv("SLURM_CONF")};
  Server server(options);
  CHECK(server.execute("echo $SLURM_JOB_ID")["stdout"] == Json(submitted.out));
  server.finish();
  CHECK(run_words({"scancel", job}).succeeded());
}

TEST_CASE("slurm pool: what cannot be had is told once") {
  if (has_no_slurm()) return;
  TempDir workspace;
  Server server(
      server_options(workspace, {"--place-pool", "3", "--slurm-option", "partition=nosuch"}));
  REQUIRE(comes_true([&] { return has(server.logged(), "place_pool: Slurm gives no job"); }));
  const Json told = server.call(Json::object({{"command", "true"}}))["structuredContent"];
  CHECK(told["outcome"] == Json("not_started"));
  CHECK(has(told["stderr"].as_string(), "choose one that `sinfo` lists"));
  server.finish();
  std::size_t count = 0;
  const std::string log = server.logged();
  for (std::size_t at = 0; (at = log.find("place_pool: ", at)) != std::string::npos; ++at) ++count;
  CHECK(count == 1);
}

TEST_CASE("slurm lists: only what dead programs of this machine have left is removed") {
  if (has_no_slurm()) return;
  Jobs f;
  const PlaceExecutor living = f.executor();
  const std::string kept = number_of(living.run("true"));
  const std::string comment = run_words({"squeue", "-h", "-j", kept, "-o", "%k"}).out;
  const std::string whole = comment.substr(0, comment.find('\n'));
  const std::string start = whole.substr(whole.rfind(';'));
  const std::string host = whole.substr(0, whole.find(';', 9));
  const std::string dead = job_of_another(whole, start, ";1");
  const std::string elsewhere = job_of_another(whole, host, "codeexec;elsewhere");
  REQUIRE(run_words({"salloc", "--no-shell", "--job-name", "codeexec-x"}).succeeded());
  CHECK(count_of_jobs() == 4);

  const Json before = listed();
  CHECK(before.size() == 3);  // the last one is not of ours
  for (const Json& place : before.items()) {
    const std::string name = place["name"].as_string();
    const char* const owner = name == dead ? "gone" : name == elsewhere ? "unknown" : "running";
    CHECK(place["owner"] == Json(owner));
    CHECK(place["state"] == Json("running"));
  }
  const ProcessResult table = list({"--places"});
  CHECK(has(table.out, dead + " "));
  CHECK(has(table.out, " gone  "));
  const Json removed = parsed(list({"--places-remove", "--json"}).out);
  for (const Json& place : removed.items())
    CHECK(place["state"] == Json(place["name"] == Json(dead) ? "removed" : "running"));
  CHECK(comes_true([] { return count_of_jobs() == 3; }));
  CHECK(living.run("echo $SLURM_JOB_ID").out == kept + "\n");
  for (const std::string& job : lines_of(jobs()))
    if (job != kept) CHECK(run_words({"scancel", job}).succeeded());
}
