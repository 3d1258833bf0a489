// Which directories commands may work in, which files they may delete.
#pragma once

#include "base/base.hpp"

namespace codeexec {
inline namespace v0_1 {

// What a root allows below it; each step includes the ones before.
enum class Permission {
  none,   // nothing: cuts a subtree out of a root that lies above it
  read,   // commands may work there, and the sandbox lets them read
  write,  // and change
};
const char* name(Permission permission) noexcept;

// A directory and what is allowed in it and below.
struct Root {
  std::string path = {};
  Permission permission = Permission::write;
};

// The path with symbolic links followed and `.` and `..` taken out, starting from `base` when it is
// relative (empty: the caller's current directory). Like Python's Path.resolve(): what does not
// exist, or may not be looked at, is kept as it is written, so that a path can be judged before it
// exists. Fails for an empty path, a NUL byte, more than 40 symbolic links, or more than 4095 bytes
// of path and links together.
Expected<std::string> canonical_path(std::string_view path, std::string_view base = {});

// Whether `path` is `root` or lies below it, by whole names: /ws2 is not within /ws. Compares text
// alone, so both must be canonical.
bool is_within(std::string_view path, std::string_view root) noexcept;

// The allowed roots. Does not change after create(); any thread may use it.
//
// Names are compared byte by byte. Where the file system ignores case, another spelling of a root
// is outside of it; so a root that forbids a subtree of another should not be relied on there.
//
// It guards the directory in which a command starts, and gives the sandbox its grants. It does not
// hold a running command back: only the sandbox refuses what follows `cd /`.
class PathRules {
 public:
  // The directories that commands may work in; none: every directory of the system, writable. A
  // path that is not absolute is looked up from the caller's current directory; `~` is not special.
  // Each is made canonical now, so that a link planted later cannot move it.
  //   Errors, with the option `allowed_paths` (`read_only` for one with Permission::read): a root
  //   that is missing, not a directory or not readable, or listed twice with different permissions.
  static Expected<PathRules> create(const std::vector<Root>& roots);
  // Roots that are canonical already, as reported by another machine. This host is not looked at.
  static PathRules of_canonical(std::vector<Root> roots);

  // Whether there are roots. Without, everything is allowed.
  bool restricted() const noexcept { return !roots_.empty(); }
  // Canonical, in the order given.
  const std::vector<Root>& roots() const noexcept { return roots_; }

  // The deepest root around a canonical path; null outside of all roots, and for a path that is not
  // canonical in form. Looks at the text only, not at the disk.
  const Root* deepest_root(std::string_view canonical_path) const noexcept;
  // What that root allows; none where there is no such root.
  Permission permission(std::string_view canonical_path) const noexcept;

  // Files below writable roots that may be read and not changed: those whose path, relative to any
  // of these roots, `is_kept`, unless they are in `open`, which are paths as there or absolute, or
  // "." for all. By their names alone, for permission().
  //   `watch` is called before a file is written; what it returns, after that: it says what of the
  //   write does not stay, or nothing.
  void keep(bool (*is_kept)(std::string_view path), std::vector<std::string> open,
            Function<Function<std::string()>(const std::string& directory)> watch);
  // Whether a canonical path is one of those.
  bool keeps(std::string_view canonical_path) const noexcept;
  Function<std::string()> watch_write(const std::string& directory) const {
    return watch_(directory);
  }
  // The same for other roots, which are canonical.
  PathRules with_roots(std::vector<Root> roots) const;

  // The directory a command starts in: `work_dir`, looked up from `base` when it is relative, or
  // `base` itself when it is empty (an empty base is the caller's current directory). It must be
  // readable by the rules at least. The check and the opening cannot be driven apart: what is
  // opened has the path that was checked, or the call fails. The descriptor is the directory
  // itself, so nothing that happens to its name afterwards matters: enter it with fchdir(). It can
  // do no more than that where the system has such descriptors (O_PATH on Linux). `path` becomes
  // the canonical path, also of one that may not be used. The reference's texts, in its order:
  //   Path validation error: Path not in allowed directories: PATH
  //   Working directory does not exist: PATH
  //   Working directory is not a directory: PATH
  Expected<UniqueFd> open_work_dir(std::string_view work_dir, std::string_view base,
                                   std::string* path = nullptr) const;
  // The same of what canonical_path() has returned; only judged, and not opened, when it is not of
  // this host.
  Expected<UniqueFd> open_found(const Expected<std::string>& path, bool here = true) const;

 private:
  std::vector<Root> roots_ = {};
  bool (*is_kept_)(std::string_view path) = nullptr;
  std::vector<std::string> open_ = {};
  Function<Function<std::string()>(const std::string& directory)> watch_ = {};
};

// Whether this canonical path is of a kind that tools make anew whenever they need it, so that it
// may be deleted without a look at it. Judged by the names alone:
//   a directory of this name, and all below it: __pycache__ .pytest_cache .mypy_cache .ruff_cache
//     .tox .nox .next .nuxt node_modules
//   a directory of this name as a whole: build dist *.egg-info. A file in it counts for itself:
//     people keep sources in a `build`, too, and a whole project may lie below one.
//   a file of this name: .coverage .DS_Store Thumbs.db *.pyc *.pyo *.log *.swp *.swo *~
// With `root`, only names below it count: a project may lie in somebody's node_modules.
bool is_auto_generated(std::string_view path, std::string_view root = {});

// Remembers which files were read or created, so that others are not deleted unseen. Only regular
// files are guarded: a link or a pipe holds nothing to be read. Copies share one memory. All
// members are safe from any thread.
//
// Paths are absolute, and resolved when they are given: what was read through a link is the file it
// leads to, while what is deleted is the link.
//   Bounds: the last max_files files, of at most max_path_bytes in all; what was marked before them
//   must be read again.
class DeleteGuard {
 public:
  static constexpr std::size_t max_files = 65536;
  static constexpr std::size_t max_path_bytes = std::size_t{16} << 20;
  static constexpr std::size_t max_entries = 100000;  // looked at in one directory tree
  static constexpr std::size_t max_entry_bytes = std::size_t{64} << 20;  // of their paths in it

  // `roots` are the workspace and other
  // canonical directories, for is_auto_generated(): the deepest one around a path counts.
  explicit DeleteGuard(std::vector<std::string> roots = {});

  void mark_read(std::string_view path) const;
  void mark_created(std::string_view path) const;

  // Whether a file may be deleted: it does not exist, is no regular file, is auto-generated, or was
  // read or created. The reference's texts:
  //   Cannot delete 'PATH': File must be read before deletion. View it with read_file,
  //   cat or diff first.
  // and for a list with several such files
  //   Cannot delete N unread file(s). Examples: A, B, C (and K more). Please read files before
  //   deletion, with read_file or cat.
  //   Errors: permission_denied; that of a path that cannot be resolved.
  Expected<void> can_delete(std::string_view path) const;
  Expected<void> can_delete_files(const std::vector<std::string>& paths) const;

  // Whether a directory may be deleted with all that it holds: it is auto-generated, or each file
  // in it and below may be deleted. Links are not followed.
  //   Cannot delete directory 'PATH': Contains N unread file(s). Examples: A, B, C (and K more).
  //   Please read files before deletion.
  //   Errors: permission_denied; limit when it holds more than max_entries entries or
  //   max_entry_bytes; that of a directory in it that cannot be read.
  Expected<void> can_delete_directory(std::string_view path) const;

  // Forgets everything.
  void clear() const;
  std::size_t read_files() const;     // how many files were read, and not created
  std::size_t created_files() const;  // how many were created, read or not

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace v0_1
}  // namespace codeexec
