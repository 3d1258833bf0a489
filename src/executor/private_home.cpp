// Private homes, and other private folders: made for commands, and removed with all that is in
// them.
//
//   step    what is done                                       function, and when
//   sweep   removes up to 16 folders that have no lock         remove_left_folders(), in TMPDIR
//   make    a folder of a random name, locked, with `tmp`      PrivateFolder::create()
//   fill    a .gitconfig, if git_identity has found one        furnish()
//   use     HOME and TMPDIR name it                            resolve(), for each command
//   remove  when the last command or copy lets it go           ~PrivateFolder(), any thread
//   killed  the lock goes with the program                     the sweep of the next one
//
//   PrivateHome  the folder of a command                        function
//   off          none; also without a sandbox                   make_homes()
//   command      a folder of its own in the executor's folder   next_home(), in place()
//   executor     the executor's folder                          make_homes(), in create()
//
// What holds: a folder is locked from its making to its end, so that only left ones are swept. It
// has mode 0700. A failure to make or to fill one ends create(), or keeps the command from
// starting; a failure to remove it leaves it there.

#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"
#include "executor/local_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "environment/environment.hpp"
#include "paths/paths.hpp"
#include "paths/paths_internal.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Removing trees. What a command leaves is hostile: links, mounts, directories without rights or
// ten thousand deep, names of any bytes. Nothing here follows a link or a path of more than one
// name, and the state is a handful of descriptors: directories within directories are moved up to
// the root of the tree, one at a time, instead of being descended into.

constexpr int listed_directory_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// Opens a directory within a directory, unless something is mounted on it.
UniqueFd open_subdirectory(int parent, const char* entry, int flags) {
#if CODEEXEC_HAS_OPENAT2
  struct {
    std::uint64_t flags;
    std::uint64_t mode;
    std::uint64_t resolve;
  } how = {static_cast<std::uint64_t>(flags), 0, 0x01 | 0x04};  // RESOLVE_NO_XDEV, NO_SYMLINKS
  const auto at_once = static_cast<int>(::syscall(SYS_openat2, parent, entry, &how, sizeof how));
  // Old kernels do not have it, and old filters forbid it.
  if (at_once >= 0 || (errno != ENOSYS && errno != EPERM))
    return UniqueFd(above_standard_streams(at_once));
#endif
  UniqueFd fd(above_standard_streams(::openat(parent, entry, flags)));
  struct stat above {};
  struct stat below {};
  if (!fd || ::fstat(parent, &above) != 0 || ::fstat(fd.get(), &below) != 0) return UniqueFd();
  if (above.st_dev == below.st_dev) return fd;
  errno = EXDEV;
  return UniqueFd();
}

// Gives its owner all rights to a directory within a directory.
bool make_usable(int parent, const char* entry) {
#if defined(__linux__)
  // fchmod() takes no descriptor of this kind, and fchmodat() always follows links.
  const UniqueFd itself =
      open_subdirectory(parent, entry, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  char path[32];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", itself.get());
  return itself && ::chmod(path, 0700) == 0;
#else
  return ::fchmodat(parent, entry, 0700, AT_SYMLINK_NOFOLLOW) == 0;
#endif
}

// To be listed; a directory without the rights for that is given them.
UniqueFd open_for_listing(int parent, const char* entry) {
  UniqueFd fd = open_subdirectory(parent, entry, listed_directory_flags);
  if (fd || errno != EACCES || !make_usable(parent, entry)) return fd;
  return open_subdirectory(parent, entry, listed_directory_flags);
}

// Takes no memory of the heap, as destructors remove folders.
class TreeRemoval {
 public:
  // Of all that is in a directory, but not the directory.
  explicit TreeRemoval(int root) : root_(root) {}

  // False when something could not be removed.
  bool run();

 private:
  // A file or an empty directory. True when it is gone.
  bool remove(int parent, const char* entry);

  void empty_and_remove(const char* entry);

  void move_up(int parent, const char* entry);

  int root_;
  std::uint64_t names_ = 0;
  std::uint64_t done_ = 0;
};

// Ends early when a round takes nothing away: what is left is another user's, or mounted.
bool TreeRemoval::run() {
  // Each round takes away a level of the tree. The bound is for a process that goes on adding.
  constexpr int most_rounds = 1 << 17;
  ::fchmod(root_, 0700);
  for (int round = 0; round < most_rounds; ++round) {
    const std::uint64_t before = done_;
    bool any = false;
    for_each_entry_in(root_, [&](const char* entry) {
      any = true;
      empty_and_remove(entry);
      return true;
    });
    if (!any) return true;
    if (done_ == before) return false;
  }
  return false;
}

bool TreeRemoval::remove(int parent, const char* entry) {
  const bool gone = ::unlinkat(parent, entry, 0) == 0 || errno == ENOENT ||
                    ::unlinkat(parent, entry, AT_REMOVEDIR) == 0 || errno == ENOENT;
  if (gone) ++done_;
  return gone;
}

void TreeRemoval::empty_and_remove(const char* entry) {
  if (remove(root_, entry)) return;
  const UniqueFd directory = open_for_listing(root_, entry);
  if (!directory) return;
  ::fchmod(directory.get(), 0700);
  for_each_entry_in(directory.get(), [&](const char* inner) {
    if (!remove(directory.get(), inner)) move_up(directory.get(), inner);
    return true;
  });
  remove(root_, entry);
}

void TreeRemoval::move_up(int parent, const char* entry) {
  bool may_change = true;
  for (;;) {
    char target[32];
    std::snprintf(target, sizeof target, "removed-%llu", static_cast<unsigned long long>(names_++));
    if (::renameat(parent, entry, root_, target) == 0) {
      ++done_;
      return;
    }
    const bool taken = errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR;
    if (taken) continue;
    // Moving a directory takes the right to write to it.
    if (errno != EACCES || !may_change || !make_usable(parent, entry)) return;
    may_change = false;
  }
}

constexpr std::size_t random_size = 6;  // of a folder's name, after its prefix

// Removes folders in a directory that no process uses any more: a few, as the caller waits.
void remove_left_folders(int parent, std::string_view prefix) {
  constexpr int most = 16;
  int removed = 0;
  for_each_entry_in(parent, [&](const char* entry) {
    const std::string_view text = entry;
    if (!starts_with(text, prefix) || text.size() != prefix.size() + random_size) return true;
    const auto is_own = [](const struct stat& status) {
      return S_ISDIR(status.st_mode) && status.st_uid == ::geteuid();
    };
    struct stat status {};
    if (::fstatat(parent, entry, &status, AT_SYMLINK_NOFOLLOW) != 0 || !is_own(status)) return true;
    const UniqueFd home = open_for_listing(parent, entry);
    if (!home || ::fstat(home.get(), &status) != 0 || !is_own(status)) return true;
    if (::flock(home.get(), LOCK_EX | LOCK_NB) != 0) return true;
    TreeRemoval(home.get()).run();
    ::unlinkat(parent, entry, AT_REMOVEDIR);
    return ++removed < most;
  });
}

}  // namespace

Expected<std::shared_ptr<const PrivateFolder>> PrivateFolder::create(const char* option,
                                                                     int directory,
                                                                     const std::string& parent,
                                                                     std::string_view prefix) {
  constexpr int most_tries = 10;
  // A process that removes left folders may remove a new one, which has no lock yet.
  const auto may_be_had = [](int error) {
    return error == EWOULDBLOCK || error == ENOENT || error == EEXIST;
  };
  int error = EWOULDBLOCK;
  for (int tries = 0; tries < most_tries && may_be_had(error); ++tries) {
    const std::string random = random_hex(random_size / 2);
    const std::string name = concat({prefix, random});
    if (random.empty() || ::mkdirat(directory, name.c_str(), 0700) != 0) {
      error = errno;
      continue;
    }
    // A umask may take its owner's rights, too.
    UniqueFd fd = open_for_listing(directory, name.c_str());
    error = fd ? prepare(fd.get()) : errno;
    std::shared_ptr<const PrivateFolder> folder;
    const auto make = [&] {
      folder = new_shared<const PrivateFolder>(concat("%/%", {parent, name}), std::move(fd));
    };
    if (error == 0 && enough_memory(make)) return folder;
    if (error == 0) error = ENOMEM;
    if (fd) ::unlinkat(fd.get(), "tmp", AT_REMOVEDIR);
    ::unlinkat(directory, name.c_str(), AT_REMOVEDIR);
  }
  return system_error(error, "%: cannot make a directory in %", {option, in_quotes(parent)});
}

Expected<std::shared_ptr<const PrivateFolder>> PrivateFolder::create(const char* option,
                                                                     std::string_view prefix,
                                                                     std::string_view wanted) {
  const char* const given = std::getenv("TMPDIR");
  if (wanted.empty()) wanted = given && *given == '/' ? given : "/tmp"sv;
  auto parent = canonical_path(wanted);
  if (!parent) return with_prefix("%: ", {option}, parent.error());
  auto directory = open_canonical_directory(*parent);
  if (!directory)
    return system_error(directory.error().system_error, "%: cannot make a directory in %",
                        {option, in_quotes(*parent)});
  remove_left_folders(directory->get(), prefix);
  return create(option, directory->get(), *parent, prefix);
}

PrivateFolder::~PrivateFolder() {
  // A fork of the program has a copy of this object, and no part in the directory.
  if (owner_ != ::getpid()) return;
  // An empty folder is removed without opening anything: descriptors may have run out.
  ::unlinkat(fd_.get(), "tmp", AT_REMOVEDIR);
  if (::rmdir(path_.c_str()) == 0) return;
  TreeRemoval(fd_.get()).run();
  ::rmdir(path_.c_str());
}

int PrivateFolder::prepare(int fd) {
  // On a file system without locks, left folders are never removed.
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return EWOULDBLOCK;
  return ::mkdirat(fd, "tmp", 0700) == 0 ? 0 : errno;
}

Expected<void> LocalExecutor::Place::make_homes(const LocalOptions& options) {
  if (options.sandbox.mode == SandboxMode::off || options.private_home == PrivateHome::off)
    return {};
  auto made = Home::create("private_home", "codeexec-home-"sv);
  if (!made) return made.failure();
  homes = std::move(*made);
  home_per_command = options.private_home == PrivateHome::command;
  for (const auto& variable : options.environment.set) {
    if (variable.first == "HOME") gives_home = false;
    if (variable.first == "TMPDIR") gives_temporary = false;
  }
  if (options.git_identity && gives_home) gitconfig = git_identity();
  return home_per_command ? Expected<void>() : furnish(*homes);
}

std::string LocalExecutor::Place::make_tmp(SandboxOptions& wanted) {
  auto made = PrivateFolder::create("private_tmp", "codeexec-tmp-"sv);
  if (!made) return made.error().message;
  tmp = std::move(*made);
  wanted.tmp = tmp->temporary();
  // As programs expect of it. The folder around it is closed.
  ::chmod(wanted.tmp.c_str(), 01777);
  return {};
}

void LocalExecutor::Place::settle_tmp(const SandboxReport& known, const SandboxOptions& wanted) {
  if (!is_one_of("tmp: own"sv, known.places)) return tmp.reset();
  auto directory = new_shared<MovedDirectory>();
  directory->seen = "/tmp";
  directory->real = wanted.tmp;
  for (const auto* list : {&wanted.writable, &wanted.readable})
    for (const std::string& path : *list)
      if (const auto canonical = canonical_path(path);
          canonical && codeexec::is_within(*canonical, directory->seen))
        directory->stays.push_back(
            canonical->substr(0, canonical->find('/', directory->seen.size() + 1)));
  moved = std::move(directory);
}

Expected<void> LocalExecutor::Place::furnish(const Home& home) const {
  if (gitconfig.empty()) return {};
  const UniqueFd file(::openat(home.fd(), ".gitconfig",
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  const int error = file ? write_all(file.get(), gitconfig) : errno;
  if (error == 0) return {};
  return system_error(error, "private_home: cannot write a .gitconfig in %",
                      {in_quotes(home.path())});
}

// The home of one more command, or null. By descriptor: commands may write to what it is made in.
Expected<std::shared_ptr<const LocalExecutor::Place::Home>> LocalExecutor::Place::next_home()
    const {
  if (!home_per_command) return homes;
  auto home = Home::create("private_home", homes->fd(), homes->path(), "command-");
  if (!home) return home;
  if (auto ok = furnish(**home); !ok) return ok.failure();
  return home;
}

}  // namespace v0_1
}  // namespace codeexec
