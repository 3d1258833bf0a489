// One side of a copied workspace: it lists its files and finds the changes.

#include "copy/tree_internal.hpp"

#include "agent/frames_internal.hpp"
#include "agent/messages_internal.hpp"
#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/platform_internal.hpp"
#include "json/json.hpp"
#include "paths/paths_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr int most_depth = 128;  // a descriptor each

std::int64_t copy_time(const timespec& time) {
  return static_cast<std::int64_t>(time.tv_sec) * 1000000000 + time.tv_nsec;
}

// The time of a file advances by one tick of the kernel, of 10 ms at most.
bool is_recent_time(std::int64_t changed) {
  constexpr std::int64_t tick = 10000000;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return changed > copy_time(now) - 2 * tick;
}

}  // namespace

inline namespace inner {

// A slash comes before all other bytes, so that what is in `a` follows `a`, and `a.c` comes after
// `a/b`. Two sorted lists can then be compared in one pass, folder by folder.
bool copy_order(std::string_view a, std::string_view b) {
  const std::size_t size = std::min(a.size(), b.size());
  std::size_t at = 0;
  while (at < size && a[at] == b[at]) ++at;
  if (at == size) return a.size() < b.size();
  const auto rank = [](char c) { return c == '/' ? 0 : static_cast<unsigned char>(c); };
  return rank(a[at]) < rank(b[at]);
}

std::uint64_t copy_hash(std::uint64_t hash, std::string_view bytes) {
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * copy_prime;
  return hash;
}

// Reads the file to its end; 0, or the errno of what failed.
int copy_hash_of(int fd, std::uint64_t& hash) {
  std::unique_ptr<char[]> buffer(new char[longest_payload]);
  hash = 0;
  for (;;) {
    const ssize_t size = ::read(fd, buffer.get(), longest_payload);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return size < 0 ? errno : 0;
    hash = copy_hash(hash, {buffer.get(), static_cast<std::size_t>(size)});
  }
}

}  // namespace inner

// The rights without setuid and the like: those are not copied, and are no change.
void CopyEntry::set(const struct stat& status) {
  mode = static_cast<std::uint32_t>(status.st_mode & (S_IFMT | 0777));
  size = S_ISDIR(status.st_mode) ? 0 : static_cast<std::uint64_t>(status.st_size);
#if defined(__APPLE__)
  modified = copy_time(status.st_mtimespec);
  changed = copy_time(status.st_ctimespec);
#else
  modified = copy_time(status.st_mtim);
  changed = copy_time(status.st_ctim);
#endif
  is_recent = S_ISREG(status.st_mode) && is_recent_time(changed);
}

// The folder is open as long as the tree lives: one that is put in its place later is another one.
Expected<std::unique_ptr<CopyTree>> CopyTree::of(const std::string& base, const PathRules& rules,
                                                 const Json& options) {
  auto root = open_canonical_directory(base);
  if (!root) return with_prefix("workspace: ", {}, root.error());
  return std::unique_ptr<CopyTree>(new CopyTree(std::move(*root), base, rules, options));
}

// Options are those of copy_options(); a side that is given others has bounds of 0, and takes
// nothing.
CopyTree::CopyTree(UniqueFd root, const std::string& base, const PathRules& rules,
                   const Json& options)
    : root_(std::move(root)),
      base_(base),
      rules_(rules),
      most_files_(static_cast<std::uint64_t>(options["files"sv].as_integer())),
      most_bytes_(static_cast<std::uint64_t>(options["size"sv].as_integer())),
      gitignore_(options["gitignore"sv].as_bool()) {
  for (const std::string& pattern : texts_in(options["exclude"sv])) excluded_.add({}, pattern);
}

// An open folder without a name left: the place has removed the copy.
bool CopyTree::is_gone() const {
  struct stat status {};
  return ::fstat(root_.get(), &status) != 0 || status.st_nlink == 0;
}

// Lists all files anew each time: there is no watch on the other side, and none that sees all here.
// What costs is a stat of each file; contents are read only where times do not show it, see
// is_same().
bool CopyTree::scan() {
  found_.clear();
  found_.reserve(agreed_.size());
  gone_.clear();
  bytes_ = changes_ = 0;
  ignored_ = IgnoreRules();
  report = CopyReport();
  std::string path;
  if (!list_folder(root_.get(), path, 0)) return false;
  compare();
  return true;
}

// Lists a folder, its names in order. One that cannot be read is closed: what was agreed below it
// stays agreed, as nothing is known of it. False: there are too many files, or the workspace itself
// is closed.
bool CopyTree::list_folder(int folder, std::string& path, int depth) {
  TextMap names;  // for their order alone
  const int error = for_each_entry_in(folder, [&](const char* name) {
    if (!starts_with(name, partial)) names[name];
    return names.size() <= most_files_;
  });
  if (error != 0) {
    if (path.empty()) report.problem = concat("it cannot be read: %", {errno_text(error)});
    report.names[CopyReport::unreadable].add(path);
    if (!found_.empty()) found_.back().is_closed = true;
    return !path.empty();
  }
  const IgnoreRules rules_before = ignored_;
  if (gitignore_) ignored_.read(folder, path.empty() ? std::string() : concat("%/", {path}));
  const std::size_t size = path.size();
  for (const auto& [name, nothing] : names) {
    if (size != 0) path += '/';
    path += name;
    if (!list_name(folder, name, path, depth)) return false;
    path.resize(size);
  }
  ignored_ = rules_before;
  return true;
}

// Adds a path to found_. One that is left out stands there with mode 0, so that compare() forgets
// what was agreed below it, and does not take it for removed: rules may change while files are on
// both sides.
bool CopyTree::list_name(int folder, const std::string& name, std::string& path, int depth) {
  struct stat status {};
  if (::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return true;
  const bool is_folder = S_ISDIR(status.st_mode);
  CopyEntry entry;
  entry.path = path;
  if (excluded_.excludes(path, is_folder) || ignored_.excludes(path, is_folder) ||
      permission(path) == Permission::none) {
    found_.push_back(std::move(entry));  // it is no longer agreed on
    return true;
  }
  entry.set(status);
  const bool lies_deep = path.size() > longest_copied_path || (is_folder && depth >= most_depth);
  const bool is_file = S_ISREG(status.st_mode);
  if (lies_deep || (!is_folder && !is_file && !S_ISLNK(status.st_mode))) {
    report.names[lies_deep ? CopyReport::deep : CopyReport::special].add(path);
    entry.mode = 0;
    found_.push_back(std::move(entry));
    return true;
  }
  if (is_file) bytes_ += entry.size;
  found_.push_back(std::move(entry));
  if (found_.size() > most_files_ || bytes_ > most_bytes_) {
    report.problem = found_.size() > most_files_
                         ? concat("it has more than % files (place_copy_files)", {most_files_})
                         : concat("it has more than % bytes (place_copy_size)", {most_bytes_});
    return false;
  }
  if (!is_folder) return true;
  const UniqueFd below(
      ::openat(folder, name.c_str(), open_directory_flags | O_NOFOLLOW | O_CLOEXEC));
  if (below) return list_folder(below.get(), path, depth + 1);
  found_.back().is_closed = true;
  report.names[CopyReport::unreadable].add(path);
  return true;
}

// Whether a path is as the list has it. Size and times decide, but for a file that was young when
// it was listed: a second change in the same tick of the kernel has the same times, so its content
// is hashed.
bool CopyTree::is_same(const CopyEntry& now, CopyEntry& agreed) const {
  if (now.mode != agreed.mode || agreed.changed < 0) return false;
  if (S_ISDIR(now.mode)) return true;
  if (now.size != agreed.size || now.modified != agreed.modified || now.changed != agreed.changed)
    return false;
  if (!agreed.is_recent) return true;
  // It may have changed in the same tick after it was agreed.
  const UniqueFd folder = open_folder(folder_of(now.path));
  const UniqueFd file(::openat(folder.get(), std::string(base_name(now.path)).c_str(),
                               O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  std::uint64_t hash = 0;
  if (!file || copy_hash_of(file.get(), hash) != 0 || hash != agreed.hash) return false;
  agreed.is_recent = now.is_recent;
  return true;
}

// Compares the found paths with the agreed ones, both in order, and marks the changes. What is
// below a path that is left out is forgotten; what is below a closed folder stays as it was agreed.
// The lists change places, as a copy of a hundred thousand paths would be made with each command.
void CopyTree::compare() {
  std::vector<CopyEntry> next;
  next.reserve(found_.size());
  std::string forgotten;  // a path that is left out, with all below it
  std::string closed;
  auto old = agreed_.begin();
  const auto pass = [&](std::string_view before) {
    for (; old != agreed_.end() && (before.empty() || copy_order(old->path, before)); ++old) {
      if (!forgotten.empty() && codeexec::is_within(old->path, forgotten)) continue;
      const bool kept = !closed.empty() && codeexec::is_within(old->path, closed);
      if (!kept) ++changes_;
      (kept ? next : gone_).push_back(std::move(*old));
    }
  };
  for (CopyEntry& entry : found_) {
    pass(entry.path);
    const bool known = old != agreed_.end() && old->path == entry.path;
    if (entry.mode == 0) {
      forgotten = entry.path;
      if (known) ++old;
      continue;
    }
    if (entry.is_closed) closed = entry.path;
    if (known && is_same(entry, *old)) {
      next.push_back(std::move(*old));
    } else {
      entry.is_sent = true;
      ++changes_;
      next.push_back(std::move(entry));
    }
    if (known) ++old;
  }
  pass({});
  found_.swap(next);
  agreed_.clear();
  if (changes_ == 0) agreed_.swap(found_);
}

}  // namespace v0_1
}  // namespace codeexec
