// What a child gets to confine itself with, prepared by the host.
//
// Building. create() does all that needs memory, names or time, once: a Landlock ruleset whose
// rules hold on to the granted files, the filter's program, the limits. What it leaves behind is a
// SandboxPlan, plain data that any number of children apply with raw system calls between clone and
// exec, on memory that they borrow from this program: no allocation, no lock, no errno.
//
// Trying. Whether a kernel, a container's filter or an emulator really does what its answers claim
// is learned by doing: a child applies the plan and attempts what is forbidden. A feature whose
// step fails is taken out of the plan, and the rest is tried again.
//
// Rules of Landlock are a union: what one grants no other can take back. So nothing is granted
// that has a secret in it; /etc and the prefixes of tools are granted entry by entry around theirs.
#pragma once

#include "sandbox/capabilities_internal.hpp"
#include "sandbox/sandbox.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// Whether commands have a network namespace of their own.
inline bool has_own_network(Network network) {
  return network == Network::loopback || network == Network::allow;
}

// The most file systems on which Limits::disk counts.
inline constexpr std::size_t most_disk_roots = 8;

#if CODEEXEC_HAS_SANDBOX
// These stand outside of `inner`, which becomes an unnamed namespace: they are fields of classes
// that the public declarations name.

// A limit as the kernel takes it.
struct SandboxRlimit {
  int resource = 0;
  std::uint64_t soft = 0;
  std::uint64_t hard = 0;
};

// The kernel's landlock_ruleset_attr and landlock_path_beneath_attr, of which headers of older
// systems lack parts.
struct LandlockAttributes {
  std::uint64_t handled_fs = 0;
  std::uint64_t handled_net = 0;
  std::uint64_t scoped = 0;
};
struct LandlockRule {
  std::uint64_t rights = 0;
  std::int32_t fd = -1;
};

// A writable directory, and the file that it was at create().
struct SandboxPlace {
  const char* path = nullptr;
  dev_t device = 0;
  ino_t inode = 0;
  bool is_inside = false;  // another writable one
};
inline constexpr std::size_t most_writable = 32;

// How many processes and threads all commands of a sandbox may have, unless a limit is asked for.
inline constexpr std::uint64_t most_processes = 2048;

// A file that the supervisor makes, replaces and removes for the command: see broker_internal.hpp.
struct BrokeredFile {
  const char* path = nullptr;
  const char* name = nullptr;  // the last part of it
  int directory = -1;          // a descriptor
};
inline constexpr std::size_t most_broker_directories = 8;

// A supervisor that waits for its next command. It ends with this object.
struct IdleSupervisor {
  IdleSupervisor() = default;
  IdleSupervisor(const IdleSupervisor&) = delete;
  IdleSupervisor& operator=(const IdleSupervisor&) = delete;
  virtual ~IdleSupervisor() = default;
};

// Those of one policy. Any thread may use it, and so may a fork of this program at any moment:
// there is no lock.
class IdleSupervisors {
 public:
  IdleSupervisors() = default;
  IdleSupervisors(const IdleSupervisors&) = delete;
  IdleSupervisors& operator=(const IdleSupervisors&) = delete;
  ~IdleSupervisors() {
    while (take()) {
    }
  }

  // Null: none waits.
  std::unique_ptr<IdleSupervisor> take() noexcept {
    for (std::atomic<IdleSupervisor*>& slot : slots_)
      if (slot.load(std::memory_order_relaxed))
        if (IdleSupervisor* found = slot.exchange(nullptr))
          return std::unique_ptr<IdleSupervisor>(found);
    return {};
  }

  // Ends it when as many wait as may.
  void keep(std::unique_ptr<IdleSupervisor> supervisor) noexcept {
    for (std::atomic<IdleSupervisor*>& slot : slots_) {
      IdleSupervisor* none = nullptr;
      if (!slot.compare_exchange_strong(none, supervisor.get())) continue;
      (void)supervisor.release();
      return;
    }
  }

 private:
  static constexpr std::size_t most = 16;
  std::atomic<IdleSupervisor*> slots_[most] = {};
};

// Namespaces that all commands of a sandbox have in common, by descriptors, or -1. They are entered
// in this order, the last one when all is set up: see namespaces_internal.hpp.
struct SharedNamespaces {
  int outer = -1;  // for users
  int mounts = -1;
  int ipc = -1;  // with the mounts
  int network = -1;
  int inner = -1;  // for users

  bool any() const { return outer >= 0 || mounts >= 0 || network >= 0; }
};

// Everything that the processes of a run need of a sandbox, as plain data that outlives them.
struct SandboxPlan {
  bool supervised = true;  // a supervisor stands between this program and the command
  // Where supervisors wait for their next commands; null: each has one command.
  IdleSupervisors* idle = nullptr;
  unsigned long clone_flags = 0;  // CLONE_NEW... of the supervisor
  SharedNamespaces shared = {};   // where it is started
  // What set_up_namespaces() writes when CLONE_NEWUSER is among the flags, else null.
  const char* uid_map = nullptr;
  const char* gid_map = nullptr;
  bool loopback = false;    // bring `lo` of the supervisor's network up
  bool proxied = false;     // hand this program a listening socket of it
  bool mount_proc = false;  // a /proc of the new process table
  // Everything is mounted read-only but `writable`; in these again what is `guarded`.
  bool read_only = false;
  const SandboxPlace* writable = nullptr;
  std::size_t writable_count = 0;
  // The protected paths, relative to each writable directory, and the hidden ones, absolute: a NUL
  // after each, and an empty one at the end. A path with a slash at its end only cannot be moved
  // away.
  const char* guarded = "";

  int ruleset = -1;  // Landlock's, or -1
  // With mount_proc: what the ruleset is made of, because a /proc that is mounted only then needs
  // a rule of its own. The descriptors must still be open in set_up_namespaces().
  const LandlockRule* rules = nullptr;
  std::size_t rule_count = 0;
  LandlockAttributes attributes = {};
  std::size_t attributes_size = 0;

  const BrokeredFile* brokered = nullptr;
  std::size_t brokered_count = 0;
  int broker_directories[most_broker_directories] = {};
  std::size_t broker_directory_count = 0;
  const sock_filter* broker_filter = nullptr;
  unsigned short broker_filter_size = 0;

  const sock_filter* filter = nullptr;  // or null
  unsigned short filter_size = 0;
  std::uint64_t processes = no_bound;  // of all commands together, which each supervisor sets
  const SandboxRlimit* rlimits = nullptr;
  std::size_t rlimit_count = 0;
  bool drop_capabilities = false;
  bool no_new_privs = false;

  bool has_own_mounts() const { return (clone_flags & CLONE_NEWNS) != 0 || shared.mounts >= 0; }
};

// Where the cgroups of runs are made: a directory that leaves can be added to.
struct CgroupBase {
  std::string directory = {};  // empty: there is none
  bool unified = false;        // cgroup v2
  int error = 0;               // why there is none, when the system has said so
};
#endif

// A granted path, and the file that it was at create().
struct SandboxGrant {
  std::string path = {};
  dev_t device = 0;
  ino_t inode = 0;
  bool writable = false;
  // While a sandbox is built:
  std::string given = {};  // as the options have it
  mode_t mode = 0;
  UniqueFd file = {};
};

// A directory with files that the supervisor makes for commands.
struct BrokeredDirectory {
  std::string path = {};
  UniqueFd fd = UniqueFd();
};

// One policy; the plan points into it.
struct SandboxState {
  SandboxOptions options = SandboxOptions();
  SandboxReport report = SandboxReport();
  std::list<SandboxGrant> grants = {};
  // Where Limits::disk counts, a directory of each file system; none without that limit.
  std::list<UniqueFd> disk_roots = {};
#if CODEEXEC_HAS_SANDBOX
  SandboxPlan plan = SandboxPlan();
  // Where the cgroups of runs are made, when one is needed and can be made. With cgroup v2 it is
  // the same directory.
  CgroupBase memory_base = {};
  CgroupBase process_base = {};

  UniqueFd ruleset = UniqueFd();
  std::list<UniqueFd> rule_files = {};
  std::vector<LandlockRule> rules = {};
  std::vector<sock_filter> filter = {};
  std::list<std::string> brokered_paths = {};
  std::vector<BrokeredFile> brokered = {};
  std::list<BrokeredDirectory> broker_directories = {};
  std::vector<sock_filter> broker_filter = {};
  SandboxRlimit rlimits[6] = {};  // one for each resource that Limits can bound
  SandboxPlace writable[most_writable] = {};
  std::string guarded = {};
  std::string shared_memory = {};
  std::string uid_map = {};
  std::string gid_map = {};
  UniqueFd shared[5] = {};  // of plan.shared
  // The last member, as its processes use what stands above.
  mutable IdleSupervisors idle = {};
#endif

  SandboxState() = default;
  SandboxState(const SandboxState&) = delete;
  SandboxState& operator=(const SandboxState&) = delete;
  ~SandboxState() = default;
};

}  // namespace v0_1
}  // namespace codeexec
