// Characters of a text, and the sets \d, \s, \w and their like.
//
// A set is a row of ranges, sorted and without ranges that touch: normalize_ranges() makes it so.
// A bad byte b counts as the character 0xdc00 + b. No well-formed text has that character, so each
// text can be read from its start and, one character at a time, from its end.

#include "regex/regex_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

RegexChar regex_char_at(std::string_view text, std::size_t at) {
  const auto* s = reinterpret_cast<const unsigned char*>(text.data()) + at;
  if (s[0] < 0x80) return {s[0], 1};
  switch (utf8_step(s, text.size() - at).good) {
    case 2:
      return {(s[0] & 0x1fu) << 6 | (s[1] & 0x3fu), 2};
    case 3:
      return {(s[0] & 0x0fu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu), 3};
    case 4:
      return {(s[0] & 0x07u) << 18 | (s[1] & 0x3fu) << 12 | (s[2] & 0x3fu) << 6 | (s[3] & 0x3fu),
              4};
    default:
      return {0xdc00u + s[0], 1};
  }
}

RegexChar regex_char_before(std::string_view text, std::size_t end) {
  for (std::size_t size = 1; size <= 4 && size <= end; ++size) {
    const RegexChar c = regex_char_at(text.substr(0, end), end - size);
    if (c.size == size && (size > 1 || c.code < 0x80)) return c;
  }
  return regex_char_at(text.substr(0, end), end - 1);
}

}  // namespace inner

namespace {

// White space above ASCII: exactly the characters of Python's str.isspace().
constexpr RegexRange regex_spaces[] = {
    {0x85, 0x85},     {0xa0, 0xa0},     {0x1680, 0x1680}, {0x2000, 0x200a},
    {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000},
};

// What is not a word character above ASCII, by block; lone surrogates stand for malformed bytes.
constexpr RegexRange regex_non_words[] = {
    {0x80, 0xa9},        {0xab, 0xb1},       {0xb4, 0xb4},       {0xb6, 0xb8},
    {0xbb, 0xbb},        {0xbf, 0xbf},       {0xd7, 0xd7},       {0xf7, 0xf7},
    {0x2c2, 0x2c5},      {0x2d2, 0x2df},     {0x300, 0x36f},     {0x1680, 0x1680},
    {0x2000, 0x206f},    {0x207a, 0x207e},   {0x208a, 0x208f},   {0x20a0, 0x2101},
    {0x2190, 0x245f},    {0x249c, 0x24e9},   {0x2500, 0x2775},   {0x2794, 0x2bff},
    {0x2e00, 0x2e2e},    {0x2e30, 0x3004},   {0x3008, 0x3020},   {0x302a, 0x3030},
    {0xd800, 0xf8ff},    {0xfd3e, 0xfd4f},   {0xfe00, 0xfe6f},   {0xfeff, 0xff0f},
    {0xff1a, 0xff20},    {0xff3b, 0xff40},   {0xff5b, 0xff65},   {0xffe0, 0xffff},
    {0x1d000, 0x1d2df},  {0x1d300, 0x1d35f}, {0x1f000, 0x1f0ff}, {0x1f10d, 0x1fbef},
    {0xe0000, 0x10ffff},
};

}  // namespace

inline namespace inner {

void sort_ranges(std::vector<NumberRange>& ranges) {
  const auto compare = [](const void* left, const void* right) {
    const auto& a = *static_cast<const NumberRange*>(left);
    const auto& b = *static_cast<const NumberRange*>(right);
    const bool less = a.first < b.first || (a.first == b.first && a.last < b.last);
    return less ? -1 : a.first != b.first || a.last != b.last ? 1 : 0;
  };
  if (!ranges.empty()) std::qsort(ranges.data(), ranges.size(), sizeof(NumberRange), compare);
}

bool is_in_ranges(const std::vector<NumberRange>& ranges, std::uint32_t from, std::size_t number) {
  std::size_t begin = 0;
  std::size_t end = ranges.size();
  while (begin < end) {
    const std::size_t middle = begin + (end - begin) / 2;
    if (ranges[middle].first <= from)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin > 0 && number <= ranges[begin - 1].last;
}

void normalize_ranges(std::vector<RegexRange>& ranges) {
  sort_ranges(ranges);
  std::size_t size = 0;
  for (const RegexRange& range : ranges) {
    if (size > 0 && range.first <= ranges[size - 1].last + 1)
      ranges[size - 1].last = std::max(ranges[size - 1].last, range.last);
    else
      ranges[size++] = range;
  }
  ranges.erase(ranges.begin() + static_cast<std::ptrdiff_t>(size), ranges.end());
}

std::vector<RegexRange> complement(const std::vector<RegexRange>& ranges) {
  std::vector<RegexRange> rest;
  std::uint32_t next = 0;
  for (const RegexRange& range : ranges) {
    if (range.first > next) rest.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= regex_last_code) rest.push_back({next, regex_last_code});
  return rest;
}

std::vector<RegexRange> shorthand_ranges(char letter, bool ascii) {
  std::vector<RegexRange> ranges;
  switch (letter) {
    case 'd':
    case 'D':
      ranges.push_back({'0', '9'});
      break;
    case 's':
    case 'S':
      ranges.push_back({'\t', '\r'});
      ranges.push_back({' ', ' '});
      if (ascii) break;
      ranges.push_back({0x1c, 0x1f});
      for (const auto& [first, last] : regex_spaces) ranges.push_back({first, last});
      break;
    default:
      if (!ascii) {
        ranges.push_back({0, 0x7f});
        for (const auto& [first, last] : regex_non_words) ranges.push_back({first, last});
        normalize_ranges(ranges);
        ranges = complement(ranges);
      }
      for (const char* bounds = "09AZ__az"; *bounds; bounds += 2)
        ranges.push_back(
            {static_cast<unsigned char>(bounds[0]), static_cast<unsigned char>(bounds[1])});
  }
  normalize_ranges(ranges);
  if (letter < 'a') ranges = complement(ranges);
  return ranges;
}

bool is_ascii_word(std::uint32_t code) {
  return code < 0x80 && is_name_char(static_cast<char>(code));
}

bool is_regex_word(std::uint32_t code) {
  if (code < 0x80) return is_ascii_word(code);
  for (const RegexRange& range : regex_non_words)
    if (code >= range.first && code <= range.last) return false;
  return true;
}

bool is_ascii_letter(std::uint32_t code) {
  return code < 0x80 && is_letter(static_cast<char>(code));
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
