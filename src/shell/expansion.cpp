// The walker: from the parts of a word to fields.

#include "shell/shell.hpp"
#include "shell/tree_internal.hpp"
#include "shell/values_internal.hpp"
#include "shell/walker_internal.hpp"

#include "base/base_internal.hpp"

namespace codeexec {
inline namespace v0_1 {

inline namespace inner {

void ShellWalker::add_text(Fields& fields, std::string_view text, bool quoted) {
  text_bytes_ += text.size();
  if (text_bytes_ > options_.limits.max_text)
    return over_limit(options_.limits.max_text, "bytes of words"sv, fields.begin);
  fields.word.text += text;
  fields.word.assumed = fields.word.assumed || fields.assumed;
  fields.started = fields.started || quoted || !text.empty();
  if (!quoted && has_glob(text)) fields.word.glob = true;
}

void ShellWalker::add_unknown(Fields& fields, bool quoted) {
  add_text(fields, std::string_view("\0", 1), quoted);
  if (!quoted && !fields.single) fields.word.split = true;
}

void ShellWalker::charge(std::size_t amount) {
  text_bytes_ += amount;
  if (text_bytes_ > options_.limits.max_text)
    over_limit(options_.limits.max_text, "bytes of words"sv, 0);
}

void ShellWalker::end_field(Fields& fields) {
  fields.word.begin = fields.begin;
  fields.word.end = fields.end;
  fields.out.push_back(std::move(fields.word));
  fields.word = shell::Word();
  fields.started = false;
  if (++words_ > options_.limits.max_words)
    over_limit(options_.limits.max_words, "words"sv, fields.begin);
}

void ShellWalker::add_value_text(Fields& fields, const ShellText& text, bool quoted) {
  const bool whole = quoted || fields.single;
  const bool begins = !fields.started && fields.word.text.empty();
  if (text.assumed) fields.word.assumed = true;
  if (text.glob) fields.word.glob = true;
  // A home directory that was printed behind something else is known to begin a word only.
  std::string written;
  for (std::size_t i = 0; i < text.text.size(); ++i) {
    const char before = i == 0 ? (begins ? ' ' : 'x') : whole ? 'x' : text.text[i - 1];
    const bool hidden =
        text.home && text.text[i] == '~' && !is_shell_blank(before) && before != '\n';
    written += hidden ? '\0' : text.text[i];
    if (hidden) i = std::min(text.text.find_first_of("/ \t\n", i), text.text.size()) - 1;
  }
  if (text.home && starts_with(written, "~"sv)) fields.word.home = true;
  if (!whole) return add_split(fields, written, text.home);
  add_text(fields, written, true);
  if (!quoted && has_glob(written)) fields.word.glob = true;
}

std::string ShellWalker::separators_of(const ShellValue& ifs) {
  if (ifs.unset) return " \t\n";
  return ifs.elements.empty() ? std::string() : ifs.elements[0].text;
}

std::size_t ShellWalker::skip_separator(std::string_view text, std::size_t at,
                                        std::string_view separators, bool& blank) {
  for (; at < text.size() && separators.find(text[at]) != std::string_view::npos; ++at) {
    const bool is_blank = is_shell_blank(text[at]) || text[at] == '\n';
    if (!is_blank && !blank) break;
    blank = blank && is_blank;
  }
  return at;
}

void ShellWalker::add_split(Fields& fields, std::string_view text, bool home) {
  const std::string separators = separators_of(value_of("IFS"sv));
  if (has_nul(separators)) return add_unknown(fields, false);
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= text.size() && !stopped(); ++at) {
    const bool ends = at < text.size() && separators.find(text[at]) != std::string::npos;
    const bool unknown = at < text.size() && text[at] == '\0';
    if (at < text.size() && !ends && !unknown) continue;
    if (home && at > begin && text[begin] == '~') {
      if (fields.word.text.empty()) {
        fields.word.home = true;
      } else {
        add_unknown(fields, true);
        ++begin;
      }
    }
    if (at > begin) add_text(fields, text.substr(begin, at - begin), false);
    begin = at + 1;
    if (unknown) add_unknown(fields, false);
    if (!ends) continue;
    bool blank = true;
    begin = skip_separator(text, at, separators, blank);
    at = begin - 1;
    if (fields.started || !blank) end_field(fields);
  }
}

void ShellWalker::expand_word(std::uint32_t index, Fields& fields) {
  const ShellWord word = syntax_.words[index];
  fields.begin = word.begin;
  fields.end = word.end;
  if (word.braces && !fields.single) return expand_braces(word, fields);
  expand_parts(word.parts, fields);
  if (fields.started || fields.single) end_field(fields);
}

void ShellWalker::expand_parts(ShellRange parts, Fields& fields) {
  for (std::uint32_t i = parts.begin; i < parts.end && !stopped(); ++i)
    expand_part(ShellPart(syntax_.parts[i]), fields, false);
}

void ShellWalker::expand_part(const ShellPart& part, Fields& fields, bool operand) {
  switch (part.kind) {
    case ShellPart::Kind::literal:
      if (operand && !part.quoted && !fields.single) return add_split(fields, part.text);
      return add_text(fields, part.text, part.quoted);
    case ShellPart::Kind::unknown:
      return add_unknown(fields, part.quoted);
    case ShellPart::Kind::tilde:
      return expand_tilde(part, fields);
    case ShellPart::Kind::parameter:
      return expand_parameter(part, fields);
    case ShellPart::Kind::command: {
      const ShellText text = output_of(part.node);
      return add_value_text(fields, text, part.quoted);
    }
    case ShellPart::Kind::process:
      return run_process(part, fields);
    case ShellPart::Kind::arithmetic: {
      const std::string value = arithmetic(part.operand);
      if (value.empty()) return add_unknown(fields, true);
      return add_text(fields, value, true);
    }
  }
}

void ShellWalker::expand_tilde(const ShellPart& part, Fields& fields) {
  if (part.text.empty()) {
    const ShellValue home = value_of("HOME"sv);
    if (home.elements.size() == 1) return add_value_text(fields, home.elements[0], true);
    return add_unknown(fields, true);
  }
  if (has_entry("+ -"sv, part.text)) return add_unknown(fields, true);
  if (!is_name_start(part.text[0])) return add_text(fields, concat({"~", part.text}), false);
  ShellText user;
  user.text = concat({"~", part.text});
  user.home = true;
  add_value_text(fields, user, true);
}

ShellText ShellWalker::expand_single(std::uint32_t index) {
  if (index == no_index) return {};
  std::vector<shell::Word> words;
  Fields fields{words, true};
  expand_word(index, fields);
  if (words.empty()) return {};
  return text_of(words[0]);
}

}  // namespace inner

}  // namespace v0_1
}  // namespace codeexec
