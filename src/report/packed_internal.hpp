// Constant texts in half of their size: packed by the compiler, unpacked when they are used.
//
// The texts are ASCII. In a packed one
//   0ccccccc            is a character
//   1lllhhhh dddddddd   stands for the l + 3 characters which begin hd + 1 characters before
// pack_text() knows the last two places of each three characters, by a hash, and nothing more: that
// is quick enough for compilers, and better search makes the texts only a twentieth smaller.
#pragma once

#include "report/report_internal.hpp"

#include "base/base.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

template <std::size_t Size>
struct PackedText {
  char bytes[Size] = {};
  std::string text() const { return unpacked({bytes, Size}); }
};

constexpr std::size_t longest_packed_match = 10;
constexpr std::size_t farthest_packed_match = 4096;

// Writes the packed text to `out`, unless that is null. Returns its size.
constexpr std::size_t pack_text(const char* text, std::size_t length, char* out) {
  std::uint16_t places[4096][2] = {};  // behind the first of three characters, by their hash
  std::size_t size = 0;
  std::size_t same_until = 0;  // characters before this one are in a match that was written
  for (std::size_t at = 0; at < length; ++at) {
    std::size_t same = 0;
    std::size_t distance = 0;
    if (at + 2 < length) {
      const auto hash = static_cast<std::size_t>(text[at] * 961 + text[at + 1] * 31 + text[at + 2]);
      std::uint16_t(&known)[2] = places[hash % 4096];
      for (int i = 0; i < 2 && at >= same_until; ++i) {
        const std::size_t back = at + 1 - known[i];
        if (known[i] == 0 || back > farthest_packed_match) continue;
        std::size_t count = 0;
        while (count < longest_packed_match && at + count < length &&
               text[at + count] == text[at + count - back])
          ++count;
        if (count > same) distance = back;
        same = count > same ? count : same;
      }
      known[1] = known[0];
      known[0] = static_cast<std::uint16_t>(at + 1);
    }
    if (at < same_until) continue;
    if (same < 3) {
      if (out) out[size] = text[at];
      ++size;
      continue;
    }
    const std::size_t code = 0x8000 | ((same - 3) << 12) | (distance - 1);
    if (out) {
      out[size] = static_cast<char>(code >> 8);
      out[size + 1] = static_cast<char>(code & 0xff);
    }
    size += 2;
    same_until = at + same;
  }
  return size;
}

// pack<pack_text(text, sizeof text - 1, nullptr)>(text)
template <std::size_t Size, std::size_t Length>
constexpr PackedText<Size> pack(const char (&text)[Length]) {
  static_assert(Length < 65536, "places are 16 bits");
  PackedText<Size> packed;
  pack_text(text, Length - 1, packed.bytes);
  return packed;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
