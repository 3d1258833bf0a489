// The first lines of --doctor: what commands are kept from here, and what not.

#include "program/program_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/names_internal.hpp"
#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "paths/paths.hpp"
#include "place/place.hpp"
#include "sandbox/grants_internal.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// A piece of the reason of a gap, and what helps then.
constexpr HelpRow gap_remedies[] = {
    {"the kernel has no landlock", "use Linux 6.12 or newer, or --execution-mode docker"},
    {"landlock is switched off",
     "start the kernel with landlock among lsm=, or use "
     "--execution-mode docker"},
    {"landlock is not permitted", "let the profile of the container pass the calls landlock_*"},
    {"needs landlock abi", "Linux 6.12 has all of it"},
    {"a filter (seccomp)", "let the profile of the container pass seccomp()"},
    {"apparmor_restrict",
     "give this program an AppArmor profile with `userns,`, see "
     "docs/platforms.md; what needs no namespaces holds without"},
    {"max_user_namespaces",
     "sudo sysctl user.max_user_namespaces=10000; what needs no namespaces "
     "holds without"},
    {"unprivileged_userns_clone",
     "sudo sysctl kernel.unprivileged_userns_clone=1; what needs no "
     "namespaces holds without"},
    {"no namespaces can be made",
     "this user or container may make none; what needs no namespaces "
     "holds without"},
    {"/proc", "mount /proc"},
    {"no cgroup can be made", ""},  // the reason ends with one
    {"the kernel cannot take it back", "move it out of there"},
    {"emulator", "run it on a real kernel"},
    {"not on this system", "run it on Linux, x86_64 or aarch64"},
};
constexpr auto packed_gap_remedies = pack_help<gap_remedies>();

std::string with_remedy(std::string_view reason) {
  const NameTable table = packed_gap_remedies.table();
  const std::size_t row = find_help(reason, table);
  const std::string_view remedy =
      row < table.rows ? table.at(row, 1).first() : "--sandbox strict does not start instead"sv;
  return concat("%%%", {reason, remedy.empty() ? "" : "; ", remedy});
}

std::string paths_with(const ServerConfig& config, Permission permission) {
  std::vector<std::string> paths;
  for (const Root& root : config.local.roots)
    if (root.permission == permission) paths.push_back(root.path);
  return joined(paths, ", "sv);
}

// Where commands write and read, and whether they see the user's home.
void examine_files(const ServerConfig& config, const CommandPlace& place, DoctorReport& report) {
  if (const auto why = reason_missing(place.sandbox, "filesystem"sv); !why.empty()) {
    report.add("files", false, "commands can read and change all that this user can: %",
               {with_remedy(why)});
    return;
  }
  std::string writable = paths_with(config, Permission::write);
  const std::string readable = paths_with(config, Permission::read);
  if (config.local.roots.empty()) writable = place.executor->workspace();
  const bool has_home = config.local.private_home != PrivateHome::off;
  report.add("files", true,
             "commands can write only in %%%, and read that%%, programs and settings of the system "
             "and the tools on the PATH",
             {writable, writable.empty() || !has_home ? "" : " and ",
              has_home           ? "a HOME and TMPDIR of their own"
              : writable.empty() ? "nothing"
                                 : "",
              readable.empty() ? "" : ", ", readable});
}

// A home has the keys and settings of all programs in it.
void examine_homes(const ServerConfig& config, const CommandPlace& place, DoctorReport& report) {
  std::vector<Root> roots = config.local.roots;
  if (roots.empty()) roots.push_back({place.executor->workspace(), Permission::write});
  bool any = false;
  for (const Root& root : roots) {
    const auto path = canonical_path(root.path);
    if (root.permission == Permission::none || !path || !is_home_directory(*path)) continue;
    any = true;
    report.doubt("home",
                 "% is a home or above one: commands can % all keys and settings in it; name the "
                 "folder of a project instead",
                 {*path, root.permission == Permission::write ? "change" : "read"});
  }
  if (!any && reason_missing(place.sandbox, "filesystem"sv).empty())
    report.add("home", true, "your home is hidden, but for what is named above");
}

// What a `bin` on the PATH has beside it is readable, as programs keep their parts there.
void examine_search_path(const SandboxReport& sandbox, DoctorReport& report) {
  const char* const variable = std::getenv("PATH");
  std::string_view path = variable ? variable : "";
  while (!path.empty()) {
    const std::string_view directory = take_part(path, ':');
    const std::size_t slash = directory.rfind('/');
    // Folders with a dot are those of tools.
    if (slash == std::string_view::npos || slash == 0 || is_readable_system(directory) ||
        starts_with(directory, "/opt/"sv) || directory.find("/."sv) != std::string_view::npos)
      continue;
    const std::string_view parent = directory.substr(0, slash);
    const std::string opened = concat(" execute in %/: ", {printable(parent)});
    for (const std::string& rule : sandbox.rules) {
      const std::size_t at = rule.find(opened);
      if (!starts_with(rule, "filesystem: read_file"sv) || at == std::string::npos) continue;
      if (rule.substr(at + opened.size()) == printable(directory.substr(slash + 1))) continue;
      report.doubt("PATH",
                   "% is on it, so commands can read what lies beside it in %; start the server "
                   "with a PATH without it, if that is no program's own folder",
                   {directory, parent});
      break;
    }
  }
}

void examine_network(const SandboxReport& sandbox, DoctorReport& report) {
  const auto why = reason_missing(sandbox, "network"sv);
  if (!why.empty()) {
    report.add("network", false, "%: %",
               {sandbox.network == Network::host ? "open, although it should not be"
                                                 : "not as it should be",
                with_remedy(why)});
    return;
  }
  switch (sandbox.network) {
    case Network::host:
      return report.doubt("network",
                          "open: commands reach what this machine reaches, and its services, such "
                          "as docker; --network none, or --network allow --allow-domains NAME...");
    case Network::none:
      report.add("network", true, "off");
      return;
    case Network::loopback:
      report.add("network", true, "off, but for a 127.0.0.1 of the commands' own");
      return;
    case Network::allow:
      report.add("network", true, "only the names of --allow-domains");
      return;
  }
}

void examine_processes(const SandboxReport& sandbox, DoctorReport& report) {
  for (const std::string_view feature : {"signals"sv, "containment"sv})
    if (const auto why = reason_missing(sandbox, feature); !why.empty()) {
      report.add("processes", false, "%: %",
                 {feature == "signals"sv ? "commands can signal those outside"
                                         : "what a command starts can outlive it",
                  with_remedy(why)});
      return;
    }
  report.add("processes", true,
             "commands cannot signal yours%, and all that they start ends with them",
             {is_one_of("pid_namespace"sv, sandbox.enforced) ? " or see them" : ""});
}

void examine_limits(const ServerConfig& config, DoctorReport& report) {
  const Limits& limits = config.local.sandbox.limits;
  std::string unbounded;
  if (limits.memory == no_bound) unbounded += " --limit-memory 2g";
  if (limits.processes == no_bound) unbounded += " --limit-processes 500";
  if (limits.disk == no_bound && limits.file_size == no_bound) unbounded += " --limit-disk 2g";
  if (unbounded.empty()) {
    report.add("limits", true, "memory, processes and the disk have bounds");
    return;
  }
  report.doubt("limits", "one command can use up memory, processes or the disk:%", {unbounded});
}

void examine_user(DoctorReport& report) {
  const unsigned user = ::geteuid();
  if (user == 0) {
    report.doubt("user",
                 "commands run as root (user 0), who owns the system's files; start the server as "
                 "an ordinary user");
    return;
  }
  report.add("user", true, "commands run as user %", {user});
}

// What needs no namespaces holds where none can be made, so that this is no failure.
void examine_namespaces(DoctorReport& report) {
  SandboxOptions options;
  options.mode = SandboxMode::best_effort;
  options.pid_namespace = true;
  const auto tried = Sandbox::create(options);
  if (!tried) return;
  const auto why = reason_missing(tried->report(), "pid_namespace"sv);
  if (why.empty()) {
    report.add("namespaces", true, "can be made");
    return;
  }
  report.doubt("namespaces",
               "--pid-namespace, --protected-paths, --network loopback and allow cannot be had: %",
               {with_remedy(why)});
}

}  // namespace

inline namespace inner {

void examine_protection(const ServerConfig& config, const CommandPlace& place,
                        DoctorReport& report) {
  const SandboxReport& sandbox = place.sandbox;
  const bool is_local = config.use == Option::local;
  if (sandbox.mode == SandboxMode::off) {
    constexpr const char* rights =
        "off: commands read and change all files that % can, reach the "
        "network and signal its processes; %";
    constexpr const char* remedy = "leave --sandbox off out, and name folders with --allowed-paths";
    if (is_local)
      report.add("sandbox", false, rights, {"this user", remedy});
    else
      report.doubt("sandbox", rights, {"the user there", remedy});
  } else {
    if (sandbox.missing.empty())
      report.add("sandbox", true, "% holds every command", {name(sandbox.mode)});
    else
      report.doubt("sandbox",
                   "% holds every command as far as this system can; --sandbox strict does not "
                   "start instead",
                   {name(sandbox.mode)});
    examine_files(config, place, report);
    if (is_local) examine_homes(config, place, report);
    if (is_local) examine_search_path(sandbox, report);
    examine_network(sandbox, report);
    examine_processes(sandbox, report);
  }
  examine_limits(config, report);
  if (is_local) examine_user(report);
  if (is_local && sandbox.mode != SandboxMode::off) examine_namespaces(report);
  for (const std::string& feature : sandbox.enforced) report.add(feature, true);
  for (const std::string& gap : sandbox.missing)
    report.add(
        gap.substr(0, gap.find(':')), false, "%",
        {with_remedy(std::string_view(gap).substr(std::min(gap.size(), gap.find(':') + 2)))});
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
