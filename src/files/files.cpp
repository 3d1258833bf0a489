// Where a file lies, and whether the rules permit its use.
//
// A path is made canonical, judged by the rules and then opened as the work_dir of a command is:
// see the paths section. The last name is opened from the descriptor of its directory, and never
// through a link. A directory that is exchanged for a link between the two steps is an error.
//
// fstatat() refuses what is no regular file before it is opened, because opening alone has effects:
// it wakes the writer of a pipe and starts a watchdog. O_NONBLOCK keeps a pipe that takes the place
// of the file meanwhile from blocking.

#include "files/files.hpp"
#include "files/files_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "paths/paths.hpp"
#include "paths/paths_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

Expected<void> check_file_system(int fd, const std::string& path) {
#if defined(__linux__)
  constexpr std::uint32_t kinds[] = {
      0x00009fa0,  // proc
      0x62656572,  // sysfs
      0x64626720,  // debugfs
      0x74726163,  // tracefs
      0x73636673,  // securityfs
      0x62656570,  // configfs
      0x0027e0eb,  // cgroup
      0x63677270,  // cgroup2
      0xcafe4a11,  // bpf
      0xde5e81e4,  // efivarfs
      0xf97cff8c,  // selinuxfs
      0x42494e4d,  // binfmt_misc
      0x65735543,  // fusectl
      0x6165676c,  // pstore
      0x6e736673,  // nsfs
  };
  struct statfs status {};
  if (::fstatfs(fd, &status) != 0) return system_error(errno, "%", {in_quotes(path)});
  const auto kind = static_cast<std::uint32_t>(status.f_type);
  if (find_in(kinds, kind) != std::end(kinds))
    return make_error(ErrorCode::permission_denied,
                      "%: is the kernel's (/proc, /sys and their like), which is closed",
                      {in_quotes(path)});
#else
  (void)fd;
  (void)path;
#endif
  return {};
}

Expected<void> check_permission(const PathRules& rules, const std::string& path,
                                Permission wanted) {
  const Permission had = rules.permission(path);
  if (had >= wanted) return {};
  if (had == Permission::none)
    return make_error(ErrorCode::permission_denied,
                      "%: not in the allowed directories (allowed_paths)", {in_quotes(path)});
  if (rules.keeps(path))
    return make_error(ErrorCode::permission_denied,
                      "%: stays as it is, since the user's own tools run it later (allow_later)",
                      {in_quotes(path)});
  return make_error(ErrorCode::permission_denied, "%: may be read and not changed (read_only)",
                    {in_quotes(path)});
}

Expected<std::string> permitted_path(const PathRules& rules, std::string_view path,
                                     std::string_view base, Permission wanted) {
  if (starts_with(path, "~/"sv))
    return make_error(ErrorCode::invalid_argument,
                      "%: `~` is not expanded here; give an absolute path, or one relative to %",
                      {in_quotes(path), in_quotes(base)});
  auto result = canonical_path(path, base);
  if (!result) return result;
  const auto permitted = check_permission(rules, *result, wanted);
  if (!permitted) return permitted.failure();
  return result;
}

bool names_a_directory(std::string_view path) {
  const std::string_view last = base_name(path);
  return last.empty() || last == "."sv || last == ".."sv;
}

Place place_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return {path.substr(0, std::max<std::size_t>(slash, 1)), path.substr(slash + 1)};
}

SharedError not_regular_error(const std::string& path, mode_t mode) {
  const char* what = "is a device";
  if (S_ISDIR(mode)) what = "is a directory";
  if (S_ISFIFO(mode)) what = "is a pipe";
  if (S_ISSOCK(mode)) what = "is a socket";
  if (S_ISLNK(mode)) what = "has become a link";
  return make_error(ErrorCode::invalid_argument, "%: %, no regular file", {in_quotes(path), what});
}

}  // namespace inner

const char* name(FileEntry::Type type) noexcept {
  switch (type) {
    case FileEntry::Type::file:
      return "file";
    case FileEntry::Type::directory:
      return "directory";
    case FileEntry::Type::link:
      return "link";
    case FileEntry::Type::other:
      return "other";
  }
  return "";
}

Files::Files(PathRules rules, std::string base, const FilesElsewhere* elsewhere,
             std::shared_ptr<const MovedDirectory> moved)
    : rules_(std::move(rules)),
      base_(std::move(base)),
      elsewhere_(elsewhere),
      moved_(std::move(moved)) {}

std::string Files::moved_path(std::string_view path) const {
  return moved_ ? moved_->here(path, base_) : std::string();
}

}  // namespace v0_1
}  // namespace codeexec
