// What the attacks of run.py need beyond a shell: each verb tries one way out with raw system calls
// and shows what it got. Usage: codeexec-test-attack VERB [ARGUMENT...]
//
// Whether an attack got through is judged from outside where that is possible: a file that changed,
// a secret in the output, bytes at a listener, a victim that is gone. Only where all that there is
// to see is what the kernel answered, a verb prints "probe NAME RESULT ERRNO".
//
// Nothing here does harm if it succeeds: the targets come from run.py, which made them.
#include <dirent.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using Arguments = std::vector<std::string>;

// Numbers that are the same on every architecture, and that old headers lack.
constexpr long sys_pidfd_send_signal = 424;
constexpr long sys_io_uring_setup = 425;
constexpr long sys_io_uring_enter = 426;
constexpr long sys_open_tree = 428;
constexpr long sys_move_mount = 429;
constexpr long sys_fsopen = 430;
constexpr long sys_pidfd_open = 434;
constexpr long sys_clone3 = 435;
constexpr long sys_openat2 = 437;
constexpr long sys_pidfd_getfd = 438;
constexpr long sys_process_madvise = 440;
constexpr long sys_mount_setattr = 442;
constexpr long sys_quotactl_fd = 443;
constexpr long sys_landlock_create_ruleset = 444;
constexpr long sys_landlock_add_rule = 445;
constexpr long sys_landlock_restrict_self = 446;
constexpr long sys_process_mrelease = 448;
constexpr long sys_file_setattr = 469;

long word(long value) { return value; }
long word(int value) { return value; }
long word(unsigned value) { return static_cast<long>(value); }
long word(unsigned long value) { return static_cast<long>(value); }
long word(const void* value) { return static_cast<long>(reinterpret_cast<std::intptr_t>(value)); }

template <class... Values>
long raw(long number, Values... values) {
  return ::syscall(number, word(values)...);
}

void say(const std::string& text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const ssize_t size = ::write(1, text.data() + at, text.size() - at);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return;
    at += static_cast<std::size_t>(size);
  }
}

int tell(const std::string& name, long result) {
  const int error = result < 0 ? errno : 0;
  say("probe " + name + " " + std::to_string(result < 0 ? -1L : 0L) + " " + std::to_string(error) +
      "\n");
  return result < 0 ? 1 : 0;
}

// This machine has not what the attack needs.
int unavailable(const std::string& why) {
  say("unavailable: " + why + ": " + std::strerror(errno) + "\n");
  return 77;
}

int number(const std::string& text) { return std::atoi(text.c_str()); }
unsigned long address(const std::string& text) { return std::strtoul(text.c_str(), nullptr, 0); }

void show(int fd) {
  char bytes[4096];
  for (ssize_t size = 0; (size = ::read(fd, bytes, sizeof bytes)) > 0;)
    say(std::string(bytes, static_cast<std::size_t>(size)));
}

int write_and_tell(const std::string& name, int fd) {
  if (fd < 0) return tell(name, -1);
  return tell(name, ::write(fd, "attacked\n", 9));
}

int show_and_tell(const std::string& name, int fd) {
  if (fd < 0) return tell(name, -1);
  show(fd);
  return 0;
}

std::string descriptor_path(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

// Where a survivor learns that it may go: the runner makes this file.
std::string end_file;
bool ended() { return !end_file.empty() && ::access(end_file.c_str(), F_OK) == 0; }

[[noreturn]] void wait_for_the_end() {
  ::alarm(60);  // no survivor outlives the suite for long
  while (!ended()) ::poll(nullptr, 0, 20);
  std::_Exit(0);
}

// files -------------------------------------------------------------------------------------------

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

int set_attribute(const Arguments& a) {
  const int result = ::setxattr(a[0].c_str(), "user.attack", "x", 1, 0);
  if (result != 0 && errno == EOPNOTSUPP) return unavailable("setxattr");
  return tell("setxattr", result);
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

// io_uring ----------------------------------------------------------------------------------------

// The little of io_uring's ABI that is needed here; <linux/io_uring.h> is missing on old systems.
struct SubmissionOffsets {
  std::uint32_t head, tail, ring_mask, ring_entries, flags, dropped, array, reserved;
  std::uint64_t address;
};
struct CompletionOffsets {
  std::uint32_t head, tail, ring_mask, ring_entries, overflow, entries, flags, reserved;
  std::uint64_t address;
};
struct RingParameters {
  std::uint32_t sq_entries, cq_entries, flags, cpu, idle, features, wq, reserved[3];
  SubmissionOffsets sq;
  CompletionOffsets cq;
};
struct RingEntry {
  std::uint8_t opcode, flags;
  std::uint16_t priority;
  std::int32_t fd;
  std::uint64_t offset, address;
  std::uint32_t size, operation_flags;
  std::uint64_t user_data, rest[3];
};

class Ring {
 public:
  bool open() {
    RingParameters parameters;
    std::memset(&parameters, 0, sizeof parameters);
    fd_ = static_cast<int>(raw(sys_io_uring_setup, 4U, &parameters));
    if (fd_ < 0) return false;
    sq_ = map(parameters.sq.array + parameters.sq_entries * 4, 0);
    cq_ = map(parameters.cq.entries + parameters.cq_entries * 16, 0x8000000);
    entries_ = map(parameters.sq_entries * sizeof(RingEntry), 0x10000000);
    parameters_ = parameters;
    return sq_ && cq_ && entries_;
  }

  // One operation, and its result: negative is an errno.
  int run(std::uint8_t opcode, int fd, const void* memory, std::uint64_t offset, std::uint32_t size,
          std::uint32_t flags) {
    RingEntry entry;
    std::memset(&entry, 0, sizeof entry);
    entry.opcode = opcode;
    entry.fd = fd;
    entry.address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(memory));
    entry.offset = offset;
    entry.size = size;
    entry.operation_flags = flags;
    std::memcpy(entries_, &entry, sizeof entry);
    const std::uint32_t tail = at(sq_, parameters_.sq.tail);
    at(sq_, parameters_.sq.array + (tail & at(sq_, parameters_.sq.ring_mask)) * 4) = 0;
    __atomic_store_n(&at(sq_, parameters_.sq.tail), tail + 1, __ATOMIC_RELEASE);
    if (raw(sys_io_uring_enter, fd_, 1U, 1U, 1U /* wait for it */, 0L, 0L) < 0) return -errno;
    const std::uint32_t head = at(cq_, parameters_.cq.head);
    // A completion is 8 bytes of ours, the result and flags.
    const std::uint32_t place =
        parameters_.cq.entries + (head & at(cq_, parameters_.cq.ring_mask)) * 16;
    const int result = static_cast<int>(at(cq_, place + 8));
    __atomic_store_n(&at(cq_, parameters_.cq.head), head + 1, __ATOMIC_RELEASE);
    return result;
  }

 private:
  char* map(std::size_t size, long offset) const {
    void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, offset);
    return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
  }
  static std::uint32_t& at(char* memory, std::uint32_t offset) {
    return *reinterpret_cast<std::uint32_t*>(memory + offset);
  }

  int fd_ = -1;
  char* sq_ = nullptr;
  char* cq_ = nullptr;
  char* entries_ = nullptr;
  RingParameters parameters_ = {};
};

constexpr std::uint8_t ring_connect = 16, ring_openat = 18, ring_read = 22, ring_write = 23,
                       ring_socket = 45;

int ring_file(const Arguments& a, bool writing) {
  Ring ring;
  if (!ring.open()) return tell("io_uring_setup", -1);
  const int fd =
      ring.run(ring_openat, AT_FDCWD, a[0].c_str(), 0, 0, writing ? O_WRONLY | O_APPEND : O_RDONLY);
  if (fd < 0) {
    errno = -fd;
    return tell("openat", -1);
  }
  char bytes[64] = "attacked\n";
  const int size = ring.run(writing ? ring_write : ring_read, fd, bytes, ~std::uint64_t{0},
                            writing ? 9 : sizeof bytes, 0);
  if (size > 0 && !writing) say(std::string(bytes, static_cast<std::size_t>(size)));
  return size > 0 ? 0 : 1;
}
int ring_write_file(const Arguments& a) { return ring_file(a, true); }
int ring_read_file(const Arguments& a) { return ring_file(a, false); }

sockaddr_in loopback4(const std::string& port) {
  sockaddr_in to;
  std::memset(&to, 0, sizeof to);
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(number(port)));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return to;
}

int ring_tcp(const Arguments& a) {
  Ring ring;
  if (!ring.open()) return tell("io_uring_setup", -1);
  const int fd = ring.run(ring_socket, AF_INET, nullptr, SOCK_STREAM, 0, 0);
  errno = -fd;
  if (fd < 0) return errno == EINVAL ? unavailable("IORING_OP_SOCKET") : tell("socket", -1);
  const sockaddr_in to = loopback4(a[0]);
  const int connected = ring.run(ring_connect, fd, &to, sizeof to, 0, 0);
  errno = -connected;
  if (connected < 0) return tell("connect", -1);
  ring.run(ring_write, fd, "attacked\n", ~std::uint64_t{0}, 9, 0);
  return 0;
}

// network -----------------------------------------------------------------------------------------

template <class Address>
int send_to(const std::string& name, int fd, const Address& to, socklen_t size) {
  if (fd < 0) return tell(name + "-socket", -1);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&to), size) != 0)
    return tell(name + "-connect", -1);
  return tell(name, ::send(fd, "attacked\n", 9, MSG_NOSIGNAL));
}

int inet4(const std::string& name, const Arguments& a, int type, int protocol) {
  return send_to(name, ::socket(AF_INET, type, protocol), loopback4(a[0]), sizeof(sockaddr_in));
}
int inet6(const std::string& name, const Arguments& a, int type) {
  sockaddr_in6 to;
  std::memset(&to, 0, sizeof to);
  to.sin6_family = AF_INET6;
  to.sin6_port = htons(static_cast<std::uint16_t>(number(a[0])));
  to.sin6_addr = in6addr_loopback;
  return send_to(name, ::socket(AF_INET6, type, 0), to, sizeof to);
}
int tcp(const Arguments& a) { return inet4("tcp", a, SOCK_STREAM, 0); }
int tcp6(const Arguments& a) { return inet6("tcp6", a, SOCK_STREAM); }
int udp(const Arguments& a) { return inet4("udp", a, SOCK_DGRAM, 0); }
int udp6(const Arguments& a) { return inet6("udp6", a, SOCK_DGRAM); }
int mptcp(const Arguments& a) { return inet4("mptcp", a, SOCK_STREAM, 262); }

int fast_open(const Arguments& a) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return tell("socket", -1);
  const sockaddr_in to = loopback4(a[0]);
  return tell("fast_open", ::sendto(fd, "attacked\n", 9, MSG_FASTOPEN | MSG_NOSIGNAL,
                                    reinterpret_cast<const sockaddr*>(&to), sizeof to));
}

// A question to a name server, put together by hand.
int dns(const Arguments& a) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0) return tell("socket", -1);
  const sockaddr_in to = loopback4(a[0]);
  const char question[] =
      "\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x08"
      "attacked"
      "\x04"
      "test\0\0\x01\0\x01";
  return tell("dns", ::sendto(fd, question, sizeof question - 1, 0,
                              reinterpret_cast<const sockaddr*>(&to), sizeof to));
}

int listen_tcp(const Arguments&) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return tell("socket", -1);
  const sockaddr_in to = loopback4("0");
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) return tell("bind", -1);
  return tell("listen", ::listen(fd, 1));
}

// Server and client in one command.
int own_loopback(const Arguments&) {
  const int server = ::socket(AF_INET, SOCK_STREAM, 0);
  if (server < 0) return tell("socket", -1);
  sockaddr_in to = loopback4("0");
  socklen_t size = sizeof to;
  if (::bind(server, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 ||
      ::listen(server, 1) != 0 ||
      ::getsockname(server, reinterpret_cast<sockaddr*>(&to), &size) != 0)
    return tell("bind", -1);
  const int client = ::socket(AF_INET, SOCK_STREAM, 0);
  return tell("connect", ::connect(client, reinterpret_cast<const sockaddr*>(&to), sizeof to));
}

int open_socket(const Arguments& a) {
  return tell("socket", ::socket(number(a[0]), number(a[1]), number(a[2])));
}

// Every family and type, but for pairs: none of them can be made without a network.
int all_sockets(const Arguments&) {
  int made = 0;
  for (int family = 0; family < 64; ++family) {
    for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET, SOCK_RDM}) {
      const int fd = ::socket(family, type, 0);
      if (fd < 0) continue;
      ++made;
      ::close(fd);
    }
  }
  say("sockets " + std::to_string(made) + "\n");
  return 0;
}

socklen_t unix_address(const std::string& path, bool abstract, sockaddr_un& to) {
  std::memset(&to, 0, sizeof to);
  to.sun_family = AF_UNIX;
  char* start = to.sun_path + (abstract ? 1 : 0);
  std::memcpy(start, path.data(), std::min(path.size(), sizeof to.sun_path - 2));
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
}

int unix_send(const Arguments& a, int type, bool abstract) {
  sockaddr_un to;
  const socklen_t size = unix_address(a[0], abstract, to);
  return send_to("unix", ::socket(AF_UNIX, type, 0), to, size);
}
int unix_stream(const Arguments& a) { return unix_send(a, SOCK_STREAM, false); }
int unix_datagram(const Arguments& a) { return unix_send(a, SOCK_DGRAM, false); }
int abstract_stream(const Arguments& a) { return unix_send(a, SOCK_STREAM, true); }
int abstract_datagram(const Arguments& a) { return unix_send(a, SOCK_DGRAM, true); }

int unix_bind(const Arguments& a) {
  sockaddr_un to;
  const socklen_t size = unix_address(a[0], false, to);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  if (fd < 0) return tell("socket", -1);
  return tell("bind", ::bind(fd, reinterpret_cast<const sockaddr*>(&to), size));
}

// A half of a pair is a socket like any: a datagram one can be pointed anywhere.
int pair_send(const Arguments& a) {
  const int type = number(a[1]);
  int pair[2];
  if (::socketpair(AF_UNIX, type, 0, pair) != 0) return tell("socketpair", -1);
  sockaddr_un to;
  const socklen_t size = unix_address(a[0], false, to);
  const auto* address = reinterpret_cast<const sockaddr*>(&to);
  if (::sendto(pair[0], "attacked\n", 9, MSG_NOSIGNAL, address, size) == 9) return 0;
  iovec bytes = {const_cast<char*>("attacked\n"), 9};
  msghdr message;
  std::memset(&message, 0, sizeof message);
  message.msg_name = &to;
  message.msg_namelen = size;
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  if (::sendmsg(pair[0], &message, MSG_NOSIGNAL) == 9) return 0;
  ::close(pair[1]);
  if (::connect(pair[0], address, size) != 0) return tell("connect", -1);
  return tell("send", ::send(pair[0], "attacked\n", 9, MSG_NOSIGNAL));
}

int pair_in_order(const Arguments&) {
  int pair[2];
  char bytes[8];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return tell("socketpair", -1);
  if (::write(pair[0], "x", 1) != 1) return tell("write", -1);
  return tell("read", ::read(pair[1], bytes, 1));
}

// The system calls of i386, which have other numbers: 102 is socketcall, 20 getpid.
int i386(const Arguments& a) {
#if defined(__x86_64__)
  void* memory =
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  if (memory == MAP_FAILED) return tell("mmap", -1);
  auto* low = static_cast<std::uint32_t*>(memory);
  const auto at = [low](int index) {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(low + index));
  };
  const auto call = [](long nr, long first, long second) {
    long result = 0;
    // The 32-bit entry may not keep r8 to r11.
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(nr), "b"(first), "c"(second)
                     : "memory", "r8", "r9", "r10", "r11");
    return static_cast<int>(result);
  };
  low[0] = AF_INET;
  low[1] = SOCK_STREAM;
  low[2] = 0;
  const int fd = call(102, 1, at(0));
  errno = -fd;
  if (fd < 0) return tell("socketcall", -1);
  const sockaddr_in to = loopback4(a[0]);
  std::memcpy(low + 8, &to, sizeof to);
  low[0] = static_cast<std::uint32_t>(fd);
  low[1] = at(8);
  low[2] = sizeof to;
  const int connected = call(102, 3, at(0));
  errno = -connected;
  return tell("socketcall", connected < 0 ? -1 : ::write(fd, "attacked\n", 9));
#else
  (void)a;
  errno = ENOSYS;
  return unavailable("int 0x80");
#endif
}

int x32(const Arguments&) {
#if defined(__x86_64__)
  const long pid = raw(0x40000000L + SYS_getpid);
  if (pid < 0 && errno == ENOSYS) return unavailable("x32");
  return tell("x32", pid);
#else
  errno = ENOSYS;
  return unavailable("x32");
#endif
}

// other processes ---------------------------------------------------------------------------------

// Who stands between us and the runner, outermost first: the server and its supervisor, but not the
// shells of the command itself.
int ancestors(const Arguments& a) {
  const int end = number(a[0]);
  std::string found;
  int pid = ::getppid();
  for (int i = 0; i < 20 && pid > 1 && pid != end; ++i) {
    const int fd = ::open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY);
    char text[1024];
    const ssize_t size = fd < 0 ? -1 : ::read(fd, text, sizeof text - 1);
    ::close(fd);
    if (size <= 0) break;
    text[size] = 0;
    const char* rest = std::strrchr(text, ')');
    if (!rest) break;
    if (!std::strstr(text, "(sh)")) found = std::to_string(pid) + "\n" + found;
    pid = std::atoi(rest + 4);
  }
  say(found);
  return 0;
}

int send_signal(const Arguments& a) {
  const std::string& how = a[0];
  const int pid = number(a[1]);
  const int signal = number(a[2]);
  siginfo_t info;
  std::memset(&info, 0, sizeof info);
  info.si_code = SI_QUEUE;
  info.si_pid = ::getpid();
  info.si_uid = ::getuid();
  long result = -1;
  if (how == "kill") result = ::kill(pid, signal);
  if (how == "group") result = ::kill(-pid, signal);
  if (how == "tkill") result = raw(SYS_tkill, pid, signal);
  if (how == "tgkill") result = raw(SYS_tgkill, pid, pid, signal);
  if (how == "queue") result = raw(SYS_rt_sigqueueinfo, pid, signal, &info);
  if (how == "tgqueue") result = raw(SYS_rt_tgsigqueueinfo, pid, pid, signal, &info);
  if (how == "pidfd") {
    const long fd = raw(sys_pidfd_open, pid, 0U);
    if (fd < 0) return tell("pidfd_open", -1);
    result = raw(sys_pidfd_send_signal, fd, signal, 0L, 0U);
  }
  return tell(how, result);
}

// SIGIO, SIGURG and others go to whom F_SETOWN names.
int signal_by_owner(const Arguments& a) {
  const int pid = number(a[1]);
  int pair[2];
  if (a[0] == "pipe") {
    if (::pipe(pair) != 0) return tell("pipe", -1);
  } else if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) {
    return tell("socketpair", -1);
  }
  if (::fcntl(pair[0], F_SETOWN, pid) != 0) return tell("F_SETOWN", -1);
  ::fcntl(pair[0], F_SETSIG, SIGTERM);
  if (::fcntl(pair[0], F_SETFL, O_ASYNC | O_NONBLOCK) != 0) return tell("O_ASYNC", -1);
  return tell("write", ::write(pair[1], "x", 1));
}

int lease_signal(const Arguments& a) {
  const int fd = ::open("lease", O_CREAT | O_RDONLY, 0600);
  if (::fcntl(fd, F_SETLEASE, F_WRLCK) != 0) return tell("F_SETLEASE", -1);
  ::fcntl(fd, F_SETSIG, SIGTERM);
  if (::fcntl(fd, F_SETOWN, number(a[0])) != 0) return tell("F_SETOWN", -1);
  return tell("break", ::open("lease", O_RDONLY | O_NONBLOCK) < 0 && errno != EWOULDBLOCK ? -1 : 0);
}

int trace(const Arguments& a) {
  const int pid = number(a[0]);
  const bool seize = a[2] == "seize";
  if (raw(SYS_ptrace, seize ? PTRACE_SEIZE : PTRACE_ATTACH, pid, 0L, 0L) != 0)
    return tell("ptrace", -1);
  if (seize && raw(SYS_ptrace, PTRACE_INTERRUPT, pid, 0L, 0L) != 0) return tell("interrupt", -1);
  ::waitpid(pid, nullptr, __WALL);
  const long result = raw(SYS_ptrace, PTRACE_POKEDATA, pid, address(a[1]), 0x4b4341545441L);
  raw(SYS_ptrace, PTRACE_DETACH, pid, 0L, 0L);
  return tell("poke", result);
}

int memory_of(const Arguments& a, bool writing, bool by_file) {
  const pid_t pid = number(a[0]);
  char bytes[64] = "ATTACK";
  const std::size_t length = writing ? 6 : sizeof bytes;
  ssize_t size = -1;
  if (by_file) {
    const int fd =
        ::open(("/proc/" + std::to_string(pid) + "/mem").c_str(), writing ? O_RDWR : O_RDONLY);
    if (fd < 0) return tell("open", -1);
    const off_t offset = static_cast<off_t>(address(a[1]));
    size = writing ? ::pwrite(fd, bytes, length, offset) : ::pread(fd, bytes, length, offset);
  } else {
    iovec mine = {bytes, length};
    // NOLINTNEXTLINE: an address in another process
    iovec theirs = {reinterpret_cast<void*>(address(a[1])), length};
    size = writing ? ::process_vm_writev(pid, &mine, 1, &theirs, 1, 0)
                   : ::process_vm_readv(pid, &mine, 1, &theirs, 1, 0);
  }
  if (size > 0 && !writing) say(std::string(bytes, static_cast<std::size_t>(size)));
  return tell("memory", size);
}
int memory_read(const Arguments& a) { return memory_of(a, false, false); }
int memory_write(const Arguments& a) { return memory_of(a, true, false); }
int memory_file_read(const Arguments& a) { return memory_of(a, false, true); }
int memory_file_write(const Arguments& a) { return memory_of(a, true, true); }

// Every readable region that is private to it: what its heap and stack hold.
int memory_dump(const Arguments& a) {
  std::FILE* maps = std::fopen(("/proc/" + a[0] + "/maps").c_str(), "r");
  const int memory = ::open(("/proc/" + a[0] + "/mem").c_str(), O_RDONLY);
  if (!maps || memory < 0) return tell("open", -1);
  char line[512];
  std::string bytes(1 << 16, 0);
  while (std::fgets(line, sizeof line, maps)) {
    unsigned long begin = 0, end = 0;
    char rights[8];
    if (std::sscanf(line, "%lx-%lx %7s", &begin, &end, rights) != 3 || rights[1] != 'w') continue;
    end = std::min(end, begin + (1UL << 24));
    for (; begin < end; begin += bytes.size()) {
      const ssize_t size = ::pread(memory, bytes.data(), std::min(bytes.size(), end - begin),
                                   static_cast<off_t>(begin));
      if (size <= 0) break;
      const std::string found(bytes.data(), static_cast<std::size_t>(size));
      const std::size_t at = found.find("SECRET=");
      if (at != std::string::npos) say(found.substr(at, 64) + "\n");
    }
  }
  return 0;
}

int take_descriptor(const Arguments& a) {
  const long pidfd = raw(sys_pidfd_open, number(a[0]), 0U);
  if (pidfd < 0) return tell("pidfd_open", -1);
  const long fd = raw(sys_pidfd_getfd, pidfd, number(a[1]), 0U);
  if (fd < 0) return tell("pidfd_getfd", -1);
  ::lseek(static_cast<int>(fd), 0, SEEK_SET);
  return show_and_tell("pidfd_getfd", static_cast<int>(fd));
}

int compare(const Arguments& a) {
  return tell("kcmp", raw(SYS_kcmp, ::getpid(), number(a[0]), 0, 0L, 0L));
}

int set_limit(const Arguments& a) {
  const rlimit limit = {77, 77};
  return tell("prlimit", ::prlimit(number(a[0]), RLIMIT_NOFILE, &limit, nullptr));
}

int get_limit(const Arguments& a) {
  rlimit limit;
  return tell("prlimit", ::prlimit(number(a[0]), RLIMIT_NOFILE, nullptr, &limit));
}

int set_affinity(const Arguments& a) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(0, &set);
  return tell("sched_setaffinity", ::sched_setaffinity(number(a[0]), sizeof set, &set));
}

int set_priority(const Arguments& a) {
  return tell("setpriority", ::setpriority(PRIO_PROCESS, static_cast<id_t>(number(a[0])), 7));
}

int advise(const Arguments& a) {
  const long pidfd = raw(sys_pidfd_open, number(a[0]), 0U);
  if (pidfd < 0) return tell("pidfd_open", -1);
  // NOLINTNEXTLINE: an address in another process
  iovec theirs = {reinterpret_cast<void*>(address(a[1]) & ~4095UL), 4096};
  return tell("process_madvise", raw(sys_process_madvise, pidfd, &theirs, 1UL, 20 /* cold */, 0U));
}

int perf_of(const Arguments& a) {
  perf_event_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.size = sizeof attributes;
  attributes.config = PERF_COUNT_SW_TASK_CLOCK;
  attributes.exclude_kernel = 1;
  return tell("perf_event_open", raw(SYS_perf_event_open, &attributes, number(a[0]), -1, -1, 0UL));
}

int enter_namespace(const Arguments& a) {
  const int fd = ::open(("/proc/" + a[0] + "/ns/" + a[1]).c_str(), O_RDONLY);
  if (fd < 0) return tell("open", -1);
  return tell("setns", ::setns(fd, 0));
}

int enter_by_pidfd(const Arguments& a) {
  const long fd = raw(sys_pidfd_open, number(a[0]), 0U);
  if (fd < 0) return tell("pidfd_open", -1);
  return tell("setns", ::setns(static_cast<int>(fd), CLONE_NEWNET));
}

int shared_read(const Arguments& a) {
  const void* memory = ::shmat(number(a[0]), nullptr, SHM_RDONLY);
  if (memory == reinterpret_cast<const void*>(-1)) return tell("shmat", -1);
  say(std::string(static_cast<const char*>(memory), 64));
  return 0;
}

int queue_read(const Arguments& a) {
  const mqd_t queue = ::mq_open(a[0].c_str(), O_RDONLY | O_NONBLOCK);
  if (queue < 0) return tell("mq_open", -1);
  char bytes[8192];
  const ssize_t size = ::mq_receive(queue, bytes, sizeof bytes, nullptr);
  if (size > 0) say(std::string(bytes, static_cast<std::size_t>(size)));
  return tell("mq_receive", size);
}

// What the runner's victims are made with: a segment, or a queue, that holds a secret.
int make_shared(const Arguments& a) {
  const int id = ::shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
  if (id < 0) return unavailable("shmget");
  void* memory = ::shmat(id, nullptr, 0);
  if (memory == reinterpret_cast<void*>(-1)) return unavailable("shmat");
  std::memcpy(memory, a[0].c_str(), std::min<std::size_t>(a[0].size() + 1, 4096));
  say(std::to_string(id) + "\n");
  return 0;
}
int remove_shared(const Arguments& a) { return ::shmctl(number(a[0]), IPC_RMID, nullptr); }
int make_queue(const Arguments& a) {
  const mqd_t queue = ::mq_open(a[0].c_str(), O_CREAT | O_RDWR, 0600, nullptr);
  if (queue < 0) return unavailable("mq_open");
  return ::mq_send(queue, a[1].c_str(), a[1].size(), 0);
}
int remove_queue(const Arguments& a) { return ::mq_unlink(a[0].c_str()); }

// privilege ---------------------------------------------------------------------------------------

int identity(const Arguments&) {
  say("euid " + std::to_string(::geteuid()) + "\n");
  std::FILE* file = std::fopen("/proc/self/status", "r");
  char line[256];
  while (file && std::fgets(line, sizeof line, file))
    if (std::strncmp(line, "Cap", 3) == 0 || std::strncmp(line, "NoNewPrivs", 10) == 0) say(line);
  return 0;
}

int raise_capabilities(const Arguments&) {
  struct {
    std::uint32_t version;
    int pid;
  } header = {0x20080522, 0};
  struct {
    std::uint32_t effective, permitted, inheritable;
  } data[2] = {{~0U, ~0U, ~0U}, {~0U, ~0U, ~0U}};
  // All at once is more than the permitted set holds for most, so one after another, too.
  long result = raw(SYS_capset, &header, data);
  for (unsigned bit = 0; bit < 32 && result != 0; ++bit) {
    data[0] = {1U << bit, 1U << bit, 0};
    data[1] = {0, 0, 0};
    result = raw(SYS_capset, &header, data);
  }
  return tell("capset", result);
}

int open_terminal(int& slave) {
  const int master = ::open("/dev/ptmx", O_RDWR | O_NOCTTY);
  if (master < 0) return -1;
  int unlock = 0, index = 0;
  if (::ioctl(master, TIOCSPTLCK, &unlock) != 0 || ::ioctl(master, TIOCGPTN, &index) != 0)
    return -1;
  slave = ::open(("/dev/pts/" + std::to_string(index)).c_str(), O_RDWR | O_NOCTTY);
  return slave < 0 ? -1 : master;
}

// Characters pushed into a terminal are what its shell reads next. The terminal is our own.
int push_characters(const Arguments& a) {
  const pid_t child = ::fork();
  if (child == 0) {
    int slave = -1;
    ::setsid();
    if (open_terminal(slave) < 0) std::_Exit(unavailable("/dev/ptmx"));
    ::ioctl(slave, TIOCSCTTY, 0);
    const unsigned long request = address(a[0]);
    char character = request == 0x541c ? 2 : 'x';
    std::_Exit(tell("ioctl", raw(SYS_ioctl, slave, request, &character)));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

long clone_probe(unsigned long flags) {
  const long pid = raw(SYS_clone, flags | static_cast<unsigned long>(SIGCHLD), 0L, 0L, 0L, 0L);
  if (pid == 0) std::_Exit(0);
  if (pid > 0) ::waitpid(static_cast<pid_t>(pid), nullptr, 0);
  return pid;
}

long clone3_probe(std::uint64_t flags) {
  std::uint64_t arguments[8] = {flags, 0, 0, 0, SIGCHLD, 0, 0, 0};
  const long pid = raw(sys_clone3, arguments, sizeof arguments);
  if (pid == 0) std::_Exit(0);
  if (pid > 0) ::waitpid(static_cast<pid_t>(pid), nullptr, 0);
  return pid;
}

// One system call each, with arguments that are wrong wherever a success could change anything.
// In a process of its own, whose namespaces and root directory nobody needs.
long call(const std::string& name) {
  if (name == "unshare-user") return raw(SYS_unshare, CLONE_NEWUSER);
  if (name == "unshare-mount") return raw(SYS_unshare, CLONE_NEWNS);
  if (name == "unshare-net") return raw(SYS_unshare, CLONE_NEWNET);
  if (name == "unshare-pid") return raw(SYS_unshare, CLONE_NEWPID);
  if (name == "unshare-ipc") return raw(SYS_unshare, CLONE_NEWIPC);
  if (name == "unshare-uts") return raw(SYS_unshare, CLONE_NEWUTS);
  if (name == "unshare-cgroup") return raw(SYS_unshare, CLONE_NEWCGROUP);
  if (name == "unshare-time") return raw(SYS_unshare, 0x80);
  if (name == "unshare-user-high") return raw(SYS_unshare, 0x7f00000000L | CLONE_NEWUSER);
  if (name == "clone-user") return clone_probe(CLONE_NEWUSER);
  if (name == "clone-user-net") return clone_probe(CLONE_NEWUSER | CLONE_NEWNET);
  if (name == "clone-pid") return clone_probe(CLONE_NEWPID);
  if (name == "clone3-user") return clone3_probe(CLONE_NEWUSER);
  if (name == "clone3-net") return clone3_probe(CLONE_NEWNET);
  if (name == "chroot") return raw(SYS_chroot, ".");
  if (name == "pivot_root") return raw(SYS_pivot_root, "no-such-directory", "no-such-directory");
  if (name == "mount") return raw(SYS_mount, "none", ".", "no-such-file-system", 0L, 0L);
  if (name == "umount2") return raw(SYS_umount2, ".", MNT_DETACH);
  if (name == "fsopen") return raw(sys_fsopen, "tmpfs", 0U);
  if (name == "open_tree") return raw(sys_open_tree, AT_FDCWD, ".", 1U /* a copy */);
  if (name == "move_mount") return raw(sys_move_mount, -1, "", -1, "", 0x44U);
  if (name == "mount_setattr") return raw(sys_mount_setattr, -1, "", 0x1000U, "", 0UL);
  if (name == "swapon") return raw(SYS_swapon, "attack.sh", 0);
  if (name == "swapoff") return raw(SYS_swapoff, "attack.sh");
  if (name == "reboot") return raw(SYS_reboot, 1, 2, 3, 0L);
  if (name == "kexec_load") return raw(SYS_kexec_load, 0UL, 0UL, 0L, 0xffffUL);
  if (name == "init_module") return raw(SYS_init_module, "x", 1UL, "");
  if (name == "finit_module") return raw(SYS_finit_module, -1, "", 0);
  if (name == "delete_module") return raw(SYS_delete_module, "no_such_module", O_NONBLOCK);
  if (name == "settimeofday") {
    const timeval time = {0, 2000000};
    return raw(SYS_settimeofday, &time, 0L);
  }
  if (name == "clock_settime") {
    const timespec time = {0, 0};
    return raw(SYS_clock_settime, CLOCK_MONOTONIC, &time);
  }
  if (name == "sethostname") return raw(SYS_sethostname, "x", -1);
  if (name == "setdomainname") return raw(SYS_setdomainname, "x", -1);
  if (name == "syslog") return raw(SYS_syslog, 3 /* read all */, "", 0);
  if (name == "acct") return raw(SYS_acct, "no-such-file");
  if (name == "quotactl") return raw(SYS_quotactl, 0x7fff0000, "no-such-device", 0, 0L);
  if (name == "quotactl_fd") return raw(sys_quotactl_fd, -1, 0U, 0, 0L);
  if (name == "add_key") return raw(SYS_add_key, "user", "codeexec-attack", "x", 1UL, -3);
  if (name == "request_key") return raw(SYS_request_key, "user", "codeexec-attack", 0L, -3);
  if (name == "keyctl") return raw(SYS_keyctl, 0 /* get id */, -3, 1);
  if (name == "io_uring_setup") {
    RingParameters parameters;
    std::memset(&parameters, 0, sizeof parameters);
    return raw(sys_io_uring_setup, 2U, &parameters);
  }
  if (name == "bpf") {
    std::uint32_t map[32] = {2 /* array */, 4, 4, 1};
    return raw(SYS_bpf, 0 /* create a map */, map, sizeof map);
  }
  if (name == "userfaultfd") return raw(SYS_userfaultfd, 1 /* user mode only */);
  if (name == "fanotify_init") return raw(SYS_fanotify_init, 0x200 /* ids */, O_RDONLY);
  if (name == "process_mrelease") return raw(sys_process_mrelease, -1, 0U);
  if (name == "setuid") return raw(SYS_setuid, 54321);
  if (name == "setgid") return raw(SYS_setgid, 54321);
  if (name == "setgroups") {
    const gid_t group = 54321;
    return raw(SYS_setgroups, 1, &group);
  }
  if (name == "chown") return ::chown("attack.sh", 54321, 54321);
  if (name == "memlock") {
    const rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    return ::setrlimit(RLIMIT_MEMLOCK, &limit);
  }
  if (name == "nice") return ::setpriority(PRIO_PROCESS, 0, -5);
  if (name == "realtime") {
    sched_param parameter = {};
    parameter.sched_priority = 1;
    return ::sched_setscheduler(0, SCHED_FIFO, &parameter);
  }
  if (name == "ambient") return ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 1, 0, 0);
  if (name == "securebits") return ::prctl(PR_SET_SECUREBITS, 0, 0, 0, 0);
#if defined(__x86_64__)
  if (name == "ioperm") return raw(SYS_ioperm, 0x80UL, 1UL, 1);
  if (name == "iopl") return raw(SYS_iopl, 3U);
  if (name == "modify_ldt") {
    char table[16];
    return raw(SYS_modify_ldt, 0, table, sizeof table);
  }
#endif
  errno = ENOSYS;
  return -1;
}

int probe(const Arguments& a) {
  const pid_t child = ::fork();
  if (child == 0) std::_Exit(tell(a[0], call(a[0])));
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

// A second filter that allows everything cannot weaken the first.
int filter_again(const Arguments& a) {
  sock_filter allow = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
  const sock_fprog program = {1, &allow};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0U, &program) != 0)
    say("the filter was not installed\n");
  return probe(a);
}

// Nor can a second ruleset that grants everything.
int grant_again(const Arguments& a) {
  const std::uint64_t handled[1] = {0x7fff};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const long ruleset = raw(sys_landlock_create_ruleset, handled, sizeof handled, 0U);
  struct {
    std::uint64_t access;
    std::int32_t fd;
  } __attribute__((packed)) grant = {0x7fff, ::open("/", O_PATH)};
  if (ruleset >= 0) raw(sys_landlock_add_rule, ruleset, 1, &grant, 0U);
  if (ruleset >= 0) raw(sys_landlock_restrict_self, ruleset, 0U);
  return write_and_tell("open", ::open(a[0].c_str(), O_WRONLY | O_APPEND));
}

// limits ------------------------------------------------------------------------------------------

// That many processes at once, as far as they can be had.
int processes(const Arguments& a) {
  std::vector<pid_t> made;
  for (int i = 0; i < number(a[0]); ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) wait_for_the_end();
    if (pid < 0) break;
    made.push_back(pid);
  }
  say("processes " + std::to_string(made.size()) + "\n");
  for (const pid_t pid : made) ::kill(pid, SIGKILL);
  for (const pid_t pid : made) ::waitpid(pid, nullptr, 0);
  return 0;
}

bool fill(std::size_t megabytes) {
  const std::size_t size = megabytes << 20;
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  auto* bytes = static_cast<volatile char*>(memory);
  for (std::size_t at = 0; at < size; at += 4096) bytes[at] = 1;
  return true;
}

int memory(const Arguments& a) {
  if (!fill(static_cast<std::size_t>(number(a[0])))) return tell("mmap", -1);
  say("filled\n");
  return 0;
}

// The memory of many small processes.
int memory_of_many(const Arguments& a) {
  int ready[2], go[2];
  if (::pipe(ready) != 0 || ::pipe(go) != 0) return tell("pipe", -1);
  const int count = number(a[0]);
  for (int i = 0; i < count; ++i) {
    const pid_t pid = ::fork();
    if (pid < 0) return tell("fork", -1);
    if (pid > 0) continue;
    ::close(go[1]);
    if (!fill(static_cast<std::size_t>(number(a[1])))) std::_Exit(1);
    char byte = 0;
    if (::write(ready[1], "x", 1) == 1 && ::read(go[0], &byte, 1) != 0) std::_Exit(1);
    std::_Exit(0);
  }
  ::close(ready[1]);
  ::alarm(2);  // one that was killed is not heard of
  int filled = 0;
  for (char byte = 0; filled < count && ::read(ready[0], &byte, 1) == 1;) ++filled;
  say("filled " + std::to_string(filled) + "\n");
  return 0;
}

int reserve(const Arguments& a) {
  const std::size_t size = static_cast<std::size_t>(number(a[0])) << 20;
  void* memory =
      ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return tell("mmap", memory == MAP_FAILED ? -1 : 0);
}

// Works for that many milliseconds of processor time.
int spin(const Arguments& a) {
  const long wanted = number(a[0]);
  for (;;) {
    timespec used;
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    if (used.tv_sec * 1000 + used.tv_nsec / 1000000 >= wanted) break;
  }
  say("spun\n");
  return 0;
}

int descriptors(const Arguments& a) {
  int count = 0;
  while (count < number(a[0]) && ::open("/dev/null", O_RDONLY) >= 0) ++count;
  say("descriptors " + std::to_string(count) + "\n");
  return 0;
}

int big_file(const Arguments& a) {
  ::signal(SIGXFSZ, SIG_IGN);
  const int fd = ::open("big", O_CREAT | O_WRONLY, 0600);
  const std::string block(1 << 20, 'x');
  for (int i = 0; i < number(a[0]); ++i)
    if (::write(fd, block.data(), block.size()) != static_cast<ssize_t>(block.size()))
      return tell("write", -1);
  say("written\n");
  return 0;
}

// Many files, then time for whoever watches the disk.
int many_files(const Arguments& a) {
  const std::string block(1 << 20, 'x');
  for (int i = 0; i < number(a[0]); ++i) {
    const int fd = ::open(("f" + std::to_string(i)).c_str(), O_CREAT | O_WRONLY, 0600);
    if (::write(fd, block.data(), block.size()) < 0) return tell("write", -1);
    ::close(fd);
  }
  ::sync();
  ::poll(nullptr, 0, number(a[1]));
  say("written\n");
  return 0;
}

int raise_limit(const Arguments& a) {
  rlimit limit;
  const int which = number(a[0]);
  if (::getrlimit(static_cast<__rlimit_resource>(which), &limit) != 0) return tell("getrlimit", -1);
  say("limit " + std::to_string(static_cast<long>(limit.rlim_max)) + "\n");
  limit.rlim_cur = limit.rlim_max = limit.rlim_max + 1;
  return tell("setrlimit", ::setrlimit(static_cast<__rlimit_resource>(which), &limit));
}

// survival ----------------------------------------------------------------------------------------

// Whoever has the file locked is alive: the lock goes when the last process with the descriptor has
// gone. The file gets the pid as well.
int take_hold(const std::string& file) {
  end_file = file.substr(0, file.rfind('/')) + "/end";
  const int fd = ::open(file.c_str(), O_CREAT | O_RDWR | O_APPEND, 0600);
  if (fd < 0 || ::flock(fd, LOCK_SH) != 0) std::_Exit(tell("hold", -1));
  const std::string line = std::to_string(::getpid()) + "\n";
  if (::write(fd, line.data(), line.size()) < 0) std::_Exit(1);
  return fd;
}

void close_streams() {
  const int null = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) ::dup2(null, fd);
}

[[noreturn]] void run_again(const char* verb, const std::string& file) {
  std::string program = "attack", first = verb, second = file;
  char* const argv[] = {program.data(), first.data(), second.data(), nullptr};
  char* const nothing[] = {nullptr};
  ::execve("/proc/self/exe", argv, nothing);
  std::_Exit(1);
}

int hold(const Arguments& a) {
  for (std::size_t i = 1; i < a.size(); ++i) {
    if (a[i] == "ignore")
      for (const int signal : {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGCONT})
        ::signal(signal, SIG_IGN);
    if (a[i] == "session") ::setsid();
    if (a[i] == "group") ::setpgid(0, 0);
    if (a[i] == "quiet") close_streams();
  }
  take_hold(a[0]);
  if (a.back() == "stop") ::raise(SIGSTOP);
  wait_for_the_end();
}

// A daemon as the book has it: two forks, a session, no streams, no directory.
int daemon_of_two_forks(const Arguments& a) {
  if (::fork() != 0) return 0;
  ::setsid();
  if (::fork() != 0) std::_Exit(0);
  close_streams();
  take_hold(a[0]);
  if (::chdir("/") != 0) std::_Exit(1);
  wait_for_the_end();
}

// And one that has nothing left by which it could be recognised: no variables, another name.
int bare_daemon(const Arguments& a) {
  if (::fork() != 0) return 0;
  ::setsid();
  if (::fork() != 0) std::_Exit(0);
  close_streams();
  run_again("bare", a[0]);
}
int bare(const Arguments& a) {
  ::prctl(PR_SET_NAME, "kworker/u4:2", 0, 0, 0);
  ::setsid();
  take_hold(a[0]);
  wait_for_the_end();
}

// Each one makes the next and ends: whoever kills by pid comes too late.
[[noreturn]] void go_on(int limit) {
  for (int i = 0; i < limit && !ended(); ++i) {
    const pid_t pid = ::fork();
    if (pid > 0) std::_Exit(0);
    if (pid < 0) ::poll(nullptr, 0, 1);
    if (i % 7 == 0) ::setsid();
  }
  wait_for_the_end();
}
int chain(const Arguments& a) {
  if (::fork() != 0) return 0;
  take_hold(a[0]);
  close_streams();
  go_on(3000);
}
// Several of them at once.
int many_chains(const Arguments& a) {
  take_hold(a[0]);
  for (int i = 0; i < 4; ++i) {
    if (::fork() != 0) continue;
    close_streams();
    go_on(2000);
  }
  return 0;
}

// In our memory, but no thread of ours.
alignas(16) char stack[65536];
int same_memory(const Arguments& a) {
  static std::string file;
  file = a[0];
  const auto body = [](void*) {
    ::setsid();
    take_hold(file);
    wait_for_the_end();
    return 0;
  };
  const int pid = ::clone(body, stack + sizeof stack, CLONE_VM | SIGCHLD, nullptr);
  if (pid < 0) return tell("clone", -1);
  while (::access(file.c_str(), F_OK) != 0) ::sched_yield();
  std::_Exit(0);
}

// A child of our parent, and not of us; without a signal to it when it ends.
int sibling(const Arguments& a) {
  const long pid = raw(SYS_clone, CLONE_PARENT, 0L, 0L, 0L, 0L);
  if (pid != 0) return pid < 0 ? tell("clone", -1) : 0;
  ::setsid();
  take_hold(a[0]);
  wait_for_the_end();
}

// Orphans come to us instead of to whoever waits for them above.
int adopter(const Arguments& a) {
  if (::fork() != 0) return 0;
  ::setsid();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  if (::fork() == 0) {
    if (::fork() != 0) std::_Exit(0);
    ::setsid();
    take_hold(a[0] + ".2");
    wait_for_the_end();
  }
  take_hold(a[0]);
  ::signal(SIGCHLD, SIG_IGN);
  wait_for_the_end();
}

// The first thread has ended: the process looks dead in many places, and is not.
void* second_thread(void*) {
  wait_for_the_end();
  return nullptr;
}
int without_leader(const Arguments& a) {
  if (::fork() != 0) return 0;
  ::setsid();
  take_hold(a[0]);
  pthread_t thread;
  if (::pthread_create(&thread, nullptr, second_thread, nullptr) != 0) return 1;
  raw(SYS_exit, 0);
  return 0;
}

// At the request to end it makes another that does not hear it.
std::string heir;
void on_term(int) {
  if (::fork() != 0) std::_Exit(0);
  ::setsid();
  for (const int signal : {SIGTERM, SIGHUP, SIGINT}) ::signal(signal, SIG_IGN);
  take_hold(heir);
  wait_for_the_end();
}
int heir_at_term(const Arguments& a) {
  heir = a[0] + ".2";
  ::signal(SIGTERM, on_term);
  take_hold(a[0]);
  wait_for_the_end();
}

// What a process does that wants to outlive those that it came from.
int without_death_signal(const Arguments& a) {
  if (::fork() != 0) return 0;
  ::prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
  if (::fork() != 0) std::_Exit(0);
  ::prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
  ::setsid();
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  take_hold(a[0]);
  close_streams();
  wait_for_the_end();
}

// -------------------------------------------------------------------------------------------------

struct Verb {
  const char* name;
  std::size_t arguments;  // at least
  int (*run)(const Arguments& arguments);
};

const Verb verbs[] = {
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
    {"set-attribute", 1, set_attribute},
    {"set-file-flags", 1, set_file_flags},
    {"memory-program", 2, memory_program},
    {"ring-write", 1, ring_write_file},
    {"ring-read", 1, ring_read_file},
    {"ring-tcp", 1, ring_tcp},
    {"tcp", 1, tcp},
    {"tcp6", 1, tcp6},
    {"udp", 1, udp},
    {"udp6", 1, udp6},
    {"mptcp", 1, mptcp},
    {"fast-open", 1, fast_open},
    {"dns", 1, dns},
    {"listen", 0, listen_tcp},
    {"own-loopback", 0, own_loopback},
    {"socket", 3, open_socket},
    {"all-sockets", 0, all_sockets},
    {"unix-stream", 1, unix_stream},
    {"unix-datagram", 1, unix_datagram},
    {"abstract-stream", 1, abstract_stream},
    {"abstract-datagram", 1, abstract_datagram},
    {"unix-bind", 1, unix_bind},
    {"pair-send", 2, pair_send},
    {"pair", 0, pair_in_order},
    {"i386", 1, i386},
    {"x32", 0, x32},
    {"ancestors", 1, ancestors},
    {"signal", 3, send_signal},
    {"owner", 2, signal_by_owner},
    {"lease", 1, lease_signal},
    {"trace", 3, trace},
    {"memory-read", 2, memory_read},
    {"memory-write", 2, memory_write},
    {"memory-file-read", 2, memory_file_read},
    {"memory-file-write", 2, memory_file_write},
    {"memory-dump", 1, memory_dump},
    {"take-descriptor", 2, take_descriptor},
    {"compare", 1, compare},
    {"set-limit", 1, set_limit},
    {"get-limit", 1, get_limit},
    {"set-affinity", 1, set_affinity},
    {"set-priority", 1, set_priority},
    {"advise", 2, advise},
    {"perf", 1, perf_of},
    {"enter", 2, enter_namespace},
    {"enter-pidfd", 1, enter_by_pidfd},
    {"shared-read", 1, shared_read},
    {"queue-read", 1, queue_read},
    {"make-shared", 1, make_shared},
    {"remove-shared", 1, remove_shared},
    {"make-queue", 2, make_queue},
    {"remove-queue", 1, remove_queue},
    {"identity", 0, identity},
    {"raise-capabilities", 0, raise_capabilities},
    {"push", 1, push_characters},
    {"probe", 1, probe},
    {"filter-again", 1, filter_again},
    {"grant-again", 1, grant_again},
    {"processes", 1, processes},
    {"memory", 1, memory},
    {"memory-of-many", 2, memory_of_many},
    {"reserve", 1, reserve},
    {"spin", 1, spin},
    {"descriptors", 1, descriptors},
    {"big-file", 1, big_file},
    {"many-files", 2, many_files},
    {"raise-limit", 1, raise_limit},
    {"hold", 1, hold},
    {"daemon", 1, daemon_of_two_forks},
    {"bare-daemon", 1, bare_daemon},
    {"bare", 1, bare},
    {"chain", 1, chain},
    {"many-chains", 1, many_chains},
    {"same-memory", 1, same_memory},
    {"sibling", 1, sibling},
    {"adopter", 1, adopter},
    {"without-leader", 1, without_leader},
    {"heir", 1, heir_at_term},
    {"without-death-signal", 1, without_death_signal},
};

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments(argv + std::min(argc, 2), argv + argc);
  for (const Verb& verb : verbs) {
    if (argc < 2 || std::strcmp(argv[1], verb.name) != 0) continue;
    if (arguments.size() < verb.arguments) break;
    return verb.run(arguments);
  }
  std::fprintf(stderr, "codeexec-test-attack: no such verb, or too few arguments\n");
  return 2;
}
