// Private homes.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <grp.h>
#include <sched.h>
#include <sys/resource.h>
#if defined(__linux__)
#include <sys/mount.h>
#endif

#include <algorithm>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Command;
using codeexec::Execution;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Outcome;
using support::begins;
using support::in;
using support::lines_of;
using support::make;
using support::output_of;
using support::Strings;

namespace {

// Where private homes are made: a TMPDIR of this process's own.
class HomesPlace {
 public:
  HomesPlace() : guard_("TMPDIR", directory_.path().c_str()) {}

  // Names in it, sorted, without those of the tests' own directories and of what is /tmp.
  Strings entries() const {
    Strings names;
    DIR* listing = ::opendir(directory_.path().c_str());
    if (!listing) support::fail("opendir", directory_.path());
    while (const dirent* entry = ::readdir(listing)) names.emplace_back(entry->d_name);
    ::closedir(listing);
    names.erase(std::remove_if(names.begin(), names.end(),
                               [](const std::string& name) {
                                 return name[0] == '.' || begins(name, "codeexec-test-") ||
                                        begins(name, "codeexec-tmp-");
                               }),
                names.end());
    std::sort(names.begin(), names.end());
    return names;
  }
  const support::TempDir& directory() const { return directory_; }

 private:
  support::TempDir directory_ = {};
  support::EnvironmentGuard guard_;
};

LocalOptions with_home(codeexec::PrivateHome home, const support::TempDir& workspace) {
  LocalOptions options = in(workspace);
  options.sandbox.mode = codeexec::SandboxMode::best_effort;
  options.private_home = home;
  options.git_identity = false;
  return options;
}

std::string home_of(const LocalExecutor& executor) {
  return output_of(executor, Command::shell("printf %s \"$HOME\""));
}

template <class Body>
std::string in_fork(bool as_user, Body body) {
  return support::in_other_host([&]() -> std::string {
    constexpr uid_t user = 12345;
    if (as_user && ::geteuid() == 0 &&
        (::setgroups(0, nullptr) != 0 || ::setgid(user) != 0 || ::setuid(user) != 0))
      return "cannot become another user";
    return body();
  });
}

// A directory in a directory in a directory ...; paths are too short for it.
void make_deep_tree(const std::string& path, int levels) {
  const std::string name(40, 'd');
  int here = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (int level = 0; level < levels && here >= 0; ++level) {
    if (::mkdirat(here, name.c_str(), 0700) != 0) support::fail("mkdirat", path);
    const int next = ::openat(here, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ::close(here);
    here = next;
  }
  if (here < 0) support::fail("open", path);
  ::close(here);
}

}  // namespace

TEST_CASE("a private home of the executor: one for all its commands, removed with its last copy") {
  const HomesPlace place;
  const support::TempDir workspace;
  std::optional<LocalExecutor> executor =
      make(with_home(codeexec::PrivateHome::executor, workspace));
  const std::string home = home_of(*executor);
  CHECK(begins(home, place.directory().path() + "/codeexec-home-"));
  CHECK(place.entries().size() == 1);
  const std::string user = std::to_string(::geteuid());
  CHECK(output_of(*executor, Command::shell("stat -c '%a %u' \"$HOME\" \"$TMPDIR\"")) ==
        "700 " + user + "\n700 " + user + "\n");
  CHECK(output_of(*executor, Command::shell("echo \"$TMPDIR\"")) == home + "/tmp\n");
  output_of(*executor, Command::shell("echo kept > ~/file; mktemp"));
  CHECK(output_of(*executor, Command::shell("cat ~/file; ls $TMPDIR | wc -l")) == "kept\n1\n");
  std::optional<LocalExecutor> copy = *executor;
  Execution running = copy->start(Command::shell("echo ready; read line"));
  executor.reset();
  CHECK(home_of(*copy) == home);
  copy.reset();
  CHECK(support::exists(home));  // of the command that still runs
  running.cancel();
  running.wait();
  running = Execution();
  CHECK(place.entries().empty());
}

TEST_CASE("a private home of the command: a new one for each, removed when it ends") {
  const HomesPlace place;
  const support::TempDir workspace;
  {
    const LocalExecutor executor = make(with_home(codeexec::PrivateHome::command, workspace));
    const Strings parents = place.entries();
    REQUIRE(parents.size() == 1);
    const std::string parent = place.directory() / parents[0];
    const std::string script =
        "echo \"$HOME\"; echo \"$TMPDIR\"; stat -c %a \"$HOME\"; ls -A \"$HOME\"; echo > ~/file";
    const Strings first = lines_of(output_of(executor, Command::shell(script)));
    const Strings second = lines_of(output_of(executor, Command::shell(script)));
    REQUIRE(first.size() == 4);
    REQUIRE(second.size() == 4);
    CHECK(begins(first[0], parent + "/command-"));
    CHECK(first[0] != second[0]);
    CHECK(second[1] == second[0] + "/tmp");
    CHECK(second[2] == "700");
    CHECK(second[3] == "tmp");
    CHECK(!support::exists(first[0]));
    CHECK(!support::exists(second[0]));

    Execution started = executor.start(Command::shell(script));
    const std::string home = lines_of(started.wait().out).at(0);
    CHECK(support::exists(home + "/file"));
    started = Execution();
    CHECK(!support::exists(home));
    Command failing = Command::program({"/nonexistent/program"});
    CHECK(executor.run(failing).outcome == Outcome::not_started);
    const Strings beside = lines_of(output_of(executor, Command::shell("ls -A \"$HOME/..\"")));
    REQUIRE(beside.size() == 2);
    CHECK(begins(beside[0], "command-"));  // its own
    CHECK(beside[1] == "tmp");
  }
  CHECK(place.entries().empty());
}

TEST_CASE("what the operator or the command sets is stronger than a private home") {
  const HomesPlace place;
  const support::TempDir workspace;
  const std::string script = "echo \"$HOME\"; echo \"$TMPDIR\"";
  for (const auto kind : {codeexec::PrivateHome::executor, codeexec::PrivateHome::command}) {
    LocalOptions options = with_home(kind, workspace);
    options.environment.keep_all = true;
    const auto shown = [&](const Command& command) {
      return lines_of(output_of(make(options), command));
    };
    const std::string private_one = place.directory().path() + "/codeexec-home-";
    Command command = Command::shell(script);
    CHECK(begins(shown(command).at(0), private_one));
    options.environment.set = {{"HOME", "/set"}};
    CHECK(shown(command).at(0) == "/set");
    CHECK(begins(shown(command).at(1), private_one));
    options.environment.set = {{"TMPDIR", "/set"}};
    CHECK(begins(shown(command).at(0), private_one));
    CHECK(shown(command).at(1) == "/set");
    command.environment = {{"HOME", "/given"}, {"TMPDIR", "/given, too"}};
    CHECK(shown(command) == Strings{"/given", "/given, too"});
  }
}

TEST_CASE(
    "git finds the user's name and address in a private home, and nothing else of the user's") {
  const support::TempDir user;
  const support::TempDir workspace;
  support::EnvironmentGuard guard("HOME", user.path().c_str());
  guard.unset("XDG_CONFIG_HOME");
  guard.unset("GIT_CONFIG_GLOBAL");
  LocalOptions options = with_home(codeexec::PrivateHome::executor, workspace);
  options.git_identity = true;
  const std::string show = "cat ~/.gitconfig 2> /dev/null || true";
  const auto shown = [&] { return output_of(make(options), Command::shell(show)); };
  const auto file = [](const std::string& name, const std::string& email) {
    return "[user]\n\tname = \"" + name + "\"\n\temail = \"" + email + "\"\n";
  };
  CHECK(shown() == "");
  user.directory(".config/git");
  user.file(".config/git/config", "[user]\nname = Other\nemail = other@x\n");
  CHECK(shown() == file("Other", "other@x"));
  struct {
    const char* text;
    std::string told;
  } const cases[] = {
      {"[user]\n\tname = Ada L\n\temail = ada@x\n[github]\n\ttoken = hunter2\n",
       file("Ada L", "ada@x")},
      {"[USER] Name= Ada  B # no\n;x\nEMAIL =\" a\"@x ; no", file("Ada  B", " a@x")},
      {"[user]\r\nname = A \\\"B\\\" \\\\ \\\nC\r\nemail = a@x\r\n",
       file("A \\\"B\\\" \\\\ C", "a@x")},
      {"[user \"x\"]\nname = X\n[user.y]\nname = Y\n[user]\nemail = a@x\n", file("Other", "a@x")},
      {"[user]\nname = A\n\nname = B\nemail\n", file("B", "other@x")},
      {"[include]\npath = more\n[user]\nemail = a@x\n[include]\npath = ~/.gitconfig\n",
       file("More", "a@x")},
      {"[includeIf \"gitdir:/\"]\npath = more\n", file("Other", "other@x")},
      {"[user]\nname = A\\nB\nemail = a@x\n[user", file("Other", "a@x")},
      {"[user]\nname =\nemail = a@x", ""},
  };
  user.file("more", "[user]\nname = More\nemail = more@x\n");
  for (const auto& row : cases) {
    CAPTURE(row.text);
    user.file(".gitconfig", row.text);
    CHECK(shown() == row.told);
  }
  user.file(".gitconfig", "[user]\nname = Ada\nemail = ada@x\n");
  guard.set("GIT_CONFIG_GLOBAL", (user / "more").c_str());
  CHECK(shown() == file("More", "more@x"));
  guard.unset("GIT_CONFIG_GLOBAL");
  options.private_home = codeexec::PrivateHome::command;
  CHECK(shown() == file("Ada", "ada@x"));
  options.git_identity = false;
  CHECK(shown() == "");
  options.git_identity = true;
  options.environment.set = {{"HOME", workspace.path()}};
  CHECK(shown() == "");
  CHECK(!support::exists(workspace / ".gitconfig"));
  options.environment.set = {};

  if (!make().run("git --version").succeeded()) {
    MESSAGE("SKIPPED: no git here");
    return;
  }
  const std::string commit =
      "git commit -q --allow-empty -m x && git log -1 --format='%an %ae %cn %ce'\n";
  for (const auto kind : {codeexec::PrivateHome::executor, codeexec::PrivateHome::command}) {
    options.private_home = kind;
    const LocalExecutor here = make(options);
    CHECK(output_of(here, Command::shell("rm -rf .git; git -c init.defaultBranch=x init -q; " +
                                         commit)) == "Ada ada@x Ada ada@x\n");
    // What the repository says is stronger, and the file is the commands' own.
    CHECK(output_of(here, Command::shell("git config user.name Repo; " + commit)) ==
          "Repo ada@x Repo ada@x\n");
    CHECK(output_of(here, Command::shell("git config --global user.email own@x; " + commit)) ==
          "Repo own@x Repo own@x\n");
  }
  CHECK(support::read_file(user / ".gitconfig") == "[user]\nname = Ada\nemail = ada@x\n");
}

TEST_CASE("without a sandbox, or when it is off, there is no private home") {
  const HomesPlace place;
  const support::TempDir workspace;
  support::EnvironmentGuard guard("HOME", "/home/of the host");
  LocalOptions options = with_home(codeexec::PrivateHome::off, workspace);
  CHECK(home_of(make(options)) == "/home/of the host");
  options = in(workspace);
  CHECK(options.private_home == codeexec::PrivateHome::executor);
  CHECK(home_of(make(options)) == "/home/of the host");
  CHECK(place.entries().empty());
}

TEST_CASE("a private home that cannot be made is an error of create()") {
  const support::TempDir workspace;
  const std::string missing = workspace / "missing";
  const support::EnvironmentGuard guard("TMPDIR", missing.c_str());
  const auto made = LocalExecutor::create(with_home(codeexec::PrivateHome::executor, workspace));
  CHECK(made.error().message ==
        "private_home: cannot make a directory in '" + missing + "': No such file or directory");
}

TEST_CASE("a private home is removed whatever commands leave in it, and nothing else is") {
  const HomesPlace place;
  const support::TempDir outside;
  outside.file("directory/precious", "precious");
  if (::chmod(outside.path().c_str(), 0777) != 0 ||
      ::chmod(place.directory().path().c_str(), 0777) != 0)
    support::fail("chmod", "");
  for (const bool as_user : {false, true}) {
    CAPTURE(as_user);
    const std::string problem = in_fork(as_user, [&]() -> std::string {
      LocalOptions options;
      options.workspace = outside.path();
      options.sandbox.mode = codeexec::SandboxMode::best_effort;
      {
        const LocalExecutor executor = make(options);
        const std::string home = home_of(executor);
        support::make_symlink(outside.path(), home + "/link");
        support::make_symlink(outside / "directory", home + "/tmp/link");
        support::make_symlink("/nonexistent", home + "/dangling");
        support::write_file(home + "/\xff\xfe\n", "no UTF-8");
        support::write_file(home + "/tmp/read-only", "", 0400);
        support::make_directories(home + "/a/\xff/c");
        support::write_file(home + "/a/\xff/file", "");
        support::make_directories(home + "/closed/below/deeper");
        support::write_file(home + "/removed-0", "a name that the removal uses, too");
        support::make_directories(home + "/removed-1/x/y");
        if (::mkfifo((home + "/fifo").c_str(), 0600) != 0) return "mkfifo";
        support::fill_directory(home + "/tmp", 3000);
        // More than a path or a set of descriptors can have; levels are slow to make.
        if (as_user) make_deep_tree(home, 200);
        for (const char* closed : {"/closed/below/deeper", "/closed/below", "/closed", "/a", ""})
          if (::chmod((home + closed).c_str(), 0) != 0) return "chmod";
        // Few descriptors: none is kept per level.
        rlimit few{};
        ::getrlimit(RLIMIT_NOFILE, &few);
        few.rlim_cur = static_cast<rlim_t>(support::count_descriptors() + 20);
        ::setrlimit(RLIMIT_NOFILE, &few);
      }
      return place.entries().empty() ? "" : "still there: " + place.entries()[0];
    });
    CHECK(problem == "");
    CHECK(support::read_file(outside / "directory/precious") == "precious");
    struct stat status {};
    REQUIRE(::stat((outside / "directory").c_str(), &status) == 0);
    CHECK((status.st_mode & 07777) == 0755);
  }
}

#if defined(__linux__)

TEST_CASE("what is mounted in a private home is not removed") {
  const HomesPlace place;
  const support::TempDir outside;
  outside.file("below/precious", "precious");
  outside.file("precious", "precious");
  const std::string problem = in_fork(false, [&]() -> std::string {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      return "SKIPPED";
    const support::TempDir workspace;
    {
      const LocalExecutor executor = make(with_home(codeexec::PrivateHome::executor, workspace));
      const std::string home = home_of(executor);
      support::make_directories(home + "/a/mounted");
      support::make_directories(home + "/mounted");
      for (const std::string& on : {home + "/a/mounted", home + "/mounted"})
        if (::mount(outside.path().c_str(), on.c_str(), nullptr, MS_BIND, nullptr) != 0)
          return "SKIPPED";
    }
    return place.entries().size() == 1 ? "" : "the mount is gone";
  });
  if (problem == "SKIPPED") {
    MESSAGE("SKIPPED: no right to mount");
    return;
  }
  CHECK(problem == "");
  for (const char* file : {"precious", "below/precious"}) CHECK(support::exists(outside / file));
}

#endif

TEST_CASE("homes that killed programs left are removed by the next, and no others") {
  const HomesPlace place;
  const support::TempDir workspace;
  const LocalOptions options = with_home(codeexec::PrivateHome::executor, workspace);
  const auto leave_home = [&] {
    return in_fork(false, [&]() -> std::string {
      const LocalExecutor executor = make(options);
      support::make_directories(home_of(executor) + "/left/behind");
      ::_exit(0);  // nothing is destroyed, as with SIGKILL
    });
  };
  REQUIRE(leave_home() == "");
  REQUIRE(place.entries().size() == 1);
  const std::string left = place.entries()[0];
  const support::TempDir outside;
  outside.file("precious", "precious");
  support::make_symlink(outside.path(), place.directory() / "codeexec-home-linked");
  place.directory().file("codeexec-home-a-file");
  place.directory().file("codeexec-home-aaaaaa");
  place.directory().directory("codeexec-home-longer-name/x");
  place.directory().directory("other/x");
  const bool is_root = ::geteuid() == 0;
  if (is_root) {
    place.directory().directory("codeexec-home-others");
    REQUIRE(::chown((place.directory() / "codeexec-home-others").c_str(), 12345, 12345) == 0);
  }
  const Strings others = [&] {
    Strings names = place.entries();
    names.erase(std::find(names.begin(), names.end(), left));
    return names;
  }();
  {
    const LocalExecutor executor = make(options);
    const std::string home = home_of(executor);
    CHECK(!support::exists(place.directory() / left));
    const LocalExecutor second = make(options);
    CHECK(support::exists(home));
    CHECK(support::exists(home_of(second)));
  }
  CHECK(place.entries() == others);
  CHECK(support::exists(outside / "precious"));
}

TEST_CASE("a start removes a bounded number of homes that were left") {
  const HomesPlace place;
  const support::TempDir workspace;
  for (int i = 0; i < 20; ++i)
    place.directory().directory("codeexec-home-" + std::to_string(100000 + i) + "/tmp");
  const LocalOptions options = with_home(codeexec::PrivateHome::executor, workspace);
  (void)make(options);
  CHECK(place.entries().size() == 4);
  (void)make(options);
  CHECK(place.entries().empty());
}

TEST_CASE("a fork of the host does not remove the home") {
  const HomesPlace place;
  const support::TempDir workspace;
  std::optional<LocalExecutor> executor =
      make(with_home(codeexec::PrivateHome::executor, workspace));
  const std::string home = home_of(*executor);
  CHECK(in_fork(false, [&]() -> std::string {
          executor.reset();
          return "";
        }) == "");
  CHECK(support::exists(home + "/tmp"));
}

TEST_CASE("the tilde of a command is judged as the private home") {
  const HomesPlace place;
  const support::TempDir workspace;
  for (const auto kind : {codeexec::PrivateHome::executor, codeexec::PrivateHome::command}) {
    LocalOptions options = with_home(kind, workspace);
    options.delete_guard = true;
    const LocalExecutor executor = make(options);
    CHECK(executor.run("echo x > ~/file && rm ~/file").outcome == Outcome::exited);
    if (kind == codeexec::PrivateHome::command) continue;
    support::write_file(home_of(executor) + "/unread", "");
    CHECK(executor.run("rm ~/unread").rule == "delete-guard");
  }
}

TEST_CASE("the names of private homes") {
  CHECK(std::string(codeexec::name(codeexec::PrivateHome::off)) == "off");
  CHECK(std::string(codeexec::name(codeexec::PrivateHome::command)) == "command");
  CHECK(std::string(codeexec::name(codeexec::PrivateHome::executor)) == "executor");
}
