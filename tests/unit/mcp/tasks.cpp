// Calls that take long, of clients with the tasks extension.
#include "../../helpers/json_support.hpp"
#include "helpers.hpp"

using codeexec::Json;
using codeexec::mcp::Call;
using codeexec::mcp::RpcError;
using codeexec::mcp::ToolResult;
using support::code_of;
using support::modern;
using support::parsed;
using support::Talk;
using support::text_of;

namespace {

const std::string tasks_meta = R"({"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
                               R"("io.modelcontextprotocol/clientCapabilities":{"elicitation":{},)"
                               R"("extensions":{"io.modelcontextprotocol/tasks":{}}}})";

// A call of this tool that was answered with a task; its id, as JSON.
Json task(Talk& talk, const std::string& name, const std::string& id = "\"call\"") {
  const Json reply = talk.ask(modern(id, "tools/call", R"("name":")" + name + "\"", tasks_meta));
  CHECK(reply["id"].dump() == id);
  CHECK(reply["result"]["resultType"] == Json("task"));
  CHECK(reply["result"]["status"] == Json("working"));
  CHECK(reply["result"]["taskId"].as_string().size() == 32);
  for (const char* time : {"createdAt", "lastUpdatedAt"})
    CHECK(reply["result"][time].as_string().size() == 20);
  CHECK(reply["result"]["ttlMs"].as_integer() > 0);
  CHECK(reply["result"]["pollIntervalMs"].as_integer() > 0);
  CHECK(reply["result"]["_meta"]["io.modelcontextprotocol/serverInfo"].is_object());
  return reply["result"]["taskId"];
}

Json about(Talk& talk, const std::string& method, const Json& id, const std::string& members = "",
           const std::string& meta = tasks_meta) {
  const Json reply =
      talk.ask(modern("\"about\"", method, R"("taskId":)" + id.dump() + members, meta));
  CHECK(reply["id"] == Json("about"));
  return reply;
}

// The task, once it has this status.
Json until(Talk& talk, const Json& id, const char* status) {
  for (;;) {
    const Json result = about(talk, "tasks/get", id)["result"];
    REQUIRE(result["resultType"] == Json("complete"));
    CHECK(result["taskId"] == id);
    if (result["status"] == Json(status)) return result;
    REQUIRE((result["status"] == Json("working") || result["status"] == Json("input_required")));
  }
}

}  // namespace

TEST_CASE("a call that takes long becomes a task, and its result is kept") {
  Talk talk;
  // What is short is answered at once, and what the client does not ask for is not sent.
  CHECK(text_of(talk.ask(modern("1", "tools/call", R"("name":"echo","arguments":{"text":"t"})",
                                tasks_meta))) == "t");
  const Json id = task(talk, "hold");
  CHECK(talk.gate.wait_for_arrivals(1));
  CHECK(until(talk, id, "working").find("result") == nullptr);
  // The id of the call is free, and cancels nothing.
  CHECK(talk.ask(modern("\"call\"", "tools/list")).find("result"));
  talk.cancel("\"call\"");
  talk.gate.open();
  for (int i = 0; i < 2; ++i) {
    const Json result = until(talk, id, "completed")["result"];
    CHECK(result["content"][0]["text"] == Json("let go"));
    CHECK(result["resultType"] == Json("complete"));
  }
  CHECK(about(talk, "tasks/cancel", id)["result"]["resultType"] == Json("complete"));
  CHECK(about(talk, "tasks/update", id, R"(,"inputResponses":{"question":1})").find("result"));
  until(talk, id, "completed");
}

TEST_CASE("a task can be cancelled, and fail") {
  support::Gate gate;
  Talk talk({support::tool("fail", [&](const Call& call) -> ToolResult {
    gate.wait(call);
    ToolResult result;
    RpcError& error = result.rpc_error.emplace();
    error.code = 7;
    error.message = "\"result\":";
    return result;
  })});
  const Json cancelled = task(talk, "hold", R"("\"result\":")");
  const Json failed = task(talk, "fail", "2");
  CHECK(about(talk, "tasks/cancel", cancelled)["result"]["resultType"] == Json("complete"));
  CHECK(talk.gate.wait_for_cancelled(1));
  CHECK(until(talk, cancelled, "cancelled").find("result") == nullptr);
  gate.open();
  CHECK(until(talk, failed, "failed")["error"] == parsed(R"({"code":7,"message":"\"result\":"})"));
}

TEST_CASE("a task that asks a person shows its question until it is answered") {
  support::Gate gate;
  Talk talk({support::tool("ask", [&](const Call& call) {
    gate.wait(call);  // until it is a task
    const auto answer = call.elicit("Go on?", parsed(R"({"type":"object"})"),
                                    std::chrono::milliseconds(support::patience_ms));
    return ToolResult::text(answer ? answer->dump() : answer.error().message);
  })});
  const Json id = task(talk, "ask");
  gate.open();
  const Json asked = until(talk, id, "input_required");
  CHECK(asked["inputRequests"] ==
        parsed(R"({"question":{"method":"elicitation/create","params":{"message":"Go on?",)"
               R"("requestedSchema":{"type":"object"}}}})"));
  for (const char* members : {"", R"(,"inputResponses":{"other":1})", R"(,"inputResponses":7)"})
    CHECK(about(talk, "tasks/update", id, members).find("result"));
  CHECK(until(talk, id, "input_required")["inputRequests"] == asked["inputRequests"]);
  CHECK(about(talk, "tasks/update", id, R"(,"inputResponses":{"question":{"action":"decline"}})")
            .find("result"));
  CHECK(until(talk, id, "completed")["result"]["content"][0]["text"] ==
        Json(R"({"action":"decline"})"));
}

TEST_CASE("tasks are for clients that declare them, and only those that there are") {
  Talk talk;
  CHECK(talk.ask(modern("1", "server/discover"))["result"]["capabilities"]["extensions"] ==
        parsed(R"({"io.modelcontextprotocol/tasks":{}})"));
  for (const char* method : {"tasks/get", "tasks/update", "tasks/cancel"}) {
    const Json refused = about(talk, method, Json("x"), "", support::modern_meta);
    CHECK(code_of(refused) == -32021);
    CHECK(
        refused["error"]["data"] ==
        parsed(R"({"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}})"));
    for (const Json& id : {Json("x"), Json(""), Json(7), Json()})
      CHECK(code_of(about(talk, method, id)) == -32602);
  }
  for (const char* method : {"tasks/list", "tasks/result"})
    CHECK(code_of(about(talk, method, Json("x"))) == -32601);
}

TEST_CASE("tasks are bounded, and end with the server") {
  codeexec::mcp::ServerOptions options;
  options.max_concurrent = 1;
  Talk talk({}, options);
  for (int i = 0; i < 17; ++i)
    talk.send(modern(std::to_string(i), "tools/call", R"("name":"hold")", tasks_meta));
  for (int i = 0; i < 16; ++i) CHECK(talk.receive()["result"]["resultType"] == Json("task"));
  talk.check_silent();  // there is no place for the last one
  const std::vector<Json> last = talk.finish();
  CHECK(last.size() == 1);
}
