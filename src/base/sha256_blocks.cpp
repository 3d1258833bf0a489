// SHA-256 (FIPS 180-4) of whole blocks: in plain C++, and by the instructions that processors have
// for it. Those are used without the compilers' headers for them, which take long to compile.

#include "base/base.hpp"
#include "base/base_internal.hpp"

// gcc and clang, for two kinds of processors. Other compilers say that they are gcc, too, and lack
// what is used of it.
#ifndef CODEEXEC_HAS_SHA_INSTRUCTIONS
#if defined(__GNUC__) && !defined(__EDG__) && !defined(__NVCOMPILER) && \
    (defined(__x86_64__) || (defined(__aarch64__) && defined(__AARCH64EL__)))
#define CODEEXEC_HAS_SHA_INSTRUCTIONS 1
#else
#define CODEEXEC_HAS_SHA_INSTRUCTIONS 0
#endif
#endif

namespace codeexec {
inline namespace v0_1 {

namespace {

alignas(16) constexpr std::uint32_t sha256_constants[64] = {
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

void take_block(Sha256State& state, const unsigned char* block) {
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
  std::copy(std::begin(state), std::end(state), v);
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
  for (std::size_t i = 0; i < 8; ++i) state[i] += v[i];
}

void take_blocks_plainly(Sha256State& state, const unsigned char* blocks, std::size_t count) {
  for (; count > 0; --count, blocks += sha256_block_size) take_block(state, blocks);
}

#if CODEEXEC_HAS_SHA_INSTRUCTIONS

// Four words, the first in the lowest bits.
typedef std::uint32_t Words __attribute__((vector_size(16)));

#if defined(__x86_64__)

#define CODEEXEC_SHA256_TARGET __attribute__((target("sha,sse4.1")))

struct CpuId {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

CpuId cpuid(unsigned leaf) {
  CpuId id;
  __asm__ volatile("cpuid" : "=a"(id.a), "=b"(id.b), "=c"(id.c), "=d"(id.d) : "a"(leaf), "c"(0));
  return id;
}

bool has_instructions() {
  constexpr unsigned ssse3_and_sse41 = 1u << 9 | 1u << 19;
  constexpr unsigned sha = 1u << 29;
  return cpuid(0).a >= 7 && (cpuid(1).c & ssse3_and_sse41) == ssse3_and_sse41 &&
         (cpuid(7).b & sha) != 0;
}

// The eight words as the instructions take them: f e b a, and h g d c.
struct Halves {
  Words first, second;
};

inline Halves CODEEXEC_SHA256_TARGET halves_of(const Sha256State& s) {
  return {Words{s[5], s[4], s[1], s[0]}, Words{s[7], s[6], s[3], s[2]}};
}

inline Sha256State CODEEXEC_SHA256_TARGET whole_of(const Halves& h) {
  return {h.first[3], h.first[2], h.second[3], h.second[2],
          h.first[1], h.first[0], h.second[1], h.second[0]};
}

inline void CODEEXEC_SHA256_TARGET four_rounds(Halves& h, Words words) {
  typedef int V __attribute__((vector_size(16)));
  const Words others = {words[2], words[3], 0, 0};
  h.second = Words(__builtin_ia32_sha256rnds2(V(h.second), V(h.first), V(words)));
  h.first = Words(__builtin_ia32_sha256rnds2(V(h.first), V(h.second), V(others)));
}

// The schedule goes on: four words from the sixteen before.
inline Words CODEEXEC_SHA256_TARGET next_words(Words a, Words b, Words c, Words d) {
  typedef int V __attribute__((vector_size(16)));
  const Words sum = Words(__builtin_ia32_sha256msg1(V(a), V(b))) + Words{c[1], c[2], c[3], d[0]};
  return Words(__builtin_ia32_sha256msg2(V(sum), V(d)));
}

#else

#define CODEEXEC_SHA256_TARGET

// For this instruction alone, whatever the program is compiled for.
#define CODEEXEC_SHA256_ASM(text) ".arch_extension sha2\n" text

bool has_instructions() {
#if defined(__ARM_FEATURE_SHA2) || defined(__ARM_FEATURE_CRYPTO)
  return true;
#elif defined(__linux__)
  constexpr unsigned long sha2 = 1ul << 6;
  return (::getauxval(AT_HWCAP) & sha2) != 0;
#else
  return false;
#endif
}

struct Halves {
  Words first, second;
};

inline Halves halves_of(const Sha256State& s) {
  return {Words{s[0], s[1], s[2], s[3]}, Words{s[4], s[5], s[6], s[7]}};
}

inline Sha256State whole_of(const Halves& h) {
  return {h.first[0],  h.first[1],  h.first[2],  h.first[3],
          h.second[0], h.second[1], h.second[2], h.second[3]};
}

inline void four_rounds(Halves& h, Words words) {
  const Words before = h.first;
  __asm__(CODEEXEC_SHA256_ASM("sha256h %q0, %q1, %2.4s")
          : "+w"(h.first)
          : "w"(h.second), "w"(words));
  __asm__(CODEEXEC_SHA256_ASM("sha256h2 %q0, %q1, %2.4s")
          : "+w"(h.second)
          : "w"(before), "w"(words));
}

// The schedule goes on: four words from the sixteen before.
inline Words next_words(Words a, Words b, Words c, Words d) {
  __asm__(CODEEXEC_SHA256_ASM("sha256su0 %0.4s, %1.4s") : "+w"(a) : "w"(b));
  __asm__(CODEEXEC_SHA256_ASM("sha256su1 %0.4s, %1.4s, %2.4s") : "+w"(a) : "w"(c), "w"(d));
  return a;
}

#undef CODEEXEC_SHA256_ASM

#endif

inline Words CODEEXEC_SHA256_TARGET words_at(const unsigned char* bytes) {
  std::uint32_t w[4];
  std::memcpy(w, bytes, sizeof w);
  return Words{__builtin_bswap32(w[0]), __builtin_bswap32(w[1]), __builtin_bswap32(w[2]),
               __builtin_bswap32(w[3])};
}

void CODEEXEC_SHA256_TARGET take_blocks_by_instructions(Sha256State& state,
                                                        const unsigned char* blocks,
                                                        std::size_t count) {
  Halves halves = halves_of(state);
  for (; count > 0; --count, blocks += sha256_block_size) {
    const Halves before = halves;
    Words a = words_at(blocks);
    Words b = words_at(blocks + 16);
    Words c = words_at(blocks + 32);
    Words d = words_at(blocks + 48);
    for (std::size_t i = 0; i < 64; i += 4) {
      Words constants;
      std::memcpy(&constants, sha256_constants + i, sizeof constants);
      four_rounds(halves, a + constants);
      const Words next = next_words(a, b, c, d);
      a = b;
      b = c;
      c = d;
      d = next;
    }
    halves.first += before.first;
    halves.second += before.second;
  }
  state = whole_of(halves);
}

#undef CODEEXEC_SHA256_TARGET

#endif  // CODEEXEC_HAS_SHA_INSTRUCTIONS

}  // namespace

inline namespace inner {

Sha256Blocks plain_sha256() { return take_blocks_plainly; }

Sha256Blocks fast_sha256() {
#if CODEEXEC_HAS_SHA_INSTRUCTIONS
  static const bool is_there = has_instructions();
  if (is_there) return take_blocks_by_instructions;
#endif
  return nullptr;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
