// Linked git worktrees and submodules: which folders outside of the roots their commands need.
//
// A linked worktree has a file `.git` that leads to a folder of its own, worktrees/NAME in the
// shared folder of the repository, which has the objects, refs and logs of all. Of that, commands
// get what daily work changes. A hook or a setting there would run as the user in every other
// worktree, so hooks, config and the folders of other worktrees are only readable, by rules of
// Landlock; which needs single lock files beside them, see SandboxOptions::replaceable.
//
// The file `.git` lies where commands may write, so one may have written it: to lead to the
// repository of somebody else. But it cannot have written there that this worktree is one of its.

#include "executor/git_folders_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "paths/paths.hpp"
#include "paths/paths_internal.hpp"
#include "sandbox/grants_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if CODEEXEC_HAS_SANDBOX

namespace {

// The files at the top of a shared folder that commits, rebases, `branch -d`, `gc` and fetches into
// shallow clones make. HEAD is the main worktree's: its lock can be taken, as `gc` does while it
// looks at all reflogs, but it cannot be replaced.
constexpr const char* replaceable_names[] = {
    "packed-refs", "packed-refs.lock", "packed-refs.new", "gc.pid",       "gc.pid.lock",
    "gc.log",      "gc.log.lock",      "shallow",         "shallow.lock", "HEAD.lock"};

// A sandbox can hold the folders of a few only, see most_writable.
constexpr std::size_t most_repositories = 8;

// Empty when there is no such file.
std::string small_file(const UniqueFd& directory, const char* name, std::size_t most,
                       struct stat& status) {
  return read_regular_file(directory.get(), name, most, status).value_or(std::string());
}

// The absolute path that a file of one line holds, or one relative to where the file lies. Empty
// when there is none.
std::string path_in(std::string_view text, std::string_view lies_in) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  for (const char c : text)
    if (static_cast<unsigned char>(c) < ' ') return {};
  if (text.empty()) return {};
  return starts_with(text, "/"sv) ? std::string(text) : concat("%/%", {lies_in, text});
}

std::string path_in_file(const OpenedGrant& directory, const char* name) {
  constexpr std::size_t longest = 4096;
  struct stat status {};
  return path_in(small_file(directory.fd, name, longest, status), directory.path);
}

bool leads_to(const std::string& path, const struct stat& wanted) {
  if (path.empty()) return false;
  const auto found = open_grant(path);
  return found && found->status.st_dev == wanted.st_dev && found->status.st_ino == wanted.st_ino;
}

bool holds(const OpenedGrant& directory, const char* name, mode_t kind) {
  struct stat status {};
  return ::fstatat(directory.fd.get(), name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         (status.st_mode & S_IFMT) == kind;
}

class GitFinder {
 public:
  GitFinder(const std::vector<std::string>& roots, GitFolders& found)
      : roots_(roots), found_(found) {}

  void look_at(const std::string& folder, bool writable);
  void look_below(const std::string& folder, bool writable);
  void look_at_given(const std::string& path);

 private:
  // What keeps a folder from being opened to commands as a repository, or null.
  static const char* objection_to(const OpenedGrant& repository);
  const char* add_linked(const OpenedGrant& own, const struct stat& file, bool writable);
  const char* add_submodule(const OpenedGrant& own, const struct stat& tree, bool writable);
  void add_own(const OpenedGrant& own, bool writable);
  void add(std::vector<std::string>& list, const std::string& path) {
    if (!is_one_of(path, list)) list.push_back(path);
  }

  const std::vector<std::string>& roots_;  // that can be written to
  GitFolders& found_;
  std::size_t left_ = most_repositories;
};

const char* GitFinder::objection_to(const OpenedGrant& repository) {
  if (!S_ISDIR(repository.status.st_mode) || !holds(repository, "HEAD", S_IFREG) ||
      !holds(repository, "objects", S_IFDIR) || !holds(repository, "refs", S_IFDIR))
    return "is no repository";
  if (repository.status.st_uid != ::geteuid()) return "belongs to another user";
  if (is_home_directory(repository.path)) return "is a home directory";
  return objection_to_writing(repository);
}

const char* GitFinder::add_linked(const OpenedGrant& own, const struct stat& file, bool writable) {
  const std::string worktrees = own.path.substr(0, own.path.rfind('/'));
  const auto shared = open_grant(worktrees.substr(0, worktrees.rfind('/')));
  if (!shared) return "lies in a folder that cannot be opened";
  if (lies_in_one_of(shared->path, roots_)) return nullptr;
  if (const char* objection = objection_to(*shared)) return objection;
  if (own.status.st_uid != ::geteuid()) return "belongs to another user";
  if (!leads_to(path_in_file(own, "gitdir"), file)) return "does not lead back to it";
  if (!leads_to(path_in_file(own, "commondir"), shared->status))
    return "names another folder as the shared one";
  add(found_.readable, shared->path);
  if (!writable) return nullptr;
  // git makes `logs` with the first commit, and cannot do so in a folder that is only readable.
  if (::mkdirat(shared->fd.get(), "logs", 0777) != 0 && !holds(*shared, "logs", S_IFDIR))
    return "has no folder for logs";
  for (const char* part : {"objects", "refs", "logs"})
    add(found_.writable, concat("%/%", {shared->path, part}));
  for (const char* name : replaceable_names)
    add(found_.replaceable, concat("%/%", {shared->path, name}));
  add(found_.shared, shared->path);
  add_own(own, writable);
  return nullptr;
}

// Also for a submodule of a linked worktree. No other work tree uses its repository.
const char* GitFinder::add_submodule(const OpenedGrant& own, const struct stat& tree,
                                     bool writable) {
  constexpr std::size_t longest = std::size_t{64} << 10;
  if (const char* objection = objection_to(own)) return objection;
  struct stat status {};
  std::string back;
  for_each_git_setting(small_file(own.fd, "config", longest, status),
                       [&back](std::string_view key, const std::string& value) {
                         if (key == "core.worktree"sv) back = value;
                       });
  if (!leads_to(path_in(back, own.path), tree)) return "does not lead back to it";
  add_own(own, writable);
  return nullptr;
}

void GitFinder::add_own(const OpenedGrant& own, bool writable) {
  add(writable ? found_.writable : found_.readable, own.path);
  if (writable) add(found_.own, own.path);
}

// Called by create() only: a worktree that is made later gets its folders from the next executor.
// What keeps one from being added is the problem that advice_on() names; the first one counts.
void GitFinder::look_at(const std::string& folder, bool writable) {
  constexpr std::size_t longest = 4096;
  constexpr std::string_view begin = "gitdir:";
  const auto tree = open_grant(folder);
  if (!tree || left_ == 0 || holds(*tree, ".git", S_IFDIR)) return;
  struct stat file {};
  if (::fstatat(tree->fd.get(), ".git", &file, AT_SYMLINK_NOFOLLOW) != 0) return;
  const std::string text = small_file(tree->fd, ".git", longest, file);
  const auto fail = [this, &tree](const char* why, Pieces values) {
    if (found_.problem.empty())
      found_.problem = concat("%/.git %", {printable(tree->path), concat(why, values)});
  };
  std::string_view rest = text;
  rest.remove_prefix(starts_with(rest, begin) ? begin.size() : rest.size());
  while (starts_with(rest, " "sv)) rest.remove_prefix(1);
  const std::string path = path_in(rest, tree->path);
  if (path.empty()) return fail("is neither a folder nor a file of git's", {});
  const auto own = open_grant(path);
  if (!own)
    return fail("leads to %, which is not there, or only through a symbolic link",
                {in_quotes(path)});
  if (lies_in_one_of(own->path, roots_)) return;
  const std::string_view around = std::string_view(own->path).substr(0, own->path.rfind('/'));
  const char* why = base_name(around) == "worktrees"sv
                        ? add_linked(*own, file, writable)
                        : add_submodule(*own, tree->status, writable);
  if (why) return fail("leads to %, which %", {in_quotes(own->path), why});
  --left_;
}

void GitFinder::look_below(const std::string& folder, bool writable) {
  std::size_t left = 1000;
  for_each_entry(folder, [&](const char* entry) {
    const std::string path = concat("%/%", {folder, entry});
    struct stat status {};
    if (::lstat(concat("%/.git", {path}).c_str(), &status) == 0 && S_ISREG(status.st_mode))
      look_at(path, writable);
    return --left > 0 && left_ > 0;
  });
}

// The operator has named this folder, so it need not lead back.
void GitFinder::look_at_given(const std::string& path) {
  const auto own = open_grant(path);
  if (!own || lies_in_one_of(own->path, roots_)) return;
  const char* const why = objection_to(*own);
  if (!why) return add_own(*own, true);
  if (found_.problem.empty())
    found_.problem = concat("GIT_DIR is %, which %", {in_quotes(path), why});
}

}  // namespace

inline namespace inner {

GitFolders find_git_folders(const std::vector<std::string>& writable,
                            const std::vector<std::string>& readable, const Variables& set) {
  GitFolders found;
  GitFinder finder(writable, found);
  for (const auto& [name, value] : set)
    if (name == "GIT_DIR" && starts_with(value, "/"sv)) finder.look_at_given(value);
  for (const bool may_write : {true, false})
    for (const std::string& root : may_write ? writable : readable) {
      finder.look_at(root, may_write);
      finder.look_below(root, may_write);
    }
  return found;
}

}  // namespace inner

#else

inline namespace inner {

// No command is confined here.
GitFolders find_git_folders(const std::vector<std::string>&, const std::vector<std::string>&,
                            const Variables&) {
  return {};
}

}  // namespace inner

#endif

}  // namespace v0_1
}  // namespace codeexec
