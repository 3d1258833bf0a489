// The parser: words, quotes, tildes, literal text.

#include "shell/parser_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// What ends a run of plain characters, and what reads it:
//
//               in a word                     in "..", a here-document, arithmetic
//   \           the next character            only $ ` \ " } are escaped
//   '           read_single_quotes()          plain
//   "           read_double_quotes()          the end, or plain in a here-document
//   $ `         read_expansion()              read_expansion(), quoted
//   < >         <( ) and >( ), or the end     plain
//   ?( *( @(    read_extended_glob()          plain
//   blank ;|&() the end                       plain
//
// Each run becomes a part of the word: ShellPart says of it whether it is quoted. No text is copied
// where the script has it as it is; quotes are left out by ending one part and beginning the next:
//
//   a"b $X"'c'      a    b_    $X    c        unquoted, quoted, a quoted parameter, quoted
//
// An empty "" is a part, too, as it makes a field where nothing else does.

std::uint32_t ShellWordParser::end_word(std::size_t from, std::size_t begin, std::size_t end,
                                        bool braces) {
  if (!room()) {
    cut(syntax_.pending_parts, from);
    return no_index;
  }
  ShellWord word;
  word.begin = position(begin);
  word.end = end_position(end);
  word.braces = braces;
  word.parts.begin = static_cast<std::uint32_t>(syntax_.parts.size());
  for (std::size_t i = from; i < syntax_.pending_parts.size(); ++i) {
    word.quoted = word.quoted || syntax_.pending_parts[i].quoted;
    syntax_.parts.push_back(syntax_.pending_parts[i]);
  }
  word.parts.end = static_cast<std::uint32_t>(syntax_.parts.size());
  cut(syntax_.pending_parts, from);
  syntax_.words.push_back(word);
  return static_cast<std::uint32_t>(syntax_.words.size() - 1);
}

ShellPart& ShellWordParser::add_part(ShellPart::Kind kind, bool quoted) {
  ShellPart part;
  part.kind = kind;
  part.quoted = quoted;
  syntax_.pending_parts.push_back(part);
  return syntax_.pending_parts.back();
}

void ShellWordParser::add_literal(std::string_view text, bool quoted) {
  while (!text.empty()) {
    const std::size_t size = std::min(text.find('\0'), text.size());
    if (size > 0) add_part(ShellPart::Kind::literal, quoted).text = text.substr(0, size);
    if (size < text.size()) add_part(ShellPart::Kind::unknown, quoted);
    text.remove_prefix(std::min(size + 1, text.size()));
  }
}

void ShellWordParser::add_quoted_literal(std::string_view text) {
  if (text.empty())
    add_part(ShellPart::Kind::literal, true);
  else
    add_literal(text, true);
}

std::uint32_t ShellWordParser::parse_word(Context context, bool assigned_value) {
  const std::size_t begin = at_;
  const std::size_t parts = syntax_.pending_parts.size();
  bool braces = false;
  unsigned parentheses = 0;  // of a pattern
  read_tilde();
  while (!failed_ && !at_end()) {
    const char c = peek();
    if (context == Context::element && c == ']' && (peek(1) == '=' || peek(1) == '+')) {
      add_again(parts);
      context = Context::command;
    }
    if (c == '(' && at_ > begin && context != Context::pattern && bash() &&
        "?*+@!"sv.find(text_[at_ - 1]) != std::string_view::npos) {
      read_extended_glob();
      continue;
    }
    if (context == Context::pattern && (c == '(' || c == ')' || c == '|')) {
      if (c == ')' && parentheses == 0) break;
      parentheses += c == '(' ? 1 : 0;
      parentheses -= c == ')' ? 1 : 0;
      add_literal(text_.substr(at_, 1), false);
      ++at_;
      continue;
    }
    if (context == Context::pattern && parentheses > 0 && is_shell_blank(c)) {
      ++at_;
      continue;
    }
    if ((c == '<' || c == '>') && peek(1) == '(' && bash()) {
      read_expansion(ShellQuotes::none);
      continue;
    }
    if (ends_word(c)) break;
    if (c == '{' && bash()) braces = true;
    if (c == ':' && assigned_value && peek(1) == '~') {
      add_literal(text_.substr(at_, 1), false);
      ++at_;
      read_tilde();
      continue;
    }
    read_piece(assigned_value);
  }
  // {a['...']}>file: the subscript is evaluated.
  if (braces && text_[begin] == '{' && (peek() == '<' || peek() == '>')) add_again(parts);
  if (assigned_value) braces = false;
  if (braces) note_braces(text_.substr(begin, at_ - begin));
  return end_word(parts, begin, at_, braces);
}

void ShellWordParser::note_braces(std::string_view text) {
  if (text.find('}') != std::string_view::npos &&
      (text.find(',') != std::string_view::npos || text.find("..") != std::string_view::npos))
    dialect_dependent_ = true;
}

// A tilde counts where a word begins, and in a value behind each colon: PATH=~/a:~/b. Behind the
// name stands a slash, a colon or the end of the word.

void ShellWordParser::read_tilde() {
  if (peek() != '~') return;
  std::size_t end = at_ + 1;
  while (end < text_.size() &&
         (is_name_char(text_[end]) || text_[end] == '-' || text_[end] == '.' || text_[end] == '+'))
    ++end;
  const char next = end < text_.size() ? text_[end] : '/';
  if (next != '/' && next != ':' && !(next == '}' && in_braces_) && !ends_word(next)) return;
  add_part(ShellPart::Kind::tilde, false).text = text_.substr(at_ + 1, end - at_ - 1);
  at_ = end;
}

void ShellWordParser::read_piece(bool stop_at_colon) {
  switch (peek()) {
    case '\\':
      if (peek(1) == '\n') {
        at_ += 2;
      } else if (at_ + 1 >= text_.size()) {
        add_literal("\\"sv, true);
        ++at_;
      } else {
        add_literal(text_.substr(at_ + 1, 1), true);
        at_ += 2;
      }
      return;
    case '\'':
      return read_single_quotes();
    case '"':
      return read_double_quotes();
    case '`':
    case '$':
      return read_expansion(ShellQuotes::none);
    default:
      break;
  }
  const std::size_t begin = at_;
  do {
    ++at_;
  } while (at_ < text_.size() && !ends_plain_run.has(text_[at_]) &&
           !(stop_at_colon && text_[at_] == ':'));
  add_literal(text_.substr(begin, at_ - begin), false);
}

void ShellWordParser::read_single_quotes() {
  const std::size_t end = text_.find('\'', at_ + 1);
  if (end == std::string_view::npos) return unterminated("single quote"sv, at_);
  add_quoted_literal(text_.substr(at_ + 1, end - at_ - 1));
  at_ = end + 1;
}

void ShellWordParser::read_ansi_c_quotes() {
  const std::size_t begin = at_;
  std::size_t end = at_ + 2;
  while (end < text_.size() && text_[end] != '\'') end += text_[end] == '\\' ? 2U : 1U;
  if (end >= text_.size()) return unterminated("single quote"sv, begin);
  dialect_dependent_ = true;
  add_quoted_literal(syntax_.keep(decode_ansi_c(text_.substr(begin + 2, end - begin - 2))));
  at_ = end + 1;
}

void ShellWordParser::read_double_quotes() {
  const std::size_t begin = at_++;
  const std::size_t parts = syntax_.pending_parts.size();
  while (!failed_ && !at_end() && peek() != '"') read_quoted_piece(ShellQuotes::doubled);
  if (failed_) return;
  if (at_end()) return unterminated("double quote"sv, begin);
  ++at_;
  if (syntax_.pending_parts.size() == parts) add_quoted_literal({});
}

void ShellWordParser::read_quoted_piece(ShellQuotes quotes) {
  switch (peek()) {
    case '\\': {
      const char next = peek(1);
      if (next == '\n') {
        at_ += 2;
      } else if (at_ + 1 < text_.size() && (next == '$' || next == '`' || next == '\\' ||
                                            (next == '"' && quotes != ShellQuotes::here_document) ||
                                            (next == '}' && in_braces_))) {
        add_literal(text_.substr(at_ + 1, 1), true);
        at_ += 2;
      } else {
        add_literal("\\"sv, true);
        ++at_;
      }
      return;
    }
    case '`':
    case '$':
      return read_expansion(quotes);
    default:
      break;
  }
  const std::size_t begin = at_;
  do {
    ++at_;
  } while (at_ < text_.size() && !ends_quoted_run.has(text_[at_]));
  add_literal(text_.substr(begin, at_ - begin), true);
}

void ShellWordParser::read_extended_glob() {
  if (!enter()) return;
  const std::size_t begin = at_;
  dialect_dependent_ = true;
  // The operator and the parenthesis are one part, so that the word counts as a pattern. Where the
  // operator is no text of its own, as in $@(, a star does.
  ShellPart* const last = syntax_.pending_parts.empty() ? nullptr : &syntax_.pending_parts.back();
  const bool joins = last && last->kind == ShellPart::Kind::literal && !last->quoted &&
                     !last->text.empty() && last->text.back() == text_[at_ - 1];
  if (joins) last->text.remove_suffix(1);
  add_literal(joins ? text_.substr(at_ - 1, 2) : "*("sv, false);
  ++at_;
  while (!failed_ && !at_end() && peek() != ')') {
    if (peek() == '(') {
      read_extended_glob();
    } else if (peek() == '|' || is_shell_blank(peek()) || peek() == '\n') {
      add_literal(text_.substr(at_, 1), false);
      ++at_;
    } else if (ends_word(peek())) {
      unexpected();
    } else {
      read_piece();
    }
  }
  if (at_end()) return unterminated("("sv, begin);
  if (failed_) return;
  add_literal(")"sv, false);
  ++at_;
  --depth_;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
