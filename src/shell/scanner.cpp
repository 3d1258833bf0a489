// The parser: errors, nodes, blanks, reserved words.

#include "shell/parser_internal.hpp"

#include "base/names_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// Positions are bytes of the script. A text that is not in the script as it stands (eval "$x", a
// here-document without its tabs) has the position of the command or the construct it comes from;
// see ShellOrigin.

std::uint32_t ShellScanner::end_position(std::size_t at) const {
  const std::size_t within = std::min(at, text_.size());
  return origin_.exact ? origin_.begin + static_cast<std::uint32_t>(within) : origin_.end;
}

std::string_view ShellScanner::token_here() const {
  std::size_t end = at_;
  while (end < text_.size() && end < at_ + 20 && !is_shell_blank(text_[end]) && text_[end] != '\n')
    ++end;
  if (end == at_) end = std::min(at_ + 1, text_.size());
  return text_.substr(at_, end - at_);
}

void ShellScanner::fail(ErrorCode code, std::string_view message, std::size_t at) {
  if (failed_) return;
  failed_ = true;
  error_ = make_error(code, "%", {message}, position(std::min(at, text_.size())));
}

void ShellScanner::unexpected(std::string_view where) {
  open_ = open_ || at_end();
  fail_here(at_end() ? "unexpected end of the script"
                     : concat("unexpected %%", {in_quotes(token_here()), where}));
}

bool ShellScanner::enter() {
  if (++depth_ <= options_.limits.max_depth) return true;
  fail(ErrorCode::limit, too_deep(options_), at_);
  return false;
}

bool ShellScanner::room() {
  const std::size_t most = 64 * options_.limits.max_written;
  if (syntax_.words.size() + syntax_.nodes.size() < most && syntax_.parts.size() < 4 * most)
    return true;
  fail(ErrorCode::limit, concat("more than % words", {most}), at_);
  return false;
}

ShellRange ShellScanner::end_list(std::size_t from) {
  const auto begin = static_cast<std::uint32_t>(syntax_.lists.size());
  for (std::size_t i = from; i < syntax_.pending.size(); ++i)
    syntax_.lists.push_back(std::uint32_t{syntax_.pending[i]});
  cut(syntax_.pending, from);
  return {begin, static_cast<std::uint32_t>(syntax_.lists.size())};
}

std::uint32_t ShellScanner::add_node(ShellNode& node, std::size_t end) {
  if (!room()) return no_index;
  node.end = end_position(end);
  syntax_.nodes.push_back(node);
  return static_cast<std::uint32_t>(syntax_.nodes.size() - 1);
}

ShellNode ShellScanner::node_at(ShellNode::Kind kind, std::size_t at) const {
  ShellNode node;
  node.kind = kind;
  node.begin = position(at);
  return node;
}

void ShellScanner::skip_blanks() {
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

// A reserved word is plain and stands where a command may begin:
//
//   if          a reserved word             i\<newline>f   the same: lines are joined first
//   iffy        a name                      \if "if"       names: quoted
//   echo if     an operand: the caller does not ask here
//
// word_here() only looks. take_word() goes behind what it has found.

std::string_view ShellScanner::word_here() {
  std::size_t end = at_;
  while (end < text_.size() && end < at_ + 9 && !ends_plain_run.has(text_[end])) ++end;
  if (end == at_ && end < text_.size() && (text_[end] == '{' || text_[end] == '}')) ++end;
  if (text_.substr(at_, 2) == "]]") end = at_ + 2;
  if (text_.substr(end, 2) == "\\\n") return joined_word_here();
  if (end < text_.size() && !ends_word(text_[end])) return {};
  word_end_ = end;
  return text_.substr(at_, end - at_);
}

std::string_view ShellScanner::joined_word_here() {
  std::string joined;
  std::size_t end = at_;
  for (; end < text_.size() && joined.size() < 10 && !ends_word(text_[end]); ++end) {
    if (text_.substr(end, 2) == "\\\n")
      ++end;
    else
      joined += text_[end];
  }
  static constexpr auto words = NameSet{
      "!",   "[[",       "]]", "case", "coproc", "do",   "done", "elif",  "else",  "esac", "fi",
      "for", "function", "if", "in",   "select", "then", "time", "until", "while", "{",    "}"};
  for (const std::string_view word : words.list()) {
    if (word != joined) continue;
    word_end_ = end;
    return word;
  }
  return {};
}

bool ShellScanner::expect(std::string_view word, std::size_t begin, std::string_view construct) {
  if (failed_) return false;
  if (word_here() == word) {
    take_word();
    return true;
  }
  if (at_end())
    unterminated(construct, begin);
  else
    unexpected(concat(", % is missing", {in_quotes(word)}));
  return false;
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
