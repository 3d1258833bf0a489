// The system call filter: the program that a table of calls becomes.
//
// A program for the kernel's packet filter, which looks at each system call before it is made: its
// number and arguments, but not what an argument points to. It starts like this:
//
//   another architecture than ours    kill: i386 calls (int 0x80) have other numbers
//   a number above those in the table ENOSYS, as on an older kernel; so have all x32 numbers
//   all others                        a search tree over the numbers leads to the answer
//
// When a filter is installed, the kernel runs it once for each number, to remember which calls need
// no look at all. Installing therefore costs the sum of the ways to all answers. So the tree halves
// the range of numbers, not the list of rules.
//
// Numbers are compared as 32 bits without a sign, and so are the arguments that the kernel takes as
// an int: it ignores the upper half, and a filter that does not can be fooled with it.
#pragma once

#include "sandbox/capabilities_internal.hpp"
#include "sandbox/sandbox.hpp"

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if CODEEXEC_HAS_FILTER

inline namespace inner {

// The program is built from its end, so that the targets of all jumps, which only lead forward, are
// known when a jump is added.
class FilterProgram {
 public:
  // A place in the program: how many instructions there are from it to the end.
  using Label = std::size_t;

  Label answer(std::uint32_t action) { return add(BPF_RET | BPF_K, action, 0, 0); }

  // Loads 32 bits of the seccomp_data at `offset`, then goes on at what was added last.
  Label load(std::size_t offset) {
    return add(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset), 0, 0);
  }

  // Clears the bits that are not in `mask` in what was loaded, then goes on in the same way.
  Label mask(std::uint32_t mask) { return add(BPF_ALU | BPF_AND | BPF_K, mask, 0, 0); }

  // Compares what was loaded with `operand`. `test`: BPF_JEQ equal, BPF_JGE not less, BPF_JSET has
  // one of its bits.
  Label branch(std::uint16_t test, std::uint32_t operand, Label yes, Label no) {
    yes = within_reach(yes);
    no = within_reach(no);
    return add(static_cast<std::uint16_t>(BPF_JMP | BPF_K | test), operand, skipping_to(yes),
               skipping_to(no));
  }

  std::vector<sock_filter> finish() const { return {reversed_.rbegin(), reversed_.rend()}; }

 private:
  // A branch skips 255 instructions at most. The bound here is one less: the jump that brings one
  // target near moves the other one away by one.
  Label within_reach(Label target) {
    const std::size_t skipped = reversed_.size() - target;
    if (skipped < 255) return target;
    return add(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(skipped), 0, 0);
  }

  std::uint8_t skipping_to(Label target) const {
    return static_cast<std::uint8_t>(reversed_.size() - target);
  }

  Label add(std::uint16_t code, std::uint32_t k, std::uint8_t yes, std::uint8_t no) {
    reversed_.push_back(sock_filter{code, yes, no, k});
    return reversed_.size();
  }

  std::vector<sock_filter> reversed_ = {};
};

using FilterLabel = FilterProgram::Label;

struct FilterOptions {
  Network network = Network::host;
  // With Network::none and loopback: AF_UNIX sockets of all kinds.
  bool unix_sockets = false;
  // Of Landlock; 0: there is none. At 1 and 2 the filter keeps files from being truncated. Below 6
  // it refuses the one kill() that reaches everybody.
  int landlock_abi = 0;
  // The command has a namespace of its own for System V IPC and POSIX message queues.
  bool own_ipc = false;
  // The command has a process table of its own.
  bool own_processes = false;
};

// Any thread may install it, after no_new_privs: it holds nothing but numbers.
std::vector<sock_filter> build_filter(const FilterOptions& options);

// What that filter refuses, from the same code, a line each: the error, the system calls, and after
// a colon which of them or why. A call that is in no line is allowed.
std::vector<std::string> explain_filter(const FilterOptions& options);

}  // namespace inner

#endif  // CODEEXEC_HAS_FILTER

}  // namespace v0_1
}  // namespace codeexec
