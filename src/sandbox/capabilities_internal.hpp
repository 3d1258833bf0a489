// What this system can do: macros that are 0 or 1, and may be set.
#pragma once

#include "base/base_internal.hpp"

// 1: children are made by clone with shared memory and watched through a pidfd. 0: by fork, watched
// by a thread each; for systems without clone, and to test that path on Linux.
#ifndef CODEEXEC_HAS_CLONE
#if defined(__linux__)
#define CODEEXEC_HAS_CLONE 1
#else
#define CODEEXEC_HAS_CLONE 0
#endif
#endif

// 1: commands can be held by the kernel. It takes Linux, a clone that shares memory, and a
// processor whose system calls the filter knows by number. 0: strict is refused, best_effort
// enforces nothing.
#ifndef CODEEXEC_HAS_SANDBOX
#if CODEEXEC_HAS_CLONE && defined(__LP64__) && \
    (defined(__x86_64__) || (defined(__aarch64__) && !defined(__AARCH64EB__)))
#define CODEEXEC_HAS_SANDBOX 1
#else
#define CODEEXEC_HAS_SANDBOX 0
#endif
#elif CODEEXEC_HAS_SANDBOX && !CODEEXEC_HAS_CLONE
#undef CODEEXEC_HAS_SANDBOX
#define CODEEXEC_HAS_SANDBOX 0
#endif

// For code that runs in a child on borrowed memory: instrumentation would write to the shadow state
// of the thread that waits in the parent. clang leaves out that of atomics only by another name.
#if defined(__clang__) && __has_attribute(disable_sanitizer_instrumentation)
#define CODEEXEC_UNCHECKED \
  __attribute__((disable_sanitizer_instrumentation, no_sanitize("address", "thread", "undefined")))
#define CODEEXEC_IN_CHILD __attribute__((noinline)) CODEEXEC_UNCHECKED
#elif defined(__clang__) || defined(__GNUC__)
#define CODEEXEC_UNCHECKED __attribute__((no_sanitize("address", "thread", "undefined")))
#define CODEEXEC_IN_CHILD __attribute__((noinline)) CODEEXEC_UNCHECKED
#else
#define CODEEXEC_UNCHECKED
#define CODEEXEC_IN_CHILD
#endif

// 1: there is a system call filter for this machine. The numbers of the calls are the machine's
// own; x32 and big-endian ARM have others.
#ifndef CODEEXEC_HAS_FILTER
#if defined(__linux__) && defined(__LP64__) && \
    (defined(__x86_64__) || (defined(__aarch64__) && !defined(__AARCH64EB__)))
#define CODEEXEC_HAS_FILTER 1
#else
#define CODEEXEC_HAS_FILTER 0
#endif
#endif
