// In the child: namespaces, Landlock, limits, capabilities, the filter.

#include "sandbox/capabilities_internal.hpp"
#include "sandbox/child_internal.hpp"
#include "sandbox/plan_internal.hpp"
#include "sandbox/system_calls_internal.hpp"

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if CODEEXEC_HAS_SANDBOX

namespace {

constexpr long number_of_landlock_restrict_self = 446;

CODEEXEC_IN_CHILD long drop_capabilities() {
  // NOROOT, NO_SETUID_FIXUP, NO_CAP_AMBIENT_RAISE and their locks, and the lock of KEEP_CAPS.
  constexpr int secure_bits = 0xef;
  // These need CAP_SETPCAP. Who lacks it is held by no_new_privs alone: an exec then gains nothing.
  // The bounding set says what an exec may gain as well, and clearing it costs 50 us.
  raw(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  raw(SYS_prctl, PR_SET_SECUREBITS, secure_bits, 0, 0, 0);
  const CapabilityHeader header = {};
  const CapabilityData none[2] = {};
  return raw(SYS_capset, &header, &none[0]);
}

}  // namespace

inline namespace inner {

CODEEXEC_IN_CHILD long lower_limit(const SandboxRlimit& limit) {
  std::uint64_t now[2] = {0, 0};
  const long known = raw(SYS_prlimit64, 0, limit.resource, 0, &now[0]);
  if (known < 0) return known;
  // A limit is never raised, which root could do.
  if (limit.hard < now[1]) now[1] = limit.hard;
  if (limit.soft < now[0]) now[0] = limit.soft;
  if (now[0] > now[1]) now[0] = now[1];
  return raw(SYS_prlimit64, 0, limit.resource, &now[0], 0);
}

CODEEXEC_IN_CHILD long confine(const SandboxPlan& plan, volatile ConfineStep* step) {
  ConfineStep ignored = ConfineStep::limits;
  if (!step) step = &ignored;
  *step = ConfineStep::limits;
  for (std::size_t i = 0; i < plan.rlimit_count; ++i) {
    const long result = lower_limit(plan.rlimits[i]);
    if (result < 0) return result;
  }
  *step = ConfineStep::capabilities;
  if (plan.drop_capabilities) {
    const long result = drop_capabilities();
    if (result < 0) return result;
  }
  *step = ConfineStep::privileges;
  if (plan.no_new_privs) {
    const long result = raw(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (result < 0) return result;
  }
  *step = ConfineStep::landlock;
  if (plan.ruleset >= 0) {
    const long result = raw(number_of_landlock_restrict_self, plan.ruleset, 0);
    if (result < 0) return result;
  }
  return 0;
}

CODEEXEC_IN_CHILD long install_filter(const SandboxPlan& plan) {
  constexpr int set_mode_filter = 1;  // SECCOMP_SET_MODE_FILTER
  if (!plan.filter) return 0;
  sock_fprog program;
  program.len = plan.filter_size;
  program.filter = const_cast<sock_filter*>(plan.filter);
  return raw(SYS_seccomp, set_mode_filter, 0, &program);
}

}  // namespace inner

#endif

}  // namespace v0_1
}  // namespace codeexec
