// Calls that take long: tasks of 2025-11-25, and of clients with the tasks extension.
#include <atomic>

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

// A client of 2025-11-25.
class Legacy {
 public:
  explicit Legacy(std::vector<codeexec::mcp::Tool> tools = {},
                  codeexec::mcp::ServerOptions options = {})
      : talk(std::move(tools), std::move(options)) {
    capabilities = talk.ask(
        R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":)"
        R"("2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":)"
        R"("1"}}})")["result"]["capabilities"];
  }
  // The reply to a call with a task; before it may come notifications of others.
  Json call(const std::string& name, const std::string& task = "{}", const std::string& id = "1",
            const std::string& more = "") {
    return talk.ask(R"({"jsonrpc":"2.0","id":)" + id +
                    R"(,"method":"tools/call","params":{"name":")" + name + R"(","task":)" + task +
                    more + "}}");
  }
  Json start(const std::string& name, const std::string& more = "") {
    const Json reply = call(name, "{}", "1", more);
    check(reply["result"]["task"], "working");
    CHECK(reply["result"].members().size() == 1);
    return reply["result"]["task"]["taskId"];
  }
  static std::string about(const std::string& method, const Json& task,
                           const std::string& id = "\"about\"") {
    return R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":")" + method +
           R"(","params":{"taskId":)" + task.dump() + "}}";
  }
  // All members of the schema's Task, and none of the other era.
  static void check(const Json& task, const char* status) {
    CHECK(task["status"] == Json(status));
    CHECK(task["taskId"].as_string().size() == 32);
    for (const char* time : {"createdAt", "lastUpdatedAt"})
      CHECK(task[time].as_string().size() == 20);
    CHECK(task["ttl"].as_integer() == 3600000);
    CHECK(task["pollInterval"].as_integer() > 0);
    CHECK(task.members().size() == 6);
  }
  // The notification that comes next.
  void notified(const Json& task, const char* status) {
    const Json message = talk.receive();
    CHECK(message["method"] == Json("notifications/tasks/status"));
    CHECK(message["params"]["taskId"] == task);
    check(message["params"], status);
  }

  Talk talk;
  Json capabilities = {};
};

// The `_meta` of what is about a task.
Json related(const Json& task) {
  return parsed(R"({"io.modelcontextprotocol/related-task":{"taskId":)" + task.dump() + "}}");
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

TEST_CASE("2025-11-25: a call with a task is answered with it, and its result is waited for") {
  Legacy client;
  Talk& talk = client.talk;
  CHECK(client.capabilities["tasks"] ==
        parsed(R"({"list":{},"cancel":{},"requests":{"tools":{"call":{}}}})"));
  const Json tools = talk.ask(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})");
  for (const Json& tool : tools["result"]["tools"].items())
    CHECK(tool["execution"] == parsed(R"({"taskSupport":"optional"})"));
  const Json id = client.start("hold");
  CHECK(talk.gate.wait_for_arrivals(1));
  client.check(talk.ask(client.about("tasks/get", id))["result"], "working");
  const Json all = talk.ask(R"({"jsonrpc":"2.0","id":1,"method":"tasks/list"})")["result"];
  REQUIRE(all["tasks"].size() == 1);
  CHECK(all["tasks"][0]["taskId"] == id);
  client.check(all["tasks"][0], "working");
  // A request that waits can be cancelled, and its id is taken meanwhile; the call's own is free.
  for (const char* request : {"\"a\"", "\"b\"", "7"})
    talk.send(client.about("tasks/result", id, request));
  CHECK(code_of(talk.ask(client.about("tasks/get", id, "7"))) == -32600);
  talk.cancel("\"b\"");
  talk.cancel("1");
  talk.check_silent();
  talk.gate.open();
  client.notified(id, "completed");
  for (const Json& request : {Json("a"), Json(7)}) {
    const Json reply = talk.receive();
    CHECK(reply["id"] == request);
    CHECK(text_of(reply) == "let go");
    CHECK(reply["result"]["_meta"] == related(id));
    CHECK(reply["result"].find("resultType") == nullptr);
  }
  CHECK(text_of(talk.ask(client.about("tasks/result", id))) == "let go");
  client.check(talk.ask(client.about("tasks/get", id))["result"], "completed");
  CHECK(code_of(talk.ask(client.about("tasks/cancel", id))) == -32602);
}

TEST_CASE("2025-11-25: tasks are cancelled, and fail with their tool") {
  support::Gate gate;
  Legacy client({support::tool("fail", [](const Call&) { return ToolResult::error("no"); }),
                 support::tool("break", [](const Call&) {
                   ToolResult result;
                   result.rpc_error.emplace().code = 7;
                   return result;
                 })});
  Talk& talk = client.talk;
  const Json held = client.start("hold");
  CHECK(talk.gate.wait_for_arrivals(1));
  talk.send(client.about("tasks/result", held, "\"result\""));
  client.check(talk.ask(client.about("tasks/cancel", held))["result"], "cancelled");
  client.notified(held, "cancelled");
  const Json unanswered = talk.receive();
  CHECK(unanswered["id"] == Json("result"));
  CHECK(code_of(unanswered) == -32603);
  CHECK(talk.gate.wait_for_cancelled(1));
  CHECK(talk.gate.wait_until_left());
  talk.check_silent();
  CHECK(code_of(talk.ask(client.about("tasks/cancel", held))) == -32602);
  // What the arguments lack is the tool's failure, too.
  for (const char* name : {"fail", "echo"}) {
    const Json id = client.start(name);
    client.notified(id, "failed");
    const Json reply = talk.ask(client.about("tasks/result", id));
    CHECK(support::is_failure(reply));
    CHECK(reply["result"]["_meta"] == related(id));
  }
  const Json broken = client.start("break");
  client.notified(broken, "failed");
  CHECK(code_of(talk.ask(client.about("tasks/result", broken))) == 7);
}

TEST_CASE("2025-11-25: a task that is cancelled before its turn does not call its tool") {
  codeexec::mcp::ServerOptions options;
  options.max_concurrent = 1;
  std::atomic<bool> called{false};
  Legacy client({support::tool("never",
                               [&](const Call&) {
                                 called = true;
                                 return ToolResult::text("");
                               })},
                options);
  Talk& talk = client.talk;
  const Json held = client.start("hold");
  CHECK(talk.gate.wait_for_arrivals(1));
  const Json waiting = client.start("never");
  client.check(talk.ask(client.about("tasks/cancel", waiting))["result"], "cancelled");
  client.notified(waiting, "cancelled");
  talk.gate.open();
  client.notified(held, "completed");
  CHECK(text_of(talk.ask(Talk::call_line("2", "echo", R"({"text":"after"})"))) == "after");
  CHECK(!called);
}

TEST_CASE("2025-11-25: questions and progress of a task name it") {
  Legacy client({support::tool("ask", [](const Call& call) {
    call.progress(1);
    const auto answer = call.elicit("Go on?", parsed(R"({"type":"object"})"),
                                    std::chrono::milliseconds(support::patience_ms));
    return ToolResult::text(answer ? answer->dump() : answer.error().message);
  })});
  Talk& talk = client.talk;
  const Json id = client.start("ask", R"(,"_meta":{"progressToken":"p"})");
  const Json progress = talk.receive();
  CHECK(progress["method"] == Json("notifications/progress"));
  CHECK(progress["params"]["_meta"] == related(id));
  const Json question = talk.receive();
  CHECK(question["method"] == Json("elicitation/create"));
  CHECK(question["params"]["_meta"] == related(id));
  client.notified(id, "input_required");
  client.check(talk.ask(client.about("tasks/get", id))["result"], "input_required");
  talk.send(R"({"jsonrpc":"2.0","id":)" + question["id"].dump() +
            R"(,"result":{"action":"decline"}})");
  client.notified(id, "working");
  client.notified(id, "completed");
  CHECK(text_of(talk.ask(client.about("tasks/result", id))) == R"({"action":"decline"})");
}

TEST_CASE("2025-11-25: tasks are bounded, and what is wrong is refused") {
  Legacy client({}, [] {
    codeexec::mcp::ServerOptions options;
    options.max_concurrent = 1;
    return options;
  }());
  Talk& talk = client.talk;
  for (const char* task : {"7", "null", "[]"}) CHECK(code_of(client.call("hold", task)) == -32602);
  CHECK(code_of(client.call("no_such_tool")) == -32602);
  Json id;
  for (int i = 0; i < 16; ++i) id = client.start("hold");
  CHECK(code_of(client.call("hold")) == -32603);
  for (int i = 0; i < 64; ++i) talk.send(client.about("tasks/result", id, std::to_string(i)));
  CHECK(code_of(talk.ask(client.about("tasks/result", id, "64"))) == -32603);
  for (const Json& other : {Json("x"), Json(7), Json()})
    for (const char* method : {"tasks/get", "tasks/result", "tasks/cancel"})
      CHECK(code_of(talk.ask(client.about(method, other))) == -32602);
  CHECK(code_of(talk.ask(
            R"({"jsonrpc":"2.0","id":"l","method":"tasks/list","params":{"cursor":"c"}})")) ==
        -32602);
  // One era does not see the tasks of the other.
  CHECK(code_of(about(talk, "tasks/get", id)) == -32602);
  // Each request that waits is answered, and each task ends.
  int answered = 0;
  for (const Json& message : talk.finish()) answered += message.find("id") ? 1 : 0;
  CHECK(answered == 64);
}

TEST_CASE("2025-11-25: a tool may be none that runs as a task") {
  codeexec::mcp::Tool tool;
  tool.name = "short";
  tool.tasks = false;
  tool.handler = [](const Call&) { return ToolResult::text("done"); };
  Legacy client({tool});
  const Json tools = client.talk.ask(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})");
  for (const Json& listed : tools["result"]["tools"].items())
    CHECK((listed.find("execution") == nullptr) == (listed["name"] == Json("short")));
  CHECK(code_of(client.call("short")) == -32601);
  CHECK(text_of(client.talk.ask(
            R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"short"}})")) ==
        "done");
}

TEST_CASE("before 2025-11-25 there are no tasks") {
  Talk talk;
  CHECK(talk.initialize()["result"]["capabilities"].find("tasks") == nullptr);
  for (const char* method : {"tasks/get", "tasks/result", "tasks/list", "tasks/cancel"})
    CHECK(code_of(talk.ask(Legacy::about(method, Json("x")))) == -32601);
  const Json tools = talk.ask(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})");
  CHECK(tools["result"]["tools"][0].find("execution") == nullptr);
  // A server without them must ignore what asks for one.
  CHECK(text_of(talk.ask(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":)"
                         R"("echo","arguments":{"text":"t"},"task":{}}})")) == "t");
}
