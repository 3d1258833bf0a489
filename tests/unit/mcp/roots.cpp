// The roots of the client: when it is asked, what handlers get, what a client does wrong.
#include "../../helpers/json_support.hpp"
#include "helpers.hpp"

#include <cerrno>

using codeexec::Json;
using codeexec::mcp::Call;
using codeexec::mcp::ParameterType;
using codeexec::mcp::ToolResult;
using support::modern;
using support::parameter;
using support::parsed;
using support::Talk;
using support::text_of;

namespace {

constexpr int roots_patience_ms = support::patience_ms;

const std::string rooted_meta = R"({"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
                                R"("io.modelcontextprotocol/clientCapabilities":{"roots":{}}})";

// A client and a server whose tool `roots` gives what Call::roots() gives.
class Rooted {
 public:
  explicit Rooted(bool asks = true)
      : talk({support::tool(
                 "roots",
                 [this](const Call& call) {
                   const auto time = call.argument("timeout");
                   const auto roots = call.roots(std::chrono::milliseconds(
                       time.is_number() ? static_cast<int>(time.as_number()) : roots_patience_ms));
                   const std::lock_guard<std::mutex> lock(mutex_);
                   const bool same = roots && *roots == last_;
                   if (roots) last_ = *roots;
                   if (roots) return ToolResult::text((same ? "same " : "new ") + (*roots)->dump());
                   return ToolResult::text(std::string(codeexec::name(roots.error().code)) + " " +
                                           std::to_string(roots.error().system_error));
                 },
                 {parameter("timeout", ParameterType::integer)})},
             options(asks)) {}

  // Initializes, without the notification that it is.
  void initialize(const std::string& capabilities = R"({"roots":{"listChanged":true}})",
                  const std::string& version = "2025-06-18") {
    const Json reply = talk.ask(
        R"({"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":")" +
        version + R"(","capabilities":)" + capabilities + "}}");
    CHECK(reply["id"] == Json("init"));
  }
  void notify(const std::string& what) {
    talk.send(R"({"jsonrpc":"2.0","method":"notifications/)" + what + R"("})");
  }
  // The next message must be the question. Its id.
  std::string question() {
    const Json asked = talk.receive();
    CHECK(asked["method"] == Json("roots/list"));
    return asked["id"].dump();
  }
  void answer(const std::string& id, const std::string& members) {
    talk.send(R"({"jsonrpc":"2.0","id":)" + id + "," + members + "}");
  }
  void send_call(const std::string& id, int timeout = roots_patience_ms) {
    talk.send(Talk::call_line(id, "roots", R"({"timeout":)" + std::to_string(timeout) + "}"));
  }
  std::string call(int timeout = roots_patience_ms) {
    send_call("1", timeout);
    return text_of(talk.receive());
  }

 private:
  static codeexec::mcp::ServerOptions options(bool asks) {
    codeexec::mcp::ServerOptions made;
    made.ask_roots = asks;
    return made;
  }

  std::mutex mutex_ = {};
  std::shared_ptr<const Json> last_ = {};

 public:
  Talk talk;
};

const std::string one = R"("result":{"roots":[{"uri":"file:///a","name":"A"}]})";
const std::string one_list = R"([{"uri":"file:///a","name":"A"}])";
const std::string two = R"("result":{"roots":[{"uri":"file:///b"},{"uri":"file:///c"}]})";
const std::string two_list = R"([{"uri":"file:///b"},{"uri":"file:///c"}])";

}  // namespace

TEST_CASE("a client that offers its roots is asked in every revision but 2026-07-28") {
  for (const char* version : {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}) {
    CAPTURE(version);
    Rooted r;
    r.initialize(R"({"roots":{}})", version);
    r.talk.check_silent();  // not before it is initialized
    r.notify("initialized");
    r.answer(r.question(), one);
    CHECK(r.call() == "new " + one_list);
    CHECK(r.call() == "same " + one_list);
    r.notify("roots/list_changed");
    const std::string id = r.question();
    // A call waits for the new ones.
    r.send_call("7");
    r.answer(id, two);
    CHECK(text_of(r.talk.receive()) == "new " + two_list);
    CHECK(r.call() == "same " + two_list);
  }
}

TEST_CASE("no other client is asked") {
  for (const char* capabilities : {"{}", R"({"roots":null})", R"({"roots":true})", "[]"}) {
    CAPTURE(capabilities);
    Rooted r;
    r.initialize(capabilities);
    r.notify("initialized");
    r.notify("roots/list_changed");
    CHECK(r.call() == "unsupported 0");
    r.talk.check_silent();
  }
  Rooted asks_none(false);
  asks_none.initialize();
  asks_none.notify("initialized");
  CHECK(asks_none.call() == "unsupported 0");
  Rooted before;
  before.notify("roots/list_changed");
  before.notify("initialized");
  before.talk.check_silent();
}

TEST_CASE("a client that is silent is waited for once, and a late answer counts") {
  Rooted r;
  r.initialize();
  r.notify("initialized");
  const std::string id = r.question();
  CHECK(r.call(50) == "limit " + std::to_string(ETIMEDOUT));
  // The time counts from the question: the next call does not wait again.
  const auto start = support::Clock::now();
  CHECK(r.call(50) == "limit " + std::to_string(ETIMEDOUT));
  CHECK(support::seconds_since(start) < 20);
  r.answer(id, one);
  CHECK(r.call(50) == "new " + one_list);
  // Another answer to the same question is none.
  r.answer(id, two);
  CHECK(r.call(50) == "same " + one_list);
}

TEST_CASE("a client that calls before it says that it is initialized is asked by its call") {
  Rooted r;
  r.initialize();
  r.send_call("1");
  const std::string id = r.question();
  // Other calls and messages go on meanwhile.
  r.talk.check_silent();
  r.answer(id, one);
  CHECK(text_of(r.talk.receive()) == "new " + one_list);
}

TEST_CASE("an answer that is none") {
  for (const char* members :
       {R"("error":{"code":-32601,"message":"no"})", R"("result":{})", R"("result":{"roots":{}})",
        R"("result":{"roots":"file:///a"})", R"("result":null)", R"("result":[])"}) {
    CAPTURE(members);
    Rooted r;
    r.initialize();
    r.notify("initialized");
    r.answer(r.question(), members);
    CHECK(r.call() == "parse 0");
    // It may do better, and what it has named then stays.
    r.notify("roots/list_changed");
    r.answer(r.question(), one);
    CHECK(r.call() == "new " + one_list);
    r.notify("roots/list_changed");
    r.answer(r.question(), members);
    CHECK(r.call() == "same " + one_list);
  }
}

TEST_CASE("changes while a question is open are asked for once, after its answer") {
  Rooted r;
  r.initialize();
  r.notify("initialized");
  const std::string first = r.question();
  for (int i = 0; i < 1000; ++i) r.notify("roots/list_changed");
  r.talk.check_silent();
  r.send_call("7");
  r.answer(first, one);
  const std::string second = r.question();
  CHECK(second != first);
  r.answer(second, two);
  // The call has waited for the second.
  CHECK(text_of(r.talk.receive()) == "new " + two_list);
  r.talk.check_silent();
}

TEST_CASE("a list of any length is kept in part") {
  Rooted r;
  r.initialize();
  r.notify("initialized");
  std::string many = R"({"uri":"file:///)" + std::string(100000, 'x') + R"("},7,null,[])";
  for (int i = 0; i < 100000; ++i) many += R"(,{"uri":"file:///)" + std::to_string(i) + R"("})";
  r.answer(r.question(), R"("result":{"roots":[)" + many + "]}");
  const std::string told = r.call();
  REQUIRE(support::begins(told, "new [null,null,null,null,{"));
  const Json kept = parsed(told.substr(4));
  CHECK(kept.size() == 100);
  CHECK(kept[99]["uri"] == Json("file:///95"));
}

TEST_CASE("an empty list is an answer") {
  Rooted r;
  r.initialize();
  r.notify("initialized");
  r.answer(r.question(), R"("result":{"roots":[]})");
  CHECK(r.call() == "new []");
}

TEST_CASE("a client that leaves ends the waiting") {
  Rooted r;
  r.initialize();
  r.notify("initialized");
  (void)r.question();
  r.send_call("1");
  const std::vector<Json> rest = r.talk.finish();
  REQUIRE(rest.size() == 1);
  CHECK(text_of(rest[0]) == "io " + std::to_string(ECANCELED));
}

TEST_CASE("calls that wait for roots hold up no other call") {
  Rooted r;
  r.initialize();
  r.notify("initialized");
  const std::string id = r.question();
  constexpr int calls = 25;  // more than run at a time
  for (int i = 0; i < calls; ++i) r.send_call(std::to_string(i));
  CHECK(text_of(r.talk.call("echo", R"({"text":"x"})")) == "x");
  r.answer(id, one);
  for (int i = 0; i < calls; ++i) CHECK(support::ends(text_of(r.talk.receive()), one_list));
}

TEST_CASE("2026-07-28: the first call is answered with the question, and no other") {
  Rooted r;
  const auto call = [&](const std::string& id, const std::string& members = "") {
    return r.talk.ask(
        modern(id, "tools/call", R"("name":"roots","arguments":{})" + members, rooted_meta));
  };
  const Json asked = call("1")["result"];
  CHECK(asked["resultType"] == Json("input_required"));
  CHECK(asked["inputRequests"].dump() == R"({"question":{"method":"roots/list"}})");
  // Another call does not ask again, and waits for the answer to the first.
  r.talk.send(modern("2", "tools/call", R"("name":"roots","arguments":{})", rooted_meta));
  r.talk.check_silent();
  r.talk.send(modern("3", "tools/call",
                     R"("name":"roots","arguments":{},"inputResponses":{"question":)"
                     R"({"roots":[{"uri":"file:///a","name":"A"}]}},"requestState":)" +
                         asked["requestState"].dump(),
                     rooted_meta));
  std::set<std::string> ids;
  for (int i = 0; i < 2; ++i) {
    const Json reply = r.talk.receive();
    ids.insert(reply["id"].dump());
    CHECK(support::ends(text_of(reply), one_list));
  }
  CHECK(ids == std::set<std::string>{"2", "3"});
  CHECK(text_of(call("4")) == "same " + one_list);
  // A client that does not offer them is not asked.
  CHECK(text_of(r.talk.ask(modern("5", "tools/call", R"("name":"roots","arguments":{})"))) ==
        "unsupported 0");
}

TEST_CASE("2026-07-28: a client that never makes the call again does not hold up the others") {
  Rooted r;
  CHECK(r.talk.ask(modern("1", "tools/call", R"("name":"roots","arguments":{})",
                          rooted_meta))["result"]["resultType"] == Json("input_required"));
  CHECK(text_of(r.talk.ask(modern("2", "tools/call", R"("name":"roots","arguments":{"timeout":1})",
                                  rooted_meta))) == "limit " + std::to_string(ETIMEDOUT));
  // Its answer may be anything.
  CHECK(r.talk.finish().empty());
}
