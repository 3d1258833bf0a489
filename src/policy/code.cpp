// Code of other languages, piece by piece; and Tcl and m4, which are read in ways of their own.

#include "policy/code_internal.hpp"
#include "policy/policy_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

namespace {

// Reads a script of Tcl, command by command:
//
//   exec git push        a program and its arguments, which may have | < > among them
//   open "|git push"     the same, in a text
//   [exec git push]      a command in a word
//   if {$x} {exec ls}    a word in braces may be a script
class TclReader {
 public:
  TclReader(CodeScope& scope, const CodePiece& piece)
      : scope_(scope), piece_(piece), text_(piece.text) {}

  void read() {
    while (at_ < text_.size()) {
      const std::size_t first = text_.find_first_not_of(" \t\n\r;]", at_);
      if (first == std::string_view::npos) return;
      at_ = first;
      if (text_[at_] == '\0' && piece_.depth == 0) scope_.findings.opaque = true;
      if (text_[at_] == '#')
        at_ = std::min(text_.find('\n', at_), text_.size());
      else
        run(read_command());
    }
  }

 private:
  std::vector<std::string> read_command() {
    std::vector<std::string> words;
    while (at_ < text_.size() && "\n;"sv.find(text_[at_]) == std::string_view::npos) {
      const char c = text_[at_];
      if (c == ' ' || c == '\t' || (c == '\\' && text_.substr(at_ + 1, 1) == "\n"sv))
        at_ += c == '\\' ? 2U : 1U;
      else if (c == '{')
        words.push_back(read_braces());
      else
        words.push_back(read_word(c == '"'));
    }
    return words;
  }
  std::string read_braces() {
    const std::size_t begin = ++at_;
    for (std::size_t depth = 1; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\\') ++at_;
      if (c == '{') ++depth;
      if (c == '}' && --depth == 0) break;
    }
    const std::string_view inside = text_.substr(begin, std::min(at_, text_.size()) - begin);
    ++at_;
    scope_.add_piece(concat("% ()", {inside}), piece_);
    return std::string(inside);
  }
  // A word, or one in double quotes. What is put into it is a hole.
  std::string read_word(bool quoted) {
    std::string word;
    at_ += quoted;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (quoted ? c == '"' : " \t\n;"sv.find(c) != std::string_view::npos) break;
      ++at_;
      if (c == '\\' && at_ < text_.size()) {
        word += text_[at_++];
      } else if (c == '[') {
        const std::size_t begin = at_;
        for (std::size_t depth = 1; at_ < text_.size() && depth; ++at_)
          depth = text_[at_] == '[' ? depth + 1 : text_[at_] == ']' ? depth - 1 : depth;
        scope_.add_piece(concat("% ()", {text_.substr(begin, at_ - begin - (at_ > begin))}),
                         piece_);
        word += '\0';
      } else if (c == '$') {
        const std::size_t begin = at_;
        while (at_ < text_.size() && is_name_char(text_[at_])) ++at_;
        const CodeValue* const value = scope_.value_of(text_.substr(begin, at_ - begin));
        if (value && scope_.charge(value->texts[0].size()))
          word += value->texts[0];
        else
          word += '\0';
      } else {
        word += c;
      }
    }
    at_ += quoted;
    return word;
  }
  void run(const std::vector<std::string>& words) {
    if (words.empty()) return;
    const std::string_view name = words[0];
    std::size_t i = 1;
    if (name == "set"sv && words.size() == 3 && words[2].size() < 4096) {
      scope_.variables[words[1]].set_text(words[2]);
    } else if (name == "open"sv && words.size() > 1 && starts_with(words[1], "|"sv)) {
      scope_.findings.scripts.push_back(words[1].substr(1));
    } else if (is_any(name, "exec", "spawn", "system")) {
      while (i < words.size() && starts_with(words[i], "-"sv)) ++i;
      std::string script;
      for (; i < words.size(); ++i) {
        const bool raw =
            name == "system"sv || words[i].find_first_not_of("|<>&12") == std::string::npos;
        if (raw)
          script += words[i];
        else
          append_quoted(script, words[i]);
        script += ' ';
      }
      if (scope_.charge(script.size())) scope_.findings.scripts.push_back(std::move(script));
    } else if (is_any(name, "eval", "uplevel", "catch", "after", "time")) {
      std::string script;
      for (; i < words.size(); ++i) append_all(script, "% ", {words[i]});
      scope_.add_piece(script + "()", piece_);
    }
  }

  CodeScope& scope_;
  const CodePiece& piece_;
  const std::string_view text_;
  std::size_t at_ = 0;
};

// syscmd(`git push'), esyscmd([git push])
void read_m4(CodeScope& scope, const CodePiece& piece) {
  const std::string_view text = piece.text;
  if (starts_with(text, "\0"sv) || text.find(std::string_view("\n\0", 2)) != std::string_view::npos)
    scope.findings.opaque = true;
  constexpr std::string_view call = "syscmd(";
  for (std::size_t at = text.find(call); at != std::string_view::npos; at = text.find(call, at)) {
    at += call.size();
    std::string script;
    for (std::size_t depth = 1; at < text.size(); ++at) {
      const char c = text[at];
      if (c == '(') ++depth;
      if (c == ')' && --depth == 0) break;
      if (c != '`' && c != '[' && c != ']' && (c != '\'' || script.empty())) script += c;
    }
    while (ends_with(script, "'"sv)) script.pop_back();
    if (scope.charge(script.size())) scope.findings.scripts.push_back(std::move(script));
  }
}

}  // namespace

inline namespace inner {

CodeFindings find_starts(Language language, std::string_view code, bool page,
                         const std::vector<std::string_view>& given) {
  CodeScope scope;
  scope.language = language;
  scope.budget = (std::size_t{1} << 16) + 16 * code.size();
  for (std::string_view value : given) {
    const std::string_view name = take_part(value, '=');
    scope.variables[std::string(name)].set_text(std::string(value));
  }
  const bool of_php = language == Language::php && page;
  scope.pieces.push_back({std::string(code), 0, of_php});
  // Reading a piece may add others to the end of the list.
  for (const CodePiece& piece : scope.pieces) {
    if (language == Language::tcl)
      TclReader(scope, piece).read();
    else if (language == Language::m4)
      read_m4(scope, piece);
    else
      read_piece(scope, piece);
  }
  return std::move(scope.findings);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
