// Takes what a command has made out of its place, and puts back what was there.
//
//   what is there now     what becomes of it                            function
//   anything              moved to the folder for the person            take_out()
//   on another disk       copied there, then removed                    copy_out()
//   that cannot be had    named PUT_BACK_name beside, where none of     rename_beside()
//                         the user's tools looks for it
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
  explicit Split(const std::string& path)
      : folder(path.substr(0, std::max<std::size_t>(path.rfind('/'), 1))),
        name(path.substr(path.rfind('/') + 1)) {}
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
  UniqueFd in(above_standard_streams(::openat(from, name.c_str(), flags)));
  if (!in || ::mkdirat(to, name.c_str(), 0700) != 0) return errno;
  const UniqueFd out(above_standard_streams(::openat(to, name.c_str(), flags)));
  UniqueFd listed(above_standard_streams(::openat(in.get(), ".", flags)));
  if (!out || !listed) return errno;
  int error = 0;
  const int read = for_each_entry(std::move(listed), [&](const char* entry) {
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
  UniqueFd in(above_standard_streams(::openat(from, name.c_str(), flags)));
  if (!in) return errno;
  if (depth == deepest_copy) return EFBIG;
  UniqueFd listed(above_standard_streams(::openat(in.get(), ".", flags)));
  if (!listed) return errno;
  std::vector<std::string> names;
  for_each_entry(std::move(listed), [&names](const char* entry) {
    names.emplace_back(entry);
    return names.size() <= most_copied;
  });
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

std::string error_at(const char* what, const std::string& path, int error) {
  return concat("% %: %", {what, printable(path), errno_text(error)});
}

}  // namespace

inline namespace inner {

std::string PutBack::open_folder() {
  if (folder_fd_) return {};
  if (folder_.empty()) return "there is no folder";
  const UniqueFd root(above_standard_streams(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  std::string path = folder_;
  const std::time_t now = std::time(nullptr);
  append_all(path, "/%-%", {utc_time(now), random_hex(3)});
  std::replace(path.begin() + static_cast<std::ptrdiff_t>(folder_.size()), path.end(), ':', '-');
  folder_fd_ = make_folders(root.get(), path);
  if (!folder_fd_) return error_at("cannot make", path, errno);
  kept_in_ = std::move(path);
  return {};
}

std::string PutBack::rename_beside(int directory, const std::string& path) {
  const Split split(path);
  const std::string name = concat("PUT_BACK_%_%", {random_hex(3), split.name});
  if (::renameat(directory, split.name.c_str(), directory, name.c_str()) != 0)
    return error_at("cannot rename", path, errno);
  beside_.push_back(concat("%/%", {split.folder, name}));
  return {};
}

std::string PutBack::take_out(const std::string& path) {
  const Split split(path);
  const auto directory = open_canonical_directory(split.folder);
  if (!directory) return directory.error().message;
  if (!open_folder().empty()) return rename_beside(directory->get(), path);
  const UniqueFd to = make_folders(folder_fd_.get(), split.folder);
  if (!to) return rename_beside(directory->get(), path);
  if (::renameat(directory->get(), split.name.c_str(), to.get(), split.name.c_str()) == 0)
    return {};
  if (errno == ENOENT) return {};
  if (errno != EXDEV || Copier().copy(directory->get(), split.name, to.get()) != 0)
    return rename_beside(directory->get(), path);
  const int error = remove_copied(directory->get(), split.name);
  return error == 0 ? std::string() : rename_beside(directory->get(), path);
}

std::string PutBack::keep_copy(const std::string& path) {
  const Split split(path);
  const auto directory = open_canonical_directory(split.folder);
  if (!directory) return directory.error().message;
  if (!open_folder().empty()) return {};
  const UniqueFd to = make_folders(folder_fd_.get(), split.folder);
  if (to) Copier().copy(directory->get(), split.name, to.get());
  return {};
}

bool PutBack::put_back(const std::string& path, const LaterFile& file, std::string& problem) {
  const Split split(path);
  const auto directory = open_canonical_directory(split.folder);
  if (!directory) {
    if (directory.error().system_error == ENOENT) return false;
    problem = directory.error().message;
    return true;
  }
  const int in = directory->get();
  const auto fail = [&] { problem = error_at("cannot put back", path, errno); };
  if (S_ISDIR(file.mode)) {
    if (::mkdirat(in, split.name.c_str(), file.mode & 0777) != 0 && errno != EEXIST) fail();
    return true;
  }
  if (!file.text) {
    problem = concat("cannot put back %: it was not kept, as it is large or no regular file",
                     {printable(path)});
    return true;
  }
  const std::string name = concat(".put-back-%", {random_hex(8)});
  if (S_ISLNK(file.mode)) {
    if (::symlinkat(file.text->c_str(), in, name.c_str()) != 0) return fail(), true;
  } else {
    const UniqueFd out(above_standard_streams(
        ::openat(in, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)));
    if (!out) return fail(), true;
    errno = write_all(out.get(), *file.text);
    if (errno != 0 || ::fchmod(out.get(), file.mode & 07777) != 0) {
      fail();
      ::unlinkat(in, name.c_str(), 0);
      return true;
    }
  }
  if (::renameat(in, name.c_str(), in, split.name.c_str()) != 0) {
    fail();
    ::unlinkat(in, name.c_str(), 0);
  }
  return true;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
