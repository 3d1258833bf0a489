// What create() accepts and reports, and the files that a command may reach.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <grp.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif
#include <sys/wait.h>

#include <algorithm>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::ErrorCode;
using codeexec::Network;
using codeexec::Sandbox;
using codeexec::SandboxMode;
using codeexec::SandboxOptions;
using codeexec::SandboxReport;
using support::contains;
using support::options_for;
using support::report_of;
using support::TempDir;

#if defined(__linux__) && (!defined(CODEEXEC_HAS_SANDBOX) || CODEEXEC_HAS_SANDBOX)

using support::has_everything;
using support::is_missing;
using support::is_root;
using support::output_of;
using support::report_elsewhere;
using support::run_in;

#endif

namespace {

// "invalid_argument: text", or "" when it can be had.
std::string creation_error(const SandboxOptions& options) {
  auto sandbox = Sandbox::create(options);
  return sandbox ? "" : std::string(name(sandbox.error().code)) + ": " + sandbox.error().message;
}

}  // namespace

TEST_CASE("sandbox: names of the modes and networks") {
  CHECK(name(SandboxMode::off) == std::string("off"));
  CHECK(name(SandboxMode::best_effort) == std::string("best_effort"));
  CHECK(name(SandboxMode::strict) == std::string("strict"));
  CHECK(name(Network::host) == std::string("host"));
  CHECK(name(Network::none) == std::string("none"));
  CHECK(name(Network::loopback) == std::string("loopback"));
}

TEST_CASE("sandbox: without one there is an empty report and nothing to check") {
  const Sandbox sandbox;
  CHECK(sandbox.report().mode == SandboxMode::off);
  CHECK(sandbox.report().enforced.empty());
  CHECK(sandbox.report().missing.empty());
  CHECK(sandbox.check_grants().has_value());

  SandboxOptions ignored;
  ignored.writable = {"/", "relative"};
  const SandboxReport off = report_of(ignored);
  CHECK(off.mode == SandboxMode::off);
  CHECK(off.enforced.empty());
  CHECK(off.missing.empty());
}

TEST_CASE("sandbox: mistakes are errors in every mode") {
  for (const SandboxMode mode : {SandboxMode::best_effort, SandboxMode::strict}) {
    CAPTURE(name(mode));
    const auto error = [&](const std::string& writable) {
      return creation_error(options_for(mode, writable));
    };
    CHECK(error("relative") == "invalid_argument: grants: 'relative' is not an absolute path");
    CHECK(error(std::string("/tmp\0x", 6)) ==
          "invalid_argument: grants: '/tmp\\x00x' has a NUL byte");
    SandboxOptions options = options_for(mode);
    options.readable = {""};
    CHECK(creation_error(options) == "invalid_argument: grants: '' is not an absolute path");
    options = options_for(mode);
    options.limits.open_files = 3;
    CHECK(support::begins(creation_error(options), "invalid_argument: limits: open_files"));
    options = options_for(mode);
    options.limits.memory = ~std::uint64_t{0};
    CHECK(support::begins(creation_error(options), "invalid_argument: limits: memory"));
  }
}

#if defined(__linux__) && (!defined(CODEEXEC_HAS_SANDBOX) || CODEEXEC_HAS_SANDBOX)

// The rest is about the kernel, which a build without the sandbox does not ask.

namespace {

constexpr unsigned ordinary_user = 12345;

// How many children a command can make within a limit of 20 processes, while as many of the user's
// run outside.
std::string children_within_20(const Sandbox& sandbox) {
  std::vector<pid_t> outside;
  for (int i = 0; i < 20; ++i) {
    const pid_t child = ::fork();
    if (child == 0)
      for (;;) ::pause();
    outside.push_back(child);
  }
  const std::string made = output_of(
      run_in(sandbox,
             "ulimit -u 20 2> /dev/null || ulimit -p 20; exec perl -e 'my @made; while (@made < "
             "30) { my $child = fork; last unless defined $child; if (!$child) { sleep 60; exit } "
             "push @made, $child } kill 9, @made; print scalar @made'"));
  for (const pid_t child : outside) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  return made;
}

}  // namespace

// Prints a report for the cases below, which start it with other rights or on an emulated kernel.
// CODEEXEC_TEST_SANDBOX: mode, network, and uid=N, rw=PATH, ro=PATH, pid_namespace, protect=PATH,
// processes=N, memory=N, tmp=PATH, hide=PATH, children.
TEST_CASE("sandbox: (helper) prints a report" * doctest::skip()) {
  const char* words = std::getenv("CODEEXEC_TEST_SANDBOX");
  REQUIRE(words);
  SandboxOptions options = options_for(SandboxMode::best_effort);
  std::string rest = words;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    const std::string word = rest.substr(0, end);
    rest.erase(0, end + 1);
    const std::string value = word.substr(std::min(word.find('=') + 1, word.size()));
    if (word == "strict") options.mode = SandboxMode::strict;
    if (word == "none") options.network = Network::none;
    if (word == "loopback") options.network = Network::loopback;
    if (word == "unix_sockets") options.unix_sockets = true;
    if (word == "pid_namespace") options.pid_namespace = true;
    if (support::begins(word, "protect=")) options.protected_paths.push_back(value);
    if (support::begins(word, "tmp=")) options.tmp = value;
    if (support::begins(word, "hide=")) options.hidden_paths.push_back(value);
    if (support::begins(word, "rw=")) options.writable.push_back(value);
    if (support::begins(word, "ro=")) options.readable.push_back(value);
    if (support::begins(word, "processes="))
      options.limits.processes = std::strtoull(value.c_str(), nullptr, 10);
    if (support::begins(word, "memory="))
      options.limits.memory = std::strtoull(value.c_str(), nullptr, 10);
    if (support::begins(word, "uid=")) {
      const auto id = static_cast<uid_t>(std::strtoul(value.c_str(), nullptr, 10));
      REQUIRE(::setgroups(0, nullptr) == 0);
      REQUIRE(::setresgid(id, id, id) == 0);
      REQUIRE(::setresuid(id, id, id) == 0);
      // Who changes its user does not own its own /proc any more, until it executes a program.
      REQUIRE(::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0);
    }
  }
  auto sandbox = Sandbox::create(options);
  if (!sandbox) {
    std::printf("@error %s: %s\n", name(sandbox.error().code), sandbox.error().message.c_str());
    return;
  }
  const SandboxReport& report = sandbox->report();
  std::printf("@network %s\n@abi %d\n", name(report.network), report.landlock_abi);
  for (const std::string& entry : report.enforced) std::printf("@enforced %s\n", entry.c_str());
  for (const std::string& entry : report.missing) std::printf("@missing %s\n", entry.c_str());
  for (const std::string& place : report.places) std::printf("@place %s\n", place.c_str());
  if (support::has(words, " children"))
    std::printf("@children %s\n", children_within_20(*sandbox).c_str());
  std::fflush(stdout);
}

TEST_CASE("sandbox: nobody may write to the system") {
  for (const SandboxMode mode : {SandboxMode::best_effort, SandboxMode::strict}) {
    for (const std::string path :
         {"/", "//", "/usr/..", "/usr", "/usr/bin", "/etc", "/bin", "/var", "/var/lib", "/proc",
          "/proc/1", "/sys", "/dev", "/dev/null", "/dev/shm", "/run"}) {
      if (!support::exists(path)) continue;
      CAPTURE(path);
      CHECK(support::begins(creation_error(options_for(mode, path)), "invalid_argument: grants: "));
    }
    SandboxOptions options = options_for(mode);
    options.readable = {"/"};
    CHECK(support::begins(creation_error(options),
                          "invalid_argument: grants: '/' is the whole system"));
  }
}

TEST_CASE("sandbox: a grant that does not exist") {
  const TempDir directory;
  const std::string path = directory / "none";
  const std::string reason = "grants: '" + path + "': No such file or directory";
  CHECK(creation_error(options_for(SandboxMode::strict, path)) == "not_found: " + reason);
  const SandboxReport report = report_of(options_for(SandboxMode::best_effort, path));
  CHECK(contains(report.missing, reason));
}

TEST_CASE("sandbox: a link that a command could have planted leads nowhere") {
  if (!has_everything("a link in a grant")) return;
  const TempDir directory;
  const std::string secret = directory.file("outside/secret", "secret\n");
  directory.directory("work");
  support::make_symlink(directory / "outside", directory / "work/g");
  for (const std::string& tail : {std::string(), std::string("/secret"), std::string("/.")}) {
    const std::string path = directory / "work/g" + tail;
    CAPTURE(path);
    const std::string reason = "grants: '" + path + "' leads through the symbolic link '" +
                               (directory / "work/g") + "'; name the real directory";
    if (::geteuid() == 0 || ::access((directory / "work").c_str(), W_OK) == 0)
      CHECK(creation_error(options_for(SandboxMode::strict, path)) ==
            "permission_denied: " + reason);
    const SandboxOptions options = options_for(SandboxMode::best_effort, path);
    CHECK(contains(report_of(options).missing, reason));
    CHECK(output_of(run_in(options, "cat " + secret)) == "exit 1");
  }
  SandboxOptions options = options_for(SandboxMode::best_effort);
  options.readable = {directory / "work/g"};
  CHECK(output_of(run_in(options, "cat " + secret)) == "exit 1");
}

TEST_CASE("sandbox: a link that only root could have made is followed") {
  if (!is_root("making a link for another user")) return;
  const TempDir directory;
  REQUIRE(::chmod(directory.path().c_str(), 0755) == 0);
  directory.directory("real");
  support::make_symlink("real", directory / "link");
  REQUIRE(::chown((directory / "real").c_str(), ordinary_user, ordinary_user) == 0);
  const auto lines = report_elsewhere("uid=12345 rw=" + directory / "link");
  CHECK(!lines.empty());
  CHECK_FALSE(is_missing(lines, "grants"));
  // The same link in a directory of the user's own.
  REQUIRE(::chown(directory.path().c_str(), ordinary_user, ordinary_user) == 0);
  CHECK(is_missing(report_elsewhere("uid=12345 rw=" + directory / "link"), "grants"));
}

TEST_CASE("sandbox: what is readable only must not lie in what is writable") {
  const TempDir directory;
  directory.directory("work/kept");
  SandboxOptions options = options_for(SandboxMode::best_effort, directory / "work");
  options.readable = {directory / "work/kept"};
  const std::string reason =
      "read_only: '" + directory / "work/kept" + "' lies in a writable directory";
  CHECK(contains(report_of(options).missing, reason));
  options.mode = SandboxMode::strict;
  CHECK(support::has(creation_error(options), reason));
}

TEST_CASE("sandbox: a command writes and reads where it was granted, and nowhere else") {
  if (!has_everything("confinement")) return;
  const TempDir directory;
  directory.directory("work");
  directory.file("read/text", "granted\n");
  directory.file("single", "one file\n");
  directory.file("outside/text", "outside\n");
  SandboxOptions options = options_for(SandboxMode::strict, directory / "work");
  options.readable = {directory / "read", directory / "single"};
  auto sandbox = Sandbox::create(options);
  REQUIRE_MESSAGE(sandbox, sandbox.error().message);
  const auto run = [&](const std::string& script) {
    return output_of(run_in(*sandbox, script, directory.path()));
  };
  CHECK(
      run("echo new > work/file && mkdir work/d && mv work/file work/d/file && cat work/d/file") ==
      "new\n");
  CHECK(run("cat read/text single") == "granted\none file\n");
  CHECK(run("echo x > read/text") != "");
  CHECK(run("echo x > single") != "");
  CHECK(run("cat outside/text") == "exit 1");
  CHECK(run("ls outside") == "exit 2");
  CHECK(run("echo x > outside/text") != "");
  CHECK(run("echo x > outside/new") != "");
  CHECK(run("rm -f outside/text") == "exit 1");
  CHECK(run("mv outside/text work/") == "exit 1");
  CHECK(run("ln outside/text work/text") == "exit 1");
  CHECK(run("ln -s ../outside/text work/link && cat work/link") == "exit 1");
  CHECK(run("mknod work/disk b 1 0") == "exit 1");
  CHECK(run("truncate -s 0 outside/text") == "exit 1");
  CHECK(support::read_file(directory / "outside/text") == "outside\n");
  CHECK(support::read_file(directory / "read/text") == "granted\n");
  CHECK(support::read_file(directory / "single") == "one file\n");
  CHECK_FALSE(support::exists(directory / "outside/new"));
}

TEST_CASE("sandbox: a single file can be writable") {
  if (!has_everything("confinement")) return;
  const TempDir directory;
  directory.file("log", "");
  const SandboxOptions options = options_for(SandboxMode::strict, directory / "log");
  CHECK(output_of(run_in(options, "echo x >> log && cat log", directory.path())) == "x\n");
  CHECK(output_of(run_in(options, "echo x > log2", directory.path())) != "");
  CHECK_FALSE(support::exists(directory / "log2"));
}

TEST_CASE("sandbox: check_grants() sees that a path leads elsewhere") {
  const TempDir directory;
  directory.directory("work");
  auto sandbox = Sandbox::create(options_for(SandboxMode::best_effort, directory / "work"));
  REQUIRE(sandbox);
  CHECK(sandbox->check_grants().has_value());
  REQUIRE(::rename((directory / "work").c_str(), (directory / "moved").c_str()) == 0);
  auto checked = sandbox->check_grants();
  CHECK(checked.error().code == ErrorCode::not_found);
  CHECK(support::begins(checked.error().message, "grants: '" + directory / "work" + "': "));
  support::make_symlink("moved", directory / "work");
  checked = sandbox->check_grants();
  CHECK(checked.error().code == ErrorCode::permission_denied);
  CHECK(support::begins(checked.error().message, "grants: '" + directory / "work" + "' is no"));
  REQUIRE(::unlink((directory / "work").c_str()) == 0);
  directory.directory("work");
  CHECK_FALSE(sandbox->check_grants().has_value());
}

TEST_CASE("sandbox: a run after the grant was swapped writes to the old directory or nowhere") {
  if (!has_everything("confinement")) return;
  const TempDir directory;
  directory.directory("work/g");
  directory.file("outside/text", "outside\n");
  auto sandbox = Sandbox::create(options_for(SandboxMode::strict, directory / "work/g"));
  REQUIRE_MESSAGE(sandbox, sandbox.error().message);
  REQUIRE(::rename((directory / "work/g").c_str(), (directory / "work/old").c_str()) == 0);
  support::make_symlink(directory / "outside", directory / "work/g");
  run_in(*sandbox, "echo x > work/g/text; echo x > work/old/text", directory.path());
  CHECK(support::read_file(directory / "outside/text") == "outside\n");
  CHECK(support::read_file(directory / "work/old/text") == "x\n");
}

#endif
