// What a command elsewhere writes and reads, and its connections at the client's end.

#include "place/place_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/network_internal.hpp"
#include "process/child_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

bool PlaceStreams::Flow::take(std::string_view bytes) {
  if (bytes.empty() || !window.use(bytes.size())) return false;
  untaken += bytes.size();
  if (waiting.empty() && writer) {
    const ssize_t size = write_to_pipe(writer.get(), bytes);
    if (size > 0) bytes.remove_prefix(static_cast<std::size_t>(size));
  }
  waiting.bytes += bytes;
  return true;
}

// What has no reader any more is dropped.
void PlaceStreams::Flow::write() {
  if (!waiting.empty() && writer && waiting.write_to(writer.get()) < 0 && errno != EAGAIN &&
      errno != EINTR) {
    waiting.clear();
    untaken = 0;
    ended = ended || is_socket;
  }
  if (!ended || !waiting.empty()) return;
  if (is_socket)
    ::shutdown(writer.get(), SHUT_WR);
  else
    writer.reset();
}

std::size_t PlaceStreams::Flow::pass(std::size_t sharers) {
  write();
  untaken = waiting.size();
  return ended || !writer ? 0 : window.credit(untaken, sharers);
}

bool PlaceStreams::take_credit(const Frame& frame, Channel wanted) {
  Channel channel{};
  std::size_t bytes = 0;
  if (!read_credit(frame, channel, bytes) || channel != wanted) return false;
  if (bytes > most_window - input_window) return false;
  input_window += bytes;
  return true;
}

// False: no agent sends such a frame.
bool PlaceLink::take_for_connection(const Frame& frame) {
  if (frame.kind == FrameKind::connect) return take_connect(frame);
  const auto at = connections_.find(frame.id);
  if (at == connections_.end() || !at->second.running) return false;
  PlaceStreams& connection = at->second;
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

bool PlaceLink::take_connect(const Frame& frame) {
  const auto command = commands_.find(frame.payload.size() == 4 ? number_in(frame.payload) : 0);
  std::size_t running = 0;
  for (const auto& [id, connection] : connections_) running += connection.running ? 1 : 0;
  if (command == commands_.end() || (command->second && !command->second->streams_.running) ||
      running == most_connections || connections_.count(frame.id) != 0)
    return false;
  PlaceStreams& made = connections_[frame.id];
  made.id = frame.id;
  made.running = made.out.is_socket = true;
  made.source = PlaceStreams::Source::socket;
  if (command->second && command->second->connect) made.out.writer = command->second->connect();
  if (made.out.writer) return true;
  send(FrameKind::signal, frame.id, kill_text);
  return queue_.size() < most_window;  // or it asks for more and more, and reads nothing
}

// Brings to the proxy what it takes. Of connections that have ended, a few may go on with that.
void PlaceLink::serve(PlaceStreams& connection) {
  PlaceStreams::Flow& out = connection.out;
  const std::size_t credit = out.pass(commands_.size() + connections_.size());
  if (connection.running) {
    if (credit != 0) send(FrameKind::credit, connection.id, credit_text(Channel::out, credit));
    return;
  }
  connection.source = PlaceStreams::Source::nothing;
  if (out.waiting.empty() || !out.writer || connections_.size() > most_connections + 32)
    connections_.erase(connection.id);
}

}  // namespace v0_1
}  // namespace codeexec
