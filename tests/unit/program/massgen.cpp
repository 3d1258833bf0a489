// The program called as fastmcp: MassGen's code execution server, and the next program of the name.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <sys/stat.h>
#include <unistd.h>

#include "../../helpers/server_support.hpp"
#include "../tools/helpers.hpp"

using codeexec::Json;
using codeexec::ProcessResult;
using support::begins;
using support::ends;
using support::has;
using support::lines_of;
using support::parsed;
using support::run_argv;
using support::run_program;
using support::Server;
using support::Strings;
using support::TempDir;

namespace {

const std::string script = "/site/massgen/filesystem_manager/_code_execution_server.py";

// A folder with a link fastmcp to the server, and one for its commands.
struct MassGen {
  TempDir place;
  std::string fastmcp = place / "bin/fastmcp";
  std::string workspace = place.directory("work/space");

  MassGen() {
    place.directory("bin");
    REQUIRE(::symlink(CODEEXEC_MCP, fastmcp.c_str()) == 0);
  }

  Strings call(const Strings& arguments) const {
    Strings words = {"run", script + ":create_server", "--", "--allowed-paths", workspace};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return words;
  }
  Server::Options server(const Strings& arguments) const {
    Server::Options options;
    options.program = fastmcp;
    options.arguments = call(arguments);
    options.work_dir = workspace;
    options.environment = {"HOME=" + place / "home"};
    return options;
  }
  // What it prints where it does not start; it ends at once where it does.
  ProcessResult started(Strings words, const Strings& environment = {}) const {
    words.insert(words.begin(), fastmcp);
    words.insert(words.begin(), environment.begin(), environment.end());
    words.insert(words.begin(), "env");
    return run_argv(words, workspace, {"HOME=" + place / "home"});
  }
};

Json run(Server& server, const std::string& command) { return server.execute(command); }

std::string refusal(Server& server, const std::string& command) {
  const Json result = run(server, command);
  CHECK_MESSAGE(result["exit_code"] == Json(-1), command);
  return result["rule"].as_string();
}

void make_program(const std::string& path, const std::string& text) {
  support::write_file(path, "#!/bin/sh\n" + text + "\n", 0755);
}

std::string link_target(const std::string& path) {
  char text[4096] = "";
  const ssize_t size = ::readlink(path.c_str(), text, sizeof text);
  return size < 0 ? std::string() : std::string(text, static_cast<std::size_t>(size));
}

Json srt_settings(const MassGen& m) {
  return parsed(R"({"filesystem": {"allowWrite": [")" + m.workspace +
                R"("], "denyWrite": [], "denyRead": [")" + m.place / "home" +
                R"(", "/etc/shadow"], "allowRead": [")" + m.workspace +
                R"("]}, "network": {"allowedDomains": [], "deniedDomains": [],
                "allowUnixSockets": []}})");
}

}  // namespace

TEST_CASE("called as fastmcp with MassGen's words, the program is its server") {
  if (!support::confines()) return;
  const MassGen m;
  Server server(m.server({"--execution-mode", "local", "--timeout", "7"}));
  const Json result = run(server, "pwd; echo made > x.txt; cat x.txt");
  CHECK(result["stdout"].as_string() == m.workspace + "\nmade\n");
  CHECK(begins(support::names_of(result), support::seven_keys));
  CHECK(result["command"].as_string() == "pwd; echo made > x.txt; cat x.txt");
  CHECK(has(server.logged(), "in place of MassGen's code execution server, execution-mode local"));
  // The rules that MassGen has for calls know no other tool.
  const Json tools = server.ask("tools/list")["result"]["tools"];
  CHECK(tools.size() == 1);
  CHECK(tools[0]["name"] == Json("execute_command"));
  // Nothing else of the disk can be changed.
  const std::string outside = m.place / "outside.txt";
  CHECK_FALSE(run(server, "echo x > " + outside)["success"].as_bool());
  CHECK(::access(outside.c_str(), F_OK) != 0);
}

TEST_CASE("without a path of MassGen's, commands may write where the server was started") {
  if (!support::confines()) return;
  const MassGen m;
  Server::Options options = m.server({});
  options.arguments = {
      "run", script + ":create_server", "--", "--allowed-paths", "--execution-mode", "local"};
  Server server(options);
  CHECK(run(server, "echo x > y && pwd")["stdout"].as_string() == m.workspace + "\n");
  CHECK_FALSE(run(server, "echo x > ../y")["success"].as_bool());
}

TEST_CASE("what MassGen's lists refuse is refused") {
  const MassGen m;
  SUBCASE("blocked commands match at the start, and every command of a script") {
    Server server(m.server({"--blocked-commands", "git push", "echo a|echo b", "seq.*\\| *cat$"}));
    for (const std::string& command :
         Strings{"git push", "git push origin main", "git pushx", "cd . && git push",
                 "git -C . push", "echo bc", "git push 'a\nb'", "seq 3 | cat"})
      CHECK_MESSAGE(refusal(server, command) == "blocked-commands", command);
    CHECK(run(server, "echo c")["success"].as_bool());
  }
  SUBCASE("allowed commands match at the start, and every command of a script") {
    Server server(m.server({"--allowed-commands", "echo", "true$"}));
    CHECK(run(server, "echo a b; echo c")["success"].as_bool());
    CHECK(run(server, "true")["success"].as_bool());
    for (const std::string& command :
         Strings{"id", "echo a; id", "echo $(id)", "true x", "env echo a", " echo a"})
      CHECK_MESSAGE(refusal(server, command) == "allowed-commands", command);
  }
  SUBCASE("a pattern that is none is an error") {
    support::check_refused(m.started(m.call({"--blocked-commands", "a("})), "blocked_commands");
    support::check_refused(m.started(m.call({"--allowed-commands"})), "--allowed-commands");
  }
}

TEST_CASE("arguments that MassGen's server does not have are errors") {
  if (!support::confines()) return;
  const MassGen m;
  const std::vector<std::pair<Strings, std::string>> calls = {
      {m.call({"--new-option", "x"}), "'--new-option' is no option of MassGen's"},
      {m.call({"--sandbox", "off"}), "'--sandbox' is no option of MassGen's"},
      {m.call({"--run", "id"}), "'--run' is no option of MassGen's"},
      {m.call({"--execution-mode", "ssh"}), "'ssh' is not one of local, docker, srt"},
      {m.call({"--execution-mode", "local", "srt"}), "needs exactly one value, and not 2"},
      {m.call({"--execution-mode", "docker"}), "needs an agent-id"},
      {m.call({"--execution-mode", "srt"}), "srt-settings need each other"},
      {m.call({"--srt-settings", "x"}), "srt-settings need each other"},
      {m.call({"--agent-id=--sandbox=off", "--timeout", "x"}), "--timeout"},
      {{"run", script}, ""},
      {{"run", "--no-banner", script + ":create_server", "--"}, "in words that are not known"},
      {{"dev", script}, "in words that are not known"},
      {{"run", script + ":create_server", "x"}, "in words that are not known"}};
  for (const auto& wanted : calls) {
    const ProcessResult r = m.started(wanted.first);
    CAPTURE(wanted.second);
    if (wanted.second.empty())
      CHECK(r.exit_code == 0);  // it serves, and its client is gone
    else
      support::check_refused(r, wanted.second);
  }
  // A value never becomes an option of ours.
  Server server(m.server({"--agent-id=--sandbox=off"}));
  CHECK_FALSE(run(server, "echo x > ../y")["success"].as_bool());
}

TEST_CASE("called with other words, it becomes the next fastmcp on the PATH") {
  const MassGen m;
  const std::string other = m.place.directory("other");
  const std::string later = m.place.directory("later");
  m.place.directory("work/space/relative");
  make_program(m.workspace + "/relative/fastmcp", "echo relative");
  make_program(other + "/fastmcp", "echo \"other $*\"");
  make_program(later + "/fastmcp", "echo later");
  const std::string bin = m.place / "bin";
  const auto with_path = [&](const std::string& path) {
    return m.started({"run", "planning.py:create_server", "--", "x"}, {"PATH=" + path});
  };
  CHECK(with_path(bin + ":" + other + ":" + later).out ==
        "other run planning.py:create_server -- x\n");
  CHECK(with_path("relative::.:" + other).out == "other run planning.py:create_server -- x\n");

  // Known by what it is, not by its folder: another link, and a copy of this program.
  const std::string links = m.place.directory("links");
  REQUIRE(::symlink(CODEEXEC_MCP, (links + "/fastmcp").c_str()) == 0);
  const std::string copies = m.place.directory("copies");
  REQUIRE(run_argv({"cp", CODEEXEC_MCP, copies + "/fastmcp"}, "/", {}).exit_code == 0);
  CHECK(with_path(bin + ":" + links + ":" + copies + ":" + bin + ":" + later).out == "later\n");

  // Never a folder, nor what cannot be executed.
  const std::string odd = m.place.directory("odd");
  m.place.directory("odd/fastmcp");
  const std::string plain = m.place.directory("plain");
  m.place.file("plain/fastmcp", "#!/bin/sh\necho plain\n");
  CHECK(with_path(odd + ":" + plain + ":" + later).out == "later\n");

  for (const std::string& path : {bin, bin + ":" + copies + ":" + links, std::string("relative")}) {
    const ProcessResult none = with_path(path);
    CHECK(none.exit_code == 127);
    CHECK(none.out == "");
    CHECK(lines_of(none.err).size() == 1);
    CHECK(has(none.err, "there is no other fastmcp on the PATH"));
  }
  m.place.file("wrong/fastmcp", "\177ELF", 0755);
  const ProcessResult broken = with_path(m.place / "wrong");
  CHECK(broken.exit_code == 126);
  CHECK(has(broken.err, "Exec format error"));
}

TEST_CASE("--massgen-path makes a folder with the link, and says where") {
  const TempDir place;
  const auto path = [&place](const Strings& environment) {
    return run_argv({CODEEXEC_MCP, "--massgen-path"}, place.path(), environment);
  };
  const std::string home = place.directory("home");
  const std::string folder = home + "/.cache/codeexec/massgen";
  const ProcessResult first = path({"HOME=" + home});
  CHECK(first.out == folder + "\n");
  CHECK(first.err == "");
  const std::string own = link_target(folder + "/fastmcp");
  CHECK(has(own, "codeexec-mcp"));
  struct stat status {};
  REQUIRE(::stat(folder.c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0700);
  CHECK(path({"HOME=" + home}).out == first.out);
  CHECK(path({"HOME=/nonexistent", "XDG_CACHE_HOME=" + place / "a/cache"}).out ==
        place / "a/cache/codeexec/massgen\n");
  CHECK(path({"HOME=" + home, "XDG_CACHE_HOME=relative"}).out == first.out);

  SUBCASE("what else has its name is replaced") {
    for (const bool is_link : {true, false}) {
      REQUIRE(::unlink((folder + "/fastmcp").c_str()) == 0);
      const std::string victim = place.file("victim", "kept");
      if (is_link)
        REQUIRE(::symlink(victim.c_str(), (folder + "/fastmcp").c_str()) == 0);
      else
        make_program(folder + "/fastmcp", "echo planted");
      CHECK(path({"HOME=" + home}).exit_code == 0);
      CHECK(link_target(folder + "/fastmcp") == own);
      CHECK(support::read_file(victim) == "kept");
    }
  }
  SUBCASE("a folder of its name is refused") {
    REQUIRE(::unlink((folder + "/fastmcp").c_str()) == 0);
    REQUIRE(::mkdir((folder + "/fastmcp").c_str(), 0755) == 0);
    const ProcessResult r = path({"HOME=" + home});
    CHECK(r.exit_code == 1);
    CHECK(r.out == "");
    CHECK(lines_of(r.err).size() == 1);
  }
  SUBCASE("a folder that others may write to, or that a link leads to, is refused") {
    REQUIRE(::chmod(folder.c_str(), 0777) == 0);
    ProcessResult r = path({"HOME=" + home});
    CHECK(r.exit_code == 1);
    CHECK(has(r.err, "others may write there: remove it"));
    REQUIRE(::chmod(folder.c_str(), 0700) == 0);
    const std::string elsewhere = place.directory("elsewhere");
    const std::string linked = place.directory("linked/.cache/codeexec");
    REQUIRE(::symlink(elsewhere.c_str(), (linked + "/massgen").c_str()) == 0);
    r = path({"HOME=" + place / "linked"});
    CHECK(r.exit_code == 1);
    CHECK(::access((elsewhere + "/fastmcp").c_str(), F_OK) != 0);
  }
  SUBCASE("where there is no folder for it, one line says so") {
    for (const Strings& variables :
         {Strings{}, Strings{"HOME=relative"}, Strings{"HOME=/dev/null"},
          Strings{"HOME=" + place.directory("a:b")}, Strings{"HOME=" + place.directory("a\nb")}}) {
      const ProcessResult r = path(variables);
      CHECK(r.exit_code == 1);
      CHECK(r.out == "");
      CHECK(lines_of(r.err).size() == 1);
      CHECK(has(r.err, "--massgen-path: "));
    }
  }
}

TEST_CASE("settings of the sandbox-runtime become a strict sandbox") {
  if (!support::confines()) return;
  const MassGen m;
  m.place.file("home/secret.txt", "nobody's business");
  m.place.directory("work/space/kept");
  m.place.directory("work/more");
  Json settings = srt_settings(m);
  Json files = settings["filesystem"];
  files.set("denyWrite", Json::array({m.workspace + "/kept", m.place / "elsewhere"}));
  files.set("allowRead",
            Json::array({m.workspace, m.place / "work/more", m.place / "gone", "/usr"}));
  settings.set("filesystem", files);
  const std::string path = m.place.file("settings.json", settings.dump());
  const Strings arguments = {"--execution-mode", "srt", "--srt-settings", path};
  if (m.started(m.call(arguments)).exit_code != 0) {
    MESSAGE("SKIPPED: this machine has no strict sandbox: " << m.started(m.call(arguments)).err);
    return;
  }
  Server server(m.server(arguments));
  const Json made = run(server, "pwd; echo made > x.txt; cat x.txt");
  CHECK(made["stdout"].as_string() == m.workspace + "\nmade\n");
  CHECK(made["sandbox"]["mode"] == Json("strict"));
  CHECK(made["sandbox"]["network"] == Json("none"));
  CHECK_FALSE(has(run(server, "cat " + m.place / "home/secret.txt").dump(), "business"));
  CHECK_FALSE(run(server, "cat /etc/shadow")["success"].as_bool());
  CHECK_FALSE(run(server, "echo x > kept/y")["success"].as_bool());
  CHECK_FALSE(run(server, "echo x > ../more/y")["success"].as_bool());
  CHECK(run(server, "ls ../more")["success"].as_bool());
  // srt keeps these everywhere.
  m.place.directory("work/space/.git/hooks");
  m.place.file("work/space/.mcp.json", "{}");
  CHECK_FALSE(run(server, "echo x > .git/hooks/pre-commit")["success"].as_bool());
  CHECK_FALSE(run(server, "echo x > .mcp.json")["success"].as_bool());
  CHECK(has(server.logged(), "gone' is not there"));
  // What may not be read in a folder that may is hidden.
  m.place.file("work/space/secret.txt", "nobody's business");
  files.set("allowRead", Json::array());
  files.set("denyRead", Json::array({m.workspace + "/secret.txt"}));
  settings.set("filesystem", files);
  m.place.file("settings.json", settings.dump());
  Server hiding(m.server(arguments));
  const Json hidden = run(hiding, "cat secret.txt; cat x.txt");
  CHECK(hidden["stdout"].as_string() == "made\n");
}

TEST_CASE("settings that cannot be held are errors, and what they allow besides is a warning") {
  const MassGen m;
  m.place.directory("work/space/secret");
  m.place.directory("work/other");
  const auto started = [&m](const std::string& text) {
    const std::string path = m.place.file("settings.json", text);
    return m.started(m.call({"--execution-mode", "srt", "--srt-settings", path}));
  };
  const auto with = [&](const char* section, const char* key, const std::string& value) {
    Json settings = srt_settings(m);
    Json part = settings[section];
    part.set(key, parsed(value));
    settings.set(section, part);
    return started(settings.dump());
  };
  const std::string secret = "[\"" + m.workspace + "/secret\"]";
  SUBCASE("errors") {
    support::check_refused(with("filesystem", "disabled", "true"), "filesystem.disabled");
    support::check_refused(with("filesystem", "denyExecute", "[]"), "filesystem.denyExecute");
    support::check_refused(with("filesystem", "denyRead", "[\"/opt\"]"),
                           "holds what programs need");
    support::check_refused(with("filesystem", "denyRead", "[\"/\"]"), "holds what programs need");
    support::check_refused(with("filesystem", "denyRead", "[\"~/*\"]"), "a pattern is not held");
    support::check_refused(with("filesystem", "denyRead", "[\"x\"]"), "must be absolute");
    support::check_refused(with("filesystem", "denyRead", "[7]"), "not a list of texts");
    support::check_refused(with("filesystem", "denyRead", "\"/\""), "not a list of texts");
    support::check_refused(with("filesystem", "allowGitConfig", "1"), "not true or false");
    support::check_refused(with("filesystem", "denyWrite", "[\"" + m.workspace + "/not-there\"]"),
                           "make it first");
    support::check_refused(with("network", "httpProxyPort", "3128"), "network.httpProxyPort");
    support::check_refused(with("network", "deniedResolvedAddresses", "[\"10.0.0.0/8\"]"),
                           "network.deniedResolvedAddresses");
    support::check_refused(started(R"({"filesystem": {"allowWrite": []}})"), "'network' is not");
    support::check_refused(started("[]"), "not a JSON object");
    support::check_refused(started("{"), "srt-settings: ");
    support::check_refused(started(std::string(100000, '[')), "srt-settings: ");
    support::check_refused(started(R"({"network": {}, "network": {}, "filesystem": {}})"),
                           "srt-settings: ");
    support::check_refused(started(std::string((1 << 20) + 1, ' ')), "srt-settings");
    support::check_refused(started(R"({"network": {}, "filesystem": {}, "\u001b[31m": 1})"),
                           "is not known here");
    support::check_refused(
        m.started(m.call({"--execution-mode", "srt", "--srt-settings", m.place / "no.json"})),
        "srt-settings");
    support::check_refused(
        m.started(m.call({"--execution-mode", "srt", "--srt-settings", m.workspace})),
        "srt-settings");
  }
  SUBCASE("a denial in what is granted") {
    Json settings = srt_settings(m);
    Json files = settings["filesystem"];
    files.set("allowRead", Json::array());
    files.set("denyRead", parsed(secret));
    settings.set("filesystem", files);
    files.set("allowRead", Json::array({m.workspace + "/secret/again"}));
    settings.set("filesystem", files);
    support::check_refused(started(settings.dump()), "cannot be read again in");
    files.set("denyRead", Json::array({m.workspace}));
    settings.set("filesystem", files);
    support::check_refused(started(settings.dump()), "may not be read by denyRead");
  }
  SUBCASE("denied names among the allowed") {
    Json settings = srt_settings(m);
    Json network = settings["network"];
    network.set("allowedDomains", Json::array({"*.example.org"}));
    network.set("deniedDomains", Json::array({"*"}));
    settings.set("network", network);
    support::check_refused(started(settings.dump()), "deny_domains: '*' is no example.org");
  }
  SUBCASE("warnings") {
    for (const char* key : {"allowUnixSockets", "allowMachLookup"}) {
      const ProcessResult r = with("network", key, "[\"/run/docker.sock\"]");
      CHECK(has(r.err, std::string("'network.") + key + "' is not granted here"));
    }
    const ProcessResult covered = with("filesystem", "denyWrite", "[\"" + m.place / "work\"]");
    CHECK(has(covered.err, "denyWrite takes it back"));
  }
}

TEST_CASE("in mode docker the commands go to the container that MassGen names") {
  const MassGen m;
  const std::string bin = m.place.directory("engine");
  const std::string log = m.place / "words";
  make_program(bin + "/docker", "echo \"$@\" > " + log + "; echo no such container >&2; exit 1");
  const ProcessResult r = m.started(
      m.call({"--execution-mode", "docker", "--agent-id", "a b;'", "--instance-id", "0123abcd"}),
      {"PATH=" + bin + ":/usr/bin:/bin"});
  CHECK(r.exit_code == 2);
  CHECK(has(r.err, "no such container"));
  CHECK(support::read_file(log) ==
        "exec -i -e CODEEXEC_PLACE_CACHE=/var/tmp massgen-a b;'-0123abcd sh\n");
}
