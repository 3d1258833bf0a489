// What a child needs to start, prepared by the host; the supervisor's shared state.
//
// Starting. On Linux a child is made by clone3 with CLONE_VM | CLONE_VFORK: it borrows this
// process's memory until it has executed the program, so that a start costs the same from a host
// of 3 MB and of 80 GB, where fork copies page tables (21 ms per GiB). Therefore the child may use
// prepared data and raw system calls only, runs on a stack of its own, and all signals are blocked
// so that no handler of the host runs in it. A failure comes back through that same memory, as an
// errno and the step that failed. The caller waits in clone meanwhile, so that a work_dir or
// program on a dead network file system blocks it beyond any timeout.
//
// Running. Process::State is one child as a state machine without a thread: it names descriptors
// and a deadline to wait for, and takes a step when one of them is due. run_process() drives it in
// the calling thread; Process::Reactor drives any number of them in one.
//
// Ending. The end of the program, not the end of its output, ends a run: a grandchild may hold the
// pipe for ever. The leader stays a zombie until the very last step, which keeps its process group
// number from being used again while the group is being killed.
//
// One kind of process cannot be found from here: it left the group, its parents are dead, and it
// closed our pipes. A supervisor is the parent of such a process, and kills it; see below.
#pragma once

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "sandbox/capabilities_internal.hpp"
#include "sandbox/listener_internal.hpp"
#include "sandbox/plan_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// The parts of a start that can fail; step_name() is what ProcessResult::step says.
enum class SpawnStep : int { setup, start, stdio, work_dir, pass_fd, sandbox, exec };

// A step of a start that failed, with its errno.
struct Failure {
  SpawnStep step;
  int error;
};

// What a child needs, as plain pointers into the parent's memory, and what it reports.
struct ChildPlan {
  const char* const* paths = nullptr;  // to try in this order; ends with a null pointer
  char* const* argv = nullptr;
  char** shell_argv = nullptr;  // sh, (path), arguments: for a script without a #! line
  char* const* environment = nullptr;
  const char* work_dir = nullptr;
  int work_dir_fd = -1;
  int input = -1;
  int output = -1;
  int error_output = -1;
  int pass_fd = -1;
  bool terminal = false;  // `input` is one, to control the session
  long uid = -1;          // to become; -1: as it is
  long gid = -1;
  long pid = 0;              // of the child, which writes it
  std::uint32_t in_use = 0;  // until it has executed its program or ended: the kernel makes it 0
  int report = -1;           // a pipe for the failure, too, where memory might not be shared
#if CODEEXEC_HAS_SANDBOX
  const SandboxPlan* sandbox = nullptr;
  bool supervised = false;  // by a supervisor where there can be one, whatever the sandbox wants
  const int* cgroups = nullptr;  // to join: descriptors of files to which the child writes itself
  std::size_t cgroup_count = 0;
  const ListenerPass* listener = nullptr;  // what a supervisor makes in its network; or null
  long supervisor = 0;    // its pid as the child sees it; 0: this program starts the child itself
  bool filtered = false;  // by the sandbox's filter already, as its supervisor is
#endif
  bool handlers_cleared = false;
  bool signals_reset = false;  // all of them have their defaults
  volatile int ran = 0;
  volatile int failed_step = 0;
  volatile int failed_error = 0;  // 0: the program runs
};

inline constexpr std::size_t child_stack_size = 16384;

#if CODEEXEC_HAS_SANDBOX
// The report of a supervisor: that the command runs or why it does not, and how it ended.
struct SupervisorReport {
  Failure failure;
  long pid;    // of the command, as the supervisor sees it
  bool known;  // that it ended as follows
  bool exited;
  int value;                  // exit status or signal
  bool all_ended;             // nothing of the run is left
  bool denied;                // some of it cannot be killed: it is another user's
  std::uint64_t left_behind;  // processes that were killed when the command had ended
  rusage usage;
};

// What the host asks of a supervisor: one message on its socket.
struct SupervisorOrder {
  std::uint32_t run = 0;    // which command is meant; an order to one that has ended is ignored
  std::int32_t signal = 0;  // for its group; SIGKILL is for all; 0: start it, with descriptors
};

// The descriptors that come with an order to start, as far as a plan has them, in this order. Those
// of its cgroups follow, of which there are two at most.
inline constexpr int ChildPlan::*ordered_descriptors[] = {
    &ChildPlan::input, &ChildPlan::output, &ChildPlan::error_output, &ChildPlan::work_dir_fd,
    &ChildPlan::pass_fd};
inline constexpr std::size_t most_ordered = std::size(ordered_descriptors) + 2;

// The memory of a supervisor, in pages of its own. In it the supervisor reports that the command
// runs or why it does not (the host waits for that), and how it ended (the host reads that when the
// supervisor has said so or is gone). The first pages are needed at the start and at the end, and
// go back to the system in between, so that a command that runs for more than a moment costs only
// the last ones. A fork of this program sees zeros in all of it: there the supervisor is gone.
struct Supervision {
  union {
    char command_stack[child_stack_size];       // until the program was executed
    int found[child_stack_size / sizeof(int)];  // processes that are still to be killed
  };
  alignas(8) char entries[2048];
  alignas(16) char stack[child_stack_size - 3584];  // and the fields below fill whole pages

  ChildPlan* plan = nullptr;  // of the first command, until it was started; then `next`
  ChildPlan next = {};        // what the host prepares before an order to start
  const SandboxPlan* sandbox = nullptr;
  bool has_next = false;   // it waits for another command when one has ended
  bool filtered = false;   // the filter holds it, too, and its commands inherit that
  int orders = -1;         // a socket
  int host = -1;           // a pidfd of this program, or -1
  int command = -1;        // a pidfd
  int child_ended = -1;    // a signalfd, or -1: not yet there
  int broker = -1;         // where requests come from, or -1
  bool own_table = false;  // it is the first process of a process table of its own
  std::size_t page_size = 0;
  std::size_t found_count = 0;
  std::size_t killed = 0;  // in this pass, and reaped since it began
  std::size_t reaped = 0;
  std::uint32_t signals_sent = 0;  // to the group; a futex on which this program waits
  // Another one, which only the supervisor writes, and the kernel: that sets it to 0 when the
  // supervisor ends for any reason.
  //
  //   starting ---> watching ---> (ends)      one command
  //                  |    ^
  //      its command |    | order to start     has_next
  //      has ended   v    |
  //                  idle
  // The number of the command stands above these bits, so that the word is never the same again: a
  // command may have ended before the host has looked.
  enum Life : std::uint32_t { gone, starting, watching, idle, bits_of_life = 3 };
  std::uint32_t life = starting;
  bool has_cloned = false;  // there may be a command, which may have no pid yet
  bool told_start = false;  // what `report` has of it is there
  bool told_end = false;
  SupervisorReport report = {};
  siginfo_t info = {};
  char path[64] = {};
  char text[256] = {};
  std::uint32_t run = 0;  // the number of the command
  // Where an order is received.
  SupervisorOrder order = {};
  iovec order_bytes = {};
  msghdr message = {};
  int* ordered = nullptr;  // the descriptors, in `control`
  alignas(cmsghdr) char control[CMSG_SPACE(most_ordered * sizeof(int))] = {};
};
static_assert(sizeof(Supervision) <= 2 * child_stack_size, "its last page holds all of its fields");

struct SupervisionDeleter {
  void operator()(Supervision* run) const noexcept;
};

// What this program has of a supervisor.
struct Supervisor {
  std::unique_ptr<Supervision, SupervisionDeleter> run = {};  // until the supervisor has ended
  UniqueFd orders = UniqueFd();
  pid_t command = -1;  // -1 in a process table of its own
  std::uint32_t signals_asked = 0;
  SupervisorReport last = {};
  bool is_lost = false;  // its socket has closed, and it has not said how the command ended
  // What it becomes when its command has ended and it waits for another; null: it does not.
  std::unique_ptr<IdleSupervisor> waiting = {};
};
#else
struct Supervisor {};
#endif

}  // namespace v0_1
}  // namespace codeexec
