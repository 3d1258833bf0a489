// --client-config and --write: what clients need to start the server, and their files.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <sys/stat.h>
#include <unistd.h>

#include "../../helpers/server_support.hpp"
#include "client_helpers.hpp"
#include "../tools/helpers.hpp"

using codeexec::Json;
using codeexec::ProcessResult;
using support::begins;
using support::configure;
using support::ends;
using support::exists;
using support::has;
using support::has_program;
using support::json_clients;
using support::KnownClient;
using support::lines_of;
using support::loaded;
using support::mode_of;
using support::names_of;
using support::parsed;
using support::read_file;
using support::run_argv;
using support::Strings;
using support::TempDir;
using support::toml;
using support::words_json;
using support::write_file;
using support::write_it;

namespace {

// The file stays as it is, and what to paste is printed.
void check_kept(const ProcessResult& r, const std::string& file, const std::string& text,
                const std::string& reason) {
  CAPTURE(text.substr(0, 200));
  CAPTURE(r.err);
  CHECK(r.exit_code == 1);
  CHECK(lines_of(r.err).size() == 1);
  CHECK(has(r.err, reason));
  CHECK(has(r.err, file));
  CHECK(has(r.out, "codeexec"));
  CHECK_FALSE(has(r.out, "@@"));
  CHECK(read_file(file) == text);
  CHECK_FALSE(exists(file + ".bak"));
}

// Whether `all` is `old` with one piece more in it.
bool adds_one_piece(const std::string& old, const std::string& all) {
  std::size_t begin = 0;
  while (begin < old.size() && begin < all.size() && old[begin] == all[begin]) ++begin;
  return all.size() > old.size() && ends(all, old.substr(begin));
}

}  // namespace

TEST_CASE("each client gets what it reads, with the file it goes into") {
  const TempDir home;
  const std::string program = support::real_path(CODEEXEC_MCP);
  // Marks of JSON, TOML and YAML, and what the command line gives another meaning.
  const Strings options = {"--workspace",        home.path(), "--allowed-paths",
                           home.path(),          "/usr",      "--blocked-commands",
                           "a \"b\" \\d+ # 'c'", ": - {x}",   "\xc3\xa9\ttab",
                           "--set-env=--X=1",    "Y=\n2",     "--no-auto-venv"};
  for (const KnownClient& client : json_clients) {
    CAPTURE(client.name);
    const ProcessResult r = configure(home, client.name, options);
    CHECK(r.exit_code == 0);
    CHECK(has(r.err, "put this into " + home / client.file));
    const Json value = parsed(r.out);
    const Json& entry = value[client.servers]["codeexec"];
    CHECK(names_of(value) == client.servers);
    CHECK(names_of(entry) == client.members);
    CHECK(entry["command"] == Json(program));
    CHECK(entry["args"] == words_json(options));
    CHECK_FALSE(exists(home / client.file));
  }
  if (!has_program("python3")) return;
  const ProcessResult codex = configure(home, "codex", options);
  CHECK(has(codex.err, home / ".codex/config.toml"));
  if (const Json value = toml(codex.out); !value.is_null()) {
    CHECK(value["mcp_servers"]["codeexec"]["command"] == Json(program));
    CHECK(value["mcp_servers"]["codeexec"]["args"] == words_json(options));
  }
  const ProcessResult massgen = configure(home, "massgen", options);
  CHECK(massgen.exit_code == 0);
  if (const Json value = loaded("yaml", "safe_load", massgen.out); !value.is_null()) {
    const Json& server = value["mcp_servers"][0];
    CHECK(server["name"] == Json("command_line"));
    CHECK(server["type"] == Json("stdio"));
    CHECK(server["command"] == Json(program));
    CHECK(server["args"] == words_json(options));
    // Its client starts programs of a list only, unless the entry names them.
    CHECK(server["security"]["allowed_executables"] == words_json({"codeexec-mcp"}));
  }
  const ProcessResult opencode = configure(home, "opencode", options);
  CHECK(has(opencode.err, "put this into " + home / ".config/opencode/opencode.json"));
  const Json entry = parsed(opencode.out)["mcp"]["codeexec"];
  CHECK(names_of(entry) == "type command enabled");
  CHECK(entry["type"] == Json("local"));
  CHECK(entry["enabled"] == Json(true));
  Strings whole = {program};
  whole.insert(whole.end(), options.begin(), options.end());
  CHECK(entry["command"] == words_json(whole));
}

TEST_CASE("a client can start what it is given, from any folder") {
  const TempDir home;
  home.directory("sub");
  home.file("c.json", R"({"timeout":7})");
  const ProcessResult r = configure(home, "cursor",
                                    {"--workspace", "sub", "--allowed-paths=.", "--config",
                                     "c.json", "--read-only", "./sub/../sub"});
  const Json value = parsed(r.out);
  const Json& entry = value["mcpServers"]["codeexec"];
  CHECK(entry["args"] == words_json({"--workspace", home / "sub", "--allowed-paths", home.path(),
                                     "--config", home / "c.json", "--read-only", home / "sub"}));
  Strings words = {entry["command"].as_string()};
  for (const Json& word : entry["args"].items()) words.push_back(word.as_string());
  words.insert(words.end(), {"--sandbox", "off", "--check", "true"});
  CHECK(run_argv(words, "/", {}).exit_code != 2);
  // These are not paths yet: the client or its shell makes them.
  const Json kept = parsed(configure(home, "vscode", {"--workspace", "${workspaceFolder}"}).out);
  CHECK(kept["servers"]["codeexec"]["args"] == words_json({"--workspace", "${workspaceFolder}"}));
}

TEST_CASE("arguments in which a client sees variables are named") {
  const TempDir home;
  const Strings pattern = {"--blocked-commands", "git ${x}"};
  for (const std::string& client : Strings{"claude-code", "cursor", "vscode", "gemini", "massgen"})
    CHECK_MESSAGE(has(configure(home, client, pattern).err, "takes what follows $"), client);
  for (const std::string& client : Strings{"claude-desktop", "codex"})
    CHECK_MESSAGE(!has(configure(home, client, pattern).err, "takes what follows"), client);
}

TEST_CASE("the folders that variables name are used") {
  const TempDir home;
  const auto file_of = [&](const std::string& client, const std::string& variable) {
    return configure(home, client, {}, {variable}).err;
  };
  CHECK(has(file_of("claude-desktop", "XDG_CONFIG_HOME=/x"),
            "into /x/Claude/claude_desktop_config.json"));
  CHECK(has(file_of("vscode", "XDG_CONFIG_HOME=/x"), "into /x/Code/User/mcp.json"));
  CHECK(has(file_of("codex", "CODEX_HOME=/x"), "into /x/config.toml"));
  CHECK(has(file_of("claude-code", "CLAUDE_CONFIG_DIR=/x"), "into /x/.claude.json"));
  CHECK(has(file_of("cline", "CLINE_DATA_DIR=/x"), "into /x/settings/cline_mcp_settings.json"));
  CHECK(has(file_of("continue", "CONTINUE_GLOBAL_DIR=/x"), "into /x/mcpServers/codeexec.json"));
  CHECK(has(file_of("copilot", "COPILOT_HOME=/x"), "into /x/mcp-config.json"));
  CHECK(has(file_of("opencode", "XDG_CONFIG_HOME=/x"), "into /x/opencode/opencode.json"));
  CHECK(has(file_of("zed", "XDG_CONFIG_HOME=/x"), "into /x/zed/settings.json"));
  // A relative one is of no folder in particular.
  CHECK(has(file_of("codex", "CODEX_HOME=x"), "into " + home / ".codex/config.toml"));
  const ProcessResult none = run_argv({CODEEXEC_MCP, "--client-config", "cursor"}, "/", {});
  CHECK(none.exit_code == 1);
  CHECK(has(none.err, "HOME names no folder: give the client's file, as --write FILE"));
}

TEST_CASE("--write makes a file that there is not, for its user alone, and once") {
  const TempDir home;
  for (const KnownClient& client : json_clients) {
    CAPTURE(client.name);
    const std::string file = home / client.file;
    const ProcessResult r = configure(home, client.name, write_it);
    CHECK(r.exit_code == 0);
    CHECK(begins(r.out, "--- /dev/null\n+++ " + file + "\n@@ -0,0 +1,"));
    CHECK(has(r.err, file + " has this entry"));
    CHECK(read_file(file) == configure(home, client.name, {"--timeout", "9"}).out);
    CHECK(mode_of(file) == 0600);
    const ProcessResult again = configure(home, client.name, write_it);
    CHECK(again.exit_code == 0);
    CHECK(again.out == "");
    CHECK(has(again.err, file + " has this entry"));
    CHECK_FALSE(exists(file + ".bak"));
  }
  CHECK(configure(home, "codex", write_it).exit_code == 0);
  CHECK(read_file(home / ".codex/config.toml") == configure(home, "codex", {"--timeout", "9"}).out);
}

TEST_CASE("--write FILE is for any other file of the client") {
  const TempDir home;
  CHECK(configure(home, "claude-code", {"--write", ".mcp.json"}).exit_code == 0);
  CHECK(parsed(read_file(home / ".mcp.json"))["mcpServers"].size() == 1);
  CHECK(configure(home, "vscode", {"--write", home / "p/.vscode/mcp.json"}).exit_code == 0);
  CHECK(parsed(read_file(home / "p/.vscode/mcp.json"))["servers"].size() == 1);
  CHECK_FALSE(exists(home / ".claude.json"));
}

TEST_CASE("other servers and unknown members keep their bytes") {
  const Strings texts = {
      "{\n\t\"n\": 1.50e+5,\n\t\"mcpServers\": {\n\t\t\"a\": {\"command\": \"x\"}\n\t},\n\t\"z\": "
      "[1,\n2]\n}\n",
      "{\n    \"mcpServers\": {\n        \"a\": {\n            \"command\": \"x}\\\"{\"\n        "
      "},\n        \"b\": null\n    }\n}",
      "{\"mcpServers\":{\"a\":{\"command\":\"x\"}},\"k\":-0.0}",
      "{\r\n  \"a\": 1,\r\n  \"mcpServers\": {\r\n    \"b\": {}\r\n  }\r\n}\r\n",
      "{ \"mcpServers\" : { \"a\" : [ ] } }\n",
      "{\n  \"deep\": {\"mcpServers\": {\"codeexec\": 1}},\n  \"big\": "
      "123456789012345678901234567890\n}\n",
      "\n\n{\"x\": \"\\ud800 codeexec\"}\n\n"};
  for (const std::string& text : texts) {
    CAPTURE(text);
    const TempDir home;
    const std::string file = home.file(".cursor/mcp.json", text, 0640);
    const ProcessResult r = configure(home, "cursor", write_it);
    CHECK_MESSAGE(r.exit_code == 0, r.err);
    const std::string now = read_file(file);
    CHECK(adds_one_piece(text, now));
    Json wanted = parsed(text);
    Json servers = wanted["mcpServers"];
    servers.set(
        "codeexec",
        parsed(configure(home, "cursor", {"--timeout", "9"}).out)["mcpServers"]["codeexec"]);
    wanted.set("mcpServers", servers);
    CHECK(parsed(now) == wanted);
    CHECK(names_of(parsed(now)) == names_of(wanted));
    CHECK(read_file(file + ".bak") == text);
    CHECK(mode_of(file) == 0640);
    CHECK(mode_of(file + ".bak") == 0640);
    CHECK(has(r.err, file + " is changed; the file before is " + file + ".bak"));
  }
}

TEST_CASE("the layout of the file is kept: indentation, line ends, one line") {
  const auto after = [](const std::string& text) {
    const TempDir home;
    const std::string file = home.file(".cursor/mcp.json", text);
    CHECK(configure(home, "cursor", {"--write"}).exit_code == 0);
    return read_file(file);
  };
  const std::string entry = Json(support::real_path(CODEEXEC_MCP)).dump();
  CHECK(after("{\n\t\"mcpServers\": {\n\t\t\"a\": 1\n\t}\n}\n") ==
        "{\n\t\"mcpServers\": {\n\t\t\"a\": 1,\n\t\t\"codeexec\": {\n\t\t\t\"command\": " + entry +
            ",\n\t\t\t\"args\": []\n\t\t}\n\t}\n}\n");
  CHECK(after("{\r\n \"mcpServers\": {}\r\n}") ==
        "{\r\n \"mcpServers\": {\r\n  \"codeexec\": {\r\n   \"command\": " + entry +
            ",\r\n   \"args\": []\r\n  }\r\n }\r\n}");
  CHECK(after("{\"mcpServers\": {\"a\": 1}}") ==
        "{\"mcpServers\": {\"a\": 1, \"codeexec\": "
        "{\"command\": " +
            entry + ", \"args\": []}}}");
  for (const std::string& blank : Strings{"", " \n", "{}", "{ }"})
    CHECK(begins(after(blank), "{\n  \"mcpServers\": {\n    \"codeexec\": {\n      \"command\": "));
}

TEST_CASE("an entry of ours is changed in its place, and the difference shows it") {
  const TempDir home;
  const std::string text =
      "{\n  \"mcpServers\": {\n    \"codeexec\": {\n      \"command\": \"/old/codeexec-mcp\",\n    "
      "  "
      "\"env\": {\"K\": \"}\"}\n    },\n    \"other\": {\"url\": \"\\u001b[31m\"}\n  }\n}\n";
  const std::string file = home.file(".cursor/mcp.json", text);
  const ProcessResult r = configure(home, "cursor", write_it);
  CHECK(r.exit_code == 0);
  const Json now = parsed(read_file(file));
  CHECK(names_of(now["mcpServers"]) == "codeexec other");
  CHECK(names_of(now["mcpServers"]["codeexec"]) == "command env args");
  CHECK(now["mcpServers"]["codeexec"]["command"] == Json(support::real_path(CODEEXEC_MCP)));
  CHECK(now["mcpServers"]["codeexec"]["env"] == parsed("{\"K\": \"}\"}"));
  CHECK(begins(r.out, "--- " + file + "\n+++ " + file + "\n@@ -1,8 +1,9 @@\n {\n"));
  CHECK(has(r.out, "\n-      \"command\": \"/old/codeexec-mcp\",\n"));
  CHECK(has(r.out, "\n+      \"args\": "));
  CHECK(ends(read_file(file), "\n    },\n    \"other\": {\"url\": \"\\u001b[31m\"}\n  }\n}\n"));

  // What a terminal would obey is escaped, and a long line is cut.
  const std::string raw = "{\"k\": \"\x7f" + std::string(5000, 'x') + "\"}\n";
  write_file(file, raw);
  const ProcessResult shown = configure(home, "cursor", write_it);
  CHECK(shown.exit_code == 0);
  CHECK(has(shown.out, "-{\"k\": \"\\x7fxxx"));
  CHECK(has(shown.out, "xxx ...\n"));
  CHECK(shown.out.size() < 1500);
}

TEST_CASE("the difference is one that patch(1) can apply") {
  if (!has_program("patch")) return;
  const auto members = [](char name) {
    std::string many;
    for (int i = 0; i < 20; ++i)
      many += std::string("  \"") + name + std::to_string(i) + "\": 1,\n";
    return many;
  };
  const Strings texts = {"{\n  \"mcpServers\": {}\n}\n",
                         "{\n" + members('a') + "  \"mcpServers\": {\n    \"a\": 1\n  },\n" +
                             members('b') + "  \"last\": 1\n}\n",
                         "{\n  \"mcpServers\": {\n    \"codeexec\": 1\n  }\n}\n"};
  for (const std::string& text : texts) {
    const TempDir home;
    const std::string file = home.file(".cursor/mcp.json", text);
    const ProcessResult r = configure(home, "cursor", write_it);
    REQUIRE_MESSAGE(r.exit_code == 0, r.err);
    const std::string copy = home.file("copy", text);
    const std::string diff = home.file("diff", r.out);
    const ProcessResult patched =
        run_argv({"patch", "--fuzz=0", "--silent", "-i", diff, copy}, home.path(), {});
    CHECK_MESSAGE(patched.exit_code == 0, patched.out, r.out);
    CHECK(read_file(copy) == read_file(file));
  }
}

TEST_CASE("JSON that is not plain, or not what is expected, stays as it is") {
  const std::vector<std::pair<std::string, std::string>> texts = {
      {"{\n  // mine\n  \"mcpServers\": {}\n}\n", "it has a comment at line 2, column 3"},
      {"{\"mcpServers\": {} /* all */}", "it has a comment at line 1, column 19"},
      {"{\"mcpServers\": {\"a\": 1,}}",
       "it has a comma before a closing bracket at line 1, column 23"},
      {"{\"a\": \"// no comment\", \"b\": [1,\n2,\n]}",
       "it has a comma before a closing bracket at line 2, column 2"},
      {"{\"mcpServers\": {", "not plain JSON"},
      {"\xef\xbb\xbf{}", "it begins with a byte order mark (BOM)"},
      {"{\"a\": \"\xff\"}", "not plain JSON"},
      {std::string("{}\0", 3), "not plain JSON"},
      {"mcpServers:\n  a: 1\n", "not plain JSON"},
      {"{\"mcpServers\": {}, \"mcpServers\": {}}", "not plain JSON"},
      {"{\"mcpServers\": {\"codeexec\": 1, \"codeexec\": 2}}", "not plain JSON"},
      {std::string(100000, '['), "not plain JSON"},
      {"{\"mcp\\u0053ervers\": {}}", "cannot be edited for certain"},
      {"{\"mcpServers\": {\"code\\u0065xec\": {}}}", "cannot be edited for certain"},
      {"[]", "no JSON object"},
      {"\"codeexec\"", "no JSON object"},
      {"{\"mcpServers\": []}", "its mcpServers is no object"},
      {"{\"mcpServers\": null}", "its mcpServers is no object"}};
  for (const auto& [text, reason] : texts) {
    const TempDir home;
    const std::string file = home.file(".cursor/mcp.json", text);
    const ProcessResult r = configure(home, "cursor", write_it);
    check_kept(r, file, text, reason);
    CHECK(parsed(r.out)["mcpServers"]["codeexec"]["args"] == words_json({"--timeout", "9"}));
  }
}

TEST_CASE("Codex's TOML: our table is added at the end, or replaced") {
  if (!has_program("python3")) return;
  const Strings texts = {
      "",
      "model = \"o\"",
      "model = \"o\"\n\n[projects.\"/home/me/codeexec\"]\ntrust_level = \"x\"\n",
      "a = [\n  1, # ]\n]\n\n[mcp_servers.a]\ncommand = \"x\"\n[mcp_servers.a.env]\nK = \"[\"\n",
      "[mcp_servers.codeexec] # old\ncommand = \"/old/codeexec-mcp\"\nargs = [\"a#b\"]\nenv = { A "
      "= \"1\" }\n\n# "
      "about b\n[mcp_servers.b]\ncommand = \"y\"\n",
      "[mcp_servers.codeexec]",
      "[mcp_servers.b]\nargs = []\n[mcp_servers.codeexec]\nargs = [ ]"};
  for (const std::string& text : texts) {
    CAPTURE(text);
    const TempDir home;
    const std::string file = home.file(".codex/config.toml", text);
    const ProcessResult r = configure(home, "codex", write_it);
    CHECK_MESSAGE(r.exit_code == 0, r.err);
    const std::string now = read_file(file);
    const Json value = toml(now);
    if (value.is_null()) return;
    Json wanted = toml(text);
    Json servers = wanted["mcp_servers"];
    Json entry = servers["codeexec"].is_object() ? servers["codeexec"] : Json::object();
    const Json ours = toml(configure(home, "codex", {"--timeout", "9"}).out);
    for (const Json::Member& member : ours["mcp_servers"]["codeexec"].members())
      entry.set(member.name, member.value);
    servers.set("codeexec", entry);
    wanted.set("mcp_servers", servers);
    CHECK_MESSAGE(value == wanted, now);
    CHECK((has(text, "# about b") == has(now, "# about b")));
    CHECK((text.empty() || read_file(file + ".bak") == text));
    const ProcessResult again = configure(home, "codex", write_it);
    CHECK(has(again.err, "has this entry"));
  }
}

TEST_CASE("TOML with the line ends of Windows keeps them") {
  const Strings texts = {"a = 1\r\n[b]\r\nc = \"d\"\r\n",
                         "[mcp_servers.codeexec]\r\nargs = []\r\n\r\n[b]\r\n"};
  for (const std::string& text : texts) {
    const TempDir home;
    const std::string file = home.file(".codex/config.toml", text);
    CHECK(configure(home, "codex", write_it).exit_code == 0);
    const std::string now = read_file(file);
    CHECK(has(now, "[mcp_servers.codeexec]\r\n"));
    CHECK(has(now, "\r\ncommand = "));
    for (const std::string& line : lines_of(now)) CHECK(ends(line, "\r"));
  }
}

TEST_CASE("TOML that may have our table in another form stays as it is") {
  const Strings texts = {"mcp_servers = { a = { command = \"x\" } }\n",
                         "mcp_servers.codeexec.command = \"x\"\n",
                         "[mcp_servers]\ncodeexec = { command = \"x\" }\n",
                         "[mcp_servers]\ncodeexec.command = \"x\"\n",
                         "[mcp_servers]\n\"codeexec\" = { command = \"x\" }\n",
                         "[mcp_servers.\"codeexec\"]\ncommand = \"x\"\n",
                         "[\"mcp_servers\".codeexec]\ncommand = \"x\"\n",
                         "[ mcp_servers . codeexec ]\ncommand = \"x\"\n",
                         "[mcp_servers.codeexec]\ncommand = \"x\"\n[mcp_servers.codeexec.env]\n",
                         "[mcp_servers.codeexec]\n[a]\n[mcp_servers.codeexec]\n",
                         "[mcp_servers.codeexec]\nargs = [\n  \"x\",\n]\n",
                         "[mcp_servers.codeexec]\nargs = [ \"x\"\n]\n",
                         "[mcp_servers.codeexec]\nargs = [ \"x\", \n[\"y\"]]\n",
                         "[mcp_servers.codeexec]\nx = [\n[1]]\n",
                         "[mcp_servers.codeexec]\nx = [ 1,\n[2]]\n",
                         "[mcp_servers.codeexec]\nargs = [ \"x\"\n, \"a=b\"]\n",
                         "[mcp_servers.codeexec]\nargs = [\n\"a=b\"]\n",
                         "[\"mcp\\u005fservers\".codeexec]\ncommand = \"x\"\n",
                         "[ \"mcp_serv\\u0065rs\".codeexec ]\ncommand = \"x\"\n",
                         "\"mcp_servers\" = { codeexec = { command = \"x\" } }\n",
                         "'mcp_servers'.codeexec.command = \"x\"\n",
                         "\"mcp\\u005fservers\".codeexec.command = \"x\"\n",
                         "[mcp_servers.\"code\\u0065xec\"]\ncommand = \"x\"\n",
                         "[mcp_servers]\n\"code\\u0065xec\" = { command = \"x\" }\n",
                         "\xef\xbb\xbf[mcp_servers.codeexec]\ncommand = \"x\"\n",
                         "a = \"\"\"\n[mcp_servers.codeexec]\n\"\"\"\n",
                         "a = '''\n'''\n"};
  for (const std::string& text : texts) {
    const TempDir home;
    const std::string file = home.file(".codex/config.toml", text);
    check_kept(configure(home, "codex", write_it), file, text, "its TOML is not clear at line");
  }
}

TEST_CASE("MassGen's YAML is never written") {
  const TempDir home;
  const std::string text = "agents:\n  - id: a\n";
  const std::string file = home.file("agents.yaml", text);
  const ProcessResult r = configure(home, "massgen", {"--write", file});
  CHECK(r.exit_code == 1);
  CHECK(has(r.err, "YAML is not edited here"));
  CHECK(has(r.out, "name: command_line"));
  CHECK(read_file(file) == text);
}

TEST_CASE("a symbolic link stays, and the file that it leads to is replaced") {
  const TempDir home;
  const std::string file = home.file("dotfiles/mcp.json", "{\"mcpServers\": {}}");
  home.directory(".cursor");
  REQUIRE(::symlink("../dotfiles/mcp.json", (home / ".cursor/mcp.json").c_str()) == 0);
  CHECK(configure(home, "cursor", write_it).exit_code == 0);
  CHECK(support::real_path(home / ".cursor/mcp.json") == file);
  CHECK(parsed(read_file(file))["mcpServers"].size() == 1);
  CHECK(read_file(file + ".bak") == "{\"mcpServers\": {}}");
  CHECK_FALSE(exists(home / ".cursor/mcp.json.bak"));
}

TEST_CASE("what is no file is refused") {
  const TempDir home;
  home.directory(".cursor/mcp.json");
  const ProcessResult folder = configure(home, "cursor", write_it);
  CHECK(folder.exit_code == 1);
  CHECK(lines_of(folder.err).size() == 1);
  CHECK(has(folder.err, "nothing was written, paste this"));
  REQUIRE(::mkfifo((home / "pipe").c_str(), 0600) == 0);
  const ProcessResult pipe = configure(home, "cursor", {"--write", home / "pipe"});
  CHECK(pipe.exit_code == 1);
  CHECK(has(pipe.err, "nothing was written, paste this"));
  CHECK_FALSE(exists(home / "pipe.bak"));
  const std::string file = home.file("file");
  CHECK(configure(home, "cursor", {"--write", file + "/x.json"}).exit_code == 1);
  const ProcessResult endless = configure(home, "cursor", {"--write", "/dev/zero"});
  CHECK(endless.exit_code == 1);
  CHECK(has(endless.err, "longer than 8388608 bytes"));
}

TEST_CASE("a backup is never overwritten") {
  const TempDir home;
  const std::string file = home.file(".cursor/mcp.json", "{}");
  home.file(".cursor/mcp.json.bak", "mine");
  home.file(".cursor/mcp.json.bak.1", "{} ");
  CHECK(has(configure(home, "cursor", write_it).err, "the file before is " + file + ".bak.2"));
  CHECK(read_file(file + ".bak") == "mine");
  CHECK(read_file(file + ".bak.1") == "{} ");
  CHECK(read_file(file + ".bak.2") == "{}");
  // The same bytes need no second copy.
  write_file(file, "{} ");
  CHECK(has(configure(home, "cursor", write_it).err, "the file before is " + file + ".bak.1"));
  CHECK_FALSE(exists(file + ".bak.3"));
}

TEST_CASE("a link of the backup's name is no backup, wherever it leads") {
  const TempDir home;
  const std::string file = home.file(".cursor/mcp.json", "{}");
  REQUIRE(::symlink("mcp.json", (file + ".bak").c_str()) == 0);
  CHECK(has(configure(home, "cursor", write_it).err, "the file before is " + file + ".bak.1"));
  CHECK(read_file(file + ".bak.1") == "{}");
}

TEST_CASE("a file of 8 MiB is read, a longer one is refused") {
  const TempDir home;
  const std::size_t most = std::size_t{8} << 20;
  const std::string edge = "{\"a\": \"" + std::string(most - 9, 'x') + "\"}";
  REQUIRE(edge.size() == most);
  const std::string file = home.file(".cursor/mcp.json", edge);
  CHECK(configure(home, "cursor", write_it).exit_code == 0);
  CHECK(adds_one_piece(edge, read_file(file)));
  REQUIRE(::unlink((file + ".bak").c_str()) == 0);
  write_file(file, edge + " ");
  check_kept(configure(home, "cursor", write_it), file, edge + " ", "longer than 8388608 bytes");
}

TEST_CASE("a file that changes meanwhile keeps the change") {
  for (const std::string& change : Strings{"echo '{}' > f.json", "echo '{}' > g; mv g f.json"}) {
    CAPTURE(change);
    const TempDir home;
    // The program waits while it shows the difference, which is more than a pipe holds.
    std::string old = "{\n  \"mcpServers\": {\n    \"codeexec\": [\n";
    for (int i = 0; i < 40000; ++i) old += "      12345678,\n";
    home.file("f.json", old + "      1\n    ]\n  }\n}\n");
    const ProcessResult r =
        run_argv({"sh", "-c",
                  "{ \"$0\" --client-config cursor --write f.json 2> err; echo $? > status; } |"
                  "{ read first; " +
                      change + "; cat > rest; }",
                  CODEEXEC_MCP},
                 home.path(), {"HOME=" + home.path()});
    CHECK(r.exit_code == 0);
    CHECK(read_file(home / "status") == "1\n");
    CHECK(has(read_file(home / "err"), "it changed meanwhile"));
    CHECK(read_file(home / "f.json") == "{}\n");
    CHECK_FALSE(exists(home / "f.json.bak"));
  }
}

TEST_CASE("a folder or file that may not be changed is not") {
  const TempDir home;
  const std::string file = home.file("client/f.json", "{}");
  // Root may write anywhere, so it is somebody else who tries; with a program that they may run.
  Strings as_other;
  const bool is_root = ::geteuid() == 0;
  if (is_root) {
    as_other = {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"};
    Strings trial = as_other;
    trial.push_back("true");
    if (run_argv({"sh", "-c", "command -v setpriv"}, "/", {}).exit_code != 0 ||
        run_argv(trial, "/", {}).exit_code != 0) {
      MESSAGE("SKIPPED: no setpriv to give up root's rights");
      return;
    }
  }
  const std::string program = home.file("program", read_file(CODEEXEC_MCP), 0755);
  REQUIRE(::chmod(home.path().c_str(), 0755) == 0);
  REQUIRE(::chmod((home / "client").c_str(), 0555) == 0);
  for (const std::string& name : {file, home / "client"})
    if (is_root) REQUIRE(::chown(name.c_str(), 65534, 65534) == 0);
  as_other.insert(as_other.end(), {program, "--client-config", "cursor", "--write", file});
  const ProcessResult r = run_argv(as_other, "/", {"HOME=/nonexistent"});
  REQUIRE(::chmod((home / "client").c_str(), 0755) == 0);
  CHECK(r.exit_code == 1);
  CHECK(has(r.err, file));
  CHECK(has(r.err, "ermission denied"));
  CHECK(read_file(file) == "{}");
  CHECK_FALSE(exists(file + ".bak"));
}

TEST_CASE("wrong uses of --client-config are refused") {
  const TempDir home;
  const auto refused = [&](const ProcessResult& r, const std::string& reason) {
    support::check_refused(r, reason);
  };
  refused(configure(home, "emacs"), "'emacs' is none of claude-code, claude-desktop, cursor");
  refused(support::run_program({"--write"}), "--write is for --client-config");
  refused(support::run_program({"--client-config"}), "--client-config needs exactly one value");
  refused(configure(home, "cursor", {"--write", "a", "b"}), "--write needs exactly one value");
  refused(configure(home, "cursor", {"--write", ""}), "--write must not be empty");
  for (const std::string& other : Strings{"--doctor", "--list-rules", "--sandbox-report"})
    refused(configure(home, "cursor", {other}), "--client-config and " + other + " exclude");
  refused(configure(home, "cursor", {"--timeout", "0"}), "--timeout");
  refused(configure(home, "cursor", {"--config", "nope.json"}), "nope.json");
  refused(configure(home, "cursor", {"--blocked-commands", "\xff"}), "not UTF-8");
}
