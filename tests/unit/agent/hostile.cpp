// Places and clients that say what they should not: bytes at random, lengths, credit and numbers
// that lie, answers that are cut at each byte.

#include "../../helpers/place_support.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>

using codeexec::Command;
using codeexec::Json;
using codeexec::Outcome;
using codeexec::PlaceExecutor;
using codeexec::PlaceOptions;
using codeexec::ProcessOptions;
using codeexec::ProcessResult;
using codeexec::Result;
using namespace support;

using namespace std::string_view_literals;

namespace {

// The kinds of frames, as the table in frames_internal.hpp has them.
enum Kind {
  ping,
  hello,
  request,
  start,
  input,
  input_end,
  credit,
  signal_,
  started,
  out,
  err,
  input_closed,
  session_data,
  end,
  bye,
  resize,
  connect_
};

constexpr std::size_t connection = 0x80000001;  // the number of one

std::string number(std::size_t value) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

std::string frame(int kind, std::size_t id, const std::string& payload) {
  return number(payload.size()) + static_cast<char>(kind) + number(id) + payload;
}

constexpr const char* mark = "codeexec-place/1\n";
constexpr const char* good_end =
    R"({"outcome":0,"exit_code":5,"signal":0,"cpu":1,"memory":1,"left":0,"pid":7})";

// A hello that is accepted everywhere: its sandbox is what the system has.
std::string accepted(const std::string& wishes = {}) {
  return frame(hello, 0, R"({"protocol":1,"sandbox":{"mode":1})" + wishes + "}");
}

// What answers a question about files, and a question: as FileMessage::text() has it.
struct FileAnswer {
  std::uint64_t numbers[6] = {};
  std::string path = {};
  std::string extra = {};
  std::string bytes = {};

  std::string text() const {
    std::uint64_t head[8];
    std::copy(std::begin(numbers), std::end(numbers), head);
    head[6] = path.size();
    head[7] = extra.size();
    return std::string(reinterpret_cast<const char*>(head), sizeof head) + path + extra + bytes;
  }
};

// A place that is played: it answers the greeting, and what it is given to say when the first
// command comes; then it listens.
class Played {
 public:
  TempDir folder = {};
  TempDir workspace = {};
  PlaceOptions options = place_options(workspace.path());

  // With a `ground`, which it says to have found, the workspace is only there.
  explicit Played(const std::string& answer, std::optional<std::string_view> ground = {}) {
    const std::string greeting =
        R"({"protocol":1,"version":"0","machine":"m","host":"h","uid":1,"home":"/h","nonces":[")";
    std::string rest = "\"]}";
    if (ground) {
      rest = "\"],\"ground\":" + Json(*ground).dump() + "}";
      options.workspace_mode = codeexec::PlaceWorkspace::remote;
      write_file(workspace / ".codeexec-none", std::string(32, 'x'));
    }
    write_file(folder / "head", mark + number(greeting.size() + 32 + rest.size()) +
                                    static_cast<char>(hello) + number(0) + greeting);
    write_file(folder / "rest", rest);
    write_file(folder / "answer", answer);
    // Standard output of its programs goes nowhere, and descriptor 3 to the client. It goes on when
    // its parent is killed, until nobody reads what it says.
    write_file(
        folder / "play",
        "trap '' PIPE; cd \"$1\"; exec 3>&1 >/dev/null 2>&1; dd bs=64k count=1; cat head >&3; "
        "cat \"$2\"/.codeexec-* >&3; cat rest >&3; dd bs=64k count=1; cat answer >&3; "
        "[ $# = 2 ] || cat; echo > over");
    options.transport = {
        "sh", "-c", "sh \"$0\"/play \"$@\"; :", folder.path(), folder.path(), workspace.path()};
  }
  void stays() { options.transport.push_back("stays"); }
};

Result result_of(const std::string& answer, bool stays = true) {
  Played place(answer);
  if (stays) place.stays();
  const PlaceExecutor there = make_place(place.options);
  const Result r = there.run("true");
  // Told, and the place is not used any more.
  if (r.outcome == Outcome::unknown) CHECK(has(r.message, "the connection to box was lost"));
  return r;
}

ProcessResult agent_given(const std::string& bytes, bool keep_open = false) {
  ProcessOptions options;
  options.argv = {CODEEXEC_MCP, "--place"};
  options.environment = {"PATH=/usr/bin:/bin", "HOME=/nonexistent"};
  options.input = bytes;
  options.keep_input_open = keep_open;
  options.timeout = safety;
  return codeexec::run_process(options);
}

// What an agent of these words says until its first command has ended.
std::string said_to_end(const std::vector<std::string>& agent, const std::string& bytes) {
  ProcessOptions options;
  options.argv = agent;
  options.environment = {"PATH=/usr/bin:/bin", "HOME=/nonexistent"};
  options.keep_input_open = true;
  options.timeout = safety;
  const auto process = codeexec::Process::start(options);
  REQUIRE(process);
  CHECK(process->write(bytes));
  CHECK(support::comes_true(
      [&] { return has(process->read(codeexec::Stream::out, 0).text, "\"exit_code\":0"); }));
  process->close_input();
  return process->wait().out;
}

// A command of that work_dir which a shell reads, without input.
std::string order_of(const std::string& work_dir, const std::string& script) {
  return frame(start, 1,
               std::string(R"({"argv":3})") + '\0' + work_dir + '\0' + '\0' + "sh" + '\0' + "-c" +
                   '\0' + script + '\0');
}

// A greeting and a command that prints and reads; none of its words could do harm.
std::string orders() {
  const std::string order = std::string(R"({"input":true,"argv":3,"set":1,"unset":1})") + '\0' +
                            "/" + '\0' + '\0' + "sh" + '\0' + "-c" + '\0' + "echo printed; cat" +
                            '\0' + "A=b" + '\0' + "C" + '\0';
  return accepted() + frame(request, 1, order.substr(0, 20)) + frame(start, 1, order.substr(20)) +
         frame(input, 1, "line\n") + frame(credit, 1, std::string(1, '\0') + number(0)) +
         frame(ping, 0, "") + frame(signal_, 1, std::string(1, '\x12')) + frame(input_end, 1, "");
}

}  // namespace

TEST_CASE("place: an answer is taken whole, and one that is cut at any byte is no result") {
  const std::string answer =
      frame(out, 1, "printed\n") + frame(err, 1, "on stderr\n") + frame(end, 1, good_end);
  const Result whole = result_of(answer);
  CHECK_MESSAGE(whole.exit_code == 5, describe(whole));
  CHECK(whole.out == "printed\n");
  CHECK(whole.err == "on stderr\n");
  for (std::size_t size = 0; size < answer.size(); ++size) {
    const Result r = result_of(answer.substr(0, size), false);
    CAPTURE(size);
    CHECK(r.outcome == Outcome::unknown);
    CHECK(begins("printed\n", r.out));
    CHECK(begins("on stderr\n", r.err));
    if (size >= 17) CHECK(r.out == "printed\n");
  }
}

TEST_CASE("place: what an agent never says ends the connection") {
  const std::string full(65536, 'x');
  const auto ended = [](const char* json) { return frame(end, 1, json); };
  const std::string lies[] = {
      frame(out, 2, "of nobody"),
      frame(out, 0, "of nobody"),
      frame(end, 77, good_end),
      frame(bye, 1, ""),
      frame(resize, 1, number(24) + number(80)),
      frame(connect_, connection, ""),
      frame(connect_, connection, number(2)),
      frame(connect_, 2, number(1)),
      frame(connect_, connection, number(1)) + frame(connect_, connection, number(1)),
      frame(connect_, connection, number(1)) + frame(err, connection, "x"),
      frame(connect_, connection, number(1)) + frame(end, connection, "{}"),
      frame(connect_, connection, number(1)) +
          frame(credit, connection, std::string(1, '\2') + number(0xffffffff)),
      frame(out, connection, "of nobody"),
      frame(end, connection, ""),
      frame(255, 1, ""),
      frame(start, 1, "{}"),
      frame(input, 1, "x"),
      frame(hello, 0, "{}"),
      frame(out, 1, ""),
      frame(ping, 1, ""),
      frame(ping, 0, "x"),
      frame(started, 1, "123"),
      frame(started, 1, "1234"),
      frame(started, 1, "1234") + frame(started, 1, "1234"),
      frame(session_data, 1, "nobody asked"),
      frame(credit, 1, ""),
      frame(credit, 1, std::string(1, '\2') + number((8u << 20) - (256u << 10) + 1)),
      frame(credit, 1, std::string(1, '\2') + number(0xffffffff)),
      frame(credit, 1, std::string(1, '\0') + number(1)),
      number(65537) + static_cast<char>(out) + number(1),
      number(0xffffffff) + static_cast<char>(out) + number(1),
      frame(input_closed, 1, "x"),
      ended("not JSON"),
      ended("[]"),
      ended("{}"),
      ended(R"({"outcome":0,"exit_code":256,"signal":0,"cpu":1,"memory":1,"left":0})"),
      ended(R"({"outcome":0,"exit_code":-1,"signal":0,"cpu":1,"memory":1,"left":0})"),
      ended(R"({"outcome":1,"exit_code":-1,"signal":0,"cpu":1,"memory":1,"left":0})"),
      ended(R"({"outcome":4,"exit_code":-1,"signal":0,"cpu":1,"memory":1,"left":0})"),
      ended(R"({"outcome":7,"exit_code":-1,"signal":0,"cpu":1,"memory":1,"left":0})"),
      ended(R"({"outcome":0,"exit_code":0,"signal":65,"cpu":1,"memory":1,"left":0})"),
      ended(R"({"outcome":0,"exit_code":0,"signal":0,"cpu":-1,"memory":1,"left":0})"),
  };
  for (const std::string& lie : lies) {
    CAPTURE(lie.substr(0, 100));
    const Result r = result_of(lie);
    CHECK(r.outcome == Outcome::unknown);
    CHECK(has(r.message, "not of this protocol"));
  }
  // A command whose result is there has it, whatever comes after.
  CHECK(result_of(frame(end, 1, good_end) + frame(out, 1, "late")).exit_code == 5);
  CHECK(result_of(frame(end, 1, good_end) + frame(end, 1, good_end)).exit_code == 5);
}

TEST_CASE("place: more than the credit, with nobody who reads, ends the connection") {
  std::string flood;
  for (int i = 0; i < 64; ++i) flood += frame(out, 1, std::string(65536, 'x'));
  Played place(flood);
  place.stays();
  const PlaceExecutor there = make_place(place.options);
  Command command = Command::shell("true");
  // The first bytes are not given back until the connection has ended.
  command.on_output = [&](codeexec::Stream, std::string_view) {
    CHECK(appears(place.folder / "over"));
  };
  const Result r = there.run(command);
  CHECK(r.outcome == Outcome::unknown);
  CHECK(r.out_counts.total_bytes < flood.size());
}

TEST_CASE("place: connections beyond their number, or their credit, end the connection") {
  std::string flood;
  for (std::size_t i = 0; i < 257; ++i) flood += frame(connect_, connection + i, number(1));
  CHECK(has(result_of(flood).message, "not of this protocol"));
  flood = frame(connect_, connection, number(1));
  for (int i = 0; i < 5; ++i) flood += frame(out, connection, std::string(65536, 'x'));
  CHECK(has(result_of(flood).message, "not of this protocol"));
}

TEST_CASE("place: an agent without connections is no place for an allowed network") {
  Played place("");
  place.options.sandbox.mode = codeexec::SandboxMode::best_effort;
  place.options.sandbox.network = codeexec::Network::allow;
  place.options.allowed_domains = {"python"};
  const codeexec::Error error = place_error(place.options);
  CHECK(error.code == codeexec::ErrorCode::unsupported);
  CHECK(has(error.message, "network: 'allow' needs an agent of version "));
}

TEST_CASE("place: an agent that knows no other size for a terminal is not asked for one") {
  Played place(frame(started, 1, "1234"));
  place.stays();
  const PlaceExecutor there = make_place(place.options);
  Command command = Command::shell("true");
  command.terminal = codeexec::TerminalSize();
  const codeexec::Execution run = there.start(command);
  const auto refused = run.resize({30, 100});
  REQUIRE(!refused);
  CHECK(refused.error().code == codeexec::ErrorCode::unsupported);
  CHECK(has(refused.error().message, "install codeexec-mcp"));
}

TEST_CASE("place: random bytes from a place are no result") {
  Random random(7);
  for (int i = 0; i < 60; ++i) {
    std::string bytes;
    while (bytes.size() < 40) {
      std::string payload(random.below(40), '\0');
      for (char& c : payload) c = static_cast<char>(random.below(256));
      bytes += random.below(4) == 0 ? payload
                                    : frame(static_cast<int>(random.below(17)),
                                            random.below(3) | random.below(2) << 31, payload);
    }
    const Result r = result_of(bytes, false);
    CHECK(r.outcome == Outcome::unknown);
  }
}

TEST_CASE("place: what is printed by the place is printable in messages") {
  Played place("");
  place.options.transport = {"sh", "-c", "printf '\\033[31mred\\n\\377' >&2"};
  const codeexec::Error error = place_error(place.options);
  CHECK(codeexec::is_utf8(error.message));
  CHECK(!has(error.message, "\033"));
}

// Each of them is given all that it can have before the next one begins.
TEST_CASE("place: what an agent lets 200 commands be sent is bounded, and for one it is much") {
  constexpr std::size_t count = 200;
  constexpr std::size_t first = std::size_t{256} << 10;
  std::mutex mutex;
  std::condition_variable came;
  std::string said;
  std::size_t windows[count + 1] = {};
  ProcessOptions options;
  options.argv = {CODEEXEC_MCP, "--place"};
  options.environment = {"PATH=/usr/bin:/bin", "HOME=/nonexistent"};
  options.input = accepted();
  options.keep_input_open = true;
  options.timeout = safety;
  options.on_output = [&](codeexec::Stream, std::string_view bytes) {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto number_at = [&said](std::size_t at) {
      std::size_t value = 0;
      for (std::size_t i = 4; i-- > 0;)
        value = value << 8 | static_cast<unsigned char>(said[at + i]);
      return value;
    };
    said += bytes;
    if (begins(said, mark)) said.erase(0, std::strlen(mark));
    while (said.size() >= 9 && said.size() >= 9 + number_at(0)) {
      if (said[4] == credit) windows[number_at(5)] += number_at(10);
      said.erase(0, 9 + number_at(0));
    }
    came.notify_all();
  };
  const auto agent = codeexec::Process::start(options);
  REQUIRE(agent);
  std::size_t all = 0;
  for (std::size_t id = 1; id <= count; ++id) {
    const std::string orders = frame(start, id,
                                     std::string(R"({"input":true,"argv":2})") + '\0' + "/" + '\0' +
                                         '\0' + "wc" + '\0' + "-c" + '\0') +
                               frame(input, id, std::string(first / 4, 'x')) +
                               frame(input, id, std::string(first / 4, 'x'));
    REQUIRE(agent->write(orders));
    std::unique_lock<std::mutex> lock(mutex);
    REQUIRE(came.wait_for(lock, safety, [&] { return windows[id] != 0; }));
    windows[id] += first / 2;
    CHECK(windows[id] <= std::max(first, (std::size_t{8} << 20) / id));
    all += windows[id];
  }
  CHECK(windows[1] > std::size_t{7} << 20);
  CHECK(all <= std::size_t{75} << 20);
  agent->close_input();
  CHECK(agent->wait().exit_code == 0);
}

TEST_CASE("place: an agent whose orders are cut at any byte ends, and leaves nothing") {
  const std::string all = orders();
  const ProcessResult whole = agent_given(all);
  CHECK(whole.exit_code == 0);
  for (std::size_t size = 0; size < all.size(); ++size) {
    const ProcessResult r = agent_given(all.substr(0, size));
    CAPTURE(size);
    CHECK(r.outcome == Outcome::exited);
    CHECK(r.exit_code == 0);
    CHECK(begins(r.out, mark));
  }
}

TEST_CASE("place: an agent ends with an error when orders are none") {
  const std::string greeting = accepted();
  const auto request_of = [](const std::string& head) {
    return frame(start, 1, head + '\0' + "/" + '\0' + '\0' + "true" + '\0');
  };
  // Its input is read by nobody: more than the pipe takes and the credit allows.
  const std::string asleep = frame(start, 1,
                                   std::string(R"({"input":true,"argv":2})") + '\0' + "/" + '\0' +
                                       '\0' + "sleep" + '\0' + "60" + '\0');
  std::string flood;
  for (int i = 0; i < 16; ++i) flood += frame(input, 1, std::string(65536, 'x'));
  const std::string wrong[] = {
      "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
      std::string(20, '\xff'),
      frame(start, 1, "{}"),
      greeting + greeting,
      frame(hello, 0, "{}"),
      frame(hello, 0, "x"),
      greeting + frame(99, 0, ""),
      greeting + frame(out, 1, "x"),
      greeting + frame(end, 1, "{}"),
      greeting + frame(start, 0, "{}"),
      greeting + frame(start, 1, ""),
      greeting + frame(start, 1, "{}"),
      greeting + request_of(R"({"argv":0})"),
      greeting + request_of(R"({"argv":2})"),
      greeting + request_of(R"({"argv":9223372036854775807})"),
      greeting + request_of(R"({"argv":-1})"),
      greeting + frame(request, 1, "a") + frame(start, 2, "b"),
      greeting + frame(input_end, 1, "x"),
      greeting + frame(signal_, 1, ""),
      greeting + frame(signal_, connection, ""),
      greeting + frame(input_end, connection, "x"),
      greeting + frame(start, connection, "{}"),
      greeting + frame(signal_, 1, "\xff"),
      greeting + frame(resize, 1, number(24)),
      greeting + frame(resize, 1, number(24) + number(501)),
      greeting + frame(resize, 1, number(0x80000018) + number(0xffffffff)),
      greeting + frame(credit, 1, std::string(1, '\3') + number(1)),
      greeting + asleep + flood,
  };
  for (const std::string& bytes : wrong) {
    CAPTURE(bytes.substr(0, 100));
    const ProcessResult r = agent_given(bytes);
    CHECK(r.outcome == Outcome::exited);
    CHECK(r.exit_code == 1);
    CHECK(has(r.err, "not of this protocol"));
  }
  CHECK(agent_given(greeting + request_of(R"({"argv":1})")).exit_code == 0);
  const ProcessResult other = agent_given(frame(hello, 0, R"({"protocol":99})"));
  CHECK(has(other.out, "another protocol"));
}

TEST_CASE("place: a workspace that cannot be is an error") {
  const auto error_of = [](std::string_view ground) {
    Played place("", ground);
    place.options.roots = {{place.workspace.path()}};
    place.stays();
    return place_error(place.options).message;
  };
  for (const std::string_view lie :
       {""sv, "/ws"sv, "/\0"sv, "ws\0002/ws"sv, "/a/../b\0002/ws"sv, "/ws\0002relative"sv,
        "/ws\0002/ws/"sv, "/ws\0002"sv, "/ws\0\0"sv}) {
    CAPTURE(std::string(lie));
    CHECK(has(error_of(lie), "has reported a path that is none"));
  }
  CHECK(has(error_of("/ws\0001/ref"sv), "read_only: nothing would keep"));
}

TEST_CASE("place: an answer about files that cannot be is an error") {
  // The answer to the first question, which is for a file.
  const auto read = [](const std::string& said, const std::string& ended) {
    Played place(frame(out, 1, said) + frame(end, 1, ended), "/ws\0002/ws"sv);
    place.stays();
    place.options.roots = {{"/ws"}};
    const auto made = PlaceExecutor::create(place.options);
    REQUIRE_MESSAGE(made, made.error().message);
    codeexec::FileRange range;
    range.max_bytes = 10;
    return made->files().read("file", range);
  };
  const std::string ok = R"({"outcome":0,"exit_code":0,"signal":0,"cpu":1,"memory":1,"left":0})";
  FileAnswer answer;
  answer.path = "/ws/file";
  answer.bytes = "0123456789";
  answer.extra = "image/png";
  const std::string whole = answer.text();
  const auto good = read(whole, ok);
  REQUIRE_MESSAGE(good, good.error().message);
  CHECK(good->bytes == answer.bytes);
  CHECK(good->mime_type == "image/png");
  CHECK(has(read(whole, good_end).error().message, "has not answered about its files"));
  for (const std::size_t size : {std::size_t{1}, std::size_t{63}, std::size_t{70}}) {
    CAPTURE(size);
    CHECK(has(read(whole.substr(0, size), ok).error().message, "has not answered"));
  }
  for (const std::size_t at : {std::size_t{48}, std::size_t{56}}) {
    std::string lengths = whole;
    lengths.replace(at, 8, 8, '\xff');
    CHECK(has(read(lengths, ok).error().message, "has not answered"));
  }
  for (const std::string_view path : {""sv, "../x"sv, "file"sv, "/ws/../x"sv, "/ws/x\0y"sv}) {
    answer.path = path;
    CHECK(has(read(answer.text(), ok).error().message, "has reported a path that is none"));
  }
  answer.path = "/ws/file";
  answer.extra = "text/html";
  answer.bytes += "more than was asked for";
  const auto lie = read(answer.text(), ok);
  REQUIRE(lie);
  CHECK(lie->bytes.empty());
  CHECK(lie->mime_type.empty());
  answer.numbers[0] = ~std::uint64_t{0};
  answer.bytes = "\033[31m\xff";
  const codeexec::Error error = read(answer.text(), ok).error();
  CHECK(codeexec::is_utf8(error.message));
  CHECK(!has(error.message, "\033"));
  CHECK(error.code == codeexec::ErrorCode::io);
}

TEST_CASE("place: what answers questions takes any bytes") {
  Random random(13);
  // Nothing may be changed.
  const TempDir folder;
  const std::string ground = Json(folder.path() + '\0' + "1" + folder.path()).dump();
  const auto asked = [&](const std::string& bytes, const std::string& where) {
    ProcessOptions options;
    options.argv = {CODEEXEC_MCP, "--place"};
    options.environment = {"CODEEXEC_PLACE_QUESTION=" + where};
    options.input = bytes.empty() ? std::string(1, 'x') : bytes;
    options.timeout = safety;
    return codeexec::run_process(options);
  };
  FileAnswer question;
  question.numbers[0] = 3;  // a list
  question.path = folder.path();
  const std::string whole = question.text();
  CHECK(asked(whole, ground).exit_code == 0);
  for (const char* none : {"", "{", "\"", "1x"}) CHECK(asked(whole, none).exit_code == 1);
  for (std::size_t size = 0; size < 64; size += 7)
    CHECK(asked(whole.substr(0, size), ground).exit_code == 1);
  for (int i = 0; i < 60; ++i) {
    for (std::uint64_t& one : question.numbers) one = random.below(3) ? random.below(5) : ~one;
    question.numbers[0] = random.below(9);
    for (std::string* const text : {&question.path, &question.extra, &question.bytes}) {
      *text = random.below(2) ? folder.path() : std::string();
      for (std::size_t left = random.below(8); left > 0; --left)
        *text += static_cast<char>(random.below(256));
    }
    CHECK(asked(question.text(), ground).exit_code == 0);
  }
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("place: random orders end an agent without harm") {
  Random random(11);
  const std::string good = accepted();
  for (int i = 0; i < 60; ++i) {
    std::string bytes = good;
    while (bytes.size() < 100) {
      std::string payload(random.below(30), '\0');
      for (char& c : payload) c = static_cast<char>(random.below(256));
      bytes += frame(static_cast<int>(random.below(17)), random.below(3) | random.below(2) << 31,
                     payload);
    }
    CHECK(agent_given(bytes).outcome == Outcome::exited);
  }
}

TEST_CASE("agent: no command starts after a hello that was refused, or that was for no commands") {
  const std::string commands = orders().substr(accepted().size());
  // The last one is refused when its sandbox is made.
  for (const char* const text :
       {R"({"protocol":2})", R"({"protocol":1,"prepare":{}})",
        R"({"protocol":1,"sandbox":{"mode":2,"writable":["/nowhere/at/all"]}})"}) {
    CAPTURE(text);
    const ProcessResult r = agent_given(frame(hello, 0, text) + commands);
    CHECK(r.exit_code == 0);
    CHECK(has(r.out, "no hello has prepared this agent for commands"));
    CHECK(!has(r.out, "printed"));
  }
  CHECK(!has(agent_given(accepted() + commands).out, "no hello has prepared"));
}

TEST_CASE("agent: (helper) of containers alone" * doctest::skip()) {
  CHECK(codeexec::agent_main(0, 1) == 0);
}

TEST_CASE("agent: a venv of the work_dir counts where the hello says so, and not by itself") {
  const support::TempDir place;
  place.directory(".venv/bin");
  place.file(".venv/pyvenv.cfg", "");
  const std::string order = order_of(place.path(), "echo =$PATH=");
  const std::string in_venv = "=" + place.path() + "/.venv/bin:";
  const std::vector<std::string> agents[] = {{CODEEXEC_MCP, "--place"},
                                             {support::real_path("/proc/self/exe"), "--no-skip",
                                              "-tc=agent: (helper) of containers alone"}};
  for (const auto& agent : agents)
    for (const char* const wish : {"", R"(,"auto_venv":false)", R"(,"auto_venv":true)"}) {
      CAPTURE(agent[0]);
      CAPTURE(wish);
      const std::string said = said_to_end(agent, accepted(wish) + order);
      CHECK(has(said, "/bin=\n"));
      CHECK(has(said, in_venv) == has(wish, "true"));
    }
}
