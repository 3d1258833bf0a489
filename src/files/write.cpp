// Writing a file: all of it or nothing.

#include "files/files.hpp"
#include "files/files_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "paths/paths.hpp"
#include "paths/paths_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// What root makes for others belongs to them, as if they had made it: commands run as the owner of
// a workspace, in a container for one. 0 or errno.
int give_to_owner_of(int directory, const std::string& name) {
  if (::geteuid() != 0) return 0;
  struct stat above {};
  if (::fstat(directory, &above) != 0) return errno;
  if (above.st_uid == 0) return 0;
  const int failed =
      ::fchownat(directory, name.c_str(), above.st_uid, above.st_gid, AT_SYMLINK_NOFOLLOW);
  return failed == 0 ? 0 : errno;
}

// A name in a directory outlives a crash only when the directory is on the disk, too. One that may
// not be read cannot be flushed. 0 or errno.
int flush_directory(int directory) {
  const UniqueFd fd(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return fd ? flush_to_disk(fd.get()) : 0;
}

// The directory of a canonical path; when it is to be made, with those above it that are missing.
Expected<UniqueFd> open_or_make_directory(const PathRules& rules, const std::string& path,
                                          bool make) {
  auto directory = open_canonical_directory(path);
  const auto is_missing = [&directory] {
    return !directory && directory.error().system_error == ENOENT;
  };
  if (!make || !is_missing()) return directory;
  std::string there = path;
  while (is_missing() && there != "/") {
    there = place_of(there).directory;
    directory = open_canonical_directory(there);
  }
  if (!directory) return directory;
  UniqueFd here = std::move(*directory);
  if (auto ok = check_file_system(here.get(), path); !ok) return ok.failure();
  std::size_t at = there == "/" ? 1 : there.size() + 1;
  while (at < path.size()) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string part = path.substr(0, end);
    const Place place = place_of(part);
    for (const std::string& changed : {place.directory, part}) {
      const auto permitted = check_permission(rules, changed, Permission::write);
      if (!permitted) return permitted.failure();
    }
    int error = ::mkdirat(here.get(), place.name.c_str(), 0777) == 0
                    ? give_to_owner_of(here.get(), place.name)
                    : errno;
    if (error != 0 && error != EEXIST) return system_error(error, "%", {in_quotes(part)});
    error = flush_directory(here.get());
    if (error != 0) return system_error(error, "%", {in_quotes(part)});
    UniqueFd next(above_standard_streams(
        ::openat(here.get(), place.name.c_str(), open_directory_flags | O_NOFOLLOW)));
    if (!next) return system_error(errno, "%", {in_quotes(part)});
    here = std::move(next);
    at = end + 1;
  }
  return here;
}

// A file that is written beside the one whose place it takes. Removed when it does not get there.
class NewFile {
 public:
  explicit NewFile(int directory) : directory_(directory) {}
  ~NewFile() {
    if (!name_.empty()) (void)::unlinkat(directory_, name_.c_str(), 0);
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  // All of these: 0 or errno.
  int create(mode_t mode) {
    const std::string random = random_hex(12);
    if (random.empty()) return errno;
    const std::string name = concat(".codeexec-%.tmp", {random});
    constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    fd_ = UniqueFd(above_standard_streams(::openat(directory_, name.c_str(), flags, mode)));
    if (!fd_) return errno;
    name_ = name;
    return give_to_owner_of(directory_, name_);
  }
  // Gives it what the old file had, before it has any bytes.
  int take_rights(const struct stat& old) {
    struct stat mine {};
    if (::fstat(fd_.get(), &mine) != 0) return errno;
    mode_t mode = old.st_mode & 0777;
    const bool same_owner = mine.st_uid == old.st_uid;
    const bool same_group = mine.st_gid == old.st_gid;
    constexpr auto nobody = static_cast<uid_t>(-1);
    const uid_t owner = same_owner ? nobody : old.st_uid;
    if (!(same_owner && same_group) && ::fchown(fd_.get(), owner, old.st_gid) != 0 && !same_group &&
        ::fchown(fd_.get(), nobody, old.st_gid) != 0) {
      // The rights of a group are nothing for another one.
      mode &= ~static_cast<mode_t>(070) | (mode << 3);
    }
    return ::fchmod(fd_.get(), mode) == 0 ? 0 : errno;
  }
  int write(std::string_view bytes) {
    const int error = write_all(fd_.get(), bytes);
    if (error != 0) return error;
    return flush_to_disk(fd_.get());
  }
  int replace(const std::string& name) {
    if (::renameat(directory_, name_.c_str(), directory_, name.c_str()) != 0) return errno;
    name_.clear();
    return 0;
  }
  // EEXIST when there is anything of that name.
  int become(const std::string& name) {
#if defined(__linux__) && defined(SYS_renameat2)
    constexpr unsigned no_replace = 1;  // RENAME_NOREPLACE
    if (::syscall(SYS_renameat2, directory_, name_.c_str(), directory_, name.c_str(), no_replace) ==
        0) {
      name_.clear();
      return 0;
    }
    if (errno == EEXIST) return errno;
#endif
    // Where the system or the file system does not know it; the other name goes with this object.
    return ::linkat(directory_, name_.c_str(), directory_, name.c_str(), 0) == 0 ? 0 : errno;
  }

 private:
  int directory_;
  UniqueFd fd_ = {};
  std::string name_ = {};
};

SharedError exists_error(const std::string& path) {
  Error error = make_error(ErrorCode::invalid_argument, "%: exists already", {in_quotes(path)});
  error.system_error = EEXIST;
  return error;
}

// The host's own limit for files, asked before there is a file that is not whole.
bool is_beyond_file_limit(std::size_t size) {
  struct rlimit limit {};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
         static_cast<rlim_t>(size) > limit.rlim_cur;  // signed in FreeBSD
}

PathRules confined_rules(const PathRules& rules, const std::string& folder) {
  const Permission own = rules.restricted() ? rules.permission(folder) : Permission::write;
  std::vector<Root> roots = {{folder, own}};
  for (const Root& root : rules.roots())
    if (root.path != folder && codeexec::is_within(root.path, folder)) roots.push_back(root);
  return rules.with_roots(std::move(roots));
}

}  // namespace

inline namespace inner {

Expected<void> check_write_size(const std::string& path, std::size_t size) {
  const bool is_over = size > Files::max_write;
  if (!is_over && !is_beyond_file_limit(size)) return {};
  return make_error(
      ErrorCode::limit, "%: % bytes are more than %",
      {in_quotes(path), size,
       is_over ? std::to_string(Files::max_write) : "the limit for files (ulimit -f)"});
}

Expected<FileTarget> open_target(const PathRules& rules, std::string_view path,
                                 std::string_view base, std::size_t size, const FileWrite& how) {
  auto permitted = permitted_path(rules, path, base, Permission::write);
  if (!permitted) return permitted.failure();
  Expected<FileTarget> opened = FileTarget();
  FileTarget& target = *opened;
  target.path = std::move(*permitted);
  const Place place = place_of(target.path);
  if (place.name.empty() || names_a_directory(path)) return not_regular_error(target.path, S_IFDIR);
  if (auto ok = check_write_size(target.path, size); !ok) return ok.failure();
  // The directory changes, too, and a root may be a name in one that does not belong to it.
  if (auto ok = check_permission(rules, place.directory, Permission::write); !ok)
    return ok.failure();
  target.refused = rules.watch_write(place.directory);
  auto directory = open_or_make_directory(rules, place.directory, how.make_directories);
  if (!directory) return directory.failure();
  target.directory = std::move(*directory);
  target.name = place.name;
  const int in = target.directory.get();
  if (auto ok = check_file_system(in, target.path); !ok) return ok.failure();

  const char* const name = target.name.c_str();
  target.exists = ::fstatat(in, name, &target.old, AT_SYMLINK_NOFOLLOW) == 0;
  const auto failed = [&target] { return system_error(errno, "%", {in_quotes(target.path)}); };
  if (!target.exists && errno != ENOENT) return failed();
  if (!target.exists) return opened;
  if (how.only_new) return exists_error(target.path);
  if (!S_ISREG(target.old.st_mode)) return not_regular_error(target.path, target.old.st_mode);
  if (::faccessat(in, name, W_OK, AT_EACCESS) != 0 && errno != ENOENT) return failed();
  return opened;
}

Expected<void> put_bytes(const FileTarget& target, std::string_view bytes, bool only_new,
                         FunctionRef<bool()> may_replace) {
  const std::string subject = in_quotes(target.path);
  const int in = target.directory.get();
  NewFile file(in);
  int error = file.create(target.exists ? 0600 : 0666);
  if (error != 0) return system_error(error, "%: a file beside it", {subject});
  if (target.exists) error = file.take_rights(target.old);
  if (error == 0) error = file.write(bytes);
  if (error == 0 && !may_replace())
    return make_error(ErrorCode::io, "%: was changed meanwhile, and is left as it is", {subject});
  if (error == 0) error = only_new ? file.become(target.name) : file.replace(target.name);
  if (error == EEXIST && only_new) return exists_error(target.path);
  if (error != 0) return system_error(error, "%", {subject});
  error = flush_directory(in);
  if (error != 0) return system_error(error, "%: written, and not yet on the disk", {subject});
  if (const std::string why = target.refused(); !why.empty())
    return make_error(ErrorCode::permission_denied, "%: %", {subject, why});
  return {};
}

}  // namespace inner

Expected<std::string> Files::write(std::string_view path, std::string_view bytes,
                                   const FileWrite& how) const {
  if (const FilesElsewhere* const there = elsewhere(path))
    return write_elsewhere(*there, path, bytes, how);
  if (const std::string here = moved_path(path); !here.empty()) {
    auto written = Files(rules_, base_).write(here, bytes, how);
    if (!written) return moved_->as_seen(written.error());
    return moved_->as_seen(std::move(*written));
  }
  const PathRules rules = how.below.empty() ? rules_ : confined_rules(rules_, how.below);
  auto target = open_target(rules, path, base_, bytes.size(), how);
  if (!target) return target.failure();
  if (how.remove) {
    if (::unlinkat(target->directory.get(), target->name.c_str(), 0) != 0)
      return system_error(errno, "%", {in_quotes(target->path)});
    return std::move(target->path);
  }
  const auto put = put_bytes(*target, bytes, how.only_new, [] { return true; });
  if (!put) return put.failure();
  return std::move(target->path);
}

}  // namespace v0_1
}  // namespace codeexec
