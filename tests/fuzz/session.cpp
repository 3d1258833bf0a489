// What a shell reports of a session, which is hostile.   sh tests/fuzz/run.sh [seconds] session
//   The first byte of an input chooses the reader.
#include <algorithm>

#include "executor/executor_internal.hpp"
#include "fuzz.hpp"

namespace {

using codeexec::parse_session_state;
using fuzz::Variables;

constexpr std::string_view mark = "M0";

// As shells write it: in single quotes, in double quotes, in $'..', with backslashes.
std::string quoted(std::string_view value, std::size_t how) {
  std::string word = how == 0 ? "'" : how == 1 ? "\"" : how == 2 ? "$'" : "";
  for (const char c : value) {
    if (how == 0) {
      c == '\'' ? word += "'\\''" : word += c;
    } else if (how == 1) {
      if (std::string_view("$`\"\\").find(c) != std::string_view::npos) word += '\\';
      word += c;
    } else if (how == 2) {
      const auto byte = static_cast<unsigned char>(c);
      word += '\\';
      for (const int digit : {byte / 64, byte / 8 % 8, byte % 8}) word += std::to_string(digit);
    } else {
      (word += '\\') += c;
    }
  }
  return word + (how == 0 || how == 2 ? "'" : how == 1 ? "\"" : "");
}

std::string exports(const Variables& variables, std::size_t how) {
  static const char* const commands[] = {"export ", "declare -x ", "typeset -x ", "export -- "};
  std::string text;
  for (const auto& [name, value] : variables)
    text += commands[how] + name + "=" + quoted(value, how) + "\n";
  return text;
}

std::string message(const std::string& before, const std::string& folder,
                    const std::string& after) {
  const std::string line = std::string(mark) + "\n";
  return line + before + line + folder + "\n" + line + after + line;
}

void expect_state(const codeexec::SessionState& state, std::string_view text) {
  EXPECT_WITH(!state.work_dir.empty() && state.work_dir[0] == '/', text);
  EXPECT_WITH(state.work_dir.find('\0') == std::string::npos, text);
  for (const Variables* variables : {&state.before, &state.variables})
    for (const auto& [name, value] : *variables) {
      EXPECT_WITH(!name.empty() && !(name[0] >= '0' && name[0] <= '9'), text);
      for (const char c : name)
        EXPECT_WITH(
            (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_',
            text);
      EXPECT_WITH(value.find('\0') == std::string::npos, text);
    }
}

void read_hostile(std::string_view text) {
  const auto state = parse_session_state(text, mark);
  if (!state) {
    EXPECT_WITH(!state.error().message.empty(), text);
    EXPECT_WITH(state.error().code == codeexec::ErrorCode::parse, text);
    return;
  }
  expect_state(*state, text);
  EXPECT_WITH(!parse_session_state(text, "other"), text);
  EXPECT_WITH(!parse_session_state(std::string(text) + "x", mark), text);
  // The same, written anew.
  for (std::size_t how = 0; how < 2; ++how) {
    const auto again = parse_session_state(
        message(exports(state->before, how), state->work_dir, exports(state->variables, how)),
        mark);
    if (!again) continue;  // a value may have a line that is the mark
    EXPECT_WITH(again->work_dir == state->work_dir, text);
    EXPECT_WITH(again->before == state->before && again->variables == state->variables, text);
  }
}

// Whatever values a command has given its variables, they are what is read.
void read_told(fuzz::Bytes bytes) {
  const std::size_t how = bytes.below(4);
  Variables variables;
  for (char letter = 'A'; letter <= 'D'; ++letter) {
    std::string value(bytes.part());
    value.erase(std::remove(value.begin(), value.end(), '\0'), value.end());
    if (value.find(mark) != std::string::npos) return;
    variables.emplace_back(std::string("V_") + letter, value);
  }
  const std::string told = exports(variables, how);
  const auto state = parse_session_state(message("", "/work", told), mark);
  EXPECT_WITH(state.has_value(), told);
  EXPECT_WITH(state->variables == variables, told);
  EXPECT_WITH(state->work_dir == "/work" && state->before.empty(), told);
}

}  // namespace

void fuzz::session(std::string_view input) {
  Bytes bytes(input);
  if (bytes.below(2) == 0) return read_told(bytes);
  // `@` stands for the mark's line.
  std::string text;
  for (const char c : bytes.rest()) c == '@' ? text += std::string(mark) + "\n" : text += c;
  read_hostile(text);
}
