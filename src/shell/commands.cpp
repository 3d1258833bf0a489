// The parser: simple commands, assignments, redirections.

#include "shell/parser_internal.hpp"
#include "shell/shell.hpp"
#include "shell/tree_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

std::uint32_t ShellParser::parse_simple() {
  ShellNode node = node_at(ShellNode::Kind::simple, at_);
  const std::size_t begin = at_;
  const std::size_t from = begin_list();
  std::vector<ShellAssignment> assignments;
  std::vector<ShellRedirection> redirections;
  bool declares = false;
  for (skip_blanks(); !failed_ && !at_end(); skip_blanks()) {
    if (at_redirection()) {
      parse_redirection(redirections);
      continue;
    }
    if (ends_word(peek()) && !at_process()) break;
    const bool first = begin_list() == from;
    if (first || declares) {
      ShellAssignment assignment;
      if (parse_assignment(assignment, !first)) {
        assignments.push_back(assignment);
        continue;
      }
      if (failed_) break;
    }
    const std::size_t word_begin = at_;
    const std::uint32_t word = parse_word();
    if (failed_) break;
    add(word);
    if (!first) continue;
    const std::string_view name = text_.substr(word_begin, at_ - word_begin);
    declares = bash() && has_entry("declare typeset local export readonly"sv, name);
    if (assignments.empty() && redirections.empty() && at_parentheses()) {
      cut(syntax_.pending, from);
      return parse_function_body(name, begin);
    }
  }
  node.words = end_list(from);
  if (++syntax_.simple > syntax_.most_simple)
    fail(ErrorCode::limit, concat({"more than ", syntax_.most_simple, " commands"}), begin);
  return add_node_with(node, assignments, redirections, last_token_end(begin));
}

std::size_t ShellParser::last_token_end(std::size_t begin) const {
  std::size_t end = at_;
  while (end > begin && is_shell_blank(text_[end - 1])) --end;
  return end;
}

bool ShellParser::at_parentheses() {
  std::size_t at = at_;
  while (at < text_.size() && is_shell_blank(text_[at])) ++at;
  if (at >= text_.size() || text_[at] != '(') return false;
  for (++at; at < text_.size() && is_shell_blank(text_[at]);) ++at;
  if (at >= text_.size() || text_[at] != ')') return false;
  at_ = at + 1;
  return true;
}

std::uint32_t ShellParser::add_node_with(ShellNode node,
                                         const std::vector<ShellAssignment>& assignments,
                                         const std::vector<ShellRedirection>& redirections,
                                         std::size_t end) {
  node.assignments.begin = static_cast<std::uint32_t>(syntax_.assignments.size());
  for (const ShellAssignment& assignment : assignments) syntax_.assignments.push_back(assignment);
  node.assignments.end = static_cast<std::uint32_t>(syntax_.assignments.size());
  node.redirections.begin = static_cast<std::uint32_t>(syntax_.redirections.size());
  // The here-documents of this command learn where their redirections are.
  for (HereDocument& document : here_documents_) {
    if (!document.placed) document.redirection += node.redirections.begin;
    document.placed = true;
  }
  for (const ShellRedirection& redirection : redirections)
    syntax_.redirections.push_back(redirection);
  node.redirections.end = static_cast<std::uint32_t>(syntax_.redirections.size());
  return add_node(node, end);
}

bool ShellParser::parse_assignment(ShellAssignment& assignment, bool arrays_only) {
  std::size_t end = at_;
  if (!is_name_start(peek())) return false;
  while (end < text_.size() && is_name_char(text_[end])) ++end;
  assignment.name = text_.substr(at_, end - at_);
  std::size_t subscript = 0;
  // dash takes NAME[subscript]= and NAME+= for the names of commands.
  if (end < text_.size() && text_[end] == '[' && bash()) {
    subscript = end;
    end = subscript_end(end);
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
    assignment.subscript = read_until(']', "["sv, Quotes::none);
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

std::size_t ShellParser::subscript_end(std::size_t at) const {
  unsigned depth = 0;
  for (; at < text_.size(); ++at) {
    const char c = text_[at];
    if (is_shell_blank(c) || c == '\n' || c == ';' || c == '|' || c == '&') break;
    if (c == '[') ++depth;
    if (c == ']' && --depth == 0) return at + 1;
  }
  return text_.size();
}

void ShellParser::parse_elements(ShellAssignment& assignment) {
  const std::size_t begin = at_++;
  assignment.array = true;
  const std::size_t from = begin_list();
  for (skip_newlines(); !failed_ && !at_end() && peek() != ')'; skip_newlines()) {
    if (ends_word(peek()) && !at_process())
      unexpected(" in an array"sv);
    else
      add(parse_word());
  }
  if (at_end()) return unterminated("array"sv, begin);
  ++at_;
  assignment.elements = end_list(from);
}

bool ShellParser::at_redirection() const {
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

void ShellParser::parse_redirection(std::vector<ShellRedirection>& redirections) {
  using Kind = shell::Redirection::Kind;
  ShellRedirection redirection;
  const bool both = looking_at("&>"sv);
  int number = -1;
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
    begin_here_document(static_cast<std::uint32_t>(redirections.size()));
  } else {
    skip_blanks();
    if (at_end() || (ends_word(peek()) && !at_process()))
      return fail(ErrorCode::parse, "redirection without a target"sv, operator_at);
    redirection.target = parse_word();
  }
  redirections.push_back(redirection);
}

void ShellParser::begin_here_document(std::uint32_t order) {
  HereDocument document;
  document.redirection = order;
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

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
