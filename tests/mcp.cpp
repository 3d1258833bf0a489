// mcp::Server through real descriptors: the server runs on a thread of this program, the test is
// the client at the other ends of two pipes. "Not answered" is shown by what comes next instead:
// a ping's reply, or the end of the stream.
#include <dirent.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "codeexec.hpp"
#include "line_support.hpp"
#include "support.hpp"

using codeexec::CancelToken;
using codeexec::ErrorCode;
using codeexec::Expected;
using codeexec::Json;
using codeexec::mcp::Call;
using codeexec::mcp::Content;
using codeexec::mcp::Parameter;
using codeexec::mcp::ParameterType;
using codeexec::mcp::RpcError;
using codeexec::mcp::Server;
using codeexec::mcp::ServerOptions;
using codeexec::mcp::Tool;
using codeexec::mcp::ToolReply;
using codeexec::mcp::ToolResult;

namespace {

using Clock = std::chrono::steady_clock;
using Lines = std::vector<std::string>;
using Handler = codeexec::Function<ToolReply(const Call&)>;

// Far above what anything here takes; only a hang comes near.
constexpr int patience_ms = 30000;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Pipe {
  int read_end = -1;
  int write_end = -1;
  Pipe() {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    read_end = ends[0];
    write_end = ends[1];
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_read();
    close_write();
  }
  void close_read() { close_one(read_end); }
  void close_write() { close_one(write_end); }

 private:
  static void close_one(int& fd) {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
};

// Members of a message and nothing else: clients hang on anything more.
void check_shape(const Json& message) {
  if (message.is_array()) {
    for (const Json& item : message.items()) check_shape(item);
    return;
  }
  CHECK(message["jsonrpc"] == Json("2.0"));
  std::set<std::string> names;
  for (const Json::Member& member : message.members()) names.insert(member.name);
  if (message.find("method")) {
    CHECK(names == std::set<std::string>{"jsonrpc", "method", "params"});
  } else if (message.find("error")) {
    names.erase("id");
    CHECK(names == std::set<std::string>{"jsonrpc", "error"});
    CHECK(message["error"]["code"].is_integer());
    CHECK(message["error"]["message"].is_string());
  } else {
    CHECK(names == std::set<std::string>{"jsonrpc", "id", "result"});
    CHECK(message["result"].is_object());
  }
}

// Holds handlers until they are let go or cancelled, and counts them.
class Gate {
 public:
  // In a handler; true: cancelled.
  bool wait(const Call& call) {
    arrive();
    pollfd fds[2] = {{pipe_.read_end, POLLIN, 0}, {call.cancel_token().descriptor(), POLLIN, 0}};
    ::poll(fds, 2, patience_ms);
    const bool cancelled = call.cancel_token().cancelled();
    leave(cancelled);
    return cancelled;
  }
  // As long as it is closed, whatever the client does.
  void wait_stubbornly() {
    arrive();
    pollfd fd = {pipe_.read_end, POLLIN, 0};
    ::poll(&fd, 1, patience_ms);
    leave(false);
  }
  void open() { pipe_.close_write(); }
  bool wait_for_arrivals(int count) {
    return wait_until([&] { return arrived_ >= count; });
  }
  bool wait_for_cancelled(int count) {
    return wait_until([&] { return cancelled_ >= count; });
  }
  bool wait_until_left() {
    return wait_until([&] { return inside_ == 0; });
  }
  int arrived() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return arrived_;
  }
  int most_at_once() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return most_;
  }

 private:
  void arrive() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++arrived_;
    most_ = std::max(most_, ++inside_);
    changed_.notify_all();
  }
  void leave(bool cancelled) {
    const std::lock_guard<std::mutex> lock(mutex_);
    --inside_;
    cancelled_ += cancelled ? 1 : 0;
    changed_.notify_all();
  }
  template <class Condition>
  bool wait_until(Condition condition) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, std::chrono::milliseconds(patience_ms), condition);
  }

  Pipe pipe_ = {};
  std::mutex mutex_ = {};
  std::condition_variable changed_ = {};
  int arrived_ = 0;
  int inside_ = 0;
  int most_ = 0;
  int cancelled_ = 0;
};

Tool tool(const std::string& name, Handler handler, std::vector<Parameter> parameters = {}) {
  Tool made;
  made.name = name;
  made.handler = std::move(handler);
  made.parameters = std::move(parameters);
  return made;
}

Parameter parameter(const std::string& name, ParameterType type, bool required = false) {
  Parameter made;
  made.name = name;
  made.type = type;
  made.required = required;
  return made;
}

// A server on a thread of its own, and its client.
class Talk {
 public:
  // The tools echo (text), and hold, which waits at the gate, and those given.
  explicit Talk(std::vector<Tool> tools = {}, ServerOptions options = {})
      : server_(complete(std::move(options))) {
    add(tool("echo",
             [](const Call& call) {
               return ToolReply(ToolResult::text(call.argument("text").as_string()));
             },
             {parameter("text", ParameterType::string, true)}));
    add(tool("hold", [this](const Call& call) {
      return ToolReply(ToolResult::text(gate.wait(call) ? "cancelled" : "let go"));
    }));
    for (Tool& each : tools) add(std::move(each));
    serve();
  }
  Talk(const Talk&) = delete;
  Talk& operator=(const Talk&) = delete;
  ~Talk() {
    stop.cancel();
    gate.open();
    if (thread_.joinable()) thread_.join();
  }

  void send_bytes(std::string_view bytes) { support::send_all(to_.write_end, bytes); }
  void send(const std::string& line) { send_bytes(line + "\n"); }

  // The next line without its newline; empty when the stream has ended.
  std::string receive_line() { return lines_.next(from_.read_end); }

  // The next message; null when the stream has ended.
  Json receive() {
    const std::string line = receive_line();
    if (line.empty()) return Json();
    const Expected<Json> message = Json::parse(line);
    REQUIRE_MESSAGE(message, line);
    check_shape(*message);
    return *message;
  }

  Json ask(const std::string& line) {
    send(line);
    return receive();
  }

  // Whatever was sent before is done, and has been received: nothing comes before this ping.
  void check_silent() {
    const Json reply = ask(R"({"jsonrpc":"2.0","id":"silence","method":"ping"})");
    CHECK(reply["id"] == Json("silence"));
  }

  Json initialize(const std::string& version = "2025-06-18") {
    return ask(
        R"({"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":")" +
        version + R"(","capabilities":{},"clientInfo":{"name":"t","version":"1"}}})");
  }

  // A call in the legacy era.
  Json call(const std::string& name, const std::string& arguments = "{}") {
    return ask(call_line("\"c\"", name, arguments));
  }

  static std::string call_line(const std::string& id, const std::string& name,
                               const std::string& arguments = "{}", const std::string& meta = "") {
    return R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":"tools/call","params":{"name":")" +
           name + R"(","arguments":)" + arguments + (meta.empty() ? "" : R"(,"_meta":)" + meta) +
           "}}";
  }

  void cancel(const std::string& id) {
    send(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":)" + id +
         R"(,"reason":"test"}})");
  }

  void close_input() { to_.close_write(); }
  void close_output() { from_.close_read(); }

  Expected<void> wait() {
    std::unique_lock<std::mutex> lock(ended_mutex_);
    const bool in_time = ended_changed_.wait_for(lock, std::chrono::milliseconds(patience_ms),
                                                 [&] { return ended_; });
    REQUIRE_MESSAGE(in_time, "serve() does not return");
    return result_;
  }

  // Ends the input; everything the server still had to say.
  std::vector<Json> finish() {
    close_input();
    std::vector<Json> messages;
    for (Json message = receive(); !message.is_null(); message = receive())
      messages.push_back(message);
    CHECK(wait());
    return messages;
  }

  bool set_blocking(bool blocking) {
    return ::fcntl(to_.write_end, F_SETFL, blocking ? 0 : O_NONBLOCK) == 0;
  }
  ssize_t try_send(const std::string& bytes) {
    return ::write(to_.write_end, bytes.data(), bytes.size());
  }
  bool wait_writable(int milliseconds) {
    pollfd fd = {to_.write_end, POLLOUT, 0};
    return ::poll(&fd, 1, milliseconds) == 1;
  }
  // The smallest pipe the system has; elsewhere than on Linux this does nothing.
  void limit_pipe() {
#if defined(F_SETPIPE_SZ)
    ::fcntl(from_.write_end, F_SETPIPE_SZ, 4096);
#endif
  }
  void wait_readable() {
    pollfd fd = {from_.read_end, POLLIN, 0};
    REQUIRE(::poll(&fd, 1, patience_ms) == 1);
  }

  Lines logged() {
    const std::lock_guard<std::mutex> lock(log_mutex_);
    return log_;
  }

  Server& server() { return server_; }

  void serve() {
    thread_ = std::thread([this] {
      Expected<void> result = server_.serve(stop);
      from_.close_write();
      const std::lock_guard<std::mutex> lock(ended_mutex_);
      result_ = std::move(result);
      ended_ = true;
      ended_changed_.notify_all();
    });
  }

  CancelToken stop = {};
  Gate gate = {};

 private:
  ServerOptions complete(ServerOptions options) {
    options.in_fd = to_.read_end;
    options.out_fd = from_.write_end;
    if (!options.log) {
      options.log = [this](std::string_view line) {
        const std::lock_guard<std::mutex> lock(log_mutex_);
        log_.emplace_back(line);
      };
    }
    return options;
  }
  void add(Tool each) {
    const auto added = server_.add(std::move(each));
    REQUIRE_MESSAGE(added, added.error().message);
  }

  Pipe to_ = {};
  Pipe from_ = {};
  std::mutex log_mutex_ = {};
  Lines log_ = {};
  Server server_;
  support::LineReader lines_{patience_ms};
  Expected<void> result_ = {};
  std::mutex ended_mutex_ = {};
  std::condition_variable ended_changed_ = {};
  bool ended_ = false;
  std::thread thread_ = {};
};

Json parsed(const std::string& text) {
  const Expected<Json> value = Json::parse(text);
  REQUIRE_MESSAGE(value, text);
  return *value;
}

std::int64_t code_of(const Json& reply) { return reply["error"]["code"].as_integer(); }

std::string text_of(const Json& reply) { return reply["result"]["content"][0]["text"].as_string(); }

bool is_failure(const Json& reply) { return reply["result"]["isError"].as_bool(); }

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

const std::string modern_meta = R"({"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
                                R"("io.modelcontextprotocol/clientCapabilities":{}})";

std::string modern(const std::string& id, const std::string& method,
                   const std::string& members = "", const std::string& meta = modern_meta) {
  return R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":")" + method + R"(","params":{)" +
         members + (members.empty() ? "" : ",") + R"("_meta":)" + meta + "}}";
}

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

// legacy era --------------------------------------------------------------------------------------

TEST_CASE("initialize answers with the asked version if it is served, else the newest legacy one") {
  Talk talk;
  for (const char* version : {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"})
    CHECK(talk.initialize(version)["result"]["protocolVersion"] == Json(version));
  for (const char* version : {"2026-07-28", "2024-10-07", "", "1.0", "DRAFT"})
    CHECK(talk.initialize(version)["result"]["protocolVersion"] == Json("2025-11-25"));
  CHECK(talk.finish().empty());
}

TEST_CASE("initialize tells who the server is, what it can and how to use it") {
  ServerOptions options;
  options.name = "n\xff";  // not UTF-8: repaired
  options.title = "Title";
  options.version = "1.2.3";
  options.website = "https://example.org";
  options.instructions = "Use it well.";
  Talk talk({}, options);
  CHECK(
      talk.initialize()["result"] ==
      parsed(R"({"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":)"
             "\"n\xef\xbf\xbd\""
             R"(,"title":"Title","version":"1.2.3","websiteUrl":"https://example.org"},)"
             R"("instructions":"Use it well."})"));
}

TEST_CASE("initialize without a version is refused and opens nothing") {
  Talk talk;
  CHECK(code_of(talk.ask(R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{}})")) ==
        -32602);
  CHECK(code_of(talk.ask(R"({"jsonrpc":"2.0","id":2,"method":"initialize"})")) == -32602);
  CHECK(code_of(talk.ask(R"({"jsonrpc":"2.0","id":3,"method":"initialize",)"
                         R"("params":{"protocolVersion":7}})")) == -32602);
  CHECK(code_of(talk.ask(R"({"jsonrpc":"2.0","id":4,"method":"tools/list"})")) == -32602);
}

TEST_CASE("before initialize: ping works, tools do not, unknown methods are unknown") {
  Talk talk;
  CHECK(talk.ask(R"({"jsonrpc":"2.0","id":1,"method":"ping"})") ==
        parsed(R"({"jsonrpc":"2.0","id":1,"result":{}})"));
  for (const char* method : {"tools/list", "tools/call"}) {
    const Json reply =
        talk.ask(std::string(R"({"jsonrpc":"2.0","id":1,"method":")") + method + "\"}");
    CHECK(code_of(reply) == -32602);
    CHECK(has(reply["error"]["message"].as_string(), "send initialize first"));
    CHECK(has(reply["error"]["message"].as_string(), "2026-07-28"));
  }
  for (int i = 0; i < 2; ++i) {
    for (const char* method : {"prompts/list", "resources/list", "logging/setLevel", "no/such",
                               "completion/complete", "tasks/get", "", "initialized"}) {
      CHECK(code_of(talk.ask(std::string(R"({"jsonrpc":"2.0","id":1,"method":")") + method +
                             "\"}")) == -32601);
    }
    talk.initialize();
  }
}

TEST_CASE("requests pipelined behind initialize work without notifications/initialized") {
  Talk talk;
  talk.send_bytes(
      R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}})"
      "\n"
      R"({"jsonrpc":"2.0","id":2,"method":"tools/list"})"
      "\n" +
      Talk::call_line("3", "echo", R"({"text":"hi"})") + "\n");
  std::map<std::int64_t, Json> replies;
  for (int i = 0; i < 3; ++i) {
    const Json reply = talk.receive();
    replies[reply["id"].as_integer()] = reply;
  }
  CHECK(replies[1]["result"]["protocolVersion"] == Json("2025-06-18"));
  CHECK(replies[2]["result"]["tools"].size() == 2);
  CHECK(replies[3]["result"] == parsed(R"({"content":[{"type":"text","text":"hi"}]})"));
}

TEST_CASE("a second initialize renegotiates") {
  Talk talk;
  talk.initialize("2025-03-26");
  CHECK(talk.ask(R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])").is_array());
  talk.initialize("2025-06-18");
  CHECK(code_of(talk.ask(R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])")) == -32600);
}

TEST_CASE("a session begins anew with each serve()") {
  Pipe to;
  Pipe from;
  ServerOptions options;
  options.in_fd = to.read_end;
  options.out_fd = from.write_end;
  Server server(options);
  const auto converse = [&](const std::string& lines) {
    CancelToken stop;
    std::thread thread([&] { CHECK(server.serve(stop)); });
    REQUIRE(::write(to.write_end, lines.data(), lines.size()) ==
            static_cast<ssize_t>(lines.size()));
    char buffer[4096];
    const ssize_t size = ::read(from.read_end, buffer, sizeof buffer);
    stop.cancel();
    thread.join();
    return std::string(buffer, static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  };
  CHECK(has(converse(R"({"jsonrpc":"2.0","id":1,"method":"initialize",)"
                     R"("params":{"protocolVersion":"2025-06-18"}})"
                     "\n"),
            "2025-06-18"));
  CHECK(has(converse("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}\n"), "-32602"));
}

// modern era --------------------------------------------------------------------------------------

TEST_CASE("server/discover gives the modern versions only") {
  ServerOptions options;
  options.name = "n";
  options.version = "1";
  options.instructions = "Use it.";
  Talk talk({}, options);
  CHECK(talk.ask(modern("1", "server/discover")) ==
        parsed(R"({"jsonrpc":"2.0","id":1,"result":{"resultType":"complete",)"
               R"("supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},)"
               R"("instructions":"Use it.","ttlMs":3600000,"cacheScope":"public",)"
               R"("_meta":{"io.modelcontextprotocol/serverInfo":{"name":"n","version":"1"}}}})"));
}

TEST_CASE("the modern envelope is checked before the method") {
  Talk talk;
  const std::string version = R"("io.modelcontextprotocol/protocolVersion":)";
  const std::string capabilities = R"("io.modelcontextprotocol/clientCapabilities":{})";
  for (const char* method : {"server/discover", "tools/list", "tools/call", "no/such", "ping"}) {
    CAPTURE(method);
    CHECK(code_of(talk.ask(modern("1", method, "", "{" + version + "7," + capabilities + "}"))) ==
          -32602);
    CHECK(code_of(talk.ask(modern("1", method, "", "{" + version + "\"2026-07-28\"}"))) == -32602);
    CHECK(code_of(talk.ask(modern("1", method, "",
                                  "{" + version + "\"2026-07-28\"," +
                                      R"("io.modelcontextprotocol/clientCapabilities":[]})"))) ==
          -32602);
    const Json reply =
        talk.ask(modern("1", method, "", "{" + version + "\"2025-11-25\"," + capabilities + "}"));
    CHECK(code_of(reply) == -32022);
    CHECK(reply["error"]["data"] ==
          parsed(R"({"supported":["2026-07-28"],"requested":"2025-11-25"})"));
  }
  for (const char* method : {"server/discover", "subscriptions/listen"}) {
    CHECK(code_of(talk.ask(std::string(R"({"jsonrpc":"2.0","id":1,"method":")") + method +
                           "\"}")) == -32602);
    CHECK(code_of(talk.ask(modern("1", method, "", "{" + capabilities + "}"))) == -32602);
    CHECK(code_of(talk.ask(modern("1", method, "", "null"))) == -32602);
  }
}

TEST_CASE("a log level is taken when it is one") {
  Talk talk;
  const auto with_level = [](const std::string& level) {
    return modern("1", "tools/list", "",
                  R"({"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
                  R"("io.modelcontextprotocol/clientCapabilities":{},)"
                  R"("io.modelcontextprotocol/logLevel":)" +
                      level + "}");
  };
  for (const char* level :
       {"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"})
    CHECK(talk.ask(with_level("\"" + std::string(level) + "\"")).find("result"));
  for (const char* level : {"\"\"", "\"verbose\"", "\"INFO\"", "1", "null"})
    CHECK(code_of(talk.ask(with_level(level))) == -32602);
}

TEST_CASE("methods of the legacy era that carry a modern envelope are unknown") {
  Talk talk;
  for (const char* method : {"initialize", "ping", "logging/setLevel", "resources/subscribe",
                             "prompts/list", "tasks/list", "no/such"})
    CHECK(code_of(talk.ask(modern("1", method, R"("protocolVersion":"2025-06-18")"))) == -32601);
  CHECK(code_of(talk.ask(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})")) == -32602);
}

TEST_CASE("both eras share one session, decided for each message") {
  Talk talk;
  const auto modern_call = modern("1", "tools/call", R"("name":"echo","arguments":{"text":"m"})");
  const auto check_modern = [&] {
    const Json result = talk.ask(modern_call)["result"];
    CHECK(result["resultType"] == Json("complete"));
    CHECK(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == Json("codeexec"));
    CHECK(result["content"][0]["text"] == Json("m"));
  };
  check_modern();  // needs no initialize, no discover
  CHECK(code_of(talk.call("echo", R"({"text":"l"})")) == -32602);
  talk.initialize();
  check_modern();
  CHECK(talk.call("echo", R"({"text":"l"})")["result"] ==
        parsed(R"({"content":[{"type":"text","text":"l"}]})"));
  check_modern();
  const Json list = talk.ask(modern("2", "tools/list"))["result"];
  CHECK(list["resultType"] == Json("complete"));
  CHECK(list["ttlMs"].as_integer() > 0);
  CHECK(list["cacheScope"] == Json("public"));
  CHECK(list["_meta"]["io.modelcontextprotocol/serverInfo"].is_object());
  const Json legacy_list = talk.ask(R"({"jsonrpc":"2.0","id":3,"method":"tools/list"})")["result"];
  CHECK(legacy_list.size() == 1);
  CHECK(legacy_list["tools"] == list["tools"]);
}

TEST_CASE("subscriptions/listen is acknowledged and ends with the server") {
  Talk talk;
  CHECK(talk.ask(modern("\"s\"", "subscriptions/listen",
                        R"("notifications":{"toolsListChanged":true,"x":1})")) ==
        parsed(R"({"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":)"
               R"({"_meta":{"io.modelcontextprotocol/subscriptionId":"s"},"notifications":{}}})"));
  CHECK(talk.ask(modern("7", "subscriptions/listen", R"("notifications":{})"))["params"]["_meta"] ==
        parsed(R"({"io.modelcontextprotocol/subscriptionId":7})"));
  CHECK(code_of(talk.ask(modern("7", "subscriptions/listen", R"("notifications":{})"))) == -32600);
  for (const char* members : {"", R"("notifications":null)", R"("notifications":[])"})
    CHECK(code_of(talk.ask(modern("1", "subscriptions/listen", members))) == -32602);
  talk.cancel("7");
  talk.check_silent();
  const std::vector<Json> last = talk.finish();
  REQUIRE(last.size() == 1);
  CHECK(last[0]["id"] == Json("s"));
  CHECK(last[0]["result"]["resultType"] == Json("complete"));
  CHECK(last[0]["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == Json("s"));
}

TEST_CASE("subscriptions are bounded") {
  Talk talk;
  int accepted = 0;
  for (int i = 0; i < 1000; ++i) {
    const Json reply =
        talk.ask(modern(std::to_string(i), "subscriptions/listen", R"("notifications":{})"));
    if (reply.find("method")) ++accepted;
  }
  CHECK(accepted == 64);
  talk.cancel("0");
  CHECK(talk.ask(modern("1000", "subscriptions/listen", R"("notifications":{})")).find("method"));
  CHECK(talk.finish().size() == 64);
}

// malformed input ---------------------------------------------------------------------------------

TEST_CASE("blank lines, carriage returns and a byte order mark are no messages") {
  Talk talk;
  talk.send_bytes("\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n");
  CHECK(talk.receive().find("result"));
  talk.send_bytes("\n\r\n  \t \r\n\n");
  talk.check_silent();
  talk.send_bytes(" { \"jsonrpc\" : \"2.0\" , \"id\" : 2 , \"method\" : \"ping\" } \t\r\n");
  CHECK(talk.receive()["id"] == Json(2));
  // Elsewhere it is not white space.
  CHECK(code_of(talk.ask("\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}")) ==
        -32700);
  CHECK(talk.finish().empty());
}

TEST_CASE("what is not JSON is a parse error, with the id if it can be seen") {
  struct Row {
    const char* line;
    const char* id;  // JSON, or null for none
  };
  const Row rows[] = {
      {"garbage", nullptr},
      {"{", nullptr},
      {"\"", nullptr},
      {R"({"jsonrpc":"2.0","id":7,"method":"ping")", "7"},
      {R"({"jsonrpc":"2.0","id":"a\"b","method":nonsense})", "\"a\\\"b\""},
      {R"({"id":1.0,"method":NaN})", "1.0"},
      {R"({"params":{"id":5,"a":["}","id"]},"id" : -3 ,"method":'ping'})", "-3"},
      {R"({"params":{"id":5}, "method":'ping'})", nullptr},
      {R"({"id":12)", nullptr},   // could be 123
      {R"({"id":"12)", nullptr},  // the same
      {R"({"id":1.5,"method":x})", nullptr},
      {R"({"id":null,"method":x})", nullptr},
      {R"({"id":[1],"method":x})", nullptr},
      {R"({"id":{"id":4},"method":x})", nullptr},
      {R"({"id":true,"method":x})", nullptr},
      {R"({"xid":4,"method":x})", nullptr},
      {R"({"method":"id","x":4,y})", nullptr},
      {R"([{"id":4,"method":x}])", nullptr},
      {R"(}{"id":4,)", nullptr},
      {R"({} {"id":4,"method":"ping"})", nullptr},
      {R"({"method":"ping","id":6}})", "6"},
      {R"({"jsonrpc":"2.0","id":8,"method":"ping"} x)", "8"},
      {R"({"jsonrpc":"2.0","id":9,"method":"ping","params":{"x":1e400}})", "9"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.line);
    Talk talk;
    const Json reply = talk.ask(row.line);
    CHECK(code_of(reply) == -32700);
    if (row.id) {
      CHECK(reply["id"].dump() == row.id);
    } else {
      CHECK(!reply.find("id"));
    }
    talk.check_silent();
  }
}

TEST_CASE("bad lines are answered eight times in a row, then only logged") {
  Talk talk;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 30; ++i) talk.send(i % 2 ? "garbage" : "[]");
    for (int i = 0; i < 8; ++i) CHECK(code_of(talk.receive()) == (i % 2 ? -32700 : -32600));
    talk.check_silent();  // a good message: bad ones are answered again
  }
  CHECK(talk.logged().size() == 60);
  CHECK(talk.finish().empty());
}

TEST_CASE("nesting deeper than 256 is a parse error, even 100,000 levels") {
  Talk talk;
  for (const std::size_t depth : {300u, 100000u}) {
    for (const char* bracket : {"[", "{\"a\":"}) {
      std::string nested;
      for (std::size_t i = 0; i < depth; ++i) nested += bracket;
      const Json reply =
          talk.ask(R"({"jsonrpc":"2.0","id":5,"method":"ping","params":{"x":)" + nested);
      CHECK(code_of(reply) == -32700);
      CHECK(reply["id"] == Json(5));
    }
  }
  talk.check_silent();
  const std::string deep = std::string(100, '[') + std::string(100, ']');
  CHECK(talk.ask(R"({"jsonrpc":"2.0","id":6,"method":"ping","params":{"x":)" + deep + "}}")
            .find("result"));
}

TEST_CASE("a message of more than a million values is a parse error, whatever it costs in bytes") {
  Talk talk;
  std::string values = "1";
  for (int i = 0; i < 1000000; ++i) values += ",1";
  const Json reply =
      talk.ask(R"({"jsonrpc":"2.0","id":5,"method":"ping","params":{"x":[)" + values + "]}}");
  CHECK(code_of(reply) == -32700);
  CHECK(reply["id"] == Json(5));
  CHECK(has(reply["error"]["message"].as_string(), "more than 1000000 values"));
  talk.check_silent();
}

TEST_CASE("a line over the limit is answered with its id wherever it stands, and skipped") {
  for (const std::size_t limit : {std::size_t(1000), std::size_t(16) << 20}) {
    ServerOptions options;
    options.max_line = limit;
    Talk talk({}, options);
    const std::string filler(limit + (std::size_t(1) << 20), 'x');
    talk.send_bytes(R"({"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":")" + filler +
                    "\"}}\n" + R"({"params":{"id":8,"a":")" + filler +
                    R"("},"method":"ping","jsonrpc":"2.0","id":"two"})" + "\n" + "x" + filler +
                    "\n" + R"({"jsonrpc":"2.0","id":3,"method":"ping"})" + "\n");
    Json reply = talk.receive();
    CHECK(code_of(reply) == -32700);
    CHECK(has(reply["error"]["message"].as_string(), std::to_string(limit)));
    CHECK(reply["id"] == Json(1));
    reply = talk.receive();
    CHECK(code_of(reply) == -32700);
    CHECK(reply["id"] == Json("two"));
    reply = talk.receive();
    CHECK(code_of(reply) == -32700);
    CHECK(!reply.find("id"));
    CHECK(talk.receive()["id"] == Json(3));
    talk.send_bytes(filler);  // never ends
    const std::vector<Json> last = talk.finish();
    REQUIRE(last.size() == 1);
    CHECK(code_of(last[0]) == -32700);
  }
}

TEST_CASE("a line of exactly the limit is served, one byte more is not") {
  ServerOptions options;
  options.max_line = 200;
  Talk talk({}, options);
  const auto ping = [](std::size_t size) {
    std::string line = R"({"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":""}})";
    return line.insert(line.size() - 3, size - line.size(), 'x');
  };
  CHECK(talk.ask(ping(200)).find("result"));
  CHECK(code_of(talk.ask(ping(201))) == -32700);
  CHECK(talk.ask(ping(200)).find("result"));
}

TEST_CASE("a line that never ends takes no more memory than the limit allows") {
  const auto resident = [] {  // bytes
    const std::string pages = support::read_file("/proc/self/statm");
    return std::atol(pages.c_str() + pages.find(' ')) * ::sysconf(_SC_PAGESIZE);
  };
  if (!support::exists("/proc/self/statm")) {
    MESSAGE("SKIPPED: no /proc");
    return;
  }
  ServerOptions options;
  options.max_line = std::size_t(1) << 20;
  Talk talk({}, options);
  const std::string part(std::size_t(1) << 20, 'x');
  talk.send_bytes(part);
  const long before = resident();
  for (int i = 0; i < 100; ++i) talk.send_bytes(part);
  CHECK(resident() - before < 50000000);
  CHECK(code_of(talk.ask("")) == -32700);
}

TEST_CASE("messages arrive whole however they are cut") {
  Talk talk;
  const std::string line = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
  for (const char byte : line + line) talk.send_bytes(std::string(1, byte));
  CHECK(talk.receive()["id"] == Json(1));
  CHECK(talk.receive()["id"] == Json(1));
  // And a large one among small ones.
  talk.initialize();
  const std::string large(3000000, 'y');
  talk.send_bytes(line + Talk::call_line("2", "echo", R"({"text":")" + large + "\"}") + "\n" +
                  line);
  std::map<std::int64_t, Json> replies;
  for (int i = 0; i < 3; ++i) {
    const Json reply = talk.receive();
    replies[reply["id"].as_integer()] = reply;
  }
  CHECK(text_of(replies[2]) == large);
}

TEST_CASE("invalid UTF-8 is answered with the id and the place") {
  Talk talk;
  const Json reply = talk.ask("{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"x\xff\"}");
  CHECK(code_of(reply) == -32700);
  CHECK(reply["id"] == Json(4));
  CHECK(has(reply["error"]["message"].as_string(), "invalid UTF-8 at byte 35"));
  // Overlong, surrogate, above the last code point, cut short.
  for (const char* bad : {"\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
    const Json answer = talk.ask(std::string("{\"params\":{\"a\":\"") + bad +
                                 "\"},\"id\":\"q\",\"method\":\"ping\",\"jsonrpc\":\"2.0\"}");
    CHECK(code_of(answer) == -32700);
    CHECK(answer["id"] == Json("q"));
  }
  // Outside of a string, and in the id itself.
  CHECK(talk.ask("{\"id\":5,\xff}")["id"] == Json(5));
  talk.check_silent();
  CHECK(code_of(talk.ask("\xff")) == -32700);
  // No request: nobody waits for an answer.
  talk.send("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\xff\"}");
  talk.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"\xff\"}}");
  talk.check_silent();
}

TEST_CASE("scalars and arrays are invalid requests") {
  for (const char* line : {"1", "\"x\"", "null", "true", "[]", "[1]",
                           R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])"}) {
    CAPTURE(line);
    Talk talk;
    for (int i = 0; i < 2; ++i) {
      const Json reply = talk.ask(line);
      CHECK(code_of(reply) == -32600);
      CHECK(!reply.find("id"));
      talk.initialize("2025-11-25");
    }
  }
}

TEST_CASE("objects that are no requests are refused, with a usable id") {
  struct Row {
    const char* line;
    const char* id;
  };
  const Row rows[] = {
      {"{}", nullptr},
      {R"({"foo":1})", nullptr},
      {R"({"jsonrpc":"2.0"})", nullptr},
      {R"({"jsonrpc":"2.0","id":1})", "1"},
      {R"({"jsonrpc":"2.0","method":1})", nullptr},
      {R"({"jsonrpc":"2.0","id":"x","method":null})", "\"x\""},
      {R"({"jsonrpc":"1.0","id":2,"method":"ping"})", "2"},
      {R"({"jsonrpc":2.0,"id":2,"method":"ping"})", "2"},
      {R"({"id":2,"method":"ping"})", "2"},
      {R"({"jsonrpc":"2.0","id":null,"method":"ping"})", nullptr},
      {R"({"jsonrpc":"2.0","id":1.5,"method":"ping"})", nullptr},
      {R"({"jsonrpc":"2.0","id":true,"method":"ping"})", nullptr},
      {R"({"jsonrpc":"2.0","id":{},"method":"ping"})", nullptr},
      {R"({"jsonrpc":"2.0","id":[1],"method":"ping"})", nullptr},
      {R"({"jsonrpc":"2.0","id":"\ud800","method":"ping"})", nullptr},
  };
  Talk talk;
  for (const Row& row : rows) {
    CAPTURE(row.line);
    const Json reply = talk.ask(row.line);
    CHECK(code_of(reply) == -32600);
    if (row.id) {
      CHECK(reply["id"].dump() == row.id);
    } else {
      CHECK(!reply.find("id"));
    }
    talk.check_silent();
  }
  const Json reply =
      talk.ask(R"({"jsonrpc":"2.0","method":"ping","id":")" + std::string(100000, 'i') + "\"}");
  CHECK(code_of(reply) == -32600);
  CHECK(!reply.find("id"));
}

TEST_CASE("ids come back as they were spelled") {
  Talk talk;
  for (const char* id : {"0", "-1", "1.0", "1e0", "9007199254740993", "9223372036854775807",
                         "123456789012345678901234567890", "\"\"", "\"1\"", "\"a b\"",
                         "\"\xc3\xa4\"", "\"\\u0000\\\"\\\\\""}) {
    const std::string line =
        talk.ask(std::string(R"({"jsonrpc":"2.0","method":"ping","id":)") + id + "}").dump();
    CHECK(line == std::string(R"({"jsonrpc":"2.0","id":)") + id + R"(,"result":{}})");
  }
}

TEST_CASE("params that are no object are invalid, in both eras") {
  Talk talk;
  for (int i = 0; i < 2; ++i) {
    for (const char* method : {"ping", "tools/list", "tools/call", "server/discover", "no/such"}) {
      for (const char* params : {"[]", "[1]", "1", "\"x\"", "null", "true"}) {
        const Json reply = talk.ask(std::string(R"({"jsonrpc":"2.0","id":3,"method":")") + method +
                                    R"(","params":)" + params + "}");
        CHECK(code_of(reply) == -32602);
        CHECK(reply["id"] == Json(3));
      }
    }
    talk.initialize();
  }
}

TEST_CASE("responses and notifications are never answered") {
  Talk talk;
  talk.initialize();
  for (const char* line : {
           R"({"jsonrpc":"2.0","id":1,"result":{}})",
           R"({"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}})",
           R"({"jsonrpc":"2.0","error":{"code":-32700,"message":"m"}})",
           R"({"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}})",
           R"({"id":1,"result":7})",
           R"({"jsonrpc":"2.0","method":"notifications/initialized"})",
           R"({"jsonrpc":"2.0","method":"notifications/no/such","params":{"a":1}})",
           R"({"jsonrpc":"2.0","method":"notifications/cancelled"})",
           R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":[]})",
           R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}})",
           R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}})",
           R"({"jsonrpc":"2.0","method":"notifications/progress","params":7})",
           R"({"jsonrpc":"2.0","method":"ping"})",
           R"({"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}})",
           R"({"jsonrpc":"2.0","method":"initialize"})",
           R"({"jsonrpc":"1.0","method":"ping"})",
           R"({"jsonrpc":"2.0","method":""})",
       })
    talk.send(line);
  talk.check_silent();
  CHECK(talk.finish().empty());
}

TEST_CASE("unknown members of a message are ignored") {
  Talk talk;
  CHECK(talk.ask(R"({"x":1,"jsonrpc":"2.0","id":1,"method":"ping","y":{},"params":{"z":[]}})") ==
        parsed(R"({"jsonrpc":"2.0","id":1,"result":{}})"));
  CHECK(talk.ask(R"({"jsonrpc":"2.0","id":1,"method":"ping","id":2})")["id"] == Json(2));
}

TEST_CASE("a call without a known tool or without an object of arguments is invalid") {
  Talk talk;
  talk.initialize();
  for (const bool in_modern : {false, true}) {
    const auto ask = [&](const std::string& members) {
      return talk.ask(in_modern ? modern("1", "tools/call", members)
                                : R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{)" +
                                      members + "}}");
    };
    for (const char* members :
         {"", R"("arguments":{})", R"("name":null)", R"("name":7)", R"("name":["echo"])",
          R"("name":"echo","arguments":[])", R"("name":"echo","arguments":"x")",
          R"("name":"echo","arguments":null)", R"("name":"echo","arguments":7)"})
      CHECK(code_of(ask(members)) == -32602);
    const Json reply = ask(R"("name":"no\nsuch","arguments":{})");
    CHECK(code_of(reply) == -32602);
    CHECK(has(reply["error"]["message"].as_string(), "Unknown tool: 'no\\x0asuch'"));
    CHECK(code_of(ask(R"("name":"ECHO")")) == -32602);
    CHECK(ask("\"name\":\"" + std::string(100000, 'n') + "\"").dump().size() < 1000);
  }
}

TEST_CASE("tools/list has one page, so that every cursor is invalid") {
  Talk talk;
  talk.initialize();
  for (const char* cursor : {"\"\"", "\"x\"", "null", "7"}) {
    const std::string members = std::string("\"cursor\":") + cursor;
    const Json reply =
        talk.ask(R"({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{)" + members + "}}");
    CHECK(code_of(reply) == -32602);
    CHECK(has(reply["error"]["message"].as_string(), "cursor"));
    CHECK(code_of(talk.ask(modern("1", "tools/list", members))) == -32602);
  }
  const Json list = talk.ask(R"({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}})");
  CHECK(!list["result"].find("nextCursor"));
}

TEST_CASE("random bytes never stop the server nor put it out of step") {
  Talk talk;
  std::uint64_t state = 88172645463325252u;
  const auto random = [&] {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
  };
  const std::string good = modern("1", "tools/call", R"("name":"echo","arguments":{"text":"x"})");
  std::thread writer([&] {
    for (int i = 0; i < 3000; ++i) {
      std::string line = good;
      for (std::uint64_t hits = random() % 4; hits > 0; --hits) {
        line[random() % line.size()] = static_cast<char>(random());
        if (random() % 4 == 0) line.resize(random() % line.size() + 1);
      }
      talk.send(line);
    }
    talk.send(R"({"jsonrpc":"2.0","id":"end","method":"ping"})");
  });
  for (Json reply = talk.receive(); reply["id"] != Json("end"); reply = talk.receive())
    REQUIRE(!reply.is_null());
  writer.join();
}

// arguments ---------------------------------------------------------------------------------------

namespace {

std::vector<Parameter> every_parameter() {
  std::vector<Parameter> all;
  all.push_back(parameter("command", ParameterType::string, true));
  all.back().description = "What to run";
  all.push_back(parameter("timeout", ParameterType::number));
  all.back().greater_than = 0;
  all.back().maximum = 3600;
  all.push_back(parameter("count", ParameterType::integer));
  all.back().minimum = 1;
  all.back().default_value = 10;
  all.push_back(parameter("mode", ParameterType::string));
  all.back().choices = {"fast", "slow"};
  all.back().nullable = true;
  all.push_back(parameter("flag", ParameterType::boolean));
  all.push_back(parameter("names", ParameterType::array));
  all.back().items = ParameterType::string;
  all.push_back(parameter("extra", ParameterType::object));
  return all;
}

Tool checked_tool() {
  return tool(
      "checked",
      [](const Call& call) {
        Json seen = Json::object();
        for (const char* name : {"count", "mode", "flag"}) seen.set(name, call.argument(name));
        return ToolReply(ToolResult::text(seen.dump()));
      },
      every_parameter());
}

}  // namespace

TEST_CASE("the input schema is made from the parameters") {
  Talk talk({checked_tool()});
  talk.initialize();
  const Json list = talk.ask(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})");
  CHECK(list["result"]["tools"][2].dump() ==
        parsed(R"({"name":"checked","inputSchema":{"type":"object","properties":{
          "command":{"type":"string","description":"What to run"},
          "timeout":{"type":"number","exclusiveMinimum":0,"maximum":3600},
          "count":{"type":"integer","minimum":1,"default":10},
          "mode":{"type":["string","null"],"enum":["fast","slow",null]},
          "flag":{"type":"boolean"},
          "names":{"type":"array","items":{"type":"string"}},
          "extra":{"type":"object"}},
          "required":["command"],"additionalProperties":false}})")
            .dump());
  CHECK(list["result"]["tools"][1]["inputSchema"] ==
        parsed(R"({"type":"object","additionalProperties":false})"));
}

TEST_CASE("wrong arguments give an error result that names them and the ones allowed") {
  struct Row {
    const char* arguments;
    const char* says;
  };
  const Row rows[] = {
      {"{}", "argument 'command' is missing"},
      {R"({"command":null})", "argument 'command' must be a string, not null"},
      {R"({"command":7})", "argument 'command' must be a string, not a number"},
      {R"({"command":["x"]})", "argument 'command' must be a string, not an array"},
      {R"({"command":"x","timeout":"5"})", "argument 'timeout' must be a number, not a string"},
      {R"({"command":"x","timeout":0})", "argument 'timeout' must be greater than 0"},
      {R"({"command":"x","timeout":-0.5})", "argument 'timeout' must be greater than 0"},
      {R"({"command":"x","timeout":3600.5})", "argument 'timeout' must be at most 3600"},
      {R"({"command":"x","timeout":null})", "argument 'timeout' must be a number, not null"},
      {R"({"command":"x","count":1.5})", "argument 'count' must be an integer, not a fraction"},
      {R"({"command":"x","count":0})", "argument 'count' must be at least 1"},
      {R"({"command":"x","count":true})", "argument 'count' must be an integer, not a boolean"},
      {R"({"command":"x","count":99999999999999999999})", "argument 'count' must be an integer"},
      {R"({"command":"x","mode":"medium"})", "argument 'mode' must be one of 'fast', 'slow'"},
      {R"({"command":"x","flag":"true"})", "argument 'flag' must be a boolean, not a string"},
      {R"({"command":"x","flag":1})", "argument 'flag' must be a boolean, not a number"},
      {R"({"command":"x","names":"y"})", "argument 'names' must be an array, not a string"},
      {R"({"command":"x","names":["y",1]})",
       "argument 'names' must hold only items of type string"},
      {R"({"command":"x","extra":[]})", "argument 'extra' must be an object, not an array"},
      {R"({"command":"x","Command":"y"})", "argument 'Command' is unknown"},
      {R"({"command":"x","work\ndir":"y"})", "argument 'work\\x0adir' is unknown"},
      {R"({"command":"a\ud800b"})", "argument 'command' holds an unpaired surrogate"},
      {R"({"command":"x","extra":{"\udc00":1}})", "argument 'extra' holds an unpaired surrogate"},
      {R"({"command":"x","names":["\ud800"]})", "argument 'names' holds an unpaired surrogate"},
  };
  Talk talk({checked_tool()});
  talk.initialize();
  for (const Row& row : rows) {
    CAPTURE(row.arguments);
    const Json reply = talk.call("checked", row.arguments);
    CHECK(is_failure(reply));
    const std::string text = text_of(reply);
    CHECK_MESSAGE(has(text, row.says), text);
    CHECK(has(text, "command (string, required), timeout (number), count (integer)"));
  }
}

TEST_CASE("several wrong arguments are told at once, thousands of them briefly") {
  Talk talk({checked_tool()});
  talk.initialize();
  const std::string two = text_of(talk.call("checked", R"({"count":"x","y":1})"));
  CHECK(has(two, "'count'"));
  CHECK(has(two, "'y' is unknown"));
  CHECK(has(two, "'command' is missing"));
  std::string many = "{";
  for (int i = 0; i < 20000; ++i) many += "\"a" + std::to_string(i) + "\":1,";
  many += "\"command\":\"x\"}";
  CHECK(text_of(talk.call("checked", many)).size() < 2000);
}

TEST_CASE("right arguments arrive, and defaults stand for what was left out") {
  Talk talk({checked_tool()});
  talk.initialize();
  CHECK(text_of(talk.call("checked", R"({"command":"x","timeout":0.5,"names":[],"extra":{}})")) ==
        R"({"count":10,"mode":null,"flag":null})");
  CHECK(text_of(talk.call("checked", R"({"command":"","count":3.0,"mode":null,"flag":false})")) ==
        R"({"count":3.0,"mode":null,"flag":false})");
  CHECK(text_of(talk.call("checked", R"({"command":"\u0000","mode":"slow","timeout":3600})")) ==
        R"({"count":10,"mode":"slow","flag":null})");
}

TEST_CASE("with a schema of its own the tool checks its arguments, except for broken text") {
  Tool raw = tool(
      "raw", [](const Call& call) { return ToolReply(ToolResult::text(call.arguments().dump())); });
  raw.input_schema = parsed(R"({"type":"object","oneOf":[{"required":["a"]}],"$defs":{}})");
  Talk talk({raw});
  talk.initialize();
  CHECK(talk.ask(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})")["result"]["tools"][2]
                                                                     ["inputSchema"] ==
        raw.input_schema);
  CHECK(text_of(talk.call("raw", R"({"b":[1,"x"]})")) == R"({"b":[1,"x"]})");
  CHECK(text_of(talk.ask(R"({"jsonrpc":"2.0","id":1,"method":"tools/call",)"
                         R"("params":{"name":"raw"}})")) == "{}");
  CHECK(is_failure(talk.call("raw", R"({"b":["\ud800"]})")));
}

TEST_CASE("add() refuses tools that clients would choke on") {
  const auto handler = [](const Call&) { return ToolReply(ToolResult::text("")); };
  const auto refused = [&](const Tool& bad, const char* says) {
    Server server;
    const auto added = server.add(bad);
    REQUIRE(!added);
    CHECK(added.error().code == ErrorCode::invalid_argument);
    CHECK_MESSAGE(has(added.error().message, says), added.error().message);
  };
  for (const std::string& name : {std::string(), std::string("a b"), std::string("a/b"),
                                  std::string("\xc3\xa4"), std::string(65, 'a')})
    refused(tool(name, handler), "name must be");
  refused(tool("x", nullptr), "handler is empty");
  for (const char* schema : {"[]", "7", R"({})", R"({"type":"string"})"}) {
    Tool bad = tool("x", handler);
    bad.input_schema = parsed(schema);
    refused(bad, "input_schema");
    bad.input_schema = Json();
    bad.output_schema = parsed(schema);
    refused(bad, "output_schema");
  }
  Tool both = tool("x", handler, {parameter("a", ParameterType::string)});
  both.input_schema = parsed(R"({"type":"object"})");
  refused(both, "exclude each other");
  std::string nested = R"({"type":"object","x":)";
  for (int i = 0; i < 100; ++i) nested += "[";
  for (int i = 0; i < 100; ++i) nested += "]";
  Tool deep = tool("x", handler);
  deep.input_schema = parsed(nested + "}");
  refused(deep, "nested too deeply");

  Parameter odd = parameter("", ParameterType::string);
  refused(tool("x", handler, {odd}), "must have a name");
  odd = parameter("a", ParameterType::string);
  refused(tool("x", handler, {odd, odd}), "'a' is there twice");
  odd.minimum = 1;
  refused(tool("x", handler, {odd}), "'a' has bounds");
  odd = parameter("a", ParameterType::number);
  odd.choices = {"b"};
  refused(tool("x", handler, {odd}), "'a' has choices");
  odd = parameter("a", ParameterType::string);
  odd.items = ParameterType::string;
  refused(tool("x", handler, {odd}), "'a' has an item type");
  odd = parameter("a", ParameterType::string);
  odd.default_value = 7;
  refused(tool("x", handler, {odd}), "'a' has a default that must be a string");
  odd = parameter("a", ParameterType::string, true);
  odd.default_value = "x";
  refused(tool("x", handler, {odd}), "required and has a default");

  Server server;
  CHECK(server.add(tool(std::string(64, 'a'), handler)));
  CHECK(server.add(tool("A-z_0.9", handler)));
  const auto twice = server.add(tool("A-z_0.9", handler));
  REQUIRE(!twice);
  CHECK(has(twice.error().message, "is there already"));
}

TEST_CASE("tools are listed in their order with titles, hints and schemas") {
  const auto handler = [](const Call&) { return ToolReply(ToolResult::text("")); };
  Tool full = tool("zz", handler);
  full.title = "The Z";
  full.description = "Does\n\"z\" \xf0\x9f\x98\x80";
  full.annotations.read_only = true;
  full.annotations.destructive = false;
  full.annotations.idempotent = true;
  full.annotations.open_world = false;
  full.output_schema = parsed(R"({"type":"object","properties":{"a":{"type":"integer"}}})");
  Talk talk({full, tool("aa", handler)});
  talk.initialize();
  const Json tools =
      talk.ask(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})")["result"]["tools"];
  REQUIRE(tools.size() == 4);
  CHECK(tools[0]["name"] == Json("echo"));
  CHECK(tools[1]["name"] == Json("hold"));
  CHECK(tools[2] == parsed(R"({"name":"zz","title":"The Z",
      "description":"Does\n\"z\" \ud83d\ude00",
      "inputSchema":{"type":"object","additionalProperties":false},
      "outputSchema":{"type":"object","properties":{"a":{"type":"integer"}}},
      "annotations":{"title":"The Z","readOnlyHint":true,"destructiveHint":false,
                     "idempotentHint":true,"openWorldHint":false}})"));
  CHECK(tools[3]["name"] == Json("aa"));
  CHECK(!tools[3].find("annotations"));
}

TEST_CASE("tools cannot be added while serving") {
  Talk talk;
  talk.check_silent();
  CHECK(!talk.server().add(tool("late", [](const Call&) { return ToolReply(); })));
  CHECK(!talk.server().serve());
  CHECK(talk.finish().empty());
  CHECK(talk.server().add(tool("late", [](const Call&) { return ToolReply(); })));
}

// results -----------------------------------------------------------------------------------------

TEST_CASE("every kind of content reaches the client as the protocol spells it") {
  Tool all = tool("all", [](const Call&) {
    ToolResult result = ToolResult::text("t");
    result.content.push_back(Content::image(std::string_view("\0\xff", 2), "image/png"));
    result.content.push_back(Content::audio("ab", "audio/wav"));
    result.content.push_back(Content::resource_text("u:1", "text/plain", "r"));
    result.content.push_back(Content::resource_blob("u:2", "a/b", "abc"));
    result.content.push_back(Content::resource_link("u:3", "n", "text/x", "d"));
    result.content.push_back(Content::resource_link("u:4", "m"));
    result.content.push_back(Content::raw(Json::object({{"type", "new"}, {"x", 1}})));
    result.meta = Json::object({{"example.org/k", true}});
    return ToolReply(result);
  });
  Talk talk({all});
  talk.initialize();
  const std::string content = R"("content":[{"type":"text","text":"t"},
      {"type":"image","data":"AP8=","mimeType":"image/png"},
      {"type":"audio","data":"YWI=","mimeType":"audio/wav"},
      {"type":"resource","resource":{"uri":"u:1","mimeType":"text/plain","text":"r"}},
      {"type":"resource","resource":{"uri":"u:2","mimeType":"a/b","blob":"YWJj"}},
      {"type":"resource_link","uri":"u:3","name":"n","mimeType":"text/x","description":"d"},
      {"type":"resource_link","uri":"u:4","name":"m"},
      {"type":"new","x":1}])";
  CHECK(talk.call("all")["result"] ==
        parsed("{" + content + R"(,"_meta":{"example.org/k":true}})"));
  CHECK(talk.ask(modern("1", "tools/call", R"("name":"all")"))["result"] ==
        parsed("{" + content + R"(,"resultType":"complete","_meta":{"example.org/k":true,
            "io.modelcontextprotocol/serverInfo":{"name":"codeexec","version":"0.1.0"}}})"));
}

TEST_CASE("structured content comes with its text") {
  std::vector<Tool> tools;
  tools.push_back(tool("object", [](const Call&) {
    return ToolReply(ToolResult::with_structured(Json::object({{"a", 1}})));
  }));
  tools.push_back(
      tool("number", [](const Call&) { return ToolReply(ToolResult::with_structured(7)); }));
  tools.push_back(tool("bare", [](const Call&) {
    ToolResult result;
    result.structured = Json::object({{"b", 2}});
    return ToolReply(result);
  }));
  tools.push_back(tool("empty", [](const Call&) { return ToolReply(); }));
  tools.push_back(tool("failing", [](const Call&) { return ToolReply(ToolResult::error("why")); }));
  tools.push_back(tool("missing", [](const Call&) { return ToolReply(ToolResult::text("t")); }));
  for (const std::size_t i : {std::size_t(0), std::size_t(4), std::size_t(5)})
    tools[i].output_schema = parsed(R"({"type":"object"})");
  Talk talk(tools);
  talk.initialize();
  CHECK(talk.call("object")["result"] ==
        parsed(R"({"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"a":1}})"));
  // Only modern clients know structured content that is no object.
  CHECK(talk.call("number")["result"] == parsed(R"({"content":[{"type":"text","text":"7"}]})"));
  CHECK(talk.ask(modern("1", "tools/call", R"("name":"number")"))["result"]["structuredContent"] ==
        Json(7));
  CHECK(talk.call("bare")["result"] ==
        parsed(R"({"content":[{"type":"text","text":"{\"b\":2}"}],"structuredContent":{"b":2}})"));
  CHECK(talk.call("empty")["result"] == parsed(R"({"content":[{"type":"text","text":""}]})"));
  CHECK(talk.call("failing")["result"] ==
        parsed(R"({"content":[{"type":"text","text":"why"}],"isError":true})"));
  CHECK(code_of(talk.call("missing")) == -32603);
}

TEST_CASE("a handler can answer with a JSON-RPC error of its own") {
  std::vector<Tool> tools;
  tools.push_back(tool("refuse", [](const Call&) {
    RpcError error;
    error.code = -32021;
    error.message = "needs \xff sampling";
    error.data =
        Json::object({{"requiredCapabilities", Json::object({{"sampling", Json::object()}})}});
    return ToolReply(error);
  }));
  tools.push_back(tool("verbose", [](const Call&) {
    RpcError error;
    error.code = 5;
    error.message = std::string(std::size_t(9) << 20, 'e');
    return ToolReply(error);
  }));
  Talk talk(tools);
  talk.initialize();
  CHECK(talk.call("refuse")["error"] ==
        parsed("{\"code\":-32021,\"message\":\"needs \xef\xbf\xbd sampling\","
               R"("data":{"requiredCapabilities":{"sampling":{}}}})"));
  const Json reply = talk.call("verbose");
  CHECK(code_of(reply) == 5);
  CHECK(reply.dump().size() < 1000);
}

TEST_CASE("a result over max_reply becomes an error that says so; just under it passes") {
  for (const std::size_t limit : {std::size_t(8) << 20, std::size_t(4096)}) {
    ServerOptions options;
    options.max_reply = limit;
    Tool large =
        tool("large",
             [](const Call& call) {
               const std::int64_t size = call.argument("size").as_integer();
               return ToolReply(ToolResult::text(std::string(static_cast<std::size_t>(size), 'x')));
             },
             {parameter("size", ParameterType::integer, true)});
    Tool exact = tool("exact", [](const Call& call) {
      const std::size_t around = ToolResult::text("").content[0].block.dump().size() + 14;
      return ToolReply(ToolResult::text(std::string(call.max_result_bytes() - around, 'x')));
    });
    Talk talk({large, exact}, options);
    talk.initialize();
    const auto line = [&](std::size_t size) {
      talk.send(Talk::call_line("1", "large", "{\"size\":" + std::to_string(size) + "}"));
      return talk.receive_line();
    };
    const std::size_t around = line(0).size() + 1;  // and the newline
    CHECK(line(limit - around).size() + 1 == limit);
    for (const std::size_t size : {limit - around + 1, limit, 3 * limit}) {
      const std::string reply = line(size);
      CHECK(reply.size() < limit);
      CHECK(is_failure(parsed(reply)));
      CHECK(has(text_of(parsed(reply)), std::to_string(limit)));
    }
    // A result of max_result_bytes() fits, whatever the id and in both eras.
    for (const std::string& id : {std::string("1"), "\"" + std::string(1022, 'i') + "\""}) {
      const Json legacy_reply = talk.ask(Talk::call_line(id, "exact"));
      CHECK(!is_failure(legacy_reply));
      CHECK(legacy_reply.dump().size() > limit - 300);
      CHECK(!is_failure(talk.ask(modern(id, "tools/call", R"("name":"exact")"))));
    }
  }
}

TEST_CASE("results that clients cannot read are replaced by an error") {
  Json deep = 1;
  for (int i = 0; i < 70; ++i) deep = Json::array({deep});
  std::vector<Tool> tools;
  tools.push_back(tool("deep", [deep](const Call&) {
    return ToolReply(ToolResult::with_structured(Json::object({{"x", deep}})));
  }));
  tools.push_back(tool("block", [](const Call&) {
    ToolResult result;
    result.content.push_back(Content::raw(Json("no object")));
    return ToolReply(result);
  }));
  Talk talk(tools);
  talk.initialize();
  CHECK(is_failure(talk.call("deep")));
  CHECK(is_failure(talk.call("block")));
}

TEST_CASE("text that is not UTF-8 is repaired, and no reply holds a second line") {
  const std::string hostile = "a\xff\nb\r\x85\xe2\x80\xa8\xc2\x85\x7f\0c";
  Tool bad = tool("bad", [&hostile](const Call& call) {
    call.progress(1, {}, hostile);
    ToolResult result = ToolResult::text(hostile);
    result.meta = Json::object({{hostile, hostile}});
    return ToolReply(result);
  });
  Talk talk({bad});
  talk.initialize();
  talk.send(Talk::call_line("1", "bad", "{}", R"({"progressToken":1})"));
  for (int i = 0; i < 2; ++i) {
    const std::string line = talk.receive_line();
    CHECK(codeexec::is_utf8(line));
    CHECK(line.find_first_of("\r\x7f") == std::string::npos);
    CHECK(line.find("\xe2\x80\xa8") == std::string::npos);
    check_shape(parsed(line));
  }
}

#if defined(__cpp_exceptions)
TEST_CASE("a handler that throws has failed, and the server goes on") {
  std::vector<Tool> tools;
  tools.push_back(tool(
      "throws", [](const Call&) -> ToolReply { throw std::runtime_error("broken \xff pipe"); }));
  tools.push_back(tool("throws_int", [](const Call&) -> ToolReply { throw 7; }));
  Talk talk(tools);
  talk.initialize();
  Json reply = talk.call("throws");
  CHECK(is_failure(reply));
  CHECK(has(text_of(reply), "broken \xef\xbf\xbd pipe"));
  reply = talk.call("throws_int");
  CHECK(is_failure(reply));
  CHECK(has(text_of(reply), "throws_int"));
  talk.check_silent();
}
#endif

// batches -----------------------------------------------------------------------------------------

TEST_CASE("a batch of 2025-03-26 is answered by one array") {
  Talk talk;
  talk.initialize("2025-03-26");
  const Json replies = talk.ask(
      R"([{"jsonrpc":"2.0","id":1,"method":"ping"},)"
      R"({"jsonrpc":"2.0","method":"notifications/initialized"},)" +
      Talk::call_line("2", "echo", R"({"text":"x"})") + "," + Talk::call_line("3", "echo") +
      R"(,7,{"jsonrpc":"2.0","id":4,"method":"initialize",)"
      R"("params":{"protocolVersion":"2025-06-18"}},)"
      R"({"jsonrpc":"2.0","id":1.5,"method":"ping"},{"jsonrpc":"2.0","id":9,"result":{}},)"
      R"({"jsonrpc":"2.0","id":5,"method":"no/such"}])");
  REQUIRE(replies.is_array());
  REQUIRE(replies.size() == 7);
  std::map<std::string, Json> by_id;
  int without_id = 0;
  for (const Json& reply : replies.items()) {
    if (reply.find("id")) {
      by_id[reply["id"].dump()] = reply;
    } else {
      CHECK(code_of(reply) == -32600);
      ++without_id;
    }
  }
  CHECK(without_id == 2);
  CHECK(by_id["1"].find("result"));
  CHECK(text_of(by_id["2"]) == "x");
  CHECK(is_failure(by_id["3"]));
  CHECK(code_of(by_id["4"]) == -32600);
  CHECK(code_of(by_id["5"]) == -32601);
  // The initialize inside has changed nothing.
  CHECK(talk.ask(R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])").is_array());
}

TEST_CASE("a batch of notifications is not answered, an empty or endless one is refused") {
  Talk talk;
  talk.initialize("2025-03-26");
  talk.send(R"([{"jsonrpc":"2.0","method":"notifications/initialized"},)"
            R"({"jsonrpc":"2.0","id":1,"result":{}}])");
  talk.check_silent();
  CHECK(code_of(talk.ask("[]")) == -32600);
  std::string endless = "[1";
  for (int i = 0; i < 200000; ++i) endless += ",1";
  const Json reply = talk.ask(endless + "]");
  CHECK(code_of(reply) == -32600);
}

TEST_CASE("calls of a batch run side by side, and the cancelled ones are left out") {
  Talk talk;
  talk.initialize("2025-03-26");
  talk.send("[" + Talk::call_line("1", "hold") + "," + Talk::call_line("2", "hold") + "," +
            Talk::call_line("3", "hold") + "]");
  REQUIRE(talk.gate.wait_for_arrivals(3));
  talk.check_silent();  // read while they run
  talk.cancel("2");
  REQUIRE(talk.gate.wait_for_cancelled(1));
  talk.gate.open();
  const Json replies = talk.receive();
  REQUIRE(replies.size() == 2);
  for (const Json& reply : replies.items()) {
    CHECK(reply["id"] != Json(2));
    CHECK(text_of(reply) == "let go");
  }
  CHECK(talk.finish().empty());
}

TEST_CASE("a batch does not wait for a call that was cancelled before it ran") {
  ServerOptions options;
  options.max_concurrent = 1;
  Talk talk({}, options);
  talk.initialize("2025-03-26");
  talk.send("[" + Talk::call_line("1", "hold") + "," + Talk::call_line("2", "hold") + "]");
  REQUIRE(talk.gate.wait_for_arrivals(1));
  talk.cancel("2");
  talk.check_silent();
  talk.gate.open();
  const Json replies = talk.receive();
  REQUIRE(replies.size() == 1);
  CHECK(replies[0]["id"] == Json(1));
}

TEST_CASE("a batch whose calls are all cancelled is not answered") {
  Talk talk;
  talk.initialize("2025-03-26");
  talk.send("[" + Talk::call_line("1", "hold") + "]");
  REQUIRE(talk.gate.wait_for_arrivals(1));
  talk.cancel("1");
  REQUIRE(talk.gate.wait_for_cancelled(1));
  CHECK(talk.finish().empty());
}

TEST_CASE("the replies of a batch together stay under max_reply") {
  ServerOptions options;
  options.max_reply = 65536;
  Tool fill = tool("fill", [](const Call& call) {
    return ToolReply(ToolResult::text(std::string(call.max_result_bytes() + 1000, 'x')));
  });
  Tool huge = tool(
      "huge", [](const Call&) { return ToolReply(ToolResult::text(std::string(60000, 'x'))); });
  Talk talk({fill, huge}, options);
  talk.initialize("2025-03-26");
  std::string batch = "[";
  for (int i = 0; i < 16; ++i)
    batch += Talk::call_line(std::to_string(i), i % 2 ? "huge" : "fill") + (i < 15 ? "," : "]");
  talk.send(batch);
  const std::string line = talk.receive_line();
  CHECK(line.size() < options.max_reply);
  CHECK(parsed(line).size() == 16);
  CHECK(code_of(talk.ask(batch.substr(0, batch.size() - 1) + ",1]")) == -32600);
}

// running calls -----------------------------------------------------------------------------------

TEST_CASE("ping and everything else is answered while tools run") {
  Talk talk;
  talk.initialize();
  for (int i = 0; i < 5; ++i) talk.send(Talk::call_line(std::to_string(i), "hold"));
  REQUIRE(talk.gate.wait_for_arrivals(5));
  talk.check_silent();
  CHECK(text_of(talk.call("echo", R"({"text":"quick"})")) == "quick");
  CHECK(talk.ask(modern("\"m\"", "tools/list"))["id"] == Json("m"));
  CHECK(code_of(talk.ask("garbage")) == -32700);
  talk.gate.open();
  std::set<std::int64_t> ids;
  for (int i = 0; i < 5; ++i) ids.insert(talk.receive()["id"].as_integer());
  CHECK(ids == std::set<std::int64_t>{0, 1, 2, 3, 4});
}

TEST_CASE("a tool that was quick and then is not holds up nobody") {
  // The reading stays with the thread of a quick call; somebody has to take it over here.
  std::atomic<bool> slow{false};
  Gate gate;
  Tool fickle = tool("fickle", [&](const Call& call) {
    if (slow) gate.wait(call);
    return ToolReply(ToolResult::text("done"));
  });
  Talk talk({fickle});
  talk.initialize();
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 200; ++i) CHECK(text_of(talk.call("fickle")) == "done");
    slow = true;
    talk.send(Talk::call_line(std::to_string(round), "fickle"));
    REQUIRE(gate.wait_for_arrivals(round + 1));
    talk.check_silent();
    talk.cancel(std::to_string(round));
    REQUIRE(gate.wait_for_cancelled(round + 1));
    slow = false;
  }
}

TEST_CASE(
    "the answer of a call that took longer than was hoped waits for nothing more to be read") {
  for (int round = 0; round < 5; ++round) {
    std::atomic<bool> slow{false};
    Gate gate;
    Tool fickle = tool("fickle", [&](const Call& call) {
      if (slow.exchange(false)) gate.wait(call);
      return ToolReply(ToolResult::text("done"));
    });
    Talk talk({fickle});
    talk.initialize();
    for (int i = 0; i < 50; ++i) CHECK(text_of(talk.call("fickle")) == "done");
    slow = true;
    talk.send(Talk::call_line("1", "fickle") + "\n" + Talk::call_line("2", "fickle"));
    CHECK(talk.receive()["id"] == Json(2));
    gate.open();
    CHECK(talk.receive()["id"] == Json(1));
  }
}

TEST_CASE("at most max_concurrent handlers run; calls beyond max_waiting are refused") {
  ServerOptions options;
  options.max_concurrent = 3;
  options.max_waiting = 4;
  Talk talk({}, options);
  talk.initialize();
  for (int i = 0; i < 9; ++i) talk.send(Talk::call_line(std::to_string(i), "hold"));
  for (int id : {7, 8}) {
    const Json busy = talk.receive();
    CHECK(busy["id"] == Json(id));
    CHECK(is_failure(busy));
    CHECK(has(text_of(busy), "busy"));
  }
  REQUIRE(talk.gate.wait_for_arrivals(3));
  talk.check_silent();
  CHECK(talk.gate.arrived() == 3);
  talk.gate.open();
  std::set<std::int64_t> ids;
  for (int i = 0; i < 7; ++i) ids.insert(talk.receive()["id"].as_integer());
  CHECK(ids == std::set<std::int64_t>{0, 1, 2, 3, 4, 5, 6});
  CHECK(talk.gate.most_at_once() == 3);
  CHECK(talk.finish().empty());
}

TEST_CASE("sixteen calls run at a time by default") {
  Talk talk;
  talk.initialize();
  for (int i = 0; i < 20; ++i) talk.send(Talk::call_line(std::to_string(i), "hold"));
  REQUIRE(talk.gate.wait_for_arrivals(16));
  talk.check_silent();
  CHECK(talk.gate.arrived() == 16);
  talk.gate.open();
  for (int i = 0; i < 20; ++i) CHECK(talk.receive().find("result"));
}

TEST_CASE("with one handler at a time the reading goes on") {
  ServerOptions options;
  options.max_concurrent = 1;
  options.max_waiting = 0;
  Talk talk({}, options);
  talk.initialize();
  talk.send(Talk::call_line("1", "hold"));
  REQUIRE(talk.gate.wait_for_arrivals(1));
  talk.check_silent();
  CHECK(is_failure(talk.call("echo", R"({"text":"x"})")));
  talk.gate.open();
  CHECK(talk.receive()["id"] == Json(1));
}

TEST_CASE("a cancelled call is told so and never answered") {
  Gate gate;
  Tool chatty = tool("chatty", [&gate](const Call& call) {
    call.progress(1);
    gate.wait(call);
    call.progress(2);
    return ToolReply(ToolResult::text("too late"));
  });
  Talk talk({chatty});
  talk.initialize();
  talk.send(Talk::call_line("1", "chatty", "{}", R"({"progressToken":"p"})"));
  CHECK(talk.receive()["method"] == Json("notifications/progress"));
  REQUIRE(gate.wait_for_arrivals(1));
  talk.cancel("\"1\"");  // another id
  talk.check_silent();
  CHECK(gate.arrived() == 1);
  talk.cancel("1");
  REQUIRE(gate.wait_for_cancelled(1));
  talk.cancel("1");
  talk.check_silent();
  // The id is free again.
  CHECK(text_of(talk.ask(Talk::call_line("1", "echo", R"({"text":"again"})"))) == "again");
  CHECK(talk.finish().empty());
}

TEST_CASE("ids that differ in type are cancelled apart, 1 and 1.0 are the same") {
  Talk talk;
  talk.initialize();
  talk.send(Talk::call_line("1", "hold"));
  talk.send(Talk::call_line("\"1\"", "hold"));
  talk.send(Talk::call_line("2", "hold"));
  REQUIRE(talk.gate.wait_for_arrivals(3));
  talk.send(R"({"jsonrpc":"1.0","method":"notifications/cancelled","params":{"requestId":1}})");
  talk.cancel("\"1\"");
  talk.cancel("2.0");
  REQUIRE(talk.gate.wait_for_cancelled(2));
  talk.gate.open();
  CHECK(talk.receive()["id"] == Json(1));
  CHECK(talk.finish().empty());
}

TEST_CASE("a call that is cancelled while it waits never runs") {
  ServerOptions options;
  options.max_concurrent = 1;
  options.max_waiting = 2;
  Talk talk({}, options);
  talk.initialize();
  for (int i = 0; i < 3; ++i) talk.send(Talk::call_line(std::to_string(i), "hold"));
  REQUIRE(talk.gate.wait_for_arrivals(1));
  talk.cancel("1");
  talk.check_silent();
  talk.send(Talk::call_line("3", "hold"));  // there is room for it again
  talk.check_silent();
  talk.gate.open();
  for (const int id : {0, 2, 3}) CHECK(talk.receive()["id"] == Json(id));
  CHECK(talk.finish().empty());
  CHECK(talk.gate.arrived() == 3);
}

TEST_CASE("an id that is in use is refused and the running call is not mixed up") {
  Talk talk;
  talk.initialize();
  talk.send(Talk::call_line("1", "hold"));
  REQUIRE(talk.gate.wait_for_arrivals(1));
  CHECK(code_of(talk.ask(Talk::call_line("1", "hold"))) == -32600);
  CHECK(code_of(talk.ask(Talk::call_line("1.0", "hold"))) == -32600);
  CHECK(code_of(talk.ask(R"({"jsonrpc":"2.0","id":1,"method":"ping"})")) == -32600);
  CHECK(talk.ask(R"({"jsonrpc":"2.0","id":"1","method":"ping"})").find("result"));
  CHECK(talk.gate.arrived() == 1);
  talk.cancel("1");
  REQUIRE(talk.gate.wait_for_cancelled(1));
  CHECK(talk.finish().empty());
}

TEST_CASE("handlers see the request: name, arguments, _meta") {
  Tool spy =
      tool("spy",
           [](const Call& call) {
             return ToolReply(ToolResult::text(Json::object({{"tool", call.tool()},
                                                             {"arguments", call.arguments()},
                                                             {"meta", call.meta()},
                                                             {"progress", call.wants_progress()},
                                                             {"none", call.argument("none")}})
                                                   .dump()));
           },
           {parameter("a", ParameterType::number)});
  Talk talk({spy});
  talk.initialize();
  CHECK(
      text_of(talk.ask(Talk::call_line("1", "spy", R"({"a":1.50})", R"({"x":{"y":2}})"))) ==
      R"({"tool":"spy","arguments":{"a":1.50},"meta":{"x":{"y":2}},"progress":false,"none":null})");
  CHECK(text_of(talk.ask(R"({"jsonrpc":"2.0","id":1,"method":"tools/call",)"
                         R"("params":{"name":"spy","_meta":7}})")) ==
        R"({"tool":"spy","arguments":{},"meta":7,"progress":false,"none":null})");
}

// progress ----------------------------------------------------------------------------------------

TEST_CASE("progress is sent when asked for, rises strictly, and comes before the answer") {
  Tool steps = tool("steps", [](const Call& call) {
    call.progress(0);
    call.progress(1, 10.0, "one");
    call.progress(1, 10.0, "again");
    call.progress(0.5);
    call.progress(std::nan(""));
    call.progress(INFINITY);
    call.progress(1.5, std::nan(""));
    call.progress(2, 10.0, std::string(100000, 'm'));
    return ToolReply(ToolResult::text(call.wants_progress() ? "asked" : "not asked"));
  });
  Talk talk({steps});
  talk.initialize();
  for (const char* token : {"1", "\"1\"", "9007199254740993", "\"\""}) {
    talk.send(
        Talk::call_line("1", "steps", "{}", std::string(R"({"progressToken":)") + token + "}"));
    const std::string start = std::string(R"({"progressToken":)") + token + R"(,"progress":)";
    CHECK(talk.receive()["params"].dump() == start + "0}");
    CHECK(talk.receive()["params"].dump() == start + R"(1,"total":10,"message":"one"})");
    CHECK(talk.receive()["params"].dump() == start + "1.5}");
    const Json last = talk.receive();
    CHECK(last["method"] == Json("notifications/progress"));
    CHECK(last["params"]["progress"] == Json(2));
    CHECK(last["params"]["message"].as_string().size() <= 4096);
    CHECK(text_of(talk.receive()) == "asked");
  }
  for (const char* meta : {"{}", R"({"progressToken":null})", R"({"progressToken":1.5})",
                           R"({"progressToken":true})", R"({"progressToken":[1]})"})
    CHECK(text_of(talk.ask(Talk::call_line("1", "steps", "{}", meta))) == "not asked");
  // The modern era asks the same way.
  std::string meta = modern_meta;
  meta.insert(1, R"("progressToken":"m",)");
  talk.send(modern("1", "tools/call", R"("name":"steps")", meta));
  CHECK(talk.receive()["params"]["progressToken"] == Json("m"));
}

TEST_CASE("no progress comes after the answer, from whatever thread") {
  std::optional<Call> kept;
  std::mutex mutex;
  Tool leak = tool("leak", [&](const Call& call) {
    const std::lock_guard<std::mutex> lock(mutex);
    kept = call;
    return ToolReply(ToolResult::text("answer"));
  });
  Talk talk({leak});
  talk.initialize();
  CHECK(text_of(talk.ask(Talk::call_line("1", "leak", "{}", R"({"progressToken":1})"))) ==
        "answer");
  {
    const std::lock_guard<std::mutex> lock(mutex);
    kept->progress(5);
  }
  talk.check_silent();
  CHECK(talk.finish().empty());
  kept->progress(6);  // the server is gone
}

TEST_CASE("progress in a flood is thinned out, not queued") {
  Tool flood = tool("flood", [](const Call& call) {
    for (int i = 0; i < 100000; ++i) call.progress(i);
    return ToolReply(ToolResult::text("done"));
  });
  Talk talk({flood});
  talk.initialize();
  const auto start = Clock::now();
  talk.send(Talk::call_line("1", "flood", "{}", R"({"progressToken":1})"));
  double last = -1;
  int count = 0;
  for (Json message = talk.receive(); message.find("method"); message = talk.receive()) {
    CHECK(message["params"]["progress"].as_number() > last);
    last = message["params"]["progress"].as_number();
    ++count;
  }
  CHECK(count >= 32);
  CHECK(count <= 33 + 20 * seconds_since(start));
}

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
    return ToolReply(ToolResult::text("done"));
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
  Tool large = tool(
      "large", [](const Call&) { return ToolReply(ToolResult::text(std::string(3000000, 'z'))); });
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
  const std::string request =
      "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n";
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
    return ToolReply(ToolResult::text(call.cancel_token().cancelled() ? "cancelled" : "whole"));
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
    return ToolReply(ToolResult::text("too late"));
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
  Tool large = tool(
      "large", [](const Call&) { return ToolReply(ToolResult::text(std::string(4000000, 'z'))); });
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
    return ToolReply(ToolResult::text("seen"));
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
