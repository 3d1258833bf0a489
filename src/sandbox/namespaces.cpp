// Namespaces: those of a supervisor, and those that all commands of a sandbox have in common.

#include "sandbox/capabilities_internal.hpp"
#include "sandbox/child_internal.hpp"
#include "sandbox/namespaces_internal.hpp"
#include "sandbox/plan_internal.hpp"
#include "sandbox/system_calls_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if CODEEXEC_HAS_SANDBOX

namespace {

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

// The kernel's MOUNT_ATTR_RDONLY, NOSUID and NODEV.
constexpr std::uint64_t mount_read_only = 1;
constexpr std::uint64_t mount_no_suid = 2;
constexpr std::uint64_t mount_no_devices = 4;

// Gives attributes to a mount and all below it, and takes others away.
CODEEXEC_IN_CHILD long change_mount(long directory, const char* path, int flags,
                                    std::uint64_t wanted, std::uint64_t unwanted = 0) {
  const std::uint64_t attributes[4] = {wanted, unwanted, 0, 0};
  return mount_call(number_of_mount_setattr, directory, path, AT_RECURSIVE | flags, &attributes[0],
                    sizeof attributes);
}

// A descriptor of a new mount of what a path leads to. It is attached to no directory yet.
CODEEXEC_IN_CHILD long copy_mount(long directory, const char* path, int flags) {
  constexpr int open_tree_clone = 1;
  return mount_call(number_of_open_tree, directory, path,
                    open_tree_clone | AT_RECURSIVE | O_CLOEXEC | flags, 0, 0);
}

// Of move_mount().
constexpr int from_descriptor = 0x4;          // MOVE_MOUNT_F_EMPTY_PATH
constexpr int from_and_to_descriptor = 0x44;  // and T_EMPTY_PATH

CODEEXEC_IN_CHILD long open_beneath(long directory, const char* path) {
  const std::uint64_t how[3] = {O_PATH | O_CLOEXEC, 0, 0x0c};  // RESOLVE_NO_SYMLINKS, BENEATH
  return mount_call(number_of_openat2, directory, path, &how[0], sizeof how, 0);
}

// Mounts something that cannot be read over a file or directory: a device that is not to be used as
// one, or an empty directory without permissions.
CODEEXEC_IN_CHILD long cover_place(long found) {
  struct stat status;
  long result = raw(SYS_fstat, found, &status);
  if (result < 0) return result;
  const bool is_directory = S_ISDIR(status.st_mode);
  const long other = is_directory ? raw(SYS_openat, AT_FDCWD, ".", O_PATH | O_CLOEXEC, 0)
                                  : copy_mount(AT_FDCWD, "/dev/null", 0);
  if (other < 0) return other;
  if (is_directory) {
    result = raw(SYS_fchdir, found);
    if (result >= 0)
      result = raw(SYS_mount, "tmpfs", ".", "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
                   "mode=000");
    raw(SYS_fchdir, other);
  } else {
    result = change_mount(other, "", AT_EMPTY_PATH, mount_read_only | mount_no_devices);
    if (result >= 0)
      result = mount_call(number_of_move_mount, other, "", found, "", from_and_to_descriptor);
  }
  raw(SYS_close, other);
  return result;
}

enum class Guarding { in_place, read_only, hidden };

// Mounts what stands at a path over itself, or hides it; nothing when it is missing. A command that
// runs beside may turn it into a link at any moment, so it is looked up once. Links are followed to
// what is to be hidden alone.
CODEEXEC_IN_CHILD long guard_place(long directory, const char* path, Guarding guarding) {
  const bool is_hidden = guarding == Guarding::hidden;
  const long found = is_hidden ? raw(SYS_openat, directory, path, O_PATH | O_CLOEXEC, 0)
                               : open_beneath(directory, path);
  if (found < 0)
    return found == -ENOENT || found == -ENOTDIR || found == -ELOOP || found == -EACCES ? 0 : found;
  const long copy = is_hidden ? -1 : copy_mount(found, "", AT_EMPTY_PATH);
  long result = is_hidden ? cover_place(found) : copy;
  if (copy >= 0 && guarding == Guarding::read_only)
    result = change_mount(copy, "", AT_EMPTY_PATH, mount_read_only);
  if (copy >= 0 && result >= 0)
    result = mount_call(number_of_move_mount, copy, "", found, "", from_and_to_descriptor);
  if (copy >= 0) raw(SYS_close, copy);
  raw(SYS_close, found);
  return result;
}

// A descriptor of what it was at create(), which is closed when it is something else now. -ENOENT
// then, and when the path leads nowhere.
CODEEXEC_IN_CHILD long same_place(const SandboxPlace& place, long fd) {
  if (fd < 0) return fd == -ENOTDIR || fd == -ELOOP ? -ENOENT : fd;
  struct stat found;
  long known = raw(SYS_fstat, fd, &found);
  if (known == 0 && (found.st_dev != place.device || found.st_ino != place.inode)) known = -ENOENT;
  if (known == 0) return fd;
  raw(SYS_close, fd);
  return known;
}

// A mount of a writable directory. -ENOENT when it is another one than at create(): it then stays
// read-only, as no rule of Landlock lets a command write to it either.
CODEEXEC_IN_CHILD long copy_writable(const SandboxPlace& place) {
  return same_place(place, copy_mount(AT_FDCWD, place.path, AT_SYMLINK_NOFOLLOW));
}

CODEEXEC_IN_CHILD long open_place(const SandboxPlace& place) {
  return same_place(place,
                    raw(SYS_openat, AT_FDCWD, place.path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0));
}

// The copies of the writable directories are made before everything becomes read-only, and take
// their places after. What lies in another one comes with that: as a mount of its own it could not
// be removed, nor could files be moved into it.
CODEEXEC_IN_CHILD long keep_writable(const SandboxPlan& plan) {
  int copies[most_writable];
  for (std::size_t i = 0; i < plan.writable_count; ++i) {
    const long copy = plan.writable[i].is_inside ? -ENOENT : copy_writable(plan.writable[i]);
    if (copy < 0 && copy != -ENOENT) return copy;
    copies[i] = static_cast<int>(copy);
  }
  long result = change_mount(AT_FDCWD, "/", 0, mount_read_only);
  for (std::size_t i = 0; i < plan.writable_count; ++i) {
    if (copies[i] < 0) continue;
    if (result >= 0)
      result = mount_call(number_of_move_mount, copies[i], "", AT_FDCWD, plan.writable[i].path,
                          from_descriptor);
    raw(SYS_close, copies[i]);
  }
  return result;
}

// Guards what is there in one directory. Absolute paths are those to be hidden, in the root.
CODEEXEC_IN_CHILD long guard_directory(const SandboxPlan& plan, long directory, bool is_root) {
  if (directory < 0) return directory == -ENOENT ? 0 : directory;
  long result = 0;
  const char* path = plan.guarded;
  while (*path != '\0' && result >= 0) {
    const char* end = path;
    while (*end != '\0') ++end;
    if ((*path == '/') == is_root)
      result = guard_place(directory, is_root ? path + 1 : path,
                           end[-1] == '/' ? Guarding::in_place
                           : is_root      ? Guarding::hidden
                                          : Guarding::read_only);
    path = end + 1;
  }
  raw(SYS_close, directory);
  return result;
}

CODEEXEC_IN_CHILD long guard_all(const SandboxPlan& plan) {
  long result = 0;
  for (std::size_t i = 0; i < plan.writable_count && result >= 0; ++i)
    result = guard_directory(plan, open_place(plan.writable[i]), false);
  if (result >= 0)
    result = guard_directory(
        plan, raw(SYS_openat, AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0), true);
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

CODEEXEC_IN_CHILD long write_maps(const char* user_map, const char* group_map) {
  // An ordinary user may map a group only when setgroups() is given up.
  const long denied = write_text("/proc/self/setgroups", "deny");
  if (denied < 0 && denied != -ENOENT) return denied;
  const long users = write_text("/proc/self/uid_map", user_map);
  if (users < 0) return users;
  return write_text("/proc/self/gid_map", group_map);
}

// In /proc the files of a process that cannot be dumped belong to root, its maps among them. So a
// host that cannot be dumped is made dumpable for these three writes, as its memory is shared: for
// that time other processes of the user can look into it. Only one child at a time does this, see
// NamespaceTurn.
CODEEXEC_IN_CHILD long map_user(const char* user_map, const char* group_map) {
  const bool hidden = raw(SYS_prctl, PR_GET_DUMPABLE, 0, 0, 0, 0) == 0;
  if (hidden) raw(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
  const long result = write_maps(user_map, group_map);
  if (hidden) raw(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
  return result;
}

CODEEXEC_IN_CHILD long set_up_mounts(const SandboxPlan& plan) {
  // Mounts of the host still come in; none of ours goes out.
  long result = raw(SYS_mount, "none", "/", 0, MS_REC | MS_SLAVE, 0);
  if (result >= 0 && plan.mount_proc) result = mount_proc();
  if (result >= 0 && plan.read_only && plan.shared.mounts < 0) result = keep_writable(plan);
  if (result >= 0 && plan.read_only && *plan.guarded != '\0') result = guard_all(plan);
  if (result >= 0 && plan.mount_proc && plan.ruleset >= 0) result = replace_ruleset(plan);
  return result < 0 ? result : 0;
}

CODEEXEC_IN_CHILD long enter_namespace(int fd, unsigned long type) {
  return fd >= 0 ? raw(SYS_setns, fd, type) : 0;
}

}  // namespace

inline namespace inner {

CODEEXEC_IN_CHILD long set_up_namespaces(const SandboxPlan& plan) {
  long result = plan.uid_map ? map_user(plan.uid_map, plan.gid_map) : 0;
  if (result >= 0 && plan.loopback) result = bring_loopback_up();
  if (result >= 0 && (plan.clone_flags & CLONE_NEWNS) != 0) result = set_up_mounts(plan);
  if (result >= 0) result = enter_namespace(plan.shared.inner, CLONE_NEWUSER);
  if (result >= 0 && plan.processes != no_bound)
    result = lower_limit({RLIMIT_NPROC, plan.processes, plan.processes});
  return result < 0 ? result : 0;
}

}  // namespace inner

namespace {

// Namespaces in common ----------------------------------------------------------------------------

// Whether a path is the first `size` bytes of `other`, or lies in what these lead to.
CODEEXEC_IN_CHILD bool lies_below(const char* path, const char* other, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i)
    if (path[i] != other[i]) return false;
  return path[size] == '\0' || path[size] == '/';
}

// Whether a path lies in one that is kept before it.
CODEEXEC_IN_CHILD bool lies_in_kept(const NamespaceMaker& maker, std::size_t number) {
  for (std::size_t i = 0; i < number; ++i)
    if (lies_below(maker.kept[number].place.path, maker.kept[i].place.path, maker.kept[i].size))
      return true;
  return false;
}

// Makes the directories above a path below /tmp, and what the path is to be mounted on.
CODEEXEC_IN_CHILD long make_way(NamespaceMaker& maker, int tmp, std::size_t number) {
  const KeptPath& kept = maker.kept[number];
  const char* const path = kept.place.path;
  if (lies_in_kept(maker, number)) return 0;
  for (std::size_t size = after_tmp; size < kept.size; ++size) {
    maker.text[size - after_tmp] = path[size];
    maker.text[size + 1 - after_tmp] = '\0';
    const bool is_last = size + 1 == kept.size;
    if (!is_last && path[size + 1] != '/') continue;
    const long made = is_last && !kept.is_directory
                          ? raw(SYS_mknodat, tmp, &maker.text[0], S_IFREG | 0600, 0)
                          : raw(SYS_mkdirat, tmp, &maker.text[0], 0755);
    if (made < 0 && made != -EEXIST) return made;
  }
  return 0;
}

// The first of these directories becomes read-only: else what lies below could be moved away with
// it, and what a command writes beside would be in another directory than on this host.
CODEEXEC_IN_CHILD long close_way(NamespaceMaker& maker, int tmp, std::size_t number) {
  const char* const path = maker.kept[number].place.path;
  std::size_t size = after_tmp;
  for (; path[size] != '/' && path[size] != '\0'; ++size) maker.text[size - after_tmp] = path[size];
  maker.text[size - after_tmp] = '\0';
  if (path[size] == '\0') return 0;
  for (std::size_t i = 0; i < number; ++i)
    if (lies_below(maker.kept[i].place.path, path, size)) return 0;
  return guard_place(tmp, &maker.text[0], Guarding::read_only);
}

// Mounts the copy of a path at its place in the new /tmp.
CODEEXEC_IN_CHILD long put_back(NamespaceMaker& maker, int tmp, std::size_t number) {
  const int copy = maker.kept[number].copy;
  long result = close_way(maker, tmp, number);
  if (result >= 0 && maker.kept[number].is_read_only)
    result = change_mount(copy, "", AT_EMPTY_PATH, mount_read_only);
  if (result < 0) return result;
  const char* const name = maker.kept[number].place.path + after_tmp;
  const long place = open_beneath(tmp, name);
  if (place < 0) return place;
  result = mount_call(number_of_move_mount, copy, "", place, "", from_and_to_descriptor);
  raw(SYS_close, place);
  return result;
}

// The copies are made while the host's /tmp is still there.
CODEEXEC_IN_CHILD long mount_tmp(NamespaceMaker& maker) {
  const long own = copy_writable(*maker.tmp);
  if (own < 0) return own;
  long result =
      change_mount(own, "", AT_EMPTY_PATH, mount_no_suid | mount_no_devices, mount_read_only);
  for (std::size_t i = 0; i < maker.kept_count && result >= 0; ++i) {
    result = copy_writable(maker.kept[i].place);
    maker.kept[i].copy = static_cast<int>(result);
  }
  if (result >= 0)
    result = mount_call(number_of_move_mount, own, "", AT_FDCWD, tmp_path, from_descriptor);
  const bool is_mounted = result >= 0;
  for (std::size_t i = 0; i < maker.kept_count && result >= 0; ++i)
    result = make_way(maker, static_cast<int>(own), i);
  for (std::size_t i = 0; i < maker.kept_count && result >= 0; ++i)
    result = put_back(maker, static_cast<int>(own), i);
  for (std::size_t i = 0; i < maker.kept_count; ++i)
    if (maker.kept[i].copy >= 0) raw(SYS_close, maker.kept[i].copy);
  raw(SYS_close, own);
  if (is_mounted && result < 0) raw(SYS_umount2, tmp_path, MNT_DETACH);
  return result;
}

CODEEXEC_IN_CHILD long open_mounted(const char* path) {
  return raw(SYS_openat, AT_FDCWD, path, O_PATH | O_CLOEXEC, 0);
}

// Leaves a descriptor of a mounted directory, or why there is none.
CODEEXEC_IN_CHILD void take_place(OwnPlace& place, const char* path, long mounted) {
  if (mounted >= 0) mounted = open_mounted(path);
  place.error = mounted < 0 ? mounted : 0;
  if (mounted >= 0) place.fd = static_cast<int>(mounted);
}

CODEEXEC_IN_CHILD void mount_places(NamespaceMaker& maker) {
  if (maker.tmp) take_place(maker.own_tmp, tmp_path, mount_tmp(maker));
  if (maker.memory)
    take_place(maker.own_memory, memory_path,
               raw(SYS_mount, "tmpfs", memory_path, "tmpfs", MS_NOSUID | MS_NODEV, maker.memory));
  if (!maker.terminals) return;
  long mounted = raw(SYS_mount, "devpts", terminals_path, "devpts", MS_NOSUID | MS_NOEXEC,
                     "newinstance,ptmxmode=0666,mode=0600");
  if (mounted >= 0) mounted = raw(SYS_mount, "/dev/pts/ptmx", multiplexer_path, 0, MS_BIND, 0);
  take_place(maker.own_terminals, terminals_path, mounted);
  if (mounted >= 0) take_place(maker.own_multiplexer, multiplexer_path, mounted);
}

CODEEXEC_IN_CHILD long open_namespace(const char* path, int& fd) {
  const long opened = raw(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
  fd = opened < 0 ? -1 : static_cast<int>(opened);
  return opened;
}

// To enter mounts is to have their root. A program that has another one (chroot) would lose it.
CODEEXEC_IN_CHILD long check_root(int mounts) {
  struct stat before;
  struct stat after;
  long result = raw(SYS_newfstatat, AT_FDCWD, "/", &before, 0);
  if (result >= 0) result = raw(SYS_setns, mounts, CLONE_NEWNS);
  if (result >= 0) result = raw(SYS_newfstatat, AT_FDCWD, "/", &after, 0);
  if (result < 0) return result;
  return before.st_dev == after.st_dev && before.st_ino == after.st_ino ? 0 : -EXDEV;
}

CODEEXEC_IN_CHILD int ending_main(void*) {
  for (;;) raw(SYS_exit_group, 0);
}

CODEEXEC_IN_CHILD bool can_start_within(NamespaceMaker& maker, std::uint64_t limit) {
  if (lower_limit({RLIMIT_NPROC, limit, limit}) < 0) return false;
  bool cleared = false;
  const long child = clone_process(
      {CLONE_VFORK, ending_main, nullptr, maker.probe_stack, sizeof maker.probe_stack, nullptr, 0},
      cleared);
  while (child > 0 && raw(SYS_wait4, child, 0, __WALL, 0) == -EINTR) {
  }
  return child > 0;
}

// Whether a limit of processes counts those of this user namespace alone, in which this process is
// the first. Before Linux 5.14 it counts all of the user's, of which this program is one. It counts
// none of root's.
CODEEXEC_IN_CHILD bool counts_own_processes(NamespaceMaker& maker) {
  return can_start_within(maker, 2) && !can_start_within(maker, 1);
}

CODEEXEC_IN_CHILD int inner_user_main(void* argument) {
  NamespaceMaker& maker = *static_cast<NamespaceMaker*>(argument);
  long result = map_user(maker.inner_users, maker.inner_groups);
  if (result >= 0) result = open_namespace("/proc/self/ns/user", maker.made.inner);
  maker.counts_processes = result >= 0 && counts_own_processes(maker);
  maker.error = result < 0 ? result : 0;
  for (;;) raw(SYS_exit_group, 0);
}

// A terminal's file system takes a user namespace in which there is a root; commands are to see
// their own user, in one within that.
CODEEXEC_IN_CHILD long make_users(NamespaceMaker& maker) {
  long result = open_namespace("/proc/self/ns/user", maker.made.outer);
  if (result < 0) return result;
  maker.error = -ENOSYS;
  const CloneRequest request = {CLONE_VFORK | CLONE_FILES | CLONE_NEWUSER,
                                inner_user_main,
                                &maker,
                                maker.inner_stack,
                                sizeof maker.inner_stack,
                                nullptr,
                                0};
  bool cleared = false;
  result = clone_process(request, cleared);
  if (result < 0) return result;
  while (raw(SYS_wait4, result, 0, __WALL, 0) == -EINTR) {
  }
  return maker.error;
}

CODEEXEC_IN_CHILD long make_mounts(NamespaceMaker& maker) {
  long result = raw(SYS_mount, "none", "/", 0, MS_REC | MS_SLAVE, 0);
  if (result >= 0) result = open_namespace("/proc/self/ns/mnt", maker.made.mounts);
  if (result >= 0) result = check_root(maker.made.mounts);
  if (result >= 0) result = open_namespace("/proc/self/ns/ipc", maker.made.ipc);
  if (result >= 0 && maker.plan->read_only) result = keep_writable(*maker.plan);
  if (result >= 0) mount_places(maker);
  return result;
}

CODEEXEC_IN_CHILD long make_all(NamespaceMaker& maker) {
  long result = maker.outer_users ? map_user(maker.outer_users, maker.outer_groups) : 0;
  if (result >= 0 && (maker.flags & CLONE_NEWNET) != 0) {
    result = bring_loopback_up();
    if (result >= 0) result = open_namespace("/proc/self/ns/net", maker.made.network);
  }
  // Maps are written to /proc, which then becomes read-only.
  if (result >= 0 && maker.outer_users) result = make_users(maker);
  if (result >= 0 && (maker.flags & CLONE_NEWNS) != 0) result = make_mounts(maker);
  return result < 0 ? result : 0;
}

CODEEXEC_IN_CHILD int maker_main(void* argument) {
  NamespaceMaker& maker = *static_cast<NamespaceMaker*>(argument);
  maker.error = make_all(maker);
  for (;;) raw(SYS_exit_group, 0);
}

// A process that enters the namespaces of a plan, to start another one in them.
struct Entrance {
  const SharedNamespaces& shared;
  CloneRequest request;
  bool& cleared;
  volatile long result = -ENOSYS;
};

CODEEXEC_IN_CHILD int entrance_main(void* argument) {
  Entrance& entrance = *static_cast<Entrance*>(argument);
  const SharedNamespaces& shared = entrance.shared;
  long result = enter_namespace(shared.outer, CLONE_NEWUSER);
  if (result >= 0) result = enter_namespace(shared.mounts, CLONE_NEWNS);
  if (result >= 0) result = enter_namespace(shared.ipc, CLONE_NEWIPC);
  if (result >= 0) result = enter_namespace(shared.network, CLONE_NEWNET);
  if (result >= 0) result = clone_process(entrance.request, entrance.cleared);
  entrance.result = result;
  for (;;) raw(SYS_exit_group, 0);
}

long run_and_reap(const CloneRequest& request) {
  bool cleared = false;
  const long child = clone_process(request, cleared);
  if (child < 0) return child;
  while (raw(SYS_wait4, child, 0, __WALL, 0) == -EINTR) {
  }
  return 0;
}

}  // namespace

inline namespace inner {

long make_namespaces(NamespaceMaker& maker) {
  alignas(16) char stack[32768];
  const SignalPause pause;
  maker.error = -ENOSYS;
  const long ran = run_and_reap({CLONE_VFORK | CLONE_FILES | maker.flags, maker_main, &maker, stack,
                                 sizeof stack, nullptr, 0});
  return ran < 0 ? ran : maker.error;
}

long clone_in_namespaces(const SandboxPlan& plan, const CloneRequest& request, bool& cleared) {
  if (!plan.shared.any()) return clone_process(request, cleared);
  alignas(16) char stack[16384];
  Entrance entrance = {plan.shared, request, cleared};
  entrance.request.flags |= CLONE_PARENT;
  const long ran = run_and_reap({CLONE_VFORK | CLONE_FILES | (request.flags & CLONE_FS),
                                 entrance_main, &entrance, stack, sizeof stack, nullptr, 0});
  return ran < 0 ? ran : entrance.result;
}

}  // namespace inner

#endif

}  // namespace v0_1
}  // namespace codeexec
