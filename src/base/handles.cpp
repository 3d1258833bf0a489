// Descriptors, directories, and the token that cancels.

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

int moved_above(int last, int fd) {
  if (fd < 0 || fd > last) return fd;
  const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, last + 1);
  const int saved = errno;
  ::close(fd);
  errno = saved;
  return moved;
}

std::shared_ptr<void> owner_of(void* object, void (*destroy)(void*)) {
  return std::shared_ptr<void>(object, destroy);
}

}  // namespace inner

namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

}  // namespace

inline namespace inner {

int for_each_entry(UniqueFd directory, FunctionRef<bool(const char*)> use) {
  const std::unique_ptr<DIR, CloseDirectory> listing(::fdopendir(directory.get()));
  if (!listing) return errno;
  (void)directory.release();  // closed by closedir() from here on
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(listing.get());
    if (!entry) return errno;
    const std::string_view text = entry->d_name;
    if (text != "."sv && text != ".."sv && !use(entry->d_name)) return 0;
  }
}

int for_each_entry_in(int directory, FunctionRef<bool(const char*)> use) {
  UniqueFd own(
      above_standard_streams(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  return own ? for_each_entry(std::move(own), use) : errno;
}

#if defined(__linux__)
int for_each_entry(const std::string& path, FunctionRef<bool(const char*)> use) {
  UniqueFd fd(above_standard_streams(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  return fd ? for_each_entry(std::move(fd), use) : errno;
}
#endif

}  // namespace inner

void UniqueFd::reset(int fd) noexcept {
  // close() is never repeated after EINTR: on Linux the descriptor is already gone.
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

struct CancelToken::State {
  std::atomic<bool> cancelled{false};
  std::mutex mutex;
  UniqueFd readable;
#if !defined(__linux__)
  UniqueFd writable;
#endif
  // Needs the mutex.
  void signal() {
    const std::uint64_t one = 1;
#if defined(__linux__)
    const int target = readable.get();
#else
    const int target = writable.get();
#endif
    // A full pipe or counter is readable already, which is all that is wanted.
    if (target >= 0) (void)!::write(target, &one, sizeof one);
  }
};

CancelToken::CancelToken() : state_(new_shared<State>()) {}

void CancelToken::cancel() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (!state_->cancelled.exchange(true)) state_->signal();
}

bool CancelToken::cancelled() const noexcept { return state_->cancelled.load(); }

int CancelToken::descriptor() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (state_->readable) return state_->readable.get();
#if defined(__linux__)
  state_->readable.reset(above_standard_streams(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
#else
  int ends[2];
  if (::pipe(ends) != 0) return -1;
  for (int& end : ends) {
    end = above_standard_streams(end);
    if (end < 0) continue;
    ::fcntl(end, F_SETFD, FD_CLOEXEC);
    ::fcntl(end, F_SETFL, O_NONBLOCK);
  }
  state_->readable.reset(ends[0]);
  state_->writable.reset(ends[1]);
#endif
  if (state_->cancelled.load()) state_->signal();
  return state_->readable.get();
}

}  // namespace v0_1
}  // namespace codeexec
