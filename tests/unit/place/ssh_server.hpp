// A server of ssh on this host, with keys of its own.
#ifndef CODEEXEC_TESTS_SSH_SERVER_HPP
#define CODEEXEC_TESTS_SSH_SERVER_HPP

#include "helpers.hpp"

#include <arpa/inet.h>
#include <pwd.h>
#include <sys/socket.h>

namespace support {

inline void run_or_fail(const Strings& argv) {
  codeexec::ProcessOptions options;
  options.argv = argv;
  options.environment = {"PATH=/usr/bin:/bin:/usr/sbin:/sbin"};
  const codeexec::ProcessResult r = codeexec::run_process(options);
  REQUIRE_MESSAGE(r.succeeded(), (r.message + r.err));
}

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

inline bool listens(int port) {
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
    codeexec::ProcessOptions options;
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
  codeexec::PlaceOptions options(const std::string& host = "box",
                                 const std::string& agent = CODEEXEC_MCP) const {
    codeexec::PlaceOptions options = place_options(workspace.path());
    auto words = codeexec::ssh_transport(host, agent);
    REQUIRE(words);
    options.transport = *words;
    options.transport.insert(options.transport.begin() + 1, {"-F", folder / "config"});
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

  int port() const { return port_; }
  void end() { process_.reset(); }

 private:
  int port_ = 0;
  std::optional<codeexec::Process> process_ = {};
};

}  // namespace support

#endif  // CODEEXEC_TESTS_SSH_SERVER_HPP
