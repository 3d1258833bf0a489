// A listening socket of a command's own network is sent to this program.

#include "sandbox/capabilities_internal.hpp"
#include "sandbox/listener_internal.hpp"
#include "sandbox/system_calls_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

#if CODEEXEC_HAS_SANDBOX

int ListenerPass::prepare(std::uint16_t port) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return errno;
  ours_.reset(above_standard_streams(ends[0]));
  theirs_.reset(above_standard_streams(ends[1]));
  if (!ours_ || !theirs_) return EMFILE;
  channel_ = theirs_.get();
  address_.sin_family = AF_INET;
  address_.sin_port = htons(port);
  address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  text_ = {&byte_, 1};
  message_.msg_iov = &text_;
  message_.msg_iovlen = 1;
  static_assert(CMSG_SPACE(sizeof(int)) <= sizeof control_);
  message_.msg_control = control_;
  message_.msg_controllen = CMSG_SPACE(sizeof(int));
  cmsghdr* const header = CMSG_FIRSTHDR(&message_);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  descriptor_ = reinterpret_cast<int*>(CMSG_DATA(header));
  return 0;
}

CODEEXEC_IN_CHILD long ListenerPass::pass() const {
  constexpr int backlog = 512;
  const long fd = raw(SYS_socket, AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return fd;
  // Connections of the last command that had the port may not be quite over.
  long result = raw(SYS_setsockopt, fd, SOL_SOCKET, SO_REUSEADDR, &again_, sizeof again_);
  if (result == 0) result = raw(SYS_bind, fd, &address_, sizeof address_);
  if (result == 0) result = raw(SYS_listen, fd, backlog);
  *descriptor_ = static_cast<int>(fd);
  if (result == 0) result = raw(SYS_sendmsg, channel_, &message_, MSG_NOSIGNAL);
  raw(SYS_close, fd);
  return result < 0 ? result : 0;
}

UniqueFd ListenerPass::take() {
  UniqueFd last;
  while (::recvmsg(ours_.get(), &message_, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) == 1)
    if (CMSG_FIRSTHDR(&message_)) last.reset(above_standard_streams(*descriptor_));
  return last;
}

#endif

}  // namespace v0_1
}  // namespace codeexec
