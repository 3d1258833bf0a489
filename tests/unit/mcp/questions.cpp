// What handlers ask the person at the client: in the 2025 revisions by a request of the server's,
// in 2026-07-28 by a result that the client answers with a second request.
#include "../../helpers/json_support.hpp"
#include "helpers.hpp"

#include <cerrno>

using codeexec::Json;
using codeexec::mcp::Call;
using codeexec::mcp::ParameterType;
using codeexec::mcp::ToolResult;
using support::code_of;
using support::modern;
using support::parameter;
using support::parsed;
using support::Talk;
using support::text_of;

namespace {

constexpr int patience_ms = support::patience_ms;

const char* const schema =
    R"({"type":"object","properties":{"sure":{"type":"boolean"}},"required":["sure"]})";

const std::string asking_meta =
    R"({"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
    R"("io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}})";

// What elicit() gives, as a text.
std::string said(const codeexec::Expected<Json>& answer) {
  if (answer) return answer->dump();
  return std::string(codeexec::name(answer.error().code)) + " " +
         std::to_string(answer.error().system_error) + " " + answer.error().message;
}

// A client and a server whose tool `ask` asks `times` times, for `timeout` ms each.
class Asked {
 public:
  explicit Asked(codeexec::mcp::ServerOptions options = {})
      : talk({support::tool("ask", [this](const Call& call) { return ask(call); },
                            {parameter("times", ParameterType::integer),
                             parameter("timeout", ParameterType::integer),
                             parameter("message", ParameterType::string),
                             parameter("schema", ParameterType::object)})},
             std::move(options)) {}

  Json initialize(const std::string& version, const std::string& capabilities) {
    return talk.ask(
        R"({"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":")" +
        version + R"(","capabilities":)" + capabilities + "}}");
  }

  // The request to the client that a call leads to. Its id is kept.
  Json question(const std::string& id = "1", const std::string& arguments = "{}") {
    Json asked = talk.ask(Talk::call_line(id, "ask", arguments));
    CHECK(asked["method"] == Json("elicitation/create"));
    asked_id = asked["id"].dump();
    return asked;
  }

  void answer(const std::string& members) {
    talk.send(R"({"jsonrpc":"2.0","id":)" + asked_id + "," + members + "}");
  }

  // The result that asks, of a request in the modern era.
  Json required(const std::string& id, const std::string& members = R"("arguments":{})",
                const std::string& meta = asking_meta) {
    const Json asked =
        talk.ask(modern(id, "tools/call", R"("name":"ask",)" + members, meta))["result"];
    CHECK(asked["resultType"] == Json("input_required"));
    state = asked["requestState"].dump();
    return asked;
  }

  // The members of a retry with this answer.
  std::string retry(const std::string& answer, const std::string& arguments = "{}") const {
    return R"("name":"ask","arguments":)" + arguments +
           R"(,"inputResponses":{"more":1,"question":)" + answer + R"(},"requestState":)" + state;
  }

  std::string last() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return last_;
  }
  bool wait_until_said(const std::string& part) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, std::chrono::milliseconds(patience_ms),
                             [&] { return last_.find(part) != std::string::npos; });
  }

 private:
  ToolResult ask(const Call& call) {
    std::string text;
    const std::int64_t times = call.argument("times").as_integer(1);
    const Json& message = call.argument("message");
    const Json& other = call.argument("schema");
    for (std::int64_t i = 0; i < times; ++i) {
      const auto answer =
          call.elicit(message.is_string() ? message.as_string() : "Go \xff on?",
                      other.is_object() ? other : *Json::parse(schema),
                      std::chrono::milliseconds(call.argument("timeout").as_integer(patience_ms)));
      text += said(answer) + (call.cancel_token().cancelled() ? " cancelled" : "");
      call.progress(static_cast<double>(i) + 1);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    last_ = text;
    changed_.notify_all();
    return ToolResult::text(text);
  }

  std::mutex mutex_ = {};
  std::condition_variable changed_ = {};
  std::string last_ = {};

 public:
  std::string asked_id = {};
  std::string state = {};  // JSON
  Talk talk;
};

const char* const accepted = R"({"action":"accept","content":{"sure":true}})";

}  // namespace

TEST_CASE("a person is asked by a request, and the handler waits for the answer") {
  for (const char* version : {"2025-06-18", "2025-11-25"}) {
    CAPTURE(version);
    Asked asked;
    asked.initialize(version, R"({"elicitation":{}})");
    const Json question = asked.question();
    CHECK(question["params"] ==
          parsed(R"({"message":"Go \ufffd on?","requestedSchema":)" + std::string(schema) + "}"));
    asked.answer(R"("result":)" + std::string(accepted));
    Json reply = asked.talk.receive();
    CHECK(reply["id"] == Json(1));
    CHECK(text_of(reply) == accepted);
    for (const char* action : {"decline", "cancel"}) {
      CHECK(asked.question("2")["id"] != question["id"]);
      asked.answer(R"("result":{"action":")" + std::string(action) + R"(","content":{"sure":1}})");
      CHECK(text_of(asked.talk.receive()) == R"({"action":")" + std::string(action) + "\"}");
    }
  }
}

TEST_CASE("a client that does not offer it is not asked") {
  const auto refusal = [](const char* version, const char* capabilities) {
    Asked asked;
    asked.initialize(version, capabilities);
    return text_of(asked.talk.call("ask")).substr(0, 13);
  };
  CHECK(refusal("2025-06-18", "{}") == "unsupported 0");
  CHECK(refusal("2025-06-18", R"({"elicitation":true})") == "unsupported 0");
  CHECK(refusal("2025-11-25", R"({"elicitation":{"url":{}}})") == "unsupported 0");
  CHECK(refusal("2025-03-26", R"({"elicitation":{}})") == "unsupported 0");
  CHECK(refusal("2024-11-05", R"({"elicitation":{}})") == "unsupported 0");
  Asked asked;
  asked.initialize("2025-11-25", R"({"elicitation":{}})");
  // The envelope alone matters.
  CHECK(text_of(asked.talk.ask(modern("1", "tools/call", R"("name":"ask")"))).substr(0, 13) ==
        "unsupported 0");
  asked.initialize("2025-06-18", "{}");
  CHECK(text_of(asked.talk.call("ask")).substr(0, 13) == "unsupported 0");
}

TEST_CASE("answers of another shape are errors for the handler, and others are ignored") {
  Asked asked;
  asked.initialize("2025-11-25", R"({"elicitation":{"form":{},"url":{}}})");
  for (const char* answer :
       {R"("result":{})", R"("result":[])", R"("result":{"action":"maybe"})", R"("error":7)",
        R"("result":{"action":"accept"})", R"("result":{"action":"accept","content":[]})",
        R"("result":{"action":"accept","content":{}})",
        R"("result":{"action":"accept","content":{"sure":"yes"}})",
        R"("error":{"code":-1,"message":"nobody is here"})"}) {
    CAPTURE(answer);
    asked.question();
    asked.talk.send(R"({"jsonrpc":"2.0","id":99999,"result":{"action":"accept"}})");
    asked.talk.send(R"({"jsonrpc":"2.0","id":")" + asked.asked_id + R"(","result":{}})");
    asked.talk.send(R"({"jsonrpc":"2.0","result":{"action":"accept","content":{"sure":true}}})");
    asked.talk.send(R"({"jsonrpc":"2.0","id":null,"error":{}})");
    asked.answer(answer);
    asked.answer(R"("result":)" + std::string(accepted));  // too late
    const std::string text = text_of(asked.talk.receive());
    CHECK(text.substr(0, 8) == "parse 0 ");
    if (std::string(answer).find("nobody") != std::string::npos)
      CHECK(text.find("nobody is here") != std::string::npos);
  }
  asked.talk.check_silent();
}

TEST_CASE("a question that cannot be sent is refused") {
  codeexec::mcp::ServerOptions options;
  options.max_reply = 8192;
  Asked asked(options);
  asked.initialize("2025-11-25", R"({"elicitation":{}})");
  const std::string longest(8000, 'x');
  std::string deep = "1";
  for (int i = 0; i < 80; ++i) deep = R"({"x":)" + deep + "}";
  for (const std::string& arguments :
       {R"({"message":")" + longest + "\"}", std::string(R"({"schema":{}})"),
        std::string(R"({"schema":{"type":"string"}})"),
        R"({"schema":{"type":"object","properties":)" + deep + "}}"})
    CHECK(text_of(asked.talk.call("ask", arguments)).substr(0, 18) == "invalid_argument 0");
}

TEST_CASE("an unanswered question ends with its time, and the client is told") {
  Asked asked;
  asked.initialize("2025-11-25", R"({"elicitation":{}})");
  const Json question = asked.question("1", R"({"timeout":20})");
  const Json cancelled = asked.talk.receive();
  CHECK(cancelled["method"] == Json("notifications/cancelled"));
  CHECK(cancelled["params"]["requestId"] == question["id"]);
  CHECK(text_of(asked.talk.receive()).find("limit " + std::to_string(ETIMEDOUT)) == 0);
  asked.answer(R"("result":)" + std::string(accepted));
  asked.talk.check_silent();
}

TEST_CASE("a call that is cancelled asks no longer") {
  Asked asked;
  asked.initialize("2025-11-25", R"({"elicitation":{}})");
  const Json question = asked.question();
  asked.talk.cancel("1");
  CHECK(asked.talk.receive()["params"]["requestId"] == question["id"]);
  CHECK(asked.wait_until_said("io " + std::to_string(ECANCELED)));
  asked.talk.check_silent();
}

TEST_CASE("the end of the input is the end of all questions") {
  Asked asked;
  asked.initialize("2025-11-25", R"({"elicitation":{}})");
  asked.question("1", R"({"times":2})");
  asked.required("2");
  const std::vector<Json> last = asked.talk.finish();
  REQUIRE(!last.empty());
  CHECK(text_of(last.back()).find("io " + std::to_string(ECANCELED)) == 0);
  for (const Json& message : last) CHECK(message["id"] != Json(2));  // it was answered
}

TEST_CASE("a session that is stopped waits for no person") {
  Asked asked;
  asked.initialize("2025-11-25", R"({"elicitation":{}})");
  asked.question();
  asked.talk.stop.cancel();
  CHECK(asked.talk.wait());
  CHECK(asked.last().find("io " + std::to_string(ECANCELED)) == 0);
}

TEST_CASE("other calls go on while a person is asked, also after a short call") {
  codeexec::mcp::ServerOptions options;
  options.max_concurrent = 1;
  Asked asked(options);
  asked.initialize("2025-11-25", R"({"elicitation":{}})");
  CHECK(text_of(asked.talk.call("ask", R"({"times":0})")).empty());  // now it counts as short
  asked.question();
  for (int i = 0; i < 3; ++i)
    CHECK(text_of(asked.talk.call("echo", R"({"text":"meanwhile"})")) == "meanwhile");
  asked.answer(R"("result":)" + std::string(accepted));
  CHECK(text_of(asked.talk.receive()) == accepted);
  CHECK(text_of(asked.talk.call("echo", R"({"text":"later"})")) == "later");
}

TEST_CASE("questions are bounded in number") {
  Asked asked;
  asked.initialize("2025-11-25", R"({"elicitation":{}})");
  for (int i = 0; i < 16; ++i) asked.question(std::to_string(i));
  const std::string seventeenth = text_of(asked.talk.call("ask"));
  CHECK(seventeenth.find("limit 0") == 0);
  asked.answer(R"("result":{"action":"decline"})");
  CHECK(asked.talk.receive()["id"] == Json(15));
  asked.question("16");
}

TEST_CASE("in 2026-07-28 a result asks, and a second request has the answer and gets the result") {
  Asked asked;
  const Json first = asked.required("1");
  CHECK(first["inputRequests"] ==
        parsed(R"({"question":{"method":"elicitation/create","params":{"message":"Go \ufffd on?",)"
               R"("requestedSchema":)" +
               std::string(schema) + "}}}"));
  CHECK(first["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == Json("codeexec"));
  CHECK(first["requestState"].as_string().size() == 32);
  // The first id is free, and the call has no other.
  CHECK(asked.talk.ask(modern("1", "tools/list")).find("result"));
  const std::string answer = asked.retry(accepted);
  const Json reply = asked.talk.ask(modern("\"r\"", "tools/call", answer));
  CHECK(reply["id"] == Json("r"));
  CHECK(reply["result"]["resultType"] == Json("complete"));
  CHECK(text_of(reply) == accepted);
  // A requestState is good for one answer.
  CHECK(code_of(asked.talk.ask(modern("3", "tools/call", answer))) == -32602);
  const Json second = asked.required("4");
  CHECK(second["requestState"] != first["requestState"]);
}

TEST_CASE("a requestState belongs to its call") {
  Asked asked;
  asked.initialize("2025-11-25", R"({"elicitation":{}})");
  asked.question("1");
  asked.required("2", R"("arguments":{"times":1})");
  const std::string right = asked.state;
  const auto refused = [&](const std::string& state, const std::string& arguments) {
    asked.state = state;
    return code_of(asked.talk.ask(modern("3", "tools/call", asked.retry(accepted, arguments)))) ==
           -32602;
  };
  for (const std::string& state :
       {std::string("\"\""), std::string("null"), std::string("7"), std::string("\"x\""),
        asked.asked_id, "\"" + asked.asked_id + "\"", std::string("{}")}) {
    CAPTURE(state);
    CHECK(refused(state, R"({"times":1})"));
  }
  CHECK(refused(right, "{}"));
  CHECK(refused(right, R"({"times":2})"));
  // Nor is it the id of a request.
  asked.talk.send(R"({"jsonrpc":"2.0","id":)" + right + R"(,"result":)" + accepted + "}");
  asked.state = right;
  CHECK(text_of(asked.talk.ask(
            modern("3", "tools/call", asked.retry(accepted, R"({"times":1})")))) == accepted);
}

TEST_CASE("a retry without the answer is asked again, and several questions take several retries") {
  Asked asked;
  const std::string arguments = R"({"times":2})";
  asked.required("1", R"("arguments":)" + arguments);
  const std::string state = asked.state;
  for (const char* members : {"", R"(,"inputResponses":{})", R"(,"inputResponses":{"other":1})",
                              R"(,"inputResponses":7)"}) {
    asked.required("2", R"("arguments":)" + arguments + R"(,"requestState":)" + state + members);
    CHECK(asked.state == state);
  }
  const Json next =
      asked.talk.ask(modern("3", "tools/call", asked.retry(accepted, arguments)))["result"];
  REQUIRE(next["resultType"] == Json("input_required"));
  CHECK(next["requestState"].dump() != state);
  asked.state = next["requestState"].dump();
  const std::string wrong =
      text_of(asked.talk.ask(modern("4", "tools/call", asked.retry(R"({"action":7})", arguments))));
  CHECK(wrong.find(std::string(accepted) + "parse 0") == 0);
}

TEST_CASE("after a retry the call is that request: its progress, its cancellation") {
  Asked asked;
  const auto meta = [](const char* token) {
    return asking_meta.substr(0, asking_meta.size() - 1) + R"(,"progressToken":)" + token + "}";
  };
  asked.required("1", R"("arguments":{"times":2})", meta("\"a\""));
  asked.talk.send(
      modern("2", "tools/call", asked.retry(accepted, R"({"times":2})"), meta("\"b\"")));
  CHECK(asked.talk.receive()["params"]["progressToken"] == Json("b"));
  asked.state = asked.talk.receive()["result"]["requestState"].dump();
  asked.talk.cancel("2");  // it was answered
  asked.talk.cancel("[]");
  CHECK(
      text_of(asked.talk.ask(modern("3", "tools/call", asked.retry(accepted, R"({"times":2})")))) ==
      std::string(accepted) + accepted);
}

TEST_CASE("a call whose client does not come back is cancelled") {
  Asked asked;
  asked.required("1", R"("arguments":{"timeout":20})");
  CHECK(asked.wait_until_said("limit " + std::to_string(ETIMEDOUT)));
  CHECK(asked.last().find(" cancelled") != std::string::npos);
  CHECK(code_of(asked.talk.ask(
            modern("2", "tools/call", asked.retry(accepted, R"({"timeout":20})")))) == -32602);
  asked.talk.check_silent();
}
