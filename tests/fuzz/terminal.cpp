// The screen of a terminal after hostile output: within its size, the same in whatever pieces the
// bytes come, well-formed UTF-8.                        sh tests/fuzz/run.sh [seconds] terminal
#include "fuzz.hpp"

void fuzz::terminal(std::string_view input) {
  Bytes bytes(input);
  const int rows = static_cast<int>(bytes.below(30)) + 1;
  const int cols = static_cast<int>(bytes.below(90)) + 1;
  const std::size_t piece = bytes.below(16) + 1;
  const std::string_view output = bytes.rest();
  std::string answers;
  std::string other_answers;
  const codeexec::TerminalScreen screen = screen_after(rows, cols, output, output.size(), answers);
  const codeexec::TerminalScreen cut = screen_after(rows, cols, output, piece, other_answers);
  EXPECT_WITH(screen.text == cut.text && screen.cursor_row == cut.cursor_row, output);
  EXPECT_WITH(screen.cursor_col == cut.cursor_col && answers == other_answers, output);
  EXPECT_WITH(codeexec::is_utf8(screen.text), output);
  EXPECT_WITH(screen.cursor_row >= 1 && screen.cursor_row <= rows, output);
  EXPECT_WITH(screen.cursor_col >= 1 && screen.cursor_col <= cols, output);
  EXPECT_WITH(answers.size() <= 4096, output);
  int lines = 1;
  for (const char c : screen.text) lines += c == '\n' ? 1 : 0;
  EXPECT_WITH(lines <= rows, output);
  EXPECT_WITH(screen.text.size() <= static_cast<std::size_t>(rows * (cols * 12 + 1)), output);
}
