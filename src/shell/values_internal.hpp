// What a variable can hold while a script is walked.
//
// A variable has several values when branches differ: `[ -f a ] && x=1` leaves x with what it was
// and with 1. Each value is a scalar or an array, each element a text, and each text may have
// unknown parts, which are NUL bytes:
//
//   ShellVariable  x            { value, value ... }     at most max_values, else one unknown
//   ShellValue     (a "$b" c)   { text, text, text }     one text, unless it is an array
//   ShellText      a$RANDOM     "a\0"
#pragma once

#include "shell/script_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

using ShellText = shell::Text;

constexpr std::string_view unknown_part("\0", 1);
inline ShellText unknown_text() { return {std::string(unknown_part)}; }
inline ShellText unknown_words() { return {std::string(unknown_part), false, false, false, true}; }

// One value that a variable may have.
struct ShellValue {
  std::vector<ShellText> elements = {};  // one, unless it is an array
  std::vector<long long> indexes = {};   // of the elements; empty: they are 0, 1, 2 ...
  bool array = false;
  bool unset = false;
  bool environment = false;  // whatever the script was started with
  bool operator==(const ShellValue& other) const {
    return elements == other.elements && indexes == other.indexes && array == other.array &&
           unset == other.unset && environment == other.environment;
  }
  // True if one of the first `count` elements may be several words, or none.
  bool is_uncertain(std::size_t count) const;
  // Sets the element of a subscript. One that is not known makes all elements unknown. Gives the
  // number of indexes that it went through.
  std::size_t put(std::string_view subscript, ShellText text);
};

inline ShellValue scalar_value(ShellText text) {
  ShellValue value;
  text.split = false;
  value.elements.push_back(std::move(text));
  return value;
}

inline ShellValue empty_array() {
  ShellValue value;
  value.array = true;
  return value;
}

// A value that is not known, and an array of which not even the size is known.
inline ShellValue unknown_scalar() { return scalar_value(unknown_text()); }
inline ShellValue unknown_array() {
  ShellValue value;
  value.elements.push_back(unknown_words());
  value.array = true;
  return value;
}

struct ShellVariable {
  static constexpr std::size_t max_values = 16;  // with more, it is not known

  std::vector<ShellValue> values = {};  // what it is, depending on the branches taken
  std::uint64_t frame = 0;              // the one that keeps its former value; see ShellScopes
  bool used = false;                    // in a recording: read by a command
  bool late = false;  // in a change: the body may have been left before this was assigned

  // Adds a value, unless it is there.
  void merge(const ShellValue& value);
  // About the bytes that it takes.
  std::size_t size() const;
};

// Short names first, then those with a lesser last byte: most differ in one of them.
struct ShellNameOrder {
  using is_transparent = void;
  bool operator()(std::string_view left, std::string_view right) const {
    if (left.size() != right.size()) return left.size() < right.size();
    if (left.empty() || left.back() != right.back())
      return !left.empty() && left.back() < right.back();
    return left < right;
  }
};

using ShellVariables = std::map<std::string, ShellVariable, ShellNameOrder>;
// Variables that a stretch of the walk has changed.
using ShellChanges = std::list<std::pair<std::string, ShellVariable>>;

// Numbers as the shells write them: with a sign, of at most nine bytes.
bool read_integer(std::string_view text, long long& value);
// True if it has a 0 in front.
bool is_padded(std::string_view text);
// The same in arithmetic. A 0 in front makes a number octal there: false.
inline bool read_decimal(std::string_view text, long long& value) {
  return !is_padded(text) && read_integer(text, value);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
