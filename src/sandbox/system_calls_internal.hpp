// System calls without libc, and clone, for children on borrowed memory.
#pragma once

#include "sandbox/capabilities_internal.hpp"

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if CODEEXEC_HAS_CLONE

inline namespace inner {

// An argument of a system call. It goes through a register, so that one function takes all calls.
struct CallWord {
  CODEEXEC_UNCHECKED CallWord(int word) : value(word) {}
  CODEEXEC_UNCHECKED CallWord(unsigned word) : value(static_cast<long>(word)) {}
  CODEEXEC_UNCHECKED CallWord(long word) : value(word) {}
  CODEEXEC_UNCHECKED CallWord(unsigned long word) : value(static_cast<long>(word)) {}
  CODEEXEC_UNCHECKED CallWord(const volatile void* word) : value(reinterpret_cast<long>(word)) {}
  long value;
};

// A system call: its result, or an errno made negative. It does without libc, whose function would
// write to the errno of a thread of the parent that goes on running.
inline CODEEXEC_IN_CHILD long raw_call(long number, const long (&words)[6]) {
#if defined(__x86_64__) && !defined(__ILP32__)
  register long fourth asm("r10") = words[3];
  register long fifth asm("r8") = words[4];
  register long sixth asm("r9") = words[5];
  long result = number;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(words[0]), "S"(words[1]), "d"(words[2]), "r"(fourth), "r"(fifth), "r"(sixth)
               : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long call asm("x8") = number;
  register long result asm("x0") = words[0];
  register long second asm("x1") = words[1];
  register long third asm("x2") = words[2];
  register long fourth asm("x3") = words[3];
  register long fifth asm("x4") = words[4];
  register long sixth asm("x5") = words[5];
  asm volatile("svc #0"
               : "+r"(result)
               : "r"(call), "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth)
               : "memory", "cc");
  return result;
#else
  const long result = ::syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
  return result < 0 ? -errno : result;
#endif
}

inline CODEEXEC_IN_CHILD long raw(long number, CallWord first, CallWord second, CallWord third,
                                  CallWord fourth, CallWord fifth, CallWord sixth) {
  const long words[6] = {first.value,  second.value, third.value,
                         fourth.value, fifth.value,  sixth.value};
  return raw_call(number, words);
}

inline CODEEXEC_IN_CHILD long raw(long number, CallWord first = 0, CallWord second = 0,
                                  CallWord third = 0, CallWord fourth = 0, CallWord fifth = 0) {
  return raw(number, first, second, third, fourth, fifth, 0);
}

inline constexpr long kernel_signals = _NSIG - 1;
inline constexpr long kernel_sigset_size = kernel_signals / 8;

// A set of signals as the kernel takes it. libc's functions leave out two that it uses itself (32
// and 33).
struct KernelSigset {
  unsigned char bits[kernel_sigset_size];
};

CODEEXEC_IN_CHILD void set_signal_mask(const KernelSigset* mask, KernelSigset* before);

#if CODEEXEC_HAS_SANDBOX
// Appends a number in decimal digits, none for 0. Returns the new size of the text.
CODEEXEC_IN_CHILD std::size_t append_number(char* text, std::size_t size, std::uint32_t number);
#endif

// Blocks all signals, so that no handler of the host runs in a child on its memory.
class SignalPause {
 public:
  SignalPause() {
    KernelSigset all;
    std::memset(&all, 0xff, sizeof all);
    set_signal_mask(&all, &before_);
  }
  SignalPause(const SignalPause&) = delete;
  SignalPause& operator=(const SignalPause&) = delete;
  ~SignalPause() { set_signal_mask(&before_, nullptr); }

 private:
  KernelSigset before_ = {};
};

// A process on borrowed memory that runs `function` on `stack`.
struct CloneRequest {
  std::uint64_t flags;
  int (*function)(void*);
  void* argument;
  char* stack;
  std::size_t stack_size;
  int* pidfd;                               // or null
  int exit_signal;                          // to this program, when it ends; or 0
  std::uint32_t* cleared_at_end = nullptr;  // a futex: set to 0 and woken at its end; or null
};

// A pid or a negative errno. `cleared` is set before the process begins: true when the kernel has
// removed the host's signal handlers from it.
CODEEXEC_IN_CHILD long clone_process(const CloneRequest& request, bool& cleared);

}  // namespace inner

#endif

}  // namespace v0_1
}  // namespace codeexec
