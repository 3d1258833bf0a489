// The host's side of a supervisor: making one, starting a command with it, keeping it for another.

#include "process/plan_internal.hpp"
#include "process/process_internal.hpp"
#include "process/start_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "sandbox/capabilities_internal.hpp"
#include "sandbox/child_internal.hpp"
#include "sandbox/namespaces_internal.hpp"
#include "sandbox/plan_internal.hpp"
#include "sandbox/system_calls_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if CODEEXEC_HAS_SANDBOX

namespace {

struct SharingTrial {
  volatile bool ran = false;
};

CODEEXEC_IN_CHILD int sharing_trial_main(void* argument) {
  static_cast<SharingTrial*>(argument)->ran = true;
  for (;;) raw(SYS_exit_group, 0);
}

// Checks that a child shares this program's memory (emulators copy it) and comes with a pidfd
// (Linux 5.2). A child that does nothing shows it, so that no command is started in vain. Returns 0
// or an errno.
int check_sharing() {
  static std::atomic<bool> shared{false};
  if (shared.load()) return 0;
  alignas(16) char stack[child_stack_size];
  SharingTrial trial;
  int pidfd = -1;
  long pid = -1;
  {
    bool cleared = false;
    const SignalPause pause;
    const CloneRequest request = {
        CLONE_VFORK, sharing_trial_main, &trial, stack, sizeof stack, &pidfd, 0};
    pid = clone_process(request, cleared);
  }
  if (pid < 0) return static_cast<int>(-pid);
  const UniqueFd handle(pidfd);
  while (raw(SYS_wait4, pid, 0, __WALL, 0) == -EINTR) {
  }
  shared.store(trial.ran && handle);
  return shared.load() ? 0 : ENOSYS;
}

// Whether a child could not be made because the system lacks something that may be free soon.
bool is_passing(int error) {
  return error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE;
}

// The socket of a supervisor's orders: this program's end, and the supervisor's. 0 or an errno.
int make_order_socket(UniqueFd& ours, UniqueFd& theirs) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return errno;
  ours.reset(above_standard_streams(ends[0]));
  theirs.reset(above_standard_streams(ends[1]));
  return ours && theirs ? 0 : EMFILE;
}

// The memory of a supervisor that has ended, kept for the next one. At most six pages are in use.
std::atomic<Supervision*> spare_supervision{nullptr};

int make_supervision(Supervisor& supervisor) {
  void* place = spare_supervision.exchange(nullptr);
  // As a stack it is not made of huge pages.
  if (!place)
    place = ::mmap(nullptr, sizeof(Supervision), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (place == MAP_FAILED) return errno;
  Supervision& run = *::new (place) Supervision;
  supervisor.run.reset(&run);
  run.page_size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  run.order_bytes = {&run.order, sizeof run.order};
  run.message.msg_iov = &run.order_bytes;
  run.message.msg_iovlen = 1;
  run.message.msg_control = run.control;
  run.message.msg_controllen = sizeof run.control;
  run.ordered = reinterpret_cast<int*>(CMSG_DATA(CMSG_FIRSTHDR(&run.message)));
  return 0;
}

// A supervisor may have been stopped: one that is late is made to go on. The command's program may
// also take that long to be executed, which does no harm.
void wait_while(const std::uint32_t& word, std::uint32_t value, const UniqueFd& pidfd = {}) {
  const timespec late = {1, 0};
  const timespec* const limit = pidfd ? &late : nullptr;
  while (__atomic_load_n(&word, __ATOMIC_ACQUIRE) == value) {
    const long waited = ::syscall(SYS_futex, &word, FUTEX_WAIT, long{value}, limit, nullptr, 0);
    if (waited != 0 && errno == ETIMEDOUT) signal_pidfd(pidfd.get(), SIGCONT);
  }
}

// The failure of a start whose supervisor was killed before it reported, for example by the command
// itself.
Failure unreported_start(ChildPlan& plan) {
  if (plan.pid == 0) return {SpawnStep::sandbox, ESRCH};
  wait_while(plan.in_use, 1);
  return {static_cast<SpawnStep>(int{plan.failed_step}), plan.failed_error};
}

// Takes a supervisor's report of the start. Sets `error` when the command does not run.
void take_start(Spawned& child, Supervisor& supervisor, ChildPlan& plan) {
  Supervision& run = *supervisor.run;
  const bool told = run.told_start;
  const SupervisorReport& report = run.report;
  const Failure failure = told ? report.failure : unreported_start(plan);
  if (failure.error == 0 && child.exit_event) {
    supervisor.command = run.own_table ? -1 : static_cast<pid_t>(told ? report.pid : plan.pid);
    return;
  }
  child.step = failure.step;
  child.error = failure.error != 0 ? failure.error : EMFILE;
  child.no_supervisor = told && report.pid == 0 && !is_passing(child.error);
  supervisor.orders.reset();  // its order to end
  reap_failed(child.pid);
  // A supervisor killed during the start may have left a child that still uses its memory: it is
  // leaked on purpose.
  if (!told) (void)supervisor.run.release();
  child.exit_event.reset();
}

// Who this program is: a supervisor stays who it was when it was made.
struct Identity {
  uid_t users[3] = {};
  gid_t groups[3] = {};
  Identity() {
    ::getresuid(&users[0], &users[1], &users[2]);
    ::getresgid(&groups[0], &groups[1], &groups[2]);
  }
  bool is(const Identity& other) const {
    return std::equal(users, users + 3, other.users) &&
           std::equal(groups, groups + 3, other.groups);
  }
};

// Its destructor kills the supervisor, which has no command, unless that is a run's again.
struct WaitingSupervisor final : IdleSupervisor {
  ChildHandle child = {};
  Supervisor supervisor = {};
  Identity identity = {};

  ~WaitingSupervisor() override {
    if (!supervisor.run) return;
    supervisor.orders.reset();
    if (is_idle(life()) && !signal_pidfd(child.exit_event.get(), SIGKILL) && errno == EPERM) {
      // This program has become another user. It ends by itself, unless it was stopped.
      (void)supervisor.run.release();
      abandon_child(child.pid);
      return;
    }
    // In a fork of this program it is no child, and there is nothing to wait for.
    siginfo_t info{};
    (void)take_child(true, child.exit_event.get(), info, nullptr);
  }

  std::uint32_t life() const { return __atomic_load_n(&supervisor.run->life, __ATOMIC_ACQUIRE); }
  static bool is_idle(std::uint32_t life) {
    return (life & Supervision::bits_of_life) == Supervision::idle;
  }
};

// Sends the order to start what `next` says, with the descriptors of it. False: it is not sent.
bool order_start(const Supervisor& supervisor) {
  const ChildPlan& plan = supervisor.run->next;
  int given[most_ordered];
  std::size_t count = 0;
  for (int ChildPlan::*const field : ordered_descriptors)
    if (plan.*field >= 0) given[count++] = plan.*field;
  for (std::size_t i = 0; i < plan.cgroup_count; ++i) given[count++] = plan.cgroups[i];
  SupervisorOrder order;
  order.run = supervisor.run->run;
  iovec bytes = {&order, sizeof order};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof given)] = {};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  // A size_t in glibc, and a socklen_t in musl.
  using Size = decltype(message.msg_controllen);
  message.msg_controllen = Size(CMSG_SPACE(count * sizeof(int)));
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = Size(CMSG_LEN(count * sizeof(int)));
  std::memcpy(CMSG_DATA(header), given, count * sizeof(int));
  return ::sendmsg(supervisor.orders.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(sizeof order);
}

// Has a supervisor that waits start a command. False: it cannot, and none was started.
bool start_next(const WaitingSupervisor& waiting, const ChildPlan& plan) {
  Supervision& run = *waiting.supervisor.run;
  const std::uint32_t before = waiting.life();
  if (!waiting.is_idle(before) || !waiting.identity.is(Identity())) return false;
  run.next = plan;
  run.report = {};
  run.has_cloned = false;
  run.told_start = false;
  run.told_end = false;
  run.signals_sent = 0;
  ++run.run;
  if (!order_start(waiting.supervisor)) return false;
  wait_while(run.life, before, waiting.child.exit_event);
  return run.told_start || run.has_cloned;  // else it was ended by somebody before
}

// Whether supervisors of this policy wait for other commands. They must learn of the end of this
// program, and a fork of this program must not take them for its own.
bool can_wait(const SandboxPlan& sandbox, const UniqueFd& host, Supervision& run) {
  constexpr int wipe_on_fork = 18;  // MADV_WIPEONFORK, Linux 4.14
  return sandbox.idle && host && ::madvise(&run, sizeof run, wipe_on_fork) == 0;
}

// Supervisors with the namespaces of this program share its directory, root and umask, too: what a
// host changes there later holds for the commands that it starts.
unsigned long clone_flags_of(const Supervision& run) {
  const unsigned long flags = run.sandbox->clone_flags;
  const SharedNamespaces& shared = run.sandbox->shared;
  const bool own_files =
      (flags & (CLONE_NEWNS | CLONE_NEWUSER)) != 0 || shared.outer >= 0 || shared.mounts >= 0;
  return run.has_next && !own_files ? flags | CLONE_FS : flags;
}

// True: a supervisor that waited is that of a new command now, which `child` says more about.
bool take_waiting(const ChildPlan& plan, Spawned& child, Supervisor& supervisor) {
  IdleSupervisors* const idle = plan.sandbox->idle;
  while (std::unique_ptr<IdleSupervisor> found = idle ? idle->take() : nullptr) {
    auto& waiting = static_cast<WaitingSupervisor&>(*found);
    if (!start_next(waiting, plan)) continue;
    static_cast<ChildHandle&>(child) = std::move(waiting.child);
    supervisor = std::move(waiting.supervisor);
    supervisor.waiting = std::move(found);
    take_start(child, supervisor, supervisor.run->next);
    return true;
  }
  return false;
}

}  // namespace

void SupervisionDeleter::operator()(Supervision* run) const noexcept {
  Supervision* none = nullptr;
  if (!spare_supervision.compare_exchange_strong(none, run)) ::munmap(run, sizeof *run);
}

inline namespace inner {

Spawned spawn_supervised(ChildPlan& plan, Supervisor& supervisor) {
  Spawned child;
  plan.report = -1;
  plan.ran = 0;
  plan.pid = 0;
  plan.failed_error = 0;
  if (take_waiting(plan, child, supervisor)) return child;
  child.step = SpawnStep::start;
  child.error = check_sharing();
  child.no_supervisor = child.error != 0 && !is_passing(child.error);
  if (child.error != 0) return child;
  child.step = SpawnStep::setup;
  UniqueFd orders_end;
  child.error = make_order_socket(supervisor.orders, orders_end);
  if (child.error == 0) child.error = make_supervision(supervisor);
  if (child.error != 0) return child;
  const UniqueFd host(open_pidfd(::getpid()));
  Supervision& run = *supervisor.run;
  run.plan = &plan;
  run.sandbox = plan.sandbox;
  run.own_table = (plan.sandbox->clone_flags & CLONE_NEWPID) != 0;
  run.orders = orders_end.get();
  run.host = host.get();
  const bool waits = can_wait(*plan.sandbox, host, run);
  supervisor.waiting.reset(waits ? new (std::nothrow) WaitingSupervisor : nullptr);
  run.has_next = supervisor.waiting != nullptr;
  // The filter would keep it from giving the next command namespaces of its own.
  run.filtered = run.has_next && (plan.sandbox->clone_flags & CLONE_NEWIPC) == 0;
  // No end of a supervisor is a signal to the host, or an answer to its wait for any child.
  constexpr int no_signal = 0;
  int pidfd = -1;
  CloneRequest request = {clone_flags_of(run), supervisor_main, &run,     run.stack,
                          sizeof run.stack,    &pidfd,          no_signal};
  request.cleared_at_end = &run.life;
  long pid = -1;
  const NamespaceTurn turn(plan.sandbox->uid_map != nullptr);
  {
    const SignalPause pause;
    pid = clone_in_namespaces(*plan.sandbox, request, plan.handlers_cleared);
  }
  child.exit_event.reset(above_standard_streams(pidfd));
  if (pid < 0) {
    child.step = SpawnStep::start;
    child.error = static_cast<int>(-pid);
    child.no_supervisor = !is_passing(child.error);
    return child;
  }
  child.pid = static_cast<pid_t>(pid);
  child.is_pidfd = true;
  orders_end.reset();
  wait_while(run.life, Supervision::starting, child.exit_event);
  take_start(child, supervisor, plan);
  return child;
}

bool keep_supervisor(ChildHandle& child, Supervisor& supervisor) {
  if (!supervisor.waiting) return false;
  auto& waiting = static_cast<WaitingSupervisor&>(*supervisor.waiting);
  char end = 0;
  if (::recv(supervisor.orders.get(), &end, 1, MSG_DONTWAIT) != 1) {
    // Else it would wait for an order without end.
    signal_pidfd(child.exit_event.get(), SIGKILL);
    return false;
  }
  std::unique_ptr<IdleSupervisor> kept = std::move(supervisor.waiting);
  waiting.child = std::move(child);
  // Nothing of the command that has ended goes to the next one.
  waiting.supervisor.run = std::move(supervisor.run);
  waiting.supervisor.orders = std::move(supervisor.orders);
  waiting.supervisor.run->sandbox->idle->keep(std::move(kept));
  return true;
}

}  // namespace inner

#endif

}  // namespace v0_1
}  // namespace codeexec
