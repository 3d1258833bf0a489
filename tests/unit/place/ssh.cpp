// Places over ssh: a server of ssh on this host, with keys of its own.

#include "helpers.hpp"

#include <arpa/inet.h>
#include <pwd.h>
#include <sys/socket.h>

using codeexec::PlaceExecutor;
using codeexec::PlaceOptions;
using codeexec::ProcessOptions;
using codeexec::Result;
using namespace support;

namespace {

void run_or_fail(const Strings& argv) {
  ProcessOptions options;
  options.argv = argv;
  options.environment = {"PATH=/usr/bin:/bin:/usr/sbin:/sbin"};
  const codeexec::ProcessResult r = codeexec::run_process(options);
  REQUIRE_MESSAGE(r.succeeded(), (r.message + r.err));
}

// One that nobody listens on now.
int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  REQUIRE(::bind(fd, any, size) == 0);
  REQUIRE(::getsockname(fd, any, &size) == 0);
  ::close(fd);
  return ntohs(address.sin_port);
}

bool listens(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const bool answers = ::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return answers;
}

// The server, and a user's configuration of ssh that knows it as `box`.
class SshServer {
 public:
  TempDir folder = {};
  TempDir workspace = {};

  SshServer() {
    ::chmod(folder.path().c_str(), 0700);
    for (const char* key : {"host_key", "user_key", "other_key"})
      run_or_fail({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key});
    write_file(folder / "authorized", read_file(folder / "user_key.pub"), 0600);
    port_ = free_port();
    const std::string port = std::to_string(port_);
    write_file(folder / "sshd_config",
               "Port " + port + "\nListenAddress 127.0.0.1\nHostKey " + (folder / "host_key") +
                   "\nAuthorizedKeysFile " + (folder / "authorized") +
                   "\nStrictModes no\nUsePAM no\nPermitRootLogin yes\nPidFile none\n"
                   "PasswordAuthentication yes\n");
    const std::string host_key = read_file(folder / "host_key.pub");
    write_file(folder / "known", "[127.0.0.1]:" + port + " " + host_key);
    write_file(folder / "unknown", "");
    const std::string other = read_file(folder / "other_key.pub");
    write_file(folder / "changed", "[127.0.0.1]:" + port + " " + other);
    configure("user_key", "known");
    // It wants a directory that a fresh machine does not have.
    if (::geteuid() == 0) make_directories("/run/sshd");
    ProcessOptions options;
    options.argv = {"/usr/sbin/sshd", "-D", "-e", "-f", folder / "sshd_config"};
    options.environment = {"PATH=/usr/bin:/bin"};
    options.supervised = true;
    auto started = codeexec::Process::start(options);
    REQUIRE(started);
    process_.emplace(std::move(*started));
    const Stopwatch watch;
    while (!listens(port_) && watch.soon() && !process_->done()) ::poll(nullptr, 0, 5);
    REQUIRE_MESSAGE(listens(port_), process_->read(codeexec::Stream::err, 0).text);
  }

  static bool is_missing() {
    if (exists("/usr/sbin/sshd") && exists("/usr/bin/ssh-keygen") && exists("/usr/bin/ssh"))
      return false;
    MESSAGE("SKIPPED: no sshd here (openssh-server)");
    return true;
  }

  // Which key is shown, and which keys of hosts are known.
  void configure(const std::string& key, const std::string& known) {
    write_file(folder / "config", "Host box\n HostName 127.0.0.1\n Port " + std::to_string(port_) +
                                      "\n User " + ::getpwuid(::geteuid())->pw_name +
                                      "\n IdentityFile " + (folder / key) +
                                      "\n IdentitiesOnly yes\n UserKnownHostsFile " +
                                      (folder / known) + "\n GlobalKnownHostsFile none\n");
  }

  // What ssh_transport() gives, with that configuration in place of the user's own.
  PlaceOptions options(const std::string& host = "box",
                       const std::string& agent = CODEEXEC_MCP) const {
    PlaceOptions options = place_options(workspace.path());
    auto words = codeexec::ssh_transport(host, agent);
    REQUIRE(words);
    options.transport = *words;
    options.transport.insert(options.transport.begin() + 1, {"-F", folder / "config"});
    return options;
  }

  // The error is one line, says `what`, and what to do about it.
  void check_refused(const PlaceOptions& wanted, const std::string& what) const {
    const codeexec::Error error = place_error(wanted);
    CAPTURE(error.message);
    CHECK(has(error.message, what));
    CHECK(begins(error.message, "cannot reach box: "));
    CHECK(!has(error.message, "\n"));
  }

  int port() const { return port_; }
  void end() { process_.reset(); }

 private:
  int port_ = 0;
  std::optional<codeexec::Process> process_ = {};
};

}  // namespace

TEST_CASE("ssh: commands run there, and end with the connection") {
  if (SshServer::is_missing()) return;
  SshServer server;
  const PlaceExecutor there = make_place(server.options());
  const Result r = there.run("echo \"$SSH_CONNECTION\"; pwd; exit 4");
  CHECK(r.exit_code == 4);
  CHECK(begins(r.out, "127.0.0.1 "));
  CHECK(ends(r.out, server.workspace.path() + "\n"));
  const codeexec::Execution started =
      there.start(codeexec::Command::shell("trap '' TERM HUP; while :; do sleep 600; done"));
  const pid_t pid = started.pid();
  CHECK(alive(pid));
  server.end();
  CHECK(started.wait().outcome == codeexec::Outcome::unknown);
  CHECK(dies(pid));
  const Result next = there.run("echo x");
  CHECK(next.outcome == codeexec::Outcome::not_started);
  CHECK(has(next.message, "nothing listens there"));
}

TEST_CASE("ssh: bytes of both streams pass as they are") {
  if (SshServer::is_missing()) return;
  SshServer server;
  const PlaceExecutor there = make_place(server.options());
  const Result r = there.run("head -c 3000000 /dev/urandom > r; sha256sum < r; cat r >&2");
  CHECK(r.err_counts.total_bytes == 3000000);
  codeexec::Command command = codeexec::Command::shell("sha256sum");
  command.input = read_file(server.workspace / "r");
  CHECK(there.run(command).out == r.out);
}

TEST_CASE("ssh: what keeps it from connecting is one line, with what to do") {
  if (SshServer::is_missing()) return;
  SshServer server;
  server.configure("other_key", "known");
  server.check_refused(server.options(), "no password can be asked for");
  server.configure("user_key", "unknown");
  server.check_refused(server.options(), "its host key is not known");
  CHECK(read_file(server.folder / "unknown").empty());
  server.configure("user_key", "changed");
  server.check_refused(server.options(), "its host key is not known, or another one than before");
  server.configure("user_key", "known");
  server.check_refused(server.options("box", "codeexec-mcp-xyz"), "there is no such program there");
  server.check_refused(server.options("box", "/dev/null"), "it said: ");
  server.check_refused(server.options("nobody.invalid"), "no machine has this name");
  server.end();
  server.check_refused(server.options(), "nothing listens there");
  CHECK(!codeexec::ssh_transport("-oProxyCommand=x"));
  CHECK(!codeexec::ssh_transport(""));
}
