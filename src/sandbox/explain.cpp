// SandboxOptions::explain: the rules of a plan as lines for people, from what the plan holds.

#include "sandbox/builder_internal.hpp"
#include "sandbox/child_internal.hpp"
#include "sandbox/filter_internal.hpp"
#include "sandbox/grants_internal.hpp"
#include "sandbox/sandbox_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if CODEEXEC_HAS_SANDBOX

namespace {

// A bit or a number, and the kernel's name of it.
struct NamedFlag {
  std::uint64_t value;
  char name[14];
};

constexpr NamedFlag right_names[] = {{right_read_file, "read_file"},
                                     {right_read_dir, "read_dir"},
                                     {right_execute, "execute"},
                                     {right_write_file, "write_file"},
                                     {right_truncate, "truncate"},
                                     {right_make_reg, "make_reg"},
                                     {right_make_dir, "make_dir"},
                                     {right_make_sym, "make_sym"},
                                     {right_make_fifo, "make_fifo"},
                                     {right_make_sock, "make_sock"},
                                     {1u << 6, "make_char"},
                                     {1u << 11, "make_block"},
                                     {right_remove_file, "remove_file"},
                                     {right_remove_dir, "remove_dir"},
                                     {right_refer, "refer"},
                                     {right_ioctl_dev, "ioctl_dev"},
                                     {right_resolve_unix, "resolve_unix"}};

constexpr NamedFlag namespace_names[] = {{CLONE_NEWUSER, "user"},
                                         {CLONE_NEWNS, "mount"},
                                         {CLONE_NEWNET, "network"},
                                         {CLONE_NEWPID, "pid"},
                                         {CLONE_NEWIPC, "ipc"}};

constexpr NamedFlag rlimit_names[] = {
    {RLIMIT_CPU, "RLIMIT_CPU"},     {RLIMIT_AS, "RLIMIT_AS"},     {RLIMIT_NOFILE, "RLIMIT_NOFILE"},
    {RLIMIT_FSIZE, "RLIMIT_FSIZE"}, {RLIMIT_DATA, "RLIMIT_DATA"}, {RLIMIT_NPROC, "RLIMIT_NPROC"}};

std::string names_of(const NamedFlag* flags, const NamedFlag* end, std::uint64_t set) {
  std::string names;
  for (; flags != end; ++flags)
    if (set & flags->value) append_all(names, {names.empty() ? "" : " ", flags->name});
  return names;
}

std::string names_of_rights(std::uint64_t rights) {
  return names_of(std::begin(right_names), std::end(right_names), rights);
}

// Adds a line for each set of rights and directory with what is granted in it: in /etc there may be
// a rule for each entry.
void explain_files(const std::vector<NamedRule>& granted, std::vector<std::string>& rules) {
  for (const NamedRule& rule : granted) {
    const std::size_t slash = rule.path.rfind('/');
    const std::string line =
        concat("filesystem: % in %/:",
               {names_of_rights(rule.rights), printable(rule.path.substr(0, slash))});
    const auto known =
        find_where(rules, [&](const std::string& other) { return starts_with(other, line); });
    std::string& target = known != rules.end() ? *known : rules.emplace_back(line);
    append_all(target, {" ", printable(rule.path.substr(slash + 1))});
  }
}

// Adds a line for each directory.
void explain_broker(const SandboxState& state, std::vector<std::string>& rules) {
  for (const BrokeredDirectory& directory : state.broker_directories) {
    std::string line = concat("filesystem: made, replaced and removed by the supervisor in %/:",
                              {printable(directory.path)});
    for (const BrokeredFile& file : state.brokered)
      if (file.directory == directory.fd.get()) append_all(line, {" ", printable(file.name)});
    rules.push_back(std::move(line));
  }
}

void explain_limits(const SandboxState& state, std::vector<std::string>& rules) {
  for (std::size_t i = 0; i < state.plan.rlimit_count; ++i) {
    const SandboxRlimit& limit = state.rlimits[i];
    for (const NamedFlag& known : rlimit_names)
      if (known.value == static_cast<std::uint64_t>(limit.resource))
        rules.push_back(concat("limits: % of each process: %, at most %",
                               {known.name, limit.soft, limit.hard}));
  }
  if (state.plan.processes != no_bound)
    rules.push_back(
        concat("limits: RLIMIT_NPROC of all commands together: %", {state.plan.processes}));
  const Limits& limits = state.options.limits;
  if (!state.memory_base.directory.empty())
    rules.push_back(concat("limits: % bytes of memory in a cgroup of %",
                           {limits.memory, printable(state.memory_base.directory)}));
  if (!state.process_base.directory.empty())
    rules.push_back(concat("limits: % processes in a cgroup of %",
                           {limits.processes, printable(state.process_base.directory)}));
  if (!state.disk_roots.empty())
    rules.push_back(
        concat("limits: % bytes more on each disk that can be written to: this program "
               "looks four times a second",
               {limits.disk}));
}

void explain_mounts(const SandboxPlan& plan, std::vector<std::string>& rules) {
  if (!plan.read_only) return;
  std::string writable = "metadata: mounted read-only is everything but";
  for (std::size_t i = 0; i < plan.writable_count; ++i)
    append_all(writable, {" ", printable(plan.writable[i].path)});
  rules.push_back(std::move(writable));
  for (const char* path = plan.guarded; *path != '\0'; path += std::strlen(path) + 1) {
    const bool is_hidden = *path == '/';
    const bool stays = ends_with(std::string_view(path), "/"sv);
    rules.push_back(concat("%: %: %", {is_hidden ? "hidden_paths" : "protected_paths",
                                       stays       ? "cannot be moved away"
                                       : is_hidden ? "cannot be read"
                                                   : "read-only",
                                       printable(path)}));
  }
}

}  // namespace

inline namespace inner {

void SandboxPlanner::explain() {
  const SandboxPlan& plan = state_.plan;
  std::vector<std::string>& rules = state_.report.rules;
  explain_limits(state_, rules);
  if (!plan.supervised) return;
  if (plan.ruleset >= 0) {
    rules.push_back(concat("filesystem: EACCES but for what follows: % (Landlock)",
                           {names_of_rights(plan.attributes.handled_fs)}));
    explain_files(granted_, rules);
    explain_broker(state_, rules);
    if (plan.attributes.scoped != 0) {
      add_words(rules, {"signals: EPERM to processes that are not of the command (Landlock)"});
      add_words(rules, {"abstract_sockets: EPERM to those that are not of the command (Landlock)"});
    }
  }
  if (plan.ruleset >= 0 && plan.attributes.handled_net != 0)
    add_words(rules, {"network: EACCES bind connect: of TCP, to all ports (Landlock)"});
  rules.push_back(
      concat("network: %%", {has_own_network(network) ? "a namespace that has lo alone"
                             : network == Network::none && plan.filter
                                 ? "no socket of a network can be made, see system_calls"
                                 : "that of this program",
                             plan.proxied ? ", and a proxy to the allowed names" : ""}));
  if (plan.filter)
    for (const std::string& rule : explain_filter(filter_options()))
      rules.push_back(concat("system_calls: %", {rule}));
  if (plan.no_new_privs)
    add_words(rules, {"privileges: no_new_privs: no program gives any, sudo and su neither"});
  if (plan.drop_capabilities)
    add_words(rules, {"privileges: no capabilities, of root's commands neither"});
  const std::string namespaces =
      names_of(std::begin(namespace_names), std::end(namespace_names), plan.clone_flags);
  const std::string common =
      names_of(std::begin(namespace_names), std::end(namespace_names), maker_->made_flags());
  if (!common.empty())
    rules.push_back(concat("namespaces: in common for all commands: %", {common}));
  rules.push_back(concat("namespaces: %", {namespaces.empty() ? "none of its own" : namespaces}));
  explain_mounts(plan, rules);
  rules.push_back(
      concat("containment: a supervisor kills all that is left when a command ends, and when this "
             "program does%",
             {plan.idle ? "; then it waits for the next command" : "; each command has its own"}));
}

}  // namespace inner

#endif

}  // namespace v0_1
}  // namespace codeexec
