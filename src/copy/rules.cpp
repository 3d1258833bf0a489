// The files of a workspace that are not copied: patterns as in a .gitignore.

#include "copy/rules_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Bits of the digit that a pattern in CopyRules begins with.
constexpr int rule_negates = 1;
constexpr int rule_for_folders = 2;
constexpr int rule_has_path = 4;

// A mismatch goes back to the last `**` only: an earlier one could match no more than that.
bool copy_path_matches(std::string_view pattern, std::string_view path) {
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
std::string copy_glob(std::string_view line) {
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
void CopyRules::add(std::string_view folder, std::string_view lines) {
  while (!lines.empty() && patterns_.size() < most) {
    std::string_view line = take_part(lines, '\n');
    if (ends_with(line, "\r"sv)) line.remove_suffix(1);
    while (ends_with(line, " "sv) && !ends_with(line, "\\ "sv)) line.remove_suffix(1);
    if (line.empty() || line[0] == '#' || has_nul(line)) continue;
    int flags = '0';
    if (line[0] == '!') {
      flags |= rule_negates;
      line.remove_prefix(1);
    }
    if (ends_with(line, "/"sv)) {
      flags |= rule_for_folders;
      line.remove_suffix(1);
    }
    if (line.find('/') != std::string_view::npos) flags |= rule_has_path;
    if (starts_with(line, "/"sv)) line.remove_prefix(1);
    if (line.empty()) continue;
    const char flag = static_cast<char>(flags);
    patterns_.push_back(concat({std::string_view(&flag, 1), folder, "\0"sv, copy_glob(line)}));
  }
}

// From the last line to the first, as the last one that fits counts: what is below an excluded
// folder is not looked at by the caller, so that `!` cannot bring it back, as in git.
bool CopyRules::excludes(std::string_view path, bool is_folder) const {
  const std::string_view name = base_name(path);
  for (std::size_t i = patterns_.size(); i-- > 0;) {
    std::string_view pattern = patterns_[i];
    const int flags = pattern[0] - '0';
    pattern.remove_prefix(1);
    const std::string_view folder = take_part(pattern, '\0');
    if ((flags & rule_for_folders) != 0 && !is_folder) continue;
    if (!starts_with(path, folder)) continue;
    const bool fits = (flags & rule_has_path) != 0
                          ? copy_path_matches(pattern, path.substr(folder.size()))
                          : glob_matches(pattern, name);
    if (fits) return (flags & rule_negates) == 0;
  }
  return false;
}

}  // namespace v0_1
}  // namespace codeexec
