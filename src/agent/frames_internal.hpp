// The frames that an agent and its client exchange.
//
// The agent begins with a line: greeting_mark, the number of the protocol and a newline. The client
// looks for that line behind all that ssh or a login script prints. After it both directions carry
// frames, whose numbers are little-endian. A payload has at most 64 KiB.
//
//   0         4      5         9
//   +---------+------+---------+---- ... ----+
//   | size of | kind | number  | payload     |      13 bytes for "ls\n" of command 7:
//   | payload |      | of the  |             |
//   |         |      | command |             |      03 00 00 00  09  07 00 00 00  6c 73 0a
//   +---------+------+---------+---- ... ----+
//
//   kind         by      of       payload
//   ping         both    0        nothing, or a newline; a sign of life
//   hello        client  0        JSON: see new_hello()
//   hello        agent   0        JSON: what the agent has found, or `error`
//   request      client  command  part of a request, when that is too long for one frame
//   start        client  command  the last part, see StartRequest; the command begins. One without
//                                 a program answers a FileMessage: see answer_question()
//   input        client  command  bytes for standard input
//   input_end    client  command  nothing
//   credit       both    command  a Channel in one byte; so many more bytes, in 4, may be sent
//   signal       client  command  its number in one byte; SIGKILL is for all of the command
//   started      agent   command  its number in the place's process table, in 4 bytes, when asked
//   out, err     agent   command  bytes of that stream
//   input_closed agent   command  nothing: the command reads standard input no more
//   session_data agent   command  part of what was written to descriptor 3, before the end
//   end          agent   command  JSON: what became of it; it also ends one that did not start
//   bye          agent   0        nothing: it ends, and all that it has started is dead
//   resize       client  command  rows and columns of its terminal, in 4 bytes each; only to an
//                                 agent that has `resizes` in its hello
//   connect      agent   itself   a command, in 4 bytes, has made a connection to the proxy, which
//                                 is on the side of a client that has `connections` in its hello
//
// A connection has a number of its own with the highest bit set, which the agent chooses. Its bytes
// are `out` and `input`, each with `credit`. An empty `out` and `input_end` end one direction, an
// empty `end` of the agent all of it. The client asks for that by SIGKILL, or by SIGHUP for when
// all input has been written.
//
// The life of a connection, and of a command on it:
//
//   client                               agent
//     | starts the transport ------------> |   a shell there is given the agent first: bring_text()
//     | <----------- "codeexec-place/1\n"  |
//     | hello ----------------------------> |   finds or copies the workspace, makes the sandbox
//     | <------------------------- hello    |
//     | start 1, input 1 -----------------> |   starts the program
//     | <------------ started 1, out 1 ...  |
//     | credit 1 -------------------------> |   as far as `out` was read
//     | <------------------------- end 1    |
//     |      ... a third of keep_alive ...  |
//     | ping --------- and -------- ping    |
//     X  the connection is lost             X   no frame for keep_alive, or the end of the pipe:
//     commands end as `unknown`             commands are killed, and the agent ends
//     the next command connects again
//
// At first stream_window bytes of each stream may be on their way. The receiver allows more by
// `credit` when its reader has taken them, up to the stream's share of most_window, which is
// 400 MiB a second if a round trip takes 20 ms. So a flood of one command does not hold up another
// one, and memory is bounded: 200 commands whose output is not read hold 150 MiB, see StreamWindow.
#pragma once

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

inline constexpr int agent_protocol = 1;
inline constexpr std::string_view greeting_mark = "codeexec-place/";
inline constexpr std::size_t longest_payload = std::size_t{64} << 10;
inline constexpr std::size_t longest_request = std::size_t{64} << 20;

inline constexpr std::uint32_t connection_bit = std::uint32_t{1} << 31;
inline constexpr std::string_view kill_text = "\x09"sv;  // SIGKILL

}  // namespace inner

// Not in `inner`: parts of classes have members of these.
enum class FrameKind : unsigned char {
  ping,
  hello,
  request,
  start,
  input,
  input_end,
  credit,
  signal,
  started,
  out,
  err,
  input_closed,
  session_data,
  end,
  bye,
  resize,
  connect
};
enum class Channel : unsigned char { out, err, input };

inline namespace inner {

struct Frame {
  FrameKind kind;  // any number, as it came
  std::uint32_t id;
  std::string_view payload;
};

void put_frame(std::string& out, FrameKind kind, std::uint32_t id, std::string_view payload);
std::string number_bytes(std::size_t value);  // four of them
std::uint32_t number_in(std::string_view bytes);
// The payload of a credit frame. read_credit() is false for a frame that is none.
std::string credit_text(Channel channel, std::size_t bytes);
bool read_credit(const Frame& frame, Channel& channel, std::size_t& bytes);

// Both ends say that they live each third of the time after which they are given up.
inline std::chrono::milliseconds ping_after(std::chrono::milliseconds keep_alive) {
  return keep_alive / 3;
}

}  // namespace inner

// Finds the frames in bytes that come in any pieces. Holds one frame at most.
class FrameReader {
 public:
  // Calls `use` with each whole frame, and with each piece of one of a stream, as long as it
  // returns true. False: it did not, or a payload is too long.
  bool add(std::string_view bytes, FunctionRef<bool(const Frame&)> use);

 private:
  std::string held_ = {};
  std::size_t left_ = 0;  // to come of a stream's frame
  unsigned char kind_ = 0;
  std::uint32_t id_ = 0;
};

}  // namespace v0_1
}  // namespace codeexec
