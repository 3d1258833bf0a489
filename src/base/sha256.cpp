// SHA-256 (FIPS 180-4).

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr std::uint32_t sha256_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t rotate_right(std::uint32_t value, unsigned bits) {
  return (value >> bits) | (value << (32 - bits));
}

inline void sha256_round(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t& d,
                         std::uint32_t e, std::uint32_t f, std::uint32_t g, std::uint32_t& h,
                         std::uint32_t constant) {
  const std::uint32_t first = h + constant + ((e & f) ^ (~e & g)) +
                              (rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25));
  const std::uint32_t second = ((a & b) ^ (a & c) ^ (b & c)) +
                               (rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22));
  d += first;
  h = first + second;
}

}  // namespace

namespace detail {

void Sha256::take_block(const unsigned char* block) {
  std::uint32_t schedule[64];
  for (std::size_t i = 0; i < 16; ++i)
    schedule[i] = std::uint32_t{block[4 * i]} << 24 | std::uint32_t{block[4 * i + 1]} << 16 |
                  std::uint32_t{block[4 * i + 2]} << 8 | std::uint32_t{block[4 * i + 3]};
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t a = schedule[i - 15];
    const std::uint32_t b = schedule[i - 2];
    schedule[i] = schedule[i - 16] + schedule[i - 7] +
                  (rotate_right(a, 7) ^ rotate_right(a, 18) ^ (a >> 3)) +
                  (rotate_right(b, 17) ^ rotate_right(b, 19) ^ (b >> 10));
  }
  std::uint32_t v[8];
  std::copy(std::begin(state_), std::end(state_), v);
  // The eight words change places with each round; so do the arguments here.
  for (std::size_t i = 0; i < 64; i += 8) {
    const std::uint32_t* const w = schedule + i;
    const std::uint32_t* const k = sha256_constants + i;
    sha256_round(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], w[0] + k[0]);
    sha256_round(v[7], v[0], v[1], v[2], v[3], v[4], v[5], v[6], w[1] + k[1]);
    sha256_round(v[6], v[7], v[0], v[1], v[2], v[3], v[4], v[5], w[2] + k[2]);
    sha256_round(v[5], v[6], v[7], v[0], v[1], v[2], v[3], v[4], w[3] + k[3]);
    sha256_round(v[4], v[5], v[6], v[7], v[0], v[1], v[2], v[3], w[4] + k[4]);
    sha256_round(v[3], v[4], v[5], v[6], v[7], v[0], v[1], v[2], w[5] + k[5]);
    sha256_round(v[2], v[3], v[4], v[5], v[6], v[7], v[0], v[1], w[6] + k[6]);
    sha256_round(v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[0], w[7] + k[7]);
  }
  for (std::size_t i = 0; i < 8; ++i) state_[i] += v[i];
}

void Sha256::add(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t at = size_ % sizeof block_;
    const std::size_t count = std::min(bytes.size(), sizeof block_ - at);
    const bool whole = count == sizeof block_;
    if (whole)
      take_block(reinterpret_cast<const unsigned char*>(bytes.data()));
    else
      std::memcpy(block_ + at, bytes.data(), count);
    size_ += count;
    bytes.remove_prefix(count);
    if (!whole && at + count == sizeof block_) take_block(block_);
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
