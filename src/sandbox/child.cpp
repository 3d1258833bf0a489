// In the child: namespaces, Landlock, limits, capabilities, the filter.

#include "sandbox/capabilities_internal.hpp"
#include "sandbox/child_internal.hpp"
#include "sandbox/plan_internal.hpp"
#include "sandbox/system_calls_internal.hpp"

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if CODEEXEC_HAS_SANDBOX

namespace {

constexpr long number_of_landlock_restrict_self = 446;

CODEEXEC_IN_CHILD long write_text(const char* path, const char* text) {
  const long fd = raw(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
  if (fd < 0) return fd;
  unsigned long size = 0;
  while (text[size] != '\0') ++size;
  const long written = raw(SYS_write, fd, text, size);
  raw(SYS_close, fd);
  return written < 0 ? written : 0;
}

CODEEXEC_IN_CHILD long bring_loopback_up() {
  const long fd = raw(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return fd;
  ifreq request;
  auto* bytes = reinterpret_cast<volatile unsigned char*>(&request);
  for (std::size_t i = 0; i < sizeof request; ++i) bytes[i] = 0;
  request.ifr_name[0] = 'l';
  request.ifr_name[1] = 'o';
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  const long result = raw(SYS_ioctl, fd, SIOCSIFFLAGS, &request);
  raw(SYS_close, fd);
  return result;
}

constexpr long number_of_open_tree = 428;
constexpr long number_of_move_mount = 429;
constexpr long number_of_openat2 = 437;
constexpr long number_of_mount_setattr = 442;

// One function for these four calls is less code than a call of raw() at each place.
CODEEXEC_IN_CHILD long mount_call(long number, long directory, const char* path, CallWord third,
                                  CallWord fourth, CallWord fifth) {
  return raw(number, directory, path, third, fourth, fifth);
}

CODEEXEC_IN_CHILD long make_read_only(long directory, const char* path, int flags) {
  const std::uint64_t attributes[4] = {1, 0, 0, 0};  // set MOUNT_ATTR_RDONLY
  return mount_call(number_of_mount_setattr, directory, path, AT_RECURSIVE | flags, &attributes[0],
                    sizeof attributes);
}

// A descriptor of a new mount of what a path leads to. It is attached to no directory yet.
CODEEXEC_IN_CHILD long copy_mount(long directory, const char* path, int flags) {
  constexpr int open_tree_clone = 1;
  return mount_call(number_of_open_tree, directory, path,
                    open_tree_clone | AT_RECURSIVE | O_CLOEXEC | flags, 0, 0);
}

// Mounts what stands at a path over itself; nothing when it is missing. A command that runs beside
// may turn it into a link at any moment, so it is looked up once and without following any.
CODEEXEC_IN_CHILD long guard_place(long directory, const char* path, bool read_only) {
  constexpr int from_and_to_descriptor = 0x44;  // MOVE_MOUNT_F_EMPTY_PATH, T_EMPTY_PATH
  const std::uint64_t how[3] = {O_PATH | O_CLOEXEC, 0, 0x0c};  // RESOLVE_NO_SYMLINKS, BENEATH
  const long found = mount_call(number_of_openat2, directory, path, &how[0], sizeof how, 0);
  if (found < 0)
    return found == -ENOENT || found == -ENOTDIR || found == -ELOOP || found == -EACCES ? 0 : found;
  const long copy = copy_mount(found, "", AT_EMPTY_PATH);
  long result = copy;
  if (copy >= 0 && read_only) result = make_read_only(copy, "", AT_EMPTY_PATH);
  if (result >= 0)
    result = mount_call(number_of_move_mount, copy, "", found, "", from_and_to_descriptor);
  if (copy >= 0) raw(SYS_close, copy);
  raw(SYS_close, found);
  return result;
}

// A mount of a writable directory. -ENOENT when the path leads nowhere, or to another file than at
// create(): it then stays read-only, as no rule of Landlock lets a command write to it either.
CODEEXEC_IN_CHILD long copy_writable(const SandboxPlace& place) {
  const long copy = copy_mount(AT_FDCWD, place.path, AT_SYMLINK_NOFOLLOW);
  if (copy < 0) return copy == -ENOTDIR || copy == -ELOOP ? -ENOENT : copy;
  struct stat found;
  long known = raw(SYS_fstat, copy, &found);
  if (known == 0 && (found.st_dev != place.device || found.st_ino != place.inode)) known = -ENOENT;
  if (known == 0) return copy;
  raw(SYS_close, copy);
  return known;
}

// The copies of the writable directories are made before everything becomes read-only, and take
// their places after.
CODEEXEC_IN_CHILD long keep_writable(const SandboxPlan& plan) {
  constexpr int from_descriptor = 4;  // MOVE_MOUNT_F_EMPTY_PATH
  int copies[most_writable];
  for (std::size_t i = 0; i < plan.writable_count; ++i) {
    const long copy = copy_writable(plan.writable[i]);
    if (copy < 0 && copy != -ENOENT) return copy;
    copies[i] = static_cast<int>(copy);
  }
  long result = make_read_only(AT_FDCWD, "/", 0);
  for (std::size_t i = 0; i < plan.writable_count && result >= 0; ++i) {
    if (copies[i] < 0) continue;
    result = mount_call(number_of_move_mount, copies[i], "", AT_FDCWD, plan.writable[i].path,
                        from_descriptor);
    const char* path = plan.guarded;
    while (*path != '\0' && result >= 0) {
      const char* end = path;
      while (*end != '\0') ++end;
      result = guard_place(copies[i], path, end[-1] != '/');
      path = end + 1;
    }
  }
  for (std::size_t i = 0; i < plan.writable_count; ++i)
    if (copies[i] >= 0) raw(SYS_close, copies[i]);
  return result;
}

// Mounts the /proc of the new process table, and hides files with addresses and numbers of the
// kernel: root may read them even without capabilities, as it owns them. One that is missing needs
// no hiding, so those errors do not count.
CODEEXEC_IN_CHILD long mount_proc() {
  const long mounted = raw(SYS_mount, "proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, 0);
  if (mounted < 0) return mounted;
  const char* const hidden[] = {"/proc/slabinfo", "/proc/vmallocinfo", "/proc/timer_list",
                                "/proc/keys"};
  for (const char* file : hidden) raw(SYS_mount, "/dev/null", file, 0, MS_BIND, 0);
  return 0;
}

// Puts a ruleset with a rule for the new /proc in the place of the plan's. The table of descriptors
// is this process's own: in the host that number still is the plan's ruleset.
CODEEXEC_IN_CHILD long replace_ruleset(const SandboxPlan& plan) {
  const long ruleset =
      raw(number_of_landlock_create_ruleset, &plan.attributes, plan.attributes_size, 0);
  if (ruleset < 0) return ruleset;
  for (std::size_t i = 0; i < plan.rule_count; ++i) {
    const long added =
        raw(number_of_landlock_add_rule, ruleset, rule_path_beneath, &plan.rules[i], 0);
    if (added < 0) return added;
  }
  LandlockRule rule = {};
  rule.rights = readable_rights & plan.attributes.handled_fs;
  rule.fd = static_cast<std::int32_t>(
      raw(SYS_openat, AT_FDCWD, "/proc", O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
  if (rule.fd < 0) return rule.fd;
  const long added = raw(number_of_landlock_add_rule, ruleset, rule_path_beneath, &rule, 0);
  raw(SYS_close, rule.fd);
  if (added < 0) return added;
  const long moved = raw(SYS_dup3, ruleset, plan.ruleset, O_CLOEXEC);
  raw(SYS_close, ruleset);
  return moved < 0 ? moved : 0;
}

CODEEXEC_IN_CHILD long write_maps(const SandboxPlan& plan) {
  // An ordinary user may map a group only when setgroups() is given up.
  const long denied = write_text("/proc/self/setgroups", "deny");
  if (denied < 0 && denied != -ENOENT) return denied;
  const long users = write_text("/proc/self/uid_map", plan.uid_map);
  if (users < 0) return users;
  return write_text("/proc/self/gid_map", plan.gid_map);
}

// In /proc the files of a process that cannot be dumped belong to root, its maps among them. So a
// host that cannot be dumped is made dumpable for these three writes, as its memory is shared: for
// that time other processes of the user can look into it. Only one child at a time does this, see
// NamespaceTurn.
CODEEXEC_IN_CHILD long map_user(const SandboxPlan& plan) {
  const bool hidden = raw(SYS_prctl, PR_GET_DUMPABLE, 0, 0, 0, 0) == 0;
  if (hidden) raw(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
  const long result = write_maps(plan);
  if (hidden) raw(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
  return result;
}

}  // namespace

inline namespace inner {

CODEEXEC_IN_CHILD long set_up_namespaces(const SandboxPlan& plan) {
  if (plan.uid_map) {
    const long mapped = map_user(plan);
    if (mapped < 0) return mapped;
  }
  if (plan.loopback) {
    const long up = bring_loopback_up();
    if (up < 0) return up;
  }
  if ((plan.clone_flags & CLONE_NEWNS) == 0) return 0;
  // Mounts of the host still come in; none of ours goes out.
  long result = raw(SYS_mount, "none", "/", 0, MS_REC | MS_SLAVE, 0);
  if (result >= 0 && plan.mount_proc) result = mount_proc();
  if (result >= 0 && plan.read_only) result = keep_writable(plan);
  if (result >= 0 && plan.mount_proc && plan.ruleset >= 0) result = replace_ruleset(plan);
  return result < 0 ? result : 0;
}

}  // namespace inner

namespace {

CODEEXEC_IN_CHILD long lower_limit(const SandboxRlimit& limit) {
  std::uint64_t now[2] = {0, 0};
  const long known = raw(SYS_prlimit64, 0, limit.resource, 0, &now[0]);
  if (known < 0) return known;
  // A limit is never raised, which root could do.
  if (limit.hard < now[1]) now[1] = limit.hard;
  if (limit.soft < now[0]) now[0] = limit.soft;
  if (now[0] > now[1]) now[0] = now[1];
  return raw(SYS_prlimit64, 0, limit.resource, &now[0], 0);
}

CODEEXEC_IN_CHILD long drop_capabilities() {
  // NOROOT, NO_SETUID_FIXUP, NO_CAP_AMBIENT_RAISE and their locks, and the lock of KEEP_CAPS.
  constexpr int secure_bits = 0xef;
  // These need CAP_SETPCAP. Who lacks it is held by no_new_privs alone: an exec then gains nothing.
  // The bounding set says what an exec may gain as well, and clearing it costs 50 us.
  raw(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  raw(SYS_prctl, PR_SET_SECUREBITS, secure_bits, 0, 0, 0);
  const CapabilityHeader header = {};
  const CapabilityData none[2] = {};
  return raw(SYS_capset, &header, &none[0]);
}

}  // namespace

inline namespace inner {

CODEEXEC_IN_CHILD long confine(const SandboxPlan& plan, volatile ConfineStep* step) {
  ConfineStep ignored = ConfineStep::limits;
  if (!step) step = &ignored;
  *step = ConfineStep::limits;
  for (std::size_t i = 0; i < plan.rlimit_count; ++i) {
    const long result = lower_limit(plan.rlimits[i]);
    if (result < 0) return result;
  }
  *step = ConfineStep::capabilities;
  if (plan.drop_capabilities) {
    const long result = drop_capabilities();
    if (result < 0) return result;
  }
  *step = ConfineStep::privileges;
  if (plan.no_new_privs) {
    const long result = raw(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (result < 0) return result;
  }
  *step = ConfineStep::landlock;
  if (plan.ruleset >= 0) {
    const long result = raw(number_of_landlock_restrict_self, plan.ruleset, 0);
    if (result < 0) return result;
  }
  return 0;
}

CODEEXEC_IN_CHILD long install_filter(const SandboxPlan& plan) {
  constexpr int set_mode_filter = 1;  // SECCOMP_SET_MODE_FILTER
  if (!plan.filter) return 0;
  sock_fprog program;
  program.len = plan.filter_size;
  program.filter = const_cast<sock_filter*>(plan.filter);
  return raw(SYS_seccomp, set_mode_filter, 0, &program);
}

}  // namespace inner

#endif

}  // namespace v0_1
}  // namespace codeexec
