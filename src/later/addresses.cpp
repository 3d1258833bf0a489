// Where settings of git lead: whether a repository or a work tree that a command names is one
// whose hooks and settings are kept.
//
// A push to a repository in a folder of commands runs its hooks, so it must be one that the look
// has found. A path is only known by a look if no link lies in it, as a later command could turn
// that.

#include "later/later_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "paths/paths.hpp"
#include "paths/paths_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// The path that a text names from a folder, if no link leads elsewhere.
std::string plain_path(std::string_view text, const std::string& folder) {
  const std::string path = written_path(text, folder);
  const auto found = canonical_path(text, folder);
  return found && *found == path ? path : std::string();
}

class GitPlaces {
 public:
  GitPlaces(const LaterState& state, const std::vector<std::string>& folders)
      : state_(state), folders_(folders) {}

  bool is_safe_work_tree(const std::string& value, const std::string& git) const {
    return git.find("/.git/modules/") != std::string::npos && lies_here(plain_path(value, git));
  }
  bool is_safe_address(std::string_view address, const std::string& git,
                       const std::string& tree) const;

 private:
  bool lies_here(std::string_view path) const { return lies_in_one_of(path, folders_); }
  bool is_safe_repository(std::string_view text, const std::string& folder) const;

  const LaterState& state_;
  const std::vector<std::string>& folders_;
};

bool GitPlaces::is_safe_repository(std::string_view text, const std::string& folder) const {
  const std::string written = written_path(text, folder);
  for (const std::string_view kernel : {"/proc"sv, "/dev"sv, "/sys"sv})
    if (codeexec::is_within(written, kernel)) return false;
  const std::string path = plain_path(text, folder);
  if (path.empty()) {
    // Links neither in a folder of commands nor into one are the user's.
    const auto place = canonical_path(text, folder);
    return place && !lies_here(*place) && !lies_here(written);
  }
  struct stat status {};
  const bool is_word = text.find('/') == std::string_view::npos;
  if (!lies_here(path) || (is_word && ::lstat(path.c_str(), &status) != 0)) return true;
  const auto link = state_.files.find(path + "/.git");
  return state_.repositories.count(path) != 0 || state_.repositories.count(path + "/.git") != 0 ||
         (link != state_.files.end() && leads_to_own_repository(state_, link->first, link->second));
}

// A word may be a remote's name. A path counts from the work tree where git is called, which may be
// a linked one, or that of a submodule.
bool GitPlaces::is_safe_address(std::string_view address, const std::string& git,
                                const std::string& tree) const {
  constexpr std::string_view file = "file://";
  if (starts_with(address, file)) {
    address.remove_prefix(file.size());
    if (!starts_with(address, "/"sv) || address.find('%') != std::string_view::npos) return false;
  } else if (address.find(':') < address.find('/')) {
    return true;
  }
  if (starts_with(address, "/"sv)) return is_safe_repository(address, "/");
  if (!is_safe_repository(address, tree)) return false;
  const bool is_inner = git.find("/.git/") != std::string::npos;
  for (const std::string& one : state_.trees) {
    struct stat status {};
    const auto link = state_.files.find(one + "/.git");
    const bool may_be_its = is_inner || link == state_.files.end() || !S_ISDIR(link->second.mode);
    if (may_be_its && ::lstat(written_path(address, one).c_str(), &status) == 0 &&
        !is_safe_repository(address, one))
      return false;
  }
  return true;
}

}  // namespace

inline namespace inner {

// What the look has found to be a repository's folder, through no link.
bool leads_to_own_repository(const LaterState& state, const std::string& path,
                             const LaterFile& file) {
  constexpr std::string_view begin = "gitdir: ";
  if (!file.is_readable() || !starts_with(*file.text, begin) || has_nul(*file.text)) return false;
  const std::string_view text =
      without_line_ends(std::string_view(*file.text).substr(begin.size()));
  // A `..` behind a name leads elsewhere where that is a link.
  const std::size_t names = text.find_first_not_of("./");
  const bool is_plain = names != std::string_view::npos && !ends_with(text, "/.."sv) &&
                        text.find("/../", names) == std::string_view::npos;
  const std::string git = written_path(text, later_folder_of(path));
  return is_plain && text.find('\n') == std::string_view::npos &&
         state.repositories.count(git) != 0 &&
         (git.find("/.git/modules/") != std::string::npos ||
          git.find("/worktrees/") != std::string::npos);
}

bool is_safe_git_place(const LaterState& state, const std::vector<std::string>& folders,
                       const GitSettingsFile& file, GitPlace kind, const std::string& value) {
  constexpr std::chrono::milliseconds longest(500);
  if (thread_time() - file.begin > longest) return false;
  const GitPlaces places(state, folders);
  const std::string git = later_folder_of(file.path);
  if (kind == GitPlace::work_tree) return places.is_safe_work_tree(value, git);
  return places.is_safe_address(value, git,
                                file.path.substr(0, std::max<std::size_t>(file.tree, 1)));
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
