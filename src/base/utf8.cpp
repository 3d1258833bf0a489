// UTF-8: checking, repairing, and cutting between characters.

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

void append_utf8(std::uint32_t code, std::string& out) {
  const auto byte = [&out](std::uint32_t value) { out += static_cast<char>(value); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xc0 | code >> 6);
    byte(0x80 | (code & 63));
  } else if (code < 0x10000) {
    byte(0xe0 | code >> 12);
    byte(0x80 | (code >> 6 & 63));
    byte(0x80 | (code & 63));
  } else {
    byte(0xf0 | (code >> 18 & 7));
    byte(0x80 | (code >> 12 & 63));
    byte(0x80 | (code >> 6 & 63));
    byte(0x80 | (code & 63));
  }
}

std::size_t cut_at_end(std::string_view text) {
  const std::size_t most = std::min<std::size_t>(3, text.size());
  for (std::size_t back = 1; back <= most; ++back) {
    const std::size_t start = text.size() - back;
    const auto* s = reinterpret_cast<const unsigned char*>(text.data()) + start;
    if ((*s & 0xc0) == 0x80) continue;
    return utf8_step(s, back).cut ? back : 0;
  }
  return 0;
}

std::size_t cut_at_start(std::string_view text) {
  std::size_t size = 0;
  while (size < 3 && size < text.size() && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80)
    ++size;
  return size;
}

}  // namespace inner

namespace {

// Number of leading ASCII bytes, eight at a time.
std::size_t ascii_run(const char* s, std::size_t size) {
  std::size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, s + i, 8);
    if (word & 0x8080808080808080u) break;
  }
  while (i < size && static_cast<unsigned char>(s[i]) < 0x80) ++i;
  return i;
}

}  // namespace

std::size_t find_invalid_utf8(std::string_view bytes) noexcept {
  const auto* s = reinterpret_cast<const unsigned char*>(bytes.data());
  std::size_t i = 0;
  while (i < bytes.size()) {
    i += ascii_run(bytes.data() + i, bytes.size() - i);
    if (i == bytes.size()) break;
    const Utf8Step step = utf8_step(s + i, bytes.size() - i);
    if (step.good == 0) return i;
    i += step.good;
  }
  return std::string_view::npos;
}

bool is_utf8(std::string_view bytes) noexcept {
  return find_invalid_utf8(bytes) == std::string_view::npos;
}

std::string to_utf8(std::string_view bytes, std::uint64_t* invalid_bytes) {
  std::size_t bad = find_invalid_utf8(bytes);
  std::string text;
  while (bad != std::string_view::npos) {
    text.append(bytes.substr(0, bad));
    text += replacement_character;
    const auto* s = reinterpret_cast<const unsigned char*>(bytes.data()) + bad;
    const std::size_t length = utf8_step(s, bytes.size() - bad).bad;
    if (invalid_bytes) *invalid_bytes += length;
    bytes.remove_prefix(bad + length);
    bad = find_invalid_utf8(bytes);
  }
  text.append(bytes);
  return text;
}

std::string_view utf8_prefix(std::string_view text, std::size_t size) noexcept {
  if (size >= text.size()) return text;
  // Only a sequence that starts in the last three bytes can reach over the cut.
  for (std::size_t back = 1; back <= 3 && back <= size; ++back) {
    const std::size_t start = size - back;
    const auto* s = reinterpret_cast<const unsigned char*>(text.data()) + start;
    if ((*s & 0xc0) == 0x80) continue;
    if (utf8_step(s, text.size() - start).good > back) size = start;
    break;
  }
  return text.substr(0, size);
}

std::string_view utf8_suffix(std::string_view text, std::size_t size) noexcept {
  if (size >= text.size()) return text;
  const std::size_t cut = text.size() - size;
  for (std::size_t back = 1; back <= 3 && back <= cut; ++back) {
    const std::size_t start = cut - back;
    const auto* s = reinterpret_cast<const unsigned char*>(text.data()) + start;
    if ((*s & 0xc0) == 0x80) continue;
    const std::size_t good = utf8_step(s, text.size() - start).good;
    if (good > back) return text.substr(start + good);
    break;
  }
  return text.substr(cut);
}

}  // namespace v0_1
}  // namespace codeexec
