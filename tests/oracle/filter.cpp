// The system call filter: what its program answers for every number and argument, run by an
// interpreter beside a table made by hand, and what the kernel then does. A program of its own,
// because it looks at the instructions, which no interface gives.
#include "sandbox/child_internal.hpp"
#include "sandbox/filter_internal.hpp"
#include "sandbox/sandbox_internal.hpp"
#include "sandbox/system_calls_internal.hpp"

#include <doctest/doctest.h>

#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>

using namespace codeexec;

namespace {

#if defined(__x86_64__)
constexpr bool is_x86 = true;
constexpr std::uint32_t native = 0xc000003e;
constexpr std::uint32_t other_architectures[] = {0xc00000b7, 0x40000003, 0x8000003e, 0};
#else
constexpr bool is_x86 = false;
constexpr std::uint32_t native = 0xc00000b7;
constexpr std::uint32_t other_architectures[] = {0xc000003e, 0x40000028, 0x40000003, 0};
#endif

constexpr std::uint32_t kill_process = 0x80000000;
constexpr std::uint32_t allow = 0x7fff0000;
constexpr std::uint32_t error(std::uint32_t number) { return 0x00050000 | number; }
constexpr std::uint32_t eperm = error(1), eacces = error(13), enosys = error(38),
                        eafnosupport = error(97);
constexpr std::uint32_t broken = 0xdeadbeef;

// What the kernel does with a program, and broken for what it would not take.
std::uint32_t interpret(const std::vector<sock_filter>& program, const seccomp_data& data) {
  std::uint32_t a = 0;
  for (std::size_t pc = 0; pc < program.size(); ++pc) {
    const sock_filter& step = program[pc];
    switch (step.code) {
      case 0x20:  // ld word
        if (step.k % 4 != 0 || step.k + 4 > sizeof data) return broken;
        std::memcpy(&a, reinterpret_cast<const char*>(&data) + step.k, 4);
        break;
      case 0x54:  // and
        a &= step.k;
        break;
      case 0x05:  // ja
        pc += step.k;
        break;
      case 0x15:  // jeq
        pc += a == step.k ? step.jt : step.jf;
        break;
      case 0x35:  // jge
        pc += a >= step.k ? step.jt : step.jf;
        break;
      case 0x45:  // jset
        pc += (a & step.k) != 0 ? step.jt : step.jf;
        break;
      case 0x06:  // ret
        return step.k;
      default:
        return broken;
    }
  }
  return broken;
}

const std::set<int> expected_eperm =
    is_x86 ? std::set<int>{101, 310, 311, 312, 438, 440, 448, 425, 426, 427, 321, 298, 323, 300,
                           248, 249, 250, 165, 166, 155, 161, 308, 304, 428, 429, 430, 431, 432,
                           433, 442, 467, 175, 313, 176, 246, 320, 169, 167, 168, 163, 179, 443,
                           164, 227, 305, 159, 170, 171, 103, 153, 212, 172, 173, 154, 134, 156}
           : std::set<int>{117, 270, 271, 272, 438, 440, 448, 425, 426, 427, 280, 241, 282,
                           262, 217, 218, 219, 40,  39,  41,  51,  268, 265, 428, 429, 430,
                           431, 432, 433, 442, 467, 105, 273, 106, 104, 294, 142, 224, 225,
                           89,  60,  443, 170, 112, 266, 171, 161, 162, 116, 58,  18};
const std::set<int> expected_ipc =
    is_x86 ? std::set<int>{29, 30, 31, 64, 65, 66, 67, 68, 69, 70, 71, 220, 240, 241}
           : std::set<int>{180, 181, 186, 187, 188, 189, 190, 191, 192, 193, 194, 195, 196, 197};

// By hand, from the tables of the two architectures.
struct Looked {
  unsigned unshare, clone, ioctl, socket, socketpair, prlimit, kill, truncate, openat, open, fcntl,
      bind;
};
constexpr Looked looked = is_x86 ? Looked{272, 56, 16, 41, 53, 302, 62, 76, 257, 2, 72, 49}
                                 : Looked{97, 220, 29, 198, 199, 261, 129, 45, 56, 9999, 25, 200};

std::uint32_t expected_socket(const FilterOptions& options, const seccomp_data& data) {
  const auto family = static_cast<std::uint32_t>(data.args[0]);
  const auto type = static_cast<std::uint32_t>(data.args[1]) % 16;
  const auto protocol = static_cast<std::uint32_t>(data.args[2]);
  const bool host = options.network == Network::host;
  bool good = false;
  if (family == 1) good = host || options.unix_sockets;
  if (options.network != Network::none) {
    if (family == 2) good = type != 10;
    if (family == 10) good = true;
    if (family == 16) good = host || protocol == 0;
  }
  return good ? allow : host ? eafnosupport : eacces;
}

std::uint32_t expected_pair(const FilterOptions& options, const seccomp_data& data) {
  const auto type = static_cast<std::uint32_t>(data.args[1]) % 16;
  const bool host = options.network == Network::host;
  bool good = static_cast<std::uint32_t>(data.args[0]) == 1;
  if (!host && !options.unix_sockets && type != 1 && type != 5) good = false;
  return good ? allow : host ? eafnosupport : eacces;
}

std::uint32_t expected_open(std::uint64_t flags) {
  const bool truncates = (flags & 01000) != 0;
  const bool writes = flags % 4 == 1 || flags % 4 == 2;
  return truncates && !writes ? eacces : allow;
}

std::uint32_t expected(const FilterOptions& options, const seccomp_data& data) {
  const auto number = static_cast<unsigned>(data.nr);
  if (data.arch != native) return kill_process;
  if (number > 469) return enosys;
  if (number >= (is_x86 ? 337U : 295U) && number < 424) return enosys;
  const bool confined = options.landlock_abi >= 1 || options.own_processes;
  if (number == (is_x86 ? 101U : 117U) && confined) return allow;
  if (expected_eperm.count(data.nr) != 0) return eperm;
  if (number == 435 || number == 469) return enosys;
  if (expected_ipc.count(data.nr) != 0) return options.own_ipc ? allow : enosys;
  if (number == looked.unshare) {
    return (data.args[0] & ~std::uint64_t{0x00050f00}) == 0 ? allow : eperm;
  }
  if (number == looked.clone) return (data.args[0] & 0x7e028000) != 0 ? eperm : allow;
  if (number == looked.ioctl) {
    const auto request = static_cast<std::uint32_t>(data.args[1]);
    return request == 0x5412 || request == 0x541c || request == 0x5423 ? eperm : allow;
  }
  if (number == looked.fcntl) {
    const auto command = static_cast<std::uint32_t>(data.args[1]);
    return command == 1024 || command == 1040 ? eperm : allow;
  }
  if (number == looked.bind)
    return options.network == Network::none && !options.unix_sockets ? eacces : allow;
  if (number == looked.socket) return expected_socket(options, data);
  if (number == looked.socketpair) return expected_pair(options, data);
  if (number == looked.prlimit && !options.own_processes) {
    return static_cast<std::uint32_t>(data.args[0]) != 0 && data.args[2] != 0 ? eperm : allow;
  }
  if (number == looked.kill && !options.own_processes && options.landlock_abi < 6) {
    return static_cast<std::uint32_t>(data.args[0]) == 0xffffffff ? eperm : allow;
  }
  if (options.landlock_abi == 1 || options.landlock_abi == 2) {
    if (number == looked.truncate) return eacces;
    if (number == 437) return enosys;
    if (number == looked.openat) return expected_open(data.args[2]);
    if (number == looked.open) return expected_open(data.args[1]);
  }
  return allow;
}

std::vector<FilterOptions> all_options() {
  std::vector<FilterOptions> all;
  for (const Network network : {Network::host, Network::none, Network::loopback}) {
    for (int bits = 0; bits < 8; ++bits) {
      for (int abi = 0; abi <= 8; ++abi) {
        FilterOptions options;
        options.network = network;
        options.unix_sockets = (bits & 1) != 0;
        options.own_ipc = (bits & 2) != 0;
        options.own_processes = (bits & 4) != 0;
        options.landlock_abi = abi;
        all.push_back(options);
      }
    }
  }
  return all;
}

seccomp_data call_of(unsigned number, std::uint64_t a = 0, std::uint64_t b = 0,
                     std::uint64_t c = 0) {
  seccomp_data data = {};
  data.nr = static_cast<int>(number);
  data.arch = native;
  data.args[0] = a;
  data.args[1] = b;
  data.args[2] = c;
  return data;
}

// Compares without a doctest assertion for each of millions; returns the first difference.
std::string difference(const std::vector<sock_filter>& program, const FilterOptions& options,
                       const seccomp_data& data) {
  const std::uint32_t is = interpret(program, data);
  const std::uint32_t should = expected(options, data);
  if (is == should) return "";
  return "call " + std::to_string(data.nr) + " arch " + std::to_string(data.arch) + " (" +
         std::to_string(data.args[0]) + ", " + std::to_string(data.args[1]) + ", " +
         std::to_string(data.args[2]) + "): " + std::to_string(is) + " for " +
         std::to_string(should) + ", network " + std::to_string(static_cast<int>(options.network)) +
         " abi " + std::to_string(options.landlock_abi);
}

}  // namespace

TEST_CASE("every number of every architecture gets the answer of the table") {
  for (const FilterOptions& options : all_options()) {
    const std::vector<sock_filter> program = build_filter(options);
    std::string wrong;
    for (const std::uint64_t argument : {0ULL, 1ULL, ~0ULL}) {
      for (unsigned number = 0; number <= 600 && wrong.empty(); ++number) {
        for (const unsigned high : {0U, 0x40000000U, 0x80000000U, 0xfffffc00U}) {
          wrong +=
              difference(program, options, call_of(number | high, argument, argument, argument));
        }
        for (const std::uint32_t architecture : other_architectures) {
          seccomp_data data = call_of(number, argument, argument, argument);
          data.arch = architecture;
          wrong += difference(program, options, data);
        }
      }
    }
    CHECK(wrong == "");
  }
}

TEST_CASE("every argument that is looked at gets the answer of the table") {
  constexpr std::uint64_t high = 1ULL << 32;
  std::vector<std::uint64_t> first = {high,       ~0ULL,      0xffffffff,       high | 0x11,
                                      high | 2,   0x7fffffff, 0x00050f00,       0x00050f80,
                                      0x01200011, 0x003d0f00, high | 0x10000000};
  for (std::uint64_t value = 0; value <= 46; ++value) first.push_back(value);
  for (int bit = 6; bit < 34; ++bit) first.push_back(1ULL << bit);
  std::vector<std::uint64_t> second = {
      0x5411,   0x5412, 0x5413,   0x541b,        0x541c,        0x541d,   0x5423,
      0x5424,   01000,  01001,    high | 0x5412, high | 0x541c, 01002,    01003,
      02000003, 04001,  02000001, high | 1,      ~0ULL,         02001100, 1024,
      1025,     1026,   1040,     high | 1024,   high | 1040};
  for (std::uint64_t value = 0; value <= 16; ++value) second.push_back(value);
  const std::uint64_t third[] = {0,     1,     2,     3,        4,    16,    01000,
                                 01001, 01002, 01003, 02001000, high, ~0ULL, high | 01000};
  const unsigned numbers[] = {looked.unshare,  looked.clone,      looked.ioctl,  looked.socket,
                              looked.prlimit,  looked.kill,       looked.openat, looked.open,
                              looked.truncate, looked.socketpair, looked.fcntl,  looked.bind};
  for (const FilterOptions& options : all_options()) {
    if (options.landlock_abi == 4 || options.landlock_abi == 8) continue;
    const std::vector<sock_filter> program = build_filter(options);
    std::string wrong;
    for (const unsigned number : numbers) {
      for (const std::uint64_t a : first) {
        for (const std::uint64_t b : second) {
          for (const std::uint64_t c : third) {
            if (wrong.empty()) wrong = difference(program, options, call_of(number, a, b, c));
          }
        }
      }
    }
    CHECK(wrong == "");
  }
}

TEST_CASE("jumps reach over any distance") {
  for (std::size_t between = 0; between < 600; ++between) {
    for (const bool swapped : {false, true}) {
      FilterProgram program;
      const FilterLabel first = program.answer(1);
      const FilterLabel second = program.answer(2);
      for (std::size_t i = 0; i < between; ++i) program.answer(3);
      const FilterLabel yes = swapped ? second : first;
      const FilterLabel no = swapped ? first : second;
      program.branch(BPF_JEQ, 7, yes, no);
      program.load(0);
      const std::vector<sock_filter> built = program.finish();
      REQUIRE(interpret(built, call_of(7)) == (swapped ? 2 : 1));
      REQUIRE(interpret(built, call_of(8)) == (swapped ? 1 : 2));
    }
  }
}

TEST_CASE("a filter is short for every number, so that installing it is cheap") {
  // The kernel runs it for each number. Counts the steps of all numbers of the architecture.
  for (const FilterOptions& options : all_options()) {
    const std::vector<sock_filter> program = build_filter(options);
    CHECK(program.size() < 160);
    std::size_t steps = 0;
    for (unsigned number = 0; number < 470; ++number) {
      std::size_t pc = 0;
      for (; (program[pc].code & 7) != 6; ++pc, ++steps) {
        const sock_filter& step = program[pc];
        const std::uint32_t a = pc == 0 ? native : number;
        if (step.code == 0x20 && step.k >= 16) break;  // the kernel stops at an argument
        if (step.code == 0x15) pc += a == step.k || pc == 1 ? step.jt : step.jf;
        if (step.code == 0x35) pc += a >= step.k ? step.jt : step.jf;
      }
    }
    CHECK(steps < 470 * 10);
  }
}

namespace {

enum class Filtered { no, yes };

// Runs `body` in a child, after installing the filter if wanted; the wait status. What the body
// returns is the exit status.
int in_child(Filtered filtered, const FilterOptions& options, const std::function<int()>& body) {
  std::vector<sock_filter> program = build_filter(options);
  const sock_fprog installed = {static_cast<unsigned short>(program.size()), program.data()};
  const pid_t child = fork();
  if (child == 0) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) _exit(201);
    if (filtered == Filtered::yes && prctl(PR_SET_SECCOMP, 2, &installed) != 0) _exit(202);
    _exit(body());
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

// 0, or the errno of the call.
template <typename... Arguments>
int errno_of(long number, Arguments... arguments) {
  return syscall(number, arguments...) < 0 ? errno : 0;
}

int result(Filtered filtered, const FilterOptions& options, const std::function<int()>& body) {
  const int status = in_child(filtered, options, body);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

FilterOptions with(Network network, int abi = 7) {
  FilterOptions options;
  options.network = network;
  options.landlock_abi = abi;
  return options;
}

// Both results, without the filter and with it.
struct Pair {
  int control;
  int filtered;
};
Pair both(const FilterOptions& options, const std::function<int()>& body) {
  return {result(Filtered::no, options, body), result(Filtered::yes, options, body)};
}

// A child in new namespaces ends at once.
int errno_of_clone(unsigned long flags) {
  const long child = syscall(SYS_clone, flags | SIGCHLD, 0UL, 0UL, 0UL, 0UL);
  if (child == 0) _exit(0);
  const int failed = child < 0 ? errno : 0;
  if (child > 0) waitpid(static_cast<pid_t>(child), nullptr, 0);
  return failed;
}

}  // namespace

TEST_CASE("the kernel takes every filter") {
  for (const FilterOptions& options : all_options()) {
    CHECK(result(Filtered::yes, options, [] { return getppid() > 0 ? 7 : 8; }) == 7);
  }
}

TEST_CASE("x32 numbers, numbers that are too new, and calls without a look") {
  const FilterOptions options = with(Network::host);
  // No control: this kernel has neither.
  CHECK(result(Filtered::yes, options, [] { return errno_of(0x40000000 + SYS_getpid); }) == ENOSYS);
  CHECK(result(Filtered::yes, options, [] { return errno_of(470); }) == ENOSYS);
  CHECK(result(Filtered::yes, options, [] { return errno_of(-1); }) == ENOSYS);

  alignas(8) static char parameters[256] = {};
  const Pair ring = both(options, [] { return errno_of(425, 1, parameters); });
  if (ring.control != 0) MESSAGE("SKIPPED: the control of io_uring_setup fails: ", ring.control);
  CHECK(ring.filtered == EPERM);

  const Pair clone3 = both(options, [] { return errno_of(435, nullptr, 0UL); });
  CHECK(clone3.control == EINVAL);
  CHECK(clone3.filtered == ENOSYS);

  // Where nothing else keeps a debugger to the command's own processes.
  FilterOptions alone = options;
  alone.landlock_abi = 0;
  const Pair trace = both(alone, [] { return errno_of(SYS_ptrace, 0, 0, 0, 0); });
  CHECK(trace.control == 0);
  CHECK(trace.filtered == EPERM);
  CHECK(result(Filtered::yes, options, [] { return errno_of(SYS_ptrace, 0, 0, 0, 0); }) == 0);

  const Pair attributes = both(options, [] { return errno_of(469, -1, "", nullptr, 0, 0); });
  CHECK(attributes.control != ENOSYS);
  CHECK(attributes.filtered == ENOSYS);
}

TEST_CASE("int 0x80 ends the process") {
  const auto i386_getpid = [] {
    long number = 20;
    __asm__ volatile("int $0x80" : "+a"(number) : : "r8", "r9", "r10", "r11", "memory");
    return number == getpid() ? 7 : 8;
  };
  const Pair answers = both(with(Network::host), i386_getpid);
  if (answers.control != 7) MESSAGE("SKIPPED: this kernel has no 32-bit calls");
  CHECK(answers.filtered == -SIGSYS);
}

TEST_CASE("namespaces") {
  const FilterOptions options = with(Network::host);
  for (const unsigned long flag : {0x80UL, 0x20000UL, 0x2000000UL, 0x4000000UL, 0x8000000UL,
                                   0x10000000UL, 0x20000000UL, 0x40000000UL}) {
    CAPTURE(flag);
    const Pair unshared = both(options, [flag] { return errno_of(SYS_unshare, flag); });
    CHECK(unshared.filtered == EPERM);
    if (getuid() == 0) CHECK(unshared.control == 0);
    if (flag == 0x80) continue;  // not a flag of clone
    const Pair cloned = both(options, [flag] { return errno_of_clone(flag); });
    CHECK(cloned.filtered == EPERM);
    if (getuid() == 0) CHECK(cloned.control == 0);
  }
  CHECK(result(Filtered::yes, options, [] { return errno_of(SYS_unshare, 0x40600UL); }) == 0);
  CHECK(result(Filtered::yes, options, [] { return errno_of_clone(0); }) == 0);
}

TEST_CASE("terminal requests, whatever stands in the upper half") {
  const FilterOptions options = with(Network::host);
  for (const unsigned long request : {0x5412UL, 0x541cUL, 0x5423UL}) {
    for (const unsigned long upper : {0UL, 1UL << 32, 0xffffffffUL << 32}) {
      const Pair answers = both(options, [request, upper] {
        const int fd = open("/dev/null", O_RDWR);
        return errno_of(SYS_ioctl, fd, request | upper, 0UL);
      });
      CHECK(answers.control == ENOTTY);
      CHECK(answers.filtered == EPERM);
    }
  }
  CHECK(result(Filtered::yes, options, [] {
          const int fd = open("/dev/null", O_RDWR);
          return errno_of(SYS_ioctl, fd, 0x5401UL, 0UL);  // TCGETS
        }) == ENOTTY);
}

TEST_CASE("families of sockets") {
  const auto make = [](int family, int type, int protocol = 0) {
    return [=] { return errno_of(SYS_socket, family, type, protocol); };
  };
  const auto pair = [](int type) {
    return [=] {
      int two[2];
      return errno_of(SYS_socketpair, AF_UNIX, type, 0, two);
    };
  };
  for (const Network network : {Network::host, Network::none, Network::loopback}) {
    const FilterOptions options = with(network);
    const int refused = network == Network::host ? EAFNOSUPPORT : EACCES;
    const int inet = network == Network::none ? EACCES : 0;
    const int unix_sockets = network == Network::host ? 0 : EACCES;
    CAPTURE(static_cast<int>(network));
    CHECK(result(Filtered::no, options, make(AF_INET, SOCK_STREAM)) == 0);
    CHECK(result(Filtered::yes, options, make(AF_INET, SOCK_STREAM | SOCK_CLOEXEC)) == inet);
    CHECK(result(Filtered::yes, options, make(AF_INET, SOCK_STREAM, 262)) == inet);  // MPTCP
    CHECK(result(Filtered::yes, options, make(AF_INET6, SOCK_DGRAM)) == inet);
    CHECK(result(Filtered::yes, options, make(AF_NETLINK, SOCK_RAW, 0)) == inet);
    CHECK(result(Filtered::yes, options, make(AF_NETLINK, SOCK_RAW, 4)) ==
          (network == Network::loopback ? EACCES : inet));
    CHECK(result(Filtered::yes, options, make(AF_UNIX, SOCK_STREAM)) == unix_sockets);
    for (const int family : {17, 21, 29, 30, 31, 38, 40, 43, 44}) {
      CHECK(result(Filtered::yes, options, make(family, SOCK_RAW)) == refused);
    }
    CHECK(result(Filtered::yes, options, make(AF_INET, 10 /* SOCK_PACKET */)) == refused);
    CHECK(result(Filtered::yes, options, pair(SOCK_STREAM | SOCK_NONBLOCK)) == 0);
    CHECK(result(Filtered::yes, options, pair(SOCK_SEQPACKET)) == 0);
    CHECK(result(Filtered::no, options, pair(SOCK_DGRAM)) == 0);
    CHECK(result(Filtered::yes, options, pair(SOCK_DGRAM)) == unix_sockets);
    CHECK(result(Filtered::yes, options, pair(SOCK_RAW)) == unix_sockets);  // a datagram pair, too

    FilterOptions more = options;
    more.unix_sockets = true;
    CHECK(result(Filtered::yes, more, make(AF_UNIX, SOCK_DGRAM)) == 0);
    CHECK(result(Filtered::yes, more, pair(SOCK_DGRAM)) == 0);
    CHECK(result(Filtered::yes, more, make(AF_INET, SOCK_STREAM)) == inet);
  }
  const int packet = result(Filtered::no, with(Network::host), make(17, SOCK_RAW));
  if (packet != 0) MESSAGE("SKIPPED: no control for AF_PACKET: ", packet);
}

TEST_CASE("no leases, whatever stands in the upper half") {
  const FilterOptions options = with(Network::host);
  for (const unsigned long upper : {0UL, 1UL << 32}) {
    const Pair answers = both(options, [upper] {
      char path[] = "/tmp/filter-test-XXXXXX";
      const int fd = mkstemp(path);
      unlink(path);
      return errno_of(SYS_fcntl, fd, 1024 /* F_SETLEASE */ | upper, F_WRLCK);
    });
    CHECK(answers.control == 0);
    CHECK(answers.filtered == EPERM);
  }
  CHECK(result(Filtered::yes, options, [] { return errno_of(SYS_fcntl, 0, F_GETFL); }) == 0);
}

TEST_CASE("half of a pair of sockets takes no name") {
  const auto bind_half = [] {
    int two[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, two) != 0) return errno;
    const sa_family_t by_itself = AF_UNIX;  // the kernel chooses an abstract name
    return errno_of(SYS_bind, two[0], &by_itself, sizeof by_itself);
  };
  const Pair none = both(with(Network::none), bind_half);
  CHECK(none.control == 0);
  CHECK(none.filtered == EACCES);
  FilterOptions more = with(Network::none);
  more.unix_sockets = true;
  CHECK(result(Filtered::yes, more, bind_half) == 0);
  CHECK(result(Filtered::yes, with(Network::host), bind_half) == 0);
}

TEST_CASE("limits of other processes can be read but not set") {
  FilterOptions options = with(Network::host);
  static rlimit limit = {};
  const pid_t here = getpid();
  getrlimit(RLIMIT_CORE, &limit);
  const auto set = [here] { return errno_of(SYS_prlimit64, here, RLIMIT_CORE, &limit, nullptr); };
  const Pair answers = both(options, set);
  CHECK(answers.control == 0);
  CHECK(answers.filtered == EPERM);
  CHECK(result(Filtered::yes, options, [here] {
          static rlimit old;
          return errno_of(SYS_prlimit64, here, RLIMIT_CORE, nullptr, &old);
        }) == 0);
  CHECK(result(Filtered::yes, options, [] { return setrlimit(RLIMIT_CORE, &limit); }) == 0);
  options.own_processes = true;
  CHECK(result(Filtered::yes, options, set) == 0);
}

TEST_CASE("no signal to everybody where Landlock does not hold signals back") {
  // Signal 0 only asks.
  const auto ask = [] { return errno_of(SYS_kill, -1, 0); };
  CHECK(both(with(Network::host, 5), ask).control == 0);
  CHECK(both(with(Network::host, 5), ask).filtered == EPERM);
  CHECK(result(Filtered::yes, with(Network::host, 6), ask) == 0);
  CHECK(result(Filtered::yes, with(Network::host, 5), [] { return errno_of(SYS_kill, 0, 0); }) ==
        0);
}

TEST_CASE("System V IPC and message queues need a namespace of their own") {
  FilterOptions options = with(Network::host);
  const auto share = [] {
    const long id = syscall(SYS_shmget, IPC_PRIVATE, 4096UL, 0600);
    if (id < 0) return errno;
    syscall(SYS_shmctl, id, 0 /* IPC_RMID */, nullptr);
    return 0;
  };
  const auto queue = [] { return errno_of(SYS_mq_unlink, "codeexec-filter-test-no-such-queue"); };
  CHECK(both(options, share).control == 0);
  CHECK(both(options, share).filtered == ENOSYS);
  CHECK(both(options, queue).control == ENOENT);
  CHECK(both(options, queue).filtered == ENOSYS);
  options.own_ipc = true;
  CHECK(result(Filtered::yes, options, share) == 0);
}

TEST_CASE("W24: without Landlock's right to truncate the filter keeps files whole") {
  char path[] = "/tmp/filter-test-XXXXXX";
  const int file = mkstemp(path);
  REQUIRE(file >= 0);
  const auto refill = [file] {
    REQUIRE(ftruncate(file, 0) == 0);
    REQUIRE(pwrite(file, "whole", 5, 0) == 5);
  };
  const auto size = [file] { return lseek(file, 0, SEEK_END); };
  const std::function<int()> ways[] = {
      [&] { return errno_of(SYS_truncate, path, 0L); },
      [&] { return errno_of(SYS_openat, AT_FDCWD, path, O_RDONLY | O_TRUNC); },
      [&] { return errno_of(SYS_open, path, O_RDONLY | O_TRUNC); },
      [&] { return errno_of(SYS_open, path, 3 | O_TRUNC); },
      [&] { return errno_of(SYS_openat, AT_FDCWD, path, 3 | O_TRUNC); },
      [&] {
        const std::uint64_t how[3] = {O_RDONLY | O_TRUNC, 0, 0};
        return errno_of(437, AT_FDCWD, path, how, sizeof how);
      },
  };
  int way = 0;
  for (const std::function<int()>& empty : ways) {
    CAPTURE(way++);
    for (const int abi : {0, 1, 2, 3}) {
      CAPTURE(abi);
      refill();
      const int answer = result(Filtered::yes, with(Network::host, abi), empty);
      const bool held = abi == 1 || abi == 2;
      CHECK((answer != 0) == held);
      CHECK(size() == (held ? 5 : 0));
    }
  }
  refill();
  CHECK(result(Filtered::yes, with(Network::host, 2),
               [&] { return errno_of(SYS_openat, AT_FDCWD, path, O_WRONLY | O_TRUNC); }) == 0);
  CHECK(size() == 0);
  unlink(path);
  close(file);
}

namespace {

// A line of explain_filter(): an errno, system calls, and after a colon which of them or why.
struct ExplainedRule {
  std::string answer;
  std::vector<std::string> calls;
};

ExplainedRule parsed_rule(const std::string& rule) {
  ExplainedRule found;
  std::string left = rule.substr(0, rule.find(": ")) + " ";
  for (std::size_t end; (end = left.find(' ')) != std::string::npos; left.erase(0, end + 1)) {
    if (found.answer.empty())
      found.answer = left.substr(0, end);
    else
      found.calls.push_back(left.substr(0, end));
  }
  return found;
}

}  // namespace

TEST_CASE("what is explained is what the program refuses, no more and no less") {
  const std::map<std::string, std::uint32_t> errors = {
      {"EPERM", eperm}, {"EACCES", eacces}, {"ENOSYS", enosys}, {"EAFNOSUPPORT", eafnosupport}};
  // With arguments of zeros these are allowed.
  const std::set<std::string> looked_at = {"unshare",   "clone", "ioctl",  "fcntl",
                                           "prlimit64", "kill",  "openat", "open"};
  for (const FilterOptions& options : all_options()) {
    const std::vector<sock_filter> program = build_filter(options);
    std::map<std::uint32_t, int> refused;
    for (unsigned number = 0; number < 470; ++number)
      if (number < (is_x86 ? 337U : 295U) || number >= 424)
        ++refused[interpret(program, call_of(number))];
    refused.erase(allow);
    std::map<std::uint32_t, int> explained;
    std::set<std::string> names;
    for (const std::string& rule : explain_filter(options)) {
      const ExplainedRule line = parsed_rule(rule);
      if (line.answer == "KILL" || line.calls.at(0)[0] < 'A') continue;  // numbers
      for (const std::string& call : line.calls) {
        CHECK_MESSAGE(names.insert(call).second, call);
        if (looked_at.count(call) == 0) ++explained[errors.at(line.answer)];
      }
    }
    CHECK(explained == refused);
  }
}

TEST_CASE("what is explained is what the kernel does") {
  // With arguments that do no harm if they are let through.
  const std::pair<const char*, long> calls[] = {{"process_vm_readv", SYS_process_vm_readv},
                                                {"kcmp", SYS_kcmp},
                                                {"io_uring_setup", 425},
                                                {"bpf", SYS_bpf},
                                                {"keyctl", SYS_keyctl},
                                                {"mount", SYS_mount},
                                                {"open_tree", 428},
                                                {"delete_module", SYS_delete_module},
                                                {"clone3", 435},
                                                {"shmget", SYS_shmget},
                                                {"mq_open", SYS_mq_open},
                                                {"ptrace", SYS_ptrace},
                                                {"bind", SYS_bind},
                                                {"socket", SYS_socket},
                                                {"socketpair", SYS_socketpair},
                                                {"getpid", SYS_getpid},
                                                {"openat", SYS_openat},
                                                {"connect", SYS_connect}};
  const std::map<std::string, int> errors = {
      {"EPERM", EPERM}, {"EACCES", EACCES}, {"ENOSYS", ENOSYS}, {"EAFNOSUPPORT", EAFNOSUPPORT}};
  for (const Network network : {Network::host, Network::none, Network::loopback}) {
    FilterOptions options = with(network);
    std::map<std::string, int> explained;
    for (const std::string& rule : explain_filter(options)) {
      const ExplainedRule line = parsed_rule(rule);
      for (const std::string& call : line.calls)
        if (errors.count(line.answer) == 1) explained[call] = errors.at(line.answer);
    }
    for (const auto& [name, number] : calls) {
      CAPTURE(name);
      const int answer = result(Filtered::yes, options, [number = number] {
        return errno_of(number, -1L, 0L, 0L, 0L, 0L, 0L);
      });
      if (explained.count(name) == 1)
        CHECK(answer == explained[name]);
      else
        CHECK(answer == result(Filtered::no, options, [number = number] {
                return errno_of(number, -1L, 0L, 0L, 0L, 0L, 0L);
              }));
    }
    CHECK(explained.count("bpf") == 1);
    CHECK((explained.count("bind") == 1) == (network == Network::none));
    CHECK(explained.count("ptrace") == 0);  // Landlock holds it
  }
}
