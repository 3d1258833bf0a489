// The agent's end of the connections that commands make to the client's proxy.

#include "agent/connections_internal.hpp"
#include "agent/flow_internal.hpp"
#include "agent/frames_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/platform_internal.hpp"
#include "process/child_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// Any free port, so that several commands have one each. The kernel bounds the backlog itself.
UniqueFd listen_for_proxy(unsigned& port) {
#if defined(__linux__)
  constexpr int backlog = 512;
  UniqueFd fd(
      above_standard_streams(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (!fd || ::bind(fd.get(), any, size) != 0 || ::listen(fd.get(), backlog) != 0 ||
      ::getsockname(fd.get(), any, &size) != 0)
    return {};
  port = ntohs(address.sin_port);
  return fd;
#else
  port = 0;
  errno = ENOSYS;
  return {};
#endif
}

}  // namespace inner

// Connections go before their socket, to which they point.
void ProxyConnections::remove(std::uint32_t command) {
  for (Iterator next = connections_.begin(); next != connections_.end();)
    next = next->listener->command == command ? drop(next) : std::next(next);
  listeners_.remove_if([&](const Listener& listener) { return listener.command == command; });
}

// Without frames: the client has gone, or ends all connections with this agent.
void ProxyConnections::clear() {
  connections_.clear();
  listeners_.clear();
}

// Nothing is accepted or read without room: the bytes wait in the sockets of their programs. After
// a shortage of descriptors, accepting waits 100 ms, as a socket that cannot be accepted stays
// ready.
Clock::time_point ProxyConnections::watch(std::vector<pollfd>& set, std::size_t room,
                                          std::size_t commands) {
  first_ = set.size();
  room_ = room;
  commands_ = commands;
  if (retry_ != Clock::time_point::max() && Clock::now() >= retry_)
    retry_ = Clock::time_point::max();
  // The first connection becomes the last one, so that each gets its share of the room.
  if (connections_.size() > 1)
    connections_.splice(connections_.end(), connections_, connections_.begin());
  for (const Listener& listener : listeners_)
    set.push_back({room > 0 && has_room(listener) ? listener.socket.get() : -1, POLLIN, 0});
  for (const Connection& connection : connections_) {
    int events = connection.out.waiting.empty() ? 0 : POLLOUT;
    if (room > 0 && connection.input_window > 0) events |= POLLIN;
    if (connection.source == RemoteStreams::Source::nothing) events &= ~POLLIN;
    set.push_back({events != 0 ? connection.out.writer.get() : -1, static_cast<short>(events), 0});
  }
  return retry_;
}

// Goes through the set in the order in which watch() has made it. Connections come before sockets,
// as accepting adds connections that the set does not have.
void ProxyConnections::serve(const std::vector<pollfd>& set, char* buffer) {
  std::size_t at = first_ + listeners_.size();
  for (Iterator next = connections_.begin(); next != connections_.end(); ++at) {
    if (set[at].revents != 0) {
      if (!next->out.waiting.empty()) write(*next);
      read(*next, buffer);
    }
    next = next->is_over() ? drop(next) : std::next(next);
  }
  at = first_;
  for (Listener& listener : listeners_)
    if (set[at++].revents != 0) accept_all(listener);
}

// Takes what waits, as far as a command may have connections. Numbers begin again after 2^31 of
// them, and one that is in use is left out.
void ProxyConnections::accept_all([[maybe_unused]] Listener& listener) {
#if defined(__linux__)
  while (has_room(listener)) {
    UniqueFd fd(above_standard_streams(
        ::accept4(listener.socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)));
    if (!fd && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (!fd && errno != EAGAIN) retry_ = later(Clock::now(), std::chrono::milliseconds(100));
    if (!fd) return;
    Connection& connection = connections_.emplace_back();
    do connection.id = ++last_id_ | connection_bit;
    while (&*find(connection.id) != &connection);
    connection.listener = &listener;
    connection.out.writer = std::move(fd);
    connection.out.is_socket = true;
    connection.source = RemoteStreams::Source::socket;
    ++listener.connections;
    send_(FrameKind::connect, connection.id, number_bytes(listener.command));
  }
#endif
}

auto ProxyConnections::find(std::uint32_t id) -> Iterator {
  return find_where(connections_,
                    [id](const Connection& connection) { return connection.id == id; });
}

// Reports its end to the client, which may have the number again then.
auto ProxyConnections::drop(Iterator connection) -> Iterator {
  --connection->listener->connections;
  send_(FrameKind::end, connection->id, {});
  return connections_.erase(connection);
}

// Reads once. No bytes are the end of this direction, which an empty `out` reports; so is an error,
// as the program has gone then.
void ProxyConnections::read(Connection& connection, char* buffer) {
  const std::size_t most = std::min({longest_payload, connection.input_window, room_});
  if (connection.source == RemoteStreams::Source::nothing || most == 0) return;
  const ssize_t size = ::read(connection.input_fd(), buffer, most);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  const std::size_t bytes = size > 0 ? static_cast<std::size_t>(size) : 0;
  connection.input_window -= bytes;
  room_ -= bytes;
  if (bytes == 0) connection.source = RemoteStreams::Source::nothing;
  send_(FrameKind::out, connection.id, {buffer, bytes});
}

// Writes what waits, and gives the client credit for it.
void ProxyConnections::write(Connection& connection) {
  const std::size_t credit = connection.out.pass(commands_ + connections_.size());
  if (credit != 0) send_(FrameKind::credit, connection.id, credit_text(Channel::input, credit));
}

// `input` and `credit` are as for commands. `input_end` ends the direction to the program; a signal
// ends the other one as well, and SIGKILL drops what waits. A frame for one that has just ended is
// ignored: the client could not know.
bool ProxyConnections::take(const Frame& frame) {
  const bool is_input = frame.kind == FrameKind::input;
  const bool is_credit = frame.kind == FrameKind::credit;
  const bool is_end = frame.kind == FrameKind::input_end && frame.payload.empty();
  const bool is_signal = frame.kind == FrameKind::signal && frame.payload.size() == 1;
  const Iterator connection = find(frame.id);
  if (connection == connections_.end()) return is_input || is_credit || is_end || is_signal;
  if (is_credit) return connection->take_credit(frame, Channel::out);
  if (is_input ? !connection->out.take(frame.payload) : !is_end && !is_signal) return false;
  if (is_signal) connection->source = RemoteStreams::Source::nothing;
  if (is_signal && frame.payload == kill_text) connection->out.waiting.clear();
  if (!is_input) connection->out.ended = true;
  write(*connection);
  if (connection->is_over()) drop(connection);
  return true;
}

}  // namespace v0_1
}  // namespace codeexec
