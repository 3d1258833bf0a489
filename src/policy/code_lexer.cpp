// Code of other languages in tokens: what is a comment, a name, a mark.
//
// What could be read in two ways must not hide anything: a slash that may begin a pattern or divide
// is read as both, one after the other (see CodeLexer::ambiguous()), and a quote that is not closed
// is a mark like any other.

#include "policy/code_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

CodeToken CodeLexer::next() {
  CodeToken token;
  for (;;) {
    if (page_) leave_page();
    while (at_ < code_.size() && " \t\r"sv.find(code_[at_]) != npos) ++at_, token.spaced = true;
    if (looking_at("\\\n"sv))
      at_ += 2;
    else if (!skip_comment())
      break;
    token.spaced = true;
  }
  if (at_ < code_.size()) {
    const char c = code_[at_];
    if (c == '\n') {
      end_line(token);
    } else if (c == '\0') {
      // A part that the shell puts in.
      if (ends_statement() && piece_.depth == 0 && !is(Language::awk))
        scope_.findings.opaque = true;
      token.kind = CodeToken::Kind::name;
      token.name = code_.substr(at_++, 1);
    } else if (!read_text(token)) {
      if (is_name_char(c))
        read_name(token);
      else
        read_mark(token);
    }
  }
  last_ = token.kind;
  last_mark_ = token.mark;
  last_name_ = token.name;
  return token;
}

// True if a statement may begin here.
bool CodeLexer::ends_statement() const {
  return last_ == CodeToken::Kind::end ||
         (last_ == CodeToken::Kind::mark && ";{}\n"sv.find(last_mark_) != npos);
}

// Goes to the code of a page of PHP.
void CodeLexer::leave_page() {
  const std::size_t begin = code_.find("<?"sv, at_);
  page_ = false;
  if (begin == npos) {
    at_ = code_.size();
    return;
  }
  at_ = begin + 2;
  if (looking_at("php"sv)) at_ += 3;
  if (looking_at("="sv)) ++at_;
}

// Goes behind a text; to the end if it does not come.
bool CodeLexer::skip_to(std::string_view end) {
  const std::size_t found = code_.find(end, at_);
  at_ = found == npos ? code_.size() : found + end.size();
  return true;
}

// True if it has skipped one, or what else is no code.
bool CodeLexer::skip_comment() {
  if (at_ >= code_.size()) return false;
  const bool line_begins = at_ == 0 || code_[at_ - 1] == '\n';
  if (is(Language::perl) && line_begins && at(0) == '=' && is_name_start(at(1)))
    return skip_to("\n=cut"sv);
  if (is(Language::ruby) && line_begins && looking_at("=begin"sv)) return skip_to("\n=end"sv);
  if (is(Language::php) && looking_at("?>"sv)) {
    at_ += 2;
    return page_ = true;
  }
  const bool slashes = is(Language::node) || is(Language::php);
  if (slashes && looking_at("/*"sv)) {
    at_ += 2;
    return skip_to("*/"sv);
  }
  if (is(Language::lua) && looking_at("--"sv)) {
    at_ += 2;
    CodeToken comment;
    if (read_long_bracket(comment)) return true;
  } else if (!(slashes && looking_at("//"sv)) &&
             (is(Language::lua) || is(Language::node) || at(0) != '#' ||
              (is(Language::perl) && at_ > 0 && code_[at_ - 1] == '$')) &&
             !(at_ == 0 && looking_at("#!"sv))) {
    return false;
  }
  // A comment of PHP ends with its code.
  const std::size_t end = std::min(code_.find('\n', at_), code_.size());
  const std::size_t leave = is(Language::php) ? code_.substr(at_, end - at_).find("?>"sv) : npos;
  at_ = leave == npos ? end : at_ + leave;
  return true;
}

void CodeLexer::end_line(CodeToken& token) {
  token.kind = CodeToken::Kind::mark;
  token.mark = '\n';
  at_ = std::max(at_ + 1, std::min(here_end_, code_.size()));
}

void CodeLexer::read_name(CodeToken& token) {
  const std::size_t begin = at_;
  while (at_ < code_.size() && is_name_char(code_[at_])) ++at_;
  token.kind = CodeToken::Kind::name;
  token.name = code_.substr(begin, at_ - begin);
}

void CodeLexer::read_mark(CodeToken& token) {
  const bool dots = is(Language::perl) || is(Language::php);
  const bool sigils = dots || is(Language::ruby);
  const char c = code_[at_++];
  if (sigils && (c == '$' || c == '@') && is_name_char(at(0))) {
    read_name(token);
    token.variable = true;
    return;
  }
  struct Pair {
    const char* text;
    char mark;
  };
  static constexpr Pair pairs[] = {
      {"==", CodeToken::other},
      {"=>", CodeToken::other},
      {"=~", CodeToken::other},
      {"!=", CodeToken::other},
      {"<=", CodeToken::other},
      {">=", CodeToken::other},
      {"++", CodeToken::other},
      {"||", CodeToken::other},
      {"&&", CodeToken::other},
      {"::", CodeToken::attribute},
      {"?.", CodeToken::attribute},
      {"&.", CodeToken::attribute},
      {"->", CodeToken::attribute},
      {"+=", CodeToken::add},
      {".=", CodeToken::add},
      {"..", CodeToken::other},
      {":=", CodeToken::assign},
      {"<-", CodeToken::assign},
      {"|&", '|'},
  };
  token.kind = CodeToken::Kind::mark;
  token.mark = c;
  for (const Pair& pair : pairs) {
    if (c != pair.text[0] || at(0) != pair.text[1] ||
        (pair.mark == CodeToken::assign && c == '<' && !is(Language::r)))
      continue;
    ++at_;
    token.mark = pair.mark;
    if (c == '.' && pair.text[1] == '.' && is(Language::lua)) token.mark = CodeToken::joint;
    return;
  }
  if (c == '=') token.mark = CodeToken::assign;
  if (c == '+') token.mark = CodeToken::joint;
  if (c == '.') token.mark = dots ? CodeToken::joint : CodeToken::attribute;
  if (c == ':' && is(Language::lua) && is_name_start(at(0))) token.mark = CodeToken::attribute;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
