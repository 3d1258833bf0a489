// The builder of a sandbox, and the public functions.

#include "sandbox/capabilities_internal.hpp"
#include "sandbox/child_internal.hpp"
#include "sandbox/filter_internal.hpp"
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

bool wants_mounts(const SandboxOptions& options) {
  return options.pid_namespace || !options.protected_paths.empty();
}

// What a report tells of, some of it where it is asked for.
void add_features(const SandboxOptions& options, std::vector<std::string>& features) {
  for (const char* feature : sandbox_features) features.push_back(feature);
  if (options.pid_namespace) features.push_back("pid_namespace");
  if (wants_mounts(options)) features.push_back("metadata");
  if (!options.protected_paths.empty()) features.push_back("protected_paths");
}

#if CODEEXEC_HAS_SANDBOX
// Fills in a state: the plan, and the report of what it does.
class SandboxBuilder {
 public:
  explicit SandboxBuilder(SandboxState& state) : state_(state), options_(state.options) {}

  Expected<void> build() {
    if (auto checked = check_sandbox_options(options_); !checked) return checked;
    state_.report.mode = options_.mode;
    const bool sandboxed = options_.mode != SandboxMode::off;
    state_.plan.supervised = sandboxed;
    if (sandboxed)
      if (auto opened = open_grants(); !opened) return opened;
    if (options_.limits.disk != 0) find_disk_roots();
    set_limits();
    if (sandboxed) {
      state_.report.network = network_;
      if (auto made = make_plan(); !made) return made;
      if (auto tried = try_plan(); !tried) return tried;
      judge_containment();
    }
    write_report(sandboxed);
    if (options_.mode == SandboxMode::strict && !state_.report.missing.empty())
      return make_error(ErrorCode::unsupported, "%", {refusal()});
    return {};
  }

 private:
  struct Grant {
    OpenedGrant file = {};
    std::string given = {};
    std::uint64_t rights = 0;
  };

  bool strict() const { return options_.mode == SandboxMode::strict; }

  // A supervisor finds its children by a list of the kernel's, which is an option of it, or has a
  // process table for them alone.
  void judge_containment() {
    const bool own_table = (state_.plan.clone_flags & CLONE_NEWPID) != 0;
    if (!own_table && ::access("/proc/thread-self/children", R_OK) != 0)
      miss("containment", "/proc has no lists of children here");
  }

  // Why a feature is missing; the first reason stays unless it is told `anew`. None: it may be had
  // after all.
  void miss(const char* feature, const char* why, Pieces values = {}, bool anew = false) {
    std::string& known = reason_for(feature);
    if (anew || known.empty()) known = concat(why, values);
  }

  // Empty when the feature is not missing.
  std::string& reason_for(std::string_view feature) {
    for (auto& [missing, why] : missing_)
      if (missing == feature) return why;
    missing_.push_back({std::string(feature), {}});
    return missing_.back().second;
  }

  Expected<void> open_grants() {
    for (const std::string& path : options_.writable)
      if (auto added = open_one(path, writable_rights); !added) return added;
    for (const std::string& path : options_.readable)
      if (auto added = open_one(path, readable_rights); !added) return added;
    return {};
  }

  Expected<void> open_one(const std::string& path, std::uint64_t rights) {
    auto opened = open_grant(path);
    if (!opened) {
      if (strict()) return opened.failure();
      state_.report.missing.push_back(opened.error().message);
      return {};
    }
    const bool writable = rights == writable_rights;
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
    state_.grants.push_back({opened->path, opened->status.st_dev, opened->status.st_ino, writable});
    Grant grant;
    grant.file = std::move(*opened);
    grant.given = path;
    grant.rights = rights;
    grants_.push_back(std::move(grant));
    return {};
  }

  bool lies_in_writable(const std::string& path) const {
    for (const Grant& grant : grants_)
      if (grant.rights == writable_rights && codeexec::is_within(path, grant.file.path))
        return true;
    return false;
  }

  // A few at most: each costs every command two system calls.
  void find_disk_roots() {
    dev_t devices[most_disk_roots] = {};
    for (const std::string& path : options_.writable) {
      auto opened = open_grant(path);
      std::size_t known = 0;
      while (opened && known < state_.disk_roots.size() && devices[known] != opened->status.st_dev)
        ++known;
      if (!opened || known < state_.disk_roots.size() || known == most_disk_roots) continue;
      devices[known] = opened->status.st_dev;
      state_.disk_roots.push_back(UniqueFd(above_standard_streams(opened->fd.release())));
    }
  }

  // limits ----------------------------------------------------------------------------------------

  void add_rlimit(int resource, std::uint64_t soft, std::uint64_t hard) {
    SandboxRlimit& limit = state_.rlimits[state_.plan.rlimit_count++];
    limit.resource = resource;
    limit.soft = soft;
    limit.hard = hard;
  }

  // What the kernel offers without a cgroup is another limit, and has another name.
  void instead_of_cgroup(int error, const char* limit, const char* what, const char* other) {
    const std::string reason = error == 0 ? "" : concat(" (%)", {errno_text(error)});
    miss(limit,
         "no cgroup can be made here%, so %, which only best_effort accepts; run this program by "
         "`systemd-run --user --scope -p Delegate=yes`",
         {reason, what});
    if (other) other_limits_[other_count_++] = other;
  }

  void set_limits() {
    const Limits& limits = options_.limits;
    // A second between the signal that can be caught and the one that cannot.
    if (limits.cpu_time != 0) add_rlimit(RLIMIT_CPU, limits.cpu_time, limits.cpu_time + 1);
    if (limits.address_space != 0)
      add_rlimit(RLIMIT_AS, limits.address_space, limits.address_space);
    if (limits.open_files != 0) add_rlimit(RLIMIT_NOFILE, limits.open_files, limits.open_files);
    // Nothing tells when a disk fills up, but one file does.
    std::uint64_t file_size = limits.file_size;
    if (limits.disk != 0 && (file_size == 0 || limits.disk < file_size)) file_size = limits.disk;
    if (file_size != 0) add_rlimit(RLIMIT_FSIZE, file_size, file_size);
    if (limits.memory != 0) {
      state_.memory_base = find_cgroup_base(true);
      if (state_.memory_base.directory.empty()) {
        add_rlimit(RLIMIT_DATA, limits.memory, limits.memory);
        instead_of_cgroup(state_.memory_base.error, "memory", "it holds for each process alone",
                          "memory_per_process");
      }
    }
    if (limits.processes != 0) {
      state_.process_base = find_cgroup_base(false);
      if (state_.process_base.directory.empty()) {
        add_rlimit(RLIMIT_NPROC, limits.processes, limits.processes);
        if (::getuid() == 0)
          instead_of_cgroup(state_.process_base.error, "processes",
                            "the kernel does not count root's", nullptr);
        else
          instead_of_cgroup(state_.process_base.error, "processes", "all of the user's are counted",
                            "processes_per_user");
      }
    }
    if (limits.disk != 0 && state_.disk_roots.empty())
      miss("disk", "no writable directory is granted");
    state_.plan.rlimits = state_.rlimits;
  }

  // plan ------------------------------------------------------------------------------------------

  Expected<void> make_plan() {
    find_landlock();
    if (abi_ > 0)
      if (auto built = build_ruleset(); !built) return built;
    state_.plan.drop_capabilities = true;
    state_.plan.no_new_privs = true;
    return {};
  }

  void find_landlock() {
    constexpr int version = 1;  // LANDLOCK_CREATE_RULESET_VERSION
    const long abi = ::syscall(number_of_landlock_create_ruleset, nullptr, 0, version);
    if (abi > 0) {
      abi_ = static_cast<int>(std::min(abi, long{INT_MAX}));
      state_.report.landlock_abi = abi_;
      return;
    }
    const int error = errno;
    if (error == ENOSYS || error == EOPNOTSUPP)
      landlock_problem_ = error == ENOSYS ? "the kernel has no Landlock (Linux 5.13)"
                                          : "Landlock is switched off (lsm= of the kernel)";
    else
      landlock_problem_ = concat("Landlock is not permitted here: %", {errno_text(error)});
  }

  SandboxOptions effective_options() const {
    SandboxOptions options;
    options.network = network_;
    options.unix_sockets = options_.unix_sockets;
    return options;
  }

  void drop_ruleset(const char* why, Pieces values = {}) {
    abi_ = 0;
    landlock_problem_ = concat(why, values);
    state_.plan.ruleset = -1;
    state_.ruleset.reset();
    forget_rules();
  }

  // The files of the rules are kept open for a second ruleset only.
  void forget_rules() {
    state_.plan.rules = nullptr;
    state_.plan.rule_count = 0;
    state_.rules.clear();
    state_.rule_files.clear();
  }

  Expected<void> build_ruleset() {
    Ruleset ruleset;
    if (!ruleset.create(abi_, effective_options())) {
      drop_ruleset("no ruleset can be made: %", {errno_text(errno)});
      return {};
    }
    if (options_.pid_namespace) ruleset.keep_files();
    TreeGrants trees(ruleset);
    SystemGrants(ruleset, trees).add(options_);
    std::vector<std::string> writable;
    for (const Grant& grant : grants_)
      if (grant.rights == writable_rights) writable.push_back(grant.file.path);
    ToolGrants(ruleset, trees, state_.grants, std::move(writable)).add(options_.search_path);
    // Without them no program would start.
    if (ruleset.error() != 0) {
      drop_ruleset("no rules can be made: %", {errno_text(ruleset.error())});
      return {};
    }
    for (const Grant& grant : grants_) {
      UniqueFd file(above_standard_streams(::fcntl(grant.file.fd.get(), F_DUPFD_CLOEXEC, 3)));
      if (!file || !ruleset.add(std::move(file), grant.file.status.st_mode, grant.rights)) {
        const Error error = system_error(errno, "grants: %", {in_quotes(grant.given)});
        if (strict()) return error;
        state_.report.missing.push_back(error.message);
      }
    }
    SandboxPlan& plan = state_.plan;
    plan.attributes = ruleset.attributes();
    plan.attributes_size = ruleset.size();
    state_.rules = std::move(ruleset.rules);
    state_.rule_files = std::move(ruleset.files);
    plan.rules = state_.rules.data();
    plan.rule_count = state_.rules.size();
    state_.ruleset = ruleset.take();
    plan.ruleset = state_.ruleset.get();
    return {};
  }

  void build_program() {
    if (!with_filter_) {
      state_.plan.filter = nullptr;
      state_.plan.filter_size = 0;
      return;
    }
    FilterOptions options;
    options.network = network_;
    options.unix_sockets = options_.unix_sockets;
    options.landlock_abi = abi_;
    options.own_processes = (state_.plan.clone_flags & CLONE_NEWPID) != 0;
    options.own_ipc = (state_.plan.clone_flags & CLONE_NEWIPC) != 0;
    state_.filter = build_filter(options);
    state_.plan.filter = state_.filter.data();
    state_.plan.filter_size = static_cast<unsigned short>(state_.filter.size());
  }

  // The namespaces that are wanted still, with a user namespace around them or without.
  void choose_namespaces(bool user_namespace) {
    SandboxPlan& plan = state_.plan;
    plan.clone_flags = 0;
    plan.loopback = network_ == Network::loopback;
    plan.mount_proc = with_processes_;
    plan.read_only = with_mounts_;
    if (with_mounts_) plan.clone_flags |= CLONE_NEWNS;
    if (plan.loopback) plan.clone_flags |= CLONE_NEWNET;
    if (with_processes_) plan.clone_flags |= CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC;
    plan.uid_map = nullptr;
    plan.gid_map = nullptr;
    if (plan.clone_flags == 0 || !user_namespace) return;
    const auto only = [](std::uint64_t id) { return concat("% % 1\n", {id, id}); };
    state_.uid_map = only(::geteuid());
    state_.gid_map = only(::getegid());
    plan.clone_flags |= CLONE_NEWUSER;
    plan.uid_map = state_.uid_map.c_str();
    plan.gid_map = state_.gid_map.c_str();
  }

  // Everything that can be written to, sorted, so that what lies in another is mounted on that.
  void prepare_mounts() {
    if (!wants_mounts(options_)) return;
    can_mount_ = true;
    for (const SandboxGrant& grant : state_.grants)
      if (grant.writable) add_writable(grant.path, grant.device, grant.inode);
    struct stat shared {};
    if (options_.shared_memory) state_.shared_memory = real_path_of("/dev/shm");
    if (::lstat(state_.shared_memory.c_str(), &shared) == 0)
      add_writable(state_.shared_memory, shared.st_dev, shared.st_ino);
    if (!can_mount_) return miss("metadata", "there are more than 32 writable directories");
    // What lies above is kept in its place, or it could be moved away with all that is in it.
    std::set<std::string> paths;
    for (const std::string& path : options_.protected_paths) {
      paths.insert(std::string(path));
      for (std::size_t end = path.find('/'); end != std::string::npos;
           end = path.find('/', end + 1))
        paths.insert(path.substr(0, end + 1));
    }
    for (const std::string& path : paths) state_.guarded.append(path.c_str(), path.size() + 1);
    state_.plan.writable = state_.writable;
    state_.plan.guarded = state_.guarded.c_str();
  }

  void add_writable(const std::string& path, dev_t device, ino_t inode) {
    std::size_t& count = state_.plan.writable_count;
    if (count == most_writable) can_mount_ = false;
    if (!can_mount_) return;
    SandboxPlace* place = &state_.writable[count++];
    for (; place != state_.writable && path < place[-1].path; --place) *place = place[-1];
    *place = {path.c_str(), device, inode};
  }

  // trial -----------------------------------------------------------------------------------------

  Expected<void> try_plan() {
    const AbstractListener listener;
    prepare_mounts();
    with_processes_ = options_.pid_namespace;
    with_mounts_ = can_mount_;
    bool user_namespace = ::geteuid() != 0;
    for (;;) {
      choose_namespaces(user_namespace);
      build_program();
      Trial trial;
      trial.plan = &state_.plan;
      trial.network = network_;
      trial.unix_sockets = options_.unix_sockets;
      trial.host = static_cast<int>(::getpid());
      if (listener.size != 0) {
        trial.abstract = &listener.address;
        trial.abstract_size = listener.size;
      }
      const NamespaceTurn turn(state_.plan);
      const long started = run_trial(trial);
      const long error = started < 0 ? started : long{trial.error};
      const bool by_namespaces =
          state_.plan.clone_flags != 0 &&
          (started < 0 || trial.step == ConfineStep::namespaces || !trial.finished);
      if (by_namespaces) {
        if (!user_namespace)
          user_namespace = true;
        else if (auto left = leave_out_namespace(error); !left)
          return left;
        else
          user_namespace = ::geteuid() != 0;
        continue;
      }
      // No kernel refuses a child on borrowed memory: it is an emulator.
      if (started == -EINVAL || started == -ENOSYS) {
        give_up_all("an emulator, in which no trial can be run");
        return {};
      }
      if (started < 0 || !trial.finished)
        return system_error(started < 0 ? static_cast<int>(-started) : ENOSYS,
                            "sandbox: the trial of it could not be run");
      if (error == 0) {
        if ((trial.breaches & breach_loopback) != 0 && network_ == Network::loopback) {
          if (auto left = give_up_loopback("127.0.0.1 does not work in it"sv); !left) return left;
          continue;
        }
        judge(trial);
        if (!state_.plan.mount_proc) forget_rules();
        return {};
      }
      if (!leave_out_step(trial.step, static_cast<int>(-error)))
        return system_error(static_cast<int>(-error), "sandbox: limits");
    }
  }

  Expected<void> give_up_loopback(std::string_view why) {
    miss("network", "loopback cannot be had (%); commands have none", {why});
    network_ = Network::none;
    // Its rules for the network are others.
    if (abi_ > 0) return build_ruleset();
    return {};
  }

  // What no trial has confirmed is not claimed. Commands run as with mode off, in their limits.
  void give_up_all(const char* why) {
    for (const char* feature : sandbox_features) miss(feature, "%", {why}, true);
    for (const char* feature : {"pid_namespace", "metadata"}) miss(feature, "%", {why}, true);
    drop_ruleset("%", {why});
    with_filter_ = false;
    build_program();
    network_ = Network::host;
    state_.report.network = network_;
    state_.report.landlock_abi = 0;
    state_.plan.supervised = false;
    state_.plan.drop_capabilities = false;
    state_.plan.no_new_privs = false;
  }

  // What is missed least goes first, but comes back when the network was at fault.
  Expected<void> leave_out_namespace(long error) {
    const std::string why = concat("no namespaces can be made here: %",
                                   {errno_text(error != 0 ? static_cast<int>(-error) : ENOSYS)});
    if (with_mounts_) {
      with_mounts_ = false;
      miss("metadata", "%", {why});
      return {};
    }
    if (with_processes_) {
      with_processes_ = false;
      miss("pid_namespace", "%", {why});
      return {};
    }
    with_processes_ = options_.pid_namespace;
    miss("pid_namespace", "", {}, true);
    with_mounts_ = can_mount_;
    if (can_mount_) miss("metadata", "", {}, true);
    return give_up_loopback(why);
  }

  bool leave_out_step(ConfineStep step, int error) {
    SandboxPlan& plan = state_.plan;
    const std::string why = errno_text(error);
    switch (step) {
      case ConfineStep::capabilities:
        plan.drop_capabilities = false;
        miss("privileges", "capabilities cannot be dropped: %", {why});
        return true;
      case ConfineStep::privileges:
        plan.no_new_privs = false;
        miss("privileges", "no_new_privs cannot be set: %", {why});
        return true;
      case ConfineStep::landlock:
        drop_ruleset("Landlock cannot be put in force: %", {why});
        return true;
      case ConfineStep::filter:
        with_filter_ = false;
        miss("system_calls", "a filter (seccomp) cannot be installed: %", {why});
        return true;
      case ConfineStep::namespaces:
      case ConfineStep::limits:
      case ConfineStep::end:
        break;
    }
    return false;
  }

  // report ----------------------------------------------------------------------------------------

  void judge(const Trial& trial) {
    constexpr const char* broken = "it is claimed to be there, but a trial got around it";
    const unsigned breaches = trial.breaches;
    const auto has = [&](unsigned some) { return (breaches & some) != 0; };
    if (abi_ == 0) {
      for (const char* feature : {"filesystem", "rename", "truncate", "devices"})
        miss(feature, "%", {landlock_problem_});
    } else {
      // The trial writes to a file there.
      const bool could_be_tried = ::access("/proc/self/comm", F_OK) == 0;
      const char* const why = could_be_tried ? broken : "it cannot be tried without /proc";
      if (has(breach_read | breach_write | breach_create)) miss("filesystem", "%", {why});
      if (abi_ < rename_abi) miss("rename", "needs Landlock ABI 2");
      if (has(breach_truncate))
        miss("truncate", "%", {abi_ < truncate_abi ? "needs Landlock ABI 3" : why});
      if (abi_ < ioctl_abi) miss("devices", "needs Landlock ABI 5");
    }
    const std::string_view scope = abi_ == 0          ? std::string_view(landlock_problem_)
                                   : abi_ < scope_abi ? "needs Landlock ABI 6"
                                                      : broken;
    if (has(breach_signal)) miss("signals", "%", {scope});
    if (has(breach_abstract)) miss("abstract_sockets", "%", {scope});
    if (has(breach_capability | breach_privilege)) miss("privileges", "%", {broken});
    if (has(breach_filter)) miss("system_calls", "%", {broken});
    if (has(breach_metadata)) miss("metadata", "%", {broken});
    judge_network(breaches);
  }

  void judge_network(unsigned breaches) {
    state_.report.network = network_;
    if ((breaches & (breach_internet | breach_outside)) != 0) {
      state_.report.network = Network::host;
      miss("network", "%",
           {with_filter_ ? "a trial could make sockets"
                         : "it needs a filter (seccomp), which cannot be installed"},
           true);
    } else if ((breaches & breach_unix) != 0) {
      miss("network", "sockets with a path reach services of this host");
    }
  }

  void write_report(bool sandboxed) {
    std::vector<std::string> features;
    if (sandboxed) add_features(options_, features);
    for (const NamedLimit& limit : limit_names)
      if (options_.limits.*limit.value != 0) features.push_back(limit.name);
    for (std::size_t i = 0; i < other_count_; ++i) features.push_back(other_limits_[i]);
    for (const std::string& feature : features) {
      // One is had by what the other is had by.
      const std::string& why = reason_for(feature == "protected_paths" ? "metadata"sv : feature);
      if (why.empty())
        state_.report.enforced.push_back(feature);
      else
        state_.report.missing.push_back(concat("%: %", {feature, why}));
    }
  }

  std::string refusal() const {
    std::string text = "sandbox: strict mode is refused, for lack of ";
    for (const std::string& entry : state_.report.missing) {
      if (&entry != &state_.report.missing.front()) text += "; ";
      text += entry;
    }
    return text;
  }

  SandboxState& state_;
  const SandboxOptions& options_;
  Network network_ = options_.network;
  std::list<Grant> grants_ = {};
  std::vector<std::pair<std::string, std::string>> missing_ = {};  // features, and why
  const char* other_limits_[2] = {};
  std::size_t other_count_ = 0;
  int abi_ = 0;
  std::string landlock_problem_ = {};
  bool with_filter_ = true;
  bool with_processes_ = false;
  bool can_mount_ = false;
  bool with_mounts_ = false;
};
#else
// Nothing of it can be had here.
Expected<void> build_without_kernel(SandboxState& state) {
  const SandboxOptions& options = state.options;
  if (auto checked = check_sandbox_options(options); !checked) return checked;
  state.report.mode = options.mode;
  constexpr const char* why = ": not on this system";
  std::vector<std::string> features;
  if (options.mode != SandboxMode::off) add_features(options, features);
  for (const NamedLimit& limit : limit_names)
    if (options.limits.*limit.value != 0) features.push_back(limit.name);
  for (const std::string& feature : features)
    state.report.missing.push_back(concat({feature, why}));
  if (options.mode == SandboxMode::strict)
    return make_error(ErrorCode::unsupported,
                      "sandbox: strict mode needs Linux on x86_64 or aarch64");
  return {};
}
#endif

}  // namespace

Expected<Sandbox> Sandbox::create(const SandboxOptions& options) {
  auto state = new_shared<State>();
  state->options = options;
#if CODEEXEC_HAS_SANDBOX
  auto built = SandboxBuilder(*state).build();
#else
  auto built = build_without_kernel(*state);
#endif
  if (!built) return built.failure();
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
