// Containers of users, with a real engine: see parity.cpp. Their image is codeexec/executor:latest,
// or what CODEEXEC_TEST_EXECUTOR says.
#include "../../helpers/engine_support.hpp"
#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"

#include <poll.h>

#include <set>
#include <thread>

namespace {

using codeexec::ErrorCode;
using codeexec::Expected;
using codeexec::Json;
using codeexec::Outcome;
using codeexec::Result;
using codeexec::UserContainerOptions;
using codeexec::UserContainers;
using support::docker;
using support::EnvironmentGuard;
using support::has;
using support::TempDir;

std::string image() {
  const char* given = std::getenv("CODEEXEC_TEST_EXECUTOR");
  return given ? given : "codeexec/executor:latest";
}

bool has_engine() { return support::has_engine_with(image()); }

// The text, or the error.
template <class T>
std::string text_of(const Expected<T>& done) {
  if (!done) return "error: " + done.error().message;
  if constexpr (std::is_same_v<T, std::string>) return *done;
  return "done";
}

// One set of containers for all test cases that do not ask for their own, with folders of tools.
class Users {
 public:
  explicit Users(UserContainerOptions options = {}) {
    tools_ = folder_.directory("tools");
    skills_ = folder_.directory("skills");
    if (options.container.image.empty()) options.container.image = image();
    options.container.agent = support::engine_agent;
    options.tools_dir = tools_;
    options.skills_dir = skills_;
    auto made = UserContainers::create(options);
    REQUIRE_MESSAGE(made, made.error().message);
    containers_.emplace(std::move(*made));
  }
  ~Users() { CHECK(text_of(containers_->cleanup_all()) == "done"); }
  Users(const Users&) = delete;
  Users& operator=(const Users&) = delete;

  const UserContainers* operator->() const { return &*containers_; }
  const UserContainers& operator*() const { return *containers_; }
  const TempDir& folder() const { return folder_; }
  const std::string& tools() const { return tools_; }

  Result run(const std::string& command, const std::string& user = "ada") const {
    auto result = (*this)->execute_bash(user, command);
    REQUIRE_MESSAGE(result, result.error().message);
    return *std::move(result);
  }
  std::string out(const std::string& command, const std::string& user = "ada") const {
    const Result result = run(command, user);
    CHECK_MESSAGE(result.succeeded(), result.summary() << " " << result.err);
    return result.out;
  }

 private:
  TempDir folder_;
  std::string tools_;
  std::string skills_;
  std::optional<UserContainers> containers_;
};

std::vector<std::string> names(const Expected<std::vector<codeexec::FileEntry>>& list) {
  REQUIRE_MESSAGE(list, list.error().message);
  std::vector<std::string> result;
  for (const codeexec::FileEntry& artifact : *list)
    result.push_back(artifact.path + ":" + std::to_string(artifact.size));
  return result;
}

using Strings = std::vector<std::string>;

}  // namespace

TEST_CASE("user containers: what is not said") {
  const TempDir here;
  const support::DirectoryGuard there(here.path());
  // These are for the server, and folders of the usual names, too.
  EnvironmentGuard variables;
  variables.set("MCP_EXECUTOR_IMAGE", "some/image:1");
  variables.set("MCP_TOOLS_PATH", here.directory("tools").c_str());
  variables.set("MCP_SKILLS_PATH", here.directory("skills").c_str());
  variables.set("MCP_ARTIFACT_SIZE_LIMIT_MB", "7");
  variables.set("CODEEXEC_PLACE_AGENT", "/nonexistent/agent");
  auto users = UserContainers::create({});
  REQUIRE_MESSAGE(users, users.error().message);
  CHECK(users->options().container.image == "codeexec/executor:latest");
  CHECK(users->options().container.user == "1000:1000");
  CHECK(users->options().container.agent.empty());
  CHECK(users->options().tools_dir.empty());
  CHECK(users->options().skills_dir.empty());
  CHECK(users->options().max_artifact == std::uint64_t{50} << 20);
  CHECK(users->options().container.network == codeexec::ContainerNetwork::none);
  CHECK(users->options().container.mounts.empty());
}

TEST_CASE("user containers: folders of the host") {
  const TempDir here;
  const support::DirectoryGuard there(here.path());
  const std::string tools = here.directory("tools");
  here.directory("skills");
  UserContainerOptions options;
  options.container.image = "other";
  options.tools_dir = tools;
  options.skills_dir = "./skills";
  options.max_artifact = 100;
  auto users = UserContainers::create(options);
  REQUIRE_MESSAGE(users, users.error().message);
  CHECK(users->options().container.image == "other");
  CHECK(users->options().tools_dir == tools);
  CHECK(users->options().skills_dir == here / "skills");
  CHECK(users->options().max_artifact == 100);
  REQUIRE(users->options().container.mounts.size() == 2);
  CHECK(users->options().container.mounts[0].source == tools);
  CHECK(users->options().container.mounts[0].target == "/tools");
  CHECK(users->options().container.mounts[0].permission == codeexec::Permission::read);
  options.tools_dir = here / "missing";
  CHECK(has(text_of(UserContainers::create(options)), "/tools: "));
  options.tools_dir.clear();
  options.skills_dir = here.file("file");
  CHECK(has(text_of(UserContainers::create(options)), "/skills: "));
}

TEST_CASE("user containers: who has no name has no container") {
  const auto users = UserContainers::create({});
  REQUIRE(users);
  for (const std::string& user : {std::string(), std::string("a\0b", 3), std::string(1025, 'x')}) {
    const auto result = users->execute_bash(user, "true");
    REQUIRE_FALSE(result);
    CHECK(result.error().code == ErrorCode::invalid_argument);
    CHECK(has(result.error().message, "user_id"));
  }
}

TEST_CASE("user containers: commands") {
  if (!has_engine()) return;
  const Users users;
  CHECK(users.out("echo hello") == "hello\n");
  CHECK(users.out("whoami; id -u; pwd") == "coderunner\n1000\n/workspace\n");
  CHECK(has(users.out("python --version 2>&1"), "Python 3."));
  CHECK(users.out("[[ a == a ]] && echo ${BASH_VERSION:+bash}") == "bash\n");
  CHECK(users.run("exit 1").exit_code == 1);
  CHECK(users.run("ls /nonexistent").exit_code != 0);
  const Result both = users.run("echo out; echo err >&2; exit 3");
  CHECK(both.out == "out\n");
  CHECK(both.err == "err\n");
  CHECK(both.exit_code == 3);
  CHECK(both.work_dir == "/workspace");
  CHECK(both.command == "echo out; echo err >&2; exit 3");
  // One writes where the other reads.
  CHECK(users.out("echo kept > file; echo art > /artifacts/a") == "");
  CHECK(users.out("cat file /artifacts/a") == "kept\nart\n");
  // Nothing of the host but two folders, which cannot be changed.
  const std::string secret = users.folder().file("secret.txt", "hidden");
  CHECK_FALSE(users.run("cat " + secret).succeeded());
  CHECK_FALSE(users.run("echo x > /tools/x").succeeded());
  CHECK_FALSE(users.run("echo x > /skills/x").succeeded());
  CHECK(users.out("ls /sys/class/net") == "lo\n");
}

TEST_CASE("user containers: a command that takes too long is ended") {
  if (!has_engine()) return;
  const Users users;
  const auto result =
      users->execute_bash("ada", "echo begun; sleep 1000 & sleep 1000", std::chrono::seconds(1));
  REQUIRE_MESSAGE(result, result.error().message);
  CHECK_MESSAGE(result->outcome == Outcome::timed_out, result->summary() << result->message);
  CHECK(result->out == "begun\n");
  CHECK(users.out("for f in /proc/[0-9]*/comm; do cat $f; done | grep -c sleep; :") == "0\n");
}

TEST_CASE("user containers: what is written is read") {
  if (!has_engine()) return;
  const Users users;
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  const std::string special =
      "quotes ' \" ` $HOME $(id) \\ \\n %s\ttab\r\nunicode \xc3\xa9 \xe6\xbc\xa2\nno line end";
  const auto round_trip = [&](const std::string& path, const std::string& content) {
    const auto written = users->write_file("ada", path, content);
    REQUIRE_MESSAGE(written, written.error().message);
    CHECK(*written == content.size());
    CHECK(text_of(users->read_file("ada", path)) == content);
  };
  round_trip("/workspace/special.txt", special);
  round_trip("bytes.bin", bytes + bytes);
  round_trip("empty", "");
  round_trip("long", std::string(std::size_t{1} << 20, 'x'));
  round_trip("new/folders/file", "in them");
  CHECK(users.out("cat new/folders/file") == "in them");
  CHECK(users.out("ls -A | grep codeexec; :") == "");
  REQUIRE(users->write_file("ada", "run.py", "print('caf\xc3\xa9 \\'$HOME\\'')\n"));
  CHECK(users.out("python run.py") == "caf\xc3\xa9 '$HOME'\n");
}

TEST_CASE("user containers: a file is written whole or not at all") {
  if (!has_engine()) return;
  UserContainerOptions options;
  options.workspace_size = std::uint64_t{8} << 20;
  const Users users(options);
  SUBCASE("large, without any limit of a command line") {
    const std::string large(std::size_t{5} << 20, 'y');
    REQUIRE(text_of(users->write_file("ada", "/tmp/large", large)) == "done");
    CHECK(users.out("wc -c </tmp/large") == std::to_string(large.size()) + "\n");
  }
  SUBCASE("where it does not fit") {
    REQUIRE(users->write_file("ada", "old", "as it was"));
    const std::string more(std::size_t{9} << 20, 'z');
    const auto written = users->write_file("ada", "old", more);
    REQUIRE_FALSE(written);
    CHECK(has(written.error().message, "Failed to write file old: "));
    CHECK(text_of(users->read_file("ada", "old")) == "as it was");
    CHECK(users.out("ls -A") == "old\n");
    const std::string most(std::size_t{64} << 20, 'z');
    const auto beyond = users->write_file("ada", "old", most + "z");
    REQUIRE_FALSE(beyond);
    CHECK(beyond.error().code == ErrorCode::limit);
  }
  SUBCASE("what is there") {
    CHECK(users.out("echo '#!/bin/sh' > tool; chmod 755 tool; ln -s tool link; mkdir folder") ==
          "");
    REQUIRE(users->write_file("ada", "link", "#!/bin/sh\necho new\n"));
    CHECK(users.out("./tool; readlink link; stat -c %a tool") == "new\ntool\n755\n");
    CHECK(has(text_of(users->write_file("ada", "folder", "x")), "Not a regular file"));
    CHECK(users.out("chmod 444 tool") == "");
    CHECK(has(text_of(users->write_file("ada", "tool", "x")), "Permission denied"));
    CHECK(users.out("ls -A") == "folder\nlink\ntool\n");
    CHECK_FALSE(users->write_file("ada", "/tools/x", "x"));
    CHECK_FALSE(users->write_file("ada", "", "x"));
    CHECK_FALSE(users->write_file("ada", std::string("a\0b", 3), "x"));
  }
}

TEST_CASE("user containers: what comes in part is not written") {
  if (!has_engine()) return;
  const TempDir folder;
  UserContainerOptions options;
  options.container.engine.program =
      folder.file("engine",
                  "#!/bin/sh\ncase \" $* \" in *--place*) dd bs=1 count=20000 | docker \"$@\";; "
                  "*) exec docker \"$@\";; esac\n",
                  0755);
  const Users users(options);
  REQUIRE(text_of(users->write_file("ada", "f", "0123456789")) == "done");
  CHECK_FALSE(users->write_file("ada", "f", std::string(30000, 'a')));
  CHECK(text_of(users->read_file("ada", "f")) == "0123456789");
  CHECK(users.out("ls") == "f\n");
}

TEST_CASE("user containers: an image with no more than busybox") {
  if (!has_engine()) return;
  UserContainerOptions options;
  options.container.image = "codeexec-test/busybox:latest";
  if (!docker({"image", "inspect", options.container.image}).succeeded()) {
    MESSAGE("SKIPPED: there is no image " << options.container.image);
    return;
  }
  const Users users(options);
  CHECK(users.out("id -u; pwd; echo \"${BASH_VERSION:-sh}\"") == "1000\n/workspace\nsh\n");
  REQUIRE(users->write_file("ada", "folder/f", "1\n2\n3\n"));
  REQUIRE(users->write_file("ada", "folder/f", std::string("1\n2\0x\n3\n", 8)));
  CHECK(text_of(users->read_file("ada", "folder/f", 1, 1)) == std::string("2\0x\n", 4));
  CHECK(has(text_of(users->read_file("ada", "none", 1, 1)), "No such file or directory"));
  REQUIRE(users->write_file("ada", "/artifacts/a b", "12"));
  CHECK(names(users->list_artifacts("ada")) == Strings{"a b:2"});
  CHECK(text_of(users->get_artifact("ada", "a b")) == "12");
}

TEST_CASE("user containers: parts of a file") {
  if (!has_engine()) return;
  const Users users;
  std::string lines;
  for (int i = 1; i <= 6; ++i) lines += "Line " + std::to_string(i) + "\n";
  REQUIRE(users->write_file("ada", "f", lines));
  const auto part = [&](std::uint64_t offset, std::optional<std::uint64_t> count) {
    return text_of(users->read_file("ada", "f", offset, count));
  };
  CHECK(part(0, 1) == "Line 1\n");
  CHECK(part(0, 3) == "Line 1\nLine 2\nLine 3\n");
  CHECK(part(2, 2) == "Line 3\nLine 4\n");
  CHECK(part(4, 10) == "Line 5\nLine 6\n");
  CHECK(part(0, 0) == "");
  CHECK(part(5, {}) == "Line 6\n");
  CHECK(part(6, {}) == "");
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  CHECK(part(most, most) == "");
  CHECK(part(0, most) == lines);
  // A long line, and a long file: the whole is too much, a part is not.
  CHECK(users.out("i=0; while [ $i -lt 16384 ]; do printf '%0127d\\n' $i; i=$((i+1)); done > long; "
                  "echo end >> long") == "");
  const auto whole = users->read_file("ada", "long");
  REQUIRE_FALSE(whole);
  CHECK(whole.error().code == ErrorCode::limit);
  CHECK(text_of(users->read_file("ada", "long", 16384)) == "end\n");
  CHECK(text_of(users->read_file("ada", "long", 1, 8192)).size() == std::size_t{1} << 20);
}

TEST_CASE("W-54: a path is a path, whatever it looks like, and a missing file is an error") {
  if (!has_engine()) return;
  const Users users;
  for (const std::string& path :
       {std::string("x; echo INJECTED > /workspace/owned"), std::string("-n"), std::string("--"),
        std::string("$(echo INJECTED > owned)"), std::string("`id > owned`"),
        std::string("' > owned; '"), std::string("a\nb\n"), std::string("sp ace"), std::string("*"),
        std::string("\\"), std::string("caf\xc3\xa9\xff")}) {
    CAPTURE(path);
    const auto missing = users->read_file("ada", path);
    REQUIRE_FALSE(missing);
    CHECK(missing.error().code == ErrorCode::not_found);
    const auto missing_lines = users->read_file("ada", path, 2, 5);
    REQUIRE_FALSE(missing_lines);
    CHECK(missing_lines.error().code == ErrorCode::not_found);
    CHECK(has(missing_lines.error().message, "Failed to read file "));
    CHECK(has(missing_lines.error().message, "No such file or directory"));
    REQUIRE(text_of(users->write_file("ada", path, "content of " + path)) == "done");
    CHECK(text_of(users->read_file("ada", path)) == "content of " + path);
  }
  CHECK_FALSE(users.run("ls owned /owned").succeeded());
  CHECK(users.out("find . -type f | wc -l") != "0\n");
  CHECK(has(text_of(users->read_file("ada", "/workspace")), "Not a regular file"));
  CHECK(has(text_of(users->read_file("ada", "/dev/zero")), "Not a regular file"));
  CHECK_FALSE(users->read_file("ada", ""));
  for (const std::string& path : {std::string("a\0b", 3), std::string(4096, 'x')}) {
    const auto read = users->read_file("ada", path);
    REQUIRE_FALSE(read);
    CHECK(read.error().code == ErrorCode::invalid_argument);
  }
  CHECK(has(text_of(users->read_file("ada", std::string(4000, 'x'))), "Failed to read file x"));
  CHECK(users.out("umask 777; echo x > closed") == "");
  CHECK(has(text_of(users->read_file("ada", "closed")), "Failed to read file closed: "));
}

TEST_CASE("user containers: docstrings") {
  if (!has_engine()) return;
  const Users users;
  const TempDir& folder = users.folder();
  folder.file("tools/example.py",
              "open('" + (folder / "imported") +
                  "', 'w')\n"
                  "def add(a, b):\n    \"\"\"Adds.\n\n      Two numbers.\n    \"\"\"\n"
                  "def bare(): pass\nclass K:\n  def m(self):\n    'of m'\n");
  folder.file("tools/pkg/__init__.py", "'''The package.'''\ndef f():\n  'of init'\n");
  folder.file("tools/pkg/deep/mod.py", "def f():\n  'of mod'\n");
  folder.file("tools/broken.py", "def f(:\n  '''x\n");
  folder.file("outside.py", "def f():\n  'secret'\n");
  support::make_symlink(folder / "outside.py", folder / "tools/link.py");
  const auto doc = [&](const std::string& module, const std::string& function) {
    return text_of(users->read_docstring("ada", module, function));
  };
  CHECK(doc("example", "add") == "Adds.\n\nTwo numbers.");
  CHECK(doc("example", "bare") == "");
  CHECK(doc("example", "K.m") == "of m");
  CHECK(doc("pkg", "f") == "of init");
  CHECK(doc("pkg", "") == "The package.");
  CHECK(doc("pkg.deep.mod", "f") == "of mod");
  // W-54: read as text, on no account run; never outside of the folder.
  CHECK(doc("tools.example", "add") == "Adds.\n\nTwo numbers.");
  CHECK_FALSE(support::exists(folder / "imported"));
  CHECK(doc("example", "sub") == "error: Function sub not found in module example");
  for (const char* module : {"nothing", "pkg.nothing", "pkg.deep", "..outside", "pkg..deep", ".",
                             "pkg.", "a b", "a;id", "", "1a"})
    CHECK(doc(module, "f") == "error: Module " + std::string(module) + " not found in /tools");
  CHECK(support::begins(doc("broken", "f"), "error: module broken: "));
  CHECK(support::begins(doc("link", "f"), "error: "));
  // With a slash it is a path in the container.
  CHECK(doc("/etc/evil", "f") == "error: Failed to read file /etc/evil: No such file or directory");
  CHECK(doc("../outside", "f") ==
        "error: Failed to read file ../outside: No such file or directory");
  CHECK(doc("/tools/example.py", "add") == "Adds.\n\nTwo numbers.");
  REQUIRE(users->write_file("ada", "own.py", "def g():\n  'mine'\n"));
  CHECK(doc("own.py", "g") == "mine");
  CHECK(doc("own.py", "h") == "error: Function h not found in own.py");
  CHECK(users.out("python -c 'import pkg; print(pkg.f.__doc__)'") == "of init\n");
}

TEST_CASE("user containers: users do not see each other, whatever they are called") {
  if (!has_engine()) return;
  const Users users;
  const Strings ids = {"ada",  "bob",          "a b/../c",           "$(id)", "'; id; '", "--name",
                       "x\ny", "\xc3\xa9\xff", std::string(300, 'l')};
  for (const std::string& user : ids) {
    CAPTURE(user);
    const auto written = users->write_file(user, "mine", "of " + user);
    REQUIRE_MESSAGE(written, written.error().message);
  }
  for (const std::string& user : ids) {
    CHECK(text_of(users->read_file(user, "mine")) == "of " + user);
    CHECK(users.out("ls -A", user) == "mine\n");
  }
  CHECK(users.out("hostname", "ada") != users.out("hostname", "bob"));
}

TEST_CASE("user containers: many calls at first make one container") {
  if (!has_engine()) return;
  const Users users;
  constexpr int count = 8;
  std::vector<std::string> hosts(count);
  std::vector<std::thread> threads;
  for (std::string& host : hosts)
    threads.emplace_back([&users, &host] {
      const auto result = users->execute_bash("ada", "hostname");
      host = result ? result->out : result.error().message;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(std::set<std::string>(hosts.begin(), hosts.end()).size() == 1);
}

TEST_CASE("user containers: artifacts") {
  if (!has_engine()) return;
  UserContainerOptions options;
  options.max_artifact = 1000;
  const Users users(options);
  CHECK(names(users->list_artifacts("ada")).empty());
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  const std::string odd = "with 'q\"uotes' $(id); \n and -dash";
  for (const std::string& name : {std::string("b.bin"), std::string("a.txt"), std::string("-n"),
                                  std::string("sp ace"), odd, std::string("z\xff")})
    REQUIRE(text_of(users->write_file("ada", "/artifacts/" + name, bytes)) == "done");
  CHECK(users.out("cd /artifacts; echo > .hidden; mkdir folder; ln -s /etc/passwd link; "
                  "echo > 'back\\slash'; head -c 1001 /dev/zero > large") == "");
  CHECK(names(users->list_artifacts("ada")) == Strings{"-n:256", "a.txt:256", "b.bin:256",
                                                       "large:1001", "sp ace:256", odd + ":256",
                                                       "z\xff:256"});
  for (const std::string& name : {std::string("b.bin"), std::string("-n"), odd})
    CHECK(text_of(users->get_artifact("ada", name)) == bytes);
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string(".hidden"),
        std::string("../workspace/x"), std::string("/etc/passwd"), std::string("a/b"),
        std::string("back\\slash"), std::string("a\0b", 3)}) {
    const auto artifact = users->get_artifact("ada", name);
    REQUIRE_FALSE(artifact);
    CHECK(artifact.error().code == ErrorCode::invalid_argument);
    CHECK(has(artifact.error().message, "Invalid artifact name: "));
  }
  for (const char* name : {"missing", "folder", "link", "a;id", "$(id)"}) {
    const auto artifact = users->get_artifact("ada", name);
    REQUIRE_FALSE(artifact);
    CHECK(artifact.error().code == ErrorCode::not_found);
    CHECK(artifact.error().message == "Artifact not found: " + std::string(name));
  }
  const auto large = users->get_artifact("ada", "large");
  REQUIRE_FALSE(large);
  CHECK(large.error().code == ErrorCode::limit);
  CHECK(has(large.error().message, "1001 bytes"));
  CHECK(users.out("head -c 1000 /dev/zero > /artifacts/large") == "");
  CHECK(text_of(users->get_artifact("ada", "large")) == std::string(1000, '\0'));
  CHECK(names(users->list_artifacts("bob")).empty());
}

TEST_CASE("user containers: everything passes the policy, or is on the audit log") {
  if (!has_engine()) return;
  const TempDir folder;
  UserContainerOptions options;
  options.policy.blocked = {"touch .*"};
  options.audit_file = folder / "audit";
  const Users users(options);
  const Result refused = users.run("touch x");
  CHECK(refused.outcome == Outcome::refused);
  CHECK(refused.rule == "blocked-commands");
  REQUIRE(users->write_file("ada", "touch x", "a file of this name is none of its business"));
  CHECK_FALSE(users->read_file("ada", "missing"));
  REQUIRE(users->list_artifacts("ada"));
  Strings told;
  for (const std::string& line : support::lines_of(support::read_file(options.audit_file))) {
    const auto record = Json::parse(line);
    REQUIRE(record);
    CHECK((*record)["agent_id"].as_string() == "ada");
    told.push_back((*record)["tool"].as_string() + " " +
                   std::to_string((*record)["exit_code"].as_integer()));
  }
  CHECK(told == Strings{"execute_bash -1", "write_file 0", "read_file 1", "list_artifacts 0"});
}

TEST_CASE("W-54: a container is forgotten when it is gone, and not before") {
  if (!has_engine()) return;
  const TempDir folder;
  const std::string flag = folder / "no";
  UserContainerOptions options;
  options.container.persistent = true;
  options.container.instance_id = folder.path();
  options.container.engine.program =
      folder.file("engine",
                  "#!/bin/sh\ncase \" $* \" in *' rm '*) [ -e '" + flag +
                      "' ] && { echo refused >&2; exit 1; };; esac\nexec docker \"$@\"\n",
                  0755);
  const Users users(options);
  const std::string host = users.out("hostname; echo kept > f");
  support::write_file(flag, "");
  const auto failed = users->cleanup("ada");
  REQUIRE_FALSE(failed);
  CHECK_FALSE(users->cleanup_all());
  CHECK(users.out("hostname") == host);
  CHECK(users.out("cat f") == "kept\n");
  support::remove_all(flag);
  REQUIRE(text_of(users->cleanup("ada")) == "done");
  CHECK(users.out("hostname") != host);
  CHECK(users.out("ls -A") == "");
}

TEST_CASE("user containers: stopped and used again") {
  if (!has_engine()) return;
  const Users users;
  CHECK(users.out("echo 1") == "1\n");
  CHECK(text_of(users->stop("ada")) == "done");
  CHECK(users.out("echo 2") == "2\n");
  CHECK(text_of(users->cleanup("nobody")) == "done");
}

namespace {

// A server with the tools of a user, and a client's end of it.
class Talk {
 public:
  Talk(const UserContainers& containers, const std::string& user) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    to_ = ends[1];
    codeexec::mcp::ServerOptions options;
    options.in_fd = ends[0];
    in_ = ends[0];
    REQUIRE(::pipe(ends) == 0);
    from_ = ends[0];
    options.out_fd = ends[1];
    out_ = ends[1];
    server_.emplace(options);
    const auto added = codeexec::add_user_container_tools(*server_, containers, user);
    REQUIRE_MESSAGE(added, added.error().message);
    thread_ = std::thread([this] { served_ = static_cast<bool>(server_->serve()); });
    ask("initialize", R"({"protocolVersion":"2025-06-18","capabilities":{},)"
                      R"("clientInfo":{"name":"test","version":"1"}})");
  }
  ~Talk() {
    ::close(to_);
    thread_.join();
    CHECK(served_);
    for (const int fd : {in_, out_, from_}) ::close(fd);
  }
  Talk(const Talk&) = delete;
  Talk& operator=(const Talk&) = delete;

  Json ask(const std::string& method, const std::string& parameters) {
    const std::string line = "{\"jsonrpc\":\"2.0\",\"id\":" + std::to_string(++id_) +
                             ",\"method\":\"" + method + "\",\"params\":" + parameters + "}\n";
    REQUIRE(::write(to_, line.data(), line.size()) == static_cast<ssize_t>(line.size()));
    while (support::lines_of(text_).empty() || !has(text_, "\n")) {
      pollfd wanted = {from_, POLLIN, 0};
      REQUIRE_MESSAGE(::poll(&wanted, 1, 60000) == 1, "no answer to " << line);
      char buffer[65536];
      const ssize_t size = ::read(from_, buffer, sizeof buffer);
      REQUIRE(size > 0);
      text_.append(buffer, static_cast<std::size_t>(size));
    }
    const std::size_t end = text_.find('\n');
    auto answer = Json::parse(text_.substr(0, end));
    text_.erase(0, end + 1);
    REQUIRE(answer);
    return *std::move(answer);
  }
  // The structured result of a tool.
  Json call(const std::string& tool, const Json& arguments) {
    const Json answer =
        ask("tools/call", "{\"name\":\"" + tool + "\",\"arguments\":" + arguments.dump() + "}");
    const Json& result = answer["result"];
    if (result["isError"].as_bool()) return "error: " + result["content"][0]["text"].as_string();
    return result["structuredContent"];
  }

 private:
  int to_ = -1;
  int from_ = -1;
  int in_ = -1;
  int out_ = -1;
  int id_ = 0;
  std::string text_ = {};
  bool served_ = false;
  std::optional<codeexec::mcp::Server> server_ = {};
  std::thread thread_ = {};
};

}  // namespace

TEST_CASE("user containers: the tools") {
  const auto containers = UserContainers::create({});
  REQUIRE(containers);
  Talk talk(*containers, "ada");
  const Json list = talk.ask("tools/list", "{}")["result"]["tools"];
  Strings all;
  for (const Json& tool : list.items()) {
    std::string words = tool["name"].as_string() + "(";
    for (const Json::Member& member : tool["inputSchema"]["properties"].members())
      words += (words.back() == '(' ? "" : ",") + member.name;
    all.push_back(words + ")");
  }
  CHECK(all == Strings{"execute_bash(command,timeout)", "read_file(file_path,offset,line_count)",
                       "write_file(file_path,content)", "read_docstring(file_path,function_name)",
                       "list_artifacts()", "get_artifact(name)"});
  CHECK(has(codeexec::describe(*containers), "/artifacts"));
}

TEST_CASE("user containers: the model is told of the skills") {
  const TempDir folder;
  UserContainerOptions options;
  options.skills_dir = folder.directory("skills");
  options.container.network = codeexec::ContainerNetwork::bridge;
  const auto told = [&] {
    const auto containers = UserContainers::create(options);
    REQUIRE_MESSAGE(containers, containers.error().message);
    return codeexec::describe(*containers);
  };
  CHECK_FALSE(has(told(), "SKILL.md"));
  CHECK_FALSE(has(told(), "no network"));
  folder.file("skills/pdf/SKILL.md",
              "---\nname: pdf\r\ndescription:  Reads PDF: all of it  \n---\n# PDF\n");
  folder.file("skills/plain/SKILL.md", "description: not at the start\n");
  folder.file("skills/after/SKILL.md", "---\nname: x\n---\ndescription: too late\n");
  folder.file("skills/open/SKILL.md", "---");
  folder.file("skills/none/README.md", "---\ndescription: x\n---\n");
  folder.file("skills/file.md", "");
  CHECK(has(told(), "/skills/NAME/SKILL.md: after, open, pdf (Reads PDF: all of it), plain."));
}

TEST_CASE("user containers: the tools at work") {
  if (!has_engine()) return;
  const Users users;
  users.folder().file("tools/example.py", "def f():\n  'of f'\n");
  Talk talk(*users, "ada");
  const auto call = [&](const char* tool, std::initializer_list<Json::Member> arguments) {
    return talk.call(tool, Json::object(arguments));
  };
  const Json ran = call("execute_bash", {{"command", "echo hi; echo no >&2; exit 4"}});
  CHECK(ran["exit_code"] == Json(4));
  CHECK(ran["stdout"] == Json("hi\n"));
  CHECK(ran["stderr"] == Json("no\n"));
  const Json late = call("execute_bash", {{"command", "echo so far; sleep 100"}, {"timeout", 1}});
  CHECK(late["exit_code"] == Json(-1));
  CHECK(late["stdout"] == Json("so far\n"));
  CHECK(late["stderr"] == Json("Command timed out after 1 second"));

  const Json written =
      call("write_file", {{"file_path", "/workspace/f.txt"}, {"content", "caf\xc3\xa9\nb\nc\n"}});
  CHECK(written["success"] == Json(true));
  CHECK(written["bytes"] == Json(10));
  CHECK(written["message"] == Json("Successfully wrote 10 bytes to /workspace/f.txt"));
  CHECK(call("read_file", {{"file_path", "f.txt"}})["content"] == Json("caf\xc3\xa9\nb\nc\n"));
  CHECK(call("read_file", {{"file_path", "f.txt"}, {"offset", 1}, {"line_count", 1}})["content"] ==
        Json("b\n"));
  CHECK(has(call("read_file", {{"file_path", "none"}, {"line_count", 1}}).as_string(),
            "No such file or directory"));
  CHECK(call("read_docstring", {{"file_path", "example"}, {"function_name", "f"}})["docstring"] ==
        Json("of f"));
  CHECK(has(call("read_docstring", {{"file_path", "example"}, {"function_name", "g"}}).as_string(),
            "Function g not found in module example"));
  CHECK(call("list_artifacts", {})["artifacts"].size() == 0);
  CHECK(call("execute_bash", {{"command", "printf 'a\\0b' > /artifacts/a"}})["exit_code"] ==
        Json(0));
  const Json artifacts = call("list_artifacts", {})["artifacts"];
  REQUIRE(artifacts.size() == 1);
  CHECK(artifacts[0]["name"] == Json("a"));
  CHECK(artifacts[0]["size"] == Json(3));
  const Json artifact = call("get_artifact", {{"name", "a"}});
  CHECK(artifact["encoding"] == Json("base64"));
  CHECK(artifact["content"] == Json("YQBi"));
  CHECK(has(call("get_artifact", {{"name", "../x"}}).as_string(), "Invalid artifact name"));
}
