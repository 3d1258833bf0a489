// What the tests of --client-config share.
#ifndef CODEEXEC_TESTS_UNIT_TOOLS_CLIENT_HELPERS_HPP
#define CODEEXEC_TESTS_UNIT_TOOLS_CLIENT_HELPERS_HPP

#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <sys/stat.h>

#include "../../helpers/server_support.hpp"

namespace support {

struct KnownClient {
  std::string name, file, servers, members;
};
inline const std::vector<KnownClient> json_clients = {
    {"claude-code", ".claude.json", "mcpServers", "type command args"},
    {"claude-desktop", ".config/Claude/claude_desktop_config.json", "mcpServers", "command args"},
    {"cursor", ".cursor/mcp.json", "mcpServers", "command args"},
    {"vscode", ".config/Code/User/mcp.json", "servers", "type command args"},
    {"gemini", ".gemini/settings.json", "mcpServers", "command args trust"},
    {"qwen", ".qwen/settings.json", "mcpServers", "command args trust"},
    {"cline", ".cline/data/settings/cline_mcp_settings.json", "mcpServers", "command args"},
    {"continue", ".continue/mcpServers/codeexec.json", "mcpServers", "command args"},
    {"copilot", ".copilot/mcp-config.json", "mcpServers", "type command args tools"},
    {"zed", ".config/zed/settings.json", "context_servers", "command args"},
    {"windsurf", ".codeium/windsurf/mcp_config.json", "mcpServers", "command args"}};

// The program as a user with this home directory runs it.
inline codeexec::ProcessResult configure(const TempDir& home, const std::string& client,
                                         const Strings& more = {}, Strings environment = {}) {
  Strings words = {CODEEXEC_MCP, "--client-config", client};
  words.insert(words.end(), more.begin(), more.end());
  environment.push_back("HOME=" + home.path());
  return run_argv(words, home.path(), environment);
}

inline const Strings write_it = {"--write", "--timeout", "9"};

inline mode_t mode_of(const std::string& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

// What a Python module's loads() makes of a text; null after saying that it cannot be had.
inline codeexec::Json loaded(const std::string& module, const std::string& function,
                             const std::string& text) {
  const TempDir place;
  const codeexec::ProcessResult r =
      run_argv({"python3", "-c",
                "import json, sys\ntry:\n  import " + module + " as m\nexcept ImportError:\n" +
                    "  sys.exit(77)\nprint(json.dumps(m." + function +
                    "(open(sys.argv[1], encoding='utf-8', newline='').read())))",
                place.file("text", text)},
               "/", {});
  if (r.exit_code == 77) {
    MESSAGE("SKIPPED: this Python has no " << module);
    return codeexec::Json();
  }
  REQUIRE_MESSAGE(r.exit_code == 0, r.err, text);
  return parsed(r.out);
}

inline codeexec::Json toml(const std::string& text) { return loaded("tomllib", "loads", text); }

}  // namespace support

#endif  // CODEEXEC_TESTS_UNIT_TOOLS_CLIENT_HELPERS_HPP
