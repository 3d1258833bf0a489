// Terminals: their screen, their keys.
#pragma once

#include "base/base.hpp"

namespace codeexec {
inline namespace v0_1 {

// The size of a terminal in cells.
struct TerminalSize {
  static constexpr int max_rows = 200;
  static constexpr int max_cols = 500;
  int rows = 24;
  int cols = 80;
  bool is_valid() const { return rows > 0 && rows <= max_rows && cols > 0 && cols <= max_cols; }
};

// What a terminal shows at one moment.
struct TerminalScreen {
  // A line for each row, in UTF-8, without blanks at the ends of lines and without empty rows at
  // the end. Colours and other attributes are left out.
  std::string text = {};
  int cursor_row = 1;  // both count from 1
  int cursor_col = 1;
  bool cursor_visible = true;
  bool alternate = false;           // the screen of a full-screen program, such as an editor
  bool application_cursor = false;  // the program wants other bytes for arrows, home and end
};

// The bytes that a terminal with this screen sends for keys: names such as "enter", "ctrl-c", "up",
// "f5" and "alt-x", in lower or upper case, and characters, which stand for themselves.
//   Errors: invalid_argument for a name that is not known; the message lists those that are.
Expected<std::string> key_bytes(const std::vector<std::string>& keys, const TerminalScreen& screen);

}  // namespace v0_1
}  // namespace codeexec
