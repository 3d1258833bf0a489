// The client's end of what a command writes and reads, and of its connections.

#include "place/place_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "process/child_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

bool PlaceStreams::Flow::take(std::string_view bytes) {
  if (bytes.empty() || ended || !window.use(bytes.size())) return false;
  untaken += bytes.size();
  if (waiting.empty() && writer) {
    const ssize_t size = write_to_pipe(writer.get(), bytes);
    if (size > 0) bytes.remove_prefix(static_cast<std::size_t>(size));
  }
  waiting.bytes += bytes;
  return true;
}

bool PlaceStreams::Flow::write() {
  bool is_read = true;
  if (!waiting.empty() && writer && waiting.write_to(writer.get()) < 0 && errno == EPIPE) {
    waiting.clear();
    untaken = 0;
    is_read = false;
  }
  if (ended && waiting.empty() && writer) {
    // Of a socket, whose other direction goes on. A pipe has nothing to shut.
    ::shutdown(writer.get(), SHUT_WR);
    writer.reset();
  }
  return is_read;
}

bool PlaceStreams::take_credit(const Frame& frame) {
  Channel channel{};
  std::size_t bytes = 0;
  if (!read_credit(frame, channel, bytes) || channel != Channel::input) return false;
  if (bytes > most_window - input_window) return false;
  input_window += bytes;
  return true;
}

// False: no agent sends such a frame.
bool PlaceLink::take_for_connection(const Frame& frame) {
  const auto at = connections_.find(frame.id);
  if (frame.kind == FrameKind::connect) {
    if (at != connections_.end() || connections_.size() == most_carried ||
        frame.payload.size() != 4)
      return false;
    const auto command = commands_.find(number_in(frame.payload));
    if (command == commands_.end()) return false;
    PlaceStreams& made = connections_[frame.id];
    made.id = frame.id;
    if (command->second && command->second->connect) made.out.writer = command->second->connect();
    if (made.out.writer)
      made.input_reader.reset(::fcntl(made.out.writer.get(), F_DUPFD_CLOEXEC, 3));
    if (!made.input_reader) send(FrameKind::signal, frame.id, kill_text);
    return true;
  }
  if (at == connections_.end()) return false;
  PlaceStreams& connection = at->second;
  if (frame.kind == FrameKind::credit) return connection.take_credit(frame);
  if (frame.kind == FrameKind::end) {
    connections_.erase(at);
    return frame.payload.empty();
  }
  if (frame.kind != FrameKind::out) return false;
  if (frame.payload.empty())
    connection.out.ended = true;
  else if (!connection.out.take(frame.payload))
    return false;
  serve(connection);
  return true;
}

// Brings to the proxy what it takes.
void PlaceLink::serve(PlaceStreams& connection) {
  PlaceStreams::Flow& out = connection.out;
  if (!out.write()) send(FrameKind::signal, connection.id, kill_text);
  out.untaken = out.waiting.size();
  if (out.ended) return;
  const std::size_t credit = out.window.credit(out.untaken, commands_.size() + connections_.size());
  if (credit != 0) send(FrameKind::credit, connection.id, credit_text(Channel::out, credit));
}

}  // namespace v0_1
}  // namespace codeexec
