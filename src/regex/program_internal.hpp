// The program of a pattern: what the parser writes and the matcher runs.
//
// The parser writes the program of a Pike machine directly, without a tree: jumps are relative, so
// that the code of an atom can be moved and copied when a quantifier behind it asks for it. The
// parser recurses once per open group and stops at a depth of 200.
//
// The matcher walks the text once, one character at a time, and keeps the set of places in the
// program that are still possible, the preferred ones first: never more than there are steps in the
// program. That order is what makes the result the one a backtracking matcher finds first. A
// repeated atom x* is written as (?:x+)?: a first round that matched nothing then leaves the loop,
// as it does in a backtracking matcher. (Later rounds would need the loop's history in its state;
// that is not worth what it costs, since only the end of a span depends on it.)
//
// Where nothing is under way, the text is skipped up to the next byte that can begin a match; most
// commands are never looked at any closer by most patterns.
#pragma once

#include "regex/regex.hpp"
#include "regex/regex_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

struct Regex::Program {
  // A set of characters: a bit for each ASCII one, sorted ranges for the rest.
  class Set {
   public:
    // Takes normalized ranges.
    explicit Set(const std::vector<RegexRange>& ranges) {
      for (const RegexRange& range : ranges) {
        for (std::uint32_t code = range.first; code <= range.last && code < 0x80; ++code)
          ascii_[code >> 6] |= std::uint64_t{1} << (code & 63);
        if (range.last >= 0x80) ranges_.push_back({std::max(range.first, 0x80u), range.last});
      }
    }
    bool contains(std::uint32_t code) const {
      if (code < 0x80) return (ascii_[code >> 6] >> (code & 63) & 1) != 0;
      return is_in_ranges(ranges_, code, code);
    }
    bool has_non_ascii() const { return !ranges_.empty(); }

   private:
    std::uint64_t ascii_[2] = {0, 0};
    std::vector<RegexRange> ranges_ = {};
  };

  // One step of a program. Offsets are relative to the step itself.
  struct Step {
    enum class Kind : std::uint8_t {
      one,     // consumes the character `value`
      folded,  // consumes an ASCII letter whose lower case is `value`
      set,     // consumes a character of set `value`
      split,   // goes on at `value`, or else at `other`
      jump,    // goes on at `value`
      check,   // goes on where the RegexAssertion `value` holds
      match,   // is done
    };
    Kind kind = Kind::match;
    std::int32_t value = 0;
    std::int32_t other = 0;
  };

  std::string pattern = {};
  std::vector<Step> steps = {};
  std::vector<Set> sets = {};
  bool has_assertions = false;
  // True if each match begins with one of the bytes in `first_byte`: false when one may be empty.
  bool can_skip = false;
  std::array<bool, 256> first_byte = {};

  static std::size_t target(std::size_t from, std::int32_t offset) {
    return static_cast<std::size_t>(static_cast<std::ptrdiff_t>(from) + offset);
  }
  bool consumes(const Step& step, std::uint32_t code) const {
    switch (step.kind) {
      case Step::Kind::one:
        return code == static_cast<std::uint32_t>(step.value);
      case Step::Kind::folded:
        return (code | 0x20) == static_cast<std::uint32_t>(step.value);
      default:
        return sets[static_cast<std::size_t>(step.value)].contains(code);
    }
  }

  // Sets the bytes that can begin a match: what the first consuming steps take, whatever the
  // position.
  void find_first_bytes();
  void add_first_bytes(const Step& step);
};

}  // namespace v0_1
}  // namespace codeexec
