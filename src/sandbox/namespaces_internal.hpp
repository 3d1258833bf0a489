// Namespaces that all commands of a sandbox have in common: /tmp, /dev/shm, terminals, a network.
//
// Made once, by a process that leaves descriptors of them in the table that it shares with this
// program, and ends. A supervisor is the child of one that has entered them.
//
//   who makes them      what there is
//   an ordinary user    outer: a user namespace whose root is this user
//                         mounts, network: they belong to it
//                         inner: a user namespace in which this user has its own number again
//   root                mounts, network; the users as the first, where the kernel wants that
#pragma once

#include "sandbox/capabilities_internal.hpp"
#include "sandbox/plan_internal.hpp"
#include "sandbox/system_calls_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if CODEEXEC_HAS_SANDBOX

inline namespace inner {

inline constexpr const char* tmp_path = "/tmp";
inline constexpr const char* memory_path = "/dev/shm";
inline constexpr const char* terminals_path = "/dev/pts";
inline constexpr const char* multiplexer_path = "/dev/ptmx";
inline constexpr std::size_t after_tmp = 5;  // where the name of a path in it begins

// A path below /tmp that is granted, and stays where it is when commands have another /tmp.
struct KeptPath {
  SandboxPlace place = {};
  std::size_t size = 0;  // of its text
  bool is_directory = false;
  bool is_read_only = false;
  int copy = -1;  // a mount of it, while it is being moved
};
inline constexpr std::size_t most_kept = 64;

// What stands at a path in these mounts. -1 and 0: it was not asked for.
struct OwnPlace {
  int fd = -1;     // O_PATH
  long error = 0;  // negative: why it is the host's
};

// What is asked of the process that makes them, and what it has made.
struct NamespaceMaker {
  unsigned long flags = 0;  // CLONE_NEW...
  // What maps the users of both user namespaces when CLONE_NEWUSER is among the flags, else null.
  const char* outer_users = nullptr;
  const char* outer_groups = nullptr;
  const char* inner_users = nullptr;
  const char* inner_groups = nullptr;
  const SandboxPlan* plan = nullptr;  // says what is read-only
  const SandboxPlace* tmp = nullptr;  // for /tmp, or null
  KeptPath kept[most_kept] = {};      // sorted
  std::size_t kept_count = 0;
  const char* memory = nullptr;  // the options of a tmpfs for /dev/shm, or null
  bool terminals = false;

  SharedNamespaces made = {};
  OwnPlace own_tmp = {};
  OwnPlace own_memory = {};
  OwnPlace own_terminals = {};
  OwnPlace own_multiplexer = {};
  bool counts_processes = false;  // a limit holds for the processes of the inner users alone
  volatile long error = 0;

  // CLONE_NEW... of what all commands have in common.
  unsigned long made_flags() const { return made.any() ? flags : 0; }

  char text[PATH_MAX] = {};
  alignas(16) char inner_stack[8192];
  alignas(16) char probe_stack[4096];
};

// 0 or a negative errno. Whatever it returns, the descriptors are there to be closed.
long make_namespaces(NamespaceMaker& maker);

// As clone_process(), in what the commands of a plan have in common. `request` has no signal at its
// end. The caller has blocked all signals.
long clone_in_namespaces(const SandboxPlan& plan, const CloneRequest& request, bool& cleared);

}  // namespace inner

#endif

}  // namespace v0_1
}  // namespace codeexec
