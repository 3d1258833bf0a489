// How the tests of the shell section show what it reads.
//
// The words of commands are shown like this:   w a <b c> @ ; [X=1] w
// A word with a blank or with nothing in it stands between < and >; @ is an unknown part; commands
// are divided by " ; "; assignments stand in brackets. "!parse" or "!limit" at the end tells that
// the script was not read to its end.
#ifndef CODEEXEC_TESTS_UNIT_SHELL_HELPERS_HPP
#define CODEEXEC_TESTS_UNIT_SHELL_HELPERS_HPP

#include "codeexec.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "../../helpers/shell_support.hpp"
#include "../../helpers/support.hpp"

namespace support {

inline codeexec::shell::Options options_of(codeexec::shell::Dialect dialect) {
  codeexec::shell::Options options;
  options.dialect = dialect;
  return options;
}

inline Script parsed(std::string_view script,
                     codeexec::shell::Dialect dialect = codeexec::shell::Dialect::bash) {
  return parse(script, options_of(dialect));
}

inline std::string text_of(std::string_view text) {
  std::string result;
  for (const char c : text) result += c == '\0' ? '@' : c;
  if (!result.empty() && result.find_first_of(" \t\n") == std::string::npos) return result;
  return "<" + result + ">";
}

inline std::string words_of(const codeexec::shell::Command& command) {
  std::string result;
  const auto add = [&result](const std::string& piece) {
    if (!result.empty()) result += ' ';
    result += piece;
  };
  for (const codeexec::shell::Assignment& assignment : command.assignments)
    add("[" + assignment.name + "=" + text_of(assignment.value.text) + "]");
  for (const codeexec::shell::Word& word : command.words) add(text_of(word.text));
  return result;
}

// What was told, and how the reading ended.
inline std::string ended(std::string shown, const codeexec::shell::Outcome& outcome) {
  if (outcome.complete) return shown;
  if (!shown.empty()) shown += ' ';
  return shown + (outcome.error.code == codeexec::ErrorCode::limit ? "!limit" : "!parse");
}

template <class Show>
std::string all(const Script& script, const Show& show) {
  std::string result;
  for (const codeexec::shell::Command& command : script.commands) {
    if (!result.empty()) result += " ; ";
    result += show(command);
  }
  return ended(result, script);
}

inline std::string told(std::string_view script,
                        codeexec::shell::Dialect dialect = codeexec::shell::Dialect::bash) {
  return all(parsed(script, dialect), words_of);
}

inline std::string told_by_posix(std::string_view script) {
  return told(script, codeexec::shell::Dialect::posix);
}

struct Row {
  std::string_view script;
  const char* expected;
};

template <class Show, std::size_t size>
void check(const Row (&rows)[size], const Show& show) {
  for (const Row& row : rows) {
    CAPTURE(std::string(row.script));
    CHECK(show(row.script) == row.expected);
  }
}

template <std::size_t size>
void check(const Row (&rows)[size]) {
  check(rows, [](std::string_view script) { return told(script); });
}

// Both dialects read these alike.
template <std::size_t size>
void check_both(const Row (&rows)[size]) {
  check(rows);
  check(rows, told_by_posix);
}

// What the last command reads: "inherited", "unknown" or "=text".
inline std::string input_of(std::string_view script,
                            codeexec::shell::Dialect dialect = codeexec::shell::Dialect::bash) {
  const Script result = parsed(script, dialect);
  if (result.commands.empty()) return "no command";
  const codeexec::shell::Input& input = result.commands.back().input;
  if (input.kind == codeexec::shell::Input::Kind::inherited) return "inherited";
  if (input.kind == codeexec::shell::Input::Kind::unknown) return "unknown";
  std::string text;
  for (const char c : std::string_view(input.text)) text += c == '\0' ? '@' : c;
  return "=" + text;
}

inline bool contains(const Script& script, std::string_view words) {
  for (const codeexec::shell::Command& command : script.commands)
    if (words_of(command) == words) return true;
  return false;
}

}  // namespace support

#endif  // CODEEXEC_TESTS_UNIT_SHELL_HELPERS_HPP
