// Regex agrees with RE2 where both mean the same by a pattern, with itself everywhere, and refuses
// the rest with a place in the pattern.                    sh tests/fuzz/run.sh [seconds] regex
//   An input is the pattern up to a byte 0xff, then the text. When it begins with a NUL, its bytes
// choose pieces of a pattern and of a text that both engines understand alike.
#include "fuzz.hpp"

#if __has_include(<re2/re2.h>)
#include <re2/re2.h>
#define HAS_RE2 1
#endif

namespace {

using codeexec::Regex;

// Far more of both costs seconds, as it may: their product bounds the time.
constexpr std::size_t longest_pattern = 300;
constexpr std::size_t longest_text = 200;

void expect_sound(const Regex& regex, std::string_view text) {
  const bool search = regex.search(text);
  const bool match = regex.match(text);
  const bool full_match = regex.full_match(text);
  const auto span = regex.find(text);
  EXPECT_WITH(!full_match || match, regex.pattern());
  EXPECT_WITH(!match || search, regex.pattern());
  EXPECT_WITH(search == span.has_value(), regex.pattern());
  if (!span) return;
  EXPECT_WITH(span->begin <= span->end && span->end <= text.size(), regex.pattern());
  EXPECT_WITH(!match || span->begin == 0, regex.pattern());
  // No character is cut in two, where there are characters.
  if (codeexec::is_utf8(text)) {
    EXPECT_WITH(codeexec::is_utf8(text.substr(0, span->begin)), regex.pattern());
    EXPECT_WITH(codeexec::is_utf8(text.substr(0, span->end)), regex.pattern());
  }
  const auto same = regex.find(text, span->begin);
  EXPECT_WITH(same && same->begin == span->begin && same->end == span->end, regex.pattern());
}

#ifdef HAS_RE2

// How far the two can be compared.
enum class Alike { no, found, span };

void expect_alike(const std::string& ours, const std::string& theirs, std::string_view text,
                  Alike alike) {
  const auto mine = Regex::compile(ours);
  RE2::Options options(RE2::Quiet);
  options.set_max_mem(std::int64_t{64} << 20);
  const RE2 other(theirs, options);
  if (!mine || !other.ok()) return;
  const re2::StringPiece whole(text.data(), text.size());
  const auto ask = [&](RE2::Anchor anchor, re2::StringPiece* span) {
    return other.Match(whole, 0, whole.size(), anchor, span, span ? 1 : 0);
  };
  const std::string shown = ours + "\n--- in\n" + std::string(text);
  EXPECT_WITH(mine->match(text) == ask(RE2::ANCHOR_START, nullptr), shown);
  EXPECT_WITH(mine->full_match(text) == ask(RE2::ANCHOR_BOTH, nullptr), shown);
  const auto found = mine->find(text);
  re2::StringPiece span;
  EXPECT_WITH(found.has_value() == ask(RE2::UNANCHORED, &span), shown);
  if (!found) return;
  EXPECT_WITH(found->begin == static_cast<std::size_t>(span.data() - text.data()), shown);
  if (alike == Alike::span)
    EXPECT_WITH(found->end - found->begin == static_cast<std::size_t>(span.size()), shown);
}

// A pattern as it came: of characters that mean the same to both. What repeats may match nothing,
// and may then end elsewhere.
Alike likeness(std::string_view pattern) {
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    const bool plain = std::string_view("abcxyzAB019_ .()|*+?^[]-").find(c) != pattern.npos;
    if (!plain || pattern.substr(i, 2) == "[[") return Alike::no;
    if (pattern.substr(i, 2) == "(?" && pattern.substr(i, 3) != "(?:") return Alike::no;
  }
  return Alike::found;
}

// Builds what both understand alike: see tests/regex_re2.cpp. The end of the text is spelled \Z
// for one and \z for the other.
class Builder {
 public:
  explicit Builder(fuzz::Bytes& choices) : choices_(choices) {}
  Alike alike() const { return alike_; }
  bool has_not_boundary() const { return has_not_boundary_; }

  std::string pattern() {
    static const char* const flags[] = {"", "(?i)", "(?s)", "(?m)", "(?im)", "(?ms)"};
    const std::size_t chosen = choices_.below(6);
    multi_line_ = chosen >= 3;
    return flags[chosen] + alternatives(3);
  }

 private:
  std::string alternatives(std::size_t depth) {
    std::string result = sequence(depth);
    bool all_may = may_be_empty_;
    for (std::size_t more = choices_.below(3); more > 0 && ++pieces_ < most_pieces; --more) {
      result += "|" + sequence(depth);
      all_may = all_may || may_be_empty_;
    }
    may_be_empty_ = all_may;
    return result;
  }
  std::string sequence(std::size_t depth) {
    std::string result;
    bool may_be_empty = true;
    for (std::size_t left = choices_.below(5); left > 0 && ++pieces_ < most_pieces; --left) {
      result += piece(depth);
      may_be_empty = may_be_empty && may_be_empty_;
    }
    may_be_empty_ = may_be_empty;
    return result;
  }
  std::string piece(std::size_t depth) {
    static const char* const edges[] = {"^", "\\A", "\\b", "\\B", "\x01", "$"};
    static const char* const repeats[] = {"*",  "?",   "*?",     "??",   "{0,2}", "{0,3}?", "+",
                                          "+?", "{2}", "{1,3}?", "{2,}", "{2,}?", "{1,2}"};
    const std::size_t kind = choices_.below(8);
    if (kind == 0) {
      const std::size_t edge = choices_.below(multi_line_ ? 6 : 5);
      has_not_boundary_ = has_not_boundary_ || edge == 3;
      may_be_empty_ = true;
      return edges[edge];
    }
    std::string result = kind < 4 && depth > 0 ? group(depth - 1) : character();
    if (kind % 2 == 0) return result;
    if (may_be_empty_) alike_ = Alike::found;
    const std::size_t repeat = choices_.below(13);
    may_be_empty_ = may_be_empty_ || repeat < 6;
    return result + repeats[repeat];
  }
  std::string group(std::size_t depth) {
    static const char* const openings[] = {"(", "(?:", "(?i:", "(?s:", "(?-i:"};
    const std::string opening = openings[choices_.below(5)];
    return opening + alternatives(depth) + ")";
  }
  std::string character() {
    static const char* const characters[] = {"a",
                                             "b",
                                             "c",
                                             "A",
                                             "_",
                                             "1",
                                             " ",
                                             ".",
                                             "\\n",
                                             "\\.",
                                             "\\x61",
                                             "[abc]",
                                             "[^a]",
                                             "[a-c]",
                                             "\\d",
                                             "\\w",
                                             "\\s",
                                             "\\W",
                                             "\\S",
                                             "\\D",
                                             "[^\\w]",
                                             "[\\s\\d]",
                                             "[B-b]",
                                             "[^\\n]",
                                             "\xe6\x97\xa5",
                                             "[\xe2\x82\xac-\xe6\x97\xa5]",
                                             "[^\xe6\x97\xa5]"};
    may_be_empty_ = false;
    return characters[choices_.below(27)];
  }

  static constexpr std::size_t most_pieces = 40;
  fuzz::Bytes& choices_;
  std::size_t pieces_ = 0;
  bool multi_line_ = false;
  bool may_be_empty_ = false;  // what was built last
  bool has_not_boundary_ = false;
  Alike alike_ = Alike::span;
};

std::string built_text(fuzz::Bytes& choices, bool ascii) {
  static const char* const pieces[] = {"a",
                                       "b",
                                       "c",
                                       "ab",
                                       "aa",
                                       "A",
                                       "B",
                                       "_",
                                       "1",
                                       " ",
                                       "\n",
                                       "\xe6\x97\xa5",
                                       "\xe2\x82\xac",
                                       "\xf0\x9f\x98\x80"};
  std::string text;
  while (!choices.empty() && text.size() < longest_text)
    text += pieces[choices.below(ascii ? 11 : 14)];
  return text;
}

std::string with_text_end(const std::string& pattern, const char* spelling) {
  std::string result;
  for (const char c : pattern) c == '\x01' ? result += spelling : result += c;
  return result;
}

void compare_built(std::string_view input) {
  fuzz::Bytes choices(input);
  Builder builder(choices);
  const std::string pattern = builder.pattern();
  // RE2 looks at \B byte by byte, and finds it inside of a character, too.
  const std::string text = built_text(choices, builder.has_not_boundary());
  // (?a), since RE2's \w, \s and \b are ASCII.
  const std::string ours = "(?a)" + with_text_end(pattern, "\\Z");
  const auto compiled = Regex::compile(ours);
  if (!compiled) {
    EXPECT_WITH(compiled.error().code == codeexec::ErrorCode::limit, ours);
    return;
  }
  expect_sound(*compiled, text);
  expect_alike(ours, with_text_end(pattern, "\\z"), text, builder.alike());
}

#endif

}  // namespace

void fuzz::regex(std::string_view input) {
#ifdef HAS_RE2
  if (!input.empty() && input[0] == '\0') return compare_built(input.substr(1));
#endif
  Bytes bytes(input);
  const std::string pattern(bytes.part().substr(0, longest_pattern));
  const std::string_view text = bytes.rest().substr(0, longest_text);
  const auto regex = Regex::compile(pattern);
  if (!regex) {
    EXPECT_WITH(regex.error().offset <= pattern.size(), pattern);
    EXPECT_WITH(!regex.error().message.empty(), pattern);
    return;
  }
  EXPECT_WITH(regex->pattern() == pattern, pattern);
  expect_sound(*regex, text);
  Regex::Options all;
  all.ignore_case = all.dot_matches_newline = all.multi_line = true;
  const auto wider = Regex::compile(pattern, all);
  EXPECT_WITH(wider || wider.error().code == codeexec::ErrorCode::limit, pattern);
  if (wider) expect_sound(*wider, text);
#ifdef HAS_RE2
  if (likeness(pattern) != Alike::no && codeexec::is_utf8(text))
    expect_alike(pattern, pattern, text, likeness(pattern));
#endif
}
