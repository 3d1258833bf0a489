// Frames.

#include "agent/frames_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr std::size_t frame_head = 9;

}  // namespace

inline namespace inner {

std::string number_bytes(std::size_t value) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8)
    bytes += static_cast<char>(static_cast<unsigned char>(value >> shift));
  return bytes;
}

std::uint32_t number_in(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// The caller keeps payloads at most longest_payload long; the other end refuses longer ones.
void put_frame(std::string& out, FrameKind kind, std::uint32_t id, std::string_view payload) {
  out += number_bytes(payload.size());
  out += static_cast<char>(kind);
  out += number_bytes(id);
  out += payload;
}

std::string credit_text(Channel channel, std::size_t bytes) {
  return static_cast<char>(channel) + number_bytes(bytes);
}

// Checks the channel, as the bytes may be anything: later code uses it as an enumerator.
bool read_credit(const Frame& frame, Channel& channel, std::size_t& bytes) {
  if (frame.payload.size() != 5 || static_cast<unsigned char>(frame.payload[0]) > 2) return false;
  channel = static_cast<Channel>(frame.payload[0]);
  bytes = number_in(frame.payload.substr(1));
  return true;
}

}  // namespace inner

// Goes through what came, in one of these states:
//
//   held_ empty, left_ 0    at the start of a frame   its head is read, in place if it is whole
//   held_ not empty         in a head or a payload    move_in() completes it from the next bytes
//   left_ > 0               in a stream's payload     each piece is handed on as it comes
//
// Payloads of streams are handed on in pieces, as most bytes are theirs: they are copied nowhere,
// and a reader gets the first of them before the last has come. All others are handed on whole. An
// empty payload of a stream is a frame like any other, as it may be an end.
bool FrameReader::add(std::string_view bytes, FunctionRef<bool(const Frame&)> use) {
  while (!bytes.empty()) {
    // A frame that came in pieces is put together, any other is used where it lies.
    const auto move_in = [&](std::size_t size) {
      const std::size_t missing = size - std::min(size, held_.size());
      held_ += bytes.substr(0, missing);
      bytes.remove_prefix(std::min(missing, bytes.size()));
      return held_.size() >= size;
    };
    if (left_ > 0) {
      const std::string_view piece = bytes.substr(0, left_);
      left_ -= piece.size();
      bytes.remove_prefix(piece.size());
      if (!use({static_cast<FrameKind>(kind_), id_, piece})) return false;
      continue;
    }
    const bool whole_head = held_.empty() && bytes.size() >= frame_head;
    if (!whole_head && !move_in(frame_head)) return true;
    const std::string_view head = whole_head ? bytes : std::string_view(held_);
    const std::size_t payload = number_in(head);
    if (payload > longest_payload) return false;
    const Frame frame = {static_cast<FrameKind>(head[4]), number_in(head.substr(5)), {}};
    if (payload > 0 && (frame.kind == FrameKind::input || frame.kind == FrameKind::out ||
                        frame.kind == FrameKind::err)) {
      kind_ = static_cast<unsigned char>(frame.kind);
      id_ = frame.id;
      left_ = payload;
      if (whole_head) bytes.remove_prefix(frame_head);
      held_.clear();
      continue;
    }
    const std::size_t size = frame_head + payload;
    if (whole_head && bytes.size() >= size) {
      if (!use({frame.kind, frame.id, bytes.substr(frame_head, payload)})) return false;
      bytes.remove_prefix(size);
      continue;
    }
    if (!move_in(size)) return true;
    const bool goes_on = use({frame.kind, frame.id, std::string_view(held_).substr(frame_head)});
    held_.clear();
    if (!goes_on) return false;
  }
  return true;
}

}  // namespace v0_1
}  // namespace codeexec
