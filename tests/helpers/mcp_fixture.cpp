// An MCP server whose tools are those the official conformance suite asks for, and some that
// misbehave, for our own tests. It answers on its standard streams until they end.
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "codeexec.hpp"

using codeexec::Json;
using codeexec::mcp::Call;
using codeexec::mcp::Parameter;
using codeexec::mcp::ParameterType;
using codeexec::mcp::RpcError;
using codeexec::mcp::Tool;
using codeexec::mcp::ToolResult;

namespace {

// The smallest pictures and sounds that are what they say: 1 x 1 pixel, and no samples.
const std::string_view png(
    "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\2\0\0\0\x90wS\xde\0\0\0\x0cIDAT\x08\xd7"
    "c\xf8\xcf\xc0\0\0\3\1\1\0\x18\xdd\x8d\xb0\0\0\0\0IEND\xae"
    "B`\x82",
    69);
const std::string_view wav(
    "RIFF$\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0@\x1f\0\0@\x1f\0\0\1\0\x08\0data\0\0\0\0", 44);

// Waits until the call is cancelled or the time is over; true: cancelled.
bool wait_cancelled(const Call& call, int milliseconds) {
  pollfd fd = {call.cancel_token().descriptor(), POLLIN, 0};
  ::poll(&fd, 1, milliseconds);
  return call.cancel_token().cancelled();
}

Tool tool(const char* name, const char* description,
          codeexec::Function<ToolResult(const Call&)> handler) {
  Tool made;
  made.name = name;
  made.description = description;
  made.handler = std::move(handler);
  return made;
}

Parameter parameter(const char* name, ParameterType type, const char* description) {
  Parameter made;
  made.name = name;
  made.type = type;
  made.description = description;
  return made;
}

// The suite compares this schema member by member.
const char* const schema_2020_12 = R"({
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "$defs": {
    "address": {
      "$anchor": "addressDef",
      "type": "object",
      "properties": {"street": {"type": "string"}, "city": {"type": "string"}}
    }
  },
  "properties": {
    "name": {"type": "string"},
    "address": {"$ref": "#/$defs/address"},
    "contactMethod": {"type": "string", "enum": ["phone", "email"]},
    "phone": {"type": "string"},
    "email": {"type": "string"}
  },
  "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
  "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
  "then": {"required": ["phone"]},
  "else": {"required": ["email"]},
  "additionalProperties": false
})";

ToolResult mixed_content(const Call&) {
  ToolResult result = ToolResult::text("Multiple content types test:");
  result.content.push_back(codeexec::mcp::image_block(png, "image/png"));
  result.content.push_back(codeexec::mcp::resource_text_block(
      "test://mixed-content-resource", "application/json", R"({"test":"data","value":123})"));
  return result;
}

ToolResult with_progress(const Call& call) {
  for (const double done : {0.0, 50.0, 100.0}) {
    call.progress(done, 100.0, "working");
    wait_cancelled(call, 50);
  }
  return ToolResult::text("Progress complete");
}

ToolResult missing_capability(const Call&) {
  ToolResult result;
  RpcError& error = result.rpc_error.emplace();
  error.code = -32021;
  error.message = "Missing required client capability: sampling";
  error.data =
      Json::object({{"requiredCapabilities", Json::object({{"sampling", Json::object()}})}});
  return result;
}

ToolResult slow(const Call& call) {
  const int milliseconds = static_cast<int>(call.argument("milliseconds").as_integer());
  return ToolResult::text(wait_cancelled(call, milliseconds) ? "cancelled" : "done");
}

ToolResult stubborn(const Call& call) {
  ::poll(nullptr, 0, static_cast<int>(call.argument("milliseconds").as_integer()));
  return ToolResult::text("done");
}

// The schemas that the suite compares, and some of ours. The times are short: the suite leaves
// questions unanswered.
const char* const person_schema = R"({"type":"object","properties":{
  "username":{"type":"string","description":"User's response"},
  "email":{"type":"string","description":"User's email address"}},
  "required":["username","email"]})";
const char* const defaults_schema = R"({"type":"object","properties":{
  "name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},
  "score":{"type":"number","default":95.5},
  "status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},
  "verified":{"type":"boolean","default":true}}})";
const char* const enums_schema = R"({"type":"object","properties":{
  "untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
  "titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},
    {"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},
  "legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],
    "enumNames":["Option One","Option Two","Option Three"]},
  "untitledMulti":{"type":"array",
    "items":{"type":"string","enum":["option1","option2","option3"]}},
  "titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},
    {"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}}})";
const char* const name_schema =
    R"({"type":"object","properties":{"name":{"type":"string"}},"required":["name"]})";
const char* const color_schema =
    R"({"type":"object","properties":{"color":{"type":"string"}},"required":["color"]})";

// A tool that asks once for each schema.
Tool asking(const char* name, std::vector<const char*> schemas) {
  Tool made = tool(name, "Asks the person", [schemas](const Call& call) {
    std::string text = "Elicitation completed:";
    for (const char* schema : schemas) {
      const Json& message = call.argument("message");
      const auto answer = call.elicit(message.is_string() ? message.as_string() : "What is it?",
                                      *Json::parse(schema), std::chrono::seconds(5));
      if (!answer) return ToolResult::error(answer.error().message);
      text +=
          " action=" + (*answer)["action"].as_string() + ", content=" + (*answer)["content"].dump();
    }
    return ToolResult::text(text);
  });
  made.parameters = {parameter("message", ParameterType::string, "What to ask")};
  return made;
}

ToolResult with_logging(const Call& call) {
  for (const char* text :
       {"Tool execution started", "Tool processing data", "Tool execution completed"}) {
    call.announcer()("test://log", text);
    wait_cancelled(call, 50);
  }
  return ToolResult::text("logged");
}

void add_conformance_tools(std::vector<Tool>& tools) {
  tools.push_back(tool("test_simple_text", "Gives a text", [](const Call&) {
    return ToolResult::text("This is a simple text response for testing.");
  }));
  tools.push_back(tool("test_image_content", "Gives an image", [](const Call&) {
    ToolResult result;
    result.content.push_back(codeexec::mcp::image_block(png, "image/png"));
    return result;
  }));
  tools.push_back(tool("test_audio_content", "Gives a sound", [](const Call&) {
    ToolResult result;
    result.content.push_back(codeexec::mcp::audio_block(wav, "audio/wav"));
    return result;
  }));
  tools.push_back(tool("test_embedded_resource", "Gives a resource", [](const Call&) {
    ToolResult result;
    result.content.push_back(codeexec::mcp::resource_text_block(
        "test://embedded-resource", "text/plain", "This is an embedded resource content."));
    return result;
  }));
  tools.push_back(
      tool("test_multiple_content_types", "Gives text, image and resource", mixed_content));
  tools.push_back(tool("test_error_handling", "Fails", [](const Call&) {
    return ToolResult::error("This tool intentionally returns an error for testing");
  }));
  tools.push_back(tool("test_tool_with_progress", "Tells its progress", with_progress));
  tools.push_back(tool("json_schema_2020_12_tool", "Has a rich input schema", [](const Call& call) {
    return ToolResult::text("got " + call.arguments().dump());
  }));
  tools.back().input_schema = *Json::parse(schema_2020_12);
  tools.push_back(tool("test_missing_capability", "Needs sampling", missing_capability));
  // The suite watches the streams of these two for what must not be on them: requests of the
  // server's own, and log messages that nobody asked for.
  tools.push_back(tool("test_streaming_elicitation", "Tells its progress", with_progress));
  tools.push_back(tool("test_logging_tool", "Logs nothing",
                       [](const Call&) { return ToolResult::text("done"); }));
}

void add_asking_tools(std::vector<Tool>& tools) {
  tools.push_back(tool("test_tool_with_logging", "Announces what it does", with_logging));
  tools.push_back(asking("test_elicitation", {person_schema}));
  tools.push_back(asking("test_elicitation_sep1034_defaults", {defaults_schema}));
  tools.push_back(asking("test_elicitation_sep1330_enums", {enums_schema}));
  tools.push_back(asking("test_input_required_result_elicitation", {name_schema}));
  tools.push_back(asking("test_input_required_result_multi_round", {name_schema, color_schema}));
  tools.push_back(asking("test_input_required_result_tampered_state", {name_schema}));
}

void add_own_tools(std::vector<Tool>& tools) {
  tools.push_back(tool("echo", "Gives the text back", [](const Call& call) {
    return ToolResult::text(call.argument("text").as_string());
  }));
  tools.back().parameters = {parameter("text", ParameterType::string, "What to say")};
  tools.back().parameters.back().required = true;
  Parameter milliseconds = parameter("milliseconds", ParameterType::integer, "How long");
  milliseconds.default_value = 1000;
  milliseconds.minimum = 0;
  milliseconds.maximum = 600000;
  tools.push_back(tool("slow", "Waits, unless it is cancelled", slow));
  tools.back().parameters = {milliseconds};
  tools.push_back(tool("stubborn", "Waits, even when it is cancelled", stubborn));
  tools.back().parameters = {milliseconds};
  tools.push_back(tool("print", "Writes to standard output, which must not harm", [](const Call&) {
    std::puts("not a message");
    std::fflush(stdout);
    return ToolResult::text("printed");
  }));
  tools.push_back(tool("large", "Gives very much text", [](const Call& call) {
    return ToolResult::text(
        std::string(static_cast<std::size_t>(call.argument("bytes").as_integer()), 'x'));
  }));
  tools.back().parameters = {parameter("bytes", ParameterType::integer, "How much")};
  tools.back().parameters.back().required = true;
  tools.back().parameters.back().minimum = 0;
  tools.back().parameters.back().maximum = 100000000;
  tools.push_back(tool("crash", "Ends the server at once", [](const Call&) -> ToolResult {
    std::raise(SIGKILL);
    return ToolResult();
  }));
}

}  // namespace

int main() {
  codeexec::mcp::ServerOptions options;
  options.name = "codeexec-mcp-fixture";
  options.instructions = "A server for tests.";
  options.announced = "test://";
  codeexec::mcp::Server server(options);
  std::vector<Tool> tools;
  add_conformance_tools(tools);
  add_asking_tools(tools);
  add_own_tools(tools);
  for (Tool& each : tools) {
    const auto added = server.add(std::move(each));
    if (!added) return std::fprintf(stderr, "%s\n", added.error().message.c_str()), 2;
  }
  const auto served = server.serve();
  if (!served) return std::fprintf(stderr, "%s\n", served.error().message.c_str()), 1;
  return 0;
}
