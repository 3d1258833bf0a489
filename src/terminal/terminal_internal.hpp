// The emulator of a terminal: VT100 and what xterm has beyond it, as far as text shows it.
//
// Programs are started with TERM=xterm-256color, and send what that name promises.
//
//            printable, control, UTF-8
//             .------------------.
//             v                  |      ESC from any state; CAN and SUB lead back to ground
//          ground ---------------'
//             |  ESC
//             v            [                                      @ to ~
//          escape -----------------------> sequence (CSI) ----------------------> ground
//             |  ] P X ^ _                  digits ; : < = > ? and ' ' to / are collected
//             +--------------------------> text (OSC, DCS ...), skipped
//             |                              BEL (of OSC), ESC \, or 1 MiB -----> ground
//             |  ' ' to /
//             +--------------------------> designation ( ( ) # % ) -- 0 to ~ ---> ground
//             |  others: 7 8 c D E H M Z
//             '--------------------------------------------------------------->  ground
//
// Control bytes within a sequence act at once, as on a real terminal.
#pragma once

#include "terminal/terminal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// The cells that a character takes: 0 for one that is drawn over the one before it, -1 for none (a
// control character).
int cell_width(std::uint32_t code);

// The name of the terminal for programs.
inline constexpr char terminal_variable[] = "TERM=xterm-256color";

}  // namespace inner

// The cells of a screen. Rows are moved by their numbers, and filled when they are used, so that
// scrolling and erasing cost no copy of cells: hostile programs do little else.
class ScreenCells {
 public:
  // A character, and up to two that are drawn over it, in 21 bits each. The second cell of a wide
  // character is `wide_end`.
  using Cell = std::uint64_t;
  static constexpr Cell blank = 0;
  static constexpr Cell wide_end = Cell{1} << 63;

  ScreenCells() = default;
  explicit ScreenCells(TerminalSize size);

  Cell* row(int number);
  // Gives all cells of a row this one.
  void fill(int row, Cell cell) { fills_[rows_[row]] = cell; }
  // Blanks the cells from column `first` to before `last`, and the other half of a wide character
  // that this cuts.
  void erase(int row, int first, int last);
  // Moves the rest of a row from column `first` by `count` columns to the right, or to the left
  // when that is negative. Blanks come in.
  void shift(int row, int first, int count);
  // Moves the rows from `top` to `bottom` up by `count`, or down when that is negative.
  void scroll(int top, int bottom, int count);
  // Adds a character that takes no cell of its own to the one at this place.
  void add_mark(int row, int col, std::uint32_t code);
  // Blanks the halves of wide characters that end before `first` or begin before `last`.
  void split_wide(int row, int first, int last);
  // The same cells in another size, without the first `gone` rows. Lines are cut or padded.
  ScreenCells resized(TerminalSize size, int gone);
  std::string text();

 private:
  TerminalSize size_ = {};
  static constexpr Cell own = ~Cell{0};              // the cells of a row hold what they are
  unsigned char rows_[TerminalSize::max_rows] = {};  // where each row lies
  Cell fills_[TerminalSize::max_rows] = {};          // what all cells there are, or `own`
  std::unique_ptr<Cell[]> cells_ = {};
};

// A terminal without a device: takes what programs print, and gives the screen and the answers to
// questions of programs. Linear in the bytes; memory is bounded by the size, at 8 bytes a cell, and
// twice that with the alternate screen. Not thread-safe.
class TerminalEmulator {
 public:
  explicit TerminalEmulator(TerminalSize size);
  void add(std::string_view bytes);
  // Lines are cut or padded, and none is wrapped anew. New rows come in below. Rows go from the
  // bottom, and from the top only as far as the line of the cursor must stay.
  void resize(TerminalSize size);
  TerminalSize size() const { return size_; }
  TerminalScreen screen();
  // What the terminal answers since the last call, for the program's input. At most 4 KiB: a
  // program that asks and does not read gets no more.
  std::string take_answers() { return std::exchange(answers_, {}); }

 private:
  enum class State { ground, escape, designation, sequence, text };

  // What ESC 7 saves.
  struct Cursor {
    int row = 0;
    int col = 0;
    bool wraps = false;  // the last column is written: the next character begins a new line
    bool origin = false;
    bool graphics[2] = {false, false};  // G0 and G1 have line drawing in place of letters
    bool shifted = false;               // G1 is in use
  };

  std::size_t print(std::string_view bytes);
  std::size_t skip_text(std::string_view bytes);
  void control(char c);
  void escape(char c);
  void designate(char c);
  void collect(char c);
  void end_sequence(char final);
  bool move_cursor(char final);
  void edit(char final);
  void report(char final);
  void set_modes(bool on);
  void set_private_mode(int mode, bool on);
  void set_margins();
  void set_usual_tabs();
  void set_tabs(char final);
  void put(std::uint32_t code);
  void put_plain(std::string_view text);
  void wrap();
  void go_to(int row, int col);
  void line_feed();
  void reverse_line_feed();
  void tab(int count);
  void erase_display(int kind);
  void use_alternate(bool on);
  void save() { saved_[alternate_ ? 1 : 0] = cursor_; }
  void restore();
  void soft_reset();
  void reset();
  void answer(Pieces pieces);
  // A number of the sequence; 0 and one that is left out count as `otherwise`.
  int parameter(std::size_t index, int otherwise) const;

  TerminalSize size_;
  ScreenCells cells_;
  ScreenCells normal_ = {};  // while the alternate screen is shown
  Cursor cursor_ = {};
  Cursor saved_[2] = {};  // of the normal and of the alternate screen
  int top_ = 0;           // the margins, which scroll
  int bottom_;
  bool alternate_ = false;
  bool auto_wrap_ = true;
  bool insert_ = false;
  bool new_line_ = false;  // a line feed begins the line, too
  bool cursor_visible_ = true;
  bool application_cursor_ = false;
  bool tabs_[TerminalSize::max_cols] = {};
  std::uint32_t last_ = 0;  // the last character, which can be repeated

  // The sequence that is being read.
  static constexpr std::size_t most_parameters = 16;
  static constexpr int largest_parameter = 9999;
  State state_ = State::ground;
  int parameters_[most_parameters] = {};
  std::size_t parameter_count_ = 0;
  char prefix_ = '\0';        // one of < = > ?
  char intermediate_ = '\0';  // the last one
  bool ends_with_bell_ = false;
  std::size_t text_left_ = 0;   // bytes that are still skipped
  unsigned char held_[4] = {};  // the beginning of a character in UTF-8
  std::size_t held_count_ = 0;
  std::string answers_ = {};
};

}  // namespace v0_1
}  // namespace codeexec
