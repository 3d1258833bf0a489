// An agent that the transport brings along.

#include "ssh_helpers.hpp"

#include <sys/stat.h>

#include <atomic>
#include <thread>

using codeexec::PlaceExecutor;
using codeexec::PlaceOptions;
using codeexec::Result;
using namespace support;

namespace {

// A user at home on this host, who has no agent yet.
struct Newcomer {
  TempDir workspace = {};
  TempDir home = {};
  std::string cache = home / ".cache/codeexec";

  Strings shell(const std::string& program = "sh") const {
    return {"env", "-u", "XDG_CACHE_HOME", "HOME=" + home.path(), program};
  }

  PlaceOptions options(Strings transport) const {
    PlaceOptions options = place_options(workspace.path());
    options.transport = std::move(transport);
    options.agent = CODEEXEC_MCP;
    return options;
  }
  PlaceOptions options() const { return options(shell()); }

  // In a mount namespace of its own, after these commands; $1 is the home.
  PlaceOptions mounted(const std::string& commands) const {
    Strings words = {"unshare", "-m", "sh", "-c", commands + "\nshift; exec \"$@\"", "sh"};
    words.push_back(home.path());
    for (const std::string& word : shell()) words.push_back(word);
    return options(words);
  }

  // The path of the one file that is in the folder.
  std::string brought(const std::string& folder) const {
    const Strings names = names_in(folder);
    REQUIRE(names.size() == 1);
    CHECK(begins(names[0], "codeexec-mcp-" CODEEXEC_VERSION_STRING "-"));
    return folder + "/" + names[0];
  }
  std::string brought() const { return brought(cache); }
};

struct stat status_of(const std::string& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status;
}

// The agent is the one in that folder.
bool runs_from(const std::string& folder, const Newcomer& user, const PlaceOptions& options) {
  const Result r = make_place(options).run("readlink /proc/$PPID/exe; umask");
  CAPTURE(r.out);
  return r.out == user.brought(folder) + "\n0022\n";
}

// The one line of what is in the way.
std::string hindrance(const PlaceOptions& options) {
  const codeexec::Error error = place_error(options);
  CHECK(begins(error.message, "cannot reach box: the agent cannot be put there; "));
  CHECK(!has(error.message, "\n"));
  return error.message;
}

bool has_mounts() {
  codeexec::ProcessOptions trial;
  trial.argv = {"unshare", "-m", "mount", "-t", "tmpfs", "none", "/tmp"};
  if (codeexec::run_process(trial).succeeded()) return true;
  MESSAGE("SKIPPED: no mount namespace here");
  return false;
}

// A folder of programs, in place of the usual ones.
void link_programs(const std::string& folder, const Strings& names) {
  for (const std::string& name : names) {
    const std::string path = exists("/bin/" + name) ? "/bin/" + name : "/usr/bin/" + name;
    if (exists(path)) make_symlink(path, folder + "/" + name);
  }
}
const Strings usual_programs = {"sh",   "env",  "id",    "uname", "mkdir", "ls",      "df",
                                "tail", "head", "chmod", "mv",    "rm",    "readlink"};

}  // namespace

TEST_CASE("bring: over ssh, a clean home gets the agent once") {
  if (SshServer::is_missing()) return;
  SshServer server;
  const Newcomer user;
  PlaceOptions options = server.options("box", "");
  REQUIRE(options.transport.back() == "sh");
  options.transport.back() = "env -u XDG_CACHE_HOME HOME=" + user.home.path() + " sh";
  options.agent = CODEEXEC_MCP;
  ino_t first = 0;
  for (int i = 0; i < 2; ++i) {
    const PlaceExecutor there = make_place(options);
    const Result r = there.run("echo \"$SSH_CONNECTION\"; readlink /proc/$PPID/exe; cd; pwd");
    const std::string agent = user.brought();
    CHECK(begins(r.out, "127.0.0.1 "));
    CHECK(ends(r.out, "\n" + agent + "\n" + user.home.path() + "\n"));
    const struct stat file = status_of(agent);
    CHECK((file.st_mode & 07777) == 0700);
    CHECK((status_of(user.cache).st_mode & 07777) == 0700);
    CHECK(read_file(agent) == read_file(CODEEXEC_MCP));
    if (i > 0) CHECK(file.st_ino == first);
    first = file.st_ino;
  }
  // A lost connection is made anew in the same way.
  const PlaceExecutor there = make_place(options);
  ::kill(agent_of(there), SIGKILL);
  while (there.run("true").outcome == codeexec::Outcome::unknown) {
  }
  CHECK(there.run("echo x").out == "x\n");
  CHECK(status_of(user.brought()).st_ino == first);
}

TEST_CASE("bring: any POSIX shell does it, and what it prints before is skipped") {
  for (const Strings& words :
       {Strings{"dash"}, Strings{"bash"}, Strings{"bash", "--posix"}, Strings{"mksh"},
        Strings{"busybox", "sh"}, Strings{"sh", "-c", "seq 5000; printf codeexec-; exec sh"}}) {
    CAPTURE(words);
    if (!exists("/bin/" + words[0]) && !exists("/usr/bin/" + words[0])) continue;
    const Newcomer user;
    Strings transport = user.shell(words[0]);
    transport.insert(transport.end(), words.begin() + 1, words.end());
    const PlaceOptions options = user.options(transport);
    CHECK(runs_from(user.cache, user, options));
    CHECK(runs_from(user.cache, user, options));
  }
}

TEST_CASE("bring: a copy that is damaged is replaced") {
  const Newcomer user;
  make_place(user.options());
  const std::string agent = user.brought();
  const std::string content = read_file(agent);
  std::string other = content;
  other[other.size() / 2] ^= 1;
  for (const std::string& damaged : {other, content.substr(0, 1000), std::string()}) {
    write_file(agent, damaged, 0700);
    CHECK(runs_from(user.cache, user, user.options()));
    CHECK(read_file(agent) == content);
  }
}

TEST_CASE("bring: another version lies beside, and another protocol is not half understood") {
  const Newcomer user;
  make_place(user.options());
  const std::string first = user.brought();
  PlaceOptions options = user.options();
  options.agent = user.workspace / "next";
  write_file(options.agent, read_file(CODEEXEC_MCP) + "x", 0644);
  const Result r = make_place(options).run("readlink /proc/$PPID/exe");
  CHECK(r.out != first + "\n");
  CHECK(begins(r.out, user.cache));
  CHECK(names_in(user.cache).size() == 2);
  CHECK(make_place(user.options()).run("readlink /proc/$PPID/exe").out == first + "\n");
  // The file that is named counts, each time it is brought.
  write_file(options.agent, "#!/bin/sh\necho codeexec-place/99\ncat\n");
  const codeexec::Error error = place_error(options);
  CHECK(error.code == codeexec::ErrorCode::unsupported);
  CHECK(has(error.message, "the agent in box speaks protocol \"99\""));
  CHECK(names_in(user.cache).size() == 3);
}

TEST_CASE("bring: a folder that is not the user's alone is left alone") {
  const Newcomer user;
  const std::string second = user.home / ".codeexec";
  const std::string elsewhere = user.workspace / "elsewhere";
  make_directories(elsewhere);
  const auto check = [&](const std::string& folder) {
    CHECK(names_in(folder).empty());
    CHECK(runs_from(second, user, user.options()));
    CHECK(names_in(folder).empty());
    remove_all(second);
  };
  make_directories(user.cache);
  for (const mode_t mode : {0755U, 0770U, 0777U, 01777U}) {
    ::chmod(user.cache.c_str(), mode);
    check(user.cache);
  }
  if (::geteuid() == 0) {
    ::chmod(user.cache.c_str(), 0700);
    REQUIRE(::chown(user.cache.c_str(), 65534, 65534) == 0);
    check(user.cache);
  }
  remove_all(user.cache);
  make_symlink(elsewhere, user.cache);
  ::chmod(elsewhere.c_str(), 0755);
  check(elsewhere);
  remove_all(user.home / ".cache");
  write_file(user.home / ".cache", "");
  CHECK(runs_from(second, user, user.options()));
}

TEST_CASE("bring: it goes where it has room and can be executed") {
  if (!has_mounts()) return;
  const Newcomer user;
  const std::string read_only = "mount -t tmpfs -o ro none /var/tmp; mount --bind /tmp /tmp; ";
  const std::string full = read_only + "mount -o remount,bind,ro /tmp; ";
  std::string said = hindrance(user.mounted(full + "mount -t tmpfs -o size=1m none \"$1\""));
  CHECK(has(said, "no folder takes it; " + user.cache + " has no room for "));
  CHECK(has(said, "; " + user.home.path() + "/.codeexec has no room for "));
  CHECK(count_of(said, "Read-only file system") == 2);
  said = hindrance(user.mounted(full + "mount -t tmpfs -o noexec none \"$1\""));
  CHECK(has(said, "; " + user.cache + " is mounted noexec; "));
  CHECK(count_of(said, "Read-only file system") == 2);
  said = hindrance(user.mounted(full + "mount -t tmpfs -o ro none \"$1\""));
  CHECK(count_of(said, "Read-only file system") == 4);
  const PlaceOptions other =
      user.mounted("mount -t tmpfs none /var/tmp; mount -t tmpfs -o noexec none \"$1\"");
  const Result r = make_place(other).run("readlink /proc/$PPID/exe; ls -A " + user.home.path() +
                                         "/.cache/codeexec");
  CHECK(begins(r.out, "/var/tmp/codeexec-0/codeexec-mcp-"));
  CHECK(r.out.find('\n') == r.out.size() - 1);
  // Where df does not know it.
  TempDir programs;
  link_programs(programs.path(), usual_programs);
  link_programs(programs.path(), {"sha256sum"});
  ::unlink((programs / "df").c_str());
  said = hindrance(
      user.mounted(full + "mount -t tmpfs -o size=1m none \"$1\"; PATH=" + programs.path()));
  CHECK(has(said, "No space left on device"));
  CHECK(has(said, "has not come whole. "));
}

TEST_CASE("bring: an agent for another processor is not copied") {
  const Newcomer user;
  std::string content = read_file(CODEEXEC_MCP);
  REQUIRE(content.substr(0, 4) == "\177ELF");
  const bool is_arm = content[18] == '\xb7';
  content[18] = is_arm ? '\x3e' : '\xb7';
  PlaceOptions options = user.options();
  options.agent = user.workspace / "other";
  write_file(options.agent, content);
  CHECK(has(hindrance(options), is_arm ? "it is for x86_64, and there is aarch64"
                                       : "it is for aarch64, and there is "));
  CHECK(names_in(user.home.path()).empty());
}

TEST_CASE("bring: it is checked by what is there for that") {
  const Newcomer user;
  for (const std::string program : {"sha256sum", "shasum", "openssl", ""}) {
    CAPTURE(program);
    TempDir programs;
    link_programs(programs.path(), usual_programs);
    if (!program.empty()) link_programs(programs.path(), {program, "perl"});
    if (!program.empty() && !exists(programs / program)) continue;
    Strings transport = user.shell();
    transport.insert(transport.end() - 1, "PATH=" + programs.path());
    const PlaceOptions options = user.options(transport);
    if (!program.empty())
      CHECK(runs_from(user.cache, user, options));
    else
      CHECK(has(hindrance(options), "sha256sum, shasum or openssl, and none is there"));
    remove_all(user.cache);
  }
}

TEST_CASE("bring: many may bring it at once") {
  const Newcomer user;
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 6; ++i)
    threads.emplace_back([&] {
      const auto there = PlaceExecutor::create(user.options());
      if (there && there->run("echo x").out == "x\n") ++good;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(good == 6);
  CHECK(read_file(user.brought()) == read_file(CODEEXEC_MCP));
}

TEST_CASE("bring: a copy that was cut off is neither run nor left") {
  const Newcomer user;
  TempDir programs;
  link_programs(programs.path(), usual_programs);
  link_programs(programs.path(), {"sha256sum"});
  ::unlink((programs / "head").c_str());
  write_file(programs / "head", "#!/bin/sh\nexec /usr/bin/head -c 300000\n", 0755);
  Strings transport = user.shell();
  transport.insert(transport.end() - 1, "PATH=" + programs.path());
  CHECK(has(hindrance(user.options(transport)), "has not come whole. "));
  CHECK(names_in(user.cache).empty());
}

TEST_CASE("bring: what asks for it is not trusted") {
  const Newcomer user;
  const std::string content = repeat("content", 1000);
  write_file(user.workspace / "agent", content);
  const auto message_of = [&](const std::string& script) {
    PlaceOptions options = user.options({"sh", "-c", script});
    options.agent = user.workspace / "agent";
    options.connect_timeout = std::chrono::seconds(1);
    const codeexec::Error error = place_error(options);
    CHECK(!has(error.message, "\n"));
    return error.message;
  };
  CHECK(has(message_of("echo codeexec-bring"), "it was closed at the other end"));
  // It is given once.
  const std::string taken = user.workspace / "taken";
  CHECK(has(message_of("echo codeexec-bring; head -c 1000 >'" + taken +
                       "'; echo codeexec-bring; cat >>'" + taken + "'; true"),
            "did not answer"));
  const Stopwatch watch;
  while (!ends(read_file(taken), content) && watch.soon()) ::poll(nullptr, 0, 2);
  CHECK(read_file(taken).find(content) == read_file(taken).size() - content.size());
  CHECK(has(message_of("while :; do echo codeexec-bring; done"), "no greeting of an agent"));
  CHECK(has(message_of("cat >/dev/null & exec sleep 600"), "did not answer"));
  CHECK(has(message_of("exit 127"), "it was closed at the other end"));
}

TEST_CASE("bring: what cannot be meant is an error") {
  const Newcomer user;
  PlaceOptions options = user.options({CODEEXEC_MCP, "--place"});
  CHECK(has(place_error(options).message, "agent: is for a transport that leads to a shell"));
  options = user.options();
  options.agent = user.workspace / "nothing";
  CHECK(has(place_error(options).message, "agent '" + options.agent + "': No such file"));
}
