// Generated files, and which files may be deleted.
//
// What the guard knows of a file, by its canonical path:
//
//               mark_read            mark_created
//   unknown ------------> read ----------------------> created
//      |                                                  ^
//      +-------------------- mark_created ---------------+
//
// clear() makes all unknown. So does a full table: the file that was marked first goes first. A
// regular file may be deleted when it is known or generated; a link or what is missing always may.

#include "paths/paths.hpp"
#include "paths/walk_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/names_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// What programs generate; see Names::match() for the patterns.
constexpr auto generated_trees =
    NameSet{".mypy_cache", ".next", ".nox",        ".nuxt",       ".pytest_cache",
            ".ruff_cache", ".tox",  "__pycache__", "node_modules"};
constexpr auto generated_directories = NameList{"build", "dist", "*.egg-info"};
constexpr auto generated_files = NameList{".coverage", ".DS_Store", "Thumbs.db", "*.pyc", "*.pyo",
                                          "*.log",     "*.swp",     "*.swo",     "*~"};

// `ending` says what the path itself is: GeneratedScope::directory or file.
bool is_generated(std::string_view path, std::string_view root, GeneratedScope ending) {
  if (!root.empty() && codeexec::is_within(path, root)) path.remove_prefix(root.size());
  std::string_view part;
  while (!path.empty()) {
    part = take_part(path, '/');
    if (is_generated_name(part, GeneratedScope::tree)) return true;
  }
  return is_generated_name(part, ending);
}

// Up to three names, the first in order of the alphabet, and how many there are in all.
class Examples {
 public:
  void add(std::string name) {
    ++count_;
    first_.push_back(std::move(name));
    for (std::size_t i = first_.size() - 1; i > 0 && first_[i] < first_[i - 1]; --i)
      first_[i].swap(first_[i - 1]);
    if (first_.size() > most) first_.pop_back();
  }
  std::size_t count() const { return count_; }
  // "a, b, c (and 4 more)"
  std::string text() const {
    std::string result;
    for (const std::string& name : first_)
      append_all(result, {result.empty() ? "" : ", ", printable(name)});
    if (count_ > most) append_all(result, " (and % more)", {count_ - most});
    return result;
  }

 private:
  static constexpr std::size_t most = 3;
  std::vector<std::string> first_ = {};
  std::size_t count_ = 0;
};

// list_open_directory() by path. A link in place of the directory is an error.
Expected<void> list_directory(const std::string& path, WalkBudget& budget,
                              FunctionRef<void(const char*, const struct stat&)> visit) {
  UniqueFd fd(above_standard_streams(
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)));
  if (!fd) return system_error(errno, "%", {in_quotes(path)});
  return list_open_directory(std::move(fd), path, budget, visit);
}

}  // namespace

inline namespace inner {

bool is_generated_name(std::string_view name, GeneratedScope scope) {
  switch (scope) {
    case GeneratedScope::tree:
      return generated_trees.has(name);
    case GeneratedScope::directory:
      return generated_directories.match(name);
    case GeneratedScope::file:
      break;
  }
  return generated_files.match(name);
}

Expected<std::string> canonical_entry(std::string_view path, std::string_view base) {
  const std::string_view last = base_name(path);
  const bool is_entry = !last.empty() && last != "."sv && last != ".."sv;
  if (!is_entry || has_nul(last)) return canonical_path(path, base);
  const std::string_view parent = path.substr(0, path.size() - last.size());
  auto result = canonical_path(parent.empty() ? "."sv : parent, base);
  if (result) *result = concat({*result, *result == "/" ? "" : "/", last});
  return result;
}

Expected<void> list_open_directory(UniqueFd fd, const std::string& path, WalkBudget& budget,
                                   FunctionRef<void(const char*, const struct stat&)> visit) {
  const int descriptor = fd.get();
  bool is_within_budget = true;
  Expected<void> problem;
  const int error = for_each_entry(std::move(fd), [&](const char* child) {
    is_within_budget = budget.take(path.size() + std::strlen(child) + 1);
    struct stat status {};
    if (!is_within_budget) return false;
    if (::fstatat(descriptor, child, &status, AT_SYMLINK_NOFOLLOW) == 0) {
      visit(child, status);
    } else if (errno != ENOENT) {  // which has gone meanwhile
      problem = system_error(errno, "%", {in_quotes(concat("%/%", {path, child}))});
    }
    return problem.has_value();
  });
  if (error != 0) return system_error(error, "%", {in_quotes(path)});
  if (!problem || is_within_budget) return problem;
  return make_error(ErrorCode::limit, "there are more than % entries, too many to be checked",
                    {DeleteGuard::max_entries});
}

Expected<std::vector<std::string>> expand_glob(std::string_view pattern, WalkBudget& budget) {
  std::vector<std::string> found = {""};
  while (!pattern.empty() && !found.empty()) {
    const std::string_view part = take_part(pattern, '/');
    if (part.empty()) continue;
    std::vector<std::string> next;
    for (std::string& path : found) {
      if (!has_glob(part)) {
        next.push_back(concat("%/%", {path, part}));
        continue;
      }
      const auto resolved = canonical_path(path.empty() ? "/" : path);
      if (!resolved) continue;
      const auto listed =
          list_directory(*resolved, budget, [&](const char* child, const struct stat&) {
            if (child[0] == '.' && part[0] != '.') return;
            if (glob_matches(part, child)) next.push_back(concat("%/%", {path, child}));
          });
      // What cannot be read cannot be expanded by the shell, either.
      if (!listed && listed.error().code == ErrorCode::limit) return listed.failure();
    }
    found = std::move(next);
  }
  std::vector<std::string> existing;
  struct stat status {};
  for (std::string& path : found)
    if (::lstat(path.c_str(), &status) == 0) existing.push_back(std::move(path));
  return existing;
}

}  // namespace inner

bool is_auto_generated(std::string_view path, std::string_view root) {
  return is_generated(path, root, GeneratedScope::directory) ||
         is_generated(path, root, GeneratedScope::file);
}

// Which files are known, the oldest first in `order`.
struct DeleteGuard::State {
  static constexpr const char* created_here = "created";
  std::vector<std::string> roots = {};
  std::mutex mutex = {};
  TextMap files = {};  // canonical path; "read" or created_here
  std::list<TextMap::iterator> order = {};
  std::size_t path_bytes = 0;
  std::size_t created = 0;

  void mark(std::string_view path, bool is_created) {
    auto resolved = canonical_path(path);
    if (!resolved) return;
    const std::lock_guard<std::mutex> lock(mutex);
    std::string& use = files[*resolved];
    const bool is_new = use.empty();
    if (is_created && use != created_here) ++created;
    if (is_new || is_created) use = is_created ? created_here : "read";
    if (!is_new) return;
    order.push_back(files.find(*resolved));
    path_bytes += resolved->size();
    while (files.size() > max_files || path_bytes > max_path_bytes) forget_oldest();
  }
  bool knows(std::string_view path) {
    const std::lock_guard<std::mutex> lock(mutex);
    return files.find(path) != files.end();
  }
  // The deepest root around a canonical path, or nothing.
  std::string_view root_around(std::string_view path) const {
    std::string_view deepest;
    for (const std::string& root : roots)
      if (is_within(path, root) && root.size() > deepest.size()) deepest = root;
    return deepest;
  }
  // Of a regular file.
  bool may_go(std::string_view path, std::string_view root) {
    return is_generated(path, root, GeneratedScope::file) || knows(path);
  }

 private:
  void forget_oldest() {
    const TextMap::iterator oldest = order.front();
    order.pop_front();
    path_bytes -= oldest->first.size();
    if (oldest->second == created_here) --created;
    files.erase(oldest);
  }
};

DeleteGuard::DeleteGuard(std::vector<std::string> roots) : state_(new_shared<State>()) {
  state_->roots = std::move(roots);
}

void DeleteGuard::mark_read(std::string_view path) const { state_->mark(path, false); }
void DeleteGuard::mark_created(std::string_view path) const { state_->mark(path, true); }

Expected<void> DeleteGuard::can_delete(std::string_view path) const {
  return can_delete_files({std::string(path)});
}

Expected<void> DeleteGuard::can_delete_files(const std::vector<std::string>& paths) const {
  Examples unread;
  for (const std::string& path : paths) {
    auto entry = canonical_entry(path);
    if (!entry) return with_prefix("Cannot delete: ", {}, entry.error());
    struct stat status {};
    if (::lstat(entry->c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    if (!state_->may_go(*entry, state_->root_around(*entry))) unread.add(std::move(*entry));
  }
  if (unread.count() == 0) return {};
  if (unread.count() == 1)
    return make_error(ErrorCode::permission_denied, "%",
                      {concat("Cannot delete '%': File must be read before deletion. View it with "
                              "read_file, cat or diff first.",
                              {unread.text()})});
  return make_error(ErrorCode::permission_denied,
                    "Cannot delete % unread file(s). Examples: %. Please read files before "
                    "deletion, with read_file or cat.",
                    {unread.count(), unread.text()});
}

Expected<void> DeleteGuard::can_delete_directory(std::string_view path) const {
  auto top = canonical_entry(path);
  if (!top) return with_prefix("Cannot delete: ", {}, top.error());
  struct stat top_status {};
  if (::lstat(top->c_str(), &top_status) != 0 || !S_ISDIR(top_status.st_mode)) return {};
  const std::string_view root = state_->root_around(*top);
  if (is_generated(*top, root, GeneratedScope::directory)) return {};

  const std::string start = concat("Cannot delete directory '%': ", {printable(*top)});
  Examples unread;
  WalkBudget budget;
  std::vector<std::string> waiting = {""};  // below `top`, each with a slash in front
  while (!waiting.empty()) {
    const std::string here = std::move(waiting.back());
    waiting.pop_back();
    const auto visit = [&](const char* child, const struct stat& status) {
      std::string below = concat("%/%", {here, child});
      if (S_ISDIR(status.st_mode)) {
        if (!is_generated_name(child, GeneratedScope::tree)) waiting.push_back(std::move(below));
      } else if (S_ISREG(status.st_mode) && !state_->may_go(concat({*top, below}), root)) {
        unread.add(below.substr(1));
      }
    };
    const auto listed = list_directory(concat({*top, here}), budget, visit);
    // One that is gone by now needs no check.
    if (!listed && listed.error().system_error != ENOENT)
      return with_prefix("%", {start}, listed.error());
  }
  if (unread.count() == 0) return {};
  return make_error(ErrorCode::permission_denied,
                    "%Contains % unread file(s). Examples: %. Please read files before deletion.",
                    {start, unread.count(), unread.text()});
}

void DeleteGuard::clear() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  state_->files.clear();
  state_->order.clear();
  state_->path_bytes = 0;
  state_->created = 0;
}

std::size_t DeleteGuard::read_files() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->files.size() - state_->created;
}

std::size_t DeleteGuard::created_files() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->created;
}

}  // namespace v0_1
}  // namespace codeexec
