// Helpers for the tests: a temporary directory, files, the process environment, time. Needs no
// codeexec.
// Everything here ends the test program when the system refuses: a test on a broken floor proves
// nothing.
#ifndef CODEEXEC_TESTS_SUPPORT_HPP
#define CODEEXEC_TESTS_SUPPORT_HPP

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace support {

// Ends the program: the test's own set-up failed.
[[noreturn]] inline void fail(std::string_view what, std::string_view subject) {
  const int error = errno;
  std::fprintf(stderr, "test set-up: %.*s %.*s: %s\n", static_cast<int>(what.size()), what.data(),
               static_cast<int>(subject.size()), subject.data(), std::strerror(error));
  std::abort();
}

// Removes a file, a symbolic link or a whole directory tree. Missing is fine.
inline void remove_all(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return;
  if (!S_ISDIR(status.st_mode)) {
    ::unlink(path.c_str());
    return;
  }
  ::chmod(path.c_str(), 0700);
  std::vector<std::string> children;
  if (DIR* directory = ::opendir(path.c_str())) {
    while (const dirent* entry = ::readdir(directory)) {
      const std::string child = entry->d_name;
      if (child != "." && child != "..") children.push_back(child);
    }
    ::closedir(directory);
  }
  for (const std::string& child : children) remove_all(path + "/" + child);
  ::rmdir(path.c_str());
}

inline std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

inline bool exists(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

// Like `mkdir -p`.
inline void make_directories(const std::string& path) {
  for (std::size_t i = 1; i <= path.size(); ++i) {
    if (i != path.size() && path[i] != '/') continue;
    const std::string part = path.substr(0, i);
    if (::mkdir(part.c_str(), 0755) != 0 && errno != EEXIST) fail("mkdir", part);
  }
}

// Creates or replaces a file; its directory must exist.
inline void write_file(const std::string& path, std::string_view content, mode_t mode = 0644) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  if (fd < 0) fail("open", path);
  while (!content.empty()) {
    const ssize_t size = ::write(fd, content.data(), content.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) fail("write", path);
    content.remove_prefix(static_cast<std::size_t>(size));
  }
  if (::fchmod(fd, mode) != 0) fail("fchmod", path);
  ::close(fd);
}

// A whole file; works for /proc, too.
inline std::string read_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail("open", path);
  std::string content;
  char buffer[65536];
  for (;;) {
    const ssize_t size = ::read(fd, buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) fail("read", path);
    if (size == 0) break;
    content.append(buffer, static_cast<std::size_t>(size));
  }
  ::close(fd);
  return content;
}

// Names of what a directory holds, without its subdirectories' own, sorted.
inline std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> names;
  DIR* const directory = ::opendir(path.c_str());
  if (!directory) fail("opendir", path);
  while (const dirent* entry = ::readdir(directory)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  ::closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

// Makes the files 0SUFFIX, 1SUFFIX ... in a directory that exists. They are links to a few, which
// takes a tenth of the time of as many files.
inline void fill_directory(const std::string& path, std::size_t count,
                           const std::string& suffix = {}) {
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) fail("open", path);
  std::string last_made;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = std::to_string(i) + suffix;
    if (i != 0 && ::linkat(folder, last_made.c_str(), folder, name.c_str(), 0) == 0) continue;
    // The first, and where the last one has all the links that it can have.
    const int fd = ::openat(folder, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) fail("open", name);
    ::close(fd);
    last_made = name;
  }
  ::close(folder);
}

inline void make_symlink(const std::string& target, const std::string& path) {
  if (::symlink(target.c_str(), path.c_str()) != 0) fail("symlink", path);
}

inline std::string real_path(const std::string& path) {
  char buffer[PATH_MAX];
  if (!::realpath(path.c_str(), buffer)) fail("realpath", path);
  return buffer;
}

// The name of what a descriptor refers to, as the kernel sees it now (Linux).
inline std::string path_of_descriptor(int fd) {
  char buffer[PATH_MAX];
  const ssize_t size =
      ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), buffer, sizeof buffer);
  return size < 0 ? std::string() : std::string(buffer, static_cast<std::size_t>(size));
}

inline bool descriptor_is_open(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

// Descriptors this process has open now (Linux: /proc; elsewhere a scan), for leak checks.
inline int count_descriptors() {
  int count = 0;
  const long limit = ::sysconf(_SC_OPEN_MAX);
  for (int fd = 0; fd < (limit > 0 && limit < 4096 ? static_cast<int>(limit) : 4096); ++fd)
    if (descriptor_is_open(fd)) ++count;
  return count;
}

// ThreadSanitizer ends a fork of a program with threads that starts a thread of its own.
#if defined(__SANITIZE_THREAD__)
constexpr bool thread_sanitizer = true;
#elif defined(__has_feature)
constexpr bool thread_sanitizer = __has_feature(thread_sanitizer);
#else
constexpr bool thread_sanitizer = false;
#endif
#if defined(__SANITIZE_ADDRESS__)
constexpr bool address_sanitizer = true;
#elif defined(__has_feature)
constexpr bool address_sanitizer = __has_feature(address_sanitizer);
#else
constexpr bool address_sanitizer = false;
#endif

// Nothing in a test takes as long, not even on a busy machine; it only keeps a failing one from
// hanging. Half of it is less than the 300 seconds that commands here sleep.
constexpr std::chrono::seconds safety(400);

// Tells an end that came of itself from one that a limit of `safety` had to bring about.
class Stopwatch {
 public:
  bool soon() const { return std::chrono::steady_clock::now() - begin_ < safety / 2; }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

inline pid_t first_number(const std::string& text) { return std::atoi(text.c_str()); }

// The letter that the kernel has for it, or "gone" (Linux).
inline std::string process_state(pid_t pid) {
  std::FILE* file = std::fopen(("/proc/" + std::to_string(pid) + "/stat").c_str(), "r");
  if (!file) return "gone";
  char text[512] = "";
  const std::size_t size = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  const std::string line(text, size);
  const std::size_t end = line.rfind(')');
  return end == std::string::npos ? "gone" : line.substr(end + 2, 1);
}

// Whoever has ended may still be waited for by its parent.
inline bool alive(pid_t pid) {
  if (!exists("/proc/self/stat")) return ::kill(pid, 0) == 0;
  const std::string state = process_state(pid);
  return state != "gone" && state != "Z" && state != "X";
}

// False when it does not become true in time, which is a guard that no load should reach.
template <class Condition>
bool comes_true(const Condition& condition, std::chrono::milliseconds time = safety) {
  const auto give_up = std::chrono::steady_clock::now() + time;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    ::poll(nullptr, 0, 20);
  }
  return true;
}

// True when the process has ended, or ends soon. One that should not have lived is killed.
inline bool dies(pid_t pid) {
  if (pid <= 0) return false;
#if defined(SYS_pidfd_open)
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  // Of one that is waited for already only the number of its group may be left, which is EINVAL.
  if (fd < 0) return errno == ESRCH || !alive(pid);
  pollfd wanted = {fd, POLLIN, 0};
  const bool ended = ::poll(&wanted, 1, static_cast<int>(safety.count()) * 1000) == 1;
  ::close(fd);
#else
  bool ended = false;
  for (int i = 0; i < 40000 && !(ended = ::kill(pid, 0) != 0); ++i) ::poll(nullptr, 0, 10);
#endif
  if (!ended) ::kill(pid, SIGKILL);
  return ended;
}

// Whether descriptors are left over since it was made.
class LeakCheck {
 public:
  bool clean() const { return count_descriptors() == before_; }

 private:
  int before_ = count_descriptors();
};

// Where there is a file system in memory, that: hardly anybody else fills or empties it meanwhile.
inline std::string quiet_base() {
  return ::access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
}

// A fresh directory under $TMPDIR or /tmp, removed with everything in it at the end. Its path is
// canonical and has no slash at the end.
class TempDir {
 public:
  TempDir() : TempDir(usual_base()) {}
  explicit TempDir(const std::string& base) {
    std::string pattern = base + "/codeexec-test-XXXXXX";
    if (!::mkdtemp(&pattern[0])) fail("mkdtemp", pattern);
    path_ = real_path(pattern);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() { remove_all(path_); }

  const std::string& path() const { return path_; }
  // The path of something inside.
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

  // Makes a directory inside, with its parents, and gives its path.
  std::string directory(std::string_view name) const {
    const std::string result = *this / name;
    make_directories(result);
    return result;
  }
  // Makes a file inside, with its parent directories, and gives its path.
  std::string file(std::string_view name, std::string_view content = {}, mode_t mode = 0644) const {
    const std::string result = *this / name;
    make_directories(result.substr(0, result.rfind('/')));
    write_file(result, content, mode);
    return result;
  }

 private:
  static std::string usual_base() {
    const char* base = std::getenv("TMPDIR");
    return base && *base ? base : "/tmp";
  }
  std::string path_;
};

// Changes variables of this process and puts the old values back at the end.
class EnvironmentGuard {
 public:
  EnvironmentGuard() = default;
  EnvironmentGuard(const char* variable, const char* value) { set(variable, value); }
  EnvironmentGuard(const EnvironmentGuard&) = delete;
  EnvironmentGuard& operator=(const EnvironmentGuard&) = delete;
  ~EnvironmentGuard() {
    while (!saved_.empty()) {
      const Saved& last = saved_.back();
      if (last.present)
        ::setenv(last.variable.c_str(), last.value.c_str(), 1);
      else
        ::unsetenv(last.variable.c_str());
      saved_.pop_back();
    }
  }
  void set(const char* variable, const char* value) {
    save(variable);
    if (::setenv(variable, value, 1) != 0) fail("setenv", variable);
  }
  void unset(const char* variable) {
    save(variable);
    ::unsetenv(variable);
  }

 private:
  struct Saved {
    std::string variable = {};
    bool present = false;
    std::string value = {};
  };
  void save(const char* variable) {
    const char* value = std::getenv(variable);
    saved_.push_back({variable, value != nullptr, value ? value : ""});
  }
  std::vector<Saved> saved_ = {};
};

// Enters a directory and comes back at the end.
class DirectoryGuard {
 public:
  explicit DirectoryGuard(const std::string& path)
      : old_(::open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (old_ < 0 || ::chdir(path.c_str()) != 0) fail("chdir", path);
  }
  DirectoryGuard(const DirectoryGuard&) = delete;
  DirectoryGuard& operator=(const DirectoryGuard&) = delete;
  ~DirectoryGuard() {
    if (::fchdir(old_) != 0) fail("fchdir", "back");
    ::close(old_);
  }

 private:
  int old_;
};

// Gives up root's power over files, if this process has it. Returns false when it cannot.
inline bool become_ordinary_user() {
  return ::geteuid() != 0 ||
         (::setgroups(0, nullptr) == 0 && ::setgid(65534) == 0 && ::setuid(65534) == 0);
}

// What is written to a pipe until nobody has its other end; closes it.
inline std::string read_to_end(int fd) {
  std::string text;
  char buffer[4096];
  ssize_t size = 0;
  while ((size = ::read(fd, buffer, sizeof buffer)) > 0)
    text.append(buffer, static_cast<std::size_t>(size));
  ::close(fd);
  return text;
}

// Runs `body` in a fork of this program, where it may damage what belongs to the whole process. It
// returns an empty text, or what went wrong.
template <class Body>
std::string in_other_host(Body body) {
  int ends[2];
  if (::pipe(ends) != 0) fail("pipe", "");
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(ends[0]);
    const int report = ::fcntl(ends[1], F_DUPFD, 10);
    const std::string problem = body();
    if (::write(report, problem.data(), problem.size()) < 0) ::_exit(2);
    ::_exit(problem.empty() ? 0 : 1);
  }
  ::close(ends[1]);
  std::string problem = read_to_end(ends[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (problem.empty() && status != 0) problem = "the other host died: " + std::to_string(status);
  return problem;
}

// A small deterministic generator (xorshift64*), so that a failing case can be repeated.
class Random {
 public:
  explicit Random(unsigned long long seed = 0x9e3779b97f4a7c15ull) : state_(seed ? seed : 1) {}
  unsigned long long next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1dull;
  }
  // 0 <= result < bound
  std::size_t below(std::size_t bound) {
    return static_cast<std::size_t>((next() >> 11) % static_cast<unsigned long long>(bound));
  }

 private:
  unsigned long long state_;
};

inline bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

inline bool begins(std::string_view text, std::string_view part) {
  return text.substr(0, part.size()) == part;
}

inline bool ends(std::string_view text, std::string_view part) {
  return text.size() >= part.size() && text.substr(text.size() - part.size()) == part;
}

inline bool contains(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

inline std::string repeat(std::string_view text, std::size_t times) {
  std::string result;
  result.reserve(text.size() * times);
  for (std::size_t i = 0; i < times; ++i) result += text;
  return result;
}

// Without their newlines; what follows the last newline is a line, too.
inline std::string numbered_lines(int first, int last, const std::string& before = {},
                                  const char* behind = "\n") {
  std::string text;
  for (int i = first; i <= last; ++i) text += before + std::to_string(i) + behind;
  return text;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

}  // namespace support

#endif
