// Patterns in Python's syntax, matched in linear time.
#pragma once

#include "base/base.hpp"

namespace codeexec {
inline namespace v0_1 {

// A compiled pattern. Immutable: copies share it, and any number of threads may match with one.
//
// The syntax and its meaning are those of Python's `re` for str patterns, as far as a finite
// automaton can have them, leftmost-first priorities included:
//   .  [a-z]  [^\w.]  \d \D \w \W \s \S  \b \B \A \Z ^ $  |  ( )  (?: )  (?P<name> )  (?#comment)
//   * + ? {m} {m,} {m,n} {,n}, lazy with a ? behind; a brace that is no quantifier is itself
//   \n \t \r \f \v \a \\ \0 \012 \xHH \uHHHH \UHHHHHHHH, and any other escaped non-letter
//   (?aimsux) at the start of the pattern, and (?ims-x: ) for a part of it
// Text and pattern are UTF-8. `.` and sets match whole code points; a byte that is not part of
// well-formed UTF-8 counts as one character of its own (as Python's surrogateescape has it), which
// only `.`, a negated set, \D \S \W or the same byte in the pattern matches. Nothing ends at a NUL.
//
// It differs from Python in these points:
// - \d is 0-9, and case is ignored for ASCII letters only.
// - \w and \b take characters above U+007F by block: those of scripts are letters, Unicode's
//   punctuation, symbols and emoji are not. (?a) makes them, and \s, ASCII.
// - \B matches an empty text, as in Python from 3.14 on.
// - Where what is repeated can match nothing, as in (?:a??)*, find() may end elsewhere.
// - Refused, because no automaton can have them in linear time: back-references, look-ahead and
//   look-behind, conditionals, atomic groups, possessive quantifiers; also \N{...}.
//
// A match takes time proportional to text x compiled pattern at worst, and memory proportional to
// the compiled pattern alone, whatever the two contain. Bounds on a pattern: 64 KiB, groups nested
// 200 deep, repeat counts up to 10,000, and 100,000 steps when compiled (1.2 MB).
class Regex {
 public:
  // Fails with `parse` (not a pattern), `unsupported` (Python has it, an automaton cannot) or
  // `limit` (a bound above); `offset` is the byte in the pattern, and the message names it as well.
  // With `flags`, letters of "aimsux", it is as if it began with (?flags), but no offset counts
  // them; any other letter is invalid_argument.
  static Expected<Regex> compile(std::string_view pattern, std::string_view flags = {});

  bool match(std::string_view text) const;       // at the start of the text, as re.match
  bool full_match(std::string_view text) const;  // the whole text, as re.fullmatch
  bool search(std::string_view text) const;      // anywhere in the text, as re.search

  // The part of the text that Python's pattern.search(text, from) finds; nothing when there is no
  // match. What stands before `from` still counts for ^ and \b.
  std::optional<std::string_view> find(std::string_view text, std::size_t from = 0) const;

  // The text this was compiled from.
  const std::string& pattern() const noexcept;

  class Lines;  // internal: those in which there is a match

 private:
  struct Program;
  class Parser;
  class Matcher;
  explicit Regex(std::shared_ptr<const Program> program) : program_(std::move(program)) {}
  std::shared_ptr<const Program> program_;
};

}  // namespace v0_1
}  // namespace codeexec
