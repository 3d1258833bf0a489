// SandboxOptions::explain: the rules as lines, beside what commands can then do.
#include "helpers.hpp"

#include <unistd.h>

namespace {

using codeexec::Network;
using codeexec::Sandbox;
using codeexec::SandboxMode;
using codeexec::SandboxOptions;
using support::begins;
using support::has;
using support::TempDir;
using Strings = std::vector<std::string>;

}  // namespace

#if defined(__linux__) && (!defined(CODEEXEC_HAS_SANDBOX) || CODEEXEC_HAS_SANDBOX)

namespace {

// The rules of a name, without it.
Strings rules_of(const Sandbox& sandbox, const std::string& name) {
  Strings found;
  for (const std::string& rule : sandbox.report().rules)
    if (begins(rule, name + ": ")) found.push_back(rule.substr(name.size() + 2));
  return found;
}

// Whether a rule grants the right below a path: "read_file execute in /usr/share: doc man".
bool is_granted(const Strings& rules, const std::string& right, const std::string& path) {
  for (const std::string& rule : rules) {
    const std::size_t in = rule.find(" in /");
    const std::size_t colon = rule.find(":", in);
    if (in == std::string::npos || !has(" " + rule.substr(0, in) + " ", " " + right + " "))
      continue;
    std::string directory = rule.substr(in + 4, colon - in - 4);
    std::string names = rule.substr(colon + 2) + " ";
    for (std::size_t end; (end = names.find(' ')) != std::string::npos; names.erase(0, end + 1)) {
      const std::string granted = directory + names.substr(0, end);
      if (path == granted || begins(path, granted + "/")) return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("sandbox: without explain there are no rules to read, and nothing else differs") {
  const TempDir place;
  SandboxOptions options = support::options_for(SandboxMode::best_effort, place.path());
  const codeexec::SandboxReport plain = support::report_of(options);
  CHECK(plain.rules.empty());
  options.explain = true;
  const codeexec::SandboxReport explained = support::report_of(options);
  CHECK(explained.enforced == plain.enforced);
  CHECK(explained.missing == plain.missing);
  options.mode = SandboxMode::off;
  CHECK(support::report_of(options).rules.empty());
  // Rules of one name stand together.
  std::string last;
  Strings names;
  for (const std::string& rule : explained.rules) {
    const std::string name = rule.substr(0, rule.find(": "));
    if (name != last) names.push_back(name);
    last = name;
  }
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
}

TEST_CASE("sandbox: what the rules say of files is what the kernel does") {
  if (!support::has_everything("what is explained")) return;
  const TempDir place;
  const TempDir other;
  place.file("write/file", "x");
  place.file("read/file", "x");
  place.file("none/file", "x");
  SandboxOptions options = support::options_for(SandboxMode::strict, place / "write");
  options.readable = {place / "read"};
  options.explain = true;
  const auto sandbox = Sandbox::create(options);
  REQUIRE_MESSAGE(sandbox, sandbox.error().message);
  const Strings rules = rules_of(*sandbox, "filesystem");
  REQUIRE(rules.size() > 3);
  CHECK(begins(rules[0], "EACCES but for what follows: "));
  CHECK(is_granted(rules, "write_file", place / "write/file"));
  CHECK_FALSE(is_granted(rules, "write_file", place / "read/file"));
  CHECK(is_granted(rules, "read_file", place / "read/file"));
  CHECK_FALSE(is_granted(rules, "read_file", place / "none/file"));
  std::size_t readable = 0;
  for (const std::string& path :
       {place / "write/file", place / "read/file", place / "none/file", std::string("/etc/passwd"),
        std::string("/etc/shadow"), std::string("/etc/group"), std::string("/dev/null"),
        support::real_path("/bin/sh"), std::string("/proc/version"), other / "none"}) {
    CAPTURE(path);
    if (::access(path.c_str(), R_OK) != 0) continue;
    const bool can = support::run_in(*sandbox, "head -c 1 " + path + " > /dev/null").succeeded();
    CHECK(can == is_granted(rules, "read_file", path));
    readable += can ? 1 : 0;
  }
  CHECK(readable >= 5);
  for (const std::string& directory : {place / "write", place / "read", place / "none"}) {
    CAPTURE(directory);
    const bool can = support::run_in(*sandbox, ": > " + directory + "/new").succeeded();
    CHECK(can == is_granted(rules, "make_reg", directory));
  }
}

TEST_CASE("sandbox: the rules name the network, the namespaces, mounts, privileges and limits") {
  if (!support::has_everything("what is explained")) return;
  const TempDir place;
  SandboxOptions options = support::options_for(SandboxMode::best_effort, place.path());
  options.explain = true;
  options.network = Network::none;
  options.limits.open_files = 77;
  auto sandbox = Sandbox::create(options);
  REQUIRE_MESSAGE(sandbox, sandbox.error().message);
  CHECK(rules_of(*sandbox, "limits") == Strings{"RLIMIT_NOFILE of each process: 77, at most 77"});
  CHECK(support::output_of(support::run_in(*sandbox, "ulimit -n")) == "77\n");
  CHECK(rules_of(*sandbox, "namespaces") == Strings{"none of its own"});
  CHECK(has(rules_of(*sandbox, "network").at(0), "EACCES bind connect"));
  CHECK(rules_of(*sandbox, "privileges").size() == 2);
  CHECK(support::output_of(support::run_in(
            *sandbox, "grep -E '^(CapEff|CapPrm|NoNewPrivs)' /proc/self/status | cut -f 2")) ==
        "0000000000000000\n0000000000000000\n1\n");
  CHECK(rules_of(*sandbox, "containment").size() == 1);
  CHECK(rules_of(*sandbox, "metadata").empty());

  options.network = Network::host;
  options.pid_namespace = true;
  options.protected_paths = {".git/hooks"};
  options.hidden_paths = {place / "a/b"};
  sandbox = Sandbox::create(options);
  REQUIRE_MESSAGE(sandbox, sandbox.error().message);
  CHECK(rules_of(*sandbox, "network") == Strings{"that of this program"});
  if (!support::missing(sandbox->report(), "pid_namespace").empty()) {
    MESSAGE("SKIPPED: no namespaces here, of which rules would be printed");
    return;
  }
  CHECK(has(rules_of(*sandbox, "namespaces").at(0), "mount pid ipc"));
  CHECK(has(rules_of(*sandbox, "metadata").at(0), place.path()));
  CHECK(rules_of(*sandbox, "protected_paths").size() == 2);
  CHECK(rules_of(*sandbox, "hidden_paths") ==
        Strings{"cannot be moved away: " + place / "a/", "cannot be read: " + place / "a/b"});
}

#else

TEST_CASE("sandbox: a build without one has no rules to explain") {
  const TempDir place;
  SandboxOptions options = support::options_for(SandboxMode::best_effort, place.path());
  options.explain = true;
  CHECK(support::report_of(options).rules.empty());
  MESSAGE("SKIPPED: a build without a sandbox has no rules to compare with the kernel");
}

#endif
