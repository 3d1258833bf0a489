// Listing a tree.

#include "files/files.hpp"
#include "files/files_internal.hpp"
#include "files/ignore_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "paths/paths.hpp"
#include "paths/paths_internal.hpp"
#include "paths/walk_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

FileEntry entry_of(std::string path, const struct stat& status) {
  FileEntry entry;
  entry.path = std::move(path);
  entry.type = FileEntry::Type::other;
  if (S_ISREG(status.st_mode)) entry.type = FileEntry::Type::file;
  if (S_ISDIR(status.st_mode)) entry.type = FileEntry::Type::directory;
  if (S_ISLNK(status.st_mode)) entry.type = FileEntry::Type::link;
  if (entry.type == FileEntry::Type::file) entry.size = static_cast<std::uint64_t>(status.st_size);
  entry.modified = utc_time(status.st_mtime);
  if (!entry.modified.empty()) entry.modified += 'Z';
  return entry;
}

}  // namespace

inline namespace inner {

Expected<UniqueFd> open_listed_directory(const PathRules& rules, const std::string& path) {
  const auto permitted = check_permission(rules, path, Permission::read);
  if (!permitted) return permitted.failure();
  const auto directory = open_canonical_directory(path);
  if (!directory && directory.error().system_error == ENOTDIR)
    return make_error(ErrorCode::invalid_argument, "%: is no directory", {in_quotes(path)});
  if (!directory) return directory.failure();
  if (auto ok = check_file_system(directory->get(), path); !ok) return ok.failure();
  UniqueFd fd(
      above_standard_streams(::openat(directory->get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  if (!fd) return system_error(errno, "%", {in_quotes(path)});
  return fd;
}

}  // namespace inner

namespace {

int compare_paths(const void* a, const void* b) {
  return (*static_cast<FileEntry* const*>(a))
      ->path.compare((*static_cast<FileEntry* const*>(b))->path);
}

void sort_by_path(std::vector<FileEntry>& entries) {
  if (entries.empty()) return;
  std::vector<FileEntry*> order(entries.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = &entries[i];
  std::qsort(order.data(), order.size(), sizeof(FileEntry*), compare_paths);
  std::vector<FileEntry> sorted;
  for (FileEntry* const entry : order) sorted.push_back(std::move(*entry));
  entries = std::move(sorted);
}

// Fills a list level by level.
class TreeWalk {
 public:
  TreeWalk(const PathRules& rules, const std::string& top, std::size_t depth, FileList& list)
      : rules_(rules),
        top_(top),
        depth_(depth),
        list_(list),
        ignored_(rules_around(rules, top, prefix_)) {}

  // Those of the directory that is listed itself.
  Expected<void> add_entries() { return add("", 1, ignored_); }

  // Those of the directories in it, and so on.
  void add_deeper() {
    for (std::size_t i = 0; i < waiting_.size() && !is_full_; ++i) {
      const Waiting next = waiting_[i];
      const std::string path = list_.entries[next.entry].path;
      if (add(path, next.depth, next.ignored)) continue;
      list_.entries[next.entry].closed = true;
      list_.more = true;
    }
  }

 private:
  struct Waiting {
    std::size_t entry;  // its place in the list
    std::size_t depth;  // of what is in it
    IgnoreRules ignored;
  };

  Expected<void> add(const std::string& below, std::size_t depth, IgnoreRules ignored) {
    const std::string path = below.empty() ? top_ : concat("%/%", {top_ == "/" ? "" : top_, below});
    auto fd = open_listed_directory(rules_, path);
    if (!fd) return fd.failure();
    const std::string start = below.empty() ? "" : below + "/";
    ignored.read(fd->get(), prefix_ + start);
    std::vector<FileEntry> found;
    const auto listed = list_open_directory(
        std::move(*fd), path, budget_, [&](const char* child, const struct stat& status) {
          FileEntry entry = entry_of(concat({start, child}), status);
          if (ignored.excludes(prefix_ + entry.path, S_ISDIR(status.st_mode)))
            ++list_.ignored;
          else
            found.push_back(std::move(entry));
        });
    const bool is_used_up =
        !listed && listed.error().code == ErrorCode::limit && listed.error().system_error == 0;
    if (!listed && !is_used_up) return listed;
    sort_by_path(found);
    const std::size_t room = Files::max_entries - list_.entries.size();
    is_full_ = is_used_up || found.size() > room;
    if (is_full_) list_.more = true;
    for (std::size_t i = 0; i < std::min(found.size(), room); ++i) {
      FileEntry& entry = found[i];
      if (entry.type == FileEntry::Type::directory && depth < depth_) {
        entry.closed = is_closed_by_name(std::string_view(entry.path).substr(start.size()));
        if (!entry.closed) waiting_.push_back({list_.entries.size(), depth + 1, ignored});
      }
      list_.entries.push_back(std::move(entry));
    }
    return {};
  }

  const PathRules& rules_;
  const std::string& top_;
  std::size_t depth_;
  FileList& list_;
  std::string prefix_ = {};
  const IgnoreRules ignored_;  // around what is listed
  WalkBudget budget_ = {};
  std::vector<Waiting> waiting_ = {};
  bool is_full_ = false;
};

}  // namespace

Expected<FileList> Files::list(std::string_view path, std::size_t depth) const {
  if (const FilesElsewhere* const there = elsewhere(path))
    return list_elsewhere(*there, path, depth);
  if (const std::string here = moved_path(path); !here.empty()) {
    auto found = Files(rules_, base_).list(here, depth);
    if (!found) return moved_->as_seen(found.error());
    found->path = moved_->as_seen(std::move(found->path));
    return found;
  }
  if (depth == 0) return make_error(ErrorCode::invalid_argument, "depth: must be at least 1");
  auto top = permitted_path(rules_, path, base_, Permission::read);
  if (!top) return top.failure();

  FileList list;
  TreeWalk walk(rules_, *top, depth, list);
  const auto listed = walk.add_entries();
  if (!listed) return listed.failure();
  walk.add_deeper();
  list.path = std::move(*top);
  sort_by_path(list.entries);
  return list;
}

}  // namespace v0_1
}  // namespace codeexec
