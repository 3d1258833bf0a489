// What runs later, by the user's own tools: it is kept as it is, or reported.

#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <sys/stat.h>

#include "../../helpers/executor_support.hpp"
#include "../../helpers/support.hpp"
#include "helpers.hpp"

namespace {

using codeexec::Command;
using codeexec::Json;
using codeexec::LocalExecutor;
using codeexec::LocalOptions;
using codeexec::Permission;
using codeexec::Result;
using codeexec::SandboxMode;
using support::AuditLog;
using support::begins;
using support::contains;
using support::describe;
using support::in;
using support::make;
using support::note_of;
using support::Strings;

LocalOptions kept_in_sandbox(const support::TempDir& directory) {
  LocalOptions options = in(directory);
  options.sandbox.mode = SandboxMode::best_effort;
  return options;
}

// What the user does outside of the sandbox. A plant that runs makes a file `ran`.
std::string as_user(const std::string& folder, const std::string& script) {
  const Result r =
      support::make(LocalOptions())
          .run("cd " + folder + " && export GIT_CONFIG_GLOBAL=/dev/null HOME=" + folder + "\n" +
               script);
  CHECK_MESSAGE(r.succeeded(), describe(r));
  return r.out;
}

bool git_is_here() {
  if (support::make(LocalOptions()).run("git --version").succeeded()) return true;
  MESSAGE("SKIPPED: there is no git here");
  return false;
}

// A project with a repository, whose later files the user has made.
struct Project {
  Project() {
    options.workspace = place.directory("project");
    options.sandbox.mode = SandboxMode::best_effort;
    options.put_back_dir = place / "kept";
    as_user(workspace(),
            "git init -q -b trunk; git config user.name me; git config user.email me@localhost\n"
            "echo one > one; mkdir -p sub/deep scripts .vscode\n"
            "printf '#!/bin/sh\\ntouch '$PWD/../hooked > scripts/check; chmod +x scripts/check\n"
            "ln -s ../../scripts/check .git/hooks/post-commit\n"
            "printf '#!/bin/sh\\nexit 0' > .git/hooks/pre-push; echo '{}' > .vscode/settings.json\n"
            "printf '#!/bin/sh\\ntouch '$PWD/../ran > evil; chmod +x evil\n"
            "rm .git/hooks/*.sample; git config core.pager cat; git add .; git commit -qm one; rm "
            "../hooked");
    before = state();
  }
  std::string workspace() const { return options.workspace; }
  // All that a command could plant, with what is in it, but for objects and such.
  std::string state() const {
    return as_user(workspace(),
                   "find . -path ./.git/objects -prune -o -path ./.git/logs -prune -o "
                   "-path ./.git/refs -prune -o -name index -o -name COMMIT_EDITMSG -o "
                   "-printf '%p %y %m %l\\n' | sort; git config -l --file .git/config | sort; cat "
                   ".git/hooks/pre-push "
                   "scripts/check .vscode/settings.json");
  }
  support::TempDir place;
  LocalOptions options;
  std::string before;
};

}  // namespace

TEST_CASE("what runs later may be allowed to change, and is reported then") {
  const support::TempDir place;
  const std::string write = place.directory("write");
  const std::string sub = place.directory("write/sub");
  const std::string read = place.directory("read");
  place.file("write/.git/config", "[core]");
  place.file("write/.git/hooks/pre-commit.sample", "x");
  place.file("write/.git/hooks/old", "x");
  place.file("write/.vscode/tasks.json", "{}");
  LocalOptions options;
  options.workspace = write;
  options.roots = {{write, Permission::write}, {read, Permission::read}};
  options.sandbox.mode = SandboxMode::best_effort;
  options.allow_later = {"."};
  const LocalExecutor here = make(options);
  const std::string begin = "changed during the command, and used outside of the sandbox by ";
  const auto changes = [&](const std::string& script, const std::string& work_dir = {}) {
    Command command = Command::shell(script);
    command.work_dir = work_dir;
    const Result r = here.run(command);
    CHECK_MESSAGE(r.succeeded(), describe(r));
    CHECK((note_of(r, begin) == "") == r.changed_files.empty());
    return r.changed_files;
  };
  CHECK(changes("true") == Strings{});
  CHECK(changes("cat .git/config; ls .git/hooks .vscode; mkdir -p x/y/z/w; "
                "echo x > x/y/z/w/.envrc; echo x > .git/index; echo y > "
                ".git/hooks/pre-commit.sample; touch y") == Strings{});
  // Added, changed and removed; the same bytes are a change, too.
  CHECK(changes("echo x > .git/hooks/pre-commit") == Strings{write + "/.git/hooks/pre-commit"});
  CHECK(changes("echo x > .git/hooks/pre-commit") == Strings{write + "/.git/hooks/pre-commit"});
  CHECK(changes("touch -d 2001-01-01 .git/hooks/old") == Strings{write + "/.git/hooks/old"});
  CHECK(changes("printf y > .git/hooks/old; touch -d 2001-01-01 .git/hooks/old") ==
        Strings{write + "/.git/hooks/old"});
  CHECK(changes("rm .git/hooks/old") == Strings{write + "/.git/hooks/old"});
  CHECK(changes("mv .git/config .git/c && mv .git/c .git/config") ==
        Strings{write + "/.git/config"});
  CHECK(changes("ln -s sub .envrc; echo x > .vscode/tasks.json") ==
        Strings{write + "/.envrc", write + "/.vscode/tasks.json"});
  for (const char* file : {".git/config.worktree",
                           ".git/commondir",
                           ".husky/pre-push",
                           ".idea/workspace.xml",
                           ".ssh/config",
                           ".gitconfig",
                           ".npmrc",
                           ".yarnrc",
                           ".yarnrc.yml",
                           ".config/git/config",
                           ".config/fish/config.fish",
                           ".profile",
                           ".bashrc",
                           ".bash_profile",
                           ".bash_login",
                           ".bash_logout",
                           ".bash_aliases",
                           ".zshenv",
                           ".zprofile",
                           ".zshrc",
                           ".zlogin",
                           ".zlogout",
                           ".kshrc",
                           ".cshrc",
                           ".tcshrc",
                           ".login",
                           ".git/info/attributes",
                           ".git/modules/m/config",
                           ".git/modules/m/hooks/post-checkout",
                           ".git/modules/m/modules/n/config",
                           ".git/modules/lib/part/one/hooks/post-checkout",
                           ".git/worktrees/w/config",
                           "sub/.git/config",
                           "sub/.git/hooks/pre-push",
                           "sub/.mcp.json",
                           "sub/.cursor/mcp.json",
                           "sub/.claude/settings.json",
                           ".claude/settings.json",
                           ".claude/settings.local.json",
                           ".cursor/mcp.json",
                           ".mcp.json",
                           ".pre-commit-config.yaml",
                           ".devcontainer/devcontainer.json",
                           ".devcontainer.json",
                           ".mise.toml",
                           ".cargo/config",
                           ".cargo/config.toml",
                           ".github/workflows/ci.yml",
                           ".gdbinit"}) {
    CAPTURE(std::string(file));
    const Strings changed =
        changes("mkdir -p $(dirname " + std::string(file) + ") && echo x > " + file);
    CHECK(contains(changed, write + "/" + file));
  }
  // With it comes what it names.
  CHECK(changes("mkdir my-hooks; printf '[core]\n\tHooksPath = \"my-hooks\"\n' > .git/config") ==
        Strings{write + "/.git/config"});
  CHECK(changes("echo x > my-hooks/pre-push; echo x > y") == Strings{write + "/my-hooks/pre-push"});
  // What it names outside is nobody's business, and what cannot be read is no reason to wait.
  for (const char* outside :
       {"hookspath=/etc", "hooksPath = ../read", "hookspath", "hookspath ="}) {
    CAPTURE(std::string(outside));
    const std::string config = std::string("echo '") + outside + "' > .git/config";
    CHECK(changes(config) == Strings{write + "/.git/config"});
    CHECK(changes("true") == Strings{});
  }
  CHECK(changes("rm .git/config; mkfifo .git/config") == Strings{write + "/.git/config"});
  CHECK(changes("true") == Strings{});
  // All of .git gives way to another one, in part and as a whole.
  CHECK(contains(changes("mv .git/hooks .git/h; mkdir .git/hooks"), write + "/.git/hooks"));
  CHECK(contains(changes("mv .git .g; echo 'gitdir: .g' > .git"), write + "/.git"));
  CHECK(contains(changes("rm .git; mv .g .git"), write + "/.git"));
  CHECK(changes("rm .envrc") == Strings{write + "/.envrc"});
  // The work_dir is watched, too.
  CHECK(changes("echo x > .envrc", "sub") == Strings{sub + "/.envrc"});
  CHECK(changes("echo x > .envrc; echo x > ../.envrc", "sub") ==
        Strings{write + "/.envrc", sub + "/.envrc"});

  AuditLog log;
  options.on_audit = log.callback();
  const LocalExecutor audited = make(options);
  const Result started = audited.start(Command::shell("echo z > .envrc")).wait();
  CHECK(started.changed_files == Strings{write + "/.envrc"});
  CHECK(note_of(started, begin) == begin + "the user's own tools: " + write + "/.envrc");
  CHECK(log.take().at(0)["changed_files"] == Json::array({write + "/.envrc"}));
  options.watch_files = false;
  CHECK(make(options).run("echo z > .envrc").changed_files.empty());
  options.watch_files = true;
  options.sandbox.mode = SandboxMode::off;
  CHECK(make(options).run("echo z > .envrc").changed_files.empty());
}

TEST_CASE("looking for what runs later is bounded") {
  const support::TempDir place;
  LocalOptions options = kept_in_sandbox(place);
  options.allow_later = {"."};
  const LocalExecutor here = make(options);
  const Result many = here.run("mkdir .vscode && cd .vscode && seq 1 1000 | xargs touch");
  CHECK_MESSAGE(many.succeeded(), describe(many));
  CHECK(many.changed_files.size() == 100);
  const Result gone = here.run("rm -r .vscode");
  CHECK(gone.changed_files.size() == 100);
  CHECK(here.run("true").changed_files.empty());

  // Of too many folders not all are looked at, and nothing is said that is not so.
  CHECK(here.run("seq 5000 | xargs mkdir").changed_files.empty());
  for (const std::string& path :
       here.run("for i in $(seq 5000); do : > $i/.envrc; done").changed_files)
    CHECK(support::ends(path, "/.envrc"));
  for (const std::string& path : here.run("seq 5001 5100 | xargs mkdir").changed_files)
    CHECK_MESSAGE(false, path);
  CHECK(here.run("touch .npmrc").changed_files == Strings{place.path() + "/.npmrc"});
  CHECK(here.run("seq 5100 | xargs rm -r").succeeded());
  // Files at the top are found in a directory that is too large to be listed.
  CHECK(here.run("seq 10000 120000 | xargs touch").changed_files.empty());
  CHECK(here.run("touch .envrc").changed_files == Strings{place.path() + "/.envrc"});
}

TEST_CASE("what runs later is put back before the result is given") {
  if (!git_is_here()) return;
  const char* const plants[] = {
      "cp evil .git/hooks/pre-commit",
      "cp evil .git/hooks/pre-push",
      "rm .git/hooks/pre-push",
      "chmod 600 .git/hooks/pre-push",
      "cp evil .git/hooks/pre-commit; chmod 311 .git/hooks",
      "cp evil .git/hooks/pre-commit; chmod 555 .git/hooks; chmod 555 .git",
      "cp evil .git/hooks/pre-commit; chmod 0 .git/hooks",
      "echo x > .vscode/tasks.json; chmod 0 .vscode",
      "mkdir -p sub/.vscode; echo x > sub/.vscode/tasks.json; chmod 311 sub",
      "mv .git/hooks .git/h; mkdir .git/hooks; cp evil .git/hooks/pre-commit; rm -r .git/h",
      "mv .git/hooks .git/h; ln -s h .git/hooks; cp evil .git/h/pre-commit; rm -r .git/h",
      "rm .git/hooks/pre-push; mkfifo .git/hooks/pre-push",
      "rm .git/hooks/pre-push; mkdir -p .git/hooks/pre-push/x",
      "rm .git/hooks/post-commit; ln -s ../../evil .git/hooks/post-commit",
      "cp evil scripts/check",
      "git config core.fsmonitor ./evil",
      "git config core.hooksPath .",
      "git config alias.status '!./evil'",
      "git config core.sshCommand ./evil",
      "git config --unset core.pager",
      "git config core.pager ./evil",
      "git config filter.x.clean ./evil",
      "git config include.path ../more",
      "git config remote.x.url 'ext::./evil'",
      "git config remote.x.vcs evil",
      "git config submodule.x.update '!./evil'",
      "git config core.worktree ../..",
      "(cat .git/config; printf '[core]\\n\\tfsmonitor = ./evil\\n') > .git/c; mv .git/c "
      ".git/config",
      "printf '[core]fsmonitor=./evil\\n' >> .git/config",
      "printf '\\n[core\\n' >> .git/config",
      "ln .git/config hard; printf '[core]\\n\\tfsmonitor = ./evil\\n' >> hard; rm hard",
      "git config extensions.worktreeConfig true; printf '[core]\\n\\tfsmonitor = ./evil\\n' > "
      ".git/config.worktree; git config --unset extensions.worktreeConfig",
      "cp .git/config /tmp/c; rm .git/config; ln -s ../evil .git/config",
      "rm .git/config; mkfifo .git/config",
      "echo .. > .git/commondir",
      "mkdir .git/remotes; echo 'URL: ./evil' > .git/remotes/origin",
      "echo '* filter=x' > .git/info/attributes",
      "echo 'export X' > .envrc",
      "ln -s evil .envrc",
      "mkfifo .envrc",
      "echo x > .vscode/tasks.json",
      "echo x > .vscode/settings.json",
      "rm -r .vscode",
      "mv .vscode v; ln -s v .vscode; echo x > v/tasks.json; rm -r v",
      "mkdir x; echo x > x/tasks.json; mv .vscode y; mv x .vscode; rm -r y",
      "echo x > .mcp.json",
      "mkdir .claude; echo x > .claude/settings.json",
      "mkdir .cursor .codex .gemini; touch .cursor/mcp.json .codex/config.toml .gemini/x",
      "mkdir -p .github/workflows; echo x > .github/workflows/ci.yml; rmdir .github || :",
      "mkdir .husky; cp evil .husky/pre-commit",
      "mkdir -p .idea/runConfigurations; echo x > .idea/runConfigurations/x.xml",
      "touch .pre-commit-config.yaml .npmrc .gitconfig .gdbinit .bashrc .devcontainer.json",
      "echo x > sub/.envrc",
      "mkdir sub/deep/.vscode; echo x > sub/deep/.vscode/tasks.json",
      "echo 'gitdir: ../evil' > sub/.git",
      "ln -s ../evil sub/.git",
      "mv .git .g; echo 'gitdir: .g' > .git; mv .git .x; mv .g .git; rm .x; cp evil "
      ".git/hooks/update",
      "(trap '' TERM HUP; setsid sh -c 'sleep 1000; cp evil .git/hooks/update' &) ; "
      "cp evil .git/hooks/update",
  };
  for (const char* const plant : plants) {
    CAPTURE(std::string(plant));
    const Project project;
    const LocalExecutor here = make(project.options);
    const Result r = here.run(plant);
    if (!contains(r.sandbox->enforced, "put_back")) {
      MESSAGE("SKIPPED: no sandbox here");
      return;
    }
    CHECK_MESSAGE(!r.put_back.empty(), describe(r));
    CHECK(note_of(r, "put back as it was, since the user's own tools run it later: ") != "");
    CHECK_MESSAGE(note_of(r, "what runs later is not as it was") == "", describe(r));
    const std::string now = project.state();
    // What is beside is the command's; an empty folder runs nothing.
    if (!support::has(plant, ".github") && !support::has(plant, "311 sub") &&
        !support::has(plant, "remotes"))
      CHECK_MESSAGE(now == project.before, describe(r));
    CHECK(here.run("true").put_back.empty());
    as_user(project.workspace(), "git status >/dev/null; git commit -q --allow-empty -m x; cd sub");
    CHECK(!support::exists(project.place / "ran"));
    CHECK(support::exists(project.place / "hooked"));
  }
}

TEST_CASE("what runs later: repositories that commands make") {
  if (!git_is_here()) return;
  const Project project;
  const LocalExecutor here = make(project.options);
  if (!contains(here.sandbox_report().enforced, "put_back")) return;
  // Whatever made it a repository, the next `git status` in it starts nothing.
  const char* const plants[] = {
      "git init -q new; cp evil new/.git/hooks/pre-commit; git -C new config core.fsmonitor "
      "../evil",
      "mkdir new; cd new; mkdir objects refs; echo ref: refs/heads/x > HEAD; "
      "printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tworktree = .\\n"
      "\\tfsmonitor = ../evil\\n' > config",
      "mkdir new; git init -q --bare new/b; cp evil new/b/hooks/pre-receive; mkdir new/.vscode; "
      "echo x > new/.vscode/tasks.json; git -C new/b config core.fsmonitor ../evil",
      "mkdir -p new/.git; echo ../../.git > new/.git/commondir; echo ref: refs/heads/x > "
      "new/.git/HEAD",
  };
  for (const char* const plant : plants) {
    CAPTURE(std::string(plant));
    const Result r = here.run(plant);
    CHECK_MESSAGE(!r.put_back.empty(), describe(r));
    as_user(project.workspace(),
            "cd new; git status >/dev/null 2>&1 || :; git commit -q --allow-empty -m x 2>/dev/null "
            "|| :");
    CHECK(!support::exists(project.place / "ran"));
    CHECK(here.run("true").put_back.empty());
    CHECK(here.run("rm -r new").put_back.empty());
  }
  // A clone keeps what it came with, as it is none of the folders that were there.
  const Result made = here.run(
      "git clone -q . copy; mkdir copy/.vscode; echo x > copy/.vscode/tasks.json; git -C copy "
      "status");
  CHECK_MESSAGE(made.succeeded(), describe(made));
  CHECK(made.put_back.empty());
  CHECK(contains(made.changed_files, project.workspace() + "/copy/.git"));
  CHECK(contains(made.changed_files, project.workspace() + "/copy/.vscode"));
  CHECK(here.run("echo y > copy/.vscode/tasks.json").put_back ==
        Strings{project.workspace() + "/copy/.vscode/tasks.json"});
}

TEST_CASE("what runs later: what agents do daily with git works") {
  if (!git_is_here()) return;
  const Project project;
  as_user(project.place.path(),
          "git init -q --bare -b trunk remote; git -C project push -q ../remote trunk");
  LocalOptions options = project.options;
  options.roots = {{project.workspace(), Permission::write},
                   {project.place / "remote", Permission::write}};
  const LocalExecutor here = make(options);
  for (const char* const script :
       {"echo 2 >> one; git commit -qam two",
        "git checkout -q -b side; echo 3 >> one; git commit -qam 3",
        "git checkout -q trunk; git merge -q side",
        "echo 4 >> one; git stash -q; git stash pop -q; git commit -qam 4",
        "git remote add origin ../remote; git fetch -q", "git push -q -u origin side:side2",
        "git config user.name somebody; git config pull.rebase true",
        "git branch -q -u origin/trunk", "git checkout -q -b s2 origin/side2; git pull -q",
        "git init -q sub/own", "git clone -q . sub/copy",
        "git worktree add -q ../project/tree; git -C tree status",
        "git -c protocol.file.allow=always submodule -q add ../remote part; git commit -qm part",
        "git sparse-checkout set sub; git sparse-checkout disable", "git gc -q",
        "git tag -a v1 -m v1",
        "git rm -q -r --cached scripts; git commit -qm gone; git reset -q --hard HEAD~1",
        "git rebase -q HEAD~1", "rm -rf tree; git worktree prune"}) {
    const Result r = here.run(script);
    CAPTURE(std::string(script));
    CHECK_MESSAGE(r.succeeded(), describe(r));
    CHECK_MESSAGE(r.put_back.empty(), describe(r));
  }
  CHECK(as_user(project.workspace(),
                "git config user.name; git config branch.s2.remote; "
                "git config core.pager") == "somebody\norigin\ncat\n");
}

TEST_CASE("what runs later: settings of git come through one by one") {
  if (!git_is_here()) return;
  const Project project;
  const LocalExecutor here = make(project.options);
  if (!contains(here.sandbox_report().enforced, "put_back")) return;
  const Result r = here.run(
      "git remote add origin https://example.org/x; git config core.fsmonitor ./evil; "
      "git config 'url.ext::sh.insteadOf' x; git config branch.trunk.remote origin; "
      "git config core.pager ./evil; git config user.name you");
  CHECK(r.put_back == Strings{project.workspace() + "/.git/config"});
  CHECK(support::has(note_of(r, "put back"),
                     "(settings that may start programs: core.pager, core.fsmonitor, "
                     "url.ext::sh.insteadof)"));
  CHECK(as_user(project.workspace(), "git config -l --local | sort") ==
        "branch.trunk.remote=origin\ncore.bare=false\ncore.filemode=true\n"
        "core.logallrefupdates=true\ncore.pager=cat\ncore.repositoryformatversion=0\n"
        "remote.origin.fetch=+refs/heads/*:refs/remotes/origin/*\n"
        "remote.origin.url=https://example.org/x\nuser.email=me@localhost\nuser.name=you\n");
}

TEST_CASE("what runs later: the command's version is kept for the person") {
  const support::TempDir place;
  LocalOptions options = in(place);
  options.workspace = place.directory("ws");
  options.sandbox.mode = SandboxMode::best_effort;
  options.put_back_dir = place / "kept";
  support::write_file(options.workspace + "/.envrc", "old");
  const auto kept_in = [](const Result& r) {
    const std::string note = note_of(r, "put back");
    const std::size_t at = note.find("version is in ") + 14;
    return note.substr(at, note.find(';', at) - at);
  };
  const Result r = make(options).run("echo new > .envrc; mkdir -p .vscode/a; echo x > .vscode/a/b");
  if (!contains(r.sandbox->enforced, "put_back")) return;
  CHECK(r.put_back == Strings{options.workspace + "/.envrc", options.workspace + "/.vscode"});
  CHECK(support::read_file(options.workspace + "/.envrc") == "old");
  CHECK(!support::exists(options.workspace + "/.vscode"));
  CHECK(support::read_file(kept_in(r) + options.workspace + "/.envrc") == "new\n");
  CHECK(support::read_file(kept_in(r) + options.workspace + "/.vscode/a/b") == "x\n");
  // On another file system it is copied there.
  const support::TempDir memory("/dev/shm");
  options.put_back_dir = memory / "kept";
  const Result copied = make(options).run(
      "echo new > .envrc; mkdir -p .vscode/a; echo x > .vscode/a/b; ln -s /etc .vscode/l");
  CHECK(support::read_file(kept_in(copied) + options.workspace + "/.envrc") == "new\n");
  CHECK(support::read_file(kept_in(copied) + options.workspace + "/.vscode/a/b") == "x\n");
  CHECK(!support::exists(options.workspace + "/.vscode"));
  // Where commands may write nothing can be kept from them, so it stays, under another name.
  options.put_back_dir = options.workspace + "/kept";
  const Result beside = make(options).run("echo new > .envrc");
  CHECK(support::has(note_of(beside, "put back"),
                     "the command's version is " + options.workspace + "/PUT_BACK_"));
  CHECK(support::read_file(options.workspace + "/.envrc") == "old");
}

TEST_CASE("what runs later: the user's own changes stay") {
  const support::TempDir place;
  LocalOptions options = kept_in_sandbox(place);
  options.put_back_dir = support::TempDir().path();
  const LocalExecutor here = make(options);
  CHECK(here.run("true").put_back.empty());
  place.file(".envrc", "mine");
  CHECK(here.run("true").put_back.empty());
  CHECK(support::read_file(place / ".envrc") == "mine");
  // A command that runs beside others hides nothing that it made.
  codeexec::Execution first = here.start(Command::shell("echo x > .npmrc; exec sleep 1000"));
  REQUIRE(support::comes_true([&] { return support::exists(place / ".npmrc"); }));
  const Result second = here.run("true");
  CHECK(support::exists(place / ".npmrc") == second.put_back.empty());
  first.cancel();
  first.wait();
  CHECK(!support::exists(place / ".npmrc"));
  CHECK(here.run("true").put_back.empty());
  CHECK(support::read_file(place / ".envrc") == "mine");
}

TEST_CASE("what runs later: what is allowed, and what the tools for files do") {
  const support::TempDir place;
  LocalOptions options = kept_in_sandbox(place);
  options.put_back_dir = support::TempDir().path();
  options.allow_later = {".github/workflows", place / ".npmrc"};
  const LocalExecutor here = make(options);
  if (!contains(here.sandbox_report().enforced, "put_back")) return;
  CHECK(here.run("mkdir -p .github/workflows; echo x > .github/workflows/c; echo x > .npmrc; "
                 "echo x > .envrc")
            .put_back == Strings{place / ".envrc"});
  CHECK(support::exists(place / ".github/workflows/c"));
  CHECK(support::exists(place / ".npmrc"));
  codeexec::FileWrite make_all;
  make_all.make_directories = true;
  for (const char* path : {".envrc", ".git/config", ".git/hooks/x", "sub/.vscode/tasks.json",
                           "a/b/c/d/.git/modules/m/hooks/x", ".mcp.json"}) {
    const auto written = here.files().write(path, "x", make_all);
    REQUIRE_MESSAGE(!written, path);
    CHECK(support::has(written.error().message, "stays as it is"));
    CHECK(support::has(written.error().message, "allow_later"));
  }
  for (const char* path :
       {".npmrc", ".github/workflows/d", ".github/other", "sub/hooks/x", "x.envrc"})
    CHECK_MESSAGE(here.files().write(path, "x", make_all), path);
}

TEST_CASE("what runs later: folders that are unlike others") {
  if (!git_is_here()) return;
  const Project project;
  const auto planted = [&](const std::string& workspace, const char* script) {
    LocalOptions options = project.options;
    options.workspace = workspace;
    const Result r = make(options).run(script);
    CHECK_MESSAGE(r.succeeded(), describe(r));
    return r.put_back;
  };
  if (!contains(make(project.options).sandbox_report().enforced, "put_back")) return;
  const std::string hooks = project.workspace() + "/.git/hooks";
  CHECK(planted(hooks, "echo x > pre-commit; echo x > new.sample") ==
        Strings{hooks + "/pre-commit"});
  CHECK(planted(project.workspace() + "/.git", "echo x > hooks/pre-commit; echo x > description") ==
        Strings{hooks + "/pre-commit"});
  // Where agents keep their work trees, files are as others are.
  const std::string tree = project.place.directory("project/.claude/worktrees/w");
  CHECK(planted(project.workspace(), "echo x > .claude/worktrees/w/file") == Strings{});
  CHECK(planted(project.workspace(), "echo x > .claude/worktrees/w/.envrc") ==
        Strings{tree + "/.envrc"});
  // No folder at all.
  for (const char* script :
       {"mkfifo sub/.git; echo x > .npmrc", "ln -s / sub/.git; echo x > .npmrc",
        "mkdir -p sub/.git/config sub/.git/hooks; echo x > .npmrc"}) {
    CAPTURE(std::string(script));
    CHECK(contains(planted(project.workspace(), script), project.workspace() + "/.npmrc"));
    as_user(project.workspace(), "rm -rf sub/.git");
  }
  CHECK(contains(planted(project.workspace(), "rm -rf .git; mkfifo .git"),
                 project.workspace() + "/.git"));
  CHECK(!support::exists(project.workspace() + "/.git"));
}

TEST_CASE("what runs later: no link leads this program to what commands cannot read") {
  if (!git_is_here()) return;
  const Project project;
  const std::string home = project.place.directory("home");
  project.place.directory("home/.config/git");
  project.place.file("home/.config/git/credentials", "https://me:hunter2@example.org");
  const LocalExecutor here = make(project.options);
  if (!contains(here.sandbox_report().enforced, "put_back")) return;
  CHECK(here.run("mkdir c; ln -s " + home + "/.config c/.config").succeeded());
  CHECK(here.run("cd c; rm .config; mkdir -p .config/git").succeeded());
  CHECK(!support::exists(project.workspace() + "/c/.config/git/credentials"));
  CHECK(here.run("ln -s " + home + "/.config/git .vscode/g; mkdir -p .claude; ln -s " + home +
                 " .claude/home")
            .succeeded());
  CHECK(support::read_file(home + "/.config/git/credentials") == "https://me:hunter2@example.org");
  // One that takes the place of a folder at any moment.
  codeexec::Execution swapping =
      here.start(Command::shell("ln -s " + home +
                                "/.config l; while :; do mkdir .config; mkdir .config/git; rmdir "
                                ".config/git .config; ln -s " +
                                home + "/.config .config; rm .config; done 2> /dev/null"));
  for (int i = 0; i < 30; ++i) {
    here.run("mkdir n" + std::to_string(i));
    CHECK(as_user(project.workspace(), "grep -rl hunter2 . || :") == "");
  }
  swapping.cancel();
  swapping.wait();
}

TEST_CASE("what runs later: what an attacker found") {
  if (!git_is_here()) return;
  struct Found {
    const char* first;
    const char* second;
    const char* user;
  };
  const Found all[] = {
      // Naming a file does not exempt it.
      {"git init -q new; git -C new config core.fsmonitor ../evil; git remote add x ./new/.git", "",
       "cd new; git status"},
      {"git init -q new; git -C new config core.fsmonitor ../evil; "
       "git config include.path ../new/.git/config",
       "", "cd new; git status"},
      // What was moved from a folder of its own.
      {"git init -q new; mkdir new/.githooks; cp evil new/.githooks/pre-commit; "
       "git -C new commit -q --allow-empty -m x",
       "rm -rf .git/hooks; mv new/.githooks .git/hooks", "git commit -q --allow-empty -m x"},
      {"git clone -q . new; mkdir new/.vscode/s; echo x > new/.vscode/s/tasks.json",
       "rm -r .vscode; mv new/.vscode .", "test ! -e .vscode/s || touch ../ran"},
      // Files .git that lead to what is no submodule's.
      {"mkdir -p a/b/c/d/e/.git/modules; git init -q --bare a/b/c/d/e/.git/modules/x; "
       "git -C a/b/c/d/e/.git/modules/x config core.fsmonitor ../evil; mkdir new; "
       "echo 'gitdir: ../a/b/c/d/e/.git/modules/x' > new/.git",
       "", "cd new; git status"},
      {"mkdir -p .git/worktrees/x; git init -q --bare .git/worktrees/x/y; "
       "git -C .git/worktrees/x/y config core.fsmonitor ../evil; mkdir new; "
       "echo 'gitdir: ../.git/worktrees/x/y' > new/.git",
       "", "cd new; git status"},
      {"mkdir -p r/.git/modules; git init -q --bare r/.git/modules/x; ln -s r l; mkdir new; "
       "echo 'gitdir: ../l/.git/modules/x' > new/.git",
       "git -C r/.git/modules/x config core.fsmonitor ../evil; rm l; mkdir -p q/w/e; mv r q/w/e/r; "
       "ln -s q/w/e/r l",
       "cd new; git status"},
      // A repository to push to.
      {"mkdir -p q/w/e/r/t; git init -q --bare q/w/e/r/t/a; cp evil "
       "q/w/e/r/t/a/hooks/post-receive; "
       "git remote add up ./q/w/e/r/t/a",
       "", "git push -q up trunk"},
      {"git init -q --bare a; cp evil a/hooks/post-receive; git remote add up ./a", "",
       "git push -q up trunk"},
      {"mkdir -p q/w/e/r/t; git init -q --bare q/w/e/r/t/a; cp evil "
       "q/w/e/r/t/a/hooks/post-receive; "
       "mkdir -p .git/remotes; echo 'URL: ./q/w/e/r/t/a' > .git/remotes/up",
       "", "git push -q up trunk"},
      {"mkdir -p q/w/e/r/t; git init -q --bare q/w/e/r/t/a; cp evil "
       "q/w/e/r/t/a/hooks/post-receive; "
       "git remote add up /proc/self/cwd/q/w/e/r/t/a",
       "", "git push -q up trunk"},
      {"mkdir -p q/w/e/r/t; git init -q --bare q/w/e/r/t/a; cp evil "
       "q/w/e/r/t/a/hooks/post-receive; "
       "git remote add up \"file://$(pwd | sed s,p,%70,)/q/w/e/r/t/a\"",
       "", "git push -q up trunk"},
      {"git init -q --bare good; ln -s good l; git remote add up ./l",
       "mkdir -p q/w/e/r/t; git init -q --bare q/w/e/r/t/a; cp evil "
       "q/w/e/r/t/a/hooks/post-receive; "
       "rm l; ln -s q/w/e/r/t/a l",
       "git push -q up trunk"},
      // Folders that become links, or others.
      {"mkdir -p a/b/c/d; mv sub a/b/c/d/sub; ln -s a/b/c/d/sub sub; git -C sub init -q; "
       "git -C sub config core.fsmonitor $PWD/evil",
       "", "cd sub; git status"},
      {"mkdir -p s2/.git; mv .vscode s2/; mv .git/hooks s2/.git/", "",
       "test -e .vscode/settings.json && test -e .git/hooks/pre-push || touch ../ran"},
      // A folder that only looks like a clone, or one of old.
      {"mkdir -p new/.git new/.vscode; echo x > new/.vscode/tasks.json", "",
       "test ! -e new/.vscode/tasks.json || touch ../ran"},
      {"git init -q new; git init -q --bare new/b; cp evil new/b/hooks/reference-transaction", "",
       "git -C new/b branch x trunk"},
      // Bounds.
      {"cd .git/hooks; seq 3000 | xargs touch; cp ../../evil pre-commit", "",
       "git commit -q --allow-empty -m x"},
      {"for j in .idea .zed .claude .codex; do mkdir $j; for i in 1 2 3; do mkdir $j/d$i; "
       "(cd $j/d$i; seq -f f%.0f 1000 | xargs touch); done; done; cp evil .git/hooks/pre-commit",
       "", "git commit -q --allow-empty -m x"},
      {"mkdir .claude; cd .claude; for i in $(seq 90); do head -c 250000 /dev/zero > $i; done",
       "git init -q new; git -C new config core.fsmonitor ../evil", "cd new; git status"},
      {"git init -q modules/x; git -C modules/x config core.worktree ../../../../out", "",
       "test \"$(git -C modules/x config core.worktree)\" != ../../../../out || touch ../ran"},
  };
  for (const Found& found : all) {
    CAPTURE(std::string(found.first));
    const Project project;
    const LocalExecutor here = make(project.options);
    if (!contains(here.sandbox_report().enforced, "put_back")) return;
    here.run(found.first);
    here.run(found.second);
    as_user(project.workspace(), "(" + std::string(found.user) + ") > /dev/null 2>&1 || :");
    CHECK(!support::exists(project.place / "ran"));
  }
}

TEST_CASE("what runs later: hooks that the user's settings name") {
  if (!git_is_here()) return;
  const Project project;
  as_user(project.workspace(),
          "mkdir myhooks; git config core.hooksPath myhooks; cp .gitignore x 2> /dev/null || :; "
          "git worktree add -q ../tree; mkdir ../tree/myhooks");
  LocalOptions options = project.options;
  for (const std::string& workspace : {project.workspace(), project.place / "tree"}) {
    options.workspace = workspace;
    const LocalExecutor here = make(options);
    if (!contains(here.sandbox_report().enforced, "put_back")) return;
    const Result r = here.run("printf '#!/bin/sh\ntouch " + project.place / "ran" +
                              "\n' > myhooks/pre-commit; chmod +x myhooks/pre-commit");
    CHECK(r.put_back == Strings{workspace + "/myhooks/pre-commit"});
    const auto written = here.files().write("myhooks/pre-commit", "x");
    CHECK(!written);
    CHECK(!support::exists(workspace + "/myhooks/pre-commit"));
  }
}

TEST_CASE("what runs later: links and names that the user has made") {
  if (!git_is_here()) return;
  struct Made {
    const char* user;
    const char* command;
    const char* later;
  };
  const Made all[] = {
      {"mkdir myh; mv .git/hooks .git/h; ln -s ../myh .git/hooks", "cp evil myh/pre-commit",
       "git commit -q --allow-empty -m x"},
      {"git config core.hooksPath node_modules/h",
       "mkdir -p node_modules/h; cp evil "
       "node_modules/h/pre-commit",
       "git commit -q --allow-empty -m x"},
      {"git config core.hooksPath myhooks; mkdir myhooks",
       "for i in $(seq 70); do ln -s x .git/hooks/l$i; done; cp evil myhooks/pre-commit",
       "git commit -q --allow-empty -m x"},
      {"git config include.path ../my.cfg; touch my.cfg",
       "git config --file my.cfg core.fsmonitor ./evil", "git status"},
      {"ln -s scripts/check .envrc", "cp evil scripts/check", "./.envrc"},
  };
  for (const Made& made : all) {
    CAPTURE(std::string(made.user));
    const Project project;
    as_user(project.workspace(), made.user);
    for (const bool has_place : {true, false}) {
      LocalOptions options = project.options;
      if (!has_place) options.put_back_dir = options.workspace + "/kept";
      const LocalExecutor here = make(options);
      if (!contains(here.sandbox_report().enforced, "put_back")) return;
      const Result r = here.run(made.command);
      CHECK_MESSAGE(!r.put_back.empty(), describe(r));
      CHECK_MESSAGE(note_of(r, "what runs later is not as it was") == "", describe(r));
      as_user(project.workspace(), "(" + std::string(made.later) + ") > /dev/null 2>&1 || :");
      CHECK(!support::exists(project.place / "ran"));
    }
  }
}

TEST_CASE("what runs later: nothing that is hidden comes to light") {
  const support::TempDir place("/var/tmp");
  place.directory(".claude");
  place.file(".claude/cred", "hunter2");
  LocalOptions options = kept_in_sandbox(place);
  options.put_back_dir = place / "kept";
  options.sandbox.hidden_paths = {place / ".claude/cred"};
  const LocalExecutor here = make(options);
  if (!contains(here.sandbox_report().enforced, "hidden_paths")) {
    MESSAGE("SKIPPED: no sandbox here that hides");
    return;
  }
  CHECK(!here.run("cat .claude/cred").succeeded());
  const Result r = here.run("cd .claude; seq 1100 | xargs touch");
  CHECK(contains(r.put_back, place / ".claude"));
  CHECK(support::names_in(place / ".claude") == Strings{"cred"});
  CHECK(
      !support::has(here.run("cat .claude/cred; cat PUT_BACK_*; cat PUT_BACK_*/*").out, "hunter2"));
}

TEST_CASE("what runs later: nothing of the user's is lost") {
  if (!git_is_here()) return;
  const Project project;
  LocalOptions options = project.options;
  options.put_back_dir = options.workspace + "/kept";  // cannot be used
  const LocalExecutor here = make(options);
  if (!contains(here.sandbox_report().enforced, "put_back")) return;
  const std::string name(250, 'x');
  as_user(project.workspace(), "echo mine > .vscode/" + name);
  here.run("git config alias.mine '!true'; echo theirs > .vscode/" + name);
  CHECK(support::read_file(project.workspace() + "/.vscode/" + name) == "mine\n");
  CHECK(as_user(project.workspace(), "grep -l theirs PUT_BACK_*; grep -c mine PUT_BACK_*_config") !=
        "");
  // A project that is moved, and back.
  as_user(project.workspace(),
          "git init -q p; git -C p config alias.mine '!true'; "
          "echo x > p/.git/hooks/pre-push; mkdir p/.vscode; touch p/.vscode/a");
  for (const char* const move : {"mv p p.bak", "mv p.bak p"})
    CHECK(here.run(move).put_back.empty());
  CHECK(as_user(project.workspace(),
                "cat p/.git/hooks/pre-push; ls p/.vscode; git -C p config "
                "alias.mine") == "x\na\n!true\n");
  // Repositories that take the place of others stay whole.
  as_user(
      project.workspace(),
      "git -c protocol.file.allow=always submodule -q add ../project part; git commit -qm part; "
      "git worktree add -q w");
  const char* const scripts[] = {
      "rm -rf part; git rm -q --cached part; git clone -q . part; cd part; "
      "git -c user.name=a -c user.email=b commit -q --allow-empty -m new",
      "git worktree remove w; git init -q w; cd w; "
      "git -c user.name=a -c user.email=b commit -q --allow-empty -m new",
      "git worktree add -q -b other x/w; git -C x/w status",
      "git init -q sub/own; git -C sub/own -c user.name=a -c user.email=b commit -q --allow-empty "
      "-m 1; "
      "git -c protocol.file.allow=always submodule -q add ./sub/own sub/own; git submodule -q "
      "absorbgitdirs sub/own",
  };
  for (const char* const script : scripts) {
    CAPTURE(std::string(script));
    const Result r = here.run(script);
    CHECK_MESSAGE(r.succeeded(), describe(r));
    CHECK_MESSAGE(r.put_back.empty(), describe(r));
  }
  CHECK(as_user(project.workspace(),
                "git -C part log --format=%s -1; git -C w log --format=%s -1; "
                "git -C x/w rev-parse --abbrev-ref HEAD; git -C sub/own log --format=%s -1") ==
        "new\nnew\nother\n1\n");
}

TEST_CASE("what runs later is known by its name") {
  for (const char* path :
       {".envrc", "a/.envrc", ".git", "a/.git", ".git/config", ".git/hooks/x",
        ".git/modules/a/b/hooks/x", ".git/worktrees/w/config.worktree", ".vscode", ".vscode/a/b",
        ".github/workflows/x.yml", ".cargo/config.toml"})
    CHECK_MESSAGE(codeexec::runs_later(path), path);
  for (const char* path :
       {"", "envrc", ".claude/worktrees/w/x", ".git/index", ".git/objects/ab/c", ".github",
        ".gitignore", ".github/CODEOWNERS", "hooks/x", ".cargo/registry", "config", ".vscodex"})
    CHECK_MESSAGE(!codeexec::runs_later(path), path);
}
