// A sandbox is built: the steps in their order, the report, the public functions.

#include "sandbox/builder_internal.hpp"
#include "sandbox/capabilities_internal.hpp"
#include "sandbox/grants_internal.hpp"
#include "sandbox/plan_internal.hpp"
#include "sandbox/sandbox.hpp"
#include "sandbox/sandbox_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "paths/paths.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// What a report lists, some of it where it is asked for.
std::vector<std::string> features_of(const SandboxOptions& options) {
  std::vector<std::string> features;
  if (options.mode != SandboxMode::off) {
    for (const char* feature : sandbox_features) features.push_back(feature);
    if (options.pid_namespace) features.push_back("pid_namespace");
    if (wants_mounts(options)) features.push_back("metadata");
    if (!options.protected_paths.empty()) features.push_back("protected_paths");
    if (!options.hidden_paths.empty()) features.push_back("hidden_paths");
  }
  for (const NamedLimit& limit : limit_names)
    if (options.limits.*limit.value != no_bound) features.push_back(limit.name);
  return features;
}

#if CODEEXEC_HAS_SANDBOX

// At most most_disk_roots; further file systems are not watched. Each costs every command two
// system calls.
void find_disk_roots(SandboxState& state) {
  dev_t devices[most_disk_roots] = {};
  for (const std::string& path : state.options.writable) {
    auto opened = open_grant(path);
    std::size_t known = 0;
    while (opened && known < state.disk_roots.size() && devices[known] != opened->status.st_dev)
      ++known;
    if (!opened || known < state.disk_roots.size() || known == most_disk_roots) continue;
    devices[known] = opened->status.st_dev;
    state.disk_roots.push_back(UniqueFd(above_standard_streams(opened->fd.release())));
  }
}

// A supervisor finds its children in /proc, in a list that not every kernel is built with. Or it
// has a process table for them alone.
void judge_containment(const SandboxState& state, SandboxGaps& gaps) {
  const bool own_table = (state.plan.clone_flags & CLONE_NEWPID) != 0;
  if (!own_table && ::access("/proc/thread-self/children", R_OK) != 0)
    gaps.add("containment", "/proc has no lists of children here");
}

// A supervisor sets up its namespaces once. Not so where what is protected or hidden is to be
// looked for at each start, or each command has a listening socket in a network of its own.
void share_supervisors(SandboxState& state) {
  SandboxPlan& plan = state.plan;
  if (plan.supervised && *plan.guarded == '\0' && !plan.proxied) plan.idle = &state.idle;
}

void fill_report(SandboxReport& report, SandboxGaps& gaps,
                 const std::vector<std::string>& features) {
  for (const std::string& feature : features) {
    // The same mounts enforce all three.
    const bool takes_mounts = feature == "protected_paths" || feature == "hidden_paths";
    const std::string& why = gaps.reason_for(takes_mounts ? "metadata"sv : feature);
    if (why.empty())
      report.enforced.push_back(feature);
    else
      report.missing.push_back(concat("%: %", {feature, why}));
  }
}

Expected<void> build_plan(SandboxState& state, SandboxPlanner& planner, SandboxGaps& gaps,
                          std::vector<std::string>& features) {
  const bool sandboxed = state.options.mode != SandboxMode::off;
  state.plan.supervised = sandboxed;
  if (sandboxed)
    for (const auto step : {&SandboxPlanner::open_grants, &SandboxPlanner::open_devices})
      if (auto opened = (planner.*step)(); !opened) return opened;
  if (state.options.limits.disk != no_bound) find_disk_roots(state);
  set_limits(state, gaps, features);
  if (!sandboxed) return {};
  state.report.network = planner.network;
  if (auto begun = planner.begin(); !begun) return begun;
  if (auto fitted = SandboxFitter(state, planner, gaps).fit(); !fitted) return fitted;
  if (planner.mounts && !wants_mounts(state.options) && gaps.reason_for("metadata").empty())
    features.push_back("metadata");
  if (state.plan.processes != no_bound) features.push_back("processes_in_common");
  judge_containment(state, gaps);
  share_supervisors(state);
  for (SandboxGrant& grant : state.grants) grant.file.reset();
  return {};
}

Expected<void> build(SandboxState& state) {
  SandboxGaps gaps;
  std::vector<std::string> features = features_of(state.options);
  SandboxPlanner planner(state, gaps);
  if (auto built = build_plan(state, planner, gaps, features); !built) return built;
  fill_report(state.report, gaps, features);
  if (state.options.explain) planner.explain();
  if (state.options.mode != SandboxMode::strict || state.report.missing.empty()) return {};
  std::string text;
  for (const std::string& entry : state.report.missing)
    append_all(text, {text.empty() ? "" : "; ", entry});
  return make_error(ErrorCode::unsupported, "sandbox: strict mode is refused, for lack of %",
                    {text});
}

#else

// Nothing of it can be had here.
Expected<void> build(SandboxState& state) {
  for (const std::string& feature : features_of(state.options))
    state.report.missing.push_back(concat("%: not on this system", {feature}));
  if (state.options.mode == SandboxMode::strict)
    return make_error(ErrorCode::unsupported,
                      "sandbox: strict mode needs Linux on x86_64 or aarch64");
  return {};
}

#endif

}  // namespace

inline namespace inner {

bool wants_mounts(const SandboxOptions& options) {
  return options.pid_namespace || !options.protected_paths.empty() || !options.hidden_paths.empty();
}

#if CODEEXEC_HAS_SANDBOX

std::string& SandboxGaps::reason_for(std::string_view feature) {
  for (auto& [missing, why] : reasons_)
    if (missing == feature) return why;
  reasons_.push_back({std::string(feature), {}});
  return reasons_.back().second;
}

void SandboxGaps::add(std::string_view feature, const char* why, Pieces values) {
  if (reason_for(feature).empty()) replace(feature, why, values);
}

void SandboxGaps::replace(std::string_view feature, const char* why, Pieces values) {
  reason_for(feature) = concat(why, values);
}

#endif

}  // namespace inner

Expected<Sandbox> Sandbox::create(const SandboxOptions& options) {
  if (auto checked = check_sandbox_options(options); !checked) return checked.failure();
  auto state = new_shared<State>();
  state->options = options;
  state->report.mode = options.mode;
  if (auto built = build(*state); !built) return built.failure();
  Sandbox sandbox;
  sandbox.state_ = std::move(state);
  return sandbox;
}

const SandboxReport& Sandbox::report() const noexcept {
  static const SandboxReport none;
  return state_ ? state_->report : none;
}

Expected<void> Sandbox::check_grants() const {
  if (!state_) return {};
  for (const SandboxGrant& grant : state_->grants) {
    struct stat status {};
    if (::fstatat(AT_FDCWD, grant.path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
      return system_error(errno, "grants: %", {in_quotes(grant.path)});
    if (status.st_dev != grant.device || status.st_ino != grant.inode)
      return make_error(ErrorCode::permission_denied,
                        "grants: % is no longer the file that was granted; restart to grant it",
                        {in_quotes(grant.path)});
  }
  return {};
}

}  // namespace v0_1
}  // namespace codeexec
