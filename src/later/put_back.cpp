// Takes what a command has made out of its place, and puts back what was there.
//
//   what is there now     what becomes of it                            function
//   anything              moved to the folder for the person            take_out()
//   on another disk       copied there, then removed                    take_out()
//   that cannot be had    named PUT_BACK_name in the folder around,     rename_beside()
//                         where none of the user's tools looks for it
//   settings              a copy of the text is kept                    keep_text()
//   what is gone          written beside, then renamed to its place     put_back()
//
// Commands that run beside may exchange any directory for a link at any moment: each is opened from
// the one above it, following none.

#include "later/put_back_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "paths/paths_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr std::size_t longest_copy = std::size_t{16} << 20;
constexpr std::size_t most_copied = 1000;
constexpr std::size_t deepest_copy = 16;

struct Split {
  explicit Split(const std::string& path) : folder(later_folder_of(path)), name(base_name(path)) {}
  std::string folder;
  std::string name;
};

// Copies what lies in one directory to another one, within bounds.
class Copier {
 public:
  // 0 or errno.
  int copy(int from, const std::string& name, int to, std::size_t depth = 0);

 private:
  int copy_file(int from, const std::string& name, int to, mode_t mode);
  int copy_folder(int from, const std::string& name, int to, std::size_t depth);

  std::size_t left_ = most_copied;
  std::size_t bytes_left_ = longest_copy;
};

int Copier::copy_file(int from, const std::string& name, int to, mode_t mode) {
  constexpr int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  const UniqueFd in(above_standard_streams(::openat(from, name.c_str(), flags)));
  if (!in) return errno;
  const UniqueFd out(above_standard_streams(::openat(
      to, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode & 0700)));
  if (!out) return errno;
  char buffer[16384];
  for (;;) {
    const ssize_t size = ::read(in.get(), buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return errno;
    if (size == 0) return 0;
    if (static_cast<std::size_t>(size) > bytes_left_) return EFBIG;
    bytes_left_ -= static_cast<std::size_t>(size);
    const int error = write_all(out.get(), {buffer, static_cast<std::size_t>(size)});
    if (error != 0) return error;
  }
}

int Copier::copy_folder(int from, const std::string& name, int to, std::size_t depth) {
  constexpr int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  const UniqueFd in(above_standard_streams(::openat(from, name.c_str(), flags)));
  if (!in || ::mkdirat(to, name.c_str(), 0700) != 0) return errno;
  const UniqueFd out(above_standard_streams(::openat(to, name.c_str(), flags)));
  if (!out) return errno;
  int error = 0;
  const int read = for_each_entry_in(in.get(), [&](const char* entry) {
    error = copy(in.get(), entry, out.get(), depth + 1);
    return error == 0;
  });
  return error != 0 ? error : read;
}

int Copier::copy(int from, const std::string& name, int to, std::size_t depth) {
  struct stat status {};
  if (::fstatat(from, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return errno;
  if (left_ == 0 || depth == deepest_copy) return EFBIG;
  --left_;
  if (S_ISDIR(status.st_mode)) return copy_folder(from, name, to, depth);
  if (S_ISREG(status.st_mode)) return copy_file(from, name, to, status.st_mode);
  if (!S_ISLNK(status.st_mode)) return 0;  // a pipe or a socket has nothing to be kept
  std::string target(4097, '\0');
  const ssize_t size = ::readlinkat(from, name.c_str(), &target[0], target.size());
  if (size < 0) return errno;
  target.resize(static_cast<std::size_t>(size));
  return ::symlinkat(target.c_str(), to, name.c_str()) == 0 ? 0 : errno;
}

// Removes what has been copied. 0 or errno.
int remove_copied(int from, const std::string& name, std::size_t depth = 0) {
  if (::unlinkat(from, name.c_str(), 0) == 0) return 0;
  if (errno != EISDIR && errno != EPERM) return errno;
  constexpr int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  const UniqueFd in(above_standard_streams(::openat(from, name.c_str(), flags)));
  if (!in) return errno;
  if (depth == deepest_copy) return EFBIG;
  std::vector<std::string> names;
  const int read = for_each_entry_in(in.get(), [&names](const char* entry) {
    names.emplace_back(entry);
    return names.size() <= most_copied;
  });
  if (read != 0) return read;
  for (const std::string& entry : names)
    if (const int error = remove_copied(in.get(), entry, depth + 1); error != 0) return error;
  return ::unlinkat(from, name.c_str(), AT_REMOVEDIR) == 0 ? 0 : errno;
}

// Makes the directories of a relative path and opens the last one.
UniqueFd make_folders(int base, std::string_view path) {
  constexpr int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  UniqueFd here(above_standard_streams(::openat(base, ".", flags)));
  while (here && !path.empty()) {
    const std::string part(take_part(path, '/'));
    if (part.empty()) continue;
    ::mkdirat(here.get(), part.c_str(), 0700);
    here.reset(above_standard_streams(::openat(here.get(), part.c_str(), flags)));
  }
  return here;
}

// 0 or errno. A directory of ours may have lost the right to be changed, by a command.
template <class Change>
int change_in(int directory, Change change) {
  if (change() == 0) return 0;
  if (errno != EACCES) return errno;
  struct stat status {};
  if (::fstat(directory, &status) != 0 || ::fchmod(directory, (status.st_mode & 07777) | 0700) != 0)
    return EACCES;
  return change() == 0 ? 0 : errno;
}

std::string error_at(const char* what, const std::string& path, int error) {
  return concat("% %: %", {what, printable(path), errno_text(error)});
}

}  // namespace

inline namespace inner {

UniqueFd PutBack::open_folder(const std::string& path) const {
  return open_later_folder(path, folders_);
}

// Where what lies in a folder is kept; empty: there is no such place.
UniqueFd PutBack::make_kept_folder(const std::string& folder) {
  if (kept_.empty()) return {};
  if (!kept_fd_) {
    const UniqueFd root(above_standard_streams(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
    std::string path = concat("%/%-%", {kept_, utc_time(std::time(nullptr)), random_hex(3)});
    std::replace(path.begin() + static_cast<std::ptrdiff_t>(kept_.size()), path.end(), ':', '-');
    kept_fd_ = make_folders(root.get(), path);
    if (!kept_fd_) return {};
    kept_in_ = std::move(path);
  }
  return make_folders(kept_fd_.get(), folder);
}

std::string PutBack::rename_beside(int directory, const std::string& path, std::size_t tree) {
  constexpr std::size_t longest = 100;
  const Split split(path);
  const auto around = open_folder(path.substr(0, std::max<std::size_t>(tree, 1)));
  if (!around) return error_at("cannot open the folder of", path, errno);
  const std::string name =
      concat("PUT_BACK_%_%", {random_hex(3), utf8_prefix(split.name, longest)});
  const int error = change_in(directory, [&] {
    return ::renameat(directory, split.name.c_str(), around.get(), name.c_str());
  });
  if (error != 0) return error_at("cannot rename", path, error);
  beside_.push_back(concat("%/%", {path.substr(0, tree), name}));
  return {};
}

std::string PutBack::take_out(const std::string& path, std::size_t tree) {
  const Split split(path);
  const UniqueFd directory = open_folder(split.folder);
  if (!directory) return error_at("cannot open the folder of", path, errno);
  const UniqueFd to = make_kept_folder(split.folder);
  if (!to) return rename_beside(directory.get(), path, tree);
  const int error = change_in(directory.get(), [&] {
    return ::renameat(directory.get(), split.name.c_str(), to.get(), split.name.c_str());
  });
  if (error == 0 || error == ENOENT) return {};
  if (error != EXDEV || Copier().copy(directory.get(), split.name, to.get()) != 0) {
    remove_copied(to.get(), split.name);
    return rename_beside(directory.get(), path, tree);
  }
  return remove_copied(directory.get(), split.name) == 0
             ? std::string()
             : rename_beside(directory.get(), path, tree);
}

std::string PutBack::keep_text(const std::string& path, std::size_t tree, const LaterFile& file) {
  const Split split(path);
  if (const UniqueFd to = make_kept_folder(split.folder))
    return write_new(to.get(), split.name, file);
  const std::string name = concat("PUT_BACK_%_%", {random_hex(3), split.name});
  const std::string around = path.substr(0, std::max<std::size_t>(tree, 1));
  const UniqueFd directory = open_folder(around);
  if (!directory) return error_at("cannot open the folder of", path, errno);
  beside_.push_back(concat("%/%", {around, name}));
  return write_new(directory.get(), name, file);
}

// A file or a link that is not there yet.
std::string PutBack::write_new(int in, const std::string& name, const LaterFile& file) {
  const int made = change_in(in, [&] {
    if (S_ISLNK(file.mode)) return ::symlinkat(file.text->c_str(), in, name.c_str());
    const UniqueFd out(above_standard_streams(
        ::openat(in, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)));
    if (!out) return -1;
    errno = write_all(out.get(), *file.text);
    return errno == 0 ? ::fchmod(out.get(), file.mode & 07777) : -1;
  });
  if (made == 0) return {};
  ::unlinkat(in, name.c_str(), 0);
  return error_at("cannot write", name, made);
}

bool PutBack::put_back(const std::string& path, const LaterFile& file, std::string& problem) {
  const Split split(path);
  const UniqueFd directory = open_folder(split.folder);
  if (!directory) {
    if (errno == ENOENT || errno == ENOTDIR) return false;
    problem = error_at("cannot open the folder of", path, errno);
    return true;
  }
  const int in = directory.get();
  if (S_ISDIR(file.mode)) {
    const int error = change_in(in, [&] {
      return ::mkdirat(in, split.name.c_str(), file.mode & 07777) == 0 || errno == EEXIST ? 0 : -1;
    });
    const UniqueFd folder = open_folder(path);
    if (error != 0 || !folder || ::fchmod(folder.get(), file.mode & 07777) != 0)
      problem = error_at("cannot put back", path, error != 0 ? error : errno);
    return true;
  }
  const std::string name = concat(".put-back-%", {random_hex(8)});
  problem = write_new(in, name, file);
  if (!problem.empty() || ::renameat(in, name.c_str(), in, split.name.c_str()) == 0) return true;
  problem = error_at("cannot put back", path, errno);
  ::unlinkat(in, name.c_str(), 0);
  return true;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
