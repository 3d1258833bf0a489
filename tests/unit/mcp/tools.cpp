// Tools: their arguments and results.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

#include "../../helpers/json_support.hpp"
#include "../../helpers/line_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::ErrorCode;
using codeexec::Json;
using codeexec::mcp::Call;
using codeexec::mcp::Parameter;
using codeexec::mcp::ParameterType;
using codeexec::mcp::RpcError;
using codeexec::mcp::Server;
using codeexec::mcp::ServerOptions;
using codeexec::mcp::Tool;
using codeexec::mcp::ToolResult;
using support::check_shape;
using support::code_of;
using support::has;
using support::is_failure;
using support::modern;
using support::parameter;
using support::parsed;
using support::Talk;
using support::text_of;
using support::tool;

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
  all.push_back(parameter("rest", ParameterType::array));
  all.push_back(parameter("pairs", ParameterType::array));
  all.back().items = ParameterType::object;
  all.back().fields = {parameter("key", ParameterType::string, true),
                       parameter("times", ParameterType::integer)};
  all.back().fields[0].other_name = "name";
  return all;
}

Tool checked_tool() {
  return tool(
      "checked",
      [](const Call& call) {
        Json seen = Json::object();
        for (const char* name : {"count", "mode", "flag"}) seen.set(name, call.argument(name));
        if (call.argument("pairs").is_array()) seen.set("pairs", call.argument("pairs"));
        return ToolResult::text(seen.dump());
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
          "timeout":{"type":"number","maximum":3600},
          "count":{"type":"integer","minimum":1,"default":10},
          "mode":{"type":"string","enum":["fast","slow"]},
          "flag":{"type":"boolean"},
          "names":{"type":"array","items":{"type":"string"}},
          "extra":{"type":"object","properties":{}},
          "rest":{"type":"array","items":{}},
          "pairs":{"type":"array","items":{"type":"object","properties":{
            "key":{"type":"string"},"times":{"type":"integer"}}}}},
          "required":["command"]}})")
            .dump());
  CHECK(list["result"]["tools"][1]["inputSchema"] ==
        parsed(R"({"type":"object","properties":{}})"));
}

TEST_CASE("wrong arguments give an error result that names them and the ones allowed") {
  struct Row {
    const char* arguments;
    const char* says;
  };
  const Row rows[] = {
      {"{}", "argument 'command' is missing"},
      {R"({"command":"x","pairs":[{"times":1}]})", "argument 'key' is missing"},
      {R"({"command":"x","pairs":[{"key":"a","times":1.5}]})", "'times' must be an integer"},
      {R"({"command":"x","pairs":[{"key":"a","tames":1}]})", "'tames' is unknown"},
      {R"({"command":"x","pairs":[{"key":"a"},7]})", "'pairs' must hold only objects"},
      {R"({"command":"x","pairs":"seven"})", "'pairs' must be an array, not a string"},
      {R"({"command":"x","pairs":{}})", "argument 'key' is missing"},
      {R"({"command":null})", "argument 'command' must be a string, not null"},
      {R"({"command":7})", "argument 'command' must be a string, not a number"},
      {R"({"command":["x"]})", "argument 'command' must be a string, not an array"},
      {R"({"command":"x","timeout":"5s"})",
       "argument 'timeout' must be a number, not a string ('5s')"},
      {R"({"command":"x","timeout":" 5"})", "must be a number, not a string (' 5')"},
      {R"({"command":"x","timeout":"5\n"})", "must be a number, not a string"},
      {R"({"command":"x","timeout":""})", "must be a number, not a string ('')"},
      {R"({"command":"x","timeout":"abc"})", "must be a number, not a string ('abc')"},
      {R"({"command":"x","timeout":"1e400"})", "must be a number, not a string ('1e400')"},
      {R"({"command":"x","timeout":"+5"})", "must be a number, not a string"},
      {R"({"command":"x","timeout":"0x5"})", "must be a number, not a string"},
      {R"({"command":"x","timeout":"NaN"})", "must be a number, not a string"},
      {R"({"command":"x","timeout":"true"})", "must be a number, not a string"},
      {R"({"command":"x","timeout":"0"})", "argument 'timeout' must be greater than 0"},
      {R"({"command":"x","count":"1.5"})", "argument 'count' must be an integer, not a string"},
      {R"({"command":"x","timeout":0})", "argument 'timeout' must be greater than 0"},
      {R"({"command":"x","timeout":-0.5})", "argument 'timeout' must be greater than 0"},
      {R"({"command":"x","timeout":3600.5})", "argument 'timeout' must be at most 3600"},
      {R"({"command":"x","timeout":null})", "argument 'timeout' must be a number, not null"},
      {R"({"command":"x","count":1.5})", "argument 'count' must be an integer, not a fraction"},
      {R"({"command":"x","count":0})", "argument 'count' must be at least 1"},
      {R"({"command":"x","count":true})", "argument 'count' must be an integer, not a boolean"},
      {R"({"command":"x","count":99999999999999999999})", "argument 'count' must be an integer"},
      {R"({"command":"x","mode":"medium"})", "argument 'mode' must be one of 'fast', 'slow'"},
      {R"({"command":"x","flag":"True"})", "argument 'flag' must be a boolean, not a string"},
      {R"({"command":"x","flag":"1"})", "argument 'flag' must be a boolean, not a string"},
      {R"({"command":"x","flag":1})", "argument 'flag' must be a boolean, not a number"},
      {R"({"command":"x","names":"y"})", "argument 'names' must be an array, not a string"},
      {R"({"command":"x","names":["y",1]})",
       "argument 'names' must hold only items of type string"},
      {R"({"command":"x","extra":[]})", "argument 'extra' must be an object, not an array"},
      {R"({"command":"x","Command":"y"})", "argument 'Command' is unknown; command is known: "},
      {R"({"command":"x","timeout_ms":5000})",
       "'timeout_ms' is unknown; timeout is known. Arguments"},
      {R"({"command":"x","what":"y"})",
       "argument 'what' is unknown; command is known: What to run. Arguments"},
      {R"({"command":"x","what_else":"y"})", "argument 'what_else' is unknown. Arguments"},
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

TEST_CASE("texts that are exactly a number or a boolean are taken for it") {
  Talk talk({checked_tool()});
  talk.initialize();
  CHECK(text_of(talk.call("checked", R"({"command":"5","count":"3","flag":"true"})")) ==
        R"({"count":3,"mode":null,"flag":true})");
  CHECK(text_of(talk.call("checked", R"({"command":"x","timeout":"2.5","flag":"false"})")) ==
        R"({"count":10,"mode":null,"flag":false})");
}

TEST_CASE("items with fields are taken as models write them") {
  Talk talk({checked_tool()});
  talk.initialize();
  const auto pairs = [&](const std::string& given) {
    return parsed(
               text_of(talk.call("checked", R"({"command":"x","pairs":)" + given + "}")))["pairs"]
        .dump();
  };
  CHECK(pairs(R"([{"key":"a","times":2},{"key":"b"}])") ==
        R"([{"key":"a","times":2},{"key":"b"}])");
  CHECK(parsed(pairs(R"([{"name":"a","times":"2"}])"))[0]["key"] == Json("a"));
  CHECK(parsed(pairs(R"([{"name":"a","times":"2"}])"))[0]["times"] == Json(2));
  CHECK(pairs(R"({"key":"a"})") == R"([{"key":"a"}])");
  CHECK(pairs(R"("[{\"key\":\"a\"}]")") == R"([{"key":"a"}])");
  CHECK(pairs("[]") == "[]");
}

TEST_CASE("with a schema of its own the tool checks its arguments, except for broken text") {
  Tool raw =
      tool("raw", [](const Call& call) { return ToolResult::text(call.arguments().dump()); });
  raw.input_schema = parsed(R"({"type":"object","oneOf":[{"required":["a"]}],"$defs":{}})");
  Tool whole = raw;
  whole.name = "whole";
  whole.input_schema = parsed(R"({"type":"object","properties":{"a":{"type":["string","null"]}}})");
  Talk talk({raw, whole});
  talk.initialize();
  const Json list = talk.ask(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})");
  // Sent as it is, but for what providers want of every object.
  CHECK(list["result"]["tools"][2]["inputSchema"].dump() ==
        R"({"type":"object","oneOf":[{"required":["a"]}],"$defs":{},"properties":{}})");
  CHECK(list["result"]["tools"][3]["inputSchema"] == whole.input_schema);
  CHECK(text_of(talk.call("raw", R"({"b":[1,"x"]})")) == R"({"b":[1,"x"]})");
  CHECK(text_of(talk.ask(R"({"jsonrpc":"2.0","id":1,"method":"tools/call",)"
                         R"("params":{"name":"raw"}})")) == "{}");
  CHECK(is_failure(talk.call("raw", R"({"b":["\ud800"]})")));
}

TEST_CASE("add() refuses tools that clients would choke on") {
  const auto handler = [](const Call&) { return ToolResult::text(""); };
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
  for (const char* wrong : {"[]", "7", R"({})", R"({"type":"string"})"}) {
    Tool bad = tool("x", handler);
    bad.input_schema = parsed(wrong);
    refused(bad, "input_schema");
    bad.input_schema = Json();
    bad.output_schema = parsed(wrong);
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
  odd = parameter("a", ParameterType::array);
  odd.fields.emplace_back();
  refused(tool("x", handler, {odd}), "'a' has fields");
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
  const auto handler = [](const Call&) { return ToolResult::text(""); };
  Tool full = tool("zz", handler);
  full.title = "The Z";
  full.description = "Does\n\"z\" \xf0\x9f\x98\x80";
  full.read_only = true;
  full.destructive = false;
  full.idempotent = true;
  full.open_world = false;
  full.output_schema = parsed(R"({"type":"object","properties":{"a":{"type":"integer"}}})");
  Talk talk({full, tool("aa", handler)});
  talk.initialize();
  const Json tools =
      talk.ask(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})")["result"]["tools"];
  REQUIRE(tools.size() == 4);
  CHECK(tools[0]["name"] == Json("echo"));
  CHECK(tools[1]["name"] == Json("hold"));
  CHECK(tools[2] == parsed(R"({"name":"zz",
      "description":"Does\n\"z\" \ud83d\ude00",
      "inputSchema":{"type":"object","properties":{}},
      "outputSchema":{"type":"object","properties":{"a":{"type":"integer"}}},
      "annotations":{"title":"The Z","readOnlyHint":true,"destructiveHint":false,
                     "idempotentHint":true,"openWorldHint":false}})"));
  CHECK(tools[3]["name"] == Json("aa"));
  CHECK(!tools[3].find("annotations"));
}

TEST_CASE("tools cannot be added while serving") {
  Talk talk;
  talk.check_silent();
  CHECK(!talk.server().add(tool("late", [](const Call&) { return ToolResult(); })));
  CHECK(!talk.server().serve());
  CHECK(talk.finish().empty());
  CHECK(talk.server().add(tool("late", [](const Call&) { return ToolResult(); })));
}

// results -----------------------------------------------------------------------------------------

TEST_CASE("every kind of content reaches the client as the protocol spells it") {
  Tool all = tool("all", [](const Call&) {
    ToolResult result = ToolResult::text("t");
    result.content.push_back(
        codeexec::mcp::image_block(std::string_view("\0\xff", 2), "image/png"));
    result.content.push_back(codeexec::mcp::audio_block("ab", "audio/wav"));
    result.content.push_back(codeexec::mcp::resource_text_block("u:1", "text/plain", "r"));
    result.content.push_back(codeexec::mcp::resource_blob_block("u:2", "a/b", "abc"));
    result.content.push_back(codeexec::mcp::resource_link_block("u:3", "n", "text/x", "d"));
    result.content.push_back(codeexec::mcp::resource_link_block("u:4", "m"));
    result.content.push_back(Json::object({{"type", "new"}, {"x", 1}}));
    result.meta = Json::object({{"example.org/k", true}});
    return result;
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
    return ToolResult::with_structured(Json::object({{"a", 1}}));
  }));
  tools.push_back(tool("number", [](const Call&) { return ToolResult::with_structured(7); }));
  tools.push_back(tool("bare", [](const Call&) {
    ToolResult result;
    result.structured = Json::object({{"b", 2}});
    return result;
  }));
  tools.push_back(tool("empty", [](const Call&) { return ToolResult(); }));
  tools.push_back(tool("failing", [](const Call&) { return ToolResult::error("why"); }));
  tools.push_back(tool("missing", [](const Call&) { return ToolResult::text("t"); }));
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

TEST_CASE("structured content that breaks the output_schema is an error that tells where") {
  struct Row {
    const char* value;
    const char* says;  // empty: it matches
  };
  const Row rows[] = {
      {R"({"n":1,"list":[{"on":true}],"kind":"a","more":[1]})", ""},
      {R"({"n":null,"list":[]})", ""},
      {"42", "structuredContent is not of the type \"object\""},
      {"[]", "structuredContent is not of the type"},
      {R"({"list":[]})", "structuredContent has no 'n'"},
      {R"({"n":1.5,"list":[]})", R"(structuredContent.n is not of the type ["integer","null"])"},
      {R"({"n":11,"list":[]})", "structuredContent.n is out of bounds"},
      {R"({"n":0,"list":[]})", "structuredContent.n is out of bounds"},
      {R"({"n":1,"list":{}})", "structuredContent.list is not of the type"},
      {R"({"n":1,"list":[{"on":true},{"on":1}]})", "structuredContent.list[1].on is not"},
      {R"({"n":1,"list":[{"off":true}]})", "structuredContent.list[0] has an unknown 'off'"},
      {R"({"n":1,"list":[],"kind":"c"})", R"(structuredContent.kind is none of ["a","b"])"},
  };
  std::vector<Tool> tools;
  for (const Row& row : rows) {
    tools.push_back(tool(
        "t" + std::to_string(tools.size()),
        [value = parsed(row.value)](const Call&) { return ToolResult::with_structured(value); }));
    tools.back().output_schema = parsed(
        R"({"type":"object","required":["n","list"],"properties":{)"
        R"("n":{"type":["integer","null"],"exclusiveMinimum":0,"maximum":10},)"
        R"("list":{"type":"array","items":{"type":"object","properties":{"on":{"type":"boolean"}},)"
        R"("additionalProperties":false}},"kind":{"enum":["a","b"]}}})");
  }
  Talk talk(tools);
  talk.initialize();
  for (std::size_t i = 0; i < tools.size(); ++i) {
    CAPTURE(rows[i].value);
    const Json reply = talk.call(tools[i].name);
    if (*rows[i].says) {
      CHECK(code_of(reply) == -32603);
      CHECK_MESSAGE(has(reply["error"]["message"].as_string(), rows[i].says), reply.dump());
    } else {
      CHECK(reply["result"]["structuredContent"] == parsed(rows[i].value));
    }
  }
}

TEST_CASE("a handler can answer with a JSON-RPC error of its own") {
  std::vector<Tool> tools;
  tools.push_back(tool("refuse", [](const Call&) {
    ToolResult result;
    RpcError& error = result.rpc_error.emplace();
    error.code = -32021;
    error.message = "needs \xff sampling";
    error.data =
        Json::object({{"requiredCapabilities", Json::object({{"sampling", Json::object()}})}});
    return result;
  }));
  tools.push_back(tool("verbose", [](const Call&) {
    ToolResult result;
    RpcError& error = result.rpc_error.emplace();
    error.code = 5;
    error.message = std::string(std::size_t(9) << 20, 'e');
    return result;
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
    Tool large = tool("large",
                      [](const Call& call) {
                        const std::int64_t size = call.argument("size").as_integer();
                        return ToolResult::text(std::string(static_cast<std::size_t>(size), 'x'));
                      },
                      {parameter("size", ParameterType::integer, true)});
    Tool exact = tool("exact", [](const Call& call) {
      const std::size_t around = ToolResult::text("").content[0].dump().size() + 14;
      return ToolResult::text(std::string(call.max_result_bytes() - around, 'x'));
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
    return ToolResult::with_structured(Json::object({{"x", deep}}));
  }));
  tools.push_back(tool("block", [](const Call&) {
    ToolResult result;
    result.content.push_back(Json("no object"));
    return result;
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
    return result;
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
      "throws", [](const Call&) -> ToolResult { throw std::runtime_error("broken \xff pipe"); }));
  tools.push_back(tool("throws_int", [](const Call&) -> ToolResult { throw 7; }));
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
