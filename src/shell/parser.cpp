// The parser: errors, nodes, blanks, here-documents.

#include "shell/parser_internal.hpp"
#include "shell/shell.hpp"
#include "shell/shell_internal.hpp"
#include "shell/tree_internal.hpp"

#include "base/base.hpp"
#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

std::uint32_t ShellParser::parse() {
  const std::uint32_t node = parse_list(true);
  if (!failed_ && at_ < text_.size()) unexpected();
  return node;
}

std::uint32_t ShellParser::end_position(std::size_t at) const {
  const std::size_t within = std::min(at, text_.size());
  return origin_.exact ? origin_.begin + static_cast<std::uint32_t>(within) : origin_.end;
}

std::string_view ShellParser::token_here() const {
  std::size_t end = at_;
  while (end < text_.size() && end < at_ + 20 && !is_shell_blank(text_[end]) && text_[end] != '\n')
    ++end;
  if (end == at_) end = std::min(at_ + 1, text_.size());
  return text_.substr(at_, end - at_);
}

void ShellParser::fail(ErrorCode code, std::string_view message, std::size_t at) {
  if (failed_) return;
  failed_ = true;
  error_ = make_error(code, {message}, position(std::min(at, text_.size())));
}

void ShellParser::unexpected(std::string_view where) {
  fail_here(at_end() ? "unexpected end of the script"
                     : concat({"unexpected ", in_quotes(token_here()), where}));
}

bool ShellParser::enter() {
  if (++depth_ <= options_.limits.max_depth) return true;
  fail(ErrorCode::limit, too_deep(options_), at_);
  return false;
}

bool ShellParser::room() {
  const std::size_t most = 64 * options_.limits.max_written;
  if (syntax_.words.size() + syntax_.nodes.size() < most && syntax_.parts.size() < 4 * most)
    return true;
  fail(ErrorCode::limit, concat({"more than ", most, " words"}), at_);
  return false;
}

// lists of indices -------------------------------------------------------------------------------

ShellRange ShellParser::end_list(std::size_t from) {
  const auto begin = static_cast<std::uint32_t>(syntax_.lists.size());
  for (std::size_t i = from; i < syntax_.pending.size(); ++i)
    syntax_.lists.push_back(std::uint32_t{syntax_.pending[i]});
  cut(syntax_.pending, from);
  return {begin, static_cast<std::uint32_t>(syntax_.lists.size())};
}

std::uint32_t ShellParser::add_node(ShellNode node, std::size_t end) {
  if (!room()) return no_index;
  node.end = end_position(end);
  syntax_.nodes.push_back(node);
  return static_cast<std::uint32_t>(syntax_.nodes.size() - 1);
}

ShellNode ShellParser::node_at(ShellNode::Kind kind, std::size_t at) const {
  ShellNode node;
  node.kind = kind;
  node.begin = position(at);
  return node;
}

// blanks, newlines, here-documents ---------------------------------------------------------------

void ShellParser::skip_blanks() {
  for (;;) {
    const char c = peek();
    if (is_shell_blank(c)) {
      ++at_;
    } else if (c == '\\' && peek(1) == '\n') {
      at_ += 2;
    } else if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      return;
    }
  }
}

void ShellParser::newline() {
  ++at_;
  std::list<HereDocument> documents;
  documents.swap(here_documents_);
  for (const HereDocument& document : documents)
    if (!failed_) read_here_document(document);
}

void ShellParser::read_here_document(const HereDocument& document) {
  const std::size_t begin = at_;
  std::size_t end = at_;
  std::string stripped;  // the body without leading tabs
  std::string storage;
  for (; !at_end(); end = at_) {
    while (document.strip_tabs && peek() == '\t') ++at_;
    const std::size_t line_begin = at_;
    const std::string_view line = read_line(document.quoted, storage);
    if (line == document.delimiter) {
      // bash joins lines before it looks for the delimiter, dash does not.
      if (!storage.empty())
        fail(ErrorCode::parse, "delimiter of a here-document in joined lines"sv, line_begin);
      break;
    }
    // There, bash ends the document, and takes the rest of the line for the script.
    if (substitutions_ > 0 && starts_with(line, document.delimiter) &&
        line.find(')') != std::string_view::npos)
      return fail(ErrorCode::parse, "text behind the delimiter of a here-document"sv, line_begin);
    if (document.strip_tabs) stripped += text_.substr(line_begin, at_ - line_begin);
  }
  std::string_view body = text_.substr(begin, end - begin);
  ShellOrigin origin = {position(begin), end_position(end), origin_.exact};
  if (document.strip_tabs) {
    syntax_.texts.push_back(std::move(stripped));
    body = syntax_.texts.back();
    origin.exact = false;
  }
  std::uint32_t word = no_index;
  if (document.quoted) {
    const std::size_t parts = syntax_.pending_parts.size();
    add_quoted_literal(body);
    word = end_word(parts, begin, end);
  } else {
    ShellParser parser(syntax_, options_, body, origin, depth_);
    word = parser.parse_here_document_body();
    take_over(parser);
  }
  syntax_.redirections[document.redirection].target = word;
}

std::string_view ShellParser::read_line(bool is_quoted, std::string& storage) {
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

void ShellParser::take_over(const ShellParser& parser) {
  dialect_dependent_ = dialect_dependent_ || parser.dialect_dependent_;
  if (parser.failed_ && !failed_) {
    failed_ = true;
    error_ = parser.error_;
  }
}

std::uint32_t ShellParser::parse_here_document_body() {
  const std::size_t parts = syntax_.pending_parts.size();
  while (!failed_ && !at_end()) read_quoted_piece(Quotes::here_document);
  return end_word(parts, 0, at_);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
