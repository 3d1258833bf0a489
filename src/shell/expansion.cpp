// The walker: from the parts of a word to fields.

#include "shell/words_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

// A word becomes fields in one pass over its parts, as the shell does it in several:
//
//   braces -> each word: tilde, parameter, command, arithmetic -> split at IFS -> quotes removed
//
// Names of files are not looked for: a word with unquoted * ? or [ is marked as `glob`.
//
//   x='a b'   $x        a, b           unquoted: split
//             "$x"$x    a ba, b        the first field goes on where the quotes end
//             $x$(w)    a, b@          @ is unknown and unquoted: `split`, may be several words
//             ~/c       ~/c, home      the text stays, the mark says that it is a home directory

void widen_extended_globs(std::string& text) {
  if (find_extended_glob(text) == std::string::npos) return;
  std::string widened;
  for (std::string_view rest = text;;) {
    const std::size_t size = std::min(rest.find('/'), rest.size());
    const std::string_view name = rest.substr(0, size);
    const std::size_t at = std::min(find_extended_glob(name), size);
    widened += name.substr(0, at);
    if (at < size) widened += '*';
    if (has_nul(name.substr(at))) widened += unknown_part;
    if (size == rest.size()) break;
    widened += '/';
    rest.remove_prefix(size + 1);
  }
  text = std::move(widened);
}

void ShellFields::add_text(std::string_view text, bool quoted) {
  if (!walk_.budget.charge(text.size(), begin_)) return;
  const std::size_t known = word_.text.size();
  word_.text += text;
  word_.assumed = word_.assumed || assumed_;
  started_ = started_ || quoted || !text.empty();
  // An extended glob may begin in one expansion and go on in the next.
  const bool joins = known > 0 && starts_with(text, "("sv);
  if (!quoted && (has_glob(text) || (joins && has_glob(word_.text.substr(known - 1, 2)))))
    word_.glob = true;
}

void ShellFields::add_unknown(bool quoted) {
  add_text(unknown_part, quoted);
  if (!quoted && !single_) word_.split = true;
}

void ShellFields::end_field() {
  word_.begin = begin_;
  word_.end = end_;
  if (word_.glob && !single_) widen_extended_globs(word_.text);
  out_.push_back(std::move(word_));
  word_ = shell::Word();
  started_ = false;
  walk_.budget.count_word(begin_);
}

void ShellFields::add_value_text(const ShellText& text, bool quoted) {
  const bool whole = quoted || single_;
  const bool begins = !started_ && word_.text.empty();
  if (text.assumed) word_.assumed = true;
  if (text.glob) word_.glob = true;
  // With `home`, a ~ is a home directory only where it begins a word. Anywhere else it may be one
  // or not, so it becomes unknown.
  std::string written;
  for (std::size_t i = 0; i < text.text.size(); ++i) {
    const char before = i == 0 ? (begins ? ' ' : 'x') : whole ? 'x' : text.text[i - 1];
    const bool hidden =
        text.home && text.text[i] == '~' && !is_shell_blank(before) && before != '\n';
    written += hidden ? '\0' : text.text[i];
    if (hidden) i = std::min(text.text.find_first_of("/ \t\n", i), text.text.size()) - 1;
  }
  if (text.home && starts_with(written, "~"sv)) word_.home = true;
  if (!whole) return add_split(written, text.home);
  add_text(written, true);
  if (!quoted && has_glob(written)) word_.glob = true;
}

// Field splitting, with IFS=" :" (a blank is part of the separator beside it):
//
//   text     a  : b :: c
//   fields   a    b  ""  c

std::string separators_of(const ShellValue& ifs) {
  if (ifs.unset) return " \t\n";
  return ifs.elements.empty() ? std::string() : ifs.elements[0].text;
}

std::size_t skip_separator(std::string_view text, std::size_t at, std::string_view separators,
                           bool& blank) {
  for (; at < text.size() && separators.find(text[at]) != std::string_view::npos; ++at) {
    const bool is_blank = is_shell_blank(text[at]) || text[at] == '\n';
    if (!is_blank && !blank) break;
    blank = blank && is_blank;
  }
  return at;
}

void ShellFields::add_split(std::string_view text, bool home) {
  const std::string separators = separators_of(walk_.scopes.value_of("IFS"sv));
  if (has_nul(separators)) return add_unknown(false);
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= text.size() && !walk_.budget.stopped(); ++at) {
    const bool ends = at < text.size() && separators.find(text[at]) != std::string::npos;
    const bool unknown = at < text.size() && text[at] == '\0';
    if (at < text.size() && !ends && !unknown) continue;
    if (home && at > begin && text[begin] == '~') {
      if (word_.text.empty()) {
        word_.home = true;
      } else {
        add_unknown(true);
        ++begin;
      }
    }
    if (at > begin) add_text(text.substr(begin, at - begin), false);
    begin = at + 1;
    if (unknown) add_unknown(false);
    if (!ends) continue;
    bool blank = true;
    begin = skip_separator(text, at, separators, blank);
    at = begin - 1;
    if (started_ || !blank) end_field();
  }
}

void ShellExpander::expand_word(std::uint32_t index) {
  const ShellWord word = walk_.syntax.words[index];
  begin_ = word.begin;
  end_ = word.end;
  if (word.braces && !single_) return expand_braces(word);
  expand_parts(word.parts, false);
  if (started_ || single_) end_field();
}

void ShellExpander::expand_parts(ShellRange parts, bool operand) {
  for (std::uint32_t i = parts.begin; i < parts.end && !walk_.budget.stopped(); ++i)
    expand_part(ShellPart(walk_.syntax.parts[i]), operand);
}

void ShellExpander::expand_part(const ShellPart& part, bool operand) {
  switch (part.kind) {
    case ShellPart::Kind::literal:
      if (operand && !part.quoted && !single_) return add_split(part.text);
      return add_text(part.text, part.quoted);
    case ShellPart::Kind::unknown:
      return add_unknown(part.quoted);
    case ShellPart::Kind::tilde:
      return expand_tilde(part);
    case ShellPart::Kind::parameter:
      return expand_parameter(part);
    case ShellPart::Kind::command:
      return add_value_text(runner_.output_of(part.node), part.quoted);
    case ShellPart::Kind::process:
      return expand_process(part);
    case ShellPart::Kind::arithmetic:
      return expand_arithmetic(part);
    case ShellPart::Kind::again:
      return walk_operand(part);
  }
}

void ShellExpander::expand_tilde(const ShellPart& part) {
  if (part.text.empty()) {
    const ShellValue home = walk_.scopes.value_of("HOME"sv);
    if (home.elements.size() == 1) return add_value_text(home.elements[0], true);
    return add_unknown(true);
  }
  if (is_any(part.text, "+", "-")) return add_unknown(true);
  ShellText user;
  user.text = concat("~%", {part.text});
  if (!is_name_start(part.text[0])) return add_text(user.text, false);
  user.home = true;
  add_value_text(user, true);
}

void ShellExpander::expand_process(const ShellPart& part) {
  shell::Input printed = runner_.input_from_process(part);
  add_unknown(true);
  word_.process = true;
  if (printed.kind != shell::Input::Kind::known) return;
  walk_.printed.push_back(std::move(printed));
  word_.printed = &walk_.printed.back();
}

void ShellExpander::expand_arithmetic(const ShellPart& part) {
  const ShellText text = runner_.expand_single(part.operand);
  long long number = 0;
  ShellEvaluation(runner_).evaluate(text.text);
  // A number as it stands; one with a 0 in front is octal.
  if (text.assumed || !read_integer(text.text, number) || text.text[0] == '0')
    return add_unknown(true);
  add_text(std::string(Piece(number)), true);
}

void ShellExpander::expand_braces(const ShellWord& word) {
  for (const ShellBraces::Word& parts : ShellBraces(walk_).expand(word)) {
    for (std::size_t i = 0; i < parts.size() && !walk_.budget.stopped(); ++i) {
      if (i == 0 && !parts[0].quoted && parts[0].kind == ShellPart::Kind::literal &&
          starts_with(parts[0].text, "~"sv))
        expand_leading_tilde(parts[0], parts.size() == 1);
      else
        expand_part(parts[i], false);
    }
    if (started_) end_field();
  }
}

void ShellExpander::expand_leading_tilde(const ShellPart& part, bool alone) {
  const std::size_t end = std::min(part.text.find('/'), part.text.size());
  if (end == part.text.size() && !alone) return expand_part(part, false);
  ShellPart tilde = part;
  tilde.kind = ShellPart::Kind::tilde;
  tilde.text = part.text.substr(1, end - 1);
  expand_part(tilde, false);
  ShellPart rest = part;
  rest.text = part.text.substr(end);
  if (!rest.text.empty()) expand_part(rest, false);
}

shell::Word ShellRunner::expand_single(std::uint32_t index) {
  if (index == no_index) return {};
  std::vector<shell::Word> words;
  ShellExpander(*this, words, true).expand_word(index);
  if (words.empty()) return {};
  return std::move(words[0]);
}

void ShellRunner::expand_words(ShellRange range, std::vector<shell::Word>& out, bool single) {
  ShellExpander expander(*this, out, single);
  for (std::size_t i = 0; i < size(range) && !walk.budget.stopped(); ++i)
    expander.expand_word(walk.item(range, i));
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
