// The tokens of Python.

#include "files/files_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Python ------------------------------------------------------------------------------------------
//
// Its source is read as tokens of logical lines: brackets, strings and lambdas are followed as far
// as it takes to know where a line ends and which colon ends the head of a definition. A stack of
// indentations gives the body that a line stands in.

bool is_python_name_byte(char c) {
  return is_name_char(c) || static_cast<unsigned char>(c) >= 0x80;
}

}  // namespace

inline namespace inner {

PythonPrefix python_prefix(std::string_view text) {
  PythonPrefix prefix;
  bool is_unicode = false;
  for (const char c : text) {
    bool& seen = c == 'r' || c == 'R'   ? prefix.is_raw
                 : c == 'b' || c == 'B' ? prefix.is_bytes
                 : c == 'u' || c == 'U' ? is_unicode
                                        : prefix.is_formatted;
    const bool is_known = "rRbBuUfFtT"sv.find(c) != std::string_view::npos;
    if (!is_known || seen) prefix.is_valid = false;
    seen = true;
  }
  if (prefix.is_bytes && prefix.is_formatted) prefix.is_valid = false;
  if (is_unicode && text.size() > 1) prefix.is_valid = false;
  return prefix;
}

PythonLexer::PythonLexer(std::string_view source) : source_(source) {
  if (starts_with(source_, "\xef\xbb\xbf"sv)) at_ = 3;
  const std::size_t nul = source_.find('\0');
  if (nul != std::string_view::npos) fail(nul, "a NUL byte"sv);
}

void PythonLexer::fail(std::size_t offset, std::string_view what) {
  if (error_) return;
  std::size_t line = 1;
  for (std::size_t i = 0; i < offset && i < source_.size(); ++i)
    if (source_[i] == '\n' || (source_[i] == '\r' && !(i + 1 < offset && source_[i + 1] == '\n')))
      ++line;
  error_ = make_error(ErrorCode::parse, "line %: %", {line, what}, offset);
  at_ = source_.size();
}

bool PythonLexer::next_line(std::size_t& column) {
  std::size_t first_column = 0;  // of a line that goes on after a backslash before its first word
  column = 0;
  while (at_ < source_.size()) {
    const char c = source_[at_];
    if (c == ' ') {
      ++column;
    } else if (c == '\t') {
      column = (column / 8 + 1) * 8;
    } else if (c == '\f') {
      column = 0;
    } else if (c == '\\' && is_line_break(peek(1))) {
      if (first_column == 0) first_column = column;
      ++at_;
      take_line_break();
      continue;
    } else if (c == '#') {
      skip_comment();
      continue;
    } else if (is_line_break(c)) {
      column = first_column = 0;
      take_line_break();
      continue;
    } else {
      if (first_column != 0) column = first_column;
      return true;
    }
    ++at_;
  }
  return false;
}

PythonToken PythonLexer::next() {
  while (at_ < source_.size()) {
    const char c = source_[at_];
    if (c == ' ' || c == '\t' || c == '\f') {
      ++at_;
    } else if (c == '#') {
      skip_comment();
    } else if (is_line_break(c)) {
      take_line_break();
      if (brackets_.empty()) return {};
    } else if (c == '\\') {
      ++at_;
      if (!is_line_break(peek(0))) fail(at_ - 1, "a backslash that does not end its line"sv);
      take_line_break();
    } else {
      PythonToken found = is_python_name_byte(c) ? word() : is_quote(c) ? text(at_) : mark();
      if (!error_) return found;
    }
  }
  if (!brackets_.empty()) fail(brackets_.back(), "a bracket that is never closed"sv);
  return {};
}

void PythonLexer::take_line_break() {
  if (peek(0) == '\r' && peek(1) == '\n') ++at_;
  if (at_ < source_.size()) ++at_;
}

void PythonLexer::take_escape() {
  ++at_;
  if (is_line_break(peek(0)))
    take_line_break();
  else if (at_ < source_.size())
    ++at_;
}

PythonToken PythonLexer::mark() {
  const std::size_t begin = at_;
  const char c = source_[at_++];
  constexpr std::string_view open = "([{";
  constexpr std::string_view close = ")]}";
  if (open.find(c) != std::string_view::npos) {
    brackets_.push_back(begin);
  } else if (const std::size_t kind = close.find(c); kind != std::string_view::npos) {
    if (brackets_.empty() || source_[brackets_.back()] != open[kind])
      fail(begin, "a bracket that was not opened"sv);
    else
      brackets_.pop_back();
  } else if (c == ':' && peek(0) == '=') {
    ++at_;
  } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '$' || c == '?' ||
             c == '`') {
    fail(begin, "a character that Python does not know"sv);
  }
  return token(PythonToken::Kind::mark, begin);
}

PythonToken PythonLexer::word() {
  const std::size_t begin = at_;
  while (at_ < source_.size() && is_python_name_byte(source_[at_])) ++at_;
  const bool is_prefix =
      is_quote(peek(0)) && python_prefix(source_.substr(begin, at_ - begin)).is_valid;
  return is_prefix ? text(begin) : token(PythonToken::Kind::word, begin);
}

PythonToken PythonLexer::text(std::size_t begin) {
  const PythonPrefix prefix = python_prefix(source_.substr(begin, at_ - begin));
  const Formatted start = take_quotes(prefix);
  if (prefix.is_formatted)
    skip_formatted(begin, start);
  else
    skip_text(begin, start);
  return token(PythonToken::Kind::text, begin, !prefix.is_formatted && !prefix.is_bytes);
}

PythonLexer::Formatted PythonLexer::take_quotes(const PythonPrefix& prefix) {
  Formatted start;
  start.quote = source_[at_];
  start.is_triple = at_quotes(start.quote, true);
  start.is_raw = prefix.is_raw;
  at_ += start.is_triple ? 3 : 1;
  return start;
}

void PythonLexer::skip_text(std::size_t begin, const Formatted& string) {
  while (at_ < source_.size()) {
    if (at_quotes(string.quote, string.is_triple)) {
      at_ += string.is_triple ? 3 : 1;
      return;
    }
    if (is_line_break(source_[at_]) && !string.is_triple) break;
    if (source_[at_] == '\\')
      take_escape();
    else
      ++at_;
  }
  fail(begin, "a string that is never closed"sv);
}

void PythonLexer::skip_formatted(std::size_t begin, const Formatted& start) {
  std::vector<Formatted> open = {start};
  while (at_ < source_.size() && !open.empty()) {
    if (open.back().part == Formatted::Part::field)
      step_in_field(open);
    else if (!step_in_text(open))
      break;
  }
  if (!open.empty()) fail(begin, "a string that is never closed"sv);
}

bool PythonLexer::step_in_text(std::vector<Formatted>& open) {
  const Formatted now = open.back();
  const bool in_format = now.part == Formatted::Part::format;
  const char c = source_[at_];
  if (at_quotes(now.quote, now.is_triple)) {
    at_ += now.is_triple ? 3 : 1;
    open.pop_back();
    return !in_format;
  }
  if (is_line_break(c) && !now.is_triple) return false;
  if (c == '\\') {
    if (peek(1) == '{' || peek(1) == '}')
      ++at_;
    else if (!now.is_raw && peek(1) == 'N' && peek(2) == '{')
      at_ += 3;
    else
      take_escape();
  } else if (c == '{') {
    const bool is_escaped = !in_format && peek(1) == '{';
    at_ += is_escaped ? 2 : 1;
    if (!is_escaped) open.push_back(now.inside(Formatted::Part::field));
  } else if (c == '}' && in_format) {
    ++at_;
    open.pop_back();  // the format
    open.pop_back();  // its field
  } else {
    ++at_;
  }
  return true;
}

void PythonLexer::step_in_field(std::vector<Formatted>& open) {
  Formatted& now = open.back();
  const char c = source_[at_];
  const std::size_t begin = at_;
  if (is_python_name_byte(c) || is_quote(c)) {
    while (at_ < source_.size() && is_python_name_byte(source_[at_])) ++at_;
    if (!is_quote(peek(0))) return;
    const PythonPrefix prefix = python_prefix(source_.substr(begin, at_ - begin));
    const Formatted inner = take_quotes(prefix.is_valid ? prefix : PythonPrefix());
    if (prefix.is_valid && prefix.is_formatted)
      open.push_back(Formatted(inner));
    else
      skip_text(begin, inner);
    return;
  }
  if (c == '#') return skip_comment();
  ++at_;
  if (c == '(' || c == '[' || c == '{') ++now.brackets;
  if ((c == ')' || c == ']') && now.brackets > 0) --now.brackets;
  if (c == ':' && now.brackets == 0)
    open.push_back(now.inside(Formatted::Part::format));
  else if (c == '}' && now.brackets > 0)
    --now.brackets;
  else if (c == '}')
    open.pop_back();
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
