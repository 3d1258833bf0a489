// The system call filter: from tables to a program for seccomp.

#include "sandbox/capabilities_internal.hpp"
#include "sandbox/filter_internal.hpp"
#include "sandbox/sandbox.hpp"

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if CODEEXEC_HAS_SANDBOX
#if CODEEXEC_HAS_FILTER

namespace {

#if defined(__x86_64__)
constexpr std::uint32_t filter_architecture = AUDIT_ARCH_X86_64;
// The table of x86_64 ends with uprobe. 337 to 423 are free.
constexpr unsigned first_free_call = 337;
#else
constexpr std::uint32_t filter_architecture = AUDIT_ARCH_AARCH64;
constexpr unsigned first_free_call = 295;
#endif

// From here on the numbers are the same on all architectures. Headers as old as Linux 4.18, which
// is enough to build this, do not have them.
constexpr unsigned first_common_call = 424;
constexpr unsigned call_io_uring_setup = 425;
constexpr unsigned call_io_uring_enter = 426;
constexpr unsigned call_io_uring_register = 427;
constexpr unsigned call_open_tree = 428;
constexpr unsigned call_move_mount = 429;
constexpr unsigned call_fsopen = 430;
constexpr unsigned call_fsconfig = 431;
constexpr unsigned call_fsmount = 432;
constexpr unsigned call_fspick = 433;
constexpr unsigned call_clone3 = 435;
constexpr unsigned call_openat2 = 437;
constexpr unsigned call_pidfd_getfd = 438;
constexpr unsigned call_process_madvise = 440;
constexpr unsigned call_mount_setattr = 442;
constexpr unsigned call_quotactl_fd = 443;
constexpr unsigned call_process_mrelease = 448;
constexpr unsigned call_open_tree_attr = 467;
constexpr unsigned call_file_setattr = 469;
constexpr unsigned first_unknown_call = 470;  // Linux 6.18 has none from here on

#if defined(__x86_64__)
constexpr unsigned call_kexec_file_load = SYS_kexec_file_load;
#else
constexpr unsigned call_kexec_file_load = 294;  // Linux 5.0
#endif

// A system call by its number and name.
struct NamedCall {
  unsigned number;
  char name[20];
};
#define CODEEXEC_CALL(name) \
  { SYS_##name, #name }

// Refused with EPERM, as to a user without the right.
// The memory, descriptors and system calls of other processes.
constexpr NamedCall process_calls[] = {CODEEXEC_CALL(ptrace),
                                       CODEEXEC_CALL(process_vm_readv),
                                       CODEEXEC_CALL(process_vm_writev),
                                       CODEEXEC_CALL(kcmp),
                                       {call_pidfd_getfd, "pidfd_getfd"},
                                       {call_process_madvise, "process_madvise"},
                                       {call_process_mrelease, "process_mrelease"}};
// These make system calls, sockets among them, that no filter sees.
constexpr NamedCall ring_calls[] = {{call_io_uring_setup, "io_uring_setup"},
                                    {call_io_uring_enter, "io_uring_enter"},
                                    {call_io_uring_register, "io_uring_register"}};
// Large parts of the kernel that a command does not need.
constexpr NamedCall kernel_calls[] = {CODEEXEC_CALL(bpf),         CODEEXEC_CALL(perf_event_open),
                                      CODEEXEC_CALL(userfaultfd), CODEEXEC_CALL(fanotify_init),
                                      CODEEXEC_CALL(keyctl),      CODEEXEC_CALL(add_key),
                                      CODEEXEC_CALL(request_key)};
// Mounts and namespaces, and files opened by a handle, which looks at no directory on the way.
constexpr NamedCall mount_calls[] = {CODEEXEC_CALL(mount),
                                     CODEEXEC_CALL(umount2),
                                     CODEEXEC_CALL(pivot_root),
                                     CODEEXEC_CALL(chroot),
                                     CODEEXEC_CALL(setns),
                                     CODEEXEC_CALL(open_by_handle_at),
                                     {call_open_tree, "open_tree"},
                                     {call_move_mount, "move_mount"},
                                     {call_fsopen, "fsopen"},
                                     {call_fsconfig, "fsconfig"},
                                     {call_fsmount, "fsmount"},
                                     {call_fspick, "fspick"},
                                     {call_mount_setattr, "mount_setattr"},
                                     {call_open_tree_attr, "open_tree_attr"}};
// The machine. The kernel asks for capabilities as well, which a command does not have.
constexpr NamedCall machine_calls[] = {CODEEXEC_CALL(init_module),
                                       CODEEXEC_CALL(finit_module),
                                       CODEEXEC_CALL(delete_module),
                                       CODEEXEC_CALL(kexec_load),
                                       {call_kexec_file_load, "kexec_file_load"},
                                       CODEEXEC_CALL(reboot),
                                       CODEEXEC_CALL(swapon),
                                       CODEEXEC_CALL(swapoff),
                                       CODEEXEC_CALL(acct),
                                       CODEEXEC_CALL(quotactl),
                                       {call_quotactl_fd, "quotactl_fd"},
                                       CODEEXEC_CALL(settimeofday),
                                       CODEEXEC_CALL(clock_settime),
                                       CODEEXEC_CALL(clock_adjtime),
                                       CODEEXEC_CALL(adjtimex),
                                       CODEEXEC_CALL(sethostname),
                                       CODEEXEC_CALL(setdomainname),
                                       CODEEXEC_CALL(syslog),
                                       CODEEXEC_CALL(vhangup),
                                       CODEEXEC_CALL(lookup_dcookie)};

#if defined(__x86_64__)
constexpr NamedCall x86_calls[] = {CODEEXEC_CALL(iopl), CODEEXEC_CALL(ioperm),
                                   CODEEXEC_CALL(modify_ldt), CODEEXEC_CALL(uselib),
                                   CODEEXEC_CALL(_sysctl)};
#endif

// ENOSYS: programs then take an older way, which can be looked at.
// The flags of clone3 are in memory; C libraries go on with clone. file_setattr changes a file
// anywhere by its path; the ioctl that does the same needs the file opened.
constexpr NamedCall absent_calls[] = {{call_clone3, "clone3"}, {call_file_setattr, "file_setattr"}};

// ENOSYS, as of a kernel built without them: memory, semaphores and messages that are shared with
// all of the IPC namespace. They go by numbers, or by names that are no paths: Landlock holds back
// neither shared memory nor the removal of a queue.
constexpr NamedCall ipc_calls[] = {
    CODEEXEC_CALL(shmget),     CODEEXEC_CALL(shmat),    CODEEXEC_CALL(shmctl),
    CODEEXEC_CALL(shmdt),      CODEEXEC_CALL(semget),   CODEEXEC_CALL(semop),
    CODEEXEC_CALL(semtimedop), CODEEXEC_CALL(semctl),   CODEEXEC_CALL(msgget),
    CODEEXEC_CALL(msgsnd),     CODEEXEC_CALL(msgrcv),   CODEEXEC_CALL(msgctl),
    CODEEXEC_CALL(mq_open),    CODEEXEC_CALL(mq_unlink)};
#undef CODEEXEC_CALL

// For clone, whose lowest byte is a signal. CLONE_NEWTIME is in that byte and cannot be asked for.
// CLONE_PARENT would make the new process a child of the supervisor, which watches the command.
constexpr std::uint32_t refused_clone_flags = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                              CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
                                              CLONE_NEWNET | CLONE_PARENT;
// For unshare; all others make namespaces, or are not known yet.
constexpr std::uint32_t harmless_unshare_flags =
    CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_VM | CLONE_SIGHAND | CLONE_THREAD;

// Families of sockets by number: old headers lack some, and only four are ever let through.
constexpr std::uint32_t family_unix = 1;
constexpr std::uint32_t family_inet = 2;
constexpr std::uint32_t family_inet6 = 10;
constexpr std::uint32_t family_netlink = 16;
constexpr std::uint32_t netlink_route = 0;
constexpr std::uint32_t socket_type_bits = 15;      // the others are SOCK_CLOEXEC and the like
constexpr std::uint32_t type_obsolete_packet = 10;  // turns AF_INET into AF_PACKET

// Builds one filter: the answers, the looks at arguments, and the tree that leads to them. With
// `rules` it describes them there as well: see explain_filter().
class FilterBuilder {
 public:
  FilterBuilder(const FilterOptions& options, std::vector<std::string>* rules)
      : options_(options), rules_(rules) {}

  std::vector<sock_filter> build() {
    answers_.fill(allow_);
    note("KILL all: of another architecture, such as i386 by int 0x80");
    answer_all(process_calls, not_permitted_, "memory, descriptors, calls of other processes");
    answer_all(ring_calls, not_permitted_, "they make system calls that no filter sees");
    answer_all(kernel_calls, not_permitted_, "parts of the kernel that no command needs");
    answer_all(mount_calls, not_permitted_, "mounts, namespaces, files by a handle");
    answer_all(machine_calls, not_permitted_, "the machine");
#if defined(__x86_64__)
    answer_all(x86_calls, not_permitted_, "ports and tables of the processor");
#endif
    answer_all(absent_calls, absent_, "programs take an older call, which can be looked at");
    if (!options_.own_ipc)
      answer_all(ipc_calls, absent_, "shared with others of this IPC namespace");
    const auto first = answers_.begin();
    std::fill(first + first_free_call, first + first_common_call, absent_);
    answers_[first_unknown_call] = absent_;
    if (rules_)
      note(concat("ENOSYS %-%, % and more: unknown numbers",
                  {first_free_call, first_common_call - 1, first_unknown_call}));
    answer(SYS_unshare, look_at_unshare(), "EPERM unshare: flags that make namespaces");
    answer(SYS_clone, look_at_clone(), "EPERM clone: flags that make namespaces, CLONE_PARENT");
    answer(SYS_ioctl, look_at_ioctl(), "EPERM ioctl: TIOCSTI, TIOCLINUX, TIOCSETD");
    answer(SYS_fcntl, look_at_fcntl(), "EPERM fcntl: F_SETLEASE, F_SETDELEG");
    answer_sockets();
    if (!options_.own_processes)
      answer(SYS_prlimit64, look_at_prlimit(), "EPERM prlimit64: to set limits of another process");
    if (!options_.own_processes && options_.landlock_abi < 6)
      answer(SYS_kill, look_at_kill(), "EPERM kill: of -1, which is everybody");
    if (options_.landlock_abi == 1 || options_.landlock_abi == 2) keep_files_from_truncation();

    tree(0, answers_.size());
    const FilterLabel native = program_.load(offsetof(seccomp_data, nr));
    program_.branch(BPF_JEQ, filter_architecture, native, killed_);
    program_.load(offsetof(seccomp_data, arch));
    return program_.finish();
  }

 private:
  void note(std::string_view rule) {
    if (rules_) add_words(*rules_, {rule});
  }

  void answer(unsigned call, FilterLabel label, std::string_view rule) {
    answers_[call] = label;
    note(rule);
  }

  template <std::size_t N>
  void answer_all(const NamedCall (&calls)[N], FilterLabel label, const char* why) {
    answer_all(calls, calls + N, label, why);
  }

  void answer_all(const NamedCall* call, const NamedCall* end, FilterLabel label, const char* why) {
    std::string rule = label == absent_ ? "ENOSYS" : "EPERM";
    for (; call != end; ++call) {
      // For debuggers, strace and the leak check of the sanitizers. Landlock or a process table of
      // their own keeps them to the command's own processes.
      if (call->number == SYS_ptrace && (options_.landlock_abi > 0 || options_.own_processes))
        continue;
      answers_[call->number] = label;
      if (rules_) append_all(rule, {" ", call->name});
    }
    if (rules_) note(concat("%: %", {rule, why}));
  }

  bool has_unix_sockets() const {
    return options_.network == Network::host || options_.unix_sockets;
  }

  void answer_sockets() {
    const bool host = options_.network == Network::host;
    const bool none = options_.network == Network::none;
    const std::string_view refused = host ? "EAFNOSUPPORT" : "EACCES";
    const std::string_view families = host   ? " but AF_UNIX AF_INET AF_INET6 AF_NETLINK"
                                      : none ? ""
                                             : " but AF_INET AF_INET6, AF_NETLINK for routes";
    const bool more = !host && has_unix_sockets();
    answers_[SYS_socket] = look_at_socket();
    answers_[SYS_socketpair] = look_at_socketpair();
    if (none && !has_unix_sockets()) answer(SYS_bind, no_access_, "EACCES bind: all");
    if (!rules_) return;
    note(concat("% socket: all families%%%%",
                {refused, families, more ? none ? " but" : "," : "", more ? " AF_UNIX" : "",
                 none ? "" : "; AF_INET of SOCK_PACKET"}));
    note(concat("% socketpair: all but AF_UNIX%",
                {refused, has_unix_sockets() ? "" : " of SOCK_STREAM and SOCK_SEQPACKET"}));
  }

  // The lower half of an argument, which is all of it where the kernel takes an int.
  FilterLabel load_argument(std::size_t index) {
    return program_.load(offsetof(seccomp_data, args) + 8 * index);
  }
  FilterLabel load_upper_half(std::size_t index) {
    return program_.load(offsetof(seccomp_data, args) + 8 * index + 4);
  }

  FilterLabel look_at_unshare() {
    program_.branch(BPF_JSET, ~harmless_unshare_flags, not_permitted_, allow_);
    const FilterLabel lower = load_argument(0);
    program_.branch(BPF_JEQ, 0, lower, not_permitted_);
    return load_upper_half(0);
  }

  FilterLabel look_at_clone() {
    program_.branch(BPF_JSET, refused_clone_flags, not_permitted_, allow_);
    return load_argument(0);
  }

  // TIOCSTI and TIOCLINUX type into a terminal; TIOCSETD puts network drivers on it.
  FilterLabel look_at_ioctl() {
    FilterLabel next = program_.branch(BPF_JEQ, TIOCSETD, not_permitted_, allow_);
    next = program_.branch(BPF_JEQ, TIOCLINUX, not_permitted_, next);
    next = program_.branch(BPF_JEQ, TIOCSTI, not_permitted_, next);
    return load_argument(1);
  }

  // A lease on a file that may be read, or on a directory, makes everybody else who opens it wait,
  // for up to 45 seconds each time.
  FilterLabel look_at_fcntl() {
    constexpr std::uint32_t set_delegation = 1040;  // Linux 6.19
    const FilterLabel next = program_.branch(BPF_JEQ, set_delegation, not_permitted_, allow_);
    program_.branch(BPF_JEQ, F_SETLEASE, not_permitted_, next);
    return load_argument(1);
  }

  // connect() and send() stay allowed where no socket can be made: refusing them breaks programs
  // that use pairs of connected sockets. build() refuses bind() there, as half of a pair could be
  // bound and take an abstract name from the host's programs.
  FilterLabel look_at_socket() {
    const bool unix_sockets = has_unix_sockets();
    if (options_.network == Network::none && !unix_sockets) return no_socket();

    FilterLabel next = no_socket();
    if (unix_sockets) next = program_.branch(BPF_JEQ, family_unix, allow_, next);
    if (options_.network != Network::none) {
      const FilterLabel inet = look_at_packet_type();
      const FilterLabel netlink =
          options_.network == Network::host ? allow_ : look_at_netlink_protocol();
      next = program_.branch(BPF_JEQ, family_netlink, netlink, next);
      next = program_.branch(BPF_JEQ, family_inet6, allow_, next);
      next = program_.branch(BPF_JEQ, family_inet, inet, next);
    }
    return load_argument(0);
  }

  FilterLabel look_at_packet_type() {
    program_.branch(BPF_JEQ, type_obsolete_packet, no_socket(), allow_);
    program_.mask(socket_type_bits);
    return load_argument(1);
  }

  // Names and addresses of the interfaces, for getifaddrs().
  FilterLabel look_at_netlink_protocol() {
    program_.branch(BPF_JEQ, netlink_route, allow_, no_socket());
    return load_argument(2);
  }

  // A pair of datagram sockets can send to every socket that has a path; other pairs cannot.
  FilterLabel look_at_socketpair() {
    FilterLabel pair = allow_;
    if (options_.network != Network::host && !options_.unix_sockets) {
      pair = program_.branch(BPF_JEQ, SOCK_SEQPACKET, allow_, no_socket());
      program_.branch(BPF_JEQ, SOCK_STREAM, allow_, pair);
      program_.mask(socket_type_bits);
      pair = load_argument(1);
    }
    program_.branch(BPF_JEQ, family_unix, pair, no_socket());
    return load_argument(0);
  }

  // The answer for a family that is refused. With the network of the host it is that of a kernel
  // without the family, else one (EACCES) at which name resolution soon gives up.
  FilterLabel no_socket() const {
    return options_.network == Network::host ? no_family_ : no_access_;
  }

  // A limit on the CPU time of another process kills it. Reading the limits of others, and setting
  // one's own, is what programs do.
  FilterLabel look_at_prlimit() {
    program_.branch(BPF_JEQ, 0, allow_, not_permitted_);
    const FilterLabel upper = load_upper_half(2);
    program_.branch(BPF_JEQ, 0, upper, not_permitted_);
    const FilterLabel new_limit = load_argument(2);
    program_.branch(BPF_JEQ, 0, allow_, new_limit);
    return load_argument(0);
  }

  // `kill -9 -1` ends all that the user runs.
  FilterLabel look_at_kill() {
    program_.branch(BPF_JEQ, static_cast<std::uint32_t>(-1), not_permitted_, allow_);
    return load_argument(0);
  }

  // Below ABI 3 Landlock asks for no right to write when a file is truncated without being opened
  // for writing.
  void keep_files_from_truncation() {
    answer(SYS_truncate, no_access_, "EACCES truncate: all");
    answer(call_openat2, absent_, "ENOSYS openat2: all");  // its flags are in memory
    answer(SYS_openat, look_at_open_flags(2), "EACCES openat: O_TRUNC of files not to be written");
#if defined(__x86_64__)
    answer(SYS_open, look_at_open_flags(1), "EACCES open: O_TRUNC of files not to be written");
#endif
  }

  // O_TRUNC only together with O_WRONLY or O_RDWR. The fourth access mode, 3, truncates as well and
  // opens for neither.
  FilterLabel look_at_open_flags(std::size_t index) {
    constexpr std::uint32_t access_mode_bits = 3;
    const FilterLabel read_write = program_.branch(BPF_JEQ, O_RDWR, allow_, no_access_);
    program_.branch(BPF_JEQ, O_WRONLY, allow_, read_write);
    const FilterLabel truncating = program_.mask(access_mode_bits);
    program_.branch(BPF_JSET, O_TRUNC, truncating, allow_);
    return load_argument(index);
  }

  // Leads to the answers of the calls from `first` to before `last`. Splits where the answer
  // changes next to the middle.
  FilterLabel tree(std::size_t first, std::size_t last) {
    std::size_t split = first;  // none
    std::size_t larger_part = last - first;
    for (std::size_t call = first + 1; call < last; ++call) {
      const std::size_t larger = std::max(call - first, last - call);
      if (answers_[call] == answers_[call - 1] || larger >= larger_part) continue;
      split = call;
      larger_part = larger;
    }
    if (split == first) return answers_[first];
    const FilterLabel below = tree(first, split);
    const FilterLabel above = tree(split, last);
    return program_.branch(BPF_JGE, static_cast<std::uint32_t>(split), above, below);
  }

  FilterOptions options_;
  std::vector<std::string>* rules_;  // or null
  FilterProgram program_ = {};
  FilterLabel allow_ = program_.answer(SECCOMP_RET_ALLOW);
  FilterLabel not_permitted_ = program_.answer(SECCOMP_RET_ERRNO | EPERM);
  FilterLabel absent_ = program_.answer(SECCOMP_RET_ERRNO | ENOSYS);
  FilterLabel no_access_ = program_.answer(SECCOMP_RET_ERRNO | EACCES);
  FilterLabel no_family_ = program_.answer(SECCOMP_RET_ERRNO | EAFNOSUPPORT);
  FilterLabel killed_ = program_.answer(SECCOMP_RET_KILL_PROCESS);
  // By number; the last one stands for all numbers that are not known.
  std::array<FilterLabel, first_unknown_call + 1> answers_ = {};
};

}  // namespace

inline namespace inner {

std::vector<sock_filter> build_filter(const FilterOptions& options) {
  return FilterBuilder(options, nullptr).build();
}

std::vector<std::string> explain_filter(const FilterOptions& options) {
  std::vector<std::string> rules;
  FilterBuilder(options, &rules).build();
  return rules;
}

}  // namespace inner

#endif  // CODEEXEC_HAS_FILTER
#endif

}  // namespace v0_1
}  // namespace codeexec
