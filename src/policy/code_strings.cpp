// Strings and patterns of other languages, as their quotes read them.

#include "policy/code_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Behind the } that closes what is open at `at`, with the strings in it skipped; npos: none does.
std::size_t behind_braces(std::string_view text, std::size_t at) {
  std::size_t depth = 1;
  char quote = '\0';
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (quote) {
      if (c == '\\') ++at;
      if (c == quote || c == '\n') quote = '\0';
    } else if (c == '"' || c == '\'' || c == '`') {
      quote = c;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

// 'text' without its quotes; false: it is something else.
bool bare_text(std::string_view text, std::string_view& inner) {
  if (text.size() < 2 || (text[0] != '"' && text[0] != '\'') || text.back() != text[0])
    return false;
  inner = text.substr(1, text.size() - 2);
  return inner.find_first_of("\"'\\") == std::string_view::npos;
}

char closing_of(char open) {
  constexpr std::string_view opening = "([{<", closing = ")]}>";
  const std::size_t kind = opening.find(open);
  return kind == std::string_view::npos ? open : closing[kind];
}

// Names behind which a slash begins a pattern.
constexpr auto names_before_patterns = NameSet{
    "and",   "case", "do",     "else",  "elsif", "grep",   "if",     "in",    "not",  "of",   "or",
    "print", "puts", "return", "split", "then",  "typeof", "unless", "until", "when", "while"};

}  // namespace

inline namespace inner {

bool CodeLexer::read_text(CodeToken& token) {
  const char c = code_[at_];
  const bool perl = is(Language::perl), ruby = is(Language::ruby);
  if (c == '"' || (c == '\'' && !is(Language::awk)))
    return read_quoted(token, c, false, is(Language::ruby) && c == '"');
  if (c == '`' && (perl || ruby || is(Language::php) || is(Language::node))) {
    // A $ before it has it run: zx, Bun.
    const bool runs = !is(Language::node) || (at_ > 0 && code_[at_ - 1] == '$');
    if (!read_quoted(token, c, false, !perl)) return false;
    if (runs) token.kind = CodeToken::Kind::script;
    return true;
  }
  if (is(Language::lua) && c == '[') return read_long_bracket(token);
  if (c == '<' && (perl || ruby || is(Language::php))) return read_here_document(token);
  if (c == '/') return read_pattern(token);
  if (c == '%' && ruby) return read_percent(token);
  if (c == ':' && ruby && is_name_start(at(1)) && (at_ == 0 || !is_name_char(code_[at_ - 1]))) {
    ++at_;
    read_name(token);
    token.kind = CodeToken::Kind::text;
    token.texts = {std::string(token.name)};
    return true;
  }
  if (perl && is_name_start(c)) return read_quote_operator(token);
  if (!is(Language::python) && !is(Language::r)) return false;
  // r'..', f"..", rb'..'
  std::size_t letters = 0;
  bool raw = false, formatted = false;
  while (letters < 2 && "rRbBuUfF"sv.find(at(letters)) != npos && at(letters)) {
    raw |= (at(letters) | 0x20) == 'r';
    formatted |= (at(letters) | 0x20) == 'f';
    ++letters;
  }
  if (letters == 0 || (at(letters) != '"' && at(letters) != '\'')) return false;
  at_ += letters;
  if (read_quoted(token, code_[at_], raw, formatted && is(Language::python))) return true;
  at_ -= letters;
  return false;
}

// From the opening quote to behind the closing one. `formatted`: what stands in braces may have
// quotes of its own.
bool CodeLexer::read_quoted(CodeToken& token, char quote, bool raw, bool formatted) {
  if (at_ < unclosed(quote)) return false;
  const std::string_view three = code_.substr(at_, 3);
  const bool is_triple =
      is(Language::python) && three.size() == 3 && three[1] == quote && three[2] == quote;
  const std::size_t marks = is_triple ? 3 : 1;
  const bool one_line =
      !is_triple && quote != '`' &&
      (is(Language::python) || is(Language::node) || is(Language::awk) || is(Language::lua));
  std::size_t end = at_ + marks;
  while (end < code_.size()) {
    const char c = code_[end];
    if (c == quote && (!is_triple || code_.substr(end, 3) == three)) break;
    if (c == '\n' && one_line) break;
    const bool opens = formatted && end >= unclosed('{') && c == '{' &&
                       (is(Language::python) || code_[end - 1] != '\\');
    const bool twice = is(Language::python) && end + 1 < code_.size() && code_[end + 1] == '{';
    if (c == '\\') {
      end += 2;
    } else if (opens && !twice) {
      const std::size_t behind = behind_braces(code_, end + 1);
      if (behind == npos) unclosed('{') = code_.size();
      end = behind == npos ? end + 1 : behind;
    } else {
      end += opens ? 2U : 1U;
    }
  }
  if (end >= code_.size() || code_[end] != quote) {
    unclosed(quote) = std::min(end, code_.size());
    return false;
  }
  const std::string_view body = code_.substr(at_ + marks, end - at_ - marks);
  at_ = end + marks;
  token.kind = CodeToken::Kind::text;
  token.texts = {raw ? std::string(body) : decoded(body, quote, formatted)};
  return true;
}

bool CodeLexer::find_close(char open, char close, std::string_view& body) {
  if (at_ < unclosed(close)) return false;
  std::size_t depth = 1;
  for (std::size_t end = at_; end < code_.size(); ++end) {
    const char c = code_[end];
    if (c == '\\') {
      ++end;
    } else if (c == close && --depth == 0) {
      body = code_.substr(at_, end - at_);
      at_ = end + 1;
      return true;
    } else if (c == open && open != close) {
      ++depth;
    }
  }
  unclosed(close) = code_.size();
  return false;
}

// What stands behind the letters of q, qx, m, s and the like of Perl, and of %q of Ruby.
bool CodeLexer::read_delimited(CodeToken& token, std::size_t letters) {
  const std::string_view name = code_.substr(at_, letters);
  const std::size_t begin = at_;
  at_ += letters;
  while (at(0) == ' ' || at(0) == '\n') ++at_;
  const char open = at(0);
  const char close = closing_of(open);
  ++at_;
  std::string_view body;
  if (!find_close(open, close, body)) {
    at_ = begin;
    return false;
  }
  const bool plain = is_any(name, "q", "%q", "%w", "qw", "%i");
  token.kind = is_any(name, "qx", "%x") ? CodeToken::Kind::script : CodeToken::Kind::text;
  if (is_any(name, "qw", "%w", "%W", "%i", "%I")) {
    token.kind = CodeToken::Kind::list;
    for (std::string_view rest = body; !rest.empty();) {
      const std::size_t end = std::min(rest.find_first_of(" \t\n"), rest.size());
      if (end > 0) token.texts.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return true;
  }
  token.texts = {decoded(body, plain ? '\'' : '"', is(Language::ruby))};
  if (!is_any(name, "s", "y", "tr", "m", "qr", "%r")) return true;
  // (?{ code })
  if (const std::size_t code = body.find("(?"sv); is(Language::perl) && code != npos)
    scope_.add_piece(body.substr(code), piece_);
  token.texts = {std::string(1, '\0')};
  if (!is_any(name, "s", "y", "tr")) return true;
  if (open != close) {
    while (at(0) == ' ' || at(0) == '\n') ++at_;
    ++at_;
  }
  const char second = open == close ? open : code_[std::min(at_, code_.size()) - 1];
  std::string_view replacement;
  if (!find_close(second, closing_of(second), replacement)) return true;
  bool runs = false;
  for (; is_name_char(at(0)); ++at_) runs |= at(0) == 'e';
  if (runs)
    scope_.add_piece(replacement, piece_);
  else
    decoded(replacement, '"', false);
  return true;
}

// %q(..) %w[..] %x{..} and the like of Ruby.
bool CodeLexer::read_percent(CodeToken& token) {
  const bool value_before = last_ == CodeToken::Kind::text || last_ == CodeToken::Kind::name ||
                            (last_ == CodeToken::Kind::mark && ")]}"sv.find(last_mark_) != npos);
  const bool letter = at(1) && "qQwWixIr"sv.find(at(1)) != npos;
  const char open = at(letter ? 2 : 1);
  if (is_name_char(open) || open == ' ' || open == '=' || open == '\0' || open == '\n')
    return false;
  if (!letter && (value_before || "([{<"sv.find(open) == npos)) return false;
  return read_delimited(token, letter ? 2 : 1);
}

// q(..) qw(..) qx/../ m/../ s/../../e and the like of Perl.
bool CodeLexer::read_quote_operator(CodeToken& token) {
  std::size_t letters = 0;
  while (letters < 3 && is_name_char(at(letters))) ++letters;
  if (!is_any(code_.substr(at_, letters), "q", "qq", "qw", "qx", "qr", "m", "s", "y", "tr"))
    return false;
  if (last_ == CodeToken::Kind::mark && last_mark_ == CodeToken::attribute) return false;
  if (at_ > 0 && "$@%&"sv.find(code_[at_ - 1]) != npos) return false;
  std::size_t i = letters;
  while (at(i) == ' ' || at(i) == '\n') ++i;
  const char open = at(i);
  if (open == '\0' || ",;)}"sv.find(open) != npos || is_name_char(open) || at(i) == '=' ||
      (i > letters && open == '#'))
    return false;
  return read_delimited(token, letters);
}

// /pattern/flags, where a value may stand.
bool CodeLexer::read_pattern(CodeToken& token) {
  const bool perl = is(Language::perl);
  if (!perl && !is(Language::ruby) && !is(Language::node) && !is(Language::awk)) return false;
  const bool spaced = at_ > 0 && " \t\n"sv.find(code_[at_ - 1]) != npos;
  const bool behind_group =
      last_ == CodeToken::Kind::mark && (last_mark_ == ')' || last_mark_ == '}');
  const bool behind_name = last_ == CodeToken::Kind::name && spaced && !last_name_.empty() &&
                           !is_digit(last_name_[0]) && " =\t\n"sv.find(at(1)) == npos;
  const bool behind_value = last_ == CodeToken::Kind::text || last_ == CodeToken::Kind::name ||
                            (last_ == CodeToken::Kind::mark && last_mark_ == ']');
  if (behind_group || (behind_name && !names_before_patterns.has(last_name_))) {
    ambiguous_ = true;
    if (divides_) return false;
  } else if (behind_value && !names_before_patterns.has(last_name_)) {
    return false;
  }
  if (at_ < unclosed('/')) return false;
  std::size_t end = at_ + 1;
  for (bool in_class = false; end < code_.size() && code_[end] != '\n'; ++end) {
    const char c = code_[end];
    if (c == '\\')
      ++end;
    else if (c == '[' && !perl)
      in_class = true;
    else if (c == ']')
      in_class = false;
    else if (c == '/' && !in_class)
      break;
  }
  if (end >= code_.size() || code_[end] != '/') {
    unclosed('/') = std::min(end, code_.size());
    return false;
  }
  const std::string_view body = code_.substr(at_ + 1, end - at_ - 1);
  if (perl || is(Language::ruby)) decoded(body, '"', is(Language::ruby));
  at_ = end + 1;
  token.kind = CodeToken::Kind::text;
  token.texts = {std::string(1, '\0')};
  while (is_name_char(at(0)) && !is(Language::awk)) ++at_;
  return true;
}

// [[..]] and [==[..]==] of Lua.
bool CodeLexer::read_long_bracket(CodeToken& token) {
  std::size_t level = 1;
  while (at(level) == '=') ++level;
  if (at(0) != '[' || at(level) != '[') return false;
  const std::string close = concat("]%]", {std::string(level - 1, '=')});
  const std::size_t begin = at_ + level + 1;
  const std::size_t end = at_ < unclosed(']') ? npos : code_.find(close, begin);
  if (end == npos) {
    unclosed(']') = code_.size();
    return false;
  }
  token.kind = CodeToken::Kind::text;
  token.texts = {std::string(code_.substr(begin, end - begin))};
  at_ = end + close.size();
  return true;
}

// <<NAME, <<~"NAME", <<<'NAME': its text begins behind this line.
bool CodeLexer::read_here_document(CodeToken& token) {
  std::size_t i = is(Language::php) ? 3 : 2;
  if (code_.substr(at_, i) != "<<<"sv.substr(0, i)) return false;
  if (is(Language::php))
    while (at(i) == ' ') ++i;
  const bool indented = at(i) == '~' || at(i) == '-';
  i += indented;
  const char quote = at(i) && "\"'`"sv.find(at(i)) != npos ? at(i) : '"';
  const bool quoted = at(i) == quote;
  i += quoted;
  std::size_t size = 0;
  while (is_name_char(at(i + size))) ++size;
  const std::string_view name = code_.substr(std::min(at_ + i, code_.size()), size);
  if (name.empty() || (!indented && !quoted && !(name[0] >= 'A' && name[0] <= 'Z'))) return false;
  if (at_ < unclosed('<')) return false;
  std::size_t line = std::max(here_end_, std::min(code_.find('\n', at_), code_.size() - 1) + 1);
  const std::size_t begin = line;
  while (line < code_.size()) {
    const std::size_t end = std::min(code_.find('\n', line), code_.size());
    std::string_view text = code_.substr(line, end - line);
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    const bool ends = is(Language::php) ? starts_with(text, name) : text == name;
    if (ends) {
      const std::string_view body = code_.substr(begin, line - begin);
      token.texts = {quote == '\'' ? std::string(body) : decoded(body, '"', is(Language::ruby))};
      token.kind = quote == '`' ? CodeToken::Kind::script : CodeToken::Kind::text;
      at_ += i + size + quoted;
      // What follows the name of PHP goes on with the statement.
      here_end_ = is(Language::php)
                      ? line + static_cast<std::size_t>(text.data() + name.size() - &code_[line])
                      : end + 1;
      return true;
    }
    line = end + 1;
  }
  unclosed('<') = code_.size();
  return false;
}

// what a text says --------------------------------------------------------------------------------

std::string CodeLexer::decoded(std::string_view body, char quote, bool formatted) {
  const bool plain =
      quote == '\'' && (is(Language::perl) || is(Language::php) || is(Language::ruby));
  std::string text;
  text.reserve(body.size());
  for (std::size_t i = 0; i < body.size();) {
    if (body[i] == '\\' && i + 1 < body.size()) {
      ++i;
      if (!plain)
        append_escape(body, i, text);
      else if (body[i] == '\\' || body[i] == '\'')
        text += body[i++];
      else
        text += '\\';
      continue;
    }
    const std::size_t taken = plain ? 0 : interpolate(body.substr(i), quote, formatted, text);
    if (taken == 0) text += body[i];
    i += std::max<std::size_t>(taken, 1);
  }
  return text;
}

// What stands behind a backslash.
void CodeLexer::append_escape(std::string_view body, std::size_t& at, std::string& text) const {
  constexpr std::string_view letters = "ntrabfve", controls = "\n\t\r\a\b\f\v\033";
  const char c = body[at];
  if (is_digit(c)) {
    const bool lua = is(Language::lua);
    const std::size_t before = at;
    const std::uint32_t value = read_digits(body, at, 3, lua ? 10 : 8);
    if (at == before)
      text += body[at++];
    else
      text += static_cast<char>(value);
    return;
  }
  ++at;
  const bool perl = is(Language::perl);
  if (c == 'x' || c == 'u' || c == 'U' || (c == 'o' && perl)) {
    if (perl && (c == 'u' || c == 'U')) return;
    const bool braced = at < body.size() && body[at] == '{';
    const std::size_t most = braced ? 8 : c == 'x' ? 2 : c == 'u' ? 4 : 8;
    at += braced;
    const std::size_t before = at;
    const std::uint32_t value = read_digits(body, at, most, c == 'o' ? 8 : 16);
    if (at == before && !braced)
      text += c;
    else if (value < 0x80 || c == 'x')
      text += static_cast<char>(value);
    else
      append_utf8(value < 0x110000 ? value : 0xfffd, text);
    if (braced) at = std::min(body.find('}', at), body.size() - 1) + 1;
  } else if (c == 'N' && is(Language::python)) {
    text += '\0';
    at = std::min(body.find('}', at), body.size() - 1) + 1;
  } else if (c == 'z' && is(Language::lua)) {
    at = std::min(body.find_first_not_of(" \t\r\n", at), body.size());
  } else if (perl && "QELl"sv.find(c) != npos) {
    return;
  } else if (const std::size_t letter = letters.find(c); letter != npos) {
    text += controls[letter];
  } else if (c != '\n') {
    text += c;
  }
}

// Puts a value in: $x, ${x}, #{x}, {x}. Gives how much of the text it has taken; 0: there is none.
std::size_t CodeLexer::interpolate(std::string_view rest, char quote, bool formatted,
                                   std::string& text) {
  const char second = rest.size() > 1 ? rest[1] : '\0';
  std::size_t open = npos;
  if (is(Language::python)) {
    if (!formatted || (rest[0] != '{' && rest[0] != '}')) return 0;
    if (second == rest[0]) {
      text += rest[0];
      return 2;
    }
    open = 0;
  } else if (is(Language::node)) {
    if (quote != '`' || rest[0] != '$' || second != '{') return 0;
    open = 1;
  } else if (is(Language::ruby)) {
    if (rest[0] != '#' || second != '{') return 0;
    open = 1;
  } else if (is(Language::php) && rest[0] == '{' && second == '$') {
    open = 0;
  } else if ((is(Language::perl) || is(Language::php)) && (rest[0] == '$' || rest[0] == '@')) {
    if (second == '{') open = 1;
  } else {
    return 0;
  }
  std::string_view inside;
  std::size_t end = 1;
  if (open != npos) {
    if (rest[open] != '{') return 0;
    rest = rest.substr(0, std::size_t{1} << 16);
    end = scope_.charge(0) ? behind_braces(rest, open + 1) : npos;
    if (end == npos) {
      scope_.charge(rest.size());
      text += '\0';
      return open + 1;
    }
    inside = rest.substr(open + 1, end - open - 2);
    scope_.add_piece(inside, piece_);
    if (starts_with(inside, "$"sv)) inside.remove_prefix(1);
  } else {
    while (end < rest.size() && is_name_char(rest[end])) ++end;
    if (end == 1) return 0;
    inside = rest.substr(1, end - 1);
  }
  const CodeValue* const value = scope_.value_of(inside);
  std::string_view literal;
  if (value && value->is_text() && scope_.charge(value->texts[0].size()))
    text += value->texts[0];
  else if (bare_text(inside, literal))
    text += literal;
  else
    text += '\0';
  return end;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
