// The parser: alternatives, sequences, quantifiers, and the steps they become.
//
// Steps are written as they are read. What stands behind an item may change the steps of the item:
//
//   x|y        split 1 3 | x | jump to the end | y     the split is put before x, which moves
//   x?         split 1 2 | x                           x?? has the targets in the other order
//   x*         split 1 3 | x | split -1 1              (?:x+)?, see program_internal.hpp
//   x+         x | split -1 1
//   x{2,4}     x | x | split 1 4 | x | split 1 2 | x   counts are written out
//
// alternatives() calls sequence(), that calls take_item() for each item, and this calls
// alternatives() for a group. Behind an error_ each of them returns at once.

#include "regex/parser_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

// Goes from the first step to all that can be reached without a character. If one of them is the
// match, a match may be empty and begin anywhere.
void Regex::Program::find_first_bytes() {
  std::vector<std::size_t> todo;
  todo.push_back(0);
  std::string seen(steps.size(), '\0');
  can_skip = true;
  while (!todo.empty()) {
    const std::size_t at = todo.back();
    todo.pop_back();
    if (std::exchange(seen[at], '\1') != '\0') continue;
    const Step step = steps[at];
    switch (step.kind) {
      case Step::Kind::split:
        todo.push_back(target(at, step.other));
        todo.push_back(target(at, step.value));
        break;
      case Step::Kind::jump:
        todo.push_back(target(at, step.value));
        break;
      case Step::Kind::check:
        todo.push_back(at + 1);
        break;
      case Step::Kind::match:
        can_skip = false;
        return;
      default:
        add_first_bytes(step);
    }
  }
}

void Regex::Program::add_first_bytes(const Step& step) {
  for (std::uint32_t code = 0; code < 0x80; ++code)
    if (consumes(step, code)) first_byte[code] = true;
  const bool high = step.kind == Step::Kind::set
                        ? sets[static_cast<std::size_t>(step.value)].has_non_ascii()
                        : step.value >= 0x80;
  if (high) std::fill(first_byte.begin() + 0x80, first_byte.end(), true);
}

Regex::Parser::Parser(std::string_view pattern, std::string_view flags) : pattern_(pattern) {
  for (const char flag : flags) set_flag(flags_, flag, true);
  common_sets_.fill(-1);
}

Expected<std::shared_ptr<const Regex::Program>> Regex::Parser::parse() {
  constexpr std::size_t longest_pattern = 65536;
  if (pattern_.size() > longest_pattern)
    fail(longest_pattern, "the pattern is longer than 65536 bytes"sv, ErrorCode::limit);
  else if (alternatives() && at_ < pattern_.size())
    fail(at_, "unbalanced parenthesis"sv);
  append(Kind::match, 0);
  if (error_) return *error_;
  program_->pattern = std::string(pattern_);
  program_->find_first_bytes();
  return std::shared_ptr<const Program>(std::move(program_));
}

// errors and input -------------------------------------------------------------------------------

bool Regex::Parser::fail(std::size_t offset, std::string_view what, ErrorCode code) {
  if (!error_) error_ = make_error(code, "% at byte %", {what, offset}, offset);
  return false;
}

bool Regex::Parser::unsupported(std::size_t offset, std::string_view what) {
  return fail(offset, concat("% cannot be matched in linear time", {what}), ErrorCode::unsupported);
}

bool Regex::Parser::take(char c) {
  if (!next_is(c)) return false;
  ++at_;
  return true;
}

std::uint32_t Regex::Parser::take_char() {
  const RegexChar c = regex_char_at(pattern_, at_);
  at_ += c.size;
  return c.code;
}

// the program ------------------------------------------------------------------------------------

bool Regex::Parser::has_room(std::size_t more, std::size_t offset) {
  if (steps().size() + more <= longest_program) return true;
  return fail(offset, "the compiled pattern is too large"sv, ErrorCode::limit);
}

bool Regex::Parser::append(Kind kind, std::int32_t value) {
  if (!has_room(1, at_)) return false;
  steps().push_back({kind, value, 0});
  return true;
}

Regex::Parser::Step Regex::Parser::split(std::size_t into, std::size_t past, bool lazy) {
  const auto a = static_cast<std::int32_t>(into);
  const auto b = static_cast<std::int32_t>(past);
  return lazy ? Step{Kind::split, b, a} : Step{Kind::split, a, b};
}

bool Regex::Parser::append_char(std::uint32_t code) {
  const bool folded = flags_.ignore_case && is_ascii_letter(code);
  return append(folded ? Kind::folded : Kind::one,
                static_cast<std::int32_t>(folded ? code | 0x20 : code));
}

std::int32_t Regex::Parser::add_set(const std::vector<RegexRange>& ranges) {
  program_->sets.emplace_back(ranges);
  return static_cast<std::int32_t>(program_->sets.size() - 1);
}

bool Regex::Parser::append_common(std::size_t index, const std::vector<RegexRange>& ranges) {
  std::int32_t& common = common_sets_[index];
  if (common < 0) common = add_set(ranges);
  return append(Kind::set, common);
}

bool Regex::Parser::append_shorthand(char letter) {
  const std::size_t index = shorthands.find(letter) + (flags_.ascii ? shorthands.size() : 0);
  return append_common(index, shorthand_ranges(letter, flags_.ascii));
}

bool Regex::Parser::append_dot() {
  constexpr std::size_t index = 2 * shorthands.size();
  std::vector<RegexRange> none;
  if (flags_.dot_matches_newline) return append_common(index, complement(none));
  none.push_back({'\n', '\n'});
  return append_common(index + 1, complement(none));
}

bool Regex::Parser::append_assertion(RegexAssertion assertion) {
  program_->has_assertions = true;
  return append(Kind::check, static_cast<std::int32_t>(assertion));
}

// alternatives, sequences, quantifiers -----------------------------------------------------------

bool Regex::Parser::alternatives() {
  std::vector<std::size_t> exits;
  std::size_t branch = steps().size();
  for (;;) {
    if (!sequence()) return false;
    if (!take('|')) break;
    at_start_ = false;
    // In front of the branch: try it, or else go on behind its jump to the end.
    if (!has_room(2, at_)) return false;
    steps().push_back(split(1, steps().size() + 2 - branch, false));
    for (std::size_t i = steps().size() - 1; i > branch; --i) std::swap(steps()[i], steps()[i - 1]);
    exits.push_back(steps().size());
    append(Kind::jump, 0);
    branch = steps().size();
  }
  for (const std::size_t exit : exits)
    steps()[exit].value = static_cast<std::int32_t>(steps().size() - exit);
  return true;
}

bool Regex::Parser::sequence() {
  Item item = Item::nothing;
  std::size_t item_start = steps().size();
  for (;;) {
    if (flags_.verbose) skip_verbose();
    if (error_) return false;
    if (at_end() || next_is('|') || next_is(')')) return true;
    const std::size_t offset = at_;
    Quantifier quantifier;
    if (take_quantifier(quantifier)) {
      if (item == Item::nothing || item == Item::assertion)
        return fail(offset, "nothing to repeat"sv);
      if (item == Item::repeated) return fail(offset, "multiple repeat"sv);
      if (error_ || !repeat(item_start, quantifier, offset)) return false;
      item = Item::repeated;
      continue;
    }
    const std::size_t start = steps().size();
    const Item next = take_item();
    if (error_) return false;
    if (next == Item::nothing) continue;  // a comment or flags: what stands before stays
    at_start_ = false;
    item = next;
    item_start = start;
  }
}

void Regex::Parser::skip_verbose() {
  while (!at_end()) {
    const char c = peek();
    if (c == ' ' || (c >= '\t' && c <= '\r'))
      ++at_;
    else if (c == '#')
      while (!at_end() && !take('\n')) skip_comment_char();
    else
      return;
  }
}

bool Regex::Parser::take_quantifier(Quantifier& quantifier) {
  const std::size_t offset = at_;
  if (take('*'))
    quantifier = {0, unbounded, false};
  else if (take('+'))
    quantifier = {1, unbounded, false};
  else if (take('?'))
    quantifier = {0, 1, false};
  else if (!take_counts(quantifier))
    return false;
  if (next_is('+'))
    unsupported(at_, "a possessive quantifier"sv);
  else
    quantifier.lazy = take('?');
  if (quantifier.most != unbounded && quantifier.least > quantifier.most)
    fail(offset, "min repeat greater than max repeat"sv);
  return true;
}

bool Regex::Parser::take_counts(Quantifier& quantifier) {
  const std::size_t offset = at_;
  if (!take('{')) return false;
  const auto number = [this](std::size_t absent) {
    if (!is_digit(peek())) return absent;
    std::size_t value = 0;
    for (; is_digit(peek()); ++at_)
      value = std::min(value * 10 + static_cast<std::size_t>(peek() - '0'), largest_count + 1);
    return value;
  };
  const bool empty = next_is('}');
  quantifier.least = number(0);
  quantifier.most = take(',') ? number(unbounded) : quantifier.least;
  if (empty || !take('}')) {
    at_ = offset;
    return false;
  }
  if (quantifier.least > largest_count ||
      (quantifier.most > largest_count && quantifier.most != unbounded))
    fail(offset, "a repeat count is above 10000"sv, ErrorCode::limit);
  return true;
}

bool Regex::Parser::repeat(std::size_t start, const Quantifier& quantifier, std::size_t offset) {
  const std::vector<Step> body(steps().begin() + static_cast<std::ptrdiff_t>(start), steps().end());
  const std::size_t size = body.size();
  if (size == 0) return true;
  const bool endless = quantifier.most == unbounded;
  const std::size_t copies = endless ? std::max<std::size_t>(quantifier.least, 1) : quantifier.most;
  const std::size_t optional = copies - std::min(copies, quantifier.least);

  std::vector<Step>& code = steps();
  code.erase(code.begin() + static_cast<std::ptrdiff_t>(start), code.end());
  if (!has_room(copies * size + optional + (endless ? 1 : 0), offset)) return false;
  for (std::size_t copy = 0; copy < copies; ++copy) {
    // An optional copy is left to the end of the last one.
    if (copy >= quantifier.least) {
      const std::size_t left = copies - copy;
      code.push_back(split(1, left * (size + 1) + (endless ? 1 : 0), quantifier.lazy));
    }
    for (const Step& step : body) code.push_back(Step(step));
  }
  if (!endless) return true;
  const auto back = -static_cast<std::int32_t>(size);
  code.push_back(quantifier.lazy ? Step{Kind::split, 1, back} : Step{Kind::split, back, 1});
  return true;
}

}  // namespace v0_1
}  // namespace codeexec
