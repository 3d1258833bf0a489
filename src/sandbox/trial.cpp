// A child that tries what the sandbox forbids, before any command is run.

#include "sandbox/capabilities_internal.hpp"
#include "sandbox/child_internal.hpp"
#include "sandbox/namespaces_internal.hpp"
#include "sandbox/plan_internal.hpp"
#include "sandbox/sandbox.hpp"
#include "sandbox/system_calls_internal.hpp"

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if CODEEXEC_HAS_SANDBOX

namespace {

CODEEXEC_IN_CHILD bool refused(long result) {
  return result == -EACCES || result == -EPERM || result == -EROFS;
}

CODEEXEC_IN_CHILD unsigned try_files() {
  // Without a sandbox everybody may list that directory, and write to that file, which holds the
  // name of the own process.
  constexpr const char* directory = "/";
  constexpr const char* file = "/proc/self/comm";
  constexpr const char* made = "/.codeexec-trial";
  unsigned breaches = 0;
  const long listed = raw(SYS_openat, AT_FDCWD, directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (!refused(listed)) breaches |= breach_read;
  if (listed >= 0) raw(SYS_close, listed);
  const long written = raw(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CLOEXEC, 0);
  if (!refused(written)) breaches |= breach_write;
  if (written >= 0) raw(SYS_close, written);
  const long directory_made = raw(SYS_mkdirat, AT_FDCWD, made, 0700);
  if (directory_made >= 0) raw(SYS_unlinkat, AT_FDCWD, made, AT_REMOVEDIR);
  if (!refused(directory_made)) breaches |= breach_create;
  const long emptied = raw(SYS_openat, AT_FDCWD, file, O_RDONLY | O_TRUNC | O_CLOEXEC, 0);
  if (emptied >= 0) raw(SYS_close, emptied);
  if (!refused(emptied) || !refused(raw(SYS_truncate, file, 0))) breaches |= breach_truncate;
  return breaches;
}

CODEEXEC_IN_CHILD bool can_make_socket(int family, int type) {
  const long fd = raw(SYS_socket, family, type | SOCK_CLOEXEC, 0);
  if (fd >= 0) raw(SYS_close, fd);
  return fd >= 0;
}

CODEEXEC_IN_CHILD bool can_connect_to_abstract(const Trial& trial) {
  const long fd = raw(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const long connected = raw(SYS_connect, fd, trial.abstract, trial.abstract_size);
  raw(SYS_close, fd);
  return connected >= 0 || connected == -EAGAIN;
}

CODEEXEC_IN_CHILD void set_address(sockaddr_in& address, std::uint32_t host, unsigned port) {
  auto* bytes = reinterpret_cast<volatile unsigned char*>(&address);
  for (std::size_t i = 0; i < sizeof address; ++i) bytes[i] = 0;
  address.sin_family = AF_INET;
  for (int i = 0; i < 4; ++i)
    bytes[offsetof(sockaddr_in, sin_addr) + static_cast<unsigned>(i)] =
        static_cast<unsigned char>(host >> (24 - 8 * i));
  bytes[offsetof(sockaddr_in, sin_port)] = static_cast<unsigned char>(port >> 8);
  bytes[offsetof(sockaddr_in, sin_port) + 1] = static_cast<unsigned char>(port);
}

// A connection from the own network to itself.
CODEEXEC_IN_CHILD bool loopback_works() {
  constexpr std::uint32_t own = 0x7f000001;
  const long server = raw(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const long client = raw(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address;
  set_address(address, own, 0);
  socklen_t size = sizeof address;
  const bool works =
      server >= 0 && client >= 0 && raw(SYS_bind, server, &address, sizeof address) == 0 &&
      raw(SYS_listen, server, 1) == 0 && raw(SYS_getsockname, server, &address, &size) == 0 &&
      raw(SYS_connect, client, &address, sizeof address) == 0;
  if (client >= 0) raw(SYS_close, client);
  if (server >= 0) raw(SYS_close, server);
  return works;
}

// Whether there is a route to the world. Connecting a datagram socket sends nothing.
CODEEXEC_IN_CHILD bool has_way_out() {
  constexpr std::uint32_t documentation = 0xc0000201;  // 192.0.2.1, which no host has
  const long fd = raw(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  sockaddr_in address;
  set_address(address, documentation, 9);
  const long connected = raw(SYS_connect, fd, &address, sizeof address);
  raw(SYS_close, fd);
  return connected >= 0;
}

CODEEXEC_IN_CHILD unsigned try_network(const Trial& trial) {
  unsigned breaches = 0;
  if (trial.abstract && can_connect_to_abstract(trial)) breaches |= breach_abstract;
  if (trial.network == Network::host) return breaches;
  if (!trial.unix_sockets &&
      (can_make_socket(AF_UNIX, SOCK_STREAM) || can_make_socket(AF_UNIX, SOCK_DGRAM)))
    breaches |= breach_unix;
  if (has_own_network(trial.network)) {
    if (!loopback_works()) breaches |= breach_loopback;
    if (has_way_out()) breaches |= breach_outside;
    return breaches;
  }
  for (const int family : {AF_INET, AF_INET6})
    for (const int type : {SOCK_STREAM, SOCK_DGRAM})
      if (can_make_socket(family, type)) breaches |= breach_internet;
  if (can_make_socket(AF_NETLINK, SOCK_RAW) || can_make_socket(AF_PACKET, SOCK_RAW))
    breaches |= breach_internet;
  return breaches;
}

CODEEXEC_IN_CHILD unsigned try_privileges(const SandboxPlan& plan) {
  unsigned breaches = 0;
  if (plan.drop_capabilities) {
    const CapabilityHeader header;
    CapabilityData left[2];
    const long known = raw(SYS_capget, &header, &left[0]);
    if (known < 0) breaches |= breach_capability;
    for (const CapabilityData& word : left)
      if ((word.effective | word.permitted | word.inheritable) != 0) breaches |= breach_capability;
  }
  if (plan.no_new_privs && raw(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
    breaches |= breach_privilege;
  return breaches;
}

// What is mounted read-only is so for everybody, the owner of the file included.
CODEEXEC_IN_CHILD bool times_stay() {
  return raw(SYS_utimensat, AT_FDCWD, "/", nullptr, 0) == -EROFS;
}

// Without a filter the first would say that it does not know such an operation, and the second that
// it has no arguments.
CODEEXEC_IN_CHILD bool filter_refuses() {
  return raw(SYS_keyctl, -1, 0, 0, 0, 0) == -EPERM && raw(number_of_clone3, 0, 0) == -ENOSYS;
}

CODEEXEC_IN_CHILD long apply_in_trial(Trial& trial) {
  const SandboxPlan& plan = *trial.plan;
  trial.step = ConfineStep::namespaces;
  long result = set_up_namespaces(plan);
  if (result < 0) return result;
  result = confine(plan, &trial.step);
  if (result < 0) return result;
  trial.step = ConfineStep::filter;
  return install_filter(plan);
}

CODEEXEC_IN_CHILD int trial_main(void* argument) {
  Trial& trial = *static_cast<Trial*>(argument);
  trial.error = apply_in_trial(trial);
  if (trial.error == 0) {
    const SandboxPlan& plan = *trial.plan;
    trial.step = ConfineStep::end;
    unsigned breaches = try_privileges(plan) | try_network(trial);
    if (plan.ruleset >= 0) breaches |= try_files();
    if (plan.read_only && !times_stay()) breaches |= breach_metadata;
    const long reached = raw(SYS_kill, trial.host, 0);
    // In a process table of its own this program does not exist.
    if (!refused(reached) && reached != -ESRCH) breaches |= breach_signal;
    if (plan.filter && !filter_refuses()) breaches |= breach_filter;
    trial.breaches = breaches;
  }
  trial.finished = true;
  for (;;) raw(SYS_exit_group, 0);
}

}  // namespace

inline namespace inner {

long run_trial(Trial& trial) {
  alignas(16) char stack[32768];
  const SignalPause pause;
  bool cleared = false;
  const int saved = errno;
  const CloneRequest request = {
      CLONE_VFORK | trial.plan->clone_flags, trial_main, &trial, stack, sizeof stack, nullptr, 0};
  const long child = clone_in_namespaces(*trial.plan, request, cleared);
  errno = saved;
  if (child < 0) return child;
  while (raw(SYS_wait4, child, 0, __WALL, 0) == -EINTR) {
  }
  return 0;
}

}  // namespace inner

#endif

}  // namespace v0_1
}  // namespace codeexec
