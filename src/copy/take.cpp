// One side of a copied workspace: it takes the changes of the other side.
//
// Folders are opened from the descriptor of the workspace, one name at a time and through no link.
// A file is written under a temporary name in its folder, and is renamed when it is whole.

#include "copy/tree_internal.hpp"
#include "copy/wire_internal.hpp"

#include "agent/frames_internal.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/platform_internal.hpp"
#include "paths/paths_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// No descriptor where a name is a link, is no folder, or is not there; errno says which.
UniqueFd CopyTree::open_folder(std::string_view path) const {
  UniqueFd here(above_standard_streams(::fcntl(root_.get(), F_DUPFD_CLOEXEC, 3)));
  while (here && !path.empty()) {
    const std::string name(take_part(path, '/'));
    here = UniqueFd(above_standard_streams(
        ::openat(here.get(), name.c_str(), open_directory_flags | O_NOFOLLOW)));
  }
  return here;
}

// The folder of a path that is put or removed, with the right to write to it; or -1 and errno. The
// last one stays open, as many paths have the same.
int CopyTree::open_parent(std::string_view path) {
  path = folder_of(path);
  if (parent_ && path == parent_path_) return parent_.get();
  parent_ = open_folder(path);
  parent_path_ = path;
  struct stat status {};
  if (!parent_ || ::geteuid() == 0 || ::fstat(parent_.get(), &status) != 0) return parent_.get();
  constexpr mode_t needed = S_IWUSR | S_IXUSR;
  if ((status.st_mode & needed) == needed) return parent_.get();
  const UniqueFd folder(::openat(parent_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || ::fchmod(folder.get(), status.st_mode | S_IRWXU) != 0) return parent_.get();
  CopyEntry entry;
  entry.path = path;
  entry.set(status);
  folders_.push_back(std::move(entry));
  return parent_.get();
}

// The list is in order, so that a search takes few steps for any number of files.
CopyEntry* CopyTree::find(std::string_view path) {
  std::size_t low = 0;
  std::size_t high = agreed_.size();
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (copy_order(agreed_[middle].path, path))
      low = middle + 1;
    else
      high = middle;
  }
  return low < agreed_.size() && agreed_[low].path == path ? &agreed_[low] : nullptr;
}

// New paths wait in added_: an insertion for each would move the list each time.
void CopyTree::keep(CopyEntry&& entry) {
  if (CopyEntry* const known = find(entry.path))
    *known = std::move(entry);
  else
    added_.push_back(std::move(entry));
}

// Merges the added paths into the agreed ones, and drops those that have gone (mode 0). Both are in
// order, so that one pass is enough.
void CopyTree::merge() {
  std::vector<CopyEntry> next;
  next.reserve(agreed_.size() + added_.size());
  auto added = added_.begin();
  for (CopyEntry& entry : agreed_) {
    for (; added != added_.end() && copy_order(added->path, entry.path); ++added)
      next.push_back(std::move(*added));
    if (entry.mode != 0) next.push_back(std::move(entry));
  }
  for (; added != added_.end(); ++added) next.push_back(std::move(*added));
  agreed_.swap(next);
  added_.clear();
}

// Takes messages until `done`. The order is checked, so that no path comes twice, nothing is
// removed once something was put, and all can be merged in one pass. False, for a message that no
// CopyTree sends: what was done stays, the lists do not count any more, and the copy is made anew.
// Refusals are sent at the end and in one piece, as the other side reads nothing before it has sent
// all.
bool CopyTree::take(CopyWire& wire) {
  std::string refusals;
  const auto refuse = [&refusals](std::uint64_t number, std::uint64_t error) {
    const std::uint64_t pair[] = {number, error};
    refusals.append(reinterpret_cast<const char*>(pair), sizeof pair);
  };
  std::uint64_t puts = 0;
  std::uint64_t gone = 0;
  std::string last;
  report = CopyReport();
  bytes_ = 0;
  bool lost = false;
  for (;;) {
    std::uint64_t numbers[4];
    if (!wire.get(numbers, sizeof numbers)) return false;
    const std::uint64_t kind = numbers[0] & 0xff;
    if (kind == copy_done) break;
    CopyEntry entry;
    if (kind == 0 || kind > copy_failed || numbers[3] > longest_payload) return false;
    entry.path.resize(static_cast<std::size_t>(numbers[3]));
    if (!wire.get(&entry.path[0], entry.path.size())) return false;
    if (kind == copy_failed) {
      report.problem = printable(entry.path);
      return true;
    }
    if (kind == copy_note) {
      if (!report.take((numbers[0] >> 8) & 0xff, numbers[1], entry.path)) return false;
      continue;
    }
    if (entry.path.empty() || entry.path.size() > longest_copied_path ||
        !is_canonical_form(concat("/%", {entry.path})))
      return false;
    const bool is_put = kind == copy_put;
    if (is_put && puts == 0) last.clear();
    // Nothing comes twice.
    const bool in_order =
        last.empty() || (is_put ? copy_order(last, entry.path) : copy_order(entry.path, last));
    if (!in_order || (!is_put && puts != 0)) return false;
    if (++(is_put ? puts : gone) > most_files_) return false;
    last = entry.path;
    if (!is_put) {
      remove(entry.path);
      continue;
    }
    entry.mode = static_cast<std::uint32_t>(numbers[0] >> 8);
    entry.size = numbers[1];
    entry.modified = static_cast<std::int64_t>(numbers[2]);
    const int error = take_one(wire, entry, lost);
    if (lost) return false;
    if (error == 0) continue;
    report.add(error, entry.path);
    refuse(puts - 1, static_cast<std::uint64_t>(error));
  }
  finish_folders();
  merge();
  refuse(copy_end, 0);
  return wire.put(refusals) && wire.flush();
}

// Takes what is put at a path, or returns why not. The content is read in any case, as it is on the
// wire. A mode or a size that no CopyTree sends loses the wire. The temporary file is gone at the
// end, whatever has failed.
int CopyTree::take_one(CopyWire& wire, CopyEntry& entry, bool& lost) {
  const bool is_file = S_ISREG(entry.mode);
  const bool is_link = S_ISLNK(entry.mode);
  lost = (entry.mode & ~static_cast<std::uint32_t>(S_IFMT | 0777)) != 0 ||
         (!is_file && !is_link && !S_ISDIR(entry.mode)) || entry.size > most_bytes_;
  if (lost) return 0;
  const bool allowed = permission(entry.path) == Permission::write;
  int error = allowed ? 0 : EROFS;
  if (error == 0 && open_parent(entry.path) < 0) error = errno;
  if (S_ISDIR(entry.mode)) return error != 0 ? error : put_folder(entry, parent_.get());
  UniqueFd file;
  if (is_file && error == 0) {
    file.reset(above_standard_streams(::openat(parent_.get(), part_.c_str(),
                                               O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                                               S_IRUSR | S_IWUSR)));
    if (!file) error = errno;
  }
  std::string target;
  const int content =
      is_link ? take_link(wire, target, lost) : take_content(wire, entry, file.get(), lost);
  if (error == 0) error = content;
  if (!lost && error == 0 && is_link &&
      ::symlinkat(target.c_str(), parent_.get(), part_.c_str()) != 0)
    error = errno;
  if (!lost && error == 0) error = put_file(entry, parent_.get(), part_.c_str(), file.get());
  if (lost || error != 0) ::unlinkat(parent_.get(), part_.c_str(), 0);
  return error;
}

// The target of a link, in one piece. It may lead anywhere: nothing here follows links.
int CopyTree::take_link(CopyWire& wire, std::string& target, bool& lost) {
  char size[4];
  while (!lost) {
    lost = !wire.get(size, sizeof size);
    const std::size_t bytes = number_in({size, sizeof size});
    if (lost || bytes == 0) break;
    lost = bytes > longest_payload || !target.empty();
    if (lost) break;
    target.resize(bytes);
    lost = !wire.get(&target[0], bytes);
  }
  return target.empty() || has_nul(target) ? EINVAL : 0;
}

// Reads all pieces, also those that cannot be written, and counts them against the bounds of the
// file and of the copy before they are. A hole is skipped, so that a sparse file stays sparse; a
// hole at the end needs ftruncate(). The hash goes over its zeros as well.
int CopyTree::take_content(CopyWire& wire, CopyEntry& entry, int fd, bool& lost) {
  int error = 0;
  std::uint64_t size = 0;
  entry.hash = 0;
  bool ends_in_hole = false;
  for (;;) {
    char head[4];
    lost = !wire.get(head, sizeof head);
    std::size_t bytes = lost ? 0 : number_in({head, sizeof head});
    if (bytes == copy_broken) return ECANCELED;
    if (lost || bytes == 0) break;
    const bool hole = bytes > copy_hole;
    if (hole) bytes -= copy_hole;
    size += bytes;
    lost = bytes > longest_payload || size > entry.size || (bytes_ += bytes) > most_bytes_;
    ends_in_hole = hole;
    if (hole && fd >= 0 && ::lseek(fd, static_cast<off_t>(bytes), SEEK_CUR) < 0) error = errno;
    for (std::size_t i = 0; hole && i < bytes; ++i) entry.hash *= copy_prime;
    while (!lost && !hole && bytes != 0) {
      const std::string_view some = wire.get_some(bytes);
      lost = some.empty();
      bytes -= some.size();
      entry.hash = copy_hash(entry.hash, some);
      if (error == 0 && fd >= 0) error = write_all(fd, some);
    }
    if (lost) break;
  }
  if (ends_in_hole && fd >= 0 && error == 0 && ::ftruncate(fd, static_cast<off_t>(size)) != 0)
    error = errno;
  entry.size = size;
  return error;
}

// Whether the path here is as it was agreed, and may be replaced. If not, it is marked as `own`.
bool CopyTree::may_replace(CopyEntry& entry, int parent, bool& is_there) {
  const std::string name(base_name(entry.path));
  struct stat status {};
  is_there = ::fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
  if (!is_there) return true;
  CopyEntry now;
  now.path = entry.path;
  now.set(status);
  CopyEntry* const known = find(entry.path);
  if (known && !known->own && is_same(now, *known)) return true;
  // Both have changed it: it is no conflict when they are the same.
  const bool alike = now.mode == entry.mode && S_ISREG(now.mode) && now.size == entry.size;
  if (alike || now.is_recent) {
    const UniqueFd file(
        ::openat(parent, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    const bool is_read = file && copy_hash_of(file.get(), now.hash) == 0;
    if (alike && is_read && now.hash == entry.hash) return true;
  }
  now.own = true;
  keep(std::move(now));
  return false;
}

// Puts the finished file in the place of what was agreed, by a rename: a program that reads the
// path meanwhile sees the old file or the new one. Rights and times are set before it has its name.
int CopyTree::put_file(CopyEntry& entry, int parent, const char* part, int fd) {
  const std::string name(base_name(entry.path));
  bool is_there = false;
  if (!may_replace(entry, parent, is_there)) return copy_conflict;
  if (is_there) {
    // Of a folder all must have gone before.
    if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOTDIR)
      return errno == ENOTEMPTY || errno == EEXIST ? copy_conflict : errno;
  }
  struct stat status {};
  if (fd >= 0) {
    timespec times[2] = {};
    times[0].tv_nsec = UTIME_OMIT;
    constexpr std::int64_t second = 1000000000;
    times[1].tv_sec = static_cast<time_t>(entry.modified / second);
    times[1].tv_nsec = static_cast<long>(entry.modified % second);
    if (times[1].tv_nsec < 0) {
      --times[1].tv_sec;
      times[1].tv_nsec += second;
    }
    if (::fchmod(fd, entry.mode & 0777) != 0 || ::futimens(fd, times) != 0) return errno;
  }
  if (::renameat(parent, part, parent, name.c_str()) != 0) return errno;
  const int looked = fd >= 0 ? ::fstat(fd, &status)
                             : ::fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW);
  if (looked != 0) return errno;
  entry.set(status);
  keep(std::move(entry));
  return 0;
}

// Its rights are set in finish_folders(): without the right to write, its files could not be put.
int CopyTree::put_folder(CopyEntry& entry, int parent) {
  const std::string name(base_name(entry.path));
  struct stat status {};
  const bool is_folder =
      ::fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
  if (!is_folder) {
    bool is_there = false;
    if (!may_replace(entry, parent, is_there)) return copy_conflict;
    if (is_there && ::unlinkat(parent, name.c_str(), 0) != 0) return errno;
    if (::mkdirat(parent, name.c_str(), 0700) != 0) return errno;
  }
  CopyEntry folder;
  folder.path = entry.path;
  folder.mode = entry.mode;
  folders_.push_back(std::move(folder));
  keep(std::move(entry));
  return 0;
}

// Removes a path, unless it was changed here: then it stays, and is new for the other side.
void CopyTree::remove(const std::string& path) {
  CopyEntry* const known = find(path);
  if (!known || permission(path) != Permission::write) return;
  CopyEntry& agreed = *known;
  const int parent = open_parent(path);
  const std::string name(base_name(path));
  CopyEntry now;
  now.path = path;
  struct stat status {};
  if (parent >= 0 && ::fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
    now.set(status);
    if (!agreed.own && is_same(now, agreed))
      (void)::unlinkat(parent, name.c_str(), S_ISDIR(now.mode) ? AT_REMOVEDIR : 0);
  }
  agreed.mode = 0;
}

// Sets the rights of folders, the inner ones first: an outer one may lose the right to enter it. A
// failure is ignored, and the next scan finds the difference.
void CopyTree::finish_folders() {
  parent_.reset();
  for (std::size_t i = folders_.size(); i-- > 0;) {
    const UniqueFd at = open_folder(folders_[i].path);
    const UniqueFd folder(::openat(at.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder) ::fchmod(folder.get(), folders_[i].mode & 0777);
  }
  folders_.clear();
}

}  // namespace v0_1
}  // namespace codeexec
