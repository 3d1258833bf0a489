// Commands and the proxy: what comes through, what is refused, what is recorded.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Command;
using codeexec::ErrorCode;
using codeexec::Json;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Network;
using codeexec::Result;
using codeexec::SandboxMode;
using support::allowing;
using support::begins;
using support::describe;
using support::echo_server;
using support::file_server;
using support::has;
using support::has_program;
using support::has_proxy;
using support::make_proxied;
using support::Proxied;
using support::PythonServer;
using support::run_python;
using support::TempDir;
using support::verdicts;
using Strings = std::vector<std::string>;

TEST_CASE("the options of an allowed network are checked") {
  const TempDir place;
  const auto error_of = [](const LocalOptions& options) {
    const auto made = LocalExecutor::create(options);
    return made ? std::string() : made.error().message;
  };
  CHECK(has(error_of(allowing(place, {})), "needs allowed_domains"));
  CHECK(has(error_of(allowing(place, {"pyton"})), "allowed_domains: 'pyton' is no "));
  LocalOptions options = allowing(place, {"python"});
  options.sandbox.network = Network::loopback;
  CHECK(has(error_of(options), "allowed_domains: it needs network allow"));
  options = allowing(place, {"python"});
  options.sandbox.mode = SandboxMode::off;
  CHECK(has(error_of(options), "network: 'allow' needs a sandbox"));
  // In a place as here.
  const auto error_there = [](const LocalOptions& here) {
    const auto made = codeexec::PlaceExecutor::create(support::allowing_there(here));
    return made ? std::string() : made.error().message;
  };
  CHECK(has(error_there(options), "network: 'allow' needs a sandbox"));
  CHECK(has(error_there(allowing(place, {})), "needs allowed_domains"));
  options.sandbox.network = Network::none;
  options.allowed_domains.clear();
  CHECK(has(error_there(options), "network: 'none' needs a sandbox"));
}

#if defined(__linux__)

#ifdef CODEEXEC_TEST_DENY

// Run by the next case where no namespace can be made, and without a filter when that is asked.
TEST_CASE("proxy: (helper) has no network" * doctest::skip()) {
  const TempDir place;
  LocalOptions options = allowing(place, {"python"});
  const auto made = LocalExecutor::create(options);
  if (std::getenv("CODEEXEC_TEST_NO_FILTER")) {
    REQUIRE(!made);
    CHECK(made.error().code == ErrorCode::unsupported);
    CHECK(begins(made.error().message, "network: 'allow' cannot be had here: "));
  } else {
    REQUIRE_MESSAGE(made, made.error().message);
    CHECK(made->sandbox_report().network == Network::none);
    CHECK(made->run("echo $CODEEXEC_NETWORK$https_proxy").out == "none\n");
    bool missing = false;
    for (const std::string& entry : made->sandbox_report().missing)
      missing = missing || begins(entry, "network: allow cannot be had (");
    CHECK(missing);
  }
  options.sandbox.mode = SandboxMode::strict;
  const auto strict = LocalExecutor::create(options);
  REQUIRE(!strict);
  CHECK(strict.error().code == ErrorCode::unsupported);
  MESSAGE("HELPER DONE");
}

TEST_CASE("where no network can be made there is none, and never an open one") {
  if (!has_proxy()) return;
  for (const bool filter : {true, false}) {
    codeexec::ProcessOptions options;
    options.argv = {CODEEXEC_TEST_DENY,
                    filter ? "namespaces=EPERM" : "namespaces=EPERM,seccomp=EPERM",
                    "--",
                    support::real_path("/proc/self/exe"),
                    "--no-skip",
                    "-tc=proxy: (helper) has no network"};
    options.environment = {"PATH=/usr/bin:/bin", "HOME=/tmp"};
    if (!filter) options.environment.push_back("CODEEXEC_TEST_NO_FILTER=1");
    const codeexec::ProcessResult r = codeexec::run_process(options);
    CHECK_MESSAGE(r.succeeded(), r.out << r.err);
    CHECK_MESSAGE(has(r.out + r.err, "HELPER DONE"), r.out << r.err);
  }
}

#endif

// Each case runs with commands on this host and in a place, whose connections come back to it.
#define PROXY_CASE(name) PROXY_CASE_NAMED(name, DOCTEST_ANONYMOUS(proxied_))
#define PROXY_CASE_NAMED(name, function)             \
  static void function(bool there);                  \
  TEST_CASE(name) { function(false); }               \
  TEST_CASE(name ", in a place") { function(true); } \
  static void function(bool there)

PROXY_CASE("a command reaches what is listed, and is told of what is not") {
  if (!has_proxy() || !has_program("curl") || !has_program("python3")) return;
  const TempDir place;
  const TempDir files;
  files.file("hello", "hello there\n");
  const PythonServer server(file_server, files.path());
  const Proxied executor = make_proxied(there, allowing(place, {server.address(), "python"}));
  CHECK(has(executor->describe_place(), server.address() + ", python"));
  const std::string curl = "curl -sS --noproxy '' ";
  const std::string url = "http://" + server.address() + "/hello";
  Result r = executor->run(curl + url + " && " + curl + "-p " + url + " && " + curl +
                           "--preproxy '' --socks5-hostname 127.0.0.1:61080 " + url);
  CHECK_MESSAGE(r.out == "hello there\nhello there\nhello there\n", describe(r));
  CHECK(r.notes.empty());
  CHECK(verdicts(r) == Strings(3, server.address() + " allowed"));
  for (const codeexec::Connection& record : r.connections) {
    CHECK(record.received > 12U);
    CHECK(record.sent > 20U);
  }
  r = executor->run(curl + "http://example.com/x; " + curl + "https://example.com/; " + curl +
                    "http://127.0.0.1:1/");
  CHECK_MESSAGE(begins(r.out, "example.com:80 is not allowed; the operator allows: " +
                                  server.address() + ", python\n"),
                describe(r));
  REQUIRE(r.notes.size() == 1);
  CHECK(r.notes[0] ==
        "example.com:80, example.com:443, 127.0.0.1:1 are not allowed over the network; the "
        "operator allows: " +
            server.address() + ", python");
  CHECK(verdicts(r) ==
        Strings{"example.com:80 refused", "example.com:443 refused", "127.0.0.1:1 refused"});
}

PROXY_CASE("without the proxy nothing is reached, and no descriptor of it is there") {
  if (!has_proxy() || !has_program("python3")) return;
  const TempDir place;
  const PythonServer server(echo_server);
  const Proxied executor = make_proxied(there, allowing(place, {server.address()}));
  Result r = run_python(executor, "print(sorted(os.listdir('/proc/self/fd')))\n" +
                                      support::tries_directly(server.port()));
  // Descriptor 3 is that of the listing.
  CHECK_MESSAGE(r.out == "['0', '1', '2', '3']\n111\n101\n", describe(r));
  CHECK(r.connections.empty());
  r = executor->run(
      "echo $CODEEXEC_NETWORK $https_proxy $NO_PROXY; cat /proc/$PPID/fdinfo/* | wc -l");
  CHECK_MESSAGE(begins(r.out, "allow http://127.0.0.1:61080 localhost,127.0.0.1,::1\n"),
                describe(r));
}

PROXY_CASE("each command has a proxy of its own, at the same time as others") {
  if (!has_proxy() || !has_program("python3")) return;
  const TempDir place;
  const PythonServer server(echo_server);
  const Proxied executor = make_proxied(there, allowing(place, {server.address()}));
  const std::string program = std::string(support::python_client) + "c = tunnel('" +
                              server.address() +
                              "')\nprint('there')\n"
                              "sys.stdin.readline()\nc.sendall(b'x' * int(sys.argv[1]))\n"
                              "print(len(exactly(c, int(sys.argv[1]))))\n";
  std::vector<codeexec::Execution> running;
  for (int i = 1; i <= 4; ++i) {
    Command command = Command::program({"python3", "-uc", program, std::to_string(i * 1000)});
    command.keep_input_open = true;
    command.background = i % 2 == 0;
    running.push_back(executor->start(command));
  }
  for (const auto& execution : running) REQUIRE(support::prints_text(execution, "there\n"));
  int i = 0;
  for (const auto& execution : running) {
    CHECK(execution.write("go\n"));
    const Result r = execution.wait();
    const std::string size = std::to_string(++i * 1000);
    CHECK_MESSAGE(r.out == "there\n" + size + "\n", describe(r));
    REQUIRE_MESSAGE(verdicts(r) == Strings{server.address() + " allowed"}, describe(r));
    CHECK(r.connections[0].sent == static_cast<std::uint64_t>(i) * 1000);
    CHECK(r.connections[0].received == static_cast<std::uint64_t>(i) * 1000);
  }
}

PROXY_CASE("the connections of a command end with it, and stand in its audit record") {
  if (!has_proxy() || !has_program("python3")) return;
  const TempDir place;
  const PythonServer server(
      "import socket\n"
      "s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1])\n"
      "while True:\n"
      "  c = s.accept()[0]; c.sendall(b'x')\n"
      "  print('ended' if c.recv(1) == b'' else 'sent')\n");
  support::AuditLog log;
  LocalOptions options = allowing(place, {server.address()});
  options.on_audit = log.callback();
  const Proxied executor = make_proxied(there, options);
  const int before = support::count_descriptors();
  const Result r =
      run_python(executor, "c = tunnel('" + server.address() +
                               "')\nos.write(1, c.recv(1))\nos.kill(os.getpid(), 9)\n");
  CHECK(r.out == "x");
  CHECK(support::comes_true([&] { return has(server.log(), "ended\n"); }));
  // The descriptors of the first command are those of the thread.
  CHECK(support::count_descriptors() <= before);
  const auto records = log.take();
  REQUIRE(records.size() == 1);
  const Json& connections = records[0]["connections"];
  REQUIRE(connections.items().size() == 1);
  CHECK(connections.items()[0].dump() == "{\"name\":\"127.0.0.1\",\"port\":" + server.port() +
                                             ",\"verdict\":\"allowed\",\"sent\":0,\"received\":1}");
}

PROXY_CASE("a name that leads to this host is refused unless the address is listed") {
  if (!has_proxy() || !has_program("curl") || !has_program("python3")) return;
  const TempDir place;
  const TempDir files;
  files.file("hello", "hello\n");
  const PythonServer server(file_server, files.path());
  const std::string name = "localhost:" + server.port();
  const std::string script = "curl -sS --noproxy '' http://" + name + "/hello";
  const Result refused = make_proxied(there, allowing(place, {name}))->run(script);
  CHECK_MESSAGE(has(refused.out, name + " is not allowed: its address "), describe(refused));
  CHECK(verdicts(refused) == Strings{name + " refused"});
  REQUIRE(refused.notes.size() == 1);
  CHECK(has(refused.notes[0], "is private or this host's"));
  CHECK(!has(server.log(), "GET"));
  const Result reached =
      make_proxied(there, allowing(place, {name, server.address()}))->run(script);
  CHECK_MESSAGE(reached.out == "hello\n", describe(reached));
  // The server sees the name that was asked for.
  CHECK(has(server.log(), "GET /hello HTTP/1.1 " + name));
}

PROXY_CASE("a name that does not exist, and a port where nothing listens") {
  if (!has_proxy() || !has_program("curl")) return;
  const TempDir place;
  const Proxied executor =
      make_proxied(there, allowing(place, {"no-such-name.invalid", "127.0.0.1:1"}));
  const Result r = executor->run(
      "curl -sS http://no-such-name.invalid/; curl -sS --noproxy '' http://127.0.0.1:1/");
  CHECK_MESSAGE(begins(r.out, "no-such-name.invalid:80 cannot be reached: "), describe(r));
  CHECK(has(r.out, "127.0.0.1:1 cannot be reached: Connection refused\n"));
  CHECK(verdicts(r) == Strings{"no-such-name.invalid:80 failed", "127.0.0.1:1 failed"});
}

PROXY_CASE("what is no request gets no connection") {
  if (!has_proxy() || !has_program("python3")) return;
  const TempDir place;
  const PythonServer server(echo_server);
  const Proxied executor = make_proxied(there, allowing(place, {server.address()}));
  const Result r = run_python(
      executor,
      "to = '" + server.address() +
          "'\n"
          "print(ask(b'\\x16\\x03\\x01\\x02\\x00'))\n"
          "print(ask(b'\\x04\\x01\\x00\\x50\\x7f\\x00\\x00\\x01\\x00'))\n"
          "print(ask(b'\\x05\\x01\\x02').hex())\n"
          "print(ask(b'\\x05\\x01\\x00\\x05\\x02\\x00\\x03\\x01x\\x00\\x50').hex())\n"
          "c = proxy(); c.sendall(b'\\x05\\x01\\x00'); print(exactly(c, 2).hex())\n"
          "c.sendall(b'\\x05\\x03\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00'); "
          "print(all_of(c).hex())\n"
          "print(ask(b'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n').split(b'\\r\\n')[0].decode())\n"
          "print(ask(b'A' * 20000).split(b'\\r\\n')[0].decode())\n"
          "print(ask(f'GET http://{to}/ HTTP/1.1\\r\\nHost: {to}\\r\\nHost: "
          "x\\r\\n\\r\\n'.encode())"
          ".split(b'\\r\\n')[0].decode())\n");
  CHECK_MESSAGE(r.out ==
                    "b''\nb''\n05ff\n050005070001000000000000\n0500\n"
                    "05070001000000000000\n"
                    "HTTP/1.1 400 Bad Request\nHTTP/1.1 400 Bad Request\n"
                    "HTTP/1.1 400 Bad Request\n",
                describe(r));
  CHECK(r.notes.empty());
  CHECK(verdicts(r).size() == 8);
  for (const std::string& verdict : verdicts(r)) CHECK(has(verdict, " bad request"));
}

PROXY_CASE("a connection carries one request, whatever follows it") {
  if (!has_proxy() || !has_program("python3")) return;
  const TempDir place;
  // Takes all that comes, whatever it says, tells each time how much of it was body so far, and
  // the body itself at the end.
  const PythonServer server(
      "import socket\n"
      "s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1])\n"
      "while True:\n"
      "  c = s.accept()[0]; got = b''\n"
      "  while data := c.recv(65536):\n"
      "    got += data; head, end, body = got.partition(b'\\r\\n\\r\\n')\n"
      "    if end: c.sendall(b'%d\\n' % len(body))\n"
      "  c.sendall(repr(body).encode()); c.close()\n");
  const Proxied executor = make_proxied(there, allowing(place, {server.address()}));
  const Result r = run_python(
      executor,
      "to = '" + server.address() +
          "'\n"
          "post = f'POST http://{to}/ HTTP/1.1\\r\\nContent-Length: 4\\r\\n\\r\\n'.encode()\n"
          "get = b'GET / HTTP/1.1\\r\\nHost: evil\\r\\n\\r\\n'\n"
          "for pieces in ([(post + b'body' + get, 4)], [(post, 0), (b'body', 4), (get, 4)],\n"
          "               [(post + b'bo', 2), (b'dy' + get, 4)]):\n"
          "  c = proxy(); told = c.makefile('rb'); there = -1\n"
          "  for piece, body in pieces:\n"
          "    c.sendall(piece)\n"
          "    while there != body: there = int(told.readline())\n"
          "  c.shutdown(socket.SHUT_WR); print(told.read())\n");
  CHECK_MESSAGE(r.out == "b\"b'body'\"\nb\"b'body'\"\nb\"b'body'\"\n", describe(r));
  CHECK(verdicts(r) == Strings(3, server.address() + " allowed"));
}

PROXY_CASE("either end may end first, and a slow reader gets all") {
  if (!has_proxy() || !has_program("python3")) return;
  const TempDir place;
  // Counts what comes until its end, then answers with that and with many bytes.
  const PythonServer server(
      "import socket, threading\n"
      "s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1])\n"
      "def serve(c):\n"
      "  size = 0\n"
      "  while True:\n"
      "    data = c.recv(65536)\n"
      "    if not data: break\n"
      "    size += len(data)\n"
      "  c.sendall(b'%08d' % size + b'y' * 8000000); c.close()\n"
      "while True: threading.Thread(target=serve, args=[s.accept()[0]]).start()\n");
  const Proxied executor = make_proxied(there, allowing(place, {server.address()}));
  const Result r =
      run_python(executor, "c = tunnel('" + server.address() +
                               "')\n"
                               "c.sendall(b'x' * 5000000); c.shutdown(socket.SHUT_WR)\n"
                               "print(exactly(c, 8))\n"
                               "size = 0\n"
                               "while True:\n"
                               "  data = c.recv(100000)\n"
                               "  if not data: break\n"
                               "  size += len(data)\n"
                               "  if size < 1000000: time.sleep(0.001)\n"
                               "print(size)\n");
  CHECK_MESSAGE(r.out == "b'05000000'\n8000000\n", describe(r));
  REQUIRE(verdicts(r).size() == 1);
  CHECK(r.connections[0].sent == 5000000U);
  CHECK(r.connections[0].received == 8000008U);
}

PROXY_CASE("what is sent after the end of the server arrives whole") {
  if (!has_proxy() || !has_program("python3")) return;
  const TempDir place;
  // Ends its direction of the first connection, and tells the second one what came by the first.
  const PythonServer server(
      "import socket, time\n"
      "s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1])\n"
      "c = s.accept()[0]; c.shutdown(socket.SHUT_WR); size = 0\n"
      "while data := c.recv(65536): size += len(data); time.sleep(0.001)\n"
      "s.accept()[0].sendall(b'%08d' % size); s.accept()\n");
  const Proxied executor = make_proxied(there, allowing(place, {server.address()}));
  const Result r = run_python(executor, "to = '" + server.address() +
                                            "'\nc = tunnel(to); print(c.recv(1))\n"
                                            "c.sendall(b'x' * 5000000); c.close()\n"
                                            "print(exactly(tunnel(to), 8))\n");
  CHECK_MESSAGE(r.out == "b''\nb'05000000'\n", describe(r));
  REQUIRE(verdicts(r).size() == 2);
  CHECK(r.connections[0].sent == 5000000U);
}

PROXY_CASE("connections that the proxy has ended make room, though the command holds them") {
  if (!has_proxy() || !has_program("python3")) return;
  const TempDir place;
  const PythonServer server(echo_server);
  const Proxied executor = make_proxied(there, allowing(place, {server.address()}));
  const Result r =
      run_python(executor,
                 "cs = [proxy() for _ in range(300)]\n"
                 "for c in cs: c.sendall(b'GET / HTTP/1.1\\r\\n\\r\\n')\n"
                 "print(all(b' 400 ' in all_of(c) for c in cs))\n"
                 "c = tunnel('" +
                     server.address() + "'); c.sendall(b'room'); print(exactly(c, 4))\n");
  CHECK_MESSAGE(r.out == "True\nb'room'\n", describe(r));
}

TEST_CASE("a proxy that a place has in its variables is not used") {
  if (!has_proxy()) return;
  const TempDir place;
  codeexec::PlaceOptions options = support::allowing_there(allowing(place, {"python"}));
  options.transport.insert(options.transport.begin(), {"env", "HTTPS_PROXY=http://corp:3128"});
  auto made = codeexec::PlaceExecutor::create(options);
  REQUIRE_MESSAGE(made, made.error().message);
  CHECK(made->run("echo $HTTPS_PROXY").out == "http://127.0.0.1:61080\n");
  options.environment.set = {{"HTTPS_PROXY", "http://wanted:1"}};
  made = codeexec::PlaceExecutor::create(options);
  REQUIRE_MESSAGE(made, made.error().message);
  CHECK(made->run("echo $HTTPS_PROXY").out == "http://wanted:1\n");
}

PROXY_CASE("200 connections at once, and 10,000 that want nothing") {
  if (!has_proxy() || !has_program("python3")) return;
  const TempDir place;
  const PythonServer server(echo_server);
  LocalOptions options = allowing(place, {server.address()});
  options.timeout = std::chrono::seconds(120);
  const Proxied executor = make_proxied(there, options);
  const Result r = run_python(
      executor, "cs = [tunnel('" + server.address() +
                    "') for _ in range(200)]\n"
                    "for i, c in enumerate(cs): c.sendall(b'%06d' % i)\n"
                    "print(all(exactly(c, 6) == b'%06d' % i for i, c in enumerate(cs)))\n");
  CHECK_MESSAGE(r.out == "True\n", describe(r));
  CHECK(verdicts(r).size() == 100);
  CHECK(r.connections_omitted == 100);
  // These are held open, and others that ask for something come through once they are closed.
  const Result many =
      run_python(executor,
                 "import resource\n"
                 "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
                 "most = min(10000, hard - 100)\n"
                 "resource.setrlimit(resource.RLIMIT_NOFILE, (most + 100, hard))\n"
                 "cs = []\n"
                 "for _ in range(most):\n"
                 "  c = socket.socket(); c.setblocking(False); c.connect_ex(('127.0.0.1', port))\n"
                 "  cs.append(c)\n"
                 "print(len(cs) > 500)\n"
                 "for c in cs: c.close()\n"
                 "c = tunnel('" +
                     server.address() + "'); c.sendall(b'still'); print(exactly(c, 5))\n");
  CHECK_MESSAGE(many.out == "True\nb'still'\n", describe(many));
  CHECK(verdicts(many) == Strings{server.address() + " allowed"});
}

PROXY_CASE("a command has connections beside several that take all they can") {
  if (!has_proxy() || !has_program("python3")) return;
  const TempDir place;
  const PythonServer server(echo_server);
  const Proxied executor = make_proxied(there, allowing(place, {server.address()}));
  Command greedy = Command::program({"python3", "-uc",
                                     std::string(support::python_client) +
                                         "cs = [proxy() for _ in range(300)]\n"
                                         "for c in cs: c.sendall(b'CONNECT " +
                                         server.address() +
                                         " HTTP/1.1\\r\\n\\r\\n')\n"
                                         "for c in cs[:20]: exactly(c, 12)\n"
                                         "print('held')\nsys.stdin.readline()\n"});
  greedy.keep_input_open = true;
  const auto first = executor->start(greedy);
  REQUIRE(support::prints_text(first, "held\n"));
  const auto second = executor->start(greedy);
  REQUIRE(support::prints_text(second, "held\n"));
  const Result beside = run_python(executor, "c = tunnel('" + server.address() +
                                                 "'); c.sendall(b'too'); print(exactly(c, 3))\n");
  CHECK_MESSAGE(beside.out == "b'too'\n", describe(beside));
}

PROXY_CASE("what a command does not read is not kept for it") {
  if (!has_proxy() || !has_program("python3")) return;
  const TempDir place;
  const PythonServer server(
      "import socket, threading\n"
      "s = socket.create_server(('127.0.0.1', 0), backlog=512); print(s.getsockname()[1])\n"
      "def serve(c):\n"
      "  try:\n"
      "    while True: c.sendall(b'z' * 65536)\n"
      "  except OSError: pass\n"
      "while True: threading.Thread(target=serve, args=[s.accept()[0]], daemon=True).start()\n");
  const Proxied executor = make_proxied(there, allowing(place, {server.address()}));
  const auto resident = [] {  // MiB
    const std::string text = support::read_file("/proc/self/statm");
    return std::strtoul(text.c_str() + text.find(' '), nullptr, 10) / 256;
  };
  // ThreadSanitizer watches each byte that all of them send until they are held up.
  const std::string count = support::thread_sanitizer ? "50" : "200";
  Command command = Command::program({"python3", "-uc",
                                      std::string(support::python_client) + "cs = [tunnel('" +
                                          server.address() + "') for _ in range(" + count +
                                          ")]\nprint('held')\nsys.stdin.readline()\n"});
  command.keep_input_open = true;
  const std::size_t before = resident();
  const auto execution = executor->start(command);
  REQUIRE(support::prints_text(execution, "held\n"));
  // 200 times 32 KiB in each direction are 12.5 MiB. AddressSanitizer keeps what was freed.
  if (!support::address_sanitizer) CHECK(resident() < before + 40);
  execution.close_input();
  const Result r = execution.wait();
  CHECK_MESSAGE(r.succeeded(), describe(r));
}

PROXY_CASE("secrets are masked in what is recorded of a connection") {
  if (!has_proxy() || !has_program("curl")) return;
  const TempDir place;
  const support::EnvironmentGuard secret("CODEEXEC_TEST_TOKEN", "t0psecret");
  support::AuditLog log;
  LocalOptions options = allowing(place, {"python"});
  options.environment.secret = {"CODEEXEC_TEST_TOKEN"};
  options.on_audit = log.callback();
  const Result r =
      make_proxied(there, options)->run("curl -s http://$CODEEXEC_TEST_TOKEN.example.org/");
  CHECK(verdicts(r) == Strings{"[redacted].example.org:80 refused"});
  for (const Json& record : log.take()) CHECK(!has(record.dump(), "t0psecret"));
  for (const std::string& note : r.notes) CHECK(!has(note, "t0psecret"));
}

#else

TEST_CASE("proxy: commands") { MESSAGE("SKIPPED: there is a proxy on Linux only"); }

#endif
