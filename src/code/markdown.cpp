// Fenced code in Markdown.

#include "code/code.hpp"
#include "code/code_internal.hpp"

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n\v\f";
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find_first_of("\r\n"), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end);
  if (!text.empty()) text.remove_prefix(starts_with(text, "\r\n"sv) ? 2 : 1);
  return line;
}

}  // namespace inner

namespace {

// fenced code -------------------------------------------------------------------------------------

// A line of Markdown, read from the left. White space is counted in columns: a tab leads to the
// next multiple of four, and one that was taken in part leaves the rest of them.
class MarkdownLine {
 public:
  explicit MarkdownLine(std::string_view text) : text_(text) { look_ahead(); }

  // Of white space, before the next character or the end.
  std::size_t indent() const { return indent_; }
  bool blank() const { return next_ == text_.size(); }
  // What comes after the white space.
  std::string_view text() const { return text_.substr(next_); }
  // All that is left.
  void append_to(std::string& out) const {
    out.append(tab_rest_, ' ');
    out.append(text_.substr(at_));
  }

  // Takes white space: so many columns at most.
  void skip(std::size_t columns) {
    columns = std::min(columns, indent_);
    indent_ -= columns;
    while (columns > 0) {
      if (tab_rest_ == 0) tab_rest_ = text_[at_++] == '\t' ? tab_width() : 1;
      const std::size_t step = std::min(columns, tab_rest_);
      tab_rest_ -= step;
      column_ += step;
      columns -= step;
    }
  }

  // Takes the white space and so many characters, none of which is a tab.
  void take(std::size_t count) {
    skip(indent_);
    at_ += count;
    column_ += count;
    look_ahead();
  }

 private:
  std::size_t tab_width() const { return 4 - column_ % 4; }

  void look_ahead() {
    std::size_t column = column_;
    for (next_ = at_; next_ < text_.size(); ++next_) {
      if (text_[next_] == '\t')
        column += 4 - column % 4;
      else if (text_[next_] == ' ')
        ++column;
      else
        break;
    }
    indent_ = column - column_;
  }

  std::string_view text_;
  std::size_t at_ = 0;        // the next byte
  std::size_t column_ = 0;    // where it stands, but for tab_rest_
  std::size_t tab_rest_ = 0;  // columns of a tab that was taken in part
  std::size_t next_ = 0;      // the first byte from at_ that is no white space
  std::size_t indent_ = 0;    // columns from column_ to there
};

// How many times a text begins with that character.
std::size_t run_of(std::string_view text, char c) {
  return std::min(text.find_first_not_of(c), text.size());
}

bool is_thematic_break(std::string_view text) {
  const char c = text.empty() ? '\0' : text.front();
  if (c != '*' && c != '-' && c != '_') return false;
  std::size_t count = 0;
  for (const char other : text) {
    if (other == c)
      ++count;
    else if (!is_shell_blank(other))
      return false;
  }
  return count >= 3;
}

bool is_heading(std::string_view text) {
  const std::size_t level = run_of(text, '#');
  return level >= 1 && level <= 6 && (level == text.size() || is_shell_blank(text[level]));
}

// Whether this makes a heading of the paragraph before it.
bool is_underline(std::string_view text) {
  const char c = text.empty() ? '\0' : text.front();
  return (c == '=' || c == '-') && without_blanks(text.substr(run_of(text, c))).empty();
}

// Reads the structure of a text line by line, as far as fences depend on it: the quotes and
// list items that a line is in, and whether it goes on with a paragraph.
class FenceReader {
 public:
  std::vector<CodeBlock> read(std::string_view markdown) {
    while (!markdown.empty()) add(take_line(markdown));
    if (in_fence_) close_fence();
    return std::move(blocks_);
  }

 private:
  static constexpr std::size_t max_depth = 32;

  // What holds blocks: a block quote, or an item of a list.
  struct Container {
    bool quote = false;
    std::size_t width = 0;  // of an item: columns that its content is indented by
    bool empty = false;     // of an item: nothing but its marker so far
  };

  struct Marker {
    std::size_t size = 0;  // 0: there is none
    bool may_interrupt = false;
  };

  void add(std::string_view text) {
    if (in_fence_ && add_to_fence(MarkdownLine(text))) return;
    MarkdownLine line(text);
    std::size_t depth = 0;
    while (depth < containers_.size() && stays_in(containers_[depth], line)) ++depth;
    if (line.blank()) {
      close_to(depth);
      in_paragraph_ = false;
      return;
    }
    add_block(line, depth);
  }

  static bool take_quote(MarkdownLine& line) {
    if (line.indent() > 3 || line.text().substr(0, 1) != ">"sv) return false;
    line.take(1);
    line.skip(1);
    return true;
  }

  static bool stays_in(Container& container, MarkdownLine& line) {
    if (container.quote) return take_quote(line);
    if (line.blank()) return !container.empty;
    if (line.indent() < container.width) return false;
    line.skip(container.width);
    container.empty = false;
    return true;
  }

  // The containers up to `depth` go on in this line. Opens those that begin in it, and a fence.
  void add_block(MarkdownLine& line, std::size_t depth) {
    bool begun = false;  // a container, in this line
    for (;;) {
      const std::string_view text = line.text();
      const bool after_text = in_paragraph_ && !begun;
      const bool in_item = depth > 0 && !containers_[depth - 1].quote;
      if ((line.indent() < 4 || after_text || in_item) && open_fence(line, depth)) return;
      if (line.blank() || line.indent() >= 4) break;
      const bool deepest = depth == max_depth;
      if (!deepest && take_quote(line)) {
        close_to(depth++);
        const Container quote = {true, 0, false};
        containers_.push_back(quote);
        begun = true;
        continue;
      }
      const bool interrupts = after_text && depth == containers_.size();
      if (is_thematic_break(text) || is_heading(text) || (interrupts && is_underline(text))) {
        close_to(depth);
        in_paragraph_ = false;
        return;
      }
      const Marker marker = list_marker(text);
      if (deepest || marker.size == 0 || (interrupts && !marker.may_interrupt)) break;
      close_to(depth++);
      open_item(line, marker.size);
      begun = true;
    }
    const bool lazy = in_paragraph_ && !begun;
    if (!lazy) close_to(depth);
    in_paragraph_ = !line.blank() && (lazy || line.indent() < 4);
  }

  static Marker list_marker(std::string_view text) {
    Marker marker;
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const std::string_view sign = text.substr(digits, 1);
    const bool bullet = digits == 0 && (sign == "-"sv || sign == "+"sv || sign == "*"sv);
    const bool number = digits >= 1 && digits <= 9 && (sign == "."sv || sign == ")"sv);
    if (!bullet && !number) return marker;
    const std::string_view content = text.substr(digits + 1);
    if (!content.empty() && !is_shell_blank(content.front())) return marker;
    marker.size = digits + 1;
    marker.may_interrupt =
        !without_blanks(content).empty() && (bullet || text.substr(0, digits) == "1"sv);
    return marker;
  }

  // Leaves the first `depth` containers open.
  void close_to(std::size_t depth) {
    while (containers_.size() > depth) containers_.pop_back();
  }

  void open_item(MarkdownLine& line, std::size_t marker_size) {
    Container item;
    item.width = line.indent() + marker_size;
    line.take(marker_size);
    item.empty = line.blank();
    // Five columns and more: the content is indented code, after one of them.
    const std::size_t space = item.empty || line.indent() > 4 ? 1 : line.indent();
    item.width += space;
    line.skip(space);
    containers_.push_back(item);
  }

  bool open_fence(const MarkdownLine& line, std::size_t depth) {
    const std::string_view text = line.text();
    const char c = text.empty() ? '\0' : text.front();
    if (c != '`' && c != '~') return false;
    const std::size_t size = run_of(text, c);
    const std::string_view info = without_blanks(text.substr(size));
    if (size < 3 || (c == '`' && info.find('`') != std::string_view::npos)) return false;
    close_to(depth);
    in_paragraph_ = false;
    in_fence_ = true;
    fence_character_ = c;
    fence_size_ = size;
    fence_indent_ = line.indent();
    blocks_.emplace_back();
    blocks_.back().language = std::string(info.substr(0, info.find_first_of(" \t")));
    return true;
  }

  // False when the fence has ended without this line: it is outside of the quote.
  bool add_to_fence(MarkdownLine line) {
    for (const Container& container : containers_) {
      if (!container.quote) {
        line.skip(container.width);
      } else if (!take_quote(line)) {
        close_fence();
        return false;
      }
    }
    const std::string_view text = line.text();
    const std::size_t size = run_of(text, fence_character_);
    if (size >= fence_size_ && line.indent() <= std::max<std::size_t>(fence_indent_, 3) &&
        without_blanks(text.substr(size)).empty()) {
      close_fence();
      return true;
    }
    line.skip(fence_indent_);
    line.append_to(blocks_.back().code);
    blocks_.back().code += '\n';
    return true;
  }

  void close_fence() {
    in_fence_ = false;
    CodeBlock& block = blocks_.back();
    if (block.language.empty()) block.language = infer_language(block.code);
  }

  std::vector<CodeBlock> blocks_ = {};
  std::vector<Container> containers_ = {};
  bool in_paragraph_ = false;  // the line before was its text
  bool in_fence_ = false;      // the last of blocks_ is open
  char fence_character_ = '`';
  std::size_t fence_size_ = 0;
  std::size_t fence_indent_ = 0;
};

}  // namespace

std::vector<CodeBlock> extract_code(std::string_view markdown) {
  return FenceReader().read(markdown);
}

}  // namespace v0_1
}  // namespace codeexec
