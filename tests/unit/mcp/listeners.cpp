// News for clients that listen: log messages in the 2025 revisions, subscriptions in 2026-07-28.
#include "../../helpers/json_support.hpp"
#include "helpers.hpp"

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

codeexec::mcp::ServerOptions with_news() {
  codeexec::mcp::ServerOptions options;
  options.announced = "test://";
  return options;
}

// The tool `say` announces a URI; the one who has its Call may do so later, too.
std::vector<codeexec::mcp::Tool> tools(std::vector<Call>* kept = nullptr) {
  return {support::tool("say",
                        [kept](const Call& call) {
                          call.announcer()(call.argument("uri").as_string(),
                                           Json::object({{"news", call.argument("uri")}}));
                          if (kept) kept->push_back(call);
                          return ToolResult::text("said");
                        },
                        {parameter("uri", ParameterType::string)})};
}

Json set_level(Talk& talk, const std::string& level) {
  return talk.ask(R"({"jsonrpc":"2.0","id":"l","method":"logging/setLevel","params":{"level":)" +
                  level + "}}");
}

std::string say(const std::string& uri) {
  return Talk::call_line("\"say\"", "say", R"({"uri":")" + uri + "\"}");
}

Json listen(Talk& talk, const std::string& id, const std::string& uris) {
  return talk.ask(modern(id, "subscriptions/listen",
                         R"("notifications":{"toolsListChanged":true,"resourceSubscriptions":)" +
                             uris + "}"))["params"]["notifications"];
}

}  // namespace

TEST_CASE("a client that sets a log level gets news as log messages") {
  Talk talk(tools(), with_news());
  CHECK(talk.initialize()["result"]["capabilities"] == parsed(R"({"logging":{},"tools":{}})"));
  CHECK(text_of(talk.ask(say("test://a"))) == "said");  // it has asked for none
  for (const char* level : {"\"debug\"", "\"info\""}) {
    CHECK(set_level(talk, level)["result"] == Json::object());
    CHECK(talk.ask(say("test://a")) ==
          parsed(R"({"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info",)"
                 R"("logger":"codeexec","data":{"news":"test://a"}}})"));
    CHECK(text_of(talk.receive()) == "said");
  }
  for (const char* level : {"\"loud\"", "7", "null", "{}", "\"\""})
    CHECK(code_of(set_level(talk, level)) == -32602);
  CHECK(set_level(talk, "\"notice\"")["result"] == Json::object());
  CHECK(text_of(talk.ask(say("test://a"))) == "said");
}

TEST_CASE("subscriptions get the news of their own URIs, and of those that can be announced") {
  Talk talk(tools(), with_news());
  talk.initialize();
  CHECK(listen(talk, "1", R"(["test://a","other://a","test://\n",7,"test://b"])") ==
        parsed(R"({"resourceSubscriptions":["test://a","test://b"]})"));
  CHECK(listen(talk, "\"two\"", R"(["test://b"])") ==
        parsed(R"({"resourceSubscriptions":["test://b"]})"));
  int number = 100;
  for (const char* uris : {"[]", "{}", "7", "null", R"(["other://a"])"})
    CHECK(listen(talk, std::to_string(++number), uris) == Json::object());
  const auto news = [](const char* id, const char* uri) {
    return parsed(
        std::string(
            R"({"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":)"
            R"({"io.modelcontextprotocol/subscriptionId":)") +
        id + R"(},"uri":")" + uri + "\"}}");
  };
  CHECK(talk.ask(say("test://a")) == news("1", "test://a"));
  CHECK(text_of(talk.receive()) == "said");
  CHECK(text_of(talk.ask(say("test://"))) == "said");
  CHECK(text_of(talk.ask(say("other://a"))) == "said");
  talk.send(say("test://b"));
  const Json first = talk.receive();
  const Json second = talk.receive();
  const bool in_order = first == news("1", "test://b");
  CHECK((in_order ? first : second) == news("1", "test://b"));
  CHECK((in_order ? second : first) == news("\"two\"", "test://b"));
  CHECK(text_of(talk.receive()) == "said");
  talk.cancel("1");
  CHECK(text_of(talk.ask(say("test://a"))) == "said");
}

TEST_CASE("the URIs of a subscription are bounded") {
  Talk talk(tools(), with_news());
  std::string uris = "[";
  for (int i = 0; i < 1000; ++i) uris += R"("test://)" + std::to_string(i) + "\",";
  const std::size_t honoured =
      listen(talk, "1", uris + R"("test://last"])")["resourceSubscriptions"].size();
  CHECK(honoured > 100);
  CHECK(honoured < 500);
}

TEST_CASE("without URIs to announce nothing is honoured, and news may outlive the server") {
  std::vector<Call> kept;
  {
    Talk talk(tools(&kept));
    talk.initialize();
    CHECK(listen(talk, "1", R"(["test://a"])") == Json::object());
    set_level(talk, "\"info\"");
    talk.send(say("test://a"));
    CHECK(talk.receive()["method"] == Json("notifications/message"));
    CHECK(text_of(talk.receive()) == "said");
    REQUIRE(kept.size() == 1);
    kept[0].announcer()("test://a", Json(1));
    CHECK(talk.receive()["params"]["data"] == Json(1));
    CHECK(talk.finish().size() == 1);
    kept[0].announcer()("test://a", Json(2));
  }
  kept[0].announcer()("test://a", Json(3));
}
