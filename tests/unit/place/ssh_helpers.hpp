// Helpers for the tests of places over ssh.
#ifndef CODEEXEC_TESTS_PLACE_SSH_HELPERS_HPP
#define CODEEXEC_TESTS_PLACE_SSH_HELPERS_HPP

#include "../../helpers/sshd.hpp"
#include "../../helpers/place_support.hpp"

namespace support {

class SshServer : public Sshd {
 public:
  TempDir workspace = {};

  SshServer() : SshServer("127.0.0.1", free_port(), {}, {}) {}
  SshServer(const std::string& address, int port, Strings there, Strings here)
      : Sshd(CODEEXEC_ROOT, address, port, std::move(there), std::move(here)) {
    REQUIRE_MESSAGE(problem().empty(), problem());
  }

  static bool is_missing() {
    if (is_there()) return false;
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
    options.transport = client();
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
};

}  // namespace support

#endif  // CODEEXEC_TESTS_PLACE_SSH_HELPERS_HPP
