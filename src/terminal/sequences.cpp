// What a terminal does with what programs print; terminal_internal.hpp draws the states.

#include "terminal/terminal_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr char escape_byte = '\x1b';
constexpr char cancel_byte = '\x18';
constexpr char substitute_byte = '\x1a';

// A char may be signed or not.
bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }
bool is_control(char c) { return static_cast<unsigned char>(c) < ' '; }
bool is_printable_byte(char c) { return c >= ' ' && c < '\x7f'; }

// What stands in place of ` to ~ in the character set for lines and boxes.
constexpr std::uint16_t line_drawing[] = {
    0x25c6, 0x2592, 0x2409, 0x240c, 0x240d, 0x240a, 0xb0,   0xb1,   0x2424, 0x240b, 0x2518,
    0x2510, 0x250c, 0x2514, 0x253c, 0x23ba, 0x23bb, 0x2500, 0x23bc, 0x23bd, 0x251c, 0x2524,
    0x2534, 0x252c, 0x2502, 0x2264, 0x2265, 0x3c0,  0x2260, 0xa3,   0xb7};

}  // namespace

TerminalEmulator::TerminalEmulator(TerminalSize size)
    : size_(size), cells_(size), bottom_(size.rows - 1) {
  set_usual_tabs();
}

void TerminalEmulator::resize(TerminalSize size) {
  const auto gone = [&](const Cursor& cursor) { return std::max(0, cursor.row - size.rows + 1); };
  if (alternate_) {
    normal_ = normal_.resized(size, gone(saved_[0]));
    saved_[0].row -= gone(saved_[0]);
  }
  const int above = gone(cursor_);
  cells_ = cells_.resized(size, above);
  for (Cursor* cursor : {&cursor_, &saved_[alternate_ ? 1 : 0]}) cursor->row -= above;
  for (Cursor* cursor : {&cursor_, &saved_[0], &saved_[1]}) {
    cursor->row = std::clamp(cursor->row, 0, size.rows - 1);
    cursor->col = std::min(cursor->col, size.cols - 1);
    cursor->wraps = false;
  }
  size_ = size;
  top_ = 0;
  bottom_ = size.rows - 1;
}

void TerminalEmulator::add(std::string_view bytes) {
  while (!bytes.empty()) {
    std::size_t used = 1;
    const char c = bytes[0];
    if (state_ == State::ground)
      used = print(bytes);
    else if (state_ == State::text)
      used = skip_text(bytes);
    else if (is_control(c))
      control(c);
    else if (state_ == State::sequence)
      collect(c);
    else if (state_ == State::escape)
      escape(c);
    else
      designate(c);
    bytes.remove_prefix(used);
  }
}

// Returns the number of bytes that it has taken, which is 0 if they end a character that came
// before and was not whole.
std::size_t TerminalEmulator::print(std::string_view bytes) {
  if (held_count_ == 0) {
    std::size_t size = 0;
    while (size < bytes.size() && is_printable_byte(bytes[size])) ++size;
    if (size > 0) put_plain(bytes.substr(0, size));
    if (size > 0) return size;
    if (is_ascii(bytes[0])) {
      control(bytes[0]);
      return 1;
    }
  }
  held_[held_count_++] = static_cast<unsigned char>(bytes[0]);
  const Utf8Step step = utf8_step(held_, held_count_);
  if (step.good == 0 && step.cut) return 1;
  std::uint32_t code = 0xfffd;
  if (step.good > 0) {
    code = held_[0] & (0x7fu >> step.good);
    for (std::size_t i = 1; i < step.good; ++i) code = code << 6 | (held_[i] & 0x3f);
  }
  const std::size_t used = step.good > 0 || held_count_ == 1 ? 1 : 0;
  held_count_ = 0;
  put(code);
  return used;
}

std::size_t TerminalEmulator::skip_text(std::string_view bytes) {
  const std::string_view piece = bytes.substr(0, text_left_);
  std::size_t end = 0;
  while (end < piece.size() && piece[end] != escape_byte && piece[end] != cancel_byte &&
         piece[end] != substitute_byte && (piece[end] != '\a' || !ends_with_bell_))
    ++end;
  text_left_ -= end;
  if (end == bytes.size() && text_left_ > 0) return end;
  // The backslash of ESC \ does nothing by itself.
  state_ = end < piece.size() && piece[end] == escape_byte ? State::escape : State::ground;
  return end + (end < piece.size() ? 1 : 0);
}

// Control bytes -----------------------------------------------------------------------------------

void TerminalEmulator::control(char c) {
  if (c == '\b' || c == '\r') {
    cursor_.wraps = false;
    cursor_.col = c == '\r' ? 0 : std::max(0, cursor_.col - 1);
  }
  if (c == '\t') tab(1);
  if (c >= '\n' && c <= '\f') {
    line_feed();
    if (new_line_) cursor_.col = 0;
  }
  if (c == '\x0e' || c == '\x0f') cursor_.shifted = c == '\x0e';
  if (c == cancel_byte || c == substitute_byte) state_ = State::ground;
  if (c == escape_byte) state_ = State::escape;
}

void TerminalEmulator::line_feed() {
  cursor_.wraps = false;
  if (cursor_.row == bottom_)
    cells_.scroll(top_, bottom_, 1);
  else if (cursor_.row < size_.rows - 1)
    ++cursor_.row;
}

void TerminalEmulator::reverse_line_feed() {
  cursor_.wraps = false;
  if (cursor_.row == top_)
    cells_.scroll(top_, bottom_, -1);
  else if (cursor_.row > 0)
    --cursor_.row;
}

void TerminalEmulator::tab(int count) {
  const int step = count < 0 ? -1 : 1;
  int& col = cursor_.col;
  const int last = step < 0 ? 0 : size_.cols - 1;
  if (step < 0) cursor_.wraps = false;
  for (; count != 0 && col != last; count -= step) do
      col += step;
    while (col != last && !tabs_[col]);
}

// Characters --------------------------------------------------------------------------------------

void TerminalEmulator::wrap() {
  line_feed();
  cursor_.col = 0;
}

void TerminalEmulator::put_plain(std::string_view text) {
  if (insert_ || !auto_wrap_ || cursor_.graphics[cursor_.shifted ? 1 : 0]) {
    for (const char c : text) put(static_cast<unsigned char>(c));
    return;
  }
  last_ = static_cast<unsigned char>(text.back());
  while (!text.empty()) {
    if (cursor_.wraps) wrap();
    const int first = cursor_.col;
    const int count = static_cast<int>(
        std::min<std::size_t>(text.size(), static_cast<std::size_t>(size_.cols - first)));
    cells_.split_wide(cursor_.row, first, first + count);
    ScreenCells::Cell* const cells = cells_.row(cursor_.row) + first;
    for (int i = 0; i < count; ++i)
      cells[i] = static_cast<unsigned char>(text[static_cast<std::size_t>(i)]);
    cursor_.wraps = first + count == size_.cols;
    cursor_.col = first + count - (cursor_.wraps ? 1 : 0);
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

void TerminalEmulator::put(std::uint32_t code) {
  if (code >= '`' && code <= '~' && cursor_.graphics[cursor_.shifted ? 1 : 0])
    code = line_drawing[code - '`'];
  int width = cell_width(code);
  if (width < 0) return;
  if (width == 0) {
    const int col = cursor_.wraps ? cursor_.col : cursor_.col - 1;
    if (col >= 0) cells_.add_mark(cursor_.row, col, code);
    return;
  }
  if (width > size_.cols) width = 1;
  if (cursor_.wraps) wrap();
  if (cursor_.col + width > size_.cols) {
    if (auto_wrap_)
      wrap();
    else
      cursor_.col = size_.cols - width;
  }
  const int first = cursor_.col;
  if (insert_) cells_.shift(cursor_.row, first, width);
  cells_.split_wide(cursor_.row, first, first + width);
  ScreenCells::Cell* const cells = cells_.row(cursor_.row) + first;
  cells[0] = code;
  if (width == 2) cells[1] = ScreenCells::wide_end;
  last_ = code;
  const bool at_end = first + width >= size_.cols;
  cursor_.wraps = at_end && auto_wrap_;
  cursor_.col = at_end ? size_.cols - 1 : first + width;
}

// Escape sequences --------------------------------------------------------------------------------

void TerminalEmulator::escape(char c) {
  state_ = State::ground;
  if (c == '[') {
    state_ = State::sequence;
    std::memset(parameters_, 0, sizeof parameters_);
    parameter_count_ = 0;
    prefix_ = intermediate_ = '\0';
  } else if (c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_') {
    state_ = State::text;
    ends_with_bell_ = c == ']';
    text_left_ = std::size_t{1} << 20;
  } else if (c >= ' ' && c <= '/') {
    state_ = State::designation;
    intermediate_ = c;
  }
  if (c == '7') save();
  if (c == '8') restore();
  if (c == 'D') line_feed();
  if (c == 'E') wrap();
  if (c == 'H') tabs_[cursor_.col] = true;
  if (c == 'M') reverse_line_feed();
  if (c == 'Z') report('c');
  if (c == 'c') reset();
}

// But for the answers that wait.
void TerminalEmulator::reset() {
  use_alternate(false);
  soft_reset();
  new_line_ = false;
  last_ = 0;
  saved_[1] = Cursor();
  set_usual_tabs();
  erase_display(2);
  go_to(0, 0);
}

// ESC ( and ) choose the character sets, ESC # 8 fills the screen to adjust it.
void TerminalEmulator::designate(char c) {
  if (c >= ' ' && c <= '/') return;
  state_ = State::ground;
  if (intermediate_ == '(' || intermediate_ == ')')
    cursor_.graphics[intermediate_ == ')' ? 1 : 0] = c == '0';
  if (intermediate_ != '#' || c != '8') return;
  top_ = 0;
  bottom_ = size_.rows - 1;
  for (int row = 0; row < size_.rows; ++row) cells_.fill(row, ScreenCells::Cell{'E'});
  go_to(0, 0);
}

void TerminalEmulator::collect(char c) {
  int& number = parameters_[std::min(parameter_count_, most_parameters - 1)];
  if (is_digit(c)) {
    if (parameter_count_ < most_parameters)
      number = std::min(number * 10 + (c - '0'), largest_parameter);
  } else if (c == ';' || c == ':') {
    parameter_count_ = std::min(parameter_count_ + 1, most_parameters);
  } else if (c >= '<' && c <= '?') {
    prefix_ = c;
  } else if (c >= ' ' && c <= '/') {
    intermediate_ = c;
  } else {
    state_ = State::ground;
    if (c >= '@' && c <= '~') end_sequence(c);
  }
}

int TerminalEmulator::parameter(std::size_t index, int otherwise) const {
  return parameters_[index] == 0 ? otherwise : parameters_[index];
}

void TerminalEmulator::end_sequence(char final) {
  if (intermediate_ != '\0') {
    if (intermediate_ == '!' && final == 'p') soft_reset();
    return;
  }
  if (final == 'c' || final == 'n') return report(final);
  const bool is_private = prefix_ == '?';
  if (final == 'h' || final == 'l') return set_modes(final == 'h');
  // ESC [ ? J and K erase as well; other private sequences are none of these.
  if (prefix_ != '\0' && !(is_private && (final == 'J' || final == 'K'))) return;
  if (move_cursor(final)) return;
  edit(final);
  if (final == 'r') set_margins();
  if (final == 's') save();
  if (final == 'u') restore();
  if (final == 'g' || final == 'I' || final == 'Z') set_tabs(final);
  if (final == 't' && parameters_[0] == 18) answer({"\x1b[8;", size_.rows, ";", size_.cols, "t"});
}

void TerminalEmulator::go_to(int row, int col) {
  const int first = cursor_.origin ? top_ : 0;
  const int last = cursor_.origin ? bottom_ : size_.rows - 1;
  cursor_.row = std::clamp(row + first, first, last);
  cursor_.col = std::clamp(col, 0, size_.cols - 1);
  cursor_.wraps = false;
}

// False: it moves nothing.
bool TerminalEmulator::move_cursor(char final) {
  const int count = parameter(0, 1);
  const int first = cursor_.origin ? top_ : 0;  // go_to() adds it
  int row = cursor_.row - first;
  int col = cursor_.col;
  // Up and down stop at a margin, unless the cursor is beyond it already.
  if (final == 'A' || final == 'F')
    row = std::max(cursor_.row - count, cursor_.row >= top_ ? top_ : 0) - first;
  else if (final == 'B' || final == 'e' || final == 'E')
    row = std::min(cursor_.row + count, cursor_.row <= bottom_ ? bottom_ : size_.rows - 1) - first;
  else if (final == 'H' || final == 'f' || final == 'd')
    row = count - 1;
  else if (final == 'C' || final == 'a')
    col += count;
  else if (final == 'D')
    col -= count;
  else if (final == 'G' || final == '`')
    col = count - 1;
  else
    return false;
  if (final == 'E' || final == 'F') col = 0;
  if (final == 'H' || final == 'f') col = parameter(1, 1) - 1;
  go_to(row, col);
  return true;
}

void TerminalEmulator::edit(char final) {
  const int count = parameter(0, 1);
  const int kind = parameters_[0];
  const int row = cursor_.row;
  const int col = cursor_.col;
  if (final == '@') cells_.shift(row, col, count);
  if (final == 'P') cells_.shift(row, col, -count);
  if (final == 'X') cells_.erase(row, col, std::min(col + count, size_.cols));
  if (final == 'J') erase_display(kind);
  if (final == 'K' && kind <= 2)
    cells_.erase(row, kind == 0 ? col : 0, kind == 1 ? col + 1 : size_.cols);
  if (final == 'S') cells_.scroll(top_, bottom_, count);
  // With more parameters it is about the mouse.
  if (final == 'T' && parameter_count_ == 0) cells_.scroll(top_, bottom_, -count);
  if ((final == 'L' || final == 'M') && row >= top_ && row <= bottom_) {
    cells_.scroll(row, bottom_, final == 'L' ? -count : count);
    cursor_.col = 0;
  }
  if (std::strchr("@PXJKLM", final)) cursor_.wraps = false;
  // Programs repeat within a line: more would only take time.
  const int most = std::min(count, size_.cols);
  for (int i = 0; final == 'b' && last_ != 0 && i < most; ++i) put(last_);
}

// From the cursor to the end, from the begin to the cursor, or all. 3 is what has scrolled out.
void TerminalEmulator::erase_display(int kind) {
  if (kind > 2) return;
  if (kind != 2)
    cells_.erase(cursor_.row, kind == 0 ? cursor_.col : 0,
                 kind == 0 ? size_.cols : cursor_.col + 1);
  const int first = kind == 0 ? cursor_.row + 1 : 0;
  const int last = kind == 1 ? cursor_.row : size_.rows;
  for (int row = first; row < last; ++row) cells_.erase(row, 0, size_.cols);
}

void TerminalEmulator::set_margins() {
  const int top = parameter(0, 1) - 1;
  const int bottom = std::min(parameter(1, size_.rows), size_.rows) - 1;
  if (top >= bottom) return;
  top_ = top;
  bottom_ = bottom;
  go_to(0, 0);
}

void TerminalEmulator::set_usual_tabs() {
  for (int col = 0; col < TerminalSize::max_cols; ++col) tabs_[col] = col % 8 == 0;
}

void TerminalEmulator::set_tabs(char final) {
  if (final == 'I') return tab(parameter(0, 1));
  if (final == 'Z') return tab(-parameter(0, 1));
  if (parameters_[0] == 0) tabs_[cursor_.col] = false;
  if (parameters_[0] == 3) std::memset(tabs_, 0, sizeof tabs_);
}

// Modes and questions -----------------------------------------------------------------------------

void TerminalEmulator::set_modes(bool on) {
  for (std::size_t i = 0; i <= parameter_count_ && i < most_parameters; ++i) {
    if (prefix_ == '?') set_private_mode(parameters_[i], on);
    if (prefix_ != '\0') continue;
    if (parameters_[i] == 4) insert_ = on;
    if (parameters_[i] == 20) new_line_ = on;
  }
}

void TerminalEmulator::set_private_mode(int mode, bool on) {
  if (mode == 1) application_cursor_ = on;
  if (mode == 6) cursor_.origin = on;
  if (mode == 6) go_to(0, 0);
  if (mode == 7) auto_wrap_ = on;
  if (mode == 7 && !on) cursor_.wraps = false;
  if (mode == 25) cursor_visible_ = on;
  if ((mode == 1048 || (mode == 1049 && !alternate_)) && on) save();
  const bool leaves = mode == 1049 && alternate_ && !on;
  if (mode == 47 || mode == 1047 || mode == 1049) use_alternate(on);
  if ((mode == 1048 && !on) || leaves) restore();
}

// The alternate screen begins empty.
void TerminalEmulator::use_alternate(bool on) {
  if (on == alternate_) return;
  alternate_ = on;
  if (on)
    normal_ = std::exchange(cells_, ScreenCells(size_));
  else
    cells_ = std::exchange(normal_, ScreenCells());
}

void TerminalEmulator::restore() {
  cursor_ = saved_[alternate_ ? 1 : 0];
  // The margins may be others now.
  if (cursor_.origin) cursor_.row = std::clamp(cursor_.row, top_, bottom_);
}

void TerminalEmulator::soft_reset() {
  const int row = cursor_.row;
  const int col = cursor_.col;
  cursor_ = Cursor();
  save();
  cursor_.row = row;
  cursor_.col = col;
  top_ = 0;
  bottom_ = size_.rows - 1;
  auto_wrap_ = cursor_visible_ = true;
  insert_ = application_cursor_ = false;
}

void TerminalEmulator::answer(Pieces pieces) {
  constexpr std::size_t most = 4096;
  const std::string text = concat(pieces);
  if (answers_.size() + text.size() <= most) answers_ += text;
}

// Says that this is a VT100 with its advanced video option, that all is well, and where the cursor
// is. Programs wait for these.
void TerminalEmulator::report(char final) {
  const int row = cursor_.row - (cursor_.origin ? top_ : 0) + 1;
  if (final == 'c') {
    if (prefix_ == '>') answer({"\x1b[>0;10;0c"});
    if (prefix_ == '\0') answer({"\x1b[?1;2c"});
  } else if (parameters_[0] == 5 && prefix_ == '\0') {
    answer({"\x1b[0n"});
  } else if (parameters_[0] == 6 && (prefix_ == '\0' || prefix_ == '?')) {
    answer({prefix_ == '?' ? "\x1b[?" : "\x1b[", row, ";", cursor_.col + 1, "R"});
  }
}

TerminalScreen TerminalEmulator::screen() {
  TerminalScreen screen;
  screen.text = cells_.text();
  screen.cursor_row = cursor_.row + 1;
  screen.cursor_col = cursor_.col + 1;
  screen.cursor_visible = cursor_visible_;
  screen.alternate = alternate_;
  screen.application_cursor = application_cursor_;
  return screen;
}

}  // namespace v0_1
}  // namespace codeexec
