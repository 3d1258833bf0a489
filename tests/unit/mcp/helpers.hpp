// Helpers that several tests of mcp::Server share. The server runs on a thread of this program, the
// test is the client at the other ends of two pipes.
#ifndef CODEEXEC_TESTS_UNIT_MCP_HELPERS_HPP
#define CODEEXEC_TESTS_UNIT_MCP_HELPERS_HPP

#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "../../helpers/line_support.hpp"
#include "../../helpers/support.hpp"

namespace support {

using Clock = std::chrono::steady_clock;

using Lines = std::vector<std::string>;

using Handler = codeexec::Function<codeexec::mcp::ToolResult(const codeexec::mcp::Call&)>;

// Far above what anything here takes; only a hang comes near.
constexpr int patience_ms = 400000;

inline double seconds_since(Clock::time_point start) {
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
inline void check_shape(const codeexec::Json& message) {
  if (message.is_array()) {
    for (const codeexec::Json& item : message.items()) check_shape(item);
    return;
  }
  CHECK(message["jsonrpc"] == codeexec::Json("2.0"));
  std::set<std::string> names;
  for (const codeexec::Json::Member& member : message.members()) names.insert(member.name);
  if (const codeexec::Json* method = message.find("method")) {
    // All but the questions are notifications.
    const bool is_roots = *method == codeexec::Json("roots/list");
    CHECK(names.erase("id") ==
          (is_roots || *method == codeexec::Json("elicitation/create") ? 1 : 0));
    if (!is_roots) CHECK(names.erase("params") == 1);
    CHECK(names == std::set<std::string>{"jsonrpc", "method"});
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
  bool wait(const codeexec::mcp::Call& call) {
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

inline codeexec::mcp::Tool tool(const std::string& name, Handler handler,
                                std::vector<codeexec::mcp::Parameter> parameters = {}) {
  codeexec::mcp::Tool made;
  made.name = name;
  made.handler = std::move(handler);
  made.parameters = std::move(parameters);
  return made;
}

inline codeexec::mcp::Parameter parameter(const std::string& name,
                                          codeexec::mcp::ParameterType type,
                                          bool required = false) {
  codeexec::mcp::Parameter made;
  made.name = name;
  made.type = type;
  made.required = required;
  return made;
}

// A server on a thread of its own, and its client.
class Talk {
 public:
  // The tools echo (text), and hold, which waits at the gate, and those given.
  explicit Talk(std::vector<codeexec::mcp::Tool> tools = {},
                codeexec::mcp::ServerOptions options = {})
      : server_(complete(std::move(options))) {
    add(tool("echo",
             [](const codeexec::mcp::Call& call) {
               return codeexec::mcp::ToolResult::text(call.argument("text").as_string());
             },
             {parameter("text", codeexec::mcp::ParameterType::string, true)}));
    add(tool("hold", [this](const codeexec::mcp::Call& call) {
      return codeexec::mcp::ToolResult::text(gate.wait(call) ? "cancelled" : "let go");
    }));
    for (codeexec::mcp::Tool& each : tools) add(std::move(each));
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
  codeexec::Json receive() {
    const std::string line = receive_line();
    if (line.empty()) return codeexec::Json();
    const codeexec::Expected<codeexec::Json> message = codeexec::Json::parse(line);
    REQUIRE_MESSAGE(message, line);
    check_shape(*message);
    return *message;
  }

  codeexec::Json ask(const std::string& line) {
    send(line);
    return receive();
  }

  // Whatever was sent before is done, and has been received: nothing comes before this ping.
  void check_silent() {
    const codeexec::Json reply = ask(R"({"jsonrpc":"2.0","id":"silence","method":"ping"})");
    CHECK(reply["id"] == codeexec::Json("silence"));
  }

  codeexec::Json initialize(const std::string& version = "2025-06-18") {
    return ask(
        R"({"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":")" +
        version + R"(","capabilities":{},"clientInfo":{"name":"t","version":"1"}}})");
  }

  // A call in the legacy era.
  codeexec::Json call(const std::string& name, const std::string& arguments = "{}") {
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

  codeexec::Expected<void> wait() {
    std::unique_lock<std::mutex> lock(ended_mutex_);
    const bool in_time = ended_changed_.wait_for(lock, std::chrono::milliseconds(patience_ms),
                                                 [&] { return ended_; });
    REQUIRE_MESSAGE(in_time, "serve() does not return");
    return result_;
  }

  // Ends the input; everything the server still had to say.
  std::vector<codeexec::Json> finish() {
    close_input();
    std::vector<codeexec::Json> messages;
    for (codeexec::Json message = receive(); !message.is_null(); message = receive())
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

  codeexec::mcp::Server& server() { return server_; }

  void serve() {
    thread_ = std::thread([this] {
      codeexec::Expected<void> result = server_.serve(stop);
      from_.close_write();
      const std::lock_guard<std::mutex> lock(ended_mutex_);
      result_ = std::move(result);
      ended_ = true;
      ended_changed_.notify_all();
    });
  }

  codeexec::CancelToken stop = {};
  Gate gate = {};

 private:
  codeexec::mcp::ServerOptions complete(codeexec::mcp::ServerOptions options) {
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
  void add(codeexec::mcp::Tool each) {
    const auto added = server_.add(std::move(each));
    REQUIRE_MESSAGE(added, added.error().message);
  }

  Pipe to_ = {};
  Pipe from_ = {};
  std::mutex log_mutex_ = {};
  Lines log_ = {};
  codeexec::mcp::Server server_;
  support::LineReader lines_{patience_ms};
  codeexec::Expected<void> result_ = {};
  std::mutex ended_mutex_ = {};
  std::condition_variable ended_changed_ = {};
  bool ended_ = false;
  std::thread thread_ = {};
};

inline std::int64_t code_of(const codeexec::Json& reply) {
  return reply["error"]["code"].as_integer();
}

inline std::string text_of(const codeexec::Json& reply) {
  return reply["result"]["content"][0]["text"].as_string();
}

inline bool is_failure(const codeexec::Json& reply) { return reply["result"]["isError"].as_bool(); }

inline const std::string modern_meta = R"({"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
                                       R"("io.modelcontextprotocol/clientCapabilities":{}})";

inline std::string modern(const std::string& id, const std::string& method,
                          const std::string& members = "", const std::string& meta = modern_meta) {
  return R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":")" + method + R"(","params":{)" +
         members + (members.empty() ? "" : ",") + R"("_meta":)" + meta + "}}";
}

}  // namespace support

#endif  // CODEEXEC_TESTS_UNIT_MCP_HELPERS_HPP
