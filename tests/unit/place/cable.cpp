// Places over ssh on another machine, behind a wire that is slow, loses packets, or is pulled out.

#include "ssh_helpers.hpp"

#if defined(__linux__)

#include "../../helpers/wire.hpp"

using codeexec::Command;
using codeexec::Execution;
using codeexec::Outcome;
using codeexec::PlaceExecutor;
using codeexec::PlaceOptions;
using codeexec::Result;
using namespace support;

namespace {

// Two machines, as far as their networks go.
class Far {
 public:
  static bool is_missing() {
    if (SshServer::is_missing()) return true;
    const Wire wire;
    if (wire.problem().empty()) return false;
    MESSAGE("SKIPPED: " << wire.problem());
    return true;
  }

  Wire wire = {};
  SshServer server{Wire::addresses[1], 22, wire.at(1), wire.at(0)};

  PlaceOptions options() const {
    PlaceOptions options = server.options();
    options.keep_alive = std::chrono::seconds(2);
    return options;
  }
  std::string path(const char* name) const { return server.workspace / name; }
  pid_t pid_of(const char* name) const {
    REQUIRE(appears(path(name)));
    return pid_in(read_file(path(name)));
  }
};

const std::string printing_and_staying =
    staying("until [ -e daemon ]; do sleep 0.01; done; echo both; ");

bool prints(const Execution& execution, const std::string& text) {
  const Stopwatch watch;
  while (!has(execution.read(codeexec::Stream::out, 0).text, text) && watch.soon())
    ::poll(nullptr, 0, 2);
  return has(execution.read(codeexec::Stream::out, 0).text, text);
}

}  // namespace

TEST_CASE("cable: what is far away or loses packets gives the same results") {
  if (Far::is_missing()) return;
  Far far;
  codeexec::LocalOptions usual;
  usual.workspace = far.server.workspace.path();
  const codeexec::Expected<codeexec::LocalExecutor> here = codeexec::LocalExecutor::create(usual);
  REQUIRE(here);
  const PlaceExecutor there = make_place(far.options());
  const auto compare = [&](const Command& command) {
    CAPTURE(command.script);
    const Result expected = here->run(command);
    const Result r = there.run(command);
    CHECK_MESSAGE(r.outcome == expected.outcome, r.message);
    CHECK(r.exit_code == expected.exit_code);
    CHECK(r.signal == expected.signal);
    CHECK(r.out == expected.out);
    CHECK(r.err == expected.err);
  };
  const auto compare_all = [&] {
    compare(Command::shell("echo out; echo err >&2; exit 3"));
    compare(Command::shell("kill -9 $$"));
    compare(Command::shell("seq 1 30000; seq 1 3000 >&2"));
    Command reading = Command::shell("sha256sum");
    reading.input = repeat("some input\n", 100000);
    compare(reading);
    std::vector<std::thread> all;
    std::atomic<int> good{0};
    for (int i = 0; i < 16; ++i)
      all.emplace_back([&, i] {
        const std::string number = std::to_string(i);
        if (there.run("echo " + number).out == number + "\n") ++good;
      });
    for (std::thread& each : all) each.join();
    CHECK(good == 16);
  };
  far.wire.delay(std::chrono::milliseconds(10));
  compare_all();
  // One round trip, and not two of them.
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) there.run("true");
  CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(10 * 20));
  CHECK(far.wire.missing() == 0);
  far.wire.lose(50);
  compare_all();
  CHECK(far.wire.missing() > 0);
}

TEST_CASE("cable: 100 MiB that lose packets on their way arrive whole") {
  if (Far::is_missing()) return;
  Far far;
  far.wire.lose(10);
  PlaceOptions options = far.options();
  options.keep_alive = std::chrono::seconds(30);
  const PlaceExecutor there = make_place(options);
  // Each part is told from all others by its beginning.
  constexpr std::size_t total = std::size_t{100} << 20;
  std::string expected;
  for (int i = 0; expected.size() < total; ++i) {
    expected += std::to_string(i);
    expected.append(1023 - expected.size() % 1024, 'x');
    expected += '\n';
  }
  far.server.workspace.file("big", expected);
  std::size_t at = 0;
  bool same = true;
  Command command = Command::shell("cat big");
  command.on_output = [&](codeexec::Stream, std::string_view bytes) {
    same = same && expected.compare(at, bytes.size(), bytes) == 0;
    at += bytes.size();
  };
  const Result r = there.run(command);
  CHECK_MESSAGE(r.exit_code == 0, r.message);
  CHECK(r.out_counts.total_bytes == total);
  CHECK(far.wire.missing() > 100);
  CHECK(at == total);
  CHECK(same);
}

TEST_CASE("cable: one that is pulled out is found, and the next one is a new connection") {
  if (Far::is_missing() || !has_supervisor()) return;
  Far far;
  PlaceOptions options = far.options();
  options.connect_timeout = std::chrono::seconds(2);
  const PlaceExecutor there = make_place(options);
  const pid_t agent = agent_of(there);
  const Execution started = there.start(Command::shell(printing_and_staying));
  const pid_t command = started.pid();
  REQUIRE(prints(started, "both\n"));
  const pid_t daemon = far.pid_of("daemon");
  const Stopwatch watch;
  SUBCASE("both ways") {
    far.wire.pull();
    const Result r = started.wait();
    CHECK(r.outcome == Outcome::unknown);
    CHECK(has(r.message, "the connection to box was lost (nothing was heard from it for 2000 ms)"));
    CHECK(r.out == std::to_string(command) + "\nboth\n");
    const Result next = there.run("echo ran > ran");
    CHECK(next.outcome == Outcome::not_started);
    CHECK_MESSAGE(has(next.message, "cannot reach box"), next.message);
  }
  SUBCASE("what goes there is lost, and what comes from there is not") {
    far.wire.cut(0);
    const Result r = started.wait();
    CHECK(r.outcome == Outcome::unknown);
    CHECK(has(r.message, "the connection to box was lost"));
    CHECK(r.out == std::to_string(command) + "\nboth\n");
  }
  SUBCASE("what comes from there is lost, and what goes there is not") {
    far.wire.cut(1);
    const Result r = started.wait();
    CHECK(r.outcome == Outcome::unknown);
    CHECK(has(r.message, "the connection to box was lost (nothing was heard from it for 2000 ms)"));
  }
  CHECK(watch.soon());
  // The agent has seen for itself that it hears nothing.
  CHECK(dies(agent));
  CHECK(dies(command));
  CHECK(dies(daemon));
  CHECK(!exists(far.path("ran")));
  far.wire.plug();
  const Result again = there.run("echo again");
  CHECK_MESSAGE(again.out == "again\n", again.message);
  REQUIRE(again.notes.size() == 1);
  CHECK(has(again.notes[0], "made anew"));
  CHECK(agent_of(there) != agent);
}

TEST_CASE("cable: what is plugged in again in time has lost nothing") {
  if (Far::is_missing()) return;
  Far far;
  PlaceOptions options = far.options();
  options.keep_alive = std::chrono::seconds(60);
  const PlaceExecutor there = make_place(options);
  const pid_t agent = agent_of(there);
  const Execution started =
      there.start(Command::shell("echo before; until [ -e go ]; do sleep 0.01; done; seq 1 20000; "
                                 "echo > printed; echo after; exit 7"));
  REQUIRE(prints(started, "before\n"));
  far.wire.pull();
  write_file(far.path("go"), "");
  // Its output fits into the window, so that it goes on while nobody is there.
  REQUIRE(appears(far.path("printed")));
  std::string other;
  std::thread beside([&] { other = there.run("echo beside it").out; });
  far.wire.plug();
  beside.join();
  const Result r = started.wait();
  CHECK(r.exit_code == 7);
  CHECK(begins(r.out, "before\n1\n2\n"));
  CHECK(ends(r.out, "\n20000\nafter\n"));
  CHECK(r.out_counts.total_bytes == 7 + 108894 + 6);
  CHECK(other == "beside it\n");
  CHECK(agent_of(there) == agent);
}

#endif  // __linux__
