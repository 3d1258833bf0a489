// Mounts of a command's own: what stays as it is although Landlock has no word in it.

#include <doctest/doctest.h>

#include <sys/stat.h>

#include "helpers.hpp"

#if defined(__linux__) && (!defined(CODEEXEC_HAS_SANDBOX) || CODEEXEC_HAS_SANDBOX)

using namespace codeexec;
using support::enforced;
using support::has_everything;
using support::options_for;
using support::output_of;
using support::report_elsewhere;
using support::report_of;
using support::run_in;
using support::TempDir;

namespace {

// Where this machine has them; else says so.
bool has_mounts() {
  if (!has_everything("mounts of a command's own")) return false;
  if (::system("unshare -m true 2> /dev/null || unshare -Um true 2> /dev/null") == 0) return true;
  MESSAGE("SKIPPED: no mount namespaces here");
  return false;
}

// A directory with a repository in it, and a policy that lets commands write there.
struct Repository {
  Repository() {
    directory.directory("ws/.git/hooks");
    directory.file("ws/.git/config", "[core]\n");
    directory.file("ws/.git/index", "x");
    directory.file("ws/.git/hooks/pre-push", "#!/bin/sh\n");
    directory.file("outside", "x");
    options = options_for(SandboxMode::strict, directory / "ws");
    options.protected_paths = {".git/hooks", ".git/config"};
  }
  std::string run(const std::string& script) const {
    return output_of(run_in(options, script, directory / "ws"));
  }

  TempDir directory = {};
  SandboxOptions options = {};
};

std::string refusal_of(const SandboxOptions& options) {
  const auto sandbox = Sandbox::create(options);
  return sandbox ? "" : sandbox.error().message;
}

}  // namespace

TEST_CASE("sandbox: modes and times of files outside stay, with mounts of one's own") {
  if (!has_mounts()) return;
  const Repository place;
  const std::string script =
      "chmod 600 ../outside 2> /dev/null && echo mode; "
      "touch -d 2001-01-01 ../outside 2> /dev/null && echo time; "
      "touch -d 2001-01-01 own && chmod 700 own && echo own";
  SandboxOptions options = place.options;
  options.protected_paths.clear();
  const std::string work_dir = place.directory / "ws";
  CHECK(output_of(run_in(options, script, work_dir)) == "mode\ntime\nown\n");
  CHECK_FALSE(support::contains(report_of(options).enforced, "metadata"));
  for (const bool table : {false, true}) {
    options.pid_namespace = table;
    options.protected_paths.assign(table ? 0 : 1, "x");
    CHECK(support::contains(report_of(options).enforced, "metadata"));
    CHECK(output_of(run_in(options, script, work_dir)) == "own\n");
  }
  // A directory that was opened before, which is how the executor hands it over, leads out of these
  // mounts by `..`; so it must be entered by its path.
  auto sandbox = Sandbox::create(options);
  REQUIRE(sandbox);
  ProcessOptions process;
  process.argv = {"/bin/sh", "-c", script};
  process.environment = {"PATH=/usr/bin:/bin"};
  process.work_dir = work_dir;
  const int opened = ::open(work_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  process.work_dir_fd = opened;
  process.sandbox = *sandbox;
  CHECK(output_of(run_process(process)) == "own\n");
  ::close(opened);
}

TEST_CASE("sandbox: protected paths can neither be changed nor replaced") {
  if (!has_mounts()) return;
  const Repository place;
  CHECK(support::contains(report_of(place.options).enforced, "protected_paths"));
  const std::string said = place.run(
      "try() { \"$@\" 2> /dev/null && echo \"$*\"; };"
      "try touch .git/hooks/new; try rm .git/hooks/pre-push; try chmod 777 .git/hooks/pre-push;"
      "try mv .git/hooks old; try rm -rf .git/hooks; try mv .git old; try rmdir .git;"
      "try sh -c 'echo x >> .git/config'; try mv .git/index .git/config; try rm .git/config;"
      "try ln -sfn /tmp .git/hooks; try ln .git/config hard; try sed -i s/c/d/ .git/config;"
      "try sh -c 'echo x > .git/index'; try mv .git/index .git/index2; try mkdir -p n/.git/hooks;"
      "cat .git/config .git/hooks/pre-push");
  CHECK(said ==
        "sh -c echo x > .git/index\nmv .git/index .git/index2\nmkdir -p n/.git/hooks\n"
        "[core]\n#!/bin/sh\n");
}

TEST_CASE("sandbox: protected paths that are missing are not made, and links are not followed") {
  if (!has_mounts()) return;
  Repository place;
  CHECK(place.run("mkdir new") == "");
  place.options.protected_paths = {"new/a", "absent/b", "link", "in/link/x"};
  place.directory.directory("ws/in");
  const std::string outside = place.directory / "outside";
  REQUIRE(::symlink(outside.c_str(), (place.directory / "ws/link").c_str()) == 0);
  REQUIRE(::symlink("../new", (place.directory / "ws/in/link").c_str()) == 0);
  CHECK(place.run("touch new/a; mkdir absent; rm link; touch link; ls; touch new/x") ==
        "absent\nin\nlink\nnew\n");
  // What the next command finds there is protected.
  CHECK(place.run("rm -f new/a 2> /dev/null || echo kept") == "kept\n");
}

TEST_CASE("sandbox: writable directories within each other, and one that is a file") {
  if (!has_mounts()) return;
  Repository place;
  const std::string top = place.directory.path();
  place.options.writable = {place.directory / "ws/n/deep", top + "/ws", top + "/outside"};
  place.directory.directory("ws/n/deep/.git/hooks");
  // Moved with what it lies in, it takes what is mounted on it along.
  CHECK(place.run("echo y > ../outside; cat ../outside; touch n/deep/x n/y; mv n m; ls m;"
                  "touch m/deep/.git/hooks/x 2> /dev/null || echo kept") == "y\ndeep\ny\nkept\n");
}

TEST_CASE("sandbox: a writable directory that has gone, or gave way to another") {
  if (!has_mounts()) return;
  Repository place;
  place.options.writable.push_back(place.directory.directory("gone"));
  place.options.writable.push_back(place.directory.directory("other"));
  auto sandbox = Sandbox::create(place.options);
  REQUIRE(sandbox);
  REQUIRE(::rmdir((place.directory / "gone").c_str()) == 0);
  REQUIRE(::rename((place.directory / "other").c_str(), (place.directory / "old").c_str()) == 0);
  place.directory.directory("other");
  CHECK(output_of(run_in(*sandbox,
                         "touch here && ls here; chmod 700 ../other 2> /dev/null || echo no",
                         place.directory / "ws")) == "here\nno\n");
}

TEST_CASE("sandbox: /dev/shm stays writable among mounts of one's own") {
  if (!has_mounts() || !support::exists("/dev/shm")) return;
  Repository place;
  place.options.shared_memory = true;
  CHECK(place.run("f=/dev/shm/codeexec-test-$$; touch $f && rm $f && echo made") == "made\n");
}

TEST_CASE("sandbox: numbers of the kernel that only root may read") {
  if (!has_mounts() || !support::is_root("reading /proc/slabinfo")) return;
  SandboxOptions options = options_for(SandboxMode::strict);
  const std::string count = "cat /proc/slabinfo /proc/timer_list 2> /dev/null | wc -l";
  CHECK(output_of(run_in(options, count)) != "0\n");
  options.pid_namespace = true;
  CHECK(output_of(run_in(options, count)) == "0\n");
}

TEST_CASE("sandbox: as an ordinary user, too") {
  if (!has_mounts() || !support::is_root("becoming another user")) return;
  if (::system("setpriv --reuid=12345 --regid=12345 --clear-groups unshare -Um true") != 0) {
    MESSAGE("SKIPPED: an ordinary user has no namespaces here");
    return;
  }
  CHECK(support::has(enforced(report_elsewhere("strict uid=12345 protect=.git/hooks")),
                     " metadata protected_paths "));
}

TEST_CASE("sandbox: what is no path to be protected") {
  for (const SandboxMode mode : {SandboxMode::best_effort, SandboxMode::off}) {
    SandboxOptions options = options_for(mode);
    for (const std::string path :
         {"", "/", "/etc", "a//b", "a/", ".", "a/.", "./a", "..", "a/../b"}) {
      CAPTURE(path);
      options.protected_paths = {path};
      CHECK(support::has(refusal_of(options), "is no plain relative path"));
    }
    options.protected_paths = {std::string("a\0b", 3)};
    CHECK(support::begins(refusal_of(options), "protected_paths: 'a\\x00b' is no plain"));
    options.protected_paths.assign(65, "a");
    CHECK(support::has(refusal_of(options), "one of more than 64"));
  }
}

#else

TEST_CASE("sandbox: mounts") { MESSAGE("SKIPPED: there is no sandbox in this build"); }

#endif
