// What a terminal shows, for terminal_oracle.py. Reads "ROWS COLS SIZE\n" and so many bytes, again
// and again, and answers each with one line of JSON: the screen, the cursor and the answers.
#include <iostream>
#include <string>

#include "codeexec.hpp"
#include "terminal/terminal_internal.hpp"

int main() {
  codeexec::TerminalSize size;
  std::size_t count = 0;
  while (std::cin >> size.rows >> size.cols >> count) {
    std::string bytes(count, '\0');
    std::cin.get();
    std::cin.read(&bytes[0], static_cast<std::streamsize>(count));
    codeexec::TerminalEmulator terminal(size);
    // In two pieces, as sequences may be cut anywhere.
    terminal.add(std::string_view(bytes).substr(0, count / 2));
    terminal.add(std::string_view(bytes).substr(count / 2));
    const codeexec::TerminalScreen screen = terminal.screen();
    std::cout << codeexec::Json::object({{"text", screen.text},
                                         {"row", screen.cursor_row},
                                         {"col", screen.cursor_col},
                                         {"answers", terminal.take_answers()}})
                     .dump()
              << std::endl;
  }
}
