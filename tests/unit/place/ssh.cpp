// Places over ssh.

#include "../../helpers/server_support.hpp"
#include "ssh_helpers.hpp"

using codeexec::Json;
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

// The server has a mount namespace of its own, with other files under a path of this host.
TEST_CASE("ssh: a workspace that is only there") {
  if (SshServer::is_missing()) return;
  codeexec::ProcessOptions probe;
  probe.argv = {"unshare", "-m", "mount", "--bind", "/usr", "/mnt"};
  probe.environment = {"PATH=/usr/bin:/bin:/usr/sbin:/sbin"};
  if (!codeexec::run_process(probe).succeeded()) {
    MESSAGE("SKIPPED: not root, or no mount namespaces, so that sshd sees what this host has");
    return;
  }
  const TempDir real;
  const TempDir seen;
  make_directories(real / "ws");
  make_directories(seen / "ws");
  write_file(real / "ws/file", "of the place\n");
  write_file(seen / "ws/file", "of this host\n");
  SshServer server("127.0.0.1", free_port(),
                   {"unshare", "-m", "sh", "-c",
                    "mount --bind \"$0\" \"$1\" && shift && exec \"$@\"", real.path(), seen.path()},
                   {});
  PlaceOptions options = server.options();
  options.workspace = seen / "ws";
  CHECK(has(place_error(options).message, "place_workspace remote"));
  options.workspace_mode = codeexec::PlaceWorkspace::remote;
  options.roots = {{seen / "ws"}};
  const PlaceExecutor there = make_place(options);
  const Result r = there.run("pwd; cat file; echo \"$SSH_CONNECTION\"");
  CHECK_MESSAGE(begins(r.out, (seen / "ws\nof the place\n127.0.0.1 ")), describe(r));
  CHECK(there.files().read("file")->bytes == "of the place\n");

  Server::Options how;
  how.wrapper = {"env", "PATH=" + (server.folder / "bin") + ":/usr/bin:/bin"};
  how.arguments = {"--execution-mode",   "ssh",        "--place-host",    "box",
                   "--place-agent-path", CODEEXEC_MCP, "--workspace",     seen / "ws",
                   "--place-workspace",  "remote",     "--allowed-paths", seen / "ws",
                   "--sandbox",          "off"};
  Server tools(how);
  CHECK(tools.execute("cat file")["stdout"] == Json("of the place\n"));
  tools.use("write_file", R"({"file_path":"dir/new","content":"text\n"})");
  CHECK(tools.use("read_file", R"({"file_path":"dir/new"})")["content"] == Json("text\n"));
  const Json list = tools.use("list_files", R"({"path":"."})");
  CHECK(list["path"] == Json(seen / "ws"));
  REQUIRE(list["entries"].size() == 2);
  CHECK(list["entries"][0]["path"] == Json("dir"));
  CHECK(list["entries"][1]["path"] == Json("file"));
  CHECK(tools.finish().empty());
  CHECK(read_file(real / "ws/dir/new") == "text\n");
  CHECK(names_in(seen / "ws") == Strings{"file"});
  CHECK(read_file(seen / "ws/file") == "of this host\n");

  server.end();
  const auto lost = there.files().read("file");
  REQUIRE(!lost);
  CHECK(has(lost.error().message, "box"));
}

TEST_CASE("ssh: a workspace is copied there and back") {
  if (SshServer::is_missing()) return;
  SshServer server;
  PlaceOptions options = server.options();
  options.workspace_mode = codeexec::PlaceWorkspace::copy;
  std::string bytes(std::size_t{20} << 20, 'x');
  for (std::size_t i = 0; i < bytes.size(); i += 4099) bytes[i] = static_cast<char>(i / 4099);
  write_file(server.workspace / "large", bytes);
  const PlaceExecutor there = make_place(options);
  const Result r = there.run("sha256sum large; cat large large > larger; echo small > small");
  REQUIRE_MESSAGE(r.succeeded(), r.message);
  CHECK(r.notes.empty());
  CHECK(read_file(server.workspace / "larger") == bytes + bytes);
  CHECK(read_file(server.workspace / "small") == "small\n");
  CHECK(there.run("rm l*; ls").out == "small\n");
  CHECK(!exists(server.workspace / "large"));
}
