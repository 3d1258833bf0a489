// Small things that the parts share: times, texts cut in their middle, folders of options.

#include "executor/executor.hpp"
#include "executor/executor_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "paths/paths.hpp"
#include "process/capture_internal.hpp"
#include "process/process.hpp"
#include "sandbox/sandbox.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// No character is cut in two, so the parts may be shorter than `bytes` allows.
std::string head_and_tail(const std::string& text, std::size_t bytes, std::uint64_t total) {
  if (text.size() <= bytes) return text;
  const std::string_view head = utf8_prefix(text, bytes - bytes / 2);
  const std::string_view tail = utf8_suffix(text, bytes / 2);
  return concat(
      {head, Capture::gap(std::max<std::uint64_t>(text.size(), total) - head.size() - tail.size()),
       tail});
}

// For messages: the shortest text that is exact to the millisecond.
std::string seconds_text(std::chrono::milliseconds time) {
  if (time == no_limit) return "unlimited";
  const auto seconds = time.count() / 1000;
  const auto rest = std::abs(time.count() % 1000);
  std::string text = concat({time.count() < 0 && seconds == 0 ? "-" : "", seconds});
  if (rest == 0) return text;
  std::string fraction = std::to_string(1000 + rest).substr(1);
  while (fraction.back() == '0') fraction.pop_back();
  return concat("%.%", {text, fraction});
}

std::string count_of_seconds(std::chrono::milliseconds time) {
  return seconds_text(time) + (time == std::chrono::seconds(1) ? " second" : " seconds");
}

// The clock of the host, which may be set back: the order of records is that of the log.
std::string utc_timestamp() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  char fraction[16];
  std::snprintf(fraction, sizeof fraction, ".%03dZ", static_cast<int>(now.tv_nsec / 1000000));
  return utc_time(now.tv_sec) + fraction;
}

// EIO counts, too: the disk has failed, and the path may be a good one.
bool is_shortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO;
}

// Elsewhere than on Linux the file has a name for a moment, with mode 0600. The shell opens it as
// /dev/fd/3.
Expected<UniqueFd> anonymous_file(std::string_view content) {
#if defined(__linux__)
  UniqueFd fd(above_standard_streams(::memfd_create("script", MFD_CLOEXEC | MFD_ALLOW_SEALING)));
#else
  char path[] = "/tmp/codeexec-XXXXXX";
  UniqueFd fd(above_standard_streams(::mkostemp(path, O_CLOEXEC)));
  if (fd) ::unlink(path);
#endif
  if (!fd) return system_error(errno, "cannot make a file for the script");
  if (const int error = write_all(fd.get(), content); error != 0)
    return system_error(error, "cannot write the script");
#if defined(__linux__)
  // The running script cannot rewrite itself.
  ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
#endif
  if (::lseek(fd.get(), 0, SEEK_SET) != 0) return system_error(errno, "cannot rewind the script");
  return fd;
}

// Looks at no PATH: a name without a slash is no program here.
bool is_program(const std::string& path) {
  struct stat status {};
  return path.find('/') != std::string::npos && ::stat(path.c_str(), &status) == 0 &&
         S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

// Called by create(): a mistake in an option is found before the first command. The rights are
// those of this process at that moment.
Expected<std::string> usable_directory(const char* option, const std::string& given, int mode) {
  if (given.empty()) return std::string();
  auto path = canonical_path(given);
  if (!path) return with_prefix("%: ", {option}, path.error());
  struct stat status {};
  int error = 0;
  if (::stat(path->c_str(), &status) != 0 || ::access(path->c_str(), mode) != 0)
    error = errno;
  else if (!S_ISDIR(status.st_mode))
    error = ENOTDIR;
  if (error != 0) return system_error(error, "%: %", {option, in_quotes(*path)});
  return path;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
