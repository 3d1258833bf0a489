// An output as a terminal shows it.
//
// A line on which a program has gone back, by `\r` or a backspace, is written over cell by cell, as
// progress bars expect it. Escape sequences show nothing; those that erase in a line do that. What
// moves between lines is left out. A `\r` before the end of a line is a part of that end.
//
//   ESC [ 0-?... !-/... @-~      CSI: colours, cursor, erasing
//   ESC ] ... BEL or ESC \       OSC: titles, links; P X ^ _ likewise
//   ESC !-/... 0-~               character sets and others

#include "tools/tools.hpp"
#include "tools/tools_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"
#include "executor/executor.hpp"
#include "process/process.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

constexpr char escape = '\x1b';

bool is_between(char c, char first, char last) { return c >= first && c <= last; }

// Where the sequence ends that begins at `at`; npos when the text ends before it. One that is
// broken off ends there.
std::size_t end_of_escape(std::string_view text, std::size_t at) {
  if (++at >= text.size()) return std::string_view::npos;
  const char kind = text[at++];
  if (kind == ']' || kind == 'P' || kind == 'X' || kind == '^' || kind == '_') {
    const std::size_t end = text.find_first_of("\a\x1b\n", at);
    if (end == std::string_view::npos) return end;
    if (text[end] == '\a') return end + 1;
    if (text[end] == '\n') return at;
    if (end + 1 == text.size()) return std::string_view::npos;
    return text[end + 1] == '\\' ? end + 2 : at;
  }
  const bool is_csi = kind == '[';
  if (!is_csi && !is_between(kind, ' ', '/')) return is_between(kind, '0', '~') ? at : at - 1;
  while (at < text.size() && is_between(text[at], ' ', is_csi ? '?' : '/')) ++at;
  if (at == text.size()) return std::string_view::npos;
  return is_between(text[at], is_csi ? '@' : '0', '~') ? at + 1 : at;
}

// A line of cells, each of a character of up to four bytes.
class Cells {
 public:
  void put(std::string_view character) {
    if (at_ == cells_.size()) cells_.append(width, unused);
    for (std::size_t i = 0; i < width; ++i)
      cells_[at_ + i] = i < character.size() ? character[i] : unused;
    at_ += width;
  }
  void go_to_begin() { at_ = 0; }
  void go_back() { at_ -= std::min(at_, width); }
  void erase_from_here() { cells_.resize(at_); }
  // And goes to its begin, as programs that erase all do next.
  void erase_all() {
    cells_.clear();
    at_ = 0;
  }
  void move_to(std::string& text) {
    for (const char byte : cells_)
      if (byte != unused) text += byte;
    erase_all();
  }

 private:
  static constexpr std::size_t width = 4;
  static constexpr char unused = '\xff';  // in no UTF-8
  std::string cells_ = {};
  std::size_t at_ = 0;
};

std::size_t size_of_character(std::string_view text, std::size_t at) {
  std::size_t size = 1;
  while (size < 4 && at + size < text.size() && is_between(text[at + size], '\x80', '\xbf')) ++size;
  return size;
}

// Writes the characters of a line into the cells, and does what its controls ask for.
void show_line(std::string_view line, Cells& cells) {
  for (std::size_t at = 0; at < line.size();) {
    const char c = line[at];
    if (c == '\r') {
      cells.go_to_begin();
    } else if (c == '\b') {
      cells.go_back();
    } else if (c == escape) {
      std::size_t end = end_of_escape(line, at);
      // A text without its end takes nothing with it.
      if (end == std::string_view::npos)
        end = line.substr(at + 1, 1) == "["sv ? line.size() : std::min(at + 2, line.size());
      const std::string_view sequence = line.substr(at + 1, end - at - 1);
      if (sequence == "[K"sv || sequence == "[0K"sv) cells.erase_from_here();
      if (sequence == "[2K"sv) cells.erase_all();
      at = end;
      continue;
    } else if (c != '\a') {
      const std::size_t size = size_of_character(line, at);
      cells.put(line.substr(at, size));
      at += size;
      continue;
    }
    ++at;
  }
}

// True for a text without controls, as nearly all outputs are.
bool shows_as_it_is(std::string_view text) {
  for (const char c : {'\r', '\b', '\a', escape})
    if (text.find(c) != std::string_view::npos) return false;
  return true;
}

}  // namespace

inline namespace inner {

std::string as_on_terminal(std::string_view text) {
  if (shows_as_it_is(text)) return std::string(text);
  std::string shown;
  Cells cells;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::size_t next = std::min(end + 1, text.size());
    while (end < text.size() && end > begin && text[end - 1] == '\r') --end;
    const std::string_view line = text.substr(begin, end - begin);
    if (shows_as_it_is(line)) {
      shown += line;
    } else {
      show_line(line, cells);
      cells.move_to(shown);
    }
    shown += text.substr(end, next - end);
    begin = next;
  }
  return shown;
}

void show_as_on_terminal(const ToolOptions& options, Result& result, const Executor* executor,
                         std::string_view how_to_see) {
  if (options.full_results) return;
  for (std::string* text : {&result.out, &result.err}) {
    OutputCounts& counts = text == &result.out ? result.out_counts : result.err_counts;
    if (summarize_binary(*text, counts, how_to_see) || shows_as_it_is(*text)) continue;
    *text = as_on_terminal(*text);
    if (executor) *text = executor->redact(*text);
  }
}

std::size_t unfinished_escape(std::string_view text) {
  constexpr std::size_t longest = 1024;
  const std::size_t at = text.rfind(escape);
  if (at == std::string_view::npos || text.size() - at > longest) return 0;
  // A byte that is not UTF-8 has become three bytes, so that offsets cannot go back over it.
  if (text.find(replacement_character, at) != std::string_view::npos) return 0;
  return end_of_escape(text, at) == std::string_view::npos ? text.size() - at : 0;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
