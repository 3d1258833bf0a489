// Places over ssh.

#include "ssh_helpers.hpp"

using codeexec::PlaceExecutor;
using codeexec::PlaceOptions;
using codeexec::Result;
using namespace support;

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
