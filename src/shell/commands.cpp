// The parser: simple commands, assignments, redirections.

#include "shell/parser_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

std::size_t ShellCommandParser::last_token_end(std::size_t begin) const {
  std::size_t end = at_;
  while (end > begin && is_shell_blank(text_[end - 1])) --end;
  return end;
}

// What may stand where a simple command has its next piece:
//
//   2>a  {fd}<b  &>c     a redirection, anywhere
//   x=a  x+=(b)  x[1]=c  an assignment, in front of the first word; arrays also behind `declare`
//   anything else        a word; the first one is the name of the command
//
// parse_assignment() looks ahead to the = and consumes nothing if there is none.

bool ShellCommandParser::parse_assignment(ShellAssignment& assignment, bool arrays_only,
                                          std::size_t& bracket) {
  std::size_t end = at_;
  if (!is_name_start(peek())) return false;
  while (end < text_.size() && is_name_char(text_[end])) ++end;
  assignment.name = text_.substr(at_, end - at_);
  std::size_t subscript = 0;
  // dash takes NAME[subscript]= and NAME+= for the names of commands.
  if (end < text_.size() && text_[end] == '[' && bash() && !arrays_only) {
    subscript = end;
    end = bracket = subscript_end(end);
    if (end == std::string_view::npos) unterminated("["sv, subscript);
    if (failed_) return false;
  }
  const bool append = text_.substr(end, 2) == "+=" && bash();
  if (append) ++end;
  if (end >= text_.size() || text_[end] != '=') return false;
  const bool array = bash() && end + 1 < text_.size() && text_[end + 1] == '(';
  if (arrays_only && !array) return false;
  dialect_dependent_ = dialect_dependent_ || append || array || subscript != 0;
  assignment.begin = position(at_);
  assignment.append = append;
  assignment.declared = arrays_only;
  if (subscript != 0) {
    at_ = subscript;
    assignment.subscript = read_until(']', "["sv, ShellQuotes::none);
    if (at_ != bracket) fail_here("subscript that ends in another place"sv);
    if (failed_) return false;
  }
  at_ = end + 1;
  if (array) {
    parse_elements(assignment);
  } else if (!at_end() && (!ends_word(peek()) || at_process())) {
    assignment.value = parse_word(Context::command, true);
  }
  assignment.end = end_position(at_);
  return !failed_;
}

void ShellCommandParser::parse_elements(ShellAssignment& assignment) {
  const std::size_t begin = at_++;
  assignment.array = true;
  const std::size_t from = begin_list();
  for (skip_newlines(); !failed_ && !at_end() && peek() != ')'; skip_newlines()) {
    if (ends_word(peek()) && !at_process())
      unexpected(" in an array"sv);
    else
      add(parse_word(Context::element));
  }
  if (at_end()) return unterminated("array"sv, begin);
  ++at_;
  assignment.elements = end_list(from);
}

// Redirections.
//
//   [n] or {name}, then   <  >  >|  >>  <>  <&  >&  <<  <<-  <<<  &>  &>>   then a word
//
// The number is part of the operator only if nothing is between them: `2>a` but not `2 >a`.

bool ShellCommandParser::at_redirection() const {
  std::size_t at = at_;
  while (at < text_.size() && is_digit(text_[at])) ++at;
  if (at == at_ && peek() == '{' && bash() && is_name_start(peek(1))) {
    ++at;
    while (at < text_.size() && is_name_char(text_[at])) ++at;
    if (at >= text_.size() || text_[at] != '}') return false;
    ++at;
  }
  if (at >= text_.size()) return false;
  if (at == at_ && looking_at("&>"sv) && bash()) return true;
  if (text_[at] != '<' && text_[at] != '>') return false;
  return at > at_ || !at_process();
}

void ShellCommandParser::parse_redirection(ShellNode& node) {
  using Kind = shell::Redirection::Kind;
  ShellRedirection redirection;
  const bool both = looking_at("&>"sv);
  int number = -1;  // none; -2: one that is not known or beyond 1023
  if (both) {
    dialect_dependent_ = true;
    ++at_;
  } else if (peek() == '{') {
    dialect_dependent_ = true;
    number = -2;
    while (peek() != '}') ++at_;
    ++at_;
  } else if (is_digit(peek())) {
    for (number = 0; is_digit(peek()); ++at_)
      number = number > 1023 || number == -2 ? -2 : number * 10 + (peek() - '0');
    if (number > 1023) number = -2;
  }
  const std::size_t operator_at = at_;
  const bool output = peek() == '>';
  ++at_;
  redirection.kind = output ? Kind::write : Kind::read;
  if (looking_at(">"sv) && output) {
    redirection.kind = Kind::append;
    ++at_;
  } else if (looking_at("|"sv) && output && !both) {
    ++at_;
  } else if (looking_at("&"sv) && !both) {
    redirection.kind = Kind::duplicate;
    ++at_;
  } else if (looking_at(">"sv) && !output) {
    redirection.kind = Kind::read_write;
    ++at_;
  } else if (looking_at("<"sv) && !output) {
    redirection.kind = Kind::here_document;
    ++at_;
    if (looking_at("<"sv) && bash()) {
      dialect_dependent_ = true;
      redirection.kind = Kind::here_string;
      ++at_;
    }
  }
  redirection.fd = number == -2 ? -1 : number >= 0 ? number : output ? 1 : 0;
  redirection.output = output;
  if (redirection.kind == Kind::here_document) {
    begin_here_document();
  } else {
    skip_blanks();
    if (at_end() || (ends_word(peek()) && !at_process()))
      return fail(ErrorCode::parse, "redirection without a target"sv, operator_at);
    redirection.target = parse_word();
  }
  add_to_chain(syntax_.redirections, redirection, node.redirections);
}

// Here-documents.
//
//   cat <<A; cat <<B     begin_here_document(): in here_documents_, with the delimiter
//   \n                   newline(): the bodies of A and B follow, in this order
//   ...                  read_here_document(): up to the delimiter

void ShellCommandParser::begin_here_document() {
  HereDocument document;
  document.redirection = static_cast<std::uint32_t>(syntax_.redirections.size());
  while (text_.substr(at_, 2) == "\\\n") at_ += 2;
  if (peek() == '-') {
    document.strip_tabs = true;
    ++at_;
  }
  skip_blanks();
  const std::size_t begin = at_;
  while (!at_end() && !ends_word(peek())) {
    const char c = peek();
    if (c == '\\' && peek(1) == '\n') {
      at_ += 2;
    } else if (c == '\\') {
      document.quoted = true;
      document.delimiter += text_.substr(at_ + 1, 1);
      at_ = std::min(at_ + 2, text_.size());
    } else if (c == '\'' || c == '"') {
      document.quoted = true;
      const std::size_t end = text_.find(c, at_ + 1);
      if (end == std::string_view::npos) return unterminated("quote"sv, at_);
      const std::string_view inner = text_.substr(at_ + 1, end - at_ - 1);
      if (c == '"' && inner.find_first_of("\\$`") != std::string_view::npos)
        return fail_here("escape or expansion in the delimiter of a here-document"sv);
      document.delimiter += inner;
      at_ = end + 1;
    } else if (c == '$' || c == '`') {
      // The shells do not agree on where such a delimiter ends.
      return fail_here("expansion in the delimiter of a here-document"sv);
    } else {
      document.delimiter += c;
      ++at_;
    }
  }
  if (at_ == begin) return fail_here("here-document without a delimiter"sv);
  here_documents_.push_back(std::move(document));
}

void ShellCommandParser::newline() {
  ++at_;
  std::list<HereDocument> documents;
  documents.swap(here_documents_);
  for (const HereDocument& document : documents)
    if (!failed_) read_here_document(document);
}

void ShellCommandParser::read_here_document(const HereDocument& document) {
  const std::size_t begin = at_;
  std::size_t end = at_;
  std::string stripped;  // the body without leading tabs
  std::string storage;
  bool closed = false;
  for (; !at_end(); end = at_) {
    while (document.strip_tabs && peek() == '\t') ++at_;
    const std::size_t line_begin = at_;
    const std::string_view line = read_line(document.quoted, storage);
    if (line == document.delimiter) {
      closed = true;
      // bash joins lines before it looks for the delimiter, dash does not.
      if (!storage.empty())
        fail(ErrorCode::parse, "delimiter of a here-document in joined lines"sv, line_begin);
      break;
    }
    // In a substitution bash ends the document here, and reads the rest of the line as commands.
    if (substitutions_ > 0 && starts_with(line, document.delimiter) &&
        line.find(')') != std::string_view::npos)
      return fail(ErrorCode::parse, "text behind the delimiter of a here-document"sv, line_begin);
    if (document.strip_tabs) stripped += text_.substr(line_begin, at_ - line_begin);
  }
  open_ = open_ || !closed;
  std::string_view body = text_.substr(begin, end - begin);
  ShellOrigin origin = {position(begin), end_position(end), origin_.exact};
  if (document.strip_tabs) {
    body = syntax_.keep(std::move(stripped));
    origin.exact = false;
  }
  std::uint32_t word = no_index;
  if (document.quoted) {
    const std::size_t parts = syntax_.pending_parts.size();
    add_quoted_literal(body);
    word = end_word(parts, begin, end);
  } else {
    word = parse_text(body, origin, &ShellParser::parse_here_document_body);
  }
  syntax_.redirections[document.redirection].target = word;
}

std::string_view ShellCommandParser::read_line(bool is_quoted, std::string& storage) {
  storage.clear();
  for (;;) {
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::string_view line = text_.substr(at_, end - at_);
    at_ = std::min(end + 1, text_.size());
    std::size_t slashes = 0;
    while (!is_quoted && slashes < line.size() && line[line.size() - slashes - 1] == '\\')
      ++slashes;
    if (slashes % 2 == 0 || end == text_.size()) {
      if (storage.empty()) return line;
      storage += line;
      return storage;
    }
    storage += line.substr(0, line.size() - 1);
  }
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
