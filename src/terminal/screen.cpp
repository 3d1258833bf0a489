// The cells of a terminal's screen.

#include "terminal/terminal_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

ScreenCells::ScreenCells(TerminalSize size)
    : size_(size),
      cells_(new Cell[static_cast<std::size_t>(size.rows) * static_cast<std::size_t>(size.cols)]) {
  for (int row = 0; row < size.rows; ++row) rows_[row] = static_cast<unsigned char>(row);
}

ScreenCells::Cell* ScreenCells::row(int number) {
  const int place = rows_[number];
  Cell* const cells = cells_.get() + place * size_.cols;
  if (const Cell filled = std::exchange(fills_[place], own); filled != own)
    std::fill(cells, cells + size_.cols, filled);
  return cells;
}

void ScreenCells::split_wide(int row, int first, int last) {
  Cell* const cells = this->row(row);
  if (first > 0 && first < size_.cols && cells[first] == wide_end) cells[first - 1] = blank;
  if (last < size_.cols && cells[last] == wide_end) cells[last] = blank;
}

ScreenCells ScreenCells::resized(TerminalSize size, int gone) {
  ScreenCells made(size);
  const int width = std::min(size.cols, size_.cols);
  for (int row = 0; row < std::min(size.rows, size_.rows - gone); ++row) {
    split_wide(row + gone, width, size_.cols);
    std::copy_n(this->row(row + gone), width, made.row(row));
  }
  return made;
}

void ScreenCells::erase(int row, int first, int last) {
  if (first >= last) return;
  if (first == 0 && last == size_.cols) return fill(row, blank);
  split_wide(row, first, last);
  Cell* const cells = this->row(row);
  std::fill(cells + first, cells + last, blank);
}

void ScreenCells::shift(int row, int first, int count) {
  Cell* const cells = this->row(row);
  const int width = size_.cols - first;
  const int moved = std::max(0, width - std::abs(count));
  const int kept = count < 0 ? first - count : first + moved;  // the other edge of what goes
  if (cells[first] == wide_end) cells[first - 1] = cells[first] = blank;
  if (moved > 0 && kept < size_.cols && cells[kept] == wide_end)
    cells[count < 0 ? kept : kept - 1] = blank;
  if (count < 0) {
    std::copy(cells + size_.cols - moved, cells + size_.cols, cells + first);
    std::fill(cells + first + moved, cells + size_.cols, blank);
  } else {
    std::copy_backward(cells + first, cells + first + moved, cells + size_.cols);
    std::fill(cells + first, cells + size_.cols - moved, blank);
  }
}

void ScreenCells::scroll(int top, int bottom, int count) {
  const int height = bottom - top + 1;
  const int blanked = std::min(std::abs(count), height);
  const auto up = static_cast<std::size_t>(count < 0 ? height - blanked : blanked);
  const auto rest = static_cast<std::size_t>(height) - up;
  unsigned char moved[TerminalSize::max_rows];
  std::memcpy(moved, rows_ + top + up, rest);
  std::memcpy(moved + rest, rows_ + top, up);
  std::memcpy(rows_ + top, moved, rest + up);
  const int first = count < 0 ? top : bottom + 1 - blanked;
  for (int row = first; row < first + blanked; ++row) fill(row, blank);
}

void ScreenCells::add_mark(int row, int col, std::uint32_t code) {
  Cell* cell = this->row(row) + col;
  if (*cell == wide_end && col > 0) --cell;
  if (*cell == blank) *cell = ' ';
  for (const int at : {21, 42}) {
    if (*cell >> at != 0) continue;
    *cell |= Cell{code} << at;
    return;
  }
}

std::string ScreenCells::text() {
  std::string text;
  std::size_t end = 0;  // of the last line that is not empty
  for (int row = 0; row < size_.rows; ++row) {
    if (row > 0) text += '\n';
    const Cell* const cells = this->row(row);
    int used = size_.cols;
    while (used > 0 && (cells[used - 1] == blank || cells[used - 1] == ' ')) --used;
    for (int col = 0; col < used; ++col) {
      if (cells[col] == wide_end) continue;
      Cell rest = cells[col] == blank ? ' ' : cells[col];
      for (; rest != 0; rest >>= 21) append_utf8(static_cast<std::uint32_t>(rest & 0x1fffff), text);
    }
    if (used > 0) end = text.size();
  }
  text.resize(end);
  return text;
}

}  // namespace v0_1
}  // namespace codeexec
