// An MCP server that offers a tool of your own beside the execution tools.
//
//   c++ -std=c++17 -I. examples/custom_tool.cpp -o custom_tool -pthread
//
// Start it from an MCP client: it offers execute_command and count_words.
#define CODEEXEC_IMPLEMENTATION
#include "codeexec.hpp"

#include <cstdio>

namespace mcp = codeexec::mcp;

mcp::ToolResult count_words(const mcp::Call& call) {
  std::int64_t words = 0;
  bool inside = false;
  for (const char c : call.argument("text").as_string()) {
    const bool blank = c == ' ' || c == '\n' || c == '\t';
    if (!blank && !inside) ++words;
    inside = !blank;
  }
  return mcp::ToolResult::with_structured(codeexec::Json::object({{"words", words}}));
}

int main() {
  mcp::ServerOptions options;
  options.name = "custom-tool";
  mcp::Server server(options);

  // This one description makes the schema that clients see and the check of every call.
  mcp::Parameter text;
  text.name = "text";
  text.description = "The text whose words are counted.";
  text.required = true;
  mcp::Tool tool;
  tool.name = "count_words";
  tool.description = "Counts the words of a text.";
  tool.parameters = {text};
  tool.read_only = true;
  tool.handler = count_words;

  auto here = codeexec::LocalExecutor::create({});
  if (!here) return std::fprintf(stderr, "%s\n", here.error().message.c_str()), 2;
  for (const auto& added : {codeexec::add_execution_tools(server, *here), server.add(tool)})
    if (!added) return std::fprintf(stderr, "%s\n", added.error().message.c_str()), 2;

  const auto served = server.serve();  // until the client closes the input
  if (!served) return std::fprintf(stderr, "%s\n", served.error().message.c_str()), 1;
}
