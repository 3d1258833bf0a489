// The limits of a run, by cgroup or by process.

#include "sandbox/builder_internal.hpp"
#include "sandbox/sandbox_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if CODEEXEC_HAS_SANDBOX

namespace {

void add_rlimit(SandboxState& state, int resource, std::uint64_t soft, std::uint64_t more = 0) {
  if (soft == no_bound) return;
  state.rlimits[state.plan.rlimit_count++] = {resource, soft, soft + more};
}

// A limit that takes a cgroup. What the kernel offers without one is another limit, and has another
// name: `other`, or null where it says nothing.
struct CgroupLimit {
  const char* name;
  const char* what;
  const char* other;
  int resource;
};

void limit_by_cgroup(SandboxState& state, SandboxGaps& gaps, CgroupBase& base, std::uint64_t value,
                     const CgroupLimit& limit, std::vector<std::string>& others) {
  if (value == no_bound) return;
  base = find_cgroup_base(limit.resource == RLIMIT_DATA);
  if (!base.directory.empty()) return;
  add_rlimit(state, limit.resource, value);
  const std::string reason = base.error == 0 ? "" : concat(" (%)", {errno_text(base.error)});
  gaps.add(limit.name,
           "no cgroup can be made here%, so %, which only best_effort accepts; run this program by "
           "`systemd-run --user --scope -p Delegate=yes`",
           {reason, limit.what});
  if (limit.other) others.push_back(limit.other);
}

}  // namespace

inline namespace inner {

void set_limits(SandboxState& state, SandboxGaps& gaps, std::vector<std::string>& others) {
  const Limits& limits = state.options.limits;
  // A second between the signal that can be caught and the one that cannot.
  add_rlimit(state, RLIMIT_CPU, limits.cpu_time, 1);
  add_rlimit(state, RLIMIT_AS, limits.address_space);
  add_rlimit(state, RLIMIT_NOFILE, limits.open_files);
  // No signal comes when a disk fills up, but one comes when a file reaches its limit. So no file
  // may be larger than the limit of the disk.
  const bool is_disk_less =
      limits.disk != no_bound && (limits.file_size == no_bound || limits.disk < limits.file_size);
  add_rlimit(state, RLIMIT_FSIZE, is_disk_less ? limits.disk : limits.file_size);
  limit_by_cgroup(state, gaps, state.memory_base, limits.memory,
                  {"memory", "it holds for each process alone", "memory_per_process", RLIMIT_DATA},
                  others);
  const bool is_root = ::getuid() == 0;
  limit_by_cgroup(
      state, gaps, state.process_base, limits.processes,
      {"processes", is_root ? "the kernel does not count root's" : "all of the user's are counted",
       is_root ? nullptr : "processes_per_user", RLIMIT_NPROC},
      others);
  if (limits.disk != no_bound && state.disk_roots.empty())
    gaps.add("disk", "no writable directory is granted");
  state.plan.rlimits = state.rlimits;
}

}  // namespace inner

#endif

}  // namespace v0_1
}  // namespace codeexec
