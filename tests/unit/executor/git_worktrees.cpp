// Linked worktrees, submodules and repositories elsewhere: what git can do in them in a sandbox.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

#include <sys/stat.h>

#include <future>

using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Permission;
using codeexec::Result;
using codeexec::SandboxMode;
using support::contains;
using support::describe;
using support::exists;
using support::has;
using support::make;
using support::Strings;
using support::TempDir;

namespace {

// What a user does beside the sandbox, with settings that no machine's own can change.
std::string outside(const std::string& folder, const std::string& script) {
  codeexec::ProcessOptions options;
  options.argv = {"/bin/sh", "-ec", script};
  options.work_dir = folder;
  options.environment = {"PATH=/usr/local/bin:/usr/bin:/bin",
                         "HOME=" + folder,
                         "GIT_CONFIG_NOSYSTEM=1",
                         "GIT_AUTHOR_NAME=u",
                         "GIT_AUTHOR_EMAIL=u@example.org",
                         "GIT_COMMITTER_NAME=u",
                         "GIT_COMMITTER_EMAIL=u@example.org"};
  const codeexec::ProcessResult r = codeexec::run_process(options);
  CHECK_MESSAGE(r.succeeded(), script << ": " << r.out << r.err << r.message);
  return r.out;
}

bool has_git() {
  if (codeexec::run("git --version").succeeded()) return true;
  MESSAGE("SKIPPED: there is no git here");
  return false;
}

LocalOptions options_for(const Strings& roots) {
  LocalOptions options;
  options.workspace = roots[0];
  for (const std::string& root : roots) options.roots.push_back({root, Permission::write});
  options.sandbox.mode = SandboxMode::best_effort;
  options.environment.set = {{"GIT_AUTHOR_NAME", "a"},
                             {"GIT_AUTHOR_EMAIL", "a@example.org"},
                             {"GIT_COMMITTER_NAME", "a"},
                             {"GIT_COMMITTER_EMAIL", "a@example.org"},
                             {"GIT_EDITOR", "true"}};
  return options;
}

bool holds_files(const LocalExecutor& executor) {
  if (contains(executor.sandbox_report().enforced, "filesystem")) return true;
  MESSAGE("SKIPPED: no sandbox here that has filesystem");
  return false;
}

// Whether a file can be made beside others that stay: the kernel lets a supervisor answer.
bool has_broker(const LocalExecutor& executor, const std::string& shared) {
  const Result r =
      executor.run("set -C; : > " + shared + "/gc.pid.lock && rm " + shared + "/gc.pid.lock");
  if (r.succeeded()) return true;
  MESSAGE("SKIPPED: the kernel does not let a supervisor make files here");
  return false;
}

void commit(const std::string& folder, const std::string& name) {
  outside(folder, "echo " + name + " > " + name + "; git add " + name + "; git commit -qm " + name);
}

// A repository `main` with a worktree `work` on the branch `side`, and a bare `remote.git`.
struct Worktree {
  TempDir place = TempDir();
  std::string main = place.directory("main");
  std::string shared = main + "/.git";
  std::string work = place / "work";
  std::string remote = place / "remote.git";
  std::string own = shared + "/worktrees/work";

  Worktree() {
    outside(place.path(), "git init -q --bare remote.git");
    outside(main, "git init -q; git checkout -qb trunk");
    commit(main, "one");
    outside(main,
            "git branch other; git worktree add -q -b side ../work; "
            "git remote add origin ../remote.git; git push -q origin trunk; "
            "git pack-refs --all");
  }
};

// Each line has to succeed and to print nothing of an error.
void check_lines(const LocalExecutor& executor, const char* const* begin, const char* const* end) {
  for (; begin != end; ++begin) {
    const Result r = executor.run(*begin);
    INFO(*begin);
    CHECK_MESSAGE(r.succeeded(), describe(r));
    CHECK_MESSAGE(!has(r.err, "error:"), r.err);
    CHECK_MESSAGE(!has(r.err, "fatal:"), r.err);
  }
}

constexpr const char* daily[] = {
    "git status",
    "echo 2 >> one; git add one; git commit -qm two",
    "git switch -qc topic; echo 3 > three; git add three; git commit -qm three",
    "echo 4 >> three; git stash; git stash pop; test -z \"$(git stash list)\"",
    "git checkout -q -- three; git log --oneline",
    "git commit -q --amend -m again",
    "git switch -q side; git merge -q --no-ff topic -m merge",
    "git tag v1; git tag -d v1",
    "git gc --auto",
    "git switch -qc second HEAD~1; echo 5 > five; git add five; git commit -qm five",
    "git rebase -q topic",
    "git switch -q side; git cherry-pick second",
    "test ! -e $(git rev-parse --git-dir)/CHERRY_PICK_HEAD",
    "git revert --no-edit HEAD; git reset -q --hard HEAD~1",
    "git switch -qc third HEAD~1; echo other > one; git commit -qam conflict; git rebase second",
    "! git merge -q side~1 -m m; git merge --abort 2>/dev/null; git status",
    "git bisect start; git bisect reset",
    "git notes add -m note",
    "git pack-refs --all",
    "git worktree list; git worktree prune",
    "git fsck",
};

constexpr const char* with_remote[] = {
    "git fetch -q origin", "git push -q origin HEAD:refs/heads/new", "git fetch -q --prune origin",
    "git pull -q --rebase origin new"};

}  // namespace

TEST_CASE("git worktrees: all of daily work in one whose repository lies elsewhere") {
  if (!has_git()) return;
  const Worktree repository;
  LocalOptions options = options_for({repository.work, repository.remote});
  SUBCASE("with Landlock") {}
  SUBCASE("with mounts and a process table") { options.sandbox.pid_namespace = true; }
  SUBCASE("without a network") { options.sandbox.network = codeexec::Network::none; }
  SUBCASE("started from a folder with the worktree below it") {
    // Not the parent of both, in which nothing would lie outside.
    const std::string parent = repository.place.directory("trees");
    outside(repository.main, "git worktree move ../work ../trees/work");
    options = options_for({parent, repository.remote});
    const LocalExecutor here = make(options);
    if (!holds_files(here)) return;
    CHECK(here.run("cd work && git status && echo 2 > f && git add f && git commit -qm 2")
              .succeeded());
    return;
  }
  const LocalExecutor here = make(options);
  if (!holds_files(here) || !has_broker(here, repository.shared)) return;
  check_lines(here, std::begin(daily), std::end(daily));
  check_lines(here, std::begin(with_remote), std::end(with_remote));
  CHECK(here.run("git branch -D topic").succeeded());
  CHECK(here.run("git gc -q").succeeded());
  outside(repository.main, "git fsck; git status; git branch");
  CHECK(has(here.describe_place(), repository.shared + ", which their git worktrees belong to"));
}

TEST_CASE("git worktrees: strict starts, and what it holds is listed") {
  if (!has_git()) return;
  const Worktree repository;
  LocalOptions options = options_for({repository.work});
  options.sandbox.explain = true;
  if (!holds_files(make(options))) return;
  std::string rules;
  const LocalExecutor here = make(options);
  for (const std::string& rule : here.sandbox_report().rules) rules += rule + "\n";
  CHECK(has(rules, " in " + repository.shared + "/: objects refs logs\n"));
  CHECK(
      has(rules, "by the supervisor in " + repository.shared + "/: packed-refs packed-refs.lock"));
  for (const std::string& missing : here.sandbox_report().missing)
    CHECK(!has(missing, "read_only"));
}

TEST_CASE("git worktrees: hooks, settings and other worktrees stay as they are") {
  if (!has_git()) return;
  const Worktree repository;
  outside(repository.main, "git worktree add -q -b third ../third");
  LocalOptions options = options_for({repository.work});
  SUBCASE("with Landlock") {}
  SUBCASE("with mounts and a process table") { options.sandbox.pid_namespace = true; }
  const LocalExecutor here = make(options);
  if (!holds_files(here)) return;
  const std::string third = repository.shared + "/worktrees/third";
  const auto state = [&] {
    return outside(repository.main,
                   "ls -lnR --time-style=full-iso .git/hooks .git/info .git/worktrees/third; "
                   "cd .git; ls; cat config HEAD index; "
                   "find worktrees/third -type f -exec cat {} +");
  };
  const std::string before = state();
  // Harmless if it were not refused: it is all in the folder of this test.
  const std::string& shared = repository.shared;
  for (const std::string& attack :
       Strings{"echo : > " + shared + "/hooks/pre-commit",
               "echo : >> " + shared + "/config",
               "touch " + shared + "/commondir",
               "touch " + shared + "/config.worktree",
               "mkdir " + shared + "/new",
               "ln -s x " + shared + "/link",
               "rm " + shared + "/HEAD",
               "cp " + shared + "/HEAD new; mv new " + shared + "/HEAD",
               "ln " + shared + "/objects/info/../../HEAD " + shared + "/packed-refs.lock",
               "ln -s x " + shared + "/packed-refs.lock",
               "mkdir " + shared + "/packed-refs.lock",
               "mv " + shared + "/packed-refs " + shared + "/config",
               "mv " + shared + "/packed-refs " + shared + "/hooks/pre-commit",
               "mv " + shared + "/packed-refs " + shared + "/hooks/../config",
               "(set -C; : > " + shared + "/config.lock)",
               "(set -C; : > " + shared + "/hooks/x)",
               "echo : >> " + third + "/HEAD",
               "cp one " + third + "/index",
               "echo " + repository.work + " > " + third + "/gitdir",
               "rm -f " + third + "/commondir",
               "git config core.fsmonitor false",
               "git worktree add -q ../another",
               "git -C " + shared + " config core.hooksPath /nowhere"}) {
    const Result r = here.run("sh -c '" + attack + "'");
    CHECK_MESSAGE(!r.succeeded(), attack << ": " << describe(r));
  }
  CHECK(state() == before);
}

TEST_CASE("git worktrees: files that the supervisor makes") {
  if (!has_git()) return;
  const Worktree repository;
  const LocalExecutor here = make(options_for({repository.work}));
  if (!holds_files(here) || !has_broker(here, repository.shared)) return;
  const std::string lock = repository.shared + "/packed-refs.lock";
  // By a path that leads there, from wherever it begins.
  CHECK(here.run("set -C; cd .; : > ../main/.git/worktrees/.././packed-refs.lock").succeeded());
  CHECK(exists(lock));
  CHECK_MESSAGE(has(here.run("set -C; : > " + lock).err, "cannot create"), "it is there already");
  // Only to make anew: an existing one is not opened for writing.
  CHECK(!here.run("echo x >> " + lock).succeeded());
  CHECK(support::read_file(lock).empty());
  CHECK(here.run("rm -f " + lock).succeeded());
  CHECK(!exists(lock));
  // The file is the command's: its mask holds, and what it writes is there.
  CHECK(here.run("set -C; printf text > " + lock + "; cat " + lock).out == "text");
  struct stat status {};
  REQUIRE(::stat(lock.c_str(), &status) == 0);
  CHECK((status.st_mode & 0133) == 0);
  CHECK(here.run("mv " + lock + " " + repository.shared + "/packed-refs").succeeded());
  CHECK(support::read_file(repository.shared + "/packed-refs") == "text");
  // A link in the place of the file is not followed.
  const std::string target = repository.place / "target";
  support::make_symlink(target, lock);
  CHECK(!here.run("set -C; : > " + lock).succeeded());
  CHECK(!exists(target));
  // One whose name is too long, or who has none, is answered, too.
  CHECK(!here.run("python3 -c \"import os; os.open('/' + 'x' * 5000, os.O_CREAT | os.O_EXCL)\"")
             .succeeded());
  CHECK(here.run("echo still here").out == "still here\n");
}

TEST_CASE("git worktrees: many new files at once, from several threads") {
  if (!has_git()) return;
  const Worktree repository;
  const LocalExecutor here = make(options_for({repository.work}));
  if (!holds_files(here)) return;
  const Result r = here.run(
      "set -C; for t in 1 2 3 4; do (mkdir d$t; i=0; while [ $i -lt 500 ]; do : > d$t/$i; "
      "i=$((i+1)); done; mv d$t/1 d$t/moved; rm d$t/2) & done; wait; ls d? | wc -l");
  CHECK_MESSAGE(r.out.find("2003") != std::string::npos, describe(r));  // 4 * 499, headings, blanks
}

TEST_CASE("git worktrees: two agents in two worktrees of one repository") {
  if (!has_git()) return;
  const Worktree repository;
  outside(repository.main, "git worktree add -q -b third ../third");
  const LocalExecutor one = make(options_for({repository.work}));
  const LocalExecutor other = make(options_for({repository.place / "third"}));
  if (!holds_files(one) || !has_broker(one, repository.shared)) return;
  const std::string script =
      "set -e; i=0; while [ $i -lt 10 ]; do echo $i > file; git add file; git commit -qm $i; "
      "git tag $NAME-$i; i=$((i+1)); done; git log --oneline | wc -l";
  const auto work = [&](const LocalExecutor& executor, const char* name) {
    return executor.run("NAME=" + std::string(name) + "; " + script);
  };
  auto first = std::async(std::launch::async, [&] { return work(one, "one"); });
  const Result second = work(other, "other");
  const Result result = first.get();
  CHECK_MESSAGE(has(result.out, "11"), describe(result));
  CHECK_MESSAGE(has(second.out, "11"), describe(second));
  CHECK(outside(repository.main, "git tag | wc -l; git fsck").find("20") != std::string::npos);
  CHECK(!other.run("echo x > ../work/file").succeeded());
}

TEST_CASE("git worktrees: a bare repository with worktrees") {
  if (!has_git()) return;
  const TempDir place;
  const std::string start = place.directory("start");
  outside(start, "git init -q; git checkout -qb trunk");
  commit(start, "one");
  outside(place.path(),
          "mkdir project; git clone -q --bare start project/.bare; "
          "echo 'gitdir: ./.bare' > project/.git; cd project; "
          "git worktree add -q trunk; git worktree add -q -b side side");
  SUBCASE("the whole project is a root") {
    const LocalExecutor here = make(options_for({place / "project"}));
    CHECK(here.run("cd side && echo 2 > one && git commit -qam two && git worktree add -q ../new")
              .succeeded());
    CHECK(!has(here.describe_place(), "worktrees belong to"));
  }
  SUBCASE("one worktree is") {
    const LocalExecutor here = make(options_for({place / "project/trunk"}));
    if (!holds_files(here) || !has_broker(here, place / "project/.bare")) return;
    check_lines(here, std::begin(daily) + 1, std::begin(daily) + 5);
    CHECK(!here.run("echo '#' > ../.bare/hooks/pre-commit").succeeded());
  }
}

TEST_CASE("git worktrees: submodules") {
  if (!has_git()) return;
  const TempDir place;
  const std::string library = place.directory("library");
  const std::string super = place.directory("super");
  outside(library, "git init -q; git checkout -qb trunk");
  commit(library, "one");
  outside(super, "git init -q; git checkout -qb trunk");
  commit(super, "top");
  outside(super,
          "git -c protocol.file.allow=always submodule -q add ../library part; "
          "git commit -qam part; git -C part checkout -qb side");
  const std::string own = super + "/.git/modules/part";
  SUBCASE("a repository with one") {
    LocalOptions options = options_for({super});
    options.roots.push_back({library, Permission::read});
    const LocalExecutor here = make(options);
    CHECK(here.run("cd part && echo 2 > one && git commit -qam two && cd .. && git add part && "
                   "git commit -qm moved && git -c protocol.file.allow=always submodule update")
              .succeeded());
  }
  SUBCASE("one alone") {
    const LocalExecutor here = make(options_for({super + "/part"}));
    if (!holds_files(here)) return;
    check_lines(here, std::begin(daily), std::begin(daily) + 10);
    CHECK(!here.run("echo x >> ../top").succeeded());
    CHECK(!here.run("echo '#' >> " + super + "/.git/config").succeeded());
    // Its settings are its own, as those of a repository in the workspace; what runs later stays.
    const Result r = here.run("git config user.name somebody; git config alias.x '!true'; "
                              "echo '#' > " + own + "/hooks/x");
    CHECK(contains(r.put_back, own + "/config"));
    CHECK(contains(r.put_back, own + "/hooks/x"));
    CHECK(here.run("git config user.name").out == "somebody\n");
    CHECK(!here.run("git config alias.x").succeeded());
  }
  SUBCASE("in a linked worktree") {
    outside(super,
            "git worktree add -q -b side ../work; cd ../work; "
            "git -c protocol.file.allow=always submodule -q update --init");
    LocalOptions options = options_for({place / "work"});
    options.roots.push_back({library, Permission::read});
    const LocalExecutor here = make(options);
    if (!holds_files(here)) return;
    CHECK(here.run("cd part && echo 2 > one && git commit -qam two && cd .. && git add part && "
                   "git commit -qm moved && git -c protocol.file.allow=always submodule update")
              .succeeded());
    CHECK(!here.run("echo '#' >> " + own + "/config").succeeded());
  }
  SUBCASE("whose repository does not lead back") {
    outside(super, "git -C part config core.worktree ../../../elsewhere");
    const LocalExecutor here = make(options_for({super + "/part"}));
    if (!holds_files(here)) return;
    const Result r = here.run("git status");
    CHECK(!r.succeeded());
    CHECK_MESSAGE(has(describe(r), "does not lead back to it"), describe(r));
  }
}

TEST_CASE("git worktrees: GIT_DIR of the operator") {
  if (!has_git()) return;
  const TempDir place;
  const std::string work = place.directory("work");
  outside(place.path(), "git init -q --bare store.git");
  LocalOptions options = options_for({work});
  options.environment.set.push_back({"GIT_DIR", place / "store.git"});
  options.environment.set.push_back({"GIT_WORK_TREE", work});
  const LocalExecutor here = make(options);
  if (!holds_files(here)) return;
  const Result r = here.run("echo 1 > one; git add one; git commit -qm one; git log --oneline");
  CHECK_MESSAGE(has(r.out, " one"), describe(r));
}

TEST_CASE("git worktrees: a planted .git file opens nothing") {
  if (!has_git()) return;
  const Worktree repository;
  const std::string victim = repository.own;
  const TempDir place;
  const std::string root = place.directory("root");
  const std::string git = root + "/.git";
  std::string why = "does not lead back to it";
  SUBCASE("that names the worktree of another folder") {
    support::write_file(git, "gitdir: " + victim + "\n");
  }
  SUBCASE("by a relative path") {
    support::write_file(git, "gitdir: ../../../../../../../../../../../.." + victim + "\n");
  }
  SUBCASE("in a folder directly below") { place.file("root/sub/.git", "gitdir: " + victim + "\n"); }
  SUBCASE("that names the repository itself") {
    support::write_file(git, "gitdir: " + repository.shared + "\n");
  }
  SUBCASE("through a link") {
    support::make_symlink(victim, root + "/link");
    support::write_file(git, "gitdir: " + root + "/link\n");
    why = "only through a symbolic link";
  }
  SUBCASE("through a folder of its own that leads back") {
    // A folder in the root is the command's own, and so is what it names as the shared one.
    place.file("root/worktrees/x/gitdir", git + "\n");
    place.file("root/worktrees/x/commondir", repository.shared + "\n");
    place.file("root/worktrees/x/HEAD", "ref: refs/heads/side\n");
    support::write_file(git, "gitdir: " + root + "/worktrees/x\n");
    why.clear();
  }
  SUBCASE("whose shared folder is another one") {
    // A command of the worktree itself may write its part of the shared folder.
    outside(repository.main, "git worktree move ../work " + root + "/tree; git init -q ../another");
    support::write_file(victim + "/commondir", repository.place / "another/.git");
    why = "names another folder as the shared one";
  }
  SUBCASE("that is a link") {
    support::make_symlink(repository.shared, git);
    why = "is neither a folder nor a file of git's";
  }
  SUBCASE("that is a fifo") {
    REQUIRE(::mkfifo(git.c_str(), 0600) == 0);
    why = "is neither a folder nor a file of git's";
  }
  SUBCASE("that is huge") {
    support::write_file(git, "gitdir: " + victim + std::string(1 << 20, '\n'));
    why = "is neither a folder nor a file of git's";
  }
  SUBCASE("with a NUL and a sequence for a terminal in it") {
    support::write_file(git, std::string("gitdir: ") + "/x\033[2J" + '\0' + "\n");
    why = "is neither a folder nor a file of git's";
  }
  SUBCASE("that is empty") {
    support::write_file(git, "");
    why = "is neither a folder nor a file of git's";
  }
  SUBCASE("that leads to a home") {
    support::write_file(git, "gitdir: /root\n");
    why = "/root', which is";
  }
  const LocalExecutor here = make(options_for({root}));
  if (!holds_files(here)) return;
  CHECK(!has(here.describe_place(), repository.shared));
  CHECK(!here.run("ls " + repository.shared).succeeded());
  CHECK(!here.run("touch " + repository.shared + "/objects/new").succeeded());
  const Result r = here.run("echo 'fatal: not a git repository' >&2; exit 1");
  CHECK_MESSAGE(has(describe(r), why), describe(r));
  CHECK(describe(r).find('\033') == std::string::npos);
}

TEST_CASE("git worktrees: links with relative paths, as newer versions of git make them") {
  if (!has_git()) return;
  const Worktree repository;
  support::write_file(repository.work + "/.git", "gitdir: ../main/.git/worktrees/work\n");
  support::write_file(repository.own + "/gitdir", "../../../../work/.git\n");
  const LocalExecutor here = make(options_for({repository.work}));
  if (!holds_files(here) || !has_broker(here, repository.shared)) return;
  check_lines(here, std::begin(daily), std::begin(daily) + 12);
}

TEST_CASE("git worktrees: one that may only be read") {
  if (!has_git()) return;
  const Worktree repository;
  LocalOptions options = options_for({repository.place.directory("other")});
  options.roots.push_back({repository.work, Permission::read});
  const LocalExecutor here = make(options);
  if (!holds_files(here)) return;
  CHECK(here.run("git -C ../work log --oneline").succeeded());
  CHECK(!here.run("touch " + repository.shared + "/objects/new").succeeded());
  CHECK(!here.run("touch " + repository.own + "/new").succeeded());
}

TEST_CASE("git worktrees: what commands change of their own part is put back") {
  if (!has_git()) return;
  const Worktree repository;
  const LocalExecutor here = make(options_for({repository.work}));
  if (!holds_files(here)) return;
  const Result r = here.run("echo .. > " + repository.own + "/commondir");
  CHECK(contains(r.put_back, repository.own + "/commondir"));
  CHECK(here.run("git status").put_back.empty());
}
