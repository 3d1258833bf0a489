// Docstrings, found and cleaned as Python does it.

#include "files/files.hpp"
#include "files/files_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

void append_python_character(std::uint32_t code, std::string& out) {
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  append_utf8(is_surrogate ? 0xfffd : code, out);
}

// Appends what the escape after a backslash stands for; `at` is behind the backslash and moves
// behind the escape. False when it is not whole.
bool append_python_escape(std::string_view text, std::size_t& at, std::string& out) {
  const char c = text[at];
  const bool is_quote = c == '\'' || c == '"';
  if (const char known = is_quote ? c : escaped_character(c)) {
    out += known;
    ++at;
    return true;
  }
  if (is_line_break(c)) {
    const bool is_two = c == '\r' && at + 1 < text.size() && text[at + 1] == '\n';
    at += is_two ? 2u : 1u;
    return true;
  }
  if (c >= '0' && c <= '7') {
    append_python_character(read_digits(text, at, 3, 8), out);
    return true;
  }
  const std::size_t size = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  if (size == 0) {
    out += '\\';  // no escape: both stay
    return true;
  }
  const std::size_t begin = ++at;
  const std::uint32_t code = read_digits(text, at, size, 16);
  if (at - begin != size || code > 0x10ffff) return false;
  append_python_character(code, out);
  return true;
}

// Appends the value of a literal. False at an escape that is not whole.
bool append_python_text(std::string_view literal, std::string& out) {
  const std::size_t quote = literal.find_first_of("'\"");
  const bool is_raw = python_prefix(literal.substr(0, quote)).is_raw;
  std::string_view text = literal.substr(quote);
  const bool is_triple = text.size() >= 6 && text[1] == text[0] && text[2] == text[0];
  const std::size_t quotes = is_triple ? 3 : 1;
  text = text.substr(quotes, text.size() - 2 * quotes);
  std::size_t at = 0;
  while (at < text.size()) {
    const char c = text[at++];
    if (c == '\r') {
      if (at < text.size() && text[at] == '\n') ++at;
      out += '\n';
    } else if (c != '\\' || is_raw || at == text.size()) {
      out += c;
    } else if (!append_python_escape(text, at, out)) {
      return false;
    }
  }
  return true;
}

// With tabs of eight columns as blanks. A column is a character.
std::string without_tabs(std::string_view text) {
  std::string result;
  std::size_t column = 0;
  for (const char c : text) {
    if (c == '\t') {
      const std::size_t blanks = 8 - column % 8;
      result.append(blanks, ' ');
      column += blanks;
      continue;
    }
    result += c;
    if (is_line_break(c))
      column = 0;
    else if ((static_cast<unsigned char>(c) & 0xc0) != 0x80)
      ++column;
  }
  return result;
}

// inspect.cleandoc of Python 3.13: without the blanks that all lines but the first have in front,
// and without empty lines at both ends.
std::string clean_docstring(std::string_view raw) {
  const std::string text = without_tabs(raw);
  std::vector<std::string_view> lines;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(std::string_view(text).substr(at, end - at));
    at = end + 1;
  }
  const auto blanks_of = [](std::string_view line) {
    return std::min(line.find_first_not_of(' '), line.size());
  };
  std::size_t margin = std::string_view::npos;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::size_t blanks = blanks_of(lines[i]);
    if (blanks < lines[i].size()) margin = std::min(margin, blanks);
  }
  lines[0].remove_prefix(blanks_of(lines[0]));
  // Without a line that has more than blanks there is no margin, and they stay.
  for (std::size_t i = 1; i < lines.size() && margin != std::string_view::npos; ++i)
    lines[i].remove_prefix(std::min(margin, lines[i].size()));
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  std::size_t first = 0;
  while (first < lines.size() && lines[first].empty()) ++first;
  std::string result;
  for (std::size_t i = first; i < lines.size(); ++i) {
    if (i > first) result += '\n';
    result += lines[i];
  }
  return result;
}

// Whether a statement is nothing but string literals, in any number of brackets.
class DocstringForm {
 public:
  // False when it cannot be one any more.
  bool take(const PythonToken& token) {
    const bool is_text = token.kind == PythonToken::Kind::text && token.is_plain;
    if (is_text && !is_closing_) {
      has_text_ = true;
      return true;
    }
    if (token.text == "("sv && !has_text_) {
      ++brackets_;
      return true;
    }
    if (token.text != ")"sv || !has_text_ || brackets_ == 0) return false;
    is_closing_ = true;
    --brackets_;
    return true;
  }
  bool is_whole() const { return has_text_ && brackets_ == 0; }

 private:
  std::size_t brackets_ = 0;
  bool has_text_ = false;
  bool is_closing_ = false;
};

class PythonReader {
 public:
  PythonReader(std::string_view source, std::string_view name) : lexer_(source) {
    for (std::size_t at = 0; !name.empty() && at <= name.size();) {
      const std::size_t end = std::min(name.find('.', at), name.size());
      parts_.push_back(name.substr(at, end - at));
      at = end + 1;
    }
    is_found_ = is_docstring_due_ = parts_.empty();
  }

  Expected<std::string> docstring() {
    read_lines();
    if (lexer_.error()) return *lexer_.error();
    if (!is_found_)
      return make_error(ErrorCode::not_found, "no function or class of this name is defined");
    std::string text;
    for (const PythonToken& literal : docstring_) {
      if (append_python_text(literal.text, text)) continue;
      lexer_.fail(literal.offset, "a string with an escape that is not whole"sv);
      return *lexer_.error();
    }
    return to_utf8(clean_docstring(text));
  }

 private:
  // The lines of one indentation.
  struct Body {
    std::size_t column = 0;
    std::size_t matched = 0;  // parts of the name that lead here
    bool is_on_path = false;  // and whether they do
  };

  void read_lines() {
    bodies_ = {{0, 0, true}};
    std::size_t column = 0;
    while (lexer_.next_line(column)) {
      if (is_body_due_ && column > bodies_.back().column) {
        due_.column = column;
        bodies_.push_back(due_);
      } else if (is_body_due_) {
        return lexer_.fail(lexer_.offset(), "an indented line was expected"sv);
      }
      is_body_due_ = false;
      while (column < bodies_.back().column) bodies_.pop_back();
      if (column != bodies_.back().column)
        return lexer_.fail(lexer_.offset(), "an indentation that no line above has"sv);
      read_line();
      if (parts_.empty()) return;
    }
    if (is_body_due_) lexer_.fail(lexer_.offset(), "an indented line was expected"sv);
  }

  void read_line() {
    const bool is_docstring_due = std::exchange(is_docstring_due_, false);
    due_ = bodies_.back();
    PythonToken token = lexer_.next();
    if (token.text == "@"sv) return read_decorator();
    const bool is_async = token.text == "async"sv;
    if (is_async) token = lexer_.next();
    if (token.text == "def"sv || (token.text == "class"sv && !is_async))
      return read_definition(token);
    read_statements(token, is_docstring_due);
  }

  // The rest of a logical line, of which the first token was read.
  void read_statements(PythonToken token, bool is_docstring_due) {
    DocstringForm form;
    std::vector<PythonToken> literals;
    bool is_form = is_docstring_due;
    bool is_over = false;
    bool ends_with_colon = false;
    for (; token.kind != PythonToken::Kind::line_end; token = lexer_.next()) {
      ends_with_colon = token.text == ":"sv && !lexer_.in_brackets();
      is_over = is_over || token.text == ";"sv;
      if (!is_form || is_over) continue;
      is_form = form.take(token);
      if (token.kind == PythonToken::Kind::text) literals.push_back(token);
    }
    if (is_form && form.is_whole()) docstring_ = std::move(literals);
    is_body_due_ = ends_with_colon;
  }

  void read_decorator() {
    std::vector<std::string_view> words;  // enough of them to know one like "@name.setter"
    for (PythonToken token = lexer_.next(); token.kind != PythonToken::Kind::line_end;
         token = lexer_.next())
      if (words.size() < 4) words.push_back(token.text);
    if (words.size() == 3 && words[1] == "."sv &&
        (words[2] == "setter"sv || words[2] == "deleter"sv))
      accessor_of_ = words[0];
  }

  // Behind the word `def` or `class`.
  void read_definition(const PythonToken& keyword) {
    const PythonToken defined = lexer_.next();
    if (defined.kind != PythonToken::Kind::word)
      return lexer_.fail(keyword.offset, "a definition without a name"sv);
    const bool is_accessor = std::exchange(accessor_of_, {}) == defined.text;
    const bool is_next = due_.is_on_path && due_.matched < parts_.size() && !is_accessor &&
                         defined.text == parts_[due_.matched];
    const bool is_last = is_next && due_.matched + 1 == parts_.size();
    if (is_next) {
      is_found_ = is_last;
      docstring_.clear();
    }
    due_.is_on_path = is_next && !is_last && keyword.text == "class"sv;
    ++due_.matched;
    if (!skip_head()) return lexer_.fail(keyword.offset, "a definition without a colon"sv);
    const PythonToken first = lexer_.next();
    if (first.kind != PythonToken::Kind::line_end) return read_statements(first, is_last);
    is_body_due_ = true;
    is_docstring_due_ = is_last;
  }

  // Up to the colon that ends the head of a definition; a lambda has one of its own.
  bool skip_head() {
    std::size_t lambdas = 0;
    for (PythonToken token = lexer_.next(); token.kind != PythonToken::Kind::line_end;
         token = lexer_.next()) {
      if (lexer_.in_brackets()) continue;
      if (token.text == "lambda"sv) ++lambdas;
      if (token.text != ":"sv) continue;
      if (lambdas == 0) return true;
      --lambdas;
    }
    return false;
  }

  PythonLexer lexer_;
  std::vector<std::string_view> parts_ = {};
  std::vector<Body> bodies_ = {};
  Body due_ = {};                  // of the body that the next line begins
  bool is_body_due_ = false;       // whether it does
  bool is_docstring_due_ = false;  // the next line may be the docstring
  bool is_found_ = false;
  std::vector<PythonToken> docstring_ = {};  // its literals
  std::string_view accessor_of_ = {};        // "name" after @name.setter
};

}  // namespace

Expected<std::string> python_docstring(std::string_view source, std::string_view name) {
  return PythonReader(source, name).docstring();
}

}  // namespace v0_1
}  // namespace codeexec
