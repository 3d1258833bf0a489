// Runs a program as on a kernel that refuses some system calls: the tests of degradation need one.
//
//   codeexec-test-deny CALL=ERRNO[,CALL=ERRNO...] [--] PROGRAM [ARGUMENT...]
//
//   landlock_create_ruleset=ENOSYS   the call fails with that error
//   prctl:22=EPERM                   only when its first argument is that number
//   clone&0x7e020000=EPERM           only when its first argument has one of these bits
//
// The program inherits the filter, and all that it starts does. Ends with status 99 when it cannot
// do that, and says why.
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>
#if defined(__linux__)
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

namespace {

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "codeexec-test-deny: %s\n", why.c_str());
  std::exit(99);
}

#if defined(__linux__)

struct Name {
  std::string_view text;
  unsigned number;
};

// The numbers of newer calls are the same everywhere, and missing in older headers.
const Name calls[] = {
    {"capset", SYS_capset},
    {"chdir", SYS_chdir},
    {"clone", SYS_clone},
    {"clone3", 435},
    {"close_range", 436},
    {"execve", SYS_execve},
    {"execveat", SYS_execveat},
    {"faccessat2", 439},
    {"fchdir", SYS_fchdir},
    {"landlock_add_rule", 445},
    {"landlock_create_ruleset", 444},
    {"landlock_restrict_self", 446},
    {"mount", SYS_mount},
    {"openat2", 437},
    {"pidfd_open", 434},
    {"pidfd_send_signal", 424},
    {"prctl", SYS_prctl},
    {"prlimit64", SYS_prlimit64},
    {"seccomp", SYS_seccomp},
    {"setns", SYS_setns},
    {"setrlimit", SYS_setrlimit},
    {"setsid", SYS_setsid},
    {"socket", SYS_socket},
    {"statx", SYS_statx},
    {"unshare", SYS_unshare},
    {"waitid", SYS_waitid},
};

const Name errors[] = {
    {"EACCES", EACCES},         {"EAGAIN", EAGAIN}, {"EINVAL", EINVAL},
    {"ENOMEM", ENOMEM},         {"ENOSPC", ENOSPC}, {"ENOSYS", ENOSYS},
    {"EOPNOTSUPP", EOPNOTSUPP}, {"EPERM", EPERM},   {"EUSERS", EUSERS},
};

template <std::size_t size>
unsigned find(const Name (&names)[size], std::string_view text) {
  for (const Name& name : names)
    if (name.text == text) return name.number;
  fail("unknown name: " + std::string(text));
}

unsigned number(std::string_view text) {
  const std::string digits(text);
  char* end = nullptr;
  const unsigned long value = std::strtoul(digits.c_str(), &end, 0);
  if (digits.empty() || *end != '\0' || value > 0xffffffffUL) fail("not a number: " + digits);
  return static_cast<unsigned>(value);
}

constexpr unsigned offset_of_number = offsetof(seccomp_data, nr);
// The low half; every machine that runs these tests has it first.
constexpr unsigned offset_of_argument = offsetof(seccomp_data, args);

using Filter = std::vector<sock_filter>;

void add(Filter& filter, unsigned code, unsigned value, unsigned char otherwise = 0) {
  filter.push_back({static_cast<unsigned short>(code), 0, otherwise, value});
}

// One CALL=ERRNO. The number of the call is loaded before and after it.
void add_rule(Filter& filter, std::string_view rule) {
  const std::size_t equals = rule.rfind('=');
  if (equals == std::string_view::npos) fail("no '=' in " + std::string(rule));
  const std::string_view call = rule.substr(0, equals);
  const std::size_t condition = call.find_first_of(":&");
  const unsigned answer = SECCOMP_RET_ERRNO | find(errors, rule.substr(equals + 1));
  const bool always = condition == std::string_view::npos;
  add(filter, BPF_JMP | BPF_JEQ | BPF_K, find(calls, call.substr(0, condition)), always ? 1 : 4);
  if (!always) {
    const unsigned jump = call[condition] == ':' ? BPF_JEQ : BPF_JSET;
    add(filter, BPF_LD | BPF_W | BPF_ABS, offset_of_argument);
    add(filter, BPF_JMP | jump | BPF_K, number(call.substr(condition + 1)), 1);
  }
  add(filter, BPF_RET | BPF_K, answer);
  if (!always) add(filter, BPF_LD | BPF_W | BPF_ABS, offset_of_number);
}

Filter filter_of(std::string_view rules) {
  Filter filter;
  add(filter, BPF_LD | BPF_W | BPF_ABS, offset_of_number);
  for (std::size_t begin = 0; begin <= rules.size();) {
    const std::size_t end = std::min(rules.find(',', begin), rules.size());
    add_rule(filter, rules.substr(begin, end - begin));
    begin = end + 1;
  }
  add(filter, BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  return filter;
}

void install(Filter filter) {
  const sock_fprog program = {static_cast<unsigned short>(filter.size()), filter.data()};
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0) return;
  // Only a privileged process may do it without this promise, which would be one more difference.
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    fail(std::string("no filter can be installed: ") + std::strerror(errno));
}

#endif

}  // namespace

int main(int argc, char** argv) {
  const int first = argc > 2 && std::strcmp(argv[2], "--") == 0 ? 3 : 2;
  if (argc <= first) fail("usage: codeexec-test-deny CALL=ERRNO[,...] [--] PROGRAM [ARGUMENT...]");
#if defined(__linux__)
  install(filter_of(argv[1]));
  ::execvp(argv[first], argv + first);
  fail(std::string(argv[first]) + ": " + std::strerror(errno));
#else
  fail("needs Linux");
#endif
}
