// The smallest server: commands on this host, judged, bounded and in a sandbox, over MCP on stdio.
//
//   c++ -std=c++17 -O2 -I. examples/tiny_server.cpp -o tiny-server -pthread
//
// An MCP client starts it; --help lists its options. With containers, too, it has two macros and an
// argument more:
//
//   #define CODEEXEC_IMPLEMENT_AGENT
//   #define CODEEXEC_IMPLEMENT_CONTAINERS
//   return codeexec::server_main(argc, argv, {&codeexec::features::containers});
#ifndef CODEEXEC_IMPLEMENTED
#define CODEEXEC_IMPLEMENT_CORE
#define CODEEXEC_IMPLEMENT_POLICY
#define CODEEXEC_IMPLEMENT_MCP
#define CODEEXEC_IMPLEMENT_TOOLS
#endif
#include "codeexec.hpp"

int main(int argc, char** argv) { return codeexec::server_main(argc, argv, {}); }
