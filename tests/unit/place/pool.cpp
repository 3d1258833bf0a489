// Places kept ready: engines of these tests, whose places are agents on this host.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/place_support.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>

using codeexec::CancelToken;
using codeexec::Error;
using codeexec::ErrorCode;
using codeexec::Expected;
using codeexec::Outcome;
using codeexec::PlaceEngine;
using codeexec::PlaceExecutor;
using codeexec::PlaceOptions;
using codeexec::PlacePool;
using codeexec::Result;
using namespace support;

namespace {

// What all engines of a case have done, and what they are to do.
struct Record {
  std::atomic<int> made{0};  // places
  std::atomic<int> removed{0};
  std::atomic<int> tried{0};
  std::atomic<bool> refuses{false};
  std::atomic<bool> hangs{false};  // until it is cancelled
  TempDir pids = {};               // a file of each place's agent
  std::mutex mutex = {};
  std::vector<std::pair<std::string, CancelToken>> up = {};

  // Ends a place, as an engine would.
  void end(const std::string& name) {
    CancelToken ended;
    {
      const std::lock_guard<std::mutex> lock(mutex);
      for (auto at = up.begin(); at != up.end(); ++at) {
        if (at->first != name) continue;
        ended = at->second;
        up.erase(at);
        break;
      }
    }
    ended.cancel();
  }
  bool is_up(const std::string& name) {
    const std::lock_guard<std::mutex> lock(mutex);
    for (const auto& one : up)
      if (one.first == name) return true;
    return false;
  }
  bool kill_agent(const std::string& name) const {
    const pid_t pid = exists(pids / name) ? pid_in(read_file(pids / name)) : 0;
    return pid > 1 && ::kill(pid, SIGKILL) == 0;
  }
};

class HereEngine final : public PlaceEngine {
 public:
  explicit HereEngine(std::shared_ptr<Record> record) : record_(std::move(record)) {}
  ~HereEngine() override {
    if (way_.name.empty()) return;
    record_->end(way_.name);
    ++record_->removed;
  }
  Expected<Way> reach(const std::optional<CancelToken>& cancel) override {
    if (auto there = current(); there) return there;
    ++record_->tried;
    while (record_->hangs) {
      if (cancel && cancel->cancelled())
        return Error{ErrorCode::io, ECANCELED, 0, "cancelled before it was started"};
      ::poll(nullptr, 0, 2);
    }
    if (record_->refuses) return Error{ErrorCode::io, 0, 0, "the engine is full"};
    way_.name = "place " + std::to_string(++record_->made);
    way_.transport = {"sh", "-c", "echo $$ > \"$0\"; exec \"$1\" --place",
                      record_->pids / way_.name, CODEEXEC_MCP};
    way_.ended = CancelToken();
    const std::lock_guard<std::mutex> lock(record_->mutex);
    record_->up.emplace_back(way_.name, way_.ended);
    return way_;
  }
  Expected<Way> current() override {
    if (!way_.name.empty() && record_->is_up(way_.name)) return way_;
    return PlaceEngine::current();
  }

 private:
  const std::shared_ptr<Record> record_;
  Way way_ = Way();
};

class Pools {
 public:
  std::shared_ptr<Record> record = std::make_shared<Record>();
  TempDir workspace = {};

  PlacePool pool(std::size_t size) {
    auto made = PlacePool::create(
        [known = record]() -> std::shared_ptr<PlaceEngine> {
          return std::make_shared<HereEngine>(known);
        },
        size,
        [this](const Error& error) {
          const std::lock_guard<std::mutex> lock(mutex_);
          failures_.push_back(error.message);
        });
    REQUIRE_MESSAGE(made, made.error().message);
    return *made;
  }
  PlaceExecutor executor(const PlacePool& pool) const {
    PlaceOptions options;
    options.engine = pool.take();
    options.workspace = workspace.path();
    options.timeout = safety;
    return make_place(options);
  }
  std::vector<std::string> failures() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return failures_;
  }

 private:
  std::mutex mutex_ = {};
  std::vector<std::string> failures_ = {};
};

bool has_ready(const PlacePool& pool, std::size_t count) {
  return comes_true([&] { return pool.ready() == count; });
}

}  // namespace

TEST_CASE("pools: places are made ahead, taken by the first command, and replaced") {
  Pools f;
  {
    const PlacePool pool = f.pool(2);
    REQUIRE(has_ready(pool, 2));
    CHECK(f.record->made == 2);
    const PlaceExecutor first = f.executor(pool);
    const PlaceExecutor second = f.executor(pool);
    CHECK(pool.ready() == 2);  // no command has come
    const Result r = first.run("echo here");
    CHECK_MESSAGE(r.out == "here\n", r.message);
    CHECK(has_ready(pool, 2));
    CHECK(f.record->made == 3);
    const Result other = second.run("echo there");
    CHECK(other.out == "there\n");
    CHECK(other.place != r.place);
    CHECK(first.run("true").place == r.place);
    CHECK(has_ready(pool, 2));
    CHECK(f.record->removed == 0);
  }
  CHECK(f.record->made == 4);
  CHECK(f.record->removed == 4);
  CHECK(f.failures().empty());
}

TEST_CASE("pools: a place that ends is replaced by one that is ready") {
  Pools f;
  const PlacePool pool = f.pool(1);
  REQUIRE(has_ready(pool, 1));
  const PlaceExecutor there = f.executor(pool);
  const Result before = there.run("true");
  CHECK(before.place == "place 1");
  REQUIRE(has_ready(pool, 1));
  REQUIRE(f.record->made == 2);
  f.record->end(before.place);
  REQUIRE(f.record->kill_agent(before.place));
  // That its connection is lost may not be known yet.
  REQUIRE(comes_true([&] { return there.run("true").place != before.place; }));
  CHECK(there.run("true").place == "place 2");
  CHECK(comes_true([&] { return f.record->removed == 1; }));
}

TEST_CASE("pools: an agent that ends is started again in the place that is still there") {
  Pools f;
  const PlacePool pool = f.pool(1);
  const PlaceExecutor there = f.executor(pool);
  const codeexec::Execution before = there.start(codeexec::Command::shell("sleep 600"));
  const std::string place = "place 1";
  REQUIRE(comes_true([&] { return f.record->kill_agent(place); }));
  CHECK(before.wait().outcome == Outcome::unknown);
  const Result after = there.run("echo again");
  CHECK(after.out == "again\n");
  CHECK(after.place == place);
}

TEST_CASE("pools: a place that ends while it is kept is not given away") {
  Pools f;
  const PlacePool pool = f.pool(2);
  REQUIRE(has_ready(pool, 2));
  // So young that it is a failure: no other is made before somebody needs one.
  f.record->end("place 1");
  REQUIRE(comes_true([&] { return f.record->removed == 1; }));
  CHECK(comes_true([&] { return f.failures().size() == 1; }));
  CHECK(pool.ready() == 1);
  CHECK(f.record->made == 2);
  const PlaceExecutor there = f.executor(pool);
  CHECK(there.run("true").place == "place 2");
  CHECK(has_ready(pool, 2));
}

TEST_CASE("pools: a failure is told once, and nothing is tried before somebody needs a place") {
  Pools f;
  f.record->refuses = true;
  const PlacePool pool = f.pool(3);
  REQUIRE(comes_true([&] { return !f.failures().empty(); }));
  // Those that were under way then have their end.
  const PlaceExecutor there = f.executor(pool);
  const Result r = there.run("true");
  CHECK(r.outcome == Outcome::not_started);
  CHECK_MESSAGE(has(r.message, "the engine is full"), r.message);
  CHECK(f.failures() == std::vector<std::string>{"the engine is full"});
  const int tried = f.record->tried;
  CHECK(tried <= 7);  // three at first, and four for three and the one who waits
  f.record->refuses = false;
  CHECK(f.record->tried == tried);
  CHECK(there.run("echo again").out == "again\n");
  CHECK(has_ready(pool, 3));
  CHECK(f.failures().size() == 1);
}

TEST_CASE("pools: a command that waits for a place can be cancelled") {
  Pools f;
  f.record->hangs = true;
  const PlacePool pool = f.pool(1);
  REQUIRE(comes_true([&] { return f.record->tried == 1; }));
  const PlaceExecutor there = f.executor(pool);
  codeexec::Command command = codeexec::Command::shell("true");
  command.cancel = CancelToken();
  std::thread impatient([&] { command.cancel->cancel(); });
  CHECK(there.run(command).outcome == Outcome::cancelled);
  impatient.join();
  f.record->hangs = false;
  CHECK(there.run("true").place == "place 1");
}

TEST_CASE("pools: those that are being made are given up with the pool") {
  Pools f;
  f.record->hangs = true;
  std::optional<PlacePool> pool = f.pool(2);
  REQUIRE(comes_true([&] { return f.record->tried == 2; }));
  const PlaceExecutor late = f.executor(*pool);
  pool.reset();
  CHECK(f.record->made == 0);
  CHECK(f.failures().empty());
  const Result r = late.run("true");
  CHECK(r.outcome == Outcome::not_started);
  CHECK_MESSAGE(has(r.message, "the pool of places is gone"), r.message);
}

TEST_CASE("pools: many executors at once") {
  Pools f;
  const PlacePool pool = f.pool(4);
  std::vector<std::thread> agents;
  std::atomic<int> succeeded{0};
  for (int i = 0; i < 12; ++i)
    agents.emplace_back([&] {
      const PlaceExecutor there = f.executor(pool);
      const Result r = there.run("echo done");
      if (r.out == "done\n") ++succeeded;
    });
  for (std::thread& agent : agents) agent.join();
  CHECK(succeeded == 12);
  CHECK(has_ready(pool, 4));
  CHECK(comes_true([&] { return f.record->removed == 12; }));
  CHECK(f.record->made <= 12 + 16);
}

TEST_CASE("pools: sizes that are none") {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1001}}) {
    const auto made =
        PlacePool::create([]() -> std::shared_ptr<PlaceEngine> { return nullptr; }, size);
    REQUIRE(!made);
    CHECK(made.error().code == ErrorCode::invalid_argument);
    CHECK(begins(made.error().message, "place_pool must be from 1 to 1000"));
  }
}

TEST_CASE("pools: in a fork of the program no place is waited for") {
  Pools f;
  f.record->hangs = true;
  const PlacePool pool = f.pool(1);
  const std::shared_ptr<PlaceEngine> engine = pool.take();
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const auto way = engine->reach({});
    ::_exit(!way && way.error().code == ErrorCode::unsupported ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
