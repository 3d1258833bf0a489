// The agent's end of the connections that commands make to the client's proxy.

#include "place/connections_internal.hpp"
#include "place/place_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "base/platform_internal.hpp"
#include "process/child_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

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

void PlaceConnections::add(std::uint32_t command, UniqueFd listener) {
  listeners_.push_back({command, std::move(listener)});
}

void PlaceConnections::remove(std::uint32_t command) {
  for (Place next = connections_.begin(); next != connections_.end();)
    next = next->listener->command == command ? drop(next) : std::next(next);
  is_full_ = false;
  listeners_.remove_if([&](const Listener& listener) { return listener.command == command; });
}

void PlaceConnections::clear() {
  connections_.clear();
  listeners_.clear();
}

void PlaceConnections::watch(std::vector<pollfd>& set, std::size_t room, std::size_t commands) {
  first_ = set.size();
  room_ = room;
  commands_ = commands;
  // The first connection becomes the last one, so that each gets its share of the room.
  if (connections_.size() > 1)
    connections_.splice(connections_.end(), connections_, connections_.begin());
  for (const Listener& listener : listeners_)
    set.push_back({room > 0 && has_room(listener) ? listener.socket.get() : -1, POLLIN, 0});
  for (const Connection& connection : connections_) {
    int events = connection.waiting.empty() ? 0 : POLLOUT;
    if (!connection.is_read && connection.credit > 0 && room > 0) events |= POLLIN;
    set.push_back({events != 0 ? connection.socket.get() : -1, static_cast<short>(events), 0});
  }
}

void PlaceConnections::serve(const std::vector<pollfd>& set, char* buffer) {
  std::size_t at = first_ + listeners_.size();
  for (Place next = connections_.begin(); next != connections_.end(); ++at) {
    if (set[at].revents != 0) {
      if (!next->waiting.empty()) write(*next);
      read(*next, buffer);
    }
    next = next->is_over() ? drop(next) : std::next(next);
  }
  at = first_;
  for (Listener& listener : listeners_)
    if (set[at++].revents != 0) accept_all(listener);
}

void PlaceConnections::accept_all([[maybe_unused]] Listener& listener) {
#if defined(__linux__)
  while (has_room(listener)) {
    UniqueFd fd(above_standard_streams(
        ::accept4(listener.socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)));
    if (!fd) {
      is_full_ = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      return;
    }
    Connection& connection = connections_.emplace_back();
    do connection.id = ++last_id_ | connection_bit;
    while (&*find(connection.id) != &connection);
    connection.listener = &listener;
    connection.socket = std::move(fd);
    ++listener.connections;
    send_(FrameKind::connect, connection.id, number_bytes(listener.command));
  }
#endif
}

auto PlaceConnections::find(std::uint32_t id) -> Place {
  return find_where(connections_,
                    [id](const Connection& connection) { return connection.id == id; });
}

auto PlaceConnections::drop(Place connection) -> Place {
  is_full_ = false;
  --connection->listener->connections;
  send_(FrameKind::end, connection->id, {});
  return connections_.erase(connection);
}

void PlaceConnections::read(Connection& connection, char* buffer) {
  const std::size_t most = std::min({longest_payload, connection.credit, room_});
  if (connection.is_read || most == 0) return;
  const ssize_t size = ::read(connection.socket.get(), buffer, most);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  const std::size_t bytes = size > 0 ? static_cast<std::size_t>(size) : 0;
  connection.credit -= bytes;
  room_ -= bytes;
  connection.is_read = bytes == 0;
  send_(FrameKind::out, connection.id, {buffer, bytes});
}

// A command that has closed its socket gets nothing more.
void PlaceConnections::write(Connection& connection) {
  const int fd = connection.socket.get();
  PlaceQueue& waiting = connection.waiting;
  if (!waiting.empty() && waiting.write_to(fd) < 0 && errno != EAGAIN && errno != EINTR) {
    waiting.clear();
    connection.ended = true;
  }
  if (connection.ended && waiting.empty()) {
    ::shutdown(fd, SHUT_WR);
    connection.is_shut = true;
  }
  if (connection.ended) return;
  const std::size_t credit =
      connection.window.credit(waiting.size(), commands_ + connections_.size());
  if (credit != 0) send_(FrameKind::credit, connection.id, credit_text(Channel::input, credit));
}

// A frame for one that has just ended is ignored: the client could not know.
bool PlaceConnections::take(const Frame& frame) {
  const std::string_view payload = frame.payload;
  const Place connection = find(frame.id);
  const bool is_there = connection != connections_.end();
  Channel channel{};
  std::size_t bytes = 0;
  switch (frame.kind) {
    case FrameKind::input:
      if (!is_there || connection->is_shut) return true;
      if (connection->ended || !connection->window.use(payload.size())) return false;
      connection->waiting.bytes += payload;
      write(*connection);
      break;
    case FrameKind::input_end:
      if (!payload.empty()) return false;
      if (!is_there || connection->is_shut) return true;
      connection->ended = true;
      write(*connection);
      break;
    case FrameKind::credit:
      if (!read_credit(frame, channel, bytes) || channel != Channel::out) return false;
      if (!is_there) return true;
      if (bytes > most_window - connection->credit) return false;
      connection->credit += bytes;
      return true;
    case FrameKind::signal:
      if (payload.size() != 1) return false;
      if (is_there) connection->is_read = connection->is_shut = true;
      break;
    default:
      return false;
  }
  if (is_there && connection->is_over()) drop(connection);
  return true;
}

}  // namespace v0_1
}  // namespace codeexec
