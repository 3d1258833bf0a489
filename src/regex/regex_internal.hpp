// Characters and ranges of characters.
#pragma once

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace detail {

// The first and the last of a row of numbers: of characters, of places in a text.
struct NumberRange {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

}  // namespace detail

inline namespace inner {

using detail::NumberRange;

// One character of a text: a code point, or one byte of malformed UTF-8, which gets the lone
// surrogate that Python's surrogateescape gives it. No well-formed text contains one.
struct RegexChar {
  std::uint32_t code = 0;
  std::size_t size = 1;
};

RegexChar regex_char_at(std::string_view text, std::size_t at);

// The character that ends at `end`, which is not 0.
RegexChar regex_char_before(std::string_view text, std::size_t end);

// By their first numbers.
void sort_ranges(std::vector<NumberRange>& ranges);

// True if a number is in the last one, of sorted ranges, that does not begin behind `from`.
bool is_in_ranges(const std::vector<NumberRange>& ranges, std::uint32_t from, std::size_t number);

using RegexRange = NumberRange;

inline constexpr std::uint32_t regex_last_code = 0x10ffff;

// Sorts the ranges and joins those that touch.
void normalize_ranges(std::vector<RegexRange>& ranges);

// The ranges that are left; takes and gives normalized ones.
std::vector<RegexRange> complement(const std::vector<RegexRange>& ranges);

// The ranges of \d, \s or \w, or of the capital's complement.
std::vector<RegexRange> shorthand_ranges(char letter, bool ascii);

bool is_ascii_word(std::uint32_t code);

bool is_regex_word(std::uint32_t code);

bool is_ascii_letter(std::uint32_t code);

inline bool is_ascii_digit(std::uint32_t code) {
  return code < 0x80 && is_digit(static_cast<char>(code));
}

// What can hold between two characters: a bit each, so that a position is judged once for all.
enum RegexAssertion : std::uint32_t {
  at_text_start = 1,
  at_line_start = 2,
  at_text_end = 4,
  at_last_line_end = 8,  // at the end, or before the newline that ends the text
  at_line_end = 16,
  at_word_edge = 32,
  at_no_word_edge = 64,
  at_ascii_word_edge = 128,
  at_no_ascii_word_edge = 256,
};

// Those about the words before and after a place.
constexpr std::uint32_t edges_between(bool before, bool after, bool ascii_before,
                                      bool ascii_after) {
  return (before != after ? at_word_edge : at_no_word_edge) |
         (ascii_before != ascii_after ? at_ascii_word_edge : at_no_ascii_word_edge);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
