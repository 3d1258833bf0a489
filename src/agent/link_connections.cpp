// The client's end of the connections that commands make to its proxy.

#include "agent/command_internal.hpp"
#include "agent/flow_internal.hpp"
#include "agent/frames_internal.hpp"
#include "agent/link_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/network_internal.hpp"
#include "process/child_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// Of the kinds that an agent sends for a connection: `connect` makes it, `credit` allows more
// input, `out` has bytes; an empty `out` ends one direction, an empty `end` both. False: it is none
// of these.
bool AgentLink::take_for_connection(const Frame& frame) {
  if (frame.kind == FrameKind::connect) return take_connect(frame);
  const auto at = connections_.find(frame.id);
  if (at == connections_.end() || !at->second.running) return false;
  RemoteStreams& connection = at->second;
  if (frame.kind == FrameKind::credit) return connection.take_credit(frame, Channel::input);
  if (frame.kind != FrameKind::out && frame.kind != FrameKind::end) return false;
  if (frame.payload.empty()) {
    connection.out.ended = true;
    connection.running = frame.kind == FrameKind::out;
  } else if (frame.kind == FrameKind::end || !connection.out.take(frame.payload)) {
    return false;
  }
  serve(connection);
  return true;
}

// A new connection of a command to the proxy. Without a proxy, or where that has no room, the agent
// is asked to close it at once. False, which ends the link: it belongs to no command, or the agent
// has more of them than it may.
bool AgentLink::take_connect(const Frame& frame) {
  const auto command = commands_.find(frame.payload.size() == 4 ? number_in(frame.payload) : 0);
  std::size_t running = 0;
  for (const auto& [id, connection] : connections_) running += connection.running ? 1 : 0;
  if (command == commands_.end() || (command->second && !command->second->streams_.running) ||
      running == most_connections || connections_.count(frame.id) != 0)
    return false;
  RemoteStreams& made = connections_[frame.id];
  made.id = frame.id;
  made.running = made.out.is_socket = true;
  made.source = RemoteStreams::Source::socket;
  if (command->second && command->second->connect) made.out.writer = command->second->connect();
  if (made.out.writer) return true;
  send(FrameKind::signal, frame.id, kill_text);
  return queue_.size() < most_window;  // or it asks for more and more, and reads nothing
}

// Brings to the proxy what it takes. Of connections that have ended, a few may go on with that.
void AgentLink::serve(RemoteStreams& connection) {
  RemoteStreams::Flow& out = connection.out;
  const std::size_t credit = out.pass(commands_.size() + connections_.size());
  if (connection.running) {
    if (credit != 0) send(FrameKind::credit, connection.id, credit_text(Channel::out, credit));
    return;
  }
  connection.source = RemoteStreams::Source::nothing;
  if (out.waiting.empty() || !out.writer || connections_.size() > most_connections + 32)
    connections_.erase(connection.id);
}

}  // namespace v0_1
}  // namespace codeexec
