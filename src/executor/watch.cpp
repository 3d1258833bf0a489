// Files that later programs trust: which of them a command has changed.
//
// The user's own tools run or obey these files later, outside of any sandbox. Changes are not
// prevented: they are listed in the result.
//
//   step    what is done                                      function, and its thread
//   before  looks at each watched directory                   confine(), the caller's
//   after   looks again, and compares the two                 changes(), of conclude()
//   gone    looks at the entry itself, as a bound may be met  is_another()
//
//   where it looks           what it takes                                 function
//   a directory              its entries, or fixed paths if it is large    look_at()
//   .git, and SUB/.git       settings, hooks, worktrees, submodules        look_at_repository()
//   a directory with a HEAD  the same settings: it is a repository itself  look_at_settings()
//   another .name            the rows of watched_paths that begin with it  look_at_watched()
//
// What holds: nothing is opened but directories and the config of repositories, the last name of a
// path is never followed as a link, and bounds end each look. A command that makes many entries can
// hide a change beyond a bound; the sandbox holds it as before. What another process changes
// meanwhile is listed, too.

#include "executor/executor_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/names_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Below a watched directory. With a slash at its end: what lies in it, and not below that.
constexpr auto watched_paths = NameList{".envrc",
                                        ".gitconfig",
                                        ".npmrc",
                                        ".yarnrc",
                                        ".yarnrc.yml",
                                        ".profile",
                                        ".bashrc",
                                        ".bash_profile",
                                        ".bash_login",
                                        ".bash_logout",
                                        ".bash_aliases",
                                        ".zshenv",
                                        ".zprofile",
                                        ".zshrc",
                                        ".zlogin",
                                        ".zlogout",
                                        ".kshrc",
                                        ".cshrc",
                                        ".tcshrc",
                                        ".login",
                                        ".gdbinit",
                                        ".mcp.json",
                                        ".mise.toml",
                                        ".pre-commit-config.yaml",
                                        ".devcontainer.json",
                                        ".devcontainer/",
                                        ".husky/",
                                        ".vscode/",
                                        ".idea/",
                                        ".ssh/",
                                        ".github/workflows/",
                                        ".claude/settings.json",
                                        ".claude/settings.local.json",
                                        ".cursor/mcp.json",
                                        ".cargo/config",
                                        ".cargo/config.toml",
                                        ".config/git/config",
                                        ".config/fish/config.fish"};

// The value of core.hooksPath in the text of a git configuration, or "". Any of several values is
// enough, because the file itself is watched. Only what lies in the work tree is of interest here.
std::string hooks_path_in(const std::string& config) {
  constexpr std::string_view key = "hookspath";
  const std::size_t at = in_lower_case(config).find(key);
  if (at == std::string::npos) return {};
  std::string_view rest = std::string_view(config).substr(at + key.size());
  std::string_view line = take_part(rest, '\n');
  constexpr const char* around = " \t\r=\"";
  line.remove_prefix(std::min(line.find_first_not_of(around), line.size()));
  line = line.substr(0, line.find_last_not_of(around) + 1);
  const std::string parts = concat("/%/", {line});
  if (starts_with(line, "/"sv) || parts.find("/../") != std::string::npos || has_nul(parts))
    return {};
  return std::string(line);
}

struct CloseListing {
  void operator()(DIR* listing) const noexcept { ::closedir(listing); }
};

}  // namespace

inline namespace inner {

WatchedFiles::WatchedFiles(std::vector<std::string> directories, bool below)
    : directories_(std::move(directories)), below_(below) {
  for (const std::string& directory : directories_) look_at(directory);
}

// Both looks are in the order of their paths, so one pass over both finds what differs.
std::vector<std::string> WatchedFiles::changes() const {
  std::vector<std::string> changed;
  if (directories_.empty()) return changed;
  const WatchedFiles now(directories_, below_);
  auto before = prints_.begin();
  auto after = now.prints_.begin();
  while (changed.size() < max_changes && (before != prints_.end() || after != now.prints_.end())) {
    const bool gone =
        after == now.prints_.end() || (before != prints_.end() && before->first < after->first);
    const bool added = !gone && (before == prints_.end() || after->first < before->first);
    if (gone ? is_another(*before) : added || before->second != after->second)
      changed.push_back(gone ? before->first : after->first);
    if (!added) ++before;
    if (!gone) ++after;
  }
  return changed;
}

// True if the entry is gone or differs. The second look may have left it out at a bound, so the
// file itself is asked.
bool WatchedFiles::is_another(const std::pair<const std::string, std::string>& known) {
  struct stat status {};
  return ::fstatat(AT_FDCWD, known.first.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
         print_of(status) != known.second;
}

std::string WatchedFiles::print_of(const struct stat& status) {
#if defined(__APPLE__)
  const timespec& modified = status.st_mtimespec;
#else
  const timespec& modified = status.st_mtim;
#endif
  const timespec& changed = change_time(status);
  const auto number = [](auto value) { return static_cast<std::uint64_t>(value); };
  const std::uint64_t print[] = {
      number(status.st_dev),    number(status.st_ino),  number(status.st_mode & S_IFMT),
      number(status.st_mode),   number(status.st_size), number(modified.tv_sec),
      number(modified.tv_nsec), number(changed.tv_sec), number(changed.tv_nsec)};
  const std::size_t told = S_ISDIR(status.st_mode) ? 3 : std::size(print);
  return std::string(reinterpret_cast<const char*>(print), told * sizeof print[0]);
}

bool WatchedFiles::look_at_one(const Place& place, const std::string& file) {
  struct stat status {};
  if (left_ == 0 || ::fstatat(place.fd, file.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return false;
  --left_;
  prints_[place.start + file] = print_of(status);
  return S_ISDIR(status.st_mode);
}

void WatchedFiles::look_at_entries(const Place& place, const std::string& path, int repositories) {
  if (!look_at_one(place, path)) return;
  std::size_t left = repositories ? max_repositories : max_entries;
  for_each_entry(place.start + path, [&](std::string_view file) {
    // git leaves samples alone, and makes a dozen of them.
    if (ends_with(file, ".sample"sv)) return true;
    if (left-- == 0) return false;
    const std::string whole = concat("%/%", {path, file});
    if (repositories == 0) {
      look_at_one(place, whole);
      return true;
    }
    look_at_settings(place, whole + '/');
    // The folder of a submodule is named as a rule by its path, which may have several parts; it
    // may hold `modules` of its own.
    const bool is_one = prints_.count(concat("%%/config", {place.start, whole})) != 0;
    if (repositories > 1)
      look_at_entries(place, is_one ? whole + "/modules" : whole, repositories - 1);
    return true;
  });
}

void WatchedFiles::look_at_settings(const Place& place, const std::string& begin) {
  for (const char* file : {"config", "config.worktree", "commondir", "info/attributes"})
    look_at_one(place, begin + file);
  look_at_entries(place, begin + "hooks");
}

void WatchedFiles::look_at_repository(const Place& place, const std::string& git) {
  const std::size_t tree = git.rfind('/') + 1;  // npos + 1 is 0
  for (const char* file : {".mcp.json", ".claude/settings.json", ".cursor/mcp.json"})
    if (tree > 0) look_at_one(place, git.substr(0, tree) + file);
  if (!look_at_one(place, git)) return;
  look_at_settings(place, git + '/');
  const std::string hooks = hooks_path_in(text_of(place, concat("%/config", {git})));
  if (!hooks.empty()) look_at_entries(place, concat({git.substr(0, tree), hooks}));
  look_at_entries(place, git + "/modules", 3);
  look_at_entries(place, git + "/worktrees", 1);
}

// A command may have put anything there: this follows no link and never blocks, on a fifo for one.
std::string WatchedFiles::text_of(const Place& place, const std::string& file) {
  constexpr std::size_t most = std::size_t{64} << 10;
  constexpr int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  const UniqueFd fd(above_standard_streams(::openat(place.fd, file.c_str(), flags)));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  std::string text(std::min(static_cast<std::size_t>(status.st_size), most), '\0');
  const ssize_t size = ::read(fd.get(), &text[0], text.size());
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return text;
}

void WatchedFiles::look_at_watched(const Place& place, std::string_view entry) {
  for (const std::string_view path : watched_paths) {
    if (!entry.empty() && path.substr(0, path.find('/')) != entry) continue;
    if (ends_with(path, "/"sv))
      look_at_entries(place, std::string(path.substr(0, path.size() - 1)));
    else
      look_at_one(place, std::string(path));
  }
}

// Most of what is looked for is not there, so the directory is listed, unless it is large.
void WatchedFiles::look_at(const std::string& directory) {
  // It sets O_CLOEXEC and O_NONBLOCK, and takes fewer calls than fdopendir().
  const std::unique_ptr<DIR, CloseListing> listing(::opendir(directory.c_str()));
  if (!listing) return;
  const Place place = {::dirfd(listing.get()), directory == "/" ? directory : directory + "/"};
  std::size_t left = max_listed;
  std::size_t repositories = max_repositories;
  const dirent* entry = nullptr;
  while (left > 0 && (entry = ::readdir(listing.get())) != nullptr) {
    --left;
    const std::string_view name = entry->d_name;
    if (name == ".git"sv)
      look_at_repository(place, ".git");
    else if (name == "HEAD"sv)
      look_at_settings(place, {});
    else if (starts_with(name, "."sv))
      look_at_watched(place, name);
    else if (!below_ || (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN))
      continue;
    else if (repositories-- == 0)
      below_ = false;
    else
      look_at_repository(place, concat("%/.git", {name}));
  }
  if (left > 0) return;
  below_ = false;
  look_at_repository(place, ".git");
  look_at_watched(place, {});
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
