// What commands have in place of the host's /tmp, /dev/shm, terminals and network.

#include "sandbox/builder_internal.hpp"
#include "sandbox/grants_internal.hpp"
#include "sandbox/namespaces_internal.hpp"
#include "sandbox/plan_internal.hpp"
#include "sandbox/sandbox_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "paths/paths.hpp"

namespace codeexec {
inline namespace v0_1 {

#if CODEEXEC_HAS_SANDBOX

namespace {

std::string one_id(std::uint64_t inside, std::uint64_t outside) {
  return concat("% % 1\n", {inside, outside});
}

// With the host's network commands may use sockets with a path, as far as its permissions go.
bool reaches_sockets(const SandboxOptions& options) {
  return options.network == Network::host || options.unix_sockets;
}

bool lies_strictly_in(std::string_view path, std::string_view directory) {
  return codeexec::is_within(path, directory) && path.size() > directory.size();
}

}  // namespace

inline namespace inner {

// False: there is no room.
bool SandboxPlanner::keep_in_tmp(const char* path, const struct stat& status, bool is_read_only) {
  NamespaceMaker& maker = *maker_;
  if (maker.kept_count == most_kept) return false;
  KeptPath* kept = &maker.kept[maker.kept_count++];
  for (; kept != maker.kept && std::strcmp(path, kept[-1].place.path) < 0; --kept) *kept = kept[-1];
  *kept = {{path, status.st_dev, status.st_ino},
           std::strlen(path),
           S_ISDIR(status.st_mode),
           is_read_only};
  return true;
}

// What is granted below /tmp stays there. Null, or why /tmp has to stay the host's.
const char* SandboxPlanner::keep_granted() {
  const std::string_view tmp = tmp_path;
  if (real_path_of(tmp_path) != tmp) return "it is a link";
  for (const std::string& path : state_.options.replaceable)
    if (lies_strictly_in(path, tmp)) return "a linked git worktree lies in it";
  if (tools_in_tmp_) return "a directory of PATH lies in it";
  for (const SandboxGrant& grant : state_.grants) {
    if (codeexec::is_within(tmp, grant.path)) return "it is granted";
    if (!lies_strictly_in(grant.path, tmp)) continue;
    struct stat status {};
    status.st_dev = grant.device;
    status.st_ino = grant.inode;
    status.st_mode = grant.mode;
    if (!keep_in_tmp(grant.path.c_str(), status, !grant.writable))
      return "more than 64 granted paths lie in it";
  }
  if (!reaches_sockets(state_.options)) return nullptr;
  const char* const agent = std::getenv("SSH_AUTH_SOCK");
  agent_socket_ = agent ? agent : "";
  for (const char* const path : {"/tmp/.X11-unix", agent_socket_.c_str()}) {
    struct stat status {};
    const bool is_there = lies_strictly_in(path, tmp) && ::lstat(path, &status) == 0 &&
                          real_path_of(path) == path &&
                          (S_ISDIR(status.st_mode) || S_ISSOCK(status.st_mode));
    if (is_there && !keep_in_tmp(path, status, true)) return "more than 64 granted paths lie in it";
  }
  return nullptr;
}

void SandboxPlanner::choose_places() {
  const SandboxOptions& options = state_.options;
  maker_ = std::make_unique<NamespaceMaker>();
  maker_->plan = &state_.plan;
  if (options.tmp.empty()) return;
  places = true;
  if (const char* const problem = keep_granted()) tmp_problem_ = problem;
  if (auto opened = open_grant(options.tmp); !opened) {
    tmp_problem_ = opened.error().message;
  } else {
    tmp_source_ = std::move(opened->path);
    tmp_ = {tmp_source_.c_str(), opened->status.st_dev, opened->status.st_ino};
  }
  if (tmp_problem_.empty()) maker_->tmp = &tmp_;
  maker_->terminals = !options.terminals;
  for (const SandboxGrant& grant : state_.grants)
    if (codeexec::is_within(grant.path, memory_path)) memory_problem_ = "a granted path lies in it";
  // Else it may have half of the memory.
  memory_options_ = "mode=1777";
  if (options.limits.memory != no_bound)
    append_all(memory_options_, ",size=%", {std::max(options.limits.memory, std::uint64_t{4096})});
  if (!options.shared_memory && memory_problem_.empty()) maker_->memory = memory_options_.c_str();
}

// What of the namespaces all commands have in common.
void SandboxPlanner::choose_shared(bool user_namespace) {
  NamespaceMaker& maker = *maker_;
  SandboxPlan& plan = state_.plan;
  maker.flags = 0;
  if (places) maker.flags |= CLONE_NEWNS | CLONE_NEWIPC;
  if (has_own_network(network) && !plan.loopback) maker.flags |= CLONE_NEWNET;
  const bool maps_users = maker.flags != 0 && user_namespace;
  if (maps_users) maker.flags |= CLONE_NEWUSER;
  user_maps_[0] = one_id(0, ::geteuid());
  user_maps_[1] = one_id(0, ::getegid());
  user_maps_[2] = one_id(::geteuid(), 0);
  user_maps_[3] = one_id(::getegid(), 0);
  const char** const texts[] = {&maker.outer_users, &maker.outer_groups, &maker.inner_users,
                                &maker.inner_groups};
  for (int i = 0; i < 4; ++i) *texts[i] = maps_users ? user_maps_[i].c_str() : nullptr;
}

bool SandboxPlanner::has_namespaces() const {
  return state_.plan.clone_flags != 0 || maker_->flags != 0;
}

bool SandboxPlanner::maps_users() const { return state_.plan.uid_map || maker_->outer_users; }

// A place whose rule cannot be added stays closed.
void SandboxPlanner::grant_place(OwnPlace& place, const char* path, std::uint64_t rights) {
  if (place.fd < 0) return;
  UniqueFd file(above_standard_streams(std::exchange(place.fd, -1)));
  SandboxPlan& plan = state_.plan;
  LandlockRule rule;
  rule.rights = rights & plan.attributes.handled_fs;
  rule.fd = file.get();
  if (plan.ruleset >= 0 &&
      ::syscall(number_of_landlock_add_rule, plan.ruleset, rule_path_beneath, &rule, 0) != 0) {
    place.error = -errno;
    return;
  }
  if (state_.options.explain) granted_.push_back({rule.rights, path});
  if (!state_.options.pid_namespace) return;
  state_.rules.push_back(rule);
  state_.rule_files.push_back(std::move(file));
  plan.rules = state_.rules.data();
  plan.rule_count = state_.rules.size();
}

long SandboxPlanner::make_shared_namespaces() {
  NamespaceMaker& maker = *maker_;
  SandboxPlan& plan = state_.plan;
  plan.shared = {};
  for (UniqueFd& fd : state_.shared) fd.reset();
  if (state_.rules.size() > rules_of_host_) state_.rules.resize(rules_of_host_);
  if (granted_.size() > granted_of_host_) granted_.resize(granted_of_host_);
  maker.made = {};
  maker.counts_processes = false;
  plan.processes = no_bound;
  maker.own_tmp = maker.own_memory = maker.own_terminals = maker.own_multiplexer = {};
  if (maker.flags == 0) return 0;
  prepare_mounts();
  const long made = make_namespaces(maker);
  int* const numbers[] = {&maker.made.outer, &maker.made.mounts, &maker.made.ipc,
                          &maker.made.network, &maker.made.inner};
  for (int i = 0; i < 5; ++i) {
    state_.shared[i].reset(above_standard_streams(*numbers[i]));
    *numbers[i] = state_.shared[i].get();
  }
  struct stat memory {};
  if (maker.own_memory.fd >= 0 && ::fstat(maker.own_memory.fd, &memory) != 0)
    maker.own_memory.error = -errno;
  grant_place(maker.own_tmp, tmp_path, writable_rights);
  grant_place(maker.own_memory, memory_path, writable_rights);
  grant_place(maker.own_terminals, terminals_path, device_rights | right_read_dir);
  grant_place(maker.own_multiplexer, multiplexer_path, device_rights & file_rights);
  if (made < 0) return made;
  plan.shared = maker.made;
  if (maker.counts_processes && state_.options.limits.processes == no_bound)
    plan.processes = most_processes;
  if (maker.tmp && maker.own_tmp.error == 0) add_writable(tmp_path, tmp_.device, tmp_.inode);
  if (maker.memory && maker.own_memory.error == 0)
    add_writable(memory_path, memory.st_dev, memory.st_ino);
  return 0;
}

// One line for each: whose it is, why there is none, and what helps.
void SandboxPlanner::report_places() {
  const SandboxOptions& options = state_.options;
  if (options.tmp.empty()) return;
  const auto add = [&](const char* name, bool is_open, const std::string& problem,
                       const OwnPlace& place, const char* advice) {
    std::string why = places ? problem : places_problem;
    if (why.empty() && place.error != 0) why = errno_text(static_cast<int>(-place.error));
    std::vector<std::string>& lines = state_.report.places;
    if (is_open)
      lines.push_back(concat("%: the host's", {name}));
    else if (why.empty())
      lines.push_back(concat("%: own", {name}));
    else
      lines.push_back(concat("%: none (%); %", {name, why, advice}));
  };
  add("tmp", false, tmp_problem_, maker_->own_tmp, "TMPDIR is for such files");
  add("shared_memory", options.shared_memory, memory_problem_, maker_->own_memory,
      "the option shared_memory opens the host's");
  add("terminals", options.terminals, {}, maker_->own_terminals,
      "the option terminals opens the host's");
  if (const std::string& why = gaps_.reason_for("metadata"); !wants_mounts(options) && !why.empty())
    state_.report.places.push_back(
        concat("metadata: none (%); modes and times of the user's files can be changed", {why}));
}

}  // namespace inner

#endif

}  // namespace v0_1
}  // namespace codeexec
