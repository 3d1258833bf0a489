// Patterns and texts that Regex and RE2 understand alike, for the tests that compare the two.
#ifndef CODEEXEC_TESTS_REGEX_PATTERNS_HPP
#define CODEEXEC_TESTS_REGEX_PATTERNS_HPP

#include <cstddef>
#include <limits>
#include <string>

namespace regex_patterns {

// The end of the text is spelled \Z for one and \z for the other (the byte 1 stands for it, see
// with_text_end()), and $ is used under (?m) only, where both mean the same by it.
// `choices.below(n)` gives the next choice, a number below n.
template <class Choices>
class Generator {
 public:
  // A pattern has `most_pieces` at most, whatever is chosen.
  explicit Generator(Choices& choices,
                     std::size_t most_pieces = std::numeric_limits<std::size_t>::max())
      : choices_(choices), pieces_left_(most_pieces) {}

  std::string pattern() {
    static const char* const flags[] = {"", "", "(?i)", "(?s)", "(?m)", "(?im)", "(?ms)"};
    const std::string chosen = pick(flags);
    multi_line_ = chosen.find('m') != std::string::npos;
    const std::string pattern = chosen + alternatives(choices_.below(4)).text;
    has_not_boundary_ = pattern.find("\\B") != std::string::npos;
    return pattern;
  }

  // Whether the pattern repeats what can match nothing. RE2 rewrites such loops before it runs
  // them, and may end a match elsewhere.
  bool repeats_empty() const { return repeats_empty_; }

  // Whether an alternation has a group with another case than the pattern. RE2 10 (Debian 12) takes
  // out the prefix that branches share, and loses their case: a|(?i:a) does not match A.
  bool has_case_in_alternation() const { return has_case_in_alternation_; }

  // The next piece of a text for the pattern. RE2 looks at \B byte by byte, and finds it inside of
  // a character, too.
  std::string text_piece() {
    static const char* const plain[] = {"a", "b", "c", "ab", "aa", "A", "B", "_", "1", " ", "\n"};
    static const char* const others[] = {"\xe6\x97\xa5", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    return !has_not_boundary_ && one_in(5) ? pick(others) : pick(plain);
  }

 private:
  struct Part {
    std::string text;
    bool may_be_empty = false;
  };

  bool one_in(std::size_t n) { return choices_.below(n) == 0; }
  template <std::size_t size>
  const char* pick(const char* const (&list)[size]) {
    return list[choices_.below(size)];
  }

  Part alternatives(std::size_t depth) {
    Part result = sequence(depth);
    std::size_t more = choices_.below(6);
    const bool is_alternation = more > 3;
    for (; more > 3; --more) {
      const Part other = sequence(depth);
      result.text += "|" + other.text;
      result.may_be_empty = result.may_be_empty || other.may_be_empty;
    }
    // Of (?i: and (?-i:
    if (is_alternation && result.text.find("i:") != std::string::npos)
      has_case_in_alternation_ = true;
    return result;
  }

  Part sequence(std::size_t depth) {
    Part result{"", true};
    const std::size_t shortest = one_in(8) ? 0 : 1;
    for (std::size_t left = shortest + choices_.below(4); left > 0 && pieces_left_ > 0; --left) {
      --pieces_left_;
      const Part next = piece(depth);
      result.text += next.text;
      result.may_be_empty = result.may_be_empty && next.may_be_empty;
    }
    return result;
  }

  Part piece(std::size_t depth) {
    static const char* const optional[] = {"*", "?", "*?", "??", "{0,2}", "{0,1}", "{0,3}?"};
    static const char* const needed[] = {"+", "+?", "{2}", "{1,3}?", "{2,}", "{2,}?", "{1,2}"};
    static const char* const edges[] = {"^", "\\A", "\\b", "\\B", "\x01"};
    if (one_in(10)) return {multi_line_ && one_in(2) ? "$" : pick(edges), true};
    Part result = atom(depth);
    if (one_in(2)) return result;
    repeats_empty_ = repeats_empty_ || result.may_be_empty;
    const bool is_optional = one_in(2);
    result.text += is_optional ? pick(optional) : pick(needed);
    result.may_be_empty = result.may_be_empty || is_optional;
    return result;
  }

  Part atom(std::size_t depth) {
    static const char* const characters[] = {"a",
                                             "b",
                                             "c",
                                             "a",
                                             "b",
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
    static const char* const openings[] = {"(", "(?:", "(?:", "(?i:", "(?s:", "(?-i:"};
    if (depth == 0 || one_in(2)) return {pick(characters), false};
    const std::string opening = pick(openings);
    Part inner = alternatives(depth - 1);
    inner.text = opening + inner.text + ")";
    return inner;
  }

  Choices& choices_;
  std::size_t pieces_left_;
  bool multi_line_ = false;
  bool repeats_empty_ = false;
  bool has_case_in_alternation_ = false;
  bool has_not_boundary_ = false;
};

inline std::string with_text_end(const std::string& pattern, const char* spelling) {
  std::string result;
  for (const char c : pattern) c == '\x01' ? result += spelling : result += c;
  return result;
}

}  // namespace regex_patterns

#endif  // CODEEXEC_TESTS_REGEX_PATTERNS_HPP
