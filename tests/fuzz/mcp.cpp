// A whole conversation with mcp::Server, of any bytes in any pieces. Each line that it says is a
// message; each request has one reply with its id, but for those that were cancelled; nothing is
// said to notifications; it ends with its input, and leaves no thread and no descriptor.
//                                                          sh tests/fuzz/run.sh [seconds] mcp
//   The first two bytes of an input choose sizes. Then come lines as a client sends them, or
// shorter ones that stand for such:
//   !init VERSION   !ping ID   !list ID   !call ID TOOL ARGUMENTS   !run ID TOKEN TOOL ARGUMENTS
//   !cancel ID   !discover ID   !listen ID   !new ID TOOL ARGUMENTS      ![ and !]: a batch
//   !answer ID RESULT   !again ID STATE TOOL ARGUMENTS   !task METHOD ID TASK   !level ID LEVEL
// Questions of the server's have the ids 1, 2 and so on.
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <thread>

#include "fuzz.hpp"

namespace {

using codeexec::Json;
using codeexec::UniqueFd;
namespace mcp = codeexec::mcp;
using Clock = std::chrono::steady_clock;

constexpr std::size_t longest_line = 2000;
constexpr std::size_t longest_input = 6000;
constexpr std::size_t longest_conversation = 60000;
constexpr std::size_t longest_reply = 65536;
constexpr std::size_t most_in_batch = longest_reply / 4096;
constexpr std::size_t longest_id = 1024;

// What the calls do -------------------------------------------------------------------------------

void add(mcp::Server& server, const char* name, std::vector<mcp::Parameter> parameters,
         codeexec::Function<mcp::ToolResult(const mcp::Call&)> handler) {
  mcp::Tool tool;
  tool.name = name;
  tool.parameters = std::move(parameters);
  tool.handler = std::move(handler);
  EXPECT(server.add(std::move(tool)));
}

mcp::Parameter parameter(const char* name, mcp::ParameterType type) {
  mcp::Parameter made;
  made.name = name;
  made.type = type;
  return made;
}

void add_tools(mcp::Server& server) {
  mcp::Parameter times = parameter("times", mcp::ParameterType::integer);
  times.minimum = 0;
  times.maximum = 3000;
  add(server, "echo", {parameter("text", mcp::ParameterType::string), times},
      [](const mcp::Call& call) {
        std::string text;
        for (auto left = call.argument("times").as_integer(1); left > 0; --left)
          text += call.argument("text").as_string();
        return mcp::ToolResult::text(text);
      });
  add(server, "whole", {},
      [](const mcp::Call& call) { return mcp::ToolResult::with_structured(call.arguments()); });
  add(server, "refuse", {}, [](const mcp::Call& call) {
    mcp::ToolResult result;
    mcp::RpcError& error = result.rpc_error.emplace();
    error.code = -32000;
    error.message = call.arguments().dump();
    error.data = call.arguments();
    return result;
  });
  add(server, "steps", {parameter("message", mcp::ParameterType::string)},
      [](const mcp::Call& call) {
        for (int i = 1; i <= 3; ++i) call.progress(i, 3.0, call.argument("message").as_string());
        return mcp::ToolResult::error("done");
      });
  // For what a conversation that has been sent already can hold as the answer.
  add(server, "ask", {}, [](const mcp::Call& call) {
    const Json schema = *Json::parse(R"({"type":"object","properties":{"a":{"type":"integer"}}})");
    const auto answer = call.elicit("a?", schema, std::chrono::milliseconds(3));
    call.announcer()("fuzz://a", call.arguments());
    return mcp::ToolResult::text(answer ? answer->dump() : answer.error().message);
  });
  // Until it is cancelled, or for some milliseconds.
  add(server, "wait", {}, [](const mcp::Call& call) {
    call.progress(1);
    pollfd cancelled = {call.cancel_token().descriptor(), POLLIN, 0};
    ::poll(&cancelled, 1, 3);
    return mcp::ToolResult::text("waited");
  });
}

// What is sent ------------------------------------------------------------------------------------

std::string_view take_word(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

std::string request(std::string_view id, const char* method, const std::string& params) {
  return "{\"jsonrpc\":\"2.0\",\"id\":" + std::string(id) + ",\"method\":\"" + method +
         "\",\"params\":{" + params + "}}";
}

constexpr const char* modern =
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
    "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"f\",\"version\":\"1\"},"
    "\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{},"
    "\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}}";

std::string call_of(std::string_view tool, std::string_view arguments) {
  return "\"name\":\"" + std::string(tool) + "\",\"arguments\":" + std::string(arguments);
}

// The message that a short line stands for.
std::string spelled_out(std::string_view line) {
  const std::string_view order = take_word(line);
  if (order == "init") {
    return request("0", "initialize",
                   "\"protocolVersion\":\"" + std::string(line) +
                       "\",\"capabilities\":{\"elicitation\":{}},\"clientInfo\":{\"name\":\"f\","
                       "\"version\":\"1\"}");
  }
  if (order == "cancel")
    return "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
           "cancelled\",\"params\":{\"requestId\":" +
           std::string(line) + "}}";
  if (order == "task") {
    const std::string method = "tasks/" + std::string(take_word(line));
    const std::string_view id = take_word(line);
    return request(id, method.c_str(), std::string(modern) + ",\"taskId\":" + std::string(line));
  }
  const std::string_view id = take_word(line);
  if (order == "answer")
    return "{\"jsonrpc\":\"2.0\",\"id\":" + std::string(id) + ",\"result\":" + std::string(line) +
           "}";
  if (order == "level") return request(id, "logging/setLevel", "\"level\":" + std::string(line));
  if (order == "again") {
    const std::string state(take_word(line));
    const std::string_view asked = take_word(line);
    return request(id, "tools/call",
                   call_of(asked, line) + "," + std::string(modern) + ",\"requestState\":" + state +
                       ",\"inputResponses\":{\"question\":{\"action\":\"cancel\"}}");
  }
  if (order == "ping") return request(id, "ping", "");
  if (order == "list") return request(id, "tools/list", "");
  if (order == "discover") return request(id, "server/discover", modern);
  if (order == "listen")
    return request(
        id, "subscriptions/listen",
        std::string(modern) +
            ",\"notifications\":{\"resourceSubscriptions\":[\"fuzz://a\",\"fuzz://b\"]}");
  if (order == "run") {
    const std::string token(take_word(line));
    const std::string_view tool = take_word(line);
    return request(id, "tools/call",
                   call_of(tool, line) + ",\"_meta\":{\"progressToken\":" + token + "}");
  }
  const std::string_view tool = take_word(line);
  if (order == "call") return request(id, "tools/call", call_of(tool, line));
  if (order == "new")
    return request(id, "tools/call", call_of(tool, line) + "," + std::string(modern));
  return std::string(line);
}

std::vector<std::string> lines_of(std::string_view input) {
  std::vector<std::string> lines;
  bool in_batch = false;
  while (!input.empty()) {
    const std::size_t end = std::min(input.find('\n'), input.size());
    std::string_view line = input.substr(0, end);
    input.remove_prefix(std::min(end + 1, input.size()));
    const bool is_order = !line.empty() && line[0] == '!';
    if (line == "![" && !in_batch) {
      in_batch = true;
      lines.emplace_back("[");
      continue;
    }
    if (line == "!]" && in_batch) {
      in_batch = false;
      lines.back() += ']';
      continue;
    }
    std::string message = is_order ? spelled_out(line.substr(1)) : std::string(line);
    if (!in_batch)
      lines.push_back(std::move(message));
    else
      lines.back() += (lines.back().size() > 1 ? "," : "") + message;
  }
  return lines;
}

// What is to be said ------------------------------------------------------------------------------

// The id as both spell it, or nothing when it cannot be one.
std::string key_of(const Json* id) {
  if (!id || id->has_lone_surrogate()) return {};
  if (id->is_integer()) return std::to_string(id->as_integer());
  const bool is_whole = id->is_number() && std::floor(id->as_number()) == id->as_number();
  return is_whole || id->is_string() ? id->dump() : "";
}

// Follows the client's side and tells what the server owes it.
class Ledger {
 public:
  struct Due {
    std::size_t requests = 0;
    std::size_t excused = 0;      // may stay without a reply
    bool may_be_refused = false;  // by an error like that for what is no request
    std::set<std::string> tokens = {};
  };

  void add(std::string_view line) {
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
    const auto message = line.size() > longest_line ? Json::parse("") : Json::parse(line);
    if (!message) {
      ++oddities_;
    } else if (!message->is_array()) {
      add_message(*message, false);
    } else if (batching_ && message->size() > 0) {
      ++batches_;
      for (const Json& each : message->items()) add_message(each, true);
      // With too many in it, it is refused as one.
      vague_ = vague_ || message->size() > most_in_batch;
    } else {
      ++oddities_;
    }
  }

  const std::map<std::string, Due>& due() const { return due_; }
  std::size_t oddities() const { return oddities_; }  // lines that may be answered by an error
  std::size_t batches() const { return batches_; }
  bool vague() const { return vague_; }  // then not everything is known

 private:
  void add_message(const Json& message, bool in_batch) {
    if (!message.is_object()) {
      ++oddities_;
      return;
    }
    const Json* const id = message.find("id");
    const Json* const method = message.find("method");
    const bool is_response = !method && (message.find("result") || message.find("error"));
    if (is_response) return;
    const bool has_version =
        message["jsonrpc"].is_string() && message["jsonrpc"].as_string() == "2.0";
    if (!id && method && method->is_string()) {
      if (has_version && method->as_string() == "notifications/cancelled")
        excuse(key_of(message["params"].find("requestId")));
      return;
    }
    const std::string key = key_of(id);
    if (key.empty() || key.size() > longest_id || !has_version || !method || !method->is_string()) {
      ++oddities_;
      return;
    }
    Due& due = due_[key];
    ++due.requests;
    due.may_be_refused = in_batch || due.requests > 1;
    due.tokens.insert(key_of(message["params"]["_meta"].find("progressToken")));
    const Json& version = message["params"]["protocolVersion"];
    const bool is_new = message["params"]["_meta"].find("io.modelcontextprotocol/protocolVersion");
    if (method->as_string() == "initialize" && !in_batch && !is_new && version.is_string() &&
        message["params"].is_object())
      add_initialize(key, version.as_string());
  }

  // With an id that may be in use it may be refused; then nothing is known of batches.
  void add_initialize(const std::string& key, const std::string& version) {
    vague_ = vague_ || due_[key].requests > 1;
    batching_ = version == "2025-03-26";
  }

  void excuse(const std::string& key) {
    const auto found = due_.find(key);
    if (found != due_.end()) found->second.excused = found->second.requests;
  }

  std::map<std::string, Due> due_ = {};
  std::size_t oddities_ = 0;
  std::size_t batches_ = 0;
  bool batching_ = false;
  bool vague_ = false;
};

// Takes the server's side, and ends the program when something in it is wrong.
class Auditor {
 public:
  Auditor(const Ledger& ledger, std::string_view conversation)
      : ledger_(ledger), conversation_(conversation) {}

  void read(std::string_view said) {
    EXPECT_WITH(said.empty() || said.back() == '\n', conversation_);
    while (!said.empty()) {
      const std::size_t end = said.find('\n');
      const auto line = Json::parse(said.substr(0, end));
      EXPECT_WITH(line.has_value(), conversation_);
      said.remove_prefix(end + 1);
      if (!line->is_array()) {
        read_message(*line);
        continue;
      }
      EXPECT_WITH(line->size() > 0 && ++batches_ <= ledger_.batches(), conversation_);
      for (const Json& each : line->items()) {
        EXPECT_WITH(!each.find("method"), conversation_);
        read_message(each);
      }
    }
    expect_no_more_than_due();
  }

  // Nothing is left to be said.
  void expect_whole() {
    for (const auto& [key, due] : ledger_.due())
      EXPECT_WITH(replies_[key] + errors_[key] + due.excused >= due.requests, conversation_);
  }

 private:
  // What is no request may be answered by an error, and that may have found an id in it.
  void expect_no_more_than_due() {
    std::size_t errors = 0;
    for (const auto& [key, count] : errors_) {
      const auto due = ledger_.due().find(key);
      const bool counts = due != ledger_.due().end() && due->second.may_be_refused;
      errors += count - std::min(count, counts ? due->second.requests - replies_[key] : 0);
    }
    EXPECT_WITH(errors <= ledger_.oddities() || ledger_.vague(), conversation_);
  }

  void read_message(const Json& message) {
    EXPECT_WITH(message["jsonrpc"].as_string() == "2.0", conversation_);
    if (const Json* method = message.find("method"))
      return read_notification(method->as_string(), message);
    const Json* const error = message.find("error");
    EXPECT_WITH((error != nullptr) != (message.find("result") != nullptr), conversation_);
    const std::int64_t code = error ? (*error)["code"].as_integer() : 0;
    EXPECT_WITH(!error || (code != 0 && (*error)["message"].is_string()), conversation_);
    const Json* const id = message.find("id");
    const std::string key = key_of(id);
    EXPECT_WITH(!id || !key.empty(), conversation_);
    if (code == -32700 || code == -32600) {
      ++errors_[key];
      return;
    }
    const auto due = ledger_.due().find(key);
    EXPECT_WITH(due != ledger_.due().end(), conversation_);
    EXPECT_WITH(++replies_[key] <= due->second.requests, conversation_);
  }

  void read_notification(const std::string& method, const Json& message) {
    // A request of the server's, each with an id of its own.
    if (method == "elicitation/create") {
      EXPECT_WITH(message["id"].is_integer(), conversation_);
      EXPECT_WITH(asked_.insert(message["id"].as_integer()).second, conversation_);
      return;
    }
    EXPECT_WITH(!message.find("id"), conversation_);
    const Json& params = message["params"];
    if (method == "notifications/subscriptions/acknowledged") return;
    if (method == "notifications/resources/updated") {
      EXPECT_WITH(params["uri"].as_string() == "fuzz://a", conversation_);
      return;
    }
    if (method == "notifications/message") {
      EXPECT_WITH(params["level"].as_string() == "info" && params.find("data"), conversation_);
      return;
    }
    if (method == "notifications/cancelled") {
      EXPECT_WITH(asked_.count(params["requestId"].as_integer()) == 1, conversation_);
      return;
    }
    EXPECT_WITH(method == "notifications/progress", conversation_);
    const std::string token = key_of(message["params"].find("progressToken"));
    bool is_open = false;
    for (const auto& [key, due] : ledger_.due())
      is_open = is_open || (due.tokens.count(token) > 0 && replies_[key] < due.requests);
    EXPECT_WITH(!token.empty() && is_open, conversation_);
  }

  const Ledger& ledger_;
  std::string_view conversation_;
  std::map<std::string, std::size_t> replies_ = {};
  std::map<std::string, std::size_t> errors_ = {};  // for what was not understood
  std::set<std::int64_t> asked_ = {};               // ids of the server's own requests
  std::size_t batches_ = 0;
};

// The conversation --------------------------------------------------------------------------------

std::size_t entries_in(const char* path) {
  std::size_t entries = 0;
  DIR* directory = ::opendir(path);
  EXPECT(directory);
  while (::readdir(directory)) ++entries;
  ::closedir(directory);
  return entries;
}

// A thread that was joined may be listed for a moment longer.
bool comes_down_to(const char* path, std::size_t entries) {
  for (int i = 0; i < 10000; ++i) {
    if (entries_in(path) <= entries) return true;
    std::this_thread::yield();
  }
  return false;
}

// Each piece is what one read of the server's gets.
UniqueFd sent(std::string_view bytes, std::size_t size) {
  int ends[2];
  EXPECT(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
  const UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, size);
    const ssize_t count = ::send(ours.get(), piece.data(), piece.size(), MSG_DONTWAIT);
    EXPECT(count == static_cast<ssize_t>(piece.size()));
    bytes.remove_prefix(piece.size());
  }
  return theirs;
}

}  // namespace

void fuzz::mcp(std::string_view input) {
  Bytes bytes(input.substr(0, longest_input));
  constexpr std::size_t sizes[] = {longest_input * 4, 1, 2, 7, 16, 64, 300, 1000};
  const std::size_t modes = bytes.byte();
  const std::size_t size = sizes[modes % 8];
  const bool goes_away = modes / 8 % 8 == 7;  // the client does, in the middle
  const bool small_pipe = modes >= 128;
  const std::size_t concurrent = 1 + bytes.below(4);
  std::string conversation;
  Ledger ledger;
  for (const std::string& line : lines_of(bytes.rest())) {
    if (conversation.size() + line.size() > longest_conversation) break;
    ledger.add(conversation.empty() && line.compare(0, 3, "\xef\xbb\xbf") == 0
                   ? std::string_view(line).substr(3)
                   : std::string_view(line));
    conversation += line + '\n';
  }
  if (modes / 64 % 2 == 1 && !conversation.empty()) conversation.pop_back();

  // A socket holds no more than so many pieces.
  constexpr std::size_t most_pieces = 100;
  const UniqueFd in = sent(conversation, std::max(size, conversation.size() / most_pieces + 1));
  int ends[2];
  EXPECT(::pipe2(ends, O_CLOEXEC) == 0);
  UniqueFd ours(ends[0]);
  UniqueFd out(ends[1]);
  if (small_pipe) ::fcntl(out.get(), F_SETPIPE_SZ, 4096);
  const std::size_t threads = entries_in("/proc/self/task");
  const std::size_t descriptors = entries_in("/proc/self/fd");

  std::string said;
  std::thread client([&] {
    char buffer[65536];
    for (;;) {
      const ssize_t count = ::read(ours.get(), buffer, sizeof buffer);
      if (count <= 0) break;
      said.append(buffer, static_cast<std::size_t>(count));
      if (goes_away) break;
    }
    if (goes_away) ours.reset();
  });
  const Clock::time_point start = Clock::now();
  bool ended = false;
  {
    codeexec::mcp::ServerOptions options;
    options.in_fd = in.get();
    options.out_fd = out.get();
    options.max_line = longest_line;
    options.max_reply = longest_reply;
    options.max_queued = longest_reply;
    options.max_concurrent = concurrent;
    options.max_waiting = 8;
    options.announced = "fuzz://";
    options.log = [](std::string_view line) { EXPECT(line.find('\n') == std::string_view::npos); };
    codeexec::mcp::Server server(options);
    add_tools(server);
    const auto served = server.serve();
    ended = served.has_value();
    EXPECT_WITH(served || served.error().code == codeexec::ErrorCode::limit, conversation);
  }
  const auto time = Clock::now() - start;
  out.reset();
  client.join();

  // On a machine that has no time it may not have waited for its calls, nor for its threads, for
  // which it has 300 and 100 milliseconds.
  EXPECT_WITH(ended || time >= std::chrono::milliseconds(100), conversation);
  const bool in_time = ended && time < std::chrono::milliseconds(250);
  Auditor auditor(ledger, conversation);
  if (goes_away) return;
  auditor.read(said);
  if (!in_time) return;
  if (!ledger.vague()) auditor.expect_whole();
  EXPECT_WITH(comes_down_to("/proc/self/task", threads), conversation);
  EXPECT_WITH(entries_in("/proc/self/fd") <= descriptors, conversation);
}
