// Slow clients, and how a conversation ends.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <thread>

#include "../../helpers/json_support.hpp"
#include "../../helpers/line_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::CancelToken;
using codeexec::ErrorCode;
using codeexec::Json;
using codeexec::mcp::Call;
using codeexec::mcp::Server;
using codeexec::mcp::ServerOptions;
using codeexec::mcp::Tool;
using codeexec::mcp::ToolResult;
using support::check_shape;
using support::Clock;
using support::Gate;
using support::has;
using support::is_failure;
using support::modern;
using support::parsed;
using support::Pipe;
using support::seconds_since;
using support::Talk;
using support::text_of;
using support::tool;

namespace {

// The disposition, the mask and what is pending of SIGPIPE in this thread.
struct SigpipeState {
  bool is_default = false;
  bool blocked = false;
  bool pending = false;
  static SigpipeState now() {
    SigpipeState state;
    struct sigaction action = {};
    ::sigaction(SIGPIPE, nullptr, &action);
    state.is_default = action.sa_handler == SIG_DFL;
    sigset_t set;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &set);
    state.blocked = sigismember(&set, SIGPIPE) == 1;
    ::sigpending(&set);
    state.pending = sigismember(&set, SIGPIPE) == 1;
    return state;
  }
  bool operator==(const SigpipeState& other) const {
    return is_default == other.is_default && blocked == other.blocked && pending == other.pending;
  }
};

}  // namespace

// slow clients ------------------------------------------------------------------------------------

TEST_CASE("ten thousand pings from a client that reads later are all answered") {
  Talk talk;
  for (int i = 0; i < 10000; ++i)
    talk.send(R"({"jsonrpc":"2.0","id":)" + std::to_string(i) + R"(,"method":"ping"})");
  for (int i = 0; i < 10000; ++i) {
    const Json reply = talk.receive();
    REQUIRE(reply["id"] == Json(i));
  }
  CHECK(talk.finish().empty());
}

TEST_CASE("replies to a client that does not read are bounded, and stop still ends it") {
  ServerOptions options;
  options.max_queued = 100000;
  Talk talk({}, options);
  // Something the server wants to say at its end, too.
  CHECK(talk.ask(modern("\"s\"", "subscriptions/listen", R"("notifications":{})")).find("method"));
  const std::string ping = R"({"jsonrpc":"2.0","id":1,"method":"ping"})"
                           "\n";
  std::size_t sent = 0;
  std::string many;
  for (int i = 0; i < 1000; ++i) many += ping;
  REQUIRE(talk.set_blocking(false));  // to see when the server stops reading
  bool stalled = false;
  while (!stalled && sent < (std::size_t(64) << 20)) {
    const ssize_t size = talk.try_send(many);
    if (size > 0) {
      sent += static_cast<std::size_t>(size);
      continue;
    }
    stalled = !talk.wait_writable(1000);
  }
  CHECK(stalled);  // the server holds back, and so does the pipe
  CHECK(sent < (std::size_t(4) << 20));
  const auto start = Clock::now();
  talk.stop.cancel();
  CHECK(talk.wait());
  CHECK(seconds_since(start) < 1.5);
}

TEST_CASE("progress that the client is too slow for is dropped, and holds up no handler") {
  ServerOptions options;
  options.max_queued = 20000;
  Gate gate;
  Tool chatty = tool("chatty", [&gate](const Call& call) {
    for (int i = 0; i < 32; ++i) call.progress(i, {}, std::string(4000, 'm'));
    gate.wait(call);
    return ToolResult::text("done");
  });
  Talk talk({chatty}, options);
  talk.initialize();
  talk.limit_pipe();
  talk.send(Talk::call_line("1", "chatty", "{}", R"({"progressToken":1})"));
  REQUIRE(gate.wait_for_arrivals(1));  // though nothing has been read
  gate.open();
  int notices = 0;
  while (talk.receive().find("method")) ++notices;
  CHECK(notices > 0);
  CHECK(notices < 16);
}

TEST_CASE("handlers with large results wait for the client, and no byte is lost") {
  ServerOptions options;
  options.max_queued = 1 << 20;
  Tool large =
      tool("large", [](const Call&) { return ToolResult::text(std::string(3000000, 'z')); });
  Talk talk({large}, options);
  talk.initialize();
  for (int i = 0; i < 12; ++i) talk.send(Talk::call_line(std::to_string(i), "large"));
  std::set<std::int64_t> ids;
  for (int i = 0; i < 12; ++i) {
    const Json reply = talk.receive();
    CHECK(text_of(reply).size() == 3000000);
    ids.insert(reply["id"].as_integer());
  }
  CHECK(ids.size() == 12);
  CHECK(talk.finish().empty());
}

TEST_CASE("many calls from a busy client are each answered once") {
  ServerOptions options;
  options.max_waiting = 5000;
  Talk talk({}, options);
  talk.initialize();
  std::thread writer([&] {
    for (int i = 0; i < 5000; ++i)
      talk.send(
          Talk::call_line(std::to_string(i), "echo", R"({"text":"t)" + std::to_string(i) + "\"}"));
  });
  std::set<std::int64_t> ids;
  bool right = true;
  int busy = 0;
  for (int i = 0; i < 5000; ++i) {
    const Json reply = talk.receive();
    const std::int64_t id = reply["id"].as_integer();
    right = right && ids.insert(id).second;
    if (is_failure(reply)) {
      ++busy;
    } else {
      right = right && text_of(reply) == "t" + std::to_string(id);
    }
  }
  writer.join();
  CHECK(right);
  CHECK(busy == 0);
  CHECK(talk.finish().empty());
}

// the end -----------------------------------------------------------------------------------------

TEST_CASE("at the end of input the server returns at once when nothing runs") {
  Talk talk;
  talk.initialize();
  const auto start = Clock::now();
  CHECK(talk.finish().empty());
  CHECK(seconds_since(start) < 1.5);
}

TEST_CASE("a last line without newline is served") {
  Talk talk;
  talk.send_bytes(R"({"jsonrpc":"2.0","id":1,"method":"ping"})");
  const std::vector<Json> last = talk.finish();
  REQUIRE(last.size() == 1);
  CHECK(last[0]["id"] == Json(1));
}

TEST_CASE("one socket serves both directions, and may be shut down for writing first") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  ServerOptions options;
  options.in_fd = ends[0];
  options.out_fd = ends[0];
  Server server(options);
  const std::string line = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
  REQUIRE(::write(ends[1], line.data(), line.size()) == static_cast<ssize_t>(line.size()));
  ::shutdown(ends[1], SHUT_WR);
  CHECK(server.serve());
  char buffer[100];
  const ssize_t size = ::read(ends[1], buffer, sizeof buffer);
  REQUIRE(size > 0);
  CHECK(std::string(buffer, static_cast<std::size_t>(size)) ==
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("the end of input is seen although the client takes no more answers") {
  ServerOptions options;
  options.max_queued = 20000;
  Talk talk({}, options);
  talk.initialize();
  // Requests are written until the server, stuck on its answers, takes no more of them.
  const std::string request = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n";
  REQUIRE(talk.set_blocking(false));
  while (talk.wait_writable(300)) (void)talk.try_send(request);
  talk.close_input();
  CHECK(talk.wait());
}

TEST_CASE("calls whose messages take too much memory together are refused, a single one is not") {
  ServerOptions options;
  options.max_open_bytes = 100000;
  Talk talk({}, options);
  talk.initialize();
  const std::string large(150000, 'x');
  CHECK(text_of(talk.call("echo", "{\"text\":\"" + large + "\"}")) == large);
  talk.send(Talk::call_line("1", "hold"));
  REQUIRE(talk.gate.wait_for_arrivals(1));
  const Json busy = talk.call("echo", "{\"text\":\"" + large + "\"}");
  CHECK(busy["result"]["isError"].as_bool());
  CHECK(has(text_of(busy), "too much memory"));
  CHECK(text_of(talk.call("echo", R"({"text":"small"})")) == "small");
  talk.gate.open();
  CHECK(talk.receive()["id"] == Json(1));
  // What was open is not counted any more.
  CHECK(text_of(talk.call("echo", "{\"text\":\"" + large + "\"}")) == large);
}

TEST_CASE("calls that end soon after the input are answered") {
  Tool soon = tool("soon", [](const Call& call) {
    pollfd fd = {call.cancel_token().descriptor(), POLLIN, 0};
    ::poll(&fd, 1, 30);
    return ToolResult::text(call.cancel_token().cancelled() ? "cancelled" : "whole");
  });
  Talk talk({soon});
  talk.initialize();
  for (int i = 0; i < 20; ++i) talk.send(Talk::call_line(std::to_string(i), "soon"));
  const std::vector<Json> last = talk.finish();
  CHECK(last.size() == 20);
  for (const Json& reply : last) CHECK(text_of(reply) == "whole");
}

TEST_CASE("calls that go on after the input ended are cancelled, within 1.5 seconds") {
  ServerOptions options;
  options.max_concurrent = 2;
  Talk talk({}, options);
  talk.initialize();
  for (int i = 0; i < 3; ++i) talk.send(Talk::call_line(std::to_string(i), "hold"));
  REQUIRE(talk.gate.wait_for_arrivals(2));
  const auto start = Clock::now();
  const std::vector<Json> last = talk.finish();
  CHECK(seconds_since(start) < 1.5);
  std::map<std::int64_t, std::string> texts;
  for (const Json& reply : last) texts[reply["id"].as_integer()] = text_of(reply);
  CHECK(texts.size() == 3);
  CHECK(texts[0] == "cancelled");
  CHECK(texts[1] == "cancelled");
  CHECK(has(texts[2], "not called"));
  CHECK(talk.gate.arrived() == 2);
}

TEST_CASE("stop cancels running calls without grace") {
  Talk talk;
  talk.initialize();
  talk.send(Talk::call_line("1", "hold"));
  REQUIRE(talk.gate.wait_for_arrivals(1));
  const auto start = Clock::now();
  talk.stop.cancel();
  CHECK(talk.wait());
  CHECK(seconds_since(start) < 1.5);
  REQUIRE(talk.gate.wait_for_cancelled(1));
}

TEST_CASE("serve() returns in time even if a handler does not, and says so") {
  Gate gate;
  Tool stubborn = tool("stubborn", [&gate](const Call& call) {
    gate.wait_stubbornly();
    call.progress(1);
    return ToolResult::text("too late");
  });
  {
    Talk talk({stubborn});
    talk.initialize();
    talk.send(Talk::call_line("1", "stubborn", "{}", R"({"progressToken":1})"));
    REQUIRE(gate.wait_for_arrivals(1));
    const auto start = Clock::now();
    talk.close_input();
    const auto result = talk.wait();
    CHECK(seconds_since(start) < 1.5);
    REQUIRE(!result);
    CHECK(result.error().code == ErrorCode::limit);
    CHECK(talk.receive_line().empty());
  }
  gate.open();  // the handler ends after the server is gone
  CHECK(gate.wait_until_left());
}

TEST_CASE("a client that goes away ends the server and raises no SIGPIPE") {
  const SigpipeState before = SigpipeState::now();
  CHECK(before.is_default);
  for (const bool idle : {true, false}) {
    Talk talk;
    talk.initialize();
    if (!idle) {
      talk.send(Talk::call_line("1", "hold"));
      REQUIRE(talk.gate.wait_for_arrivals(1));
    }
    const auto start = Clock::now();
    talk.close_output();
    if (!idle) talk.send(R"({"jsonrpc":"2.0","id":1,"method":"ping"})");
    CHECK(talk.wait());
    CHECK(seconds_since(start) < 1.5);
    CHECK(before == SigpipeState::now());
  }
}

TEST_CASE("a client that goes away in the middle of a large reply ends the server") {
  Tool large =
      tool("large", [](const Call&) { return ToolResult::text(std::string(4000000, 'z')); });
  Talk talk({large});
  talk.initialize();
  talk.send(Talk::call_line("1", "large"));
  talk.wait_readable();
  const auto start = Clock::now();
  talk.close_output();
  CHECK(talk.wait());
  CHECK(seconds_since(start) < 1.5);
}

TEST_CASE("a stop before the start is a stop") {
  Pipe to;
  Pipe from;
  ServerOptions options;
  options.in_fd = to.read_end;
  options.out_fd = from.write_end;
  Server server(options);
  CancelToken stop;
  stop.cancel();
  CHECK(server.serve(stop));
}

TEST_CASE("serve() refuses options that cannot be") {
  const auto refused = [](const ServerOptions& options, const char* says) {
    Server server(options);
    const auto served = server.serve();
    REQUIRE(!served);
    CHECK_MESSAGE(has(served.error().message, says), served.error().message);
  };
  ServerOptions options;
  options.name = "";
  refused(options, "name");
  options = {};
  options.max_concurrent = 0;
  refused(options, "max_concurrent");
  options = {};
  options.max_reply = 100;
  refused(options, "max_reply");
  options = {};
  options.max_line = 0;
  refused(options, "max_line");
  options = {};
  options.in_fd = 987654;
  refused(options, "in_fd");
  options = {};
  options.in_fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  options.out_fd = 987654;
  refused(options, "out_fd");
  ::close(options.in_fd);
}

TEST_CASE("descriptors 0 and 1 are out of reach while serving and come back") {
  Pipe to;
  Pipe from;
  const int kept_in = ::fcntl(0, F_DUPFD_CLOEXEC, 3);
  const int kept_out = ::fcntl(1, F_DUPFD_CLOEXEC, 3);
  REQUIRE(kept_out >= 0);
  ::fflush(stdout);
  REQUIRE(::dup2(to.read_end, 0) == 0);
  REQUIRE(::dup2(from.write_end, 1) == 1);
  struct stat in_before = {};
  struct stat out_before = {};
  ::fstat(0, &in_before);
  ::fstat(1, &out_before);

  bool same_as_stderr = false;
  bool nothing_to_read = false;
  Server server;
  const auto added = server.add(tool("look", [&](const Call&) {
    struct stat one = {};
    struct stat two = {};
    same_as_stderr = ::fstat(1, &one) == 0 && ::fstat(2, &two) == 0 && one.st_ino == two.st_ino &&
                     one.st_dev == two.st_dev;
    char byte;
    nothing_to_read = ::read(0, &byte, 1) == 0;
    return ToolResult::text("seen");
  }));
  const std::string line = modern("1", "tools/call", R"("name":"look")") + "\n";
  const bool sent =
      ::write(to.write_end, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  to.close_write();
  const bool served = static_cast<bool>(server.serve());
  struct stat in_after = {};
  struct stat out_after = {};
  ::fstat(0, &in_after);
  ::fstat(1, &out_after);
  char buffer[4096] = "";
  const ssize_t size = ::read(from.read_end, buffer, sizeof buffer);
  if (kept_in >= 0) ::dup2(kept_in, 0);
  ::dup2(kept_out, 1);
  if (kept_in >= 0) ::close(kept_in);
  ::close(kept_out);

  CHECK(added);
  CHECK(sent);
  CHECK(served);
  CHECK(same_as_stderr);
  CHECK(nothing_to_read);
  CHECK(in_before.st_ino == in_after.st_ino);
  CHECK(out_before.st_ino == out_after.st_ino);
  REQUIRE(size > 0);
  CHECK(has(std::string(buffer, static_cast<std::size_t>(size)), "seen"));
}

TEST_CASE("no descriptor and no thread is left behind") {
  const auto count = [](const char* directory) {
    int entries = 0;
    DIR* open = ::opendir(directory);
    REQUIRE(open);
    while (::readdir(open)) ++entries;
    ::closedir(open);
    return entries;
  };
  if (::access("/proc/self/task", R_OK) != 0) {
    MESSAGE("SKIPPED: no /proc");
    return;
  }
  const int descriptors = count("/proc/self/fd");
  const int threads = count("/proc/self/task");
  {
    Talk talk;
    talk.initialize();
    for (int i = 0; i < 16; ++i) talk.send(Talk::call_line(std::to_string(i), "hold"));
    REQUIRE(talk.gate.wait_for_arrivals(16));
    talk.gate.open();
    CHECK(talk.finish().size() == 16);
  }
  CHECK(count("/proc/self/fd") == descriptors);
  CHECK(count("/proc/self/task") == threads);
}

TEST_CASE("a server program keeps its standard output clean and logs to standard error") {
#if defined(CODEEXEC_MCP_FIXTURE)
  const support::TempDir directory;
  directory.file("in", modern("1", "tools/call", R"("name":"print")") + "\ngarbage\n");
  const std::string command = std::string("cd ") + directory.path() + " && '" +
                              CODEEXEC_MCP_FIXTURE + "' < in > out 2> err";
  CHECK(std::system(command.c_str()) == 0);
  const std::string out = support::read_file(directory / "out");
  const std::string err = support::read_file(directory / "err");
  CHECK(std::count(out.begin(), out.end(), '\n') == 2);
  for (std::size_t start = 0; start < out.size(); start = out.find('\n', start) + 1)
    check_shape(parsed(out.substr(start, out.find('\n', start) - start)));
  CHECK(has(err, "not a message"));
  CHECK(has(err, "mcp: Parse error"));
#else
  MESSAGE("SKIPPED: built without the path of the fixture server");
#endif
}
