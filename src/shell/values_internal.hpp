// What a variable can hold while a script is walked.
#pragma once

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// A string that the script makes, and what is known of it (see shell::Word).
struct ShellText {
  std::string text = {};
  bool assumed = false;
  bool glob = false;
  bool home = false;
  bool split = false;  // of an element: may be several words, or none
  bool operator==(const ShellText& other) const {
    return text == other.text && assumed == other.assumed && glob == other.glob &&
           home == other.home && split == other.split;
  }
  bool known() const { return !has_nul(text); }
};

inline ShellText unknown_text() { return {std::string(1, '\0')}; }
inline ShellText unknown_words() { return {std::string(1, '\0'), false, false, false, true}; }

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

// A value that is not known: of a variable, and of an array of which not even the size is.
inline ShellValue unknown_scalar() { return scalar_value(unknown_text()); }
inline ShellValue unknown_array() {
  ShellValue value;
  value.elements.push_back(unknown_words());
  value.array = true;
  return value;
}

struct ShellVariable {
  std::vector<ShellValue> values = {};  // what it is, depending on the branches taken
  std::uint64_t frame = 0;              // that knows its former value
  bool used = false;                    // in a recording: read by a command
  bool late = false;  // of a change: the body may have been left before it was made
};

using ShellVariables = std::map<std::string, ShellVariable, std::less<>>;

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
