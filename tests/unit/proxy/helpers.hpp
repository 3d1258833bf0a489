// A server of the tests, and an executor whose commands reach it by the proxy.
#ifndef CODEEXEC_TESTS_UNIT_PROXY_HELPERS_HPP
#define CODEEXEC_TESTS_UNIT_PROXY_HELPERS_HPP

#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"

namespace support {

// A program of Python that prints the port on which it listens, and ends with this object.
class PythonServer {
 public:
  explicit PythonServer(const std::string& program, const std::string& work_dir = "/",
                        std::vector<std::string> before = {}) {
    codeexec::ProcessOptions options;
    options.argv = std::move(before);
    for (const std::string& word : {std::string("python3"), std::string("-uc"), program})
      options.argv.push_back(word);
    options.environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin"};
    options.work_dir = work_dir;
    auto started = codeexec::Process::start(std::move(options));
    REQUIRE_MESSAGE(started, started.error().message);
    process_.emplace(std::move(*started));
    const auto text = [this] { return process_->read(codeexec::Stream::out, 0).text; };
    REQUIRE(comes_true([&] { return has(text(), "\n") || process_->done(); }));
    port_ = text().substr(0, text().find('\n'));
    REQUIRE_MESSAGE(!port_.empty(), process_->read(codeexec::Stream::err, 0).text);
  }

  const std::string& port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + port_; }
  // What it has printed since.
  std::string log() const { return process_->read(codeexec::Stream::out, 0).text; }

 private:
  std::optional<codeexec::Process> process_ = {};
  std::string port_ = {};
};

// Serves the files of its directory by HTTP, and prints each request.
inline const char* const file_server =
    "import http.server, sys\n"
    "class H(http.server.SimpleHTTPRequestHandler):\n"
    "  protocol_version = 'HTTP/1.1'\n"
    "  def log_message(self, form, *args): print(self.requestline, self.headers.get('Host'))\n"
    "  def do_POST(self):\n"
    "    body = self.rfile.read(int(self.headers['Content-Length']))\n"
    "    print('POST', self.headers.get('Host'), len(body))\n"
    "    self.send_response(200); self.send_header('Content-Length', str(len(body)))\n"
    "    self.end_headers(); self.wfile.write(body)\n"
    "s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), H)\n"
    "print(s.server_port)\n"
    "s.serve_forever()\n";

// Sends back what it is sent, on any number of connections.
inline const char* const echo_server =
    "import selectors, socket\n"
    "s = socket.create_server(('127.0.0.1', 0), backlog=512); print(s.getsockname()[1])\n"
    "w = selectors.DefaultSelector(); w.register(s, 1)\n"
    "while True:\n"
    "  for key, _ in w.select():\n"
    "    if key.fileobj is s: w.register(s.accept()[0], 1); continue\n"
    "    try: data = key.fileobj.recv(65536)\n"
    "    except OSError: data = b''\n"
    "    if data: key.fileobj.sendall(data)\n"
    "    else: w.unregister(key.fileobj); key.fileobj.close()\n";

// For commands of Python: tunnel() is a connection through the proxy, ask() what comes back for
// what is sent to the proxy itself.
inline const char* const python_client =
    "import socket, struct, sys, time, threading, os\n"
    "port = int(os.environ['HTTPS_PROXY'].rsplit(':', 1)[1])\n"
    "def proxy():\n"
    "  c = socket.create_connection(('127.0.0.1', port)); c.settimeout(30); return c\n"
    "def all_of(c):\n"
    "  got = b''\n"
    "  while True:\n"
    "    try: piece = c.recv(65536)\n"
    "    except ConnectionResetError: return got\n"
    "    if not piece: return got\n"
    "    got += piece\n"
    "def exactly(c, size):\n"
    "  got = b''\n"
    "  while len(got) < size:\n"
    "    piece = c.recv(size - len(got))\n"
    "    if not piece: break\n"
    "    got += piece\n"
    "  return got\n"
    "def ask(data):\n"
    "  c = proxy(); c.sendall(data); return all_of(c)\n"
    "def tunnel(to):\n"
    "  c = proxy(); c.sendall(f'CONNECT {to} HTTP/1.1\\r\\n\\r\\n'.encode())\n"
    "  head = b''\n"
    "  while not head.endswith(b'\\r\\n\\r\\n'):\n"
    "    piece = c.recv(1)\n"
    "    if not piece: break\n"
    "    head += piece\n"
    "  assert head.startswith(b'HTTP/1.1 200'), head\n"
    "  return c\n";

// A program of Python that tries to connect without the proxy, and prints the errors.
inline std::string tries_directly(const std::string& port) {
  return "import socket\n"
         "for to in ('127.0.0.1', " +
         port +
         "), ('198.51.100.1', 80):\n"
         "  try: socket.create_connection(to, 5); print('reached')\n"
         "  except OSError as e: print(e.errno)\n";
}

inline codeexec::LocalOptions allowing(const TempDir& directory, std::vector<std::string> domains) {
  codeexec::LocalOptions options;
  options.workspace = directory.path();
  options.sandbox.mode = codeexec::SandboxMode::best_effort;
  options.sandbox.network = codeexec::Network::allow;
  options.allowed_domains = std::move(domains);
  return options;
}

// The same elsewhere: the agent is the server program on this host.
inline codeexec::PlaceOptions allowing_there(const codeexec::LocalOptions& here) {
  codeexec::PlaceOptions options{codeexec::ExecutorOptions(here)};
  options.transport = {CODEEXEC_MCP, "--place"};
  options.name = "box";
  options.sandbox = here.sandbox;
  options.environment = here.environment;
  return options;
}

using Proxied = std::shared_ptr<const codeexec::Executor>;

inline Proxied make_proxied(bool there, const codeexec::LocalOptions& options) {
  if (!there) return std::make_shared<codeexec::LocalExecutor>(make(options));
  auto made = codeexec::PlaceExecutor::create(allowing_there(options));
  REQUIRE_MESSAGE(made, made.error().message);
  return std::make_shared<codeexec::PlaceExecutor>(*std::move(made));
}

// False, and says so, where commands can have no network of their own.
inline bool has_proxy() {
  const TempDir place;
  auto made = codeexec::LocalExecutor::create(allowing(place, {"example.org"}));
  if (made && made->sandbox_report().network == codeexec::Network::allow) return true;
  MESSAGE("SKIPPED: no network namespaces here");
  return false;
}

inline bool has_program(const std::string& name) {
  if (::system(("command -v " + name + " > /dev/null 2>&1").c_str()) == 0) return true;
  MESSAGE("SKIPPED: there is no " << name);
  return false;
}

// Runs a program of Python that begins with python_client.
inline codeexec::Result run_python(const Proxied& executor, const std::string& program) {
  return executor->run(
      codeexec::Command::program({"python3", "-c", std::string(python_client) + program}));
}

// "name:port verdict" of each connection, in order.
inline std::vector<std::string> verdicts(const codeexec::Result& result) {
  std::vector<std::string> found;
  for (const codeexec::Connection& connection : result.connections)
    found.push_back(connection.name + ":" + std::to_string(connection.port) + " " +
                    connection.verdict);
  return found;
}

}  // namespace support

#endif  // CODEEXEC_TESTS_UNIT_PROXY_HELPERS_HPP
