// Words as shells print them, in any of their quotes.

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

bool PrintedWords::skip(char c) {
  if (at_ == text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}

bool PrintedWords::read(std::string& word, std::string_view ends) {
  word.clear();
  while (at_ < text_.size() && ends.find(text_[at_]) == std::string_view::npos) {
    const char c = text_[at_++];
    if (c == '\'') {
      if (!read_quoted(word, '\'', ""sv)) return false;
    } else if (c == '"') {
      if (!read_quoted(word, '"', "$`\"\\"sv)) return false;
    } else if (c == '$') {
      if (!skip('\'') || !read_ansi(word)) return false;
    } else if (c == '\\') {
      if (at_ == text_.size()) return false;
      word += text_[at_++];
    } else if (std::strchr("`&|;<>", c)) {
      return false;
    } else {
      word += c;
    }
  }
  return true;
}

bool PrintedWords::read_quoted(std::string& word, char quote, std::string_view escaped) {
  while (at_ < text_.size()) {
    char c = text_[at_++];
    if (c == quote) return true;
    if (c == '\\' && at_ < text_.size() && escaped.find(text_[at_]) != std::string_view::npos)
      c = text_[at_++];
    word += c;
  }
  return false;
}

bool PrintedWords::read_ansi(std::string& word) {
  while (at_ < text_.size()) {
    const char c = text_[at_++];
    if (c == '\'') return true;
    if (c != '\\')
      word += c;
    else if (const int byte = read_escape(); byte > 0)
      word += static_cast<char>(byte);
    else
      return false;
  }
  return false;
}

int PrintedWords::read_escape(int levels) {
  if (at_ == text_.size()) return -1;
  const char c = text_[at_];
  if (c >= '0' && c <= '7') return read_number(8, 3);
  ++at_;
  if (c == 'x') return read_number(16, 2);
  if ((c == 'M' || c == 'C') && skip('-') && at_ < text_.size()) {
    int byte = static_cast<unsigned char>(text_[at_++]);
    if (byte == '\\' && (levels == 0 || (byte = read_escape(levels - 1)) < 0)) return -1;
    return c == 'M' ? byte | 0x80 : byte == '?' ? 0x7f : byte & 0x1f;
  }
  if (c == 'e' || c == 'E') return '\033';
  if (c == '\'' || c == '"' || c == '?') return c;
  const char known = escaped_character(c);
  return known ? known : -1;
}

int PrintedWords::read_number(unsigned base, std::size_t most) {
  const std::size_t begin = at_;
  const int byte = static_cast<int>(read_digits(text_, at_, most, base));
  return at_ > begin && byte < 256 ? byte : -1;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
