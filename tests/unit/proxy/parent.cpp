// Commands whose proxy goes through another one, and names that are denied to them.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <string>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::LocalOptions;
using codeexec::Result;
using support::allowing;
using support::begins;
using support::describe;
using support::file_server;
using support::has;
using support::has_program;
using support::has_proxy;
using support::make_proxied;
using support::Proxied;
using support::PythonServer;
using support::TempDir;
using support::verdicts;
using Strings = std::vector<std::string>;

#if defined(__linux__)

namespace {

// A proxy that wants user:pass, prints what it is asked for, and has one server for all names. What
// the name says decides how it answers.
std::string parent_of(const PythonServer& server) {
  return "import socket, threading\n"
         "s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1])\n"
         "def copy(a, b):\n"
         "  while (data := a.recv(65536)): b.sendall(data)\n"
         "  b.shutdown(socket.SHUT_WR)\n"
         "def serve(c):\n"
         "  head = b''\n"
         "  while b'\\r\\n\\r\\n' not in head: head += c.recv(1)\n"
         "  lines = head.decode().split('\\r\\n'); print(' | '.join(lines[:3]))\n"
         "  method, where, _ = lines[0].split()\n"
         "  if 'Proxy-Authorization: Basic dXNlcjpwYXNz' not in lines:\n"
         "    c.sendall(b'HTTP/1.1 407 No\\r\\n\\r\\n'); c.close(); return\n"
         "  if 'refused' in where: c.sendall(b'HTTP/1.1 403 No\\r\\n\\r\\n'); c.close(); return\n"
         "  if 'closed' in where: c.close(); return\n"
         "  if 'odd' in where: c.sendall(b'SSH-2.0\\r\\n\\r\\n'); c.close(); return\n"
         "  if 'long' in where:\n"
         "    try:\n"
         "      while True: c.sendall(b'HTTP/1.1 200 ' + b'x' * 4096)\n"
         "    except OSError: return\n"
         "  far = socket.create_connection(('127.0.0.1', " +
         server.port() +
         "))\n"
         "  if method == 'CONNECT':\n"
         "    for byte in b'HTTP/1.1 200 Fine\\r\\nX: y\\r\\n\\r\\n': c.sendall(bytes([byte]))\n"
         "  else:\n"
         "    path = '/' + where.split('/', 3)[3]\n"
         "    rest = [l for l in lines[1:] if not l.startswith('Proxy-')]\n"
         "    far.sendall('\\r\\n'.join([f'{method} {path} HTTP/1.1'] + rest).encode())\n"
         "  threading.Thread(target=copy, args=(far, c), daemon=True).start()\n"
         "  try: copy(c, far)\n"
         "  except OSError: pass\n"
         "while True: threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()\n";
}

void check_parent(bool there) {
  if (!has_proxy() || !has_program("curl") || !has_program("python3")) return;
  const TempDir place;
  const TempDir files;
  files.file("hello", "hello there\n");
  const PythonServer server(file_server, files.path());
  const PythonServer parent(parent_of(server));
  LocalOptions options = allowing(place, {"*.example.test", server.address()});
  options.parent_proxy = "http://user:pass@" + parent.address();
  const Proxied executor = make_proxied(there, options);
  const std::string curl = "curl -sS --noproxy '' ";
  const std::string url = "http://a.example.test/hello";
  // Plain HTTP, a tunnel, SOCKS5.
  const Result r = executor->run(curl + url + " && " + curl + "-p " + url + " && " + curl +
                                 "--preproxy '' --socks5-hostname 127.0.0.1:61080 " + url +
                                 "; env; cat /proc/$PPID/environ");
  CHECK_MESSAGE(begins(r.out, "hello there\nhello there\nhello there\n"), describe(r));
  CHECK_FALSE(has(r.out, "pass@"));
  CHECK(verdicts(r) == Strings(3, "a.example.test:80 allowed"));
  const std::string asked = parent.log();
  CHECK_MESSAGE(has(asked,
                    "GET http://a.example.test:80/hello HTTP/1.1 | "
                    "Proxy-Authorization: Basic dXNlcjpwYXNz | Host: a.example.test\n"),
                asked);
  CHECK(has(asked, "CONNECT a.example.test:80 HTTP/1.1 | Host: a.example.test:80 | Proxy-Auth"));
  // This host is reached without it, and what is not allowed not at all.
  const Result direct =
      executor->run(curl + "http://" + server.address() + "/hello; " + curl + "http://other.test/");
  CHECK_MESSAGE(begins(direct.out, "hello there\nother.test:80 is not allowed;"), describe(direct));
  CHECK(parent.log() == asked);
}

void check_failures(bool there) {
  if (!has_proxy() || !has_program("curl") || !has_program("python3")) return;
  const TempDir place;
  const PythonServer server(file_server, place.path());
  const PythonServer parent(parent_of(server));
  LocalOptions options = allowing(place, {"*.example.test"});
  options.parent_proxy = "http://user:pass@" + parent.address();
  const Proxied executor = make_proxied(there, options);
  const auto reason_of = [](const Proxied& by, const std::string& name) {
    const Result r = by->run("curl -sS --noproxy '' -p http://" + name + ".example.test/");
    CHECK_FALSE(r.succeeded());
    REQUIRE(r.connections.size() == 1);
    CHECK(r.connections[0].verdict == "failed");
    return r.connections[0].reason;
  };
  CHECK(reason_of(executor, "refused") == "the parent proxy refuses it");
  CHECK(reason_of(executor, "closed") == "the parent proxy closes the connection");
  CHECK(reason_of(executor, "odd") == "the parent proxy does not answer with HTTP/1.1");
  CHECK(reason_of(executor, "long") == "the parent proxy gives no answer");
  options.parent_proxy = "http://user:wrong@" + parent.address();
  CHECK(reason_of(make_proxied(there, options), "a") ==
        "the parent proxy wants another user or password");
  options.parent_proxy = "http://127.0.0.1:1";
  CHECK(has(reason_of(make_proxied(there, options), "a"), "the parent proxy: "));
}

void check_denied(bool there) {
  if (!has_proxy() || !has_program("curl") || !has_program("python3")) return;
  const TempDir place;
  const PythonServer server(file_server, place.path());
  LocalOptions options = allowing(place, {"*.example.test", server.address()});
  options.denied_domains = {"bad.example.test=use good.example.test", server.address()};
  const Result r = make_proxied(there, options)
                       ->run(
                           "curl -sS --noproxy '' http://bad.example.test/; "
                           "curl -sS --noproxy '' http://" +
                           server.address() + "/");
  CHECK_MESSAGE(begins(r.out,
                       "bad.example.test:80 is not allowed: use good.example.test; the "
                       "operator allows: *.example.test, "),
                describe(r));
  REQUIRE(r.notes.size() == 1);
  CHECK(begins(r.notes[0], "bad.example.test:80 (use good.example.test), " + server.address() +
                               " (the operator denies it) are not allowed over the network"));
  CHECK_FALSE(has(server.log(), "GET"));
}

}  // namespace

TEST_CASE("a proxy of the operator's serves the names that are not direct") { check_parent(false); }
TEST_CASE("a proxy of the operator's serves the names that are not direct, in a place") {
  check_parent(true);
}
TEST_CASE("what a parent proxy does not serve is a failure with its reason") {
  check_failures(false);
}
TEST_CASE("what a parent proxy does not serve is a failure with its reason, in a place") {
  check_failures(true);
}
TEST_CASE("a denied name is refused with the operator's reason") { check_denied(false); }
TEST_CASE("a denied name is refused with the operator's reason, in a place") { check_denied(true); }

#else

TEST_CASE("proxy: parents") { MESSAGE("SKIPPED: there is a proxy on Linux only"); }

#endif
