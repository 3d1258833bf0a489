// SHA-256 of what comes in pieces.

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace detail {

Sha256::Sha256(Sha256Blocks take_blocks)
    : take_blocks_(take_blocks ? take_blocks : plain_sha256()) {}

void Sha256::add(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t at = size_ % sizeof block_;
    const auto* const given = reinterpret_cast<const unsigned char*>(bytes.data());
    std::size_t count = bytes.size() - bytes.size() % sizeof block_;
    if (at == 0 && count > 0) {
      take_blocks_(state_, given, count / sizeof block_);
    } else {
      count = std::min(bytes.size(), sizeof block_ - at);
      std::memcpy(block_ + at, given, count);
      if (at + count == sizeof block_) take_blocks_(state_, block_, 1);
    }
    size_ += count;
    bytes.remove_prefix(count);
  }
}

std::string Sha256::hex() const {
  Sha256 copy = *this;
  const std::uint64_t bits = size_ * 8;
  std::string padding(1, '\x80');
  padding.resize(1 + (119 - size_ % 64) % 64);
  for (unsigned shift = 64; shift > 0; shift -= 8)
    padding += static_cast<char>(static_cast<unsigned char>(bits >> (shift - 8)));
  copy.add(padding);
  std::string text;
  for (const std::uint32_t word : copy.state_)
    for (unsigned shift = 32; shift > 0; shift -= 8)
      append_hex(text, static_cast<unsigned char>(word >> (shift - 8)));
  return text;
}

}  // namespace detail

inline namespace inner {

std::string sha256(std::string_view bytes) {
  detail::Sha256 hash;
  hash.add(bytes);
  return hash.hex();
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
