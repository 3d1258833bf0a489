// A look at the files that run later.
//
//   where it looks           what it takes                                 function
//   a folder, 3 levels deep  its entries, or fixed paths if it is large    search()
//   .git                     settings, hooks, worktrees, submodules        add_repository()
//   a folder with HEAD       the same settings: it is a repository itself  add_settings()
//   another name             the rows of later_paths that begin with it    add_later_paths()
//   settings of a repository the files and repositories that they name     add_named()
//
// What holds: nothing is opened but directories and regular files that run later, no link is
// followed but that of a hook, and bounds end each look. The upper levels come first, so what is
// beyond a bound lies deep.

#include "later/later_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor_internal.hpp"
#include "paths/paths.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr std::size_t deepest_tree = 4;
constexpr std::size_t deepest_hooks = 2;

struct CloseListing {
  void operator()(DIR* listing) const noexcept { ::closedir(listing); }
};

// Of a directory only its identity: its times change with every file in it.
std::string later_print(const struct stat& status) {
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
  const std::size_t size = S_ISDIR(status.st_mode) ? 3 : std::size(print);
  return std::string(reinterpret_cast<const char*>(print), size * sizeof print[0]);
}

std::string parent_folder(std::string_view path) {
  return std::string(path.substr(0, std::min(path.rfind('/'), path.size())));
}

// The path that a text names, with links followed; empty: there can be none.
std::string path_from(std::string_view path, std::string_view folder) {
  auto found = canonical_path(path, folder);
  return found ? std::move(*found) : std::string();
}

}  // namespace

inline namespace inner {

bool leads_to_own_folder(std::string_view text, std::string_view folder,
                         const std::vector<std::string>& folders) {
  constexpr std::string_view begin = "gitdir: ";
  if (!starts_with(text, begin) || has_nul(text)) return false;
  text.remove_prefix(begin.size());
  if (ends_with(text, "\n"sv)) text.remove_suffix(1);
  if (text.empty() || text.find('\n') != std::string_view::npos) return false;
  const std::string path = path_from(text, folder);
  for (const std::string& root : folders)
    if (codeexec::is_within(path, root) && (path.find("/.git/modules/") != std::string::npos ||
                                            path.find("/.git/worktrees/") != std::string::npos))
      return true;
  return false;
}

bool LaterLook::is_there(const std::string& path, const LaterFile& file) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && later_print(status) == file.print;
}

LaterLook::LaterLook(const std::vector<std::string>& folders, const LaterFiles& known,
                     LaterEvents& events)
    : folders_(folders), known_(known), events_(events) {
  for (const std::string& folder : folders) {
    queue_.push_back({folder, 0});
    // The folder of a command may be one of hooks itself.
    const bool has_hooks =
        ends_with(folder, "/hooks"sv) && ::access((folder + "/../HEAD").c_str(), F_OK) == 0;
    if (has_hooks) add_tree({AT_FDCWD, {}}, folder, LaterRole::hooks, deepest_hooks);
  }
  for (std::size_t i = 0; i < queue_.size() && i < max_folders; ++i) search(Folder(queue_[i]));
}

std::shared_ptr<const std::string> LaterLook::text_of(const Place& place, const std::string& name,
                                                      const std::string& path,
                                                      const struct stat& status,
                                                      const std::string& print) {
  const auto known = known_.find(path);
  const auto take = [this](std::shared_ptr<const std::string> text) {
    texts_ += text ? text->size() : 0;
    return texts_ <= max_texts ? text : nullptr;
  };
  if (known != known_.end() && known->second.print == print) return take(known->second.text);
  if (static_cast<std::uint64_t>(status.st_size) > max_text) return nullptr;
  if (S_ISLNK(status.st_mode)) {
    std::string target(4096, '\0');
    const ssize_t size = ::readlinkat(place.fd, name.c_str(), &target[0], target.size());
    if (size < 0) return nullptr;
    target.resize(static_cast<std::size_t>(size));
    return take(new_shared<const std::string>(std::move(target)));
  }
  if (!S_ISREG(status.st_mode)) return nullptr;
  constexpr int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  const UniqueFd fd(above_standard_streams(::openat(place.fd, name.c_str(), flags)));
  struct stat opened {};
  if (!fd || ::fstat(fd.get(), &opened) != 0 || later_print(opened) != print) return nullptr;
  auto text = read_to_end(fd, max_text, {});
  return text ? take(new_shared<const std::string>(std::move(*text))) : nullptr;
}

bool LaterLook::add(const Place& place, const std::string& name, LaterRole role) {
  struct stat status {};
  if (files.size() == max_files ||
      ::fstatat(place.fd, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return false;
  std::string path = place.start + name;
  LaterFile file;
  file.role = role;
  file.is_named = naming_;
  file.mode = status.st_mode;
  file.print = later_print(status);
  const bool is_folder = S_ISDIR(status.st_mode);
  if (!is_folder) {
    const auto known = known_.find(path);
    if (S_ISREG(status.st_mode) && (known == known_.end() || known->second.print != file.print))
      events_.add_file(path);
    file.text = text_of(place, name, path, status, file.print);
  }
  files.emplace(std::move(path), std::move(file));
  return is_folder;
}

void LaterLook::add_tree(const Place& place, const std::string& path, LaterRole role,
                         std::size_t depth) {
  events_.add(place.start + path, LaterEvents::Kind::whole);
  if (!add(place, path, role) || depth == 0) return;
  std::size_t left = max_entries;
  UniqueFd fd(above_standard_streams(
      ::openat(place.fd, path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)));
  if (!fd) return;
  for_each_entry(std::move(fd), [&](std::string_view entry) {
    // git leaves samples alone, and makes a dozen of them.
    if (role == LaterRole::hooks && ends_with(entry, ".sample"sv)) return true;
    // Agents keep work trees among their settings, which are searched as other folders are.
    if (depth == deepest_tree && entry == "worktrees"sv) return true;
    if (left-- == 0) return false;
    const std::string whole = concat("%/%", {path, entry});
    struct stat status {};
    if (::fstatat(place.fd, whole.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return true;
    if (S_ISDIR(status.st_mode)) {
      add_tree(place, whole, LaterRole::folder, depth - 1);
      return true;
    }
    add(place, whole, LaterRole::entry);
    const auto added = files.find(place.start + whole);
    if (role == LaterRole::hooks && S_ISLNK(status.st_mode) && added != files.end() &&
        added->second.text)
      add_elsewhere(*added->second.text, place.start + path, LaterRole::entry);
    return true;
  });
}

void LaterLook::add_later_paths(const Place& place, std::string_view entry) {
  for_each_later_path(entry, [&](std::string_view path) {
    const std::size_t slash = path.rfind('/', path.size() - 2);
    if (slash != std::string_view::npos)
      events_.add(concat({place.start, path.substr(0, slash)}), LaterEvents::Kind::whole);
    if (ends_with(path, "/"sv))
      add_tree(place, std::string(path.substr(0, path.size() - 1)), LaterRole::folder,
               deepest_tree);
    else
      add(place, std::string(path), LaterRole::entry);
  });
}

void LaterLook::add_settings(const Place& place, const std::string& begin, LaterRole shared) {
  for (const char* const file : {"config", "config.worktree"})
    add(place, begin + file, LaterRole::settings);
  add(place, begin + "commondir", shared);
  events_.add(concat({place.start, begin, "info"}), LaterEvents::Kind::whole);
  add(place, begin + "info/attributes", LaterRole::entry);
  add_tree(place, begin + "hooks", LaterRole::hooks, deepest_hooks);
}

// The folder of a submodule is named as a rule by its path, which may have several parts; it may
// hold `modules` of its own.
void LaterLook::add_repositories(const Place& place, const std::string& path, std::size_t depth,
                                 LaterRole shared) {
  UniqueFd fd(above_standard_streams(
      ::openat(place.fd, path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)));
  if (!fd) return;
  events_.add(place.start + path, LaterEvents::Kind::whole);
  add(place, path, LaterRole::repository);
  for_each_entry(std::move(fd), [&](std::string_view entry) {
    if (repositories_ == max_repositories) return false;
    ++repositories_;
    const std::string whole = concat("%/%", {path, entry});
    if (!add(place, whole, LaterRole::repository)) return true;
    events_.add(place.start + whole, LaterEvents::Kind::repository);
    add_settings(place, whole + '/', shared);
    const bool is_one = files.count(concat("%%/config", {place.start, whole})) != 0;
    if (depth > 1) add_repositories(place, is_one ? whole + "/modules" : whole, depth - 1, shared);
    return true;
  });
}

// Relative to the folder of the work tree; only what lies in one of the folders counts.
void LaterLook::add_elsewhere(const std::string& path, std::string_view from, LaterRole role) {
  const std::string found = has_nul(path) ? std::string() : path_from(path, from);
  const auto lies_in = [&found](const std::string& folder) {
    return found.size() > folder.size() && codeexec::is_within(found, folder);
  };
  if (std::none_of(folders_.begin(), folders_.end(), lies_in)) return;
  named.insert(found);
  const Place place = {AT_FDCWD, {}};
  struct stat status {};
  if (::lstat(found.c_str(), &status) != 0) return;
  naming_ = true;
  if (S_ISDIR(status.st_mode))
    add_tree(place, found, LaterRole::hooks, deepest_hooks);
  else
    add(place, found, role);
  naming_ = false;
}

// A push to a repository in a folder of commands runs its hooks.
void LaterLook::add_address(const std::string& address, const std::string& tree) {
  const std::string_view file = "file://";
  const std::string path =
      path_from(starts_with(address, file) ? address.substr(file.size()) : address, tree);
  const auto lies_in = [&path](const std::string& folder) {
    return codeexec::is_within(path, folder);
  };
  if (std::none_of(folders_.begin(), folders_.end(), lies_in) || repositories_ == max_repositories)
    return;
  ++repositories_;
  const Place place = {AT_FDCWD, {}};
  named.insert(path);
  events_.add(path, LaterEvents::Kind::repository);
  naming_ = true;
  add_settings(place, path + '/', LaterRole::entry);
  naming_ = false;
}

void LaterLook::add_named(const Place& place, const std::string& git, const std::string& tree) {
  const auto config = files.find(concat("%%/config", {place.start, git}));
  if (config == files.end() || !config->second.text) return;
  const auto settings = read_git_settings(*config->second.text);
  if (!settings) return;
  for (const GitSetting& setting : *settings) {
    if (setting.key == "core.hookspath"sv)
      add_elsewhere(setting.value, tree, LaterRole::entry);
    else if (is_any(setting.key, "include.path", "includeif.*.path"))
      add_elsewhere(setting.value, place.start + git, LaterRole::entry);
    else if (is_any(setting.key, "remote.*.url", "remote.*.pushurl"))
      add_address(setting.value, tree);
  }
}

void LaterLook::add_repository(const Place& place, const std::string& git) {
  struct stat status {};
  if (::fstatat(place.fd, git.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (!S_ISDIR(status.st_mode)) {
    add(place, git, LaterRole::git_link);
    return;
  }
  events_.add(place.start + git, LaterEvents::Kind::repository);
  add(place, git, LaterRole::repository);
  add_settings(place, git + '/', LaterRole::entry);
  add_repositories(place, git + "/modules", 3, LaterRole::entry);
  add_repositories(place, git + "/worktrees", 1, LaterRole::shared);
  add_named(place, git, parent_folder(place.start + git));
}

void LaterLook::search_entries(const Place& place, const Folder& folder, DIR* listing) {
  bool is_repository = false;
  const dirent* entry = nullptr;
  while (listed_ < max_listed && (entry = ::readdir(listing)) != nullptr) {
    ++listed_;
    const std::string_view name = entry->d_name;
    if (is_any(name, ".", "..")) continue;
    if (name == ".git")
      add_repository(place, ".git");
    else if (name == "HEAD"sv)
      is_repository = true;
    else if (is_later_name(name))
      add_later_paths(place, name);
    if ((entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) && name != ".git"sv &&
        folder.depth < max_depth && queue_.size() < max_folders && is_searched(name))
      queue_.push_back({place.start + std::string(name), folder.depth + 1});
  }
  const auto has = [&place](const char* name) {
    return ::faccessat(place.fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  };
  if (is_repository && (has("commondir") || (has("objects") && has("refs")))) {
    add_settings(place, {}, LaterRole::entry);
    add_repositories(place, "modules", 3, LaterRole::entry);
    add_repositories(place, "worktrees", 1, LaterRole::shared);
  }
}

// Most of what is looked for is not there, so the folder is listed, unless there is too much.
void LaterLook::search(const Folder& folder) {
  events_.add(folder.path, LaterEvents::Kind::searched);
  const int fd = ::open(folder.path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  UniqueFd opened(above_standard_streams(fd));
  if (!opened) return;
  searched.insert(folder.path);
  const std::unique_ptr<DIR, CloseListing> listing(::fdopendir(opened.get()));
  if (!listing) return;
  opened.release();
  const Place place = {::dirfd(listing.get()), folder.path == "/" ? "/" : folder.path + "/"};
  if (listed_ < max_listed) return search_entries(place, folder, listing.get());
  add_repository(place, ".git");
  add_later_paths(place, {});
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
