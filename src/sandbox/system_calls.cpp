// System calls without libc, and clone.

#include "sandbox/capabilities_internal.hpp"
#include "sandbox/system_calls_internal.hpp"

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if CODEEXEC_HAS_CLONE

inline namespace inner {

CODEEXEC_IN_CHILD void set_signal_mask(const KernelSigset* mask, KernelSigset* before) {
  raw(SYS_rt_sigprocmask, SIG_SETMASK, mask, before, kernel_sigset_size);
}

}  // namespace inner

namespace {

// The kernel's struct clone_args, first version.
struct CloneArguments {
  std::uint64_t flags = 0;
  std::uint64_t pidfd = 0;
  std::uint64_t child_tid = 0;
  std::uint64_t parent_tid = 0;
  std::uint64_t exit_signal = 0;
  std::uint64_t stack = 0;
  std::uint64_t stack_size = 0;
  std::uint64_t tls = 0;
};

// clone3 with a function for the child, which libc does not offer: the child returns from the
// system call on an empty stack. A pid or a negative errno; -ENOSYS for other processors.
CODEEXEC_IN_CHILD long clone3_call(CloneArguments* arguments, int (*function)(void*),
                                   void* argument) {
#if defined(__x86_64__) && !defined(__ILP32__)
  long result = 435;
  register int (*child_function)(void*) asm("r8") = function;
  register void* child_argument asm("r9") = argument;
  asm volatile(
      "syscall\n\t"
      "testq %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xorl %%ebp, %%ebp\n\t"
      "movq %%r9, %%rdi\n\t"
      "call *%%r8\n\t"
      "hlt\n"
      "1:"
      : "+a"(result)
      : "D"(arguments), "S"(sizeof *arguments), "r"(child_function), "r"(child_argument)
      : "rcx", "r11", "memory", "cc");
  return result;
#elif defined(__aarch64__)
  register long result asm("x0") = reinterpret_cast<long>(arguments);
  register long size asm("x1") = sizeof *arguments;
  register int (*child_function)(void*) asm("x2") = function;
  register void* child_argument asm("x3") = argument;
  register long number asm("x8") = 435;
  asm volatile(
      "svc #0\n\t"
      "cbnz x0, 1f\n\t"
      "mov x29, #0\n\t"
      "mov x30, #0\n\t"
      "mov x0, x3\n\t"
      "blr x2\n\t"
      "brk #0\n"
      "1:"
      : "+r"(result)
      : "r"(size), "r"(child_function), "r"(child_argument), "r"(number)
      : "memory", "cc");
  return result;
#else
  (void)arguments;
  (void)function;
  (void)argument;
  return -ENOSYS;
#endif
}

}  // namespace

inline namespace inner {

CODEEXEC_IN_CHILD long clone_process(const CloneRequest& request, bool& cleared) {
  constexpr std::uint64_t clear_sighand = 0x100000000u;  // Linux 5.5
  const std::uint64_t flags = request.flags | CLONE_VM |
                              (request.pidfd ? std::uint64_t{CLONE_PIDFD} : 0) |
                              (request.cleared_at_end ? std::uint64_t{CLONE_CHILD_CLEARTID} : 0);
  CloneArguments arguments = {};
  arguments.flags = flags | clear_sighand;
  arguments.pidfd = reinterpret_cast<std::uintptr_t>(request.pidfd);
  arguments.child_tid = reinterpret_cast<std::uintptr_t>(request.cleared_at_end);
  arguments.exit_signal = static_cast<std::uint64_t>(request.exit_signal);
  arguments.stack = reinterpret_cast<std::uintptr_t>(request.stack);
  arguments.stack_size = request.stack_size;
  cleared = true;
  long pid = clone3_call(&arguments, request.function, request.argument);
  // An old kernel, or a container's filter, which cannot look into clone3's arguments.
  if (pid == -ENOSYS || pid == -EPERM || pid == -EINVAL) {
    cleared = false;
    char* const top = request.stack + request.stack_size;
    const int old_flags = static_cast<int>(flags) | request.exit_signal;
    pid = ::clone(request.function, top, old_flags, request.argument, request.pidfd, nullptr,
                  request.cleared_at_end);
    // An emulator (qemu-user) knows no CLONE_PIDFD; the caller then has no pidfd from here.
    if (pid < 0 && errno == EINVAL && request.pidfd)
      pid = ::clone(request.function, top, old_flags & ~CLONE_PIDFD, request.argument, nullptr,
                    nullptr, request.cleared_at_end);
    if (pid < 0) pid = -errno;
  }
  return pid;
}

}  // namespace inner

#endif

}  // namespace v0_1
}  // namespace codeexec
