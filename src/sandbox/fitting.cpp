// The trials of a plan, and what they say about it.

#include "sandbox/builder_internal.hpp"
#include "sandbox/grants_internal.hpp"
#include "sandbox/sandbox_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if CODEEXEC_HAS_SANDBOX

inline namespace inner {

Expected<void> SandboxFitter::fit() {
  const AbstractListener listener;
  for (;;) {
    planner_.plan_trial(user_namespace_);
    Trial trial;
    trial.plan = &state_.plan;
    trial.network = planner_.network;
    trial.unix_sockets = state_.options.unix_sockets;
    trial.host = static_cast<int>(::getpid());
    if (listener.size != 0) {
      trial.abstract = &listener.address;
      trial.abstract_size = listener.size;
    }
    const auto next = settle(trial, run(trial));
    if (!next) return next.failure();
    if (*next == Next::done) return {};
  }
}

long SandboxFitter::run(Trial& trial) const {
  const NamespaceTurn turn(planner_.maps_users());
  const long made = planner_.make_shared_namespaces();
  return made < 0 ? made : run_trial(trial);
}

Expected<SandboxFitter::Next> SandboxFitter::settle(const Trial& trial, long started) {
  const long error = started < 0 ? started : long{trial.error};
  if (planner_.has_namespaces() &&
      (started < 0 || trial.step == ConfineStep::namespaces || !trial.finished)) {
    // Root tries each set of namespaces without one for users first. All others always need that.
    const bool was_tried_for_users = std::exchange(user_namespace_, true);
    if (!was_tried_for_users) return Next::try_again;
    user_namespace_ = ::geteuid() != 0;
    if (auto left = leave_out_namespace(error); !left) return left.failure();
    return Next::try_again;
  }
  // No kernel refuses a child on borrowed memory: it is an emulator.
  if (started == -EINVAL || started == -ENOSYS) {
    planner_.drop_all("an emulator, in which no trial can be run");
    return Next::done;
  }
  if (started < 0 || !trial.finished)
    return system_error(started < 0 ? static_cast<int>(-started) : ENOSYS,
                        "sandbox: the trial of it could not be run");
  if (error != 0) {
    if (leave_out_step(trial.step, static_cast<int>(-error))) return Next::try_again;
    return system_error(static_cast<int>(-error), "sandbox: limits");
  }
  if ((trial.breaches & breach_loopback) != 0 && has_own_network(planner_.network)) {
    if (auto left = planner_.drop_loopback("127.0.0.1 does not work in it"sv); !left)
      return left.failure();
    return Next::try_again;
  }
  judge(trial);
  planner_.report_places();
  if (!state_.plan.mount_proc) planner_.forget_rules();
  return Next::done;
}

}  // namespace inner

namespace {

// A setting of the kernel, what it says where namespaces cannot be had, and how a report names it.
struct NamespaceSwitch {
  const char* file;
  char closed;
  bool spares_root;
  const char* reason;
};
constexpr NamespaceSwitch namespace_switches[] = {
    {"/proc/sys/user/max_user_namespaces", '0', false, "user.max_user_namespaces is 0"},
    {"/proc/sys/kernel/unprivileged_userns_clone", '0', true,
     "kernel.unprivileged_userns_clone is 0"},
    {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1', true,
     "AppArmor keeps them from this program (kernel.apparmor_restrict_unprivileged_userns is 1)"}};

// The errno of a refusal does not say which of them it was: ENOSPC stands for the first.
std::string why_no_namespaces(int error) {
  constexpr std::size_t most = 64;
  if (error == EXDEV) return "this program has another root than its mounts (chroot)";
  for (const NamespaceSwitch& row : namespace_switches) {
    const auto value = read_whole_file(row.file, most, "setting"sv);
    if (value && (*value == concat("%\n", {std::string_view(&row.closed, 1)})) &&
        !(row.spares_root && ::geteuid() == 0))
      return row.reason;
  }
  return errno_text(error);
}

}  // namespace

inline namespace inner {

// Drops one optional namespace, the least important first. When a network of its own is the only
// one left, it was at fault: it is dropped, and the others come back.
Expected<void> SandboxFitter::leave_out_namespace(long error) {
  const int number = error != 0 ? static_cast<int>(-error) : ENOSYS;
  const std::string why = concat("no namespaces can be made here: %", {why_no_namespaces(number)});
  const bool are_mounts_asked = wants_mounts(state_.options);
  if (planner_.places && (are_mounts_asked || !planner_.mounts)) {
    planner_.places = false;
    planner_.places_problem = why;
    return {};
  }
  if (planner_.mounts) {
    planner_.mounts = false;
    gaps_.add("metadata", "%", {why});
    return {};
  }
  if (planner_.processes) {
    planner_.processes = false;
    gaps_.add("pid_namespace", "%", {why});
    return {};
  }
  planner_.places = !state_.options.tmp.empty();
  planner_.processes = state_.options.pid_namespace;
  gaps_.forget("pid_namespace");
  planner_.mounts = planner_.can_mount;
  if (planner_.can_mount) gaps_.forget("metadata");
  return planner_.drop_loopback(why);
}

bool SandboxFitter::leave_out_step(ConfineStep step, int error) {
  const std::string why = errno_text(error);
  switch (step) {
    case ConfineStep::capabilities:
      state_.plan.drop_capabilities = false;
      gaps_.add("privileges", "capabilities cannot be dropped: %", {why});
      return true;
    case ConfineStep::privileges:
      state_.plan.no_new_privs = false;
      gaps_.add("privileges", "no_new_privs cannot be set: %", {why});
      return true;
    case ConfineStep::landlock:
      planner_.drop_ruleset("Landlock cannot be put in force: %", {why});
      return true;
    case ConfineStep::filter:
      planner_.filter = false;
      gaps_.add("system_calls", "a filter (seccomp) cannot be installed: %", {why});
      return true;
    case ConfineStep::namespaces:
    case ConfineStep::limits:
    case ConfineStep::end:
      break;
  }
  return false;
}

}  // namespace inner

namespace {

constexpr const char* broken = "it is claimed to be there, but a trial got around it";

// Features whose enforcement a breach disproves.
struct BrokenFeature {
  unsigned breaches;
  const char* feature;
};
constexpr BrokenFeature broken_features[] = {{breach_capability | breach_privilege, "privileges"},
                                             {breach_filter, "system_calls"},
                                             {breach_metadata, "metadata"}};

}  // namespace

inline namespace inner {

void SandboxFitter::judge(const Trial& trial) {
  const unsigned breaches = trial.breaches;
  judge_files(breaches);
  const int abi = planner_.landlock_abi;
  const std::string_view scope = abi == 0          ? std::string_view(planner_.landlock_problem)
                                 : abi < scope_abi ? "needs Landlock ABI 6"
                                                   : broken;
  if ((breaches & breach_signal) != 0) gaps_.add("signals", "%", {scope});
  if ((breaches & breach_abstract) != 0) gaps_.add("abstract_sockets", "%", {scope});
  for (const BrokenFeature& row : broken_features)
    if ((breaches & row.breaches) != 0) gaps_.add(row.feature, "%", {broken});
  judge_network(breaches);
}

void SandboxFitter::judge_files(unsigned breaches) {
  const int abi = planner_.landlock_abi;
  if (abi == 0) {
    for (const char* feature : {"filesystem", "rename", "truncate", "devices"})
      gaps_.add(feature, "%", {planner_.landlock_problem});
    return;
  }
  // The trial writes to a file there.
  const bool could_be_tried = ::access("/proc/self/comm", F_OK) == 0;
  const char* const why = could_be_tried ? broken : "it cannot be tried without /proc";
  if ((breaches & (breach_read | breach_write | breach_create)) != 0)
    gaps_.add("filesystem", "%", {why});
  if (abi < rename_abi) gaps_.add("rename", "needs Landlock ABI 2");
  if ((breaches & breach_truncate) != 0)
    gaps_.add("truncate", "%", {abi < truncate_abi ? "needs Landlock ABI 3" : why});
  if (abi < ioctl_abi) gaps_.add("devices", "needs Landlock ABI 5");
}

void SandboxFitter::judge_network(unsigned breaches) {
  state_.report.network = planner_.network;
  if ((breaches & (breach_internet | breach_outside)) != 0) {
    state_.report.network = Network::host;
    gaps_.replace("network", "%",
                  {planner_.filter ? "a trial could make sockets"
                                   : "it needs a filter (seccomp), which cannot be installed"});
  } else if ((breaches & breach_unix) != 0) {
    gaps_.add("network", "sockets with a path reach services of this host");
  }
}

}  // namespace inner

#endif

}  // namespace v0_1
}  // namespace codeexec
