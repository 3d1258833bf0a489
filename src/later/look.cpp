// A look at the files that run later.
//
//   where it looks           what it takes                                 function
//   a folder, 3 levels deep  its entries, or fixed paths if it is large    search()
//   .git                     settings, hooks, worktrees, submodules        add_repository()
//   a folder with HEAD       the same settings: it is a repository itself  add_bare_repository()
//   another name             the rows of later_paths that begin with it    add_later_paths()
//   settings of repositories the files that they name                      add_all_named()
//
// What holds: each directory is opened through no link, as one that a command put there could lead
// to what only this program may read, and what is read could be put back where commands read it.
// Nothing is opened but directories and regular files that run later. Bounds end each look; the
// folders of the look before come first, and the upper levels.

#include "later/later_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor_internal.hpp"
#include "paths/paths.hpp"
#include "paths/paths_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr std::size_t deepest_tree = 8;
constexpr std::size_t deepest_hooks = 3;
constexpr std::chrono::milliseconds longest_naming(500);
constexpr int listing_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

struct CloseListing {
  void operator()(DIR* listing) const noexcept { ::closedir(listing); }
};

// Of a directory only its identity and its rights: its times change with every file in it.
std::string later_print(const struct stat& status) {
#if defined(__APPLE__)
  const timespec& modified = status.st_mtimespec;
#else
  const timespec& modified = status.st_mtim;
#endif
  const timespec& changed = change_time(status);
  const auto number = [](auto value) { return static_cast<std::uint64_t>(value); };
  const std::uint64_t print[] = {number(status.st_dev),   number(status.st_ino),
                                 number(status.st_mode),  number(status.st_size),
                                 number(modified.tv_sec), number(modified.tv_nsec),
                                 number(changed.tv_sec),  number(changed.tv_nsec)};
  const std::size_t size = S_ISDIR(status.st_mode) ? 3 : std::size(print);
  return std::string(reinterpret_cast<const char*>(print), size * sizeof print[0]);
}

// Of a folder: another one may get its number when it is gone, but not when it was made.
std::string folder_identity(int fd, const struct stat& status) {
  std::string identity = later_print(status).substr(0, 16);
#if defined(STATX_BTIME)
  struct statx more {};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &more) == 0)
    append_all(identity, "%.%", {more.stx_btime.tv_sec, more.stx_btime.tv_nsec});
#else
  (void)fd;
#endif
  return identity;
}

// Gives a directory of ours back the rights that a command has taken.
bool open_up(int in, std::string_view last) {
#if defined(O_PATH)
  const std::string name(last);
  const UniqueFd fd(above_standard_streams(
      ::openat(in, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0 || status.st_uid != ::geteuid()) return false;
  const std::string itself = concat("/proc/self/fd/%", {fd.get()});
  return ::chmod(itself.c_str(), (status.st_mode & 07777) | 0700) == 0;
#else
  (void)in;
  (void)last;
  return false;
#endif
}

}  // namespace

inline namespace inner {

std::chrono::nanoseconds thread_time() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

std::string later_folder_of(std::string_view path) {
  return std::string(path.substr(0, std::max<std::size_t>(path.rfind('/'), 1)));
}

std::string written_path(std::string_view text, const std::string& folder) {
  std::string path = starts_with(text, "/"sv) || folder == "/" ? std::string() : folder;
  while (!text.empty()) {
    const std::string_view part = take_part(text, '/');
    if (part == ".."sv)
      path.resize(std::min(path.rfind('/'), path.size()));
    else if (!part.empty() && part != "."sv)
      append_all(path, "/%", {part});
  }
  return path;
}

// Each part is tried, from the first that a command may have closed.
UniqueFd open_later_folder(const std::string& path, const std::vector<std::string>& folders) {
  const auto open = [](const std::string& folder) {
    const auto directory = open_canonical_directory(folder);
    if (!directory) {
      errno = directory.error().system_error;
      return UniqueFd();
    }
    return UniqueFd(above_standard_streams(::openat(directory->get(), ".", listing_flags)));
  };
  UniqueFd fd = open(path);
  if (fd || errno != EACCES) return fd;
  for (std::size_t at = 0; at < path.size();) {
    at = std::min(path.find('/', at + 1), path.size());
    const std::string part = path.substr(0, at);
    if (!lies_in_one_of(part, folders)) continue;
    if (open(part)) continue;
    const int error = errno;
    const auto around = open_canonical_directory(later_folder_of(part));
    if (error != EACCES || !around || !open_up(around->get(), base_name(part))) return {};
  }
  return open(path);
}

bool LaterLook::is_there(const std::string& path, const LaterFile& file) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && later_print(status) == file.print;
}

LaterLook::LaterLook(const std::vector<std::string>& folders, const LaterState& before,
                     LaterEvents& events)
    : folders_(folders), before_(before), events_(events) {
  for (const auto& [path, file] : before.files) texts_ += file.text ? file.text->size() : 0;
  for (const std::string& folder : folders) search({folder, 0});
  for (const auto& [path, folder] : before.searched)
    if (lies_in_one_of(path, folders)) search({path, folder.depth});
  for (std::size_t i = 0; i < queue_.size(); ++i) {
    if (state.searched.size() < max_folders)
      search(Folder(queue_[i]));
    else if (state.searched.count(queue_[i].path) == 0)
      state.is_whole = false;
  }
  add_all_named();
}

// The one that was opened last is kept, as most of what is looked at lies together.
int LaterLook::directory(const std::string& path) {
  if (opened_fd_ && opened_ == path) return opened_fd_.get();
  opened_fd_ = open_later_folder(path, folders_);
  opened_ = path;
  return opened_fd_.get();
}

bool LaterLook::has(const std::string& folder, const char* name) {
  struct stat status {};
  return ::fstatat(directory(folder), name, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

bool LaterLook::is_repository(const std::string& path) {
  return has(path, "HEAD") &&
         (has(path, "commondir") || (has(path, "objects") && has(path, "refs")));
}

std::shared_ptr<const std::string> LaterLook::text_of(int in, const std::string& name,
                                                      const std::string& path,
                                                      const struct stat& status,
                                                      const std::string& print) {
  const auto known = before_.files.find(path);
  if (known != before_.files.end() && known->second.print == print) return known->second.text;
  // Settings have room of their own, which other files cannot take.
  const std::size_t most = is_git_ ? 2 * max_texts : max_texts;
  const auto take = [this, most](std::string text) -> std::shared_ptr<const std::string> {
    if (texts_ + text.size() > most) return nullptr;
    texts_ += text.size();
    return new_shared<const std::string>(std::move(text));
  };
  if (S_ISLNK(status.st_mode)) {
    std::string target(4096, '\0');
    const ssize_t size = ::readlinkat(in, name.c_str(), &target[0], target.size());
    return size < 0 ? nullptr : take(target.substr(0, static_cast<std::size_t>(size)));
  }
  if (!S_ISREG(status.st_mode) || static_cast<std::uint64_t>(status.st_size) > max_text)
    return nullptr;
  struct stat opened {};
  auto text = read_regular_file(in, name.c_str(), max_text, opened);
  return text && later_print(opened) == print ? take(std::move(*text)) : nullptr;
}

bool LaterLook::add(const std::string& path, LaterRole role) {
  struct stat status {};
  const std::string name(base_name(path));
  const int in = directory(later_folder_of(path));
  if (in < 0 || ::fstatat(in, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
  const bool is_folder = S_ISDIR(status.st_mode);
  if (state.files.count(path) != 0) return is_folder;
  if (state.files.size() == max_files) {
    state.is_whole = false;
    return false;
  }
  LaterFile file;
  file.role = role;
  file.is_named = naming_;
  file.is_git = is_git_;
  file.tree = tree_;
  file.mode = status.st_mode;
  file.print = later_print(status);
  if (!is_folder) {
    const auto known = before_.files.find(path);
    if (S_ISREG(status.st_mode) &&
        (known == before_.files.end() || known->second.print != file.print))
      events_.add_file(path);
    file.text = text_of(in, name, path, status, file.print);
    if (S_ISLNK(status.st_mode) && file.text)
      add_naming({*file.text, later_folder_of(path),
                  role == LaterRole::settings ? role : LaterRole::entry});
  }
  state.files.emplace(path, std::move(file));
  return is_folder;
}

// The names in a directory; one more than `most` when there are more.
std::vector<std::string> LaterLook::names_in(const std::string& path, std::size_t most) {
  std::vector<std::string> names;
  for_each_entry_in(directory(path), [&](const char* entry) {
    names.emplace_back(entry);
    return names.size() <= most;
  });
  return names;
}

void LaterLook::add_tree(const std::string& path, LaterRole role, std::size_t depth) {
  if (add(path, role)) add_contents(path, role, depth);
}

void LaterLook::add_contents(const std::string& path, LaterRole role, std::size_t depth) {
  directory(path);  // so that it can be watched, whatever its rights were
  events_.add(path, LaterEvents::Kind::whole);
  if (depth == 0) return;
  const std::vector<std::string> names = names_in(path, max_entries);
  if (names.size() > max_entries) state.overfull.insert(path);
  for (const std::string& name : names) {
    // git leaves samples alone, and makes a dozen of them.
    if (role == LaterRole::hooks && ends_with(name, ".sample"sv)) continue;
    // Agents keep work trees among their settings, which are searched as other folders are.
    if (depth == deepest_tree && name == "worktrees"sv) continue;
    const std::string whole = concat("%/%", {path, name});
    if (add(whole, LaterRole::entry)) {
      LaterFile& inner = state.files[whole];
      if (inner.role == LaterRole::entry) inner.role = LaterRole::folder;
      add_contents(whole, LaterRole::folder, depth - 1);
    }
  }
}

void LaterLook::add_naming(Naming naming) {
  if (namings_.size() < max_named)
    namings_.push_back(std::move(naming));
  else
    state.is_whole = false;
}

void LaterLook::add_later_paths(const std::string& folder, std::string_view entry) {
  for_each_later_path(entry, [&](std::string_view name) {
    const bool is_folder = ends_with(name, "/"sv);
    const std::string path = concat("%/%", {folder == "/" ? std::string() : folder,
                                            name.substr(0, name.size() - (is_folder ? 1 : 0))});
    if (later_folder_of(path) != folder)
      events_.add(later_folder_of(path), LaterEvents::Kind::whole);
    if (is_folder)
      add_tree(path, LaterRole::folder, deepest_tree);
    else
      add(path, LaterRole::entry);
  });
}

void LaterLook::add_settings(const std::string& git, LaterRole shared) {
  is_git_ = true;
  directory(git);
  events_.add(git, LaterEvents::Kind::repository);
  for (const char* const name : {"config", "config.worktree"})
    add(concat("%/%", {git, name}), LaterRole::settings);
  add(git + "/commondir", shared);
  add_tree(git + "/hooks", LaterRole::hooks, deepest_hooks);
  // What older releases of git kept of remotes.
  for (const char* const name : {"info", "remotes", "branches"})
    events_.add(concat("%/%", {git, name}), LaterEvents::Kind::whole);
  add(git + "/info/attributes", LaterRole::entry);
  for (const char* const name : {"remotes", "branches"}) {
    const std::string path = concat("%/%", {git, name});
    if (add(path, LaterRole::hooks)) add_contents(path, LaterRole::folder, 1);
  }
  is_git_ = false;
  if (is_repository(git)) state.repositories.insert(git);
}

// The folder of a submodule is named as a rule by its path, which may have several parts; it may
// hold `modules` of its own.
void LaterLook::add_repositories(const std::string& path, std::size_t depth, LaterRole shared,
                                 std::size_t& left) {
  is_git_ = true;
  const bool is_folder = add(path, LaterRole::repository);
  is_git_ = false;
  if (!is_folder) return;
  directory(path);
  events_.add(path, LaterEvents::Kind::whole);
  for (const std::string& name : names_in(path, max_listed)) {
    const std::string whole = concat("%/%", {path, name});
    const bool is_known = before_.files.count(whole) != 0;
    if (left == 0 && !is_known) {
      state.is_whole = false;
      continue;
    }
    if (!is_known) --left;
    is_git_ = true;
    const bool is_inner_folder = add(whole, LaterRole::repository);
    is_git_ = false;
    if (!is_inner_folder) continue;
    add_settings(whole, shared);
    if (depth <= 1) continue;
    add_repositories(state.repositories.count(whole) != 0 ? whole + "/modules" : whole, depth - 1,
                     shared, left);
  }
}

void LaterLook::add_inner_repositories(const std::string& git) {
  std::size_t left = max_repositories;
  add_repositories(git + "/modules", 4, LaterRole::entry, left);
  left = max_repositories;
  add_repositories(git + "/worktrees", 1, LaterRole::shared, left);
}

void LaterLook::add_repository(const std::string& tree) {
  const std::string git = concat("%/.git", {tree == "/" ? std::string() : tree});
  if (!has(tree, ".git")) return;
  if (state.trees.size() < max_named)
    state.trees.push_back(tree);
  else
    state.is_whole = false;
  is_git_ = true;
  const bool is_folder = add(git, LaterRole::git_link);
  is_git_ = false;
  const auto added = state.files.find(git);
  if (!is_folder || added == state.files.end()) return;
  added->second.role = LaterRole::repository;
  add_settings(git, LaterRole::entry);
  add_inner_repositories(git);
}

void LaterLook::add_bare_repository(const std::string& folder) {
  if (!is_repository(folder)) return;
  add_settings(folder, LaterRole::entry);
  add_inner_repositories(folder);
}

// Most of what is looked for is not there, so the folder is listed, unless there is too much.
void LaterLook::search(const Folder& folder) {
  if (state.searched.count(folder.path) != 0) return;
  UniqueFd fd = open_later_folder(folder.path, folders_);
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) return;
  state.searched[folder.path] = {folder.depth, folder_identity(fd.get(), status)};
  events_.add(folder.path, LaterEvents::Kind::searched);
  tree_ = folder.path.size();
  // The folder of a command may be one of hooks itself.
  const bool is_of_hooks = folder.depth == 0 && base_name(folder.path) == "hooks"sv &&
                           has(later_folder_of(folder.path), "HEAD");
  if (is_of_hooks) add_tree(folder.path, LaterRole::hooks, deepest_hooks);
  if (search_entries(folder, std::move(fd))) return;
  state.is_whole = false;
  add_repository(folder.path);
  if (folder.depth > 0) return;
  add_later_paths(folder.path, {});
  add_bare_repository(folder.path);
}

// False: there is more than can be listed.
bool LaterLook::search_entries(const Folder& folder, UniqueFd fd) {
  const std::unique_ptr<DIR, CloseListing> listing(::fdopendir(fd.get()));
  if (!listing) return false;
  fd.release();
  bool has_head = false;
  std::vector<std::string> later;
  const dirent* entry = nullptr;
  while ((entry = ::readdir(listing.get())) != nullptr) {
    if (++listed_ > max_listed) return false;
    const std::string_view name = entry->d_name;
    if (is_any(name, ".", "..")) continue;
    if (is_later_name(name)) later.emplace_back(name);
    const bool may_be_folder = entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN;
    if (!may_be_folder || name == ".git"sv || folder.depth == max_depth || !is_searched(name))
      continue;
    const std::string around = folder.path == "/" ? std::string() : folder.path;
    queue_.push_back({concat("%/%", {around, name}), folder.depth + 1});
  }
  for (const std::string& name : later) {
    if (name == ".git")
      add_repository(folder.path);
    else if (name == "HEAD")
      has_head = true;
    else
      add_later_paths(folder.path, name);
  }
  if (has_head) add_bare_repository(folder.path);
  return true;
}

// Names -------------------------------------------------------------------------------------------

// Settings count for all work trees, as each may be one of the repository's.
void LaterLook::read_names(const std::string& text, const std::string& folder) {
  const auto settings = read_git_settings(text);
  if (!settings) return;
  for (const GitSetting& setting : *settings) {
    if (is_any(setting.key, "include.path", "includeif.*.path")) {
      add_naming({setting.value, folder, LaterRole::settings});
    } else if (setting.key == "core.hookspath"sv) {
      for (const std::string& tree : state.trees)
        add_naming({setting.value, tree, LaterRole::entry});
    }
  }
}

// Of a work tree whose repository lies outside of the folders.
void LaterLook::read_outer_names(const std::string& tree) {
  const auto link = state.files.find(tree + "/.git");
  constexpr std::string_view begin = "gitdir: ";
  if (link == state.files.end() || !link->second.is_readable()) return;
  std::string_view text = *link->second.text;
  if (!starts_with(text, begin)) return;
  const auto read = [](const std::string& folder, const char* name) {
    const auto found = canonical_path(folder);
    const auto directory = found ? open_canonical_directory(*found) : found.failure();
    if (!directory) return std::string();
    struct stat status {};
    return read_regular_file(directory->get(), name, max_text, status).value_or(std::string());
  };
  text = without_line_ends(text.substr(begin.size()));
  const std::string own =
      starts_with(text, "/"sv) ? std::string(text) : concat("%/%", {tree, text});
  const std::string common = concat("%/%", {own, without_line_ends(read(own, "commondir"))});
  read_names(read(own, "config.worktree"), own);
  read_names(read(own, "config"), own);
  read_names(read(common, "config"), common);
}

void LaterLook::add_named(const Naming& naming) {
  if (naming.path.empty() || has_nul(naming.path)) return;
  std::string name = naming.path;
  const char* const home = std::getenv("HOME");
  if (home && starts_with(name, "~/"sv)) name.replace(0, 1, home);
  const auto path = canonical_path(name, naming.folder);
  if (!path || is_one_of(*path, folders_) || !lies_in_one_of(*path, folders_)) return;
  state.named.insert(*path);
  tree_ = later_folder_of(*path).size();
  const bool is_folder = add(*path, naming.role);
  const auto added = state.files.find(*path);
  if (added == state.files.end()) {
    // The first folder around that is there says when it comes.
    std::string around = later_folder_of(*path);
    while (directory(around) < 0 && around.size() > 1) around = later_folder_of(around);
    events_.add(around, LaterEvents::Kind::whole);
    return;
  }
  if (is_folder) {
    if (added->second.is_named) added->second.role = LaterRole::hooks;
    add_contents(*path, LaterRole::hooks, deepest_hooks);
  } else if (added->second.is_named && added->second.role == LaterRole::settings &&
             added->second.is_readable()) {
    read_names(*added->second.text, later_folder_of(*path));
  }
}

void LaterLook::add_all_named() {
  for (const auto& [path, file] : state.files)
    if (file.role == LaterRole::settings && file.is_readable())
      read_names(*file.text, later_folder_of(path));
  for (const std::string& tree : state.trees) read_outer_names(tree);
  naming_ = true;
  // What was named before comes first; names may lead to others. A path can be made to take long.
  const auto begin = thread_time();
  for (const std::string& path : before_.named) {
    const auto known = before_.files.find(path);
    const bool is_settings =
        known != before_.files.end() && known->second.role == LaterRole::settings;
    add_named({path, "/", is_settings ? LaterRole::settings : LaterRole::entry});
  }
  for (std::size_t i = 0; i < namings_.size(); ++i) {
    if (thread_time() - begin > longest_naming) {
      state.is_whole = false;
      return;
    }
    add_named(Naming(namings_[i]));
  }
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
