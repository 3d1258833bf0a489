// A listening socket of a command's own network, which this program is handed.
#pragma once

#include "sandbox/capabilities_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// The first port of 127.0.0.1 there. The kernel takes those of connections from a range below it.
inline constexpr unsigned proxy_port = 61080;

}  // namespace inner

#if CODEEXEC_HAS_SANDBOX

// Brings the socket over: the first process of the new network makes it and sends its descriptor,
// and this program takes it. Both ends of the way are closed on exec, and the sender keeps no copy.
//
//   prepare()  before the start;  pass()  in the child;  take()  when the start has returned
class ListenerPass {
 public:
  ListenerPass() = default;
  ListenerPass(const ListenerPass&) = delete;
  ListenerPass& operator=(const ListenerPass&) = delete;

  int prepare(std::uint16_t port);  // 0 or errno
  // 0 or a negative errno.
  CODEEXEC_IN_CHILD long pass() const;
  // The last one that was sent, as a start may be tried again; none: nothing was sent.
  UniqueFd take();

 private:
  UniqueFd ours_ = {};
  UniqueFd theirs_ = {};
  // What pass() gives to the kernel, in the memory that it shares with this program.
  int channel_ = -1;
  sockaddr_in address_ = {};
  char byte_ = 0;
  int again_ = 1;
  iovec text_ = {};
  msghdr message_ = {};
  int* descriptor_ = nullptr;  // in `control_`
  alignas(cmsghdr) char control_[64] = {};
};

#endif

}  // namespace v0_1
}  // namespace codeexec
