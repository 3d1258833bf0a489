// Canonical paths, and what the roots allow.
//
// A work_dir is judged in two steps. First its path is made canonical, as text: symbolic links are
// followed by reading them, and the result is compared with the roots. Then that text is opened
// one name at a time, never through a link. Between the two steps anybody may swap a directory for
// a link; the second step then meets the link and fails, so a directory that was opened is always
// one whose path was judged. The child enters the descriptor, not the path.
//
// Linux does the second step in one call, openat2(RESOLVE_NO_SYMLINKS), a sixth of the time. The
// walk does the same on every system, where a seccomp filter forbids that call, and whenever it
// fails: the walk knows which name was at fault.
//
// canonical_path() moves names from the left of `todo` to the end of `done`:
//
//   next name of todo      then
//   "" or .                nothing
//   ..                     the last name of done goes; at the root nothing does
//   a link                 its text comes in front of what is left of todo; done is empty again
//                          when that text is absolute. Counts against 40 links and 4095 bytes
//   anything else, also    the name is added to done
//   what does not exist

#include "paths/paths.hpp"
#include "paths/paths_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr std::size_t longest_path = 4095;  // PATH_MAX of Linux, which counts the NUL
constexpr int most_links = 40;              // MAXSYMLINKS of Linux

#if CODEEXEC_HAS_OPENAT2
// One system call for the whole walk of open_canonical_directory(). -1 on any failure.
int open_without_links(const std::string& path) {
  struct {
    std::uint64_t flags;
    std::uint64_t mode;
    std::uint64_t resolve;
  } how = {static_cast<std::uint64_t>(open_directory_flags), 0, 0x04};  // RESOLVE_NO_SYMLINKS
  // The dot asks for search permission: without, the child could not enter.
  const std::string itself = path + "/.";
  return static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, itself.c_str(), &how, sizeof how));
}
#else
int open_without_links(const std::string&) { return -1; }
#endif

// The path, absolute but otherwise as written. `base` as in canonical_path().
Expected<std::string> absolute_path(std::string_view path, std::string_view base) {
  std::string result(path);
  if (!starts_with(result, "/"sv) && !base.empty()) result = concat("%/%", {base, path});
  if (starts_with(result, "/"sv)) return result;
  char current[longest_path + 1];
  if (!::getcwd(current, sizeof current)) return system_error(errno, "current directory");
  return concat("%/%", {current, result});
}

const char* option_of(const Root& root) {
  return root.permission == Permission::read ? "read_only: " : "allowed_paths: ";
}

Expected<Root> open_root(const Root& root) {
  const std::string_view option = option_of(root);
  auto path = canonical_path(root.path);
  if (!path) return with_prefix("%", {option}, path.error());
  auto directory = open_canonical_directory(*path);
  if (!directory) return with_prefix("%", {option}, directory.error());
  const UniqueFd listed(::openat(directory->get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!listed) return with_prefix("%", {option}, system_error(errno, "%", {in_quotes(*path)}));
  return Root{std::move(*path), root.permission};
}

}  // namespace

inline namespace inner {

Expected<UniqueFd> open_canonical_directory(const std::string& path) {
  UniqueFd at_once(above_standard_streams(open_without_links(path)));
  if (at_once) return at_once;
  UniqueFd here(::open("/", open_directory_flags));
  if (!here) return system_error(errno, "%", {in_quotes(path)});
  std::string_view rest = std::string_view(path).substr(1);
  while (!rest.empty()) {
    const std::string part(take_part(rest, '/'));
    UniqueFd next(::openat(here.get(), part.c_str(), open_directory_flags | O_NOFOLLOW));
    if (!next) {
      int error = errno;
      const bool is_something_else = error == ENOTDIR || error == ELOOP || error == EMLINK;
      if (is_something_else) error = rest.empty() ? ENOTDIR : ENOENT;
      return system_error(error, "%", {in_quotes(path)});
    }
    here = std::move(next);
  }
  UniqueFd result(above_standard_streams(::openat(here.get(), ".", open_directory_flags)));
  if (!result) return system_error(errno, "%", {in_quotes(path)});
  return result;
}

bool is_canonical_form(std::string_view path) {
  if (path == "/"sv) return true;
  if (!starts_with(path, "/"sv) || has_nul(path)) return false;
  std::size_t at = 1;
  while (at <= path.size()) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part.empty() || part == "."sv || part == ".."sv) return false;
    at = end + 1;
  }
  return true;
}

}  // namespace inner

const char* name(Permission permission) noexcept {
  switch (permission) {
    case Permission::none:
      return "none";
    case Permission::read:
      return "read";
    case Permission::write:
      return "write";
  }
  return "";
}

Expected<std::string> canonical_path(std::string_view path, std::string_view base) {
  if (path.empty()) return make_error(ErrorCode::invalid_argument, "the path is empty");
  for (const std::string_view text : {path, base}) {
    if (has_nul(text))
      return make_error(ErrorCode::invalid_argument, "%: has a NUL byte", {in_quotes(text)});
  }
  auto absolute = absolute_path(path, base);
  if (!absolute) return absolute.failure();
  if (absolute->size() > longest_path) return system_error(ENAMETOOLONG, "%", {in_quotes(path)});

  std::string todo = std::move(*absolute);
  std::string done;  // canonical so far; empty is the root directory
  std::size_t at = 0;
  int links = 0;
  // Each readlink() walks all of `done` again, so the text of links must be bounded, not only their
  // number: 40 links of 4 KB each took 4.6 seconds.
  std::size_t walked = todo.size();
  while (at < todo.size()) {
    const std::size_t end = std::min(todo.find('/', at), todo.size());
    const std::string_view part = std::string_view(todo).substr(at, end - at);
    at = end + 1;
    if (part.empty() || part == "."sv) continue;
    if (part == ".."sv) {
      if (!done.empty()) done.resize(done.rfind('/'));
      continue;
    }
    const std::size_t parent_size = done.size();
    done += '/';
    done += part;
    char target[longest_path + 1];
    const ssize_t size = ::readlink(done.c_str(), target, sizeof target);
    if (size <= 0) continue;  // not a link, or missing, or out of sight
    walked += static_cast<std::size_t>(size);
    if (++links > most_links) return system_error(ELOOP, "%", {in_quotes(path)});
    if (walked > longest_path) return system_error(ENAMETOOLONG, "%", {in_quotes(path)});
    if (at < todo.size())
      todo = concat("%/%",
                    {std::string_view(target, static_cast<std::size_t>(size)), todo.substr(at)});
    else
      todo.assign(target, static_cast<std::size_t>(size));
    at = 0;
    done.resize(target[0] == '/' ? 0 : parent_size);
  }
  return done.empty() ? std::string("/") : done;
}

bool is_within(std::string_view path, std::string_view root) noexcept {
  if (root == "/"sv) return starts_with(path, "/"sv);
  return !root.empty() && starts_with(path, root) &&
         (path.size() == root.size() || path[root.size()] == '/');
}

Expected<PathRules> PathRules::create(const std::vector<Root>& roots) {
  PathRules rules;
  for (const Root& given : roots) {
    auto root = open_root(given);
    if (!root) return root.failure();
    const Root* same = nullptr;
    for (const Root& known : rules.roots_)
      if (known.path == root->path) same = &known;
    if (!same)
      rules.roots_.push_back(std::move(*root));
    else if (same->permission != root->permission)
      return make_error(ErrorCode::invalid_argument,
                        "allowed_paths: %: listed with different permissions",
                        {in_quotes(root->path)});
  }
  return rules;
}

PathRules PathRules::of_canonical(std::vector<Root> roots) {
  PathRules rules;
  rules.roots_ = std::move(roots);
  return rules;
}

const Root* PathRules::deepest_root(std::string_view canonical_path) const noexcept {
  if (!is_canonical_form(canonical_path)) return nullptr;
  const Root* deepest = nullptr;
  for (const Root& root : roots_) {
    if (!is_within(canonical_path, root.path)) continue;
    if (!deepest || root.path.size() > deepest->path.size()) deepest = &root;
  }
  return deepest;
}

Permission PathRules::permission(std::string_view canonical_path) const noexcept {
  if (!restricted()) return Permission::write;
  const Root* root = deepest_root(canonical_path);
  if (!root) return Permission::none;
  return root->permission == Permission::write && keeps(canonical_path) ? Permission::read
                                                                        : root->permission;
}

void PathRules::keep(bool (*is_kept)(std::string_view path), std::vector<std::string> open,
                     Function<Function<std::string()>(const std::string& directory)> watch) {
  is_kept_ = is_kept;
  open_ = std::move(open);
  watch_ = std::move(watch);
}

PathRules PathRules::with_roots(std::vector<Root> roots) const {
  PathRules rules = *this;
  rules.roots_ = std::move(roots);
  return rules;
}

bool PathRules::keeps(std::string_view canonical_path) const noexcept {
  if (!is_kept_) return false;
  bool is_kept = false;
  for (const Root& root : roots_) {
    if (root.permission != Permission::write || !is_within(canonical_path, root.path)) continue;
    std::string_view below = canonical_path.substr(root.path.size());
    while (starts_with(below, "/"sv)) below.remove_prefix(1);
    for (const std::string& open : open_)
      if (open == "."sv || is_within(below, open) || is_within(canonical_path, open)) return false;
    is_kept = is_kept || is_kept_(below);
  }
  return is_kept;
}

Expected<UniqueFd> PathRules::open_work_dir(std::string_view work_dir, std::string_view base,
                                            std::string* path) const {
  const auto found = canonical_path(work_dir.empty() ? "."sv : work_dir, base);
  if (found && path) *path = *found;
  return open_found(found);
}

Expected<UniqueFd> PathRules::open_found(const Expected<std::string>& path, bool here) const {
  constexpr std::string_view invalid = "Path validation error: ";
  if (!path) return with_prefix("%", {invalid}, path.error());
  const std::string shown = printable(*path);
  if (permission(*path) == Permission::none)
    return make_error(ErrorCode::permission_denied, "%Path not in allowed directories: %",
                      {invalid, shown});
  if (!here) return UniqueFd();
  auto directory = open_canonical_directory(*path);
  if (directory) return directory;
  const Error& error = directory.error();
  if (error.system_error == ENOENT)
    return with_message(error, concat("Working directory does not exist: %", {shown}));
  if (error.system_error == ENOTDIR)
    return with_message(error, concat("Working directory is not a directory: %", {shown}));
  return with_prefix("Working directory cannot be entered: ", {}, error);
}

}  // namespace v0_1
}  // namespace codeexec
