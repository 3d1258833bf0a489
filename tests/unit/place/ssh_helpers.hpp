// Helpers for the tests of places over ssh: a server of ssh on this host, with keys of its own.
#ifndef CODEEXEC_TESTS_PLACE_SSH_HELPERS_HPP
#define CODEEXEC_TESTS_PLACE_SSH_HELPERS_HPP

#include "helpers.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <optional>

namespace support {

// One that nobody listens on now.
inline int free_port() {
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

// The server, and a user's configuration of ssh that knows it as `box`: helpers/sshd.sh.
class SshServer {
 public:
  TempDir folder = {};
  TempDir workspace = {};

  SshServer() : SshServer("127.0.0.1", free_port(), {}, {}) {}
  // The words that begin a command at the end of the server, and one at the end of the client.
  SshServer(const std::string& address, int port, Strings there, Strings here)
      : here_(std::move(here)) {
    codeexec::ProcessOptions options;
    options.argv = std::move(there);
    options.argv.insert(options.argv.end(), {"sh", CODEEXEC_ROOT "/tests/helpers/sshd.sh",
                                             folder.path(), address, std::to_string(port)});
    options.environment = {"PATH=/usr/bin:/bin:/usr/sbin:/sbin"};
    options.supervised = true;
    auto started = codeexec::Process::start(options);
    REQUIRE(started);
    process_.emplace(std::move(*started));
    const Stopwatch watch;
    while (!has(said(), "Server listening") && watch.soon() && !process_->done())
      ::poll(nullptr, 0, 5);
    REQUIRE_MESSAGE(has(said(), "Server listening"), said());
  }

  static bool is_missing() {
    if (exists("/usr/sbin/sshd") && exists("/usr/bin/ssh-keygen") && exists("/usr/bin/ssh"))
      return false;
    MESSAGE("SKIPPED: no sshd here (openssh-server)");
    return true;
  }

  // Which key is shown, and which keys of hosts are known.
  void configure(const std::string& key, const std::string& known) const {
    std::string lines;
    for (const std::string& line : lines_of(read_file(folder / "config")))
      lines += (has(line, " IdentityFile ")         ? " IdentityFile " + (folder / key)
                : has(line, " UserKnownHostsFile ") ? " UserKnownHostsFile " + (folder / known)
                                                    : line) +
               "\n";
    write_file(folder / "config", lines);
  }

  // What ssh_transport() gives, with that configuration in place of the user's own.
  codeexec::PlaceOptions options(const std::string& host = "box",
                                 const std::string& agent = CODEEXEC_MCP) const {
    codeexec::PlaceOptions options = place_options(workspace.path());
    const auto words = codeexec::ssh_transport(host, agent);
    REQUIRE(words);
    options.transport = here_;
    options.transport.insert(options.transport.end(), {"ssh", "-F", folder / "config"});
    options.transport.insert(options.transport.end(), words->begin() + 1, words->end());
    return options;
  }

  // The error is one line, says `what`, and what to do about it.
  void check_refused(const codeexec::PlaceOptions& wanted, const std::string& what) const {
    const codeexec::Error error = place_error(wanted);
    CAPTURE(error.message);
    CHECK(has(error.message, what));
    CHECK(begins(error.message, "cannot reach box: "));
    CHECK(!has(error.message, "\n"));
  }

  std::string said() const { return process_->read(codeexec::Stream::err, 0).text; }
  void end() { process_.reset(); }

 private:
  Strings here_;
  std::optional<codeexec::Process> process_ = {};
};

}  // namespace support

#endif  // CODEEXEC_TESTS_PLACE_SSH_HELPERS_HPP
