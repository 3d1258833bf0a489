// UTF-8 and base64.
#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <memory>
#include <set>

#include "../../helpers/support.hpp"

// UTF-8 -------------------------------------------------------------------------------------------

namespace {

// UTF-8 of a code point by arithmetic, without regard to what is well-formed.
std::string encode(unsigned long point) {
  const auto byte = [](unsigned long value) { return static_cast<char>(value); };
  if (point < 0x80) return {byte(point)};
  if (point < 0x800) return {byte(0xc0 | point >> 6), byte(0x80 | (point & 63))};
  if (point < 0x10000)
    return {byte(0xe0 | point >> 12), byte(0x80 | (point >> 6 & 63)), byte(0x80 | (point & 63))};
  return {byte(0xf0 | point >> 18), byte(0x80 | (point >> 12 & 63)), byte(0x80 | (point >> 6 & 63)),
          byte(0x80 | (point & 63))};
}

// The oracle for well-formedness: the set of the encodings of all Unicode scalar values.
class Encodings {
 public:
  Encodings() : three_(new std::bitset<1u << 24>), four_() {
    for (unsigned long point = 0; point <= 0x10ffff; ++point) {
      if (point >= 0xd800 && point <= 0xdfff) continue;
      const std::string bytes = encode(point);
      if (bytes.size() == 2) two_.set(index(bytes, 0, 2));
      if (bytes.size() == 3) three_->set(index(bytes, 0, 3));
      if (bytes.size() == 4) four_.insert(bytes);
    }
  }

  // Length of the encoding that begins at the offset, or 0. No encoding begins another one.
  std::size_t length_at(std::string_view text, std::size_t at) const {
    const std::size_t left = text.size() - at;
    if (static_cast<unsigned char>(text[at]) < 0x80) return 1;
    if (left >= 2 && two_[index(text, at, 2)]) return 2;
    if (left >= 3 && (*three_)[index(text, at, 3)]) return 3;
    if (left >= 4 && four_.count(std::string(text.substr(at, 4))) != 0) return 4;
    return 0;
  }

  std::size_t first_invalid(std::string_view text) const {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = length_at(text, at);
      if (length == 0) return at;
      at += length;
    }
    return std::string_view::npos;
  }

 private:
  static std::size_t index(std::string_view text, std::size_t at, std::size_t size) {
    std::size_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
      value = value << 8 | static_cast<unsigned char>(text[at + i]);
    return value;
  }
  std::bitset<1u << 16> two_ = {};
  std::unique_ptr<std::bitset<1u << 24>> three_;
  std::set<std::string> four_;
};

const Encodings& encodings() {
  static const Encodings all;
  return all;
}

// The decoder of the WHATWG Encoding Standard, section 8.1.1, step by step.
std::string decoded(std::string_view bytes, std::uint64_t* invalid) {
  std::string text;
  std::string pending;
  unsigned needed = 0;
  unsigned lower = 0x80;
  unsigned upper = 0xbf;
  const auto reject = [&](std::size_t size) {
    text += "\xef\xbf\xbd";
    *invalid += size;
    pending.clear();
    needed = 0;
    lower = 0x80;
    upper = 0xbf;
  };
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const unsigned byte = static_cast<unsigned char>(bytes[i]);
    if (needed == 0) {
      if (byte <= 0x7f) {
        text += bytes[i];
        continue;
      }
      if (byte >= 0xc2 && byte <= 0xdf) {
        needed = 1;
      } else if (byte >= 0xe0 && byte <= 0xef) {
        if (byte == 0xe0) lower = 0xa0;
        if (byte == 0xed) upper = 0x9f;
        needed = 2;
      } else if (byte >= 0xf0 && byte <= 0xf4) {
        if (byte == 0xf0) lower = 0x90;
        if (byte == 0xf4) upper = 0x8f;
        needed = 3;
      } else {
        reject(1);
        continue;
      }
      pending += bytes[i];
      continue;
    }
    if (byte < lower || byte > upper) {
      reject(pending.size());
      --i;
      continue;
    }
    lower = 0x80;
    upper = 0xbf;
    pending += bytes[i];
    if (--needed == 0) {
      text += pending;
      pending.clear();
    }
  }
  if (needed != 0) reject(pending.size());
  return text;
}

const std::array<unsigned char, 26> telling_bytes = {
    0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf,
    0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xfe, 0xff};

std::string random_bytes(support::Random& random, std::size_t longest) {
  std::string text;
  for (std::size_t left = random.below(longest + 1); left > 0; --left) {
    switch (random.below(4)) {
      case 0:
        text += static_cast<char>(telling_bytes[random.below(telling_bytes.size())]);
        break;
      case 1:
        text += static_cast<char>(random.below(128));
        break;
      default:
        text += encode(random.below(0x110000));
    }
  }
  return text;
}

void check_decoding(const std::string& bytes) {
  std::uint64_t expected_count = 0;
  std::uint64_t count = 0;
  const std::string expected = decoded(bytes, &expected_count);
  const std::string text = codeexec::to_utf8(bytes, &count);
  if (text == expected && count == expected_count) return;
  CAPTURE(bytes);
  CHECK(text == expected);
  CHECK(count == expected_count);
}

}  // namespace

TEST_CASE("UTF-8: every sequence of one to three bytes is judged as the set of encodings says") {
  const Encodings& oracle = encodings();
  long wrong = 0;
  std::string text;
  const auto check = [&] {
    const std::size_t expected = oracle.first_invalid(text);
    if (codeexec::find_invalid_utf8(text) != expected) ++wrong;
    if (codeexec::is_utf8(text) != (expected == std::string_view::npos)) ++wrong;
  };
  for (unsigned size = 1; size <= 3; ++size) {
    text.assign(size, '\0');
    for (unsigned long value = 0; value < 1ul << (8 * size); ++value) {
      for (unsigned i = 0; i < size; ++i) text[i] = static_cast<char>(value >> (8 * i) & 255);
      check();
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("UTF-8: every code point of four bytes, and its neighbours, are judged right") {
  const Encodings& oracle = encodings();
  long wrong = 0;
  for (unsigned long point = 0x10000; point <= 0x13ffff; ++point) {
    const std::string bytes = encode(point);
    if (codeexec::is_utf8(bytes) != (point <= 0x10ffff)) ++wrong;
  }
  for (const unsigned char a : telling_bytes)
    for (const unsigned char b : telling_bytes)
      for (const unsigned char c : telling_bytes)
        for (const unsigned char d : telling_bytes) {
          const std::string bytes = {static_cast<char>(a), static_cast<char>(b),
                                     static_cast<char>(c), static_cast<char>(d)};
          if (codeexec::find_invalid_utf8(bytes) != oracle.first_invalid(bytes)) ++wrong;
        }
  CHECK(wrong == 0);
}

TEST_CASE("UTF-8: what is wrong is found at any distance") {
  for (std::size_t before = 0; before < 40; ++before)
    for (std::size_t after = 0; after < 20; ++after) {
      const std::string left(before, 'a');
      const std::string right(after, 'b');
      REQUIRE(codeexec::find_invalid_utf8(left + "\x80" + right) == before);
      REQUIRE(codeexec::find_invalid_utf8(left + "\xe2\x82" + right) == before);
      REQUIRE(codeexec::find_invalid_utf8(left + "\xc3\xa9" + right + "\xff") ==
              before + 2 + after);
      REQUIRE(codeexec::is_utf8(left + "\xf0\x9f\x98\x80" + right));
    }
  CHECK(codeexec::is_utf8(""));
  CHECK(codeexec::is_utf8(std::string_view("a\0b", 3)));
}

TEST_CASE("UTF-8: replacement follows the WHATWG decoder") {
  CHECK(codeexec::to_utf8("a\xff"
                          "b") ==
        "a\xef\xbf\xbd"
        "b");
  CHECK(codeexec::to_utf8("\xf0\x9f\x98") == "\xef\xbf\xbd");
  CHECK(codeexec::to_utf8("\xed\xa0\x80") == "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
  CHECK(codeexec::to_utf8("\xc0\xaf") == "\xef\xbf\xbd\xef\xbf\xbd");
  CHECK(codeexec::to_utf8("\xe2\x82\xac") == "\xe2\x82\xac");

  for (unsigned value = 0; value < 65536; ++value)
    check_decoding({static_cast<char>(value >> 8), static_cast<char>(value & 255)});
  for (const unsigned char a : telling_bytes)
    for (const unsigned char b : telling_bytes)
      for (const unsigned char c : telling_bytes)
        for (const unsigned char d : telling_bytes)
          check_decoding({static_cast<char>(a), static_cast<char>(b), static_cast<char>(c),
                          static_cast<char>(d)});
  support::Random random;
  for (int i = 0; i < 50000; ++i) check_decoding(random_bytes(random, 24));
}

TEST_CASE("UTF-8: the count of replaced bytes is added to what was there") {
  std::uint64_t invalid = 100;
  (void)codeexec::to_utf8("\xf0\x9f\x98 \xff ok", &invalid);
  CHECK(invalid == 104);
  (void)codeexec::to_utf8("fine", &invalid);
  CHECK(invalid == 104);
}

TEST_CASE("UTF-8: megabytes of garbage take linear time") {
  const std::string garbage(4 << 20, '\xf0');
  CHECK(codeexec::to_utf8(garbage).size() == garbage.size() * 3);
}

TEST_CASE("UTF-8: prefixes and suffixes are as long as can be without cutting a sequence") {
  const Encodings& oracle = encodings();
  support::Random random;
  long wrong = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string text = random_bytes(random, 12);
    // Where the text may be cut: not inside a well-formed sequence.
    std::vector<bool> boundary(text.size() + 1, true);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = oracle.length_at(text, at);
      for (std::size_t k = 1; k < length; ++k) boundary[at + k] = false;
      at += length ? length : 1;
    }
    for (std::size_t size = 0; size <= text.size() + 2; ++size) {
      std::size_t expected = std::min(size, text.size());
      while (!boundary[expected]) --expected;
      const std::string_view prefix = codeexec::utf8_prefix(text, size);
      if (prefix.data() != text.data() || prefix.size() != expected) ++wrong;

      expected = text.size() - std::min(size, text.size());
      while (!boundary[expected]) ++expected;
      const std::string_view suffix = codeexec::utf8_suffix(text, size);
      if (suffix.data() + suffix.size() != text.data() + text.size()) ++wrong;
      if (suffix.size() != text.size() - expected) ++wrong;
    }
  }
  CHECK(wrong == 0);
  CHECK(codeexec::utf8_prefix("", 5).empty());
  CHECK(codeexec::utf8_suffix("", 5).empty());
  CHECK(codeexec::utf8_prefix("abc", static_cast<std::size_t>(-1)) == "abc");
  CHECK(codeexec::utf8_suffix("abc", static_cast<std::size_t>(-1)) == "abc");
}

// Base64 ------------------------------------------------------------------------------------------

TEST_CASE("base64: the vectors of RFC 4648, section 10") {
  CHECK(codeexec::to_base64("") == "");
  CHECK(codeexec::to_base64("f") == "Zg==");
  CHECK(codeexec::to_base64("fo") == "Zm8=");
  CHECK(codeexec::to_base64("foo") == "Zm9v");
  CHECK(codeexec::to_base64("foob") == "Zm9vYg==");
  CHECK(codeexec::to_base64("fooba") == "Zm9vYmE=");
  CHECK(codeexec::to_base64("foobar") == "Zm9vYmFy");
  CHECK(codeexec::to_base64(std::string_view("\0\xff\xfb\xef\xbe", 5)) == "AP/7774=");
}

TEST_CASE("base64: random bytes come back through a decoder") {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  support::Random random;
  for (std::size_t size = 0; size < 200; ++size) {
    std::string bytes;
    while (bytes.size() < size) bytes += static_cast<char>(random.below(256));
    const std::string text = codeexec::to_base64(bytes);
    REQUIRE(text.size() == (size + 2) / 3 * 4);
    std::string back;
    unsigned long bits = 0;
    int count = 0;
    for (const char c : text) {
      if (c == '=') break;
      const std::size_t digit = digits.find(c);
      REQUIRE(digit != std::string::npos);
      bits = (bits << 6 | digit) & 0xffffff;
      count += 6;
      if (count >= 8) {
        count -= 8;
        back += static_cast<char>(bits >> count & 255);
      }
    }
    REQUIRE(back == bytes);
  }
}

TEST_CASE("base64 is decoded: the vectors of RFC 4648, section 10, also without padding") {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"Zg==", "f"},
                                                         {"Zm8=", "fo"},
                                                         {"Zm9v", "foo"},
                                                         {"Zm9vYg==", "foob"},
                                                         {"Zm9vYmE=", "fooba"},
                                                         {"Zm9vYmFy", "foobar"}};
  for (const auto& [text, bytes] : vectors) {
    const std::string padded = text;
    const std::string expected = bytes;
    CAPTURE(padded);
    CHECK(codeexec::from_base64(padded) == expected);
    CHECK(codeexec::from_base64(padded.substr(0, padded.find('='))) == expected);
    std::string broken = "\r\n";
    for (const char c : padded) broken += {c, ' ', '\t', '\n'};
    CHECK(codeexec::from_base64(broken) == expected);
  }
  CHECK(codeexec::from_base64("AP/7774=") == std::string("\0\xff\xfb\xef\xbe", 5));
}

TEST_CASE("base64: what is none of that kind gives nothing") {
  for (const char* text : {"Z",    "Zg=",  "Zg===", "Zm9v=", "Zm9v==",     "Zm9v====", "=",
                           "==",   "====", "Z=g=",  "=Zg=",  "Zg==Zg==",   "Zm9vY",    "Zh==",
                           "Zm9=", "Zm9-", "Zm9_",  "Zm9v!", "Zm\xc3\xa9", "Z.g="}) {
    CAPTURE(std::string(text));
    CHECK_FALSE(codeexec::from_base64(text).has_value());
  }
  CHECK_FALSE(codeexec::from_base64(std::string_view("Zm9\0", 4)).has_value());
}

TEST_CASE("base64: random bytes survive there and back") {
  support::Random random;
  for (std::size_t size = 0; size < 300; ++size) {
    std::string bytes;
    while (bytes.size() < size) bytes += static_cast<char>(random.below(256));
    REQUIRE(codeexec::from_base64(codeexec::to_base64(bytes)) == bytes);
  }
}
