// The parser: what begins with a dollar sign or a backquote, and process substitutions.

#include "shell/parser_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// What stands behind the dollar:
//
//   $((  with its ))        arithmetic                $[       the same, in old bash
//   $(                      a list up to )            ${ ${|   a list up to }, in bash 5.3
//   ${                      a name, a subscript, an operation with a word, up to }
//   $' $"                   quotes, in bash           $name $1 $@   a parameter
//   anything else           a plain $
//
// `$((` may also be a subshell in a substitution: arithmetic_end() looks for its )) first.

void ShellExpansionParser::read_expansion(ShellQuotes quotes) {
  if (peek() == '$') return read_dollar(quotes);
  if (peek() == '`') return read_backquotes(quotes == ShellQuotes::doubled);
  read_process_substitution();
}

void ShellExpansionParser::read_dollar(ShellQuotes quotes) {
  const bool quoted = quotes != ShellQuotes::none;
  const char next = peek(1);
  if (joins_lines(at_ + 1)) return;
  if (next == '(') {
    if (peek(2) == '(' && arithmetic_end(at_ + 3) != std::string_view::npos)
      return read_arithmetic(quoted, 3, arithmetic_end(at_ + 3), 2);
    return read_command_substitution(quoted);
  }
  if (next == '{') return read_braced_parameter(quotes);
  if (next == '[' && bash()) {
    const std::size_t end = subscript_end(at_ + 1);
    if (end == std::string_view::npos) return unterminated("$["sv, at_);
    dialect_dependent_ = true;
    return read_arithmetic(quoted, 2, end - 1, 1);
  }
  if (next == '\'' && bash() && !quoted) return read_ansi_c_quotes();
  if (next == '\'' && !quoted) dialect_dependent_ = true;
  if (next == '"' && bash() && !quoted) {
    dialect_dependent_ = true;
    ++at_;
    return read_double_quotes();
  }
  std::size_t end = at_ + 1;
  if (is_name_start(next)) {
    while (end < text_.size() && is_name_char(text_[end])) ++end;
    if (joins_lines(end)) return;
  } else if (next != '\0' && (is_digit(next) || is_special_parameter(next))) {
    ++end;
  } else {
    add_literal("$"sv, true);
    ++at_;
    return;
  }
  add_part(ShellPart::Kind::parameter, quoted).text = text_.substr(at_ + 1, end - at_ - 1);
  at_ = end;
}

bool ShellExpansionParser::joins_lines(std::size_t at) {
  if (text_.substr(at, 2) != "\\\n") return false;
  fail(ErrorCode::parse, "line joined in the middle of an expansion"sv, at);
  return true;
}

void ShellExpansionParser::read_command_substitution(bool quoted) {
  const std::size_t begin = at_;
  at_ += 2;
  const std::uint32_t node = parse_nested(')', "$("sv, begin);
  if (!failed_) add_part(ShellPart::Kind::command, quoted).node = node;
}

void ShellExpansionParser::read_process_substitution() {
  const std::size_t begin = at_;
  const bool output = peek() == '>';
  dialect_dependent_ = true;
  at_ += 2;
  const std::uint32_t node = parse_nested(')', output ? ">(" : "<(", begin);
  if (failed_) return;
  ShellPart& part = add_part(ShellPart::Kind::process, false);
  part.node = node;
  part.output = output;
}

std::uint32_t ShellExpansionParser::parse_nested(char close, std::string_view what,
                                                 std::size_t begin) {
  if (!enter()) return no_index;
  std::list<HereDocument> outer;
  outer.swap(here_documents_);
  const bool outer_braces = std::exchange(in_braces_, false);
  ++substitutions_;
  const std::uint32_t node = parse_list(true);
  --substitutions_;
  in_braces_ = outer_braces;
  if (!failed_ && at_end()) unterminated(what, begin);
  if (!failed_ && peek() != close) unexpected();
  if (!failed_ && !here_documents_.empty())
    fail_here("here-document without a body before its substitution ends"sv);
  here_documents_.swap(outer);
  if (!at_end()) ++at_;
  --depth_;
  return node;
}

std::uint32_t ShellExpansionParser::parse_text(std::string_view text, ShellOrigin origin,
                                               std::uint32_t (ShellParser::*read)()) {
  ShellParser parser(syntax_, options_, text, origin, depth_);
  const std::uint32_t index = (parser.*read)();
  dialect_dependent_ = dialect_dependent_ || parser.dialect_dependent();
  if (parser.failed() && !failed_) error_ = parser.error();
  failed_ = failed_ || parser.failed();
  return index;
}

// The text between backquotes is parsed by itself, when \$ \` and \\ in it have lost a backslash.
// Backquotes in it are escaped, so that each level doubles the backslashes.

void ShellExpansionParser::read_backquotes(bool in_double_quotes) {
  const std::size_t begin = at_++;
  std::size_t end = at_;
  bool escapes = false;
  while (end < text_.size() && text_[end] != '`') {
    escapes = escapes || text_[end] == '\\';
    end += text_[end] == '\\' ? 2U : 1U;
  }
  if (end >= text_.size()) return unterminated("backquote"sv, begin);
  std::string_view inner = text_.substr(at_, end - at_);
  ShellOrigin origin = {position(at_), end_position(end), origin_.exact};
  if (escapes) {
    std::string text;
    for (std::size_t i = 0; i < inner.size(); ++i) {
      const char next = i + 1 < inner.size() ? inner[i + 1] : '\0';
      if (inner[i] == '\\' &&
          (next == '$' || next == '`' || next == '\\' || (next == '"' && in_double_quotes)))
        ++i;
      text += inner[i];
    }
    inner = syntax_.keep(std::move(text));
    origin.exact = false;
  }
  if (!enter()) return;
  const std::uint32_t node = parse_text(inner, origin, &ShellParser::parse);
  --depth_;
  at_ = end + 1;
  if (!failed_) add_part(ShellPart::Kind::command, in_double_quotes).node = node;
}

//   $(( 1 + (2) ))       arithmetic: the parentheses are balanced, and two in a row end it
//   $((cd a; ls) | w)    a subshell in a substitution: at depth 0, a single one comes first
//
// This is the only place where text is read twice: each byte once more for each level it is in.

std::size_t ShellExpansionParser::arithmetic_end(std::size_t at) const {
  const std::string_view text = text_;  // in registers: this loop is the hot one
  unsigned depth = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\\') {
      ++at;
    } else if (c == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at)
        if (text[at] == '\\') ++at;
    } else if (c == '(') {
      ++depth;
    } else if (c == ')' && depth > 0) {
      --depth;
    } else if (c == ')') {
      return at + 1 < text.size() && text[at + 1] == ')' ? at : std::string_view::npos;
    }
  }
  return std::string_view::npos;
}

std::size_t ShellExpansionParser::subscript_end(std::size_t at) const {
  std::size_t brackets = 0, parentheses = 0;
  for (; at < text_.size(); ++at) {
    const char c = text_[at];
    if (c == '\\') {
      ++at;
    } else if (c == '\'' || c == '`' || c == '"') {
      for (++at; at < text_.size() && text_[at] != c; ++at)
        if (text_[at] == '\\' && c != '\'') ++at;
    } else if (c == '(') {
      ++parentheses;
    } else if (c == ')' && parentheses > 0) {
      --parentheses;
    } else if (c == '[' && parentheses == 0) {
      ++brackets;
    } else if (c == ']' && parentheses == 0 && --brackets == 0) {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

void ShellExpansionParser::read_arithmetic(bool quoted, std::size_t skip, std::size_t end,
                                           std::size_t close) {
  at_ += skip;
  const std::uint32_t operand = arithmetic_word(end);
  at_ = end + close;
  if (!failed_) add_part(ShellPart::Kind::arithmetic, quoted).operand = operand;
}

std::uint32_t ShellExpansionParser::arithmetic_word(std::size_t end) {
  if (!enter()) return no_index;
  const std::uint32_t word =
      parse_text(text_.substr(at_, end - at_), {position(at_), end_position(end), origin_.exact},
                 &ShellParser::parse_arithmetic_text);
  --depth_;
  return word;
}

//   ${  #   !   name  [subscript]  :-  word  }
//       |   |   |     |            |   |
//       |   |   |     |            |   read_until(): a word of its own, up to the brace
//       |   |   |     |            read_parameter_operation()
//       |   |   |     read_until(): a word, up to the bracket
//       |   |   read_parameter_name(): a name, digits or one of @ * # ? - $ !
//       |   indirect: the parameter that the value names
//       length, unless an operation follows: ${#-x} is $# with a default

void ShellExpansionParser::read_braced_parameter(ShellQuotes quotes) {
  const std::size_t begin = at_;
  at_ += 2;
  if (bash() && (is_shell_blank(peek()) || peek() == '\n' || peek() == '|')) {
    // bash 5.3: ${ list; }
    dialect_dependent_ = true;
    if (peek() == '|') ++at_;
    const std::uint32_t node = parse_nested('}', "${"sv, begin);
    if (!failed_) add_part(ShellPart::Kind::command, quotes != ShellQuotes::none).node = node;
    return;
  }
  if (!enter()) return;
  ShellPart part;
  part.kind = ShellPart::Kind::parameter;
  part.quoted = quotes != ShellQuotes::none;
  if (peek() == '#' && peek(1) != '}' &&
      !(peek(1) == '#' || peek(1) == '%' || peek(1) == ':' || peek(1) == '-' || peek(1) == '+' ||
        peek(1) == '=' || peek(1) == '?')) {
    part.length = true;
    ++at_;
  } else if (peek() == '!' && (is_name_char(peek(1)) || peek(1) == '@' || peek(1) == '*')) {
    part.indirect = true;
    ++at_;
  }
  read_parameter_name(part);
  if (!failed_ && peek() == '[') part.subscript = read_until(']', "["sv, quotes);
  if (!failed_) read_parameter_operation(part, quotes);
  if (!failed_ && peek() != '}') {
    if (at_end())
      unterminated("${"sv, begin);
    else
      fail(ErrorCode::parse, concat("bad substitution %", {in_quotes(text_.substr(begin, 20))}),
           begin);
  }
  if (failed_) return;
  ++at_;
  --depth_;
  syntax_.pending_parts.push_back(part);
}

void ShellExpansionParser::read_parameter_name(ShellPart& part) {
  const std::size_t begin = at_;
  if (is_digit(peek())) {
    while (is_digit(peek())) ++at_;
  } else if (is_name_start(peek())) {
    while (is_name_char(peek())) ++at_;
  } else if (!at_end() && is_special_parameter(peek())) {
    ++at_;
  }
  part.text = text_.substr(begin, at_ - begin);
  if (part.text.empty()) {
    if (at_end())
      unterminated("${"sv, begin - 2);
    else
      fail_here("bad substitution"sv);
  }
}

void ShellExpansionParser::read_parameter_operation(ShellPart& part, ShellQuotes quotes) {
  const char c = peek();
  if (c == '}' || at_end()) return;
  const char next = peek(1);
  if (c == ':' && next != '\0' && "-=?+"sv.find(next) != std::string_view::npos) {
    part.colon = true;
    part.operation = next;
    at_ += 2;
  } else if ("-=?+"sv.find(c) != std::string_view::npos) {
    part.operation = c;
    ++at_;
  } else if ("%#/^,"sv.find(c) != std::string_view::npos) {
    part.operation = c;
    part.doubled = next == c;
    at_ += part.doubled ? 2 : 1;
  } else if (c == ':' || c == '@' || (c == '*' && part.indirect)) {
    part.operation = c;
    ++at_;
  } else {
    return;
  }
  part.operand =
      read_until('}', "${"sv, quotes, "-=?+"sv.find(part.operation) == std::string_view::npos);
}

std::uint32_t ShellExpansionParser::read_until(char close, std::string_view what,
                                               ShellQuotes quotes, bool pattern) {
  const std::size_t begin = at_;
  if (close == ']') ++at_;
  const std::size_t parts = syntax_.pending_parts.size();
  const bool outer = std::exchange(in_braces_, close == '}');
  unsigned brackets = 0;
  const bool quoted = quotes != ShellQuotes::none;
  const CharSet& ends = quoted ? ends_quoted_run : ends_plain_run;
  if (!quoted) read_tilde();
  while (!failed_ && !at_end()) {
    const char c = peek();
    if (c == close && brackets == 0) break;
    if (close == ']' && c == '[') ++brackets;
    if (close == ']' && c == ']') --brackets;
    if (c == '\'' && quoted && !pattern) {
      read_quote_in_quotes(quotes);
    } else if (c == '\'' && quoted) {
      read_single_quotes();
    } else if (c == '"' && quoted) {
      read_double_quotes();
    } else if (close == ']' && !ends.has(c)) {
      // Brackets in it are counted, so a run ends in front of each.
      const std::size_t run = at_++;
      while (!at_end() && !ends.has(peek()) && peek() != '[') ++at_;
      add_literal(text_.substr(run, at_ - run), quoted);
    } else if (quoted) {
      read_quoted_piece(quotes);
    } else if (at_process()) {
      read_process_substitution();
    } else {
      read_piece();
    }
  }
  in_braces_ = outer;
  if (failed_) return no_index;
  if (at_end()) {
    unterminated(what, begin);
    return no_index;
  }
  if (close == ']' && bash()) add_again(parts);
  const std::uint32_t word = failed_ ? no_index : end_word(parts, begin, at_);
  if (close == ']') ++at_;
  return word;
}

void ShellExpansionParser::read_quote_in_quotes(ShellQuotes quotes) {
  dialect_dependent_ = true;
  const std::size_t begin = at_;
  add_literal(text_.substr(at_++, 1), true);
  if (!bash() || syntax_.plain_quotes) return;
  syntax_.pairs_quotes = true;
  while (!failed_ && !at_end() && peek() != '\'') read_quoted_piece(quotes);
  if (failed_) return;
  if (at_end()) return unterminated("single quote"sv, begin);
  add_literal(text_.substr(at_++, 1), true);
}

// To bash a subscript is arithmetic: quotes in it are no quotes, except in names of keys. So what
// stands between them is read as if it stood in double quotes.
//
//   ${a['$(x)']}   a[\$(x)]=1   a=(["$(x)"]=1)   {a['$(x)']}>file

void ShellExpansionParser::add_again(std::size_t from) {
  const std::size_t end = syntax_.pending_parts.size();
  for (std::size_t i = from; i < end && !failed_; ++i) {
    const ShellPart part = syntax_.pending_parts[i];
    if (part.kind != ShellPart::Kind::literal || !part.quoted || part.text.size() < 3 ||
        part.text.find_first_of("$`") == std::string_view::npos)
      continue;
    if (!enter()) return;
    const ShellOrigin origin = {position(at_), end_position(at_), false};
    const std::uint32_t word =
        parse_text(part.text, origin, &ShellParser::parse_here_document_body);
    --depth_;
    add_part(ShellPart::Kind::again, true).operand = word;
  }
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
