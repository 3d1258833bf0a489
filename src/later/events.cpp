// Whether something has happened to what runs later, as the kernel says it by inotify.
//
// Most commands touch none of these files. A queue of events costs two system calls for a command;
// a look costs several for each folder. The kernel puts an event into the queue before the system
// call returns that caused it, so that of a command that has ended all events are there. A file has
// a watch of its own, as it may be written through another name. Where there are no events, or too
// many, one has to look.

#include "later/later_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/platform_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if defined(__linux__)

namespace {

constexpr std::uint32_t of_entries = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                                     IN_DELETE_SELF | IN_MOVE_SELF | IN_DONT_FOLLOW;
constexpr std::uint32_t of_files =
    IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_DONT_FOLLOW;

bool is_name_of_git(std::string_view name) {
  return is_any(name, "config", "config.worktree", "commondir", "hooks", "info", "modules",
                "worktrees", "remotes", "branches");
}

}  // namespace

inline namespace inner {

LaterEvents::LaterEvents()
    : fd_(above_standard_streams(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK))) {
  constexpr std::size_t most = 16384;
  const auto limit = read_whole_file("/proc/sys/fs/inotify/max_user_watches", 100, "limit");
  std::size_t at = 0;
  if (limit) most_ = std::min<std::size_t>(read_digits(*limit, at, 10, 10) / 8, most);
}

void LaterEvents::watch(const std::string& path, std::uint32_t events, Kind kind) {
  if (!works()) return;
  const int number = ::inotify_add_watch(fd_.get(), path.c_str(), events);
  if (number >= 0)
    kinds_[number] = std::max(kinds_.emplace(number, kind).first->second, kind);
  else
    failed_ = errno != ENOENT && errno != ENOTDIR;
  failed_ = failed_ || kinds_.size() > most_;
  if (failed_) fd_.reset();
}

void LaterEvents::add(const std::string& path, Kind kind) {
  watch(path, of_entries | IN_ONLYDIR | (kind == Kind::whole ? IN_ATTRIB : 0), kind);
}

void LaterEvents::add_file(const std::string& path) { watch(path, of_files, Kind::whole); }

bool LaterEvents::counts(const void* event) const {
  const auto& happened = *static_cast<const inotify_event*>(event);
  const auto known = kinds_.find(happened.wd);
  if (known == kinds_.end() || happened.len == 0) return true;
  const std::string_view name = static_cast<const char*>(event) + sizeof happened;
  switch (known->second) {
    case Kind::searched:
      return is_later_name(name) || is_name_of_git(name) ||
             ((happened.mask & IN_ISDIR) != 0 && is_searched(name));
    case Kind::repository:
      return is_name_of_git(name);
    case Kind::whole:
      return true;
  }
  return true;
}

bool LaterEvents::happened() {
  if (!works()) return true;
  bool any = false;
  alignas(inotify_event) char buffer[16384];
  for (;;) {
    const ssize_t size = ::read(fd_.get(), buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno != EAGAIN) failed_ = true;
    if (size <= 0) return any || failed_;
    for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
      inotify_event event;
      std::memcpy(&event, buffer + at, sizeof event);
      if ((event.mask & IN_IGNORED) != 0)
        kinds_.erase(event.wd);
      else if (!any)
        any = counts(buffer + at);
      at += sizeof event + event.len;
    }
  }
}

}  // namespace inner

#else

inline namespace inner {

LaterEvents::LaterEvents() = default;
void LaterEvents::add(const std::string&, Kind) {}
void LaterEvents::add_file(const std::string&) {}
bool LaterEvents::happened() { return true; }

}  // namespace inner

#endif

}  // namespace v0_1
}  // namespace codeexec
