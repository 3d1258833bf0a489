// The parser: escapes, sets and groups.
//
//   item            read by          becomes
//   a               take_item()      one character
//   . \d \S         append_common()  a set that the program has once
//   ^ $ \b \A \Z    take_item()      an assertion, which consumes nothing
//   \n \x41 \101   escaped_char()   one character
//   [a-z\d]         set()            a set of ranges; [^...] is its complement
//   ( (?: (?P<n>    group()          the steps of what stands in it: no group is captured
//   (?i) (?#...)    group()          nothing, or flags for what follows
//
// Python has more escapes and groups. They are refused by name, as no automaton can match them.

#include "regex/parser_internal.hpp"

namespace codeexec {
inline namespace v0_1 {
namespace {

// Letters match in both cases.
void add_other_case(std::vector<RegexRange>& ranges) {
  const std::size_t size = ranges.size();
  for (std::size_t i = 0; i < size; ++i) {
    const RegexRange range = ranges[i];
    for (std::uint32_t code = std::max<std::uint32_t>(range.first, 'A');
         code <= std::min<std::uint32_t>(range.last, 'z'); ++code)
      if (is_ascii_letter(code)) ranges.push_back({code ^ 0x20, code ^ 0x20});
  }
}

}  // namespace

Regex::Parser::Item Regex::Parser::take_item() {
  const std::size_t offset = at_;
  const std::uint32_t c = take_char();
  switch (c) {
    case '\\':
      return escape(offset);
    case '[':
      set(offset);
      return Item::atom;
    case '(':
      return group(offset);
    case '.':
      append_dot();
      return Item::atom;
    case '^':
      append_assertion(flags_.multi_line ? at_line_start : at_text_start);
      return Item::assertion;
    case '$':
      append_assertion(flags_.multi_line ? at_line_end : at_last_line_end);
      return Item::assertion;
    default:
      append_char(c);
      return Item::atom;
  }
}

Regex::Parser::Item Regex::Parser::escape(std::size_t offset) {
  switch (peek()) {
    case 'A':
      ++at_;
      append_assertion(at_text_start);
      return Item::assertion;
    case 'Z':
      ++at_;
      append_assertion(at_text_end);
      return Item::assertion;
    case 'b':
      ++at_;
      append_assertion(flags_.ascii ? at_ascii_word_edge : at_word_edge);
      return Item::assertion;
    case 'B':
      ++at_;
      append_assertion(flags_.ascii ? at_no_ascii_word_edge : at_no_word_edge);
      return Item::assertion;
    default:
      break;
  }
  if (const char letter = take_shorthand()) {
    append_shorthand(letter);
    return Item::atom;
  }
  std::uint32_t code = 0;
  if (escaped_char(offset, false, code)) append_char(code);
  return Item::atom;
}

char Regex::Parser::take_shorthand() {
  if (at_end() || shorthands.find(peek()) == std::string_view::npos) return 0;
  return pattern_[at_++];
}

bool Regex::Parser::escaped_char(std::size_t offset, bool in_set, std::uint32_t& code) {
  if (at_end()) return fail(offset, "bad escape (end of pattern)"sv);
  const std::size_t first = at_;
  code = take_char();
  switch (code) {
    case 'a':
      code = '\a';
      return true;
    case 'f':
      code = '\f';
      return true;
    case 'n':
      code = '\n';
      return true;
    case 'r':
      code = '\r';
      return true;
    case 't':
      code = '\t';
      return true;
    case 'v':
      code = '\v';
      return true;
    case 'x':
      return hex(offset, 2, code);
    case 'u':
      return hex(offset, 4, code);
    case 'U':
      return hex(offset, 8, code);
    case 'N':
      return fail(offset, "named characters (\\N) are not known"sv, ErrorCode::unsupported);
    default:
      break;
  }
  if (in_set && code == 'b') {
    code = '\b';
    return true;
  }
  if (is_ascii_digit(code)) {
    at_ = first;
    return octal(offset, in_set, code);
  }
  if (is_ascii_letter(code)) return fail(offset, "bad escape"sv);
  return true;
}

bool Regex::Parser::hex(std::size_t offset, std::size_t digits, std::uint32_t& code) {
  const std::size_t begin = at_;
  code = read_digits(pattern_, at_, digits, 16);
  if (at_ - begin != digits) return fail(offset, "incomplete escape"sv);
  return code <= regex_last_code || fail(offset, "bad escape"sv);
}

bool Regex::Parser::octal(std::size_t offset, bool in_set, std::uint32_t& code) {
  const auto is_octal = [this](std::size_t at) {
    return at < pattern_.size() && pattern_[at] >= '0' && pattern_[at] <= '7';
  };
  const bool three = is_octal(at_) && is_octal(at_ + 1) && is_octal(at_ + 2);
  if (in_set ? !is_octal(at_) : peek() != '0' && !three)
    return in_set ? fail(offset, "bad escape"sv) : unsupported(offset, "a back-reference"sv);
  code = read_digits(pattern_, at_, 3, 8);
  return code <= 0377 || fail(offset, "octal escape value outside of range 0-0o377"sv);
}

// sets -------------------------------------------------------------------------------------------

bool Regex::Parser::set(std::size_t offset) {
  std::vector<RegexRange> ranges;
  const bool negated = take('^');
  for (bool first = true; first || !take(']'); first = false) {
    if (!set_item(offset, ranges)) return false;
  }
  if (flags_.ignore_case) add_other_case(ranges);
  normalize_ranges(ranges);
  if (negated) ranges = complement(ranges);
  return append(Kind::set, add_set(ranges));
}

bool Regex::Parser::set_item(std::size_t set_offset, std::vector<RegexRange>& ranges) {
  const std::size_t offset = at_;
  RegexRange range;
  char shorthand = 0;
  if (!set_bound(set_offset, range.first, shorthand)) return false;
  range.last = range.first;
  const bool is_range = next_is('-') && at_ + 1 < pattern_.size() && pattern_[at_ + 1] != ']';
  if (is_range) {
    ++at_;
    char other_shorthand = 0;
    if (!set_bound(set_offset, range.last, other_shorthand)) return false;
    if (shorthand || other_shorthand || range.last < range.first)
      return fail(offset, "bad character range"sv);
  }
  if (!shorthand) {
    ranges.push_back({range.first, range.last});
    return true;
  }
  for (const auto& [first, last] : shorthand_ranges(shorthand, flags_.ascii))
    ranges.push_back({first, last});
  return true;
}

bool Regex::Parser::set_bound(std::size_t set_offset, std::uint32_t& code, char& shorthand) {
  if (at_end()) return fail(set_offset, "unterminated character set"sv);
  const std::size_t offset = at_;
  code = take_char();
  if (code != '\\') return true;
  shorthand = take_shorthand();
  return shorthand || escaped_char(offset, true, code);
}

// groups -----------------------------------------------------------------------------------------

Regex::Parser::Item Regex::Parser::group(std::size_t offset) {
  const Flags outer = flags_;
  if (take('?')) {
    if (take('#')) return comment(offset);
    bool ends = false;
    if (!group_head(offset, ends)) return Item::nothing;
    if (ends) return Item::nothing;
  }
  at_start_ = false;
  if (++depth_ > deepest_nesting) {
    fail(offset, "groups are nested more than 200 deep"sv, ErrorCode::limit);
    return Item::nothing;
  }
  if (alternatives() && !take(')')) fail(offset, "missing ), unterminated subpattern"sv);
  --depth_;
  flags_ = outer;
  return Item::atom;
}

Regex::Parser::Item Regex::Parser::comment(std::size_t offset) {
  while (!at_end()) {
    if (take(')')) return Item::nothing;
    skip_comment_char();
  }
  fail(offset, "missing ), unterminated comment"sv);
  return Item::nothing;
}

void Regex::Parser::skip_comment_char() {
  if (take('\\') && at_end()) fail(at_ - 1, "bad escape (end of pattern)"sv);
  if (!at_end()) ++at_;
}

bool Regex::Parser::group_head(std::size_t offset, bool& ends) {
  if (at_end()) return fail(offset, "unexpected end of pattern"sv);
  switch (peek()) {
    case ':':
      ++at_;
      return true;
    case 'P':
      ++at_;
      return named_group(offset);
    case '=':
    case '!':
      return unsupported(offset, "look-ahead"sv);
    case '<':
      if (starts_with(pattern_.substr(at_), "<="sv) || starts_with(pattern_.substr(at_), "<!"sv))
        return unsupported(offset, "look-behind"sv);
      return fail(offset, "unknown extension ?<"sv);
    case '(':
      return unsupported(offset, "a conditional group"sv);
    case '>':
      return unsupported(offset, "an atomic group"sv);
    default:
      return flag_group(offset, ends);
  }
}

bool Regex::Parser::named_group(std::size_t offset) {
  if (next_is('=')) return unsupported(offset, "a back-reference"sv);
  if (!take('<')) return fail(offset, "unknown extension ?P"sv);
  const std::size_t end = pattern_.find('>', at_);
  if (end == std::string_view::npos) return fail(at_, "missing >, unterminated name"sv);
  const std::string_view group_name = pattern_.substr(at_, end - at_);
  if (group_name.empty()) return fail(at_, "missing group name"sv);
  for (std::size_t i = 0; i < group_name.size();) {
    const RegexChar c = regex_char_at(group_name, i);
    if (!is_regex_word(c.code) || (i == 0 && is_ascii_digit(c.code)))
      return fail(at_, "bad character in group name"sv);
    i += c.size;
  }
  if (is_one_of(group_name, names_)) return fail(at_, "redefinition of group name"sv);
  names_.push_back(std::string_view(group_name));
  at_ = end + 1;
  return true;
}

bool Regex::Parser::flag_group(std::size_t offset, bool& ends) {
  Flags flags = flags_;
  std::string on;
  std::string off;
  if (!take_flags(offset, "aimsux"sv, on)) return false;
  if (take('-')) {
    if (!take_flags(offset, "imsx"sv, off)) return false;
    if (off.empty()) return fail(at_, "missing flag"sv);
    if (off.find_first_of(on) != std::string::npos)
      return fail(at_, "bad inline flags: flag turned on and off"sv);
  }
  if (on.find('a') != std::string::npos && on.find('u') != std::string::npos)
    return fail(at_, "bad inline flags: flags 'a' and 'u' are incompatible"sv);
  if (on.empty() && off.empty()) return fail(offset, "unknown extension"sv);
  for (const char flag : on) set_flag(flags, flag, true);
  for (const char flag : off) set_flag(flags, flag, false);
  if (off.empty() && take(')')) {
    if (!at_start_) return fail(offset, "global flags not at the start of the expression"sv);
    ends = true;
  } else if (!take(':')) {
    return fail(at_, off.empty() ? "missing -, : or )"sv : "missing :"sv);
  }
  flags_ = flags;
  return true;
}

bool Regex::Parser::take_flags(std::size_t offset, std::string_view known, std::string& flags) {
  for (; is_letter(peek()); ++at_) {
    const char flag = peek();
    if (known.find(flag) == std::string_view::npos) return fail(offset, "unknown flag"sv);
    if (flags.find(flag) == std::string::npos) flags += flag;
  }
  return true;
}

void Regex::Parser::set_flag(Flags& flags, char flag, bool value) {
  switch (flag) {
    case 'a':
      flags.ascii = true;
      break;
    case 'i':
      flags.ignore_case = value;
      break;
    case 'm':
      flags.multi_line = value;
      break;
    case 's':
      flags.dot_matches_newline = value;
      break;
    case 'u':
      flags.ascii = false;
      break;
    default:
      flags.verbose = value;
  }
}

}  // namespace v0_1
}  // namespace codeexec
