// Bytes on their way between an agent and its client, and how many may be.
#pragma once

#include "agent/frames_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

inline constexpr std::size_t stream_window = std::size_t{256} << 10;
inline constexpr std::size_t most_window = std::size_t{8} << 20;

// Gives a pipe more room, so that both ends wake up less often for a flood. A failure is ignored.
void widen_pipe(int fd);

}  // namespace inner

// Bytes on their way to a descriptor that does not block. Linear in what goes through it.
struct SendQueue {
  std::string bytes = {};  // frames are added at its end
  std::size_t written = 0;

  bool empty() const { return written == bytes.size(); }
  std::size_t size() const { return bytes.size() - written; }
  void clear() { *this = {}; }
  // As write(2), of all that waits.
  ssize_t write_to(int fd);
};

// What the receiver of a stream has allowed the sender. The last one of n commands gets
// most_window / n, and each at least stream_window: together at most
// (1 + ln n) * most_window + n * stream_window.
struct StreamWindow {
  std::size_t left = stream_window;     // bytes that may still come
  std::size_t allowed = stream_window;  // `left` after the last credit, and what had come

  // So many came. False: that is more than was allowed.
  bool use(std::size_t bytes) {
    if (bytes > left) return false;
    left -= bytes;
    return true;
  }
  // So many more may come, when `held` of those that came are not taken, while so many commands
  // run; 0 as long as that is not worth a frame.
  std::size_t credit(std::size_t held, std::size_t commands);
};

// The streams of a command there, or of a connection of one. The mutex of the link guards them.
struct RemoteStreams {
  // One on its way to its reader.
  struct Flow {
    UniqueFd reader = UniqueFd();
    UniqueFd writer = UniqueFd();
    SendQueue waiting = SendQueue();  // does not fit into the pipe
    StreamWindow window = StreamWindow();
    std::size_t untaken = 0;  // bytes that came and were not read
    bool ended = false;       // no more come
    bool is_socket = false;   // the writer is read from, too
    // False: they come from an agent that does not keep to the window.
    bool take(std::string_view bytes);
    void write();
    // Writes, and returns the credit that the sender then gets, or 0; so many share the room.
    std::size_t pass(std::size_t sharers);
  };
  // Where input comes from: a pipe, or a connection's socket until that ends, then until it closes.
  enum class Source : unsigned char { pipe, socket, closing, nothing };

  Flow out = Flow();
  Flow err = Flow();
  UniqueFd input_reader = UniqueFd();
  std::string_view input = {};  // sent before the bytes in that pipe
  std::size_t input_window = stream_window;
  std::uint32_t id = 0;
  bool running = false;  // it has begun there, and no end has come
  Source source = Source::pipe;

  int input_fd() const {
    return source == Source::pipe      ? input_reader.get()
           : source == Source::nothing ? -1
                                       : out.writer.get();
  }
  Flow& flow(Channel channel) { return channel == Channel::out ? out : err; }
  // False: no agent sends such a frame.
  bool take_credit(const Frame& frame, Channel wanted);
};

}  // namespace v0_1
}  // namespace codeexec
