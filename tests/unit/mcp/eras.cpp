// Legacy and modern era of the protocol, in one session.
//
// "Not answered" is shown by what comes next instead: a ping's reply, or the end of the stream.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <map>
#include <thread>

#include "../../helpers/json_support.hpp"
#include "../../helpers/line_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::CancelToken;
using codeexec::Json;
using codeexec::mcp::Server;
using codeexec::mcp::ServerOptions;
using support::code_of;
using support::has;
using support::modern;
using support::parsed;
using support::Pipe;
using support::Talk;

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
  CHECK(talk.initialize()["result"] ==
        parsed(R"({"protocolVersion":"2025-06-18","capabilities":{"logging":{},"tools":{}},)"
               R"("serverInfo":{"name":)"
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
    for (const char* method : {"prompts/list", "resources/list", "no/such", "completion/complete",
                               "tasks/get", "", "initialized"}) {
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
               R"("supportedVersions":["2026-07-28"],"capabilities":{"tools":{},)"
               R"("extensions":{"io.modelcontextprotocol/tasks":{}}},)"
               R"("instructions":"Use it.","ttlMs":3600000,"cacheScope":"private",)"
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
  CHECK(list["cacheScope"] == Json("private"));
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
