// Files that later programs trust: which of them a command has changed.

#include "executor/executor_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

WatchedFiles::WatchedFiles(std::vector<std::string> directories)
    : directories_(std::move(directories)) {
  for (const std::string& directory : directories_) look_at(directory);
}

std::vector<std::string> WatchedFiles::changes() const {
  std::vector<std::string> changed;
  if (directories_.empty()) return changed;
  const WatchedFiles now(directories_);
  auto before = prints_.begin();
  auto after = now.prints_.begin();
  while (changed.size() < max_changes && (before != prints_.end() || after != now.prints_.end())) {
    const bool gone =
        after == now.prints_.end() || (before != prints_.end() && before->first < after->first);
    const bool added = !gone && (before == prints_.end() || after->first < before->first);
    if (gone || added || before->second != after->second)
      changed.push_back(gone ? before->first : after->first);
    if (!added) ++before;
    if (!gone) ++after;
  }
  return changed;
}

WatchedFiles::Print WatchedFiles::print_of(const struct stat& status) {
  const auto number = [](auto value) { return static_cast<std::uint64_t>(value); };
  Print print = {number(status.st_dev), number(status.st_ino), number(status.st_mode & S_IFMT)};
  if (S_ISDIR(status.st_mode)) return print;
#if defined(__APPLE__)
  const timespec& modified = status.st_mtimespec;
  const timespec& changed = status.st_ctimespec;
#else
  const timespec& modified = status.st_mtim;
  const timespec& changed = status.st_ctim;
#endif
  print[3] = number(status.st_mode);
  print[4] = number(status.st_size);
  print[5] = number(modified.tv_sec);
  print[6] = number(modified.tv_nsec);
  print[7] = number(changed.tv_sec);
  print[8] = number(changed.tv_nsec);
  return print;
}

bool WatchedFiles::look_at_one(int root, const std::string& start, const char* file) {
  struct stat status {};
  if (::fstatat(root, file, &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
  prints_[start + file] = print_of(status);
  return S_ISDIR(status.st_mode);
}

void WatchedFiles::look_at_entries(int root, const std::string& start, const char* path) {
  if (!look_at_one(root, start, path)) return;
  std::size_t left = max_entries;
  for_each_entry(start + path, [&](std::string_view file) {
    // git leaves samples alone, and makes a dozen of them.
    if (ends_with(file, ".sample")) return true;
    if (left-- == 0) return false;
    look_at_one(root, start, concat({path, "/", file}).c_str());
    return true;
  });
}

void WatchedFiles::look_at(const std::string& directory) {
  const UniqueFd opened(above_standard_streams(
      ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK)));
  if (!opened) return;
  const int root = opened.get();
  const std::string start = directory == "/" ? directory : directory + "/";
  if (look_at_one(root, start, ".git")) {
    for (const char* file : {".git/config", ".git/config.worktree", ".git/commondir"})
      look_at_one(root, start, file);
    look_at_entries(root, start, ".git/hooks");
  }
  for (const char* path : {".husky", ".vscode", ".idea", ".ssh"})
    look_at_entries(root, start, path);
  for (const char* file :
       {".envrc",        ".gitconfig", ".npmrc",        ".yarnrc",     ".yarnrc.yml",
        ".profile",      ".bashrc",    ".bash_profile", ".bash_login", ".bash_logout",
        ".bash_aliases", ".zshenv",    ".zprofile",     ".zshrc",      ".zlogin",
        ".zlogout",      ".kshrc",     ".cshrc",        ".tcshrc",     ".login"})
    look_at_one(root, start, file);
  struct stat status {};
  if (::fstatat(root, ".config", &status, AT_SYMLINK_NOFOLLOW) != 0) return;
  for (const char* file : {".config/git/config", ".config/fish/config.fish"})
    look_at_one(root, start, file);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
