// JSON's strings a word at a time, and the table that finds equal names.

#include "json/json.hpp"
#include "json/json_internal.hpp"

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Which bytes end a run. `ends_in`: when a string is read, `ends_out`: when it is written.
struct JsonBytes {
  bool ends_in[256] = {};
  bool ends_out[256] = {};
  constexpr JsonBytes() {
    for (int c = 0; c < 256; ++c) {
      ends_in[c] = c < 0x20 || c == '"' || c == '\\' || c >= 0x80;
      ends_out[c] = ends_in[c] || c == 0x7f;
    }
  }
};
constexpr JsonBytes json_bytes;

// True when a byte of the word is a quote, a backslash, a control below 0x20 or not ASCII. (The
// usual tricks: x - 1 borrows into the high bit of a zero byte only when ~x has that bit.)
bool json_word_ends_run(std::uint64_t word) {
  constexpr std::uint64_t ones = 0x0101010101010101u;
  constexpr std::uint64_t highs = 0x8080808080808080u;
  const std::uint64_t quote = word ^ (ones * '"');
  const std::uint64_t slash = word ^ (ones * '\\');
  const std::uint64_t found =
      ((quote - ones) & ~quote) | ((slash - ones) & ~slash) | ((word - ones * 0x20) & ~word) | word;
  return (found & highs) != 0;
}

}  // namespace

inline namespace inner {

const char* json_run_in(const char* at, const char* end) {
  for (; end - at >= 8; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    if (json_word_ends_run(word)) break;
  }
  while (at != end && !json_bytes.ends_in[static_cast<unsigned char>(*at)]) ++at;
  return at;
}

const char* json_run_out(const char* at, const char* end) {
  constexpr std::uint64_t ones = 0x0101010101010101u;
  constexpr std::uint64_t highs = 0x8080808080808080u;
  for (; end - at >= 8; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    if (json_word_ends_run(word) || ((word + ones) & highs) != 0) break;
  }
  while (at != end && !json_bytes.ends_out[static_cast<unsigned char>(*at)]) ++at;
  return at;
}

Utf8Step json_utf8_step(const char* at, const char* end) {
  return utf8_step(reinterpret_cast<const unsigned char*>(at), static_cast<std::size_t>(end - at));
}

}  // namespace inner

namespace {

// equal names -------------------------------------------------------------------------------------

// SipHash-1-3 (Aumasson and Bernstein, 2012) under a key that is drawn once per process.
class JsonNameHash {
 public:
  std::uint64_t operator()(std::string_view text) const noexcept {
    static const Key key = draw_key();
    State v = {key.k0 ^ 0x736f6d6570736575u, key.k1 ^ 0x646f72616e646f6du,
               key.k0 ^ 0x6c7967656e657261u, key.k1 ^ 0x7465646279746573u};
    const std::uint64_t length = static_cast<std::uint64_t>(text.size()) << 56;
    for (; text.size() >= 8; text.remove_prefix(8)) compress(v, word(text.substr(0, 8)));
    compress(v, length | word(text));
    v.c ^= 0xff;
    round(v);
    round(v);
    round(v);
    return v.a ^ v.b ^ v.c ^ v.d;
  }

 private:
  struct Key {
    std::uint64_t k0, k1;
  };
  struct State {
    std::uint64_t a, b, c, d;
  };

  static Key draw_key() noexcept {
    Key key = {};
    if (::getentropy(&key, sizeof key) == 0) return key;
    // No random source: the clock and the place of the stack are better than nothing.
    key.k0 = static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
    key.k1 = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&key));
    return key;
  }
  static std::uint64_t word(std::string_view bytes) noexcept {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  static std::uint64_t turn(std::uint64_t x, int bits) noexcept {
    return x << bits | x >> (64 - bits);
  }
  static void round(State& v) noexcept {
    v.a += v.b;
    v.b = turn(v.b, 13) ^ v.a;
    v.a = turn(v.a, 32);
    v.c += v.d;
    v.d = turn(v.d, 16) ^ v.c;
    v.a += v.d;
    v.d = turn(v.d, 21) ^ v.a;
    v.c += v.b;
    v.b = turn(v.b, 17) ^ v.c;
    v.c = turn(v.c, 32);
  }
  static void compress(State& v, std::uint64_t m) noexcept {
    v.d ^= m;
    round(v);
    v.a ^= m;
  }
};

// Finds names among the first members of an object, which are added one after the other.
class JsonNameTable {
 public:
  explicit JsonNameTable(const Json::Object& members) : members_(members) {
    if (members.size() <= few) return;
    std::size_t size = 4 * few;
    while (size < 2 * members.size()) size *= 2;
    slots_.resize(size);
  }

  // The index of the member that has this name, or `count` after adding it under that index.
  std::size_t find_or_add(const std::string& name, std::size_t count) {
    if (slots_.empty()) {
      std::size_t i = 0;
      while (i < count && members_[i].name != name) ++i;
      return i;
    }
    std::size_t slot = static_cast<std::size_t>(hash_(name));
    for (;; ++slot) {
      std::size_t& entry = slots_[slot & (slots_.size() - 1)];
      if (entry == 0) {
        entry = count + 1;
        return count;
      }
      if (members_[entry - 1].name == name) return entry - 1;
    }
  }

 private:
  static constexpr std::size_t few = 16;
  const Json::Object& members_;
  std::vector<std::size_t> slots_;  // index + 1, or 0; a power of two, at most half full
  JsonNameHash hash_;
};

}  // namespace

inline namespace inner {

void json_keep_last(Json::Object& members) {
  if (members.size() < 2) return;
  JsonNameTable names(members);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::size_t place = names.find_or_add(members[i].name, kept);
    if (place < kept) {
      members[place].value = std::move(members[i].value);
      continue;
    }
    if (kept != i) members[kept] = std::move(members[i]);
    ++kept;
  }
  members.resize(kept);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
