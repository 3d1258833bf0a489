// Whole reads and writes, and the time as text.

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// What is left of a file that is open; errors begin with `subject`.
Expected<std::string> read_to_end(const UniqueFd& fd, std::size_t limit,
                                  const std::string& subject) {
  std::string content;
  char buffer[16384];
  for (;;) {
    const ssize_t size = ::read(fd.get(), buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return system_error(errno, "%", {subject});
    if (size == 0) return content;
    if (content.size() + static_cast<std::size_t>(size) > limit)
      return make_error(ErrorCode::limit, "%: longer than % bytes",
                        {subject, std::to_string(limit)});
    content.append(buffer, static_cast<std::size_t>(size));
  }
}

}  // namespace

inline namespace inner {

std::string utc_time(time_t seconds) {
  tm fields{};
  if (!::gmtime_r(&seconds, &fields)) return {};
  char text[64];
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &fields));
}

ssize_t write_to_file(int fd, std::string_view bytes) {
  HeldSignal guard(SIGXFSZ);
  ssize_t size = -1;
  do size = ::write(fd, bytes.data(), bytes.size());
  while (size < 0 && errno == EINTR);
  if (size < 0 && errno == EFBIG) {
    guard.take_back();
    errno = EFBIG;
  }
  return size;
}

ssize_t write_to_pipe(int fd, std::string_view bytes) {
  HeldSignal guard(SIGPIPE);
  const ssize_t size = ::write(fd, bytes.data(), bytes.size());
  if (size < 0 && errno == EPIPE) {
    guard.take_back();
    errno = EPIPE;
  }
  return size;
}

int flush_to_disk(int fd) {
  while (::fsync(fd) != 0)
    if (errno != EINTR) return errno == EINVAL || errno == EOPNOTSUPP ? 0 : errno;
  return 0;
}

int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = write_to_file(fd, bytes);
    if (size < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(size));
  }
  return 0;
}

std::string own_namespace(const char* kind) {
  char name[64];
  const ssize_t size = ::readlink(concat("/proc/self/ns/%", {kind}).c_str(), name, sizeof name);
  return {name, static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

Expected<std::string> read_whole_file(const std::string& path, std::size_t limit,
                                      std::string_view what) {
  const UniqueFd fd(
      above_standard_streams(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)));
  const std::string subject = concat("% %", {what, in_quotes(path)});
  if (!fd) return system_error(errno, "%", {subject});
  return read_to_end(fd, limit, subject);
}

std::string read_up_to(const UniqueFd& fd, std::size_t most) {
  std::string text(most, '\0');
  std::size_t size = 0;
  while (size < most) {
    const ssize_t part = ::read(fd.get(), &text[size], most - size);
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0) break;
    size += static_cast<std::size_t>(part);
  }
  text.resize(size);
  return text;
}

std::optional<std::string> read_regular_file(int directory, const char* name, std::size_t limit,
                                             struct stat& status) {
  constexpr int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  const UniqueFd fd(above_standard_streams(::openat(directory, name, flags)));
  if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  auto text = read_to_end(fd, limit, {});
  if (!text) return {};
  return std::move(*text);
}

std::vector<SystemUser> system_users(const char* path) {
  std::vector<SystemUser> users;
  const auto list = read_whole_file(path, std::size_t{1} << 20, "list of users"sv);
  for (std::string_view rest = list ? *list : std::string_view(); !rest.empty();) {
    std::string_view line = take_part(rest, '\n');
    std::string fields[6];  // name, password, uid, gid, comment, home
    for (std::string& field : fields) field = take_part(line, ':');
    if (!fields[0].empty()) users.push_back({fields[0], fields[2], fields[3], fields[5]});
  }
  return users;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
