// Tests of the sandbox section: what create() accepts, what it reports, and what commands then can
// and cannot do.
#include "codeexec.hpp"

#include <doctest/doctest.h>
#include <grp.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#if defined(__linux__)
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include <algorithm>

#include "support.hpp"

namespace {

using codeexec::ErrorCode;
using codeexec::Network;
using codeexec::Outcome;
using codeexec::ProcessOptions;
using codeexec::ProcessResult;
using codeexec::Sandbox;
using codeexec::SandboxMode;
using codeexec::SandboxOptions;
using codeexec::SandboxReport;
using support::TempDir;

SandboxOptions options_for(SandboxMode mode, const std::string& writable = {}) {
  SandboxOptions options;
  options.mode = mode;
  if (!writable.empty()) options.writable = {writable};
  const char* path = std::getenv("PATH");
  options.search_path = path ? path : "";
  return options;
}

// "invalid_argument: text", or "" when it can be had.
std::string creation_error(const SandboxOptions& options) {
  auto sandbox = Sandbox::create(options);
  return sandbox ? "" : std::string(name(sandbox.error().code)) + ": " + sandbox.error().message;
}

SandboxReport report_of(const SandboxOptions& options) {
  auto sandbox = Sandbox::create(options);
  REQUIRE_MESSAGE(sandbox, sandbox.error().message);
  return sandbox->report();
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

// The rest is about the kernel, which a build without the sandbox does not ask.
#if defined(__linux__) && (!defined(CODEEXEC_HAS_SANDBOX) || CODEEXEC_HAS_SANDBOX)

namespace {

constexpr unsigned ordinary_user = 12345;

bool lists(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

// The entry of `missing` for a feature, or "".
std::string missing(const SandboxReport& report, const std::string& feature) {
  for (const std::string& entry : report.missing)
    if (support::begins(entry, feature + ": ")) return entry;
  return "";
}

// Whether this kernel has all that a whole sandbox needs, asked without the library; says so when
// not. Where it has, a feature that the library misses is a failure of the test.
bool has_everything(const std::string& what) {
  constexpr long number_of_landlock_create_ruleset = 444;
  constexpr int version = 1;
  constexpr long abi_with_everything = 6;
  static const bool landlock =
      ::syscall(number_of_landlock_create_ruleset, nullptr, 0, version) >= abi_with_everything;
  static const bool filters = ::prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0;
  if (landlock && filters) return true;
  MESSAGE("SKIPPED: ", what, " needs a kernel with Landlock ABI 6 and seccomp");
  return false;
}

ProcessResult run_in(const Sandbox& sandbox, const std::string& script,
                     const std::string& work_dir = "/") {
  ProcessOptions options;
  options.argv = {"/bin/sh", "-c", script};
  const char* path = std::getenv("PATH");
  options.environment = {std::string("PATH=") + (path ? path : "/usr/bin:/bin"), "LC_ALL=C"};
  options.work_dir = work_dir;
  options.sandbox = sandbox;
  options.timeout = std::chrono::seconds(60);
  return codeexec::run_process(options);
}

ProcessResult run_in(const SandboxOptions& options, const std::string& script,
                     const std::string& work_dir = "/") {
  auto sandbox = Sandbox::create(options);
  REQUIRE_MESSAGE(sandbox, sandbox.error().message);
  return run_in(*sandbox, script, work_dir);
}

// Standard output, and how it ended when that was not well.
std::string output_of(const ProcessResult& result) {
  if (result.outcome != Outcome::exited) return name(result.outcome) + (": " + result.message);
  return result.out + (result.exit_code == 0 ? "" : "exit " + std::to_string(result.exit_code));
}

std::string directories_named(const std::string& directory, const std::string& prefix) {
  std::string names;
  if (DIR* list = ::opendir(directory.c_str())) {
    while (const dirent* entry = ::readdir(list))
      if (support::begins(entry->d_name, prefix)) names += std::string(entry->d_name) + " ";
    ::closedir(list);
  }
  return names;
}

}  // namespace

// Prints a report for the cases below, which start it with other rights or on an emulated kernel.
// CODEEXEC_TEST_SANDBOX: mode, network, and uid=N, rw=PATH, ro=PATH, pid_namespace, processes=N.
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
    if (support::begins(word, "rw=")) options.writable.push_back(value);
    if (support::begins(word, "ro=")) options.readable.push_back(value);
    if (support::begins(word, "processes="))
      options.limits.processes = std::strtoull(value.c_str(), nullptr, 10);
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
  std::fflush(stdout);
}

namespace {

// Whether a namespace can be made here, by root or by anybody; asked of unshare(1).
bool can_unshare(const char* options) {
  const std::string words = std::string(options) + " true > /dev/null 2>&1";
  return ::system(("unshare " + words).c_str()) == 0 ||
         ::system(("unshare -U " + words).c_str()) == 0;
}

// The helper's lines without their `@`; `rules` are those of codeexec-test-deny, or empty.
std::vector<std::string> report_elsewhere(const std::string& words, const std::string& rules = {}) {
  ProcessOptions options;
  if (!rules.empty()) options.argv = {CODEEXEC_TEST_DENY, rules, "--"};
  const std::vector<std::string> helper = {support::real_path("/proc/self/exe"), "--no-skip",
                                           "--no-intro", "--test-case=sandbox: (helper)*"};
  options.argv.insert(options.argv.end(), helper.begin(), helper.end());
  for (char** variable = environ; *variable; ++variable) options.environment.push_back(*variable);
  options.environment.push_back("CODEEXEC_TEST_SANDBOX=" + words);
  options.timeout = std::chrono::seconds(120);
  const ProcessResult result = codeexec::run_process(options);
  CHECK_MESSAGE(result.succeeded(), result.out, result.err);
  std::vector<std::string> lines;
  for (const std::string& line : support::lines_of(result.out))
    if (support::begins(line, "@")) lines.push_back(line.substr(1));
  return lines;
}

// The names after "enforced ", each followed by a blank.
std::string enforced(const std::vector<std::string>& lines) {
  std::string names;
  for (const std::string& line : lines)
    if (support::begins(line, "enforced ")) names += line.substr(9) + " ";
  return names;
}

bool is_missing(const std::vector<std::string>& lines, const std::string& feature) {
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return support::begins(line, "missing " + feature + ": ");
  });
}

bool is_root(const std::string& what) {
  if (::geteuid() == 0) return true;
  MESSAGE("SKIPPED: ", what, " needs root");
  return false;
}

}  // namespace

// grants ------------------------------------------------------------------------------------------

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
  CHECK(lists(report.missing, reason));
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
    CHECK(lists(report_of(options).missing, reason));
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
  CHECK(lists(report_of(options).missing, reason));
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

// the system and its tools ------------------------------------------------------------------------

TEST_CASE("sandbox: the system's programs and settings are readable, its secrets are not") {
  if (!has_everything("confinement")) return;
  const SandboxOptions options = options_for(SandboxMode::strict);
  CHECK(output_of(run_in(options,
                         "cat /etc/passwd > /dev/null && ls /etc > /dev/null && "
                         "cat /proc/self/status > /dev/null && echo well")) == "well\n");
  for (const std::string path :
       {"/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssl/private", "/etc/machine-id"}) {
    if (!support::exists(path)) continue;
    CAPTURE(path);
    CHECK(output_of(run_in(options, "cat " + path + " || ls " + path)) != "");
    CHECK(run_in(options, "cat " + path).out == "");
  }
  // Nor what its owner keeps from others, whatever its name.
  CHECK(output_of(run_in(options,
                         "for f in $(find /etc -type f ! -perm -o+r); do "
                         "head -c 1 $f && echo $f; done 2>/dev/null; true")) == "");
}

TEST_CASE("sandbox: the prefix of a directory of PATH is readable, but for its secrets") {
  if (!has_everything("confinement")) return;
  const TempDir directory;
  directory.file("tool/bin/hello", "#!/bin/sh\ncat \"${0%/bin/*}/lib/text\"\n", 0755);
  directory.file("tool/lib/text", "hello\n");
  directory.file("tool/credentials.toml", "token\n");
  directory.file("tool/settings", "token\n", 0600);
  directory.file("other/bin/deep/program", "#!/bin/sh\necho linked\n", 0755);
  directory.file("other/bin/deep/text", "text\n");
  support::make_symlink(directory / "other/bin/deep/program", directory / "tool/bin/linked");
  support::make_symlink(directory / "other", directory / "tool/elsewhere");
  SandboxOptions options = options_for(SandboxMode::strict);
  options.search_path += ":" + directory / "tool/bin" + "::relative:/none";
  const auto run = [&](const std::string& script) {
    return output_of(run_in(options, script, directory.path()));
  };
  CHECK(run("tool/bin/hello") == "hello\n");
  CHECK(run("tool/bin/linked") == "linked\n");
  CHECK(run("cat tool/credentials.toml") == "exit 1");
  CHECK(run("cat tool/settings") == "exit 1");
  CHECK(run("cat other/bin/deep/text") == "exit 1");
  CHECK(run("echo x > tool/lib/text") != "");
}

TEST_CASE("sandbox: a home directory is no prefix of tools") {
  if (!has_everything("confinement")) return;
  const TempDir directory;
  const support::EnvironmentGuard home("HOME", directory.path().c_str());
  directory.file("bin/hello", "#!/bin/sh\necho hello\n", 0755);
  directory.file(".local/bin/hi", "#!/bin/sh\necho hi\n", 0755);
  directory.file(".local/lib/text", "text\n");
  directory.file(".local/share/keyrings/secret", "secret\n");
  directory.file("notes", "secret\n");
  SandboxOptions options = options_for(SandboxMode::strict);
  options.search_path += ":" + directory / "bin" + ":" + directory / ".local/bin";
  const auto run = [&](const std::string& script) {
    return output_of(run_in(options, script, directory.path()));
  };
  CHECK(run("bin/hello; .local/bin/hi; cat .local/lib/text") == "hello\nhi\ntext\n");
  CHECK(run("cat notes") == "exit 1");
  CHECK(run("cat .local/share/keyrings/secret") == "exit 1");
}

TEST_CASE("sandbox: PATH grants neither a home directory nor a part of the system") {
  if (!has_everything("confinement")) return;
  const TempDir directory;
  const support::EnvironmentGuard home("HOME", (directory / "home").c_str());
  directory.file("home/text", "secret\n");
  directory.file("user/.ssh/key", "secret\n");
  SandboxOptions options = options_for(SandboxMode::strict);
  options.search_path +=
      ":/:/etc:/tmp/..:" + directory.path() + ":" + directory / "home" + ":" + directory / "user";
  for (const char* path : {"home/text", "user/.ssh/key"})
    CHECK(output_of(run_in(options, std::string("cat ") + path, directory.path())) == "exit 1");
  CHECK(run_in(options, "ls /; cat /etc/shadow").out == "");
}

TEST_CASE("sandbox: a directory of PATH in a writable grant gets nothing beside") {
  if (!has_everything("confinement")) return;
  const TempDir directory;
  directory.directory("work");
  directory.file("outside/bin/text", "secret\n");
  support::make_symlink(directory / "outside/bin", directory / "work/bin");
  SandboxOptions options = options_for(SandboxMode::strict, directory / "work");
  options.search_path += ":" + directory / "work/bin";
  CHECK(output_of(run_in(options, "cat work/bin/text", directory.path())) == "exit 1");
}

TEST_CASE("sandbox: a link in a writable directory decides nothing of what PATH makes readable") {
  if (!has_everything("confinement")) return;
  const TempDir directory;
  const std::string hello = "#!/bin/sh\necho hello\n";
  directory.file("away/secret", "secret\n", 0755);
  directory.file("away/program", hello, 0755);
  directory.file("away/tool", hello, 0755);
  directory.file(".aws/tool", hello, 0755);
  directory.directory("work");
  directory.directory("tools");
  support::make_symlink(directory / "away/program", directory / "work/program");
  support::make_symlink(directory / "work/program", directory / "tools/planted");
  support::make_symlink(directory / "away/tool", directory / "tools/tool");
  support::make_symlink(directory / "away/secret", directory / "tools/data");
  support::make_symlink(directory / ".aws/tool", directory / "tools/hidden");
  support::make_symlink(directory / ".aws", directory / "work/bin");
  support::make_symlink(directory / "work", directory / "venv");
  SandboxOptions options = options_for(SandboxMode::strict, directory / "work");
  options.search_path += ":" + directory / "tools" + ":" + directory / "venv/bin";
  const auto run = [&](const std::string& script) {
    return output_of(run_in(options, script, directory.path()));
  };
  CHECK(run("tools/tool") == "hello\n");
  CHECK(run("cat away/program") == "exit 1");
  // Nor what another policy may have planted, when it is no program or lies among secrets.
  CHECK(run("cat away/secret") == "exit 1");
  CHECK(run("cat .aws/tool") == "exit 1");
}

TEST_CASE("sandbox: a linked directory of PATH must look like one of tools") {
  if (!has_everything("confinement")) return;
  const TempDir directory;
  directory.file("data/text", "secret\n");
  directory.file(".private/bin/text", "secret\n");
  directory.file(".sdkman/java/bin/hello", "#!/bin/sh\necho hello\n", 0755);
  support::make_symlink(directory / "data", directory / "one");
  support::make_symlink(directory / ".private", directory / "two");
  support::make_symlink(directory / ".sdkman/java", directory / "three");
  SandboxOptions options = options_for(SandboxMode::strict);
  if (!is_root("a link that cannot be trusted") && ::access(directory.path().c_str(), W_OK) != 0)
    return;
  options.search_path +=
      ":" + directory / "one" + ":" + directory / "two/bin" + ":" + directory / "three/bin";
  const auto run = [&](const std::string& script) {
    return output_of(run_in(options, script, directory.path()));
  };
  CHECK(run("three/bin/hello") == "hello\n");
  CHECK(run("cat data/text") == "exit 1");
  CHECK(run("cat .private/bin/text") == "exit 1");
}

TEST_CASE("sandbox: secrets in the prefix of a directory of PATH, whatever its mode is") {
  if (!has_everything("confinement")) return;
  const TempDir directory;
  for (const unsigned mode : {0755U, 0700U}) {
    const std::string tool = "tool" + std::to_string(mode);
    CAPTURE(tool);
    directory.file(tool + "/bin/hello", "#!/bin/sh\necho hello\n", 0755);
    directory.file(tool + "/bin/own", "#!/bin/sh\necho own\n", 0700);
    directory.file(tool + "/data/near/text", "text\n");
    directory.file(tool + "/lib/all/umask", "text\n", 0600);
    for (const char* name : {"/.pgpass", "/id_ecdsa", "/.env.local", "/a/server.key"})
      directory.file(tool + name, "secret\n");
    for (const char* name : {"/a/deep", "/a/b/deeper", "/.git/config", "/settings"})
      directory.file(tool + name, "secret\n", 0600);
    REQUIRE(::chmod((directory / tool).c_str(), mode) == 0);
    SandboxOptions options = options_for(SandboxMode::strict);
    options.search_path += ":" + directory / tool + "/bin";
    const auto run = [&](const std::string& script) {
      return output_of(run_in(options, script, directory / tool));
    };
    CHECK(run("bin/hello; bin/own; cat data/near/text lib/all/umask") ==
          "hello\nown\ntext\ntext\n");
    for (const char* name : {".pgpass", "id_ecdsa", ".env.local", "a/server.key", "a/deep",
                             "a/b/deeper", ".git/config", "settings"}) {
      CAPTURE(name);
      CHECK(run(std::string("cat ") + name) == "exit 1");
    }
  }
}

TEST_CASE("sandbox: a directory that everybody writes to is none of tools") {
  if (!has_everything("confinement")) return;
  const TempDir directory;
  for (const unsigned mode : {0757U, 01755U}) {
    const std::string place = "place" + std::to_string(mode);
    directory.file(place + "/text", "secret\n");
    REQUIRE(::chmod((directory / place).c_str(), mode) == 0);
    SandboxOptions options = options_for(SandboxMode::strict);
    options.search_path += ":" + directory / place;
    CHECK(output_of(run_in(options, "cat " + place + "/text", directory.path())) == "exit 1");
  }
}

TEST_CASE("sandbox: shared memory is writable when it was asked for") {
  if (!has_everything("confinement")) return;
  if (!support::exists("/dev/shm")) {
    MESSAGE("SKIPPED: there is no /dev/shm");
    return;
  }
  const std::string file = "/dev/shm/codeexec-test-" + std::to_string(::getpid());
  const std::string script = "echo x > " + file + " && cat " + file + "; rm -f " + file;
  SandboxOptions options = options_for(SandboxMode::strict);
  CHECK(run_in(options, script).out == "");
  options.shared_memory = true;
  CHECK(run_in(options, script).out == "x\n");
}

// processes and network ---------------------------------------------------------------------------

TEST_CASE("sandbox: a command has no privileges and reaches no process outside") {
  if (!has_everything("confinement")) return;
  const SandboxOptions options = options_for(SandboxMode::strict);
  const ProcessResult result =
      run_in(options,
             "grep -E '^(CapInh|CapPrm|CapEff|CapAmb):' /proc/self/status | sort -u -k2 | "
             "awk '{print $2}'; grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status");
  CHECK(result.out == "0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n");
  const std::string host = std::to_string(::getpid());
  CHECK(run_in(options, "kill -0 " + host).exit_code == 1);
  CHECK(run_in(options, "tr '\\0' '\\n' < /proc/" + host + "/environ").out == "");
}

TEST_CASE("sandbox: the networks") {
  if (!has_everything("the network")) return;
  const std::string bind =
      "python3 -c 'import socket; s=socket.socket(); s.bind((\"127.0.0.1\",0)); s.listen();"
      "c=socket.create_connection(s.getsockname()); print(\"connected\")' 2>/dev/null";
  if (::system("python3 -c 1 > /dev/null 2>&1") != 0) {
    MESSAGE("SKIPPED: there is no python3 to make sockets with");
    return;
  }
  SandboxOptions options = options_for(SandboxMode::strict);
  CHECK(run_in(options, bind).out == "connected\n");
  options.network = Network::none;
  CHECK(run_in(options, bind).out == "");
  CHECK(report_of(options).network == Network::none);

  options.network = Network::loopback;
  if (!can_unshare("-n")) {
    options.mode = SandboxMode::best_effort;
    CHECK(missing(report_of(options), "network") != "");
    MESSAGE("SKIPPED: no network namespaces here");
    return;
  }
  CHECK(run_in(options, bind).out == "connected\n");
  // A server of the host's is not there.
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  REQUIRE(::bind(server, generic, size) == 0);
  REQUIRE(::listen(server, 8) == 0);
  REQUIRE(::getsockname(server, generic, &size) == 0);
  const std::string connect =
      "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\"," +
      std::to_string(ntohs(address.sin_port)) + ")); print(\"reached\")' 2>/dev/null";
  CHECK(run_in(options, connect).out == "");
  options.network = Network::host;
  CHECK(run_in(options, connect).out == "reached\n");
  ::close(server);
}

TEST_CASE("sandbox: a process table of its own, with its own /proc") {
  if (!has_everything("confinement")) return;
  SandboxOptions options = options_for(SandboxMode::strict);
  options.pid_namespace = true;
  if (!can_unshare("-pmf --mount-proc")) {
    options.mode = SandboxMode::best_effort;
    CHECK(missing(report_of(options), "pid_namespace") != "");
    MESSAGE("SKIPPED: no process tables of their own here");
    return;
  }
  // The supervisor, the shell and one more at most.
  const ProcessResult result = run_in(
      options, "echo $$; cat /proc/self/comm; set -- /proc/[0-9]*; [ $# -le 4 ] && echo few");
  CHECK(output_of(result) == "2\ncat\nfew\n");
}

// other kernels and users -------------------------------------------------------------------------

TEST_CASE("sandbox: as root and as an ordinary user everything is enforced") {
  if (!has_everything("a full report")) return;
  const std::string all =
      "filesystem rename truncate devices signals abstract_sockets system_calls privileges network "
      "containment ";
  CHECK(enforced(report_elsewhere("strict none")) == all);
  if (!is_root("becoming another user")) return;
  CHECK(enforced(report_elsewhere("strict none uid=12345")) == all);
  if (::system("setpriv --reuid=12345 --regid=12345 --clear-groups unshare -Un true") != 0)
    MESSAGE("SKIPPED: an ordinary user has no namespaces here");
  else
    CHECK(enforced(report_elsewhere("strict uid=12345 loopback pid_namespace")) ==
          all + "pid_namespace ");
}

TEST_CASE("sandbox: older kernels: what each ABI of Landlock lacks is told") {
  if (!has_everything("emulating older kernels")) return;
  const auto lacking = [](int abi) {
    std::string names;
    for (const std::string& line : report_elsewhere("none", "landlock_abi=" + std::to_string(abi)))
      if (support::begins(line, "missing ")) names += line.substr(8, line.find(':') - 8) + " ";
    return names;
  };
  CHECK(lacking(1) == "rename devices signals ");
  CHECK(lacking(2) == "devices signals ");
  CHECK(lacking(4) == "devices signals ");
  CHECK(lacking(5) == "signals ");
  CHECK(lacking(6) == "");
  const auto newer = report_elsewhere("strict none", "landlock_abi=7");
  CHECK(std::find(newer.begin(), newer.end(), "abi 7") != newer.end());
}

namespace {

// Network namespaces alone.
const std::string no_network_namespaces = "clone&0x40000000=EPERM,clone3=ENOSYS";

}  // namespace

TEST_CASE("sandbox: without Landlock, a filter or namespaces: strict refuses, best effort tells") {
  if (!has_everything("emulating other kernels")) return;
  struct Case {
    std::string rules;
    std::string words;
    std::vector<std::string> missing;
    const char* network;
  };
  const std::vector<std::string> files = {"filesystem", "rename", "truncate", "devices", "signals"};
  const Case cases[] = {
      {"landlock_create_ruleset=ENOSYS", "none", files, "none"},
      {"landlock_create_ruleset=EOPNOTSUPP", "none", files, "none"},
      {"landlock_create_ruleset=EPERM", "none", files, "none"},
      {"landlock_add_rule=EINVAL", "none rw=/tmp", files, "none"},
      {"landlock_restrict_self=EPERM", "none", files, "none"},
      {"seccomp=EPERM", "none", {"system_calls", "network"}, "host"},
      {"seccomp=ENOSYS,landlock_create_ruleset=ENOSYS", "none", {"filesystem", "network"}, "host"},
      {"namespaces=EPERM", "loopback", {"network"}, "none"},
      {"namespaces=ENOSPC", "pid_namespace", {"pid_namespace"}, "host"},
      {"namespaces=EPERM,seccomp=EPERM", "loopback", {"network", "system_calls"}, "host"},
      {"mount=EPERM", "pid_namespace", {"pid_namespace"}, "host"},
      {"namespaces=EPERM", "loopback pid_namespace", {"network", "pid_namespace"}, "none"},
      {no_network_namespaces, "loopback pid_namespace", {"network"}, "none"},
      {"capset=EPERM", "none", {"privileges"}, "none"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.rules);
    const auto lines = report_elsewhere(one.words, one.rules);
    for (const std::string& feature : one.missing) {
      CAPTURE(feature);
      CHECK(is_missing(lines, feature));
      CHECK_FALSE(support::has(" " + enforced(lines), " " + feature + " "));
    }
    CHECK(std::find(lines.begin(), lines.end(), std::string("network ") + one.network) !=
          lines.end());
    const bool asked = support::has(one.words, "pid_namespace");
    CHECK(asked ==
          (support::has(enforced(lines), "pid_namespace ") || is_missing(lines, "pid_namespace")));
    if (one.rules == no_network_namespaces && is_root("a process table without user namespaces"))
      CHECK(support::has(enforced(lines), "pid_namespace "));
    const auto strict = report_elsewhere("strict " + one.words, one.rules);
    REQUIRE(strict.size() == 1);
    CHECK(support::begins(strict[0], "error "));
  }
}

// limits ------------------------------------------------------------------------------------------

TEST_CASE("sandbox: limits hold, with a sandbox and without") {
  const TempDir directory;
  for (const SandboxMode mode : {SandboxMode::off, SandboxMode::best_effort}) {
    CAPTURE(name(mode));
    SandboxOptions options = options_for(mode, directory.path());
    options.limits.cpu_time = 7;
    options.limits.address_space = std::uint64_t{1} << 34;
    options.limits.open_files = 40;
    options.limits.file_size = 1 << 20;
    auto sandbox = Sandbox::create(options);
    REQUIRE_MESSAGE(sandbox, sandbox.error().message);
    for (const char* limit : {"cpu_time", "address_space", "open_files", "file_size"})
      CHECK(lists(sandbox->report().enforced, limit));
    CHECK(output_of(run_in(*sandbox, "ulimit -t; ulimit -v; ulimit -n; ulimit -f")) ==
          "7\n16777216\n40\n2048\n");
  }
}

TEST_CASE("sandbox: a limit is never above what this program has") {
  SandboxOptions options;
  options.limits.open_files = 1u << 30;
  rlimit own = {};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &own) == 0);
  rlimit lower = own;
  lower.rlim_cur = 200;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &lower) == 0);
  const ProcessResult result = run_in(options, "ulimit -n");
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &own) == 0);
  CHECK(output_of(result) == "200\n");
}

TEST_CASE("sandbox: memory and processes of a whole run, in a cgroup") {
  SandboxOptions options = options_for(SandboxMode::best_effort);
  options.limits.memory = std::uint64_t{64} << 20;
  options.limits.processes = 12;
  auto sandbox = Sandbox::create(options);
  REQUIRE_MESSAGE(sandbox, sandbox.error().message);
  CHECK(lists(sandbox->report().enforced, "memory"));
  const std::string own = "cat /proc/self/cgroup";
  if (!support::has(run_in(*sandbox, own).out, "/codeexec-" + std::to_string(::getpid()) + "-")) {
    MESSAGE("SKIPPED: no cgroup can be made here");
    return;
  }
  CHECK(run_in(*sandbox, own).limits_reached.empty());
  // Two that share what each could have alone: the first holds it until the other has ended.
  const std::string half = "head -c 45000000 /dev/zero | tail -n 1 | wc -c";
  CHECK(run_in(*sandbox, half).limits_reached.empty());
  const ProcessResult both =
      run_in(*sandbox, "{ head -c 45000000 /dev/zero; " + half + "; } | tail -n 1 | wc -c");
  CHECK(lists(both.limits_reached, "memory"));
  const ProcessResult many =
      run_in(*sandbox, "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do sleep 60 & done");
  CHECK(lists(many.limits_reached, "processes"));
  const std::string leaf = "codeexec-" + std::to_string(::getpid()) + "-";
  for (const std::string& line : support::lines_of(support::read_file("/proc/self/cgroup"))) {
    const std::string group = line.substr(line.rfind(':') + 1);
    for (const char* hierarchy : {"", "/memory", "/pids"})
      CHECK(directories_named("/sys/fs/cgroup" + std::string(hierarchy) + group, leaf) == "");
  }
}

TEST_CASE("sandbox: leaves of programs that are dead are removed") {
  SandboxOptions options = options_for(SandboxMode::best_effort);
  options.limits.processes = 100;
  // A process number that is nobody's: larger than the kernel gives.
  const std::string leaf = "/sys/fs/cgroup/pids/codeexec-1999999999-0";
  const std::string groups = support::read_file("/proc/self/cgroup");
  if (!support::has(groups, ":pids:/\n") || ::mkdir(leaf.c_str(), 0755) != 0) {
    MESSAGE("SKIPPED: this process is not in the root of a hierarchy for pids");
    return;
  }
  report_of(options);
  const bool left = support::exists(leaf);
  ::rmdir(leaf.c_str());
  CHECK_FALSE(left);
}

TEST_CASE("sandbox: the limit of a disk needs a writable directory") {
  const TempDir directory;
  SandboxOptions options = options_for(SandboxMode::best_effort);
  options.limits.disk = 1 << 20;
  CHECK(missing(report_of(options), "disk") == "disk: no writable directory is granted");
  options.writable = {directory.path()};
  CHECK(lists(report_of(options).enforced, "disk"));
}

TEST_CASE("sandbox: the number of processes, for root and for others") {
  SandboxOptions options = options_for(SandboxMode::best_effort);
  options.limits.processes = 50;
  const SandboxReport report = report_of(options);
  CHECK(lists(report.enforced, "processes") == missing(report, "processes").empty());
  if (!is_root("becoming another user")) return;
  CHECK(support::has(enforced(report_elsewhere("processes=50 uid=12345")), " processes "));
  // As where there is no cgroup.
  const std::string no_cgroup = "mkdirat=EPERM,mkdir=EPERM";
#if defined(__x86_64__)
  CHECK(is_missing(report_elsewhere("processes=50", no_cgroup), "processes"));
  const auto strict = report_elsewhere("strict processes=50", no_cgroup);
  REQUIRE(strict.size() == 1);
  CHECK(support::begins(strict[0], "error unsupported: "));
#endif
}

TEST_CASE("sandbox: create() leaves no cgroup and no descriptor behind") {
  const int before = support::count_descriptors();
  for (int i = 0; i < 3; ++i) {
    SandboxOptions options = options_for(SandboxMode::best_effort, "/tmp");
    options.limits.memory = std::uint64_t{1} << 30;
    options.limits.processes = 100;
    options.limits.disk = 1 << 30;
    options.pid_namespace = i == 1;
    options.network = i == 2 ? Network::loopback : Network::none;
    auto sandbox = Sandbox::create(options);
    REQUIRE_MESSAGE(sandbox, sandbox.error().message);
    options.writable = {"/"};
    CHECK_FALSE(Sandbox::create(options).has_value());
  }
  CHECK(support::count_descriptors() == before);
  const std::string leaf = "codeexec-" + std::to_string(::getpid()) + "-";
  for (const char* hierarchy : {"/sys/fs/cgroup", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids"})
    CHECK(directories_named(hierarchy, leaf) == "");
}

TEST_CASE("sandbox: copies share one policy, and it outlives the first") {
  const TempDir directory;
  Sandbox copy;
  {
    auto sandbox = Sandbox::create(options_for(SandboxMode::best_effort, directory.path()));
    REQUIRE(sandbox);
    copy = *sandbox;
  }
  CHECK(copy.check_grants().has_value());
  CHECK(output_of(run_in(copy, "echo x > file && cat file", directory.path())) == "x\n");
}

#endif
