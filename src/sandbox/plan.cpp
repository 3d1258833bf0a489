// The planner: grants, ruleset, filter, namespaces and mounts.

#include "sandbox/broker_internal.hpp"
#include "sandbox/builder_internal.hpp"
#include "sandbox/filter_internal.hpp"
#include "sandbox/grants_internal.hpp"
#include "sandbox/namespaces_internal.hpp"
#include "sandbox/sandbox_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "paths/paths.hpp"

namespace codeexec {
inline namespace v0_1 {

#if CODEEXEC_HAS_SANDBOX

inline namespace inner {

Expected<void> SandboxPlanner::open_grants() {
  for (const bool writable : {true, false})
    for (const std::string& path : writable ? state_.options.writable : state_.options.readable)
      if (auto opened = open_one(path, writable); !opened) return opened;
  for (std::string& path : state_.options.hidden_paths) {
    auto canonical = canonical_path(path);
    if (!canonical) return with_prefix("hidden_paths: ", {}, canonical.error());
    path = std::move(*canonical);
  }
  return {};
}

Expected<void> SandboxPlanner::open_one(const std::string& path, bool writable) {
  auto opened = open_grant(path);
  if (!opened) {
    if (state_.options.mode == SandboxMode::strict) return opened.failure();
    state_.report.missing.push_back(opened.error().message);
    return {};
  }
  const char* objection = writable ? objection_to_writing(*opened) : nullptr;
  if (opened->path == "/") objection = "is the whole system";
  if (objection)
    return make_error(ErrorCode::invalid_argument,
                      "grants: % %; name the directories that commands need",
                      {in_quotes(path), objection});
  if (!writable && lies_in_writable(opened->path)) {
    state_.report.missing.push_back(
        concat("read_only: % lies in a writable directory", {in_quotes(path)}));
    return {};
  }
  const struct stat& status = opened->status;
  state_.grants.push_back({std::move(opened->path), status.st_dev, status.st_ino, writable, path,
                           status.st_mode, std::move(opened->fd)});
  return {};
}

bool SandboxPlanner::lies_in_writable(const std::string& path) const {
  for (const SandboxGrant& grant : state_.grants)
    if (grant.writable && codeexec::is_within(path, grant.path)) return true;
  return false;
}

Expected<void> SandboxPlanner::begin() {
  find_landlock();
  state_.plan.drop_capabilities = true;
  state_.plan.no_new_privs = true;
  prepare_mounts();
  plan_broker(state_);
  processes = state_.options.pid_namespace;
  mounts = can_mount;
  if (landlock_abi > 0)
    if (auto built = build_ruleset(); !built) return built;
  choose_places();
  return {};
}

void SandboxPlanner::find_landlock() {
  constexpr int version = 1;  // LANDLOCK_CREATE_RULESET_VERSION
  const long abi = ::syscall(number_of_landlock_create_ruleset, nullptr, 0, version);
  if (abi > 0) {
    landlock_abi = static_cast<int>(std::min(abi, long{INT_MAX}));
    state_.report.landlock_abi = landlock_abi;
    return;
  }
  const int error = errno;
  if (error == ENOSYS || error == EOPNOTSUPP)
    landlock_problem = error == ENOSYS ? "the kernel has no Landlock (Linux 5.13)"
                                       : "Landlock is switched off (lsm= of the kernel)";
  else
    landlock_problem = concat("Landlock is not permitted here: %", {errno_text(error)});
}

void SandboxPlanner::drop_ruleset(const char* why, Pieces values) {
  landlock_abi = 0;
  landlock_problem = concat(why, values);
  state_.plan.ruleset = -1;
  state_.ruleset.reset();
  forget_rules();
}

void SandboxPlanner::forget_rules() {
  state_.plan.rules = nullptr;
  state_.plan.rule_count = 0;
  state_.rules.clear();
  state_.rule_files.clear();
}

Expected<void> SandboxPlanner::build_ruleset() {
  Ruleset ruleset;
  if (!ruleset.create(landlock_abi, network, state_.options.unix_sockets)) {
    drop_ruleset("no ruleset can be made: %", {errno_text(errno)});
    return {};
  }
  if (state_.options.pid_namespace) ruleset.keep_files();
  if (state_.options.explain) ruleset.keep_names();
  TreeGrants trees(ruleset);
  SystemGrants(ruleset, trees).add(state_.options);
  ToolGrants(ruleset, trees, state_.grants).add(state_.options.search_path);
  // Without the rules for the system no program would start.
  if (!add_devices(ruleset) || ruleset.error() != 0) {
    drop_ruleset("no rules can be made: %", {errno_text(ruleset.error())});
    return {};
  }
  const bool tools_in_tmp = ruleset.reaches_tmp();
  if (auto added = add_grants(ruleset); !added) return added;
  SandboxPlan& plan = state_.plan;
  plan.attributes = ruleset.attributes();
  plan.attributes_size = ruleset.size();
  granted_ = std::move(ruleset.named);
  state_.rules = std::move(ruleset.rules);
  state_.rule_files = std::move(ruleset.files);
  plan.rules = state_.rules.data();
  plan.rule_count = state_.rules.size();
  rules_of_host_ = state_.rules.size();
  granted_of_host_ = granted_.size();
  tools_in_tmp_ = tools_in_tmp;
  state_.ruleset = ruleset.take();
  plan.ruleset = state_.ruleset.get();
  return {};
}

Expected<void> SandboxPlanner::add_grants(Ruleset& ruleset) {
  for (const SandboxGrant& grant : state_.grants) {
    UniqueFd file(above_standard_streams(::fcntl(grant.file.get(), F_DUPFD_CLOEXEC, 3)));
    const std::uint64_t rights = grant.writable ? writable_rights : readable_rights;
    if (file && ruleset.add(std::move(file), grant.mode, rights, grant.path)) continue;
    auto error = system_error(errno, "grants: %", {in_quotes(grant.given)});
    if (state_.options.mode == SandboxMode::strict) return error;
    state_.report.missing.push_back(error.error().message);
  }
  return {};
}

void SandboxPlanner::plan_trial(bool user_namespace) {
  choose_namespaces(user_namespace);
  build_program();
}

void SandboxPlanner::choose_namespaces(bool user_namespace) {
  SandboxPlan& plan = state_.plan;
  plan.clone_flags = 0;
  plan.proxied = network == Network::allow;
  plan.loopback = has_own_network(network) && !state_.options.common_network;
  plan.mount_proc = processes;
  plan.read_only = mounts;
  if (mounts && (!places || *plan.guarded != '\0')) plan.clone_flags |= CLONE_NEWNS;
  if (plan.loopback) plan.clone_flags |= CLONE_NEWNET;
  if (processes) plan.clone_flags |= CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC;
  plan.uid_map = nullptr;
  plan.gid_map = nullptr;
  choose_shared(user_namespace);
  // Where users are mapped in what all commands have in common, it is done.
  if (plan.clone_flags == 0 || !user_namespace || maps_users()) return;
  const auto only = [](std::uint64_t id) { return concat("% % 1\n", {id, id}); };
  state_.uid_map = only(::geteuid());
  state_.gid_map = only(::getegid());
  plan.clone_flags |= CLONE_NEWUSER;
  plan.uid_map = state_.uid_map.c_str();
  plan.gid_map = state_.gid_map.c_str();
}

FilterOptions SandboxPlanner::filter_options() const {
  FilterOptions options;
  options.network = network;
  options.unix_sockets = state_.options.unix_sockets;
  options.landlock_abi = landlock_abi;
  options.own_processes = (state_.plan.clone_flags & CLONE_NEWPID) != 0;
  options.own_ipc = ((state_.plan.clone_flags | maker_->flags) & CLONE_NEWIPC) != 0;
  return options;
}

void SandboxPlanner::build_program() {
  if (!filter) {
    state_.plan.filter = nullptr;
    state_.plan.filter_size = 0;
    return;
  }
  state_.filter = build_filter(filter_options());
  state_.plan.filter = state_.filter.data();
  state_.plan.filter_size = static_cast<unsigned short>(state_.filter.size());
}

// Everything that can be written to, sorted: what lies in another comes after that.
void SandboxPlanner::prepare_mounts() {
  if (!wants_mounts(state_.options) && state_.options.tmp.empty()) return;
  can_mount = true;
  state_.plan.writable_count = 0;
  state_.guarded.clear();
  for (const SandboxGrant& grant : state_.grants)
    if (grant.writable) add_writable(grant.path.c_str(), grant.device, grant.inode);
  struct stat shared {};
  if (state_.options.shared_memory) state_.shared_memory = real_path_of("/dev/shm");
  if (::lstat(state_.shared_memory.c_str(), &shared) == 0)
    add_writable(state_.shared_memory.c_str(), shared.st_dev, shared.st_ino);
  if (!can_mount) return gaps_.add("metadata", "there are more than 32 writable directories");
  for (std::size_t i = 0; i < state_.plan.writable_count; ++i)
    for (std::size_t outer = 0; outer < i; ++outer)
      if (codeexec::is_within(state_.writable[i].path, state_.writable[outer].path))
        state_.writable[i].is_inside = true;
  // The directories above a guarded path are kept in their places: one that is moved away would
  // take the protected path with it, and a hidden one would be known to no tool that reads files.
  std::set<std::string> paths;
  const auto guard = [&paths](const std::string& path, std::size_t from) {
    paths.insert(std::string(path));
    for (std::size_t end = path.find('/', from); end != std::string::npos;
         end = path.find('/', end + 1))
      paths.insert(path.substr(0, end + 1));
  };
  for (const std::string& path : state_.options.protected_paths) guard(path, 0);
  for (const std::string& path : state_.options.hidden_paths) {
    std::size_t from = path.size();
    for (const SandboxGrant& grant : state_.grants)
      if (grant.writable && codeexec::is_within(path, grant.path))
        from = std::min(from, grant.path.size() + 1);
    guard(path, from);
  }
  for (const std::string& path : paths) state_.guarded.append(path.c_str(), path.size() + 1);
  state_.plan.writable = state_.writable;
  state_.plan.guarded = state_.guarded.c_str();
}

void SandboxPlanner::add_writable(const char* path, dev_t device, ino_t inode) {
  std::size_t& count = state_.plan.writable_count;
  if (count == most_writable) can_mount = false;
  if (!can_mount) return;
  SandboxPlace* place = &state_.writable[count++];
  for (; place != state_.writable && std::strcmp(path, place[-1].path) < 0; --place)
    *place = place[-1];
  *place = {path, device, inode};
}

Expected<void> SandboxPlanner::drop_loopback(std::string_view why) {
  gaps_.add("network", "% cannot be had (%); commands have none", {name(network), why});
  network = Network::none;
  // The ruleset depends on the network, so it is made again.
  return landlock_abi > 0 ? build_ruleset() : Expected<void>();
}

void SandboxPlanner::drop_all(const char* why) {
  for (const char* feature : sandbox_features) gaps_.replace(feature, "%", {why});
  for (const char* feature : {"pid_namespace", "metadata"}) gaps_.replace(feature, "%", {why});
  drop_ruleset("%", {why});
  filter = false;
  build_program();
  network = Network::host;
  state_.report.network = network;
  state_.report.landlock_abi = 0;
  state_.plan.supervised = false;
  state_.plan.drop_capabilities = false;
  state_.plan.no_new_privs = false;
}

}  // namespace inner

#endif

}  // namespace v0_1
}  // namespace codeexec
