// Batches, running calls, and progress.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <set>

#include "../../helpers/json_support.hpp"
#include "../../helpers/line_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Json;
using codeexec::mcp::Call;
using codeexec::mcp::ParameterType;
using codeexec::mcp::ServerOptions;
using codeexec::mcp::Tool;
using codeexec::mcp::ToolResult;
using support::Clock;
using support::code_of;
using support::Gate;
using support::has;
using support::is_failure;
using support::modern;
using support::modern_meta;
using support::parameter;
using support::parsed;
using support::seconds_since;
using support::Talk;
using support::text_of;
using support::tool;

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
    return ToolResult::text(std::string(call.max_result_bytes() + 1000, 'x'));
  });
  Tool huge = tool("huge", [](const Call&) { return ToolResult::text(std::string(60000, 'x')); });
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
    return ToolResult::text("done");
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
      // Whichever of the two begins first.
      if (slow && call.request_id() == "1") gate.wait(call);
      return ToolResult::text("done");
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
    return ToolResult::text("too late");
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
  Tool spy = tool("spy",
                  [](const Call& call) {
                    return ToolResult::text(Json::object({{"tool", call.tool()},
                                                          {"arguments", call.arguments()},
                                                          {"meta", call.meta()},
                                                          {"progress", call.wants_progress()},
                                                          {"none", call.argument("none")}})
                                                .dump());
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
    return ToolResult::text(call.wants_progress() ? "asked" : "not asked");
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
    return ToolResult::text("answer");
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
    return ToolResult::text("done");
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
