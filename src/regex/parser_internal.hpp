// The parser of patterns.
#pragma once

#include "regex/program_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// Reads a pattern and writes its program. Used once.
class Regex::Parser {
 public:
  Parser(std::string_view pattern, std::string_view flags);
  Expected<std::shared_ptr<const Program>> parse();

 private:
  using Step = Program::Step;
  using Kind = Step::Kind;

  struct Flags {
    bool ignore_case = false;
    bool dot_matches_newline = false;
    bool multi_line = false;
    bool verbose = false;
    bool ascii = false;
  };

  // What stands before a quantifier.
  enum class Item { nothing, assertion, atom, repeated };

  struct Quantifier {
    std::size_t least = 0;
    std::size_t most = 0;  // `unbounded` for no bound
    bool lazy = false;
  };

  static constexpr std::string_view shorthands = "dDsSwW";
  static constexpr std::size_t deepest_nesting = 200;
  static constexpr std::size_t longest_program = 100000;
  static constexpr std::size_t largest_count = 10000;
  static constexpr std::size_t unbounded = static_cast<std::size_t>(-1);

  std::string_view pattern_;
  std::size_t at_ = 0;
  Flags flags_ = {};
  std::size_t depth_ = 0;
  bool at_start_ = true;  // nothing but flags and comments so far
  std::vector<std::string_view> names_ = {};
  std::array<std::int32_t, 14> common_sets_ = {};  // -1 where it is not made yet
  std::shared_ptr<Program> program_ = new_shared<Program>();
  std::optional<Error> error_ = {};

  // errors and input ------------------------------------------------------------------------------

  bool fail(std::size_t offset, std::string_view what, ErrorCode code = ErrorCode::parse);
  bool unsupported(std::size_t offset, std::string_view what);
  bool at_end() const { return at_ == pattern_.size(); }
  char peek() const { return at_end() ? '\0' : pattern_[at_]; }
  bool next_is(char c) const { return !at_end() && pattern_[at_] == c; }
  bool take(char c);
  std::uint32_t take_char();

  // the program -----------------------------------------------------------------------------------

  std::vector<Step>& steps() { return program_->steps; }

  bool has_room(std::size_t more, std::size_t offset);
  bool append(Kind kind, std::int32_t value);
  static Step split(std::size_t into, std::size_t past, bool lazy);
  bool append_char(std::uint32_t code);
  std::int32_t add_set(const std::vector<RegexRange>& ranges);
  // The dot, \d and their like appear often: each of them has one set per program.
  bool append_common(std::size_t index, const std::vector<RegexRange>& ranges);
  bool append_shorthand(char letter);
  bool append_dot();
  bool append_assertion(RegexAssertion assertion);

  // alternatives, sequences, quantifiers ----------------------------------------------------------

  bool alternatives();
  bool sequence();
  void skip_verbose();
  // False where no quantifier stands; true with an error_ when one does that cannot be.
  bool take_quantifier(Quantifier& quantifier);
  // {m} {m,} {,n} {m,n}. A brace of any other shape is a character like others.
  bool take_counts(Quantifier& quantifier);
  // Makes the code from `start` to the end repeat. Counts are written out: x{2,4} as xx(x(x)?)?.
  bool repeat(std::size_t start, const Quantifier& quantifier, std::size_t offset);

  // items -----------------------------------------------------------------------------------------

  Item take_item();
  Item escape(std::size_t offset);
  // The letter of \d, \D and so on, or 0.
  char take_shorthand();
  // An escape that stands for one character; `at_` is behind the backslash.
  bool escaped_char(std::size_t offset, bool in_set, std::uint32_t& code);
  bool hex(std::size_t offset, std::size_t digits, std::uint32_t& code);
  // \0, \01 and \012 are characters anywhere; another digit is one only where three octal digits
  // stand, or in a set. Everything else refers back to a group.
  bool octal(std::size_t offset, bool in_set, std::uint32_t& code);

  // sets ------------------------------------------------------------------------------------------

  bool set(std::size_t offset);
  // One character, range or shorthand of the set that began at `set_offset`.
  bool set_item(std::size_t set_offset, std::vector<RegexRange>& ranges);
  bool set_bound(std::size_t set_offset, std::uint32_t& code, char& shorthand);

  // groups ----------------------------------------------------------------------------------------

  // Behind an opening parenthesis.
  Item group(std::size_t offset);
  Item comment(std::size_t offset);
  // An escaped character does not end a comment.
  void skip_comment_char();
  // What stands between (? and the content of a group. `ends` says that there is no content: flags
  // for the rest of the pattern.
  bool group_head(std::size_t offset, bool& ends);
  bool named_group(std::size_t offset);
  // (?flags) (?flags: (?flags-flags: (?-flags:
  bool flag_group(std::size_t offset, bool& ends);
  bool take_flags(std::size_t offset, std::string_view known, std::string& flags);
  static void set_flag(Flags& flags, char flag, bool value);
};

}  // namespace v0_1
}  // namespace codeexec
