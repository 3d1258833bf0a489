// --only-shell and --remove: the client's own command tool, off and on again.
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
using support::run_argv;
using support::Strings;
using support::TempDir;

namespace {

const Strings only_shell = {"--write", "--only-shell"};

// A client with such a setting: its files as they are before, and what is in the second one then.
struct Switch {
  std::string client, file, before, settings, settings_before, wanted;
};
const std::vector<Switch> switches = {
    {"claude-code", ".claude.json", "{\n  \"n\": 1\n}\n", ".claude/settings.json",
     "{\n  \"permissions\": {\n    \"deny\": [\"WebFetch\"]\n  }\n}\n",
     R"({"permissions":{"deny":["WebFetch","Bash"]}})"},
    {"gemini", ".gemini/settings.json",
     "{\n  \"mcpServers\": {\n    \"a\": {}\n  },\n  \"tools\": {\n    \"exclude\": [\n      "
     "\"x\"\n    ]\n  }\n}\n",
     "", "", R"({"tools":{"exclude":["x","run_shell_command"]}})"},
    {"qwen", ".qwen/settings.json", "{\n  \"tools\": {}\n}\n", "", "",
     R"({"tools":{"disabled":["run_shell_command"]}})"},
    {"opencode", ".config/opencode/opencode.json",
     "{\n  \"permission\": {\n    \"bash\": {\"git *\": \"ask\"},\n    \"edit\": \"ask\"\n  }\n}\n",
     "", "", R"({"permission":{"bash":"deny","edit":"ask"}})"},
    {"cline", ".cline/data/settings/cline_mcp_settings.json", "{\"mcpServers\": {\"a\": {}}}",
     ".cline/data/settings/global-settings.json", "{\"disabledTools\": [\"editor\"]}",
     R"({"disabledTools":["editor","run_commands"]})"},
    {"zed", ".config/zed/settings.json", "{\n  \"agent\": {\"x\": 1}\n}\n", "", "",
     R"({"agent":{"x":1,"tool_permissions":{"tools":{"terminal":{"default":"deny"}}}}})"}};

// Whether each member of `wanted` is in `value`, at any depth.
bool has_members(const Json& value, const Json& wanted) {
  if (!wanted.is_object()) return value == wanted;
  for (const Json::Member& member : wanted.members())
    if (!has_members(value[member.name], member.value)) return false;
  return true;
}

void write_files(const TempDir& home, const Switch& row) {
  home.file(row.file, row.before);
  if (!row.settings.empty()) home.file(row.settings, row.settings_before);
}

}  // namespace

TEST_CASE("--only-shell switches the client's own command tool off, and --remove on again") {
  for (const Switch& row : switches) {
    CAPTURE(row.client);
    const TempDir home;
    write_files(home, row);
    const std::string settings = home / (row.settings.empty() ? row.file : row.settings);
    const ProcessResult r = configure(home, row.client, only_shell);
    CHECK_MESSAGE(r.exit_code == 0, r.err);
    CHECK(has_members(parsed(read_file(settings)), parsed(row.wanted)));
    CHECK(has(r.out, "--- " + home / row.file));
    CHECK(has(r.out, "--- " + settings));
    const ProcessResult again = configure(home, row.client, only_shell);
    CHECK(again.exit_code == 0);
    CHECK(again.out == "");
    CHECK(has(again.err, "has this entry"));
    // A later run without it does not switch the tool on.
    CHECK(configure(home, row.client, {"--write", "--network", "none"}).exit_code == 0);
    CHECK(has_members(parsed(read_file(settings)), parsed(row.wanted)));
    const ProcessResult removed = configure(home, row.client, {"--remove"});
    CHECK_MESSAGE(removed.exit_code == 0, removed.err);
    CHECK(parsed(read_file(home / row.file)) ==
          (row.client == "qwen" ? Json::object() : parsed(row.before)));
    if (row.client != "qwen" && row.client != "opencode")
      CHECK(read_file(home / row.file) == row.before);
    if (!row.settings.empty()) CHECK(read_file(settings) == row.settings_before);
    const ProcessResult nothing = configure(home, row.client, {"--remove"});
    CHECK(nothing.exit_code == 0);
    CHECK(nothing.out == "");
    CHECK(has(nothing.err, "has no entry for this server"));
  }
}

TEST_CASE("Codex: --only-shell is a key of its features, marked by a comment") {
  const Strings texts = {"", "model = \"o\"\n", "[features]\nweb_search = true\n",
                         "[features]\nweb_search = true\n\n[mcp_servers.a]\ncommand = \"x\"\n",
                         "model = \"o\"\r\n\r\n[features]\r\nx = true\r\n"};
  for (const std::string& text : texts) {
    CAPTURE(text);
    const TempDir home;
    const std::string file = home.file(".codex/config.toml", text);
    const ProcessResult r = configure(home, "codex", only_shell);
    CHECK_MESSAGE(r.exit_code == 0, r.err);
    CHECK(has(read_file(file), "\nshell_tool = false  # by codeexec-mcp --only-shell"));
    if (const Json value = support::toml(read_file(file)); !value.is_null())
      CHECK(value["features"]["shell_tool"] == Json(false));
    CHECK(configure(home, "codex", only_shell).out == "");
    CHECK(configure(home, "codex", {"--remove"}).exit_code == 0);
    CHECK(read_file(file) == text);
  }
  for (const std::string& text :
       Strings{"features.shell_tool = true\n", "features = { shell_tool = true }\n",
               "[\"features\"]\nshell_tool = true\n", "[ features ]\nshell_tool = true\n",
               "[features]\nx = [\n]\n"}) {
    const TempDir home;
    const std::string file = home.file(".codex/config.toml", text);
    const ProcessResult r = configure(home, "codex", only_shell);
    CHECK(r.exit_code == 1);
    CHECK(has(r.err, "its TOML is not clear at line"));
    CHECK(read_file(file) == text);
    CHECK(configure(home, "codex", {"--write"}).exit_code == 0);
  }
}

TEST_CASE("a command tool that was off before stays off") {
  for (const Switch& row : switches) {
    CAPTURE(row.client);
    const TempDir home;
    write_files(home, row);
    const std::string settings = home / (row.settings.empty() ? row.file : row.settings);
    support::write_file(settings, row.wanted);
    CHECK(configure(home, row.client, only_shell).exit_code == 0);
    const ProcessResult r = configure(home, row.client, {"--remove"});
    CHECK(r.exit_code == 0);
    CHECK(has(r.err, "stays off: that was not set here"));
    CHECK(has_members(parsed(read_file(settings)), parsed(row.wanted)));
  }
  const TempDir home;
  const std::string file = home.file(".codex/config.toml", "[features]\nshell_tool = false\n");
  CHECK(configure(home, "codex", only_shell).exit_code == 0);
  CHECK(has(configure(home, "codex", {"--remove"}).err, "stays off: that was not set here"));
  CHECK(read_file(file) == "[features]\nshell_tool = false\n");
}

TEST_CASE("a project's files go together") {
  const TempDir home;
  home.directory("project");
  CHECK(
      configure(home, "claude-code", {"--write", "project/.mcp.json", "--only-shell"}).exit_code ==
      0);
  CHECK(parsed(read_file(home / "project/.claude/settings.json"))["permissions"]["deny"][0] ==
        Json("Bash"));
  CHECK_FALSE(exists(home / ".claude/settings.json"));
  CHECK(configure(home, "claude-code", {"--remove", "--write", "project/.mcp.json"}).exit_code ==
        0);
  CHECK(read_file(home / "project/.claude/settings.json") == "{}\n");
  const ProcessResult r = configure(home, "claude-code", {"--write", "x.json", "--only-shell"});
  CHECK(r.exit_code == 1);
  CHECK(has(r.err, "its settings go with its usual file and with .mcp.json"));
  CHECK_FALSE(exists(home / "x.json"));
}

TEST_CASE("a client without such a setting: one line says so") {
  const TempDir home;
  for (const std::string& client : Strings{"cursor", "vscode", "continue", "copilot", "windsurf"}) {
    CAPTURE(client);
    const ProcessResult r = configure(home, client, only_shell);
    CHECK(r.exit_code == 0);
    CHECK(has(r.err, "no setting of its files switches it off: "));
  }
  CHECK(has(configure(home, "claude-desktop", only_shell).err,
            "has no setting for a command tool of its own"));
  CHECK(has(configure(home, "claude-code", {"--write"}).err,
            "Claude Code's own Bash stays on, and nothing here confines it: --only-shell"));
}

TEST_CASE("settings that cannot be edited: nothing is written") {
  const TempDir home;
  const std::string text = "{\n  // mine\n}\n";
  const std::string settings = home.file(".claude/settings.json", text);
  const ProcessResult r = configure(home, "claude-code", only_shell);
  CHECK(r.exit_code == 1);
  CHECK(lines_of(r.err).size() == 1);
  CHECK(has(r.err, settings));
  CHECK(has(r.err, "it has a comment at line 2, column 3"));
  CHECK_FALSE(exists(home / ".claude.json"));
  CHECK(read_file(settings) == text);
}

TEST_CASE("on a terminal it is asked for, once") {
  if (!support::has_program("python3")) return;
  const auto answered = [](const TempDir& home, const std::string& answer, const Strings& more) {
    Strings words = {"python3",
                     "-c",
                     "import pty, sys\n"
                     "def read(fd, data=[]):\n"
                     "  import os\n"
                     "  text = os.read(fd, 4096)\n"
                     "  data.append(text)\n"
                     "  if b'[y/N] ' in b''.join(data):\n"
                     "    data.clear()\n"
                     "    os.write(fd, sys.argv[1].encode() + b'\\n')\n"
                     "  return text\n"
                     "sys.exit(pty.spawn(sys.argv[2:], read, lambda fd: b'') >> 8)",
                     answer,
                     CODEEXEC_MCP,
                     "--client-config",
                     "claude-code",
                     "--write"};
    words.insert(words.end(), more.begin(), more.end());
    return run_argv(words, home.path(), {"HOME=" + home.path()}).out;
  };
  const TempDir home;
  const std::string question = "Switch Claude Code's own Bash off, so that commands go through";
  CHECK(has(answered(home, "", {}), question));
  CHECK_FALSE(exists(home / ".claude/settings.json"));
  CHECK(has(answered(home, "no", {"--network", "none"}), question));
  CHECK_FALSE(exists(home / ".claude/settings.json"));
  CHECK(has(answered(home, "y", {"--network", "none"}), question));
  CHECK(parsed(read_file(home / ".claude/settings.json"))["permissions"]["deny"].size() == 1);
  CHECK_FALSE(has(answered(home, "y", {"--network", "none"}), question));
}

TEST_CASE("a file in a project is not followed out of it") {
  const TempDir home;
  const std::string outside = home.file("outside.json", "{}");
  home.directory("project/.cursor");
  REQUIRE(::symlink("../../outside.json", (home / "project/.cursor/mcp.json").c_str()) == 0);
  REQUIRE(::symlink("..", (home / "project/.vscode").c_str()) == 0);
  const auto refused = [&](const std::string& client, const std::string& file,
                           const std::string& work_dir) {
    const ProcessResult r = run_argv({CODEEXEC_MCP, "--client-config", client, "--write", file},
                                     work_dir, {"HOME=" + home.path()});
    CHECK(r.exit_code == 1);
    CHECK(lines_of(r.err).size() == 1);
    CHECK_MESSAGE(has(r.err, "a link leads out of the project"), r.err);
  };
  refused("cursor", ".cursor/mcp.json", home / "project");
  refused("cursor", home / "project/.cursor/mcp.json", "/");
  refused("vscode", ".vscode/mcp.json", home / "project");
  refused("vscode", "../project/.vscode/../../outside.json", home / "project");
  CHECK(read_file(outside) == "{}");
  CHECK_FALSE(exists(home / "mcp.json"));
  // Its settings, too.
  REQUIRE(::symlink("..", (home / "project/.claude").c_str()) == 0);
  const ProcessResult r = run_argv(
      {CODEEXEC_MCP, "--client-config", "claude-code", "--write", ".mcp.json", "--only-shell"},
      home / "project", {"HOME=" + home.path()});
  CHECK(r.exit_code == 1);
  CHECK(has(r.err, "a link leads out of the project"));
  CHECK_FALSE(exists(home / "settings.json"));
  CHECK_FALSE(exists(home / "project/.mcp.json"));
  // A file of the user may be a link, as those who keep them elsewhere have it.
  REQUIRE(::symlink("../outside.json", (home.directory(".cursor") + "/mcp.json").c_str()) == 0);
  CHECK(configure(home, "cursor", {"--write"}).exit_code == 0);
}

TEST_CASE("a client that does not seem to be installed is named, and its file is made") {
  const TempDir home;
  CHECK(has(configure(home, "cursor", {"--write"}).err, "Cursor does not seem to be installed"));
  CHECK(exists(home / ".cursor/mcp.json"));
  home.directory(".claude");
  CHECK_FALSE(has(configure(home, "claude-code", {"--write"}).err, "seem to be installed"));
}

TEST_CASE("wrong uses of --only-shell and --remove are refused") {
  const TempDir home;
  support::check_refused(configure(home, "cursor", {"--only-shell"}),
                         "--only-shell is for --client-config NAME --write");
  support::check_refused(configure(home, "cursor", {"--remove", "--write", "--only-shell"}),
                         "--only-shell is for --client-config NAME --write");
  support::check_refused(support::run_program({"--remove"}), "--remove is for --client-config");
  support::check_refused(configure(home, "cursor", {"--remove", "--network", "none"}),
                         "--remove and --network exclude each other");
  CHECK(has(configure(home, "massgen", {"--remove"}).err, "YAML is not edited here"));
}

TEST_CASE("--doctor looks at the files of clients") {
  const TempDir home;
  home.directory("project");
  home.file(".codex/config.toml", "[mcp_servers.codeexec]\ncommand = \"docker\"\n");
  home.file(".cursor/mcp.json", "{,}");
  home.file(".config/Code/User/mcp.json", "{}");
  CHECK(configure(home, "claude-code", {"--write", "--sandbox", "off"}).exit_code == 0);
  CHECK(configure(home, "gemini", only_shell).exit_code == 0);
  const std::string said = run_argv({CODEEXEC_MCP, "--allowed-paths", home / "project", "--doctor"},
                                    home / "project", {"HOME=" + home.path()})
                               .out;
  CAPTURE(said);
  CHECK(has(said, ".claude.json' starts this server, NOT confined"));
  CHECK(has(said, "its own Bash is on, and not confined here"));
  CHECK(has(said,
            ".gemini/settings.json' starts this server, confined; its own "
            "run_shell_command is off"));
  CHECK(has(said, "config.toml' has an entry codeexec that starts another program"));
  CHECK(has(said, "client Cursor: "));
  CHECK(has(said, "not plain JSON"));
  CHECK(has(said, "has no entry for this server (--client-config vscode --write)"));
  CHECK_FALSE(has(said, "client Zed"));
}
