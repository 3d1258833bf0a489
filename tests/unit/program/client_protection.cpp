// --client-config over an entry that is there: what protects it is not taken away.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <unistd.h>

#include "../../helpers/server_support.hpp"
#include "client_helpers.hpp"
#include "../tools/helpers.hpp"

using codeexec::Json;
using codeexec::ProcessResult;
using support::configure;
using support::exists;
using support::has;
using support::lines_of;
using support::parsed;
using support::read_file;
using support::Strings;
using support::TempDir;

namespace {

struct Form {
  const char* client;
  const char* file;
};
// JSON, JSON with types, TOML, and the list of opencode.
const std::vector<Form> forms = {{"cursor", ".cursor/mcp.json"},
                                 {"claude-code", ".claude.json"},
                                 {"codex", ".codex/config.toml"},
                                 {"opencode", ".config/opencode/opencode.json"}};

ProcessResult write_entry(const TempDir& home, const std::string& client, Strings words) {
  words.insert(words.begin(), "--write");
  return configure(home, client, words);
}

}  // namespace

TEST_CASE("an entry keeps its protection when the new options do not name it") {
  struct Row {
    Strings before, after;
    const char* lost;
  };
  const TempDir work;
  const std::string folder = work.path();
  const std::string settings = work.file("settings.json", R"({"network":"none"})");
  const std::vector<Row> rows = {
      {{"--allowed-paths", folder}, {}, "--allowed-paths"},
      {{"--allowed-paths=" + folder}, {"--timeout", "9"}, "--allowed-paths"},
      {{"--workspace", folder}, {}, "--workspace"},
      {{"--sandbox", "strict"}, {}, "--sandbox"},
      {{"--sandbox", "best-effort"}, {"--allowed-paths", folder}, "--sandbox"},
      {{"--sandbox=strict"}, {"--network", "none"}, "--sandbox"},
      {{"--network", "none"}, {}, "--network"},
      {{"--network=loopback"}, {"--sandbox", "best-effort"}, "--network"},
      {{"--allowed-paths", folder, "--network", "none"}, {"--network", "none"}, "--allowed-paths"},
      {{"--allowed-paths", folder, "--read-only", "/usr"},
       {"--allowed-paths", folder},
       "--read-only"},
      {{"--private-home", "command"}, {}, "--private-home"},
      {{"--pid-namespace"}, {}, "--pid-namespace"},
      {{"--protected-paths", "secret"}, {}, "--protected-paths"},
      {{"--blocked-commands", "git push.*"}, {"--allowed-paths", folder}, "--blocked-commands"},
      {{"--blocked-commands", "git push.*"}, {"--sandbox", "off"}, "--blocked-commands"},
      {{"--allowed-commands", "git .*"}, {}, "--allowed-commands"},
      {{"--ask-commands", "rm .*"}, {}, "--ask-commands"},
      {{"--delete-guard"}, {}, "--delete-guard"},
      {{"--disable-tool", "execute_code"}, {}, "--disable-tool"},
      {{"--secret-env", "TOKEN"}, {}, "--secret-env"},
      {{"--limit-memory", "1g"}, {}, "--limit-memory"},
      {{"--limit-processes", "50"}, {"--limit-memory", "1g"}, "--limit-processes"},
      {{"--execution-mode", "docker"}, {}, "--execution-mode"},
      {{"--execution-mode", "docker", "--docker-network-mode", "none"},
       {"--execution-mode", "docker"},
       "--docker-network-mode"},
      {{"--config", settings}, {}, "--config"},
      {{"--config", settings}, {"--sandbox", "off"}, "--config"},
  };
  for (const Form& form : forms) {
    for (const Row& row : rows) {
      CAPTURE(form.client);
      CAPTURE(row.lost);
      const TempDir home;
      REQUIRE(write_entry(home, form.client, row.before).exit_code == 0);
      const std::string before = read_file(home / form.file);
      const ProcessResult r = write_entry(home, form.client, row.after);
      CHECK(r.exit_code == 1);
      CHECK(r.out == "");
      CHECK_MESSAGE(lines_of(r.err).size() == 1, r.err);
      CHECK_MESSAGE(has(r.err, std::string("is protected by ") + row.lost + ":"), r.err);
      CHECK(has(r.err, std::string("--client-config ") + form.client + " --remove"));
      CHECK(read_file(home / form.file) == before);
      CHECK_FALSE(exists(home / form.file + ".bak"));
      // Once it is taken out, anything goes in.
      CHECK(configure(home, form.client, {"--remove"}).exit_code == 0);
      CHECK(write_entry(home, form.client, row.after).exit_code == 0);
    }
  }
}

TEST_CASE("what is named anew, or dropped by --sandbox off, is replaced") {
  const TempDir work;
  const std::string folder = work.path();
  const std::string settings = work.file("settings.json", "{\"allowed_paths\":[\"/srv\"]}");
  const std::vector<std::pair<Strings, Strings>> rows = {
      {{"--allowed-paths", folder}, {"--allowed-paths", "/srv"}},
      {{"--allowed-paths", folder}, {"--config", settings}},
      {{"--allowed-paths", folder, "--network", "none"}, {"--sandbox", "off"}},
      {{"--workspace", folder, "--protected-paths", "x"}, {"--sandbox", "off"}},
      {{"--network", "none"}, {"--network", "host"}},
      {{"--sandbox", "strict"}, {"--sandbox", "best-effort"}},
      {{"--network", "host", "--timeout", "9"}, {}},
      {{"--sandbox", "off"}, {}},
      {{"--blocked-commands", "a"}, {"--blocked-commands", "b", "--network", "none"}},
  };
  for (const Form& form : forms) {
    for (const auto& [before, after] : rows) {
      const TempDir home;
      REQUIRE(write_entry(home, form.client, before).exit_code == 0);
      const ProcessResult r = write_entry(home, form.client, after);
      CHECK_MESSAGE(r.exit_code == 0, r.err);
      for (const std::string& word : after) CHECK(has(read_file(home / form.file), word));
    }
  }
}

TEST_CASE("an entry of another program is not replaced, as its protection is not known") {
  const TempDir home;
  const Strings entries = {
      R"({"command": "docker", "args": ["run", "--network", "none", "image", "codeexec-mcp"]})",
      R"({"command": "/usr/bin/bwrap", "args": ["--ro-bind", "/", "/", "codeexec-mcp"]})",
      R"({"command": "sh", "args": ["-c", "exec codeexec-mcp --network none"]})",
      R"({"command": ["codeexec-mcp", 7]})", R"({"url": "http://127.0.0.1:9/mcp"})"};
  for (const std::string& entry : entries) {
    const std::string text = "{\"mcpServers\": {\"codeexec\": " + entry + "}}";
    const std::string file = home.file(".cursor/mcp.json", text);
    const ProcessResult r = write_entry(home, "cursor", {});
    CHECK(r.exit_code == 1);
    CHECK(lines_of(r.err).size() == 1);
    CHECK_MESSAGE(has(r.err, "whose protection is not known here: take it out first"), r.err);
    CHECK(read_file(file) == text);
  }
  const std::string file = home.file(
      ".codex/config.toml", "[mcp_servers.codeexec]\ncommand = 'docker'\nargs = ['run', 'x']\n");
  CHECK(has(write_entry(home, "codex", {}).err, "starts 'docker', whose protection is not known"));
  CHECK(has(read_file(file), "'docker'"));
  // These start it and add nothing, and what follows is read.
  for (const std::string& words :
       Strings{R"("codeexec-mcp", "--network", "none")", R"("codeexec-mcp", "--network=none")"}) {
    home.file(
        ".cursor/mcp.json",
        "{\"mcpServers\": {\"codeexec\": {\"command\": \"uvx\", \"args\": [" + words + "]}}}");
    CHECK(has(write_entry(home, "cursor", {}).err, "is protected by --network"));
    CHECK(write_entry(home, "cursor", {"--network", "none"}).exit_code == 0);
  }
}

TEST_CASE("members of an entry that are not ours stay") {
  const TempDir home;
  home.file(".gemini/settings.json",
            "{\"mcpServers\": {\"codeexec\": {\"command\": \"codeexec-mcp\", \"cwd\": \"/srv\", "
            "\"trust\": false, \"includeTools\": [\"execute_command\"]}}}");
  CHECK(write_entry(home, "gemini", {}).exit_code == 0);
  const Json entry = parsed(read_file(home / ".gemini/settings.json"))["mcpServers"]["codeexec"];
  CHECK(entry["cwd"] == Json("/srv"));
  CHECK(entry["includeTools"].size() == 1);
  CHECK(entry["trust"] == Json(false));
  CHECK(entry["command"] == Json(support::real_path(CODEEXEC_MCP)));
  home.file(".config/opencode/opencode.json",
            "{\"mcp\": {\"codeexec\": {\"type\": \"local\", \"command\": [\"codeexec-mcp\"], "
            "\"enabled\": false}}}");
  CHECK(write_entry(home, "opencode", {}).exit_code == 0);
  CHECK(parsed(read_file(home / ".config/opencode/opencode.json"))["mcp"]["codeexec"]["enabled"] ==
        Json(false));
  home.file(".codex/config.toml",
            "[mcp_servers.codeexec]\nstartup_timeout_sec = 20\ncommand = \"codeexec-mcp\"\n"
            "default_tools_approval_mode = \"prompt\"\n");
  CHECK(write_entry(home, "codex", {}).exit_code == 0);
  CHECK(has(read_file(home / ".codex/config.toml"), "startup_timeout_sec = 20\n"));
  CHECK(has(read_file(home / ".codex/config.toml"), "default_tools_approval_mode = \"prompt\"\n"));
}

TEST_CASE("an entry that confines is approved, and one that does not is not") {
  const auto text_of = [](const TempDir& home, const Form& form, const Strings& words) {
    const ProcessResult r = write_entry(home, form.client, words);
    REQUIRE_MESSAGE(r.exit_code == 0, r.err);
    CHECK(has(r.err, "approval: "));
    return read_file(home / form.file);
  };
  const std::vector<std::pair<Form, std::string>> rows = {
      {{"codex", ".codex/config.toml"}, "default_tools_approval_mode = \"approve\""},
      {{"gemini", ".gemini/settings.json"}, "\"trust\": true"},
      {{"qwen", ".qwen/settings.json"}, "\"trust\": true"}};
  for (const auto& row : rows) {
    const auto& [form, approval] = row;
    CAPTURE(row.first.client);
    const TempDir home;
    CHECK_FALSE(has(text_of(home, form, {"--sandbox", "off"}), approval));
    CHECK(has(text_of(home, form, {}), approval));
    CHECK_FALSE(has(text_of(home, form, {"--sandbox", "off"}), approval));
    CHECK(has(text_of(home, form, {"--allowed-paths", "/srv"}), approval));
    CHECK(has(text_of(home, form, {"--allowed-paths", "/srv", "--execution-mode", "docker"}),
              approval));
  }
}

TEST_CASE("what will be protected is said before anything is written") {
  const TempDir home;
  const auto said = [&](const Strings& words) {
    const ProcessResult r = configure(home, "cursor", words);
    CHECK_MESSAGE(r.exit_code == 0, r.err);
    return r.err;
  };
  CHECK(has(said({}),
            "protected: commands write only to the project that the client opens, HOME "
            "is hidden; the network is open (--network none closes it)"));
  CHECK(has(said({"--allowed-paths", "/srv", "--network", "none", "--private-home", "off"}),
            "protected: commands write only to '/srv', HOME is the user's; the network is closed"));
  CHECK(has(said({"--workspace", "/srv"}), "commands write only to '/srv'"));
  CHECK(has(said({"--sandbox", "off"}), "NOT protected: commands run with all rights of the user"));
  CHECK(has(said({"--execution-mode", "docker"}), "protected: commands run in a container"));
  CHECK(has(said({"--write"}), "protected: "));
  const auto warns = [&](const std::string& folder) {
    return has(said({"--allowed-paths", folder}), "is no project: name the project's folder");
  };
  CHECK(warns("/"));
  CHECK(warns(home.path()));
  CHECK(warns(home.path() + "/../" + home.path().substr(home.path().rfind('/') + 1)));
  CHECK(warns("/root"));
  CHECK(warns("/home/somebody"));
  CHECK_FALSE(warns("/home/somebody/project"));
  CHECK_FALSE(warns(home.directory("project")));
  CHECK(has(said({}), "user 0: ") == (::geteuid() == 0));
}
