// Files that a supervisor makes, replaces and removes for its command.
//
// A rule of Landlock for a directory holds for all that is below it. So no rule lets a command make
// `x.lock` beside files and directories that must stay as they are. Where such a file is granted, a
// filter of its own lets the supervisor know whenever a command makes a new file, moves or removes
// one by its path (user notifications of seccomp, Linux 5.14). The supervisor compares the path, as
// text, with the few that are granted, and does what is asked itself: with the descriptor of the
// directory and the name that were there at create(). Whatever a command writes into its memory
// meanwhile, nothing else can be touched by that. Every other call goes on as it is, and Landlock
// judges it.
#pragma once

#include "sandbox/capabilities_internal.hpp"
#include "sandbox/plan_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if CODEEXEC_HAS_SANDBOX

inline namespace inner {

// Opens the directories of SandboxOptions::replaceable, and fills in that part of the plan. Files
// whose directory cannot be opened, or is another user's, are left out.
void plan_broker(SandboxState& state);

// In the supervisor: a descriptor from which its requests come, or a negative errno. From then on
// the supervisor itself must open, move and remove files by descriptors of directories.
CODEEXEC_IN_CHILD long start_broker(const SandboxPlan& plan);

// Room for two paths.
inline constexpr std::size_t broker_buffer_size = 2048;

// Takes one request, and answers it.
CODEEXEC_IN_CHILD void serve_broker(const SandboxPlan& plan, int listener, char* buffer);

}  // namespace inner

#endif

}  // namespace v0_1
}  // namespace codeexec
