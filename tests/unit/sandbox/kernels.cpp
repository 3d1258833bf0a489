// Processes and networks; other kernels and users.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>

#include "../../helpers/support.hpp"
#include "helpers.hpp"

using codeexec::Network;
using codeexec::ProcessResult;
using codeexec::SandboxMode;
using codeexec::SandboxOptions;
using support::options_for;
using support::report_of;

#if defined(__linux__) && (!defined(CODEEXEC_HAS_SANDBOX) || CODEEXEC_HAS_SANDBOX)

using support::enforced;
using support::has_everything;
using support::is_missing;
using support::is_root;
using support::missing;
using support::output_of;
using support::report_elsewhere;
using support::run_in;

namespace {

// Whether a namespace can be made here, by root or by anybody; asked of unshare(1).
bool can_unshare(const char* options) {
  const std::string words = std::string(options) + " true > /dev/null 2>&1";
  return ::system(("unshare " + words).c_str()) == 0 ||
         ::system(("unshare -U " + words).c_str()) == 0;
}

}  // namespace

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
          all + "pid_namespace metadata ");
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
      {"namespaces=EPERM", "protect=.git/hooks", {"metadata", "protected_paths"}, "host"},
      {"mount_setattr=ENOSYS", "pid_namespace", {"metadata"}, "host"},
      {"open_tree=EPERM", "pid_namespace rw=/tmp", {"metadata"}, "host"},
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
    if ((one.rules == no_network_namespaces || one.missing[0] == "metadata") && asked &&
        is_root("a process table without user namespaces"))
      CHECK(support::has(enforced(lines), "pid_namespace "));
    const auto strict = report_elsewhere("strict " + one.words, one.rules);
    REQUIRE(strict.size() == 1);
    CHECK(support::begins(strict[0], "error "));
  }
}

#else

TEST_CASE("sandbox: processes, networks and kernels") {
  MESSAGE("SKIPPED: there is no sandbox in this build");
}

#endif
