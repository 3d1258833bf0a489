// The files that are left out of a list, a search or a copy: patterns as in a .gitignore.

#include "files/ignore_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "files/files_internal.hpp"
#include "paths/paths.hpp"
#include "paths/paths_internal.hpp"
#include "paths/walk_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// A mismatch goes back to the last `**` only: an earlier one could match no more than that.
bool ignore_path_matches(std::string_view pattern, std::string_view path) {
  std::string_view again;
  std::string_view again_at;
  while (!path.empty()) {
    std::string_view rest = pattern;
    const std::string_view head = take_part(rest, '/');
    if (!pattern.empty() && head == "**"sv) {
      if (rest.empty()) return true;
      pattern = again = rest;
      again_at = path;
      continue;
    }
    std::string_view left = path;
    const std::string_view name = take_part(left, '/');
    const bool fits = !pattern.empty() && glob_matches(head, name) && rest.empty() <= left.empty();
    if (fits && left.empty() && rest.empty()) return true;
    if (fits && !left.empty()) {
      pattern = rest;
      path = left;
      continue;
    }
    if (again.empty()) return false;
    take_part(again_at, '/');
    path = again_at;
    pattern = again;
  }
  return false;
}

// Puts a character behind a backslash into brackets, as globs have no backslashes. One that means
// nothing in a glob stands for itself, and so does a backslash at the end.
std::string ignore_glob(std::string_view line) {
  std::string glob;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\' || i + 1 == line.size()) {
      glob += line[i];
    } else if (has_glob(line.substr(++i, 1))) {
      append_all(glob, "[%]", {line.substr(i, 1)});
    } else {
      glob += line[i];
    }
  }
  return glob;
}

}  // namespace

// Takes the lines apart once, as they are tried on each path. Beyond `most` lines the rest is not
// read, so that no file of rules makes a scan slow. A line that cannot mean a path is left out.
void IgnoreRules::add(std::string_view folder, std::string_view lines) {
  const std::size_t before = last_ ? last_->count : 0;
  auto level = new_shared<Level>();
  level->folder = folder;
  while (!lines.empty() && before + level->patterns.size() < most) {
    std::string_view line = take_part(lines, '\n');
    if (ends_with(line, "\r"sv)) line.remove_suffix(1);
    while (ends_with(line, " "sv) && !ends_with(line, "\\ "sv)) line.remove_suffix(1);
    if (line.empty() || line[0] == '#' || has_nul(line)) continue;
    Pattern pattern;
    pattern.negates = line[0] == '!';
    if (pattern.negates) line.remove_prefix(1);
    pattern.for_folders = ends_with(line, "/"sv);
    if (pattern.for_folders) line.remove_suffix(1);
    pattern.has_path = line.find('/') != std::string_view::npos;
    if (starts_with(line, "/"sv)) line.remove_prefix(1);
    if (line.empty()) continue;
    pattern.glob = ignore_glob(line);
    level->patterns.push_back(std::move(pattern));
  }
  if (level->patterns.empty()) return;
  level->count = before + level->patterns.size();
  level->around = std::move(last_);
  last_ = std::move(level);
}

void IgnoreRules::read(int directory, std::string_view folder) {
  const UniqueFd file(above_standard_streams(
      ::openat(directory, ".gitignore", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  constexpr std::size_t longest = std::size_t{64} << 10;
  add(folder, read_up_to(file, std::min(longest, static_cast<std::size_t>(status.st_size))));
}

// From the last line to the first, as the last one that fits counts: what is below an excluded
// folder is not looked at by the caller, so that `!` cannot bring it back, as in git.
bool IgnoreRules::excludes(std::string_view path, bool is_folder) const {
  const std::string_view name = base_name(path);
  for (const Level* level = last_.get(); level; level = level->around.get()) {
    if (!starts_with(path, level->folder)) continue;
    const std::string_view below = path.substr(level->folder.size());
    for (std::size_t i = level->patterns.size(); i-- > 0;) {
      const Pattern& pattern = level->patterns[i];
      if (pattern.for_folders && !is_folder) continue;
      const bool fits = pattern.has_path ? ignore_path_matches(pattern.glob, below)
                                         : glob_matches(pattern.glob, name);
      if (fits) return !pattern.negates;
    }
  }
  return false;
}

inline namespace inner {

IgnoreRules rules_around(const PathRules& rules, const std::string& directory,
                         std::string& prefix) {
  std::vector<std::pair<std::string, UniqueFd>> around;
  for (std::string path = directory;; path = place_of(path).directory) {
    auto fd = open_canonical_directory(path);
    if (!fd || rules.permission(path) == Permission::none) return {};
    const bool is_top = ::faccessat(fd->get(), ".git", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    around.emplace_back(path, std::move(*fd));
    if (is_top) break;
    constexpr std::size_t most = 64;
    if (path == "/" || around.size() == most) return {};
  }
  const std::string& top = around.back().first;
  const auto below = [&top](const std::string& path) {
    return path == top ? std::string() : path.substr(top == "/" ? 1 : top.size() + 1) + "/";
  };
  IgnoreRules found;
  for (std::size_t i = around.size(); i-- > 1;)
    found.read(around[i].second.get(), below(around[i].first));
  prefix = below(directory);
  return found;
}

bool is_closed_by_name(std::string_view name) {
  return name == ".git"sv || name == ".hg"sv || name == ".svn"sv ||
         is_generated_name(name, GeneratedScope::tree);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
