// codeexec-test-deny RULE[,RULE...] -- PROGRAM [ARGUMENT...]
//
// Runs a program in which some system calls fail, as they do on an older kernel or in a container:
//   NAME=ERRNO        every call of that name fails with that errno, given by name: seccomp=EPERM
//   NAME:N=ERRNO      those whose first argument is N: prctl:22=EPERM
//   NAME&BITS=ERRNO   those whose first argument has one of these bits: clone&0x10000000=EPERM
//   namespaces=ERRNO  unshare() and clone() with a flag for a namespace, and clone3() with ENOSYS,
//                     because its flags cannot be seen
//   landlock_abi=N    the kernel says that it has ABI N of Landlock; the rest works as it does
// Without privileges, too: it sets no_new_privs for those who need it. Exit status 125 when it
// cannot do what was asked.
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace {

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "codeexec-test-deny: %s\n", what.c_str());
  std::exit(125);
}

using Names = std::vector<std::pair<const char*, int>>;

const Names errors = {{"EPERM", EPERM},   {"ENOSYS", ENOSYS}, {"EACCES", EACCES},
                      {"EINVAL", EINVAL}, {"ENOSPC", ENOSPC}, {"EOPNOTSUPP", EOPNOTSUPP},
                      {"ENOMEM", ENOMEM}, {"EUSERS", EUSERS}, {"EMFILE", EMFILE}};

// The numbers of newer calls are the same on every architecture.
const Names calls = {{"landlock_create_ruleset", 444},
                     {"landlock_add_rule", 445},
                     {"landlock_restrict_self", 446},
                     {"seccomp", SYS_seccomp},
                     {"unshare", SYS_unshare},
                     {"clone", SYS_clone},
                     {"setsid", SYS_setsid},
                     {"setrlimit", SYS_setrlimit},
                     {"clone3", 435},
                     {"capset", SYS_capset},
                     {"prctl", SYS_prctl},
                     {"mount", SYS_mount},
                     {"ioctl", SYS_ioctl},
                     {"open_tree", 428},
                     {"mount_setattr", 442},
                     {"mkdirat", SYS_mkdirat},
#if defined(SYS_mkdir)
                     {"mkdir", SYS_mkdir},
#endif
                     {"openat2", 437},
                     {"close_range", 436},
                     {"pidfd_open", 434},
                     {"prlimit64", SYS_prlimit64},
                     {"setns", SYS_setns},
                     {"ptrace", SYS_ptrace}};

int value_of(const Names& names, const std::string& name) {
  for (const auto& entry : names)
    if (name == entry.first) return entry.second;
  fail("unknown name: " + name);
}

constexpr std::uint32_t namespace_flags = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                          CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
                                          CLONE_NEWNET;

constexpr std::uint32_t offset_of_number = offsetof(seccomp_data, nr);

std::uint32_t offset_of_argument(unsigned index) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8 * index);
}

class Filter {
 public:
  Filter() { load(offset_of_number); }
  void deny(int number, int error) {
    branch(BPF_JEQ, static_cast<std::uint32_t>(number), 0, 1);
    answer(SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error));
  }
  // By the first argument: BPF_JEQ equal to the operand, BPF_JSET has one of its bits.
  void deny_some(int number, int test, std::uint32_t operand, int error) {
    branch(BPF_JEQ, static_cast<std::uint32_t>(number), 0, 4);
    load(offset_of_argument(0));
    branch(test, operand, 0, 1);
    answer(SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error));
    load(offset_of_number);
  }
  // A question for the ABI has the flag 1 as its third argument.
  void ask_about_abi() {
    branch(BPF_JEQ, static_cast<std::uint32_t>(value_of(calls, "landlock_create_ruleset")), 0, 4);
    load(offset_of_argument(2));
    branch(BPF_JEQ, 1, 0, 1);
    answer(SECCOMP_RET_USER_NOTIF);
    load(offset_of_number);
  }
  // A descriptor for the questions when `listen`, else 0.
  int install(bool listen) {
    answer(SECCOMP_RET_ALLOW);
    sock_fprog program = {};
    program.len = static_cast<unsigned short>(code_.size());
    program.filter = code_.data();
    const unsigned flags = listen ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0;
    const auto attempt = [&] {
      return static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program));
    };
    int result = attempt();
    // Root keeps its privileges, which is another case for what is tested.
    if (result < 0 && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) result = attempt();
    if (result < 0) fail(std::string("seccomp: ") + std::strerror(errno));
    return result;
  }

 private:
  void add(int code, std::uint32_t k, std::uint8_t yes, std::uint8_t no) {
    code_.push_back(sock_filter{static_cast<std::uint16_t>(code), yes, no, k});
  }
  void load(std::uint32_t offset) { add(BPF_LD | BPF_W | BPF_ABS, offset, 0, 0); }
  void answer(std::uint32_t action) { add(BPF_RET | BPF_K, action, 0, 0); }
  void branch(int test, std::uint32_t operand, std::uint8_t yes, std::uint8_t no) {
    add(BPF_JMP | BPF_K | test, operand, yes, no);
  }
  std::vector<sock_filter> code_ = {};
};

// Answers the questions for the ABI until the program has ended, and ends as it did.
[[noreturn]] void answer_until_end(int listener, int abi, pid_t program) {
  constexpr long number_of_pidfd_open = 434;
  const int end = static_cast<int>(::syscall(number_of_pidfd_open, program, 0));
  if (end < 0) fail(std::string("pidfd_open: ") + std::strerror(errno));
  for (;;) {
    pollfd set[2] = {{listener, POLLIN, 0}, {end, POLLIN, 0}};
    if (::poll(set, 2, -1) < 0 && errno != EINTR) break;
    if (set[1].revents != 0) break;
    if ((set[0].revents & POLLIN) == 0) continue;
    seccomp_notif question = {};
    if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &question) != 0) continue;
    seccomp_notif_resp answer = {};
    answer.id = question.id;
    answer.val = abi;
    ::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
  }
  int status = 0;
  while (::waitpid(program, &status, 0) < 0 && errno == EINTR) {
  }
  std::exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4 || std::strcmp(argv[2], "--") != 0) fail("usage: RULE[,RULE...] -- PROGRAM [...]");
  Filter filter;
  int abi = -1;
  std::string rules = argv[1];
  while (!rules.empty()) {
    const std::size_t end = rules.find(',');
    const std::string rule = rules.substr(0, end);
    rules.erase(0, end == std::string::npos ? end : end + 1);
    const std::size_t equals = rule.find('=');
    if (equals == std::string::npos) fail("a rule has no value: " + rule);
    const std::string name = rule.substr(0, equals);
    const std::string value = rule.substr(equals + 1);
    if (name == "landlock_abi") {
      abi = std::atoi(value.c_str());
      filter.ask_about_abi();
    } else if (name == "namespaces") {
      const int error = value_of(errors, value);
      filter.deny_some(SYS_unshare, BPF_JSET, namespace_flags, error);
      filter.deny_some(SYS_clone, BPF_JSET, namespace_flags, error);
      filter.deny(value_of(calls, "clone3"), ENOSYS);
    } else if (const std::size_t at = name.find_first_of(":&"); at != std::string::npos) {
      const auto operand =
          static_cast<std::uint32_t>(std::strtoul(name.c_str() + at + 1, nullptr, 0));
      filter.deny_some(value_of(calls, name.substr(0, at)), name[at] == ':' ? BPF_JEQ : BPF_JSET,
                       operand, value_of(errors, value));
    } else {
      filter.deny(value_of(calls, name), value_of(errors, value));
    }
  }
  if (abi < 0) {
    filter.install(false);
    ::execvp(argv[3], argv + 3);
    fail(std::string(argv[3]) + ": " + std::strerror(errno));
  }
  // The program inherits the filter, and this process answers for the kernel.
  const int listener = filter.install(true);
  const pid_t program = ::fork();
  if (program < 0) fail(std::string("fork: ") + std::strerror(errno));
  if (program == 0) {
    ::close(listener);
    ::execvp(argv[3], argv + 3);
    fail(std::string(argv[3]) + ": " + std::strerror(errno));
  }
  answer_until_end(listener, abi, program);
}
