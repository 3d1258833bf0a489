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

#if CODEEXEC_HAS_SANDBOX
CODEEXEC_IN_CHILD std::size_t append_number(char* text, std::size_t size, std::uint32_t number) {
  char digits[12];
  int count = 0;
  for (; number > 0; number /= 10) digits[count++] = static_cast<char>('0' + number % 10);
  while (count > 0) text[size++] = digits[--count];
  return size;
}
#endif

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

// clone3 or clone, each with a number and the words that the kernel takes. The child returns from
// the call on an empty stack, which no function of C++ can do, and calls `function`. libc's clone()
// is not used: musl's refuses CLONE_CHILD_CLEARTID, and ThreadSanitizer replaces it. A pid or a
// negative errno.
//
// clone takes two more words: a thread pointer, which it leaves alone without CLONE_SETTLS, and
// child_tid, which is words[3]. Their order is the processor's.
#if defined(__x86_64__) && !defined(__ILP32__)
CODEEXEC_IN_CHILD long call_with_child(long number, const std::uintptr_t (&words)[4],
                                       int (*function)(void*), void* argument) {
  long result = number;
  register std::uintptr_t child_tid asm("r10") = words[3];
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
      : "D"(words[0]), "S"(words[1]), "d"(words[2]), "r"(child_tid), "r"(child_function),
        "r"(child_argument)
      : "rcx", "r11", "memory", "cc");
  return result;
}
#elif defined(__i386__)
CODEEXEC_IN_CHILD long call_with_child(long number, const std::uintptr_t (&words)[4],
                                       int (*function)(void*), void* argument) {
  (void)argument;  // lies on the child's stack
  long result = number;
  asm volatile(
      "int $0x80\n\t"
      "testl %%eax, %%eax\n\t"
      "jnz 1f\n\t"
      "xorl %%ebp, %%ebp\n\t"
      "call *%%esi\n\t"
      "hlt\n"
      "1:"
      : "+a"(result)
      : "b"(words[0]), "c"(words[1]), "d"(words[2]), "S"(function), "D"(words[3])
      : "memory", "cc");
  return result;
}
#elif defined(__aarch64__)
CODEEXEC_IN_CHILD long call_with_child(long number, const std::uintptr_t (&words)[4],
                                       int (*function)(void*), void* argument) {
  register std::uintptr_t result asm("x0") = words[0];
  register std::uintptr_t second asm("x1") = words[1];
  register std::uintptr_t third asm("x2") = words[2];
  register std::uintptr_t child_tid asm("x4") = words[3];
  register int (*child_function)(void*) asm("x5") = function;
  register void* child_argument asm("x6") = argument;
  register long call asm("x8") = number;
  asm volatile(
      "svc #0\n\t"
      "cbnz x0, 1f\n\t"
      "mov x29, #0\n\t"
      "mov x30, #0\n\t"
      "mov x0, x6\n\t"
      "blr x5\n\t"
      "brk #0\n"
      "1:"
      : "+r"(result)
      : "r"(second), "r"(third), "r"(child_tid), "r"(child_function), "r"(child_argument), "r"(call)
      : "memory", "cc");
  return static_cast<long>(result);
}
#else
CODEEXEC_IN_CHILD long call_with_child(long number, const std::uintptr_t (&words)[4],
                                       int (*function)(void*), void* argument) {
  // Other processors have no sandbox, and only its supervisor looks at what is cleared at the end.
  if (number != SYS_clone) return -ENOSYS;
  const int pid = ::clone(function, reinterpret_cast<void*>(words[1]),
                          static_cast<int>(words[0]) & ~CLONE_CHILD_CLEARTID, argument,
                          reinterpret_cast<int*>(words[2]));
  return pid < 0 ? -errno : pid;
}
#endif

// The older call. Kernels before Linux 5.3 know no clone3, nor does qemu-user, and a container's
// filter may refuse it, as it cannot look into its arguments.
CODEEXEC_IN_CHILD long old_clone(const CloneRequest& request, std::uint64_t flags, char* top,
                                 int* pidfd) {
  const std::uintptr_t words[4] = {
      static_cast<std::uintptr_t>(flags) | static_cast<std::uintptr_t>(request.exit_signal),
      reinterpret_cast<std::uintptr_t>(top), reinterpret_cast<std::uintptr_t>(pidfd),
      reinterpret_cast<std::uintptr_t>(request.cleared_at_end)};
  return call_with_child(SYS_clone, words, request.function, request.argument);
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
  char* top = request.stack + request.stack_size;
#if defined(__i386__)  // takes the argument of a function from the stack
  top -= 16;
  *reinterpret_cast<void**>(top) = request.argument;
#endif
  arguments.stack = reinterpret_cast<std::uintptr_t>(request.stack);
  arguments.stack_size = static_cast<std::uint64_t>(top - request.stack);
  cleared = true;
  constexpr long clone3_number = 435;  // the same on every architecture
  const std::uintptr_t words[4] = {reinterpret_cast<std::uintptr_t>(&arguments), sizeof arguments};
  long pid = call_with_child(clone3_number, words, request.function, request.argument);
  if (pid != -ENOSYS && pid != -EPERM && pid != -EINVAL) return pid;
  cleared = false;
  pid = old_clone(request, flags, top, request.pidfd);
  // An emulator (qemu-user) knows no CLONE_PIDFD; the caller then has no pidfd from here.
  if (pid == -EINVAL && request.pidfd)
    pid = old_clone(request, flags & ~std::uint64_t{CLONE_PIDFD}, top, nullptr);
  return pid;
}

}  // namespace inner

#endif

}  // namespace v0_1
}  // namespace codeexec
