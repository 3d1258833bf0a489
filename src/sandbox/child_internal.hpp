// Confining a child, and trying it out.
#pragma once

#include "sandbox/capabilities_internal.hpp"
#include "sandbox/plan_internal.hpp"
#include "sandbox/sandbox.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if CODEEXEC_HAS_SANDBOX

inline namespace inner {

// The same on every architecture; headers of older systems lack some.
inline constexpr long number_of_clone3 = 435;
inline constexpr long number_of_landlock_create_ruleset = 444;
inline constexpr long number_of_landlock_add_rule = 445;

inline constexpr int rule_path_beneath = 1;  // LANDLOCK_RULE_PATH_BENEATH

// Landlock's rights, with the ABI that brought them when it was not the first.
inline constexpr std::uint64_t right_execute = 1u << 0;
inline constexpr std::uint64_t right_write_file = 1u << 1;
inline constexpr std::uint64_t right_read_file = 1u << 2;
inline constexpr std::uint64_t right_read_dir = 1u << 3;
inline constexpr std::uint64_t right_remove_dir = 1u << 4;
inline constexpr std::uint64_t right_remove_file = 1u << 5;
inline constexpr std::uint64_t right_make_dir = 1u << 7;
inline constexpr std::uint64_t right_make_reg = 1u << 8;
inline constexpr std::uint64_t right_make_sock = 1u << 9;
inline constexpr std::uint64_t right_make_fifo = 1u << 10;
inline constexpr std::uint64_t right_make_sym = 1u << 12;
inline constexpr std::uint64_t right_refer = 1u << 13;         // ABI 2, Linux 5.19
inline constexpr std::uint64_t right_truncate = 1u << 14;      // ABI 3, Linux 6.2
inline constexpr std::uint64_t right_ioctl_dev = 1u << 15;     // ABI 5, Linux 6.10
inline constexpr std::uint64_t right_resolve_unix = 1u << 16;  // ABI 9, Linux 7.1

inline constexpr std::uint64_t readable_rights = right_execute | right_read_file | right_read_dir;
// No right to make devices: a command of root's could make one of the disk, and read all of it.
inline constexpr std::uint64_t writable_rights =
    readable_rights | right_write_file | right_remove_dir | right_remove_file | right_make_dir |
    right_make_reg | right_make_sock | right_make_fifo | right_make_sym | right_refer |
    right_truncate | right_resolve_unix;
// Without ioctl, isatty() on /dev/null would say EACCES, which some programs do not take for a no.
inline constexpr std::uint64_t device_rights =
    right_read_file | right_write_file | right_truncate | right_ioctl_dev;
// What a rule for a file, and not a directory, may have.
inline constexpr std::uint64_t file_rights = right_execute | right_write_file | right_read_file |
                                             right_truncate | right_ioctl_dev | right_resolve_unix;

// While one child maps its user, no other thread of this program starts a child that does: see
// map_user().
class NamespaceTurn {
 public:
  explicit NamespaceTurn(bool maps_users) {
    // Never destroyed: threads may start programs until the very end.
    static std::mutex& mutex = *new std::mutex;
    if (maps_users) lock_ = std::unique_lock<std::mutex>(mutex);
  }

 private:
  std::unique_lock<std::mutex> lock_ = {};
};

// In the first process of the new namespaces, before it starts the command and while the plan's
// descriptors are open. 0 or a negative errno.
CODEEXEC_IN_CHILD long set_up_namespaces(const SandboxPlan& plan);

// The kernel's arguments of capget() and capset(), third version.
struct CapabilityHeader {
  std::uint32_t version = 0x20080522;
  int pid = 0;
};
struct CapabilityData {
  std::uint32_t effective = 0;
  std::uint32_t permitted = 0;
  std::uint32_t inheritable = 0;
};

// The parts of a start that the plan can fail in.
enum class ConfineStep : int {
  namespaces,
  limits,
  capabilities,
  privileges,
  landlock,
  filter,
  end
};

// In the command's process, after it has entered its directory and before its descriptors are
// closed. Returns 0 or a negative errno; `step`, when given, then names what failed.
CODEEXEC_IN_CHILD long confine(const SandboxPlan& plan, volatile ConfineStep* step = nullptr);

// Lowers a limit of this process. 0 or a negative errno.
CODEEXEC_IN_CHILD long lower_limit(const SandboxRlimit& limit);

// The very last step before execve: from here on the filter holds what this child does, too.
CODEEXEC_IN_CHILD long install_filter(const SandboxPlan& plan);

// What the child of a trial could do although the plan forbids it, and one thing that it could not
// although the plan promises it.
enum Breach : unsigned {
  breach_read = 1u << 0,        // listed a directory that is not granted
  breach_write = 1u << 1,       // opened a file for writing that is not granted
  breach_create = 1u << 2,      // made a directory outside
  breach_truncate = 1u << 3,    // emptied a file outside
  breach_signal = 1u << 4,      // could have sent a signal to this program
  breach_abstract = 1u << 5,    // reached an abstract socket of this program
  breach_filter = 1u << 6,      // a system call that the filter refuses went through
  breach_capability = 1u << 7,  // has capabilities left
  breach_privilege = 1u << 8,   // could gain privileges by executing a program
  breach_internet = 1u << 9,    // has sockets that it must not have
  breach_unix = 1u << 10,       // has a socket with a path
  breach_outside = 1u << 11,    // has a route that leads out of its own network
  breach_loopback = 1u << 12,   // has no working network of its own
  breach_metadata = 1u << 13,   // changed the times of a directory outside
};

// What one trial does and finds. The child writes it through the memory it shares; what only looks
// like shared memory (an emulator's fork) leaves `finished` false, and nothing is believed.
struct Trial {
  const SandboxPlan* plan = nullptr;
  Network network = Network::host;
  bool unix_sockets = false;
  int host = 0;                    // this program's process id
  const void* abstract = nullptr;  // the address of an abstract socket that listens here, or null
  unsigned abstract_size = 0;
  volatile ConfineStep step = ConfineStep::namespaces;
  volatile long error = 0;  // of that step: 0 or a negative errno
  volatile unsigned breaches = 0;
  volatile bool finished = false;
};

// Runs the trial in a child that borrows this program's memory and is waited for here. 0, or the
// negative errno with which no child could be made. No signal handler of this program runs
// meanwhile. The child sends no signal at its end, so no plain wait of another thread reaps it.
long run_trial(Trial& trial);

// An abstract socket of this program that a trial tries to reach, with a name that the kernel
// chooses. Its size is 0 when there can be none.
struct AbstractListener {
  UniqueFd fd = UniqueFd();
  sockaddr_un address = {};
  socklen_t size = 0;

  AbstractListener() {
    fd.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd) return;
    address.sun_family = AF_UNIX;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t length = sizeof address;
    if (::bind(fd.get(), generic, sizeof address.sun_family) == 0 && ::listen(fd.get(), 8) == 0 &&
        ::getsockname(fd.get(), generic, &length) == 0)
      size = length;
  }
};

}  // namespace inner

#endif

}  // namespace v0_1
}  // namespace codeexec
