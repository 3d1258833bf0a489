// Limits, with a sandbox and without.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/utsname.h>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Network;
using codeexec::ProcessResult;
using codeexec::Sandbox;
using codeexec::SandboxMode;
using codeexec::SandboxOptions;
using codeexec::SandboxReport;
using support::contains;
using support::options_for;
using support::report_of;
using support::TempDir;

#if defined(__linux__) && (!defined(CODEEXEC_HAS_SANDBOX) || CODEEXEC_HAS_SANDBOX)

using support::enforced;
using support::is_missing;
using support::is_root;
using support::missing;
using support::output_of;
using support::report_elsewhere;
using support::run_in;

namespace {

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
      CHECK(contains(sandbox->report().enforced, limit));
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
  const std::string own = "cat /proc/self/cgroup";
  if (!support::has(run_in(*sandbox, own).out, "/codeexec-" + std::to_string(::getpid()) + "-")) {
    CHECK_FALSE(contains(sandbox->report().enforced, "memory"));
    MESSAGE("SKIPPED: no cgroup can be made here");
    return;
  }
  CHECK(contains(sandbox->report().enforced, "memory"));
  CHECK(contains(sandbox->report().enforced, "processes"));
  CHECK(run_in(*sandbox, own).limits_reached.empty());
  // Two that share what each could have alone: the first holds it until the other has ended.
  const std::string half = "head -c 45000000 /dev/zero | tail -n 1 | wc -c";
  CHECK(run_in(*sandbox, half).limits_reached.empty());
  const ProcessResult both =
      run_in(*sandbox, "{ head -c 45000000 /dev/zero; " + half + "; } | tail -n 1 | wc -c");
  CHECK(contains(both.limits_reached, "memory"));
  const ProcessResult many =
      run_in(*sandbox, "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do sleep 60 & done");
  CHECK(contains(many.limits_reached, "processes"));
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
  CHECK(contains(report_of(options).enforced, "disk"));
}

TEST_CASE("sandbox: a disk that fills up at once, by a file or by several, on any file system") {
  const TempDir first;
  const TempDir second(support::quiet_base());
  constexpr std::uint64_t limit = 4 << 20;
  for (const bool in_second : {false, true}) {
    SandboxOptions options = options_for(SandboxMode::best_effort, first.path());
    options.writable.push_back(second.path());
    options.limits.disk = limit;
    const TempDir& directory = in_second ? second : first;
    const ProcessResult one = run_in(options, "head -c 40000000 /dev/zero > big", directory.path());
    CHECK(contains(one.limits_reached, "disk"));
    struct stat status = {};
    REQUIRE(::stat((directory / "big").c_str(), &status) == 0);
    CHECK(static_cast<std::uint64_t>(status.st_size) <= limit);
    // Faster than anybody looks while it runs. Others may give back what they had of the other one.
    if (!in_second) continue;
    const ProcessResult several = run_in(
        options, "for i in 1 2 3 4 5 6; do head -c 4000000 /dev/zero > f$i; done", second.path());
    CHECK(several.limits_reached == std::vector<std::string>{"disk"});
    CHECK_FALSE(contains(run_in(options, "echo x > f1", second.path()).limits_reached, "disk"));
  }
  // The smaller one of two limits of a file is the one that was reached.
  SandboxOptions options = options_for(SandboxMode::best_effort, second.path());
  options.limits.disk = std::uint64_t{1} << 30;
  options.limits.file_size = limit;
  CHECK(run_in(options, "exec head -c 8000000 /dev/zero > f1", second.path()).limits_reached ==
        std::vector<std::string>{"file_size"});
}

TEST_CASE("sandbox: the number of processes, for root and for others") {
  SandboxOptions options = options_for(SandboxMode::best_effort);
  options.limits.processes = 50;
  const SandboxReport report = report_of(options);
  CHECK(contains(report.enforced, "processes") == missing(report, "processes").empty());
  if (!is_root("becoming another user")) return;
  const auto user = report_elsewhere("processes=50 memory=99999999 uid=12345");
  CHECK(support::has(enforced(user), " memory_per_process processes_per_user "));
  CHECK(is_missing(user, "processes"));
  CHECK(is_missing(user, "memory"));
  const auto refused = report_elsewhere("strict memory=99999999 uid=12345");
  REQUIRE(refused.size() == 1);
  CHECK(support::has(refused[0], "for lack of memory: no cgroup can be made here ("));
  CHECK(support::has(refused[0], "), so it holds for each process alone"));
  CHECK(support::has(refused[0], ", which only best_effort accepts; run this program by "));
  CHECK(support::has(refused[0], "systemd-run --user --scope -p Delegate=yes"));
  // As where there is no cgroup.
  const std::string no_cgroup = "mkdirat=EPERM,mkdir=EPERM";
#if defined(__x86_64__)
  const auto root = report_elsewhere("processes=50 memory=99999999", no_cgroup);
  CHECK(is_missing(root, "processes"));
  CHECK(support::has(enforced(root), " memory_per_process "));
  CHECK_FALSE(support::has(enforced(root), " processes_per_user "));
  const auto strict = report_elsewhere("strict processes=50", no_cgroup);
  REQUIRE(strict.size() == 1);
  CHECK(support::begins(strict[0], "error unsupported: "));
#endif
}

TEST_CASE("sandbox: the processes of all commands are bounded, and others are not counted") {
  if (!support::has_everything("a bound on processes")) return;
  const TempDir tmp;
  const std::string name = "processes_in_common";
  SandboxOptions options = options_for(SandboxMode::best_effort);
  CHECK_FALSE(contains(report_of(options).enforced, name));
  if (!is_root("becoming another user")) return;
  options.tmp = tmp.path();
  CHECK_MESSAGE(!contains(report_of(options).enforced, name), "the kernel counts none of root's");
  if (::system("setpriv --reuid=12345 --regid=12345 --clear-groups unshare -Um true") != 0) {
    MESSAGE("SKIPPED: an ordinary user has no namespaces here");
    return;
  }
  const std::string words = "strict uid=12345 tmp=" + tmp.path();
  CHECK_FALSE(
      support::has(enforced(report_elsewhere("uid=12345 processes=50 tmp=" + tmp.path())), name));
  const auto lines = report_elsewhere(words + " children");
  if (!support::has(enforced(lines), name)) {
    utsname kernel = {};
    REQUIRE(::uname(&kernel) == 0);
    int version[2] = {};
    REQUIRE(std::sscanf(kernel.release, "%d.%d", &version[0], &version[1]) == 2);
    CHECK_MESSAGE(version[0] * 100 + version[1] < 514, kernel.release);
    MESSAGE("SKIPPED: the kernel counts all processes of the user");
    return;
  }
  const auto line = std::find_if(lines.begin(), lines.end(), [](const std::string& text) {
    return support::begins(text, "children ");
  });
  REQUIRE(line != lines.end());
  const int children = std::atoi(line->c_str() + 9);
  CHECK(children >= 10);
  CHECK(children < 20);
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

#else

TEST_CASE("sandbox: limits") { MESSAGE("SKIPPED: there is no sandbox in this build"); }

#endif
