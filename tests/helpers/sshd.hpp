// A server of ssh on this machine with keys of its own, and a user's configuration of ssh that
// knows it as `box`: see sshd.sh.
#ifndef CODEEXEC_TESTS_SSHD_HPP
#define CODEEXEC_TESTS_SSHD_HPP

#include "codeexec.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <optional>

#include "support.hpp"

namespace support {

// A port of this host that nothing listens on now; 0: there is none.
inline int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const bool ok = ::bind(fd, any, size) == 0 && ::getsockname(fd, any, &size) == 0;
  ::close(fd);
  return ok ? ntohs(address.sin_port) : 0;
}

class Sshd {
 public:
  TempDir folder = {};

  explicit Sshd(const std::string& root) : Sshd(root, "127.0.0.1", free_port(), {}, {}) {}
  // The root of this project, and the words that begin a command at the end of the server, and one
  // at the end of the client. It listens when this returns; see problem().
  Sshd(const std::string& root, const std::string& address, int port,
       std::vector<std::string> there, std::vector<std::string> here)
      : here_(std::move(here)) {
    codeexec::ProcessOptions options;
    options.argv = std::move(there);
    options.argv.insert(options.argv.end(), {"sh", root + "/tests/helpers/sshd.sh", folder.path(),
                                             address, std::to_string(port)});
    options.environment = {"PATH=/usr/bin:/bin:/usr/sbin:/sbin"};
    options.supervised = true;
    auto started = codeexec::Process::start(options);
    if (!started) {
      problem_ = started.error().message;
      return;
    }
    process_.emplace(std::move(*started));
    const Stopwatch watch;
    while (!listens() && watch.soon() && !process_->done()) ::poll(nullptr, 0, 5);
    if (!listens()) problem_ = "no sshd: " + said();
  }

  static bool is_there() {
    return exists("/usr/sbin/sshd") && exists("/usr/bin/ssh-keygen") && exists("/usr/bin/ssh");
  }

  // Why it does not listen; empty: it does.
  const std::string& problem() const { return problem_; }
  // `ssh` with its configuration, to which options, host and command are added.
  std::vector<std::string> client() const {
    std::vector<std::string> words = here_;
    words.insert(words.end(), {"/usr/bin/ssh", "-F", folder / "config"});
    return words;
  }
  std::string said() const { return process_->read(codeexec::Stream::err, 0).text; }
  void end() { process_.reset(); }

 private:
  bool listens() const { return said().find("Server listening") != std::string::npos; }

  std::vector<std::string> here_;
  std::string problem_ = {};
  std::optional<codeexec::Process> process_ = {};
};

}  // namespace support

#endif  // CODEEXEC_TESTS_SSHD_HPP
