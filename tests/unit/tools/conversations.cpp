// Conversations: concurrency, cancelling, signals, and what stays with the server.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <signal.h>

#include <set>

#include "../../helpers/server_support.hpp"
#include "helpers.hpp"

using codeexec::Json;
using codeexec::ProcessOptions;
using support::dies;
using support::endless;
using support::ends;
using support::Fifo;
using support::has;
using support::lines_of;
using support::parsed;
using support::patience_ms;
using support::run_command;
using support::Server;
using support::Strings;
using support::TempDir;

namespace {

// Writing to a server that has ended must fail, not kill the tests.
class NoSigpipe {
 public:
  NoSigpipe() : before_(::signal(SIGPIPE, SIG_IGN)) {}
  ~NoSigpipe() { ::signal(SIGPIPE, before_); }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  void (*before_)(int);
};

}  // namespace

TEST_CASE("W-05 W-19: a command made to choke patterns is judged in no time") {
  Strings arguments = {"--blocked-commands", "(a+)+$", "(\\w+\\s?)+$", "--allowed-paths", "/tmp",
                       "--workspace",        "/"};
  SUBCASE("strict") {}
  SUBCASE("compat") { arguments.insert(arguments.end(), {"--policy", "compat"}); }
  Server server(arguments);
  const auto begin = std::chrono::steady_clock::now();
  for (const std::string& command :
       {"mv" + std::string(100000, ' ') + "x!", std::string(100000, 'a') + "!",
        std::string(100000, 'b') + "!"}) {
    const Json r = server.execute(command);
    CHECK(r["rule"] == Json("work_dir"));
  }
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(patience_ms / 2));
}

TEST_CASE("signs of life come while a command runs, to those who asked") {
  const TempDir place;
  Fifo fifo(place / "fifo");
  Fifo go(place / "go");
  Server server;
  const std::string command = "echo one; echo 'line two' > /dev/stderr; echo x > " + fifo.path() +
                              "; read a < " + go.path();
  const Json meta = Json::object({{"progressToken", "t"}});
  server.send(Server::call_line(1, Json::object({{"command", command}}), meta));
  double last = -1;
  std::string printed;
  while (!has(printed, "one\n") || !has(printed, "line two\n")) {
    const Json progress = server.receive();
    REQUIRE(progress["method"] == Json("notifications/progress"));
    CHECK(progress["params"]["progressToken"] == Json("t"));
    CHECK(progress["params"]["progress"].as_number() > last);
    last = progress["params"]["progress"].as_number();
    const std::string& message = progress["params"]["message"].as_string();
    if (message != "running") printed += message;
  }
  CHECK(printed.size() == std::string_view("one\nline two\n").size());
  CHECK(fifo.read_line() == "x");
  go.write_text("go\n");
  Json reply = server.receive();
  while (reply.find("method")) reply = server.receive();
  CHECK(Server::object_of(reply["result"])["success"] == Json(true));
  // Without a token, nothing but the reply.
  server.send(Server::call_line(2, Json::object({{"command", "sleep 0.1"}})));
  reply = server.receive();
  CHECK(reply["id"] == Json(2));
  CHECK(server.finish().empty());
}

TEST_CASE("W-19 W-20: a cancelled call is killed and not answered, and the server goes on") {
  const TempDir place;
  Fifo fifo(place / "fifo");
  const std::string audit = place / "audit";
  Server server(Strings{"--audit-file", audit, "--agent-id", "me"});
  server.send(Server::call_line("long", Json::object({{"command", endless(fifo)}})));
  const pid_t pid = fifo.read_pid();
  server.ping();
  CHECK(server.ask("tools/list")["result"]["tools"].size() == 14);
  CHECK(server.execute("echo meanwhile")["stdout"] == Json("meanwhile\n"));
  server.cancel("long");
  CHECK(dies(pid));
  server.ping();
  CHECK(server.finish().empty());
  const Strings lines = lines_of(support::read_file(audit));
  REQUIRE(lines.size() == 2);
  for (const std::string& line : lines) {
    CHECK(parsed(line)["tool"] == Json("execute_command"));
    CHECK(parsed(line)["agent_id"] == Json("me"));
  }
  CHECK(parsed(lines[1])["outcome"] == Json("cancelled"));
}

TEST_CASE("20 calls at once: 16 run, 4 wait, all are answered") {
  const TempDir place;
  Fifo arrived(place / "arrived");
  Fifo go(place / "go");
  Server server;
  for (int i = 0; i < 20; ++i) {
    const std::string command = "echo " + std::to_string(i) + " > " + arrived.path() +
                                "; read x < " + go.path() + "; echo " + std::to_string(i);
    server.send(Server::call_line(i, Json::object({{"command", command}})));
  }
  std::set<std::string> seen;
  for (int i = 0; i < 16; ++i) seen.insert(arrived.read_line());
  CHECK(seen.size() == 16);
  server.ping();
  std::string all;
  for (int i = 0; i < 20; ++i) all += "\n";
  go.write_text(all);
  std::set<std::int64_t> answered;
  for (int i = 0; i < 20; ++i) {
    const Json reply = server.receive();
    const std::int64_t id = reply["id"].as_integer();
    answered.insert(id);
    CHECK(Server::object_of(reply["result"])["stdout"] == Json(std::to_string(id) + "\n"));
  }
  CHECK(answered.size() == 20);
  CHECK(server.finish().empty());
}

TEST_CASE("--max-concurrent bounds the commands that run at a time") {
  const TempDir place;
  Fifo arrived(place / "arrived");
  Fifo go(place / "go");
  Server server(Strings{"--max-concurrent", "1"});
  const std::string wait = "echo " + std::string("first > ") + arrived.path() + "; read x < " +
                           go.path() + "; echo end > " + arrived.path();
  server.send(Server::call_line(1, Json::object({{"command", wait}})));
  server.send(Server::call_line(2, Json::object({{"command", "echo second > " + arrived.path()}})));
  CHECK(arrived.read_line() == "first");
  server.ping();
  go.write_text("\n");
  CHECK(arrived.read_line() == "end");
  CHECK(arrived.read_line() == "second");
  CHECK(server.receive()["id"] == Json(1));
  CHECK(server.receive()["id"] == Json(2));
}

TEST_CASE("the end of the input during a run ends the server, and no process is left") {
  const TempDir place;
  Fifo fifo(place / "fifo");
  Server server;
  server.send(Server::call_line(1, Json::object({{"command", endless(fifo)}})));
  const pid_t pid = fifo.read_pid();
  server.close_input();
  CHECK(server.wait() == 0);
  CHECK(dies(pid));
}

TEST_CASE("SIGTERM, SIGINT and SIGHUP during a run end the server, and no process is left") {
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    CAPTURE(number);
    const TempDir place;
    Fifo fifo(place / "fifo");
    Server server;
    server.send(Server::call_line(1, Json::object({{"command", endless(fifo)}})));
    server.send(Server::call_line(
        2, Json::object({{"command", "trap '' TERM INT HUP; " + endless(fifo) + "; wait"}})));
    const pid_t first = fifo.read_pid();
    const pid_t second = fifo.read_pid();
    server.signal(number);
    server.signal(number);  // a second one while it ends changes nothing
    CHECK(server.wait() == 0);
    CHECK(dies(first));
    CHECK(dies(second));
  }
}

TEST_CASE("SIGTERM ends a server that has nothing to do") {
  Server server;
  server.ping();
  server.signal(SIGTERM);
  CHECK(server.wait() == 0);
  CHECK(server.logged() == "");
}

TEST_CASE("a client that no longer reads ends the server, and no process is left") {
  const NoSigpipe guard;
  const TempDir place;
  Fifo fifo(place / "fifo");
  Server server;
  server.send(Server::call_line(1, Json::object({{"command", endless(fifo)}})));
  const pid_t pid = fifo.read_pid();
  server.close_output();
  server.send(R"({"jsonrpc":"2.0","id":2,"method":"ping"})");
  CHECK(server.wait() == 0);
  CHECK(dies(pid));
}

TEST_CASE("W-10: what the client sends never reaches a command") {
  Server server;
  const std::string ping = R"({"jsonrpc":"2.0","id":2,"method":"ping"})";
  server.send(Server::call_line(1, Json::object({{"command", "cat; read x; echo \"[$x]\""}})) +
              "\n" + ping + "\n" + ping + "\n");
  int pings = 0;
  for (int i = 0; i < 3; ++i) {
    const Json reply = server.receive();
    if (reply["id"] == Json(2)) {
      ++pings;
      continue;
    }
    CHECK(Server::object_of(reply["result"])["stdout"] == Json("[]\n"));
  }
  CHECK(pings == 2);
}

TEST_CASE("W-12: nothing but messages is on stdout, whatever commands write and where") {
  Server server;
  server.ping();
  const Json r = server.execute(
      "echo junk > /dev/stdout; echo junk > /proc/self/fd/1; echo junk > /dev/stderr; "
      "(for i in 3 4 5 6 7 8 9; do eval \"echo junk >&$i\"; done) 2> /dev/null; echo end");
  CHECK(r["stdout"].as_string() == "junk\njunk\nend\n");
  CHECK(r["stderr"] == Json("junk\n"));
  server.ping();
  CHECK(server.finish().empty());
  CHECK(server.logged() == "");
}

TEST_CASE("W-11 R07b: a command can neither write to the server's stdout nor read its secrets") {
  // root may look into every process; only another user shows what is protected.
  const TempDir place;
  Server::Options options;
  options.program = place.file("server", support::read_file(CODEEXEC_MCP), 0755);
  REQUIRE(::chmod(place.path().c_str(), 0755) == 0);
  if (::geteuid() == 0) {
    ProcessOptions probe;
    probe.argv = {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/bin/true"};
    if (!codeexec::run_process(probe).succeeded()) {
      MESSAGE("SKIPPED: root, and no setpriv to become somebody else");
      return;
    }
    options.wrapper = {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"};
  }
  options.environment = {"CODEEXEC_TEST_TOKEN=hunter2"};
  Server server(options);
  const Json r = server.execute(
      "ppid=$PPID; for fd in 0 1 2 3 4 5 6 7 8 9; do "
      "echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}' > /proc/$ppid/fd/$fd && echo open; "
      "done; "
      "ls /proc/$ppid/fd && echo listed; cat /proc/$ppid/environ && echo read; "
      "head -c 1 /proc/$ppid/mem && echo memory; env; id -u");
  const std::string& out = r["stdout"].as_string();
  CAPTURE(r["stderr"].as_string());
  for (const char* part : {"open", "listed", "read", "memory", "hunter2"})
    CHECK_MESSAGE(!has(out, part), out);
  CHECK(out.find("PATH=") != std::string::npos);
  if (::geteuid() == 0) CHECK(ends(out, "\n65534\n"));
  server.ping();
  CHECK(server.finish().empty());
}

TEST_CASE("W-21 W-07: secrets stay with the server, and --enable-sudo does not count here") {
  Server::Options options;
  options.environment = {"CODEEXEC_TEST_TOKEN=hunter2"};
  options.arguments = {"--enable-sudo"};
  Server server(options);
  CHECK(!has(server.execute("env")["stdout"].as_string(), "hunter2"));
  CHECK(server.execute("sudo id")["rule"] == Json("sudo"));
  CHECK(has(server.logged(), "enable_sudo has no effect in local mode"));
}

TEST_CASE("R07b: the server itself keeps no variables but those that commands see") {
  Server::Options options;
  options.arguments = {"--keep-env", "CODEEXEC_TEST_KEPT"};
  options.environment = {"CODEEXEC_TEST_TOKEN=hunter2", "CODEEXEC_TEST_KEPT=kept", "LC_TIME=C",
                         "=odd=hunter2", "hunter2"};
  Server server(options);
  server.ping();
  const std::string path = "/proc/" + std::to_string(server.pid()) + "/environ";
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    MESSAGE("SKIPPED: " << path << " cannot be read, which root with all capabilities may");
    return;
  }
  ::close(file);
  const std::string variables = support::read_file(path);
  for (const char* part : {"hunter2", "CODEEXEC_TEST_TOKEN"}) CHECK(!has(variables, part));
  for (const char* part : {"CODEEXEC_TEST_KEPT=kept", "PATH=", "LC_TIME=C"})
    CHECK(has(variables, part));
  const Json r = server.execute("tr '\\0' '\\n' < " + path + "; env");
  CHECK(has(r["stdout"].as_string(), "CODEEXEC_TEST_KEPT=kept"));
  CHECK(!has(r["stdout"].as_string(), "hunter2"));
}

TEST_CASE("starting has no effects on disk") {
  const TempDir place;
  const TempDir skills;
  Server::Options options;
  options.work_dir = place.path();
  options.environment = {"HOME=" + place.path(), "TMPDIR=" + place.path()};
  options.arguments = {"--local-skills-directory", skills.path(), "--allowed-paths", place.path()};
  Server server(options);
  server.ask("tools/list");
  CHECK(server.execute("sudo ls")["rule"] == Json("sudo"));
  CHECK(server.finish().empty());
  const Json list = run_command("ls -A " + place.path());
  CHECK(list["stdout"] == Json(""));
}

TEST_CASE("W-24: --local-skills-directory links, and destroys nothing") {
  const TempDir skills;
  skills.file("s.md", "a skill");
  const TempDir place;
  const Strings arguments = {"--local-skills-directory", skills.path(), "--workspace",
                             place.path()};
  CHECK(run_command("cat .agent/skills/s.md", arguments)["stdout"] == Json("a skill"));
  CHECK(run_command("true", arguments).find("notes") == nullptr);
  const TempDir own;
  own.file(".agent/skills/mine", "mine");
  const Json r = run_command("cat .agent/skills/mine", {"--local-skills-directory", skills.path(),
                                                        "--workspace", own.path()});
  CHECK(r["stdout"] == Json("mine"));
  CHECK(r["notes"].size() == 1);
}

TEST_CASE("a program without some of the descriptors 0 to 2 does no harm") {
  const TempDir place;
  const std::string audit = place / "audit";
  SUBCASE("--run without any") {
    Server::Options options;
    options.initialize = false;
    options.closed = {0, 1, 2};
    options.arguments = {"--audit-file", audit, "--run",
                         "touch " + (place / "made") + "; cat; echo out; echo err >&2"};
    Server server(options);
    CHECK(server.wait() == 1);
    CHECK(support::exists(place / "made"));
  }
  SUBCASE("--run without stderr") {
    Server::Options options;
    options.initialize = false;
    options.closed = {2};
    options.arguments = {"--audit-file", audit, "--enable-sudo", "--run", "echo out"};
    Server server(options);
    CHECK(parsed(server.receive_line())["stdout"] == Json("out\n"));
    CHECK(server.wait() == 0);
  }
  SUBCASE("a conversation without stderr") {
    Server::Options options;
    options.closed = {2};
    options.arguments = {"--audit-file", audit};
    Server server(options);
    CHECK(server.execute("echo out; echo err >&2")["stdout"] == Json("out\n"));
    CHECK(server.finish().empty());
  }
  SUBCASE("serving without stdin or stdout ends at once") {
    for (const std::vector<int>& closed : {std::vector<int>{0}, {1}, {0, 1}, {0, 1, 2}}) {
      Server::Options options;
      options.initialize = false;
      options.closed = closed;
      options.arguments = {"--audit-file", audit};
      Server server(options);
      server.close_input();
      const int status = server.wait();
      CHECK((status == 0 || status == 1));
    }
    CHECK(support::read_file(audit) == "");
    return;
  }
  // Nothing but the record went into the only file that was opened.
  const Strings lines = lines_of(support::read_file(audit));
  REQUIRE(lines.size() == 1);
  CHECK(parsed(lines[0])["outcome"] == Json("exited"));
}
