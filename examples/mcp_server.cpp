// The whole MCP server: `codeexec-mcp --help` lists its options.
//
//   c++ -std=c++17 -O2 -I. examples/mcp_server.cpp -o codeexec-mcp -pthread
//
// An MCP client starts it. Without a client, codeexec-mcp --run 'echo hello' runs one command.
#define CODEEXEC_IMPLEMENTATION
#include "codeexec.hpp"

int main(int argc, char** argv) { return codeexec::server_main(argc, argv); }
