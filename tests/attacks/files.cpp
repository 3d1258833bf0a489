// Files: ways to read and write what is not granted.
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "attack.hpp"

namespace attacks {
namespace {

std::string descriptor_path(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

int open_write(const Arguments& a) { return tell("open", ::open(a[0].c_str(), O_WRONLY)); }
int open_read(const Arguments& a) { return tell("open", ::open(a[0].c_str(), O_RDONLY)); }

// A file without a name: gone when it is closed, so that a success does no harm anywhere.
int nameless(const Arguments& a) {
  return tell("tmpfile", ::open(a[0].c_str(), O_TMPFILE | O_WRONLY, 0600));
}

int reopen(const Arguments& a) {
  const int path = ::open(a[0].c_str(), O_PATH);
  if (path < 0) return tell("o_path", -1);
  return write_and_tell("reopen", ::open(descriptor_path(path).c_str(), O_WRONLY | O_APPEND));
}

int reopen_read(const Arguments& a) {
  const int path = ::open(a[0].c_str(), O_PATH);
  if (path < 0) return tell("o_path", -1);
  return show_and_tell("reopen", ::open(descriptor_path(path).c_str(), O_RDONLY));
}

// Relative to a directory that was opened for nothing but its place.
int open_below(const Arguments& a) {
  const int directory = ::open(a[0].c_str(), O_PATH | O_DIRECTORY);
  if (directory < 0) return tell("o_path", -1);
  return write_and_tell("openat", ::openat(directory, a[1].c_str(), O_WRONLY | O_APPEND));
}

int openat2_write(const Arguments& a) {
  const std::uint64_t how[3] = {O_WRONLY | O_APPEND, 0, 0};
  const long fd = raw(sys_openat2, AT_FDCWD, a[0].c_str(), how, sizeof how);
  if (fd < 0 && errno == ENOSYS) return unavailable("openat2");
  return write_and_tell("openat2", static_cast<int>(fd));
}

int open_truncate(const Arguments& a) {
  return tell("open", ::open(a[0].c_str(), O_RDONLY | O_TRUNC));
}

int truncate_path(const Arguments& a) { return tell("truncate", ::truncate(a[0].c_str(), 0)); }

int rename_with(const Arguments& a) {
  const unsigned flags = static_cast<unsigned>(number(a[2]));
  return tell("renameat2",
              raw(SYS_renameat2, AT_FDCWD, a[0].c_str(), AT_FDCWD, a[1].c_str(), flags));
}

int map_write(const Arguments& a) {
  int fd = ::open(a[0].c_str(), O_RDWR);
  if (fd < 0) fd = ::open(a[0].c_str(), O_RDONLY);
  if (fd < 0) return tell("open", -1);
  void* memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return tell("mmap", -1);
  std::memcpy(memory, "ATTACKED", 8);
  return tell("mmap", ::msync(memory, 4096, MS_SYNC));
}

int map_read(const Arguments& a) {
  const int fd = ::open(a[0].c_str(), O_RDONLY);
  if (fd < 0) return tell("open", -1);
  void* memory = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
  if (memory == MAP_FAILED) return tell("mmap", -1);
  say(std::string(static_cast<const char*>(memory), 64));
  return 0;
}

// A file without a name in one directory gets one in another.
int link_nameless(const Arguments& a) {
  const int fd = ::open(a[0].c_str(), O_TMPFILE | O_RDWR, 0600);
  if (fd < 0) return errno == EOPNOTSUPP ? unavailable("O_TMPFILE") : tell("tmpfile", -1);
  return tell("linkat", ::linkat(AT_FDCWD, descriptor_path(fd).c_str(), AT_FDCWD, a[1].c_str(),
                                 AT_SYMLINK_FOLLOW));
}

// Opens by a handle, which needs no path at all.
int by_handle(const Arguments& a) {
  union {
    file_handle handle;
    char room[sizeof(file_handle) + MAX_HANDLE_SZ];
  } u;
  std::memset(&u, 0, sizeof u);
  u.handle.handle_bytes = MAX_HANDLE_SZ;
  int mount = 0;
  if (::name_to_handle_at(AT_FDCWD, a[0].c_str(), &u.handle, &mount, 0) != 0)
    return errno == EOPNOTSUPP ? unavailable("name_to_handle_at") : tell("name_to_handle_at", -1);
  const int here = ::open(".", O_RDONLY | O_DIRECTORY);
  return show_and_tell("open_by_handle_at", ::open_by_handle_at(here, &u.handle, O_RDONLY));
}

// A link that turns between a file inside and one outside while it is written through.
int race(const Arguments& a) {
  const pid_t turner = ::fork();
  if (turner == 0) {
    for (int i = 0; i < 400; ++i) {
      ::unlink("turn.new");
      if (::symlink(i % 2 == 0 ? a[0].c_str() : a[1].c_str(), "turn.new") == 0)
        ::rename("turn.new", "turn");
    }
    std::_Exit(0);
  }
  // Once more at its end, when the link leads outside.
  for (bool turning = true; turning;) {
    turning = ::waitpid(turner, nullptr, WNOHANG) == 0;
    const int fd = ::open("turn", O_WRONLY | O_APPEND);
    if (fd < 0) continue;
    if (::write(fd, "attacked\n", 9) < 0) std::_Exit(1);
    ::close(fd);
  }
  return 0;
}

// What is there besides 0, 1 and 2: directories, files, sockets of the server.
int inherited(const Arguments&) {
  for (int fd = 3; fd < 1024; ++fd) {
    struct stat status;
    if (::fstat(fd, &status) != 0) continue;
    if (S_ISDIR(status.st_mode)) {
      const int file = ::openat(fd, "canary", O_WRONLY | O_APPEND);
      if (file >= 0) write_and_tell("directory", file);
      show(::openat(fd, "secret", O_RDONLY));
    } else if (S_ISREG(status.st_mode)) {
      show(fd);
      write_and_tell("file", fd);
    } else if (S_ISSOCK(status.st_mode)) {
      write_and_tell("socket", fd);
    }
  }
  return 0;
}

// Makes a tree that is hard to remove: deep, and closed to its owner.
int deep_tree(const Arguments& a) {
  if (::chdir(a[0].c_str()) != 0) return tell("chdir", -1);
  for (int i = 0; i < 1500; ++i) {
    if (::mkdir("deep-directory", 0700) != 0 || ::chdir("deep-directory") != 0)
      return tell("mkdir", -1);
  }
  const int fd = ::open("file", O_CREAT | O_WRONLY, 0600);
  if (fd < 0 || ::chmod(".", 0) != 0) return tell("chmod", -1);
  say("made\n");
  return 0;
}

int watch(const Arguments& a) {
  const int fd = ::inotify_init1(0);
  return tell("inotify_add_watch", ::inotify_add_watch(fd, a[0].c_str(), IN_ALL_EVENTS));
}

// Until they are closed, nobody else of the user has them.
int watchers(const Arguments& a) {
  int made = 0;
  while (made < number(a[0]) && ::inotify_init1(0) >= 0) ++made;
  say("watchers " + std::to_string(made) + "\n");
  return 0;
}

int set_attribute(const Arguments& a) {
  const int result = ::setxattr(a[0].c_str(), "user.attack", "x", 1, 0);
  if (result != 0 && errno == EOPNOTSUPP) return unavailable("setxattr");
  return tell("setxattr", result);
}

// As long as it is held, whoever else opens the file waits.
int hold_lease(const Arguments& a) {
  const int fd = ::open(a[0].c_str(), O_RDONLY);
  if (fd < 0) return tell("open", -1);
  return tell("lease", ::fcntl(fd, 1024 /* F_SETLEASE */, F_WRLCK));
}

// Linux 6.17: the flags of a file by its path, without opening it.
int set_file_flags(const Arguments& a) {
  struct {
    std::uint64_t xflags;
    std::uint32_t extent_size, extents, project, cow_extent_size;
  } attributes = {0x80 /* no dump */, 0, 0, 0, 0};
  const long result =
      raw(sys_file_setattr, AT_FDCWD, a[0].c_str(), &attributes, sizeof attributes, 0);
  if (result != 0 && (errno == ENOSYS || errno == EOPNOTSUPP)) return unavailable("file_setattr");
  return tell("file_setattr", result);
}

// A copy of this program that no file system holds.
int memory_program(const Arguments& a) {
  const int from = ::open("/proc/self/exe", O_RDONLY);
  const long to = raw(SYS_memfd_create, "attack", 0U);
  if (from < 0 || to < 0) return tell("memfd_create", -1);
  char bytes[65536];
  for (ssize_t size = 0; (size = ::read(from, bytes, sizeof bytes)) > 0;)
    if (::write(static_cast<int>(to), bytes, static_cast<std::size_t>(size)) != size)
      return tell("write", -1);
  std::string name = "attack", verb = a[0], file = a[1];
  char* const argv[] = {name.data(), verb.data(), file.data(), nullptr};
  ::fexecve(static_cast<int>(to), argv, environ);
  return tell("fexecve", -1);
}

}  // namespace

Verbs file_verbs() {
  return {
      {"open-write", 1, open_write},
      {"open-read", 1, open_read},
      {"nameless", 1, nameless},
      {"reopen", 1, reopen},
      {"reopen-read", 1, reopen_read},
      {"open-below", 2, open_below},
      {"openat2-write", 1, openat2_write},
      {"open-truncate", 1, open_truncate},
      {"truncate", 1, truncate_path},
      {"rename", 3, rename_with},
      {"map-write", 1, map_write},
      {"map-read", 1, map_read},
      {"link-nameless", 2, link_nameless},
      {"by-handle", 1, by_handle},
      {"race", 2, race},
      {"inherited", 0, inherited},
      {"deep-tree", 1, deep_tree},
      {"watch", 1, watch},
      {"watchers", 1, watchers},
      {"set-attribute", 1, set_attribute},
      {"hold-lease", 1, hold_lease},
      {"set-file-flags", 1, set_file_flags},
      {"memory-program", 2, memory_program},
  };
}

}  // namespace attacks
